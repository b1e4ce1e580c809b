"""The best intercept of a model whose predictions are fixed, and the objective at w = 0.

Both are one-dimensional convex problems (one dimension a class for softmax): Newton's method kept
in its bracket where the loss is smooth, a search over the kinks where it is piecewise linear, a
mean for the squared loss. They are used by the certificates, so they share nothing with the
solvers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._namespace import array_namespace, clip, to_numpy
from ._threads import sum_rows
from .losses import Absolute, Loss, MarginLoss, Quantile, Softmax, Squared
from .losses.softmax import own_class

__all__ = ["best_offset", "null_value"]

Array = NDArray[np.float64]
_BALANCED = 1e-13  # of the size of the derivatives: their sum counts as 0


def null_value(loss: Loss, y: Array, weights: Array, *, fit_intercept: bool) -> float:
    """P(0): the objective at w = 0 with the best intercept, the yardstick of ``tol``."""
    s = weights
    if isinstance(loss, Softmax):  # only the class totals matter
        totals: Array = np.bincount(to_numpy(y).astype(np.intp), weights=to_numpy(weights))  # type: ignore[assignment]
        s = totals[totals > 0]
        y = np.arange(len(s), dtype=np.float64)
    elif isinstance(loss, MarginLoss):
        positive = float(weights @ clip(y, 0.0, 1.0))
        s = np.array([float(weights.sum()) - positive, positive])
        y = np.array([-1.0, 1.0])
    z = (
        np.zeros((len(y), len(y)))
        if isinstance(loss, Softmax)
        else array_namespace(y).zeros_like(y)
    )
    offset = best_offset(loss, z, y, s) if fit_intercept else 0.0
    return float(s @ loss.pointwise(z + offset, y))


def best_offset(loss: Loss, z: Array, y: Array, s: Array) -> Any:
    """argmin over b of sum_i s_i l(z_i + b, y_i): a scalar, or a vector for softmax."""
    if isinstance(loss, Squared):
        return float(s @ (y - z) / s.sum())
    if isinstance(loss, Softmax):
        return _best_offsets_softmax(loss, z, y, s)
    if isinstance(loss, (Absolute, Quantile)):
        return _weighted_quantile(to_numpy(y - z), to_numpy(s), loss.up / (loss.up + loss.down))
    if not math.isfinite(loss.smoothness):
        return _best_kink(loss, z, y, s)
    low, high = -math.inf, math.inf
    b, scale = 0.0, float(s.sum())
    for _ in range(100):  # Newton on the increasing derivative, kept in its bracket
        slope, size, bend = sum_rows(functools.partial(_bends, loss, b), z, y, s)
        if math.isnan(slope):
            return math.nan
        if abs(slope) <= _BALANCED * size:  # Loss.balance removes the rest
            break
        low, high = (b, high) if slope < 0 else (low, b)
        step = -slope / bend if bend > 1e-12 * scale else -math.copysign(1.0 + abs(b), slope)
        nearer = b + step
        if nearer == b:
            break
        if not low < nearer < high:
            nearer = 0.5 * (low + high)
        if abs(nearer - b) <= 4e-16 * (1.0 + abs(b)):
            break
        b = nearer
    return b


def _bends(loss: Loss, b: float, z: Array, y: Array, s: Array) -> Array:
    """Sums of the derivatives at the offset b, of their sizes, and of the second derivatives."""
    weighted = s * loss.grad(z + b, y)
    bend = float(s @ loss.hess(z + b, y))
    return np.array([float(weighted.sum()), float(abs(weighted).sum()), bend])


def _weighted_quantile(e: Array, s: Array, q: float) -> float:
    """The least value below or at which a share q of the weight lies; NaN where anything is."""
    if np.isnan(e).any() or np.isnan(s).any():
        return math.nan
    order = np.argsort(e)
    mass = np.cumsum(s[order])
    return float(e[order[np.searchsorted(mass, q * mass[-1])]])


def _best_kink(loss: Loss, z: Array, y: Array, s: Array) -> float:
    """A piecewise linear objective is least at one of its kinks: bisection over them; NaN where z has one."""
    if not math.isfinite(float(s @ abs(z))):
        return math.nan
    kinks = to_numpy(array_namespace(z).unique_values((loss.kink(y) - z)[..., s > 0]))
    low, high = 0, len(kinks) - 1
    while low < high:
        middle = (low + high) // 2
        here, there = (
            float(s @ loss.pointwise(z + float(b), y)) for b in kinks[middle : middle + 2]
        )
        low, high = (middle + 1, high) if there < here else (low, middle)
    return float(kinks[low])


def _best_offsets_softmax(loss: Softmax, z: Array, y: Array, s: Array) -> Array:
    xp = array_namespace(z)
    b = np.zeros(z.shape[1])
    value, slope, size, bend = _softmax_bends(loss, z, y, s, b)
    for _ in range(50):
        if np.abs(slope).max() <= _BALANCED * size.max():
            break
        step = -np.linalg.lstsq(bend, slope, rcond=1e-12)[0]
        while True:  # the objective is convex: halve until it does not rise
            trial, slope, size, bend = _softmax_bends(loss, z, y, s, b + step)
            if trial <= value + 1e-14 * abs(value) or np.abs(step).max() < 1e-15:
                break
            step = step / 2.0
        b, value = b + step, trial
        if np.abs(step).max() <= 1e-14 * (1.0 + np.abs(b).max()):
            break
    return xp.asarray(b - b.mean(), device=z.device)


def _softmax_bends(
    loss: Softmax, z: Array, y: Array, s: Array, b: Array
) -> tuple[float, Array, Array, Array]:
    """The objective at the offsets b, its gradient, the size of what is summed there, and its Hessian."""

    def sums(z: Array, y: Array, s: Array) -> Array:
        losses, theta = loss.pointwise_and_grad(
            z + array_namespace(z).asarray(b, device=z.device), y
        )
        slope, size = to_numpy(s @ theta), to_numpy(s @ abs(theta))
        theta[own_class(y)] += 1.0
        bend = np.diag(to_numpy(s @ theta)) - to_numpy((theta * s[:, None]).T @ theta)
        return np.vstack([slope, size, np.full(len(b), float(s @ losses)), bend])

    table = sum_rows(sums, z, y, s)
    return float(table[2, 0]), table[0], table[1], table[3:]
