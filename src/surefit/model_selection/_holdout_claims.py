"""What :class:`HoldOut` claims: its split, its choice, the model it ships, and its bound on data to come."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._selection import later_claim, selection_claim
from ..certificate import Claim, Kind, Status
from ..stats import Rows
from ._certified import (
    SEED,
    claims_of,
    may_be_random,
    parameters_words,
    same_parameters,
    scores_claim,
)
from ._claims import Statistics, excess_claim, generalisation_claim, observed, prefitted
from ._evaluate import Job, collect_evidence, evaluate
from ._losses import BoundedLoss

__all__ = ["holdout_claims"]

FUTURE = "; fitted on the past and tested on the latest rows: of rows to come if the future is like these"


def holdout_claims(
    selector: Any, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
) -> list[Claim]:
    """The claims of a fitted :class:`HoldOut`."""
    n, holdout = _num_samples(X), np.asarray(selector.holdout_)
    rows = selector._rows(X, y)
    split = _split_claim(selector, n, y, holdout, rows)
    claims = [split, _choice_claim(selector)]
    others = [name for name in selector.fit_parameters_ if name != "sample_weight"]
    sound, shown = split.status is Status.HOLDS, True
    evidence = np.array(selector.evidence_, dtype=np.float64)
    train = np.setdiff1d(np.arange(n), holdout)
    loss = selector._loss_of(check_scoring(selector.estimator, selector.scoring), "score", y, {})
    if not full:
        claims.append(later_claim())
    elif others:
        why = f"fit was given {', '.join(others)}, which are not at hand: nothing is recomputed"
        claims.append(Claim.undecided("scores", why, Kind.EXACT, "GEN-6"))
        shown = False  # what was recorded is not taken on trust
    elif sound:
        again = partial(_fits_again, selector, X, y, sample_weight, train, holdout, loss, rows)
        found, evidence, fitted = again()
        random = may_be_random(selector.estimator, *selector.results_["params"])
        many = len(found)
        claims.append(
            scores_claim(
                np.asarray(selector.results_["test_score"], dtype=np.float64),
                found,
                len(holdout),
                f"the scores of {many} model{'' if many == 1 else 's'}",
                classifier=is_classifier(selector.estimator),
                once_more=(lambda: again()[0]) if random else None,
            )
        )
        if not selector.refit:
            _own_evidence(selector, X, y, holdout, loss, evidence, rows)
            once_more = (lambda: again()[2]) if random else None
            model = _model_claim(selector, X, fitted, once_more)
            claims.append(model)
            shown = model.status is Status.HOLDS
    if not shown:
        loss = "it is not shown that the model is a fit on the rows outside the hold-out"
    claims += _statistical_claims(selector, evidence, holdout, loss, sound, rows)
    if not others:
        seen = slice(None) if selector.refit else train
        given = [None if a is None else _rows(a, seen) for a in (X, y, sample_weight)]
        many = len(selector.results_["params"]) > 1
        claims += claims_of(
            selector.best_estimator_,
            *given,
            full=full,
            tol=tol,
            name="best_estimator_",
            chosen=many,
        )
    return claims


def _split_claim(selector: Any, n: int, y: Any, holdout: Any, rows: Rows) -> Claim:
    """The hold-out is the one that the recorded seed draws, or the latest rows; groups are whole."""
    try:
        _, expected = selector._parts(n, y, rows.labels)
        different = len(np.setxor1d(expected, holdout))
    except ValueError:  # other data, which cannot be split so
        different = n
    drawn = f"those that seed {selector.split_seed_} draws"
    if selector.time_ is not None:
        drawn = "the latest"
    whole = f", in whole groups ({rows.groups:,} in all)" if rows.grouped else ""
    words = f"the {len(holdout)} of {n} held-out rows are {drawn}{whole}"
    given = selector.random_state
    if selector.time_ is None and isinstance(given, Integral) and selector.split_seed_ != given:
        different = n
        words = f"the hold-out is that of seed {selector.split_seed_}, and random_state is {given}"
    elif different:
        words = f"the recorded hold-out differs in {different} rows from {drawn}{whole}"
    return Claim.check("split", words, Kind.EXACT, float(different), 0.0, "GEN-6")


def _choice_claim(selector: Any) -> Claim:
    """The chosen candidate has the best score on the hold-out."""
    scores = np.asarray(selector.results_["test_score"], dtype=np.float64)
    params, best = selector.results_["params"], int(selector.best_index_)
    known = 0 <= best < len(params) and same_parameters(params[best], selector.best_params_)
    chosen = float(scores[best]) if known else float("nan")
    words = parameters_words(selector.best_params_)
    kind = "score on the hold-out"
    claim = selection_claim(words, chosen, scores, float(selector.best_score_), kind=kind)
    statement = claim.statement.partition("; ")[0]  # a bound follows, where there is one
    return replace(claim, statement=statement, source="GEN-6")


def _fits_again(
    selector: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    train: Any,
    holdout: Any,
    loss: Any,
    rows: Rows,
) -> tuple[Any, Any, Any]:
    """Every candidate fitted on the training part again: scores, evidence, the one that was chosen."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    params = selector.results_["params"]
    job = Job(
        scorer=check_scoring(selector.estimator, selector.scoring),
        fit_params=selector._fit_params(weights, selector.groups_),
        score_params={},
        return_estimator=True,
        error_score=np.nan if selector.error_score == "raise" else selector.error_score,
        losses=(("score", loss),) if isinstance(loss, BoundedLoss) else (),
        labels=rows.labels,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"n_jobs": selector.n_jobs, "reuse": False}
        out, _ = evaluate(
            clone(selector.estimator), params, X, y, [(train, holdout)], job, **options
        )
    found = np.array([result["test_scores"] for result in out], dtype=np.float64)
    winner = out[int(selector.best_index_)]
    return found, collect_evidence(out, (len(params), 1)), winner["estimator"]


