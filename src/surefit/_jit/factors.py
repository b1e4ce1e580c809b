"""Kernels of alternating least squares over observed ratings.

The model of a row is t_j ~ <f_j, z> over its entries, f_j a row of the other side's factors. Its normal
equations

    (G + sum_j w_j f_j f_j' + s diag(lam)) z = sum_j y_j f_j

are summed from tiles that hold the gathered f_j as columns: the sum is then made of dot products of long
rows, four by four, which the compiler keeps in registers. The Cholesky factor is formed four by four in the
same way. Nothing here calls a matrix library. A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["normal_rows", "row_losses", "solve_normal", "solve_rows"]

_FAST = {"reassoc", "contract", "nsz"}
_TILE = 64  # entries gathered at a time
_LANES = 16  # rows of a tile are padded to a multiple of this with zeros
_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_F64 = types.Array(types.float64, 1, "C", readonly=True)
_NUMBERS = types.Array(types.float64, 2, "C")


def _vec(kind):
    return types.Array(kind, 1, "C", readonly=True)


def _mat(kind, readonly=True):
    return types.Array(kind, 2, "C", readonly=readonly)


_KINDS = (types.float32, types.float64)


@njit(nogil=True, fastmath=_FAST)
def _products(P, Q, count, size, A):
    """A += Q P' in its lower blocks; rows of P and Q hold ``count`` numbers, a multiple of the lanes."""
    zero = A.dtype.type(0)
    for b in range(0, size, 4):
        y0, y1, y2, y3 = Q[b], Q[b + 1], Q[b + 2], Q[b + 3]
        for a in range(0, b + 4, 4):
            x0, x1, x2, x3 = P[a], P[a + 1], P[a + 2], P[a + 3]
            c00 = c01 = c02 = c03 = c10 = c11 = c12 = c13 = zero
            c20 = c21 = c22 = c23 = c30 = c31 = c32 = c33 = zero
            for r in range(count):
                c00 += y0[r] * x0[r]
                c01 += y0[r] * x1[r]
                c02 += y0[r] * x2[r]
                c03 += y0[r] * x3[r]
                c10 += y1[r] * x0[r]
                c11 += y1[r] * x1[r]
                c12 += y1[r] * x2[r]
                c13 += y1[r] * x3[r]
                c20 += y2[r] * x0[r]
                c21 += y2[r] * x1[r]
                c22 += y2[r] * x2[r]
                c23 += y2[r] * x3[r]
                c30 += y3[r] * x0[r]
                c31 += y3[r] * x1[r]
                c32 += y3[r] * x2[r]
                c33 += y3[r] * x3[r]
            A[b, a] += c00
            A[b, a + 1] += c01
            A[b, a + 2] += c02
            A[b, a + 3] += c03
            A[b + 1, a] += c10
            A[b + 1, a + 1] += c11
            A[b + 1, a + 2] += c12
            A[b + 1, a + 3] += c13
            A[b + 2, a] += c20
            A[b + 2, a + 1] += c21
            A[b + 2, a + 2] += c22
            A[b + 2, a + 3] += c23
            A[b + 3, a] += c30
            A[b + 3, a + 1] += c31
            A[b + 3, a + 2] += c32
            A[b + 3, a + 3] += c33


@njit(nogil=True, fastmath=_FAST)
def _sum_row(indices, weights, targets, F, shift, begin, end, P, Q, A, right):
    """Add the entries begin..end of a row to A (lower blocks) and to the right-hand side."""
    k, size = F.shape[1], A.shape[0]
    weighted = len(weights) > 0
    for start in range(begin, end, _TILE):
        count = min(_TILE, end - start)
        padded = (count + _LANES - 1) // _LANES * _LANES
        for t in range(count):
            f = F[indices[start + t]]
            y = targets[start + t] - shift[indices[start + t]]
            for a in range(k):
                right[a] += y * f[a]
            for a in range(k):
                P[a, t] = f[a]
            if weighted:
                w = weights[start + t]
                for a in range(k):
                    Q[a, t] = w * f[a]
        for t in range(count, padded):
            for a in range(k):
                P[a, t] = 0
            if weighted:
                for a in range(k):
                    Q[a, t] = 0
        _products(P, Q if weighted else P, padded, size, A)


