"""Bucket numbers of the character n-grams of many words; what they are is explained in
:mod:`surefit.text.subwords`.

A closed file: every jitted function called here lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["count_ngrams", "fill_ngrams"]

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_OUT = types.Array(types.int64, 1, "C")
_PRIME, _OFFSET = np.uint32(16777619), np.uint32(2166136261)


@njit(types.boolean(types.uint8), cache=True, nogil=True)
def _inside(byte):
    """Whether the byte continues a code point."""
    return (byte & 0xC0) == 0x80


@njit([types.void(_BYTES, _I64, types.int64, types.int64, _OUT)], cache=True, nogil=True)
def count_ngrams(text, starts, minn, maxn, counts):
    """How many n-grams each word has: ``text[starts[w]:starts[w + 1]]`` is "<word>"."""
    for w in range(len(starts) - 1):
        length = 0
        for i in range(starts[w], starts[w + 1]):
            length += not _inside(text[i])
        total = 0
        for n in range(minn, min(maxn, length) + 1):
            total += length - n + 1
        if minn == 1 and length > 0:
            total -= 2  # "<" and ">" alone are none
        counts[w] = total


@njit(
    [types.void(_BYTES, _I64, types.int64, types.int64, types.int64, _I64, _OUT)],
    cache=True,
    nogil=True,
)
def fill_ngrams(text, starts, minn, maxn, buckets, indptr, indices):
    """The numbers of a word's buckets from ``indices[indptr[w]]`` on, by beginning, then by length."""
    for w in range(len(starts) - 1):
        begin, end, at = starts[w], starts[w + 1], indptr[w]
        for i in range(begin, end):
            if _inside(text[i]):
                continue
            value, n, j = _OFFSET, 0, i
            while j < end and n < maxn:
                n += 1
                while True:  # a byte, and those that continue its code point
                    value = np.uint32((value ^ np.uint32(np.int8(text[j]))) * _PRIME)
                    j += 1
                    if j == end or not _inside(text[j]):
                        break
                if n >= minn and not (n == 1 and (i == begin or j == end)):
                    indices[at] = np.int64(value) % buckets
                    at += 1
