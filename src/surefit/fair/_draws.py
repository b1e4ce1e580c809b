"""Random numbers that belong to rows: the same row, the same number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["row_uniforms"]

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_uniforms(X: Any, seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, a function of its values and the seed (splitmix64 over the columns).

    >>> row_uniforms([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]], 0).round(3).tolist()
    [0.493, 0.568, 0.493]
    """
    values = np.asarray(X, dtype=np.float64) + 0.0  # -0.0 is 0.0
    state = np.full(len(values), seed, dtype=np.uint64)
    for column in values.T:
        state = _mixed(state + _GOLDEN ^ np.ascontiguousarray(column).view(np.uint64))
    return (_mixed(state + _GOLDEN) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
