"""Whether two classes are separable: what weights of their rows show, and what exact arithmetic decides.

Weights lambda >= 0 of both classes with sum lambda_i y_i (x_i, 1) = 0 prove that no hyperplane separates them
(Gordan). Weights in floating point give 0 to rounding only: they show that no margin is wider than so much.
Whether the classes are separable is then decided exactly, where the features are the columns of X or a row
stands in both classes; else it stays undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._exact_separation import is_separable
from .._namespace import to_numpy
from ..certificate import Claim, Kind

__all__ = ["decide_separable", "separability_claim", "shared_row"]

Array = NDArray[np.float64]
_CELLS = 1 << 21  # entries of rows that are looked at exactly


def decide_separable(
    rows: Any, signs: Array, weights: Array, *, fit_intercept: bool
) -> bool | None:
    """Whether a hyperplane separates these rows; None where exact arithmetic would take too long.

    ``weights`` are those of the proof, a hint: the rows that carry them are looked at first.
    """
    held = np.flatnonzero(weights > 0.0)
    if _decide(rows, held, signs, weights, fit_intercept) is False:
        return False
    return _decide(rows, np.arange(len(signs)), signs, weights, fit_intercept)


def _decide(
    rows: Any, chosen: NDArray[np.intp], signs: Array, weights: Array, fit_intercept: bool
) -> bool | None:
    if not len(chosen) or len(chosen) * rows.shape[1] > _CELLS:
        return None
    part = _dense(rows, chosen)
    if fit_intercept:
        part = np.column_stack([part, np.ones(len(part))])
    return is_separable(signs[chosen, None] * part, weights=weights[chosen])


def shared_row(rows: Any, signs: Array) -> bool:
    """Whether the same row stands in both classes: no function of the rows tells them apart."""
    if not len(signs) or len(signs) * rows.shape[1] > _CELLS:
        return False
    plain = _dense(rows, np.arange(len(signs))) + 0.0  # -0.0 and 0.0 are the same
    first = {row.tobytes() for row in plain[signs > 0]}
    return any(row.tobytes() in first for row in plain[signs < 0])


def _dense(rows: Any, chosen: NDArray[np.intp]) -> Array:
    if sp.issparse(rows):
        return np.asarray(rows.tocsr()[chosen].toarray(), dtype=np.float64)
    return np.asarray(to_numpy(rows)[chosen], dtype=np.float64)


def separability_claim(
    separable: bool | None, words: str, residual: float, bound: float, source: str
) -> Claim:
    """The claim "not separable": ``words`` say what the weights show, ``separable`` what was decided."""
    name, kind = "not separable", Kind.EXACT
    if not residual <= bound:
        return Claim.check(
            name,
            f"{words}; that is more than rounding, and proves nothing",
            kind,
            residual,
            bound,
            source,
        )
    if separable is None:
        why = f"{words}; whether one separates them by less was not decided in exact arithmetic"
        return Claim.undecided(name, why, kind, source)
    if separable:
        found = f"a hyperplane separates the two classes, in exact arithmetic; {words}"
        return Claim.check(name, found, kind, 1.0, 0.0, source)
    found = f"no hyperplane separates the two classes, in exact arithmetic: {words}"
    return Claim.check(name, found, kind, residual, bound, source)
