r"""The elastic net on a working set: exact where few coefficients are in use, by sweeps where many are.

    min_{w, b}  1/2 sum_i s_i (y_i - x_i'w - b)^2 + l1 ||w||_1 + l2/2 ||w||^2      (w >= 0 on request)

Each outer iteration computes all correlations X'(s r) once, yields the iterate with its own duality gap, then
picks the coordinates in use and the worst violators of

    |X_j'(s r) - l2 w_j| <= l1,    with equality in sign on the support,

and minimises over these alone: by the active-set method on their Gram matrix, or, where a factorisation would
cost more than sweeping, by coordinate descent with conjugate gradients. Only the correlations touch all of X.

References
----------
Friedman, Hastie & Tibshirani (2010), JSS 33; Massias, Gramfort & Salmon, "Celer" (2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..iterate import Iterate
from .active_set import Face, descend
from .elastic_net_data import ElasticNetData, largest_penalty
from .sweeps import Sweeps
from .working_set import WorkingSet

__all__ = [
    "ElasticNetData",
    "elastic_net",
    "factorisable",
    "gap_of",
    "largest_penalty",
    "working_set",
]

Array = NDArray[np.float64]
_SMALL = 64  # with so few columns, the working set is all of them
_START = 100  # columns to start with
_LOWER = 0.3  # share of the largest correlation down to which the penalty goes at once, far from its value
_EXACT = 1e-14  # of the objective at 0: to this gap a subproblem is solved by the active-set method
_PATIENCE = 500  # steps without progress, after which rounding is taken to be reached
# so many coefficients are factorised, so many columns are not, whatever the data
_ALWAYS, _NEVER = 1500, 5000
_SWEEPS_WORTH = 10_000  # multiplications of a factorisation that cost one entry in all sweeps


def elastic_net(
    data: ElasticNetData,
    l1: float,
    l2: float,
    w: Array,
    *,
    positive: bool = False,
    rng: np.random.Generator | None = None,
    budget: int = 1000,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=w, value=objective, estimate=duality gap, cost=steps)``.

    Parameters
    ----------
    data : ElasticNetData
    l1, l2 : float
        Weights of the two penalties.
    w : array of shape (p,)
        Start; changed in place.
    positive : bool
        Constrain w >= 0.
    rng : Generator, optional
        Visit the coordinates in random order, where there are sweeps.
    budget : int
        Most steps (Newton steps and sweeps) in all.
    """
    if positive:
        np.maximum(w, 0.0, out=w)
    w[data.norm2 == 0.0] = 0.0
    null = 0.5 * float(data.s @ (data.y - data.y_mean) ** 2)
    columns = WorkingSet(data, None if data.few else np.empty(0, np.int64))
    face, sweeps = Face(), Sweeps(data, rng)
    exact, used, last, size = True, 0, 0, max(_START, 2 * int(np.count_nonzero(w)))
    level = l1 if data.few else math.inf
    best, smallest, lowest, progress = math.inf, math.inf, math.inf, 0
    while True:
        gathered = exact and len(columns) > 0  # then they hold the support
        u = columns.weighted_residual(w[columns.index]) if gathered else data.weighted_residual(w)
        corr = data.correlations(u)
        slack = corr - l2 * w
        reach = slack if positive else np.abs(slack)
        value, gap = (float(a) for a in gap_of(data, w, u, reach.max(initial=0.0), l1, l2))
        yield Iterate(w, value, gap, cost=used - last)
        last = used
        if not data.few:  # far away, a larger penalty first; never up again, whatever the gap does
            level = min(level, max(l1, _LOWER * float(reach.max(initial=0.0))))
        at_zero = np.maximum(reach - level, 0.0)
        violation = np.where(w != 0.0, np.abs(slack - level * np.sign(w)), at_zero)
        worst = float(violation.max(initial=0.0))
        if worst == 0.0 or used - progress > _PATIENCE or used >= budget:
            return
        # near the end the objective rests at rounding while the gap still falls, or the reverse
        if gap < 0.9 * best or worst < 0.9 * smallest or value < lowest * (1.0 - 1e-15):
            best, smallest, lowest = min(best, gap), min(smallest, worst), min(lowest, value)
            progress = used
        elif exact and used > 0 and level == l1:  # the factorisation has given what it can
            exact = False
        index, size = working_set(w, violation, size)
        exact = exact and factorisable(data, index, int(np.count_nonzero(w)), l2)
        if exact:
            columns.enter(index[~columns.inside[index]])
            v, q = w[columns.index], corr[columns.index]
            steps = descend(
                columns.gram, v, q, level, l2, face,
                positive=positive, target=_EXACT * null, null=null, budget=budget - used,
            )  # fmt: skip
            w[columns.index] = v
            used, exact = used + steps, steps > 0
        if not exact:
            used += sweeps.advance(w, index, level, l2, positive=positive, budget=budget - used)


def factorisable(data: ElasticNetData, index: NDArray[np.int64], support: float, l2: float) -> bool:
    """Whether factorising the Hessian of the support is cheaper than sweeping over the columns ``index``."""
    if len(index) > _NEVER:
        return False
    typical = float(data.norm2[index].mean()) if len(index) else 0.0
    if typical > 0.0:  # a ridge lets sweeps converge sooner
        support *= 1.0 + 3.0 * l2 / typical
    return support <= _ALWAYS or support * support / 3 <= _SWEEPS_WORTH * data.entries(index)


def gap_of(
    data: ElasticNetData, v: Array, u: Any, largest: Any, l1: Any, l2: Any
) -> tuple[Any, Any]:
    """Objective and duality gap; v holds the coefficients in use, ``largest`` is max_j |corr_j - l2 w_j|.

    The residual is scaled until the dual constraint of the augmented Lasso holds. All may have a column for
    each of several penalties.
    """
    y = data.y - data.y_mean
    fit: Any
    match: Any
    if v.ndim == 1:
        fit, match = np.float64(u @ (u * data.inverse)), np.float64(u @ y)
    else:
        squares = u * (u * data.inverse[:, None])
        fit, match = to_numpy(squares.sum(axis=0)), to_numpy(y @ u)
    size = (v * v).sum(axis=0)
    value = 0.5 * fit + l1 * np.abs(v).sum(axis=0) + 0.5 * l2 * size
    t = np.where(largest <= l1, 1.0, l1 / np.where(largest > 0.0, largest, 1.0))
    return value, value - t * match + 0.5 * t * t * (fit + l2 * size)


def working_set(w: Array, violation: Array, size: int) -> tuple[NDArray[np.int64], int]:
    """The support and the worst violators; doubles as long as the support fills it."""
    p = len(w)
    if p <= _SMALL:
        return np.arange(p), p
    support = int(np.count_nonzero(w))
    size = min(p, max(size, 2 * support))
    score = np.where(w != 0.0, np.inf, violation)
    chosen = np.argpartition(-score, size - 1)[:size] if size < p else np.arange(p)
    return np.sort(chosen[score[chosen] > 0.0]).astype(np.int64), size
