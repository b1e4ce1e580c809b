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

__all__ = ["Machine", "machine_path", "solve_machine"]

Array = NDArray[np.float64]
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
    size: int = 2048,
) -> Machine:
    """The solution of a box problem, from ``start`` where one is at hand (for a smaller C, say)."""
    hard = not (np.isfinite(task.hi).all() and np.isfinite(task.lo).all())
    limit = max_iter if max_iter >= 0 else (_UNBOUNDED if hard else None)
    aim = _MARGIN * tol
    steps = smo(
        source, task, tol=aim, max_steps=limit, shrinking=shrinking, size=size,
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


def machine_path(
    source: RowSource,
    task: BoxTask,
    Cs: Array,
    *,
    tol: float,
    max_iter: int = -1,
    shrinking: bool = True,
) -> list[Machine]:
    """The machines for several C, each from the one before, with the kernel rows that ``source`` keeps.

    ``task`` has the bounds of C = 1; each C scales them. The values are best given in increasing order: the
    multipliers of the last C, times a factor, are then a feasible start. The factor is the one, between 0 and
    the ratio of the two C, with the best dual objective.

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.kernels import Gaussian
    >>> from surefit.solvers.kernel_rows import WholeMatrix
    >>> from surefit.solvers.smo import BoxTask
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> task = BoxTask(y, np.minimum(y, 0.0), np.maximum(y, 0.0), np.arange(4))
    >>> path = machine_path(WholeMatrix(Gaussian(1.0)(X)), task, np.array([0.1, 1.0]), tol=1e-8)
    >>> [float(np.abs(machine.beta).max().round(6)) for machine in path]
    [0.1, 1.0]
    """
    found: list[Machine] = []
    last, before = None, 0.0
    for C in (float(value) for value in Cs):
        scaled = BoxTask(task.t, C * task.lo, C * task.hi, task.row)
        start = None if last is None else _scaled(last, task, C / before)
        last = solve_machine(
            source, scaled, tol=tol, max_iter=max_iter, shrinking=shrinking, start=start
        )
        before = C
        found.append(last)
    return found


def _scaled(machine: Machine, task: BoxTask, ratio: float) -> Machine:
    """A start for bounds that are ``ratio`` times those of a machine."""
    linear = float(task.t @ machine.beta)
    quadratic = float(machine.beta @ machine.f[task.row])
    factor = min(ratio, linear / quadratic) if quadratic > 0.0 else ratio
    return machine._replace(beta=factor * machine.beta, f=factor * machine.f)


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
        features = vectors[:, kept] * np.sqrt(values[kept])
        scale = math.sqrt(max(float(values[-1]), 1e-300) / len(K)) or 1.0
        found = separate(features / scale, np.sign(beta[rows]))
        if found.margin > 0.0 or found.residual > 1e-7:
            return None
        weights = np.zeros(len(beta))
        weights[rows] = found.farkas
        return weights
