r"""Newton's method for a smooth loss of a linear model with an l2 penalty.

    min_{w, b}  sum_i s_i l(x_i'w + b, y_i) + l2/2 ||w||^2,     l logistic (one column) or softmax (K).

The step solves H d = -g with the exact Hessian X' S diag(l'') X + l2 I (LOG-3), by Cholesky when it
is small and by preconditioned conjugate gradients on Hessian-vector products when it is not, and is
halved until the objective falls (OPT-10). Columns are centred implicitly, so that a free intercept
does not spoil the conditioning. Near the solution the error squares itself at each step; the
yielded estimate is the decrement g'H^{-1}g / 2.

References
----------
Boyd & Vandenberghe, Convex Optimization (2004), section 9.5; Nocedal & Wright (2006), algorithm 7.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import array_namespace, like, scale_rows, to_numpy
from ..design import Design
from ..iterate import Iterate
from ..losses import Loss, Softmax
from .glm import objective, step_length

__all__ = ["DIRECT", "equilibrate", "glm_newton", "kronecker_system", "newton_system", "shift"]

Array = NDArray[np.float64]
DIRECT = 1000  # largest Hessian that is formed
_UNSEEN = 1e-14  # of the objective: a fall that the rounding of its sum may hide


def glm_newton(
    X: Design,
    y: Array,
    s: Array,
    loss: Loss,
    l2: float,
    w: Array,
    b: Array,
    *,
    fit_intercept: bool,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=(w, b), value=objective, estimate=decrement)`` after each step.

    Parameters
    ----------
    X : Design of shape (n, p)
    y, s : arrays of shape (n,)
        Targets in the coding of ``loss``, and weights.
    loss : Loss
        Logistic, or Softmax.
    l2 : float
        Weight of the penalty; 0 for none.
    w, b : arrays of shape (p,) and (), or (p, K) and (K,)
        Start.
    fit_intercept : bool
    """
    z = X.dot(w) + shift(X, b)
    value = objective(loss, z, y, s, w, 0.0, l2)
    mean = X.mean(s) if fit_intercept else np.zeros(X.shape[1])
    before = math.inf
    while True:
        theta = scale_rows(s, loss.grad(z, y))
        slope_b = to_numpy(theta.sum(axis=0))
        slope = X.tdot(theta) + l2 * w
        if fit_intercept:
            slope = slope - np.multiply.outer(mean, slope_b)
        step, step_b = _newton_step(
            X, s, loss.hess(z, y), loss, l2, mean, slope, slope_b, fit_intercept
        )
        decrement = -float(np.vdot(slope, step) + np.vdot(slope_b, step_b))
        move = X.dot(step) + shift(X, step_b - mean @ step)
        t = step_length(loss, y, s, z, move, w, step, 0.0, l2, value, decrement)
        if t < 1.0 and decrement <= min(0.25 * before, _UNSEEN * abs(value)):
            t = 1.0  # the gain is lost in the rounding of the objective, not in that of the gradient
        before = decrement
        if t == 0.0:  # no step lowers the objective: rounding is reached
            yield Iterate((w, b), value, min(max(0.5 * decrement, 0.0), value), 0.0)
            return
        w = w + t * step
        b = b + t * (step_b - mean @ step) if fit_intercept else b
        z = X.dot(w) + shift(X, b)
        value = objective(loss, z, y, s, w, 0.0, l2)
        yield Iterate((w, b), value, min(0.5 * decrement, value), t)  # the objective is >= 0
        if 0.5 * decrement <= 1e-17 * abs(value):
            return


def shift(X: Design, b: Any) -> Any:
    """An intercept (one number, or one a class) as something to add to X w."""
    return X.vector(b) if np.ndim(b) else float(b)


