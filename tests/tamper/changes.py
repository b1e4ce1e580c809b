"""Every change that the law tries, made from the type of a value alone.

:func:`places` finds what can be changed in a fitted model: parameters, public fitted attributes, the entries
of lists and dictionaries, nested estimators, kernels and the weights of modules. :func:`altered` yields the
other values for one place; :func:`replaced` puts one there without touching the model.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options

from surefit import Certificate

__all__ = ["Place", "altered", "look", "places", "replaced", "spelled", "stripped"]

DEPTH = 5  # of values in values
ENTRIES = 4  # of a list or dictionary that are entered, spread over it
SCALES = (0.8, 0.9, 0.95, 0.99, 1.01, 1.05, 1.1, 1.2)
Place = tuple[tuple[str, Any], ...]  # steps such as ("attribute", "coef_") and ("item", 0)


# ------------------------------------------------------------------------ where


def places(model: Any) -> Iterator[Place]:
    """Each parameter and public fitted attribute, and what is inside it."""
    for step in _own_steps(model):
        yield from _below((step,), look(model, (step,)), DEPTH)


def _own_steps(thing: Any) -> list[tuple[str, Any]]:
    """The steps from an object to its parts: what a file would hold of it."""
    if isinstance(thing, Certificate | Enum) or inspect.isroutine(thing) or isinstance(thing, type):
        return []
    if isinstance(thing, torch.nn.Module):
        return [("weights", name) for name in thing.state_dict()]
    if isinstance(thing, BaseEstimator):
        fitted = [n for n in vars(thing) if n.endswith("_") and not n.startswith("_")]
        names = [*thing.get_params(deep=False), *(n for n in fitted if n != "certificate_")]
        return [("attribute", name) for name in names]
    if isinstance(thing, dict):
        return [("item", key) for key in _spread(list(thing))]
    if isinstance(thing, list | tuple) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        return [("item", k) for k in _spread(list(range(len(thing))))]
    if type(thing).__module__.startswith("surefit") and hasattr(thing, "__dict__"):
        return [("attribute", name) for name in vars(thing) if not name.startswith("_")]
    return []


def _below(place: Place, value: Any, depth: int) -> Iterator[Place]:
    yield place
    if depth == 0 or (isinstance(value, np.ndarray) and value.ndim != 1):
        return
    for step in _own_steps(value):
        yield from _below((*place, step), look(value, (step,)), depth - 1)


def _spread(keys: list[Any]) -> list[Any]:
    """A few entries, the first and the last among them."""
    if len(keys) <= ENTRIES:
        return keys
    chosen = np.linspace(0, len(keys) - 1, ENTRIES).round().astype(int)
    return [keys[k] for k in chosen]


def look(model: Any, place: Place) -> Any:
    """What is at a place."""
    for kind, key in place:
        if kind == "attribute":
            model = getattr(model, key)
        elif kind == "weights":
            model = model.state_dict()[key]
        else:
            model = model[key]
    return model


def replaced(model: Any, place: Place, value: Any) -> Any:
    """A copy of a model with another value at a place; all else is shared with the model."""
    (kind, key), rest = place[0], place[1:]
    if rest:
        value = replaced(look(model, place[:1]), rest, value)
    if kind == "weights":
        twin = copy.deepcopy(model)
        _weights(twin)[key].data = value
        return twin
    if isinstance(model, tuple):
        entries = [value if k == key else entry for k, entry in enumerate(model)]
        return type(model)(*entries) if hasattr(model, "_fields") else tuple(entries)
    if kind == "item":
        twin = copy.copy(model)
        twin[key] = value
        return twin
    twin = _shallow(model)
    vars(twin)[key] = value
    return twin


def _weights(module: Any) -> dict[str, Any]:
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _shallow(thing: Any) -> Any:
    twin = object.__new__(type(thing))
    vars(twin).update(vars(thing))
    return twin


def stripped(model: Any) -> Any:
    """The model without any recorded certificate, in nested estimators too."""
    twin = _shallow(model)
    vars(twin).pop("certificate_", None)
    for name, value in vars(model).items():
        if isinstance(value, BaseEstimator):
            vars(twin)[name] = stripped(value)
        elif isinstance(value, list) and any(isinstance(v, BaseEstimator) for v in value):
            parts = [stripped(v) if isinstance(v, BaseEstimator) else v for v in value]
            vars(twin)[name] = parts
    return twin


def spelled(place: Place) -> str:
    """A place in words: ``estimators_[0].coef_``."""
    text = ""
    for kind, key in place:
        text += f".{key}" if kind == "attribute" else f"[{key!r}]"
    return text.removeprefix(".")


# ------------------------------------------------------------------------ what


def altered(value: Any, allowed: Any = ()) -> Iterator[tuple[str, Any]]:
    """Other values for one, each with its name; ``allowed`` are the constraints of a parameter."""
    yield from _choices(value, allowed)
    if isinstance(value, torch.Tensor):
        for name, other in _arrays(value.detach().cpu().numpy()):
            if isinstance(other, np.ndarray) and other.dtype.kind in "fiub":
                yield name, torch.from_numpy(np.ascontiguousarray(other))
    elif sp.issparse(value):
        yield from _sparse(value)
    elif isinstance(value, np.ma.MaskedArray):
        for name, other in _arrays(value.data):
            if isinstance(other, np.ndarray) and other.shape == value.shape:
                yield name, np.ma.MaskedArray(other, value.mask)
    elif isinstance(value, np.ndarray):
        yield from _arrays(value)
    elif isinstance(value, bool | np.bool_):
        yield "flipped", not value
    elif isinstance(value, int | np.integer):
        yield from _integers(value)
    elif isinstance(value, float | np.floating):
        yield from _floats(value)
    elif isinstance(value, str):
        yield "another word", f"{value}x"
        yield "empty", ""
    elif isinstance(value, list | tuple):
        yield from _lists(value)
    elif isinstance(value, dict):
        yield from _dictionaries(value)
    elif value is None:
        yield "one", 1
        yield "nan", float("nan")


def _choices(value: Any, allowed: Any) -> Iterator[tuple[str, Any]]:
    """What the constraints of a parameter name: options, and the ends of intervals."""
    for constraint in allowed if isinstance(allowed, list | tuple) else ():
        if isinstance(constraint, Options):
            for option in sorted(constraint.options, key=str):
                if option != value:
                    yield f"option {option!r}", option
        elif isinstance(constraint, str) and constraint == "boolean":
            if not isinstance(value, bool | np.bool_):
                yield "True", True
        elif constraint is None and value is not None:
            yield "None", None
        elif isinstance(constraint, Interval) and constraint.left is not None:
            yield f"the end {constraint.left}", constraint.left


def _floats(value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    yield "nan", kind("nan")
    yield "infinite", kind("inf")
    yield "negative", -value
    yield "0", kind(0.0)
    for scale in SCALES:
        yield f"times {scale:g}", kind(value * scale)
    yield "times 1e6", kind(value * 1e6)
    yield "plus 1", value + kind(1.0)
    yield "minus 1", value - kind(1.0)
    with np.errstate(all="ignore"):
        yield "float16", np.float16(value)
        yield "float32", np.float32(value)
    if np.isfinite(value):
        yield "integer", int(value)


def _integers(value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    yield "nan", float("nan")
    yield "infinite", float("inf")
    yield "negative", kind(-value) if not isinstance(value, np.unsignedinteger) else -int(value)
    yield "0", kind(0)
    for step in (-1, 1):
        yield f"moved by {step}", kind(int(value) + step) if value or step > 0 else step
    yield "doubled", kind(2 * int(value))
    yield "a float", float(value)
    with np.errstate(all="ignore"):
        yield "a float16", np.float16(value)


def _arrays(value: Any) -> Iterator[tuple[str, Any]]:
    """Changes of an array: of all its entries, of one, of its order, its length and its type."""
    kind = value.dtype.kind
    if kind == "f":
        yield from _float_arrays(value)
    elif kind in "iu":
        yield from _integer_arrays(value)
    elif kind == "b":
        yield "flipped", ~value
        yield from _one_entry(value, "flipped", lambda v: ~v)
    elif kind in "US":
        yield from _one_entry(value.astype(object), "another word", lambda v: f"{v}x")
        yield "other words", np.array([f"{v}x" for v in value.ravel()]).reshape(value.shape)
    elif kind == "O" and value.ndim == 1:
        yield from _one_entry(value, "another object", lambda v: f"{v}x")
    yield from _orders(value)


def _float_arrays(value: Any) -> Iterator[tuple[str, Any]]:
    yield "nan", np.full_like(value, np.nan)
    yield "infinite", np.full_like(value, np.inf)
    yield "negative", -value
    yield "all 0", np.zeros_like(value)
    yield "all 5", np.full_like(value, 5.0)
    yield "plus 1", value + value.dtype.type(1.0)
    for scale in SCALES:
        yield f"times {scale:g}", value * value.dtype.type(scale)
    with np.errstate(all="ignore"):
        yield "float16", value.astype(np.float16)
        yield "float32", value.astype(np.float32)
        for scale in SCALES[:4]:
            yield f"float16, times {scale:g}", (value * scale).astype(np.float16)
        yield "float32, times 0.9", (value * 0.9).astype(np.float32)
        if np.isfinite(value).all():
            yield "integer", value.astype(np.int64)
    yield from _one_entry(value, "nan", lambda v: np.nan)
    yield from _one_entry(value, "infinite", lambda v: np.inf)
    yield from _one_entry(value, "negative", lambda v: -v)
    yield from _one_entry(value, "times 1.1", lambda v: 1.1 * v)
    yield from _one_entry(value, "plus 1", lambda v: v + 1.0)


def _integer_arrays(value: Any) -> Iterator[tuple[str, Any]]:
    yield "negative", -value
    yield "all 0", np.zeros_like(value)
    yield "plus 1", value + value.dtype.type(1)
    yield "a float", value.astype(np.float64)
    with np.errstate(all="ignore"):
        yield "a float16", value.astype(np.float16)
    yield "int8", value.astype(np.int8)
    yield "half nan", np.where(np.arange(value.size).reshape(value.shape) % 2, value, np.nan)
    yield from _one_entry(value, "plus 1", lambda v: v + 1)
    yield from _one_entry(value, "minus 1", lambda v: v - 1)
    yield from _one_entry(value, "doubled", lambda v: 2 * v)


def _one_entry(value: Any, name: str, change: Any) -> Iterator[tuple[str, Any]]:
    """The first and the last entry that a change changes."""
    flat = value.ravel()
    places = [k for k in (*range(min(3, flat.size)), flat.size - 1) if k >= 0]
    with np.errstate(all="ignore"):
        values = {k: change(flat[k]) for k in places}
    moved = [k for k in places if not _same(values[k], flat[k])]
    for k in sorted({moved[0], moved[-1]} if moved else set()):
        other = value.copy()
        other.flat[k] = values[k]
        yield f"entry {k} {name}", other


def _orders(value: Any) -> Iterator[tuple[str, Any]]:
    """Changes of the order and the number of the rows and columns of an array."""
    if value.ndim == 0:
        return
    for axis in range(value.ndim):
        size, name = value.shape[axis], "" if value.ndim == 1 else f" along axis {axis}"
        if size == 0:
            continue
        yield f"one fewer{name}", np.take(value, range(size - 1), axis)
        yield f"one more{name}", np.take(value, [*range(size), size - 1], axis)
        if size > 1:
            yield f"reversed{name}", np.flip(value, axis)
            yield f"first two exchanged{name}", np.take(value, [1, 0, *range(2, size)], axis)
            yield f"shifted{name}", np.roll(value, 1, axis)
            yield f"first repeated{name}", np.take(value, [0, 0, *range(2, size)], axis)
    if value.ndim == 2:
        yield "transposed", np.ascontiguousarray(value.T)
    yield "a column", value[..., None]
    yield "empty", value[:0]


def _sparse(value: Any) -> Iterator[tuple[str, Any]]:
    """Changes of the entries, and of the order and number of rows and columns."""
    for name, data in _arrays(value.data):
        if isinstance(data, np.ndarray) and data.shape == value.data.shape:
            other = value.copy()
            other.data = data
            yield name, other
    rows, columns = value.shape
    csr = value.tocsr()
    yield "rows reversed", csr[np.arange(rows)[::-1]]
    yield "columns reversed", csr[:, np.arange(columns)[::-1]]
    yield "one row fewer", csr[: rows - 1]
    yield "first row repeated", csr[[0, 0, *range(2, rows)]]
    yield "one column fewer", csr[:, : columns - 1]
    yield "dense", value.toarray()


def _lists(value: Any) -> Iterator[tuple[str, Any]]:
    kind = list if isinstance(value, list) else tuple
    yield "empty", kind()
    if not value:
        yield "one 0", kind([0])
        return
    yield "one fewer", kind(value[:-1])
    yield "one more", kind([*value, value[-1]])
    if len(value) > 1:
        yield "reversed", kind(value[::-1])
        yield "first repeated", kind([value[0], value[0], *value[2:]])
        yield "shifted", kind([value[-1], *value[:-1]])


def _dictionaries(value: Any) -> Iterator[tuple[str, Any]]:
    yield "empty", {}
    yield "one more", {**value, "another": 0}
    if value:
        first, *others = value
        yield "one fewer", {key: value[key] for key in others}
        yield "a key renamed", {f"{first}x": value[first], **{k: value[k] for k in others}}
    if len(value) > 1:
        second = others[0]
        yield "two exchanged", {**value, first: value[second], second: value[first]}


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other) or (one != one and other != other)
    except (TypeError, ValueError, RuntimeError):
        return False
