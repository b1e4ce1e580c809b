"""What each fairness remedy would cost on this table, measured on the hold-out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fairness import SHARES
from .prepare import Rows

__all__ = ["remedies"]

_WORDS = {"before": "before training", "in": "in training", "after": "after training"}


def remedies(
    model: Any, rows: Rows, X_train: NDArray[np.float64], y: NDArray[Any]
) -> list[dict[str, Any]] | None:
    """Error and gaps of the model as it is and with each remedy, for the first sensitive column.

    ``None`` where nothing can be compared: the model was refitted on all rows, or the column has one group.
    """
    from ..fair import compare_remedies

    name = model.sensitive[0]
    groups = rows.column(name, rows.train), rows.column(name, rows.holdout)
    if model.refit or len(np.unique(groups[0].astype(str))) < 2:
        return None
    unseen = int((~np.isin(groups[1].astype(str), groups[0].astype(str))).sum())
    less = f"; without {unseen} rows of groups that the training rows lack" if unseen else ""
    X_hold = model.encoder_.transform(rows.table.frame[rows.holdout])
    found = compare_remedies(
        X_train,
        y[rows.train],
        groups[0],
        X_hold,
        y[rows.holdout],
        groups[1],
        model=model.model_,
        delta=SHARES["remedies"] * model.delta,
        random_state=model.seed,
    )
    return [
        {
            "remedy": row["remedy"],
            "attribute": name,
            "error": row["error"],
            "error_low": row["error_low"],
            "error_high": row["error_high"],
            **{key: row[key]["observed"] for key in ("independence", "separation", "sufficiency")},
            "words": (row["failed"] or _WORDS.get(row["what"], row["what"])) + less,
        }
        for row in found
    ]
