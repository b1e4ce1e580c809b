"""What a loss is: the interface that solvers and certificates use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, where
from .._threads import by_rows, sum_rows

__all__ = ["EDGE", "Loss", "entropy", "sigmoid"]

Array = NDArray[np.float64]
# A dual coordinate may leave its domain by rounding alone; it is read as the nearest end.
EDGE = 1e-12
_TINY = float(np.finfo(np.float64).tiny)


class Loss(ABC):
    """A separable loss on raw predictions.

    Attributes
    ----------
    convex : bool
        Convex in z for every y.
    smoothness : float
        Largest curvature in z; infinite where the derivative jumps.
    lipschitz : float
        Largest slope in z.
    """

    convex: ClassVar[bool] = True
    smoothness: float = math.inf
    lipschitz: float = math.inf

    @abstractmethod
    def pointwise(self, z: Array, y: Array) -> Array:
        """The loss of each sample."""

    @abstractmethod
    def grad(self, z: Array, y: Array) -> Array:
        """Derivative in z of each sample's loss; the documented subgradient at a kink."""

    @abstractmethod
    def hess(self, z: Array, y: Array) -> Array:
        """Second derivative in z of each sample's loss, where it exists (0 at kinks)."""

    @abstractmethod
    def conjugate(self, theta: Array, y: Array) -> Array:
        """Fenchel conjugate of each sample's loss."""

    @abstractmethod
    def prox(self, z: Array, y: Array, step: float) -> Array:
        """argmin over t of ``loss(t, y) + (t - z)^2 / (2 step)``, sample by sample."""

    def pointwise_and_grad(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Both at once, where they share work."""
        return self.pointwise(z, y), self.grad(z, y)

    def kink(self, y: Array) -> Array:
        """For a piecewise linear loss, the prediction at which it bends."""
        return y

    def value(self, z: Array, y: Array, sample_weight: Array | None = None) -> float:
        """The (weighted) mean loss."""
        losses = self.pointwise(z, y)
        if sample_weight is None:
            return float(losses.mean())
        return float(sample_weight @ losses / sample_weight.sum())

    def balance(self, theta: Array, y: Array, weights: Array) -> Array:
        """A dual point near ``theta`` with ``sum(weights * theta) = 0``, still in the domain.

        The domain of every convex loss here contains 0 and is convex, so shrinking the heavier sign
        keeps each coordinate feasible.
        """
        up = float(sum_rows(lambda t, s: s @ clip(t, 0.0, None), theta, weights))
        down = float(sum_rows(lambda t, s: s @ clip(-t, 0.0, None), theta, weights))
        if up == down:
            return theta
        if up > down:
            return by_rows(lambda t: where(t > 0, t * (down / up), t), theta)
        return by_rows(lambda t: where(t < 0, t * (up / down), t), theta)


def sigmoid(t: Array) -> Array:
    """1 / (1 + e^-t) (LOG-1), without overflow and with full relative accuracy in both tails."""
    xp = array_namespace(t)
    return xp.exp(clip(t, None, 0.0)) / (1.0 + xp.exp(-xp.abs(t)))


def entropy(p: Array) -> Array:
    """p log p for p >= 0, which is 0 at p = 0."""
    return p * array_namespace(p).log(clip(p, _TINY, None))
