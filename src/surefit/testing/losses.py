"""The laws of a loss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..losses import Loss, MarginLoss, RegressionLoss, Softmax, risk_minimizer, slopes_at_zero
from ._tools import (
    EPS,
    SLACK,
    STEP,
    at_most,
    directions,
    dot,
    form,
    is_convex_on_segments,
    require,
    size,
    with_kinks,
)

__all__ = ["check_loss"]

Array = NDArray[np.float64]


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
    d = directions(z, rng)
    low, high = z - STEP * d, z + STEP * d
    value, slope, bend = loss.pointwise(z, y), dot(loss.grad(z, y), d), form(loss, z, y, d)
    slope_low, slope_high = dot(loss.grad(low, y), d), dot(loss.grad(high, y), d)
    # A difference quotient is a mean of the derivative over the interval: it differs from its value in
    # the middle by no more than the derivative varies there. (At a kink that is the whole jump.)
    quotient = (loss.pointwise(high, y) - loss.pointwise(low, y)) / (2.0 * STEP)
    varies = np.abs(slope_high - slope) + np.abs(slope - slope_low)
    rounding = 8.0 * EPS * (np.abs(value) + size(z) * (1.0 + np.abs(slope))) / STEP + 1e-9
    at_most(np.abs(quotient - slope), varies + rounding, "gradient equals differences", loss, z=z)
    quotient = (slope_high - slope_low) / (2.0 * STEP)
    bend_low, bend_high = form(loss, low, y, d), form(loss, high, y, d)
    varies = np.abs(bend_high - bend) + np.abs(bend - bend_low)
    rounding = 8.0 * EPS * (np.abs(slope) + size(z) * np.abs(bend) + 1.0) / STEP + 1e-9
    bound = varies + rounding
    at_most(np.abs(quotient - bend), bound, "curvature equals differences of grad", loss, z=z)


def _check_shape(loss: Loss, z: Array, y: Array, kinks: Array, rng: np.random.Generator) -> None:
    """The convex flag by random segments; for a convex loss, grad is a subgradient, also at kinks."""
    convex = all(is_convex_on_segments(_section(loss, t), z, rng=rng) for t in y[:4])
    law = "convex" if loss.convex else "a loss that is not convex has a segment that shows it"
    require(convex == loss.convex, law, loss, f"stated convex={loss.convex}, segments: {convex}")
    if not loss.convex:
        return
    for t, target in with_kinks(z, y, kinks):
        u = t[rng.permutation(len(t))]
        here, slope = loss.pointwise(t, target), loss.grad(t, target)
        line = here + dot(slope, u - t)
        there = loss.pointwise(u, target)
        slack = SLACK * (np.abs(here) + np.abs(there) + np.abs(line)) + 1e-12
        at_most(line - there, slack, "subgradient inequality", loss, at=t, to=u)


def _check_fenchel(loss: Loss, z: Array, y: Array, kinks: Array, rng: np.random.Generator) -> None:
    """theta z <= l(z) + l*(theta) everywhere, with equality at theta = grad for a convex loss."""
    for t, target in with_kinks(z, y, kinks):
        slope, value = loss.grad(t, target), loss.pointwise(t, target)
        if loss.convex:
            total, product = value + loss.conjugate(slope, target), dot(slope, t)
            slack = SLACK * (np.abs(value) + np.abs(total) + np.abs(product)) + 1e-12
            law = "Fenchel-Young equality at theta = grad"
            at_most(np.abs(total - product), slack, law, loss, z=t)
    others = loss.grad(z, y)[rng.permutation(len(z))], rng.normal(scale=2.0, size=z.shape)
    value = loss.pointwise(z, y)
    for theta in others:
        total, product = value + loss.conjugate(theta, y), dot(theta, z)
        # A theta outside the domain by rounding (1e-12) may be read as the nearest point inside.
        slack = SLACK * (np.abs(value) + np.abs(product)) + 2e-12 * (1.0 + size(z))
        at_most(product - total, slack, "Fenchel-Young inequality", loss, z=z, theta=theta)


def _check_conjugate(loss: Loss, z: Array, y: Array, rng: np.random.Generator) -> None:
    """The conjugate is the maximum of theta t - l(t): attained where finite, unbounded where not."""
    law = "conjugate is the maximum of theta t - l(t, y)"
    if z.ndim > 1:
        for t, target in zip(z[:6], y[:6]):
            one, theta = np.array([target]), loss.grad(t[None], np.array([target]))[0]
            best = minimize(_negated(loss, theta, one), np.zeros_like(t), tol=1e-10)
            stated = loss.conjugate(theta[None], one)[0]
            at_most(np.abs(stated + best.fun), 1e-6 * (1 + abs(stated)), law, loss, theta=theta)
        return
    z, y = z[::2][:60], y[::2][:60]
    for theta in (loss.grad(z, y), np.zeros_like(z), rng.normal(scale=2.0, size=len(z))):
        stated = loss.conjugate(theta, y)
        inside = np.isfinite(stated)
        reached = _maximum(_tilted(loss, theta, y), len(z))
        slack = 1e-7 * (1.0 + np.abs(np.where(inside, stated, 0.0)))
        at_most(np.abs(reached - stated)[inside], slack[inside], law, loss, theta=theta[inside])
        ends = [theta * t - loss.pointwise(np.full_like(z, t), y) for t in (-1e12, 1e12)]
        grown = np.maximum(*ends)[~inside]
        at_most(1e3 - grown, 0.0, "conjugate is infinite only where theta t - l grows", loss,
                 theta=theta[~inside])  # fmt: skip


def _section(loss: Loss, target: float) -> Callable[[Array], float]:
    """z -> l(z, target) for a single sample."""
    return lambda t: float(loss.pointwise(t[None], np.array([target]))[0])


def _tilted(loss: Loss, theta: Array, y: Array) -> Callable[[Array], Array]:
    """t -> theta t - l(t, y), whose maximum is the conjugate."""
    return lambda t: dot(theta, t) - loss.pointwise(t, y)


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
            require(not loss.convex, "a convex loss has a prox", loss, "prox raised TypeError")
            return
        theta = (z - t) / step
        value = loss.pointwise(t, y)
        mine = value + dot(z - t, z - t) / (2.0 * step)
        for scale in (1e-3, 0.1, 1.0, 10.0):
            u = t + rng.normal(scale=scale, size=t.shape)
            there = loss.pointwise(u, y)
            theirs = there + dot(z - u, z - u) / (2.0 * step)
            at_most(mine - theirs, SLACK * (1 + theirs), "prox is a minimiser", loss, z=z, t=t)
            if loss.convex:
                line = value + dot(theta, u - t)
                slack = 1e-9 * (1.0 + np.abs(there) + np.abs(line))
                law = "prox optimality: (z - prox)/step is a subgradient"
                at_most(line - there, slack, law, loss, z=z, t=t)


def _check_slopes(
    loss: Loss, z: Array, y: Array, kinks: Array, jumps: Array, rng: np.random.Generator
) -> None:
    """``lipschitz`` and ``smoothness``: never exceeded, attained to 5 %, infinite only when needed."""
    d = directions(z, rng)
    width = 1e-4 * np.maximum(1e-2, np.minimum(size(z), 1.0))
    far = (width * d.T).T
    slope_here, slope_there = loss.grad(z, y), loss.grad(z + far, y)
    steepest = float(np.sqrt(dot(slope_here, slope_here)).max())
    change = slope_there - slope_here
    bends = np.sqrt(dot(change, change)) / width
    noise = 8.0 * EPS * (1.0 + size(z)) * (1.0 + steepest) / width
    sharpest = float((bends - np.where(noise < 1e-2 * bends, 0.0, bends)).max())
    _check_constant(loss, "lipschitz", steepest, len(jumps) > 0)
    _check_constant(loss, "smoothness", sharpest, len(kinks) > 0 or len(jumps) > 0)


def _check_constant(loss: Loss, name: str, largest: float, broken: bool) -> None:
    """One stated constant against the largest measured value; ``broken`` when a jump was seen."""
    stated = float(getattr(loss, name))
    if math.isinf(stated):  # an outright jump, or a slope that keeps growing with the prediction
        seen = broken or largest > 1e3
        require(seen, f"{name} is infinite", loss, f"the largest measured is only {largest:.6g}")
        return
    require(not broken, name, loss, f"stated {stated:.6g}, but there is a jump")
    exceeded = largest <= stated * (1.0 + 1e-3 if name == "smoothness" else 1.0 + 1e-12)
    require(exceeded, f"{name} is not exceeded", loss, f"stated {stated:.6g}, seen {largest:.6g}")
    attained = largest >= 0.95 * stated
    require(attained, f"{name} is attained", loss, f"stated {stated:.6g}, seen {largest:.6g}")


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
    at_most(moved, allowed, "balance moves little what is nearly balanced", loss)


def _check_balanced(loss: Loss, theta: Array, y: Array, weights: Array) -> Array:
    result = loss.balance(theta, y, weights)
    bound = 4.0 * EPS * math.log2(len(theta)) * (weights @ np.abs(theta))
    at_most(np.abs(weights @ result), bound, "balance: sum(weights * theta) = 0", loss)
    finite = bool(np.isfinite(loss.conjugate(result, y)[weights > 0]).all())
    require(finite, "balance stays in the domain", loss, "the conjugate became infinite")
    return result


def _check_influence(loss: RegressionLoss) -> None:
    """``symmetric``: equal costs on both sides. ``robust``: the slope no longer grows far out."""
    e = np.logspace(-3, 6, 50)
    up, down = loss.pointwise(e, np.zeros(50)), loss.pointwise(-e, np.zeros(50))
    symmetric = bool(np.allclose(up, down, rtol=SLACK, atol=0.0))
    detail = f"stated symmetric={loss.symmetric}, measured {symmetric}"
    require(symmetric == loss.symmetric, "symmetric", loss, detail)
    far = np.array([[1e9, -1e9], [1e12, -1e12]])
    near_slope, far_slope = (np.abs(loss.grad(t, np.zeros(2))).max() for t in far)
    robust = bool(far_slope <= 2.0 * near_slope)
    detail = f"stated robust={loss.robust}, slopes {near_slope:.3g} at 1e9, {far_slope:.3g} at 1e12"
    require(robust == loss.robust, "robust (bounded influence)", loss, detail)


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
    require(measured == loss.calibrated, "calibrated", loss, detail)
    if loss.convex:
        law = "the risk minimiser has the Bayes sign iff calibrated"
        require(all(signs) == loss.calibrated, law, loss, f"signs agree: {signs}")
        left, right = slopes_at_zero(loss)
        bartlett = abs(left - right) < 1e-4 and right < 0.0
        detail = f"stated {loss.calibrated}, slopes at 0: {left:.6g} and {right:.6g}"
        require(bartlett == loss.calibrated, "Bartlett's criterion", loss, detail)
