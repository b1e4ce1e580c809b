"""What the Newton methods for linear models share: the penalised objective and the line search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss

__all__ = ["objective", "step_length"]

Array = NDArray[np.float64]


def objective(loss: Loss, z: Array, y: Array, s: Array, w: Array, l1: float, l2: float) -> float:
    """sum_i s_i l(z_i, y_i) + l1 ||w||_1 + l2/2 ||w||^2."""
    penalty = l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.vdot(w, w))
    return float(s @ loss.pointwise(z, y)) + penalty


def step_length(
    loss: Loss,
    y: Array,
    s: Array,
    z: Array,
    move: Array,
    w: Array,
    step: Array,
    l1: float,
    l2: float,
    value: float,
    fall: float,
) -> float:
    """The first t = 1, 1/2, 1/4, ... at which the objective falls by 1e-4 t times the predicted ``fall``.

    Within rounding of the optimum "does not rise" is all one can ask. Returns 0 when no step lowers it.
    """
    slack = 4e-16 * abs(value)
    t = 1.0
    while fall > 0.0 and t > 1e-10:
        trial = objective(loss, z + t * move, y, s, w + t * step, l1, l2)
        if trial <= value - 1e-4 * t * fall + slack:
            return t
        t /= 2.0
    return 0.0
