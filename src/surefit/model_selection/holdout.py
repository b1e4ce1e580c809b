r"""Selection on held-out rows, and a model that may be quoted (GEN-6).

Fit every candidate on the training part, choose on the hold-out, ship the chosen model as it is. Given the
training part, the K models are fixed and the hold-out rows are fresh, so with probability at least
:math:`1-\delta`

.. math:: |L_D(f_k) - L_{\text{hold-out}}(f_k)| \le (b-a)\sqrt{\ln(2K/\delta)/(2n)} \quad\text{for all } k,

whichever is chosen; and the chosen one is at most twice that above the best of the K (GEN-5).

Rows must be independent for that. Copies, and rows of a group, are kept on one side of the split, and the
bound is then about the mean over groups (:mod:`surefit.stats`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, _fit_context, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from ..certificate import Claim
from ..fingerprint import fingerprint
from ..stats import check_labels
from ._certified import EXTRAS, Selected, wrong_best
from ._evaluate import Job, collect_evidence, evaluate, report_failures
from ._holdout_claims import holdout_claims
from ._losses import BoundedLoss
from ._parts import check_times, draw_parts, latest_rows

__all__ = ["HoldOut"]


def _takes_groups(owner: Any, estimator: Any) -> bool:
    """Whether ``fit`` of an estimator splits rows, and asks for groups."""
    if _routing_enabled():
        return bool(get_routing_for_object(owner).consumes("fit", ["groups"]))
    named = "groups" in signature(estimator.fit).parameters
    return named or isinstance(estimator, BaseSearchCV)


def _model_has(name: str) -> Callable[[Any], bool]:
    """Whether the fitted model, or before a fit the estimator, has a method."""

    def check(self: Any) -> bool:
        getattr(self.best_estimator_ if "best_estimator_" in vars(self) else self.estimator, name)
        return True

    return check


class HoldOut(MetaEstimatorMixin, Selected):
    """Fit on a part of the rows, test on the rest, and ship the tested model with its bound.

    Every candidate is fitted on the training part; the one with the best score on the hold-out is kept, and
    is not refitted: it is a model about which something was shown. ``statement_`` is the sentence to quote.

    Copies of a row (repeats that chance does not explain) stay on one side of the split, and so do the rows
    of a group that ``fit(..., groups=...)`` names. The claim is then about the mean over groups. Where rows
    nearly repeat each other, or a column looks like the number of a person or a place, nothing is claimed
    until groups are given or ``rows_are_independent=True``. With ``fit(..., time=...)`` the training part is
    the past and the hold-out the future.

    The sentence counts the candidates of this object. Trying several seeds and keeping the nicest result is
    trying more models than it counts; so is looking at the hold-out in any other way.

    Parameters
    ----------
    estimator : estimator
        What to fit. It may be a search of its own (``HoldOut(GridSearchCV(...))``): that has seen the
        training part only, so one model is tested, and the bound is that of one.
    param_grid : dict or list of dicts, default=None
        Candidates, as in :class:`GridSearchCV`; ``None`` tests the estimator as it is.
    test_size : float or int, default=0.25
        Share, or number, of rows held out. Grouped rows: the same share of the groups.
    stratify : bool, default=False
        Give both parts the class frequencies of all rows. The bound is then about the error at these
        frequencies.
    scoring : str or scorer, default=None
        Score that chooses; ``None`` is the estimator's own. Accuracy, top-k accuracy, Brier score, and with
        ``loss_range`` mean errors of regressions, are means of bounded losses; of others nothing is
        claimed.
    refit : bool, default=False
        Refit the chosen candidate on all rows. The model shipped is then not the one that was tested, and the
        claim is withdrawn.
    random_state : int, RandomState instance or None, default=None
        Seeds the split. The seed used is kept as ``split_seed_``, so that anyone can draw the same split.
    n_jobs, error_score, verbose
        As in :class:`GridSearchCV`.
    delta, bound, loss_range, rows_are_independent, certify
        As in :class:`GridSearchCV`.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen model, fitted on the training part (on all rows with ``refit=True``).
    best_index_, best_params_, best_score_
        Which candidate it is, and its score on the hold-out.
    results_ : dict
        ``"params"``, ``"test_score"``, ``"fit_time"``, ``"score_time"`` of every candidate.
    holdout_ : ndarray of int
        The rows held out.
    split_seed_ : int
        The seed of the split.
    groups_, time_ : ndarray of int or None
        Number of the group of each row, and its place in time, where ``fit`` was given groups and times.
    evidence_ : ndarray of shape (n_candidates, 1, 4)
        Mean, variance, least and largest loss of each candidate on the hold-out; of grouped rows, mean and
        variance of the means of the groups.
    certificate_ : Certificate
        ``"split"``, ``"selection"``, ``"scores"``, ``"model"``, ``"generalisation"``, ``"selection
        excess"`` and the claims of the chosen model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> grid = {"alpha": [0.01, 0.1, 1.0, 10.0]}
    >>> model = HoldOut(RidgeClassifier(), grid, test_size=0.5, random_state=0).fit(X, y)
    >>> print(model.statement_)
    with probability 95 %, the true error is within 0.095 of 0.035, after trying 4 models; rows drawn
    independently from one distribution
    """

    _scores_like_its_estimator: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in EXTRAS.items() if name != "reuse"},
        "estimator": [HasMethods(["fit"])],
        "param_grid": [dict, list, None],
        "test_size": [
            Interval(Real, 0, 1, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "stratify": ["boolean"],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "error_score": [Real, str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        test_size: float | int = 0.25,
        stratify: bool = False,
        scoring: Any = None,
        refit: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        error_score: Any = np.nan,
        verbose: int = 0,
        delta: float = 0.05,
        bound: str = "hoeffding",
        loss_range: tuple[float, float] | None = None,
        rows_are_independent: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.test_size = test_size
        self.stratify = stratify
        self.scoring = scoring
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.error_score = error_score
        self.verbose = verbose
        self.delta = delta
        self.bound = bound
        self.loss_range = loss_range
        self.rows_are_independent = rows_are_independent
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=False)  # the estimator validates itself
    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, time: Any = None, **params: Any
    ) -> Any:
        """Fit every candidate on the training part, and choose on the hold-out.

        Parameters
        ----------
        X, y : array-like
            Rows and targets.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, such as its patient: groups are held out as a whole. An estimator that is
            a search is given those of the training part.
        time : array-like of shape (n_samples,), default=None
            When each row was recorded: numbers, dates, or texts of dates. The latest rows are held out, and
            the claim is about rows to come if the future resembles the past.
        **params : dict
            For ``fit`` of the estimator; arrays with an entry a row are split with the rows.

        Returns
        -------
        self
        """
        self.__dict__.pop("certificate_", None)
        X, y = indexable(X, y)
        if y is None and get_tags(self.estimator).target_tags.required:
            name = type(self.estimator).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        n = _num_samples(X)
        self.groups_ = None if groups is None else check_labels(groups, n)
        self.time_ = None if time is None else check_times(time, n)
        if self.time_ is not None and self.stratify:
            raise ValueError(
                "stratify=True draws the hold-out at random, and time= takes the latest rows: give one of "
                "them."
            )
        params = _check_method_params(X, params=params)
        fit_params = self._fit_params(params, self.groups_)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        self.split_seed_ = int(seed)
        self._promise()
        rows = self._rows(X, y)
        train, test = self._parts(n, y, rows.labels)
        candidates = [{}] if self.param_grid is None else list(ParameterGrid(self.param_grid))
        if not candidates:
            raise ValueError("No fits were performed: param_grid has no candidates.")
        scorer = check_scoring(self.estimator, self.scoring)
        loss = self._loss_of(scorer, "score", y, {})
        job = Job(
            scorer=scorer,
            fit_params=fit_params,
            score_params={},
            return_estimator=True,
            error_score=self.error_score,
            verbose=self.verbose,
            caller=self,
            losses=(("score", loss),) if self.certify and isinstance(loss, BoundedLoss) else (),
            labels=rows.labels,
        )
        # the models themselves are shipped, so each is fitted as it stands, without reuse
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "reuse": False}
        name = f"{len(candidates)} candidates"
        base = clone(self.estimator)
        out, _ = evaluate(base, candidates, X, y, [(train, test)], job, **options, name=name)
        if all(result["fit_error"] is not None for result in out):  # the first error, as it is
            given = [_safe_indexing(a, train) for a in (X, y) if a is not None]
            chosen = clone(base).set_params(**clone(candidates[0], safe=False))
            chosen.fit(*given, **_check_method_params(X, params=fit_params, indices=train))
        report_failures(out, candidates, 1, self.error_score)
        scores = np.array([result["test_scores"] for result in out], dtype=np.float64)
        times = {key: np.array([r[key] for r in out]) for key in ("fit_time", "score_time")}
        self.results_: dict[str, Any] = {"params": candidates, "test_score": scores, **times}
        fitted = np.array([result["fit_error"] is None for result in out])
        usable = np.where(fitted & ~np.isnan(scores), scores, -np.inf)
        self.best_index_ = int(np.argmax(usable))
        self.best_params_ = candidates[self.best_index_]
        self.best_score_ = float(scores[self.best_index_])
        self.best_estimator_ = out[self.best_index_]["estimator"]
        self.evidence_ = collect_evidence(out, (len(candidates), 1))
        self.holdout_ = test
        self.fit_parameters_ = sorted(key for key, value in params.items() if value is not None)
        if self.refit:
            self.best_estimator_ = clone(self.best_estimator_)
            given = [X] if y is None else [X, y]
            self.best_estimator_.fit(*given, **fit_params)
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        stopped = "all candidates were fitted on the training part"
        return self._seal(X, y, params.get("sample_weight"), stopped)

    def _parts(self, n: int, y: Any, labels: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Training and hold-out rows that the seed or the times give, each in order."""
        if self.time_ is not None:
            return latest_rows(np.asarray(self.time_), labels, self.test_size)
        classes = y if self.stratify else None
        return draw_parts(n, labels, self.test_size, self.split_seed_, classes)

    def _fit_params(self, params: dict[str, Any], groups: Any) -> dict[str, Any]:
        """What of ``params`` goes to ``fit`` of the estimator; groups, where it splits rows itself."""
        if groups is not None and _takes_groups(self, self.estimator):
            params = {**params, "groups": groups}
        if not _routing_enabled():
            return params
        routed: dict[str, Any] = process_routing(self, "fit", **params).estimator.fit
        return routed

    def get_metadata_routing(self) -> Any:
        """Parameters of ``fit`` go to ``fit`` of the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        rows, candidates = _num_samples(X), len(self.results_["params"])
        held = np.asarray(self.holdout_)
        if held.ndim != 1 or held.dtype.kind != "i" or not len(held):
            yield "holdout_ must be row numbers"
        elif held[0] < 0 or (np.diff(held) <= 0).any():
            yield "holdout_ must be row numbers in order, each once"
        times = None if self.time_ is None else np.asarray(self.time_)
        if times is not None and (times.shape != (rows,) or times.dtype.kind != "i"):
            yield f"time_ must be one whole number for each of the {rows} rows"
        if np.shape(self.evidence_) != (candidates, 1, 4):
            yield f"evidence_ must have the shape {(candidates, 1, 4)}"
        if any(len(column) != candidates for column in self.results_.values()):
            yield f"results_ must have one entry for each of the {candidates} candidates"
        best = self.best_index_
        if not isinstance(best, int | np.integer) or not 0 <= best < candidates:
            yield f"best_index_ is {best!r}, and there are {candidates} candidates"
        else:
            yield from wrong_best(self.best_score_, self.results_["test_score"][best])

    def _data_id(self, X: Any, y: Any, sample_weight: Any) -> str:
        name = super()._data_id(X, y, sample_weight)
        if self.time_ is None or not name:
            return name
        return f"{name}, time {fingerprint(np.asarray(self.time_, dtype=np.float64)[:, None])}"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return holdout_claims(self, X, y, sample_weight, full=full, tol=tol)

    # ------------------------------------------------------------------ the chosen model

    @property
    def scorer_(self) -> Any:
        """The scorer that ``scoring`` stands for."""
        check_is_fitted(self, "best_estimator_")
        return check_scoring(self.estimator, self.scoring)

    @property
    def classes_(self) -> Any:
        """Labels of the chosen classifier."""
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        if "best_estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} object has no n_features_in_ attribute.")
        return int(self.best_estimator_.n_features_in_)

    def score(self, X: Any, y: Any = None) -> float:
        """Score of the chosen model, by ``scoring``."""
        check_is_fitted(self)
        return float(self.scorer_(self.best_estimator_, X, y))

    def _ask(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, method)(X)

    @available_if(_model_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predictions of the chosen model."""
        return self._ask("predict", X)

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities by the chosen model."""
        return self._ask("predict_proba", X)

    @available_if(_model_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of probabilities by the chosen model."""
        return self._ask("predict_log_proba", X)

    @available_if(_model_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores by the chosen model."""
        return self._ask("decision_function", X)

    @available_if(_model_has("transform"))
    def transform(self, X: Any) -> Any:
        """X as the chosen model transforms it."""
        return self._ask("transform", X)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags = inner.target_tags
        return tags
