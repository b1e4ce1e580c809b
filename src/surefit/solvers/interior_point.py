r"""Frisch-Newton: a primal-dual interior-point method for piecewise linear regression.

    min_beta  sum_i high_i [r_i]_+ + (-low_i) [-r_i]_+,   r = y - A beta,     low_i < 0 < high_i,

the quantile loss with weights s_i having low_i = -(1 - q) s_i and high_i = q s_i. Its dual has one bounded
variable a row and one equality a column,

    max_a  y'a,     A'a = 0,     low <= a <= high,

and a = 0 is strictly inside. With the slacks x = a - low and t = high - a, and r = u - v split into
non-negative parts, the optimum has x v = 0 and t u = 0: a row above the fit has a = high, one below a = low.
A step of Newton's method on these conditions, relaxed to x v = t u = mu, is a weighted least-squares problem,

    (A'DA) dbeta = A'D (...),     D = 1 / (v/x + u/t),

that is, one weighted Gram matrix (of the transpose, by Woodbury's formula, where that is smaller). Mehrotra's
predictor chooses how far mu falls, his corrector removes the error of the linearisation with the same
factor. Rows enter through A'DA and products only, so that dense, sparse and device-held rows run through the
same code.

References
----------
Portnoy & Koenker, "The Gaussian hare and the Laplacian tortoise", Statistical Science 12 (1997);
Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2 (1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import array_namespace, like, to_numpy, where
from ..design import as_design
from ..iterate import Iterate

__all__ = ["Rows", "frisch_newton"]

Array = NDArray[np.float64]
Solver = Callable[[Array], Array]
_BOUNDARY = 0.9995  # share of the way to the boundary that a step may take


class Rows:
    """The rows of A: those of a matrix in memory and below them, where there is a penalty, the identity.

    Attributes
    ----------
    matrix : array or scipy.sparse matrix of shape (m, k)
    identity : int
        How many rows of the identity there are, that is, how many of the first coefficients are penalised.
    """

    def __init__(self, matrix: Any, identity: int = 0) -> None:
        self.matrix, self.identity = matrix, identity
        self.top = as_design(matrix)
        self.shape = (self.top.shape[0] + identity, self.top.shape[1])

    def vector(self, values: Any) -> Any:
        """A number a row, where the matrix lives."""
        return self.top.vector(values)

    def dot(self, beta: Array) -> Any:
        """A beta."""
        z = self.top.dot(beta)
        if not self.identity:
            return z
        return array_namespace(z).concat([z, self.vector(beta[: self.identity])])

    def tdot(self, v: Any) -> Array:
        """A'v."""
        m = self.top.shape[0]
        total = self.top.tdot(v[:m])
        total[: self.identity] += to_numpy(v[m:])
        return total

    def take(self, index: Any) -> Array:
        """Some rows, as a dense numpy array."""
        index, m = np.asarray(index), self.top.shape[0]
        out = np.zeros((len(index), self.shape[1]))
        below = index >= m
        picked = self.matrix[like(index[~below], self.matrix)]
        out[~below] = picked.toarray() if sp.issparse(picked) else to_numpy(picked)
        out[np.flatnonzero(below), index[below] - m] = 1.0
        return out

    def normal(self, d: Any) -> Solver:
        """The inverse of A' diag(d) A."""
        m, k = self.top.shape
        if k > m and self.identity:
            return self._wide(to_numpy(d[:m]), to_numpy(d[m:]))
        gram = self.top.gram(d[:m])
        gram[np.arange(self.identity), np.arange(self.identity)] += to_numpy(d[m:])
        return _factor(gram)

    def _wide(self, d: Array, penalty: Array) -> Solver:
        """Fewer rows than columns: Woodbury's formula, and elimination of what is not penalised."""
        m, inverse = self.top.shape[0], 1.0 / penalty
        columns = as_design(self.matrix[:, : self.identity].T)
        kernel = columns.gram(columns.vector(inverse))
        kernel[np.diag_indices(m)] += 1.0 / d
        inner, free = _factor(kernel), np.arange(self.identity, self.shape[1])

        def core(v: Array) -> Array:
            bent = inner(to_numpy(columns.tdot(columns.vector(inverse * v))))
            return inverse * (v - to_numpy(columns.dot(bent)))

        rest = self.top.columns(free)
        border = to_numpy(columns.dot(d[:, None] * rest))
        bent = np.stack([core(b) for b in border.T], axis=1) if len(free) else border
        outer = _factor(rest.T @ (d[:, None] * rest) - border.T @ bent)

        def solve(rhs: Array) -> Array:
            first = core(rhs[: self.identity])
            last = outer(rhs[self.identity :] - border.T @ first)
            return np.concatenate([first - bent @ last, last])

        return solve


