"""Reading a table: from a path, a pipe, a stream or a frame, with every choice inferred and said.

A text table is read in steps, each with its own module: bytes (:mod:`._bytes`), characters, delimiter and
header (:mod:`._sniff`), records (:mod:`._records`). Columns stay text, trimmed; values such as ``NA`` or
``?`` become missing, and which of them occurred is said. Given the :class:`Parsing` of a fitted model, the
same choices are made again instead of new ones.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._bytes import read_bytes, unpack
from ._records import Records, squeeze_blanks
from ._sniff import (
    DECIMAL_COMMA,
    DELIMITERS,
    SAMPLE,
    decode,
    find_delimiter,
    find_header,
    find_quote,
    leading,
    sample_lines,
)
from ._words import TableError, join_words, listed, near, shown
from .parsing import Parsing
from .table import Table, as_plain_frame, blank_out, tidy

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_table"]

Notes = list[dict[str, str]]
CLEAR_COMMA = r"^[-+]?(\d{4,},\d+|0\d*,\d+|\d+,(\d{1,2}|\d{4,}))([eE][-+]?\d+)?$"  # never thousands
FILES = (str, bytes, bytearray, memoryview, os.PathLike)


def read_table(
    source: Any,
    *,
    parsing: Parsing | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    name: str | None = None,
) -> Table:
    """Read a table from a CSV or Parquet file, a stream, or a frame.

    Parameters
    ----------
    source : path, ``"-"``, bytes, binary stream, frame or dict of columns
        ``"-"`` is standard input. Packed files (gzip, xz, bzip2, zip) are unpacked.
    parsing : Parsing, optional
        Read as this says: the record that a fitted model keeps.
    delimiter, encoding, header, decimal : optional
        Given instead of inferred: ``";"``, ``"latin-1"``, ``True``, ``","``.
    missing : sequence of str, optional
        Values to read as missing, instead of :data:`surefit.data.MISSING`.
    columns : sequence of str, optional
        Keep only these columns.
    name : str, optional
        Name of the table; the file's name without one.

    Returns
    -------
    Table
        ``table.parsing.notes`` says what was inferred, and from what.

    Raises
    ------
    TableError
        With what is wrong, where, and the remedy.

    Examples
    --------
    >>> from surefit.data import read_table
    >>> table = read_table(b"age;wage\\n31;2,5\\n44;?\\n")
    >>> table.rows, table.columns
    (2, ['age', 'wage'])
    >>> for note in table.parsing.notes:
    ...     print(f"{note['what']}: {note['value']} ({note['how']})")
    encoding: utf-8 (all characters are ASCII)
    delimiter: semicolon (it cuts every one of the first 3 lines into 2 fields)
    header: yes (the first record has words above 2 columns of numbers)
    decimal: comma (numbers have a comma in 'wage')
    missing values: 1 ('?' 1)
    """
    _check_arguments(delimiter, decimal, missing)
    markers = tuple(missing) if missing is not None else (parsing or Parsing()).missing
    if isinstance(source, Table):
        table = source
    elif isinstance(source, FILES) or hasattr(source, "read"):
        given = {"delimiter": delimiter, "encoding": encoding, "header": header, "decimal": decimal}
        if parsing is not None and parsing.format == "csv":
            kept = {key: getattr(parsing, key) for key in (*given, "quote")}
            chosen = {key: value for key, value in given.items() if value is not None}
            given = {**kept, **chosen, "kept": "delimiter" not in chosen}
        table = _read_file(source, name, markers, given)
    else:
        frame, counts = blank_out(as_plain_frame(source), markers)
        notes = tuple(_missing_notes(counts))
        table = Table(name or "table", frame, Parsing("frame", missing=markers, notes=notes))
    if columns is not None:
        absent = [column for column in columns if column not in table.columns]
        if absent:
            hint = near(str(absent[0]), table.columns)
            raise TableError(f"there is no column '{shown(absent[0])}'. {hint}")
        table = table.select(columns)
    if not table.columns:
        raise TableError(
            f"{shown(table.name)} has no columns; give a table with a header and rows."
        )
    return table


def _check_arguments(delimiter: Any, decimal: Any, missing: Any) -> None:
    if delimiter is not None and (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or not delimiter.isascii()
        or delimiter in '"\n\r\0'
    ):
        raise TableError(
            f"delimiter must be one character such as ',' or ';', got '{shown(delimiter)}'; "
            "leave it out to have it found."
        )
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal must be '.' or ',', got '{shown(decimal)}'.")
    if isinstance(missing, str):
        raise TableError(
            f"missing must be a list of values, got the text '{shown(missing)}'; write [...]."
        )


def _read_file(
    source: Any, name: str | None, markers: tuple[str, ...], given: dict[str, Any]
) -> Table:
    """A table from bytes: unpacked, then Parquet or text."""
    data, label = read_bytes(source)
    label = name or label
    data, compression = unpack(data, label)
    notes = [_note("compression", compression, "from its first bytes")] if compression else []
    if data.startswith(b"PAR1"):
        frame = _read_parquet(data, label)
        found: dict[str, Any] = {"format": "parquet"}
    else:
        frame, found = _read_text(data, shown(label, 120), markers, given, notes)
    frame, counts = blank_out(frame, markers)
    notes += _missing_notes(counts)
    return Table(
        label, frame, Parsing(compression=compression, missing=markers, notes=tuple(notes), **found)
    )


def _read_parquet(data: bytes, label: str) -> pl.DataFrame:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(data), use_pyarrow=False)
    except Exception as error:  # polars has many; none should reach a user
        raise TableError(
            f"{shown(label, 120)} is a damaged Parquet file ({shown(error, 150)}); write it again."
        ) from error
    return tidy(frame)


def _read_text(
    data: bytes, label: str, markers: tuple[str, ...], given: dict[str, Any], notes: Notes
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A frame of text columns, and the choices made."""
    data, encoding, how = decode(data, label, given.get("encoding"))
    notes.append(_note("encoding", encoding, how))
    if not data.strip():
        raise TableError(f"{label} is empty; give a table with a header and at least one row.")
    _refuse_other_text(data, label)
    lines = sample_lines(data[:SAMPLE].decode("utf-8", "ignore"))
    quote = given["quote"] if given.get("quote") is not None else find_quote(lines)
    if quote == "'":
        notes.append(_note("quote", "'", "fields are wrapped in it"))
    delimiter, how = given.get("delimiter"), "as given"
    if delimiter is None:
        delimiter, how = find_delimiter(lines, quote)
    notes.append(_note("delimiter", DELIMITERS.get(delimiter, delimiter), how))
    if delimiter == " ":
        data = squeeze_blanks(data)
        lines = sample_lines(data[:SAMPLE].decode("utf-8", "ignore"))
    skipped = leading(lines, delimiter, quote)
    data, first_line = _without_leading(data, skipped)
    if skipped:
        how = f"before the table: {listed(lines[:skipped], 2)}"
        notes.append(_note("lines left out", f"{skipped}", how))
    table = Records(data, label, delimiter, quote, first_line)
    if not len(table):
        raise TableError(f"{label} has no values; give a table with a header and at least one row.")
    header, how = given.get("header"), "as given"
    if header is None:
        header, how = find_header(table.sample(), markers)
    notes.append(_note("header", "yes" if header else "no", how))
    width = table.check(header)
    if width == 1 and given.get("kept"):
        other = find_delimiter(lines, quote)[0]
        if other != delimiter:
            raise TableError(
                f"{label} is cut by {DELIMITERS[other]}s, but the model's table was cut by "
                f"{DELIMITERS.get(delimiter, delimiter)}s; give the delimiter '{shown(other)}'."
            )
    if table.blank_lines:
        notes.append(_note("blank lines", f"{table.blank_lines:,}", "left out"))
    frame = table.frame(int(header), width)
    if not frame.height:
        raise TableError(f"{label} has a header but no rows; give a table with at least one row.")
    frame.columns = _names(table.record(0) if header else [], width, notes)
    frame = frame.with_columns(_stripped(frame.columns))
    frame, decimal = _decimals(frame, delimiter, given.get("decimal"), notes)
    found = {"encoding": encoding, "delimiter": delimiter, "quote": quote, "header": bool(header)}
    return frame, {**found, "decimal": decimal, "skipped_lines": skipped}