def _newton_step(
    X: Design,
    s: Any,
    h: Any,
    loss: Loss,
    l2: float,
    mean: Array,
    slope: Array,
    slope_b: Array,
    fit_intercept: bool,
) -> tuple[Array, Array]:
    """(d, d_b) solving the Newton system in the centred parametrisation z = (x - mean)'w + b."""
    if slope.size + slope_b.size > DIRECT:
        return _conjugate_gradients(X, s, h, loss, l2, mean, slope, slope_b, fit_intercept)
    if isinstance(loss, Softmax):
        rhs = np.vstack([slope, slope_b]) if fit_intercept else slope
        system = newton_system(X, s, h, loss, l2, mean, fit_intercept)
        step = -_solve(*system, rhs.T.ravel()).reshape(len(slope_b), -1).T
        features = len(slope)
        return step[:features], step[features] if fit_intercept else np.zeros_like(slope_b)
    sh = s * h
    mass = float(sh.sum())
    if not fit_intercept or mass <= 0.0:
        return -_solve(X.gram(sh), l2, np.zeros(len(slope)), slope), np.zeros(())
    center = X.mean(sh)  # under the curvature's own weights the intercept decouples
    offset = mean - center
    noise = mass * _rounding(X, center) ** 2
    step = -_solve(X.gram(sh, center), l2, noise, slope + offset * slope_b)
    return step, np.asarray(-slope_b / mass + offset @ step)


def newton_system(
    X: Design, s: Any, h: Any, loss: Loss, l2: float, mean: Array, fit_intercept: bool
) -> tuple[Array, Array, Array]:
    """The Hessian in (w, b), class after class, its l2 diagonal, and the rounding of its own diagonal."""
    features, classes = X.shape[1], h.shape[1] if isinstance(loss, Softmax) else 1
    columns = features + int(fit_intercept)
    hessian: Any = np.zeros((classes * columns, classes * columns))
    for rows, block in X.blocks():
        dense = block.toarray() if sp.issparse(block) else block
        xp = array_namespace(dense)
        dense = dense - like(mean, dense)
        if fit_intercept:
            dense = xp.concat([dense, xp.ones_like(dense[:, :1])], axis=1)
        hessian += to_numpy(_block_hessian(dense, s[rows], h[rows], classes))
    hessian = X.group.sum(hessian)
    return _completed(hessian, X, s, l2, mean, columns)


def kronecker_system(
    X: Design, s: Any, h: Any, loss: Loss, l2: float, mean: Array, fit_intercept: bool
) -> tuple[Array, Array, Array]:
    """:func:`newton_system` with sum_i s_i H_i x x_i x_i' (Kronecker products) taken for M x A.

    M is the sum of the s_i H_i, A the mean of x_i x_i' under the weights s_i trace(H_i): exact where all H_i
    are proportional, as they are for one column, and at w = 0.
    """
    if isinstance(loss, Softmax):
        M = np.diag(to_numpy(s @ h)) - to_numpy((s[:, None] * h).T @ h)
        c = s * (1.0 - (h * h).sum(axis=1))
    else:
        M, c = np.array([[float(s @ h)]]), s * h
    mass = max(float(c.sum()), 1e-300)
    A = X.gram(c, mean if fit_intercept else None)
    if fit_intercept:
        side = X.tdot(c) - mass * mean
        A = np.block([[A, side[:, None]], [side, mass]])
    return _completed(np.kron(M, A / mass), X, s, l2, mean, len(A))


def _completed(
    hessian: Array, X: Design, s: Any, l2: float, mean: Array, columns: int
) -> tuple[Array, Array, Array]:
    """A Hessian that can be factorised, its l2 diagonal, and the rounding of its own diagonal."""
    features, classes = X.shape[1], len(hessian) // columns
    if classes > 1:
        # A common shift of the classes changes no probability: give it curvature, so that a factorisation
        # exists. The gradient has no part in it, so the step does not change.
        for j in range(0 if l2 == 0.0 else features, columns):
            shared = np.ix_(*[np.arange(j, classes * columns, columns)] * 2)
            hessian[shared] += np.trace(hessian[shared]) / classes**2
    penalty, noise = np.full(columns, l2), np.zeros(columns)
    penalty[features:] = 0.0
    noise[:features] = float(s.sum()) * _rounding(X, mean) ** 2
    return hessian, np.tile(penalty, classes), np.tile(noise, classes)


def _block_hessian(dense: Any, s: Any, h: Any, classes: int) -> Any:
    """sum_i s_i (diag(p_i) - p_i p_i') x_i x_i', or sum_i s_i h_i x_i x_i' for one column."""
    if classes == 1:
        weighted = (s * h)[:, None] ** 0.5 * dense
        return weighted.T @ weighted
    spread = (s[:, None] ** 0.5 * h)[:, :, None] * dense[:, None, :]
    flat = spread.reshape(len(dense), -1)
    total = -(flat.T @ flat)
    columns = dense.shape[1]
    for k in range(classes):
        part = slice(k * columns, (k + 1) * columns)
        total[part, part] += dense.T @ ((s * h[:, k])[:, None] * dense)
    return total


