"""A table in memory: a polars frame, how it was read, and a fingerprint of its rows.

The columns of a frame are brought to four kinds: text, whole numbers, floating-point numbers, and times. A
table that was read from text keeps its text, trimmed, with missing values taken out; what is a number is
decided by the schema and the encoder, never by the reader.

The fingerprint is a BLAKE2b hash over the names and, column by column, the values, each with its length. It
does not depend on the file's compression, line ends, quotes or encoding, nor on the version of polars.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._words import TableError, listed, shown
from .parsing import Parsing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Table", "as_frame", "as_plain_frame", "blank_out", "tidy"]

BLOCK = 65_536  # rows hashed at a time


@dataclass(frozen=True)
class Table:
    """A table: its name, its frame and how it was read.

    Attributes
    ----------
    name : str
    frame : polars.DataFrame
        Columns of text, Int64, Float64 or times.
    parsing : Parsing
    """

    name: str
    frame: pl.DataFrame
    parsing: Parsing

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.frame.height)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def take(self, indices: Any) -> Table:
        """The table of these rows, in this order."""
        indices = np.asarray(indices)
        rows = np.flatnonzero(indices) if indices.dtype == np.bool_ else indices.astype(np.int64)
        return Table(self.name, self.frame[rows], self.parsing)

    def select(self, columns: Sequence[str]) -> Table:
        """The table of these columns."""
        return Table(self.name, self.frame.select(list(columns)), self.parsing)

    def fingerprint(self) -> str:
        """A hexadecimal digest of the column names and all values, missing ones included.

        Examples
        --------
        >>> from surefit.data import read_table
        >>> a = read_table(b"x,y\\n1,a\\n2,b\\n")
        >>> b = read_table(b"x; y\\r\\n1; a\\r\\n2; b")
        >>> a.fingerprint() == b.fingerprint()
        True
        """
        digest = hashlib.blake2b(digest_size=16, person=b"surefit table 1")
        digest.update(np.array(self.frame.shape, dtype="<u8").tobytes())
        for name in self.frame.columns:
            raw = name.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
            column = self.frame.get_column(name)
            for start in range(0, len(column), BLOCK):
                for part in _plain(column.slice(start, BLOCK)):
                    digest.update(part)
        return digest.hexdigest()


def _plain(column: pl.Series) -> list[bytes]:
    """Bytes that fix the values of a block: a mark for the kind, lengths (or the mask), contents."""
    import polars as pl

    if column.dtype == pl.Int64:  # the digits, as text has them: a number is the same from both
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        lengths = column.str.len_bytes().cast(pl.Int64).fill_null(-1).to_numpy()
        joined = column.drop_nulls().str.join("").to_list()
        return [b"t", lengths.astype("<i8").tobytes(), (joined[0] or "").encode("utf-8")]
    if column.dtype == pl.Float64:
        values = column.fill_null(float("nan")).to_numpy() + 0.0  # -0.0 becomes 0.0
        return [b"f", values.astype("<f8").tobytes()]
    times = column.dt.epoch("us")
    missing = times.is_null().to_numpy()
    return [
        b"d",
        np.packbits(missing).tobytes(),
        times.fill_null(0).to_numpy().astype("<i8").tobytes(),
    ]


def as_frame(data: Any) -> pl.DataFrame:
    """A polars frame from a :class:`Table`, or with tidy columns from a frame of any kind or a dict."""
    return data.frame if isinstance(data, Table) else as_plain_frame(data)


def blank_out(frame: pl.DataFrame, markers: Sequence[str]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The frame with text trimmed and the markers missing, and how often each marker occurred."""
    import polars as pl

    names = [name for name, kind in frame.schema.items() if kind == pl.String]
    frame = frame.with_columns(pl.col(name).str.strip_chars() for name in names)
    marks = list(markers)
    counts: dict[str, int] = {}
    for name in names:
        column = frame.get_column(name)
        for value, count in column.filter(column.is_in(marks)).value_counts().iter_rows():
            counts[value] = counts.get(value, 0) + count
        if "" in markers and (empty := column.null_count()):
            counts[""] = counts.get("", 0) + empty
    if counts:
        value = pl.col(names)
        frame = frame.with_columns(pl.when(~value.is_in(list(counts))).then(value))
    return frame, {mark: counts[mark] for mark in markers if counts.get(mark)}


