"""What the Lasso and elastic net with built-in cross-validation share: the grid, the folds, the choice.

The estimators are in :mod:`surefit.linear_model.path_cv` and :mod:`surefit.linear_model.multitask_cv`, one
fold is in :mod:`surefit.linear_model._path_folds`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d
from sklearn.utils._metadata_requests import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_scalar

from .._selection import pack_folds, unpack_folds
from ..base import Certified
from ..certificate import CertificateWarning, Claim
from ..design import as_design
from ._attribute_checks import wrong_counts, wrong_folds, wrong_shapes, wrong_values
from ._path_claims import choice_claims
from ._path_folds import FoldPath, Options, fold_path, path_moments
from .base import LinearRegressor
from .coordinate_descent import ElasticNet
from .least_squares import kept_rows
from .paths import random_order

__all__ = ["PathCV"]

Array = NDArray[np.float64]


class PathCV(LinearRegressor):
    """The choice along the path; which path it is, the subclass says."""

    _overflow: ClassVar[str] = ElasticNet._overflow
    _multitask: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "eps": [Interval(Real, 0, None, closed="neither")],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "precompute": [StrOptions({"auto"}), "array-like", "boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "copy_X": ["boolean"],
        "cv": ["cv_object"],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "selection": [StrOptions({"cyclic", "random"})],
        "certify": Certified._certify_constraint,
    }
    eps: float
    alphas: Any
    max_iter: int
    tol: float
    cv: Any
    verbose: Any
    n_jobs: int | None
    random_state: Any
    selection: str
    positive: bool = False

    alpha_: float
    l1_ratio_: float
    alphas_: Array
    mse_path_: Array
    fold_coef_: Array
    fold_intercept_: Array
    folds_: Any

    @abstractmethod
    def _model(self) -> Any:
        """An unfitted estimator with the chosen penalty, and this one's other parameters."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose the penalty, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or, for several tasks, (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
            For the fits, and for the error of each fold; the folds themselves count equally.
        **params
            For the splitter, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        ratios = self._ratios()
        rows, Y, s = kept_rows(X, y, sample_weight)
        grids = self._grids(rows, Y, s, ratios)
        split = {}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            split = dict(routed.splitter.split)
        folds = [(np.asarray(a), np.asarray(b)) for a, b in check_cv(self.cv).split(X, y, **split)]
        paths = self._paths(X, y, sample_weight, folds, ratios, grids)
        errors = np.array([path.errors for path in paths])  # (ratios x folds, alphas)
        errors = errors.reshape(len(ratios), len(folds), -1)
        self.mse_path_ = np.squeeze(np.moveaxis(errors, 2, 1))
        averages = errors.mean(axis=1)
        best = np.unravel_index(int(np.argmin(_finite(averages))), averages.shape)
        self.alpha_, self.l1_ratio_ = grids[best[0]][best[1]], ratios[best[0]]
        whole = isinstance(self.alphas, Integral) and len(ratios) > 1
        self.alphas_ = np.asarray(grids) if whole else np.asarray(grids[0])
        chosen = paths[best[0] * len(folds) : (best[0] + 1) * len(folds)]
        self.fold_coef_ = np.array([path.coef(int(best[1])) for path in chosen])
        self.fold_intercept_ = np.array([path.intercepts[best[1]] for path in chosen])
        if not self._multitask:
            self.fold_coef_ = self.fold_coef_[:, 0]
            self.fold_intercept_ = self.fold_intercept_[:, 0]
        self.folds_ = pack_folds(folds, len(y))
        self._warn_of_unfinished(sum(path.unfinished for path in paths), errors.size)
        model = self._model().set_params(certify=False).fit(X, y, sample_weight)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.dual_gap_, self.n_iter_ = model.dual_gap_, model.n_iter_
        if "l1_ratio" not in self.get_params(deep=False):
            del self.l1_ratio_
        return self._seal(
            X, y, sample_weight, "the paths of all folds, and the fit to all rows, ended"
        )

    def _ratios(self) -> list[float]:
        ratios = np.atleast_1d(self.get_params(deep=False).get("l1_ratio", 1.0))
        if len(ratios) == 0 or not ((ratios >= 0) & (ratios <= 1)).all():
            raise ValueError(f"l1_ratio must hold numbers in [0, 1], got {ratios.tolist()!r}.")
        return list(ratios)

    def _grids(self, X: Any, Y: Array, s: Array, ratios: list[float]) -> list[Array]:
        """The alphas, largest first, for each l1_ratio."""
        if not isinstance(self.alphas, Integral):
            for index, alpha in enumerate(self.alphas):
                check_scalar(alpha, f"alphas[{index}]", Real, min_val=0.0)
            grid = np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1]
            if len(grid) == 0 or not np.isfinite(grid).all():
                raise ValueError(f"alphas must hold finite numbers, got {self.alphas!r}.")
            return [grid] * len(ratios)
        if 0 in ratios:
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid "
                "by providing your estimator with the appropriate `alphas=` argument."
            )
        design, s = as_design(X), s / s.sum()
        weighted = s[:, None] * (Y - (s @ Y if self.fit_intercept else 0.0))
        slopes = design.tdot(weighted)
        if self.fit_intercept:
            slopes = slopes - np.outer(design.mean(s), weighted.sum(axis=0))
        reach = slopes[:, 0] if self.positive else np.sqrt((slopes**2).sum(axis=1))
        largest = max(0.0, float(reach.max(initial=0.0)))
        tiny = float(np.finfo(np.float64).resolution)
        return [
            np.geomspace(largest / r, largest / r * self.eps, num=int(self.alphas))
            if largest / r > tiny
            else np.full(int(self.alphas), tiny)
            for r in ratios
        ]

    def _paths(
        self,
        X: Any,
        y: Array,
        sample_weight: Array | None,
        folds: list[Any],
        ratios: list[float],
        grids: list[Array],
    ) -> list[FoldPath]:
        X = X.tocsr() if sp.issparse(X) else X
        Y = y.reshape(len(y), -1)
        seed = None
        if self.selection == "random":
            order = random_order("random", self.random_state)
            assert order is not None
            seed = int(order.integers(2**31))
        options = Options(self.fit_intercept, self.positive, self.tol, self.max_iter, seed)
        moments = path_moments(X, Y, sample_weight, folds, fit_intercept=self.fit_intercept)
        jobs = (
            delayed(fold_path)(X, Y, sample_weight, fold, part, grid, float(ratio), options)
            for ratio, grid in zip(ratios, grids, strict=True)
            for fold, part in zip(folds, moments, strict=True)
        )
        done: list[FoldPath] = Parallel(
            n_jobs=self.n_jobs, verbose=int(self.verbose), prefer="threads"
        )(jobs)
        return done

    def _warn_of_unfinished(self, unfinished: int, total: int) -> None:
        if unfinished:
            warnings.warn(
                "Objective did not converge. You might want to increase the number of iterations (max_iter), "
                f"raise tol, or scale the features. {unfinished} of the {total} fits to the folds ended with "
                f"a duality gap above tol={self.tol:g} times the objective at 0.",
                CertificateWarning,
                stacklevel=4,
            )

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = super()._validate_training_data(X, y, sample_weight, reset=reset)
        if self._multitask and y.ndim == 1:
            name = type(self).__name__.removeprefix("MultiTask")
            raise ValueError(f"For mono-task outputs, use {name}")
        if not self._multitask and y.ndim > 1:
            if y.shape[1] > 1:
                raise ValueError(f"For multi-task outputs, use MultiTask{type(self).__name__}")
            y = column_or_1d(y, warn=True)
        return X, y, sample_weight

    # ------------------------------------------------------------------ the claims

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_folds(self.folds_, X.shape[0])
        ratios, folds = self._ratios(), len(unpack_folds(self.folds_))
        rows, Y, s = kept_rows(X, y, sample_weight)
        grids = self._grids(rows, Y, s, ratios)
        whole = isinstance(self.alphas, Integral) and len(ratios) > 1
        grid = np.asarray(grids) if whole else np.asarray(grids[0])
        yield from wrong_values("alphas_", self.alphas_, grid, rtol=1e-6)
        table = (len(ratios), len(grids[0]), folds)
        tasks = (Y.shape[1],) if self._multitask else ()
        yield from wrong_shapes(
            self,
            mse_path_=tuple(k for k in table if k != 1),
            fold_coef_=(folds, *tasks, X.shape[1]),
            fold_intercept_=(folds, *tasks),
            alpha_=(),
            dual_gap_=(),
        )
        yield from wrong_counts(self, n_iter_=())
        if "l1_ratio" in self.get_params(deep=False) and self.l1_ratio_ not in ratios:
            yield f"l1_ratio_ is {self.l1_ratio_!r}, which is not in l1_ratio={self.l1_ratio!r}"
        if not self.fit_intercept and np.any(self.fold_intercept_ != 0):
            yield "fold_intercept_ is not 0, but fit_intercept=False"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        model = self._model()
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        claims: list[Claim] = model._certify(X, y, sample_weight, full=full, tol=tol)
        return claims + choice_claims(self, X, y, sample_weight, full=full, tol=tol)

    # ------------------------------------------------------------------ scikit-learn

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata given to ``fit`` reach the splitter."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=check_cv(self.cv),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = not self._multitask
        tags.target_tags.multi_output = self._multitask
        return tags

    def _common(self, kind: type) -> dict[str, Any]:
        """This one's parameters that a model of that kind has too."""
        own, known = self.get_params(deep=False), kind._get_param_names()  # type: ignore[attr-defined]
        common = {name: value for name, value in own.items() if name in known}
        if isinstance(common.get("precompute"), str):
            common["precompute"] = False
        return {**common, "alpha": self.alpha_}


def _finite(errors: Array) -> Array:
    return np.where(np.isnan(errors), np.inf, errors)
