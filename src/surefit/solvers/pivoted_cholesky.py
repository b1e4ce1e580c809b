r"""A low-rank factor of a kernel matrix from a few of its columns: randomly pivoted Cholesky.

    K ~ F F',     F of shape (n, k),

built as Gaussian elimination does, with the next pivots drawn in proportion to the diagonal that is left.
Only the chosen columns of K are ever computed, n k values; the diagonal of K - FF' stays non-negative, and
its sum, the trace of the error, is known at every step. Pivots are drawn a block at a time, so that the
work is in matrix products.

References
----------
Chen, Epperly, Tropp & Webber, "Randomly pivoted Cholesky: practical approximation of a kernel matrix with few
entry evaluations", CPAM 78 (2025).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._namespace import is_torch
from ..kernels import Bound
from ._kernel_algebra import cholesky, solve_lower

__all__ = ["pivoted_cholesky"]

_BLOCK = 128
# of the mean pivot of a block, in float32: rows much alike must not divide by 0; the least that will do
_JITTERS = (1e-6, 1e-5, 1e-4)


def pivoted_cholesky(
    bound: Bound, diagonal: Any, root: Any, rank: int, rng: np.random.Generator, enough: float
) -> tuple[Any, Any, list[int]]:
    """F, the diagonal of the error, and the pivots, for diag(root) K diag(root).

    Parameters
    ----------
    bound : Bound
        The kernel on the rows; its precision is that of F.
    diagonal : array of shape (n,)
        k(x_i, x_i) in float64.
    root : array of shape (n,) or None
        The roots of the sample weights.
    rank : int
        The most columns of F.
    rng : Generator
    enough : float
        Stop when the trace of the error is below this.
    """
    n = bound.n
    left = diagonal.copy() if not is_torch(diagonal) else diagonal.clone()
    if root is not None:
        left *= root**2
        root = root.to(bound.dtype) if is_torch(root) else root.astype(bound.dtype)
    F = (
        left.new_zeros((n, rank), dtype=bound.dtype)
        if is_torch(left)
        else np.zeros((n, rank), bound.dtype)
    )
    size, pivots = 0, []
    while size < rank and float(left.sum()) > enough:
        chosen = _draw(left, min(_BLOCK, rank - size), rng)
        columns = bound.take(chosen)  # rows of a symmetric matrix
        if root is not None:
            columns = columns * root * root[chosen][:, None]
        columns = columns - F[chosen, :size] @ F[:, :size].T
        square = columns[:, chosen]
        count = len(chosen)
        pivot = float(square.diagonal().sum()) / count
        square = 0.5 * (square + square.T)
        lower, before = None, 0.0
        for jitter in _JITTERS:
            square[range(count), range(count)] += (jitter - before) * abs(pivot)
            lower, before = cholesky(square), jitter
            if lower is not None:
                break
        if lower is None:
            break  # what is left is rounding
        fresh = solve_lower(lower, columns)
        F[:, size : size + count] = fresh.T
        left = left - (fresh * fresh).sum(0)
        left = left.clamp(min=0.0) if is_torch(left) else np.maximum(left, 0.0)
        left[chosen] = 0.0
        pivots += chosen.tolist()
        size += count
    return F[:, :size], left, pivots


def _draw(left: Any, count: int, rng: np.random.Generator) -> Any:
    """Distinct rows, each in proportion to what is left of its diagonal."""
    total = left.cumsum(0)
    places = rng.uniform(size=count) * float(total[-1])
    if is_torch(left):
        import torch

        found = torch.searchsorted(total, torch.as_tensor(places, device=left.device))
        return found.clamp(max=len(left) - 1).unique()
    return np.unique(np.minimum(np.searchsorted(total, places), len(left) - 1))
