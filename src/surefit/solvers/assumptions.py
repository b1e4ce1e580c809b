r"""What the theorems assume, put to the test: gradients, L, m and G (CVX-2, CVX-6, CVX-7, CVX-8).

The guarantees of this package are about functions whose gradient is what the caller says it is, and
whose constants are what the caller says they are. These claims are experiments (EMPIRICAL): they cannot
prove an assumption, but a wrong one is caught.

* gradient: :math:`\nabla f(x)^\top d` against :math:`(f(x+hd) - f(x-hd))/(2h)`;
* subgradient: :math:`f(y) \ge f(x) + g^\top(y - x)`;
* L-smooth: :math:`\|\nabla f(x) - \nabla f(y)\| \le L\|x - y\|` (the gradient is Lipschitz, not f);
* m-strongly convex: :math:`(\nabla f(x) - \nabla f(y))^\top(x - y) \ge m\|x - y\|^2`, i.e.
  :math:`f - \tfrac m2\|x\|^2` is convex.

Examples
--------
>>> import numpy as np
>>> f, x = lambda x: float(x @ x), np.array([1.0, 2.0])
>>> gradient_claim(f, lambda x: 2 * x, x).status.name, gradient_claim(f, lambda x: 3 * x, x).status.name
('HOLDS', 'FAILS')
>>> points = [np.array([0.0, 0.0]), np.array([1.0, 2.0]), np.array([3.0, -1.0])]
>>> [strong_convexity_claim(lambda x: 2 * x, m, points).status.name for m in (2.0, 4.0)]
['HOLDS', 'FAILS']
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from ..certificate import Claim, Kind
from ._curvature import Curvature, Sample
from ._typing import Gradient, Hessian, Objective, RandomState, Vector, as_generator, norm

__all__ = [
    "gradient_claim",
    "hessian_claim",
    "lipschitz_claim",
    "measured_convexity_claim",
    "measured_smoothness_claim",
    "numerical_gradient",
    "smoothness_claim",
    "strong_convexity_claim",
    "subgradient_claim",
]

_EPS = float(np.finfo(np.float64).eps)
_STATED = 64  # units in the last place by which a stated constant may itself be rounded
_TOO_CLOSE = "the points tried are too close together to tell"


def numerical_gradient(f: Objective, x: Vector) -> Vector:
    """Central differences: 2n evaluations, relative error about 1e-10.

    Examples
    --------
    >>> import numpy as np
    >>> numerical_gradient(lambda x: float(x[0] ** 2 * x[1]), np.array([3.0, 2.0])).round(6)
    array([12.,  9.])
    """
    g = np.empty_like(x)
    for i in range(x.size):
        h = _EPS ** (1 / 3) * max(1.0, abs(float(x[i])))
        above, below = x.copy(), x.copy()
        above[i] += h
        below[i] -= h
        g[i] = (f(above) - f(below)) / (above[i] - below[i])
    return g


def gradient_claim(f: Objective, grad: Gradient, x: Vector, random_state: RandomState = 0) -> Claim:
    """Compare the gradient with central differences along one random direction.

    The bound is the error of the differences themselves: truncation, from a second, twice as long
    difference, and rounding of f.
    """
    d = _direction(x, random_state)
    h = _EPS ** (1 / 3) * max(1.0, norm(x))
    ends = [f(x + s * h * d) for s in (1, -1, 2, -2)]
    if not np.isfinite(ends).all():
        why = "f is not finite around the start, so its gradient was not checked"
        return Claim.undecided("gradient check", why, Kind.EMPIRICAL, "CVX-2")
    difference, longer = (ends[0] - ends[1]) / (2 * h), (ends[2] - ends[3]) / (4 * h)
    slope = float(grad(x) @ d)
    size = max(abs(end) for end in ends)
    allowed = (
        4 * abs(longer - difference)
        + 64 * _EPS * size / h
        + 1e-9 * max(abs(slope), abs(difference))
    )
    error = abs(slope - difference)
    statement = (
        f"along a random direction at the start the gradient says {slope:.6g} and central "
        f"differences of f say {difference:.6g}"
    )
    return Claim.check("gradient check", statement, Kind.EMPIRICAL, error, allowed, "CVX-2")


def subgradient_claim(
    f: Objective, subgrad: Gradient, x: Vector, random_state: RandomState = 0
) -> Claim:
    """Check f(y) >= f(x) + g'(y - x) at points y near and far, on both sides of x."""
    d = _direction(x, random_state)
    fx, slope = f(x), float(subgrad(x) @ d)
    scale = max(1.0, norm(x))
    excess, rounding = -np.inf, 0.0
    for length in (1e-6, 1e-4, 1e-2, 1.0):
        for side in (length * scale, -length * scale):
            fy = f(x + side * d)
            excess = max(excess, fx + side * slope - fy)
            rounding = max(rounding, 64 * _EPS * max(abs(fx), abs(fy), abs(side * slope)))
    missed = max(excess, 0.0)
    statement = f"along a random line the subgradient inequality is missed by at most {missed:.3g}"
    return Claim.check("subgradient check", statement, Kind.EMPIRICAL, excess, rounding, "CVX-8")


