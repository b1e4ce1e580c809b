"""What the Newton methods for linear models share: objective, gradient, line search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import scale_rows, to_numpy
from ..design import Dense, Design
from ..losses import Logistic, Loss, Softmax

__all__ = ["loss_and_slopes", "objective", "step_length"]

Array = NDArray[np.float64]


def objective(loss: Loss, z: Array, y: Array, s: Array, w: Array, l1: float, l2: float) -> float:
    """sum_i s_i l(z_i, y_i) + l1 ||w||_1 + l2/2 ||w||^2."""
    penalty = l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.vdot(w, w))
    return float(s @ loss.pointwise(z, y)) + penalty


def loss_and_slopes(
    X: Design, y: Any, s: Any, loss: Loss, w: Array, b: Array
) -> tuple[float, Array, Array]:
    """sum_i s_i l(x_i'w + b, y_i) and its gradient in w and in b, reading X once."""
    if isinstance(loss, Logistic) and isinstance(X, Dense) and X.X.flags.c_contiguous:
        return _logistic_rows(X.X, y, s, w, float(b))
    if isinstance(loss, Softmax) and X.centres_first and isinstance(y, np.ndarray):
        return _softmax_blocks(X, y.astype(np.intp), s, w, b)
    values, totals = [], []
    offset: Any = X.vector(b) if np.ndim(b) else float(b)

    def residual(rows: slice, z: Any) -> Any:
        losses, slope = loss.pointwise_and_grad(z + offset, y[rows])
        theta = scale_rows(s[rows], slope)
        values.append(float(s[rows] @ losses))
        totals.append(to_numpy(theta.sum(axis=0)))
        return theta

    slopes = X.respond(w, residual)
    value, total = X.group.sum(sum(values), np.sum(totals, axis=0))
    return float(value), slopes, total


def _softmax_blocks(
    X: Design, y: NDArray[np.intp], s: Array, W: Array, b: Array
) -> tuple[float, Array, Array]:
    """The same with a row of scores a class: numpy is fast along the long axis only."""
    across = np.ascontiguousarray(W.T)

    def part(blocks: Iterator[tuple[slice, Any]]) -> tuple[float, Array, Array]:
        value, slopes, total = 0.0, np.zeros_like(across), np.zeros(len(b))
        for rows, block in blocks:
            own = (y[rows], np.arange(len(block)))
            z = across @ block.T
            z += b[:, None]
            largest = z.max(axis=0)
            score = z[own]
            z -= largest
            np.exp(z, out=z)
            mass = z.sum(axis=0)
            value += float(s[rows] @ (largest + np.log(mass) - score))
            z *= s[rows] / mass
            z[own] -= s[rows]
            total += z.sum(axis=1)
            slopes += z @ block
        return value, slopes, total

    values, slopes, totals = zip(*X.fold(part), strict=True)
    sums = X.group.sum(sum(values), np.sum(slopes, axis=0), np.sum(totals, axis=0))
    return float(sums[0]), np.ascontiguousarray(sums[1].T), sums[2]


def _logistic_rows(X: Array, y: Array, s: Array, w: Array, b: float) -> tuple[float, Array, Array]:
    from .._jit.glm import logistic_rows
    from .._threads import over_rows

    def part(first: int, last: int) -> tuple[float, float, Array]:
        slope = np.zeros(len(w))
        value, total = logistic_rows(X, y, s, w, b, first, last, slope)
        return value, total, slope

    values, totals, slopes = zip(*over_rows(len(X), part), strict=True)
    return sum(values), np.sum(slopes, axis=0), np.asarray(sum(totals))


def step_length(
    loss: Loss,
    y: Array,
    s: Array,
    z: Array,
    move: Array,
    w: Array,
    step: Array,
    l1: float,
    l2: float,
    value: float,
    fall: float,
) -> float:
    """The first t = 1, 1/2, 1/4, ... at which the objective falls by 1e-4 t times the predicted ``fall``.

    Within rounding of the optimum "does not rise" is all one can ask. Returns 0 when no step lowers it.
    """
    slack = 4e-16 * abs(value)
    t = 1.0
    while fall > 0.0 and t > 1e-10:
        trial = objective(loss, z + t * move, y, s, w + t * step, l1, l2)
        if trial <= value - 1e-4 * t * fall + slack:
            return t
        t /= 2.0
    return 0.0
