r"""How strongly a function curves between pairs of points, measured from gradients and values (CVX-6, CVX-7).

If f is L-smooth and m-strongly convex, every pair of points x, y with d = y - x obeys

.. math::
    \|\nabla f(y) - \nabla f(x)\| \le L\|d\|, \qquad
    m\|d\|^2 \le (\nabla f(y) - \nabla f(x))^\top d, \qquad
    \tfrac m2\|d\|^2 \le f(y) - f(x) - \nabla f(x)^\top d \le \tfrac L2\|d\|^2

(without convexity, the last quantity lies between :math:`\pm\tfrac L2\|d\|^2`).

A pair that breaks one of them contradicts the constant. :class:`Curvature` collects the extremes over many
pairs, *after* subtracting what rounding can do to each, so that true constants are not contradicted.

Which pairs are tried matters. A short run sees few directions, and a bound such as
:math:`\|\nabla f\|^2/(2m)` is wrong exactly when f curves by less than m along the way to the minimiser.
:func:`probe` therefore looks for the directions of smallest and largest curvature at a point, in a block
Krylov space of gradient differences: that of the gradient finds the way to the minimiser, that of a random
direction finds what the run never saw. On a quadratic in at most :data:`PROBES` dimensions this is the
whole space, and a wrong constant is always found, beyond rounding.

References
----------
Y. Nesterov. Introductory Lectures on Convex Optimization, theorem 2.1.5. Springer, 2004.
J. Moré, S. Wild. Estimating computational noise. SIAM J. Sci. Comput. 33, 2011.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._typing import Gradient, Vector, norm

__all__ = ["PROBES", "Curvature", "Path", "Sample", "probe", "rounding_error"]

PROBES = 24  # dimensions of the Krylov space: gradient differences taken at a point
KEPT = 16  # points of a run that are compared all with all: 120 pairs
CLOSEST = 1e-6  # relative distance below which a difference of gradients is mostly rounding
EPS = float(np.finfo(np.float64).eps)
# Rounding of a function written in the usual way stays below this many units in the last place.
UNITS = 64.0


class Sample(NamedTuple):
    """A point, the gradient there, and the value where it is known (else NaN)."""

    x: Vector
    gradient: Vector
    value: float = math.nan


@dataclass
class Curvature:
    """The extreme curvatures between pairs of points, with rounding subtracted.

    Attributes
    ----------
    largest : float
        Some pair curves at least this much: no smaller L is right.
    smallest : float
        Some pair curves at most this much: no larger m is right.
    pairs : int
        How many pairs were compared.
    noise, value_noise : float
        Absolute errors of a gradient and of a value, where they were measured.
    relative : float
        The relative error of a gradient.
    """

    noise: float = 0.0
    value_noise: float = 0.0
    relative: float = EPS
    largest: float = 0.0
    smallest: float = math.inf
    pairs: int = 0
    stiffness: float = 0.0  # the largest curvature as measured, which multiplies the rounding of x

    def compare_all(self, samples: Iterable[Sample]) -> None:
        """Compare every sample with every other one."""
        for a, b in itertools.combinations(samples, 2):
            self.compare(a, b)

    def compare(self, a: Sample, b: Sample) -> None:
        """Take one pair into account, unless it is too close or not finite."""
        d, change = b.x - a.x, b.gradient - a.gradient
        length, size = norm(d), max(norm(a.x), norm(b.x))
        if not (CLOSEST * size < length < math.inf) or not np.isfinite(change).all():
            return
        self.pairs += 1
        ratio = norm(change) / length
        self.stiffness = max(self.stiffness, ratio)
        steepest = max(norm(a.gradient), norm(b.gradient))
        error = UNITS * self.relative * (steepest + self.stiffness * size) + self.noise
        self._add(ratio, math.inf, error / length)
        self._add(0.0, float(change @ d) / length**2, error / length)
        if math.isfinite(a.value) and math.isfinite(b.value):
            value_error = UNITS * EPS * max(abs(a.value), abs(b.value)) + self.value_noise
            slack = 2.0 * (value_error / length + error) / length
            for p, q, way in ((a, b, d), (b, a, -d)):
                curve = 2.0 * (q.value - p.value - float(p.gradient @ way)) / length**2
                self._add(abs(curve), curve, slack)

    def _add(self, above: float, below: float, slack: float) -> None:
        self.largest = max(self.largest, above - slack)
        self.smallest = min(self.smallest, below + slack)


@dataclass
class Path:
    """What a run shows by itself: consecutive gradients, and a few points spread over the whole run.

    Every gradient that the solver evaluates is compared with the one before it, which costs arithmetic only.
    """

    curvature: Curvature
    kept: list[Sample] = field(default_factory=list)
    known_value: Callable[[Vector], float] = lambda x: math.nan
    _previous: Sample | None = None
    _pending: tuple[Vector, Vector] | None = None
    _count: int = 0
    _stride: int = 1

    def add(self, x: Vector, gradient: Vector) -> None:
        """Take note of a gradient; the value at x is looked up when the next one comes."""
        self._finish()
        self._pending = (x, gradient.copy())

    def samples(self) -> list[Sample]:
        """The points kept, and the last one."""
        self._finish()
        last = [] if self._previous is None else [self._previous]
        return [*self.kept, *last]

    def _finish(self) -> None:
        if self._pending is None:
            return
        x, gradient = self._pending
        self._pending = None
        sample = Sample(x, gradient, self.known_value(x))
        if self._previous is not None:
            self.curvature.compare(self._previous, sample)
        self._previous = sample
        if self._count % self._stride == 0:
            self.kept.append(sample)
        self._count += 1
        if len(self.kept) > KEPT:
            self.kept, self._stride = self.kept[::2], 2 * self._stride


def probe(
    grad: Gradient,
    x: Vector,
    radius: float,
    rng: np.random.Generator,
    inside: Callable[[Vector], Vector] = lambda y: y,
) -> tuple[list[tuple[Vector, Vector]], Vector | None]:
    """Return pairs of points around x along the directions of extreme curvature, and a Newton step's end.

    The pairs are for comparison. The end of the step is where a quadratic has its minimum: a value below a
    stated minimum there contradicts it.

    Parameters
    ----------
    grad : callable
        The gradient; evaluated at most ``2 * PROBES`` times.
    x : array of shape (n,)
        The centre.
    radius : float
        Half the distance between the points of a pair.
    rng : numpy Generator
        For the second start of the Krylov space.
    inside : callable
        The projection onto the domain of f, where it is not the whole space.
    """

    def ends(direction: Vector) -> tuple[Vector, Vector]:
        return inside(x + radius * direction), inside(x - radius * direction)

    def product(direction: Vector) -> Vector:
        above, below = ends(direction)
        return np.asarray((grad(above) - grad(below)) / (2.0 * radius))

    slope = grad(x)
    found = _krylov(product, slope, min(x.size, PROBES), rng)
    if found is None:
        return [], None
    basis, images = found
    within = basis.T @ images
    values, vectors = np.linalg.eigh(0.5 * (within + within.T))
    towards = vectors @ _divide(vectors.T @ (basis.T @ slope), values)
    pairs = []
    for weights in (vectors[:, 0], vectors[:, -1], towards):
        direction = basis @ weights
        length = norm(direction)
        if 0.0 < length < math.inf:
            pairs.append(ends(direction / length))
    return pairs, x - basis @ towards


def _divide(values: NDArray[Any], by: NDArray[Any]) -> NDArray[Any]:
    """Quotients, 0 where the divisor is 0."""
    return np.divide(values, by, out=np.zeros_like(values), where=by != 0.0)


def _krylov(
    product: Callable[[Vector], Vector], slope: Vector, size: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """An orthonormal basis of the block Krylov space of the gradient and a random direction."""
    basis: list[Vector] = []
    images: list[Vector] = []
    waiting = [slope, rng.standard_normal(slope.shape)]
    while len(basis) < size:
        candidate = waiting.pop(0) if waiting else rng.standard_normal(slope.shape)
        direction = _orthogonal(candidate, basis)
        if direction is None:
            continue
        image = product(direction)
        if not np.isfinite(image).all():
            return None
        basis.append(direction)
        images.append(image)
        waiting.append(image)
    return np.column_stack(basis), np.column_stack(images)


def _orthogonal(vector: Vector, basis: list[Vector]) -> Vector | None:
    """The unit vector of the part orthogonal to the basis; None where nothing but rounding is left."""
    before = norm(vector)
    if not 0.0 < before < math.inf:
        return None
    rest = vector / before
    for _ in range(2):  # twice is enough
        for other in basis:
            rest = rest - float(other @ rest) * other
    left = norm(rest)
    return rest / left if left > 1e-8 else None


def rounding_error(function: Callable[[Vector], Any], x: Vector, rng: np.random.Generator) -> float:
    """How much ``function`` changes when x moves by a few units in the last place.

    Terms that cancel leave an error that the size of the result does not show; this measurement does.
    """
    here = np.asarray(function(x))
    scale = 4.0 * EPS * norm(x) / math.sqrt(x.size)
    largest = 0.0
    for _ in range(3):
        near = np.asarray(function(x + scale * rng.choice([-1.0, 1.0], size=x.shape)))
        change = float(np.linalg.norm(near - here))
        largest = max(largest, change if math.isfinite(change) else 0.0)
    return largest
