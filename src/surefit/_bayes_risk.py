r"""The risk of the Bayes rule: what no classifier can beat (CLS-3).

    R* = 1 - E max_c P(c | x) = 1 - \int max_c pi_c p_c(x) dx

in closed form for two Gaussians with one covariance, by quadrature on the line, by Monte Carlo otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad_vec
from scipy.special import ndtr

from .densities import Gaussian

__all__ = ["BayesRisk", "closed_form", "log_densities", "monte_carlo", "quadrature"]

Array = NDArray[np.float64]


class BayesRisk(NamedTuple):
    """A risk, how far it may be off, and how it was found."""

    value: float
    error: float
    method: str  # "closed form", "quadrature" (its own estimate of the error) or "Monte Carlo" (at 1 - delta)


def log_densities(densities: Any, X: Array) -> Array:
    """log p_c(x) of each row under each density, shape (n, classes)."""
    return np.column_stack([_log_density(density, X) for density in densities])


def _log_density(density: Any, X: Array) -> Array:
    found = getattr(density, "log_prob", None) or getattr(density, "logpdf", None)
    if found is None:
        raise TypeError(
            f"densities holds a {type(density).__name__}, which has neither log_prob nor logpdf: pass one of "
            "surefit.densities, a frozen scipy distribution, or an object with log_prob."
        )
    with np.errstate(divide="ignore"):
        values = np.asarray(found(X), dtype=np.float64)
    if values.size != len(X):
        raise ValueError(
            f"{type(density).__name__} gave {values.shape} log-densities for {len(X)} rows of {X.shape[1]} "
            "features: one a row is needed; a density on the line takes one feature."
        )
    return values.reshape(len(X))


def closed_form(densities: Any, priors: Array) -> BayesRisk | None:
    """Two Gaussians with one covariance: the projection on the discriminant is a question on the line."""
    if len(densities) != 2 or not all(isinstance(d, Gaussian) for d in densities):
        return None
    one, two = densities
    if not np.array_equal(one.cov, two.cov):
        return None
    if priors.min() == 0.0:
        return BayesRisk(0.0, 0.0, "closed form")
    shift = two.mean - one.mean
    delta = math.sqrt(max(0.0, float(shift @ np.linalg.solve(one.cov, shift))))
    if delta == 0.0:
        return BayesRisk(float(priors.min()), 0.0, "closed form")
    tilt = math.log(priors[1] / priors[0]) / delta
    value = priors[0] * ndtr(-delta / 2 + tilt) + priors[1] * ndtr(-delta / 2 - tilt)
    digits = (
        2.0**-50 * len(shift) * np.linalg.cond(one.cov)
    )  # of delta; the risk changes less than that
    return BayesRisk(float(value), float(digits * max(1.0, delta)), "closed form")


def quadrature(densities: Any, priors: Array) -> BayesRisk | None:
    """Densities on the line, between the points where the best class changes.

    The error is the sum of the quadrature's own estimates and of what the densities, integrated the same way,
    miss of 1.
    """
    places = [place for place in map(_place, densities) if place is not None]
    if len(places) < len(densities):
        return None
    low = min(loc - 12.0 * scale for loc, scale in places)
    high = max(loc + 12.0 * scale for loc, scale in places)
    marks = [loc + c * scale for loc, scale in places for c in (-8, -3, -1, 0, 1, 3, 8)]
    grid = np.unique(np.concatenate([np.linspace(low, high, 4001), marks]))

    def joint(x: float) -> Array:
        return priors * np.exp(log_densities(densities, np.array([[x]]))[0])

    with np.errstate(divide="ignore"):
        best = (log_densities(densities, grid[:, None]) + np.log(priors)).argmax(axis=1)
    turns = np.flatnonzero(best[1:] != best[:-1])
    edges = [_bisect(joint, grid[i], grid[i + 1], best[i]) for i in turns]
    inner = np.unique([low, high, *edges, *marks])
    cuts = np.concatenate([[-np.inf], inner, [np.inf]])

    def lost_and_masses(x: float) -> Array:
        at = joint(x)
        return np.append(at.sum() - at.max(), at)

    parts = [quad_vec(lost_and_masses, a, b, norm="max") for a, b in pairwise(cuts)]
    value, *masses = np.sum([part[0] for part in parts], axis=0)
    error = sum(float(part[1]) for part in parts) + float(np.abs(masses - priors).sum())
    return BayesRisk(float(value), error, "quadrature")


def _place(density: Any) -> tuple[float, float] | None:
    """Location and scale of a density on the line."""
    if hasattr(density, "loc") and hasattr(density, "scale"):
        return float(density.loc), float(density.scale)
    if isinstance(density, Gaussian):
        return (
            (float(density.mean[0]), math.sqrt(density.cov[0, 0]))
            if len(density.mean) == 1
            else None
        )
    if hasattr(density, "ppf"):
        median, quarter = (float(density.ppf(q)) for q in (0.5, 0.25))
        return (median, median - quarter) if median > quarter else None
    return None


def _bisect(joint: Callable[[float], Array], a: float, b: float, best: int) -> float:
    """Where the class that is best at a stops being so."""
    for _ in range(200):
        middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        a, b = (middle, b) if joint(middle).argmax() == best else (a, middle)
    return b


def monte_carlo(
    densities: Any, priors: Array, n_samples: int, delta: float, random_state: Any
) -> BayesRisk:
    """The mean of 1 - max_c P(c | x) over draws of x, which lies in [0, 1 - 1/K]; Hoeffding's radius."""
    rng = np.random.default_rng(random_state)
    counts = rng.multinomial(n_samples, priors)
    draws = [_draw(d, int(n), rng) for d, n in zip(densities, counts) if n]
    X = np.vstack(draws)
    with np.errstate(divide="ignore"):
        logs = log_densities(densities, X) + np.log(priors)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    losses = 1.0 - 1.0 / shares.sum(axis=1)
    radius = (1.0 - 1.0 / len(priors)) * math.sqrt(math.log(2.0 / delta) / (2.0 * n_samples))
    return BayesRisk(float(losses.mean()), radius, "Monte Carlo")


def _draw(density: Any, n: int, rng: np.random.Generator) -> Array:
    if hasattr(density, "sample"):
        rows = density.sample(n, rng)
    elif hasattr(density, "rvs"):
        rows = density.rvs(size=n, random_state=rng)
    else:
        raise TypeError(
            f"the risk needs draws, and {type(density).__name__} has neither sample nor rvs: give it "
            "sample(n, random_state)."
        )
    return np.asarray(rows, dtype=np.float64).reshape(n, -1)
