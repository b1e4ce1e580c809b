r"""The duality gap of Huber's regression with its scale estimated jointly.

    P(w, b, sigma) = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,     sigma >= 0,
    r_i = y_i - x_i'w - b,     H(u) = u^2 for |u| <= eps,  2 eps |u| - eps^2 beyond.

sigma H(r / sigma) is the perspective of H, hence convex in (r, sigma) together (at sigma = 0 it is
2 eps |r|), and with H*(theta) = theta^2 / 4 on |theta| <= 2 eps it is the largest of the affine functions

    theta r - sigma theta^2 / 4,     |theta| <= 2 eps.

Put these into P and take the least value over each variable by itself. Over b it is finite only if
sum_i s_i theta_i = 0; over sigma >= 0 only if sum_i s_i (1 - theta_i^2 / 4) >= 0; over w it is
-||X'(s theta)||^2 / (4 alpha), or, without a penalty, finite only if X'(s theta) = 0. So for every theta with

    |theta_i| <= 2 eps,     sum_i s_i theta_i^2 <= 4 sum_i s_i,     sum_i s_i theta_i = 0  (free b)

    D(theta) = sum_i s_i theta_i y_i - ||X'(s theta)||^2 / (4 alpha)     (alpha = 0:  X'(s theta) = 0)

is at most P at every (w, b, sigma). The gap is evaluated as

    P - D = sum_i s_i (sigma + sigma H(r_i / sigma) - theta_i r_i)
            + ||X'(s theta) - 2 alpha w||^2 / (4 alpha),

without the large terms theta_i y_i, which would cancel. The candidate is theta = 2 clip(r / sigma, -eps,
eps), with b and sigma first settled for these predictions; it is then moved onto the constraints
(:mod:`surefit.linear_model._huber_repair`), with a few thousand rows at first, with all of them if these do
not suffice. The last rounding errors are removed by shrinking theta. Nothing here comes from the solver.

References
----------
Huber & Ronchetti, Robust Statistics (2009), section 7.7; Owen, "A robust hybrid of lasso and ridge
regression" (2007); Rockafellar, Convex Analysis (1970), sections 15 and 31.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import clip, samples_like, to_numpy, where
from .._worst import largest
from ..design import as_design
from ..duality import Gap
from ._huber_repair import DualPoint, DualProblem, indicator, repaired

__all__ = ["huber_gap", "huber_null", "huber_value", "least_scale"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


def least_scale(y: Any, s: Any) -> float:
    """The scale below which residuals are rounding errors of y; it stands for sigma = 0."""
    size = float(s @ abs(y)) / float(s.sum())
    return max(4.0 * _EPS * size, _TINY)


def huber_value(r: Any, epsilon: float, sigma: float) -> Any:
    """sigma + sigma H(r / sigma) for each sample; 2 eps |r| at sigma = 0."""
    size, sigma = abs(r), max(sigma, _TINY)
    part = clip(size, None, epsilon * sigma)
    return sigma + part * (part / sigma) + 2.0 * epsilon * (size - part)


def huber_null(y: Any, s: Any, epsilon: float, *, fit_intercept: bool) -> float:
    """The objective at w = 0 with the best intercept and scale, the yardstick of ``tol``."""
    shift, sigma = _settled(y, s, epsilon, None, free=fit_intercept)
    return float(s @ huber_value(y - shift, epsilon, sigma))


def huber_gap(
    X: Any,
    y: Any,
    coef: NDArray[Any],
    intercept: float,
    scale: float,
    *,
    epsilon: float,
    alpha: float,
    weights: Any,
    fit_intercept: bool,
    witness: Any = None,
    bound: float = 0.0,
) -> Gap:
    """The duality gap at (coef, intercept, scale).

    Parameters
    ----------
    X : matrix of shape (n, p) or Design
    y, weights : arrays of shape (n,)
    coef, intercept, scale : the model
    epsilon, alpha, fit_intercept : the problem
    witness : array of shape (n,), optional
        A dual point to try besides the model's own; not trusted.
    bound : float
        A gap up to this needs no tighter dual point.
    """
    design = as_design(X)
    s, y = design.vector(weights), design.vector(y)
    w, b = coef.astype(np.float64), float(intercept)
    z = design.dot(w)
    r = y - z - b
    problem = DualProblem(design, y, s, r, w, epsilon, alpha, fit_intercept, float(s.sum()))
    values = huber_value(r, epsilon, scale)
    primal = float(s @ values) + alpha * float(w @ w)
    shift, sigma = _settled(r, s, epsilon, scale, free=fit_intercept)
    candidates = [_slopes(r - shift, epsilon, sigma, abs(y) + abs(z) + abs(b))]
    candidates += _given(witness, r, epsilon)
    # theta = 0 shows that the objective is not negative
    best, gap = DualPoint(0.0 * r, 0.0 * w, None), primal
    trivial = True
    for everything in (False, True):
        for theta in candidates:
            for point in repaired(problem, theta, everything=everything):
                feasible = _shrunk(problem, point)
                tried = _gap(problem, feasible, values)
                trivial = trivial and not math.isfinite(tried)
                if tried < gap:
                    best, gap = feasible, tried
        if gap <= bound:
            break
    norms = design.column_norms(s) if best.norms is None else best.norms
    size, spread = abs(best.theta), abs(y) + abs(z) + abs(b)
    noise = _EPS * norms * math.sqrt(float(s @ size**2))  # what rounding does to X'(s theta)
    leak = float((np.abs(best.adjoint) if alpha == 0.0 else 2.0 * noise) @ np.abs(w))
    if alpha > 0.0 and gap > bound:  # columns so long that the bound cannot be computed
        longest = 16.0 * _EPS * norms * math.sqrt(problem.total)
        with np.errstate(over="ignore"):
            leak += float(longest @ longest) / (4.0 * alpha)
    elif alpha > 0.0:
        leak = min(leak, float(noise @ noise) / (4.0 * alpha))
    mass = float(s @ (values + size * (abs(r) + spread)))
    slopes = _slopes(r, epsilon, scale, 0.0)  # what an error of a prediction does to the objective
    mass += math.sqrt(float(s @ slopes**2)) * float(norms @ np.abs(w))
    floor = 4.0 * _EPS * (8.0 + math.log2(design.shape[0])) * mass + leak
    floor += 2.0 * problem.total * least_scale(y, s)  # sigma, and residuals of that size
    stored = _storage(problem, coef, b, scale, norms)
    return Gap(primal, primal - gap, gap, floor + stored, best.theta, trivial, stored)


def _shrunk(problem: DualProblem, point: DualPoint) -> DualPoint:
    """The point scaled into the box and the ball, which contain 0 and are convex."""
    longest, square = float(abs(point.theta).max()), float(problem.s @ point.theta**2)
    beyond = largest(longest / (2.0 * problem.epsilon), math.sqrt(square / (4.0 * problem.total)))
    t = 1.0 / largest(beyond, 1.0)
    return DualPoint(t * point.theta, t * point.adjoint, point.norms)


def _gap(problem: DualProblem, point: DualPoint, values: Any) -> float:
    """P - D at a point in the box and the ball; infinite where X'(s theta) = 0 is wanted and fails."""
    s, w, alpha = problem.s, problem.w, problem.alpha
    rest = float(s @ (values - point.theta * problem.r))
    if alpha > 0.0:
        mismatch = point.adjoint - 2.0 * alpha * w
        return rest + float(mismatch @ mismatch) / (4.0 * alpha)
    if point.norms is None:
        return math.inf
    size = math.sqrt(float(s @ point.theta**2))
    return rest if bool((np.abs(point.adjoint) <= 1e-11 * size * point.norms).all()) else math.inf


