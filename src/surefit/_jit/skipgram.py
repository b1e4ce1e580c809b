"""Kernels of word vectors by negative sampling: pairs of words, and bags of rows.

Of a kept word t the window reaches b words to both sides, b uniform in 1..window. The step on an input
vector v and an output row z with label y (1 for the word that was there, 0 for one drawn at random) is

    g = rate (y - sigmoid(<v, z>)),    v <- v + g z,    z <- z + g v.

In :func:`pair_steps` the inputs are the words of a window and the outputs the word in its middle with *one*
set of drawn words, which all inputs of the window share: two inputs and three outputs are worked on at a
time, five rows read for six products, and all move from where they were. In :func:`bag_steps` the input is
the mean of rows: those of the windows' words (CBOW), or those of the word and its parts (subwords); each row
then moves by the whole sum, as word2vec and fastText do. Random numbers are a function of (seed, segment)
alone. Several threads may run on the same arrays, without locks. The sigmoid comes from a table. A closed
file: every jitted function it calls lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["SIGMOID", "bag_steps", "pair_steps"]

_FAST = {"reassoc", "contract", "nsz"}
_REACH, _FINE = 8.0, 256.0  # the table covers -8..8, in steps of 1/256
_GRID = (np.arange(int(2 * _REACH * _FINE) + 1) / _FINE) - _REACH
SIGMOID = (1.0 / (1.0 + np.exp(-_GRID))).astype(np.float32)

_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_F32 = types.Array(types.float32, 1, "C", readonly=True)
_ROWS = types.Array(types.float32, 2, "C")


@njit(nogil=True, inline="always")
def _start(seed, segment):
    """The state of a stream: splitmix64 of the seed and the segment's number, never 0."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(segment + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


