"""What estimators ask of their public attributes before any claim: shapes, whole numbers, numbers of rows.

Each function yields sentences about what is wrong, for ``Certified._inconsistencies``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._namespace import to_numpy

__all__ = ["shape_of", "wrong_counts", "wrong_indices", "wrong_shapes"]


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, sparse matrix, tensor or nested list."""
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def wrong_shapes(model: Any, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Attributes whose shape is not the one that the data and the others ask for."""
    for name, shape in shapes.items():
        if not hasattr(model, name):
            yield f"{name} is missing"
        elif (found := shape_of(getattr(model, name))) != shape:
            yield f"{name} has the shape {found} and must have {shape}"


def wrong_counts(model: Any, **least: int) -> Iterator[str]:
    """Attributes that must be whole numbers, each with its least value; arrays of them count too."""
    for name, smallest in least.items():
        if not hasattr(model, name):
            yield f"{name} is missing"
            continue
        values = np.asarray(getattr(model, name))
        if values.dtype.kind not in "iu" or (values < smallest).any():
            yield f"{name} must hold whole numbers from {smallest} on, and is {getattr(model, name)!r}"


def wrong_indices(name: str, values: Any, n: int) -> Iterator[str]:
    """Numbers of rows: whole, between 0 and n - 1, each once."""
    rows = np.asarray(to_numpy(values))
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        yield f"{name} must be a list of row numbers, and is {rows.dtype} of shape {rows.shape}"
    elif ((rows < 0) | (rows >= n)).any():
        yield f"{name} names rows that are not among the {n} of the data"
    elif len(np.unique(rows)) < len(rows):
        yield f"{name} names a row twice"
