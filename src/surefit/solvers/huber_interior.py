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

from .._namespace import clip, like, to_numpy, where
from ..design import Design
from ..iterate import Iterate

__all__ = ["bordered_gram", "huber_interior"]

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
    X: Design,
    y: Any,
    s: Any,
    epsilon: float,
    alpha: float,
    d: Array,
    center: Array,
    *,
    fit_intercept: bool,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(d, sigma, theta), estimate=gap)`` after each step; ends at rounding.

    Parameters
    ----------
    X : Design of shape (n, p)
    y, s : arrays of shape (n,), where X lives
        Targets and weights.
    epsilon, alpha : float
    d : array of shape (p,) or (p + 1,)
        Start: coefficients and, if it is free, intercept of the rows less ``center``.
    center : array of shape (p,)
    """
    p, total = X.shape[1], float(s.sum())
    s = where(s > 0, s, 1e-20 * total)  # a row of weight 0 would need a case of its own everywhere
    half, edge = 0.5 / s, 2.0 * epsilon * s
    ridge = 2.0 * alpha * (np.arange(len(d)) < p)
    rows = _Rows(X, center, fit_intercept)
    r = y - rows.predict(d)
    size = float(s @ abs(r)) / total
    at = _Point(d, size, 0.0 * r, edge, edge, clip(r, 0.0, None) + size, clip(-r, 0.0, None) + size)
    first, best = math.nan, math.inf
    while True:
        kappa = half * at.dual
        room = total - 0.5 * float(kappa @ at.dual)
        gap = float(at.up @ at.plus + at.down @ at.minus) + at.sigma * room
        first = gap if math.isnan(first) else first
        if not 1e-15 * first < gap < 1e3 * best:
            return
        best = min(best, gap)
        miss = y - rows.predict(at.d) - at.up + at.down - at.sigma * kappa
        lack = rows.adjoint(at.dual) - ridge * at.d
        inverse = at.up / at.plus + at.down / at.minus + at.sigma * half
        solve = rows.factor(inverse, kappa, np.append(ridge, room / at.sigma))

        def newton(up_plus: Any, down_minus: Any, scale_room: float) -> _Step:
            """The step after which, to first order, the three kinds of product have these values."""
            target = miss - (up_plus / at.plus - at.up) + (down_minus / at.minus - at.down)
            v, dual = solve(np.append(lack, scale_room / at.sigma - room), target)
            up = (up_plus + at.up * dual) / at.plus - at.up
            down = (down_minus - at.down * dual) / at.minus - at.down
            return _Step(v[:-1], float(v[-1]), dual, up, down)

        trial = newton(0.0, 0.0, 0.0)
        t = _longest(at, trial, half, total)
        mu = gap * (1.0 - min(t, 1.0)) ** 3 / (2.0 * len(s) + 1.0)
        drift = trial.sigma * float(kappa @ trial.dual)
        drift += 0.5 * at.sigma * float((half * trial.dual) @ trial.dual)
        step = newton(mu + trial.up * trial.dual, mu - trial.down * trial.dual, mu + drift)
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
        yield Iterate((at.d, at.sigma, 2.0 * half * at.dual), estimate=gap, step=t)


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


class _Rows:
    """The rows less the centre, with a 1 for the intercept if it is free."""

    def __init__(self, X: Design, center: Array, free: bool) -> None:
        self.X, self.center, self.free = X, center, free

    def predict(self, d: Array) -> Any:
        """The linear function d of each row."""
        p = len(self.center)
        return self.X.dot(d[:p]) + (float(d[p] - self.center @ d[:p]) if self.free else 0.0)

    def adjoint(self, v: Any) -> Array:
        """The sum of the rows, weighted by v."""
        product = self.X.tdot(v)
        if not self.free:
            return product
        return np.append(product - float(v.sum()) * self.center, float(v.sum()))

    def factor(self, inverse: Any, kappa: Any, ridge: Array) -> Solver:
        """A solver of ridge v = b + A'dual, A v + inverse dual = target, where A = [rows, kappa].

        ``dual`` is eliminated, ``A' diag(1 / inverse) A + ridge`` remains; but not on the few rows on which
        ``inverse`` has become tiny, since these would drown the others: they stay in the equations.
        """
        kept = self._heavy(inverse)
        weights = 1.0 / inverse
        if len(kept):
            weights[like(kept, weights)] = 0.0
        size = len(ridge)
        K = np.zeros((size + len(kept), size + len(kept)))
        K[: size - 1, : size - 1] = bordered_gram(self.X, weights, self.center, self.free)
        K[size - 1, : size - 1] = K[: size - 1, size - 1] = self.adjoint(weights * kappa)
        K[size - 1, size - 1] = float(weights @ kappa**2)
        K[np.arange(size), np.arange(size)] += ridge
        if len(kept):
            K[size:, : size - 1] = self._take(kept)
            K[size:, size - 1] = to_numpy(kappa)[kept]
            K[:size, size:] = K[size:, :size].T
            K[np.arange(size, len(K)), np.arange(size, len(K))] = -to_numpy(inverse)[kept]
        scale = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=0), 1e-300))
        K = K * scale * scale[:, None]

        def solve(b: Array, target: Any) -> tuple[Array, Any]:
            weighted = weights * target
            rhs = np.append(
                b + np.append(self.adjoint(weighted), float(weighted @ kappa)),
                to_numpy(target)[kept],
            )
            try:
                v = scale * np.linalg.solve(K, scale * rhs)
            except np.linalg.LinAlgError:
                v = np.full(len(rhs), math.nan)
            if not np.abs(K @ (v / scale) - scale * rhs).max() <= 1e-9 * np.abs(scale * rhs).max():
                v = scale * np.linalg.lstsq(K, scale * rhs, rcond=1e-14)[0]
            dual = weights * (target - self.predict(v[: size - 1]) - float(v[size - 1]) * kappa)
            if len(kept):
                dual[like(kept, dual)] = like(-v[size:], dual)
            return v[:size], dual

        return solve

    def _heavy(self, inverse: Any) -> NDArray[np.intp]:
        """The rows to keep: all of a small problem, otherwise those far below the median."""
        n, most = len(inverse), 4 * (len(self.center) + 2)
        if n <= max(200, most):
            return np.arange(n)
        values = to_numpy(inverse)
        found = np.flatnonzero(values <= 1e-6 * np.median(values))
        return found if len(found) <= most else found[:0]

    def _take(self, index: NDArray[np.intp]) -> Array:
        """Some rows as a matrix."""
        p = len(self.center)
        out = np.ones((len(index), p + int(self.free)))
        for rows, block in self.X.blocks():
            inside = (index >= rows.start) & (index < rows.stop)
            if inside.any():
                part = block[like(index[inside] - rows.start, block)]
                out[inside, :p] = part.toarray() if hasattr(part, "toarray") else to_numpy(part)
        out[:, :p] -= self.center
        return out


def bordered_gram(X: Design, weights: Any, center: Array, free: bool) -> Array:
    """The Gram matrix of the rows less the centre, with the border of the intercept if it is free."""
    gram = X.gram(weights, center if free else None)
    if not free:
        return gram
    mass = float(weights.sum())
    sums = X.tdot(weights) - mass * center
    return np.block([[gram, sums[:, None]], [sums[None, :], np.full((1, 1), mass)]])
