r"""Dual points for :mod:`surefit.duality`: where they come from, and how they are made feasible.

The candidates are theta_i = l'(z_i, y_i) at the model's own predictions, and a witness that the fit hands
over, which is not trusted. D(theta) is a lower bound only where theta meets the constraints:

* free intercept, sum_i s_i theta_i = 0: b is solved for anew in one dimension, then the remaining imbalance
  (rounding) is removed inside the domain of l* by :meth:`Loss.balance`;
* no penalty, X'(s theta) = 0: one Newton correction in the span of the columns, feasible once no
  prediction moves beyond the domain of l*;
* a pinball loss or a hinge has no curvature: there the coordinates strictly inside the box of l* take up what
  is missing in these equations, since moving the rows on the fit, or on the margin, costs nothing to first
  order, while a row at a bound costs its slack; where they are too few, all move, and (pinball) scaling
  towards 0 brings the point back into the box.

A bad candidate can only weaken the bound. No solver is imported (an import contract keeps it so).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ._namespace import clip, samples_like, scale_rows, to_numpy, where
from ._threads import by_rows, sum_rows
from ._worst import largest
from .design import Design, RankRows, RowBlocks
from .losses import Absolute, Hinge, Loss, Quantile, Softmax
from .offsets import best_offset

__all__ = ["adjoint", "candidates", "is_balanced", "is_rounding", "repair", "within_l1"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_COLUMNS = 3000  # a repair forms a matrix of this size at most


def candidates(
    loss: Loss, z: Array, y: Array, s: Array, free: bool, witness: Array | None
) -> Iterator[Array]:
    if witness is not None:
        with contextlib.suppress(TypeError, ValueError):  # not numbers: no witness
            given = np.asarray(to_numpy(witness), dtype=np.float64)
            if given.shape == tuple(z.shape) and bool((abs(samples_like(given, z)) < 1e100).all()):
                yield samples_like(given, z)
    offset = best_offset(loss, z, y, s) if free else 0.0
    yield by_rows(lambda z, y: loss.grad(z + offset, y), z, y)


def repair(
    theta: Array,
    design: Design,
    mean: Array,
    y: Array,
    z: Array,
    s: Array,
    loss: Loss,
    norms: Array,
    free: bool,
    unpenalised: bool,
) -> Array:
    """A dual point near ``theta`` that meets the equality constraints."""
    if isinstance(loss, (Absolute, Quantile)):
        theta = clip(theta, -loss.up, loss.down)
        theta = _balanced_inside(theta, s, _room(theta, loss)) if free else theta
    if free and isinstance(loss, Hinge):
        alpha = clip(-y * theta, 0.0, 1.0)
        theta = _balanced_inside(-y * alpha, s, where(alpha > 0.5, 1.0 - alpha, alpha))
    if free:
        theta = loss.balance(theta, y, s)
    if unpenalised and isinstance(loss, (Absolute, Quantile)):
        return _project(theta, design, mean, s, loss, norms, free)
    if unpenalised:
        for _ in range(2):  # the second pass removes the rounding of the first
            h = loss.hess(z, y)
            theta = theta - _newton_correction(theta, design, mean, h, s, loss, free)
    return theta


def _room(theta: Array, loss: Absolute | Quantile) -> Array:
    """How far each coordinate of a dual point may move and stay in the box of l*."""
    return clip(
        where(theta > 0.5 * (loss.down - loss.up), loss.down - theta, theta + loss.up), 0.0, None
    )


def _balanced_inside(theta: Array, s: Array, room: Array) -> Array:
    """sum_i s_i theta_i = 0 by moving the coordinates inside the box, if their room is enough for it."""
    total, most = float(s @ theta), float(s @ room)
    return theta - total / most * room if abs(total) < most else theta


def _project(
    theta: Array,
    design: Design,
    mean: Array,
    s: Array,
    loss: Absolute | Quantile,
    norms: Array,
    free: bool,
) -> Array:
    """X'(s theta) = 0 by moving the coordinates inside the box, or else all of them; then into the box."""
    for inside in (True, True, False, False):  # each second pass removes the rounding of the first
        v = adjoint(theta, design, mean, s, free, None)
        if is_rounding(v, theta, norms, s):
            break
        h = _room(theta, loss) if inside else 0.0 * theta + 1.0
        change = _newton_correction(theta, design, mean, h, s, loss, free)
        if not inside or bool((abs(change) <= 1.001 * h + 1e-9).all()):  # else they are too few
            theta = theta - change
    return _shrunk(theta, s, loss)


def _shrunk(theta: Array, s: Array, loss: Absolute | Quantile) -> Array:
    """A dual point scaled towards 0 until it is in the box."""
    ends = where(theta > 0, theta / loss.down, -theta / loss.up)
    return theta / largest(1.0, float(where(s > 0, ends, 0.0).max()))


def within_l1(
    theta: Array,
    v: Array,
    design: Design,
    mean: Array,
    s: Array,
    loss: Absolute | Quantile,
    l1: float,
    free: bool,
) -> tuple[Array, Array, Array]:
    """|X'(s theta)| <= l1 for a point that nearly has it: theta, v = -X'(s theta) and what rounding leaks.

    Next to a tiny l1 a small violation is not small, and scaling it away would be ruinous: the coordinates
    inside the box take it up. The columns at the bound are kept there, as long as they can be told apart.
    """
    norms = design.column_norms(s) if bool((np.abs(v) > l1).any()) else np.zeros_like(v)
    columns, before = np.flatnonzero(np.abs(v) >= 0.9 * l1), math.inf
    for _ in range(6):
        over = v - np.clip(v, -l1, l1)
        if not over.any():
            break
        if is_rounding(over, theta, norms, s, 1e-13):
            return theta, v - over, np.abs(over)
        if not is_rounding(over, theta, norms, s, 1e-3) or len(v) > _COLUMNS:
            break
        before, most = float(np.abs(over).max()), before
        if before > 0.1 * most:
            columns = np.flatnonzero(over)
        h = _room(theta, loss)
        change = _span_correction(over, columns, design, h, s, free)
        if bool((abs(change) > h).any()):
            break
        theta = theta + change
        v = adjoint(theta, design, mean, s, free, None)
    return theta, v, np.zeros_like(v)


