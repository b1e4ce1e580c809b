r"""Summaries of logistic and softmax regression.

The Fisher information of the likelihood is sum_i s_i p_i (1 - p_i) a_i a_i' for two classes, and for K of
them the matrix with blocks sum_i s_i p_ik (delta_kl - p_il) a_i a_i'. The maximum-likelihood estimate is
asymptotically normal around the truth with its inverse as covariance (REG-8). For K classes the softmax does
not see a common shift of all coefficients of a feature, so the information is taken on the coefficients that
sum to 0 over the classes, as the model gives them; ``reference`` turns them into comparisons with one class.

* On separable data, wholly or in part, there is no maximum: some coefficients are infinite, and that is said.
* A ridge penalty shrinks: with B the penalised information and F the Fisher information, the covariance is
  B^-1 F B^-1, around an expectation that is not the truth.
* After an l1 penalty there are no standard errors, for the reasons given in ``gaussian``.
* Class weights make the objective a weighted likelihood, whose curvature is not the variance of its gradient;
  only the sandwich is right then (HC0).

References
----------
Albert & Anderson, "On the existence of maximum likelihood estimates in logistic regression models" (1984);
McCullagh & Nelder, Generalized Linear Models (1989), chapters 4 and 5; le Cessie & van Houwelingen,
"Ridge estimators in logistic regression" (1992); White, "Maximum likelihood estimation of misspecified
models" (1982).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax

from ..._namespace import to_numpy
from ...inference.information import (
    Root,
    centred_rows,
    factor,
    intercept_moved,
    intercept_moved_back,
    meat,
    root_of,
)
from ...inference.summary import Noise
from ...penalties import ElasticNet as ElasticNetPenalty
from ...penalties import NoPenalty
from ..logistic import LogisticRegression
from .core import Array, Estimates, Sample, collinearity, describe, sandwich_weights, too_many
from .gaussian import shrinkage

__all__: list[str] = []

_L1 = (
    "no standard errors: the l1 penalty chose the non-zero coefficients by looking at y, and ordinary "
    "standard errors ignore that choice. Refit without a penalty on the chosen features, on rows that were "
    "not used to choose them."
)


@describe.register
def _logistic(model: LogisticRegression, sample: Sample) -> Estimates:
    codes, s = _labels(model, sample)
    w, b = _dense(model.coef_), to_numpy(model.intercept_).astype(np.float64)
    z = to_numpy(sample.design.dot(w.T)) + b
    stacked = np.column_stack([b, w]) if model.fit_intercept else w
    estimates = _start(model, sample, codes, z, stacked)
    l1, l2 = _penalty(model)
    if l1 > 0:
        if sample.covariance != "auto":
            raise ValueError(f"covariance={sample.covariance!r} cannot be computed here: {_L1}")
        estimates.notes.append(_L1)
        features = w if len(w) == 1 else w - np.median(w, axis=0)
        estimates.df_model = float(np.count_nonzero(features) + len(b) * model.fit_intercept)
        return estimates
    why_not = too_many(stacked.shape[1] * max(1, len(model.classes_) - 1))
    if why_not is not None:
        estimates.notes.append(why_not)
        return estimates
    kinds = ("fisher", "HC0", "HC1") if model.class_weight is None else ("HC0", "HC1")
    kind = sample.choose(*kinds, model=model)
    solve = _binary if len(model.classes_) == 2 else _softmax
    if not solve(model, sample, estimates, codes, s, z, l2, kind):
        return estimates
    if model.class_weight is not None:
        estimates.notes.append(
            "class weights: the objective is not the likelihood of these data, so there is no AIC or BIC and "
            "the standard errors come from the sandwich; the intercept estimates that of re-weighted classes."
        )
    estimates.df_resid = sample.n - np.asarray(estimates.df_model)
    names = {
        "fisher": "Fisher information",
        "HC0": "HC0 sandwich (right also where the model is not)",
        "HC1": "HC1 sandwich (right also where the model is not)",
    }
    shrunk = "" if estimates.tested else " and the penalty"
    estimates.method = f"{names[kind]}{shrunk}, normal distribution (for many samples)"
    return estimates


def _dense(coef: Any) -> Array:
    """The coefficients, also after ``sparsify``."""
    return to_numpy(coef.toarray() if sp.issparse(coef) else coef).astype(np.float64)


def _labels(model: LogisticRegression, sample: Sample) -> tuple[Array, Array]:
    """Class numbers, and the weights of the log-likelihood in the objective (without C)."""
    _, codes, s = model._problem(sample.y, sample.sample_weight)
    codes, s = to_numpy(codes).astype(np.float64), to_numpy(s).astype(np.float64)
    if len(model.classes_) == 2:
        codes = (codes + 1.0) / 2.0
    return codes, s if isinstance(model._penalty(), NoPenalty) else s / float(model.C)


def _penalty(model: LogisticRegression) -> tuple[float, float]:
    """l1 and l2 weights relative to the log-likelihood."""
    penalty = model._penalty()
    if not isinstance(penalty, ElasticNetPenalty):
        return 0.0, 0.0
    return penalty.l1 / float(model.C), penalty.l2 / float(model.C)


def _start(
    model: LogisticRegression, sample: Sample, codes: Array, z: Array, stacked: Array
) -> Estimates:
    """What follows from the predictions: likelihood, McFadden's R^2."""
    binary = len(model.classes_) == 2
    classes = [str(label) for label in model.classes_]
    if binary:
        own = log_expit(np.where(codes > 0, z[:, 0], -z[:, 0]))
        sign = -1.0 if _reference(model, sample) == 1 else 1.0
        stacked = sign * stacked
        response = "log-odds of {1} against {0}".format(*classes[:: int(sign)])
    else:
        own = log_softmax(z, axis=1)[np.arange(len(z)), codes.astype(np.intp)]
        base = _reference(model, sample)
        response = "log-probability of a class, relative to the mean over the classes"
        if base is not None:
            response = f"log-odds of a class against {classes[base]}"
            stacked = np.delete(stacked - stacked[base], base, axis=0)
            classes.pop(base)
    mass = np.bincount(codes.astype(np.intp), sample.s, minlength=len(model.classes_))
    present = mass[mass > 0]
    null = float(present @ np.log(present / mass.sum()))
    likelihood = float(sample.s @ own)
    free = model.class_weight is None
    return Estimates(
        coef=stacked,
        response=response,
        outputs=() if binary else tuple(classes),
        noise=Noise("Bernoulli" if binary else "categorical"),
        log_likelihood=likelihood if free else math.nan,
        r2=1.0 - likelihood / null if null < 0 and free else math.nan,
        r2_kind="McFadden's pseudo-R²",
    )


