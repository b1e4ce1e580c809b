"""Which rows of a table are independent of each other, as far as the table and its owner tell.

A statistical claim counts independent units. What these are is decided here, before any split is drawn:

* the owner names a column (``group``): rows with an equal value are one unit;
* copies that chance does not explain (the table was doubled) are one unit. Copies that it explains (few
  columns of few values) are counted and said;
* rows that are nearly equal, and columns that look like the number of a person or a place, cast doubt: the
  statistical claims are undecided until the owner names groups or says that rows are independent.

The rules are those of :mod:`surefit.stats`.

With a column of time, rows to come are the latest ones, and a claim about them supposes that the future
resembles the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Schema, Table, TableError, shown
from ..data._dates import days, find_format
from ..data._roles import as_text, numbers
from ..data._words import near
from ..stats import Remedy, treat_rows

__all__ = ["NOTHING_SAID", "Asked", "Units", "find_units"]

Places = NDArray[np.intp]

REMEDY = Remedy(
    "name the column that tells which with --group (in Python: group=)",
    "--rows-are-independent (rows_are_independent=True)",
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


NOTHING_SAID = Asked()


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
    assumed : str
        What a claim supposes of the units.
    why : str
        Why nothing is claimed of rows to come, and what would help; "" without a doubt.
    """

    kind: str
    codes: Places
    alike: Places
    times: NDArray[np.float64] | None
    assumed: str
    why: str

    @property
    def copies(self) -> int:
        """How many rows equal an earlier one."""
        return len(self.alike) - len(np.unique(self.alike))

    @property
    def single(self) -> bool:
        """Whether the rows of each unit are all equal, so that a unit is as good as one row."""
        pairs = np.unique(np.column_stack([self.codes, self.alike]), axis=0)
        return len(pairs) == len(np.unique(self.codes))


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
    for name in asked.columns:
        if name not in table.columns:
            raise TableError(f"there is no column '{shown(name)}'. {near(name, table.columns)}")
    frame = table.frame
    names = [column.name for column in schema.features]
    names = list(dict.fromkeys([*names, *schema.sensitive]))
    everything = list(dict.fromkeys([*names, schema.target]))
    others = [name for name in table.columns if name not in (schema.target, *asked.columns)]
    found = treat_rows(
        frame.select(names),
        frame.get_column(schema.target),
        groups=None if asked.group is None else as_text(frame.get_column(asked.group)),
        grouped_by=f"'{shown(asked.group)}'" if asked.group is not None else "",
        independent=asked.rows_are_independent,
        names=[shown(name) for name in others],
        columns=[frame.get_column(name) for name in others],
        remedy=REMEDY,
    )
    times = None if asked.time_column is None else _times(frame.get_column(asked.time_column))
    codes = np.arange(table.rows) if found.labels is None else found.labels
    kind = "rows" if found.labels is None else "groups" if found.kind == "grouped" else "copies"
    assumed = found.assumed
    if times is not None:
        assumed += "; if the future resembles the past"
    return Units(kind, codes, _numbered(frame.select(everything)), times, assumed, found.why)


def _numbered(frame: Any) -> Places:
    """Equal rows have equal numbers."""
    import polars as pl

    ranks = frame.select(pl.struct(pl.all())).to_series().rank("dense")
    return np.asarray(ranks.to_numpy(), dtype=np.intp) - 1


def _times(column: Any) -> NDArray[np.float64]:
    """Times as numbers: dates, or numbers such as years, of which later ones are larger."""
    import polars as pl

    label, missing = shown(column.name), column.null_count()
    if missing:
        raise TableError(
            f"the time column '{label}' is missing in {missing:,} of {len(column):,} rows; fill it in, or "
            "leave these rows out."
        )
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
