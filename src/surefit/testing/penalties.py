"""The laws of a penalty and of a projection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..penalties import Penalty
from ._tools import (
    SLACK,
    at_most,
    is_convex_on_segments,
    require,
)

__all__ = ["check_penalty", "check_projection"]

Array = NDArray[np.float64]
SHAPES = ((1,), (6,), (4, 3))  # of coefficients: a number, several, and several targets


def check_penalty(
    penalty: Penalty,
    rng: np.random.Generator | None = None,
    *,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
) -> None:
    """All laws of a penalty: prox, conjugate, ``feasible_scale``, ``strong_convexity``.

    Prox optimality; Moreau's identity, in the form Omega(p) + Omega*(v) = <p, v> for p = prox(w) and
    v = (w - p) / step; the Fenchel-Young inequality; the conjugate against a numerical maximisation;
    ``feasible_scale`` finite and maximal; ``strong_convexity`` accepted and no larger constant;
    ``subdiff_distance`` zero at a minimiser and only there.

    Parameters
    ----------
    penalty : Penalty
        Of single coefficients, or of blocks of them (group lasso, nuclear norm).
    rng : numpy Generator, optional
        ``default_rng(0)`` when omitted.
    shapes : sequence of tuples
        Shapes of the coefficients to try. A penalty whose groups are stated by index takes coefficients of
        one length only: give ``shapes=[(5,)]``.

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
    for shape in shapes:
        for scale in (0.1, 1.0, 10.0):
            w = rng.normal(scale=scale, size=shape)
            for step in (0.1, 1.0, 7.0):
                _check_penalty_prox(penalty, w, step, rng)
            _check_penalty_conjugate(penalty, w, rng)
            _check_subdiff(penalty, w, rng)
    _check_strong_convexity(penalty, max(shapes, key=math.prod), rng)


def _check_penalty_prox(penalty: Penalty, w: Array, step: float, rng: np.random.Generator) -> None:
    p = penalty.prox(w, step)
    mine = penalty.value(p) + float(np.vdot(w - p, w - p)) / (2.0 * step)
    require(math.isfinite(mine), "prox is feasible", penalty, f"value {penalty.value(p)} at {p}")
    for scale in (1e-3, 0.1, 1.0, 10.0):
        near = p + rng.normal(scale=scale, size=p.shape)
        for u in (near, penalty.prox(near, step)):  # the second is feasible for a constraint
            theirs = penalty.value(u) + float(np.vdot(w - u, w - u)) / (2.0 * step)
            slack = SLACK * (1.0 + abs(mine))
            at_most(mine - theirs, slack, "prox is a minimiser", penalty, w=w, prox=p, beaten_by=u)
    v = (w - p) / step
    scale = penalty.feasible_scale(v)  # 1 but for the rounding of the quotient
    at_most(1.0 - scale, 1e-9, "Moreau: (w - prox)/step is dual feasible", penalty, w=w)
    total, product = penalty.value(p) + penalty.conjugate(scale * v), float(np.vdot(p, v))
    slack = 1e-9 * (1.0 + abs(total))
    at_most(abs(total - product), slack, "Moreau identity", penalty, w=w, prox=p)


