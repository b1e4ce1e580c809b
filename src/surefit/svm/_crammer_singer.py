r"""The duality gap of Crammer and Singer's multi-class machine.

    P(W) = 1/2 sum_m (||w_m||^2 + (b_m / B)^2) + sum_i c_i max_m ([m != y_i] + z_im - z_iy_i)
    D(beta) = sum_i beta_iy_i - 1/2 sum_m (||sum_i beta_im x_i||^2 + (B sum_i beta_im)^2),

beta_im <= c_i [m = y_i], sum_m beta_im = 0. The fit hands beta over as ``dual_coef_``; it is repaired, not
trusted: p_im = c_i [m = y_i] - beta_im must be non-negative with sum c_i, so negative entries become 0, and
the row is scaled. This module uses no solver.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import to_numpy
from ..certificate import Claim
from ..design import Design
from ..duality import Gap, gap_claim

__all__ = ["crammer_singer_claims"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def crammer_singer_claims(
    design: Design,
    codes: NDArray[np.intp],
    c: Array,
    W: Array,
    b: Array,
    *,
    scaling: float,
    beta: Any,
    tol: float,
) -> list[Claim]:
    """The gap, at most ``tol`` times the objective at W = 0.

    W has the shape (p, K); ``scaling`` is 0 where there is no intercept.
    """
    K, n = W.shape[1], len(codes)
    own, wide = (np.arange(n), codes), W.astype(np.float64)
    z = to_numpy(design.dot(wide)) + b
    losses = z + 1.0
    losses[own] -= 1.0
    size = float((wide**2).sum()) + (float(((b / scaling) ** 2).sum()) if scaling else 0.0)
    primal = 0.5 * size + float(c @ (losses.max(axis=1) - z[own]))
    p = np.zeros((n, K))
    p[own] = c
    p -= _given(beta, (n, K))
    p = np.maximum(p, 0.0)
    total = p.sum(axis=1)
    empty = total <= 0.0
    p[empty] = 0.0
    p[empty, codes[empty]] = 1.0
    p *= (c / np.where(empty, 1.0, total))[:, None]
    feasible = -p
    feasible[own] += c
    made = np.stack([design.tdot(design.vector(column)) for column in feasible.T])
    length = float((made**2).sum())
    if scaling:
        length += scaling**2 * float((feasible.sum(axis=0) ** 2).sum())
    dual = float(feasible[own].sum()) - 0.5 * length
    eps = storage_eps(W.dtype)
    mass = primal + size + float(np.abs(feasible * z).sum()) + float(c.sum())
    floor, stored = 16.0 * _EPS * mass, 0.0
    if eps > _EPS:  # stored in float32
        reach = np.abs(wide).max() * float(np.sqrt(to_numpy(design.row_squares()) @ c * c.sum()))
        stored = 2.0 * eps * (reach + float(c.sum()) * float(np.abs(b).max(initial=0.0)))
    gap = Gap(primal, dual, primal - dual, floor + stored, feasible, stored=stored)
    claim = gap_claim(gap, tol, float(c.sum()), "SVM-7", curvature=1.0)
    return [claim]


def _given(beta: Any, shape: tuple[int, int]) -> Array:
    """What the fit handed over, or 0 where that is not an array of this shape."""
    try:
        values = np.asarray(to_numpy(beta), dtype=np.float64).T
    except (TypeError, ValueError):
        return np.zeros(shape)
    if values.shape != shape or not np.isfinite(values).all() or np.abs(values).max() > 1e100:
        return np.zeros(shape)
    return values
