r"""Expectation maximisation: one loop for every latent-variable model (EM-1).

For any distribution q over the latent z,

    log p(x|theta) = F(q, theta) + KL(q || p(z|x, theta)),     F(q, theta) = E_q log [p(x, z|theta) / q(z)].

The E-step makes the divergence 0 (q' is the posterior at theta), the M-step raises F over theta, so

    L(theta') >= F(q', theta') >= F(q', theta) = L(theta):

the likelihood never falls. What a model gives is the two steps; all it hands from one to the other is its
sufficient statistics, so the posteriors of all rows need never exist at once.

References
----------
Dempster, Laird & Rubin, "Maximum likelihood from incomplete data via the EM algorithm", JRSS B 39 (1977);
Neal & Hinton, "A view of the EM algorithm that justifies incremental, sparse, and other variants" (1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ..iterate import Iterate

__all__ = ["expectation_maximisation"]


def expectation_maximisation(
    theta: Any,
    expect: Callable[[Any], tuple[Any, float]],
    maximise: Callable[[Any], Any],
    before: float = -math.inf,
) -> Iterator[Iterate]:
    """``theta`` after each round of both steps, with the objective at the theta before the round.

    Parameters
    ----------
    theta : Any
        Where to start.
    expect : callable
        theta -> (statistics, objective at theta).
    maximise : callable
        statistics -> the next theta.
    before : float
        The objective one step earlier, where a run goes on.

    Yields
    ------
    Iterate
        Its ``estimate`` is just above the change of the objective, so that "at most tol" there is
        "less than tol" here, scikit-learn's rule.

    Examples
    --------
    >>> halve = expectation_maximisation(1.0, lambda x: (x, -x * x), lambda x: x / 2)
    >>> [(step.x, step.value) for step, _ in zip(halve, range(2))]
    [(0.5, -1.0), (0.25, -0.25)]
    """
    while True:
        statistics, value = expect(theta)
        theta = maximise(statistics)
        change = abs(value - before)
        yield Iterate(theta, value, math.nextafter(change, math.inf))
        before = value
