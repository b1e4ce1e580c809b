r"""Ridge regression that chooses its penalty by cross-validation, and what that choice rests on.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2 + alpha ||w||^2     with alpha from a grid

With ``cv=None`` each alpha is scored by leave-one-out, through the identity that the model fitted without
row i errs on it by e_i / (1 - h_i), with residual e_i and leverage h_i of the full fit (GEN-7): one
factorisation scores all alphas. With ``cv`` given, every fold is one eigendecomposition for all alphas
(:mod:`surefit.solvers.ridge_path`).

Certificate:

* *duality gap* (OPTIMAL): the final fit is optimal for the chosen alpha, as in :class:`Ridge`;
* *selection* (EXACT): the chosen alpha has the best of the recorded scores, and ``best_score_`` is that;
* *scores* (EXACT, decided by ``verify`` or ``certify="full"``): computed anew from the data, by other means
  (a factorisation for each alpha and fold), all scores are the recorded ones;
* *left-out rows* (EXACT, the same, for leave-one-out): a few rows are left out in earnest; the models fitted
  without them err on them as the identity says.

No claim is made about new data: the best score of several is optimistic.

References
----------
Golub, Heath & Wahba, "Generalized cross-validation" (1979); Rifkin & Lippert, "Notes on regularized least
squares" (2007).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from inspect import signature
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._metadata_requests import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_method_params, check_scalar

from ..base import Certified
from ..certificate import Claim
from ..design import as_design
from ..solvers.direct import ridge
from ..solvers.ridge_path import fold_paths, leave_one_out
from ._ridge_claims import folds_claim, loo_claims
from ._ridge_scores import score_errors, score_fold, spread
from ._selection import later_claim, pack_folds, selection_claim, take_rows
from .base import LinearRegressor, check_solution, stored
from .least_squares import kept_rows
from .ridge import Ridge
from .ridge_classifier import RidgeClassifier, RidgeLabels

__all__ = ["RidgeCV", "RidgeClassifierCV"]

Array = NDArray[np.float64]
_TOL = 1e-10  # of the final fit's gap, relative to the objective at 0: it is computed to rounding


class _RidgeCV(Certified):
    """The choice of alpha; what is regressed on what is the subclass's."""

    alphas: Any
    fit_intercept: bool
    scoring: Any
    cv: Any
    store_cv_results: bool
    gcv_mode: str | None = None
    alpha_per_target: bool = False

    alpha_: Any
    best_score_: Any
    coef_: NDArray[Any]
    intercept_: Any
    cv_scores_: Array
    folds_: Any
    scored_with_: tuple[str, ...]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alphas": ["array-like", Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "cv": ["cv_object"],
        "gcv_mode": [StrOptions({"auto", "svd", "eigen"}), None],
        "store_cv_results": ["boolean"],
        "alpha_per_target": ["boolean"],
        "certify": Certified._certify_constraint,
    }

    @abstractmethod
    def _problem(self, y: Any, sample_weight: Any) -> tuple[Array, Array | None]:
        """The targets of the regression, (n,) or (n, T), and the weights."""

    @abstractmethod
    def _model(self) -> Any:
        """An unfitted estimator of the kind that is scored on a fold."""

    @abstractmethod
    def _set_solution(self, coef: Array, intercept: Array, target: Array, X: Any) -> None:
        """Public attributes from (p, T) coefficients."""

    # ------------------------------------------------------------------ the fit

    def _fit(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> Any:
        target, weights = self._problem(y, sample_weight)
        alphas = self._checked_alphas()
        if weights is not None:
            params = {**params, "sample_weight": weights}
        if self.cv is None:
            extra = self._routed(params, "scorer")
            coef, intercept = self._leave_one_out(X, y, target, weights, alphas, extra)
        else:
            self._cross_validate(X, y, target, weights, alphas, params)
            rows, Y, s = kept_rows(X, target, weights)
            penalty = np.full(Y.shape[1], float(self.alpha_))
            coef, intercept, *_ = ridge(
                as_design(rows), Y, s, penalty, fit_intercept=self.fit_intercept
            )
        self._set_solution(coef, intercept, target, X)
        return self._seal(X, y, sample_weight, "the factorisations finished")

    def _checked_alphas(self) -> NDArray[Any]:
        """The grid; with leave-one-out the penalties must be positive."""
        boundary = "neither" if self.cv is None else "left"
        if np.ndim(self.alphas) == 0:
            return np.asarray([self.alphas])
        for index, alpha in enumerate(self.alphas):
            name = "alphas" if len(self.alphas) == 1 else f"alphas[{index}]"
            check_scalar(alpha, name, Real, min_val=0.0, include_boundaries=boundary)
        if len(self.alphas) == 0:
            raise ValueError("alphas is empty: give at least one penalty, such as alphas=[1.0].")
        alphas = np.asarray(self.alphas)
        if not np.isfinite(alphas.astype(np.float64)).all():
            raise ValueError(f"alphas must be finite, got {self.alphas!r}.")
        return alphas

    def _leave_one_out(
        self, X: Any, y: Any, target: Array, weights: Array | None, alphas: Array, extra: Any
    ) -> tuple[Array, Array]:
        """Score the alphas, choose, and give the coefficients for the chosen one."""
        if self.gcv_mode == "svd" and sp.issparse(X):
            warnings.warn(
                "The 'svd' mode is not supported for sparse X, we fallback to `gcv_mode='eigen'`. Passing "
                "`gcv_mode='svd'` on sparse X will raise an error in 1.11 (of scikit-learn), use the "
                "default or pass `gcv_mode='eigen'` to suppress this warning.",
                FutureWarning,
                stacklevel=4,
            )
        rows, Y, s = kept_rows(X, target, weights)
        if len(Y) < 2:
            raise ValueError(
                "leave-one-out needs at least 2 rows of positive weight, got n_samples=1: use Ridge with a "
                "fixed alpha, or more data."
            )
        grid = alphas.astype(np.float64)
        left_out = leave_one_out(
            as_design(rows), Y, s, grid, fit_intercept=self.fit_intercept,
            svd=self.gcv_mode == "svd" and not sp.issparse(X),
        )  # fmt: skip
        errors = left_out.errors
        if len(Y) < len(target):  # a row without weight is predicted by the fit itself
            everything = [(np.arange(len(Y)), np.arange(0))]
            [path] = fold_paths(rows, Y, s, everything, grid, fit_intercept=self.fit_intercept)
            errors = spread(X, target, np.asarray(weights), errors, path)
        scored = score_errors(self, errors, y, target, weights, extra)
        self.scored_with_ = tuple(sorted(extra))
        self.cv_scores_ = scored.scores
        best = _first_best(scored.scores)
        if scored.scores.ndim == 2:
            columns = np.arange(scored.scores.shape[1])
            self.alpha_ = alphas[best].astype(np.float64)
            self.best_score_ = scored.scores[best, columns]
        else:
            self.alpha_ = float(alphas[best])
            self.best_score_ = scored.scores[best]
            if (
                self.alpha_per_target and target.ndim == 2
            ):  # one target, in the shape that it came in
                self.best_score_ = np.atleast_1d(self.best_score_)
        for name in ("cv_results_", "folds_"):
            self.__dict__.pop(name, None)
        if self.store_cv_results:
            values = scored.values if target.ndim == 2 else scored.values[:, 0]
            self.cv_results_ = values.astype(X.dtype)
        penalty = np.asarray(self.alpha_, dtype=np.float64)
        return left_out.solve(np.broadcast_to(penalty, (Y.shape[1],)).copy())

    def _cross_validate(
        self,
        X: Any,
        y: Any,
        target: Array,
        weights: Array | None,
        alphas: NDArray[Any],
        params: dict[str, Any],
    ) -> None:
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible")
        extra, split = self._routed(params, "scorer"), {}
        if _routing_enabled():
            split = self._routed(params, "splitter")
        elif extra and not _takes_weights(self._get_scorer()):
            warnings.warn(
                f"The scoring {self.scoring} does not support sample_weight, which may lead to statistically "
                f"incorrect results when fitting {self} with sample_weight.",
                stacklevel=4,
            )
            extra = {}
        cv = check_cv(self.cv, y, classifier=isinstance(self, RidgeLabels))
        folds = [(np.asarray(a), np.asarray(b)) for a, b in cv.split(X, y, **split)]
        Y = target.reshape(len(target), -1)
        s = np.ones(len(Y)) if weights is None else weights
        X = X.tocsr() if sp.issparse(X) else X
        paths = fold_paths(
            X, Y, s, folds, alphas.astype(np.float64), fit_intercept=self.fit_intercept
        )
        scores = np.empty((len(alphas), len(folds)))
        for k, ((_, test), path) in enumerate(zip(folds, paths, strict=True)):
            given = _check_method_params(X, params=extra, indices=test)
            scores[:, k] = score_fold(
                self, take_rows(X, test), y[test], path, alphas, given, flat=target.ndim == 1
            )
        best = _first_best(scores.mean(axis=1))
        self.scored_with_ = tuple(sorted(extra))
        self.cv_scores_, self.folds_ = scores, pack_folds(folds, len(Y))
        self.alpha_, self.best_score_ = alphas[best], scores[best].mean()
        self.__dict__.pop("cv_results_", None)

    # ------------------------------------------------------------------ the claims

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        target, weights = self._problem(y, sample_weight)
        model = Ridge(self.alpha_, fit_intercept=self.fit_intercept, tol=_TOL)
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        claims = model._certify(X, target, weights, full=full)
        claims.append(self._selection_claim())
        if not full:
            return [*claims, later_claim()]
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if self.cv is None:
            return claims + loo_claims(self, X, y, target, weights, alphas)
        return [*claims, folds_claim(self, X, y, target, weights, alphas)]

    def _selection_claim(self) -> Claim:
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        folds = self.cv is not None
        scores = self.cv_scores_.mean(axis=1, keepdims=True) if folds else self.cv_scores_
        scores = scores.reshape(len(alphas), -1)
        worst: Claim | None = None
        for k, (alpha, best) in enumerate(
            zip(np.atleast_1d(self.alpha_), np.atleast_1d(self.best_score_), strict=True)
        ):
            here = scores[alphas == alpha, k]
            chosen = float(here.max()) if len(here) else np.nan
            claim = selection_claim(f"alpha_ = {alpha:.4g}", chosen, scores[:, k], float(best))
            if worst is None or not claim.observed <= worst.observed:
                worst = claim
        assert worst is not None
        return worst

    # ------------------------------------------------------------------ metadata

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata given to ``fit`` reach the splitter and the scorer."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                scorer=self._get_scorer(),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def _get_scorer(self) -> Any:
        if _routing_enabled() and self.scoring is None:  # always weighted, as in scikit-learn
            default = "accuracy" if isinstance(self, RidgeLabels) else "r2"
            return get_scorer(default).set_score_request(sample_weight=True)
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)

    def _routed(self, params: dict[str, Any], consumer: str) -> dict[str, Any]:
        """The part of ``params`` for the scorer or the splitter."""
        if not _routing_enabled():
            return {name: params[name] for name in params if name == "sample_weight"}
        routed = process_routing(self, "fit", **params)
        method = "score" if consumer == "scorer" else "split"
        return dict(routed[consumer][method])


