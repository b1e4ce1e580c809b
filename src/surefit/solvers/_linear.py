"""What the direct methods for least squares and ridge regression share: their answer, and small products.

The methods are in :mod:`surefit.solvers.direct`, :mod:`surefit.solvers.orthogonal`,
:mod:`surefit.solvers.ridge_path` and :mod:`surefit.solvers.leave_one_out`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ..design import Design

__all__ = ["DENSE_ENTRIES", "LinearSolution", "centred_product", "means", "weighted_centred"]

Array = NDArray[np.float64]
DENSE_ENTRIES = 1 << 27  # a sparse matrix with fewer entries than this (1 GiB) may be made dense


class LinearSolution(NamedTuple):
    """Coefficients (p, T), intercepts (T,), and what the factorisation learnt."""

    coef: Array
    intercept: Array
    rank: int
    singular: Array | None  # singular values of the centred, weighted matrix, where known
    witness: Array | None  # u with coef = (X - mean)' u, when the rank is deficient


def means(X: Design, Y: Any, s: Any, fit_intercept: bool) -> tuple[Array, Array]:
    """Of the columns and the targets; 0 without an intercept."""
    if not fit_intercept:
        return np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    return X.mean(s), to_numpy(s @ Y) / float(s.sum())


def weighted_centred(
    X: Design, Y: Array, s: Array, mean: Array, y_mean: Array
) -> tuple[Array, Array]:
    """A and B, the rows and the targets less their means, times sqrt(s); all on the host."""
    root = np.sqrt(s)[:, None]
    A = X.home()
    A -= mean
    A *= root
    return A, (Y - y_mean) * root


def centred_product(X: Design, w: Array, mean: Array) -> Array:
    """(X - mean) w."""
    if not X.centres_first:
        return X.dot(w) - mean @ w
    parts = []
    for _, block in X.blocks():
        parts.append(to_numpy((block - like(mean, block)) @ like(w, block)))
    return np.concatenate(parts)
