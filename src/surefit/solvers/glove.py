r"""Weighted factorisation of log-counts: steps over the entries, and alternating least squares.

    P = 1/2 sum_{n_ij > 0} f_ij (<w_i, z_j> + b_i + c_j - log n_ij)^2
        + lambda/2 (||W||^2 + ||Z||^2 + ||b||^2 + ||c||^2)

*Steps.* An entry moves its two rows alone. Words and contexts are dealt into groups whose rows fit into a
processor's own cache, and the entries into the blocks of a word group and a context group. The blocks of a
diagonal share no row: they are worked on side by side, and the outcome is that of working on them in turn
(Gemulla, Haas, Nijkamp & Sismanis, 2011), the same for any number of threads. Where that is not asked for,
threads need not wait for each other at the end of a diagonal, and write into the same rows now and then
(Recht, Ré, Wright & Niu, 2011). Entries are shuffled once; each epoch visits the diagonals, and runs of 64
entries within a block, in a new random order.

AdaGrad is that of GloVe's authors: a number moves by eta g / sqrt(1 + sum (eta g)^2), g its slopes so far,
the newest among them (which their program counts from the next step on).

*Alternating least squares.* Given Z, a word's row is a weighted ridge regression on the contexts it occurs
with,

    w_i = (sum_j f_ij z_j z_j' + lambda I)^{-1} sum_j f_ij (log n_ij - c_j) z_j,

b_i being one more number of it; then the contexts alike. No solve raises P.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._jit.factors import solve_rows
from .._jit.glove import row_losses, steps
from .._threads import over_rows
from ..iterate import Iterate
from .factor_problem import Penalties, Side, balance, features, over_entries, share

__all__ = ["als", "descend", "objective", "probe_slopes", "side"]

Array = NDArray[Any]
_CACHE = 350_000  # bytes of the rows of a group
_GROUPS = 256  # at most
_LANES = 16
_RUN = 64
_DECAY = 0.05  # of the steps of plain SGD, an epoch
_SMALL = 2.0**-10  # rate of the steps that are compared with gradients


def side(logs: Any, weights: Array, reg: float, columns: int) -> Side:
    """The rows of a CSR matrix of log-counts, with their weights."""
    return Side(
        np.ascontiguousarray(logs.indptr, dtype=np.int64),
        np.ascontiguousarray(logs.indices, dtype=np.int32),
        np.ascontiguousarray(weights, dtype=np.float64),
        np.ascontiguousarray(logs.data, dtype=np.float64),
        np.ones(logs.shape[0]),
        np.full(columns, reg),
    )


def objective(words: Side, W: Array, Z: Array, *, biases: bool) -> float:
    """P, in float64."""
    left, right = _joined(W, Z, biases, np.float64, 1)
    out = np.zeros(words.rows)

    def work(first: int, last: int) -> None:
        row_losses(
            words.indptr, words.indices, words.targets, words.weights, left, right, out, first, last
        )

    over_entries(words.indptr, work)
    squares = np.square(W, dtype=np.float64).sum() + np.square(Z, dtype=np.float64).sum()
    return float(out.sum()) + 0.5 * float(words.lam[0]) * float(squares)


# ---------------------------------------------------------------------------- alternating least squares


def als(words: Side, contexts: Side, Z: Array, *, biases: bool) -> Iterator[Iterate]:
    """Alternate from the contexts Z; yields (W, Z), the loss and the contexts' relative gradient."""
    penalties = Penalties(words.lam, contexts.lam, False, biases)
    W = np.zeros((words.rows, Z.shape[1]))
    while True:
        W, _ = _solve(words, Z, W, biases)
        new, numbers = _solve(contexts, W, Z, biases)
        left = share(float(numbers[:, 1].sum()), float(numbers[:, 2].sum()))
        yield Iterate((W, Z), objective(words, W, Z, biases=biases), left)
        bases = balance(W.T @ W, new.T @ new, penalties)
        Z = new if bases is None else new @ bases[1]


