r"""The elastic net on a few columns, exactly: an active-set method on their Gram matrix.

    min_w  1/2 w'Gw - c'w + l1 ||w||_1 + l2/2 ||w||^2      (w >= 0 on request)

Coefficients in use, with their signs, span a *face* on which the objective is quadratic: its minimum is one
solve with the Cholesky factor of G_AA + l2 I. A round is

1. a Newton step to the minimum of the face. Coefficients that would change sign leave it, all at once: the
   minimum with them held at 0 follows from the same factor through a small Schur complement. Where leaving
   together does not lower the objective, the step ends at the first zero on its way;
2. the worst violators of |q_j| <= l1, q = c - Gw, enter. The factor grows by their rows; it is computed anew
   only when a coefficient has left.

Each step lowers the objective and there are finitely many faces, so the method ends at the optimum itself;
along a path of penalties, starting from the last solution, it takes three or four rounds a penalty, where
coordinate descent takes hundreds of sweeps. Columns that depend on the face do not enter: a twin of a column
in use never violates its condition, and any other is exchanged for a member along the direction in which the
fit does not change.

References
----------
Osborne, Presnell & Turlach, "A new approach to variable selection in least squares problems" (2000); Gill,
Murray, Saunders & Wright, "A Schur-complement method for sparse quadratic programming" (1990).
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import one_thread

__all__ = ["Face", "active_set", "descend"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_DEPENDENT = 1e-13  # a pivot below this share of its diagonal entry is rounding
_TOGETHER = 5  # times that more coefficients may be found to leave in one step
_FEW = 10  # may enter at once in any case, and a quarter of those in use
_PART = 4
_SERIOUS = 0.3  # who violates by this share of the worst enters with it
_DELETIONS = 0.02  # rotations, as a share of k^3, up to which a factor is updated, not rebuilt
_STALLED = 4  # rounds in a row that gain nothing but rounding
_LOWER = 0.3  # share of its level to which the penalty is lowered at a time
_SMALL = 500  # columns up to which the matrix library gains nothing from a second thread
_ROUGH = 1e-3  # of the objective at 0: the gap that is enough there


class Face:
    """The coefficients in use, their signs, and the Cholesky factor of their Hessian; kept between calls."""

    def __init__(self) -> None:
        self.members: Index = np.empty(0, np.int64)
        self.signs: Array = np.empty(0)
        self.ridge = 0.0
        self._factor: Array = np.zeros((16, 16))

    def __len__(self) -> int:
        return len(self.members)

    def reset(self, gram: Array, members: Index, signs: Array, ridge: float) -> bool:
        """Exactly these; False, and empty, when their columns depend on each other."""
        from .._jit.active_set import gather

        self.members, self.signs, self.ridge = members, signs, ridge
        k = len(members)
        if k == 0:
            return True
        try:
            factor = np.linalg.cholesky(gather(gram, members, ridge))
        except np.linalg.LinAlgError:
            self.truncate(0)
            return False
        self._make_room(k)
        self._factor[:k, :k] = factor
        return True

    def relabel(self, places: Index) -> None:
        """The columns have moved: what was j is now ``places[j]``."""
        self.members = places[self.members]

    def matches(self, w: Array, ridge: float) -> bool:
        """Whether this is the face on which w lies."""
        same = ridge == self.ridge and np.count_nonzero(w) == len(self)
        return same and bool((np.sign(w[self.members]) == self.signs).all())

    def enter(self, gram: Array, new: Index, signs: Array) -> tuple[int, Array]:
        """Take ``new`` in, less those that depend; how many were taken, and L^-1 G_A,new row by row."""
        from .._jit.active_set import forward, independent

        k = len(self)
        rows = gram[new[:, None], self.members]
        forward(self._factor, k, rows)
        schur = gram[new[:, None], new] - rows @ rows.T
        schur[np.diag_indices(len(new))] += self.ridge
        kept, corner = independent(schur, gram[new, new] + self.ridge, _DEPENDENT)
        size = k + len(kept)
        self._make_room(size)
        self._factor[k:size, :k], self._factor[k:size, k:size] = rows[kept], corner
        self.members = np.concatenate([self.members, new[kept]])
        self.signs = np.concatenate([self.signs, signs[kept]])
        return len(kept), rows

    def truncate(self, k: int) -> None:
        """Only the first k members stay; the factor is nested."""
        self.members, self.signs = self.members[:k], self.signs[:k]

    def leave(self, gram: Array, gone: Index) -> bool:
        """Members at these places leave; False, and empty, when the rest cannot be factorised."""
        from .._jit.active_set import delete

        k, stay = len(self), np.ones(len(self), dtype=bool)
        stay[gone] = False
        if float(((k - gone) ** 2).sum()) > _DELETIONS * k**3:
            return self.reset(gram, self.members[stay], self.signs[stay], self.ridge)
        for removed, place in enumerate(np.sort(gone)[::-1]):
            delete(self._factor, k - removed, int(place))
        self.members, self.signs = self.members[stay], self.signs[stay]
        return True

    def solve(self, b: Array) -> Array:
        """(G_AA + l2 I)^-1 b."""
        from .._jit.active_set import backward, forward

        x = b.copy()
        forward(self._factor, len(self), x[None])
        backward(self._factor, len(self), x)
        return x

    def without(self, gone: Index) -> Array:
        """L^-1 e_i, a row for each i in ``gone``."""
        from .._jit.active_set import forward

        rows = np.zeros((len(gone), len(self)))
        rows[np.arange(len(gone)), gone] = 1.0
        forward(self._factor, len(self), rows)
        return rows

    def back(self, x: Array) -> Array:
        """L'^-1 x, in place."""
        from .._jit.active_set import backward

        backward(self._factor, len(self), x)
        return x

    def _make_room(self, k: int) -> None:
        if k > len(self._factor):
            larger = np.zeros((2 * k, 2 * k))
            size = len(self._factor)
            larger[:size, :size] = self._factor
            self._factor = larger


