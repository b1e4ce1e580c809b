"""One fold of a cross-validated Lasso or elastic net: the path on its training rows, and its errors.

Used by :class:`surefit.linear_model._path_cv.PathCV`. With many rows to a column, the path is fitted to the
products of the fold (:mod:`surefit.solvers.fold_moments`), of which all folds together cost one pass.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..design import as_design
from ..solvers.coordinate import ElasticNetData
from ..solvers.fold_moments import Fold, FoldMoments, fold_moments
from ..solvers.ridge_path import fold_paths
from .least_squares import kept_rows
from .multitask import task_data
from .paths import solve_path

__all__ = ["FoldPath", "Options", "fold_path", "mean_squares", "path_models", "path_moments"]

Array = NDArray[np.float64]
_GRAM_COLUMNS = 1000  # most columns for which a fold is reduced to its products


class Options(NamedTuple):
    """What all paths have in common; ``seed`` is for a random order of the coordinates."""

    fit_intercept: bool
    positive: bool
    tol: float
    max_iter: int
    seed: int | None


class FoldPath(NamedTuple):
    """Errors on the test rows (n_alphas,), coefficients (n_alphas, T p), intercepts (n_alphas, T)."""

    errors: Array
    coefs: Any  # csr_array: most are 0
    intercepts: Array
    unfinished: int

    def coef(self, k: int) -> Array:
        """Those of one alpha, (T, p)."""
        return np.asarray(self.coefs[[k]].toarray().reshape(self.intercepts.shape[1], -1))


def path_moments(
    X: Any, Y: Array, sample_weight: Array | None, folds: list[Fold], *, fit_intercept: bool
) -> list[FoldMoments | None]:
    """With many rows to a column, the products that the paths of all folds are made of."""
    n, p = X.shape
    if p > _GRAM_COLUMNS or min(len(train) for train, _ in folds) < 4 * p:
        return [None] * len(folds)
    s = np.ones(n) if sample_weight is None else sample_weight
    return list(fold_moments(X, Y, s, folds, fit_intercept=fit_intercept))


def fold_path(
    X: Any,
    Y: Array,
    sample_weight: Array | None,
    fold: Fold,
    moments: FoldMoments | None,
    alphas: Array,
    ratio: float,
    options: Options,
) -> FoldPath:
    """The path on the training rows of a fold, and its errors on the test rows."""
    train, test = fold
    sparse, intercepts, unfinished = path_models(
        X, Y, sample_weight, train, moments, alphas, ratio, options
    )
    weights = None if sample_weight is None else sample_weight[test]
    used = np.unique(sparse.indices % X.shape[1])
    columns = X[test][:, used]
    compact = np.stack(
        [sparse[:, used + t * X.shape[1]].toarray() for t in range(Y.shape[1])], axis=1
    )
    errors = mean_squares(columns, Y[test], weights, np.moveaxis(compact, 0, 2), intercepts.T)
    return FoldPath(errors, sparse, intercepts, unfinished)


def path_models(
    X: Any,
    Y: Array,
    sample_weight: Array | None,
    train: NDArray[np.intp],
    moments: FoldMoments | None,
    alphas: Array,
    ratio: float,
    options: Options,
) -> tuple[Any, Array, int]:
    """Coefficients (n_alphas, T p), intercepts (n_alphas, T), and how many fits did not finish."""
    s = np.ones(len(train)) if sample_weight is None else sample_weight[train]
    if not s.any():
        raise ValueError("a fold has no training rows of positive weight: use other folds.")
    if moments is not None and ratio > 0.0:
        found = _descend_on_products(moments, Y[train], s, alphas, ratio, options)
        if found is not None:
            return found
    rows, targets, s = kept_rows(X[train], Y[train], s)
    return _descend(rows, targets, s / s.sum(), alphas, ratio, options)


def _descend(
    X: Any, Y: Array, s: Array, alphas: Array, ratio: float, options: Options
) -> tuple[Any, Array, int]:
    """Coefficients (n_alphas, T p), intercepts, and how many fits did not finish."""
    if ratio == 0.0 and not options.positive:  # no corners: ridge regression
        everything = [(np.arange(len(s)), np.arange(0))]
        [(coefs, intercepts)] = fold_paths(
            X, Y, s, everything, alphas, fit_intercept=options.fit_intercept
        )
        return sp.csr_array(np.moveaxis(coefs, 1, 2).reshape(len(alphas), -1)), intercepts, 0
    data, mean, y_mean = task_data(X, Y, s, fit_intercept=options.fit_intercept)
    null = 0.5 * float(np.sum(s @ (Y - y_mean) ** 2))
    coefs, unfinished = _along(data, Y.shape[1], alphas, ratio, options, null)
    return coefs, _intercepts(coefs, mean, y_mean), unfinished


def _descend_on_products(
    moments: FoldMoments, Y: Array, s: Array, alphas: Array, ratio: float, options: Options
) -> tuple[Any, Array, int] | None:
    """The same for a problem with as many rows as columns, which has the same products.

    With G = V diag(lam) V' for the Gram matrix, the rows sqrt(lam_k) v_k' and the targets v_k'r / sqrt(lam_k)
    have the squared error of the training rows, but for a constant. None where the rounding of G, which
    changes the objective at w by at most noise/2 ||w||^2 + right_noise ||w||, could be seen.
    """
    lam, V = np.linalg.eigh(moments.gram / moments.mass)
    kept = lam > max(moments.noise / moments.mass, 0.0)
    root = np.sqrt(lam[kept])[:, None]
    targets = (V[:, kept].T @ (moments.right / moments.mass)) / root
    null = 0.5 * float(np.sum((s / s.sum()) @ (Y - moments.y_mean) ** 2))
    if not kept.any() or null == 0.0:
        return None
    data = ElasticNetData.prepare(
        root * V[:, kept].T, targets[:, 0] if Y.shape[1] == 1 else targets, np.ones(len(root)),
        fit_intercept=False,
    )  # fmt: skip
    # beyond tol: it costs little, and the gap on the rows themselves is the larger one
    tight = options._replace(tol=min(options.tol, max(1e-4 * options.tol, 1e-12)))
    coefs, unfinished = _along(data, Y.shape[1], alphas, ratio, tight, null)
    largest = math.sqrt(float(coefs.multiply(coefs).sum(axis=1).max()))
    seen = (0.5 * moments.noise * largest + moments.right_noise) * largest / moments.mass
    if not seen <= 0.1 * options.tol * null:
        return None
    return coefs, _intercepts(coefs, moments.mean, moments.y_mean), unfinished


def _along(
    data: ElasticNetData,
    targets: int,
    alphas: Array,
    ratio: float,
    options: Options,
    null: float,
) -> tuple[Any, int]:
    """Coordinate descent along the path, each alpha starting from the last; ``null`` is what tol is of."""
    rng = None if options.seed is None else np.random.default_rng(options.seed)
    p, own = len(data.norm2), 0.5 * float(np.sum(data.s @ (data.y - data.y_mean) ** 2))
    tol = options.tol * null / own if own > 0.0 else options.tol
    w = np.zeros(p if data.y.ndim == 1 else (targets, p))
    index, values, ends, unfinished = [], [], [0], 0
    fits = solve_path(
        data, alphas, ratio, w, positive=options.positive, rng=rng, tol=tol,
        max_iter=options.max_iter,
    )  # fmt: skip
    for fit in fits:
        unfinished += int(not fit.observed <= max(options.tol, 1e-14) * null)
        flat = w.reshape(-1)
        index.append(np.flatnonzero(flat))
        values.append(flat[index[-1]])
        ends.append(ends[-1] + len(index[-1]))
    parts = (np.concatenate(values), np.concatenate(index), np.array(ends))
    return sp.csr_array(parts, shape=(len(alphas), targets * p)), unfinished


def _intercepts(coefs: Any, mean: Array, y_mean: Array) -> Array:
    """(n_alphas, T)."""
    p = len(mean)
    parts = [coefs[:, t * p : (t + 1) * p] @ mean for t in range(len(y_mean))]
    return y_mean - np.stack(parts, axis=1)


def mean_squares(X: Any, Y: Array, weights: Array | None, coef: Array, offsets: Array) -> Array:
    """Mean squared errors (n_alphas,) of coefficients (T, p, n_alphas) and offsets (T, n_alphas)."""
    design = as_design(X)
    total = np.zeros(coef.shape[2])
    for t in range(coef.shape[0]):
        residual = Y[:, [t]] - (design.dot(np.ascontiguousarray(coef[t])) + offsets[t])
        total += np.average(residual**2, axis=0, weights=weights)
    return total / coef.shape[0]
