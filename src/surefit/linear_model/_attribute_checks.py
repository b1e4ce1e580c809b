"""What the public attributes of a linear model have in common with each other and with the data.

Each function yields a sentence where an attribute is one that no fit leaves; a sound one yields nothing. They
are used by the ``_inconsistencies`` of the models (:mod:`surefit.base`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import is_torch, to_numpy
from .._ranks import held_here

__all__ = [
    "wrong_classes",
    "wrong_counts",
    "wrong_flags",
    "wrong_folds",
    "wrong_intercept",
    "wrong_outliers",
    "wrong_shapes",
    "wrong_values",
]

Array = NDArray[np.float64]
Shape = tuple[int, ...]


def wrong_shapes(model: Any, **allowed: Any) -> Iterator[str]:
    """Attributes without one of the shapes that are allowed: a tuple, or a list of tuples."""
    for name, shapes in allowed.items():
        if not hasattr(model, name):
            yield f"{name} is missing"
            continue
        value = getattr(model, name)
        native = sp.issparse(value) or is_torch(value)
        found = tuple(value.shape) if native else np.shape(value)
        shapes = shapes if isinstance(shapes, list) else [shapes]
        if found not in shapes:
            yield f"{name} has the shape {found}, these data and parameters ask for {shapes[0]}"


def wrong_counts(model: Any, *, least: int = 0, **allowed: Any) -> Iterator[str]:
    """Attributes that are not whole numbers of at least ``least`` in one of the shapes that are allowed."""
    yield from wrong_shapes(model, **allowed)
    for name in allowed:
        values = np.asarray(getattr(model, name))
        if values.dtype.kind not in "iu" or (values < least).any():
            yield f"{name} holds {values.ravel()[:3].tolist()}, expected integers of at least {least}"


def wrong_flags(model: Any, *names: str) -> Iterator[str]:
    """Attributes that are neither True nor False."""
    for name in names:
        if not isinstance(getattr(model, name, None), (bool, np.bool_)):
            yield f"{name} is {getattr(model, name, None)!r}, expected True or False"


def wrong_values(name: str, found: Any, expected: Any, rtol: float = 1e-9) -> Iterator[str]:
    """An attribute that the data and the parameters determine."""
    found, expected = np.asarray(to_numpy(found)), np.asarray(expected)
    if found.shape != expected.shape or found.dtype.kind not in "biuf":
        yield f"{name} has the shape {found.shape}, expected {expected.shape}"
    elif not np.allclose(found, expected, rtol=rtol, atol=0.0, equal_nan=True):
        place = int(np.argmax(~np.isclose(found, expected, rtol=rtol, atol=0.0).ravel()))
        here, there = float(found.ravel()[place]), float(expected.ravel()[place])
        yield f"{name} holds {here:.6g} where these data and parameters give {there:.6g}"


def wrong_intercept(model: Any) -> Iterator[str]:
    """An intercept where none was fitted: ``predict`` adds it all the same."""
    if not model.fit_intercept and np.any(to_numpy(model.intercept_) != 0):
        yield "intercept_ is not 0, but fit_intercept=False"


def wrong_classes(model: Any, y: Any) -> Iterator[str]:
    """Classes that are not the labels of the rows; they are sorted and distinct."""
    labels = np.unique(to_numpy(y))
    if len(labels) != len(model.classes_):
        yield f"classes_ are {len(model.classes_)}, the rows have {len(labels)} labels"


def wrong_outliers(model: Any, distance: Any, limit: Any, slack: Any) -> Iterator[str]:
    """``outliers_`` that are not the rows beyond the limit, but for what rounding leaves open."""
    distance, limit, slack = (to_numpy(held_here(v)) for v in (distance, limit, slack))
    recorded = np.asarray(to_numpy(model.outliers_))
    if recorded.dtype.kind != "b" or recorded.shape != distance.shape:
        yield f"outliers_ is not a mask of {len(distance)} rows"
        return
    clear = np.abs(distance - limit) > slack
    wrong = int((recorded != (distance > limit))[clear].sum())
    if wrong:
        yield f"outliers_ are wrong about {wrong} rows"


def wrong_folds(folds: Any, n: int) -> Iterator[str]:
    """``folds_`` that are not folds of n rows: numbers of folds, or pairs of row numbers."""
    if isinstance(folds, np.ndarray):
        numbers = np.unique(folds)
        whole = folds.dtype.kind in "iu" and np.array_equal(numbers, np.arange(len(numbers)))
        if folds.shape != (n,) or not whole:
            yield f"folds_ does not name the fold of each of {n} rows"
        return
    for train, test in folds:
        for rows in (np.asarray(train), np.asarray(test)):
            if rows.ndim != 1 or rows.dtype.kind not in "iu":
                yield "folds_ does not hold row numbers"
            elif rows.size and not 0 <= rows.min() <= rows.max() < n:
                yield f"folds_ holds row numbers beyond the {n} rows"
        if np.intersect1d(train, test).size:
            yield "folds_ tests a fold on rows of its training part"
