"""How the candidates of a search are fitted: in groups that share their work, fold by fold.

Candidates that differ only in parameters that a family takes together form a group. The others, and
those whose parameters are out of range, are left to be fitted one by one: a plan says which it has.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .families import family_of, groups, weights_of
from .family import Family
from .models import FoldModels
from .rows import Folds
from .scores import known_metric, score_all

__all__ = ["FoldPlan", "Scored", "fold_plan"]

Array = NDArray[np.float64]
_REFUSED = (
    ArithmeticError,
    ValueError,
    MemoryError,
)  # what data that a family cannot use may raise


class Scored(NamedTuple):
    """The scores of some candidates on one fold, and the seconds of each."""

    candidates: list[int]
    test: list[Array]  # of each scorer, one number a candidate
    train: list[Array] | None
    fit_time: float
    score_time: float


class FoldPlan:
    """Fits of all candidates of a grid that share their work.

    Attributes
    ----------
    name : str
        What is shared, in words.
    covers : frozenset of int
        The candidates it fits, as far as a fold does not turn out otherwise; the caller fits the rest.
    """

    def __init__(
        self,
        groups: list[tuple[list[int], Family]],
        folds: Folds,
        candidates: Sequence[dict[str, Any]],
    ) -> None:
        self.groups, self.folds, self.candidates = groups, folds, candidates
        self.shared = 0.0  # seconds of each fit's share of what all of them share
        self.name = ", ".join(dict.fromkeys(family.name for _, family in groups))
        self.covers = frozenset(i for members, _ in groups for i in members)

    def prepare(self) -> None:
        """What all folds share. A group that its family cannot serve is dropped."""
        start, kept = time.perf_counter(), []
        for members, family in self.groups:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    family.prepare()
            except (*_REFUSED, TypeError, Warning):  # the ordinary fits say what it is
                continue
            kept.append((members, family))
        self.groups = kept
        self.covers = frozenset(i for members, _ in kept for i in members)
        self.shared = (time.perf_counter() - start) / max(1, len(self.covers) * len(self.folds))

    def test(self, k: int) -> tuple[Any, Any]:
        """(X, y) of the test rows of a fold: the same objects each time."""
        return self.folds.rows(k, "test")

    def train(self, k: int) -> tuple[Any, Any]:
        """(X, y) of the training rows of a fold: the same objects each time."""
        return self.folds.rows(k, "train")

    def fold(self, k: int) -> Iterator[tuple[int, Any, float]]:
        """(number, model, seconds) of the candidates on a fold, in whatever order.

        Those that are missing are for the caller to fit, one by one.
        """
        for members, models, seconds in self._fitted(k):
            yield from self._models(k, members, models, seconds)

    def _models(
        self, k: int, members: list[int], models: FoldModels, seconds: float
    ) -> Iterator[tuple[int, Any, float]]:
        own = (self.test(k)[0], self.train(k)[0])
        for j, i in enumerate(members):
            if j not in models.missing:
                yield i, models.model(j, own), seconds / len(members)

    def scored(
        self, k: int, scorers: Sequence[Any], *, train: bool
    ) -> Iterator[Scored | tuple[int, Any, float]]:
        """The same, scored at once where every scorer is known; a model to be scored elsewhere."""
        for members, models, seconds in self._fitted(k):
            found = self._scores(models, k, scorers, train)
            if found is None:
                yield from self._models(k, members, models, seconds)
                continue
            test, fitted, score_time = found
            share = 1.0 / len(members)
            there = [j for j in range(len(members)) if j not in models.missing]
            yield Scored(
                [members[j] for j in there],
                [scores[there] for scores in test],
                None if fitted is None else [scores[there] for scores in fitted],
                share * seconds,
                share * score_time,
            )

    def refit(self, i: int, model: Any, X: Any, y: Any) -> bool:
        """Fit the i-th candidate to all rows with what is known of them; False where nothing is."""
        return any(i in members and family.refit(model, X, y) for members, family in self.groups)

    def _fitted(self, k: int) -> Iterator[tuple[list[int], FoldModels, float]]:
        for members, family in self.groups:
            start = time.perf_counter()
            try:
                models = family.fit(k)
            except _REFUSED:  # the ordinary fits say what is wrong, and for which candidate
                continue
            yield members, models, time.perf_counter() - start + self.shared * len(members)

    def _scores(
        self, models: FoldModels, k: int, scorers: Sequence[Any], train: bool
    ) -> tuple[list[Array], list[Array] | None, float] | None:
        wanted = [known_metric(scorer, models.template) for scorer in scorers]
        known = [metric for metric in wanted if metric is not None]
        if not known or len(known) < len(wanted):
            return None
        start = time.perf_counter()
        found: list[list[Array]] = []
        for which in ("test", "train") if train else ("test",):
            X, y = self.folds.rows(k, which)
            scores = score_all(models, known, X, y, which)
            if scores is None:
                return None
            found.append(scores)
        spent = time.perf_counter() - start
        return found[0], found[1] if train else None, spent


def fold_plan(
    estimator: Any,
    candidates: Sequence[dict[str, Any]],
    X: Any,
    y: Any,
    splits: Sequence[Any],
    *,
    fit_params: dict[str, Any] | None = None,
    scorers: Any = None,
) -> FoldPlan | None:
    """The plan for a grid, or None where its candidates have nothing in common.

    Parameters
    ----------
    estimator : estimator
    candidates : sequence of dict
        Parameters of each candidate.
    X, y : array-like
    splits : sequence of (train, test) row numbers
    fit_params : dict, optional
        What is given to ``fit``: ``sample_weight``, or nothing.
    scorers : object, optional
        Not looked at here.
    """
    given = {key: value for key, value in (fit_params or {}).items() if value is not None}
    weights = given.pop(weights_of(estimator), None)
    if given or family_of(estimator) is None:
        return None
    if weights is not None and np.shape(weights) != (_length(X),):
        return None
    folds = Folds(estimator, X, y, list(splits), None if weights is None else np.asarray(weights))
    plan = FoldPlan(list(groups(estimator, candidates, folds)), folds, candidates)
    plan.prepare()
    return plan if plan.groups else None


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
