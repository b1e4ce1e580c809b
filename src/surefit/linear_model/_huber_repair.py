r"""Dual points of Huber's regression with its scale: from nearly feasible to feasible.

The constraints of the dual (:mod:`surefit.linear_model._huber_dual`) are

    |theta_i| <= 2 eps,     sum_i s_i theta_i^2 <= 4 sum_i s_i,     sum_i s_i theta_i = 0  (free intercept),

and without a penalty X'(s theta) = 0; with one, X'(s theta) = 2 alpha w makes the bound best. A candidate
from the residuals misses the equations a little. It is changed on rows well inside the box by

    delta = A k,     A = [X - mean, 1, theta],     A'(s delta) prescribed:

the change of least weighted norm that meets the equations and, to first order, the ball. A few thousand rows
suffice where there are many; rows that the correction pushes out of the box stay on its edge, and it is made
once more without them. What remains is rounding, which the caller removes by shrinking. A bad candidate
gives a weak bound, never a wrong one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._namespace import array_namespace, clip, like, to_numpy, where
from ..design import Design, as_design
from ..losses import Huber

__all__ = ["DualPoint", "DualProblem", "indicator", "repaired"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_SMALL = 1 << 24  # operations for which the singular values of the rows themselves are cheap
_COLUMNS = 3000  # the correction forms a matrix of this size at most


class DualProblem(NamedTuple):
    """The data, the model's residuals and coefficients, and the parameters."""

    design: Design
    y: Any
    s: Any
    r: Any
    w: Array
    epsilon: float
    alpha: float
    free: bool
    total: float  # sum of the weights


class DualPoint(NamedTuple):
    """A dual point and what was computed with it."""

    theta: Any
    adjoint: Array  # X'(s theta)
    norms: Array | None  # sqrt(sum_i s_i x_ij^2), estimated


def indicator(mask: Any) -> Any:
    """1.0 where the mask holds, else 0.0."""
    xp = array_namespace(mask)
    return xp.astype(mask, xp.float64)


def repaired(problem: DualProblem, theta: Any, *, everything: bool) -> list[DualPoint]:
    """Dual points near ``theta``: one that is balanced, and one that meets X'(s theta) = 2 alpha w too.

    With ``everything``, all rows inside the box take part in the correction; those that it pushes out stay on
    the edge, and it is made once more without them.
    """
    s, p, edge = problem.s, len(problem.w), 2.0 * problem.epsilon
    theta = _balanced(problem, theta)
    adjoint = problem.design.tdot(s * theta)
    found = [] if everything else [DualPoint(theta, adjoint, None)]
    inside = (abs(theta) < edge) & (s > 0)
    if not everything:
        deep = (abs(theta) <= 0.5 * edge) & (s > 0)
        inside = deep if int(deep.sum()) > 2 * (p + 2) else inside
    if not bool(inside.any()):  # least absolute deviations, no row on the fit
        return [DualPoint(theta, adjoint, problem.design.column_norms(s))]
    if p > _COLUMNS:
        return found
    for _ in range(5 if everything else 1):
        if not bool(inside.any()):
            break
        point = _corrected(problem, theta, adjoint, inside, everything=everything)
        found.append(point)
        out = abs(point.theta) > edge
        if not bool(out.any()):
            break
        theta, inside = clip(point.theta, -edge, edge), inside & ~out
        adjoint = problem.design.tdot(s * theta)
    return found


def _corrected(
    problem: DualProblem, theta: Any, adjoint: Array, inside: Any, *, everything: bool
) -> DualPoint:
    """theta changed on rows inside the box, as little as it takes to meet the equations."""
    s, design = problem.s, problem.design
    rows, part = (None, design) if everything else _some_rows(design, inside)
    all_rows = rows is None

    def near(values: Any) -> Any:
        return values if all_rows else values[like(rows, values)]

    moved, weights = near(theta), near(s * indicator(inside))
    correction = _Correction(part, weights, moved, free=problem.free)
    square, balance = float(s @ theta**2), float(s @ theta)
    limit = 4.0 * problem.total * (1.0 - _EPS)
    binding = square > (1.0 - 1e-6) * limit  # otherwise sigma = 0, and the ball is no matter
    for _ in range(3):  # the ball is met to first order, and rounding needs a second pass anyhow
        step = correction.step(
            2.0 * problem.alpha * problem.w - adjoint,
            -balance if problem.free else None,
            limit - square if binding else None,
        )
        change = weights * step
        square += float(change @ (2.0 * moved + step))
        balance += float(change.sum())
        adjoint = adjoint + part.tdot(change)
        moved = moved + step
    if all_rows:
        theta = moved
    else:
        theta = theta + 0.0
        theta[like(rows, theta)] = moved
    norms = correction.norms * math.sqrt(problem.total / correction.mass)
    balanced = _balanced(problem, theta)
    if float(abs(balanced - theta).max()) > 4.0 * _EPS * float(abs(theta).max()):
        adjoint = design.tdot(s * balanced)  # the rows inside were too few to meet the equations
    return DualPoint(balanced, adjoint, norms)


