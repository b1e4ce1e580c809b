"""Every candidate on every fold: fit, score, and the evidence about its loss on the test rows.

Ordinary fits go through scikit-learn's own function, so scores, times, error handling and printed lines
are scikit-learn's. Where :func:`fold_plan` has a plan, a task is a fold, and its candidates share work.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import logger
from joblib._parallel_backends import LokyBackend, SequentialBackend, ThreadingBackend
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection._validation import _fit_and_score, _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params, _num_samples

from ._losses import NOTHING, BoundedLoss, scores_as
from ._progress import Progress, ProgressParallel
from ._reuse import FoldPlan, Scored, fold_plan

_HERE = (
    LokyBackend,
    SequentialBackend,
    ThreadingBackend,
)  # backends whose workers share these cores

__all__ = ["Job", "collect_evidence", "evaluate", "report_failures"]


class Job(NamedTuple):
    """What all fits of a search have in common."""

    scorer: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    return_train_score: bool = False
    return_estimator: bool = False
    error_score: Any = np.nan
    verbose: int = 0
    caller: Any = None
    losses: tuple[tuple[str, BoundedLoss], ...] = ()  # of which evidence is collected, by score
    labels: Any = None  # the group of each row of X, where rows are grouped

    @property
    def needs_rows(self) -> bool:
        """Whether the losses of single rows are looked at."""
        grouped = self.labels is not None and bool(self.losses)
        return grouped or any(loss.needs_rows for _, loss in self.losses)


def evaluate(
    estimator: Any,
    candidates: list[dict[str, Any] | None],
    X: Any,
    y: Any,
    splits: list[tuple[Any, Any]],
    job: Job,
    *,
    n_jobs: int | None,
    pre_dispatch: Any = "2*n_jobs",
    reuse: bool = True,
    contexts: list[Any] | None = None,
    name: str = "fits",
    plans: list[FoldPlan] | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """The outcome of each candidate on each split, candidates first, and which reuse there was.

    The plan, if there is one, is appended to ``plans``, for those who fit the best candidate again.
    """
    plan = None
    arrays = hasattr(X, "shape")  # lists of rows are for the estimator to make sense of
    if reuse and arrays and contexts is None and candidates and splits and not job.return_estimator:
        grid = [parameters or {} for parameters in candidates]
        keywords = {"fit_params": job.fit_params, "scorers": job.scorer}
        plan = fold_plan(estimator, grid, X, y, splits, **keywords)
    total = len(candidates) * len(splits)
    options: dict[str, Any] = {"n_jobs": n_jobs, "pre_dispatch": pre_dispatch}
    if plan is not None:
        options["prefer"] = "threads"
        if isinstance(get_active_backend()[0], _HERE):
            options["n_jobs"] = 1  # the folds one by one, each with all cores
    weight = len(candidates) if plan is not None else 1
    with Progress(name, total, job.verbose) as progress:
        parallel = ProgressParallel(progress, weight=weight, **options)
        if plan is not None:
            if plans is not None:
                plans.append(plan)
            folds = parallel(
                delayed(_planned)(plan, k, estimator, candidates, X, y, splits, job)
                for k in range(len(splits))
            )
            out = [folds[k][i] for i in range(len(candidates)) for k in range(len(splits))]
            return out, plan.name
        pairs = [(i, k) for i in range(len(candidates)) for k in range(len(splits))]
        out = parallel(
            delayed(_alone)(
                clone(estimator),
                X,
                y,
                splits[k],
                candidates[i],
                job,
                split_progress=(k, len(splits)),
                candidate_progress=(i, len(candidates)),
                callback_ctx=context,
            )
            for (i, k), context in zip(pairs, contexts or [None] * total)
        )
    return list(out), "none"


def _alone(
    estimator: Any,
    X: Any,
    y: Any,
    split: tuple[Any, Any],
    parameters: dict[str, Any] | None,
    job: Job,
    **progress: Any,
) -> dict[str, Any]:
    """One candidate on one split."""
    train, test = split
    result: dict[str, Any] = _fit_and_score(
        estimator,
        X,
        y,
        scorer=job.scorer,
        train=train,
        test=test,
        verbose=job.verbose,
        parameters=parameters,
        fit_params=job.fit_params,
        score_params=job.score_params,
        return_train_score=job.return_train_score,
        return_n_test_samples=True,
        return_times=True,
        return_estimator=True,
        error_score=job.error_score,
        caller=job.caller,
        **progress,
    )
    fitted = result["estimator"] if job.return_estimator else result.pop("estimator")
    needed = result["fit_error"] is None and job.needs_rows
    rows = _safe_split(fitted, X, y, test, train) if needed else (None, None)
    result["evidence"] = _evidence(job, fitted, result, rows, test)
    return result


def _planned(
    plan: FoldPlan,
    k: int,
    estimator: Any,
    candidates: list[dict[str, Any] | None],
    X: Any,
    y: Any,
    splits: list[tuple[Any, Any]],
    job: Job,
) -> list[dict[str, Any]]:
    """All candidates on one fold, by the plan; those it leaves out are fitted on their own."""
    train, test = splits[k]
    test_rows = plan.test(k)
    parts = [("test_scores", test, test_rows)]
    if job.return_train_score:
        parts.append(("train_scores", train, plan.train(k)))
    outcomes: dict[int, dict[str, Any]] = {}
    wanted = _scorers(job)
    found = plan.fold(k) if not wanted else plan.scored(k, wanted, train=job.return_train_score)
    for part in found:
        if isinstance(part, Scored):
            for i, outcome in _tabulated(part, job, _num_samples(test_rows[0])):
                outcomes[i] = outcome
                _print_end(job, candidates[i], outcome, (k, len(splits)))
            continue
        i, fitted, seconds = part
        result: dict[str, Any] = {"fit_error": None, "fit_time": seconds, "score_time": 0.0}
        if isinstance(fitted, BaseException):
            if job.error_score == "raise":
                raise fitted
            result["fit_error"] = "".join(traceback.format_exception(fitted))
        for key, indices, (rows, target) in parts:
            if result["fit_error"] is not None:
                result[key] = _error_scores(job)
                continue
            start = time.time()
            params = _check_method_params(X, params=job.score_params, indices=indices)
            result[key] = _score(fitted, rows, target, job.scorer, params, job.error_score)
            if key == "test_scores":
                result["score_time"] = time.time() - start
        result["n_test_samples"] = _num_samples(test_rows[0])
        result["evidence"] = _evidence(job, fitted, result, test_rows, test)
        outcomes[i] = result
        _print_end(job, candidates[i], result, (k, len(splits)))
    for i, parameters in enumerate(candidates):
        if i not in outcomes:
            progress = {
                "split_progress": (k, len(splits)),
                "candidate_progress": (i, len(candidates)),
            }
            model = clone(estimator)
            outcomes[i] = _alone(model, X, y, splits[k], parameters, job, **progress)
    return [outcomes[i] for i in range(len(candidates))]


def _scorers(job: Job) -> list[Any]:
    """The scorers one by one, where a table of scores without models would do."""
    if job.score_params or job.needs_rows:
        return []
    if isinstance(job.scorer, _MultimetricScorer):
        return list(job.scorer._scorers.values())
    return [job.scorer]


def _tabulated(part: Scored, job: Job, n: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The outcomes of candidates whose scores came as a table."""
    names = list(job.scorer._scorers) if isinstance(job.scorer, _MultimetricScorer) else None
    for place, i in enumerate(part.candidates):
        result: dict[str, Any] = {"fit_error": None, "n_test_samples": n}
        result.update(fit_time=part.fit_time, score_time=part.score_time)
        for key, table in (("test_scores", part.test), ("train_scores", part.train)):
            if table is not None:
                scores = [float(row[place]) for row in table]
                result[key] = scores[0] if names is None else dict(zip(names, scores, strict=True))
        result["evidence"] = _evidence(job, None, result, (None, None), None)
        yield i, result


