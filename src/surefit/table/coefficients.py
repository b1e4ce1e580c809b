"""Coefficients of the chosen model with their intervals, where it is linear and there are any."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

__all__ = ["coefficients"]

MOST = 60
WIDEST = 500  # coefficients that intervals are worked out for


def coefficients(model: Any, X: Any, y: Any) -> list[dict[str, Any]] | None:
    """The largest coefficients, a standard deviation (or a category) each, with 95 % intervals.

    The intervals are those of ``summary()``: large-sample, around the expectation of the penalised
    estimate. Of several classes the coefficients of the positive one are shown. There are none where the
    coefficients are more than 500, or more than a tenth of the rows: the sample is then not large.
    """
    fitted = model.model_
    if getattr(fitted, "coef_", None) is None:
        return None
    coef = np.atleast_2d(np.asarray(fitted.coef_, dtype=np.float64))
    row = 0 if len(coef) == 1 else model.positive_code
    names = [str(name) for name in model.encoder_.get_feature_names_out()]
    flip = (
        -1.0
        if len(coef) == 1 and model.task == "classification" and model.positive_code == 0
        else 1.0
    )
    values = flip * coef[row] * float(model.scale_)
    low = high = np.full(len(values), np.nan)
    large = len(values) <= min(WIDEST, len(X) // 10)
    if hasattr(fitted, "summary") and len(coef) == 1 and large:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                summary = fitted.summary(X, y)
                ends = np.array([summary.low[-len(values) :], summary.high[-len(values) :]])
                low, high = np.sort(flip * ends * float(model.scale_), axis=0)
            except (ValueError, np.linalg.LinAlgError):  # no standard errors for this fit
                pass
    order = np.argsort(-np.abs(values), kind="stable")[:MOST]
    return [
        {
            "name": names[j],
            "value": float(values[j]),
            "low": float(low[j]) if np.isfinite(low[j]) else None,
            "high": float(high[j]) if np.isfinite(high[j]) else None,
        }
        for j in order
    ]
