"""What the score of a ridge model on some rows is, as a scorer sees it.

Shared by the fits of :mod:`surefit.linear_model.ridge_cv` and their certificates.
"""

from __future__ import annotations

import math
import warnings
from traceback import format_exc
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._selection import take_rows
from ..design import as_design
from .ridge import Ridge
from .ridge_classifier import RidgeClassifier, RidgeLabels

__all__ = ["Scored", "fold_predictions", "score_errors", "score_fold", "spread"]

Array = NDArray[np.float64]


class _Predictions(Ridge):
    """Predicts what it is given."""

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(X)


class _Decisions(RidgeClassifier):
    """Decides by the scores that it is given."""

    def decision_function(self, X: Any) -> NDArray[Any]:
        return np.asarray(X)


class Scored(NamedTuple):
    """Scores (n_alphas,) or (n_alphas, n_targets), and values (n, T, n_alphas) behind them."""

    scores: Array
    values: Array


def _stand_in(cv: Any) -> Any:
    """An estimator whose predictions are already known."""
    if not isinstance(cv, RidgeLabels):
        return _Predictions(certify=False)
    model = _Decisions(certify=False)
    model.classes_, model.multilabel_ = cv.classes_, cv.multilabel_
    return model


def score_errors(
    cv: Any, errors: Array, y: Any, target: Array, weights: Array | None, extra: dict[str, Any]
) -> Scored:
    """The score of each alpha from the leave-one-out errors (n, T, n_alphas)."""
    per_target = cv.alpha_per_target and errors.shape[1] > 1
    if cv.scoring is None:
        squares = errors**2
        if weights is not None:
            squares *= weights[:, None, None]
        return Scored(-squares.mean(axis=0 if per_target else (0, 1)).T, squares)
    predictions = target.reshape(len(target), -1)[:, :, None] - errors
    scorer, model = cv._get_scorer(), _stand_in(cv)
    labels = isinstance(cv, RidgeLabels)
    flat = target.ndim == 1 or (labels and not cv.multilabel_ and errors.shape[1] == 1)
    seen = predictions[:, 0] if flat else predictions
    truth = y if labels else target
    if per_target:
        scores = [
            [scorer(model, p[:, k], truth[:, k], **extra) for k in range(errors.shape[1])]
            for p in np.moveaxis(seen, -1, 0)
        ]
    else:
        scores = [scorer(model, p, truth, **extra) for p in np.moveaxis(seen, -1, 0)]
    return Scored(np.array(scores, dtype=np.float64), predictions)


def score_fold(
    cv: Any,
    X: Any,
    y: Any,
    path: tuple[Array, Array],
    alphas: NDArray[Any],
    extra: dict[str, Any],
    *,
    flat: bool,
) -> Array:
    """The score of each alpha on the test rows of one fold, as a grid search would compute it."""
    scorer = cv._get_scorer()
    coef, intercept = path  # (n_alphas, p, T), (n_alphas, T)
    plain = cv.scoring is None or hasattr(
        scorer, "_score_func"
    )  # sees predictions and nothing else
    if plain:
        model, given = _stand_in(cv), fold_predictions(X, path)
        flat = flat or (isinstance(cv, RidgeLabels) and not cv.multilabel_ and coef.shape[2] == 1)
    scores = np.empty(len(alphas))
    for k, alpha in enumerate(alphas):
        if plain:
            seen = given[:, 0, k] if flat else given[:, :, k]
        else:
            model, seen = cv._model().set_params(alpha=alpha), X
            model.n_features_in_ = coef.shape[1]
            single = coef.shape[2] == 1
            model.coef_ = coef[k, :, 0] if single else coef[k].T
            model.intercept_ = intercept[k][0] if flat else intercept[k]
        try:
            scores[k] = scorer(model, seen, y, **extra)
        except Exception:
            scores[k] = math.nan
            warnings.warn(
                "Scoring failed. The score on this train-test partition for these parameters will be set "
                f"to nan. Details: \n{format_exc()}",
                UserWarning,
                stacklevel=2,
            )
    return scores


def fold_predictions(X: Any, path: tuple[Array, Array]) -> Array:
    """(n, T, n_alphas)."""
    coef, intercept = path
    count, p, T = coef.shape
    wide = np.moveaxis(coef, 0, 2).reshape(p, T * count)
    product = as_design(X).dot(np.ascontiguousarray(wide)).reshape(X.shape[0], T, count)
    return np.asarray(product + intercept.T)


def spread(
    X: Any, target: Array, weights: Array, errors: Array, path: tuple[Array, Array]
) -> Array:
    """The errors on all rows: those without weight are predicted by the fit to the others, ``path``."""
    out = np.empty((len(target), *errors.shape[1:]))
    none = weights == 0
    predicted = fold_predictions(take_rows(X, none), path)
    out[~none] = errors
    out[none] = target.reshape(len(target), -1)[none][:, :, None] - predicted
    return out
