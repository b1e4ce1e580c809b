r"""Least squares by orthogonal factorisations, for matrices whose normal equations cannot be trusted.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2,     several targets at once.

The centred, weighted matrix is scaled to unit columns; its singular value decomposition gives the rank, and
the solution of minimum norm where that is deficient. Where it is full and the problem small, a QR
factorisation with Bjorck's refinement in extended precision gives the digits that the condition would cost.
Of a long matrix, the triangle of the QR factorisation, made block after block, stands for all of it.

References
----------
Golub & Van Loan, Matrix Computations (2013), chapter 5; Bjorck, "Iterative refinement of linear least squares
solutions" (1967).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Design
from ._linear import LinearSolution, centred_product, means, weighted_centred

__all__ = ["by_orthogonal", "by_triangle", "triangle"]

Array = NDArray[np.float64]
_EXTENDED = 1 << 22  # entries up to which refinement in extended precision is cheap


def triangle(X: Design, Y: Any, s: Any, mean: Array, y_mean: Array) -> tuple[Array, Array]:
    """R and Q'B of the QR factorisation of the centred, weighted matrix, block after block."""
    p = X.shape[1]
    stacked: Any = np.zeros((0, p + Y.shape[1]))
    for rows, block in X.blocks():
        wide = np.hstack([to_numpy(block) - mean, to_numpy(Y[rows]) - y_mean])
        wide *= np.sqrt(to_numpy(s[rows]))[:, None]
        stacked = np.vstack([stacked, wide])
        if len(stacked) >= 8 * stacked.shape[1]:
            stacked = np.linalg.qr(stacked, mode="r")
    R: Any = np.linalg.qr(stacked, mode="r")
    return R[:p, :p], R[:p, p:]


def by_triangle(X: Design, Y: Any, s: Any, fit_intercept: bool) -> LinearSolution:
    """A long matrix: the triangle R of its QR factorisation, then what :func:`by_orthogonal` does."""
    mean, y_mean = means(X, Y, s, fit_intercept)
    if fit_intercept:  # a second pass leaves constant columns at zero
        ones = s[:, None]
        mean = mean + X.respond(None, lambda rows, _: ones[rows], mean)[:, 0] / float(s.sum())
    R, B = triangle(X, Y, s, mean, y_mean)
    noise = 4e-16 * np.abs(mean) * math.sqrt(float(s.sum()))
    coef, rank, singular, (_, d, V, scale) = _minimum_norm(R, B, noise, X.shape)
    intercept, witness = y_mean - mean @ coef, None
    if rank < X.shape[1]:  # coef = A'u with u = A v
        v = (V @ ((V.T @ (coef / scale[:, None])) / d**2)) / scale[:, None]
        witness = to_numpy(s)[:, None] * centred_product(X, v, mean)
    return LinearSolution(coef, intercept, rank, singular, witness)


def by_orthogonal(X: Design, Y: Array, s: Array, fit_intercept: bool) -> LinearSolution:
    """SVD of the centred matrix with unit columns; QR with refinement when the rank is full."""
    n, p = X.shape
    mean, y_mean = means(X, X.vector(Y), X.vector(s), fit_intercept)
    A, B = weighted_centred(X, Y, s, mean, y_mean)
    root = np.sqrt(s)
    if fit_intercept:  # a second pass leaves constant columns at zero
        rest = root @ A / s.sum()
        mean = mean + rest
        A -= np.outer(root, rest)
    noise = 4e-16 * np.abs(mean) * np.sqrt(s.sum())  # a centred constant column is rounding
    coef, rank, singular, (U, d, V, scale) = _minimum_norm(A, B, noise, (n, p))
    intercept = y_mean - mean @ coef
    if rank < p:  # coef = A' u with u in the range of A
        witness = root[:, None] * (U @ (V.T @ (coef / scale[:, None]) / d))
        return LinearSolution(coef, intercept, rank, singular, witness)
    refined = _refined_qr(X, Y, s, fit_intercept) if n * p <= _EXTENDED else None
    coef, intercept = refined or (coef, intercept)
    return LinearSolution(coef, intercept, rank, singular, None)


