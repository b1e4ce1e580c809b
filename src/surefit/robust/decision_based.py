r"""Attacks that see labels only (ADV-7).

From a point with another label, bisection finds the decision boundary on the way to the row. There the
normal is estimated from labels: the mean of :math:`(\phi(u) - \bar\phi)\, u` over random unit vectors u,
with :math:`\phi(u) = \pm 1` as the label at a small step along u is wrong or right, points along the
gradient of the margin on average. A step along it, then bisection again, brings the boundary point nearer.
For a linear model the distance tends to :math:`|g(x)| / \|w\|`.

Reference: Chen, Jordan & Wainwright, "HopSkipJumpAttack" (2020).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._namespace import to_numpy
from ._attack import AttackResult, Task, begin, finish
from ._tools import as_kind, check_norm, row_norms
from .network import is_network
from .scores import dense_rows
from .threat import Threat

__all__ = ["Boundary", "boundary_distance", "decision_based"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_CELLS = 1 << 21
_HALVINGS = 15


class Boundary(NamedTuple):
    """The nearest points with another label that were found.

    Attributes
    ----------
    x : array of shape (n, d)
        Points with another label; the row itself where it is wrong already or none was found.
    distance : array of shape (n,)
        Their distance; infinite where none was found. The true distance is at most this.
    queries : array of int of shape (n,)
        Labels asked for.
    """

    x: Array
    distance: Array
    queries: NDArray[np.int64]


def boundary_distance(
    model: Any,
    X: Any,
    y: Any,
    *,
    norm: Any = 2,
    mutable: Any = None,
    n_iter: int = 20,
    samples: int = 100,
    starts: Any = None,
    random_state: Any = None,
    classes: Any = None,
) -> Boundary:
    """Walk along the decision boundary towards each row, asking for labels only.

    Parameters
    ----------
    model, X, y, classes
        As in :func:`fgsm`; only ``predict`` is called.
    norm : {2, inf}, default=2
    mutable : array of bool of shape (d,), default=None
        The columns that may move.
    n_iter : int, default=20
        Estimates of the normal.
    samples : int, default=100
        Labels of the first estimate; the t-th takes sqrt(t) times as many.
    starts : array of shape (n', d), default=None
        Where points with other labels are looked for; None for X itself.
    random_state : default=None

    Returns
    -------
    Boundary

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.linear_model import LogisticRegression
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> model = LogisticRegression().fit(X, y)
    >>> boundary_distance(model, X, y, random_state=0).distance.round(3).tolist()
    [2.0, 1.0, 1.0, 2.0]
    """
    order = check_norm(norm)
    task = begin(model, X, y, Threat(1.0, order, mutable), classes=classes)
    free = np.ones(int(task.X.shape[1])) if mutable is None else np.asarray(mutable, np.float64)
    x, distance, asked = _walk(
        task, order, free, n_iter, samples, starts, check_random_state(random_state)
    )
    everything = np.array(to_numpy(task.X), dtype=np.float64)
    length, queries = np.zeros(len(everything)), np.zeros(len(everything), dtype=np.int64)
    everything[task.rows], length[task.rows], queries[task.rows] = x, distance, asked
    return Boundary(everything, length, queries)


def decision_based(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    n_iter: int = 10,
    samples: int = 50,
    starts: Any = None,
    random_state: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row with labels only; a point counts if it lies in the allowed set.

    Parameters
    ----------
    model, X, y, threat, classes
        As in :func:`fgsm`; only ``predict`` is called.
    n_iter, samples, starts, random_state
        As in :func:`boundary_distance`.

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from surefit.robust import Threat, decision_based
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> decision_based(model, X, y, Threat(1.5), random_state=0).success.tolist()
    [False, True, True, False]
    """
    if is_network(model):
        from ._network_labels import network_decision_based

        return network_decision_based(
            model, X, y, threat, n_iter=n_iter, samples=samples, starts=starts,
            random_state=random_state, classes=classes,
        )  # fmt: skip
    task = begin(model, X, y, threat, classes=classes)
    x0, codes = task.take()
    if not len(codes):
        return finish(task, x0, np.zeros(0, dtype=np.int64))
    moves = np.asarray(to_numpy(threat.reach(np.zeros((1, x0.shape[1])))))[0] > 0
    random = check_random_state(random_state)
    x, _, asked = _walk(
        task, threat.norm, moves.astype(np.float64), n_iter, samples, starts, random
    )
    best = np.array(to_numpy(x0))
    done = np.zeros(len(codes), dtype=np.bool_)
    for point in (x, x + 1e-6 * (x - to_numpy(x0))):
        candidate = threat.project(x0, as_kind(point, x0))
        wrong = task.scores.labels(candidate) != codes
        best = np.where((wrong & ~done)[:, None], to_numpy(candidate), best)
        done |= wrong
    best = np.where(done[:, None], best, to_numpy(threat.project(x0, as_kind(x, x0))))
    return finish(task, as_kind(best, x0), asked + 2)


# ------------------------------------------------------------------------ the walk


def _walk(
    task: Task, norm: float, free: Array, n_iter: int, samples: int, starts: Any, random: Any
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Boundary points, their distances, and the labels that were asked for, for ``task.rows``."""
    if n_iter < 0 or samples < 1:
        raise ValueError(
            f"n_iter >= 0 and samples >= 1 are needed, got {n_iter!r} and {samples!r}."
        )
    kept, codes = task.take()
    x0 = np.asarray(to_numpy(kept), dtype=np.float64)
    asked = np.zeros(len(codes), dtype=np.int64)

    def wrong(points: Array, rows: NDArray[np.intp]) -> Mask:
        np.add.at(asked, rows, 1)
        return task.scores.labels(as_kind(points, task.X)) != codes[rows]

    x, found = _starts(task, x0, codes, free, starts, random, wrong)
    rows = np.flatnonzero(found)
    x[rows] = _bisect(x0[rows], x[rows], norm, lambda p: wrong(p, rows))
    for t in range(1, n_iter + 1):
        if not len(rows):
            break
        here, base = x[rows], x0[rows]
        length = _length(here - base, norm)
        normal = _normal(here, length, free, int(samples * math.sqrt(t)), random, rows, wrong)
        if norm == math.inf:
            normal = np.sign(normal)
        ahead, step = here.copy(), length / math.sqrt(t)
        open_ = np.ones(len(rows), dtype=np.bool_)
        for _ in range(10):
            todo = np.flatnonzero(open_)
            if not len(todo):
                break
            point = here[todo] + step[todo, None] * normal[todo]
            crossed = wrong(point, rows[todo])
            ahead[todo[crossed]] = point[crossed]
            open_[todo[crossed]] = False
            step[todo[~crossed]] *= 0.5
        new = _bisect(base, ahead, norm, lambda p: wrong(p, rows))
        nearer = _length(new - base, norm) < length
        x[rows[nearer]] = new[nearer]
    distance = np.full(len(codes), np.inf)
    distance[rows] = _length(x[rows] - x0[rows], norm)
    return x, distance, asked


def _starts(
    task: Task, x0: Array, codes: Any, free: Array, starts: Any, random: Any, wrong: Any
) -> tuple[Array, Mask]:
    """A point with another label for each row: the nearest given one, else a random one."""
    pool = np.asarray(to_numpy(task.X if starts is None else dense_rows(starts)), dtype=np.float64)
    labels = task.scores.labels(as_kind(pool, task.X)) if len(pool) else np.zeros(0, dtype=np.intp)
    x, found = x0.copy(), np.zeros(len(codes), dtype=np.bool_)
    for c in np.unique(codes):
        mine, others = np.flatnonzero(codes == c), pool[labels != c]
        if not len(others):
            continue
        height = max(1, _CELLS // len(others))
        for first in range(0, len(mine), height):
            rows = mine[first : first + height]
            gaps = ((x0[rows] * free) ** 2).sum(axis=1)[:, None] - 2.0 * (
                x0[rows] * free
            ) @ others.T
            nearest = others[(gaps + ((others * free) ** 2).sum(axis=1)).argmin(axis=1)]
            x[rows] = x0[rows] + free * (nearest - x0[rows])
    todo = np.flatnonzero((x != x0).any(axis=1))
    found[todo] = wrong(x[todo], todo) if len(todo) else False
    spread = np.maximum(pool.std(axis=0), 1e-3) if len(pool) else np.ones(x0.shape[1])
    for scale in 2.0 ** np.arange(10):
        todo = np.flatnonzero(~found)
        if not len(todo):
            break
        noise = scale * spread * free * random.standard_normal((len(todo), x0.shape[1]))
        crossed = wrong(x0[todo] + noise, todo)
        x[todo[crossed]] = (x0[todo] + noise)[crossed]
        found[todo[crossed]] = True
    x[~found] = x0[~found]
    return x, found


def _bisect(x0: Array, x: Array, norm: float, wrong: Any) -> Array:
    """The point with another label nearest to x0 on the way from x; for linf the way is by clipping."""
    if not len(x):
        return x
    delta = x - x0
    size = _length(delta, norm)[:, None]
    low, high, best = np.zeros(len(x)), np.ones(len(x)), x.copy()
    for _ in range(_HALVINGS):
        t = ((low + high) / 2.0)[:, None]
        point = x0 + (np.clip(delta, -t * size, t * size) if norm == math.inf else t * delta)
        crossed = wrong(point)
        best = np.where(crossed[:, None], point, best)
        high, low = np.where(crossed, t[:, 0], high), np.where(crossed, low, t[:, 0])
    return best


def _normal(
    x: Array, length: Array, free: Array, samples: int, random: Any, rows: Any, wrong: Any
) -> Array:
    """A unit vector towards the other label, from the labels at small random steps."""
    n, d = x.shape
    total, kept, seen = np.zeros((n, d)), np.zeros((n, d)), np.zeros(n)
    width = max(1, _CELLS // max(1, n * d))
    for first in range(0, samples, width):
        count = min(width, samples - first)
        u = random.standard_normal((count, n, d)) * free
        u /= np.maximum(np.sqrt((u**2).sum(axis=2, keepdims=True)), 1e-300)
        points = x + 0.05 * length[:, None] * u
        phi = np.where(wrong(points.reshape(-1, d), np.tile(rows, count)), 1.0, -1.0).reshape(
            count, n
        )
        total += (phi[:, :, None] * u).sum(axis=0)
        kept += u.sum(axis=0)
        seen += phi.sum(axis=0)
    normal = total - (seen / samples)[:, None] * kept
    return normal / np.maximum(row_norms(normal), 1e-300)[:, None]


def _length(delta: Array, norm: float) -> Array:
    return np.abs(delta).max(axis=1, initial=0.0) if norm == math.inf else row_norms(delta)
