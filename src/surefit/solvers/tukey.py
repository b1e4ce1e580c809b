r"""Tukey's bisquare regression for a given scale, by Newton's method and reweighted least squares.

    min_{w, b}  sum_i 2 s_i rho(y_i - x_i'w - b) + alpha ||w||^2

with rho(e) = (c^2 / 6) (1 - (1 - e^2 / c^2)^3) up to |e| = c, constant beyond (LOS-5). rho is a concave
function of e^2, so the quadratic with the same slope lies above it: least squares with the weights (1 -
e^2 / c^2)^2 never increases the objective. That is the safe step. Where the Hessian, with weights (1 -
e^2 / c^2)(1 - 5 e^2 / c^2), is positive definite, Newton's step is tried first and taken if the objective
falls; it makes the last steps quadratic. The problem is not convex: what is found is a stationary point
near the start, and the start decides which.

References
----------
Beaton & Tukey (1974); Huber & Ronchetti, Robust Statistics (2009), section 7.8; Maronna, Martin, Yohai &
Salibian-Barrera, Robust Statistics (2019), section 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import clip, to_numpy
from ..design import Design
from ..iterate import Iterate
from ._centred import CentredRows

__all__ = ["TukeyPoint", "median_deviation", "tukey"]

Array = NDArray[np.float64]
_ROUNDING = 1e-14  # of an objective
_ROUNDS = 50  # most times that the scale is estimated
_NORMAL = 0.6744897501960817  # median of |e| for standard normal e


class TukeyPoint(NamedTuple):
    """Coefficients, intercept and scale."""

    w: Array
    b: float
    scale: float


def median_deviation(r: Any, s: Any) -> float:
    """The weighted median of |r|, as an estimate of the standard deviation of normal errors."""
    size, weights = np.abs(to_numpy(r)), to_numpy(s)
    order = np.argsort(size, kind="stable")
    size, below = size[order], np.cumsum(weights[order])
    half = 0.5 * below[-1]
    k = int(np.searchsorted(below, half * (1.0 - 1e-12)))
    median = float(size[k])
    if below[k] <= half * (1.0 + 1e-12):  # half of the weight is below: the middle of two values
        above = np.flatnonzero((np.arange(len(size)) > k) & (weights[order] > 0))
        median = 0.5 * (median + float(size[above[0]])) if len(above) else median
    return median / _NORMAL


def tukey(
    X: Design,
    y: Any,
    s: Any,
    delta: float,
    alpha: float,
    start: TukeyPoint,
    *,
    fit_intercept: bool,
    floor: float,
    settle: float | None,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=TukeyPoint, value=objective, estimate=size of the gradient)``.

    The size is sqrt(g'H^-1 g / sum s) in units of the scale.

    Parameters
    ----------
    X : Design of shape (n, p)
    y, s : arrays of shape (n,), where X lives
    delta : float
        c in units of the scale.
    alpha : float
    start : TukeyPoint
    fit_intercept : bool
    floor : float
        The least scale.
    settle : float or None
        Estimate the scale anew from the residuals after each step until it moves by no more than this share,
        and keep it from then on; None keeps the scale of the start.
    """
    p = X.shape[1]
    rows = CentredRows(X, X.mean(s) if fit_intercept else np.zeros(p), fit_intercept)
    d = rows.vector(start.w, start.b)
    ridge = np.where(np.arange(len(d)) < p, alpha, 0.0)

    def at(d: Array, scale: float) -> _State:
        r = y - rows.predict(d)
        return _State(d, r, _bent(r, s, delta * scale)[0] + alpha * float(d[:p] @ d[:p]))

    def step(here: _State, scale: float) -> tuple[_State, float]:
        """The next point, and the square of the gradient in the metric of the step."""
        _, weights, curvature = _bent(here.r, s, delta * scale)
        push = rows.adjoint(weights * here.r) - ridge * here.d
        change = _newton(rows, curvature, ridge, push)
        if change is not None:
            there = at(here.d + change, scale)
            if there.value <= here.value * (1.0 + _ROUNDING):
                return there, abs(float(push @ change))
        change = _least_squares(rows, weights, ridge, push)
        return at(here.d + change, scale), abs(float(push @ change))

    here, scale = at(d, start.scale), start.scale
    for k in range(_ROUNDS if settle is not None else 0):
        before, scale = scale, max(median_deviation(here.r, s), floor)
        if k > 0 and abs(scale - before) <= (settle or 0.0) * before:
            break
        if k > 10:  # it may run in circles
            scale = math.sqrt(scale * before)
        here, _ = step(at(here.d, scale), scale)
        yield Iterate(TukeyPoint(here.d[:p], rows.intercept(here.d), scale), estimate=math.inf)
    first, here = at(d, scale), at(here.d, scale)
    if first.value < here.value:  # the scale moved, and the start is better after all
        here = first
    least = math.inf
    while True:
        there, gain = step(here, scale)
        size = math.sqrt(gain / float(s.sum())) / scale
        yield Iterate(TukeyPoint(here.d[:p], rows.intercept(here.d), scale), here.value, size)
        # Within rounding of the objective, go on as long as the gradient falls.
        falls = there.value < here.value * (1.0 - _ROUNDING)
        if not falls and (there.value > here.value * (1.0 + _ROUNDING) or gain > 0.25 * least):
            return
        if gain == 0.0:
            return
        here, least = there, min(gain, least)


class _State(NamedTuple):
    d: Array
    r: Any
    value: float


def _bent(r: Any, s: Any, c: float) -> tuple[float, Any, Any]:
    """sum 2 s rho, and the weights of least squares and of the Hessian."""
    u = (clip(r, -c, c) / c) ** 2
    value = c * c / 3.0 * float(s @ (u * (3.0 - 3.0 * u + u * u)))
    return value, s * (1.0 - u) ** 2, s * (1.0 - u) * (1.0 - 5.0 * u)


def _least_squares(rows: CentredRows, weights: Any, ridge: Array, rhs: Array) -> Array:
    """The step of reweighted least squares; the shortest one, after scaling, where rows are too few."""
    unit, scale = _unit(rows.gram(weights) + np.diag(ridge))
    return np.linalg.lstsq(unit, rhs / scale, rcond=1e-13)[0] / scale


def _newton(rows: CentredRows, curvature: Any, ridge: Array, rhs: Array) -> Array | None:
    """Newton's step; None where the Hessian is not positive definite."""
    K = rows.gram(clip(curvature, 0.0, None)) - rows.gram(clip(-curvature, 0.0, None))
    K += np.diag(ridge)
    if not (np.diag(K) > 0.0).all():
        return None
    unit, scale = _unit(K)
    try:
        np.linalg.cholesky(unit - 1e-10 * np.eye(len(unit)))
    except np.linalg.LinAlgError:
        return None
    return np.linalg.solve(unit, rhs / scale) / scale


def _unit(K: Array) -> tuple[Array, Array]:
    """K scaled to a unit diagonal, and the scale."""
    scale = np.sqrt(np.maximum(np.diag(K), 0.0))
    scale[scale == 0.0] = 1.0
    return K / scale / scale[:, None], scale
