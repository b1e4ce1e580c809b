"""Kernels of GloVe: steps over the entries of a block, and the loss row by row.

A row of a side is (w, b, 1, 0...) or (z, 1, c, 0...): the product of two rows holds the biases, and the
length is a multiple of the lanes, so that every loop over a row is made of whole vectors. The ones are
written back after each step. A closed file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["row_losses", "steps"]

_FAST = {"reassoc", "contract", "nsz"}
_I32 = "Array(int32, 1, 'C', readonly=True)"
_I64 = "Array(int64, 1, 'C', readonly=True)"
_F32 = "Array(float32, 1, 'C', readonly=True)"
_F64 = "Array(float64, 1, 'C', readonly=True)"
_MAT = "Array(float64, 2, 'C', readonly=True)"
_RUN = 64


@njit(
    f"float64({_I32}, {_I32}, {_F32}, {_F32}, {_I64}, int64, float32[:, ::1], float32[:, ::1], "
    f"float32[:, ::1], float32[:, ::1], {_F32}, {_F32}, float32, int64, boolean, boolean)",
    cache=True,
    nogil=True,
    fastmath=_FAST,
    error_model="numpy",  # a division that may raise is not vectorised
)
def steps(
    rows,
    columns,
    logs,
    weights,
    starts,
    stop,
    W,
    S,
    Z,
    T,
    lam_w,
    lam_z,
    rate,
    one,
    biases,
    adaptive,
):
    """A step for each entry; returns half the weighted squares that were met, before their steps.

    Entries come in runs of 64 that begin at ``starts``, the last of them before ``stop``. The entry (i, j)
    with error e = <w, z> - x moves w against g = f e z + lam w, and z alike: by rate g, or with ``adaptive``
    by rate g / sqrt(s), s the sum of the squares of rate g so far, which S and T hold. With ``biases``
    columns ``one`` of Z and ``one + 1`` of W are ones that stay.
    """
    k = W.shape[1]
    total = 0.0
    for start in starts:
        part = np.float32(0)
        for e in range(start, min(start + _RUN, stop)):
            i, j = rows[e], columns[e]
            w, z = W[i], Z[j]
            m = np.float32(0)
            for a in range(k):
                m += w[a] * z[a]
            error = m - logs[e]
            slope = weights[e] * error
            part += slope * error
            lw, lz = lam_w[i], lam_z[j]
            if adaptive:
                s, t = S[i], T[j]
                for a in range(k):
                    x, y = w[a], z[a]
                    g, h = rate * (slope * y + lw * x), rate * (slope * x + lz * y)
                    s[a] += g * g
                    t[a] += h * h
                    w[a] = x - g / np.sqrt(s[a])
                    z[a] = y - h / np.sqrt(t[a])
            else:
                for a in range(k):
                    x, y = w[a], z[a]
                    w[a] = x - rate * (slope * y + lw * x)
                    z[a] = y - rate * (slope * x + lz * y)
            if biases:
                z[one] = 1
                w[one + 1] = 1
        total += np.float64(part)
    return 0.5 * total


@njit(
    f"void({_I64}, {_I32}, {_F64}, {_F64}, {_MAT}, {_MAT}, float64[::1], int64, int64)",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def row_losses(indptr, indices, logs, weights, W, Z, out, first, last):
    """Half the weighted squares of the residuals of the rows first..last."""
    k = W.shape[1]
    for i in range(first, last):
        w, total = W[i], 0.0
        for e in range(indptr[i], indptr[i + 1]):
            z, m = Z[indices[e]], 0.0
            for a in range(k):
                m += w[a] * z[a]
            total += weights[e] * (m - logs[e]) ** 2
        out[i] = 0.5 * total
