"""What the certificate of least squares sums over the rows, each read once.

For the residual r = y - (x - c)'w of a row with weight s: s r (x - c), s (x - c)^2, s (x - c) and s r. Sums
are kept over stretches of rows and then added, so that rounding grows with the number of stretches. No solver
uses it. A closed file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["residual_sums"]

_FAST = {"reassoc", "contract", "nsz"}
_STRETCH = 4096
_VECTOR = "Array(float64, 1, 'C', readonly=True)"
_SIGNATURES = [
    f"float64(Array({kind}, 2, 'C', readonly=True), {_VECTOR}, {_VECTOR}, {_VECTOR}, {_VECTOR}, "
    "int64, int64, float64[:, ::1])"
    for kind in ("float64", "float32")
]


@njit(_SIGNATURES, cache=True, nogil=True, fastmath=_FAST)
def residual_sums(X, y, s, w, c, first, last, sums):
    """Sum of s r over the rows first..last; the three other sums are added to the rows of ``sums``."""
    p = X.shape[1]
    push, squares, total = np.zeros(p), np.zeros(p), np.zeros(p)
    offset = 0.0
    start = first
    while start < last:
        stop = min(start + _STRETCH, last)
        push[:] = 0.0
        squares[:] = 0.0
        total[:] = 0.0
        for i in range(start, stop):
            z = 0.0
            for j in range(p):
                z += (X[i, j] - c[j]) * w[j]
            r = s[i] * (y[i] - z)
            offset += r
            for j in range(p):
                x = X[i, j] - c[j]
                push[j] += r * x
                squares[j] += s[i] * x * x
                total[j] += s[i] * x
        for j in range(p):
            sums[0, j] += push[j]
            sums[1, j] += squares[j]
            sums[2, j] += total[j]
        start = stop
    return offset
