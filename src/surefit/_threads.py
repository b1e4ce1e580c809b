"""Stretches of rows side by side: numpy and the kernels release the interpreter lock while they work.

A matrix library splits each product over its own threads, which pays for large products only; blocks of rows
that fit into a cache are small. So the rows are split instead, and each stretch is worked on with one thread
of the matrix library. How many stretches: as many as that library was allowed threads, so that limits set by
threadpoolctl or the usual environment variables hold here too. Fits that already run side by side do not
split again.

A formula on vectors over samples makes a temporary vector for each of its operations; :func:`by_rows` and
:func:`sum_rows` evaluate it a few thousand rows at a time, so that these stay in the cache.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np

from ._namespace import is_torch
from ._ranks import RankVector

__all__ = ["by_rows", "max_rows", "one_thread", "over_rows", "rows_only", "sum_rows"]

T = TypeVar("T")
_CHUNK = 1 << 15  # numbers of a vector that are worked on at a time: 64 KiB
_LONG = 1 << 13  # rows from which splitting them pays


@functools.cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@functools.cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """Threads that wait for work."""
    return ThreadPoolExecutor(count, thread_name_prefix="surefit")


class _Limit:
    """One thread for the matrix library, while the first to ask for it needs that.

    Fits may run side by side. Only who set the limit takes it back, at its end: a limit that one thread sets
    and another takes back can stay for good. Whoever comes in between finds it set.
    """

    def __init__(self) -> None:
        self._limit: Any = None
        self._given = 1
        self.forget()

    def forget(self) -> None:
        """Nobody holds it."""
        self._lock, self._mine = threading.Lock(), threading.local()

    def __enter__(self) -> None:
        holds: list[bool] = self._mine.__dict__.setdefault("holds", [])
        holds.append(self._lock.acquire(blocking=False))
        if holds[-1]:
            self._given = self._count()
            self._limit = _blas().limit(limits=1)

    def __exit__(self, *_: object) -> None:
        if self._mine.holds.pop():
            self._limit.restore_original_limits()
            self._lock.release()

    @property
    def allowed(self) -> int:
        """How many threads the library was given, by whoever set that up."""
        return self._given if self._lock.locked() else self._count()

    @staticmethod
    def _count() -> int:
        return int(min((library["num_threads"] for library in _blas().info()), default=1))


one_thread = _Limit()
_turn = threading.Lock()


def _after_fork() -> None:
    """A forked process has none of the threads, and nobody in it will give back a lock."""
    global _turn
    _helpers.cache_clear()
    one_thread.forget()
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def rows_only(X: Any) -> AbstractContextManager[None]:
    """While a long array is worked on, its rows are split, and the matrix library has one thread.

    Its threads, once used, wait for more work at full speed, in the way of those that work on the rows, and
    the products that are not split over rows are too small to be worth that.
    """
    long = isinstance(X, np.ndarray) and X.shape[0] >= max(_LONG, 20 * X.shape[1])
    return one_thread if long else nullcontext()


def over_rows(n: int, work: Callable[[int, int], T], least: int = 4096) -> list[T]:
    """``[work(first, last), ...]`` for consecutive stretches of ``least`` rows or more."""
    if n < 2 * least:
        return [work(0, n)]
    count = max(1, min(one_thread.allowed, n // least))
    if count == 1 or not _turn.acquire(blocking=False):
        return [work(0, n)]
    try:
        ends = [n * k // count for k in range(count + 1)]
        with one_thread:
            others = _helpers(count - 1).map(work, ends[1:-1], ends[2:])
            try:
                mine = work(0, ends[1])
            finally:
                rest = list(others)  # nobody works on once this call is left
            return [mine, *rest]
    finally:
        _turn.release()


def by_rows(formula: Callable[..., Any], *vectors: Any) -> Any:
    """``formula(*vectors)`` for a formula that gives one number, or one row, for each sample."""
    first = vectors[0]
    if isinstance(first, RankVector):
        return first.like(by_rows(formula, *(v.here for v in vectors)))
    n, size = len(first), _chunk(first)
    if is_torch(first) or n <= size:
        return formula(*vectors)
    start = formula(*(v[:size] for v in vectors))
    out = np.empty((n, *start.shape[1:]), dtype=start.dtype)
    out[:size] = start

    def fill(begin: int, end: int) -> None:
        for k in range(begin + size, end + size, size):
            rows = slice(k, min(k + size, end + size))
            out[rows] = formula(*(v[rows] for v in vectors))

    over_rows(n - size, fill, least=4 * size)
    return out


def sum_rows(formula: Callable[..., Any], *vectors: Any) -> Any:
    """``formula(*vectors)`` for a formula that sums over the samples: a number or an array."""
    if isinstance(first := vectors[0], RankVector):
        return first.spread.group.sum(sum_rows(formula, *(v.here for v in vectors)))
    found = _pieces(formula, vectors)
    return found[0] if len(found) == 1 else np.sum(found, axis=0)


def max_rows(formula: Callable[..., float], *vectors: Any) -> float:
    """The same for a formula that gives the largest of something over the samples."""
    if isinstance(first := vectors[0], RankVector):
        return float(first.spread.group.max(max_rows(formula, *(v.here for v in vectors))))
    return max(_pieces(formula, vectors))


def _pieces(formula: Callable[..., T], vectors: tuple[Any, ...]) -> list[T]:
    first = vectors[0]
    n, size = len(first), _chunk(first)
    if is_torch(first) or n <= size:
        return [formula(*vectors)]

    def part(begin: int, end: int) -> list[T]:
        ends = range(begin, end, size)
        return [formula(*(v[k : min(k + size, end)] for v in vectors)) for k in ends]

    return [piece for pieces in over_rows(n, part, least=4 * size) for piece in pieces]


def _chunk(vector: Any) -> int:
    return max(1, _CHUNK // max(1, math.prod(vector.shape[1:])))
