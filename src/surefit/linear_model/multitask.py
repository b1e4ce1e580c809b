r"""Multi-task Lasso and elastic net: several targets that share their features, certified by the duality gap.

    min_{W, b}  1/(2 sum_i s_i) sum_i s_i ||y_i - W'x_i - b||^2
                + alpha (rho sum_j ||W_j|| + (1 - rho)/2 ||W||^2)

W_j holds the coefficients of feature j for all targets: the penalty keeps a feature for all of them or for
none. rho is ``l1_ratio``; the Lasso has rho = 1.

Certificate: the duality gap (OPTIMAL), from the data and the coefficients alone
(:mod:`surefit.linear_model._multitask_gap`).

References
----------
Yuan & Lin, "Model selection and estimation in regression with grouped variables" (2006); Obozinski, Taskar &
Jordan, "Joint covariate selection" (2010).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context

from ..certificate import Claim
from ..design import as_design
from ..duality import gap_claim
from ..solvers.coordinate import ElasticNetData
from ..solvers.direct import ridge
from ._attribute_checks import wrong_counts, wrong_shapes
from ._multitask_gap import multi_task_gap
from .base import LinearRegressor, explained_errors
from .coordinate_descent import ElasticNet
from .least_squares import certified_data, in_units, kept_rows, normal_equations_claim
from .paths import enet_path, lasso_path, random_order, solve

__all__ = ["MultiTaskElasticNet", "MultiTaskLasso", "task_data"]

Array = NDArray[np.float64]
_DENSE_ENTRIES = 1 << 27  # a sparse matrix with fewer entries than this (1 GiB) may be made dense


class MultiTaskElasticNet(LinearRegressor):
    """Elastic net for several targets that share features, a drop-in for scikit-learn's.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    l1_ratio : float, default=0.5
        Share of the penalty on the norms ||W_j||.
    fit_intercept : bool, default=True
        Whether to fit unpenalised intercepts.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    max_iter : int, default=1000
        Most sweeps over the features.
    tol : float, default=1e-4
        The fit ends when its duality gap is at most ``tol`` times the objective at W = 0.
    warm_start : bool, default=False
        Start from the previous solution.
    random_state : int, RandomState or None, default=None
        For ``selection="random"``.
    selection : {"cyclic", "random"}, default="cyclic"
        Order in which the features are visited.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_targets, n_features)
    intercept_ : array of shape (n_targets,)
    dual_gap_ : float
        The solver's own gap at the end; the certificate computes its own.
    eps_ : float
        ``tol`` times the squared norm of the centred targets.
    n_iter_ : int
        Sweeps used; a factorisation counts as one.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1).fit([[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1], [2, 2]])
    >>> model.coef_.round(3).tolist(), model.certificate_.ok
    ([[0.457, 0.456], [0.457, 0.456]], True)
    """

    _overflow: ClassVar[str] = ElasticNet._overflow
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: rule
        for name, rule in ElasticNet._parameter_constraints.items()
        if name not in ("precompute", "positive")
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultiTaskElasticNet:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
            Only the proportions matter.
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rows, Y, s = kept_rows(X, y, sample_weight)
        s = s / s.sum()
        spread = Y - (s @ Y if self.fit_intercept else 0.0)
        self.eps_ = self.tol * len(Y) * float(np.sum(s @ spread**2))
        if self.alpha * self.l1_ratio == 0.0:  # nothing holds the targets together
            penalty = np.full(Y.shape[1], self.alpha * (1.0 - self.l1_ratio))
            coef, intercept, *_ = ridge(
                as_design(rows), Y, s, penalty, fit_intercept=self.fit_intercept
            )
            self.dual_gap_, self.n_iter_, stopped = 0.0, 1, "the factorisation finished"
        else:
            data, mean, y_mean = task_data(rows, Y, s, fit_intercept=self.fit_intercept)
            W = self._start(Y.shape[1], X.shape[1])
            with explained_errors(rows, alpha=self.alpha):
                fit = solve(
                    data, self.alpha, self.l1_ratio, W if data.y.ndim == 2 else W[0],
                    positive=False, rng=random_order(self.selection, self.random_state),
                    tol=self.tol, max_iter=self.max_iter,
                )  # fmt: skip
            self.dual_gap_, self.n_iter_, stopped = fit.observed, fit.n_iter, fit.stop.value
            coef, intercept = W.T, y_mean - W @ mean
        self._store(coef, intercept, y, X)
        self.intercept_ = np.broadcast_to(self.intercept_, (Y.shape[1],)).astype(self.coef_.dtype)
        return self._seal(X, y, sample_weight, stopped)

    def _start(self, n_targets: int, n_features: int) -> Array:
        previous = getattr(self, "coef_", None)
        if self.warm_start and previous is not None and previous.shape == (n_targets, n_features):
            return np.array(previous, dtype=np.float64)
        return np.zeros((n_targets, n_features))

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse matrix."""
        return sp.csr_matrix(self.coef_)

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """The whole regularisation path: :func:`enet_path`."""
        return enet_path(X, y, **options)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = super()._validate_training_data(X, y, sample_weight, reset=reset)
        if y.ndim == 1:
            name = type(self).__name__.removeprefix("MultiTask")
            raise ValueError(
                f"For mono-task outputs, use {name}; y has one dimension, (n_samples, n_targets) is needed."
            )
        return X, y, sample_weight

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_counts(self, n_iter_=())
        yield from wrong_shapes(self, dual_gap_=(), eps_=())

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        coef, intercept = self._solution()
        design, Y, weights = certified_data(X, y, sample_weight)
        if self.alpha == 0:
            free = self.fit_intercept
            return [normal_equations_claim(design, Y, weights, coef, intercept, free, tol=tol)]
        s = weights / weights.sum()
        Y, coef, intercept, unit = in_units(Y, coef, intercept)
        l1, l2 = self.alpha * self.l1_ratio, self.alpha * (1.0 - self.l1_ratio)
        l1 = min(float(np.ldexp(l1, -unit)), 1e300)
        gap = multi_task_gap(
            design, Y, s, coef, intercept, l1, l2, fit_intercept=self.fit_intercept
        )
        spread = Y - (s @ Y if self.fit_intercept else 0.0)
        null = 0.5 * float(np.sum(s @ spread**2))
        gap = replace(gap, exponent=2 * unit)
        return [gap_claim(gap, tol, null, "REG-14", curvature=l2)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


class MultiTaskLasso(MultiTaskElasticNet):
    """Lasso for several targets that share features, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`MultiTaskElasticNet`, without ``l1_ratio``.

    Examples
    --------
    >>> from surefit.linear_model import MultiTaskLasso
    >>> model = MultiTaskLasso(alpha=0.1).fit([[0, 1], [1, 2], [2, 4]], [[0, 0], [1, 1], [2, 3]])
    >>> model.coef_.round(2).tolist(), model.certificate_.ok
    ([[0.0, 0.61], [0.0, 0.95]], True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: rule
        for name, rule in MultiTaskElasticNet._parameter_constraints.items()
        if name != "l1_ratio"
    }
    l1_ratio = 1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """The whole regularisation path: :func:`lasso_path`."""
        return lasso_path(X, y, **options)


def task_data(
    X: Any, Y: Array, s: Array, *, fit_intercept: bool
) -> tuple[ElasticNetData, Array, Array]:
    """The data for block coordinate descent, which knows no intercept, and the means taken out.

    One target is the ordinary problem, and prepared as such.
    """
    if Y.shape[1] == 1:
        data = ElasticNetData.prepare(X, Y[:, 0], s, fit_intercept=fit_intercept)
        return data, data.mean, np.atleast_1d(data.y_mean)
    mean, y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    if fit_intercept:
        mean, y_mean = as_design(X).mean(s), s @ Y / s.sum()
        if sp.issparse(X):
            if X.shape[0] * X.shape[1] > _DENSE_ENTRIES:
                raise ValueError(
                    f"X, a sparse matrix of shape {X.shape}, is too large to be centred. Pass "
                    "fit_intercept=False, or fit the targets one at a time with Lasso or ElasticNet."
                )
            X = X.toarray()
        X = np.asarray(X, dtype=np.float64) - mean
    return ElasticNetData.prepare(X, Y - y_mean, s, fit_intercept=False), mean, y_mean
