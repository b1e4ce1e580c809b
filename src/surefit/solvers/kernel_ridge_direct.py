r"""Kernel ridge regression by a Cholesky factor: (K + alpha S^-1) a = y, n^3 / 3 operations.

With sample weights s_i the system is (R K R + alpha I) c = R y, a = R c, R = diag(sqrt(s_i)). A row of
weight 0 has the coefficient 0. A matrix that has no factor (alpha = 0, or a function that is no kernel)
gets the least-squares solution, as in scikit-learn, with its warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._namespace import is_torch
from ._kernel_algebra import add_diagonal, cho_solve, cholesky, eigh

__all__ = ["kernel_ridge_direct"]

_EPS = float(np.finfo(np.float64).eps)


def kernel_ridge_direct(K: Any, Y: Any, alphas: Any, weights: Any = None) -> Any:
    """The dual coefficients, of the shape (n, T) of Y, in float64.

    Parameters
    ----------
    K : array of shape (n, n) in float64
        Overwritten.
    Y : array of shape (n, T)
    alphas : sequence of T floats
        The penalty of each target.
    weights : array of shape (n,), optional
    """
    if weights is not None:
        root = weights**0.5
        K *= root
        K *= root[:, None]
        return kernel_ridge_direct(K, root[:, None] * Y, alphas) * root[:, None]
    distinct = sorted(set(alphas))
    out = Y.clone() if is_torch(Y) else np.empty(Y.shape)
    for k, alpha in enumerate(distinct):
        last = k == len(distinct) - 1
        mine = [t for t, a in enumerate(alphas) if a == alpha]
        out[:, mine] = _solve(K, Y[:, mine], alpha, overwrite=last)
    return out


def _solve(K: Any, Y: Any, alpha: float, *, overwrite: bool) -> Any:
    """(K + alpha I)^-1 Y; only where a factor fails is K needed again, so its upper triangle is kept."""
    diagonal = K.diagonal().clone() if is_torch(K) else K.diagonal().copy()
    raised = K if overwrite else (K.clone() if is_torch(K) else K.copy())
    lower = cholesky(add_diagonal(raised, alpha), overwrite=True)
    if lower is not None:
        scale = abs(lower.diagonal())
        if float(scale.min()) > 1e-7 * float(scale.max()):  # 1 / cond > 1e-14 or so
            return cho_solve(lower, Y)
    warnings.warn(
        "Singular matrix in solving dual problem. Using least-squares solution instead.",
        UserWarning,
        stacklevel=5,
    )
    upper = K.triu(1) if is_torch(K) else np.triu(K, 1)
    values, vectors = eigh(add_diagonal(upper + upper.T, diagonal + alpha))
    kept = abs(values) > len(K) * _EPS * abs(values).max()
    vectors = vectors[:, kept]
    return vectors @ ((vectors.T @ Y) / values[kept][:, None])
