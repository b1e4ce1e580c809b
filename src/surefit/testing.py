r"""The laws that losses, penalties, projections and certified estimators obey, as public functions.

Write a loss of your own, run :func:`check_loss` on it: gradient, curvature, conjugate, prox and every
stated flag are tested numerically, none is taken on trust. Each ``check_*`` function raises an
``AssertionError`` that names the law, the object and the numbers; it returns when all laws hold.
:func:`check_certificate` asks the converse of a certificate as well: that it *fails* when the model is
nudged and when the data are exchanged.

Examples
--------
>>> from surefit.losses import Huber
>>> from surefit.penalties import L1
>>> check_loss(Huber(1.0))
>>> check_penalty(L1(0.3))
>>> is_convex_on_segments(lambda t: t**2, [-1.0, 0.3, 2.0])
True
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from sklearn.base import clone

from .certificate import Certificate, Status, verify
from .losses import Loss, MarginLoss, RegressionLoss, Softmax, risk_minimizer, slopes_at_zero
from .penalties import Penalty

__all__ = [
    "check_certificate",
    "check_gradient",
    "check_loss",
    "check_penalty",
    "check_projection",
    "is_convex_on_segments",
]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_STEP = 1e-6  # of differences: rounding costs eps |f| / step, the next Taylor term step * |f''|
_SLACK = 1e-10  # relative, for sums of a few terms: 1e5 times eps, far below any real violation


# ---------------------------------------------------------------------------- functions


def is_convex_on_segments(
    f: Callable[[Any], Any],
    points: ArrayLike,
    *,
    strict: bool = False,
    segments: int = 400,
    rtol: float = _SLACK,
    atol: float = 1e-12,
    rng: np.random.Generator | None = None,
) -> bool:
    """Whether f(t u + (1-t) v) <= t f(u) + (1-t) f(v) on random segments between the points.

    A ``False`` is a counter-example; a ``True`` is the failure to find one.

    Parameters
    ----------
    f : callable
        From a row of ``points`` (a float when ``points`` is one-dimensional) to a number.
    points : array of shape (m,) or (m, d)
        The ends of the segments.
    strict : bool
        Ask for strict inequality, beyond rounding, whenever the ends differ.
    segments : int
        How many random triples (u, v, t) are tried.
    rtol, atol : float
        What rounding may do to the inequality, relative to the three values and in absolute terms.
    rng : numpy Generator, optional
        ``default_rng(0)`` when omitted.

    Examples
    --------
    >>> is_convex_on_segments(abs, [-1.0, 0.5, 3.0])
    True
    >>> is_convex_on_segments(abs, [-1.0, 0.5, 3.0], strict=True)
    False
    >>> is_convex_on_segments(lambda w: w[0] * w[1], [[0.0, 1.0], [1.0, 0.0]])
    False
    """
    rng = np.random.default_rng(0) if rng is None else rng
    ends = np.asarray(points, dtype=np.float64)
    for _ in range(segments):
        u, v = ends[rng.integers(len(ends))], ends[rng.integers(len(ends))]
        if np.array_equal(u, v):
            continue
        t = rng.uniform(0.1, 0.9)  # away from the ends, where every function meets its chord
        f_u, f_v, f_m = float(f(u)), float(f(v)), float(f(t * u + (1.0 - t) * v))
        chord = t * f_u + (1.0 - t) * f_v
        slack = rtol * (abs(f_u) + abs(f_v) + abs(f_m)) + atol
        if not f_m <= chord + slack or (strict and not f_m < chord - slack):
            return False
    return True


def check_gradient(
    f: Callable[[Any], Any],
    grad: Callable[[Any], Any],
    x: ArrayLike,
    *,
    step: float = _STEP,
    rtol: float = 1e-6,
) -> None:
    """Compare ``grad(x)`` with central differences of f in every coordinate.

    The tolerance is ``rtol * (1 + |grad|)`` plus what rounding does to the difference,
    ``4 eps |f| / step``.

    Examples
    --------
    >>> check_gradient(lambda w: float(w @ w), lambda w: 2 * w, [1.0, -2.0])
    >>> check_gradient(lambda w: float(w @ w), lambda w: w, [1.0, -2.0])
    Traceback (most recent call last):
    ...
    AssertionError: gradient equals differences: ...
    """
    at = np.asarray(x, dtype=np.float64)
    stated = np.asarray(grad(at), dtype=np.float64)
    measured = np.empty_like(at)
    for i in np.ndindex(at.shape):
        move = np.zeros_like(at)
        move[i] = step
        measured[i] = (float(f(at + move)) - float(f(at - move))) / (2.0 * step)
    rounding = 4.0 * _EPS * abs(float(f(at))) / step
    bound = rtol * (1.0 + np.abs(stated)) + rounding
    _at_most(np.abs(measured - stated), bound, "gradient equals differences", f)


# ---------------------------------------------------------------------------- losses


def check_loss(
    loss: Loss,
    rng: np.random.Generator | None = None,
    *,
    draw: Callable[[np.random.Generator, int], tuple[Array, Array]] | None = None,
) -> None:
    """All laws of a loss, its stated flags included.

    Gradient and curvature against differences; the subgradient inequality at kinks; the Fenchel-Young
    inequality, and equality at theta = grad; the conjugate against a numerical maximisation; prox
    optimality; ``convex``, ``smoothness``, ``lipschitz``, ``symmetric``, ``robust``, ``calibrated``;
    ``balance``.

    Parameters
    ----------
    loss : Loss
    rng : numpy Generator, optional
        ``default_rng(0)`` when omitted.
    draw : callable, optional
        ``draw(rng, n)`` returns n predictions and targets, for a loss whose targets are neither real
        numbers (:class:`RegressionLoss`), signs (:class:`MarginLoss`) nor class codes
        (:class:`Softmax`). The predictions should spread over the region where the loss bends.

    Raises
    ------
    AssertionError
        Naming the law, the loss and the numbers.

    Examples
    --------
    >>> from surefit.losses import Squared
    >>> class Wrong(Squared):
    ...     def conjugate(self, theta, y):
    ...         return theta**2 + theta * y
    >>> check_loss(Wrong())
    Traceback (most recent call last):
    ...
    AssertionError: Fenchel-Young equality at theta = grad: Wrong(): ...
    """
    rng = np.random.default_rng(0) if rng is None else rng
    z, y = (draw or _drawer(loss))(rng, 400)
    kinks = _breaks(lambda t, of: loss.grad(t, of), loss, z, y)
    jumps = _breaks(lambda t, of: loss.pointwise(t, of), loss, z, y)
    _check_derivatives(loss, z, y, rng)
    _check_shape(loss, z, y, kinks, rng)
    _check_fenchel(loss, z, y, kinks, rng)
    _check_conjugate(loss, z, y, rng)
    _check_prox(loss, z, y, rng)
    _check_slopes(loss, z, y, kinks, jumps, rng)
    if loss.convex:
        _check_balance(loss, z, y, rng)
    if isinstance(loss, RegressionLoss):
        _check_influence(loss)
    if isinstance(loss, MarginLoss):
        _check_calibration(loss)


def _drawer(loss: Loss) -> Callable[[np.random.Generator, int], tuple[Array, Array]]:
    """Predictions that spread over the bends of the loss and far beyond, with their targets."""

    def spread(rng: np.random.Generator, n: int) -> Array:
        near = rng.normal(scale=2.0, size=n)
        far = rng.choice([-1.0, 1.0], size=n) * 10.0 ** rng.uniform(-3.0, 4.0, size=n)
        return np.where(np.arange(n) % 2 == 0, near, far)

    def regression(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        y = rng.normal(scale=3.0, size=n)
        return y + spread(rng, n), y

    def margin(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return spread(rng, n), rng.choice([-1.0, 1.0], size=n)

    def classes(rng: np.random.Generator, n: int, k: int = 3) -> tuple[Array, Array]:
        z = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-1.0, 1.5, size=(n, 1))
        pair = np.argsort(rng.random((n, k)), axis=1)  # a fifth of the rows: two classes compete
        tied = np.where(pair < 2, rng.normal(scale=0.1, size=(n, k)), -40.0)
        codes = rng.integers(k, size=n).astype(np.float64)
        return np.where(np.arange(n)[:, None] % 5 == 0, tied, z), codes

    if isinstance(loss, RegressionLoss):
        return regression
    if isinstance(loss, MarginLoss):
        return margin
    if isinstance(loss, Softmax):
        return classes
    raise TypeError(
        f"loss must be a RegressionLoss, a MarginLoss or Softmax, got {type(loss).__name__}; "
        "for another kind pass draw=..., which returns predictions and targets."
    )


def _breaks(f: Callable[[Array, Array], Array], loss: Loss, z: Array, y: Array) -> Array:
    """Pairs (t, y) with t on either side of a jump of ``f``, found by bisection; shape (m, 2)."""
    if z.ndim > 1:
        return np.empty((0, 2))
    order = np.argsort(z)
    a, b = z[order][:-1], z[order][1:]
    found = []
    for target in np.unique(y)[:: max(1, len(np.unique(y)) // 3)]:
        of = np.full_like(a, target)
        left, right = a.copy(), b.copy()
        for _ in range(80):  # to neighbouring floats, following the half with the larger change
            middle = 0.5 * (left + right)
            f_left, f_middle, f_right = f(left, of), f(middle, of), f(right, of)
            first = np.abs(f_middle - f_left) >= np.abs(f_right - f_middle)
            left, right = np.where(first, left, middle), np.where(first, middle, right)
        size = np.abs(f(right, of) - f(left, of))
        ends = np.concatenate([left, right])[np.tile(size > 1e-6 * (1 + np.abs(f(left, of))), 2)]
        found.append(np.column_stack([ends, np.full_like(ends, target)]))
    return np.concatenate(found)


def _check_derivatives(loss: Loss, z: Array, y: Array, rng: np.random.Generator) -> None:
    """Differences of the loss against grad, differences of grad against hess."""
    d = _directions(z, rng)
    low, high = z - _STEP * d, z + _STEP * d
    value, slope, bend = loss.pointwise(z, y), _dot(loss.grad(z, y), d), _form(loss, z, y, d)
    slope_low, slope_high = _dot(loss.grad(low, y), d), _dot(loss.grad(high, y), d)
    # A difference quotient is a mean of the derivative over the interval: it differs from its value in
    # the middle by no more than the derivative varies there. (At a kink that is the whole jump.)
    quotient = (loss.pointwise(high, y) - loss.pointwise(low, y)) / (2.0 * _STEP)
    varies = np.abs(slope_high - slope) + np.abs(slope - slope_low)
    rounding = 8.0 * _EPS * (np.abs(value) + _size(z) * (1.0 + np.abs(slope))) / _STEP + 1e-9
    _at_most(np.abs(quotient - slope), varies + rounding, "gradient equals differences", loss, z=z)
    quotient = (slope_high - slope_low) / (2.0 * _STEP)
    bend_low, bend_high = _form(loss, low, y, d), _form(loss, high, y, d)
    varies = np.abs(bend_high - bend) + np.abs(bend - bend_low)
    rounding = 8.0 * _EPS * (np.abs(slope) + _size(z) * np.abs(bend) + 1.0) / _STEP + 1e-9
    bound = varies + rounding
    _at_most(np.abs(quotient - bend), bound, "curvature equals differences of grad", loss, z=z)


def _check_shape(loss: Loss, z: Array, y: Array, kinks: Array, rng: np.random.Generator) -> None:
    """The convex flag by random segments; for a convex loss, grad is a subgradient, also at kinks."""
    convex = all(is_convex_on_segments(_section(loss, t), z, rng=rng) for t in y[:4])
    law = "convex" if loss.convex else "a loss that is not convex has a segment that shows it"
    _require(convex == loss.convex, law, loss, f"stated convex={loss.convex}, segments: {convex}")
    if not loss.convex:
        return
    for t, target in _with_kinks(z, y, kinks):
        u = t[rng.permutation(len(t))]
        here, slope = loss.pointwise(t, target), loss.grad(t, target)
        line = here + _dot(slope, u - t)
        there = loss.pointwise(u, target)
        slack = _SLACK * (np.abs(here) + np.abs(there) + np.abs(line)) + 1e-12
        _at_most(line - there, slack, "subgradient inequality", loss, at=t, to=u)


def _check_fenchel(loss: Loss, z: Array, y: Array, kinks: Array, rng: np.random.Generator) -> None:
    """theta z <= l(z) + l*(theta) everywhere, with equality at theta = grad for a convex loss."""
    for t, target in _with_kinks(z, y, kinks):
        slope, value = loss.grad(t, target), loss.pointwise(t, target)
        if loss.convex:
            total, product = value + loss.conjugate(slope, target), _dot(slope, t)
            slack = _SLACK * (np.abs(value) + np.abs(total) + np.abs(product)) + 1e-12
            law = "Fenchel-Young equality at theta = grad"
            _at_most(np.abs(total - product), slack, law, loss, z=t)
    others = loss.grad(z, y)[rng.permutation(len(z))], rng.normal(scale=2.0, size=z.shape)
    value = loss.pointwise(z, y)
    for theta in others:
        total, product = value + loss.conjugate(theta, y), _dot(theta, z)
        # A theta outside the domain by rounding (1e-12) may be read as the nearest point inside.
        slack = _SLACK * (np.abs(value) + np.abs(product)) + 2e-12 * (1.0 + _size(z))
        _at_most(product - total, slack, "Fenchel-Young inequality", loss, z=z, theta=theta)


def _check_conjugate(loss: Loss, z: Array, y: Array, rng: np.random.Generator) -> None:
    """The conjugate is the maximum of theta t - l(t): attained where finite, unbounded where not."""
    law = "conjugate is the maximum of theta t - l(t, y)"
    if z.ndim > 1:
        for t, target in zip(z[:6], y[:6]):
            one, theta = np.array([target]), loss.grad(t[None], np.array([target]))[0]
            best = minimize(_negated(loss, theta, one), np.zeros_like(t), tol=1e-10)
            stated = loss.conjugate(theta[None], one)[0]
            _at_most(np.abs(stated + best.fun), 1e-6 * (1 + abs(stated)), law, loss, theta=theta)
        return
    z, y = z[::2][:60], y[::2][:60]
    for theta in (loss.grad(z, y), np.zeros_like(z), rng.normal(scale=2.0, size=len(z))):
        stated = loss.conjugate(theta, y)
        inside = np.isfinite(stated)
        reached = _maximum(_tilted(loss, theta, y), len(z))
        slack = 1e-7 * (1.0 + np.abs(np.where(inside, stated, 0.0)))
        _at_most(np.abs(reached - stated)[inside], slack[inside], law, loss, theta=theta[inside])
        ends = [theta * t - loss.pointwise(np.full_like(z, t), y) for t in (-1e12, 1e12)]
        grown = np.maximum(*ends)[~inside]
        _at_most(1e3 - grown, 0.0, "conjugate is infinite only where theta t - l grows", loss,
                 theta=theta[~inside])  # fmt: skip


def _section(loss: Loss, target: float) -> Callable[[Array], float]:
    """z -> l(z, target) for a single sample."""
    return lambda t: float(loss.pointwise(t[None], np.array([target]))[0])


def _tilted(loss: Loss, theta: Array, y: Array) -> Callable[[Array], Array]:
    """t -> theta t - l(t, y), whose maximum is the conjugate."""
    return lambda t: _dot(theta, t) - loss.pointwise(t, y)


def _negated(loss: Loss, theta: Array, target: Array) -> Callable[[Array], float]:
    """The same for one sample, its sign changed: for scipy's minimiser."""
    return lambda t: -float(_tilted(loss, theta[None], target)(t[None])[0])


