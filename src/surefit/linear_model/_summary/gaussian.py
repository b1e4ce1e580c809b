r"""Summaries of the models with a squared loss.

With Gaussian noise of variance sigma^2 (one for all rows; sigma^2 / s_i with weights) the least-squares
estimate is normal with covariance sigma^2 (A'SA)^-1, the inverse of the Fisher information (REG-8), exactly;
with sigma^2 estimated by RSS / (n - k), coef / std_error has Student's distribution, exactly. A ridge
estimate is linear in y too: with B = A'SA + alpha I its covariance is sigma^2 B^-1 A'SA B^-1, but its mean is
not w: it is short by alpha B^-1 w. The hat matrix H = A B^-1 A'S has trace df, the effective number of
parameters, and sigma^2 is estimated by RSS / (n - tr(2H - HH')), which is too large on average by the squared
bias, never too small.

After an l1 penalty has chosen which coefficients are zero by looking at y, the distribution of the others is
not normal, and depends on the unknown truth; there is no honest standard error in the same data. The number
of non-zeros is an unbiased estimate of the degrees of freedom.

References
----------
Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), sections 3.2, 3.4 and 5.4; Zou,
Hastie & Tibshirani, "On the degrees of freedom of the lasso" (2007); Leeb & Potscher, "Model selection and
inference: facts and fiction" (2005).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._namespace import to_numpy
from ...inference.information import MOST_PARAMETERS, Root, factor, meat
from ...inference.summary import Noise
from ..coordinate_descent import ElasticNet
from ..least_squares import LinearRegression
from ..ridge import Ridge
from .core import (
    Array,
    Estimates,
    Sample,
    collinearity,
    describe,
    sandwich_weights,
    too_many,
)

__all__ = ["listed", "shrinkage"]

_ENTRIES = 1 << 27  # of all covariance matrices together (1 GiB)
_KINDS = ("fisher", "HC0", "HC1", "HC2", "HC3")
_NEGLIGIBLE = (
    0.01  # a shift by this share of a standard error changes 95 % coverage in the fifth digit
)
_LASSO = (
    "no standard errors: the l1 penalty chose the non-zero coefficients by looking at y, and ordinary "
    "standard errors ignore that choice. Refit LinearRegression with the chosen features on rows that were "
    "not used to choose them."
)
_POSITIVE = (
    "no standard errors: the coefficients were kept non-negative, and an estimate at or near that bound is "
    "not normally distributed around the truth."
)


@describe.register
def _least_squares(model: LinearRegression, sample: Sample) -> Estimates:
    if model.positive:
        return listed(model, sample, _POSITIVE)
    return _linear_in_y(model, sample, np.zeros(model._solution()[0].shape[1]))


@describe.register
def _ridge(model: Ridge, sample: Sample) -> Estimates:
    if model.positive:
        return listed(model, sample, _POSITIVE)
    return _linear_in_y(model, sample, model._alphas(sample.targets()))


@describe.register
def _elastic_net(model: ElasticNet, sample: Sample) -> Estimates:
    mass = float(sample.s.sum())  # its loss is a mean
    l2 = float(model.alpha) * (1.0 - float(model.l1_ratio)) * mass
    if float(model.alpha) * float(model.l1_ratio) > 0:
        return listed(model, sample, _LASSO, l2)
    if model.positive:
        return listed(model, sample, _POSITIVE, l2)
    return _linear_in_y(model, sample, np.full(model._solution()[0].shape[1], l2))


def _linear_in_y(model: Any, sample: Sample, alpha: Array) -> Estimates:
    """Least squares, and ridge with one penalty a target."""
    kind = sample.choose(*_KINDS, model=model)
    estimates, residuals = _start(model, sample)
    coef = estimates.coef
    why_not = too_many(coef.shape[1])
    if why_not is not None:
        estimates.notes.append(why_not)
        return estimates
    outputs, k = coef.shape
    if outputs * k * k > _ENTRIES:
        raise ValueError(
            f"the summary of {outputs} targets with {k} parameters each holds {outputs} covariance matrices, "
            "which do not fit in memory: fit and summarise some of the targets at a time."
        )
    covariance, fisher = np.empty((outputs, k, k)), np.empty((outputs, k, k))
    roots: dict[float, Root] = {}
    rss = sample.s @ residuals**2
    for t, a in enumerate(alpha.tolist()):
        if a not in roots:
            roots[a] = factor(sample.design, sample.s, fit_intercept=model.fit_intercept, penalty=a)
        root = roots[a]
        middle = np.eye(root.rank)
        estimates.df_model[t] = used = float(root.rank)
        if a > 0:
            middle = meat(sample.design, root, sample.s, fit_intercept=model.fit_intercept)
            estimates.df_model[t] = float(np.trace(middle))
            used = 2.0 * float(np.trace(middle)) - float(np.sum(middle * middle))
        left = sample.n - used
        estimates.df_resid[t] = left
        variance = float(rss[t]) / left if left > 1e-9 else math.nan
        estimates.noise.variance[t] = variance
        information = root.information(model.fit_intercept)
        fisher[t] = information / variance if variance > 0 else math.nan
        if kind == "fisher":
            middle = variance * middle
        else:
            scores = sample.s * residuals[:, t]
            omega = sandwich_weights(kind, sample, scores, root, model.fit_intercept)
            middle = meat(sample.design, root, omega, fit_intercept=model.fit_intercept)
        covariance[t] = root.outer @ middle @ root.outer.T
    estimates.noise.scale[:] = np.sqrt(estimates.noise.variance)
    estimates.covariance, estimates.fisher = covariance, fisher
    each = [roots[a] for a in alpha.tolist()]
    estimates.df, estimates.condition = estimates.df_resid, max(root.condition for root in each)
    estimates.identified = np.stack([root.identified for root in each])
    names = sample.parameters(model.fit_intercept)
    if alpha.any():
        coefficients = np.r_[[0.0] * bool(model.fit_intercept), np.ones(len(sample.names))]
        bias = [
            r.outer @ (r.outer.T @ (a * w * coefficients)) for r, a, w in zip(each, alpha, coef)
        ]
        shrinkage(estimates, np.stack(bias), k)
    for (
        a,
        root,
    ) in roots.items():  # a penalty too small to make a difference does not identify anything
        estimates.notes += collinearity(root, names) if a == 0 or not root.identified.all() else []
    estimates.method = _method(kind, estimates, shrunk=not estimates.tested)
    estimates.notes += _noise_notes(estimates, sample)
    return estimates


def _start(model: Any, sample: Sample) -> tuple[Estimates, Array]:
    """Coefficients, residuals, and what follows from them without any matrix."""
    coef, intercept = model._solution()
    w, b = to_numpy(coef).astype(np.float64), to_numpy(intercept).astype(np.float64)
    Y = sample.targets()
    residuals = Y - to_numpy(sample.design.dot(w)) - b
    stacked = np.vstack([b, w]).T if model.fit_intercept else w.T
    outputs = len(stacked)
    center = sample.s @ Y / sample.s.sum() if model.fit_intercept else 0.0
    rss, tss = sample.s @ residuals**2, sample.s @ (Y - center) ** 2
    unknown = np.full(outputs, math.nan)
    estimates = Estimates(
        coef=stacked,
        response="mean of the target" if outputs == 1 else f"means of {outputs} targets",
        noise=Noise("Gaussian", unknown.copy(), unknown.copy(), rss / sample.n),
        df_model=unknown.copy(),
        df_resid=unknown.copy(),
        r2=1.0 - np.divide(rss, tss, out=unknown.copy(), where=tss > 0),
        r2_kind="R²" if model.fit_intercept else "R² (about 0, since there is no intercept)",
    )
    used = sample.s > 0
    shift = 0.5 * float(sample.copies[used] @ np.log(sample.s[used] / sample.copies[used]))
    with np.errstate(divide="ignore"):
        log_variance = np.log(2.0 * math.pi * rss / sample.n)
    estimates.log_likelihood = shift - 0.5 * sample.n * (log_variance + 1.0)
    exact = rss <= (1e-12**2) * (sample.s @ Y**2)
    if exact.any():
        estimates.notes.append(
            "an exact fit: the residuals are rounding errors, and so are the noise and all that is computed "
            "from it."
        )
    return estimates, residuals


def listed(model: Any, sample: Sample, why: str, l2: float = 0.0) -> Estimates:
    """Coefficients without standard errors; the parameters in use are the non-zero ones."""
    if sample.covariance != "auto":
        raise ValueError(f"covariance={sample.covariance!r} cannot be computed here: {why}")
    estimates, residuals = _start(model, sample)
    features = estimates.coef[:, 1:] if model.fit_intercept else estimates.coef
    estimates.df_model = (features != 0).sum(axis=1).astype(np.float64)
    if l2 > 0:
        estimates.df_model = _elastic_df(sample, features, l2, model.fit_intercept)
    estimates.df_model += bool(model.fit_intercept)
    estimates.df_resid = sample.n - estimates.df_model
    rss = sample.s @ residuals**2
    left = np.where(estimates.df_resid > 0, estimates.df_resid, math.nan)
    estimates.noise.variance[:] = rss / left
    estimates.noise.scale[:] = np.sqrt(estimates.noise.variance)
    estimates.notes.insert(0, why)
    return estimates


def _elastic_df(sample: Sample, features: Array, l2: float, fit_intercept: bool) -> Array:
    """tr(G (G + l2 I)^-1) on the non-zero columns, G their centred Gram matrix (Tibshirani & Taylor 2012)."""
    if features.shape[1] > MOST_PARAMETERS:
        return np.full(len(features), math.nan)
    weights = sample.design.vector(sample.s)
    center = sample.design.mean(weights) if fit_intercept else None
    gram = sample.design.gram(weights, center)
    used = []
    for w in features:
        chosen = np.flatnonzero(w)
        values = np.maximum(np.linalg.eigvalsh(gram[np.ix_(chosen, chosen)]), 0.0)
        used.append(float(np.sum(values / (values + l2))))
    return np.array(used)


def shrinkage(estimates: Estimates, bias: Array, parameters: int) -> None:
    """How far a quadratic penalty has moved the estimates, and whether that spoils a test.

    The bias is -B^-1 P theta; with the estimate in place of the truth it is itself an estimate. Where it is
    below a hundredth of a standard error, and the penalty takes less than a hundredth of a parameter away,
    intervals and tests are those of the unpenalised model to all digits that matter.
    """
    assert estimates.covariance is not None
    errors = np.sqrt(np.diagonal(estimates.covariance, axis1=1, axis2=2))
    size = np.abs(bias)
    ratio = np.divide(size, errors, out=np.where(size > 0, np.inf, 0.0), where=errors > 0)
    worst = float(ratio.max())
    taken = parameters - float(np.min(estimates.df_model))
    if worst <= _NEGLIGIBLE and taken <= _NEGLIGIBLE:
        estimates.notes.append(
            f"the penalty is negligible here: it moves no coefficient by more than {worst:.1g} of its "
            "standard error (an estimate)."
        )
        return
    estimates.tested = False
    estimates.notes.append(
        f"shrunk: the penalty pulls the coefficients towards 0, by up to {worst:.2g} of their standard "
        "errors (an estimate of the bias). The intervals are about the expectation of the estimator, not "
        "about the true coefficients, and no p-values are given: a true 0 need not have expectation 0."
    )


def _method(kind: str, estimates: Estimates, *, shrunk: bool) -> str:
    degrees = np.unique(np.round(np.atleast_1d(estimates.df_resid), 6))
    words = f"{degrees[0]:.6g}" if len(degrees) == 1 else f"{degrees[0]:.6g} to {degrees[-1]:.6g}"
    law = f"Student's t with {words} degrees of freedom"
    if kind != "fisher":
        return f"{kind} sandwich (the noise variance may differ from row to row), {law}"
    if shrunk:
        return f"exact covariance of the shrunken estimate under Gaussian noise, {law}"
    return f"Fisher information of Gaussian noise, {law}"


def _noise_notes(estimates: Estimates, sample: Sample) -> list[str]:
    if np.all(estimates.df_resid > 1e-9):
        return []
    return [
        f"no residual degrees of freedom: {sample.n:.6g} samples for as many parameters, so the noise cannot "
        "be estimated and there are no standard errors."
    ]
