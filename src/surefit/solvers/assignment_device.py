r"""Rows of a tensor on a GPU to their nearest centres: the speed of the tensor cores, exact labels.

With a and b_j the row and the centre less a common point m, scaled and rounded to float16, a product of p
terms summed in float32 is wrong by at most

    E = |da| max_j |b_j| + |a| max_j |db_j| + p 2^-22 |a| max_j |b_j|,

da and db_j what the rounding took away (about 2^-12 of the lengths), so that a row whose second best score
|b_j|^2 / 2 - <a, b_j> is more than 2E above the best is settled. The others, a few in a hundred, are
multiplied again with three products of tf32 each (E is then about 2^-16 for 64 features), what that leaves
open in float64, and near-ties exactly; equals go to the lowest number.

*Bounds.* The scores also bound the distances to the nearest and to every other centre. When centres move, the
bounds move by as much, and a row that they settle is not looked at again (Hamerly). Since labels are exact,
this changes none of them.

*Sums.* The sums of the clusters are kept in whole numbers, (x - m) scaled to 62 bits less those of n: adding
is then exact, in whatever order the threads come, and only rows that changed their cluster need be moved
from one sum to the other. The rounding of an entry is 2^-38 of the largest for ten million rows, at random.

References
----------
Hamerly, "Making k-means even faster" (SDM 2010); Higham, Accuracy and Stability of Numerical Algorithms
(2002), chapter 3; Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ CS (2021).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Design
from .assignment import Centres, Frame, Tally
from .assignment_torch import TorchLabeller

__all__ = ["DeviceLabeller", "has_kernels"]

Array = NDArray[np.float64]
HALF_TILE = (128, 32, 4, 3)  # rows, centres, warps and stages of a tile in float16
EXACT_TILE = (128, 64, 8, 2)  # the same for three products of tf32
_ROWS = 1 << 20  # made ready at a time
_THREEFOLD = 2.0**-18  # of the product of the lengths: what three products of tf32 may cost
_REACH = 2.0**14  # of a centre, in units of the farthest row, up to which float16 is tried
_WIDE = 128  # most features for which a tile holds whole rows


def has_kernels(X: Any) -> bool:
    """Whether a tensor is on a GPU that Triton can compile for."""
    if X.device.type != "cuda":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


class _Table(NamedTuple):
    """Centres in the precision of a pass, padded to whole tiles, and the constants of its error bound."""

    centres: Any
    halves: Any
    shift: float
    slopes: tuple[float, float]
    floor: float
    bits: int


class DeviceLabeller(TorchLabeller):
    """The labels of the rows of a tensor on a GPU, kept with their bounds and the sums of the clusters.

    Attributes
    ----------
    labels : int32 tensor of shape (n,)
    looked_at : tuple of int
        In the last pass: rows that the bounds did not settle, of these those that float16 and tf32 products
        left open.
    """

    def __init__(self, design: Design, frame: Frame, weights: Any = None) -> None:
        import torch

        super().__init__(design, frame, weights)
        self.X, self.scale = self.X.contiguous(), float(frame.scale)
        n, p = self.X.shape
        self.padded = max(16, 1 << (p - 1).bit_length()) if p <= _WIDE else -(-p // 64) * 64
        self.half = self._empty(n, self.padded, kind=torch.float16).zero_()
        self.norms, self.rests = self._empty(n), self._empty(n)
        for start in range(0, n, _ROWS):
            rows = slice(start, min(start + _ROWS, n))
            moved = (self.X[rows].double() - self.mean) * self.scale
            self.half[rows, :p] = moved.half()
            self.norms[rows] = _lengths(moved)
            self.rests[rows] = _lengths(moved - self.half[rows, :p].double())
        self.longest = float(self.norms.max())
        self.weights = None if weights is None else weights.double().contiguous()
        heaviest = 1.0 if weights is None else max(1e-300, float(self.weights.max()))
        self.unit = 2.0 ** (61 - max(1, n).bit_length() - max(0, math.frexp(heaviest)[1]))
        self.upper, self.lower = self._empty(n), self._empty(n)
        self.looked_at = (0, 0, 0)
        self._last: Any = None
        self._sums: Any = None

    def _empty(self, *shape: int, kind: Any = None) -> Any:
        import torch

        return torch.empty(*shape, dtype=kind or torch.float32, device=self.X.device)

    def _counter(self) -> Any:
        import torch

        return torch.zeros(1, dtype=torch.int32, device=self.X.device)

    def step(self, centres: Array, *, collect: bool = True) -> Tally:
        import torch

        table = torch.as_tensor(centres, dtype=torch.float64, device=self.X.device)
        if self._last is None or len(self._last) != len(table):
            self._last = None
            self._sums = tuple(
                torch.zeros(shape, dtype=torch.int64, device=self.X.device)
                for shape in (table.shape, len(table))
            )
            self.labels.fill_(-1)
        old = self.labels.clone()
        self._settle(table, centres)
        self._last = table
        changed = self._exchange(old)
        sums, masses = (to_numpy(total) for total in self._sums)
        return Tally(sums / (self.unit * self.scale), masses / self.unit, changed)

    def _settle(self, table: Any, centres: Array) -> None:
        """Label the rows that the bounds leave open: in float16, then tf32, then float64.

        The host waits for the device only to learn how many rows are left.
        """
        import torch

        moved = (table - self.mean) * self.scale
        lengths = moved.square().sum(dim=1)
        rest = _lengths(moved - moved.half().double())
        rows, count = self._unsettled(table)
        numbers = torch.stack([lengths.max(), rest.max().double(), count[0].double()]).tolist()
        farthest, lost, left = math.sqrt(numbers[0]) * (1.0 + 1e-6), numbers[1], int(numbers[2])
        rows = None if rows is None else rows[:left]
        adding = 2.0 * self.X.shape[1] * 2.0**-23 * farthest
        slopes = ((lost + 1.01 * adding, farthest), (_THREEFOLD * farthest + adding, 0.0))
        counts = [len(self.X) if rows is None else left]
        if farthest > _REACH:  # float16 ends at 65504
            rows = torch.arange(len(self.X), device=self.X.device) if rows is None else rows
        elif counts[0]:
            ready = self._table(moved, lengths, farthest, slopes[0], exacter=False)
            found, total = self._pass(ready, rows, exacter=False)
        sharper = self._table(moved, lengths, farthest, slopes[1], exacter=True)
        if farthest <= _REACH and counts[0]:
            rows = found[: int(total)]
        counts.append(len(rows))
        if counts[1]:
            found, total = self._pass(sharper, rows, exacter=True)
            rows = found[: int(total)]
        counts.append(len(rows))
        if counts[2]:
            self._in_float64(rows, table, centres)
        self.looked_at = (counts[0], counts[1], counts[2])

    def _unsettled(self, table: Any) -> tuple[Any, Any]:
        """The rows that the bounds do not settle (None for all), and how many they are."""
        import torch

        from .._triton.lloyd import unsettled

        if self._last is None:
            return None, self._counter()
        drift = _lengths(self.scale * (table - self._last))
        top = torch.topk(torch.nn.functional.pad(drift, (0, 1)), 2)
        found, count = self._empty(len(self.X), kind=torch.int64), self._counter()
        unsettled[(-(-len(self.X) // 1024),)](
            self.labels, self.upper, self.lower, drift, top.values, top.indices, len(self.X), found,
            count, BR=1024,
        )  # fmt: skip
        return found, count

    def _table(
        self,
        moved: Any,
        lengths: Any,
        farthest: float,
        slopes: tuple[float, float],
        *,
        exacter: bool,
    ) -> _Table:
        import torch

        tile = (EXACT_TILE if exacter else HALF_TILE)[1]
        size = -(-len(moved) // tile) * tile
        bits = (size // tile).bit_length()
        shift = (0.5 * self.longest**2 + farthest * self.longest * 2.0**-8 + 2.0**-20) * 1.001
        largest = shift + 0.5 * farthest**2 + farthest * self.longest
        floor = largest * (
            2.0 ** (bits - 23) + 2.0**-22
        )  # bits that are lost, and |c|^2 in float32
        ready = self._empty(size, self.padded, kind=torch.float32 if exacter else torch.float16)
        ready.zero_()[: len(moved), : moved.shape[1]] = moved.to(ready.dtype)
        halves = self._empty(size).fill_(3e38)
        halves[: len(moved)] = 0.5 * lengths + shift
        return _Table(ready, halves, shift, slopes, floor, bits)

    def _pass(self, table: _Table, rows: Any, *, exacter: bool) -> tuple[Any, Any]:
        """Label these rows (None: all); returns those left open, and their number, on the device."""
        import torch

        from .._triton.lloyd import nearest

        listed = rows is not None
        count = len(rows) if listed else len(self.X)
        tile_rows, tile, warps, stages = EXACT_TILE if exacter else HALF_TILE
        found, total = self._empty(count, kind=torch.int64), self._counter()
        nearest[(-(-count // tile_rows),)](
            self.X if exacter else self.half, table.centres, table.halves, self.norms, self.rests,
            self.mean, self.scale, rows if listed else found, count, len(table.centres),
            self.X.shape[1], table.shift, *table.slopes, table.floor, self.labels, self.upper,
            self.lower, found, total, KEPT=-(1 << table.bits), LISTED=listed, BM=tile_rows, BN=tile,
            P=self.padded, BK=64, WHOLE=self.padded <= _WIDE, EXACTER=exacter, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
        return found, total

    def _in_float64(self, rows: Any, table: Any, centres: Array) -> None:
        """Label these rows by products in float64, and exactly where these are too close."""
        import torch

        p = self.X.shape[1]
        moved = table - self.mean
        squares = moved.square().sum(dim=1)
        reach = squares.max().sqrt()
        for start in range(0, len(rows), _ROWS // 16):
            some = rows[start : start + _ROWS // 16]
            x = self.X[some].double() - self.mean
            scores = 0.5 * squares - x @ moved.T
            best, at = scores.min(dim=1)
            error = (p + 8) * 2.0**-52 * reach * (x.square().sum(dim=1).sqrt() + reach)
            close = (scores <= (best + 2.0 * error)[:, None]).sum(dim=1) > 1
            labels = at.int()
            if len(tied := torch.nonzero(close)[:, 0]):  # rare: rows that lie halfway
                now = Centres(centres, self.frame)
                labels[tied] = self._differences(self.X[some[tied]].double(), table, now)
            self.labels[some] = labels
            self.upper[some], self.lower[some] = math.inf, 0.0  # looked at again in the next pass

    def _exchange(self, old: Any) -> int:
        """Move the rows whose label is not the old one from sum to sum, and count them."""
        from .._triton.lloyd import exchange

        n, p = self.X.shape
        width = 1 << (p - 1).bit_length()
        rows = max(1, min(64, 8192 // width))
        weights, moved = self.X if self.weights is None else self.weights, self._counter()
        exchange[(-(-n // (16 * rows)),)](
            self.X, self.mean, self.scale, weights, old, self.labels, *self._sums, moved, n, p, self.unit,
            BR=rows, PARTS=16, P=width, WEIGHTED=self.weights is not None, num_warps=4,
        )  # fmt: skip
        return int(moved)


def _lengths(table: Any) -> Any:
    """The lengths of the rows of a float64 tensor, in float32, rounded up."""
    return (table.square().sum(dim=1).sqrt() * (1.0 + 1e-6)).float()
