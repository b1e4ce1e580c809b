r"""Quasi-Newton for many rows: the curvature of a sample, the gradient of all rows.

    min_{w, b}  sum_i s_i l(x_i'w + b, y_i) + l2/2 ||w||^2,     l logistic (one column) or softmax (K).

With n rows and D unknowns, the Hessian of m evenly spaced rows, scaled by n/m, differs from that of all rows
by a factor 1 +- O(sqrt(D/m)), at m/n of the cost. A sample is solved first, which leaves an error of
statistical size; then each step costs one reading of X, in which predictions, losses and gradient are formed
block by block. The step is d = -B g, with B the inverse Hessian of the sample corrected by the last pairs of
moves and gradient changes (L-BFGS with B as its initial matrix), halved until the objective falls.

For K classes the Hessian has (K p)^2 entries, so its sample is small, and the curvature of a rare class may
be lost in it. The Kronecker product of the mean curvature between classes (K x K) and the mean of x x' (p x
p) costs nothing and knows all classes: it serves for the solution of the sample and is mixed into the Hessian
after it. If all this does not represent the rows (rare features), the Hessian of all rows replaces it, so
that in the end this is Newton's method. The yielded estimate is the duality gap ||g||^2 / (2 l2) of the
point's own dual vector.

References
----------
Byrd, Chin, Neveitt & Nocedal, "On the use of stochastic Hessian information in optimization methods for
machine learning" (2011); Martens & Grosse, "Optimizing neural networks with Kronecker-factored approximate
curvature" (2015); Nocedal & Wright, Numerical Optimization (2006), algorithm 7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..design import Design
from ..iterate import Iterate
from ..losses import Loss, Softmax
from .glm import loss_and_slopes
from .glm_newton import DIRECT, equilibrate, kronecker_system, newton_system, shift

__all__ = ["glm_sampled", "sampling_pays"]

Array = NDArray[np.float64]
_WORK = 1e8  # multiplications for the Hessian of the sample
_MEMORY = 10  # pairs kept
_MIXED = 0.2  # share of the Kronecker product in the Hessian of several classes
_SOLVED = 1e-5  # relative decrement at which a sample counts as solved: less than its own error

System = tuple[Array, Array, Array]
Solve = Callable[[Array], Array]


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
    n, classes = X.shape[0], w.shape[1] if w.ndim == 2 else 1
    size = _sample_size(n, w.size + b.size)
    every = _Rows(X, y, s, loss, l2, fit_intercept, np.zeros(X.shape[1]))
    some = every.sample(n // (size if classes == 1 else max(size, n // 10)))
    if fit_intercept:
        some.mean = every.mean = some.X.mean(some.s)
    few = some if classes == 1 else some.sample(max(1, some.X.shape[0] // size))
    point = some.position(w, b)
    patience = max(10, len(point) // 4)  # steps that together cost as much as a Hessian of all rows
    solve = _inverse(some.kronecker(point), some, point)
    for at, value, _, decrement, length in _quasi_newton(some, point, solve, patience):
        point = at
        if decrement <= _SOLVED * abs(value) or length == 0.0:
            break
    system = some.kronecker(point)
    if classes > 1:
        exact = few.curvature(point)
        system = ((1.0 - _MIXED) * exact[0] + _MIXED * system[0], *exact[1:])
    solve = _inverse(system, every, point)
    for at, value, gap, _, length in _quasi_newton(every, point, solve, patience):
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

    def sample(self, step: int) -> _Rows:
        """Every ``step``-th row, with the weight of all."""
        s = self.s[::step]
        s = s * (float(self.s.sum()) / float(s.sum()))
        y = 1.0 * self.y[::step]
        return _Rows(self.X.sample(step), y, s, self.loss, self.l2, self.free, self.mean)

    def position(self, w: Array, b: Array) -> Array:
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

    def curvature(self, point: Array) -> System:
        """The Hessian."""
        h = self._bends(point)
        return newton_system(self.X, self.s, h, self.loss, self.l2, self.mean, self.free)

    def kronecker(self, point: Array) -> System:
        """The Kronecker product that stands for it; with one column it is the Hessian."""
        h = self._bends(point)
        return kronecker_system(self.X, self.s, h, self.loss, self.l2, self.mean, self.free)

    def _bends(self, point: Array) -> Any:
        w, b = self.parameters(point)
        return self.loss.hess(self.X.dot(w) + shift(self.X, b), self.y)

    def gap(self, gradient: Array, decrement: float) -> float:
        """||g_w||^2 / (2 l2): the gap of the dual point that the slopes of the losses make."""
        if self.l2 == 0.0:
            return 0.5 * decrement
        table = gradient.reshape(-1, self.X.shape[1] + int(self.free))[:, : self.X.shape[1]]
        return float(np.vdot(table, table)) / (2.0 * self.l2) + 0.5 * decrement


def _quasi_newton(
    rows: _Rows, point: Array, solve: Solve, patience: int
) -> Iterator[tuple[Array, float, float, float, float]]:
    """Yield (point, value, gap, decrement, step length); a step of length 0 is the last."""
    value, gradient = rows.evaluate(point)
    pairs: list[tuple[Array, Array, float]] = []
    for k in range(1, 1 << 30):
        if k % patience == 0:  # the old curvature has had its chance: that of all rows, here
            solve, pairs = _inverse(rows.curvature(point), rows, point), []
        direction = -_corrected(solve, pairs, gradient)
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
        left = float(gradient @ _corrected(solve, pairs, gradient))
        yield point, value, rows.gap(gradient, max(left, 0.0)), max(left, 0.0), length
        if left <= 1e-17 * abs(value):
            return


def _inverse(system: System, rows: _Rows, point: Array) -> Solve:
    """g -> H^{-1} g; where H is singular that of all ``rows``, and a pseudo-inverse if that is too."""
    unit, scale, constant = equilibrate(*system)
    factor, info = scipy.linalg.lapack.dpotrf(unit, lower=1)
    if info != 0:
        unit, scale, constant = equilibrate(*rows.curvature(point))
        factor, info = scipy.linalg.lapack.dpotrf(unit, lower=1)
    if info == 0:
        return lambda g: _cholesky_solve(factor, np.where(constant, 0.0, g / scale)) / scale
    values, vectors = np.linalg.eigh(unit)
    kept = vectors[:, values > 1e-13 * values[-1]] / scale[:, None]
    kept[constant] = 0.0
    return lambda g: kept @ ((kept.T @ g) / values[values > 1e-13 * values[-1]])


def _cholesky_solve(factor: Array, rhs: Array) -> Array:
    solution: Array = scipy.linalg.cho_solve((factor, True), rhs, check_finite=False)
    return solution


def _corrected(solve: Solve, pairs: list[tuple[Array, Array, float]], gradient: Array) -> Array:
    """The two-loop recursion of L-BFGS, with the given inverse in its middle."""
    q, weights = gradient.copy(), []
    for move, change, bend in reversed(pairs):
        weight = float(move @ q) / bend
        weights.append(weight)
        q -= weight * change
    r = solve(q)
    for (move, change, bend), weight in zip(pairs, reversed(weights), strict=True):
        r += (weight - float(change @ r) / bend) * move
    return r
