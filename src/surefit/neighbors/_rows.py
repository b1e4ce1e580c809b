"""Rows in and out of a search: sparse ones as other metrics take them, lists without the query itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["narrow", "without_self"]

Array = NDArray[np.float64]


def without_self(distances: Array, indices: NDArray[np.int64]) -> tuple[Array, Any]:
    """Each training row dropped from its own list.

    Where more than k rows coincide with it, it may not be there; then the first of them goes, as in
    scikit-learn.
    """
    m, k = indices.shape
    others = indices != np.arange(m)[:, None]
    others[others.all(axis=1), 0] = False
    kept = np.argsort(~others, axis=1, kind="stable")[:, : k - 1]
    return np.take_along_axis(distances, kept, axis=1), np.take_along_axis(indices, kept, axis=1)


def narrow(X: Any) -> Any:
    """Sparse rows with 32-bit indices, where these suffice: scikit-learn's metrics take no others."""
    if not sp.issparse(X) or X.indices.dtype == np.int32 or max(X.nnz, *X.shape) >= 2**31:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(parts, shape=X.shape)
