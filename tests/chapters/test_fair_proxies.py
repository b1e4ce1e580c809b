"""Proxies: strengths are known statistics, p values hold for any distribution, limits cover the truth."""

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats.contingency import association

from surefit.fair import proxies


def test_strength_of_a_column_is_the_squared_correlation_and_of_indicators_cramers_v_squared():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 2000)
    job = np.where(rng.random(2000) < 0.3, group, rng.integers(0, 4, 2000))
    X = np.column_stack([rng.normal(size=2000) + 0.5 * group, *(job == k for k in range(4))])
    found = proxies(
        X, group, feature_names=["x", *"abcd"], groups_of_features={"job": [1, 2, 3, 4]}
    )
    strength = {column["name"]: column["strength"] for column in found["columns"]}
    assert set(strength) == {"x", "job"}
    assert strength["x"] == pytest.approx(np.corrcoef(X[:, 0], group)[0, 1] ** 2, rel=1e-10)
    table = np.array([[np.sum((job == k) & (group == g)) for g in (0, 1)] for k in range(4)])
    assert strength["job"] == pytest.approx(association(table, "cramer") ** 2, rel=1e-8)


def test_p_values_of_columns_that_know_nothing_are_rarely_small():
    """Heavy tails, a spike, a constant: the least p value is below 0.2 in a fifth of draws at most."""
    rng = np.random.default_rng(1)
    below = 0
    for _ in range(300):
        n = 120
        spike = np.zeros(n)
        spike[0] = 1e6
        X = np.column_stack(
            [
                rng.standard_cauchy(n),
                rng.integers(0, 2, n),
                spike,
                np.ones(n),
                rng.exponential(size=n),
            ]
        )
        group = rng.permutation(np.repeat(["a", "b", "c"], [10, 30, 80]))
        below += min(c["p_value"] for c in proxies(X, group)["columns"]) < 0.2
    assert below <= binom.ppf(0.999, 300, 0.2)


def test_a_column_that_tells_all_has_a_small_p_value_and_no_error():
    group = np.repeat(["a", "b"], 200)
    found = proxies((group == "b")[:, None].astype(float), group)
    assert found["error"] == 0.0
    assert found["balanced_accuracy"] == 1.0
    assert found["columns"][0]["strength"] == pytest.approx(1.0)
    assert found["columns"][0]["p_value"] < 1e-10


def test_more_than_two_groups_and_a_group_that_is_too_rare_to_test():
    rng = np.random.default_rng(2)
    group = rng.choice(["a", "b", "c"], 3000, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(3000, 2))
    X[:, 1] += 2.0 * (group == "c")
    found = proxies(X, group)
    assert found["group"] == "a"  # the most frequent, against the rest
    assert found["columns"][0]["group"] == "c"
    rare = proxies(X[:50], np.r_[["z"], ["a"] * 49])
    assert rare["error"] is None
    assert not rare["above_chance"]
    assert "nothing can be predicted" in rare["statement"]


def test_limits_of_the_balanced_accuracy_cover_the_truth():
    """Known shifts: the classifier is close to the best one, whose balanced accuracy is Phi(1/2)."""
    best, missed = 0.6914624612740131, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 2, 1000)
        found = proxies(rng.normal(size=(1000, 1)) + group[:, None], group, random_state=seed)
        missed += found["balanced_low"] > best  # no rule is better, so no lower limit may be above
    assert missed <= binom.ppf(0.999, 200, 0.05)
