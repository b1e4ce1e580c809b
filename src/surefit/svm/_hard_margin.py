r"""The hard margin (C infinite): what is claimed about it, and about data that have none.

    min 1/2 ||w||^2 (+ 1/2 (b/B)^2)    such that    y_i (<x_i, w> + b) >= 1                       (SVM-2)

has a solution exactly when a hyperplane separates the classes. Its dual is max_{alpha >= 0} sum alpha - 1/2
||sum alpha_i y_i x_i||^2, with sum alpha_i y_i = 0 for a free intercept (SVM-4). The certificate brings
both sides to feasibility: (w, b) divided by its least margin y z, alpha by shrinking the heavier class.
Where nothing separates, weights lambda >= 0 with sum lambda_i y_i (x_i, 1) = 0 prove it (Gordan's theorem),
and the fit hands them over as ``farkas_``; they are not trusted either.

This module uses no solver.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import to_numpy
from ..certificate import ROUNDING_LIMIT, Claim, Kind, Status
from ..design import Design
from ._least_norm import least_norm_claim
from ._linear_claims import witness_of
from ._separability import decide_separable, separability_claim

__all__ = ["hard_margin_claims"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def hard_margin_claims(
    design: Design,
    y: Array,
    used: NDArray[np.bool_],
    coef: Array,
    b: float,
    *,
    intercept: float | None,
    fit_intercept: bool,
    beta: Any,
    farkas: Any,
    tol: float,
    name: str,
) -> list[Claim]:
    """The claims about one problem; ``used`` are the rows of positive weight.

    ``intercept`` is the ``intercept_scaling`` of a penalised intercept, None for a free one or none.
    """
    w = coef.astype(np.float64)
    margins = np.where(used, y * (to_numpy(design.dot(w)) + b), math.inf)
    least, norm = float(margins.min()), float(np.linalg.norm(w))
    storage = storage_eps(coef.dtype)
    rounding = 16.0 * storage * (norm * float(np.sqrt(design.row_squares().max())) + abs(b) + 1.0)
    proof = _farkas_claim(design, y, used, farkas, fit_intercept)
    distance = least / norm if norm > 0 else 0.0
    words = "margin" if least > 0 else "least signed distance"
    short = 0.0 if least >= 1.0 else 1.0 - least
    statement = (
        f"y(<x, w> + b) >= 1 for every row, to within {short:.1e}; the {words} is {distance:.6g}"
    )
    if not 1.0 - least <= max(tol, rounding):
        statement = (
            f"the least y(<x, w> + b) is {least:.6g}, where a hard margin needs 1; the {words} is "
            f"{distance:.6g}"
        )
    impossible = proof is not None and proof.status is Status.HOLDS
    if impossible:
        statement = (
            "no hyperplane separates the two classes, so there is no hard margin; this model has y(<x, w> + "
            f"b) >= {least:.3g} only"
        )
    claim = Claim.check(
        "hard margin", statement, Kind.EXACT, 1.0 - least, tol, "SVM-2",
        floor=rounding, largest_floor=tol if storage > _EPS else max(tol, ROUNDING_LIMIT),
    )  # fmt: skip
    found = [claim]
    if proof is not None:
        found.append(proof)
    if least > 0 and not impossible:
        found += _gap_claims(
            design, y, used, w, b, margins, least, intercept, fit_intercept, beta, tol, rounding
        )
    return [replace(claim, name=name + claim.name) for claim in found]


def _gap_claims(
    design: Design,
    y: Array,
    used: NDArray[np.bool_],
    w: Array,
    b: float,
    margins: Array,
    least: float,
    intercept: float | None,
    fit_intercept: bool,
    beta: Any,
    tol: float,
    rounding: float,
) -> list[Claim]:
    size = float(w @ w) + ((b / intercept) ** 2 if intercept else 0.0)
    primal = 0.5 * size / least**2
    theta = witness_of(beta, np.where(used, 1.0, 0.0))
    alpha = np.zeros_like(y) if theta is None else np.maximum(-y * theta, 0.0)
    if fit_intercept and intercept is None:
        up, down = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
        shrink = min(up, down) / max(up, down) if max(up, down) > 0 else 0.0
        alpha = np.where((y > 0) == (up > down), shrink * alpha, alpha)
    made = design.tdot(design.vector(alpha * y))
    length = float(made @ made)
    if intercept:
        length += (intercept * float((alpha * y).sum())) ** 2
    total = float(alpha.sum())
    best = total / length if length > 0 else 0.0  # of the multiples of alpha, the best
    dual = best * total - 0.5 * best**2 * length
    floor = 2.0 * rounding * primal + 64.0 * _EPS * (primal + abs(total))
    slack = float((alpha * np.maximum(np.where(used, margins, 1.0) - 1.0, 0.0)).sum())
    on = int((alpha > 1e-9 * max(float(alpha.max(initial=0.0)), 1e-300)).sum())
    touch = f"{on} rows hold the margin; their dual variables times their slacks sum to {slack:.1e}"
    return [
        least_norm_claim(primal, dual, tol=tol, floor=floor),
        Claim.check(
            "complementary slackness", touch, Kind.EXACT, slack, tol * primal, "SVM-9",
            floor=floor, largest_floor=max(tol, ROUNDING_LIMIT) * primal,
        ),
    ]  # fmt: skip


def _farkas_claim(
    design: Design, y: Array, used: NDArray[np.bool_], farkas: Any, fit_intercept: bool
) -> Claim | None:
    """No hyperplane separates: a convex combination of the signed rows is 0."""
    given = witness_of(farkas, np.where(used, 1.0, 0.0))
    if given is None or not (given < 0.0).any():
        return None
    weights = np.maximum(-given, 0.0)
    weights = weights / float(weights.sum())
    v = design.tdot(design.vector(weights * y))
    total = float((weights * y).sum()) if fit_intercept else 0.0
    residual = math.hypot(float(np.linalg.norm(v)), total)
    largest = float(np.sqrt(weights @ to_numpy(design.row_squares()) + 1.0))
    bound = 64.0 * _EPS * math.sqrt(sum(design.shape)) * largest
    words = (
        f"convex weights of {int((weights > 0).sum())} rows bring y(x, 1) to within {residual:.1e} of 0, so "
        "no hyperplane has all rows on their side by more than that"
    )
    separable = None
    if residual <= bound:
        rows = np.flatnonzero(used)
        separable = decide_separable(
            _rows_of(design, rows), y[rows], weights[rows], fit_intercept=fit_intercept
        )
    return separability_claim(separable, words, residual, bound, "PER-6")


def _rows_of(design: Design, rows: NDArray[np.intp]) -> Any:
    """Some rows, as an array or a sparse matrix."""
    X: Any = getattr(design, "X", None)
    return X.tocsr()[rows] if sp.issparse(X) else design.home()[rows]
