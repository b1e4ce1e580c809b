r"""Mini-batches whose order is a pure function of (seed, epoch, index).

The row at place ``i`` of an epoch is :func:`row_at` ``(seed, epoch, i, n)``: a keyed permutation of
``0, ..., n - 1`` by a Feistel network, the construction of block ciphers. The place is written with
:math:`2h` bits, :math:`4^h \ge n`, as a left and a right half, and six rounds do

.. math:: (L, R) \leftarrow (R,\; L \oplus f_k(R)),

each of which can be undone, whatever :math:`f_k`: the result is a permutation of :math:`0, \dots, 4^h - 1`.
A value that lands at n or above is sent through again until it is below (cycle walking), which leaves a
permutation of the rows. :math:`f_k` is the mixing function of SplitMix64 on the half, the seed, the epoch and
the round. Nothing is stored: a run resumes from an integer, any rank finds its share of any batch by itself,
and no version of a library can change the order.

References
----------
J. Black, P. Rogaway. Ciphers with arbitrary finite domains. CT-RSA 2002.
G. Steele, D. Lea, C. Flood. Fast splittable pseudorandom number generators. OOPSLA 2014.

Examples
--------
>>> row_at(seed=0, epoch=1, index=[0, 1, 2, 3, 4], n=5)
array([3, 0, 1, 4, 2])
>>> sorted(row_at(0, 2, range(1000), 1000)) == list(range(1000))
True
"""

from __future__ import annotations

import hashlib
import tempfile
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray

from ..design import RowBlocks
from .sparse_rows import SparseRows

__all__ = ["Batches", "mixed", "row_at"]

_ROUNDS = 6
_CHUNK = 1 << 16  # places whose rows are found at once
_WORD = (1 << 64) - 1
_MARKED, _NUMBERS = 256, 1 << 20  # rows of a fingerprint at most, and their numbers


