"""Kernels of the active-set method: rows of a Gram matrix, and a Cholesky factor that grows.

Gram matrix and factor live in larger square buffers, so that they can grow in place; ``m`` and ``k`` say how
much of them is in use. Everything runs along rows, which lie in one piece. A closed file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["backward", "delete", "forward", "gather", "independent", "subtract_rows"]

_FAST = {"reassoc", "contract", "nsz"}


@njit("float64[:, ::1](float64[:, ::1], int64[::1], float64)", cache=True, nogil=True)
def gather(gram, members, ridge):
    """gram[members, members] + ridge I; the lower triangle only."""
    k = len(members)
    found = np.empty((k, k))
    for a in range(k):
        row = gram[members[a]]
        for b in range(a + 1):
            found[a, b] = row[members[b]]
        found[a, a] += ridge
    return found


@njit("(float64[:, ::1], int64, float64[:, ::1])", cache=True, nogil=True, fastmath=_FAST)
def forward(factor, k, rows):
    """Each row b becomes the solution x of L x = b."""
    for i in range(k):
        line = factor[i]
        for c in range(len(rows)):
            x = rows[c]
            total = x[i]
            for j in range(i):
                total -= line[j] * x[j]
            x[i] = total / line[i]


@njit("(float64[:, ::1], int64, float64[::1])", cache=True, nogil=True, fastmath=_FAST)
def backward(factor, k, x):
    """x becomes the solution of L' x = b."""
    for i in range(k - 1, -1, -1):
        line = factor[i]
        value = x[i] / line[i]
        x[i] = value
        for j in range(i):
            x[j] -= line[j] * value


@njit("(float64[:, ::1], int64, int64)", cache=True, nogil=True, fastmath=_FAST)
def delete(factor, k, i):
    """The factor of the matrix without row and column i, in place.

    Below row i, the factor without its column i, times its transpose, lacks that column's outer product: one
    rotation a column brings it in (a rank-one update, which is stable).
    """
    cosine, sine = np.empty(k), np.empty(k)
    for r in range(i + 1, k):
        old, new = factor[r], factor[r - 1]
        for j in range(i):
            new[j] = old[j]
        extra = old[i]
        for j in range(i, r - 1):
            entry = old[j + 1]
            new[j] = cosine[j] * entry + sine[j] * extra
            extra = cosine[j] * extra - sine[j] * entry
        size = np.sqrt(old[r] ** 2 + extra**2)
        cosine[r - 1], sine[r - 1] = old[r] / size, extra / size
        new[r - 1] = size


@njit(
    "(float64[:, ::1], int64[::1], float64[::1], float64[::1])",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def subtract_rows(gram, members, step, q):
    """q -= sum_a step_a gram[members_a]."""
    for a in range(len(members)):
        value = step[a]
        if value != 0.0:
            row = gram[members[a]]
            for i in range(len(q)):
                q[i] -= value * row[i]


@njit(
    "Tuple((int64[::1], float64[:, ::1]))(float64[:, ::1], float64[::1], float64)",
    cache=True,
    nogil=True,
)
def independent(schur, diagonal, tol):
    """Which rows of a semi-definite matrix are independent, taken in order, and their Cholesky factor.

    A row whose pivot is at most ``tol`` times its own diagonal entry (before anything was eliminated) is left
    out.
    """
    size = len(schur)
    kept, rank = np.empty(size, np.int64), 0
    factor = np.zeros((size, size))
    for j in range(size):
        pivot = schur[j, j]
        for c in range(rank):
            total = schur[j, kept[c]]
            for e in range(c):
                total -= factor[rank, e] * factor[c, e]
            factor[rank, c] = total / factor[c, c]
            pivot -= factor[rank, c] ** 2
        if pivot > tol * diagonal[j]:
            factor[rank, rank] = np.sqrt(pivot)
            kept[rank] = j
            rank += 1
    return kept[:rank].copy(), factor[:rank, :rank].copy()
