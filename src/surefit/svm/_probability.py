"""Platt's probabilities of a machine made of pairs: by cross-validation, coupled into those of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import deprecated
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._pairs import Pair
from ._platt import couple, platt, sigmoid
from ._rows import kernel_sums, take

__all__ = ["PairProbabilities", "warn_probability"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def warn_probability(model: Any) -> None:
    """scikit-learn's warning: the parameter goes in 1.11."""
    if model.probability != "deprecated":
        warnings.warn(
            "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
            "`CalibratedClassifierCV(SVC(), ensemble=False)` instead of `SVC(probability=True)`",
            FutureWarning,
            stacklevel=4,
        )


def _has_probability(model: Any) -> bool:
    if model.probability == "deprecated" or not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class PairProbabilities:
    """``predict_proba`` of a machine that was fitted with ``probability=True``."""

    classes_: Any
    kernel_: Any
    _given: Any
    _machine: Any
    _pair_decisions: Any
    _platt_: Any  # (A, B) of each pair

    def _cross_validated(self, X: Any, pairs: list[Pair], seeds: Any) -> Array:
        """(A, B) of each pair, from decision values of 5-fold cross-validation."""

        def values(pair: Pair, train: Index, test: Index) -> Array:
            rows = pair.rows[train]
            machine = self._machine(X, rows, pair.signs[train], pair.bounds[train])
            used = np.flatnonzero(machine.beta)
            if not len(used):
                return np.full(len(test), np.sign(machine.offset))

            left = take(X, pair.rows[test])
            right = left if self._given else take(X, rows[used])
            weights = machine.beta[used][:, None]
            sums = kernel_sums(self.kernel_, left, right, weights, columns=rows[used])
            return sums[:, 0] + machine.offset

        return _probabilities(pairs, seeds, values)

    @available_if(_has_probability)
    def predict_proba(self, X: Any) -> Array:
        """Platt's probabilities of the classes, coupled over pairs."""
        check_is_fitted(self)
        if not len(self._platt_):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return _class_probabilities(self._pair_decisions(X), self._platt_, len(self.classes_))

    @available_if(_has_probability)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of :meth:`predict_proba`."""
        return np.log(self.predict_proba(X))

    @deprecated(  # type: ignore[prop-decorator]
        "Attribute `probA_` was deprecated in version 1.9 and will be removed in 1.11 as the "
        "`probability=True` option for SVC and NuSVC was deprecated and will be removed in 1.11."
    )
    @property
    def probA_(self) -> Array:
        """Platt's A for each pair, when fitted with ``probability=True``."""
        return self._platt_[:, 0]

    @deprecated(  # type: ignore[prop-decorator]
        "Attribute `probB_` was deprecated in version 1.9 and will be removed in 1.11 as the "
        "`probability=True` option for SVC and NuSVC was deprecated and will be removed in 1.11."
    )
    @property
    def probB_(self) -> Array:
        """Platt's B for each pair, when fitted with ``probability=True``."""
        return self._platt_[:, 1]


def _probabilities(
    pairs: list[Pair], seeds: Any, values: Callable[[Pair, Index, Index], Array]
) -> Array:
    """(A, B) of each pair; ``values(pair, train, test)`` gives decision values of one fold."""
    found = []
    for pair, seed in zip(pairs, seeds):
        n = len(pair.rows)
        order = np.random.default_rng(int(seed)).permutation(n)
        decisions = np.zeros(n)
        for test in np.array_split(order, min(5, n)):
            train = np.sort(np.setdiff1d(order, test))
            sides = pair.signs[train]
            if (sides > 0).any() and (sides < 0).any():
                decisions[test] = values(pair, train, test)
            else:
                decisions[test] = np.sign(sides.sum())
        found.append(platt(decisions, pair.signs > 0))
    return np.array(found)


def _class_probabilities(decisions: Array, AB: Array, k: int) -> Array:
    """Probabilities of shape (n, k) from the pairs' decisions."""
    r = np.zeros((len(decisions), k, k))
    for f, (A, B), (a, b) in zip(decisions.T, AB, combinations(range(k), 2)):
        p = np.clip(sigmoid(f, A, B), 1e-7, 1.0 - 1e-7)
        r[:, a, b], r[:, b, a] = p, 1.0 - p
    return np.column_stack([r[:, 0, 1], r[:, 1, 0]]) if k == 2 else couple(r)