def _maximum(f: Callable[[Array], Array], n: int) -> Array:
    """max over t in [-1000, 1000] of each of n functions: a grid, then golden section in its best cell."""
    grid = np.sinh(np.linspace(-np.arcsinh(1e3), np.arcsinh(1e3), 401))
    values = np.array([f(np.full(n, t)) for t in grid])
    best = values.argmax(axis=0)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        keep = f(left) >= f(right)
        low, high = np.where(keep, low, left), np.where(keep, right, high)
    return np.maximum(f(0.5 * (low + high)), values.max(axis=0))


def _check_prox(loss: Loss, z: Array, y: Array, rng: np.random.Generator) -> None:
    """prox beats random points; for a convex loss (z - prox) / step is a subgradient there."""
    z, y = z[::2], y[::2]  # the moderate half: far out, prox - z is lost in the rounding of z
    for step in (0.1, 1.0, 10.0):
        try:
            t = loss.prox(z, y, step)
        except TypeError:  # "has no prox", said by a loss whose minimum is not attained
            _require(not loss.convex, "a convex loss has a prox", loss, "prox raised TypeError")
            return
        theta = (z - t) / step
        value = loss.pointwise(t, y)
        mine = value + _dot(z - t, z - t) / (2.0 * step)
        for scale in (1e-3, 0.1, 1.0, 10.0):
            u = t + rng.normal(scale=scale, size=t.shape)
            there = loss.pointwise(u, y)
            theirs = there + _dot(z - u, z - u) / (2.0 * step)
            _at_most(mine - theirs, _SLACK * (1 + theirs), "prox is a minimiser", loss, z=z, t=t)
            if loss.convex:
                line = value + _dot(theta, u - t)
                slack = 1e-9 * (1.0 + np.abs(there) + np.abs(line))
                law = "prox optimality: (z - prox)/step is a subgradient"
                _at_most(line - there, slack, law, loss, z=z, t=t)


