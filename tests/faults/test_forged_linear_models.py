"""Forged linear models: one change for each term of each claim, and one loosened floor for each floor.

A forger changes what a fit left. Each change is a failed claim, by recomputation, and its sentence is true.
NaN planted anywhere in what a claim is computed from makes no claim hold.
"""

import copy
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import surefit
from surefit import Claim, Kind, Status
from surefit._optimality import gradient_claim, optimality_claim, outcome_claim
from surefit._worst import badness, largest, largest_ratio
from surefit.design import as_design
from surefit.duality import Gap, duality_gap, gap_claim, unit_of
from surefit.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLasso,
    Perceptron,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TukeyRegressor,
)
from surefit.linear_model._audit import Audit
from surefit.linear_model._least_squares_claims import (
    kkt_claim,
    minimum_norm_claim,
    normal_equations_claim,
)
from surefit.linear_model._logistic_claims import gradient_claim as logistic_gradient_claim
from surefit.linear_model._spectral_claims import Recorded, spectral_claims
from surefit.linear_model.ridge import worst_gap_claim
from surefit.linear_model.tukey import _scale_claim
from surefit.losses import Absolute, Hinge, Logistic, Squared
from surefit.offsets import best_offset
from surefit.penalties import L1
from surefit.penalties import ElasticNet as ElasticNetPenalty

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 1.0 + 0.3 * RNG.normal(size=40)
TWO = (Y + RNG.normal(size=40) > 1.0).astype(int)
THREE = np.digitize(Y + RNG.normal(size=40), [0.0, 2.0])
BOTH = np.column_stack([Y, Y**2])
GRID = {"Cs": 2, "cv": 3, "l1_ratios": (0,), "scoring": None, "use_legacy_attributes": False}

MODELS = {
    "least squares": (LinearRegression(), Y),
    "non-negative": (LinearRegression(positive=True), Y),
    "no intercept": (LinearRegression(fit_intercept=False), Y),
    "ridge": (Ridge(), Y),
    "two ridges": (Ridge(alpha=[0.5, 2.0]), BOTH),
    "non-negative ridge": (Ridge(positive=True), Y),
    "lasso": (Lasso(alpha=0.05), Y),
    "non-negative net": (ElasticNet(alpha=0.05, positive=True), Y),
    "tasks": (MultiTaskLasso(alpha=0.05), BOTH),
    "quantile": (QuantileRegressor(alpha=0.02), Y),
    "huber": (HuberRegressor(), Y),
    "tukey": (TukeyRegressor(), Y),
    "tukey, scale given": (TukeyRegressor(scale=0.3), Y),
    "sgd": (SGDRegressor(random_state=0), Y),
    "averaged sgd": (SGDClassifier(average=True, random_state=0), TWO),
    "perceptron": (Perceptron(), TWO),
    "three perceptrons": (Perceptron(), THREE),
    "penalised perceptron": (Perceptron(penalty="l2", alpha=0.01), TWO),
    "logistic": (LogisticRegression(), TWO),
    "three logistic": (LogisticRegression(), THREE),
    "unpenalised logistic": (LogisticRegression(C=np.inf), TWO),
    "ridge classifier": (RidgeClassifier(), THREE),
    "ridge cv": (RidgeCV(), Y),
    "ridge folds": (RidgeCV(cv=3), Y),
    "ridge classifier cv": (RidgeClassifierCV(), TWO),
    "lasso cv": (LassoCV(alphas=4, cv=3), Y),
    "net cv": (ElasticNetCV(alphas=[0.01, 0.1], l1_ratio=[0.2, 0.8], cv=3), Y),
    "logistic cv": (LogisticRegressionCV(**GRID), TWO),
}
_FITTED = {}


def fitted(name):
    """A model, fitted once, and its targets; the caller gets a copy."""
    if name not in _FITTED:
        estimator, y = MODELS[name]
        _FITTED[name] = copy.deepcopy(estimator).fit(X, y)
    return copy.deepcopy(_FITTED[name]), MODELS[name][1]


def put(name, change):
    """Replace an attribute by a function of it."""
    return lambda model: setattr(model, name, change(getattr(model, name)))


def at(name, index, change):
    """Replace an entry of an attribute by a function of it."""

    def forge(model):
        value = np.array(getattr(model, name))
        value[index] = change(value[index])
        setattr(model, name, value)

    return forge