def _balanced(problem: DualProblem, theta: Any) -> Any:
    return Huber().balance(theta, problem.y, problem.s) if problem.free else theta


class _Correction:
    """Changes delta = A k of theta on some rows, A = [X - mean, 1, theta], with A'(s delta) prescribed."""

    def __init__(self, part: Design, weights: Any, theta: Any, *, free: bool) -> None:
        self.part, self.weights, self.theta = part, weights, theta
        self.solve: Callable[[Array], Array] | None = None
        self.mass = float(weights.sum())
        self.mean = part.mean(weights) if free else np.zeros(part.shape[1])
        center = self.mean if free else None
        p, st = len(self.mean), weights * theta
        size = part.column_norms(weights, center) ** 2
        noise = _EPS * (8.0 + math.sqrt(part.shape[0])) * np.abs(self.mean)
        self.norms = np.sqrt(size + self.mass * self.mean**2)
        self.scale = np.sqrt(np.append(size, [self.mass, float(st @ theta)]))
        self.kept = self.scale > np.append(math.sqrt(self.mass) * noise, [0.0, 0.0])  # not constant
        self.small = part.shape[0] * (p + 2) ** 2 <= _SMALL
        if self.small:  # the singular values of A itself have twice the digits of those of A'SA
            table = np.column_stack(
                [part.columns(np.arange(p)) - self.mean, np.ones(part.shape[0]), to_numpy(theta)]
            )
            self.matrix = np.sqrt(to_numpy(weights))[:, None] * table
            return
        self.matrix = np.zeros((p + 2, p + 2))
        self.matrix[:p, :p] = part.gram(weights, center)
        self.matrix[p, p], self.matrix[p + 1, p + 1] = self.scale[p] ** 2, self.scale[p + 1] ** 2
        self.matrix[p, p + 1] = self.matrix[p + 1, p] = float(st.sum())
        cross = part.tdot(st) - self.mean * float(st.sum())
        self.matrix[:p, p + 1] = self.matrix[p + 1, :p] = cross

    def step(self, adjoint: Array, balance: float | None, square: float | None) -> Any:
        """delta with X'(s delta) = adjoint, sum s delta = balance, 2 sum s theta delta = square.

        None in place of a number leaves that equation out.
        """
        p = len(adjoint)
        kept = self.kept & np.append(np.ones(p, bool), [balance is not None, square is not None])
        rhs = np.append(adjoint, [balance or 0.0, 0.5 * (square or 0.0)])
        rhs[:p] -= self.mean * rhs[p]
        if self.solve is None:  # the same unknowns each time
            self.solve = self._factor(kept)
        k = np.zeros(p + 2)
        k[kept] = self.solve(rhs[kept] / self.scale[kept]) / self.scale[kept]
        delta = (
            self.part.dot(k[:p]) + float(k[p] - self.mean @ k[:p]) + float(k[p + 1]) * self.theta
        )
        return where(self.weights > 0, delta, 0.0)

    def _factor(self, kept: NDArray[np.bool_]) -> Callable[[Array], Array]:
        """A solver of A'SA k = rhs, the columns of A scaled to length 1; the shortest k if it is singular."""
        scale = self.scale[kept]
        if self.small:
            _, values, turned = np.linalg.svd(self.matrix[:, kept] / scale, full_matrices=False)
            vectors, values, limit = turned.T, values**2, (_EPS * len(kept)) ** 2
        else:
            unit = self.matrix[np.ix_(kept, kept)] / scale / scale[:, None]
            with contextlib.suppress(np.linalg.LinAlgError):
                factor = cho_factor(unit, check_finite=False)
                if np.diag(factor[0]).min() > 1e-5:
                    return lambda rhs: cho_solve(factor, rhs, check_finite=False)
            values, vectors = np.linalg.eigh(unit)
            limit = _EPS * len(kept)
        large = values > limit * values.max(initial=0.0)
        vectors, values = vectors[:, large], values[large]
        return lambda rhs: vectors @ ((vectors.T @ rhs) / values)


def _some_rows(design: Design, inside: Any) -> tuple[NDArray[np.intp] | None, Design]:
    """A few thousand of the rows inside, and the part of the design with these; None: all rows."""
    count = max(8192, 24 * design.shape[1])
    if design.shape[0] <= 4 * count or design.group.size > 1:
        return None, design
    index = np.flatnonzero(to_numpy(inside))
    X = getattr(design, "X", None)
    if X is not None:
        index = index[:: max(1, len(index) // count)]
        return index, as_design(X[like(index, X)])
    index, parts = index[:count], []
    for rows, block in design.blocks():  # on disk: the first ones, so that the rest is not read
        wanted = index[(index >= rows.start) & (index < rows.stop)] - rows.start
        parts.append(block[wanted])
        if rows.stop > index[-1]:
            break
    return index, as_design(np.concatenate(parts))
