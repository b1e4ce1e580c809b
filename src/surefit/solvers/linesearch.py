r"""Step lengths found by trial: sufficient decrease for a direction, a majoriser for a proximal step.

Both tests compare function values, and near a minimum what they look for is less than the rounding error
of these. There, and only there, the same test is made on gradients: by the trapezoidal rule
:math:`f(x + td) - f(x) \approx \tfrac t2 (\nabla f(x) + \nabla f(x + td))^\top d` (exact on quadratics),
so that the line search can go on to the precision of the gradient (Hager & Zhang, 2005).

References
----------
L. Armijo. Minimization of functions having Lipschitz continuous first partial derivatives. 1966.
W. Hager, H. Zhang. A new conjugate gradient method with guaranteed descent and an efficient line
search. SIAM Journal on Optimization 16, 2005.
A. Beck, M. Teboulle. A fast iterative shrinkage-thresholding algorithm. SIAM J. Imaging Sci. 2, 2009.

Examples
--------
>>> import numpy as np
>>> f, grad = lambda x: float(2 * x @ x), lambda x: 4 * x
>>> x = np.array([1.0])
>>> t, x_new, f_new = armijo(f, grad, x, f(x), grad(x), -grad(x), 1.0, c=0.5)
>>> t, float(x_new[0])
(0.25, 0.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._typing import Gradient, Objective, Prox, Vector

__all__ = ["Backtracking", "Trial", "armijo", "majorised"]

_EPS = float(np.finfo(np.float64).eps)
_MOST_HALVINGS = 100


@dataclass(frozen=True)
class Backtracking:
    """Find the step by trial: start from ``initial``, multiply by ``shrink`` until the test passes.

    ``grow`` is the factor by which the next search starts above the last accepted step
    (1: steps never grow).
    """

    initial: float = 1.0
    shrink: float = 0.5
    grow: float = 2.0

    def __post_init__(self) -> None:
        if not (0 < self.initial < np.inf and 0 < self.shrink < 1 <= self.grow < np.inf):
            raise ValueError(
                "Backtracking needs initial > 0, 0 < shrink < 1 and grow >= 1, got "
                f"initial={self.initial!r}, shrink={self.shrink!r}, grow={self.grow!r}; "
                "the defaults 1, 0.5 and 2 suit most functions."
            )


class Trial(NamedTuple):
    """An accepted step: its length (0 when none was found), the new point and its value."""

    step: float
    x: Vector
    value: float


def armijo(
    f: Objective,
    grad: Gradient,
    x: Vector,
    fx: float,
    g: Vector,
    direction: Vector,
    t: float,
    *,
    c: float = 1e-4,
    shrink: float = 0.5,
) -> Trial:
    r"""The first of t, t·shrink, ... with :math:`f(x + td) \le f(x) + c\,t\,g^\top d`.

    With ``direction = -g`` and ``c = 1/2`` this is the descent inequality of an L-smooth function
    (CVX-6), which any :math:`t \le 1/L` satisfies.
    """
    slope = float(g @ direction)
    for _ in range(_MOST_HALVINGS):
        x_new = x + t * direction
        f_new = f(x_new)
        if abs(t * slope) <= _rounding(fx, f_new):
            enough = float(grad(x_new) @ direction) <= (2 * c - 1) * slope
        else:
            enough = f_new <= fx + c * t * slope
        if enough:
            return Trial(t, x_new, f_new)
        t *= shrink
    return Trial(0.0, x, fx)


def majorised(
    f: Objective,
    grad: Gradient,
    y: Vector,
    fy: float,
    g: Vector,
    prox: Prox,
    t: float,
    *,
    shrink: float = 0.5,
) -> Trial:
    r"""The first proximal step z whose quadratic model lies above f at z.

    With :math:`z = \mathrm{prox}_t(y - tg)` and :math:`d = z - y`, the test is
    :math:`f(z) \le f(y) + g^\top d + \|d\|^2 / (2t)`, which any :math:`t \le 1/L` satisfies.
    """
    for _ in range(_MOST_HALVINGS):
        z = prox(y - t * g, t)
        d = z - y
        square = float(d @ d)
        fz = f(z)
        if square / (2 * t) <= _rounding(fy, fz):
            above = float((grad(z) - g) @ d) <= square / t
        else:
            above = fz <= fy + float(g @ d) + square / (2 * t)
        if above:
            return Trial(t, z, fz)
        t *= shrink
    return Trial(0.0, y, fy)


def _rounding(a: float, b: float) -> float:
    """Below this a difference of the two values is mostly rounding error; -1 where they are not finite."""
    return 64 * _EPS * max(abs(a), abs(b)) if math.isfinite(a) and math.isfinite(b) else -1.0
