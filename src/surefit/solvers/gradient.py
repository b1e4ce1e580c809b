r"""Gradient descent (OPT-2, OPT-3, OPT-4).

.. math:: x_{k+1} = x_k - t_k \nabla f(x_k)

The gradient points to steepest increase; the step minimises the model
:math:`f(x) + \nabla f(x)^\top (y - x) + \|y - x\|^2 / (2t)` over y.

Guarantee. For an L-smooth f and :math:`t \le 1/L`, each step decreases f by at least
:math:`\tfrac t2\|\nabla f\|^2`; convex, strongly convex and non-convex functions then obey
the rates of :mod:`surefit.solvers.rates` (OPT-14, OPT-15, OPT-16). With :class:`Backtracking` the
same inequality is tested instead of assumed, and L need not be known.

References
----------
A. Cauchy. Méthode générale pour la résolution des systèmes d'équations simultanées. 1847.
Y. Nesterov. Introductory Lectures on Convex Optimization, section 2.1.5. Springer, 2004.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> y_bar = 3.0  # L(w) = (w - mean)^2 / 2: the error is multiplied by 1 - step (OPT-3)
>>> f, grad = lambda w: float((w - y_bar) @ (w - y_bar) / 2), lambda w: w - y_bar
>>> [float(it.x[0]) for it in islice(gradient_descent(f, grad, [0.0], 0.5), 3)]
[1.5, 2.25, 2.625]
>>> float(next(gradient_descent(f, grad, [0.0], 1.0)).x[0])
3.0
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, Objective, norm, vector
from .linesearch import Backtracking, armijo
from .schedules import StepSize, as_schedule

__all__ = ["gradient_descent"]


def gradient_descent(
    f: Objective, grad: Gradient, x0: ArrayLike, step: StepSize | Backtracking
) -> Iterator[Iterate]:
    """Gradient descent with a constant step, a schedule, or a backtracking line search.

    Parameters
    ----------
    f, grad : callable
        The function and its gradient.
    x0 : array-like of shape (n,)
        Where to start.
    step : float, callable or Backtracking
        The step length, the step length as a function of t = 0, 1, 2, ..., or the line search.

    Yields
    ------
    Iterate
        ``estimate`` is the gradient norm at ``x``. With a line search the generator ends when no
        step along the gradient changes the point any more.
    """
    if isinstance(step, Backtracking):
        yield from _with_line_search(f, grad, x0, step)
        return
    eta = as_schedule(step)
    x = vector(x0)
    g = grad(x)
    for k in count():
        t = eta(k)
        x = x - t * g
        g = grad(x)
        yield Iterate(x, f(x), norm(g), t)


def _with_line_search(
    f: Objective, grad: Gradient, x0: ArrayLike, search: Backtracking
) -> Iterator[Iterate]:
    x = vector(x0)
    fx, g = f(x), grad(x)
    t = search.initial
    while True:
        trial = armijo(f, grad, x, fx, g, -g, t, c=0.5, shrink=search.shrink)
        if trial.step == 0.0 or np.array_equal(trial.x, x):
            return
        x, fx = trial.x, trial.value
        g = grad(x)
        yield Iterate(x, fx, norm(g), trial.step)
        t = trial.step * search.grow