def _storage(
    problem: DualProblem, coef: NDArray[Any], b: float, sigma: float, norms: Array
) -> float:
    """What rounding the coefficients to float32 does to the objective; 0 for float64.

    It moves the predictions: to second order where there is curvature, to first order at most.
    """
    eps = storage_eps(coef.dtype)
    if eps <= _EPS:
        return 0.0
    moved = eps * math.sqrt(float(norms**2 @ problem.w**2) + problem.total * b * b)
    return min(
        2.0 * moved * moved / max(sigma, _TINY),
        2.0 * problem.epsilon * math.sqrt(problem.total) * moved,
    )


# ------------------------------------------------------------------------ candidates


def _slopes(r: Any, epsilon: float, sigma: float, size: Any) -> Any:
    """2 clip(r / sigma); where sigma and r are no more than rounding errors of terms of this size, 0."""
    sigma = max(sigma, _TINY)
    r = where(epsilon * sigma + abs(r) <= 8.0 * _EPS * size, 0.0, r)
    return 2.0 * clip(r, -epsilon * sigma, epsilon * sigma) / sigma


def _given(witness: Any, r: Any, epsilon: float) -> list[Any]:
    with contextlib.suppress(TypeError, ValueError):  # not numbers: no witness
        given = np.asarray(to_numpy(witness), dtype=np.float64)
        if given.shape == tuple(r.shape) and bool((abs(samples_like(given, r)) < math.inf).all()):
            return [clip(samples_like(given, r), -2.0 * epsilon, 2.0 * epsilon)]
    return []


