"""The hash of rows, in one reading; what it computes is explained in :mod:`surefit.fingerprint`."""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["hash_csr_rows", "hash_rows"]

_ROWS = types.Array(types.uint64, 2, "C", readonly=True)
_KEYS = types.Array(types.uint64, 1, "C", readonly=True)
_PAIRS = types.Array(types.uint64, 2, "C", readonly=True)
_INDICES = [types.Array(kind, 1, "C", readonly=True) for kind in (types.int32, types.int64)]
_NEGATIVE_ZERO = np.uint64(1 << 63)
_ODD_BYTES = np.uint64(0x00FF00FF00FF00FF)
_ODD_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_BYTE, _PAIR, _HALF = np.uint64(8), np.uint64(16), np.uint64(32)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(types.uint64(types.uint64), cache=True, nogil=True)
def _mix(word):
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@njit(types.UniTuple(types.uint64, 2)(_ROWS, _KEYS, _KEYS, types.int64), cache=True, nogil=True)
def hash_rows(bits, first, second, start):
    """The two sums over rows start, start + 1, ... of the mixed row hashes; -0.0 counts as 0.0."""
    one, two = np.uint64(0), np.uint64(0)
    for i in range(bits.shape[0]):
        plain, swapped = np.uint64(0), np.uint64(0)
        for j in range(bits.shape[1]):
            word = bits[i, j]
            word = np.uint64(0) if word == _NEGATIVE_ZERO else word
            plain += word * first[j]
            word = ((word >> _BYTE) & _ODD_BYTES) | ((word & _ODD_BYTES) << _BYTE)
            word = ((word >> _PAIR) & _ODD_PAIRS) | ((word & _ODD_PAIRS) << _PAIR)
            word = (word >> _HALF) | (word << _HALF)
            swapped += word * second[j]
        index = np.uint64(start + i) * _GOLDEN
        mixed = _mix(plain ^ _mix(swapped + index))
        one += mixed
        two += _mix(mixed ^ index)
    return one, two


@njit(
    [
        types.UniTuple(types.uint64, 2)(
            _KEYS, kind, _INDICES[1], _PAIRS, types.int64, types.int64, types.int64
        )
        for kind in _INDICES
    ],
    cache=True,
    nogil=True,
)
def hash_csr_rows(bits, indices, indptr, keys, start, stop, before):
    """The same for compressed rows start, ..., stop - 1 without duplicate entries, which ``before`` rows
    come before; both keys side by side.

    What is not stored is 0 and adds nothing.
    """
    one, two = np.uint64(0), np.uint64(0)
    for i in range(start, stop):
        plain, swapped = np.uint64(0), np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            word = bits[k]
            word = np.uint64(0) if word == _NEGATIVE_ZERO else word
            plain += word * keys[indices[k], 0]
            word = ((word >> _BYTE) & _ODD_BYTES) | ((word & _ODD_BYTES) << _BYTE)
            word = ((word >> _PAIR) & _ODD_PAIRS) | ((word & _ODD_PAIRS) << _PAIR)
            word = (word >> _HALF) | (word << _HALF)
            swapped += word * keys[indices[k], 1]
        index = np.uint64(before + i) * _GOLDEN
        mixed = _mix(plain ^ _mix(swapped + index))
        one += mixed
        two += _mix(mixed ^ index)
    return one, two