def parameter(**changed):
    return lambda model: model.set_params(**changed)


def negative_and_small(model):
    """A coefficient that is 0 at the optimum, a little below: rounding would excuse it."""
    model.coef_ = model.coef_.copy()
    model.coef_[int(np.argmin(model.coef_))] = -1e-18


def along_the_margin(model):
    """Weights and offset times 2: the same hyperplane, with the same margin; only the objective differs."""
    model.coef_, model.intercept_ = 2 * model.coef_, 2 * model.intercept_


# name of the model, what is forged, and the claim that fails
def tukey_with_a_huge_scale(model):
    """Next to it every gradient is small; ``outliers_`` goes with it."""
    model.scale_ = 1e6 * model.scale_
    model.outliers_ = np.zeros_like(model.outliers_)


FORGERIES = {
    # least squares: gradient, intercept, spectrum, constraint
    "a coefficient": ("least squares", at("coef_", 0, lambda v: v * (1 + 1e-9)), "normal equations"),
    "an intercept": ("least squares", put("intercept_", lambda v: v + 1e-9), "normal equations"),
    "a rank": ("least squares", put("rank_", lambda v: v - 1), "spectrum"),
    "singular values": ("least squares", put("singular_", lambda v: 1.001 * v), "spectrum"),
    "too few singular values": ("least squares", put("singular_", lambda v: v[:0]), "spectrum"),
    "an intercept that was not fitted": ("no intercept", put("intercept_", lambda v: 0.1), "attributes"),
    "a shorter vector": ("least squares", put("coef_", lambda v: v[:2]), "attributes"),
    "a row too many": ("least squares", put("coef_", lambda v: np.stack([v, v])), "attributes"),
    "nothing": ("least squares", put("coef_", lambda v: np.nan * v), "attributes"),
    "half precision": ("least squares", put("coef_", lambda v: v.astype(np.float16)), "attributes"),
    "a negative coefficient": ("non-negative", negative_and_small, "optimality conditions"),
    "an active coefficient": ("non-negative", put("coef_", lambda v: v * 1.001), "optimality conditions"),
    "a free intercept": ("non-negative", put("intercept_", lambda v: v + 1e-6), "optimality conditions"),
    # gaps
    "ridge": ("ridge", put("coef_", lambda v: 1.001 * v), "duality gap"),
    "the second target": ("two ridges", at("coef_", (1, 0), lambda v: 1.1 * v), "duality gap"),
    "another penalty": ("ridge", parameter(alpha=2.0), "duality gap"),
    "a negative ridge": ("non-negative ridge", negative_and_small, "duality gap"),
    "a negative net": ("non-negative net", negative_and_small, "duality gap"),
    "lasso": ("lasso", put("intercept_", lambda v: v + 0.01), "duality gap"),
    "tasks": ("tasks", at("coef_", (1, 1), lambda v: v + 0.01), "duality gap"),
    "quantile": ("quantile", put("coef_", lambda v: 1.001 * v), "duality gap"),
    "logistic": ("logistic", put("coef_", lambda v: 1.01 * v), "duality gap"),
    "the gradient": ("unpenalised logistic", put("coef_", lambda v: 1.01 * v), "gradient"),
    "its intercept": ("unpenalised logistic", put("intercept_", lambda v: v + 0.01), "gradient"),
    "tukey's gradient": ("tukey", put("coef_", lambda v: v * 1.0001), "gradient"),
    "tukey's scale": ("tukey", tukey_with_a_huge_scale, "gradient"),
    "tukey's intercept": ("tukey", put("intercept_", lambda v: v + 1e-5), "gradient"),
    "ridge classifier": ("ridge classifier", put("coef_", lambda v: 1.01 * v), "duality gap"),
    # records of a fit
    "a scale": ("huber", put("scale_", lambda v: 1.2 * v), "attributes"),
    "an outlier": ("huber", at("outliers_", 0, lambda v: not v), "attributes"),
    "tukey's outlier": ("tukey", at("outliers_", 0, lambda v: not v), "attributes"),
    "a scale that was given": ("tukey, scale given", put("scale_", lambda v: 1.1 * v), "attributes"),
    "a start with less": ("tukey", put("start_", lambda v: v[1:]), "attributes"),
    "a number of steps": ("lasso", put("n_iter_", lambda v: -1), "attributes"),
    "a method": ("ridge", put("method_", lambda v: "coordinate"), "attributes"),
    "a solver": ("ridge", put("solver_", lambda v: "svd"), "attributes"),
    "an objective": ("sgd", put("objective_", lambda v: 1.001 * v), "objective"),
    "the worst row": ("sgd", put("worst_", lambda v: 0.999 * v), "worst row"),
    "one row more": ("sgd", put("worst_", lambda v: np.r_[v, v]), "attributes"),
    "epochs": ("sgd", put("t_", lambda v: 1.0), "attributes"),
    "a flag": ("sgd", put("streamed_", lambda v: 2), "attributes"),
    "the last iterate": ("averaged sgd", put("standard_coef_", lambda v: v[0]), "attributes"),
    "classes in another order": ("logistic", put("classes_", lambda v: v[::-1]), "attributes"),
    "a class twice": ("averaged sgd", put("classes_", lambda v: np.array([1, 1])), "attributes"),
    "a class that no row has": ("logistic", put("classes_", lambda v: np.array([0, 1, 7])), "attributes"),
    "weights of classes": ("perceptron", put("class_weight_", lambda v: 2 * v), "attributes"),
    "several labels": ("ridge classifier", put("multilabel_", lambda v: True), "attributes"),
    # perceptron
    "fewer wrong rows": ("perceptron", put("training_mistakes_", lambda v: v - 1), "training mistakes"),
    "more wrong rows": ("perceptron", put("training_mistakes_", lambda v: v + 1), "training mistakes"),
    "a margin": ("perceptron", put("margin_", lambda v: 0.999 * v), "margin"),
    "an unpenalised objective": ("perceptron", put("objective_", lambda v: 1.01 * v), "attributes"),
    "twice the weights": ("perceptron", along_the_margin, "attributes"),
    "mistakes": ("perceptron", put("mistakes_", lambda v: 0 * v), "attributes"),
    "a penalised objective": ("penalised perceptron", put("objective_", lambda v: 1.01 * v), "attributes"),
    "a cold start": ("perceptron", put("cold_start_", lambda v: None), "attributes"),
    # choices
    "another alpha": ("ridge cv", put("alpha_", lambda v: 10.0 if v < 5 else 0.1), "selection"),
    "an alpha that was not tried": ("ridge cv", put("alpha_", lambda v: 3.0), "attributes"),
    "the best score": ("ridge cv", put("best_score_", lambda v: v + 0.1), "selection"),
    "a score": ("ridge cv", at("cv_scores_", 0, lambda v: 1.001 * v), "scores"),
    "a fold": ("ridge folds", at("folds_", 0, lambda v: (v + 1) % 3), "scores"),
    "no folds": ("ridge folds", put("folds_", lambda v: v[1:]), "attributes"),
    "scores of fewer alphas": ("ridge cv", put("cv_scores_", lambda v: v[1:]), "attributes"),
    "a better error": ("lasso cv", at("mse_path_", (0, 0), lambda v: -99.0), "selection"),
    "errors of fewer alphas": ("lasso cv", put("mse_path_", lambda v: v[1:]), "attributes"),
    "the grid": ("lasso cv", put("alphas_", lambda v: 1.01 * v), "attributes"),
    "a fold model": ("lasso cv", put("fold_coef_", lambda v: 1.1 * v), "fold models"),
    "its intercept ": ("lasso cv", put("fold_intercept_", lambda v: v + 1.0), "fold models"),
    "a ratio": ("net cv", put("l1_ratio_", lambda v: 0.5), "attributes"),
    "a row that is tested twice": ("lasso cv", put("folds_", lambda v: np.r_[v, 0]), "attributes"),
    "another C": ("logistic cv", put("C_", lambda v: 7.0), "duality gap"),
    "the Cs": ("logistic cv", put("Cs_", lambda v: 2 * v), "attributes"),
    "scores of models": ("logistic cv", put("scores_", lambda v: v - 0.01), "scores"),
    "scores as integers": ("logistic cv", put("scores_", lambda v: v.astype(int)), "attributes"),
    "the models of the folds": ("logistic cv", put("coefs_paths_", lambda v: v[..., :-1]), "attributes"),
    "their steps": ("logistic cv", put("n_iter_", lambda v: v[0]), "attributes"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_a_failed_claim(what):
    name, forge, claim = FORGERIES[what]
    model, y = fitted(name)
    tol = 1e-3 if name.endswith("cv") or name == "sgd" else 1e-6
    honest = surefit.verify(model, X, y)
    assert honest.ok, str(honest)
    forge(model)
    report = surefit.verify(model, X, y, tol=tol)
    assert report[claim].status is Status.FAILS, str(report)
    for words in (
        "so this is a minimiser",
        "to rounding",
        "no minimiser is shorter",
        "non-negative, and",
    ):
        assert words not in report[claim].statement


CLASSIFIERS = [
    n for n, (e, _) in MODELS.items() if e.__sklearn_tags__().classifier_tags is not None
]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_reversed_classes_are_a_failed_claim(name):
    """An IndexError once."""
    model, y = fitted(name)
    model.classes_ = model.classes_[::-1].copy()
    assert surefit.verify(model, X, y)["attributes"].status is Status.FAILS


# ---------------------------------------------------------------------------- whose tolerance, which floor


def test_the_tolerance_is_the_verifiers():
    """tol=1e6 and all coefficients 5 verified once."""
    model = Lasso(alpha=0.05).fit(X, Y)
    model.set_params(tol=1e6)
    model.coef_ = np.full(3, 5.0)
    assert surefit.verify(model, X, Y)["duality gap"].status is Status.FAILS
    loose = surefit.verify(model, X, Y, tol=1e6)["duality gap"]
    assert loose.status is Status.UNINFORMATIVE


def test_a_gap_of_some_percent_says_too_little():
    model = Lasso(alpha=0.05).fit(X, Y)
    model.coef_ = 0.8 * model.coef_
    claim = surefit.verify(model, X, Y, tol=0.5)["duality gap"]
    assert claim.status is Status.UNINFORMATIVE
    model = LogisticRegression(C=np.inf).fit(X, TWO)
    model.coef_ = 0.8 * model.coef_
    claim = surefit.verify(model, X, TWO, tol=0.5)["gradient"]
    assert claim.status is Status.UNINFORMATIVE
    assert "a stationary point needs at most" in claim.statement


SINGLE = {
    "normal equations": (LinearRegression(), Y),
    "optimality conditions": (LinearRegression(positive=True), Y),
    "gradient": (LogisticRegression(C=np.inf), TWO),
    "duality gap": (Lasso(alpha=1e-3), Y),
}


@pytest.mark.parametrize("name", SINGLE)
def test_float32_excuses_no_more_than_the_tolerance(name):
    """Rounding of storage above the tolerance: undecided, not held; below it, held; far above, failed."""
    estimator, y = SINGLE[name]
    rows = X.astype(np.float32)
    model = copy.deepcopy(estimator).fit(rows, y)
    assert surefit.verify(model, rows, y)[name].status is Status.HOLDS
    tight = surefit.verify(model, rows, y, tol=1e-12)[name]
    assert tight.status is Status.UNDECIDED
    assert "rounding alone can cause" in tight.statement
    model.coef_ = (0.9 * model.coef_).astype(np.float32)
    assert surefit.verify(model, rows, y, tol=1e-12)[name].status is Status.FAILS


def test_a_witness_in_float32_excuses_no_more_than_the_tolerance():
    wide = np.random.default_rng(1).normal(size=(5, 9)).astype(np.float32)
    model = LinearRegression().fit(wide, Y[:5])
    name = "minimum norm"
    assert surefit.verify(model, wide, Y[:5])[name].status is Status.HOLDS
    assert surefit.verify(model, wide, Y[:5], tol=1e-12)[name].status is Status.UNDECIDED
    longer = copy.deepcopy(model)
    longer.coef_ = model.coef_ + np.float32(0.01)
    assert surefit.verify(longer, wide, Y[:5], tol=1e-12)[name].status is Status.FAILS


def test_a_floor_excuses_no_more_than_a_thousandth():
    """Of the objective of the constant model, however large a floor is said to be."""
    numbers = {"primal": 1.0, "dual": 0.9, "null": 1.0, "bound": 1e-6, "source": ""}
    assert optimality_claim("it", floor=0.2, **numbers).status is Status.UNDECIDED
    assert optimality_claim("it", floor=0.0, stored=0.2, **numbers).status is Status.UNDECIDED
    assert optimality_claim("it", floor=0.01, **numbers).status is Status.FAILS
    close = numbers | {"dual": 1.0 - 1e-5}
    assert optimality_claim("it", floor=1e-4, **close).status is Status.UNINFORMATIVE
    assert optimality_claim("it", floor=2e-5, **close | {"null": 10.0}).status is Status.HOLDS
    assert (
        gradient_claim(1e-4, 1e-6, "", scale="it", holds="", floor=1e-3).status is Status.UNDECIDED
    )
    assert gradient_claim(1e-4, 1e-6, "", scale="it", holds="", floor=1e-5).status is Status.FAILS


def test_an_objective_below_its_bound_fails():
    numbers = {"null": 1.0, "bound": 1e-6, "floor": 1e-9, "source": ""}
    claim = optimality_claim("it", primal=0.5, dual=0.6, **numbers)
    assert claim.status is Status.FAILS
    assert "below a lower bound" in claim.statement
    assert optimality_claim("it", primal=math.inf, dual=0.6, **numbers).status is Status.FAILS


# ---------------------------------------------------------------------------- NaN


def test_the_largest_of_several_keeps_a_nan():
    assert largest(1.0, [2.0, 3.0]) == 3.0
    assert math.isnan(largest(1.0, math.nan))
    assert math.isnan(largest(math.nan, 1.0))
    assert largest_ratio([1.0, 0.0], [2.0, 0.0]) == 0.5
    assert largest_ratio([1.0, 1e-200], [2.0, 0.0]) == math.inf
    for values, scales in (
        ([0.0, math.nan], [1.0, 1.0]),
        ([0.0, 0.0], [1.0, math.nan]),
        ([1.0], [math.nan]),
    ):
        assert math.isnan(largest_ratio(values, scales))


def test_the_worst_claim_is_found_by_its_status():
    held = Claim.check("a", "", Kind.OPTIMAL, 1e-9, 1e-6)
    broken = Claim.check("a", "", Kind.OPTIMAL, math.nan, 1e-6)
    assert max([held, broken], key=badness) is broken
    assert max([broken, held], key=badness) is broken
    good = Gap(1.0, 1.0, 0.0, 1e-15, np.zeros(1))
    bad = replace(good, primal=math.nan, dual=math.nan, gap=math.nan)
    for gaps in ([good, bad], [bad, good]):
        claim = worst_gap_claim(gaps, [2.0, 2.0], 1e-3, "", np.zeros(2))
        assert claim.status is Status.FAILS


S, ONE = np.ones(40), np.ones((3, 1))
DESIGN = as_design(X)
Z = X @ [1.0, -1.0, 0.0]
MARGINS = np.where(TWO == 1, 1.0, -1.0)
COEF = np.linalg.lstsq(np.column_stack([X, np.ones(40)]), Y, rcond=None)[0]
OFFSET = np.array([COEF[3]])
COLUMN = Y[:, None]
# a claim as a function of arrays in each of which NaN is planted
CLAIMS = {
    "normal equations": (
        lambda x, y, s, w, b: normal_equations_claim(as_design(x), y, s, w, b, True),
        (X, COLUMN, S, COEF[:3, None], OFFSET),
    ),
    "ridge equations": (
        lambda x, y, s, w, b, a: normal_equations_claim(as_design(x), y, s, w, b, True, a),
        (X, COLUMN, S, COEF[:3, None], OFFSET, np.zeros(1)),
    ),
    "optimality conditions": (
        lambda x, y, s, w, b: kkt_claim(as_design(x), y, s, w, b, True),
        (X, COLUMN, S, ONE, OFFSET),
    ),
    "minimum norm": (
        lambda x, s, w, u: minimum_norm_claim(as_design(x), s, w, u, True),
        (X, S, COEF[:3, None], np.zeros((40, 1))),
    ),
    "coefficients": (
        lambda y, w, b: spectral_claims(DESIGN, y, S, w, b, True)[0],
        (COLUMN, COEF[:3, None], OFFSET),
    ),
    "spectrum": (
        lambda d: spectral_claims(DESIGN, COLUMN, S, ONE, OFFSET, True, Recorded(3, d))[1],
        (np.linalg.svd(X - X.mean(axis=0))[1],),
    ),
    "gradient": (
        lambda x, s, z: logistic_gradient_claim(x, MARGINS, s, Logistic(), z, True, 1e-3, np.float64),
        (X, S, Z),
    ),
    "scale": (lambda r, s: _scale_claim(r, s, 1.0, 1.0), (Z, S)),
    "gap": (
        lambda x, y, w, b: gap_claim(
            duality_gap(x, y, w, b[0], Squared(), L1(0.1), weights=S / 40), 1e-3, 1.0, ""
        ),
        (X, Y, COEF[:3], OFFSET),
    ),
    "least absolute gap": (
        lambda y, w, b: gap_claim(
            duality_gap(X, y, w, b[0], Absolute(), L1(0.1), weights=S / 40), 1e-3, 1.0, ""
        ),
        (Y, COEF[:3], OFFSET),
    ),
    "hinge gap": (
        lambda w, b: gap_claim(
            duality_gap(X, MARGINS, w, b[0], Hinge(), ElasticNetPenalty(1.0, 0.5)), 1e-3, 1.0, ""
        ),
        (COEF[:3], OFFSET),
    ),
    "margin": (
        lambda w, z, n: Audit(w, 0.0, z, MARGINS, n, S, (0.0, 0.0)).margin_claim("", 0.0),
        (ONE[:, 0], Z, S),
    ),
    "penalised objective": (
        lambda w, z, s: Audit(w, 0.0, z, MARGINS, S, s, (0.1, 0.1)).objective_claim("", 0.0),
        (ONE[:, 0], Z, S),
    ),
}  # fmt: skip
PLANTED = [(name, k) for name, (_, arrays) in CLAIMS.items() for k in range(len(arrays))]


@pytest.mark.parametrize(("name", "place"), PLANTED)
@pytest.mark.filterwarnings("ignore")
def test_nan_planted_anywhere_makes_no_claim_hold(name, place):
    claim, arrays = CLAIMS[name]
    planted = [np.array(array, dtype=np.float64) for array in arrays]
    planted[place].flat[-1] = np.nan
    try:
        status = claim(*planted).status
    except (ValueError, np.linalg.LinAlgError):  # of the linear algebra: `verify` reports it
        return
    assert status in (Status.FAILS, Status.UNDECIDED)


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Hinge(), Logistic()], ids=str)
def test_the_best_offset_of_nothing_is_nothing(loss):
    z = Z.copy()
    z[3] = np.nan
    assert math.isnan(best_offset(loss, z, MARGINS, S))