def _solve(rows: Side, other: Array, old: Array, biases: bool) -> tuple[Array, Array]:
    """Each row's weighted least squares; see :func:`surefit._jit.factors.solve_rows` for the numbers."""
    F, shift = features(other, biases=biases)
    F, k = np.ascontiguousarray(F), F.shape[1]
    targets = rows.weights * (rows.targets - shift[rows.indices])
    nothing, gram = np.zeros(len(F)), np.zeros((k, k))
    out, numbers = np.zeros((rows.rows, k)), np.zeros((rows.rows, 4))

    def work(first: int, last: int) -> None:
        solve_rows(
            rows.indptr, rows.indices, rows.weights, targets, F, nothing, gram, rows.lam, rows.scale, old,
            out, numbers, first, last, False,
        )  # fmt: skip

    over_entries(rows.indptr, work)
    for i in np.flatnonzero(numbers[:, 3]):  # no pivot: the solution of least norm
        here = slice(rows.indptr[i], rows.indptr[i + 1])
        root = np.sqrt(rows.weights[here])
        A = np.vstack([root[:, None] * F[rows.indices[here]], np.diag(np.sqrt(rows.lam))])
        right = np.append(targets[here] / root, np.zeros(k))
        eps = np.finfo(np.float64).eps * max(A.shape)
        out[i] = np.linalg.lstsq(A, right, rcond=eps)[0]
    return out, numbers


# ---------------------------------------------------------------------------- steps over the entries


def descend(
    words: Side,
    W: Array,
    Z: Array,
    *,
    rate: float,
    adaptive: bool,
    biases: bool,
    deterministic: bool,
    rng: np.random.Generator,
    told: Callable[[int], None],
) -> Iterator[Iterate]:
    """Epochs from (W, Z); yields them as they are then, with the loss that was met on the way.

    ``told`` is called with the number of entries that were visited so far.
    """
    k = W.shape[1] - biases
    left, right = _joined(W, Z, biases, np.float32, _LANES)
    sums = [np.ones_like(left), np.ones_like(right)] if adaptive else [left, right]
    blocks, entries = _blocks(words, len(Z), left.shape[1], rng)
    lam = [_per_visit(words.lam[0], entries[a], len(rows)) for a, rows in ((0, W), (1, Z))]
    count = len(blocks)
    reg, visits, epoch = float(words.lam[0]), 0, 0
    while True:
        eta = np.float32(rate if adaptive else rate / (1.0 + _DECAY * epoch))
        met = np.zeros((count, count))
        turns = [[(g, (g + s) % count) for g in range(count)] for s in rng.permutation(count)]
        if not deterministic:
            turns = [[pair for turn in turns for pair in turn]]
        for turn in turns:
            starts = [_starts(blocks[g][h], rng) for g, h in turn]

            def work(
                first: int, last: int, turn: Any = turn, starts: Any = starts, eta: Any = eta, met: Any = met
            ) -> None:  # fmt: skip
                for a in range(first, last):
                    g, h = turn[a]
                    met[g, h] = steps(
                        *entries, starts[a], blocks[g][h][1], left, sums[0], right, sums[1], lam[0], lam[1],
                        eta, k, biases, adaptive,
                    )  # fmt: skip

            over_rows(len(turn), work, least=1)
            visits += sum(blocks[g][h][1] - blocks[g][h][0] for g, h in turn)
            told(visits)
        epoch += 1
        W, Z = left[:, : k + biases], right[:, :k]
        if biases:
            Z = np.column_stack([Z, right[:, k + 1]])
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.square(W, dtype=np.float64).sum() + np.square(Z, dtype=np.float64).sum()
        value = float(met.sum()) + (0.5 * reg * float(squares) if reg else 0.0)
        yield Iterate((W, Z), value if np.isfinite(value) else np.inf, step=float(eta))


