"""What every summary starts from and ends in: the sample, the estimates, and who describes which model.

A model is described by a function registered for its class::

    @describe.register
    def _(model: MyRegressor, sample: Sample) -> Estimates: ...

**Weights.** The objective of a weighted fit is sum_i s_i loss_i. That is the likelihood of two different
situations, which give the same coefficients and different standard errors. *Precision* weights (the default,
and the meaning of weighted least squares): one observation a row, its noise variance proportional to 1 / s_i;
rows count as observations, and multiplying all weights by a number changes nothing. *Frequency* weights: row
i was seen s_i times; the weights sum to the number of observations. Here ``copies`` holds the number of
observations behind each row, 1 or s_i, and s_i / copies_i is the weight of one of them; a row of weight zero
is not there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._namespace import to_numpy
from ...design import Design
from ...inference.information import MOST_PARAMETERS, Root, leverages
from ...inference.summary import Noise

__all__ = [
    "Array",
    "Estimates",
    "Sample",
    "collinearity",
    "describe",
    "sandwich_weights",
    "too_many",
]

Array = NDArray[np.float64]
_COLLINEAR = math.sqrt(10.0)  # a variance inflation factor above 10 is worth a word


@dataclass(frozen=True, eq=False)
class Sample:
    """The data of a summary, checked."""

    X: Any  # as the model validated it
    y: Any
    sample_weight: Any
    design: Design
    s: Array  # (n,), weights in the objective
    copies: Array  # (n,), observations behind each row
    covariance: str  # the kind asked for
    names: tuple[str, ...]  # of the features
    reference: Any = None  # the class that others are compared with
    level: float = 0.95  # of the intervals

    @property
    def n(self) -> float:
        """How many observations there are."""
        return float(self.copies.sum())

    def parameters(self, fit_intercept: bool) -> tuple[str, ...]:
        """Names of the parameters, the intercept first."""
        return ("intercept", *self.names) if fit_intercept else self.names

    def targets(self) -> Array:
        """(n, T) targets."""
        Y: Array = to_numpy(self.y).astype(np.float64).reshape(self.design.shape[0], -1)
        return Y

    def spread(self) -> Array:
        """The standard deviation of each feature."""
        weights = self.design.vector(self.s)
        norms = self.design.column_norms(weights, self.design.mean(weights))
        return norms / math.sqrt(float(self.s.sum()))

    def choose(self, *allowed: str, model: Any) -> str:
        """The kind of covariance: the first of ``allowed`` for "auto", an error for one not allowed."""
        if self.covariance == "auto":
            return allowed[0]
        if self.covariance not in allowed:
            kinds = ", ".join(repr(kind) for kind in ("auto", *allowed))
            raise ValueError(
                f"covariance={self.covariance!r} is not a covariance for this {type(model).__name__}: "
                f"use one of {kinds}."
            )
        return self.covariance


@dataclass(eq=False)
class Estimates:
    """What is known about the parameters of each output; arrays over outputs have length T."""

    coef: Array  # (T, k)
    response: str
    noise: Noise
    outputs: tuple[str, ...] = ()
    covariance: Array | None = None  # (T, k, k)
    identified: NDArray[np.bool_] | None = None  # (k,) or (T, k)
    df: Any = math.inf  # of Student's t
    tested: bool = True  # whether a p-value answers the question it seems to answer
    has_intervals: bool = True  # whether errors / covariance make intervals of the stated level
    low: Array | None = None  # (T, k), of intervals that do not come from standard errors
    high: Array | None = None
    p_value: Array | None = None
    method: str = "none"
    fisher: Array | None = None  # (T, k, k)
    log_likelihood: Any = math.nan
    df_model: Any = math.nan
    df_resid: Any = math.nan
    r2: Any = math.nan
    r2_kind: str = "R²"
    condition: float = math.nan
    notes: list[str] = field(default_factory=list)


@singledispatch
def describe(model: Any, sample: Sample) -> Estimates:
    """The estimates of a fitted model; each class registers its own."""
    raise TypeError(
        f"{type(model).__name__} has no summary: nothing is known about the distribution of its "
        "coefficients. LinearRegression, Ridge and LogisticRegression have one."
    )


def sandwich_weights(
    kind: str, sample: Sample, scores: Array, root: Root, fit_intercept: bool
) -> Array:
    """omega of the sandwich sum_i omega_i a_i a_i': squared scores, corrected (MacKinnon & White 1985).

    ``scores`` are those of the weighted objective, s_i times the derivative of the loss; the copies of a row
    share its score. HC0 takes them as they are, HC1 multiplies by n / (n - k), HC2 and HC3 divide
    by 1 - h_i once and twice, where the residual of a row of leverage h_i is that much too small.
    """
    squares = np.divide(
        scores**2, sample.copies, out=np.zeros_like(scores), where=sample.copies > 0
    )
    if kind == "HC0":
        return squares
    if kind == "HC1":
        return squares * (sample.n / (sample.n - root.rank))
    h = leverages(sample.design, root, sample.s, fit_intercept=fit_intercept)
    h = np.divide(h, sample.copies, out=np.zeros_like(h), where=sample.copies > 0)
    alone = np.flatnonzero(1.0 - h < 1e-10)
    if len(alone):
        raise ValueError(
            f"covariance={kind!r} divides by 1 - leverage, and the rows {alone[:5].tolist()} have leverage 1 "
            "(each is fitted exactly, whatever its target): use 'HC1', or drop them."
        )
    return squares / (1.0 - h) ** (1 if kind == "HC2" else 2)


def collinearity(root: Root, names: tuple[str, ...]) -> list[str]:
    """What the factorisation says about the columns, in words."""
    features = names[-len(root.center) :]
    if not root.identified.all():
        lost = [name for name, good in zip(names, root.identified, strict=True) if not good]
        some = ", ".join(lost[:8]) + (", ..." if len(lost) > 8 else "")
        return [
            f"not identified: the rank is {root.rank} of {len(names)}, and {len(lost)} parameter(s) ({some}) "
            "can take other values without changing any prediction. The values shown are one choice among "
            "infinitely many; they have no standard error."
        ]
    inflation = root.inflation[-len(features) :] if features else np.ones(1)
    j = int(np.argmax(inflation))
    if inflation[j] <= _COLLINEAR:
        return []
    return [
        f"collinear: other features nearly determine {features[j]!r}, whose standard error is "
        f"{inflation[j]:.3g} times what it would be if they were uncorrelated (condition number "
        f"{root.condition:.3g})."
    ]


def too_many(k: int) -> str | None:
    """Why there is no k x k matrix, or None."""
    if k <= MOST_PARAMETERS:
        return None
    return (
        f"no standard errors: they need a dense matrix of {k} x {k} numbers, and {MOST_PARAMETERS} is the "
        "most that is factored. Choose fewer features."
    )