def test_numbers_that_are_nothing_decide_nothing():
    for observed, bound, floor in (
        (np.nan, 1, 1),
        (1, np.nan, 2),
        (1, 0.5, np.nan),
        (np.inf, 2, 3),
    ):
        claim = outcome_claim(
            "it", Kind.EXACT, observed, bound, "", holds="yes", otherwise="no", floor=floor,
            largest_floor=1e-3,
        )  # fmt: skip
        assert claim.status in (Status.FAILS, Status.UNDECIDED)
        assert claim.statement.startswith("no")


# ---------------------------------------------------------------------------- extreme scales


@pytest.mark.parametrize("exponent", [-160, -120, 120, 150])
def test_the_distance_of_a_ridge_is_right_at_any_scale(exponent):
    """y near 1e-160 said a distance of 0, where it was 3e-163."""
    scale = 10.0**exponent
    model = Ridge().fit(X, scale * Y)
    best = model.coef_.copy()
    model.coef_ = 1.003 * best
    claim = surefit.verify(model, X, scale * Y, tol=1.0)["duality gap"]
    stated = float(claim.statement.split("coefficients are within ")[1].split()[0])
    true = float(np.linalg.norm((model.coef_ - best) / scale)) * scale
    assert true <= stated <= 100.0 * true
    assert unit_of(scale * Y) != 0
    plain = Ridge().fit(X, Y)
    plain.coef_ = 1.003 * plain.coef_
    other = surefit.verify(plain, X, Y, tol=1.0)["duality gap"]
    reference = float(other.statement.split("coefficients are within ")[1].split()[0])
    assert stated / scale == pytest.approx(reference, rel=0.1)


