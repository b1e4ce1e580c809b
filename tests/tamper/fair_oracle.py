"""Oracles of the fairness remedies: covariances of scores and features with the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from surefit import Claim
from tests.tamper.linear_oracle import stated

__all__ = ["CHECKS"]


def _indicators(fits: Any) -> Any:
    groups = np.asarray(fits.rows.extra["sensitive"])
    return np.column_stack([groups == g for g in np.unique(groups)]).astype(float)


def _score_covariances(fits: Any, model: Any) -> Any:
    """The covariances that are penalised: over all rows, or within each label."""
    X, y, A = fits.rows.X, np.asarray(fits.rows.y), _indicators(fits)
    z = X @ np.ravel(model.coef_).astype(float)
    parts = [np.ones(len(y), bool)] if model.criterion == "independence" else [y == 0, y == 1]
    found = []
    for rows in parts:
        centred = A[rows] - A[rows].mean(axis=0)
        found.append(centred.T @ (z[rows] - z[rows].mean()) / rows.sum())
    return np.concatenate(found)


def _fair_value(fits: Any, model: Any) -> float:
    y = np.asarray(fits.rows.y)
    z = model.decision_function(fits.rows.X)
    if not model.fit_intercept and np.any(model.intercept_):
        raise ValueError("the intercept is not 0 under fit_intercept=False")
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    w = np.ravel(model.coef_).astype(float)
    cost = model.C * float(np.logaddexp(0.0, -signs * z).sum()) + 0.5 * float(w @ w)
    squares = float((_score_covariances(fits, model) ** 2).sum())
    return cost + 0.5 * model.C * len(y) * model.fairness * squares


def fair_gap(fits: Any, model: Any, claim: Claim) -> str:
    """Loss, ridge and covariances, compared with a tight fit."""
    value, said, within = (
        _fair_value(fits, model),
        stated(claim, "objective"),
        stated(claim, "within"),
    )
    tight = clone(model).set_params(tol=1e-12, max_iter=10_000, certify=False)
    least = _fair_value(fits, tight.fit(fits.rows.X, fits.rows.y, **fits.rows.extra))
    if said is None or within is None or abs(value - said) > 1e-5 * abs(said):
        return f"the objective is {value:.6g}, not {said}"
    for X in (fits.rows.X, fits.rows.unseen):
        z = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)
        if not np.array_equal(model.predict(X), np.asarray(model.classes_)[(z > 0).astype(int)]):
            return "predict is not the side of the score"
    above = value - least
    return "" if above <= 1.05 * within + 1e-9 * least else f"it is {above:.3g} above the least"


def score_covariance(fits: Any, model: Any, claim: Claim) -> str:
    """The sum of the squared covariances of the score."""
    found, said = float((_score_covariances(fits, model) ** 2).sum()), stated(claim, "sum to")
    near = said is not None and abs(found - said) <= 6e-3 * abs(said) + 1e-12
    return "" if near else f"they sum to {found:.3g}, not {said}"


def feature_covariance(fits: Any, model: Any, claim: Claim) -> str:
    """The share 1 - alpha of the covariance with the groups is left in every feature."""
    changed = np.asarray(model.transform(fits.rows.X, sensitive=fits.rows.extra["sensitive"]))
    A = _indicators(fits)
    centred = A - A.mean(axis=0)
    before, after = centred.T @ fits.rows.X, centred.T @ changed
    left = 1.0 - model.alpha
    said = stated(claim, "attribute is")
    if said is not None and abs(said - left) > 1e-3 * max(left, 1e-9):
        return f"the share left is {left:.4g}, not {said}"
    same = np.allclose(after, left * before, 0, 1e-9 * np.abs(before).max())
    return "" if same else "the covariances are others"


def feature_means(fits: Any, model: Any, claim: Claim) -> str:
    """The means of the features are what they were."""
    changed = np.asarray(model.transform(fits.rows.X, sensitive=fits.rows.extra["sensitive"]))
    same = np.allclose(changed.mean(axis=0), fits.rows.X.mean(axis=0), 1e-9, 1e-9)
    return "" if same else "the means are others"


CHECKS: dict[str, dict[str, Callable[[Any, Any, Claim], str]]] = {
    "FairLogistic": {"duality gap": fair_gap, "covariance": score_covariance},
    "Decorrelate": {"covariance": feature_covariance, "means": feature_means},
}
