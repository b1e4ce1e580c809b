"""Fits on the training part, measured on the hold-out: the shipped model, the finalists, the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import TableError
from .facts import score_name
from .losses import TableLoss
from .model import TableModel
from .plan import Candidate
from .prepare import Rows
from .reference import NAME, fit_reference
from .search import ERRORS, Trial, best_of, fit_quietly
from .sections import loss_of
from .watch import Watch

__all__ = ["add_reference", "final_fit", "finalists", "log_of", "measure", "measure_finalists"]

Array = NDArray[np.float64]


def final_fit(candidate: Candidate, X: Array, y: NDArray[Any]) -> Any:
    """The shipped model; what its certificate says of it is part of ours, so it need not warn by itself."""
    try:
        return fit_quietly(candidate, X, y, certify=True)
    except ERRORS as error:
        raise TableError(f"{candidate.name} could not be fitted: {error}") from error


def measure(model: TableModel, fitted: Any, X: Array, rows: Rows) -> tuple[float, ...]:
    """Mean, variance, least and largest loss of a fitted estimator on the units of the hold-out."""
    loss = loss_of(model)
    raw = np.asarray(fitted.predict(X))
    predicted = raw if model.task == "classification" else raw * model.scale_ + model.centre_
    return loss.evidence(rows.means(loss.rows(rows.y[rows.holdout], predicted)))


def finalists(trials: list[Trial], chosen: Trial) -> list[Trial]:
    """The best trial of each family but the chosen one's, the best first."""
    kinds = {trial.candidate.family for trial in trials} - {chosen.candidate.family}
    best = [best_of([t for t in trials if t.candidate.family == kind]) for kind in kinds]
    return sorted((t for t in best if t is not None), key=lambda trial: trial.loss)


def measure_finalists(
    model: TableModel,
    trials: list[Trial],
    chosen: Trial,
    X_train: Array,
    X_hold: Array,
    rows: Rows,
    y: NDArray[Any],
    watch: Watch,
) -> dict[int, tuple[float, ...]]:
    """What each finalist loses on the hold-out, as far as there is time to fit it."""
    measured = {}
    for trial in finalists(trials, chosen):
        cost = trial.seconds / max(1, len(trial.losses)) * 1.5

        def work(trial: Trial = trial) -> Any:
            other = fit_quietly(trial.candidate, X_train, y[rows.train])
            return measure(model, other, X_hold, rows)

        name = f"measuring {trial.candidate.name}"
        evidence = watch.optional(name, work, seconds=cost, share=0.75)
        if evidence is not None:
            measured[trials.index(trial)] = evidence
    return measured


def add_reference(
    model: TableModel,
    rows: Rows,
    X_train: Array,
    X_hold: Array,
    y: NDArray[Any],
    measured: dict[int, tuple[float, ...]],
    watch: Watch,
) -> None:
    """Gradient boosting, measured like the others and marked as uncertified."""

    def work() -> Any:
        return watch.timed(
            lambda: measure(
                model, fit_reference(model.encoder_, X_train, y[rows.train], model), X_hold, rows
            )
        )

    found = watch.optional(f"measuring {NAME}", work, seconds=1e-4 * len(X_train), share=0.9)
    if found is None:
        return
    evidence, seconds = found
    measured[len(model.candidates_)] = evidence
    model.candidates_.append(
        {
            "name": NAME,
            "family": "boosting",
            "params": {},
            "value": None,
            "score": None,
            "score_name": score_name(model.task),
            "seconds": round(seconds, 4),
            "status": "uncertified reference",
            "tried": False,
            "holdout": None,
            "certified": False,
        }
    )


def log_of(trials: list[Trial], loss: TableLoss, scale: float) -> list[dict[str, Any]]:
    """The trials as plain data, losses in the unit of the target."""
    return [
        {
            "name": trial.candidate.name,
            "family": trial.candidate.family,
            "params": dict(trial.candidate.params),
            "value": trial.candidate.value,
            "score": trial.loss * scale if trial.tried else None,
            "score_name": score_name(loss.task),
            "seconds": round(trial.seconds, 4),
            "status": trial.status,
            "tried": trial.tried,
            "holdout": None,
            "certified": True,
        }
        for trial in trials
    ]
