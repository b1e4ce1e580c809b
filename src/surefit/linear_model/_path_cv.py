"""What the Lasso and elastic net with built-in cross-validation share: the folds, the choice, the claims.

The estimators are in :mod:`surefit.linear_model.path_cv`.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

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

from ..base import Certified
from ..certificate import CertificateWarning, Claim, Kind
from ..design import as_design
from ..solvers.coordinate import ElasticNetData
from ..solvers.fold_moments import Fold, FoldMoments, fold_moments
from ..solvers.ridge_path import fold_paths
from ._selection import (
    later_claim,
    pack_folds,
    rescored_claim,
    selection_claim,
    unpack_folds,
    worst_claim,
)
from .base import LinearRegressor
from .coordinate_descent import ElasticNet
from .least_squares import kept_rows
from .multitask import task_data
from .paths import random_order, solve_path

__all__ = ["PathCV"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_GRAM_COLUMNS = 1000  # most columns for which a fold is reduced to its products


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
    ) -> list[_Path]:
        X = X.tocsr() if sp.issparse(X) else X
        Y = y.reshape(len(y), -1)
        seed = None
        if self.selection == "random":
            order = random_order("random", self.random_state)
            assert order is not None
            seed = int(order.integers(2**31))
        options = _Options(self.fit_intercept, self.positive, self.tol, self.max_iter, seed)
        moments = self._moments(X, Y, sample_weight, folds)
        jobs = (
            delayed(_fold_path)(X, Y, sample_weight, fold, part, grid, float(ratio), options)
            for ratio, grid in zip(ratios, grids, strict=True)
            for fold, part in zip(folds, moments, strict=True)
        )
        done: list[_Path] = Parallel(
            n_jobs=self.n_jobs, verbose=int(self.verbose), prefer="threads"
        )(jobs)
        return done

    def _moments(
        self, X: Any, Y: Array, sample_weight: Array | None, folds: list[Any]
    ) -> list[FoldMoments | None]:
        """With many rows to a column, the products that all that follows is made of."""
        n, p = X.shape
        if p > _GRAM_COLUMNS or min(len(train) for train, _ in folds) < 4 * p:
            return [None] * len(folds)
        s = np.ones(n) if sample_weight is None else sample_weight
        return list(fold_moments(X, Y, s, folds, fit_intercept=self.fit_intercept))

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

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        model = self._model()
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        claims: list[Claim] = model._certify(X, y, sample_weight, full=full)
        ratios, folds = self._ratios(), unpack_folds(self.folds_)
        grids = np.broadcast_to(self.alphas_, (len(ratios), np.shape(self.alphas_)[-1]))
        errors = self.mse_path_.reshape(*grids.shape, len(folds))
        averages = errors.mean(axis=2)
        here = grids == self.alpha_
        if hasattr(self, "l1_ratio_"):
            here = here & (np.asarray(ratios) == self.l1_ratio_)[:, None]
        chosen = float(averages[here].min()) if here.any() else math.nan
        claims.append(
            selection_claim(f"alpha_ = {self.alpha_:.4g}", -chosen, -averages, kind="error")
        )
        if not full:
            return [*claims, later_claim("fold models", Kind.OPTIMAL), later_claim()]
        n, p = X.shape
        known = self.folds_ if isinstance(self.folds_, np.ndarray) else None
        most = max(int(max(a.max(initial=0), b.max(initial=0))) for a, b in folds)
        fits = most < n if known is None else len(known) == n
        if not fits or self.fold_coef_.shape[0] != len(folds) or self.fold_coef_.shape[-1] != p:
            why = f"the recorded folds, or their models, are not of data of the shape {X.shape}"
            return [*claims, Claim.undecided("scores", why, Kind.EXACT, "GEN-7")]
        recorded = errors[tuple(np.argwhere(here)[int(np.argmin(averages[here]))])] if here.any() \
            else np.full(len(folds), math.nan)  # fmt: skip
        return claims + self._fold_claims(X, y, sample_weight, folds, recorded)

    def _fold_claims(
        self, X: Any, y: Array, sample_weight: Array | None, folds: list[Any], recorded: Array
    ) -> list[Claim]:
        """The fold models are optimal where they were fitted, and err as recorded where they were not."""
        X = X.tocsr() if sp.issparse(X) else X
        optimal, errors, floors = [], [], []
        for k, (train, test) in enumerate(folds):
            model = self._model()
            model.coef_, model.intercept_ = self.fold_coef_[k], self.fold_intercept_[k]
            s = None if sample_weight is None else sample_weight[train]
            optimal.append(model._certify(X[train], y[train], s, full=False)[0])
            coef = np.atleast_2d(self.fold_coef_[k])[:, :, None]
            weights = None if sample_weight is None else sample_weight[test]
            offsets = np.atleast_1d(self.fold_intercept_[k])[:, None]
            Y = y[test].reshape(len(test), -1)
            errors.append(float(_mean_squares(X[test], Y, weights, coef, offsets)[0]))
            size = float(np.max(np.abs(Y), initial=0.0)) + math.sqrt(abs(errors[-1]))
            floors.append(64.0 * _EPS * math.sqrt(X.shape[1]) * size * (size + 1e-300))
        return [
            worst_claim("fold models", "on its training rows", optimal),
            rescored_claim(
                recorded, np.array(errors), np.array(floors),
                f"the errors of the chosen alpha in {len(folds)} folds",
            ),
        ]  # fmt: skip

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


# ------------------------------------------------------------------------ one fold


class _Options(NamedTuple):
    fit_intercept: bool
    positive: bool
    tol: float
    max_iter: int
    seed: int | None


class _Path(NamedTuple):
    """Errors on the test rows (n_alphas,), coefficients (n_alphas, T p), intercepts (n_alphas, T)."""

    errors: Array
    coefs: Any  # csr_array: most are 0
    intercepts: Array
    unfinished: int

    def coef(self, k: int) -> Array:
        """Those of one alpha, (T, p)."""
        return np.asarray(self.coefs[[k]].toarray().reshape(self.intercepts.shape[1], -1))


def _fold_path(
    X: Any,
    Y: Array,
    sample_weight: Array | None,
    fold: Fold,
    moments: FoldMoments | None,
    alphas: Array,
    ratio: float,
    options: _Options,
) -> _Path:
    """The path on the training rows of a fold, and its errors on the test rows."""
    train, test = fold
    s = np.ones(len(train)) if sample_weight is None else sample_weight[train]
    if not s.any():
        raise ValueError("a fold has no training rows of positive weight: use other folds.")
    found = None
    if moments is not None and ratio > 0.0:
        found = _descend_on_products(moments, Y[train], s, alphas, ratio, options)
    if found is None:
        rows, targets, s = kept_rows(X[train], Y[train], s)
        found = _descend(rows, targets, s / s.sum(), alphas, ratio, options)
    sparse, intercepts, unfinished = found
    weights = None if sample_weight is None else sample_weight[test]
    used = np.unique(sparse.indices % X.shape[1])
    columns = X[test][:, used]
    compact = np.stack(
        [sparse[:, used + t * X.shape[1]].toarray() for t in range(Y.shape[1])], axis=1
    )
    errors = _mean_squares(columns, Y[test], weights, np.moveaxis(compact, 0, 2), intercepts.T)
    return _Path(errors, sparse, intercepts, unfinished)


def _descend(
    X: Any, Y: Array, s: Array, alphas: Array, ratio: float, options: _Options
) -> tuple[Any, Array, int]:
    """Coefficients (n_alphas, T p), intercepts, and how many fits did not finish."""
    if ratio == 0.0 and not options.positive:  # no corners: ridge regression
        everything = [(np.arange(len(s)), np.arange(0))]
        [(coefs, intercepts)] = fold_paths(
            X, Y, s, everything, alphas, fit_intercept=options.fit_intercept
        )
        return sp.csr_array(np.moveaxis(coefs, 1, 2).reshape(len(alphas), -1)), intercepts, 0
    data, mean, y_mean = task_data(X, Y, s, fit_intercept=options.fit_intercept)
    null = 0.5 * float(np.sum(s @ (Y - y_mean) ** 2))
    coefs, unfinished = _along(data, Y.shape[1], alphas, ratio, options, null)
    return coefs, _intercepts(coefs, mean, y_mean), unfinished


def _descend_on_products(
    moments: FoldMoments, Y: Array, s: Array, alphas: Array, ratio: float, options: _Options
) -> tuple[Any, Array, int] | None:
    """The same for a problem with as many rows as columns, which has the same products.

    With G = V diag(lam) V' for the Gram matrix, the rows sqrt(lam_k) v_k' and the targets v_k'r / sqrt(lam_k)
    have the squared error of the training rows, but for a constant. None where the rounding of G, which
    changes the objective at w by at most noise/2 ||w||^2 + right_noise ||w||, could be seen.
    """
    lam, V = np.linalg.eigh(moments.gram / moments.mass)
    kept = lam > max(moments.noise / moments.mass, 0.0)
    root = np.sqrt(lam[kept])[:, None]
    targets = (V[:, kept].T @ (moments.right / moments.mass)) / root
    null = 0.5 * float(np.sum((s / s.sum()) @ (Y - moments.y_mean) ** 2))
    if not kept.any() or null == 0.0:
        return None
    data = ElasticNetData.prepare(
        root * V[:, kept].T, targets[:, 0] if Y.shape[1] == 1 else targets, np.ones(len(root)),
        fit_intercept=False,
    )  # fmt: skip
    # beyond tol: it costs little, and the gap on the rows themselves is the larger one
    tight = options._replace(tol=min(options.tol, max(1e-4 * options.tol, 1e-12)))
    coefs, unfinished = _along(data, Y.shape[1], alphas, ratio, tight, null)
    largest = math.sqrt(float(coefs.multiply(coefs).sum(axis=1).max()))
    seen = (0.5 * moments.noise * largest + moments.right_noise) * largest / moments.mass
    if not seen <= 0.1 * options.tol * null:
        return None
    return coefs, _intercepts(coefs, moments.mean, moments.y_mean), unfinished


def _along(
    data: ElasticNetData,
    targets: int,
    alphas: Array,
    ratio: float,
    options: _Options,
    null: float,
) -> tuple[Any, int]:
    """Coordinate descent along the path, each alpha starting from the last; ``null`` is what tol is of."""
    rng = None if options.seed is None else np.random.default_rng(options.seed)
    p, own = len(data.norm2), 0.5 * float(np.sum(data.s @ (data.y - data.y_mean) ** 2))
    tol = options.tol * null / own if own > 0.0 else options.tol
    w = np.zeros(p if data.y.ndim == 1 else (targets, p))
    index, values, ends, unfinished = [], [], [0], 0
    fits = solve_path(
        data, alphas, ratio, w, positive=options.positive, rng=rng, tol=tol,
        max_iter=options.max_iter,
    )  # fmt: skip
    for fit in fits:
        unfinished += int(not fit.observed <= max(options.tol, 1e-14) * null)
        flat = w.reshape(-1)
        index.append(np.flatnonzero(flat))
        values.append(flat[index[-1]])
        ends.append(ends[-1] + len(index[-1]))
    parts = (np.concatenate(values), np.concatenate(index), np.array(ends))
    return sp.csr_array(parts, shape=(len(alphas), targets * p)), unfinished


def _intercepts(coefs: Any, mean: Array, y_mean: Array) -> Array:
    """(n_alphas, T)."""
    p = len(mean)
    parts = [coefs[:, t * p : (t + 1) * p] @ mean for t in range(len(y_mean))]
    return y_mean - np.stack(parts, axis=1)


def _mean_squares(X: Any, Y: Array, weights: Array | None, coef: Array, offsets: Array) -> Array:
    """Mean squared errors (n_alphas,) of coefficients (T, p, n_alphas) and offsets (T, n_alphas)."""
    design = as_design(X)
    total = np.zeros(coef.shape[2])
    for t in range(coef.shape[0]):
        residual = Y[:, [t]] - (design.dot(np.ascontiguousarray(coef[t])) + offsets[t])
        total += np.average(residual**2, axis=0, weights=weights)
    return total / coef.shape[0]


def _finite(errors: Array) -> Array:
    return np.where(np.isnan(errors), np.inf, errors)
