r"""What is claimed about a linear support vector machine.

* *duality gap* (SVM-7): the objective is within so much of its minimum. The fit hands over its dual
  variables, ``dual_coef_`` (beta_i = y_i alpha_i). They are not trusted:
  :func:`surefit.duality.duality_gap` repairs them to feasibility, so that wrong ones can only weaken the
  claim.
* *complementary slackness* (SVM-9): alpha_i = 0 beyond the margin, alpha_i = c_i inside it, anything in
  between on it. The residual is the sum over the rows of l(z) + l*(theta) - theta z >= 0, theta = -beta /
  c; for the hinge that is alpha [m - 1]_+ + (c - alpha) [1 - m]_+, m = y z.
* *dual variables* (SVM-4): the coefficients are the sum of the rows times them.
* *margin* (SVM-1): where every row is on its side, the distance of the nearest.

This module uses no solver.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..certificate import ROUNDING_LIMIT, Claim, Kind
from ..design import Design
from ..duality import duality_gap, gap_claim, null_value
from ..losses import Hinge, Loss, MarginLoss
from ..penalties import L1, L2

__all__ = ["linear_claims", "penalised_scaling", "sum_claim", "witness_of"]

Array = NDArray[np.float64]
_CHEAP = 1 << 20  # entries of X up to which a second prediction is made at fit
_FREE = 1e-9  # of c: how near its bounds a dual variable counts as at one
_SUM = 1e-6  # a solver adds coefficients up step by step, which leaves 1e-9, and 1e-7 in float32
_BOX = 1e-12  # of the largest dual variable: what rounding puts outside the box


def witness_of(beta: Any, c: Array) -> Array | None:
    """theta = -beta / c; None where that is not one number a row."""
    try:
        values = np.asarray(to_numpy(beta), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.shape != c.shape:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        return np.divide(-values, c, out=np.zeros_like(values), where=c > 0)


def penalised_scaling(model: Any) -> float | None:
    """The ``intercept_scaling`` of a penalised intercept; None for a free one, or none."""
    penalised = model.fit_intercept and model.penalize_intercept
    return float(model.intercept_scaling) if penalised else None


def linear_claims(
    design: Design,
    y: Array,
    c: Array,
    coef: Array,
    b: float,
    loss: Loss,
    *,
    l1: bool,
    intercept: float | None,
    fit_intercept: bool,
    beta: Any,
    tol: float,
    name: str,
    full: bool,
) -> list[Claim]:
    """The claims about one problem.

    Parameters
    ----------
    y, c : targets (-1 and 1 for a classifier), and the weights of their losses
    coef, b : the model
    intercept : the ``intercept_scaling`` of a penalised intercept; None for a free one, or none
    beta : the dual variables that the fit handed over
    """
    theta = witness_of(beta, c)
    gap = duality_gap(
        design, y, coef, b, loss, L1(1.0) if l1 else L2(1.0), weights=c, fit_intercept=fit_intercept,
        intercept_scaling=intercept, witness=None if l1 else theta,
    )  # fmt: skip
    null = null_value(
        loss, design.vector(y), design.vector(c), fit_intercept=fit_intercept and intercept is None
    )
    found = [gap_claim(gap, tol, null, "SVM-7", curvature=0.0 if l1 else 1.0)]
    cheap = full or design.shape[0] * design.shape[1] <= _CHEAP
    if cheap:
        z = to_numpy(design.dot(coef.astype(np.float64))) + b
        limit = tol if gap.stored > tol * null else max(tol, ROUNDING_LIMIT)
        found.append(
            _slackness(y, c, z, loss, theta, bound=tol * null, floor=gap.floor, limit=limit * null)
        )
        if isinstance(loss, MarginLoss):
            found += _margin(y, c, z, coef)
        if full and not l1 and theta is not None:
            found.append(sum_claim(design, np.atleast_2d(beta), coef[None]))
    else:
        why = "how the dual variables and the margins of the rows go together is decided by surefit.verify"
        found.append(Claim.undecided("complementary slackness", why, Kind.EXACT, "SVM-9"))
    return [replace(claim, name=name + claim.name) for claim in found]


def _slackness(
    y: Array,
    c: Array,
    z: Array,
    loss: Loss,
    theta: Array | None,
    *,
    bound: float,
    floor: float,
    limit: float,
) -> Claim:
    title, source = "complementary slackness", "SVM-9"
    if theta is None:
        why = "the model carries no dual variables of these rows"
        return Claim.check(title, why, Kind.EXACT, math.inf, bound, source)
    used = c > 0
    y, c, z, theta = y[used], c[used], z[used], theta[used]
    margin = isinstance(loss, MarginLoss)
    low = 0.0 if margin else -loss.lipschitz
    alpha = -y * theta if margin else theta
    outside = float(np.maximum(alpha - loss.lipschitz, low - alpha).max(initial=0.0))
    size = float(np.abs(alpha).max(initial=0.0))
    if not outside <= _BOX * max(size, 1e-300):
        words = (
            f"a dual variable lies {outside:.1e} outside its box, in units of the weight of its row"
        )
        return Claim.check(title, words, Kind.EXACT, outside, _BOX * size, source)
    alpha = np.clip(alpha, low, loss.lipschitz)
    theta = -y * alpha if margin else alpha
    excess = loss.pointwise(z, y) + loss.conjugate(theta, y) - theta * z
    residual = float(c @ np.maximum(excess, 0.0))
    zero = np.abs(theta) <= _FREE
    full = np.abs(theta) >= loss.lipschitz * (1.0 - _FREE)
    if isinstance(loss, Hinge):
        places = (
            f"of {len(y)} rows {int(zero.sum())} lie beyond the margin (alpha = 0), "
            f"{int((~zero & ~full).sum())} on it and {int(full.sum())} inside it (alpha = C)"
        )
    else:
        places = f"{int((~zero).sum())} of {len(y)} rows are support vectors"
    statement = f"{places}; their dual variables times their slacks sum to {residual:.1e}"
    return Claim.check(
        title, statement, Kind.EXACT, residual, bound, source, floor=floor, largest_floor=limit
    )


def sum_claim(design: Design, beta: Any, coef: Any) -> Claim:
    """With an l2 penalty the coefficients are the sum of the rows times their dual variables (SVM-4)."""
    beta = np.asarray(beta, dtype=np.float64)
    sums = np.stack([design.tdot(design.vector(row)) for row in beta])
    if len(sums) > len(coef):  # Crammer and Singer's machine of two classes
        sums = sums[1:] - sums[:1]
    sizes = np.sqrt(to_numpy(design.row_squares()))
    scale = float((np.abs(beta) @ sizes).max(initial=0.0)) or 1.0
    apart = float(np.abs(sums - coef).max(initial=0.0)) / scale
    words = (
        f"coef_ and the sum of the rows times dual_coef_ are {apart:.1e} apart, relative to what is "
        "added up"
    )
    return Claim.check("dual variables", words, Kind.EXACT, apart, _SUM, "SVM-4")


def _margin(y: Array, c: Array, z: Array, coef: Array) -> list[Claim]:
    """Only where there is one: on data that overlap nothing is claimed."""
    margins, norm = (y * z)[c > 0], float(np.linalg.norm(coef.astype(np.float64)))
    wrong = int((margins <= 0).sum())
    if wrong or norm == 0.0:
        return []
    distance = float(margins.min()) / norm
    statement = (
        f"every row is on its side of the hyperplane, the nearest at a distance of {distance:.6g}"
    )
    return [Claim.check("margin", statement, Kind.EXACT, wrong, 0.0, "SVM-1")]
