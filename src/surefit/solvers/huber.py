r"""Huber's regression with its scale estimated jointly, by Newton's method on the active set.

    min_{w, b, sigma}  sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,     r = y - Xw - b,

H(u) = u^2 up to |u| = eps, 2 eps |u| - eps^2 beyond. Where no residual changes between near (|r| <= eps sigma)
and far, the objective is

    C sigma + Q(w, b) / sigma + linear + alpha ||w||^2,     Q = sum over near rows of s r^2,

which for a given sigma is a quadratic: its minimiser d(tau) = K^{-1} (q + tau (eps o - alpha w)) is nearly affine in
tau, and the best tau solves a quadratic equation. That minimiser is the step. So the scale is not an afterthought: when
the near rows can be fitted exactly, tau is 0 and the step goes straight to sigma = 0, where the problem is least absolute
deviations; otherwise the method ends after finitely many active sets (Madsen & Nielsen 1993). The step is
shortened until the objective falls, and where the near rows do not determine it, reweighted least squares,
which always does, takes its place. For given residuals the scale itself is the root of a concave, piecewise
linear function of sigma^2, so that it needs no sorting.

The matrix K = X'(s near)X is formed once and then updated by the rows that changed sides. With many rows the
start and K come from a sample of them, which makes an iteration one reading of X; the full matrix is formed only if
that is too slow.

References
----------
Madsen & Nielsen, "A finite smoothing algorithm for linear l1 estimation", SIAM J. Optimization 3 (1993); Huber &
Ronchetti, Robust Statistics (2009), section 7.8; Chen & Pinar, "Newton's method for Huber's robust M-estimation
problems" (1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from .._namespace import array_namespace, clip, like, to_numpy, where
from ..design import Design, as_design
from ..iterate import Iterate
from .huber_interior import bordered_gram, huber_interior

__all__ = ["HuberPoint", "huber"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_DIRECT = 2500  # most columns for which K is formed
_SAMPLED = 6  # most iterations with K from a sample
_SAMPLE_BYTES = 1 << 26  # of the sample
_SPECTRUM = 1200  # largest matrix whose eigenvectors are computed
_ROTATION = 1 << 30  # operations (n^2 p) up to which singular vectors are cheap


class HuberPoint(NamedTuple):
    """Coefficients, intercept, scale and, where the scale is 0, the dual point that the residuals do not show."""

    w: Array
    b: float
    scale: float
    theta: Any = None


class _Data(NamedTuple):
    """The problem; ``center`` is subtracted from the rows so that the intercept does not spoil K."""

    X: Design
    y: Any
    s: Any
    total: float
    epsilon: float
    alpha: float
    free: bool
    center: Array
    floor: float  # the scale that stands for 0


def huber(
    X: Design,
    y: Any,
    s: Any,
    epsilon: float,
    alpha: float,
    start: HuberPoint | None = None,
    *,
    fit_intercept: bool,
    floor: float,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=HuberPoint, value=objective, estimate=what the next step may gain)``.

    Parameters
    ----------
    X : Design of shape (n, p)
    y, s : arrays of shape (n,), where X lives
        Targets and weights; a row of weight 0 takes no part.
    epsilon, alpha : float
    start : HuberPoint, optional
        Yielded first, at no cost, if given.
    fit_intercept : bool
    floor : float
        The scale that stands for 0.
    """
    n, p = X.shape
    turned = _row_space(X, alpha) if n < p else None
    if turned is not None:  # what is orthogonal to all rows is 0: w = V u loses nothing
        rotate, table = turned
        if start is not None:
            start = start._replace(
                w=np.linalg.lstsq(table, to_numpy(X.dot(start.w)), rcond=None)[0]
            )
        small = as_design(X.vector(table))
        for it in huber(
            small, y, s, epsilon, alpha, start, fit_intercept=fit_intercept, floor=floor
        ):
            yield it._replace(x=it.x._replace(w=rotate(it.x.w)))
        return
    data = _Data(X, y, s, float(s.sum()), epsilon, alpha, fit_intercept, np.zeros(p), floor)
    state = None
    if start is None and p <= _DIRECT:
        state = yield from _with_a_sample(data)
    if state is None:
        data = data._replace(center=X.mean(s)) if fit_intercept else data
        state = _Newton(data, start)
    cost = 0 if start is not None else 1
    while True:
        estimate = state.prepare()
        yield Iterate(state.point(), state.value, estimate, cost=cost)
        if state.finished:
            return
        if state.hard or not state.advance():
            break
        cost = 1
    if p <= _DIRECT and estimate > 1e-14 * state.value:
        yield from _from_inside(state)


