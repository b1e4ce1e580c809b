r"""Confidence intervals of quantile regression from the signs of the residuals.

At the true coefficients each row lies below its tau-quantile with probability tau, independently of the
others, *whatever* the distribution of its noise. So the score

.. math:: S(\beta) = \sum_i s_i\, a_i\, (1\{y_i < a_i^\top\beta\} - \tau)

has a distribution at the truth that is known exactly, given the rows a_i: that of
:math:`\sum_i s_i a_i (B_i - \tau)` with Bernoulli(tau) draws B_i. With
:math:`Q = S^\top (\sum_i s_i^2 a_i a_i^\top)^{-1} S` and its quantile c, simulated from that law, the set
:math:`\{\beta : Q(\beta) \le c\}` contains the truth with the stated probability at every sample size: no
density of the noise is estimated, and none has to be the same for all rows. The interval of one coefficient
is the shadow of this set: a value b belongs to it if some choice of the other coefficients makes Q at most c.
That choice is sought in two steps: quantile regression of y - b x_j on the other columns, which makes all
their scores zero, and Gauss-Newton steps from there, which matter where the noise differs much from row to
row. The shadow is wider than an interval for one coefficient alone need be: it is conservative, by a factor
of about sqrt(chi2_k / chi2_1) for k coefficients, 1.2 for two and 2.3 for eleven.

Where too few rows lie beyond the quantile, the set is unbounded, and there is no interval.

References
----------
Parzen, Wei, Ying, "A resampling method based on pivotal estimating functions", Biometrika 81 (1994);
Koenker, Quantile Regression (2005), section 3.5 (inversion of rank scores); Chernozhukov, Hansen, Jansson,
"Finite sample inference for quantile regression models", J. Econometrics 152 (2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..quantile import QuantileRegressor

__all__ = ["MOST_WORK", "Scores", "SignIntervals", "critical_value", "sign_intervals"]

Array = NDArray[np.float64]

DRAWS = 4999  # of the law of Q: p-values are multiples of 1/5000
CHUNK = 2_000_000  # Bernoulli draws held at a time
PRECISION = 0.01  # of an end, relative to its distance from the estimate; ends are rounded outwards
TIES = 1e-9  # the law has steps: sums in another order may fall on either side of one
DOUBLINGS = 12  # of a first step of one standard error
FAR = 1e6  # standard errors: an interval that reaches as far has no end
DESCENTS = 4  # Gauss-Newton steps for the other coefficients
MOST_WORK = 60_000  # n k^2 beyond which some 15 k quantile regressions take too long


class SignIntervals(NamedTuple):
    """Ends of the intervals, NaN where there is none, and p-values of a coefficient of 0."""

    low: Array
    high: Array
    p_value: Array


def sign_intervals(
    A: Array, y: Array, s: Array, tau: float, estimate: Array, errors: Array, level: float
) -> SignIntervals:
    """Invert the law of the signs for each coefficient.

    Parameters
    ----------
    A : array of shape (n, k)
        The columns, with one of ones for an intercept; of full rank.
    y, s : array of shape (n,)
        Targets and weights in the objective.
    tau : float
        The quantile.
    estimate, errors : array of shape (k,)
        The estimate and a rough size of its errors, which sets the first steps of the search.
    level : float
        Confidence level.
    """
    scores = Scores(A, y, s, tau)
    draws = scores.simulate()
    critical = critical_value(draws, level)
    low, high, p_value = (np.full(len(estimate), math.nan) for _ in range(3))
    for j, (center, error) in enumerate(zip(estimate, errors, strict=True)):

        def excess(b: float, j: int = j) -> float:
            """Nearly linear in the distance from the estimate; positive outside."""
            return math.sqrt(scores.smallest(j, b, critical)) - (1.0 + TIES) * math.sqrt(critical)

        step = float(error) if error > 0 else max(1e-3 * abs(float(center)), 1e-6)
        ends = [_end(excess, float(center), sign * step) for sign in (-1.0, 1.0)]
        reached = scores.smallest(j, 0.0, 0.0)
        p_value[j] = (1 + int(np.count_nonzero(draws >= (1.0 - TIES) * reached))) / (len(draws) + 1)
        if all(map(math.isfinite, ends)):
            low[j], high[j] = ends
    return SignIntervals(low, high, p_value)


def critical_value(draws: Array, level: float) -> float:
    """A quantile of the law behind the sorted draws that is rather too large than too small.

    The law has steps, and the empirical quantile may fall a step short: two standard errors are added.
    """
    cautious = level + 2.0 * math.sqrt(level * (1.0 - level) / len(draws))
    return float(draws[min(math.ceil(cautious * (len(draws) + 1)), len(draws)) - 1])


@dataclass
class Scores:
    """The statistic Q, as a function of one coefficient."""

    A: Array
    y: Array
    s: Array
    tau: float
    whiten: Array = field(init=False)

    def __post_init__(self) -> None:
        weighted = self.s[:, None] * self.A
        triangle = np.linalg.qr(weighted, mode="r")
        self.whiten = np.linalg.inv(triangle)  # Q = ||S whiten||^2

    def simulate(self) -> Array:
        """Sorted draws of Q at the true coefficients; always the same ones."""
        rng = np.random.default_rng(0)
        weighted = self.s[:, None] * self.A @ self.whiten
        found: list[Array] = []
        left, at_once = DRAWS, max(1, CHUNK // len(self.y))
        while left > 0:
            count = min(left, at_once)
            below = rng.random((count, len(self.y))) < self.tau
            found.append((((below - self.tau) @ weighted) ** 2).sum(axis=1))
            left -= count
        return np.sort(np.concatenate(found))

    def smallest(self, j: int, b: float, enough: float) -> float:
        """The least Q found over the other coefficients; the search ends below ``enough``."""
        target = self.y - b * self.A[:, j]
        others = np.delete(self.A, j, axis=1)
        if others.shape[1] == 0:
            ways = (target < 0.0, target <= 0.0)  # a row on the quantile may count either way
            return min(self._size(self.s * (below - self.tau)) for below in ways)
        model = QuantileRegressor(
            quantile=self.tau, alpha=0.0, fit_intercept=False, certify=False
        ).fit(others, target, self.s)
        gamma = model.coef_.astype(np.float64)
        # The dual vector of the fit is the sign score, with the rows on the quantile shared out.
        least = self._size(self.s * model.dual_coef_)
        for _ in range(DESCENTS):
            if least <= enough:
                break
            gamma = self._step(others, target, gamma)
            below = target - others @ gamma < 0.0
            least = min(least, self._size(self.s * (below - self.tau)))
        return least

    def _size(self, scores: Array) -> float:
        return float(np.sum((scores @ self.A @ self.whiten) ** 2))

    def _step(self, others: Array, target: Array, gamma: Array) -> Array:
        """A Gauss-Newton step for Q, with the indicator smoothed."""
        e = target - others @ gamma
        width = max(float(np.std(e)) * len(e) ** (-1 / 3), 1e-300)
        density = self.s * 0.75 * np.maximum(1.0 - (e / width) ** 2, 0.0) / width
        slope = self.whiten.T @ (self.A.T @ (density[:, None] * others))
        score = (self.s * ((e < 0.0) - self.tau)) @ self.A @ self.whiten
        return np.asarray(gamma - np.linalg.lstsq(slope, score, rcond=None)[0])


def _end(excess: Callable[[float], float], center: float, step: float) -> float:
    """The first value outside, from the estimate in the direction of ``step``; infinite without one."""
    if excess(center + FAR * step) <= 0.0:
        return math.copysign(math.inf, step)
    inner, outer = 0.0, 2.0 * step
    below, above = excess(center), excess(center + outer)
    for _ in range(DOUBLINGS):
        if above > 0.0:
            break
        inner, outer, below = outer, 2.0 * outer, above
        above = excess(center + outer)
    else:
        outer = FAR * step
        above = excess(center + outer)
    while abs(outer - inner) > PRECISION * abs(outer):
        part = min(max(-below / (above - below), 0.1), 0.9)
        middle = inner + part * (outer - inner)
        value = excess(center + middle)
        if value > 0.0:
            outer, above = middle, value
        else:
            inner, below = middle, value
    return center + outer
