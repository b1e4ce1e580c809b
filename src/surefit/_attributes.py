"""What every fitted attribute must be before any claim is made of it.

A fit leaves finite numbers in float32 or float64, classes that are sorted and distinct, and parameters that
its own checks accept. A model that has anything else was changed after its fit, and the claims of
:func:`surefit.verify` would be about numbers that no arithmetic of theirs was made for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._namespace import is_torch, to_numpy
from .certificate import Claim, Kind

__all__ = [
    "UNUSABLE",
    "attributes_claim",
    "invalid_attributes",
    "invalid_classes",
    "invalid_counts",
    "invalid_intercept",
    "invalid_parameters",
    "storage_eps",
]

EPS = float(np.finfo(np.float64).eps)
MAX_DEPTH = 4  # of lists and dictionaries that are looked into
# What arithmetic on attributes of a wrong shape or type raises.
UNUSABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def storage_eps(dtype: Any) -> float:
    """The rounding unit that a stored array may claim: that of float32, and float64's for all others."""
    return float(np.finfo(np.float32).eps) if np.dtype(dtype) == np.float32 else EPS


def attributes_claim(found: str) -> Claim:
    """The claim that fails where the attributes of a model are not those of a fit."""
    statement = f"the model's attributes are not those of a fit: {found}"
    return Claim.check("attributes", statement, Kind.EXACT, 1.0, 0.0, "GEN-6")


def invalid_parameters(model: Any) -> Iterator[str]:
    """Parameters in half or extended precision, and what the estimator's own checks refuse."""
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, np.floating) and value.dtype not in (np.float32, np.float64):
            yield f"{name} is {value.dtype}; give it as a float"
    if not hasattr(type(model), "_parameter_constraints"):
        return
    try:
        model._validate_params()
    except (ValueError, TypeError) as error:
        yield str(error)


def invalid_attributes(model: Any) -> Iterator[str]:
    """Fitted attributes that hold a NaN or an infinity, or numbers of a dtype that no fit stores."""
    for name, value in sorted(vars(model).items()):
        if not name.endswith("_") or name.startswith("_") or name == "certificate_":
            continue
        for array in _arrays(value, MAX_DEPTH):
            problem = _invalid_numbers(
                array, name not in model._may_be_infinite, name not in model._may_be_nan
            )
            if problem:
                yield f"{name} {problem}"


def _invalid_numbers(array: np.ndarray[Any, Any], no_infinity: bool, no_nan: bool) -> str:
    """What is wrong with an array; the empty string for a sound one."""
    if array.dtype.kind == "c":
        return f"is {array.dtype}; fits store real numbers"
    if array.dtype.kind != "f":
        return ""
    if array.dtype not in (np.float32, np.float64):
        return f"is {array.dtype}; fits store float32 or float64"
    if no_nan and np.isnan(array).any():
        return "holds NaN"
    if no_infinity and np.isinf(array).any():
        return "holds an infinity"
    return ""


def _arrays(value: Any, depth: int) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays of numbers inside a fitted attribute; other estimators check their own."""
    if depth == 0:
        return
    if isinstance(value, np.ma.MaskedArray):
        yield value.compressed()
    elif isinstance(value, np.ndarray):
        if value.dtype != object:
            yield value
        else:
            for item in value.ravel():
                yield from _arrays(item, depth - 1)
    elif sp.issparse(value):
        yield value.data
    elif is_torch(value):
        yield to_numpy(value)
    elif isinstance(value, (float, np.floating)):
        yield np.asarray(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays(item, depth - 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item, depth - 1)


def invalid_counts(model: Any) -> Iterator[str]:
    """Counts of features, classes, iterations, rows and words that are not whole numbers from 0 on."""
    for name in ("n_features_in_", "n_classes_", "n_iter_", "n_samples_fit_", "n_words_"):
        for value in _scalars(vars(model).get(name)):
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value < 0:
                yield f"{name} must hold whole numbers from 0 on, and holds {value!r}"


def _scalars(value: Any) -> list[Any]:
    """The numbers of an attribute that is one, or an array or list of them; ``None`` has none."""
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def invalid_intercept(model: Any) -> Iterator[str]:
    """An intercept other than 0 in a model without one: its predictions solve no problem of its own."""
    if getattr(model, "fit_intercept", True) is not False:
        return
    for array in _arrays(vars(model).get("intercept_"), MAX_DEPTH):
        if array.size and np.any(array != 0.0):
            yield "intercept_ is not 0, and fit_intercept is False"


def invalid_classes(model: Any, y: Any) -> Iterator[str]:
    """Classes that are not sorted and distinct, or that lack a label of the rows."""
    classes = vars(model).get("classes_")
    if classes is None:
        return
    several = isinstance(classes, (list, tuple))
    columns = [None] if y is None else _columns(y)
    for own, labels in zip(classes if several else [classes], columns):
        own = np.asarray(own)
        try:
            distinct = np.unique(own)
        except TypeError:
            yield "classes_ hold values that cannot be sorted"
            return
        if own.ndim != 1 or not np.array_equal(distinct, own):
            yield "classes_ are not sorted and distinct"
        elif labels is not None and (missing := _missing(labels, own)):
            yield f"classes_ lack the label {missing[0]!r} of the rows"


def _columns(y: Any) -> list[Any]:
    y = to_numpy(y) if is_torch(y) else np.asarray(y)
    return [y] if y.ndim == 1 else list(y.T)


def _missing(labels: Any, classes: Any) -> list[Any]:
    """Labels of the rows that are not among the classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of comparisons of numbers with text
        found = np.unique(labels)
        return found[~np.isin(found, classes)].tolist()
