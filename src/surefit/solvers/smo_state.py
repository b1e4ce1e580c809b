"""The box problem of a support vector machine, a point of it, and what a solver keeps beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..iterate import Iterate
from .kernel_rows import RowSource

__all__ = ["BoxTask", "Multipliers", "State", "over_rows_of"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class BoxTask:
    """The numbers of the problem; ``row[i]`` is the row of the kernel matrix that variable i belongs to."""

    t: Array
    lo: Array
    hi: Array
    row: Index

    def null_value(self) -> float:
        """The primal objective at w = 0 with its best offset; 0 where it is infinite."""
        if not (np.isfinite(self.hi).all() and np.isfinite(self.lo).all()):
            return 0.0
        order = np.argsort(self.t)
        t, up, down = self.t[order], self.hi[order], -self.lo[order]
        slope = np.cumsum(down) - (up.sum() - np.cumsum(up))  # right of t_k
        b = t[min(int(np.searchsorted(slope, 0.0)), len(t) - 1)]
        return float(up @ np.maximum(t - b, 0.0) + down @ np.maximum(b - t, 0.0))


class Multipliers(NamedTuple):
    """A point: ``f`` is K beta over the rows of the kernel matrix."""

    beta: Array
    f: Array
    offset: float
    violation: float


class State:
    """What the rounds change: beta, f, and which rows of f are kept up to date."""

    def __init__(self, source: RowSource, task: BoxTask, beta: Array, f: Array, tol: float) -> None:
        self.source, self.task, self.beta, self.f, self.tol = source, task, beta, f, tol
        self.null = task.null_value()
        self.active: Index | None = None  # variables whose f is kept; None: all
        self.live: Index | None = None  # their rows
        # groups of rows that wait, each with the moves of beta, over rows, that its f has not seen
        self.waiting: list[tuple[Index, Array]] = []

    def sides(self, among: Index | None = None) -> tuple[Array, Array, Array]:
        """v, and v where the variable may rise (else -inf) or fall (else inf)."""
        task = self.task
        pick = slice(None) if among is None else among
        v = task.t[pick] - self.f[task.row[pick]]
        up = np.where(self.beta[pick] < task.hi[pick], v, -np.inf)
        low = np.where(self.beta[pick] > task.lo[pick], v, np.inf)
        return v, up, low

    def floor(self) -> float:
        """What rounding does to f: below it a violation says nothing."""
        largest = float(self.source.diag.max(initial=0.0))
        return 8.0 * _EPS * (largest * float(np.linalg.norm(self.beta)) + 1.0)

    def iterate(self, steps: int) -> Iterate:
        """The point with its offset, over all variables."""
        task, beta = self.task, self.beta
        v, up, low = self.sides()
        top, bottom = float(up.max(initial=-np.inf)), float(low.min(initial=np.inf))
        free = (beta < task.hi) & (beta > task.lo)
        middle = 0.5 * (top + bottom) if math.isfinite(top + bottom) else max(top, -1e300)
        offset = float(v[free].mean()) if free.any() else middle
        quadratic = float(beta @ self.f[task.row])
        losses = np.maximum(v - offset, 0.0) @ _finite(task.hi) + np.maximum(
            offset - v, 0.0
        ) @ _finite(-task.lo)
        dual = float(task.t @ beta) - 0.5 * quadratic
        violation = max(top - bottom, 0.0)
        gap = 0.5 * quadratic + float(losses) - dual
        if not np.isfinite(task.hi).all() or not np.isfinite(task.lo).all():
            gap = 0.0  # a bound on the losses says nothing where they may not occur
        relative = gap / self.null if self.null > 0 else 0.0
        point = Multipliers(beta, self.f, offset, violation)
        return Iterate(point, value=-dual, estimate=max(violation, relative), cost=steps)

    def moved(self, start: Array, chosen: Index | None = None) -> tuple[Index, Array]:
        """The rows whose multiplier changed from ``start``, and by how much."""
        row, beta = self.task.row, self.beta
        if chosen is not None:
            row, beta = row[chosen], beta[chosen]
        return over_rows_of(row, beta - start, self.source.n)

    def refresh(self, beta: Array | None = None) -> None:
        """Add K beta to f."""
        beta = self.beta if beta is None else beta
        rows, weights = over_rows_of(self.task.row, beta, self.source.n)
        if len(rows):
            self.source.add(rows, weights, self.f)


def over_rows_of(row: Index, values: Array, n: int) -> tuple[Index, Array]:
    """Variables summed over their rows: the rows where that is not 0, and the sums there."""
    sums = np.asarray(np.bincount(row, weights=values, minlength=n), dtype=np.float64)
    rows = np.flatnonzero(sums)
    return rows, sums[rows]


def _finite(bounds: Array) -> Array:
    return np.where(np.isfinite(bounds), bounds, 0.0)
