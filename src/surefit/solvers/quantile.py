r"""Quantile regression with an l1 penalty: the rows and columns that matter, then an exact vertex.

    min_{w, b}  sum_i s_i rho_q(y_i - x_i'w - b) + alpha ||w||_1,     rho_q(e) = max(q e, (q - 1) e)

Frisch-Newton steps come near the optimum, and a few simplex pivots from there end at a vertex, exactly.

Most rows need not take part. The optimum depends on a row only through the side of the fit on which it lies,
unless it is near. So the fit to a sample of about (n k)^{2/3} rows decides the sides of those that are far
from it; they are replaced by their two means, and the problem that remains is solved exactly. Then the sides
are checked on all rows, and rows that were misjudged come back in, until none was: the solution is then one
of the full problem. Nor need most columns take part when there are many and they are penalised: as long
as |x_j'(s theta)| <= alpha a column keeps its coefficient 0, and the others come in.

References
----------
Portnoy & Koenker, "The Gaussian hare and the Laplacian tortoise" (1997), section 5; Koenker, Quantile
Regression (2005), chapter 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ..design import Design
from ..iterate import Fit, Stop, run
from .interior_point import Rows, frisch_newton
from .pinball_rows import ABOVE, BELOW, PENALTY, PinballData, PinballRows
from .pinball_simplex import choose_basis, pinball_simplex

__all__ = ["QuantileSolution", "quantile_regression"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_NEAR = 1e-5  # relative gap at which pivots take over
_ROUGH = 1e-3  # the same for the sample that only decides sides
_COLUMNS = 300  # penalised columns up to which all take part
_SCREEN = 5000  # rows or columns up to which an interior point on all columns is computed
_WARM = 50  # columns that come in by pivots alone
_ROWS = 10_000  # rows up to which all take part
_DEPENDENT = 1e-12  # relative size of what is left of a column that depends on others
_OUTLIER = 100.0  # targets are drawn to within so many typical deviations for a first, rough fit
_FEW = 3  # a sample is worth while when it is this many times smaller


class QuantileSolution(NamedTuple):
    """The model, a dual point (one number a row), and how the solver got there."""

    coef: Array
    intercept: float
    theta: Array
    n_iter: int
    stop: Stop


class _Vertex(NamedTuple):
    """Standardised coefficients, dual variables by row, and the names of the rows in the basis."""

    beta: Array
    a: Array
    basis: Index | None


def quantile_regression(
    X: Design,
    y: Any,
    s: Any,
    q: float,
    alpha: float,
    *,
    fit_intercept: bool,
    max_iter: int = 100_000,
) -> QuantileSolution:
    """Solve the problem above, s divided by its sum.

    Products with X are made where X lives; the book of rows and sides is kept in numpy. ``max_iter``
    bounds interior-point steps and pivots together.
    """
    data = PinballData.prepare(X, to_numpy(y), to_numpy(s), q, alpha, fit_intercept)
    work = _Work(max_iter)
    columns = data.columns
    if alpha == 0.0 or len(columns) <= _COLUMNS:
        return _finish(data, columns, *_solve(data, columns, work), work)
    active, start, screened = columns[:0], None, False
    while True:
        vertex, theta = _solve(data, active, work, start)
        pull = data.pull(theta)
        out = np.setdiff1d(columns[pull[columns] > alpha * (1.0 + 1e-10)], active)
        if not len(out) or work.left <= 0:
            return _finish(data, active, vertex, theta, work)
        worst, start = out[np.argsort(-pull[out])][: max(100, len(active))], None
        if not screened and 8 * (len(active) + len(worst)) > len(data.used):
            worst, screened = np.union1d(worst, _screened(data, work)), True
        elif vertex.basis is not None and len(worst) <= _WARM:
            start = vertex._replace(basis=np.concatenate([vertex.basis, PENALTY - worst]))
        active = np.union1d(active, worst)


@dataclass
class _Work:
    """The iterations that are left, those that were made, and how the last solver ended."""

    left: int
    done: int = 0
    stop: Stop = Stop.FINISHED

    def run(self, steps: Any, tol: float, most: int = 200) -> Fit:
        fit = run(steps, tol=tol, max_iter=max(0, min(most, self.left)))
        self.left, self.done, self.stop = self.left - fit.n_iter, self.done + fit.n_iter, fit.stop
        return fit


def _screened(data: PinballData, work: _Work) -> Index:
    """Columns whose dual variable is near its bound at an interior point; none if that is too dear."""
    n, columns = len(data.used), data.columns
    if min(n, len(columns)) > _SCREEN:
        return columns[:0]
    rows = data.rows(columns, data.used, data.y)
    _, a, _ = work.run(frisch_newton(*rows[:4]), _ROUGH).x
    return columns[np.abs(to_numpy(a / rows.high)[n:]) > 0.9]


def _solve(
    data: PinballData, columns: Index, work: _Work, start: _Vertex | None = None
) -> tuple[_Vertex, Array]:
    """The vertex and the dual point of all rows, for the given columns."""
    n, k = len(data.used), len(columns) + data.fit_intercept
    if k == 0:
        return _Vertex(np.zeros(0), np.zeros(0), None), np.where(data.y > 0, -data.q, 1.0 - data.q)
    size = int(np.ceil((n * k) ** (2.0 / 3.0)))
    if n > _ROWS and _FEW * size < n:
        spread, positive = data.spread(columns), data.s > 0.0
        share = np.minimum(size * (0.5 / n + 0.5 * spread**2 / np.sum(spread**2)), 1.0) * positive
        sample = np.flatnonzero(np.random.default_rng(0).uniform(size=len(share)) < share)
        y = np.clip(data.y, -_OUTLIER, _OUTLIER)  # how far away a row lies does not matter
        rough = data.rows(columns, sample, y, times=1.0 / share[sample])
        beta = work.run(frisch_newton(*rough[:4]), _ROUGH).x[0]
        while _FEW * size < n and work.left > 0:
            r = data.residual(beta, columns)
            far = np.where(positive, np.abs(r) / spread, np.inf)
            kept = np.sort(np.argpartition(far, size)[:size])
            reach = max(1.0, 4.0 * float(np.abs(r[kept]).max()))
            y = np.clip(data.y, data.y - r - reach, data.y - r + reach)
            solved, beta = _solve_sides(data, columns, kept, y, np.sign(r) * positive, work)
            if solved is not None:
                return solved
            size *= 2
    vertex = _vertex(data.rows(columns, data.used, data.y), work, start)
    theta = np.zeros(len(data.y))
    theta[data.used] = -vertex.a[:n] / data.s[data.used]
    return vertex, theta


def _solve_sides(
    data: PinballData, columns: Index, kept: Index, y: Array, side: Array, work: _Work
) -> tuple[tuple[_Vertex, Array] | None, Array]:
    """The solution if the sides of all rows but ``kept`` are right, or nearly; and the last fit.

    ``y`` are the targets, those far from the fit drawn nearer: it is the same fit, with smaller numbers.
    """
    enough, vertex = len(kept) // 5, None
    side[kept] = 0.0
    while True:
        rows = data.rows(columns, kept, y, side)
        vertex = _vertex(rows, work, vertex)
        nearer = data.y - y  # a row that is right with y is so all the more with data.y
        r = data.residual(vertex.beta, columns) - nearer
        wrong = np.flatnonzero(side * r < -1e-12)
        if not len(wrong):
            break
        if len(wrong) > enough or work.left <= 0:
            return None, vertex.beta
        side[wrong] = 0.0
        y[wrong] = data.y[wrong]
        kept = np.sort(np.concatenate([kept, wrong]))
    a = np.zeros(len(data.y))
    a[kept] = vertex.a[: len(kept)] / data.s[kept]
    for name, sign in ((ABOVE, 1.0), (BELOW, -1.0)):
        if len(place := np.flatnonzero(rows.names == name)):
            a[side == sign] = vertex.a[place[0]] / (data.s @ (side == sign))
    return (vertex, -a), vertex.beta


def _vertex(rows: PinballRows, work: _Work, before: _Vertex | None = None) -> _Vertex:
    """Interior-point steps, then pivots; pivots alone from a basis that is known."""
    n, k = rows.A.shape
    known = None if before is None else _places(rows, before.basis)
    vertex = None if known is None else _pivots(rows, known, np.zeros(n), work)
    if vertex is not None:
        return vertex
    if not rows.A.identity and 2 * k > n and len(columns := _independent(rows.A)) < k:
        return _vertex_of_columns(rows, columns, work)
    beta, a, weight = work.run(frisch_newton(*rows[:4]), _NEAR).x
    if work.left > 0:
        found = choose_basis(rows.A, to_numpy(weight))
        if found is None and len(columns := _independent(rows.A)) < k:
            return _vertex_of_columns(rows, columns, work)
        if found is not None:
            vertex = _pivots(rows, found, to_numpy(a), work)
        if vertex is not None:
            return vertex
        beta, a, _ = work.run(frisch_newton(*rows[:4], beta), 1e-14).x  # as near as it gets
    return _Vertex(beta, to_numpy(a), None)


def _places(rows: PinballRows, basis: Index | None) -> Index | None:
    """Where the rows of a basis are; None if it is no basis here, or has a mean, which may have changed."""
    if basis is None or len(basis) != rows.A.shape[1] or _has_means(basis):
        return None
    if not np.isin(basis, rows.names).all():
        return None
    order = np.argsort(rows.names)
    return order[np.searchsorted(rows.names, basis, sorter=order)]


def _has_means(basis: Index) -> bool:
    return bool(np.isin([ABOVE, BELOW], basis).any())


def _pivots(rows: PinballRows, basis: Index, hint: Array, work: _Work) -> _Vertex | None:
    """The optimal vertex, None when rounding keeps the pivots from it."""
    steps = pinball_simplex(*rows[:4], basis, hint)
    try:
        fit = work.run(steps, 0.0, most=50 * (100 + len(basis)))
    except np.linalg.LinAlgError:  # a singular basis
        return None
    beta, a, basis = fit.x
    return _Vertex(beta, a, rows.names[basis]) if fit.observed <= 1e-10 else None


def _vertex_of_columns(rows: PinballRows, columns: Index, work: _Work) -> _Vertex:
    """The same on independent columns; the others keep the coefficient 0."""
    part = _vertex(rows._replace(A=Rows(rows.A.matrix[:, like(columns, rows.A.matrix)])), work)
    beta = np.zeros(rows.A.shape[1])
    beta[columns] = part.beta
    return part._replace(beta=beta)


def _independent(A: Rows) -> Index:
    """As many columns as are linearly independent; where there is a penalty, they all are."""
    if A.identity:
        return np.arange(A.shape[1])
    R = np.zeros((0, A.shape[1]))
    for _, block in A.top.blocks():
        dense = block.toarray() if sp.issparse(block) else to_numpy(block)
        R = scipy.linalg.qr(np.vstack([R, dense]), mode="r", check_finite=False)[0][: A.shape[1]]
    R, order = scipy.linalg.qr(R, mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diag(R))
    return np.sort(order[: int(np.count_nonzero(size > _DEPENDENT * size.max(initial=0.0)))])


def _finish(
    data: PinballData, columns: Index, vertex: _Vertex, theta: Array, work: _Work
) -> QuantileSolution:
    """The model in the units of the data, refined so that the rows of the basis are met exactly."""
    coef, intercept = data.model(vertex.beta, columns)
    if vertex.basis is not None:
        met, zero = np.sort(vertex.basis[vertex.basis >= 0]), PENALTY - vertex.basis
        free = np.setdiff1d(columns[vertex.beta[: len(columns)] != 0.0], zero)
        if not _has_means(vertex.basis) and 0 < len(met) == len(free) + data.fit_intercept:
            coef, intercept = _refined(data, free, met, coef, intercept)
    return QuantileSolution(coef, intercept, theta, max(1, work.done), work.stop)


def _refined(
    data: PinballData, free: Index, met: Index, coef: Array, intercept: float
) -> tuple[Array, float]:
    """Solve x_i'w + b = y_i for the rows ``met`` by refinement in extended precision."""
    raw = Rows(data.matrix(free, met, standardise=False)).take(np.arange(len(met)))
    factor = scipy.linalg.lu_factor(data.standardised(raw, free), check_finite=False)
    rows, y = raw.astype(np.longdouble), data.y[met].astype(np.longdouble) * data.unit + data.offset
    w, b = coef[free].astype(np.longdouble), np.longdouble(intercept)
    for _ in range(3):
        left = (y - rows @ w - b).astype(np.float64)
        step = scipy.linalg.lu_solve(factor, left, check_finite=False)
        move = step[: len(free)] / data.scale[free]
        w = w + move
        if data.fit_intercept:
            b = b + step[-1] - data.center[free] @ move
    refined = np.zeros_like(coef)
    refined[free] = w
    return refined, float(b)
