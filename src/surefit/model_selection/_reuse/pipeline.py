"""Pipelines of which only the last step varies: the others are fitted once a fold.

What they make of the training rows is the data of the last step, whose own family takes it from there; its
Gram or kernel matrix is then that of one fold, since every fold has preprocessing of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .family import Family
from .models import FoldModels
from .rows import Folds

__all__ = ["PipelineFamily"]

_METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


class PipelineFamily(Family):
    """A scikit-learn Pipeline whose last step has a family."""

    name = "preprocessing once a fold"
    varies: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        template: Any,
        values: Sequence[dict[str, Any]],
        folds: Folds,
        groups: Callable[..., Any],
    ) -> None:
        super().__init__(template, values, folds)
        self.groups = groups

    @classmethod
    def parted(
        cls, estimator: Any, candidate: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        start = estimator.steps[-1][0] + "__"
        own = {name: value for name, value in candidate.items() if name.startswith(start)}
        return {name: value for name, value in candidate.items() if name not in own}, own

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return True

    def fit(self, k: int) -> FoldModels:
        (X, y), (held, held_y) = self.folds.rows(k, "train"), self.folds.rows(k, "test")
        first = clone(self.template[:-1])
        try:
            rows = first.fit_transform(X, y)
            tested = first.transform(held)
        except (
            Exception
        ) as error:  # of somebody else's making; the ordinary fits will meet it again
            raise ValueError("the preprocessing of a fold failed") from error
        both, targets = _stacked(rows, tested), _stacked(np.asarray(y), np.asarray(held_y))
        split = (np.arange(rows.shape[0]), np.arange(rows.shape[0], both.shape[0]))
        weights = self.folds.sample_weight
        if weights is not None:
            train, test = self.folds.splits[k]
            weights = np.concatenate([weights[train], weights[test]])
        name, last = self.template.steps[-1]
        inner = Folds(last, both, targets, [split], weights)
        start = len(name) + 2
        own = [{key[start:]: value for key, value in v.items()} for v in self.values]
        return _Pipelines(self, first, inner, list(self.groups(last, own, inner)))


class _Pipelines(FoldModels):
    """The models of one fold: the fitted preprocessing, and a model of the last step behind it."""

    def __init__(
        self,
        owner: PipelineFamily,
        first: Any,
        inner: Folds,
        groups: list[tuple[list[int], Family]],
    ) -> None:
        super().__init__(owner.template, owner.values)
        self.first, self.inner = first, inner
        self.at: dict[int, tuple[FoldModels, int]] = {}
        self.found: list[tuple[list[int], FoldModels]] = []
        for members, family in groups:
            family.prepare()
            models = family.fit(0)
            self.found.append((members, models))
            for j, i in enumerate(members):
                if j not in models.missing:
                    self.at[i] = models, j
        self.missing = frozenset(range(len(self.values))) - set(self.at)

    def attributes(self, j: int) -> dict[str, Any]:
        return {}

    def answers(self, X: Any, first: int, last: int) -> Sequence[Any]:
        raise NotImplementedError("the models of the last step are asked")

    def parts(self, which: str) -> list[tuple[list[int], FoldModels, Any]]:
        rows = self.inner.rows(0, which)[0]
        return [(members, models, rows) for members, models in self.found]

    def model(self, j: int, own: Sequence[Any] = ()) -> Any:
        """A pipeline; for the rows of its fold, which come as (test, train), it does not transform again."""
        models, place = self.at[j]
        made = [self.inner.rows(0, which)[0] for which in ("test", "train")][: len(own)]
        model = copy.copy(self.template)
        last = models.model(place, made)
        model.steps = [*self.first.steps, (self.template.steps[-1][0], last)]

        def answering(method: str) -> Callable[..., Any]:
            ordinary = getattr(model, method)

            def answer(X: Any, **options: Any) -> Any:
                for raw, rows in zip(own, made, strict=True):
                    if X is raw and not options:
                        return getattr(last, method)(rows)
                return ordinary(X, **options)

            answer.__name__ = method
            return answer

        for method in _METHODS if own else ():
            if hasattr(last, method):
                model.__dict__[method] = answering(method)
        if own:
            model.__dict__["score"] = _score(model, last, own, made)
        return model


def _score(model: Any, last: Any, own: Sequence[Any], made: Sequence[Any]) -> Callable[..., Any]:
    ordinary = model.score

    def score(X: Any, y: Any = None, **options: Any) -> Any:
        for raw, rows in zip(own, made, strict=True):
            if X is raw:
                return last.score(rows, y, **{k: v for k, v in options.items() if v is not None})
        return ordinary(X, y, **options)

    return score


def _stacked(first: Any, second: Any) -> Any:
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if not isinstance(first, np.ndarray):
        raise ValueError("the preprocessing gives neither an array nor a sparse matrix")
    return np.concatenate([first, second])
