"""Oracles of clusters, mixtures and factorisations: sums of squares, likelihoods and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from surefit import Claim
from tests.tamper.fair_oracle import CHECKS as FAIR_CHECKS
from tests.tamper.kernel_oracle import CHECKS as KERNEL_CHECKS
from tests.tamper.linear_oracle import stated

__all__ = ["CHECKS"]

Check = Callable[[Any, Any, Claim], str]


def _near(value: float, said: float | None, digits: float = 1e-5) -> str:
    if said is not None and abs(value - said) <= digits * max(abs(value), abs(said)) + 1e-12:
        return ""
    return f"it is {value:.10g}, not {said}"


# ------------------------------------------------------------------------ k-means


def _squares(model: Any, X: Any) -> Any:
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    return ((np.asarray(X)[:, None, :] - centres[None]) ** 2).sum(axis=2)


def nearest_centres(fits: Any, model: Any, claim: Claim) -> str:
    """Labels and predictions are the nearest centres."""
    for X, labels in ((fits.rows.X, model.labels_), (fits.rows.unseen, None)):
        own = model.predict(X) if labels is None else labels
        squares = _squares(model, X)
        if (squares[np.arange(len(X)), own] > squares.min(axis=1) * (1 + 1e-6) + 1e-12).any():
            return "a row is nearer to another centre"
    return ""


def sum_of_squares(fits: Any, model: Any, claim: Claim) -> str:
    """inertia_ is the sum of squares within the clusters of labels_."""
    found = float(_squares(model, fits.rows.X)[np.arange(len(fits.rows.X)), model.labels_].sum())
    return _near(found, stated(claim, "inertia_ ="), 1e-7)


def best_clustering(fits: Any, model: Any, claim: Claim) -> str:
    """No partition of the few rows into as many clusters has a smaller sum of squares."""
    X, k = np.asarray(fits.rows.X), len(model.cluster_centers_)
    found = float(_squares(model, X).min(axis=1).sum())
    if wrong := _near(found, stated(claim, "WCSS")):
        return wrong
    if k > 2 or len(X) > 16:
        return "no oracle for so many partitions"
    patterns = (np.arange(1 << (len(X) - 1))[:, None] >> np.arange(len(X))) & 1
    least = np.inf
    total = float((X**2).sum())
    for part in (patterns, 1 - patterns):
        counts = part.sum(axis=1)
        sums = part @ X
        kept = np.divide((sums**2).sum(axis=1), counts, out=np.zeros(len(part)), where=counts > 0)
        least = kept if part is patterns else total - float((least + kept).max())
    distance = stated(claim, ", to")
    within = 1e-6 if distance is None else distance
    return "" if found - least <= (within + 1e-9) * found else f"the best has {least:.10g}"


def centre_means(fits: Any, model: Any, claim: Claim) -> str:
    """Each centre is the mean of its rows, to what is stated."""
    X = np.asarray(fits.rows.X)
    labels = np.asarray(model.labels_)
    means = np.array([X[labels == k].mean(axis=0) for k in range(len(model.cluster_centers_))])
    moved = float(np.sqrt(((means - model.cluster_centers_) ** 2).sum()))
    said = stated(claim, "by")
    return "" if said is not None and moved <= 2.0 * said + 1e-6 else f"a step moves by {moved:.3g}"


def record(name: str) -> Check:
    """A sentence about a record of the fit is true of the attribute that holds it."""

    def check(fits: Any, model: Any, claim: Claim) -> str:
        if "record" not in claim.statement:
            return "the sentence does not say that it is about a record"
        trace = np.asarray(getattr(model, name), dtype=np.float64)
        steps = stated(claim, "over") or stated(claim, "in")
        if steps is not None and abs(steps - len(trace)) > 1:
            return f"{name} has {len(trace)} entries, not {steps:.0f}"
        return ""

    return check


# ------------------------------------------------------------------------ mixtures


def _covariances(model: Any) -> list[Any]:
    K, p = model.means_.shape
    C = np.asarray(model.covariances_, dtype=np.float64)
    kind = model.covariance_type
    if kind == "tied":
        return [C] * K
    if kind == "spherical":
        return [c * np.eye(p) for c in C]
    return [np.diag(c) if kind == "diag" else c for c in C]


def _log_joint(model: Any, X: Any) -> Any:
    """log pi_k p(x | k)."""
    logs = np.log(np.asarray(model.weights_, dtype=np.float64))
    if hasattr(model, "probabilities_"):
        p = np.asarray(model.probabilities_, dtype=np.float64)
        if model.binarize is not None:
            X = (np.asarray(X) > model.binarize).astype(float)
        return scipy.special.xlogy(X, p[:, None]).sum(-1).T + (
            scipy.special.xlogy(1 - X, 1 - p[:, None]).sum(-1).T + logs
        )
    parts = zip(np.asarray(model.means_, dtype=np.float64), _covariances(model))
    densities = [scipy.stats.multivariate_normal(m, C).logpdf(X) for m, C in parts]
    return np.column_stack(densities) + logs


def responsibilities(fits: Any, model: Any, claim: Claim) -> str:
    """predict_proba is Bayes' rule."""
    for X in (fits.rows.X, fits.rows.unseen):
        joint = _log_joint(model, X)
        if hasattr(model, "hard") and model.hard:
            joint = joint.copy()
        posterior = np.exp(joint - scipy.special.logsumexp(joint, axis=1, keepdims=True))
        if not np.allclose(model.predict_proba(X), posterior, 1e-5, 1e-6):
            return "predict_proba is not Bayes' rule"
    return ""


