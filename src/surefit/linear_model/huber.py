r"""Huber's robust regression with the scale estimated jointly, certified by its own duality gap.

    min_{w, b, sigma}  sum_i s_i (sigma + sigma H((y_i - x_i'w - b) / sigma)) + alpha ||w||^2

with H(u) = u^2 for |u| <= epsilon and 2 epsilon |u| - epsilon^2 beyond (LOS-4, twice). Rows further than
epsilon sigma from the fit pull with a bounded force. The problem is convex in all its variables together,
and scaling y scales its solution: epsilon needs no adjusting. Where 1 - 1/epsilon^2 of the rows can be
fitted exactly, the best sigma is 0 and the fit is that of least absolute deviations; ``scale_`` is then
as small as rounding lets it be.

Certificate:

* *duality gap* (OPTIMAL), at most ``tol`` times the objective at w = 0, from a dual of its own: see
  :mod:`surefit.linear_model._huber_dual`. With a penalty it also bounds the distance of the coefficients to
  the optimal ones.

References
----------
Huber & Ronchetti, Robust Statistics (2009), section 7.7; Owen, "A robust hybrid of lasso and ridge
regression" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from .._attributes import storage_eps
from .._namespace import to_numpy
from .._ranks import held_here
from ..base import SPREAD, Certified
from ..certificate import Claim
from ..design import as_design
from ..duality import gap_claim
from ..iterate import Fit, Iterate, run
from ..solvers.huber import HuberPoint, huber
from ._attribute_checks import wrong_counts, wrong_outliers, wrong_shapes
from ._huber_dual import huber_gap, huber_null, least_scale
from .base import LinearRegressor, check_scale, largest_term
from .least_squares import kept_rows

__all__ = ["HuberRegressor"]

_SMALL = 1 << 21  # entries of X up to which the fit goes on to rounding
_RESERVE = 2e-2  # share of the tolerance that the solver's own estimate must reach


class HuberRegressor(LinearRegressor):
    """Huber regression, a drop-in for :class:`sklearn.linear_model.HuberRegressor`.

    Parameters
    ----------
    epsilon : float, default=1.35
        How many scales from the fit a row becomes an outlier; at least 1, where the fit is that of least
        absolute deviations.
    max_iter : int, default=100
        Most Newton steps.
    alpha : float, default=0.0001
        Weight of the penalty ``alpha * ||w||^2``; 0 for none.
    warm_start : bool, default=False
        Start from the previous solution.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    tol : float, default=1e-05
        The duality gap is claimed to be at most ``tol`` times the objective at w = 0.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    scale_ : float
        The sigma of the objective.
    n_iter_ : int
        Newton steps used.
    outliers_ : bool array of shape (n_samples,)
        The rows further than ``epsilon * scale_`` from the fit.
    dual_witness_ : array of shape (n_samples,) or None
        Where the scale is 0, a dual point: the residuals do not show it then.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import HuberRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [1.0, 3.0, 5.0, 7.0, 90.0]
    >>> model = HuberRegressor().fit(X, y)
    >>> model.coef_.round(6).tolist(), round(float(model.intercept_), 6), model.outliers_.tolist()
    ([2.0], 1.0, [False, False, False, False, True])
    >>> model.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        max_iter: int = 100,
        alpha: float = 0.0001,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-05,
        certify: bool | str = True,
    ) -> None:
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HuberRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rows, Y, s = kept_rows(X, y, sample_weight)
        fit = self._solve(rows, Y[:, 0], s)
        point: HuberPoint = fit.x
        coef, intercept = point.w[:, None], np.array([point.b])
        self._store(coef, intercept, y, X)
        self.scale_ = float(point.scale)
        self.n_iter_ = fit.n_iter
        self.outliers_ = held_here(self._outliers(X, y, point, least_scale(Y[:, 0], s)))
        self.dual_witness_ = self._witness(point.theta, sample_weight, len(y))
        return self._seal(X, y, sample_weight, fit.stop.value)

    def _solve(self, X: Any, y: Any, s: Any) -> Fit:
        design, epsilon, alpha = as_design(X), float(self.epsilon), float(self.alpha)
        floor = least_scale(y, s)
        start = None
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == design.shape[1]:
            coef = to_numpy(self.coef_).astype(np.float64)
            start = HuberPoint(coef, float(self.intercept_), max(self.scale_, floor))
        if self.max_iter == 0:
            nothing = HuberPoint(np.zeros(design.shape[1]), 0.0, 1.0) if start is None else start
            return run(iter([Iterate(nothing, cost=0)]), max_iter=1)
        steps = huber(
            design, y, s, epsilon, alpha, start, fit_intercept=self.fit_intercept, floor=floor
        )
        tol = 0.0
        n, p = design.shape
        if start is not None or (n * p > _SMALL and n > 20 * p):
            few = slice(None, None, 1 + n // 20_000)
            null = huber_null(y[few], s[few], epsilon, fit_intercept=self.fit_intercept)
            tol = _RESERVE * self.tol * null * float(s.sum()) / float(s[few].sum())
        return run(steps, tol=tol, max_iter=self.max_iter, name=type(self).__name__)

    def _outliers(self, X: Any, y: Any, point: HuberPoint, floor: float) -> Any:
        """Beyond epsilon scales; a residual within the rounding of its terms is no outlier.

        These are y, x'w and b, and the mean of y, which b was computed with.
        """
        z = as_design(X).dot(point.w)
        e = abs(y - z - point.b)
        limit = self.epsilon * point.scale
        if point.scale <= 1e-12 * float(abs(y).max()):
            terms = abs(y) + abs(z) + abs(point.b)
            limit = limit + 16.0 * np.finfo(np.float64).eps * terms + 4.0 * floor
        return e > limit

    def _witness(self, theta: Any, sample_weight: Any, n: int) -> Any:
        """The solver's dual point, with zeros on the rows of weight 0."""
        if theta is None:
            return None
        out = np.zeros(n)
        theta = to_numpy(held_here(theta))
        out[slice(None) if len(theta) == n else to_numpy(sample_weight) > 0] = theta
        return out

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=reset, y_numeric=True)
        check_scale(X, y)
        return X, y, sample_weight

    def _accepts(self) -> frozenset[str]:
        return SPREAD

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_counts(self, n_iter_=())
        yield from wrong_shapes(self, scale_=())
        if not self.scale_ > 0.0:
            yield f"scale_ is {self.scale_!r}, expected a positive number"
        coef, offset, s = to_numpy(self.coef_), float(self.intercept_), sample_weight
        z, design = as_design(X).dot(coef.astype(np.float64)), as_design(X)
        floor = least_scale(y, design.ones() if s is None else s)
        terms = abs(y) + abs(z) + abs(offset)
        slack = 64.0 * storage_eps(coef.dtype) * (terms + largest_term(design, coef)) + 4.0 * floor
        limit = 0.0 * z + self.epsilon * self.scale_
        yield from wrong_outliers(self, abs(y - z - offset), limit, slack)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        design = as_design(X)
        s = design.ones() if sample_weight is None else sample_weight
        epsilon, alpha = float(self.epsilon), float(self.alpha)
        null = huber_null(y, s, epsilon, fit_intercept=self.fit_intercept)
        gap = huber_gap(
            design, y, to_numpy(self.coef_), float(self.intercept_), float(self.scale_),
            epsilon=epsilon, alpha=alpha, weights=s, fit_intercept=self.fit_intercept,
            witness=getattr(self, "dual_witness_", None), bound=tol * null,
        )  # fmt: skip
        return [gap_claim(gap, tol, null, "LOS-4", curvature=2.0 * alpha)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
