"""Rosenblatt's perceptron, as generators of iterates.

The rule (PER-1): visit the rows in order; on a mistake, ``y (<x, w> + b) <= 0``, add ``y x`` to ``w`` and
``y`` to ``b``. It is stochastic subgradient descent with a constant step on the perceptron loss
(1/n) sum [-y (<x, w> + b)]_+ (PER-4), and with ``l1`` or ``l2`` on that loss plus
l1 ||w||_1 + (l2/2) ||w||^2 (PER-5).

Guarantee (Novikoff, 1962; PER-3): from w = 0, if some unit vector (w*, b*) satisfies
y (<x, w*> + b*) >= gamma on all rows and ||(x, 1)|| <= C, then at most C^2 / gamma^2 mistakes are made in
all, whatever the order and the number of epochs.

References
----------
F. Rosenblatt, "The perceptron", Psychological Review 65, 1958.
A. Novikoff, "On convergence proofs for perceptrons", Symp. Math. Theory of Automata, 1962.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..iterate import Iterate
from .linear_sgd import Rules, linear_sgd, visits

__all__ = ["Hyperplane", "Update", "batch_perceptron", "perceptron", "updates", "visits"]

Array = NDArray[np.float64]
Order = NDArray[np.int64]


class Hyperplane(NamedTuple):
    """Where a run stands after an epoch."""

    w: Array
    b: float
    mistakes: int  # since the start of the run
    epoch_mistakes: int  # in the last epoch; 0 proves that its rows are separated


class Update(NamedTuple):
    """One mistake: the row, y times its score before, and after."""

    row: int
    before: float
    after: float


def perceptron(
    X: Any,
    y: Array,
    *,
    orders: Iterator[Order] | None = None,
    w: Array | None = None,
    b: float = 0.0,
    fit_intercept: bool = True,
    rate: float = 1.0,
    weights: Array | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
) -> Iterator[Iterate]:
    """One iterate an epoch; ends after an epoch that changes nothing.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
        Labels -1 and +1.
    orders : iterator of int arrays, default=the rows in order, again and again
        Which rows each epoch visits, and in which order; see :func:`visits`.
    w, b : ndarray of shape (d,) and float, default=0
        Where to start.
    fit_intercept : bool
        Whether ``b`` moves.
    rate : float
        The constant step.
    weights : ndarray of shape (n,), optional
        Each row's factor on the step; a row of weight 0 is never a mistake.
    l1, l2 : float
        The penalty l1 ||w||_1 + (l2/2) ||w||^2 on the weights, not on the intercept.

    Yields
    ------
    Iterate
        ``x`` is a :class:`Hyperplane`, ``value`` the mean of loss plus penalty over the epoch's visits,
        each taken before its update, ``estimate`` the mistakes of the epoch.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> *_, last = perceptron(X, np.array([-1.0, 1.0, 1.0, 1.0]))  # the OR function
    >>> last.x.w.tolist(), last.x.b, last.x.mistakes
    ([2.0, 2.0], -1.0, 9)
    """
    rules = Rules(
        "hinge",
        edge=0.0,
        eta0=float(rate),
        l1=l1,
        l2=l2,
        fit_intercept=fit_intercept,
        ends_clean=l1 == l2 == 0,
    )
    steps = linear_sgd(
        X,
        y,
        rules,
        weights=weights,
        orders=visits(X.shape[0]) if orders is None else orders,
        start=None if w is None and b == 0.0 else (np.zeros(X.shape[1]) if w is None else w, b),
        max_iter=1 << 62,
    )
    for iterate in steps:
        point = iterate.x
        here = Hyperplane(point.w, point.b, point.updates, point.epoch_updates)
        yield Iterate(here, iterate.value, float(point.epoch_updates), rate)


def updates(
    X: Array, y: Array, *, epochs: int = 1, fit_intercept: bool = True
) -> Iterator[tuple[Hyperplane, Update]]:
    """The same rule in plain Python, one item a mistake: for reading, and for checking the kernel.

    Each update raises y times the score of its row by exactly ||x||^2 + 1 (PER-2).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([1.0, -1.0])
    >>> for plane, update in updates(X, y):
    ...     print(update.row, update.after - update.before)
    0 26.0
    1 2.0
    """
    w, b, mistakes = np.zeros(X.shape[1]), 0.0, 0
    offset = 1.0 if fit_intercept else 0.0
    for _ in range(epochs):
        epoch_mistakes = 0
        for i, (x_i, y_i) in enumerate(zip(X, y)):
            before = float(y_i * (x_i @ w + b))
            if before <= 0:
                w, b = w + y_i * x_i, b + offset * float(y_i)
                mistakes, epoch_mistakes = mistakes + 1, epoch_mistakes + 1
                after = float(y_i * (x_i @ w + b))
                yield Hyperplane(w, b, mistakes, epoch_mistakes), Update(i, before, after)


def batch_perceptron(X: Array, y: Array, *, rate: float = 1.0) -> Iterator[Iterate]:
    """Subgradient descent on all rows at once (PER-4): w += (rate/n) sum of y x over the mistakes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> *_, last = batch_perceptron(X, np.array([-1.0, 1.0, 1.0, 1.0]))
    >>> last.x.epoch_mistakes
    0
    """
    n, d = X.shape
    w, b, total = np.zeros(d), 0.0, 0
    while True:
        margins = y * (X @ w + b)
        wrong = margins <= 0
        mistakes = int(wrong.sum())
        total += mistakes
        value = float(np.maximum(-margins, 0.0).mean())
        yield Iterate(Hyperplane(w, b, total, mistakes), value, float(mistakes), rate)
        if mistakes == 0:
            return
        w = w + rate / n * (y[wrong] @ X[wrong])
        b = b + rate / n * float(y[wrong].sum())