def is_balanced(theta: Array, s: Array) -> bool:
    """Whether sum_i s_i theta_i = 0 up to rounding."""

    def sums(theta: Array, s: Array) -> Array:
        flat = theta.reshape(len(s), -1)
        return np.vstack([to_numpy(s @ flat), to_numpy(s @ abs(flat))])

    total, size = sum_rows(sums, theta, s)
    return not bool((np.abs(total) > 1e-11 * size).any())


def is_rounding(v: Array, theta: Array, norms: Array, s: Array, share: float = 1e-11) -> bool:
    """Whether X'(s theta) vanishes as far as rounding lets it: |v_j| <= share ||x_j|| ||theta||."""
    size = math.sqrt(float(s @ (theta**2).reshape(len(s), -1).sum(axis=1)))
    limit = share * size * norms
    return bool((np.abs(v).reshape(len(limit), -1).max(axis=1) <= limit).all())


def adjoint(
    theta: Array, design: Design, mean: Array, s: Array, free: bool, intercept_scaling: float | None
) -> Array:
    """v = -X'(s theta)."""
    if isinstance(
        design, (RankRows, RowBlocks)
    ):  # vectors over samples are what takes memory there
        v = -design.respond(None, lambda rows, _: scale_rows(s[rows], theta[rows]))
    else:
        v = -design.tdot(by_rows(scale_rows, s, theta))
    total = to_numpy(sum_rows(lambda s, part: scale_rows(s, part).sum(axis=0), s, theta))
    if free:  # columns may be centred at will; here it removes what rounding left in sum(s theta)
        v = v + np.multiply.outer(mean, total)
    if intercept_scaling is not None:
        last = -intercept_scaling * total
        v = np.concatenate([v, np.atleast_1d(last)[None] if v.ndim == 2 else np.atleast_1d(last)])
    return v


def _newton_correction(
    theta: Array, design: Design, mean: Array, h: Array, s: Array, loss: Loss, free: bool
) -> Array:
    """The change h (X d) of theta, d a Newton step for the curvature h, after which X'(s theta) = 0."""
    st = scale_rows(s, theta)
    if isinstance(loss, Softmax):
        return _newton_correction_softmax(st, design, h, s, free)
    rhs = design.tdot(st) - (mean * float(st.sum()) if free else 0.0)
    return _span_correction(rhs, np.arange(len(rhs)), design, h, s, free)


def _span_correction(
    rhs: Array, columns: NDArray[np.intp], design: Design, h: Array, s: Array, free: bool
) -> Array:
    """delta = h (X d), d on these columns only, with X'(s delta) = rhs there (and sum s delta = 0)."""
    sh, d = s * h, np.zeros(design.shape[1])
    center = design.mean(sh) if free and sh.sum() > 0 else np.zeros_like(d)
    gram = design.gram(sh, center if free else None)[np.ix_(columns, columns)]
    noise = _EPS * (8.0 + math.sqrt(design.shape[0])) * np.abs(center) * math.sqrt(float(sh.sum()))
    d[columns] = _equilibrated(gram, rhs[columns], noise[columns])
    return h * (design.dot(d) - float(center @ d))


def _equilibrated(matrix: Array, rhs: Array, noise: float | Array = 0.0) -> Array:
    """Minimum-norm solution after scaling to a unit diagonal: a small column is not a zero column.

    A column of length up to ``noise`` is one: a constant, centred.
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    constant = scale <= noise
    matrix = np.where(constant | constant[:, None], 0.0, matrix)
    scale[constant] = 1.0
    unit = matrix / scale / scale[:, None]
    solution = np.asarray(np.linalg.lstsq(unit, rhs / scale, rcond=1e-14)[0], dtype=np.float64)
    return solution / scale


def _newton_correction_softmax(st: Array, design: Design, p: Array, s: Array, free: bool) -> Array:
    columns, classes = design.shape[1] + int(free), p.shape[1]
    rhs = design.tdot(st)
    if free:
        rhs = np.vstack([rhs, to_numpy(st.sum(axis=0))])
    hessian = np.zeros((classes, columns, classes, columns))
    for k in range(classes):
        for m in range(k, classes):
            weight = s * (p[:, k] * (1.0 - p[:, k]) if k == m else p[:, k] * p[:, m])
            block = np.zeros((columns, columns))
            block[: design.shape[1], : design.shape[1]] = design.gram(weight)
            if free:
                block[-1, :-1] = block[:-1, -1] = design.tdot(weight)
                block[-1, -1] = float(weight.sum())
            hessian[k, :, m, :] = hessian[m, :, k, :] = block if k == m else -block
    size = classes * columns
    solution = _equilibrated(hessian.reshape(size, size), rhs.T.ravel())
    d = solution.astype(np.float64).reshape(classes, columns).T
    moved = design.dot(d[: design.shape[1]]) + (design.vector(d[-1]) if free else 0.0)
    return p * (moved - (p * moved).sum(axis=1, keepdims=True))
