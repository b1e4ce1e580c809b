"""Rows and kernel sums over them, for predictions and claims; nothing here knows a solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import is_torch, to_numpy
from ..kernels import Kernel

__all__ = ["double", "kernel_sums", "take"]

Array = NDArray[np.float64]
_CHUNK = 1 << 22  # kernel values at a time


def take(X: Any, rows: Any) -> Any:
    """Some rows of an array, sparse matrix or tensor."""
    if is_torch(X):
        import torch

        return X[torch.as_tensor(rows, device=X.device)]
    return X[rows]


def double(X: Any) -> Any:
    """X in double precision."""
    return X.double() if is_torch(X) else X.astype(np.float64, copy=False)


def kernel_sums(
    kernel: Kernel | None, X: Any, Z: Any, weights: Array, *, columns: Any = None
) -> Array:
    """K(X, Z) @ weights in double precision, a stretch of rows at a time; X is K where there is no kernel."""
    if kernel is None:
        return np.asarray(X[:, columns], dtype=np.float64) @ weights
    n, m = X.shape[0], max(1, Z.shape[0])
    out = np.empty((n, weights.shape[1]))
    bound, step = kernel.on(double(Z)), max(1, _CHUNK // m)
    w = weights
    if is_torch(Z):
        import torch

        w = torch.as_tensor(weights, device=Z.device)
    for first in range(0, n, step):
        block = bound(double(X[first : first + step]))
        out[first : first + step] = to_numpy(block @ w)
    return out
