r"""The loss that a table model is chosen, measured and quoted by: bounded, and one number a row.

* Classification: 0 for a right class, 1 for a wrong one.
* Regression: :math:`\min(|y - f(x)|, R)`, with R the range of the target on the training rows. The range is
  fixed
  before the hold-out is looked at, so the loss lies in [0, R] for rows to come as well, whatever they hold,
  and its mean has a bound. Where no error exceeds R, which is said, the mean is the mean absolute error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model_selection._losses import BoundedLoss

__all__ = ["TableLoss"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TableLoss:
    """The loss of a task; ``width`` is the R above, 1 for classification."""

    task: str
    width: float = 1.0

    @property
    def words(self) -> str:
        """What its mean is called in a sentence."""
        if self.task == "classification":
            return "error"
        return f"mean absolute error (errors above {self.width:.6g} counted as that)"

    @property
    def bound(self) -> str:
        """Which inequality bounds it, chosen before any data are seen."""
        return "clopper-pearson" if self.task == "classification" else "bernstein"

    def rows(self, truth: Any, predicted: Any) -> Array:
        """The loss of each row."""
        if self.task == "classification":
            return np.asarray(np.asarray(truth) != np.asarray(predicted), dtype=np.float64)
        errors = np.abs(np.asarray(truth, dtype=np.float64) - np.asarray(predicted))
        return np.asarray(np.minimum(np.where(np.isfinite(errors), errors, np.inf), self.width))

    def mean(self, truth: Any, predicted: Any) -> float:
        """Mean loss over the rows."""
        return float(self.rows(truth, predicted).mean())

    def evidence(self, losses: Array) -> tuple[float, float, float, float]:
        """Mean, variance, least and largest loss: what a bound is computed from."""
        variance = float(losses.var(ddof=1)) if len(losses) > 1 else 0.0
        return float(losses.mean()), variance, float(losses.min()), float(losses.max())

    def bounded(self, single: bool = True) -> BoundedLoss:
        """The same loss as the sentences of :mod:`surefit.model_selection` know it.

        ``single`` says that it is of single rows, and not a mean over each of several groups.
        """
        zero_one = self.task == "classification" and single
        return BoundedLoss(self.words, 0.0, self.width, float(zero_one), zero_one)
