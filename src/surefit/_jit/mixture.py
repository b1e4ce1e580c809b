r"""One pass of EM for Gaussian mixtures over a block of rows: weigh, and add up, while the rows are in the cache.

Rows are taken 128 at a time and turned, so that one instruction works on several of them. For each component

    y = U'(x - mu),   U U' the precision,       log pi + log N = constant - ||y||^2 / 2,

then the responsibilities q of all components from the largest exponent down, then the sums

    N_k += q,    s_k += q d,    S_k += q d d',    d = x - centre_k.

U is triangular and S symmetric, so each costs p(p+1)/2 products a row and component. Two columns and four rows of
a triangle are worked on together: a number loaded is used twice at least. Nothing is expanded: the squares
are of differences, and the sums are of squares, so no digits cancel, however far the data are from 0. The spare
rows of the last 128 have weight 0. ``reassoc`` must stay off in ``_exp`` (see ``exponential.py``), whose text is
repeated here. A closed file.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import int64, njit, types
from numba.extending import intrinsic

__all__ = ["diag_joint", "diag_pass", "full_joint", "full_pass", "tied_joint", "tied_pass"]

_B = 128
_FAST = {"contract", "nsz"}
_SUMS = {"reassoc", "contract", "nsz"}
_V = "Array(float64, 1, 'C', readonly=True)"
_M = "Array(float64, 2, 'C', readonly=True)"
_T = "Array(float64, 3, 'C', readonly=True)"


@intrinsic
def _bits(typingctx, x):
    """The bits of a float as an integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(x), codegen


