"""Ratings as a sparse matrix, users in rows: what is stored was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

__all__ = ["has_repeats", "observed", "ratings"]


def ratings(
    users: ArrayLike,
    items: ArrayLike,
    values: ArrayLike | None = None,
    *,
    shape: tuple[int, int] | None = None,
) -> Any:
    """The CSR matrix of rated pairs, checked.

    Parameters
    ----------
    users, items : array-like of int, shape (n_ratings,)
        Row and column numbers from 0.
    values : array-like of shape (n_ratings,), optional
        Ratings, counts or confidences; ones by default. A rating of 0 is stored, and counts as observed.
    shape : (int, int), optional
        Numbers of users and items; by default the largest numbers given, plus one.

    Returns
    -------
    scipy.sparse.csr_array

    Examples
    --------
    >>> from surefit.decomposition import ratings
    >>> ratings([0, 2], [1, 0], [5.0, 0.0]).nnz
    2
    >>> ratings([0, 0], [1, 1], [5.0, 4.0])
    Traceback (most recent call last):
    ...
    ValueError: users and items name 1 pair(s) more than once, first (0, 1): keep one of each, or their mean.
    """
    rows, columns = _numbers("users", users), _numbers("items", items)
    data = np.ones(len(rows)) if values is None else np.asarray(values)
    if data.dtype.kind not in "fiub":
        raise ValueError(f"values must be numbers, got {data.dtype}.")
    if data.dtype != np.float32:
        data = data.astype(np.float64)
    if not len(rows) == len(columns) == len(data) or data.ndim != 1:
        raise ValueError(
            f"users, items and values must be of one length, got {len(rows)}, {len(columns)} and "
            f"{data.shape}."
        )
    if not np.isfinite(data).all():
        at = int(np.flatnonzero(~np.isfinite(data))[0])
        raise ValueError(f"values[{at}] is {data[at]}: leave out pairs that were not rated.")
    if shape is None:
        if not len(rows):
            raise ValueError("users is empty: give shape= where there are no ratings yet.")
        shape = (int(rows.max()) + 1, int(columns.max()) + 1)
    for name, numbers, size in (("users", rows, shape[0]), ("items", columns, shape[1])):
        if len(numbers) and int(numbers.max()) >= size:
            raise ValueError(
                f"{name} holds {int(numbers.max())}, but shape={tuple(shape)} has numbers up to {size - 1}."
            )
    pair = rows * shape[1] + columns
    order = np.argsort(pair, kind="stable")
    again = np.flatnonzero(np.diff(pair[order]) == 0)
    if len(again):
        first = int(pair[order][again[0]])
        raise ValueError(
            f"users and items name {len(again)} pair(s) more than once, first "
            f"({first // shape[1]}, {first % shape[1]}): keep one of each, or their mean."
        )
    indptr = np.searchsorted(rows[order], np.arange(shape[0] + 1))
    return sp.csr_array((data[order], columns[order].astype(np.int32), indptr), shape=shape)


def _numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}.")
    if array.dtype.kind not in "iu" and not (
        array.dtype.kind == "f" and (array == np.floor(array)).all()
    ):
        raise ValueError(
            f"{name} must be whole numbers from 0, got {array.dtype}. Number names with "
            "numpy.unique(..., return_inverse=True)."
        )
    array = array.astype(np.int64)
    if len(array) and int(array.min()) < 0:
        raise ValueError(f"{name} holds {int(array.min())}: numbers count from 0.")
    return array


def has_repeats(matrix: Any) -> bool:
    """Whether a sparse matrix names a place twice; scipy would add the two up."""
    if matrix.format in ("csr", "csc"):
        from .._jit.csr import has_duplicates

        width = matrix.shape[1] if matrix.format == "csr" else matrix.shape[0]
        indptr = np.ascontiguousarray(matrix.indptr, dtype=np.int64)
        return bool(has_duplicates(np.ascontiguousarray(matrix.indices), indptr, width))
    if matrix.format == "coo":
        place = matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col
        return len(np.unique(place)) < len(place)
    return False


def observed(X: Any, *, always: bool = False) -> Any:
    """A dense matrix with NaN where nothing is known, as CSR; one without NaN as it is, unless ``always``."""
    missing = np.isnan(X)
    if not missing.any() and not always:
        return X
    rows, columns = np.nonzero(~missing)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1))
    return sp.csr_array((X[rows, columns], columns.astype(np.int32), indptr), shape=X.shape)
