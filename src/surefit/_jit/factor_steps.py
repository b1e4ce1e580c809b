"""Kernels of factorisations that take steps: conjugate gradients row by row, and SGD entry by entry.

A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

__all__ = ["cg_rows", "sgd_block"]

_FAST = {"reassoc", "contract", "nsz"}
_I32 = types.Array(types.int32, 1, "C", readonly=True)
_I64 = types.Array(types.int64, 1, "C", readonly=True)
_KINDS = (types.float32, types.float64)


def _vec(kind):
    return types.Array(kind, 1, "C", readonly=True)


def _mat(kind, readonly=True):
    return types.Array(kind, 2, "C", readonly=readonly)


@njit(
    [
        types.void(
            _I64, _I32, _vec(T), _vec(T), _mat(T), types.int64, _mat(T, False), _mat(T, False),
            _mat(T, False), _mat(T, False), types.int64, types.int64,
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def cg_rows(indptr, indices, weights, targets, F, steps, Z, before, after, rights, first, last):
    """A few conjugate gradient steps on (I + sum_j w_j f_j f_j') z = sum_j y_j f_j for the rows first..last.

    Z is where to start, and is overwritten; ``before`` and ``after`` receive the residuals at the start and
    at the end, ``rights`` the right-hand sides. The rows f_j of a row are gathered once.
    """
    k = F.shape[1]
    longest = 1
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    tile = np.zeros((longest + 3, k), dtype=F.dtype)
    w = np.zeros(longest + 3, dtype=F.dtype)
    p, q = np.empty(k, dtype=F.dtype), np.empty(k, dtype=F.dtype)
    zero = F.dtype.type(0)
    least = 1e-12 if F.itemsize == 4 else 1e-28
    for i in range(first, last):
        begin, count = indptr[i], indptr[i + 1] - indptr[i]
        z, r, right = Z[i], after[i], rights[i]
        for a in range(k):
            right[a] = 0
        for t in range(count):
            f, y = F[indices[begin + t]], targets[begin + t]
            for a in range(k):
                tile[t, a] = f[a]
                right[a] += y * f[a]
            w[t] = weights[begin + t]
        for t in range(count, (count + 3) // 4 * 4):
            w[t] = 0
        for step in range(steps + 1):  # the first product is that of the start
            v = z if step == 0 else p
            for a in range(k):
                q[a] = v[a]
            for t in range(0, count, 4):
                f0, f1, f2, f3 = tile[t], tile[t + 1], tile[t + 2], tile[t + 3]
                s0 = s1 = s2 = s3 = zero
                for a in range(k):
                    s0 += f0[a] * v[a]
                    s1 += f1[a] * v[a]
                    s2 += f2[a] * v[a]
                    s3 += f3[a] * v[a]
                s0, s1, s2, s3 = s0 * w[t], s1 * w[t + 1], s2 * w[t + 2], s3 * w[t + 3]
                for a in range(k):
                    q[a] += s0 * f0[a] + s1 * f1[a] + s2 * f2[a] + s3 * f3[a]
            if step == 0:
                rr = size = zero
                for a in range(k):
                    r[a] = right[a] - q[a]
                    before[i, a] = r[a]
                    p[a] = r[a]
                    rr += r[a] * r[a]
                    size += right[a] * right[a]
            else:
                pq = zero
                for a in range(k):
                    pq += p[a] * q[a]
                move = rr / pq
                new = zero
                for a in range(k):
                    z[a] += move * p[a]
                    r[a] -= move * q[a]
                    new += r[a] * r[a]
                turn = new / rr
                rr = new
                for a in range(k):
                    p[a] = r[a] + turn * p[a]
            if not np.float64(rr) > least * np.float64(size):
                break


@njit(
    [
        types.void(
            _I32, _I32, _vec(T), _I64, types.int64, _mat(T, False), _mat(T, False), types.Array(T, 1, "C"),
            types.Array(T, 1, "C"), _vec(T), _vec(T), _vec(T), _vec(T), T, types.boolean,
        )
        for T in _KINDS
    ],
    cache=True, nogil=True, fastmath=_FAST,
)  # fmt: skip
def sgd_block(
    users, items, values, starts, stop, U, V, b, c, lam_u, lam_v, lam_b, lam_c, step, biases
):
    """One visit to each entry: (d, n) moves the rows u_d and v_n by -step times the entry's gradient,
    Theta(K).

    Entries come in runs of 64 that begin at ``starts``, the last of them before ``stop``.
    """
    k = U.shape[1]
    zero = U.dtype.type(0)
    for start in starts:
        for e in range(start, min(start + 64, stop)):
            d, n = users[e], items[e]
            u, v = U[d], V[n]
            m = zero
            for a in range(k):
                m += u[a] * v[a]
            error = values[e] - m
            if biases:
                error -= b[d] + c[n]
                b[d] += step * (error - lam_b[d] * b[d])
                c[n] += step * (error - lam_c[n] * c[n])
            se, su, sv = step * error, 1 - step * lam_u[d], 1 - step * lam_v[n]
            for a in range(k):
                x, y = u[a], v[a]
                u[a] = U.dtype.type(su) * x + se * y
                v[a] = U.dtype.type(sv) * y + se * x
