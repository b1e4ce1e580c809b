r"""One pass of EM for Gaussian mixtures over a block of rows: weigh and add up, while they are in the cache.

Rows are taken 192 at a time and turned, so that one instruction works on several of them. For each component

    y = U'(x - mu),   U U' the precision,       log pi + log N = constant - ||y||^2 / 2,

then the responsibilities q of all components from the largest exponent down, then the sums

    N_k += q,    s_k += q d,    S_k += q d d',    d = x - centre_k.

U is triangular and S symmetric, so each costs p(p+1)/2 products a row and component. Four columns and
four rows of a triangle are worked on together: a number loaded is used four times. Nothing is expanded:
the squares are of differences, and the sums are of squares, so no digits cancel, however far the data are
from 0. The spare rows of the last 192 have weight 0. ``reassoc`` must stay off in ``_exp`` (see
``exponential.py``), whose text is repeated here. A closed file.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import int64, njit, types
from numba.extending import intrinsic

__all__ = ["diag_joint", "diag_pass", "full_joint", "full_pass", "tied_joint", "tied_pass"]

_B = 192
_NOTHING = 1e-40  # all smaller weights together are far below the 10 eps that a count starts from
_FAST = {"contract", "nsz"}
_SUMS = {"reassoc", "contract", "nsz"}
_V = "Array(float64, 1, 'C', readonly=True)"
_M = "Array(float64, 2, 'C', readonly=True)"
_S, _R = "float64[::1]", "float64[:, ::1]"  # sums, and rows turned
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


@njit(
    "float64(float64)", cache=True, nogil=True, fastmath=_FAST, error_model="numpy", inline="always"
)
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


@njit(
    "float64(float64[:, ::1], int64, boolean)",
    cache=True,
    nogil=True,
    fastmath=_FAST,
    error_model="numpy",
)
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
    a0, a1, a2, a3 = acc[0], acc[1], acc[2], acc[3]
    for k in range(K):
        _shift(xt, means[k], d)
        into = e[k]
        for b in range(_B):
            into[b] = 0.0
        for j in range(0, p, 4):
            r, s, t, u = turned[k, j], turned[k, j + 1], turned[k, j + 2], turned[k, j + 3]
            for i in range(0, j, 4):
                d0, d1, d2, d3 = d[i], d[i + 1], d[i + 2], d[i + 3]
                r0, r1, r2, r3 = r[i], r[i + 1], r[i + 2], r[i + 3]
                s0, s1, s2, s3 = s[i], s[i + 1], s[i + 2], s[i + 3]
                t0, t1, t2, t3 = t[i], t[i + 1], t[i + 2], t[i + 3]
                u0, u1, u2, u3 = u[i], u[i + 1], u[i + 2], u[i + 3]
                if i == 0:
                    for b in range(_B):
                        a0[b] = r0 * d0[b] + r1 * d1[b] + r2 * d2[b] + r3 * d3[b]
                        a1[b] = s0 * d0[b] + s1 * d1[b] + s2 * d2[b] + s3 * d3[b]
                        a2[b] = t0 * d0[b] + t1 * d1[b] + t2 * d2[b] + t3 * d3[b]
                        a3[b] = u0 * d0[b] + u1 * d1[b] + u2 * d2[b] + u3 * d3[b]
                else:
                    for b in range(_B):
                        a0[b] += r0 * d0[b] + r1 * d1[b] + r2 * d2[b] + r3 * d3[b]
                        a1[b] += s0 * d0[b] + s1 * d1[b] + s2 * d2[b] + s3 * d3[b]
                        a2[b] += t0 * d0[b] + t1 * d1[b] + t2 * d2[b] + t3 * d3[b]
                        a3[b] += u0 * d0[b] + u1 * d1[b] + u2 * d2[b] + u3 * d3[b]
            if j == 0:
                for b in range(_B):
                    a0[b] = a1[b] = a2[b] = a3[b] = 0.0
            # the corner on the diagonal is a triangle: ten products, then the four squares
            d0, d1, d2, d3 = d[j], d[j + 1], d[j + 2], d[j + 3]
            r0, s0, s1 = r[j], s[j], s[j + 1]
            t0, t1, t2 = t[j], t[j + 1], t[j + 2]
            u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
            for b in range(_B):
                y0 = a0[b] + r0 * d0[b]
                y1 = a1[b] + s0 * d0[b] + s1 * d1[b]
                y2 = a2[b] + t0 * d0[b] + t1 * d1[b] + t2 * d2[b]
                y3 = a3[b] + u0 * d0[b] + u1 * d1[b] + u2 * d2[b] + u3 * d3[b]
                into[b] += y0 * y0 + y1 * y1 + y2 * y2 + y3 * y3
        c = constants[k]
        for b in range(_B):
            into[b] = c - 0.5 * into[b]


@njit("void(float64[::1], int64, float64, float64, float64, float64)", cache=True, nogil=True)
def _add(row, j, a, b, c, d):
    row[j] += a
    row[j + 1] += b
    row[j + 2] += c
    row[j + 3] += d


@njit(
    f"int64(float64[:, ::1], float64[::1], {_V}, float64[:, ::1], float64[::1])",
    cache=True,
    nogil=True,
)
def _gather(xt, q, centre, d, weight):
    """The differences and weights of the rows that count, side by side; how many, in eights."""
    rows = np.empty(_B, dtype=np.int64)
    count = 0
    for b in range(_B):
        rows[count] = b
        count += q[b] > _NOTHING
    if count > _B - 32:  # nearly all
        _shift(xt, centre, d)
        for b in range(_B):
            weight[b] = q[b]
        return _B
    size = 8 * ((count + 7) // 8)
    for c in range(count):
        weight[c] = q[rows[c]]
    for c in range(count, size):
        rows[c], weight[c] = rows[0], 0.0
    for j in range(len(centre)):
        m, x, into = centre[j], xt[j], d[j]
        for c in range(size):
            into[c] = x[rows[c]] - m
    return size


@njit(f"void({_R}, {_R}, {_M}, {_R}, {_R}, {_S}, {_R}, float64[:, :, ::1])",
      cache=True, nogil=True, fastmath=_SUMS)  # fmt: skip
def _full_scatter(xt, q, centres, d, acc, mass, first, second):
    """The sums N, s and the lower triangle of S, four rows and four columns at a time."""
    K, p = centres.shape
    w0, w1, w2, w3, weight = acc[0], acc[1], acc[2], acc[3], acc[4]
    for k in range(K):
        size = _gather(xt, q[k], centres[k], d, weight)
        total = 0.0
        for b in range(size):
            total += weight[b]
        mass[k] += total
        if size == 0:
            continue
        for i in range(0, p, 4):
            x0, x1, x2, x3 = d[i], d[i + 1], d[i + 2], d[i + 3]
            t0 = t1 = t2 = t3 = 0.0
            for b in range(size):
                w0[b] = weight[b] * x0[b]
                w1[b] = weight[b] * x1[b]
                w2[b] = weight[b] * x2[b]
                w3[b] = weight[b] * x3[b]
                t0 += w0[b]
                t1 += w1[b]
                t2 += w2[b]
                t3 += w3[b]
            first[k, i] += t0
            first[k, i + 1] += t1
            first[k, i + 2] += t2
            first[k, i + 3] += t3
            for j in range(0, i + 1, 4):
                d0, d1, d2, d3 = d[j], d[j + 1], d[j + 2], d[j + 3]
                s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
                s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
                for b in range(size):
                    s00 += w0[b] * d0[b]
                    s01 += w0[b] * d1[b]
                    s02 += w0[b] * d2[b]
                    s03 += w0[b] * d3[b]
                    s10 += w1[b] * d0[b]
                    s11 += w1[b] * d1[b]
                    s12 += w1[b] * d2[b]
                    s13 += w1[b] * d3[b]
                    s20 += w2[b] * d0[b]
                    s21 += w2[b] * d1[b]
                    s22 += w2[b] * d2[b]
                    s23 += w2[b] * d3[b]
                    s30 += w3[b] * d0[b]
                    s31 += w3[b] * d1[b]
                    s32 += w3[b] * d2[b]
                    s33 += w3[b] * d3[b]
                _add(second[k, i], j, s00, s01, s02, s03)
                _add(second[k, i + 1], j, s10, s11, s12, s13)
                _add(second[k, i + 2], j, s20, s21, s22, s23)
                _add(second[k, i + 3], j, s30, s31, s32, s33)


@njit(f"float64({_M}, {_M}, {_T}, {_V}, {_M}, boolean, {_M}, {_S}, {_R}, float64[:, :, ::1])",
      cache=True, nogil=True)  # fmt: skip
def full_pass(X, means, turned, constants, centres, hard, q, mass, first, second):
    """Responsibilities of the rows and their sums around ``centres``; returns the log-likelihood.

    With rows in ``q``, these are the responsibilities, and 0 is returned. ``turned`` (K, P, P), ``first``
    (K, P) and ``second`` (K, P, P) are padded to P, a multiple of 4.
    """
    n, p = X.shape
    K, P = means.shape[0], _padded(p)
    xt, d = np.zeros((P, _B)), np.zeros((P, _B))
    acc, e = np.empty((5, _B)), np.empty((K, _B))
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
    acc, e = np.empty((5, _B)), np.empty((K, _B))
    for start in range(0, n, _B):
        count = _turn(X, start, xt)
        _full_exponents(xt, means, turned, constants, d, acc, e)
        _keep(e, start, count, out)


# ---------------------------------------------------------------------------- diagonal covariances


@njit(
    f"void(float64[:, ::1], {_M}, {_M}, {_V}, float64[:, ::1])",
    cache=True,
    nogil=True,
    fastmath=_SUMS,
)
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
    """The same with one covariance; ``white`` and ``centres`` are less ``middle``.

    ``second`` adds up r r', r = x - sum_k q_k centre_k, and ``pairs`` q_k q_l.

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
