r"""Quasi-Newton for many rows: the curvature of a sample, the gradient of all rows.

    min_{w, b}  sum_i s_i l(x_i'w + b, y_i) + l2/2 ||w||^2,     l logistic (one column) or softmax (K).

With n rows and D unknowns, the Hessian of m evenly spaced rows, scaled by n/m, differs from that of all rows
by a factor 1 +- O(sqrt(D/m)), at m/n of the cost. The sample is solved first, which leaves an error of
statistical size; then each step costs one reading of X, in which predictions, losses and gradient are formed
block by block. The step is d = -B g, with B the inverse Hessian of the sample corrected by the last pairs of
moves and gradient changes (L-BFGS with B as its initial matrix), halved until the objective falls. If the
sample does not represent the rows (rare features), the Hessian of all rows replaces it, so that in the end
this is Newton's method. The yielded estimate is the duality gap ||g||^2 / (2 l2) of the point's own dual
vector.

References
----------
Byrd, Chin, Neveitt & Nocedal, "On the use of stochastic Hessian information in optimization methods for
machine learning" (2011); Nocedal & Wright, Numerical Optimization (2006), algorithm 7.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design import Design
from ..iterate import Iterate
from ..losses import Loss, Softmax
from .glm import loss_and_slopes
from .glm_newton import DIRECT, equilibrate, newton_system, shift

__all__ = ["glm_sampled", "sampling_pays"]

Array = NDArray[np.float64]
_WORK = 1e8  # multiplications for the Hessian of the sample
_MEMORY = 10  # pairs kept


def sampling_pays(n: int, unknowns: int) -> bool:
    """Whether a sample large enough for its curvature is a small part of the rows."""
    return unknowns <= DIRECT and n >= 5 * _sample_size(n, unknowns)


def _sample_size(n: int, unknowns: int) -> int:
    return int(max(8 * unknowns, min(_WORK / unknowns**2, n / 10), 2000))


def glm_sampled(
    X: Design,
    y: Any,
    s: Any,
    loss: Loss,
    l2: float,
    w: Array,
    b: Array,
    *,
    fit_intercept: bool,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(w, b), value=objective, estimate=gap)`` after each step; as in glm_newton."""
    step = X.shape[0] // _sample_size(X.shape[0], w.size + b.size)
    part, y_part, s_part = X.sample(step), 1.0 * y[::step], s[::step]
    s_part = s_part * (float(s.sum()) / float(s_part.sum()))
    mean = part.mean(s_part) if fit_intercept else np.zeros(X.shape[1])
    some = _Rows(part, y_part, s_part, loss, l2, fit_intercept, mean)
    every = _Rows(X, y, s, loss, l2, fit_intercept, mean)
    point = some.position(w, b)
    patience = max(
        10, len(point) // 4
    )  # steps with one Hessian, which together cost as much as a new one
    for state in _quasi_newton(some, some, point, patience):
        point, decrement, value = state[0], state[3], state[1]
        if decrement <= 1e-6 * abs(value) or state[4] == 0.0:
            break
    for at, value, gap, _, length in _quasi_newton(every, some, point, patience):
        yield Iterate(every.parameters(at), value, gap, length)
        if length == 0.0:
            return


