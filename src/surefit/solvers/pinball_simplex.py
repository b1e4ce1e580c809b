r"""The simplex method for piecewise linear regression: from a nearly optimal point to an exact vertex.

The problem is that of :mod:`surefit.solvers.interior_point`. A vertex is k rows with residual 0, the
basis B: A_B beta = y_B. Every other row has its dual variable at a bound, a_i = high_i above the fit and
low_i below it, and the equality A'a = 0 gives those of the basis. If they lie within their bounds too, the
vertex is optimal: primal and dual values agree to rounding. If one does not, the objective falls along the
edge on which that row leaves the fit. The step goes past the kinks of other rows as long as the slope is
negative (a weighted median, not the first kink), so that one pivot does the work of many.

Ties (repeated rows, rounded targets) make steps of length 0, which could go round in circles. When
that is noticed the targets are moved by tiny random amounts; the last pivots are on the true ones.

References
----------
Barrodale & Roberts, "An improved algorithm for discrete l1 linear approximation" (1973); Koenker & d'Orey,
"Computing regression quantiles", Applied Statistics 36 (1987); Maros (2003), chapter 10 (long steps).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..iterate import Iterate
from .interior_point import Rows

__all__ = ["choose_basis", "pinball_simplex"]

Array = NDArray[np.float64]
_REFRESH = 40  # pivots between two factorisations
_EPS = float(np.finfo(np.float64).eps)
_WITHIN = 1e-12  # a dual variable may leave its bounds by this share of the nearer one
_STALLED = 10  # steps of length 0 before the targets are moved
_MOVE = 1e-8  # how far, relative to their mean size,
_TRIES = 3  # and how often


def choose_basis(A: Rows, weights: Array) -> NDArray[np.intp] | None:
    """k independent rows, preferring large ``weights`` (where a row is surely in the basis).

    Gaussian elimination with partial pivoting on the weighted rows; None when the columns are dependent.
    """
    n, k = A.shape
    size = min(n, 3 * k + 20)
    while True:
        likely = np.argpartition(-weights, size - 1)[:size] if size < n else np.arange(n)
        rows = A.take(likely) * np.sqrt(weights[likely])[:, None]
        if size >= k:
            factor, pivots, _ = scipy.linalg.lapack.dgetrf(rows)
            order = np.arange(size)
            for place, other in enumerate(pivots):
                order[[place, other]] = order[[other, place]]
            own = np.abs(rows[order[:k]]).max(axis=1)
            if (np.abs(np.diag(factor)) > 1e-11 * own).all():
                return likely[order[:k]]
        if size == n:
            return None
        size = min(n, 8 * size)


def pinball_simplex(
    A: Rows, y: Any, low: Any, high: Any, basis: NDArray[np.intp], hint: Array, seed: int = 0
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(beta, a, basis), value=objective, estimate=violation)`` after each pivot.

    Parameters
    ----------
    A, y, low, high : as in :func:`surefit.solvers.interior_point.frisch_newton`
    basis : array of shape (k,)
        Independent rows to start from.
    hint : array of shape (n,)
        A dual point near the optimum: it says on which side a row lies that the fit passes through.

    The estimate is the largest distance of a dual variable from its bounds, relative to the nearer one; the
    vertex is optimal when it is 0 (to rounding), and the generator then ends.
    """
    low, high, hint = (to_numpy(v) for v in (low, high, hint))
    true = to_numpy(y)
    state = _Vertex(A, true, low, high, np.array(basis), hint > 0.5 * (low + high))
    rng, still, moved, tries = np.random.default_rng(seed), 0, False, 0
    while True:
        worst, violation = state.worst()
        if violation == 0.0 and state.age:  # updates lose digits: once more, anew
            state.refresh()
            worst, violation = state.worst()
        if violation == 0.0:
            if not moved:
                yield state.iterate(0.0)
                return
            moved, still = False, 0  # the true targets again
            state.retarget(true)
            continue
        step = state.pivot(worst)
        yield state.iterate(violation)
        still = 0 if step > 1e-14 * state.size else still + 1
        if step < 0.0 or (still >= _STALLED and tries == _TRIES):  # rounding is reached
            return
        if still >= _STALLED and not moved:
            sign = np.where(state.upper, 1.0, -1.0)
            shift = _MOVE * state.size * rng.uniform(0.5, 1.0, size=len(true))
            state.retarget(true + shift * sign)
            moved, still, tries = True, 0, tries + 1


