r"""Ridge regression over alpha: the Gram matrix of all rows once, one eigendecomposition a fold.

    (X'X + alpha I) w = X'y  on the training rows of each fold, for all alpha.

X'X of the training rows is that of all rows less that of the test rows
(:mod:`surefit.solvers.fold_moments`), and V (Lambda + alpha)^{-1} V'X'y gives every alpha from one
decomposition. The squared errors on test and training rows are quadratic forms in the same sums: of

    sum_i (v_i - u_i'w - d)^2 = v'v - 2 w'U'v + w'U'U w - 2 d (1'v - w'U'1) + n d^2

nothing is as large as the data. Where the subtraction leaves fewer than nine digits the training rows are
used themselves, and where a sum of squares cancels, the predictions.

References
----------
Rifkin & Lippert, "Notes on regularized least squares" (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...design import as_design
from ...linear_model import LinearRegression, Ridge
from ...solvers.fold_moments import FoldSums, Sums
from ...solvers.ridge_path import fold_paths, path_of_moments
from .family import Family
from .models import LinearModels
from .rows import take

__all__ = ["RidgeClassifierFamily", "RidgeFamily"]

Array = NDArray[np.float64]
_EXACT = 1e-9  # relative error of coefficients that subtraction may leave
_CANCELS = 1e-6  # share of the terms of a sum of squares below which it is taken from predictions


class RidgeFamily(Family):
    """Ridge over alpha, Ridge and LinearRegression over fit_intercept."""

    name = "one Gram matrix for all folds and penalties"
    varies: ClassVar[frozenset[str]] = frozenset({"alpha", "fit_intercept"})
    least = 1  # the folds share, too

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return isinstance(own.get("alpha", 0.0), Real) and own.get("alpha", 0.0) < np.inf

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return not template.positive

    def prepare(self) -> None:
        self.X, self.Y, self.s = self._validated()
        self.plain = self.folds.sample_weight is None
        self.groups: dict[bool, list[int]] = {}
        for j, own in enumerate(self.values):
            self.groups.setdefault(bool(own["fit_intercept"]), []).append(j)
        self.sums: dict[bool, FoldSums] = {}
        p = self.X.shape[1]
        design = as_design(self.X)
        fewest = min(len(train) for train, _ in self.folds.splits)
        if p <= fewest and self._shares_rows() and (design.centres_first or p <= 5000):
            for free in self.groups:
                self.sums[free] = FoldSums(
                    self.X, self.Y, self.s, self.folds.splits, fit_intercept=free
                )

    def _validated(self) -> tuple[Any, Array, Array]:
        """X, targets (n, T) and weights, once for all folds."""
        folds = self.folds
        X, y, weights = self.template._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        self.single, self.one_dimensional = y.ndim == 1 or y.shape[1] == 1, y.ndim == 1
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return X, Y, np.ones(len(Y)) if weights is None else weights

    def _shares_rows(self) -> bool:
        return True

    def fit(self, k: int) -> LinearModels:
        return self._solved(k, self.template, self.Y, self.s)

    def _solved(self, k: int, template: Any, Y: Array, s: Array) -> LinearModels:
        p, T = self.X.shape[1], Y.shape[1]
        coef, intercept = np.empty((len(self.values), p, T)), np.empty((len(self.values), T))
        from_sums = bool(self.sums) and Y is self.Y
        for free, members in self.groups.items():
            alphas = np.array([float(self.values[j].get("alpha", 0.0)) for j in members])
            found = self._path(k, free, alphas, Y, s, from_sums)
            coef[members], intercept[members] = found
        kind = as_design(self.X).dtype
        return _Ridges(
            self, k, template, coef.astype(kind), intercept.astype(kind), from_sums and self.plain
        )

    def _path(
        self, k: int, free: bool, alphas: Array, Y: Array, s: Array, from_sums: bool
    ) -> tuple[Array, Array]:
        train, _ = self.folds.splits[k]
        if from_sums:
            sums = self.sums[free]
            part = sums.moments(sums.train(k))
            found = path_of_moments(part, self.X, Y, s, train, alphas, exact=_EXACT)
            if found is not None:
                return found
        rows, everything = take(self.X, train), [(np.arange(len(train)), np.arange(0))]
        kept = s[train] > 0
        if not kept.any():
            raise ValueError("no training rows of positive weight")
        [found] = fold_paths(rows, Y[train], s[train], everything, alphas, fit_intercept=free)
        return found

    def refit(self, model: Any, X: Any, y: Any) -> bool:
        sums = self.sums.get(bool(model.fit_intercept))
        if sums is None or type(model) is not Ridge or not model.alpha:
            return False
        total = sums.moments(sums.total)
        given = (total.gram, total.right, total.mean, total.y_mean)
        model._fit(X, y, self.folds.sample_weight, given)
        return True

    def extra(self) -> dict[str, Any]:
        """Attributes that do not depend on alpha."""
        if isinstance(self.template, LinearRegression):
            return {}
        from ...linear_model.ridge import _solver_name

        T = self.Y.shape[1]
        name = _solver_name(self.template.solver, False, self.X)
        return {"n_iter_": np.ones(T, dtype=np.int64), "solver_": name, "method_": "direct"}


class RidgeClassifierFamily(RidgeFamily):
    """RidgeClassifier over alpha and fit_intercept: ridge regression on -1 and +1."""

    def _validated(self) -> tuple[Any, Array, Array]:
        folds, model = self.folds, self.template
        X, y, weights = model._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        model._learn_labels(y)
        self.labels, self.weights = y, weights
        Y = model._targets(y)
        self.single = self.one_dimensional = Y.shape[1] == 1
        self.plain_weights = model.class_weight is None or isinstance(model.class_weight, dict)
        if not self.plain_weights:
            return X, Y, np.ones(len(Y))
        s = model._weights(y, weights)
        return X, Y, np.ones(len(Y)) if s is None else s

    def _shares_rows(self) -> bool:
        return self.plain_weights

    def fit(self, k: int) -> LinearModels:
        train, _ = self.folds.splits[k]
        import copy

        template = copy.copy(self.template)
        template._learn_labels(self.labels[train])
        if np.array_equal(template.classes_, self.template.classes_) and self.plain_weights:
            return self._solved(k, template, self.Y, self.s)
        own = template._targets(
            self.labels[train]
        )  # a class is missing, or the weights depend on the fold
        weights = template._weights(
            self.labels[train], None if self.weights is None else self.weights[train]
        )
        Y, s = np.zeros((len(self.labels), own.shape[1])), np.zeros(len(self.labels))
        Y[train], s[train] = own, 1.0 if weights is None else weights
        return self._solved(k, template, Y, s)

    def extra(self) -> dict[str, Any]:
        found = super().extra()
        return {name: found[name] for name in ("n_iter_", "solver_")}


class _Ridges(LinearModels):
    """The models of one fold, which know their squared errors without predicting."""

    def __init__(
        self,
        family: RidgeFamily,
        k: int,
        template: Any,
        coef: NDArray[Any],
        intercept: NDArray[Any],
        from_sums: bool,
    ) -> None:
        classifies = isinstance(family, RidgeClassifierFamily)
        single = coef.shape[2] == 1
        super().__init__(
            template, family.values, coef, intercept,
            single=single, extra=[family.extra()] * len(family.values),
        )  # fmt: skip
        self.family, self.k, self.from_sums = family, k, from_sums and not classifies
        self.answers_by = "decision_function" if classifies else "predict"  # type: ignore[misc]

    def attributes(self, j: int) -> dict[str, Any]:
        found = super().attributes(j)
        if self.single and not self.family.one_dimensional and self.answers_by == "predict":
            flat = not isinstance(self.template, LinearRegression)  # scikit-learn's shapes
            found["coef_"] = found["coef_"] if flat else found["coef_"][None]
            if self.values[j]["fit_intercept"]:
                found["intercept_"] = self.intercept[j]
        return found

    def squared_errors(self, which: str) -> Array | None:
        if not self.from_sums or self.coef.dtype != np.float64:
            return None
        out = np.empty(self.intercept.shape)
        for free, members in self.family.groups.items():
            sums = self.family.sums[free]
            part = sums.tests[self.k] if which == "test" else sums.train(self.k)
            found = _errors(part, sums, self.coef[members], self.intercept[members])
            if found is None:
                return None
            out[members] = found
        return out


def _errors(part: Sums, sums: FoldSums, coef: Array, intercept: Array) -> Array | None:
    """Sums of squared errors (m, T), or None where they cancel."""
    shift = intercept + sums.center @ coef - sums.y_center  # (m, T)
    out = np.empty(shift.shape)
    for t in range(shift.shape[1]):
        W, d = coef[:, :, t], shift[:, t]
        bend = np.einsum("ij,ij->i", W @ part.gram, W)
        cross = 2.0 * (W @ part.right[:, t])
        tilt = 2.0 * d * (part.y[t] - W @ part.x)
        out[:, t] = part.squares[t] - cross + bend - tilt + part.mass * d**2
        terms = part.squares[t] + bend + part.mass * d**2
        if not (out[:, t] >= _CANCELS * terms).all():
            return None
    return out