def _from_inside(state: _Newton) -> Iterator[Iterate]:
    """The interior-point method, and Newton's on what it finds if the scale is not 0."""
    data, p = state.data, state.data.X.shape[1]
    steps = huber_interior(
        data.X, data.y, data.s, data.epsilon, data.alpha, state.d, data.center,
        fit_intercept=data.free,
    )  # fmt: skip
    point = None
    for it in steps:
        d, sigma, theta = it.x
        b = float(d[p] - data.center @ d[:p]) if data.free else 0.0
        point = HuberPoint(d[:p], b, max(sigma, data.floor), theta)
        yield Iterate(point, math.nan, it.estimate)
    if point is None:
        return
    state = _Newton(data, point._replace(theta=None))
    if point.scale > 1e-6 * state.value / data.total:
        estimate = state.prepare()
        if not state.hard and not state.finished and state.advance():
            yield Iterate(state.point(), state.value, estimate)


def _row_space(X: Design, alpha: float) -> tuple[Callable[[Array], Array], Array] | None:
    """u -> Vu and the matrix XV, with at most n columns; those of V, or of XV without a penalty, orthonormal."""
    n, p = X.shape
    table = getattr(X, "X", None)
    if table is None or n > _DIRECT:
        return None
    if n * n * p <= _ROTATION:
        blocks = [b.toarray() if hasattr(b, "toarray") else to_numpy(b) for _, b in X.blocks()]
        U, d, Vt = np.linalg.svd(np.concatenate(blocks), full_matrices=False)
        kept = d > d[0] * p * _EPS
        kept[0] = True
        U, d, Vt = U[:, kept], d[kept], Vt[kept]
        if alpha == 0.0:
            return (lambda u: Vt.T @ (u / d)), U
        return (lambda u: Vt.T @ u), U * d
    products = table @ table.T
    products = products.toarray() if hasattr(products, "toarray") else to_numpy(products)
    try:
        L = np.linalg.cholesky(np.asarray(products, dtype=np.float64))
    except np.linalg.LinAlgError:
        return None
    if np.diag(L).min() < 1e-4 * np.diag(L).max():
        return None
    return (
        lambda u: X.tdot(X.vector(solve_triangular(L, u, lower=True, trans="T")))
    ), L  # V = X'L^-T


# ------------------------------------------------------------------------ pieces in one dimension


def _best_scale(r: Any, data: _Data, start: float) -> float:
    """The best scale for these residuals, at least ``floor``: Newton's method in sigma^2."""
    squares = r * r
    weighted = data.s * squares
    limit = float(weighted.sum()) / data.total  # no root lies beyond
    edge = data.epsilon**2
    t = min(start * start, limit)
    for _ in range(60):
        near = _indicator(squares <= edge * t)
        slope = data.total * (1.0 - edge) + edge * float(data.s @ near)
        if slope > 1e-13 * data.total:
            nearer = min(float(weighted @ near) / slope, limit)
        else:  # too few are near: the root is on the right, if there is one
            nearer = limit if t < limit else 0.0
        if abs(nearer - t) <= 1e-15 * t:
            break
        t = nearer
    return max(math.sqrt(t), data.floor)


def _indicator(mask: Any) -> Any:
    xp = array_namespace(mask)
    return xp.astype(mask, xp.float64)


def _objective(r: Any, data: _Data, sigma: float, w: Array) -> float:
    size = abs(r)
    part = clip(size, None, data.epsilon * sigma)
    losses = part * (part / sigma) + 2.0 * data.epsilon * (size - part)
    return data.total * sigma + float(data.s @ losses) + data.alpha * float(w @ w)


# ------------------------------------------------------------------------ the matrix of the near rows