class _Vertex:
    """A basis, the point it defines, and on which side of the fit every row lies."""

    def __init__(self, A: Rows, y: Array, low: Array, high: Array, basis: Any, upper: Any) -> None:
        self.A, self.low, self.high, self.basis, self.upper = A, low, high, basis, upper
        self.width = high - low
        self.mass = float(np.sum(np.minimum(-low, high)))
        self.retarget(y)

    def retarget(self, y: Array) -> None:
        """Other targets, the same basis."""
        self.y = y
        self.size = float(np.mean(np.abs(y))) or 1.0
        self.refresh()

    def refresh(self) -> None:
        """Everything anew from the basis."""
        self.age = 0
        rows = self.A.take(self.basis)
        self.inverse = _inverse(rows)
        self.beta = self.inverse @ self.y[self.basis]
        self.beta += self.inverse @ (self.y[self.basis] - rows @ self.beta)
        self.r = self.y - to_numpy(self.A.dot(self.beta))
        self.r[self.basis] = 0.0
        noise = 1e-13 * (self.size + np.abs(self.y))
        self.upper = np.where(np.abs(self.r) > noise, self.r > 0.0, self.upper)
        a = self.at_bounds()
        a[self.basis] = 0.0
        self.pull = self.A.tdot(self.A.vector(a))

    def at_bounds(self) -> Array:
        return np.where(self.upper, self.high, self.low)

    def duals(self) -> Array:
        """Those of the basis, from A'a = 0."""
        return -(self.pull @ self.inverse)

    def refined(self) -> Array:
        """The same with a step of refinement, which a badly conditioned basis needs."""
        a = self.duals()
        return a - (self.pull + a @ self.A.take(self.basis)) @ self.inverse

    def worst(self) -> tuple[int, float]:
        """The place in the basis whose dual variable is farthest out, along a steep edge; and how far."""
        a, low, high = self.duals(), self.low[self.basis], self.high[self.basis]
        length, nearer = np.abs(self.inverse).sum(axis=0), np.minimum(-low, high)
        allowed = np.maximum(_WITHIN * nearer, 2.0 * _EPS * self.mass * length)
        out = np.maximum(a - high, low - a)
        out = np.where(out > allowed, out, 0.0)
        return int(np.argmax(out / self.width[self.basis] / length)), float((out / nearer).max())

    def pivot(self, place: int) -> float:
        """Let the row at ``place`` leave the fit; the length of the step, -1 if nothing ends it."""
        leaving = int(self.basis[place])
        a = float(self.duals()[place])
        above = a > self.high[leaving]
        sign = 1.0 if above else -1.0
        d = -sign * self.inverse[:, place]
        change = -to_numpy(self.A.dot(d))  # of r, per unit of step
        change[self.basis] = 0.0
        nearing = np.flatnonzero(np.where(self.upper, -change, change) > 1e-11)
        if not len(nearing):
            return -1.0
        slope = (self.high[leaving] - a) if above else (a - self.low[leaving])
        when = np.maximum(-self.r[nearing] / change[nearing], 0.0)
        rise = self.width[nearing] * np.abs(change[nearing])
        order = _first_kinks(when, rise, -slope)
        if order is None:
            return -1.0
        tied = order[when[order] >= when[order[-1]] - 1e-15 * self.size]  # prefer a large pivot
        last = tied[np.argmax(np.abs(change[nearing[tied]]))]
        entering, step = int(nearing[last]), float(when[last])
        crossed = nearing[order[(when[order] <= step) & (order != last)]]
        self._move(place, leaving, entering, crossed, above, step, d, change, sign)
        return step

    def _move(
        self, place: int, leaving: int, entering: int, crossed: Any, above: bool, step: float,
        d: Array, change: Array, sign: float,
    ) -> None:  # fmt: skip
        new, old = self.A.take([entering])[0], self.A.take([leaving])[0]
        self.pull = self.pull - new * (self.high if self.upper[entering] else self.low)[entering]
        self.pull += old * (self.high if above else self.low)[leaving]
        if len(crossed):
            jump = np.where(self.upper[crossed], -self.width[crossed], self.width[crossed])
            self.pull += jump @ self.A.take(crossed)
            self.upper[crossed] = ~self.upper[crossed]
        self.upper[leaving] = above
        self.beta = self.beta + step * d
        self.r = self.r + step * change
        self.r[leaving], self.r[entering] = sign * step, 0.0
        column = self.inverse[:, place].copy()
        self.basis[place] = entering
        self.inverse -= np.outer(column, (new - old) @ self.inverse) / (new @ column)
        self.age += 1
        if self.age >= _REFRESH:
            self.refresh()

    def iterate(self, violation: float) -> Iterate:
        a = self.at_bounds()
        a[self.basis] = self.refined() if violation == 0.0 else self.duals()
        value = float(np.sum(np.where(self.r > 0, self.high, self.low) * self.r))
        return Iterate((self.beta, a, self.basis), value, violation)


def _inverse(B: Array) -> Array:
    """Of a basis, in which rows of the penalty have a single 1: they need no elimination."""
    single = np.count_nonzero(B, axis=1) == 1
    zero = np.argmax(B[single] != 0.0, axis=1)
    free = np.setdiff1d(np.arange(len(B)), zero)
    inverse = np.zeros_like(B)
    inverse[zero, np.flatnonzero(single)] = 1.0 / B[single, zero]
    inner = np.linalg.inv(B[np.ix_(~single, free)])
    inverse[np.ix_(free, ~single)] = inner
    inverse[free] -= (inner @ B[np.ix_(~single, zero)]) @ inverse[zero]
    return inverse


def _first_kinks(when: Array, rise: Array, descent: float) -> Any:
    """Kinks in order of ``when``, up to the one at which the slope is no longer negative."""
    size = 64
    while True:
        few = np.argpartition(when, size)[:size] if size < len(when) else np.arange(len(when))
        few = few[np.argsort(when[few], kind="stable")]
        slopes = np.cumsum(rise[few])
        if slopes[-1] >= descent:
            return few[: int(np.searchsorted(slopes, descent)) + 1]
        if size >= len(when):
            return few if slopes[-1] >= descent * (1.0 - 1e-9) else None
        size *= 8
