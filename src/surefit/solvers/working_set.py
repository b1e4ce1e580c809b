"""Some columns of the data, weighted and centred, with their Gram matrix: what is left of X in a subproblem.

Solvers look at all of X for correlations only. Whatever sweeps or factorises works on a few columns that were
gathered once: in memory, one after the other, wherever X itself is. The Gram matrix grows with them, so that
along a path of penalties every entry is computed once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .elastic_net_data import ElasticNetData

__all__ = ["WorkingSet"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class WorkingSet:
    """Columns of an :class:`ElasticNetData`, in the order in which they were taken in.

    Attributes
    ----------
    index : array of shape (m,)
        Which columns.
    inside : array of shape (p,)
        Whether a column is among them.
    gram : array of shape (>= m, >= m)
        Z'Z of the weighted, centred columns in its leading part; a buffer that grows.
    """

    def __init__(self, data: ElasticNetData, index: Index | None = None) -> None:
        self.data = data
        p = len(data.mean)
        self.index: Index = np.empty(0, np.int64)
        self.inside = np.zeros(p, dtype=bool)
        self.columns: Any = data.columns(self.index)
        self.gram: Array = np.zeros((0, 0))
        self.all = index is None  # then the Gram matrix comes from X itself, no column is copied
        if index is None:
            self.index, self.inside[:], self.gram = np.arange(p), True, data.gram
        else:
            self.enter(index)

    def __len__(self) -> int:
        return len(self.index)

    def enter(self, new: Index) -> None:
        """Take in columns that are not inside yet."""
        if len(new) == 0:
            return
        old, size = len(self), len(self) + len(new)
        if size > len(self.gram):
            buffer = np.zeros((max(size, min(2 * old, len(self.inside))),) * 2)
            buffer[:old, :old] = self.gram[:old, :old]
            self.gram = buffer
        self.index = np.concatenate([self.index, new])
        self.inside[new] = True
        fresh = self.data.columns(new)
        self.columns = _append(self.columns, fresh, old)
        block = self.data.products(self._used(size), self.index, fresh, new)
        self.gram[:size, old:size], self.gram[old:size, :old] = block, block[:old].T
        places = np.arange(old, size)
        self.gram[places, places] = self.data.norm2[new]

    def keep(self, mask: NDArray[np.bool_]) -> Index:
        """Only these stay; returns the new place of each column (-1 for those that left)."""
        kept = np.flatnonzero(mask)
        self.inside[self.index[~mask]] = False
        self.index = self.index[kept]
        self.gram[: len(kept), : len(kept)] = self.gram[kept[:, None], kept]
        if sp.issparse(self.columns):
            self.columns = self.columns[:, kept]
        else:
            self.columns[:, : len(kept)] = self.columns[:, kept]
        places = np.full(len(mask), -1, dtype=np.int64)
        places[kept] = np.arange(len(kept))
        return places

    def weighted_residual(self, v: Array) -> Any:
        """u = s (y - ybar - (X - mean) w) for coefficients (m,) or (m, B) on these columns."""
        data = self.data
        if self.all:
            return data.weighted_residual(v)
        used = np.flatnonzero(v if v.ndim == 1 else v.any(axis=1))
        mean = data.mean[self.index[used]]
        return data.weighted_residual_of(self.columns[:, used], mean, v[used])

    @cached_property
    def against_target(self) -> Array:
        """Z't, of all columns."""
        return self.data.correlations(self.data.s * (self.data.y - self.data.y_mean))

    def _used(self, size: int) -> Any:
        return self.columns if sp.issparse(self.columns) else self.columns[:, :size]


def _append(columns: Any, fresh: Any, old: int) -> Any:
    """Dense columns live in a buffer that doubles; sparse ones are joined."""
    if sp.issparse(fresh):
        return sp.hstack([columns, fresh], format="csc") if old else fresh
    size = old + fresh.shape[1]
    if size > columns.shape[1]:
        buffer = np.empty((fresh.shape[0], max(size, 2 * old)), order="F")
        buffer[:, :old] = columns[:, :old]
        columns = buffer
    columns[:, old:size] = fresh
    return columns