def likelihood(fits: Any, model: Any, claim: Claim) -> str:
    """The objective stated is that of the model, and that of final_lower_bound_."""
    joint = _log_joint(model, fits.rows.X)
    hard = getattr(model, "hard", False)
    value = float((joint.max(axis=1) if hard else scipy.special.logsumexp(joint, axis=1)).mean())
    if hasattr(model, "probabilities_"):
        p = np.asarray(model.probabilities_, dtype=np.float64)
        prior = scipy.special.xlogy(model.alpha, p) + scipy.special.xlogy(model.alpha, 1 - p)
        value += float(prior.sum()) / len(joint)
    return _near(value, stated(claim, " is"), 1e-6)


def parameters(fits: Any, model: Any, claim: Claim) -> str:
    """Weights add up to one, and the three spellings of a covariance agree."""
    weights = np.asarray(model.weights_, dtype=np.float64)
    if (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-6:
        return "the weights are no distribution"
    if hasattr(model, "probabilities_"):
        p = model.probabilities_
        return "" if ((p >= 0) & (p <= 1)).all() else "a probability is outside of [0, 1]"
    if model.covariance_type == "full":
        products = [C @ P for C, P in zip(model.covariances_, model.precisions_)]
    elif model.covariance_type == "tied":
        products = [model.covariances_ @ model.precisions_]
    else:
        return (
            "" if np.allclose(model.covariances_ * model.precisions_, 1.0, 1e-6) else "no inverse"
        )
    unit = np.eye(fits.rows.X.shape[1])
    return "" if np.allclose(products, unit, 1e-6, 1e-6) else "precisions_ is not the inverse"


def _divergence(one: Any, other: Any) -> float:
    """KL(one || other) of two mixtures with their components, given as weights, means, covariances."""
    total = 0.0
    for w, m, C, v, n, D in zip(*one, *other):
        total += w * np.log(w / v)
        if C is None:
            p, q = m, n
            total += w * float(
                (scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1 - p, 1 - q)).sum()
            )
            continue
        P = np.linalg.inv(D)
        logs = np.linalg.slogdet(D)[1] - np.linalg.slogdet(C)[1]
        total += 0.5 * w * float(np.trace(P @ C) - len(m) + logs + (n - m) @ P @ (n - m))
    return total


