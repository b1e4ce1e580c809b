"""What :class:`LogisticRegressionCV` does with the scores of its folds: the choice, the last fit, the claims.

One fold is in :mod:`surefit.linear_model._logistic_folds`, the claims are in
:mod:`surefit.linear_model._logistic_cv_claims`, and scikit-learn's old and new spellings in
:mod:`surefit.linear_model._logistic_cv_spellings`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.utils import compute_class_weight, metadata_routing
from sklearn.utils._metadata_requests import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _deprecate_positional_args

from .._selection import later_claim
from ..base import Certified
from ..certificate import CertificateWarning, Claim, Kind
from ._logistic_cv_attributes import wrong_grid
from ._logistic_cv_claims import average_claim, choice_claim, fold_claims
from ._logistic_cv_spellings import l1_share, scoring_of, tables
from ._logistic_folds import best_places, public, solved
from ._logistic_words import NOT_CONVERGED
from .base import check_solution, explained_errors
from .logistic import LogisticRegression

__all__ = ["LogisticChoice"]

Array = NDArray[np.float64]


class LogisticChoice(LogisticRegression):
    """The choice of C and l1_ratio; the grid, the folds and their models are the subclass's."""

    cv: Any
    scoring: Any
    refit: bool

    _may_be_infinite: ClassVar[dict[str, str]] = {
        "Cs_": "an infinite C is no penalty",
        "C_": "an infinite C is no penalty",
    }
    _may_be_nan: ClassVar[dict[str, str]] = {"scores_": "a scorer may have no value on a fold"}

    Cs_: Array
    l1_ratios_: NDArray[Any]
    C_: Any
    l1_ratio_: Any
    scores_: Any
    coefs_paths_: Any
    folds_: Any
    scored_with_: tuple[str, ...]

    # as in scikit-learn: `score` asks its scorer what it takes
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": metadata_routing.UNUSED}

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
            self.l1_ratio_ = float(np.mean([l1_share(self, ratios[r]) for _, r, _ in best]))
            return
        model = self._model(self.C_, self.l1_ratio_, self._class_weight(y, sample_weight))
        model.warm_start, model.coef_, model.intercept_ = True, self.coef_, self.intercept_
        with explained_errors(X, C=self.C_):
            fit, _ = solved(model, X, y, sample_weight)
        check_solution(*fit.x)
        self.__dict__.update(public(model, fit.x))

    # ------------------------------------------------------------------ the problem

    def _model(self, C: float, ratio: Any, class_weight: Any) -> LogisticRegression:
        """An estimator for one point of the grid."""
        model = LogisticRegression(
            C=C, l1_ratio=l1_share(self, ratio), dual=self.dual, tol=self.tol,
            fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
            class_weight=class_weight, solver=self.solver, max_iter=self.max_iter, certify=False,
        )  # fmt: skip
        model.classes_ = self.classes_
        return model

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

    def _accepts(self) -> frozenset[str]:
        return Certified._accepts(self)

    # ------------------------------------------------------------------ the claims

    def _wrong_iterations(self, X: Any, y: Any) -> Iterator[str]:
        """What the fit recorded of the grid, the folds and their models."""
        yield from wrong_grid(self, X.shape[0], X.shape[1])

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        scores, coefs = tables(self)
        weights = self._class_weight(y, sample_weight)
        C, ratio = float(np.ravel(self.C_)[0]), np.ravel(np.asarray(self.l1_ratio_))[0]
        claims: list[Claim] = []
        if self.refit:
            model = self._model(C, ratio, weights)
            model.coef_, model.intercept_ = self.coef_, self.intercept_
            claims += model._certify(X, y, sample_weight, full=full, tol=tol)
        best = best_places(scores, refit=self.refit)
        claims.append(choice_claim(self, scores, C, ratio, best))
        if not self.refit:
            claims.append(average_claim(self, coefs, best))
        if not full:
            return [*claims, later_claim("fold models", Kind.OPTIMAL), later_claim()]
        return claims + fold_claims(self, X, y, sample_weight, scores, coefs, best, weights, tol)

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
        return get_scorer(scoring_of(self) or "accuracy")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = False
        return tags
