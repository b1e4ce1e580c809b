r"""The rows of a hinge problem that matter: many rows, few columns.

The solution depends on a row only through the side of its kink on which it lies, unless it is near. So the
fit to a sample decides the sides of those that are far from it: a row beyond the margin has beta = 0, one
well inside pulls with its full weight, and together they are one vector. The interior-point method solves
what is left. Then the sides are looked at on all rows, those that were misjudged come in, and it is solved
again, until the duality gap over all rows is small enough: the shortcut changes the way, not the end.

Reference: Portnoy & Koenker, "The Gaussian hare and the Laplacian tortoise" (1997), section 5, for quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Dense, Design
from ..iterate import Iterate
from .box_dual import BoxDual, Point
from .hinge_interior import Sides, hinge_interior, sides_of

__all__ = ["hinge_rows", "sampling_pays"]

Array = NDArray[np.float64]
_ROWS = 20_000  # up to which all rows take part
_FEW = 4  # a sample is worth while when it is this many times smaller
_ROUGH = 1e-2  # gap of the sample's fit, of the objective at 0
_SURE = 0.1  # of what is asked for: the gap to which what is left is solved


def sample_size(n: int, p: int) -> int:
    """As many rows as make the error of the sample's fit and the band around its margin balance."""
    return int(np.ceil((n * (p + 1.0)) ** (2.0 / 3.0)))


def sampling_pays(X: Design, problem: BoxDual) -> bool:
    """Whether the rows are so many, and in memory, that some of them can stand for all at first."""
    n, p = X.shape
    soft = not (np.isinf(problem.high) | np.isinf(problem.low)).any()
    return soft and isinstance(X, Dense) and n > _ROWS and _FEW * sample_size(n, p) < n


def hinge_rows(X: Dense, problem: BoxDual, *, tol: float, seed: int = 0) -> Iterator[Iterate]:
    """Yield ``Iterate(x=Point, value, estimate)``; ``tol`` is the gap that will be asked for, absolute.

    Steps on a part of the rows have no estimate of the whole gap; a look at all rows gives it, and costs
    none.
    """
    n, p = X.shape
    size, rng = sample_size(n, p), np.random.default_rng(seed)
    intercept, sides = problem.intercept, sides_of(problem)
    null = problem.null()
    chosen = np.sort(rng.choice(n, size, replace=False))
    rough = Sides(sides.sigma[:, chosen], sides.a[:, chosen], sides.c[:, chosen] * (n / size))
    point = Point(np.zeros(p), 0.0, np.zeros(n))
    for step in hinge_interior(Dense(X.X[chosen]), rough, intercept):
        inner = step.x[0]
        point = Point(inner.w, inner.b, point.beta)
        yield Iterate(point, estimate=np.inf)
        if step.estimate <= _ROUGH * null:
            break
    spread = np.sqrt(1.0 + X.row_squares())
    z = to_numpy(X.dot(point.w)) + point.b
    near = np.argpartition((np.abs(sides.sigma * z - sides.a) / spread).min(axis=0), size)[:size]
    inside = np.zeros(n, dtype=np.bool_)
    inside[near] = True
    while True:
        m = sides.sigma * z - sides.a
        fixed = np.where(inside | (m > 0), 0.0, sides.c)
        pull = (sides.sigma * fixed).sum(axis=0)
        g = X.tdot(pull), float(pull.sum())
        rows = np.flatnonzero(inside)
        part = Sides(*(v[:, rows] for v in sides))
        for step in hinge_interior(Dense(X.X[rows]), part, intercept, g):
            inner = step.x[0]
            beta = pull.copy()
            beta[rows] = inner.beta
            point = Point(inner.w, inner.b, beta)
            yield Iterate(point, estimate=np.inf)
            if step.estimate <= _SURE * tol:
                break
        z = to_numpy(X.dot(point.w)) + point.b
        value = problem.primal(point.w, point.b, z)
        made = X.tdot(beta)
        total = float(beta.sum())
        dual = problem.dual(beta, problem.size(made, intercept.scaling**2 * total))
        if intercept.free:
            dual -= abs(total * point.b)
        yield Iterate(point, value, value - dual, cost=0)
        # sides that came out otherwise, and as many again that nearly did
        wrong = ~inside & ((np.where(m > 0, 1.0, -1.0) * (sides.sigma * z - sides.a)) < 0).any(
            axis=0
        )
        if not wrong.any():
            return
        order = np.where(inside, np.inf, np.abs(sides.sigma * z - sides.a).min(axis=0) / spread)
        more = min(n - 1, max(2 * int(wrong.sum()), size // 4))
        inside[np.argpartition(order, more)[:more]] = True
        inside |= wrong
