r"""Ridge regression for many penalties and many folds at once.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2 + alpha ||w||^2     for every alpha of a grid

The normal equations of a fold come from :mod:`surefit.solvers.fold_moments`, by subtraction of its test rows,
and each fold is one eigendecomposition instead of a factorisation for each alpha. What the subtraction may
have cost is estimated; where it shows, the solution is refined on the training rows, or computed from their
singular value decomposition.

References
----------
Rifkin & Lippert, "Notes on regularized least squares" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design import as_design
from ._linear import DENSE_ENTRIES, means, weighted_centred
from .direct import ridge
from .fold_moments import Fold, FoldMoments, fold_moments

__all__ = ["fold_paths", "path_of_moments"]

Array = NDArray[np.float64]
_TRUST = 1e-7  # smallest over largest eigenvalue below which a Gram matrix is not trusted
_EXACT, _REFINE = 1e-12, 1e-6  # estimated errors up to which a fold is left alone, or refined


def fold_paths(
    X: Any, Y: Array, s: Array, folds: list[Fold], alphas: Array, *, fit_intercept: bool
) -> Iterator[tuple[Array, Array]]:
    """For each fold, coefficients (n_alphas, p, T) and intercepts (n_alphas, T) on its training rows.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Y : array of shape (n, T)
    s : array of shape (n,)
        Weights; rows of weight 0 are as good as absent.
    folds : list of (train, test) row numbers
    alphas : array of non-negative penalties
    fit_intercept : bool
    """
    p = X.shape[1]
    X = X.tocsr() if hasattr(X, "tocsr") else X
    design = as_design(X)
    fewest = min((len(train) for train, _ in folds), default=0)
    if p > fewest or not (alphas > 0).all() or (not design.centres_first and p > 5000):
        for train, _ in folds:
            yield _direct(X[train], Y[train], s[train], alphas, fit_intercept)
        return
    parts = fold_moments(X, Y, s, folds, fit_intercept=fit_intercept)
    for (train, _), part in zip(folds, parts, strict=True):
        found = path_of_moments(part, X, Y, s, train, alphas)
        if found is None:
            found = _direct(X[train], Y[train], s[train], alphas, fit_intercept)
        yield found


def path_of_moments(
    part: FoldMoments,
    X: Any,
    Y: Array,
    s: Array,
    train: NDArray[np.intp],
    alphas: Array,
    *,
    exact: float = _EXACT,
) -> tuple[Array, Array] | None:
    """The path of one fold, and as much checking on its rows as the subtraction calls for.

    Coefficients whose estimated relative error is up to ``exact`` are left alone. None where the rows
    themselves are needed.
    """
    lam, V = np.linalg.eigh(part.gram)
    error = part.noise / max(lam[0] + alphas.min(), 1e-300)
    if not error <= _REFINE:  # or not a number
        return None
    shrink = 1.0 / (lam[:, None] + alphas)
    T, count = part.right.shape[1], len(alphas)

    def solve(R: Array) -> Array:  # (p, T, n_alphas), each alpha with its own matrix
        scaled = (V.T @ R.reshape(len(V), -1)).reshape(len(V), T, -1) * shrink[:, None, :]
        return (V @ scaled.reshape(len(V), -1)).reshape(len(V), T, count)

    W = solve(part.right[:, :, None])
    if error > exact:
        rows, weights = as_design(X[train]), s[train]
        fitted = rows.dot(W.reshape(len(V), -1)) - part.mean @ W.reshape(len(V), -1)
        residual = (Y[train] - part.y_mean)[:, :, None] - fitted.reshape(-1, T, count)
        weighted = (weights[:, None, None] * residual).reshape(len(weights), -1)
        slope = rows.tdot(weighted) - np.outer(part.mean, weighted.sum(axis=0))
        W = W + solve(slope.reshape(W.shape) - alphas * W)
    coef = np.moveaxis(W, 2, 0)
    return coef, part.y_mean - part.mean @ coef


def _direct(X: Any, Y: Array, s: Array, alphas: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """One fold from its own rows: one SVD for all alphas, or a solver for each where that is too large."""
    kept = s > 0
    if not kept.all():
        X, Y, s = X[kept], Y[kept], s[kept]
    design = as_design(X)
    n, p = design.shape
    if n * p <= DENSE_ENTRIES and (alphas > 0).all() and n > 0:
        mean, y_mean = means(design, Y, s, fit_intercept)
        A, B = weighted_centred(design, Y, s, mean, y_mean)
        coef = _by_kernel(A, B, alphas) if n < p else None
        if coef is None:
            U, d, Vt = np.linalg.svd(A, full_matrices=False)
            shrink = d[:, None] / (d[:, None] ** 2 + alphas)
            coef = np.stack([Vt.T @ (f[:, None] * (U.T @ B)) for f in shrink.T])
        return coef, y_mean - mean @ coef
    paths = [
        ridge(design, Y, s, np.full(Y.shape[1], a), fit_intercept=fit_intercept) for a in alphas
    ]
    return np.stack([path.coef for path in paths]), np.stack([path.intercept for path in paths])


def _by_kernel(A: Array, B: Array, alphas: Array) -> Array | None:
    """w = A'c with (A A' + alpha I) c = b, refined once; None where A A' has lost too many digits."""
    lam, Q = np.linalg.eigh(A @ A.T)
    if lam[0] + alphas.min() < _TRUST * (lam[-1] + alphas.min()):
        return None
    coef = np.empty((len(alphas), A.shape[1], B.shape[1]))
    for k, a in enumerate(alphas):
        inverse = 1.0 / (np.maximum(lam, 0.0) + a)[:, None]
        c = Q @ (inverse * (Q.T @ B))
        w = A.T @ c
        coef[k] = A.T @ (c + Q @ (inverse * (Q.T @ (B - A @ w - a * c))))
    return coef
