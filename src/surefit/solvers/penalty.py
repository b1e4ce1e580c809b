r"""The quadratic penalty method (OPT-13): constraints as costs.

:math:`\min_{x \in C} f(x)` equals :math:`\min_x f(x) + P(x)` with P the indicator of C, or,
approximately, with P a weighted violation. Here

.. math:: \min_x\; f(x) + \rho\, V(x), \qquad V \ge 0, \quad V(x) = 0 \iff x \in C,

is solved for :math:`\rho = \rho_0, 10\rho_0, 100\rho_0, \dots`, each from the last solution.
:func:`squared_distance` gives :math:`V(x) = \tfrac12\|x - P_C(x)\|^2`, whose gradient is :math:`x - P_C(x)`.

Guarantee. For exact inner solutions every limit point solves the constrained problem, and f of the
iterates rises to the constrained minimum from below; the violation falls as :math:`O(1/\rho)`. Each inner
problem is solved by FISTA; its condition number grows with :math:`\rho`, which is the price of the method.

References
----------
R. Courant. Variational methods for the solution of problems of equilibrium. Bulletin of the AMS 49,
1943. J. Nocedal, S. Wright. Numerical Optimization, section 17.1. Springer, 2006.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> f, grad = lambda x: float((x - 2) @ (x - 2) / 2), lambda x: x - 2  # over x <= 1
>>> V, V_grad = squared_distance(lambda x: np.minimum(x, 1.0))
>>> steps = list(islice(quadratic_penalty(f, grad, [0.0], V, V_grad), 8))
>>> [round(float(it.x[0]), 6) for it in steps[:3]]  # (2 + rho) / (1 + rho)
[1.5, 1.090909, 1.009901]
>>> abs(steps[-1].x[0] - 1) < 2e-7
np.True_
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from numpy.typing import ArrayLike

from ..iterate import Iterate, run
from ._typing import Gradient, Objective, Projection, Vector, norm, vector
from .fista import fista
from .linesearch import Backtracking

__all__ = ["quadratic_penalty", "squared_distance"]


def squared_distance(project: Projection) -> tuple[Objective, Gradient]:
    """Half the squared distance to a convex set and its gradient, from the projection."""

    def violation(x: Vector) -> float:
        d = x - project(x)
        return 0.5 * float(d @ d)

    def gradient(x: Vector) -> Vector:
        return x - project(x)

    return violation, gradient


def quadratic_penalty(
    f: Objective,
    grad: Gradient,
    x0: ArrayLike,
    violation: Objective,
    violation_grad: Gradient,
    *,
    weight: float = 1.0,
    growth: float = 10.0,
    max_weight: float = 1e10,
    inner_tol: float = 1e-9,
    inner_iter: int = 20_000,
) -> Iterator[Iterate]:
    """Minimise f + weight x violation for weights that grow by ``growth``.

    Parameters
    ----------
    f, grad : callable
        The function and its gradient.
    x0 : array-like of shape (n,)
        Where to start; it need not be feasible.
    violation, violation_grad : callable
        V and its gradient, for instance from :func:`squared_distance`.
    weight, growth, max_weight : float
        The first weight, the factor between weights, and the last weight tried.
    inner_tol, inner_iter : float, int
        Gradient norm (relative to max(1, the gradient norm of f)) at which an inner solution is good
        enough, and the most steps it may take.

    Yields
    ------
    Iterate
        One a weight: ``value`` is f without the penalty, ``estimate`` is the square root of twice the
        violation (the distance to C), ``step`` is 1 / weight.
    """
    if not (weight > 0 and growth > 1 and max_weight >= weight):
        raise ValueError(
            "the penalty method needs weight > 0, growth > 1 and max_weight >= weight, got "
            f"weight={weight!r}, growth={growth!r}, max_weight={max_weight!r}; the defaults are 1, 10, 1e10."
        )
    x = vector(x0)
    t = 1.0
    while weight <= max_weight:
        rho = weight

        def cost(v: Vector, rho: float = rho) -> float:
            return f(v) + rho * violation(v)

        def slope(v: Vector, rho: float = rho) -> Vector:
            return grad(v) + rho * violation_grad(v)

        fit = run(
            fista(cost, slope, x, step=Backtracking(initial=t)),
            certify=lambda v, slope=slope: norm(slope(v)),  # type: ignore[misc]
            tol=inner_tol * max(1.0, norm(grad(x))),
            max_iter=inner_iter,
        )
        if fit.x is not None:
            x = fit.x
            t = fit.trace.steps[-1]
        yield Iterate(x, f(x), math.sqrt(2.0 * violation(x)), 1.0 / rho)
        weight *= growth
