"""One box problem solved: the multipliers, the offset, and what to say when no hyperplane separates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import one_thread
from ..iterate import Iterate, Stop, run
from ..separation import separate
from ..solvers.kernel_rows import RowSource
from ..solvers.smo import BoxTask, Multipliers, smo

__all__ = ["Machine", "solve_machine"]

Array = NDArray[np.float64]
_BLOCK = 2048  # variables of a working set
_MARGIN = 0.8  # the share of tol that the solver aims at: its own rounding must not cost the claim
_UNBOUNDED = 2_000_000  # SMO steps after which an unbounded problem gives up
_LARGEST = 1500  # rows of the test for a Farkas certificate


class Machine(NamedTuple):
    """A solved problem; ``farkas`` holds convex weights of both sides where these meet."""

    beta: Array
    f: Array
    offset: float
    n_iter: int
    stop: Stop
    farkas: Array | None


def solve_machine(
    source: RowSource,
    task: BoxTask,
    *,
    tol: float,
    max_iter: int = -1,
    shrinking: bool = True,
    verbose: int = 0,
    start: Machine | None = None,
    size: int | None = None,
) -> Machine:
    """The solution of a box problem, from ``start`` where one is at hand.

    The multipliers for some C, times any factor up to the ratio of the two, are a start for a larger one,
    with ``f`` times the same factor; ``source`` keeps its kernel rows.
    """
    hard = not (np.isfinite(task.hi).all() and np.isfinite(task.lo).all())
    limit = max_iter if max_iter >= 0 else (_UNBOUNDED if hard else None)
    aim = _MARGIN * tol
    steps = smo(
        source, task, tol=aim, max_steps=limit, shrinking=shrinking, size=size or _BLOCK,
        beta=None if start is None else start.beta, f=None if start is None else start.f,
    )  # fmt: skip
    watch = _Watch(source, task) if hard and len(np.unique(task.row)) == len(task.row) else None
    with one_thread:
        fit = run(
            steps if watch is None else watch.over(steps),
            tol=aim,
            max_iter=np.iinfo(np.int64).max if limit is None else max(limit, 1),
            verbose=verbose,
            name="SMO",
        )
    x: Multipliers = fit.x
    farkas = None if watch is None else watch.found
    stop = fit.stop if farkas is None else Stop.FINISHED
    if max_iter >= 0 and fit.n_iter >= max_iter and not fit.converged:
        stop = Stop.MAX_ITER
    return Machine(x.beta, x.f, x.offset, fit.n_iter, stop, farkas)


class _Watch:
    """Follows an unbounded problem: as the multipliers grow, their directions are tested (Gordan)."""

    def __init__(self, source: RowSource, task: BoxTask) -> None:
        self.source, self.task, self.found = source, task, None
        self.next = 0.0

    found: Array | None

    def over(self, steps: Iterator[Iterate]) -> Iterator[Iterate]:
        """The same iterates, until the directions show that both sides meet."""
        for iterate in steps:
            yield iterate
            beta = iterate.x.beta
            mass = float(np.abs(beta).sum())
            if mass <= self.next or iterate.x.violation == 0.0:
                continue
            self.next = 4.0 * mass
            self.found = self._farkas(beta)
            if self.found is not None:
                return

    def _farkas(self, beta: Array) -> Array | None:
        """Convex weights of the two sides with the same mean in feature space, or None."""
        rows = np.argsort(-np.abs(beta), kind="stable")[:_LARGEST]
        rows = np.sort(rows[beta[rows] != 0.0])
        if len(rows) < 2:
            return None
        K = np.asarray(self.source.block(self.task.row[rows]), dtype=np.float64)
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
        kept = values > len(K) * np.finfo(np.float64).eps * max(float(values[-1]), 1e-300)
        weights = np.zeros(len(beta))
        if not kept.any():  # rows of zeros: both sides are at the origin
            weights[rows] = np.abs(beta[rows])
            for side in (beta > 0, beta < 0):
                weights[side] /= float(weights[side].sum())
            return weights
        features = vectors[:, kept] * np.sqrt(values[kept])
        scale = math.sqrt(max(float(values[-1]), 1e-300) / len(K)) or 1.0
        found = separate(features / scale, np.sign(beta[rows]))
        if found.margin > 0.0 or found.residual > 1e-7:
            return None
        weights[rows] = found.farkas
        return weights
