r"""Huber's regression with its scale estimated jointly.

    min_{w, b, sigma}  sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,     r = y - Xw - b,

H(u) = u^2 up to |u| = eps and 2 eps |u| - eps^2 beyond. Newton's method on the active set
(:mod:`surefit.solvers.huber_newton`) needs a handful of steps; where it has no curvature to go by, an
interior-point method (:mod:`surefit.solvers.huber_interior`) takes over.

With many rows, the start and the matrix of the near rows come from a sample of a tenth of them. An
iteration is then one reading of X, and an error shrinks to about 2 sqrt(p / sample) of itself; the full
matrix is formed only if that is too slow or many digits are wanted. With fewer rows than columns, or nearly
dependent columns, the problem is turned first (:mod:`surefit.solvers.huber_rotation`).

References
----------
Huber & Ronchetti, Robust Statistics (2009), sections 7.7 and 7.8; Madsen & Nielsen, "A finite smoothing
algorithm for linear l1 estimation", SIAM J. Optimization 3 (1993).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, to_numpy
from ..design import Design, as_design
from ..iterate import Iterate
from ._centred import CentredRows
from .huber_interior import huber_interior
from .huber_newton import DIRECT, HuberState
from .huber_problem import HuberPoint, HuberProblem, best_scale, objective, solve
from .huber_rotation import Turned, are_nearly_dependent, independent_columns, row_space

__all__ = ["HuberPoint", "huber"]

Array = NDArray[np.float64]
_SAMPLED = 6  # most iterations with the matrix of a sample
_SAMPLE_BYTES = 1 << 26  # of the sample


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
    already_turned: bool = False,
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
    already_turned : bool
        X is the table of :mod:`surefit.solvers.huber_rotation`.
    """
    n, p = X.shape
    turned = row_space(X, alpha, DIRECT) if n < p else None
    if turned is not None:
        yield from _in_turn(turned, X, y, s, epsilon, alpha, start, fit_intercept, floor)
        return
    rows = CentredRows(X, np.zeros(p), fit_intercept)
    problem = HuberProblem(rows, y, s, float(s.sum()), epsilon, alpha, floor)
    state = None
    if start is None and p <= DIRECT:
        state = yield from _with_a_sample(problem)
    if state is None:
        if fit_intercept:
            problem = problem._replace(rows=CentredRows(X, X.mean(s), True))
        state = HuberState(problem, start)
        if (
            not already_turned
            and state.matrix is not None
            and are_nearly_dependent(state.matrix.at(s))
        ):
            turned = independent_columns(X, s, alpha, free=fit_intercept)
            if turned is not None:
                yield from _in_turn(turned, X, y, s, epsilon, alpha, start, fit_intercept, floor)
                return
    cost = 1 if start is None else 0
    while True:
        estimate = state.prepare()
        yield Iterate(state.point(), state.value, estimate, cost=cost)
        if state.finished:
            return
        if state.hard or not state.advance():
            break
        cost = 1
    if p <= DIRECT and estimate > 1e-14 * state.value:
        yield from _from_inside(state)


def _in_turn(
    turned: Turned,
    X: Design,
    y: Any,
    s: Any,
    epsilon: float,
    alpha: float,
    start: HuberPoint | None,
    fit_intercept: bool,
    floor: float,
) -> Iterator[Iterate]:
    """The problem in other coordinates, its iterates in the original ones."""
    if start is not None:
        u, b = turned.forth(to_numpy(X.dot(start.w)), start.b, start.w)
        start = start._replace(w=u, b=b)
    steps = huber(
        as_design(X.vector(turned.table)), y, s, epsilon, alpha, start,
        fit_intercept=fit_intercept, floor=floor, already_turned=True,
    )  # fmt: skip
    for it in steps:
        w = turned.back(it.x.w)
        yield it._replace(x=it.x._replace(w=w, b=turned.intercept(it.x.b, w)))


