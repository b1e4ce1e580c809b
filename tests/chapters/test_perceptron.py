"""The perceptron estimator: rule, variants, and scikit-learn's contract (PER-1, 2, 4, 5, 7)."""

from __future__ import annotations

import subprocess
import sys
import warnings
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import surefit
from surefit import Status
from surefit.linear_model import Perceptron
from surefit.losses import PerceptronLoss
from surefit.solvers import gradient_descent
from surefit.solvers.perceptron import batch_perceptron, perceptron, updates

WORDS = ("11011", "00110", "01100", "10010", "10101", "10110")
EMAILS = np.array([[int(word) for word in row] for row in WORDS])
SPAM = np.array([1, -1, 1, -1, 1, -1])
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
OR = np.array([-1.0, 1.0, 1.0, 1.0])
EPS = np.finfo(np.float64).eps

# scikit-learn lists the same two for its own Perceptron: the order of visits matters here, and one step of
# weight 2 is not two steps of weight 1.
ORDER_MATTERS = {
    "check_sample_weight_equivalence_on_dense_data": "one heavy step is not several light ones",
    "check_sample_weight_equivalence_on_sparse_data": "one heavy step is not several light ones",
}


def noisy(n=200, d=6, seed=0, classes=2, dtype=np.float64):
    shape = {"n_informative": 4, "n_redundant": 0, "n_classes": classes}
    X, y = make_classification(n, d, **shape, flip_y=0.1, random_state=seed)
    return X.astype(dtype), y


# ---------------------------------------------------------------------------- the rule


@pytest.mark.spec("PER-1", "DAT-4")
def test_the_trace_of_the_e_mails():
    """Cyclic from 0: mistakes on x1, x2, x3 and x5, which give w = (0, 2, 0, -1, 1), b = 0."""
    trace = list(updates(EMAILS, SPAM, epochs=3))
    assert [step.row for _, step in trace] == [0, 1, 2, 3]
    model = Perceptron(shuffle=False, tol=None).fit(EMAILS, SPAM)
    assert_array_equal(model.coef_, [[0, 2, 0, -1, 1]])
    assert_array_equal(model.intercept_, [0])
    assert_array_equal(model.mistakes_, [4])
    assert_array_equal(trace[-1][0].w, model.coef_[0])
    assert model.decision_function([[1, 1, 0, 0, 0]]) == 2
    assert model.predict([[1, 1, 0, 0, 0]]) == 1


@pytest.mark.spec("PER-1")
def test_the_kernel_makes_the_steps_of_the_plain_loop():
    X, y = noisy()
    signs = np.where(y > 0, 1.0, -1.0)
    for intercept in (True, False):
        *_, (here, _) = updates(X, signs, epochs=7, fit_intercept=intercept)
        for container in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix):
            model = Perceptron(shuffle=False, tol=None, max_iter=7, fit_intercept=intercept)
            model.fit(container(X), signs)
            assert model.mistakes_[0] == here.mistakes
            assert_allclose(model.coef_[0], here.w, rtol=0, atol=1e3 * EPS * np.abs(here.w).max())
            assert model.intercept_[0] == here.b


@pytest.mark.spec("PER-2")
@pytest.mark.parametrize("integers", [True, False])
def test_each_update_raises_its_score_by_the_squared_norm_plus_one(integers):
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, size=(40, 3)).astype(float) if integers else rng.normal(size=(40, 3))
    y = rng.choice([-1.0, 1.0], size=40)
    steps = list(updates(X, y, epochs=4))
    assert len(steps) > 40
    for here, step in steps:
        rise = X[step.row] @ X[step.row] + 1
        if integers:  # exact in floating point
            assert step.after - step.before == rise
        scale = np.abs(X[step.row]) @ np.abs(here.w) + abs(here.b) + rise
        assert step.after - step.before == pytest.approx(rise, abs=16 * EPS * scale)
        assert step.before <= 0


