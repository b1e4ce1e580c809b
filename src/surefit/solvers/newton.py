r"""Newton's method, damped (OPT-10).

The second-order Taylor model
:math:`f(x) + \nabla f^\top (y - x) + \tfrac12 (y - x)^\top \nabla^2 f\,(y - x)` is minimised by

.. math:: x \leftarrow x - \gamma\, [\nabla^2 f(x)]^{-1} \nabla f(x),

with :math:`\gamma = 1` tried first and halved until f falls enough (Armijo). Where the Hessian is not
positive definite, a multiple of the identity is added until it is, so that the direction is always one
of descent.

Guarantee. A quadratic with a positive definite Hessian takes one step. Near a minimum with a positive
definite, Lipschitz Hessian the full step is accepted and the error squares at each step; from afar, the
line search makes every limit point of a bounded run stationary.

References
----------
J. Nocedal, S. Wright. Numerical Optimization, algorithms 3.2 and 3.3. Springer, 2006.
S. Boyd, L. Vandenberghe. Convex Optimization, section 9.5. Cambridge, 2004.

Examples
--------
>>> import numpy as np
>>> A, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 0.0])
>>> f, grad, hess = lambda x: x @ A @ x / 2 - b @ x, lambda x: A @ x - b, lambda x: A
>>> next(newton(f, grad, hess, [10.0, -10.0])).x.round(12)
array([ 0.4, -0.2])
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..iterate import Iterate
from ._typing import Gradient, Hessian, Objective, Vector, norm, vector
from .linesearch import armijo

__all__ = ["newton"]


def newton(
    f: Objective,
    grad: Gradient,
    hess: Hessian,
    x0: ArrayLike,
    step: float = 1.0,
    *,
    armijo_c: float = 1e-4,
) -> Iterator[Iterate]:
    """Damped Newton with an Armijo line search.

    Parameters
    ----------
    f, grad, hess : callable
        The function, its gradient of shape (n,) and its Hessian of shape (n, n).
    x0 : array-like of shape (n,)
        Where to start.
    step : float
        The damping tried first; 1 is Newton's own.
    armijo_c : float in (0, 1/2)
        The share of the predicted decrease that a step must achieve.

    Yields
    ------
    Iterate
        ``estimate`` is the gradient norm and ``step`` the damping. The generator ends when no step
        along the Newton direction changes the point any more.
    """
    if not 0 < armijo_c < 0.5:
        raise ValueError(f"armijo_c must be in (0, 1/2), got {armijo_c!r}; 1e-4 is usual.")
    if not 0 < step <= 1:
        raise ValueError(f"step must be in (0, 1] for Newton's method, got {step!r}; 1 is usual.")
    x = vector(x0)
    fx, g = f(x), grad(x)
    while True:
        direction = -_solve_shifted(hess(x), g)
        trial = armijo(f, grad, x, fx, g, direction, step, c=armijo_c)
        if trial.step == 0.0 or np.array_equal(trial.x, x):
            return
        x, fx = trial.x, trial.value
        g = grad(x)
        yield Iterate(x, fx, norm(g), trial.step)


def _solve_shifted(H: Vector, g: Vector) -> Vector:
    """Solve (H + shift I) d = g for the first shift = 0, s, 2s, 4s, ... with a Cholesky factor."""
    H = 0.5 * (H + H.T)
    if not np.isfinite(H).all():
        raise ValueError(
            "hess(x) must be finite, got NaN or infinity; start nearer, or use method='gd'."
        )
    scale = norm(H) or norm(g) or 1.0
    shift = 0.0
    if np.min(np.diag(H)) <= 0:  # no Cholesky without a shift: start where the diagonal is positive
        shift = 1e-3 * scale - float(np.min(np.diag(H)))
    while True:
        try:
            factor = cho_factor(H + shift * np.eye(len(g)), check_finite=False)
        except LinAlgError:
            shift = max(2 * shift, 1e-3 * scale)
        else:
            direction: Vector = cho_solve(factor, g, check_finite=False)
            return direction
