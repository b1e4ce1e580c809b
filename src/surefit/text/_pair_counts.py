"""Rows of co-occurrence counts, some words at a time, in memory or in files.

A row is counted from the places of its word and finished once. Where the places and rows of all words would
pass a limit, words are worked on in groups, each with a pass over the corpus; where the finished rows do,
they go to temporary files that are mapped into memory at the end.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit.cooccurrence import count_rows, distinct_words, list_places
from .._threads import over_rows

__all__ = ["count_pairs", "equal_weights", "harmonic_weights", "occurrences", "once"]

Ints = NDArray[np.int64]
_ENTRY, _PLACE = 12, 12  # bytes of an entry of a row, and of a place of a word
_PIECES = 64  # stretches of words of about equal work, spread over the threads
_NEW = 2  # pairs whose work equals that of writing an entry
_BUFFER = 1 << 18  # entries of rows that are written before they are put aside: 3 MB
_SMALL = 1 << 15  # pairs below which one thread does it


def count_pairs(
    ids: Any,
    starts: Ints,
    counts: Ints,
    pairs: Ints,
    weights: Ints,
    scale: int,
    *,
    before: bool,
    diagonal: Ints,
    limit: int,
) -> sp.csr_array:
    """What stands around each word, as a CSR array whose columns are in order.

    Parameters
    ----------
    ids, starts : arrays
        Segments of numbers of words.
    counts, pairs : arrays
        The places of each word, and at most how many words stand around them.
    weights, scale : array, int
        At distance d counts weights[d] / scale; beyond the last, nothing.
    before : bool
        Whether what stands before a word counts, too.
    diagonal : array
        Is added to the entries (i, i).
    limit : int
        Bytes of buffers.
    """
    n = len(counts)
    rows, most = _Rows(limit), np.minimum(n, pairs)
    task = _Task(ids, starts, counts, most, weights, scale, before, diagonal)
    for first, last in _groups(_PLACE * counts + _ENTRY * most, rows.limit):
        load = np.concatenate([[0], np.cumsum(pairs[first:last] + _NEW * most[first:last])])
        ends = np.searchsorted(load, np.linspace(0, load[-1], _PIECES + 1)[1:-1])
        bounds = first + np.concatenate([[0], ends, [last - first]])

        def work(a: int, b: int, bounds: Ints = bounds) -> list[tuple[Any, Any, Ints]]:
            return task.rows(int(bounds[a]), int(bounds[b]))

        for parts in over_rows(_PIECES, work, least=1 if load[-1] >= _SMALL else _PIECES):
            for part in parts:
                rows.add(*part)
    return rows.finish(n)


@dataclass(frozen=True)
class _Task:
    """What the rows are counted from."""

    ids: Any
    starts: Ints
    counts: Ints  # places of each word
    most: Ints  # entries of each row, at most
    weights: Ints
    scale: int
    before: bool
    diagonal: Ints

    def rows(self, first: int, last: int) -> list[tuple[Any, Any, Ints]]:
        """(columns, values, lengths) of the rows first..last, some rows at a time."""
        n = len(self.counts)
        begins = np.concatenate([[0], np.cumsum(self.counts[first:last])])
        where, segment = np.empty(begins[-1], np.int64), np.empty(begins[-1], np.int32)
        list_places(self.ids, self.starts, first, last, begins[:-1].copy(), where, segment)
        total = np.zeros(n, np.int64)
        bits, tops = np.zeros(n // 64 + 1, np.uint64), np.zeros(n // 4096 + 1, np.uint64)
        size = max(_BUFFER, int(self.most[first:last].max(initial=0)))
        indices, data, out = np.empty(size, np.int32), np.empty(size), []
        for a, b in _groups(self.most[first:last], size):
            lengths = np.zeros(b - a, np.int64)
            used = count_rows(
                self.ids, self.starts, first + a, first + b, begins[a : b + 1], where, segment,
                self.weights, self.scale, self.before, self.diagonal, total, bits, tops, indices, data,
                lengths,
            )  # fmt: skip
            out.append((indices[:used].copy(), data[:used].copy(), lengths))
        return out


class _Rows:
    """Finished rows, in memory or, beyond the limit, in files."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held, self.nnz = limit, 0, 0
        self.lengths: list[Ints] = []
        self.parts: tuple[list[Any], list[Any]] = ([], [])
        self.files: tuple[Any, Any] | None = None

    def add(self, indices: Any, data: Any, lengths: Ints) -> None:
        self.lengths.append(lengths)
        self.nnz += len(data)
        self.held += _ENTRY * len(data)
        self.parts[0].append(indices)
        self.parts[1].append(data)
        if self.held > self.limit:
            self._spill()

    def _spill(self) -> None:
        if self.files is None:
            self.files = (tempfile.TemporaryFile(), tempfile.TemporaryFile())  # noqa: SIM115
        for file, parts in zip(self.files, self.parts, strict=True):
            for part in parts:
                file.write(memoryview(part).cast("B") if len(part) else b"")
            parts.clear()
        self.held = 0

    def finish(self, n: int) -> sp.csr_array:
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self.lengths))])
        if self.files is None:
            indices, data = (np.concatenate(parts) for parts in self.parts)
        else:
            self._spill()
            indices, data = (
                _mapped(file, kind, self.nnz)
                for file, kind in zip(self.files, (np.int32, np.float64), strict=True)
            )
        if self.nnz < 2**31:
            starts = starts.astype(np.int32)
        return sp.csr_array((data, indices, starts), shape=(n, n))


