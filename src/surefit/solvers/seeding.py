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

from .._namespace import to_numpy
from .._threads import over_rows
from ..design import Design, Torch
from .assignment import pieces
from .lloyd import rows_here

__all__ = ["plus_plus", "random_rows", "rows_at"]

Array = NDArray[np.float64]
_STRETCH = 4096  # numbers cumulated at a time


def plus_plus(
    design: Design, k: int, weights: Array | None, random_state: Any, trials: int | None = None
) -> tuple[Array, NDArray[np.int64]]:
    """k rows by greedy D^2 sampling, and their numbers."""
    group = design.group
    trials = 2 + int(math.log(k)) if trials is None else trials
    w = np.ones(design.rows_here) if weights is None else to_numpy(weights)
    first = _draw(design, w, np.array([random_state.random_sample()]), share=True)
    index = np.full(k, -1, dtype=np.int64)
    centres = np.empty((k, design.shape[1]))
    index[0], centres[0] = first[0], rows_at(design, first)[0]
    closest = np.full(design.rows_here, np.inf)
    found, totals = _distances(design, centres[:1], closest, w)
    closest, cost = found[:, 0].copy(), float(group.sum(totals)[0])
    for c in range(1, k):
        draws = random_state.uniform(size=trials) * cost
        ids = _draw(design, w * closest if weights is not None else closest, draws)
        rows = rows_at(design, ids)
        found, totals = _distances(design, rows, closest, w)
        totals = group.sum(totals)
        best = int(np.argmin(totals))
        closest, cost = np.ascontiguousarray(found[:, best]), float(totals[best])
        index[c], centres[c] = ids[best], rows[best]
    return centres, index


def random_rows(
    design: Design, k: int, weights: Array | None, random_state: Any
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
    parts = np.add.reduceat(values, starts) if len(values) else np.zeros(1)
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
        inside = np.cumsum(values[starts[part] : starts[part] + _STRETCH])
        place = min(int(np.searchsorted(inside, rest)), len(inside) - 1)
        index[i] = design.first_row + starts[part] + place
    return np.asarray(design.group.sum(index))


def _distances(design: Design, rows: Array, closest: Array, w: Array) -> tuple[Array, Array]:
    """min(closest, squared distance to each of ``rows``), and the weighted sums of these."""
    from .._jit.seeding import closer

    found = np.empty((design.rows_here, len(rows)))
    near = getattr(design, "local", design)
    if isinstance(near, Torch):
        import torch

        table = torch.as_tensor(rows, device=near.X.device)
        for part, block in near.blocks():
            mode = "donot_use_mm_for_euclid_dist"
            squares = torch.cdist(block, table, compute_mode=mode).square()
            found[part] = np.minimum(to_numpy(squares), closest[part, None])
        return found, w @ found
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
    return found, totals