EXTREME = [
    (LogisticRegression(C=1e10), 1e150, TWO),
    (LogisticRegression(C=1e300), 1e40, THREE),
    (ElasticNet(alpha=0.05, l1_ratio=0.0), 1e-120, Y),
    (ElasticNet(alpha=0.05), 1e150, Y),
    (LogisticRegression(), 1e150, THREE),
    (LogisticRegression(), 1e-150, TWO),
    (Ridge(), 1e80, Y),
    (Ridge(), 1e-200, Y),
    (TukeyRegressor(), 1e-200, Y),
    (HuberRegressor(), 1e120, Y),
    (MultiTaskLasso(alpha=0.05), 1e120, BOTH),
    (QuantileRegressor(alpha=0.02), 1e-300, Y),
]


@pytest.mark.parametrize(
    ("estimator", "scale", "y"), EXTREME, ids=[f"{e}-{scale:g}" for e, scale, _ in EXTREME]
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide", "ignore:invalid")
def test_extreme_scales_give_a_clear_error_or_a_certificate(estimator, scale, y):
    """LinAlgError and OverflowError came through; a bound that rounding spoils is not a failure."""
    model, refusal = copy.deepcopy(estimator), None
    try:
        model.fit(scale * X, y)
    except ValueError as error:
        refusal = error
    if refusal is not None:
        assert type(refusal) is ValueError
        assert re.search(r"\bX\b.*[Ss]cale", str(refusal))
        return
    report = surefit.verify(model, scale * X, y)
    assert report.ok, str(report)


def test_values_whose_squares_underflow_are_refused():
    with pytest.raises(ValueError, match=r"X has no value larger than .*e-200.*Rescale X"):
        LinearRegression().fit(1e-200 * X / np.abs(X).max(), Y)
    with pytest.raises(ValueError, match=r"y has no value larger than .*e-200.*Rescale y"):
        Ridge().fit(X, 1e-200 * Y / np.abs(Y).max())
    assert LinearRegression().fit(0.0 * X, 0.0 * Y).certificate_.ok


# ---------------------------------------------------------------------------- two condition numbers


def test_both_condition_numbers_are_stated_and_bound_their_errors():
    """X = [[0, 1], [e, 1]]: 2.6 with unit columns, 2 / e as it stands; 1e-9 in e changed w by a tenth."""
    e, y = 1e-8, np.array([1.0, 0.0])
    rows = np.array([[0.0, 1.0], [e, 1.0]])
    model = LinearRegression(fit_intercept=False).fit(rows, y)
    words = surefit.verify(model, rows, y)["coefficients"].statement
    unit = float(words.split("unit columns is ")[1].split()[0])
    plain = float(words.split("cond(X) = ")[1].split(",")[0])
    amplified = float(words.split("by up to ")[1].split()[0])
    assert unit == pytest.approx(np.linalg.cond(rows / np.linalg.norm(rows, axis=0)), rel=0.05)
    assert plain == pytest.approx(np.linalg.cond(rows), rel=0.05)
    for share in (1e-11, 1e-10):  # an error of that share of ||X||
        moved = rows.copy()
        moved[1, 0] += share * np.linalg.norm(rows, 2)
        change = np.linalg.norm(np.linalg.solve(moved, y) - model.coef_) / np.linalg.norm(
            model.coef_
        )
        assert change <= 1.1 * amplified * share
        assert change >= 0.3 * amplified * share  # and the number is not idle


def test_a_start_elsewhere_leaves_the_weight_norm_undecided():
    """The claim was gone with ``cold_start_``, and a certificate with fewer claims is no worse."""
    model, y = fitted("penalised perceptron")
    assert surefit.verify(model, X, y)["weight norm"].status is Status.HOLDS
    model.cold_start_ = not model.cold_start_
    claim = surefit.verify(model, X, y)["weight norm"]
    assert claim.status is Status.UNDECIDED
    assert "runs from 0" in claim.statement


def test_the_mistakes_of_a_run_are_those_of_its_record():
    """Nobody can recount them; the sentence names the record, and the bound is on it."""
    y = (X[:, 0] > 0.0).astype(int)
    model = Perceptron(tol=None).fit(X, y)
    model.mistakes_ = model.mistakes_ + 1
    claim = surefit.verify(model, X, y)["mistake bound"]
    assert claim.status is Status.HOLDS
    assert f"the run recorded {model.mistakes_[0]} mistakes" in claim.statement
