"""The problem of FairLogistic, and what is claimed of it: definitions that no solver is part of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..duality import duality_gap, gap_claim, null_value
from ..losses import Logistic
from ..penalties import ElasticNet

__all__ = ["Metric", "covariances", "logistic_claims", "metric"]

Array = NDArray[np.float64]


def covariances(X: Array, attributes: Array, labels: Array | None = None) -> Array:
    """cov(A_k, x_j), one row for each k; within each label, where labels are given."""
    if labels is None:
        centred = attributes - attributes.mean(axis=0)
        # the mean of X drops out, but for the rounding of that of A
        return (centred.T @ X - np.outer(centred.sum(axis=0), X.mean(axis=0))) / len(X)
    parts = [covariances(X[rows], attributes[rows]) for rows in (labels < 0, labels > 0)]
    return np.vstack(parts)


@dataclass(frozen=True)
class Metric:
    """Q = I + weight c'c by its eigenvectors V that are not of eigenvalue 1, and the roots of these."""

    c: Array
    weight: float
    V: Array
    roots: Array

    def apply(self, w: Array) -> Array:
        """v = Q^{1/2} w."""
        return w + self.V @ ((self.roots - 1.0) * (self.V.T @ w))

    def undo(self, v: Array) -> Array:
        """w = Q^{-1/2} v."""
        return v + self.V @ ((1.0 / self.roots - 1.0) * (self.V.T @ v))

    def rows(self, X: Array) -> Array:
        """X Q^{-1/2}."""
        if not self.V.size:
            return X
        return X + ((X @ self.V) * (1.0 / self.roots - 1.0)) @ self.V.T


def metric(c: Array, weight: float) -> Metric:
    """The metric of a penalty weight/2 sum_k (c_k'w)^2 beside 1/2 ||w||^2."""
    if not c.size or weight == 0.0:
        return Metric(c, weight, np.zeros((c.shape[1], 0)), np.ones(0))
    _, sizes, rows = np.linalg.svd(c, full_matrices=False)
    kept = sizes > sizes[0] * np.finfo(np.float64).eps * max(c.shape)
    return Metric(c, weight, rows[kept].T, np.sqrt(1.0 + weight * sizes[kept] ** 2))


def logistic_claims(
    X: Array,
    signs: Array,
    form: Metric,
    w: Array,
    b: float,
    C: float,
    fairness: float,
    fit_intercept: bool,
    tol: float,
    outside: float,
) -> list[Claim]:
    """The duality gap in the coordinates v = Q^{1/2} w, and the bound on the covariances.

    ``outside`` is the largest coefficient of a column that is no feature: it must be 0.
    """
    loss, penalty = Logistic(), ElasticNet(1.0, 0.0)
    s = np.full(len(signs), float(C))
    gap = duality_gap(
        form.rows(X), signs, form.apply(w), b, loss, penalty, weights=s, fit_intercept=fit_intercept
    )
    null = null_value(loss, signs, s, fit_intercept=fit_intercept)
    claims = [gap_claim(gap, tol, null, "FAIR-6", curvature=1.0)]
    if outside > 0.0:
        words = f"a sensitive column has the coefficient {outside:.3g}, and should have none"
        claims.append(Claim.check("features", words, Kind.EXACT, outside, 0.0, "FAIR-6"))
    if fairness > 0.0 and form.c.size:
        claims.append(covariance_bound(form, w, null, tol, C * len(X) * fairness))
    return claims


def covariance_bound(form: Metric, w: Array, null: float, tol: float, weight: float) -> Claim:
    """The penalty of the minimiser is at most the objective at w = 0."""
    found: Any = form.c @ w
    total = float(found @ found)
    statement = (
        f"the squared covariances of the score with the sensitive attribute sum to {total:.3g} (largest "
        f"covariance {float(np.abs(found).max()):.3g}); those of the minimiser sum to at most "
        f"{2.0 * null / weight:.3g}, by what no weights at all cost"
    )
    bound = 2.0 * null * (1.0 + tol) / weight
    return Claim.check("covariance", statement, Kind.BOUND, total, bound, "FAIR-6")