@njit(nogil=True, inline="always")
def _next(state):
    """Marsaglia's xorshift; the numbers are the states times an odd constant (:func:`_draw`)."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state


@njit(nogil=True, inline="always")
def _draw(state):
    return state * np.uint64(2685821657736338717)


@njit(nogil=True, inline="always")
def _noise(state, shares, others):
    """A word by the alias method: the upper half of the number chooses a cell, the lower one a side of it."""
    number = _draw(state)
    cell = ((number >> np.uint64(32)) * np.uint64(len(shares))) >> np.uint64(32)
    low = np.float32(number & np.uint64(0xFFFFFFFF)) * np.float32(2.0**-32)
    return np.int64(cell) if low < shares[cell] else np.int64(others[cell])


@njit(nogil=True, inline="always")
def _sigmoid(x, table):
    if x >= np.float32(_REACH):
        return np.float32(1.0)
    if x > np.float32(-_REACH):
        return table[np.int64((x + np.float32(_REACH)) * np.float32(_FINE) + np.float32(0.5))]
    return np.float32(0.0)  # NaN too, which has no place in the table


@njit(nogil=True, fastmath=_FAST)
def _three(v, e, z0, z1, z2, g0, g1, g2):
    """e += g z for three rows, z += g v for each."""
    for c in range(len(v)):
        x = v[c]
        e[c] += g0 * z0[c] + g1 * z1[c] + g2 * z2[c]
        z0[c] += g0 * x
        z1[c] += g1 * x
        z2[c] += g2 * x


@njit(nogil=True, fastmath=_FAST)
def _step(v, e, Z, outs, count, rate, table):
    """One input against ``count`` outputs, a multiple of three, the first of which was there.

    Rows with the number of the last row of Z are there to fill up: they move nothing.
    """
    sink = Z.shape[0] - 1
    for b in range(0, count, 3):
        i0, i1, i2 = outs[b], outs[b + 1], outs[b + 2]
        z0, z1, z2 = Z[i0], Z[i1], Z[i2]
        s0 = s1 = s2 = np.float32(0.0)
        for c in range(len(v)):
            s0 += v[c] * z0[c]
            s1 += v[c] * z1[c]
            s2 += v[c] * z2[c]
        label = np.float32(1.0) if b == 0 else np.float32(0.0)
        g0 = rate * (label - _sigmoid(s0, table)) if i0 != sink else np.float32(0.0)
        g1 = rate * -_sigmoid(s1, table) if i1 != sink else np.float32(0.0)
        g2 = rate * -_sigmoid(s2, table) if i2 != sink else np.float32(0.0)
        _three(v, e, z0, z1, z2, g0, g1, g2)


@njit(nogil=True, fastmath=_FAST)
def _moved(u, v, z0, z1, z2, a0, a1, a2, b0, b1, b2):
    """u += sum a z, v += sum b z, z += a u + b v, from what they were; an output may come twice."""
    for c in range(len(u)):
        x, y, p, q, r = u[c], v[c], z0[c], z1[c], z2[c]
        u[c] = x + a0 * p + a1 * q + a2 * r
        v[c] = y + b0 * p + b1 * q + b2 * r
        z0[c] += a0 * x + b0 * y
        z1[c] += a1 * x + b1 * y
        z2[c] += a2 * x + b2 * y


@njit(nogil=True, fastmath=_FAST)
def _pair(u, v, Z, outs, count, rate, table):
    """Two inputs, which are different rows, against the outputs as in :func:`_step`."""
    sink = Z.shape[0] - 1
    for b in range(0, count, 3):
        i0, i1, i2 = outs[b], outs[b + 1], outs[b + 2]
        z0, z1, z2 = Z[i0], Z[i1], Z[i2]
        s0 = s1 = s2 = t0 = t1 = t2 = np.float32(0.0)
        for c in range(len(u)):
            s0 += u[c] * z0[c]
            s1 += u[c] * z1[c]
            s2 += u[c] * z2[c]
            t0 += v[c] * z0[c]
            t1 += v[c] * z1[c]
            t2 += v[c] * z2[c]
        label = np.float32(1.0) if b == 0 else np.float32(0.0)
        r0 = rate if i0 != sink else np.float32(0.0)
        r1 = rate if i1 != sink else np.float32(0.0)
        r2 = rate if i2 != sink else np.float32(0.0)
        a0, b0 = r0 * (label - _sigmoid(s0, table)), r0 * (label - _sigmoid(t0, table))
        a1, b1 = -r1 * _sigmoid(s1, table), -r1 * _sigmoid(t1, table)
        a2, b2 = -r2 * _sigmoid(s2, table), -r2 * _sigmoid(t2, table)
        _moved(u, v, z0, z1, z2, a0, a1, a2, b0, b1, b2)


@njit(nogil=True)
def _kept(ids, begin, end, keep, state, kept):
    """Copy the words that survive subsampling; their number, and the stream's state."""
    n = 0
    for p in range(begin, end):
        w = ids[p]
        state = _next(state)
        if np.float32(_draw(state) >> np.uint64(40)) * np.float32(2.0**-24) < keep[w]:
            kept[n] = w
            n += 1
    return n, state


@njit(nogil=True)
def _outputs(outs, word, negative, state, shares, others, sink):
    """The word, and drawn ones other than it, filled up to a multiple of three; how many, and the state."""
    outs[0] = word
    q = 1
    for _ in range(negative):
        state = _next(state)
        drawn = _noise(state, shares, others)
        if drawn != word:
            outs[q] = drawn
            q += 1
    while q % 3 != 0:
        outs[q] = sink
        q += 1
    return q, state


@njit(nogil=True)
def _alone(v, e, Z, outs, count, rate, table):
    """One input against the outputs."""
    e[:] = np.float32(0.0)
    _step(v, e, Z, outs, count, rate, table)
    for c in range(len(v)):
        v[c] += e[c]


_COMMON = [_I32, _I64, types.int64, types.int64, _F32, _F32, _I32]
_SETTINGS = [_F32, types.int64, types.int64, types.float64, types.float64, types.uint64]


