r"""Smooth margin losses for many penalties at once, on the rows of one fold after another.

    min_{w, b}  C sum_i s_i l(y_i (x_i'w + b)) + 1/2 ||w||^2     for every C of a grid,

l(t) = log(1 + exp(-t)) or max(0, 1 - t)^2. A penalised intercept is the coefficient of one more column.

The gradients of all C are two matrix products with X, where one C by itself is bound by reading X. Each C
takes quasi-Newton steps with a curvature of its own: the Hessian of a sample of the rows at a nearby point
(inverted once, for all folds), corrected by the last moves and gradient changes (L-BFGS with that as its
first matrix). The starts come from a path over C on the sample, and those of a fold from the solutions on all
rows, from which its own differ by little. A step that does not shrink the gradient, in the norm of the
curvature, is halved.

A point counts as solved when the objective would fall by no more than the target by its quadratic model, as
in Newton's method, and its duality gap, at most ||g||^2 / 2 plus half the decrement for the free intercept,
is within the tolerance. A C that does not get there is reported as such, and is for another solver.

References
----------
Byrd, Chin, Neveitt & Nocedal, "On the use of stochastic Hessian information in optimization methods for
machine learning" (2011); Friedman, Hastie & Tibshirani (2010), JSS 33 (paths).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from .._threads import over_rows

__all__ = [
    "GridPoints",
    "LogisticMargin",
    "MarginLoss",
    "Rows",
    "SquaredHingeMargin",
    "curvatures",
    "solve_grid",
    "start_path",
]

Array = NDArray[np.float64]
_BLOCK = 1 << 15  # numbers of A in a block: it and its products stay in the cache
_MEMORY = 8  # pairs kept
_STEPS = 30  # most evaluations of the grid
_SHORT = 1.0 / 64  # the shortest step tried
_SHRINKS = 0.9  # by which a step must shrink the gradient


class MarginLoss(ABC):
    """A loss of the margin t = y z, with what the grid needs of it."""

    @abstractmethod
    def value(self, t: Array) -> Array:
        """l(t)."""

    @abstractmethod
    def slope(self, t: Array, ys: Array) -> Array:
        """ys l'(t), for t of shape (n, m) and ys of shape (n, 1); t is overwritten."""

    @abstractmethod
    def bend(self, t: Array) -> Array:
        """l''(t)."""

    @abstractmethod
    def null(self, ys: Array, free: bool) -> float:
        """The weighted loss at w = 0, at the best intercept where it is free."""


class LogisticMargin(MarginLoss):
    """log(1 + exp(-t))."""

    def value(self, t: Array) -> Array:
        return np.log1p(np.exp(-np.abs(t))) + np.maximum(-t, 0.0)

    def slope(self, t: Array, ys: Array) -> Array:
        with np.errstate(over="ignore"):  # exp(t) = inf: a slope of 0
            np.exp(t, out=t)
        t += 1.0
        return np.divide(-ys, t, out=t)

    def bend(self, t: Array) -> Array:
        e = np.exp(-np.abs(t))
        return e / (1.0 + e) ** 2

    def null(self, ys: Array, free: bool) -> float:
        mass = float(np.abs(ys).sum())
        if not free or mass == 0.0:
            return mass * float(np.log(2.0))
        above = 0.5 * (mass + float(ys.sum())) / mass
        return float(entr(above) + entr(1.0 - above)) * mass


class SquaredHingeMargin(MarginLoss):
    """max(0, 1 - t)^2."""

    def value(self, t: Array) -> Array:
        return np.maximum(1.0 - t, 0.0) ** 2

    def slope(self, t: Array, ys: Array) -> Array:
        t -= 1.0
        np.minimum(t, 0.0, out=t)
        t *= 2.0 * ys
        return t

    def bend(self, t: Array) -> Array:
        return np.where(t < 1.0, 2.0, 0.0)

    def null(self, ys: Array, free: bool) -> float:
        if free:
            raise NotImplementedError("a free intercept is for another solver")
        return float(np.abs(ys).sum())


