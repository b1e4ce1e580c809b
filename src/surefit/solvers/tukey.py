r"""Tukey's bisquare regression for a given scale, by Newton's method and reweighted least squares.

    min_{w, b}  sum_i 2 s_i rho(y_i - x_i'w - b) + alpha ||w||^2,     rho(e) = (c^2 / 6) (1 - (1 - e^2 / c^2)^3) up to |e| = c

(LOS-5), constant beyond. rho is a concave function of e^2, so the quadratic with the same slope lies above it: least
squares with the weights (1 - e^2 / c^2)^2 never increases the objective. That is the safe step. Where the Hessian, with
weights (1 - e^2 / c^2)(1 - 5 e^2 / c^2), is positive definite, Newton's step is tried first and taken if the objective
falls; it makes the last steps quadratic. The problem is not convex: what is found is a stationary point near the
start, and the start decides which.

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

__all__ = ["TukeyPoint", "median_deviation", "tukey"]

Array = NDArray[np.float64]
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
    """Yield ``Iterate(x=TukeyPoint, value=objective, estimate=relative gradient)`` after each step.

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
    center = X.mean(s) if fit_intercept else np.zeros(p)
    d = np.append(start.w, start.b + center @ start.w) if fit_intercept else start.w
    scale, moving = start.scale, settle is not None
    r = y - _predict(X, d, center, fit_intercept)
    for k in range(1 << 30):
        if moving:
            before, scale = scale, max(median_deviation(r, s), floor)
            moving = k == 0 or (k < 50 and abs(scale - before) > (settle or 0.0) * before)
        c = delta * scale
        u = clip((r / c) ** 2, None, 1.0)
        value = _objective(u, s, c) + alpha * float(d[:p] @ d[:p])
        ridge = np.where(np.arange(len(d)) < p, alpha, 0.0)
        push = _adjoint(X, s * (1.0 - u) ** 2 * r, center, fit_intercept) - ridge * d
        step = None
        for newton in (True, False):
            weights = s * ((1.0 - u) * (1.0 - 5.0 * u) if newton else (1.0 - u) ** 2)
            step = _solve(X, weights, center, fit_intercept, ridge, push, definite=newton)
            if step is None:
                continue
            moved = y - _predict(X, d + step, center, fit_intercept)
            after = _objective(clip((moved / c) ** 2, None, 1.0), s, c)
            after += alpha * float((d + step)[:p] @ (d + step)[:p])
            if after <= value * (1.0 - 1e-16) or (moving and not newton):
                break
        gain = abs(float(push @ step)) if step is not None else 0.0
        if step is None or (after >= value and not moving):
            yield Iterate(_point(d, center, scale, fit_intercept), value, gain)
            return
        d, r = d + step, moved
        yield Iterate(_point(d, center, scale, fit_intercept), after, math.inf if moving else gain)


def _point(d: Array, center: Array, scale: float, free: bool) -> TukeyPoint:
    p = len(center)
    return TukeyPoint(d[:p], float(d[p] - center @ d[:p]) if free else 0.0, scale)


def _objective(u: Any, s: Any, c: float) -> float:
    """sum_i 2 s_i rho, with u = min((e / c)^2, 1)."""
    return c * c / 3.0 * float(s @ (u * (3.0 - 3.0 * u + u * u)))


def _predict(X: Design, d: Array, center: Array, free: bool) -> Any:
    p = len(center)
    return X.dot(d[:p]) + (float(d[p] - center @ d[:p]) if free else 0.0)


def _adjoint(X: Design, v: Any, center: Array, free: bool) -> Array:
    product, mass = X.tdot(v), float(v.sum())
    return np.append(product - mass * center, mass) if free else product


def _solve(
    X: Design,
    weights: Any,
    center: Array,
    free: bool,
    ridge: Array,
    rhs: Array,
    *,
    definite: bool,
) -> Array | None:
    """(A' weights A + ridge)^{-1} rhs, A the centred rows with a 1; None where it must be definite and is not."""
    K = bordered_gram(X, clip(weights, 0.0, None), center, free) + np.diag(ridge)
    if definite:
        K -= bordered_gram(X, clip(-weights, 0.0, None), center, free)
    scale = np.sqrt(np.maximum(np.diag(K), 0.0))
    if definite and not (scale > 0.0).all():
        return None
    scale[scale == 0.0] = 1.0
    unit = K / scale / scale[:, None]
    try:
        np.linalg.cholesky(unit)
        return np.linalg.solve(unit, rhs / scale) / scale
    except np.linalg.LinAlgError:
        if definite:
            return None
    return np.linalg.lstsq(unit, rhs / scale, rcond=1e-12)[0] / scale
