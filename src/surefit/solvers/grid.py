r"""Grid search (OPT-1).

Evaluate f at every point of a lattice over a box, and keep the best: :math:`|G|^D` evaluations for
|G| points an axis in D dimensions. Without more knowledge of f there is no guarantee at all.

Guarantee. Every point of the box is within the *cell radius*
:math:`r = \tfrac12\|(s_1, \dots, s_D)\|` of the lattice, :math:`s_j` the spacing of axis j. If f is
G-Lipschitz, the best value found is therefore within :math:`G\,r` of the minimum over the box.

References
----------
Y. Nesterov. Introductory Lectures on Convex Optimization, section 1.1.3: no method does better, in
general, on Lipschitz functions. Springer, 2004.

Examples
--------
>>> import numpy as np
>>> f = lambda x: float(np.abs(x - 0.3).sum())  # sqrt(2)-Lipschitz in the plane
>>> steps = list(grid_search(f, [0.0, 0.0], [1.0, 1.0], 5))
>>> len(steps), steps[-1].x, round(steps[-1].value, 12)
(25, array([0.25, 0.25]), 0.1)
>>> bool(steps[-1].value <= np.sqrt(2) * cell_radius([0.0, 0.0], [1.0, 1.0], 5))
True
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import Claim, Kind
from ..iterate import Iterate
from ._typing import Objective, Vector, norm

__all__ = ["cell_radius", "grid_claim", "grid_search", "grid_size"]


def grid_search(
    f: Objective, lower: ArrayLike, upper: ArrayLike, points: int | Sequence[int] = 11
) -> Iterator[Iterate]:
    """The best point of a lattice; one evaluation an iterate.

    Parameters
    ----------
    f : callable
        The function.
    lower, upper : array-like of shape (n,)
        Opposite corners of the box; both belong to the lattice.
    points : int or sequence of int
        Points an axis, at least 2.

    Yields
    ------
    Iterate
        The best point so far. The k-th iterate comes after the k-th evaluation; the generator ends
        after ``grid_size(...)`` of them.
    """
    low, high, counts = _box(lower, upper, points)
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, counts)]
    best_x, best_value = low, math.inf
    for coordinates in itertools.product(*axes):
        x = np.array(coordinates)
        value = f(x)
        if value < best_value:
            best_x, best_value = x, value
        yield Iterate(best_x, best_value)


def grid_size(lower: ArrayLike, upper: ArrayLike, points: int | Sequence[int] = 11) -> int:
    """How many evaluations a grid costs: the product of the points of its axes."""
    return math.prod(_box(lower, upper, points)[2])


def cell_radius(lower: ArrayLike, upper: ArrayLike, points: int | Sequence[int] = 11) -> float:
    """The largest distance from a point of the box to the nearest point of the lattice."""
    low, high, counts = _box(lower, upper, points)
    return 0.5 * norm((high - low) / (np.array(counts) - 1))


def grid_claim(
    value: float, radius: float, lipschitz: float, *, optimum: float | None = None, tol: float = 0.0
) -> Claim:
    """What a finished grid shows about a ``lipschitz``-Lipschitz function.

    Parameters
    ----------
    value : float
        The best value found.
    radius : float
        The :func:`cell_radius`.
    lipschitz : float
        The Lipschitz constant of f over the box, in the Euclidean norm.
    optimum : float, optional
        The true minimum over the box. With it, the theorem itself is checked: the gap is at most
        ``lipschitz * radius``.
    tol : float
        Without ``optimum``: the accuracy asked for, absolute.

    Returns
    -------
    Claim
        BOUND with ``optimum``, otherwise OPTIMAL.
    """
    if optimum is not None:
        gap = value - optimum
        text = (
            f"the best grid point is {gap:.3g} above the minimum; "
            f"G x cell radius = {lipschitz * radius:.3g}"
        )
        floor = 16 * float(np.finfo(np.float64).eps) * max(abs(value), abs(optimum))
        return Claim.check(
            "grid bound", text, Kind.BOUND, gap, lipschitz * radius, "OPT-1", floor=floor
        )
    text = (
        f"the best grid point is within G x cell radius = {lipschitz * radius:.3g} of the minimum over "
        f"the box, if f is {lipschitz:.6g}-Lipschitz"
    )
    return Claim.check("grid gap", text, Kind.OPTIMAL, lipschitz * radius, tol, "OPT-1")


def _box(
    lower: ArrayLike, upper: ArrayLike, points: int | Sequence[int]
) -> tuple[Vector, Vector, list[int]]:
    low = np.atleast_1d(np.asarray(lower, dtype=np.float64))
    high = np.atleast_1d(np.asarray(upper, dtype=np.float64))
    finite = bool(np.isfinite(low).all() and np.isfinite(high).all())
    if low.shape != high.shape or low.ndim != 1 or not finite or not (low <= high).all():
        raise ValueError(
            f"lower and upper must be finite corners of a box of one shape, got {lower!r} and {upper!r}; "
            "for example lower=[0, 0], upper=[1, 1]."
        )
    counts = [points] * len(low) if isinstance(points, int) else [int(n) for n in points]
    if len(counts) != len(low) or min(counts) < 2:
        raise ValueError(
            f"points must be an integer of at least 2, or one an axis ({len(low)}), got {points!r}; "
            "11 points an axis are the default."
        )
    return low, high, counts
