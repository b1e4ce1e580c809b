"""Loss and slopes of logistic regression, and slopes of least squares, row by row.

A row is read once: its score, its loss, its slope and its share of the gradient, while it is in the cache.
Logarithms are slow and a product is not: over a run of rows with equal weights, sum log(1 + e_i) = log prod
(1 + e_i), taken before the product overflows; an e_i so small that 1 + e_i would lose its digits is left to
the series of log(1 + e). Sums are kept over stretches of rows and then added, so that rounding grows with the
number of stretches. A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["logistic_rows", "squared_rows"]

_FAST = {"reassoc", "contract", "nsz"}
_STRETCH = 4096
_SMALL = 1e-5  # e - e^2/2 + e^3/3 is log(1 + e) to rounding below this
_FULL = 1e300
_VECTOR = "Array(float64, 1, 'C', readonly=True)"
_LOGISTIC = [
    f"UniTuple(float64, 2)(Array({kind}, 2, 'C', readonly=True), {_VECTOR}, {_VECTOR}, {_VECTOR}, "
    "float64, int64, int64, float64[::1])"
    for kind in ("float64", "float32")
]
_SQUARED = [
    f"float64(Array({kind}, 2, 'C', readonly=True), {_VECTOR}, {_VECTOR}, {_VECTOR}, {_VECTOR}, "
    "int64, int64, float64[::1])"
    for kind in ("float64", "float32")
]


@njit(_LOGISTIC, cache=True, nogil=True, fastmath=_FAST)
def logistic_rows(X, y, s, w, b, first, last, slope):
    """Loss and sum of slopes of rows first..last; their gradient is added to ``slope``."""
    p = X.shape[1]
    value, total = 0.0, 0.0
    part = np.zeros(p)
    start = first
    while start < last:
        stop = min(start + _STRETCH, last)
        part[:] = 0.0
        some, push, weight, product = 0.0, 0.0, 0.0, 1.0
        for i in range(start, stop):
            z = b
            for j in range(p):
                z += X[i, j] * w[j]
            eta = y[i] * z
            tail = math.exp(-abs(eta))
            some -= s[i] * min(eta, 0.0)
            if tail < _SMALL:
                some += s[i] * tail * (1.0 - tail * (0.5 - tail / 3.0))
            else:
                if s[i] != weight or product > _FULL:
                    some += weight * math.log(product)
                    weight, product = s[i], 1.0
                product *= 1.0 + tail
            theta = -s[i] * y[i] * (tail if eta >= 0.0 else 1.0) / (1.0 + tail)
            push += theta
            for j in range(p):
                part[j] += theta * X[i, j]
        value += some + weight * math.log(product)
        total += push
        for j in range(p):
            slope[j] += part[j]
        start = stop
    return value, total


@njit(_SQUARED, cache=True, nogil=True, fastmath=_FAST)
def squared_rows(X, y, s, w, c, first, last, slope):
    """Sum of the residuals s(y - (X - c) w) of rows first..last; (X - c)' of them is added to ``slope``."""
    p = X.shape[1]
    total = 0.0
    part = np.zeros(p)
    start = first
    while start < last:
        stop = min(start + _STRETCH, last)
        part[:] = 0.0
        for i in range(start, stop):
            z = 0.0
            for j in range(p):
                z += (X[i, j] - c[j]) * w[j]
            r = s[i] * (y[i] - z)
            total += r
            for j in range(p):
                part[j] += r * (X[i, j] - c[j])
        for j in range(p):
            slope[j] += part[j]
        start = stop
    return total
