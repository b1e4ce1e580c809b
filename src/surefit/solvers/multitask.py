r"""Block coordinate descent for the multi-task elastic net: one penalty a feature, shared by the targets.

    min_W  1/2 sum_t sum_i s_i (y_it - x_i'w_t)^2 + l1 sum_j ||W_j|| + l2/2 ||W||^2

W_j holds feature j's coefficients for all targets, so a feature enters for every target or for none. As in
:mod:`surefit.solvers.coordinate`, each outer iteration computes all correlations once, yields the iterate
with its own duality gap, and sweeps over a working set, here on the working set's Gram matrix.

References
----------
Yuan & Lin, "Model selection and estimation in regression with grouped variables" (2006); Obozinski, Taskar &
Jordan, "Joint covariate selection" (2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..iterate import Iterate
from .coordinate import ElasticNetData, working_set

__all__ = ["largest_group_penalty", "multi_task"]

Array = NDArray[np.float64]
_SWEEPS = 50  # most sweeps over one working set


def largest_group_penalty(data: ElasticNetData) -> float:
    """The smallest l1 at which W = 0 is optimal: max_j ||X_j'(s Y)||."""
    correlations = data.X.T @ (data.s[:, None] * data.y)
    return float(np.linalg.norm(correlations, axis=1).max(initial=0.0))


def multi_task(
    data: ElasticNetData,
    l1: float,
    l2: float,
    W: Array,
    *,
    rng: np.random.Generator | None = None,
    budget: int = 1000,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=W, value=objective, estimate=duality gap, cost=sweeps)``.

    Parameters
    ----------
    data : ElasticNetData
        Prepared without an intercept; ``y`` of shape (n, T).
    l1, l2 : float
        Weights of the two penalties.
    W : array of shape (T, p)
        Start; changed in place.
    rng : Generator, optional
        Visit the features in random order instead of cyclically.
    budget : int
        Most sweeps in all.
    """
    W[:, data.norm2 == 0.0] = 0.0
    p = W.shape[1]
    used, last, size = 0, 0, min(p, max(10, 2 * int(W.any(axis=0).sum())))
    best, stalls = math.inf, 0
    while True:
        residual = data.y - data.X @ W.T
        corr = np.ascontiguousarray(data.X.T @ (data.s[:, None] * residual))
        value, gap = _objective_and_gap(data, W, residual, corr, l1, l2)
        yield Iterate(W, value, gap, cost=used - last)
        last = used
        best, stalls = (gap, 0) if gap < 0.9 * best else (best, stalls + 1)
        norms = np.linalg.norm(W, axis=0)
        violation = _violation(W.T, norms, corr, l1, l2)
        worst = float(violation.max(initial=0.0))
        if worst == 0.0 or stalls >= 20 or used >= budget:
            return
        ws, size = working_set(norms, violation, size)
        target = 0.3 * worst if len(ws) < p else 0.01 * worst
        used += _sweep(data, W, corr, ws, l1, l2, rng, target, budget - used)


def _sweep(
    data: ElasticNetData,
    W: Array,
    corr: Array,
    ws: NDArray[np.int64],
    l1: float,
    l2: float,
    rng: np.random.Generator | None,
    target: float,
    budget: int,
) -> int:
    """Sweep over the working set until its moves are small; the number of sweeps made."""
    from .._jit.multitask import block_epoch

    gram = _gram(data.X[:, ws], data.s)
    Q, V = np.ascontiguousarray(corr[ws].T), np.ascontiguousarray(W[:, ws])
    order = np.arange(len(ws))
    sweeps = 0
    while sweeps < min(_SWEEPS, budget):
        sweeps += 1
        if rng is not None:
            order = rng.permutation(order)
        if block_epoch(gram, Q, V, order, l1, l2) <= target:
            break
    W[:, ws] = V
    return sweeps


def _gram(X: Any, s: Array) -> Array:
    if sp.issparse(X):
        return np.ascontiguousarray((X.T @ X.multiply(s[:, None])).toarray())
    return np.ascontiguousarray(X.T @ (s[:, None] * X))


def _objective_and_gap(
    data: ElasticNetData, W: Array, residual: Array, corr: Array, l1: float, l2: float
) -> tuple[float, float]:
    """The residual, scaled until ||X_j'(s r) - l2 W_j|| <= l1 for all j, is dual feasible."""
    fit, size = float(np.sum(data.s @ residual**2)), float(np.vdot(W, W))
    value = 0.5 * fit + l1 * float(np.linalg.norm(W, axis=0).sum()) + 0.5 * l2 * size
    largest = float(np.linalg.norm(corr - l2 * W.T, axis=1).max(initial=0.0))
    t = 1.0 if largest <= l1 else l1 / largest
    dual = t * float(np.sum(data.s @ (residual * data.y))) - 0.5 * t * t * (fit + l2 * size)
    return value, value - dual


def _violation(W: Array, norms: Array, corr: Array, l1: float, l2: float) -> Array:
    """Distance of the gradient to the subdifferential, feature by feature; W of shape (p, T)."""
    unit = np.divide(W, norms[:, None], out=np.zeros_like(W), where=norms[:, None] > 0.0)
    slack = np.linalg.norm(corr - l2 * W - l1 * unit, axis=1)
    return np.where(norms > 0.0, slack, np.maximum(slack - l1, 0.0))
