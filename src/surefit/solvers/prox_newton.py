r"""Proximal Newton on a working set, for a logistic regression with an l1 term.

    min_{w, b}  sum_i s_i l(x_i'w + b, y_i) + l1 ||w||_1 + l2/2 ||w||^2

One *look* at all of X gives the correlations -X'(s l'), the duality gap and the violations of

    |X_j'(s l') + l2 w_j| <= l1,    with equality in sign on the support.

The columns in use and the worst violators are gathered, and on them alone a few Newton steps are made: the
loss is replaced by its second-order model, a weighted elastic net, whose minimum the active-set method finds
exactly (or sweeps and conjugate gradients, where many coefficients are in use); the move is halved until the
objective falls enough. Near the solution that converges quadratically. Far from it the penalty is lowered
step by step, so that no column enters that a smaller model would not want.

References
----------
Lee, Sun & Saunders, "Proximal Newton-type methods" (2014); Yuan, Ho & Lin, "An improved GLMNET for
l1-regularized logistic regression" (2012); Massias, Vaiter, Gramfort & Salmon, "Dual extrapolation for sparse
GLMs" (2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import is_torch, to_numpy
from .._threads import one_thread
from ..design import Design, as_design
from ..iterate import Iterate
from ..losses import Loss
from .active_set import Face, descend
from .coordinate import working_set
from .elastic_net_data import ElasticNetData
from .glm import objective, step_length
from .sweeps import Sweeps

__all__ = ["prox_newton"]

Array = NDArray[np.float64]
_START = 100  # columns to start with
_LOWER = 0.3  # share of the largest correlation down to which the penalty goes at once
_NEWTON = 10  # most Newton steps on one working set,
_PART = 0.3  # which end when the violations on it are this share of the largest,
_ROUGH = 0.5  # or this, while the penalty is still being lowered,
_ALL = 1e-3  # or this, where the working set is all there is and a look shows nothing new
_SMALL = (
    1_000_000  # stored entries up to which the matrix library gains nothing from a second thread
)
_EXACT = 1e-14  # of the model at 0: the gap to which the active-set method goes
_ROUNDS = 10  # most rounds of sweeps and conjugate gradients for one Newton step
_SWEEPS_WORTH = 1000  # k^3 per stored entry up to which factorising is cheaper than sweeping


def prox_newton(
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
    """Yield ``Iterate(x=(w, b), value=objective, estimate=duality gap, cost=Newton steps)``.

    Parameters are those of :func:`surefit.solvers.glm_newton.glm_newton`, plus ``l1``. X may be anywhere:
    only the looks happen there, and vectors over samples travel.
    """
    rows = _Rows(X)
    y, s = to_numpy(y), to_numpy(s)
    problem = _Problem(y, s, loss, l2, fit_intercept)
    w, offset, z = w.copy(), float(b), rows.dot(w) + float(b)
    size, used = max(_START, 2 * int(np.count_nonzero(w))), 0
    level, stuck = l1 if len(w) <= _START else np.inf, False
    while True:
        theta = s * loss.grad(z, y)
        slack = -rows.tdot(theta) - l2 * w
        reach = np.abs(slack)
        largest = float(reach.max(initial=0.0))
        with one_thread:
            value, gap = problem.value_and_gap(w, z, theta, largest, l1)
        yield Iterate((w, np.asarray(offset)), value, gap, cost=min(used, 1))
        if stuck and level == l1:
            return
        # never up again, whatever the gap does; and at once where rounding ends the steps
        level = l1 if stuck else min(level, max(l1, _LOWER * largest))
        violation = problem.violation(w, slack, level)
        worst = max(float(violation.max(initial=0.0)), problem.imbalance(theta))
        if worst == 0.0:
            return
        index, size = working_set(w, violation, size)
        part = _ROUGH if level > l1 else _PART if len(index) < len(w) else _ALL
        columns = _Columns(rows.columns(index), problem)
        steps, used = columns.newton(w[index], offset, z, level, part * worst), 0
        while True:
            with one_thread if columns.entries <= _SMALL else nullcontext():
                step = next(steps, None)
            if step is None:
                break
            if used:  # the last one is yielded with what the look shows of it
                known = value if level == l1 else np.nan  # not the objective of a larger penalty
                yield Iterate((w, np.asarray(offset)), known, np.inf)
            used += 1
            v, offset, z, value = step
            w = w.copy()
            w[index] = v
        stuck = used == 0


class _Rows:
    """X wherever it is, vectors at home; gathered columns stay sparse."""

    def __init__(self, X: Any) -> None:
        if sp.issparse(X):
            X = sp.csc_array(X, dtype=np.float64)
        elif not is_torch(X) and not isinstance(X, Design):
            X = np.asarray(X, dtype=np.float64)
        self.X = as_design(X) if is_torch(X) else X
        self.across: Any = None if isinstance(self.X, Design) else self.X.T

    def dot(self, w: Array) -> Array:
        return to_numpy(self.X.dot(w)) if isinstance(self.X, Design) else self.X @ w

    def tdot(self, r: Array) -> Array:
        return self.X.tdot(self.X.vector(r)) if isinstance(self.X, Design) else self.across @ r

    def columns(self, index: NDArray[np.int64]) -> Any:
        if isinstance(self.X, Design):
            return self.X.columns(index)
        return self.X if len(index) == self.X.shape[1] else self.X[:, index]


@dataclass
class _Problem:
    """What does not change: targets, weights, loss, ridge, and whether the intercept is free."""

    y: Array
    s: Array
    loss: Loss
    l2: float
    free: bool

    def value_and_gap(
        self, w: Array, z: Array, theta: Array, largest: float, l1: float
    ) -> tuple[float, float]:
        """The objective, and its distance to the dual value of theta scaled until |X'theta| <= l1 holds."""
        value = objective(self.loss, z, self.y, self.s, w, l1, self.l2)
        t = 1.0 if largest <= l1 else l1 / largest
        conjugate = float(self.s @ self.loss.conjugate(t * _ratio(theta, self.s), self.y))
        return value, value + conjugate + 0.5 * t * t * self.l2 * float(w @ w)

    def violation(self, w: Array, slack: Array, level: float) -> Array:
        """Distance of 0 to the subdifferential, coordinate by coordinate; ``slack`` is minus the gradient."""
        at_zero = np.maximum(np.abs(slack) - level, 0.0)
        return np.where(w != 0.0, np.abs(slack - level * np.sign(w)), at_zero)

    def imbalance(self, theta: Array) -> float:
        """The slope in the intercept."""
        return abs(float(theta.sum())) if self.free else 0.0