def row_at(seed: int, epoch: int, index: ArrayLike, n: int) -> NDArray[np.int64]:
    """The rows at these places of an epoch: a permutation of ``0, ..., n - 1``.

    Parameters
    ----------
    seed, epoch : int
    index : array-like of int
        Places, from 0 to n - 1.
    n : int
        Number of rows.
    """
    places = np.asarray(index, dtype=np.int64)
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < n:
        raise ValueError(f"index must be from 0 to n - 1 = {n - 1}, got {index!r}.")
    half = np.uint64(max(1, (max(n - 1, 1).bit_length() + 1) // 2))
    keys = [np.uint64(mixed(seed, epoch, round_)) for round_ in range(_ROUNDS)]
    value = places.reshape(-1).astype(np.uint64)
    above = np.arange(value.size)
    while above.size:
        value[above] = _feistel(value[above], half, keys)
        above = above[value[above] >= n]
    return value.astype(np.int64).reshape(places.shape)


def mixed(*numbers: int) -> int:
    """A 64-bit number that depends on all of these, for seeding.

    Examples
    --------
    >>> mixed(1, 2) != mixed(2, 1), 0 <= mixed(0) < 2**64
    (True, True)
    """
    state = 0
    for number in numbers:
        state = (state + int(number) + 0x9E3779B97F4A7C15) & _WORD
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _WORD
        state ^= state >> 31
    return state


def _feistel(
    value: NDArray[np.uint64], half: np.uint64, keys: list[np.uint64]
) -> NDArray[np.uint64]:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = value >> half, value & mask
    for key in keys:
        z = right + key  # wraps round, as it should
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        left, right = right, left ^ ((z ^ (z >> np.uint64(31))) & mask)
    return (left << half) | right


class Batches:
    """Rows by number, as tensors on a device.

    Parameters
    ----------
    data : (X, y), X, RowBlocks or a map-style dataset
        Arrays, tensors and memory maps are indexed; without y the target is the input itself. A batch of a
        scipy sparse matrix is :class:`~surefit.nn.sparse_rows.SparseRows`, which ``MLP`` takes. RowBlocks are
        written once to a temporary file, for rows can be drawn from there at random; their targets and
        weights are the named ones. A dataset has ``__len__`` and ``__getitem__``, which gives (x, y).
    batch_size : int
        Rows of one step of the optimiser.
    seed, shuffle
        Of the order; without shuffling it is that of the data.
    sample_weight : array-like of shape (n,), optional
    device, dtype
        Where tensors go, and what floating numbers become; whole numbers of y become int64.

    Examples
    --------
    >>> import numpy as np
    >>> batches = Batches((np.eye(5), np.arange(5)), batch_size=2, shuffle=False)
    >>> batches.steps, batches.rows(epoch=0, step=2), batches.fetch([4])[1]
    (3, array([4]), tensor([4]))
    """

    def __init__(
        self,
        data: Any,
        *,
        batch_size: int = 128,
        seed: int = 0,
        shuffle: bool = True,
        sample_weight: Any = None,
        device: Any = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size!r}.")
        self.batch_size, self.seed, self.shuffle = int(batch_size), int(seed), shuffle
        self.device, self.dtype = torch.device(device), dtype
        self._dataset: Any = None
        self._X, self._y, sample_weight = self._sources(data, sample_weight)
        self.n = len(self._X if self._dataset is None else self._dataset)
        if self.n == 0:
            raise ValueError("data has no rows: there is nothing to train on.")
        if self._y is not None and len(self._y) != self.n:
            raise ValueError(
                f"X has {self.n} rows and y has {len(self._y)}: they must be equally long."
            )
        self.weight = _weights(sample_weight, self.n)
        self.steps = -(-self.n // self.batch_size)  # of an epoch
        self._known: tuple[tuple[int, int], NDArray[np.int64]] | None = None

    def rows(self, epoch: int, step: int) -> NDArray[np.int64]:
        """The numbers of the rows of one step of an epoch."""
        first, last = step * self.batch_size, min((step + 1) * self.batch_size, self.n)
        if not self.shuffle:
            return np.arange(first, last)
        size = max(1, _CHUNK // self.batch_size) * self.batch_size  # whole batches
        chunk = first // size
        if self._known is None or self._known[0] != (epoch, chunk):
            places = np.arange(chunk * size, min((chunk + 1) * size, self.n))
            self._known = ((epoch, chunk), row_at(self.seed, epoch, places, self.n))
        return self._known[1][first - chunk * size : last - chunk * size]

    def total(self, rows: NDArray[np.int64]) -> float:
        """The sum of the weights of these rows."""
        return float(len(rows) if self.weight is None else self.weight[rows].sum())

    def fetch(self, rows: Any) -> tuple[Any, Any, Any]:
        """(input, target, weights or None) of these rows, on the device."""
        rows = np.asarray(rows, dtype=np.int64)
        weight = None
        if self.weight is not None:
            weight = torch.from_numpy(self.weight[rows]).to(self.device, self.dtype)
        if self._dataset is not None:
            x, y = _collated(self._dataset, rows)
            return self._placed(x, False), self._placed(y, True), weight
        x = self._placed(_taken(self._X, rows), False)
        y = x if self._y is None else self._placed(_taken(self._y, rows), True)
        return x, y, weight

    def mark(self) -> str | None:
        """A fingerprint of some rows; None of a dataset, which may draw what it gives."""
        if self._dataset is not None:
            return None
        count = min(self.n, _MARKED, max(1, _NUMBERS // max(1, self.fetch([0])[0].numel())))
        digest = hashlib.blake2b(digest_size=8)
        for part in self.fetch(np.linspace(0, self.n - 1, count)):
            if isinstance(part, SparseRows):
                digest.update(b"".join(array.tobytes() for array in part.copied()))
            elif part is not None:
                digest.update(part.contiguous().reshape(-1).view(torch.uint8).cpu().numpy())
        return digest.hexdigest()

    # ------------------------------------------------------------------ sources

    def _sources(self, data: Any, weight: Any) -> tuple[Any, Any, Any]:
        if isinstance(data, RowBlocks):
            y = data.target
            named = data.weight if weight is None and data._weight_name is not None else weight
            return _spooled(data), self._source(y, True), named
        if isinstance(data, (tuple, list)):
            if len(data) != 2:
                raise ValueError(f"data must be a pair (X, y), got {len(data)} things.")
            X, y = data
            if isinstance(X, RowBlocks):
                X = _spooled(X)
            return self._source(X, False), None if y is None else self._source(y, True), weight
        if isinstance(data, (np.ndarray, torch.Tensor)) or hasattr(data, "__array__"):  # or a table
            return self._source(data, False), None, weight
        if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
            self._dataset = data
            return None, None, weight
        raise TypeError(
            f"data must be (X, y), RowBlocks, or a dataset with __len__ and __getitem__, got {data!r}."
        )

    def _source(self, array: Any, target: bool) -> Any:
        """The array as something that can be indexed by rows: on the device where it is in memory."""
        if isinstance(array, torch.Tensor):
            return self._kept(array.detach(), target)
        if isinstance(array, SparseRows) or sp.issparse(array):
            rows = array if isinstance(array, SparseRows) else SparseRows.of(array)
            return rows.to("cpu", self.dtype)
        array = np.asanyarray(array)
        if array.dtype.kind not in "biuf":
            name = "y" if target else "X"
            raise TypeError(f"{name} holds {array.dtype}, not numbers: encode it first.")
        if isinstance(array, np.memmap):
            return array  # stays on disk
        array = _native(array)
        whole = (
            array if array.flags.writeable and all(s >= 0 for s in array.strides) else array.copy()
        )
        return self._kept(torch.from_numpy(np.ascontiguousarray(whole)), target)

    def _kept(self, tensor: torch.Tensor, target: bool) -> torch.Tensor:
        """On the device, unless that would take more than half of a GPU's free memory."""
        if self.device.type == "cuda" and tensor.device.type == "cpu":
            free, _ = torch.cuda.mem_get_info(self.device)
            if 2 * tensor.numel() * max(tensor.element_size(), 4) > free:
                return tensor
        return self._placed(tensor, target)

    def _placed(self, value: Any, target: bool) -> Any:
        if isinstance(value, dict):
            return {key: self._placed(item, target) for key, item in value.items()}
        if isinstance(value, (tuple, list)):
            return tuple(self._placed(item, target) for item in value)
        if value.is_floating_point():
            return value.to(self.device, self.dtype, non_blocking=True)
        if target and not value.is_complex():
            return value.to(self.device, torch.int64, non_blocking=True)
        return value.to(self.device, non_blocking=True)


def _taken(source: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(source, SparseRows):
        return source.take(rows)
    if isinstance(source, torch.Tensor):
        # three times as fast as source[rows] for rows of pictures
        return source.index_select(0, torch.from_numpy(rows).to(source.device, non_blocking=True))
    return torch.from_numpy(_native(np.asarray(source[rows])))  # a copy, read from disk


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers of a type and an order of bytes that torch has."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float64 if array.dtype.itemsize > 8 else np.float32)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _collated(dataset: Any, rows: NDArray[np.int64]) -> tuple[Any, Any]:
    from torch.utils.data import default_collate

    wanted = [int(row) for row in rows]
    items = (
        dataset.__getitems__(wanted)
        if hasattr(dataset, "__getitems__")
        else [dataset[row] for row in wanted]
    )
    if not isinstance(items[0], (tuple, list)) or len(items[0]) != 2:
        several = f" of {len(items[0])}" if isinstance(items[0], (tuple, list)) else ""
        raise TypeError(
            f"an item of the dataset must be a pair (x, y), got {type(items[0]).__name__}{several}."
        )
    x, y = default_collate(items)
    return x, y


def _spooled(blocks: RowBlocks) -> NDArray[Any]:
    """The rows of blocks in one temporary file, of which no name remains."""
    with tempfile.TemporaryFile() as file:
        rows = np.memmap(file, dtype=blocks.dtype, mode="w+", shape=blocks.shape)
        for place, block in blocks.blocks():
            rows[place] = block
        return rows


def _weights(weight: Any, n: int) -> NDArray[np.float64] | None:
    if weight is None:
        return None
    found = np.asarray(
        weight.detach().cpu() if isinstance(weight, torch.Tensor) else weight, dtype=np.float64
    )
    if found.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {found.shape}.")
    if not (np.isfinite(found).all() and (found >= 0).all() and found.sum() > 0):
        raise ValueError(
            "sample_weight must be finite, not negative, and not all zero: "
            f"its smallest is {found.min()}, its largest {found.max()}."
        )
    return found
