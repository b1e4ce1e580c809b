"""Squared distances as whole numbers: the last resort of the neighbour search, exact for any finite floats.

A float is m 2^e with integers m and e. Brought to the smallest e among the numbers at hand, the
coordinates of a query and of its candidates are integers, and so are the squared distances in units of
2^(2e).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["nearest_by_integers", "rank_by_integers", "squared_distances"]


def squared_distances(query: Any, rows: Any) -> tuple[list[int], int]:
    """Integers S and an exponent e: the squared distances of the rows to the query are S 2^(2e).

    Examples
    --------
    >>> squares, exponent = squared_distances([0.5, 2.0], [[0.5, 1.0], [0.0, 2.0]])
    >>> [square * 4.0**exponent for square in squares]
    [1.0, 0.25]
    """
    point = [float(x) for x in np.asarray(query, dtype=np.float64)]
    table = [[float(x) for x in row] for row in np.asarray(rows, dtype=np.float64)]
    exponent = min((_exponent(x) for row in (point, *table) for x in row), default=0)
    q = [_integer(x, exponent) for x in point]
    return [
        sum((a - _integer(x, exponent)) ** 2 for a, x in zip(q, row)) for row in table
    ], exponent


def _exponent(x: float) -> int:
    """The e of x = m 2^e with a whole number m of 53 bits."""
    return math.frexp(x)[1] - 53 if x else 2000


def _integer(x: float, exponent: int) -> int:
    mantissa, own = math.frexp(x)
    return int(mantissa * 2.0**53) << (own - 53 - exponent) if x else 0


def rank_by_integers(query: Any, table: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of these rows of a table by exact distance to the query, ties by row number."""
    squares, _ = squared_distances(query, _rows_of(table, rows))
    by_key = sorted(range(len(rows)), key=lambda i: (squares[i], rows[i]))
    return np.array(by_key, dtype=np.int64)


def nearest_by_integers(query: Any, table: Any, k: int) -> tuple[Any, Any]:
    """Distances and numbers of the k nearest rows; slow, for queries whose squares overflow."""
    rows = np.arange(table.shape[0], dtype=np.int64)
    squares, exponent = squared_distances(query, _rows_of(table, rows))
    first = sorted(rows.tolist(), key=lambda i: (squares[i], i))[:k]
    return np.array([_root(squares[i], exponent) for i in first]), np.array(first, dtype=np.int64)


def _root(square: int, exponent: int) -> float:
    """sqrt(square) 2^exponent as a float, infinite where it is too large for one."""
    extra = max(0, 128 - square.bit_length()) // 2
    root, power = math.isqrt(square << (2 * extra)), exponent - extra
    spare = max(0, root.bit_length() - 64)  # so that the conversion does not overflow
    try:
        return math.ldexp(float(root >> spare), power + spare)
    except OverflowError:
        return math.inf


def _rows_of(table: Any, rows: NDArray[np.int64]) -> Any:
    part = table[rows]
    return part.toarray() if sp.issparse(part) else part