@intrinsic
def _float(typingctx, x):
    """The float that has these bits."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(x), codegen


@njit("float64(float64)", cache=True, nogil=True, fastmath=_FAST, error_model="numpy", inline="always")  # fmt: skip
def _exp(x):
    """exp(x) for x <= 0, below an ulp; 0 under -708."""
    y = -708.0 if x < -708.0 else x
    shifted = y * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = y - k * 6.93145751953125e-1
    r = r - k * 1.42860682030941723212e-6
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = _float(int64((_bits(shifted) + int64(1023)) << int64(52)))
    return 0.0 if x < -708.0 else p * power


# ---------------------------------------------------------------------------- shared parts


@njit(f"int64({_M}, int64, float64[:, ::1])", cache=True, nogil=True)
def _turn(X, start, xt):
    """Rows start.. of X as columns of xt; how many there were. Spare columns are 0."""
    n, p = X.shape
    count = min(_B, n - start)
    for j in range(p):
        row = xt[j]
        for b in range(count):
            row[b] = X[start + b, j]
        for b in range(count, _B):
            row[b] = 0.0
    return count


@njit(f"void(float64[:, ::1], {_V}, float64[:, ::1])", cache=True, nogil=True)
def _shift(xt, centre, d):
    for j in range(len(centre)):
        c, x, into = centre[j], xt[j], d[j]
        for b in range(_B):
            into[b] = x[b] - c


@njit("float64(float64[:, ::1], int64, boolean)", cache=True, nogil=True, fastmath=_FAST, error_model="numpy")  # fmt: skip
def _weigh(e, count, hard):
    """Exponents to responsibilities, in place; returns the sum over rows of the log of the total.

    ``hard``: the weight 1 for the first of the largest, and the sum of the largest exponents.
    """
    K = e.shape[0]
    top, total = np.empty(_B), np.zeros(_B)
    for b in range(_B):
        top[b] = e[0, b]
    for k in range(1, K):
        for b in range(_B):
            top[b] = e[k, b] if e[k, b] > top[b] else top[b]
    value = 0.0
    if hard:
        for k in range(K):
            for b in range(_B):
                first = e[k, b] == top[b] and total[b] == 0.0
                e[k, b] = 1.0 if first else 0.0
                total[b] += e[k, b]
        for b in range(count):
            value += top[b]
    else:
        for k in range(K):
            row = e[k]
            for b in range(_B):
                row[b] = _exp(row[b] - top[b])
                total[b] += row[b]
        for b in range(count):
            value += top[b] + math.log(total[b])
        for b in range(_B):
            total[b] = 1.0 / total[b]
        for k in range(K):
            for b in range(_B):
                e[k, b] *= total[b]
    for k in range(K):
        for b in range(count, _B):
            e[k, b] = 0.0
    return value


@njit(f"void({_M}, int64, int64, float64[:, ::1])", cache=True, nogil=True)
def _given(q, start, count, e):
    for k in range(e.shape[0]):
        for b in range(count):
            e[k, b] = q[start + b, k]
        for b in range(count, _B):
            e[k, b] = 0.0


@njit("void(float64[:, ::1], int64, int64, float64[:, ::1])", cache=True, nogil=True)
def _keep(e, start, count, out):
    for k in range(e.shape[0]):
        for b in range(count):
            out[start + b, k] = e[k, b]


@njit("int64(int64)", cache=True, nogil=True)
def _padded(p):
    return 4 * ((p + 3) // 4)


# ---------------------------------------------------------------------------- full covariances


@njit(f"void(float64[:, ::1], {_M}, {_T}, {_V}, float64[:, ::1], float64[:, ::1], float64[:, ::1])",
      cache=True, nogil=True, fastmath=_SUMS)  # fmt: skip
def _full_exponents(xt, means, turned, constants, d, acc, e):
    """e_kb = constant_k - ||U_k'(x_b - mu_k)||^2 / 2; turned[k, j, i] = U_k[i, j], padded with 0."""
    K, p = means.shape
    a0, a1 = acc[0], acc[1]
    for k in range(K):
        _shift(xt, means[k], d)
        into = e[k]
        for b in range(_B):
            into[b] = 0.0
        for j in range(0, p, 2):
            u, v = turned[k, j], turned[k, j + 1]
            d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
            for b in range(_B):
                a0[b] = u[0] * d0[b] + u[1] * d1[b] + u[2] * d2[b] + u[3] * d3[b]
                a1[b] = v[0] * d0[b] + v[1] * d1[b] + v[2] * d2[b] + v[3] * d3[b]
            for i in range(4, min(j + 2, p), 4):
                d0, d1, d2, d3 = d[i], d[i + 1], d[i + 2], d[i + 3]
                u0, u1, u2, u3 = u[i], u[i + 1], u[i + 2], u[i + 3]
                v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
                for b in range(_B):
                    a0[b] += u0 * d0[b] + u1 * d1[b] + u2 * d2[b] + u3 * d3[b]
                    a1[b] += v0 * d0[b] + v1 * d1[b] + v2 * d2[b] + v3 * d3[b]
            for b in range(_B):
                into[b] += a0[b] * a0[b] + a1[b] * a1[b]
        c = constants[k]
        for b in range(_B):
            into[b] = c - 0.5 * into[b]


@njit(f"void(float64[:, ::1], float64[:, ::1], {_M}, float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], "
      "float64[:, :, ::1])", cache=True, nogil=True, fastmath=_SUMS)  # fmt: skip
def _full_scatter(xt, q, centres, d, acc, mass, first, second):
    """The sums N, s and the lower triangle of S, two rows and four columns at a time."""
    K, p = centres.shape
    w0, w1 = acc[0], acc[1]
    for k in range(K):
        _shift(xt, centres[k], d)
        weight = q[k]
        total = 0.0
        for b in range(_B):
            total += weight[b]
        if total == 0.0:
            continue
        mass[k] += total
        for i in range(0, p, 2):
            x0, x1 = d[i], d[i + 1]
            t0, t1 = 0.0, 0.0
            for b in range(_B):
                w0[b] = weight[b] * x0[b]
                w1[b] = weight[b] * x1[b]
                t0 += w0[b]
                t1 += w1[b]
            first[k, i] += t0
            first[k, i + 1] += t1
            for j in range(0, min(i + 2, p), 4):
                d0, d1, d2, d3 = d[j], d[j + 1], d[j + 2], d[j + 3]
                s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
                for b in range(_B):
                    s00 += w0[b] * d0[b]
                    s01 += w0[b] * d1[b]
                    s02 += w0[b] * d2[b]
                    s03 += w0[b] * d3[b]
                    s10 += w1[b] * d0[b]
                    s11 += w1[b] * d1[b]
                    s12 += w1[b] * d2[b]
                    s13 += w1[b] * d3[b]
                row = second[k, i]
                row[j] += s00
                row[j + 1] += s01
                row[j + 2] += s02
                row[j + 3] += s03
                row = second[k, i + 1]
                row[j] += s10
                row[j + 1] += s11
                row[j + 2] += s12
                row[j + 3] += s13


