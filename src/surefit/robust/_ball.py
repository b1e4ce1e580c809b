r"""The allowed set around rows of any shape, in torch and on their device (ADV-1, ADV-4, ADV-5).

.. math:: \{x : \|x - x_0\| \le \varepsilon,\; lower \le x \le upper\}

in the l2 or linf norm. A row outside the box is not forced into it; it may only not go further
out. Points are
inside *after rounding*: for linf the limits of each entry are rounded towards :math:`x_0`; for l2 the radius
is cut by what rounding :math:`x_0 + \delta` can add, :math:`u (\|x_0\| + \varepsilon)`, and
:meth:`Ball.settle`
checks the norm in float64 at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ._noise import normal, uniform
from .threat import Threat

__all__ = ["Ball", "check_threat", "lengths", "limits_of", "spread"]


@dataclass(frozen=True, eq=False)
class Ball:
    """The sets around the rows ``x0``.

    Attributes
    ----------
    x0 : tensor of shape (n, ...)
    low, high : tensor like x0
        Limits of each entry: the box, and for linf the ball.
    radius : tensor of shape (n,)
        Of the l2 ball; not used for linf.
    eps, norm : float
    """

    x0: Any
    low: Any
    high: Any
    radius: Any
    eps: float
    norm: float

    @classmethod
    def around(cls, x0: Any, threat: Threat) -> Ball:
        """The sets that a threat allows around rows."""
        eps, wide = threat.eps, x0.double()
        reach = eps if threat.norm == math.inf else math.inf
        lower, upper = limits_of(threat, x0)
        low = torch.maximum(wide - reach, torch.minimum(wide, lower))
        high = torch.minimum(wide + reach, torch.maximum(wide, upper))
        if eps == 0.0:
            low = high = wide
        u = torch.finfo(x0.dtype).eps
        radius = (eps * (1.0 - 4.0 * u) - 0.5 * u * (lengths(wide, 2.0) + eps)).clamp_min(0.0)
        low, high = _inwards(low, x0, 1), _inwards(high, x0, -1)
        return cls(x0, low, high, radius.to(x0.dtype), eps, threat.norm)

    def take(self, rows: Any) -> Ball:
        """The sets of some rows."""
        return Ball(
            self.x0[rows], self.low[rows], self.high[rows], self.radius[rows], self.eps, self.norm
        )

    def clip(self, x: Any) -> Any:
        """x cut to the limits of each entry."""
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def project(self, x: Any) -> Any:
        """An allowed point near x: the nearest one for linf, and for l2 without a box."""
        x = self.clip(x)
        if self.norm == math.inf:
            return x
        delta = x - self.x0
        factor = (self.radius / lengths(delta, 2.0).clamp_min(1e-30)).clamp_max(1.0)
        return self.clip(self.x0 + delta * spread(factor, x))

    def direction(self, g: Any) -> Any:
        """The unit step along which <g, x> grows most: sign(g), or g / ||g||_2; 0 where g is not a number."""
        g = torch.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0)
        if self.norm == math.inf:
            return torch.sign(g)
        g = g / spread(lengths(g, math.inf).clamp_min(1e-30), g)  # squares must not underflow
        return g / spread(lengths(g, 2.0).clamp_min(1e-30), g)

    def random(self, seed: int, rows: Any, *, edge: bool = False) -> Any:
        """Random points, a function of (seed, row): uniform before the box, or of length eps (``edge``)."""
        shape = tuple(self.x0.shape)[1:]
        if self.norm == math.inf:
            delta = 2.0 * uniform(seed, rows, shape, self.x0) - 1.0
            if edge:
                delta = delta / spread(lengths(delta, math.inf).clamp_min(1e-12), delta)
        else:
            delta = normal(seed, rows, shape, self.x0)
            delta = delta / spread(lengths(delta, 2.0).clamp_min(1e-12), delta)
            if not edge:
                share = uniform(seed + 1, rows, (1,), self.x0)[:, 0]
                delta = delta * spread(share ** (1.0 / math.prod(shape)), delta)
        return self.project(self.x0 + self.eps * delta)

    def settle(self, x: Any) -> Any:
        """x drawn towards x0 until it is inside in float64; x0 itself where nothing else helps."""
        x = self.clip(torch.nan_to_num(x))
        for k in range(30):
            inside = self.contains(x)
            if bool(inside.all()):
                return x
            delta = x.double() - self.x0.double()
            factor = (self.eps / lengths(delta, 2.0).clamp_min(1e-300)).clamp_max(1.0)
            factor = (factor * (1.0 - 2.0 ** (k - 24))).clamp_min(0.0)
            moved = (self.x0.double() + delta * spread(factor, x)).to(x.dtype)
            x = self.clip(torch.where(spread(inside, x), x, moved))
        return torch.where(spread(self.contains(x), x), x, self.x0)

    def contains(self, x: Any) -> Any:
        """Which rows of x are allowed, in float64; the only slack is float64's own."""
        inside = ((x >= self.low) & (x <= self.high)).flatten(1).all(dim=1)
        size = lengths(x.double() - self.x0.double(), self.norm)
        return inside & (size <= self.eps * (1.0 + 1e-14))


# ------------------------------------------------------------------------ tools


def lengths(delta: Any, norm: float) -> Any:
    """The norm of each row, over whatever trailing shape."""
    flat = delta.flatten(1)
    if norm == math.inf:
        return flat.abs().amax(dim=1)
    return torch.linalg.vector_norm(flat, ord=2, dim=1)


def spread(values: Any, x: Any) -> Any:
    """One value a row, shaped to multiply x."""
    return values.reshape(-1, *(1,) * (x.ndim - 1))


def _inwards(limit: Any, x0: Any, sign: int) -> Any:
    """A limit in the precision of x0, rounded towards x0 (sign 1: upwards)."""
    rounded = limit.to(x0.dtype)
    outside = (rounded.double() - limit) * sign < 0
    inner = torch.nextafter(rounded, torch.full_like(rounded, sign * math.inf))
    return torch.where(outside & torch.isfinite(rounded), inner, rounded)


def limits_of(threat: Threat, x0: Any) -> tuple[Any, Any]:
    """The box in float64, shaped like a row of x0; infinite where there is none."""
    parts = []
    for value, default in ((threat.lower, -math.inf), (threat.upper, math.inf)):
        given = np.asarray(default if value is None else value, dtype=np.float64)
        limit = torch.as_tensor(given, device=x0.device)
        parts.append(limit.reshape(x0.shape[1:]) if limit.ndim == 1 else limit)
    return parts[0], parts[1]


def check_threat(threat: Any, shape: tuple[int, ...]) -> None:
    """Raise an error unless this is a threat of the kind that attacks on networks know."""
    if not isinstance(threat, Threat):
        raise TypeError(
            f"threat must be a Threat, such as Threat(8 / 255), got {type(threat).__name__}."
        )
    parts = {
        "mutable": threat.mutable is not None, "step": threat.step is not None,
        "groups": bool(threat.groups), "flips": threat.flips > 0,
    }  # fmt: skip
    for name, given in parts.items():
        if given:
            raise ValueError(
                f"threat.{name} is about columns of tables; attacks on networks know eps, norm, lower "
                "and upper. For such a threat give fgsm or pgd a function with score=, and classes=."
            )
    d = math.prod(shape)
    for name in ("lower", "upper"):
        value = getattr(threat, name)
        if value is not None and np.ndim(value) == 1 and len(value) != d:
            raise ValueError(
                f"threat.{name} has {len(value)} entries, but a row has {d}, shape {shape}: give a "
                "number, or one entry for each."
            )
