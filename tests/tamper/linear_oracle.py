"""Oracles of the linear models: objectives by their formulas, gradients, and counts of rows."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from sklearn.base import clone

from surefit import Claim
from surefit.linear_model import (
    ElasticNet,
    Lasso,
    LogisticRegression,
    MultiTaskElasticNet,
    MultiTaskLasso,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)

__all__ = ["CHECKS", "binary_problems", "objective", "optimum", "stated"]

ROUNDING = (
    1e-9  # of the objective: far above what float64 does here, far below what a claim may hide
)
NUMBER = r"([-+]?\d[\d.,]*(?:e[-+]?\d+)?)"


def stated(claim: Claim, words: str) -> float | None:
    """The number that a statement gives after some words."""
    found = re.search(words + r"\s*" + NUMBER, claim.statement)
    return None if found is None else float(found[1].rstrip(".,").replace(",", ""))


# ------------------------------------------------------------------------ objectives


def _coefficients(model: Any) -> Any:
    coef = model.coef_
    coef = coef.toarray() if hasattr(coef, "toarray") else coef
    return np.atleast_2d(np.asarray(coef, dtype=np.float64))


def _intercepts(model: Any, count: int) -> Any:
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    if b.shape not in ((count,), (1,)):
        raise ValueError(f"intercept_ has shape {b.shape}")
    if not model.fit_intercept and b.any():
        raise ValueError("the intercept is not 0 under fit_intercept=False")
    return np.broadcast_to(b, (count,))


def _elastic(w: Any, alpha: Any, l1_ratio: float) -> float:
    return float(alpha * (l1_ratio * np.abs(w).sum() + 0.5 * (1.0 - l1_ratio) * (w**2).sum()))


def _squares(model: Any, X: Any, y: Any, k: int) -> float:
    r = _target(y, k) - _target(model.predict(X), k)
    return float(r @ r)


def _target(y: Any, k: int) -> Any:
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 2:
        return y[:, k]
    assert y.ndim == 1
    return y


def _ridge(model: Any, X: Any, y: Any, k: int) -> float:
    alpha = getattr(model, "alpha_", None)
    alpha = np.asarray(model.alpha if alpha is None else alpha, dtype=np.float64)
    alpha = float(alpha if alpha.ndim == 0 else alpha[k])
    w = _coefficients(model)[k]
    if getattr(model, "positive", False) and (w < 0).any():
        return np.inf
    if hasattr(model, "classes_"):
        signs, z = binary_problems(model, X, y)[k]
        r = signs - z
        return 0.5 * float(r @ r + alpha * (w @ w))
    return 0.5 * (_squares(model, X, y, k) + float(alpha * (w @ w)))


def _lasso(model: Any, X: Any, y: Any, k: int) -> float:
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    l1_ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    w = _coefficients(model)
    if getattr(model, "positive", False) and (w < 0).any():
        return np.inf
    r = np.asarray(y) - np.asarray(model.predict(X)).reshape(np.shape(y))
    if np.ndim(y) == 1:
        return float((r**2).sum()) / (2 * len(r)) + _elastic(w, alpha, l1_ratio)
    rows = np.sqrt((w**2).sum(axis=0)).sum()
    penalty = alpha * (l1_ratio * rows + 0.5 * (1.0 - l1_ratio) * (w**2).sum())
    return float((r**2).sum() / (2 * len(r)) + penalty)


def _huber(model: Any, X: Any, y: Any, k: int) -> float:
    scale, edge = float(model.scale_), float(model.epsilon)
    if not scale > 0.0:
        return np.inf
    u = np.abs(np.asarray(y) - model.predict(X)) / scale
    loss = np.where(u <= edge, u**2, 2.0 * edge * u - edge**2)
    w = _coefficients(model)
    return float(len(u) * scale + scale * loss.sum() + model.alpha * (w**2).sum())


def _pinball(model: Any, X: Any, y: Any, k: int) -> float:
    r, q = np.asarray(y) - model.predict(X), float(model.quantile)
    loss = np.where(r >= 0, q * r, (q - 1.0) * r)
    return float(loss.mean() + model.alpha * np.abs(_coefficients(model)).sum())


def _svr(model: Any, X: Any, y: Any, k: int) -> float:
    over = np.maximum(np.abs(np.asarray(y) - model.predict(X)) - model.epsilon, 0.0)
    power = 1 if model.loss == "epsilon_insensitive" else 2
    return _half_norm(model, 0) + float(model.C * (over**power).sum())


def _half_norm(model: Any, k: int) -> float:
    """Half the squared length of the weights, with that of a penalised intercept."""
    w = _coefficients(model)[k]
    total = w @ w
    if model.fit_intercept and model.penalize_intercept:
        total += (_intercepts(model, len(_coefficients(model)))[k] / model.intercept_scaling) ** 2
    return float(0.5 * total)


def binary_problems(model: Any, X: Any, y: Any) -> list[tuple[Any, Any]]:
    """Signs and scores of each binary problem that a classifier solves."""
    z, classes = np.asarray(model.decision_function(X), dtype=np.float64), model.classes_
    if z.ndim == 1:
        return [(np.where(np.asarray(y) == classes[1], 1.0, -1.0), z)]
    return [(np.where(np.asarray(y) == c, 1.0, -1.0), z[:, k]) for k, c in enumerate(classes)]


def _row_weights(model: Any, y: Any) -> Any:
    """class_weight, spelled out."""
    y, asked = np.asarray(y), getattr(model, "class_weight", None)
    if asked is None:
        return np.ones(len(y))
    if asked == "balanced":
        values, counts = np.unique(y, return_counts=True)
        factors = dict(zip(values.tolist(), len(y) / (len(values) * counts)))
    else:
        factors = asked
    return np.array([factors.get(label, 1.0) for label in y.tolist()])


def _svc(model: Any, X: Any, y: Any, k: int) -> float:
    weights = model.C * _row_weights(model, y)
    if model.multi_class == "crammer_singer":
        z = model.decision_function(X)
        own = np.searchsorted(model.classes_, y)
        other = z + (np.arange(z.shape[1]) != own[:, None])
        loss = other.max(axis=1) - z[np.arange(len(z)), own]
        norm = sum(_crammer_norm(model, j) for j in range(z.shape[1]))
        return float(norm + weights @ loss)
    signs, z = binary_problems(model, X, y)[k]
    over = np.maximum(1.0 - signs * z, 0.0)
    loss = over if model.loss == "hinge" else over**2
    if model.penalty == "l1":
        w = _coefficients(model)[k]
        norm = float(np.abs(w).sum())
        if model.fit_intercept and model.penalize_intercept:
            norm += (
                abs(float(_intercepts(model, len(_coefficients(model)))[k]))
                / model.intercept_scaling
            )
    else:
        norm = _half_norm(model, k)
    return float(norm + weights @ loss)


def _crammer_norm(model: Any, k: int) -> float:
    return _half_norm(model, k)


def _logistic(model: Any, X: Any, y: Any, k: int) -> float:
    C = float(np.ravel(getattr(model, "C_", model.C if hasattr(model, "C") else 1.0))[0])
    ratio = np.ravel(getattr(model, "l1_ratio_", None) or getattr(model, "l1_ratio", 0.0) or 0.0)[0]
    w = _coefficients(model)
    rows = _row_weights(model, y)
    z = np.asarray(model.decision_function(X), dtype=np.float64)
    if z.ndim == 1:
        signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
        loss = np.logaddexp(0.0, -signs * z)
    else:
        own = np.searchsorted(model.classes_, y)
        loss = np.logaddexp.reduce(z, axis=1) - z[np.arange(len(z)), own]
    if np.isinf(C):
        return float(rows @ loss)
    weights = w.ravel()
    if model.solver == "liblinear" and model.fit_intercept:
        b = np.atleast_1d(model.intercept_) / model.intercept_scaling
        weights = np.concatenate([weights, b])
    return float(C * (rows @ loss) + _elastic(weights, 1.0, float(ratio)))


def _sgd(model: Any, X: Any, y: Any, k: int) -> float:
    w = _coefficients(model)[k]
    if hasattr(model, "classes_"):
        signs, z = binary_problems(model, X, y)[k]
        m = signs * z
        loss = {
            "hinge": np.maximum(1 - m, 0),
            "log_loss": np.logaddexp(0, -m),
            "squared_hinge": np.maximum(1 - m, 0) ** 2,
        }[model.loss]
    else:
        r = np.abs(np.asarray(y) - model.predict(X))
        e = model.epsilon
        loss = {
            "squared_error": 0.5 * r**2,
            "huber": np.where(r <= e, 0.5 * r**2, e * r - 0.5 * e**2),
        }[model.loss]
    ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": model.l1_ratio, None: 0.0}[model.penalty]
    alpha = 0.0 if model.penalty is None else model.alpha
    return float(loss.mean()) + _elastic(w, alpha, ratio)


OBJECTIVES: dict[str, Callable[[Any, Any, Any, int], float]] = {
    "LinearRegression": _squares,
    "Ridge": _ridge,
    "RidgeCV": _ridge,
    "RidgeClassifier": _ridge,
    "RidgeClassifierCV": _ridge,
    "Lasso": _lasso,
    "LassoCV": _lasso,
    "ElasticNet": _lasso,
    "ElasticNetCV": _lasso,
    "MultiTaskLasso": _lasso,
    "MultiTaskLassoCV": _lasso,
    "MultiTaskElasticNet": _lasso,
    "MultiTaskElasticNetCV": _lasso,
    "HuberRegressor": _huber,
    "QuantileRegressor": _pinball,
    "LinearSVR": _svr,
    "LinearSVC": _svc,
    "LogisticRegression": _logistic,
    "LogisticRegressionCV": _logistic,
    "SGDClassifier": _sgd,
    "SGDRegressor": _sgd,
}


def objective(model: Any, X: Any, y: Any, k: int = 0) -> float:
    """The objective of problem k of a model at what the model does."""
    _intercepts(model, len(_coefficients(model)))
    return OBJECTIVES[type(model).__name__](model, X, y, k)


# ------------------------------------------------------------------------ the least objective


def optimum(model: Any, X: Any, y: Any) -> Any:
    """A tight fit of the problem that the parameters of a model state; cached by the parameters."""
    twin = _plain(model)
    data = (np.asarray(X).tobytes(), np.asarray(y).tobytes())
    key = (repr(sorted(twin.get_params().items(), key=str)), type(twin), data)
    if key not in _OPTIMA:
        _OPTIMA[key] = twin.fit(X, y)
    return _OPTIMA[key]


_OPTIMA: dict[Any, Any] = {}


def _plain(model: Any) -> Any:
    """The estimator without a search for its penalty, and with a tight tolerance."""
    name = type(model).__name__
    plain: Any
    if name in ("LassoCV", "ElasticNetCV", "MultiTaskLassoCV", "MultiTaskElasticNetCV"):
        kind = {"L": Lasso, "E": ElasticNet}.get(name[0])
        kind = kind or (MultiTaskLasso if "Lasso" in name else MultiTaskElasticNet)
        plain = kind(alpha=float(model.alpha_), fit_intercept=model.fit_intercept)
        if "ElasticNet" in name:
            plain.set_params(l1_ratio=float(model.l1_ratio_))
        if hasattr(model, "positive") and "MultiTask" not in name:
            plain.set_params(positive=model.positive)
    elif name in ("RidgeCV", "RidgeClassifierCV"):
        kind = RidgeClassifier if "Classifier" in name else Ridge
        plain = kind(alpha=model.alpha_, fit_intercept=model.fit_intercept)
    elif name == "LogisticRegressionCV":
        plain = LogisticRegression(
            C=float(np.ravel(model.C_)[0]), fit_intercept=model.fit_intercept, solver=model.solver
        )
    else:
        plain = clone(model)
    tight = {"tol": 1e-12, "max_iter": 100_000, "certify": False, "warm_start": False}
    known = plain.get_params()
    return plain.set_params(**{key: value for key, value in tight.items() if key in known})


def _descended(model: Any, X: Any, y: Any, k: int) -> float:
    """A smaller objective of a model of single steps, found by a search without gradients."""
    w, b = _coefficients(model), _intercepts(model, len(_coefficients(model)))

    def value(point: Any) -> float:
        twin = copy.copy(model)
        twin.coef_, twin.intercept_ = w.copy(), b.copy()
        twin.coef_[k], twin.intercept_[k] = point[:-1], point[-1] * model.fit_intercept
        if not hasattr(model, "classes_"):
            twin.coef_ = twin.coef_[0]
        return _sgd(twin, X, y, k)

    start = np.append(w[k], b[k])
    return float(scipy.optimize.minimize(value, start, method="Nelder-Mead").fun)


def problem_number(model: Any, claim: Claim) -> int:
    """Which of several problems a claim is about."""
    target = re.search(r"\(number (\d+)\)", claim.statement)
    if target:
        return int(target[1])
    part = claim.name.rpartition(": ")[0]
    found = re.fullmatch(r"class (.*)|(.*) vs rest", part)
    if found is None or not hasattr(model, "classes_"):
        return 0
    label = found[1] or found[2]
    return [str(c) for c in model.classes_.tolist()].index(label)


# ------------------------------------------------------------------------ checks


def consistent(fits: Any, model: Any) -> str:
    """Predictions are what the decision function and the coefficients say, on unseen rows too."""
    for X in (fits.rows.X, fits.rows.unseen):
        coef = _coefficients(model)
        z = X @ coef.T + _intercepts(model, len(coef))
        if not hasattr(model, "classes_"):
            if not np.allclose(np.reshape(model.predict(X), z.shape), z, 1e-6, 1e-6):
                return "predict is not X @ coef_ + intercept_"
            if np.ndim(model.predict(X)) != np.ndim(fits.rows.y):
                return "predict has another shape than the targets"
            continue
        scores = np.asarray(model.decision_function(X))
        if not np.allclose(scores.reshape(z.shape), z, 1e-6, 1e-6):
            return "decision_function is not X @ coef_ + intercept_"
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        if not np.array_equal(model.predict(X), np.asarray(model.classes_)[best]):
            return "predict is not the class of the largest score"
    return ""


def duality_gap(fits: Any, model: Any, claim: Claim) -> str:
    """The objective is that of the formula, and its distance from the least is at most what is stated."""
    if wrong := consistent(fits, model):
        return wrong
    X, y, k = fits.rows.X, fits.rows.y, problem_number(model, claim)
    value = objective(model, X, y, k)
    said, within = stated(claim, "objective"), stated(claim, "within")
    if said is None or within is None:
        return f"the oracle cannot read {claim.statement!r}"
    if not abs(value - said) <= 1e-5 * abs(said):
        return f"the objective is {value:.6g}, not {said:.6g}"
    if isinstance(model, SGDClassifier | SGDRegressor):
        best, least = None, _descended(model, X, y, k)
    else:
        best = optimum(model, X, y)
        least = objective(best, X, y, k)
    if not value - least <= 1.05 * within + ROUNDING * abs(least):
        return f"the objective {value:.10g} is {value - least:.3g} above {least:.10g}, not {within:.3g}"
    if value < least - 1e-6 * abs(least) and best is not None:
        return f"the objective {value:.10g} is below the least, {least:.10g}"
    distance = stated(claim, "coefficients are within")
    if distance is None or best is None:
        return ""
    moved = float(np.linalg.norm(_coefficients(model)[k] - _coefficients(best)[k]))
    if not moved <= 1.05 * distance + 1e-6:
        return f"the coefficients are {moved:.3g} from the optimal ones, not {distance:.3g}"
    return ""


def minimiser(fits: Any, model: Any, claim: Claim) -> str:
    """A relative gradient bounds the distance from the least sum of squares."""
    if wrong := consistent(fits, model):
        return wrong
    X, y = fits.rows.X, fits.rows.y
    slope = stated(claim, "to")
    if slope is None:
        return f"the oracle cannot read {claim.statement!r}"
    slope = max(slope, claim.bound) if "to rounding" in claim.statement else slope
    A = np.column_stack([X, np.ones(len(X))]) if model.fit_intercept else np.asarray(X)
    lengths = np.linalg.norm(A, axis=0)
    least_singular = float(np.linalg.svd(A / lengths, compute_uv=False)[-1])
    best = optimum(model, X, y)
    for k in range(1 if np.ndim(y) == 1 else np.shape(y)[1]):
        value, least = objective(model, X, y, k), objective(best, X, y, k)
        target = binary_problems(model, X, y)[k][0] if hasattr(model, "classes_") else _target(y, k)
        scale = 4.0 * float(np.linalg.norm(target))
        allowed = A.shape[1] * (slope * scale / least_singular) ** 2
        if not value - least <= allowed + ROUNDING * max(abs(least), scale**2):
            return f"the objective is {value - least:.3g} above the least"
    return ""


def coefficients(fits: Any, model: Any, claim: Claim) -> str:
    """The error of the coefficients, relative to the lengths of the columns, is at most what is stated."""
    X = np.asarray(fits.rows.X, dtype=np.float64)
    best, error = optimum(model, X, fits.rows.y), stated(claim, "error of at most")
    if error is None:
        return f"the oracle cannot read {claim.statement!r}"
    columns = X - X.mean(axis=0) if model.fit_intercept else X
    lengths = np.linalg.norm(columns, axis=0)
    w, v = _coefficients(model) * lengths, _coefficients(best) * lengths
    moved = float(np.linalg.norm(w - v) / np.linalg.norm(v))
    rank = stated(claim, "rank")
    if rank is not None and rank != np.linalg.matrix_rank(columns):
        return f"the rank is {np.linalg.matrix_rank(columns)}, not {rank:.0f}"
    return "" if moved <= 2.0 * error + 1e-12 else f"the coefficients err by {moved:.3g}"


def spectrum(fits: Any, model: Any, claim: Claim) -> str:
    """The singular values that the model records are those of the columns."""
    X = np.asarray(fits.rows.X, dtype=np.float64)
    columns = X - X.mean(axis=0) if model.fit_intercept else X
    sizes, said = np.linalg.svd(columns, compute_uv=False), stated(claim, "to")
    apart = float(np.abs(np.asarray(model.singular_, dtype=np.float64) - sizes).max() / sizes[0])
    if model.rank_ != np.linalg.matrix_rank(columns):
        return f"the rank is {np.linalg.matrix_rank(columns)}, not {model.rank_}"
    return "" if said is not None and apart <= 2.0 * said + 1e-12 else f"they are {apart:.3g} apart"


def zeros(fits: Any, model: Any, claim: Claim) -> str:
    """Coefficients said to be zero in every optimal solution are zero in a tight fit."""
    best = _coefficients(optimum(model, fits.rows.X, fits.rows.y))
    count = stated(claim, "")
    sure = int(((_coefficients(model) == 0) & (np.abs(best) <= 1e-9)).sum())
    return (
        "" if count is not None and count <= sure else f"{sure} coefficients are zero, not {count}"
    )


def slackness(fits: Any, model: Any, claim: Claim) -> str:
    """The sum of losses, conjugates and products is what is stated, and bounds the duality gap."""
    if wrong := consistent(fits, model):
        return wrong
    X, y, k = fits.rows.X, fits.rows.y, problem_number(model, claim)
    beta = np.atleast_2d(model.dual_coef_)[k if np.ndim(model.dual_coef_) == 2 else 0]
    c = model.C * _row_weights(model, y)
    said = stated(claim, "sum to")
    if hasattr(model, "classes_"):
        signs, z = binary_problems(model, X, y)[k]
        slack, alpha = 1.0 - signs * z, np.maximum(signs * beta, 0.0)
        if model.loss == "hinge":
            alpha = np.minimum(alpha, c)
            total = c * np.maximum(slack, 0.0) - alpha * slack
        else:
            total = c * np.maximum(slack, 0.0) ** 2 + alpha**2 / (4.0 * c) - alpha * slack
        count = int((alpha > 1e-9 * c).sum())
    else:
        r, e = np.asarray(y) - model.predict(X), model.epsilon
        over = np.maximum(np.abs(r) - e, 0.0)
        if model.loss == "epsilon_insensitive":
            beta = np.clip(beta, -c, c)
            total = c * over + e * np.abs(beta) - beta * r
        else:
            total = c * over**2 + beta**2 / (4.0 * c) + e * np.abs(beta) - beta * r
        count = int((np.abs(beta) > 1e-9 * c).sum())
    value = float(np.maximum(total, 0.0).sum())
    if said is None or not abs(value - said) <= 0.06 * said + 1e-9 * float(c.sum()):
        return f"the sum is {value:.3g}, not {said}"
    told = re.search(r"(\d+) of \d+ rows are support vectors", claim.statement)
    if told and int(told[1]) != count:
        return f"there are {count} support vectors, not {told[1]}"
    return ""


def representer(fits: Any, model: Any, claim: Claim) -> str:
    """The coefficients are the sum of the rows times the dual variables."""
    k = problem_number(model, claim)
    beta = np.atleast_2d(model.dual_coef_)[k]
    sums, w = beta @ fits.rows.X, _coefficients(model)[k]
    apart = float(np.abs(sums - w).max() / (np.abs(beta) @ np.abs(fits.rows.X)).max())
    said = stated(claim, "are")
    return "" if said is not None and apart <= 10.0 * said + 1e-9 else f"they are {apart:.3g} apart"


# ------------------------------------------------------------------------ counts and single numbers


def recorded(fits: Any, model: Any, claim: Claim) -> str:
    """A sentence about attributes that are as the fit left them."""
    for name, value in vars(fits.model).items():
        if name in ("coef_", "intercept_", "certificate_") or name.startswith("_"):
            continue
        if not _equal(value, vars(model).get(name)):
            return f"{name} is not that of the fit"
    return ""


def _equal(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(other, one)
    except (AssertionError, TypeError, ValueError):
        return repr(one) == repr(other)
    return True


def _near(value: float, said: float | None, digits: float = 1e-3) -> str:
    """Equal to what is printed."""
    if said is not None and abs(value - said) <= digits * max(abs(said), abs(value)) + 1e-12:
        return ""
    return f"it is {value:.6g}, not {said}"


def _margins(model: Any, X: Any, y: Any, claim: Claim) -> Any:
    k = problem_number(model, claim)
    signs, z = binary_problems(model, X, y)[k]
    return k, signs * z


def mistakes(fits: Any, model: Any, claim: Claim) -> str:
    """Rows that are not strictly on their side."""
    if wrong := consistent(fits, model):
        return wrong
    _, m = _margins(model, fits.rows.X, fits.rows.y, claim)
    return _near(float((m <= 0).sum()), stated(claim, "^"))


def margin(fits: Any, model: Any, claim: Claim) -> str:
    """The least margin in the space of (x, 1)."""
    k, m = _margins(model, fits.rows.X, fits.rows.y, claim)
    w = np.append(_coefficients(model)[k], _intercepts(model, len(_coefficients(model)))[k])
    said = stated(claim, "margin is")
    said = stated(claim, "every row is") if said is None else said
    said = stated(claim, "at a distance of") if said is None else said
    length = np.linalg.norm(w[:-1] if "distance of" in claim.statement else w)
    return _near(float(m.min() / length), said)


def _widest_margin(A: Any, signs: Any) -> float:
    """The largest margin of a unit vector, by Lawson and Hanson's least distance programming."""
    G = signs[:, None] * A
    u, _ = scipy.optimize.nnls(np.column_stack([G, np.ones(len(G))]).T, np.append(0.0 * A[0], 1.0))
    r = np.append(G.T @ u, u.sum() - 1.0)
    if np.linalg.norm(r) <= 1e-9:
        return 0.0  # no hyperplane separates the rows
    return float(-r[-1] / np.linalg.norm(r[:-1]))


