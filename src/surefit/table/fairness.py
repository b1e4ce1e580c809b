"""Fairness of a table model on the hold-out: the audit, proxies of the sensitive column, what a remedy costs.

Decisions are "predicted to be the positive class"; of a regression, "predicted above the median of the
training targets", which is said. The sensitive columns are not among the model's inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from .prepare import Rows
from .sections import score_of
from .watch import Watch

__all__ = ["fairness"]

Array = NDArray[np.float64]


def fairness(
    model: Any, rows: Rows, X: Array, X_train: Array, watch: Watch
) -> tuple[list[Claim], dict[str, Any]]:
    """Claims and numbers for every sensitive column."""
    from ..fair import audit

    truth, decision = _decisions(model, rows, X)
    score = score_of(model, X)
    groups = {name: rows.column(name, rows.holdout) for name in model.sensitive}
    found = audit(truth, decision, score, sensitive=groups, positive=1, delta=model.delta)
    claims, records = list(found.claims), _records(found)
    for record in records:
        if record["attribute"] in groups and len(record["groups"]) > 1:
            claim, record["proxies"] = _proxies(model, rows, X_train, record["attribute"])
            claims.append(claim)
    return claims, {"fairness": records}


def _proxies(model: Any, rows: Rows, X: Array, name: str) -> tuple[Claim, dict[str, Any]]:
    """How well the columns that the model reads tell the sensitive one (FAIR-1), on the training part.

    The classifier of the sensitive column is fitted on a part of these rows and tested on the rest, so its
    limits are those of rows that its fit has not seen.
    """
    from ..fair import proxies

    used = np.arange(len(rows.y)) if model.refit else rows.train
    found = proxies(
        X,
        rows.column(name, used),
        feature_names=[str(label) for label in model.encoder_.get_feature_names_out()],
        groups_of_features=model.encoder_.blocks_,
        delta=model.delta,
        random_state=model.seed,
    )
    title, words = f"proxies ({name})", found["statement"]
    if found["error_low"] is None:  # a group too rare to split
        claim = Claim.undecided(title, words, Kind.STATISTICAL, "FAIR-1")
    else:
        length = float(found["error_high"] - found["error_low"])
        claim = Claim.check(title, words, Kind.STATISTICAL, length, 1.0, "FAIR-1")
    columns = [
        {"name": column["name"], "strength": column["strength"]} for column in found["columns"][:10]
    ]
    return claim, {"words": words, "columns": columns}


RATES = {"selection": "selection_rate"}  # names of the report, where they differ


def _records(found: Any) -> list[dict[str, Any]]:
    """The audit, an attribute at a time, as the report reads it."""
    return [
        {
            "attribute": name,
            "groups": [_group(found, row) for row in found.table if row["attribute"] == name],
            "gaps": {
                criterion: {
                    "gap": gap["observed"],
                    "low": gap["low"],
                    "high": gap["high"],
                    "between": gap["groups"],
                    "why": gap["why"],
                }
                for criterion, gap in gaps.items()
                if criterion in ("independence", "separation", "sufficiency")
            },
            "incompatibility": {"words": _incompatible(found.incompatibility.get(name))},
            "calibration": (found.calibration or {}).get("attributes", {}).get(name),
        }
        for name, gaps in found.gaps.items()
    ]


def _group(found: Any, row: dict[str, Any]) -> dict[str, Any]:
    why = [
        a["why"]
        for a in found.abstained
        if (a["attribute"], a["group"]) == (row["attribute"], row["group"])
    ]
    return {
        "group": row["group"],
        "n": row["n"],
        "abstained": not row["measured"],
        "why": why[0] if why else "",
        "rates": {
            RATES.get(rate, rate): {key: values[key] for key in ("value", "low", "high", "n")}
            for rate, values in row["rates"].items()
        },
    }


def _incompatible(record: dict[str, Any] | None) -> list[str]:
    words = (record or {}).get("statement", [])
    return [words] if isinstance(words, str) else list(words)


def _decisions(model: Any, rows: Rows, X: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Truth and decision as 0 and 1."""
    held = rows.y[rows.holdout]
    if model.task == "regression":
        middle = float(np.median(rows.y[rows.train]))
        return (held > middle).astype(int), (model.predict_encoded(X) > middle).astype(int)
    code = model.positive_code
    return (held == code).astype(int), (np.asarray(model.model_.predict(X)) == code).astype(int)