def _check_slopes(
    loss: Loss, z: Array, y: Array, kinks: Array, jumps: Array, rng: np.random.Generator
) -> None:
    """``lipschitz`` and ``smoothness``: never exceeded, attained to 5 %, infinite only when needed."""
    d = _directions(z, rng)
    width = 1e-4 * np.maximum(1e-2, np.minimum(_size(z), 1.0))
    far = (width * d.T).T
    slope_here, slope_there = loss.grad(z, y), loss.grad(z + far, y)
    steepest = float(np.sqrt(_dot(slope_here, slope_here)).max())
    change = slope_there - slope_here
    bends = np.sqrt(_dot(change, change)) / width
    noise = 8.0 * _EPS * (1.0 + _size(z)) * (1.0 + steepest) / width
    sharpest = float((bends - np.where(noise < 1e-2 * bends, 0.0, bends)).max())
    _check_constant(loss, "lipschitz", steepest, len(jumps) > 0)
    _check_constant(loss, "smoothness", sharpest, len(kinks) > 0 or len(jumps) > 0)


def _check_constant(loss: Loss, name: str, largest: float, broken: bool) -> None:
    """One stated constant against the largest measured value; ``broken`` when a jump was seen."""
    stated = float(getattr(loss, name))
    if math.isinf(stated):  # an outright jump, or a slope that keeps growing with the prediction
        seen = broken or largest > 1e3
        _require(seen, f"{name} is infinite", loss, f"the largest measured is only {largest:.6g}")
        return
    _require(not broken, name, loss, f"stated {stated:.6g}, but there is a jump")
    exceeded = largest <= stated * (1.0 + 1e-3 if name == "smoothness" else 1.0 + 1e-12)
    _require(exceeded, f"{name} is not exceeded", loss, f"stated {stated:.6g}, seen {largest:.6g}")
    attained = largest >= 0.95 * stated
    _require(attained, f"{name} is attained", loss, f"stated {stated:.6g}, seen {largest:.6g}")


