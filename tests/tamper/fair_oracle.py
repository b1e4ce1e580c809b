"""Oracles of the fairness remedies: covariances of scores and features with the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from sklearn.base import clone

from surefit import Claim
from tests.tamper import linear_oracle
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


# ------------------------------------------------------------------------ thresholds of groups


def _accepted(fits: Any, model: Any) -> Any:
    """The probability with which each row is accepted."""
    return model.predict_proba(fits.rows.X, **fits.rows.extra)[:, 1]


def _shares(fits: Any, model: Any, accept: Any) -> Any:
    """The equal rates, by group, of one rule or of many: rows of ``accept`` are rules."""
    y, A = np.asarray(fits.rows.y), _indicators(fits)
    among = {
        "demographic_parity": [np.ones(len(y))],
        "equal_opportunity": [y == 1],
        "predictive_equality": [y == 0],
        "equalized_odds": [y == 1, y == 0],
    }[model.constraint]
    parts = [A * np.asarray(rows, float)[:, None] for rows in among]
    return np.concatenate([accept @ (part / part.sum(axis=0)) for part in parts], axis=-1)


def _cost(fits: Any, accept: Any) -> Any:
    """Mistakes of one rule or of many: the objective is "accuracy"."""
    y = np.asarray(fits.rows.y, dtype=float)
    return accept @ (1.0 - y) + (1.0 - accept) @ y


def _cuts(fits: Any, model: Any) -> list[Any]:
    """Of each group, what every single threshold accepts of all rows."""
    score = model.estimator_.predict_proba(fits.rows.X)[:, 1]
    found = []
    for member in _indicators(fits).T:
        ends = np.append(np.unique(score[member == 1]), np.inf)
        found.append(member * (score >= ends[:, None]))
    return found


def _least_single(fits: Any, model: Any) -> float:
    """The least cost of all pairs of thresholds with rates within the tolerance."""
    first, second = _cuts(fits, model)
    rules = (first[:, None, :] + second[None, :, :]).reshape(-1, len(fits.rows.y))
    shares = _shares(fits, model, rules).reshape(len(rules), -1, 2)
    near = np.all(np.abs(shares[..., 0] - shares[..., 1]) <= model.tolerance + 1e-12, axis=1)
    return float(_cost(fits, rules[near]).min())


def _least_drawn(fits: Any, model: Any, tolerance: float) -> float:
    """The least expected cost of all draws between thresholds, by linear programming."""
    first, second = _cuts(fits, model)
    rules = np.concatenate([first, second])
    y = np.asarray(fits.rows.y, dtype=float)
    shares = _shares(fits, model, rules).reshape(len(rules), -1, 2)
    apart = (shares[..., 0] - shares[..., 1]).T
    one = np.repeat(np.eye(2), [len(first), len(second)], axis=1)
    limits = np.full(2 * len(apart), tolerance)
    found = scipy.optimize.linprog(
        rules @ (1.0 - 2.0 * y), np.concatenate([apart, -apart]), limits, one, np.ones(2)
    )
    return float(found.fun + y.sum())


def best_rule(fits: Any, model: Any, claim: Claim) -> str:
    """The cost of the decisions, against the least of all rules of this kind."""
    cost, said = _cost(fits, _accepted(fits, model)), stated(claim, "cost")
    within = stated(claim, "within")
    if said is None or within is None or abs(cost - said) > 1e-5 * cost:
        return f"the cost is {cost:.6g}, not {said}"
    if model.randomize:
        least = _least_drawn(fits, model, 0.0)
    else:
        least, bound = _least_single(fits, model), stated(claim, "none costs less than")
        drawn = _least_drawn(fits, model, model.tolerance)
        if bound is None or bound > drawn + 1e-5 * cost:
            return f"with random draws {drawn:.6g} is possible, below {bound}"
    return (
        "" if cost - least <= 1.06 * within + 1e-7 else f"it is {cost - least:.3g} above the least"
    )


def equal_rates(fits: Any, model: Any, claim: Claim) -> str:
    """The rates of the decisions differ by what is stated, and by no more than is allowed."""
    shares = _shares(fits, model, _accepted(fits, model)).reshape(-1, 2)
    apart, said = float(np.abs(shares[:, 0] - shares[:, 1]).max()), stated(claim, "differs by")
    allowed = 0.0 if model.randomize else model.tolerance
    near = said is not None and abs(apart - said) <= 0.06 * said + 1e-12
    return "" if near and apart <= allowed + 1e-12 else f"they differ by {apart:.3g}"


def scores_hold(fits: Any, model: Any, claim: Claim) -> str:
    """The model that gives the scores is as good as a tight fit of it."""
    part, X, y = model.estimator_, fits.rows.X, np.asarray(fits.rows.y)
    tight = clone(part).set_params(tol=1e-12, max_iter=10_000, certify=False).fit(X, y)
    value, least = (linear_oracle.objective(fitted, X, y) for fitted in (part, tight))
    return "" if value - least <= 1e-3 * least else f"it is {value - least:.3g} above the least"


CHECKS: dict[str, dict[str, Callable[[Any, Any, Claim], str]]] = {
    "FairLogistic": {"duality gap": fair_gap, "covariance": score_covariance},
    "GroupThresholds": {
        "optimal rule": best_rule,
        "equal rates": equal_rates,
        "scores": scores_hold,
    },
    "Decorrelate": {"covariance": feature_covariance, "means": feature_means},
}
