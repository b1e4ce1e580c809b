r"""Logistic regression over C: the path once on all rows, then each fold from there.

With a smooth penalty, two classes and many rows to a column, all C of a fold are solved at once
(:mod:`surefit.model_selection._reuse.margin_grid`). Otherwise (an l1 part, several classes, sparse matrices)
each C starts from the last, on a line through the last two.

Every model reaches the duality gap that a fit of its own claims, ``tol`` times the objective at w = 0, and
goes on beyond it as that does; those that do not are left to be fitted by themselves.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...design import as_design
from ...linear_model._logistic_folds import path_models
from ...linear_model._logistic_words import warn_of_deprecated
from ...penalties import NoPenalty
from ...solvers.margin_grid import LogisticMargin, Rows
from .family import Family
from .margin_grid import MarginGrid, grid_pays
from .models import LinearModels
from .rows import take

__all__ = ["LogisticFamily"]

Array = NDArray[np.float64]


class LogisticFamily(Family):
    """LogisticRegression over C."""

    name = "paths over C that start from the solutions on all rows"
    varies: ClassVar[frozenset[str]] = frozenset({"C"})

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return math.isfinite(own["C"])

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return (
            not isinstance(template._penalty(), NoPenalty)
            and not template.warm_start
            and not hasattr(template, "_skl_callbacks")
        )

    def prepare(self) -> None:
        folds, model = self.folds, self.template
        warn_of_deprecated(model)
        self.X, self.y, self.weights = model._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        if hasattr(self.X, "tocsr"):
            self.X = self.X.tocsr()
        model.classes_ = model._checked_classes(self.y, self.weights)
        self.order = np.argsort([float(v["C"]) for v in self.values], kind="stable")
        self.Cs = np.array([float(self.values[j]["C"]) for j in self.order])
        self.together = self._at_once()
        if self.together:
            self._solve_all_rows()

    def _at_once(self) -> bool:
        return (
            grid_pays(self.X, self.folds)
            and len(self.template.classes_) == 2
            and not self.template._has_l1()
            and self.template._intercept_scaling() is None
        )

    # ------------------------------------------------------------------ all C at once

    def _solve_all_rows(self) -> None:
        """The solutions on all rows, and the curvatures there: the starts of the folds."""
        model, free = self.template, bool(self.template.fit_intercept)
        X, y, s = self._problem(model, slice(None))
        self.mean = as_design(X).mean(s) if free else np.zeros(X.shape[1])
        self.grid = MarginGrid(self._rows(X, y, s), self.Cs)

    def _rows(self, X: Any, y: Array, s: Array) -> Rows:
        free = bool(self.template.fit_intercept)
        return Rows.of(X, y, s, LogisticMargin(), mean=self.mean, constant=float(free), free=free)

    def _problem(self, model: Any, rows: Any) -> tuple[Any, Array, Array]:
        """X, labels and weights (without C) of those among some rows that have a weight."""
        plain = copy.copy(model)
        plain.C = 1.0
        y = self.y[rows]
        _, codes, s = plain._problem(y, None if self.weights is None else self.weights[rows])
        X = self.X if isinstance(rows, slice) else take(self.X, rows)
        kept = s > 0
        return (X, codes, s) if kept.all() else (X[kept], codes[kept], s[kept])

    def _fit_at_once(self, model: Any, train: NDArray[np.intp]) -> LinearModels:
        X, y, s = self._problem(model, train)
        free, p = bool(model.fit_intercept), self.X.shape[1]
        found = self.grid.on(self._rows(X, y, s), float(model.tol))
        late = np.flatnonzero(~found.solved)
        W = found.points[:, :p]
        b = found.points[:, p] - W @ self.mean if free else np.zeros(len(W))
        return self._models(model, W[:, :, None], b[:, None], found.steps, late)

    # ------------------------------------------------------------------ one C after the other

    def _fit_path(self, model: Any, train: NDArray[np.intp]) -> LinearModels:
        weights = None if self.weights is None else self.weights[train]
        path = path_models(model, take(self.X, train), self.y[train], weights, self.Cs)
        p, free = self.X.shape[1], bool(model.fit_intercept)
        coef = np.moveaxis(path.coefs, 1, 2)  # (m, p + 1, K)
        b = coef[:, p] if free else np.zeros((len(coef), coef.shape[2]))
        late = np.flatnonzero(~np.array(path.finished))
        return self._models(model, coef[:, :p], b, np.array(path.n_iter), late)

    def fit(self, k: int) -> LinearModels:
        train, _ = self.folds.splits[k]
        model = copy.copy(self.template)
        own = None if self.weights is None else self.weights[train]
        model.classes_ = model._checked_classes(self.y[train], own)
        same = np.array_equal(model.classes_, self.template.classes_)
        return (self._fit_at_once if self.together and same else self._fit_path)(model, train)

    def _models(
        self, model: Any, W: Array, b: Array, steps: NDArray[Any], late: NDArray[np.intp]
    ) -> LinearModels:
        """In the order of the candidates, and in the precision of the data."""
        kind = np.float64 if model.solver == "liblinear" else as_design(self.X).dtype
        back = np.argsort(self.order, kind="stable")
        extra = [{"n_iter_": np.array([int(count)], dtype=np.int32)} for count in steps[back]]
        models = _Logistics(
            model, self.values, W[back].astype(kind), b[back].astype(kind),
            single=W.shape[2] == 1, rows=True, extra=extra,
        )  # fmt: skip
        models.missing = frozenset(int(self.order[j]) for j in late)
        return models


class _Logistics(LinearModels):
    answers_by = "decision_function"
