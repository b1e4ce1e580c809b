r"""Rows to their nearest centres: the speed of float32, the labels of exact arithmetic.

With a and b_j the row x and the centre c_j less a common point m, scaled by a power of two and rounded to
float32, half the squared distance is |a|^2 / 2 plus the score |b_j|^2 / 2 - <a, b_j>, up to

    E = (p + 4) 2^-24 |a| max_j |b_j| + 1.1 2^-24 max_j |b_j|^2

(and terms of higher order) in whatever order the products are summed. Where the second best score is more
than 2E above the best, the label is certain. Else the centres within 2E are compared by differences of the
given numbers, in float64, then with twice the digits, and at last in integers; equals go to the lowest
number. So a label is a function of the row and the centres alone, not of the way it was found.

*Bounds.* Scores also bound distances from both sides. A row keeps an upper bound on the distance to its
centre and lower bounds on the distances to all others, one for each group of centres; when centres move, the
bounds move by as much, and a row, or a group of centres, that they settle is not looked at again (Hamerly;
Ding and others). Since labels are exact, this changes none of them.

References
----------
Hamerly, "Making k-means even faster" (SDM 2010); Ding et al., "Yinyang k-means" (ICML 2015); Higham, Accuracy
and Stability of Numerical Algorithms (2002), chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._threads import over_rows
from ..design import Dense, Design, Sparse
from .exact_distances import rank_by_integers

__all__ = ["Centres", "Frame", "Labeller", "Tally", "frame_of"]

Array = NDArray[np.float64]

_COLUMNS = 16  # most lower bounds of a row
_LEAST = 2048  # rows that are worth a thread
_FEATURES = 1 << 18  # beyond, float32 products say nothing


class Frame(NamedTuple):
    """The point and the scale in which float32 works: (x - mean) * scale, entries of about 1 at most."""

    mean: Array
    scale: float


class Tally(NamedTuple):
    """What a pass over the rows held here finds; ``sums`` are of weight * (x - mean)."""

    sums: Array
    masses: Array
    changed: int


def frame_of(mean: Array, reach: float) -> Frame:
    """The frame for entries of x - mean up to ``reach``."""
    exponent = math.frexp(reach)[1] if reach > 0 else 0
    return Frame(mean, 2.0 ** -min(max(exponent, -1000), 1000))


class Centres:
    """Centres made ready: panels of 32, transposed, in float32, with the constants of the bound E."""

    def __init__(
        self, centres: Array, frame: Frame, order: NDArray[np.int64] | None = None
    ) -> None:
        from .._jit.lloyd import PANEL

        k, p = centres.shape
        self.centres, self.frame = np.array(centres, dtype=np.float64, order="C"), frame  # a copy
        self.order = neighbours_together(self.centres, PANEL) if order is None else order
        self.place = np.empty(k, dtype=np.int64)
        self.place[self.order[self.order >= 0]] = np.flatnonzero(self.order >= 0)
        moved = (self.centres - frame.mean) * frame.scale
        self.rounded = np.ascontiguousarray(moved.astype(np.float32))
        squares = np.einsum("ij,ij->i", moved, moved)
        halves = np.full(len(self.order), np.inf, dtype=np.float32)
        halves[self.place] = 0.5 * squares
        padded = np.zeros((len(self.order), p), dtype=np.float32)
        padded[self.place] = self.rounded
        self.panels = np.ascontiguousarray(padded.reshape(-1, PANEL, p).transpose(0, 2, 1))
        self.halves = halves.reshape(-1, PANEL)
        farthest = math.sqrt(float(squares.max())) * (1.0 + 1e-6)
        unit = 2.0**-24
        gamma = p * unit / (1.0 - p * unit) if p < _FEATURES else 1e9
        self.slope = 1.001 * (gamma + 4.0 * unit) * farthest
        self.floor = 1.1 * unit * farthest**2 + 4.0 * p * 2.0**-120
        groups = len(self.panels)
        self.per = -(-groups // _COLUMNS)
        self.columns = -(-groups // self.per)

    def drift_from(self, old: Centres) -> tuple[Array, Array]:
        """How far each centre, and the fastest of each column of bounds, has moved; rounded up."""
        from .._jit.lloyd import PANEL

        gap = self.centres - old.centres
        moved = np.sqrt(np.einsum("ij,ij->i", gap, gap)) * (1.0 + 1e-9) * self.frame.scale + 1e-300
        column = self.place // (PANEL * self.per)
        groups = np.zeros(self.columns)
        np.maximum.at(groups, column, moved)
        return moved, groups


def neighbours_together(centres: Array, size: int) -> NDArray[np.int64]:
    """Numbers of the centres in stretches of ``size`` that lie together, by halving along the main axis.

    Padded with -1. Which centre is where changes no result, only how much bounds save.
    """

    def split(index: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if len(index) <= size:
            return [index]
        part = centres[index] - centres[index].mean(axis=0)
        axis = part[np.argmax(np.einsum("ij,ij->i", part, part))]
        for _ in range(8):  # the power method
            axis = (part @ axis) @ part
            axis = axis / max(float(np.sqrt(axis @ axis)), 1e-300)
        by = index[np.argsort(part @ axis, kind="stable")]
        half = size * -(-(len(by) // size + (len(by) % size > 0)) // 2)
        return split(by[:half]) + split(by[half:])

    with np.errstate(all="ignore"):
        parts = split(np.arange(len(centres), dtype=np.int64))
    order = np.full(size * len(parts), -1, dtype=np.int64)
    for i, part in enumerate(parts):
        order[i * size : i * size + len(part)] = part
    return order


class Labeller:
    """The labels of a design's rows, kept with their bounds from pass to pass.

    Parameters
    ----------
    design : Design
    frame : Frame
    weights : array, optional
        Of the rows held here.
    keep : bool, default=True
        Whether there will be further passes, for which bounds are worth their memory.
    """

    def __init__(
        self, design: Design, frame: Frame, weights: Array | None = None, *, keep: bool = True
    ) -> None:
        self.design, self.frame, self.keep = design, frame, keep
        self.weights = np.ascontiguousarray([] if weights is None else weights, np.float64)
        self.labels = np.full(design.rows_here, -1, dtype=np.int32)
        self.last: Centres | None = None
        self._upper = self._lower = np.empty(0, dtype=np.float32)

    def step(self, centres: Array, *, collect: bool = True) -> Tally:
        """Label every row; with ``collect`` also add up the rows of each cluster.

        Sums are formed anew, in the order of the rows (rows that only integers could decide at the end), so
        that they depend on the centres alone, not on what earlier passes left.
        """
        now = Centres(centres, self.frame, None if self.last is None else self.last.order)
        if self.keep and not len(self._upper):
            self._upper = np.empty(len(self.labels), dtype=np.float32)
            self._lower = np.empty((len(self.labels), now.columns), dtype=np.float32)
        fresh = self.last is None or not self.keep
        drift, groups = (np.empty(0), np.empty(0)) if fresh else now.drift_from(self.last)  # type: ignore[arg-type]
        sums, masses, changed = np.zeros(centres.shape), np.zeros(len(centres)), 0
        for rows, block in pieces(self.design, None if self.keep else 1 << 17):

            def work(a: int, b: int, at: int = rows.start, whole: Any = block) -> Tally:
                part = whole if b - a == whole.shape[0] else whole[a:b]
                mine = slice(at + a, at + b)
                return self._stretch(part, mine, now, (drift, groups), fresh, collect)

            tallies = over_rows(
                block.shape[0],
                work,
                least=max(256, min(_LEAST, (1 << 23) // max(1, centres.size))),
            )  # fmt: skip
            for tally in tallies:
                sums += tally.sums
                masses += tally.masses
                changed += tally.changed
        self.last = now if self.keep else None
        return Tally(sums, masses, changed)

    def _stretch(
        self, block: Any, rows: slice, now: Centres, drifts: Any, fresh: bool, collect: bool
    ) -> Tally:
        from .._jit.lloyd import assign

        labels = self.labels[rows]
        old = labels.copy()
        weights = self.weights[rows] if len(self.weights) else self.weights
        sums, masses = np.zeros(now.centres.shape), np.zeros(len(now.centres))
        undecided = np.empty(len(labels), dtype=np.int64)
        if sp.issparse(block):
            count = _sparse_pass(block, now, labels, undecided, collect, weights, sums, masses)
            open_ = undecided[:count]
            labels[open_] = _dense_labels(block, open_, now)
        else:
            upper, lower = self._bounds(rows, now)
            _, count = assign(
                block, now.frame.mean, now.frame.scale, now.panels, now.halves, now.order, now.place,
                now.centres, now.rounded, now.slope, now.floor, *drifts, fresh, labels, upper, lower,
                now.per, undecided, collect, weights, sums, masses,
            )  # fmt: skip
            open_ = np.sort(undecided[:count])
            labels[open_] = [_by_integers(block[i], now.centres) for i in open_.tolist()]
            upper[open_], lower[open_] = np.inf, -np.inf  # they were for the guess
        for i in open_.tolist() if collect else ():  # last, and in their order
            row = np.asarray(block[[i]].toarray()[0] if sp.issparse(block) else block[i])
            w = weights[i] if len(weights) else 1.0
            sums[labels[i]] += w * (row.astype(np.float64) - now.frame.mean)
            masses[labels[i]] += w
        return Tally(sums, masses, int(np.count_nonzero(old != labels)))

    def _bounds(self, rows: slice, now: Centres) -> tuple[Any, Any]:
        if self.keep:
            return self._upper[rows], self._lower[rows]
        count = rows.stop - rows.start
        return np.empty(count, dtype=np.float32), np.empty((count, now.columns), dtype=np.float32)


def pieces(design: Design, most: int | None = None) -> Iterator[tuple[slice, Any]]:
    """(rows, block) in the precision of the data: all at once in memory, else as they are read."""
    design = getattr(design, "local", design)  # of rows over ranks, those held here
    if isinstance(design, Dense | Sparse):
        n = design.shape[0]
        X = design.X if isinstance(design, Sparse) else np.ascontiguousarray(design.X)
        for start in range(0, n, most or max(1, n)):
            rows = slice(start, min(start + (most or n), n))
            yield rows, (X if rows == slice(0, n) else X[rows])
        return
    for rows, block in design.blocks():
        yield rows, block if sp.issparse(block) else np.ascontiguousarray(block)


def _by_integers(row: Any, centres: Array) -> int:
    """The nearest centre, by whole numbers among those that float64 does not tell apart."""
    gap = centres - np.asarray(row, dtype=np.float64)
    squares = np.einsum("ij,ij->i", gap, gap)
    near = np.flatnonzero(squares <= squares.min() * (1.0 + 1e-9) + 1e-260)
    return int(near[rank_by_integers(row, centres, near)[0]])


def _dense_labels(block: Any, rows: NDArray[np.int64], now: Centres) -> NDArray[np.int32]:
    """Exact labels of some rows of a sparse block."""
    step, found = max(1, (1 << 22) // block.shape[1]), []
    for start in range(0, len(rows), step):
        part = Dense(np.ascontiguousarray(block[rows[start : start + step]].toarray()))
        labeller = Labeller(part, now.frame, keep=False)
        labeller.step(now.centres, collect=False)
        found.append(labeller.labels)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int32)


def _sparse_pass(
    block: Any, now: Centres, labels: Any, undecided: Any, collect: bool, weights: Any, sums: Any,
    masses: Any,
) -> int:  # fmt: skip
    """Labels of sparse rows by float64 scores without centring; which rows that leaves open."""
    from .._jit.lloyd_sparse import assign_sparse

    squares = np.einsum("ij,ij->i", now.centres, now.centres)
    farthest, unit, p = math.sqrt(float(squares.max())), 2.0**-53, block.shape[1]
    slope = 1.01 * (p + 4) * unit * farthest
    floor = 1.01 * (p + 4) * unit * farthest**2 + p * 2.0**-1000
    return int(
        assign_sparse(
            block.data, block.indices, block.indptr, np.ascontiguousarray(now.centres.T),
            0.5 * squares, slope, floor, labels, undecided, collect, weights, sums, masses,
        )
    )  # fmt: skip