class RidgeCV(_RidgeCV, LinearRegressor):
    """Ridge regression with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        The penalties to try; positive with leave-one-out.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    scoring : str, callable or None, default=None
        What to maximise; by default minus the squared error with leave-one-out, else R^2.
    cv : int, splitter, iterable of (train, test) or None, default=None
        ``None`` is leave-one-out, by its identity.
    gcv_mode : {"auto", "svd", "eigen"}, default=None
        "svd" for a singular value decomposition in any case; otherwise it is used where an
        eigendecomposition would cost digits.
    store_cv_results : bool, default=False
        Keep ``cv_results_`` (leave-one-out only).
    alpha_per_target : bool, default=False
        Choose an alpha for each target (leave-one-out only).
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    alpha_ : float or array of shape (n_targets,)
    best_score_ : float or array of shape (n_targets,)
    cv_results_ : array of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        Squared errors times weights, or, with ``scoring``, the predictions of the left-out rows.
    cv_scores_ : array of shape (n_alphas,), (n_alphas, n_targets) or (n_alphas, n_folds)
        What alpha was chosen by.
    folds_ : array of shape (n_samples,) or list of (train, test)
        With ``cv``: the fold that tests each row, or the folds.
    scored_with_ : tuple of str
        The names of what the scorer was given besides predictions and targets.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from surefit.linear_model import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> model.alpha_, round(model.score(X, y), 4), model.certificate_["selection"].status.name
    (0.01, 0.5166, 'HOLDS')
    """

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeCV:
        """Choose alpha, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
        **params
            For the scorer and the splitter, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        return self._fit(X, y, sample_weight, params)

    def _problem(self, y: Any, sample_weight: Any) -> tuple[Array, Array | None]:
        return y, sample_weight

    def _model(self) -> Ridge:
        return Ridge(fit_intercept=self.fit_intercept, certify=False)

    def _set_solution(self, coef: Array, intercept: Array, target: Array, X: Any) -> None:
        self._store(coef, intercept, target, X, flat=True)


class RidgeClassifierCV(_RidgeCV, RidgeLabels):
    """Ridge classifier with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`RidgeCV` and :class:`RidgeClassifier`. With ``scoring`` and
    leave-one-out the score is that of the predicted labels against the true ones.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> round(model.score(X, y), 4), model.certificate_.ok
    (0.9631, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in _RidgeCV._parameter_constraints.items()
            if name not in ("gcv_mode", "alpha_per_target")
        },
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.store_cv_results = store_cv_results
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeClassifierCV:
        """Choose alpha, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : float or array-like of shape (n_samples,), optional
        **params
            For the scorer and the splitter, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self._learn_labels(y)
        return self._fit(X, y, sample_weight, params)

    def _problem(self, y: Any, sample_weight: Any) -> tuple[Array, Array | None]:
        return self._targets(y), self._weights(y, sample_weight)

    def _model(self) -> RidgeClassifier:
        model = RidgeClassifier(fit_intercept=self.fit_intercept, certify=False)
        model.classes_, model.multilabel_ = self.classes_, self.multilabel_
        return model

    def _set_solution(self, coef: Array, intercept: Array, target: Array, X: Any) -> None:
        flat = coef.shape[1] == 1
        check_solution(coef, intercept)
        self.coef_ = stored(np.ascontiguousarray(coef[:, 0] if flat else coef.T), X)
        self.intercept_ = stored(intercept, X) if self.fit_intercept else 0.0


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer can be given sample weights."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters


def _first_best(scores: Array) -> Any:
    """The first of the best along the alphas; NaN is worse than any number."""
    return np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=0)
