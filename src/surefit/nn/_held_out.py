r"""The error of a network on new rows, from rows that no step of the fit has used (GEN-3).

If k of m independent rows are wrong, the error p of the distribution exceeds

.. math:: u(k) = \min \{p : P[\mathrm{Bin}(m, p) \le k] \le \delta\}

with probability at most :math:`\delta` (Clopper and Pearson). The fit records k. When the claim is recomputed
the rows' error is compared with the limit u(k) that the fit's record gives: other weights, other rows or a
forged record can exceed it, one row that rounding decides otherwise cannot.

References
----------
Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from ..certificate import Claim, Kind

if TYPE_CHECKING:
    from ._network_claims import Problem

__all__ = ["errors_of", "held_out"]

DELTA = 0.05


def errors_of(problem: Problem) -> int | None:
    """How many of the rows kept out are wrong, where that number is worth a claim."""
    if problem.held is None or not len(problem.held) or problem.chosen:
        return None
    if problem.wrong is None or problem.weight is not None:
        return None
    with torch.inference_mode():
        output = problem.module(problem.inputs(problem.held))
        target = problem.target[torch.from_numpy(problem.held)].to(output.device)
        return int(problem.wrong(output, target).sum())


def held_out(problem: Problem) -> Claim | None:
    """The claim "test-set radius", where rows were kept out."""
    name, source = "test-set radius", "GEN-3"
    if problem.held is None or not len(problem.held):
        return None
    if problem.chosen:
        why = (
            f"the {len(problem.held)} validation rows chose the weights (early stopping): their error is not "
            "that of new rows; score rows that the fit has not seen"
        )
        return Claim.undecided(name, why, Kind.STATISTICAL, source)
    if problem.wrong is None or problem.weight is not None:
        why = "only a mean of errors, rows counting alike, has a bound: weigh no rows, or score new ones"
        return Claim.undecided(name, why, Kind.STATISTICAL, source)
    if int(problem.held.max()) >= len(problem):
        return Claim.undecided(name, "these are not the rows of the fit", Kind.STATISTICAL, source)
    if problem.held_errors is None:
        why = "the fit left no record of its errors on them: fit again"
        return Claim.undecided(name, why, Kind.STATISTICAL, source)
    wrong, m = errors_of(problem), len(problem.held)
    assert wrong is not None
    now, then = (_limit(k, m) for k in (wrong, problem.held_errors))
    statement = (
        f"{wrong} of {m} rows that no step has used are wrong: with confidence {1 - DELTA:.0%} the error on "
        f"new rows is at most {math.ceil(1e4 * now) / 1e4:.4f} (Clopper-Pearson); the fit recorded "
        f"{problem.held_errors} wrong"
    )
    return Claim.check(name, statement, Kind.STATISTICAL, wrong / m, then, source)


def _limit(wrong: int, m: int) -> float:
    """u(k), k of m being wrong; nothing is shown by a record that is no such number."""
    from scipy.stats import beta

    if not 0 <= wrong <= m:
        return math.nan
    return 1.0 if wrong == m else float(beta.ppf(1 - DELTA, wrong + 1, m - wrong))
