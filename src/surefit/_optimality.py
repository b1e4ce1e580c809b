"""The claim of a duality gap: how far an objective is from its minimum, and what that is worth.

A gap counts against two scales. The *tolerance* is relative to the objective of the constant model, as the
solvers' ``tol`` is. The *range* runs from the objective of the constant model down to the lower bound: a
gap that is a good part of it says little more than that the model is not worse than a constant, however small
it is against the tolerance. Such a claim is uninformative.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from .certificate import ROUNDING_LIMIT, Claim, Kind, Status

__all__ = ["INFORMATIVE_SHARE", "gradient_claim", "optimality_claim", "outcome_claim", "scientific"]

INFORMATIVE_SHARE = 0.01  # a gap above one percent of the range says too little to be a success
TINY_RANGE = 1e-9  # of the constant model's objective: no range is smaller
TINY_SHARE = 1e-6  # rounding below this share of the objective is as good as none


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
    exponent: int = 0,
    gap: float | None = None,
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
    exponent : int
        An even number k where all values of the objective are in units of 2**k: of targets near 1e-160 the
        squares are no numbers of float64.
    gap : float, optional
        ``primal - dual``, where it is known to more digits than the difference has.
    """
    gap, noise = primal - dual if gap is None else gap, floor + stored
    shown = max(gap, noise)
    share = _share(shown, null - dual, null)
    if primal == math.inf:
        outside = f"{subject}: the coefficients break a constraint of the problem"
        return Claim.check(name, outside, Kind.OPTIMAL, math.inf, bound, source)
    if gap < -noise:  # weak duality broken beyond rounding: something is wrong, say so
        below = scientific(-gap, exponent)
        broken = f"{subject} lies {below} below a lower bound on every model: one of them is wrong"
        return Claim.check(name, broken, Kind.OPTIMAL, math.nan, bound, source)
    width = scientific(shown, exponent)
    statement = f"{subject} is within {width} of {target}{_share_words(share)}"
    if curvature > 0:
        distance = math.sqrt(2.0 / curvature) * math.sqrt(shown) if shown >= 0 else math.nan
        reach = scientific(distance, exponent // 2)
        statement += f"; the coefficients are within {reach} of the optimal ones"
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
    excused = gap <= noise and (noise <= TINY_SHARE * abs(null) or null == 0.0)
    if claim.status is Status.HOLDS and not excused and not share <= INFORMATIVE_SHARE:
        words = f"{statement}: fit with a smaller tol to learn more"
        claim = replace(claim, statement=words, status=Status.UNINFORMATIVE)
    if exponent:
        observed, bound = _ldexp(claim.observed, exponent), _ldexp(claim.bound, exponent)
        claim = replace(claim, observed=observed, bound=bound)
    return claim


def scientific(value: float, exponent: int = 0, digits: int = 1) -> str:
    """``value * 2**exponent`` in scientific notation, also where float64 has no such number."""
    if exponent == 0 or not math.isfinite(value):
        return f"{value:.{digits}e}"
    return f"{Decimal(value) * Decimal(2) ** exponent:.{digits}e}"


def _ldexp(value: float, exponent: int) -> float:
    """``value * 2**exponent``; infinite where that is too large."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def outcome_claim(
    name: str,
    kind: Kind,
    observed: float,
    bound: float,
    source: str,
    *,
    holds: str,
    otherwise: str,
    floor: float = 0.0,
    largest_floor: float = math.inf,
) -> Claim:
    """A claim whose sentence is true whatever the outcome: ``holds`` if it holds, ``otherwise`` if not."""
    held = Claim.check(
        name, holds, kind, observed, bound, source, floor=floor, largest_floor=largest_floor
    )
    if held.status is Status.HOLDS:
        return held
    return Claim.check(
        name, otherwise, kind, observed, bound, source, floor=floor, largest_floor=largest_floor
    )


def gradient_claim(
    observed: float, tolerance: float, source: str, *, scale: str, holds: str, floor: float = 0.0
) -> Claim:
    """The claim that a gradient is zero to ``tolerance`` of its scale, and what follows if it is.

    A gradient above one percent of its scale says too little to be a success, whoever tolerates it. A
    ``floor`` above the tolerance leaves the claim undecided.
    """
    asked = f"the gradient is {observed:.1e} of {scale}; a stationary point needs at most {tolerance:.1e}"
    claim = outcome_claim(
        "gradient",
        Kind.STATIONARY,
        observed,
        tolerance,
        source,
        holds=f"the gradient is zero to {observed:.1e} of {scale}{holds}",
        otherwise=asked,
        floor=floor,
        largest_floor=min(tolerance, ROUNDING_LIMIT),
    )
    if claim.status is Status.HOLDS and not observed <= INFORMATIVE_SHARE:
        words = f"{asked}, and to be informative at most {INFORMATIVE_SHARE:g}"
        return replace(claim, statement=words, status=Status.UNINFORMATIVE)
    return claim


def _share(gap: float, width: float, null: float) -> float:
    """The gap as a share of the range, which is a billionth of the constant model's objective at least.

    Where the constant model is optimal, a gap is informative if it is tiny next to the objective.
    """
    width = max(width, TINY_RANGE * abs(null))
    if gap > 0.0 and width == 0.0:
        return math.inf
    return gap / width if width > 0.0 else 0.0


def _share_words(share: float) -> str:
    """The share in percent, where it is a number of interest."""
    if not 0.0 < share <= 1.0:
        return ""
    return f", {100.0 * share:.2g} % of the way down from the constant model"
