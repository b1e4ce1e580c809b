r"""Newton's method on the active set, for Huber's regression with its scale.

Rows are *near* where |r| <= eps sigma and *far* elsewhere. While no row changes sides the objective is

    C tau + Q(d) / tau - 2 eps o'd + alpha ||w||^2 + constant,     Q = sum over near rows of s r^2,

o the sum of the far rows with the signs of their residuals. For a given tau that is a quadratic, with
minimiser d(tau) = a + tau e, nearly affine in tau (exactly so without a penalty), and the best tau then
solves a quadratic equation. This minimiser is the step: without a penalty the method ends once the right
rows are near. It is shortened until the objective falls, with the best scale for the residuals met on the
way (:func:`surefit.solvers.huber_problem.best_scale`).

When the near rows can be fitted exactly, tau is 0, and the limit of d(tau) and of r / tau are a primal
and a dual point of least absolute deviations: if these are feasible, the problem is solved
(``finished``). If they are not, time after time, the problem is one for
:mod:`surefit.solvers.huber_interior` (``hard``).

References
----------
Madsen & Nielsen, "A finite smoothing algorithm for linear l1 estimation", SIAM J. Optimization 3 (1993);
Chen & Pinar, "On Newton's method for Huber's robust M-estimation problems in linear regression", BIT 38
(1998).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, like, to_numpy, where
from ._centred import CentredRows
from .huber_problem import HuberPoint, HuberProblem, best_scale, indicator, objective, solve

__all__ = ["DIRECT", "HuberState"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
DIRECT = 2500  # most columns for which the matrix of the near rows is formed
_TRIALS = 5  # steps without a solution of their own before a problem counts as hard


class _NearMatrix:
    """The Gram matrix of the near rows, updated by the rows that changed sides."""

    def __init__(self, rows: CentredRows) -> None:
        self.rows, self.K = rows, np.zeros((0, 0))
        self.weights: Any = None

    def at(self, weights: Any) -> Array:
        """The matrix for these weights."""
        part, n = None, self.rows.shape[0]
        count = n if self.weights is None else int((weights != self.weights).sum())
        if 0 < 3 * count <= n and self.rows.can_pick:
            changed = np.flatnonzero(to_numpy(weights != self.weights))
            part = self.rows.part(changed)
            change = (weights - self.weights)[like(changed, weights)]
            self.K = self.K + part.gram(clip(change, 0.0, None))
            self.K -= part.gram(clip(-change, 0.0, None))
        elif count:
            self.K = self.rows.gram(weights)
        self.weights = weights
        return self.K


class _Model(NamedTuple):
    """C tau + (Q - 2 q'd + d'Kd) / tau - 2 o'd + alpha ||d||^2; the far rows and alpha w are in o."""

    q: Array
    o: Array
    C: float
    Q: float

    def minimum(self, K: Array, alpha: float, sigma: float, p: int) -> tuple[Array, float, bool]:
        """The step d, the scale tau, and whether they are determined."""
        tau = sigma
        for _ in range(4 if p <= 500 else 1):
            ends, solved = solve(K, alpha * tau, p, np.column_stack([self.q, self.o]))
            if not solved:
                break
            a, e = ends.T
            # Q(a + tau e) = rest + 2 tau cross + tau^2 e'Ke, and the best tau has tau^2 C = Q(a + tau e).
            Ka = K @ a
            rest = max(self.Q - 2.0 * float(self.q @ a) + float(a @ Ka), 0.0)
            cross, bend = float(e @ (Ka - self.q)), self.C - float(e @ (K @ e))
            before, tau = tau, 10.0 * sigma
            if bend > 1e-12 * self.C:
                tau = min(tau, (cross + math.sqrt(cross * cross + bend * rest)) / bend)
            if alpha == 0.0 or abs(tau - before) <= 0.01 * before:
                break
        return ends @ np.array([1.0, tau]), tau, solved


