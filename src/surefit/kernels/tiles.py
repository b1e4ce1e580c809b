"""Blocks of kernels that are a function of inner products: a small product, its function, the next one.

A block of 1,000 x 50,000 values does not fit into a cache. It is filled tile by tile: the matrix library
writes the products of a tile, the function of them is applied while the tile is still in the cache, and the
stretches of rows are worked on side by side. Tensors are done whole, on their device; sparse rows by a
sparse product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._namespace import is_torch
from .._threads import over_rows
from .base import Bound, Kernel, dense, take_rows

__all__ = ["Points", "TiledBound", "tiled"]

_COLUMNS = 1024  # of a tile: with 64 rows in float64 half a megabyte
_DENSE = 1 << 25  # numbers up to which sparse rows of few columns are stored dense
_WIDE = 2048  # few columns


class Points(NamedTuple):
    """Rows prepared for products, and their squared lengths where the kernel wants these."""

    X: Any
    squares: Any

    def at(self, indices: Any) -> Points:
        """Some of them."""
        squares = None if self.squares is None else take_rows(self.squares, indices)
        return Points(take_rows(self.X, indices), squares)


# Turns a tile of products of rows, in place or into columns of ``out``, into kernel values.
Finish = Callable[[Any, Points, Points, Any, int], None]


class TiledBound(Bound):
    """k(x, z) = finish(<x, z>), for prepared rows."""

    def __init__(
        self,
        kernel: Kernel,
        Z: Any,
        prepare: Callable[[Any], Points],
        finish: Finish,
        one: bool,
        dtype: Any,
    ) -> None:
        super().__init__(kernel, Z, dtype)
        self._prepare, self._finish, self._one = prepare, finish, one
        self.points = prepare(Z)
        self._across = self.points.X.T.tocsr() if sp.issparse(self.points.X) else None

    def __call__(self, X: Any, out: Any = None) -> Any:
        if not sp.issparse(self.points.X):
            X = dense(X)
        elif not sp.issparse(X):
            X = sp.csr_array(X)
        return self._fill(self._prepare(X), out)

    def take(self, indices: Any, out: Any = None) -> Any:
        block = self._fill(self.points.at(indices), out)
        if self._one:  # k(z, z) = 1, whatever rounding says
            _ones(block, indices, self.n)
        return block

    def lower(self, first: int, last: int) -> Any:
        if is_torch(self.points.X) or sp.issparse(self.points.X):
            return super().lower(first, last)
        out = np.empty((last - first, last), dtype=self.dtype)

        def work(begin: int, end: int) -> None:
            tile = np.empty(64 * _COLUMNS, dtype=self.dtype)
            for i in range(begin, end, 64):
                some = slice(i, min(i + 64, end))
                left = self.points.at(slice(first + some.start, first + some.stop))
                self._stretch(left, out[some], last, tile)

        over_rows(last - first, work, least=max(1, (1 << 17) // max(1, last)))
        if self._one:
            out[np.arange(last - first), np.arange(first, last)] = 1.0
        return out

    def gram(self, out: Any = None) -> Any:
        if is_torch(self.points.X) or sp.issparse(self.points.X):
            return super().gram(out)
        K = np.empty((self.n, self.n), dtype=self.dtype) if out is None else out
        height, wide = 128, self.points.X
        count = -(-self.n // height)

        def work(first: int, last: int) -> None:
            tile = np.empty(height * _COLUMNS, dtype=self.dtype)
            for k in range(first, last):
                for step in {k, count - 1 - k}:  # a short stretch of the triangle and a long one
                    rows = slice(step * height, min((step + 1) * height, self.n))
                    self._stretch(self.points.at(rows), K[rows], rows.stop, tile)
                    for j in range(0, rows.start, height):  # while these rows are in the cache
                        across = slice(j, j + height)
                        K[across, rows] = K[rows, across].T
                    square = K[rows, rows]
                    square[...] = np.tril(square) + np.tril(square, -1).T

        if not K.flags.c_contiguous:
            K[...] = self.gram()
            return K
        over_rows(-(-count // 2), work, least=max(1, 4096 // (height + wide.shape[1])))
        if self._one:
            np.fill_diagonal(K, 1.0)
        return K

    def dot(self, V: Any, X: Any = None) -> Any:
        if is_torch(self.points.X) or sp.issparse(self.points.X):
            return super().dot(V, X)
        left = self.points if X is None else self._prepare(dense(X))
        weights = V[:, None] if V.ndim == 1 else V
        kind = np.result_type(self.dtype, V.dtype)
        out = np.zeros((left.X.shape[0], weights.shape[1]), dtype=kind)
        height = 64

        def work(first: int, last: int) -> None:
            tile, space = (np.empty(height * _COLUMNS, dtype=self.dtype) for _ in range(2))
            for i in range(first, last, height):
                rows = slice(i, min(i + height, last))
                some = left.at(rows)
                for j in range(0, self.n, _COLUMNS):
                    right = self.points.at(slice(j, min(j + _COLUMNS, self.n)))
                    values = self._tile(some, right, tile, space)
                    if self._one and X is None:
                        same = np.arange(max(i, j), min(rows.stop, j + _COLUMNS, self.n))
                        values[same - i, same - j] = 1.0
                    out[rows] += values @ weights[j : j + _COLUMNS]  # while they are in the cache

        over_rows(len(out), work, least=max(1, (1 << 18) // max(1, self.n)))
        return out[:, 0] if V.ndim == 1 else out

    def _tile(self, left: Points, right: Points, tile: Any, space: Any) -> Any:
        """k(left, right) for few rows and columns, in ``space``."""
        shape = (left.X.shape[0], right.X.shape[0])
        products, values = (b[: shape[0] * shape[1]].reshape(shape) for b in (tile, space))
        np.matmul(left.X, right.X.T, out=products)
        self._finish(products, left, right, values, 0)
        return values

    def _fill(self, left: Points, out: Any) -> Any:
        n, right = left.X.shape[0], self.points
        if is_torch(left.X):
            import torch

            out = torch.matmul(left.X, right.X.T, out=out)
            self._finish(out, left, right, out, 0)
            return out
        if sp.issparse(right.X):
            products = left.X @ self._across
            products = np.ascontiguousarray(dense(products), dtype=self.dtype)
            self._finish(products, left, right, products, 0)
            if out is None:
                return products
            out[...] = products
            return out
        if out is None:
            out = np.empty((n, self.n), dtype=self.dtype)
        if not out.flags.c_contiguous or out.dtype != self.dtype:
            out[...] = self._fill(left, None)
            return out
        height = 64 if left.X.shape[1] <= 128 else 256

        def work(first: int, last: int) -> None:
            tile = np.empty(height * _COLUMNS, dtype=self.dtype)
            for i in range(first, last, height):
                rows = slice(i, min(i + height, last))
                self._stretch(left.at(rows), out[rows], self.n, tile)

        over_rows(n, work, least=max(1, (1 << 18) // max(1, self.n)))
        return out

    def _stretch(self, left: Points, out: Any, columns: int, tile: Any) -> None:
        """A few rows against the first ``columns`` points."""
        for j in range(0, columns, _COLUMNS):
            right = self.points.at(slice(j, min(j + _COLUMNS, columns)))
            shape = (left.X.shape[0], right.X.shape[0])
            products = tile[: shape[0] * shape[1]].reshape(shape)
            np.matmul(left.X, right.X.T, out=products)
            self._finish(products, left, right, out, j)


def _ones(block: Any, indices: Any, n: int) -> None:
    """k(z, z) = 1 in rows of a Gram matrix."""
    if is_torch(block):
        import torch

        indices = torch.arange(n, device=block.device)[indices]
        block[torch.arange(len(block), device=block.device), indices] = 1.0
    else:
        block[np.arange(len(block)), np.arange(n)[indices]] = 1.0


def tiled(
    kernel: Kernel,
    Z: Any,
    prepare: Callable[[Any], Points],
    finish: Finish,
    *,
    one: bool,
    dtype: Any,
) -> TiledBound:
    """The bound of such a kernel; sparse rows of few columns are stored dense, which is faster."""
    if sp.issparse(Z) and Z.shape[1] <= _WIDE and Z.shape[0] * Z.shape[1] <= _DENSE:
        Z = Z.toarray()
    return TiledBound(kernel, Z, prepare, finish, one, dtype)
