r"""The geometry of a linear classifier: distances, margins and projections (DAT-9, SVM-1).

A classifier sgn(<x, w> + b) has the hyperplane H = {x : <w, x> + b = 0}. w is perpendicular to H, the
signed distance of x from H is (<w, x> + b) / ||w||, and the margin of labelled rows is the least y_i
times that. All three are the same for (c w, c b) with any c > 0.

Examples
--------
>>> X, y = [[0, 0], [1, 0], [0, 1], [1, 1]], [-1, 1, 1, 1]     # OR
>>> round(margin(([2, 2], -1), X, y), 5)
0.35355
>>> signed_distance(([3, 4], -5), [[3, 4], [0, 0]]).tolist()
[4.0, -1.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

__all__ = ["margin", "project", "signed_distance"]

Array = NDArray[np.float64]


def signed_distance(plane: Any, X: Any) -> Array:
    """(<x, w> + b) / ||w|| of each row: positive on the side that w points to.

    Parameters
    ----------
    plane : fitted linear classifier of two classes, or pair (w, b)
    X : {array-like, sparse matrix} of shape (n, d)

    Returns
    -------
    array of shape (n,)
    """
    unit, offset = _unit_normal(plane)
    return np.asarray(_rows(X, unit) @ unit).ravel() + offset


def margin(plane: Any, X: Any, y: Any) -> float:
    """The least y_i times the signed distance: negative as soon as one row is on the wrong side.

    Parameters
    ----------
    plane : fitted linear classifier of two classes, or pair (w, b)
    X : {array-like, sparse matrix} of shape (n, d)
    y : array-like of shape (n,)
        Labels -1 and +1 beside a pair; the labels of the classifier beside one.

    Examples
    --------
    >>> margin(([1.0], 0.0), [[2.0], [-3.0]], [1, -1]), margin(([9.0], 0.0), [[2.0], [-3.0]], [1, 1])
    (2.0, -3.0)
    """
    distances = signed_distance(plane, X)
    negative, positive = getattr(plane, "classes_", (-1, 1))
    labels = np.asarray(y)
    sides = np.where(labels == positive, 1.0, -1.0)
    if labels.shape != distances.shape or not ((labels == positive) | (labels == negative)).all():
        found = np.unique(labels.ravel().astype(str))[:4].tolist()
        raise ValueError(
            f"y must hold {negative!r} or {positive!r} for each of the {len(distances)} rows of X, got shape "
            f"{labels.shape} and labels {found}."
        )
    return float((sides * distances).min())


def project(plane: Any, X: Any) -> Array:
    """The nearest point of the hyperplane to each row: x - distance(x) w / ||w||.

    Examples
    --------
    >>> project(([0.0, 2.0], -2.0), [[5.0, 7.0]]).tolist()
    [[5.0, 1.0]]
    """
    unit, _ = _unit_normal(plane)
    rows = _rows(X, unit)
    rows = rows.toarray() if sp.issparse(rows) else rows
    return rows - np.outer(signed_distance(plane, X), unit)


def _unit_normal(plane: Any) -> tuple[Array, float]:
    """w / ||w|| and b / ||w||."""
    if hasattr(plane, "coef_"):
        coef = plane.coef_
        w = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
        if w.ndim == 2 and w.shape[0] != 1:
            raise ValueError(
                f"plane is a {type(plane).__name__} with {w.shape[0]} hyperplanes: pass one of them as a "
                "pair (coef_[k], intercept_[k])."
            )
        w, b = w.ravel(), float(np.ravel(plane.intercept_)[0])
    else:
        try:
            w, b = plane
        except (TypeError, ValueError):
            raise TypeError(
                f"plane must be a fitted linear classifier or a pair (w, b), got {type(plane).__name__}."
            ) from None
        w, b = np.asarray(w, dtype=np.float64).ravel(), float(b)
    largest = float(np.abs(w).max(initial=0.0))
    if not (largest > 0.0 and np.isfinite(largest) and np.isfinite(b)):
        raise ValueError(
            f"w must be finite and not all 0, and b finite; got max |w| = {largest}, b = {b}."
        )
    scaled = w / largest  # so that its square neither overflows nor vanishes
    length = float(np.linalg.norm(scaled))
    return scaled / length, b / largest / length


def _rows(X: Any, unit: Array) -> Any:
    rows = check_array(X, accept_sparse="csr", dtype=np.float64)
    if rows.shape[1] != len(unit):
        raise ValueError(f"X has {rows.shape[1]} columns, the hyperplane {len(unit)}.")
    return rows
