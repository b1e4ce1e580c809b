"""Kernels that release the interpreter lock, run on stretches of rows side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba

__all__ = ["over_rows"]

T = TypeVar("T")


def over_rows(n: int, work: Callable[[int, int], T], least: int = 4096) -> list[T]:
    """``work(first, last)`` on as many stretches of rows as there are threads (NUMBA_NUM_THREADS)."""
    count = max(1, min(numba.get_num_threads(), n // least))
    ends = [n * k // count for k in range(count + 1)]
    if count == 1:
        return [work(0, n)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))
