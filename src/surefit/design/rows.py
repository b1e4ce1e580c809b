"""Row blocks on disk: data larger than memory, read again at each pass.

A pass reads the rows in order, in blocks of a few tens of megabytes, the next one in a thread while the
current one is used. What stays in memory is two blocks and the vectors over samples (8 bytes a row each).
Every block is checked as it is read: a file that vanished or was cut short, columns that differ and values
that are not finite end the fit with an error that says which block.

Examples
--------
>>> import numpy as np, tempfile, pathlib
>>> from surefit.design import RowBlocks
>>> from surefit.linear_model import Ridge
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> X = np.arange(12.0).reshape(6, 2) ** 1.5
>>> np.save(folder / "rows.npy", X)
>>> on_disk = Ridge().fit(RowBlocks(folder / "rows.npy"), X[:, 0])
>>> bool(np.allclose(on_disk.coef_, Ridge().fit(X, X[:, 0]).coef_))
True
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Design
from .parts import ArrayPart, BlockError, NpyPart, ParquetPart, Part

__all__ = ["BlockError", "RowBlocks"]

_CACHE_BYTES = 1 << 20  # of the block that is handed out: it stays in the cache while it is used


class RowBlocks(Design):
    """The rows of one or several files, or of an iterator, as one design.

    Parameters
    ----------
    source : path, array, sequence of these, or callable
        ``.npy`` and Parquet files, folders of them (in the order of their names), numpy memory maps; or a
        function without arguments that returns a new iterator over blocks, each an array of rows or a pair
        (rows, targets). The iterator must give the same rows each time.
    target : str, optional
        Column of a Parquet file to give as :attr:`target` instead of as a feature.
    weight : str, optional
        The same for :attr:`weight`.
    block_bytes : int, default=32 MiB
        How much to read at a time.
    progress : bool, default=False
        Show how far each pass has come.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
    feature_names : list of str or None
    """

    def __init__(
        self,
        source: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        block_bytes: int = 1 << 25,
        progress: bool = False,
    ) -> None:
        if block_bytes < 1:
            raise ValueError(f"block_bytes must be at least 1, got {block_bytes!r}.")
        self.block_bytes, self.progress, self.passes = int(block_bytes), progress, 0
        self._target_name, self._weight_name = target, weight
        self._labels: NDArray[Any] | None = None
        self._factory: Callable[[], Iterator[Any]] | None = source if callable(source) else None
        self._parts: list[Part] = []
        self.feature_names: list[str] | None = None
        if self._factory is not None:
            self._count_iterator()
            return
        apart = tuple(name for name in (target, weight) if name is not None)
        self._parts = [_part(item, apart) for item in _items(source)]
        first = self._parts[0]
        for part in self._parts[1:]:
            part.must_match(first)
        self.shape = (sum(part.rows for part in self._parts), first.columns)
        self.dtype = np.result_type(np.float32, *(part.dtype for part in self._parts))
        self.feature_names = first.names

    def __repr__(self) -> str:
        n, p = self.shape
        origin = "an iterator" if self._factory is not None else f"{len(self._parts)} part(s)"
        return f"RowBlocks({n} rows x {p} columns from {origin})"

    @property
    def target(self) -> NDArray[Any]:
        """The targets that came with the rows: the named column, or the second of each pair."""
        if self._factory is not None:
            if self._labels is None:
                raise ValueError(
                    "the iterator gave rows without targets: let it yield pairs (rows, targets)."
                )
            return self._labels
        return self._column(self._target_name, "target")

    @property
    def weight(self) -> NDArray[Any]:
        """The sample weights that came with the rows: the column named at the start."""
        return self._column(self._weight_name, "weight")

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        self.passes += 1
        start = 0
        with _Bar(self) as bar:
            for name, chunk in self._chunks():
                size = max(1, _CACHE_BYTES // (8 * max(1, self.shape[1])))
                for first in range(0, len(chunk), size):
                    block = np.asarray(chunk[first : first + size], dtype=np.float64)
                    _check_finite(block, name, start)
                    yield slice(start, start + len(block)), block
                    start += len(block)
                bar.advance(start)
        if start != self.shape[0]:
            raise BlockError(
                f"the iterator gave {start} rows in pass {self.passes} and {self.shape[0]} at first: "
                "it must give the same rows each time."
            )

    # ------------------------------------------------------------------ reading

    def _chunks(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """(name, rows) of what is read at a time, the next one ahead of its use."""
        if self._factory is not None:
            yield from self._from_iterator(self._factory)
            return
        jobs, largest = [], 0
        for part in self._parts:
            width = max(1, part.columns * part.dtype.itemsize)
            rows = max(1, self.block_bytes // width)
            largest = max(largest, min(rows, part.rows) * width)
            jobs += [(part, k, min(k + rows, part.rows)) for k in range(0, part.rows, rows)]
        scratch = np.empty((2, largest), dtype=np.uint8)  # one is read into, one is in use

        def read(i: int) -> NDArray[Any]:
            part, first, last = jobs[i]
            return part.read(first, last, scratch[i % 2])

        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(read, 0)
            for i, (part, *_) in enumerate(jobs):
                chunk = ahead.result()
                if i + 1 < len(jobs):
                    ahead = reader.submit(read, i + 1)
                yield part.name, chunk

    def _from_iterator(
        self, factory: Callable[[], Iterator[Any]]
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        items = iter(factory())
        for k in range(1 << 62):
            name = f"block {k} of the iterator"
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                raise BlockError(f"{name} could not be read: {error}") from error
            rows = np.asarray(item[0] if isinstance(item, tuple) else item)
            if rows.ndim != 2 or (hasattr(self, "shape") and rows.shape[1] != self.shape[1]):
                wanted = f"(rows, {self.shape[1]})" if hasattr(self, "shape") else "(rows, columns)"
                raise BlockError(f"{name} has shape {rows.shape}: expected {wanted}.")
            if rows.dtype.kind not in "fiub":
                raise BlockError(f"{name} holds {rows.dtype}, not numbers: encode it first.")
            if isinstance(item, tuple) and len(item[1]) != len(rows):
                raise BlockError(f"{name} has {len(rows)} rows and {len(item[1])} targets.")
            self._seen = item[1] if isinstance(item, tuple) else None
            yield name, rows

    def _count_iterator(self) -> None:
        """The first pass over an iterator: how many rows, which targets."""
        n, p, kinds, labels = 0, None, [np.dtype(np.float32)], []
        for name, rows in self._from_iterator(self._factory):  # type: ignore[arg-type]
            if p is not None and rows.shape[1] != p:
                raise BlockError(f"{name} has {rows.shape[1]} columns: those before it have {p}.")
            p = rows.shape[1]
            n += len(rows)
            kinds.append(rows.dtype)
            if self._seen is not None:
                labels.append(np.asarray(self._seen))
        if p is None:
            raise BlockError("the iterator gave no block: it must return a new iterator each time.")
        self.shape, self.dtype = (n, p), np.result_type(*kinds)
        if labels:
            self._labels = np.concatenate(labels)

    def _column(self, name: str | None, role: str) -> NDArray[Any]:
        if name is None:
            raise ValueError(f"no {role} was named: RowBlocks(..., {role}='column of the file').")
        return np.concatenate([part.column(name) for part in self._parts])


def _items(source: Any) -> list[Any]:
    """The single files or arrays behind a source."""
    if isinstance(source, np.ndarray):
        return [source]
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if not path.is_dir():
            return [path]
        found = sorted(p for p in path.iterdir() if p.suffix in (".npy", ".parquet"))
        if not found:
            raise BlockError(f"the folder {path} has no .npy or .parquet file.")
        return list(found)
    found = [item for part in source for item in _items(part)]
    if not found:
        raise BlockError(
            "RowBlocks was given no file: pass a path, a list of paths, or a function."
        )
    return found


def _part(item: Any, apart: tuple[str, ...]) -> Part:
    if isinstance(item, np.ndarray):
        return ArrayPart(item)
    if item.suffix == ".parquet":
        return ParquetPart(item, apart)
    if item.suffix == ".npy":
        return NpyPart(item)
    raise BlockError(f"{item}: only .npy and .parquet files can be read in blocks.")


def _check_finite(block: NDArray[np.float64], name: str, start: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(block.sum())):
            return
    wrong = np.argwhere(~np.isfinite(block))
    if len(wrong):
        row, column = wrong[0]
        kind = "NaN" if np.isnan(block[row, column]) else "infinity"
        raise ValueError(
            f"Input X contains {kind}: row {start + row}, column {column} ({name}). Drop or impute it."
        )


class _Bar:
    """A progress bar for one pass, when asked for."""

    def __init__(self, design: RowBlocks) -> None:
        self.design = design
        self.bar: Any = None

    def __enter__(self) -> _Bar:
        if self.design.progress:
            from rich.console import Console
            from rich.progress import Progress

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(f"pass {self.design.passes}", total=self.design.shape[0])
            self.bar.start()
        return self

    def advance(self, rows: int) -> None:
        if self.bar is not None:
            self.bar.update(self.task, completed=rows)

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.stop()
