r"""Summaries of the robust regressions: M-estimates (Huber, Tukey) and quantiles.

An M-estimate solves sum_i s_i psi(e_i / sigma) a_i = P w. If the noise is the same for all rows and
symmetric, its covariance is sigma^2 E[psi^2] / E[psi']^2 (A'A)^-1 for many samples; Huber's H1 adds a
correction of order k / n. If the noise differs from row to row, the sandwich with B = sum_i s_i psi'_i a_i
a_i' and M = sum_i s_i^2 psi_i^2 a_i a_i' (times sigma^2) is right. The scale is estimated too, but for
symmetric noise that does not matter to first order.

For small samples the normal law is too narrow: what counts is the number of rows in the part of the loss
that is (nearly) quadratic, m = sum_i psi'(e_i / sigma). Student's t with m - k degrees of freedom keeps its
level, in simulations, from m = 8 k on; below that there are no intervals.

A quantile is pinned down by the density f_i(0) of the noise at it, not by a variance: B = sum_i s_i f_i(0)
a_i a_i', M = tau (1 - tau) sum_i s_i^2 a_i a_i'. No estimate of that density is good enough for intervals
when few rows lie beyond the quantile. The default therefore needs none: it inverts the law of the signs
(:mod:`._summary.signs`), which is known exactly. On request there are three estimates of the density:
*kernel* (Powell) counts residuals near zero row by row, so that it may differ between rows; *iid* uses one
number for all rows; *fisher* takes the noise to be (asymmetric) Laplace, for which the quantile is the
maximum-likelihood estimate, b = mean pinball loss (for the median: mean |e|, REG-9) and the Fisher
information tau (1 - tau) A'A / b^2.

References
----------
Huber, "Robust regression: asymptotics, conjectures and Monte Carlo" (1973); Powell, "Estimation of monotonic
regression models under quantile restrictions" (1991); Koenker, Quantile Regression (2005), section 3.4;
Hall & Sheather, "On the distribution of a studentized quantile" (1988). docs/interpretation.md has the
simulations behind the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._namespace import to_numpy
from ...inference.information import Root, factor, meat
from ...inference.summary import Noise
from ..huber import HuberRegressor
from ..quantile import QuantileRegressor
from ..tukey import TukeyRegressor
from .core import Array, Estimates, Sample, collinearity, describe, sandwich_weights, too_many
from .gaussian import shrinkage
from .signs import MOST_WORK, sign_intervals

__all__ = ["hall_sheather", "m_estimate", "quantile_estimate"]

# Rows in the quadratic part of the loss, per parameter: below, t intervals cover less than they say.
FEWEST_CENTRAL_ROWS = 8.0
# Rows beyond the quantile, per parameter: below, intervals from an estimated density cover too little.
FEWEST_TAIL_ROWS = 200.0
_L1 = (
    "no standard errors: the l1 penalty chose the non-zero coefficients by looking at y, and ordinary "
    "standard errors ignore that choice. Refit with alpha=0 and the chosen features on rows that were not "
    "used to choose them."
)


@describe.register
def _huber(model: HuberRegressor, sample: Sample) -> Estimates:
    epsilon = float(model.epsilon)
    return m_estimate(
        model,
        sample,
        lambda u: np.clip(u, -epsilon, epsilon),
        lambda u: (np.abs(u) <= epsilon).astype(np.float64),
        float(model.scale_),
        float(model.alpha),
    )


@describe.register
def _tukey(model: TukeyRegressor, sample: Sample) -> Estimates:
    square, scale = float(model.delta) ** 2, float(model.scale_)

    def part(u: Array) -> Array:
        return np.maximum(1.0 - u * u / square, 0.0)

    return m_estimate(
        model,
        sample,
        lambda u: u * part(u) ** 2,
        lambda u: part(u) * (part(u) - 4.0 * u * u / square),
        scale,
        float(model.alpha) / scale if scale > 0 else 0.0,  # its loss is not divided by the scale
        convex=False,
    )


@describe.register
def _quantile(model: QuantileRegressor, sample: Sample) -> Estimates:
    return quantile_estimate(model, sample, float(model.quantile), float(model.alpha))


def m_estimate(
    model: Any,
    sample: Sample,
    psi: Callable[[Array], Array],
    psi_slope: Callable[[Array], Array],
    scale: float,
    penalty: float = 0.0,
    *,
    convex: bool = True,
) -> Estimates:
    """An M-estimate with its scale; ``penalty`` is P of the equation above, times the identity.

    ``convex`` says that psi never falls: only then is the row-by-row bread a sum of squares.
    """
    w, b, stacked = _public(model)
    e = sample.targets()[:, 0] - to_numpy(sample.design.dot(w)) - b
    estimates = Estimates(
        coef=stacked,
        response="centre of the target",
        noise=Noise("unspecified", scale, math.nan, math.nan),
    )
    why_not = too_many(stacked.shape[1])
    if not scale > 1e-13 * float(sample.s @ np.abs(sample.targets()[:, 0])) / sample.s.sum():
        why_not = "an exact fit: the scale of the residuals is 0, and there are no standard errors."
    if why_not is not None:
        estimates.notes.append(why_not)
        return estimates
    same = bool(np.array_equal(sample.s, sample.copies))
    kinds = ("H1",) * same + ("HC0", "HC1") * convex
    if not kinds:
        estimates.notes.append(
            "no standard errors: with precision weights the noise differs from row to row, which this loss "
            "has no sandwich for."
        )
        return estimates
    kind = sample.choose(*kinds, model=model)
    u, free = e / scale, model.fit_intercept
    slope, push = psi_slope(u), psi(u)
    mean_slope = float(sample.copies @ slope) / sample.n
    pull = penalty * scale / (mean_slope if kind == "H1" else 1.0)
    if kind == "H1":
        root = factor(sample.design, sample.s, fit_intercept=free, penalty=pull)
        middle = np.eye(root.rank)
        if penalty > 0:
            middle = meat(sample.design, root, sample.s, fit_intercept=free)
        left = sample.n - float(np.trace(middle))
        spread = float(sample.copies @ (slope - mean_slope) ** 2) / sample.n
        correction = 1.0 + float(np.trace(middle)) / sample.n * spread / mean_slope**2
        size = float(sample.copies @ push**2) / left * (correction * scale / mean_slope) ** 2
        estimates.df_model = float(np.trace(middle))
        middle = size * middle
        words = "M-estimate, noise the same for all rows and symmetric (Huber's H1)"
    else:
        v = sample.s * slope
        root = factor(sample.design, v, fit_intercept=free, penalty=pull)
        used = meat(sample.design, root, v, fit_intercept=free)
        estimates.df_model = float(np.trace(used))
        omega = sandwich_weights(kind, sample, scale * sample.s * push, root, free)
        middle = meat(sample.design, root, omega, fit_intercept=free)
        words = f"M-estimate, {kind} sandwich (the noise may differ from row to row)"
    central = mean_slope * sample.n
    df = max(central - root.rank, 1.0)
    _finish(model, sample, estimates, root, middle, pull, df)
    estimates.df_resid = sample.n - estimates.df_model
    estimates.method = f"{words}, Student's t with {df:.6g} degrees of freedom"
    if central < FEWEST_CENTRAL_ROWS * root.rank:
        estimates.has_intervals = False
        estimates.notes.append(
            f"no intervals and no p-values: only {central:.3g} of {sample.n:.6g} rows lie in the central "
            f"part of the loss, and {FEWEST_CENTRAL_ROWS:g} for each of {root.rank} parameters are needed "
            "for intervals that keep their level. Use more rows, or fewer features."
        )
    return estimates


def quantile_estimate(model: Any, sample: Sample, tau: float, alpha: float) -> Estimates:
    """Linear quantile regression; ``alpha`` is the weight of its l1 penalty."""
    w, b, stacked = _public(model)
    y = sample.targets()[:, 0]
    e = y - to_numpy(sample.design.dot(w)) - b
    used = sample.s > 0
    each = np.divide(sample.s, sample.copies, out=np.zeros_like(sample.s), where=used)
    loss = float(sample.s @ _pinball(e, tau))
    size = loss / sample.n  # b of the asymmetric Laplace density
    with np.errstate(divide="ignore"):
        density = math.log(tau * (1.0 - tau)) - np.log(size)
    null = float(sample.s @ _pinball(y - _weighted_quantile(y, sample.s, tau), tau))
    median = tau == 0.5
    spread = (1.0 - 2.0 * tau + 2.0 * tau**2) / (tau * (1.0 - tau)) ** 2
    estimates = Estimates(
        coef=stacked,
        response="median of the target" if median else f"{tau:g}-quantile of the target",
        noise=Noise(
            "Laplace" if median else "asymmetric Laplace", (2.0 if median else 1.0) * size,
            spread * size**2, spread * size**2,
        ),
        log_likelihood=sample.n * (density - 1.0) + float(sample.copies[used] @ np.log(each[used])),
        r2=1.0 - loss / null if null > 0 else math.nan,
        r2_kind="Koenker and Machado's R¹",
    )  # fmt: skip
    if alpha > 0:
        if sample.covariance != "auto":
            raise ValueError(f"covariance={sample.covariance!r} cannot be computed here: {_L1}")
        estimates.notes.append(_L1)
        estimates.df_model = float(np.count_nonzero(w) + bool(model.fit_intercept))
        estimates.df_resid = sample.n - estimates.df_model
        return estimates
    why_not = too_many(stacked.shape[1])
    if why_not is not None:
        estimates.notes.append(why_not)
        return estimates
    kind = sample.choose("signs", "kernel", "iid", "fisher", model=model)
    tail = sample.n * min(tau, 1.0 - tau) / stacked.shape[1]
    if kind == "signs" and sample.n * stacked.shape[1] ** 2 > MOST_WORK:
        kind = "kernel"
    squares = sample.s * each
    plain = factor(sample.design, squares, fit_intercept=model.fit_intercept)
    estimates.df_model, left = float(plain.rank), sample.n - plain.rank
    estimates.df_resid = left
    if size > 0:
        information = plain.information(model.fit_intercept)
        estimates.fisher = (tau * (1.0 - tau) / size**2 * information)[None]
    scaled = e if kind == "kernel" else each * e
    width = _bandwidth(scaled[used], sample.copies[used], sample.n, tau)
    exact = loss <= 1e-13 * float(sample.s @ np.abs(y))
    if exact or left <= 0 or (kind != "fisher" and not width > 0):
        estimates.notes.append(
            "no standard errors: the fit goes through too many of the points, so that the density of the "
            "noise there cannot be estimated."
        )
        return estimates
    if kind == "signs":
        return _from_signs(model, sample, estimates, plain, tau, loss / float(sample.s.sum()))
    root, middle = plain, np.eye(plain.rank)
    if kind == "fisher":
        middle *= size**2 / (tau * (1.0 - tau))
        words = "Fisher information of Laplace noise"
    elif kind == "iid":
        height = float(sample.copies @ _epanechnikov(scaled / width)) / (sample.n * width)
        middle *= tau * (1.0 - tau) / height**2
        words = "density of the noise at the quantile by a kernel, the same for all rows"
    else:
        near = sample.s * _epanechnikov(e / width) / width
        root = factor(sample.design, near, fit_intercept=model.fit_intercept)
        omega = tau * (1.0 - tau) * squares
        middle = meat(sample.design, root, omega, fit_intercept=model.fit_intercept)
        words = "Powell's kernel sandwich (the noise may differ from row to row)"
        if root.rank < plain.rank:
            estimates.notes.append(
                f"only {int(np.count_nonzero(near))} residuals are within the bandwidth {width:.3g} of 0: "
                "too few for the kernel sandwich. Use covariance='iid'."
            )
    _finish(model, sample, estimates, root, middle, 0.0, left)
    estimates.method = f"{words}, Student's t with {left:.6g} degrees of freedom"
    if tail < FEWEST_TAIL_ROWS:
        estimates.has_intervals = False
        estimates.notes.append(
            f"no intervals and no p-values: {tail:.3g} rows for each parameter lie beyond the quantile, and "
            f"intervals from an estimated density keep their level from about {FEWEST_TAIL_ROWS:g} on. "
            "covariance='signs' needs no density."
        )
    return estimates


def _from_signs(
    model: Any, sample: Sample, estimates: Estimates, root: Root, tau: float, loss: float
) -> Estimates:
    """Intervals and p-values from the law of the signs; no standard errors."""
    estimates.identified, estimates.condition = root.identified, root.condition
    if not root.identified.all():
        estimates.notes += collinearity(root, sample.parameters(model.fit_intercept))
        estimates.notes.append("no intervals: drop the features that are not identified first.")
        return estimates
    rows = np.repeat(np.arange(len(sample.s)), sample.copies.astype(np.intp))
    A = to_numpy(sample.design.dot(np.eye(len(sample.names))))[rows]
    if model.fit_intercept:
        A = np.column_stack([np.ones(len(A)), A])
    each = (sample.s / np.maximum(sample.copies, 1e-300))[rows]
    each /= math.sqrt(float(np.mean(each**2)))  # weights have no unit here
    rough = np.sqrt(np.diag(np.linalg.inv((A.T * each**2) @ A)) / (tau * (1.0 - tau))) * loss
    found = sign_intervals(
        A, sample.targets()[rows, 0], each, tau, estimates.coef[0], rough, sample.level
    )
    estimates.low, estimates.high = found.low[None], found.high[None]
    estimates.p_value = found.p_value[None]
    estimates.method = (
        "none; intervals and p-values from the law of the signs of the residuals, which holds for any "
        "noise (conservative)"
    )
    if np.isnan(found.low).any():
        names = sample.parameters(model.fit_intercept)
        missing = [name for name, end in zip(names, found.low, strict=True) if math.isnan(end)]
        tail = sample.n * min(tau, 1.0 - tau) / A.shape[1]
        estimates.notes.append(
            f"no interval for {', '.join(missing[:8])}: {tail:.3g} rows for each parameter lie beyond the "
            f"{tau:g}-quantile, too few to bound it from both sides. Use more rows, fewer features, or a "
            "quantile closer to the median."
        )
    return estimates


def _public(model: Any) -> tuple[Array, float, Array]:
    """Coefficients, intercept, and both as one row."""
    w = to_numpy(model.coef_).astype(np.float64).ravel()
    b = float(to_numpy(model.intercept_).ravel()[0])
    return w, b, np.append(b, w)[None] if model.fit_intercept else w[None]


def _finish(
    model: Any,
    sample: Sample,
    estimates: Estimates,
    root: Root,
    middle: Array,
    penalty: float,
    df: float,
) -> None:
    """The covariance, and what the factorisation says about it."""
    estimates.covariance = (root.outer @ middle @ root.outer.T)[None]
    estimates.identified, estimates.condition, estimates.df = root.identified, root.condition, df
    if penalty > 0:
        pull = np.r_[[0.0] * bool(model.fit_intercept), np.full(len(sample.names), penalty)]
        bias = root.outer @ (root.outer.T @ (pull * estimates.coef[0]))
        shrinkage(estimates, bias[None], len(pull))
    if penalty == 0 or not root.identified.all():
        estimates.notes += collinearity(root, sample.parameters(model.fit_intercept))


def hall_sheather(n: float, tau: float, level: float = 0.95) -> float:
    """The bandwidth, in probability, for a studentised quantile; kept inside (0, 1) around tau.

    Examples
    --------
    >>> round(hall_sheather(1000, 0.5), 4)
    0.0972
    """
    z = float(ndtri(tau))
    height = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    width = (1.5 * height**2 / (2.0 * z * z + 1.0) / n) ** (1 / 3)
    width *= float(ndtri(0.5 + level / 2.0)) ** (2 / 3)
    return float(min(width, 0.5 * min(tau, 1.0 - tau)))


def _bandwidth(e: Array, copies: Array, n: float, tau: float) -> float:
    """In the units of the residuals: their robust scale times the normal quantiles that far apart."""
    sample = np.repeat(e, copies.astype(np.intp))
    low, high = np.quantile(sample, [0.25, 0.75])
    h = hall_sheather(n, tau)
    return float(min(sample.std(), (high - low) / 1.34) * (ndtri(tau + h) - ndtri(tau - h)))


def _epanechnikov(u: Array) -> Array:
    return 0.75 * np.maximum(1.0 - u * u, 0.0)


def _pinball(e: Array, tau: float) -> Array:
    return np.where(e > 0, tau * e, (tau - 1.0) * e)


def _weighted_quantile(y: Array, s: Array, tau: float) -> float:
    """A minimiser of sum_i s_i pinball(y_i - c)."""
    order = np.argsort(y)
    mass = np.cumsum(s[order])
    return float(y[order][np.searchsorted(mass, tau * mass[-1] * (1.0 - 1e-12))])
