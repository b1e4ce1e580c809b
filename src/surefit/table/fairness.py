"""Fairness of a table model on the hold-out: the audit, proxies of the sensitive column, what a remedy costs.

Decisions are "predicted to be the positive class"; of a regression, "predicted above the median of the
training targets". Every sentence says which. The sensitive columns are not among the model's inputs. Of a
model that was refitted on all rows nothing is said: it has seen the hold-out.

Each criterion has a verdict against ``fairness_tolerance``. A violated criterion is a property of the model
that was measured correctly: no claim fails, and nothing calls it a success.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..data import shown
from .prepare import Rows
from .sections import score_of
from .watch import Watch

__all__ = ["SHARES", "check_fairness_tolerance", "fairness"]

Array = NDArray[np.float64]
SHARES = {"audit": 0.5, "proxies": 0.25, "remedies": 0.25}  # of delta, so that all hold together


def check_fairness_tolerance(tolerance: Any) -> None:
    """Refuse a tolerance of the criteria that is not one, before the work."""
    from ..fair._audit_claims import check_tolerance

    check_tolerance(tolerance, "fairness_tolerance")


def fairness(
    model: Any, rows: Rows, X: Array, X_train: Array, watch: Watch
) -> tuple[list[Claim], dict[str, Any]]:
    """Claims and numbers for every sensitive column."""
    from ..fair import audit
    from ..fair._audit_claims import audit_claims, check_tolerance

    groups, claims = _groups(model, rows)
    if not groups:
        return claims, {}
    truth, decision, positive = _decisions(model, rows, X)
    score = score_of(model, X)
    delta = SHARES["audit"] * model.delta
    found = audit(truth, decision, score, sensitive=groups, positive=1, delta=delta)
    parts = found.gaps, found.calibration, found.incompatibility
    tolerance = check_tolerance(model.fairness_tolerance)
    claims += audit_claims(*parts, model.delta, tolerance, positive)
    records = _records(found, tolerance)
    for record in records:
        if record["attribute"] in groups and len(record["groups"]) > 1:
            claim, record["proxies"] = _proxies(model, rows, X, X_train, record["attribute"])
            claims.append(claim)
    return claims, {} if model.refit else {"fairness": records}


def _groups(model: Any, rows: Rows) -> tuple[dict[str, NDArray[Any]], list[Claim]]:
    """The sensitive columns of the hold-out, and what is said of one with too many values to be groups."""
    from ..fair.audit import MOST

    groups, claims = {}, []
    for name in model.sensitive:
        column = rows.column(name, rows.holdout)
        many = len(set(column.tolist()))
        if many <= MOST:
            groups[name] = column
            continue
        why = (
            f"'{shown(name)}' has {many:,} different values on the hold-out, more than {MOST:,}: these are "
            "no groups. Put the values into a few bins first"
        )
        claims.append(Claim.undecided(f"audit ({shown(name)})", why, Kind.STATISTICAL, "FAIR-1"))
    return groups, claims


def _proxies(
    model: Any, rows: Rows, X: Array, X_train: Array, name: str
) -> tuple[Claim, dict[str, Any]]:
    """How well the columns that the model reads tell the sensitive one (FAIR-1).

    The classifier of the sensitive column is fitted on the training rows and tested on the hold-out, so that
    its limits are those of rows that nothing has used, the encoder included. Columns are ranked by the
    training rows.
    """
    from ..fair import proxies
    from ..fair._audit_claims import WIDEST
    from ..fair.proxies import proxies_words

    used = np.arange(len(rows.y)) if model.refit else rows.train
    found = proxies(
        X_train,
        rows.column(name, used),
        feature_names=[str(label) for label in model.encoder_.get_feature_names_out()],
        groups_of_features=model.encoder_.blocks_,
        delta=SHARES["proxies"] * model.delta / len(model.sensitive),
        random_state=model.seed,
        test=(X, rows.column(name, rows.holdout)),
    )
    title, words = f"proxies ({shown(name)})", proxies_words(found, model.delta)
    if found["error_low"] is None:  # a group too rare to split
        claim = Claim.undecided(title, words, Kind.STATISTICAL, "FAIR-1")
    else:
        told, low, high = (found[f"balanced_{key}"] for key in ("accuracy", "low", "high"))
        kind = Kind.STATISTICAL
        claim = Claim.interval(title, words, kind, told, low, high, "FAIR-1", widest=WIDEST)
    columns = [
        {"name": column["name"], "strength": column["strength"]} for column in found["columns"][:10]
    ]
    return claim, {"words": words, "columns": columns}


RATES = {"selection": "selection_rate"}  # names of the report, where they differ


def _records(found: Any, tolerance: dict[str, float]) -> list[dict[str, Any]]:
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
                    "tolerance": tolerance[criterion],
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


def _decisions(model: Any, rows: Rows, X: Array) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Truth and decision as 0 and 1, and what 1 means."""
    held = rows.y[rows.holdout]
    if model.task == "regression":
        middle = float(np.median(rows.y[rows.train]))
        words = f"a '{shown(model.target)}' above {middle:.6g}, the median of the training rows"
        return (held > middle).astype(int), (model.predict_encoded(X) > middle).astype(int), words
    code = model.positive_code
    words = f"'{shown(model.classes_[code])}'"
    words += ", against the rest" if len(model.classes_) > 2 else ""
    decided = np.asarray(model.model_.predict(X)) == code
    return (held == code).astype(int), decided.astype(int), words