class HuberState:
    """The current point, and what the next step needs: ``prepare`` finds the step, ``advance`` takes it."""

    def __init__(self, problem: HuberProblem, start: HuberPoint | None) -> None:
        rows = problem.rows
        self.problem, self.finished, self.hard, self.trials = problem, False, False, 0
        self.theta: Any = None
        self.matrix = _NearMatrix(rows) if rows.shape[1] <= DIRECT else None
        self.d = self._least_squares() if start is None else rows.vector(start.w, start.b)
        self.r = problem.y - rows.predict(self.d)
        self.sigma = best_scale(problem, self.r, math.inf if start is None else start.scale)
        self.value = objective(problem, self.r, self.sigma, self.w)

    @property
    def w(self) -> Array:
        """The coefficients."""
        return self.d[: self.problem.rows.shape[1]]

    def point(self) -> HuberPoint:
        """The current point, in the original parametrisation."""
        return HuberPoint(self.w, self.problem.rows.intercept(self.d), self.sigma, self.theta)

    def _least_squares(self) -> Array:
        """Ridge regression, with all rows near; only the mean where there are too many columns."""
        rows, y, s, total, _, alpha, _ = self.problem
        p = rows.shape[1]
        start = np.zeros(p + int(rows.free))
        start[p:] = float(s @ y) / total
        if self.matrix is None:
            return start
        e = y - (float(start[p]) if rows.free else 0.0)
        sigma = math.sqrt(float(s @ e**2) / total)
        return start + solve(self.matrix.at(s), alpha * sigma, p, rows.adjoint(s * e))[0]

    def prepare(self) -> float:
        """Find the step; returns what it may gain, plus what a smaller scale would."""
        rows, y, s, total, epsilon, alpha, floor = self.problem
        p, sigma = rows.shape[1], self.sigma
        slack: Any = 0.0
        corner = sigma <= max(floor, 1e-9 * self.value / total)
        if corner:  # residuals of rounding size are 0
            sizes = rows.X.row_squares() ** 0.5 * float(np.linalg.norm(self.w))
            slack = 16.0 * _EPS * (abs(y) + sizes)
        near = abs(self.r) <= epsilon * sigma + slack
        inner = s * indicator(near)
        outer = (s - inner) * where(self.r > 0, 1.0, -1.0)
        sides = array_namespace(inner).stack([inner * self.r, epsilon * outer], axis=1)
        q, o = rows.adjoint(sides).T
        o[:p] -= alpha * self.w
        C = total - epsilon**2 * float(abs(outer).sum())
        model = _Model(q, o, C, float(inner @ (self.r * self.r)))
        push = q + sigma * o  # minus sigma / 2 times the gradient
        self.low = floor
        if self.matrix is None:
            self.low = 0.3 * sigma  # without a matrix there is no way out of a corner: go slowly
            self.step = _conjugate_gradients(self.problem, near, self.r, sigma, push)
        else:
            K = self.matrix.at(inner)
            self.step, tau, solved = model.minimum(K, alpha, sigma, p)
            if solved and (tau <= 1e-3 * sigma or corner):
                if self._is_zero_best(near, outer, model):
                    self.finished = True
                    return total * floor
                self.trials += 1
                self.low = max(0.1 * sigma, floor)
                self.step, solved = solve(K, alpha * self.low, p, q + self.low * o)
            if not solved:  # the near rows do not determine the step: reweight all rows
                self.trials += 1
                K = rows.gram(_reweighted(self.problem, self.r, sigma))
                self.step, _ = solve(K, alpha * sigma, p, push)
            self.hard = self.trials > _TRIALS or corner
            if self.hard:
                return self.value
        self.fall = float(push @ self.step) / sigma  # half the slope along the step
        gain = abs(self.fall) + max(sigma * C - model.Q / sigma, 0.0)
        self.finished = gain <= 1e-16 * self.value
        return gain

    def _is_zero_best(self, near: Any, outer: Any, model: _Model) -> bool:
        """Whether sigma = 0 with these near rows fitted exactly is the solution; if so, go there.

        As tau goes to 0, d(tau) = a + tau e makes the near residuals 0, and r / tau on them the
        predictions of -e. Half the dual point is these, and eps times the signs of the far residuals.
        """
        rows, y, s, total, epsilon, alpha, floor = self.problem
        assert self.matrix is not None
        p, K = rows.shape[1], self.matrix.K
        ends, solved = solve(K, alpha * floor, p, np.column_stack([model.q, model.o]))
        far = epsilon * where(outer > 0, 1.0, -1.0)
        dual = where(s > 0, where(near, -rows.predict(ends[:, 1]), far), 0.0)
        square = float(s @ dual**2)
        inside = float(abs(dual).max()) <= epsilon * (1 + 1e-9) and square <= total * (1 + 1e-12)
        if not (solved and inside):
            return False
        d = self.d + ends @ np.array([1.0, floor])
        r = y - rows.predict(d)
        missed = rows.adjoint(s * dual)  # at a solution this is alpha w
        missed[:p] -= alpha * d[:p]
        allowed = 1e-9 * np.sqrt(np.maximum(np.diag(K), 0.0) * square)
        allowed[:p] += 1e-12 * alpha * np.abs(d[:p]).max(initial=0.0)
        value = objective(self.problem, r, floor, d[:p])
        gap = value - alpha * float(d[:p] @ d[:p]) - 2.0 * float((s * dual) @ r)
        if gap > 1e-9 * self.value + 16.0 * total * floor or (np.abs(missed) > allowed).any():
            return False
        self.d, self.r, self.value = d, r, value
        self.sigma, self.theta = floor, 2.0 * dual
        return True

    def advance(self) -> bool:
        """Take the step, shortened until the objective falls; False when no step lowers it."""
        problem, p = self.problem, len(self.w)
        d = self.d + self.step
        r = problem.y - problem.rows.predict(d)
        sigma = max(best_scale(problem, r, self.sigma), self.low)
        value = objective(problem, r, sigma, d[:p])
        if not value <= self.value - 1e-4 * self.fall:
            t, sigma = self._line_minimum(r)
            d, r = self.d + t * self.step, self.r + t * (r - self.r)
            value = objective(problem, r, sigma, d[:p])
        if not value < self.value:
            return False
        self.d, self.r, self.sigma, self.value = d, r, sigma, value
        return True

    def _line_minimum(self, end: Any) -> tuple[float, float]:
        """Where along the step the derivative, which is increasing, is 0: false position (Illinois)."""
        problem = self.problem
        move, v = end - self.r, self.step[: len(self.w)]
        low, high, f_low, f_high, side = 0.0, 1.0, -2.0 * self.fall, math.nan, 0
        t, sigma = 1.0, self.sigma
        for _ in range(60):
            r = self.r + t * move
            sigma = max(best_scale(problem, r, sigma), self.low)
            psi = problem.s * (clip(r, -problem.epsilon * sigma, problem.epsilon * sigma) / sigma)
            f = 2.0 * float(psi @ move) + 2.0 * problem.alpha * float((self.w + t * v) @ v)
            if abs(f) <= 0.01 * abs(self.fall) or high - low <= 1e-15 or (t == 1.0 and f < 0.0):
                break
            if f > 0.0:
                high, f_high, f_low = t, f, f_low * (0.5 if side == 1 else 1.0)
                side = 1
            else:
                low, f_low, f_high = t, f, f_high * (0.5 if side == -1 else 1.0)
                side = -1
            t = low - f_low * (high - low) / (f_high - f_low)
        return t, sigma


