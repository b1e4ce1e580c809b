"""Losses that forgive: errors inside a tube, and outliers of a margin loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, where
from .base import EDGE
from .margin import MarginLoss
from .regression import RegressionLoss

__all__ = ["EpsilonInsensitive", "ModifiedHuber", "SquaredEpsilonInsensitive"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ModifiedHuber(MarginLoss):
    """[1 - eta]_+ squared down to eta = -1, then -4 eta: a squared hinge with bounded influence.

    Its conditional minimiser is 2p - 1, so that (1 + z) / 2, clipped, estimates p (Zhang, 2004).
    """

    smoothness = 2.0
    lipschitz = 4.0

    def phi(self, eta: Array) -> Array:
        return where(eta < -1.0, -4.0 * eta, clip(1.0 - eta, 0.0, None) ** 2)

    def slope(self, eta: Array) -> Array:
        return -2.0 * clip(1.0 - eta, 0.0, 2.0)

    def curvature(self, eta: Array) -> Array:
        return where((eta < 1.0) & (eta >= -1.0), 2.0, 0.0)

    def phi_conjugate(self, a: Array) -> Array:
        inside = (a >= -EDGE) & (a <= 4.0 * (1.0 + EDGE))
        return where(inside, -a + 0.25 * a**2, math.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        bent = (eta + 2.0 * step) / (1.0 + 2.0 * step)
        return where(eta >= 1.0, eta, where(bent >= -1.0, bent, eta + 4.0 * step))


@dataclass(frozen=True)
class EpsilonInsensitive(RegressionLoss):
    """[|e| - epsilon]_+: errors inside the tube cost nothing (the loss of support vector regression)."""

    epsilon: float = 0.1
    lipschitz = 1.0

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)

    def kink(self, y: Array) -> Array:
        """Both edges of the tube, one a row."""
        return array_namespace(y).stack([y - self.epsilon, y + self.epsilon])

    def pointwise(self, z: Array, y: Array) -> Array:
        return clip(abs(y - z) - self.epsilon, 0.0, None)

    def grad(self, z: Array, y: Array) -> Array:
        return where(z - y > self.epsilon, 1.0, where(y - z > self.epsilon, -1.0, 0.0))

    def hess(self, z: Array, y: Array) -> Array:
        return array_namespace(z).zeros_like(z)

    def conjugate(self, theta: Array, y: Array) -> Array:
        inside = abs(theta) <= 1.0 + EDGE
        return where(inside, theta * y + self.epsilon * abs(theta), math.inf)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        r = z - y
        beyond = where(abs(r) - step > self.epsilon, abs(r) - step, self.epsilon)
        return where(abs(r) <= self.epsilon, z, y + array_namespace(r).sign(r) * beyond)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(RegressionLoss):
    """[|e| - epsilon]_+ squared."""

    epsilon: float = 0.1
    robust = False
    smoothness = 2.0

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)

    def pointwise(self, z: Array, y: Array) -> Array:
        return clip(abs(y - z) - self.epsilon, 0.0, None) ** 2

    def grad(self, z: Array, y: Array) -> Array:
        r = z - y
        return 2.0 * (r - clip(r, -self.epsilon, self.epsilon))

    def hess(self, z: Array, y: Array) -> Array:
        return where(abs(y - z) > self.epsilon, 2.0, 0.0)

    def conjugate(self, theta: Array, y: Array) -> Array:
        return theta * y + self.epsilon * abs(theta) + 0.25 * theta**2

    def prox(self, z: Array, y: Array, step: float) -> Array:
        r = z - y
        near = clip(r, -self.epsilon, self.epsilon)
        return y + near + (r - near) / (1.0 + 2.0 * step)


def _check_epsilon(epsilon: float) -> None:
    if not epsilon >= 0 or not math.isfinite(epsilon):
        raise ValueError(f"epsilon must be a non-negative finite number, got {epsilon!r}.")
