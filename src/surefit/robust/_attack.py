"""What every attack does first and last: leave rows alone that are wrong already, verify success."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, is_torch, like, to_numpy
from .scores import Scores, autograd, dense_rows, scores
from .threat import Threat

__all__ = ["AttackResult", "Task", "begin", "difference_gradient", "finish"]

Array = NDArray[np.float64]
_ALPHA = 1e-4  # of the differences that stand in for a gradient
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class AttackResult:
    """What an attack found, row by row.

    Attributes
    ----------
    x_adv : array of shape (n, d)
        A point of the allowed set for each row: the best one found. Rows that were wrong already are
        unchanged.
    success : array of bool of shape (n,)
        Whether the model's own prediction there differs from the label.
    loss : array of shape (n,)
        log(1 + exp(-margin)) there; NaN for a model that gives labels only.
    queries : array of int of shape (n,)
        Rows that the model was asked about, besides the check of success. Closed-form gradients ask nothing.
    """

    x_adv: Any
    success: NDArray[np.bool_]
    loss: Array
    queries: NDArray[np.int64]

    @property
    def rate(self) -> float:
        """The share of rows on which the model is wrong now: the risk at least."""
        return float(self.success.mean())

    def __repr__(self) -> str:
        words = f"{int(self.success.sum())} of {len(self.success)} rows wrong"
        return f"AttackResult({words}, {int(self.queries.sum())} queries)"


@dataclass(frozen=True, eq=False)
class Task:
    """Rows, labels, model and allowed set of one attack; ``rows`` are those not yet wrong."""

    scores: Scores
    X: Any
    codes: NDArray[np.intp]
    threat: Threat
    wrong: NDArray[np.bool_]
    rows: NDArray[np.intp]

    def take(self) -> tuple[Any, NDArray[np.intp]]:
        """The rows to attack, and the codes of their labels."""
        return self.X[like(self.rows, self.X)], self.codes[self.rows]


def begin(
    model: Any, X: Any, y: Any, threat: Threat, *, score: Any = None, gradient: Any = None,
    classes: Any = None, needs: str = "",
) -> Task:  # fmt: skip
    """Check the arguments and find the rows that are right; ``needs`` names an attack that needs scores."""
    if not isinstance(threat, Threat):
        raise TypeError(
            f"threat must be a Threat, such as Threat(0.1), got {type(threat).__name__}."
        )
    X = dense_rows(X)
    if score is not None and gradient is None and is_torch(X):
        gradient = autograd(score)
    known = model
    if not isinstance(model, Scores):
        known = scores(model, score=score, gradient=gradient, classes=classes)
    threat.check_columns(int(X.shape[1]))
    y = np.asarray(to_numpy(y))
    if y.shape != (int(X.shape[0]),):
        raise ValueError(
            f"y must have one label a row: X has {X.shape[0]} rows, y has shape {y.shape}."
        )
    if needs and known.margin is None:
        raise ValueError(
            f"{needs} needs decision_function, predict_proba or score=; this model gives labels only. Use "
            "decision_based."
        )
    codes = known.codes(y)
    wrong = known.labels(X) != codes if len(y) else np.zeros(0, dtype=np.bool_)
    return Task(known, X, codes, threat, wrong, np.flatnonzero(~wrong))


def finish(task: Task, found: Any, queries: NDArray[np.int64]) -> AttackResult:
    """Put the points found for ``task.rows`` in their places, and verify them."""
    x_adv, total = task.X, np.zeros(len(task.codes), dtype=np.int64)
    success, loss = task.wrong.copy(), np.full(len(task.codes), np.nan)
    if len(task.rows):
        x0, _ = task.take()
        if not task.threat.contains(x0, found).all():
            raise RuntimeError(
                "the attack returned a point outside the allowed set; this is a bug."
            )
        x_adv = task.X.clone() if is_torch(task.X) else task.X.copy()
        x_adv[like(task.rows, x_adv)] = found
        total[task.rows] = queries
        success[task.rows] = task.scores.labels(found) != task.codes[task.rows]
    if task.scores.margin is not None and len(loss):
        margin = np.asarray(to_numpy(task.scores.margin(x_adv, task.codes)), dtype=np.float64)
        loss = np.where(task.codes < 0, np.inf, np.logaddexp(0.0, -margin))
    return AttackResult(x_adv, success, loss, total)


def slope_of(known: Scores, X: Any, codes: NDArray[np.intp]) -> tuple[Any, int]:
    """The gradient of the margin, and the queries a row that it took: 0 in closed form, 2d by differences."""
    if known.gradient is not None:
        return known.gradient(X, codes), 0
    return difference_gradient(known.margin, X, codes, _ALPHA, central=True)


def difference_gradient(
    margin: Any, X: Any, codes: NDArray[np.intp], alpha: float, *, central: bool
) -> tuple[Any, int]:
    """Coordinate differences of the margin, and the queries a row: 2d, or d + 1 forward (ADV-6)."""
    n, d = (int(size) for size in X.shape)
    xp = array_namespace(X)
    columns = []
    base: Any = None if central else margin(X, codes)
    width = max(1, min(d, _CELLS // max(1, n * d)))
    for first in range(0, d, width):
        some = range(first, min(first + width, d))
        ahead = _shifted(margin, X, codes, some, alpha)
        if central:
            part = (ahead - _shifted(margin, X, codes, some, -alpha)) / (2.0 * alpha)
        else:
            part = (ahead - base[None, :]) / alpha
        columns.append(part)
    return xp.concat(columns, axis=0).T, 2 * d if central else d + 1


def _shifted(margin: Any, X: Any, codes: NDArray[np.intp], columns: range, alpha: float) -> Any:
    """The margins at x + alpha e_j for some columns j, shape (columns, n)."""
    n, d = (int(size) for size in X.shape)
    xp = array_namespace(X)
    shift = np.zeros((len(columns), 1, d))
    shift[np.arange(len(columns)), 0, list(columns)] = alpha
    moved = X[None, :, :] + xp.astype(like(shift, X), X.dtype)
    values = margin(xp.reshape(moved, (len(columns) * n, d)), np.tile(codes, len(columns)))
    return xp.reshape(values, (len(columns), n))
