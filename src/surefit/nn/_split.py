"""Which rows a network is trained on and which are held out, and what earlier steps have seen.

A held-out row says something about new rows only if no step has used it, nor a copy of it. So copies, where
chance does not explain them (:func:`surefit.stats.find_repeats`), fall on one side of the split. The split
is a function of the data and the seed of the weights: who goes on with the same data (``warm_start``)
holds out the same rows, and whoever verifies a fit draws them again. Rows that a step has used leave a key
each, 64 bits of their inputs and of how many equal inputs stand before them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from torch import nn

from .._namespace import is_torch, to_numpy
from ..stats import Repeats, find_repeats
from ..stats._row_keys import row_keys
from .batches import mixed

__all__ = ["find_copies", "hold_out_rows", "input_keys", "weights_not_drawn"]

_GOLDEN = 0x9E3779B97F4A7C15
_SPLIT = 0x5911  # tells the seed of the split from that of the weights
Rows = NDArray[np.int64]


def find_copies(X: Any, y: Any) -> Repeats:
    """Which rows belong together because chance does not explain that they are equal."""
    return find_repeats(_table(X), np.asarray(to_numpy(y) if is_torch(y) else y))


def hold_out_rows(share: float, copies: Repeats, strata: Any, seed: int) -> tuple[Rows, Rows]:
    """The rows of the steps, and those held out.

    Parameters
    ----------
    share : float
        Of the rows to hold out; with copies, the first groups in a random order that reach it.
    copies : Repeats
    strata : array, optional
        Labels whose shares both parts keep, where rows are not grouped.
    seed : int
    """
    seed = mixed(seed, _SPLIT) >> 32
    if copies.explained:
        rows, held = train_test_split(
            np.arange(copies.rows), random_state=seed, test_size=share, stratify=strata
        )
        return rows, held
    if copies.groups < 2:
        raise ValueError(
            f"validation_fraction={share:g} needs rows that differ, and all {copies.rows} are copies of one."
        )
    sizes = np.bincount(copies.labels)
    order = np.random.default_rng(seed).permutation(len(sizes))
    count = int(np.searchsorted(np.cumsum(sizes[order]), share * copies.rows)) + 1
    chosen = order[: min(count, len(sizes) - 1)]
    away = np.isin(copies.labels, chosen)
    return np.flatnonzero(~away), np.flatnonzero(away)


def input_keys(X: Any) -> NDArray[np.uint64]:
    """A key for each row: of its inputs, and of how many rows with equal inputs stand before it."""
    table = _table(X)
    keys = row_keys(table, [np.arange(table.shape[1])])[0]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    place = np.arange(len(keys)) - np.repeat(begins, np.diff(np.append(begins, len(keys))))
    found = np.empty_like(keys)
    found[order] = ordered + place.astype(np.uint64) * np.uint64(_GOLDEN)  # wraps round
    return found


def weights_not_drawn(make: Callable[[int], nn.Module], seed: int) -> list[str]:
    """The parameters that do not follow from the seed: nobody knows on which rows these were trained.

    A parameter of one value throughout (zeros, ones) has learnt nothing.
    """
    first, second = make(seed), make(seed + 1)
    other = dict(second.named_parameters())
    return [
        name
        for name, value in first.named_parameters()
        if name not in other or (_has_content(value) and torch.equal(value, other[name]))
    ]


def _has_content(value: torch.Tensor) -> bool:
    flat = value.detach().reshape(-1)
    return bool(flat.numel() and (flat != flat[0]).any())


def _table(X: Any) -> Any:
    """Rows as a matrix of float64 numbers, sparse ones as they are."""
    if sp.issparse(X):
        return sp.csr_array(X)
    array: Any = X.detach().cpu() if is_torch(X) else np.asarray(X)
    if is_torch(array):
        array = (array.float() if array.dtype == torch.bfloat16 else array).numpy()
    return array.reshape(len(array), -1)
