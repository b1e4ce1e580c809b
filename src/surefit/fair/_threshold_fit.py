r"""The exact optimum over randomised group thresholds, and over deterministic ones.

*One rate* (demographic parity, equal opportunity, predictive equality): with x the common rate, the gain of
each group is a concave piecewise linear function of x, whose vertices are the hull of its curve (found by
isotonic regression, O(n log n)); the sum is concave, and its maximum is at a vertex. *Two rates* (equalised
odds): at FPR f every group can reach at most U_g(f), its ROC hull, so the best common TPR is the lower
envelope of the hulls, and the gain a t - b f is maximised over a concave function, at a vertex or where two
hulls cross.

With each solution come multipliers of the constraint "equal rates", read off the slopes of the hulls: the
dual point from which the certificate bounds what any rule could gain
(:mod:`surefit.fair._threshold_claims`).

*Deterministic.* Rates within ``tolerance`` of each other lie in a window [x, x + tolerance] whose left end
is a rate of some group; in a window the groups are independent. Trying all windows is exact for any number
of groups.

Reference: Hardt, Price & Srebro, "Equality of opportunity in supervised learning" (2016).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from ._curves import SLACK, Curve

__all__ = ["Rule", "best_deterministic", "best_deterministic_odds", "best_odds", "best_rate"]

Array = NDArray[np.float64]
MIXED = 4  # thresholds that a rule draws from: two of the hull, accept none, accept all


@dataclass(frozen=True)
class Rule:
    """Thresholds of each group, the probability of each, and the multipliers of the constraint."""

    thresholds: Array  # (groups, MIXED)
    weights: Array  # (groups, MIXED)
    multipliers: Array  # (groups, rates of the constraint)


def _hull(curve: Curve) -> NDArray[np.intp]:
    """The points of the upper hull: blocks of rows whose share of positives falls with the score."""
    hits, rows = np.diff(curve.tp), np.diff(curve.tp + curve.fp)
    return isotonic_regression(hits / rows, weights=rows, increasing=False).blocks


def _vertices(x: Array, gain: Array, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Places of vertices with strictly increasing x; of several with one x, that with the largest gain."""
    order = np.lexsort((gain[places], x[places]))
    kept = places[order]
    last = np.append(x[kept][1:] != x[kept][:-1], True)
    return kept[last]


def best_rate(found: list[Curve], constraint: str, costs: tuple[float, float]) -> Rule:
    """The best randomised thresholds with one rate equal in all groups."""
    knots, values, places = [], [], []
    for curve in found:
        x, gain = curve.rates(constraint)[0], curve.gain(costs)
        at = _vertices(x, gain, _hull(curve))
        knots.append(x[at])
        values.append(gain[at])
        places.append(at)
    grid = np.unique(np.concatenate(knots))
    total = sum(np.interp(grid, x, v) for x, v in zip(knots, values))
    best = float(grid[int(np.argmax(total))])
    thresholds, weights = np.full((len(found), MIXED), np.inf), np.zeros((len(found), MIXED))
    for g, curve in enumerate(found):
        _mix(curve, places[g], knots[g], best, thresholds[g], weights[g])
    slopes = np.array([_slopes(x, v, best) for x, v in zip(knots, values)])
    return Rule(thresholds, weights, _balanced(slopes)[:, None])


def _mix(
    curve: Curve, at: NDArray[np.intp], x: Array, best: float, thresholds: Array, weights: Array
) -> None:
    """The two vertices around ``best``, with the probabilities that make it the mean."""
    j = int(np.clip(np.searchsorted(x, best, side="right") - 1, 0, max(len(x) - 2, 0)))
    thresholds[:2] = curve.thresholds[at[j]], curve.thresholds[at[min(j + 1, len(at) - 1)]]
    share = (best - x[j]) / (x[j + 1] - x[j]) if len(x) > 1 else 0.0
    weights[:2] = 1.0 - share, share


def _slopes(x: Array, value: Array, at: float) -> tuple[float, float]:
    """Slopes to the right and to the left; infinite beyond the ends."""
    right, left = -math.inf, math.inf
    j = int(np.searchsorted(x, at, side="right"))
    if j < len(x):
        right = float((value[j] - value[j - 1]) / (x[j] - x[j - 1]))
    i = int(np.searchsorted(x, at, side="left"))
    if i > 0:
        left = float((value[i] - value[i - 1]) / (x[i] - x[i - 1]))
    return right, left


def _balanced(slopes: Array) -> Array:
    """One slope of each group, between its right and its left one, that sum to 0."""
    right, left = slopes.T
    if np.isinf(left).any():  # at rate 0: any larger slope will do
        right = np.where(np.isinf(right), 0.0, right)
        return right - right.sum() / len(right)
    if np.isinf(right).any():  # at rate 1: any smaller one
        return left - left.sum() / len(left)
    span = float((left - right).sum())
    share = -float(right.sum()) / span if span > 0 else 0.0
    return right + min(max(share, 0.0), 1.0) * (left - right)


def best_odds(found: list[Curve], costs: tuple[float, float]) -> Rule:
    """The best randomised thresholds with equal FPR and equal TPR."""
    hulls = []
    for curve in found:
        f, t = curve.rates("equalized_odds")
        at = _vertices(f, t, _hull(curve))
        hulls.append((at, f[at], t[at]))
    a = costs[1] * sum(curve.positives for curve in found)
    b = costs[0] * sum(curve.negatives for curve in found)
    grid = np.unique(np.concatenate([f for _, f, _ in hulls]))
    tops = np.array([np.interp(grid, f, t) for _, f, t in hulls])
    value = a * tops.min(axis=0) - b * grid
    place = int(np.argmax(value))
    candidates = [float(grid[place])]
    for k in (place - 1, place):  # between neighbours every hull is a line: where do two cross?
        if 0 <= k < len(grid) - 1:
            width = grid[k + 1] - grid[k]
            step = tops[:, k + 1] - tops[:, k]
            for g, h in itertools.combinations(range(len(found)), 2):
                if step[g] != step[h]:
                    share = (tops[h, k] - tops[g, k]) / (step[g] - step[h])
                    if 0.0 < share < 1.0:
                        candidates.append(float(grid[k] + share * width))
    reach = np.array([[np.interp(c, f, t) for c in candidates] for _, f, t in hulls])
    chosen = int(np.argmax(a * reach.min(axis=0) - b * np.array(candidates)))
    f_star, t_star = candidates[chosen], float(reach[:, chosen].min())
    thresholds, weights = np.full((len(found), MIXED), np.inf), np.zeros((len(found), MIXED))
    for g, curve in enumerate(found):
        at, f, _ = hulls[g]
        _mix(curve, at, f, f_star, thresholds[g], weights[g])
        top = float(reach[g, chosen])
        over = top - t_star
        if over > 0.0 and top > f_star:  # below the hull: now and then accept by a coin of rate f
            coin = over / (top - f_star)
            weights[g, :2] *= 1.0 - coin
            thresholds[g, 3] = -np.inf
            weights[g, 2:] = coin * (1.0 - f_star), coin * f_star
    multipliers = _odds_multipliers(found, hulls, reach[:, chosen], f_star, a, b, costs)
    return Rule(thresholds, weights, multipliers)


def _odds_multipliers(
    found: list[Curve],
    hulls: list[tuple[NDArray[np.intp], Array, Array]],
    reach: Array,
    f_star: float,
    a: float,
    b: float,
    costs: tuple[float, float],
) -> Array:
    """Weights on the hulls that touch the optimum, with slopes that balance b / a."""
    wanted = b / a if a > 0 else 0.0
    share, slope = np.zeros(len(found)), np.zeros(len(found))
    touching = [g for g in range(len(found)) if reach[g] <= reach.min() + 1e-9]
    sides = {g: _slopes(hulls[g][1], hulls[g][2], f_star) for g in touching}
    inside = [g for g in touching if sides[g][0] <= wanted <= sides[g][1]]
    if inside:
        share[inside[0]], slope[inside[0]] = 1.0, wanted
    else:
        flat = max(
            (g for g in touching if sides[g][1] < wanted), key=lambda g: sides[g][1], default=None
        )
        steep = min(
            (g for g in touching if sides[g][0] > wanted), key=lambda g: sides[g][0], default=None
        )
        if flat is None or steep is None:
            one = touching[0]
            share[one], slope[one] = 1.0, wanted
        else:
            low, high = sides[flat][1], sides[steep][0]
            share[steep] = (wanted - low) / (high - low)
            share[flat] = 1.0 - share[steep]
            slope[flat], slope[steep] = low, high
    positives = np.array([curve.positives for curve in found])
    negatives = np.array([curve.negatives for curve in found])
    on_fpr = a * share * slope - costs[0] * negatives
    on_tpr = costs[1] * positives - a * share
    return np.column_stack([on_fpr, on_tpr])


