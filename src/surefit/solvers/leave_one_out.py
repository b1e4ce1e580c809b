r"""Leave-one-out errors of ridge regression by their identity, for many penalties at once.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2 + alpha ||w||^2     for every alpha of a grid

Let A and b be the centred rows and targets, times sqrt(s_i). One factorisation serves all alphas. Without
row i, the model errs on row i by e_i / (1 - h_i), where e_i is its residual in the full fit and h_i the
leverage, h = diag(A (A'A + alpha I)^-1 A') + s / sum(s) (Allen 1974). With many rows, h comes from the
eigenvectors of A'A, block by block. With few, 1 - h_i cancels, for an interpolating model to nothing; there
e_i / (1 - h_i) = c_i / d_i with (A A' + alpha I) c = b and d the diagonal of that inverse, on the complement
of sqrt(s), which a reflection takes out exactly.

References
----------
Allen, "The relationship between variable selection and data augmentation" (1974); Golub, Heath & Wahba,
"Generalized cross-validation" (1979); Rifkin & Lippert, "Notes on regularized least squares" (2007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ..design import Design
from ._linear import DENSE_ENTRIES, means
from .direct import ridge

__all__ = ["LeaveOneOut", "leave_one_out"]

Array = NDArray[np.float64]
_TRUST = 1e-7  # smallest over largest eigenvalue below which a Gram matrix is not trusted
_LEVER = 1e-6  # 1 - h below which a row's error comes from a fit without it,
_LEVER_WORK = 2e10  # as long as all such fits take about as many multiplications as this


class LeaveOneOut(NamedTuple):
    """The errors on the rows left out, and the fit to all rows that their factorisation gives for free."""

    errors: Array  # y_i - prediction of the model fitted without row i, (n, T, n_alphas)
    solve: Callable[[Array], tuple[Array, Array]]  # a penalty per target -> (p, T) and (T,)


def leave_one_out(
    X: Design, Y: Array, s: Array, alphas: Array, *, fit_intercept: bool, svd: bool = False
) -> LeaveOneOut:
    """Leave each row out, for all penalties.

    Parameters
    ----------
    X : Design of shape (n, p)
    Y : array of shape (n, T)
    s : array of shape (n,)
        Positive weights.
    alphas : array of positive penalties
    fit_intercept : bool
    svd : bool
        Use the singular value decomposition in any case.
    """
    n, p = X.shape
    if n > p and not svd:
        eigen = _eigen_columns(X, Y, s, fit_intercept)
        digits = eigen.digits(alphas)
        too_large = n > 2 * p and n * p > DENSE_ENTRIES and not X.centres_first
        if digits > _TRUST or too_large:
            errors, rest = _tall(X, Y, s, alphas, eigen, fit_intercept)
            if n > 2 * p or rest.min() * digits > _TRUST:
                errors = _lifted(X, Y, s, alphas, errors, rest, fit_intercept)
                return LeaveOneOut(errors, partial(_solve_columns, X, Y, s, eigen))
    mean, y_mean = means(X, X.vector(Y), X.vector(s), fit_intercept)
    unit = np.sqrt(s / s.sum()) if fit_intercept else None
    B = np.sqrt(s)[:, None] * (Y - y_mean)
    root = np.sqrt(s)[:, None, None]
    if n > 2 * p:
        U, d, _ = np.linalg.svd(_weighted(X, s, mean), full_matrices=False)
        shrink = d[:, None] ** 2 / (d[:, None] ** 2 + alphas)
        rest = 1.0 - (U * U) @ shrink - (0.0 if unit is None else (unit**2)[:, None])
        fitted = np.einsum("ik,kt,ka->ita", U, U.T @ B, shrink, optimize=True)
        errors = _lifted(X, Y, s, alphas, (B[:, :, None] - fitted) / root, rest, fit_intercept)
        return LeaveOneOut(errors, lambda a: ridge(X, Y, s, a, fit_intercept=fit_intercept)[:2])
    A, lam, Q = _eigen_rows(X, s, mean, unit, float(alphas.min()), svd=svd)
    projected = Q.T @ B
    shrink = 1.0 / (lam[:, None] + alphas)  # (k, n_alphas)
    c = np.einsum("ik,kt,ka->ita", Q, projected, shrink, optimize=True)
    errors = c / ((Q * Q) @ shrink)[:, None, :] / root

    def solve(alpha: Array) -> tuple[Array, Array]:  # w = A'c, refined once
        if A is None or svd:
            return ridge(X, Y, s, alpha, fit_intercept=fit_intercept)[:2]
        inverse = 1.0 / (lam[:, None] + alpha)
        c = Q @ (inverse * projected)
        c += Q @ (inverse * (Q.T @ (B - A @ (A.T @ c) - alpha * c)))
        w = A.T @ c
        return w, y_mean - mean @ w

    return LeaveOneOut(errors, solve)


class _Eigen(NamedTuple):
    """A'A = V diag(lam) V', V'A'b, and the means taken out."""

    lam: Array
    V: Array
    projected: Array
    mean: Array
    y_mean: Array
    clean: bool  # nothing was lost in the products

    def digits(self, alphas: Array) -> float:
        """What is left of an error of 1 in the products: the smallest over the largest eigenvalue."""
        alpha = float(alphas.min())
        return float((self.lam[0] + alpha) / (self.lam[-1] + alpha)) if self.clean else 0.0


def _eigen_columns(X: Design, Y: Array, s: Array, fit_intercept: bool) -> _Eigen:
    gram, right, mean, y_mean = X.moments(X.vector(Y), X.vector(s), centred=fit_intercept)
    lam, V = np.linalg.eigh(gram)
    lost = (
        np.diag(gram) < 1e-8 * mean**2 * s.sum()
    )  # centred after the products, large means cancel
    clean = X.centres_first or not bool(lost.any())
    return _Eigen(np.maximum(lam, 0.0), V, V.T @ right, mean, y_mean, clean)


def _solve_columns(
    X: Design, Y: Array, s: Array, eigen: _Eigen, alpha: Array
) -> tuple[Array, Array]:
    """The coefficients for a penalty per target, refined once with the true residual."""
    lam, V, projected, mean, y_mean, _ = eigen
    inverse, target = 1.0 / (lam[:, None] + alpha), Y - y_mean
    w = V @ (inverse * projected)
    slope = X.respond(w, lambda rows, z: s[rows, None] * (target[rows] - z), mean)
    w += V @ (inverse * (V.T @ (slope - alpha * w)))
    return w, y_mean - mean @ w


def _tall(
    X: Design, Y: Array, s: Array, alphas: Array, eigen: _Eigen, fit_intercept: bool
) -> tuple[Array, Array]:
    """e_i and 1 - h_i, block by block."""
    lam, V, projected, mean, y_mean, _ = eigen
    n, T, count = len(Y), Y.shape[1], len(alphas)
    shrink = 1.0 / (lam[:, None] + alphas)
    slopes = (projected[:, :, None] * shrink[:, None, :]).reshape(len(V), -1)
    errors, rest = np.empty((n, T, count)), np.empty((n, count))
    own = s / s.sum() if fit_intercept else np.zeros(n)
    for rows, block in _row_blocks(X):
        Z = to_numpy(block @ like(V, block)) - mean @ V
        rest[rows] = 1.0 - own[rows, None] - s[rows, None] * ((Z * Z) @ shrink)
        fitted = (Z @ slopes).reshape(len(Z), T, count)
        errors[rows] = (Y[rows] - y_mean)[:, :, None] - fitted
    return errors, rest


def _lifted(
    X: Design,
    Y: Array,
    s: Array,
    alphas: Array,
    errors: Array,
    rest: Array,
    fit_intercept: bool,
) -> Array:
    """errors / rest; where rest = 1 - h has lost its digits, from a fit without that row."""
    n, p = X.shape
    levers = np.flatnonzero(rest.min(axis=1) < _LEVER)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors /= rest[:, None, :]
    if len(levers) * len(alphas) * n * p**2 <= _LEVER_WORK:
        for i in levers:
            errors[i] = _without(X, Y, s, alphas, int(i), fit_intercept)
    return errors


def _without(X: Design, Y: Array, s: Array, alphas: Array, i: int, fit_intercept: bool) -> Array:
    """The errors on row i of the models fitted without it, (T, n_alphas)."""
    without = s.copy()
    without[i] = 0.0
    row = X.tdot(X.vector((np.arange(len(s)) == i).astype(np.float64)))
    out = np.empty((Y.shape[1], len(alphas)))
    for k, a in enumerate(alphas):
        penalty = np.full(Y.shape[1], a)
        coef, intercept, *_ = ridge(X, Y, without, penalty, fit_intercept=fit_intercept)
        out[:, k] = Y[i] - row @ coef - (intercept if fit_intercept else 0.0)
    return out


def _eigen_rows(
    X: Design, s: Array, mean: Array, unit: Array | None, alpha: float, *, svd: bool
) -> tuple[Array | None, Array, Array]:
    """A, lam, Q with A A' = Q diag(lam) Q' on the complement of ``unit``, where A A' is 0."""
    n, p = X.shape
    A = _weighted(X, s, mean) if X.centres_first or n * p <= DENSE_ENTRIES else None
    if not svd or A is None:
        K = _row_products(X, s, mean) if A is None else A @ A.T
        if unit is not None:
            K = _reflected(_reflected(K, unit).T, unit)[1:, 1:]
        lam, Q = np.linalg.eigh(K)
        if A is None or lam[0] + alpha >= _TRUST * (lam[-1] + alpha):
            return A, np.maximum(lam, 0.0), _restored(Q, unit)
    seen = A if unit is None else _reflected(A, unit)[1:]
    Q, d, _ = np.linalg.svd(seen, full_matrices=len(seen) > p)  # all of the rows' space
    lam = np.zeros(len(Q))
    lam[: len(d)] = d**2
    return A, lam, _restored(Q, unit)


