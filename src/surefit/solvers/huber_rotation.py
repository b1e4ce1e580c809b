r"""Huber's regression in better coordinates: w = Tu with a table XT of few, independent columns.

Newton's method works with X'SX, in which columns that agree to nine digits are the same. Two kinds of problem
are therefore turned first, if their size allows singular vectors:

* fewer rows than columns: what is orthogonal to all rows is 0 at the optimum, and the table has n columns;
* dependent or nearly dependent columns: the table has orthonormal ones.

With a penalty T is orthonormal too, so that alpha ||w||^2 = alpha ||u||^2 and the problem keeps its form.
Without one T may be anything: X = U diag(d) V'D gives the table U and T = D^-1 V diag(1/d), D the lengths of
the columns, so that bad units are not taken for bad condition. With an intercept the columns are centred
first, so that a constant column is not taken for a very short one.

References
----------
Golub & Van Loan, Matrix Computations (2013), sections 5.5 and 6.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from .._namespace import to_numpy
from ..design import Design

__all__ = ["Turned", "are_nearly_dependent", "independent_columns", "row_space"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_ROTATION = 1 << 30  # operations (n p min(n, p)) up to which singular vectors are cheap
_DEPENDENT = 1e-9  # share of a column's square that the others leave unexplained
_UNITS = 1e6  # ratio of column lengths up to which a penalised problem is turned,
_FEW = 500  # unless it has more columns than this


class Turned(NamedTuple):
    """The table of the new problem, and the way back."""

    table: Array
    center: Array  # subtracted from the rows of X
    back: Callable[[Array], Array]  # u -> w

    def intercept(self, b: float, w: Array) -> float:
        """The intercept for X, from that for the table."""
        return b - float(self.center @ w)

    def forth(self, z: Array, b: float, w: Array) -> tuple[Array, float]:
        """u and the intercept for the table of a model with z = Xw."""
        shift = float(self.center @ w)
        return np.asarray(np.linalg.lstsq(self.table, z - shift)[0]), b + shift


def row_space(X: Design, alpha: float, most: int) -> Turned | None:
    """For fewer rows than columns, and at most ``most`` rows; None where that does not pay."""
    n, p = X.shape
    table = getattr(X, "X", None)
    if table is None or n > most:
        return None
    nothing = np.zeros(p)
    if alpha > 0.0 and p <= _FEW:
        lengths = X.column_norms()
        if lengths.max() > _UNITS * lengths[lengths > 0.0].min(initial=math.inf):
            return None  # an orthonormal T would lose the short columns among the long ones
    if n * n * p <= _ROTATION:
        U, d, Vt = _singular(_dense(X))
        if alpha == 0.0:
            return Turned(U, nothing, lambda u: Vt.T @ (u / d))
        return Turned(U * d, nothing, lambda u: Vt.T @ u)
    products = table @ table.T
    products = products.toarray() if hasattr(products, "toarray") else to_numpy(products)
    try:
        L = np.linalg.cholesky(np.asarray(products, dtype=np.float64))
    except np.linalg.LinAlgError:
        return None
    if np.diag(L).min() < 1e-4 * np.diag(L).max():
        return None

    def back(u: Array) -> Array:
        return X.tdot(X.vector(solve_triangular(L, u, lower=True, trans="T")))  # T = X'L^-T

    return Turned(L, nothing, back)


def are_nearly_dependent(K: Array) -> bool:
    """Whether columns with this Gram matrix are: its Cholesky factor shows what each adds to those before."""
    scale = np.sqrt(np.maximum(np.diag(K), 0.0))
    if not scale.all():
        return True
    try:
        added = np.diag(np.linalg.cholesky(K / scale / scale[:, None]))
    except np.linalg.LinAlgError:
        return True
    return bool(added.min(initial=1.0) ** 2 < _DEPENDENT)


def independent_columns(X: Design, s: Any, alpha: float, *, free: bool) -> Turned | None:
    """For nearly dependent columns; None where that does not pay."""
    n, p = X.shape
    if n * p * p > _ROTATION or getattr(X, "X", None) is None:
        return None
    center = X.mean(s) if free else np.zeros(p)
    A = _dense(X) - center
    lengths = np.linalg.norm(A, axis=0)
    constant = lengths <= _EPS * (8.0 + np.sqrt(n)) * np.sqrt(n) * np.abs(center)
    A[:, constant] = 0.0
    lengths[constant] = 0.0
    if not lengths.any():  # only the intercept is left
        return Turned(np.zeros((n, 1)), center, lambda u: np.zeros(p))
    if alpha > 0.0 and lengths.max() > _UNITS * lengths[lengths > 0].min():
        return None
    if alpha > 0.0:
        U, d, Vt = _singular(A)
        return Turned(U * d, center, lambda u: Vt.T @ u)
    lengths[lengths == 0.0] = 1.0
    U, d, Vt = _singular(A / lengths)
    return Turned(U, center, lambda u: Vt.T @ (u / d) / lengths)


def _dense(X: Design) -> Array:
    blocks = [b.toarray() if hasattr(b, "toarray") else to_numpy(b) for _, b in X.blocks()]
    return np.concatenate(blocks)


def _singular(A: Array) -> tuple[Array, Array, Array]:
    """The singular vectors and values that are not 0 to rounding; one at least."""
    U, d, Vt = np.linalg.svd(A, full_matrices=False)
    kept = d > d[0] * max(A.shape) * _EPS
    kept[0] = True
    return U[:, kept], np.maximum(d[kept], np.finfo(np.float64).tiny), Vt[kept]
