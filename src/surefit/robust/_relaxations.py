r"""Activations between two lines: for every t in [l, u], :math:`a t + b \le f(t) \le c t + d`.

* *convex* f (ReLU, leaky ReLU, ELU): above, any slope c with :math:`d = \max(f(l) - cl, f(u) - cu)`, since
  f(t) - ct is convex and largest at an end; c is the chord's. Below, a tangent. For ReLU any slope in [0, 1]
  through 0 is one; it is chosen with the smaller area, or optimised;
* *S-shaped* f (tanh, sigmoid): convex before 0 and concave after, so where the interval is on one side a
  chord and a tangent serve. Across 0, f' is unimodal, hence at least :math:`k = \min(f'(l), f'(u))`, and
  f(t) - kt increases: :math:`f(l) + k(t - l) \le f(t) \le f(u) + k(t - u)`.

The slopes are what floating point makes of these formulas; the intercepts are taken for those slopes and
moved outwards by a few units of rounding, so that the lines hold as they are stored.

References: Zhang, Weng, Chen, Hsieh & Daniel, "Efficient neural network robustness certification with
general activation functions" (2018); Singh, Gehr, Mirman, Püschel & Vechev, "Fast and effective robustness
certification" (2018), for the parallel lines.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["ELU", "Activation", "LeakyReLU", "Lines", "Sigmoid", "Tanh"]

_AWAY = 32.0 * 2.0**-53  # more than the roundings of an intercept and four units of exp or tanh
_FLOOR = 1e-300


class Lines(NamedTuple):
    """Slopes and intercepts below and above."""

    below: Tensor
    below_at_0: Tensor
    above: Tensor
    above_at_0: Tensor


class Activation:
    """f, increasing; ``roundings`` is how many units of rounding a value may be off in the module's pass."""

    roundings = 0

    def value(self, t: Tensor) -> Tensor:
        """f(t)."""
        raise NotImplementedError

    def lines(self, low: Tensor, high: Tensor, slope: Tensor | None = None) -> Lines:
        """Lines on [low, high]; ``slope`` in [0, 1] chooses the lower one where there is a choice."""
        raise NotImplementedError

    def interval(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The range of f on [low, high], moved outwards by rounding."""
        ends = self.value(low), self.value(high)
        if not self.roundings:
            return ends
        return ends[0] - _AWAY * ends[0].abs(), ends[1] + _AWAY * ends[1].abs()

    def open(self, low: Tensor, high: Tensor) -> Tensor:
        """Where tighter bounds would change the lines."""
        return high > low


class LeakyReLU(Activation):
    """max(t, s t), 0 <= s <= 1; ReLU for s = 0."""

    def __init__(self, s: float) -> None:
        if not 0.0 <= s <= 1.0:
            raise NotImplementedError(
                f"LeakyReLU with slope {s}: bounds need a slope between 0 and 1."
            )
        self.s = s
        self.roundings = 0 if s == 0.0 else 2

    def value(self, t: Tensor) -> Tensor:
        return torch.where(t > 0, t, self.s * t)

    def lines(self, low: Tensor, high: Tensor, slope: Tensor | None = None) -> Lines:
        on, off = low >= 0, high <= 0
        width = torch.where(on | off, torch.ones_like(low), high - low)
        chord = (high - self.s * low) / width
        above = torch.where(on, 1.0, torch.where(off, self.s, chord.clamp(self.s, 1.0)))
        f_low, f_high = self.value(low), self.value(high)
        gaps = f_low - above * low, f_high - above * high
        reach = torch.maximum(low.abs(), high.abs())
        intercept = torch.maximum(*gaps) + _AWAY * reach + _FLOOR
        known = on if self.s else on | off  # the line is f itself there, without rounding
        intercept = torch.where(known, 0.0, intercept)
        if slope is None:
            slope = (high >= -low).to(low.dtype)
        below = self.s + (1.0 - self.s) * slope.clamp(0.0, 1.0)
        below = torch.where(on, 1.0, torch.where(off, self.s, below))
        return Lines(below, torch.zeros_like(low), above, intercept)

    def open(self, low: Tensor, high: Tensor) -> Tensor:
        return (low < 0) & (high > 0)


class ELU(Activation):
    """t for t > 0, alpha (exp(t) - 1) else; convex for 0 <= alpha <= 1."""

    roundings = 8

    def __init__(self, alpha: float = 1.0) -> None:
        if not 0.0 <= alpha <= 1.0:
            raise NotImplementedError(
                f"ELU with alpha={alpha}: bounds need 0 <= alpha <= 1, where it is convex."
            )
        self.alpha = alpha

    def value(self, t: Tensor) -> Tensor:
        return torch.where(t > 0, t, self.alpha * torch.expm1(t.clamp(max=0.0)))

    def lines(self, low: Tensor, high: Tensor, slope: Tensor | None = None) -> Lines:
        at = 0.5 * (low + high) if slope is None else low + slope.clamp(0.0, 1.0) * (high - low)
        tangent = torch.where(at > 0, 1.0, self.alpha * torch.exp(at.clamp(max=0.0)))
        above, above_at_0, _ = _chord(self, low, high)
        below_at_0 = self.value(at) - tangent * at
        return Lines(tangent, below_at_0 - _away(self, low, high), above, above_at_0)


class Tanh(Activation):
    """The hyperbolic tangent."""

    roundings = 8

    def value(self, t: Tensor) -> Tensor:
        return torch.tanh(t)

    def slope(self, t: Tensor) -> Tensor:
        """f'(t), rounded down, so that f(t) - f' t still increases where it must."""
        return (1.0 / torch.cosh(t.clamp(-300.0, 300.0)).square()) * (1.0 - 1e-12)

    def lines(self, low: Tensor, high: Tensor, slope: Tensor | None = None) -> Lines:
        middle = 0.5 * (low + high) if slope is None else low + slope.clamp(0, 1) * (high - low)
        tangent = self.slope(middle)
        # a slope a little off: the line through the point leaves f by at most that times the distance
        off = 2e-12 * tangent * (high - low)
        chord, up_at_0, down_at_0 = _chord(self, low, high)
        steep = torch.minimum(self.slope(low), self.slope(high))
        away = _away(self, low, high)
        convex, concave = high <= 0, low >= 0
        touch = self.value(middle) - tangent * middle
        below = torch.where(convex, tangent, torch.where(concave, chord, steep))
        below_at_0 = torch.where(
            convex, touch - off - away,
            torch.where(concave, down_at_0, self.value(low) - steep * low - away),
        )  # fmt: skip
        above = torch.where(convex, chord, torch.where(concave, tangent, steep))
        above_at_0 = torch.where(
            convex, up_at_0,
            torch.where(concave, touch + off + away, self.value(high) - steep * high + away),
        )  # fmt: skip
        return Lines(below, below_at_0, above, above_at_0)


class Sigmoid(Tanh):
    """1 / (1 + exp(-t))."""

    def value(self, t: Tensor) -> Tensor:
        return torch.sigmoid(t)

    def slope(self, t: Tensor) -> Tensor:
        return torch.sigmoid(t) * torch.sigmoid(-t) * (1.0 - 1e-12)


def _chord(f: Activation, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The chord's slope and the intercepts with which it is above, and below, at both ends."""
    wide = high > low
    f_low, f_high = f.value(low), f.value(high)
    chord = torch.where(wide, (f_high - f_low) / torch.where(wide, high - low, 1.0), 0.0)
    ends = f_low - chord * low, f_high - chord * high
    away = _away(f, low, high)
    return chord, torch.maximum(*ends) + away, torch.minimum(*ends) - away


def _away(f: Activation, low: Tensor, high: Tensor) -> Tensor:
    size = torch.maximum(f.value(low).abs(), f.value(high).abs())
    return _AWAY * (size + 2.0 * torch.maximum(low.abs(), high.abs())) + _FLOOR