class _Rows:
    """The objective over some rows, in the flat coordinates (w, b + mean'w), class after class."""

    def __init__(
        self, X: Design, y: Any, s: Any, loss: Loss, l2: float, fit_intercept: bool, mean: Array
    ) -> None:
        self.X, self.y, self.s, self.loss, self.l2 = X, y, s, loss, l2
        self.free, self.mean = fit_intercept, mean

    def position(self, w: Array, b: Array) -> Array:
        self.columns = w.shape[1:]
        offset = np.atleast_1d(b + self.mean @ w)
        flat = np.vstack([w.reshape(len(w), -1), offset[None]]) if self.free else w
        return np.ascontiguousarray(flat.T).reshape(-1)

    def parameters(self, point: Array) -> tuple[Array, Array]:
        p = self.X.shape[1]
        table = point.reshape(-1, p + int(self.free)).T
        w = table[:p]
        b = table[p] - self.mean @ w if self.free else np.zeros(w.shape[1])
        if not isinstance(self.loss, Softmax):
            return np.ascontiguousarray(w[:, 0]), np.asarray(b[0])
        return np.ascontiguousarray(w), b

    def evaluate(self, point: Array) -> tuple[float, Array]:
        """Objective and gradient, reading X once."""
        w, b = self.parameters(point)
        value, slope, slope_b = loss_and_slopes(self.X, self.y, self.s, self.loss, w, b)
        value, slope = value + 0.5 * self.l2 * float(np.vdot(w, w)), slope + self.l2 * w
        if not self.free:
            return value, slope.T.reshape(-1)
        slope = slope - np.multiply.outer(self.mean, slope_b)
        table = np.vstack([slope.reshape(len(w), -1), np.atleast_1d(slope_b)[None]])
        return value, table.T.reshape(-1)

    def curvature(self, point: Array) -> tuple[Array, Array, Array]:
        w, b = self.parameters(point)
        h = self.loss.hess(self.X.dot(w) + shift(self.X, b), self.y)
        return newton_system(self.X, self.s, h, self.loss, self.l2, self.mean, self.free)

    def gap(self, gradient: Array, decrement: float) -> float:
        """||g_w||^2 / (2 l2): the gap of the dual point that the slopes of the losses make."""
        if self.l2 == 0.0:
            return 0.5 * decrement
        table = gradient.reshape(-1, self.X.shape[1] + int(self.free))[:, : self.X.shape[1]]
        return float(np.vdot(table, table)) / (2.0 * self.l2) + 0.5 * decrement


def _quasi_newton(
    rows: _Rows, sample: _Rows, point: Array, patience: int
) -> Iterator[tuple[Array, float, float, float, float]]:
    """Yield (point, value, gap, decrement, step length); a step of length 0 is the last."""
    value, gradient = rows.evaluate(point)
    inverse = _inverse(point, sample, rows)
    pairs: list[tuple[Array, Array, float]] = []
    for k in range(1, 1 << 30):
        if k % patience == 0:  # the old curvature has had its chance: that of all rows, here
            inverse, pairs = _inverse(point, rows), []
        direction = -_corrected(inverse, pairs, gradient)
        decrement = -float(gradient @ direction)
        slack = 4e-16 * abs(value)
        length = 1.0
        while decrement > 0.0 and length > 1e-10:
            trial = point + length * direction
            trial_value, trial_gradient = rows.evaluate(trial)
            if trial_value <= value - 1e-4 * length * decrement + slack:
                break
            length /= 2.0
        else:
            length = 0.0
        if length == 0.0 and pairs:
            pairs = []
            continue
        if length == 0.0:
            yield point, value, rows.gap(gradient, max(decrement, 0.0)), max(decrement, 0.0), 0.0
            return
        move, change = trial - point, trial_gradient - gradient
        bend = float(move @ change)
        if bend > 1e-10 * float(np.linalg.norm(move) * np.linalg.norm(change)):
            pairs = [*pairs[1 - _MEMORY :], (move, change, bend)]
        point, value, gradient = trial, trial_value, trial_gradient
        left = float(gradient @ _corrected(inverse, pairs, gradient))
        yield point, value, rows.gap(gradient, max(left, 0.0)), max(left, 0.0), length
        if left <= 1e-17 * abs(value):
            return


def _inverse(point: Array, *rows: _Rows) -> Array:
    """The inverse Hessian of the first rows for which it exists; else a pseudo-inverse of the last's."""
    for some in rows:
        unit, scale, constant = equilibrate(*some.curvature(point))
        try:
            np.linalg.cholesky(unit)
            inverse = np.linalg.inv(unit)
        except np.linalg.LinAlgError:
            continue
        break
    else:
        values, vectors = np.linalg.eigh(unit)
        keep = values > 1e-13 * values[-1]
        inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T
    inverse[constant] = inverse[:, constant] = 0.0
    return (0.5 * (inverse + inverse.T)) / np.outer(scale, scale)


def _corrected(inverse: Array, pairs: list[tuple[Array, Array, float]], gradient: Array) -> Array:
    """The two-loop recursion of L-BFGS, with the given inverse in its middle."""
    q, weights = gradient.copy(), []
    for move, change, bend in reversed(pairs):
        weight = float(move @ q) / bend
        weights.append(weight)
        q -= weight * change
    r = inverse @ q
    for (move, change, bend), weight in zip(pairs, reversed(weights), strict=True):
        r += (weight - float(change @ r) / bend) * move
    return r
