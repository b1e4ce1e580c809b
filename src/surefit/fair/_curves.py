r"""Group thresholds as a problem: accept rows by score, choose one point on the curve of each group.

Accepting the rows of a group whose score is at least t gives counts (TP, FP), one point for each different
score; drawing between thresholds at random gives the convex hull of these points. For costs ``c_fp``,
``c_fn`` the gain of a point is -(c_fp FP + c_fn FN). A constraint asks for equal rates: the selection rate,
TPR, FPR, or TPR and FPR.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONSTRAINTS", "SLACK", "Curve", "curves", "scale_of"]

Array = NDArray[np.float64]
SLACK = 1e-13  # of differences of rates, quotients of counts: their rounding
CONSTRAINTS = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")


@dataclass(frozen=True)
class Curve:
    """The points of one group: how many rows are accepted with its highest k scores, k = 0, 1, ...

    Attributes
    ----------
    scores : array of shape (points - 1,)
        The different scores, falling.
    tp, fp : arrays of shape (points,)
        Positives and negatives among the rows with the k highest of them.
    """

    scores: Array
    tp: Array
    fp: Array

    @property
    def thresholds(self) -> Array:
        """A threshold for each point, half way between two scores: rounding of a score does not matter."""
        above, below = self.scores[:-1], self.scores[1:]
        middle = below + 0.5 * (above - below)
        middle = np.where((middle > below) & (middle <= above), middle, above)
        return np.concatenate([[np.inf], middle, [-np.inf]])

    def point(self, thresholds: Array) -> NDArray[np.intp]:
        """The point that each threshold makes: how many of the scores are at least that."""
        return np.searchsorted(-self.scores, -thresholds, side="right")

    @property
    def positives(self) -> float:
        return float(self.tp[-1])

    @property
    def negatives(self) -> float:
        return float(self.fp[-1])

    def gain(self, costs: tuple[float, float]) -> Array:
        """Minus the cost of the mistakes at each point."""
        return -(costs[0] * self.fp + costs[1] * (self.positives - self.tp))

    def rates(self, constraint: str) -> list[Array]:
        """The rates that the constraint makes equal, at each point."""
        tpr, fpr = self.tp / max(self.positives, 1.0), self.fp / max(self.negatives, 1.0)
        if constraint == "demographic_parity":
            return [(self.tp + self.fp) / (self.positives + self.negatives)]
        return {
            "equal_opportunity": [tpr], "predictive_equality": [fpr], "equalized_odds": [fpr, tpr]
        }[constraint]  # fmt: skip


def curves(
    score: Array, y: NDArray[np.int64], codes: NDArray[np.int64], groups: int
) -> list[Curve]:
    """The curve of each group."""
    small = (
        codes.astype(np.int16) if groups < 2**15 else codes
    )  # short integers are sorted by digits
    order = np.argsort(small, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=groups))])
    found = []
    for begin, end in itertools.pairwise(edges):
        rows = order[begin:end]
        falling = np.argsort(-score[rows])
        s, hits = score[rows][falling], np.cumsum(y[rows][falling])
        last = np.append(np.flatnonzero(s[1:] != s[:-1]), len(s) - 1)  # of each different score
        tp = np.concatenate([[0.0], hits[last]])
        total = np.concatenate([[0.0], last + 1.0])
        found.append(Curve(s[last], tp, total - tp))
    return found


def scale_of(found: list[Curve], costs: tuple[float, float]) -> float:
    """The cost of the better constant decision: what a gap is measured against."""
    wrong = sum(curve.negatives for curve in found), sum(curve.positives for curve in found)
    return min(costs[0] * wrong[0], costs[1] * wrong[1]) or max(costs)