def mistake_bound(fits: Any, model: Any, claim: Claim) -> str:
    """The recorded mistakes, and Novikoff's bound: no smaller than that of the widest margin."""
    k, X = problem_number(model, claim), fits.rows.X
    signs = binary_problems(model, X, fits.rows.y)[k][0]
    A = np.column_stack([X, np.ones(len(X))]) if model.fit_intercept else X
    if wrong := _near(float(model.mistakes_[k]), stated(claim, "recorded")):
        return wrong
    said, widest = stated(claim, r"\d² ="), _widest_margin(A, signs)
    least = float((A**2).sum(axis=1).max()) / widest**2 if widest > 0.0 else np.inf
    if said is None or said < least * (1.0 - 1e-3):
        return f"the bound of the widest margin is {least:.4g}, not {said}"
    return "" if model.mistakes_[k] <= said else "more mistakes are recorded than the bound allows"


def weight_norm(fits: Any, model: Any, claim: Claim) -> str:
    """The norm of the weights, and a ball that the steps of a run from 0 do not leave."""
    k, X = problem_number(model, claim), fits.rows.X
    norm, ball = float(np.linalg.norm(_coefficients(model)[k])), stated(claim, "of radius")
    longest = float(np.linalg.norm(X, axis=1).max())
    share = {"l2": 1.0, "l1": 0.0, "elasticnet": 1.0 - model.l1_ratio}[model.penalty]
    least = longest * max(1.0 / (model.alpha * share), model.eta0)
    if ball is None or ball < least * (1.0 - 1e-3):
        return f"steps stay in a ball of radius {least:.4g}, and not in one of {ball}"
    return _near(norm, stated(claim, "have norm"))


