r"""Kernel machines: how far a margin can fall in a ball (a certified lower bound).

The margin against one rival is :math:`D(x) = \sum_j w_j k(x, s_j) + b`, a function of the kernel's Hilbert
space plus a constant. For :math:`\|x' - x\|_2 \le r` each of these is a lower bound of D(x'), and the
largest is used:

* *intervals*: the distance to s_j stays in [d_j - r, d_j + r], so k(x', s_j) stays between its values at
  the ends; each term takes the worse end. For a polynomial kernel <x', s_j> stays within min(r ||s_j||,
  sum_i |reach_i s_ji|) of <x, s_j>;
* *Lipschitz*: :math:`|D(x') - D(x)| \le \|w\|_H \, \|k_{x'} - k_x\|_H`, with :math:`\|k_{x'} - k_x\|_H^2 =
  2 - 2 e^{-\gamma r^2}` for the Gaussian kernel, :math:`2 - 2 e^{-\gamma r}` for Laplace;
* *Taylor*, Gaussian kernel: the second derivative along a unit vector is at most :math:`\|w\|_H \sqrt{12
  \gamma^2}`, since :math:`\partial_u^2 \partial_{u'}^2 k = 12 \gamma^2` at u = u'. So :math:`D(x') \ge D(x)
  - \max_\delta \langle -\nabla D(x), \delta\rangle - \sqrt 3\, \gamma \|w\|_H r^2`, in which the
  linear part knows the norm and the fixed columns of the attack. Where there are few columns the curvature
  at x itself is used: its least eigenvalue, and :math:`\|w\|_H \sqrt{120 \gamma^3}` for the third derivative;
* *expansion*, polynomial kernel of degree p: with t_j = gamma <x, s_j> + coef0,
  :math:`D(x + \delta) = \sum_k \binom{p}{k} \gamma^k \sum_j w_j t_j^{p-k} \langle s_j, \delta\rangle^k`
  exactly. The linear part is as above; the k-th is at most :math:`r^k` times the Frobenius norm of
  :math:`\sum_j c_j s_j^{\otimes k}`, whose square is :math:`c^\top (SS^\top)^{\circ k} c`;
* *far and near*, Laplace kernel: a support vector further than 2r is never met on the way, so that its term
  has a Taylor expansion, with a second derivative of at most :math:`k \max(\gamma^2, \gamma/d)`, k and d at
  the nearest point; near ones take their interval.

Rounding of distances widens the intervals, and the error of the sums is subtracted twice: once for these
sums, once for the model's own at x'. So is what the rounding of distances changes.

Reference: Hein & Andriushchenko, "Formal guarantees on the robustness of a classifier against adversarial
manipulation" (2017), for local Lipschitz bounds of kernel machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..kernels import Gaussian, Laplace
from ._families import Kernels, kernel_vjp
from .threat import Threat

__all__ = ["kernel_lower"]

Array = NDArray[np.float64]
_CELLS = 1 << 21
_HESSIANS = 1 << 29  # products that the Hessians of a block may cost
_LARGEST = 4000  # support vectors up to which the norm in the Hilbert space is computed


def kernel_lower(
    family: Kernels, X: Array, codes: NDArray[np.intp], threats: Sequence[Threat]
) -> Array:
    """Lower bounds of the least margin of each row, for each threat: shape (threats, n)."""
    lower = np.full((len(threats), len(X)), -np.inf)
    height = max(1, _CELLS // max(1, len(family.S)))
    for c in np.unique(codes[codes >= 0]):
        norms = _hilbert_norms(family, family.rivals[c] @ family.a.T)
        mine = np.flatnonzero(codes == c)
        for first in range(0, len(mine), height):
            rows = mine[first : first + height]
            block = _Block(family, X[rows], c, norms)
            for e, threat in enumerate(threats):
                lower[e, rows] = block.lower(threat).min(axis=1)
    return lower


class _Block:
    """Some rows of one class against all support vectors."""

    def __init__(self, family: Kernels, X: Array, c: int, norms: Array | None) -> None:
        self.family, self.X, self.norms, self.A = family, X, norms, family.rivals[c]
        self.W, self.b = self.A @ family.a.T, self.A @ family.b
        kernel: Any = family.kernel
        S, unit = family.S, max(family.unit, 2.0**-52)
        self.terms = (len(S) + 16.0) * unit
        sizes = np.sqrt((X**2).sum(axis=1))[:, None] + np.sqrt((S**2).sum(axis=1))
        if isinstance(kernel, (Gaussian, Laplace)):
            metric = "cityblock" if getattr(kernel, "norm", "l2") == "l1" else "euclidean"
            self.D = np.asarray(cdist(X, S, metric))
            # the model may take distances from lengths and products, which costs unit * sizes^2
            square = (S.shape[1] + 8.0) * unit * sizes**2
            self.slack = np.sqrt(self.D**2 + square) - self.D
            if metric == "cityblock":
                self.slack = (S.shape[1] + 8.0) * unit * (self.D + sizes * math.sqrt(S.shape[1]))
        else:
            self.T = kernel.gamma * (X @ S.T) + kernel.coef0
            self.slack = (
                (S.shape[1] + 8.0) * unit * (abs(kernel.gamma) * sizes**2 + abs(kernel.coef0))
            )
        self.low, self.high = self._range(0.0, None)
        self.now, _ = self._sum(self.low, self.high)
        # what the rounding of distances may change at x', with room to spare
        self.drift = 2.0 * (self._sum(self.high, self.low)[0] - self.now)
        self._slopes: list[Array] | None = None
        self._bottoms: dict[bytes, Array] = {}

    def _range(self, r: Any, reach: Array | None) -> tuple[Array, Array]:
        """The least and largest value of each k(x', s_j)."""
        kernel: Any = self.family.kernel
        if isinstance(kernel, (Gaussian, Laplace)):
            power = 2 if isinstance(kernel, Gaussian) else 1
            wide = np.reshape(r, (-1, 1)) + self.slack
            near, far = np.maximum(self.D - wide, 0.0), self.D + wide
            return np.exp(-kernel.gamma * far**power), np.exp(-kernel.gamma * near**power)
        S = self.family.S
        wide = np.reshape(r, (-1, 1)) * np.sqrt((S**2).sum(axis=1))
        if reach is not None:
            wide = np.minimum(wide, reach @ np.abs(S).T)
        wide = abs(kernel.gamma) * wide + self.slack
        degree = int(kernel.degree)
        ends = (self.T - wide) ** degree, (self.T + wide) ** degree
        low, high = np.minimum(*ends), np.maximum(*ends)
        if degree % 2 == 0 and degree:
            low = np.where(np.abs(self.T) <= wide, 0.0, low)
        return low, high

    def lower(self, threat: Threat) -> Array:
        """For each row and rival, a number that no allowed point's margin is below."""
        kernel: Any = self.family.kernel
        order = 1 if getattr(kernel, "norm", "l2") == "l1" else 2
        r = np.broadcast_to(threat.radius(self.X, order), len(self.X)) * (1.0 + 1e-12)
        low, high = self._range(r, threat.reach(self.X))
        found, error = self._sum(low, high)
        moves: NDArray[np.bool_] = np.any(threat.reach(self.X) > 0, axis=0)
        fall = self._bend(r, moves)
        if fall is not None:
            linear = [threat.worst_linear(self.X, -g).bound for g in self._gradients()]
            fall = fall + np.stack(linear, axis=1) + self._rough * r[:, None]
            found = np.maximum(found, self.now - fall * (1.0 + 1e-12) - self.drift)
        if self.norms is not None:
            power = 2 if isinstance(kernel, Gaussian) else 1
            change = np.sqrt(-2.0 * np.expm1(-kernel.gamma * r**power))[:, None] * self.norms
            found = np.maximum(found, self.now - change * (1.0 + 1e-12) - self.drift)
        if isinstance(kernel, Laplace) and order == 2:
            found = np.maximum(found, self._far_and_near(threat, r, low, high) - self.drift)
        return found - 2.0 * error

    def _far_and_near(self, threat: Threat, r: Array, low: Array, high: Array) -> Array:
        """Laplace kernel: Taylor for the support vectors beyond 2r, intervals for the others."""
        kernel: Any = self.family.kernel
        gamma, S = kernel.gamma, self.family.S
        wide = r[:, None] + self.slack
        far = 2.0 * wide < self.D
        nearest = np.where(far, self.D - wide, 1.0)
        bend = np.where(far, high * np.maximum(gamma**2, gamma / nearest), 0.0)
        slope = np.where(far, -gamma * np.exp(-gamma * self.D) / np.where(far, self.D, 1.0), 0.0)
        longest = np.sqrt((self.X**2).sum(axis=1)) + np.sqrt((S**2).sum(axis=1)).max()
        found = []
        for w, b in zip(self.W, self.b):
            c = w * slope
            g = self.X * c.sum(axis=1)[:, None] - c @ S
            rough = 2.0 * self.terms * self.X.shape[1] * longest * np.abs(c).sum(axis=1)
            fall = (
                threat.worst_linear(self.X, -g).bound + 0.5 * r**2 * (bend @ np.abs(w)) + rough * r
            )
            ends = np.where(far, self.low, low), np.where(far, self.high, high)
            found.append(
                np.where(w > 0, w * ends[0], w * ends[1]).sum(axis=1) + b - fall * (1.0 + 1e-12)
            )
        return np.stack(found, axis=1)

    def _bend(self, r: Array, moves: NDArray[np.bool_]) -> Array | None:
        """What the second and higher derivatives can take away within r; None where no bound is at hand."""
        kernel: Any = self.family.kernel
        if isinstance(kernel, Gaussian) and self.norms is not None:
            everywhere = math.sqrt(3.0) * kernel.gamma * self.norms * (r**2)[:, None]
            bottom = self._curvature(moves)
            if bottom is None:
                return everywhere
            third = math.sqrt(120.0 * kernel.gamma**3) / 6.0 * self.norms * (r**3)[:, None]
            here = 0.5 * (r**2)[:, None] * np.maximum(-bottom, 0.0) + third
            return np.minimum(everywhere, here)
        if isinstance(kernel, (Gaussian, Laplace)) or len(self.family.S) > _LARGEST:
            return None
        G, degree = self.family.S @ self.family.S.T, int(kernel.degree)
        total = np.zeros((len(self.X), len(self.W)))
        sizes = np.abs(self.T) + self.slack
        for k in range(2, degree + 1):
            Gk, part = G**k, np.empty_like(total)
            for i, w in enumerate(self.W):
                c, most = w * self.T ** (degree - k), np.abs(w) * sizes ** (degree - k)
                square = np.einsum("ij,ij->i", c @ Gk, c)
                rounding = (4.0 * len(G) + 64.0 * degree) * max(self.family.unit, 2.0**-52)
                error = rounding * np.einsum("ij,ij->i", most @ np.abs(Gk), most)
                part[:, i] = np.sqrt(np.maximum(square, 0.0) + error)
            total += math.comb(degree, k) * abs(kernel.gamma) ** k * (r**k)[:, None] * part
        return total

    def _curvature(self, moves: NDArray[np.bool_]) -> Array | None:
        """The least eigenvalue of each margin's Hessian in the columns that move, rounded down (Gaussian)."""
        kernel: Any = self.family.kernel
        m, n = int(moves.sum()), len(self.X)
        if not m or n * len(self.family.S) * m * m > _HESSIANS:
            return None
        key = moves.tobytes()
        if key not in self._bottoms:
            gamma, centre = kernel.gamma, self.family.S.mean(axis=0)
            S, X = (self.family.S - centre)[:, moves], (self.X - centre)[:, moves]
            squares = (S[:, :, None] * S[:, None, :]).reshape(len(S), -1)
            longest = np.sqrt((X**2).sum(axis=1)) + np.sqrt((S**2).sum(axis=1)).max()
            K, found = np.exp(-gamma * self.D**2), []
            for w in self.W:
                c = w * K
                total, cross = c.sum(axis=1), X[:, :, None] * (c @ S)[:, None, :]
                spread = (c @ squares).reshape(n, m, m) - cross - cross.transpose(0, 2, 1)
                spread += total[:, None, None] * X[:, :, None] * X[:, None, :]
                least = np.linalg.eigvalsh(4.0 * gamma**2 * spread)[:, 0] - 2.0 * gamma * total
                scale = (gamma * longest**2 + 1.0) * gamma * np.abs(c).sum(axis=1)
                found.append(least - 64.0 * m * self.terms * scale)
            self._bottoms[key] = np.stack(found, axis=1)
        return self._bottoms[key]

    def _sum(self, low: Array, high: Array) -> tuple[Array, Array]:
        plus, minus = np.maximum(self.W, 0.0).T, np.maximum(-self.W, 0.0).T
        sizes = np.maximum(np.abs(low), np.abs(high))
        error = self.terms * (sizes @ np.abs(self.W).T + np.abs(self.b))
        return low @ plus - high @ minus + self.b, error

    def _gradients(self) -> list[Array]:
        """The gradient of the margin against each rival."""
        if self._slopes is None:
            n = len(self.X)
            self._slopes = [kernel_vjp(self.family, self.X, np.tile(row, (n, 1))) for row in self.A]
        return self._slopes

    @property
    def _rough(self) -> Array:
        """The rounding error of a gradient's length: that of a sum over support vectors."""
        kernel: Any = self.family.kernel
        S = self.family.S
        longest = np.sqrt((self.X**2).sum(axis=1)) + np.sqrt((S**2).sum(axis=1)).max()
        if isinstance(kernel, Gaussian):
            longest = longest * (1.0 + kernel.gamma * longest**2)
            each = 2.0 * kernel.gamma * np.abs(self.W).sum(axis=1)
        else:
            top = (np.abs(self.T) + self.slack).max(axis=1, initial=1.0) ** (int(kernel.degree) - 1)
            longest = longest * top
            each = abs(kernel.degree * kernel.gamma) * np.abs(self.W).sum(axis=1)
        return 2.0 * self.terms * self.X.shape[1] * longest[:, None] * each


def _hilbert_norms(family: Kernels, W: Array) -> Array | None:
    """||sum_j w_j k(s_j, .)||_H for each row of W, rounded up; None where the Gram matrix would be large."""
    if len(family.S) > _LARGEST or not isinstance(family.kernel, (Gaussian, Laplace)):
        return None
    K = family._fresh_values(family.S)
    square = np.einsum("rj,rj->r", W @ K, W)
    error = (2.0 * len(K) + 64.0) * 2.0**-52 * np.einsum("rj,rj->r", np.abs(W) @ K, np.abs(W))
    return np.sqrt(np.maximum(square, 0.0) + error)
