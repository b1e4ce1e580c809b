"""What cross-validation adds to a fit: the folds, and the claims about a choice among recorded scores.

Shared by the models that choose their own penalty and by the searches of ``model_selection``; knows nothing
of how the scores were computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._optimality import outcome_claim
from ._worst import badness, largest
from .certificate import Claim, Kind
from .design import Dense, as_design

__all__ = [
    "CAVEAT",
    "dense_rows",
    "later_claim",
    "pack_folds",
    "rescored_claim",
    "selection_claim",
    "take_rows",
    "unpack_folds",
    "worst_claim",
]

Array = NDArray[np.float64]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
CAVEAT = (
    "the cross-validated score selected it, and is not an estimate of the error of this model with a "
    "guarantee"
)


def pack_folds(folds: list[Fold], n: int) -> Any:
    """The folds as a fitted attribute: the number of the fold that tests each row, where that says it all.

    That is, where each row is tested once and trained on by all other folds; otherwise the folds themselves.
    """
    number = np.full(n, len(folds))
    for k, (_, test) in enumerate(folds):
        number[test] = k
    tested = sum(len(test) for _, test in folds)
    plain = tested == n and bool((number < len(folds)).all())
    for k, (train, _) in enumerate(folds):
        plain = plain and np.array_equal(train, np.flatnonzero(number != k))
    if plain:
        return number.astype(np.min_scalar_type(len(folds)))
    return [(np.asarray(train), np.asarray(test)) for train, test in folds]


def unpack_folds(packed: Any) -> list[Fold]:
    """The (train, test) pairs of :func:`pack_folds`."""
    if not isinstance(packed, np.ndarray):
        return list(packed)
    return [
        (np.flatnonzero(packed != k), np.flatnonzero(packed == k))
        for k in range(int(packed.max()) + 1)
    ]


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array or a sparse matrix."""
    return X.tocsr()[rows] if hasattr(X, "tocsr") else X[rows]


def dense_rows(X: Any) -> Array:
    """X as a float64 array."""
    design = as_design(X)
    if isinstance(design, Dense):
        return np.asarray(design.X, dtype=np.float64)
    return np.concatenate([block.toarray() for _, block in design.blocks()])


def selection_claim(
    names: str, chosen: float, scores: Array, recorded: float = math.nan, *, kind: str = "score"
) -> Claim:
    """The chosen candidate has the best of the recorded scores.

    Parameters
    ----------
    names : str
        What was chosen, such as "alpha_ = 0.1".
    chosen : float
        Recorded score of the choice, averaged over the folds; NaN if it is not among the candidates.
    scores : array
        Those of all candidates; larger is better.
    recorded : float
        ``best_score_``, where the model has it.
    kind : str
        What a score is called.
    """
    scores = np.asarray(scores, dtype=np.float64).ravel()
    finite = scores[~np.isnan(scores)]
    best = float(finite.max()) if len(finite) else math.nan
    missing = best - chosen if len(finite) else 0.0  # without any number, the first candidate it is
    if not math.isnan(recorded):  # an average, in whatever order it was taken
        slip = abs(recorded - chosen)
        missing = largest(missing, 0.0 if slip <= 1e-12 * abs(chosen) else slip)
    many = f"{scores.size} candidates" if scores.size != 1 else "the one candidate"
    return outcome_claim(
        "selection", Kind.EXACT, missing, 0.0, "GEN-7",
        holds=f"{names} has the best recorded {kind} of {many}, to {missing:.1e}; {CAVEAT}",
        otherwise=f"{names} misses the best recorded {kind} of {many} by {missing:.1e}",
    )  # fmt: skip


def rescored_claim(
    recorded: Array, recomputed: Array, floor: Array, what: str, *, name: str = "scores"
) -> Claim:
    """The recorded scores are those that the data give; ``floor`` is what rounding may do to each."""
    recorded, recomputed, floor = np.broadcast_arrays(recorded, recomputed, floor)
    both = np.isnan(recorded) & np.isnan(recomputed)
    gap = np.where(both, 0.0, np.abs(recorded - recomputed))
    if not np.isfinite(floor).all() or float(np.max(floor / (1.0 + np.abs(recorded)))) > 1e-4:
        why = f"{what} could be recomputed to {float(np.max(floor)):.1e} only: nothing is shown"
        return Claim.undecided(name, why, Kind.EXACT, "GEN-7")
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(gap - floor, nan=np.inf))), gap.shape)
    statement = (
        f"{what}, recomputed from the data, {'agree' if recorded.size > 1 else 'agrees'} to "
        f"{float(gap[worst]):.1e}"
    )
    observed, bound = float(gap[worst]), float(floor[worst])
    return Claim.check(name, statement, Kind.EXACT, observed, bound, "GEN-7")


def later_claim(name: str = "scores", kind: Kind = Kind.EXACT) -> Claim:
    """What is too expensive at fit time."""
    why = "not recomputed from the data: surefit.verify or certify='full' does"
    return Claim.undecided(name, why, kind, "GEN-7")


def worst_claim(name: str, prefix: str, claims: Iterable[Claim]) -> Claim:
    """One claim for several models: a failed one, else an undecided one, else the nearest to its bound."""
    claims = list(claims)
    worst = max(claims, key=badness)
    statement = f"{prefix}, worst of {len(claims)}: {worst.statement}"
    return Claim(
        name, statement, worst.kind, worst.observed, worst.bound, worst.status, worst.source
    )
