"""Kernels of the exact neighbour search; the method and its proof are in :mod:`surefit.solvers.neighbours`.

A closed file: every jitted function it calls lives here. The error-free transformations (Knuth's sum,
Dekker's product) must not be compiled with fast mathematics.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["differences", "order", "scan", "within"]

_SPLIT = 134217729.0  # 2^27 + 1: halves a 53-bit number
_CHUNK = 64
_UNIT = 2.0**-53
_SMALL = 2.0**-900  # below this, squares of differences may have lost bits to underflow

_F64 = types.float64
_TABLES = [types.Array(kind, 2, "C", readonly=True) for kind in (types.float32, types.float64)]
_QUERIES = types.Array(_F64, 2, "C", readonly=True)
_INDICES = types.Array(types.int64, 2, "C")
_SQUARES = types.Array(_F64, 2, "C")
_RUN = types.Array(types.int64, 1, "C")
_COLUMN = types.Array(_F64, 1, "C")


@njit(
    [
        types.void(
            types.Array(kind, 2, "C", readonly=True),
            types.Array(kind, 1, "C", readonly=True),
            types.int64,
            types.Array(kind, 2, "C"),
            _INDICES,
        )
        for kind in (types.float32, types.float64)
    ],
    cache=True,
    nogil=True,
)
def scan(products, offsets, start, scores, rows):
    """Push the scores offsets_j - products_ij of a block into heaps of the smallest, one a query.

    ``scores`` and ``rows`` are max-heaps: the root is the largest of the kept. Most stretches of a block hold
    nothing smaller than the root, which a vectorised count shows.
    """
    n, size = products.shape[1], scores.shape[1]
    for i in range(products.shape[0]):
        root = scores[i, 0]
        for first in range(0, n, _CHUNK):
            stretch, shifts = products[i, first : first + _CHUNK], offsets[first : first + _CHUNK]
            smaller = np.int32(0)
            for j in range(len(stretch)):
                smaller = np.int32(smaller + np.int32(shifts[j] - stretch[j] < root))
            if smaller == 0:
                continue
            for j in range(len(stretch)):
                score = shifts[j] - stretch[j]
                if not score < root:
                    continue
                at = 0
                while True:  # the new one sinks from the root
                    child = 2 * at + 1
                    if child >= size:
                        break
                    if child + 1 < size and scores[i, child + 1] > scores[i, child]:
                        child += 1
                    if scores[i, child] <= score:
                        break
                    scores[i, at] = scores[i, child]
                    rows[i, at] = rows[i, child]
                    at = child
                scores[i, at] = score
                rows[i, at] = start + first + j
                root = scores[i, 0]


@njit(
    [types.void(_QUERIES, table, _INDICES, _SQUARES) for table in _TABLES], cache=True, nogil=True
)
def differences(queries, table, rows, squares):
    """squares_ic = sum_j (q_ij - t_cj)^2 in float64, for the candidate rows of each query."""
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            total = 0.0
            for j in range(queries.shape[1]):
                d = queries[i, j] - _F64(table[rows[i, c], j])
                total += d * d
            squares[i, c] = total


@njit(
    [
        types.int64(types.Array(_F64, 1, "C", readonly=True), table, _F64, _RUN, _COLUMN)
        for table in _TABLES
    ],
    cache=True,
    nogil=True,
    fastmath={"reassoc", "contract", "nsz"},
)
def within(query, table, bound, rows, squares):
    """All rows whose squared distance, in float64 and any order of summation, is at most ``bound``."""
    found = 0
    for c in range(table.shape[0]):
        total = 0.0
        for j in range(query.shape[0]):
            d = query[j] - _F64(table[c, j])
            total += d * d
        if total <= bound:
            rows[found] = c
            squares[found] = total
            found += 1
    return found


# ---------------------------------------------------------------------------- deciding near-ties


@njit(types.UniTuple(_F64, 2)(_F64, _F64), cache=True, nogil=True)
def _sum(a, b):
    """a + b = s + e exactly (Knuth)."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


@njit(types.UniTuple(_F64, 2)(_F64), cache=True, nogil=True)
def _square(a):
    """a^2 = p + e exactly (Dekker), without overflow and underflow."""
    p = a * a
    c = _SPLIT * a
    high = c - (c - a)
    low = a - high
    return p, ((high * high - p) + 2.0 * (high * low)) + low * low


