r"""Subgradient descent, full and stochastic (OPT-11).

.. math:: x \leftarrow x - \gamma_t\, g, \qquad g \in \partial f(x)

For a convex f that need not be differentiable. A subgradient step may increase f, and subgradients do
not vanish at a minimum (:math:`|x|` has slope 1 right next to it), so the method keeps its best iterate, and
is judged by a theorem rather than by a gradient norm.

Guarantee. With :math:`R \ge \|x_0 - x^\star\|` and :math:`G \ge \|g_t\|`, after k steps

.. math:: \min_{i \le k} f(x_i) - f^\star \le \frac{R^2 + G^2 \sum_t \gamma_t^2}{2\sum_t \gamma_t}.

Proof: sum :math:`\|x_{t+1} - x^\star\|^2 \le \|x_t - x^\star\|^2 - 2\gamma_t (f(x_t) - f^\star) +
\gamma_t^2\|g_t\|^2`. The same sum bounds the expected gap of the :math:`\gamma`-weighted average of the
iterates when g is an unbiased estimate. With :math:`\gamma_t = c/\sqrt{t}` it falls as
:math:`\log k/\sqrt k`.

References
----------
N. Shor. Minimization Methods for Non-Differentiable Functions. Springer, 1985.
S. Boyd, L. Xiao, A. Mutapcic. Subgradient methods. Lecture notes, Stanford, 2003.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> from surefit.solvers import InverseSqrt
>>> f, subgrad = lambda x: float(np.abs(x).sum()), np.sign
>>> steps = list(islice(subgradient_descent(f, subgrad, [1.0], InverseSqrt(0.3), radius=1.0), 400))
>>> steps[-1].value <= steps[-1].estimate  # the bound; f* = 0
True
>>> all(a.value >= b.value for a, b in zip(steps, steps[1:]))  # the best iterate
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import Gradient, Objective, Vector, norm, vector
from .schedules import StepSize, as_schedule

__all__ = ["stochastic_subgradient", "subgradient_descent"]


def subgradient_descent(
    f: Objective,
    subgrad: Gradient,
    x0: ArrayLike,
    step: StepSize,
    *,
    radius: float | None = None,
    lipschitz: float | None = None,
) -> Iterator[Iterate]:
    """Subgradient descent, which yields its best iterate.

    Parameters
    ----------
    f, subgrad : callable
        A convex function and any one of its subgradients.
    x0 : array-like of shape (n,)
        Where to start.
    step : float or callable
        A number or a schedule; ``InverseSqrt`` is the one the theory asks for.
    radius : float, optional
        R, at least the distance from x0 to a minimiser. Without it there is no estimate.
    lipschitz : float, optional
        G, at least every subgradient norm. Without it the measured norms are used, which is sharper.

    Yields
    ------
    Iterate
        ``x`` and ``value`` are the best so far, ``estimate`` the theorem's bound on the gap of the best,
        ``step`` the step just taken.
    """
    _check_constants(radius, lipschitz)
    eta = as_schedule(step)
    x = vector(x0)
    best_x, best_value = x, f(x)
    total, squares = 0.0, 0.0
    for t in count():
        g = subgrad(x)
        gamma = eta(t)
        total += gamma
        squares += (gamma * (norm(g) if lipschitz is None else lipschitz)) ** 2
        x = x - gamma * g
        value = f(x)
        if value < best_value:
            best_x, best_value = x, value
        yield Iterate(best_x, best_value, _bound(radius, squares, total), gamma)


def stochastic_subgradient(
    subgrad: Gradient,
    x0: ArrayLike,
    step: StepSize,
    *,
    radius: float | None = None,
    lipschitz: float | None = None,
) -> Iterator[Iterate]:
    """Stochastic subgradient descent, which yields the step-weighted average of its iterates.

    The best iterate is of no use here: finding it would cost a full evaluation a step.

    Parameters
    ----------
    subgrad : callable
        An unbiased estimate of a subgradient, such as :func:`~surefit.solvers.stochastic.minibatch` makes.
    x0, step, radius, lipschitz
        As in :func:`subgradient_descent`; the bound holds in expectation.

    Yields
    ------
    Iterate
        ``x`` is the average of x_0, ..., x_{k-1} with the steps as weights; no value.
    """
    _check_constants(radius, lipschitz)
    eta = as_schedule(step)
    x = vector(x0)
    average: Vector = x
    total, squares = 0.0, 0.0
    for t in count():
        g = subgrad(x)
        gamma = eta(t)
        total += gamma
        squares += (gamma * (norm(g) if lipschitz is None else lipschitz)) ** 2
        if total > 0:
            average = average + (gamma / total) * (x - average)
        x = x - gamma * g
        yield Iterate(average, estimate=_bound(radius, squares, total), step=gamma)


def _bound(radius: float | None, squares: float, total: float) -> float:
    if radius is None:
        return math.nan
    return (radius**2 + squares) / (2 * total) if total > 0 else math.inf


def _check_constants(radius: float | None, lipschitz: float | None) -> None:
    for name, value in (("radius", radius), ("lipschitz", lipschitz)):
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(
                f"{name} must be finite and at least 0, got {value!r}; leave it out if it is unknown."
            )
