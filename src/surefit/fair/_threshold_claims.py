r"""What is claimed of group thresholds, from scores, labels, groups and the rule alone.

*Equal rates* (EXACT): the expected rates on the rows of the fit, counted again. *Optimal rule* (OPTIMAL):
for any multipliers :math:`\lambda_g` the gain of a rule with equal rates is at most

    sum_g max_v [gain_g(v) - lambda_g . x_g(v)] + max(0, sum_g lambda_g),

v over all thresholds of group g: weak duality, whoever chose the multipliers. Where rates may differ by tau,
tau sum_g max(0, lambda_g) is added. For one threshold a group, all windows of rates are tried again, in
another way than the fit does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, Claim, Kind
from ._curves import SLACK, Curve, scale_of

__all__ = ["deterministic_claims", "dual_bound", "expected", "randomised_claims", "scores_claim"]

Array = NDArray[np.float64]
ROUNDING = 1e-12  # of rates: a few additions and one division; of gains: relative to the scale
_NAMES = {
    "demographic_parity": "selection rate",
    "equal_opportunity": "true positive rate",
    "predictive_equality": "false positive rate",
    "equalized_odds": "true and the false positive rate",
}


def expected(found: list[Curve], thresholds: Array, weights: Array) -> tuple[Array, Array]:
    """Expected true and false positives of the rule in each group."""
    tp, fp = np.zeros(len(found)), np.zeros(len(found))
    for g, curve in enumerate(found):
        at = curve.point(thresholds[g])
        tp[g], fp[g] = weights[g] @ curve.tp[at], weights[g] @ curve.fp[at]
    return tp, fp


def _spread(found: list[Curve], tp: Array, fp: Array, constraint: str) -> float:
    """The largest difference of a rate between groups."""
    positives = np.array([max(curve.positives, 1.0) for curve in found])
    negatives = np.array([max(curve.negatives, 1.0) for curve in found])
    if constraint == "demographic_parity":
        rows = np.array([curve.positives + curve.negatives for curve in found])
        return float(np.ptp((tp + fp) / rows))
    parts = {
        "equal_opportunity": [tp / positives],
        "predictive_equality": [fp / negatives],
        "equalized_odds": [tp / positives, fp / negatives],
    }[constraint]
    return max(float(np.ptp(part)) for part in parts)


def dual_bound(
    found: list[Curve],
    constraint: str,
    costs: tuple[float, float],
    multipliers: Array,
    slack: float,
) -> float:
    """The most that any randomised rule gains whose rates differ by at most ``slack``."""
    total = 0.0
    for g, curve in enumerate(found):
        value = curve.gain(costs)
        for k, rate in enumerate(curve.rates(constraint)):
            value = value - multipliers[g, k] * rate
        total += float(value.max())
    over = float(np.maximum(0.0, multipliers.sum(axis=0)).sum())
    return total + over + slack * float(np.maximum(0.0, multipliers).sum())


def _is_rule(thresholds: Array, weights: Array, single: bool) -> bool:
    """Whether the weights are probabilities; of a ``single`` threshold, 0 and 1."""
    if single and not np.isin(weights, (0.0, 1.0)).all():
        return False
    return bool(
        (weights >= 0.0).all()  # NaN is not
        and not np.isnan(thresholds).any()
        and (np.abs(weights.sum(axis=1) - 1.0) <= 1e-12).all()
    )


def _rates_claim(
    found: list[Curve], rule: Any, constraint: str, tolerance: float, *, single: bool = False
) -> Claim:
    """The expected rates on these rows."""
    thresholds, weights, _ = rule
    what = _NAMES[constraint]
    if not _is_rule(thresholds, weights, single):
        words = f"the weights of the thresholds are not {'0 and 1' if single else 'probabilities'}"
        return Claim.check("equal rates", words, Kind.EXACT, np.inf, 0.0, "FAIR-6")
    tp, fp = expected(found, thresholds, weights)
    observed = _spread(found, tp, fp, constraint)
    words = (
        f"the expected {what} differs by {observed:.1e} between the {len(found)} groups, on the rows of "
        "the fit"
    )
    return Claim.check(
        "equal rates",
        words,
        Kind.EXACT,
        observed,
        tolerance + 2.0 * SLACK,
        "FAIR-6",
        floor=ROUNDING,
    )


def _cost(found: list[Curve], rule: Any, costs: tuple[float, float]) -> float:
    tp, fp = expected(found, rule[0], rule[1])
    positives = np.array([curve.positives for curve in found])
    return float(costs[0] * fp.sum() + costs[1] * (positives - tp).sum())


def randomised_claims(
    found: list[Curve], rule: Any, constraint: str, costs: tuple[float, float]
) -> list[Claim]:
    """Equal rates, and no randomised rule with equal rates costs less."""
    cost = _cost(found, rule, costs)
    bound = dual_bound(found, constraint, costs, rule[2], 0.0)
    gap, scale = cost + bound, scale_of(found, costs)
    words = (
        f"the expected cost {cost:.6g} is within {max(gap, 0.0):.1e} of the least of all randomised group "
        f"thresholds on these scores with equal rates"
    )
    optimal = Claim.check(
        "optimal rule", words, Kind.OPTIMAL, max(gap, 0.0), 1e-9 * scale, "FAIR-6"
    )
    if gap < -1e-9 * scale:  # weak duality broken: the rule does not satisfy the constraint
        words = f"the cost {cost:.6g} is below what equal rates allow: the rates are not equal"
        optimal = Claim.check("optimal rule", words, Kind.OPTIMAL, np.nan, 0.0, "FAIR-6")
    return [optimal, _rates_claim(found, rule, constraint, 0.0)]


def deterministic_claims(
    found: list[Curve],
    rule: Any,
    constraint: str,
    costs: tuple[float, float],
    tolerance: float,
    *,
    full: bool,
) -> list[Claim]:
    """Rates within the tolerance; no single thresholds with such rates cost less; what drawing could save."""
    cost, scale = _cost(found, rule, costs), scale_of(found, costs)
    lower = -dual_bound(found, constraint, costs, rule[2], tolerance)
    drawn = f"with random draws none costs less than {lower:.6g}"
    rates = _rates_claim(found, rule, constraint, tolerance, single=True)
    if constraint == "equalized_odds" and not full:
        why = f"the cost is {cost:.6g}; {drawn}; whether single thresholds cost less, surefit.verify decides"
        return [Claim.undecided("optimal rule", why, Kind.OPTIMAL, "FAIR-6"), rates]
    find = _least_cost_odds if constraint == "equalized_odds" else _least_cost
    least = find(found, constraint, costs, tolerance)
    words = (
        f"the cost {cost:.6g} is within {max(cost - least, 0.0):.1e} of the least of all single thresholds "
        f"with rates within {tolerance:g}; {drawn}"
    )
    observed = cost - least
    good = observed >= -1e-9 * scale
    optimal = Claim.check(
        "optimal rule",
        words,
        Kind.OPTIMAL,
        max(observed, 0.0) if good else np.nan,
        1e-9 * scale,
        "FAIR-6",
    )
    return [optimal, rates]


def scores_claim(found: Certificate) -> Claim:
    """The claims of the model whose scores the thresholds cut: no rule is better than its scores."""
    many, wrong = len(found.claims), len(found.failed)
    words = f"of {many} claims of the {found.about} that gives the scores, {wrong} do not hold"
    return Claim.check("scores", words, Kind.EXACT, float(wrong), 0.0, "FAIR-6")


def _least_cost_odds(
    found: list[Curve], constraint: str, costs: tuple[float, float], tolerance: float
) -> float:
    """The same for two rates: for each window of TPR, each window of FPR that begins inside it."""
    curves = [(t, f, curve.gain(costs)) for curve in found for f, t in [curve.rates(constraint)]]
    wide = tolerance + SLACK
    starts = np.unique(np.concatenate([t for t, _, _ in curves]))
    ceiling = np.zeros(len(starts))
    ends = []
    for t, _, gain in curves:
        begin, end = np.searchsorted(t, starts), np.searchsorted(t, starts + wide, side="right")
        ceiling += _slice_maxima(gain, begin, end)
        ends.append(np.column_stack([begin, end]))
    best = -np.inf
    for k in np.argsort(-ceiling):
        if ceiling[k] <= best:
            break
        inside = [
            (f[a:b], gain[a:b]) for (_, f, gain), (a, b) in zip(curves, [end[k] for end in ends])
        ]
        lows = np.unique(np.concatenate([f for f, _ in inside]))
        total = np.zeros(len(lows))
        for f, gain in inside:
            end = np.searchsorted(f, lows + wide, side="right")
            total += _slice_maxima(gain, np.searchsorted(f, lows), end)
        best = max(best, float(total.max()))
    return -best


def _slice_maxima(values: Array, begin: Any, end: Any) -> Array:
    """The largest value in each [begin, end); -inf where that is empty."""
    padded = np.append(values, -np.inf)
    slices = np.column_stack([begin, np.maximum(end, begin + 1)]).ravel()
    best = np.maximum.reduceat(padded, np.minimum(slices, len(values)))[::2]
    return np.where(end > begin, best, -np.inf)


def _least_cost(
    found: list[Curve], constraint: str, costs: tuple[float, float], tolerance: float
) -> float:
    """The best sum over windows of rates: maxima over slices, window by window."""
    rates = [curve.rates(constraint)[0] for curve in found]
    starts = np.unique(np.concatenate(rates))
    total = np.zeros(len(starts))
    for x, curve in zip(rates, found):
        begin = np.searchsorted(x, starts, side="left")
        end = np.searchsorted(x, starts + (tolerance + SLACK), side="right")
        total += _slice_maxima(curve.gain(costs), begin, end)
    return -float(total.max())