def best_deterministic(
    found: list[Curve], constraint: str, costs: tuple[float, float], tolerance: float
) -> Rule:
    """The best single threshold a group, with rates within ``tolerance`` of each other."""
    rates = [curve.rates(constraint)[0] for curve in found]
    gains = [curve.gain(costs) for curve in found]
    starts = np.unique(np.concatenate(rates))
    total, picks = np.zeros(len(starts)), []
    for x, gain in zip(rates, gains):
        begin = np.searchsorted(x, starts, side="left")
        end = np.searchsorted(x, starts + (tolerance + SLACK), side="right")
        at = _largest_in(gain, begin, end)
        picks.append(at)
        total += np.where(at >= 0, gain[at], -np.inf)
    best = int(np.argmax(total))
    multipliers = best_rate(found, constraint, costs).multipliers
    return _single(found, [int(at[best]) for at in picks], multipliers)


def _single(found: list[Curve], picks: list[int], multipliers: Array) -> Rule:
    """The rule with one threshold for each group."""
    thresholds, weights = np.full((len(found), MIXED), np.inf), np.zeros((len(found), MIXED))
    for g, curve in enumerate(found):
        thresholds[g, 0], weights[g, 0] = curve.thresholds[picks[g]], 1.0
    return Rule(thresholds, weights, multipliers)


def best_deterministic_odds(
    found: list[Curve], costs: tuple[float, float], tolerance: float
) -> Rule:
    """The best single threshold a group, with FPR and TPR within ``tolerance`` of each other.

    Windows of TPR are tried in the order of what they could gain without the condition on FPR, until the
    best found so far is no less than that; in each, all windows of FPR.
    """
    rates = [(t, f) for f, t in (curve.rates("equalized_odds") for curve in found)]
    gains = [curve.gain(costs) for curve in found]
    starts = np.unique(np.concatenate([t for t, _ in rates]))
    most, ranges = np.zeros(len(starts)), []
    for (t, _), gain in zip(rates, gains):
        begin = np.searchsorted(t, starts, side="left")
        end = np.searchsorted(t, starts + (tolerance + SLACK), side="right")
        at = _largest_in(gain, begin, end)
        most += np.where(at >= 0, gain[at], -np.inf)
        ranges.append((begin, end))
    best, picks = -math.inf, [0] * len(found)
    for place in np.argsort(-most):
        if most[place] <= best:
            break
        parts = [slice(begin[place], end[place]) for begin, end in ranges]
        lows = np.unique(np.concatenate([f[part] for (_, f), part in zip(rates, parts)]))
        total, chosen = np.zeros(len(lows)), []
        for (_, f), gain, part in zip(rates, gains, parts):
            begin = np.searchsorted(f[part], lows, side="left")
            end = np.searchsorted(f[part], lows + (tolerance + SLACK), side="right")
            at = _largest_in(gain[part], begin, end)
            total += np.where(at >= 0, gain[part][at], -np.inf)
            chosen.append(at + part.start)
        top = int(np.argmax(total))
        if total[top] > best:
            best, picks = float(total[top]), [int(at[top]) for at in chosen]
    return _single(found, picks, best_odds(found, costs).multipliers)


def _largest_in(values: Array, begin: NDArray[np.intp], end: NDArray[np.intp]) -> NDArray[np.intp]:
    """The place of the largest value in each [begin, end), -1 where that is empty; by doubling lengths."""
    levels = [np.arange(len(values))]
    while 2 ** len(levels) <= len(values):
        before, step = levels[-1], 2 ** (len(levels) - 1)
        first, second = before[:-step], before[step:]
        levels.append(np.where(values[second] > values[first], second, first))
    length = np.maximum(end - begin, 1)
    level = np.frexp(length)[1] - 1
    answer = np.full(len(begin), -1)
    for k, places in enumerate(levels):
        rows = np.flatnonzero((level == k) & (end > begin))
        first, second = places[begin[rows]], places[end[rows] - 2**k]
        answer[rows] = np.where(values[second] > values[first], second, first)
    return answer
