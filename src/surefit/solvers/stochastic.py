r"""Stochastic and mini-batch gradient descent (OPT-5, OPT-6).

For a mean of n terms, :math:`f = \frac1n\sum_i f_i`, draw a batch B uniformly and step along

.. math:: g = \frac{1}{|B|} \sum_{i \in B} \nabla f_i(x), \qquad x \leftarrow x - \eta_t\, g.

The estimate is unbiased, :math:`E[g] = \nabla f(x)`, and one step costs :math:`\Theta(|B| D)`. Batches
are drawn without replacement: |B| = n is gradient descent to the last bit, |B| = 1 is SGD, and the
variance is that of one term times :math:`\frac{1}{|B|}\frac{n - |B|}{n - 1}`.

Guarantee. With steps that satisfy the Robbins-Monro conditions (see
:mod:`surefit.solvers.schedules`) it converges with probability one; for convex f with step
:math:`c/\sqrt k` the averaged iterate is within :math:`O(1/\sqrt k)` of the minimum in expectation. With
a constant step it ends in a ball whose radius shrinks with the step, never at a point.

References
----------
H. Robbins, S. Monro. A stochastic approximation method. Annals of Mathematical Statistics 22, 1951.
L. Bottou, F. Curtis, J. Nocedal. Optimization methods for large-scale machine learning. SIAM
Review 60, 2018.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> y = np.array([1.0, 2.0, 6.0])
>>> def grad_at(w, rows):  # of the mean of (w - y_i)^2 / 2 over the rows
...     return w - y[rows].mean(keepdims=True)
>>> full = sgd(grad_at, [0.0], 1.0, n_samples=3, batch_size=3)
>>> float(next(full).x[0])
3.0
>>> single = sgd(grad_at, [0.0], 1.0, n_samples=3, batch_size=1, random_state=0)
>>> sorted({float(it.x[0]) for it in islice(single, 50)})
[1.0, 2.0, 6.0]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import ArrayLike

from ..iterate import Iterate
from ._typing import BatchGradient, Gradient, RandomState, Vector, as_generator, vector
from .schedules import StepSize, as_schedule

__all__ = ["minibatch", "sgd"]


def minibatch(
    grad_at: BatchGradient, n_samples: int, batch_size: int = 1, random_state: RandomState = None
) -> Gradient:
    """A gradient that draws a new batch at every call.

    Any solver that takes a gradient becomes stochastic with it: momentum, Adam, sign, projected and
    subgradient descent.

    Parameters
    ----------
    grad_at : callable
        ``grad_at(x, indices)`` is the mean gradient of the terms ``indices``.
    n_samples : int
        How many terms there are.
    batch_size : int
        How many to draw; ``n_samples`` gives the full gradient.
    random_state : int, Generator, RandomState or None
        Where the draws come from.

    Examples
    --------
    >>> import numpy as np
    >>> g = minibatch(lambda x, rows: x * rows.mean(), n_samples=5, batch_size=5)
    >>> g(np.ones(1))
    array([2.])
    """
    if n_samples < 1:
        raise ValueError(
            f"n_samples must be at least 1, got {n_samples!r}; it counts the terms of f."
        )
    if not 1 <= batch_size <= n_samples:
        raise ValueError(
            f"batch_size must be between 1 and n_samples={n_samples}, got {batch_size!r}; "
            "1 is stochastic gradient descent and n_samples is gradient descent."
        )
    rng = as_generator(random_state)
    everything = np.arange(n_samples)

    def draw(x: Vector) -> Vector:
        if batch_size == n_samples:
            return grad_at(x, everything)
        if batch_size == 1:
            return grad_at(x, rng.integers(n_samples, size=1))
        return grad_at(x, rng.choice(n_samples, size=batch_size, replace=False, shuffle=False))

    return draw


def sgd(
    grad_at: BatchGradient,
    x0: ArrayLike,
    step: StepSize,
    *,
    n_samples: int,
    batch_size: int = 1,
    random_state: RandomState = None,
) -> Iterator[Iterate]:
    """Mini-batch gradient descent; ``batch_size=1`` is SGD and ``batch_size=n_samples`` is GD.

    Parameters
    ----------
    grad_at, n_samples, batch_size, random_state
        As in :func:`minibatch`.
    x0 : array-like of shape (n,)
        Where to start.
    step : float or callable
        A number or a schedule.

    Yields
    ------
    Iterate
        Without value or estimate: either would cost a pass over all the terms.
    """
    eta = as_schedule(step)
    grad = minibatch(grad_at, n_samples, batch_size, random_state)
    x = vector(x0)
    for t in count():
        x = x - eta(t) * grad(x)
        yield Iterate(x, step=eta(t))
