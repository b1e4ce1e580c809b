"""Groups and labels as small integers: the only pass over the rows that an audit makes.

Everything an audit says depends on the rows through the counts of (group, label, decision). Text is compared
value by value while there are few different ones, which is several times faster than sorting it; whole
numbers of a small range are codes already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MISSING",
    "as_codes",
    "binary",
    "columns_of",
    "crossed",
    "label_column",
    "shown",
    "too_many",
]

Codes = NDArray[np.int64]
MISSING = "missing"
_FEW = 24  # different texts up to which comparing beats sorting
_RANGE = 4096  # range of whole numbers up to which counting beats sorting


def as_codes(values: Any, name: str = "sensitive") -> tuple[list[str], Codes]:
    """The names of the groups that occur, in order, and the group of each row.

    ``None``, NaN and empty text form the group ``"missing"``.

    >>> names, codes = as_codes(["f", "m", None, "f"])
    >>> names, codes.tolist()
    (['f', 'm', 'missing'], [0, 1, 2, 0])
    """
    values = getattr(values, "array", values)  # a pandas series holds an array
    if hasattr(values, "categories") and hasattr(values, "codes"):  # categories are codes already
        levels, codes = list(values.categories), np.asarray(values.codes, dtype=np.int64)
        return _in_order([*levels, None], np.where(codes < 0, len(levels), codes))
    if isinstance(values, list | tuple):  # numpy would turn a NaN among texts into the text "nan"
        values = _objects(values)
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must be one column, got an array of shape {values.shape}.")
    if not len(values):
        raise ValueError(f"{name} has no rows: give one value for each row.")
    if values.dtype.kind == "b":
        return _in_order([False, True], values.astype(np.int64))
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < _RANGE:
            return _in_order(list(range(low, high + 1)), (values - low).astype(np.int64))
    if values.dtype.kind == "U":
        return _peeled(values)
    if values.dtype.kind == "O":
        return _by_name(values)
    distinct, codes = np.unique(values, return_inverse=True)
    return _in_order(distinct.tolist(), codes.astype(np.int64))


def _objects(values: Any) -> NDArray[Any]:
    """A sequence as a column of Python objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    return column


def _peeled(values: NDArray[Any]) -> tuple[list[str], Codes]:
    """One comparison of all rows for each different text, as long as there are few."""
    codes = np.full(len(values), -1, dtype=np.int64)
    distinct: list[str] = []
    left = 0
    while len(distinct) < _FEW:
        codes[values == values[left]] = len(distinct)
        distinct.append(str(values[left]))
        rest = np.flatnonzero(codes[left:] < 0)
        if not len(rest):
            return _in_order(distinct, codes)
        left += int(rest[0])
    different, codes = np.unique(values, return_inverse=True)
    return _in_order(different.tolist(), codes.astype(np.int64))


def _by_name(values: NDArray[Any]) -> tuple[list[str], Codes]:
    """Python objects: a dictionary from value to code."""
    known: dict[Any, int] = {}
    try:
        codes = np.fromiter(
            (known.setdefault(value, len(known)) for value in values.tolist()), np.int64
        )
    except TypeError:  # not hashable
        known = {}
        texts = [str(value) for value in values.tolist()]
        codes = np.fromiter((known.setdefault(t, len(known)) for t in texts), np.int64)
    return _in_order(list(known), codes)


def _in_order(distinct: list[Any], codes: Codes) -> tuple[list[str], Codes]:
    """Values that occur, in their own order (that of the names where they have none), missing last."""
    counts = np.bincount(codes, minlength=len(distinct))
    names = [_name(value) for value in distinct]
    present = [i for i in range(len(distinct)) if counts[i]]
    try:
        present.sort(key=lambda i: (names[i] == MISSING, distinct[i]))
    except TypeError:
        present.sort(key=lambda i: (names[i] == MISSING, names[i]))
    final = list(dict.fromkeys(names[i] for i in present))
    place = {name: i for i, name in enumerate(final)}
    table = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    return final, table[codes]


def _name(value: Any) -> str:
    if value is None or value == "" or value != value:  # NaN differs from itself
        return MISSING
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def columns_of(sensitive: Any) -> dict[str, Any]:
    """The sensitive attributes by name: a mapping, a frame, a matrix, or one column."""
    if isinstance(sensitive, Mapping):
        columns = {str(name): column for name, column in sensitive.items()}
    elif hasattr(sensitive, "columns") and hasattr(sensitive, "__getitem__"):  # a data frame
        columns = {str(name): sensitive[name] for name in sensitive.columns}
    else:
        rows = isinstance(sensitive, list | tuple) and len(sensitive) > 0
        if rows and isinstance(sensitive[0], list | tuple | np.ndarray):
            sensitive = np.array([list(row) for row in sensitive], dtype=object)
        if getattr(sensitive, "ndim", 1) == 2:
            matrix = np.asarray(sensitive)
            many = matrix.shape[1] > 1
            columns = {
                f"sensitive {j}" if many else "sensitive": matrix[:, j]
                for j in range(matrix.shape[1])
            }
        else:
            columns = {str(getattr(sensitive, "name", None) or "sensitive"): sensitive}
    if not columns:
        raise ValueError("sensitive has no column: give at least one sensitive attribute.")
    return columns


def crossed(parts: list[tuple[list[str], Codes]]) -> tuple[list[str], Codes]:
    """The cells of several attributes that occur, named "a x b"."""
    names, codes = parts[0]
    for more, other in parts[1:]:
        joint = codes * len(more) + other
        counts = np.bincount(joint, minlength=len(names) * len(more))
        kept = np.flatnonzero(counts)
        place = np.cumsum(counts > 0) - 1
        names = [f"{names[k // len(more)]} x {more[k % len(more)]}" for k in kept]
        codes = place[joint]
    return names, codes


def label_column(values: Any, name: str) -> tuple[NDArray[Any], list[Any]]:
    """A column of labels as an array, and those that occur in order; 0 and 1 stand for each other."""
    array = np.asarray(getattr(values, "array", values))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one column, got an array of shape {array.shape}.")
    if not len(array):
        raise ValueError(f"{name} has no rows: an audit needs some.")
    if array.dtype.kind == "b":
        return array, [False, True]
    if array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 1:
        return array, [0, 1]
    missing = array.dtype.kind == "f" and bool(np.isnan(array).any())
    if missing or (array.dtype.kind == "O" and any(v is None or v != v for v in array)):
        raise ValueError(
            f"{name} has missing values: drop those rows, an audit needs a label for each row."
        )
    return array, np.unique(array).tolist()


def too_many(name: str, labels: list[Any]) -> ValueError:
    """The error for more than two labels."""
    return ValueError(
        f"{name} has {len(labels)} labels ({', '.join(map(repr, labels[:5]))}, ...): pass positive=... to "
        "audit one label against the rest."
    )


def binary(values: Any, positive: Any, name: str) -> tuple[NDArray[np.int64], Any]:
    """1 where a value is the positive label, by default the last of two; and that label."""
    array, labels = label_column(values, name)
    if positive is None and len(labels) > 2:
        raise too_many(name, labels)
    label = labels[-1] if positive is None else positive
    return (array == label).astype(np.int64), label


def shown(name: Any, most: int = 60) -> str:
    """A name fit for a terminal: no control characters, no direction marks, not too long.

    >>> shown("a" + chr(27) + "[31mb")
    'a\\\\x1b[31mb'
    """
    text = str(name)
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"
