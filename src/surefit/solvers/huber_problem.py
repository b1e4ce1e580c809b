r"""Huber's regression with its scale: the problem, its objective, the best scale for given residuals.

    P(w, b, sigma) = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,     r = y - Xw - b,

H(u) = u^2 up to |u| = eps and 2 eps |u| - eps^2 beyond. For given residuals the best scale makes the
derivative 0,

    sum_i s_i min(r_i^2, eps^2 sigma^2) = sigma^2 sum_i s_i.

In t = sigma^2 the difference of the two sides is concave and piecewise linear: Newton's method finds its root
without sorting, from the right without ever passing it. Where 1 - 1/eps^2 of the weight has residual 0 there
is no root but 0; ``floor`` stands for it.

References
----------
Huber & Ronchetti, Robust Statistics (2009), sections 7.7 and 7.8.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._namespace import array_namespace, clip
from ._centred import CentredRows

__all__ = ["HuberPoint", "HuberProblem", "best_scale", "indicator", "objective", "solve"]

Array = NDArray[np.float64]
_SPECTRUM = 1200  # largest matrix whose eigenvectors are computed


class HuberPoint(NamedTuple):
    """Coefficients, intercept, scale and, where the scale is 0, a dual point: residuals do not show it."""

    w: Array
    b: float
    scale: float
    theta: Any = None


class HuberProblem(NamedTuple):
    """What is to be minimised."""

    rows: CentredRows
    y: Any
    s: Any
    total: float  # sum of s
    epsilon: float
    alpha: float
    floor: float  # the scale that stands for 0


def best_scale(problem: HuberProblem, r: Any, start: float) -> float:
    """The best scale for these residuals, at least ``floor``: Newton's method in sigma^2."""
    squares = r * r
    weighted = problem.s * squares
    limit = float(weighted.sum()) / problem.total  # no root lies beyond
    edge = problem.epsilon**2
    t = min(start * start, limit)
    for _ in range(60):
        near = indicator(squares <= edge * t)
        slope = problem.total * (1.0 - edge) + edge * float(problem.s @ near)
        if slope > 1e-13 * problem.total:
            nearer = min(float(weighted @ near) / slope, limit)
        else:  # too few are near: the root is on the right, if there is one
            nearer = limit if t < limit else 0.0
        if abs(nearer - t) <= 1e-15 * t:
            break
        t = nearer
    return max(math.sqrt(t), problem.floor)


def objective(problem: HuberProblem, r: Any, sigma: float, w: Array) -> float:
    """The objective at these residuals, scale and coefficients."""
    size = abs(r)
    part = clip(size, None, problem.epsilon * sigma)
    losses = part * (part / sigma) + 2.0 * problem.epsilon * (size - part)
    return problem.total * sigma + float(problem.s @ losses) + problem.alpha * float(w @ w)


def solve(K: Array, ridge: float, p: int, rhs: Array) -> tuple[Array, bool]:
    """Solve with K plus ``ridge`` on its first p diagonal entries, and say whether that worked.

    The matrix is scaled to a unit diagonal. A singular one gives the shortest solution, which is one if
    rhs lies in its range.
    """
    matrix = K.copy()
    matrix[np.arange(p), np.arange(p)] += ridge
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale[scale == 0.0] = 1.0
    unit, target = matrix / scale / scale[:, None], (rhs.T / scale).T
    limit = 1e-9 * float(np.abs(target).max(initial=0.0))

    def outcome(found: Array) -> tuple[Array, bool]:
        return (found.T / scale).T, float(np.abs(unit @ found - target).max(initial=0.0)) <= limit

    try:
        found, solved = outcome(cho_solve(cho_factor(unit), target))
        if solved:
            return found, True
    except np.linalg.LinAlgError:
        pass
    if len(unit) > _SPECTRUM:
        lifted = unit + 1e-12 * len(unit) * np.eye(len(unit))
        return outcome(cho_solve(cho_factor(lifted), target))
    values, vectors = np.linalg.eigh(unit)
    large = values > 1e-14 * len(values) * values[-1]
    vectors = vectors[:, large]
    return outcome(vectors @ ((vectors.T @ target).T / values[large]).T)


def indicator(mask: Any) -> Any:
    """1.0 where the mask holds, else 0.0."""
    xp = array_namespace(mask)
    return xp.astype(mask, xp.float64)
