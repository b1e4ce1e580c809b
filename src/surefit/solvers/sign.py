r"""Sign descent (OPT-9): one bit a coordinate.

.. math:: x_i \leftarrow x_i - \eta_t\, \mathrm{sign}(g_i)

Only the signs of the gradient travel, so a worker sends one bit a coordinate instead of a float. Every
step has length :math:`\eta_t` in the maximum norm, whatever the gradient: with a constant step the iterates
end up hovering at distance :math:`O(\eta)` of a minimum and never settle. The certificate of such a run
says so, because the gradient norm stays above the tolerance.

References
----------
J. Bernstein, Y.-X. Wang, K. Azizzadenesheli, A. Anandkumar. signSGD: compressed optimisation for
non-convex problems. ICML 2018.

Examples
--------
>>> from itertools import islice
>>> steps = sign_descent(lambda x: x, [0.25], 0.5)
>>> [float(it.x[0]) for it in islice(steps, 4)]  # hovers around the minimum at 0
[-0.25, 0.25, -0.25, 0.25]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, vector
from .schedules import StepSize, as_schedule

__all__ = ["sign_descent"]


def sign_descent(grad: Gradient, x0: ArrayLike, step: StepSize) -> Iterator[Iterate]:
    """Descent along the sign of the gradient; with a mini-batch gradient it is sign-SGD.

    Parameters
    ----------
    grad : callable
        The gradient; with :func:`~surefit.solvers.stochastic.minibatch`, a stochastic one.
    x0 : array-like of shape (n,)
        Where to start.
    step : float or callable
        A number or a schedule. Only a schedule that goes to zero can converge.

    Yields
    ------
    Iterate
        Without value or estimate.
    """
    eta = as_schedule(step)
    x = vector(x0)
    for t in count():
        x = x - eta(t) * np.sign(grad(x))
        yield Iterate(x, step=eta(t))
