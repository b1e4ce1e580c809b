"""From a table to matrices: the rows with a target, their split, the encoded parts.

What is independent of what is found in :mod:`surefit.table.units`, and how rows are split in
:mod:`surefit.table.splitting`; here both are applied to a table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Schema, Table, TableError, labelled, shown, target_values
from ..data._roles import as_text, numbers_of
from ..preprocessing import TableEncoder
from .search import Fold
from .splitting import (
    Part,
    draw_groups,
    draw_split,
    fold_groups,
    fold_rows,
    fold_times,
    one_a_group,
    split_times,
)
from .units import NOTHING_SAID, Asked, Units, find_units

__all__ = ["Folds", "Rows", "draw_split", "folds_of", "n_folds_of", "new_encoder", "rows_of"]

MIN_ROWS = 20
MIN_HELD = 2  # units on the hold-out, of which a spread can be seen


@dataclass(frozen=True)
class Rows:
    """The rows of a table that have a target, and what the model reads from them.

    Attributes
    ----------
    table : Table
        Rows with a target.
    y : array
        Codes of the classes, or the target as it is.
    train, holdout : arrays of row numbers
    units : Units
        Which rows are independent of each other.
    """

    table: Table
    y: NDArray[Any]
    train: NDArray[np.intp]
    holdout: NDArray[np.intp]
    units: Units

    def column(self, name: str, rows: NDArray[np.intp]) -> NDArray[Any]:
        """One column as text, missing values as "missing"."""
        values = as_text(self.table.frame.get_column(name)).gather(rows)
        return np.asarray(values.fill_null("missing").to_numpy(), dtype=object)

    @property
    def held_codes(self) -> NDArray[np.intp]:
        """The unit of each hold-out row, numbered from 0."""
        _, codes = np.unique(self.units.codes[self.holdout], return_inverse=True)
        return np.asarray(codes, dtype=np.intp)

    @property
    def n_held(self) -> int:
        """How many units are held out."""
        return int(self.held_codes.max()) + 1

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means over each unit of the hold-out, of values of its rows."""
        codes = self.held_codes
        return np.asarray(np.bincount(codes, weights=values) / np.bincount(codes))

    def one_a_unit(self, seed: int) -> Rows:
        """The same with one row of each unit in the hold-out: independent rows, if units are."""
        return replace(self, holdout=self.holdout[one_a_group(self.held_codes, seed)])


def rows_of(
    table: Table,
    schema: Schema,
    classes: list[str] | None,
    share: float,
    seed: int,
    asked: Asked = NOTHING_SAID,
) -> Rows:
    """Codes, units and split of a table; the classes must be known ones."""
    table = labelled(table, schema)
    if table.rows < MIN_ROWS:
        raise TableError(
            f"the table has {table.rows} rows with a value of '{shown(schema.target)}'; at least {MIN_ROWS} "
            "are needed to fit on some and test on others."
        )
    values = target_values(table, schema)
    if schema.task == "classification":
        assert classes is not None
        places = {label: code for code, label in enumerate(classes)}
        labels, inverse = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        strange = [label for label in labels if label not in places]
        if strange:
            raise TableError(
                f"the target '{shown(schema.target)}' has the class '{shown(strange[0])}', which the "
                "model was not fitted on; these are other data."
            )
        y: NDArray[Any] = np.array([places[str(label)] for label in labels], dtype=np.intp)[inverse]
    else:
        y = np.asarray(values, dtype=np.float64)
    table = _parsed(table, schema)
    units = find_units(table, schema, asked)
    rows = Rows(table, y, *_split(units, share, seed), units)
    if units.kind != "rows" or units.times is not None:
        _check_units(rows)
    return rows


def _split(units: Units, share: float, seed: int) -> Part:
    """Training and hold-out rows."""
    if units.times is not None:
        return split_times(units.times, units.codes, share)
    if units.kind == "rows":
        return draw_split(len(units.codes), share, seed)
    return draw_groups(units.codes, share, seed)


