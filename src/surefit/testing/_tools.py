"""Segments, differences and comparisons: what the laws are written with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..losses import Loss

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
STEP = 1e-6  # of differences: rounding costs eps |f| / step, the next Taylor term step * |f''|
SLACK = 1e-10  # relative, for sums of a few terms: 1e5 times eps, far below any real violation


def is_convex_on_segments(
    f: Callable[[Any], Any],
    points: ArrayLike,
    *,
    strict: bool = False,
    segments: int = 400,
    rtol: float = SLACK,
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
    step: float = STEP,
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
    rounding = 4.0 * EPS * abs(float(f(at))) / step
    bound = rtol * (1.0 + np.abs(stated)) + rounding
    at_most(np.abs(measured - stated), bound, "gradient equals differences", f)


def require(condition: bool, law: str, subject: Any, detail: str) -> None:
    if not condition:
        name = getattr(subject, "__name__", None) or repr(subject)
        raise AssertionError(f"{law}: {name}: {detail}")


def at_most(observed: Any, bound: Any, law: str, subject: Any, **at: Any) -> None:
    """Assert ``observed <= bound`` entry by entry; a NaN fails. The worst entry is reported."""
    observed, bound = np.broadcast_arrays(np.atleast_1d(observed), bound)
    fine = observed <= bound
    if fine.all():
        return
    worst = int(np.argmax(np.where(fine, -np.inf, np.nan_to_num(observed - bound, nan=np.inf))))
    where = ", ".join(f"{name}={entry(value, worst, observed.size)}" for name, value in at.items())
    numbers = f"{observed.ravel()[worst]:.6g} exceeds {bound.ravel()[worst]:.6g}"
    require(False, law, subject, f"{numbers} at {where}" if where else numbers)


def entry(values: Any, index: int, size: int) -> Any:
    values = np.asarray(values)
    return values[index] if values.ndim and len(values) == size and size > 1 else values


def dot(a: Array, b: Array) -> Array:
    """Inner products sample by sample."""
    product: Array = (a * b).reshape(len(a), -1).sum(axis=1)
    return product


def size(z: Array) -> Array:
    size: Array = np.abs(z).reshape(len(z), -1).max(axis=1)
    return size


def directions(z: Array, rng: np.random.Generator) -> Array:
    """A unit direction a sample: +-1, or the difference of two coordinates."""
    if z.ndim == 1:
        return rng.choice([-1.0, 1.0], size=len(z))
    first, second = (np.argsort(z, axis=1)[:, -1 - k] for k in range(2))
    d = np.zeros_like(z)
    d[np.arange(len(z)), first], d[np.arange(len(z)), second] = math.sqrt(0.5), -math.sqrt(0.5)
    return d


def form(loss: Loss, z: Array, y: Array, d: Array) -> Array:
    """d' (second derivative) d. For several outputs ``hess`` returns p: the matrix is diag(p) - p p'."""
    h = loss.hess(z, y)
    if z.ndim == 1:
        return h * d * d
    return dot(h, d * d) - dot(h, d) ** 2


def with_kinks(z: Array, y: Array, kinks: Array) -> list[tuple[Array, Array]]:
    """The drawn points and the kinks, in groups of one target (so that points may be exchanged)."""
    groups = [(z, np.full_like(y, target)) for target in y[:4]]
    for target in np.unique(kinks[:, 1]):
        t = np.concatenate([kinks[kinks[:, 1] == target, 0], z])
        groups.append((t, np.full(len(t), target)))
    return groups