class Rows(NamedTuple):
    """A = (X - mean, c), labels -1 or +1 times weights, and the labels; C order, float64."""

    A: Array
    ys: Array
    y: Array
    loss: MarginLoss
    free: bool  # whether the last column of A is that of a free intercept

    @classmethod
    def of(
        cls,
        X: Any,
        y: Array,
        s: Array,
        loss: MarginLoss,
        *,
        mean: Array | float,
        constant: float,
        free: bool,
    ) -> Rows:
        """Rows of X, centred at ``mean``, and a ``constant`` at their end unless that is 0."""
        A = np.full((X.shape[0], X.shape[1] + int(constant != 0.0)), constant)
        np.subtract(X, mean, out=A[:, : X.shape[1]])
        return cls(A, y * s, y, loss, free)

    @property
    def null(self) -> float:
        """The loss at w = 0, at the best intercept where it is free."""
        return self.loss.null(self.ys, self.free)

    def sample(self, size: int) -> Rows:
        """Evenly spaced rows with the weight of all."""
        step = max(1, len(self.A) // size)
        part = self.ys[::step]
        scale = float(np.abs(self.ys).sum()) / max(float(np.abs(part).sum()), 1e-300)
        A, y = np.ascontiguousarray(self.A[::step]), np.ascontiguousarray(self.y[::step])
        return self._replace(A=A, ys=scale * part, y=y)


class GridPoints(NamedTuple):
    """Points (m, D) in the coordinates of :class:`Rows`, whether they are solved, evaluations made."""

    points: Array
    solved: NDArray[np.bool_]
    steps: NDArray[np.int64]


def _slopes(rows: Rows, points: Array) -> Array:
    """Gradients (m, D) of sum_i s_i l, in two products with A."""
    columns = np.ascontiguousarray(points.T)
    size = max(64, _BLOCK // rows.A.shape[1])

    def part(first: int, last: int) -> Array:
        total = np.zeros(points.shape)
        for begin in range(first, last, size):
            block = slice(begin, min(begin + size, last))
            A = rows.A[block]
            t = A @ columns
            t *= rows.y[block, None]
            total += rows.loss.slope(t, rows.ys[block, None]).T @ A
        return total

    return np.sum(over_rows(len(rows.A), part, 4 * size), axis=0)


def curvatures(rows: Rows, points: Array, Cs: Array) -> Array:
    """Inverse Hessians (m, D, D) at the points, each with its own C."""
    D = rows.A.shape[1]
    out = np.empty((len(Cs), D, D))
    for k, C in enumerate(Cs):
        out[k] = _hessian(rows, points[k], C)
    return np.asarray(np.linalg.inv(out), dtype=np.float64)


def _hessian(rows: Rows, point: Array, C: float) -> Array:
    t = rows.y * (rows.A @ point)
    root = np.sqrt(C * np.abs(rows.ys) * rows.loss.bend(t))
    scaled = root[:, None] * rows.A
    H: Array = scaled.T @ scaled
    penalty = np.ones(len(H))
    if rows.free:
        penalty[-1] = 1e-12 * max(H[-1, -1], 1e-300)  # regular even where every h is 0
    H[np.diag_indices_from(H)] += penalty
    return H


def _full(slopes: Array, points: Array, Cs: Array, free: bool) -> Array:
    """Gradients of the objectives."""
    out = Cs[:, None] * slopes + points
    if free:
        out[:, -1] -= points[:, -1]  # the intercept is not penalised
    return out


def start_path(rows: Rows, Cs: Array, *, enough: float = 1e-4) -> Array:
    """Points near the solutions on a sample of the rows, for increasing C, each from the last."""
    D = rows.A.shape[1]
    points = np.zeros((len(Cs), D))
    at = np.zeros(D)
    for k, C in enumerate(Cs):
        if k > 1:  # along the line through the last two, as functions of 1 / C
            before, last, here = 1.0 / Cs[k - 2], 1.0 / Cs[k - 1], 1.0 / C
            if before > last:
                at = at + (points[k - 1] - points[k - 2]) * ((last - here) / (before - last))
        value = _value(rows, at, C)
        for _ in range(20):
            g = _full(_slopes(rows, at[None]), at[None], np.array([C]), rows.free)[0]
            step = np.linalg.solve(_hessian(rows, at, C), g)
            fall, t = float(g @ step), 1.0
            trial = at - step
            new = _value(rows, trial, C)
            while not new <= value and t > 1e-3:
                t *= 0.5
                trial = at - t * step
                new = _value(rows, trial, C)
            if new <= value:
                at, value = trial, new
            if fall <= enough * value or not new <= value:
                break
        points[k] = at
    return points


def _value(rows: Rows, point: Array, C: float) -> float:
    t = rows.y * (rows.A @ point)
    size = point[:-1] if rows.free else point
    return C * float(np.abs(rows.ys) @ rows.loss.value(t)) + 0.5 * float(size @ size)


def solve_grid(
    rows: Rows, Cs: Array, starts: Array, inverse: Array, target: Array, most: Array
) -> GridPoints:
    """All C from their starts until they are solved, or no step helps.

    Parameters
    ----------
    rows : Rows
    Cs : array of shape (m,)
    starts : array of shape (m, D)
    inverse : array of shape (m, D, D)
        Inverse curvatures to begin with.
    target : array of shape (m,)
        What half the decrement may be,
    most : array of shape (m,)
        and what the duality gap may be.
    """
    state = _State(rows, Cs, starts.copy(), inverse)
    points, solved = starts.copy(), np.zeros(len(Cs), dtype=bool)
    steps = np.zeros(len(Cs), dtype=np.int64)
    for active, at, there in state.walk(target, most):
        points[active], solved[active] = at, there
        steps[active] += 1
    return GridPoints(points, solved, steps)


class _State:
    """The penalties still under way."""

    def __init__(self, rows: Rows, Cs: Array, points: Array, inverse: Array) -> None:
        self.rows, self.Cs, self.points, self.inverse = rows, Cs, points, inverse
        self.index = np.arange(len(Cs))
        self.pairs: list[tuple[Array, Array, Array]] = []
        self.gradients = self._gradients(points)

    def _gradients(self, points: Array) -> Array:
        return _full(_slopes(self.rows, points), points, self.Cs, self.rows.free)

    def walk(
        self, target: Array, most: Array
    ) -> Iterator[tuple[NDArray[np.intp], Array, NDArray[np.bool_]]]:
        """Yield (which, points, whether solved) after each evaluation."""
        length = np.ones(len(self.Cs))
        direction = -self._corrected(self.gradients)
        size = -_dots(self.gradients, direction)
        for _ in range(_STEPS):
            gap = self._gaps(self.gradients, size)
            there = (gap <= most[self.index]) & (0.5 * size <= target[self.index])
            yield self.index, self.points, there
            going = ~there & (length >= _SHORT) & np.isfinite(size)
            if not going.any():
                return
            if not going.all():
                length, direction, size = length[going], direction[going], size[going]
                self._keep(going)
            trial = self.points + length[:, None] * direction
            gradients = self._gradients(trial)
            found = self._corrected(gradients, (trial - self.points, gradients - self.gradients))
            new = _dots(gradients, found)
            better = new <= _SHRINKS * size
            length = np.where(better, 1.0, 0.5 * length)
            self._remember(trial, gradients, better)
            self.points = np.where(better[:, None], trial, self.points)
            self.gradients = np.where(better[:, None], gradients, self.gradients)
            direction = np.where(better[:, None], -found, direction)
            size = np.where(better, new, size)

    def _gaps(self, gradients: Array, size: Array) -> Array:
        w = gradients[:, :-1] if self.rows.free else gradients
        return 0.5 * _dots(w, w) + 0.5 * np.maximum(size, 0.0)

    def _keep(self, mask: NDArray[np.bool_]) -> None:
        self.Cs, self.points, self.inverse = self.Cs[mask], self.points[mask], self.inverse[mask]
        self.index, self.gradients = self.index[mask], self.gradients[mask]
        self.pairs = [(a[mask], b[mask], c[mask]) for a, b, c in self.pairs]

    def _pair(self, move: Array, change: Array) -> tuple[Array, Array, Array]:
        """A move, the change of the gradient, and 1 / their product; 0 where that is not to be trusted."""
        bend = _dots(move, change)
        floor = 1e-10 * np.sqrt(_dots(move, move) * _dots(change, change))
        return move, change, np.divide(1.0, bend, out=np.zeros_like(bend), where=bend > floor)

    def _remember(self, trial: Array, gradients: Array, better: NDArray[np.bool_]) -> None:
        move, change, inverse = self._pair(trial - self.points, gradients - self.gradients)
        self.pairs = [*self.pairs[1 - _MEMORY :], (move, change, np.where(better, inverse, 0.0))]

    def _corrected(self, gradients: Array, new: tuple[Array, Array] | None = None) -> Array:
        """The two-loop recursion of L-BFGS, every C by itself."""
        pairs = self.pairs if new is None else [*self.pairs[1 - _MEMORY :], self._pair(*new)]
        q, weights = gradients.copy(), []
        for move, change, inverse in reversed(pairs):
            weights.append(inverse * _dots(move, q))
            q -= weights[-1][:, None] * change
        r: Array = (self.inverse @ q[:, :, None])[:, :, 0]
        for (move, change, inverse), weight in zip(pairs, reversed(weights), strict=True):
            r += (weight - inverse * _dots(change, r))[:, None] * move
        return r


def _dots(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->i", a, b)