def _mapped(file: Any, kind: Any, count: int) -> NDArray[Any]:
    """A file as an array; the map keeps what the file, without a name, would lose."""
    with file:
        file.flush()
        return np.memmap(file, dtype=kind, mode="r+", shape=(count,))


def _groups(need: Ints, limit: int) -> Iterator[tuple[int, int]]:
    """Stretches of words that need at most ``limit`` together, or are one word."""
    total = np.concatenate([[0], np.cumsum(need)])
    first = 0
    while first < len(need):
        last = int(np.searchsorted(total, total[first] + limit, side="right")) - 1
        last = min(max(last, first + 1), len(need))
        yield first, last
        first = last


def equal_weights(longest: int) -> tuple[Ints, int]:
    """1 up to a distance."""
    return np.ones(longest + 1, dtype=np.int64), 1


def harmonic_weights(window: int, words: int) -> tuple[Ints, int]:
    """m/d as integers, and m; no sum of them over so many words overflows."""
    scale = math.lcm(*range(1, min(window, 64) + 1))  # that of 1..64 has more than 64 bits already
    room = 2**62 // (2 * (words + 1) * (1 + int(math.log2(window))))  # sum 1/d <= 1 + log2
    if scale > room:
        scale = 1 << max(room.bit_length() - 1, 0)
    return np.array([0, *((2 * scale + d) // (2 * d) for d in range(1, window + 1))]), scale


def occurrences(ids: Any, n: int) -> Ints:
    """How often each of n words occurs; numbers in a file are read a block at a time."""
    total, block = np.zeros(n, dtype=np.int64), max(_BUFFER, n)
    for first in range(0, len(ids), block):
        total += np.bincount(ids[first : first + block], minlength=n)
    return total


def once(ids: Any, starts: Ints, n: int, memory: int) -> tuple[Any, Ints, Ints, Ints, Ints]:
    """Each context with each word once, as ids and starts, in a mapped file beyond ``memory`` bytes.

    Then of each word the number of its contexts, the words of these together, and the number of contexts
    that hold it more than once.
    """
    if len(ids) * 4 > memory:
        with tempfile.TemporaryFile() as file:  # the map has its own handle
            out = np.asarray(np.memmap(file, dtype=np.int32, mode="w+", shape=(len(ids),)))
    else:
        out = np.empty(len(ids), dtype=np.int32)
    ends, (counts, sizes, twice) = np.zeros_like(starts), np.zeros((3, n), dtype=np.int64)
    used = distinct_words(ids, starts, out, ends, counts, sizes, twice)
    return out[:used], ends, counts, sizes, twice
