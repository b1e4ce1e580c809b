"""Learning and validation curves: loss of the chosen model against the number of rows and its parameter.

They are pictures, not claims: measured inside the training part, on one fold (learning) or on the folds of
the search (validation).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .losses import TableLoss
from .plan import Candidate
from .search import Fold, Trial, fit_quietly
from .watch import Watch

__all__ = ["learning_curve", "validation_curve"]


def learning_curve(
    candidate: Candidate, fold: Fold, loss: TableLoss, watch: Watch, *, share: float = 0.9
) -> dict[str, Any] | None:
    """Loss on the rows fitted on, and on those of a fold, for growing shares of the training rows."""
    n = len(fold.X)
    order = np.random.RandomState(0).permutation(n)
    rows, train, valid = [], [], []
    for part in (0.05, 0.1, 0.2, 0.4, 0.7, 1.0):
        size = round(n * part)
        if size < 20 or watch.left(share) <= 0:
            continue
        chosen = order[:size]
        if loss.task == "classification" and len(np.unique(fold.y[chosen])) < len(
            np.unique(fold.y)
        ):
            continue
        seen = chosen[:2000]  # the mean over at most so many rows is near enough for a curve
        try:
            model = fit_quietly(candidate, fold.X[chosen], fold.y[chosen])
            losses = (
                loss.mean(fold.y[seen], model.predict(fold.X[seen])),
                loss.mean(fold.y_valid, model.predict(fold.X_valid)),
            )
        except (ValueError, ArithmeticError):  # fewer rows than neighbours, for instance
            continue
        rows.append(int(size))
        train.append(losses[0])
        valid.append(losses[1])
    if len(rows) < 2:
        return None
    return {"rows": rows, "train": train, "validation": valid, "name": loss.words}


def validation_curve(trials: list[Trial], chosen: Trial) -> dict[str, Any] | None:
    """Mean loss of the folds for each value of the parameter that was tried of the chosen family."""
    tried = [t for t in trials if t.tried and t.candidate.family == chosen.candidate.family]
    tried.sort(key=lambda t: t.candidate.value)
    if len(tried) < 2:
        return None
    train = [float(np.mean(t.train_losses)) for t in tried]
    return {
        "parameter": chosen.candidate.kind.parameter,
        "values": [float(t.candidate.value) for t in tried],
        "train": [] if any(map(math.isnan, train)) else train,
        "validation": [t.loss for t in tried],
        "chosen": float(chosen.candidate.value),
        "log": True,
        "name": "mean loss over the folds",
    }
