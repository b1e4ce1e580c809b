"""The worst of several numbers or claims, without losing a NaN: the one to state where many are summed up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .certificate import Claim, Status

__all__ = ["badness", "largest", "largest_ratio"]

_ORDER = {Status.HOLDS: 0, Status.UNINFORMATIVE: 1, Status.UNDECIDED: 2, Status.FAILS: 3}


def badness(claim: Claim) -> tuple[int, float]:
    """A key that sorts claims: failed, undecided, uninformative, held; then by observed / bound."""
    if claim.bound > 0:
        ratio = claim.observed / claim.bound
    else:
        ratio = math.inf if claim.observed > 0 else 0.0
    return _ORDER[claim.status], math.inf if math.isnan(claim.observed) else ratio


def largest(*values: Any) -> float:
    """The largest of these numbers and arrays; NaN where any is NaN, which Python's ``max`` may drop."""
    flat = np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])
    return float(np.max(flat)) if flat.size else 0.0


def largest_ratio(values: Any, scales: Any) -> float:
    """The largest of non-negative values relative to their scales; NaN where anything is NaN.

    0 of 0 is nothing. Anything else of 0 means that a square underflowed, and is infinite.
    """
    values, scales = np.broadcast_arrays(
        np.asarray(values, dtype=np.float64), np.asarray(scales, dtype=np.float64)
    )
    if np.isnan(values).any() or np.isnan(scales).any():
        return math.nan
    ratios = np.where(values > 0.0, np.inf, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        np.divide(values, scales, out=ratios, where=scales > 0.0)
    return largest(ratios)
