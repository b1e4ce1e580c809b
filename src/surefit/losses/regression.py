"""Losses of the error e = y - z: squared, absolute, quantile, Huber, Tukey."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, where
from .base import EDGE, Loss

__all__ = ["Absolute", "Huber", "Quantile", "RegressionLoss", "Squared", "Tukey"]

Array = NDArray[np.float64]


class RegressionLoss(Loss):
    """A loss of the error e = y - z.

    Attributes
    ----------
    symmetric : bool
        Over- and under-estimation by the same amount cost the same.
    robust : bool
        Bounded influence: the slope stays bounded as the error grows.
    """

    symmetric: bool = True
    robust: bool = True


@dataclass(frozen=True)
class Squared(RegressionLoss):
    """Half the squared error, e^2 / 2 (LOS-2). Its mean has gradient -X'e / n."""

    robust = False
    smoothness = 1.0

    def pointwise(self, z: Array, y: Array) -> Array:
        return 0.5 * (y - z) ** 2

    def grad(self, z: Array, y: Array) -> Array:
        return z - y

    def hess(self, z: Array, y: Array) -> Array:
        return array_namespace(z).ones_like(z)

    def conjugate(self, theta: Array, y: Array) -> Array:
        return 0.5 * theta**2 + theta * y

    def prox(self, z: Array, y: Array, step: float) -> Array:
        return (z + step * y) / (1.0 + step)

    def balance(self, theta: Array, y: Array, weights: Array) -> Array:
        """The domain is the whole line, so the nearest balanced point is a shift."""
        return theta - (weights @ theta) / weights.sum()


@dataclass(frozen=True)
class _Pinball(RegressionLoss):
    """Slope ``up`` per unit of under-estimation (y > z), ``down`` per unit of over-estimation."""

    up: float
    down: float

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return max(self.up, self.down)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.up == self.down

    def pointwise(self, z: Array, y: Array) -> Array:
        e = y - z
        return where(e > 0, self.up * e, -self.down * e)

    def grad(self, z: Array, y: Array) -> Array:
        return where(y > z, -self.up, where(y < z, self.down, 0.0))

    def hess(self, z: Array, y: Array) -> Array:
        return array_namespace(z).zeros_like(z)

    def conjugate(self, theta: Array, y: Array) -> Array:
        inside = (theta >= -self.up * (1 + EDGE)) & (theta <= self.down * (1 + EDGE))
        return where(inside, theta * y, math.inf)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        return (
            y + np.maximum(z - y - step * self.down, 0.0) - np.maximum(y - z - step * self.up, 0.0)
        )


class Absolute(_Pinball):
    """The absolute error |e| (LOS-3); its constant minimiser is the median."""

    def __init__(self) -> None:
        super().__init__(1.0, 1.0)


class Quantile(_Pinball):
    """The pinball loss q e_+ + (1 - q) (-e)_+; its constant minimiser is the q-quantile."""

    def __init__(self, q: float = 0.5) -> None:
        if not 0.0 < q < 1.0:
            raise ValueError(f"q must lie strictly between 0 and 1, got {q!r}; 0.5 is the median.")
        super().__init__(q, 1.0 - q)


@dataclass(frozen=True)
class Huber(RegressionLoss):
    """e^2 / 2 up to |e| = delta, then delta |e| - delta^2 / 2 (LOS-4)."""

    delta: float = 1.35
    smoothness = 1.0

    def __post_init__(self) -> None:
        _check_delta(self.delta)

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return self.delta

    def pointwise(self, z: Array, y: Array) -> Array:
        e = abs(y - z)
        return where(e <= self.delta, 0.5 * e**2, self.delta * (e - 0.5 * self.delta))

    def grad(self, z: Array, y: Array) -> Array:
        return clip(z - y, -self.delta, self.delta)

    def hess(self, z: Array, y: Array) -> Array:
        return where(abs(y - z) <= self.delta, 1.0, 0.0)

    def conjugate(self, theta: Array, y: Array) -> Array:
        inside = abs(theta) <= self.delta * (1 + EDGE)
        return where(inside, 0.5 * theta**2 + theta * y, math.inf)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        r = z - y
        near = np.abs(r) <= self.delta * (1.0 + step)
        return np.where(near, y + r / (1.0 + step), z - step * self.delta * np.sign(r))


@dataclass(frozen=True)
class Tukey(RegressionLoss):
    """Tukey's bisquare, (delta^2 / 6) (1 - (1 - e^2 / delta^2)^3), capped at delta^2 / 6 (LOS-5).

    Not convex: an error beyond delta has no influence at all.
    """

    delta: float = 4.685
    convex = False
    smoothness = 1.0

    def __post_init__(self) -> None:
        _check_delta(self.delta)

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return 16.0 * self.delta / (25.0 * math.sqrt(5.0))  # |e (1 - e^2/d^2)^2| peaks at d/sqrt(5)

    def pointwise(self, z: Array, y: Array) -> Array:
        u = clip(((y - z) / self.delta) ** 2, None, 1.0)
        return self.delta**2 / 6.0 * u * (3.0 - 3.0 * u + u**2)  # 1 - (1 - u)^3, not cancelled

    def grad(self, z: Array, y: Array) -> Array:
        r = z - y
        return r * clip(1.0 - (r / self.delta) ** 2, 0.0, None) ** 2

    def hess(self, z: Array, y: Array) -> Array:
        u = ((z - y) / self.delta) ** 2
        return where(u <= 1.0, (1.0 - u) * (1.0 - 5.0 * u), 0.0)

    def conjugate(self, theta: Array, y: Array) -> Array:
        """A bounded loss grows slower than any line: finite at theta = 0 only, where it is 0."""
        return where(theta == 0.0, 0.0, math.inf)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        """The best stationary point: roots of u + step u (1 - u^2 / delta^2)^2 = z - y."""
        r = np.atleast_1d((z - y) / self.delta)
        best = r.copy()
        cost = np.where(np.abs(r) <= 1.0, np.inf, self.delta**2 / 6.0)
        for i, target in enumerate(r):
            roots = np.roots([step, 0.0, -2.0 * step, 0.0, 1.0 + step, -target])
            real = roots[np.abs(roots.imag) < 1e-9].real
            for u in real[np.abs(real) <= 1.0]:
                c = self.delta**2 * ((1 - (1 - u**2) ** 3) / 6.0 + (u - target) ** 2 / (2 * step))
                if c < cost[i]:
                    best[i], cost[i] = u, c
        return y + self.delta * best.reshape(np.shape(z))


def _check_delta(delta: Any) -> None:
    if not delta > 0 or not math.isfinite(delta):
        raise ValueError(f"delta must be a positive finite number, got {delta!r}.")
