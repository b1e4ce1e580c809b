"""Which of several claims is the worst: the one to state where many are summed up in one."""

from __future__ import annotations

import math

from .certificate import Claim, Status

__all__ = ["badness"]

_ORDER = {Status.HOLDS: 0, Status.UNINFORMATIVE: 1, Status.UNDECIDED: 2, Status.FAILS: 3}


def badness(claim: Claim) -> tuple[int, float]:
    """A key that sorts claims: failed, undecided, uninformative, held; then by observed / bound."""
    if claim.bound > 0:
        ratio = claim.observed / claim.bound
    else:
        ratio = math.inf if claim.observed > 0 else 0.0
    return _ORDER[claim.status], math.inf if math.isnan(claim.observed) else ratio
