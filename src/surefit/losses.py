r"""Losses: what a prediction costs, with everything a solver or a certificate asks of it.

A loss sees raw predictions ``z`` and targets ``y``, never ``X``. Three families share one interface:

* regression losses of the error e = y - z: squared (halved), absolute, quantile, Huber, Tukey;
* margin losses of eta = y z with y in {-1, +1}: logistic, hinge, squared hinge, square, perceptron, 0-1;
* the softmax cross-entropy of z in R^K with y in {0, ..., K-1}.

All methods work sample by sample. ``grad`` is the derivative in z (a subgradient where there is a kink),
``hess`` the second derivative, ``conjugate`` the Fenchel conjugate in z,

    l*(theta, y) = max_z  theta z - l(z, y)      (+inf outside its domain),

and ``prox`` the minimiser of l(t, y) + (t - z)^2 / (2 step). The flags (``convex``, ``smoothness``,
``lipschitz``, ``symmetric``, ``robust``, ``calibrated``) are checked numerically by
:func:`surefit.testing.check_loss` for every class below.

Examples
--------
>>> import numpy as np
>>> loss = Huber(delta=1.0)
>>> loss.pointwise(np.array([0.5, 3.0]), np.zeros(2))
array([0.125, 2.5  ])
>>> theta = loss.grad(np.array([0.5, 3.0]), np.zeros(2))
>>> loss.conjugate(theta, np.zeros(2))            # Fenchel-Young: l + l* = theta z
array([0.125, 0.5  ])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax, xlogy

__all__ = [
    "Absolute",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MarginLoss",
    "PerceptronLoss",
    "Quantile",
    "RegressionLoss",
    "Softmax",
    "SquareMargin",
    "Squared",
    "SquaredHinge",
    "Tukey",
    "ZeroOne",
    "logistic_01",
    "risk_minimizer",
    "slopes_at_zero",
]

Array = NDArray[np.float64]
# A dual coordinate may leave its domain by rounding alone; it is read as the nearest end.
_EDGE = 1e-12


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

    def kink(self, y: Array) -> Array:
        """For a piecewise linear loss, the prediction at which it bends."""
        return y

    def value(self, z: Array, y: Array, sample_weight: Array | None = None) -> float:
        """The (weighted) mean loss."""
        return float(np.average(self.pointwise(z, y), weights=sample_weight))

    def balance(self, theta: Array, y: Array, weights: Array) -> Array:
        """A dual point near ``theta`` with ``sum(weights * theta) = 0``, still in the domain.

        The domain of every convex loss here contains 0 and is convex, so shrinking the heavier sign
        keeps each coordinate feasible.
        """
        up = float(weights @ np.maximum(theta, 0.0))
        down = float(weights @ np.maximum(-theta, 0.0))
        if up == down:
            return theta
        if up > down:
            return np.where(theta > 0, theta * (down / up), theta)
        return np.where(theta < 0, theta * (up / down), theta)


# ---------------------------------------------------------------------------- regression


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
        return np.ones_like(z)

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
        return np.where(e > 0, self.up * e, -self.down * e)

    def grad(self, z: Array, y: Array) -> Array:
        return np.where(y > z, -self.up, np.where(y < z, self.down, 0.0))

    def hess(self, z: Array, y: Array) -> Array:
        return np.zeros_like(z)

    def conjugate(self, theta: Array, y: Array) -> Array:
        inside = (theta >= -self.up * (1 + _EDGE)) & (theta <= self.down * (1 + _EDGE))
        return np.where(inside, theta * y, np.inf)

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
        e = np.abs(y - z)
        return np.where(e <= self.delta, 0.5 * e**2, self.delta * (e - 0.5 * self.delta))

    def grad(self, z: Array, y: Array) -> Array:
        return np.clip(z - y, -self.delta, self.delta)

    def hess(self, z: Array, y: Array) -> Array:
        return np.where(np.abs(y - z) <= self.delta, 1.0, 0.0)

    def conjugate(self, theta: Array, y: Array) -> Array:
        inside = np.abs(theta) <= self.delta * (1 + _EDGE)
        return np.where(inside, 0.5 * theta**2 + theta * y, np.inf)

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
        u = np.minimum(((y - z) / self.delta) ** 2, 1.0)
        return self.delta**2 / 6.0 * u * (3.0 - 3.0 * u + u**2)  # 1 - (1 - u)^3, not cancelled

    def grad(self, z: Array, y: Array) -> Array:
        r = z - y
        return r * np.maximum(1.0 - (r / self.delta) ** 2, 0.0) ** 2

    def hess(self, z: Array, y: Array) -> Array:
        u = ((z - y) / self.delta) ** 2
        return np.where(u <= 1.0, (1.0 - u) * (1.0 - 5.0 * u), 0.0)

    def conjugate(self, theta: Array, y: Array) -> Array:
        """A bounded loss grows slower than any line: finite at theta = 0 only, where it is 0."""
        return np.where(theta == 0.0, 0.0, np.inf)

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


# ---------------------------------------------------------------------------- margins


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
        return np.logaddexp(0.0, -eta)

    def slope(self, eta: Array) -> Array:
        return -expit(-eta)

    def curvature(self, eta: Array) -> Array:
        return expit(eta) * expit(-eta)

    def phi_conjugate(self, a: Array) -> Array:
        inside = (a >= -_EDGE) & (a <= 1.0 + _EDGE)
        p = np.clip(a, 0.0, 1.0)
        return np.where(inside, xlogy(p, p) + xlogy(1.0 - p, 1.0 - p), np.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        low, high = np.array(eta, dtype=np.float64), np.array(eta + step, dtype=np.float64)
        t = 0.5 * (low + high)
        for _ in range(
            100
        ):  # Newton on the increasing t - eta - step sigma(-t), kept in its bracket
            excess = t - eta - step * expit(-t)
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
        return np.maximum(1.0 - eta, 0.0)

    def slope(self, eta: Array) -> Array:
        return np.where(eta <= 1.0, -1.0, 0.0)

    def curvature(self, eta: Array) -> Array:
        return np.zeros_like(eta)

    def phi_conjugate(self, a: Array) -> Array:
        return np.where((a >= -_EDGE) & (a <= 1.0 + _EDGE), -a, np.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        return np.where(eta >= 1.0, eta, np.minimum(eta + step, 1.0))


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """[1 - eta]_+ squared."""

    smoothness = 2.0

    def phi(self, eta: Array) -> Array:
        return np.maximum(1.0 - eta, 0.0) ** 2

    def slope(self, eta: Array) -> Array:
        return -2.0 * np.maximum(1.0 - eta, 0.0)

    def curvature(self, eta: Array) -> Array:
        return np.where(eta < 1.0, 2.0, 0.0)

    def phi_conjugate(self, a: Array) -> Array:
        return np.where(a >= -_EDGE, -a + 0.25 * a**2, np.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        return np.where(eta >= 1.0, eta, (eta + 2.0 * step) / (1.0 + 2.0 * step))


@dataclass(frozen=True)
class SquareMargin(MarginLoss):
    """(1 - eta)^2: least squares on labels."""

    smoothness = 2.0

    def phi(self, eta: Array) -> Array:
        return (1.0 - eta) ** 2

    def slope(self, eta: Array) -> Array:
        return -2.0 * (1.0 - eta)

    def curvature(self, eta: Array) -> Array:
        return np.full_like(eta, 2.0)

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
        return np.zeros_like(y)

    def phi(self, eta: Array) -> Array:
        return np.maximum(-eta, 0.0)

    def slope(self, eta: Array) -> Array:
        return np.where(eta <= 0.0, -1.0, 0.0)

    def curvature(self, eta: Array) -> Array:
        return np.zeros_like(eta)

    def phi_conjugate(self, a: Array) -> Array:
        return np.where((a >= -_EDGE) & (a <= 1.0 + _EDGE), 0.0, np.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        return np.where(eta >= 0.0, eta, np.minimum(eta + step, 0.0))


@dataclass(frozen=True)
class ZeroOne(MarginLoss):
    """1[eta <= 0]: the mistake itself (LOS-6). Neither convex nor continuous."""

    convex = False

    def phi(self, eta: Array) -> Array:
        return (eta <= 0.0).astype(np.float64)

    def slope(self, eta: Array) -> Array:
        return np.zeros_like(eta)

    def curvature(self, eta: Array) -> Array:
        return np.zeros_like(eta)

    def phi_conjugate(self, a: Array) -> Array:
        return np.where(a == 0.0, 0.0, np.inf)

    def phi_prox(self, eta: Array, step: float) -> Array:
        raise TypeError("the 0-1 loss has no prox: its infimum over eta > 0 is not attained.")


# ---------------------------------------------------------------------------- several classes


@dataclass(frozen=True)
class Softmax(Loss):
    """-log softmax(z)_y for z in R^K and y in {0, ..., K-1} (LOS-8).

    ``grad`` is p - onehot(y). ``hess`` returns the probabilities p: the Hessian of a sample is
    diag(p) - p p'. The dual point theta = p - onehot(y) ranges over a shifted simplex, where the
    conjugate is the negative entropy of p.
    """

    smoothness = 0.5
    lipschitz = math.sqrt(2.0)

    def pointwise(self, z: Array, y: Array) -> Array:
        return logsumexp(z, axis=1) - z[np.arange(len(z)), y.astype(np.intp)]

    def grad(self, z: Array, y: Array) -> Array:
        p: Array = softmax(z, axis=1)
        p[np.arange(len(z)), y.astype(np.intp)] -= 1.0
        return p

    def hess(self, z: Array, y: Array) -> Array:
        return softmax(z, axis=1)

    def conjugate(self, theta: Array, y: Array) -> Array:
        p = theta.copy()
        p[np.arange(len(p)), y.astype(np.intp)] += 1.0
        inside = (p >= -_EDGE).all(axis=1) & (np.abs(p.sum(axis=1) - 1.0) <= _EDGE * p.shape[1])
        p = np.maximum(p, 0.0)
        return np.where(inside, xlogy(p, p).sum(axis=1), np.inf)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        """Newton, halved row by row until the strongly convex objective falls."""
        t = z.astype(np.float64)

        def objective(t: Array) -> Array:
            return self.pointwise(t, y) + ((t - z) ** 2).sum(axis=1) / (2.0 * step)

        value = objective(t)
        for _ in range(200):  # the Jacobian of t - z + step grad is I + step (diag p - p p')
            p = softmax(t, axis=1)
            residual = t - z + step * self.grad(t, y)
            scaled = 1.0 / (1.0 + step * p)
            rank_one = (scaled * p * residual).sum(axis=1) / (
                1.0 - step * (scaled * p**2).sum(axis=1)
            )
            move = scaled * (residual + step * p * rank_one[:, None])
            length = np.ones((len(t), 1))
            noise = 1e-14 * (np.abs(value) + np.abs(t).max(axis=1))
            for _ in range(60):
                worse = objective(t - length * move) > value + noise
                if not worse.any():
                    break
                length[worse] /= 2.0
            t = t - length * move
            value = objective(t)
            if (np.abs(length * move) <= 2e-16 * (1.0 + np.abs(t))).all():
                break
        return t

    def balance(self, theta: Array, y: Array, weights: Array) -> Array:
        """Shift each class to balance, then mix with the class frequencies until all are feasible.

        The frequencies themselves are a balanced point in the interior, so a small mixture repairs
        the coordinates that a shift pushed below zero.
        """
        rows = np.arange(len(theta))
        onehot = np.zeros_like(theta)
        onehot[rows, y.astype(np.intp)] = 1.0
        total = weights.sum()
        frequencies = weights @ onehot / total
        p = theta + onehot - (weights @ theta) / total
        short = np.where(p < 0, -p / np.maximum(frequencies - p, 1e-300), 0.0)
        mix = float(short.max(initial=0.0))
        return (1.0 - mix) * p + mix * frequencies - onehot


# ---------------------------------------------------------------------------- helpers


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


def _check_delta(delta: Any) -> None:
    if not delta > 0 or not math.isfinite(delta):
        raise ValueError(f"delta must be a positive finite number, got {delta!r}.")