def inseparable(fits: Any, model: Any, claim: Claim) -> str:
    """No hyperplane separates the rows: a linear program finds no positive margin."""
    k, _ = _margins(model, fits.rows.X, fits.rows.y, claim)
    signs = binary_problems(model, fits.rows.X, fits.rows.y)[k][0]
    A = np.column_stack([fits.rows.X, np.ones(len(signs)) * model.fit_intercept])
    rows = np.column_stack([-signs[:, None] * A, np.ones(len(signs))])
    limits = [(-1.0, 1.0)] * A.shape[1] + [(None, None)]
    cost = np.append(np.zeros(A.shape[1]), -1.0)
    widest = -scipy.optimize.linprog(cost, rows, np.zeros(len(signs)), bounds=limits).fun
    return "" if widest <= 1e-9 else f"a margin of {widest:.3g} separates the rows"


def sum_of_losses(fits: Any, model: Any, claim: Claim) -> str:
    """Loss plus penalty."""
    if wrong := consistent(fits, model):
        return wrong
    k = problem_number(model, claim)
    if type(model).__name__ == "Perceptron":
        _, m = _margins(model, fits.rows.X, fits.rows.y, claim)
        ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": model.l1_ratio}[model.penalty]
        value = float(np.maximum(-m, 0).mean())
        value += _elastic(_coefficients(model)[k], model.alpha, ratio)
        return _near(value, stated(claim, "is"))
    return _near(_sgd(model, fits.rows.X, fits.rows.y, k), stated(claim, "is"), 1e-5)


