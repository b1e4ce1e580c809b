"""Kernels of the fastText classifier: means of rows, and a gradient step for each text.

A text with the bag i_1, ..., i_n, h = (z_{i_1} + ... + z_{i_n}) / n, scores W h and slope d = l'(W h):

    W <- W - rate d h';      z_{i_j} <- z_{i_j} - rate W'd / n,     both slopes at the W and Z before.

Threads work on texts of their own and on the same W and Z without a lock (Niu, Recht, Re, Wright, 2011).
W is small and every text moves it, so that a thread works on a copy and adds what has changed to the common
one every few texts: two cores do not pull the same few lines of memory to and fro.

The rows of W and Z are padded with zeros to a multiple of 16 numbers. A closed file: every jitted function
it calls lives here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

__all__ = ["bag_means", "first_rows", "text_losses", "text_steps"]

_FAST = {"reassoc", "contract", "nsz"}
_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_F64 = types.Array(types.float64, 1, "C", readonly=True)
_KINDS = (types.float32, types.float64)
_TOGETHER = 16  # texts between two exchanges of W


def _mat(kind, readonly=False):
    return types.Array(kind, 2, "C", readonly=readonly)


@njit(nogil=True, fastmath=_FAST)
def _mean(ids, begin, end, Z, h):
    """h = the mean of the rows of a bag, four at a time, in the precision of h."""
    k, kind = Z.shape[1], h.dtype.type
    four = begin + (end - begin) // 4 * 4
    for a in range(k):
        h[a] = 0
    for q in range(begin, four, 4):
        r0, r1, r2, r3 = Z[ids[q]], Z[ids[q + 1]], Z[ids[q + 2]], Z[ids[q + 3]]
        for a in range(k):
            h[a] += (kind(r0[a]) + kind(r1[a])) + (kind(r2[a]) + kind(r3[a]))
    for q in range(four, end):
        r0 = Z[ids[q]]
        for a in range(k):
            h[a] += r0[a]
    share = h.dtype.type(1.0 / (end - begin))
    for a in range(k):
        h[a] *= share


@njit(nogil=True, fastmath=_FAST)
def _slopes(scores, code, softmax, d):
    """The loss of a text from its scores; its derivatives go to d.

    With softmax, -log p_y. Else log(1 + e^{-y s}) summed over the classes, y = 1 for the own one and -1
    for others; for two classes there is one score and y = 1 for the second.
    """
    m = len(scores)
    if softmax:
        top, total = scores[0], 0.0
        for c in range(1, m):
            top = max(top, scores[c])
        for c in range(m):
            d[c] = math.exp(scores[c] - top)
            total += d[c]
        for c in range(m):
            d[c] /= total
        d[code] -= 1.0
        return top - scores[code] + math.log(total)
    loss = 0.0
    for c in range(m):
        own = code == 1 if m == 1 else code == c
        s = scores[c]
        small = math.exp(-abs(s))
        up = 1.0 / (1.0 + small) if s >= 0 else small / (1.0 + small)
        d[c] = up - 1.0 if own else up
        loss += math.log1p(small) + max(-s if own else s, 0.0)
    return loss


@njit(
    [
        types.float64(
            _I32, _I64, _I64, _I64, _F64, _mat(T), _mat(T), types.boolean, types.float64, types.float64,
            types.int64, types.int64,
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def text_steps(ids, starts, order, codes, weights, Z, W, softmax, rate, fall, first, last):
    """A step for each of the texts order[first:last], in that order; the sum of their losses before it.

    The rate falls in a straight line from ``rate`` by ``fall`` over these texts.
    """
    k, m = Z.shape[1], W.shape[0]
    kind = Z.dtype.type
    h, g = np.empty(k, dtype=Z.dtype), np.empty(k, dtype=Z.dtype)
    own, base = W.copy(), W.copy()
    scores, d = np.empty(m), np.empty(m)
    total = 0.0
    for t in range(first, last):
        i = order[t]
        begin, end = starts[i], starts[i + 1]
        if begin < end and weights[i] > 0.0:
            step = (rate - fall * (t - first) / (last - first)) * weights[i]
            _mean(ids, begin, end, Z, h)
            for c in range(m):
                row, s = own[c], kind(0)
                for a in range(k):
                    s += row[a] * h[a]
                scores[c] = s
            total += weights[i] * _slopes(scores, codes[i], softmax, d)
            for a in range(k):
                g[a] = 0
            share = 1.0 / (end - begin)
            for c in range(m):
                row, move = own[c], kind(-step * d[c])
                back = kind(-step * d[c] * share)
                for a in range(k):
                    g[a] += back * row[a]
                    row[a] += move * h[a]
            for q in range(begin, end):
                r0 = Z[ids[q]]
                for a in range(k):
                    r0[a] += g[a]
        if (t - first) % _TOGETHER == _TOGETHER - 1 or t == last - 1:
            for c in range(m):
                row, mine, old = W[c], own[c], base[c]
                for a in range(k):
                    value = row[a] + (mine[a] - old[a])
                    row[a] = value
                    mine[a] = value
                    old[a] = value
    return total


@njit(
    [
        types.void(_I32, _I64, _mat(T, True), _mat(types.float64), types.int64, types.int64)
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def bag_means(ids, starts, Z, out, first, last):
    """The mean of the rows of each of the bags first..last; 0 for an empty one."""
    for i in range(first, last):
        if starts[i] < starts[i + 1]:
            _mean(ids, starts[i], starts[i + 1], Z, out[i])
        else:
            out[i, :] = 0


@njit(
    [
        types.float64(
            _I32, _I64, _mat(T, True), _mat(T, True), _I64, _F64, types.boolean, types.int64, types.int64
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def text_losses(ids, starts, Z, W, codes, weights, softmax, first, last):
    """The weighted sum of the losses of the texts first..last, in float64."""
    m, k = W.shape
    scores, d, h = np.empty(m), np.empty(m), np.zeros(k)
    total = 0.0
    for i in range(first, last):
        if starts[i] < starts[i + 1]:
            _mean(ids, starts[i], starts[i + 1], Z, h)
        else:
            h[:] = 0
        for c in range(m):
            s = 0.0
            for a in range(k):
                s += np.float64(W[c, a]) * h[a]
            scores[c] = s
        total += weights[i] * _slopes(scores, codes[i], softmax, d)
    return total


@njit([types.void(_mat(types.float32), types.int64, types.uint64, types.int64, types.int64)],
      cache=True, nogil=True)  # fmt: skip
def first_rows(Z, k, seed, first, last):
    """Rows first..last uniform in (-1/k, 1/k), a function of the seed and the row alone; padding 0."""
    scale = np.float32(2.0 / k / 16777216.0)
    for i in range(first, last):
        x = seed + np.uint64(i * k) * np.uint64(0x9E3779B97F4A7C15)  # behind the row before
        for a in range(k):
            x += np.uint64(0x9E3779B97F4A7C15)
            v = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            v = (v ^ (v >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            v = v ^ (v >> np.uint64(31))
            Z[i, a] = (np.float32(v >> np.uint64(40)) + np.float32(0.5)) * scale - np.float32(
                1.0 / k
            )
        for a in range(k, Z.shape[1]):
            Z[i, a] = 0