def _reweighted(problem: HuberProblem, r: Any, sigma: float) -> Any:
    """The weights of the least-squares problem that lies above the loss: s min(1, eps sigma / |r|)."""
    edge = problem.epsilon * sigma
    return problem.s * (edge / clip(abs(r), edge, None))


def _conjugate_gradients(
    problem: HuberProblem, near: Any, r: Any, sigma: float, rhs: Array
) -> Array:
    """The step where there are too many columns for a matrix; with a diagonal preconditioner."""
    rows, p = problem.rows, problem.rows.shape[1]
    weights = problem.s * indicator(near)
    if int(near.sum()) < 2 * p:  # the near rows alone would hardly determine the step
        weights = _reweighted(problem, r, sigma)
    ridge = problem.alpha * sigma * (np.arange(len(rhs)) < p)
    diagonal = rows.X.column_norms(weights, rows.center if rows.free else None) ** 2
    diagonal = np.append(diagonal, float(weights.sum())) if rows.free else diagonal
    diagonal = np.maximum(diagonal + ridge, 1e-12 * diagonal.max(initial=_TINY))
    x, residual = np.zeros_like(rhs), rhs
    v = residual / diagonal
    inner = start = float(residual @ v)
    for _ in range(200):
        if inner <= 1e-8 * start:
            break
        product = rows.adjoint(weights * rows.predict(v)) + ridge * v
        t = inner / max(float(v @ product), _TINY)
        x, residual = x + t * v, residual - t * product
        before, inner = inner, float(residual @ (residual / diagonal))
        v = residual / diagonal + inner / before * v
    return x
