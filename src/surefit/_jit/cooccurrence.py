"""Kernels that count co-occurrences row by row.

A row of the matrix is the sum of what stands around the places of its word. The places of a stretch of words
are listed by one pass over the corpus; then each row is added up in an array of integers as long as the
vocabulary. Which entries of it are not 0 is kept in two levels of bits, so that they are found in order
without sorting. No pair is ever stored, and a row is finished once: nothing has to be merged.

A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_rows", "distinct_words", "list_places"]

_I32 = "Array(int32, 1, 'C', readonly=True)"
_I64 = "Array(int64, 1, 'C', readonly=True)"
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_LOW = np.uint64(63)
_TURN = np.uint64(
    0x03F79D71B4CB0A89
)  # a de Bruijn sequence: each bit shifts another six to the top
_TOP = np.uint64(58)
_PLACES = np.zeros(64, dtype=np.int64)
for _k in range(64):
    _PLACES[((0x03F79D71B4CB0A89 << _k) % 2**64) >> 58] = _k


@njit(nogil=True, inline="always")
def _mark(j, bits, tops):
    word = np.uint64(j) >> _SIX
    bits[word] |= _ONE << (np.uint64(j) & _LOW)
    tops[word >> _SIX] |= _ONE << (word & _LOW)


@njit(nogil=True, inline="always")
def _lowest(word):
    """The number of the lowest bit that is set."""
    return _PLACES[((word & (~word + _ONE)) * _TURN) >> _TOP]


@njit(
    f"void({_I32}, {_I64}, int64, int64, int64[::1], int64[::1], int32[::1])",
    cache=True,
    nogil=True,
)
def list_places(ids, starts, first, last, ends, where, segment):
    """The places of the words first..last and their segments; ``ends`` grows from begins to ends."""
    for s in range(len(starts) - 1):
        for p in range(starts[s], starts[s + 1]):
            i = ids[p]
            if first <= i < last:
                at = ends[i - first]
                where[at] = p
                segment[at] = s
                ends[i - first] = at + 1


@njit(nogil=True)
def _empty(total, scale, bits, tops, indices, data, used):
    """Write the entries that are not 0, in order, after the ``used``; leave zeros behind."""
    for t in range(len(tops)):
        top = tops[t]
        tops[t] = 0
        while top:
            b = 64 * t + _lowest(top)
            top &= top - _ONE
            word = bits[b]
            bits[b] = 0
            while word:
                j = 64 * b + _lowest(word)
                word &= word - _ONE
                indices[used] = j
                data[used] = total[j] / scale
                total[j] = 0
                used += 1
    return used


@njit(
    f"int64({_I32}, {_I64}, int64, int64, {_I64}, {_I64}, {_I32}, {_I64}, int64, boolean, {_I64}, "
    "int64[::1], uint64[::1], uint64[::1], int32[::1], float64[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def count_rows(
    ids, starts, first, last, begins, where, segment, weights, scale, before, diagonal,
    total, bits, tops, indices, data, lengths,
):  # fmt: skip
    """The rows of the words first..last, one after the other; returns how many entries they have.

    The places of word i are ``where[begins[i - first]:begins[i - first + 1]]``. A word at distance d adds
    weights[d] / scale, up to the length of ``weights``: those after word i, and with ``before`` those before
    it. ``diagonal[i]`` is added to entry i of row i. ``total``, ``bits`` and ``tops`` are zeros, and are so
    again afterwards.
    """
    window = len(weights) - 1
    used = 0
    for i in range(first, last):
        if diagonal[i] > 0:
            total[i] = diagonal[i]
            _mark(i, bits, tops)
        for at in range(begins[i - first], begins[i - first + 1]):
            p, s = where[at], segment[at]
            for q in range(p + 1, min(p + window + 1, starts[s + 1])):
                j = ids[q]
                if total[j] == 0:
                    _mark(j, bits, tops)
                total[j] += weights[q - p]
            if before:
                for q in range(max(p - window, starts[s]), p):
                    j = ids[q]
                    if total[j] == 0:
                        _mark(j, bits, tops)
                    total[j] += weights[p - q]
        begin = used
        used = _empty(total, scale, bits, tops, indices, data, used)
        lengths[i - first] = used - begin
    return used


@njit(
    f"int64({_I32}, {_I64}, int32[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def distinct_words(ids, starts, out, ends, counts, sizes, twice):
    """Each context with each of its words once, in ``out``; returns how many words that are.

    Added up for each word are its contexts in ``counts``, their distinct words in ``sizes``, and in ``twice``
    the contexts in which it stands more than once.
    """
    seen = np.zeros(len(twice), dtype=np.int64)  # twice the last context's number, odd if repeated
    used = 0
    for s in range(len(starts) - 1):
        begin = used
        for p in range(starts[s], starts[s + 1]):
            i = ids[p]
            if seen[i] < 2 * s + 2:
                seen[i] = 2 * s + 2
                out[used] = i
                used += 1
            elif seen[i] == 2 * s + 2:
                seen[i] = 2 * s + 3
                twice[i] += 1
        ends[s + 1] = used
        for at in range(begin, used):
            counts[out[at]] += 1
            sizes[out[at]] += used - begin
    return used