def descend(
    gram: Array,
    w: Array,
    q: Array,
    l1: float,
    l2: float,
    face: Face,
    *,
    positive: bool,
    target: float,
    null: float,
    budget: int,
) -> int:
    """:func:`active_set`, from far: the l1 penalty is lowered to its value in a few steps."""
    used, slack = 0, q - l2 * w
    level = _LOWER * float((slack if positive else np.abs(slack)).max(initial=0.0))
    options: dict[str, Any] = {"positive": positive, "null": null}
    with one_thread if len(w) <= _SMALL else nullcontext():
        while level > l1 and used < budget:
            used += active_set(
                gram, w, q, level, l2, face, target=_ROUGH * null, budget=budget - used, **options
            )
            level *= _LOWER
        if used < budget:
            used += active_set(
                gram, w, q, l1, l2, face, target=target, budget=budget - used, **options
            )
    return used


def active_set(
    gram: Array,
    w: Array,
    q: Array,
    l1: float,
    l2: float,
    face: Face,
    *,
    positive: bool,
    target: float,
    null: float,
    budget: int,
) -> int:
    """Minimise over w until the duality gap is at most ``target``; returns the number of Newton steps made.

    Parameters
    ----------
    gram : array of shape (>= m, >= m)
        Its leading m rows and columns are G.
    w, q : arrays of shape (m,)
        Start, and q = c - Gw there; both are changed in place. Which columns may not be used has a zero in
        the diagonal of G.
    face : Face
        From the last call, or empty.
    target, null : float
        The gap to reach, on these columns alone, and the objective at w = 0.
    budget : int
        Most Newton steps.
    """
    from .._jit.active_set import subtract_rows

    usable = gram.diagonal()[: len(w)] > 0.0
    largest = float(gram.diagonal()[: len(w)].max(initial=0.0))
    floor = 4e-16 * math.sqrt(2.0 * null) * math.sqrt(largest)
    free = l1 == 0.0 and not positive
    if not face.matches(w, l2):
        members = np.flatnonzero(w)
        if not face.reset(gram, members, np.sign(w[members]), l2):
            return 0
    entered, most, stalled = 0, len(w), 0
    for used in range(1, budget + 1):
        gain = 0.0
        if len(face) > 0:
            step, gone, gain, whole = _newton(face, w, q, l1, l2, free)
            if not whole and entered > 1:  # too many at once: only the one that violates most
                face.truncate(len(face) - entered + 1)
                entered = most = 1
                continue
            subtract_rows(gram, face.members, step, q)
            moved = w[face.members] + step
            moved[gone] = 0.0
            w[face.members] = moved
            entered = 0
            if len(gone) > 0 and not face.leave(gram, gone):
                return used
            if not whole:
                continue
        slack = q - l2 * w
        violation = np.where(usable, (slack if positive else np.abs(slack)) - l1, 0.0)
        violation[face.members] = 0.0
        inside = np.abs(slack[face.members] - l1 * face.signs).max(initial=0.0)
        worst = max(float(violation.max(initial=0.0)), float(inside))
        share = worst / (worst + l1) if worst > 0.0 else 0.0
        stalled = stalled + 1 if gain <= 1e-16 * null else 0
        if share * (l1 * float(np.abs(w).sum()) + share * null) <= target or worst <= floor:
            return used
        if stalled > _STALLED:
            return used
        most = len(w) if free else min(2 * most, max(_FEW, len(face) // _PART))
        new = np.flatnonzero(violation > max(_SERIOUS * violation.max(), floor))
        if len(new) == 0:
            continue
        new = new[np.argsort(-violation[new])[:most]]
        entered, rows = face.enter(gram, new, np.ones(len(new)) if positive else np.sign(q[new]))
        if entered == 0 and not _exchange(gram, w, q, face, int(new[0]), rows[0], positive):
            return used
    return budget


def _newton(
    face: Face, w: Array, q: Array, l1: float, l2: float, free: bool
) -> tuple[Array, Index, float, bool]:
    """The step to the minimum of the face, who leaves on the way, the gain, and whether it gets there.

    With Z held at 0 the minimum is that of the face less H^-1 E_Z a, where (H^-1)_ZZ a = (w + d)_Z.
    """
    here, signs = w[face.members], face.signs
    slack = q[face.members] - l2 * here - l1 * signs
    newton = face.solve(slack)
    step, gone = newton, np.empty(0, np.int64)
    held: Array = np.empty(0)
    for _ in range(_TOGETHER):
        crossing = (here + step) * signs < 0.0
        crossing[gone] = False
        if free or not crossing.any():
            gain = 0.5 * float(slack @ step) - 0.5 * float(held @ here[gone])
            if gain >= 0.0:
                return step, gone, gain, True
            break
        gone = np.concatenate([gone, np.flatnonzero(crossing)])
        rows = face.without(gone)
        held = np.asarray(np.linalg.solve(rows @ rows.T, (here + newton)[gone]))
        step = newton - face.back(held @ rows)
    crossing = (here + newton) * signs < 0.0
    length = np.full(len(here), np.inf)
    length[crossing] = -here[crossing] / newton[crossing]
    first = float(length.min())
    gone = np.flatnonzero(length <= first * (1.0 + 1e-12))
    return first * newton, gone, (first - 0.5 * first**2) * float(slack @ newton), False


def _exchange(
    gram: Array, w: Array, q: Array, face: Face, j: int, row: Array, positive: bool
) -> bool:
    """Take in column j, which depends on the face, for the first member that the move takes to 0.

    Along w_j = t, w_A = -t H^-1 G_Aj the fit stays, and the penalty falls, as j violates its condition.
    """
    from .._jit.active_set import subtract_rows

    sign = 1.0 if positive else float(np.sign(q[j]))
    direction = -sign * face.back(row.copy())
    here = w[face.members]
    shrinking = direction * face.signs < 0.0
    length = np.full(len(here), np.inf)
    length[shrinking] = -here[shrinking] / direction[shrinking]
    first = float(length.min(initial=np.inf))
    if not np.isfinite(first):
        return False
    gone = np.flatnonzero(length <= first * (1.0 + 1e-12))
    subtract_rows(gram, face.members, first * direction, q)
    subtract_rows(gram, np.array([j]), np.array([first * sign]), q)
    moved = here + first * direction
    moved[gone] = 0.0
    w[face.members] = moved
    w[j] = first * sign
    stay = np.ones(len(face), dtype=bool)
    stay[gone] = False
    members, signs = np.append(face.members[stay], j), np.append(face.signs[stay], sign)
    return face.reset(gram, members, signs, face.ridge)
