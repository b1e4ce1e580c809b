r"""Adam (OPT-8).

.. math::

    m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad
    v_i \leftarrow \beta_2 v_i + (1 - \beta_2)\, g_i^2, \qquad
    x_i \leftarrow x_i - \eta_t\, \hat m_i / (\sqrt{\hat v_i} + \varepsilon)

with the bias correction :math:`\hat m = m / (1 - \beta_1^t)`, :math:`\hat v = v / (1 - \beta_2^t)` of the
paper, by which the first step is :math:`\eta\,\mathrm{sign}(g)`. ``bias_correction=False`` is the form of the
notes, :math:`\hat m = m`, :math:`\hat v = v`, :math:`\varepsilon = 0`: with the usual betas its first step is
:math:`(1-\beta_1)/\sqrt{1-\beta_2} = 3.1623` times longer.

Guarantee. None in general: Adam can fail to converge even on convex problems (Reddi et al., 2018), and with
a constant step it hovers. A run is certified by its end point alone.

References
----------
D. Kingma, J. Ba. Adam: a method for stochastic optimization. ICLR 2015.
S. Reddi, S. Kale, S. Kumar. On the convergence of Adam and beyond. ICLR 2018.

Examples
--------
>>> import numpy as np
>>> grad = lambda x: np.array([4.0, -0.25])
>>> next(adam(grad, [0.0, 0.0], 1.0, eps=0.0)).x
array([-1.,  1.])
>>> next(adam(grad, [0.0, 0.0], 1.0, bias_correction=False)).x.round(4)
array([-3.1623,  3.1623])
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, vector
from .schedules import StepSize, as_schedule

__all__ = ["adam"]


def adam(
    grad: Gradient,
    x0: ArrayLike,
    step: StepSize = 1e-3,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float | None = None,
    bias_correction: bool = True,
) -> Iterator[Iterate]:
    """Momentum with a step length for each coordinate.

    Parameters
    ----------
    grad : callable
        The gradient; with :func:`~surefit.solvers.stochastic.minibatch`, a stochastic one.
    x0 : array-like of shape (n,)
        Where to start.
    step : float or callable
        A number or a schedule.
    beta1, beta2 : float in [0, 1)
        Memory of the averages of the gradient and of its square.
    eps : float, optional
        Added to the denominator; by default 1e-8 with bias correction and 0 without. A coordinate
        that has never had a gradient does not move.
    bias_correction : bool
        True is the paper's form, False the notes'.

    Yields
    ------
    Iterate
        Without value or estimate.
    """
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0 <= beta < 1:
            raise ValueError(f"{name} must be in [0, 1), got {beta!r}; 0.9 and 0.999 are usual.")
    if eps is None:
        eps = 1e-8 if bias_correction else 0.0
    if not 0 <= eps < np.inf:
        raise ValueError(f"eps must be finite and at least 0, got {eps!r}; 1e-8 is usual.")
    eta = as_schedule(step)
    x = vector(x0)
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t in count():
        g = grad(x)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        m_hat, v_hat = m, v
        if bias_correction:
            m_hat = m / (1 - beta1 ** (t + 1))
            v_hat = v / (1 - beta2 ** (t + 1))
        root = np.sqrt(v_hat) + eps
        x = x - eta(t) * np.divide(m_hat, root, out=np.zeros_like(x), where=root != 0)
        yield Iterate(x, step=eta(t))
