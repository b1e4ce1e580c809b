"""Models that choose their own penalty: the scores are right, the choice is theirs, and tampering shows."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.data import load

import surefit
import surefit.linear_model as ours
from surefit import Status
from surefit.design import as_design
from surefit.linear_model import (
    ElasticNetCV,
    LassoCV,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from surefit.solvers.leave_one_out import leave_one_out
from surefit.solvers.ridge_path import fold_paths

LOGISTIC = {"l1_ratios": (0,), "scoring": "neg_log_loss", "use_legacy_attributes": False}
TIGHT = {"tol": 1e-10, "max_iter": 100_000}


def table(n=60, p=6, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5
    Y = X @ rng.normal(size=(p, targets)) + 2.0 + rng.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y, rng.uniform(0.2, 2.0, size=n)


def ridge_by_augmentation(X, y, s, alpha, fit_intercept=True):
    """REG-13: least squares with the rows sqrt(alpha) e_j, target 0, appended."""
    root = np.sqrt(s)[:, None]
    n, p = X.shape
    A = np.hstack([X, np.ones((n, 1))]) if fit_intercept else X
    extra = np.zeros((p, A.shape[1]))
    extra[:, :p] = np.sqrt(alpha) * np.eye(p)
    b = np.concatenate([root[:, 0] * y, np.zeros(p)])
    w = np.linalg.lstsq(np.vstack([root * A, extra]), b, rcond=None)[0]
    return w[:p], w[p] if fit_intercept else 0.0


def brute_force(X, y, s, alphas, fit_intercept):
    errors = np.empty((len(y), len(alphas)))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        for k, alpha in enumerate(alphas):
            w, b = ridge_by_augmentation(X[rest], y[rest], s[rest], alpha, fit_intercept)
            errors[i, k] = y[i] - X[i] @ w - b
    return errors


# ---------------------------------------------------------------------------- leave-one-out


@pytest.mark.spec("GEN-7")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(30, 4), (30, 20), (12, 25), (21, 20), (9, 8)])
def test_leave_one_out_is_leaving_one_out(shape, weighted, fit_intercept):
    X, y, s = table(*shape)
    s = s if weighted else np.ones(len(y))
    alphas = np.array([1e-3, 0.1, 10.0])
    expected = brute_force(X, y, s, alphas, fit_intercept)
    for form in (X, sp.csr_array(X)):
        for svd in (False, True):
            found = leave_one_out(
                as_design(form), y[:, None], s, alphas, fit_intercept=fit_intercept, svd=svd
            )
            np.testing.assert_allclose(found.errors[:, 0], expected, rtol=1e-9, atol=1e-10)
            coef, intercept = found.solve(alphas[:1])
            w, b = ridge_by_augmentation(X, y, s, alphas[0], fit_intercept)
            np.testing.assert_allclose(coef[:, 0], w, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(intercept[0], b, rtol=1e-8, atol=1e-10)
    model = RidgeCV(alphas, fit_intercept=fit_intercept, store_cv_results=True, certify="full")
    model.fit(X, y, sample_weight=s)
    np.testing.assert_allclose(model.cv_results_, s[:, None] * expected**2, rtol=1e-8, atol=1e-12)
    best = int(np.argmin((s[:, None] * expected**2).mean(axis=0)))
    assert model.alpha_ == alphas[best]
    assert model.certificate_["scores"].status is Status.HOLDS
    assert model.certificate_["left-out rows"].status is Status.HOLDS


@pytest.mark.spec("GEN-7")
def test_the_identity_in_the_notes_form():
    """Ridge leave-one-out at a fixed penalty equals mean[(e_n / (1 - h_nn))^2]."""
    X, y = load("diabetes")
    alpha = 3.0
    model = RidgeCV([alpha], fit_intercept=False).fit(X, y)
    e = y - X @ model.coef_
    h = np.einsum("ij,ji->i", X, np.linalg.solve(X.T @ X + alpha * np.eye(10), X.T))
    np.testing.assert_allclose(-model.best_score_, np.mean((e / (1 - h)) ** 2), rtol=1e-12)


def test_a_row_that_a_column_belongs_to():
    """Its leverage is 1 - alpha: 1 - h would keep 6 digits at most, a fit without the row keeps them all."""
    X, y, s = table(40, 5)
    X = np.hstack([X, np.zeros((40, 1))])
    X[7, 5] = 1.0
    alphas = np.array([1e-9, 1e-7])
    expected = brute_force(X, y, s, alphas, True)
    errors = leave_one_out(as_design(X), y[:, None], s, alphas, fit_intercept=True).errors[:, 0]
    np.testing.assert_allclose(errors, expected, rtol=1e-8)


def test_ill_conditioned_columns_go_through_the_singular_values():
    X, y, _ = table(60, 6)
    X = X * 10.0 ** np.arange(-4, 8, 2)  # the squares span 20 orders of magnitude
    alphas = np.array([1e-8, 1e-4])
    expected = brute_force(X, y, np.ones(60), alphas, True)
    found = leave_one_out(as_design(X), y[:, None], np.ones(60), alphas, fit_intercept=True)
    np.testing.assert_allclose(found.errors[:, 0], expected, rtol=1e-6, atol=1e-6)


def test_rows_without_weight_are_as_good_as_dropped():
    X, y, s = table()
    s[::7] = 0.0
    kept = s > 0
    alphas = [0.01, 1.0, 100.0]
    options = {"scoring": "neg_mean_squared_error", "store_cv_results": True}
    whole = RidgeCV(alphas, **options).fit(X, y, sample_weight=s)
    part = RidgeCV(alphas, **options).fit(X[kept], y[kept], sample_weight=s[kept])
    assert whole.alpha_ == part.alpha_
    np.testing.assert_allclose(whole.coef_, part.coef_, rtol=1e-12)
    np.testing.assert_allclose(whole.best_score_, part.best_score_, rtol=1e-12)
    np.testing.assert_allclose(whole.cv_results_[kept], part.cv_results_, rtol=1e-10)
    # the rows that were never in are predicted, not divided by their weight
    k = alphas.index(whole.alpha_)
    np.testing.assert_allclose(whole.cv_results_[~kept, k], whole.predict(X[~kept]), rtol=1e-10)
    assert surefit.verify(whole, X, y, sample_weight=s).ok


def test_an_alpha_for_each_target():
    X, Y, s = table(40, 5, targets=3)
    Y[:, 1] = np.random.default_rng(1).normal(size=40)  # noise wants a large penalty
    alphas = [0.01, 1.0, 100.0, 1e4]
    together = RidgeCV(alphas, alpha_per_target=True, certify="full").fit(X, Y, sample_weight=s)
    alone = [RidgeCV(alphas).fit(X, y, sample_weight=s) for y in Y.T]
    np.testing.assert_array_equal(together.alpha_, [m.alpha_ for m in alone])
    np.testing.assert_allclose(together.best_score_, [m.best_score_ for m in alone], rtol=1e-12)
    np.testing.assert_allclose(together.coef_, [m.coef_ for m in alone], rtol=1e-9, atol=1e-12)
    assert len(set(together.alpha_)) > 1
    assert together.certificate_.ok
    tampered = copy.deepcopy(together)
    tampered.alpha_ = np.roll(together.alpha_, 1)
    assert surefit.verify(tampered, X, Y, sample_weight=s)["selection"].status is Status.FAILS


# ---------------------------------------------------------------------------- folds of a ridge


@pytest.mark.spec("GEN-7")
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("shape", [(60, 6), (24, 40)])
def test_folds_by_downdating_are_fits_of_their_own(shape, offset):
    X, y, s = table(*shape)
    X, alphas = X + offset, np.array([0.05, 5.0])
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    overlapping = list(ShuffleSplit(3, test_size=0.3, train_size=0.4, random_state=0).split(X))
    for cut in (folds, overlapping):
        paths = fold_paths(X, y[:, None], s, cut, alphas, fit_intercept=True)
        for (train, test), (coef, intercept) in zip(cut, paths, strict=True):
            for k, alpha in enumerate(alphas):
                shifted = X[train] - offset  # the same problem, without the offset
                w, b = ridge_by_augmentation(shifted, y[train], s[train], alpha)
                np.testing.assert_allclose(coef[k, :, 0], w, rtol=1e-6, atol=1e-8)
                np.testing.assert_allclose(
                    X[test] @ coef[k, :, 0] + intercept[k, 0],
                    (X[test] - offset) @ w + b,
                    rtol=1e-6,
                    atol=1e-7,
                )


def test_a_column_that_only_one_fold_has():
    """On the training rows it is constant: what the subtraction leaves of it must not get a coefficient."""
    X, y, s = table(40, 3)
    X = np.hstack([X, np.zeros((40, 1))])
    X[:10, 3] = 1e5 * np.random.default_rng(0).normal(size=10)
    folds = [(np.arange(10, 40), np.arange(10)), (np.arange(30), np.arange(30, 40))]
    [(coef, _), _] = fold_paths(X, y[:, None], s, folds, np.array([1e-4]), fit_intercept=True)
    assert abs(coef[0, 3, 0]) < 1e-12
    w, _ = ridge_by_augmentation(X[10:, :3], y[10:], s[10:], 1e-4)
    np.testing.assert_allclose(coef[0, :3, 0], w, rtol=1e-9)


@pytest.mark.parametrize("name", ["diabetes", "concrete", "california_housing"])
def test_ridge_agrees_with_a_grid_search_on_real_data(name):
    X, y = load(name)
    X, y = X[:2000], y[:2000]
    alphas = np.logspace(-3, 3, 7)
    for cv in (5, KFold(3, shuffle=True, random_state=0)):
        search = GridSearchCV(theirs.Ridge(), {"alpha": alphas}, cv=cv).fit(X, y)
        model = RidgeCV(alphas, cv=cv, certify="full").fit(X, y)
        assert model.alpha_ == search.best_params_["alpha"]
        np.testing.assert_allclose(model.best_score_, search.best_score_, rtol=1e-9)
        averages = search.cv_results_["mean_test_score"]
        np.testing.assert_allclose(model.cv_scores_.mean(axis=1), averages, rtol=1e-8)
        np.testing.assert_allclose(model.coef_, search.best_estimator_.coef_, rtol=1e-7)
        assert model.certificate_.ok
        assert model.certificate_["scores"].status is Status.HOLDS


# ---------------------------------------------------------------------------- agreement with scikit-learn

REGRESSORS = [
    ("RidgeCV", {"alphas": np.logspace(-3, 2, 6)}, 1),
    ("RidgeCV", {"alphas": np.logspace(-3, 2, 6), "scoring": "neg_mean_absolute_error"}, 1),
    ("RidgeCV", {"alphas": np.logspace(-3, 2, 6), "cv": 4}, 2),
    ("RidgeCV", {"alphas": [0, 1, 10], "cv": 4, "fit_intercept": False}, 1),
    ("LassoCV", {"alphas": 20, "cv": 4}, 1),
    ("LassoCV", {"alphas": [0.01, 0.1, 1.0], "cv": 3, "positive": True}, 1),
    ("LassoCV", {"alphas": 8, "cv": ShuffleSplit(4, random_state=0), "fit_intercept": False}, 1),
    ("ElasticNetCV", {"alphas": 8, "l1_ratio": [0.2, 0.9], "cv": 3}, 1),
    ("ElasticNetCV", {"alphas": [0.01, 0.1], "l1_ratio": [0, 0.5], "cv": 3}, 1),
    ("MultiTaskLassoCV", {"alphas": 8, "cv": 3}, 2),
    ("MultiTaskElasticNetCV", {"alphas": 6, "l1_ratio": [0.3, 0.8], "cv": 3}, 2),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "options", "targets"), REGRESSORS)
def test_regressors_agree_with_scikit_learn(name, options, targets, weighted):
    X, y = load("diabetes")
    Y = y if targets == 1 else np.column_stack([y, np.abs(y) ** 1.3 + 10 * X[:, 2]])
    s = np.random.default_rng(0).uniform(0.1, 2.0, size=len(y)) if weighted else None
    tight = {} if name == "RidgeCV" else {"tol": 1e-10, "max_iter": 100_000}
    mine = getattr(ours, name)(**options, **tight, certify="full").fit(X, Y, sample_weight=s)
    model = getattr(theirs, name)(**options, **tight).fit(X, Y, sample_weight=s)
    np.testing.assert_allclose(mine.alpha_, model.alpha_, rtol=1e-12)
    np.testing.assert_allclose(mine.coef_, model.coef_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mine.intercept_, model.intercept_, rtol=1e-6)
    for attribute in ("best_score_", "l1_ratio_", "alphas_", "mse_path_", "dual_gap_"):
        assert hasattr(mine, attribute) == hasattr(model, attribute)
    for attribute in ("best_score_", "l1_ratio_"):
        if hasattr(model, attribute):
            theirs_ = getattr(model, attribute)
            np.testing.assert_allclose(getattr(mine, attribute), theirs_, rtol=1e-9)
    if hasattr(model, "mse_path_"):
        np.testing.assert_allclose(mine.alphas_, model.alphas_, rtol=1e-12)
        np.testing.assert_allclose(mine.mse_path_, model.mse_path_, rtol=1e-5)
    assert mine.certificate_.ok
    assert all(claim.status is Status.HOLDS for claim in mine.certificate_.claims)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["breast_cancer", "iris"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cv": 4},
        {"cv": StratifiedKFold(3), "scoring": "f1_macro", "class_weight": {1: 2.0}},
        {"fit_intercept": False, "store_cv_results": True},
    ],
    ids=str,
)
def test_ridge_classifiers_agree_with_scikit_learn(name, options, weighted):
    X, y = load(name)
    s = np.random.default_rng(0).uniform(0.1, 2.0, size=len(y)) if weighted else None
    alphas = np.logspace(-2, 3, 6)
    mine = RidgeClassifierCV(alphas, **options, certify="full").fit(X, y, sample_weight=s)
    model = theirs.RidgeClassifierCV(alphas, **options).fit(X, y, sample_weight=s)
    assert mine.alpha_ == model.alpha_
    np.testing.assert_allclose(mine.best_score_, model.best_score_, rtol=1e-9)
    np.testing.assert_allclose(mine.coef_, model.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(mine.intercept_, model.intercept_, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(mine.predict(X), model.predict(X))
    if "store_cv_results" in options:
        np.testing.assert_allclose(mine.cv_results_, model.cv_results_, rtol=1e-6, atol=1e-12)
    assert mine.certificate_.ok
    options = {k: v for k, v in options.items() if k in ("class_weight", "fit_intercept")}
    plain = RidgeClassifier(float(mine.alpha_), **options).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(plain.coef_, mine.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["breast_cancer", "iris"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"refit": False},
        {"use_legacy_attributes": True, "fit_intercept": False},
        {"l1_ratios": (0.0, 0.5), "solver": "saga", "Cs": [0.1, 1.0]},
        {"scoring": None, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_logistic_agrees_with_scikit_learn(name, options, weighted):
    X, y = load(name)
    X = X[:, :6]
    s = np.random.default_rng(0).uniform(0.1, 2.0, size=len(y)) if weighted else None
    options = {"Cs": [0.01, 0.1, 1.0], "cv": 3, **LOGISTIC, **options}
    mine = LogisticRegressionCV(**options, certify="full").fit(X, y, sample_weight=s)
    model = theirs.LogisticRegressionCV(**options, tol=1e-7, max_iter=20_000)
    model.fit(X, y, sample_weight=s)
    np.testing.assert_allclose(mine.C_, model.C_, rtol=1e-12)
    np.testing.assert_allclose(mine.l1_ratio_, model.l1_ratio_)
    np.testing.assert_allclose(mine.coef_, model.coef_, rtol=1e-2, atol=2e-3)
    assert mine.n_iter_.shape == model.n_iter_.shape
    pairs = [(mine.scores_, model.scores_), (mine.coefs_paths_, model.coefs_paths_)]
    for own, other in pairs:
        if isinstance(other, dict):
            assert list(own) == list(other)
            own, other = np.array(list(own.values())), np.array(list(other.values()))
        assert own.shape == other.shape
        np.testing.assert_allclose(own, other, rtol=2e-2, atol=5e-3)
    assert mine.certificate_.ok
    assert mine.certificate_["scores"].status is Status.HOLDS
    assert mine.certificate_["fold models"].status is Status.HOLDS
    assert mine.score(X, y) == pytest.approx(model.score(X, y), rel=1e-2)


def test_binary_leave_one_out_accuracy_is_the_accuracy():
    """scikit-learn compares column numbers here, finds all of them equal, and takes the first alpha."""
    X, y = load("breast_cancer")
    alphas = [1e-3, 1.0, 1e4]
    model = RidgeClassifierCV(alphas, scoring="accuracy", store_cv_results=True, certify="full")
    model.fit(X, y)
    labels = (model.cv_results_[:, 0] > 0).astype(int)
    expected = [accuracy_score(y, column) for column in labels.T]
    np.testing.assert_allclose(model.cv_scores_, expected)
    assert model.alpha_ == alphas[int(np.argmax(expected))]
    assert 0.9 < model.best_score_ < 1.0
    assert model.certificate_.ok


def test_several_labels_a_row():
    X, Y = make_multilabel_classification(n_classes=3, random_state=0)
    for make in (RidgeClassifier, RidgeClassifierCV):
        mine, model = make().fit(X, Y), getattr(theirs, make.__name__)().fit(X, Y)
        np.testing.assert_array_equal(mine.predict(X), model.predict(X))
        assert surefit.verify(mine, X, Y).ok


# ---------------------------------------------------------------------------- ties, weights, inputs


def constant_score(y, prediction, **_):
    return 0.42


def test_of_equal_scores_the_first():
    X, y, _ = table()
    labels = (y > y.mean()).astype(int)
    scorer = make_scorer(constant_score)
    for cv in (None, 3):
        model = RidgeCV([7.0, 1.0, 3.0], scoring=scorer, cv=cv).fit(X, y)
        assert (model.alpha_, model.best_score_) == (7.0, pytest.approx(0.42))
        assert model.certificate_["selection"].status is Status.HOLDS
    logistic = LogisticRegressionCV(
        Cs=[3.0, 1.0], l1_ratios=(0.5, 0.0), scoring=scorer, use_legacy_attributes=False
    ).fit(X, labels)
    assert (logistic.C_, logistic.l1_ratio_) == (3.0, 0.5)
    # a target that no feature explains: all errors are equal along the path, the largest penalty wins
    lasso = LassoCV(alphas=5, cv=3).fit(X, np.ones(len(y)))
    assert lasso.alpha_ == lasso.alphas_[0]
    np.testing.assert_array_equal(lasso.coef_, 0.0)


ALL = [
    (RidgeCV([0.1, 1.0, 10.0]), "values"),
    (LassoCV(alphas=6, **TIGHT), "values"),
    (ElasticNetCV(alphas=4, l1_ratio=[0.2, 0.7], **TIGHT), "values"),
    (MultiTaskElasticNetCV(alphas=4, **TIGHT), "two values"),
    (MultiTaskLassoCV(alphas=4, **TIGHT), "two values"),
    (RidgeClassifierCV([0.1, 1.0, 10.0], scoring="accuracy"), "three classes"),
    (LogisticRegressionCV(Cs=3, tol=1e-10, **LOGISTIC), "two classes"),
    (LogisticRegressionCV(Cs=3, tol=1e-10, **LOGISTIC), "three classes"),
]


def targets(X, kind):
    rng = np.random.default_rng(1)
    signal = X[:, 0] - X[:, 1] + rng.normal(size=len(X))
    if kind == "values":
        return signal
    if kind == "two values":
        return np.column_stack([signal, X[:, 2] + rng.normal(size=len(X))])
    return np.digitize(signal, [0.0] if kind == "two classes" else [-0.7, 0.7])


@pytest.mark.parametrize(("model", "kind"), ALL, ids=str)
def test_weights_are_repetitions_within_the_folds(model, kind):
    X, _, _ = table(36, 4)
    y = targets(X, kind)
    counts = np.random.default_rng(2).integers(0, 4, size=len(X))
    fold = np.arange(len(X)) % 3
    repeated = np.repeat(np.arange(len(X)), counts)

    def cut(number):
        return [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(3)]

    weighted = clone(model).set_params(cv=cut(fold)).fit(X, y, sample_weight=counts)
    copied = clone(model).set_params(cv=cut(fold[repeated])).fit(X[repeated], y[repeated])
    for name in ("alpha_", "C_", "l1_ratio_", "best_score_"):
        if hasattr(copied, name):
            np.testing.assert_allclose(getattr(weighted, name), getattr(copied, name), rtol=1e-7)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-5, atol=1e-6)
    for name in ("mse_path_", "cv_scores_", "scores_"):
        if hasattr(copied, name):
            mine, other = getattr(weighted, name), getattr(copied, name)
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)
    assert surefit.verify(weighted, X, y, sample_weight=counts).ok


@pytest.mark.parametrize(("model", "kind"), ALL, ids=str)
def test_sparse_is_dense_and_float32_is_close(model, kind):
    X, _, _ = table(45, 4)
    X[X < 0.3] = 0.0
    y = targets(X, kind)
    dense = clone(model).set_params(cv=3).fit(X, y)
    explicit = sp.csr_array(X)
    explicit.data[:3] = 0.0  # stored zeros
    same = X.copy()
    same[explicit.toarray() == 0] = 0.0
    wide = sp.csc_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for form in (sp.csr_array(X), sp.csc_matrix(X), wide):
        sparse = clone(model).set_params(cv=3).fit(form, y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5, atol=1e-6)
        assert surefit.verify(sparse, form, y).ok
    np.testing.assert_allclose(
        clone(model).set_params(cv=3).fit(explicit, y).coef_,
        clone(model).set_params(cv=3).fit(same, y).coef_,
        rtol=1e-5,
        atol=1e-6,
    )
    single = clone(model).set_params(cv=3).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, dense.coef_, rtol=1e-3, atol=1e-4)
    wanted = np.float64 if isinstance(model, LogisticRegressionCV) else np.float32
    assert single.coef_.dtype == wanted
    assert surefit.verify(single, X.astype(np.float32), y).ok


@pytest.mark.parametrize(("model", "kind"), ALL, ids=str)
def test_clone_pickle_save_and_search(model, kind, tmp_path):
    X, _, _ = table(45, 4)
    y = targets(X, kind)
    fitted = clone(model).set_params(cv=3).fit(X, y)
    surefit.save(fitted, tmp_path / "model.surefit")
    for again in (
        clone(fitted).fit(X, y),
        pickle.loads(pickle.dumps(fitted)),
        surefit.load(tmp_path / "model.surefit"),
    ):
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        assert surefit.verify(again, X, y).ok
        assert again.certificate_ == fitted.certificate_
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(model).set_params(cv=3)),
        {f"{type(model).__name__.lower()}__fit_intercept": [True, False]},
        cv=3,
    ).fit(X, y)
    assert search.best_estimator_[-1].certificate_.ok


# ---------------------------------------------------------------------------- certificates


def test_what_is_said_and_what_is_not():
    X, y, _ = table()
    model = LassoCV(alphas=5, cv=3).fit(X, y)
    words = model.certificate_["selection"].statement
    assert "best recorded error of 5 candidates" in words
    assert "not an estimate of the error of this model with a guarantee" in words
    assert not any(claim.kind is surefit.Kind.STATISTICAL for claim in model.certificate_.claims)
    for name in ("fold models", "scores"):  # at fit time
        assert model.certificate_[name].status is Status.UNDECIDED
    full = surefit.verify(model, X, y)
    assert all(claim.status is Status.HOLDS for claim in full.claims)
    assert not hasattr(LassoCV(alphas=5, certify=False).fit(X, y), "certificate_")


def other_candidate(model):
    """A candidate of the grid that was not chosen."""
    if hasattr(model, "C_"):
        model.C_ = next(float(C) for C in model.Cs_ if C != model.C_)
    else:
        alphas = np.ravel(getattr(model, "alphas_", model.alphas))
        model.alpha_ = next(float(a) for a in alphas if a != model.alpha_)


def off_the_grid(model):
    name = "C_" if hasattr(model, "C_") else "alpha_"
    setattr(model, name, 1.0001 * getattr(model, name))


def worse_score(model):
    """The recorded scores of the choice, a little better than they are."""
    if hasattr(model, "mse_path_"):
        averages = model.mse_path_.mean(axis=-1)
        model.mse_path_ = model.mse_path_.copy()
        model.mse_path_[np.unravel_index(averages.argmin(), averages.shape)] *= 0.999
    elif hasattr(model, "scores_"):
        model.scores_ = model.scores_ + 1e-3 * np.abs(model.scores_)
    else:
        model.cv_scores_ = model.cv_scores_ + 1e-3 * np.abs(model.cv_scores_)
        model.best_score_ = model.best_score_ + 1e-3 * np.abs(model.best_score_)


def swapped_scores(model):
    """The scores of two candidates change places."""
    if hasattr(model, "mse_path_"):
        model.mse_path_ = np.flip(model.mse_path_, axis=-2).copy()
    elif hasattr(model, "scores_"):
        model.scores_ = model.scores_[..., ::-1].copy()
    else:
        model.cv_scores_ = model.cv_scores_[::-1].copy()


def best_score(model):
    model.best_score_ = model.best_score_ + 1e-6


def fold_models(model):
    if hasattr(model, "fold_coef_"):
        model.fold_coef_ = 1.01 * model.fold_coef_
    else:
        model.coefs_paths_ = 1.01 * model.coefs_paths_


def coefficients(model):
    model.coef_ = 1.001 * model.coef_


def folds(model):
    model.folds_ = np.roll(model.folds_, 5)


RIDGES = [(RidgeCV([0.1, 1.0, 10.0], cv=3), "values"), (RidgeClassifierCV(cv=3), "two classes")]
TAMPERED = [
    pytest.param(model, kind, tamper, id=f"{type(model).__name__}-{kind}-{tamper.__name__}")
    for tamper in (other_candidate, off_the_grid, worse_score, swapped_scores, coefficients)
    for model, kind in [*ALL, *RIDGES]
]
TAMPERED += [pytest.param(*case, best_score) for case in [*RIDGES, *ALL[:1], *ALL[5:6]]]
TAMPERED += [pytest.param(*case, fold_models) for case in [*ALL[1:5], *ALL[6:]]]
TAMPERED += [pytest.param(*case, folds) for case in [*RIDGES, *ALL[1:5], *ALL[6:]]]


@pytest.mark.parametrize(("model", "kind", "tamper"), TAMPERED)
def test_tampering_is_noticed(model, kind, tamper):
    X, _, _ = table(45, 4)
    y = targets(X, kind)
    model = clone(model)
    if not isinstance(model, RidgeCV | RidgeClassifierCV):
        model.set_params(cv=3, tol=1e-8)
    model.fit(X, y)
    assert surefit.verify(model, X, y, tol=1e-7).ok
    tampered = copy.deepcopy(model)
    tamper(tampered)
    assert not surefit.verify(tampered, X, y, tol=1e-7).ok


def test_stored_results_and_single_rows_are_checked():
    X, y, s = table()
    model = RidgeCV(store_cv_results=True).fit(X, y, sample_weight=s)
    tampered = copy.deepcopy(model)
    tampered.cv_results_[3, 1] *= 1.0 + 1e-6
    report = surefit.verify(tampered, X, y, sample_weight=s)
    assert report["cv_results"].status is Status.FAILS
    assert report["scores"].status is Status.HOLDS


def test_an_average_over_folds_claims_no_optimum():
    X, _, _ = table(45, 4)
    y = targets(X, "three classes")
    model = LogisticRegressionCV(Cs=3, refit=False, **LOGISTIC).fit(X, y)
    assert "duality gap" not in model.certificate_
    assert "no optimality claim" in model.certificate_["average"].statement
    assert surefit.verify(model, X, y).ok
    model.intercept_ = model.intercept_ + 1e-6
    assert surefit.verify(model, X, y)["average"].status is Status.FAILS


def test_the_folds_of_a_generator_are_remembered():
    """It is empty after the fit; verify has the folds all the same."""
    X, y, _ = table()
    model = LassoCV(alphas=4, cv=(pair for pair in ShuffleSplit(3, random_state=0).split(X))).fit(
        X, y
    )
    assert isinstance(model.folds_, list)
    assert surefit.verify(model, X, y).ok
    plain = LassoCV(alphas=4, cv=GroupKFold(3).split(X, y, np.arange(len(y)) // 7)).fit(X, y)
    assert plain.folds_.shape == (len(y),)
    assert plain.folds_.dtype == np.uint8
    assert surefit.verify(plain, X, y).ok


def test_fits_that_do_not_finish_warn():
    X, y, _ = table(40, 30)
    with pytest.warns(ConvergenceWarning, match="of the 40 fits to the folds ended"):
        LassoCV(alphas=10, cv=4, max_iter=1, tol=1e-12, certify=False).fit(X, y)
    labels = (y > y.mean()).astype(int)
    with pytest.warns(ConvergenceWarning, match="of the 9 fits to the folds ended"):
        LogisticRegressionCV(Cs=3, cv=3, max_iter=1, certify=False, **LOGISTIC).fit(X, labels)


def test_a_scorer_s_metadata_that_verify_lacks():
    X, y, _ = table()

    def score(y_true, y_pred, *, discount):
        return -discount * np.mean((y_true - y_pred) ** 2)

    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(score).set_score_request(discount=True)
        model = RidgeCV(scoring=scorer, cv=3).fit(X, y, discount=2.0)
    assert model.scored_with_ == ("discount",)
    report = surefit.verify(model, X, y)
    assert report.ok
    assert report["scores"].status is Status.UNDECIDED
    assert "discount" in report["scores"].statement


# ---------------------------------------------------------------------------- interface


@pytest.mark.parametrize(
    ("model", "kind"), [case for case in ALL if case[0].get_params().get("cv") is None]
)
def test_groups_reach_the_splitter(model, kind):
    X, _, _ = table(45, 4)
    y = targets(X, kind)
    groups = np.arange(45) // 5
    with config_context(enable_metadata_routing=True):
        fitted = clone(model).set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
    for k in range(3):
        inside = set(groups[fitted.folds_ == k])
        assert not inside & set(groups[fitted.folds_ != k])
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        clone(model).fit(X, y, groups=groups)


def test_jobs_change_nothing():
    X, y, _ = table()
    one, two = (LassoCV(alphas=5, cv=3, n_jobs=jobs).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.mse_path_, two.mse_path_)
    labels = (y > y.mean()).astype(int)
    one, two = (
        LogisticRegressionCV(Cs=3, n_jobs=jobs, **LOGISTIC).fit(X, labels) for jobs in (None, 2)
    )
    np.testing.assert_allclose(one.coefs_paths_, two.coefs_paths_, rtol=1e-9)


def test_the_old_and_the_new_attributes_hold_the_same():
    X, _, _ = table(45, 4)
    y = targets(X, "three classes")
    options = {**LOGISTIC, "Cs": [0.1, 1.0], "l1_ratios": (0, 0.5), "cv": 3}
    new = LogisticRegressionCV(**options).fit(X, y)
    old = LogisticRegressionCV(**{**options, "use_legacy_attributes": True}).fit(X, y)
    assert old.C_.tolist() == [new.C_] * 3
    for k, label in enumerate(old.classes_):
        np.testing.assert_array_equal(old.scores_[label], new.scores_.swapaxes(1, 2))
        np.testing.assert_array_equal(
            old.coefs_paths_[label], new.coefs_paths_[:, :, :, k].swapaxes(1, 2)
        )
    for model in (old, new):
        assert surefit.verify(model, X, y).ok
    old.scores_[old.classes_[1]] = old.scores_[old.classes_[1]] + 1.0
    assert not surefit.verify(old, X, y).ok


def test_a_fold_without_a_class():
    """Its model knows all classes; the one that it has not seen becomes as unlikely as tol asks."""
    X, _, _ = table(45, 4)
    y = np.sort(targets(X, "three classes"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegressionCV(
            Cs=[0.1, 1.0], cv=KFold(3), l1_ratios=(0,), scoring="neg_log_loss",
            use_legacy_attributes=False,
        ).fit(X, y)  # fmt: skip
    assert model.coefs_paths_.shape == (3, 1, 2, 3, 5)
    assert np.isfinite(model.scores_).all()


def test_no_penalty_is_a_candidate_too():
    X, _, _ = table(60, 3)
    y = targets(X, "two classes")
    model = LogisticRegressionCV(Cs=[1e-4, np.inf], **LOGISTIC).fit(X, y)
    assert np.isinf(model.C_)
    expected = theirs.LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)
    assert surefit.verify(model, X, y).ok


def test_multi_task_fits_agree_with_scikit_learn():
    X, Y = make_regression(80, 30, n_informative=5, n_targets=3, noise=5.0, random_state=0)
    X = X + 1.0
    s = np.random.default_rng(0).uniform(0.1, 2.0, size=80)
    for make, options in (
        (MultiTaskElasticNet, {"alpha": 3.0, "l1_ratio": 0.7}),
        (MultiTaskElasticNet, {"alpha": 0.5, "l1_ratio": 0.0}),
        (MultiTaskLasso, {"alpha": 2.0, "fit_intercept": False}),
    ):
        tight = {**options, "tol": 1e-12, "max_iter": 100_000}
        mine = make(**tight).fit(X, Y, sample_weight=s)
        model = getattr(theirs, make.__name__)(**tight).fit(X, Y, sample_weight=s)
        np.testing.assert_allclose(mine.coef_, model.coef_, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mine.intercept_, model.intercept_, rtol=1e-6, atol=1e-9)
        assert surefit.verify(mine, X, Y, sample_weight=s).ok
        # a feature is in use for all targets or for none
        used = mine.coef_ != 0
        assert (used.all(axis=0) | ~used.any(axis=0)).all()


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (RidgeCV([1.0, -1.0]), "values", r"alphas\[1\] == -1.0, must be > 0.0"),
        (RidgeCV([0.0]), "values", r"alphas == 0.0, must be > 0.0"),
        (RidgeCV([0.0, -1.0], cv=3), "values", r"alphas\[1\] == -1.0, must be >= 0.0"),
        (RidgeCV([]), "values", "alphas is empty"),
        (RidgeCV([1.0, np.inf]), "values", "alphas must be finite"),
        (RidgeCV(cv=3, store_cv_results=True), "values", "cv!=None and store_cv_results=True"),
        (RidgeCV(cv=3, alpha_per_target=True), "values", "cv!=None and alpha_per_target=True"),
        (LassoCV(alphas=[0.1, -1.0]), "values", r"alphas\[1\] == -1.0, must be >= 0.0"),
        (LassoCV(), "two values", "For multi-task outputs, use MultiTaskLassoCV"),
        (MultiTaskLassoCV(), "values", "For mono-task outputs, use LassoCV"),
        (MultiTaskElasticNet(), "values", "For mono-task outputs, use ElasticNet"),
        (ElasticNetCV(l1_ratio=[0.5, 1.5]), "values", r"l1_ratio must hold numbers in \[0, 1\]"),
        (ElasticNetCV(l1_ratio=0), "values", "Automatic alpha grid generation is not supported"),
        (LogisticRegressionCV(Cs=[1.0, -1.0], **LOGISTIC), "two classes", "Cs must be an integer"),
        (
            LogisticRegressionCV(**{**LOGISTIC, "l1_ratios": (0.5, 2.0)}),
            "two classes",
            "l1_ratios must be an array-like of numbers between 0 and 1",
        ),
        (
            LogisticRegressionCV(class_weight={7: 1.0}, **LOGISTIC),
            "two classes",
            "class_weight dict must have the class labels as keys",
        ),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(model, y, message):
    X, _, _ = table(30, 3)
    with pytest.raises(ValueError, match=message):
        model.fit(X, targets(X, y))


@pytest.mark.parametrize(("model", "kind"), ALL, ids=str)
def test_broken_data_are_refused(model, kind):
    X, _, _ = table(30, 4)
    y = targets(X, kind)
    for value, message in ((np.nan, "contains NaN"), (np.inf, "infinity"), (1e200, "overflow")):
        broken = X.copy()
        broken[3, 2] = value
        with pytest.raises(ValueError, match=message):
            clone(model).fit(broken, y)
    with pytest.raises(ValueError, match="Negative values"):
        clone(model).fit(X, y, sample_weight=-np.ones(30))


def test_one_row_cannot_be_left_out():
    with pytest.raises(ValueError, match="at least 2 rows of positive weight"):
        RidgeCV().fit([[1.0], [2.0]], [1.0, 2.0], sample_weight=[1.0, 0.0])


def test_a_scorer_that_fails_scores_nan():
    X, y, _ = table()

    def fails(y_true, y_pred):
        if y_true[0] == y[0]:
            raise RuntimeError("no score here")
        return -float(np.mean((y_true - y_pred) ** 2))

    with pytest.warns(UserWarning, match="Scoring failed"):
        model = RidgeCV([1.0, 2.0], cv=3, scoring=make_scorer(fails)).fit(X, y)
    assert np.isnan(model.cv_scores_[:, 0]).all()
    assert np.isnan(model.best_score_)
    assert model.alpha_ == 1.0
