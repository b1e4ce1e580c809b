"""Reading a document that may be incomplete, malformed or written by someone else.

Each function returns the type it names, whatever it is given: a number that is none becomes NaN, a list that
is none becomes empty. So a page can be made of any document, and what is missing is missing and not wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = [
    "aligned",
    "cut",
    "mapping",
    "part",
    "real",
    "reals",
    "rows",
    "texts",
    "thin",
    "words",
    "yes",
]


def real(value: Any) -> float:
    """A float; NaN for what is not a number.

    Examples
    --------
    >>> real(1), real("inf"), real(None), real([])
    (1.0, inf, nan, nan)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        return float(value[:40] if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        return math.nan


def reals(value: Any) -> list[float]:
    """A list of floats; empty for what is not a list."""
    return [real(x) for x in value] if isinstance(value, (list, tuple)) else []


def mapping(value: Any) -> dict[str, Any]:
    """A dictionary; empty for what is none. Keys that are not text are dropped."""
    return {k: v for k, v in value.items() if isinstance(k, str)} if isinstance(value, dict) else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """The dictionaries of a list."""
    return (
        [mapping(x) for x in value if isinstance(x, dict)]
        if isinstance(value, (list, tuple))
        else []
    )


def texts(value: Any) -> list[str]:
    """The strings of a list; one string counts as a list of one."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if not isinstance(value, (list, tuple)):
        return []
    return [words(x) for x in value if isinstance(x, (str, int, float)) and words(x).strip()]


def words(value: Any, default: str = "") -> str:
    """A string; numbers are written out, other things give ``default``."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1000:
        return "a very long number"
    return str(value) if isinstance(value, (int, float)) else default


def yes(value: Any) -> bool:
    """True only for true."""
    return value is True


def part(document: Any, *path: str) -> dict[str, Any]:
    """The dictionary at a path of names; empty where there is none."""
    found = mapping(document)
    for name in path:
        found = mapping(found.get(name))
    return found


def aligned(*columns: Any) -> list[tuple[float, ...]]:
    """The points of several columns, those left out in which a number is missing or infinite.

    Examples
    --------
    >>> aligned([1, 2, 3], [4, None, "6"])
    [(1.0, 4.0), (3.0, 6.0)]
    """
    return [p for p in zip(*map(reals, columns)) if all(map(math.isfinite, p))]


def thin(points: Sequence[Any], most: int) -> list[Any]:
    """At most ``most`` of the points, evenly spread, the first and the last among them.

    Examples
    --------
    >>> thin(range(10), 4)
    [0, 3, 6, 9]
    """
    n = len(points)
    return (
        list(points)
        if n <= most
        else [points[round(i * (n - 1) / (most - 1))] for i in range(most)]
    )


def cut(value: Any, limit: int) -> Any:
    """The same document with no text longer than ``limit``.

    Examples
    --------
    >>> cut({"name": ["abcdef", 1]}, 4)
    {'name': ['abc…', 1]}
    """
    if isinstance(value, str):
        return value if len(value) <= limit else value[: limit - 1] + "…"
    if isinstance(value, dict):
        return {cut(k, limit): cut(v, limit) for k, v in value.items()}
    return [cut(v, limit) for v in value] if isinstance(value, (list, tuple)) else value