def _reference(model: LogisticRegression, sample: Sample) -> int | None:
    if sample.reference is None:
        return None
    found = np.flatnonzero(model.classes_ == sample.reference)
    if not len(found):
        raise ValueError(
            f"reference={sample.reference!r} is not a class of the model: use one of "
            f"{model.classes_.tolist()}."
        )
    return int(found[0])


def _no_maximum(
    estimates: Estimates, sample: Sample, step: Array, moves: Array, doubt: Array
) -> bool:
    """Whether the maximum-likelihood estimate is not shown to exist; if so, say it and take back the rest.

    It exists iff no direction of the coefficients makes every row at least as likely and some more likely
    (Albert & Anderson 1984), which positive weights lambda_i with sum_i lambda_i y_i a_i = 0 exclude. One
    Newton step from the fit turns its residuals into such weights, changing each by at most the share
    ``moves`` by which the step moves the log-odds of a row. Near a maximum that is tiny. Towards infinity it
    is 1: the loss of the rows that go there falls off like exp(-t), on which each step gains 1. ``doubt`` is
    the probability of the other classes: rows that move although they are in doubt are no separated rows, but
    a sign of a fit that was stopped early.
    """
    going = (moves > 0.5) & (sample.s > 0)
    if not going.any():
        return False
    estimates.covariance = estimates.fisher = None
    if float(doubt[going].max()) > 1e-3:
        estimates.notes.insert(
            0,
            "not a maximum of the likelihood: one more Newton step would move the log-odds of a row by "
            f"{float(moves[going].max()):.2g}, so there are no standard errors. Fit to the end: raise "
            "max_iter, or lower tol.",
        )
        return True
    size = np.abs(step).reshape(-1, step.shape[-1])[:, -len(sample.names) :].max(axis=0)
    size = size * sample.spread()
    names = [name for name, part in zip(sample.names, size, strict=True) if part > 0.1 * size.max()]
    some = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    rest = float(doubt[(sample.s > 0) & ~going].max(initial=0.0))
    why = "some rows are separated from the others" if rest > 1e-3 else "the classes are separated"
    estimates.notes.insert(
        0,
        f"infinite: {why}, and the likelihood keeps growing as the coefficients do (here: {some}); it has no "
        "maximum. The values shown are where the fit stopped, and there are no standard errors. Use a "
        "penalty (a finite C).",
    )
    return True


