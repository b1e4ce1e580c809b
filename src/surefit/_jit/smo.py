"""Sequential minimal optimisation on a block of the kernel matrix, and sums of Gaussian kernel rows.

The problem of :mod:`surefit.solvers.smo`, restricted to a working set with kernel block K:

    min_beta  1/2 beta'K beta - t'beta,     sum_i beta_i fixed,     lo_i <= beta_i <= hi_i,

with state (beta, v), v = t - K beta. One step moves beta_i up and beta_j down by the same amount: i has the
largest v of those that may go up, j promises the largest decrease of the objective with i (second-order
selection). Ties go to the last index, as in LIBSVM.

A largest value is searched in 64 lanes at once, one for each residue of the index, which the compiler can
vectorise where it cannot a running maximum; only the best lane is searched for the index. A closed file:
every jitted function it calls lives here.

References
----------
Fan, Chen & Lin, "Working set selection using second order information", JMLR 6 (2005).
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit
from numba.extending import overload

__all__ = ["add_rows", "gaussian_block", "gaussian_sum", "solve_block"]

_FAST = {"reassoc", "contract", "nsz", "nnan"}
_LANES = 64
_TAU = 1e-12  # least curvature of a pair: a kernel that is not positive definite may have less
_F = "float64[::1]"


@njit(f"float64({_F}, {_F}, {_F}, int64, float64)", cache=True, nogil=True, fastmath=_FAST)
def _end(v, barred, lanes, whole, sign):
    """The rest that fills no lanes, and the largest of all."""
    for k in range(whole, v.shape[0]):
        x = sign * (v[k] + barred[k])
        if x > lanes[k - whole]:
            lanes[k - whole] = x
    most = -np.inf
    for c in range(_LANES):
        if lanes[c] > most:
            most = lanes[c]
    return most


@njit(f"float64({_F}, {_F}, {_F}, int64)", cache=True, nogil=True, fastmath=_FAST)
def _best(v, barred, lanes, whole):
    """The largest v + barred; ``lanes`` keeps the largest of each residue of the index."""
    for c in range(_LANES):
        lanes[c] = -np.inf
    for start in range(0, whole, _LANES):
        some, bars = v[start : start + _LANES], barred[start : start + _LANES]
        for c in range(_LANES):
            x, m = some[c] + bars[c], lanes[c]
            lanes[c] = x if x > m else m
    return _end(v, barred, lanes, whole, 1.0)


@njit(f"float64({_F}, {_F}, {_F}, int64)", cache=True, nogil=True, fastmath=_FAST)
def _best_negated(v, barred, lanes, whole):
    """The largest -(v + barred)."""
    for c in range(_LANES):
        lanes[c] = -np.inf
    for start in range(0, whole, _LANES):
        some, bars = v[start : start + _LANES], barred[start : start + _LANES]
        for c in range(_LANES):
            x, m = -some[c] - bars[c], lanes[c]
            lanes[c] = x if x > m else m
    return _end(v, barred, lanes, whole, -1.0)


@njit(f"int64({_F}, {_F}, {_F}, float64, int64)", cache=True, nogil=True, fastmath=_FAST)
def _last(x, barred, lanes, most, whole):
    """The last index that is not barred and has x >= most, found through its lane."""
    found = 0
    for c in range(_LANES):
        if lanes[c] >= most:
            for k in range(c, x.shape[0], _LANES):
                if barred[k] == 0.0 and x[k] >= most and k > found:
                    found = k
    return found


@njit(
    [
        f"float64({_F}, Array({real}, 1, 'C', readonly=True), Array(float64, 1, 'C', readonly=True), {_F}, "
        f"float64, float64, {_F}, {_F}, int64)"
        for real in ("float32", "float64")
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def _gains(v, Ki, diag, not_low, vi, Kii, gain, lanes, whole):
    """The decrease of twice the objective that each partner of i promises; the largest."""
    for c in range(_LANES):
        lanes[c] = 0.0
    for start in range(0, whole, _LANES):
        end = start + _LANES
        some, bars, out = v[start:end], not_low[start:end], gain[start:end]
        row, squares = Ki[start:end], diag[start:end]
        for c in range(_LANES):
            d = vi - some[c] - bars[c]
            d = d if d > 0.0 else 0.0
            curvature = Kii + squares[c] - 2.0 * row[c]
            curvature = curvature if curvature > _TAU else _TAU
            x, m = d * d / curvature, lanes[c]
            out[c] = x
            lanes[c] = x if x > m else m
    for k in range(whole, v.shape[0]):
        d = vi - v[k] - not_low[k]
        d = d if d > 0.0 else 0.0
        curvature = Kii + diag[k] - 2.0 * Ki[k]
        gain[k] = d * d / (curvature if curvature > _TAU else _TAU)
        if gain[k] > lanes[k - whole]:
            lanes[k - whole] = gain[k]
    best = 0.0
    for c in range(_LANES):
        if lanes[c] > best:
            best = lanes[c]
    return best


@njit(
    [
        f"int64(Array({real}, 2, 'C', readonly=True), Array(float64, 1, 'C', readonly=True), {_F}, {_F}, "
        f"Array(float64, 1, 'C', readonly=True), Array(float64, 1, 'C', readonly=True), float64, int64, {_F})"
        for real in ("float32", "float64")
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def solve_block(K, diag, v, beta, lo, hi, tol, max_iter, violation):
    """Steps until the violation max_up v - min_low v is at most ``tol``; how many were made.

    ``v`` and ``beta`` are advanced in place; ``violation[0]`` is the violation at the end.
    """
    n = K.shape[0]
    whole = n - n % _LANES
    not_up = np.empty(n)  # 0 where beta may rise, -inf where it may not
    not_low = np.empty(n)  # 0 where beta may fall, inf where it may not
    for k in range(n):
        not_up[k] = 0.0 if beta[k] < hi[k] else -np.inf
        not_low[k] = 0.0 if beta[k] > lo[k] else np.inf
    up, low, gain = np.empty(_LANES), np.empty(_LANES), np.empty(n)
    i, j, step, done = 0, 0, 0.0, 0
    while True:
        Ki, Kj = K[i], K[j]
        for k in range(n):
            v[k] -= step * (Ki[k] - Kj[k])
        most = _best(v, not_up, up, whole)
        least = -_best_negated(v, not_low, low, whole)
        violation[0] = most - least
        if not most - least > tol or done >= max_iter:
            return done
        i = _last(v, not_up, up, most, whole)
        Ki, vi, Kii = K[i], v[i], diag[i]
        best = _gains(v, Ki, diag, not_low, vi, Kii, gain, low, whole)
        j = _last(gain, not_low, low, best, whole)
        curvature = Kii + diag[j] - 2.0 * Ki[j]
        step = (vi - v[j]) / (curvature if curvature > _TAU else _TAU)
        room_i, room_j = hi[i] - beta[i], beta[j] - lo[j]
        if step >= room_i or step >= room_j:
            step = min(room_i, room_j)
        beta[i] = hi[i] if step >= room_i else beta[i] + step
        beta[j] = lo[j] if step >= room_j else beta[j] - step
        for k in (i, j):
            not_up[k] = 0.0 if beta[k] < hi[k] else -np.inf
            not_low[k] = 0.0 if beta[k] > lo[k] else np.inf
        done += 1


@njit("void(float32[::1], int32[::1])", cache=True, nogil=True, fastmath=_FAST, inline="never")
def _exp32(x, power):
    """exp(x) = x * 2^..: the mantissa in place, the bits of the power of two in ``power``; x <= 0."""
    for c in range(x.shape[0]):
        u = x[c]
        u = u if u < np.float32(0.0) else np.float32(0.0)
        u = u if u > np.float32(-87.0) else np.float32(-87.0)
        z = np.float32(np.floor(u * np.float32(1.44269504) + np.float32(0.5)))
        u = u - z * np.float32(0.693359375)
        u = u + z * np.float32(2.12194440e-4)
        p = np.float32(1.9875691500e-4)
        p = p * u + np.float32(1.3981999507e-3)
        p = p * u + np.float32(8.3334519073e-3)
        p = p * u + np.float32(4.1665795894e-2)
        p = p * u + np.float32(1.6666665459e-1)
        p = p * u + np.float32(5.0000001201e-1)
        x[c] = p * u * u + u + np.float32(1.0)
        power[c] = (np.int32(z) + np.int32(127)) << np.int32(23)


@njit("void(float64[::1], int64[::1])", cache=True, nogil=True, fastmath=_FAST, inline="never")
def _exp64(x, power):
    """The same in double precision, by the Taylor sum on [-ln 2 / 2, ln 2 / 2] to 1e-16."""
    for c in range(x.shape[0]):
        u = x[c]
        u = u if u < 0.0 else 0.0
        u = u if u > -708.0 else -708.0
        z = np.floor(u * 1.4426950408889634 + 0.5)
        u = u - z * 0.6931471803691238
        u = u - z * 1.9082149292705877e-10
        p = 1.6059043836821613e-10
        p = p * u + 2.08767569878681e-09
        p = p * u + 2.505210838544172e-08
        p = p * u + 2.755731922398589e-07
        p = p * u + 2.7557319223985893e-06
        p = p * u + 2.48015873015873e-05
        p = p * u + 0.0001984126984126984
        p = p * u + 0.001388888888888889
        p = p * u + 0.008333333333333333
        p = p * u + 0.041666666666666664
        p = p * u + 0.16666666666666666
        p = p * u + 0.5
        x[c] = p * u * u + u + 1.0
        power[c] = (np.int64(z) + np.int64(1023)) << np.int64(52)


def _exp(x, power):
    """The exponential of the precision of ``x``; kernels call it by this name."""


@overload(_exp, inline="never")
def _exp_of(x, power):
    """Chosen by type at compile time. A closure over the function would be compiled, and cached, anew in
    each process."""
    if x.dtype == float32:

        def single(x, power):
            _exp32(x, power)

        return single

    def double(x, power):
        _exp64(x, power)

    return double


@njit(
    [
        f"void(float32[:, ::1], int32[::1], float32[::1], {_F}, {_F})",
        f"void(float64[:, ::1], int64[::1], float64[::1], {_F}, {_F})",
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def _total(E, power, scale, weights, out):
    """``out += exp(E).T @ weights``; ``scale`` is ``power`` read as numbers."""
    part = np.zeros_like(scale)  # of 32 rows, in their precision
    part_of = np.zeros_like(scale[:1])
    for c in range(E.shape[0]):
        row = E[c]
        part_of[0] = weights[c]
        w = part_of[0]
        _exp(row, power)
        for r in range(row.shape[0]):
            part[r] += w * row[r] * scale[r]
        if c % 32 == 31 or c == E.shape[0] - 1:
            for r in range(row.shape[0]):
                out[r] += part[r]
                part[r] = 0.0


@njit(
    [
        "void(float32[:, ::1], int32[::1], float32[::1])",
        "void(float64[:, ::1], int64[::1], float64[::1])",
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def _block(E, power, scale):
    """``exp(E)`` in place."""
    for c in range(E.shape[0]):
        row = E[c]
        _exp(row, power)
        for r in range(row.shape[0]):
            row[r] *= scale[r]


def gaussian_sum(E, weights, out):
    """``out += exp(E).T @ weights``, with exponents E <= 0 that are overwritten."""
    power = np.empty(E.shape[1], dtype=np.int32 if E.dtype == np.float32 else np.int64)
    _total(E, power, power.view(E.dtype), weights, out)


def gaussian_block(E):
    """``exp(E)`` in place, for exponents E <= 0."""
    power = np.empty(E.shape[1], dtype=np.int32 if E.dtype == np.float32 else np.int64)
    _block(E, power, power.view(E.dtype))


@njit(
    [
        f"void(Array({real}, 2, 'C', readonly=True), Array(int64, 1, 'C', readonly=True), "
        f"Array(float64, 1, 'C', readonly=True), int64, int64, {_F})"
        for real in ("float32", "float64")
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def add_rows(rows, slots, weights, begin, end, out):
    """``out[begin:end] += sum_k weights[k] * rows[slots[k], begin:end]``."""
    for start in range(begin, end, 2048):
        stop = min(end, start + 2048)
        for k in range(slots.shape[0]):
            row, w = rows[slots[k]], weights[k]
            for c in range(start, stop):
                out[c] += w * row[c]
