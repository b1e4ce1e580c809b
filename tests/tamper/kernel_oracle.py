"""Oracles of kernel machines, neighbours and reductions: kernels, votes and objectives by their formulas."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.spatial.distance
from sklearn.base import clone

from surefit import Claim
from tests.tamper import linear_oracle
from tests.tamper.linear_oracle import stated

__all__ = ["CHECKS"]

Check = Callable[[Any, Any, Claim], str]
ROUNDING = 1e-9


def kernel_matrix(model: Any, X: Any, Z: Any) -> Any:
    """The kernel that a model's parameters name, of all pairs of rows."""
    kernel = model.kernel
    if not isinstance(kernel, str):
        return _kernel_object(kernel, X, Z)
    gamma = getattr(model, "gamma", None)
    if gamma == "scale":
        gamma = 1.0 / (X.shape[1] * X.var())
    if gamma is None or gamma == "auto":
        gamma = 1.0 / X.shape[1]
    if kernel == "linear":
        return X @ Z.T
    if kernel == "rbf":
        return np.exp(-gamma * scipy.spatial.distance.cdist(X, Z, "sqeuclidean"))
    if kernel == "poly":
        return (gamma * (X @ Z.T) + model.coef0) ** model.degree
    raise NotImplementedError(kernel)


def _kernel_object(kernel: Any, X: Any, Z: Any) -> Any:
    name = type(kernel).__name__
    if name == "Gaussian":
        return np.exp(-kernel.gamma * scipy.spatial.distance.cdist(X, Z, "sqeuclidean"))
    if name == "Polynomial":
        return (kernel.gamma * (X @ Z.T) + kernel.coef0) ** kernel.degree
    if name == "Scaled":
        return kernel.scale * _kernel_object(kernel.kernel, X, Z)
    if name == "Sum":
        return _kernel_object(kernel.left, X, Z) + _kernel_object(kernel.right, X, Z)
    raise NotImplementedError(name)


# ------------------------------------------------------------------------ support vector machines


def _machine(fits: Any, model: Any, claim: Claim) -> Any:
    """Rows, signs or targets, costs, scores and multipliers of one machine."""
    X, y = np.asarray(fits.rows.X, dtype=np.float64), np.asarray(fits.rows.y)
    if not hasattr(model, "classes_"):
        beta = np.zeros(len(X))
        beta[model.support_] = np.ravel(model.dual_coef_)
        return X, y.astype(float), np.full(len(X), float(model.C)), model.predict(X), beta
    weights = model.C * linear_oracle._row_weights(model, y)
    classes = list(model.classes_)
    if len(classes) == 2:
        beta = np.zeros(len(X))
        beta[model.support_] = np.ravel(model.dual_coef_)
        signs = np.where(y == classes[1], 1.0, -1.0)
        return X, signs, weights, model.decision_function(X), beta
    twin = copy.copy(model)
    twin.decision_function_shape = "ovo"
    pairs = [(i, j) for i in range(len(classes)) for j in range(i + 1, len(classes))]
    first, _, second = claim.name.partition(":")[0].partition(" vs ")
    named = [str(c) for c in classes]
    i, j = named.index(first), named.index(second)
    z = twin.decision_function(X)[:, pairs.index((i, j))]
    rows = np.isin(y, [classes[i], classes[j]])
    beta = np.zeros(len(X))
    own = y[model.support_]
    for label, place in ((classes[i], j - 1), (classes[j], i)):
        chosen = own == label
        beta[model.support_[chosen]] = model.dual_coef_[place, chosen]
    signs = np.where(y == classes[i], 1.0, -1.0)[rows]
    return X[rows], signs, weights[rows], z[rows], beta[rows]


def _machine_value(fits: Any, model: Any, claim: Claim) -> float:
    """Half the squared length of w plus the losses."""
    X, t, c, z, beta = _machine(fits, model, claim)
    norm = 0.5 * float(beta @ _kernel_of(fits, model, X) @ beta)
    if not hasattr(model, "classes_"):
        return norm + float(c @ np.maximum(np.abs(t - z) - model.epsilon, 0.0))
    over = np.maximum(1.0 - t * z, 0.0)
    if np.isinf(model.C):
        return norm if over.max() <= 1e-6 else np.inf
    return norm + float(c @ over)


def _kernel_of(fits: Any, model: Any, X: Any) -> Any:
    """The kernel between rows of the fit; gamma='scale' is of all rows."""
    twin = SimpleNamespace(**model.get_params(deep=False))
    if twin.gamma == "scale":
        twin.gamma = 1.0 / (fits.rows.X.shape[1] * np.asarray(fits.rows.X).var())
    return kernel_matrix(twin, X, X)


