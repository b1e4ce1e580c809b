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

from .._namespace import array_namespace, is_torch, like, to_numpy
from ._attack import AttackResult, Task, begin, finish, slope_of
from ._tools import as_kind, row_norms
from .network import is_network
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
    stop_early: bool = False,
    random_state: Any = None,
    score: Any = None,
    gradient: Any = None,
    classes: Any = None,
    batch_size: int = 1024,
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
    stop_early : bool, default=False
        Whether to leave a row as soon as its margin is negative, instead of going on to a larger loss.
    random_state : default=None
        Of the random starts.
    batch_size : int, default=1024
        Rows of a network that are attacked at once.

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
    if score is None and is_network(model):
        from ._network_pgd import network_pgd

        return network_pgd(
            model, X, y, threat, n_iter=n_iter, step_size=step_size, restarts=restarts,
            stop_early=stop_early, random_state=random_state, classes=classes, batch_size=batch_size,
        )  # fmt: skip
    task = begin(model, X, y, threat, score=score, gradient=gradient, classes=classes, needs="pgd")
    return descend(
        task, lambda x, c: slope_of(task.scores, x, c), n_iter=n_iter, step_size=step_size,
        restarts=restarts, stop_early=stop_early, random_state=random_state,
        counted=task.scores.gradient is None,
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
    stop_early: bool = False,
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
    best, lowest = x0, value(x0, codes)
    asked = np.full(len(codes), int(counted), dtype=np.int64)
    jumps = _jumps(threat, int(x0.shape[1]))
    for start in range(restarts):
        x = x0 if start == 0 else random_points(threat, x0, random)
        rows = _open(lowest, stop_early)  # those still under attack
        x, base, code = _take(x, rows), _take(x0, rows), codes[rows]
        for t in range(n_iter):
            if not len(rows):
                break
            g, cost = slope(x, code)
            vertex = threat.worst_linear(base, -g).x
            x = _step(threat, base, x, g, vertex, alpha, jumps)
            tried = [x, vertex] if t == 0 or jumps.any() else [x]
            asked[rows] += cost + int(counted) * len(tried)
            for candidate in tried[::-1]:  # x last: its gradient is asked for next
                best, lowest = _better(value, code, candidate, rows, best, lowest)
            left = _open(lowest[like(rows, lowest)], stop_early)
            if len(left) < 0.7 * len(rows):
                rows, x, base, code = rows[left], _take(x, left), _take(base, left), code[left]
    return finish(task, best, asked)


def _open(lowest: Any, stop_early: bool) -> NDArray[np.intp]:
    """Rows to go on with: all, or those whose margin is not negative yet."""
    values = np.asarray(to_numpy(lowest))
    return np.flatnonzero(~(values < 0)) if stop_early else np.arange(len(values))


def _take(x: Any, rows: NDArray[np.intp]) -> Any:
    return x if len(rows) == len(x) else x[like(rows, x)]


def _jumps(threat: Threat, d: int) -> NDArray[np.bool_]:
    """Columns that cannot move a little: those on a grid, and one-hot blocks that may switch."""
    jumps = np.zeros(d, dtype=np.bool_)
    if threat.discrete_columns:
        jumps |= np.broadcast_to(threat.step > 0, jumps.shape)
    for group in threat.flipping:
        jumps[group] = True
    return jumps


def _step(
    threat: Threat, x0: Any, x: Any, g: Any, vertex: Any, alpha: float, jumps: NDArray[np.bool_]
) -> Any:
    """One projected step; columns that cannot move a little go where the linearised step goes."""
    xp = array_namespace(x0)
    if threat.norm == math.inf:
        direction = xp.sign(g)
    else:
        size = row_norms(g)
        direction = g / xp.where(size > 0, size, size + 1.0)[:, None]
    moved = x - alpha * direction
    if jumps.any():
        moved = xp.where(like(jumps, x0), vertex, moved)
    return threat.project(x0, moved)


def _better(
    value: Any, codes: NDArray[np.intp], x: Any, rows: NDArray[np.intp], best: Any, lowest: Any
) -> tuple[Any, Any]:
    """The best points with x taken in where it is better, for the rows that x is about."""
    xp = array_namespace(x)
    found, places = value(x, codes), like(rows, x)
    lower = found < lowest[places]
    points, values = best[places], lowest[places]
    if len(rows) == len(best):
        return xp.where(lower[:, None], x, points), xp.where(lower, found, values)
    best, lowest = (part.clone() if is_torch(part) else part.copy() for part in (best, lowest))
    best[places] = xp.where(lower[:, None], x, points)
    lowest[places] = xp.where(lower, found, values)
    return best, lowest


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