@pytest.mark.spec("PER-4")
def test_it_is_stochastic_subgradient_descent_with_step_one():
    """The gradient of [-y score]_+ in (w, b) is -y (x, 1) where y score <= 0 (LOS-6), else 0."""
    X, y = noisy(60, 4, seed=3)
    signs = np.where(y > 0, 1.0, -1.0)
    padded = np.column_stack([X, np.ones(len(X))])
    loss, v = PerceptronLoss(), np.zeros(5)
    for here in islice(perceptron(X, signs), 6):
        for x, label in zip(padded, signs):
            v = v - 1.0 * loss.grad(np.array([x @ v]), np.array([label]))[0] * x
        assert_allclose(np.append(here.x.w, here.x.b), v, rtol=0, atol=1e3 * EPS * np.abs(v).max())


@pytest.mark.spec("PER-4")
def test_the_batch_variant_is_gradient_descent():
    padded = np.column_stack([SQUARE, np.ones(4)])
    loss = PerceptronLoss()

    def value(v):
        return float(np.mean(loss.phi(OR * (padded @ v))))

    def slope(v):
        return padded.T @ loss.grad(padded @ v, OR) / 4

    batch = list(batch_perceptron(SQUARE, OR))
    descent = [it.x for it in islice(gradient_descent(value, slope, np.zeros(3), 1.0), len(batch))]
    for here, v in zip(batch[1:], descent):
        assert_allclose(np.append(here.x.w, here.x.b), v, rtol=0, atol=4 * EPS)
    last = batch[-1].x
    assert last.epoch_mistakes == 0
    assert np.all(OR * (SQUARE @ last.w + last.b) > 0)