def _rounding(X: Design, center: Array) -> Array:
    """How far from 0 the entries of a constant column may be after centring."""
    return np.finfo(np.float64).eps * (8.0 + math.sqrt(X.shape[0])) * np.abs(center)


def equilibrate(
    hessian: Array, l2: float | Array, noise: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """hessian + l2 with unit diagonal, the scale of each column, and which are constant (set apart)."""
    hessian[np.diag_indices_from(hessian)] += l2
    constant = np.diag(hessian) <= noise
    if constant.any():
        hessian[constant] = hessian[:, constant] = 0.0
        hessian[constant, constant] = 1.0
    scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    return hessian / np.outer(scale, scale), scale, constant


def _solve(hessian: Array, l2: float | Array, noise: Array, rhs: Array) -> Array:
    """(hessian + l2)^{-1} rhs: Cholesky after scaling to unit diagonal; least squares if it is singular.

    A diagonal up to ``noise`` is that of a constant column, centred: no step is taken there.
    """
    unit, scale, constant = equilibrate(hessian, l2, noise)
    rhs = np.where(constant, 0.0, rhs)
    try:
        np.linalg.cholesky(unit)  # numpy's, as in the products: two BLAS pools would compete
        solution = np.linalg.solve(unit, rhs / scale)
        if np.abs(unit @ solution - rhs / scale).max() <= 1e-6 * np.abs(rhs / scale).max():
            return solution / scale
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(unit)
    keep = values > 1e-13 * values[-1]
    return vectors[:, keep] @ ((vectors[:, keep].T @ (rhs / scale)) / values[keep]) / scale


def _conjugate_gradients(
    X: Design,
    s: Array,
    h: Array,
    loss: Loss,
    l2: float,
    mean: Array,
    slope: Array,
    slope_b: Array,
    fit_intercept: bool,
) -> tuple[Array, Array]:
    """Truncated, with a diagonal preconditioner; the tolerance tightens as the gradient shrinks."""

    def curve(u: Array) -> Array:
        bent = h * (u - (h * u).sum(axis=1, keepdims=True)) if isinstance(loss, Softmax) else h * u
        return scale_rows(s, bent)

    def product(v: Array, v_b: Array) -> tuple[Array, Array]:
        bent = curve(X.dot(v) + shift(X, v_b - mean @ v))
        total = to_numpy(bent.sum(axis=0))
        out = X.tdot(bent) + l2 * v - (np.multiply.outer(mean, total) if fit_intercept else 0.0)
        return out, total if fit_intercept else np.zeros_like(v_b)

    average = s * (h * (1.0 - h)).mean(axis=1) if isinstance(loss, Softmax) else s * h
    diagonal = X.column_norms(average, mean if fit_intercept else None) ** 2 + l2
    diagonal = np.maximum(diagonal, 1e-12 * diagonal.max(initial=1e-300))
    scale: Any = diagonal if slope.ndim == 1 else diagonal[:, None]
    mass = max(float(average.sum()), 1e-300)
    v, v_b = np.zeros_like(slope), np.zeros_like(slope_b)
    r, r_b = -slope, -slope_b if fit_intercept else np.zeros_like(slope_b)
    d, d_b = r / scale, r_b / mass
    inner = float(np.vdot(r, d) + np.vdot(r_b, d_b))
    start = inner
    relative = min(0.1, math.sqrt(math.sqrt(inner))) ** 2
    for _ in range(200):
        if inner <= relative * start * 1e-2 or inner == 0.0:
            break
        hd, hd_b = product(d, d_b)
        bend = float(np.vdot(d, hd) + np.vdot(d_b, hd_b))
        if bend <= 0.0:
            break
        t = inner / bend
        v, v_b = v + t * d, v_b + t * d_b
        r, r_b = r - t * hd, r_b - t * hd_b
        previous, inner = inner, float(np.vdot(r, r / scale) + np.vdot(r_b, r_b / mass))
        d, d_b = r / scale + inner / previous * d, r_b / mass + inner / previous * d_b
    return v, v_b
