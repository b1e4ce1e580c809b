r"""A primal-dual interior-point method for the hinge and the epsilon-insensitive loss.

    min_{w, b}  1/2 ||w||^2 (+ 1/2 (b/B)^2) - <g, w> - g_0 b + sum_j c_j [a_j - sigma_j (x_j'w + b)]_+

A row of a classifier has one such term (sigma = y, a = 1), one of a regression two, one for each edge of its
tube. g is the pull of rows whose side is known already (:mod:`surefit.solvers.hinge_rows`), 0 otherwise. With
slacks s, xi >= 0 and multipliers 0 <= alpha <= c,

    w = g + sum sigma alpha x,    sigma z - a = s - xi,    alpha s = 0,    (c - alpha) xi = 0,

and a Newton step on these conditions, relaxed to alpha s = (c - alpha) xi = mu, needs one Gram matrix,

    (I + X'DX) dw = ...,     D = 1 / (s / alpha + xi / (c - alpha)),

whatever the number of rows. Mehrotra's predictor and corrector share its factor. An infinite c is a hard
margin: the row has no xi. Rows enter through the products of their design, so that they may be in memory,
sparse, on a device or on disk.

References
----------
Ferris & Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13 (2003);
Mehrotra (1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Design
from ..iterate import Iterate
from .box_dual import BoxDual, Intercept, Point
from .interior_point import _factor

__all__ = ["Sides", "hinge_interior", "sides_of"]

Array = NDArray[np.float64]
_BOUNDARY = 0.9995  # share of the way to the boundary that a step may take
_STALE = 6  # steps without a smaller gap: rounding is reached


class Sides(NamedTuple):
    """sigma, a, c of shape (k, n): k = 1 for a classifier, 2 for a regression."""

    sigma: Array
    a: Array
    c: Array


def sides_of(problem: BoxDual) -> Sides:
    """The hinges that a problem without curvature consists of."""
    if problem.eps == 0.0 and not ((problem.low < 0) & (problem.high > 0)).any():
        sigma = np.where(problem.high > 0, 1.0, -1.0)
        return Sides(sigma[None], (sigma * problem.t)[None], (problem.high - problem.low)[None])
    ones = np.ones_like(problem.t)
    return Sides(
        np.stack([ones, -ones]),
        np.stack([problem.t - problem.eps, -problem.t - problem.eps]),
        np.stack([problem.high, -problem.low]),
    )


def hinge_interior(
    X: Design,
    sides: Sides,
    intercept: Intercept,
    pull: tuple[Array, float] | None = None,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(Point, alpha), value=objective, estimate=gap)`` after each step, down to rounding.

    ``alpha`` is the array of multipliers, of the shape of the sides; its signed sum is the point's beta.
    """
    state = _State(X, sides, intercept, pull or (np.zeros(X.shape[1]), 0.0))
    least, stale = math.inf, 0
    while stale < _STALE:
        iterate = state.iterate()
        yield iterate
        least, stale = (iterate.estimate, 0) if iterate.estimate < least else (least, stale + 1)
        if not state.step():
            return


