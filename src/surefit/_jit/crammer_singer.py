"""Sweeps of the sequential dual method for Crammer and Singer's multi-class support vector machine.

The problem has a row of dual variables for each sample, beta_im <= c_i [m = y_i] with sum_m beta_im = 0,
w_m = sum_i beta_im x_i, and

    min_beta  1/2 sum_m ||w_m||^2 + sum_i sum_m [m != y_i] beta_im.

One step minimises over the variables of one sample, exactly: with A = ||x_i||^2 (+ B^2) and g_m = [m !=
y_i] + <w_m, x_i> - A beta_im the solution is beta_im = min(c_im, (theta - g_m) / A), and sorting the K
numbers A c_im + g_m finds theta. A closed file.

Keerthi, Sundararajan, Chang, Hsieh & Lin, "A sequential dual method for large scale multi-class linear SVMs"
(2008); Crammer & Singer (2001).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sweep_classes_dense", "sweep_classes_sparse"]

_RO = "Array(float64, 1, 'C', readonly=True)"
_INDEX = "Array(int64, 1, 'C', readonly=True)"
_STATE = "float64[:, ::1], float64[::1], float64[:, ::1], int64[::1], float64"
_TAIL = f"{_RO}, {_INDEX}, {_RO}, float64, {_STATE}"


@njit("void(float64[::1], int64, float64, float64, float64[::1])", cache=True, nogil=True)
def _minimise(g, own, c, A, new):
    """The minimiser over one sample's variables, into ``new``."""
    K = len(g)
    D = g.copy()
    D[own] += A * c
    D = np.sort(D)[::-1]
    theta = D[0] - A * c
    r = 1
    while r < K and theta < r * D[r]:
        theta += D[r]
        r += 1
    theta /= r
    for m in range(K):
        bound = c if m == own else 0.0
        new[m] = min(bound, (theta - g[m]) / A)


@njit(
    "float64(float64[::1], int64, float64, Array(float64, 1, 'C', readonly=False))",
    cache=True,
    nogil=True,
)
def _violation(slope, own, c, beta):
    """By how much the largest slope, over all variables, exceeds the least over those not at their bound."""
    top, bottom = -1e300, 1e300
    for m in range(len(slope)):
        top = max(top, slope[m])
        if beta[m] < (c if m == own else 0.0):
            bottom = min(bottom, slope[m])
    return max(0.0, top - bottom)


@njit(
    "float64(float64[::1], int64, Array(float64, 1, 'C', readonly=False))", cache=True, nogil=True
)
def _settled(slope, own, beta):
    """By how much its own class's score is above the others', less 1, where all variables are 0; else -1."""
    others = -1e300
    for m in range(len(slope)):
        if beta[m] != 0.0:
            return -1.0
        if m != own:
            others = max(others, slope[m])
    return slope[own] - others


@njit(
    [
        f"Tuple((int64, float64))({_RO}, Array({index}, 1, 'C', readonly=True), "
        f"Array({index}, 1, 'C', readonly=True), {_TAIL}, int64)"
        for index in ("int32", "int64")
    ],
    cache=True,
    nogil=True,
)
def sweep_classes_sparse(data, columns, ptr, norm2, y, c, bias, W, v, beta, order, limit, count):
    """Visit the first ``count`` samples of ``order``; how many stay, and the largest violation.

    W has one row a feature. A sample whose variables all lie at their bounds, by more than ``limit``, is
    moved behind those that stay.
    """
    K = W.shape[1]
    slope, new = np.empty(K), np.empty(K)
    worst, k = 0.0, 0
    while k < count:
        i = order[k]
        own, A = y[i], norm2[i]
        for m in range(K):
            slope[m] = (0.0 if m == own else 1.0) + bias * v[m]
        for a in range(ptr[i], ptr[i + 1]):
            x, row = data[a], W[columns[a]]
            for m in range(K):
                slope[m] += x * row[m]
        if _settled(slope, own, beta[i]) > limit:
            count -= 1
            order[k], order[count] = order[count], i
            continue
        worst = max(worst, _violation(slope, own, c[i], beta[i]))
        if A > 0.0:
            for m in range(K):
                slope[m] -= A * beta[i, m]
            _minimise(slope, own, c[i], A, new)
            for m in range(K):
                slope[m] = new[m] - beta[i, m]
                beta[i, m] = new[m]
                v[m] += bias * slope[m]
            for a in range(ptr[i], ptr[i + 1]):
                x, row = data[a], W[columns[a]]
                for m in range(K):
                    row[m] += x * slope[m]
        k += 1
    return count, worst


@njit(
    f"Tuple((int64, float64))(Array(float64, 2, 'C', readonly=True), {_TAIL}, int64)",
    cache=True,
    nogil=True,
)
def sweep_classes_dense(X, norm2, y, c, bias, W, v, beta, order, limit, count):
    """The same on dense rows."""
    K = W.shape[1]
    slope, new = np.empty(K), np.empty(K)
    worst, k = 0.0, 0
    while k < count:
        i = order[k]
        own, A = y[i], norm2[i]
        for m in range(K):
            slope[m] = (0.0 if m == own else 1.0) + bias * v[m]
        for j in range(X.shape[1]):
            x, row = X[i, j], W[j]
            for m in range(K):
                slope[m] += x * row[m]
        if _settled(slope, own, beta[i]) > limit:
            count -= 1
            order[k], order[count] = order[count], i
            continue
        worst = max(worst, _violation(slope, own, c[i], beta[i]))
        if A > 0.0:
            for m in range(K):
                slope[m] -= A * beta[i, m]
            _minimise(slope, own, c[i], A, new)
            for m in range(K):
                slope[m] = new[m] - beta[i, m]
                beta[i, m] = new[m]
                v[m] += bias * slope[m]
            for j in range(X.shape[1]):
                x, row = X[i, j], W[j]
                for m in range(K):
                    row[m] += x * slope[m]
        k += 1
    return count, worst