@njit(
    [
        types.Tuple((_F64, _F64, types.boolean))(_QUERIES, table, types.int64, types.int64)
        for table in _TABLES
    ],
    cache=True,
    nogil=True,
)
def _twofold(queries, table, i, row):
    """The squared distance as high + low, and whether nothing was rounded away."""
    high, low, exact = 0.0, 0.0, True
    for j in range(queries.shape[1]):
        x, y = _sum(queries[i, j], -_F64(table[row, j]))
        if x == 0.0:
            continue
        p, e = _square(x)
        if y != 0.0 or p < _SMALL:
            exact = False
        high, rest = _sum(high, p)
        low, lost = _sum(low, rest)
        low, more = _sum(low, e)
        if lost != 0.0 or more != 0.0:
            exact = False
        low += 2.0 * x * y
    high, low = _sum(high, low)
    return high, low, exact


@njit(
    [types.boolean(_QUERIES, table, types.int64, types.int64, types.int64) for table in _TABLES],
    cache=True,
    nogil=True,
)
def _same_differences(queries, table, i, one, two):
    """Whether both rows differ from the query by the same amounts up to sign, coordinate by coordinate."""
    for j in range(queries.shape[1]):
        x, y = _sum(queries[i, j], -_F64(table[one, j]))
        v, w = _sum(queries[i, j], -_F64(table[two, j]))
        if not ((x == v and y == w) or (x == -v and y == -w)):
            return False
    return True


@njit(
    types.void(_COLUMN, _COLUMN, _RUN, types.Array(types.boolean, 1, "C")), cache=True, nogil=True
)
def _sort(high, low, rows, exact):
    """Sort by (high, low, row), in place; heapsort, so that a long run of ties costs no more than n log n."""
    n = len(rows)
    for phase in range(2):
        steps = n // 2 if phase == 0 else n - 1
        for step in range(steps):
            if phase == 0:
                at, size = n // 2 - 1 - step, n
            else:
                at, size = 0, n - 1 - step
                high[0], high[size] = high[size], high[0]
                low[0], low[size] = low[size], low[0]
                rows[0], rows[size] = rows[size], rows[0]
                exact[0], exact[size] = exact[size], exact[0]
            while True:
                child = 2 * at + 1
                if child >= size:
                    break
                if child + 1 < size:
                    a, b = child, child + 1
                    if high[a] < high[b] or (
                        high[a] == high[b]
                        and (low[a] < low[b] or (low[a] == low[b] and rows[a] < rows[b]))
                    ):
                        child = b
                a, b = at, child
                if not (
                    high[a] < high[b]
                    or (
                        high[a] == high[b]
                        and (low[a] < low[b] or (low[a] == low[b] and rows[a] < rows[b]))
                    )
                ):
                    break
                high[a], high[b] = high[b], high[a]
                low[a], low[b] = low[b], low[a]
                rows[a], rows[b] = rows[b], rows[a]
                exact[a], exact[b] = exact[b], exact[a]
                at = child


@njit(
    [
        types.void(
            _QUERIES, table, _INDICES, _SQUARES, _F64, types.int64,
            types.Array(types.boolean, 1, "C"),
        )
        for table in _TABLES
    ],
    cache=True,
    nogil=True,
)  # fmt: skip
def order(queries, table, rows, squares, error, k, undecided):
    """Put the first k candidates of each query into their exact order, ties by row number.

    On entry each row of candidates is sorted by ``squares``, whose relative error is at most ``error``. A run
    of neighbours in that order that lie closer than their errors is computed again with twice the digits.
    ``undecided`` marks a query of which that does not settle every pair either.
    """
    p, n = queries.shape[1], rows.shape[1]
    twofold = (3.0 * p * p + 12.0 * p + 16.0) * _UNIT * _UNIT
    for i in range(rows.shape[0]):
        undecided[i] = False
        first = 0
        while first < min(k, n):
            last = first + 1
            while last < n and (
                squares[i, last] - squares[i, last - 1] <= 2.0 * error * squares[i, last]
                or squares[i, last] < _SMALL
            ):
                last += 1
            size = last - first
            if size > 1:
                run = rows[i, first:last].copy()
                high, low = np.empty(size), np.empty(size)
                exact = np.empty(size, dtype=np.bool_)
                for c in range(size):
                    high[c], low[c], exact[c] = _twofold(queries, table, i, run[c])
                _sort(high, low, run, exact)
                for c in range(size):
                    rows[i, first + c] = run[c]
                    squares[i, first + c] = high[c]
                for c in range(min(size - 1, k - first)):
                    if exact[c] and exact[c + 1]:
                        continue
                    gap = (high[c + 1] - high[c]) + (low[c + 1] - low[c])
                    if gap > twofold * (high[c] + high[c + 1]) and high[c + 1] >= _SMALL:
                        continue
                    if not _same_differences(queries, table, i, run[c], run[c + 1]):
                        undecided[i] = True
                        break
            first = last
