"""The claims about the choice of a logistic regression's penalty, and about the models that it rests on.

Used by :class:`surefit.linear_model.LogisticRegressionCV`; from the data and its public attributes alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._attributes import EPS
from .._optimality import outcome_claim
from .._selection import rescored_claim, selection_claim, unpack_folds, worst_claim
from ..certificate import Claim, Kind
from ._logistic_cv_spellings import l1_share, scoring_of
from ._logistic_folds import score_path, set_model

__all__ = ["average_claim", "choice_claim", "fold_claims"]

Array = NDArray[np.float64]


def choice_claim(cv: Any, scores: Array, C: float, ratio: Any, best: list[Any]) -> Claim:
    """C_ and l1_ratio_ have the best recorded score, or are the averages of the best of each fold."""
    shares = [l1_share(cv, r) for r in cv.l1_ratios_.tolist()]
    if cv.refit:
        averages = scores.mean(axis=0)  # (ratios, Cs)
        here = np.equal.outer(shares, l1_share(cv, ratio)).reshape(-1, 1) & (cv.Cs_ == C)
        chosen = float(averages[here].max()) if here.any() else math.nan
        if np.isnan(averages).all():
            chosen = 0.0 if here.any() else math.nan
        return selection_claim(f"C_ = {C:.4g}", chosen, averages)
    means = np.mean([(cv.Cs_[c], shares[r]) for _, r, c in best], axis=0)
    off = float(np.abs(means - (C, float(ratio))).max())
    words = f"C_ = {C:.4g} is the average of the best of each fold"
    return selection_claim(words, -off if off > 1e-12 * means[0] else 0.0, np.zeros(1))


def average_claim(cv: Any, coefs: Array, best: list[Any]) -> Claim:
    """Without a last fit: the coefficients are the average of those of the folds."""
    average = np.mean([coefs[index] for index in best], axis=0)
    own = np.hstack([cv.coef_, cv.intercept_[:, None]])[:, : average.shape[1]]
    observed = float(np.abs(own - average).max())
    size = float(np.abs(average).max(initial=0.0))
    bound = 8.0 * EPS * size
    models = f"the best models of {len(best)} folds"
    return outcome_claim(
        "average", Kind.EXACT, observed, bound, "GEN-7",
        holds=f"the coefficients are the average of {models}, to {observed:.1e}; no optimality claim",
        otherwise=f"the coefficients are {observed:.1e} away from the average of {models}",
    )  # fmt: skip


def fold_claims(
    cv: Any,
    X: Any,
    y: Any,
    sample_weight: Array | None,
    scores: Array,
    coefs: Array,
    best: list[Any],
    class_weight: Any,
    tol: float,
) -> list[Claim]:
    """The models of the folds: optimal where they were fitted, and scored as recorded."""
    folds, n, p = unpack_folds(cv.folds_), X.shape[0], X.shape[1]
    most = max(int(max(a.max(initial=0), b.max(initial=0))) for a, b in folds)
    whole = len(cv.folds_) == n if isinstance(cv.folds_, np.ndarray) else most < n
    others = sorted(set(cv.scored_with_) - {"sample_weight"})
    why = ""
    if not whole or len(folds) != len(scores) or coefs.shape[:3] != scores.shape:
        why = f"the recorded folds, or their models, are not of {n} rows"
    elif others:
        why = f"the scorer was given {', '.join(others)}, which verify does not have"
    if why:
        return [Claim.undecided("scores", why, Kind.EXACT, "GEN-7")]
    X = X.tocsr() if sp.issparse(X) else X
    given = {"sample_weight": sample_weight} if cv.scored_with_ else {}
    again, optimal = np.empty_like(scores), []
    for f, (train, test) in enumerate(folds):
        for r, ratio in enumerate(cv.l1_ratios_.tolist()):
            model = cv._model(1.0, ratio, class_weight)
            again[f, r] = score_path(model, coefs[f, r], cv.Cs_, X, y, test, scoring_of(cv), given)
        _, r, c = best[f]
        model = cv._model(float(cv.Cs_[c]), cv.l1_ratios_.tolist()[r], class_weight)
        set_model(model, coefs[f, r, c], p)
        s = None if sample_weight is None else sample_weight[train]
        optimal.append(model._certify(X[train], y[train], s, full=False, tol=tol)[0])
    floor = 1e-9 * (1.0 + np.abs(np.nan_to_num(again)))
    what = f"the scores of all {scores.size} models of the folds"
    return [
        worst_claim("fold models", "on its training rows", optimal),
        rescored_claim(scores, again, floor, what),
    ]