def machine_gap(fits: Any, model: Any, claim: Claim) -> str:
    """The primal objective, compared with that of a tight fit."""
    within = stated(claim, "within")
    tight = (
        clone(model).set_params(tol=1e-12, certify=False, probability=False)
        if hasattr(model, "classes_")
        else clone(model).set_params(tol=1e-12, certify=False)
    )
    key = (type(tight), repr(sorted(tight.get_params().items(), key=str)), id(fits.rows))
    if key not in _TIGHT:
        _TIGHT[key] = tight.fit(fits.rows.X, fits.rows.y)
    value, least = (_machine_value(fits, m, claim) for m in (model, _TIGHT[key]))
    said = stated(claim, "objective,?")
    said = stated(claim, "= ") if said is None else said
    if within is None or said is None:
        return f"the oracle cannot read {claim.statement!r}"
    if not abs(value - said) <= 1e-4 * abs(said):
        return f"the objective is {value:.6g}, not {said:.6g}"
    if not value - least <= 1.05 * within + 1e-7 * abs(least):
        return f"the objective is {value - least:.3g} above the least, not {within:.3g}"
    return _votes(fits, model)


_TIGHT: dict[Any, Any] = {}


def _votes(fits: Any, model: Any) -> str:
    """Binary predictions are the side of the decision function."""
    if not hasattr(model, "classes_") or len(model.classes_) != 2:
        return ""
    for X in (fits.rows.X, fits.rows.unseen):
        side = np.asarray(model.classes_)[(model.decision_function(X) > 0).astype(int)]
        if not np.array_equal(side, model.predict(X)):
            return "predict is not the side of the decision function"
    return ""


def multipliers(fits: Any, model: Any, claim: Claim) -> str:
    """Each multiplier is in its box, and they balance."""
    _, t, c, _, beta = _machine(fits, model, claim)
    alpha = t * beta if hasattr(model, "classes_") else np.abs(beta)
    if alpha.min() < -1e-9 * c.max() or (alpha > c * (1 + 1e-9)).any():
        return "a multiplier is outside of its box"
    unbalanced = abs(float(beta.sum())) > 1e-9 * max(1.0, float(np.abs(beta).sum()))
    return "the multipliers do not balance" if unbalanced else ""


def support_rows(fits: Any, model: Any, claim: Claim) -> str:
    """The support vectors are rows of the data."""
    rows = np.asarray(fits.rows.X)[model.support_]
    return "" if np.array_equal(rows, model.support_vectors_) else "they are not"


def conditions(fits: Any, model: Any, claim: Claim) -> str:
    """Rows without a multiplier lie outside, those at their bound inside, the others on the margin."""
    _, t, c, z, beta = _machine(fits, model, claim)
    said = stated(claim, ", to")
    said = claim.observed if said is None else said
    if hasattr(model, "classes_"):
        slack, alpha = 1.0 - t * z, t * beta
        wrong = np.where(alpha <= 1e-9 * c, np.maximum(slack, 0.0), np.abs(slack))
        at_bound = alpha >= c * (1 - 1e-9)
        wrong = np.where(at_bound, np.maximum(-slack, 0.0), wrong)
    else:
        r = t - z
        outside = np.maximum(np.abs(r) - model.epsilon, 0.0)
        inside = np.maximum(model.epsilon - np.sign(beta) * r, 0.0)
        wrong = np.where(
            np.abs(beta) <= 1e-9 * c, outside, np.abs(np.sign(beta) * r - model.epsilon)
        )
        wrong = np.where(np.abs(beta) >= c * (1 - 1e-9), inside, wrong)
    return "" if wrong.max() <= 1.05 * said + 1e-9 else f"a row is {wrong.max():.3g} off"


def hard_margin(fits: Any, model: Any, claim: Claim) -> str:
    """Every row is on its side."""
    _, t, _, z, _ = _machine(fits, model, claim)
    return "" if (t * z).min() >= 1.0 - 1e-6 else f"the least margin is {(t * z).min():.6g}"


# ------------------------------------------------------------------------ kernel ridge


def _ridge_parts(fits: Any, model: Any) -> Any:
    X = np.asarray(fits.rows.X, dtype=np.float64)
    K = kernel_matrix(model, X, X)
    y = np.asarray(fits.rows.y, dtype=np.float64)
    a = np.asarray(model.dual_coef_, dtype=np.float64)
    return X, K, y, a


