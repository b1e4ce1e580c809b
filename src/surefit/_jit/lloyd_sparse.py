"""Kernel of k-means assignment for sparse rows; see :mod:`surefit.solvers.assignment`. A closed file."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

__all__ = ["assign_sparse", "squares_sparse"]

_F32, _F64, _I32, _I64 = types.float32, types.float64, types.int32, types.int64
_PAIRS = [(kind, whole) for kind in (_F32, _F64) for whole in (_I32, _I64)]


def _table(kind, dims=1):
    return types.Array(kind, dims, "C", readonly=True)


@njit(
    [
        _I64(
            _table(kind), _table(whole), _table(whole), _table(_F64, 2), _table(_F64), _F64, _F64,
            types.Array(_I32, 1, "C"), types.Array(_I64, 1, "C"),
            types.boolean, _table(_F64), types.Array(_F64, 2, "C"), types.Array(_F64, 1, "C"),
        )
        for kind, whole in _PAIRS
    ],
    cache=True, nogil=True,
)  # fmt: skip
def assign_sparse(data, indices, indptr, columns, halves, slope, floor, labels, undecided, collect,
                  weights, sums, masses):  # fmt: skip
    """Labels by scores half_j - <x, c_j>, which err by at most slope * |x| + floor.

    ``columns`` are the centres transposed. Rows whose best two scores are closer than that allows go to
    ``undecided`` and not into the sums; their number is returned.
    """
    k, doubts = len(halves), 0
    scores = np.empty(k)
    for i in range(len(labels)):
        scores[:] = halves
        square = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            x, column = _F64(data[at]), columns[indices[at]]
            square += x * x
            for j in range(k):
                scores[j] -= x * column[j]
        best, second, label = np.inf, np.inf, 0
        for j in range(k):
            if scores[j] < best:
                second, best, label = best, scores[j], j
            elif scores[j] < second:
                second = scores[j]
        labels[i] = label
        if not second - best > 2.0 * (slope * math.sqrt(square) * 1.001 + floor):
            undecided[doubts] = i
            doubts += 1
            continue
        if collect:
            w = weights[i] if len(weights) else 1.0
            masses[label] += w
            for at in range(indptr[i], indptr[i + 1]):
                sums[label, indices[at]] += w * _F64(data[at])
    return doubts


@njit(
    [
        types.void(
            _table(kind), _table(whole), _table(whole), _table(_F64, 2), _table(_I32),
            types.Array(_F64, 1, "C"),
        )
        for kind, whole in _PAIRS
    ],
    cache=True, nogil=True,
)  # fmt: skip
def squares_sparse(data, indices, indptr, centres, labels, out):
    """out_i = |x_i - centre of i|^2, from the differences in all columns."""
    p = centres.shape[1]
    x = np.zeros(p)
    for i in range(len(labels)):
        for at in range(indptr[i], indptr[i + 1]):
            x[indices[at]] = data[at]
        c, total = centres[labels[i]], 0.0
        for j in range(p):
            d = x[j] - c[j]
            total += d * d
        out[i] = total
        for at in range(indptr[i], indptr[i + 1]):
            x[indices[at]] = 0.0
