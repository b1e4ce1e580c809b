"""Learning rates of the trainer by name: those of OPT-18, with a warm-up, over the steps of a run.

A schedule is a function of the step (:mod:`surefit.solvers.schedules`), so that resuming needs no state. By
name it is set out over the length of the run:

==============  ====================================================================================
name            learning rate
==============  ====================================================================================
constant        ``lr``
cosine          half a cosine from ``lr`` to 0 at the end of the run
linear          a straight line from ``lr`` to 0 at the end of the run
step            ``lr``, a tenth of it from the middle, a hundredth from three quarters
inverse_time    ``lr / (1 + t)``, t in epochs (meets Robbins and Monro's conditions)
inverse_sqrt    ``lr / sqrt(1 + t)``, t in epochs
==============  ====================================================================================

``warmup`` steps (a number below 1: that share of the run) climb to ``lr`` in a straight line first.

Examples
--------
>>> rate = learning_rate("cosine", 0.1, total=10, warmup=2)
>>> [round(rate(t), 3) for t in (0, 1, 2, 6, 10)]
[0.05, 0.1, 0.1, 0.05, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..solvers.schedules import (
    Constant,
    InverseSqrt,
    InverseTime,
    StepDecay,
    WarmupCosine,
    as_schedule,
)

__all__ = ["Linear", "Warmup", "learning_rate"]


@dataclass(frozen=True)
class Linear:
    """A straight line from ``eta0`` at step 0 to 0 at ``total``."""

    eta0: float
    total: int

    def __call__(self, t: int) -> float:
        return self.eta0 * max(0.0, 1.0 - t / self.total)


@dataclass(frozen=True)
class Warmup:
    """``steps`` steps that climb to the first value of a schedule, then the schedule itself."""

    schedule: Callable[[int], float]
    steps: int

    def __call__(self, t: int) -> float:
        if t < self.steps:
            return self.schedule(0) * (t + 1) / self.steps
        return self.schedule(t - self.steps)


def learning_rate(
    schedule: str | Callable[[int], float],
    lr: float,
    *,
    total: int,
    warmup: float = 0,
    steps_per_epoch: int = 1,
) -> Callable[[int], float]:
    """The learning rate as a function of the step.

    Parameters
    ----------
    schedule : str or callable
        A name of the table above, or a function of the step that gives the rate itself.
    lr : float
        The largest rate.
    total : int
        Steps of the run.
    warmup : int or float
        Steps of the climb; below 1, a share of the run.
    steps_per_epoch : int
        The unit of time of ``"inverse_time"`` and ``"inverse_sqrt"``.
    """
    if not 0 < lr < math.inf:
        raise ValueError(f"lr must be positive and finite, got {lr!r}; 1e-3 suits AdamW.")
    if not 0 <= warmup < max(total, 1):
        raise ValueError(
            f"warmup must be at least 0 and below the {total} steps of the run, got {warmup!r}; "
            "a twentieth of the run is usual (warmup=0.05)."
        )
    climb = round(warmup * total) if warmup < 1 else int(warmup)
    climb = min(climb, total - 1)
    if callable(schedule):
        chosen = as_schedule(schedule)
        return Warmup(chosen, climb) if climb else chosen
    left = max(total - climb, 1)
    known: dict[str, Callable[[], Any]] = {
        "constant": lambda: Constant(lr),
        "linear": lambda: Linear(lr, left),
        "step": lambda: StepDecay(lr, tuple(sorted({max(left // 2, 1), max(3 * left // 4, 1)}))),
        "inverse_time": lambda: InverseTime(lr, 1.0 / steps_per_epoch),
        "inverse_sqrt": lambda: InverseSqrt(lr, 1.0 / steps_per_epoch),
    }
    if schedule == "cosine":
        return WarmupCosine(lr, max(total, 1), climb)
    if schedule not in known:
        raise ValueError(
            f"schedule must be one of 'cosine', {', '.join(map(repr, known))} or a function of the "
            f"step, got {schedule!r}."
        )
    return Warmup(known[schedule](), climb) if climb else known[schedule]()
