r"""Lloyd's k-means: assign every row to its nearest centre, move every centre to the mean of its rows.

The sum of squares W(z, c) = sum_i w_i |x_i - c_{z_i}|^2 is minimised over the labels z with c fixed, then
over the centres c with z fixed (block coordinate descent), so it never rises; there are finitely many
assignments, so labels repeat after finitely many passes: neither step then changes anything. That is a
stationary point, not the least sum (CLU-1).

A pass is a function of the centres: labels are exact and sums are formed anew (see
:mod:`surefit.solvers.assignment`). So a run can go on from the centres of any iteration, and ends with the
same bits. The value of an iterate is W of the centres *before* the step and their labels, from the sums:
W = sum w|x - m|^2 - 2 sum_j <c_j - m, S_j> + sum_j w_j |c_j - m|^2, m the mean of all rows.

A cluster without weight takes the row that lies farthest from its centre, as in scikit-learn.

References
----------
Lloyd, "Least squares quantization in PCM", IEEE Trans. Information Theory 28 (1982).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import is_torch, to_numpy
from .._threads import over_rows
from ..design import Dense, Design, Sparse, Torch
from ..iterate import Iterate
from .assignment import Frame, Labeller, frame_of, pieces

__all__ = ["Setting", "Step", "describe", "labeller_of", "lloyd", "squares_to"]

Array = NDArray[np.float64]


class Setting(NamedTuple):
    """What is known of the rows before the first pass, summed over all ranks."""

    frame: Frame
    variance: float  # mean over the columns, unweighted
    spread: float  # sum of weight * |x - frame.mean|^2
    mass: float  # sum of the weights


class Step(NamedTuple):
    """New centres, and whether the labels were those of the pass before."""

    centres: Array
    settled: bool


def describe(design: Design, weights: Any, extra: Array | None = None) -> Setting:
    """Two passes over the rows: their mean, then their spread about it.

    Sparse rows are not centred. ``extra`` are centres that the frame must have room for.
    """
    n, p = design.shape
    group = design.group
    sparse = design.centres_first is False
    totals = group.sum(np.sum(_over(design, lambda rows, block: _column_sums(block)), axis=0))
    mean = totals / n
    origin = np.zeros(p) if sparse else mean

    def part(rows: slice, block: Any) -> tuple[Array, float, float]:
        w = None if weights is None else weights[rows]
        if sp.issparse(block):
            wide = block.astype(np.float64, copy=False)
            squares = wide.multiply(wide)
            each = np.asarray(squares.sum(axis=1)).ravel()
            reach = float(abs(block.data).max(initial=0.0))
            return (
                np.asarray(squares.sum(axis=0)).ravel(),
                float(each.sum() if w is None else each @ w),
                reach,
            )
        if is_torch(block):
            import torch

            gap = block.double() - torch.as_tensor(origin, device=block.device)
            squares = gap * gap
            each = squares.sum(dim=1)
            return (
                to_numpy(squares.sum(dim=0)),
                float(each.sum() if w is None else each @ w),
                float(gap.abs().max()),
            )
        step = max(1, (1 << 16) // p)
        sums, total, reach = np.zeros(p), 0.0, 0.0
        for k in range(0, len(block), step):
            gap = np.asarray(block[k : k + step], dtype=np.float64) - origin
            reach = max(reach, float(gap.max()), -float(gap.min()))
            np.square(gap, out=gap)
            sums += gap.sum(axis=0)
            total += float(gap.sum() if w is None else w[k : k + step] @ gap.sum(axis=1))
        return sums, total, reach

    with np.errstate(over="ignore", invalid="ignore"):
        parts = _over(design, part)
        squares, spread, mass = group.sum(
            np.sum([found[0] for found in parts], axis=0),
            np.float64(sum(found[1] for found in parts)),
            np.float64(design.rows_here if weights is None else float(weights.sum())),
        )
        reach = float(group.max(np.float64(max(found[2] for found in parts))))
        variance = squares / n - (mean**2 if sparse else 0.0)
    if extra is not None:
        reach = max(reach, float(np.abs(extra - origin).max()))
    return Setting(frame_of(origin, reach), float(variance.mean()), float(spread), float(mass))


def _column_sums(block: Any) -> Array:
    if sp.issparse(block):
        return np.asarray(block.astype(np.float64, copy=False).sum(axis=0)).ravel()
    if is_torch(block):
        return to_numpy(block.double().sum(dim=0))
    sums: Array = np.sum(
        [block[k : k + 1024].sum(axis=0, dtype=np.float64) for k in range(0, len(block), 1024)],
        axis=0,
    )
    return sums


def _over(design: Design, work: Any) -> list[Any]:
    """``work(rows, block)`` over the rows, in order; stretches of an array in memory side by side."""
    design = getattr(design, "local", design)
    if isinstance(design, Dense):
        X = design.X
        return over_rows(design.shape[0], lambda a, b: work(slice(a, b), X[a:b]), least=8192)
    if isinstance(design, Torch):
        return [work(rows, block) for rows, block in design.blocks()]
    return [work(rows, block) for rows, block in pieces(design)]


def labeller_of(design: Design, frame: Frame, weights: Any, *, keep: bool = True) -> Any:
    """The labeller for what the rows are."""
    if isinstance(getattr(design, "local", design), Torch):
        from .assignment_device import DeviceLabeller, has_kernels
        from .assignment_torch import TorchLabeller

        local: Any = getattr(design, "local", design)
        kind = DeviceLabeller if has_kernels(local.X) else TorchLabeller
        return kind(design, frame, weights)
    return Labeller(design, frame, weights, keep=keep)


def lloyd(labeller: Any, centres: Array, spread: float) -> Iterator[Iterate]:
    """Passes from these centres on, until no label changes."""
    frame, group = labeller.frame, labeller.design.group
    while True:
        sums, masses, changed = group.sum(*(np.asarray(part) for part in labeller.step(centres)))
        gap = centres - frame.mean
        value = (
            spread
            - 2.0 * float(np.vdot(gap, sums))
            + float(masses @ np.einsum("ij,ij->i", gap, gap))
        )
        empty = np.flatnonzero(masses == 0.0)
        if len(empty):
            _relocate(labeller, centres, empty, sums, masses)
        new = sums / np.where(masses > 0.0, masses, 1.0)[:, None] + frame.mean
        new[masses <= 0.0] = new[np.argmax(masses)]
        moved = new - centres
        settled = int(changed) == 0
        yield Iterate(Step(new, settled), max(value, 0.0), float(np.vdot(moved, moved)))
        if settled:
            return
        centres = new


def _relocate(labeller: Any, centres: Array, empty: Any, sums: Array, masses: Array) -> None:
    """Give each cluster without weight one of the rows farthest from their centres, the farthest first."""
    design, mean = labeller.design, labeller.frame.mean
    far, away = _farthest(squares_to(design, centres, labeller.labels), len(empty))
    weights = (
        np.ones(len(far))
        if labeller.weights is None or not len(labeller.weights)
        else to_numpy(labeller.weights)[far]
    )
    mine = [
        (-float(d), design.first_row + int(i), int(labeller.labels[int(i)]), float(w), row)
        for i, d, w, row in zip(far, away, weights, rows_here(design, far))
    ]
    everyone = sorted(
        (item for part in design.group.gather(mine) for item in part), key=lambda item: item[:2]
    )
    if not everyone or everyone[0][0] == 0.0:
        return  # fewer distinct rows than clusters
    for to, (_, _, label, w, row) in zip(empty, everyone):
        sums[label] -= w * (row - mean)
        sums[to] = w * (row - mean)
        masses[label] -= w
        masses[to] = w


def _farthest(squares: Any, count: int) -> tuple[Any, Any]:
    """The numbers of the ``count`` rows with the largest squares, the first of equals, and these squares."""
    count = min(count, len(squares))
    if is_torch(squares):
        least = squares.topk(count).values[-1]
        index = (squares >= least).nonzero()[:, 0]
    else:
        least = np.partition(squares, len(squares) - count)[len(squares) - count]
        index = np.flatnonzero(squares >= least)
    values = to_numpy(squares[index])
    order = np.lexsort((np.arange(len(values)), -values))[:count]
    return to_numpy(index)[order], values[order]


def squares_to(design: Design, centres: Array, labels: Any) -> Any:
    """|x_i - c_{z_i}|^2 of the rows held here, in float64, where they live."""
    from .._jit.lloyd import squares
    from .._jit.lloyd_sparse import squares_sparse

    centres = np.ascontiguousarray(centres, dtype=np.float64)
    count, design = design.rows_here, getattr(design, "local", design)
    if isinstance(design, Torch):
        import torch

        table = torch.as_tensor(centres, device=design.X.device)
        parts = [((b - table[labels[rows].long()]) ** 2).sum(dim=1) for rows, b in design.blocks()]
        return torch.cat(parts)
    out = np.empty(count)

    def fill(block: Any, rows: slice) -> None:
        if sp.issparse(block):
            squares_sparse(
                block.data, block.indices, block.indptr, centres, labels[rows], out[rows]
            )
        else:
            squares(block, centres, labels[rows], out[rows])

    for rows, block in pieces(design):

        def work(a: int, b: int, at: int = rows.start, whole: Any = block) -> None:
            fill(whole if b - a == whole.shape[0] else whole[a:b], slice(at + a, at + b))

        over_rows(block.shape[0], work)
    return out


def rows_here(design: Design, index: Any) -> Array:
    """Some of the rows held here, as a float64 array."""
    index = np.asarray(index, dtype=np.int64)
    design = getattr(design, "local", design)
    if isinstance(design, Dense):
        return np.asarray(design.X[index], dtype=np.float64)
    if isinstance(design, Sparse):
        return np.asarray(design.X[index].toarray(), dtype=np.float64)
    if isinstance(design, Torch):
        return to_numpy(design.X[index].double())
    out = np.empty((len(index), design.shape[1]))
    for rows, block in design.blocks():
        inside = np.flatnonzero((index >= rows.start) & (index < rows.stop))
        if len(inside):
            chosen = block[index[inside] - rows.start]
            out[inside] = chosen.toarray() if sp.issparse(chosen) else to_numpy(chosen)
    return out


def inertia(design: Design, centres: Array, labels: Any, weights: Any) -> float:
    """The weighted sum of squares over all ranks."""
    each = squares_to(design, centres, labels)
    total = float((each if weights is None else each * weights).sum())
    return float(design.group.sum(np.float64(total if math.isfinite(total) else np.inf)))
