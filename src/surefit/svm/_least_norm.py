"""The gap of a hard margin: how far 1/2 ||w||^2 is from the least that separates the classes.

No constant model is feasible, so the gap is compared with the objective itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

from .._optimality import INFORMATIVE_SHARE
from ..certificate import ROUNDING_LIMIT, Claim, Kind, Status

__all__ = ["least_norm_claim"]


def least_norm_claim(primal: float, dual: float, *, tol: float, floor: float) -> Claim:
    """The claim that ``primal`` is within ``tol`` of itself from the least, which is at least ``dual``."""
    name, source, gap = "duality gap", "SVM-4", primal - dual
    if gap < -floor:
        words = (
            f"1/2 ||w||^2 = {primal:.6g} lies {-gap:.1e} below a lower bound: one of them is wrong"
        )
        return Claim.check(name, words, Kind.OPTIMAL, math.nan, tol * primal, source)
    shown = gap if math.isnan(gap) else max(gap, floor)
    share = shown / primal if primal > 0.0 else math.nan
    words = (
        f"1/2 ||w||^2 = {primal:.6g} is within {shown:.1e} of the least that separates, "
        f"{100.0 * share:.2g} % of it"
    )
    claim = Claim.check(
        name, words, Kind.OPTIMAL, max(gap, 0.0), tol * primal, source,
        floor=floor, largest_floor=max(tol, ROUNDING_LIMIT) * primal,
    )  # fmt: skip
    if claim.status is Status.HOLDS and gap > floor and not share <= INFORMATIVE_SHARE:
        words = f"{words}: fit with a smaller tol to learn more"
        return replace(claim, statement=words, status=Status.UNINFORMATIVE)
    return claim