def ridge_gap(fits: Any, model: Any, claim: Claim) -> str:
    """The objective |y - Ka|^2 / 2 + alpha a'Ka / 2 and its least value, by a direct solution."""
    X, K, y, a = _ridge_parts(fits, model)
    within = stated(claim, "within")
    if within is None:
        return f"the oracle cannot read {claim.statement!r}"
    best = np.linalg.solve(K + model.alpha * np.eye(len(K)), y)
    kept = K if a.shape[0] == len(K) else None
    fitted = model.predict(X)
    if fitted.shape != y.shape:
        return f"predict has the shape {fitted.shape}"
    if kept is None:
        centres = np.asarray(model.X_fit_, dtype=np.float64)
        norm = np.sum(a * (kernel_matrix(model, centres, centres) @ a))
    else:
        norm = np.sum(a * (K @ a))
    value = float(np.sum((y - fitted) ** 2) + model.alpha * norm)
    least = float(np.sum((y - K @ best) ** 2) + model.alpha * np.sum(best * (K @ best)))
    said = stated(claim, "objective")
    if said is None or min(abs(value - said), abs(value / 2 - said)) > 1e-4 * abs(said):
        return f"the objective is {value:.6g}, not {said}"
    half = 2.0 if abs(value / 2 - said) < abs(value - said) else 1.0
    if (value - least) / half <= 1.05 * within + ROUNDING * abs(least):
        return ""
    return f"the objective is {(value - least) / half:.3g} above the least, not {within:.3g}"


def ridge_residual(fits: Any, model: Any, claim: Claim) -> str:
    """(K + alpha I) a = y, or the normal equations of the centres."""
    X, K, y, a = _ridge_parts(fits, model)
    said = stated(claim, "to")
    if said is None:
        return f"the oracle cannot read {claim.statement!r}"
    if a.shape[0] == len(K):
        left, right = K @ a + model.alpha * a, y
    else:
        centres = np.asarray(model.X_fit_, dtype=np.float64)
        B = kernel_matrix(model, X, centres)
        left = B.T @ (B @ a) + model.alpha * kernel_matrix(model, centres, centres) @ a
        right = B.T @ y
    found = float(np.linalg.norm(left - right) / np.linalg.norm(right))
    return "" if found <= 2.0 * said + 1e-12 else f"the residual is {found:.3g}, not {said:.3g}"


def ridge_rows(fits: Any, model: Any, claim: Claim) -> str:
    """Predictions are kernel sums over the rows of the fit."""
    X, unseen = np.asarray(fits.rows.X), np.asarray(fits.rows.unseen)
    centres = np.asarray(model.X_fit_, dtype=np.float64)
    if not all((np.abs(X - c).max(axis=1) <= 1e-6 * np.abs(X).max()).any() for c in centres):
        return "a stored row is not one of the data"
    twin = SimpleNamespace(**model.get_params(deep=False))
    if isinstance(twin.kernel, str) and twin.gamma is None:
        twin.gamma = 1.0 / X.shape[1]
    sums = kernel_matrix(twin, unseen, centres) @ np.asarray(model.dual_coef_, dtype=np.float64)
    same = np.allclose(model.predict(unseen), sums, 1e-6, 1e-6)
    return "" if same else "predict is not the kernel sum"


# ------------------------------------------------------------------------ neighbours


def _nearest(rows: Any, query: Any, k: int, skip: int | None) -> list[int]:
    """The k nearest rows in exact arithmetic, ties by row number."""
    point = [Fraction(float(v)) for v in query]
    distances = []
    for number, row in enumerate(rows):
        if number != skip:
            squared = sum((Fraction(float(a)) - b) ** 2 for a, b in zip(row, point))
            distances.append((squared, number))
    return [number for _, number in sorted(distances)[:k]]


def neighbours(fits: Any, model: Any, claim: Claim) -> str:
    """Lists of neighbours are those of a search by brute force."""
    if model.metric not in ("minkowski", "euclidean", "l2", "sqeuclidean") or model.p not in (
        2,
        None,
    ):
        return _near_rows(fits, model)
    X = np.asarray(fits.rows.X)
    told = stated(claim, "of all")
    if told is not None and told != len(X):
        return f"there are {len(X)} rows, not {told:.0f}"
    for queries, own in ((None, True), (fits.rows.unseen, False)):
        found = model.kneighbors(queries, return_distance=False)
        for q, row in enumerate(X[:6] if own else queries):
            if list(found[q]) != _nearest(X, row, found.shape[1], q if own else None):
                return f"query {q} has other neighbours"
    return ""


def _near_rows(fits: Any, model: Any) -> str:
    """Neighbours under another metric, to rounding."""
    if model.metric != "manhattan":
        return "no oracle for this metric"
    distances = scipy.spatial.distance.cdist(fits.rows.unseen, fits.rows.X, "cityblock")
    found, _ = model.kneighbors(fits.rows.unseen)
    nearest = np.sort(distances, axis=1)[:, : found.shape[1]]
    return "" if np.allclose(found, nearest, 1e-9, 1e-12) else "a query has nearer rows"


