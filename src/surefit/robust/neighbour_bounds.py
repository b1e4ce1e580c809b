r"""Nearest neighbours with equal votes: rows whose label cannot change in a ball.

Let k rows vote, m = floor(k/2) + 1 be a majority, A the m nearest training rows of the label y, and B the
training rows of other labels. Suppose that for every s in A at most k - m rows t in B can come as near as s
at some allowed point. Then the label stays y. Proof: if at some allowed point more than k - m rows of B
were among the k nearest, fewer than m rows of y would be, so some s in A would not be, and all those rows
of B would be as near as s or nearer: a contradiction. So y has at least m of k votes, with ties counted
against it.

Whether t can come as near as s is a linear question: t is farther than s at x' if and only if
:math:`(\|x'-t\|^2 - \|x'-s\|^2)/2 = (\|x-t\|^2 - \|x-s\|^2)/2 - \langle x' - x, t - s\rangle > 0`. The
inner product is at most min(r ||t - s||, sum_i reach_i |t_i - s_i|), r the l2 radius of the allowed set.

Rows t with d_t - d_s > 2r are safe without that (the triangle inequality); with a = d of the m-th row of A
and b that of the (k - m + 1)-th row of B, a label stays where (b - a)/2 > r. The linear question decides
the rest.

Reference: the radius (b - a)/2 is that of Wang, Jha & Chaudhuri, "Analyzing the robustness of nearest
neighbors to adversarial examples" (2018), for k = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ._families import Neighbours
from .threat import Threat

__all__ = ["neighbours_robust"]

Array = NDArray[np.float64]
_CLOSE = 64  # rows of other labels that get the exact question; further ones count as threats unless safe
_CELLS = 1 << 21


def neighbours_robust(
    family: Neighbours, X: Array, codes: NDArray[np.intp], threats: Sequence[Threat]
) -> NDArray[np.bool_]:
    """Which rows keep their label whatever the attack, for each threat: shape (threats, n)."""
    robust = np.zeros((len(threats), len(X)), dtype=np.bool_)
    m = family.k // 2 + 1
    for c in np.unique(codes[codes >= 0]):
        same, other = family.rows[family.codes == c], family.rows[family.codes != c]
        mine = np.flatnonzero(codes == c)
        if len(same) < m:
            continue
        if len(other) <= family.k - m:
            robust[:, mine] = True
            continue
        height = max(1, _CELLS // max(len(same), len(other), m * _CLOSE * X.shape[1]))
        for first in range(0, len(mine), height):
            rows = mine[first : first + height]
            robust[:, rows] = _block(family.k, m, X[rows], same, other, threats)
    return robust


def _block(
    k: int, m: int, X: Array, same: Array, other: Array, threats: Sequence[Threat]
) -> NDArray[np.bool_]:
    near, a = _nearest(X, same, m)
    T = min(_CLOSE, len(other))
    rivals, b = _nearest(X, other, T)
    far = (
        np.partition(cdist(X, other), T, axis=1)[:, T:].min(axis=1)
        if len(other) > T
        else np.full(len(X), np.inf)
    )
    size = np.sqrt((X**2).sum(axis=1)) + max(
        float(np.sqrt((rows**2).sum(axis=1).max())) for rows in (same, other)
    )
    answers = np.zeros((len(threats), len(X)), dtype=np.bool_)
    for e, threat in enumerate(threats):
        r = np.broadcast_to(threat.radius(X), len(X)) * (1.0 + 1e-12)
        reach = np.broadcast_to(threat.reach(X), X.shape)
        slack = (
            4.0 * (X.shape[1] + 16.0) * 2.0**-52 * (size + r) ** 2
        )  # distances of the model included
        worst = np.zeros(len(X), dtype=np.intp)
        for j in range(m):
            s = same[near[:, j]]
            gap = other[rivals] - s[:, None, :]
            free = gap * (reach > 0)[:, None, :]
            push = np.minimum(
                r[:, None] * np.sqrt((free**2).sum(axis=2)),
                (np.abs(free) * reach[:, None, :]).sum(axis=2),
            )
            lead = (b**2 - a[:, j, None] ** 2) / 2.0
            worst = np.maximum(worst, (lead - push <= slack[:, None]).sum(axis=1))
        beyond = (
            far - a[:, -1] - 2.0 * r <= np.sqrt(slack) * 4.0
        )  # some row past the close ones is not safe
        answers[e] = (worst <= k - m) & ~beyond
    return answers


def _nearest(X: Array, rows: Array, count: int) -> tuple[NDArray[np.intp], Array]:
    """The ``count`` nearest of ``rows``, nearest first, and their distances."""
    D = cdist(X, rows)
    chosen = np.argpartition(D, count - 1, axis=1)[:, :count]
    found = np.take_along_axis(D, chosen, axis=1)
    order = np.argsort(found, axis=1)
    return np.take_along_axis(chosen, order, axis=1), np.take_along_axis(found, order, axis=1)