class _NearMatrix:
    """K = sum of inner_i (x_i - center, 1)(x_i - center, 1)', updated by the rows whose weight changes."""

    def __init__(self, data: _Data) -> None:
        self.data = data
        self.inner: Any = None
        self.K = np.zeros((0, 0))

    def at(self, inner: Any) -> Array:
        """K for these weights."""
        table = getattr(self.data.X, "X", None)
        every = np.arange(len(inner))
        changed = every if self.inner is None else np.flatnonzero(to_numpy(inner != self.inner))
        if len(changed) and (table is None or 3 * len(changed) > len(inner)):
            self.K = _bordered(self.data, self.data.X, inner)
        elif len(changed):
            part = as_design(table[like(changed, table)])  # type: ignore[index]
            change = (inner - self.inner)[like(changed, inner)]
            self.K = self.K + _bordered(self.data, part, clip(change, 0.0, None))
            self.K -= _bordered(self.data, part, clip(-change, 0.0, None))
        self.inner = inner
        return self.K


def _bordered(data: _Data, X: Design, weights: Any) -> Array:
    return bordered_gram(X, weights, data.center, data.free)


def _adjoint(data: _Data, v: Any) -> Array:
    """(X - center)'v, and the sum of v for the intercept; v may have several columns."""
    product = data.X.tdot(v)
    if not data.free:
        return product
    mass = to_numpy(v.sum(axis=0))
    return np.concatenate([product - np.multiply.outer(data.center, mass), mass[None]])


def _predict(data: _Data, d: Array) -> Any:
    """(X - center) d, plus the intercept's part."""
    p = data.X.shape[1]
    shift = float(d[p] - data.center @ d[:p]) if data.free else 0.0
    return data.X.dot(d[:p]) + shift


def _solve(K: Array, ridge: float, p: int, rhs: Array) -> tuple[Array, bool]:
    """(K + ridge)^{-1} rhs after scaling to a unit diagonal, and whether that solves the equations.

    A singular matrix gives the shortest solution, which solves them if rhs lies in its range.
    """
    matrix = K.copy()
    matrix[np.arange(p), np.arange(p)] += ridge
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale[scale == 0.0] = 1.0
    unit, target = matrix / scale / scale[:, None], (rhs.T / scale).T
    limit = 1e-9 * float(np.abs(target).max(initial=0.0))
    try:
        found = cho_solve(cho_factor(unit, check_finite=False), target, check_finite=False)
        if float(np.abs(unit @ found - target).max()) <= limit:
            return (found.T / scale).T, True
    except np.linalg.LinAlgError:
        pass
    if len(unit) > _SPECTRUM:
        unit[np.diag_indices_from(unit)] += 1e-12 * len(unit)
        found = cho_solve(cho_factor(unit, check_finite=False), target, check_finite=False)
        return (found.T / scale).T, float(np.abs(unit @ found - target).max()) <= limit
    values, vectors = np.linalg.eigh(unit)
    large = values > 1e-14 * len(values) * values[-1]
    vectors = vectors[:, large]
    found = vectors @ ((vectors.T @ target).T / values[large]).T
    solved = float(np.abs(unit @ found - target).max()) <= limit
    return (found.T / scale).T, solved


# ------------------------------------------------------------------------ Newton's method


class _Model(NamedTuple):
    """C tau + (Q - 2 q'd + d'K d) / tau - 2 o'd + alpha ||d||^2, with alpha w and the far rows in o."""

    q: Array
    o: Array
    C: float
    Q: float

    def minimum(self, K: Array, alpha: float, sigma: float, p: int) -> tuple[Array, float, bool]:
        """The step d, the scale tau, and whether they are determined."""
        tau = sigma
        for _ in range(4 if p <= 500 else 1):
            ends, solved = _solve(K, alpha * tau, p, np.column_stack([self.q, self.o]))
            if not solved:
                break
            a, e = ends.T
            Ka, Ke = K @ a, K @ e
            rest = max(
                self.Q - 2.0 * float(self.q @ a) + float(a @ Ka), 0.0
            )  # Q at d = a + tau e is
            cross = float(e @ (Ka - self.q))  # rest + 2 tau cross + tau^2 e'Ke,
            bend = self.C - float(
                e @ Ke
            )  # and the derivative in tau is 0 where tau^2 bend = rest + 2 tau cross
            before = tau
            if bend > 1e-12 * self.C:
                tau = (cross + math.sqrt(cross * cross + bend * rest)) / bend
            tau = min(tau if bend > 1e-12 * self.C else math.inf, 10.0 * sigma)
            if alpha == 0.0 or abs(tau - before) <= 0.01 * before:
                break
        return ends @ np.array([1.0, tau]), tau, solved