@njit(f"float64({_M}, {_M}, {_T}, {_V}, {_M}, boolean, {_M}, float64[::1], float64[:, ::1], float64[:, :, ::1])",
      cache=True, nogil=True)  # fmt: skip
def full_pass(X, means, turned, constants, centres, hard, q, mass, first, second):
    """Responsibilities of the rows and their sums around ``centres``; returns the log-likelihood.

    With rows in ``q``, these are the responsibilities, and 0 is returned. ``turned`` (K, P, P), ``first`` (K, P) and ``second`` (K, P, P) are padded to P, a multiple of 4.
    """
    n, p = X.shape
    K, P = means.shape[0], _padded(p)
    xt, d = np.zeros((P, _B)), np.zeros((P, _B))
    acc, e = np.empty((2, _B)), np.empty((K, _B))
    value = 0.0
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        if len(q):
            _given(q, start, count, e)
        else:
            _full_exponents(xt, means, turned, constants, d, acc, e)
            value += _weigh(e, count, hard)
        _full_scatter(xt, e, centres, d, acc, mass, first, second)
    return value


@njit(f"void({_M}, {_M}, {_T}, {_V}, float64[:, ::1])", cache=True, nogil=True)
def full_joint(X, means, turned, constants, out):
    """out_nk = log pi_k + log N(x_n | mu_k, Sigma_k)."""
    n, p = X.shape
    K, P = means.shape[0], _padded(p)
    xt, d = np.zeros((P, _B)), np.zeros((P, _B))
    acc, e = np.empty((2, _B)), np.empty((K, _B))
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        _full_exponents(xt, means, turned, constants, d, acc, e)
        _keep(e, start, count, out)


# ---------------------------------------------------------------------------- diagonal covariances


@njit(f"void(float64[:, ::1], {_M}, {_M}, {_V}, float64[:, ::1])", cache=True, nogil=True, fastmath=_SUMS)
def _diag_exponents(xt, means, roots, constants, e):
    K, p = means.shape
    for k in range(K):
        into = e[k]
        for b in range(_B):
            into[b] = 0.0
        for j in range(p):
            m, r, x = means[k, j], roots[k, j], xt[j]
            for b in range(_B):
                y = (x[b] - m) * r
                into[b] += y * y
        c = constants[k]
        for b in range(_B):
            into[b] = c - 0.5 * into[b]


@njit(f"float64({_M}, {_M}, {_M}, {_V}, {_M}, boolean, {_M}, float64[::1], float64[:, ::1], float64[:, ::1])",
      cache=True, nogil=True, fastmath=_SUMS)  # fmt: skip
def diag_pass(X, means, roots, constants, centres, hard, q, mass, first, second):
    """The same with a variance for each feature; ``roots`` are one over the deviations."""
    n, p = X.shape
    K = means.shape[0]
    xt, e = np.zeros((p, _B)), np.empty((K, _B))
    value = 0.0
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        if len(q):
            _given(q, start, count, e)
        else:
            _diag_exponents(xt, means, roots, constants, e)
            value += _weigh(e, count, hard)
        for k in range(K):
            weight = e[k]
            total = 0.0
            for b in range(_B):
                total += weight[b]
            mass[k] += total
            for j in range(p):
                c, x = centres[k, j], xt[j]
                one, two = 0.0, 0.0
                for b in range(_B):
                    d = x[b] - c
                    one += weight[b] * d
                    two += weight[b] * d * d
                first[k, j] += one
                second[k, j] += two
    return value


