"""Which scores are means of bounded losses over rows, and what is observed of such a loss.

A bound on the true mean needs a mean over rows of a loss that is bounded. Accuracy is one; R², AUC and F1
are not means over rows; a squared error is bounded only by a range that the user states.
:func:`bounded_loss` decides from the scorer alone, before any data are scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import is_regressor
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import type_of_target

from ..stats import group_means

__all__ = ["NOTHING", "BoundedLoss", "bounded_loss", "scores_as"]

Array = NDArray[np.float64]
NOTHING = (math.nan, math.nan, math.nan, math.nan)  # mean, variance, least and largest loss
NOT_MEANS = {
    "r2_score": "R² is a ratio of two sums",
    "roc_auc_score": "AUC is about pairs of rows",
    "average_precision_score": "average precision is about the order of the rows",
    "f1_score": "F1 is a ratio of two counts",
    "fbeta_score": "an F score is a ratio of two counts",
    "precision_score": "precision is a ratio of two counts",
    "recall_score": "recall divides by a count that is random",
    "jaccard_score": "the Jaccard index is a ratio of two counts",
    "matthews_corrcoef": "a correlation is a ratio",
    "balanced_accuracy_score": "balanced accuracy divides by the counts of the classes",
    "log_loss": "the log loss is not bounded",
    "root_mean_squared_error": "the root of a mean is not a mean",
    "median_absolute_error": "a median is not a mean",
    "max_error": "a maximum is not a mean",
    "explained_variance_score": "explained variance is a ratio of two sums",
}


@dataclass(frozen=True)
class BoundedLoss:
    """A loss of one row between ``low`` and ``high`` whose mean is ``offset - score``.

    Attributes
    ----------
    words : str
        What the mean is called in a sentence: "error", "mean absolute error".
    low, high : float
        Where it lies.
    offset : float
        1 for an accuracy, 0 for the negative of a loss.
    zero_one : bool
        Whether it is 0 or 1, so that its mean says all.
    rows : callable or None
        Loss of each row from the fitted model, X and y; ``None`` where it is not known.
    function : callable or None
        The score function.
    """

    words: str
    low: float
    high: float
    offset: float
    zero_one: bool
    rows: Callable[..., Array] | None = None
    keywords: tuple[tuple[str, Any], ...] = ()
    function: Any = None

    @property
    def needs_rows(self) -> bool:
        """Whether the losses of the single rows are looked at."""
        return not self.zero_one

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest loss."""
        return self.low, self.high

    def evidence(
        self, model: Any, X: Any, y: Any, score: float, n: int, labels: Any = None
    ) -> tuple[float, ...]:
        """Mean, variance, least and largest loss of the n rows; NaN where they do not give the score.

        With ``labels``, the group of each row, mean and variance are those of the group means.
        """
        mean = self.offset - score
        if self.zero_one and labels is None:
            wrong = round(mean * n) if math.isfinite(mean) else -1
            if not 0 <= wrong <= n or abs(wrong - mean * n) > 1e-6 * n:
                return NOTHING
            share = wrong / n
            variance = share * (1.0 - share) * n / (n - 1.0) if n > 1 else 0.0
            return share, variance, float(wrong == n), float(wrong > 0)
        if self.rows is None:
            return NOTHING
        with np.errstate(all="ignore"):
            losses = np.asarray(self.rows(model, X, y, **dict(self.keywords)), dtype=np.float64)
        if losses.shape != (n,) or not np.isfinite(losses).all():
            return NOTHING
        found = float(losses.mean())
        if abs(found - mean) > 1e-6 * (abs(found) + float(losses.max())):
            return NOTHING
        least, largest = float(losses.min()), float(losses.max())
        if labels is not None:
            losses = group_means(losses, labels)
            found = float(losses.mean())
        variance = float(losses.var(ddof=1)) if len(losses) > 1 else 0.0
        return found, variance, least, largest


# ------------------------------------------------------------------------ losses row by row


def _residuals(model: Any, X: Any, y: Any) -> tuple[Array, Array]:
    truth = np.asarray(y, dtype=np.float64)
    truth = truth.reshape(len(truth), -1)
    return truth, truth - np.asarray(model.predict(X), dtype=np.float64).reshape(truth.shape)


def _absolute(model: Any, X: Any, y: Any) -> Array:
    return np.abs(_residuals(model, X, y)[1]).mean(axis=1)


def _squared(model: Any, X: Any, y: Any) -> Array:
    return (_residuals(model, X, y)[1] ** 2).mean(axis=1)


def _pinball(model: Any, X: Any, y: Any, alpha: float = 0.5) -> Array:
    _, error = _residuals(model, X, y)
    return np.where(error > 0, alpha * error, (alpha - 1.0) * error).mean(axis=1)


def _percentage(model: Any, X: Any, y: Any) -> Array:
    truth, error = _residuals(model, X, y)
    return (np.abs(error) / np.maximum(np.abs(truth), np.finfo(np.float64).eps)).mean(axis=1)


def _mistakes(model: Any, X: Any, y: Any) -> Array:
    wrong = np.asarray(model.predict(X)) != np.asarray(y)
    return wrong.reshape(len(wrong), -1).any(axis=1).astype(np.float64)


