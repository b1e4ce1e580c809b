"""Simultaneous intervals of an audit: they miss no more often than they say, small groups included."""

import numpy as np
import pytest
from scipy.stats import binom

from surefit.fair import audit
from surefit.fair.criteria import group_rates

DELTA, DRAWS = 0.1, 2000
# P(group, label, decision): a large group, a middling one, a small one with extreme rates
SHARES = {"a": 0.80, "b": 0.14, "c": 0.06}
CELLS = {
    "a": [[0.45, 0.15], [0.10, 0.30]],
    "b": [[0.60, 0.10], [0.15, 0.15]],
    "c": [[0.88, 0.03], [0.04, 0.05]],
}
TRUTH = {
    name: part["value"]
    for name, part in group_rates(
        np.round(1e6 * np.array(list(CELLS.values()))).astype(np.int64), 0.5, 1
    ).items()
}
JOINT = np.array([SHARES[g] * np.array(CELLS[g]) for g in CELLS])


@pytest.mark.spec("FAIR-2")
@pytest.mark.spec("FAIR-3")
@pytest.mark.parametrize("n", [150, 1500])
def test_all_intervals_of_an_audit_hold_at_once_as_often_as_stated(n):
    rng = np.random.default_rng(n)
    missed = 0
    for counts in rng.multinomial(n, JOINT.ravel(), size=DRAWS).reshape(DRAWS, 3, 2, 2):
        group, y, decision = np.repeat(
            np.indices(counts.shape).reshape(3, -1), counts.ravel(), axis=1
        )
        found = audit(y, decision, sensitive=group, delta=DELTA, min_rows=5)
        missed += not _covers(found)
    # 99.9 % of what exact intervals of this level would miss
    assert missed <= binom.ppf(0.999, DRAWS, DELTA)


def _covers(found):
    """Whether every stated rate, gap and difference of this audit is right."""
    for row in found.table:
        for rate, entry in row["rates"].items():
            true = TRUTH[rate][int(row["group"])]
            if row["measured"] and not entry["low"] <= true <= entry["high"]:
                return False
    gaps = found.gaps["sensitive"]
    for rate, values in TRUTH.items():
        over = [int(g) for g in gaps[rate]["over"]]
        if len(over) > 1:
            true = np.ptp(values[over])
            if not gaps[rate]["low"] - 1e-12 <= true <= gaps[rate]["high"] + 1e-12:
                return False
    for pair in found.pairs("selection"):
        a, b = (TRUTH["selection"][int(g)] for g in pair["groups"])
        if not pair["low"] <= a - b <= pair["high"]:
            return False
    return True


@pytest.mark.spec("FAIR-4")
def test_a_calibrated_score_is_rarely_refuted():
    rng = np.random.default_rng(5)
    refuted = 0
    for _ in range(400):
        score, group = rng.beta(1, 3, size=600), rng.integers(0, 3, 600)
        y = (rng.random(600) < score).astype(int)
        found = audit(y, (score > 0.5).astype(int), score, sensitive=group, delta=0.2, min_rows=10)
        refuted += found.calibration["attributes"]["sensitive"]["refuted"]
    assert refuted <= binom.ppf(0.999, 400, 0.1)  # half of delta is the calibration's


def test_the_bootstrap_misses_where_a_group_is_small_and_this_does_not():
    """Percentile intervals of resampled rows, for 400 rows at rate 0.5 and 15 rows at rate 0.05."""
    rng = np.random.default_rng(3)
    sizes, rates, delta, draws = np.array([400, 15]), np.array([0.5, 0.05]), 0.05, 2000
    hits = rng.binomial(sizes, rates, size=(draws, 2))
    ours = bootstrap = 0
    for h in hits:
        table = np.stack([np.zeros(2), np.zeros(2), sizes - h, h]).T.reshape(2, 2, 2)
        entry = group_rates(table.astype(np.int64), delta, 2)["selection"]
        low, high = entry["low"][0] - entry["high"][1], entry["high"][0] - entry["low"][1]
        ours += not low <= rates[0] - rates[1] <= high
        cells = np.array([h[0], sizes[0] - h[0], h[1], sizes[1] - h[1]])
        again = rng.multinomial(sizes.sum(), cells / sizes.sum(), size=200)
        some = again[(again[:, :2].sum(1) > 0) & (again[:, 2:].sum(1) > 0)]
        gap = some[:, 0] / some[:, :2].sum(1) - some[:, 2] / some[:, 2:].sum(1)
        low, high = np.quantile(gap, [delta / 2, 1 - delta / 2])
        bootstrap += not low <= rates[0] - rates[1] <= high
    assert ours <= binom.ppf(0.999, draws, delta)
    assert bootstrap > 3 * delta * draws  # zero of 15 has no spread to resample
