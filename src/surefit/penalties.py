r"""Penalties: what complexity costs, with the prox and the conjugate.

A penalty is a convex function of the coefficients; constraints are penalties that are infinite outside
(OPT-13). The conjugate is

    Omega*(v) = max_w  <v, w> - Omega(w),

and ``feasible_scale(v)`` is the largest t in [0, 1] with Omega*(t v) finite: scaling by it turns
any dual candidate into a feasible one. ``subdiff_distance(w, g)`` measures how far -g is from the
subdifferential at w by the move of a unit prox step: 0 exactly at a minimiser of f + Omega, g the
gradient of f.

Examples
--------
>>> import numpy as np
>>> L1(0.5).prox(np.array([2.0, 0.2]), step=1.0)
array([1.5, 0. ])
>>> L1(0.5).feasible_scale(np.array([2.0, 0.1]))
0.25
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .projections import project_ball, project_box

__all__ = ["L1", "L2", "Ball", "Box", "ElasticNet", "NoPenalty", "Penalty"]

Array = NDArray[np.float64]
_EDGE = 1e-12  # feasibility to rounding


class Penalty(ABC):
    """A convex penalty on the coefficients (of any shape)."""

    strong_convexity: float = 0.0

    @abstractmethod
    def value(self, w: Array) -> float:
        """Omega(w)."""

    @abstractmethod
    def prox(self, w: Array, step: float) -> Array:
        """argmin over u of ``Omega(u) + ||u - w||^2 / (2 step)``."""

    @abstractmethod
    def conjugate(self, v: Array) -> float:
        """Omega*(v)."""

    @abstractmethod
    def feasible_scale(self, v: Array) -> float:
        """Largest t in [0, 1] with Omega*(t v) finite."""

    def subdiff_distance(self, w: Array, grad: Array) -> Array:
        """|fixed-point residual| of a unit prox step: 0 iff -grad is a subgradient at w."""
        return np.abs(w - self.prox(w - grad, 1.0))


@dataclass(frozen=True)
class ElasticNet(Penalty):
    r"""alpha (l1_ratio ||w||_1 + (1 - l1_ratio) ||w||_2^2 / 2), optionally with w >= 0.

    Its conjugate is the squared distance to the l1-ball's dual box,
    sum_j [|v_j| - alpha l1_ratio]_+^2 / (2 alpha (1 - l1_ratio)); the indicator of the box when
    l1_ratio = 1. With ``positive`` only v_j > 0 can exceed the box.
    """

    alpha: float
    l1_ratio: float = 0.5
    positive: bool = False

    def __post_init__(self) -> None:
        if not (self.alpha >= 0 and math.isfinite(self.alpha)):
            raise ValueError(f"alpha must be a non-negative finite number, got {self.alpha!r}.")
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise ValueError(f"l1_ratio must lie in [0, 1], got {self.l1_ratio!r}.")

    @property
    def l1(self) -> float:
        """Weight of ||w||_1."""
        return self.alpha * self.l1_ratio

    @property
    def l2(self) -> float:
        """Weight of ||w||_2^2 / 2."""
        return self.alpha * (1.0 - self.l1_ratio)

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        return self.l2

    def value(self, w: Array) -> float:
        if self.positive and (w < 0).any():
            return math.inf
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * np.vdot(w, w))

    def prox(self, w: Array, step: float) -> Array:
        shrunk = np.maximum(np.abs(w) - step * self.l1, 0.0)
        if self.positive:
            return np.where(w > 0, shrunk, 0.0) / (1.0 + step * self.l2)
        return np.sign(w) * shrunk / (1.0 + step * self.l2)

    def _outside(self, v: Array) -> Array:
        size = v if self.positive else np.abs(v)
        return np.maximum(size - self.l1, 0.0)

    def conjugate(self, v: Array) -> float:
        outside = self._outside(v)
        if self.l2 > 0:
            return float(np.vdot(outside, outside) / (2.0 * self.l2))
        return 0.0 if outside.max(initial=0.0) <= _EDGE * self.l1 else math.inf

    def feasible_scale(self, v: Array) -> float:
        if self.l2 > 0:
            return 1.0
        largest = float((v if self.positive else np.abs(v)).max(initial=0.0))
        return 1.0 if largest <= self.l1 else self.l1 / largest


class L1(ElasticNet):
    """alpha ||w||_1."""

    def __init__(self, alpha: float, *, positive: bool = False) -> None:
        super().__init__(alpha, 1.0, positive)


class L2(ElasticNet):
    """(alpha / 2) ||w||_2^2."""

    def __init__(self, alpha: float, *, positive: bool = False) -> None:
        super().__init__(alpha, 0.0, positive)


class NoPenalty(L1):
    """Omega = 0: the conjugate is finite at v = 0 only (at v <= 0 with ``positive``)."""

    def __init__(self, *, positive: bool = False) -> None:
        super().__init__(0.0, positive=positive)


@dataclass(frozen=True)
class Box(Penalty):
    """The constraint low <= w <= high, as an indicator."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"low must not exceed high, got low={self.low!r}, high={self.high!r}.")

    def value(self, w: Array) -> float:
        ends = [abs(end) for end in (self.low, self.high) if math.isfinite(end)]
        slack = _EDGE * max(ends, default=0.0)
        return 0.0 if ((w >= self.low - slack) & (w <= self.high + slack)).all() else math.inf

    def prox(self, w: Array, step: float) -> Array:
        return project_box(w, self.low, self.high)

    def conjugate(self, v: Array) -> float:
        moving = v[v != 0.0]  # an infinite end times 0 counts as 0
        return float(np.maximum(self.low * moving, self.high * moving).sum())

    def feasible_scale(self, v: Array) -> float:
        return 1.0 if math.isfinite(self.conjugate(v)) else 0.0


@dataclass(frozen=True)
class Ball(Penalty):
    """The constraint ||w||_2 <= radius, as an indicator."""

    radius: float

    def __post_init__(self) -> None:
        if not self.radius >= 0:
            raise ValueError(f"radius must be non-negative, got {self.radius!r}.")

    def value(self, w: Array) -> float:
        return 0.0 if np.linalg.norm(w) <= self.radius * (1 + _EDGE) else math.inf

    def prox(self, w: Array, step: float) -> Array:
        return project_ball(w, self.radius)

    def conjugate(self, v: Array) -> float:
        return float(self.radius * np.linalg.norm(v))

    def feasible_scale(self, v: Array) -> float:
        return 1.0
