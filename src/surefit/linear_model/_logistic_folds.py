"""One fold of a cross-validated logistic regression: the models for all C, and their scores.

Used by :class:`surefit.linear_model.LogisticRegressionCV`.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer, make_scorer
from sklearn.utils.validation import _check_method_params

from .._selection import take_rows
from ..duality import duality_gap
from ..iterate import Fit, Stop, Trace
from ..offsets import null_value
from ..penalties import NoPenalty
from .logistic import LogisticRegression

__all__ = [
    "FoldPath",
    "best_places",
    "fold_path",
    "path_models",
    "public",
    "score_path",
    "set_model",
    "solved",
]

Array = NDArray[np.float64]
_GOOD_START = 1e-5  # the relative gap with which a start needs no steps, when tol is looser


def best_places(scores: Array, *, refit: bool) -> list[tuple[int, int, int]]:
    """(fold, ratio, C) of the best score: of the average over the folds, or of each fold by itself.

    Of equal ones, the first C, and for it the first ratio; NaN is worse than any number.
    """
    table = scores.swapaxes(1, 2)  # (folds, Cs, ratios)
    if refit:
        table = np.broadcast_to(table.sum(axis=0), table.shape)
    table = np.where(np.isnan(table), -np.inf, table).reshape(len(table), -1)
    places = [np.unravel_index(int(k), scores.shape[:0:-1]) for k in table.argmax(axis=1)]
    return [(fold, int(r), int(c)) for fold, (c, r) in enumerate(places)]


class FoldPath(NamedTuple):
    """Coefficients (n_cs, n_classes, n_dof), scores (n_cs,), Newton steps (n_cs,)."""

    coefs: Array
    scores: Array
    n_iter: list[int]
    unfinished: int


def fold_path(
    model: LogisticRegression,
    X: Any,
    y: Any,
    sample_weight: Array | None,
    train: Any,
    test: Any,
    Cs: Array,
    scoring: Any,
    given: dict[str, Any],
) -> FoldPath:
    """The models for all C on the training rows, each starting from the last, and their scores."""
    s = None if sample_weight is None else sample_weight[train]
    path = path_models(model, take_rows(X, train), y[train], s, Cs)
    scores = score_path(model, path.coefs, Cs, X, y, test, scoring, given)
    return FoldPath(path.coefs, scores, path.n_iter, path.finished.count(False))


class PathModels(NamedTuple):
    """Coefficients (n_cs, n_classes, n_dof), Newton steps (n_cs,), and whether tol was reached (n_cs,)."""

    coefs: Array
    n_iter: list[int]
    finished: list[bool]


def path_models(
    model: LogisticRegression, X: Any, y: Any, sample_weight: Array | None, Cs: Array
) -> PathModels:
    """The models for all C, each starting from the last; ``model`` is changed on the way."""
    coefs: list[Array] = []
    steps, finished = [], []
    for k, C in enumerate(Cs):
        model.C = float(C)
        if k > 1:
            set_model(model, _ahead(coefs, Cs, k), X.shape[1])
        fit, null = solved(model, X, y, sample_weight)
        model.__dict__.update(public(model, fit.x))
        model.warm_start = True
        free = [model.intercept_[:, None]] if model.fit_intercept else []
        coefs.append(np.hstack([model.coef_, *free]))
        steps.append(fit.n_iter)
        finished.append(bool(fit.converged or fit.observed <= model.tol * null))
    return PathModels(np.array(coefs), steps, finished)


def _ahead(coefs: list[Array], Cs: Array, k: int) -> Array:
    """A start for the k-th C: the line through the last two solutions, as functions of 1 / C."""
    before, last, here = 1.0 / Cs[k - 2], 1.0 / Cs[k - 1], 1.0 / Cs[k]
    if not here < last < before:  # only forwards, to weaker penalties
        return coefs[-1]
    return coefs[-1] + (coefs[-1] - coefs[-2]) * ((last - here) / (before - last))


def solved(
    model: LogisticRegression, X: Any, y: Any, sample_weight: Array | None
) -> tuple[Fit, float]:
    """The model's own solver, on rows of positive weight, from its own start; and the objective at 0.

    A start that is optimal already, as along the flat end of a path, is left as it is.
    """
    loss, codes, s = model._problem(y, sample_weight)
    kept = s > 0
    if not kept.all():
        X, codes, s = take_rows(X, kept), codes[kept], s[kept]
    penalty, scaling = model._penalty(), model._intercept_scaling()
    null = null_value(loss, codes, s, fit_intercept=model.fit_intercept and scaling is None)
    w, b = model._start(X.shape[1])
    if model.warm_start and not isinstance(penalty, NoPenalty):
        here = duality_gap(
            X, codes, w, b, loss, penalty,
            weights=s, fit_intercept=model.fit_intercept, intercept_scaling=scaling,
        )  # fmt: skip
        if here.gap <= min(model.tol, _GOOD_START) * null:
            if scaling is not None:
                w, b = np.append(w, b / scaling), np.zeros(())
            return Fit((w, b), 0, Stop.CERTIFIED, here.gap, here.primal, Trace()), null
    return model._solve(X, codes, s, loss, (w, b), None), null


def public(model: LogisticRegression, point: Any) -> dict[str, Any]:
    """``coef_`` and ``intercept_`` in float64, as scikit-learn has them here."""
    return model._public(point, np.empty((1, 1)))


def set_model(model: LogisticRegression, coef: Array, p: int) -> None:
    """Coefficients from a row of ``coefs_paths_``."""
    model.n_features_in_ = p
    model.coef_ = coef[:, :p]
    model.intercept_ = coef[:, p] if model.fit_intercept else np.zeros(len(coef))


def score_path(
    model: LogisticRegression,
    coefs: Array,
    Cs: Array,
    X: Any,
    y: Any,
    test: Any,
    scoring: Any,
    given: dict[str, Any],
) -> Array:
    """The scores of the models of one fold on its test rows."""
    rows, labels = take_rows(X, test), y[test]
    extra = _check_method_params(X, params=given, indices=test)
    scorer = _with_labels(get_scorer(scoring), model.classes_)
    out = np.empty(len(Cs))
    for k, C in enumerate(Cs):
        model.C = float(C)
        set_model(model, coefs[k], X.shape[1])
        out[k] = model.score(rows, labels, **extra) if scorer is None else scorer(
            model, rows, labels, **extra
        )  # fmt: skip
    return out


def _with_labels(scorer: Any, classes: NDArray[Any]) -> Any:
    """A scorer that knows all classes: the test rows of a fold may lack one."""
    metric = getattr(scorer, "_score_func", None)
    known = inspect.signature(metric).parameters if metric is not None else {}
    if "labels" not in known:
        return scorer
    positive = {"pos_label": classes[-1]} if len(classes) <= 2 and "pos_label" in known else {}
    return make_scorer(
        metric,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        labels=classes,
        **{**positive, **getattr(scorer, "_kwargs", {})},
    )
