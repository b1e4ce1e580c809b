r"""Crammer and Singer's multi-class support vector machine by the sequential dual method.

    min_W  1/2 sum_m (||w_m||^2 + (b_m / B)^2) + sum_i c_i max_m ([m != y_i] + z_im - z_iy_i)

with the scores z_im = <x_i, w_m> + b_m. The dual has a row of variables for each sample, beta_im <= c_i [m
= y_i] with sum_m beta_im = 0, and w_m = sum_i beta_im x_i. A sweep visits the samples in random order and
minimises over one row at a time, exactly (:mod:`surefit._jit.crammer_singer`); samples that are far beyond
the margin are left out until the others have settled. Sweeps soon know which variables lie at their bound
and approach the others slowly, so between them those make a step together: conjugate gradients on the face,
each row of variables keeping its sum.

References
----------
Crammer & Singer, "On the algorithmic implementation of multiclass kernel-based vector machines" (2001);
Keerthi, Sundararajan, Chang, Hsieh & Lin (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._csr import distinct_entries
from .._jit.crammer_singer import sweep_classes_dense, sweep_classes_sparse
from ..iterate import Iterate

__all__ = ["ClassPoint", "crammer_singer"]

Array = NDArray[np.float64]
_TOGETHER = 5  # most sweeps between two looks at all samples
_STEPS = 100  # most conjugate gradient steps
_FLAT = 1e-12  # curvature, of the diagonal's, that counts as none
_FACES = 32  # most faces in a row, where sweeps gain little
_REDUCE = 0.01  # by how much they reduce their residual


class ClassPoint(NamedTuple):
    """W of shape (p, K), intercepts of shape (K,), dual variables of shape (n, K)."""

    W: Array
    b: Array
    beta: Array


def crammer_singer(
    X: Any, y: NDArray[np.int64], c: Array, classes: int, *, scaling: float, seed: int = 0
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=ClassPoint, value=P, estimate=gap, cost=sweeps)``; without end.

    ``y`` holds 0, ..., K-1; ``scaling`` is the value B of the constant feature, 0 for none.
    """
    rng, n = np.random.default_rng(seed), X.shape[0]
    if sp.issparse(X):
        csr = distinct_entries(X)
        data = np.ascontiguousarray(csr.data, dtype=np.float64)
        rows: tuple[Any, ...] = (
            data,
            csr.indices,
            csr.indptr.astype(csr.indices.dtype, copy=False),
        )
        norm2, sweep = (
            np.asarray(csr.multiply(csr).sum(axis=1), dtype=np.float64).ravel(),
            sweep_classes_sparse,
        )
        X = csr
    else:
        X = np.ascontiguousarray(X, dtype=np.float64)
        rows, norm2, sweep = (X,), np.einsum("ij,ij->i", X, X), sweep_classes_dense
    norm2 = norm2 + scaling**2
    W, v, beta = np.zeros((X.shape[1], classes)), np.zeros(classes), np.zeros((n, classes))
    own, limit, faces, least = (np.arange(n), y), np.inf, 1, np.inf
    empty = np.flatnonzero(norm2 == 0.0)  # rows of zeros lose 1 whatever W is: no sweep moves them
    beta[empty, y[empty]] = c[empty]
    beta[empty, (y[empty] + 1) % classes] = -c[empty]
    while True:
        order, count, first = rng.permutation(n), n, np.inf
        made = 0
        while made < _TOGETHER:
            made += 1
            rng.shuffle(order[:count])
            count, worst = sweep(*rows, norm2, y, c, scaling, W, v, beta, order, limit, count)
            limit, first = (worst if worst > 0.0 else np.inf), min(first, worst)
            if worst <= 0.1 * first or count == 0:
                break
        z = X @ W + scaling * v
        losses = z + 1.0
        losses[own] -= 1.0
        value = 0.5 * float((W**2).sum() + v @ v) + float(c @ (losses.max(axis=1) - z[own]))
        dual = float(beta[own].sum()) - 0.5 * float((W**2).sum() + v @ v)
        point = ClassPoint(W.copy(), scaling * v, beta.copy())
        yield Iterate(point, value, value - dual, cost=made)
        slopes = z + 1.0
        slopes[own] -= 1.0
        faces = min(2 * faces, _FACES) if value - dual > 0.3 * least else max(1, faces // 2)
        least = min(least, value - dual)
        move = _newton(X, slopes, beta, own, c, norm2, scaling, faces)
        beta += move
        W += X.T @ move
        v += scaling * move.sum(axis=0)


def _newton(
    X: Any, slopes: Array, beta: Array, own: Any, c: Array, norm2: Array, scaling: float, faces: int
) -> Array:
    """Steps of the free variables together, on the face that they span and the smaller ones it leads to."""
    bound = np.zeros_like(beta)
    bound[own] = c
    rows = np.flatnonzero(((beta < bound).sum(axis=1) > 1) & (norm2 > 0.0))
    total = np.zeros_like(beta)
    if not len(rows):
        return total
    part, room, down = X[rows], (bound - beta)[rows], -slopes[rows]
    scale = 1.0 / norm2[rows, None]

    def bend(step: Array) -> Array:
        return part @ (part.T @ step) + scaling**2 * step.sum(axis=0)

    for _ in range(faces):
        step = _face_step(bend, down, room, scale)
        curved = bend(step)
        slope, curvature = float(np.vdot(down, step)), float(np.vdot(step, curved))
        if not slope > 0.0:
            break
        length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        step, before = np.minimum(length * step, room), room > 0.0
        total[rows] += step
        down, room = down - length * curved, np.maximum(room - step, 0.0)
        room[room <= 1e-15 * bound[rows].max(axis=1, keepdims=True)] = 0.0
        if ((room > 0.0) == before).all():
            break
    return total


def _face_step(bend: Any, down: Array, room: Array, scale: Array) -> Array:
    """Conjugate gradients on the variables that have room; each row goes as far as it may."""
    free = room > 0.0
    count = np.maximum(free.sum(axis=1, keepdims=True), 1)

    def face(G: Array) -> Array:
        """The free entries, each row without its mean: the sum of a row stays 0."""
        G = np.where(free, G, 0.0)
        return np.where(free, G - G.sum(axis=1, keepdims=True) / count, 0.0)

    r = face(down)
    delta, along = np.zeros_like(r), scale * r
    mass = first = float(np.vdot(r, along))
    for _ in range(_STEPS):
        if mass <= _REDUCE**2 * first or mass == 0.0:
            break
        bent = face(bend(along))
        curvature = float(np.vdot(along, bent))
        if curvature <= _FLAT * float((along**2 / scale).sum()):  # it falls all the way to a bound
            delta += float(_reach(delta, along, room).min()) * along
            break
        delta += mass / curvature * along
        r -= mass / curvature * bent
        bent = scale * r
        mass, before = float(np.vdot(r, bent)), mass
        along = bent + mass / before * along
    each = np.minimum(_reach(np.zeros_like(delta), delta, room), 1.0)
    step = each * delta
    if float(np.vdot(down, step)) > 0.0:
        return step
    return float(each.min()) * delta


def _reach(start: Array, along: Array, room: Array) -> Array:
    """How far each row may go from ``start`` before a variable has no room left."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        steps = np.where(along > 0, (room - start) / along, np.inf).min(axis=1, keepdims=True)
    return np.clip(steps, 0.0, 1e100)
