r"""Nearest rows in the Euclidean distance: the speed of float32, the answer of exact arithmetic.

For queries q and rows t of a table the k nearest rows are wanted, in order, ties broken by the number of the
row. The inputs are floating-point numbers and the distances are meant exactly, as real numbers.

1. *Products.* With a, b the centred, scaled and rounded q and t, |a - b|^2 / 2 is |a|^2 / 2 plus the score
   |b|^2 / 2 - <a, b>, so one matrix product ranks all rows. In a precision of unit u, with
   gamma = p u / (1 - p u) and kappa = gamma / 2 + 2 u (and terms of higher order),

       D^2 / 2  >=  |a|^2 (1/2 - kappa) + [ |b|^2 (1/2 - kappa) - fl<a, b> ]

   for the true scaled distance D: rounding t to b moves it by at most u |b|, and the product errs by
   gamma |a| |b| <= gamma (|a|^2 + |b|^2) / 2, in whatever order it is summed. The bracket is kept in a
   heap of the k + 8 smallest, one a query.
2. *Candidates.* Their distances are computed from the differences q - t in float64, with relative error
   (p + 8) 2^-53. Every row that is not a candidate lies beyond the bound that the largest kept score
   gives. If that is beyond the k-th candidate, no neighbour is missing.
3. *Order.* Candidates that float64 does not separate are computed with twice the digits by error-free
   transformations; those that this does not separate either, in integers.

Step 1 is done in float32; where its bound does not suffice (rows much closer together than to the centre), in
float64, and where that does not, all differences of the query are formed. In few dimensions a k-d tree
takes the place of the products. In each case the same check decides whether to go on, so the result does
not depend on the way, and it is exact for any finite input. What is assumed of the matrix library is that
it sums ordinary products in the precision it is given, in any order.

References
----------
Higham, Accuracy and Stability of Numerical Algorithms (2002), chapter 3; Dekker, "A floating-point technique
for extending the available precision", Numerische Mathematik 18 (1971).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._threads import over_rows
from .exact_distances import nearest_by_integers, rank_by_integers

__all__ = ["NeighbourIndex"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_SMALL = 2.0**-900  # squares below may have lost bits to underflow
_TAME = 2.0**500  # squares of such numbers do not overflow
_FEATURES = 1 << 20  # beyond, the bound on float32 products says nothing
_EXTRA = 8  # candidates beyond k: enough unless rows crowd within rounding
_QUERIES, _ROWS = 512, 256  # of a block of products
_UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}
_TINY = {np.dtype(np.float32): 2.0**-120, np.dtype(np.float64): 2.0**-1000}
_FAR = {np.dtype(np.float32): 2.0**40, np.dtype(np.float64): 2.0**400}
_TREE_SLACK = (
    1e-11  # relative rounding of a tree's squared distances to its boxes, far more than it can be
)
_TREE_FLOOR = 1e-280  # squares below may have lost bits to underflow


class NeighbourIndex:
    """A table of rows, made ready for exact neighbour queries.

    Parameters
    ----------
    table : {array, CSR matrix} of shape (n, p)
        Finite float32 or float64.
    tree : bool, default=False
        Whether to look for candidates with a k-d tree, which pays in few dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> index = NeighbourIndex(np.array([[0.0], [1.0], [3.0], [1.0]]))
    >>> distances, rows = index.query(np.array([[1.5]]), 3)
    >>> rows.tolist(), distances.tolist()
    ([[1, 3, 0]], [[0.5, 0.5, 1.5]])
    """

    def __init__(self, table: Any, *, tree: bool = False) -> None:
        self.source = table
        self.n, self.p = table.shape
        self.sparse = sp.issparse(table)
        entries = table.data if self.sparse else table
        largest = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
        exponent = math.frexp(largest)[1] if largest > 0 else 0
        self.shift = -exponent if abs(exponent) > 300 else 0  # so that squares do not overflow
        self.table = self._shifted(table)
        self.lossy = self.shift < 0 and not bool(self._kept(entries).all())
        self.error = (self.p + 8) * 2.0**-53
        self.tree = cKDTree(self.table) if tree and not self.sparse else None
        self._prepared: dict[Any, Any] = {}
        if self.tree is None and not self.sparse:
            self._prepare(np.dtype(np.float32))

    # ------------------------------------------------------------------ queries

    def query(self, queries: Any, k: int) -> tuple[Array, Indices]:
        """Distances and row numbers of the k nearest rows, nearest first, k <= n.

        The row numbers are exact; the distances are within (p + 8) 2^-53 of the exact ones, relatively.
        """
        m = queries.shape[0]
        distances, rows = np.empty((m, k)), np.empty((m, k), dtype=np.int64)
        size = _QUERIES
        if self.sparse:
            size = max(1, min(size, (1 << 24) // max(self.n, self.p)))

        def work(first: int, last: int) -> None:
            for start in range(first, last, size):
                part = slice(start, min(start + size, last))
                distances[part], rows[part] = self._block(_dense(queries[part]), k)

        least = (1 << 20) // max(1, self.n * self.p)  # queries that are worth a thread
        over_rows(m, work, least=max(1, min(_QUERIES, least)))
        return distances, rows

    def _block(self, queries: Array, k: int) -> tuple[Array, Indices]:
        """A block of queries, by each way in turn for those that are still open."""
        given = queries
        queries = np.ascontiguousarray(self._shifted(queries), dtype=np.float64)
        squares, rows = np.empty((len(queries), k)), np.empty((len(queries), k), dtype=np.int64)
        bounds = np.full(len(queries), np.inf)  # on the k-th squared distance
        near = min(k + _EXTRA, self.n)
        tame = (np.abs(queries).max(axis=1, initial=0.0) < _TAME) & self._kept(given).all(axis=1)
        tame &= not self.lossy
        open_ = np.flatnonzero(tame)
        for way in self._ways():
            if len(open_) == 0 or (way == "float64" and len(open_) < 8 and self.p <= _FEATURES):
                continue
            candidates, beyond = self._candidates(way, queries[open_], near)
            found = self._squares(queries[open_], candidates)
            by_square = np.lexsort((candidates, found), axis=1)
            candidates = np.take_along_axis(candidates, by_square, axis=1)
            found = np.take_along_axis(found, by_square, axis=1)
            bounds[open_] = found[:, k - 1] * (1.0 + 4.0 * self.error) + self.p * 2.0**-1000
            complete = (bounds[open_] < beyond) | (near == self.n)
            done = open_[complete]
            squares[done], rows[done] = self._ordered(
                given[done], queries[done], candidates[complete], found[complete], k
            )
            open_ = open_[~complete]
        for i in open_.tolist():
            squares[i], rows[i] = self._one_by_one(given[i], queries[i], float(bounds[i]), k)
        distances = self._distances(queries, rows, squares, tame)
        for i in np.flatnonzero(~tame).tolist():  # squares overflow, or the shift lost something
            distances[i], rows[i] = nearest_by_integers(given[i], self.source, k)
        return distances, rows

    def _distances(self, queries: Array, rows: Indices, squares: Array, tame: Any) -> Array:
        """The roots of the squares, formed again from scaled differences where squares vanish."""
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            distances = np.sqrt(squares)
            which, place = np.nonzero((squares < _SMALL) & tame[:, None])
            gaps = np.abs(queries[which] - _dense(self.table[rows[which, place]]))
            largest = gaps.max(axis=1, initial=0.0)
            shares = gaps / np.where(largest > 0, largest, 1.0)[:, None]
            distances[which, place] = largest * np.sqrt(np.square(shares).sum(axis=1))
            return np.ldexp(np.maximum.accumulate(distances, axis=1), -self.shift)

    def _ways(self) -> tuple[str, ...]:
        if self.sparse:
            return ("sparse",)
        if self.tree is not None:
            return ("tree",)
        return ("float32", "float64") if self.p <= _FEATURES else ("float64",)

    def _candidates(self, way: str, queries: Array, near: int) -> tuple[Indices, Array]:
        """``near`` rows for each query, and a squared distance within which there are no others."""
        if way == "tree":
            return self._by_tree(queries, near)
        if way == "sparse":
            return self._by_sparse_products(queries, near)
        return self._by_products(queries, near, np.dtype(way))

    # ------------------------------------------------------------------ candidates, and what lies beyond

    def _by_products(self, queries: Array, near: int, kind: Any) -> tuple[Indices, Array]:
        """Candidates by matrix products; all other rows lie at squared distance ``beyond`` or more."""
        from .._jit.neighbours import scan

        centre, scale, table, offsets, kappa = self._prepare(kind)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = (queries - centre) * 2.0**scale
            usable = np.abs(scaled).max(axis=1, initial=0.0) < _FAR[kind]
            scaled = np.where(usable[:, None], scaled, 0.0).astype(kind)
        scores = np.full((len(queries), near), np.inf, dtype=kind)
        rows = np.zeros((len(queries), near), dtype=np.int64)
        block = np.empty((len(queries), min(_ROWS, self.n)), dtype=kind)
        for start in range(0, self.n, _ROWS):
            part = table[start : start + _ROWS]
            out = (
                block if len(part) == block.shape[1] else np.empty((len(queries), len(part)), kind)
            )
            np.matmul(scaled, part.T, out=out)
            scan(out, offsets[start : start + _ROWS], start, scores, rows)
        root = scores[:, 0].astype(np.float64)
        norms = np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64)
        half = norms * (0.5 - kappa) + root - 2.0 * _UNIT[kind] * np.abs(root) - self._floor(kind)
        with np.errstate(over="ignore", under="ignore"):
            beyond = np.ldexp(2.0 * half * (1.0 - 2.0**-50), -2 * scale)
        return rows, np.where(usable, beyond, -np.inf)

    def _prepare(self, kind: Any) -> Any:
        """Centre, scale (a power of two), the rounded table and its offsets |b|^2 (1/2 - kappa)."""
        if kind not in self._prepared:
            centre = self.table.mean(axis=0, dtype=np.float64)
            table = np.empty(self.table.shape, dtype=kind)
            largest = 0.0
            step = max(1, (1 << 16) // self.p)  # rows of a part stay in the cache
            parts = [slice(i, i + step) for i in range(0, self.n, step)]
            for part in parts:
                centred = self.table[part] - centre
                largest = max(largest, float(centred.max()), -float(centred.min()))
            scale = min(-math.frexp(largest)[1], 1000) if largest > 0 else 0
            norms = np.empty(self.n)
            for part in parts:
                with np.errstate(under="ignore"):
                    table[part] = (self.table[part] - centre) * 2.0**scale
                norms[part] = np.einsum("ij,ij->i", table[part], table[part], dtype=np.float64)
            unit = _UNIT[kind]
            gamma = self.p * unit / max(1.0 - self.p * unit, 0.5)
            kappa = 0.5 * gamma + 2.01 * unit + self.p * 2.0**-52 + self.p * _TINY[kind]
            offsets = norms * (0.5 - kappa) - self._floor(kind)
            offsets = np.nextafter(offsets.astype(kind), kind.type(-np.inf))
            self._prepared[kind] = centre, scale, table, offsets, kappa
        return self._prepared[kind]

    def _floor(self, kind: Any) -> float:
        """What underflow can add, with entries of at most 1 in the table."""
        return 4.0 * self.p * _TINY[kind]

    def _by_tree(self, queries: Array, near: int) -> tuple[Indices, Array]:
        """Candidates by the tree, whose squared distances have relative rounding only."""
        assert self.tree is not None
        distances, rows = self.tree.query(queries, k=near)
        farthest = np.square(distances.reshape(len(queries), near)[:, -1])
        beyond = np.where(farthest > _TREE_FLOOR, farthest * (1.0 - _TREE_SLACK), -np.inf)
        return rows.reshape(len(queries), near).astype(np.int64), beyond

    def _by_sparse_products(self, queries: Array, near: int) -> tuple[Indices, Array]:
        """The scores of step 1 without centring, in float64."""
        if "norms" not in self._prepared:
            self._prepared["norms"] = np.asarray(
                self.table.multiply(self.table).sum(axis=1)
            ).ravel()
        norms = self._prepared["norms"]
        unit = _UNIT[np.dtype(np.float64)]
        kappa = self.p * unit + 2.01 * unit + self.p * 2.0**-52
        products = np.asarray((self.table @ queries.T).T)
        scores = norms * (0.5 - kappa) - products
        rows = np.argpartition(scores, near - 1, axis=1)[:, :near].astype(np.int64)
        root = np.take_along_axis(scores, rows, axis=1).max(axis=1)
        own = np.einsum("ij,ij->i", queries, queries)
        half = own * (0.5 - kappa) + root - 2.0 * unit * np.abs(root) - self.p * 2.0**-1000
        return rows, 2.0 * half * (1.0 - 2.0**-50)

    # ------------------------------------------------------------------ the exact part

    def _squares(self, queries: Array, rows: Indices) -> Array:
        """Squared distances of the candidates, from their differences."""
        from .._jit.neighbours import differences

        squares = np.empty(rows.shape)
        if not self.sparse:
            differences(queries, self.table, np.ascontiguousarray(rows), squares)
            return squares
        for i, candidates in enumerate(rows):
            query, table = self._compact(queries[i], candidates)
            own = np.arange(len(candidates), dtype=np.int64)[None, :]
            differences(query, table, own, squares[i : i + 1])
        return squares

    def _compact(self, query: Array, rows: Any) -> tuple[Array, Array]:
        """The query and rows of a sparse table in the columns that are not all zero."""
        part = self.table[rows]
        columns = np.union1d(part.indices, np.flatnonzero(query))
        return query[None, columns], np.ascontiguousarray(_dense(part[:, columns]))

    def _ordered(
        self, given: Array, queries: Array, rows: Indices, squares: Array, k: int
    ) -> tuple[Any, Any]:
        """The first k of complete candidates, in exact order."""
        from .._jit.neighbours import order

        rows, squares = np.ascontiguousarray(rows), np.ascontiguousarray(squares)
        undecided = np.zeros(len(rows), dtype=np.bool_)
        if not self.sparse:
            order(
                np.ascontiguousarray(queries), self.table, rows, squares, self.error, k, undecided
            )
        for i in range(len(rows)) if self.sparse else ():
            ascending = np.sort(rows[i])  # so that local numbers break ties as the true ones do
            query, table = self._compact(queries[i], ascending)
            own = np.searchsorted(ascending, rows[i])[None, :]
            order(query, table, own, squares[i : i + 1], self.error, k, undecided[i : i + 1])
            rows[i] = ascending[own[0]]
        for i in np.flatnonzero(undecided).tolist():
            chosen, by_integers = rows[i].copy(), squares[i].copy()
            ranks = rank_by_integers(given[i], self.source, chosen)
            rows[i], squares[i] = chosen[ranks], by_integers[ranks]
        return squares[:, :k], rows[:, :k]

    def _one_by_one(self, given: Array, query: Array, bound: float, k: int) -> tuple[Any, Any]:
        """All rows within the bound on the k-th squared distance, from their differences."""
        if self.tree is not None:
            reach = max(math.sqrt(bound) * (1.0 + 1e-9), math.sqrt(_TREE_FLOOR))
            rows = np.array(self.tree.query_ball_point(query, reach), dtype=np.int64)
            squares = self._squares(query[None, :], rows[None, :])[0]
        else:
            rows, squares = self._within(query, bound)
        by_square = np.lexsort((rows, squares))
        first_squares, first_rows = self._ordered(
            given[None, :], query[None, :], rows[None, by_square], squares[None, by_square], k
        )
        return first_squares[0], first_rows[0]

    def _within(self, query: Array, bound: float) -> tuple[Indices, Array]:
        """Rows whose squared distance, from their differences, is at most ``bound``."""
        from .._jit.neighbours import within

        parts = []
        step = self.n if not self.sparse else max(1, (1 << 22) // max(1, self.p))
        for start in range(0, self.n, step):
            table = self.table if not self.sparse else _dense(self.table[start : start + step])
            found, near = np.empty(len(table), dtype=np.int64), np.empty(len(table))
            count = within(query, table, bound, found, near)
            parts.append((found[:count] + start, near[:count]))
        rows, squares = (np.concatenate(part) for part in zip(*parts))
        return rows, squares

    def _kept(self, values: Any) -> Any:
        """Which numbers survive the shift; those that become very small may lose bits."""
        if self.shift >= 0:
            return np.ones(values.shape, dtype=np.bool_)
        with np.errstate(under="ignore"):
            back = np.ldexp(np.ldexp(values.astype(np.float64), self.shift), -self.shift)
        return back == values

    def _shifted(self, values: Any) -> Any:
        """Times a power of two, in float64, where the table needs that."""
        if not self.shift:
            return values
        with np.errstate(over="ignore", under="ignore"):
            if sp.issparse(values):
                return values._with_data(np.ldexp(values.data.astype(np.float64), self.shift))
            return np.ldexp(np.asarray(values, dtype=np.float64), self.shift)


def _dense(block: Any) -> Array:
    """A block of rows as a float64 array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
