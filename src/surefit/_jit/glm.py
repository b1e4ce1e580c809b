"""Loss and slopes of logistic and softmax regression, row by row.

With one column of coefficients a row is read once: its score, its loss, its slope and its share of the
gradient, while it is in the cache. With several the two products are better left to the matrix library, and
what is between them is here. Sums are kept over stretches of rows and then added, so that rounding grows with
the number of stretches. A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["logistic_rows", "softmax_slopes"]

_FAST = {"reassoc", "contract", "nsz"}
_STRETCH = 4096
_VECTOR = "Array(float64, 1, 'C', readonly=True)"
_LOGISTIC = [
    f"UniTuple(float64, 2)(Array({kind}, 2, 'C', readonly=True), {_VECTOR}, {_VECTOR}, {_VECTOR}, "
    "float64, int64, int64, float64[::1])"
    for kind in ("float64", "float32")
]
_CODES = "Array(int64, 1, 'C', readonly=True)"
_SOFTMAX = f"float64(float64[:, ::1], {_CODES}, {_VECTOR}, {_VECTOR}, float64[::1])"


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
        some, push = 0.0, 0.0
        for i in range(start, stop):
            z = b
            for j in range(p):
                z += X[i, j] * w[j]
            eta = y[i] * z
            tail = math.exp(-abs(eta))
            some += s[i] * (math.log1p(tail) - min(eta, 0.0))
            theta = -s[i] * y[i] * (tail if eta >= 0.0 else 1.0) / (1.0 + tail)
            push += theta
            for j in range(p):
                part[j] += theta * X[i, j]
        value += some
        total += push
        for j in range(p):
            slope[j] += part[j]
        start = stop
    return value, total


@njit(_SOFTMAX, cache=True, nogil=True, fastmath=_FAST)
def softmax_slopes(z, y, s, b, slope_b):
    """Loss of the rows with scores z + b; z becomes their weighted slopes, added up in ``slope_b``."""
    n, classes = z.shape
    value = 0.0
    for i in range(n):
        largest = z[i, 0] + b[0]
        for k in range(classes):
            z[i, k] += b[k]
            largest = max(largest, z[i, k])
        own, total = z[i, y[i]], 0.0
        for k in range(classes):
            z[i, k] = math.exp(z[i, k] - largest)
            total += z[i, k]
        value += s[i] * (largest + math.log(total) - own)
        share = s[i] / total
        for k in range(classes):
            z[i, k] *= share
        z[i, y[i]] -= s[i]
        for k in range(classes):
            slope_b[k] += z[i, k]
    return value