def _evidence(job: Job, fitted: Any, result: dict[str, Any], rows: Any, test: Any) -> list[Any]:
    """What is observed of each loss; nothing where the fit failed, or the score is not of the loss."""
    labels = None if job.labels is None else job.labels[np.asarray(test)]
    scores, n = result["test_scores"], result["n_test_samples"]
    X, y = rows
    found: list[tuple[float, ...]] = []
    for name, loss in job.losses:
        scorer = job.scorer
        scorer = scorer._scorers[name] if isinstance(scorer, _MultimetricScorer) else scorer
        score = float(scores[name] if isinstance(scores, dict) else scores)
        if (
            result["fit_error"] is not None
            or score == job.error_score  # which stands for a scorer that raised, too
            or (fitted is not None and not scores_as(scorer, fitted, loss))
        ):
            found.append(NOTHING)
        else:
            found.append(loss.evidence(fitted, X, y, score, n, labels))
    return found


def _error_scores(job: Job) -> Any:
    if isinstance(job.scorer, _MultimetricScorer):
        return dict.fromkeys(job.scorer._scorers, job.error_score)
    return job.error_score


def _print_end(job: Job, parameters: Any, result: dict[str, Any], split: tuple[int, int]) -> None:
    """The line that scikit-learn prints at the end of a fit."""
    if job.verbose < 2:
        return
    fold = f" {split[0] + 1}/{split[1]}" if job.verbose > 2 else ""
    words = ", ".join(f"{key}={parameters[key]}" for key in sorted(parameters or {}))
    if job.verbose > 2:
        scores = result["test_scores"]
        named = scores.items() if isinstance(scores, dict) else [("score", scores)]
        words += ";" + ",".join(f" {name}={score:.3f}" for name, score in named)
    words += f" total time={logger.short_format_time(result['fit_time'] + result['score_time'])}"
    start = f"[CV{fold}] END "
    print(start + "." * (80 - len(start) - len(words)) + words)