def _check_balance(loss: Loss, z: Array, y: Array, rng: np.random.Generator) -> None:
    """``balance``: sums to 0 to rounding, stays in the domain, moves little what is nearly balanced."""
    weights = rng.uniform(0.0, 2.0, size=len(z)) * (rng.random(len(z)) < 0.9)
    theta = loss.grad(z, y)
    _check_balanced(loss, theta, y, weights)
    if z.ndim == 1:  # weights under which theta is balanced already
        up, down = weights @ np.maximum(theta, 0.0), weights @ np.maximum(-theta, 0.0)
        if up == 0.0 or down == 0.0:
            return  # slopes of one sign only: 0 is the single balanced point
        weights = np.where(theta > 0.0, weights * (down / up), weights)
    else:  # each sample once with every label, weighted by its probability: sum_k p_k (p - e_k) = 0
        p, k = loss.hess(z, y), z.shape[1]
        theta, weights = np.repeat(p, k, axis=0), p.ravel()
        y = np.tile(np.arange(float(k)), len(z))
        theta[np.arange(len(y)), y.astype(np.intp)] -= 1.0
    nearly = (theta.T * (1.0 - 1e-6 * rng.random(len(theta)))).T
    moved = np.abs(_check_balanced(loss, nearly, y, weights) - nearly)[weights > 1e-3].max()
    allowed = 1e-3 * np.abs(theta).max()  # the imbalance is 1e-6 of the mass
    _at_most(moved, allowed, "balance moves little what is nearly balanced", loss)