def _binary(
    model: LogisticRegression,
    sample: Sample,
    estimates: Estimates,
    codes: Array,
    s: Array,
    z: Array,
    l2: float,
    kind: str,
) -> bool:
    """Fill in the estimates; False where there are none to describe."""
    p = expit(z[:, 0])
    free = model.fit_intercept
    scaling = model._intercept_scaling()
    offset_penalty = 0.0 if scaling is None else l2 / scaling**2
    root = factor(
        sample.design,
        s * p * expit(-z[:, 0]),
        fit_intercept=free,
        penalty=l2,
        intercept_penalty=offset_penalty,
    )
    if l2 == 0:
        step, moves = _newton(sample, root, s * (codes - p), free)
        if _no_maximum(estimates, sample, step, moves, np.where(codes > 0, 1.0 - p, p)):
            return False
    middle = np.eye(root.rank)
    if l2 > 0:
        middle = meat(sample.design, root, s * p * expit(-z[:, 0]), fit_intercept=free)
    estimates.df_model = float(np.trace(middle))
    if kind != "fisher":
        omega = sandwich_weights(kind, sample, s * (codes - p), root, free)
        middle = meat(sample.design, root, omega, fit_intercept=free)
    estimates.covariance = (root.outer @ middle @ root.outer.T)[None]
    estimates.fisher = root.information(free)[None]
    estimates.identified, estimates.condition = root.identified, root.condition
    if l2 > 0:
        penalty = np.r_[[offset_penalty] * bool(free), np.full(len(sample.names), l2)]
        bias = root.outer @ (root.outer.T @ (penalty * estimates.coef[0]))
        shrinkage(estimates, bias[None], len(penalty))
    if l2 == 0 or not root.identified.all():
        estimates.notes += collinearity(root, sample.parameters(free))
    return True


def _newton(sample: Sample, root: Root, scores: Array, free: bool) -> tuple[Array, Array]:
    """A Newton step from the fit: in the parameters, and how far it moves the log-odds of each row."""
    slope = sample.design.tdot(sample.design.vector(scores))
    if free:
        slope = np.append(scores.sum(), slope - scores.sum() * root.center)
    step = root.outer @ (root.inner.T @ slope)
    moves = to_numpy(sample.design.dot(step[int(free) :])) + (step[0] if free else 0.0)
    return step, np.abs(moves)