def _settled(
    r: Any, s: Any, epsilon: float, sigma: float | None, *, free: bool
) -> tuple[float, float]:
    """The shift and the scale that minimise sum_i s_i (sigma + sigma H((r_i - shift) / sigma)).

    Newton's method on the derivative in the shift, the scale being best for each, kept in its bracket.
    """
    total = float(s.sum())
    shift = float(s @ r) / total if sigma is None and free else 0.0
    low, high = -math.inf, math.inf
    for _ in range(100):
        e = r - shift
        sigma = _scale_for(e, s, total, epsilon, sigma)
        if not free:
            break
        edge = epsilon * max(sigma, _TINY)
        near = abs(e) <= edge
        u = clip(e, -edge, edge) / max(sigma, _TINY)
        clipped = s * u
        slope = float(clipped.sum())
        if abs(slope) <= 4.0 * _EPS * float(abs(clipped).sum()):
            break
        low, high = (shift, high) if slope > 0 else (low, shift)
        inner = s * indicator(near)
        first, second = float(inner @ u), float((inner * u) @ u)
        bend = float(inner.sum()) - (first * first / second if second > 0 else 0.0)
        nearer = shift + sigma * slope / bend if bend > 1e-12 * total else slope * math.inf
        if not low < nearer < high:
            ends = [end for end in (low, high) if math.isfinite(end)]
            reach = float(e.max()) if slope > 0 else float(e.min())  # no minimiser lies beyond
            nearer = 0.5 * (sum(ends) if len(ends) == 2 else 2.0 * shift + reach)
        if abs(nearer - shift) <= 2.0 * _EPS * abs(shift) or nearer in (low, high):
            break
        shift = nearer
    return shift, float(sigma or 0.0)


def _scale_for(e: Any, s: Any, total: float, epsilon: float, start: float | None) -> float:
    """The root sigma of sum_i s_i min(e_i^2, eps^2 sigma^2) = sigma^2 sum_i s_i; 0 where there is none.

    In t = sigma^2 the difference is concave and piecewise linear: Newton's method from its right
    ends there, from the left it arrives on the right after one step.
    """
    squares = e * e
    weighted = s * squares
    largest, edge = float(weighted.sum()) / total, epsilon * epsilon
    t = largest if start is None else min(start * start, largest)
    for _ in range(100):
        near = indicator(squares <= edge * t)
        slope = total * (1.0 - edge) + edge * float(s @ near)
        if slope <= 1e-12 * total:  # left of the top
            nearer = largest if t < largest else 0.0
        else:
            nearer = min(float(weighted @ near) / slope, largest)
        if abs(nearer - t) <= 4.0 * _EPS * t:
            break
        t = nearer
    return math.sqrt(t)
