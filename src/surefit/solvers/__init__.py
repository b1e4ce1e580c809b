"""Solvers, one algorithm a file: each a generator that reads as the textbook's pseudocode.

``minimize`` is the front door for a function of one's own. A solver can also be driven directly, by
:func:`surefit.iterate.run` or by a plain ``for`` loop.

Examples
--------
>>> from itertools import islice
>>> from surefit.solvers import gradient_descent
>>> f, grad = lambda x: float(x @ x), lambda x: 2 * x
>>> [float(it.x[0]) for it in islice(gradient_descent(f, grad, [8.0], 0.25), 3)]
[4.0, 2.0, 1.0]
"""

from .adam import adam
from .assumptions import (
    gradient_claim,
    hessian_claim,
    lipschitz_claim,
    numerical_gradient,
    smoothness_claim,
    strong_convexity_claim,
    subgradient_claim,
)
from .fista import fista
from .gradient import gradient_descent
from .grid import cell_radius, grid_claim, grid_search, grid_size
from .linesearch import Backtracking
from .minimize import MinimizeResult, minimize
from .momentum import momentum
from .newton import newton
from .optimality import (
    composite_gap,
    gap_claim,
    local_minimum_claim,
    prox_residual,
    stationary_claim,
)
from .penalty import quadratic_penalty, squared_distance
from .projected import projected_gradient, projected_sgd
from .rates import (
    accelerated_rate,
    complexity,
    complexity_table,
    contraction,
    convex_rate,
    nonconvex_rate,
    rate_bounds,
    rate_claim,
    strongly_convex_rate,
    subgradient_rate,
)
from .schedules import Constant, InverseSqrt, InverseTime, Schedule, StepDecay, WarmupCosine
from .sign import sign_descent
from .stochastic import minibatch, sgd
from .subgradient import stochastic_subgradient, subgradient_descent

__all__ = [
    "Backtracking",
    "Constant",
    "InverseSqrt",
    "InverseTime",
    "MinimizeResult",
    "Schedule",
    "StepDecay",
    "WarmupCosine",
    "accelerated_rate",
    "adam",
    "cell_radius",
    "complexity",
    "complexity_table",
    "composite_gap",
    "contraction",
    "convex_rate",
    "fista",
    "gap_claim",
    "gradient_claim",
    "gradient_descent",
    "grid_claim",
    "grid_search",
    "grid_size",
    "hessian_claim",
    "lipschitz_claim",
    "local_minimum_claim",
    "minibatch",
    "minimize",
    "momentum",
    "newton",
    "nonconvex_rate",
    "numerical_gradient",
    "projected_gradient",
    "projected_sgd",
    "prox_residual",
    "quadratic_penalty",
    "rate_bounds",
    "rate_claim",
    "sgd",
    "sign_descent",
    "smoothness_claim",
    "squared_distance",
    "stationary_claim",
    "stochastic_subgradient",
    "strong_convexity_claim",
    "strongly_convex_rate",
    "subgradient_claim",
    "subgradient_descent",
    "subgradient_rate",
]
