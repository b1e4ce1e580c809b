"""Which rows of the kernel matrix a fit uses, and how: whole, streamed, by features, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

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
_NARROW = 64  # features up to which Gaussian values are cheaper to compute than to store


def row_source(kernel: Kernel | None, X: Any, *, cache_mb: float, tol: float) -> RowSource:
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
        if sp.issparse(X) and n * p <= 1 << 26 and p <= 2 * _NARROW:
            X = X.toarray()
        if not sp.issparse(X) and p <= _NARROW:
            rows = GaussianRows(X, gamma)
            return rows if rows.largest < 1e3 else rows.sharper()
        return _streamed(kernel, X, cache_mb, np.float32)
    return _streamed(kernel, X, cache_mb, np.float64)


def _streamed(kernel: Kernel, X: Any, cache_mb: float, dtype: Any) -> RowSource:
    bound = kernel.on(X.astype(dtype, copy=False))
    diag: NDArray[Any] = np.asarray(kernel.diag(double(X)), dtype=np.float64)

    def sharper() -> RowSource:
        return _streamed(kernel, X, cache_mb, np.float64)

    return KernelRows(
        bound.take, diag, cache_mb=cache_mb, dtype=dtype,
        sharper=None if dtype == np.float64 else sharper,
    )  # fmt: skip
