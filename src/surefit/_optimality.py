"""The claim of a duality gap: how far an objective is from its minimum, and what that is worth.

A gap counts against two scales. The *tolerance* is relative to the objective of the constant model, as the
solvers' ``tol`` is. The *range* runs from the objective of the constant model down to the lower bound: a
gap that is a good part of it says little more than that the model is not worse than a constant, however small
it is against the tolerance. Such a claim is uninformative.
"""

from __future__ import annotations

import math
from dataclasses import replace

from .certificate import ROUNDING_LIMIT, Claim, Kind, Status

__all__ = ["INFORMATIVE_SHARE", "optimality_claim"]

INFORMATIVE_SHARE = 0.01  # a gap above one percent of the range says too little to be a success


def optimality_claim(
    subject: str,
    *,
    primal: float,
    dual: float,
    null: float,
    bound: float,
    floor: float,
    stored: float = 0.0,
    source: str,
    name: str = "duality gap",
    target: str = "the global minimum",
    curvature: float = 0.0,
) -> Claim:
    """The claim that an objective is within ``primal - dual`` of its minimum.

    Parameters
    ----------
    subject : str
        What is minimised, with its value, such as ``"the objective 3.1"``.
    primal, dual, null : float
        The objective of the model, a lower bound on all models, and the objective of the constant model.
    bound : float
        The largest gap at which the claim holds: the tolerance in units of the objective.
    floor : float
        What rounding of the arithmetic can do to the gap. It excuses at most ``ROUNDING_LIMIT`` of ``null``.
    stored : float
        What storing the coefficients in float32 can do to it. Where that exceeds ``bound``, a gap above
        ``bound`` is undecided.
    curvature : float
        The strong convexity in the coefficients: the gap also bounds their distance to the optimal ones.
    """
    gap, noise = primal - dual, floor + stored
    shown = max(gap, noise)
    share = _share(shown, null - dual)
    statement = f"{subject} is within {shown:.1e} of {target}{_share_words(share)}"
    if curvature > 0:
        distance = math.sqrt(2.0 / curvature) * math.sqrt(shown) if shown >= 0 else math.nan
        statement += f"; the coefficients are within {distance:.1e} of the optimal ones"
    if gap < -noise:  # weak duality broken beyond rounding: something is wrong, say so
        broken = (
            f"{subject} lies {-gap:.1e} below a lower bound on every model: one of them is wrong"
        )
        return Claim.check(name, broken, Kind.OPTIMAL, math.nan, bound, source)
    limit = bound if stored > bound else max(bound, ROUNDING_LIMIT * abs(null))
    claim = Claim.check(
        name,
        statement,
        Kind.OPTIMAL,
        max(gap, 0.0),
        bound,
        source,
        floor=noise,
        largest_floor=limit,
    )
    if claim.status is Status.HOLDS and gap > noise and not share <= INFORMATIVE_SHARE:
        words = f"{statement}: fit with a smaller tol to learn more"
        return replace(claim, statement=words, status=Status.UNINFORMATIVE)
    return claim


def _share(gap: float, width: float) -> float:
    """The gap as a share of the range; a range of 0 has the constant model as its optimum."""
    return gap / width if width > 0.0 else 0.0


def _share_words(share: float) -> str:
    """The share in percent, where it is a number of interest."""
    if not 0.0 < share <= 1.0:
        return ""
    return f", {100.0 * share:.2g} % of the way down from the constant model"
