"""Loss and slopes of logistic regression, row by row.

A row is read once: its score, its loss, its slope and its share of the gradient, while it is in the cache.
Sums are kept over stretches of rows and then added, so that rounding grows with the number of stretches. A
closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["logistic_rows"]

_FAST = {"reassoc", "contract", "nsz"}
_STRETCH = 4096
_VECTOR = "Array(float64, 1, 'C', readonly=True)"
_LOGISTIC = [
    f"UniTuple(float64, 2)(Array({kind}, 2, 'C', readonly=True), {_VECTOR}, {_VECTOR}, {_VECTOR}, "
    "float64, int64, int64, float64[::1])"
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
