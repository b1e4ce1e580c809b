"""Stretches of rows side by side: numpy and the kernels release the interpreter lock while they work.

A matrix library splits each product over its own threads, which pays for large products only; blocks of rows
that fit into a cache are small. So the rows are split instead, and each stretch is worked on with one thread
of the matrix library. How many stretches: as many as that library was allowed threads, so that limits set by
threadpoolctl or the usual environment variables hold here too. Fits that already run side by side do not
split again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["one_thread", "over_rows"]

T = TypeVar("T")
_turn = threading.Lock()


@functools.cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def over_rows(n: int, work: Callable[[int, int], T], least: int = 4096) -> list[T]:
    """``[work(first, last), ...]`` for consecutive stretches of ``least`` rows or more."""
    if n < 2 * least:
        return [work(0, n)]
    blas = _blas()
    threads = min((library["num_threads"] for library in blas.info()), default=1)
    count = max(1, min(threads, n // least))
    if count == 1:
        return [work(0, n)]
    if not _turn.acquire(blocking=False):
        return [work(0, n)]
    try:
        ends = [n * k // count for k in range(count + 1)]
        with blas.limit(limits=1), ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, ends[:-1], ends[1:]))
    finally:
        _turn.release()


@contextmanager
def one_thread() -> Iterator[None]:
    """Small factorisations in here are not split: handing pieces to other threads costs more than they do."""
    if not _turn.acquire(blocking=False):  # somebody has set the limit already, or splits rows
        yield
        return
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _turn.release()
