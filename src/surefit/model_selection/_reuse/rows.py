"""The data of a search: the rows of each fold, taken once and handed out as the same objects each time.

A model of a fold recognises its own test and training rows by identity, and answers for them from what was
computed for all candidates together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from ...solvers.fold_moments import Fold, run_of

__all__ = ["Folds", "take"]


class Folds:
    """The rows of every fold.

    Parameters
    ----------
    estimator : estimator
        Asked whether X is a square matrix over pairs of rows.
    X, y : array-like
        As the caller gave them.
    splits : list of (train, test) row numbers
    sample_weight : array of shape (n,) or None
        For the fits.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, splits: list[Any], sample_weight: Any
    ) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.sample_weight = sample_weight
        self.splits: list[Fold] = [(np.asarray(a), np.asarray(b)) for a, b in splits]
        self.taken = 0  # bytes of matrices over all rows that are kept
        self._kept: dict[tuple[int, str], tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self.splits)

    def rows(self, k: int, which: str) -> tuple[Any, Any]:
        """(X, y) of the test ("test") or training ("train") rows of a fold."""
        found = self._kept.get((k, which))
        if found is None:
            train, test = self.splits[k]
            index = test if which == "test" else train
            if type(self.X) is np.ndarray and not _pairwise(self.estimator):
                found = take(self.X, index), _targets(self.y, index)
            else:
                found = _safe_split(self.estimator, self.X, self.y, index, train)
            self._kept[k, which] = found
        return found

    def forget(self, k: int) -> None:
        """The rows of a fold that is done with."""
        for which in ("test", "train"):
            self._kept.pop((k, which), None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}


def take(X: Any, index: NDArray[Any]) -> Any:
    """Some rows; without a copy where they are consecutive rows of an array, then not to be written to."""
    rows = run_of(index) if isinstance(X, np.ndarray) and index.dtype.kind in "iu" else index
    part = (X.tocsr() if hasattr(X, "tocsr") else X)[rows]
    if isinstance(rows, slice):
        part.flags.writeable = False
    return part


def _targets(y: Any, index: NDArray[Any]) -> Any:
    if y is None:
        return None
    return take(y, index) if type(y) is np.ndarray else _safe_indexing(y, index)


def _pairwise(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.pairwise)