def _softmax(
    model: LogisticRegression,
    sample: Sample,
    estimates: Estimates,
    codes: Array,
    s: Array,
    z: Array,
    l2: float,
    kind: str,
) -> bool:
    """The same for more than two classes."""
    free, classes = model.fit_intercept, len(model.classes_)
    P = np.exp(log_softmax(z, axis=1))
    center = sample.design.mean(sample.design.vector(s)) if free else np.zeros(len(sample.names))
    k = len(center) + free
    Q = scipy.linalg.helmert(classes).T  # (K, K - 1), orthonormal, each column sums to 0
    full = np.zeros((classes, k, classes, k))
    for rows, A in centred_rows(sample.design, center, free):
        weighted = np.sqrt(s[rows])[:, None, None] * P[rows][:, :, None] * A[:, None, :]
        U = weighted.reshape(len(A), -1)
        full -= (U.T @ U).reshape(full.shape)
        for c in range(classes):
            full[c, :, c, :] += (A * (s[rows] * P[rows, c])[:, None]).T @ A
    inner = np.einsum("ca,cidj,db->aibj", Q, full, Q, optimize=True)
    fisher = inner.reshape((classes - 1) * k, -1)
    ridge = np.tile(np.r_[[0.0] * bool(free), np.full(len(sample.names), l2)], classes - 1)
    base = _reference(model, sample)
    contrast = Q if base is None else np.delete(Q - Q[base], base, axis=0)
    outputs = len(contrast)

    def publish(rows: Array) -> Array:
        blocks = np.einsum("ca,air->cir", contrast, rows.reshape(classes - 1, k, -1))
        return np.concatenate([intercept_moved(part, center) if free else part for part in blocks])

    root = root_of(fisher + np.diag(ridge), center, publish)
    if l2 == 0:
        step, moves = _softmax_newton(sample, root, Q, codes, s, P, free)
        doubt = 1.0 - np.take_along_axis(P, codes.astype(np.intp)[:, None], axis=1)[:, 0]
        if _no_maximum(estimates, sample, step.reshape(outputs, k), moves, doubt):
            return False
    middle = np.eye(root.rank)
    if l2 > 0:
        middle = root.inner.T @ fisher @ root.inner
    estimates.df_model = float(np.trace(middle))
    if kind != "fisher":
        middle = _softmax_meat(sample, root, Q, codes, s, P, free)
        middle *= 1.0 if kind == "HC0" else sample.n / (sample.n - root.rank)
    L = root.outer.reshape(outputs, k, root.rank)
    estimates.covariance = np.einsum("tir,rs,tjs->tij", L, middle, L, optimize=True)
    blocks = [full[c, :, c, :] for c in range(classes) if c != base]
    estimates.fisher = np.stack(
        [intercept_moved_back(part, center) if free else part for part in blocks]
    )
    estimates.condition = root.condition
    identified = np.asarray(root.identified.reshape(outputs, k).all(axis=0))
    estimates.identified = identified
    if l2 > 0:
        padded = np.zeros((classes, k))
        padded[:, -len(sample.names) :] = l2 * _dense(model.coef_)
        bias = root.outer @ (root.inner.T @ (Q.T @ padded).ravel())
        shrinkage(estimates, bias.reshape(outputs, k), len(fisher))
    if not identified.all():
        shared = dataclasses.replace(root, identified=identified)
        estimates.notes += collinearity(shared, sample.parameters(free))
    return True


def _softmax_meat(
    sample: Sample, root: Root, Q: Array, codes: Array, s: Array, P: Array, free: bool
) -> Array:
    """sum_i of the squared scores of the rows, in the coordinates of the root."""
    total = np.zeros((root.rank, root.rank))
    share = np.divide(s**2, sample.copies, out=np.zeros_like(s), where=sample.copies > 0)
    for rows, A in centred_rows(sample.design, root.center, free):
        gap = P[rows].copy()
        gap[np.arange(len(gap)), codes[rows].astype(np.intp)] -= 1.0
        scores = ((gap @ Q)[:, :, None] * A[:, None, :]).reshape(len(A), -1) @ root.inner
        total += (scores * share[rows, None]).T @ scores
    return total


def _softmax_newton(
    sample: Sample, root: Root, Q: Array, codes: Array, s: Array, P: Array, free: bool
) -> tuple[Array, Array]:
    """As ``_newton``; a row moves by what its log-probabilities of the other classes do."""
    own = (np.arange(len(P)), codes.astype(np.intp))
    gap = -s[:, None] * P
    gap[own] += s
    slope = sample.design.tdot(sample.design.vector(gap)).T
    if free:
        slope = np.column_stack([gap.sum(axis=0), slope - np.outer(gap.sum(axis=0), root.center)])
    reduced = root.inner.T @ (Q.T @ slope).ravel()
    step = Q @ (root.inner @ reduced).reshape(Q.shape[1], -1)
    shift = to_numpy(sample.design.dot(step[:, int(free) :].T))
    if free:
        shift = shift + step[:, 0] - root.center @ step[:, 1:].T
    shift = shift - (P * shift).sum(axis=1, keepdims=True)
    shift[own] = 0.0
    return root.outer @ reduced, np.abs(shift).max(axis=1)