def hessian_claim(grad: Gradient, hess: Hessian, x: Vector, random_state: RandomState = 0) -> Claim:
    """Compare the Hessian with central differences of the gradient along one random direction."""
    d = _direction(x, random_state)
    h = _EPS ** (1 / 3) * max(1.0, norm(x))
    ends = [grad(x + s * h * d) for s in (1, -1, 2, -2)]
    difference, longer = (ends[0] - ends[1]) / (2 * h), (ends[2] - ends[3]) / (4 * h)
    product = np.asarray(hess(x) @ d)
    size = max(norm(end) for end in ends)
    allowed = (
        4 * norm(longer - difference)
        + 64 * _EPS ** (2 / 3) * size
        + 1e-8 * max(norm(product), norm(difference))
    )
    statement = (
        f"along a random direction at the start the Hessian differs by {norm(product - difference):.3g} "
        "from central differences of the gradient"
    )
    return Claim.check(
        "Hessian check", statement, Kind.EMPIRICAL, norm(product - difference), allowed, "CVX-2"
    )


def smoothness_claim(
    grad: Gradient, smoothness: float, points: Iterable[Vector], noise: float = _EPS
) -> Claim:
    """Check that the gradient is ``smoothness``-Lipschitz between all pairs of ``points``.

    ``noise`` is the relative error of the gradient itself.
    """
    return measured_smoothness_claim(_curvature(grad, points, noise), smoothness)


def measured_smoothness_claim(curvature: Curvature, smoothness: float) -> Claim:
    """The same from curvatures that were measured already."""
    if curvature.pairs == 0:
        return Claim.undecided("smoothness", _TOO_CLOSE, Kind.EMPIRICAL, "CVX-6")
    observed = curvature.largest
    statement = (
        f"between the {curvature.pairs} pairs of points tried the gradient changes by {observed:.6g} "
        f"times the distance or less; L = {smoothness:.6g}"
    )
    floor = smoothness * (1 + _STATED * _EPS)
    return Claim.check(
        "smoothness", statement, Kind.EMPIRICAL, observed, smoothness, "CVX-6", floor=floor
    )


def strong_convexity_claim(
    grad: Gradient, strong_convexity: float, points: Iterable[Vector], noise: float = _EPS
) -> Claim:
    """Check that no pair of ``points`` shows a curvature below ``strong_convexity`` (0: convex)."""
    return measured_convexity_claim(_curvature(grad, points, noise), strong_convexity)


def measured_convexity_claim(curvature: Curvature, strong_convexity: float) -> Claim:
    """The same from curvatures that were measured already."""
    name = "strong convexity" if strong_convexity > 0 else "convexity"
    if curvature.pairs == 0:
        return Claim.undecided(name, _TOO_CLOSE, Kind.EMPIRICAL, "CVX-7")
    observed = curvature.smallest
    statement = (
        f"between the {curvature.pairs} pairs of points tried the smallest curvature is "
        f"{observed:.6g}; m = {strong_convexity:.6g}"
    )
    floor = observed + _STATED * _EPS * abs(strong_convexity)
    return Claim.check(
        name, statement, Kind.EMPIRICAL, strong_convexity, observed, "CVX-7", floor=floor
    )


def lipschitz_claim(f: Objective, lipschitz: float, points: Iterable[Vector]) -> Claim:
    """Check that f itself is ``lipschitz``-Lipschitz between all pairs of ``points``."""
    observed, slack = 0.0, 0.0
    values = [(x, f(x)) for x in points]
    for (x, fx), (y, fy) in itertools.combinations(values, 2):
        if norm(x - y) > 0:
            observed = max(observed, abs(fx - fy) / norm(x - y))
            slack = max(slack, 64 * _EPS * max(abs(fx), abs(fy)) / norm(x - y))
    statement = (
        f"between the points tried f changes by at most {observed:.6g} times the distance; "
        f"G = {lipschitz:.6g}"
    )
    floor = lipschitz * (1 + 64 * _EPS) + slack
    return Claim.check(
        "Lipschitz", statement, Kind.EMPIRICAL, observed, lipschitz, "OPT-1", floor=floor
    )


def _curvature(grad: Gradient, points: Iterable[Vector], noise: float) -> Curvature:
    measured = Curvature(relative=noise)
    measured.compare_all([Sample(x, grad(x)) for x in points])
    return measured


def _direction(x: Vector, random_state: RandomState) -> Vector:
    d = as_generator(random_state).standard_normal(x.shape)
    return np.asarray(d / norm(d))
