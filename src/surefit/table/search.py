"""Cross-validation of the candidates on the training part, within a budget of time.

Preprocessing is learnt inside each fold, from the rows that the fold's models are fitted on. Candidates
come in the order of the plan, the first of each family before the second of any, so that a budget that runs
out has seen every family it could. Before a candidate whose cost grows faster than the rows is fitted on
all of them, it is fitted on a sample, and left out where the estimate exceeds what is left: a fit that has
begun cannot be stopped half way.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .losses import TableLoss
from .plan import Candidate
from .watch import Watch

__all__ = ["Fold", "Trial", "best_of", "fit_quietly", "search"]

PROBE = 2000  # rows of the sample that a dear candidate is tried on first
MANY = 20_000  # coefficients from which a fit by steps is dear
ERRORS = (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError, RuntimeError)


@dataclass(frozen=True)
class Fold:
    """Encoded rows: those to fit on, those to validate on."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    X_valid: NDArray[np.float64]
    y_valid: NDArray[Any]


@dataclass
class Trial:
    """What became of one candidate."""

    candidate: Candidate
    losses: list[float] = field(default_factory=list)
    train_losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    status: str = "not reached: no time left"

    @property
    def tried(self) -> bool:
        """Whether every fold was fitted."""
        return self.status == "tried"

    @property
    def loss(self) -> float:
        """Mean validation loss; infinite where not every fold was fitted."""
        return float(np.mean(self.losses)) if self.tried else math.inf


def fit_quietly(candidate: Candidate, X: Any, y: Any, *, certify: bool | str = False) -> Any:
    """The fitted model of a candidate; warnings of the many fits of a search are not for the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return candidate.make(columns=X.shape[1], certify=certify).fit(X, y)


def search(
    candidates: list[Candidate],
    folds: Callable[[int], Fold],
    n_folds: int,
    loss: TableLoss,
    watch: Watch,
    *,
    share: float = 0.5,
) -> list[Trial]:
    """Every candidate on every fold, as far as ``share`` of the time allows.

    Parameters
    ----------
    candidates : list of Candidate
    folds : callable
        The encoded rows of fold k.
    n_folds : int
    loss : TableLoss
    watch : Watch
    share : float
        Which share of the time the search may use.

    Returns
    -------
    list of Trial
        One a candidate, in the same order.
    """
    trials = [Trial(candidate) for candidate in candidates]
    known: dict[str, float] = {}  # seconds of a fit of the family on a whole fold
    try:
        with watch.breaking():
            for place, trial in enumerate(_cheap_first(trials, folds, loss)):
                if watch.interrupted:  # before the search began
                    break
                watch.say(f"trying {trial.candidate.name}", done=place / len(trials))
                _try(trial, place == 0, known, folds, n_folds, loss, watch, share)
    except KeyboardInterrupt:
        watch.interrupt()
    if watch.interrupted:
        for trial in trials:
            if trial.status.startswith("not reached"):
                trial.status = "not reached: interrupted"
    return trials


def _try(
    trial: Trial,
    first: bool,
    known: dict[str, float],
    folds: Callable[[int], Fold],
    n_folds: int,
    loss: TableLoss,
    watch: Watch,
    share: float,
) -> None:
    """One candidate, if there is time; the first is begun in any case, to know what a fit costs."""
    family = trial.candidate.family
    if not first and watch.left(share) <= 0:
        return  # not even the sample that the cost is estimated from
    if family not in known:
        known[family] = _cost(trial, folds(0), loss)
    if trial.status.startswith("failed"):
        return
    needed, left = known[family] * n_folds, watch.left(share)
    if not first and needed > left:
        there = _brief(max(0.0, left))
        trial.status = f"left out: about {_brief(needed)} s were needed and {there} s were left"
        return
    _cross_validate(trial, folds, n_folds, loss, watch, max(share, 0.6) if first else share)
    if trial.losses:
        known[family] = trial.seconds / len(trial.losses)


def _weights(fold: Fold, loss: TableLoss) -> int:
    """How many coefficients a linear model has: one for a column, and for each class of several."""
    classes = len(np.unique(fold.y)) if loss.task == "classification" else 1
    return int(fold.X.shape[1] * (classes if classes > 2 else 1))


def _cheap_first(trials: list[Trial], folds: Callable[[int], Fold], loss: TableLoss) -> list[Trial]:
    """The order of trying: that of the plan, but the closed form first where other fits are dear."""
    if _weights(folds(0), loss) < MANY:
        return trials
    return sorted(trials, key=lambda trial: trial.candidate.family != "linear")


def _cost(trial: Trial, fold: Fold, loss: TableLoss) -> float:
    """Seconds that a fit on a whole fold may take; 0 where it is too short to matter."""
    if trial.candidate.kind.power > 1:
        return _probe(trial, fold, loss)
    weights = _weights(fold, loss)
    if weights < MANY or trial.candidate.family == "linear":
        return 0.0
    return 4e-7 * len(fold.X) * weights  # a hundred passes over the rows, for each coefficient


def _brief(seconds: float) -> str:
    """Seconds with one digit after the point, where there are few of them."""
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def best_of(trials: list[Trial]) -> Trial | None:
    """The trial with the least validation loss, the earliest of equals; ``None`` where none was tried."""
    tried = [trial for trial in trials if trial.tried]
    return min(tried, key=lambda trial: trial.loss) if tried else None


def _cross_validate(
    trial: Trial,
    folds: Callable[[int], Fold],
    n_folds: int,
    loss: TableLoss,
    watch: Watch,
    share: float,
) -> None:
    """Fit and validate one candidate on all folds, unless the time runs out on the way."""
    for k in range(n_folds):
        if k and trial.seconds / k > watch.left(share):
            trial.status = f"stopped: no time left after {k} of {n_folds} folds"
            return
        fold = folds(k)
        try:
            result, seconds = watch.timed(functools.partial(_one_fold, trial, fold, loss))
        except ERRORS as error:
            trial.status = f"failed: {str(error).partition(chr(10))[0][:200]}"
            return
        trial.seconds += seconds
        trial.losses.append(result[0])
        trial.train_losses.append(result[1])
    trial.status = "tried"


def _one_fold(trial: Trial, fold: Fold, loss: TableLoss) -> tuple[float, float]:
    """Validation loss and, where it is cheap, training loss."""
    model = fit_quietly(trial.candidate, fold.X, fold.y)
    valid = loss.mean(fold.y_valid, model.predict(fold.X_valid))
    if trial.candidate.kind.power > 1:
        return valid, math.nan
    return valid, loss.mean(fold.y, model.predict(fold.X))


def _probe(trial: Trial, fold: Fold, loss: TableLoss) -> float:
    """Seconds that a fit on the whole fold will take, from one on a sample of it."""
    n = len(fold.X)
    if n <= 2 * PROBE:
        return 0.0
    rows = np.linspace(0, n - 1, PROBE).astype(np.intp)  # spread: a table may be sorted
    valid = slice(0, max(1, PROBE * len(fold.X_valid) // n))
    part = Fold(fold.X[rows], fold.y[rows], fold.X_valid[valid], fold.y_valid[valid])
    watch = Watch()
    try:
        _one_fold(trial, part, loss)  # loads what has to be loaded
        _, seconds = watch.timed(lambda: _one_fold(trial, part, loss))
    except ERRORS as error:
        trial.status = f"failed: {str(error).partition(chr(10))[0][:200]}"
        return 0.0
    return float(seconds * (n / PROBE) ** trial.candidate.kind.power)
