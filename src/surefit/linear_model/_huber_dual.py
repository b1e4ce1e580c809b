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
eps), with b and sigma first settled for these predictions; X'(s theta) = 2 alpha w, the balance and the
scale constraint are then met by a correction of theta on rows well inside the box, a few thousand of them
at first, all of them if these do not suffice. The last rounding errors are removed by shrinking theta.
Nothing here comes from the solver.

References
----------
Huber & Ronchetti, Robust Statistics (2009), section 7.7; Owen, "A robust hybrid of lasso and ridge
regression" (2007); Rockafellar, Convex Analysis (1970), sections 15 and 31.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._namespace import array_namespace, clip, like, to_numpy, where
from ..design import Design, as_design
from ..duality import Gap
from ..losses import Huber

__all__ = ["huber_gap", "huber_null", "huber_value", "least_scale"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_SMALL = 1 << 24  # operations for which the singular values of the rows themselves are cheap
_COLUMNS = 3000  # the correction forms a matrix of this size at most


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
    problem = _Problem(design, y, s, r, w, epsilon, alpha, fit_intercept, float(s.sum()))
    values = huber_value(r, epsilon, scale)
    primal = float(s @ values) + alpha * float(w @ w)
    shift, sigma = _settled(r, s, epsilon, scale, free=fit_intercept)
    candidates = [_slopes(r - shift, epsilon, sigma, abs(y) + abs(z) + abs(b))]
    candidates += _given(witness, r, epsilon)
    best, gap = _Point(0.0 * r, 0.0 * w, None), primal  # theta = 0: the objective is not negative
    trivial = True
    for everything in (False, True):
        for theta in candidates:
            for point in _repaired(problem, theta, everything=everything):
                tried = _gap(problem, point, values)
                trivial = trivial and not math.isfinite(tried)
                if tried < gap:
                    best, gap = point, tried
        if gap <= bound:
            break
    norms = design.column_norms(s) if best.norms is None else best.norms
    size, spread = abs(best.theta), abs(y) + abs(z) + abs(b)
    noise = _EPS * norms * math.sqrt(float(s @ size**2))  # what rounding does to X'(s theta)
    leak = float((np.abs(best.adjoint) if alpha == 0.0 else 2.0 * noise) @ np.abs(w))
    if alpha > 0.0:
        leak = min(leak, float(noise @ noise) / (4.0 * alpha))
    mass = float(s @ (values + size * (abs(r) + spread)))
    slopes = _slopes(r, epsilon, scale, 0.0)  # what an error of a prediction does to the objective
    mass += math.sqrt(float(s @ slopes**2)) * float(norms @ np.abs(w))
    floor = 4.0 * _EPS * (8.0 + math.log2(len(s))) * mass + leak
    floor += problem.total * least_scale(y, s) + _storage(problem, coef, b, scale, norms)
    return Gap(primal, primal - gap, gap, floor, best.theta, trivial=trivial)


class _Problem(NamedTuple):
    design: Design
    y: Any
    s: Any
    r: Any
    w: Array
    epsilon: float
    alpha: float
    free: bool
    total: float  # sum of the weights


class _Point(NamedTuple):
    theta: Any
    adjoint: Array  # X'(s theta)
    norms: Array | None  # sqrt(sum_i s_i x_ij^2), estimated


def _gap(problem: _Problem, point: _Point, values: Any) -> float:
    """P - D at a point that is shrunk into the box and the ball; infinite where X'(s theta) = 0 fails."""
    s, w, alpha = problem.s, problem.w, problem.alpha
    largest, square = float(abs(point.theta).max()), float(s @ point.theta**2)
    t = min(1.0, 2.0 * problem.epsilon / max(largest, _TINY))
    t = min(t, math.sqrt(4.0 * problem.total / max(square, _TINY)))
    rest = float(s @ (values - t * point.theta * problem.r))
    if alpha > 0.0:
        mismatch = t * point.adjoint - 2.0 * alpha * w
        return rest + float(mismatch @ mismatch) / (4.0 * alpha)
    if point.norms is None:
        return math.inf
    rounding = np.abs(point.adjoint) <= 1e-11 * math.sqrt(square) * point.norms
    return rest if bool(rounding.all()) else math.inf


def _storage(problem: _Problem, coef: NDArray[Any], b: float, sigma: float, norms: Array) -> float:
    """What rounding the coefficients to float32 does to the objective; 0 for float64.

    It moves the predictions: to second order where there is curvature, to first order at most.
    """
    eps = float(np.finfo(coef.dtype).eps) if coef.dtype.kind == "f" else _EPS
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
        if given.shape == tuple(r.shape) and bool(np.isfinite(given).all()):
            return [clip(like(given, r), -2.0 * epsilon, 2.0 * epsilon)]
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
        inner = s * _indicator(near)
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
        near = _indicator(squares <= edge * t)
        slope = total * (1.0 - edge) + edge * float(s @ near)
        if slope <= 1e-12 * total:  # left of the top
            nearer = largest if t < largest else 0.0
        else:
            nearer = min(float(weighted @ near) / slope, largest)
        if abs(nearer - t) <= 4.0 * _EPS * t:
            break
        t = nearer
    return math.sqrt(t)


def _indicator(mask: Any) -> Any:
    xp = array_namespace(mask)
    return xp.astype(mask, xp.float64)


# ------------------------------------------------------------------------ repairing a candidate


def _repaired(problem: _Problem, theta: Any, *, everything: bool) -> list[_Point]:
    """Dual points near ``theta``: one that is balanced, and one that meets X'(s theta) = 2 alpha w too.

    With ``everything``, all rows inside the box take part in the correction; those that it pushes out stay on
    the edge, and it is made once more without them.
    """
    s, p, edge = problem.s, len(problem.w), 2.0 * problem.epsilon
    theta = _balanced(problem, theta)
    adjoint = problem.design.tdot(s * theta)
    found = [] if everything else [_Point(theta, adjoint, None)]
    inside = (abs(theta) < edge) & (s > 0)
    if not everything:
        deep = (abs(theta) <= 0.5 * edge) & (s > 0)
        inside = deep if int(deep.sum()) > 2 * (p + 2) else inside
    if p > _COLUMNS:
        return found
    for _ in range(5 if everything else 1):
        if not bool(inside.any()):
            break
        point = _corrected(problem, theta, adjoint, inside, everything=everything)
        found.append(point)
        out = abs(point.theta) > edge
        if not bool(out.any()):
            break
        theta, inside = clip(point.theta, -edge, edge), inside & ~out
        adjoint = problem.design.tdot(s * theta)
    return found


def _corrected(
    problem: _Problem, theta: Any, adjoint: Array, inside: Any, *, everything: bool
) -> _Point:
    """theta changed on rows inside the box, as little as it takes to meet the equations."""
    s, design = problem.s, problem.design
    rows, part = (None, design) if everything else _some_rows(design, inside)
    all_rows = rows is None

    def near(values: Any) -> Any:
        return values if all_rows else values[like(rows, values)]

    moved, weights = near(theta), near(s * _indicator(inside))
    correction = _Correction(part, weights, moved, free=problem.free)
    square, balance = float(s @ theta**2), float(s @ theta)
    limit = 4.0 * problem.total * (1.0 - _EPS)
    binding = square > (1.0 - 1e-6) * limit  # otherwise sigma = 0, and the ball is no matter
    for _ in range(3):  # the ball is met to first order, and rounding needs a second pass anyhow
        step = correction.step(
            2.0 * problem.alpha * problem.w - adjoint,
            -balance if problem.free else None,
            limit - square if binding else None,
        )
        change = weights * step
        square += float(change @ (2.0 * moved + step))
        balance += float(change.sum())
        adjoint = adjoint + part.tdot(change)
        moved = moved + step
    if all_rows:
        theta = moved
    else:
        theta = theta + 0.0
        theta[like(rows, theta)] = moved
    norms = correction.norms * math.sqrt(problem.total / correction.mass)
    return _Point(_balanced(problem, theta), adjoint, norms)


def _balanced(problem: _Problem, theta: Any) -> Any:
    return Huber().balance(theta, problem.y, problem.s) if problem.free else theta


class _Correction:
    """Changes delta = A k of theta on some rows, A = [X - mean, 1, theta], with A'(s delta) prescribed."""

    def __init__(self, part: Design, weights: Any, theta: Any, *, free: bool) -> None:
        self.part, self.weights, self.theta = part, weights, theta
        self.solve: Callable[[Array], Array] | None = None
        self.mass = float(weights.sum())
        self.mean = part.mean(weights) if free else np.zeros(part.shape[1])
        center = self.mean if free else None
        p, st = len(self.mean), weights * theta
        size = part.column_norms(weights, center) ** 2
        noise = _EPS * (8.0 + math.sqrt(part.shape[0])) * np.abs(self.mean)
        self.norms = np.sqrt(size + self.mass * self.mean**2)
        self.scale = np.sqrt(np.append(size, [self.mass, float(st @ theta)]))
        self.kept = self.scale > np.append(math.sqrt(self.mass) * noise, [0.0, 0.0])  # not constant
        self.small = part.shape[0] * (p + 2) ** 2 <= _SMALL
        if self.small:  # the singular values of A itself have twice the digits of those of A'SA
            table = np.column_stack(
                [part.columns(np.arange(p)) - self.mean, np.ones(part.shape[0]), to_numpy(theta)]
            )
            self.matrix = np.sqrt(to_numpy(weights))[:, None] * table
            return
        self.matrix = np.zeros((p + 2, p + 2))
        self.matrix[:p, :p] = part.gram(weights, center)
        self.matrix[p, p], self.matrix[p + 1, p + 1] = self.scale[p] ** 2, self.scale[p + 1] ** 2
        self.matrix[p, p + 1] = self.matrix[p + 1, p] = float(st.sum())
        cross = part.tdot(st) - self.mean * float(st.sum())
        self.matrix[:p, p + 1] = self.matrix[p + 1, :p] = cross

    def step(self, adjoint: Array, balance: float | None, square: float | None) -> Any:
        """delta with X'(s delta) = adjoint, sum s delta = balance, 2 sum s theta delta = square.

        None in place of a number leaves that equation out.
        """
        p = len(adjoint)
        kept = self.kept & np.append(np.ones(p, bool), [balance is not None, square is not None])
        rhs = np.append(adjoint, [balance or 0.0, 0.5 * (square or 0.0)])
        rhs[:p] -= self.mean * rhs[p]
        if self.solve is None:  # the same unknowns each time
            self.solve = self._factor(kept)
        k = np.zeros(p + 2)
        k[kept] = self.solve(rhs[kept] / self.scale[kept]) / self.scale[kept]
        delta = (
            self.part.dot(k[:p]) + float(k[p] - self.mean @ k[:p]) + float(k[p + 1]) * self.theta
        )
        return where(self.weights > 0, delta, 0.0)

    def _factor(self, kept: NDArray[np.bool_]) -> Callable[[Array], Array]:
        """A solver of A'SA k = rhs, the columns of A scaled to length 1; the shortest k if it is singular."""
        scale = self.scale[kept]
        if self.small:
            _, values, turned = np.linalg.svd(self.matrix[:, kept] / scale, full_matrices=False)
            vectors, values, limit = turned.T, values**2, (_EPS * len(kept)) ** 2
        else:
            unit = self.matrix[np.ix_(kept, kept)] / scale / scale[:, None]
            with contextlib.suppress(np.linalg.LinAlgError):
                factor = cho_factor(unit, check_finite=False)
                if np.diag(factor[0]).min() > 1e-5:
                    return lambda rhs: cho_solve(factor, rhs, check_finite=False)
            values, vectors = np.linalg.eigh(unit)
            limit = _EPS * len(kept)
        large = values > limit * values.max(initial=0.0)
        vectors, values = vectors[:, large], values[large]
        return lambda rhs: vectors @ ((vectors.T @ rhs) / values)


def _some_rows(design: Design, inside: Any) -> tuple[NDArray[np.intp] | None, Design]:
    """A few thousand of the rows inside, and the part of the design with these; None: all rows."""
    count = max(8192, 24 * design.shape[1])
    if design.shape[0] <= 4 * count:
        return None, design
    index = np.flatnonzero(to_numpy(inside))
    X = getattr(design, "X", None)
    if X is not None:
        index = index[:: max(1, len(index) // count)]
        return index, as_design(X[like(index, X)])
    index, parts = index[:count], []
    for rows, block in design.blocks():  # on disk: the first ones, so that the rest is not read
        wanted = index[(index >= rows.start) & (index < rows.stop)] - rows.start
        parts.append(block[wanted])
        if rows.stop > index[-1]:
            break
    return index, as_design(np.concatenate(parts))