def _minimum_norm(
    A: Array, B: Array, noise: Array, shape: tuple[int, int]
) -> tuple[Array, int, Array, tuple[Array, Array, Array, Array]]:
    """The shortest minimiser of ||A w - B||, the rank, the singular values, and the factors used."""
    n, p = shape
    norms = np.sqrt(np.einsum("ij,ij->j", A, A))
    A[:, norms <= noise] = 0.0
    scale = np.ones(p)
    if p <= n:  # unit columns tell bad scaling from bad conditioning
        scale = np.where(norms > noise, norms, 1.0)
        A /= scale
    U, d, Vt = scipy.linalg.svd(A, full_matrices=False)
    singular = scipy.linalg.svdvals(A * scale) if p <= n else d
    rank = int((d > d[0] * max(n, p) * np.finfo(float).eps).sum())
    U, d, V, rest = U[:, :rank], d[:rank, None], Vt[:rank].T, Vt[rank:].T
    null, _ = np.linalg.qr(rest / scale[:, None]) if p <= n else (np.zeros((p, 0)), None)

    def solve(R: Array) -> Array:
        w = (V @ (U.T @ R / d)) / scale[:, None]
        for _ in range(2):  # minimum norm in the original scaling: leave the null space
            w = w - null @ (null.T @ w)
        return w

    coef = solve(B)
    coef += solve(B - A @ (coef * scale[:, None]))
    return coef, rank, singular, (U, d, V, scale)


def _refined_qr(X: Design, Y: Array, s: Array, fit_intercept: bool) -> tuple[Array, Array] | None:
    """QR of the uncentred matrix, refined with residuals in extended precision (Bjorck 1967).

    Columns are scaled by powers of two, which is exact, so that the only rounding is that of the
    factorisation; each round of refinement gains about -log10(eps cond) digits. None when the
    matrix is singular in float64.
    """
    n, p = X.shape
    A = np.ones((n, p + int(fit_intercept)))
    A[:, :p] = X.home()
    shift = np.zeros(p)
    if fit_intercept:  # x - x_0 is exact where all x lie in [x_0 / 2, 2 x_0]: so go large means
        near = np.abs(A[:, :p] - 1.25 * A[0, :p]) <= 0.75 * np.abs(A[0, :p])
        shift = np.where(near.all(axis=0), A[0, :p], 0.0)
        A[:, :p] -= shift
    weighted = bool((s != s[0]).any())
    if weighted:
        root = np.sqrt(s)[:, None]
        A, Y = A * root, Y * root
    exponent = np.frexp(np.abs(A).max(axis=0))[1]
    A = np.ldexp(A, -exponent)
    if A.shape[1] > n:
        return None
    Q, R = scipy.linalg.qr(A, mode="economic")
    if not (np.abs(np.diag(R)) > np.finfo(float).eps * np.linalg.norm(R, axis=0)).all():
        return None
    wide, target = A.astype(np.longdouble), Y.astype(np.longdouble)
    w = np.zeros((A.shape[1], Y.shape[1]), dtype=np.longdouble)
    r = np.zeros(Y.shape, dtype=np.longdouble)
    size = np.inf
    for _ in range(20):
        f = (target - r - wide @ w).astype(np.float64)
        g = (-(wide.T @ r)).astype(np.float64)
        c = scipy.linalg.solve_triangular(R, g, trans="T")
        d = Q.T @ f
        step = scipy.linalg.solve_triangular(R, d - c)
        before, size = size, float(np.abs(step).max(initial=0.0))
        if not size < 0.5 * before:  # rounding reached, or no contraction
            break
        w += step
        r += f - Q @ d + Q @ c
    w = np.ldexp(w, -exponent[:, None])
    intercept = np.zeros(Y.shape[1])
    if fit_intercept:
        intercept = w[p] - shift.astype(np.longdouble) @ w[:p]
    return w[:p].astype(np.float64), intercept.astype(np.float64)