class _State:
    """Where the method stands."""

    def __init__(
        self, X: Design, sides: Sides, intercept: Intercept, pull: tuple[Array, float]
    ) -> None:
        self.X, self.intercept = X, intercept
        self.sigma, self.a, self.c = sides
        self.g, self.g0 = pull
        self.hard = np.isinf(self.c)
        self.w, self.b, self.length = np.zeros(X.shape[1]), 0.0, math.nan
        m = -self.a  # sigma z - a at 0
        # as far inside as the data are large; a hard margin has no price to start from
        inside = max(1.0, float(np.abs(self.a).mean()))
        self.s = np.maximum(m, 0.0) + inside
        self.xi = np.where(self.hard, 0.0, self.s - m)
        self.alpha = np.where(self.hard, 1.0, 0.5 * self.c)
        self.u = np.where(self.hard, 1.0, 0.5 * self.c)  # c - alpha, without its cancellation
        self.z = np.zeros(X.shape[0])

    def iterate(self) -> Iterate:
        beta = (self.sigma * self.alpha).sum(axis=0)
        self.made = self.g + self.X.tdot(self.X.vector(beta))  # the w that alpha makes
        self.total = self.g0 + float(beta.sum())
        m = self.sigma * self.z - self.a
        # a hard margin is priced by its multiplier: the objective of a point that is not yet feasible
        price = np.where(self.hard, self.alpha, self.c)
        losses = float((price * np.maximum(-m, 0.0)).sum())
        value = 0.5 * float(self.w @ self.w) - float(self.g @ self.w) - self.g0 * self.b + losses
        dual = float((self.a * self.alpha).sum()) - 0.5 * float(self.made @ self.made)
        if self.intercept.scaling:
            B = self.intercept.scaling
            if self.intercept.penalised:
                value += 0.5 * (self.b / B) ** 2
                dual -= 0.5 * (B * self.total) ** 2
            else:
                dual -= abs(self.total * self.b)
        gap = abs(value - dual)
        if self.hard.any():
            gap += float(np.abs(self.alpha * self.s).sum() + np.maximum(-m, 0.0).sum())
        return Iterate((Point(self.w, self.b, beta), self.alpha), float(value), gap, self.length)

    def step(self) -> bool:
        """One step; False where rounding leaves none."""
        with np.errstate(all="ignore"):
            return self._step()

    def _step(self) -> bool:
        alpha, s, xi, u = self.alpha, self.s, self.xi, self.u
        n = alpha.size + int((~self.hard).sum())
        mu = float((alpha * s).sum() + (u * xi).sum()) / n
        up = np.where(self.hard, 0.0, xi / u)
        D = 1.0 / (s / alpha + up)
        if not (np.isfinite(D).all() and np.isfinite(up).all()) or mu <= 0.0 or D.sum() <= 0.0:
            return False
        solve = self._factor(D.sum(axis=0))
        slack = self.sigma * self.z - self.a + xi - s  # rounding, once a full step was made

        def direction(to_s: Array, to_xi: Array) -> tuple[Array, float, Array, Array]:
            """Changes of w, b, z, alpha that move alpha s by alpha to_s and u xi by u to_xi."""
            q = to_s - to_xi - slack
            dw, db = solve((self.sigma * D * q).sum(axis=0))
            dz = to_numpy(self.X.dot(dw)) + db
            return dw, db, dz, D * (q - self.sigma * dz)

        _, _, _, da = direction(-s, -xi)
        ds, dxi = -s - s / alpha * da, np.where(self.hard, 0.0, -xi + up * da)
        reach = _reach((alpha, da), (u, np.where(self.hard, 0.0, -da)), (s, ds), (xi, dxi))
        left = ((alpha + reach * da) * (s + reach * ds)).sum()
        left += np.where(self.hard, 0.0, (u - reach * da) * (xi + reach * dxi)).sum()
        centre = (float(left) / (n * mu)) ** 3 * mu
        to_s = (centre - da * ds) / alpha - s
        to_xi = np.where(self.hard, 0.0, (centre + da * dxi) / u - xi)
        dw, db, dz, da = direction(to_s, to_xi)
        ds, dxi = to_s - s / alpha * da, np.where(self.hard, 0.0, to_xi + up * da)
        reach = _reach((alpha, da), (u, np.where(self.hard, 0.0, -da)), (s, ds), (xi, dxi))
        if not math.isfinite(reach) or reach < 1e-10 or not np.isfinite(dw).all():
            return False
        self.w, self.b, self.z = self.w + reach * dw, self.b + reach * db, self.z + reach * dz
        self.alpha, self.s, self.xi = alpha + reach * da, s + reach * ds, xi + reach * dxi
        self.u = np.where(self.hard, 1.0, u - reach * da)
        self.length = reach
        return True

    def _factor(self, D: Array) -> Callable[[Array], tuple[Array, float]]:
        """Solves for (dw, db) from the weights of the rows' right-hand side."""
        X, B, kept = self.X, self.intercept.scaling, self.intercept
        total = float(D.sum())
        ridge = 1.0 / B**2 if B and kept.penalised else 0.0
        border = np.zeros(X.shape[1])
        if kept.free:  # centred at the weighted mean, the intercept separates
            border = X.tdot(X.vector(D)) / total
            gram = X.gram(X.vector(D), border)
        else:
            gram = X.gram(X.vector(D))
            if B:
                border = X.tdot(X.vector(D)) / (ridge + total)
                gram -= (ridge + total) * np.outer(border, border)
        gram[np.diag_indices(len(gram))] += 1.0
        inverse = _factor(gram)
        miss, miss0 = self.w - self.made, 0.0
        if B:
            miss0 = self.b * ridge - self.total

        def solve(r: Array) -> tuple[Array, float]:
            rhs, last = X.tdot(X.vector(r)) - miss, float(r.sum()) - miss0
            if not B:
                return inverse(rhs), 0.0
            dw = inverse(rhs - last * border)
            return dw, last / (ridge + total) - float(border @ dw)

        return solve


def _reach(*pairs: tuple[Array, Array]) -> float:
    """The longest step, up to 1, that keeps every part positive."""
    worst = 0.0
    for part, change in pairs:
        worst = min(worst, float(np.min(np.where(change < 0, change / part, 0.0))))
    return 1.0 if worst > -_BOUNDARY else -_BOUNDARY / worst
