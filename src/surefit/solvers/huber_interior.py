r"""Huber's regression with its scale, by a primal-dual interior-point method.

The slow and sure companion of :mod:`surefit.solvers.huber`, for the corners where Newton's method has no
curvature to go by: with many exact fits the best scale is 0, and the problem is least absolute deviations
with whatever ties the data have. In lambda_i = s_i theta_i, |lambda_i| <= c_i = 2 eps s_i, the optimality
conditions are

    y - Xw - b = u - v + sigma lambda / (2 s),     X'lambda = 2 alpha w,     sum_i lambda_i = 0,
    u (c - lambda) = v (c + lambda) = 0,     sigma (sum_i s_i - sum_i lambda_i^2 / (4 s_i)) = 0,

all factors being >= 0.

Each product is set to mu > 0 and mu is driven to 0 by Mehrotra's predictor and corrector; a step is a
weighted least-squares problem in (w, b, sigma) with weights 1 / (u / (c - lambda) + v / (c + lambda) +
sigma / (2 s)).

References
----------
Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2 (1992);
Portnoy & Koenker, "The Gaussian hare and the Laplacian tortoise", Statistical Science 12 (1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import clip, like, to_numpy, where
from ..iterate import Iterate
from ._centred import CentredRows

__all__ = ["huber_interior"]

Array = NDArray[np.float64]
Solver = Callable[[Array, Any], tuple[Array, Any]]


class _Point(NamedTuple):
    """The unknowns; ``d`` holds the coefficients and, if it is free, the centred intercept."""

    d: Array
    sigma: float
    dual: Any  # lambda
    plus: Any  # c - lambda, kept apart from it: near 0 the difference would lose its digits
    minus: Any  # c + lambda
    up: Any  # u
    down: Any  # v


class _Step(NamedTuple):
    """The changes of the unknowns; plus and minus change by -dual and dual."""

    d: Array
    sigma: float
    dual: Any
    up: Any
    down: Any


def huber_interior(
    rows: CentredRows, y: Any, s: Any, epsilon: float, alpha: float, d: Array
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(d, sigma, theta), estimate=gap)`` after each step; ends at rounding.

    Parameters
    ----------
    rows : CentredRows
    y, s : arrays of shape (n,), where X lives
        Targets and weights.
    epsilon, alpha : float
    d : array
        Start: coefficients and, if it is free, the intercept of the centred rows.
    """
    total = float(s.sum())
    size = float(s @ abs(y - rows.predict(d))) / total
    if size == 0.0:
        return
    y, d = y / size, d / size  # the method compares residuals with forces, which have no unit
    s = where(s > 0, s, 1e-20 * total)  # a row of weight 0 would need a case of its own everywhere
    half, edge = 0.5 / s, 2.0 * epsilon * s
    ridge = 2.0 * alpha * size * (np.arange(len(d)) < rows.shape[1])
    r = y - rows.predict(d)
    at = _Point(d, 1.0, 0.0 * r, edge, edge, clip(r, 0.0, None) + 1.0, clip(-r, 0.0, None) + 1.0)
    first, best = math.nan, math.inf
    while True:
        kappa = half * at.dual
        room = total - 0.5 * float(kappa @ at.dual)
        gap = float(at.up @ at.plus + at.down @ at.minus) + at.sigma * room
        first = gap if math.isnan(first) else first
        if not 1e-15 * first < gap < 1e3 * best:
            return
        best = min(best, gap)
        inverse = at.up / at.plus + at.down / at.minus + at.sigma * half
        system = _System(
            at,
            kappa,
            room,
            y - rows.predict(at.d) - at.up + at.down - at.sigma * kappa,
            rows.adjoint(at.dual) - ridge * at.d,
            _factor(rows, inverse, kappa, np.append(ridge, room / at.sigma)),
        )
        trial = system.newton(0.0, 0.0, 0.0)
        t = _longest(at, trial, half, total)
        mu = gap * (1.0 - min(t, 1.0)) ** 3 / (2.0 * len(s) + 1.0)
        drift = trial.sigma * float(kappa @ trial.dual)
        drift += 0.5 * at.sigma * float((half * trial.dual) @ trial.dual)
        step = system.newton(mu + trial.up * trial.dual, mu - trial.down * trial.dual, mu + drift)
        t = min(1.0, 0.9995 * _longest(at, step, half, total))
        if not t > 1e-8:
            return
        at = _Point(
            at.d + t * step.d,
            at.sigma + t * step.sigma,
            at.dual + t * step.dual,
            at.plus - t * step.dual,
            at.minus + t * step.dual,
            at.up + t * step.up,
            at.down + t * step.down,
        )
        found = size * at.d, size * at.sigma, 2.0 * half * at.dual
        yield Iterate(found, estimate=size * gap, step=t)


