"""From ``method="..."`` to a generator of iterates: the table behind :func:`surefit.solvers.minimize`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..iterate import Iterate
from ._problem import Problem
from ._typing import Gradient, Objective, Projection, Prox, RandomState, Vector
from .adam import adam
from .fista import fista
from .gradient import gradient_descent
from .grid import grid_search, grid_size
from .linesearch import Backtracking
from .momentum import momentum
from .newton import newton
from .penalty import quadratic_penalty
from .projected import projected_gradient, projected_sgd
from .schedules import StepSize
from .sign import sign_descent
from .stochastic import minibatch, sgd
from .subgradient import stochastic_subgradient, subgradient_descent

__all__ = ["METHODS", "Method", "Setup", "find_method", "resolve_step", "watch"]


@dataclass(frozen=True)
class Setup:
    """Everything a method may need."""

    problem: Problem
    x0: Vector
    step: Any  # a number, a schedule or a Backtracking: resolve_step decides
    project: Projection | None = None
    prox: Prox | None = None
    penalty: Objective | None = None
    bounds: tuple[Any, Any] | None = None
    stochastic: bool = False
    n_samples: int = 0
    batch_size: int = 1
    lipschitz: float | None = None
    random_state: RandomState = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def gradient(self) -> Gradient:
        """The whole gradient, or a new mini-batch at every call."""
        if not self.stochastic:
            return self.problem.gradient
        return minibatch(
            self.problem.batch_gradient, self.n_samples, self.batch_size, self.random_state
        )


@dataclass(frozen=True)
class Method:
    """How to start a method, and what it takes.

    ``family`` says what its end point can be judged by: a gradient ("smooth"), a fixed point ("composite"),
    a theorem ("nonsmooth") or a Lipschitz constant ("grid"). ``default`` is the step when none is given: a
    step, "1/L" (needs the smoothness), "search" (1/L where the smoothness is known, else a line search) or
    None (must be given).
    """

    start: Callable[[Setup], Iterator[Iterate]]
    family: Literal["smooth", "composite", "nonsmooth", "grid"]
    default: float | str | None
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    stochastic: bool = False  # whether it takes grad_at
    watched: bool = False  # whether value and estimate have to be added to its iterates


def _gd(s: Setup) -> Iterator[Iterate]:
    return gradient_descent(s.problem.value, s.problem.gradient, s.x0, s.step)


def _sgd(s: Setup) -> Iterator[Iterate]:
    return sgd(
        s.problem.batch_gradient,
        s.x0,
        s.step,
        n_samples=s.n_samples,
        batch_size=s.batch_size,
        random_state=s.random_state,
    )


def _momentum(s: Setup) -> Iterator[Iterate]:
    return momentum(s.gradient, s.x0, s.step, **s.options)


def _adam(s: Setup) -> Iterator[Iterate]:
    return adam(s.gradient, s.x0, s.step, **s.options)


def _sign(s: Setup) -> Iterator[Iterate]:
    return sign_descent(s.gradient, s.x0, s.step)


def _newton(s: Setup) -> Iterator[Iterate]:
    return newton(s.problem.value, s.problem.gradient, s.problem.hessian, s.x0, s.step, **s.options)


def _subgradient(s: Setup) -> Iterator[Iterate]:
    if s.stochastic:
        return stochastic_subgradient(s.gradient, s.x0, s.step, lipschitz=s.lipschitz, **s.options)
    return subgradient_descent(
        s.problem.value, s.gradient, s.x0, s.step, lipschitz=s.lipschitz, **s.options
    )


def _projected(s: Setup) -> Iterator[Iterate]:
    assert s.project is not None
    if s.stochastic:
        return projected_sgd(s.gradient, s.x0, s.project, s.step)
    return projected_gradient(s.problem.value, s.problem.gradient, s.x0, s.project, s.step)


def _penalty(s: Setup) -> Iterator[Iterate]:
    assert s.project is not None
    return quadratic_penalty(s.problem.value, s.problem.gradient, s.x0, s.project, **s.options)


def _fista(s: Setup) -> Iterator[Iterate]:
    return fista(s.problem.value, s.problem.gradient, s.x0, s.prox, s.penalty, s.step, **s.options)


def _grid(s: Setup) -> Iterator[Iterate]:
    assert s.bounds is not None
    lower, upper = s.bounds
    grid_size(lower, upper, **s.options)  # complain about the box now, not at the first step
    if np.size(lower) != s.x0.size:
        raise ValueError(
            f"bounds must have one entry a coordinate of x0 ({s.x0.size}), got {np.size(lower)}."
        )
    return grid_search(s.problem.value, lower, upper, **s.options)


METHODS: dict[str, Method] = {
    "gd": Method(_gd, "smooth", "search"),
    "sgd": Method(_sgd, "smooth", None, ("grad_at",), stochastic=True, watched=True),
    "momentum": Method(
        _momentum, "smooth", "1/L", options=("beta",), stochastic=True, watched=True
    ),
    "adam": Method(
        _adam,
        "smooth",
        1e-3,
        options=("beta1", "beta2", "eps", "bias_correction"),
        stochastic=True,
        watched=True,
    ),
    "sign": Method(_sign, "smooth", None, stochastic=True, watched=True),
    "newton": Method(_newton, "smooth", 1.0, ("hess",), options=("armijo_c",)),
    "subgradient": Method(_subgradient, "nonsmooth", None, options=("radius",), stochastic=True),
    "projected": Method(_projected, "composite", "search", ("project",), stochastic=True),
    "penalty": Method(
        _penalty,
        "composite",
        1.0,
        ("project",),
        options=("weight", "growth", "max_weight", "inner_tol", "inner_iter"),
        watched=True,
    ),
    "fista": Method(
        _fista, "composite", "search", takes=("prox", "penalty", "project"), options=("restart",)
    ),
    "grid": Method(_grid, "grid", 1.0, ("bounds",), options=("points",)),
}


def find_method(name: str, options: dict[str, Any]) -> Method:
    """Look a method up; unknown names and options are answered with the known ones."""
    if name not in METHODS:
        known = ", ".join(repr(known) for known in METHODS)
        raise ValueError(f"method must be one of {known}, got {name!r}.")
    method = METHODS[name]
    for option in options:
        if option not in method.options:
            known = ", ".join(method.options) or "none"
            raise TypeError(
                f"minimize(method={name!r}) got an unknown argument {option!r}; "
                f"the options of this method are: {known}."
            )
    return method


def resolve_step(
    name: str, method: Method, step: StepSize | Backtracking | str | None, smoothness: float | None
) -> Any:
    """The step that was asked for, or the method's own choice."""
    if step == "backtracking":
        step = Backtracking()
    if isinstance(step, Backtracking) and method.default != "search":
        searching = ", ".join(repr(key) for key, m in METHODS.items() if m.default == "search")
        raise ValueError(
            f"step={step!r} is a line search, which method={name!r} does not make; give a number or a "
            f"schedule, or use one of {searching}."
        )
    if isinstance(step, str):
        raise ValueError(
            f"step must be a number, a schedule or 'backtracking', got {step!r}; for example 0.1."
        )
    if step is not None:
        return step
    if smoothness is not None and method.default in ("search", "1/L"):
        return 1.0 / smoothness
    if method.default == "search":
        return Backtracking()
    if isinstance(method.default, float):
        return method.default
    remedy = ", or smoothness=L for the step 1/L" if method.default == "1/L" else ""
    raise ValueError(
        f"step is required for method={name!r}, got None; give a number or a schedule such as "
        f"surefit.solvers.InverseSqrt(0.1){remedy}."
    )


def watch(
    steps: Iterator[Iterate],
    value: Callable[[Vector], float],
    residual: Callable[[Vector], float] | None,
    every: int,
) -> Iterator[Iterate]:
    """Add value and estimate to every ``every``-th iterate; between them no certificate is asked for."""
    for k, iterate in enumerate(steps, start=1):
        if k % every:
            yield iterate._replace(estimate=math.inf)
        else:
            estimate = iterate.estimate if residual is None else residual(iterate.x)
            yield iterate._replace(value=value(iterate.x), estimate=estimate)
