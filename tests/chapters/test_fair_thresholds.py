"""Group thresholds: the exact optimum, against linear programming and enumeration; draws; certificates."""

import copy
import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import surefit
from surefit import _tree
from surefit.fair import GroupThresholds
from surefit.fair._curves import CONSTRAINTS, curves
from surefit.fair._threshold_claims import expected
from surefit.linear_model import LogisticRegression
from surefit.testing import check_certificate


def sample(seed, n, groups, digits=2):
    rng = np.random.default_rng(seed)
    g = np.r_[np.repeat(np.arange(groups), 2), rng.integers(0, groups, n - 2 * groups)]
    score = np.round(rng.random(n), digits)
    y = (rng.random(n) < np.clip(score * rng.uniform(0.4, 1.3) + 0.1 * g, 0, 1)).astype(int)
    y[: 2 * groups] = np.tile([0, 1], groups)  # both labels in every group
    return score, y, g


def least_cost(found, constraint, costs):
    """The same problem as a linear program over mixtures of all thresholds."""
    sizes = [len(curve.tp) for curve in found]
    ends = np.cumsum([0, *sizes])
    rows, right = [], []
    for k in range(len(found)):
        row = np.zeros(ends[-1])
        row[ends[k] : ends[k + 1]] = 1
        rows.append(row)
        right.append(1.0)
    for part in range(len(found[0].rates(constraint))):
        for k in range(1, len(found)):
            row = np.zeros(ends[-1])
            row[: ends[1]] = found[0].rates(constraint)[part]
            row[ends[k] : ends[k + 1]] = -found[k].rates(constraint)[part]
            rows.append(row)
            right.append(0.0)
    cost = np.concatenate([-curve.gain(costs) for curve in found])
    return linprog(cost, A_eq=np.array(rows), b_eq=right, method="highs").fun


def cost_of(model, found, costs):
    tp, fp = expected(found, model.thresholds_, model.weights_)
    return costs[0] * fp.sum() + costs[1] * (sum(c.positives for c in found) - tp.sum())


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("costs", [(1, 1), (1, 4), (2.5, 0.5), (0, 1), (1, 0)])
def test_the_randomised_optimum_equals_linear_programming(constraint, costs):
    for seed in range(12):
        score, y, g = sample(seed, 30 + 10 * seed, 1 + seed % 4, digits=1 + seed % 3)
        model = GroupThresholds("passthrough", constraint=constraint, objective=costs)
        model.fit(score[:, None], y, sensitive=g)
        found = curves(score, y, g, g.max() + 1)
        best = least_cost(found, constraint, costs)
        assert cost_of(model, found, costs) == pytest.approx(best, abs=1e-7)  # of the LP solver
        assert model.certificate_.ok


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_the_deterministic_optimum_equals_enumeration(constraint, tolerance):
    for seed in range(8):
        score, y, g = sample(seed, 18, 2 + seed % 2, digits=1)
        model = GroupThresholds(
            "passthrough",
            constraint=constraint,
            randomize=False,
            tolerance=tolerance,
            certify="full",
        ).fit(score[:, None], y, sensitive=g)
        found = curves(score, y, g, g.max() + 1)
        best = np.inf
        for pick in itertools.product(*[range(len(curve.tp)) for curve in found]):
            rates = [[x[k] for x in c.rates(constraint)] for c, k in zip(found, pick, strict=True)]
            if np.ptp(rates, axis=0).max() <= tolerance + 1e-12:
                cost = -sum(c.gain((1, 1))[k] for c, k in zip(found, pick, strict=True))
                best = min(best, cost)
        assert cost_of(model, found, (1, 1)) == best
        assert all(claim.status is surefit.Status.HOLDS for claim in model.certificate_.claims)
        assert set(np.unique(model.predict_proba(score[:, None], sensitive=g))) <= {0.0, 1.0}


def test_certificates_notice_a_nudge_and_other_data():
    score, y, g = sample(3, 400, 3, digits=6)
    Z = np.column_stack([g, score])
    for constraint in CONSTRAINTS:
        model = GroupThresholds("passthrough", constraint=constraint, sensitive_columns=[0])
        check_certificate(model, Z, y, attributes=("weights_", "multipliers_"))
        model.fit(Z, y)
        moved = copy.deepcopy(model)
        moved.thresholds_ = model.thresholds_ - 0.05 * (np.arange(3) == 1)[:, None]
        assert not surefit.verify(moved, Z, y).ok
        other = copy.deepcopy(model)
        other.weights_ = np.roll(model.weights_, 1, axis=0)
        other.thresholds_ = np.roll(model.thresholds_, 1, axis=0)
        assert not surefit.verify(other, Z, y).ok
    single = GroupThresholds("passthrough", randomize=False, sensitive_columns=[0]).fit(Z, y)
    assert single.certificate_.ok
    single.thresholds_ = np.where(np.arange(3)[:, None] == 0, np.inf, single.thresholds_)
    assert not surefit.verify(single, Z, y).ok


