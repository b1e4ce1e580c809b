r"""Rows of which most entries are zero, as input of a perceptron.

For a batch of compressed rows X and a first layer :math:`Z = X W + b` the textbook's two products

.. math:: Z_n = b + \sum_{j:\, x_{nj} \ne 0} x_{nj} W_j, \qquad
    \frac{\partial f}{\partial W_j} = \sum_{n:\, x_{nj} \ne 0} x_{nj} \frac{\partial f}{\partial Z_n}

read a row of W, or of the gradient by Z, for each entry that is not zero. Pixels of digits, bags of words and
indicators of categories are mostly zeros, and the zeros cost nothing. The sums are the same for any number of
threads. On a GPU batches are made dense.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from .. import _team
from .._jit.sparse_rows import (
    HEAD,
    LANES,
    PRODUCT,
    TILE,
    TRANSPOSED,
    compress_rows,
    count_rows,
    take_rows,
)
from .._threads import over_rows

__all__ = ["WORTH", "SparseRows", "linear", "mostly_zero", "product", "transposed_product"]

WORTH = 0.25  # the share of entries that are not zero up to which leaving out the others is faster
_LOOK = 1 << 20  # entries that are looked at to guess the share
_PACKED = 4  # entries for each row of the table from which copying it into panels pays


class SparseRows:
    """Compressed rows that can be taken by number, moved and made dense, as tensors can.

    Entries of row r are ``indices[starts[r]:ends[r]]`` and ``values[starts[r]:ends[r]]``, so that rows are
    taken without a copy of them.

    Parameters
    ----------
    starts, ends, indices, values : arrays
    width : int
        The number of columns.

    Examples
    --------
    >>> rows = SparseRows.of(sp.csr_array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]))
    >>> rows.take(np.array([2, 0])).dense().tolist()
    [[3.0, 4.0], [0.0, 2.0]]
    """

    def __init__(self, starts: Any, ends: Any, indices: Any, values: Any, width: int) -> None:
        self.starts, self.ends, self.indices, self.values = starts, ends, indices, values
        self.width, self.device = width, torch.device("cpu")

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """From a scipy sparse matrix, or from an array."""
        if not sp.issparse(X):
            X = np.ascontiguousarray(X, None if X.dtype in (np.float32, np.float64) else np.float64)
            bounds = np.zeros(len(X) + 1, np.int64)
            over_rows(
                len(X), lambda first, last: count_rows(X[first:last], bounds[first + 1 : last + 1])
            )
            np.cumsum(bounds, out=bounds)
            indices, values = np.empty(bounds[-1], np.int32), np.empty(bounds[-1], X.dtype)
            over_rows(
                len(X),
                lambda first, last: compress_rows(
                    X[first:last], bounds[first], bounds[last], indices, values
                ),
            )
            return cls(bounds[:-1], bounds[1:], indices, values, X.shape[1])
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        # scipy keeps data that are a part of a longer array; kernels go through memory number by number
        kind = X.data.dtype if X.data.dtype in (np.float32, np.float64) else np.float64
        indices, values = (
            np.ascontiguousarray(X.indices, np.int32),
            np.ascontiguousarray(X.data, kind),
        )
        bounds = X.indptr.astype(np.int64)
        return cls(bounds[:-1], bounds[1:], indices, values, X.shape[1])

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    @functools.cached_property
    def entries(self) -> int:
        """How many are not left out."""
        return int((self.ends - self.starts).sum())

    @functools.cached_property
    def addresses(self) -> list[int]:
        """Where starts, ends, indices and values lie in memory."""
        arrays = (self.starts, self.ends, self.indices, self.values)
        return [array.__array_interface__["data"][0] for array in arrays]

    def is_floating_point(self) -> bool:
        return True

    def to(self, device: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
        """These rows with numbers of another type; a dense tensor on a device other than the processor."""
        device = torch.device(device)
        if device.type != "cpu":
            return self.dense().to(device, dtype, non_blocking=non_blocking)
        kind = np.float64 if dtype == torch.float64 else np.float32
        if dtype is None or self.values.dtype == kind:
            return self
        bounds, indices, values = self.copied()
        return SparseRows(bounds[:-1], bounds[1:], indices, values.astype(kind), self.width)

    def numel(self) -> int:
        """How many entries there are, zeros included."""
        return len(self) * self.width

    def __getitem__(self, rows: slice) -> SparseRows:
        """Consecutive rows."""
        if rows.step not in (None, 1):  # kernels go through starts and ends number by number
            return self.take(np.arange(len(self))[rows])
        return SparseRows(self.starts[rows], self.ends[rows], self.indices, self.values, self.width)

    def take(self, rows: NDArray[np.int64]) -> SparseRows:
        """Some rows, in this order."""
        return SparseRows(self.starts[rows], self.ends[rows], self.indices, self.values, self.width)

    def dense(self) -> torch.Tensor:
        """The same rows, zeros included."""
        bounds, indices, values = self.copied()
        return torch.from_numpy(sp.csr_array((values, indices, bounds), self.shape).toarray())

    def copied(self) -> tuple[Any, Any, Any]:
        """The entries of these rows alone, one row after another."""
        bounds = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.ends - self.starts, out=bounds[1:])
        indices, values = np.empty(bounds[-1], np.int32), np.empty(bounds[-1], self.values.dtype)
        everything = np.arange(len(self))
        take_rows(self.starts, self.indices, self.values, everything, bounds, indices, values)
        return bounds, indices, values


def mostly_zero(X: Any) -> bool:
    """Whether so few entries are not zero that :func:`linear` is faster; of an array some rows are looked at.

    Examples
    --------
    >>> mostly_zero(np.eye(50)), mostly_zero(np.ones((50, 50)))
    (True, False)
    """
    if sp.issparse(X):
        return bool(X.nnz <= WORTH * math.prod(X.shape))
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return False
    rows = np.linspace(0, len(X) - 1, min(len(X), max(1, _LOOK // X.shape[1]))).astype(np.int64)
    return bool(np.count_nonzero(X[rows]) <= WORTH * rows.size * X.shape[1])


def product(rows: SparseRows, table: torch.Tensor) -> torch.Tensor:
    """X @ table, for a table with as many rows as X has columns, on the processor.

    Examples
    --------
    >>> product(SparseRows.of(np.array([[0.0, 2.0], [1.0, 0.0]])), torch.tensor([[1.0], [3.0]]).double())
    tensor([[6.],
            [1.]], dtype=torch.float64)
    """
    _fits(rows, table, rows.width)
    out = torch.empty((len(rows), table.shape[1]), dtype=table.dtype)
    panels, words, kept = _words(rows, table, out)
    _team.run(PRODUCT[rows.values.dtype], HEAD, panels, words)
    del kept
    return out


def transposed_product(rows: SparseRows, table: torch.Tensor) -> torch.Tensor:
    """X' @ table, for a table with as many rows as X, on the processor; it lies column by column."""
    _fits(rows, table, len(rows))
    width, shares = rows.width, _team.threads()
    out = torch.empty((table.shape[1], width), dtype=table.dtype).t()
    panels, words, kept = _words(rows, table, out)
    counts = torch.empty((shares, width), dtype=torch.int64)
    at = torch.empty((1 + shares, width + 1), dtype=torch.int64)
    numbers = torch.empty(rows.entries, dtype=torch.int32)
    ordered = torch.empty(rows.entries, dtype=table.dtype)
    words += [space.data_ptr() for space in (counts, at, numbers, ordered)]
    _team.run(TRANSPOSED[rows.values.dtype], HEAD, panels + 2 * shares, words)
    del kept
    return out