class _Newton:
    """The current point, and what the next step needs."""

    def __init__(self, data: _Data, start: HuberPoint | None) -> None:
        p = data.X.shape[1]
        self.data, self.finished, self.hard, self.trials = data, False, False, 0
        self.theta: Any = None
        self.matrix = _NearMatrix(data) if p <= _DIRECT else None
        if start is None:
            self.d = self._least_squares()
            scale = math.inf
        else:
            c = start.b + float(data.center @ start.w)
            self.d = np.append(start.w, c) if data.free else start.w
            scale = start.scale
        self.r = data.y - _predict(data, self.d)
        self.sigma = _best_scale(self.r, data, scale)
        self.value = _objective(self.r, data, self.sigma, self.d[:p])

    def _least_squares(self) -> Array:
        """Ridge regression: all rows near."""
        data, p = self.data, self.data.X.shape[1]
        start = np.zeros(p + int(data.free))
        mean = float(data.s @ data.y) / data.total if data.free else 0.0
        start[p:] = mean
        if self.matrix is None:
            return start
        sigma = math.sqrt(float(data.s @ (data.y - mean) ** 2) / data.total)
        rhs = _adjoint(data, data.s * (data.y - mean))
        return start + _solve(self.matrix.at(data.s), data.alpha * sigma, p, rhs)[0]

    def point(self) -> HuberPoint:
        """In the original parametrisation."""
        data, p = self.data, self.data.X.shape[1]
        w = self.d[:p]
        b = float(self.d[p] - data.center @ w) if data.free else 0.0
        return HuberPoint(w, b, self.sigma, self.theta)

    def prepare(self) -> float:
        """Find the step; returns what it may gain, plus what a smaller scale would."""
        data, p = self.data, self.data.X.shape[1]
        slack: Any = 0.0
        corner = self.sigma <= max(data.floor, 1e-9 * self.value / data.total)
        if corner:  # residuals of rounding size are 0
            slack = data.X.row_squares() ** 0.5 * float(np.linalg.norm(self.d[:p]))
            slack = 16.0 * _EPS * (abs(data.y) + slack)
        near = abs(self.r) <= data.epsilon * self.sigma + slack
        inner = data.s * _indicator(near)
        outer = (data.s - inner) * where(self.r > 0, 1.0, -1.0)
        q, o = _adjoint(data, array_namespace(inner).stack([inner * self.r, outer], axis=1)).T
        o = data.epsilon * o
        o[:p] -= data.alpha * self.d[:p]
        C = data.total - data.epsilon**2 * float(abs(outer).sum())
        Q = float(inner @ (self.r * self.r))
        model, push = _Model(q, o, C, Q), q + self.sigma * o  # push: -sigma / 2 times the gradient
        self.low = data.floor
        if self.matrix is None:
            self.low = 0.3 * self.sigma  # no matrix, no way out of a corner: approach it slowly
            self.step = _conjugate_gradients(data, near, self.r, self.sigma, push)
        else:
            K = self.matrix.at(inner)
            self.step, tau, solved = model.minimum(K, data.alpha, self.sigma, p)
            if solved and (tau <= 1e-3 * self.sigma or corner):
                if self._is_zero_best(near, outer, model):
                    self.finished = True
                    return data.total * data.floor
                self.trials += 1
                self.low = max(0.1 * self.sigma, data.floor)
                self.step, solved = _solve(K, data.alpha * self.low, p, q + self.low * o)
            if not solved:  # the near rows do not determine it: reweight all rows instead
                self.trials += 1
                K = _bordered(data, data.X, _reweighted(data, self.r, self.sigma))
                self.step, _ = _solve(K, data.alpha * self.sigma, p, push)
        self.hard = self.matrix is not None and (self.trials > 5 or corner)
        if self.hard:
            return self.value
        self.fall = float(push @ self.step) / self.sigma
        gain = abs(self.fall) + max(self.sigma * C - Q / self.sigma, 0.0)
        self.finished = gain <= 1e-16 * self.value
        return gain

    def _is_zero_best(self, near: Any, outer: Any, model: _Model) -> bool:
        """Whether sigma = 0 with these near rows fitted exactly is the solution; if so, go there.

        As tau goes to 0, d(tau) = a + tau e makes the near residuals 0, and r / tau on them the predictions of
        -e. These and the signs of the far residuals are a dual point: if it is feasible, the limit is optimal.
        """
        data, p = self.data, self.data.X.shape[1]
        assert self.matrix is not None
        sides = np.column_stack([model.q, model.o])
        ends, solved = _solve(self.matrix.K, data.alpha * data.floor, p, sides)
        far = data.epsilon * outer / clip(data.s, _TINY, None)
        limit = where(data.s > 0, where(near, -_predict(data, ends[:, 1]), far), 0.0)
        inside = float(abs(limit).max()) <= data.epsilon * (1.0 + 1e-9)
        if not (solved and inside and float(data.s @ limit**2) <= data.total * (1.0 + 1e-12)):
            return False
        d = self.d + ends @ np.array([1.0, data.floor])
        r = data.y - _predict(data, d)
        missed = _adjoint(data, data.s * limit)  # 0, or alpha w, at a solution
        missed[:p] -= data.alpha * d[:p]
        losses = _objective(r, data, data.floor, 0.0 * d[:p]) - 2.0 * float((data.s * limit) @ r)
        sizes = np.sqrt(np.maximum(np.diag(self.matrix.K), 0.0) * float(data.s @ limit**2))
        value = _objective(r, data, data.floor, d[:p])
        slack = 1e-9 * self.value + 16.0 * data.total * data.floor
        if (
            losses > slack
            or not (np.abs(missed) <= 1e-9 * sizes + data.alpha * 1e-12 * np.abs(d).max()).all()
        ):
            return False
        self.d, self.r, self.value = d, r, value
        self.sigma, self.theta = data.floor, 2.0 * limit
        return True

    def advance(self) -> bool:
        """Take the step, shortened until the objective falls; False when no step lowers it."""
        data, p = self.data, self.data.X.shape[1]
        d, t = self.d + self.step, 1.0
        r = data.y - _predict(data, d)
        sigma = max(_best_scale(r, data, self.sigma), self.low)
        value = _objective(r, data, sigma, d[:p])
        if not value <= self.value - 1e-4 * self.fall:
            t, sigma = self._line_minimum(r)
            d, r = self.d + t * self.step, self.r + t * (r - self.r)
            value = _objective(r, data, sigma, d[:p])
        if not value < self.value:
            return False
        self.d, self.r, self.sigma, self.value = d, r, sigma, value
        return True

    def _line_minimum(self, end: Any) -> tuple[float, float]:
        """The zero of the derivative along the step, which is increasing: false position (Illinois)."""
        data, p = self.data, self.data.X.shape[1]
        move, w, d = end - self.r, self.d[:p], self.step[:p]
        low, high, f_low, f_high, side = 0.0, 1.0, -2.0 * self.fall, math.nan, 0
        sigma, t = self.sigma, 1.0
        for _ in range(60):
            r = self.r + t * move
            sigma = max(_best_scale(r, data, sigma), self.low)
            theta = clip(r / sigma, -data.epsilon, data.epsilon)
            f = 2.0 * float((data.s * theta) @ move) + 2.0 * data.alpha * float((w + t * d) @ d)
            if abs(f) <= 0.01 * abs(self.fall) or high - low <= 1e-15:
                break
            if f > 0.0:
                high, f_high, f_low = t, f, f_low * (0.5 if side == 1 else 1.0)
                side = 1
            elif t == 1.0:
                break
            else:
                low, f_low, f_high = t, f, f_high * (0.5 if side == -1 else 1.0)
                side = -1
            t = low - f_low * (high - low) / (f_high - f_low)
        return t, sigma


