"""Linear support vector machines over C.

With the squared hinge and many rows to a column, all C of a fold are solved at once, from the solutions
on all rows (:mod:`surefit.model_selection._reuse.margin_grid`); otherwise each C starts from the last
(:func:`surefit.solvers.linear_svm.linear_svm_path`). Several classes are so many binary problems.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ...design import as_design
from ...solvers.box_dual import BoxDual, classification
from ...solvers.linear_svm import linear_svm_path
from ...solvers.margin_grid import Rows, SquaredHingeMargin
from ...svm._linear import intercept_of, seed_of
from .family import Family
from .margin_grid import MarginGrid, grid_pays
from .models import LinearModels
from .rows import take

__all__ = ["LinearSVCFamily"]

Array = NDArray[np.float64]
Solved = tuple[
    Array, Array, NDArray[np.int64], NDArray[np.bool_]
]  # W (m, p), b, steps, whether solved


class LinearSVCFamily(Family):
    """LinearSVC over C, with an l2 penalty, also on the intercept."""

    name = "all C of a fold together"
    varies: ClassVar[frozenset[str]] = frozenset({"C"})

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return bool(np.isfinite(own["C"]))

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        free = template.fit_intercept and not template.penalize_intercept
        return template.penalty == "l2" and template.multi_class == "ovr" and not free

    def prepare(self) -> None:
        folds, model = self.folds, self.template
        model._check_combination()
        self.X, self.y, self.weights = model._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        model.classes_ = np.unique(self.y)
        self.order = np.argsort([float(v["C"]) for v in self.values], kind="stable")
        self.Cs = np.array([float(self.values[j]["C"]) for j in self.order])
        self.scaling = float(model.intercept_scaling) if model.fit_intercept else 0.0
        self.grids: list[MarginGrid] = []
        if model.loss == "squared_hinge" and grid_pays(self.X, folds):
            problems = self._problems(model, np.arange(len(self.y)))
            self.grids = [MarginGrid(self._rows(self.X, *part), self.Cs) for part in problems]

    def _problems(self, model: Any, rows: NDArray[np.intp]) -> list[tuple[Array, Array]]:
        """Labels -1 and +1 and the weights of each binary problem on some rows."""
        y, s = self.y[rows], None if self.weights is None else self.weights[rows]
        parts = model._problems(y, model._class_weights(y, s), s)
        return [(part.signs, part.weights) for part in parts]

    def _rows(self, X: Any, signs: Array, weights: Array) -> Rows:
        loss = SquaredHingeMargin()
        return Rows.of(X, signs, weights, loss, mean=0.0, constant=self.scaling, free=False)

    def fit(self, k: int) -> LinearModels:
        train, _ = self.folds.splits[k]
        model = copy.copy(self.template)
        model.classes_ = np.unique(self.y[train])
        if len(model.classes_) < 2:
            raise ValueError("one class")
        X, problems = take(self.X, train), self._problems(model, train)
        if self.grids and np.array_equal(model.classes_, self.template.classes_):
            found = [self._at_once(X, grid, *part) for grid, part in zip(self.grids, problems)]
        else:
            rng = check_random_state(model.random_state)
            found = [self._path(model, X, *part, seed=seed_of(rng)) for part in problems]
        return self._models(model, found)

    def _at_once(self, X: Any, grid: MarginGrid, signs: Array, weights: Array) -> Solved:
        p = X.shape[1]
        points, solved, steps = grid.on(self._rows(X, signs, weights), float(self.template.tol))
        b = self.scaling * points[:, p] if self.scaling else np.zeros(len(points))
        return points[:, :p], b, steps, solved

    def _path(self, model: Any, X: Any, signs: Array, weights: Array, seed: int) -> Solved:
        kept, squared = weights > 0, model.loss == "squared_hinge"

        def build(C: float) -> BoxDual:
            bounds = C * weights[kept]
            return classification(
                signs[kept], bounds, squared=squared, intercept=intercept_of(model)
            )

        fits = linear_svm_path(
            X[kept], build, self.Cs.tolist(), tol=float(model.tol), max_iter=int(model.max_iter),
            seed=seed,
        )  # fmt: skip
        mass = float(weights.sum())
        solved = [
            fit.converged or fit.observed <= model.tol * C * mass for fit, C in zip(fits, self.Cs)
        ]
        steps = np.array([fit.n_iter for fit in fits])
        W, b = np.array([fit.x.w for fit in fits]), np.array([fit.x.b for fit in fits])
        return W, b, steps, np.array(solved)

    def _models(self, model: Any, found: list[Solved]) -> LinearModels:
        back, kind = np.argsort(self.order, kind="stable"), as_design(self.X).dtype
        coef = np.stack([W for W, *_ in found], axis=2)[back].astype(kind)
        intercept = np.stack([b for _, b, *_ in found], axis=1)[back].astype(kind)
        steps = np.max([part[2] for part in found], axis=0)[back]
        solved = np.all([part[3] for part in found], axis=0)[back]
        models = _Machines(
            model, self.values, coef, intercept, single=coef.shape[2] == 1, rows=True,
            extra=[{"n_iter_": int(count)} for count in steps],
        )  # fmt: skip
        models.missing = frozenset(np.flatnonzero(~solved).tolist())
        return models


class _Machines(LinearModels):
    answers_by = "decision_function"

    def attributes(self, j: int) -> dict[str, Any]:
        found = super().attributes(j)
        return found if self.template.fit_intercept else {**found, "intercept_": 0.0}
