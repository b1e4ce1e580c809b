"""Which rows are independent, and in what words a statistical claim says so.

:func:`treat_rows` is asked before a split is drawn and again by whoever verifies it; it sees the data and
what the user said, and nothing else.

* Rows that repeat each other, where chance does not explain it, form a group, whatever the user says.
* With ``groups``, rows of one group form a group.
* Near repeats, and columns that look like the number of a person or a place, leave the claims undecided,
  until the user gives groups or says that rows are independent.
* Else rows are taken to be independent, which the claim says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .identifiers import find_identifiers
from .near_repeats import find_near_repeats
from .repeats import find_repeats

__all__ = ["INDEPENDENT", "Remedy", "Rows", "check_labels", "join_labels", "treat_rows"]

Labels = NDArray[np.intp]
INDEPENDENT = "rows drawn independently from one distribution"


@dataclass(frozen=True)
class Remedy:
    """How a caller spells the two ways out, for its messages."""

    groups: str = "give groups= (the patient, the customer, the place of each row)"
    independent: str = "rows_are_independent=True"


@dataclass(frozen=True)
class Rows:
    """How the rows of a table are to be treated.

    Attributes
    ----------
    kind : str
        ``"independent"``, ``"grouped"`` (by the user), ``"repeats"`` (grouped by what was found) or
        ``"undecided"``.
    labels : ndarray or None
        The group of each row; ``None`` where each row is its own.
    assumed : str
        The condition of a claim, such as "rows drawn independently from one distribution".
    why : str
        Why no claim can be made, with the remedy; empty unless undecided.
    """

    kind: str
    labels: Labels | None
    assumed: str
    why: str = ""

    @property
    def groups(self) -> int:
        """How many groups there are; 0 where rows are not grouped."""
        return 0 if self.labels is None else int(self.labels.max(initial=-1)) + 1

    @property
    def grouped(self) -> bool:
        """Whether some group has more than one row."""
        return self.labels is not None


def treat_rows(
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    grouped_by: str = "",
    independent: bool = False,
    names: Sequence[str] | None = None,
    columns: Any = None,
    remedy: Remedy | None = None,
    seed: int = 0,
) -> Rows:
    """Decide how rows are treated, from the data and what the user said.

    Parameters
    ----------
    X, y : array-like
        All rows, before any split.
    groups : array-like of shape (rows,), default=None
        The group of each row, as the user gave it.
    grouped_by : str
        What a group is called, such as the name of a column.
    independent : bool
        Whether the user says that rows are independent, near repeats and numbers of persons notwithstanding.
    names, columns : sequence of str, iterable of array
        Columns in which numbers of persons and places are looked for; by default those of X.
    remedy : Remedy, default=None
        How the caller spells the ways out.

    Returns
    -------
    Rows

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> treat_rows(X).kind
    'independent'
    >>> rows = treat_rows(np.repeat(X, 2, axis=0))
    >>> rows.kind, rows.groups
    ('repeats', 100)
    """
    remedy = remedy or Remedy()
    repeats = find_repeats(X, y, seed=seed)
    found = f"; {repeats.words}" if repeats.words else ""
    if groups is not None:
        labels = check_labels(groups, repeats.rows)
        labels = labels if repeats.explained else join_labels(labels, repeats.labels)
        many = int(labels.max(initial=-1)) + 1
        if many == repeats.rows:
            return Rows("grouped", None, f"{INDEPENDENT}, each with a group of its own")
        by = f" by {grouped_by}" if grouped_by else ""
        return Rows("grouped", labels, f"{many:,} groups{by}, independent of each other{found}")
    why = _suspicion(X, names, columns, repeats.labels, seed)
    if why and not independent:
        why = (
            f"{why}: nothing is claimed about new rows, as these may not be independent. If they belong "
            f"together, {remedy.groups}; if not, say {remedy.independent}"
        )
        return Rows("undecided", None if repeats.explained else repeats.labels, INDEPENDENT, why)
    found += f"; independent as was said when it was fitted, though {why}" if why else ""
    if not repeats.explained:
        words = f"{repeats.groups:,} groups of equal rows, independent of each other"
        return Rows("repeats", repeats.labels, f"{words}{found}")
    return Rows("independent", None, f"{INDEPENDENT}{found}")


def check_labels(groups: Any, rows: int) -> Labels:
    """Groups as numbers, in the order in which they appear; a missing group is a group of its own."""
    values = groups.to_numpy() if hasattr(groups, "to_numpy") else np.asarray(groups)
    if values.ndim != 1 or len(values) != rows:
        raise ValueError(
            f"groups must have one entry a row, got shape {values.shape} for {rows} rows."
        )
    places: dict[Any, int] = {}
    labels = np.empty(rows, dtype=np.intp)
    for i, value in enumerate(values.tolist()):
        key = ("row", i) if value is None or value != value else ("group", value)
        labels[i] = places.setdefault(key, len(places))
    return labels


def join_labels(first: Labels, second: Labels) -> Labels:
    """The finest grouping in which rows together in either are together."""
    rows = np.arange(len(first))
    start = np.concatenate([rows, rows])
    end = np.concatenate([len(rows) + first, 2 * len(rows) + second])
    graph = sparse.coo_array((np.ones(len(start)), (start, end)), shape=(3 * len(rows),) * 2)
    _, parts = connected_components(graph, directed=False)
    return check_labels(parts[: len(rows)], len(rows))


def _suspicion(X: Any, names: Sequence[str] | None, columns: Any, labels: Labels, seed: int) -> str:
    """What speaks against independent rows, copies apart, or ""."""
    if columns is None:
        names, columns = _columns(X)
    once = np.unique(labels, return_index=True)[1]  # copies would make any column repeat
    columns = (np.asarray(values)[once] for values in columns)
    found = [one.words for one in find_identifiers(names, columns)]
    near = find_near_repeats(X, seed=seed)
    return "; ".join([*found, near.words] if near.found else found)


def _columns(X: Any) -> tuple[Sequence[str] | None, Any]:
    """Names and columns of a table; none of a sparse matrix, a list or a tensor."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return [str(name) for name in X.columns], (X[name] for name in X.columns)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "iufOUS":
        return None, X.T
    return None, ()
