r"""Proximal Newton for a softmax regression with an l1 term.

    min_{W, b}  sum_i s_i l(W'x_i + b, y_i) + l1 ||W||_1 + l2/2 ||W||^2

At each outer step the loss is replaced by its second-order model at the current point, the model plus penalty
is minimised by coordinate descent over a working set, on the full Hessian and not on a diagonal bound of it,
and the move is halved until the objective falls enough: near the solution that converges quadratically.

References
----------
Lee, Sun & Saunders, "Proximal Newton-type methods" (2014); Friedman, Hastie & Tibshirani (2010), JSS 33.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..iterate import Iterate
from ..losses import Loss, Softmax
from .glm import objective, step_length

__all__ = ["prox_newton_softmax"]

Array = NDArray[np.float64]
_SWEEPS = 1000


def prox_newton_softmax(
    X: Any,
    y: Array,
    s: Array,
    loss: Loss,
    l1: float,
    l2: float,
    w: Array,
    b: Array,
    *,
    fit_intercept: bool,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(w, b), value=objective, estimate=predicted decrease)`` after each step.

    Parameters are those of :func:`surefit.solvers.glm_newton.glm_newton`, plus ``l1``; X is an array or a
    scipy.sparse matrix.
    """
    X = (
        sp.csc_array(X, dtype=np.float64)
        if sp.issparse(X)
        else np.asfortranarray(X, dtype=np.float64)
    )
    mean = np.zeros(X.shape[1])
    if fit_intercept and not sp.issparse(X):
        mean = s @ X / s.sum()
        X = np.asfortranarray(X - mean)
        b = b + mean @ w
    z = X @ w + b
    value = objective(loss, z, y, s, w, l1, l2)
    accuracy = 1e-2
    while True:
        new_w, new_b, fall = _minimum(X, y, s, loss, l1, l2, w, b, z, fit_intercept, accuracy)
        move = X @ (new_w - w) + (new_b - b)
        t = 0.0
        if fall > 1e-15 * abs(value):
            t = step_length(loss, y, s, z, move, w, new_w - w, l1, l2, value, fall)
        if t == 0.0:  # the gain drowns in the rounding of the objective, not in that of its slope
            slopes = [
                _violation(X, y, s, loss, l1, l2, *point, fit_intercept)
                for point in ((w, z), (new_w, z + move))
            ]
            t = float(slopes[1] < 0.5 * slopes[0])
        if t == 0.0:
            yield Iterate((w, b - mean @ w), value, max(fall, 0.0), 0.0)
            return
        w, b = w + t * (new_w - w) if t < 1.0 else new_w, b + t * (new_b - b)
        z = X @ w + b
        value = objective(loss, z, y, s, w, l1, l2)
        accuracy = min(accuracy, max(0.1 * fall / abs(value), 1e-15)) if value != 0 else accuracy
        yield Iterate((w, b - mean @ w), value, max(fall, 0.0), t)


def _violation(
    X: Any, y: Array, s: Array, loss: Loss, l1: float, l2: float, w: Array, z: Array, free: bool
) -> float:
    """Distance of 0 to the subdifferential of the objective."""
    theta = (s * loss.grad(z, y).T).T
    slope = X.T @ theta + l2 * w
    apart = np.where(w != 0.0, np.abs(slope + l1 * np.sign(w)), np.maximum(np.abs(slope) - l1, 0.0))
    return max(
        float(apart.max(initial=0.0)), float(np.abs(theta.sum(axis=0)).max()) if free else 0.0
    )


def _minimum(
    X: Any,
    y: Array,
    s: Array,
    loss: Loss,
    l1: float,
    l2: float,
    w: Array,
    b: Array,
    z: Array,
    fit_intercept: bool,
    accuracy: float,
) -> tuple[Array, Array, float]:
    """Minimise the second-order model by sweeps over the features in use and those that violate."""
    assert isinstance(loss, Softmax)
    P = np.ascontiguousarray(loss.hess(z, y))
    theta = s[:, None] * loss.grad(z, y)
    G, gb = np.ascontiguousarray(X.T @ theta), theta.sum(axis=0)
    spread = s[:, None] * P * (1.0 - P)
    squares = X.multiply(X) if sp.issparse(X) else X * X
    curv, curv_b = np.ascontiguousarray(squares.T @ spread), spread.sum(axis=0)
    W, c = np.ascontiguousarray(w.copy()), np.zeros(len(b))
    m, q = np.zeros_like(z), np.zeros(len(z))
    violation = np.where(
        w != 0.0, np.abs(G + l2 * w + l1 * np.sign(w)), np.maximum(np.abs(G) - l1, 0.0)
    ).max(axis=1)
    active = (violation > 0.0) | (w != 0.0).any(axis=1)
    advance = _softmax_kernel(X)
    worst = float(violation.max(initial=0.0)) + float(np.abs(gb).max() if fit_intercept else 0.0)
    for sweep in range(_SWEEPS):
        # every tenth sweep sees all features; the others, those that can move
        ws = np.flatnonzero(active) if sweep % 10 else np.arange(X.shape[1])
        change = advance(
            s, P, G, gb, curv, curv_b, W, c, m, q, ws.astype(np.int64), l1, l2, fit_intercept
        )
        active |= (W != 0.0).any(axis=1)
        if change <= max(math.sqrt(accuracy) * 1e-2 * worst, 1e-17 * worst):
            break
    linear = float(np.vdot(G, W - w) + gb @ c)
    bend = 0.5 * float((s[:, None] * P * (m - q[:, None]) ** 2).sum())
    penalties = [l1 * float(np.abs(v).sum()) + 0.5 * l2 * float(np.vdot(v, v)) for v in (w, W)]
    return W, b + c, penalties[0] - penalties[1] - linear - bend


def _softmax_kernel(X: Any) -> Any:
    from .._jit.softmax import softmax_dense, softmax_sparse

    if sp.issparse(X):
        return lambda *state: softmax_sparse(X.data, X.indices, X.indptr, *state)
    return lambda *state: softmax_dense(X.T, *state)
