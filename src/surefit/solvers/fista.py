r"""FISTA: accelerated proximal gradient for :math:`F = f + g`, f smooth, g with a proximal operator.

.. math::

    x_k = \mathrm{prox}_{tg}\bigl(y_k - t\nabla f(y_k)\bigr), \qquad
    \theta_{k+1} = \tfrac12\bigl(1 + \sqrt{1 + 4\theta_k^2}\bigr), \qquad
    y_{k+1} = x_k + \frac{\theta_k - 1}{\theta_{k+1}} (x_k - x_{k-1})

with :math:`\mathrm{prox}_{tg}(v) = \arg\min_u g(u) + \|u - v\|^2/(2t)`: soft-thresholding for the l1
norm, the projection for a constraint, the identity for no g at all (Nesterov's accelerated gradient).

Guarantee. For convex f, L-smooth, and :math:`t \le 1/L` (or found by backtracking, steps never growing),
:math:`F(x_k) - F^\star \le 2\|x_0 - x^\star\|^2 / (t (k+1)^2)`. With ``restart=True`` the momentum is
dropped whenever it points uphill, :math:`(y_k - x_k)^\top(x_k - x_{k-1}) > 0`: then convergence on
strongly convex functions is linear in practice without knowing the constant, and the bound above is
not claimed.

References
----------
A. Beck, M. Teboulle. A fast iterative shrinkage-thresholding algorithm for linear inverse problems.
SIAM Journal on Imaging Sciences 2, 2009.
B. O'Donoghue, E. Candès. Adaptive restart for accelerated gradient schemes. Foundations of
Computational Mathematics 15, 2015.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> b = np.array([3.0, -0.5])  # min ||x - b||^2 / 2 + ||x||_1 is soft-thresholding
>>> f, grad = lambda x: float((x - b) @ (x - b) / 2), lambda x: x - b
>>> prox = lambda v, t: np.sign(v) * np.maximum(np.abs(v) - t, 0)
>>> *_, last = islice(fista(f, grad, [0.0, 0.0], prox, lambda x: np.abs(x).sum(), 1.0), 5)
>>> last.x + 0.0
array([2., 0.])
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, Objective, Prox, Vector, norm, vector
from .linesearch import Backtracking, Trial, majorised
from .schedules import as_schedule

__all__ = ["fista"]

_MOST_DOUBLINGS = 30


def fista(
    f: Objective,
    grad: Gradient,
    x0: ArrayLike,
    prox: Prox | None = None,
    penalty: Objective | None = None,
    step: float | Backtracking | None = None,
    *,
    restart: bool = True,
) -> Iterator[Iterate]:
    """Accelerated proximal gradient, with restart and backtracking.

    Parameters
    ----------
    f, grad : callable
        The smooth part and its gradient.
    x0 : array-like of shape (n,)
        Where to start.
    prox : callable, optional
        ``prox(v, t)``, the proximal operator of g; the identity by default.
    penalty : callable, optional
        The value of g; zero by default (as for a projection).
    step : float or Backtracking, optional
        A constant step at most 1/L, or a line search (the default), whose first step is found by
        trying larger and whose later steps never grow.
    restart : bool
        Drop the momentum when it points uphill.

    Yields
    ------
    Iterate
        ``value`` is f + g; ``estimate`` is the gradient mapping ``||y - x|| / t`` of the step.
    """
    identity_prox: Prox = lambda v, t: v  # noqa: E731
    prox = identity_prox if prox is None else prox
    search = Backtracking() if step is None else step
    if callable(search):
        raise TypeError(
            f"step must be a number or Backtracking() for FISTA, got {step!r}; its theory needs steps "
            "that do not vary."
        )
    t = search.initial if isinstance(search, Backtracking) else as_schedule(search)(0)
    x = y = vector(x0)
    theta, first = 1.0, True
    while True:
        g = grad(y)
        if not isinstance(search, Backtracking):
            z = prox(y - t * g, t)
            trial = Trial(t, z, f(z))
        elif first:
            trial = _largest(f, grad, y, g, prox, search)
        else:
            trial = majorised(f, grad, y, f(y), g, prox, t, shrink=search.shrink)
        if trial.step == 0.0:
            return
        first, t, x_new = False, trial.step, trial.x
        uphill = restart and float((y - x_new) @ (x_new - x)) > 0
        estimate = norm(y - x_new) / t
        if uphill:
            theta, y = 1.0, x_new
        else:
            theta_new = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * theta * theta))
            y = x_new + ((theta - 1.0) / theta_new) * (x_new - x)
            theta = theta_new
        x = x_new
        yield Iterate(x, trial.value + (penalty(x) if penalty is not None else 0.0), estimate, t)


def _largest(
    f: Objective, grad: Gradient, y: Vector, g: Vector, prox: Prox, search: Backtracking
) -> Trial:
    """The first step: from ``initial``, multiplied by ``grow`` as long as the test passes."""
    fy = f(y)
    trial = majorised(f, grad, y, fy, g, prox, search.initial, shrink=search.shrink)
    if trial.step < search.initial or search.grow == 1.0:
        return trial
    for _ in range(_MOST_DOUBLINGS):
        larger = trial.step * search.grow
        further = majorised(f, grad, y, fy, g, prox, larger, shrink=search.shrink)
        if further.step < larger or not np.isfinite(further.value):
            break
        trial = further
    return trial
