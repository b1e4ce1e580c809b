"""The binary classifiers of :mod:`surefit.multiclass`: how they are asked, and one that needs no fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import _num_samples

__all__ = ["ConstantPredictor", "fitted_part", "part_has", "score_of", "threshold_of"]

Array = NDArray[np.float64]


class ConstantPredictor(BaseEstimator):
    """Says the same of every row: of a label that all training rows have, or none.

    Attributes
    ----------
    y_ : ndarray of shape (1,)
        The label, 0 or 1.
    """

    def fit(self, X: Any, y: Any) -> ConstantPredictor:
        """Remember the label."""
        self.y_ = np.unique(y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """That label, for every row."""
        return np.repeat(self.y_, _num_samples(X))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The label as a score, as scikit-learn has it."""
        return self.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Certainty."""
        p = float(self.y_[0])
        return np.tile([1.0 - p, p], (_num_samples(X), 1))


def fitted_part(part: Any, X: Any, labels: NDArray[np.int64], weights: dict[str, Any]) -> Any:
    """A part after its fit; a constant where there is one label only."""
    if len(np.unique(labels)) == 1:
        return ConstantPredictor().fit(X, labels)
    return part.fit(X, labels, **weights)


def score_of(part: Any, X: Any) -> Array:
    """The margin of a classifier, the probability of its second class, or a regressor's prediction."""
    if is_regressor(part):
        return np.ravel(part.predict(X))
    try:
        return np.ravel(part.decision_function(X))
    except (AttributeError, NotImplementedError):
        return np.asarray(part.predict_proba(X))[:, 1]


def threshold_of(part: Any) -> float:
    """Above which score a part says yes."""
    return 0.0 if hasattr(part, "decision_function") and is_classifier(part) else 0.5


def part_has(name: str) -> Callable[[Any], bool]:
    """For ``available_if``: whether the parts have a method; the AttributeError of the part, where not."""

    def check(reduction: Any) -> bool:
        parts = getattr(reduction, "estimators_", None)
        getattr(parts[0] if parts else reduction.estimator, name)
        return True

    return check