def _brier(model: Any, X: Any, y: Any, scale: float = 1.0) -> Array:
    chances = np.asarray(model.predict_proba(X), dtype=np.float64)
    hits = np.asarray(y)[:, None] == np.asarray(model.classes_)[None, :]
    return ((chances - hits) ** 2).sum(axis=1) * scale


_REGRESSION: dict[Any, tuple[str, Callable[..., Array]]] = {
    metrics.mean_absolute_error: ("mean absolute error", _absolute),
    metrics.mean_squared_error: ("mean squared error", _squared),
    metrics.mean_pinball_loss: ("mean pinball loss", _pinball),
    metrics.mean_absolute_percentage_error: ("mean absolute percentage error", _percentage),
}


# ------------------------------------------------------------------------ from scorers to losses

_ACCURACIES = (  # of rows that are given: those of neighbours only add a case without
    ("sklearn.base", "ClassifierMixin.score"),
    ("sklearn.neighbors._classification", "KNeighborsClassifier.score"),
    ("sklearn.neighbors._classification", "RadiusNeighborsClassifier.score"),
    ("surefit.neighbors.classifier", "KNeighborsClassifier.score"),
)


def bounded_loss(
    scorer: Any, estimator: Any, y: Any, loss_range: tuple[float, float] | None
) -> BoundedLoss | str:
    """The loss behind a scorer, or the reason why no bound can be stated."""
    scorer = _behind(scorer, estimator)
    if isinstance(scorer, str):
        return scorer
    function, keywords = scorer._score_func, dict(scorer._kwargs)
    sign = float(scorer._sign)
    if function in (metrics.accuracy_score, metrics.zero_one_loss, metrics.top_k_accuracy_score):
        plain = keywords.pop("normalize", True) and keywords.get("sample_weight") is None
        loss = function is metrics.zero_one_loss
        if not plain or sign != (-1.0 if loss else 1.0):
            return f"scoring={scorer!r} is not the mean of 0-1 losses, larger scores being better"
        words = f"top-{keywords.get('k', 2)} error" if "top_k" in function.__name__ else "error"
        low, high = loss_range or (0.0, 1.0)
        if low > 0.0 or high < 1.0:
            return f"the {words} of a row is 0 or 1, and loss_range={loss_range} leaves one of them out"
        rows = None if "top_k" in function.__name__ else _mistakes
        return BoundedLoss(words, low, high, 0.0 if loss else 1.0, True, rows, function=function)
    if function is metrics.brier_score_loss and sign < 0:
        return _brier_loss(keywords, y, loss_range)
    if function in _REGRESSION and sign < 0:
        words, rows = _REGRESSION[function]
        if loss_range is None:
            return (
                f"the {words} is bounded only where you say so: give loss_range=(least, largest) value of a "
                "row's loss, known before the data are seen"
            )
        if set(keywords) - ({"alpha"} if rows is _pinball else set()):
            return f"scoring={scorer!r} averages in a way of its own"
        return BoundedLoss(words, *loss_range, 0.0, False, rows, tuple(keywords.items()), function)
    name = getattr(function, "__name__", repr(function))
    why = NOT_MEANS.get(name, f"{name} is not known to be a mean over rows of a bounded loss")
    return (
        f"{why}: no bound is stated. Score by 'accuracy', 'neg_brier_score', or a mean error with "
        "loss_range"
    )


def scores_as(scorer: Any, model: Any, loss: BoundedLoss) -> bool:
    """Whether the scorer asks this loss of a candidate, which may bring a ``score`` of its own."""
    if not isinstance(scorer, _PassthroughScorer):
        return True
    behind = _behind(scorer, model)
    return isinstance(behind, _BaseScorer) and behind._score_func is loss.function


def _brier_loss(
    keywords: dict[str, Any], y: Any, loss_range: tuple[float, float] | None
) -> BoundedLoss | str:
    half = keywords.pop("scale_by_half", "auto")
    keywords.pop("pos_label", None)
    if keywords:
        return "this Brier score has options that are not known to keep it in [0, 1]"
    binary = type_of_target(y) == "binary"
    scale = 0.5 if half is True or (half == "auto" and binary) else 1.0
    low, high = loss_range or (0.0, 2.0 * scale)
    return BoundedLoss(
        "Brier score", low, high, 0.0, False, _brier, (("scale", scale),), metrics.brier_score_loss
    )


def _behind(scorer: Any, estimator: Any) -> Any:
    """The scorer on a score function that this one comes to, or why there is none."""
    if isinstance(scorer, _PassthroughScorer):
        while isinstance(estimator, Pipeline | BaseSearchCV) or hasattr(
            estimator, "_scores_like_its_estimator"
        ):
            if isinstance(estimator, Pipeline):
                estimator = estimator.steps[-1][1]
                continue
            scoring = estimator.scoring
            if isinstance(scoring, str):
                return metrics.get_scorer(scoring)
            if scoring is not None:
                return _behind(scoring, estimator.estimator)
            estimator = estimator.estimator
        score = getattr(type(estimator), "score", None)
        if (getattr(score, "__module__", ""), getattr(score, "__qualname__", "")) in _ACCURACIES:
            return metrics.get_scorer("accuracy")
        if is_regressor(estimator):
            return metrics.get_scorer("r2")
        return f"{type(estimator).__name__}.score is not known to be a mean over rows"
    if isinstance(scorer, _BaseScorer):
        return scorer
    return f"scoring={scorer!r} is not known to be a mean over rows of a bounded loss"
