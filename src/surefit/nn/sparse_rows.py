r"""Rows of which most entries are zero, as input of a perceptron.

For a batch of compressed rows X and a first layer :math:`Z = X W + b` the textbook's two products

.. math:: Z_n = b + \sum_{j:\, x_{nj} \ne 0} x_{nj} W_j, \qquad
    \frac{\partial f}{\partial W_j} = \sum_{n:\, x_{nj} \ne 0} x_{nj} \frac{\partial f}{\partial Z_n}

read a row of W, or of the gradient by Z, for each entry that is not zero, and add it as one vector: sums of
weighted embeddings, for which torch has a kernel of its own in float32. Pixels of digits, bags of words and
indicators of categories are mostly zeros, and the zeros cost nothing. On a GPU batches are made dense.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from .._jit.sparse_rows import add_rows, by_columns, compress_rows, count_rows, take_rows

__all__ = ["WORTH", "SparseRows", "linear", "mostly_zero"]

WORTH = 0.25  # the share of entries that are not zero up to which leaving out the others is faster
_LOOK = 1 << 20  # entries that are looked at to guess the share


class SparseRows:
    """Compressed rows that can be taken by number, moved and made dense, as tensors can.

    Parameters
    ----------
    indptr, indices, values : arrays
        As of a scipy CSR matrix without duplicates.
    width : int
        The number of columns.

    Examples
    --------
    >>> rows = SparseRows.of(sp.csr_array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]))
    >>> rows.take(np.array([2, 0])).dense().tolist()
    [[3.0, 4.0], [0.0, 2.0]]
    """

    def __init__(self, indptr: Any, indices: Any, values: Any, width: int) -> None:
        self.indptr, self.indices, self.values, self.width = indptr, indices, values, width
        self.device = torch.device("cpu")

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """From a scipy sparse matrix, or from an array."""
        if not sp.issparse(X):
            X = np.ascontiguousarray(X, None if X.dtype in (np.float32, np.float64) else np.float64)
            starts = np.empty(len(X) + 1, np.int64)
            count_rows(X, starts)
            indices, kept = np.empty(starts[-1] + 1, np.int32), np.empty(starts[-1] + 1, X.dtype)
            compress_rows(X, indices, kept)
            return cls(starts, indices[:-1], kept[:-1], X.shape[1])
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        values = X.data if X.data.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
        return cls(X.indptr.astype(np.int64), X.indices.astype(np.int32), values, X.shape[1])

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

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
        return SparseRows(self.indptr, self.indices, self.values.astype(kind), self.width)

    def take(self, rows: NDArray[np.int64]) -> SparseRows:
        """Some rows, in this order."""
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.indptr[rows + 1] - self.indptr[rows], out=starts[1:])
        indices = np.empty(starts[-1], np.int32)
        values = np.empty(starts[-1], self.values.dtype)
        take_rows(self.indptr, self.indices, self.values, rows, starts, indices, values)
        return SparseRows(starts, indices, values, self.width)

    def dense(self) -> torch.Tensor:
        """The same rows, zeros included."""
        return torch.from_numpy(
            sp.csr_array((self.values, self.indices, self.indptr), self.shape).toarray()
        )


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
        W = weight.detach().t().contiguous()
        return _sums(rows.indptr, rows.indices, rows.values, W) + bias.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        rows: SparseRows = ctx.rows
        slope = slope.contiguous()
        starts = np.empty(rows.width + 1, np.int64)
        numbers = np.empty_like(rows.indices)
        values = np.empty_like(rows.values)
        by_columns(rows.indptr, rows.indices, rows.values, starts, numbers, values)
        return None, _sums(starts, numbers, values, slope).t(), slope.sum(dim=0)


def _sums(starts: Any, numbers: Any, values: Any, W: torch.Tensor) -> torch.Tensor:
    """Row r is the sum of ``values[p] W[numbers[p]]`` over p from starts[r] to starts[r + 1]."""
    if W.dtype == torch.float32:
        given = [torch.from_numpy(part) for part in (numbers, starts.astype(np.int32), values)]
        found: torch.Tensor = F.embedding_bag(
            given[0], W, given[1], mode="sum", per_sample_weights=given[2], include_last_offset=True
        )
        return found
    found = torch.zeros((len(starts) - 1, W.shape[1]), dtype=W.dtype)
    add_rows(starts, numbers, values, W.numpy(), found.numpy())
    return found
