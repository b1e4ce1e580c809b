r"""The elastic net along a decreasing sequence of penalties, several at a time.

The solution at one penalty is the start for the next, on a common working set whose Gram matrix is computed
once. A look at all of X costs more than a subproblem, so it is shared: a *block* of penalties is solved on
the working set alone, then all their correlations X'(s r) are computed in one product. Those points of the
block whose duality gap is small are done; the violators of the others enter, and these are solved again. The
block grows while one look suffices, and shrinks when two do not.

With few columns the working set is all of them, and the gaps follow from the Gram matrix, rounding allowed
for; X is looked at again only where that does not suffice.

References
----------
Friedman, Hastie & Tibshirani (2010), JSS 33; Tibshirani et al., "Strong rules for discarding predictors"
(2012).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .active_set import Face, descend
from .coordinate import factorisable, gap_of
from .elastic_net_data import ElasticNetData
from .working_set import WorkingSet

__all__ = ["Point", "elastic_net_path"]

Array = NDArray[np.float64]
_AHEAD = 16  # most penalties in a block
_LOOKS = 30  # most looks at all of X for one block
_INNER = 0.1  # share of the tolerance that a subproblem may use up
_EPS = float(np.finfo(np.float64).eps)


class Point(NamedTuple):
    """The solution at one penalty: the coefficients in use, the gap shown, the Newton steps made."""

    columns: NDArray[np.int64]
    values: Array
    gap: float
    steps: int


def elastic_net_path(
    data: ElasticNetData,
    penalties: Sequence[tuple[float, float]],
    w: Array,
    *,
    positive: bool,
    tol: float,
    budget: int,
) -> Iterator[Point]:
    """Yield the point of each ``(l1, l2)``, l1 decreasing; ends early when too many coefficients are in use.

    A point that could not be brought to the tolerance is yielded with the gap that it has.

    Parameters
    ----------
    data : ElasticNetData
    penalties : sequence of (float, float)
    w : array of shape (p,)
        Start.
    positive : bool
        Constrain w >= 0.
    tol : float
        The duality gap to reach, absolute.
    budget : int
        Most Newton steps for one penalty.
    """
    path = _Path(data, w, positive, tol, budget)
    start, ahead = 0, 2
    while start < len(penalties):
        trials = [_Trial(*pair) for pair in penalties[start : start + ahead]]
        path.look_ahead(trials[-1].l1)
        if not factorisable(data, path.columns.index, int(np.count_nonzero(path.v)), trials[-1].l2):
            return
        looks = path.solve(trials)
        yield from (path.point(trial) for trial in trials)
        start += len(trials)
        ahead = min(2 * ahead, _AHEAD) if looks <= 1 else max(ahead // (looks - 1), 1)


@dataclass
class _Trial:
    """One penalty of a block: coefficients v on the working set, q = Z'(t - Zv), and their gap."""

    l1: float
    l2: float
    v: Array = field(default_factory=lambda: np.empty(0))
    q: Array = field(default_factory=lambda: np.empty(0))
    gap: float = math.inf
    steps: int = 0


