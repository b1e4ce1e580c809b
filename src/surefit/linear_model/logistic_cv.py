r"""Logistic regression that chooses its penalty by cross-validation, and what that choice rests on.

    min_{w, b}  C sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + rho ||w||_1 + (1 - rho)/2 ||w||^2

with C (and rho, ``l1_ratio``) from a grid; softmax cross-entropy for more than two classes, as in
:class:`LogisticRegression`. On the training rows of each fold the models for all C are fitted one after the
other, each starting from the last, and scored on the test rows. The C with the best average score is fitted
to all rows.

Certificate:

* *duality gap* (OPTIMAL): the final fit is optimal for the chosen C, as in :class:`LogisticRegression`; with
  ``refit=False``, where the coefficients are an average over the folds, *average* (EXACT): they are that;
* *selection* (EXACT): the chosen C has the best of the recorded scores;
* *fold models* (OPTIMAL, decided by ``verify`` or ``certify="full"``): the models of ``coefs_paths_`` at the
  chosen C are optimal on their training rows;
* *scores* (EXACT, the same): all models of ``coefs_paths_`` have on the test rows the scores recorded in
  ``scores_``.

No claim is made about new data: the best score of several is optimistic.

References
----------
Friedman, Hastie & Tibshirani, "Regularization paths for generalized linear models via coordinate descent"
(2010), JSS 33.
"""

from __future__ import annotations

import math
import numbers
import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import compute_class_weight, metadata_routing
from sklearn.utils._metadata_requests import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _deprecate_positional_args

from ..base import Certified
from ..certificate import CertificateWarning, Claim, Kind
from ._logistic_folds import best_places, fold_path, public, score_path, set_model, solved
from ._logistic_words import NOT_CONVERGED
from ._selection import (
    later_claim,
    pack_folds,
    rescored_claim,
    selection_claim,
    unpack_folds,
    worst_claim,
)
from .base import check_solution
from .logistic import LogisticRegression

__all__ = ["LogisticRegressionCV"]

Array = NDArray[np.float64]