def worst_row(fits: Any, model: Any, claim: Claim) -> str:
    """The least margin, or the largest error."""
    if hasattr(model, "classes_"):
        _, m = _margins(model, fits.rows.X, fits.rows.y, claim)
        return _near(float(m.min()), stated(claim, "row is"), 1e-5)
    r = np.abs(np.asarray(fits.rows.y) - model.predict(fits.rows.X))
    return _near(float(r.max()), stated(claim, "row is"), 1e-5)


def logistic_gradient(fits: Any, model: Any, claim: Claim) -> str:
    """The gradient of the unpenalised loss, relative to that at w = 0."""
    X, y = fits.rows.X, fits.rows.y
    signs, z = binary_problems(model, X, y)[0]
    A = np.column_stack([X, np.ones(len(X))])
    here = np.abs(A.T @ (signs / (1.0 + np.exp(signs * z)))).max()
    there = np.abs(A.T @ (signs / 2.0)).max()
    said = stated(claim, "zero to")
    return "" if said is not None and here <= 4.0 * max(said, 1e-9) * there else f"it is {here:.3g}"


def tukey_scale(fits: Any, model: Any, claim: Claim) -> str:
    """The median absolute residual over 0.6745."""
    r = np.abs(np.asarray(fits.rows.y) - model.predict(fits.rows.X))
    found, said = float(np.median(r)) / 0.6744897501960817, stated(claim, "scale")
    return _near(found, said, 2e-3) or _near(float(model.scale_), said, 1e-3)


