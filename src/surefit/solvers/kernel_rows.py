"""Rows of a kernel matrix that need not fit in memory, as the working-set method uses them.

Three operations: the block on a few rows, the product of a few columns with weights, added to a vector over
all rows, and the diagonal. :class:`WholeMatrix` has the matrix; :class:`GaussianRows` never stores it: for a
few features a value of the Gaussian kernel is computed about as fast as it is read from memory, by a matrix
product of exponents in tiles that fit into the cache, and an exponential over each tile;
:class:`KernelRows` asks any kernel for rows and keeps the latest ones.

The exponent of the Gaussian kernel is one inner product: with x centred,

    -gamma ||x - z||^2 = <(sqrt(2 gamma) x, -gamma ||x||^2, 1), (sqrt(2 gamma) z, 1, -gamma ||z||^2)>.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit.smo import add_rows, gaussian_block, gaussian_sum
from .._threads import over_rows

__all__ = ["FeatureRows", "GaussianRows", "KernelRows", "RowSource", "TensorRows", "WholeMatrix"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_TILE = 256  # columns of a tile
_SOME = 512  # rows of a tensor that are summed at a time
_DEPTH = 1024  # rows of a tile: 1 MiB in single precision


class RowSource(ABC):
    """A symmetric kernel matrix of ``n`` rows."""

    n: int
    diag: Array
    exact: bool  # double precision

    @abstractmethod
    def block(self, rows: Index) -> NDArray[Any]:
        """``K[rows][:, rows]``, its own memory."""

    @abstractmethod
    def add(self, rows: Index, weights: Array, out: Array, among: Index | None = None) -> None:
        """``out += K[:, rows] @ weights``; with ``among``, only these entries of ``out``."""

    @abstractmethod
    def among(self, rows: Index) -> RowSource:
        """The matrix of these rows alone."""

    def sharper(self) -> RowSource:
        """The same matrix in double precision."""
        return self


class WholeMatrix(RowSource):
    """A kernel matrix in memory."""

    def __init__(self, K: NDArray[Any]) -> None:
        self.K = np.ascontiguousarray(K)
        self.n, self.exact = len(K), True
        self.diag = np.ascontiguousarray(np.diagonal(K), dtype=np.float64)

    def among(self, rows: Index) -> RowSource:
        return WholeMatrix(self.K[np.ix_(rows, rows)])

    def block(self, rows: Index) -> NDArray[Any]:
        if len(rows) == self.n and (rows == np.arange(self.n)).all():
            return self.K
        return self.K[np.ix_(rows, rows)]

    def add(self, rows: Index, weights: Array, out: Array, among: Index | None = None) -> None:
        if among is not None:
            out[among] += self.K[np.ix_(among, rows)] @ weights
            return

        def work(begin: int, end: int) -> None:
            add_rows(self.K, rows, weights, begin, end, out)

        over_rows(self.n, work, least=2048)


class GaussianRows(RowSource):
    """exp(-gamma ||x_i - x_j||^2), computed where it is used."""

    def __init__(self, X: NDArray[Any], gamma: float, dtype: Any = np.float32) -> None:
        self.X, self.gamma = X, gamma
        self.n, self.exact = len(X), dtype == np.float64
        self.diag = np.ones(self.n)
        centred = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0, dtype=np.float64)
        norms = gamma * np.einsum("ij,ij->i", centred, centred)
        self.largest = float(norms.max(initial=0.0))
        roots, ones = np.sqrt(2.0 * gamma) * centred, np.ones(self.n)
        self.left = np.column_stack([roots, -norms, ones]).astype(dtype)
        self.right = np.column_stack([roots, ones, -norms]).astype(dtype)

    def sharper(self) -> RowSource:
        return self if self.exact else GaussianRows(self.X, self.gamma, np.float64)

    def among(self, rows: Index) -> RowSource:
        part = copy.copy(self)
        part.n, part.diag = len(rows), self.diag[rows]
        part.X, part.left, part.right = self.X[rows], self.left[rows], self.right[rows]
        return part

    def block(self, rows: Index) -> NDArray[Any]:
        left, right = self.left[rows], self.right[rows]
        E = np.empty((len(rows), len(rows)), dtype=left.dtype)

        def work(begin: int, end: int) -> None:
            for r in range(begin, end, _TILE):
                part = E[r : min(r + _TILE, end)]
                np.dot(left[r : r + len(part)], right.T, out=part)
                gaussian_block(part)  # type: ignore[no-untyped-call]

        over_rows(len(rows), work, least=_TILE)
        np.fill_diagonal(E, 1.0)
        return E

    def add(self, rows: Index, weights: Array, out: Array, among: Index | None = None) -> None:
        if among is None:
            self._product(self.left[rows], weights, self.right, out)
        else:
            part = np.zeros(len(among))
            self._product(self.left[rows], weights, self.right[among], part)
            out[among] += part

    @staticmethod
    def _product(left: NDArray[Any], weights: Array, right: NDArray[Any], out: Array) -> None:
        depth = _DEPTH if left.dtype == np.float32 else _DEPTH // 2

        def work(begin: int, end: int) -> None:
            buffer = np.empty((min(depth, len(left)), _TILE), dtype=left.dtype)
            for k in range(0, len(left), depth):
                some, w = left[k : k + depth], weights[k : k + depth]
                for c in range(begin, end, _TILE):
                    stop = min(c + _TILE, end)
                    tile = buffer[: len(some), : stop - c]
                    if stop - c < _TILE:
                        tile = np.empty((len(some), stop - c), dtype=left.dtype)
                    np.dot(some, right[c:stop].T, out=tile)
                    gaussian_sum(tile, w, out[c:stop])  # type: ignore[no-untyped-call]

        over_rows(len(right), work, least=4 * _TILE)


class KernelRows(RowSource):
    """Any kernel, by rows; as many as fit into ``cache_mb`` are kept, the least recently used go first.

    The precision is that of X.
    """

    def __init__(self, kernel: Any, X: Any, *, cache_mb: float = 200.0, double: Any = None) -> None:
        self.kernel, self.X, self.cache_mb = kernel, X, cache_mb
        self.double = X if double is None else double  # the same rows in double precision
        self.bound = kernel.on(X)
        self.diag = np.ascontiguousarray(kernel.diag(self.double), dtype=np.float64)
        self.n, self.exact = int(X.shape[0]), X.dtype == np.float64
        room = int(cache_mb * 2**20 / (self.n * X.dtype.itemsize))
        self.size = min(self.n, max(room, 512))
        self.store = np.empty((self.size, self.n), dtype=X.dtype)
        self.slot = np.full(self.n, -1, dtype=np.int64)  # of a row, where it is kept
        self.owner = np.full(self.size, -1, dtype=np.int64)
        self.used = np.zeros(self.size, dtype=np.int64)
        self.clock = 0

    def sharper(self) -> RowSource:
        return self if self.exact else KernelRows(self.kernel, self.double, cache_mb=self.cache_mb)

    def among(self, rows: Index) -> RowSource:
        return KernelRows(
            self.kernel, self.X[rows], cache_mb=self.cache_mb, double=self.double[rows]
        )

    def _fetch(self, rows: Index) -> Index:
        """The slots of these rows, which are computed where they are not kept."""
        self.clock += 1
        held = self.slot[rows]
        self.used[held[held >= 0]] = self.clock
        missing = rows[held < 0]
        if len(missing):
            order = np.argsort(self.used, kind="stable")[: len(missing)]
            old = self.owner[order]
            self.slot[old[old >= 0]] = -1
            for k in range(0, len(missing), 512):
                self.store[order[k : k + 512]] = self.bound.take(missing[k : k + 512])
            self.owner[order], self.slot[missing] = missing, order
            self.used[order] = self.clock
        return self.slot[rows]

    def block(self, rows: Index) -> NDArray[Any]:
        return np.asarray(self.kernel.on(self.X[rows]).gram())

    def add(self, rows: Index, weights: Array, out: Array, among: Index | None = None) -> None:
        for k in range(0, len(rows), self.size):
            slots, w = self._fetch(rows[k : k + self.size]), weights[k : k + self.size]

            def work(begin: int, end: int, slots: Index = slots, w: Array = w) -> None:
                add_rows(self.store, slots, w, begin, end, out)

            if among is not None:
                out[among] += w @ self.store[np.ix_(slots, among)]
            else:
                over_rows(self.n, work, least=2048)


class FeatureRows(RowSource):
    """The linear kernel: a product goes through the features, and no kernel row is ever needed."""

    def __init__(self, X: Any) -> None:
        self.X = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X)
        self.X = self.X.astype(np.float64, copy=False)
        self.n, self.exact = self.X.shape[0], True
        squares: Any = self.X * self.X  # entries, in a sparse array too
        self.diag = np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()

    def among(self, rows: Index) -> RowSource:
        return FeatureRows(self.X[rows])

    def block(self, rows: Index) -> NDArray[Any]:
        part = self.X[rows]
        product = part @ part.T
        return product.toarray() if sp.issparse(product) else product

    def add(self, rows: Index, weights: Array, out: Array, among: Index | None = None) -> None:
        w = self.X[rows].T @ weights
        if among is None:
            out += self.X @ w
        else:
            out[among] += self.X[among] @ w


class TensorRows(RowSource):
    """The kernel matrix on the device of a tensor, in single precision where that is the tensor's.

    What leaves the device is small: a vector over the rows and a block a round. Where the matrix does not fit
    into memory, its rows are computed in each product.
    """

    def __init__(self, kernel: Any, X: Any, *, resident: bool | None = None) -> None:
        self.kernel, self.X = kernel, X
        self.bound = kernel.on(X)
        self.n, self.exact = int(X.shape[0]), X.element_size() == 8
        self.diag = kernel.diag(X).double().cpu().numpy()
        centred = X - X.mean(dim=0)
        gamma = getattr(kernel, "gamma", None)
        scale = float(gamma) if isinstance(gamma, float | int) else 1.0
        self.largest = scale * float((centred * centred).sum(dim=1).max())
        if resident is None:
            resident = self.n**2 * X.element_size() < 0.6 * _memory(X.device)
        self.K = self.bound.gram() if resident else None

    def sharper(self) -> RowSource:
        # twice the size: computed where it is used, beside the matrix in single precision
        return self if self.exact else TensorRows(self.kernel, self.X.double(), resident=False)

    def among(self, rows: Index) -> RowSource:
        part = copy.copy(self)
        where = self._index(rows)
        part.X, part.n, part.diag = self.X[where], len(rows), self.diag[rows]
        part.bound = self.kernel.on(part.X)
        part.K = None if self.K is None else self._part(where)
        return part

    def _part(self, where: Any) -> Any:
        K: Any = self.K
        return K[where[:, None], where]

    def _index(self, rows: Index) -> Any:
        import torch

        return torch.as_tensor(rows, device=self.X.device)

    def block(self, rows: Index) -> NDArray[Any]:
        where = self._index(rows)
        part = self.kernel.on(self.X[where]).gram() if self.K is None else self._part(where)
        return np.ascontiguousarray(part.cpu().numpy())

    def add(self, rows: Index, weights: Array, out: Array, among: Index | None = None) -> None:
        import torch

        total = torch.zeros(self.n, dtype=torch.float64, device=self.X.device)
        for k in range(0, len(rows), _SOME):
            where = self._index(rows[k : k + _SOME])
            part = self.bound.take(where) if self.K is None else self.K[where]
            w = torch.as_tensor(weights[k : k + _SOME], device=self.X.device)
            total += w @ part.double()  # summed in single precision, f would drift round by round
        found = total.cpu().numpy()
        if among is None:
            out += found
        else:
            out[among] += found[among]


def _memory(device: Any) -> float:
    import torch

    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return float(4 << 30)
