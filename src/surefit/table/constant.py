r"""Whether a model is better than a constant, which is the least that a model has to be.

The constant is the most frequent class of the training rows, or the median of the training targets: what one
would predict without reading any column. Both are measured on the same hold-out, so they are compared unit by
unit, with d the loss of the constant less that of the model, in [-R, R]:

* 0-1 losses of single rows: d is -1, 0 or 1, and of the m units where it is not 0 the number of ones is
  binomial with p <= 1/2 unless the model is better (the sign test, given m).
* otherwise :math:`E = \frac1J \sum_j \prod_i (1 + \lambda_j d_i / R)` has expectation at most 1 for fixed
  :math:`0 < \lambda_j < 1` unless the mean of d is positive, so that :math:`P[E \ge 1/\delta] \le \delta`
  (Markov); no assumption on the distribution enters, and the order of the units does not either.

References
----------
I. Waudby-Smith and A. Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 86, 2024.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..certificate import Claim, Kind
from ..data import shown
from ..model_selection._claims import percent
from ..stats import INDEPENDENT
from .losses import TableLoss
from .prepare import Rows

__all__ = ["BETTER", "constant_claim", "constant_of", "doubt_of_mean", "doubt_of_signs"]

Array = NDArray[np.float64]
BETTER = "better than a constant"
STAKES = np.linspace(0.05, 0.95, 19)  # the lambdas above


def doubt_of_signs(differences: Array) -> float:
    """Largest probability of so many ones among the differences that are not 0, if no more are expected.

    Examples
    --------
    >>> round(doubt_of_signs(np.repeat([1.0, 0.0, -1.0], [9, 80, 1])), 4)  # (10 + 1) / 2^10
    0.0107
    """
    moved = int(np.count_nonzero(differences))
    ones = int(np.count_nonzero(differences > 0))
    return float(stats.binom.sf(ones - 1, moved, 0.5)) if moved else 1.0


def doubt_of_mean(differences: Array, width: float) -> float:
    """1 / E of the module's docstring, at most 1.

    Examples
    --------
    >>> doubt_of_mean(np.full(100, 0.1), 1.0) < 0.01
    True
    >>> doubt_of_mean(np.full(100, -0.1), 1.0)
    1.0
    """
    shares = np.clip(differences / width, -1.0, 1.0)
    logs = np.log1p(STAKES[:, None] * shares).sum(axis=1)
    return float(min(1.0, np.exp(np.log(len(STAKES)) - np.logaddexp.reduce(logs))))


def constant_of(model: Any, rows: Rows, loss: TableLoss) -> tuple[dict[str, Any], Array]:
    """What the constant is and loses on the hold-out, and its loss on each unit there."""
    known = rows.y[rows.train]
    if model.task == "classification":
        value: Any = int(np.bincount(known, minlength=len(model.classes_)).argmax())
        words = f"'{shown(str(model.classes_[value]))}'"
        stated: Any = str(model.classes_[value])
    else:
        value = stated = float(np.median(known))
        words = f"the median of the training rows, {value:.6g}"
    truth = rows.y[rows.holdout]
    losses = rows.means(loss.rows(truth, np.full(len(truth), value)))
    return {"value": stated, "words": words, "loss": float(losses.mean())}, losses


def constant_claim(
    model: Any, rows: Rows, loss: TableLoss, predicted: Any, delta: float
) -> tuple[Claim, dict[str, Any]]:
    """Whether the true loss is below that of the constant; undecided where the rows do not show it.

    Parameters
    ----------
    model : TableModel
    rows : Rows
    loss : TableLoss
    predicted : array
        Predictions for the hold-out rows, codes of classes or numbers in the target's unit.
    delta : float
        Probability with which the claim may be wrong.
    """
    record, theirs = constant_of(model, rows, loss)
    mine = rows.means(loss.rows(rows.y[rows.holdout], predicted))
    differences = theirs - mine
    single = model.task == "classification" and rows.units.single
    doubt = doubt_of_signs(differences) if single else doubt_of_mean(differences, loss.width)
    better = doubt <= delta
    name, source = BETTER, "GEN-3"
    form = ".1%" if model.task == "classification" else ".4g"
    found = f"{mine.mean():{form}} against {theirs.mean():{form}} on the hold-out"
    always = f"always predicting {record['words']}"
    if better:
        statement = (
            f"with probability {percent(model.delta)}, the true {loss.words} is below that of {always} "
            f"({found}); {INDEPENDENT}"
        )
        claim = Claim.check(name, statement, Kind.STATISTICAL, doubt, delta, source)
    else:
        why = (
            f"not shown to be better than {always} ({found}): more held-out rows, or columns that tell more, "
            "could show it"
        )
        claim = Claim.undecided(name, why, Kind.STATISTICAL, source)
    return claim, {**record, "better": bool(better)}
