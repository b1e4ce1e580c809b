"""Which rows of the kernel matrix a fit uses, and how: whole, streamed, by features, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._namespace import is_torch
from ..kernels import Gaussian, Kernel, Linear
from ..solvers.kernel_rows import (
    FeatureRows,
    GaussianRows,
    KernelRows,
    RowSource,
    TensorRows,
    WholeMatrix,
)
from ._rows import double

__all__ = ["row_source"]

_SMALL = 2048  # rows up to which the matrix is computed whole, in double precision
_NARROW = 256  # features up to which Gaussian values are cheaper to compute than to store


def row_source(kernel: Kernel | None, X: Any, *, cache_mb: float) -> RowSource:
    """The kernel matrix of the rows of X; X is that matrix where ``kernel`` is None."""
    if kernel is None:
        K = np.asarray(X, dtype=np.float64)
        return WholeMatrix(0.5 * (K + K.T) if not np.array_equal(K, K.T) else K)
    if is_torch(X):
        return TensorRows(kernel, X)
    n, p = X.shape
    if isinstance(kernel, Linear) and n > _SMALL:
        return FeatureRows(X)
    if n <= _SMALL:
        return WholeMatrix(kernel.on(double(X)).gram())
    if isinstance(kernel, Gaussian):
        gamma = float(kernel.gamma)
        if sp.issparse(X) and n * p <= 1 << 26 and p <= _NARROW:
            X = X.toarray()
        if not sp.issparse(X) and p <= _NARROW:
            rows = GaussianRows(X, gamma)
            return rows if rows.largest < 1e3 else rows.sharper()
        single = X.astype(np.float32, copy=False)
        return KernelRows(kernel, single, cache_mb=cache_mb, double=double(X))
    return KernelRows(kernel, double(X), cache_mb=cache_mb)
