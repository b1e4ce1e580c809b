"""Nearest neighbours over k and the weights: the lists of the largest k serve all smaller ones.

The neighbours of the test rows are searched once a fold. The vote for k + 1 neighbours is that for k and one
more, so that the predictions of every k come from one pass over the lists.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...neighbors import KNeighborsClassifier
from ...neighbors._weights import neighbour_weights
from .family import Family
from .models import FoldModels

__all__ = ["NeighboursFamily"]


class NeighboursFamily(Family):
    """KNeighborsClassifier and KNeighborsRegressor over n_neighbors and weights."""

    name = "the neighbours of the largest k for every k"
    varies: ClassVar[frozenset[str]] = frozenset({"n_neighbors", "weights"})

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return own["n_neighbors"] is not None

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return True

    def prepare(self) -> None:
        if self.folds.sample_weight is not None:
            raise ValueError("neighbours take no weights of the samples")
        copy.copy(self.template)._validate_training_data(
            self.folds.X, self.folds.y, None, reset=True
        )

    def fit(self, k: int) -> FoldModels:
        X, y = self.folds.rows(k, "train")
        model = copy.copy(self.template).set_params(n_neighbors=1, weights="uniform")
        return _Neighbours(model.fit(X, y), self.values)


class _Neighbours(FoldModels):
    answers_by = "kneighbors"

    def __init__(self, template: Any, values: Sequence[dict[str, Any]]) -> None:
        super().__init__(template, values)
        there = template.n_samples_fit_
        counts = [int(v["n_neighbors"]) for v in values]
        self.missing = frozenset(j for j, count in enumerate(counts) if count > there)
        if len(self.missing) == len(counts):
            raise ValueError("fewer training rows than neighbours")
        self.largest = max(count for count in counts if count <= there)
        self._lists: dict[int, tuple[Any, Any]] = {}

    def attributes(self, j: int) -> dict[str, Any]:
        return {}  # the template has them all

    def lists(self, X: Any) -> tuple[Any, Any]:
        """Distances and numbers of the nearest training rows, for the largest k."""
        if id(X) not in self._lists:
            self._lists[id(X)] = self.template.kneighbors(X, self.largest)
        return self._lists[id(X)]

    def answers(self, X: Any, first: int, last: int) -> Sequence[Any]:
        distances, indices = self.lists(X)
        counts = [v["n_neighbors"] for v in self.values[first:last]]
        return [(distances[:, :count], indices[:, :count]) for count in counts]

    def predictions(self, X: Any) -> Sequence[Any]:
        distances, indices = self.lists(X)
        found: list[Any] = [np.empty(0)] * len(self.values)
        kinds: dict[Any, list[int]] = {}
        for j, own in enumerate(self.values):
            if j not in self.missing:
                kinds.setdefault(own["weights"], []).append(j)
        for weights, members in kinds.items():
            if callable(weights) or not self._one_by_one:
                for j in members:
                    count = self.values[j]["n_neighbors"]
                    model = self.model(j)
                    found[j] = model._predict_from_neighbours(distances, indices, count)
                continue
            each = neighbour_weights(distances, weights)
            wanted: dict[int, list[int]] = {}
            for j in members:
                wanted.setdefault(int(self.values[j]["n_neighbors"]), []).append(j)
            for count, value in self._growing(indices, each, set(wanted)):
                for j in wanted[count]:
                    found[j] = value
        return found

    @property
    def _one_by_one(self) -> bool:
        """Whether there is one target, for which the growing vote is written."""
        return bool(self.template.y_fit_.ndim == 1)

    def _growing(
        self, indices: NDArray[Any], weights: Any, wanted: set[int]
    ) -> Iterator[tuple[int, Any]]:
        """(k, predictions) for the wanted k, one neighbour more at a time."""
        model, rows = self.template, np.arange(len(indices))
        classifies = isinstance(model, KNeighborsClassifier)
        width = len(model.classes_) if classifies else 1
        total, mass = np.zeros((len(indices), width)), np.zeros(len(indices))
        for i in range(max(wanted)):
            weight = 1.0 if weights is None else weights[:, i]
            kept = model.y_fit_[indices[:, i]]
            if classifies:
                total[rows, kept] += weight
            else:
                total[:, 0] += weight * kept
                mass += weight
            if i + 1 in wanted:
                value = model.classes_[total.argmax(axis=1)] if classifies else total[:, 0] / mass
                yield i + 1, value
