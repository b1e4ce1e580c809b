"""Dense matrices: numpy arrays, and torch tensors on whatever device holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import like
from .._threads import over_rows
from .base import Array, Design, T

__all__ = ["Dense", "Torch"]

_BLOCK_BYTES = 1 << 19  # of a row block: it stays in the cache while it is used
_DEVICE_BYTES = 1 << 28  # the same on a GPU, where a block should fill the machine


class Dense(Design):
    """A numpy array."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype

    def dot(self, w: Array) -> Array:
        if self.X.dtype == np.float64 and not self._is_long():
            return self.X @ w
        out = np.empty((self.shape[0], *w.shape[1:]))

        def part(blocks: Iterator[tuple[slice, Any]]) -> None:
            for rows, block in blocks:
                np.dot(block, w, out=out[rows])

        self.fold(part)
        return out

    def tdot(self, r: Array) -> Array:
        if self.X.dtype == np.float64 and not self._is_long():
            return self.X.T @ r

        def part(blocks: Iterator[tuple[slice, Any]]) -> Array:
            return sum(r[rows].T @ block for rows, block in blocks)  # faster than block.T @ r[rows]

        total: Array = np.sum(self.fold(part), axis=0)
        return np.ascontiguousarray(total.T)

    def dot_and_mean(self, w: Array, weights: Array) -> tuple[Array, Array]:
        z = np.empty((self.shape[0], *w.shape[1:]))

        def part(blocks: Iterator[tuple[slice, Any]]) -> Array:
            total = np.zeros(self.shape[1])
            for rows, block in blocks:
                np.dot(block, w, out=z[rows])
                total += weights[rows] @ block
            return total

        return z, np.sum(self.fold(part), axis=0) / float(weights.sum())

    def blocks(
        self, first: int = 0, last: int | None = None, kind: type = np.float64
    ) -> Iterator[tuple[slice, Any]]:
        last = self.shape[0] if last is None else last
        for start in range(first, last, self._rows_of_a_block()):
            rows = slice(start, min(start + self._rows_of_a_block(), last))
            yield rows, np.asarray(self.X[rows], dtype=kind)

    def _is_long(self) -> bool:
        """Whether products are split by rows. Else the matrix library splits them, whose threads then wait
        for more work at full speed, in the way of ours."""
        return self.shape[0] >= 8 * max(64, self._rows_of_a_block())

    def _rows_of_a_block(self) -> int:
        return max(1, _BLOCK_BYTES // (8 * max(1, self.shape[1])))

    def fold(
        self, work: Callable[[Iterator[tuple[slice, Any]]], T], kind: type = np.float64
    ) -> list[T]:
        least = 4 * self._rows_of_a_block()
        return over_rows(self.shape[0], lambda a, b: work(self.blocks(a, b, kind)), least)

    def sample(self, step: int) -> Dense:
        return Dense(np.ascontiguousarray(self.X[::step], dtype=np.float64))

    def near_mean(self) -> Array:
        """The mean of evenly spaced rows."""
        mean: Array = self.X[:: max(1, self.shape[0] // 4096)].mean(axis=0, dtype=np.float64)
        return mean

    def moments_at(
        self, Y: Array, s: Array, shift: Array, y_mean: Array, single: bool
    ) -> tuple[Array, Array, Array]:
        """As in the base class, with one product a block: that of (X - shift, Y - y_mean, 1) with itself."""
        p, kind = self.shape[1], np.float32 if single else np.float64
        shift = shift.astype(kind)
        size = p + Y.shape[1] + 1
        root = None if (s == 1.0).all() else np.sqrt(s)[:, None]

        def part(blocks: Iterator[tuple[slice, Any]]) -> Array:
            total = np.zeros((size, size))
            wide = np.ones((self._rows_of_a_block(), size), dtype=kind)
            with np.errstate(over="ignore", invalid="ignore"):  # in float32; the caller looks
                for rows, block in blocks:
                    here = wide[: len(block)]
                    np.subtract(block, shift, out=here[:, :p])
                    np.subtract(Y[rows], y_mean, out=here[:, p:-1])
                    if root is not None:
                        here[:, -1] = 1.0
                        here *= root[rows]
                    total += here.T @ here
            return total

        total = np.sum(self.fold(part, kind), axis=0)
        return total[:p, :p].copy(), total[:p, p:-1].copy(), total[:p, -1]

    def gram(self, weights: Array | None = None, center: Array | None = None) -> Array:
        def part(blocks: Iterator[tuple[slice, Any]]) -> Array:
            total = np.zeros((self.shape[1], self.shape[1]))
            for _, block in self._prepared(blocks, weights, center):
                total += block.T @ block
            return total

        gram: Array = np.sum(self.fold(part), axis=0)
        return gram

    def columns(self, index: Any) -> Array:
        return np.asfortranarray(self.X[:, index], dtype=np.float64)

    def column_norms(self, weights: Array | None = None, center: Array | None = None) -> Array:
        def part(blocks: Iterator[tuple[slice, Any]]) -> Array:
            total = np.zeros(self.shape[1])
            for _, block in self._prepared(blocks, weights, center):
                total += np.einsum("ij,ij->j", block, block)
            return total

        norms: Array = np.sqrt(np.sum(self.fold(part), axis=0))
        return norms

    def row_squares(self) -> Array:
        return np.concatenate([np.einsum("ij,ij->i", block, block) for _, block in self.blocks()])

    @staticmethod
    def _prepared(
        blocks: Iterator[tuple[slice, Any]], weights: Array | None, center: Array | None
    ) -> Iterator[tuple[slice, Any]]:
        """Centred and scaled row blocks; the same buffer each time."""
        if weights is None and center is None:
            yield from blocks
            return
        root = None if weights is None else np.sqrt(weights)[:, None]
        buffer = None
        for rows, block in blocks:
            if buffer is None:
                buffer = np.empty_like(block)
            prepared = buffer[: len(block)]
            if center is None:
                np.multiply(block, root[rows], out=prepared)  # type: ignore[index]
            else:
                np.subtract(block, center, out=prepared)
                if root is not None:
                    prepared *= root[rows]
            yield rows, prepared


class Torch(Design):
    """A torch tensor; vectors over samples stay on its device."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = np.dtype(str(X.dtype).removeprefix("torch."))

    def vector(self, values: Any) -> Any:
        import torch

        return torch.as_tensor(values, dtype=torch.float64, device=self.X.device)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        n, p = self.shape
        budget = _BLOCK_BYTES if self.X.device.type == "cpu" else _DEVICE_BYTES
        size = max(1, budget // (8 * max(1, p)))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self.X[rows].double()

    def sample(self, step: int) -> Torch:
        return Torch(self.X[::step].double())

    def columns(self, index: Any) -> Array:
        chosen = self.X[:, like(np.asarray(index), self.X)].double()
        return np.asfortranarray(chosen.cpu().numpy())

    def dot(self, w: Array) -> Any:
        return self.X @ like(w, self.X) if self.dtype == np.float64 else super().dot(w)

    def tdot(self, r: Any) -> Array:
        if self.dtype != np.float64:
            return super().tdot(r)
        product: Array = (self.X.T @ r).cpu().numpy()
        return product