@njit(f"void({_M}, {_M}, {_M}, {_V}, float64[:, ::1])", cache=True, nogil=True)
def diag_joint(X, means, roots, constants, out):
    n, p = X.shape
    K = means.shape[0]
    xt, e = np.zeros((p, _B)), np.empty((K, _B))
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        _diag_exponents(xt, means, roots, constants, e)
        _keep(e, start, count, out)


# ---------------------------------------------------------------------------- one covariance for all


@njit(f"void(float64[:, ::1], {_M}, {_M}, {_V}, float64[:, ::1], float64[:, ::1])",
      cache=True, nogil=True, fastmath=_SUMS)  # fmt: skip
def _tied_exponents(xt, white, turned, constants, y, e):
    """Rows are whitened once, y = U'x; ``white`` are the means, whitened alike."""
    K, p = white.shape
    for j in range(p):
        into = y[j]
        for b in range(_B):
            into[b] = 0.0
        for i in range(j + 1):
            u, x = turned[j, i], xt[i]
            for b in range(_B):
                into[b] += u * x[b]
    for k in range(K):
        into = e[k]
        for b in range(_B):
            into[b] = 0.0
        for j in range(p):
            m, row = white[k, j], y[j]
            for b in range(_B):
                into[b] += (row[b] - m) * (row[b] - m)
        c = constants[k]
        for b in range(_B):
            into[b] = c - 0.5 * into[b]


@njit(f"float64({_M}, {_V}, {_M}, {_M}, {_V}, {_M}, boolean, float64[::1], float64[:, ::1], float64[:, ::1], "
      "float64[:, ::1])", cache=True, nogil=True, fastmath=_SUMS)  # fmt: skip
def tied_pass(X, middle, white, turned, constants, centres, hard, mass, first, second, pairs):
    """The same with one covariance; ``white`` and ``centres`` are less ``middle``. ``second`` adds up r r', r = x - sum_k q_k centre_k; ``pairs`` q_k q_l.

    From these, sum_k q_k (x - c_k)(x - c_k)' = r r' + sum_{k<l} q_k q_l (c_k - c_l)(c_k - c_l)'.
    """
    n, p = X.shape
    K = white.shape[0]
    xt, y, e = np.zeros((p, _B)), np.zeros((p, _B)), np.empty((K, _B))
    value = 0.0
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        _shift(xt, middle, xt)
        _tied_exponents(xt, white, turned, constants, y, e)
        value += _weigh(e, count, hard)
        for b in range(count, _B):
            for j in range(p):
                xt[j, b] = 0.0
        for j in range(p):
            r, x = y[j], xt[j]
            for b in range(_B):
                r[b] = x[b]
            for k in range(K):
                c, q = centres[k, j], e[k]
                for b in range(_B):
                    r[b] -= q[b] * c
        for k in range(K):
            q = e[k]
            total = 0.0
            for b in range(_B):
                total += q[b]
            mass[k] += total
            for l in range(k):  # noqa: E741
                other = e[l]
                both = 0.0
                for b in range(_B):
                    both += q[b] * other[b]
                pairs[k, l] += both
            for j in range(p):
                c, x = centres[k, j], xt[j]
                one = 0.0
                for b in range(_B):
                    one += q[b] * (x[b] - c)
                first[k, j] += one
        for i in range(p):
            ri = y[i]
            for j in range(i + 1):
                rj = y[j]
                two = 0.0
                for b in range(_B):
                    two += ri[b] * rj[b]
                second[i, j] += two
    return value


@njit(f"void({_M}, {_V}, {_M}, {_M}, {_V}, float64[:, ::1])", cache=True, nogil=True)
def tied_joint(X, middle, white, turned, constants, out):
    n, p = X.shape
    K = white.shape[0]
    xt, y, e = np.zeros((p, _B)), np.zeros((p, _B)), np.empty((K, _B))
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        _shift(xt, middle, xt)
        _tied_exponents(xt, white, turned, constants, y, e)
        _keep(e, start, count, out)
