"""Kernel of k-means++: distances to a few candidates, from differences. A closed file."""

from __future__ import annotations

from numba import njit, types

__all__ = ["closer"]

_F64 = types.float64


@njit(
    [
        types.void(
            types.Array(kind, 2, "C", readonly=True), types.Array(_F64, 2, "C", readonly=True),
            types.Array(_F64, 1, "C", readonly=True), types.Array(_F64, 1, "C", readonly=True),
            types.Array(_F64, 2, "C"), types.Array(_F64, 1, "C"),
        )
        for kind in (types.float32, types.float64)
    ],
    cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"},
)  # fmt: skip
def closer(X, rows, closest, weights, found, totals):
    """found_ic = min(closest_i, |x_i - row_c|^2) and totals_c = sum_i weight_i found_ic."""
    for i in range(X.shape[0]):
        x = X[i]
        for c in range(rows.shape[0]):
            row, total = rows[c], 0.0
            for j in range(X.shape[1]):
                d = _F64(x[j]) - row[j]
                total += d * d
            total = min(total, closest[i])
            found[i, c] = total
            totals[c] += weights[i] * total
