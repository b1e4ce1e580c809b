"""What :func:`surefit.solvers.minimize` may claim about an end point and about the way to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..certificate import Claim, Kind, Status
from ..iterate import Iterate, Stop, Trace
from ._methods import Setup
from ._premises import Premises
from ._typing import Vector, norm
from .grid import cell_radius, grid_claim, grid_size
from .linesearch import Backtracking
from .optimality import (
    composite_gap,
    gap_claim,
    local_minimum_claim,
    prox_residual,
    stationary_claim,
)
from .rates import Theorem, rate_bounds, rate_claim

__all__ = ["Judge"]

_EPS = float(np.finfo(np.float64).eps)
_GRADIENT = {"gradient check"}
_CONVEX = {"convexity", "strong convexity", "optimum", "smoothness", *_GRADIENT}
# What a bound rests on, by the names of the claims that test it: contradicted, it is not claimed.
_RESTS_ON = {
    "stationary": _GRADIENT,
    "suboptimality": {
        "convexity",
        "strong convexity",
        "smoothness",
        "subgradient check",
        *_GRADIENT,
    },
    "strict local minimum": {"Hessian check", *_GRADIENT},
    "convex rate": _CONVEX,
    "strongly convex rate": _CONVEX,
    "accelerated rate": _CONVEX,
    "non-convex rate": {"optimum", "smoothness", *_GRADIENT},
    "subgradient rate": {"convexity", "optimum", "subgradient check"},
    "grid gap": {"Lipschitz"},
    "grid bound": {"Lipschitz"},
}


@dataclass
class Judge:
    """Reads the problem, the end point and the trace; of the solver it uses nothing."""

    method: str
    family: str
    setup: Setup
    tol: float
    has_hessian: bool
    smoothness: float | None
    strong_convexity: float | None
    convex: bool
    convex_is_stated: bool
    optimum: Vector | None
    lower_bound: float | None
    bound: float = field(init=False)  # what the criterion must come to
    gap_bound: float = field(init=False)
    estimates: list[float] = field(init=False, default_factory=list)
    last: Vector | None = field(init=False, default=None)
    premises: Premises = field(init=False)

    def __post_init__(self) -> None:
        self.problem, self.x0 = self.setup.problem, self.setup.x0
        self.premises = Premises(
            setup=self.setup,
            family=self.family,
            has_hessian=self.has_hessian,
            smoothness=self.smoothness,
            strong_convexity=self.strong_convexity,
            convex=self.convex,
            convex_is_stated=self.convex_is_stated,
            minimum_is_stated=self.optimum is not None or self.lower_bound is not None,
        )
        self.start_value = self.value(self.x0)
        self.gap_bound = self.tol * max(1.0, abs(self.start_value))
        if self.residual is None:
            self.bound = self.gap_bound
        else:
            self.bound = self.tol * max(1.0, self.residual(self.x0))

    # -------------------------------------------------------------- while the run is on

    def value(self, x: Vector) -> float:
        """The whole objective."""
        penalty = self.setup.penalty
        return self.problem.value(x) + (float(penalty(x)) if penalty is not None else 0.0)

    @property
    def residual(self) -> Callable[[Vector], float] | None:
        """What vanishes at a stationary point; None where nothing does."""
        prox = self.setup.prox
        if self.family == "smooth" or (self.family == "composite" and prox is None):
            return lambda x: norm(self.problem.gradient(x))
        if self.family == "composite" and prox is not None:
            return lambda x: prox_residual(self.problem.gradient, prox, x)
        return None

    def gap(self, x: Vector, noise: float = 0.0) -> float | None:
        """A bound on the distance to the global minimum, by strong convexity.

        ``noise`` is the error of the gradient, which counts against the bound.
        """
        m, prox = self.strong_convexity, self.setup.prox
        if not m or self.family not in ("smooth", "composite"):
            return None
        if prox is None:
            return (norm(self.problem.gradient(x)) + noise) ** 2 / (2 * m)
        if self.smoothness is None or self.method == "penalty":
            return None
        penalty = self.setup.penalty or (lambda x: 0.0)
        return composite_gap(
            self.problem.value,
            self.problem.gradient,
            prox,
            penalty,
            x,
            smoothness=self.smoothness,
            strong_convexity=m,
            noise=noise,
        )

    @property
    def criterion(self) -> Callable[[Vector], float] | None:
        """What ``run`` compares with ``bound``: the claims about the end point, as one number."""
        residual = self.residual
        if residual is not None:
            return lambda x: residual(x) if (self.gap(x) or 0.0) <= self.gap_bound else math.inf
        if (
            self.family == "nonsmooth"
            and "radius" in self.setup.options
            and not self.setup.stochastic
        ):
            return lambda x: self.estimates[-1]
        return None

    def holds_at_start(self) -> bool:
        """Nothing to do: a warm start at the solution."""
        if self.family != "smooth" or self.criterion is None:
            return False
        return self.criterion(self.x0) <= self.bound

    def record(self, steps: Iterator[Iterate]) -> Iterator[Iterate]:
        """Pass the iterates on and remember their estimates."""
        for iterate in steps:
            self.estimates.append(iterate.estimate)
            self.last = iterate.x
            yield iterate

    # -------------------------------------------------------------- when it is over

    def claims(self, x: Vector, trace: Trace, stop: Stop, n_iter: int) -> list[Claim]:
        """Everything that can be said."""
        premises = self.premises
        about_f = premises.claims(x, self.optimum)
        if n_iter and (minimum := self._minimum()) is not None and self._has_a_way:
            lowest = min(trace.values)
            about_f.append(premises.optimum_claim(x, lowest, minimum, self.optimum))
        bounds = self._about_the_point(x, stop, n_iter)
        if n_iter:
            bounds += self._about_the_way(trace)
        return about_f + [premises.withhold(c, _RESTS_ON.get(c.name, set())) for c in bounds]

    @property
    def _has_a_way(self) -> bool:
        """Whether every step of the run is known, so that theorems about it can be checked."""
        return not self.setup.stochastic and self.family != "grid"

    def _minimum(self) -> float | None:
        """The minimum given, or the lower bound, or None."""
        return self.lower_bound if self.optimum is None else self.value(self.optimum)

    def _about_the_point(self, x: Vector, stop: Stop, n_iter: int) -> list[Claim]:
        if self.family == "grid":
            return self._about_the_grid(x, n_iter)
        if self.residual is None:
            return [self._about_the_best_iterate(x)]
        kind = "gradient norm" if self.setup.prox is None else "fixed-point residual"
        how = "" if self.problem.has_gradient else " (by central differences)"
        # What a small gradient means globally is true of convex functions, if the gradient is right.
        doubtful = self.premises.contradicted & {"convexity", "strong convexity", "gradient check"}
        convex = self.convex and self.setup.prox is None and not doubtful
        claims = [stationary_claim(self.residual(x), self.bound, of=kind + how, convex=convex)]
        gap, noisy = self.gap(x), self.gap(x, self.premises.curvature.noise)
        if gap is not None and noisy is not None and self.strong_convexity:
            smoothness = None if self.setup.prox is None else self.smoothness
            claims.append(
                gap_claim(
                    noisy,
                    self.strong_convexity,
                    self.gap_bound,
                    smoothness=smoothness,
                    rounding=noisy - gap,
                )
            )
        if self.has_hessian and self.family == "smooth":
            stationary = claims[0].status is Status.HOLDS
            claims.append(
                local_minimum_claim(
                    self.problem.gradient, self.problem.hessian, x, stationary=stationary
                )
            )
        if self.setup.project is not None:
            away = norm(x - self.setup.project(x))
            text = f"the distance to the feasible set is {away:.3g}"
            exact = 8 * x.size * _EPS * max(1.0, norm(x))
            if self.method == "penalty":
                claims.append(
                    Claim.check("feasible", text, Kind.STATIONARY, away, self.bound, "OPT-13")
                )
            else:
                claims.append(Claim.check("feasible", text, Kind.EXACT, away, exact, "OPT-12"))
        return claims

    def _about_the_best_iterate(self, x: Vector) -> Claim:
        """Subgradient descent: no norm vanishes, only the theorem can speak."""
        name, kind, source = "suboptimality", Kind.OPTIMAL, "OPT-11"
        radius = self.setup.options.get("radius")
        if radius is None or not self.estimates:
            why = "subgradients do not vanish at a minimum: give radius (or optimum) for a bound"
            return Claim.undecided(name, why, kind, source)
        bound = self.estimates[-1]
        if self.setup.stochastic:
            why = f"the average is within {bound:.3g} of the minimum in expectation; one run shows less"
            return Claim.undecided(name, why, kind, source)
        if x is not self.last:
            why = "the validation error chose an earlier iterate than the one the bound is about"
            return Claim.undecided(name, why, kind, source)
        text = (
            f"the best iterate is within {bound:.3g} of the global minimum, if f is convex with a "
            f"minimiser within {radius:.6g} of the start"
        )
        return Claim.check(name, text, kind, bound, self.gap_bound, source)

    def _about_the_grid(self, x: Vector, n_iter: int) -> list[Claim]:
        assert self.setup.bounds is not None
        lower, upper = self.setup.bounds
        size, G = grid_size(lower, upper, **self.setup.options), self.setup.lipschitz
        if n_iter < size:
            why = f"only {n_iter} of {size} grid points were tried"
            return [Claim.undecided("grid gap", why, Kind.OPTIMAL, "OPT-1")]
        if G is None:
            why = "the best of a grid says nothing about the points between: give lipschitz for a bound"
            return [Claim.undecided("grid gap", why, Kind.OPTIMAL, "OPT-1")]
        radius, value = cell_radius(lower, upper, **self.setup.options), self.value(x)
        claims = [grid_claim(value, radius, G, tol=self.gap_bound)]
        if self.optimum is not None:
            claims.append(grid_claim(value, radius, G, optimum=self.value(self.optimum)))
        return claims

    def _about_the_way(self, trace: Trace) -> list[Claim]:
        """The convergence theorems, each checked at every step; the tightest goes into the trace."""
        if not self._has_a_way:
            return []
        claims, minimum = [], self._minimum()
        for theorem in self._theorems(trace):
            distance = None if self.optimum is None else norm(self.x0 - self.optimum)
            if self.method == "projected" and self.setup.project and self.optimum is not None:
                distance = norm(self.setup.project(self.x0) - self.optimum)
            # A line search tests the descent inequality that a step of 1/L would take for granted.
            searched = isinstance(self.setup.step, Backtracking) and theorem != "strongly convex"
            constants = {
                "smoothness": None if searched else self.smoothness,
                "strong_convexity": self.strong_convexity,
                "distance": distance,
                "start_gap": None if minimum is None else self.start_value - minimum,
                "lipschitz": self.setup.lipschitz or self.problem.largest_gradient,
            }
            norms = [norm(self.problem.gradient(self.x0)), *self.estimates]
            claims.append(
                rate_claim(
                    theorem, trace, optimum=minimum or 0.0, gradient_norms=norms, **constants
                )
            )
            promised = claims[-1].status is not Status.UNDECIDED
            if theorem != "non-convex" and promised and not trace.bounds:
                trace.bounds = rate_bounds(theorem, trace, **constants).tolist()
                trace.bound_name = f"{theorem} bound ({claims[-1].source})"
        return claims

    def _theorems(self, trace: Trace) -> list[Theorem]:
        """Those whose assumptions the caller has vouched for, tightest first."""
        proper_steps = self.smoothness is not None or isinstance(self.setup.step, Backtracking)
        known = self.optimum is not None and self.convex
        theorems: list[Theorem] = []
        if self.method == "subgradient" and known:
            theorems.append("subgradient")
        if not proper_steps:
            return theorems
        if self.method == "gd":
            constant = min(trace.steps) == max(trace.steps)
            if known and self.strong_convexity and self.smoothness is not None and constant:
                theorems.append("strongly convex")
            if known:
                theorems.append("convex")
            if self.optimum is not None or self.lower_bound is not None:
                theorems.append("non-convex")
        if self.method == "projected" and known:
            theorems.append("convex")
        if self.method == "fista" and known and self.setup.options.get("restart") is False:
            theorems.append("accelerated")
        return theorems
