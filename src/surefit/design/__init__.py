"""What X may be: dense, sparse, a torch tensor on any device, row blocks on disk, or rows spread over ranks.

X is anything that can multiply. A :class:`Design` offers the operations that solvers and certificates are
written on; whoever uses nothing else runs in memory, on a GPU and out of core unchanged.

Examples
--------
>>> import numpy as np, scipy.sparse as sp
>>> X = np.array([[1.0, 0.0], [2.0, 3.0]], dtype=np.float32)
>>> as_design(X).dot(np.array([1.0, 1.0])).tolist() == as_design(sp.csr_array(X)).dot(np.ones(2)).tolist()
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._namespace import is_torch
from .base import Design
from .dense import Dense, Torch
from .ranks import RankRows
from .rows import BlockError, RowBlocks
from .sparse import Sparse

__all__ = ["BlockError", "Dense", "Design", "RankRows", "RowBlocks", "Sparse", "Torch", "as_design"]


def as_design(X: Any) -> Design:
    """The design for an array, a scipy.sparse matrix or array, a torch tensor, or row blocks."""
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return Sparse(X)
    if is_torch(X):
        return Torch(X)
    return Dense(np.asarray(X))