def _check_balanced(loss: Loss, theta: Array, y: Array, weights: Array) -> Array:
    result = loss.balance(theta, y, weights)
    bound = 4.0 * _EPS * math.log2(len(theta)) * (weights @ np.abs(theta))
    _at_most(np.abs(weights @ result), bound, "balance: sum(weights * theta) = 0", loss)
    finite = bool(np.isfinite(loss.conjugate(result, y)[weights > 0]).all())
    _require(finite, "balance stays in the domain", loss, "the conjugate became infinite")
    return result


def _check_influence(loss: RegressionLoss) -> None:
    """``symmetric``: equal costs on both sides. ``robust``: the slope no longer grows far out."""
    e = np.logspace(-3, 6, 50)
    up, down = loss.pointwise(e, np.zeros(50)), loss.pointwise(-e, np.zeros(50))
    symmetric = bool(np.allclose(up, down, rtol=_SLACK, atol=0.0))
    detail = f"stated symmetric={loss.symmetric}, measured {symmetric}"
    _require(symmetric == loss.symmetric, "symmetric", loss, detail)
    far = np.array([[1e9, -1e9], [1e12, -1e12]])
    near_slope, far_slope = (np.abs(loss.grad(t, np.zeros(2))).max() for t in far)
    robust = bool(far_slope <= 2.0 * near_slope)
    detail = f"stated robust={loss.robust}, slopes {near_slope:.3g} at 1e9, {far_slope:.3g} at 1e12"
    _require(robust == loss.robust, "robust (bounded influence)", loss, detail)


def _check_calibration(loss: MarginLoss) -> None:
    """``calibrated``: predicting with the wrong sign costs more than the best prediction (CAL-1)."""
    grid = np.concatenate([np.linspace(-20.0, 20.0, 4001), [-1e-9, 1e-9]])
    up, down = loss.pointwise(grid, np.ones_like(grid)), loss.pointwise(grid, -np.ones_like(grid))
    gains, signs = [], []
    for p in (0.05, 0.2, 0.35, 0.45, 0.55, 0.65, 0.8, 0.95):
        risk = p * up + (1.0 - p) * down
        gains.append(risk[grid * (2.0 * p - 1.0) <= 0.0].min() - risk.min())
        if loss.convex:
            minimizer = risk_minimizer(loss, p)
            signs.append(abs(minimizer) > 1e-4 and (minimizer > 0) == (p > 0.5))
    measured = min(gains) > 1e-6
    detail = f"stated {loss.calibrated}, smallest cost of the wrong sign {min(gains):.3g}"
    _require(measured == loss.calibrated, "calibrated", loss, detail)
    if loss.convex:
        law = "the risk minimiser has the Bayes sign iff calibrated"
        _require(all(signs) == loss.calibrated, law, loss, f"signs agree: {signs}")
        left, right = slopes_at_zero(loss)
        bartlett = abs(left - right) < 1e-4 and right < 0.0
        detail = f"stated {loss.calibrated}, slopes at 0: {left:.6g} and {right:.6g}"
        _require(bartlett == loss.calibrated, "Bartlett's criterion", loss, detail)


# ---------------------------------------------------------------------------- penalties


def check_penalty(penalty: Penalty, rng: np.random.Generator | None = None) -> None:
    """All laws of a penalty: prox, conjugate, ``feasible_scale``, ``strong_convexity``.

    Prox optimality; Moreau's identity, in the form Omega(p) + Omega*(v) = <p, v> for p = prox(w) and
    v = (w - p) / step; the Fenchel-Young inequality; the conjugate against a numerical maximisation;
    ``feasible_scale`` finite and maximal; ``strong_convexity`` accepted and no larger constant;
    ``subdiff_distance`` zero at a minimiser and only there.

    Raises
    ------
    AssertionError
        Naming the law, the penalty and the numbers.

    Examples
    --------
    >>> from surefit.penalties import L2
    >>> class Wrong(L2):
    ...     def prox(self, w, step):
    ...         return w / (1.0 + 2.0 * step)
    >>> check_penalty(Wrong(3.0))
    Traceback (most recent call last):
    ...
    AssertionError: prox is a minimiser: Wrong(...
    """
    rng = np.random.default_rng(0) if rng is None else rng
    for shape in ((1,), (6,), (4, 3)):
        for scale in (0.1, 1.0, 10.0):
            w = rng.normal(scale=scale, size=shape)
            for step in (0.1, 1.0, 7.0):
                _check_penalty_prox(penalty, w, step, rng)
            _check_penalty_conjugate(penalty, w, rng)
            _check_subdiff(penalty, w, rng)
    _check_strong_convexity(penalty, rng)