def _check_units(rows: Rows) -> None:
    """There must be units to learn from, and others to test on."""
    learnt = len(np.unique(rows.units.codes[rows.train]))
    held = len(np.unique(rows.units.codes[rows.holdout]))
    if learnt >= MIN_HELD and held >= MIN_HELD:
        return
    what = {"rows": "rows", "copies": "different rows", "groups": "groups"}[rows.units.kind]
    why = ""
    if rows.units.times is not None and rows.units.kind == "groups":
        why = (
            "; groups with rows in the past are not tested on. Give either --group or --time-column"
        )
    raise TableError(
        f"the split leaves {learnt} {what} to learn from and {held} to test on; at least {MIN_HELD} of each "
        f"are needed{why}."
    )


def _parsed(table: Table, schema: Schema) -> Table:
    """The table with its numeric columns as numbers, so that each is read once and not in every fold.

    A column that holds anything else stays text: the encoder refuses it, and says where.
    """
    there = set(table.columns)
    numeric = [c.name for c in schema.features if c.role == "numeric" and c.name in there]
    read = numbers_of(table.frame, numeric)
    gaps = dict(zip(table.columns, table.frame.null_count().row(0)))
    parsed = [values for name, values in read.items() if values.null_count() == gaps[name]]
    return Table(table.name, table.frame.with_columns(parsed), table.parsing)


def new_encoder(schema: Schema) -> TableEncoder:
    """An encoder of the columns that enter the model."""
    return TableEncoder(columns=[column.to_dict() for column in schema.features])


def n_folds_of(n: int) -> int:
    """Folds of the search: five, and three where rows abound and a validation part is large anyway."""
    return 5 if n <= 20_000 else 3


class Folds:
    """The folds of the search, each encoded when it is first asked for, and kept.

    The encoder of a fold has seen the fold's fitting rows only.
    """

    def __init__(self, rows: Rows, schema: Schema, y: NDArray[Any], parts: list[Part]) -> None:
        self.rows, self.schema, self.y, self.parts = rows, schema, y, parts
        self.made: dict[int, Fold] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.parts)

    @property
    def largest(self) -> Fold:
        """A fold with as many rows to fit on as any: in time the last, otherwise they are alike."""
        return self(self.count - 1 if self.rows.units.times is not None else 0)

    def __call__(self, k: int) -> Fold:
        """Fold k."""
        if k not in self.made:
            fit, valid = (self.rows.train[part] for part in self.parts[k])
            frame, y = self.rows.table.frame, self.y
            encoder = new_encoder(self.schema).fit(frame[fit])
            self.made[k] = Fold(
                encoder.transform(frame[fit]), y[fit], encoder.transform(frame[valid]), y[valid]
            )
        return self.made[k]


def folds_of(rows: Rows, schema: Schema, y: NDArray[Any], n_folds: int, seed: int) -> Folds:
    """The folds of the search; ``y`` are the targets as models see them, of all rows."""
    return Folds(rows, schema, y, _parts(rows, n_folds, seed, schema.task == "classification"))


def _parts(rows: Rows, n_folds: int, seed: int, stratify: bool) -> list[Part]:
    """Places among the training rows, to fit on and to validate on."""
    units, y = rows.units, rows.y[rows.train]
    codes = units.codes[rows.train]
    if units.times is None and units.kind == "rows":
        tested = fold_rows(y, n_folds, seed, stratify=stratify)
        everything = np.arange(len(y))
        return [(np.setdiff1d(everything, part, assume_unique=True), part) for part in tested]
    if units.times is not None:
        parts = fold_times(units.times[rows.train], codes, n_folds)
    else:
        parts = fold_groups(y, codes, n_folds, seed, stratify=stratify)
    # a class may be in few groups, or begin late: no model can be fitted on rows of one class
    enough = [part for part in parts if not stratify or len(np.unique(y[part[0]])) > 1]
    if not enough:
        raise TableError(
            "no fold of the search has two classes to learn from: each class must be in several groups, and "
            "in the early rows of a table that is split by time."
        )
    return enough
