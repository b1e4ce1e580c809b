r"""Newton's method on the primal of a support vector machine with a squared loss.

    min_{w, b}  1/2 ||w||^2 (+ 1/2 (b/B)^2) + sum_i l_i(x_i'w + b),     l_i the losses with d_i > 0

of :mod:`surefit.solvers.box_dual`: the squared hinge and the squared epsilon-insensitive loss. The
objective is a quadratic on each of finitely many pieces: only the rows with a positive loss bend it. A
Newton step solves

    (I + X_A' diag(1/d_A) X_A) dw = -gradient,     A the rows with a loss,

and the line search along it is exact, since the objective is a piecewise quadratic function of the step.
Once A is that of the solution, the next step ends there.

References
----------
Mangasarian, "A finite Newton method for classification" (2002); Chapelle, "Training a support vector machine
in the primal" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Design
from ..iterate import Iterate
from .box_dual import BoxDual, Point
from .interior_point import _factor

__all__ = ["squared_hinge"]

Array = NDArray[np.float64]
_STALE = 2  # steps without a smaller gap or objective: rounding is reached


def squared_hinge(X: Design, problem: BoxDual, start: Point | None = None) -> Iterator[Iterate]:
    """Yield ``Iterate(x=Point, value=P, estimate=gap)`` after each Newton step, until none helps."""
    kept = problem.intercept
    w = np.zeros(X.shape[1]) if start is None else start.w.copy()
    b = 0.0 if start is None else start.b
    z = to_numpy(X.dot(w)) + b
    ridge = 1.0 / kept.scaling**2 if kept.scaling and kept.penalised else 0.0
    length, least, lowest, stale = np.nan, np.inf, np.inf, 0
    while stale < _STALE:
        beta = _slopes(problem, z)  # minus the derivative of each loss
        made, total = X.tdot(X.vector(beta)), float(beta.sum())
        value = problem.primal(w, b, z)
        size = float(made @ made) + (total / ridge * total if ridge else 0.0)
        gap = value - problem.dual(beta, size) + (abs(total * b) if kept.free else 0.0)
        yield Iterate(Point(w, b, beta), value, gap, length)
        stale = 0 if gap < least or value < lowest else stale + 1
        least, lowest = min(least, gap), min(lowest, value)
        weights = np.where(beta != 0.0, 1.0 / problem.d, 0.0)
        dw, db = _direction(X, weights, made - w, total - ridge * b, ridge, bool(kept.scaling))
        dz = to_numpy(X.dot(dw)) + db
        length = _exact_step(
            problem, z, dz, float(w @ dw) + ridge * b * db, float(dw @ dw) + ridge * db**2
        )
        new_w, new_b = w + length * dw, b + length * db
        if length <= 0.0 or (np.array_equal(new_w, w) and new_b == b):
            return
        w, b = new_w, new_b
        z = to_numpy(X.dot(w)) + b  # not updated: rounding would stay


def _slopes(problem: BoxDual, z: Array) -> Array:
    """beta_i at which l_i(z_i) is attained."""
    r = problem.t - z
    shrunk = np.sign(r) * np.maximum(np.abs(r) - problem.eps, 0.0)
    return np.clip(shrunk / problem.d, problem.low, problem.high)


def _direction(
    X: Design, weights: Array, down: Array, down_b: float, ridge: float, intercept: bool
) -> tuple[Array, float]:
    """Newton's direction; ``down`` is minus the gradient."""
    total = float(weights.sum()) + ridge
    if not intercept or total == 0.0:
        gram = X.gram(X.vector(weights)) if weights.any() else np.zeros((X.shape[1],) * 2)
        gram[np.diag_indices(len(gram))] += 1.0
        return _factor(gram)(down), 0.0
    centre = X.tdot(X.vector(weights)) / total
    if ridge:
        gram = X.gram(X.vector(weights)) - total * np.outer(centre, centre)
    else:
        gram = X.gram(X.vector(weights), centre)
    gram[np.diag_indices(len(gram))] += 1.0
    dw = _factor(gram)(down - down_b * centre)
    return dw, down_b / total - float(centre @ dw)


def _exact_step(problem: BoxDual, z: Array, dz: Array, slope: float, bend: float) -> float:
    """The minimiser over the step: a root of a piecewise linear increasing derivative, by Newton's method."""
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(60):
        beta = _slopes(problem, z + t * dz)
        first = slope + t * bend - float(beta @ dz)
        second = bend + float((dz**2 / problem.d) @ (beta != 0.0))
        if second <= 0.0 or not np.isfinite(first):
            return 0.0
        low, high = (t, high) if first < 0.0 else (low, t)
        nearer = t - first / second
        if not low < nearer < high:
            nearer = 0.5 * (low + high) if np.isfinite(high) else 2.0 * t
        if abs(nearer - t) <= 1e-13 * t:
            return nearer
        t = nearer
    return t