def _check_penalty_prox(penalty: Penalty, w: Array, step: float, rng: np.random.Generator) -> None:
    p = penalty.prox(w, step)
    mine = penalty.value(p) + float(np.vdot(w - p, w - p)) / (2.0 * step)
    _require(math.isfinite(mine), "prox is feasible", penalty, f"value {penalty.value(p)} at {p}")
    for scale in (1e-3, 0.1, 1.0, 10.0):
        near = p + rng.normal(scale=scale, size=p.shape)
        for u in (near, penalty.prox(near, step)):  # the second is feasible for a constraint
            theirs = penalty.value(u) + float(np.vdot(w - u, w - u)) / (2.0 * step)
            slack = _SLACK * (1.0 + abs(mine))
            _at_most(mine - theirs, slack, "prox is a minimiser", penalty, w=w, prox=p, beaten_by=u)
    v = (w - p) / step
    scale = penalty.feasible_scale(v)  # 1 but for the rounding of the quotient
    _at_most(1.0 - scale, 1e-9, "Moreau: (w - prox)/step is dual feasible", penalty, w=w)
    total, product = penalty.value(p) + penalty.conjugate(scale * v), float(np.vdot(p, v))
    slack = 1e-9 * (1.0 + abs(total))
    _at_most(abs(total - product), slack, "Moreau identity", penalty, w=w, prox=p)


def _check_penalty_conjugate(penalty: Penalty, w: Array, rng: np.random.Generator) -> None:
    v = rng.normal(scale=float(np.abs(w).max()), size=w.shape)
    t = penalty.feasible_scale(v)
    _require(0.0 <= t <= 1.0, "feasible_scale lies in [0, 1]", penalty, f"got {t} at {v}")
    stated = penalty.conjugate(t * v)
    _require(math.isfinite(stated), "feasible_scale is feasible", penalty, f"scale {t} at {v}")
    beyond = max(t * (1.0 + 1e-6), 1e-6)
    maximal = t == 1.0 or math.isinf(penalty.conjugate(beyond * v))
    _require(maximal, "feasible_scale is maximal", penalty, f"{t}, but {beyond} is feasible too")
    u = penalty.prox(w, 1.0)
    for step in 4.0 ** np.arange(30):  # proximal-point ascent on <t v, u> - Omega(u)
        reached = float(np.vdot(t * v, u)) - penalty.value(u)
        slack = _SLACK * (1.0 + abs(stated))
        _at_most(reached - stated, slack, "Fenchel-Young inequality", penalty, w=u, v=t * v)
        if stated - reached <= 1e-7 * (1.0 + abs(stated)):
            return
        u = penalty.prox(u + step * t * v, step)
    law = "conjugate is the maximum of <v, w> - Omega(w)"
    _at_most(stated - reached, 1e-7 * (1.0 + abs(stated)), law, penalty, v=t * v)


def _check_subdiff(penalty: Penalty, w: Array, rng: np.random.Generator) -> None:
    """At the minimiser of (3/2)||u - w||^2 + Omega(u) the distance is 0; next to it, it is not."""
    best = penalty.prox(w, 1.0 / 3.0)
    at_best = penalty.subdiff_distance(best, 3.0 * (best - w)).max()
    slack = 1e-12 * (1.0 + np.abs(w).max())
    _at_most(at_best, slack, "subdiff_distance is 0 at a minimiser", penalty, w=w)
    other = penalty.prox(best + rng.normal(scale=1e-2, size=w.shape), 1e-9)
    moved = float(np.abs(other - best).max())
    if moved > 1e-5:
        distance = float(penalty.subdiff_distance(other, 3.0 * (other - w)).max())
        law = "subdiff_distance is positive away from the minimiser"
        _at_most(1e-3 * moved, distance, law, penalty, w=w, at=other)


def _check_strong_convexity(penalty: Penalty, rng: np.random.Generator) -> None:
    """Omega - (m/2) ||.||^2 is convex for the stated m, and for no larger one (CVX-7)."""
    points = np.array([penalty.prox(rng.normal(size=3), 1e-3) for _ in range(12)])
    m = penalty.strong_convexity
    for stated, excess in ((True, 0.0), (False, 0.01 * (1.0 + m))):
        lowered = _lowered(penalty, m + excess)
        found = is_convex_on_segments(lowered, points, rtol=1e-12, atol=1e-10, rng=rng)
        detail = f"Omega - ({m + excess:.6g}/2)||w||^2 is {'' if found else 'not '}convex"
        _require(found is stated, "strong_convexity is honest", penalty, detail)


def _lowered(penalty: Penalty, m: float) -> Callable[[Array], float]:
    return lambda w: penalty.value(w) - 0.5 * m * float(np.vdot(w, w))


# ---------------------------------------------------------------------------- projections


