r"""Attacks that see scores but no gradient (ADV-6).

The gradient of the margin is estimated from scores:

* forward differences, :math:`(g(x+\alpha e_i) - g(x))/\alpha`: d + 1 queries, error O(alpha);
* central differences, :math:`(g(x+\alpha e_i) - g(x-\alpha e_i))/2\alpha`: 2d queries, error O(alpha^2);
* random directions, the mean of :math:`\frac{g(x+\alpha u)-g(x-\alpha u)}{2\alpha} u` over Gaussian u: two
  queries a direction, however many features there are. Its expectation is the gradient of a smoothed g.

Reference: Ilyas, Engstrom, Athalye & Lin, "Black-box adversarial attacks with limited queries" (2018).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._namespace import array_namespace, like
from ._attack import AttackResult, begin, difference_gradient
from .pgd import descend
from .threat import Threat

__all__ = ["Estimate", "estimate_gradient", "score_based"]

_METHODS = ("forward", "central", "random")


class Estimate(NamedTuple):
    """A gradient estimated from scores.

    Attributes
    ----------
    gradient : array of shape (n, d)
    queries : int
        Scores asked for, a row.
    """

    gradient: Any
    queries: int


def estimate_gradient(
    score: Any,
    X: Any,
    *,
    method: str = "forward",
    alpha: float = 1e-4,
    samples: int = 50,
    random_state: Any = None,
) -> Estimate:
    """The gradient of ``score(X)``, one number a row, from its values.

    Parameters
    ----------
    score : callable
        Rows to numbers.
    X : array of shape (n, d)
    method : {"forward", "central", "random"}, default="forward"
    alpha : float, default=1e-4
        Length of a difference.
    samples : int, default=50
        Random directions.
    random_state : default=None
        Of the random directions.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> found = estimate_gradient(lambda X: (X**2).sum(axis=1), np.array([[1.0, 2.0]]), method="central")
    >>> found.gradient.round(6).tolist(), found.queries
    ([[2.0, 4.0]], 4)
    """
    _check(method, alpha, samples)
    codes = np.zeros(int(X.shape[0]), dtype=np.intp)
    return _estimate(
        lambda x, _: score(x), X, codes, method, alpha, samples, check_random_state(random_state)
    )


def score_based(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    method: str = "forward",
    alpha: float = 1e-3,
    samples: int = 50,
    n_iter: int = 10,
    step_size: float | None = None,
    restarts: int = 1,
    random_state: Any = None,
    score: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row by projected steps along gradients estimated from scores.

    Parameters
    ----------
    model, X, y, threat, score, classes
        As in :func:`fgsm`.
    method, alpha, samples
        As in :func:`estimate_gradient`.
    n_iter, step_size, restarts, random_state
        As in :func:`pgd`.

    Returns
    -------
    AttackResult
        ``queries`` counts every row of scores that was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from surefit.robust import Threat, score_based
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> score_based(GaussianNB().fit(X, y), X, y, Threat(1.5)).success.tolist()
    [False, True, True, False]
    """
    _check(method, alpha, samples)
    task = begin(model, X, y, threat, score=score, classes=classes, needs="score_based")
    random = check_random_state(random_state)

    def slope(x: Any, codes: NDArray[np.intp]) -> tuple[Any, int]:
        return _estimate(task.scores.margin, x, codes, method, alpha, samples, random)

    return descend(
        task, slope, n_iter=n_iter, step_size=step_size, restarts=restarts, random_state=random,
        counted=True,
    )  # fmt: skip


def _estimate(
    margin: Any,
    X: Any,
    codes: NDArray[np.intp],
    method: str,
    alpha: float,
    samples: int,
    random: Any,
) -> Estimate:
    if method != "random":
        return Estimate(*difference_gradient(margin, X, codes, alpha, central=method == "central"))
    xp = array_namespace(X)
    total = 0.0 * X
    for _ in range(samples):
        u = random.standard_normal(tuple(int(size) for size in X.shape))
        u = xp.astype(like(u, X), X.dtype)
        rise = (margin(X + alpha * u, codes) - margin(X - alpha * u, codes)) / (2.0 * alpha)
        total = total + rise[:, None] * u
    return Estimate(total / samples, 2 * samples)


def _check(method: str, alpha: float, samples: int) -> None:
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}.")
    if not alpha > 0 or not np.isfinite(alpha):
        raise ValueError(f"alpha must be a positive number, got {alpha!r}.")
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples!r}.")