def _from_inside(state: HuberState) -> Iterator[Iterate]:
    """The interior-point method, and a last step of Newton's if the scale is not 0."""
    problem, p = state.problem, len(state.w)
    point: HuberPoint | None = None
    rows, y, s, total, epsilon, alpha, floor = problem
    for it in huber_interior(rows, y, s, epsilon, alpha, state.d):
        d, sigma, theta = it.x
        point = HuberPoint(d[:p], rows.intercept(d), max(sigma, floor), theta)
        yield Iterate(point, math.nan, it.estimate)
    if point is None:
        return
    state = HuberState(problem, point)
    if point.scale > 1e-6 * state.value / total:
        estimate = state.prepare()
        if not (state.hard or state.finished) and state.advance():
            yield Iterate(state.point(), state.value, estimate)


# ------------------------------------------------------------------------ many rows


def _with_a_sample(problem: HuberProblem) -> Generator[Iterate, None, HuberState | None]:
    """Start and matrix from a sample of the rows, then steps that read X once each.

    Returns the state of Newton's method once the sample's matrix is not good enough any more; None where
    there are too few rows for a sample.
    """
    X, free = problem.rows.X, problem.rows.free
    n, p = X.shape
    count = min(max(4096, 20 * p, n // 10), max(20 * p, _SAMPLE_BYTES // (8 * p)))
    if n < 4 * count:
        return None
    index, part = _sample(X, count)
    y, s = problem.y[index], problem.s[index]
    mass = float(s.sum())
    if mass <= 0.0:
        return None
    share, center = mass / problem.total, part.mean(s) if free else np.zeros(p)
    rows = CentredRows(X, center, free)
    problem = problem._replace(rows=rows)
    state = HuberState(
        problem._replace(
            rows=CentredRows(part, center, free), y=y, s=s, total=mass, alpha=share * problem.alpha
        ),
        None,
    )
    for _ in range(3):
        gain = state.prepare()
        if state.hard or gain <= 1e-4 * state.value or not state.advance():
            break
    assert state.matrix is not None
    K, point = state.matrix.K / share, state.point()
    previous, before = math.inf, math.inf
    for _ in range(_SAMPLED):
        r, push = _one_reading(problem, point)
        sigma = best_scale(problem, r, point.scale)
        value = objective(problem, r, sigma, point.w)
        step, solved = solve(K, problem.alpha * point.scale, p, push)
        if sigma <= problem.floor or not value < before or not solved:
            break
        gain = float(push @ step) / point.scale
        shrinks = gain / previous if math.isfinite(previous) else 1.0
        point = HuberPoint(point.w + step[:p], point.b + rows.intercept(step), sigma)
        yield Iterate(point, value, gain * min(1.0, shrinks))
        if gain > 0.25 * previous:
            break
        previous, before = gain, value
    return HuberState(problem, point._replace(theta=None))


def _one_reading(problem: HuberProblem, point: HuberPoint) -> tuple[Any, Array]:
    """The residuals, and minus sigma / 2 times the gradient in d."""
    rows, parts = problem.rows, []
    edge = problem.epsilon * point.scale

    def clipped(index: slice, z: Any) -> Any:
        r = problem.y[index] - z - point.b
        parts.append(r)
        return problem.s[index] * clip(r, -edge, edge)

    push = rows.X.respond(point.w, clipped)
    r = rows.X.vector(array_namespace(parts[0]).concat(parts))
    if rows.free:
        mass = float(problem.s @ clip(r, -edge, edge))
        push = np.append(push - mass * rows.center, mass)
    push[: len(point.w)] -= problem.alpha * point.scale * point.w
    return r, push


def _sample(X: Design, count: int) -> tuple[slice, Design]:
    """``count`` rows or some more, spread evenly; the first ones where rows cannot be picked (on disk)."""
    if hasattr(X, "X") or X.group.size > 1:
        step = X.shape[0] // count
        return slice(None, None, step), X.sample(step)
    blocks, last = [], 0
    for rows, block in X.blocks():
        blocks.append(block + 0.0)  # a block is gone once the next is asked for
        last = rows.stop
        if last >= count:
            break
    return slice(last), as_design(np.concatenate(blocks))
