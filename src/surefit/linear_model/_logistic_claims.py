r"""What is claimed of logistic regression without a penalty, from the data and the predictions alone.

* *gradient* (STATIONARY): it is zero to ``tol`` of its scale;
* *finite optimum* (EXACT): on separable data the likelihood has no maximiser; positive weights that balance
  the rows prove that it has one. Both are decided for the stored numbers, without rounding
  (:mod:`surefit._exact_separation`), or left undecided.

Reference: Albert & Anderson, "On the existence of maximum likelihood estimates in logistic regression models"
(1984).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import EPS, storage_eps
from .._exact_separation import correction_exists, is_balanced_by_all, separates
from .._namespace import scale_rows, to_numpy
from .._optimality import gradient_claim as stationary_claim
from .._worst import largest_ratio
from ..certificate import Claim, Kind
from ..design import Design, as_design
from ..duality import Gap
from ..losses import Loss

__all__ = ["finite_optimum_claim", "gradient_claim"]

Array = NDArray[np.float64]
_ENTRIES = 10_000_000  # of the differences of rows that are looked at
_BALANCED = "positive weights of all rows balance exactly: no direction separates the classes"
_COLUMNS = 3000  # of the matrix that a correction of the weights needs


def gradient_claim(
    X: Any, y: Array, s: Array, loss: Loss, z: Array, fit_intercept: bool, tol: float, dtype: Any
) -> Claim:
    """max_j |x_j'(s theta)| relative to ||x_j|| ||theta||, the intercept's column of ones included."""
    design = as_design(X)
    theta = loss.grad(z, y)
    st = scale_rows(s, theta)
    slopes = np.abs(design.tdot(st)).reshape(design.shape[1], -1).max(axis=1)
    sizes = design.column_norms(s)
    if fit_intercept:
        slopes = np.append(slopes, float(abs(st.sum(axis=0)).max()))
        sizes = np.append(sizes, math.sqrt(float(s.sum())))
    # the scale is that of the residuals at w = 0, so that a perfect fit is not divided by 0
    start = loss.grad(0.0 * z, y)
    scale = sizes * math.sqrt(float(s @ (start**2).reshape(len(s), -1).sum(axis=1)))
    return stationary_claim(
        largest_ratio(slopes, scale), tol, "LOG-4",
        scale="its scale at w = 0", holds=", and the loss is convex", floor=100.0 * storage_eps(dtype),
    )  # fmt: skip


def finite_optimum_claim(
    X: Any, y: Any, s: Any, z: Any, gap: Gap | None, point: tuple[Array, Any], fit_intercept: bool
) -> Claim:
    """Whether the likelihood has a maximiser at all; ``point`` is the model's coefficients and intercepts."""
    name, kind, source = "finite optimum", Kind.EXACT, "LOG-5"
    design = as_design(X)
    labels, weights, scores = to_numpy(y), to_numpy(s), to_numpy(z)
    smallest = float(_margins(labels, scores)[weights > 0].min())
    if not smallest > 0 and gap is None:
        why = "this model does not separate the classes; surefit.verify settles whether any hyperplane does"
        return Claim.undecided(name, why, kind, source)
    if not smallest > 0 and scores.ndim == 1 and _balance(design, y, s, gap, fit_intercept):
        return Claim.check(name, _BALANCED, kind, 0.0, 0.0, source)
    rows = _differences(design, labels, weights > 0, fit_intercept, scores.ndim)
    if rows is None:
        why = "the rows are too many to settle whether any hyperplane separates the classes"
        return Claim.undecided(name, why, kind, source)
    if smallest > 0 and separates(rows, _flat_point(*point, fit_intercept)):
        statement = (
            f"the classes are separated (smallest margin {smallest:.2g}): the likelihood has no "
            "maximiser, and the coefficients would grow without bound"
        )
        return Claim.check(name, statement, kind, smallest, 0.0, source)
    theta = None if gap is None else to_numpy(gap.theta)
    found = is_balanced_by_all(rows, _pair_weights(labels, weights, theta))
    if found is None:
        why = "neither a separating direction nor weights that exclude one were found in exact arithmetic"
        return Claim.undecided(name, why, kind, source)
    if found:
        return Claim.check(name, _BALANCED, kind, 0.0, 0.0, source)
    statement = (
        "some direction separates the classes, but for rows on its boundary: the likelihood has no "
        "maximiser, and the coefficients would grow without bound"
    )
    return Claim.check(name, statement, kind, 1.0, 0.0, source)


