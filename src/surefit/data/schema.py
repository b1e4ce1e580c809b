"""The schema of a table: what each column is, what is predicted, and what should be looked at.

:func:`propose_schema` decides from the values alone and says why; the caller shows it and may override any
role. Columns that alone predict the target are called out as leak suspects (:mod:`._leaks`), not removed:
only the owner of the data knows whether they are known at the time of prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._dates import days
from ._leaks import SUSPECT, Halves
from ._roles import ROLES, Column, as_text, describe, numbers, numbers_of, unclear
from ._words import TableError, listed, near, shown
from .table import Table

__all__ = ["Column", "Schema", "labelled", "propose_schema", "target_values"]

USED = ("numeric", "categorical", "date")
MOST_CLASSES = 20  # a numeric target with more values is a regression
FEW_CLASSES = 5  # so is one with more than this, of decimals or nearly all different
STRONG = 0.95  # worth a question, not a suspicion
TASKS = ("auto", "classification", "regression")


@dataclass(frozen=True)
class Schema:
    """What each column of a table is, and what is predicted.

    Attributes
    ----------
    columns : tuple of Column
        All columns but the target.
    target : str
    task : {"classification", "regression"}
    classes : list of str or None
        The labels, sorted; None for regression.
    sensitive : tuple of str
    notes : tuple of dict
        ``{"what", "value", "how"}``, as in :class:`Parsing`.
    """

    columns: tuple[Column, ...]
    target: str
    task: str
    classes: list[str] | None = None
    sensitive: tuple[str, ...] = ()
    notes: tuple[dict[str, str], ...] = ()

    @property
    def features(self) -> list[Column]:
        """The columns that enter the model."""
        return [column for column in self.columns if column.role in USED]

    @property
    def leaks(self) -> list[Column]:
        """The features that alone predict the target."""
        return [c for c in self.features if c.leak is not None and c.leak >= SUSPECT]

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON and model files."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "target": self.target,
            "task": self.task,
            "classes": None if self.classes is None else list(self.classes),
            "sensitive": list(self.sensitive),
            "notes": [dict(note) for note in self.notes],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """The inverse of :meth:`to_dict`."""
        return cls(
            columns=tuple(Column(**column) for column in values["columns"]),
            target=values["target"],
            task=values["task"],
            classes=None if values["classes"] is None else list(values["classes"]),
            sensitive=tuple(values["sensitive"]),
            notes=tuple(dict(note) for note in values["notes"]),
        )


def propose_schema(
    table: Table,
    target: str,
    *,
    sensitive: Sequence[str] = (),
    task: str = "auto",
    roles: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Schema:
    """What each column is, and what kind of prediction this is.

    Parameters
    ----------
    table : Table
    target : str
        Name of the column to predict.
    sensitive : sequence of str, default=()
        Columns whose groups are audited. They enter the model unless ``roles`` says ``"ignored"``.
    task : {"auto", "classification", "regression"}, default="auto"
        A numeric target with more than 20 values is a regression; so is one with more than 5 that has
        decimals or is different in most rows.
    roles : mapping of str to str, optional
        Roles that override the proposal, for instance ``{"zip": "categorical"}``.
    seed : int, default=0
        Of the halves on which leak suspects are judged.

    Returns
    -------
    Schema

    Examples
    --------
    >>> from surefit.data import load, propose_schema
    >>> schema = propose_schema(load("mortgages"), "denied", sensitive=["african_american"])
    >>> schema.task, schema.classes
    ('classification', ['no', 'yes'])
    >>> schema["unemployment"].role
    'numeric'
    """
    sensitive = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    roles = dict(roles or {})
    _check_names(table, target, sensitive, roles)
    if task not in TASKS:
        raise TableError(f"task must be one of {', '.join(TASKS)}, got '{shown(task)}'.")
    kept = table.frame.filter(table.frame.get_column(target).is_not_null())
    notes: list[dict[str, str]] = []
    if lost := table.rows - kept.height:
        notes.append(
            _note("rows left out", f"{lost:,}", f"the target '{shown(target)}' is missing there")
        )
    task, classes, codes = _target(table, kept.get_column(target), task, notes)
    halves = Halves(codes, len(classes or ()), seed)
    others = [name for name in table.columns if name != target]
    columns = [describe(kept.get_column(name), roles.get(name)) for name in others]
    read = numbers_of(kept, [column.name for column in columns if column.role == "numeric"])
    for place, column in enumerate(columns):
        if column.role in USED:
            values = read.get(column.name, kept.get_column(column.name))
            columns[place] = _with_leak(column, values, halves, notes)
    for column in filter(unclear, columns):
        notes.append(_note("unclear column", shown(column.name), column.note))
    for role in ("identifier", "constant", "text"):
        out = [column.name for column in columns if column.role == role]
        if out:
            notes.append(_note(f"{role} columns", listed(out), "left out of the model"))
    schema = Schema(tuple(columns), target, task, classes, sensitive, tuple(notes))
    if not schema.features:
        raise TableError(
            f"no column is left to predict '{shown(target)}' from: "
            + (
                "; ".join(f"'{shown(c.name)}' is {c.role} ({c.note})" for c in columns[:3])
                or "the table has only the target"
            )
            + ". Name the role of one, or add columns."
        )
    return schema


def _check_names(
    table: Table, target: str, sensitive: Sequence[str], roles: Mapping[str, str]
) -> None:
    for what, names in (("target", [target]), ("sensitive", sensitive), ("roles", list(roles))):
        for name in names:
            if name not in table.columns:
                hint = near(str(name), table.columns)
                raise TableError(f"{what}: there is no column '{shown(name)}'. {hint}")
    if target in sensitive:
        raise TableError(
            f"'{shown(target)}' is both the target and sensitive; name another target."
        )
    for name, role in roles.items():
        if role not in ROLES:
            raise TableError(
                f"roles: '{shown(role)}' for column '{shown(name)}' is not one of {', '.join(ROLES)}."
            )


def _target(
    table: Table, column: Any, task: str, notes: list[dict[str, str]]
) -> tuple[str, list[str] | None, NDArray[Any]]:
    """The task, the classes, and the target as class numbers or numbers."""
    label = shown(column.name)
    if not len(column):
        raise TableError(
            f"the target '{label}' has no value in {table.rows:,} rows; name another target."
        )
    if len(column) < 2:
        raise TableError(
            f"{shown(table.name)} has one row with a target; give at least two, better hundreds."
        )
    distinct = column.n_unique()
    if distinct == 1:
        raise TableError(
            f"the target '{label}' is '{shown(column[0], 30)}' in every row, so there is nothing to predict; "
            "name another target."
        )
    parsed = numbers(column)
    unread = parsed.null_count()
    if task == "auto":
        whole = bool((parsed == parsed.round(0)).all())
        fine = distinct > FEW_CLASSES and (not whole or distinct > 0.5 * len(column))
        number = not unread and (distinct > MOST_CLASSES or fine)
        task = "regression" if number else "classification"
        kind = (
            ("whole numbers" if whole else "numbers") if not unread else "not all of them numbers"
        )
        notes.append(_note("task", task, f"the target has {distinct:,} different values, {kind}"))
    if task == "regression":
        if unread:
            bad = column.filter(parsed.is_null()).head(1)
            raise TableError(
                f"the target '{label}' is to be a number, but {unread:,} values are not, such as "
                f"{listed(bad)}; correct them, name them as missing, or choose classification."
            )
        return task, None, np.asarray(parsed.to_numpy(), dtype=np.float64)
    text = as_text(column)
    if distinct > max(MOST_CLASSES, 0.5 * len(column)):
        raise TableError(
            f"the target '{label}' has {distinct:,} classes in {len(column):,} rows, too many to learn; "
            "choose regression if they are numbers, or name another target."
        )
    labels, codes = np.unique(text.to_numpy().astype(str), return_inverse=True)
    classes = [str(name) for name in labels]
    alike = [name for name in classes if name.rstrip(".") != name and name.rstrip(".") in classes]
    if alike:
        notes.append(
            _note("classes that differ by a dot", listed(alike), "kept apart; correct the file")
        )
    return task, classes, codes


def _with_leak(column: Column, values: Any, halves: Halves, notes: list[dict[str, str]]) -> Column:
    """The column with its leak score, said where it is a suspect."""
    if column.role == "numeric":
        array = values.to_numpy()  # NaN where missing
    elif column.role == "date":
        array = days(values, column.date_format)
    else:
        array = _codes(values)
    leak = halves.score(array)
    if leak is not None and leak >= SUSPECT:
        measure = "balanced accuracy" if halves.n_classes else "R²"
        how = f"this column alone predicts the target: {measure} {leak:.4f} on rows it was not learnt from"
        notes.append(_note("leak suspect", shown(column.name), how))
        return replace(column, leak=leak, note=f"{column.note}; {how}")
    if leak is not None and leak >= STRONG:
        how = (
            f"close to a leak: alone it reaches {leak:.3f}; is it known at the time of prediction?"
        )
        notes.append(_note("strong column", shown(column.name), how))
    return replace(column, leak=leak)


def _codes(values: Any) -> NDArray[np.float64]:
    import polars as pl

    ranks = as_text(values).cast(pl.Categorical).to_physical().cast(pl.Float64)
    return np.asarray(ranks.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def labelled(table: Table, schema: Schema) -> Table:
    """The rows of a table that have a target, in their order; :func:`propose_schema` says how many do not."""
    column = _column(table, schema.target)
    return table if not column.null_count() else table.take(np.flatnonzero(column.is_not_null()))


def target_values(table: Table, schema: Schema) -> NDArray[Any]:
    """The target of the rows that have one (:func:`labelled`): text labels, or float64 for regression.

    Examples
    --------
    >>> from surefit.data import propose_schema, read_table, target_values
    >>> table = read_table({"x": [1.0, 2.5, 3.0, 4.0], "y": ["a", "b", None, "a"]})
    >>> target_values(table, propose_schema(table, "y"))
    array(['a', 'b', 'a'], dtype='<U1')
    """
    column = _column(table, schema.target).drop_nulls()
    if schema.task == "classification":
        return np.asarray(as_text(column).to_list(), dtype=np.str_)
    parsed = numbers(column)
    if parsed.null_count():
        bad = column.filter(parsed.is_null()).head(1)
        raise TableError(
            f"the target '{shown(schema.target)}' is a number, but {parsed.null_count():,} values are not, "
            f"such as {listed(bad)}; correct them or name them as missing."
        )
    return np.asarray(parsed.to_numpy(), dtype=np.float64)


def _column(table: Table, name: str) -> Any:
    if name not in table.columns:
        raise TableError(f"there is no column '{shown(name)}'. {near(name, table.columns)}")
    return table.frame.get_column(name)


def _note(what: str, value: str, how: str) -> dict[str, str]:
    return {"what": what, "value": value, "how": how}
