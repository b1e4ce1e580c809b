"""Sparse matrices. Centring is implicit: a centred row would be dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .base import Array, Design

__all__ = ["Sparse"]


class Sparse(Design):
    """A scipy.sparse matrix or array, used in compressed row form."""

    centres_first = False

    def __init__(self, X: Any) -> None:
        self.X = sp.csr_array(X)
        self.shape = (self.X.shape[0], self.X.shape[1])
        self.dtype = self.X.dtype

    def dot(self, w: Array) -> Array:
        return np.asarray(self.X @ w, dtype=np.float64)

    def tdot(self, r: Array) -> Array:
        return np.asarray(self.X.T @ r, dtype=np.float64)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        n = self.shape[0]
        yield slice(0, n), self.X.astype(np.float64, copy=False)

    def respond(
        self,
        w: Array | None,
        residual: Callable[[slice, Any], Any],
        center: Array | None = None,
    ) -> Array:
        z = None if w is None else self.dot(w) - (0.0 if center is None else center @ w)
        r = residual(slice(0, self.shape[0]), z)
        total = self.tdot(r)
        return total if center is None else total - np.multiply.outer(center, r.sum(axis=0))

    def moments(
        self, Y: Array, s: Array, *, centred: bool, single: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        mean, y_mean = np.zeros(self.shape[1]), np.zeros(Y.shape[1])
        if centred:
            mean, y_mean = self.mean(s), s @ Y / s.sum()
        cross = self.respond(None, lambda *_: s[:, None] * (Y - y_mean), mean)
        return self.gram(s, mean if centred else None), cross, mean, y_mean

    def sample(self, step: int) -> Sparse:
        return Sparse(self.X[::step])

    def columns(self, index: Any) -> Array:
        return np.asfortranarray(self.X[:, index].toarray(), dtype=np.float64)

    def gram(self, weights: Array | None = None, center: Array | None = None) -> Array:
        from .._jit.products import half_gram_rows

        X = self.X.astype(np.float64, copy=False)
        s = np.ones(self.shape[0]) if weights is None else np.ascontiguousarray(weights)
        half = np.zeros((self.shape[1], self.shape[1]))
        half_gram_rows(X.data, X.indices, X.indptr, s, half)
        total: Array = half + half.T
        if center is not None:
            cross = np.outer(X.T @ s, center)
            total += float(s.sum()) * np.outer(center, center) - cross - cross.T
        return total

    def home(self) -> Array:
        return np.asarray(self.X.toarray(), dtype=np.float64)

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
