r"""First centres for k-means: D^2 sampling (k-means++), or rows drawn at random.

k-means++ takes each further centre among the rows with probability proportional to w_i D_i^2, D_i the
distance to the nearest centre so far. With one draw a centre the expected cost is at most
8 (ln k + 2) times the least (CLU-3); the greedy variant, of 2 + ln k draws the one that lowers the cost most,
is what scikit-learn does and does better in practice.

Draws are in terms of the numbers of the rows over all ranks (the inverse of the cumulated weights), and in
scikit-learn's order, so that a seed gives the same rows as there, up to rounding. Distances are formed
from differences: a row that is a centre has distance 0.

References
----------
Arthur & Vassilvitskii, "k-means++: the advantages of careful seeding" (SODA 2007).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import array_namespace, is_torch, to_numpy
from .._threads import over_rows
from ..design import Design, Torch
from .assignment import pieces
from .lloyd import rows_here

__all__ = ["plus_plus", "random_rows", "rows_at"]

Array = NDArray[np.float64]
_STRETCH = 4096  # numbers cumulated at a time


def plus_plus(
    design: Design, k: int, weights: Any, random_state: Any, trials: int | None = None
) -> tuple[Array, NDArray[np.int64]]:
    """k rows by greedy D^2 sampling, and their numbers; weights is None, an array, or a tensor beside X."""
    group = design.group
    trials = 2 + int(math.log(k)) if trials is None else trials
    local: Any = getattr(design, "local", design)
    tensor = isinstance(local, Torch)
    if tensor:
        import torch

        w: Any = torch.ones(len(local.X), dtype=torch.float64, device=local.X.device)
        w = w if weights is None else weights.double()
    else:
        w = np.ones(design.rows_here) if weights is None else to_numpy(weights)
    first = _draw(design, w, np.array([random_state.random_sample()]), share=True)
    index = np.full(k, -1, dtype=np.int64)
    centres = np.empty((k, design.shape[1]))
    index[0], centres[0] = first[0], rows_at(design, first)[0]
    distances = _tensor_distances if tensor else _distances
    found, totals = distances(design, centres[:1], array_namespace(w).full_like(w, np.inf), w)
    closest, cost = found[0], float(group.sum(totals)[0])
    for c in range(1, k):
        draws = random_state.uniform(size=trials) * cost
        ids = _draw(design, w * closest if weights is not None else closest, draws)
        rows = rows_at(design, ids)
        found, totals = distances(design, rows, closest, w)
        totals = group.sum(totals)
        best = int(np.argmin(totals))
        closest, cost = found[best], float(totals[best])
        index[c], centres[c] = ids[best], rows[best]
    return centres, index


def random_rows(
    design: Design, k: int, weights: Any, random_state: Any
) -> tuple[Array, NDArray[np.int64]]:
    """k different rows, drawn by their weights."""
    n = design.shape[0]
    if weights is None:
        p = np.full(n, 1.0 / n)
    else:
        whole = np.concatenate(design.group.gather(to_numpy(weights)))
        p = whole / whole.sum()
    index = np.asarray(random_state.choice(n, size=k, replace=False, p=p), dtype=np.int64)
    return rows_at(design, index), index


def rows_at(design: Design, index: NDArray[np.int64]) -> Array:
    """Rows by their numbers over all ranks; every rank receives all of them."""
    local = index - design.first_row
    mine = (local >= 0) & (local < design.rows_here)
    rows = np.zeros((len(index), design.shape[1]))
    if mine.any():
        rows[mine] = rows_here(design, local[mine])
    return np.asarray(design.group.sum(rows))


def _draw(design: Design, values: Array, draws: Array, *, share: bool = False) -> NDArray[np.int64]:
    """The rows at which the cumulated values pass the draws (shares of the total with ``share``)."""
    starts = np.arange(0, max(1, len(values)), _STRETCH)
    parts = _stretch_sums(values, starts)
    ends = np.cumsum(parts)
    totals = np.array(design.group.gather(float(ends[-1])))
    before = float(totals[: design.group.rank].sum())
    if share:
        draws = draws * float(totals.sum())
    rank = np.minimum(np.searchsorted(np.cumsum(totals), draws), len(totals) - 1)
    index = np.zeros(len(draws), dtype=np.int64)
    for i in np.flatnonzero(rank == design.group.rank):
        rest = draws[i] - before
        part = min(int(np.searchsorted(ends, rest)), len(ends) - 1)
        rest -= ends[part] - parts[part]
        inside = np.cumsum(to_numpy(values[starts[part] : starts[part] + _STRETCH]))
        place = min(int(np.searchsorted(inside, rest)), len(inside) - 1)
        index[i] = design.first_row + starts[part] + place
    return np.asarray(design.group.sum(index))


def _stretch_sums(values: Any, starts: Any) -> Array:
    """The sums of stretches of values."""
    if not len(values):
        return np.zeros(1)
    if not is_torch(values):
        return np.asarray(np.add.reduceat(values, starts))
    import torch

    padded = torch.nn.functional.pad(values, (0, -len(values) % _STRETCH))
    return to_numpy(padded.reshape(-1, _STRETCH).sum(dim=1))


def _tensor_distances(design: Design, rows: Array, closest: Any, w: Any) -> tuple[Any, Array]:
    """:func:`_distances` on the device of a tensor."""
    import torch

    from .assignment_device import has_kernels

    near: Any = getattr(design, "local", design)
    X, table = near.X, torch.as_tensor(rows, device=near.X.device)
    n, p = X.shape
    found = torch.empty((len(rows), n), dtype=torch.float64, device=X.device)
    if has_kernels(X):
        from .._triton.seeding import closer

        width = min(64, max(16, 1 << (p - 1).bit_length()))
        size = 4096 // width
        totals = torch.empty((-(-n // size), len(rows)), dtype=torch.float64, device=X.device)
        closer[(len(totals),)](
            X.contiguous(), table.contiguous(), closest, w, found, totals, n, p, T=len(rows), BR=size,
            BP=width, WEIGHTED=True,
        )  # fmt: skip
        return found, to_numpy(totals.sum(dim=0))
    for part, block in near.blocks():
        for t, row in enumerate(table):
            found[t, part] = torch.minimum((block - row).square().sum(dim=1), closest[part])
    return found, to_numpy(found @ w)


def _distances(design: Design, rows: Array, closest: Array, w: Array) -> tuple[Any, Array]:
    """min(closest, squared distance to each of ``rows``), row by row, and the weighted sums of these."""
    from .._jit.seeding import closer

    found = np.empty((design.rows_here, len(rows)))
    totals = np.zeros(len(rows))
    norms = np.einsum("ij,ij->i", rows, rows)
    for part, block in pieces(design):
        if sp.issparse(block):
            own = np.asarray(block.multiply(block).sum(axis=1), dtype=np.float64).reshape(-1, 1)
            squares = np.maximum(own - 2.0 * (block @ rows.T) + norms, 0.0)
            squares[squares <= 8.0 * np.finfo(block.dtype).eps * (own + norms)] = 0.0
            found[part] = np.minimum(squares, closest[part, None])
            totals += w[part] @ found[part]
            continue

        def stretch(a: int, b: int, part: Any = part, block: Any = block) -> Array:
            total = np.zeros(len(rows))
            at = slice(part.start + a, part.start + b)
            closer(block[a:b], rows, closest[at], w[at], found[at], total)
            return total

        for total in over_rows(block.shape[0], stretch):
            totals += total
    return np.ascontiguousarray(found.T), totals
