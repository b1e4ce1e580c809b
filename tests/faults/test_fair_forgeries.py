"""Forged fairness remedies and audits: every attribute that a claim rests on is nudged, which is noticed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from surefit.fair import Decorrelate, FairLogistic, GroupThresholds, audit, incompatibility, proxies
from surefit.linear_model import LogisticRegression

RNG = np.random.default_rng(0)
N = 400
GROUP = RNG.choice(["a", "b", "c"], N)
X = RNG.normal(size=(N, 3)) + (GROUP == "a")[:, None]
Y = (X[:, 0] + RNG.normal(size=N) > 0.5).astype(int)
JOINED = np.column_stack([X, GROUP == "a", GROUP == "b"])

MODELS: dict[str, Any] = {
    "randomised": GroupThresholds(random_state=0),
    "odds": GroupThresholds(constraint="equalized_odds", random_state=0),
    "single": GroupThresholds(randomize=False, tolerance=0.03, random_state=0),
    "independence": FairLogistic(5.0, tol=1e-10),
    "separation": FairLogistic(5.0, criterion="separation", tol=1e-10),
    "sensitive columns": FairLogistic(5.0, sensitive_columns=[3, 4], tol=1e-10),
    "decorrelated": Decorrelate(),
    "half decorrelated": Decorrelate(alpha=0.5),
    "decorrelated from columns": Decorrelate(sensitive_columns=[3, 4]),
}


def given(model: Any) -> tuple[Any, dict[str, Any]]:
    return (X, {"sensitive": GROUP}) if model.sensitive_columns is None else (JOINED, {})


def fitted(name: str) -> tuple[Any, Any]:
    """A model, and its verification as a function of the model."""
    model = copy.deepcopy(MODELS[name])
    rows, beside = given(model)
    model.fit(rows, Y, **beside)
    return model, lambda m: m.verify(rows, Y, tol=1e-10, **beside)


@pytest.mark.spec("FAIR-6")
@pytest.mark.parametrize("name", MODELS)
def test_every_number_that_decides_is_pinned_down(name: str) -> None:
    """Each entry of each fitted array, moved by a thousandth of its size and at least a thousandth."""
    model, verified = fitted(name)
    assert verified(model).ok
    pinned = {
        "GroupThresholds": ["weights_", "classes_"],
        "FairLogistic": ["coef_", "intercept_", "classes_"],
        "Decorrelate": ["coef_", "attribute_mean_"],
    }[type(model).__name__]
    for attribute in pinned:
        value = np.asarray(getattr(model, attribute))
        for k in range(value.size):
            forged, moved = copy.deepcopy(model), value.astype(float)
            moved.flat[k] += 1e-3 * (1.0 + abs(moved.flat[k]))
            setattr(forged, attribute, moved)
            assert not verified(forged).ok, (attribute, k)


def test_thresholds_beyond_a_score_are_noticed() -> None:
    """A threshold that another row passes makes another rule."""
    model, verified = fitted("randomised")
    for g, k in np.argwhere(np.isfinite(model.thresholds_) & (model.weights_ > 0)):
        for move in (-0.2, 0.2):
            forged = copy.deepcopy(model)
            forged.thresholds_[g, k] += move
            assert not verified(forged).ok


@pytest.mark.spec("FAIR-6")
def test_forged_multipliers_only_weaken_the_claim() -> None:
    """Whatever the dual point, what it proves is true: the least cost lies above the bound."""
    model, verified = fitted("randomised")
    least = float(verified(model)["optimal rule"].observed)
    for seed in range(200):
        forged = copy.deepcopy(model)
        forged.multipliers_ = forged.multipliers_ + np.random.default_rng(seed).normal(
            scale=10.0 ** (seed % 5 - 2), size=model.multipliers_.shape
        )
        assert verified(forged)["optimal rule"].observed >= least - 1e-9


def test_a_single_threshold_may_not_be_drawn() -> None:
    """Weights of one half each on two copies of a threshold decide alike, and are no single threshold."""
    model, verified = fitted("single")
    model.thresholds_[:, 1] = model.thresholds_[:, 0]
    model.weights_[:, :2] = 0.5
    assert not verified(model).ok


def test_scores_of_a_forged_estimator_are_noticed() -> None:
    """Thresholds that are the best for scores of other coefficients, so that the rule itself is sound."""
    honest, verified = fitted("randomised")
    forged = copy.deepcopy(honest)
    forged.estimator_.coef_ = forged.estimator_.coef_ * [1.0, -1.0, 5.0]
    other = GroupThresholds(forged.estimator_, prefit=True, random_state=0)
    other.fit(X, Y, sensitive=GROUP)
    for name in ("thresholds_", "weights_", "multipliers_"):
        setattr(forged, name, getattr(other, name))
    found = verified(forged)
    assert [claim.name for claim in found.failed] == ["scores"]
    assert verified(honest)["scores"].status.name == "HOLDS"
    without = GroupThresholds(LogisticRegression().fit(X, Y), prefit=True, random_state=0)
    assert "scores" not in without.fit(X, Y, sensitive=GROUP).certificate_


def test_draws_are_those_of_the_random_state() -> None:
    """The seed decides whom a drawn rule accepts; whoever gives an integer fixes it."""
    model, verified = fitted("randomised")
    model.seed_ += 1
    [claim] = verified(model).failed
    assert claim.name == "attributes"
    assert "not the one that random_state=0 gives" in claim.statement
    free = GroupThresholds(random_state=np.random.RandomState(0)).fit(X, Y, sensitive=GROUP)
    assert verified(free).ok


# -------------------------------------------------------------------- sentences of an audit


@pytest.mark.spec("FAIR-3")
def test_a_gap_of_two_rates_says_in_which_groups_each_was_measured() -> None:
    """Group c has hardly a positive: its true positive rate is unknown, the false one sets the gap."""
    sizes = {"a": (200, 200), "b": (200, 200), "c": (400, 5)}  # negatives, positives
    group = np.repeat(list(sizes), [sum(pair) for pair in sizes.values()])
    y = np.concatenate([np.repeat([0, 1], pair) for pair in sizes.values()])
    decision = np.where(group == "c", 1, y)  # c: every negative is accepted
    found = audit(y, decision, sensitive=group)
    entry = found.gaps["sensitive"]["separation"]
    assert entry["each"] == {"tpr": 2, "fpr": 3}
    assert entry["over"] == ["a", "b", "c"]
    statement = found.certificate["separation (sensitive)"].statement
    assert "(2 for the true positive rate, 3 for the false positive rate)" in statement
    assert entry["low"] > 0.9  # of c, which a sentence about a and b would not allow


@pytest.mark.spec("FAIR-5")
def test_a_rule_that_is_always_wrong_meets_all_criteria() -> None:
    """Base rates differ, separation and sufficiency both hold: the exception has to be named."""
    group = np.repeat(["a", "b"], [500, 500])
    y = np.concatenate([np.repeat([0, 1], [400, 100]), np.repeat([0, 1], [100, 400])])
    found = audit(y, 1 - y, sensitive=group)
    assert found.gaps["sensitive"]["base_rate"]["low"] > 0.3
    for criterion in ("separation", "sufficiency"):
        assert found.gaps["sensitive"][criterion]["observed"] == 0.0
    statement = incompatibility([0.2, 0.8], ppv=0.5, fnr=0.5)["statement"]
    assert statement.endswith("unless the prediction is perfect or always wrong")


def test_an_audit_names_its_positive_label() -> None:
    y = np.where(Y == 1, "granted", "refused")
    found = audit(y, y, sensitive=GROUP, positive="granted")
    assert all(
        "positive is granted" in c.statement for c in found.claims if "between 0" in c.statement
    )
    assert any("positive is granted" in claim.statement for claim in found.claims)


@pytest.mark.spec("FAIR-1")
def test_printed_limits_of_proxies_contain_the_limits() -> None:
    import re

    for seed in range(20):
        generator = np.random.default_rng(seed)
        sex = generator.integers(0, 2, 150)
        rows = generator.normal(size=(150, 2)) + 0.7 * sex[:, None]
        test = generator.normal(size=(60, 2)), generator.integers(0, 2, 60)
        found = proxies(rows, sex, test=test)
        assert (found["n_train"], found["n_test"]) == (150, 60)
        low, high = re.search(r"between ([\d.]+) and ([\d.]+)", found["statement"]).groups()
        assert float(low) <= found["balanced_low"] <= found["balanced_high"] <= float(high)


def test_rows_to_test_proxies_on_must_fit() -> None:
    with pytest.raises(ValueError, match="test must have 3 columns"):
        proxies(X, GROUP, test=(X[:, :2], GROUP))