class _System(NamedTuple):
    """The equations of a Newton step."""

    at: _Point
    kappa: Any  # lambda / (2 s)
    room: float  # sum s - sum lambda^2 / (4 s)
    miss: Any  # what the first condition lacks,
    lack: Array  # and the second and third
    solve: Solver

    def newton(self, up_plus: Any, down_minus: Any, scale_room: float) -> _Step:
        """The step after which, to first order, the three kinds of product have these values."""
        at = self.at
        target = self.miss - (up_plus / at.plus - at.up) + (down_minus / at.minus - at.down)
        v, dual = self.solve(np.append(self.lack, scale_room / at.sigma - self.room), target)
        up = (up_plus + at.up * dual) / at.plus - at.up
        down = (down_minus - at.down * dual) / at.minus - at.down
        return _Step(v[:-1], float(v[-1]), dual, up, down)


def _longest(at: _Point, step: _Step, half: Any, total: float) -> float:
    """How far one may go until a factor becomes negative; at most 1.001."""
    rate = max(0.999, -step.sigma / at.sigma)
    for value, change in (
        (at.up, step.up), (at.down, step.down), (at.plus, -step.dual), (at.minus, step.dual),
    ):  # fmt: skip
        rate = max(rate, float((-change / value).max()))
    t = 1.0 / rate
    a = 0.5 * float((half * step.dual) @ step.dual)  # the room is room - b t - a t^2 there
    b = float((half * at.dual) @ step.dual)
    room = total - 0.5 * float((half * at.dual) @ at.dual)
    return min(t, (-b + math.sqrt(b * b + 4.0 * a * room)) / (2.0 * a)) if a > 0.0 else t


def _factor(rows: CentredRows, inverse: Any, kappa: Any, ridge: Array) -> Solver:
    """A solver of ridge v = b + A'dual, A v + inverse dual = target, where A = [rows, kappa].

    ``dual`` is eliminated, and A' diag(1 / inverse) A + ridge remains; but not on the few rows on which
    ``inverse`` has become tiny, since these would drown the others: they stay in the equations.
    """
    kept, weights, size = _heavy(inverse, rows.shape[1]), 1.0 / inverse, len(ridge)
    if len(kept):
        weights[like(kept, weights)] = 0.0
    K = np.zeros((size + len(kept), size + len(kept)))
    K[: size - 1, : size - 1] = rows.gram(weights)
    K[size - 1, : size - 1] = K[: size - 1, size - 1] = rows.adjoint(weights * kappa)
    K[size - 1, size - 1] = float(weights @ kappa**2)
    K[np.arange(size), np.arange(size)] += ridge
    if len(kept):
        K[size:, : size - 1] = rows.table(kept)
        K[size:, size - 1] = to_numpy(kappa)[kept]
        K[:size, size:] = K[size:, :size].T
        K[np.arange(size, len(K)), np.arange(size, len(K))] = -to_numpy(inverse)[kept]
    scale = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=0), 1e-300))
    K = K * scale * scale[:, None]

    def solve(b: Array, target: Any) -> tuple[Array, Any]:
        weighted = weights * target
        left = b + np.append(rows.adjoint(weighted), float(weighted @ kappa))
        rhs = scale * np.append(left, to_numpy(target)[kept])
        try:
            v = np.linalg.solve(K, rhs)
        except np.linalg.LinAlgError:
            v = np.full(len(rhs), math.nan)
        if not np.abs(K @ v - rhs).max() <= 1e-9 * np.abs(rhs).max():
            v = np.linalg.lstsq(K, rhs, rcond=1e-14)[0]
        v = scale * v
        dual = weights * (target - rows.predict(v[: size - 1]) - float(v[size - 1]) * kappa)
        if len(kept):
            dual[like(kept, dual)] = like(-v[size:], dual)
        return v[:size], dual

    return solve


def _heavy(inverse: Any, p: int) -> NDArray[np.intp]:
    """The rows to keep: all of a small problem, otherwise those far below the median, if they are few."""
    n, most = len(inverse), 4 * (p + 2)
    if n <= max(200, most):
        return np.arange(n)
    values = to_numpy(inverse)
    found = np.flatnonzero(values <= 1e-6 * np.median(values))
    return found if len(found) <= most else found[:0]
