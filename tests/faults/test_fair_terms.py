"""One forgery for each term of each claim of ``surefit.fair``, and one just above each rounding floor.

Every claim is a comparison of sums and maxima. A term that nobody breaks can be dropped unseen, and a floor
that nobody comes near can be raised unseen: here each term is broken alone, and each floor is missed by a
factor of ten.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from surefit import Status, verify
from surefit.fair import Decorrelate, FairLogistic, GroupThresholds, audit, proxies
from surefit.fair._calibration import calibration_table
from surefit.fair._curves import curves
from surefit.fair._logistic_claims import covariance_bound, logistic_claims, metric
from surefit.fair._sensitive import labels_claim
from surefit.fair._tables import group_gaps
from surefit.fair._threshold_claims import (
    deterministic_claims,
    dual_bound,
    randomised_claims,
    scores_claim,
)
from surefit.fair.criteria import gap, group_rates
from surefit.fair.decorrelate import covariance_claim, means_claim
from surefit.linear_model import LogisticRegression
from surefit.model_selection.bounds import clopper_pearson

EPS = float(np.finfo(np.float64).eps)
RNG = np.random.default_rng(0)
N = 240
GROUP = np.repeat([0, 1, 2], N // 3)
SCORE = RNG.random(N)
Y = (RNG.random(N) < SCORE * (0.6 + 0.2 * GROUP)).astype(np.int64)
FOUND = curves(SCORE, Y, GROUP, 3)
COSTS = (1.0, 1.0)
RATES = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")


def rule_of(constraint: str, **options: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    model = GroupThresholds("passthrough", constraint=constraint, **options)
    model.fit(SCORE[:, None], Y, sensitive=GROUP)
    return model.thresholds_.copy(), model.weights_.copy(), model.multipliers_.copy()


def statuses(claims: list[Any]) -> dict[str, str]:
    return {claim.name: claim.status.name for claim in claims}


def mixed_row(weights: np.ndarray) -> tuple[int, int, int]:
    """A group that draws between two thresholds, and the places of these."""
    group = int(np.flatnonzero((weights > 0.05).sum(axis=1) > 1)[0])
    first, second = np.flatnonzero(weights[group] > 0.05)[:2]
    return group, int(first), int(second)


# -------------------------------------------------------------------- thresholds: equal rates


@pytest.mark.parametrize("constraint", RATES)
def test_rates_that_differ_by_ten_floors_are_not_equal(constraint: str) -> None:
    """A weight of 1e-10 moved between two thresholds: far below any cost, far above rounding."""
    thresholds, weights, multipliers = rule_of(constraint)
    honest = randomised_claims(FOUND, (thresholds, weights, multipliers), constraint, COSTS)
    assert statuses(honest) == {"optimal rule": "HOLDS", "equal rates": "HOLDS"}
    group, first, second = mixed_row(weights)
    weights[group, first] += 1e-10
    weights[group, second] -= 1e-10
    forged = randomised_claims(FOUND, (thresholds, weights, multipliers), constraint, COSTS)
    assert statuses(forged)["equal rates"] == "FAILS"


def test_each_of_two_rates_counts() -> None:
    """Equal true positive rates and unequal false positive rates are no equal odds, nor the reverse."""
    for k, constraint in enumerate(("equal_opportunity", "predictive_equality")):
        rule = rule_of(constraint)
        both = (rule[0], rule[1], np.zeros((3, 2)))
        found = randomised_claims(FOUND, both, "equalized_odds", COSTS)
        assert statuses(found)["equal rates"] == "FAILS", k


@pytest.mark.parametrize(
    "change",
    ["sum above one", "sum just above one", "negative", "NaN threshold"],
)
def test_weights_are_probabilities(change: str) -> None:
    thresholds, weights, multipliers = rule_of("demographic_parity")
    if change == "sum above one":
        weights = 2.0 * weights
    elif change == "sum just above one":
        weights = weights * (1.0 + 1e-11)
    elif (
        change == "negative"
    ):  # the sum stays 1, and so do the rates: two thresholds without effect
        thresholds[:, 2:] = np.inf
        weights[:, 2:] = [-0.5, 0.5]
    else:
        thresholds[0, np.argmin(weights[0])] = np.nan
    claims = randomised_claims(
        FOUND, (thresholds, weights, multipliers), "demographic_parity", COSTS
    )
    assert statuses(claims)["equal rates"] == "FAILS"


def test_a_single_threshold_has_weights_0_and_1() -> None:
    rule = rule_of("demographic_parity", randomize=False, tolerance=0.05)
    honest = deterministic_claims(FOUND, rule, "demographic_parity", COSTS, 0.05, full=True)
    assert set(statuses(honest).values()) == {"HOLDS"}
    thresholds, weights, multipliers = rule
    place = np.argmax(weights, axis=1)
    other = (place + 1) % weights.shape[1]
    rows = np.arange(3)
    thresholds[rows, other] = thresholds[rows, place]
    weights[rows, place] = weights[rows, other] = 0.5
    forged = (thresholds, weights, multipliers)
    claims = deterministic_claims(FOUND, forged, "demographic_parity", COSTS, 0.05, full=True)
    assert statuses(claims)["equal rates"] == "FAILS"


# -------------------------------------------------------------------- thresholds: the optimum


@pytest.mark.parametrize("constraint", RATES)
def test_a_rule_that_costs_more_is_not_optimal(constraint: str) -> None:
    """All rows refused: the rates are equal, and the cost is that of a constant."""
    thresholds, weights, multipliers = rule_of(constraint)
    rule = np.full_like(thresholds, np.inf), weights, multipliers
    found = statuses(randomised_claims(FOUND, rule, constraint, COSTS))
    assert found == {"optimal rule": "FAILS", "equal rates": "HOLDS"}


def test_a_cost_of_ten_floors_more_is_not_optimal() -> None:
    """A hundred-millionth of each group refused instead: equal rates, and a cost above the floor 1e-9."""
    thresholds, weights, multipliers = rule_of("demographic_parity")
    weights = weights * (1.0 - 1e-8)
    place = np.argmin(weights, axis=1)  # a threshold that is not in use
    thresholds[np.arange(3), place] = np.inf
    weights[np.arange(3), place] += 1e-8
    found = randomised_claims(
        FOUND, (thresholds, weights, multipliers), "demographic_parity", COSTS
    )
    assert statuses(found) == {"optimal rule": "FAILS", "equal rates": "HOLDS"}


def test_a_cost_below_the_bound_is_no_success() -> None:
    """Every group at its own best threshold costs less than equal rates allow."""
    thresholds, weights, multipliers = rule_of("demographic_parity")
    for g, curve in enumerate(FOUND):
        thresholds[g] = curve.thresholds[int(np.argmax(curve.gain(COSTS)))]
    forged = (thresholds, weights, multipliers)
    found = randomised_claims(FOUND, forged, "demographic_parity", COSTS)
    assert statuses(found) == {"optimal rule": "FAILS", "equal rates": "FAILS"}
    wide = deterministic_claims(FOUND, forged, "demographic_parity", COSTS, 0.0, full=True)
    assert statuses(wide) == {"optimal rule": "FAILS", "equal rates": "FAILS"}


@pytest.mark.parametrize("constraint", RATES)
@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_the_dual_bound_holds_for_any_multipliers(constraint: str, slack: float) -> None:
    """Of all rules whose rates differ by at most ``slack``: both corrections of the bound are needed."""
    rates = len(FOUND[0].rates(constraint))
    single = {"randomize": False, "tolerance": slack}
    thresholds, weights, _ = rule_of(constraint, **single)
    at = [curve.point(thresholds[g]) for g, curve in enumerate(FOUND)]
    best = sum(float(w @ c.gain(COSTS)[k]) for w, c, k in zip(weights, FOUND, at))
    generator = np.random.default_rng(1)
    for size in (1.0, 10.0, 100.0):
        for _ in range(30):
            multipliers = generator.normal(scale=size, size=(3, rates))
            assert dual_bound(FOUND, constraint, COSTS, multipliers, slack) >= best - 1e-9
            positive = np.abs(multipliers)  # their sum is positive: max(0, sum) is paid
            assert dual_bound(FOUND, constraint, COSTS, positive, slack) >= best - 1e-9


def test_the_dual_bound_pays_for_the_slack() -> None:
    """Multipliers that sum to 0 and would be free without it."""
    multipliers = np.array([[50.0], [-50.0], [0.0]])
    free = dual_bound(FOUND, "demographic_parity", COSTS, multipliers, 0.0)
    paid = dual_bound(FOUND, "demographic_parity", COSTS, multipliers, 0.2)
    assert paid - free == pytest.approx(0.2 * 50.0)
    lifted = dual_bound(FOUND, "demographic_parity", COSTS, np.full((3, 1), 2.0), 0.0)
    lowered = dual_bound(FOUND, "demographic_parity", COSTS, np.full((3, 1), -2.0), 0.0)
    at_rates = sum(
        float((c.gain(COSTS) - 2.0 * c.rates("demographic_parity")[0]).max()) for c in FOUND
    )
    assert lifted == pytest.approx(at_rates + 6.0)
    assert lowered == pytest.approx(
        sum(float((c.gain(COSTS) + 2.0 * c.rates("demographic_parity")[0]).max()) for c in FOUND)
    )


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_single_thresholds_that_cost_one_row_more_are_not_optimal(constraint: str) -> None:
    rule = rule_of(constraint, randomize=False, tolerance=0.2)
    honest = deterministic_claims(FOUND, rule, constraint, COSTS, 0.2, full=True)
    assert set(statuses(honest).values()) == {"HOLDS"}
    for g, curve in enumerate(FOUND):
        for step in (-1, 1):
            thresholds = rule[0].copy()
            now = int(curve.point(thresholds[g])[np.argmax(rule[1][g])])
            other = now + step
            if not 0 <= other < len(curve.tp) or curve.gain(COSTS)[other] >= curve.gain(COSTS)[now]:
                continue
            thresholds[g] = curve.thresholds[other]
            forged = (thresholds, rule[1], rule[2])
            claims = deterministic_claims(FOUND, forged, constraint, COSTS, 0.2, full=True)
            assert statuses(claims)["optimal rule"] == "FAILS"


def test_single_thresholds_that_cost_a_little_more_are_not_optimal() -> None:
    """As many mistakes of another kind, one of which costs a millionth more."""
    costs = (1.0, 1.0 + 1e-6)
    score, y = np.tile([4.0, 3.0, 2.0, 1.0], 2), np.tile([1, 0, 1, 0], 2)
    found = curves(score, y.astype(np.int64), np.repeat([0, 1], 4), 2)
    thresholds, multipliers = np.full((2, 1), 1.5), np.zeros((2, 1))  # one false positive a group
    for forged, status in ((1.5, "HOLDS"), (3.5, "FAILS")):  # or one false negative
        thresholds[0] = forged
        rule = (thresholds, np.ones((2, 1)), multipliers)
        claims = deterministic_claims(found, rule, "demographic_parity", costs, 1.0, full=True)
        assert statuses(claims) == {"optimal rule": status, "equal rates": "HOLDS"}


def test_a_label_that_no_row_has_is_a_failed_claim() -> None:
    rule = GroupThresholds("passthrough").fit(SCORE[:, None], Y, sensitive=GROUP)
    X, y, groups = logistic_example()
    fair = FairLogistic().fit(X, y, sensitive=groups)
    for model, rows, beside in ((rule, SCORE[:, None], GROUP), (fair, X, groups)):
        found = model.verify(rows, np.zeros(len(rows), dtype=int), sensitive=beside)
        assert "labels" in [claim.name for claim in found.failed]


def test_other_groups_and_labels_are_a_failed_claim() -> None:
    model = GroupThresholds("passthrough").fit(SCORE[:, None], Y, sensitive=GROUP)
    other = model.verify(SCORE[:, None], Y, sensitive=np.where(GROUP == 2, 7, GROUP))
    assert other["groups"].observed == N // 3
    assert not other.ok
    assert labels_claim(Y, [0, 1]) is None
    assert labels_claim(Y, [1, 0]).status is Status.FAILS
    assert labels_claim(Y, [0, 2]).status is Status.FAILS


def test_failed_claims_of_the_scores_are_counted() -> None:
    X = RNG.normal(size=(N, 2))
    model = LogisticRegression(tol=1e-10).fit(X, Y)
    assert scores_claim(verify(model, X, Y, tol=1e-8)).status is Status.HOLDS
    model.coef_ = model.coef_ + 1.0
    failed = scores_claim(verify(model, X, Y, tol=1e-8))
    assert (failed.status, failed.observed) == (Status.FAILS, 1.0)


# -------------------------------------------------------------------- FairLogistic


def logistic_example() -> tuple[Any, ...]:
    generator = np.random.default_rng(2)
    X = generator.normal(size=(200, 3)) + GROUP[:200, None]
    y = (X[:, 0] + generator.normal(size=200) > 1.0).astype(int)
    groups = generator.integers(0, 2, 200)
    return X, y, groups


def test_a_coefficient_of_a_sensitive_column_is_noticed() -> None:
    X, y, groups = logistic_example()
    joined = np.column_stack([X, groups])
    model = FairLogistic(2.0, sensitive_columns=[3], tol=1e-10).fit(joined, y)
    assert verify(model, joined, y).ok
    model.coef_ = model.coef_ + np.array([0.0, 0.0, 0.0, -1e-12])
    found = verify(model, joined, y)
    assert [claim.name for claim in found.failed] == ["features"]


def test_covariances_above_the_bound_are_noticed() -> None:
    """Just above and just below what the objective at 0 allows."""
    c = np.array([[1.0, 0.0]])
    form, null, weight = metric(c, 3.0), 6.0, 3.0
    limit = np.sqrt(2.0 * null / weight)
    inside = covariance_bound(form, np.array([0.999 * limit, 5.0]), null, 1e-4, weight)
    outside = covariance_bound(form, np.array([1.001 * limit, 5.0]), null, 1e-4, weight)
    assert (inside.status, outside.status) == (Status.HOLDS, Status.FAILS)
    two = metric(
        np.array([[1.0, 0.0], [0.0, 1.0]]), 3.0
    )  # the squares are added, not only the largest
    both = np.array([0.8 * limit, 0.8 * limit])
    assert covariance_bound(two, both, null, 1e-4, weight).status is Status.FAILS


@pytest.mark.parametrize("criterion", ["independence", "separation"])
def test_the_gap_is_that_of_the_stated_penalty(criterion: str) -> None:
    """A fit with another weight of the penalty, or without the intercept, is not the minimiser."""
    X, y, groups = logistic_example()
    model = FairLogistic(20.0, criterion=criterion, tol=1e-10).fit(X, y, sensitive=groups)
    for change in ({"fairness": 0.0}, {"fairness": 40.0}, {"C": 3.0}):
        forged = copy.deepcopy(model).set_params(**change)
        found = forged.verify(X, y, sensitive=groups, tol=1e-8)
        assert "duality gap" in [claim.name for claim in found.failed], change
    forged = copy.deepcopy(model).set_params(fit_intercept=False)
    found = forged.verify(X, y, sensitive=groups)["attributes"]
    assert "fit_intercept is False" in found.statement
    other = "separation" if criterion == "independence" else "independence"
    forged = copy.deepcopy(model).set_params(criterion=other)
    assert not forged.verify(X, y, sensitive=groups, tol=1e-8).ok


def test_the_bound_is_claimed_where_there_is_a_penalty() -> None:
    X, y, _ = logistic_example()
    signs, form = 2.0 * y - 1.0, metric(np.ones((1, 3)), 0.0)
    claims = logistic_claims(X, signs, form, np.zeros(3), 0.0, 1.0, 0.0, True, 1e-4, 0.0)
    assert [claim.name for claim in claims] == ["duality gap"]


# -------------------------------------------------------------------- Decorrelate


def decorrelated() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    attributes = np.eye(2)[generator.integers(0, 2, 400)]
    features = generator.normal(size=(400, 3)) + attributes[:, :1]
    model = Decorrelate().fit(features, sensitive=attributes[:, 0])
    return features, model.transform(features, sensitive=attributes[:, 0]), attributes


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_covariance_of_ten_floors_is_noticed(column: int) -> None:
    features, changed, attributes = decorrelated()
    honest = covariance_claim(features, changed, attributes, 1.0)
    assert honest.status is Status.HOLDS
    centred = attributes[:, 0] - attributes[:, 0].mean()
    size = np.abs(features[:, column]).max()
    forged = changed.copy()
    floor = 64.0 * EPS * (1.0 + np.sqrt(len(features))) * 2  # two attributes
    forged[:, column] += 10.0 * floor * size / np.sqrt((centred**2).mean()) * centred
    assert covariance_claim(features, forged, attributes, 1.0).status is Status.FAILS
    assert means_claim(features, forged, np.zeros(3)).status is Status.HOLDS


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_mean_moved_by_ten_floors_is_noticed(column: int) -> None:
    features, changed, attributes = decorrelated()
    honest = means_claim(features, changed, np.zeros(3))
    assert honest.status is Status.HOLDS
    forged = changed.copy()
    floor = 64.0 * EPS * (1.0 + np.sqrt(len(features)))
    forged[:, column] += 10.0 * floor * np.abs(features[:, column]).max()
    assert means_claim(features, forged, np.zeros(3)).status is Status.FAILS
    assert covariance_claim(features, forged, attributes, 1.0).status is Status.HOLDS


def test_each_attribute_and_the_share_alpha_count() -> None:
    features, changed, attributes = decorrelated()
    other = np.random.default_rng(4).normal(size=(len(features), 1))
    both = np.column_stack([attributes[:, :1], other + features[:, :1]])
    assert covariance_claim(features, changed, both, 1.0).status is Status.FAILS
    assert covariance_claim(features, changed, attributes, 0.9).status is Status.FAILS
    assert covariance_claim(features, features, attributes, 0.0).status is Status.HOLDS


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_nan_in_a_feature_never_holds(hole: float) -> None:
    """A NaN in the scale of a column used to drop the column from the claim."""
    features, changed, attributes = decorrelated()
    broken = changed.copy()
    broken[7, 1] = hole
    with np.errstate(invalid="ignore"):
        assert covariance_claim(features, broken, attributes, 1.0).status is Status.FAILS
        assert means_claim(features, broken, np.zeros(3)).status is Status.FAILS
        assert means_claim(features, changed, np.full(3, np.nan)).status is Status.FAILS
        both = features.copy()
        both[7, 1] = hole
        assert covariance_claim(both, broken, attributes, 1.0).status is Status.FAILS
        assert means_claim(both, broken, np.zeros(3)).status is Status.FAILS


# -------------------------------------------------------------------- attributes that are not those of a fit


def test_attributes_that_do_not_fit_together_are_named() -> None:
    X, y, groups = logistic_example()
    joined = np.column_stack([X, groups])
    models: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "rule": (GroupThresholds(random_state=0), X, {"sensitive": groups}),
        "rule of columns": (GroupThresholds(sensitive_columns=[3], random_state=0), joined, {}),
        "odds": (
            GroupThresholds(constraint="equalized_odds", random_state=0), X, {"sensitive": groups},
        ),
        "logistic": (FairLogistic(), X, {"sensitive": groups}),
        "logistic of columns": (FairLogistic(sensitive_columns=[-1]), joined, {}),
        "features": (Decorrelate(), X, {"sensitive": groups}),
    }  # fmt: skip
    forgeries: list[tuple[str, str, Any]] = [
        ("rule", "thresholds_", lambda v: v[:, :3]),
        ("rule", "thresholds_", lambda v: np.concatenate([v, v[:1]])),
        ("rule", "weights_", lambda v: v[:, :3]),
        ("rule", "multipliers_", lambda v: v.ravel()),
        ("rule", "seed_", lambda v: -1),
        ("rule", "seed_", lambda v: 0.5),
        ("rule", "sensitive_names_", lambda v: [v[0], v[0]]),
        ("rule", "sensitive_names_", lambda v: [0, 1]),
        ("rule", "sensitive_places_", lambda v: [0]),
        ("rule", "classes_", lambda v: np.array([0, 1, 2])),
        ("rule of columns", "group_values_", lambda v: v[::-1]),
        ("rule of columns", "group_values_", lambda v: np.concatenate([v, v[-1:]])),
        ("rule of columns", "group_values_", lambda v: v.ravel()),
        ("rule of columns", "sensitive_places_", lambda v: [0]),
        ("rule of columns", "sensitive_places_", lambda v: [9]),
        ("rule of columns", "sensitive_places_", lambda v: [3.0]),
        ("odds", "multipliers_", lambda v: v[:, :1]),
        ("logistic", "coef_", lambda v: v[:, :2]),
        ("logistic", "coef_", lambda v: np.concatenate([v, v])),
        ("logistic", "intercept_", lambda v: np.repeat(v, 2)),
        ("logistic", "n_iter_", lambda v: np.repeat(v, 2)),
        ("logistic", "n_iter_", lambda v: -v - 1),
        ("logistic", "n_iter_", lambda v: v + 1000),
        ("logistic", "n_iter_", lambda v: v + 0.5),
        ("logistic", "classes_", lambda v: np.array([0, 1, 2])),
        ("logistic of columns", "sensitive_places_", lambda v: [2]),
        ("features", "coef_", lambda v: v[:, :2]),
        ("features", "coef_", lambda v: v[:1]),
        ("features", "attribute_mean_", lambda v: v[:1]),
    ]
    for key, (model, rows, beside) in models.items():
        model.fit(rows, y, **beside)
        assert model.verify(rows, y, **beside).ok, key
    for key, name, change in forgeries:
        model, rows, beside = models[key]
        forged = copy.deepcopy(model)
        setattr(forged, name, change(getattr(model, name)))
        found = forged.verify(rows, y, **beside)
        claim = found["attributes"]
        assert claim.status is Status.FAILS, (key, name)
        assert name.removesuffix("_") in claim.statement, (key, name, claim.statement)
        assert "cannot be computed" not in claim.statement, (key, name, claim.statement)


# -------------------------------------------------------------------- audits


def test_a_gap_uses_the_outer_limits_of_different_groups() -> None:
    """The highest upper limit less the lowest lower limit of another group; the interval of one is no gap."""
    rate = {
        "value": np.array([0.5, 0.52, 0.48]),
        "low": np.array([0.1, 0.5, 0.46]),
        "high": np.array([0.95, 0.54, 0.5]),
    }
    found = gap(rate, [0, 1, 2])
    assert found["low"] == 0.0
    assert found["high"] == pytest.approx(0.95 - 0.46)
    assert found["observed"] == pytest.approx(0.04)
    apart = gap(
        {**rate, "low": np.array([0.8, 0.5, 0.1]), "high": np.array([0.9, 0.6, 0.2])}, [0, 1, 2]
    )
    assert apart["low"] == pytest.approx(0.8 - 0.2)
    assert apart["high"] == pytest.approx(0.9 - 0.1)


@pytest.mark.parametrize("wide", ["tpr", "fpr"])
def test_a_criterion_of_two_rates_has_the_larger_limits(wide: str) -> None:
    tpr = [[100, 300], [300, 100]] if wide == "tpr" else [[200, 200], [200, 200]]
    fpr = [[100, 300], [300, 100]] if wide == "fpr" else [[200, 200], [200, 200]]
    counts = np.array([[fpr[g], tpr[g]] for g in (0, 1)])
    rates = group_rates(counts, 0.05, 14)
    found, _ = group_gaps("x", ["a", "b"], rates, [0, 1], 30, 0.05)
    for end in ("low", "high", "observed"):
        assert found["separation"][end] == max(found[part][end] for part in ("tpr", "fpr"))
        assert found["separation"][end] == found[wide][end]


@pytest.mark.parametrize("side", ["too low", "too high"])
def test_calibration_is_refuted_on_either_side(side: str) -> None:
    """The deviation of one cell of four, beyond its limits in one direction only."""
    share = {"too low": 0.2, "too high": 0.8}[side]
    n = 400
    score = np.full(4 * n, 0.55)
    codes = np.repeat([0, 1], 2 * n)
    score[::2] = 0.35
    y = np.zeros(4 * n, dtype=np.int64)
    for group in (0, 1):
        for value in (0.35, 0.55):
            rows = np.flatnonzero((codes == group) & (score == value))
            right = share if (group, value) == (1, 0.55) else value
            y[rows[: round(right * n)]] = 1
    found = calibration_table(score, y, {"x": (["a", "b"], codes)}, {"x": [0, 1]}, 0.05, 30)
    entry = found["attributes"]["x"]
    assert entry["refuted"]
    assert entry["observed"] == pytest.approx(abs(share - 0.55))
    assert 0.05 < entry["low"] < entry["observed"] < entry["high"] < 0.5
    assert "0.5 to 0.6" in entry["groups"][0]
    even = calibration_table(
        np.full(n, 0.5), np.arange(n) % 2, {"x": (["a"], codes[:n])}, {"x": [0]}, 0.05, 30
    )["attributes"]["x"]
    assert not even["refuted"]
    assert even["low"] == 0.0 < even["high"]


def test_limits_of_calibration_hold_for_all_cells_and_unequal_probabilities() -> None:
    """More cells make wider limits; so does a sum of unequal Bernoulli variables (Hoeffding 1956)."""
    n = 60
    score, y = np.full(2 * n, 0.55), np.tile([0, 1], n)
    codes = np.repeat([0, 1], n)
    one = calibration_table(
        score[:n], y[:n], {"x": (["a"], codes[:n])}, {"x": [0]}, 0.05, 30
    )["attributes"]["x"]["cells"][0]  # fmt: skip
    two = calibration_table(score, y, {"x": (["a", "b"], codes)}, {"x": [0, 1]}, 0.05, 30)
    first = two["attributes"]["x"]["cells"][0]
    assert two["intervals"] == 2
    assert first["low"] < one["low"] < one["high"] < first["high"]
    low, high = clopper_pearson(n // 2, n, 0.05)
    assert one["low"] < low < high < one["high"]


def test_delta_is_shared_between_rates_and_calibration() -> None:
    """Half of it each where there are scores; all intervals of rates count, those of all rows included."""
    group = np.where(GROUP > 0, "b", "a")
    score = np.full(N, 0.45)
    plain = audit(Y, SCORE > 0.5, sensitive=group, delta=0.05)
    both = audit(Y, SCORE > 0.5, score, sensitive=group, delta=0.1)
    assert both.calibration is not None
    assert both.calibration["delta"] == 0.05
    assert both.gaps == plain.gaps
    hits, rows = int((SCORE > 0.5)[group == "a"].sum()), int((group == "a").sum())
    low, high = clopper_pearson(
        hits, rows, 0.05, models=7 * 3
    )  # seven rates, two groups and all rows
    found = plain.table[0]["rates"]["selection"]
    assert (found["low"], found["high"]) == (float(low), float(high))


@pytest.mark.spec("FAIR-1")
def test_limits_of_balanced_accuracy_are_means_over_both_groups() -> None:
    """A rule that is always right, or always wrong, on 40 rows of one group and 160 of the other."""
    sex = np.repeat([0, 1], [100, 100])
    test = np.repeat([0, 1], [40, 160])
    for truth, hits in ((test, test), (1 - test, np.zeros(0))):
        found = proxies(sex[:, None] + 0.0, sex, test=(test[:, None] + 0.0, truth))
        rows = [int((truth == code).sum()) for code in (0, 1)]
        limits = [clopper_pearson(n if len(hits) else 0, n, 0.05, models=3) for n in rows]
        assert found["balanced_accuracy"] == float(len(hits) > 0)
        assert found["balanced_low"] == pytest.approx(np.mean([low for low, _ in limits]))
        assert found["balanced_high"] == pytest.approx(np.mean([high for _, high in limits]))


def test_an_interval_wider_than_half_the_range_is_uninformative() -> None:
    y = np.tile([0, 1], 20)
    decision = np.tile([0, 0, 1, 1], 10)
    found = audit(y, decision, sensitive=np.repeat(["a", "b"], 20), min_rows=5)
    claim = found.certificate["independence (sensitive)"]
    assert claim.status is Status.UNINFORMATIVE
    assert claim.mark == "○"
    assert "times as many rows are needed" in claim.statement
    assert found.criteria["independence (sensitive)"] == "not decided"
