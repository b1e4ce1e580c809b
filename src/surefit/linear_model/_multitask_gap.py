r"""The duality gap of the multi-task elastic net, from the data and the coefficients alone.

    min_{W, b}  1/2 sum_i s_i ||y_i - W'x_i - b||^2 + l1 sum_j ||W_j|| + l2/2 ||W||^2,     sum_i s_i = 1

With residuals R and the correlations V = (X - mean)'S R, every t in [0, 1] gives the lower bound

    t <R, Y>_S - t^2/2 ||R||_S^2 - sum_j [||t V_j|| - l1]_+^2 / (2 l2),

where for l2 = 0 the last term is 0 as long as all ||t V_j|| <= l1.

References
----------
Ndiaye et al., "Gap Safe screening rules for sparsity enforcing penalties" (2017).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import storage_eps
from ..design import Design
from ..duality import Gap

__all__ = ["multi_task_gap"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def multi_task_gap(
    design: Design,
    Y: Array,
    s: Array,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    l1: float,
    l2: float,
    *,
    fit_intercept: bool,
) -> Gap:
    """The duality gap at coefficients (p, T) and intercepts (T,); s sums to 1."""
    W, b = coef.astype(np.float64), np.asarray(intercept, dtype=np.float64)
    R = Y - (design.dot(W) + b)
    lengths = np.linalg.norm(W, axis=1)
    penalty = l1 * float(lengths.sum()) + 0.5 * l2 * float(np.vdot(W, W))
    primal = 0.5 * float(np.sum(s @ R**2)) + penalty
    mean = design.mean(s) if fit_intercept else np.zeros(design.shape[1])
    target = Y
    if fit_intercept:  # the best intercept, so that the residuals balance
        R, target = R - s @ R, Y - s @ Y
    weighted = s[:, None] * R
    V = design.tdot(weighted) - np.outer(mean, weighted.sum(axis=0))
    sizes = np.linalg.norm(V, axis=1)
    gain, cost = float(np.sum(s @ (R * target))), float(np.sum(s @ R**2))
    largest = float(sizes.max(initial=0.0))
    inside = 1.0 if largest <= l1 else l1 / largest
    candidates = [inside, min(inside, gain / cost)] if cost > 0.0 else [inside]
    candidates += [1.0] if l2 > 0.0 else []
    dual = -math.inf
    for t in candidates:
        outside = np.maximum(t * sizes - l1, 0.0)
        beyond = float(outside @ outside) / (2.0 * l2) if l2 > 0.0 else 0.0
        dual = max(dual, t * gain - 0.5 * t * t * cost - beyond)
    mass = 2.0 * cost + abs(gain) + penalty + float(np.abs(V * W).sum())
    mass += float((s @ np.abs(R)) @ (np.abs(mean) @ np.abs(W) + np.abs(b)))
    floor = 4.0 * _EPS * (8.0 + math.log2(len(s))) * mass
    floor += 64.0 * _EPS**2 * float(np.sum(s @ (np.abs(Y) + np.abs(Y - R)) ** 2))
    if coef.dtype.itemsize < 8:
        floor += _storage_floor(coef, b, design, s, mean if fit_intercept else None, l1, l2)
    if primal - dual > 0.9 * primal:  # columns so long that the bound cannot be computed
        noise = 8.0 * _EPS * design.column_norms(s) * math.sqrt(cost)
        costs = [float(noise.max(initial=0.0)) / l1 * primal] if l1 > 0.0 else []
        with np.errstate(over="ignore"):
            costs += [2.0 * float(noise @ lengths) + float(noise @ noise) / l2] if l2 > 0.0 else []
        floor += min(costs, default=0.0)
    return Gap(primal, dual, primal - dual, floor, -weighted)


def _storage_floor(
    coef: NDArray[Any], b: Array, design: Design, s: Array, mean: Array | None, l1: float, l2: float
) -> float:
    """What rounding the coefficients to float32 does to the gap.

    It moves the predictions; the objective feels that to second order, and so does the dual with an l2 term.
    Without one the dual is scaled back, a first-order cost, but the best intercept takes up what is common.
    """
    eps, lengths = storage_eps(coef.dtype), np.linalg.norm(coef.astype(np.float64), axis=1)
    whole, norms = design.column_norms(s) * lengths, design.column_norms(s, mean)
    moved = eps * float(np.linalg.norm(norms * lengths))
    costs = []
    if l1 > 0.0:
        costs.append(moved * float(norms.max(initial=0.0)) * float(lengths.sum()))
    if l2 > 0.0:
        costs.append(float(((norms * moved + l2 * eps * lengths) ** 2).sum()) / (2.0 * l2))
    return eps**2 * float(whole @ whole + b @ b) + min(costs, default=0.0)
