"""Dense factors in numpy or torch, whichever holds the matrix; nothing leaves a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from .._namespace import is_torch

__all__ = [
    "add_diagonal",
    "cho_solve",
    "cholesky",
    "eigh",
    "solve_lower",
    "solve_upper",
    "to_double",
]


def cholesky(A: Any, *, overwrite: bool = False) -> Any:
    """The lower factor L of A = LL', from the lower triangle of A, or None where A is not positive definite.

    Above the diagonal of L anything may stand. With ``overwrite``, an array is factorised in place.
    """
    if is_torch(A):
        import torch

        lower, info = torch.linalg.cholesky_ex(A)
        return None if int(info) else lower
    potrf = scipy.linalg.get_lapack_funcs("potrf", (A,))
    # the transpose of a C array is a Fortran array: its upper triangle is our lower one
    upper, info = potrf(A.T, lower=False, clean=False, overwrite_a=overwrite)
    return None if info else upper.T


def solve_lower(L: Any, B: Any) -> Any:
    """L^-1 B."""
    if is_torch(B):
        import torch

        return torch.linalg.solve_triangular(L, B, upper=False)
    return scipy.linalg.solve_triangular(L.T, B, trans="T", lower=False, check_finite=False)


def solve_upper(L: Any, B: Any) -> Any:
    """L'^-1 B."""
    if is_torch(B):
        import torch

        return torch.linalg.solve_triangular(L.T, B, upper=True)
    return scipy.linalg.solve_triangular(L.T, B, lower=False, check_finite=False)


def cho_solve(L: Any, B: Any) -> Any:
    """(LL')^-1 B."""
    return solve_upper(L, solve_lower(L, B))


def eigh(A: Any) -> tuple[Any, Any]:
    """Eigenvalues, least first, and eigenvectors of a symmetric matrix."""
    if is_torch(A):
        import torch

        values, vectors = torch.linalg.eigh(A)
        return values, vectors
    values, vectors = scipy.linalg.eigh(A, check_finite=False, overwrite_a=True, driver="evd")
    return values, vectors


def add_diagonal(A: Any, values: Any) -> Any:
    """A with ``values`` added to its diagonal, in place."""
    if is_torch(A):
        A.diagonal().add_(values)
    else:
        A[np.arange(len(A)), np.arange(len(A))] += values
    return A


def to_double(A: Any) -> Any:
    """A in float64."""
    return A.double() if is_torch(A) else A.astype(np.float64, copy=False)
