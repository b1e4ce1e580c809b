"""The files behind row blocks: each knows its shape from its header and reads any range of rows."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayPart", "BlockError", "NpyPart", "ParquetPart", "Part"]


class BlockError(ValueError):
    """A block that cannot be read, or does not fit the others; the message says which."""


class Part(ABC):
    """A table of numbers that can be read by ranges of rows."""

    name: str
    rows: int
    columns: int
    dtype: np.dtype[Any]
    names: list[str] | None = None

    @abstractmethod
    def read(self, first: int, last: int, scratch: NDArray[np.uint8]) -> NDArray[Any]:
        """Rows first..last; ``scratch`` is memory that may be used for them."""

    def column(self, name: str) -> NDArray[Any]:
        """A column that was set apart."""
        raise BlockError(f"{self.name} has no named columns: only Parquet files do, not {name!r}.")

    def must_match(self, first: Part) -> None:
        """The same columns as the first part."""
        if self.columns != first.columns:
            raise BlockError(
                f"{self.name} has {self.columns} columns, {first.name} has {first.columns}: "
                "all blocks must have the same columns."
            )
        if self.names != first.names:
            raise BlockError(
                f"{self.name} has the columns {self.names}, {first.name} has {first.names}: all "
                "blocks must have the same columns in the same order."
            )


class ArrayPart(Part):
    """An array in memory, or a numpy memory map."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.name = str(getattr(array, "filename", None) or "an array")
        _check_table(self.name, array.shape, array.dtype)
        self.array, (self.rows, self.columns), self.dtype = array, array.shape, array.dtype

    def read(self, first: int, last: int, scratch: NDArray[np.uint8]) -> NDArray[Any]:
        return np.array(self.array[first:last])  # read here, in the reader's thread


class NpyPart(Part):
    """A ``.npy`` file, read without mapping it into memory."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self.offset, shape, self.dtype = self._header()
        self.rows, self.columns = shape

    def _header(self) -> tuple[int, tuple[int, int], np.dtype[Any]]:
        try:
            with self.path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
                shape, fortran, dtype = read(file)
                offset = file.tell()
        except (OSError, ValueError, AttributeError) as error:
            raise BlockError(f"{self.path} cannot be read as a .npy file: {error}") from error
        _check_table(self.name, shape, dtype)
        if fortran and shape[1] > 1:
            raise BlockError(
                f"{self.path} is stored column by column: save np.ascontiguousarray(X) instead."
            )
        return offset, shape, dtype

    def read(self, first: int, last: int, scratch: NDArray[np.uint8]) -> NDArray[Any]:
        width = self.columns * self.dtype.itemsize
        wanted: Any = scratch[: (last - first) * width]
        got = 0
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(self.offset + first * width)
                while got < len(wanted):
                    count = file.readinto(wanted[got:])
                    if not count:
                        break
                    got += count
        except OSError as error:
            raise BlockError(f"{self.path} can no longer be read: {error}") from error
        if got < len(wanted):
            raise BlockError(
                f"{self.path} is cut short: {self.rows} rows were there at first, and it ends at row "
                f"{first + got // width} (of {os.path.getsize(self.path)} bytes)."
            )
        table: NDArray[Any] = wanted.view(self.dtype).reshape(last - first, self.columns)
        return table


class ParquetPart(Part):
    """A Parquet file, read by polars."""

    def __init__(self, path: Path, apart: tuple[str, ...]) -> None:
        pl = _polars()

        self.path, self.name = path, str(path)
        try:
            self.table = pl.scan_parquet(path)
            schema = self.table.collect_schema()
            self.rows = int(self.table.select(pl.len()).collect().item())
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BlockError(f"{path} cannot be read as a Parquet file: {error}") from error
        missing = [name for name in apart if name not in schema]
        if missing:
            raise BlockError(f"{path} has no column {missing[0]!r}; it has {list(schema)}.")
        self.names = [name for name in schema if name not in apart]
        for name in self.names:
            if not (schema[name].is_numeric() or schema[name] == pl.Boolean):
                raise BlockError(
                    f"{path}: the column {name!r} holds {schema[name]}, not numbers: encode it first."
                )
        single = all(schema[name] == pl.Float32 for name in self.names)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.columns = len(self.names)
        _check_table(self.name, (self.rows, self.columns), self.dtype)

    def read(self, first: int, last: int, scratch: NDArray[np.uint8]) -> NDArray[Any]:
        pl = _polars()

        try:
            part = self.table.select(self.names).slice(first, last - first)
            frame = part.cast(pl.Float32 if self.dtype == np.float32 else pl.Float64).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BlockError(f"{self.path} can no longer be read: {error}") from error
        if len(frame) != last - first:
            raise BlockError(
                f"{self.path} is cut short: {self.rows} rows were there at first, and it ends at row "
                f"{first + len(frame)}."
            )
        return np.ascontiguousarray(frame.to_numpy())

    def column(self, name: str) -> NDArray[Any]:
        pl = _polars()

        try:
            return self.table.select(name).collect()[name].to_numpy()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BlockError(f"{self.path} can no longer be read: {error}") from error


def _check_table(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2 or min(shape) < 1:
        raise BlockError(f"{name} has shape {tuple(shape)}: rows and columns are needed.")
    if dtype.kind not in "fiub":
        raise BlockError(f"{name} holds {dtype}, not numbers: encode it first.")


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "reading Parquet files needs polars: install polars, or save the rows with numpy.save "
            "and pass the .npy file."
        ) from error
    return polars
