r"""What is claimed of logistic regression without a penalty, from the data and the predictions alone.

* *gradient* (STATIONARY): it is zero to ``tol`` of its scale;
* *finite optimum* (EXACT): on separable data the likelihood has no maximiser; a dual point in the interior of
  its domain proves that no hyperplane separates the classes.

Reference: Albert & Anderson, "On the existence of maximum likelihood estimates in logistic regression models"
(1984).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import scale_rows, to_numpy
from ..certificate import Claim, Kind
from ..design import as_design
from ..duality import Gap
from ..losses import Loss

__all__ = ["finite_optimum_claim", "gradient_claim", "is_interior"]

Array = NDArray[np.float64]


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
    observed = float(np.max(np.divide(slopes, scale, out=np.zeros_like(slopes), where=scale > 0)))
    statement = (
        f"the gradient is zero to {observed:.1e} of its scale at w = 0, and the loss is convex"
    )
    floor = 100.0 * storage_eps(dtype)
    return Claim.check("gradient", statement, Kind.STATIONARY, observed, tol, "LOG-4", floor=floor)


def finite_optimum_claim(y: Any, s: Any, z: Any, gap: Gap | None) -> Claim:
    """Whether the likelihood has a maximiser at all."""
    name, source = "finite optimum", "LOG-5"
    y, s, z = to_numpy(y), to_numpy(s), to_numpy(z)
    if z.ndim == 1:
        margins = y * z
    else:
        own = z[np.arange(len(z)), y.astype(np.intp)]
        others = z.copy()
        others[np.arange(len(z)), y.astype(np.intp)] = -np.inf
        margins = own - others.max(axis=1)
    smallest = float(margins[s > 0].min())
    if smallest > 0:
        statement = (
            f"the classes are separated (smallest margin {smallest:.2g}): the likelihood has no "
            "maximiser, and the coefficients would grow without bound"
        )
        return Claim.check(name, statement, Kind.EXACT, smallest, 0.0, source)
    interior = (
        gap is not None
        and math.isfinite(gap.gap)
        and is_interior(to_numpy(gap.theta)[s > 0], y[s > 0])
    )
    if interior:
        statement = (
            "a dual point with every sample in use shows that no hyperplane separates the classes"
        )
        return Claim.check(name, statement, Kind.EXACT, 0.0, 0.0, source)
    why = "this model does not separate the classes; "
    why += (
        "surefit.verify looks for the dual point that settles it"
        if gap is None
        else "no dual point with every sample in use was found, so a separating limit is not excluded"
    )
    return Claim.undecided(name, why, Kind.EXACT, source)


def is_interior(theta: Array, y: Array) -> bool:
    """Every probability behind a dual point strictly between 0 and 1: only then is no limit left out.

    The point is feasible to rounding, |X'(s theta)| <= 1e-11 ||x|| ||theta||, so that a probability up to
    about 1e-11 times the number of rows may be a 0 in truth: on quasi-separated data some are.
    """
    least = 1e-10 * len(theta)
    if theta.ndim == 1:
        return bool((-y * theta > least).all() and (-y * theta < 1.0 - least).all())
    own = np.zeros(theta.shape, dtype=bool)
    own[np.arange(len(theta)), y.astype(np.intp)] = True
    return bool((theta[own] < -least).all() and (theta[~own] > least).all())