def _reweighted(data: _Data, r: Any, sigma: float) -> Any:
    """The weights of the least-squares problem that majorises the loss: s min(1, eps sigma / |r|)."""
    edge = data.epsilon * sigma
    return data.s * (edge / clip(abs(r), edge, None))


def _conjugate_gradients(data: _Data, near: Any, r: Any, sigma: float, rhs: Array) -> Array:
    """K^{-1} rhs without K, where there are too many columns for it; diagonal preconditioner."""
    p = data.X.shape[1]
    weights = data.s * _indicator(near)
    if int(near.sum()) < 2 * p:  # the near rows alone would not determine the step
        weights = _reweighted(data, r, sigma)
    ridge = data.alpha * sigma * (np.arange(len(rhs)) < p)
    diagonal = data.X.column_norms(weights, data.center if data.free else None) ** 2
    diagonal = np.append(diagonal, float(weights.sum())) if data.free else diagonal
    diagonal = np.maximum(diagonal + ridge, 1e-12 * diagonal.max(initial=_TINY))
    x, residual = np.zeros_like(rhs), rhs.copy()
    d = residual / diagonal
    inner = start = float(residual @ d)
    for _ in range(200):
        if inner <= 1e-8 * start:
            break
        product = _adjoint(data, weights * _predict(data, d)) + ridge * d
        t = inner / max(float(d @ product), _TINY)
        x, residual = x + t * d, residual - t * product
        before, inner = inner, float(residual @ (residual / diagonal))
        d = residual / diagonal + inner / before * d
    return x


