r"""Kernel ridge regression by conjugate gradients on the whole problem, in two precisions.

    (R K R + alpha I) c = R y,     R = diag(sqrt(s_i)),     a = R c

The kernel matrix is kept in float32, half the memory and half the time of a product; its products drive
conjugate gradients, preconditioned by M = F F' + alpha I with a low-rank F of
:mod:`surefit.solvers.pivoted_cholesky` (Woodbury's identity turns M^-1 into a k x k solve):

    M^-1 r = (r - F (F'F + alpha I)^-1 F'r) / alpha.

F takes the large eigenvalues away, and the number of steps is that of a matrix with the condition number 1
+ lambda_{k+1} / alpha. Float32 values of the kernel are another problem's, so the residual is computed anew
in float64, with kernel values in float64 that are not stored, and the next round solves for the correction:
each round gains the digits that float32 has, until the residual of the float64 problem is below ``tol``.

References
----------
Rudi, Carratino & Rosasco, "FALKON: an optimal large scale kernel method", NeurIPS 2017; Diaz, Epperly,
Frangella, Tropp & Webber, "Robust, randomized preconditioning for kernel ridge regression" (2023); Higham,
Accuracy and Stability of Numerical Algorithms (2002), chapter 12.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._namespace import array_namespace, is_torch
from ..iterate import Iterate
from ..kernels import Bound
from ._kernel_algebra import add_diagonal, cho_solve, cholesky, to_double
from ._symmetric import SymmetricPanels
from .pivoted_cholesky import pivoted_cholesky

__all__ = ["kernel_ridge_cg", "preconditioner_rank"]

_GAIN = 3e-6  # of one round: what float32 kernel values leave of a residual, with a margin
_EPS32 = float(np.finfo(np.float32).eps)


def preconditioner_rank(n: int, relative: float) -> int:
    """Columns of F, for alpha ``relative`` to the mean of the diagonal; more for less regularisation."""
    return int(min(n // 5, 1500, max(64, 500.0 * max(relative, 1e-8) ** -0.25)))


def kernel_ridge_cg(
    coarse: Bound,
    fine: Bound,
    diagonal: Any,
    Y: Any,
    alphas: Any,
    weights: Any,
    *,
    tol: float,
    rng: np.random.Generator,
    stored: bool,
) -> Iterator[Iterate]:
    """Conjugate gradient steps; the point is the dual coefficients (n, T), the estimate the residual.

    Parameters
    ----------
    coarse, fine : Bound
        The kernel on the rows in float32 and in float64.
    diagonal : array of shape (n,)
        k(x_i, x_i), in float64.
    Y : array of shape (n, T) in float64
    alphas : array of shape (T,)
        Positive penalties, one a target.
    weights : array of shape (n,), optional
    tol : float
        Bound on the residual, relative to that of a = 0, in each target.
    rng : Generator
    stored : bool
        Whether the float32 matrix fits into memory; otherwise its blocks are computed in every step.
    """
    root = None if weights is None else weights**0.5
    B = Y if root is None else root[:, None] * Y
    mean = float((diagonal if root is None else diagonal * weights).mean())
    rank = preconditioner_rank(coarse.n, float(min(alphas)) / max(mean, 1e-300))
    F, _, _ = pivoted_cholesky(coarse, diagonal, root, rank, rng, 1e-7 * mean * coarse.n)
    solve = {float(a): _woodbury(F, float(a)) for a in alphas}
    precondition = [solve[float(a)] for a in alphas]
    K: Any = None
    if stored:
        K = coarse.rows(0, coarse.n) if is_torch(Y) else SymmetricPanels(coarse)

    def product(P: Any) -> Any:
        """(R K R + alpha I) P with the kernel in float32."""
        V = _single(P if root is None else root[:, None] * P)
        if K is None:
            KV = coarse.dot(V)
        else:
            flat = is_torch(V) and V.shape[1] == 1  # as a vector it is faster
            KV = (K @ V[:, 0])[:, None] if flat else K @ V
        KV = to_double(KV)
        return (KV if root is None else root[:, None] * KV) + P * alphas

    C = 0.0 * B
    residual, start = B, _lengths(B)
    start = start + (start == 0)
    worst = 1.0
    while True:
        goal = max(_GAIN, 0.7 * tol / max(worst, 1e-300))
        for step, relative in _conjugate_gradients(product, precondition, residual, goal):
            # within a round the estimate is of the float32 problem: never claim tol by it
            yield Iterate(_dual(C + step, root), relative * worst, math.nan)
        C = C + step
        V = C if root is None else root[:, None] * C
        KV = fine.dot(V)
        residual = B - (KV if root is None else root[:, None] * KV) - C * alphas
        before, worst = worst, float((_lengths(residual) / start).max())
        yield Iterate(_dual(C, root), worst, worst, cost=0)
        if worst <= tol or not worst < 0.5 * before:  # there, or as far as float64 goes
            return


def _conjugate_gradients(
    product: Any, precondition: list[Any], B: Any, goal: float
) -> Iterator[tuple[Any, float]]:
    """Preconditioned conjugate gradients for each column of B by itself, sharing the products."""
    xp = array_namespace(B)
    X, R, size = 0.0 * B, B, _lengths(B)
    size = size + (size == 0)
    Z = _columns(precondition, R)
    P, rho = Z, (R * Z).sum(0)
    best = math.inf
    while True:
        AP = product(P)
        curvature = (P * AP).sum(0)
        live = curvature > 0  # a column that is solved, or spoilt by rounding, stands still
        step = xp.where(live, rho / (curvature + ~live), 0.0 * rho)
        X, R = X + step * P, R - step * AP
        relative = float((_lengths(R) / size).max())
        yield X, relative
        if relative <= goal or not bool(live.any()) or relative > 1e3 * best:
            return
        best = min(best, relative)
        Z = _columns(precondition, R)
        fresh = (R * Z).sum(0)
        P = Z + xp.where(rho > 0, fresh / (rho + ~(rho > 0)), 0.0 * rho) * P
        rho = fresh


def _woodbury(F: Any, alpha: float) -> Any:
    """The function r -> (F F' + alpha I)^-1 r; F'F in float64 where alpha is small beside float32's eps."""
    small = F.T @ F
    largest = float(abs(small).sum(0).max()) if F.shape[1] else 0.0
    if alpha < 64.0 * _EPS32 * largest:
        small = to_double(F).T @ to_double(F)
    lower = cholesky(add_diagonal(to_double(small), alpha))

    def solve(r: Any) -> Any:
        if lower is None or not F.shape[1]:
            return r / alpha
        inner = cho_solve(lower, to_double(F.T @ _single(r)))
        return (r - to_double(F @ _single(inner))) / alpha

    return solve


def _columns(precondition: list[Any], R: Any) -> Any:
    """Each column by the preconditioner of its alpha; at once where they have the same."""
    xp = array_namespace(R)
    if len(precondition) == 1 or all(f is precondition[0] for f in precondition):
        return precondition[0](R)
    return xp.stack([f(R[:, t : t + 1])[:, 0] for t, f in enumerate(precondition)], axis=1)


def _dual(C: Any, root: Any) -> Any:
    return C if root is None else root[:, None] * C


def _lengths(A: Any) -> Any:
    return (A * A).sum(0) ** 0.5


def _single(A: Any) -> Any:
    return A.float() if is_torch(A) else A.astype(np.float32)
