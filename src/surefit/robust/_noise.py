"""Random numbers that are a function of (seed, row, entry), on any device.

What a row draws does not depend on which other rows are attacked beside it, so that leaving out the rows that
have fallen changes nothing for the others.
"""

from __future__ import annotations

import math
from typing import Any

import torch

__all__ = ["integers", "normal", "uniform"]

_A, _B = (
    -0x40A7B892E31B1A47,
    -0x6B2FB644ECCEEE15,
)  # odd multipliers of SplitMix64, as signed numbers


def _mixed(k: Any) -> Any:
    """A finaliser of 64 bits: every bit of the result depends on every bit of k."""
    k = (k ^ ((k >> 30) & 0x3FFFFFFFF)) * _A
    k = (k ^ ((k >> 27) & 0x1FFFFFFFFF)) * _B
    return k ^ ((k >> 31) & 0x1FFFFFFFF)


def _bits(seed: int, rows: Any, shape: tuple[int, ...]) -> Any:
    """31 random bits for each entry of each row."""
    entries = torch.arange(math.prod(shape), device=rows.device, dtype=torch.int64)
    key = _mixed(rows.to(torch.int64) * 2654435761 + _signed(seed))
    bits = _mixed(key[:, None] + entries[None, :] * 0x1E3779B97F4A7C15)
    return ((bits >> 20) & 0x7FFFFFFF).reshape(-1, *shape)


def _signed(seed: int) -> int:
    seed = (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & (2**64 - 1)
    return seed - 2**64 if seed >= 2**63 else seed


def uniform(seed: int, rows: Any, shape: tuple[int, ...], like: Any) -> Any:
    """Numbers in (0, 1), shape (rows, *shape), in the precision of ``like``.

    Examples
    --------
    >>> import torch
    >>> rows = torch.arange(1000)
    >>> u = uniform(0, rows, (50,), torch.zeros(1))
    >>> bool((u[7] == uniform(0, rows[7:8], (50,), u)[0]).all()), abs(float(u.mean()) - 0.5) < 0.005
    (True, True)
    """
    return (((_bits(seed, rows, shape) >> 8) + 0.5) / 2**23).to(like.dtype)


def normal(seed: int, rows: Any, shape: tuple[int, ...], like: Any) -> Any:
    """Standard normal numbers, by the inverse of the distribution function."""
    u = uniform(seed, rows, shape, torch.empty(0, dtype=torch.float64))
    return (math.sqrt(2.0) * torch.erfinv(2.0 * u - 1.0)).to(like.dtype)


def integers(seed: int, rows: Any, shape: tuple[int, ...], most: int) -> Any:
    """Whole numbers from 0 to ``most`` - 1."""
    return _bits(seed, rows, shape) % most
