r"""Whether a hyperplane separates two classes, with the proof either way.

Gordan's theorem: either some (w, b) has y_i (<x_i, w> + b) > 0 for all rows, or some weights lambda
>= 0 that sum to 1 have sum_i lambda_i y_i (x_i, 1) = 0, never both. :func:`separate` returns the
widest margin and the weights; each can be checked from the data alone.

References
---------- Gordan (1873); Gilbert, "An iterative procedure for computing the minimum of a quadratic
form on a convex set" (1966); Lawson & Hanson, Solving Least Squares Problems (1974), chapter 23.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.utils import check_array

__all__ = ["Separation", "separate"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2000  # up to which non-negative least squares takes all rows at once


class Separation(NamedTuple):
    """What :func:`separate` found; every number is recomputed from the data."""

    w: Array
    b: float
    margin: float  # min_i y_i (<x_i, w> + b) / ||(w, b)||; positive: the rows are separated
    farkas: Array  # lambda_i >= 0, summing to 1
    residual: float  # ||sum_i lambda_i y_i (x_i, 1)||: no hyperplane has a larger margin


def separate(X: Any, y: Any, *, fit_intercept: bool = True) -> Separation:
    r"""The widest margin, and the proof that there is none wider.

    The point of least norm in the convex hull of :math:`z_i = y_i(x_i, 1)` settles separability
    (Gordan's theorem): if it is :math:`p \ne 0`, the hyperplane :math:`p` separates with the widest
    margin :math:`\|p\|`; if it is 0, its convex weights prove that no hyperplane separates. It is found
    as the non-negative least-squares solution of
    :math:`\min_{\lambda\ge0} \|\sum_i\lambda_i z_i\|^2 + (\sum_i\lambda_i - 1)^2`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels -1 and +1.
    fit_intercept : bool, default=True
        Whether hyperplanes may have an offset; if not, the 1 is dropped.

    Returns
    -------
    Separation
        For every unit :math:`(w, b)`, :math:`\min_i y_i(\langle x_i, w\rangle + b) \le` ``residual``.

    Examples
    --------
    >>> X = [[0, 0], [1, 0], [0, 1], [1, 1]]
    >>> round(separate(X, [-1, 1, 1, 1]).margin, 6)  # OR
    0.333333
    >>> separate(X, [-1, 1, 1, -1]).farkas.round(12).tolist()  # XOR
    [0.25, 0.25, 0.25, 0.25]
    """
    rows = check_array(X, accept_sparse=True, dtype=np.float64)
    rows = rows.toarray() if sp.issparse(rows) else rows
    signs = np.asarray(y, dtype=np.float64)
    if signs.shape != (len(rows),) or not np.isin(signs, (-1.0, 1.0)).all():
        raise ValueError(
            f"y must hold a label -1 or +1 for each of the {len(rows)} rows of X, got shape "
            f"{signs.shape} and labels {np.unique(signs)[:4].tolist()}; use np.where(y == c, 1, -1)."
        )
    points = np.column_stack([rows, np.ones(len(rows))]) if fit_intercept else rows
    Z = signs[:, None] * points
    if len(Z) > _ROWS:
        return _by_parts(Z, fit_intercept)
    return _settle(Z, fit_intercept)


def _settle(Z: Array, fit_intercept: bool) -> Separation:
    """All rows at once."""
    farkas = _nearest_hull_weights(Z)
    plane = farkas @ Z
    floor = 8.0 * sum(Z.shape) * _EPS * float(np.abs(Z).max(initial=0.0))
    if _margin(Z, plane) <= 0 and np.linalg.norm(plane) > floor:  # columns of very unequal size
        columns = np.maximum(np.abs(Z).max(axis=0), np.finfo(np.float64).tiny)
        balanced = _nearest_hull_weights(Z / columns)
        plane = max(plane, balanced @ (Z / columns) / columns, key=lambda v: _margin(Z, v))
        farkas = min(farkas, balanced, key=lambda weights: float(np.linalg.norm(weights @ Z)))
    w, b = (plane[:-1], float(plane[-1])) if fit_intercept else (plane, 0.0)
    return Separation(w, b, _margin(Z, plane), farkas, float(np.linalg.norm(farkas @ Z)))


def _by_parts(Z: Array, fit_intercept: bool) -> Separation:
    """The same for many rows, from those that matter: a subset that nothing separates settles all of them.

    Otherwise the rows that the subset's best hyperplane has nearest come in, until none is nearer than the
    subset's own. Each round adds rows that are not in it, so it ends.
    """
    inside = np.zeros(len(Z), dtype=np.bool_)
    inside[np.linspace(0, len(Z) - 1, min(_ROWS, 2 * Z.shape[1] + 2)).astype(np.intp)] = True
    while True:
        rows = np.flatnonzero(inside)
        found = _settle(Z[rows], fit_intercept)
        farkas = np.zeros(len(Z))
        farkas[rows] = found.farkas
        plane = np.append(found.w, found.b) if fit_intercept else found.w
        scores = Z @ (plane / (float(np.linalg.norm(plane)) or 1.0))
        near = float(scores[rows].min())
        nearer = np.flatnonzero(~inside & (scores < near - 1e-12 * float(np.abs(scores).max())))
        if found.margin <= 0.0 or not len(nearer):
            return found._replace(farkas=farkas, margin=_margin(Z, plane))
        most = max(2 * Z.shape[1], 100)
        inside[nearer[np.argsort(scores[nearer])[:most]]] = True


def _nearest_hull_weights(Z: Array) -> Array:
    """Convex weights of the point of least norm in the hull of the rows of Z."""
    scale = float(np.abs(Z).max(initial=0.0)) or 1.0
    stacked = np.vstack([Z.T / scale, np.ones(len(Z))])
    target = np.append(np.zeros(Z.shape[1]), 1.0)
    weights, _ = nnls(stacked, target)
    return weights / weights.sum()


def _margin(Z: Array, plane: Array) -> float:
    norm = float(np.linalg.norm(plane))
    return float(np.min(Z @ (plane / norm))) if norm > 0 else 0.0
