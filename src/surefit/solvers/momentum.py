r"""Gradient descent with momentum (OPT-7).

.. math:: m \leftarrow \beta m + (1 - \beta)\, g, \qquad x \leftarrow x - \eta_t\, m,
          \qquad g = \nabla f(x)

The direction is an exponential average of the gradients seen so far: under a constant gradient
:math:`m_t = (1 - \beta^t)\, g`.

Guarantee. On an L-smooth, m-strongly convex quadratic it converges linearly for any
:math:`\eta < \frac{1+\beta}{1-\beta}\frac2L`; with the best parameters the factor is
:math:`(\sqrt L - \sqrt m)/(\sqrt L + \sqrt m)`. There is no such theorem for general convex
functions, so a run is certified by its end point alone.

References
----------
B. Polyak. Some methods of speeding up the convergence of iteration methods. USSR Computational
Mathematics and Mathematical Physics 4, 1964.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> steps = momentum(lambda x: np.ones(1), [0.0], 1.0, beta=0.5)  # a constant gradient, from m = 0
>>> x = [0.0] + [float(it.x[0]) for it in islice(steps, 3)]
>>> [a - b for a, b in zip(x, x[1:])]  # m_t = (1 - beta^t) g
[0.5, 0.75, 0.875]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, vector
from .schedules import StepSize, as_schedule

__all__ = ["momentum"]


def momentum(
    grad: Gradient, x0: ArrayLike, step: StepSize, *, beta: float = 0.9
) -> Iterator[Iterate]:
    """Descent along the running average of the gradients.

    Parameters
    ----------
    grad : callable
        The gradient; with :func:`~surefit.solvers.stochastic.minibatch`, a stochastic one.
    x0 : array-like of shape (n,)
        Where to start.
    step : float or callable
        A number or a schedule.
    beta : float in [0, 1)
        How much of the old direction is kept; 0 is gradient descent.

    Yields
    ------
    Iterate
        Without value or estimate.
    """
    if not 0 <= beta < 1:
        raise ValueError(
            f"beta must be in [0, 1), got {beta!r}; 0.9 is usual, 0 is gradient descent."
        )
    eta = as_schedule(step)
    x = vector(x0)
    m = np.zeros_like(x)
    for t in count():
        m = beta * m + (1 - beta) * grad(x)
        x = x - eta(t) * m
        yield Iterate(x, step=eta(t))
