r"""Stochastic gradient descent over observed entries (MF-4), the same bits for any number of threads.

An entry (i, j) with error e = x_ij - mu - b_i - c_j - <u_i, v_j> moves its two rows alone, Theta(K):

    u_i += eta (e v_j - lambda_i u_i),   v_j += eta (e u_i - lambda_j v_j),   b_i, c_j alike,

where lambda_i is user i's penalty divided by the number of its ratings, so that an epoch of visits adds up
to the gradient of the objective. The step is eta / (1 + decay epoch).

Users and items are dealt into four groups each. The entries fall into sixteen blocks, and the four blocks
of a diagonal share no user and no item: they may be worked on side by side, and the outcome is that of
working on them in turn (Gemulla, Haas, Nijkamp & Sismanis, 2011). The entries of a block are shuffled once;
each epoch visits runs of 64 of them in a new random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._jit.factor_steps import sgd_block
from .._threads import over_rows
from ..iterate import Iterate
from .factor_als import penalty, row_loss
from .factor_problem import Penalties, Side, features

__all__ = ["sgd"]

Array = NDArray[Any]
_GROUPS = 4
_RUN = 64


def sgd(
    users: Side,
    items: Side,
    U: Array,
    V: Array,
    penalties: Penalties,
    *,
    step: float,
    decay: float,
    rng: np.random.Generator,
    losses: bool = True,
) -> Iterator[Iterate]:
    """Epochs from (U, V), which are overwritten; yields them with the loss (NaN without ``losses``)."""
    k = U.shape[1] - penalties.biases
    dtype = U.dtype
    blocks, entries = _blocks(users, items, rng)
    row, column, value = entries[0], entries[1], users.targets[entries[2]]
    lam = [
        _per_visit(rows, a).astype(dtype) for rows in (users, items) for a in (0, len(rows.lam) - 1)
    ]
    u, v = np.ascontiguousarray(U[:, :k]), np.ascontiguousarray(V[:, :k])
    b, c = np.ascontiguousarray(U[:, -1]), np.ascontiguousarray(V[:, -1])
    epoch = 0
    while True:
        eta = dtype.type(step / (1.0 + decay * epoch))
        for shift in rng.permutation(_GROUPS):
            chosen = [(g, (g + int(shift)) % _GROUPS) for g in range(_GROUPS)]
            starts = [_starts(*blocks[pair], rng) for pair in chosen]

            def work(
                first: int, last: int, chosen: Any = chosen, starts: Any = starts, eta: Any = eta
            ) -> None:
                for g in range(first, last):
                    stop = blocks[chosen[g]][1]
                    sgd_block(
                        row, column, value, starts[g], stop, u, v, b, c, lam[0], lam[2], lam[1], lam[3],
                        eta, penalties.biases,
                    )  # fmt: skip

            over_rows(_GROUPS, work, least=1)
        U[:, :k], V[:, :k] = u, v
        if penalties.biases:
            U[:, -1], V[:, -1] = b, c
        epoch += 1
        loss = np.nan
        if losses:
            with np.errstate(over="ignore", invalid="ignore"):  # run() sees that it diverged
                F, shift_of = features(V, biases=penalties.biases)
                loss = row_loss(users, F, shift_of, U) + penalty(items, V)
        yield Iterate(
            (U, V, None), loss if np.isfinite(loss) or not losses else np.inf, step=float(eta)
        )


def _per_visit(rows: Side, column: int) -> NDArray[np.float64]:
    """The penalty of a row divided by the number of its entries."""
    counts = np.maximum(np.diff(rows.indptr), 1)
    shares: NDArray[np.float64] = rows.scale * rows.lam[column] / counts
    return shares


def _groups(rows: Side, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rows dealt into groups of about equal numbers of entries."""
    order = rng.permutation(rows.rows)
    load = np.cumsum(np.diff(rows.indptr)[order])
    out = np.empty(rows.rows, dtype=np.int64)
    out[order] = np.minimum(load * _GROUPS // max(1, int(load[-1]) + 1), _GROUPS - 1)
    return out


def _blocks(
    users: Side, items: Side, rng: np.random.Generator
) -> tuple[dict[tuple[int, int], tuple[int, int]], tuple[Array, Array, Array]]:
    """Where each block begins and ends, and the entries (user, item, place) block by block, shuffled."""
    place = rng.permutation(len(users.indices))
    row = np.repeat(np.arange(users.rows, dtype=np.int32), np.diff(users.indptr))[place]
    column = users.indices[place]
    block = _groups(users, rng)[row] * _GROUPS + _groups(items, rng)[column]
    order = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[order], np.arange(_GROUPS**2 + 1))
    where = {
        (g, h): (int(ends[g * _GROUPS + h]), int(ends[g * _GROUPS + h + 1]))
        for g in range(_GROUPS)
        for h in range(_GROUPS)
    }
    return where, (row[order], column[order], place[order])


def _starts(first: int, last: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return first + _RUN * rng.permutation((last - first + _RUN - 1) // _RUN)