def _balance(design: Design, y: Any, s: Any, gap: Gap | None, fit_intercept: bool) -> bool:
    """Whether weights near those of the dual point balance the rows y (x, 1), as far as can be shown.

    All sums are products with X, so that many rows do: see :func:`surefit._exact_separation.can_balance`.
    """
    n, p = design.shape
    if gap is None or p > _COLUMNS:
        return False
    balance = -s * gap.theta  # y times the weights
    weights = y * balance
    if not bool((weights[s > 0] > 0.0).all()):
        return False
    norms, total = design.column_norms(weights), float(weights.sum())
    gram, residual = design.gram(weights), np.abs(design.tdot(balance))
    reach = design.column_norms(design.ones())
    if fit_intercept:
        sums = design.tdot(weights)
        gram = np.block([[gram, sums[:, None]], [sums[None, :], np.array([[total]])]])
        residual = np.append(residual, abs(float(balance.sum())))
        norms, reach = np.append(norms, math.sqrt(total)), np.append(reach, 1.0)
    rounding = 4.0 * (n + 8) * EPS
    slack = rounding * np.outer(norms, norms)
    return correction_exists(gram, slack, residual + rounding * norms * math.sqrt(total), reach)


def _margins(y: Array, z: Array) -> Array:
    """By how much the score of each row's own class is ahead of the next one."""
    if z.ndim == 1:
        return y * z
    rows, own = np.arange(len(z)), y.astype(np.intp)
    others = z.copy()
    others[rows, own] = -np.inf
    ahead: Array = z[rows, own] - others.max(axis=1)
    return ahead


def _differences(
    design: Design, y: Array, kept: NDArray[np.bool_], fit_intercept: bool, dimensions: int
) -> Array | None:
    """The rows z such that <z, v> > 0 for all of them says that v separates the classes.

    For two classes y (x, 1). For K classes, one row for each pair of a sample and a class k that is not its
    own: x in the place of its own class and -x in that of k; the last class has no place, since a common
    shift of all classes changes nothing. None where they would be too many.
    """
    classes = 2 if dimensions == 1 else int(y.max()) + 1
    width = design.shape[1] + int(fit_intercept)
    pairs, size = int(kept.sum()) * (classes - 1), width * (classes - 1)
    if pairs * size > _ENTRIES:
        return None
    rows = np.asarray(design.home(), dtype=np.float64)[kept]
    rows = np.column_stack([rows, np.ones(len(rows))]) if fit_intercept else rows
    y = y[kept]
    if dimensions == 1:
        return y[:, None] * rows
    own = y.astype(np.intp)
    table = np.zeros((len(rows), classes, classes, width))
    table[np.arange(len(rows)), :, own] += rows[:, None]
    for k in range(classes):
        table[:, k, k] -= rows
    others = np.arange(classes) != own[:, None]
    return table[others][:, :-1].reshape(-1, size)


def _pair_weights(y: Array, s: Array, theta: Array | None) -> Array | None:
    """The weights of these rows behind a dual point: s times the probability of each wrong class."""
    if theta is None:
        return None
    if theta.ndim == 1:
        theta = -y * theta
        return np.asarray((s * theta)[s > 0])
    others = np.arange(theta.shape[1]) != y.astype(np.intp)[:, None]
    return np.asarray((s[:, None] * theta)[(s > 0)[:, None] & others])


def _flat_point(w: Array, b: Any, fit_intercept: bool) -> Array:
    """Coefficients and intercepts as one vector v, the last of K classes taken from the others."""
    if w.ndim == 1:
        return np.append(w, float(b)) if fit_intercept else w
    whole = np.vstack([w, np.atleast_1d(b)]) if fit_intercept else w
    return (whole - whole[:, -1:])[:, :-1].T.ravel()
