"""Kernels that find words: the words of UTF-8 text with a number each, their hashes, n-grams of them.

Blanks are what :meth:`str.split` takes for blanks. The hash of a word is FNV-1a of 32 bits over its bytes,
each extended by its sign, as fastText has it; that of an n-gram chains the words' hashes in 64 bits.

A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["bags", "character_hashes", "split_words", "word_hashes"]

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_O32 = types.Array(types.int32, 1, "C")
_O64 = types.Array(types.int64, 1, "C")
_PRIME, _BASIS = np.uint32(16777619), np.uint32(2166136261)
_CHAIN = np.uint64(116049371)


@njit(inline="always")
def _step(h, byte):
    """One byte into the hash; products of 32 bits are taken in 64, and cut."""
    return np.uint32((h ^ np.uint32(np.int32(np.int8(byte)))) * _PRIME)


@njit(inline="always")
def _place(signed, mask):
    """Where a hash begins to look in a table of mask + 1 places."""
    h = np.int64(signed) & 0xFFFFFFFF
    return (h ^ (h >> 15)) & mask


@njit(nogil=True)
def _blank(text, at, end):
    """How many bytes of a blank stand here; 0 for a letter."""
    c = text[at]
    if c < 0x80:
        return 1 if c == 32 or 9 <= c <= 13 or 28 <= c <= 31 else 0
    if c == 0xC2:
        return 2 if text[at + 1] == 0x85 or text[at + 1] == 0xA0 else 0
    if c < 0xE1 or c > 0xE3:
        return 0
    d, e = text[at + 1], text[at + 2]
    if c == 0xE1:
        return 3 if d == 0x9A and e == 0x80 else 0
    if c == 0xE3:
        return 3 if d == 0x80 and e == 0x80 else 0
    if d == 0x80:
        return 3 if e <= 0x8A or e == 0xA8 or e == 0xA9 or e == 0xAF else 0
    return 3 if d == 0x81 and e == 0x9F else 0


@njit(nogil=True)
def _same(text, a, b, size):
    for i in range(size):
        if text[a + i] != text[b + i]:
            return False
    return True


@njit(
    [types.Tuple((_O32, _O64, _O64, _O64, _O32))(_BYTES, _I64)],
    cache=True,
    nogil=True,
)  # fmt: skip
def split_words(text, lengths):
    """The words of texts that follow each other without a gap, of so many characters each.

    Returns the number of each word, in the order of first appearance; where each text's words start; where
    the distinct words begin and end in ``text``; and their hashes.
    """
    n = len(lengths)
    ids, count = np.empty(len(text) // 5 + 16, dtype=np.int32), 0
    starts = np.zeros(n + 1, dtype=np.int64)
    begins, ends = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    hashes, distinct = np.empty(1024, dtype=np.int32), 0
    mask = 4095
    table = np.full(mask + 1, -1, dtype=np.int32)
    at = 0
    for t in range(n):
        left = lengths[t]  # characters
        while True:
            while left > 0:  # blanks
                size = _blank(text, at, len(text))
                if size == 0:
                    break
                at += size
                left -= 1
            if left == 0:
                break
            begin, h = at, _BASIS
            while left > 0:
                c = text[at]
                if c < 0x80:
                    if c == 32 or 9 <= c <= 13 or 28 <= c <= 31:
                        break
                    h = _step(h, c)
                    at += 1
                else:
                    if _blank(text, at, len(text)) > 0:
                        break
                    size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
                    for i in range(size):
                        h = _step(h, text[at + i])
                    at += size
                left -= 1
            length, signed = at - begin, np.int32(h)
            place = _place(signed, mask)
            while True:
                word = table[place]
                if word < 0:
                    break
                if (
                    hashes[word] == signed
                    and ends[word] - begins[word] == length
                    and _same(text, begins[word], begin, length)
                ):
                    break
                place = (place + 1) & mask
            if word < 0:
                word = np.int32(distinct)
                table[place] = word
                if distinct == len(begins):
                    begins = np.concatenate((begins, np.empty_like(begins)))
                    ends = np.concatenate((ends, np.empty_like(ends)))
                    hashes = np.concatenate((hashes, np.empty_like(hashes)))
                begins[distinct], ends[distinct], hashes[distinct] = begin, at, signed
                distinct += 1
                if 2 * distinct > mask:
                    mask = 2 * mask + 1
                    table = np.full(mask + 1, -1, dtype=np.int32)
                    for w in range(distinct):
                        place = _place(hashes[w], mask)
                        while table[place] >= 0:
                            place = (place + 1) & mask
                        table[place] = w
            if count == len(ids):
                ids = np.concatenate((ids, np.empty_like(ids)))
            ids[count] = word
            count += 1
        starts[t + 1] = count
    return (
        ids[:count].copy(),
        starts,
        begins[:distinct].copy(),
        ends[:distinct].copy(),
        hashes[:distinct].copy(),
    )


@njit([types.void(_BYTES, _I64, _O32)], cache=True, nogil=True)
def word_hashes(text, starts, out):
    """The hash of each of the words that follow each other in ``text``."""
    for w in range(len(out)):
        h = _BASIS
        for i in range(starts[w], starts[w + 1]):
            h = _step(h, text[i])
        out[w] = np.int32(h)


@njit(
    [types.int64(_BYTES, _I64, types.int64, types.int64, types.int64, _O64, _O32)],
    cache=True, nogil=True,
)  # fmt: skip
def character_hashes(text, starts, shortest, longest, n_buckets, out_starts, out):
    """The buckets of the character n-grams of words that carry their ``<`` and ``>``.

    Those of word w go to ``out[out_starts[w]:out_starts[w + 1]]``; their number is returned. With an empty
    ``out`` they are counted only. The marks alone are no n-gram.
    """
    total = 0
    for w in range(len(starts) - 1):
        begin, end = starts[w], starts[w + 1]
        out_starts[w] = total
        for i in range(begin, end):
            if text[i] & 0xC0 == 0x80:
                continue
            h, at, size = _BASIS, i, 0
            while at < end and size < longest:
                h = _step(h, text[at])
                at += 1
                while at < end and text[at] & 0xC0 == 0x80:
                    h = _step(h, text[at])
                    at += 1
                size += 1
                if size < shortest or (size == 1 and (i == begin or at == end)):
                    continue
                if len(out) > 0:
                    out[total] = np.int32(np.int64(h) % n_buckets)
                total += 1
    out_starts[len(starts) - 1] = total
    return total


@njit(
    [
        types.void(
            _I32, _I64, _I32, _I32, _I64, _I32, types.int64, types.int64, types.int64, _I64, _O32,
            types.int64, types.int64,
        )
    ],
    cache=True, nogil=True,
)  # fmt: skip
def bags(ids, starts, numbers, hashes, sub_starts, subs, order, n_buckets, n_words, out_starts, out,
         first, last):  # fmt: skip
    """The features of the texts first..last: numbers of known words, then n_words + bucket of n-grams.

    ``numbers`` has the number of each distinct word, -1 of one that is not known, ``subs`` the buckets of
    its characters.
    """
    chars = len(sub_starts) > 1
    for t in range(first, last):
        begin, end, at = starts[t], starts[t + 1], out_starts[t]
        for i in range(begin, end):
            w = ids[i]
            if numbers[w] >= 0:
                out[at] = numbers[w]
                at += 1
            if chars:
                for j in range(sub_starts[w], sub_starts[w + 1]):
                    out[at] = np.int32(n_words + subs[j])
                    at += 1
        for i in range(begin, end if order > 1 else begin):
            h = np.uint64(np.int64(hashes[ids[i]]))
            for j in range(i + 1, min(end, i + order)):
                h = h * _CHAIN + np.uint64(np.int64(hashes[ids[j]]))
                out[at] = np.int32(n_words + np.int64(h % np.uint64(n_buckets)))
                at += 1
