"""Training part and hold-out: whole groups, drawn at random or by time.

Groups are numbers 0 to G-1, one a row; ``None`` where each row is its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

__all__ = ["check_times", "draw_parts", "latest_rows"]

Rows = NDArray[np.intp]


def draw_parts(
    n: int, labels: Rows | None, size: float | int, seed: int, classes: Any
) -> tuple[Rows, Rows]:
    """Training and test rows that the seed draws, each in order.

    Of groups, the same share is drawn. With ``classes``, each part has their frequencies; a group counts
    as its most frequent class.
    """
    if labels is None:
        rows = np.arange(n)
        train, test = train_test_split(rows, test_size=size, random_state=seed, stratify=classes)
        return np.sort(train), np.sort(test)
    groups = int(labels.max()) + 1
    if isinstance(size, int | np.integer):
        size = max(1, round(groups * int(size) / n))
    mostly = None if classes is None else _most_frequent(np.asarray(classes), labels)
    _, drawn = train_test_split(
        np.arange(groups), test_size=size, random_state=seed, stratify=mostly
    )
    inside = np.isin(labels, drawn)
    return np.flatnonzero(~inside), np.flatnonzero(inside)


def latest_rows(times: Any, labels: Rows | None, size: float | int) -> tuple[Rows, Rows]:
    """The past and the future: rows before a moment, and rows from it on.

    Rows of one moment stay together, and a group belongs to the future once one of its rows does: the
    training part has nothing that was recorded at or after the first moment of the future.
    """
    n = len(times)
    many = int(size) if isinstance(size, int | np.integer) else math.ceil(float(size) * n)
    moment = np.sort(times)[max(n - many, 0)]
    last = times
    if labels is not None:
        latest = np.full(int(labels.max()) + 1, times.min())
        np.maximum.at(latest, labels, times)
        last = latest[labels]
    future = last >= moment
    if future.all():
        raise ValueError(
            f"time leaves no rows to train on: test_size={size!r} reaches back to the first moment. Hold out "
            "fewer rows, or give times that tell more rows apart."
        )
    return np.flatnonzero(~future), np.flatnonzero(future)


def check_times(time: Any, rows: int) -> Rows:
    """Times as places in time, 0 for the first: numbers, dates, or texts that are all dates."""
    values = time.to_numpy() if hasattr(time, "to_numpy") else np.asarray(time)
    if values.ndim != 1 or len(values) != rows:
        raise ValueError(
            f"time must have one entry a row, got shape {values.shape} for {rows} rows."
        )
    if values.dtype.kind not in "iufMm":
        try:
            values = values.astype("datetime64[ns]")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"time must be numbers or dates (such as 2024-05-31), got {values[0]!r}: {error}."
            ) from error
    if (values != values).any():
        raise ValueError(
            "time has missing values: say when each row was recorded, or leave it out."
        )
    places: Rows = np.unique(values, return_inverse=True)[1].ravel()
    return places


def _most_frequent(classes: Any, labels: Rows) -> Any:
    """The most frequent class of each group; the first in order where several are."""
    known, codes = np.unique(classes, return_inverse=True)
    counts = np.zeros((int(labels.max()) + 1, len(known)), dtype=np.intp)
    np.add.at(counts, (labels, codes.ravel()), 1)
    return known[counts.argmax(axis=1)]
