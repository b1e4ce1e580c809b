r"""Projected gradient descent on the margin, from several starts (ADV-5).

    delta <- P(delta - alpha step(∇ margin)),   step(v) = v / ||v||_2  or  sign(v),

P the projection onto the allowed set: rescaling for l2, clipping for linf. The first start is delta = 0, so
that one step with alpha = eps is the one-step attack; the others are random. The best iterate is kept, and
the one-step point is among the candidates, so the loss is never below that of :func:`fgsm`. Columns on a
grid and one-hot blocks move by the linearised step, since a short step would be rounded away.

Reference: Madry, Makelov, Schmidt, Tsipras & Vladu, "Towards deep learning models resistant to adversarial
attacks" (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._namespace import array_namespace, like, to_numpy
from ._attack import AttackResult, Task, begin, finish, slope_of
from ._tools import as_kind, row_norms
from .threat import Threat

__all__ = ["descend", "pgd", "random_points"]

Slope = Callable[[Any, NDArray[np.intp]], tuple[Any, int]]


def pgd(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    n_iter: int = 20,
    step_size: float | None = None,
    restarts: int = 1,
    random_state: Any = None,
    score: Any = None,
    gradient: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row by projected gradient steps; keep the best iterate.

    Parameters
    ----------
    model, X, y, threat, score, gradient, classes
        As in :func:`fgsm`.
    n_iter : int, default=20
        Steps from each start.
    step_size : float, default=None
        alpha; None is 2.5 eps / n_iter.
    restarts : int, default=1
        Starts: the row itself, then random points of the set.
    random_state : default=None
        Of the random starts.

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.svm import SVC
    >>> from surefit.robust import Threat, pgd
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> pgd(SVC().fit(X, y), X, y, Threat(1.5)).success.tolist()
    [False, True, True, False]
    """
    task = begin(model, X, y, threat, score=score, gradient=gradient, classes=classes, needs="pgd")
    return descend(
        task, lambda x, c: slope_of(task.scores, x, c), n_iter=n_iter, step_size=step_size,
        restarts=restarts, random_state=random_state, counted=task.scores.gradient is None,
    )  # fmt: skip


def descend(
    task: Task,
    slope: Slope,
    *,
    n_iter: int,
    step_size: float | None,
    restarts: int,
    random_state: Any,
    counted: bool,
) -> AttackResult:
    """Projected descent with any gradient; ``counted`` if the values of the margin are queries too."""
    if n_iter < 1 or restarts < 1:
        raise ValueError(
            f"n_iter and restarts must be at least 1, got n_iter={n_iter!r}, restarts={restarts!r}."
        )
    threat = task.threat
    if step_size is not None and not step_size > 0:
        raise ValueError(f"step_size must be positive, got {step_size!r}.")
    alpha = 2.5 * threat.eps / n_iter if step_size is None else float(step_size)
    random = check_random_state(random_state)
    x0, codes = task.take()
    if not len(codes):
        return finish(task, x0, np.zeros(0, dtype=np.int64))
    value = task.scores.margin
    assert value is not None
    best, lowest, asked = x0, value(x0, codes), int(counted)
    for start in range(restarts):
        x = x0 if start == 0 else random_points(threat, x0, random)
        for _ in range(n_iter):
            g, cost = slope(x, codes)
            vertex = threat.worst_linear(x0, -g).x
            x = _step(threat, x0, x, g, vertex, alpha)
            asked += cost
            for candidate in (x, vertex):
                best, lowest = _better(value, codes, candidate, best, lowest)
                asked += int(counted)
    queries = np.full(len(codes), asked, dtype=np.int64)
    return finish(task, best, queries)


def _step(threat: Threat, x0: Any, x: Any, g: Any, vertex: Any, alpha: float) -> Any:
    """One projected step; columns that cannot move a little go where the linearised step goes."""
    xp = array_namespace(x0)
    if threat.norm == math.inf:
        direction = xp.sign(g)
    else:
        size = row_norms(g)
        direction = g / xp.where(size > 0, size, size + 1.0)[:, None]
    moved = x - alpha * direction
    jumps = np.zeros(int(x0.shape[1]), dtype=np.bool_)
    if threat.discrete_columns:
        jumps |= np.broadcast_to(threat.step > 0, jumps.shape)
    for group in threat.flipping:
        jumps[group] = True
    if jumps.any():
        moved = xp.where(like(jumps, x0), vertex, moved)
    return threat.project(x0, moved)


def _better(value: Any, codes: NDArray[np.intp], x: Any, best: Any, lowest: Any) -> tuple[Any, Any]:
    xp = array_namespace(x)
    found = value(x, codes)
    lower = found < lowest
    return xp.where(lower[:, None], x, best), xp.where(lower, found, lowest)


def random_points(threat: Threat, x0: Any, random: Any) -> Any:
    """Random points of the set: uniform in the ball before box and steps; blocks switched at random."""
    shape = tuple(int(size) for size in x0.shape)
    if threat.norm == math.inf:
        delta = random.uniform(-threat.eps, threat.eps, size=shape)
    else:
        delta = random.standard_normal(shape)
        delta /= np.maximum(np.sqrt((delta**2).sum(axis=1, keepdims=True)), 1e-300)
        delta *= threat.eps * random.uniform(size=(shape[0], 1)) ** (1.0 / shape[1])
    x = np.asarray(to_numpy(x0), dtype=np.float64) + delta
    for group in threat.flipping:
        x[:, group] += random.uniform(-2.0, 2.0, size=(shape[0], len(group)))
    return threat.project(x0, as_kind(x, x0))
