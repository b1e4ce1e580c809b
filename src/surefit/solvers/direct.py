r"""Least squares and ridge by linear algebra.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2 + alpha ||w||^2,     several targets at once.

The fast way is the normal equations: the centred Gram matrix is accumulated over row blocks, scaled to unit
diagonal, factorised (Cholesky), and unless it is well conditioned the solution is refined once with the true
residual, which makes it as accurate as an orthogonal method as long as cond(X)^2 is below 1/eps. A condition
estimate decides: beyond it, an orthogonal factorisation of the data matrix itself is used, which gives the
solution of minimum norm too (:mod:`surefit.solvers.orthogonal`). A small problem is handed to it much
earlier, for the digits it gains. Dense rows are centred before they are multiplied, so that large means
cost no digits either. Where the data are float32 and well conditioned, the Gram matrix is formed in float32,
at twice the speed, and the refinement, in float64, gives the digits back.

References
----------
Golub & Van Loan, Matrix Computations (2013), chapter 5; Higham, Accuracy and Stability of Numerical
Algorithms (2002), chapter 20.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ..design import Dense, Design, Sparse, Torch
from ._linear import DENSE_ENTRIES, LinearSolution, centred_product, means, weighted_centred
from .orthogonal import by_orthogonal, by_triangle, triangle

__all__ = ["least_squares", "ridge"]

Array = NDArray[np.float64]
_TRUST = 1e-9  # reciprocal condition of the scaled Gram matrix below which it is not trusted
_SURE = 1e-2  # the same above which refinement would change nothing but the last digits
_TRUST_SMALL = 1e-3  # the same where the orthogonal way takes about a millisecond,
_SMALL = 1 << 19  # that is, with n p^2 up to this
_CANCELS = 1e-2  # the intercept over the mean of y, below which that goes for it too
_FAINT = 1e-28  # mean square of a column below which float32 products would underflow
_MIXED = 1 << 26  # the same above which float32 data are worth multiplying in float32
_TRUST_KERNEL = 1e-4  # the same for X X' + alpha I, as long as an SVD takes a few seconds at most,
_SVD_WORK = 1 << 30  # that is, with n^2 p up to this
_GRAM_COLUMNS = 5000  # most columns (or rows) for a dense Gram matrix of a sparse problem


def least_squares(X: Design, Y: Any, s: Any, *, fit_intercept: bool) -> LinearSolution:
    """The least-squares solution; of minimum norm when it is not unique.

    Parameters
    ----------
    X : Design of shape (n, p)
    Y : array of shape (n, T)
    s : array of shape (n,)
        Non-negative weights.
    fit_intercept : bool
    """
    n, p = X.shape
    if p <= n and (X.centres_first or p <= _GRAM_COLUMNS):
        solved = _by_gram(X, Y, s, np.zeros(Y.shape[1]), fit_intercept)
        if solved is not None:
            return solved
    if not X.centres_first and n * p > DENSE_ENTRIES:
        return _by_lsmr(X, Y, s, np.zeros(Y.shape[1]), fit_intercept)
    if p <= n and n * p > DENSE_ENTRIES:
        return by_triangle(X, Y, s, fit_intercept)
    return by_orthogonal(X, to_numpy(Y), to_numpy(s), fit_intercept)


def ridge(
    X: Design,
    Y: Any,
    s: Any,
    alpha: Array,
    *,
    fit_intercept: bool,
    moments: tuple[Array, Array, Array, Array] | None = None,
) -> LinearSolution:
    """The ridge solution, one penalty per target; ``alpha`` all zero is least squares.

    ``moments`` is what ``X.moments(Y, s, centred=fit_intercept)`` would give, where that is known already.
    """
    n, p = X.shape
    if not alpha.any():
        return least_squares(X, Y, s, fit_intercept=fit_intercept)
    if p <= n and (X.centres_first or p <= _GRAM_COLUMNS):
        if moments is None:
            solved = _by_gram(X, Y, s, alpha, fit_intercept)
        else:
            solved = _from_moments(X, Y, s, alpha, fit_intercept, single=False, moments=moments)
        if solved is not None:
            return solved
    if n < p and n <= _GRAM_COLUMNS and alpha.all():
        solved = _by_kernel(X, to_numpy(Y), to_numpy(s), alpha, fit_intercept)
        if solved is not None:
            return solved
    if not X.centres_first and n * p > DENSE_ENTRIES:
        return _by_lsmr(X, Y, s, alpha, fit_intercept)
    mean, y_mean = means(X, Y, s, fit_intercept)
    if p <= n and n * p > DENSE_ENTRIES:
        A, B = triangle(X, Y, s, mean, y_mean)
    else:
        A, B = weighted_centred(X, to_numpy(Y), to_numpy(s), mean, y_mean)
    U, d, Vt = scipy.linalg.svd(A, full_matrices=False)
    shrink = d[:, None] / (d[:, None] ** 2 + alpha[None, :])
    if not alpha.all():  # targets without a penalty: minimum norm
        keep = d > d[0] * max(n, p) * np.finfo(float).eps
        inverse = np.divide(1.0, d, out=np.zeros_like(d), where=keep)
        shrink = np.where(alpha[None, :] > 0, shrink, inverse[:, None])
    coef = Vt.T @ (shrink * (U.T @ B))
    slope = A.T @ (B - A @ coef) - alpha * coef
    curvature = np.where(alpha[None, :] > 0, d[:, None] ** 2 + alpha[None, :], np.inf)
    coef += Vt.T @ ((Vt @ slope) / curvature)
    return LinearSolution(coef, y_mean - mean @ coef, len(d), d, None)


def _by_gram(X: Design, Y: Any, s: Any, alpha: Array, fit_intercept: bool) -> LinearSolution | None:
    """Normal equations; None when the factorisation cannot be trusted."""
    large = X.shape[0] * X.shape[1] ** 2 > _MIXED
    if large and X.dtype == np.float32 and _by_row(X) and Y.shape[1] == 1:
        solved = _from_moments(X, Y, s, alpha, fit_intercept, single=True)
        if solved is not None:
            return solved
    return _from_moments(X, Y, s, alpha, fit_intercept, single=False)


def _from_moments(
    X: Design,
    Y: Any,
    s: Any,
    alpha: Array,
    fit_intercept: bool,
    *,
    single: bool,
    moments: tuple[Array, Array, Array, Array] | None = None,
) -> LinearSolution | None:
    if moments is None:
        moments = X.moments(Y, s, centred=fit_intercept, single=single)
    gram, rhs, mean, y_mean = moments
    if not np.isfinite(gram).all():
        return None
    diagonal = np.diag(gram).copy()
    mass = float(s.sum())
    noise = np.finfo(float).eps * (8.0 + np.sqrt(X.shape[0])) * np.abs(mean)
    if (diagonal <= noise**2 * mass).any() and not alpha.all():
        return None  # a centred constant column is rounding, which unit scaling would blow up
    if not X.centres_first and (diagonal < 1e-8 * mean**2 * mass).any():
        return None  # a sparse matrix is centred after the products, where this would cancel
    if single and (diagonal < _FAINT * X.shape[0]).any():
        return None
    coef, drift = np.empty_like(rhs), np.zeros_like(y_mean)
    large = X.shape[0] * X.shape[1] ** 2 > _SMALL
    for a in np.unique(alpha):
        scale = np.sqrt(diagonal + a)
        if not (scale > 0).all():
            return None
        shifted = gram / np.outer(scale, scale)
        shifted[np.diag_indices_from(shifted)] = 1.0
        factor, info = scipy.linalg.lapack.dpotrf(shifted, lower=1)
        if info != 0:
            return None
        rcond, _ = scipy.linalg.lapack.dpocon(factor, np.abs(shifted).sum(axis=0).max(), uplo="L")
        if rcond < (_SURE if single else _TRUST if large or alpha.any() else _TRUST_SMALL):
            return None
        targets = np.flatnonzero(alpha == a)

        def solve(r: Array, L: Array = factor, d: Array = scale) -> Array:
            return (
                scipy.linalg.cho_solve((L, True), r / d[:, None], check_finite=False) / d[:, None]
            )

        w = solve(rhs[:, targets])
        if single or rcond < _SURE or not large:  # refine with the true residual
            slope, total = _correlate(X, Y[:, targets], s, mean, y_mean[targets], w)
            w = w + solve(slope - a * w)
            if single and fit_intercept:  # what the mean lacks, formed in float32
                drift = total / mass
        coef[:, targets] = w
    singular = None
    if not alpha.any():
        singular = np.sqrt(np.maximum(scipy.linalg.eigvalsh(gram, check_finite=False)[::-1], 0.0))
    intercept = y_mean - mean @ coef + drift
    cancels = np.abs(intercept) < _CANCELS * np.abs(y_mean)
    if not large and not alpha.any() and cancels.any():  # it shows the rounding of coef
        return None
    return LinearSolution(coef, intercept, X.shape[1], singular, None)


def _by_row(X: Design) -> bool:
    """Whether X is an array that the kernels over rows can read."""
    return isinstance(X, Dense) and X.X.flags.c_contiguous and X.X.dtype.char in "fd"


def _correlate(
    X: Design, Y: Any, s: Any, mean: Array, y_mean: Array, w: Array
) -> tuple[Array, Array]:
    """(X - mean)'S(Y - y_mean - (X - mean) w), minus the gradient of least squares; and 1'S(...)."""
    target = Y - like(y_mean, Y)
    if _by_row(X) and Y.shape[1] == 1:
        return _correlate_rows(X.X, target[:, 0], s, mean, w[:, 0])  # type: ignore[attr-defined]
    totals = []

    def residual(rows: slice, z: Any) -> Any:
        r = s[rows, None] * (target[rows] - z)
        totals.append(to_numpy(r.sum(axis=0)))
        return r

    slope = X.respond(w, residual, mean)
    return slope, X.group.sum(np.sum(totals, axis=0))


def _correlate_rows(X: Array, y: Array, s: Array, mean: Array, w: Array) -> tuple[Array, Array]:
    from .._jit.glm import squared_rows
    from .._threads import over_rows

    def part(first: int, last: int) -> tuple[Array, float]:
        slope = np.zeros(len(w))
        total = squared_rows(X, y, s, w, mean, first, last, slope)
        return slope, total

    slopes, totals = zip(*over_rows(len(X), part), strict=True)
    return np.sum(slopes, axis=0)[:, None], np.array([sum(totals)])


def _by_kernel(
    X: Design, Y: Array, s: Array, alpha: Array, fit_intercept: bool
) -> LinearSolution | None:
    """Fewer rows than columns: w = A'c with (A A' + alpha I) c = b, A the centred, weighted matrix."""
    root, weight = np.sqrt(s)[:, None], X.vector(np.sqrt(s))
    mean, y_mean = means(X, X.vector(Y), X.vector(s), fit_intercept)
    kernel = _row_products(X, mean)
    if kernel is None or not np.isfinite(kernel).all():
        return None
    kernel = root * kernel * root.T
    B = root * (Y - y_mean)
    dual = np.empty_like(B)

    def adjoint(c: Array) -> Array:  # A'c
        near = X.vector(c)
        return X.respond(None, lambda rows, _: weight[rows, None] * near[rows], mean)

    for a in np.unique(alpha):
        shifted = kernel + a * np.eye(len(B))
        factor, info = scipy.linalg.lapack.dpotrf(shifted, lower=1)
        if info != 0:
            return None
        rcond, _ = scipy.linalg.lapack.dpocon(factor, np.abs(shifted).sum(axis=0).max(), uplo="L")
        if rcond < (_TRUST if X.shape[0] ** 2 * X.shape[1] > _SVD_WORK else _TRUST_KERNEL):
            return None
        targets = alpha == a
        b = B[:, targets]
        c = scipy.linalg.cho_solve((factor, True), b, check_finite=False)
        for _ in range(2):
            fit = root * centred_product(X, adjoint(c), mean)
            c += scipy.linalg.cho_solve((factor, True), b - fit - a * c, check_finite=False)
        dual[:, targets] = c
    coef = adjoint(dual)
    return LinearSolution(coef, y_mean - mean @ coef, len(B), None, None)


def _row_products(X: Design, mean: Array) -> Array | None:
    """(X - mean)(X - mean)'; None where centring a sparse matrix after the products would cancel."""
    if isinstance(X, Sparse):
        rows = X.X.astype(np.float64, copy=False)
        products = np.asarray((rows @ rows.T).todense())
        shift = X.dot(mean)[:, None]
        centred = products - shift - shift.T + mean @ mean
        return centred if (np.diag(centred) >= 1e-8 * np.diag(products)).all() else None
    if isinstance(X, Torch):
        rows = X.X.double() - like(mean, X.X)
        return to_numpy(rows @ rows.T)
    rows = X.home() - mean
    return rows @ rows.T


def _by_lsmr(X: Design, Y: Array, s: Array, alpha: Array, fit_intercept: bool) -> LinearSolution:
    """A large sparse matrix: LSMR on the centred operator, from 0, hence of minimum norm."""
    mean, y_mean = means(X, Y, s, fit_intercept)
    root = np.sqrt(s)
    operator = scipy.sparse.linalg.LinearOperator(
        X.shape,
        matvec=lambda w: root * (X.dot(w.ravel()) - mean @ w.ravel()),
        rmatvec=lambda r: X.tdot(root * r.ravel()) - mean * float(root @ r.ravel()),
        dtype=np.float64,
    )
    coef = np.empty((X.shape[1], Y.shape[1]))
    for k in range(Y.shape[1]):
        b = root * (Y[:, k] - y_mean[k])
        coef[:, k] = scipy.sparse.linalg.lsmr(
            operator, b, damp=np.sqrt(alpha[k]), atol=1e-15, btol=1e-15, conlim=0, maxiter=20_000
        )[0]
    return LinearSolution(coef, y_mean - mean @ coef, min(X.shape), None, None)
