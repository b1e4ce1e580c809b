r"""The problem that every linear support vector machine with an l2 penalty solves.

    P(w, b) = 1/2 ||w||^2 + 1/2 (b/B)^2 + sum_i l_i(x_i'w + b),
    l_i(z) = max_{low_i <= beta <= high_i}  beta (t_i - z) - d_i beta^2 / 2 - eps |beta|

B > 0 is the value of a constant feature whose coefficient is penalised with the others (liblinear's
``intercept_scaling``); without that term the intercept is free, and without b there is none. The four losses,
with weights c_i:

=============================  ========  ===================================  ==========
loss                           t         low, high                            d
=============================  ========  ===================================  ==========
c [1 - y z]_+                  y         0, c for y = 1; -c, 0 for y = -1     0
c [1 - y z]_+^2                y         the same with infinity for c         1 / (2 c)
c [|y - z| - eps]_+            y         -c, c                                0
c [|y - z| - eps]_+^2          y         -inf, inf                            1 / (2 c)
=============================  ========  ===================================  ==========

The dual is a quadratic programme in a box: w = sum_i beta_i x_i, b = B^2 sum_i beta_i, and

    D(beta) = sum_i (t_i beta_i - d_i beta_i^2 / 2 - eps |beta_i|) - 1/2 ||w||^2 - 1/2 (b/B)^2,

with sum_i beta_i = 0 where the intercept is free (SVM-4, SVM-7). beta_i is y_i alpha_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoxDual", "Intercept", "Point", "classification", "regression"]

Array = NDArray[np.float64]


class Intercept(NamedTuple):
    """A constant feature of value ``scaling``, 0 for none; whether its coefficient is penalised."""

    scaling: float = 0.0
    penalised: bool = True

    @property
    def free(self) -> bool:
        """There is one, and it costs nothing."""
        return self.scaling > 0.0 and not self.penalised


class Point(NamedTuple):
    """A model and its dual variables."""

    w: Array
    b: float
    beta: Array


@dataclass(frozen=True)
class BoxDual:
    """The numbers of the problem above, one a row; the rows of X are kept apart from it."""

    t: Array
    low: Array
    high: Array
    d: Array
    eps: float
    intercept: Intercept

    def losses(self, z: Array) -> Array:
        """l_i(z_i)."""
        up, down = self.t - z - self.eps, z - self.t - self.eps
        return np.where(up > 0, self._side(up, self.high), 0.0) + np.where(
            down > 0, self._side(down, -self.low), 0.0
        )

    def _side(self, r: Array, most: Array) -> Array:
        """max over 0 <= beta <= most of r beta - d beta^2 / 2, for r > 0."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            beta = np.where(self.d > 0, np.minimum(r / self.d, most), most)
            return np.where(most > 0, beta * (r - 0.5 * self.d * beta), 0.0)

    def size(self, w: Array, b: float) -> float:
        """Twice the penalty."""
        kept = self.intercept
        return float(w @ w) + ((b / kept.scaling) ** 2 if kept.scaling and kept.penalised else 0.0)

    def primal(self, w: Array, b: float, z: Array) -> float:
        """P, from the predictions z = Xw + b."""
        return 0.5 * self.size(w, b) + float(self.losses(z).sum())

    def dual(self, beta: Array, size: float) -> float:
        """D, given ||w||^2 (+ (b/B)^2) of the w and b that beta makes."""
        linear = float(self.t @ beta) - self.eps * float(np.abs(beta).sum())
        return linear - 0.5 * float(self.d @ beta**2) - 0.5 * size

    def null(self) -> float:
        """P(0, 0)."""
        return float(self.losses(np.zeros_like(self.t)).sum())

    def rows(self, index: NDArray[np.intp]) -> BoxDual:
        """The same for some rows."""
        t, low, high, d = (v[index] for v in (self.t, self.low, self.high, self.d))
        return replace(self, t=t, low=low, high=high, d=d)

    @property
    def smooth(self) -> bool:
        """The losses have a derivative: every row has its d."""
        return bool((self.d > 0).all())


def classification(y: Array, c: Array, *, squared: bool, intercept: Intercept) -> BoxDual:
    """Hinge or squared hinge; y in {-1, 1}, weights c > 0 (infinite: a hard margin)."""
    most = np.full_like(c, math.inf) if squared else c
    low, high = np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0)
    d = 0.5 / c if squared else np.zeros_like(c)
    return BoxDual(y.astype(np.float64), low, high, d, 0.0, intercept)


def regression(y: Array, c: Array, eps: float, *, squared: bool, intercept: Intercept) -> BoxDual:
    """Epsilon-insensitive or its square."""
    most = np.full_like(c, math.inf) if squared else c
    d = 0.5 / c if squared else np.zeros_like(c)
    return BoxDual(y.astype(np.float64), -most, most, d, float(eps), intercept)
