"""Products of compressed rows with a dense matrix whose rows are long enough to be added as vectors.

A closed file: every jitted function called here lives here.
"""

from __future__ import annotations

from numba import float32, float64, int32, int64, njit, types, void

__all__ = ["add_rows", "by_columns", "compress_rows", "count_rows", "take_rows"]

_FAST = {"reassoc", "contract", "nsz"}  # NaN stays NaN
_I64 = types.Array(int64, 1, "C", readonly=True)
_I32 = types.Array(int32, 1, "C", readonly=True)
_REALS = (float32, float64)


def _vector(real):
    return types.Array(real, 1, "C", readonly=True)


def _matrix(real):
    return types.Array(real, 2, "C", readonly=True)


@njit(
    [void(_I64, _I32, _vector(r), _matrix(r), r[:, ::1]) for r in _REALS],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def add_rows(indptr, indices, values, W, out):
    """``out[r] += sum_p values[p] W[indices[p]]`` over the entries p of each row r, four at once."""
    width = W.shape[1]
    for r in range(len(out)):
        o, p, end = out[r], indptr[r], indptr[r + 1]
        while p + 4 <= end:
            a, b, c, d = W[indices[p]], W[indices[p + 1]], W[indices[p + 2]], W[indices[p + 3]]
            s, t, u, v = values[p], values[p + 1], values[p + 2], values[p + 3]
            for k in range(width):
                o[k] += s * a[k] + t * b[k] + u * c[k] + v * d[k]
            p += 4
        while p < end:
            a, s = W[indices[p]], values[p]
            for k in range(width):
                o[k] += s * a[k]
            p += 1


@njit(
    [void(_I64, _I32, _vector(r), int64[::1], int32[::1], r[::1]) for r in _REALS],
    cache=True,
    nogil=True,
)
def by_columns(indptr, indices, values, starts, rows, sorted_values):
    """The same entries column by column: those of column j at ``starts[j]:starts[j + 1]``, rows in order."""
    n, width = len(indptr) - 1, len(starts) - 1
    starts[:] = 0
    for p in range(indptr[0], indptr[n]):
        starts[indices[p] + 1] += 1
    for j in range(width):
        starts[j + 1] += starts[j]
    for r in range(n):
        for p in range(indptr[r], indptr[r + 1]):
            j = indices[p]
            q = starts[j]
            rows[q], sorted_values[q] = r, values[p]
            starts[j] = q + 1
    for j in range(width, 0, -1):
        starts[j] = starts[j - 1]
    starts[0] = 0


@njit(
    [void(_I64, _I32, _vector(r), _I64, _I64, int32[::1], r[::1]) for r in _REALS],
    cache=True,
    nogil=True,
)
def take_rows(indptr, indices, values, rows, starts, taken, taken_values):
    """Copy these rows; those of row k to ``starts[k]:starts[k + 1]``."""
    for k in range(len(rows)):
        p = indptr[rows[k]]
        for q in range(starts[k], starts[k + 1]):
            taken[q], taken_values[q] = indices[p], values[p]
            p += 1


@njit([void(_matrix(r), int64[::1]) for r in _REALS], cache=True, nogil=True)
def count_rows(X, starts):
    """``starts[k + 1] - starts[k]`` entries of row k are not zero; NaN is not zero."""
    starts[0] = 0
    for k in range(len(X)):
        count = 0
        for j in range(X.shape[1]):
            count += X[k, j] != 0
        starts[k + 1] = starts[k] + count


@njit(
    [void(_matrix(r), int32[::1], r[::1]) for r in _REALS],
    cache=True,
    nogil=True,
)
def compress_rows(X, taken, taken_values):
    """Copy what is not zero, row by row; there is room for one entry more."""
    q = 0
    for k in range(len(X)):
        for j in range(X.shape[1]):
            taken[q], taken_values[q] = j, X[k, j]  # overwritten by the next one where it is zero
            q += X[k, j] != 0
