r"""The objective of a linear fit after k steps, and the lower bound that its certificate proves.

The curve is made from outside: the same model is fitted with ``max_iter`` = 1, 2, 3, 5, ... and its
objective is worked out here from the coefficients. The lower bound is the objective at the end less the
certified gap, so the picture shows a theorem: whatever else is tried, no coefficients lie below the line.

===================  ===========================================================================
model                objective
===================  ===========================================================================
LogisticRegression   :math:`C\sum_i \ell(x_i'w+b, y_i) + \tfrac12\|w\|^2`
LinearSVC            :math:`C\sum_i [1-y_i(x_i'w+b)]_+^2 + \tfrac12(\|w\|^2+b^2)`
Ridge and classifier :math:`\tfrac12\|y-Xw-b\|^2 + \tfrac\alpha2\|w\|^2`
Lasso                :math:`\tfrac1{2n}\|y-Xw-b\|^2 + \alpha\|w\|_1`
===================  ===========================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .plan import Candidate
from .watch import Watch

__all__ = ["objective", "objective_curve"]

Array = NDArray[np.float64]
STEPS = (1, 2, 3, 5, 8, 13, 21, 34, 55)


def objective(model: Any, X: Array, y: Array) -> float:
    """The value that the fit of this model minimises; NaN where there is no formula here."""
    name = type(model).__name__
    if name not in ("LogisticRegression", "LinearSVC", "Ridge", "RidgeClassifier", "Lasso"):
        return math.nan
    w = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    z = X @ w.T + b  # (n, 1) or (n, K)
    squares = float((w**2).sum())
    if name in ("Ridge", "Lasso"):
        error = float(((y - z[:, 0]) ** 2).sum())
        if name == "Ridge":
            return 0.5 * (error + float(model.alpha) * squares)
        return error / (2 * len(y)) + float(model.alpha) * float(np.abs(w).sum())
    codes = np.searchsorted(model.classes_, y)
    signs = np.where(codes[:, None] == np.arange(z.shape[1]), 1.0, -1.0)
    if z.shape[1] == 1:
        signs = np.where(codes[:, None] == 1, 1.0, -1.0)
    if name == "RidgeClassifier":
        return 0.5 * (float(((signs - z) ** 2).sum()) + float(model.alpha) * squares)
    if name == "LinearSVC":
        hinge = float((np.maximum(0.0, 1.0 - signs * z) ** 2).sum())
        return float(model.C) * hinge + 0.5 * (squares + float((b**2).sum()))
    if z.shape[1] == 1:
        loss = float(np.logaddexp(0.0, -signs * z).sum())
    else:
        loss = float((logsumexp(z, axis=1) - z[np.arange(len(y)), codes]).sum())
    return float(model.C) * loss + 0.5 * squares


def objective_curve(
    candidate: Candidate, model: Any, X: Array, y: Array, watch: Watch, *, share: float = 0.9
) -> dict[str, Any] | None:
    """Objective after k steps, at w = 0 and at the end, and the proved bound; ``None`` without a formula."""
    value = objective(model, X, y)
    certificate = getattr(model, "certificate_", None)
    if math.isnan(value) or certificate is None or "duality gap" not in certificate:
        return None
    if type(model).__name__ != "LogisticRegression" and len(np.atleast_2d(model.coef_)) > 1:
        return None  # several problems, of which the certificate states the worst gap, not the sum
    gap = certificate["duality gap"].observed
    steps, values = [], []
    counts = getattr(model, "n_iter_", None)  # None where there are no steps; one for each class
    total = 0 if counts is None else int(np.max(counts))
    for k in STEPS:
        if k >= total or watch.left(share) <= 0:
            break
        early = candidate.make(columns=X.shape[1]).set_params(max_iter=k)
        fitted = _fit_early(early, X, y)
        if fitted is None:
            break
        steps.append(k)
        values.append(objective(fitted, X, y))
    return {
        "iterations": [*steps, max(total, 1)],
        "values": [*values, value],
        "lower_bound": value - max(gap, 0.0),
        "start": objective(_at_zero(model, y), X, y),
        "name": f"objective of {candidate.name}",
    }


def _fit_early(model: Any, X: Array, y: Array) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(X, y)
        except (ValueError, ArithmeticError):
            return None


def _at_zero(model: Any, y: Array) -> Any:
    """The same model with all coefficients 0 and no offset, where a fit begins."""
    import copy

    zero = copy.copy(model)
    zero.coef_ = np.zeros_like(np.asarray(model.coef_, dtype=np.float64))
    zero.intercept_ = np.zeros_like(np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)))
    return zero
