"""The Lasso and the elastic net over alpha: the path on each fold, every penalty starting from the last.

With many rows to a column a fold is reduced to its products, of which all folds together cost one pass
(:mod:`surefit.linear_model._path_folds`). Every model reaches the duality gap that a fit of its own
claims; a fold in which one does not is left to be fitted one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...design import as_design
from ...linear_model._path_folds import Options, path_models, path_moments
from ...linear_model.paths import random_order
from .family import Family
from .models import LinearModels

__all__ = ["ElasticNetFamily"]


class ElasticNetFamily(Family):
    """ElasticNet and Lasso over alpha, for one target."""

    name = "paths over alpha"
    varies: ClassVar[frozenset[str]] = frozenset({"alpha"})

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return bool(own["alpha"] > 0)

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return (
            not template.warm_start
            and isinstance(template.precompute, bool)
            and template.max_iter is not None
        )

    def prepare(self) -> None:
        folds, model = self.folds, self.template
        X, y, self.weights = model._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        self.X, self.Y = X.tocsr() if hasattr(X, "tocsr") else X, y.reshape(len(y), -1)
        if self.Y.shape[1] > 1:
            raise ValueError("several targets are fitted one by one")
        self.flat = y.ndim == 1
        alphas = np.array([float(v["alpha"]) for v in self.values])
        distinct, self.place = np.unique(-alphas, return_inverse=True)
        self.alphas = -distinct  # decreasing
        free = bool(model.fit_intercept)
        self.moments = path_moments(self.X, self.Y, self.weights, folds.splits, fit_intercept=free)

    def fit(self, k: int) -> LinearModels:
        model = self.template
        rng = random_order(model.selection, model.random_state)
        seed = None if rng is None else int(rng.integers(1 << 31))
        options = Options(
            bool(model.fit_intercept), bool(model.positive), model.tol, model.max_iter, seed
        )
        coefs, intercepts, unfinished = path_models(
            self.X, self.Y, self.weights, self.folds.splits[k][0], self.moments[k], self.alphas,
            float(model.l1_ratio), options,
        )  # fmt: skip
        if unfinished:
            raise ValueError("a penalty did not reach tol")
        kind = as_design(self.X).dtype
        coef = coefs.toarray()[self.place, :, None].astype(kind)
        return _Paths(
            model,
            self.values,
            coef,
            intercepts[self.place].astype(kind),
            single=True,
            flat=self.flat,
        )


class _Paths(LinearModels):
    """scikit-learn's shapes: a target of shape (n, 1) gives an intercept of shape (1,)."""

    def __init__(self, *args: Any, flat: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.flat = flat

    def attributes(self, j: int) -> dict[str, Any]:
        found = super().attributes(j)
        if not self.flat and self.template.fit_intercept:
            found["intercept_"] = self.intercept[j]
        return found
