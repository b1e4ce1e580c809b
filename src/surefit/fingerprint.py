"""A fast fingerprint of a data set, independent of how the data are stored.

The same rows give the same identifier whether they come as float32 or float64, C or Fortran order,
dense or sparse, in one block or in many. Each row is hashed by two multilinear functions over the
integers modulo 2^64,

    u_i = sum_j bits(x_ij) * c_j,      v_i = sum_j swap(bits(x_ij)) * d_j,

with odd pseudo-random keys c, d and the IEEE bits of the float64 value (``swap`` reverses the bytes, so
that a change in any bit reaches the significant end of one of the two sums); then rows are mixed with
their index by a bijection of the 64-bit words and summed. A zero entry contributes nothing, so a sparse
matrix is hashed through its non-zeros. The cost is one pass over the data.

This detects accidents (another table, a changed cell, reordered rows); it is not meant to withstand
someone who constructs a collision on purpose.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._csr import distinct_entries
from ._namespace import is_torch, to_numpy
from ._ranks import RankVector

__all__ = ["fingerprint"]

_BLOCK = 1 << 17  # entries of a block: a megabyte, which stays in the cache
_DEVICE_BLOCK = 1 << 24  # the same on a GPU
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Words = NDArray[np.uint64]


def fingerprint(*arrays: Any) -> str:
    """Identifier of a sequence of arrays (``X, y, sample_weight``); ``None`` is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> fingerprint(X) == fingerprint(np.asfortranarray(X.astype(np.float32)))
    True
    >>> fingerprint(X) == fingerprint(X[::-1])
    False
    """
    digest = hashlib.blake2b(digest_size=12, person=b"surefit-data")
    for array in arrays:
        if array is None:
            digest.update(b"none;")
            continue
        shape = tuple(int(size) for size in array.shape)
        if isinstance(array, RankVector):
            shape = (array.spread.total, *shape[1:])
        digest.update(f"{shape};".encode())
        for word in _hash_array(array):
            digest.update(int(word).to_bytes(8, "little"))
    return digest.hexdigest()


def _hash_array(array: Any, start: int = 0) -> tuple[int, int]:
    """The two sums over the rows, the first of which has the number ``start``."""
    if isinstance(array, RankVector):
        table = array.here
        if table.dtype.kind not in "fiub":  # the codes are those of the labels of all ranks
            return _hash_array(array.everywhere())
        return _total(array.spread.group.gather(_hash_array(table, array.spread.first)))
    if hasattr(array, "rows_by_rank"):
        return _total(array.group.gather(_hash_array(array.rows, array.first_row)))
    if sp.issparse(array):
        return _hash_csr(array, start)
    if hasattr(array, "blocks"):  # rows on disk
        return _total(_hash_dense(block, start + rows.start) for rows, block in array.blocks())
    if is_torch(array) and array.device.type != "cpu":
        return _total(
            _hash_on_device(block, start + row)
            for block, row in _parts(array, 0, len(array), _DEVICE_BLOCK)
        )
    table = to_numpy(array)
    if table.dtype.kind not in "fiub":
        return _hash_labels(table)
    from ._threads import over_rows

    ready = (
        table.dtype == np.float64 and table.flags.c_contiguous
    )  # nothing to convert block by block
    entries = table.size if ready else _BLOCK

    def part(first: int, last: int) -> tuple[int, int]:
        found = _parts(table, first, last, entries)
        return _total(_hash_dense(block, start + row) for block, row in found)

    return _total(over_rows(len(table), part))


def _parts(table: Any, first: int, last: int, entries: int) -> Iterator[tuple[Any, int]]:
    """(block, its first row) for rows first..last, about ``entries`` numbers at a time."""
    width = math.prod(table.shape[1:])
    rows = max(1, entries // max(1, width))
    for start in range(first, last, rows):
        stop = min(start + rows, last)
        yield table[start:stop].reshape(stop - start, width), start


def _total(hashes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    first, second = 0, 0
    for one, two in hashes:
        first, second = (first + int(one)) % (1 << 64), (second + int(two)) % (1 << 64)
    return first, second


def _hash_labels(labels: NDArray[Any]) -> tuple[int, int]:
    """Strings and other objects: the sorted distinct values as text, then the codes as numbers."""
    classes, codes = np.unique(labels.astype(str), return_inverse=True)
    names = [name.replace("\\", "\\\\").replace("\x1f", "\\s") for name in classes.tolist()]
    text = hashlib.blake2b("\x1f".join(names).encode(), digest_size=8).digest()
    first, second = _hash_array(codes.reshape(-1, 1).astype(np.float64) + 1.0)
    return first ^ int.from_bytes(text, "little"), second


@functools.lru_cache(maxsize=4)
def _keys(count: int, lane: int) -> Words:
    index = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(lane << 40)
    return _mix(index * _GOLDEN) | np.uint64(1)


def _hash_dense(block: NDArray[Any], start: int) -> tuple[int, int]:
    from ._jit.fingerprint import hash_rows

    bits = np.ascontiguousarray(block, dtype=np.float64).view(np.uint64)
    one, two = hash_rows(bits, _keys(bits.shape[1], 0), _keys(bits.shape[1], 1), start)
    return one, two


def _hash_on_device(block: Any, start: int) -> tuple[int, int]:
    """The same on the device of a tensor: its signed integers wrap around as the unsigned ones do."""
    import torch

    def signed(words: Words) -> Any:
        return torch.as_tensor(words.view(np.int64), device=block.device)

    def mix(words: Any) -> Any:
        for shift, factor in ((30, _FIRST), (27, _SECOND), (31, None)):
            words = words ^ ((words >> shift) & ((1 << (64 - shift)) - 1))
            words = words if factor is None else words * signed(np.array(factor))
        return words

    bits = (block.double() + 0.0).contiguous().view(torch.int64)
    bytes_ = bits.view(torch.uint8).reshape(*bits.shape, 8)
    swapped = bytes_.flip(-1).contiguous().view(torch.int64)[..., 0]
    plain = (bits * signed(_keys(bits.shape[1], 0))).sum(dim=1)
    turned = (swapped * signed(_keys(bits.shape[1], 1))).sum(dim=1)
    index = torch.arange(start, start + len(bits), device=block.device) * signed(np.array(_GOLDEN))
    mixed = mix(plain ^ mix(turned + index))
    one, two = int(mixed.sum()), int(mix(mixed ^ index).sum())
    return one % (1 << 64), two % (1 << 64)


def _hash_csr(matrix: Any, start: int) -> tuple[int, int]:
    from ._jit.fingerprint import hash_csr_rows
    from ._threads import over_rows

    csr = distinct_entries(matrix)
    bits = np.ascontiguousarray(csr.data, dtype=np.float64).view(np.uint64)
    indices = np.ascontiguousarray(csr.indices)
    indptr = np.ascontiguousarray(csr.indptr, dtype=np.int64)
    keys = np.stack([_keys(csr.shape[1], lane) for lane in (0, 1)], axis=1)

    def part(first: int, last: int) -> tuple[int, int]:
        one, two = hash_csr_rows(bits, indices, indptr, keys, first, last, start)
        return int(one), int(two)

    return _total(over_rows(csr.shape[0], part))


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64: a bijection in which each input bit flips half the output bits."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed
