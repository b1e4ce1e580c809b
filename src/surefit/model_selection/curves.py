"""Learning and validation curves: scikit-learn's arrays, and how far each point can be off (GEN-9).

A curve of T points over F folds evaluates T x F models; the radius of each counts them all, so that the whole
curve lies within its band at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as sk
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.model_selection._validation import _incremental_fit_estimator, _translate_train_sizes
from sklearn.utils import check_random_state, indexable
from sklearn.utils._param_validation import validate_params
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from ..certificate import Certificate
from ..stats import Rows, treat_rows
from ._certified import EXTRAS, check_range, data_id, loss_for
from ._claims import (
    Statistics,
    folds_claim,
    generalisation_claim,
    no_bound,
    observed,
    plain_folds,
    sampling,
)
from ._evaluate import Job, collect_evidence, evaluate, report_failures
from ._losses import BoundedLoss, bounded_loss
from ._routing import check_groups, route

__all__ = ["Curve", "learning_curve", "validation_curve"]

Array = NDArray[np.float64]
TRAIN_SIZES = np.linspace(0.1, 1.0, 5)


class Curve(tuple[Any, ...]):
    """scikit-learn's tuple of arrays, with what may be said about the points.

    Attributes
    ----------
    ticks : ndarray
        Training sizes, or values of the parameter.
    train_scores, test_scores : ndarray of shape (n_ticks, n_folds)
        Scores.
    intervals : ndarray of shape (n_ticks, 2)
        Where the mean true loss of the fold models of each point lies, all at once with probability
        at least 1 - delta; NaN where no bound is stated.
    certificate_ : Certificate
        The claim ``"folds"``, and one ``"generalisation: ..."`` a point.
    """

    ticks: Any
    train_scores: Array
    test_scores: Array
    intervals: Array
    certificate_: Certificate

    def plot(self, ax: Any = None) -> Any:
        """Mean scores over the points; the whiskers are the standard deviation over folds."""
        from matplotlib import pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        for name, scores in (("training", self.train_scores), ("test", self.test_scores)):
            spread = scores.std(axis=1)
            ax.errorbar(self.ticks, scores.mean(axis=1), spread, label=name, capsize=3, lw=1.8)
        ax.set_ylabel("score")
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
        return ax


@validate_params(
    {**sk.learning_curve._skl_parameter_constraints, **EXTRAS}, prefer_skip_nested_validation=False
)
def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    train_sizes: Any = TRAIN_SIZES,
    cv: Any = None,
    scoring: Any = None,
    exploit_incremental_learning: bool = False,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    shuffle: bool = False,
    random_state: Any = None,
    error_score: Any = np.nan,
    return_times: bool = False,
    params: dict[str, Any] | None = None,
    delta: float = 0.05,
    bound: str = "hoeffding",
    loss_range: tuple[float, float] | None = None,
    reuse: bool = True,
    rows_are_independent: bool = False,
    certify: bool | str = True,
) -> Curve:
    """Scores of models fitted on more and more rows.

    Parameters
    ----------
    estimator, X, y, groups, train_sizes, cv, scoring, exploit_incremental_learning, n_jobs, pre_dispatch, \
    verbose, shuffle, random_state, error_score, return_times, params
        As in scikit-learn.
    delta, bound, loss_range, reuse, rows_are_independent, certify
        As in :class:`GridSearchCV`.

    Returns
    -------
    Curve
        Unpacks like scikit-learn's tuple: sizes, training scores, test scores (and times).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> curve = learning_curve(RidgeClassifier(), X, y, train_sizes=[60, 400])
    >>> sizes, train, test = curve
    >>> print(curve.certificate_["generalisation: 400 rows"].statement)
    with probability 95 %, the mean true error of the 5 fold models at the class frequencies of the test
    rows is within 0.163 of 0.046, after evaluating 10 models; rows drawn independently from one
    distribution
    """
    if exploit_incremental_learning and not hasattr(estimator, "partial_fit"):
        raise ValueError(
            "An estimator must support the partial_fit interface to exploit incremental learning"
        )
    check_groups(groups)
    X, y, groups = indexable(X, y, groups)
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    scorer = check_scoring(estimator, scoring=scoring)
    routed = route("learning_curve", estimator, cv, scorer, params, groups, partial=True)
    folds = list(cv.split(X, y, **routed.splitter.split))
    sizes = _translate_train_sizes(train_sizes, len(folds[0][0]))
    if verbose > 0:
        print(f"[learning_curve] Training set sizes: {sizes}")
    if shuffle:
        rng = check_random_state(random_state)
        folds = [(rng.permutation(train), test) for train, test in folds]
    loss = _loss(scorer, estimator, y, routed.scorer.score, loss_range, bound)
    rows = treat_rows(
        X, y, groups=routed.splitter.split.get("groups"), independent=rows_are_independent
    )
    job = Job(
        scorer=scorer,
        fit_params=routed.estimator.fit,
        score_params=routed.scorer.score,
        return_train_score=True,
        error_score=error_score,
        verbose=verbose,
        losses=(("score", loss),) if certify and isinstance(loss, BoundedLoss) else (),
        labels=None if rows is None else rows.labels,
    )
    shape = (len(folds), len(sizes))
    if exploit_incremental_learning:
        classes = np.unique(y) if is_classifier(estimator) else None
        parts = Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, verbose=verbose)(
            delayed(_incremental_fit_estimator)(
                clone(estimator),
                X,
                y,
                classes,
                train,
                test,
                sizes,
                scorer,
                return_times,
                error_score=error_score,
                fit_params=routed.estimator.partial_fit,
                score_params=routed.scorer.score,
            )
            for train, test in folds
        )
        found = list(np.asarray(parts).transpose((2, 1, 0)))
        evidence, loss = _evidence_of_scores(found[1], folds, loss, rows)
    else:
        splits = [(train[:size], test) for train, test in folds for size in sizes]
        out, _ = evaluate(
            clone(estimator),
            [None],
            X,
            y,
            splits,
            job,
            n_jobs=n_jobs,
            pre_dispatch=pre_dispatch,
            reuse=reuse,
            name=f"{len(sizes)} sizes, {len(folds)} folds",
        )
        report_failures(out, [None], len(splits), error_score)
        times = ["fit_time", "score_time"] if return_times else []
        found = [
            np.array([result[key] for result in out]).reshape(shape).T
            for key in ("train_scores", "test_scores", *times)
        ]
        evidence = collect_evidence(out, shape).transpose(1, 0, 2)
    curve = Curve((sizes, *found))
    curve.ticks, curve.train_scores, curve.test_scores = sizes, found[0], found[1]
    if rows is not None:
        names = [f"{size} rows" for size in sizes]
        data = (X, y, (params or {}).get("sample_weight"))
        about = ("learning_curve", estimator, rows)
        _certify(curve, data, folds, cv, loss, evidence, names, delta, bound, *about)
    return curve


def _evidence_of_scores(
    scores: Array, folds: list[Any], loss: BoundedLoss | str, rows: Rows | None
) -> tuple[Array, BoundedLoss | str]:
    """What scores alone say, of models that were fitted in parts: of a 0-1 loss, everything."""
    evidence = np.full((*scores.shape, 4), np.nan)
    if isinstance(loss, BoundedLoss) and (loss.needs_rows or (rows is not None and rows.grouped)):
        return evidence, "losses of single rows are not known of models that are fitted in parts"
    if isinstance(loss, BoundedLoss):
        for place in np.ndindex(*scores.shape):
            n = len(folds[place[1]][1])
            evidence[place] = loss.evidence(None, None, None, float(scores[place]), n)
    return evidence, loss


@validate_params(
    {**sk.validation_curve._skl_parameter_constraints, **EXTRAS},
    prefer_skip_nested_validation=False,
)
def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    param_name: str,
    param_range: Any,
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    error_score: Any = np.nan,
    params: dict[str, Any] | None = None,
    delta: float = 0.05,
    bound: str = "hoeffding",
    loss_range: tuple[float, float] | None = None,
    reuse: bool = True,
    rows_are_independent: bool = False,
    certify: bool | str = True,
) -> Curve:
    """Training and test scores over the values of one parameter.

    Parameters
    ----------
    estimator, X, y, param_name, param_range, groups, cv, scoring, n_jobs, pre_dispatch, verbose,
    error_score, params
        As in scikit-learn.
    delta, bound, loss_range, reuse, rows_are_independent, certify
        As in :class:`GridSearchCV`.

    Returns
    -------
    Curve
        Unpacks like scikit-learn's tuple: training scores, test scores.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> values = [1e-2, 1.0, 1e4]
    >>> curve = validation_curve(RidgeClassifier(), X, y, param_name="alpha", param_range=values)
    >>> train, test = curve
    >>> test.mean(axis=1).round(3)
    array([0.958, 0.954, 0.93 ])
    """
    check_groups(groups)
    X, y, groups = indexable(X, y, groups)
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    scorer = check_scoring(estimator, scoring=scoring)
    routed = route("validation_curve", estimator, cv, scorer, params, groups)
    folds = list(cv.split(X, y, **routed.splitter.split))
    loss = _loss(scorer, estimator, y, routed.scorer.score, loss_range, bound)
    rows = treat_rows(
        X, y, groups=routed.splitter.split.get("groups"), independent=rows_are_independent
    )
    job = Job(
        scorer=scorer,
        fit_params=routed.estimator.fit,
        score_params=routed.scorer.score,
        return_train_score=True,
        error_score=error_score,
        verbose=verbose,
        losses=(("score", loss),) if certify and isinstance(loss, BoundedLoss) else (),
        labels=None if rows is None else rows.labels,
    )
    values = list(param_range)
    out, _ = evaluate(
        clone(estimator),
        [{param_name: value} for value in values],
        X,
        y,
        folds,
        job,
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        reuse=reuse,
        name=f"{len(values)} values, {len(folds)} folds",
    )
    shape = (len(values), len(folds))
    tables = [
        np.array([result[key] for result in out]).reshape(shape)
        for key in ("train_scores", "test_scores")
    ]
    curve = Curve(tables)
    curve.ticks, (curve.train_scores, curve.test_scores) = param_range, tables
    if rows is not None:
        names = [f"{param_name}={value}" for value in values]
        data = (X, y, (params or {}).get("sample_weight"))
        evidence = collect_evidence(out, shape)
        about = ("validation_curve", estimator, rows)
        _certify(curve, data, folds, cv, loss, evidence, names, delta, bound, *about)
    return curve


def _loss(
    scorer: Any, estimator: Any, y: Any, score_params: Any, loss_range: Any, bound: str
) -> BoundedLoss | str:
    if y is None or any(value is not None for value in (score_params or {}).values()):
        return "scores are weighted, or there is no y: no bound is stated"
    return loss_for(bound, bounded_loss(scorer, estimator, y, check_range(loss_range)))


def _certify(
    curve: Curve,
    data: tuple[Any, Any, Any],
    folds: list[Any],
    cv: Any,
    loss: BoundedLoss | str,
    evidence: Array,
    names: Sequence[str],
    delta: float,
    bound: str,
    about: str,
    estimator: Any,
    rows: Rows,
) -> None:
    """The band around the curve, and the certificate that states it."""
    plain = plain_folds(folds)
    first, kind = folds_claim(plain, _num_samples(data[0])), sampling(cv)
    why = no_bound(first, plain, [estimator], rows)
    statistics: Statistics | str
    curve.intervals = np.full((len(names), 2), np.nan)
    if why:
        statistics = why
    else:
        statistics = observed(evidence, plain, loss, kind, rows, delta=delta, bound=bound)
        if isinstance(statistics, Statistics):
            curve.intervals = np.stack(statistics.limits(), axis=1)
    who, tried = (
        f" of the {len(folds)} fold models",
        f", after evaluating {evidence.size // 4} models",
    )
    claims = [
        replace(generalisation_claim(statistics, i, who, tried), name=f"generalisation: {name}")
        for i, name in enumerate(names)
    ]
    curve.certificate_ = Certificate(
        (first, *claims), data_id(*data), "all points were fitted", about
    )
