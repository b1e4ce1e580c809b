"""What the report draws besides the claims: curves, coefficients, the cost of fairness remedies.

A drawing is left out where there is no time for it. :mod:`surefit.table.verifying` makes each one that was
recorded again, so that a picture cannot be altered either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .coefficients import coefficients
from .curves import learning_curve, validation_curve
from .losses import TableLoss
from .model import TableModel
from .objective import objective_curve
from .prepare import Folds, Rows
from .remedies import remedies
from .search import Trial
from .watch import Watch

__all__ = ["drawings"]


def drawings(
    model: TableModel,
    rows: Rows,
    trials: list[Trial],
    chosen: Trial,
    folds: Folds,
    X_train: NDArray[np.float64],
    y: NDArray[Any],
    watch: Watch,
) -> dict[str, Callable[[], Any]]:
    """Name of each drawing, and what makes it; ``X_train`` are the rows that the model was fitted on."""
    targets = y if model.refit else y[rows.train]
    loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    candidate = chosen.candidate
    jobs: dict[str, Callable[[], Any]] = {
        "objective": lambda: objective_curve(candidate, model.model_, X_train, targets, watch),
        "coefficients": lambda: coefficients(model, X_train, targets),
        "learning_curve": lambda: learning_curve(candidate, folds.largest, loss, watch),
        "validation_curve": lambda: validation_curve(trials, chosen),
    }
    if (
        model.sensitive
        and not model.units_["why"]
        and model.task == "classification"
        and len(model.classes_) == 2
    ):
        jobs["remedies"] = lambda: remedies(model, rows.one_a_unit(model.seed), X_train, y)
    return jobs
