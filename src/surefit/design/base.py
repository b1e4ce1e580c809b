"""The operations on X that solvers and certificates are written on.

Vectors over samples (predictions, residuals, weights) live where X lives; vectors and matrices over features
come home as numpy arrays. All are float64, whatever the precision of X: a float32 matrix is converted block
by block, never as a whole. What a subclass must give is its row blocks; the rest follows, and is overridden
where the storage allows something faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, like, scale_rows, to_numpy
from ..distributed import ALONE, Alone, Checkpoint, Ranks

__all__ = ["Array", "Design"]

Array = NDArray[np.float64]
T = TypeVar("T")


class Design(ABC):
    """A matrix with n rows (samples) and p columns (features).

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
        In which the entries are stored, and in which fitted coefficients are given.
    centres_first : bool
        Whether rows are centred before they are multiplied, so that large column means cost no digits.
    group : Alone or Ranks
        The processes that hold the rows. Rows spread over ranks count in ``shape`` together; the blocks, and
        vectors over samples, are of the rows held here.
    first_row : int
        How many rows the ranks before this one hold.
    checkpoint : Checkpoint or None
        Where an iterative fit keeps its state, to go on after a crash.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    centres_first: bool = True
    group: Alone | Ranks = ALONE
    first_row: int = 0
    checkpoint: Checkpoint | None = None

    @property
    def held(self) -> Design:
        """The rows of this process, where they live: all of them, unless they are spread over ranks."""
        return self

    @property
    def rows_here(self) -> int:
        """How many rows this process holds: all of them, unless they are spread over ranks."""
        return self.shape[0]

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """(rows, block) pairs, in order; blocks are float64, and gone once the next is asked for."""

    def fold(self, work: Callable[[Iterator[tuple[slice, Any]]], T]) -> list[T]:
        """``work(blocks)`` over stretches of rows, in order; side by side where X is in memory."""
        return [work(self.blocks())]

    def vector(self, values: Any) -> Any:
        """A vector over samples, where X lives."""
        return np.asarray(values, dtype=np.float64)

    def ones(self) -> Any:
        """A one per sample: the weights of unweighted data."""
        return self.vector(np.ones(self.shape[0]))

    def dot(self, w: Array) -> Any:
        """X @ w."""
        parts = [block @ like(w, block) for _, block in self.blocks()]
        return array_namespace(parts[0]).concat(parts)

    def tdot(self, r: Any) -> Array:
        """X.T @ r."""
        return self.respond(None, lambda rows, _: r[rows])

    def respond(
        self,
        w: Array | None,
        residual: Callable[[slice, Any], Any],
        center: Array | None = None,
    ) -> Array:
        """(X - center)' r with r = residual(rows, (X - center) w), reading X once."""
        total: Any = 0.0
        for rows, block in _prepared(self.blocks(), None, center):
            z = None if w is None else block @ like(w, block)
            total = total + block.T @ residual(rows, z)
        return to_numpy(total)

    def moments(
        self, Y: Any, s: Any, *, centred: bool, single: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """(X - m)'S(X - m), (X - m)'S Y, the weighted mean m and the mean of Y, reading X once.

        Rows are centred at the mean of a few of them, and the products moved to the mean itself at the
        end; where the two are far apart that would cancel, and a second reading is made. Without ``centred``
        both means are 0. With ``single`` the products of a block may be formed in float32, where that is
        faster; they are added up in float64.
        """
        mass = float(s.sum())
        shift, y_mean = np.zeros(self.shape[1]), np.zeros(Y.shape[1])
        if not centred:
            gram, cross, _ = self.moments_at(Y, s, shift, y_mean, single)
            return gram, cross, shift, y_mean
        balance = to_numpy(s @ Y)
        y_mean = balance / mass
        shift = self.near_mean()
        for last in (False, True):
            shift = shift.astype(np.float32).astype(np.float64) if single else shift
            gram, cross, sums = self.moments_at(Y, s, shift, y_mean, single)
            move = sums / mass
            rounding = np.finfo(np.float64).eps * np.abs(shift)
            near = 0.5 * np.diag(gram) / mass + self.shape[0] * rounding**2  # costs a bit at most
            if last or (move**2 <= near).all() or not np.isfinite(gram).all():
                break
            shift = shift + move
        gram -= mass * np.outer(move, move)
        cross -= np.outer(move, balance - mass * y_mean)  # rounding
        return gram, cross, shift + move, y_mean

    def near_mean(self) -> Array:
        """The mean of some rows: the first block."""
        first = next(block for _, block in self.blocks())
        return to_numpy(first.sum(axis=0)) / first.shape[0]

    def moments_at(
        self, Y: Any, s: Any, shift: Array, y_mean: Array, single: bool
    ) -> tuple[Array, Array, Array]:
        """(X - shift)'S(X - shift), (X - shift)'S(Y - y_mean) and (X - shift)'s, reading X once."""
        root = s[:, None] ** 0.5
        weights = None if bool((s == 1.0).all()) else s
        gram: Any = 0.0
        cross: Any = 0.0
        for rows, block in _prepared(self.blocks(), weights, shift if shift.any() else None):
            gram = gram + block.T @ block
            sides = [root[rows] * (Y[rows] - like(y_mean, block)), root[rows]]
            cross = cross + block.T @ array_namespace(block).concat(sides, axis=1)
        cross = to_numpy(cross)
        return to_numpy(gram), cross[:, :-1], cross[:, -1]

    def gram(self, weights: Any = None, center: Array | None = None) -> Array:
        """sum_i weights_i (x_i - center)(x_i - center)'."""
        total: Any = 0.0
        for _, block in _prepared(self.blocks(), weights, center):
            total = total + block.T @ block
        return to_numpy(total)

    def row_squares(self) -> Any:
        """sum_j x_ij^2 for each row i."""
        parts = [(block * block).sum(axis=1) for _, block in self.blocks()]
        return array_namespace(parts[0]).concat(parts)

    def column_norms(self, weights: Any = None, center: Array | None = None) -> Array:
        """sqrt(sum_i weights_i (x_ij - center_j)^2) for each column j."""
        total: Any = 0.0
        for _, block in _prepared(self.blocks(), weights, center):
            total = total + (block * block).sum(axis=0)
        return np.sqrt(to_numpy(total))

    def sample(self, step: int) -> Design:
        """Every ``step``-th row, in memory."""
        from .dense import Dense

        kept = [block[(-rows.start) % step :: step].copy() for rows, block in self.blocks()]
        return Dense(np.concatenate(kept))

    def columns(self, index: Any) -> Array:
        """The columns ``index`` as a numpy array of shape (n, len(index)), one column after the other."""
        out = np.empty((self.shape[0], len(index)), order="F")
        for rows, block in self.blocks():
            out[rows] = to_numpy(block[:, like(np.asarray(index), block)])
        return out

    def sum_squares(self, weights: Any = None) -> float:
        """sum_ij weights_i x_ij^2, the squared Frobenius norm of the weighted matrix."""
        squares = self.row_squares()
        return float(squares.sum() if weights is None else squares @ weights)

    def dot_and_mean(self, w: Array, weights: Any) -> tuple[Any, Array]:
        """X @ w and the weighted mean row, reading X once."""

        def part(blocks: Iterator[tuple[slice, Any]]) -> tuple[list[Any], Any]:
            found, total = [], 0.0
            for rows, block in blocks:
                found.append(block @ like(w, block))
                total = total + block.T @ weights[rows]
            return found, total

        folded = self.fold(part)
        z = [z for found, _ in folded for z in found]
        total = np.sum([to_numpy(total) for _, total in folded], axis=0)
        return array_namespace(z[0]).concat(z), total / float(weights.sum())

    def home(self) -> Array:
        """The whole matrix as a numpy array."""
        out = np.empty(self.shape)
        for rows, block in self.blocks():
            out[rows] = to_numpy(block)
        return out

    def mean(self, weights: Any = None) -> Array:
        """The (weighted) mean row."""
        weights = self.ones() if weights is None else weights
        return self.tdot(weights) / float(weights.sum())


def _prepared(
    blocks: Iterator[tuple[slice, Any]], weights: Any, center: Array | None
) -> Iterator[tuple[slice, Any]]:
    """Row blocks less the centre, times the root of the weights."""
    for rows, block in blocks:
        prepared = block if center is None else block - like(center, block)
        if weights is not None:
            prepared = scale_rows(weights[rows] ** 0.5, prepared)
        yield rows, prepared
