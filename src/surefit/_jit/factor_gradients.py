"""What the certificate of a factorisation sums over the observed entries, in float64; no solver uses it.

For a row with factors z, an entry's prediction m = <f_j, z> and its target t: the gradient sum_j (m - t)
f_j, its value -sum_j t f_j at z = 0, the squares of the residuals, and the sizes that bound the rounding of
these sums. A closed file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["row_gradients"]

_I64 = "Array(int64, 1, 'C', readonly=True)"
_I32 = "Array(int32, 1, 'C', readonly=True)"
_V = "Array(float64, 1, 'C', readonly=True)"
_M = "Array(float64, 2, 'C', readonly=True)"


@njit(
    f"void({_I64}, {_I32}, {_V}, {_M}, {_V}, {_V}, {_M}, "
    "boolean, float64[:, ::1], float64[:, ::1], float64[:, ::1], int64, int64)",
    cache=True,
    nogil=True,
    fastmath={"reassoc", "contract", "nsz"},
)
def row_gradients(
    indptr, indices, values, F, shift, norms, Z, implicit, grad, right, numbers, first, last
):
    """Sums over the entries of the rows first..last.

    ``numbers`` receives of each row: the squares, the rounding size of the squares, and that of the
    gradient. ``implicit`` reads the values as confidences c of a target 1, in a sum over all pairs with
    weight 1 and target 0 else: the entry then adds ((c - 1) m - c) f.
    """
    k = F.shape[1]
    for i in range(first, last):
        z, g, h = Z[i], grad[i], right[i]
        own = 0.0
        for a in range(k):
            own += z[a] * z[a]
            g[a] = 0.0
            h[a] = 0.0
        own = np.sqrt(own)
        squares = spread = size = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            f = F[j]
            m = 0.0
            for a in range(k):
                m += f[a] * z[a]
            big = norms[j] * own
            if implicit:
                c = values[e]
                slope, target = (c - 1.0) * m - c, c
                squares += c * (1.0 - m) * (1.0 - m) - m * m
                spread += c * (1.0 + big) * (1.0 + big)
                size += norms[j] * (abs(c - 1.0) * big + c)
            else:
                target = values[e] - shift[j]
                slope = m - target
                squares += slope * slope
                spread += abs(slope) * (big + abs(values[e]) + abs(shift[j]))
                size += norms[j] * (big + abs(values[e]) + abs(shift[j]))
            for a in range(k):
                g[a] += slope * f[a]
                h[a] -= target * f[a]
        numbers[i, 0] = squares
        numbers[i, 1] = spread
        numbers[i, 2] = size