@njit(types.int64(*_COMMON, _ROWS, _ROWS, *_SETTINGS), cache=True, nogil=True)
def pair_steps(ids, starts, first, last, keep, shares, others, V, Z, table, window, negative,
               rate, end_rate, seed):  # fmt: skip
    """Skip-gram over the segments first..last; the number of words that were kept.

    The rate falls linearly from ``rate`` to ``end_rate``. Z has a row more than there are words.
    """
    d, sink = V.shape[1], Z.shape[0] - 1
    longest = 1
    for s in range(first, last):
        longest = max(longest, starts[s + 1] - starts[s])
    kept, outs = np.empty(longest, np.int32), np.empty(negative + 3, np.int64)
    e = np.empty(d, np.float32)
    whole, total = max(1, starts[last] - starts[first]), 0
    for s in range(first, last):
        n, state = _kept(ids, starts[s], starts[s + 1], keep, _start(seed, s), kept)
        total += n
        done = (starts[s] - starts[first]) / whole
        step = np.float32(rate + (end_rate - rate) * done)
        for t in range(n):
            state = _next(state)
            b = 1 + np.int64((_draw(state) >> np.uint64(33)) % np.uint64(window))
            count, state = _outputs(outs, kept[t], negative, state, shares, others, sink)
            low, high = max(0, int(t - b)), min(n, int(t + b + 1))
            one = -1  # the input that waits for another
            for j in range(low, high):
                if j == t:
                    continue
                if one >= 0 and one != kept[j]:
                    _pair(V[one], V[kept[j]], Z, outs, count, step, table)
                    one = -1
                    continue
                if one >= 0:  # the same word twice, one after the other
                    _alone(V[one], e, Z, outs, count, step, table)
                one = kept[j]
            if one >= 0:
                _alone(V[one], e, Z, outs, count, step, table)
    return total


@njit(nogil=True, fastmath=_FAST)
def _mean_row(h, V, rows, count):
    h[:] = np.float32(0.0)
    for r in range(count):
        v = V[rows[r]]
        for c in range(len(h)):
            h[c] += v[c]
    share = np.float32(1.0) / np.float32(count)
    for c in range(len(h)):
        h[c] *= share


@njit(nogil=True)
def _gather(rows, count, word, indptr, parts):
    """Add the rows of a word to a bag."""
    for p in range(indptr[word], indptr[word + 1]):
        rows[count] = parts[p]
        count += 1
    return count


@njit(
    types.int64(*_COMMON, _I64, _I64, _ROWS, _ROWS, *_SETTINGS, types.boolean),
    cache=True,
    nogil=True,
)
def bag_steps(ids, starts, first, last, keep, shares, others, indptr, parts, V, Z, table, window,
              negative, rate, end_rate, seed, cbow):  # fmt: skip
    """CBOW, or skip-gram from the parts of a word, over the segments first..last; the number of kept words.

    ``parts[indptr[w]:indptr[w + 1]]`` are the rows of V whose mean is the vector of the word w.
    """
    d, sink = V.shape[1], Z.shape[0] - 1
    longest = most = 1
    for s in range(first, last):
        longest = max(longest, starts[s + 1] - starts[s])
    for w in range(len(indptr) - 1):
        most = max(most, indptr[w + 1] - indptr[w])
    kept, outs = np.empty(longest, np.int32), np.empty(negative + 3, np.int64)
    rows = np.empty(most * (2 * window if cbow else 1), np.int64)
    h, e = np.empty(d, np.float32), np.empty(d, np.float32)
    whole, total = max(1, starts[last] - starts[first]), 0
    for s in range(first, last):
        n, state = _kept(ids, starts[s], starts[s + 1], keep, _start(seed, s), kept)
        total += n
        done = (starts[s] - starts[first]) / whole
        step = np.float32(rate + (end_rate - rate) * done)
        for t in range(n):
            state = _next(state)
            b = 1 + np.int64((_draw(state) >> np.uint64(33)) % np.uint64(window))
            low, high, count = max(0, int(t - b)), min(n, int(t + b + 1)), 0
            if high - low < 2:
                continue
            if cbow:
                for j in range(low, high):
                    if j != t:
                        count = _gather(rows, count, kept[j], indptr, parts)
            else:
                count = _gather(rows, 0, kept[t], indptr, parts)
            _mean_row(h, V, rows, count)
            e[:] = np.float32(0.0)
            for j in range(low, high):
                if (j == t) == cbow:  # CBOW: the word in the middle; else each of the others
                    size, state = _outputs(outs, kept[j], negative, state, shares, others, sink)
                    _step(h, e, Z, outs, size, step, table)
            for r in range(count):
                v = V[rows[r]]
                for c in range(d):
                    v[c] += e[c]
    return total
