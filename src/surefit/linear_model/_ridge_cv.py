"""What the ridge models with built-in cross-validation share: the scores of the grid, and the choice.

The estimators, and what they claim, are in :mod:`surefit.linear_model.ridge_cv`; the claims about the scores
in :mod:`surefit.linear_model._ridge_claims`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from inspect import signature
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._metadata_requests import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_method_params, check_scalar

from .._selection import later_claim, pack_folds, selection_claim, take_rows, unpack_folds
from .._worst import badness
from ..base import Certified
from ..certificate import Claim
from ..design import as_design
from ..solvers.direct import ridge
from ..solvers.leave_one_out import leave_one_out
from ..solvers.ridge_path import fold_paths
from ._attribute_checks import wrong_folds, wrong_shapes
from ._ridge_claims import folds_claim, loo_claims
from ._ridge_scores import score_errors, score_fold, spread
from .least_squares import kept_rows
from .ridge import Ridge
from .ridge_classifier import RidgeLabels

__all__ = ["RidgeChoice"]

Array = NDArray[np.float64]
_TOL = 1e-10  # of the final fit's gap, relative to the objective at 0: it is computed to rounding


class RidgeChoice(Certified):
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

    _may_be_nan: ClassVar[dict[str, str]] = {
        "cv_scores_": "a scorer may have no value on a fold",
        "best_score_": "a scorer may have no value on a fold",
    }
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
            if self.alpha_per_target and target.ndim == 2:  # one target, of the shape (n, 1)
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

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        target, _ = self._problem(y, sample_weight)
        targets = 1 if target.ndim == 1 else target.shape[1]
        alphas = np.atleast_1d(self._checked_alphas())
        if not all(isinstance(name, str) for name in self.scored_with_):
            yield f"scored_with_ is {self.scored_with_!r}, expected names"
        each: tuple[int, ...] = ()
        if self.alpha_per_target and target.ndim == 2 and self.cv is None:
            each = (targets,)
        scores: tuple[int, ...] = (len(alphas), *(each if targets > 1 else ()))
        if self.cv is not None:
            yield from wrong_folds(self.folds_, X.shape[0])
            scores = (len(alphas), len(unpack_folds(self.folds_)))
        yield from wrong_shapes(
            self, cv_scores_=scores, best_score_=each, alpha_=each if targets > 1 else ()
        )
        if not np.isin(self.alpha_, alphas).all():
            yield f"alpha_ is {self.alpha_!r}, which is not in alphas"
        if self.store_cv_results and self.cv is None:
            columns = () if target.ndim == 1 else (targets,)
            yield from wrong_shapes(self, cv_results_=(X.shape[0], *columns, len(alphas)))

    def _own_tolerance(self) -> float:
        return _TOL

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        target, weights = self._problem(y, sample_weight)
        model = Ridge(self.alpha_, fit_intercept=self.fit_intercept, tol=_TOL)
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        claims = model._certify(X, target, weights, full=full, tol=tol)
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
        claims = []
        for k, (alpha, best) in enumerate(
            zip(np.atleast_1d(self.alpha_), np.atleast_1d(self.best_score_), strict=True)
        ):
            here = scores[alphas == alpha, k]
            chosen = float(here.max()) if len(here) else np.nan
            name = f"alpha_ = {alpha:.4g}"
            claims.append(selection_claim(name, chosen, scores[:, k], float(best)))
        return max(claims, key=badness)

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


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer can be given sample weights."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters


def _first_best(scores: Array) -> Any:
    """The first of the best along the alphas; NaN is worse than any number."""
    return np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=0)