def report_failures(
    results: list[dict[str, Any]], candidates: Iterable[Any], n_splits: int, error_score: Any
) -> None:
    """Warn of fits that failed, with candidate, fold and message; raise when none succeeded."""
    errors = [result["fit_error"] for result in results]
    failed = [place for place, error in enumerate(errors) if error is not None]
    if not failed:
        return
    kinds: dict[str, list[int]] = {}
    for place in failed:
        kinds.setdefault(errors[place], []).append(place)
    named = list(candidates)

    def where(places: list[int]) -> str:
        lines = [
            f"fold {place % n_splits}"
            + (f" of candidate {named[place // n_splits]}" if named[place // n_splits] else "")
            for place in places[:8]
        ]
        return "; ".join(lines) + ("; ..." if len(places) > 8 else "")

    line = "-" * 80
    details = "\n".join(
        f"{line}\n{len(places)} fits failed with the following error:\n{text}In {where(places)}."
        for text, places in kinds.items()
    )
    if len(failed) == len(errors):
        raise ValueError(
            f"\nAll the {len(errors)} fits failed.\nIt is very likely that your model is misconfigured.\n"
            "You can try to debug the error by setting error_score='raise'.\n\n"
            f"Below are more details about the failures:\n{details}"
        )
    warnings.warn(
        f"\n{len(failed)} fits failed out of a total of {len(errors)}.\n"
        f"The score on these train-test partitions for these parameters will be set to {error_score}.\n"
        "If these failures are not expected, you can try to debug them by setting "
        f"error_score='raise'.\n\nBelow are more details about the failures:\n{details}",
        FitFailedWarning,
        stacklevel=2,
    )


def collect_evidence(out: list[dict[str, Any]], shape: tuple[int, int], which: int = 0) -> Any:
    """Evidence about one of the losses, of shape (candidates, splits, 4); NaN where there is none."""
    found = [r["evidence"][which] if which < len(r["evidence"]) else NOTHING for r in out]
    return np.array(found, dtype=np.float64).reshape(*shape, 4)
