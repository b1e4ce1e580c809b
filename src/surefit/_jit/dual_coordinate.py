"""Dual coordinate descent on a box: the sweeps of the linear support vector machines.

The problem, in the signed dual variables beta (one a row; w = sum_i beta_i x_i, v = bias sum_i beta_i), is

    min_{low <= beta <= high}  1/2 ||w||^2 + 1/2 v^2 + sum_i [d_i beta_i^2 / 2 - t_i beta_i + eps |beta_i|].

One step minimises over one coordinate, exactly. Rows whose bound holds them, by more than the largest
violation of the sweep before, are left out (shrinking). Rows are visited in random order, in small groups
that lie together in memory: the groups come in random order, and so do the rows within one. A closed file:
every jitted function it calls lives here.

Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM"
(2008).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["add_rows", "dot_rows", "sweep_dense", "sweep_sparse"]

_GROUP = 16  # rows that are visited together
_FAST = {"reassoc", "contract", "nsz"}
_RO = "Array(float64, 1, 'C', readonly=True)"
_PROBLEM = f"{_RO}, {_RO}, {_RO}, {_RO}, {_RO}, float64, float64"
_STATE = "float64[::1], float64[::1], float64[::1], int64[::1], int64, float64, uint64[::1]"


@njit("uint64(uint64[::1])", cache=True, nogil=True)
def _random(state):
    """xorshift64: the next state, which is the random number."""
    x = state[0]
    x ^= x << 13
    x ^= x >> 7
    x ^= x << 17
    state[0] = x
    return x


@njit("void(int64[::1], int64[::1], int64, int64, uint64[::1])", cache=True, nogil=True)
def _group(order, local, first, count, state):
    """The entries first, ..., first + count - 1 of ``order``, shuffled, into ``local``."""
    for k in range(count):
        other = int((_random(state) >> 1) % (k + 1))
        local[k] = local[other]
        local[other] = order[first + k]


@njit("int64[::1](int64, uint64[::1])", cache=True, nogil=True)
def _permutation(count, state):
    order = np.empty(count, dtype=np.int64)
    for k in range(count):
        other = int((_random(state) >> 1) % (k + 1))
        order[k] = order[other]
        order[other] = k
    return order


@njit("int64(int64[::1], int64, boolean[::1])", cache=True, nogil=True)
def _compact(order, count, gone):
    """Those that stay come first, in order; then those that are gone."""
    left = np.empty(count, dtype=np.int64)
    kept, lost = 0, 0
    for k in range(count):
        i = order[k]
        if gone[i]:
            left[lost] = i
            lost += 1
        else:
            order[kept] = i
            kept += 1
    for k in range(lost):
        order[kept + k] = left[k]
    return kept


@njit(
    "UniTuple(float64, 2)(float64, float64, float64, float64, float64, float64)",
    cache=True,
    nogil=True,
)
def _step(beta, slope, curvature, low, high, eps):
    """The minimiser over one coordinate, and how much its bound holds it (negative: a violation)."""
    right = slope + (eps if beta >= 0.0 else -eps)
    left = slope + (eps if beta > 0.0 else -eps)
    held = 1e300
    if beta < high:
        held = min(held, right)
    if beta > low:
        held = min(held, -left)
    if held >= 0.0 or curvature <= 0.0:
        return beta, held
    if right < 0.0 and beta < high:
        new = beta - right / curvature
        if beta < 0.0 < new:  # past the kink at 0
            new = max(0.0, new - 2.0 * eps / curvature)
        return min(new, high), held
    new = beta - left / curvature
    if new < 0.0 < beta:
        new = min(0.0, new + 2.0 * eps / curvature)
    return max(new, low), held


@njit(
    [
        f"Tuple((int64, float64))({_RO}, Array({index}, 1, 'C', readonly=True), "
        f"Array({index}, 1, 'C', readonly=True), {_PROBLEM}, {_STATE})"
        for index in ("int32", "int64")
    ],
    cache=True,
    nogil=True,
)
def sweep_sparse(
    data, columns, ptr, norm2, t, d, low, high, eps, bias, w, v, beta, order, count, limit, state
):
    """Visit the first ``count`` rows of ``order`` once; how many stay, and the largest violation.

    A row that its bound holds by more than ``limit`` is moved behind those that stay.
    """
    gone = np.zeros(len(beta), dtype=np.bool_)
    local = np.empty(_GROUP, dtype=np.int64)
    worst, lost = 0.0, 0
    for group in _permutation((count + _GROUP - 1) // _GROUP, state):
        size = min(_GROUP, count - group * _GROUP)
        _group(order, local, group * _GROUP, size, state)
        for k in range(size):
            i = local[k]
            a, end = ptr[i], ptr[i + 1]
            z = bias * v[0]
            z1, z2, z3 = 0.0, 0.0, 0.0
            while a + 4 <= end:  # several sums at once: a gather of the processor would be slower
                z += data[a] * w[columns[a]]
                z1 += data[a + 1] * w[columns[a + 1]]
                z2 += data[a + 2] * w[columns[a + 2]]
                z3 += data[a + 3] * w[columns[a + 3]]
                a += 4
            while a < end:
                z += data[a] * w[columns[a]]
                a += 1
            z += z1 + (z2 + z3)
            old = beta[i]
            slope = z + d[i] * old - t[i]
            new, held = _step(old, slope, norm2[i] + d[i], low[i], high[i], eps)
            if held > limit:
                gone[i] = True
                lost += 1
                continue
            worst = max(worst, -held)
            if new != old:
                move = new - old
                beta[i] = new
                v[0] += bias * move
                for a in range(ptr[i], ptr[i + 1]):
                    w[columns[a]] += move * data[a]
    return (_compact(order, count, gone) if lost else count), worst


@njit(
    f"Tuple((int64, float64))(Array(float64, 2, 'C', readonly=True), {_PROBLEM}, {_STATE})",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def sweep_dense(X, norm2, t, d, low, high, eps, bias, w, v, beta, order, count, limit, state):
    """The same on dense rows."""
    gone = np.zeros(len(beta), dtype=np.bool_)
    local = np.empty(_GROUP, dtype=np.int64)
    worst, lost = 0.0, 0
    for group in _permutation((count + _GROUP - 1) // _GROUP, state):
        size = min(_GROUP, count - group * _GROUP)
        _group(order, local, group * _GROUP, size, state)
        for k in range(size):
            i = local[k]
            z = bias * v[0]
            for j in range(X.shape[1]):
                z += X[i, j] * w[j]
            old = beta[i]
            slope = z + d[i] * old - t[i]
            new, held = _step(old, slope, norm2[i] + d[i], low[i], high[i], eps)
            if held > limit:
                gone[i] = True
                lost += 1
                continue
            worst = max(worst, -held)
            if new != old:
                move = new - old
                beta[i] = new
                v[0] += bias * move
                for j in range(X.shape[1]):
                    w[j] += move * X[i, j]
    return (_compact(order, count, gone) if lost else count), worst


_CSR = [
    f"{_RO}, Array({index}, 1, 'C', readonly=True), Array({index}, 1, 'C', readonly=True)"
    for index in ("int32", "int64")
]
_ROWS = "Array(int64, 1, 'C', readonly=True)"


@njit(
    [f"void({m}, {_ROWS}, {_RO}, float64[::1], int64, int64)" for m in _CSR], cache=True, nogil=True
)
def dot_rows(data, columns, ptr, rows, w, out, first, last):
    """out[k] = <x_i, w> for i = rows[k], first <= k < last."""
    for k in range(first, last):
        a, end = ptr[rows[k]], ptr[rows[k] + 1]
        z, z1, z2, z3 = 0.0, 0.0, 0.0, 0.0
        while a + 4 <= end:
            z += data[a] * w[columns[a]]
            z1 += data[a + 1] * w[columns[a + 1]]
            z2 += data[a + 2] * w[columns[a + 2]]
            z3 += data[a + 3] * w[columns[a + 3]]
            a += 4
        while a < end:
            z += data[a] * w[columns[a]]
            a += 1
        out[k] = (z + z1) + (z2 + z3)


@njit(
    [f"void({m}, {_ROWS}, {_RO}, float64[::1], int64, int64)" for m in _CSR], cache=True, nogil=True
)
def add_rows(data, columns, ptr, rows, factor, w, first, last):
    """w += sum of factor[k] x_i for i = rows[k], first <= k < last."""
    for k in range(first, last):
        move = factor[k]
        for a in range(ptr[rows[k]], ptr[rows[k] + 1]):
            w[columns[a]] += move * data[a]