# ------------------------------------------------------------------------ many rows


def _with_a_sample(data: _Data) -> Generator[Iterate, None, _Newton | None]:
    """Start and K from a sample of the rows, then steps that read X once each.

    Returns the state of Newton's method once the sample's K is not good enough any more; None where there are
    too few rows for a sample.
    """
    n, p = data.X.shape
    count = min(max(4096, 20 * p, n // 10), max(20 * p, _SAMPLE_BYTES // (8 * p)))
    if n < 4 * count:
        return None
    rows, part = _sample(data.X, count)
    y, s = data.y[like(rows, data.y)], data.s[like(rows, data.s)]
    if float(s.sum()) <= 0.0:
        return None
    share = float(s.sum()) / data.total
    data = data._replace(center=part.mean(s)) if data.free else data
    small = data._replace(X=part, y=y, s=s, total=float(s.sum()), alpha=share * data.alpha)
    state = _few_steps(_Newton(small, None), 3)
    point, previous, before = state.point(), math.inf, math.inf
    assert state.matrix is not None
    for _ in range(_SAMPLED):
        r, push = _one_reading(data, point)
        sigma = _best_scale(r, data, point.scale)
        value = _objective(r, data, sigma, point.w)
        if sigma <= data.floor or not value < before:
            break
        step, solved = _solve(state.matrix.K / share, data.alpha * point.scale, p, push)
        gain = float(push @ step) / point.scale
        if not solved:
            break
        shift = float(step[p] - data.center @ step[:p]) if data.free else 0.0
        point, before = HuberPoint(point.w + step[:p], point.b + shift, sigma), value
        rate = gain / previous if math.isfinite(previous) else 1.0
        yield Iterate(point, value, gain * min(1.0, rate))
        if gain > 0.25 * previous:
            break
        previous = gain
    return _Newton(data, point)


def _one_reading(data: _Data, point: HuberPoint) -> tuple[Any, Array]:
    """The residuals, and -sigma / 2 times the gradient in (w, intercept)."""
    parts: list[Any] = []
    edge = data.epsilon * point.scale

    def clipped(rows: slice, z: Any) -> Any:
        r = data.y[rows] - z - point.b
        parts.append(r)
        return data.s[rows] * clip(r, -edge, edge)

    push = data.X.respond(point.w, clipped)
    r = array_namespace(parts[0]).concat(parts)
    if data.free:
        mass = float(data.s @ clip(r, -edge, edge))
        push = np.append(push - mass * data.center, mass)
    push[: len(point.w)] -= data.alpha * point.scale * point.w
    return r, push


def _few_steps(state: _Newton, most: int) -> _Newton:
    for _ in range(most):
        if state.prepare() <= 1e-4 * state.value or state.finished or not state.advance():
            break
    return state


def _sample(X: Design, count: int) -> tuple[NDArray[np.intp], Design]:
    """``count`` rows or a few more, spread evenly; the first ones where rows cannot be picked (on disk)."""
    table = getattr(X, "X", None)
    if table is not None:
        index = np.arange(0, X.shape[0], X.shape[0] // count)
        return index, as_design(table[like(index, table)])
    blocks = []
    for rows, block in X.blocks():
        blocks.append(block + 0.0)
        if rows.stop >= count:
            break
    return np.arange(rows.stop), as_design(np.concatenate(blocks))
