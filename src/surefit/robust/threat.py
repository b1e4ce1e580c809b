r"""What an attacker may do to a row: the set of allowed perturbations (ADV-1, ADV-4, ADV-5).

Rows are vectors of encoded, usually standardised, features. The attacker of a row :math:`x_0` may choose
any x with

* :math:`\|x - x_0\| \le \varepsilon` in the l2 or the linf norm, over the columns that may move;
* columns outside ``mutable`` as they are;
* columns with a ``step`` h (integers divided by their scale) moved by whole multiples of h;
* ``lower <= x <= upper`` where a box is given; a row that lies outside is not forced into it;
* of the one-hot blocks ``groups`` at most ``flips`` switched to another category. A switch is counted, not
  measured: it does not use up epsilon. With epsilon = 0 nothing moves at all.

The worst point for a linear function, :math:`\max_x \langle g, x - x_0\rangle`, is exact for linf, whatever
the other constraints, since columns and blocks then add up one by one. It is exact for l2 without steps:
:math:`\delta = \mathrm{clip}(t g)` with the t at which the norm is epsilon. For l2 with steps the value
without the grid is an upper bound, and rounding towards 0 gives a point that is allowed.

Reference: Goodfellow, Shlens & Szegedy, "Explaining and harnessing adversarial examples" (2015).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, like, to_numpy
from ._sets import nearest_patterns, patterns_of, sum_of_largest, water_fill
from ._tools import as_kind, checked_parts, row_norms, ulp

__all__ = ["Threat", "Worst"]

Array = NDArray[np.float64]
_GRID = 1e-9  # eps / h counts as a whole number of steps to this relative distance


class Worst(NamedTuple):
    """The worst points for a linear function.

    Attributes
    ----------
    x : array of shape (n, d)
        Allowed points.
    value : array of shape (n,)
        <direction, x - x0>, attained there.
    bound : array of shape (n,)
        No allowed point has more; equal to ``value`` where the answer is exact.
    """

    x: Any
    value: Any
    bound: Any


@dataclass(frozen=True, eq=False)
class Threat:
    """The perturbations that are allowed.

    Parameters
    ----------
    eps : float
        Radius; 0 allows nothing.
    norm : {2, inf}, default=inf
        Also "l2" and "linf".
    mutable : array of bool of shape (d,), default=None
        The columns that may move; None for all.
    lower, upper : float or array of shape (d,), default=None
        A box around allowed points.
    step : float or array of shape (d,), default=None
        0 for a continuous column, else the grid: a column of integers divided by s moves by multiples of 1/s.
    groups : list of lists of int, default=None
        One-hot blocks; a block of one column is a yes/no column. They do not move continuously.
    flips : int, default=0
        How many of the mutable blocks may switch to another category.
    off, on : float or array of shape (d,), default=0 and 1
        The two values of a one-hot column, where it was scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.robust import Threat
    >>> threat = Threat(0.3, mutable=[True, True, False], step=[0.0, 0.2, 0.0])
    >>> worst = threat.worst_linear(np.zeros((1, 3)), np.array([1.0, -1.0, 5.0]))
    >>> worst.x.tolist(), worst.value.round(6).tolist()
    ([[0.3, -0.2, 0.0]], [0.5])
    """

    eps: float
    norm: float = math.inf
    mutable: Any = None
    lower: Any = None
    upper: Any = None
    step: Any = None
    groups: Sequence[Sequence[int]] | None = None
    flips: int = 0
    off: Any = 0.0
    on: Any = 1.0

    def __post_init__(self) -> None:
        for name, value in checked_parts(self).items():
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------------ what may move

    def with_eps(self, eps: float) -> Threat:
        """The same attacker with another radius."""
        return dataclasses.replace(self, eps=eps)

    def check_columns(self, d: int) -> None:
        """Raise an error unless every part of the threat fits rows of d features."""
        for name in ("mutable", "lower", "upper", "step", "off", "on"):
            value = getattr(self, name)
            if value is not None and np.ndim(value) == 1 and len(value) != d:
                raise ValueError(f"{name} has {len(value)} entries, but the rows have {d} columns.")
        largest = max((int(group.max()) for group in self._blocks), default=-1)
        if largest >= d:
            raise ValueError(f"groups names column {largest}, but the rows have {d} columns.")

    @property
    def _blocks(self) -> list[NDArray[np.intp]]:
        return self.groups  # type: ignore[return-value]

    @property
    def flipping(self) -> list[NDArray[np.intp]]:
        """The blocks that may switch: all of their columns are mutable, and switches are allowed."""
        if not self.flips or self.eps == 0.0:
            return []
        return [g for g in self._blocks if self.mutable is None or self.mutable[g].all()]

    @property
    def exact(self) -> bool:
        """Whether :meth:`worst_linear` attains its bound."""
        return not (self.norm == 2.0 and self.discrete_columns)

    @property
    def discrete_columns(self) -> bool:
        """Whether some column that may move has a grid."""
        if self.step is None:
            return False
        step = self.step if self.mutable is None else self.step * self.mutable
        return bool((step > 0).any())

    @property
    def uniform(self) -> bool:
        """Whether every row has the same displacements: no box and no switches."""
        return self.lower is None and self.upper is None and not self.flipping

    def limits(self, x0: Any) -> tuple[Any, Any]:
        """How far each column may go down and up: arrays that broadcast against x0, whole steps on a grid."""
        return self._room(x0, self.eps)

    def _room(self, x0: Any, most: float) -> tuple[Any, Any]:
        """How far each column may go down and up inside the box, at most ``most``."""
        d = int(x0.shape[1])
        free = np.ones(d, dtype=np.bool_) if self.mutable is None else self.mutable.copy()
        for group in self._blocks:
            free[group] = False
        reach = self._whole(np.where(free, most, 0.0)[None, :])
        if self.lower is None and self.upper is None:
            both = as_kind(reach, x0)
            return both, both
        x = np.asarray(to_numpy(x0), dtype=np.float64)
        down = reach if self.lower is None else np.clip(x - self.lower, 0.0, reach)
        up = reach if self.upper is None else np.clip(self.upper - x, 0.0, reach)
        return as_kind(self._whole(down), x0), as_kind(self._whole(up), x0)

    def _whole(self, lengths: Array) -> Array:
        """Lengths cut to whole steps, where there is a grid."""
        if self.step is None:
            return lengths
        step = np.broadcast_to(self.step, lengths.shape[-1:])
        grid = np.where(step > 0, step, 1.0)
        return np.where(step > 0, np.floor(lengths / grid * (1.0 + _GRID)) * grid, lengths)

    def reach(self, x0: Any) -> Array:
        """The furthest each column may be from x0, switches included; broadcasts against x0."""
        down, up = (to_numpy(part) for part in self.limits(x0))
        far = np.maximum(down, up)
        if self.flipping:
            x = np.asarray(to_numpy(x0), dtype=np.float64)
            far = np.broadcast_to(far, x.shape).copy()
            for group in self.flipping:
                P = patterns_of(self, group, x.shape[1])
                far[:, group] = np.abs(P[None] - x[:, None, group]).max(axis=1)
        return far

    def radius(self, x0: Any, order: int = 2) -> Array:
        """No allowed x is further from x0 in the l1 (``order=1``) or l2 norm; broadcasts over rows."""
        down, up = (to_numpy(part) for part in self.limits(x0))
        far = np.maximum(down, up)
        flips: Any = 0.0
        if self.flipping:
            x = np.asarray(to_numpy(x0), dtype=np.float64)
            parts = []
            for group in self.flipping:
                moved = np.abs(patterns_of(self, group, x.shape[1])[None] - x[:, None, group])
                parts.append((moved**order).sum(axis=2).max(axis=1))
            flips = sum_of_largest(np.stack(parts, axis=1), self.flips)
        if order == 1:
            total = far.sum(axis=1)
            if self.norm == 2.0:
                total = np.minimum(total, self.eps * np.sqrt((far > 0).sum(axis=1)))
            return total + flips
        square = (far**2).sum(axis=1)
        if self.norm == 2.0:
            square = np.minimum(square, self.eps**2)
        return np.sqrt(square + flips)

    # ------------------------------------------------------------------ points

    def worst_linear(self, x0: Any, direction: Any) -> Worst:
        """The allowed points with the most <direction, x - x0>.

        Parameters
        ----------
        x0 : array of shape (n, d)
        direction : array of shape (d,) or (n, d)

        Returns
        -------
        Worst
        """
        xp = array_namespace(x0)
        g = direction if direction.ndim == 2 else direction[None, :]
        down, up = self.limits(x0)
        if self.norm == math.inf:
            delta = xp.where(g > 0, up, -down) * as_kind(1.0, x0)
            delta = xp.where(g == 0, 0.0 * delta, delta) + 0.0 * x0
            bound = None
        elif self.step is None and self.lower is None and self.upper is None:
            moved = g * as_kind(to_numpy(up) > 0, x0)
            size = row_norms(moved)
            safe = xp.where(size > 0, size, size + 1.0)
            delta = moved / safe[:, None] * (self.eps * (1.0 - ulp(x0))) + 0.0 * x0
            bound = None
        else:
            delta, bound = self._worst_on_grid(x0, g, to_numpy(down), to_numpy(up))
        x = x0 + delta
        value = (
            (g * delta).sum(axis=1)
            if bound is None
            else (to_numpy(g) * to_numpy(delta)).sum(axis=1)
        )
        bound = value if bound is None else bound
        if self.flipping:
            rows = np.array(to_numpy(x))
            gain = self._flip(np.asarray(to_numpy(x0)), np.asarray(to_numpy(g)), rows)
            x = as_kind(rows, x0)
            value, bound = value + as_kind(gain, value), bound + as_kind(gain, bound)
        return Worst(x, value, bound)

    def _worst_on_grid(self, x0: Any, g: Any, down: Array, up: Array) -> tuple[Any, Array]:
        """l2 with a box or steps: the relaxation by water filling, then whole steps."""
        shape = tuple(x0.shape)
        wanted = np.broadcast_to(np.asarray(to_numpy(g), dtype=np.float64), shape)
        room = np.where(wanted > 0, np.broadcast_to(up, shape), np.broadcast_to(down, shape))
        radius = np.full(shape[0], self.eps)
        delta = water_fill(wanted, room, radius)
        bound = (wanted * delta).sum(axis=1)
        if self.discrete_columns:
            step = np.broadcast_to(self.step, shape[1:])
            grid = np.where(step > 0, step, 1.0)
            whole = np.where(step > 0, np.trunc(delta / grid * (1.0 + _GRID)) * grid, 0.0)
            left = np.sqrt(np.maximum(self.eps**2 - (whole**2).sum(axis=1), 0.0))
            delta = whole + water_fill(np.where(step > 0, 0.0, wanted), room, left)
        return as_kind(delta, x0), bound

    def _flip(self, x0: Array, g: Array, x: Array) -> Array:
        """Switch, in place, the blocks that gain most; what they gain."""
        g = np.broadcast_to(g, x0.shape)
        gains, patterns = [], []
        for group in self.flipping:
            P = patterns_of(self, group, x0.shape[1])
            each = g[:, group] @ P.T - (g[:, group] * x0[:, group]).sum(axis=1)[:, None]
            patterns.append(P[each.argmax(axis=1)])
            gains.append(np.maximum(each.max(axis=1), 0.0))
        gain = np.stack(gains, axis=1)
        order = np.argsort(-gain, axis=1, kind="stable")[:, : self.flips]
        chosen = np.zeros(gain.shape, dtype=np.bool_)
        np.put_along_axis(chosen, order, True, axis=1)
        chosen &= gain > 0
        for j, group in enumerate(self.flipping):
            x[:, group] = np.where(chosen[:, j, None], patterns[j], x0[:, group])
        return np.where(chosen, gain, 0.0).sum(axis=1)

    def project(self, x0: Any, x: Any) -> Any:
        """An allowed point near x: the nearest one for linf, and for l2 without box and steps (ADV-5).

        For l2 in a box the point is cut to the box and then drawn towards x0; on a grid steps are rounded,
        and cut towards x0 where rounding would leave the ball.
        """
        xp = array_namespace(x0)
        down, up = self._room(x0, self.eps if self.norm == math.inf else math.inf)
        delta = x - x0
        delta = xp.where(delta > up, up, delta)
        delta = xp.where(delta < -down, -down, delta)
        if self.norm == 2.0:
            delta = self._rescaled(delta)
        if self.discrete_columns:
            step = np.broadcast_to(self.step, tuple(x0.shape)[1:])
            grid, on = as_kind(np.where(step > 0, step, 1.0), x0), like(step > 0, x0)
            rounded = xp.where(on, xp.round(delta / grid) * grid, delta)
            if self.norm == 2.0:
                cut = xp.where(on, xp.trunc(delta / grid * (1.0 + _GRID)) * grid, delta)
                rounded = xp.where((row_norms(rounded) <= self.eps)[:, None], rounded, cut)
            delta = rounded
        moved = x0 + delta
        if self.flipping:
            rows = np.array(to_numpy(moved))
            nearest_patterns(self, np.asarray(to_numpy(x0)), np.asarray(to_numpy(x)), rows)
            moved = as_kind(rows, x0)
        return moved

    def _rescaled(self, delta: Any) -> Any:
        xp = array_namespace(delta)
        size = row_norms(delta)
        safe = xp.where(size > 0, size, size + 1.0)
        factor = xp.where(size > self.eps, self.eps * (1.0 - ulp(delta)) / safe, 0.0 * size + 1.0)
        return delta * factor[:, None]

    def contains(self, x0: Any, x: Any) -> NDArray[np.bool_]:
        """Which rows of x are allowed for those of x0, to the rounding of x - x0 (a few ulp)."""
        unit = 4.0 * ulp(x)
        a, b = (np.asarray(to_numpy(part), dtype=np.float64) for part in (x0, x))
        down, up = (to_numpy(part) for part in self.limits(a))
        delta = b - a
        slack = unit * (np.abs(a) + np.abs(b) + np.maximum(down, up))
        blocks = np.concatenate([*self.flipping, np.empty(0, dtype=np.intp)]).astype(np.intp)
        still = np.broadcast_to((down == 0) & (up == 0), delta.shape)
        low, high = delta >= -down - slack, delta <= up + slack
        fine = np.where(still, delta == 0, low & high)
        if self.discrete_columns:
            step = np.broadcast_to(self.step, delta.shape[1:])
            grid = np.where(step > 0, step, 1.0)
            off = np.abs(delta - np.round(delta / grid) * grid)
            fine &= (step == 0) | (off <= slack + _GRID * grid)
        fine[:, blocks] = True
        inside = fine.all(axis=1) & np.isfinite(b).all(axis=1)
        if self.norm == 2.0:
            rest = np.delete(delta, blocks, axis=1)
            size = np.sqrt((rest**2).sum(axis=1))
            inside &= size <= self.eps + unit * (row_norms(a) + row_norms(b) + self.eps)
        return inside & nearest_patterns(self, a, b, None)

    # ------------------------------------------------------------------ words

    def __str__(self) -> str:
        norm = "l2" if self.norm == 2.0 else "linf"
        words = [f"{norm} distance up to {self.eps:g}", *self.rules()]
        return ", ".join(words)

    def rules(self) -> list[str]:
        """The constraints beside the norm, in words."""
        words = []
        if self.mutable is not None:
            words.append(f"{_columns(int((~self.mutable).sum()))} fixed")
        if self.discrete_columns:
            step = self.step if self.mutable is None else self.step * self.mutable
            words.append(f"{_columns(int((np.atleast_1d(step) > 0).sum()))} in whole steps")
        if self.lower is not None or self.upper is not None:
            words.append("inside a box")
        if self._blocks:
            switched = (
                f"at most {self.flips} of them switched" if self.flips else "none of them switched"
            )
            words.append(f"{_columns(len(self._blocks), 'categorical ')}, {switched}")
        return words


def _columns(n: int, kind: str = "") -> str:
    return f"{n} {kind}column{'' if n == 1 else 's'}"
