r"""The error of a network on new rows, from rows that no step of the fit has used (GEN-3).

If k of m independent rows are wrong, the error p of the distribution exceeds

.. math:: u(k) = \min \{p : P[\mathrm{Bin}(m, p) \le k] \le \delta\}

with probability at most :math:`\delta` (Clopper and Pearson). Where chance does not explain that rows repeat
each other, copies count as one: the claim is about the mean of the groups' means, and its interval needs
independence of the groups only (:mod:`surefit.stats.groups`).

Whoever recomputes the claim draws the split again, compares the errors with the fit's record, and looks for
held-out rows among those that a step has used. Nothing is claimed of a module that came with weights: nobody
knows which rows these have seen. A limit that is no better than the error of the most frequent class, which
needs no network, is uninformative.

References
----------
Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ..certificate import Claim, Kind, Status
from ..stats import Repeats, group_interval

if TYPE_CHECKING:
    from ._network_claims import Problem

__all__ = ["HeldOut", "errors_of", "held_out"]

DELTA = 0.05
_NAME, _SOURCE = "test-set radius", "GEN-3"
_BLOCK = 1024  # rows that are passed at once
_TIES = 64  # roundings a layer, within which two outputs are equal


@dataclass
class HeldOut:
    """Rows that no step of a fit has used, and what shows that.

    Attributes
    ----------
    rows : ndarray of int
    chosen : bool
        Whether those rows chose the weights.
    copies : Repeats
        Of all rows: which belong together.
    split : callable
        The split again: (rows of the steps, rows held out).
    keys : ndarray of uint64
        Of all rows.
    seen : ndarray of uint64, ascending
        Keys of the rows that any step of this estimator has used.
    given_weights : list of str
        Parameters that the estimator did not draw.
    errors : int, optional
        How many of ``rows`` were wrong at the fit.
    """

    rows: NDArray[np.int64]
    chosen: bool
    copies: Repeats | None = None
    split: Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]] | None = None
    keys: NDArray[np.uint64] | None = None
    seen: NDArray[np.uint64] | None = None
    given_weights: Callable[[], list[str]] | None = None
    errors: int | None = None


def errors_of(problem: Problem) -> int | None:
    """How many of the held-out rows are wrong, where that number is worth a claim."""
    held = problem.held
    if held is None or held.chosen or problem.wrong is None or problem.weight is not None:
        return None
    return int(_errors(problem)[0].sum())


def held_out(problem: Problem) -> Claim | None:
    """The claim "test-set radius", where rows were held out."""
    held = problem.held
    if held is None:
        return None
    why = _no_claim(problem, held)
    if why:
        return Claim.undecided(_NAME, why, Kind.STATISTICAL, _SOURCE)
    broken = _other_split(problem, held)
    if broken:
        return Claim.check(_NAME, broken, Kind.STATISTICAL, 1.0, 0.0, _SOURCE)
    why = _leak(held)
    if why:
        return Claim.undecided(_NAME, why, Kind.STATISTICAL, _SOURCE)
    errors, ties = _errors(problem)
    wrong = int(errors.sum())
    if not abs(wrong - (held.errors or 0)) <= ties:
        words = (
            f"{wrong} of {len(errors)} held-out rows are wrong, and the fit recorded {held.errors}"
        )
        off = abs(wrong - (held.errors or 0))
        return Claim.check(_NAME, words, Kind.STATISTICAL, off, ties, _SOURCE)
    return _interval(problem, held, errors)


def _no_claim(problem: Problem, held: HeldOut) -> str:
    """Why nothing can be claimed, whatever the rows say; empty where something can."""
    if held.chosen:
        return (
            f"the {len(held.rows)} validation rows chose the weights (early stopping): their error is not "
            "that of new rows; score rows that the fit has not seen"
        )
    if problem.wrong is None or problem.weight is not None:
        return "only a mean of errors, rows counting alike, has a bound: weigh no rows, or score new ones"
    if held.errors is None or held.seen is None:
        return "the fit left no record of its errors on them, or of the rows it used: fit again"
    if not 0 <= held.errors <= len(held.rows):
        return ""  # which differs from any count
    given = held.given_weights() if held.given_weights is not None else []
    if given:
        return (
            f"the module came with weights that were not drawn here ({', '.join(given[:3])}"
            f"{', ...' if len(given) > 3 else ''}), and nobody knows which rows they have seen: give a class "
            "or a function that makes the module, or score new rows"
        )
    return ""


def _other_split(problem: Problem, held: HeldOut) -> str:
    """What shows that these are not the held-out rows of the fit."""
    assert held.split is not None
    assert held.keys is not None
    assert held.seen is not None
    try:
        rows, drawn = held.split()
    except ValueError as error:
        return f"the held-out rows cannot be drawn again: {error}"
    if not np.array_equal(np.sort(drawn), np.sort(held.rows)):
        return (
            f"the {len(held.rows)} held-out rows on record are not the {len(drawn)} that the fit's seed "
            "draws from these data"
        )
    missing = int((~np.isin(held.keys[rows], held.seen)).sum())
    if missing:
        return (
            f"{missing} of the {len(rows)} rows of the steps are not on the record of the rows used"
        )
    return ""


def _leak(held: HeldOut) -> str:
    """Why the held-out rows are not new to the weights."""
    assert held.keys is not None
    assert held.seen is not None
    seen = int(np.isin(held.keys[held.rows], held.seen).sum())
    if not seen:
        return ""
    return (
        f"{seen} of the {len(held.rows)} held-out rows were used by an earlier step of this estimator "
        "(warm_start, partial_fit): their error is not that of new rows; score new rows, or fit afresh"
    )


def _interval(problem: Problem, held: HeldOut, errors: NDArray[np.float64]) -> Claim:
    """The limits of the error on new rows, compared with the most frequent class."""
    copies, m, wrong = held.copies, len(errors), int(errors.sum())
    assert copies is not None
    constant = _constant_errors(problem, held)
    if copies.explained:
        estimate, low, high = wrong / m, 0.0, _limit(wrong, m)
        rival = float(constant.mean())
        statement = (
            f"{wrong} of {m} rows that no step has used are wrong: with confidence {1 - DELTA:.0%} the error "
            f"on new rows is at most {math.ceil(1e4 * high) / 1e4:.4f} (Clopper-Pearson)"
        )
    else:
        labels = copies.labels[held.rows]
        estimate, low, high = group_interval(errors, labels, DELTA)
        rival = group_interval(constant, labels, DELTA)[0]
        statement = (
            f"{wrong} of {m} rows that no step has used are wrong, copies of {len(np.unique(labels))} rows: "
            f"with confidence {1 - DELTA:.0%} the error on new rows, each counted once, is in "
            f"[{low:.4f}, {high:.4f}]"
        )
    claim = Claim.interval(_NAME, statement, Kind.STATISTICAL, estimate, low, high, _SOURCE)
    if claim.status is Status.HOLDS and high >= rival:
        words = (
            f"{statement}; always answering the most frequent class has an error of {rival:.4f} on them: "
            "hold out more rows, or train a better network, to tell the two apart"
        )
        return replace(claim, statement=words, bound=rival, status=Status.UNINFORMATIVE)
    return replace(claim, bound=rival) if claim.status is Status.HOLDS else claim


def _errors(problem: Problem) -> tuple[NDArray[np.float64], int]:
    """Errors (0 or 1) of the held-out rows, and how many of them rounding could turn."""
    assert problem.held is not None
    assert problem.wrong is not None
    found, ties = [], 0
    depth = sum(1 for _ in problem.module.modules())
    for first in range(0, len(problem.held.rows), _BLOCK):
        rows = problem.held.rows[first : first + _BLOCK]
        with torch.inference_mode():
            output = problem.module(problem.inputs(rows))
            target = problem.target[torch.from_numpy(rows)].to(output.device)
            found.append(problem.wrong(output, target).double().cpu().numpy())
            best, second = output.double().topk(2, dim=1).values.unbind(dim=1)
            near = torch.finfo(output.dtype).eps * output.double().abs().amax(dim=1)
            ties += int((best - second <= _TIES * depth * near).sum())
    return np.concatenate(found), ties


def _constant_errors(problem: Problem, held: HeldOut) -> NDArray[np.float64]:
    """Errors of the class that is most frequent among the rows of the steps."""
    target = problem.target.cpu().numpy()
    used = np.ones(len(target), dtype=np.bool_)
    used[held.rows] = False
    classes, counts = np.unique(target[used], return_counts=True)
    return np.asarray(target[held.rows] != classes[counts.argmax()], dtype=np.float64)


def _limit(wrong: int, m: int) -> float:
    """u(k), k of m being wrong."""
    from scipy.stats import beta

    return 1.0 if wrong == m else float(beta.ppf(1 - DELTA, wrong + 1, m - wrong))
