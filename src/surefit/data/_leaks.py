"""Leak suspects: how well one column alone predicts the target.

The rows are cut in two at random. A row of the second half is predicted by the rows of the first that hold
the same value, or for a number the nearest value (one nearest neighbour, in one dimension): the class that
is most over-represented there, or the mean. The score is the balanced accuracy, or R^2, on the second half.
A column that records the answer, or something known only after it, scores 1 or nearly so; noise cannot,
since no row is judged by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEWEST_ROWS", "SUSPECT", "Halves"]

Array = NDArray[np.float64]
SUSPECT = 0.99  # a column with at least this score is called out
FEWEST_ROWS = 20
MOST_ROWS = 20_000  # a sample of this size decides


class Halves:
    """Two random halves of the rows with a target, ready to score columns.

    Parameters
    ----------
    target : array
        Class numbers for classification, numbers for regression.
    n_classes : int
        0 for regression.
    """

    def __init__(self, target: NDArray[np.generic], n_classes: int, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(target))[:MOST_ROWS]
        half = len(order) // 2
        self.learn, self.judge = order[:half], order[half:]
        self.target, self.n_classes = target, n_classes

    def score(self, values: Array) -> float | None:
        """Score of one column of numbers or category numbers; NaN is a value of its own."""
        if len(self.learn) * 2 < FEWEST_ROWS:
            return None
        values = values.astype(np.float64)
        known = values[np.isfinite(values)]
        if len(known) < len(values):  # far below all others
            low = float(known.min(initial=0.0)) if len(known) else 0.0
            spread = float(np.ptp(known)) if len(known) else 0.0
            values = np.where(np.isfinite(values), values, low - 2 * spread - 1)
        keys, place = np.unique(values[self.learn], return_inverse=True)
        nearest = _nearest(keys, values[self.judge])
        target = self.target[self.judge]
        if self.n_classes:
            return self._balanced(len(keys), place, nearest, target)
        sums = np.bincount(place, weights=self.target[self.learn].astype(np.float64))
        means = sums / np.bincount(place)
        truth = target.astype(np.float64)
        spread = float(np.sum((truth - truth.mean()) ** 2))
        if spread == 0.0 or not np.isfinite(spread):
            return None
        return float(1.0 - np.sum((truth - means[nearest]) ** 2) / spread)

    def _balanced(
        self,
        n_keys: int,
        place: NDArray[np.intp],
        nearest: NDArray[np.intp],
        target: NDArray[np.generic],
    ) -> float:
        """Balanced accuracy of the class that is most over-represented at each value."""
        learnt = self.target[self.learn].astype(np.intp)
        counts = np.zeros((n_keys, self.n_classes))
        np.add.at(counts, (place, learnt), 1.0)
        counts /= np.maximum(np.bincount(learnt, minlength=self.n_classes), 1)
        right = counts.argmax(axis=1)[nearest] == target
        sizes = np.bincount(target.astype(np.intp), minlength=self.n_classes)
        hits = np.bincount(target.astype(np.intp), weights=right, minlength=self.n_classes)
        return float(np.mean(hits[sizes > 0] / sizes[sizes > 0]))


def _nearest(keys: Array, values: Array) -> NDArray[np.intp]:
    """Place in sorted ``keys`` of the one nearest to each value."""
    right = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(values - keys[left]) < np.abs(keys[right] - values), left, right)