def _reflected(M: Array, unit: Array) -> Array:
    """P M with the reflection P = I - 2 v v' / v'v that takes ``unit`` to the first axis."""
    v = unit.copy()
    v[0] += np.copysign(1.0, v[0])
    return M - np.outer(v, (2.0 / (v @ v)) * (v @ M))


def _restored(Q: Array, unit: Array | None) -> Array:
    """The eigenvectors in the original coordinates."""
    if unit is None:
        return Q
    return _reflected(np.vstack([np.zeros((1, Q.shape[1])), Q]), unit)


def _row_blocks(X: Design) -> Iterator[tuple[slice, Any]]:
    """Row blocks of a size to multiply by a dense square matrix."""
    for rows, block in X.blocks():
        size = max(1, (1 << 22) // X.shape[1])
        for start in range(0, block.shape[0], size):
            stop = min(start + size, block.shape[0])
            yield slice(rows.start + start, rows.start + stop), block[start:stop]


def _weighted(X: Design, s: Array, mean: Array) -> Array:
    """A: the rows less the mean, times sqrt(s)."""
    A = X.home() - mean
    A *= np.sqrt(s)[:, None]
    return A


def _row_products(X: Design, s: Array, mean: Array) -> Array:
    """A A' of a sparse matrix that is too large to be made dense."""
    rows = next(block for _, block in X.blocks())
    shift = X.dot(mean)[:, None]
    root = np.sqrt(s)[:, None]
    centred = np.asarray((rows @ rows.T).todense()) - shift - shift.T + mean @ mean
    return root * centred * root.T
