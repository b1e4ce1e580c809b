"""A group of one process, which knows nothing of torch; :mod:`surefit.distributed` has those of several."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALONE", "Alone", "as_array", "is_torch", "one_or_all", "pack_signs", "unpack_signs"]

T = TypeVar("T")


class Alone:
    """A group of one process: its sums are its own."""

    rank, size = 0, 1

    def sum(self, *arrays: Any) -> Any:
        """The arrays, each summed over the ranks; one array, or a tuple of several."""
        return one_or_all([as_array(array) for array in arrays])

    def max(self, *arrays: Any) -> Any:
        """The arrays, each the largest over the ranks, entry by entry."""
        return self.sum(*arrays)

    def gather(self, thing: T) -> list[T]:
        """What each rank gave, in the order of the ranks."""
        return [thing]

    def share(self, thing: T) -> T:
        """What the first rank gave."""
        return thing

    def agree(self, work: Callable[[], T]) -> T:
        """``work()``; what it raises on one rank is raised on all."""
        return work()

    def majority(self, values: Any) -> NDArray[np.int8]:
        """The sign that most ranks gave each entry: 1, -1, or 0 where they are even; a 0 votes for 1.

        A rank sends one bit an entry, 1/32 of a float32. This is the sign of the sum of the signs, and not
        always that of the sum: it is the latter where all ranks have the same sign.
        """
        return unpack_signs(pack_signs(values), np.size(values)).reshape(np.shape(values))

    def share_of(self, count: int) -> slice:
        """The rows of this rank when ``count`` are spread evenly, in order."""
        first, last = (count * k // self.size for k in (self.rank, self.rank + 1))
        return slice(first, last)


ALONE = Alone()


def pack_signs(values: Any) -> NDArray[np.uint8]:
    """The signs of the entries, eight to a byte; 0 counts as positive.

    Examples
    --------
    >>> import numpy as np
    >>> gradient = np.linspace(-1.0, 2.0, 6400, dtype=np.float32)
    >>> signs = pack_signs(gradient)
    >>> gradient.nbytes / signs.nbytes
    32.0
    >>> bool((unpack_signs(signs, 6400) == np.where(gradient < 0, -1, 1)).all())
    True
    """
    entries = np.asarray(values)
    if np.isnan(entries).any():
        raise ValueError("a value is NaN, which has no sign: check the gradient.")
    return np.packbits(entries.reshape(-1) >= 0)


def unpack_signs(packed: NDArray[np.uint8], count: int) -> NDArray[np.int8]:
    """The ``count`` signs, 1 or -1, that :func:`pack_signs` put into these bytes."""
    if len(packed) != -(-count // 8):
        raise ValueError(f"{count} signs take {-(-count // 8)} bytes, got {len(packed)}.")
    bits = np.unpackbits(packed, count=count)
    return np.where(bits == 1, 1, -1).astype(np.int8)


def is_torch(x: Any) -> bool:
    """Whether x is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def as_array(array: Any) -> Any:
    return array if is_torch(array) else np.asarray(array)


def one_or_all(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
