"""Rows spread over processes, as one design.

Each rank gives the rows it holds: an array, a sparse matrix, a tensor, or row blocks on disk. Products with
vectors over samples are summed over the ranks; everything over features is then the same on all of them. A
fit on such rows is a fit on all rows, in the order of the ranks, and ends on every rank with the same model.

Examples
--------
>>> import numpy as np
>>> from surefit.design import RankRows
>>> from surefit.distributed import connect
>>> from surefit.linear_model import Ridge
>>> X = np.arange(12.0).reshape(6, 2) ** 1.5
>>> with connect() as group:                       # under torchrun: one of several processes
...     mine = group.share_of(len(X))
...     model = Ridge().fit(RankRows(X[mine], group), X[mine, 0])
>>> bool(np.allclose(model.coef_, Ridge().fit(X, X[:, 0]).coef_))
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._namespace import is_torch, like, to_numpy
from .._ranks import RankVector, Spread, held_here
from ..distributed import ALONE, Alone, Checkpoint, RankError
from .base import Array, Design, T

__all__ = ["RankRows"]


class RankRows(Design):
    """The rows that this rank holds, and through its group those of all ranks.

    Parameters
    ----------
    X : array, sparse matrix, tensor, or RowBlocks
        This rank's rows: at least one, finite, with as many columns as on the other ranks. The rows of all
        ranks count in the order of the ranks.
    group : Alone or Ranks
        From :func:`surefit.distributed.connect`.
    checkpoint : path, optional
        A folder in which fits on these rows keep their state, so that they go on from there after a crash.

    Attributes
    ----------
    shape : (int, int)
        Of all rows together.
    local : Design
        The rows held here.
    """

    def __init__(self, X: Any, group: Alone = ALONE, *, checkpoint: Any = None) -> None:
        from . import as_design

        if isinstance(X, RankRows):
            raise TypeError("X is spread over ranks already: pass the rows that this rank holds.")
        self.rows = group.agree(lambda: _checked(X))
        self.local, self.group = as_design(self.rows), group
        self._agree_on_shapes()
        self.centres_first = self.local.centres_first
        if checkpoint is not None:
            self.checkpoint = Checkpoint(checkpoint, group)

    def _agree_on_shapes(self) -> None:
        """The same columns and the same kind of rows on every rank, or an error on every rank."""
        about = (*self.local.shape, str(self.local.dtype), self.local.centres_first)
        found = self.group.gather(about)
        rows, columns, kinds, dense = zip(*found, strict=True)
        for words, values in (("columns", columns), ("data type", kinds)):
            if len(set(values)) > 1:
                listed = ", ".join(f"rank {k}: {value}" for k, value in enumerate(values))
                raise RankError(
                    f"the ranks disagree on the {words} of X ({listed}): make them alike."
                )
        if len(set(dense)) > 1:
            raise RankError("some ranks hold sparse rows and some dense ones: make them alike.")
        self.rows_by_rank = rows
        self.first_row = sum(rows[: self.group.rank])
        self.shape, self.dtype = (sum(rows), columns[0]), self.local.dtype
        self.spread = Spread(self.group, self.first_row, self.shape[0])

    def __repr__(self) -> str:
        held = f"{self.rows_here} of {self.shape[0]} rows x {self.shape[1]} columns"
        return f"RankRows({held}, on rank {self.group.rank} of {self.group.size})"

    @property
    def held(self) -> Design:
        return self.local

    @property
    def rows_here(self) -> int:
        return self.local.shape[0]

    # ------------------------------------------------------------------ vectors over samples

    def vector(self, values: Any) -> Any:
        """A vector over samples: of the rows held here, or of all rows."""
        if isinstance(values, RankVector):
            return values.astype(np.float64, copy=False)
        plain = np.asarray(to_numpy(values), dtype=np.float64)
        if plain.ndim and len(plain) == self.shape[0] != self.rows_here:
            plain = plain[self.first_row : self.first_row + self.rows_here]
        return RankVector(plain, self.spread) if plain.shape[:1] == (self.rows_here,) else plain

    def ones(self) -> Any:
        return self.vector(np.ones(self.rows_here))

    # ------------------------------------------------------------------ rows

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """The rows held here, on the host."""
        for rows, block in self.local.blocks():
            yield rows, to_numpy(block) if is_torch(block) else block

    def fold(self, work: Callable[[Iterator[tuple[slice, Any]]], T]) -> list[T]:
        return [work(self.blocks())] if is_torch(self.rows) else self.local.fold(work)

    def sample(self, step: int) -> RankRows:
        """Every ``step``-th row of all ranks."""
        start, spread = self.spread.strided(step)
        rows = self.rows if hasattr(self.local, "X") else self.local.home()
        return self._with(rows[start::step], spread)

    def keep(self, kept: RankVector, *vectors: RankVector) -> tuple[Any, ...]:
        """The rows where ``kept`` is true, and these entries of vectors over samples.

        All are kept where the rows are on disk, or where a rank would be left without any.
        """
        mask = kept.here
        counts = self.group.gather(int(mask.sum()))
        if min(counts) == 0 or not hasattr(self.local, "X"):
            return (self, *vectors)
        spread = Spread(self.group, sum(counts[: self.group.rank]), sum(counts))
        rows = self.rows[like(mask, self.rows)]
        return self._with(rows, spread), *(RankVector(v.here[mask], spread) for v in vectors)

    def _with(self, rows: Any, spread: Spread) -> RankRows:
        """Other rows, spread as said, over the same ranks."""
        from . import as_design

        some = object.__new__(RankRows)
        some.rows, some.local, some.group, some.spread = rows, as_design(rows), self.group, spread
        some.shape, some.dtype = (spread.total, self.shape[1]), self.dtype
        some.centres_first, some.first_row = self.centres_first, spread.first
        return some

    def home(self) -> Array:
        """All rows, on every rank."""
        return np.concatenate(self.group.gather(self.local.home()))

    def columns(self, index: Any) -> Array:
        return np.asfortranarray(np.concatenate(self.group.gather(self.local.columns(index))))

    # ------------------------------------------------------------------ products

    def dot(self, w: Array) -> Any:
        return self.vector(self.local.dot(w))

    def tdot(self, r: Any) -> Array:
        total: Array = self.group.sum(self.local.tdot(self.local.vector(held_here(r))))
        return total

    def respond(
        self,
        w: Array | None,
        residual: Callable[[slice, Any], Any],
        center: Array | None = None,
    ) -> Array:
        def nearby(rows: slice, z: Any) -> Any:
            return self.local.vector(held_here(residual(rows, None if z is None else to_numpy(z))))

        total: Array = self.group.sum(self.local.respond(w, nearby, center))
        return total

    def near_mean(self) -> Array:
        return self.group.share(self.local.near_mean())

    def moments(
        self, Y: Any, s: Any, *, centred: bool, single: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        if self.centres_first:
            return Design.moments(self, Y, s, centred=centred, single=single)
        mean, y_mean = np.zeros(self.shape[1]), np.zeros(Y.shape[1])
        if centred:
            mean, y_mean = self.mean(s), (s @ Y) / float(s.sum())
        cross = self.respond(None, lambda rows, _: s[rows][:, None] * (Y[rows] - y_mean), mean)
        return self.gram(s, mean if centred else None), cross, mean, y_mean

    def moments_at(
        self, Y: Any, s: Any, shift: Array, y_mean: Array, single: bool
    ) -> tuple[Array, Array, Array]:
        near = [self.local.vector(held_here(v)) for v in (Y, s)]
        found = self.local.moments_at(near[0], near[1], shift, y_mean, single)
        gram, cross, sums = self.group.sum(*found)
        return gram, cross, sums

    def gram(self, weights: Any = None, center: Array | None = None) -> Array:
        total: Array = self.group.sum(self.local.gram(self._nearby(weights), center))
        return total

    def column_norms(self, weights: Any = None, center: Array | None = None) -> Array:
        squares = self.local.column_norms(self._nearby(weights), center) ** 2
        return np.sqrt(self.group.sum(squares))

    def row_squares(self) -> Any:
        return self.vector(self.local.row_squares())

    def dot_and_mean(self, w: Array, weights: Any) -> tuple[Any, Array]:
        near = self._nearby(weights)
        here = float(near.sum())
        if here > 0.0:
            z, mean = self.local.dot_and_mean(w, near)
        else:
            z, mean = self.local.dot(w), np.zeros(self.shape[1])
        total, mass = self.group.sum(here * mean, here)
        return self.vector(z), total / mass

    def _nearby(self, weights: Any) -> Any:
        return None if weights is None else self.local.vector(held_here(weights))


def _checked(X: Any) -> Any:
    """X of one rank, where it is an array, as scikit-learn's validation leaves it."""
    from sklearn.utils.validation import check_array

    if isinstance(X, Design):
        return X
    if is_torch(X):
        from ..inputs import checked_tensor

        return checked_tensor(X)
    if not sp.issparse(X) and np.ndim(X) == 2 and np.shape(X)[0] == 0:
        raise ValueError("this rank holds no rows: use fewer processes, or spread the rows evenly.")
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
