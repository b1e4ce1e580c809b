"""The two multilinear hashes of each row, in one reading."""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["row_sums"]

_ROWS = types.Array(types.uint64, 2, "C", readonly=True)
_KEYS = types.Array(types.uint64, 1, "C", readonly=True)
_SUMS = types.Array(types.uint64, 1, "C")
_NEGATIVE_ZERO = np.uint64(1 << 63)
_ODD_BYTES = np.uint64(0x00FF00FF00FF00FF)
_ODD_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_BYTE, _PAIR, _HALF = np.uint64(8), np.uint64(16), np.uint64(32)


@njit(types.void(_ROWS, _KEYS, _KEYS, _SUMS, _SUMS), cache=True, nogil=True)
def row_sums(bits, first, second, u, v):
    """u_i = sum_j bits_ij first_j and v_i = sum_j swap(bits_ij) second_j, modulo 2^64; -0.0 counts as 0.0."""
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
        u[i] = plain
        v[i] = swapped