def stationarity(fits: Any, model: Any, claim: Claim) -> str:
    """One more EM step moves the model of (x, z) by no more than a few times what is stated."""
    X = np.asarray(fits.rows.X, dtype=np.float64)
    joint = _log_joint(model, X)
    Q = np.exp(joint - scipy.special.logsumexp(joint, axis=1, keepdims=True))
    if getattr(model, "hard", False):
        Q = (joint == joint.max(axis=1, keepdims=True)).astype(float)
    counts = Q.sum(axis=0)
    weights = counts / len(X)
    if hasattr(model, "probabilities_"):
        means = (Q.T @ X + model.alpha) / (counts + 2.0 * model.alpha)[:, None]
        old = (np.asarray(model.weights_), np.asarray(model.probabilities_), [None] * len(weights))
        new = (weights, means, [None] * len(weights))
    else:
        means = (Q.T @ X) / counts[:, None]
        parts = [((X - m).T * q) @ (X - m) for m, q in zip(means, Q.T)]
        new = (weights, means, _shaped(model, parts, counts))
        old = (np.asarray(model.weights_), np.asarray(model.means_), _covariances(model))
    moved = min(_divergence(old, new), _divergence(new, old))
    said = stated(claim, "by")
    return "" if said is not None and moved <= 3.0 * said + 1e-12 else f"it moves by {moved:.3g}"


def _shaped(model: Any, parts: list[Any], counts: Any) -> list[Any]:
    """The covariances of an M-step, of the asked shape, with the ridge."""
    p, ridge = len(parts[0]), model.reg_covar * np.eye(len(parts[0]))
    kind = model.covariance_type
    if kind == "tied":
        return [sum(parts) / counts.sum() + ridge] * len(parts)
    full = [part / count for part, count in zip(parts, counts)]
    if kind == "spherical":
        full = [np.trace(C) / p * np.eye(p) for C in full]
    elif kind == "diag":
        full = [np.diag(np.diag(C)) for C in full]
    return [C + ridge for C in full]


def least_variance(fits: Any, model: Any, claim: Claim) -> str:
    """Every variance is at least what is stated, and far above the ridge."""
    least = min(float(np.linalg.eigvalsh(C)[0]) for C in _covariances(model))
    said, floor = stated(claim, "at least"), stated(claim, "reg_covar=")
    if floor is None or abs(floor - model.reg_covar) > 1e-5 * floor:
        return f"reg_covar is {model.reg_covar:g}, not {floor}"
    return "" if said is not None and least >= 0.99 * said else f"the least is {least:.4g}"


# ------------------------------------------------------------------------ factorisations


def _factor_loss(fits: Any, model: Any) -> float:
    R = fits.rows.X.toarray()
    known = R != 0
    U, V = (np.asarray(f, dtype=np.float64) for f in (model.user_factors_, model.item_factors_))
    if U.shape[1] != model.n_components:
        raise ValueError("the factors have another rank than n_components")
    fitted = U @ V.T
    bu = bi = np.zeros(1)
    if getattr(model, "user_biases_", None) is not None:
        bu, bi = np.asarray(model.user_biases_, float), np.asarray(model.item_biases_, float)
        if bu.ndim != 1 or bi.ndim != 1:
            raise ValueError("the biases are not vectors")
        fitted = fitted + bu[:, None] + bi[None] + float(model.mean_ or 0.0)
    if model.implicit or model.weighted_reg or bu.size > 1:
        raise NotImplementedError("no formula for this loss")
    reg_items = model.reg if model.reg_items is None else model.reg_items
    penalty = model.reg * (U**2).sum() + reg_items * (V**2).sum()
    return 0.5 * float(((R - fitted)[known] ** 2).sum() + penalty)


def factor_loss(fits: Any, model: Any, claim: Claim) -> str:
    """Half the squared residuals plus the penalty."""
    return _near(_factor_loss(fits, model), stated(claim, "penalty is"))


_KMEANS: dict[str, Check] = {
    "labels": nearest_centres,
    "WCSS": sum_of_squares,
    "distance from the optimum": best_clustering,
    "centres": centre_means,
    "monotone": record("inertia_trace_"),
}
_MIXTURE: dict[str, Check] = {
    "responsibilities": responsibilities,
    "log-likelihood": likelihood,
    "parameters": parameters,
    "weights": parameters,
    "stationarity": stationarity,
    "variance floor": least_variance,
    "monotone likelihood": record("lower_bounds_"),
    "monotone objective": record("lower_bounds_"),
}
CHECKS: dict[str, dict[str, Check]] = {
    **KERNEL_CHECKS,
    **FAIR_CHECKS,
    "KMeans": _KMEANS,
    "MiniBatchKMeans": _KMEANS,
    "GaussianMixture": _MIXTURE,
    "BernoulliMixture": _MIXTURE,
    "MatrixFactorization": {"loss": factor_loss, "monotone loss": record("loss_trace_")},
}
