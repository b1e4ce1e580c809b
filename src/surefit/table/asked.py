"""What was asked for, checked against the table: names, classes, shares, the target's scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Schema, Table, TableError, propose_schema, shown
from .model import TableModel
from .prepare import Rows
from .units import NOTHING_SAID, Asked

__all__ = [
    "check_numbers",
    "check_parts",
    "classes_of",
    "known",
    "notes_of",
    "parts_of",
    "scale_target",
    "schema_of",
]


def check_numbers(holdout: float, delta: float, seconds: float, seed: int) -> None:
    """Shares, probabilities, seconds and seeds that make sense."""
    if not 0.0 < holdout < 1.0:
        raise ValueError(
            f"holdout must lie between 0 and 1, got {holdout!r}; 0.25 holds out a quarter."
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}; 0.05 is 95 % confidence.")
    if not seconds > 0:
        raise ValueError(f"time must be a positive number of seconds, got {seconds!r}.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must lie between 0 and 2**32 - 1, got {seed!r}.")


def known(table: Table, names: Sequence[str], argument: str) -> list[str]:
    """The names, if the table has them all."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(shown(column) for column in table.columns[:10])
            raise TableError(
                f"{argument}: there is no column '{shown(name)}'; the columns are {known}."
            )
    return list(names)


def schema_of(
    table: Table,
    target: str,
    sensitive: Sequence[str],
    drop: Sequence[str],
    task: str,
    roles: dict[str, str] | None,
    seed: int,
    asked: Asked = NOTHING_SAID,
) -> tuple[Table, Schema, list[str]]:
    """The table without the columns to drop, its schema, and what the user should know."""
    dropped = known(table, drop, "drop")
    _check_asked(table, target, dropped, roles, asked)
    if target in dropped:
        raise TableError(f"drop: '{shown(target)}' is the target and cannot be left out.")
    kept = [name for name in table.columns if name not in dropped]
    table = table.select(kept) if dropped else table
    read = [name for name in sensitive if dict(roles or {}).get(name, "ignored") != "ignored"]
    if read:
        raise TableError(
            f"roles: '{shown(read[0])}' is sensitive, and the model does not read sensitive columns; give it "
            "no role, or do not name it as sensitive."
        )
    parts = parts_of(sensitive, asked, roles)
    schema = propose_schema(
        table, target, sensitive=tuple(sensitive), task=task, roles=parts, seed=seed
    )
    notes = notes_of(schema)
    if dropped:
        notes.append(f"left out on request: {', '.join(shown(name) for name in dropped)}")
    return table, schema, notes


def parts_of(
    sensitive: Sequence[str], asked: Asked, roles: dict[str, str] | None
) -> dict[str, str]:
    """Roles that are known before the columns are looked at; the model does not read groups and times."""
    return dict.fromkeys([*sensitive, *asked.columns], "ignored") | dict(roles or {})


def _check_asked(
    table: Table, target: str, dropped: list[str], roles: dict[str, str] | None, asked: Asked
) -> None:
    """Columns of groups and times that are there, and are used for nothing else."""
    if asked.group is not None and asked.rows_are_independent:
        raise TableError(
            f"group: got '{shown(asked.group)}' and rows_are_independent=True; rows that belong together are "
            "not independent. Give one of the two."
        )
    for what, name in (("group", asked.group), ("time_column", asked.time_column)):
        if name is None:
            continue
        known(table, [name], what)
        if name == target or name in dropped:
            use = "the target" if name == target else "left out on request"
            raise TableError(f"{what}: '{shown(name)}' is {use}; name another column.")
    if asked.group is not None and dict(roles or {}).get(asked.group, "ignored") != "ignored":
        raise TableError(
            f"roles: '{shown(asked.group)}' tells which rows belong together, and rows to come belong to new "
            "groups: the model cannot learn from it. Give it no role."
        )


def notes_of(schema: Schema) -> list[str]:
    """What the user should know of the schema, a line a note."""
    return [f"{note['what']}: {note['value']} ({note['how']})" for note in schema.notes]


def classes_of(schema: Schema, positive: str | None) -> list[str] | None:
    """The classes in the order of the alphabet; ``None`` for a regression."""
    if schema.task == "regression":
        if positive is not None:
            raise TableError(f"positive: got '{shown(positive)}', but the task is a regression.")
        return None
    classes = list(schema.classes or [])
    if positive is not None and positive not in classes:
        names = ", ".join(shown(label) for label in classes[:10])
        raise TableError(
            f"positive: '{shown(positive)}' is not a class of the target; choose among {names}."
        )
    return classes


def check_parts(rows: Rows, schema: Schema, classes: list[str] | None) -> None:
    """Every class must be there to be learnt, often enough for folds."""
    if classes is None:
        return
    counts = np.bincount(rows.y[rows.train], minlength=len(classes))
    rare = [f"'{shown(classes[k])}' ({counts[k]})" for k in np.flatnonzero(counts < 2)]
    if rare:
        raise TableError(
            f"the target '{shown(schema.target)}' has classes with fewer than 2 rows to learn from: "
            f"{', '.join(rare[:5])}. Join rare classes, leave their rows out, or use --task regression."
        )


def scale_target(model: TableModel, rows: Rows) -> NDArray[Any]:
    """Targets as models see them: codes, or numbers with mean 0 and variance 1 on the training part."""
    model.centre_, model.scale_, model.loss_width_ = 0.0, 1.0, 1.0
    if model.task == "classification":
        return rows.y
    known = rows.y[rows.train]
    model.loss_width_ = float(known.max() - known.min())
    if not model.loss_width_ > 0:
        raise TableError(
            f"the target '{shown(model.target)}' has one value only: nothing can be learnt."
        )
    model.centre_, model.scale_ = float(known.mean()), float(known.std())
    return np.asarray((rows.y - model.centre_) / model.scale_)
