r"""The convergence theorems, as functions and as claims (OPT-14, OPT-15, OPT-16, OPT-17, OPT-11).

With step t, :math:`R = \|x_0 - x^\star\|` and f L-smooth, gradient descent obeys

======================  ===========================  =====================================================
assumption              step                         promise after k steps
======================  ===========================  =====================================================
convex                  :math:`t \le 1/L`            :math:`f(x_k) - f^\star \le R^2/(2tk)`
m-strongly convex       :math:`t \le 2/(m+L)`        :math:`f(x_k) - f^\star \le \gamma^k \tfrac L2 R^2`,
                                                     :math:`\gamma = 1 - 2tmL/(m+L)`
bounded below           :math:`t \le 1/L`            :math:`\min_{i\le k}\|\nabla f(x_i)\| \le
                                                     \sqrt{2(f(x_0) - f^\star)/(t(k+1))}`
======================  ===========================  =====================================================

The best t of the second line is 2/(m+L), where :math:`\gamma = ((L-m)/(L+m))^2`. Steps that vary but
satisfy the descent inequality (a line search) obey the first line with :math:`\sum t_i` for tk.
Subgradient descent and FISTA have their own lines: :func:`subgradient_rate`, :func:`accelerated_rate`.

:func:`rate_claim` puts a trace beside its theorem: it holds if and only if no step exceeds the bound. Steps
longer than the theorem allows leave it undecided.

References
----------
Y. Nesterov. Introductory Lectures on Convex Optimization, theorems 2.1.14 and 2.1.15. Springer, 2004.

Examples
--------
>>> round(contraction(2 / 11, smoothness=10, strong_convexity=1), 5)  # eigenvalues 1, 3, 10
0.66942
>>> convex_rate([1, 10, 100], step=0.1, distance=2.0).tolist()
[20.0, 2.0, 0.2]
>>> complexity("convex", 1e-3, step=0.1, distance=2.0)
20000
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..certificate import Claim, Kind
from ..iterate import Trace

__all__ = [
    "ComplexityRow",
    "Theorem",
    "accelerated_rate",
    "complexity",
    "complexity_table",
    "contraction",
    "convex_rate",
    "nonconvex_rate",
    "rate_bounds",
    "rate_claim",
    "strongly_convex_rate",
    "subgradient_rate",
]

Floats: TypeAlias = NDArray[np.float64]
Theorem: TypeAlias = Literal[
    "convex", "strongly convex", "non-convex", "subgradient", "accelerated"
]

_SOURCES: dict[str, str] = {
    "convex": "OPT-14",
    "strongly convex": "OPT-15",
    "non-convex": "OPT-16",
    "subgradient": "OPT-11",
    "accelerated": "Beck & Teboulle 2009",
}
_EPS = float(np.finfo(np.float64).eps)


def convex_rate(k: ArrayLike, *, step: ArrayLike, distance: float) -> Floats:
    r"""OPT-14, convex and L-smooth, :math:`t \le 1/L`: bound on :math:`f(x_k) - f^\star`.

    ``step`` is the constant step, or the mean of the first k steps of a line search (one mean for each k).
    """
    return np.asarray(distance**2 / (2.0 * np.asarray(step) * np.asarray(k, dtype=np.float64)))


def contraction(step: float, *, smoothness: float, strong_convexity: float) -> float:
    r""":math:`\gamma = 1 - 2tmL/(m+L)`, the factor of OPT-15; 0 where the formula is negative."""
    L, m = smoothness, strong_convexity
    return max(0.0, 1.0 - 2.0 * step * m * L / (m + L))


def strongly_convex_rate(
    k: ArrayLike, *, step: float, smoothness: float, strong_convexity: float, distance: float
) -> Floats:
    r"""OPT-15, m-strongly convex and L-smooth, :math:`t \le 2/(m+L)`: bound on :math:`f(x_k) - f^\star`."""
    gamma = contraction(step, smoothness=smoothness, strong_convexity=strong_convexity)
    with np.errstate(under="ignore"):
        return np.asarray(gamma ** np.asarray(k, dtype=np.float64) * (smoothness / 2) * distance**2)


def nonconvex_rate(k: ArrayLike, *, step: ArrayLike, gap: float) -> Floats:
    r"""OPT-16, L-smooth, :math:`t \le 1/L`: bound on :math:`\min_{i\le k}\|\nabla f(x_i)\|`.

    ``gap`` is f(x0) − f*, or f(x0) minus any lower bound of f.
    """
    return np.sqrt(2.0 * gap / (np.asarray(step) * (np.asarray(k, dtype=np.float64) + 1.0)))


def subgradient_rate(steps: ArrayLike, *, distance: float, lipschitz: float) -> Floats:
    r"""OPT-11, convex and G-Lipschitz: bound on the best gap after each of the ``steps``."""
    eta = np.asarray(steps, dtype=np.float64)
    return (distance**2 + lipschitz**2 * np.cumsum(eta**2)) / (2.0 * np.cumsum(eta))


def accelerated_rate(k: ArrayLike, *, step: ArrayLike, distance: float) -> Floats:
    r"""FISTA without restart, :math:`t \le 1/L`: bound on :math:`F(x_k) - F^\star`."""
    return np.asarray(
        2.0 * distance**2 / (np.asarray(step) * (np.asarray(k, dtype=np.float64) + 1.0) ** 2)
    )


# ------------------------------------------------------------------ a trace beside its theorem


def rate_bounds(
    theorem: Theorem,
    trace: Trace,
    *,
    step: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    distance: float | None = None,
    start_gap: float | None = None,
    lipschitz: float | None = None,
) -> Floats:
    """What ``theorem`` promises at each recorded iteration of ``trace``.

    Parameters
    ----------
    theorem : {"convex", "strongly convex", "non-convex", "subgradient", "accelerated"}
    trace : Trace
        Of a run of :func:`surefit.iterate.run`.
    step : float, optional
        The constant step; by default the steps of the trace (of a line search or a schedule).
    smoothness, strong_convexity, lipschitz : float, optional
        The constants L, m and G, as far as the theorem needs them.
    distance : float, optional
        R, the distance from the start to a minimiser.
    start_gap : float, optional
        f(x0) − f*, for the non-convex theorem.
    """
    k = np.asarray(trace.iterations, dtype=np.float64)
    taken = np.asarray(trace.steps, dtype=np.float64)
    if theorem == "subgradient":
        return subgradient_rate(
            taken,
            distance=_need("distance", distance, theorem),
            lipschitz=_need("lipschitz", lipschitz, theorem),
        )
    constant = step is not None or len(taken) == 0 or bool((taken == taken[0]).all())
    if step is None and constant and len(taken):
        step = float(taken[0])
    mean = np.asarray(step) if constant else np.cumsum(taken) / k
    if theorem == "convex":
        return convex_rate(k, step=mean, distance=_need("distance", distance, theorem))
    if theorem == "non-convex":
        gap = _need("start_gap", start_gap, theorem)
        # Of a line search only the k steps taken so far are known, not the (k+1)-th.
        return nonconvex_rate(k if constant else k - 1, step=mean, gap=gap)
    if theorem == "accelerated":
        last = np.asarray(step) if constant else taken
        return accelerated_rate(k, step=last, distance=_need("distance", distance, theorem))
    if theorem == "strongly convex":
        if step is None:
            raise ValueError(
                "the strongly convex rate is about a constant step, but the steps of the trace vary; "
                "run with step=2/(m+L), or ask for theorem='convex'."
            )
        return strongly_convex_rate(
            k,
            step=step,
            smoothness=_need("smoothness", smoothness, theorem),
            strong_convexity=_need("strong_convexity", strong_convexity, theorem),
            distance=_need("distance", distance, theorem),
        )
    raise ValueError(f"theorem must be one of {', '.join(map(repr, _SOURCES))}, got {theorem!r}.")


def rate_claim(
    theorem: Theorem,
    trace: Trace,
    *,
    optimum: float = 0.0,
    gradient_norms: ArrayLike | None = None,
    step: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    distance: float | None = None,
    start_gap: float | None = None,
    lipschitz: float | None = None,
) -> Claim:
    r"""Check a theorem's inequality at *every* recorded step of a run.

    Parameters
    ----------
    theorem, trace, step, smoothness, strong_convexity, distance, start_gap, lipschitz
        As in :func:`rate_bounds`.
    optimum : float
        f*, the minimum that the trace's values are compared with.
    gradient_norms : array-like of shape (K + 1,), optional
        For the non-convex theorem: the gradient norms at x0, x1, ..., xK.

    Returns
    -------
    Claim
        BOUND; ``observed`` is the largest ratio of what was measured to what was promised, over the
        steps at which the measured quantity is above its own rounding error. NaN counts as exceeding. A step
        longer than the theorem allows leaves the claim undecided: nothing was promised.

    Examples
    --------
    >>> from surefit.iterate import run
    >>> from surefit.solvers import gradient_descent
    >>> f, grad = lambda x: float(5 * x @ x), lambda x: 10 * x
    >>> good = run(gradient_descent(f, grad, [1.0], 0.05), max_iter=20).trace
    >>> rate_claim("convex", good, distance=1.0, smoothness=10).status.name
    'HOLDS'
    >>> rate_claim("convex", good, distance=0.1, smoothness=10).status.name
    'FAILS'
    >>> bad = run(gradient_descent(f, grad, [1.0], 0.21), max_iter=20).trace
    >>> rate_claim("convex", bad, distance=1.0, smoothness=10).status.name
    'UNDECIDED'
    """
    bounds = rate_bounds(
        theorem,
        trace,
        step=step,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        distance=distance,
        start_gap=start_gap,
        lipschitz=lipschitz,
    )
    name = f"{theorem} rate"
    if len(bounds) == 0:
        return Claim.undecided(name, "no step was taken", Kind.BOUND, _SOURCES[theorem])
    if theorem == "non-convex":
        if gradient_norms is None:
            raise ValueError("theorem='non-convex' needs gradient_norms, those at x0, x1, ..., xK.")
        norms = np.asarray(gradient_norms, dtype=np.float64)
        if norms.shape != (len(bounds) + 1,):
            raise ValueError(
                f"gradient_norms must have one entry more than the trace ({len(bounds) + 1}: it starts "
                f"at x0), got shape {norms.shape}."
            )
        measured = np.minimum.accumulate(norms)[1:]
        rounding = 16 * _EPS * norms[0]
        what = "the smallest gradient norm"
    else:
        values = np.asarray(trace.values, dtype=np.float64)
        measured = values - optimum
        sizes = np.append(np.abs(values[np.isfinite(values)]), abs(optimum))
        rounding = 16 * _EPS * float(sizes.max())
        what = "f - f*"
    ratio = _worst_ratio(measured, bounds, rounding)
    statement = (
        f"at each of {len(bounds)} steps {what} is at most {ratio:.4g} times the {theorem} bound"
    )
    broken = _broken_premise(theorem, step, trace, smoothness, strong_convexity)
    if broken and not math.isnan(ratio):
        return Claim.undecided(name, statement + broken, Kind.BOUND, _SOURCES[theorem])
    # The powers of a contraction collect one rounding a step.
    floor = 1 + (64 + 4 * len(bounds)) * _EPS
    return Claim.check(name, statement, Kind.BOUND, ratio, 1.0, _SOURCES[theorem], floor=floor)


def _worst_ratio(measured: Floats, bounds: Floats, rounding: float) -> float:
    """The largest ratio of a measurement to its bound, with the rounding of the measurement subtracted."""
    if np.isnan(measured).any() or np.isnan(bounds).any():
        return math.nan
    above = measured > rounding
    if not above.any():
        return 0.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return float(np.max((measured[above] - rounding) / bounds[above]))


def _broken_premise(
    theorem: str, step: float | None, trace: Trace, L: float | None, m: float | None
) -> str:
    """Words for a step that the theorem does not cover; the empty string where it covers all."""
    if L is None or theorem == "subgradient":
        return ""
    limit, text = 1 / L, "1/L"
    if theorem == "strongly convex" and m is not None:
        limit, text = 2 / (m + L), "2/(m+L)"
    largest = step if step is not None else max(trace.steps)
    if largest <= limit * (1 + 4 * _EPS):
        return ""
    return (
        f"; the step {largest:.6g} exceeds {text} = {limit:.6g}, so the theorem does not promise it"
    )


def _need(name: str, value: float | None, theorem: str) -> float:
    if value is None:
        raise ValueError(f"theorem={theorem!r} needs {name}, got None.")
    return float(value)


# ------------------------------------------------------------------ how many steps (OPT-17)


def complexity(
    theorem: Theorem,
    eps: float,
    *,
    step: float = 1.0,
    distance: float = 1.0,
    smoothness: float = 1.0,
    strong_convexity: float = 0.1,
    start_gap: float = 1.0,
    lipschitz: float = 1.0,
) -> int:
    r"""The number of steps after which the theorem promises ``eps``.

    The gap for "convex", "strongly convex" and "accelerated", the gradient norm for "non-convex". For
    "subgradient" the step is the constant :math:`\epsilon/G^2`, the best choice, and the number is
    :math:`R^2G^2/\epsilon^2`; it is also that of stochastic convex descent, in expectation.

    Examples
    --------
    >>> [complexity("non-convex", eps) for eps in (0.1, 0.01)]
    [199, 19999]
    """
    if not eps > 0:
        raise ValueError(f"eps must be positive, got {eps!r}; for example 1e-3.")
    if theorem == "convex":
        steps = distance**2 / (2 * step * eps)
    elif theorem == "strongly convex":
        gamma = contraction(step, smoothness=smoothness, strong_convexity=strong_convexity)
        start = smoothness * distance**2 / 2
        steps = math.log(start / eps) / -math.log(gamma) if 0 < gamma < 1 and start > eps else 1.0
    elif theorem == "non-convex":
        steps = 2 * start_gap / (step * eps**2) - 1
    elif theorem == "subgradient":
        steps = (distance * lipschitz / eps) ** 2
    elif theorem == "accelerated":
        steps = math.sqrt(2 * distance**2 / (step * eps)) - 1
    else:
        raise ValueError(
            f"theorem must be one of {', '.join(map(repr, _SOURCES))}, got {theorem!r}."
        )
    return max(1, math.ceil(steps * (1 - 8 * _EPS)))  # a whole number, computed, stays itself


class ComplexityRow(NamedTuple):
    """One line of the complexity table."""

    setting: str
    step: str
    iterations: str
    work: str
    iterations_at: float
    work_at: float


def complexity_table(eps: float = 1e-3, n: int = 1000) -> list[ComplexityRow]:
    r"""The table of OPT-17: orders, and their values at accuracy ``eps`` with ``n`` terms.

    Work counts gradients of single terms: a step of gradient descent costs n, one of SGD costs 1. SGD
    does less work than gradient descent on a convex function as soon as :math:`n > 1/\epsilon`.

    Examples
    --------
    >>> for row in complexity_table():
    ...     print(f"{row.setting:<20}{row.step:<14}{row.iterations:<10}{row.work}")
    non-convex          t <= 1/L      1/ε²      n/ε²
    convex              t <= 1/L      1/ε       n/ε
    strongly convex     t <= 2/(m+L)  log(1/ε)  n log(1/ε)
    stochastic convex   c/√k          1/ε²      1/ε²
    """
    log = math.log(1 / eps)
    return [
        ComplexityRow("non-convex", "t <= 1/L", "1/ε²", "n/ε²", eps**-2, n * eps**-2),
        ComplexityRow("convex", "t <= 1/L", "1/ε", "n/ε", 1 / eps, n / eps),
        ComplexityRow("strongly convex", "t <= 2/(m+L)", "log(1/ε)", "n log(1/ε)", log, n * log),
        ComplexityRow("stochastic convex", "c/√k", "1/ε²", "1/ε²", eps**-2, eps**-2),
    ]
