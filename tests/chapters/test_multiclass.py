"""One-vs-rest and one-vs-one (PER-8, PER-9)."""

from __future__ import annotations

import copy
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.multiclass
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import surefit
from surefit import Status
from surefit.linear_model import LogisticRegression, Perceptron, SGDClassifier
from surefit.multiclass import OneVsOneClassifier, OneVsRestClassifier

BOTH = [OneVsRestClassifier, OneVsOneClassifier]
# The parts are perceptrons, for which one heavy step is not several light ones.
ORDER_MATTERS = {
    "check_sample_weight_equivalence_on_dense_data": "one heavy step is not several light ones",
    "check_sample_weight_equivalence_on_sparse_data": "one heavy step is not several light ones",
}


class Fixed(ClassifierMixin, BaseEstimator):
    """A margin classifier whose score is a known linear function of the single feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.slope_ = 0.0
        return self

    def decision_function(self, X):
        return self.slope_ * X[:, 0]

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def pair_scores(margins: dict[tuple[int, int], float], **parameters) -> OneVsOneClassifier:
    """A fitted one-vs-one model whose pair classifiers give these scores at x = 1."""
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1, 2, 3])
    model = OneVsOneClassifier(Fixed(), **parameters).fit(X, y)
    for part, pair in zip(model.estimators_, combinations((1, 2, 3), 2)):
        part.slope_ = -margins[pair]  # positive for the second of the pair
    return model


# ---------------------------------------------------------------------------- one-vs-rest


@pytest.mark.spec("PER-8")
def test_one_classifier_a_class_and_the_largest_score_wins():
    X, y = load_digits(return_X_y=True)
    model = OneVsRestClassifier(Perceptron()).fit(X, y)
    assert len(model.estimators_) == model.n_classes_ == 10
    scores = np.column_stack([X @ part.coef_[0] + part.intercept_ for part in model.estimators_])
    assert_allclose(model.decision_function(X), scores, rtol=1e-12, atol=1e-9)
    assert_array_equal(model.predict(X), scores.argmax(axis=1))
    for label, part in enumerate(model.estimators_):
        alone = Perceptron().fit(X, y == label)
        assert_array_equal(part.coef_, alone.coef_)


@pytest.mark.spec("PER-8")
def test_for_two_classes_it_is_the_binary_rule():
    """The two classifiers mirror each other, so their argmax is the sign of one of them."""
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    first, second = (Perceptron().fit(X, y == label) for label in (1, 2))
    assert_array_equal(first.coef_, -second.coef_)
    assert_array_equal(first.intercept_, -second.intercept_)
    scores = np.column_stack([first.decision_function(X), second.decision_function(X)])
    binary = Perceptron().fit(X, y)
    model = OneVsRestClassifier(Perceptron()).fit(X, y)
    assert_array_equal(np.array([1, 2])[scores.argmax(axis=1)], binary.predict(X))
    assert_array_equal(model.predict(X), binary.predict(X))
    assert_array_equal(model.decision_function(X), binary.decision_function(X))
    at_zero = OneVsRestClassifier(Fixed()).fit(X, y)  # a score of 0 is the first class (DAT-8)
    assert_array_equal(at_zero.predict(X), 1)


@pytest.mark.spec("PER-8")
def test_one_vs_rest_is_what_the_perceptron_does_itself():
    X, y = load_iris(return_X_y=True)
    whole = Perceptron(shuffle=False, tol=None, max_iter=50).fit(X, y)
    parts = OneVsRestClassifier(Perceptron(shuffle=False, tol=None, max_iter=50)).fit(X, y)
    assert_array_equal(whole.coef_, np.vstack([part.coef_ for part in parts.estimators_]))
    assert_array_equal(whole.predict(X), parts.predict(X))


@pytest.mark.spec("PER-8")
def test_one_vs_rest_predicts_as_scikit_learns():
    X, y = load_iris(return_X_y=True)
    inner = sklearn.svm.LinearSVC(random_state=0)
    ours = OneVsRestClassifier(inner).fit(X, y)
    theirs = sklearn.multiclass.OneVsRestClassifier(inner).fit(X, y)
    assert_array_equal(ours.decision_function(X), theirs.decision_function(X))
    assert_array_equal(ours.predict(X), theirs.predict(X))


# ---------------------------------------------------------------------------- one-vs-one


@pytest.mark.spec("PER-9")
@pytest.mark.parametrize("c", [2, 3, 5, 10])
def test_the_number_of_pairs(c):
    X, y = load_digits(return_X_y=True)
    keep = y < c
    model = OneVsOneClassifier(Perceptron()).fit(X[keep], y[keep])
    assert len(model.estimators_) == c * (c - 1) // 2


@pytest.mark.spec("PER-9")
def test_votes_and_sums_can_disagree():
    """1 beats 2 by 1, 1 beats 3 by 1, 2 beats 3 by 10: the vote says 1, the sum says 2 (ERR-26)."""
    margins = {(1, 2): 1.0, (1, 3): 1.0, (2, 3): 10.0}
    here = [[1.0]]
    vote = pair_scores(margins, tie_break=False)
    assert_array_equal(vote.decision_function(here), [[2, 1, 0]])
    assert vote.predict(here) == 1
    broken = pair_scores(margins)  # with scikit-learn's tie-break, which cannot overrule a vote
    assert_allclose(broken.decision_function(here), [[2 + 2 / 9, 1 + 9 / 30, -11 / 36]])
    assert broken.predict(here) == 1
    total = pair_scores(margins, scores=True)
    assert_array_equal(total.decision_function(here), [[2, 9, -11]])
    assert total.predict(here) == 2


@pytest.mark.spec("PER-9")
def test_ties_go_to_the_first_class_and_a_zero_score_votes_for_neither():
    cycle = {(1, 2): 1.0, (1, 3): -50.0, (2, 3): 0.5}  # 1 > 2 > 3 > 1
    assert pair_scores(cycle).predict([[1.0]]) == 3  # the largest sum of scores breaks the tie
    circle = pair_scores(cycle, tie_break=False)
    assert_array_equal(circle.decision_function([[1.0]]), [[1, 1, 1]])
    assert circle.predict([[1.0]]) == 1
    zero = pair_scores({(1, 2): 0.0, (1, 3): 0.0, (2, 3): -1.0}, tie_break=False)
    assert_array_equal(zero.decision_function([[1.0]]), [[0, 0, 1]])
    assert zero.predict([[1.0]]) == 3


@pytest.mark.spec("PER-9")
def test_the_votes_follow_from_the_weights_with_w_lk_equal_to_minus_w_kl():
    X, y = load_iris(return_X_y=True)
    model = OneVsOneClassifier(Perceptron(), tie_break=False).fit(X, y)
    W = np.zeros((3, 3, 5))
    for part, (k, other) in zip(model.estimators_, combinations(range(3), 2)):
        W[other, k] = np.append(part.coef_[0], part.intercept_)
        W[k, other] = -W[other, k]
        rows = (y == k) | (y == other)
        alone = Perceptron().fit(X[rows], y[rows] == other)  # positive for the second of the pair
        assert_array_equal(part.coef_, alone.coef_)
    padded = np.column_stack([X, np.ones(len(X))])
    votes = (np.einsum("nd,kld->nkl", padded, W) > 0).sum(axis=2)
    assert_array_equal(model.decision_function(X), votes)
    assert_array_equal(model.predict(X), votes.argmax(axis=1))
    sums = OneVsOneClassifier(Perceptron(), scores=True).fit(X, y)
    expected = np.einsum("nd,kld->nk", padded, W)
    assert_allclose(sums.decision_function(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.spec("PER-9")
def test_two_classes_give_one_score_positive_for_the_second():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], np.array(["a", "b"])[y[:100]]
    model = OneVsOneClassifier(Perceptron()).fit(X, y)
    assert model.decision_function(X).shape == (100,)
    assert_array_equal(model.predict(X), y)
    assert_array_equal(model.decision_function(X) > 0, y == "b")


@pytest.mark.spec("PER-9")
def test_votes_and_ties_are_scikit_learns():
    X, y = load_digits(return_X_y=True)
    inner = sklearn.linear_model.RidgeClassifier()
    ours = OneVsOneClassifier(inner).fit(X, y)
    theirs = sklearn.multiclass.OneVsOneClassifier(inner).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-12)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    bare = OneVsOneClassifier(inner, tie_break=False).fit(X, y).decision_function(X)
    assert_array_equal(bare, np.round(theirs.decision_function(X)))


# ---------------------------------------------------------------------------- certificates


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_the_claims_of_the_parts_are_collected(reduction):
    X, y = load_iris(return_X_y=True)
    model = reduction(Perceptron()).fit(X, y)
    first = "0 vs rest" if reduction is OneVsRestClassifier else "0 vs 1"
    assert model.certificate_.ok
    assert len(model.certificate_.claims) == sum(
        len(p.certificate_.claims) for p in model.estimators_
    )
    claim = model.certificate_[f"{first}: mistake bound"]
    assert claim.observed == model.estimators_[0].mistakes_[0]
    report = surefit.verify(model, X, y)
    assert report.ok
    assert report["data"].status is Status.HOLDS
    assert report[f"{first}: data"].status is Status.HOLDS
    assert not surefit.verify(model, X, np.roll(y, 1)).ok
    assert not surefit.verify(model, X[:40], y[:40]).ok  # a single class, and no row for some pairs


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_a_nudged_part_is_noticed(reduction):
    X, y = load_iris(return_X_y=True)
    model = reduction(Perceptron()).fit(X, y)
    forged = copy.deepcopy(model)
    forged.estimators_[-1].coef_ = forged.estimators_[-1].coef_ * 1.001
    failed = surefit.verify(forged, X, y).failed
    assert [claim.name.split(": ")[1] for claim in failed] == ["attributes"]
    assert "objective_" in failed[0].statement


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_full_decides_what_the_parts_left_open(reduction):
    X, y = load_iris(return_X_y=True)
    quick = reduction(Perceptron()).fit(X, y).certificate_
    full = reduction(Perceptron(), certify="full").fit(X, y).certificate_
    last = "1 vs rest" if reduction is OneVsRestClassifier else "1 vs 2"
    assert quick[f"{last}: separability"].status is Status.UNDECIDED
    assert full[f"{last}: separability"].status is Status.HOLDS


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_other_peoples_classifiers_leave_the_claims_undecided(reduction):
    X, y = load_iris(return_X_y=True)
    model = reduction(sklearn.linear_model.RidgeClassifier()).fit(X, y)
    assert len(model.certificate_.claims) == 3
    for claim in model.certificate_.claims:
        assert claim.status is Status.UNDECIDED
        assert "RidgeClassifier left no certificate" in claim.statement
    assert surefit.verify(model, X, y).ok
    silent = reduction(Perceptron(certify=False)).fit(X, y)
    assert {c.status for c in silent.certificate_.claims} == {Status.UNDECIDED}
    assert (
        len(surefit.verify(silent, X, y).claims) > 6
    )  # verify does not need the part's own record
    assert not hasattr(reduction(Perceptron(), certify=False).fit(X, y), "certificate_")


# ---------------------------------------------------------------------------- contract


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
@pytest.mark.parametrize(
    ("inner", "expected"),
    [(Perceptron(), ORDER_MATTERS), (sklearn.linear_model.RidgeClassifier(), {})],
    ids=["surefit", "scikit-learn"],
)
def test_check_estimator(reduction, inner, expected, monkeypatch):
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)  # scipy has read it; "0" is not understood
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(reduction(inner), expected_failed_checks=expected)


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_sparse_rows_weights_and_processes_change_nothing(reduction):
    X, y = load_iris(return_X_y=True)
    plain = reduction(Perceptron()).fit(X, y)
    for model in (
        reduction(Perceptron()).fit(sp.csr_array(X), y),
        reduction(Perceptron()).fit(X, y, sample_weight=np.ones(150)),
        reduction(Perceptron(), n_jobs=2).fit(X, y),
    ):
        assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-12)
    weight = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    weighted = reduction(Perceptron(shuffle=False)).fit(X, y, sample_weight=weight)
    kept = reduction(Perceptron(shuffle=False)).fit(X[weight > 0], y[weight > 0])
    assert weighted.estimators_[0].mistakes_[0] == kept.estimators_[0].mistakes_[0]


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_errors_name_the_argument(reduction):
    X, y = load_iris(return_X_y=True)
    if reduction is OneVsOneClassifier:
        with pytest.raises(ValueError, match="greater than one; got 1 class"):
            reduction(Perceptron()).fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="'estimator'"):
        reduction("perceptron").fit(X, y)
    with pytest.raises(ValueError, match="sample_weight was given"):
        reduction(Fixed()).fit(X, y, sample_weight=np.ones(150))
    with pytest.raises(NotFittedError):
        reduction(Perceptron()).predict(X)


# ---------------------------------------------------------------------------- several labels, other parts


@pytest.mark.spec("PER-8")
def test_several_labels_a_row_are_as_many_problems(tmp_path):
    X, Y = make_multilabel_classification(200, 8, n_classes=4, random_state=0)
    inner = LogisticRegression()
    ours = OneVsRestClassifier(inner).fit(X, Y)
    theirs = sklearn.multiclass.OneVsRestClassifier(
        sklearn.linear_model.LogisticRegression(tol=1e-8)
    )
    theirs.fit(X, Y)
    assert ours.multilabel_
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    assert ours.certificate_.ok
    assert "3 vs rest: duality gap" in ours.certificate_
    sparse = OneVsRestClassifier(inner).fit(X, sp.csr_matrix(Y)).predict(X)
    assert sp.issparse(sparse)
    assert_array_equal(sparse.toarray(), ours.predict(X))
    ours.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit")
    assert_array_equal(again.predict(X), ours.predict(X))
    assert surefit.verify(again, X, Y).ok


@pytest.mark.spec("PER-8")
def test_a_label_that_every_row_has_is_a_constant(tmp_path):
    X, Y = make_multilabel_classification(60, 5, n_classes=3, random_state=0)
    Y[:, 0], Y[:, 1] = 1, 0
    with pytest.warns(UserWarning, match=r"Label (not )?\d is present in all training examples"):
        model = OneVsRestClassifier(Perceptron()).fit(X, Y)
    assert (model.predict(X)[:, :2] == [1, 0]).all()
    assert model.certificate_["0 vs rest: constant"].status is Status.HOLDS
    model.save(tmp_path / "model.surefit")
    assert_array_equal(surefit.load(tmp_path / "model.surefit").predict(X), model.predict(X))
    Y[3, 0] = 0
    assert surefit.verify(model, X, Y)["0 vs rest: constant"].status is Status.FAILS


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_partial_fit_visits_each_part(reduction):
    X, y = load_iris(return_X_y=True)
    inner = SGDClassifier(random_state=0, shuffle=False)
    model = reduction(inner)
    with pytest.raises(ValueError, match="classes must be passed"):
        model.partial_fit(X, y)
    model.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
    theirs = getattr(sklearn.multiclass, reduction.__name__)(
        sklearn.linear_model.SGDClassifier(random_state=0, shuffle=False)
    )
    theirs.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
    assert_allclose(model.decision_function(X), theirs.decision_function(X), rtol=1e-9)
    with pytest.raises(ValueError, match="must be subset of"):
        model.partial_fit(X, y + 1)
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'"):
        reduction(LogisticRegression()).partial_fit(X, y)


@pytest.mark.spec("PER-8", "PER-9")
@pytest.mark.parametrize("reduction", BOTH)
def test_parts_without_margins_are_asked_for_probabilities(reduction):
    X, y = load_iris(return_X_y=True)
    theirs = getattr(sklearn.multiclass, reduction.__name__)(GaussianNB()).fit(X, y)
    ours = reduction(GaussianNB()).fit(X, y)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    if reduction is OneVsRestClassifier:
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
        assert not hasattr(ours, "decision_function")
    two = y < 2
    assert_array_equal(reduction(GaussianNB()).fit(X[two], y[two]).predict(X[two]), y[two])


@pytest.mark.spec("PER-9")
def test_a_precomputed_kernel_is_cut_both_ways():
    X, y = load_iris(return_X_y=True)
    kernel = X @ X.T
    model = OneVsOneClassifier(sklearn.svm.SVC(kernel="precomputed")).fit(kernel, y)
    plain = OneVsOneClassifier(sklearn.svm.SVC(kernel="linear")).fit(X, y)
    assert [len(index) for index in model.pairwise_indices_] == [100, 100, 100]
    assert_allclose(model.decision_function(kernel), plain.decision_function(X), atol=1e-6)
