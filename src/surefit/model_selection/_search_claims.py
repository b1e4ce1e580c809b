"""What a search claims: its folds, its scores, its choice, and what follows for data to come.

Everything is computed from the data and the recorded results; to decide "scores" all fits are made again,
each on its own, without the work that the fit may have shared.
"""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _num_samples

from .._selection import later_claim, selection_claim, unpack_folds
from ..certificate import Claim, Kind, Status
from ..stats import Rows
from ._certified import claims_of, may_be_random, parameters_words, same_parameters, scores_claim
from ._claims import (
    Statistics,
    excess_claim,
    folds_claim,
    generalisation_claim,
    no_bound,
    observed,
)
from ._evaluate import collect_evidence, evaluate

__all__ = ["search_claims"]


def search_claims(
    search: Any, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
) -> list[Claim]:
    """The claims of a fitted search."""
    n, splits = _num_samples(X), unpack_folds(search.folds_)
    folds = folds_claim(splits, n)
    if full and folds.status is Status.HOLDS and not _given_by_cv(search, splits, X, y):
        words = f"the recorded folds are not those that cv={search.cv!r} gives"
        folds = Claim.check("folds", words, Kind.EXACT, 1.0, 0.0, "GEN-7")
    claims = [folds]
    names = _metrics(search)
    recorded = np.stack([_split_scores(search, name) for name in names])
    evidence: Any = np.asarray(search.evidence_)
    params = search.cv_results_["params"]
    what = f"the scores of {_count(len(params), 'candidate')} on {_count(len(splits), 'fold')}"
    others = [name for name in search.fit_parameters_ if name not in ("sample_weight", "groups")]
    rows = search._rows(X, y)
    if not full:
        claims.append(later_claim())
    elif others:
        why = f"fit was given {', '.join(others)}, which are not at hand: nothing is recomputed"
        claims.append(Claim.undecided("scores", why, Kind.EXACT, "GEN-7"))
        evidence = None  # what was recorded is not taken on trust
    elif folds.status is Status.HOLDS:
        again = partial(_fits_again, search, X, y, sample_weight, splits, names, rows.labels)
        found, evidence = again()
        sizes = [len(test) for _, test in splits]
        random = may_be_random(search.estimator, *params)
        claims.append(
            scores_claim(
                recorded,
                found,
                sizes,
                what,
                classifier=is_classifier(search.estimator),
                once_more=(lambda: again()[0]) if random else None,
                tol=1e-6 if search.reuse_ == "none" else 1e-4,
            )
        )
    if _chosen(search) is not None:
        claims.append(_choice_claim(search))
    claims += _statistical_claims(search, y, sample_weight, evidence, splits, folds, rows)
    if "best_estimator_" in vars(search):
        why = (
            "nothing is claimed: best_estimator_ was refitted on all rows, and none is left that it has "
            "not seen. HoldOut keeps some"
        )
        name = "best_estimator_: generalisation"
        claims.append(Claim.undecided(name, why, Kind.STATISTICAL, "GEN-7"))
        if not others:
            model = search.best_estimator_
            many = len(params) > 1
            claims += claims_of(
                model, X, y, sample_weight, full=full, tol=tol, name="best_estimator_", chosen=many
            )
    return claims


def _given_by_cv(search: Any, splits: Any, X: Any, y: Any) -> bool:
    """Whether the folds are those of cv, where that is a number: nothing of them is then random."""
    if not isinstance(search.cv, Integral | None):
        return True
    cv = check_cv(search.cv, y, classifier=is_classifier(search.estimator))
    try:
        given = list(cv.split(X, y))
    except ValueError:  # other data, which cannot be split so
        return False
    return len(given) == len(splits) and all(
        np.array_equal(mine, theirs)
        for one, other in zip(splits, given)
        for mine, theirs in zip(one, other)
    )


def _chosen(search: Any) -> int | None:
    """The candidate that was chosen, if one was."""
    if search.multimetric_ and not search.refit:
        return None
    return int(search.best_index_)


def _metrics(search: Any) -> list[str]:
    """Names of the scores, as cv_results_ has them."""
    start = "split0_test_"
    return [key.removeprefix(start) for key in search.cv_results_ if key.startswith(start)]


def _split_scores(search: Any, name: str) -> Any:
    """Recorded scores, of shape (candidates, folds)."""
    keys = [f"split{k}_test_{name}" for k in range(search.n_splits_)]
    return np.stack([np.asarray(search.cv_results_[key], dtype=np.float64) for key in keys], axis=1)


def _fits_again(
    search: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    splits: Any,
    names: list[str],
    labels: Any,
) -> tuple[Any, Any]:
    """Scores and evidence of every candidate on the recorded folds, each fitted on its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job, _ = search._job_again(y, sample_weight, labels)
        error = np.nan if search.error_score == "raise" else search.error_score
        job = job._replace(error_score=error, return_train_score=False, verbose=0)
        params = search.cv_results_["params"]
        options = {"n_jobs": search.n_jobs, "pre_dispatch": search.pre_dispatch, "reuse": False}
        out, _ = evaluate(clone(search.estimator), params, X, y, splits, job, **options)
    shape = (len(params), len(splits))
    scores = [
        [
            r["test_scores"][m] if isinstance(r["test_scores"], dict) else r["test_scores"]
            for r in out
        ]
        for m in names
    ]
    found = np.array(scores, dtype=np.float64).reshape(len(names), *shape)
    return found, collect_evidence(out, shape)


def _choice_claim(search: Any) -> Claim:
    """The candidate has the best mean of the recorded scores."""
    results, best = search.cv_results_, int(search.best_index_)
    words = parameters_words(search.best_params_)
    if callable(search.refit):
        why = f"{words} was chosen by refit={search.refit!r}, which need not choose the best score"
        return Claim.undecided("selection", why, Kind.EXACT, "GEN-7")
    name = search.refit if search.multimetric_ else "score"
    means = _split_scores(search, name).mean(axis=1)
    known = 0 <= best < len(means) and same_parameters(results["params"][best], search.best_params_)
    chosen = float(means[best]) if known else float("nan")
    return selection_claim(words, chosen, means, float(search.best_score_))


def _statistical_claims(
    search: Any,
    y: Any,
    sample_weight: Any,
    evidence: Any,
    splits: Any,
    folds: Claim,
    rows: Rows,
) -> list[Claim]:
    """About the fold models of the chosen candidate, at the limits that hold for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, loss = search._job_again(y, sample_weight)
    kind = search.promise_["sampling"]
    statistics: Statistics | str
    why = no_bound(folds, splits, [search.estimator, *search.cv_results_["params"]], rows)
    if why:
        statistics = why
    elif evidence is None:
        statistics = "the fits cannot be made again, so that nothing is known about their losses"
    else:
        statistics = observed(evidence, splits, loss, kind, rows, **search._promised())
    chosen = _chosen(search)
    many = _count(len(search.cv_results_["params"]), "candidate")
    folds_count = len(splits)
    words = "" if chosen is None else f" of {parameters_words(search.best_params_)}"
    who = f" of the {folds_count} fold models{words}"
    tried = f", after trying {many} on {_count(folds_count, 'fold')}"
    caveat = "; it is about the fold models, not about best_estimator_"
    claim = generalisation_claim(statistics, chosen, who, tried, caveat=caveat)
    extra = excess_claim(statistics, chosen, who)
    return [claim] if extra is None else [claim, extra]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
