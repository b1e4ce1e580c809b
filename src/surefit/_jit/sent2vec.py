"""Kernel of sent2vec: the mean of a sentence's other words against each of its words.

For the target word t of a sentence whose kept words have the sum s of vectors, h_t = (s - z_t)/(m - 1) (m
words, t among them; else s/m). The step on an output row u with label y is, e = sigmoid(<u, h_t>) - y,

    u <- u - rate e h_t,     g_t += e u,

and after all targets z_j <- z_j - rate sum_{t != j} g_t/(m - 1): the means of a sentence are those of the
vectors before it, so that it costs as many sums as it has words. A closed file.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

__all__ = ["sentence_steps"]

_FAST = {"reassoc", "contract", "nsz"}
_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_F64 = types.Array(types.float64, 1, "C", readonly=True)


@njit(nogil=True, inline="always")
def _next(state):
    """Marsaglia's xorshift."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@njit(nogil=True, inline="always")
def _uniform(state):
    return np.float64(state >> np.uint64(11)) * 2.0**-53


@njit(
    [
        types.UniTuple(types.float64, 2)(
            _I32, _I64, _I64, _F64, _I32, _I64, types.int64, types.float64, types.Array(T, 2, "C"),
            types.Array(T, 2, "C"), types.float64, types.float64, types.int64, types.int64,
        )
        for T in (types.float32, types.float64)
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def sentence_steps(ids, starts, order, keep, noise, offsets, negative, dropout, Z, U, rate, fall, first,
                   last):  # fmt: skip
    """A step for each of the sentences order[first:last]; their losses before it, and how many targets.

    A word is a target with probability ``keep``, and left out of the mean with probability ``dropout``. The
    drawn words are those of ``noise`` from the sentence's offset on; one that is the target is skipped.
    """
    k, kind = Z.shape[1], Z.dtype.type
    total, h, g = np.empty(k, dtype=Z.dtype), np.empty(k, dtype=Z.dtype), np.empty(k, dtype=Z.dtype)
    every = np.empty(k, dtype=Z.dtype)
    longest = 1
    for i in range(len(starts) - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    inside, own = np.empty(longest, dtype=np.bool_), np.zeros((longest, k), dtype=Z.dtype)
    loss, targets = 0.0, 0
    for p in range(first, last):
        i = order[p]
        begin, n = starts[i], starts[i + 1] - starts[i]
        step = rate - fall * (p - first) / (last - first)
        state = np.uint64(offsets[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(i) | np.uint64(1)
        state = _next(_next(state))
        m, at = 0, offsets[i]
        total[:] = 0
        every[:] = 0
        for q in range(n):
            state = _next(state)
            inside[q] = not _uniform(state) < dropout
            if inside[q]:
                m += 1
                row = Z[ids[begin + q]]
                for a in range(k):
                    total[a] += row[a]
        for q in range(n):
            word, others = ids[begin + q], m - 1 if inside[q] else m
            state = _next(state)
            own[q, :] = 0
            at += negative
            if others == 0 or not _uniform(state) < keep[word]:
                continue
            share, row = kind(1.0 / others), Z[word]
            for a in range(k):
                h[a] = (total[a] - row[a] if inside[q] else total[a]) * share
                g[a] = 0
            for r in range(negative + 1):
                other = word if r == 0 else noise[(at - negative + r - 1) % len(noise)]
                if r > 0 and other == word:
                    continue
                u, s = U[other], kind(0)
                for a in range(k):
                    s += u[a] * h[a]
                signed = (
                    -np.float64(s) if r == 0 else np.float64(s)
                )  # the loss is log(1 + e^signed)
                small = math.exp(-abs(signed))
                loss += math.log1p(small) + max(signed, 0.0)
                up = 1.0 / (1.0 + small) if signed >= 0 else small / (1.0 + small)
                slope = kind(-up if r == 0 else up)
                move = kind(-step) * slope
                for a in range(k):
                    g[a] += slope * u[a]
                    u[a] += move * h[a]
            targets += 1
            for a in range(k):
                g[a] *= share
                every[a] += g[a]
                own[q, a] = g[a]
        if step == 0.0:
            continue
        for q in range(n):
            if inside[q]:
                row = Z[ids[begin + q]]
                for a in range(k):
                    row[a] -= kind(step) * (every[a] - own[q, a])
    return loss, float(targets)
