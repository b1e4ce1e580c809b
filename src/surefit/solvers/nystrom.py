r"""Kernel ridge regression on a few centres (Nystrom), for rows whose n x n matrix does not fit.

    min_a  sum_i s_i (y_i - sum_j a_j k(x_i, z_j))^2 + alpha a'K_mm a

over functions spanned by m << n centres z_j. With K_mm = LL' and b = L'a this is ridge regression on the m
features of B = K_nm L'^-1,

    (B'SB + alpha I) b = B'S y,

whose matrix is summed over blocks of rows: n m^2 operations and m^2 numbers, whatever n. Written so the
condition number is lambda_max / alpha; the normal equations in a have its product with that of K_mm. The
residual of those,

    rho = K_mn S (K_nm a - y) + alpha K_mm a,

is then computed once more from the rows, and corrected, until it is small.

The centres are drawn by randomly pivoted Cholesky on a uniform sample of the rows: rows that the centres so
far explain are not drawn again.

References
----------
Williams & Seeger, "Using the Nystrom method to speed up kernel machines", NIPS 2000; Rudi, Camoriano &
Rosasco, "Less is more: Nystrom computational regularization", NIPS 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._namespace import is_torch
from ..iterate import Iterate
from ..kernels import Bound, Kernel
from ._kernel_algebra import add_diagonal, cho_solve, cholesky, solve_lower, solve_upper, to_double
from .pivoted_cholesky import pivoted_cholesky

__all__ = ["choose_centres", "nystrom"]

_SAMPLE = 10  # rows of the sample for each centre
_EPS = float(np.finfo(np.float64).eps)


def choose_centres(
    kernel: Kernel, X: Any, count: int, rng: np.random.Generator, weights: Any = None
) -> Any:
    """Indices of ``count`` rows of X, in ascending order; rows of weight 0 are not chosen."""
    n = int(X.shape[0])
    kept = np.arange(n) if weights is None else np.flatnonzero(_host(weights) > 0)
    if count >= len(kept):
        return kept
    sample = (
        kept
        if len(kept) <= _SAMPLE * count
        else np.sort(rng.choice(kept, _SAMPLE * count, replace=False))
    )
    rows = X[sample]
    bound = kernel.on(rows, np.float32)
    diagonal = to_double(kernel.diag(rows))
    _, _, pivots = pivoted_cholesky(bound, diagonal, None, count, rng, 1e-7 * float(diagonal.sum()))
    chosen = sample[np.unique(np.array(pivots, dtype=np.intp))]
    rest = np.setdiff1d(sample, chosen)
    missing = min(count - len(chosen), len(rest))  # of a matrix of low rank
    more = rng.choice(rest, missing, replace=False) if missing > 0 else rest[:0]
    return np.sort(np.concatenate([chosen, more]))


def nystrom(
    bound: Bound, X: Any, Y: Any, alphas: Any, weights: Any, *, tol: float
) -> Iterator[Iterate]:
    """The coefficients a of shape (m, T); the estimate is the residual relative to K_mn S y.

    Parameters
    ----------
    bound : Bound
        The kernel on the m centres, in float64.
    X : matrix of shape (n, p)
        All rows; read in blocks, once for the matrix and once for each correction.
    Y : array of shape (n, T) in float64
    alphas : array of shape (T,)
        Positive penalties, one a target.
    weights : array of shape (n,), optional
    tol : float
    """
    K = bound.gram()
    scale = float(abs(K.diagonal()).mean()) or 1.0
    jitter, lower = _EPS * bound.n * scale, None
    while lower is None:  # a Gram matrix with jitter above rounding has a factor
        square = K.clone() if is_torch(K) else K.copy()
        lower = cholesky(add_diagonal(square, jitter))
        if lower is None and jitter > 1e-3 * scale:
            raise ValueError(
                "the kernel matrix of the centres is not positive semi-definite: Nystrom needs a kernel "
                "(KER-3). Use solver='cholesky', or a kernel."
            )
        jitter *= 10.0
    SY = Y if weights is None else weights[:, None] * Y
    H, right = 0.0 * K, bound_adjoint(bound, X, SY)
    for rows, block in bound.blocks(X):
        features = solve_lower(lower, block.T)
        H += (features if weights is None else features * weights[rows]) @ features.T
    factors = {float(a): cholesky(add_diagonal(1.0 * H, float(a))) for a in alphas}
    start = (right * right).sum(0) ** 0.5
    start = start + (start == 0)
    a, residual, worst = 0.0 * right, right, np.inf
    for _ in range(5):
        inner = solve_lower(lower, residual)
        for t, alpha in enumerate(alphas):
            inner[:, t] = cho_solve(factors[float(alpha)], inner[:, t : t + 1])[:, 0]
        a = a + solve_upper(lower, inner)
        residual = right - (K @ a) * alphas
        for rows, block in bound.blocks(X):
            fitted = block @ a
            residual -= block.T @ (fitted if weights is None else weights[rows][:, None] * fitted)
        before, worst = worst, float(((residual * residual).sum(0) ** 0.5 / start).max())
        yield Iterate(a, worst, worst)
        if worst <= tol or not worst < 0.5 * before:
            return


def bound_adjoint(bound: Bound, X: Any, V: Any) -> Any:
    """k(X, Z)' V, a block of rows at a time."""
    total = 0.0
    for rows, block in bound.blocks(X):
        total = total + block.T @ V[rows]
    return total


def _host(values: Any) -> Any:
    return values.cpu().numpy() if is_torch(values) else values
