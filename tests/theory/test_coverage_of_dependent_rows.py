"""The intervals of selections hold the truth on rows of every kind of dependence, or nothing is claimed.

The cases are those of ``benchmarks/coverage_of_claims.py``: a nearest neighbour, which remembers its rows,
and fresh rows to measure the truth on. More misses than allowed have probability below 1e-6 where the stated
95 % are true. Before copies and groups were heeded, copies and patients made nearly every interval miss.
"""

from __future__ import annotations

import pytest
from benchmarks.coverage_of_claims import coverage, folds, held_out
from scipy import stats

DELTA = 0.05
CLAIMED = [
    "independent, 300 rows",
    "every row twice",
    "every row four times",
    "60 patients, 5 equal rows each",
    "the same, with groups=",
    "60 patients, 5 similar rows each, with groups=",
    "a rule that changes, with time=",
    "40 rows",
    "1 % positives, 500 rows",
]
FOLDS = [case for case in CLAIMED if "time" not in case]
UNDECIDED = ["every row twice", "every row four times", "60 patients, 5 equal rows each"]
NEAR = "60 patients, 5 nearly equal rows each"


def most(draws: int) -> int:
    """More misses than this have probability below 1e-6 where the claim is true."""
    return int(stats.binom.isf(1e-6, draws, DELTA))


@pytest.mark.parametrize("case", CLAIMED)
def test_hold_outs_cover(case: str) -> None:
    counts = coverage(case, 20)
    assert counts["undecided"] == 0
    assert counts["too low"] + counts["too high"] <= most(20)


@pytest.mark.parametrize("how", [held_out, folds])
def test_near_copies_claim_nothing(how: object) -> None:
    assert coverage(NEAR, 5, how)["undecided"] == 5  # type: ignore[arg-type]


@pytest.mark.parametrize("case", UNDECIDED)
def test_folds_that_part_copies_claim_nothing(case: str) -> None:
    assert coverage(case, 5, folds)["undecided"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("case", CLAIMED)
def test_hold_outs_cover_in_400_draws(case: str) -> None:
    counts = coverage(case, 400)
    assert counts["undecided"] <= 4  # 300 independent rows are now and then taken for near copies
    assert counts["too low"] + counts["too high"] <= most(400)


@pytest.mark.slow
@pytest.mark.parametrize("case", FOLDS)
def test_folds_cover_in_400_draws(case: str) -> None:
    counts = coverage(case, 400, folds)
    assert counts["undecided"] in ((400,) if case in UNDECIDED else range(5))
    assert counts["too low"] + counts["too high"] <= most(400)