@njit(nogil=True, fastmath=_FAST)
def _factorise(A, least):
    """The Cholesky factor in place of the lower triangle; False where a pivot is not above its least."""
    size = A.shape[0]
    zero = A.dtype.type(0)
    for j in range(0, size, 4):
        y0, y1, y2, y3 = A[j], A[j + 1], A[j + 2], A[j + 3]
        for i in range(j, size, 4):
            x0, x1, x2, x3 = A[i], A[i + 1], A[i + 2], A[i + 3]
            c00 = c01 = c02 = c03 = c10 = c11 = c12 = c13 = zero
            c20 = c21 = c22 = c23 = c30 = c31 = c32 = c33 = zero
            for r in range(j):
                c00 += x0[r] * y0[r]
                c01 += x0[r] * y1[r]
                c02 += x0[r] * y2[r]
                c03 += x0[r] * y3[r]
                c10 += x1[r] * y0[r]
                c11 += x1[r] * y1[r]
                c12 += x1[r] * y2[r]
                c13 += x1[r] * y3[r]
                c20 += x2[r] * y0[r]
                c21 += x2[r] * y1[r]
                c22 += x2[r] * y2[r]
                c23 += x2[r] * y3[r]
                c30 += x3[r] * y0[r]
                c31 += x3[r] * y1[r]
                c32 += x3[r] * y2[r]
                c33 += x3[r] * y3[r]
            A[i, j] -= c00
            A[i, j + 1] -= c01
            A[i, j + 2] -= c02
            A[i, j + 3] -= c03
            A[i + 1, j] -= c10
            A[i + 1, j + 1] -= c11
            A[i + 1, j + 2] -= c12
            A[i + 1, j + 3] -= c13
            A[i + 2, j] -= c20
            A[i + 2, j + 1] -= c21
            A[i + 2, j + 2] -= c22
            A[i + 2, j + 3] -= c23
            A[i + 3, j] -= c30
            A[i + 3, j + 1] -= c31
            A[i + 3, j + 2] -= c32
            A[i + 3, j + 3] -= c33
            for q in range(4):
                for p in range(4):
                    if i == j and p < q:
                        continue
                    value = A[i + p, j + q]
                    for h in range(q):
                        value -= A[i + p, j + h] * A[j + q, j + h]
                    if i == j and p == q:
                        if not value > least[j + q]:
                            return False
                        A[j + q, j + q] = np.sqrt(value)
                    else:
                        A[i + p, j + q] = value / A[j + q, j + q]
    return True


@njit(nogil=True, fastmath=_FAST)
def _back(A, right, k):
    """Solve with the Cholesky factor, in place."""
    for i in range(k):
        row = A[i]
        value = right[i]
        for j in range(i):
            value -= row[j] * right[j]
        right[i] = value / row[i]
    for i in range(k - 1, -1, -1):
        row = A[i]
        value = right[i] / row[i]
        right[i] = value
        for j in range(i):
            right[j] -= value * row[j]


@njit(nogil=True, fastmath=_FAST)
def _begin(A, gram, lam, scale, right):
    """A = gram + scale diag(lam) with ones in the padding; the right-hand side 0."""
    k, size = len(lam), A.shape[0]
    for i in range(size):
        for j in range(size):
            A[i, j] = gram[i, j] if i < k and j < k else 0
        right[i] = 0
    for i in range(k):
        A[i, i] += A.dtype.type(scale * lam[i])
    for i in range(k, size):
        A[i, i] = 1


@njit(nogil=True, fastmath=_FAST)
def _gradient(A, right, z, k):
    """||A z - right||^2 and ||right||^2, A being symmetric with its lower triangle given."""
    g = np.empty(k, dtype=np.float64)
    for i in range(k):
        g[i] = -right[i]
    for i in range(k):
        row = A[i]
        value = row[i] * z[i]
        for j in range(i):
            value += row[j] * z[j]
        g[i] += value
        zi = z[i]
        for j in range(i):
            g[j] += row[j] * zi
    total, size = 0.0, 0.0
    for i in range(k):
        total += g[i] * g[i]
        size += np.float64(right[i]) * np.float64(right[i])
    return total, size


@njit(nogil=True, fastmath=_FAST)
def _finish(A, right, k, eps):
    """Solve; False where the matrix is singular to working precision."""
    size = A.shape[0]
    least = np.empty(size, dtype=A.dtype)
    for i in range(size):
        least[i] = A.dtype.type(8 * size * eps) * A[i, i] if i < k else A.dtype.type(0)
    if not _factorise(A, least):
        return False
    _back(A, right, k)
    return True


@njit(nogil=True, fastmath=_FAST)
def _row_loss(indices, weights, targets, F, shift, gram, lam, scale, z, begin, end):
    """Half the (weighted) squares of a row's residuals, plus its penalty, added up in float64."""
    k = F.shape[1]
    weighted = len(weights) > 0
    total = 0.0
    for a in range(k):
        total += scale * lam[a] * np.float64(z[a]) ** 2
    for e in range(begin, end):
        f = F[indices[e]]
        m = F.dtype.type(0)
        for a in range(k):
            m += f[a] * z[a]
        y = targets[e] - shift[indices[e]]
        if weighted:  # of all pairs with weight 1 and target 0, here with c and 1 instead
            rest = 1.0 - np.float64(m)
            total += np.float64(y) * rest * rest - np.float64(m) ** 2
        else:
            rest = np.float64(y) - np.float64(m)
            total += rest * rest
    if weighted:
        for a in range(k):
            m = F.dtype.type(0)
            for b in range(k):
                m += gram[a, b] * z[b]
            total += np.float64(m) * np.float64(z[a])
    return 0.5 * total


