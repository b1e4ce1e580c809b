r"""Coordinate descent on gathered columns, with conjugate gradients on the face it finds.

    min_v  1/2 ||t - Zv||^2 + l1 ||v||_1 + l2/2 ||v||^2

A few sweeps of soft-thresholding find which coefficients are in use and their signs. On that face the
objective is quadratic, and conjugate gradients, a product with Z_A and one with its transpose a step, do in
twenty steps what takes sweeps hundreds. Coefficients that would change sign become 0; the move is kept when
it lowers the objective. Cyclic coordinate descent converges for this problem (Tseng 2001), and so does this,
as the objective never rises.

For many coefficients: with few, :mod:`surefit.solvers.active_set` is exact.

References
----------
Friedman, Hastie & Tibshirani (2010), JSS 33; Tseng, "Convergence of a block coordinate descent method"
(2001).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .elastic_net_data import ElasticNetData

__all__ = ["Sweeps"]

Array = NDArray[np.float64]
_SWEEPS = 3
_STEPS = (5, 80)  # fewest and most conjugate gradient steps at a time


class Sweeps:
    """The method, with what it learns between calls: how many conjugate gradient steps pay."""

    def __init__(self, data: ElasticNetData, rng: np.random.Generator | None = None) -> None:
        self.data, self.rng = data, rng
        self.steps = 20

    def advance(
        self,
        w: Array,
        index: NDArray[np.int64],
        l1: float,
        l2: float,
        *,
        positive: bool,
        budget: int,
    ) -> int:
        """Change w on the columns ``index``; w must be 0 elsewhere. Returns how many passes were made."""
        Z = _Columns(self.data, index)
        v = w[index]
        r = Z.residual(v)
        used = 0
        for _ in range(min(_SWEEPS, budget)):
            Z.sweep(v, r, l1, l2, positive, self.rng)
            used += 1
        if used < budget:
            kept = _on_the_face(Z, v, r, l1, l2, positive, self.steps)
            few, many = _STEPS
            self.steps = min(2 * self.steps, many) if kept else max(self.steps // 2, few)
            used += 1
        w[index] = v
        return used


class _Columns:
    """Products with gathered columns, weighted and centred (implicitly, where they are sparse)."""

    def __init__(self, data: ElasticNetData, index: NDArray[np.int64]) -> None:
        self.Z = data.columns(index)
        self.data, self.mean, self.norm2 = data, data.mean[index], data.norm2[index]
        self.implicit = sp.issparse(self.Z) and bool(self.mean.any())

    def residual(self, v: Array) -> Array:
        used = np.flatnonzero(v)
        return self.data.target - self.take(used).dot(v[used])

    def take(self, places: NDArray[np.int64]) -> _Columns:
        part = object.__new__(_Columns)
        part.Z, part.data, part.implicit = self.Z[:, places], self.data, self.implicit
        part.mean, part.norm2 = self.mean[places], self.norm2[places]
        return part

    @cached_property
    def across(self) -> Any:
        """Z', made once: for a sparse Z that costs as much as a product with few entries."""
        return self.Z.T

    def dot(self, v: Array) -> Array:
        product: Array = self.Z @ v
        return product - float(self.mean @ v) * self.data.root if self.implicit else product

    def tdot(self, r: Array) -> Array:
        product: Array = self.across @ r
        return product - float(self.data.root @ r) * self.mean if self.implicit else product

    def sweep(
        self,
        v: Array,
        r: Array,
        l1: float,
        l2: float,
        positive: bool,
        rng: np.random.Generator | None,
    ) -> None:
        from .._jit.coordinate import sweep_dense, sweep_sparse

        order = np.arange(len(v)) if rng is None else rng.permutation(len(v))
        if not sp.issparse(self.Z):
            sweep_dense(self.Z.T, self.norm2, v, r, order, l1, l2, positive)
            return
        Z, shift = self.Z, np.zeros(1)
        sweep_sparse(
            Z.data, Z.indices, Z.indptr, self.mean, self.data.mass, self.norm2, v, r, shift, order,
            l1, l2, positive,
        )  # fmt: skip
        if shift[0] != 0.0:
            r += shift[0] * self.data.root


def _on_the_face(
    Z: _Columns, v: Array, r: Array, l1: float, l2: float, positive: bool, steps: int
) -> bool:
    """Preconditioned conjugate gradients for the Newton step on the face of v; whether it was kept."""
    members = np.flatnonzero(v)
    if len(members) == 0:
        return False
    face, here = Z.take(members), v[members]
    signs = np.ones(len(here)) if positive else np.sign(here)
    before = 0.5 * float(r @ r) + l1 * float(np.abs(here).sum()) + 0.5 * l2 * float(here @ here)
    slack = face.tdot(r) - l2 * here - l1 * signs
    scale = face.norm2 + l2
    moved, fit = np.zeros(len(here)), np.zeros(len(r))
    along = slack / scale
    size = start = float(slack @ along)
    for _ in range(steps):
        if size <= 1e-10 * start:
            break
        image = face.dot(along)
        curved = face.tdot(image) + l2 * along
        length = size / float(along @ curved)
        moved += length * along
        fit += length * image
        slack -= length * curved
        steepest = slack / scale
        size, last = float(slack @ steepest), size
        along = steepest + (size / last) * along
    new = here + moved
    crossing = new * signs < 0.0
    if (positive or l1 > 0.0) and crossing.any():
        fit -= face.take(np.flatnonzero(crossing)).dot(new[crossing])
        new[crossing] = 0.0
    left = r - fit
    after = 0.5 * float(left @ left) + l1 * float(np.abs(new).sum()) + 0.5 * l2 * float(new @ new)
    if not after < before:
        return False
    v[members], r[:] = new, left
    return True
