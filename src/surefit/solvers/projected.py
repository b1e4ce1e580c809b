r"""Projected gradient descent, full and stochastic (OPT-12).

.. math:: x \leftarrow P_C\bigl(x - t\,\nabla f(x)\bigr), \qquad P_C(w) = \arg\min_{v \in C}\|v - w\|

for a convex set C given by its projection. Every iterate is feasible, and x solves the first-order
condition of :math:`\min_C f` exactly when it is a fixed point, :math:`x = P_C(x - t\nabla f(x))`.

Guarantee. For convex, L-smooth f and :math:`t \le 1/L`:
:math:`f(x_k) - f^\star \le \|x_0 - x^\star\|^2 / (2tk)`, as without constraints. The estimate is the
fixed-point residual :math:`\|x - P_C(x - t\nabla f(x))\| / t`, which is the gradient norm where the
constraint is not active.

References
----------
A. Goldstein. Convex programming in Hilbert space. Bulletin of the AMS 70, 1964.
A. Beck. First-Order Methods in Optimization, chapter 10. SIAM, 2017.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> def ball(w):  # projection onto the unit ball
...     return w / max(1.0, np.linalg.norm(w))
>>> f, grad = lambda x: float((x - 3) @ (x - 3) / 2), lambda x: x - 3
>>> *_, last = islice(projected_gradient(f, grad, [0.0, 0.0], ball, 0.5), 60)
>>> last.x.round(6), last.estimate < 1e-12
(array([0.707107, 0.707107]), True)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, Objective, Projection, Vector, norm, vector
from .linesearch import Backtracking, majorised
from .schedules import StepSize, as_schedule

__all__ = ["projected_gradient", "projected_sgd"]


def projected_gradient(
    f: Objective,
    grad: Gradient,
    x0: ArrayLike,
    project: Projection,
    step: StepSize | Backtracking,
) -> Iterator[Iterate]:
    """Gradient steps, each followed by a projection.

    Parameters
    ----------
    f, grad : callable
        The function and its gradient.
    x0 : array-like of shape (n,)
        Where to start; it is projected first.
    project : callable
        The projection onto a convex set.
    step : float, callable or Backtracking
        A number, a schedule, or a line search.

    Yields
    ------
    Iterate
        ``estimate`` is the fixed-point residual at ``x`` divided by the step.
    """
    if isinstance(step, Backtracking):
        yield from _with_line_search(f, grad, x0, project, step)
        return
    eta = as_schedule(step)
    x = project(vector(x0))
    g = grad(x)
    for k in count():
        t = eta(k)
        x = project(x - t * g)
        g = grad(x)
        residual = norm(x - project(x - t * g)) / t if t > 0 else np.inf
        yield Iterate(x, f(x), residual, t)


def _with_line_search(
    f: Objective, grad: Gradient, x0: ArrayLike, project: Projection, search: Backtracking
) -> Iterator[Iterate]:
    def prox(v: Vector, _: float) -> Vector:
        return project(v)

    x = project(vector(x0))
    fx, g = f(x), grad(x)
    t = search.initial
    while True:
        trial = majorised(f, grad, x, fx, g, prox, t, shrink=search.shrink)
        if trial.step == 0.0 or np.array_equal(trial.x, x):
            return
        x, fx = trial.x, trial.value
        g = grad(x)
        residual = norm(x - project(x - trial.step * g)) / trial.step
        yield Iterate(x, fx, residual, trial.step)
        t = trial.step * search.grow


def projected_sgd(
    grad: Gradient, x0: ArrayLike, project: Projection, step: StepSize
) -> Iterator[Iterate]:
    """Projected descent along a gradient estimate.

    Parameters
    ----------
    grad : callable
        A gradient estimate, such as :func:`~surefit.solvers.stochastic.minibatch` makes.
    x0, project, step
        As in :func:`projected_gradient`.

    Yields
    ------
    Iterate
        Feasible; without value or estimate.
    """
    eta = as_schedule(step)
    x = project(vector(x0))
    for t in count():
        x = project(x - eta(t) * grad(x))
        yield Iterate(x, step=eta(t))