class _Columns:
    """The problem on gathered columns Z."""

    def __init__(self, Z: Any, problem: _Problem) -> None:
        self.Z, self.across, self.problem = Z, Z.T, problem
        self.entries = Z.nnz if sp.issparse(Z) else Z.size

    def newton(
        self, v: Array, b: float, z: Array, l1: float, target: float
    ) -> Iterator[tuple[Array, float, Array, float]]:
        """Newton steps until the violations are at most ``target``: v, b, z and the objective after each."""
        problem = self.problem
        y, s, loss, l2 = problem.y, problem.s, problem.loss, problem.l2
        value = objective(loss, z, y, s, v, l1, l2)
        for _ in range(_NEWTON):
            theta = s * loss.grad(z, y)
            apart = self._apart(v, theta, l1)
            if apart <= target:
                return
            weights = s * _positive(loss.hess(z, y))
            new, new_b = self._minimum(v, z - _ratio(theta, weights), weights, l1, _PART * apart)
            move = self.Z @ (new - v) + (new_b - b)
            sizes = [l1 * float(np.abs(x).sum()) + 0.5 * l2 * float(x @ x) for x in (v, new)]
            fall = sizes[0] - sizes[1] - float(theta @ move) - 0.5 * float(weights @ move**2)
            t = 0.0
            if fall > 1e-15 * abs(value):
                t = step_length(loss, y, s, z, move, v, new - v, l1, l2, value, fall)
            if t == 0.0 and self._apart(new, s * loss.grad(z + move, y), l1) < 0.5 * apart:
                t = 1.0  # the gain drowns in the rounding of the objective, not in that of its slope
            if t == 0.0:
                return
            v = new if t == 1.0 else v + t * (new - v)
            b, z = b + t * (new_b - b), z + t * move
            value = objective(loss, z, y, s, v, l1, l2)
            yield v, b, z, value

    def _minimum(
        self, v: Array, target: Array, weights: Array, l1: float, enough: float
    ) -> tuple[Array, float]:
        """Of the second-order model, a weighted elastic net; up to violations of ``enough``."""
        problem, new = self.problem, v.copy()
        data = ElasticNetData.prepare(self.Z, target, weights, fit_intercept=problem.free)
        if int(np.count_nonzero(v)) ** 3 <= _SWEEPS_WORTH * self.entries:
            q = data.correlations(data.weighted_residual(new))
            null = 0.5 * float(weights @ (target - data.y_mean) ** 2)
            descend(
                data.gram, new, q, l1, problem.l2, Face(),
                positive=False, target=_EXACT * null, null=null, budget=1000,
            )  # fmt: skip
        else:
            sweeps, everything = Sweeps(data), np.arange(len(v))
            for _ in range(_ROUNDS):
                sweeps.advance(new, everything, l1, problem.l2, positive=False, budget=10)
                slack = data.correlations(data.weighted_residual(new)) - problem.l2 * new
                if float(problem.violation(new, slack, l1).max()) <= enough:
                    break
        return new, data.y_mean - float(data.mean @ new) if problem.free else 0.0

    def _apart(self, v: Array, theta: Array, l1: float) -> float:
        """Distance of 0 to the subdifferential, in the largest of its coordinates."""
        slack = -(self.across @ theta) - self.problem.l2 * v
        worst = float(self.problem.violation(v, slack, l1).max(initial=0.0))
        return max(worst, self.problem.imbalance(theta))


def _positive(curvature: Array) -> Array:
    """A model needs some curvature in every row."""
    return np.maximum(curvature, 1e-10 * float(curvature.max()) + 1e-300)


def _ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 for a row without weight."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