def _check_penalty_conjugate(penalty: Penalty, w: Array, rng: np.random.Generator) -> None:
    v = rng.normal(scale=float(np.abs(w).max()), size=w.shape)
    t = penalty.feasible_scale(v)
    require(0.0 <= t <= 1.0, "feasible_scale lies in [0, 1]", penalty, f"got {t} at {v}")
    stated = penalty.conjugate(t * v)
    require(math.isfinite(stated), "feasible_scale is feasible", penalty, f"scale {t} at {v}")
    beyond = max(t * (1.0 + 1e-6), 1e-6)
    maximal = t == 1.0 or math.isinf(penalty.conjugate(beyond * v))
    require(maximal, "feasible_scale is maximal", penalty, f"{t}, but {beyond} is feasible too")
    u = penalty.prox(w, 1.0)
    for step in 4.0 ** np.arange(30):  # proximal-point ascent on <t v, u> - Omega(u)
        reached = float(np.vdot(t * v, u)) - penalty.value(u)
        slack = SLACK * (1.0 + abs(stated))
        at_most(reached - stated, slack, "Fenchel-Young inequality", penalty, w=u, v=t * v)
        if stated - reached <= 1e-7 * (1.0 + abs(stated)):
            return
        u = penalty.prox(u + step * t * v, step)
    law = "conjugate is the maximum of <v, w> - Omega(w)"
    at_most(stated - reached, 1e-7 * (1.0 + abs(stated)), law, penalty, v=t * v)


def _check_subdiff(penalty: Penalty, w: Array, rng: np.random.Generator) -> None:
    """At the minimiser of (3/2)||u - w||^2 + Omega(u) the distance is 0; next to it, it is not."""
    best = penalty.prox(w, 1.0 / 3.0)
    at_best = penalty.subdiff_distance(best, 3.0 * (best - w)).max()
    slack = 1e-12 * (1.0 + np.abs(w).max())
    at_most(at_best, slack, "subdiff_distance is 0 at a minimiser", penalty, w=w)
    other = penalty.prox(best + rng.normal(scale=1e-2, size=w.shape), 1e-9)
    moved = float(np.abs(other - best).max())
    if moved > 1e-5:
        distance = float(penalty.subdiff_distance(other, 3.0 * (other - w)).max())
        law = "subdiff_distance is positive away from the minimiser"
        at_most(1e-3 * moved, distance, law, penalty, w=w, at=other)


def _check_strong_convexity(
    penalty: Penalty, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Omega - (m/2) ||.||^2 is convex for the stated m, and for no larger one (CVX-7).

    A norm of a block is linear along rays only, and curved across them: random segments alone would not show
    that no m > 0 is right.
    """
    starts = [rng.normal(size=shape) for _ in range(12)]
    points = np.array([penalty.prox(w, 1e-3) for w in starts])
    rays = [np.array([penalty.prox(s * w, 1e-3) for s in (0.25, 1.0, 2.0)]) for w in starts]
    m = penalty.strong_convexity
    for stated, excess in ((True, 0.0), (False, 0.01 * (1.0 + m))):
        lowered = _lowered(penalty, m + excess)
        found = is_convex_on_segments(lowered, points, rtol=1e-12, atol=1e-10, rng=rng) and all(
            is_convex_on_segments(lowered, ray, segments=20, rtol=1e-12, atol=1e-10, rng=rng)
            for ray in rays
        )
        detail = f"Omega - ({m + excess:.6g}/2)||w||^2 is {'' if found else 'not '}convex"
        require(found is stated, "strong_convexity is honest", penalty, detail)


def _lowered(penalty: Penalty, m: float) -> Callable[[Array], float]:
    return lambda w: penalty.value(w) - 0.5 * m * float(np.vdot(w, w))


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
        require(contains(p), "the projection lies in the set", project, f"P {w} = {p}")
    for w, p in zip(outside, inside):
        again = np.abs(project(p.copy()) - p).max()
        at_most(again, 1e-14 * (1.0 + np.abs(p).max()), "P P = P", project, w=w)
        for u, q in zip(outside, inside):
            slack = 1e-12 * (1.0 + float(w @ w + p @ p + q @ q))
            angle = float((w - p) @ (q - p))
            at_most(angle, slack, "obtuse angle <w - Pw, v - Pw> <= 0", project, w=w, v=q)
            grown = np.linalg.norm(p - q) - np.linalg.norm(w - u)
            at_most(grown, slack, "the projection is nonexpansive", project, w=w, v=u)
            middle = 0.5 * (p + q)
            require(contains(middle), "the set is convex", project, f"{middle} is not in it")
