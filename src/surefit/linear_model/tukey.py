r"""Tukey's bisquare regression: gross outliers have no influence at all.

    min_{w, b}  sum_i 2 s_i rho(y_i - x_i'w - b) + alpha ||w||^2

with rho(e) = (c^2 / 6) (1 - (1 - e^2 / c^2)^3) up to |e| = c = delta scale and constant beyond (LOS-5);
as delta grows, this becomes ridge regression. The objective is not convex, so the start matters: it is
the fit to the better half of the rows (:mod:`surefit.solvers.robust_start`), which four in ten wrong
rows, leverage points included, do not spoil. The scale is the median absolute residual over 0.6745,
estimated anew after each step until it settles (R's ``rlm``, statsmodels' ``RLM``), and kept from then
on; with it fixed the objective never rises.

Certificate, without an optimality claim, which nobody can make cheaply:

* *gradient* (STATIONARY): the gradient of the objective at ``scale_`` is zero to ``tol``;
* *start* (BOUND): the objective is not above that of the start, which is recorded in ``start_``; where the
  median of y is better than this start, that says too little;
* *scale* (EXACT): ``scale_`` is the normalised median absolute residual, to three digits.

References
----------
Beaton & Tukey, "The fitting of power series, meaning polynomials, illustrated on band-spectroscopic
data", Technometrics 16 (1974); Yohai, "High breakdown-point and high efficiency robust estimates for
regression", Annals of Statistics 15 (1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._attributes import storage_eps
from .._namespace import like, to_numpy
from .._optimality import gradient_claim, outcome_claim
from .._worst import largest, largest_ratio
from ..base import ANYWHERE, Certified
from ..certificate import Claim, Kind
from ..design import Design, as_design
from ..iterate import run
from ..losses import Absolute, Tukey
from ..offsets import best_offset
from ..solvers.robust_start import robust_start
from ..solvers.tukey import TukeyPoint, median_deviation, tukey
from ._attribute_checks import wrong_counts, wrong_outliers, wrong_shapes, wrong_values
from ._huber_dual import least_scale
from .base import LinearRegressor, check_scale, explained_errors, largest_term
from .least_squares import kept_rows

__all__ = ["TukeyRegressor"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_NORMAL = 0.6744897501960817  # median of |e| for standard normal e
_SMALL = 1 << 21  # entries of X up to which the fit goes on to rounding
_COLUMNS = 5000  # of the matrix that a step needs


class TukeyRegressor(LinearRegressor):
    """Robust regression with Tukey's bisquare loss.

    Parameters
    ----------
    delta : float, default=4.685
        How many scales from the fit a row stops to count; the default is 95 % as efficient as least
        squares on normal errors.
    max_iter : int, default=100
        Most steps.
    alpha : float, default=0.0
        Weight of the penalty ``alpha * ||w||^2``, as in :class:`Ridge`.
    warm_start : bool, default=False
        Start from the previous solution in place of the robust start.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    tol : float, default=1e-6
        The gradient is claimed to be at most this, relative to that of residuals as large as the scale.
    scale : "mad" or float, default="mad"
        The scale of the errors: estimated by the median absolute residual, or given.
    random_state : int, RandomState instance or None, default=0
        For the random subsets among which the robust start is looked for.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    scale_ : float
        The scale that the residuals were compared with.
    n_iter_ : int
        Steps used.
    outliers_ : bool array of shape (n_samples,)
        The rows beyond ``delta * scale_``, which have no influence.
    start_ : array of shape (n_features + 1,)
        Coefficients and intercept that the fit began with.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import TukeyRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1.1, 3.0, 4.9, 7.0, 9.1, 90.0]
    >>> model = TukeyRegressor().fit(X, y)
    >>> model.coef_.round(2).tolist(), model.outliers_.tolist()
    ([2.0], [False, False, False, False, False, True])
    >>> model.certificate_["gradient"].kind.name
    'STATIONARY'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "delta": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "scale": [StrOptions({"mad"}), Interval(Real, 0.0, None, closed="neither")],
        "random_state": ["random_state"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        *,
        delta: float = 4.685,
        max_iter: int = 100,
        alpha: float = 0.0,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        scale: str | float = "mad",
        random_state: Any = 0,
        certify: bool | str = True,
    ) -> None:
        self.delta = delta
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TukeyRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rows, Y, s = kept_rows(X, y, sample_weight)
        design, target = as_design(rows), Y[:, 0]
        if design.shape[1] > _COLUMNS:
            raise ValueError(
                f"X has {design.shape[1]} columns, and TukeyRegressor solves with a square matrix of that "
                f"size, at most {_COLUMNS}. Use HuberRegressor, or fewer features."
            )
        start = self._start(design, target, s)
        floor = least_scale(target, s)
        scale = None if isinstance(self.scale, str) else float(self.scale)
        r = target - design.dot(start[:-1]) - float(start[-1])
        sigma = max(median_deviation(r, s), floor) if scale is None else scale
        small = math.prod(design.shape) <= _SMALL
        settle = None if scale is not None else 1e-9 if small else 1e-4
        steps = tukey(
            design, target, s, float(self.delta), float(self.alpha),
            TukeyPoint(start[:-1], float(start[-1]), sigma),
            fit_intercept=self.fit_intercept, floor=floor, settle=settle,
        )  # fmt: skip
        tol = 0.0 if small else 0.1 * self.tol
        with explained_errors(rows, alpha=self.alpha):
            fit = run(steps, tol=tol, max_iter=max(self.max_iter, 1), name=type(self).__name__)
        point: TukeyPoint = fit.x
        if self.max_iter == 0:
            point, fit.n_iter = TukeyPoint(start[:-1], float(start[-1]), sigma), 0
        self._store(point.w[:, None], np.array([point.b]), y, X)
        self.scale_, self.start_, self.n_iter_ = float(point.scale), start, fit.n_iter
        e = abs(y - as_design(X).dot(point.w) - point.b)
        self.outliers_ = e > self.delta * self.scale_ + 16.0 * _EPS * abs(y)
        return self._seal(X, y, sample_weight, fit.stop.value)

    def _start(self, design: Design, y: Any, s: Any) -> Array:
        """Coefficients and intercept: the previous ones, or those of the better half of the rows."""
        p = design.shape[1]
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == p:
            return np.append(to_numpy(self.coef_).astype(np.float64), float(self.intercept_))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        index, weights = _sampled(to_numpy(s), max(1500, 10 * p))
        return robust_start(
            _rows_at(design, index), to_numpy(y)[index], weights, np.random.default_rng(seed),
            fit_intercept=self.fit_intercept,
        )  # fmt: skip

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=reset, y_numeric=True)
        check_scale(X, y)
        return X, y, sample_weight

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE

    def _remedy(self) -> str:
        return "Increase max_iter, or scale the features (for instance with StandardScaler)."

    # ------------------------------------------------------------------ the claims

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_counts(self, n_iter_=())
        yield from wrong_shapes(self, scale_=(), start_=(X.shape[1] + 1,))
        if not self.scale_ > 0.0:
            yield f"scale_ is {self.scale_!r}, expected a positive number"
        if not isinstance(self.scale, str):
            yield from wrong_values("scale_", self.scale_, float(self.scale))
        coef, offset, design = to_numpy(self.coef_), float(self.intercept_), as_design(X)
        z = design.dot(coef.astype(np.float64))
        terms = abs(y) + abs(z) + abs(offset)
        slack = 64.0 * storage_eps(coef.dtype) * (terms + largest_term(design, coef))
        limit = 0.0 * z + self.delta * self.scale_
        yield from wrong_outliers(self, abs(y - z - offset), limit, slack)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        design = as_design(X)
        y = design.vector(y)
        s = design.ones() if sample_weight is None else design.vector(sample_weight)
        loss = Tukey(float(self.delta) * float(self.scale_))
        coef = to_numpy(self.coef_)
        w, b = coef.astype(np.float64), float(self.intercept_)
        z = design.dot(w) + b
        claims = [self._gradient_claim(design, y, s, loss, coef, b, z, tol)]
        start = np.asarray(self.start_, dtype=np.float64)
        begin = design.dot(start[:-1]) + float(start[-1])
        value, before = (
            2.0 * float(s @ loss.pointwise(at, y)) + self.alpha * float(v @ v)
            for at, v in ((z, w), (begin, start[:-1]))
        )
        # rounding moves the objective by the slope, at most the Lipschitz constant, times the error
        slack = 64.0 * _EPS * (before + 2.0 * loss.lipschitz * float(s @ (abs(y) + abs(z))))
        slack += _stored(coef, b, z, s) * 2.0 * loss.lipschitz
        middle = best_offset(Absolute(), 0.0 * y, y, s) if self.fit_intercept else 0.0
        constant = 2.0 * float(s @ loss.pointwise(0.0 * y + middle, y))
        claims.append(_start_claim(value, before, slack, constant))
        if self.scale == "mad":
            size = float(s @ (abs(y) + abs(z))) / float(s.sum()) + float(
                np.abs(w) @ design.column_norms(s)
            )
            claims.append(_scale_claim(y - z, s, float(self.scale_), size))
        return claims

    def _gradient_claim(
        self,
        design: Design,
        y: Any,
        s: Any,
        loss: Tukey,
        coef: NDArray[Any],
        b: float,
        z: Any,
        tol: float,
    ) -> Claim:
        """max_j |g_j| / (||x_j|| sqrt(sum s) scale), the intercept's column of ones included.

        An estimated scale that did not settle may exceed that of the residuals; the smaller one counts.
        """
        w = coef.astype(np.float64)
        slopes = s * loss.grad(z, y)
        gradient = np.abs(design.tdot(slopes) + self.alpha * w)
        total, norms, scale = float(s.sum()), design.column_norms(s), float(self.scale_)
        if self.scale == "mad":
            scale = min(scale, max(_largest_scale(y - z, s), least_scale(y, s)))
        sizes = norms * math.sqrt(total) * scale + self.alpha * np.abs(w)
        if self.fit_intercept:
            gradient = np.append(gradient, abs(float(slopes.sum())))
            sizes = np.append(sizes, total * scale)
        eps = storage_eps(coef.dtype)
        spread = math.sqrt(float(s @ (abs(y) + abs(z)) ** 2) + float(norms**2 @ w**2))
        floor = 8.0 * eps * spread / (math.sqrt(total) * scale)
        return gradient_claim(
            largest_ratio(gradient, sizes), tol, "LOS-5",
            scale="its scale",
            holds=": no first-order improvement, and no optimality claim, since the loss is not convex",
            floor=floor,
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def _start_claim(value: float, before: float, slack: float, constant: float) -> Claim:
    """The objective is not above that of the recorded start, which beats the median of y."""
    words = f"that of the recorded start, {before:.6g}"
    holds = f"the objective {value:.6g} is not above {words}"
    if before > constant + slack and value <= before + slack:
        why = f"{holds}; but the median of y has {constant:.6g}"
        return Claim.uninformative("start", why, Kind.BOUND, value, before + slack, "LOS-5")
    return outcome_claim(
        "start", Kind.BOUND, value, before + slack, "LOS-5",
        holds=holds, otherwise=f"the objective {value:.6g} is above {words}",
    )  # fmt: skip


def _stored(coef: NDArray[Any], b: float, z: Any, s: Any) -> float:
    """By how much rounding the coefficients to float32 moves the predictions, summed; 0 for float64."""
    eps = storage_eps(coef.dtype)
    return 0.0 if eps <= _EPS else 8.0 * eps * float(s @ (abs(z) + abs(b)))


def _scale_claim(r: Any, s: Any, scale: float, size: float) -> Claim:
    """Half of the weight has |r| <= 0.6745 scale, to 1e-3; ``size`` is that of the terms of r."""
    e, weights = np.abs(to_numpy(r)), to_numpy(s)
    ends = [_level(e, weights, 0.5 - 1e-12), _level(e, weights, 0.5 + 1e-12)]  # of the medians
    median = _NORMAL * scale
    observed = largest_ratio(largest(ends[0] - median, median - ends[1], 0.0), median)
    floor = 64.0 * _EPS * size / scale
    away = f"the scale {scale:.4g} is {observed:.1e} away from the median |residual| / 0.6745"
    if observed > 1e-3 and floor < 0.1:
        why = f"{away}: it did not settle on it, and is any fixed number"
        return Claim.undecided("scale", why, Kind.EXACT, "LOS-5")
    return outcome_claim(
        "scale", Kind.EXACT, observed, 1e-3, "LOS-5",
        holds=f"the scale {scale:.4g} is the median |residual| / 0.6745 to {observed:.1e}",
        otherwise=away, floor=floor,
    )  # fmt: skip


def _largest_scale(r: Any, s: Any) -> float:
    """The largest median |r| over 0.6745."""
    return _level(np.abs(to_numpy(r)), to_numpy(s), 0.5 + 1e-12) / _NORMAL


def _level(e: Array, weights: Array, share: float) -> float:
    """The least value with this share of the weight at or below it, by bisection; NaN where anything is."""
    if np.isnan(e).any() or np.isnan(weights).any():
        return math.nan
    low, high, wanted = 0.0, float(e.max()), share * float(weights.sum())
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if float(weights @ (e <= middle)) >= wanted else (middle, high)
    return high


def _sampled(s: Array, count: int) -> tuple[NDArray[np.intp], Array]:
    """Rows and their weights: all of them if they are few, else some in proportion to their weight."""
    n = len(s)
    if n <= count:
        return np.flatnonzero(s > 0), s[s > 0]
    below = np.cumsum(s)
    places = (np.arange(count) + 0.5) * (below[-1] / count)
    return np.searchsorted(below, places), np.ones(count)


def _rows_at(design: Design, index: NDArray[np.intp]) -> Array:
    """Some rows as a numpy array, reading X once."""
    out = np.empty((len(index), design.shape[1]))
    for rows, block in design.blocks():
        inside = (index >= rows.start) & (index < rows.stop)
        if inside.any():
            part = block[like(index[inside] - rows.start, block)]
            out[inside] = part.toarray() if hasattr(part, "toarray") else to_numpy(part)
    return out