def _refuse_other_text(data: bytes, label: str) -> None:
    start = data[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise TableError(f"{label} is a web page or XML, not a table; download the CSV itself.")
    if start.startswith((b'{"', b"[{", b"[[")):
        raise TableError(f"{label} looks like JSON, not a table; convert it to CSV or Parquet.")


def _without_leading(data: bytes, skipped: int) -> tuple[bytes, int]:
    """The text after ``skipped`` lines that are not blank, and the number of its first line."""
    start = line = 0
    while skipped:
        end = data.find(b"\n", start)
        skipped -= bool(data[start:end].strip())
        start, line = end + 1, line + 1
    return data[start:], line + 1


def _names(fields: Sequence[str], width: int, notes: Notes) -> list[str]:
    """Distinct names: empty ones are numbered, repeated ones get a number, and both are said."""
    names = [field.strip() for field in fields] or [""] * width
    unnamed = [j for j, name in enumerate(names) if not name]
    for j in unnamed:
        names[j] = f"column_{j + 1}"
    if unnamed and fields:
        notes.append(
            _note("unnamed columns", listed([names[j] for j in unnamed]), "named by their place")
        )
    taken, renamed = set(names), []
    seen: set[str] = set()
    for j, name in enumerate(names):
        if name in seen:
            number = 2
            while f"{name}_{number}" in taken:
                number += 1
            names[j] = f"{name}_{number}"
            taken.add(names[j])
            renamed.append(names[j])
        seen.add(names[j])
    if renamed:
        notes.append(_note("repeated names", listed(renamed), "a column of that name came before"))
    return names


def _stripped(names: Sequence[str]) -> list[Any]:
    import polars as pl

    return [pl.col(name).str.strip_chars() for name in names]


def _decimals(
    frame: pl.DataFrame, delimiter: str, decimal: str | None, notes: Notes
) -> tuple[pl.DataFrame, str]:
    """Numbers with a decimal comma, written with a point; each value is treated by itself."""
    import polars as pl

    if decimal == "." or (decimal is None and delimiter == ","):
        return frame, "."
    pattern = f"^(?:{DECIMAL_COMMA.pattern})$"
    if decimal is None:
        hit = frame.select(pl.all().str.contains(pattern).mean())
        points = frame.select(pl.all().str.contains(r"^[-+]?\d+\.\d+$").any())
        names = [name for name in frame.columns if (hit[name][0] or 0.0) > 0.0]
        if not names or any(points[name][0] for name in frame.columns):
            return frame, "."
        clear = frame.select(pl.col(names).str.contains(CLEAR_COMMA).any())
        if not any(clear[name][0] for name in names):  # 1,000: decimals or thousands?
            how = f"numbers in {listed(names, 3)} have three digits after a comma; say which it is"
            notes.append(_note("decimal", "not decided", how))
            return frame, "."
        notes.append(_note("decimal", "comma", f"numbers have a comma in {listed(names, 3)}"))
    value = pl.all()
    changed = pl.when(value.str.contains(pattern)).then(value.str.replace(",", ".", literal=True))
    return frame.with_columns(changed.otherwise(value)), ","


def _missing_notes(counts: dict[str, int]) -> Notes:
    if not counts:
        return []
    total = f"{sum(counts.values()):,}"
    parts = [f"'{shown(key)}' {n:,}" if key else f"empty {n:,}" for key, n in counts.items()]
    return [_note("missing values", total, join_words(parts))]


def _note(what: str, value: str, how: str) -> dict[str, str]:
    return {"what": what, "value": value, "how": how}
