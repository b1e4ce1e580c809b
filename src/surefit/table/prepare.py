"""From a table to matrices: the rows with a target, the split that a seed draws, the encoded parts.

The split is a function of the seed and the number of rows alone, drawn by a generator whose stream numpy has
promised not to change; whoever has the table can draw it again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Schema, Table, TableError, labelled, shown, target_values
from ..data._roles import as_text, numbers_of
from ..preprocessing import TableEncoder
from .search import Fold, fold_rows

__all__ = ["Rows", "draw_split", "folds_of", "n_folds_of", "new_encoder", "rows_of"]

RULE = (
    "a random permutation of the rows that have a target, drawn by numpy.random.RandomState(seed); the first "
    "{share:.0%} are kept aside as the hold-out"
)
MIN_ROWS = 20


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
    """

    table: Table
    y: NDArray[Any]
    train: NDArray[np.intp]
    holdout: NDArray[np.intp]

    def column(self, name: str, rows: NDArray[np.intp]) -> NDArray[Any]:
        """One column as text, missing values as "missing"."""
        values = as_text(self.table.frame.get_column(name)).gather(rows)
        return np.asarray(values.fill_null("missing").to_numpy(), dtype=object)


def draw_split(n: int, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and hold-out rows, each in order.

    Examples
    --------
    >>> train, holdout = draw_split(10, 0.3, seed=0)
    >>> holdout.tolist(), len(train)
    ([2, 4, 8], 7)
    """
    order = np.random.RandomState(seed).permutation(n)
    size = min(max(1, round(n * share)), n - 1)
    return np.sort(order[size:]), np.sort(order[:size])


def rows_of(
    table: Table, schema: Schema, classes: list[str] | None, share: float, seed: int
) -> Rows:
    """Codes and split of a table; the classes must be known ones."""
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
    return Rows(_parsed(table, schema), y, *draw_split(table.rows, share, seed))


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


def folds_of(
    rows: Rows, schema: Schema, y: NDArray[Any], n_folds: int, seed: int
) -> Callable[[int], Fold]:
    """A function that encodes fold k when it is first asked for it, and keeps it.

    ``y`` are the targets as models see them, of all rows. The encoder of a fold has seen the fold's fitting
    rows only.
    """
    parts = fold_rows(rows.y[rows.train], n_folds, seed, stratify=schema.task == "classification")

    @functools.cache
    def fold(k: int) -> Fold:
        valid = rows.train[parts[k]]
        fit = np.setdiff1d(rows.train, valid, assume_unique=True)
        frame = rows.table.frame
        encoder = new_encoder(schema).fit(frame[fit])
        return Fold(
            encoder.transform(frame[fit]), y[fit], encoder.transform(frame[valid]), y[valid]
        )

    return fold