def linear(rows: SparseRows, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """As :func:`torch.nn.functional.linear`, differentiable by weight and bias, once."""
    if weight.device.type != "cpu":
        return F.linear(rows.to(weight.device, weight.dtype), weight, bias)
    out: torch.Tensor = _Linear.apply(rows.to("cpu", weight.dtype), weight, bias)
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: SparseRows, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        ctx.rows = rows
        return product(rows, weight.detach().t()) + bias.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        return None, transposed_product(ctx.rows, slope).t(), slope.sum(dim=0)


def _fits(rows: SparseRows, table: torch.Tensor, length: int) -> None:
    """The kernels believe what they are told: a shorter table, or narrower numbers, would be read beyond."""
    kind = torch.float64 if rows.values.dtype == np.float64 else torch.float32
    if table.dtype != kind or table.ndim != 2 or len(table) != length or table.device.type != "cpu":
        raise ValueError(
            f"table must be a matrix of {length} rows of {kind} on the processor, as the rows are, got "
            f"{tuple(table.shape)} of {table.dtype} on {table.device}: convert it, or the rows by "
            "rows.to(device, dtype)."
        )


def _words(rows: SparseRows, table: torch.Tensor, out: torch.Tensor) -> tuple[int, list[int], Any]:
    """(panels, the words of a block in the order of :mod:`surefit._jit.sparse_rows`, what they point to)."""
    length, columns = table.shape
    panels, packed = -(-columns // LANES), rows.entries >= _PACKED * length
    turned = packed and table.t().is_contiguous()
    table = table if turned else table.contiguous()
    room = torch.empty((panels, (length if packed else 0) + TILE, LANES), dtype=table.dtype)
    words = [len(rows), rows.width, *rows.addresses, panels, columns, table.data_ptr()]
    words += [turned, packed, room.data_ptr(), out.data_ptr(), not out.is_contiguous()]
    return panels, words, (table, room)
