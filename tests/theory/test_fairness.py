"""The spec's chapter on fairness, item by item: proxies, the three criteria, their conflict, the remedies."""

import math

import numpy as np
import pytest

from surefit.fair import (
    Decorrelate,
    GroupThresholds,
    audit,
    fair_path,
    incompatibility,
    proxies,
)
from surefit.fair.criteria import group_rates


def people(n=6000, seed=0):
    """A sensitive group, a feature that goes with it, one that does not, and a label."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.3, "a", "b")
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.5 * (group == "a")
    y = (X @ [1.0, 1.0, -0.5, 0.0] + rng.normal(size=n) > 0.5).astype(int)
    return X, y, group


@pytest.mark.spec("FAIR-1")
def test_the_group_is_predicted_from_the_other_columns_far_above_chance():
    X, _, group = people()
    found = proxies(X, group, feature_names=["proxy", "p", "q", "r"])
    # shifts of 1.5 standard deviations: the best rule has balanced accuracy Phi(0.75) = 0.773
    best = 0.5 * (1 + math.erf(0.75 / math.sqrt(2)))
    assert found["above_chance"]
    assert found["balanced_low"] <= best <= found["balanced_high"]
    assert found["balanced_low"] > 0.7
    assert [c["name"] for c in found["columns"] if c["p_value"] < 0.01] == ["proxy"]
    assert not proxies(X[:, 1:], group)["above_chance"]


@pytest.mark.spec("FAIR-1")
def test_error_by_group_has_a_hoeffding_radius_that_is_larger_for_the_small_group():
    X, y, group = people()
    found = audit(y, (X[:, 0] > 0.5).astype(int), sensitive=group)
    small, large = (row["rates"]["error"] for row in found.table)
    intervals = 7 * 3  # rates, and two groups with all rows
    for rate in (small, large):
        expected = math.sqrt(math.log(2 * intervals / 0.05) / (2 * rate["n"]))
        assert rate["hoeffding"] == pytest.approx(expected, rel=1e-12)
        assert rate["value"] - rate["hoeffding"] < rate["low"] < rate["high"]
        assert rate["high"] < rate["value"] + rate["hoeffding"]
    assert small["hoeffding"] > large["hoeffding"]


@pytest.mark.spec("FAIR-2")
def test_rate_difference_with_its_hoeffding_radius():
    decision = np.repeat([1, 0, 1, 0], [300, 700, 100, 400])
    group = np.repeat(["a", "b"], [1000, 500])
    found = audit(np.tile([0, 1], 750), decision, sensitive=group)
    gap = found.gaps["sensitive"]["independence"]
    assert gap["observed"] == pytest.approx(0.3 - 0.2, abs=1e-15)
    assert gap["groups"] == ["a", "b"]
    radius = math.sqrt(math.log(2 / 0.05) / 2 * (1 / 1000 + 1 / 500))
    assert gap["hoeffding"] == pytest.approx(radius, rel=1e-12)
    assert gap["low"] < gap["observed"] < gap["high"]
    (pair,) = found.pairs("selection")
    assert pair["observed"] == gap["observed"]
    assert pair["hoeffding"] == gap["hoeffding"]


@pytest.mark.spec("FAIR-3")
def test_confusion_table_of_each_group_and_the_perfect_predictor():
    rng = np.random.default_rng(1)
    group, y = rng.choice(["a", "b", "c"], 900), rng.integers(0, 2, 900)
    decision = np.where(rng.random(900) < 0.7, y, 1 - y)
    for row in audit(y, decision, sensitive=group).table:
        inside = group == row["group"]
        table = {
            "tp": (y == 1) & (decision == 1), "fp": (y == 0) & (decision == 1),
            "fn": (y == 1) & (decision == 0), "tn": (y == 0) & (decision == 0),
        }  # fmt: skip
        assert row["counts"] == {name: int((inside & rows).sum()) for name, rows in table.items()}
    perfect = audit(y, y, sensitive=group)
    assert perfect.gaps["sensitive"]["separation"]["observed"] == 0.0
    assert perfect.gaps["sensitive"]["sufficiency"]["observed"] == 0.0
    assert all(row["rates"]["tpr"]["value"] == 1.0 for row in perfect.table)
    assert all(row["rates"]["fpr"]["value"] == 0.0 for row in perfect.table)


@pytest.mark.spec("FAIR-4")
def test_the_true_conditional_probability_is_calibrated_in_every_group():
    # rows in exactly the shares of P(Y=1 | X, A), so that nothing is left to chance
    cells = [
        ("a", 0.15, 200),
        ("a", 0.55, 400),
        ("b", 0.35, 200),
        ("b", 0.55, 200),
        ("b", 0.95, 100),
    ]
    group = np.concatenate([[g] * n for g, _, n in cells])
    score = np.concatenate([np.full(n, r) for _, r, n in cells])
    y = np.concatenate([np.arange(n) < round(r * n) for _, r, n in cells]).astype(int)
    found = audit(y, (score > 0.5).astype(int), score, sensitive=group)
    table = found.calibration["attributes"]["sensitive"]
    assert table["observed"] <= 200 * np.finfo(float).eps  # a sum of 400 numbers
    assert not table["refuted"]
    # the same score without A is the mean over groups: no longer calibrated in each
    blind = np.where(score < 0.5, 0.25, score)
    blind = np.where(
        group == "a", np.where(score < 0.5, 0.45, blind), np.where(score < 0.5, 0.05, blind)
    )
    worse = audit(y, (blind > 0.5).astype(int), blind, sensitive=group)
    assert worse.calibration["attributes"]["sensitive"]["refuted"]
    assert worse.calibration["attributes"]["sensitive"]["observed"] == pytest.approx(0.3)


@pytest.mark.spec("FAIR-5")
def test_equal_ppv_and_fnr_force_the_false_positive_rates():
    found = incompatibility([0.5, 0.2], ppv=0.8, fnr=0.2, groups=["a", "b"])
    np.testing.assert_allclose(found["fpr"], [0.20, 0.05], rtol=1e-14)
    assert found["degenerate"] is None
    assert "0.200 and 0.050" in found["statement"]
    assert incompatibility([0.3, 0.3], 0.8, 0.2)["degenerate"] == "equal base rates"
    assert incompatibility([0.5, 0.2], 1.0, 0.0)["degenerate"] == "perfect prediction"
    np.testing.assert_array_equal(incompatibility([0.5, 0.2], 1.0, 0.0)["fpr"], [0.0, 0.0])
    assert not incompatibility([0.9, 0.2], ppv=0.3, fnr=0.0)["possible"]


@pytest.mark.spec("FAIR-5")
def test_the_identity_holds_in_every_confusion_table():
    counts = np.random.default_rng(2).integers(1, 500, size=(200, 2, 2))
    rates = {name: part["value"] for name, part in group_rates(counts, 0.05, 1).items()}
    p, ppv, fnr = rates["base_rate"], rates["ppv"], rates["fnr"]
    np.testing.assert_allclose(p / (1 - p) * (1 - ppv) / ppv * (1 - fnr), rates["fpr"], rtol=1e-10)


@pytest.mark.spec("FAIR-5")
def test_an_audit_states_the_conflict_with_its_own_numbers():
    X, y, group = people()
    found = audit(y, (X[:, 0] > 0.5).astype(int), sensitive={"group": group})
    claim = found.certificate["incompatibility (group)"]
    a, b = (y[group == g].mean() for g in "ab")
    assert f"base rates are {a:.3f} (a) and {b:.3f} (b)" in claim.statement
    assert "cannot both hold" in claim.statement
    same = audit(y, y, sensitive={"group": np.tile(["a", "b"], 3000)})
    assert "cannot both hold" not in same.certificate["incompatibility (group)"].statement


@pytest.mark.spec("FAIR-6")
def test_decorrelated_features_have_no_covariance_with_the_group():
    X, _, group = people()
    changed = Decorrelate().fit_transform(X, sensitive=group)
    a = (group == "a") - (group == "a").mean()
    covariance = a @ (changed - changed.mean(axis=0)) / len(a)
    # a sum of n products: rounding of eps times their size
    np.testing.assert_allclose(covariance, 0.0, atol=len(a) ** 0.5 * np.finfo(float).eps * 10)
    assert abs(a @ X[:, 0]) / len(a) > 0.2


@pytest.mark.spec("FAIR-6")
@pytest.mark.parametrize("criterion", ["independence", "separation"])
def test_the_gap_falls_along_the_path_of_the_penalty(criterion):
    X, y, group = people()
    models = fair_path(
        X, y, fairness=[0, 0.1, 1, 10, 100], sensitive=group, criterion=criterion, tol=1e-10
    )
    rows = [np.full(len(y), True)] if criterion == "independence" else [y == 0, y == 1]
    squares, losses = [], []
    for model in models:
        z = model.decision_function(X)
        cov = [np.cov(z[r], group[r] == "a", bias=True)[0, 1] for r in rows]
        squares.append(2 * float(np.square(cov).sum()))  # both indicators
        signs = 2.0 * y - 1.0
        loss = np.logaddexp(0, -signs * z).sum() + 0.5 * float(np.square(model.coef_).sum())
        losses.append(loss)
        assert model.certificate_.ok
    assert np.all(np.diff(squares) < 0)  # strictly: the theorem says "never rises"
    assert np.all(np.diff(losses) > 0)  # and this is what it costs
    assert squares[-1] < 1e-3 * squares[0]
    gaps = [
        audit(y, m.predict(X), sensitive=group).gaps["sensitive"][criterion]["observed"]
        for m in (models[0], models[-1])
    ]
    assert gaps[1] < 0.5 * gaps[0]


@pytest.mark.spec("FAIR-6")
@pytest.mark.parametrize(
    ("constraint", "labels"),
    [
        ("demographic_parity", [(0, 1)]),
        ("equal_opportunity", [(1,)]),
        ("predictive_equality", [(0,)]),
        ("equalized_odds", [(0,), (1,)]),
    ],
)
def test_post_processed_rates_are_equal_on_the_fitting_set(constraint, labels):
    X, y, group = people()
    group = np.where(np.arange(len(y)) % 7 == 0, "c", group)
    model = GroupThresholds(constraint=constraint, random_state=0).fit(X, y, sensitive=group)
    accept = model.predict_proba(X, sensitive=group)[:, 1]
    for kept in labels:
        rows = np.isin(y, kept)
        rates = [accept[rows & (group == g)].mean() for g in "abc"]
        assert np.ptp(rates) < 1e-12
    assert model.certificate_["equal rates"].observed < 1e-12
