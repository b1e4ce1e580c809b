r"""Huber's regression with its scale, by a primal-dual interior-point method.

The slow and sure companion of :mod:`surefit.solvers.huber`, for the corners where Newton's method has no
curvature to go by: with many exact fits the best scale is 0, and the problem is least absolute deviations with
whatever ties the data have. In lambda_i = s_i theta_i, |lambda_i| <= c_i = 2 eps s_i, the optimality conditions
are

    y - Xw - b = u - v + sigma lambda / (2 s),     X'lambda = 2 alpha w,     sum_i lambda_i = 0,
    u (c - lambda) = v (c + lambda) = 0,     sigma (sum_i s_i - sum_i lambda_i^2 / (4 s_i)) = 0,     all factors >= 0.

Each product is set to mu > 0 and mu is driven to 0 by Mehrotra's predictor and corrector; a step is a weighted
least-squares problem in (w, b, sigma) with weights 1 / (u / (c - lambda) + v / (c + lambda) + sigma / (2 s)).

References
----------
Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2 (1992); Portnoy &
Koenker, "The Gaussian hare and the Laplacian tortoise", Statistical Science 12 (1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import clip, where
from ..design import Design
from ..iterate import Iterate

__all__ = ["huber_interior"]

Array = NDArray[np.float64]
_TINY = float(np.finfo(np.float64).tiny)
Solve = Callable[[Array, float, int, Array], tuple[Array, bool]]


class _Point(NamedTuple):
    """The unknowns; ``d`` holds the coefficients and, if it is free, the centred intercept."""

    d: Array
    sigma: float
    dual: Any  # lambda
    up: Any  # u
    down: Any  # v


def huber_interior(
    X: Design,
    y: Any,
    s: Any,
    epsilon: float,
    alpha: float,
    d: Array,
    center: Array,
    *,
    fit_intercept: bool,
    solve: Solve,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(d, sigma, theta), estimate=gap)`` after each step.

    Parameters
    ----------
    X : Design of shape (n, p)
    y, s : arrays of shape (n,), where X lives
    epsilon, alpha : float
    d : array of shape (p,) or (p + 1,)
        Start: coefficients and intercept of the rows less ``center``.
    center : array of shape (p,)
    solve : callable
        ``solve(K, ridge, p, rhs)`` solves with K + ridge on its first p diagonal entries.
    """
    p, total = X.shape[1], float(s.sum())
    used = s > 0
    count = 2 * int(used.sum()) + 1
    bound = where(used, 2.0 * epsilon * s, 1.0)
    shrink = where(used, 0.5 / clip(s, _TINY, None), 0.0)  # 1 / (2 s)

    def predict(v: Array) -> Any:
        return X.dot(v[:p]) + (float(v[p] - center @ v[:p]) if fit_intercept else 0.0)

    def adjoint(v: Any) -> Array:
        product = X.tdot(v)
        if not fit_intercept:
            return product
        return np.append(product - float(v.sum()) * center, float(v.sum()))

    r = y - predict(d)
    size = float(s @ abs(r)) / total
    at = _Point(d, size, 0.0 * r, clip(r, 0.0, None) + size, clip(-r, 0.0, None) + size)
    ridge = 2.0 * alpha * (np.arange(len(d)) < p)
    best = math.inf
    while True:
        plus, minus = bound - at.dual, bound + at.dual
        kappa = shrink * at.dual
        room = total - 0.5 * float(kappa @ at.dual)
        rho = y - predict(at.d) - at.up + at.down - at.sigma * kappa
        lack = adjoint(at.dual) - ridge * at.d
        gap = float(where(used, at.up * plus + at.down * minus, 0.0).sum()) + at.sigma * room
        weights = where(used, 1.0 / (at.up / plus + at.down / minus + at.sigma * shrink), 0.0)
        cross = adjoint(weights * kappa)
        K = np.zeros((len(d) + 1, len(d) + 1))
        K[:-1, :-1] = _bordered(X, weights, center, fit_intercept)
        K[np.arange(p), np.arange(p)] += 2.0 * alpha
        K[-1, :-1] = K[:-1, -1] = cross
        K[-1, -1] = float(weights @ kappa**2) + room / at.sigma

        def direction(up_plus: Any, down_minus: Any, scale_room: float) -> tuple[Array, Any, Any, Any]:
            """Newton's step towards these products."""
            target = rho - (up_plus / plus - at.up) + (down_minus / minus - at.down)
            rhs = lack + adjoint(weights * target)
            last = scale_room / at.sigma - room + float((weights * kappa) @ target)
            step, _ = solve(K, 0.0, p, np.append(rhs, last))
            change = weights * (target - predict(step[:-1]) - float(step[-1]) * kappa)
            up = (up_plus + at.up * change) / plus - at.up
            down = (down_minus - at.down * change) / minus - at.down
            return step, change, up, down

        step, change, up, down = direction(0.0, 0.0, 0.0)
        t = _longest(at, bound, shrink, total, used, step, change, up, down)
        after = (at.up + t * up) * (plus - t * change) + (at.down + t * down) * (minus + t * change)
        moved = at.dual + t * change
        left = total - 0.5 * float((shrink * moved) @ moved)
        after_gap = float(where(used, after, 0.0).sum()) + (at.sigma + t * float(step[-1])) * left
        mu = gap / count * min(1.0, max(after_gap / gap, 0.0)) ** 3
        drift = 0.5 * float((shrink * change) @ change)  # of the room, to second order
        step, change, up, down = direction(
            mu + up * change, mu - down * change, mu + float(step[-1]) * float(kappa @ change) + at.sigma * drift
        )
        t = min(1.0, 0.9995 * _longest(at, bound, shrink, total, used, step, change, up, down))
        at = _Point(
            at.d + t * step[:-1], at.sigma + t * float(step[-1]), at.dual + t * change, at.up + t * up, at.down + t * down
        )
        yield Iterate((at.d, at.sigma, 2.0 * shrink * at.dual), estimate=gap, step=t)
        if t < 1e-10 or gap > 1e3 * best:
            return
        best = min(best, gap)


def _bordered(X: Design, weights: Any, center: Array, free: bool) -> Array:
    gram = X.gram(weights, center if free else None)
    if not free:
        return gram
    mass = float(weights.sum())
    sums = X.tdot(weights) - mass * center
    return np.block([[gram, sums[:, None]], [sums[None, :], np.full((1, 1), mass)]])


def _longest(
    at: _Point, bound: Any, shrink: Any, total: float, used: Any, step: Array, change: Any, up: Any, down: Any
) -> float:
    """How far one may go until a factor becomes negative; at most 1 / 0.9995."""
    shortest = 0.9995
    for value, rate in (
        (at.up, up), (at.down, down), (bound - at.dual, -change), (bound + at.dual, change),
    ):  # fmt: skip
        shortest = max(shortest, float(where(used, -rate / value, 0.0).max()))
    shortest = max(shortest, -float(step[-1]) / at.sigma)
    t = 1.0 / shortest
    a = 0.5 * float((shrink * change) @ change)  # room(t) = room - b t - a t^2
    b = float((shrink * at.dual) @ change)
    room = total - 0.5 * float((shrink * at.dual) @ at.dual)
    if a > 0.0:
        t = min(t, (-b + math.sqrt(b * b + 4.0 * a * room)) / (2.0 * a))
    return t