@njit(
    [
        types.void(
            _I64, _I32, _vec(T), _vec(T), _mat(T), _vec(T), _mat(T), _F64, _F64, _mat(T),
            _mat(T, False), _NUMBERS, types.int64, types.int64, types.boolean,
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def solve_rows(indptr, indices, weights, targets, F, shift, gram, lam, scale, old, Z, numbers,
               first, last, losses):  # fmt: skip
    """Least squares of the rows first..last.

    ``numbers`` receives of each row: its part of the loss at the solution (with ``losses``), the squared
    norms of the gradient at ``old`` and at 0, and 1 where the matrix is singular and nothing was solved.
    """
    k = F.shape[1]
    size = (k + 3) // 4 * 4
    eps = 1.2e-7 if F.itemsize == 4 else 2.3e-16
    A, right = np.empty((size, size), dtype=F.dtype), np.empty(size, dtype=F.dtype)
    P, Q = np.zeros((size, _TILE), dtype=F.dtype), np.zeros((size, _TILE), dtype=F.dtype)
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        numbers[i, :] = 0.0
        if begin == end:  # nothing is known of this row: it stays at 0, least squares of least norm
            for a in range(k):
                Z[i, a] = 0
                numbers[i, 1] += (scale[i] * lam[a] * old[i, a]) ** 2
            continue
        _begin(A, gram, lam, scale[i], right)
        _sum_row(indices, weights, targets, F, shift, begin, end, P, Q, A, right)
        numbers[i, 1], numbers[i, 2] = _gradient(A, right, old[i], k)
        if not _finish(A, right, k, eps):
            numbers[i, 3] = 1.0
            continue
        for a in range(k):
            Z[i, a] = right[a]
        if losses:
            numbers[i, 0] = _row_loss(
                indices, weights, targets, F, shift, gram, lam, scale[i], Z[i], begin, end
            )


@njit(
    [
        types.void(
            _I64, _I32, _vec(T), _vec(T), _mat(T), _vec(T), _mat(T), _F64, _F64, _mat(T),
            types.Array(types.float64, 1, "C"), types.int64, types.int64,
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def row_losses(indptr, indices, weights, targets, F, shift, gram, lam, scale, Z, out, first, last):
    """The part of each of the rows first..last in the loss."""
    for i in range(first, last):
        out[i] = _row_loss(
            indices, weights, targets, F, shift, gram, lam, scale[i], Z[i], indptr[i], indptr[i + 1]
        )


@njit(
    [
        types.void(
            _I64, _I32, _vec(T), _vec(T), _mat(T), _vec(T), types.int64, types.int64, types.int64,
            types.Array(T, 3, "C"), _mat(T, False),
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def normal_rows(indptr, indices, weights, targets, F, shift, origin, first, last, out, rights):
    """The sums of w f f' (lower triangle) and of y f for the rows first..last, at first - origin and on."""
    k = F.shape[1]
    size = (k + 3) // 4 * 4
    A, right = np.empty((size, size), dtype=F.dtype), np.empty(size, dtype=F.dtype)
    P, Q = np.zeros((size, _TILE), dtype=F.dtype), np.zeros((size, _TILE), dtype=F.dtype)
    for i in range(first, last):
        A[:] = 0
        right[:] = 0
        _sum_row(indices, weights, targets, F, shift, indptr[i], indptr[i + 1], P, Q, A, right)
        for a in range(k):
            rights[i - origin, a] = right[a]
            for b in range(k):
                out[i - origin, a, b] = A[a, b] if b <= a else 0


@njit(
    [
        types.void(
            types.Array(T, 3, "C", readonly=True), _mat(T), _mat(T), _F64, _F64, _mat(T), _mat(T, False),
            _NUMBERS, types.int64, types.int64,
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def solve_normal(sums, rights, gram, lam, scale, old, Z, numbers, first, last):
    """Solve normal equations that were summed before; ``numbers`` as in :func:`solve_rows`."""
    k = rights.shape[1]
    size = (k + 3) // 4 * 4
    eps = 1.2e-7 if rights.itemsize == 4 else 2.3e-16
    A, right = np.empty((size, size), dtype=rights.dtype), np.empty(size, dtype=rights.dtype)
    for i in range(first, last):
        _begin(A, gram, lam, scale[i], right)
        for a in range(k):
            right[a] = rights[i, a]
            for b in range(a + 1):
                A[a, b] += sums[i, a, b]
        numbers[i, :] = 0.0
        numbers[i, 1], numbers[i, 2] = _gradient(A, right, old[i], k)
        if numbers[i, 2] == 0.0:
            for a in range(k):
                Z[i, a] = 0
        elif _finish(A, right, k, eps):
            for a in range(k):
                Z[i, a] = right[a]
        else:
            numbers[i, 3] = 1.0
