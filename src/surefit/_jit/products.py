"""Products of sparse matrices whose result is dense and small: sums of outer products of their rows.

A row with k stored entries costs k^2 operations, whatever the number of columns. A closed file.
"""

from __future__ import annotations

from numba import njit

__all__ = ["cross_rows", "half_gram_rows"]

_RO = "Array(float64, 1, 'C', readonly=True)"
_INDEX = ("int32", "int64")


def _matrix(index: str) -> str:
    return f"{_RO}, Array({index}, 1, 'C', readonly=True), Array({index}, 1, 'C', readonly=True)"


@njit([f"({_matrix(index)}, {_RO}, float64[:, ::1])" for index in _INDEX], cache=True, nogil=True)
def half_gram_rows(data, columns, ptr, weights, out):
    """Add half of sum_i weights_i x_i x_i' to ``out``, such that out + out' is the whole."""
    for i in range(len(ptr) - 1):
        for a in range(ptr[i], ptr[i + 1]):
            value = weights[i] * data[a]
            row = out[columns[a]]
            for b in range(ptr[i], a):
                row[columns[b]] += value * data[b]
            row[columns[a]] += 0.5 * value * data[a]


@njit(
    [f"({_matrix(a)}, {_matrix(b)}, float64[:, ::1])" for a in _INDEX for b in _INDEX],
    cache=True,
    nogil=True,
)
def cross_rows(data, columns, ptr, other_data, other_columns, other_ptr, out):
    """Add A'B to ``out``; A and B have the same number of rows."""
    for i in range(len(ptr) - 1):
        for a in range(ptr[i], ptr[i + 1]):
            row = out[columns[a]]
            for b in range(other_ptr[i], other_ptr[i + 1]):
                row[other_columns[b]] += data[a] * other_data[b]