def check_projection(
    project: Callable[[Array], Array],
    contains: Callable[[Array], bool],
    dim: int,
    rng: np.random.Generator | None = None,
) -> None:
    """The laws of the projection onto a convex set (CVX-9).

    P w lies in the set and is the nearest of its points; P P = P; <w - P w, v - P w> <= 0 for every v in
    the set; distances never grow; the set is convex.

    Parameters
    ----------
    project : callable
        From a vector to the nearest point of the set.
    contains : callable
        Whether a vector lies in the set, to rounding.
    dim : int
        Length of the vectors.
    rng : numpy Generator, optional
        ``default_rng(0)`` when omitted.

    Examples
    --------
    >>> from surefit.projections import project_ball
    >>> check_projection(project_ball, lambda v: bool(v @ v <= 1 + 1e-12), dim=3)
    """
    rng = np.random.default_rng(0) if rng is None else rng
    outside = [rng.normal(scale=s, size=dim) for s in (0.1, 1.0, 10.0, 1e3) for _ in range(10)]
    inside = [project(w.copy()) for w in outside]
    for w, p in zip(outside, inside):
        _require(contains(p), "the projection lies in the set", project, f"P {w} = {p}")
    for w, p in zip(outside, inside):
        again = np.abs(project(p.copy()) - p).max()
        _at_most(again, 1e-14 * (1.0 + np.abs(p).max()), "P P = P", project, w=w)
        for u, q in zip(outside, inside):
            slack = 1e-12 * (1.0 + float(w @ w + p @ p + q @ q))
            angle = float((w - p) @ (q - p))
            _at_most(angle, slack, "obtuse angle <w - Pw, v - Pw> <= 0", project, w=w, v=q)
            grown = np.linalg.norm(p - q) - np.linalg.norm(w - u)
            _at_most(grown, slack, "the projection is nonexpansive", project, w=w, v=u)
            middle = 0.5 * (p + q)
            _require(contains(middle), "the set is convex", project, f"{middle} is not in it")


# ---------------------------------------------------------------------------- certificates


def check_certificate(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    nudge: float = 1e-3,
    direction: ArrayLike | None = None,
) -> Certificate:
    """A certificate holds at the solution, and fails when the model or the data are tampered with.

    A clone is fitted with ``tol=1e-10`` and many iterations, where it has these parameters. Its
    certificate must be ok, with finite bounds (an infinite one says nothing), and
    :func:`surefit.verify` must confirm it and recognise the data. Then
    ``coef_`` is moved by ``nudge * ||coef_||``, and a free ``intercept_`` by
    ``nudge * (1 + |intercept_|)``: each time a claim must fail. Finally one cell of X, one target, the order
    of the rows and the number of rows change: each time the claim ``"data"`` must fail.

    Parameters
    ----------
    estimator : surefit estimator
        Never touched: clones and copies are.
    X, y, sample_weight : array-like
        Training data. X may be sparse.
    nudge : float
        Relative length of the nudge.
    direction : array of the shape of ``coef_``, optional
        Where ``coef_`` is moved to; along itself by default. It must not be a direction in which the
        objective is flat (a null vector of X, a common shift of all softmax classes).

    Returns
    -------
    Certificate
        Of the fitted clone.

    Raises
    ------
    AssertionError
        Naming the law, the estimator and the claims.

    Examples
    --------
    >>> from surefit.linear_model import Ridge
    >>> X, y = [[0.0], [1.0], [2.0], [4.0]], [0.0, 1.1, 1.9, 4.2]
    >>> check_certificate(Ridge(alpha=0.1), X, y).ok
    True
    """
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    y, weight = np.asarray(y), None if sample_weight is None else np.asarray(sample_weight)
    before = joblib.hash(estimator)
    model = _fit_tightly(estimator, X, y, weight)
    certificate: Certificate = model.certificate_
    _require(certificate.ok, "the certificate holds at the solution", model, str(certificate))
    empty = [c.name for c in certificate.claims if c.status is Status.HOLDS and math.isinf(c.bound)]
    _require(not empty, "a claim that holds has a finite bound", model, str(certificate))
    fitted = joblib.hash(model)
    again = verify(model, X, y, sample_weight=weight)
    _require(again.ok, "verify confirms the fit", model, str(again))
    known = "data" in again and again["data"].status is Status.HOLDS
    _require(known, "verify recognises the data of the fit", model, str(again))
    for name, nudged in _nudged(model, nudge, direction):
        report = verify(nudged, X, y, sample_weight=weight)
        _require(not report.ok, f"a nudge of {nudge:g} to {name} is noticed", model, str(report))
    for name, other_X, other_y, other_weight in _tampered(X, y, weight):
        report = verify(model, other_X, other_y, sample_weight=other_weight)
        fails = "data" in report and report["data"].status is Status.FAILS
        _require(fails, f"other data ({name}) are noticed", model, str(report))
    _require(joblib.hash(model) == fitted, "verify changes nothing", model, "the model changed")
    unchanged = joblib.hash(estimator) == before
    _require(unchanged, "the estimator given is left alone", estimator, "it changed")
    return certificate


def _fit_tightly(estimator: Any, X: Any, y: Any, weight: Any) -> Any:
    model = clone(estimator)
    wanted = {"tol": 1e-10, "max_iter": 100_000, "certify": True}
    had = model.get_params(deep=False)
    if had.get("certify") == "full":
        wanted.pop("certify")
    model.set_params(**{name: value for name, value in wanted.items() if name in had})
    keywords = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a failed claim is asserted on, with its numbers
        return model.fit(X, y, **keywords)