def tukey_gradient(fits: Any, model: Any, claim: Claim) -> str:
    """The gradient of the bisquare loss, relative to the sum of the sizes of its terms."""
    if wrong := consistent(fits, model):
        return wrong
    X, w = fits.rows.X, _coefficients(model)[0]
    r = np.asarray(fits.rows.y) - model.predict(X)
    u = r / (float(model.delta) * float(model.scale_))
    pull = np.where(np.abs(u) <= 1.0, r * (1.0 - u**2) ** 2, 0.0)
    A = np.column_stack([X, np.ones(len(X))])
    shrink = np.append(float(model.alpha) * w, 0.0)
    slope = np.abs(A.T @ pull - shrink)
    size = np.abs(A).T @ np.abs(pull) + np.abs(shrink)
    said, found = stated(claim, "zero to"), float((slope / size).max())
    return "" if said is not None and found <= 4.0 * said + 1e-9 else f"it is {found:.3g}"


def _tukey_value(model: Any, X: Any, y: Any, w: Any, b: float) -> float:
    """Twice the bisquare loss at a given scale, with the ridge."""
    edge, scale = float(model.delta), float(model.scale_)
    u = np.minimum(np.abs(np.asarray(y) - X @ w - b) / (edge * scale), 1.0)
    loss = edge**2 / 6.0 * (1.0 - (1.0 - u**2) ** 3)
    return 2.0 * scale**2 * float(loss.sum()) + float(model.alpha) * float(w @ w)


