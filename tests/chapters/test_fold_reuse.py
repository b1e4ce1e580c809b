"""Fits that share their work give the scores of separate fits: all of cv_results_, for every family."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from surefit.kernel_ridge import KernelRidge
from surefit.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from surefit.model_selection import GridSearchCV
from surefit.model_selection._reuse import Scored, fold_plan
from surefit.neighbors import KNeighborsClassifier, KNeighborsRegressor
from surefit.svm import SVC, LinearSVC

# Both ways solve to a relative gap of 1e-12 or to rounding, so predictions agree to about its root; labels
# agree on these rows, none of which lies that near to a boundary.
CLOSE = 2e-6
ALPHAS = [0.03, 0.5, 4.0, 60.0]
CS = [0.02, 0.3, 2.0, 30.0]
REGRESSORS: list[tuple[str, Any, dict[str, list[Any]]]] = [
    ("ridge", Ridge(), {"alpha": ALPHAS}),
    ("ridge with and without intercept", Ridge(), {"alpha": ALPHAS, "fit_intercept": [True, False]}),
    ("least squares", LinearRegression(), {"fit_intercept": [True, False]}),
    ("lasso", Lasso(tol=1e-12), {"alpha": [0.01, 0.1, 0.4]}),
    ("elastic net", ElasticNet(tol=1e-12), {"alpha": [0.4, 0.01, 0.1], "l1_ratio": [0.2, 0.9]}),
    ("non-negative lasso", Lasso(tol=1e-12, positive=True), {"alpha": [0.01, 0.1, 0.4]}),
    ("pipeline", make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": ALPHAS}),
    ("kernel ridge", KernelRidge(kernel="rbf"), {"alpha": [0.1, 1.0, 3.0], "gamma": [0.1, None]}),
    ("kernel ridge, many", KernelRidge(kernel="poly", degree=2), {"alpha": np.logspace(-1, 2, 16).tolist()}),
    ("mean of neighbours", KNeighborsRegressor(),
     {"n_neighbors": [1, 2, 5, 9], "weights": ["uniform", "distance"]}),
]  # fmt: skip
CLASSIFIERS: list[tuple[str, Any, dict[str, list[Any]]]] = [
    ("ridge classifier", RidgeClassifier(), {"alpha": ALPHAS}),
    ("balanced ridge classifier", RidgeClassifier(class_weight="balanced"), {"alpha": ALPHAS}),
    ("logistic", LogisticRegression(tol=1e-12), {"C": CS}),
    ("weighted logistic", LogisticRegression(tol=1e-12, class_weight="balanced"), {"C": CS}),
    ("logistic without intercept", LogisticRegression(tol=1e-12, fit_intercept=False), {"C": CS}),
    ("l1 logistic", LogisticRegression(tol=1e-12, l1_ratio=0.5, solver="saga", max_iter=500), {"C": CS}),
    ("liblinear", LogisticRegression(tol=1e-12, solver="liblinear"), {"C": CS}),
    ("scaled logistic", make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12)),
     {"logisticregression__C": CS}),
    ("neighbours", KNeighborsClassifier(),
     {"n_neighbors": [9, 1, 2, 5], "weights": ["uniform", "distance", lambda d: 1 / (1 + d)]}),
    ("gaussian svm", SVC(tol=1e-9), {"C": CS, "gamma": ["scale", 0.3]}),
    ("squared hinge", LinearSVC(tol=1e-12), {"C": CS}),
    ("hinge", LinearSVC(tol=1e-12, loss="hinge", fit_intercept=False, max_iter=10000), {"C": CS}),
    ("linear svm", SVC(tol=1e-9, kernel="linear", class_weight="balanced"), {"C": CS}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """The rows are few: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def regression(n: int = 120, p: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + rng.standard_normal(p)
    return X, X @ rng.standard_normal(p) + 3.0 + 0.5 * rng.standard_normal(n)


def classes(n: int = 150, p: int = 5, count: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5
    z = X @ rng.standard_normal((p, count)) + rng.gumbel(size=(n, count))
    return X, np.array(["red", "green", "blue", "grey"])[z.argmax(axis=1)]


def named(cases: list[tuple[str, Any, Any]]) -> Any:
    return pytest.mark.parametrize(
        ("estimator", "grid"), [c[1:] for c in cases], ids=[c[0] for c in cases]
    )


def both(estimator: Any, grid: Any, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
    """The search with and without reuse, on the same data."""
    given = options.pop("given", {})
    options = {"cv": 4, "certify": False, "return_train_score": True, **options}
    searches = []
    for reuse in (True, False):
        search = GridSearchCV(estimator, grid, reuse=reuse, **options)
        searches.append(search.fit(X, y, **given))
    assert [search.reuse_ == "none" for search in searches] == [False, True]
    return searches[0], searches[1]


def assert_same(reused: Any, alone: Any, close: float = CLOSE) -> None:
    ours, theirs = reused.cv_results_, alone.cv_results_
    assert list(ours) == list(theirs)
    for key, column in ours.items():
        if "time" in key:
            assert (np.asarray(column) >= 0).all()
        elif key == "params":
            assert str(list(column)) == str(list(theirs[key]))
        elif key.startswith("param_"):
            assert str(column.tolist()) == str(theirs[key].tolist()), key  # masked: None
        elif not key.startswith("rank"):
            np.testing.assert_allclose(column, theirs[key], rtol=close, atol=close, err_msg=key)
    for key in [
        key for key in ours if key.startswith("rank")
    ]:  # ranks may differ within exact ties only
        score = theirs[key.replace("rank", "mean")]
        for i, j in zip(*np.nonzero(np.not_equal.outer(score, score)), strict=True):
            if score[i] - score[j] > 4 * close * (1 + abs(score[i])):
                assert ours[key][i] < ours[key][j], key
    if reused.refit is not False:
        best = theirs[f"mean_test_{alone.refit if alone.multimetric_ else 'score'}"]
        gap = np.nan_to_num(best[alone.best_index_] - best[reused.best_index_])
        assert abs(gap) <= 4 * close * (1 + abs(np.nan_to_num(best[alone.best_index_])))


def covered(estimator: Any, grid: Any, X: Any, y: Any, **given: Any) -> Any:
    """A plan that covers all candidates on all folds."""
    from sklearn.model_selection import ParameterGrid

    candidates = list(ParameterGrid(grid))
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    plan = fold_plan(estimator, candidates, X, y, folds, fit_params=given, scorers=None)
    assert plan is not None
    assert plan.covers == frozenset(range(len(candidates)))
    for k in range(4):
        assert sorted(i for i, _, _ in plan.fold(k)) == list(range(len(candidates)))
    return plan


@named(REGRESSORS + CLASSIFIERS)
@pytest.mark.parametrize("kind", ["dense", "csr", "float32"])
def test_scores_are_those_of_separate_fits(estimator: Any, grid: Any, kind: str) -> None:
    X, y = regression() if hasattr(estimator, "predict") and _regresses(estimator) else classes()
    if kind in ("csr", "csc"):
        if "pipeline" in str(type(estimator)):
            estimator = make_pipeline(StandardScaler(with_mean=False), estimator.steps[-1][1])
        X = sp.csr_array(np.where(np.abs(X) < 0.7, 0.0, X)).asformat(kind)
    elif kind == "fortran":
        X = np.asfortranarray(X)
    elif kind == "float32":
        X = X.astype(np.float32)
    covered(estimator, grid, X, y)
    # float32 rows: predictions are rounded to 1e-7 of their size either way
    assert_same(*both(estimator, grid, X, y), close=3e-5 if kind == "float32" else CLOSE)


@named([REGRESSORS[0], REGRESSORS[3], REGRESSORS[7], CLASSIFIERS[2], CLASSIFIERS[9]])
@pytest.mark.parametrize("kind", ["fortran", "csc"])
def test_other_layouts(estimator: Any, grid: Any, kind: str) -> None:
    X, y = regression() if _regresses(estimator) else classes()
    X = np.asfortranarray(X) if kind == "fortran" else sp.csc_array(np.where(X < 0.5, 0.0, X))
    assert_same(*both(estimator, grid, X, y))


def _regresses(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    return is_regressor(estimator)


@named(CLASSIFIERS[:4] + CLASSIFIERS[8:])
def test_three_classes(estimator: Any, grid: Any) -> None:
    X, y = classes(count=3)
    covered(estimator, grid, X, y)
    assert_same(*both(estimator, grid, X, y))


@named(REGRESSORS[:5] + REGRESSORS[7:9] + CLASSIFIERS[:4] + CLASSIFIERS[9:])
def test_sample_weights(estimator: Any, grid: Any) -> None:
    X, y = regression() if _regresses(estimator) else classes()
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    covered(estimator, grid, X, y, sample_weight=weights)
    assert_same(*both(estimator, grid, X, y, given={"sample_weight": weights}))


def test_weights_of_the_last_step() -> None:
    X, y = regression()
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
    model, grid = make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": ALPHAS}
    assert_same(*both(model, grid, X, y, given={"ridge__sample_weight": weights}))


SPLITS = {
    "overlapping": [(np.arange(0, 90), np.arange(60, 120)), (np.arange(30, 120), np.arange(0, 50))],
    "shuffle": ShuffleSplit(3, test_size=0.3, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "predefined": PredefinedSplit(np.where(np.arange(120) < 40, -1, np.arange(120) % 3)),
    "unordered": [(np.random.default_rng(0).permutation(120)[:80], np.arange(119, 79, -1))],
    "repeated rows": [(np.repeat(np.arange(60), 2), np.arange(60, 120))],
    "few training rows": [(np.arange(12), np.arange(12, 120)), (np.arange(50, 70), np.arange(50))],
}


@pytest.mark.parametrize("cv", SPLITS.values(), ids=SPLITS)
@named([REGRESSORS[1], REGRESSORS[3], REGRESSORS[7], REGRESSORS[9],
        CLASSIFIERS[0], CLASSIFIERS[2], CLASSIFIERS[9]])  # fmt: skip
def test_other_splits(estimator: Any, grid: Any, cv: Any) -> None:
    X, y = regression(120) if _regresses(estimator) else classes(120)
    assert_same(*both(estimator, grid, X, y, cv=cv))


def test_groups() -> None:
    X, y = regression(90)
    groups = np.arange(90) // 18
    options = {"cv": LeaveOneGroupOut(), "given": {"groups": groups}}
    assert_same(*both(Ridge(), {"alpha": ALPHAS}, X, y, **options))


REGRESSION_METRICS = [
    "r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error",
    "neg_median_absolute_error", "neg_max_error", "explained_variance",
]  # fmt: skip


@named([REGRESSORS[0], REGRESSORS[3], REGRESSORS[6], REGRESSORS[7], REGRESSORS[9]])
@pytest.mark.parametrize(
    "scoring",
    [*REGRESSION_METRICS, REGRESSION_METRICS, ["r2", "neg_mean_squared_error"],
     make_scorer(mean_pinball_loss, alpha=0.9, greater_is_better=False),
     lambda model, X, y: -float(np.abs(model.predict(X) - y).max()),
     lambda model, X, y: {"size": float(np.linalg.norm(model.predict(X))), "r2": model.score(X, y)}],
    ids=[*REGRESSION_METRICS, "all", "two", "pinball", "callable", "several by one"],
)  # fmt: skip
def test_metrics_of_regression(estimator: Any, grid: Any, scoring: Any) -> None:
    X, y = regression()
    refit = "r2" if isinstance(scoring, list) else False
    assert_same(*both(estimator, grid, X, y, scoring=scoring, refit=refit))


@named([CLASSIFIERS[2], CLASSIFIERS[5], CLASSIFIERS[7]])
@pytest.mark.parametrize(
    "scoring",
    ["accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc", "neg_brier_score",
     ["accuracy", "roc_auc"], lambda model, X, y: float(model.predict_proba(X)[:, 1].mean())],
    ids=["accuracy", "balanced", "log loss", "auc", "brier", "two", "callable"],
)  # fmt: skip
def test_metrics_of_classification(estimator: Any, grid: Any, scoring: Any) -> None:
    X, y = classes()
    y = (y == "red").astype(int)
    refit = "accuracy" if isinstance(scoring, list) else True
    assert_same(*both(estimator, grid, X, y, scoring=scoring, refit=refit))


@pytest.mark.parametrize("targets", [1, 3])
@named([REGRESSORS[0], REGRESSORS[1], REGRESSORS[2]])
def test_columns_of_targets(estimator: Any, grid: Any, targets: int) -> None:
    X, y = regression()
    Y = np.stack([y, y**2, -y], axis=1)[:, :targets]
    scoring = ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"]
    assert_same(*both(estimator, grid, X, Y, scoring=scoring, refit="r2"))
    plan = covered(estimator, grid, X, Y)
    rows, _ = plan.train(0)
    for i, model, _ in plan.fold(0):
        alone = type(model)(**{**model.get_params(), "certify": True}).fit(rows, plan.train(0)[1])
        assert np.shape(alone.coef_) == np.shape(model.coef_), i
        assert np.shape(alone.intercept_) == np.shape(model.intercept_)


def test_many_labels_a_row() -> None:
    X, y = regression()
    Y = np.stack([y > 0, y > 2, y < 1], axis=1).astype(int)
    assert_same(*both(RidgeClassifier(), {"alpha": ALPHAS}, X, Y))


def test_a_candidate_out_of_range_fails_alone() -> None:
    X, y = regression()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reused, alone = both(Ridge(), {"alpha": [1.0, -1.0, "many", 2.0]}, X, y, cv=3)
    assert sum("6 fits failed" in str(w.message) for w in caught) == 2
    assert_same(reused, alone)
    assert np.isnan(reused.cv_results_["mean_test_score"]).tolist() == [False, True, True, False]


def test_grids_that_mix_what_can_be_shared_with_what_cannot() -> None:
    X, y = regression()
    grid = [
        {"alpha": ALPHAS, "positive": [False, True]},
        {"alpha": [2.0, 0.5], "solver": ["svd", "lsqr"]},
    ]
    assert_same(*both(Ridge(), grid, X, y))
    plan = fold_plan(Ridge(), [{"alpha": 1.0}, {"alpha": 1.0, "positive": True}], X, y,
                     list(KFold(3).split(X)), fit_params={}, scorers=None)  # fmt: skip
    assert plan is not None
    assert plan.covers == {0}
    whole = make_pipeline(StandardScaler(), PCA(random_state=0), Ridge())
    steps = {
        "pca__n_components": [2, 4],
        "ridge__alpha": [1.0, 3.0],
        "standardscaler": [StandardScaler(), "passthrough"],
    }
    assert_same(*both(whole, steps, X, y))
    several = [
        {"ridge": [Ridge(alpha=3.0), Lasso(alpha=0.1, tol=1e-12)]},
        {"ridge__alpha": [1.0, 3.0]},
    ]
    assert_same(*both(whole, several, X, y))


def test_order_and_repetition_of_candidates() -> None:
    X, y = classes()
    grid = {"C": [2.0, 0.1, 30.0, 0.1, 2.0], "tol": [1e-12]}
    reused, alone = both(LogisticRegression(), grid, X, y)
    assert_same(reused, alone)
    assert np.array_equal(*(reused.cv_results_["mean_test_score"][[0, 1]],
                            reused.cv_results_["mean_test_score"][[4, 3]]))  # fmt: skip
    X, y = regression()
    assert_same(*both(Lasso(tol=1e-12), {"alpha": [0.1, 0.4, 0.1, 0.01, 0.4]}, X, y))


def test_a_class_that_a_fold_lacks() -> None:
    X, y = classes(120, count=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    cv = [(np.arange(60, 120), np.arange(60)), (np.arange(0, 120, 2), np.arange(1, 120, 2))]
    for model, grid in (
        (RidgeClassifier(), {"alpha": ALPHAS}),
        (LogisticRegression(tol=1e-12), {"C": CS}),
    ):
        assert_same(*both(model, grid, X, y, cv=cv))


def test_a_fold_with_one_class_fails_as_it_does_alone() -> None:
    X, y = classes(60)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    cv = [(np.arange(10), np.arange(10, 60)), (np.arange(0, 60, 2), np.arange(1, 60, 2))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reused, alone = both(LogisticRegression(tol=1e-12), {"C": CS}, X, y, cv=cv)
    assert sum("4 fits failed" in str(w.message) for w in caught) == 2
    assert_same(reused, alone)


def test_separable_classes_and_extreme_penalties() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] > 0).astype(int)
    grid = {"C": [1e-6, 1.0, 1e6], "tol": [1e-10], "max_iter": [1000]}
    assert_same(*both(LogisticRegression(), grid, X, y), close=1e-4)


@pytest.mark.parametrize("bad", ["scale", "offset", "collinear", "constant", "wide"])
def test_ill_conditioned_columns(bad: str) -> None:
    X, y = regression(100)
    if bad == "scale":
        X = X * np.logspace(-6, 6, X.shape[1])
    elif bad == "offset":
        X = X + 1e6
    elif bad == "collinear":
        X = np.hstack([X, X[:, :1] + 1e-9 * X[:, 1:2]])
    elif bad == "constant":
        X = np.hstack([X, np.full((len(X), 2), 7.0)])
    else:
        X = np.random.default_rng(3).standard_normal((100, 300))
    grid = {"alpha": [1e-8, 1e-3, 1.0]}
    assert_same(*both(Ridge(), grid, X, y))


def test_a_perfect_fit_is_scored_from_predictions() -> None:
    X, _ = regression()
    y = X @ np.arange(1.0, 7.0)
    reused, alone = both(Ridge(), {"alpha": [1e-10, 1e-9]}, X, y, scoring="neg_mean_squared_error")
    scores = [search.cv_results_["mean_test_score"] for search in (reused, alone)]
    np.testing.assert_allclose(*scores, rtol=1e-3)  # the errors themselves are 1e-10 of the targets
    assert (np.abs(scores[0]) < 1e-18).all()


def test_constant_targets_and_single_test_rows() -> None:
    X, y = regression(40)
    assert_same(*both(Ridge(), {"alpha": ALPHAS}, X, np.full(40, 2.0)))
    cv = KFold(40)
    assert_same(*both(Ridge(), {"alpha": ALPHAS}, X, y, cv=cv, scoring="neg_mean_squared_error"))


def test_frames_keep_the_names_of_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = regression()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    assert_same(*both(Ridge(), {"alpha": ALPHAS}, frame, pandas.Series(y)))
    plan = covered(Ridge(), {"alpha": ALPHAS}, frame, y)
    _, model, _ = next(plan.fold(0))
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert_same(*both(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": ALPHAS}, frame, y))


@named(
    [REGRESSORS[0], REGRESSORS[3], CLASSIFIERS[0], CLASSIFIERS[2], CLASSIFIERS[7], CLASSIFIERS[10]]
)
def test_models_are_real_ones(estimator: Any, grid: Any) -> None:
    X, y = regression() if _regresses(estimator) else classes()
    plan = covered(estimator, grid, X, y)
    (rows, labels), (name,) = plan.test(1), grid
    for i, model, seconds in plan.fold(1):
        assert type(model) is type(estimator)
        assert seconds >= 0
        assert model.get_params()[name] == grid[name][i]
        known, afresh = model.predict(rows), model.predict(np.array(rows))
        assert (
            np.array_equal(known, afresh) if known.dtype.kind == "U" else np.allclose(known, afresh)
        )
        assert model.score(rows, labels) == pytest.approx(model.score(np.array(rows), labels))


@named(
    [REGRESSORS[0], REGRESSORS[3], REGRESSORS[8], CLASSIFIERS[2], CLASSIFIERS[7], CLASSIFIERS[9]]
)
def test_a_plan_may_travel_to_another_process(estimator: Any, grid: Any) -> None:
    X, y = regression() if _regresses(estimator) else classes()
    plan = covered(estimator, grid, X, y)
    other = pickle.loads(pickle.dumps(plan))
    for (i, here, _), (j, there, _) in zip(plan.fold(1), other.fold(1), strict=True):
        assert i == j
        assert here.score(*plan.test(1)) == pytest.approx(there.score(*other.test(1)), rel=1e-12)


def test_n_jobs_and_backends_give_the_same() -> None:
    from joblib import parallel_config

    X, y = classes()
    model, grid = LogisticRegression(tol=1e-12), {"C": CS}
    alone = GridSearchCV(model, grid, cv=3, certify=False).fit(X, y)
    with parallel_config("threading", n_jobs=2):
        threads = GridSearchCV(model, grid, cv=3, certify=False).fit(X, y)
    for other in (threads, GridSearchCV(model, grid, cv=3, certify=False, n_jobs=2).fit(X, y)):
        assert other.reuse_ == alone.reuse_ != "none"
        for key in ("mean_test_score", "std_test_score"):
            np.testing.assert_allclose(other.cv_results_[key], alone.cv_results_[key], rtol=1e-12)


def test_the_refit_is_an_ordinary_one() -> None:
    X, y = regression()
    reused, alone = both(Ridge(), {"alpha": ALPHAS}, X, y, certify=True)
    np.testing.assert_allclose(
        reused.best_estimator_.coef_, alone.best_estimator_.coef_, rtol=1e-12
    )
    claims = {c.name: c.status for c in reused.best_estimator_.certificate_.claims}
    assert claims == {c.name: c.status for c in alone.best_estimator_.certificate_.claims}


def test_known_metrics_need_no_models() -> None:
    from sklearn.metrics import get_scorer

    X, y = regression()
    plan = covered(Ridge(), {"alpha": ALPHAS}, X, y)
    scorers = [get_scorer("r2"), get_scorer("neg_mean_squared_error")]
    [scored] = plan.scored(0, scorers, train=True)
    assert isinstance(scored, Scored)
    assert scored.train is not None
    for i, model, _ in plan.fold(0):
        for place, scorer in enumerate(scorers):
            assert scored.test[place][i] == pytest.approx(scorer(model, *plan.test(0)), rel=1e-10)
            assert scored.train[place][i] == pytest.approx(scorer(model, *plan.train(0)), rel=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_the_choice_is_that_of_separate_fits(seed: int) -> None:
    """Beyond exact ties, reuse never changes best_index_."""
    X, y = classes(90, seed=seed)
    cv = StratifiedKFold(5, shuffle=True, random_state=seed)
    grid = {"C": np.logspace(-3, 3, 7).tolist()}
    reused, alone = both(LogisticRegression(tol=1e-13), grid, X, y, cv=cv, scoring="neg_log_loss")
    assert reused.best_index_ == alone.best_index_
    X, y = regression(60, seed=seed)
    reused, alone = both(Ridge(), {"alpha": np.logspace(-3, 3, 13).tolist()}, X, y)
    assert reused.best_index_ == alone.best_index_


def test_what_has_nothing_to_share_has_no_plan() -> None:
    from sklearn.linear_model import Ridge as Other

    X, y = regression()
    folds = list(KFold(3).split(X))

    def plan(model: Any, candidates: Any, **given: Any) -> Any:
        return fold_plan(model, candidates, X, y, folds, fit_params=given, scorers=None)

    many = [{"alpha": a} for a in ALPHAS]
    assert plan(Other(), many) is None
    assert plan(type("Mine", (Ridge,), {})(), many) is None
    assert plan(Ridge(positive=True), many) is None
    assert plan(Ridge(), many, check_input=True) is None
    assert plan(Ridge(), [{"beta": 1.0}, {"beta": 2.0}]) is None
    assert plan(LogisticRegression(), [{"C": np.inf}, {"C": np.inf}]) is None
    X = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)
    assert plan(Ridge(), many) is None
