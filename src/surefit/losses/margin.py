"""Losses of the margin eta = y z, y in {-1, +1}, and their calibration."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, where
from .base import EDGE, Loss, entropy, sigmoid

__all__ = [
    "Hinge",
    "Logistic",
    "MarginLoss",
    "PerceptronLoss",
    "SquareMargin",
    "SquaredHinge",
    "ZeroOne",
    "logistic_01",
    "risk_minimizer",
    "slopes_at_zero",
]

Array = NDArray[np.float64]


class MarginLoss(Loss):
    """A loss of the margin eta = y z, y in {-1, +1} (LOS-6).

    Subclasses give the scalar function phi(eta) and its derivatives; ``calibrated`` says whether the
    minimiser of the conditional risk has the sign of the Bayes classifier (CAL-1).
    """

    calibrated: ClassVar[bool] = True

    @abstractmethod
    def phi(self, eta: Array) -> Array:
        """The loss as a function of the margin."""

    @abstractmethod
    def slope(self, eta: Array) -> Array:
        """phi'(eta); at a kink, the left derivative."""

    @abstractmethod
    def curvature(self, eta: Array) -> Array:
        """phi''(eta) where it exists."""

    @abstractmethod
    def phi_conjugate(self, a: Array) -> Array:
        """max over eta of ``-a eta - phi(eta)``: the conjugate at theta = -a y."""

    @abstractmethod
    def phi_prox(self, eta: Array, step: float) -> Array:
        """argmin over t of ``phi(t) + (t - eta)^2 / (2 step)``."""

    def pointwise(self, z: Array, y: Array) -> Array:
        return self.phi(y * z)

    def grad(self, z: Array, y: Array) -> Array:
        return y * self.slope(y * z)

    def hess(self, z: Array, y: Array) -> Array:
        return self.curvature(y * z)

    def conjugate(self, theta: Array, y: Array) -> Array:
        return self.phi_conjugate(-y * theta)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        return y * self.phi_prox(y * z, step)


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-eta)) (LOS-7): the negative log-likelihood of P(y|z) = sigma(y z)."""

    smoothness = 0.25
    lipschitz = 1.0

    def phi(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        return xp.log1p(xp.exp(-xp.abs(eta))) - clip(eta, None, 0.0)

    def slope(self, eta: Array) -> Array:
        return -sigmoid(-eta)

    def pointwise_and_grad(self, z: Array, y: Array) -> tuple[Array, Array]:
        eta = y * z
        xp = array_namespace(eta)
        tail = xp.exp(-abs(eta))
        value = xp.log1p(tail) - clip(eta, None, 0.0)
        return value, -y * (xp.exp(clip(-eta, None, 0.0)) / (1.0 + tail))

    def curvature(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        tail = xp.exp(-xp.abs(eta))
        return tail / (1.0 + tail) ** 2

    def phi_conjugate(self, a: Array) -> Array:
        inside = (a >= -EDGE) & (a <= 1.0 + EDGE)
        p = clip(a, 0.0, 1.0)
        return where(inside, entropy(p) + entropy(1.0 - p), math.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        low, high = np.array(eta, dtype=np.float64), np.array(eta + step, dtype=np.float64)
        t = 0.5 * (low + high)
        for _ in range(100):  # Newton on the increasing t - eta - step sigma(-t), in its bracket
            excess = t - eta - step * sigmoid(-t)
            low, high = np.where(excess < 0, t, low), np.where(excess < 0, high, t)
            newton = t - excess / (1.0 + step * self.curvature(t))
            nearer = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
            if np.all(np.abs(nearer - t) <= 1e-15 * (1.0 + np.abs(t))):
                break
            t = nearer
        return t


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """[1 - eta]_+ ; slope -1 at eta <= 1 (LOS-6)."""

    lipschitz = 1.0

    def phi(self, eta: Array) -> Array:
        return clip(1.0 - eta, 0.0, None)

    def slope(self, eta: Array) -> Array:
        return where(eta <= 1.0, -1.0, 0.0)

    def curvature(self, eta: Array) -> Array:
        return array_namespace(eta).zeros_like(eta)

    def phi_conjugate(self, a: Array) -> Array:
        return where((a >= -EDGE) & (a <= 1.0 + EDGE), -a, math.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        return where(eta >= 1.0, eta, clip(eta + step, None, 1.0))


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """[1 - eta]_+ squared."""

    smoothness = 2.0

    def phi(self, eta: Array) -> Array:
        return clip(1.0 - eta, 0.0, None) ** 2

    def slope(self, eta: Array) -> Array:
        return -2.0 * clip(1.0 - eta, 0.0, None)

    def curvature(self, eta: Array) -> Array:
        return where(eta < 1.0, 2.0, 0.0)

    def phi_conjugate(self, a: Array) -> Array:
        return where(a >= -EDGE, -a + 0.25 * a**2, math.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        return where(eta >= 1.0, eta, (eta + 2.0 * step) / (1.0 + 2.0 * step))


@dataclass(frozen=True)
class SquareMargin(MarginLoss):
    """(1 - eta)^2: least squares on labels."""

    smoothness = 2.0

    def phi(self, eta: Array) -> Array:
        return (1.0 - eta) ** 2

    def slope(self, eta: Array) -> Array:
        return -2.0 * (1.0 - eta)

    def curvature(self, eta: Array) -> Array:
        return array_namespace(eta).full_like(eta, 2.0)

    def phi_conjugate(self, a: Array) -> Array:
        return -a + 0.25 * a**2

    def phi_prox(self, eta: Array, step: float) -> Array:
        return (eta + 2.0 * step) / (1.0 + 2.0 * step)


@dataclass(frozen=True)
class PerceptronLoss(MarginLoss):
    """[-eta]_+ ; slope -1 at eta <= 0 (LOS-6). Not calibrated: its conditional minimiser is 0."""

    lipschitz = 1.0
    calibrated = False

    def kink(self, y: Array) -> Array:
        return array_namespace(y).zeros_like(y)

    def phi(self, eta: Array) -> Array:
        return clip(-eta, 0.0, None)

    def slope(self, eta: Array) -> Array:
        return where(eta <= 0.0, -1.0, 0.0)

    def curvature(self, eta: Array) -> Array:
        return array_namespace(eta).zeros_like(eta)

    def phi_conjugate(self, a: Array) -> Array:
        return where((a >= -EDGE) & (a <= 1.0 + EDGE), 0.0, math.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        return where(eta >= 0.0, eta, clip(eta + step, None, 0.0))


@dataclass(frozen=True)
class ZeroOne(MarginLoss):
    """1[eta <= 0]: the mistake itself (LOS-6). Neither convex nor continuous."""

    convex = False

    def phi(self, eta: Array) -> Array:
        return where(eta <= 0.0, 1.0, 0.0)

    def slope(self, eta: Array) -> Array:
        return array_namespace(eta).zeros_like(eta)

    def curvature(self, eta: Array) -> Array:
        return array_namespace(eta).zeros_like(eta)

    def phi_conjugate(self, a: Array) -> Array:
        return where(a == 0.0, 0.0, math.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        raise TypeError("the 0-1 loss has no prox: its infimum over eta > 0 is not attained.")


def logistic_01(g: Array, y: Array) -> Array:
    """The logistic loss in the {0, 1} coding, -y g + log(1 + e^g), stable for any g (LOS-7)."""
    g = np.asarray(g, dtype=np.float64)
    # g >= 0: log(1+e^g) = g + log1p(e^-g), so that (1 - y) g is formed without cancellation.
    tail = np.log1p(np.exp(-np.abs(g)))
    return np.where(g >= 0, (1.0 - y) * g, -y * g) + tail


def risk_minimizer(loss: MarginLoss, p: float, span: float = 20.0) -> float:
    """argmin over z of p loss(z, +1) + (1 - p) loss(z, -1): the conditional risk at P(Y=1|x) = p.

    Examples
    --------
    >>> round(risk_minimizer(Logistic(), 0.7), 4)      # log(0.7 / 0.3), CAL-1
    0.8473
    """
    one = np.ones(1)

    def risk(z: float) -> float:
        at = np.array([z])
        return float(p * loss.pointwise(at, one)[0] + (1.0 - p) * loss.pointwise(at, -one)[0])

    low, high = -span, span
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    while high - low > 1e-9:  # golden section: the risk of a convex loss is convex
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if risk(left) <= risk(right):
            high = right
        else:
            low = left
    return 0.5 * (low + high)


def slopes_at_zero(loss: MarginLoss, h: float = 1e-7) -> tuple[float, float]:
    """Left and right difference quotients of phi at 0.

    Bartlett, Jordan & McAuliffe (2006): a convex margin loss is calibrated iff the two agree and are
    negative (CAL-2).
    """
    at = loss.phi(np.array([-h, 0.0, h]))
    return float((at[1] - at[0]) / h), float((at[2] - at[1]) / h)