def tukey_start(fits: Any, model: Any, claim: Claim) -> str:
    """The objectives of the model and of the start that it records, in this order."""
    X, y, start = fits.rows.X, fits.rows.y, np.asarray(model.start_, dtype=np.float64)
    here = _tukey_value(model, X, y, _coefficients(model)[0], float(model.intercept_))
    there = _tukey_value(model, X, y, start[:-1], start[-1])
    if "recorded" not in claim.statement and not _equal(start, fits.model.start_):
        return "start_ is not the robust start"
    if here > there * (1 + 1e-9):
        return "the objective is above that of the start"
    return _near(here, stated(claim, "objective"), 1e-5) or _near(
        there, stated(claim, "start,"), 1e-5
    )


_FORMULAS = {
    "duality gap": duality_gap,
    "zeros": zeros,
    "normal equations": minimiser,
    "coefficients": coefficients,
    "spectrum": spectrum,
    "finite optimum": inseparable,
    "optimality conditions": minimiser,
    "complementary slackness": slackness,
    "dual variables": representer,
    "selection": recorded,
    "scores": recorded,
    "fold models": recorded,
    "left-out rows": recorded,
    "cv_results": recorded,
    "training mistakes": mistakes,
    "margin": margin,
    "separability": inseparable,
    "objective": sum_of_losses,
    "penalised objective": sum_of_losses,
    "mistake bound": mistake_bound,
    "weight norm": weight_norm,
    "worst row": worst_row,
    "gradient": logistic_gradient,
}
_TUKEY = {"scale": tukey_scale, "gradient": tukey_gradient, "start": tukey_start}
CHECKS: dict[str, dict[str, Callable[[Any, Any, Claim], str]]] = {
    **dict.fromkeys([*OBJECTIVES, "Perceptron"], _FORMULAS),
    "TukeyRegressor": _TUKEY,
}