def rows_kept(fits: Any, model: Any, claim: Claim) -> str:
    """The stored rows and targets are those of the data, and predictions are their votes or means."""
    X, y = np.asarray(fits.rows.X), fits.rows.y
    if not np.array_equal(np.asarray(model.X_fit_), X) or model.n_samples_fit_ != len(X):
        return "the stored rows are others"
    if y is None:
        return ""
    metric = {"minkowski": "euclidean", "manhattan": "cityblock"}[model.metric]
    distances = scipy.spatial.distance.cdist(fits.rows.unseen, X, metric)
    order = np.argsort(distances, axis=1, kind="stable")[:, : model.n_neighbors]
    near = np.take_along_axis(distances, order, axis=1)
    share = np.ones_like(near) if model.weights in ("uniform", None) else 1.0 / near
    for row, answer in enumerate(model.predict(fits.rows.unseen)):
        targets, weights = np.asarray(y)[order[row]], share[row]
        if hasattr(model, "classes_"):
            labels = np.unique(targets)
            vote = labels[np.argmax([weights[targets == label].sum() for label in labels])]
            if answer != vote:
                return f"predict answers {answer!r}, the vote is {vote!r}"
        elif not np.isclose(answer, weights @ targets / weights.sum()):
            return "predict is not the mean of the neighbours"
    return ""


# ------------------------------------------------------------------------ reductions


def part_of(name: str) -> Check:
    """A claim about one of the binary models inside of a reduction."""

    def check(fits: Any, model: Any, claim: Claim) -> str:
        X, y = np.asarray(fits.rows.X), np.asarray(fits.rows.y)
        classes = [str(c) for c in model.classes_]
        first, _, second = claim.name.partition(":")[0].partition(" vs ")
        i = classes.index(first)
        if second == "rest":
            k, rows, positive = i, np.ones(len(X), bool), y == model.classes_[i]
        else:
            j = classes.index(second)
            pairs = [(a, b) for a in range(len(classes)) for b in range(a + 1, len(classes))]
            k, rows = pairs.index((i, j)), np.isin(y, [model.classes_[i], model.classes_[j]])
            positive = y == model.classes_[j]
        part = model.estimators_[k]
        asked = model.estimator.get_params()
        if any(repr(part.get_params()[key]) != repr(value) for key, value in asked.items()):
            return "the part has other parameters than estimator"
        data = replace(fits.rows, X=X[rows], y=positive[rows].astype(int))
        inner = replace(fits, rows=data, model=fits.model.estimators_[k])
        plain = replace(claim, name=name)
        return linear_oracle.CHECKS[type(part).__name__][name](inner, part, plain)

    return check


# ------------------------------------------------------------------------ Bayes' rule


def frequencies(fits: Any, model: Any, claim: Claim) -> str:
    """The priors are the frequencies of the classes, to what is stated."""
    y = np.asarray(fits.rows.y)
    apart = max(abs(p - (y == c).mean()) for p, c in zip(model.priors_, model.classes_))
    said = stated(claim, "within")
    return "" if said is not None and apart <= said + 1e-9 else f"they are {apart:.3g} apart"


def largest_posterior(fits: Any, model: Any, claim: Claim) -> str:
    """Every row is predicted as a class with the largest posterior."""
    X = np.asarray(fits.rows.X)
    logs = [np.log(p) + d.log_prob(X) for p, d in zip(model.priors_, model.densities_)]
    labels = np.asarray(model.classes_)[np.argmax(logs, axis=0)]
    return "" if np.array_equal(model.predict(X), labels) else "a row has another label"


_MACHINE: dict[str, Check] = {
    "duality gap": machine_gap,
    "dual feasibility": multipliers,
    "support rows": support_rows,
    "complementary slackness": conditions,
    "margin": hard_margin,
}
_NEIGHBOURS: dict[str, Check] = {
    "exact neighbours": neighbours,
    "training rows kept": rows_kept,
}
_PARTS = {
    name: part_of(name) for name in ("duality gap", "complementary slackness", "dual variables")
}
CHECKS: dict[str, dict[str, Check]] = {
    "SVC": _MACHINE,
    "SVR": _MACHINE,
    "KernelRidge": {
        "duality gap": ridge_gap,
        "residual": ridge_residual,
        "normal equations": ridge_residual,
        "model rows": ridge_rows,
    },
    "KNeighborsClassifier": _NEIGHBOURS,
    "KNeighborsRegressor": _NEIGHBOURS,
    "NearestNeighbors": _NEIGHBOURS,
    "BayesClassifier": {"priors": frequencies, "Bayes rule": largest_posterior},
    "OneVsRestClassifier": _PARTS,
    "OneVsOneClassifier": _PARTS,
}