def _nudged(model: Any, nudge: float, direction: ArrayLike | None) -> list[tuple[str, Any]]:
    """Copies of the model with coef_ moved, and with a free intercept_ moved."""
    coef = np.asarray(model.coef_)
    along = (
        coef if direction is None else np.asarray(direction, dtype=np.float64).reshape(coef.shape)
    )
    length = float(np.linalg.norm(along))
    _require(length > 0.0, "there is something to nudge", model, "coef_ is 0: pass a direction")
    moved = copy.deepcopy(model)
    moved.coef_ = (coef + nudge * np.linalg.norm(coef) / length * along).astype(coef.dtype)
    copies = [("coef_", moved)]
    if model.get_params(deep=False).get("fit_intercept", False):
        intercept = np.asarray(model.intercept_)
        shifted = np.atleast_1d(intercept).copy()
        shifted[0] += nudge * (1.0 + abs(shifted[0]))  # one entry: softmax ignores a common shift
        moved = copy.deepcopy(model)
        moved.intercept_ = shifted if intercept.ndim else type(model.intercept_)(shifted[0])
        copies.append(("intercept_", moved))
    return copies


def _tampered(X: Any, y: Any, weight: Any) -> Sequence[tuple[str, Any, Any, Any]]:
    """The data with one cell, one target, the order or the number of rows changed."""
    n = X.shape[0]
    if sp.issparse(X):
        cell = X.astype(np.float64)
        cell.data[0] = cell.data[0] * (1.0 + 1e-3) if cell.data[0] else 1e-3
    else:
        cell = X.astype(np.float64)
        cell.flat[0] = cell.flat[0] * (1.0 + 1e-3) if cell.flat[0] else 1e-3
    values, counts = np.unique(y, return_counts=True)
    common = values[counts.argmax()]  # a class keeps a member when one of these changes
    row = int(np.nonzero((y == common).reshape(n, -1).any(axis=1))[0][0])
    target = y.copy()
    if y.dtype.kind == "f":
        target[row] = target[row] + 1e-3 * (1.0 + np.abs(target[row]))
    else:
        target[row] = values[values != common][0]
    order, kept = np.arange(n)[::-1], np.delete(np.arange(n), row)
    changes: list[tuple[str, Any, Any, Any]] = [
        ("one cell changed", cell, y, weight),
        ("one target changed", X, target, weight),
        ("rows reversed", X[order], y[order], None if weight is None else weight[order]),
        ("one sample dropped", X[kept], y[kept], None if weight is None else weight[kept]),
    ]
    if weight is not None:
        heavier = weight.astype(np.float64)
        heavier[0] += 1.0
        changes.append(("one weight changed", X, y, heavier))
    return changes


# ---------------------------------------------------------------------------- small tools


def _require(condition: bool, law: str, subject: Any, detail: str) -> None:
    if not condition:
        name = getattr(subject, "__name__", None) or repr(subject)
        raise AssertionError(f"{law}: {name}: {detail}")


def _at_most(observed: Any, bound: Any, law: str, subject: Any, **at: Any) -> None:
    """Assert ``observed <= bound`` entry by entry; a NaN fails. The worst entry is reported."""
    observed, bound = np.broadcast_arrays(np.atleast_1d(observed), bound)
    fine = observed <= bound
    if fine.all():
        return
    worst = int(np.argmax(np.where(fine, -np.inf, np.nan_to_num(observed - bound, nan=np.inf))))
    where = ", ".join(f"{name}={_entry(value, worst, observed.size)}" for name, value in at.items())
    numbers = f"{observed.ravel()[worst]:.6g} exceeds {bound.ravel()[worst]:.6g}"
    _require(False, law, subject, f"{numbers} at {where}" if where else numbers)


def _entry(values: Any, index: int, size: int) -> Any:
    values = np.asarray(values)
    return values[index] if values.ndim and len(values) == size and size > 1 else values


def _dot(a: Array, b: Array) -> Array:
    """Inner products sample by sample."""
    product: Array = (a * b).reshape(len(a), -1).sum(axis=1)
    return product


def _size(z: Array) -> Array:
    size: Array = np.abs(z).reshape(len(z), -1).max(axis=1)
    return size


def _directions(z: Array, rng: np.random.Generator) -> Array:
    """A unit direction a sample: +-1, or the difference of two coordinates."""
    if z.ndim == 1:
        return rng.choice([-1.0, 1.0], size=len(z))
    first, second = (np.argsort(z, axis=1)[:, -1 - k] for k in range(2))
    d = np.zeros_like(z)
    d[np.arange(len(z)), first], d[np.arange(len(z)), second] = math.sqrt(0.5), -math.sqrt(0.5)
    return d


def _form(loss: Loss, z: Array, y: Array, d: Array) -> Array:
    """d' (second derivative) d. For several outputs ``hess`` returns p: the matrix is diag(p) - p p'."""
    h = loss.hess(z, y)
    if z.ndim == 1:
        return h * d * d
    return _dot(h, d * d) - _dot(h, d) ** 2


def _with_kinks(z: Array, y: Array, kinks: Array) -> list[tuple[Array, Array]]:
    """The drawn points and the kinks, in groups of one target (so that points may be exchanged)."""
    groups = [(z, np.full_like(y, target)) for target in y[:4]]
    for target in np.unique(kinks[:, 1]):
        t = np.concatenate([kinks[kinks[:, 1] == target, 0], z])
        groups.append((t, np.full(len(t), target)))
    return groups