def probe_slopes(
    words: Side, W: Array, Z: Array, entries: Array, *, adaptive: bool, biases: bool
) -> Array:
    """What the kernel's first step of a small rate moves the rows of an entry by, as squares, rate 1."""
    k, zero, found = W.shape[1] - biases, np.zeros(1, np.int32), []
    visits = np.bincount(words.indices, minlength=len(Z))
    for e in entries:
        i, j = int(np.searchsorted(words.indptr, e, "right")) - 1, words.indices[e]
        left, right = _joined(W[[i]], Z[[j]], biases, np.float32, _LANES)
        before = [side.astype(np.float64) for side in (left, right)]
        sums = [np.ones_like(left), np.ones_like(right)] if adaptive else [left, right]
        entry = (part[e : e + 1].astype(np.float32) for part in (words.targets, words.weights))
        counts = (words.indptr[i + 1] - words.indptr[i], visits[j])
        lam = [np.array([words.lam[0] / count], np.float32) for count in counts]
        steps(
            zero, zero, *entry, np.zeros(1, np.int64), 1, left, sums[0], right, sums[1], *lam,
            np.float32(_SMALL), k, biases, adaptive,
        )  # fmt: skip
        moved = [((a - b) / _SMALL) ** 2 for a, b in zip((left, right), before)]
        found.append(float(moved[0].sum() + moved[1].sum()))
    return np.array(found)


def _joined(W: Array, Z: Array, biases: bool, dtype: Any, lanes: int) -> tuple[Array, Array]:
    """(w, b, 1, 0...) and (z, 1, c, 0...), whose products hold the biases."""
    k = W.shape[1] - biases
    width = (k + 2 * biases + lanes - 1) // lanes * lanes
    left, right = np.zeros((len(W), width), dtype), np.zeros((len(Z), width), dtype)
    left[:, : k + biases], right[:, :k] = W, Z[:, :k]
    if biases:
        left[:, k + 1], right[:, k], right[:, k + 1] = 1.0, 1.0, Z[:, k]
    return left, right


def _per_visit(reg: float, rows: Array, count: int) -> NDArray[np.float32]:
    """The penalty of a row divided by the number of its entries."""
    shares: NDArray[np.float32] = (reg / np.maximum(np.bincount(rows, minlength=count), 1)).astype(
        np.float32
    )
    return shares


def _groups(load: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows dealt into groups of about equal numbers of entries."""
    order = rng.permutation(len(load))
    total = np.cumsum(load[order])
    out = np.empty(len(load), dtype=np.int64)
    out[order] = np.minimum(total * count // max(1, int(total[-1]) + 1), count - 1)
    return out


def _blocks(
    words: Side, contexts: int, width: int, rng: np.random.Generator
) -> tuple[list[list[tuple[int, int]]], tuple[Array, Array, Array, Array]]:
    """Where the blocks begin and end, and (word, context, log-count, weight) block by block, shuffled."""
    size = max(16, _CACHE // (8 * width))
    count = min(max(4, -(-words.rows // size)), _GROUPS, words.rows, contexts)
    place = rng.permutation(len(words.indices))
    row = np.repeat(np.arange(words.rows, dtype=np.int32), np.diff(words.indptr))[place]
    column = words.indices[place]
    by_word = _groups(np.bincount(row, minlength=words.rows), count, rng)
    by_context = _groups(np.bincount(column, minlength=contexts), count, rng)
    block = (by_word[row] * count + by_context[column]).astype(np.int32)
    order = np.argsort(block, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(block, minlength=count**2))])
    where = [
        [(int(ends[g * count + h]), int(ends[g * count + h + 1])) for h in range(count)]
        for g in range(count)
    ]
    place = place[order]
    logs, weights = words.targets[place], words.weights[place]
    return where, (
        row[order],
        column[order],
        logs.astype(np.float32),
        weights.astype(np.float32),
    )


def _starts(ends: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    first, last = ends
    return first + _RUN * rng.permutation((last - first + _RUN - 1) // _RUN)