def as_plain_frame(data: Any) -> pl.DataFrame:
    """A polars frame with tidy columns from a frame of any kind or a dict of columns."""
    import polars as pl

    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    if not isinstance(data, pl.DataFrame):
        data = _converted(data)
    return tidy(data)


def _converted(data: Any) -> pl.DataFrame:
    """A polars frame from a dict of columns or, through narwhals, from any other frame."""
    import polars as pl

    if isinstance(data, dict):
        columns = {str(name): values for name, values in data.items()}
        lengths = {
            name: len(values) for name, values in columns.items() if hasattr(values, "__len__")
        }
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"'{shown(k)}' {v}" for k, v in list(lengths.items())[:5])
            raise TableError(
                f"the columns have different lengths ({counts}); give each the same number."
            )
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(data, eager_only=True)
        except TypeError as error:
            raise TableError(
                f"a table cannot be made from {type(data).__name__}; give a path, a polars or pandas frame, "
                "or a dict of columns."
            ) from error
        names = [str(name) for name in frame.columns]
        if len(set(names)) < len(names):
            raise TableError("the frame has two columns of the same name; rename one.")
        columns = dict(zip(names, (_values(frame[name]) for name in frame.columns)))
    try:
        return pl.DataFrame({name: _series(name, values) for name, values in columns.items()})
    except Exception as error:  # polars has many errors for values of mixed kinds
        raise TableError(f"the columns cannot be read: {shown(error, 200)}") from error


def _values(column: Any) -> Any:
    """Numbers, truth values and times as arrays, the rest as a list with None for missing."""
    kind = getattr(column.to_native(), "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "iufM":
        return column.to_numpy()
    return [None if _absent(value) else value for value in column.to_list()]


def _absent(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _series(name: str, values: Any) -> Any:
    """A series; values of mixed kinds become text."""
    import polars as pl

    if isinstance(values, pl.Series):
        return values.alias(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufbUM" and values.ndim == 1:
        return pl.Series(name, values)
    values = [None if _absent(value) else value for value in list(values)]
    if len(
        {bool if isinstance(v, bool | np.bool_) else type(v) for v in values if v is not None}
    ) > 1 and any(isinstance(v, str) for v in values):
        values = [None if v is None else str(v) for v in values]
    return pl.Series(name, values, strict=False)


def tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Every column as text, Int64, Float64 or Datetime; NaN as missing; other kinds are refused."""
    import polars as pl

    columns = []
    refused = []
    for name, kind in frame.schema.items():
        column = pl.col(name)
        if kind in (pl.String, pl.Int64, pl.Datetime("us")):
            pass
        elif kind == pl.Boolean:
            column = pl.when(column).then(pl.lit("true")).when(~column).then(pl.lit("false"))
        elif kind in (pl.Categorical, pl.Enum, pl.Null, pl.Time) or (
            kind == pl.UInt64 and (frame.get_column(name).max() or 0) >= 2**63
        ):
            column = column.cast(pl.String)
        elif kind.is_integer():
            column = column.cast(pl.Int64)
        elif kind.is_float() or kind.is_decimal():
            column = column.cast(pl.Float64).fill_nan(None)
        elif kind == pl.Date:
            column = column.cast(pl.Datetime("us"))
        elif kind == pl.Datetime:
            column = column.dt.replace_time_zone(None).cast(pl.Datetime("us"))
        elif kind == pl.Duration:
            column = column.dt.total_microseconds().cast(pl.Float64) / 86_400e6
        else:
            refused.append(name)
        columns.append(column.alias(name))
    if refused:
        raise TableError(
            f"the columns {listed(refused)} hold lists, records or bytes, which a model cannot read; "
            "leave them out or split them into columns."
        )
    return frame.select(columns)
