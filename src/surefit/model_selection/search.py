"""Search over parameters by cross-validation, and what may be said about the result.

scikit-learn's ``GridSearchCV`` and ``RandomizedSearchCV``: same parameters, same ``cv_results_``. Beyond
them, candidates share work over folds where their family allows it (``reuse``), and the fit leaves a
certificate.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from inspect import signature
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import RandomizedSearchCV as _RandomizedSearchCV
from sklearn.model_selection._split import check_cv
from sklearn.model_selection._validation import _insert_error_scores
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, indexable

from .._selection import later_claim, pack_folds, selection_claim, unpack_folds
from ..base import Certified
from ..certificate import Claim, Kind, Status
from ._certified import Selected, claims_of, may_be_random, scores_claim
from ._claims import (
    Statistics,
    excess_claim,
    folds_claim,
    generalisation_claim,
    no_bound,
    plain_folds,
    sampling,
)
from ._evaluate import Job, collect_evidence, evaluate, report_failures
from ._losses import BoundedLoss
from ._reuse import FoldPlan

__all__ = ["EXTRAS", "GridSearchCV", "RandomizedSearchCV", "parameters_words", "same_parameters"]

EXTRAS: dict[str, list[Any]] = {
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "bound": [StrOptions({"hoeffding", "clopper-pearson", "bernstein"})],
    "loss_range": [tuple, list, None],
    "reuse": ["boolean"],
    "certify": Certified._certify_constraint,
}


class _Search(Selected):
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
        grouped = routed.splitter.split.get("groups") is not None
        self.promise_["sampling"] = sampling(self._checked_cv_orig, grouped)
        job, _ = self._job(y, routed, collect=self.certify is not False)
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

    # ------------------------------------------------------------------ certificate

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        n, splits = _num_samples(X), unpack_folds(self.folds_)
        folds = folds_claim(splits, n)
        claims = [folds]
        names = self._metrics()
        recorded = np.stack([self._split_scores(name) for name in names])
        evidence: Any = np.asarray(self.evidence_)
        params = self.cv_results_["params"]
        what = f"the scores of {_count(len(params), 'candidate')} on {_count(len(splits), 'fold')}"
        others = [name for name in self.fit_parameters_ if name not in ("sample_weight", "groups")]
        if not full:
            claims.append(later_claim())
        elif others:
            why = f"fit was given {', '.join(others)}, which are not at hand: nothing is recomputed"
            claims.append(Claim.undecided("scores", why, Kind.EXACT, "GEN-7"))
            evidence = None  # what was recorded is not taken on trust
        elif folds.status is Status.HOLDS:
            again = partial(self._fits_again, X, y, sample_weight, splits, names)
            found, evidence = again()
            sizes = [len(test) for _, test in splits]
            random = may_be_random(self.estimator, *params)
            claims.append(
                scores_claim(
                    recorded,
                    found,
                    sizes,
                    what,
                    classifier=is_classifier(self.estimator),
                    once_more=(lambda: again()[0]) if random else None,
                    tol=1e-6 if self.reuse_ == "none" else 1e-4,
                )
            )
        if self._chosen() is not None:
            claims.append(self._choice_claim())
        claims += self._statistical_claims(X, y, sample_weight, evidence, splits, folds)
        if "best_estimator_" in vars(self):
            why = (
                "nothing is claimed: best_estimator_ was refitted on all rows, and none is left that it has "
                "not seen. HoldOut keeps some"
            )
            name = "best_estimator_: generalisation"
            claims.append(Claim.undecided(name, why, Kind.STATISTICAL, "GEN-7"))
            if not others:
                model = self.best_estimator_
                many = len(params) > 1
                claims += claims_of(
                    model, X, y, sample_weight, full=full, name="best_estimator_", chosen=many
                )
        return claims

    def _chosen(self) -> int | None:
        """The candidate that was chosen, if one was."""
        if self.multimetric_ and not self.refit:
            return None
        return int(self.best_index_)

    def _metrics(self) -> list[str]:
        """Names of the scores, as cv_results_ has them."""
        start = "split0_test_"
        return [key.removeprefix(start) for key in self.cv_results_ if key.startswith(start)]

    def _split_scores(self, name: str) -> Any:
        """Recorded scores, of shape (candidates, folds)."""
        keys = [f"split{k}_test_{name}" for k in range(self.n_splits_)]
        return np.stack(
            [np.asarray(self.cv_results_[key], dtype=np.float64) for key in keys], axis=1
        )

    def _fits_again(
        self, X: Any, y: Any, sample_weight: Any, splits: Any, names: list[str]
    ) -> tuple[Any, Any]:
        """Scores and evidence of every candidate on the recorded folds, each fitted on its own."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            job, _ = self._job_again(y, sample_weight)
            error = np.nan if self.error_score == "raise" else self.error_score
            job = job._replace(error_score=error, return_train_score=False, verbose=0)
            params = self.cv_results_["params"]
            options = {"n_jobs": self.n_jobs, "pre_dispatch": self.pre_dispatch, "reuse": False}
            out, _ = evaluate(clone(self.estimator), params, X, y, splits, job, **options)
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

    def _choice_claim(self) -> Claim:
        """The candidate has the best mean of the recorded scores."""
        results, best = self.cv_results_, int(self.best_index_)
        words = parameters_words(self.best_params_)
        if callable(self.refit):
            why = (
                f"{words} was chosen by refit={self.refit!r}, which need not choose the best score"
            )
            return Claim.undecided("selection", why, Kind.EXACT, "GEN-7")
        name = self.refit if self.multimetric_ else "score"
        means = self._split_scores(name).mean(axis=1)
        known = 0 <= best < len(means) and same_parameters(
            results["params"][best], self.best_params_
        )
        chosen = float(means[best]) if known else float("nan")
        return selection_claim(words, chosen, means, float(self.best_score_))

    def _statistical_claims(
        self, X: Any, y: Any, sample_weight: Any, evidence: Any, splits: Any, folds: Claim
    ) -> list[Claim]:
        """About the fold models of the chosen candidate, at the limits that hold for all."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, loss = self._job_again(y, sample_weight)
        kind = self.promise_["sampling"]
        statistics: Statistics | str
        why = no_bound(folds, splits, [self.estimator, *self.cv_results_["params"]])
        if why:
            statistics = why
        elif evidence is None:
            statistics = (
                "the fits cannot be made again, so that nothing is known about their losses"
            )
        elif isinstance(loss, str) or isinstance(kind, str):
            statistics = loss if isinstance(loss, str) else str(kind)
        else:
            sizes = np.array([len(test) for _, test in splits])
            statistics = Statistics(evidence, sizes, loss, kind, **self._promised())
        chosen = self._chosen()
        many = _count(len(self.cv_results_["params"]), "candidate")
        folds_count = len(splits)
        words = "" if chosen is None else f" of {parameters_words(self.best_params_)}"
        who = f" of the {folds_count} fold models{words}"
        tried = f", after trying {many} on {_count(folds_count, 'fold')}"
        caveat = "; it is about the fold models, not about best_estimator_"
        claim = generalisation_claim(statistics, chosen, who, tried, caveat=caveat)
        extra = excess_claim(statistics, chosen, who)
        return [claim] if extra is None else [claim, extra]

    def _job(self, y: Any, routed: Any, collect: bool = True) -> tuple[Job, BoundedLoss | str]:
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
        )
        return job, loss

    def _job_again(self, y: Any, sample_weight: Any) -> tuple[Job, BoundedLoss | str]:
        """The same from the sample weights, all that verification is given."""
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._job(y, self._get_routed_params_for_fit(params))

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


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def parameters_words(params: dict[str, Any]) -> str:
    """A candidate in words; long values are cut."""
    words = ", ".join(f"{name}={_short(value)}" for name, value in params.items())
    return words or "the only candidate"


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def same_parameters(first: Any, second: Any) -> bool:
    """Equal parameters, by their text where values cannot be compared."""
    return parameters_words(first) == parameters_words(second)


class GridSearchCV(_Search, _GridSearchCV):
    """Exhaustive search over a grid of parameters, by cross-validation.

    scikit-learn's class, with two additions. Candidates of one family share work over folds and along paths
    (``reuse_`` says which); scores are those of separate fits. And ``certificate_`` says what was shown:

    * ``"folds"``: no row was tested by a model fitted on it.
    * ``"selection"``: the chosen candidate has the best recorded score.
    * ``"scores"``: the recorded scores are those that separate fits on the recorded folds give. Decided by
      :func:`surefit.verify` or ``certify="full"``, which make all fits again, one by one.
    * ``"generalisation"``: with probability at least 1 - delta the *fold models* of the chosen candidate
      have a mean true loss near the mean score. Each of the K x F models of K candidates and F folds gets
      delta / (K F), whether its fit succeeded or not, so it does not matter which one was chosen. Each is
      tested on rows its fit did not use, but best_estimator_, refitted on all rows, is none of them, and
      has no such claim: :class:`HoldOut` gives one.
    * ``"selection excess"``: how much worse than the best candidate the chosen one can be.

    Under stratified folds, which classifiers get by default, the test rows have the class frequencies of
    all rows. They are then independent given the classes, and the bound is about the error at these class
    frequencies.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in scikit-learn.
    delta : float, default=0.05
        Probability that the statistical claims may be wrong.
    bound : {'hoeffding', 'clopper-pearson', 'bernstein'}, default='hoeffding'
        Which bound is quoted; see :mod:`surefit.model_selection.bounds`. Fixed here, before data are seen.
    loss_range : (float, float), default=None
        Least and largest loss of a row, for losses that are not bounded by themselves (squared and
        absolute errors). It must be known beforehand; a loss outside it makes the claim fail.
    reuse : bool, default=True
        Share work between candidates and folds where possible.
    certify : bool or 'full', default=True
        Which claims to decide at fit.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, multimetric_
        As in scikit-learn.
    reuse_ : str
        How fits shared work, or 'none'.
    folds_ : array or list
        The fold that tests each row, or the (train, test) rows of each fold.
    evidence_ : ndarray of shape (n_candidates, n_splits, 4)
        Mean, variance, least and largest loss of each fold model on its test rows; NaN where no bound is
        stated.
    certificate_ : Certificate
        The claims.
    statement_ : str
        The claim "generalisation" in words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
    >>> search.best_params_
    {'alpha': 0.1}
    >>> print(search.statement_)
    with probability 95 %, the mean true error of the 5 fold models of alpha=0.1 at the class frequencies of
    the test rows is within 0.168 of 0.044, after trying 3 candidates on 5 folds; rows drawn independently
    from one distribution; it is about the fold models, not about best_estimator_
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_GridSearchCV._parameter_constraints,
        **EXTRAS,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        delta: float = 0.05,
        bound: str = "hoeffding",
        loss_range: tuple[float, float] | None = None,
        reuse: bool = True,
        certify: bool | str = True,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.delta = delta
        self.bound = bound
        self.loss_range = loss_range
        self.reuse = reuse
        self.certify = certify


class RandomizedSearchCV(_Search, _RandomizedSearchCV):
    """Search over ``n_iter`` candidates drawn from distributions, by cross-validation.

    Everything else, the certificate included, is as in :class:`GridSearchCV`.

    Parameters
    ----------
    estimator, param_distributions, n_iter, scoring, n_jobs, refit, cv, verbose, pre_dispatch, random_state, \
    error_score, return_train_score
        As in scikit-learn.
    delta, bound, loss_range, reuse, certify
        As in :class:`GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> grid = {"alpha": loguniform(0.01, 100)}
    >>> search = RandomizedSearchCV(RidgeClassifier(), grid, n_iter=4, random_state=0)
    >>> search.fit(X, y).certificate_["selection"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_RandomizedSearchCV._parameter_constraints,
        **EXTRAS,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        delta: float = 0.05,
        bound: str = "hoeffding",
        loss_range: tuple[float, float] | None = None,
        reuse: bool = True,
        certify: bool | str = True,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.delta = delta
        self.bound = bound
        self.loss_range = loss_range
        self.reuse = reuse
        self.certify = certify
