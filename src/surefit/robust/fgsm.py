r"""One linearised step: the fast gradient (sign) method (ADV-3, ADV-4).

To first order the loss grows most along the allowed point that is best for a linear function. With the margin
y g(x) its gradient is y ∇g, and

    l2:    x - eps y ∇g / ||∇g||_2,        linf:    x - eps y sign(∇g),

with first-order gains eps ||∇g||_2 and eps ||∇g||_1. For a linear model this is the exact worst case.

Reference: Goodfellow, Shlens & Szegedy, "Explaining and harnessing adversarial examples" (2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._attack import AttackResult, begin, finish, slope_of
from .network import is_network
from .threat import Threat

__all__ = ["fgsm"]


def fgsm(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    random_state: Any = None,
    score: Any = None,
    gradient: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row by one step to the worst point of the linearised loss.

    Parameters
    ----------
    model : estimator
        With ``predict``, and scores (see :func:`surefit.robust.scores`); or a network, see
        :func:`surefit.robust.network`.
    X, y : array-like
        Rows and their labels; for a network pictures and tensors too.
    threat : Threat
        What is allowed.
    random_state : default=None
        Kept for the common signature: nothing here is random.
    score, gradient, classes : default=None
        See :func:`surefit.robust.scores`.

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.linear_model import LogisticRegression
    >>> from surefit.robust import Threat, fgsm
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1, -1, 1, 1])
    >>> found = fgsm(LogisticRegression().fit(X, y), X, y, Threat(1.5))
    >>> found.x_adv.ravel().tolist(), found.success.tolist()
    ([-0.5, 0.5, -0.5, 0.5], [False, True, True, False])
    """
    if score is None and is_network(model):
        from ._network_pgd import network_fgsm

        return network_fgsm(model, X, y, threat, classes=classes)
    task = begin(model, X, y, threat, score=score, gradient=gradient, classes=classes, needs="fgsm")
    x0, codes = task.take()
    slope, cost = slope_of(task.scores, x0, codes)
    found = threat.worst_linear(x0, -slope).x
    return finish(task, found, np.full(len(codes), cost, dtype=np.int64))
