r"""The set of inputs around each row, and the least value of a linear function on it.

For :math:`\|\delta\|_\infty \le \varepsilon` in a box the least :math:`\langle a, x + \delta\rangle` is
:math:`\langle a, m\rangle - \langle |a|, r\rangle` with the middle m and half-widths r of the box that is
left. For l2 without a box it is :math:`\langle a, x\rangle - \varepsilon \|a\|_2`. For l2 in a box, write a
= a' + a'': a' for the ball, a'' for the box; every such cut gives a lower bound, and the best is
:math:`a' = -\delta/t` with :math:`\delta = \mathrm{clip}(-ta)` of length epsilon. A few steps find t; being
short of it costs tightness only.

Floating point: an allowed x is one that :meth:`Threat.contains` accepts, up to a few units of rounding
outside of the ball; the set here is larger by as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .threat import Threat

__all__ = ["Ball", "ball", "check_threat"]

_STEPS = 8
_UNDER = 1e-150  # at least what a norm loses where squares underflow


@dataclass(frozen=True, eq=False)
class Ball:
    """Rows x, the box around each and, for l2, its radius; all in float64."""

    x: Tensor
    low: Tensor
    high: Tensor
    radius: Tensor | None  # (n,), l2 only
    boxed: bool  # whether the box is more than the ball's own
    eps: float

    def __getitem__(self, rows: Any) -> Ball:
        radius = None if self.radius is None else self.radius[rows]
        return Ball(self.x[rows], self.low[rows], self.high[rows], radius, self.boxed, self.eps)

    def least(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """The least <a, x'>, and the sum of absolute values in it; a is (n or 1, q, d)."""
        low, high = self.low.flatten(1)[:, None], self.high.flatten(1)[:, None]
        x = self.x.flatten(1)[:, None]
        length = a.abs()
        size = (length * torch.maximum(low.abs(), high.abs())).sum(dim=2)
        if self.radius is None:
            middle = 0.5 * (low + high)
            return (a * middle).sum(dim=2) - (length * (high - middle)).sum(dim=2), size
        radius = self.radius[:, None]
        norm = torch.linalg.vector_norm(a, dim=2) + _UNDER  # its gradient at 0 is 0
        start = (a * x).sum(dim=2)
        size = size + (length * x.abs()).sum(dim=2) + radius * norm
        found = start - radius * norm
        if self.boxed:
            found = torch.maximum(found, start + _cut(a, low - x, high - x, radius, norm))
        return found, size


def _cut(a: Tensor, down: Tensor, up: Tensor, radius: Tensor, norm: Tensor) -> Tensor:
    """A lower bound of <a, delta> for delta in the ball and the box."""
    tiny = torch.finfo(a.dtype).tiny
    with torch.no_grad():
        t = (radius / norm.clamp(min=tiny)).clamp(max=1e150)
        for _ in range(_STEPS):
            move = -t[..., None] * a
            free = (move > down) & (move < up)
            spent = torch.where(free, 0.0, move.clamp(down, up)).square().sum(dim=2)
            rest = torch.where(free, a, 0.0).square().sum(dim=2)
            longer = (radius.square() - spent).clamp(min=0.0) / rest.clamp(min=tiny)
            t = torch.maximum(t, longer.sqrt()).clamp(max=1e150)
        t = t.clamp(min=1e-150)
    share = (-t[..., None] * a).clamp(down, up) / t[..., None]  # -a'
    rest = a + share
    box = torch.where(rest > 0, rest * down, rest * up).sum(dim=2)
    ball = box - radius * (torch.linalg.vector_norm(share, dim=2) + _UNDER)
    alone = torch.where(a > 0, a * down, a * up).sum(dim=2)
    return torch.maximum(ball, alone)


def ball(x: Tensor, threat: Threat, unit: float) -> Ball:
    """The inputs that the threat allows, and those that rounding could take for allowed."""
    rows, shape = x.detach().to(torch.float64), x.shape[1:]
    if threat.eps == 0.0:
        return Ball(rows, rows, rows, None, False, 0.0)
    down = up = torch.full_like(rows, threat.eps)
    boxed = threat.lower is not None or threat.upper is not None
    if threat.lower is not None:
        down = (rows - _part(threat.lower, rows, shape)).clamp(0.0, threat.eps)
    if threat.upper is not None:
        up = (_part(threat.upper, rows, shape) - rows).clamp(0.0, threat.eps)
    wider = 16.0 * unit * (rows.abs() + threat.eps)
    low, high = rows - down - wider, rows + up + wider
    radius = None
    if threat.norm == 2.0:
        norms = rows.flatten(1).square().sum(dim=1).sqrt()
        radius = threat.eps + 16.0 * unit * (norms + threat.eps)
    return Ball(rows, low, high, radius, boxed, threat.eps)


def _part(value: Any, rows: Tensor, shape: Any) -> Tensor:
    part = torch.as_tensor(value, dtype=torch.float64, device=rows.device)
    return part.reshape(shape) if part.dim() else part


def check_threat(threat: Any, d: int) -> Threat:
    """A threat of a norm and a box; an error names any other part."""
    if not isinstance(threat, Threat):
        raise TypeError(
            f"threat must be a surefit.robust.Threat, got {type(threat).__name__}; for linf: Threat(0.1)."
        )
    extra = [name for name in ("mutable", "step") if getattr(threat, name) is not None]
    extra += ["groups"] if threat.groups else []
    extra += ["flips"] if threat.flips else []
    if extra:
        raise ValueError(
            f"threat has {', '.join(extra)}: bounds of networks know eps, norm, lower and upper only; leave "
            "the others out (the bound then holds for the smaller set too)."
        )
    if threat.norm not in (2.0, math.inf):
        raise ValueError(f"norm must be 2 or inf, got {threat.norm!r}.")
    threat.check_columns(d)
    return threat
