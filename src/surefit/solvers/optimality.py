r"""What can be said about a point: stationary, minimal, optimal (CVX-4, CVX-5).

* :math:`\nabla f(x) = 0` is necessary for a minimum (Fermat) and says no more than that: :math:`x^3` at 0.
* With m-strong convexity it bounds the gap to the *global* minimum:
  :math:`f(x) - f^\star \le \|\nabla f(x)\|^2 / (2m)`.
* With a constraint or a penalty, x is stationary when it is a fixed point,
  :math:`x = \mathrm{prox}_t(x - t\nabla f(x))`; the gradient's place is taken by
  :math:`G_t(x) = (x - \mathrm{prox}_t(x - t\nabla f(x)))/t`, and for :math:`t \le 1/L` the step
  :math:`x^+` from x has :math:`F(x^+) - F^\star \le \|G_t\|^2/(2m) - \tfrac t2\|G_t\|^2`.
* With a Hessian, :math:`\nabla f = 0` and :math:`\nabla^2 f \succ 0` give a *strict local* minimum;
  :math:`\nabla^2 f \succeq 0` is not enough. On a computer the gradient is small, not zero, and a small
  gradient with a positive Hessian is not enough either (:math:`x^3` just right of 0). By the
  Newton-Kantorovich theorem a zero of the gradient lies within :math:`2\eta` of x, and the Hessian stays
  positive definite up to it, if :math:`h = \beta\,\eta\,M < \tfrac12`, with
  :math:`\eta = \|[\nabla^2 f]^{-1}\nabla f\|`, :math:`\beta = 1/\lambda_{\min}` and M the Lipschitz
  constant of the Hessian there, which is measured. h = 1/2 is exactly a double zero, such as that of
  :math:`x^3`.

None of this uses anything of a solver: the claims can be recomputed at any point.

References
----------
L. Kantorovich. Functional analysis and applied mathematics. Uspekhi Mat. Nauk 3, 1948.
S. Boyd, L. Vandenberghe. Convex Optimization, section 9.1.2. Cambridge, 2004.

Examples
--------
>>> import numpy as np
>>> cubic = local_minimum_claim(lambda x: 3 * x**2, lambda x: np.diag(6 * x), np.zeros(1))
>>> cubic.status.name
'UNDECIDED'
>>> local_minimum_claim(lambda x: 2 * x, lambda x: 2 * np.eye(1), np.zeros(1)).status.name
'HOLDS'
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

from ..certificate import Claim, Kind
from ._typing import Gradient, Hessian, Objective, Prox, Vector, norm

__all__ = [
    "composite_gap",
    "gap_claim",
    "local_minimum_claim",
    "prox_residual",
    "stationary_claim",
]

_EPS = float(np.finfo(np.float64).eps)


def stationary_claim(
    residual: float, bound: float, *, of: str = "gradient norm", convex: bool = False
) -> Claim:
    """The first-order condition: ``residual`` is the gradient norm or the fixed-point residual.

    With ``convex=True`` the statement adds what the gradient norm of a convex function means globally.
    """
    statement = f"the {of} is {residual:.3g}"
    if convex:
        statement += f"; f being convex, f(y) >= f(x) - {residual:.3g} ||y - x|| for every y"
    else:
        statement += " (of zero: stationary, with no claim of optimality)"
    return Claim.check("stationary", statement, Kind.STATIONARY, residual, bound, "CVX-5")


def gap_claim(
    gap: float,
    strong_convexity: float,
    bound: float,
    *,
    smoothness: float | None = None,
    rounding: float = 0.0,
) -> Claim:
    """Global optimality by strong convexity.

    Parameters
    ----------
    gap : float
        The bound on f(x) − f*, with the rounding of the gradient in it.
    strong_convexity, smoothness : float
        The stated constants that it rests on.
    bound : float
        The largest gap at which the claim holds.
    rounding : float
        The part of ``gap`` that is rounding of the gradient: it alone does not make the claim fail.
    """
    constants = f"m = {strong_convexity:.6g}"
    if smoothness is not None:
        constants += f", L = {smoothness:.6g}"
    statement = (
        f"the objective is within {gap:.3g} of the global minimum, if the stated constants are right "
        f"({constants})"
    )
    floor = bound + rounding
    return Claim.check("suboptimality", statement, Kind.OPTIMAL, gap, bound, "CVX-7", floor=floor)


def prox_residual(grad: Gradient, prox: Prox, x: Vector, t: float = 1.0) -> float:
    """``||x - prox(x - t grad(x), t)|| / t``: zero exactly at stationary points."""
    return norm(x - prox(x - t * grad(x), t)) / t


def composite_gap(
    f: Objective,
    grad: Gradient,
    prox: Prox,
    penalty: Objective,
    x: Vector,
    *,
    smoothness: float,
    strong_convexity: float,
    noise: float = 0.0,
) -> float:
    """An upper bound on F(x) − F* for F = f + penalty, from x and the constants L and m alone.

    ``noise`` is the error of the gradient; a prox moves by no more than its argument.
    """
    t = 1.0 / smoothness
    after = prox(x - t * grad(x), t)
    mapping = norm(x - after) / t + noise
    fall = (f(x) + penalty(x)) - (f(after) + penalty(after))
    return max(0.0, fall + mapping**2 * (0.5 / strong_convexity - 0.5 * t))


def local_minimum_claim(
    grad: Gradient, hess: Hessian, x: Vector, *, stationary: bool = True
) -> Claim:
    """Whether x is, to the accuracy of its gradient, a strict local minimum.

    HOLDS with the Newton-Kantorovich number h <= 1/4 (half of what the theorem asks for, because the
    Lipschitz constant of the Hessian is measured); FAILS where the Hessian has a negative eigenvalue,
    so that f falls from x in some direction; UNDECIDED otherwise.
    """
    name, kind, source = "strict local minimum", Kind.STATIONARY, "CVX-5"
    if not stationary:
        return Claim.undecided(
            name, "the point is not stationary, so it is no minimum yet", kind, source
        )
    H = hess(x)
    eigenvalues, vectors = eigh(0.5 * (H + H.T))
    smallest = float(eigenvalues[0])
    rounding = len(x) * _EPS * float(np.max(np.abs(eigenvalues)))
    if smallest < -rounding:
        text = f"the smallest eigenvalue of the Hessian is {smallest:.3g}: f falls along its eigenvector"
        return Claim.check(name, text, kind, -smallest, 0.0, source)
    if smallest <= rounding:
        text = f"the smallest eigenvalue of the Hessian is {smallest:.3g}: the second-order test is silent"
        return Claim.undecided(name, text, kind, source)
    newton = vectors @ ((vectors.T @ grad(x)) / eigenvalues)
    h = norm(newton) * _hessian_lipschitz(hess, H, x, newton) / smallest
    if not h <= 0.25:
        text = (
            f"the Hessian is positive definite (smallest eigenvalue {smallest:.3g}), but it changes too "
            f"fast for the gradient left (Kantorovich number {h:.3g}): a lower tol may decide"
        )
        return Claim.undecided(name, text, kind, source)
    text = (
        f"the smallest eigenvalue of the Hessian is {smallest:.3g} and the Kantorovich number {h:.3g}: a "
        f"strict local minimum lies within {2 * norm(newton):.3g}"
    )
    return Claim.check(name, text, kind, h, 0.25, source)


def _hessian_lipschitz(hess: Hessian, H: Vector, x: Vector, newton: Vector) -> float:
    """How fast the Hessian changes within twice the Newton step, measured along a few directions."""
    radius = 2 * norm(newton)
    if radius == 0:
        return 0.0
    rng = np.random.default_rng(0)
    directions = [newton, *rng.standard_normal((2, len(x)))]
    fastest = 0.0
    for direction in directions:
        for sign in (1.0, -1.0):
            y = x + sign * radius * direction / norm(direction)
            moved = norm(y - x)
            if moved > 0:  # a step below the spacing of floats says nothing
                difference = hess(y) - H
                if not np.isfinite(difference).all():
                    return math.inf
                change = float(np.linalg.norm(difference, 2))
                # Below its rounding error a change in the Hessian is not one.
                change = max(0.0, change - 8 * len(x) * _EPS * float(np.linalg.norm(H, 2)))
                fastest = max(fastest, change / moved)
    return fastest
