"""The fit that :class:`GridSearchCV` and :class:`RandomizedSearchCV` share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection._split import check_cv
from sklearn.model_selection._validation import _insert_error_scores
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, indexable

from .._selection import pack_folds, unpack_folds
from ..certificate import Claim
from ..stats import check_labels
from ._certified import Selected, wrong_best
from ._claims import plain_folds, sampling
from ._evaluate import Job, collect_evidence, evaluate, report_failures
from ._losses import BoundedLoss
from ._reuse import FoldPlan
from ._search_claims import search_claims

__all__ = ["Search"]


class Search(Selected):
    """``fit`` of both searches, and the claims about it."""

    refit: Any
    scoring: Any
    n_jobs: int | None
    pre_dispatch: Any
    error_score: Any
    return_train_score: bool
    verbose: int
    reuse: bool
    _select_best_index: Any
    _format_results: Any
    _run_search: Any
    _get_scorers: Any
    _get_routed_params_for_fit: Any
    _check_refit_for_multimetric: Any
    _init_callback_context: Any

    @_fit_context(prefer_skip_nested_validation=False)  # the estimator is not validated yet
    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit and score every candidate on every fold, choose the best, and refit it on all rows.

        Parameters
        ----------
        X, y : array-like
            Rows and targets.
        **params : dict
            For ``fit`` of the estimator, the splitter (``groups``) and the scorer, as in scikit-learn.

        Returns
        -------
        self
        """
        self.__dict__.pop("certificate_", None)
        scorers, metric = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        weight = params.get("sample_weight")
        told = None if weight is None else {"sample_weight": weight}
        root = self._init_callback_context(
            max_subtasks=1 + (self.refit is not False)
        ).call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=told)
        self._checked_cv_orig = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = self._checked_cv_orig.get_n_splits(X, y, **routed.splitter.split)
        splits = list(self._checked_cv_orig.split(X, y, **routed.splitter.split))
        if len(splits) != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. "
                f"Expected {self.n_splits_} splits, got {len(splits)}"
            )
        base = clone(self.estimator)
        self._promise()
        self.promise_["sampling"] = sampling(self._checked_cv_orig)
        groups = routed.splitter.split.get("groups")
        self.groups_ = None if groups is None else check_labels(groups, _num_samples(X))
        labels = None
        if self.certify is not False:
            labels = self._rows(X, y).labels
        job, _ = self._job(y, routed, collect=self.certify is not False, labels=labels)
        results: dict[str, Any] = {}
        candidates: list[dict[str, Any]] = []
        out: list[dict[str, Any]] = []
        plans: list[FoldPlan] = []
        self.reuse_ = "none"

        def evaluate_candidates(
            candidate_params: Any,
            cv: Any = None,
            more_results: Any = None,
            callback_ctx: Any = None,
        ) -> dict[str, Any]:
            nonlocal results
            new = list(candidate_params)
            if self.verbose > 0:
                print(
                    f"Fitting {len(splits)} folds for each of {len(new)} candidates, totalling "
                    f"{len(new) * len(splits)} fits"
                )
            found, how = evaluate(
                base,
                new,
                X,
                y,
                splits,
                job,
                n_jobs=self.n_jobs,
                pre_dispatch=self.pre_dispatch,
                reuse=self.reuse,
                contexts=self._contexts(callback_ctx, len(new) * len(splits)),
                name=f"{len(new)} candidates, {len(splits)} folds",
                plans=plans,
            )
            if not found:
                raise ValueError(
                    "No fits were performed. Was the CV iterator empty? Were there no candidates?"
                )
            report_failures(found, new, len(splits), self.error_score)
            if callable(self.scoring):
                _insert_error_scores(found, self.error_score)
            self.reuse_ = how
            candidates.extend(new)
            out.extend(found)
            results = self._format_results(candidates, len(splits), out, more_results)
            return results

        told_apart = "callback_ctx" in signature(self._run_search).parameters
        self._run_search(evaluate_candidates, **({"callback_ctx": root} if told_apart else {}))
        first = out[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first)
            metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            plan = plans[0] if plans and len(candidates) == len(plans[0].candidates) else None
            self._refit(root, base, X, y, routed.estimator.fit, told, plan)
        self._scorer = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        self.cv_results_ = results
        self.evidence_ = collect_evidence(out, (len(candidates), len(splits)))
        self.folds_ = pack_folds(plain_folds(splits), _num_samples(X))
        self.fit_parameters_ = sorted(name for name, value in params.items() if value is not None)
        root.call_on_fit_task_end(estimator=self, X=X, y=y, metadata=told)
        return self._seal(X, y, weight, "all candidates were fitted on all folds")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).target_tags
        tags.target_tags.multi_output = inner.multi_output
        tags.target_tags.single_output = inner.single_output
        return tags

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return search_claims(self, X, y, sample_weight, full=full, tol=tol)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        folds, candidates = len(unpack_folds(self.folds_)), len(self.cv_results_["params"])
        if ("best_estimator_" in vars(self)) != bool(self.refit):
            there = "there is a" if "best_estimator_" in vars(self) else "there is no"
            yield f"{there} best_estimator_ under refit={self.refit!r}"
        sampled = sampling(check_cv(self.cv, y, classifier=is_classifier(self.estimator)))
        if self.promise_["sampling"] != sampled:
            yield "promise_['sampling'] is not that of cv"
        if int(self.n_splits_) != folds:
            yield f"n_splits_ is {self.n_splits_}, and there are {folds} folds"
        if np.shape(self.evidence_) != (candidates, folds, 4):
            yield f"evidence_ must have the shape {(candidates, folds, 4)}"
        if any(len(column) != candidates for column in self.cv_results_.values()):
            yield f"cv_results_ must have one entry for each of the {candidates} candidates"
        best = vars(self).get("best_index_", 0)
        if not isinstance(best, int | np.integer) or not 0 <= best < candidates:
            yield f"best_index_ is {best!r}, and there are {candidates} candidates"
        elif "best_score_" in vars(self):
            metric = self.refit if self.multimetric_ else "score"
            yield from wrong_best(self.best_score_, self.cv_results_[f"mean_test_{metric}"][best])

    def _job(
        self, y: Any, routed: Any, collect: bool = True, labels: Any = None
    ) -> tuple[Job, BoundedLoss | str]:
        """What all fits have in common, and the loss that is bounded, or why none is."""
        scorers, metric = self._get_scorers()
        loss = self._loss_of(scorers, metric, y, routed.scorer.score)
        job = Job(
            scorer=scorers,
            fit_params=routed.estimator.fit,
            score_params=routed.scorer.score,
            return_train_score=self.return_train_score,
            error_score=self.error_score,
            verbose=self.verbose,
            caller=self,
            losses=((metric, loss),) if collect and isinstance(loss, BoundedLoss) else (),
            labels=labels,
        )
        return job, loss

    def _job_again(
        self, y: Any, sample_weight: Any, labels: Any = None
    ) -> tuple[Job, BoundedLoss | str]:
        """The same from the sample weights, all that verification is given."""
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._job(y, self._get_routed_params_for_fit(params), labels=labels)

    def _contexts(self, callback_ctx: Any, count: int) -> list[Any] | None:
        """One callback context a fit, where there are callbacks: each fit is then made on its own."""
        mine, theirs = (getattr(e, "_skl_callbacks", None) for e in (self, self.estimator))
        if callback_ctx is None or not (mine or theirs):
            return None
        words = "candidate-split-evaluation"
        return [callback_ctx.subcontext(task_name=words, task_id=i) for i in range(count)]

    def _refit(
        self,
        root: Any,
        base: Any,
        X: Any,
        y: Any,
        fit_params: Any,
        told: Any,
        plan: FoldPlan | None,
    ) -> None:
        """The chosen candidate on all rows."""
        # parameters may be estimators themselves: they are cloned too
        self.best_estimator_ = clone(base).set_params(**clone(self.best_params_, safe=False))
        task = root.subcontext(task_name="refit-with-best-params")
        with task.propagate_callback_context(self.best_estimator_):
            task.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=told)
            start = time.time()
            if plan is not None and plan.refit(int(self.best_index_), self.best_estimator_, X, y):
                pass  # with what the plan knows of all rows
            elif y is not None:
                self.best_estimator_.fit(X, y, **fit_params)
            else:
                self.best_estimator_.fit(X, **fit_params)
            self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        task.call_on_fit_task_end(estimator=self, X=X, y=y, metadata=told)

    @property
    def scorer_(self) -> Any:
        """The scorer, or a dict of scorers, that ``scoring`` stands for."""
        check_is_fitted(self, "cv_results_")
        if "_scorer" not in vars(self):  # loaded from a file
            scorers, _ = self._get_scorers()
            self._scorer = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        return self._scorer
