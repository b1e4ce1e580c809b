"""Scores of all candidates at once, for the metrics whose formula is known here.

A scorer is known when it is scikit-learn's own, without options, or the estimator's ``score`` inherited from
scikit-learn; the numbers are those that it would give, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics._scorer import _PassthroughScorer, _Scorer
from sklearn.pipeline import Pipeline

from .models import FoldModels

__all__ = ["known_metric", "score_all"]

Array = NDArray[np.float64]
_SQUARES = {  # from sums of squared errors (m, T), squares about the mean (T,) and the number of rows
    metrics.r2_score: lambda e, squares, n: _r2(e, squares).mean(axis=1),
    metrics.mean_squared_error: lambda e, squares, n: (e / n).mean(axis=1),
    metrics.root_mean_squared_error: lambda e, squares, n: np.sqrt(e / n).mean(axis=1),
}
_ROWS: dict[Any, Callable[[Array, Array], Array]] = {  # from targets (n,) and predictions (m, n)
    metrics.mean_absolute_error: lambda y, z: np.abs(y - z).mean(axis=1),
    metrics.max_error: lambda y, z: np.abs(y - z).max(axis=1),
    metrics.median_absolute_error: lambda y, z: np.median(np.abs(y - z), axis=1),
}


def _r2(errors: Array, squares: Array) -> Array:
    """1 - errors / squares, and for a constant target 1 where there are no errors, else 0."""
    ratio = np.divide(errors, squares, out=(errors > 0).astype(np.float64), where=squares > 0)
    return 1.0 - ratio


def known_metric(scorer: Any, template: Any) -> tuple[Any, float] | None:
    """The metric and its sign; None for a scorer that must be called."""
    if isinstance(scorer, _PassthroughScorer):
        own = type(template.steps[-1][1] if type(template) is Pipeline else template).score
        if own is RegressorMixin.score:
            return metrics.r2_score, 1.0
        return (metrics.accuracy_score, 1.0) if own is ClassifierMixin.score else None
    if not isinstance(scorer, _Scorer) or scorer._kwargs:
        return None
    metric, method = scorer._score_func, scorer._response_method
    if metric is metrics.accuracy_score or metric in _SQUARES or metric in _ROWS:
        return (metric, float(scorer._sign)) if _is_predict(method) else None
    return None


def _is_predict(method: Any) -> bool:
    return bool(method == "predict" or method == ("predict",))


def score_all(
    models: FoldModels, wanted: list[tuple[Any, float]], X: Any, y: Any, which: str
) -> list[Array] | None:
    """The scores (m,) of all candidates by each metric; None where one of them must be called after all."""
    if np.shape(y)[0] < 2:
        return None  # scikit-learn has its own words for these
    parts = models.parts(which)
    if parts:
        return _together(models, parts, wanted, y, which)
    answers = _Predictions(models, X)
    out = []
    for metric, sign in wanted:
        if metric is metrics.accuracy_score:
            if np.ndim(y) != 1:
                return None
            out.append(sign * answers.accuracy(np.asarray(y)))
            continue
        Y = np.asarray(y, dtype=np.float64)
        Y = Y.reshape(len(Y), -1)
        if metric in _SQUARES:
            errors = models.squared_errors(which)
            errors = answers.squared_errors(Y) if errors is None else errors
            squares = ((Y - Y.mean(axis=0)) ** 2).sum(axis=0)
            out.append(sign * _SQUARES[metric](errors, squares, len(Y)))
        elif Y.shape[1] == 1:
            out.append(sign * answers.by_row(Y[:, 0], _ROWS[metric]))
        else:
            return None
    return out


def _together(
    models: FoldModels, parts: list[Any], wanted: list[tuple[Any, float]], y: Any, which: str
) -> list[Array] | None:
    out = [np.full(len(models.values), np.nan) for _ in wanted]
    for members, own, X in parts:
        found = score_all(own, wanted, X, y, which)
        if found is None:
            return None
        for column, scores in zip(out, found, strict=True):
            column[members] = scores
    return out


class _Predictions:
    """What the metrics need of the predictions, a stretch of candidates at a time."""

    def __init__(self, models: FoldModels, X: Any) -> None:
        self.models, self.count = models, len(models.values)
        self.kept, self.X = models.asked(X), X
        self.given: Any = None

    def _each(self, formula: Callable[[Any], Any]) -> Any:
        """The formula on what each candidate says; of those that are missing, the first that is there."""
        if self.given is None:
            self.given = self.models.predictions(self.X)
        there = [j for j in range(self.count) if j not in self.models.missing]
        of = self.kept.of if self.given is None else self.given.__getitem__
        found = {j: formula(of(j)) for j in there}
        return np.array([found.get(j, found[there[0]]) for j in range(self.count)])

    def squared_errors(self, Y: Array) -> Array:
        def errors(z: Any) -> Array:
            gap = Y - np.asarray(z, dtype=np.float64).reshape(Y.shape)
            return np.einsum("ij,ij->j", gap, gap)

        return np.asarray(self._each(errors))

    def by_row(self, y: Array, formula: Callable[[Array, Array], Array]) -> Array:
        return np.asarray(
            self._each(lambda z: formula(y, np.asarray(z, np.float64).reshape(1, -1))[0])
        )

    def accuracy(self, y: NDArray[Any]) -> Array:
        """The share of rows whose label is right; of decisions, that with the largest."""
        if self.models.answers_by != "decision_function":
            return np.asarray(self._each(lambda label: np.mean(label == y)))
        classes = self.models.template.classes_
        codes = np.searchsorted(classes, y)
        codes = np.where(classes[np.minimum(codes, len(classes) - 1)] == y, codes, -1)

        def right(z: Any) -> float:
            chosen = (z > 0).astype(np.intp) if z.ndim == 1 else z.argmax(axis=1)
            return float(np.mean(chosen == codes))

        return np.asarray(self._each(right))