def frisch_newton(
    A: Rows, y: Any, low: Any, high: Any, beta: Array | None = None
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(beta, a, D), value=objective, estimate=relative gap)`` after each step.

    Parameters
    ----------
    A : Rows of shape (n, k)
        The intercept's ones are among the columns.
    y, low, high : arrays of shape (n,), where the matrix lives
        Targets, and the bounds of the dual variables, low < 0 < high.
    beta : array of shape (k,), optional
        Start; the weighted least-squares solution by default.
    """
    xp = array_namespace(y)
    if beta is None:
        beta = A.normal(high - low)(A.tdot((high - low) * y))
    x, t = -low, high + 0.0  # a = 0
    r = y - A.dot(beta)
    u = xp.where(r > 0, r, 0.0) + max(0.1 * float(xp.mean(xp.abs(r))), 1e-8)
    v = u - r
    n, null = 2 * len(y), float(xp.sum((high - low) * xp.abs(y))) or float(xp.sum(high - low))
    yield Iterate((beta, x + low, high - low), float(xp.sum(high * u - low * v)), 1.0, cost=0)
    while True:
        mu = (
            float(xp.sum(x * v + t * u)) / n
        )  # a sum: threads of a BLAS would cost more than they save
        step = _Newton(A, x, t, u, v, low, y - A.dot(beta) - u + v)
        dbeta, dx, dv, du = step.direction(-v, -u)
        primal, dual = _reach(xp, (x, dx), (t, -dx)), _reach(xp, (v, dv), (u, du))
        left = (x + primal * dx) * (v + dual * dv) + (t - primal * dx) * (u + dual * du)
        centre = (float(xp.sum(left)) / (n * mu)) ** 3 * mu if mu > 0 else 0.0
        dbeta, dx, dv, du = step.direction((centre - dx * dv) / x - v, (centre + dx * du) / t - u)
        primal, dual = _reach(xp, (x, dx), (t, -dx)), _reach(xp, (v, dv), (u, du))
        x, t = x + primal * dx, t - primal * dx
        beta, v, u = beta + dual * dbeta, v + dual * dv, u + dual * du
        gap, value = float(xp.sum(x * v + t * u)), float(xp.sum(high * u - low * v))
        if not math.isfinite(gap):  # rounding is reached; the point before is the last
            return
        yield Iterate(
            (beta, x + low, step.d), value, gap / (value + 1e-9 * null), min(primal, dual)
        )
        if max(primal, dual) < 1e-8:
            return


class _Newton:
    """Newton's equations at a point, factorised once for the predictor and the corrector."""

    def __init__(self, A: Rows, x: Any, t: Any, u: Any, v: Any, low: Any, slack: Any) -> None:
        self.A, self.below, self.above = A, v / x, u / t
        self.d = 1.0 / (self.below + self.above)
        self.solve = A.normal(self.d)
        self.leak = A.tdot(x + low)  # A'a, which rounding keeps from vanishing
        self.slack = slack  # r - u + v, the same

    def direction(self, to_v: Any, to_u: Any) -> tuple[Array, Any, Any, Any]:
        """The changes of beta, x, v, u that move x v by x to_v and t u by t to_u, to first order."""
        rhs = self.slack + to_v - to_u
        dbeta = self.solve(self.A.tdot(self.d * rhs) + self.leak)
        dx = self.d * (rhs - self.A.dot(dbeta))
        return dbeta, dx, to_v - self.below * dx, to_u + self.above * dx


def _reach(xp: Any, *pairs: tuple[Any, Any]) -> float:
    """The longest step, up to 1, that keeps every part positive."""
    worst = min(float(xp.min(where(change < 0, change / part, 0.0))) for part, change in pairs)
    return 1.0 if worst > -_BOUNDARY else -_BOUNDARY / worst


def _factor(matrix: Array) -> Solver:
    """Cholesky of a Gram matrix scaled to unit diagonal; its pseudo-inverse when that is singular."""
    if not matrix.size:
        return np.copy
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = 1.0 / np.where(scale > 0.0, scale, 1.0)
    unit = matrix * scale * scale[:, None]
    factor, info = scipy.linalg.lapack.dpotrf(unit, lower=1)
    if info == 0 and np.diag(factor).min(initial=1.0) > 1e-7:

        def solve(rhs: Array) -> Array:
            return scale * scipy.linalg.lapack.dpotrs(factor, scale * rhs, lower=1)[0]

        return solve
    values, vectors = np.linalg.eigh(np.nan_to_num(unit))
    keep = values > 1e-13 * max(values[-1], 1e-300)
    inverse = vectors[:, keep] / values[keep] @ vectors[:, keep].T
    return lambda rhs: scale * (inverse @ (scale * rhs))
