"""Cross-validation of one estimator: scikit-learn's results, and a certificate about the fold models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as sk
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import check_cv
from sklearn.model_selection._validation import (
    _aggregate_score_dicts,
    _insert_error_scores,
    _normalize_score_results,
)
from sklearn.utils import indexable
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import _num_samples

from ..certificate import Certificate, Claim
from ..stats import treat_rows
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

__all__ = ["CrossValidation", "cross_val_score", "cross_validate"]


class CrossValidation(dict[str, Any]):
    """scikit-learn's dict of scores and times, with a certificate.

    Attributes
    ----------
    certificate_ : Certificate
        The claims ``"folds"`` and ``"generalisation"``; with several scores, one ``"generalisation: name"``
        each.
    """

    certificate_: Certificate

    @property
    def statement_(self) -> str:
        """The sentence to quote; one a line where there are several scores."""
        found = [c for c in self.certificate_.claims if c.name.startswith("generalisation")]
        return "\n".join(claim.statement for claim in found)


@validate_params(
    {**sk.cross_validate._skl_parameter_constraints, **EXTRAS},
    prefer_skip_nested_validation=False,
)
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
    delta: float = 0.05,
    bound: str = "hoeffding",
    loss_range: tuple[float, float] | None = None,
    reuse: bool = True,
    rows_are_independent: bool = False,
    certify: bool | str = True,
) -> CrossValidation:
    """Fit and score an estimator on every fold; bound the true loss of the fold models.

    With probability at least 1 - delta, each of the F fold models has its true loss within a radius of its
    score, at delta / F each; so the mean of the true losses is within the mean radius of the mean score.
    That is about these F models. A model fitted on all rows is none of them, and no unbiased estimate of
    the variance of a cross-validated score exists (ERR-22).

    The estimator may be a :class:`GridSearchCV`: the selection is then nested, each fold's search has seen
    its training rows only, and the claim is about the F models that the F searches deliver.

    Parameters
    ----------
    estimator, X, y, groups, scoring, cv, n_jobs, verbose, params, pre_dispatch, return_train_score, \
    return_estimator, return_indices, error_score
        As in scikit-learn.
    delta, bound, loss_range, reuse, rows_are_independent, certify
        As in :class:`GridSearchCV`. With several scores, each gets its share of delta.

    Returns
    -------
    CrossValidation
        scikit-learn's dict, with ``certificate_`` and ``statement_``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> from surefit.model_selection import KFold
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> folds = KFold(4, shuffle=True, random_state=0)
    >>> results = cross_validate(RidgeClassifier(), X, y, cv=folds)
    >>> print(results.statement_)
    with probability 95 %, the mean true error of the 4 fold models is within 0.134 of 0.042; rows ...
    """
    check_groups(groups)
    X, y = indexable(X, y)
    params = {} if params is None else params
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    scorers = check_scoring(estimator, scoring=scoring, raise_exc=error_score == "raise")
    routed = route("cross_validate", estimator, cv, scorers, params, groups)
    splits = list(cv.split(X, y, **routed.splitter.split))
    losses = _losses_of(scorers, estimator, y, routed.scorer.score, loss_range, bound)
    bounded = tuple((name, loss) for name, loss in losses.items() if isinstance(loss, BoundedLoss))
    given = routed.splitter.split.get("groups")
    rows = treat_rows(X, y, groups=given, independent=rows_are_independent) if certify else None
    job = Job(
        scorer=scorers,
        fit_params=routed.estimator.fit,
        score_params=routed.scorer.score,
        return_train_score=return_train_score,
        return_estimator=return_estimator,
        error_score=error_score,
        verbose=verbose,
        losses=bounded if certify else (),
        labels=None if rows is None else rows.labels,
    )
    out, _ = evaluate(
        estimator if return_estimator else clone(estimator),
        [None],
        X,
        y,
        splits,
        job,
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        reuse=reuse and not return_estimator,
        name=f"{len(splits)} folds",
    )
    report_failures(out, [None], len(splits), error_score)
    if callable(scoring):
        _insert_error_scores(out, error_score)
    found = _aggregate_score_dicts(out)
    results = CrossValidation(fit_time=found["fit_time"], score_time=found["score_time"])
    if return_estimator:
        results["estimator"] = found["estimator"]
    if return_indices:
        train, test = zip(*splits)
        results["indices"] = {"train": train, "test": test}
    parts = ["test", "train"] if return_train_score else ["test"]
    tables = {part: _normalize_score_results(found[f"{part}_scores"]) for part in parts}
    results |= {f"{part}_{name}": tables[part][name] for name in tables["test"] for part in parts}
    if rows is not None:
        n = _num_samples(X)
        plain = plain_folds(splits)
        parts_claim = folds_claim(plain, n)
        claims = [parts_claim]
        kind, why = sampling(cv), no_bound(parts_claim, plain, [estimator], rows)
        for place, (name, loss) in enumerate(losses.items()):
            label = "generalisation" if len(losses) == 1 else f"generalisation: {name}"
            which = (
                [key for key, _ in bounded].index(name) if isinstance(loss, BoundedLoss) else place
            )
            statistics: Statistics | str
            if why:
                statistics = why
            else:
                evidence = collect_evidence(out, (1, len(splits)), which)
                share = delta / max(len(bounded), 1)
                statistics = observed(evidence, plain, loss, kind, rows, delta=share, bound=bound)
            claims.append(_fold_claim(statistics, len(splits), label))
        weight = params.get("sample_weight")
        results.certificate_ = Certificate(
            tuple(claims), data_id(X, y, weight), "all folds were fitted", "cross_validate"
        )
    return results


def _fold_claim(statistics: Statistics | str, folds: int, label: str) -> Claim:
    who = f" of the {folds} fold models" if folds > 1 else " of the fold model"
    caveat = "; it is about the fold models, not about a model fitted on all rows"
    return replace(generalisation_claim(statistics, 0, who, "", caveat=caveat), name=label)


def _losses_of(
    scorers: Any, estimator: Any, y: Any, score_params: Any, loss_range: Any, bound: str
) -> dict[str, BoundedLoss | str]:
    """Of each score, the loss that can be bounded, or why none can."""
    found = scorers._scorers if isinstance(scorers, _MultimetricScorer) else {"score": scorers}
    weighted = any(value is not None for value in (score_params or {}).values())
    losses: dict[str, BoundedLoss | str] = {}
    loss_range = check_range(loss_range)
    for name, scorer in found.items():
        if y is None:
            losses[name] = "without y there is no loss that a row could have"
        elif weighted:
            losses[name] = (
                "scores are weighted by sample_weight, and a weighted mean has no such bound"
            )
        else:
            losses[name] = loss_for(bound, bounded_loss(scorer, estimator, y, loss_range))
    return losses


@validate_params(
    {**sk.cross_val_score._skl_parameter_constraints, "reuse": ["boolean"]},
    prefer_skip_nested_validation=False,
)
def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    error_score: Any = np.nan,
    reuse: bool = True,
) -> NDArray[np.float64]:
    """The score on each fold: :func:`cross_validate` without times and certificate.

    Parameters
    ----------
    estimator, X, y, groups, scoring, cv, n_jobs, verbose, params, pre_dispatch, error_score
        As in scikit-learn.
    reuse : bool, default=True
        Share work between folds where possible.

    Returns
    -------
    ndarray of shape (n_splits,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from surefit.linear_model import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cross_val_score(Lasso(), X[:150], y[:150], cv=3).round(4)
    array([0.3315, 0.0802, 0.0353])
    """
    results = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring={"score": check_scoring(estimator, scoring=scoring)},
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch="all" if pre_dispatch is None else pre_dispatch,
        error_score=error_score,
        reuse=reuse,
        certify=False,
    )
    scores: NDArray[np.float64] = results["test_score"]
    return scores