class LogisticRegressionCV(LogisticRegression):
    """Logistic regression with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The weights of the loss, or how many to lay from 1e-4 to 1e4.
    l1_ratios : array-like or None, default=None
        Shares of the l1 penalty to try; the default will be (0.0,), as in scikit-learn.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; ``None`` is five, stratified.
    dual : bool, default=False
        Kept for compatibility.
    penalty : {"l1", "l2", "elasticnet"}, default="deprecated"
        Deprecated as in scikit-learn: use ``l1_ratios``.
    scoring : str, callable or None, default=None
        What to maximise; ``None`` is accuracy, and the default will be "neg_log_loss", as in scikit-learn.
    solver : str, default="lbfgs"
        Any of scikit-learn's names, with any penalty.
    tol : float, default=1e-4
        The duality gaps are claimed to be at most ``tol`` times the objective at w = 0.
    max_iter : int, default=100
        Most Newton steps, for each C.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" is by all rows, not fold by fold.
    n_jobs : int, default=None
        How many folds to fit at once, in threads.
    verbose : int, default=0
        Show progress over the folds.
    refit : bool, default=True
        Whether to fit the chosen C to all rows; if not, the best C and the coefficients are averages over the
        folds.
    intercept_scaling : float, default=1.0
        With ``solver="liblinear"`` only: the value of the constant feature.
    random_state : default=None
        Kept for compatibility: nothing here is random.
    use_legacy_attributes : bool, default=True
        The shapes of the fitted attributes, as in scikit-learn.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    Cs_, l1_ratios_ : array
        The grid.
    C_, l1_ratio_ : float; array of shape (1,) or (n_classes,) in the legacy form
    coefs_paths_ : array of shape (n_folds, n_l1_ratios, n_cs, n_classes, n_dof); dict in the legacy form
        The models of the folds; the intercept comes last.
    scores_ : array of shape (n_folds, n_l1_ratios, n_cs); dict in the legacy form
    n_iter_ : array of shape (n_folds, n_l1_ratios, n_cs); (1, n_folds, n_cs, ...) in the legacy form
    folds_ : array of shape (n_samples,) or list of (train, test)
        The fold that tests each row, or the folds.
    scored_with_ : tuple of str
        The names of what the scorer was given besides the model, rows and labels.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from surefit.linear_model import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(
    ...     cv=5, l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False
    ... ).fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_["selection"].status.name
    (-0.041, 'HOLDS')
    """

    C_: Any
    l1_ratio_: Any
    scores_: Any
    coefs_paths_: Any

    # as in scikit-learn: `score` asks its scorer what it takes
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": metadata_routing.UNUSED}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in LogisticRegression._parameter_constraints.items()
            if name not in ("C", "warm_start", "l1_ratio")
        },
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like", None, Hidden(StrOptions({"warn"}))],
        "cv": ["cv_object"],
        "scoring": [
            StrOptions(set(get_scorer_names())),
            callable,
            None,
            Hidden(StrOptions({"warn"})),
        ],
        "refit": ["boolean"],
        "penalty": [
            StrOptions({"l1", "l2", "elasticnet"}),
            Hidden(StrOptions({"deprecated"})),
        ],
        "use_legacy_attributes": ["boolean", Hidden(StrOptions({"warn"}))],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = "warn",
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: str = "deprecated",
        scoring: Any = "warn",
        solver: str = "lbfgs",
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        use_legacy_attributes: bool | str = "warn",
        certify: bool | str = True,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LogisticRegressionCV:
        """Choose the penalty, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            For the fits and, where the scorer takes them, for the scores.
        **params
            For the splitter and the scorer, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        self._warn_of_deprecated()
        ratios = self._ratios()
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self.classes_ = self._checked_classes(y, sample_weight)
        self.Cs_ = self._checked_Cs()
        split: dict[str, Any] = {}
        given: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            split, given = dict(routed.splitter.split), dict(routed.scorer.score)
        rows = X.tocsr() if sp.issparse(X) else X
        cv = check_cv(self.cv, y, classifier=True)
        folds = [(np.asarray(a), np.asarray(b)) for a, b in cv.split(rows, y, **split)]
        if self._scoring() is None:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
        weights = self._class_weight(y, sample_weight)
        jobs = (
            delayed(fold_path)(
                self._model(math.nan, ratio, weights), rows, y, sample_weight, train, test,
                self.Cs_, self._scoring(), given,
            )
            for train, test in folds
            for ratio in ratios
        )  # fmt: skip
        paths = Parallel(n_jobs=self.n_jobs, verbose=int(self.verbose), prefer="threads")(jobs)
        shape = (len(folds), len(ratios), len(self.Cs_))
        scores = np.array([path.scores for path in paths]).reshape(shape)
        coefs = np.array([path.coefs for path in paths])
        coefs = coefs.reshape(*shape, *coefs.shape[2:])
        self.folds_, self.scored_with_ = pack_folds(folds, len(y)), tuple(sorted(given))
        self._choose(rows, y, sample_weight, ratios, scores, coefs)
        iterations = np.array([path.n_iter for path in paths], dtype=np.int32).reshape(shape)
        self._publish(ratios, scores, coefs, iterations)
        self._warn_of_unfinished(sum(path.unfinished for path in paths), scores.size)
        return self._seal(X, y, sample_weight, "the models of all folds, and the last, were fitted")

    def _choose(
        self,
        X: Any,
        y: Any,
        sample_weight: Array | None,
        ratios: list[Any],
        scores: Array,
        coefs: Array,
    ) -> None:
        """The best C and l1_ratio, and the coefficients for them."""
        p = X.shape[1]
        best = best_places(scores, refit=self.refit)  # (fold, ratio, C) of each fold
        start = np.mean([coefs[index] for index in best], axis=0)
        self.coef_ = start[:, :p]
        self.intercept_ = start[:, p] if self.fit_intercept else np.zeros(len(start))
        self.C_, self.l1_ratio_ = float(self.Cs_[best[0][2]]), ratios[best[0][1]]
        if not self.refit:
            self.C_ = float(np.mean([self.Cs_[c] for _, _, c in best]))
            self.l1_ratio_ = float(np.mean([self._share(ratios[r]) for _, r, _ in best]))
            return
        model = self._model(self.C_, self.l1_ratio_, self._class_weight(y, sample_weight))
        model.warm_start, model.coef_, model.intercept_ = True, self.coef_, self.intercept_
        fit, _ = solved(model, X, y, sample_weight)
        check_solution(*fit.x)
        self.__dict__.update(public(model, fit.x))

    def _publish(
        self, ratios: list[Any], scores: Array, coefs: Array, iterations: NDArray[np.int32]
    ) -> None:
        """The fitted attributes in the shapes of ``use_legacy_attributes``."""
        self.l1_ratios_ = np.asarray(ratios)
        if self.use_legacy_attributes is False:
            self.scores_, self.coefs_paths_, self.n_iter_ = scores, coefs, iterations
            self.l1_ratio_ = self._share(self.l1_ratio_)
            return
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.C_ = np.full(len(labels), self.C_)
        self.l1_ratio_ = np.asarray([self.l1_ratio_] * len(labels))
        plain = ratios == [None]  # without l1_ratios, without their dimension
        table = scores[:, 0] if plain else scores.swapaxes(1, 2)
        paths = coefs[:, 0] if plain else coefs.swapaxes(1, 2)
        self.n_iter_ = (iterations[:, 0] if plain else iterations.swapaxes(1, 2))[None]
        self.scores_ = dict.fromkeys(labels, table)
        self.coefs_paths_ = {label: paths[..., k, :] for k, label in enumerate(labels)}

    def _tables(self) -> tuple[Array, Array]:
        """``scores_`` (folds, ratios, Cs) and ``coefs_paths_`` (folds, ratios, Cs, classes, dof)."""
        scores, coefs = self.scores_, self.coefs_paths_
        if not isinstance(scores, dict):
            return scores, coefs
        table = np.asarray(next(iter(scores.values())))
        if any(not np.array_equal(table, other, equal_nan=True) for other in scores.values()):
            table = np.full_like(table, math.nan)  # one table, once for each class
        paths = np.stack(list(coefs.values()), axis=-2)
        if table.ndim == 2:
            return table[:, None], paths[:, None]
        return table.swapaxes(1, 2), paths.swapaxes(1, 2)

    # ------------------------------------------------------------------ the problem

    def _model(self, C: float, ratio: Any, class_weight: Any) -> LogisticRegression:
        """An estimator for one point of the grid."""
        model = LogisticRegression(
            C=C, l1_ratio=self._share(ratio), dual=self.dual, tol=self.tol,
            fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
            class_weight=class_weight, solver=self.solver, max_iter=self.max_iter, certify=False,
        )  # fmt: skip
        model.classes_ = self.classes_
        return model

    def _share(self, ratio: Any) -> float:
        """l1_ratio in scikit-learn's old and new spellings."""
        return float({"l1": 1.0, "l2": 0.0}.get(str(self.penalty), ratio or 0.0))

    def _class_weight(self, y: Any, sample_weight: Array | None) -> Any:
        """Weights of the classes, by all rows."""
        if isinstance(self.class_weight, dict) and not set(self.class_weight) <= set(self.classes_):
            raise ValueError(
                "The given class_weight dict must have the class labels as keys; "
                f"classes={self.classes_} but key={self.class_weight.keys()}"
            )
        if not isinstance(self.class_weight, str):
            return self.class_weight
        balanced = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight
        )
        return dict(zip(self.classes_.tolist(), balanced.tolist(), strict=True))

    def _checked_Cs(self) -> Array:
        if isinstance(self.Cs, Integral):
            return np.logspace(-4, 4, int(self.Cs))
        Cs = np.asarray(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or len(Cs) == 0 or not (Cs > 0).all():
            raise ValueError(
                f"Cs must be an integer or a list of positive numbers, got {self.Cs!r}."
            )
        return Cs

    def _ratios(self) -> list[Any]:
        """The l1_ratios of the grid; [None] where they were not given."""
        ratios = None if isinstance(self.l1_ratios, str) else self.l1_ratios
        sound = ratios is not None and len(ratios) > 0 and all(
            isinstance(r, numbers.Number) and 0 <= r <= 1 for r in ratios  # type: ignore[operator]
        )  # fmt: skip
        if (self.penalty == "elasticnet" or ratios is not None) and not sound:
            raise ValueError(
                f"l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios={ratios!r})"
            )
        return [None] if ratios is None else list(ratios)

    def _scoring(self) -> Any:
        return None if isinstance(self.scoring, str) and self.scoring == "warn" else self.scoring

    def _accepts(self) -> frozenset[str]:
        return Certified._accepts(self)

    # ------------------------------------------------------------------ the claims

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        scores, coefs = self._tables()
        weights = self._class_weight(y, sample_weight)
        C, ratio = float(np.ravel(self.C_)[0]), np.ravel(np.asarray(self.l1_ratio_))[0]
        claims: list[Claim] = []
        if self.refit:
            model = self._model(C, ratio, weights)
            model.coef_, model.intercept_ = self.coef_, self.intercept_
            claims += model._certify(X, y, sample_weight, full=full)
        best = best_places(scores, refit=self.refit)
        claims.append(self._selection_claim(scores, C, ratio, best))
        if not self.refit:
            claims.append(self._average_claim(coefs, best))
        if not full:
            return [*claims, later_claim("fold models", Kind.OPTIMAL), later_claim()]
        return claims + self._fold_claims(X, y, sample_weight, scores, coefs, best, weights)

    def _selection_claim(self, scores: Array, C: float, ratio: Any, best: list[Any]) -> Claim:
        shares = [self._share(r) for r in self.l1_ratios_.tolist()]
        if self.refit:
            averages = scores.mean(axis=0)  # (ratios, Cs)
            here = np.equal.outer(shares, self._share(ratio)).reshape(-1, 1) & (self.Cs_ == C)
            chosen = float(averages[here].max()) if here.any() else math.nan
            if np.isnan(averages).all():
                chosen = 0.0 if here.any() else math.nan
            return selection_claim(f"C_ = {C:.4g}", chosen, averages)
        means = np.mean([(self.Cs_[c], shares[r]) for _, r, c in best], axis=0)
        off = float(np.abs(means - (C, float(ratio))).max())
        words = f"C_ = {C:.4g} is the average of the best of each fold"
        return selection_claim(words, -off if off > 1e-12 * means[0] else 0.0, np.zeros(1))

    def _average_claim(self, coefs: Array, best: list[Any]) -> Claim:
        """Without a last fit: the coefficients are the average of those of the folds."""
        average = np.mean([coefs[index] for index in best], axis=0)
        own = np.hstack([self.coef_, self.intercept_[:, None]])[:, : average.shape[1]]
        observed = float(np.abs(own - average).max())
        size = float(np.abs(average).max(initial=0.0))
        statement = (
            f"the coefficients are the average of the best models of {len(best)} folds, to {observed:.1e}; "
            "no optimality claim"
        )
        bound = 8.0 * float(np.finfo(np.float64).eps) * size
        return Claim.check("average", statement, Kind.EXACT, observed, bound, "GEN-7")

    def _fold_claims(
        self,
        X: Any,
        y: Any,
        sample_weight: Array | None,
        scores: Array,
        coefs: Array,
        best: list[Any],
        class_weight: Any,
    ) -> list[Claim]:
        """The models of the folds: optimal where they were fitted, and scored as recorded."""
        folds, n, p = unpack_folds(self.folds_), X.shape[0], X.shape[1]
        most = max(int(max(a.max(initial=0), b.max(initial=0))) for a, b in folds)
        whole = len(self.folds_) == n if isinstance(self.folds_, np.ndarray) else most < n
        others = sorted(set(self.scored_with_) - {"sample_weight"})
        why = ""
        if not whole or len(folds) != len(scores) or coefs.shape[:3] != scores.shape:
            why = f"the recorded folds, or their models, are not of {n} rows"
        elif others:
            why = f"the scorer was given {', '.join(others)}, which verify does not have"
        if why:
            return [Claim.undecided("scores", why, Kind.EXACT, "GEN-7")]
        X = X.tocsr() if sp.issparse(X) else X
        given = {"sample_weight": sample_weight} if self.scored_with_ else {}
        again, optimal = np.empty_like(scores), []
        for f, (train, test) in enumerate(folds):
            for r, ratio in enumerate(self.l1_ratios_.tolist()):
                model = self._model(1.0, ratio, class_weight)
                again[f, r] = score_path(
                    model, coefs[f, r], self.Cs_, X, y, test, self._scoring(), given
                )
            _, r, c = best[f]
            model = self._model(float(self.Cs_[c]), self.l1_ratios_.tolist()[r], class_weight)
            set_model(model, coefs[f, r, c], p)
            s = None if sample_weight is None else sample_weight[train]
            optimal.append(model._certify(X[train], y[train], s, full=False)[0])
        floor = 1e-9 * (1.0 + np.abs(np.nan_to_num(again)))
        what = f"the scores of all {scores.size} models of the folds"
        return [
            worst_claim("fold models", "on its training rows", optimal),
            rescored_claim(scores, again, floor, what),
        ]

    def _remedy(self) -> str:
        if self.refit and np.isinf(np.ravel(self.C_)[0]):
            return "Use a penalty (finite Cs), or more data."
        words = NOT_CONVERGED[self.solver].format(self.max_iter)
        return f"{words}, or scale the data, for instance with StandardScaler."

    def _warn_of_unfinished(self, unfinished: int, total: int) -> None:
        if unfinished:
            words = NOT_CONVERGED[self.solver].format(self.max_iter)
            warnings.warn(
                f"{words}, or scale the data: {unfinished} of the {total} fits to the folds ended without "
                f"reaching tol={self.tol:g}.",
                CertificateWarning,
                stacklevel=4,
            )

    def _warn_of_deprecated(self) -> None:
        def warn(message: str, kind: type[Warning] = FutureWarning) -> None:
            warnings.warn(message, kind, stacklevel=5)

        if isinstance(self.l1_ratios, str):
            warn(
                "The default value for l1_ratios will change from None to (0.0,) in version 1.10 (of "
                "scikit-learn). From version 1.10 onwards, only array-like with values in [0, 1] will be "
                "allowed, None will be forbidden. To avoid this warning, explicitly set a value, e.g. "
                "l1_ratios=(0,)."
            )
        if self.penalty != "deprecated":
            warn(
                "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, "
                "leave 'penalty' set to its default value and use 'l1_ratios' and 'Cs' instead. Use "
                "l1_ratios=(0,) instead of penalty='l2', l1_ratios=(1,) instead of penalty='l1', l1_ratios "
                "set to floats between 0 and 1 instead of penalty='elasticnet', and Cs=(np.inf,) instead "
                "of penalty=None."
            )
            if self.penalty != "elasticnet" and not isinstance(self.l1_ratios, str | None):
                warn(
                    "l1_ratios parameter is only used when penalty is 'elasticnet'. Got "
                    f"(penalty={self.penalty})",
                    UserWarning,
                )
        elif self.l1_ratios is None:
            warn(
                "'l1_ratios=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use an "
                "array-like with values in [0, 1] instead."
            )
        if isinstance(self.scoring, str) and self.scoring == "warn":
            warn(
                "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to "
                "'neg_log_loss' in version 1.11. To silence this warning, explicitly set the scoring "
                "parameter: scoring='neg_log_loss' for the new, scoring='accuracy' or scoring=None for the "
                "old default."
            )
        if self.use_legacy_attributes == "warn":
            warn(
                f"The fitted attributes of {type(self).__name__} will be simplified in scikit-learn 1.10 to "
                "remove redundancy. Set `use_legacy_attributes=False` to enable the new behavior now, or set "
                "it to `True` to silence this warning during the transition period while keeping the "
                "deprecated behavior for the time being. The default value of use_legacy_attributes will "
                f"change from True to False in scikit-learn 1.10. See the docstring of {type(self).__name__} "
                "for more details."
            )

    # ------------------------------------------------------------------ scores and metadata

    @_deprecate_positional_args(version="1.11")
    def score(self, X: Any, y: Any, *, sample_weight: Any = None, **score_params: Any) -> float:
        """The score by ``scoring`` on some rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **score_params
            For the scorer, with metadata routing enabled.
        """
        _raise_for_params(score_params, self, "score")
        if sample_weight is not None:
            score_params["sample_weight"] = sample_weight
        given = score_params
        if _routing_enabled():
            given = process_routing(self, "score", **score_params).scorer.score
        return float(self._get_scorer()(self, X, y, **given))

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata given to ``fit`` and ``score`` reach the splitter and the scorer."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
            .add(
                scorer=self._get_scorer(),
                method_mapping=MethodMapping()
                .add(caller="score", callee="score")
                .add(caller="fit", callee="score"),
            )
        )

    def _get_scorer(self) -> Any:
        return get_scorer(self._scoring() or "accuracy")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = False
        return tags
