"""The data of the elastic net: what its solvers ask of X, and what is known of its columns.

    1/2 sum_i s_i (y_i - x_i'w - b)^2

With a free intercept b is solved for: columns and target are centred at their weighted means, implicitly
where X is sparse. Z stands for the centred columns times the roots of the weights, so that the loss is 1/2
||t - Zw||^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import is_torch, scale_rows, to_numpy, where
from ..design import Design, as_design

__all__ = ["ElasticNetData", "largest_penalty"]

Array = NDArray[np.float64]
_ALL = 256  # with so few columns their Gram matrix costs about as much as ten looks at all of X
_BLOCK = 1 << 17  # entries handled at a time when the columns are measured
_DENSE = 0.1  # with more than this share of its entries stored, gathered columns are dense


@dataclass(frozen=True)
class ElasticNetData:
    """X, y and weights, where X lives; means and norms at home."""

    X: Any  # an array of float64, a csc_array, or the design of a tensor
    y: Any
    s: Any
    mean: Array
    y_mean: float

    @classmethod
    def prepare(cls, X: Any, y: Any, s: Any, *, fit_intercept: bool) -> ElasticNetData:
        """Convert once; rows of weight zero must have been dropped."""
        if sp.issparse(X):
            X = sp.csc_array(X, dtype=np.float64)
            if not X.has_canonical_format:
                X = X.copy()  # it may share its arrays with the caller's
                X.sum_duplicates()
        elif is_torch(X) or isinstance(X, Design):
            X = as_design(X)
        else:
            X = np.asarray(X, dtype=np.float64)
        mean, y_mean = np.zeros(X.shape[1]), 0.0
        if fit_intercept:
            mass = float(s.sum())
            mean = (X.tdot(s) if isinstance(X, Design) else X.T @ s) / mass
            y_mean = float(s @ y) / mass if y.ndim == 1 else 0.0
        y = np.ascontiguousarray(y, dtype=np.float64) if isinstance(y, np.ndarray) else y
        return cls(X, y, s, mean, y_mean)

    # ------------------------------------------------------------------ all of X

    def correlations(self, u: Any) -> Array:
        """(X - mean)' u; u may have several columns."""
        product = self.X.tdot(u) if isinstance(self.X, Design) else self.X.T @ u
        if self.mean.any():
            product = product - np.multiply.outer(self.mean, to_numpy(u.sum(axis=0)))
        return product

    def weighted_residual(self, w: Array) -> Any:
        """u = s (y - ybar - (X - mean) w); w may have several columns."""
        product = self.X.dot(w) if isinstance(self.X, Design) else self.X @ w
        offset = self.mean @ w
        if w.ndim == 1:
            return self.s * ((self.y - self.y_mean) - (product - float(offset)))
        centred = (self.y - self.y_mean)[:, None]
        offset = self.X.vector(offset) if isinstance(self.X, Design) else offset
        return self.s[:, None] * (centred - (product - offset))

    @cached_property
    def few(self) -> bool:
        """Whether one works with the Gram matrix of all columns."""
        return self.X.shape[1] <= min(_ALL, self.X.shape[0])

    @cached_property
    def gram(self) -> Array:
        """Z'Z of all columns."""
        center = self.mean if self.mean.any() else None
        share = self._equal_weights
        weights = self.s if share is None else None
        gram = as_design(self.X).gram(weights, center)
        if share is not None:
            gram = share * gram
        gram = np.ascontiguousarray(gram)
        constant = self._constant(gram.diagonal().copy())
        gram[constant] = 0.0
        gram[:, constant] = 0.0
        return gram

    @cached_property
    def norm2(self) -> Array:
        """||Z_j||^2; exactly 0 for a constant column that has been centred."""
        if self.few and not sp.issparse(self.X):
            return self.gram.diagonal().copy()
        if sp.issparse(self.X):
            norm2 = _sparse_norms(self.X, self.s, self.mean)
        elif isinstance(self.X, Design):
            norm2 = self.X.column_norms(self.s, self.mean if self.mean.any() else None) ** 2
        else:
            norm2 = self._dense_norms()
        norm2[self._constant(norm2)] = 0.0
        return norm2

    def _constant(self, norm2: Array) -> NDArray[np.bool_]:
        """Columns whose centred values, or those that implicit centring leaves, are rounding."""
        noise = 1e-7 if sp.issparse(self.X) else 4e-16
        length = np.sqrt(np.maximum(norm2, 0.0))
        found: NDArray[np.bool_] = length <= noise * np.abs(self.mean) * math.sqrt(self.mass)
        return found

    def _dense_norms(self) -> Array:
        """sum_i s_i x_ij^2 - mass m_j^2 and, where that cancels, the sum over centred values."""
        share = self._equal_weights
        if share is not None:
            norm2 = share * np.einsum("ij,ij->j", self.X, self.X)
        else:
            norm2 = np.einsum("ij,ij,i->j", self.X, self.X, self.s)
        raw = norm2.copy()
        norm2 -= self.mass * self.mean**2
        cancelled = np.flatnonzero(norm2 < 0.1 * raw)
        width = max(1, _BLOCK // max(1, self.X.shape[0]))
        for start in range(0, len(cancelled), width):
            index = cancelled[start : start + width]
            centred = self.X[:, index] - self.mean[index]
            norm2[index] = self.s @ (centred * centred)
        return norm2

    @cached_property
    def mass(self) -> float:
        """The sum of the weights."""
        return float(self.s.sum())

    @cached_property
    def inverse(self) -> Any:
        """1 / s, and 0 for a row without weight, of which there are some on disk."""
        used = self.s > 0.0
        return where(used, 1.0 / where(used, self.s, 1.0), 0.0)

    @cached_property
    def _equal_weights(self) -> float | None:
        first = float(self.s[0])
        return first if bool((self.s == first).all()) else None

    # ------------------------------------------------------------------ some columns, at home

    @cached_property
    def root(self) -> Array:
        """The roots of the weights."""
        return np.sqrt(to_numpy(self.s))

    @cached_property
    def target(self) -> Array:
        """t: the centred target times the roots of the weights."""
        return self.root * (to_numpy(self.y) - self.y_mean)

    @cached_property
    def gathers_sparse(self) -> bool:
        """Whether gathered columns are sparse, and their centring implicit."""
        n, p = self.X.shape
        return sp.issparse(self.X) and self.X.nnz <= _DENSE * n * p

    def entries(self, index: NDArray[np.int64]) -> float:
        """Stored entries of a column, on average."""
        if not sp.issparse(self.X):
            return float(self.X.shape[0])
        return float(np.diff(self.X.indptr)[index].mean()) if len(index) else 0.0

    def columns(self, index: NDArray[np.int64]) -> Any:
        """Z_index, one column after the other; sparse ones are weighted but not centred."""
        if sp.issparse(self.X):
            part = self.X[:, index]
            if self.gathers_sparse:
                part.data = part.data * self.root[part.indices]
                return part
            dense = part.toarray(order="F")
        elif isinstance(self.X, Design):
            dense = self.X.columns(index)
        else:
            dense = np.asfortranarray(self.X[:, index])
        if self.mean.any():
            dense -= self.mean[index]
        dense *= self.root[:, None]
        return dense

    def products(
        self, Z: Any, index: NDArray[np.int64], new: Any, other: NDArray[np.int64]
    ) -> Array:
        """Z_index' Z_other."""
        if not sp.issparse(Z):
            return np.asarray(Z.T @ new)
        from .._jit.products import cross_rows

        product: Array = np.zeros((Z.shape[1], new.shape[1]))
        left, right = Z.tocsr(), new.tocsr()
        cross_rows(
            left.data, left.indices, left.indptr, right.data, right.indices, right.indptr, product
        )
        if self.mean.any():
            product -= self.mass * np.outer(self.mean[index], self.mean[other])
        return product

    def weighted_residual_of(self, Z: Any, mean: Array, v: Array) -> Any:
        """u for coefficients v, (k,) or (k, B), on gathered columns; in X's place."""
        fit = Z @ v
        if sp.issparse(Z) and mean.any():
            fit = fit - np.multiply.outer(self.root, mean @ v)
        target = self.target if v.ndim == 1 else self.target[:, None]
        u = scale_rows(self.root, target - fit)
        return self.X.vector(u) if isinstance(self.X, Design) else u


def largest_penalty(data: ElasticNetData, *, positive: bool = False) -> float:
    """The smallest l1 at which w = 0 is optimal (REG-14): max_j |X_j'(s (y - ybar))|."""
    corr = data.correlations(data.s * (data.y - data.y_mean))
    return float((corr if positive else np.abs(corr)).max(initial=0.0))


def _sparse_norms(X: Any, s: Array, mean: Array) -> Array:
    """sum_i s_i (x_ij - m_j)^2 from the stored entries and the mass of the zeros, without cancellation."""
    stored = np.diff(X.indptr)
    centred = X.data - np.repeat(mean, stored) if mean.any() else X.data
    parts = sp.csc_array((centred**2, X.indices, X.indptr), X.shape)
    norm2: Array = parts.T @ s
    if mean.any():
        parts = sp.csc_array((np.ones_like(X.data), X.indices, X.indptr), X.shape)
        zeros = np.where(stored < X.shape[0], np.maximum(s.sum() - parts.T @ s, 0.0), 0.0)
        norm2 += zeros * mean**2
    return norm2
