r"""One 64-bit key a row: equal rows have equal keys.

The key of a row is a sum over its columns, :math:`h_i = \sum_j m_j(x_{ij}) \bmod 2^{64}`, of mixed bits that
depend on the column; a zero contributes nothing, so that sparse and dense rows agree. Being a sum, the key of
some of the columns costs no more than that of all. Two different rows share a key with probability
:math:`2^{-64}`: 3e-8 for any pair among a million rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["column", "count_pairs", "multiplicities", "row_keys", "row_matrix", "target_matrix"]

Keys = NDArray[np.uint64]
BLOCK = 1 << 20  # entries that are mixed at a time
SALT = 0x5EED


def row_matrix(X: Any) -> Any:
    """Rows as a matrix of numbers: equal entries of a column get equal numbers.

    Arrays of numbers (of any number of axes) and sparse matrices stay as they are; columns of text or other
    objects are numbered by their values. Missing values are equal to each other.
    """
    if sparse.issparse(X):
        return sparse.csr_array(X)
    if hasattr(X, "detach"):  # a tensor
        X = X.detach().cpu().numpy()
    if hasattr(X, "columns") and hasattr(X, "shape"):  # a data frame, each column with its own type
        series = [X[name] for name in X.columns]
        return np.column_stack([_numbers(one) for one in series]) if series else np.empty(X.shape)
    values = np.asarray(X)
    if values.ndim == 1:
        return _numbers(values)[:, None]
    values = values.reshape(len(values), -1)
    if values.dtype.kind in "fiub":
        return values
    return np.column_stack([_numbers(values[:, j]) for j in range(values.shape[1])])


def target_matrix(y: Any, rows: int) -> Any:
    """Targets as a matrix of numbers; without any, a matrix without columns."""
    return np.empty((rows, 0)) if y is None else row_matrix(y)


def column(matrix: Any, j: int) -> NDArray[np.float64]:
    """One column as float64; a missing value is NaN."""
    if sparse.issparse(matrix):
        return np.asarray(matrix[:, [j]].toarray(), dtype=np.float64).ravel()
    return np.asarray(matrix[:, j], dtype=np.float64)


def row_keys(matrix: Any, parts: list[NDArray[np.intp]], first: int = 0) -> Keys:
    """Keys of the rows restricted to some columns, of shape (len(parts), rows).

    ``first`` is the number of the first column, where inputs and targets are mixed one after the other.
    """
    rows, columns = matrix.shape
    salts = np.random.default_rng(SALT).integers(0, 2**63, size=first + columns, dtype=np.uint64)[
        first:
    ]
    inside = np.zeros((columns, len(parts)), dtype=np.uint64)
    for k, part in enumerate(parts):
        inside[part, k] = 1
    keys = np.zeros((rows, len(parts)), dtype=np.uint64)
    step = max(1, BLOCK // max(columns, 1))
    for start in range(0, rows, step):
        block = matrix[start : start + step]
        if sparse.issparse(block):
            block = block.tocoo()
            mixed = _mix(block.data, salts[block.col]) - _mix(np.zeros(1), salts[block.col])
            for k in range(len(parts)):
                np.add.at(keys[:, k], start + block.row, mixed * inside[block.col, k])
        else:
            mixed = _mix(block, salts) - _mix(np.zeros((1, columns)), salts)
            keys[start : start + step] = _sums(mixed, inside)
    return keys.T


def multiplicities(keys: Keys) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The number of its value for each row, and how often each value occurs."""
    _, labels, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return labels.ravel(), counts


def count_pairs(keys: Any) -> float:
    """Pairs of rows with the same key."""
    counts = np.unique(keys, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1.0) / 2.0).sum())


def _sums(mixed: Keys, inside: Keys) -> Keys:
    """Sums over the columns of each part, modulo 2^64."""
    return np.stack([mixed[:, part != 0].sum(axis=1, dtype=np.uint64) for part in inside.T], axis=1)


def _mix(values: Any, salts: Keys) -> Keys:
    """Bits of the values, mixed with the salt of their column."""
    numbers = np.asarray(values, dtype=np.float64) + 0.0  # -0.0 is 0.0
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    bits = (bits ^ salts) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    result: Keys = bits ^ (bits >> np.uint64(32))
    return result


def _numbers(values: Any) -> NDArray[np.float64]:
    """A column as numbers: its own, or those of its distinct values."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.dtype.kind in "fiub":
        return np.asarray(array, dtype=np.float64)
    if array.dtype.kind in "mM":
        return np.asarray(array.astype(np.int64), dtype=np.float64)
    places: dict[str, int] = {}
    return np.array([places.setdefault(_text(v), len(places)) for v in array.tolist()], dtype=float)


def _text(value: Any) -> str:
    """A value as text; every missing value alike."""
    if value is None or value != value:
        return "missing"
    return f"{type(value).__name__} {value!r}"
