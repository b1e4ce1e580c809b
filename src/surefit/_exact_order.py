"""Which rows are nearest in exact arithmetic: what the claims about neighbours and clusters share.

Float64 distances with a bound on their rounding leave a few rivals; where these bounds do not settle the
order, rational numbers do. No code of the searches is used.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["SMALL", "UNIT", "exactly_first", "plain", "row_squares"]

Array = NDArray[np.float64]
UNIT = 2.0**-53
SMALL = 1e-280  # squares below may have lost bits to underflow


def exactly_first(query: Array, table: Any, neighbours: Any, bounds: Array) -> bool:
    """Whether ``neighbours`` are the first rows of the table by (exact distance, number), in order.

    ``bounds`` are below the squared distances of all rows.
    """
    if len(np.unique(neighbours)) != len(neighbours):
        return False
    error = (len(query) + 8) * UNIT
    mine = _squares(query, plain(table[neighbours]))
    reach = mine.max() * (1.0 + 4.0 * error) + SMALL
    rivals = np.flatnonzero(~(bounds > reach))  # what is not a number stays a rival
    others = np.setdiff1d(rivals, neighbours)
    theirs = _squares(query, plain(table[others])) if len(others) else np.empty(0)
    line = np.append(mine, theirs.min(initial=np.inf))
    zero = int(bool(mine[0] == 0.0 and np.array_equal(query, plain(table[neighbours[:1]])[0])))
    apart = line[1:] > line[:-1] * (1.0 + 4.0 * error)
    if apart.all() and np.isfinite(mine).all() and (line[zero:] > SMALL).all():
        return True
    everyone = np.union1d(rivals, neighbours)
    exact = _exact_squares(query, plain(table[everyone]))
    first = sorted(zip(exact, everyone.tolist()))[: len(neighbours)]
    return [row for _, row in first] == list(neighbours)


def _exact_squares(query: Array, rows: Array) -> list[Any]:
    """Squared distances as rational numbers; as floats where these are whole numbers that they hold."""
    stack = np.vstack([query[None, :], rows])
    largest = float(np.abs(stack).max(initial=0.0))
    small = largest < 2.0**24 and 4.0 * len(query) * largest**2 < 2.0**53
    if small and (stack == np.rint(stack)).all():
        return _squares(query, rows).tolist()
    point, known, squares = [Fraction(float(x)) for x in query], {}, []
    for row in rows:
        key = row.tobytes()
        if key not in known:
            known[key] = sum((a - Fraction(float(x))) ** 2 for a, x in zip(point, row))
        squares.append(known[key])
    return squares


def _squares(query: Array, rows: Array) -> Array:
    return np.square(rows - query).sum(axis=1)


def row_squares(rows: Any) -> Array:
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", rows, rows)


def plain(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
