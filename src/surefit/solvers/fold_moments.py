r"""The normal equations of every fold's training rows, from one pass over the data.

With weights s and means m, a fold needs (X - m)'S(X - m) and (X - m)'S(Y - m_Y) over its training rows. These
sums are those over all rows less those over its test rows: where the folds partition the rows, all folds
together cost one pass instead of one each. The subtraction is done around the mean of all rows, and
moved to the mean of the training rows at the end; ``noise`` says what rounding may have left in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design import as_design

__all__ = ["Fold", "FoldMoments", "fold_moments"]

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


class _Sums(NamedTuple):
    """What the above are made of; X and Y relative to a common centre."""

    gram: Array
    right: Array
    x: Array
    y: Array
    mass: float
    squares: float

    def __add__(self, other: Any) -> Any:
        return _Sums(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Any) -> Any:
        return _Sums(*(a - b for a, b in zip(self, other, strict=True)))


def fold_moments(
    X: Any, Y: Array, s: Array, folds: list[Fold], *, fit_intercept: bool
) -> Iterator[FoldMoments]:
    """One after the other, in the order of the folds.

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
    n, p = X.shape
    center, y_center = np.zeros(p), np.zeros(Y.shape[1])
    if fit_intercept:
        center, y_center = as_design(X).mean(s), s @ Y / s.sum()

    def sums(rows: Any) -> _Sums:
        design, weights, R = as_design(X[rows]), s[rows], Y[rows] - y_center
        weighted = weights[:, None] * R
        mass = float(weights.sum())
        return _Sums(
            design.gram(weights, center if fit_intercept else None),
            design.tdot(weighted) - np.outer(center, weighted.sum(axis=0)),
            design.tdot(weights) - mass * center,
            weighted.sum(axis=0),
            mass,
            float(np.vdot(weighted, R)),
        )

    held = [sums(test) for _, test in folds]
    tested = np.concatenate([test for _, test in folds])
    partition = len(tested) == n and np.array_equal(np.sort(tested), np.arange(n))
    total = sum(held[1:], start=held[0]) if partition else sums(slice(None))
    noise = p * _EPS * float(np.trace(total.gram))
    right_noise = p * _EPS * float(np.sqrt(max(np.trace(total.gram) * total.squares, 0.0)))
    for (train, test), part in zip(folds, held, strict=True):
        rest = len(train) + len(test) == n and len(np.intersect1d(train, test)) == 0
        ours = total - part if rest and 2 * len(train) >= n else sums(train)
        shift, y_shift = np.zeros(p), np.zeros(Y.shape[1])
        if fit_intercept and ours.mass > 0:
            shift, y_shift = ours.x / ours.mass, ours.y / ours.mass
        yield FoldMoments(
            ours.gram - ours.mass * np.outer(shift, shift),
            ours.right - ours.mass * np.outer(shift, y_shift),
            center + shift,
            y_center + y_shift,
            ours.mass,
            noise,
            right_noise,
        )