class _Path:
    """Where the path has got to: the working set, the last solution v on it, and all correlations there."""

    def __init__(
        self, data: ElasticNetData, w: Array, positive: bool, tol: float, budget: int
    ) -> None:
        self.data, self.positive, self.tol, self.budget = data, positive, tol, budget
        self.null = 0.5 * float(data.s @ (data.y - data.y_mean) ** 2)
        self.columns = WorkingSet(data, None if data.few else np.flatnonzero(w))
        self.face = Face()
        self.v, self.l1, self.l2 = w[self.columns.index], math.inf, 0.0
        self.corr = data.correlations(self.columns.weighted_residual(self.v))
        self.usable = data.norm2 > 0.0

    def look_ahead(self, l1: float) -> None:
        """Choose the working set for the penalties down to l1, by the strong rule."""
        if self.columns.all:
            return
        reach = self.corr.copy()
        reach[self.columns.index] -= self.l2 * self.v
        reach = np.where(self.usable, reach if self.positive else np.abs(reach), 0.0)
        used = int(np.count_nonzero(self.v))
        if len(self.columns) > 2 * used + 200:
            mask = (self.v != 0.0) | (reach[self.columns.index] >= 0.7 * l1)
            self.face.relabel(self.columns.keep(mask))
            self.v = self.v[mask]
        last = min(self.l1, float(reach.max(initial=0.0)))
        self._enter(reach, max(2.0 * l1 - last, 0.3 * l1), max(20, used // 2))

    def solve(self, trials: list[_Trial]) -> int:
        """Bring the trials of a block to the tolerance; returns how often all of X was looked at."""
        v, q = self._on_columns(self.v), self.corr[self.columns.index]
        for trial in trials:
            trial.v, trial.q = v, q = v.copy(), q.copy()
            self._descend(trial)
        pending, looks = trials, 0
        if self.columns.all:
            pending = [trial for trial in trials if not self._shown_by_gram(trial)]
            self.corr = trials[-1].q
        while pending and looks < _LOOKS:
            looks += 1
            reach = self._look(pending)
            late = [t.gap > self.tol and t.steps < self.budget for t in pending]
            pending = [trial for trial, more in zip(pending, late, strict=True) if more]
            if pending:
                most = max(50, int(np.count_nonzero(pending[-1].v)) // 2)
                self._enter(np.where(self.usable, reach[:, late].max(axis=1), 0.0), 1.0, most)
            for trial in pending:
                trial.v, trial.q = self._on_columns(trial.v), trial.q[self.columns.index]
                self._descend(trial)
        self.v, self.l1, self.l2 = self._on_columns(trials[-1].v), trials[-1].l1, trials[-1].l2
        return looks

    def point(self, trial: _Trial) -> Point:
        """What is handed out."""
        used = np.flatnonzero(trial.v)
        return Point(self.columns.index[used], trial.v[used], trial.gap, trial.steps)

    def _look(self, trials: list[_Trial]) -> Array:
        """One product with all of X: the gap of each trial, all its correlations, |corr_j - l2 w_j| / l1."""
        V = np.stack([self._on_columns(trial.v) for trial in trials], axis=1)
        l1, l2 = (np.array([getattr(trial, name) for trial in trials]) for name in ("l1", "l2"))
        U = self.columns.weighted_residual(V)
        corr = self.data.correlations(U)
        reach = corr.copy()
        reach[self.columns.index] -= l2 * V
        if not self.positive:
            np.abs(reach, out=reach)
        gap = gap_of(self.data, V, U, reach.max(axis=0, initial=0.0), l1, l2)[1]
        for place, trial in enumerate(trials):
            trial.q, trial.gap = corr[:, place], float(gap[place])
        self.corr = corr[:, -1]
        return reach / np.maximum(l1, 1e-300)

    def _shown_by_gram(self, trial: _Trial) -> bool:
        """The gap from q = c - Gv and ||t - Zv||^2 = t't - v'(c + q), plus what rounding may do to them."""
        gram, size = self.columns.gram, float(trial.v @ trial.v)
        c = self.columns.against_target
        trial.q = c - gram @ trial.v
        fit = max(2.0 * self.null - float(trial.v @ (c + trial.q)), 0.0)
        slack = trial.q - trial.l2 * trial.v
        largest = float((slack if self.positive else np.abs(slack)).max(initial=0.0))
        t = 1.0 if largest <= trial.l1 else trial.l1 / largest
        value = 0.5 * fit + trial.l1 * float(np.abs(trial.v).sum()) + 0.5 * trial.l2 * size
        match = 2.0 * self.null - float(trial.v @ c)
        terms = math.sqrt(2.0 * self.null) + float(np.sqrt(self.data.norm2) @ np.abs(trial.v))
        rounding = 8.0 * _EPS * math.sqrt(self.data.X.shape[0]) * terms**2
        trial.gap = value - t * match + 0.5 * t * t * (fit + trial.l2 * size) + rounding
        return trial.gap <= self.tol

    def _descend(self, trial: _Trial) -> None:
        trial.steps += descend(
            self.columns.gram, trial.v, trial.q, trial.l1, trial.l2, self.face, target=_INNER * self.tol,
            positive=self.positive, null=self.null, budget=self.budget - trial.steps,
        )  # fmt: skip

    def _enter(self, score: Array, least: float, most: int) -> None:
        """Take in the ``most`` highest scores from ``least`` on."""
        new = np.flatnonzero((score >= least) & ~self.columns.inside)
        if len(new) > most:
            new = new[np.argpartition(-score[new], most - 1)[:most]]
        self.columns.enter(new)

    def _on_columns(self, v: Array) -> Array:
        """v, with zeros for the columns that have entered since."""
        return np.concatenate([v, np.zeros(len(self.columns) - len(v))])
