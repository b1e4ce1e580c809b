r"""The quadratic penalty method (OPT-13): a constraint as a cost.

:math:`\min_{x \in C} f(x)` equals :math:`\min_x f(x) + P(x)` with P the indicator of C, or,
approximately, with P a weighted violation. Here

.. math:: \min_x\; f(x) + \rho\, V(x), \qquad V(x) = \tfrac12\|x - P_C(x)\|^2,

is solved for :math:`\rho = \rho_0, 10\rho_0, 100\rho_0, \dots`, each from the last solution.

Guarantee. For exact inner solutions every limit point solves the constrained problem, and f of the
iterates rises to the constrained minimum from below; the violation falls as :math:`O(1/\rho)`.

The inner problems are solved by FISTA. Taken as one smooth function their condition number would grow
with :math:`\rho`; but the violation has a proximal operator in closed form,
:math:`\mathrm{prox}_{t\rho V}(v) = (v + t\rho\,P_C(v))/(1 + t\rho)`, with which it does not.

References
----------
R. Courant. Variational methods for the solution of problems of equilibrium. Bulletin of the AMS 49,
1943. J. Nocedal, S. Wright. Numerical Optimization, section 17.1. Springer, 2006.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> f, grad = lambda x: float((x - 2) @ (x - 2) / 2), lambda x: x - 2  # over x <= 1
>>> steps = list(islice(quadratic_penalty(f, grad, [0.0], lambda x: np.minimum(x, 1.0)), 8))
>>> [round(float(it.x[0]), 6) for it in steps[:3]]  # (2 + rho) / (1 + rho)
[1.5, 1.090909, 1.009901]
>>> bool(abs(steps[-1].x[0] - 1) < 2e-7)
True
"""

from __future__ import annotations

from collections.abc import Iterator

from numpy.typing import ArrayLike

from ..iterate import Iterate, run
from ._typing import Gradient, Objective, Projection, Prox, Vector, norm, vector
from .fista import fista
from .optimality import prox_residual

__all__ = ["quadratic_penalty", "squared_distance"]


def squared_distance(project: Projection) -> tuple[Objective, Gradient]:
    """The violation and its gradient: half the squared distance to a convex set, x − P(x)."""

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
    project: Projection,
    *,
    weight: float = 1.0,
    growth: float = 10.0,
    max_weight: float = 1e12,
    inner_tol: float = 1e-10,
    inner_iter: int = 10_000,
) -> Iterator[Iterate]:
    """Minimise f + weight x violation for weights that grow by ``growth``.

    Parameters
    ----------
    f, grad : callable
        The function and its gradient.
    x0 : array-like of shape (n,)
        Where to start; it need not be feasible.
    project : callable
        The projection onto a convex set.
    weight, growth, max_weight : float
        The first weight, the factor between weights, and the last weight tried.
    inner_tol, inner_iter : float, int
        The fixed-point residual (relative to max(1, the gradient norm of f)) at which an inner solution is
        good enough, and the most steps it may take.

    Yields
    ------
    Iterate
        One a weight: ``value`` is f without the penalty, ``estimate`` the distance to the set, ``step`` is
        1 / weight.
    """
    if not (weight > 0 and growth > 1 and max_weight >= weight):
        raise ValueError(
            "the penalty method needs weight > 0, growth > 1 and max_weight >= weight, got "
            f"weight={weight!r}, growth={growth!r}, max_weight={max_weight!r}; "
            "the defaults are 1, 10 and 1e12."
        )
    x = vector(x0)
    while weight <= max_weight:
        violation, prox = _weighted(project, weight)
        fit = run(
            fista(f, grad, x, prox, violation),
            certify=lambda v, prox=prox: prox_residual(grad, prox, v),  # type: ignore[misc]
            tol=inner_tol * max(1.0, norm(grad(x))),
            max_iter=inner_iter,
        )
        x = x if fit.x is None else fit.x
        yield Iterate(x, f(x), norm(x - project(x)), 1.0 / weight)
        weight *= growth


def _weighted(project: Projection, weight: float) -> tuple[Objective, Prox]:
    """weight x violation, and its proximal operator."""
    violation, _ = squared_distance(project)

    def value(x: Vector) -> float:
        return weight * violation(x)

    def prox(v: Vector, t: float) -> Vector:
        return (v + t * weight * project(v)) / (1.0 + t * weight)

    return value, prox