def test_rounding_of_the_scores_changes_no_decision_and_no_claim():
    """Another machine sums in another order: scores that differ in their last bits."""
    score, y, g = sample(7, 500, 3, digits=6)
    rng = np.random.default_rng(0)
    for randomize in (True, False):
        model = GroupThresholds("passthrough", randomize=randomize).fit(
            score[:, None], y, sensitive=g
        )
        noisy = score * (1 + 4e-16 * rng.integers(-2, 3, len(score)))
        assert (noisy != score).any()
        again = model.verify(noisy[:, None], y, sensitive=g)
        assert [claim.name for claim in again.failed] == ["data"]
        np.testing.assert_array_equal(
            model.predict_proba(noisy[:, None], sensitive=g),
            model.predict_proba(score[:, None], sensitive=g),
        )


def test_labels_beside_x_are_verified_through_the_model():
    score, y, g = sample(4, 200, 2)
    names = np.array(["left", "right"])[g]
    model = GroupThresholds("passthrough").fit(score[:, None], y, sensitive=names)
    assert model.verify(score[:, None], y, sensitive=names).ok
    swapped = model.verify(score[:, None], y, sensitive=names[::-1])
    assert swapped["data"].status is surefit.Status.FAILS
    with pytest.raises(ValueError, match="give sensitive="):
        surefit.verify(model, score[:, None], y)


def test_a_pipeline_with_the_group_as_a_column_and_any_classifier():
    rng = np.random.default_rng(0)
    g = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 3)) + g[:, None]
    y = np.where(X.sum(axis=1) + rng.normal(size=800) > 1.5, "yes", "no")
    Z = np.column_stack([X, g])
    for inner in (None, Peer(), make_pipeline(StandardScaler(), LogisticRegression())):
        model = GroupThresholds(inner, sensitive_columns=[3], random_state=0).fit(Z, y)
        accept = model.predict_proba(Z)[:, 1]
        assert abs(accept[g == 0].mean() - accept[g == 1].mean()) < 1e-12
        assert model.certificate_.ok
        assert set(model.predict(Z)) == {"no", "yes"}
    fitted = Peer().fit(X, y)
    kept = GroupThresholds(fitted, prefit=True, sensitive_columns=[3]).fit(Z, y)
    assert kept.estimator_ is fitted


def test_draws_belong_to_rows_or_to_calls():
    rng = np.random.default_rng(0)
    n = 4000
    score, g = rng.random(n), np.repeat([0, 1], n // 2)
    y = (rng.random(n) < np.where(g == 1, score, score**3)).astype(int)
    Z = np.column_stack([g, score])
    model = GroupThresholds(
        "passthrough", constraint="equalized_odds", sensitive_columns=[0], random_state=1
    ).fit(Z, y)
    accept = model.predict_proba(Z)[:, 1]
    drawn = (accept > 0) & (accept < 1)
    assert drawn.sum() > 500
    decision = model.predict(Z)
    np.testing.assert_array_equal(decision, model.predict(Z))
    np.testing.assert_array_equal(decision[::7], model.predict(Z[::7]))
    # Bernoulli draws: the sum is within five standard deviations of its mean
    spread = np.sqrt((accept * (1 - accept)).sum())
    assert abs(decision.sum() - accept.sum()) < 5 * spread
    again = copy.deepcopy(model).set_params(draws="independent", random_state=None)
    assert (again.predict(Z) != again.predict(Z)).any()
    assert model.score(Z, y) == pytest.approx(np.where(y == 1, accept, 1 - accept).mean())


def test_costs_move_the_rule_and_balanced_accuracy_weighs_the_labels():
    score, y, g = sample(5, 600, 2, digits=4)
    rates = []
    for objective in ((10, 1), "accuracy", (1, 10)):
        model = GroupThresholds("passthrough", objective=objective).fit(
            score[:, None], y, sensitive=g
        )
        rates.append(model.predict_proba(score[:, None], sensitive=g)[:, 1].mean())
    assert rates[0] < rates[1] < rates[2]
    negatives, positives = (y == 0).sum(), (y == 1).sum()
    one = GroupThresholds("passthrough", objective="balanced_accuracy").fit(
        score[:, None], y, sensitive=g
    )
    two = GroupThresholds("passthrough", objective=(600 / 2 / negatives, 600 / 2 / positives)).fit(
        score[:, None], y, sensitive=g
    )
    np.testing.assert_array_equal(one.thresholds_, two.thresholds_)


def test_a_saved_rule_decides_and_certifies_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(_tree.CLASSES, "GroupThresholds", "surefit.fair:GroupThresholds")
    score, y, g = sample(6, 300, 3)
    X = np.column_stack([score, score**2])
    model = GroupThresholds(constraint="equalized_odds", random_state=0).fit(X, y, sensitive=g)
    path = tmp_path / "rule.surefit"
    surefit.save(model, path)
    loaded = surefit.load(path)
    np.testing.assert_array_equal(loaded.predict(X, sensitive=g), model.predict(X, sensitive=g))
    assert loaded.verify(X, y, sensitive=g).ok


@parametrize_with_checks(
    [
        GroupThresholds(sensitive_columns=[], random_state=0),
        GroupThresholds(sensitive_columns=[], randomize=False, constraint="equal_opportunity"),
        GroupThresholds(sensitive_columns=[], constraint="equalized_odds", certify="full"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
