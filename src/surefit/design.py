"""What X may be: one interface over dense and sparse matrices.

X is anything that can multiply. A :class:`Design` offers the operations that solvers and certificates are
written on: ``X @ w``, ``X.T @ r``, weighted means, the weighted centred Gram matrix, and iteration over row
blocks. All results are float64, whatever the precision of X: a float32 matrix is converted block by
block, never as a whole.

Examples
--------
>>> import numpy as np, scipy.sparse as sp
>>> X = np.array([[1.0, 0.0], [2.0, 3.0]], dtype=np.float32)
>>> as_design(X).dot(np.array([1.0, 1.0])).tolist() == as_design(sp.csr_array(X)).dot(np.ones(2)).tolist()
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Dense", "Design", "Sparse", "as_design"]

Array = NDArray[np.float64]
_BLOCK_BYTES = 1 << 20  # of a row block: it stays in the cache while it is used


class Design(ABC):
    """A matrix with n rows (samples) and p columns (features)."""

    shape: tuple[int, int]

    @abstractmethod
    def dot(self, w: Array) -> Array:
        """X @ w."""

    @abstractmethod
    def tdot(self, r: Array) -> Array:
        """X.T @ r."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """(rows, block) pairs, in order; blocks are float64."""

    @abstractmethod
    def gram(self, weights: Array | None = None, center: Array | None = None) -> Array:
        """sum_i weights_i (x_i - center)(x_i - center)'."""

    @abstractmethod
    def row_squares(self) -> Array:
        """sum_j x_ij^2 for each row i."""

    @abstractmethod
    def column_norms(self, weights: Array | None = None, center: Array | None = None) -> Array:
        """sqrt(sum_i weights_i (x_ij - center_j)^2) for each column j."""

    def sum_squares(self, weights: Array | None = None) -> float:
        """sum_ij weights_i x_ij^2, the squared Frobenius norm of the weighted matrix."""
        squares = self.row_squares()
        return float(squares.sum() if weights is None else squares @ weights)

    def dot_and_mean(self, w: Array, weights: Array) -> tuple[Array, Array]:
        """X @ w and the weighted mean row, reading X once."""
        product, total = np.empty((self.shape[0], *w.shape[1:])), np.zeros(self.shape[1])
        for rows, block in self.blocks():
            product[rows] = block @ w
            total += block.T @ weights[rows]
        return product, total / weights.sum()

    def mean(self, weights: Array | None = None) -> Array:
        """The (weighted) mean row."""
        if weights is None:
            weights = np.ones(self.shape[0])
        return self.tdot(weights) / weights.sum()


class Dense(Design):
    """A numpy array."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])

    def dot(self, w: Array) -> Array:
        if self.X.dtype == np.float64:
            return self.X @ w
        out = np.empty((self.shape[0], *w.shape[1:]))
        for rows, block in self.blocks():
            out[rows] = block @ w
        return out

    def tdot(self, r: Array) -> Array:
        if self.X.dtype == np.float64:
            return self.X.T @ r
        out = np.zeros((self.shape[1], *r.shape[1:]))
        for rows, block in self.blocks():
            out += block.T @ r[rows]
        return out

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        n, p = self.shape
        size = max(1, _BLOCK_BYTES // (8 * max(1, p)))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, np.asarray(self.X[rows], dtype=np.float64)

    def gram(self, weights: Array | None = None, center: Array | None = None) -> Array:
        total = np.zeros((self.shape[1], self.shape[1]))
        for block in self._prepared(weights, center):
            total += block.T @ block
        return total

    def column_norms(self, weights: Array | None = None, center: Array | None = None) -> Array:
        total = np.zeros(self.shape[1])
        for block in self._prepared(weights, center):
            total += np.einsum("ij,ij->j", block, block)
        return np.sqrt(total)

    def row_squares(self) -> Array:
        return np.concatenate([np.einsum("ij,ij->i", block, block) for _, block in self.blocks()])

    def _prepared(self, weights: Array | None, center: Array | None) -> Iterator[Array]:
        """Centred and scaled row blocks; the same buffer each time."""
        root = None if weights is None else np.sqrt(weights)[:, None]
        shift = np.zeros(self.shape[1]) if center is None else center
        buffer = None
        for rows, block in self.blocks():
            if buffer is None:
                buffer = np.empty_like(block)
            prepared = np.subtract(block, shift, out=buffer[: len(block)])
            if root is not None:
                prepared *= root[rows]
            yield prepared


class Sparse(Design):
    """A scipy.sparse matrix or array, used in compressed row form."""

    def __init__(self, X: Any) -> None:
        self.X = sp.csr_array(X)
        self.shape = (self.X.shape[0], self.X.shape[1])

    def dot(self, w: Array) -> Array:
        return np.asarray(self.X @ w, dtype=np.float64)

    def tdot(self, r: Array) -> Array:
        return np.asarray(self.X.T @ r, dtype=np.float64)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        n = self.shape[0]
        yield slice(0, n), self.X.astype(np.float64, copy=False)

    def gram(self, weights: Array | None = None, center: Array | None = None) -> Array:
        X = self.X.astype(np.float64, copy=False)
        left = X if weights is None else X.multiply(weights[:, None]).tocsr()
        total = np.asarray((X.T @ left).todense())
        if center is not None:
            mass = float(self.shape[0]) if weights is None else float(weights.sum())
            sums = X.T @ (np.ones(self.shape[0]) if weights is None else weights)
            cross = np.outer(sums, center)
            total = total - cross - cross.T + mass * np.outer(center, center)
        return total

    def row_squares(self) -> Array:
        X = self.X.astype(np.float64, copy=False)
        squares = sp.csr_array((X.data**2, X.indices, X.indptr), X.shape)
        return squares @ np.ones(X.shape[1])

    def column_norms(self, weights: Array | None = None, center: Array | None = None) -> Array:
        X = self.X.astype(np.float64, copy=False)
        if weights is None:
            weights = np.ones(self.shape[0])
        squares = X.multiply(X).T @ weights
        if center is not None:
            squares = squares - 2.0 * center * (X.T @ weights) + weights.sum() * center**2
        return np.sqrt(np.maximum(squares, 0.0))


def as_design(X: Any) -> Design:
    """The design for a numpy array or a scipy.sparse matrix or array."""
    if isinstance(X, Design):
        return X
    if sp.issparse(X):
        return Sparse(X)
    return Dense(np.asarray(X))
