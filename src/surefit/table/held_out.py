"""The sections that rest on the hold-out: generalisation, robustness and fairness, and what is withheld.

Fit and verification make them by the same function. Robustness and fairness are about single rows: they read
one row of each independent unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim
from .fairness import fairness
from .independence import respected
from .model import TableModel
from .prepare import Rows
from .robustness import robustness
from .sections import generalisation, withdrawn
from .watch import Watch

__all__ = ["held_out"]

Array = NDArray[np.float64]


def held_out(
    model: TableModel,
    rows: Rows,
    X: Array,
    X_train: Array,
    measured: dict[int, tuple[float, ...]],
    watch: Watch,
) -> tuple[dict[str, list[Claim]], dict[str, Any]]:
    """Claims by section, and what the report draws of them; ``X`` are the encoded rows of the hold-out."""
    sections: dict[str, list[Claim]] = {"fairness": []}
    sections["generalisation"], evidence = generalisation(model, rows, X, measured)
    single = rows.one_a_unit(model.seed)
    X_single = X[np.searchsorted(rows.holdout, single.holdout)]
    truth = single.y[single.holdout]
    sections["robustness"], more = robustness(model, X_single, truth, X_train, watch)
    evidence |= more
    if model.sensitive:
        sections["fairness"], more = fairness(model, single, X_single, X_train, watch)
        evidence |= more
    if model.refit:
        return {name: withdrawn(name, claims) for name, claims in sections.items()}, evidence
    sections = {name: respected(model, claims) for name, claims in sections.items()}
    return sections, _without_limits(evidence) if model.units_["why"] else evidence


def _without_limits(evidence: dict[str, Any]) -> dict[str, Any]:
    """The pictures with no interval in them, where the rows may not be independent."""
    kept = {name: value for name, value in evidence.items() if name != "fairness"}
    if "calibration" in kept:
        kept["calibration"] = [
            {**part, "rate_low": 0.0, "rate_high": 1.0} for part in kept["calibration"]
        ]
    if "robustness" in kept:
        steps = len(kept["robustness"]["eps"])
        kept["robustness"] = {
            **kept["robustness"],
            "low": [0.0] * steps,
            "high": [1.0] * steps,
        }
    return kept
