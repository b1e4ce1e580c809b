"""One pass over the rows of a k-means fit, for its claims; shares nothing with the solver.

A label is right when no centre is nearer, ties to the lowest number. A float32 product with a bound on its
error settles most rows, a float64 one nearly all others, rational numbers the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._exact_order import SMALL, UNIT, exactly_first
from .._namespace import is_torch, like, to_numpy
from .._threads import over_rows
from ..design import Dense, Design, Torch, as_design
from ._kmeans_look_torch import TensorTable

__all__ = ["Findings", "last_step", "look", "wcss_before"]

Array = NDArray[np.float64]
_ROWS = 1024  # of a block of products
_PATIENCE = 2000  # rows that rational numbers may decide at fit


class Findings(NamedTuple):
    """What one pass over the rows found, summed over all ranks."""

    wrong: int  # labels that are not the nearest centre
    open: int  # rows that were not decided, to save time
    rows: int
    masses: Array
    moves: Array  # of the centres in one more step; 0 for clusters without weight
    wcss: float
    spread: float  # sum of weight * |x - mean of x|^2
    size: float  # the same as the fit sees it: about 0 for sparse rows, which it does not centre
    variance: float  # mean over the columns, unweighted
    place: float  # sum of weight * (|centre|^2 + |middle|^2): what rounding of positions is relative to


class _Table:
    """The centres, for products in float32 and float64 with bounds on their errors."""

    def __init__(self, centres: Array) -> None:
        self.centres = centres
        self.origin = self.middle = centres.mean(axis=0)
        moved = centres - self.origin
        p = centres.shape[1]
        reach = float(np.abs(moved).max(initial=0.0))
        self.scale = 2.0 ** -min(max(math.frexp(reach)[1], -1000), 1000) if reach > 0 else 1.0
        self.kinds = []
        for kind, unit, tiny in ((np.float32, 2.0**-24, 2.0**-110), (np.float64, UNIT, 2.0**-900)):
            table = moved * self.scale
            halves = 0.5 * np.einsum("ij,ij->i", table, table)
            longest = math.sqrt(2.0 * float(halves.max()))
            # products: p roundings; both factors, the half square and the difference: one each
            slope = 1.01 * unit * (p + 6.0) * longest if p * unit < 0.005 else math.inf
            floor = 2.0 * unit * longest**2 + p * tiny
            self.kinds.append(
                (np.ascontiguousarray(table.T.astype(kind)), halves.astype(kind), slope, floor)
            )

    def doubtful(self, rows: Array, labels: Any, level: int) -> Any:
        """Rows of which products in float32 (level 0) or float64 (1) do not show the label to be right."""
        table, halves, slope, floor = self.kinds[level]
        with np.errstate(all="ignore"):
            part = ((rows - self.origin) * self.scale).astype(table.dtype)
            length = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            scores = part @ table
            np.subtract(halves, scores, out=scores)
            at = np.arange(len(rows))
            own = scores[at, labels].astype(np.float64)
            scores[at, labels] = np.inf
            rival = scores.min(axis=1).astype(np.float64)
            return np.flatnonzero(~(rival - own > 2.0 * (slope * length + floor)))

    def nearest(self, rows: Array) -> Any:
        """The nearest centre of each row, in exact arithmetic, the lowest of equals."""
        table, halves, _, _ = self.kinds[1]
        labels = np.argmin(halves - ((rows - self.origin) * self.scale) @ table, axis=1)
        for i in self.doubtful(rows, labels, 1):
            gap = self.centres - rows[i]
            by_distance = np.argsort(np.einsum("ij,ij->i", gap, gap), kind="stable")
            labels[i] = next(int(j) for j in by_distance if self.is_right(rows[i], int(j)))
        return labels

    def is_right(self, row: Array, label: int) -> bool:
        """Whether this label is the nearest centre in exact arithmetic, the lowest of equals."""
        gap = self.centres - row
        squares = np.einsum("ij,ij->i", gap, gap)
        below = squares * (1.0 - (len(row) + 8) * 2.0 * UNIT) - SMALL
        return exactly_first(row, self.centres, np.array([label]), below)


def look(model: Any, X: Any, sample_weight: Any, *, full: bool) -> Findings:
    """One pass over the rows."""
    design = as_design(X)
    centres = to_numpy(model.cluster_centers_).astype(np.float64)
    labels = to_numpy(model.labels_)
    k, p = centres.shape
    n = design.shape[0]
    fits = (
        k == model.n_clusters
        and bool(np.isfinite(centres).all())
        and labels.shape == (design.rows_here,)
        and labels.min(initial=0) >= 0
        and labels.max(initial=0) < k
    )
    if design.group.max(np.float64(not fits)):
        return Findings(
            n, 0, n, np.zeros(k), np.full((k, p), np.nan), *[math.nan] * 5
        )  # fmt: skip
    mine = getattr(sample_weight, "here", sample_weight)  # of the rows held here
    weights = np.ones(design.rows_here) if mine is None else to_numpy(mine)
    table = _Table(centres)
    counts = design.group.sum(np.bincount(labels, minlength=k).astype(np.float64))
    table.middle = counts @ centres / n  # near the rows, wherever centres without rows are
    parts = [
        part
        for rows, block in _stretches(design)
        for part in _parts(block, rows, table, labels, weights)
    ]
    moves, masses, plain, squares, bare = (
        np.sum([part[i] for part in parts], axis=0) for i in range(5)
    )
    sums = [math.fsum(part[i] for part in parts) for i in (5, 6)]
    wrong, open_, left = 0, 0, _PATIENCE
    for part in parts:
        for row, label in part[7]:
            if left == 0 and not full:
                open_ += 1
                continue
            left = max(0, left - 1)
            wrong += not table.is_right(row, label)
    moves, masses, plain, squares, bare, wcss, spread, wrong, open_ = design.group.sum(
        moves,
        masses,
        plain,
        squares,
        bare,
        np.float64(sums[0]),
        np.float64(sums[1]),
        np.int64(wrong),
        np.int64(open_),
    )
    total = max(float(masses.sum()), 1e-300)
    spread = float(spread) - float(bare @ bare) / total  # about the weighted mean
    middle = table.middle + bare / total
    size = spread + (0.0 if design.centres_first else total * float(middle @ middle))
    variance = float(np.mean(squares / n - (plain / n) ** 2))
    moves = moves / np.where(masses > 0.0, masses, 1.0)[:, None]
    moves[masses <= 0.0] = 0.0
    reach = np.einsum("ij,ij->i", centres, centres) + float(table.middle @ table.middle)
    occupied = masses > 0.0  # a centre without rows may lie anywhere
    return Findings(
        int(wrong),
        int(open_),
        n,
        masses,
        moves,
        float(wcss),
        max(spread, 0.0),
        max(size, 0.0),
        max(variance, 0.0),
        float(masses[occupied] @ reach[occupied]),
    )


def _stretches(design: Design) -> Iterator[tuple[slice, Any]]:
    local = getattr(design, "local", design)  # of rows over ranks, those held here
    if isinstance(local, (Dense, Torch)):
        yield slice(0, local.shape[0]), local.X
        return
    yield from local.blocks()


def _parts(block: Any, rows: slice, table: _Table, labels: Any, weights: Array) -> list[Any]:
    if is_torch(block):
        near = TensorTable(table, block)
        return [
            near.part(x, *_beside(x, first, labels, weights)) for first, x in near.pieces(block)
        ]
    size = max(_ROWS, len(table.centres))

    def work(first: int, last: int) -> Any:
        total: Any = None
        for k in range(first, last, size):
            part = _block(block, k, min(k + size, last), rows.start, table, labels, weights)
            if total is None:
                total = (*part[:5], [part[5]], [part[6]], part[7])
                continue
            for into, more in zip(total[:5], part[:5]):
                into += more
            for into, more in zip(total[5:7], part[5:7]):
                into.append(more)
            total[7].extend(part[7])
        return (*total[:5], math.fsum(total[5]), math.fsum(total[6]), total[7])

    return over_rows(block.shape[0], work) if block.shape[0] else []


def _block(
    block: Any, first: int, last: int, start: int, table: _Table, labels: Any, weights: Array
) -> Any:
    x = _plain(block[first:last])
    z, w = labels[start + first : start + last], weights[start + first : start + last]
    k = len(table.centres)
    doubt = table.doubtful(x, z, 0)
    if len(doubt):
        doubt = doubt[table.doubtful(x[doubt], z[doubt], 1)]
    gap = x - table.centres[z]
    squares = np.einsum("ij,ij->i", gap, gap)
    shares = sp.csr_array((w, (z, np.arange(len(z)))), shape=(k, len(z)))
    centred = x - table.middle
    each = np.einsum("ij,ij->i", centred, centred)
    return (
        shares @ gap, np.bincount(z, weights=w, minlength=k), centred.sum(axis=0),
        np.einsum("ij,ij->j", centred, centred), w @ centred, float(np.sum(w * squares)),
        float(np.sum(w * each)), [(x[i].copy(), int(z[i])) for i in doubt],
    )  # fmt: skip


def _plain(part: Any) -> Array:
    """Rows as a float64 array."""
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


def _beside(x: Any, first: int, *vectors: Any) -> list[Any]:
    """The entries of vectors over samples that belong to a piece of a tensor, on its device."""
    return [like(vector[first : first + len(x)], x) for vector in vectors]


def last_step(model: Any, X: Any, sample_weight: Any, rounding: Array, allowed: float) -> float:
    """The squared length of a Lloyd step from ``centers_before_``, a witness; infinite if it leads elsewhere.

    ``rounding`` of each centre is how far from it the step may end.

    scikit-learn's rule stops after a short step, and the next one may be a little longer.
    """
    centres = to_numpy(model.cluster_centers_).astype(np.float64)
    before = np.asarray(model.centers_before_, dtype=np.float64)
    if before.shape != centres.shape or not np.isfinite(before).all():
        return math.inf
    length = float(np.sum((centres - before) ** 2))
    if length > allowed:
        return math.inf  # no need to look where it leads
    design, table = as_design(X), _Table(before)
    mine = getattr(sample_weight, "here", sample_weight)
    weights = np.ones(design.rows_here) if mine is None else to_numpy(mine)
    sums, masses = np.zeros(centres.shape), np.zeros(len(centres))
    for rows, block in _stretches(design):
        if is_torch(block):
            near = TensorTable(table, block)
            for first, x in near.pieces(block):
                found = near.sums(x, near.nearest(x), *_beside(x, first, weights))
                sums, masses = sums + found[0], masses + found[1]
            continue
        for x, w in _pieces(rows, block, weights, len(centres)):
            z = table.nearest(x)
            sums += sp.csr_array((w, (z, np.arange(len(z)))), shape=(len(sums), len(z))) @ (
                x - table.origin
            )
            masses += np.bincount(z, weights=w, minlength=len(masses))
    sums, masses = design.group.sum(sums, masses)
    there = table.origin + sums / np.where(masses > 0.0, masses, 1.0)[:, None]
    gap = np.where((masses > 0.0)[:, None], there - centres, 0.0)
    return length if (np.sum(gap**2, axis=1) <= rounding**2).all() else math.inf


def wcss_before(model: Any, X: Any, sample_weight: Any) -> float:
    """The sum of squares at ``centers_before_``, each row with its nearest centre."""
    design, table = as_design(X), _Table(np.asarray(model.centers_before_, dtype=np.float64))
    mine = getattr(sample_weight, "here", sample_weight)
    weights = np.ones(design.rows_here) if mine is None else to_numpy(mine)
    total = 0.0
    for rows, block in _stretches(design):
        if is_torch(block):
            near = TensorTable(table, block)
            for first, x in near.pieces(block):
                gap = x - near.centres[near.nearest(x)]
                total += float((_beside(x, first, weights)[0] * gap.square().sum(dim=1)).sum())
            continue
        for x, w in _pieces(rows, block, weights, len(table.centres)):
            gap = x - table.centres[table.nearest(x)]
            total += float(w @ np.einsum("ij,ij->i", gap, gap))
    return float(design.group.sum(np.float64(total)))


def _pieces(rows: slice, block: Any, weights: Array, k: int) -> Iterator[tuple[Array, Array]]:
    """Some rows of a block in float64 at a time, with their weights."""
    size = max(_ROWS, k)
    for first in range(0, block.shape[0], size):
        x = _plain(block[first : first + size])
        yield x, weights[rows.start + first : rows.start + first + len(x)]
