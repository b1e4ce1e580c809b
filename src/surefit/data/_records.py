"""From UTF-8 text to columns of text, with the shape of every record checked first.

Fields are counted with array operations: positions of quotes, delimiters and line ends. Where every quote
opens a field or closes one (RFC 4180), the positions say exactly which delimiters and line ends are inside a
field, and polars reads the file. Where a quote stands in the middle of a field or is never closed, Python's
csv module reads it, record by record.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._words import TableError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MOST_COLUMNS", "Records", "squeeze_blanks"]

MOST_COLUMNS = 20_000


def squeeze_blanks(data: bytes) -> bytes:
    """For blank-separated text: runs of blanks become one, and none begins or ends a line."""
    data = re.sub(rb"[ \t]+", b" ", data)
    return re.sub(rb"^ | $", b"", data, flags=re.MULTILINE)


class Records:
    """The records of a text: how many, how wide, and their columns as text."""

    def __init__(
        self, data: bytes, label: str, delimiter: str, quote: str, first_line: int
    ) -> None:
        self.data, self.label, self.delimiter, self.quote = data, label, delimiter, quote
        self.first_line = first_line
        buffer = np.frombuffer(data, dtype=np.uint8)
        self.line_ends = np.flatnonzero(buffer == 10)
        quotes = np.flatnonzero(buffer == ord(quote)) if quote else np.empty(0, np.intp)
        self.regular = _regular(buffer, quotes, ord(delimiter))
        self.rows: list[list[str]] = []
        if self.regular:
            self._measure(buffer, quotes)
        else:
            self._read_slowly()
        self._leave_blanks_out()
        widest = int(self.widths.max(initial=0))
        if widest > MOST_COLUMNS:
            raise TableError(
                f"{label} has {widest:,} columns, more than the {MOST_COLUMNS:,} that are read; "
                "if rows and columns are swapped, transpose it, otherwise select columns first."
            )

    def _measure(self, buffer: NDArray[np.uint8], quotes: NDArray[np.intp]) -> None:
        """Start, end and number of fields of every record, from positions alone."""
        ends, cuts = self.line_ends, np.flatnonzero(buffer == ord(self.delimiter))
        if len(quotes):  # an odd number of quotes before it: inside a field
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
            cuts = cuts[np.searchsorted(quotes, cuts) % 2 == 0]
        if not len(buffer) or buffer[-1] != 10:
            ends = np.append(ends, len(buffer))
        self.ends = ends
        self.starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.intp)
        self.widths = np.diff(np.searchsorted(cuts, ends), prepend=0) + 1

    def _read_slowly(self) -> None:
        """Records by the csv module, with the line each begins in; an unclosed quote is refused."""
        lines = self.data.decode("utf-8").split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        reader = self._reader(lines)
        begun: list[int] = []
        try:
            while True:
                line = reader.line_num
                try:
                    self.rows.append(next(reader))
                except StopIteration:
                    break
                begun.append(line)
        except csv.Error as error:
            raise TableError(
                f"{self.label}, line {self.first_line + line:,}: {error}. A quote may be unclosed there; "
                "correct the line or double the quotes inside fields."
            ) from error
        self._check_quotes(lines, [*begun, len(lines)])
        self.starts = np.array(begun, dtype=np.intp)
        self.widths = np.array([max(len(row), 1) for row in self.rows], dtype=np.intp)

    def _check_quotes(self, lines: Sequence[str], begun: Sequence[int]) -> None:
        """A value that runs over several lines, or to the end, must be closed where a field ends."""
        for start, stop in pairwise(begun):
            if stop - start < 2 and stop < len(lines):
                continue
            try:
                list(self._reader(lines[start:stop], strict=True))
            except csv.Error as error:
                open_end = "end of data" in str(error)
                if not open_end and stop - start < 2:
                    continue  # a quote within one line is a letter of the value
                words = "is never closed" if open_end else "closes in the middle of a value"
                raise TableError(
                    f"{self.label}: a quote that opens in line {self.first_line + start:,} {words}. "
                    "Close it, or double the quotes that belong to a value."
                ) from None

    def _reader(self, lines: Sequence[str], strict: bool = False) -> Any:
        return csv.reader(
            [line + "\n" for line in lines],
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=True,
            strict=strict,
        )

    def _leave_blanks_out(self) -> None:
        """Empty lines: all of them with several columns, the trailing ones with one."""
        if self.regular:
            empty = self.starts == self.ends
            for i in np.flatnonzero((self.widths == 1) & ~empty & (self.ends - self.starts < 80)):
                empty[i] = not self.data[self.starts[i] : self.ends[i]].strip()
        else:
            empty = np.array(
                [not any(cell.strip() for cell in row) and len(row) < 2 for row in self.rows], bool
            )
        if len(self.widths) and not (self.widths > 1).any():
            full = np.flatnonzero(~empty)
            empty[: full[-1] + 1 if len(full) else 0] = False
        self.kept = np.flatnonzero(~empty)
        last = self.kept[-1] + 1 if len(self.kept) else 0
        self.blank_lines = int(empty[:last].sum())  # those at the end are no news

    def __len__(self) -> int:
        return len(self.kept)

    def line(self, record: int) -> int:
        """The line of the file where a record begins."""
        start = self.starts[self.kept[record]]
        before = np.searchsorted(self.line_ends, start) if self.regular else start
        return int(before) + self.first_line

    def record(self, index: int) -> list[str]:
        """The fields of one record."""
        i = self.kept[index]
        if not self.regular:
            return self.rows[i]
        text = self.data[self.starts[i] : self.ends[i]].decode("utf-8")
        if not self.quote or self.quote not in text:
            return text.split(self.delimiter)
        fields: list[str] = []
        pieces: list[str] = []
        odd = 0  # quotes so far in this field: a delimiter after an odd number is inside it
        for piece in text.split(self.delimiter):
            pieces.append(piece)
            odd ^= piece.count(self.quote) & 1
            if not odd:
                field = self.delimiter.join(pieces)
                if len(field) > 1 and field[0] == self.quote:
                    field = field[1:-1].replace(self.quote * 2, self.quote)
                fields.append(field)
                pieces = []
        return fields

    def sample(self) -> list[list[str]]:
        """The first records, fewer of them the wider they are."""
        width = int(self.widths[self.kept[0]])
        return [self.record(i) for i in range(min(len(self), max(2, min(400, 200_000 // width))))]

    def check(self, header: bool) -> int:
        """The number of columns; records of another width are refused, with their lines."""
        widths = self.widths[self.kept]
        usual = int(widths[0]) if header else int(np.bincount(widths).argmax())
        odd = np.flatnonzero(widths != usual)
        if not len(odd):
            return usual
        below = widths[1:]
        if header and len(odd) == len(widths) - 1 and (below == usual + 1).all():
            raise TableError(
                f"{self.label}: the header has {usual:,} names but every row has {usual + 1:,} fields. "
                "Name the missing column (often the first, of row names), or take the last delimiter off."
            )
        places = ", ".join(f"line {self.line(i):,} has {widths[i]:,}" for i in odd[:4])
        more = f" and {len(odd) - 4:,} more lines" if len(odd) > 4 else ""
        words = "the header has" if header else "most records have"
        raise TableError(
            f"{self.label} is ragged: {words} {usual:,} fields, but {places}{more}. "
            "Correct these lines, quote values that hold the delimiter, or name another delimiter."
        )

    def frame(self, skip: int, width: int) -> pl.DataFrame:
        """Columns of text named ``0``, ``1``, ... of the records after the first ``skip``."""
        import polars as pl

        names = [str(j) for j in range(width)]
        kept = self.kept[skip:]
        if not self.regular or width == 1:
            rows = [self.record(i) for i in range(skip, len(self))]
            columns = list(zip(*rows)) if rows else [()] * width
            return pl.DataFrame(
                {name: list(column) for name, column in zip(names, columns)},
                schema=dict.fromkeys(names, pl.String),
            )
        if not len(kept):
            return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
        body = self.data[self.starts[kept[0]] : self.ends[kept[-1]]]
        if len(kept) != kept[-1] - kept[0] + 1:  # blank lines between
            body = b"\n".join(self.data[self.starts[i] : self.ends[i]] for i in kept)
        try:
            frame = pl.read_csv(
                body,
                has_header=False,
                separator=self.delimiter,
                quote_char=self.quote or None,
                schema=dict.fromkeys(names, pl.String),
                infer_schema=False,
            )
        except Exception as error:  # polars has many; none should reach a user
            raise TableError(
                f"{self.label} cannot be read as a table: {str(error)[:200]}"
            ) from error
        if frame.height != len(kept):
            raise TableError(
                f"{self.label} reads as {frame.height:,} rows where {len(kept):,} records were counted; "
                "look for stray quotes."
            )
        return frame


def _regular(buffer: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: int) -> bool:
    """Whether every quote opens a field, closes one, or is doubled inside one."""
    if not len(quotes):
        return True
    if len(quotes) % 2:
        return False
    quote, last = buffer[quotes[0]], len(buffer) - 1
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, buffer[opening - 1], 10)
    after = np.where(closing < last, buffer[np.minimum(closing + 1, last)], 10)
    stops = (10, delimiter, quote)
    return bool(np.isin(before, stops).all() and np.isin(after, stops).all())