def _own_evidence(
    selector: Any, X: Any, y: Any, holdout: Any, loss: Any, evidence: Any, rows: Rows
) -> None:
    """What is observed of best_estimator_ itself, in place of the fit that was made again."""
    if not isinstance(loss, BoundedLoss):
        return
    inputs, truth, model = _rows(X, holdout), _rows(y, holdout), selector.best_estimator_
    score = float(selector.scorer_(model, inputs, truth))
    labels = None if rows.labels is None else rows.labels[holdout]
    place = int(selector.best_index_)
    evidence[place, 0] = loss.evidence(model, inputs, truth, score, len(holdout), labels)


def _model_claim(selector: Any, X: Any, fitted: Any, once_more: Callable[[], Any] | None) -> Claim:
    """best_estimator_ predicts as a fit on the rows outside the hold-out does."""
    words = "it predicts all rows as a fit on those outside the hold-out does"
    try:
        mine = np.asarray(selector.best_estimator_.predict(X))
        theirs = np.asarray(fitted.predict(X))
        gap, limit, end = _difference(selector, mine, theirs)
        if gap > limit and once_more is not None:
            others = np.asarray(once_more().predict(X))
            if _difference(selector, others, theirs)[0] > 0.0:
                why = f"{words}{end}, but these fits are random: {SEED}"
                return Claim.undecided("model", why, Kind.EXACT, "GEN-6")
    except (AttributeError, ValueError) as error:
        why = f"predictions cannot be compared: {error}"
        return Claim.undecided("model", why, Kind.EXACT, "GEN-6")
    return Claim.check("model", f"{words}{end}", Kind.EXACT, gap, limit, "GEN-6")


def _difference(selector: Any, mine: Any, theirs: Any) -> tuple[float, float, str]:
    """How predictions differ, how much they may, and in words."""
    if mine.dtype.kind == "f" and not is_classifier(selector.estimator):
        gap = float(np.abs(mine - theirs).max() / (1.0 + np.abs(theirs).max()))
        return gap, 1e-6, f", to {gap:.1e}"
    rows = int(np.any(_columns(mine) != _columns(theirs), axis=1).sum())
    return float(rows), 1.0, f", but for {rows} of {len(mine)}"


def _statistical_claims(
    selector: Any, evidence: Any, holdout: Any, loss: Any, sound: bool, rows: Rows
) -> list[Claim]:
    statistics: Statistics | str
    if selector.refit:
        statistics = (
            "nothing is claimed: the model was refitted on all rows, and is not the one that was tested. "
            "refit=False ships that one"
        )
    elif not sound:
        statistics = "the held-out rows are not those that were drawn: no bound is stated"
    elif known := prefitted([selector.estimator, *selector.results_["params"]]):
        statistics = known
    elif rows.why:
        statistics = rows.why
    else:
        later = "" if selector.time_ is None else FUTURE
        parts, promised = [(holdout, holdout)], selector._promised()
        statistics = observed(
            evidence, parts, loss, selector.stratify, rows, later=later, **promised
        )
    best, tried = int(selector.best_index_), len(evidence)
    words = f", after trying {tried} model{'' if tried == 1 else 's'}"
    source = "GEN-3" if tried == 1 else "GEN-4"
    claims = [generalisation_claim(statistics, best, "", words, source=source)]
    extra = excess_claim(statistics, best, "")
    return claims if extra is None else [*claims, extra]


def _rows(a: Any, rows: Any) -> Any:
    return _safe_indexing(a, rows) if not isinstance(rows, slice) else a


def _columns(a: Any) -> Any:
    return a.reshape(len(a), -1)
