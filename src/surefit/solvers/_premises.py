"""What a caller of :func:`surefit.minimize` states about f, and whether the run contradicts it.

Every bound of :mod:`~surefit.solvers.rates` and :mod:`~surefit.solvers.optimality` rests on a stated
gradient, on stated constants, or on a stated minimiser. Black-box functions cannot be proved smooth or
convex, but a wrong constant can be caught: by consecutive gradients of the run, by points spread over it, and by the
directions of extreme curvature at its end (:mod:`~surefit.solvers._curvature`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ..certificate import Claim, Kind, Status
from ._curvature import Curvature, Path, Sample, probe, rounding_error
from ._methods import Setup
from ._typing import Vector, as_generator, norm
from .assumptions import (
    gradient_claim,
    hessian_claim,
    lipschitz_claim,
    measured_convexity_claim,
    measured_smoothness_claim,
    subgradient_claim,
)
from .optimality import prox_residual

__all__ = ["Premises"]

EPS = float(np.finfo(np.float64).eps)
# Relative error of central differences of a smooth f: eps^(2/3) is 4e-11, and f''' adds to it.
DIFFERENCE_ERROR = 1e-9
# Relative rounding of values along a run, in units in the last place.
VALUE_UNITS = 16.0
# Distance of the points of a probe, relative to the length of the run and to the size of x.
PROBE_OF_RUN, PROBE_OF_POINT = 1e-3, 1e-5


@dataclass
class Premises:
    """The stated constants, and what the run and a few probes show of them."""

    setup: Setup
    family: str
    has_hessian: bool
    smoothness: float | None
    strong_convexity: float | None
    convex: bool
    convex_is_stated: bool
    minimum_is_stated: bool
    curvature: Curvature = field(init=False)
    path: Path = field(init=False)
    contradicted: set[str] = field(init=False, default_factory=set)
    lowest: float = field(init=False, default=math.inf)  # value of all points that were tried

    def __post_init__(self) -> None:
        self.problem, self.x0 = self.setup.problem, self.setup.x0
        seed = self.setup.random_state
        self.rng = as_generator(0 if seed is None else seed)  # a check that can be repeated
        exact = self.problem.has_gradient
        self.curvature = Curvature(relative=EPS if exact else DIFFERENCE_ERROR)
        self.path = Path(self.curvature, known_value=self.problem.known_value)
        if self.is_testable:
            self._measure_rounding(self.x0)
            self.path.add(self.x0, self.problem.gradient(self.x0))
            self.problem.observer = self.path.add

    @property
    def is_testable(self) -> bool:
        """Whether anything was stated that gradients can contradict."""
        constants = self.smoothness is not None or self.strong_convexity is not None
        stated = constants or self.convex or self.minimum_is_stated
        return self.family != "grid" and stated

    def _measure_rounding(self, x: Vector) -> None:
        c = self.curvature
        c.noise = max(c.noise, rounding_error(self.problem.gradient, x, self.rng))
        c.value_noise = max(c.value_noise, rounding_error(self.problem.value, x, self.rng))

    # -------------------------------------------------------------- when the run is over

    def claims(self, x: Vector, optimum: Vector | None) -> list[Claim]:
        """Experiments on the functions and the constants that the caller gave."""
        self.problem.observer = None
        claims = list(self._about_functions(x))
        if self.is_testable and np.isfinite(x).all():
            self._measure(x, optimum)
            claims += self._about_constants()
        self.contradicted |= {claim.name for claim in claims if claim.status is Status.FAILS}
        return claims

    def _about_functions(self, x: Vector) -> Iterator[Claim]:
        value, gradient, x0, rng = self.problem.value, self.problem.gradient, self.x0, self.rng
        if self.family == "grid":
            yield from self._about_the_box(x)
        elif self.family == "nonsmooth":
            if self.problem.has_gradient:
                yield subgradient_claim(value, gradient, x0, rng)
        else:
            points = [x0] if np.array_equal(x, x0) or not np.isfinite(x).all() else [x0, x]
            if self.problem.has_gradient:
                yield _worst([gradient_claim(value, gradient, p, rng) for p in points])
            if self.has_hessian:
                hessian = self.problem.hessian
                yield _worst([hessian_claim(gradient, hessian, p, rng) for p in points])

    def _about_the_box(self, x: Vector) -> Iterator[Claim]:
        """The Lipschitz constant: between random points, and in the steepest directions found there."""
        if self.setup.lipschitz is None or self.setup.bounds is None:
            return
        corner, width = np.asarray(self.setup.bounds[0]), np.ptp(self.setup.bounds, axis=0)
        box = [x, *(corner + width * self.rng.random(x.shape) for _ in range(7))]
        claim = lipschitz_claim(self.problem.value, self.setup.lipschitz, box)
        steep = [self._steepest_pair(p, corner, corner + width) for p in box]
        pairs = [lipschitz_claim(self.problem.value, self.setup.lipschitz, p) for p in steep]
        yield _worst([claim, *pairs])

    def _steepest_pair(self, x: Vector, low: Vector, high: Vector) -> list[Vector]:
        """Two points of the box close to x, along the measured gradient."""
        slope = np.empty_like(x)
        for i in range(x.size):
            ends = [x.copy(), x.copy()]
            ends[0][i] = max(low[i], x[i] - 1e-4 * (high[i] - low[i]))
            ends[1][i] = min(high[i], x[i] + 1e-4 * (high[i] - low[i]))
            width = ends[1][i] - ends[0][i]
            rise = self.problem.value(ends[1]) - self.problem.value(ends[0])
            slope[i] = rise / width if width > 0 else 0.0
        length = norm(slope)
        if not 0.0 < length < math.inf:
            return [x]
        move = 1e-4 * norm(high - low) * slope / length
        return [np.clip(x - move, low, high), np.clip(x + move, low, high)]

    def _measure(self, x: Vector, optimum: Vector | None) -> None:
        """Compare points of the run, of the segment from start to end, and of a probe at the end."""
        self._measure_rounding(x)
        points = [self.x0 + part * (x - self.x0) for part in (0.0, *sorted(self.rng.random(3)))]
        samples = [*self.path.samples(), *map(self._sample, [*points, x])]
        if optimum is not None:
            samples.append(self._sample(optimum))
        self.curvature.compare_all(samples)
        if self.family == "nonsmooth":
            return  # subgradients jump: their differences say nothing of directions
        travelled, size = norm(x - self.x0), norm(x)
        radius = max(PROBE_OF_RUN * travelled, PROBE_OF_POINT * size) or PROBE_OF_RUN
        project = self.setup.project
        inside = project if project is not None else (lambda y: y)
        pairs, newton = probe(self.problem.gradient, x, radius, self.rng, inside)
        for pair in pairs:
            self.curvature.compare(*map(self._sample, pair))
        if newton is not None and self.family == "smooth":
            self.lowest = min(self.problem.value(point) for point in (*points, x, newton))

    def _sample(self, x: Vector) -> Sample:
        return Sample(x, self.problem.gradient(x), self.problem.value(x))

    def _about_constants(self) -> Iterator[Claim]:
        if self.smoothness is not None and self.family != "nonsmooth":
            yield measured_smoothness_claim(self.curvature, self.smoothness)
        m = self.strong_convexity
        if m is None and not self.convex:
            return
        claim = measured_convexity_claim(self.curvature, m or 0.0)
        if self.convex_is_stated:
            yield claim
        elif claim.status is Status.FAILS:
            # Nobody said that f is convex: the theorems about convex functions are just not claimed.
            self.contradicted.add(claim.name)

    def optimum_claim(
        self, x: Vector, lowest: float, minimum: float, optimum: Vector | None
    ) -> Claim:
        """Whether the run, or a gradient step, goes below the minimum (or lower bound) given."""
        start = self.problem.value(self.x0)
        floor = VALUE_UNITS * EPS * max(abs(start), abs(minimum)) + self.curvature.value_noise
        lowest = min(lowest, self.lowest)
        statement = f"the lowest value found is {lowest:.6g}; the minimum (or lower bound) given is {minimum:.6g}"
        below = minimum - lowest
        stiffness = max(self.smoothness or 0.0, self.curvature.largest)
        if optimum is not None and stiffness > 0 and self.family != "nonsmooth":
            gain = self._gain(optimum, stiffness)
            below = max(below, gain)
            statement += f", where a step along the gradient would gain {gain:.3g}"
        elif self.smoothness is not None and self.family == "smooth" and np.isfinite(x).all():
            gain = self._gain(x, stiffness)
            below = max(below, minimum - self.problem.value(x) + gain)
            statement += f", and a step along the gradient at the end would gain {gain:.3g} more"
        claim = Claim.check("optimum", statement, Kind.EMPIRICAL, below, 0.0, "CVX-4", floor=floor)
        if claim.status is Status.FAILS:
            self.contradicted.add("optimum")
        return claim

    def _gain(self, x: Vector, stiffness: float) -> float:
        """At least this much a step of length 1/stiffness lowers a function of that smoothness."""
        prox, gradient = self.setup.prox, self.problem.gradient
        if prox is None:
            slope = max(0.0, norm(gradient(x)) - self.curvature.noise)
            return slope**2 / (2.0 * stiffness)
        residual = max(
            0.0, prox_residual(gradient, prox, x, 1.0 / stiffness) - self.curvature.noise
        )
        return residual**2 / (2.0 * stiffness)

    # -------------------------------------------------------------- what rests on what

    def withhold(self, claim: Claim, rests_on: set[str]) -> Claim:
        """The claim, or an undecided one where the run contradicts something that it rests on."""
        wrong = sorted(self.contradicted & rests_on)
        if not wrong or claim.status is not Status.HOLDS:
            return claim
        why = f"{claim.statement}; but the run contradicts what this rests on: {', '.join(wrong)}"
        return replace(claim, statement=why, status=Status.UNDECIDED)


def _worst(claims: list[Claim]) -> Claim:
    """The first claim that fails, else the first that is decided, else the first."""
    for status in (Status.FAILS, Status.HOLDS):
        for claim in claims:
            if claim.status is status:
                return claim
    return claims[0]
