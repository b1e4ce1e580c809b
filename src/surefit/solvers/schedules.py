r"""Step sizes as functions of the step number (OPT-18).

A schedule is a small frozen dataclass: ``schedule(t)`` is the step length of step ``t = 0, 1, 2, ...``.
Its ``robbins_monro`` property says whether it meets the conditions under which stochastic
approximation converges with probability one (Robbins & Monro, 1951),

.. math:: \sum_t \eta_t = \infty, \qquad \sum_t \eta_t^2 < \infty:

the steps reach any distance, and the noise they admit is finite.

=====================  ==================================  ====================  ==================
schedule               :math:`\eta_t`                      :math:`\sum\eta_t`    :math:`\sum\eta_t^2`
=====================  ==================================  ====================  ==================
:class:`Constant`      :math:`\eta_0`                      infinite              infinite
:class:`StepDecay`     :math:`\eta_0 / 10^j`               infinite              infinite
:class:`InverseTime`   :math:`\eta_0 / (1 + ct)`           infinite              **finite**
:class:`InverseSqrt`   :math:`\eta_0 / \sqrt{1 + ct}`      infinite              infinite
:class:`WarmupCosine`  ramp, then half a cosine            finite if it ends     as the last value
                                                           at zero
=====================  ==================================  ====================  ==================

References
----------
H. Robbins, S. Monro. A stochastic approximation method. Annals of Mathematical Statistics 22, 1951.
I. Loshchilov, F. Hutter. SGDR: stochastic gradient descent with warm restarts. ICLR 2017.

Examples
--------
>>> schedule = StepDecay(0.1, milestones=(30, 60))
>>> [schedule(t) for t in (0, 29, 30, 59, 60)]
[0.1, 0.1, 0.01, 0.01, 0.001]
>>> [s.robbins_monro for s in (Constant(0.1), InverseTime(0.1, 1.0), InverseSqrt(0.1, 1.0))]
[False, True, False]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, TypeAlias

__all__ = [
    "Constant",
    "InverseSqrt",
    "InverseTime",
    "Schedule",
    "StepDecay",
    "StepSize",
    "WarmupCosine",
    "as_schedule",
]

StepSize: TypeAlias = float | Callable[[int], float]


class Schedule(Protocol):
    """What the classes of this file have in common; a plain function of ``t`` serves as well."""

    @property
    def robbins_monro(self) -> bool: ...

    def __call__(self, t: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    """The same step for ever: ``eta0``."""

    eta0: float

    def __post_init__(self) -> None:
        _check_positive("eta0", self.eta0)

    @property
    def robbins_monro(self) -> bool:
        """False: the squares do not sum, so the noise never dies."""
        return False

    def __call__(self, t: int) -> float:
        return self.eta0


@dataclass(frozen=True)
class StepDecay:
    """``eta0``, then a tenth of it from ``milestones[0]`` on, a hundredth from ``milestones[1]`` on."""

    eta0: float
    milestones: tuple[int, ...]
    divide_by: float = 10.0

    def __post_init__(self) -> None:
        _check_positive("eta0", self.eta0)
        _check_positive("divide_by", self.divide_by)
        if (
            list(self.milestones) != sorted(set(self.milestones))
            or min(self.milestones, default=0) < 0
        ):
            raise ValueError(
                f"milestones must be increasing non-negative step numbers, got {self.milestones!r}; "
                "for example milestones=(30, 60)."
            )

    @property
    def robbins_monro(self) -> bool:
        """False: after the last milestone the step is constant."""
        return False

    def __call__(self, t: int) -> float:
        passed = sum(t >= milestone for milestone in self.milestones)
        return self.eta0 / self.divide_by**passed


@dataclass(frozen=True)
class InverseTime:
    """``eta0 / (1 + c t)``; ``InverseTime(1, 1)`` is the step 1/k of step number k = t + 1."""

    eta0: float
    c: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("eta0", self.eta0)
        _check_not_negative("c", self.c)

    @property
    def robbins_monro(self) -> bool:
        """True for c > 0 (harmonic against Basel); with c = 0 the step is constant."""
        return self.c > 0

    def __call__(self, t: int) -> float:
        return self.eta0 / (1.0 + self.c * t)


@dataclass(frozen=True)
class InverseSqrt:
    """``eta0 / sqrt(1 + c t)``: what the subgradient and the stochastic convex rates ask for."""

    eta0: float
    c: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("eta0", self.eta0)
        _check_not_negative("c", self.c)

    @property
    def robbins_monro(self) -> bool:
        """False: the squares are the harmonic series. Averaging the iterates makes up for it."""
        return False

    def __call__(self, t: int) -> float:
        return self.eta0 / math.sqrt(1.0 + self.c * t)


@dataclass(frozen=True)
class WarmupCosine:
    """A linear ramp to ``eta0`` over ``warmup`` steps, then half a cosine down to ``final`` at ``total``.

    The ramp starts at ``eta0 / warmup``, not at zero: every step moves. From ``total`` on the step
    is ``final``.
    """

    eta0: float
    total: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        _check_positive("eta0", self.eta0)
        _check_not_negative("final", self.final)
        if not 0 <= self.warmup < self.total:
            raise ValueError(
                f"warmup must be at least 0 and below total, got warmup={self.warmup}, "
                f"total={self.total}; a tenth of total is usual."
            )

    @property
    def robbins_monro(self) -> bool:
        """False: it ends at zero (finite sum) or at a constant (infinite sum of squares)."""
        return False

    def __call__(self, t: int) -> float:
        if t < self.warmup:
            return self.eta0 * (t + 1) / self.warmup
        if t >= self.total:
            return self.final
        phase = (t - self.warmup) / (self.total - self.warmup)
        return self.final + (self.eta0 - self.final) * 0.5 * (1.0 + math.cos(math.pi * phase))


def as_schedule(step: StepSize) -> Callable[[int], float]:
    """A number becomes a :class:`Constant`; a function is used as it is, its values checked.

    Examples
    --------
    >>> as_schedule(0.5)(7)
    0.5
    >>> as_schedule(-1.0)
    Traceback (most recent call last):
    ...
    ValueError: step must be a positive finite number, got -1.0; 1/L suits an L-smooth function.
    """
    given: Any = step
    if isinstance(given, Real):
        if not 0 < float(given) < math.inf:
            raise ValueError(
                f"step must be a positive finite number, got {given!r}; "
                "1/L suits an L-smooth function."
            )
        return Constant(float(given))
    if not callable(given):
        raise TypeError(
            f"step must be a number or a function of the step number, got {given!r}; "
            "for example 0.1 or surefit.solvers.InverseSqrt(0.1)."
        )

    def checked(t: int) -> float:
        eta = float(given(t))
        if not 0 <= eta < math.inf:
            raise ValueError(
                f"step({t}) must be a non-negative finite number, got {eta!r}; correct the schedule."
            )
        return eta

    return checked


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(
            f"{name} must be positive and finite, got {value!r}; for example {name}=0.1."
        )


def _check_not_negative(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(
            f"{name} must be finite and at least 0, got {value!r}; for example {name}=1.0."
        )
