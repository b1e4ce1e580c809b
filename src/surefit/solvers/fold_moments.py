r"""The normal equations of every fold's training rows, from one pass over the data.

With weights s and means m, a fold needs (X - m)'S(X - m) and (X - m)'S(Y - m_Y) over its training rows. These
sums are those over all rows less those over its test rows: where the folds partition the rows, all folds
together cost one pass instead of one each. The subtraction is done around the mean of all rows, and
moved to the mean of the training rows at the end; ``noise`` says what rounding may have left in it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design import Dense, as_design

__all__ = ["Fold", "FoldMoments", "FoldSums", "Sums", "fold_moments", "run_of"]

Array = NDArray[np.float64]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
_EPS = float(np.finfo(np.float64).eps)


class FoldMoments(NamedTuple):
    """Of the training rows of one fold: centred products, means, and the sum of the weights."""

    gram: Array  # (p, p)
    right: Array  # (p, T)
    mean: Array
    y_mean: Array
    mass: float
    noise: float  # what rounding may do to an eigenvalue of the first,
    right_noise: float  # and to the length of a column of the second


class Sums(NamedTuple):
    """What the above are made of, over some rows; X and Y relative to a common centre."""

    gram: Array
    right: Array
    x: Array
    y: Array
    mass: float
    squares: Array  # of each column of Y

    def plus(self, other: Sums) -> Sums:
        """Those of both sets of rows."""
        pairs: Any = zip(self, other, strict=True)
        return Sums(*(a + b for a, b in pairs))

    def less(self, other: Sums) -> Sums:
        """Those of the rows that are not in the other set."""
        pairs: Any = zip(self, other, strict=True)
        return Sums(*(a - b for a, b in pairs))


class FoldSums:
    """The sums over the test rows of each fold, over its training rows, and over all rows.

    Parameters
    ----------
    X : array or csr matrix of shape (n, p)
    Y : array of shape (n, T)
    s : array of shape (n,)
        Weights; rows of weight 0 are as good as absent.
    folds : list of (train, test) row numbers
    fit_intercept : bool
        Without, both means are 0.
    """

    def __init__(
        self, X: Any, Y: Array, s: Array, folds: list[Fold], *, fit_intercept: bool
    ) -> None:
        self.X, self.Y, self.s, self.folds, self.free = X, Y, s, folds, fit_intercept
        n, p = X.shape
        self.center, self.y_center = np.zeros(p), np.zeros(Y.shape[1])
        if (
            fit_intercept
        ):  # for dense rows, that of a few of them does: the rest is moved at the end
            design = as_design(X)
            dense = isinstance(design, Dense)
            self.center = design.near_mean() if dense else design.mean(s)
            self.y_center = s @ Y / s.sum()
        self.tests = [self.over(test) for _, test in folds]
        if _partition(n, *(test for _, test in folds)):
            self.total = functools.reduce(Sums.plus, self.tests)
        else:
            self.total = self.over(np.arange(n))
        trace = float(np.trace(self.total.gram))
        self.noise = p * _EPS * trace
        self.right_noise = p * _EPS * float(np.sqrt(max(trace * self.total.squares.sum(), 0.0)))

    def over(self, rows: NDArray[np.intp]) -> Sums:
        """The sums over some rows."""
        part = run_of(rows)
        design, weights, Y = as_design(self.X[part]), self.s[part], self.Y[part]
        R = Y - self.y_center
        weighted = weights[:, None] * R
        if isinstance(design, Dense):
            gram, right, x = design.moments_at(Y, weights, self.center, self.y_center, False)
        else:
            gram = design.gram(weights, self.center if self.free else None)
            right = design.tdot(weighted) - np.outer(self.center, weighted.sum(axis=0))
            x = design.tdot(weights) - float(weights.sum()) * self.center
        return Sums(
            gram, right, x, weighted.sum(axis=0), float(weights.sum()), (weighted * R).sum(axis=0)
        )

    def train(self, k: int) -> Sums:
        """Those over the training rows of a fold: the rest, where that is what they are."""
        train, test = self.folds[k]
        n = len(self.s)
        if 2 * len(train) >= n and _partition(n, train, test):
            return self.total.less(self.tests[k])
        return self.over(train)

    def moments(self, ours: Sums) -> FoldMoments:
        """Sums moved to the means of their own rows."""
        shift, y_shift = np.zeros_like(ours.x), np.zeros_like(ours.y)
        if self.free and ours.mass > 0:
            shift, y_shift = ours.x / ours.mass, ours.y / ours.mass
        return FoldMoments(
            ours.gram - ours.mass * np.outer(shift, shift),
            ours.right - ours.mass * np.outer(shift, y_shift),
            self.center + shift,
            self.y_center + y_shift,
            ours.mass,
            self.noise,
            self.right_noise,
        )


def _partition(n: int, *parts: NDArray[np.intp]) -> bool:
    """Whether each of n rows is in one of the parts, once."""
    if sum(len(part) for part in parts) != n:
        return False
    seen = np.zeros(n, dtype=bool)
    for part in parts:
        seen[part] = True
    return bool(seen.all())


def run_of(rows: NDArray[np.intp]) -> Any:
    """Consecutive row numbers as a slice, which copies nothing; others as they are."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def fold_moments(
    X: Any, Y: Array, s: Array, folds: list[Fold], *, fit_intercept: bool
) -> Iterator[FoldMoments]:
    """Those of the training rows of each fold, in order; the parameters of :class:`FoldSums`."""
    sums = FoldSums(X, Y, s, folds, fit_intercept=fit_intercept)
    return (sums.moments(sums.train(k)) for k in range(len(folds)))
