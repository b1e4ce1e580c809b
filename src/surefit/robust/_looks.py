r"""A binomial test that may stop early: exact limits at a few looks, with delta shared among them.

Draws are independent with success probability p. At looks :math:`n_1 < \dots < n_m`, fixed beforehand, the
lower limit :math:`L_j` of Clopper and Pearson at level :math:`\delta_j` has :math:`P(L_j \ge p) \le
\delta_j` (it is taken as the p' at which so many successes or more have probability :math:`\delta_j`). With
:math:`\sum \delta_j = \delta`,

.. math:: P(\exists j: L_j \ge p) \le \sum_j P(L_j \ge p) \le \delta,

so whatever is concluded from :math:`\max_j L_j`, after however many looks, is wrong with probability at
most delta. Stopping for futility, when the upper limit shows that a threshold cannot be passed, only drops
looks and so keeps this. Nothing has to be shared among several thresholds: they all follow from the one
event that :math:`L_j < p` at every look.

The last look gets half of delta, so that little is lost against a test with all draws; the others, in
geometric progression, share the rest equally.

Reference: Lan & DeMets, "Discrete sequential boundaries for clinical trials", 1983, for spending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["Looks", "looks", "lower_limit", "upper_limit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Looks:
    """Numbers of draws at which one looks, and the share of delta that each look gets."""

    draws: NDArray[np.int64]
    shares: Array


def looks(n: int, delta: float, *, first: int = 128, ratio: float = 1.3, block: int = 1) -> Looks:
    """Looks from ``first`` to ``n`` draws, in whole blocks.

    Examples
    --------
    >>> plan = looks(1000, 0.01, first=100, ratio=2.0)
    >>> plan.draws.tolist(), float(plan.shares.sum().round(12))
    ([100, 200, 400, 1000], 0.01)
    """
    places, at = [], float(min(first, n))
    while at < n / math.sqrt(ratio):
        places.append(min(n, -(-math.ceil(at) // block) * block))
        at *= ratio
    draws = np.unique([*places, n]).astype(np.int64)
    m = len(draws)
    shares = np.full(m, 0.5 * delta / max(1, m - 1))
    shares[-1] = delta - shares[:-1].sum()
    return Looks(draws, shares)


def lower_limit(successes: Any, n: Any, delta: Any) -> Array:
    """The p at which so many successes or more have probability delta; 0 without success."""
    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = np.asarray(stats.beta.ppf(delta, k, n - k + 1.0))
    return np.where(k == 0, 0.0, found)


def upper_limit(successes: Any, n: Any, delta: Any) -> Array:
    """The p at which so few successes or fewer have probability delta; 1 without failure."""
    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = np.asarray(stats.beta.isf(delta, k + 1.0, n - k))
    return np.where(k == n, 1.0, found)
