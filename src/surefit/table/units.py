"""Which rows of a table are independent of each other, as far as the table and its owner tell.

A statistical claim counts independent units. What these are is decided here, before any split is drawn:

* the owner names a column (``group``): rows with an equal value are one unit;
* the owner says that rows are independent: each row is a unit, and the claims say on whose word;
* otherwise rows are compared. Copies that chance does not explain (the table was doubled) are one unit. Copies
  that it explains (few columns of few values) are counted and said. Rows that are nearly equal, and columns
  that look like the number of a person or a place, cast doubt: the statistical claims are then undecided,
  until the owner speaks.

With a column of time, rows to come are the latest ones, and a claim about them supposes that the future
resembles the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Schema, Table, TableError, shown
from ..data._dates import days, find_format
from ..data._roles import as_text, numbers
from ..stats.near_repeats import find_near_repeats
from ..stats.repeats import find_repeats

__all__ = ["Asked", "Units", "find_units"]

Places = NDArray[np.intp]

REMEDY = (
    "name the column that tells which rows belong together with --group, or say --rows-are-independent"
)


@dataclass(frozen=True)
class Asked:
    """What the owner of a table says of its rows.

    Attributes
    ----------
    group : str or None
        Rows with an equal value of this column belong together.
    time_column : str or None
        When each row was made.
    rows_are_independent : bool
    """

    group: str | None = None
    time_column: str | None = None
    rows_are_independent: bool = False

    @classmethod
    def of(cls, model: Any) -> Asked:
        """What was said at the fit of a table model."""
        return cls(model.group, model.time_column, bool(model.rows_are_independent))

    @property
    def columns(self) -> list[str]:
        """The columns that say it; they are not features."""
        return [name for name in (self.group, self.time_column) if name is not None]


@dataclass(frozen=True)
class Units:
    """The independent units of a table.

    Attributes
    ----------
    kind : {"rows", "copies", "groups"}
    codes : array of int
        The unit of each row.
    alike : array of int
        Rows that are equal in all that the model, its audit and its target read have equal numbers.
    times : array or None
        When each row was made.
    doubts : tuple of str
        Why rows may not be independent although nobody said so; empty once the owner has spoken.
    """

    kind: str
    codes: Places
    alike: Places
    times: NDArray[np.float64] | None = None
    doubts: tuple[str, ...] = ()

    @property
    def copies(self) -> int:
        """How many rows equal an earlier one."""
        return len(self.alike) - len(np.unique(self.alike))

    @property
    def single(self) -> bool:
        """Whether the rows of each unit are all equal, so that a unit is as good as one row."""
        return len(np.unique(self.codes)) == len(_pairs(self.codes, self.alike))


def _pairs(codes: Places, alike: Places) -> Places:
    """The different pairs of a unit and a row of it."""
    return np.asarray(np.unique(np.column_stack([codes, alike]), axis=0))


def find_units(table: Table, schema: Schema, asked: Asked) -> Units:
    """The units of the rows of a table that have a target.

    Parameters
    ----------
    table : Table
        With its numeric columns as numbers.
    schema : Schema
    asked : Asked

    Returns
    -------
    Units
    """
    times = None if asked.time_column is None else _times(_known(table, asked.time_column, "time"))
    inputs, target = _compared(table, schema)
    alike = _numbered(inputs.with_columns(target))
    each = np.arange(table.rows)
    if asked.rows_are_independent:
        return Units("rows", each, alike, times)
    repeats = find_repeats(inputs, target)
    if asked.group is not None:
        codes = _codes(_known(table, asked.group, "group"))
        groups = len(np.unique(codes))
        crossed = len(np.unique(_pairs(repeats.labels, codes)[:, 0], return_counts=True)[0])
        crossed = len(_pairs(repeats.labels, codes)) - crossed
        doubts = []
        if crossed and not repeats.explained:
            doubts.append(f"{repeats.words}, and copies are in several groups of '{shown(asked.group)}'")
        kind = "groups" if groups < table.rows else "rows"
        return Units(kind, codes, alike, times, tuple(doubts))
    kind, codes = ("rows", each) if repeats.explained else ("copies", repeats.labels)
    return Units(kind, codes, alike, times, tuple(_doubts(table, schema, inputs)))


def _doubts(table: Table, schema: Schema, inputs: Any) -> Iterator[str]:
    """What speaks against independent rows besides copies."""
    names = [column.name for column in schema.features if column.role == "numeric"]
    near = find_near_repeats(inputs.select(names))
    if near.found:
        yield near.words


def _compared(table: Table, schema: Schema) -> tuple[Any, Any]:
    """What rows are compared by: the inputs of the model and of its audit, and the target."""
    names = [column.name for column in schema.features]
    names += [name for name in schema.sensitive if name not in names]
    return table.frame.select(names), table.frame.get_column(schema.target)


def _numbered(frame: Any) -> Places:
    """Equal rows have equal numbers."""
    import polars as pl

    ranks = frame.select(pl.struct(pl.all())).to_series().rank("dense")
    return np.asarray(ranks.to_numpy(), dtype=np.intp) - 1


def _known(table: Table, name: str, what: str) -> Any:
    """The column of groups or of times, which every row needs."""
    column = table.frame.get_column(name)
    missing = column.null_count()
    if missing:
        raise TableError(
            f"the {what} column '{shown(name)}' is missing in {missing:,} of {table.rows:,} rows; fill it "
            "in, or leave these rows out."
        )
    return column


def _codes(column: Any) -> Places:
    """The values of a column, numbered."""
    _, codes = np.unique(as_text(column).to_numpy().astype(str), return_inverse=True)
    return np.asarray(codes, dtype=np.intp)


def _times(column: Any) -> NDArray[np.float64]:
    """Times as numbers: dates, or numbers such as years, of which later ones are larger."""
    import polars as pl

    label = shown(column.name)
    if column.dtype.is_temporal():
        found = days(column, None)
    else:
        read = numbers(column)
        if not read.null_count():
            found = np.asarray(read.to_numpy(), dtype=np.float64)
        else:
            form, why = find_format(column) if column.dtype == pl.String else (None, "")
            if form is None:
                raise TableError(
                    f"the time column '{label}' holds values such as '{shown(column[0], 30)}', which are "
                    f"neither dates nor numbers{f': {why}' if why else ''}."
                )
            found = days(column, form)
    if not np.isfinite(found).all():
        raise TableError(f"the time column '{label}' holds values that are not times.")
    return found