@pytest.mark.spec("PER-4")
def test_solutions_are_not_unique():
    """Any separating hyperplane has loss 0: cyclic, shuffled and batch runs end in different ones."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 20)
    X = rng.normal(size=(40, 2)) + 3 * y[:, None]
    ends = [Perceptron(tol=None, shuffle=shuffle).fit(X, y) for shuffle in (False, True)]
    *_, batch = batch_perceptron(X, y)
    planes = [np.append(model.coef_[0], model.intercept_) for model in ends]
    planes.append(np.append(batch.x.w, batch.x.b))
    assert all(np.all(y * (X @ v[:2] + v[2]) > 0) for v in planes)
    assert [model.objective_[0] for model in ends] == [0, 0]
    assert batch.value == 0
    directions = [v / np.linalg.norm(v) for v in planes]
    for one, other in ((0, 1), (1, 2), (2, 0)):
        assert np.linalg.norm(directions[one] - directions[other]) > 0.01


@pytest.mark.spec("PER-1")
def test_an_epoch_without_mistakes_ends_the_run():
    """Nothing would change any more; scikit-learn goes on for ``n_iter_no_change`` epochs."""
    ours = Perceptron(shuffle=False).fit(SQUARE, OR)
    theirs = sklearn.linear_model.Perceptron(shuffle=False).fit(SQUARE, OR)
    assert_array_equal(ours.coef_, theirs.coef_)
    assert ours.n_iter_ < theirs.n_iter_
    assert ours.t_ == ours.n_iter_ * 4 + 1
    longer = Perceptron(shuffle=False, tol=None, max_iter=5000).fit(SQUARE, OR)
    assert longer.n_iter_ == ours.n_iter_
    exact = Perceptron(shuffle=False, max_iter=ours.n_iter_).fit(SQUARE, OR)  # and no warning
    assert exact.training_mistakes_[0] == 0


# ---------------------------------------------------------------------------- as scikit-learn has it


def assert_same_fit(X, y, dtype, **parameters):
    fit_parameters = parameters.pop("fit_parameters", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = Perceptron(**parameters).fit(X.astype(dtype), y, **fit_parameters)
        theirs = sklearn.linear_model.Perceptron(**parameters)
        theirs.fit(X.astype(dtype), y, **fit_parameters)
    scale = np.abs(theirs.coef_).max()
    # rounding of a sum of as many rows as there were mistakes, in the arithmetic of scikit-learn
    rounding = np.finfo(dtype).eps * (10 + ours.mistakes_.max())
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=rounding * scale)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=rounding * scale)
    assert ours.coef_.dtype == theirs.coef_.dtype == dtype
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    assert ours.n_iter_ <= theirs.n_iter_
    assert_array_equal(ours.classes_, theirs.classes_)


@pytest.mark.spec("PER-1", "PER-5")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"shuffle": False},
        {"tol": None, "max_iter": 9, "random_state": 5},
        {"fit_intercept": False, "eta0": 0.5},
        {"penalty": "l2", "alpha": 1e-3, "tol": None, "max_iter": 9},
        {"penalty": "l1", "alpha": 1e-3, "tol": None, "max_iter": 9},
        {"penalty": "elasticnet", "alpha": 1e-3, "tol": None, "max_iter": 9},
        {"penalty": "l2", "alpha": 5.0, "tol": None, "max_iter": 3},  # the decay would be negative
        {"class_weight": "balanced"},
        {"class_weight": {0: 0.5}},
        {"early_stopping": True, "n_iter_no_change": 2},
    ],
    ids=str,
)
def test_the_fit_is_scikit_learns(classes, dtype, parameters):
    X, y = noisy(300, 8, classes=classes)
    assert_same_fit(X, y, dtype, **parameters)


@pytest.mark.spec("PER-1")
def test_the_fit_is_scikit_learns_with_weights_and_starts():
    X, y = noisy(120, 5, classes=3)
    weight = np.random.default_rng(0).uniform(0, 2, size=120) * (np.arange(120) % 7 > 0)
    assert_same_fit(X, y, np.float64, fit_parameters={"sample_weight": weight})
    start = {"coef_init": np.ones((3, 5)), "intercept_init": np.ones(3)}
    assert_same_fit(X, y, np.float64, fit_parameters=start)
    digits, labels = load_digits(return_X_y=True)
    assert_same_fit(digits, labels, np.float64)


@pytest.mark.spec("PER-1")
def test_float32_rows_give_float32_coefficients_of_a_float64_run():
    X, y = noisy(dtype=np.float32)
    single, double = Perceptron().fit(X, y), Perceptron().fit(X.astype(np.float64), y)
    assert_array_equal(single.coef_, double.coef_.astype(np.float32), strict=True)
    assert single.certificate_.ok


@pytest.mark.spec("PER-1")
@pytest.mark.parametrize("penalty", [None, "l2", "l1"])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_sparse_is_dense(penalty, indices):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30)) * (rng.uniform(size=(80, 30)) < 0.2)
    y = rng.integers(3, size=80)
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(indices), rows.indptr.astype(indices)
    parameters = {"penalty": penalty, "alpha": 1e-2, "tol": None, "max_iter": 15}
    dense = Perceptron(**parameters).fit(X, y)
    sparse = Perceptron(**parameters).fit(rows, y)
    scale = np.abs(dense.coef_).max()
    assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e4 * EPS * scale)
    assert_array_equal(sparse.intercept_, dense.intercept_)
    assert_array_equal(sparse.mistakes_, dense.mistakes_)
    assert surefit.verify(sparse, X, y).ok  # the certificate does not mind the container


@pytest.mark.spec("PER-1")
def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    twice = sp.coo_array(([1.0, 1.0, 1.0, 2.0], ([0, 0, 1, 2], [0, 0, 1, 0])), shape=(3, 2))
    once = np.array([[2.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    y = [1, -1, 1]
    a, b = Perceptron(penalty="l1").fit(twice.tocsr(), y), Perceptron(penalty="l1").fit(once, y)
    assert_allclose(a.coef_, b.coef_, rtol=1e-12)


@pytest.mark.spec("PER-5")
def test_the_l1_penalty_makes_weights_exactly_zero():
    X, y = noisy(400, 30)
    model = Perceptron(penalty="l1", alpha=0.01, eta0=0.1).fit(X, y)
    assert 0 < np.sum(model.coef_ == 0) < 30
    assert sp.issparse(model.sparsify().coef_)
    scores = model.decision_function(X)
    assert surefit.verify(model, X, y).ok  # with a sparse coef_ too
    assert_allclose(model.densify().decision_function(X), scores, rtol=0, atol=64 * EPS)


@pytest.mark.spec("PER-1")
def test_weights_of_zero_are_not_visited_as_mistakes():
    X, y = noisy(100, 4)
    keep = np.arange(100) % 2 == 0
    weighted = Perceptron(shuffle=False, tol=None, max_iter=10).fit(X, y, sample_weight=keep * 1.0)
    alone = Perceptron(shuffle=False, tol=None, max_iter=10).fit(X[keep], y[keep])
    assert_array_equal(weighted.coef_, alone.coef_)
    assert_array_equal(weighted.mistakes_, alone.mistakes_)


@pytest.mark.spec("PER-1")
def test_threads_change_nothing():
    X, y = load_digits(return_X_y=True)
    one, two = Perceptron().fit(X, y), Perceptron(n_jobs=2).fit(X, y)
    assert_array_equal(one.coef_, two.coef_)


# ---------------------------------------------------------------------------- continuing


@pytest.mark.spec("PER-1")
def test_partial_fit_makes_one_epoch_after_another():
    X, y = noisy(90, 5, classes=3)
    whole = Perceptron(shuffle=False, tol=None, max_iter=4).fit(X, y)
    parts = Perceptron(shuffle=False)
    for _ in range(4):
        parts.partial_fit(X, y, classes=np.unique(y))
    assert_array_equal(parts.coef_, whole.coef_)
    assert_array_equal(parts.mistakes_, whole.mistakes_)
    assert parts.t_ == whole.t_ == 4 * 90 + 1
    assert parts.certificate_.ok
    claim = parts.certificate_["class 0: mistake bound"]
    assert claim.status is Status.UNDECIDED
    assert "other rows" in claim.statement
    first = Perceptron().partial_fit(SQUARE, OR, classes=[-1, 1])
    assert first.cold_start_


@pytest.mark.spec("PER-1")
def test_partial_fit_errors_name_the_argument():
    with pytest.raises(ValueError, match="early_stopping should be False"):
        Perceptron(early_stopping=True).partial_fit(SQUARE, OR, classes=[-1, 1])
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        Perceptron(class_weight="balanced").partial_fit(SQUARE, OR, classes=[-1, 1])
    with pytest.raises(ValueError, match="classes"):
        Perceptron().partial_fit(SQUARE, OR)


@pytest.mark.spec("PER-1")
def test_warm_start_continues_where_the_last_fit_ended():
    X, y = noisy()
    parameters = {"shuffle": False, "tol": None}
    warm = Perceptron(max_iter=3, warm_start=True, **parameters)
    warm.fit(X, y)
    first = warm.coef_.copy()
    warm.fit(X, y)
    assert_array_equal(warm.coef_, Perceptron(max_iter=6, **parameters).fit(X, y).coef_)
    assert not warm.cold_start_
    assert not np.array_equal(first, warm.coef_)
    cold = Perceptron(max_iter=3, **parameters).fit(X, y)
    again = cold.fit(X, y).coef_
    assert_array_equal(again, first)


@pytest.mark.spec("PER-1")
def test_early_stopping_holds_rows_out():
    X, y = noisy(400, 8)
    model = Perceptron(early_stopping=True, validation_fraction=0.25, n_iter_no_change=3).fit(X, y)
    assert model.n_iter_ < 1000
    assert model.certificate_.stopped == "the validation error is no longer falling"
    weight = np.ones(400)
    other = Perceptron(early_stopping=True).fit(X, y, sample_weight=weight)
    assert_array_equal(other.coef_, Perceptron(early_stopping=True).fit(X, y).coef_)


# ---------------------------------------------------------------------------- certificate


@pytest.mark.spec("PER-7")
def test_a_fit_without_a_hyperplane_claims_nothing_false():
    X, y = noisy(classes=3)
    model = Perceptron().fit(X, y)  # warnings are errors: none is raised
    certificate = model.certificate_
    assert certificate.ok
    assert certificate["class 1: separability"].status is Status.UNDECIDED
    assert "not separated by this model" in certificate["class 1: margin"].statement
    assert certificate["class 1: training mistakes"].observed == model.training_mistakes_[1] > 0
    assert "no optimality claim" in certificate["class 1: training mistakes"].statement
    report = surefit.verify(model, X, y)
    assert report.ok
    assert report["class 1: separability"].status is Status.HOLDS


@pytest.mark.spec("PER-1")
def test_the_training_mistakes_are_counted_again():
    X, y = noisy()
    model = Perceptron().fit(X, y)
    signs = np.where(y == 1, 1, -1)
    wrong = np.sum(signs * (X @ model.coef_[0] + model.intercept_[0]) <= 0)
    assert wrong == model.training_mistakes_[0]
    model.coef_ = -model.coef_
    assert "objective_" in surefit.verify(model, X, y)["attributes"].statement
    model.objective_ = np.maximum(-signs * model.decision_function(X), 0).mean(keepdims=True)
    assert surefit.verify(model, X, y)["training mistakes"].status is Status.FAILS


@pytest.mark.spec("PER-1")
def test_certify_can_be_skipped_and_other_data_are_noticed():
    X, y = noisy()
    assert not hasattr(Perceptron(certify=False).fit(X, y), "certificate_")
    model = Perceptron().fit(X, y)
    other = surefit.verify(model, X + 1e-9, y)
    assert other["data"].status is Status.FAILS
    unseen = surefit.verify(
        model, X, np.where(y == 1, 7, y)
    )  # a label that the model does not know
    assert not unseen.ok


@pytest.mark.spec("PER-1")
def test_verify_after_balanced_weights_needs_no_class():
    X, y = noisy()
    model = Perceptron(class_weight="balanced").fit(X, y)
    assert surefit.verify(model, X, y).ok
    assert not surefit.verify(model, X[y == 1], y[y == 1]).ok


# ---------------------------------------------------------------------------- contract


@pytest.mark.spec("PER-1")
@pytest.mark.parametrize(
    "model", [Perceptron(), Perceptron(penalty="elasticnet", alpha=1e-3)], ids=str
)
def test_check_estimator(model, monkeypatch):
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)  # scipy has read it; "0" is not understood
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(model, expected_failed_checks=ORDER_MATTERS)


@pytest.mark.spec("PER-1")
def test_the_signature_is_scikit_learns():
    theirs = sklearn.linear_model.Perceptron().get_params()
    ours = Perceptron().get_params()
    assert {**theirs, "certify": True} == ours
    mine, yours = (
        Perceptron().__sklearn_tags__(),
        sklearn.linear_model.Perceptron().__sklearn_tags__(),
    )
    assert mine == yours


@pytest.mark.spec("PER-1")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Perceptron().fit(SQUARE, [1, 1, 1, 1]), "greater than one; got 1 class"),
        (lambda: Perceptron().fit(SQUARE, OR, coef_init=np.ones((2, 2))), "coef_init has shape"),
        (lambda: Perceptron().fit(SQUARE, OR, intercept_init=[1, 2]), "intercept_init has shape"),
        (lambda: Perceptron(eta0=0).fit(SQUARE, OR), "'eta0'"),
        (lambda: Perceptron(penalty="l3").fit(SQUARE, OR), "'penalty'"),
        (lambda: Perceptron(certify="half").fit(SQUARE, OR), "'certify'"),
        (lambda: Perceptron().fit(SQUARE, OR, sample_weight=[-1, 1, 1, 1]), "Negative values"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.spec("PER-1")
def test_overflow_is_an_error_with_a_remedy():
    X = np.array([[1e308, 1.0], [-1e308, 2.0], [1e308, -3.0]])
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match=r"under-/overflow occurred at epoch #1.*StandardScaler"),
    ):
        Perceptron(eta0=10.0).fit(X, [1, -1, -1])


@pytest.mark.spec("PER-1")
def test_too_few_epochs_warn():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs"):
        Perceptron(max_iter=2).fit(X, y)
    with pytest.raises(NotFittedError):
        Perceptron().predict(X)


@pytest.mark.spec("PER-1")
def test_early_stopping_needs_weight_in_the_held_out_rows():
    X, y = load_iris(return_X_y=True)
    weight = np.zeros(150)
    weight[[1, 51, 101]] = 1.0  # none of them is held out
    with pytest.raises(ValueError, match="validation set are all zero"):
        Perceptron(early_stopping=True).fit(X, y, sample_weight=weight)


@pytest.mark.spec("PER-1")
def test_numba_is_imported_only_when_a_fit_needs_it():
    code = "import sys, surefit.linear_model; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
