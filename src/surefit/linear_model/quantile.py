r"""Quantile regression, certified by a dual point of its linear programme.

    min_{w, b}  1/(sum_i s_i) sum_i s_i rho_q(y_i - x_i'w - b) + alpha ||w||_1

rho_q(e) = max(q e, (q - 1) e) is the pinball loss: its best constant is the q-quantile of y, and the fit is
the q-quantile of y given x, if that is linear in x. The median, q = 1/2, is the model of least absolute
errors (half of LOS-3) and the maximum-likelihood fit under Laplace noise (REG-9); moving a target that lies
far away does not move it.

An unpenalised fit passes through as many rows as it has coefficients. At most a share q of the rows lies
below it and at most 1 - q above it.

Certificate:

* *duality gap* (OPTIMAL), at most 1e-10 of the objective at w = 0. The residuals of a piecewise linear loss
  do not show a dual point (a row on the fit may pull with any force in [q - 1, q]), so the fit hands one
  over, ``dual_coef_``. It is not trusted: the certificate moves it into the box, balances it and brings it to
  |X'(s theta)| <= alpha, so that a wrong one can only weaken the claim.

References
----------
Koenker & Bassett, "Regression quantiles", Econometrica 46 (1978); Koenker, Quantile Regression (2005).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import OptimizeWarning
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .._namespace import to_numpy
from ..base import ANYWHERE, Certified
from ..certificate import Claim
from ..design import as_design
from ..duality import duality_gap, gap_claim, null_value
from ..losses import Quantile
from ..penalties import L1, NoPenalty
from ..solvers.quantile import quantile_regression
from ._attribute_checks import wrong_counts
from .base import LinearRegressor, check_scale
from .least_squares import kept_rows

__all__ = ["QuantileRegressor"]

_SOLVERS = {"highs-ds", "highs-ipm", "highs", "interior-point", "revised simplex"}
_TOL = 1e-10  # scikit-learn's class has no tol: the fit is a vertex, exact to rounding
_MAX_ITER = 100_000
# scipy's options of these solvers; those about the inside of a solver have nothing to act on here
_IDLE = {
    "autoscale", "bland", "cholesky", "disp", "dual_feasibility_tolerance", "ip", "ipm_optimality_tolerance",
    "lstsq", "maxupdate", "mast", "permc_spec", "pc", "phase_one_tol", "pivot", "presolve",
    "primal_feasibility_tolerance", "rr", "rr_method", "simplex_dual_edge_weight_strategy", "sparse",
    "sym_pos", "time_limit", "tol", "unknown_options", "alpha0", "beta", "_sparse_presolve",
}  # fmt: skip


class QuantileRegressor(LinearRegressor):
    """Linear quantile regression, a drop-in for :class:`sklearn.linear_model.QuantileRegressor`.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile to predict, strictly between 0 and 1.
    alpha : float, default=1.0
        Weight of the l1 penalty; 0 for none.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    solver : str, default="highs"
        scikit-learn's names are accepted; all of them are served by an interior-point method that ends with
        simplex pivots at an exact vertex.
    solver_options : dict, default=None
        scipy's names are accepted; ``"maxiter"`` bounds the steps, the others have nothing to act on.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Interior-point steps and pivots.
    dual_coef_ : array of shape (n_samples,)
        The dual point theta: -quantile for a row above the fit, 1 - quantile for one below, in between for a
        row on it.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import QuantileRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [1.0, 3.0, 5.0, 7.0, 90.0]
    >>> model = QuantileRegressor(quantile=0.5, alpha=0.0).fit(X, y)
    >>> model.coef_.tolist(), float(model.intercept_)
    ([2.0], 1.0)
    >>> model.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(_SOLVERS)],
        "solver_options": [dict, None],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "highs",
        solver_options: dict[str, Any] | None = None,
        certify: bool | str = True,
    ) -> None:
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuantileRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Only the proportions matter.
        """
        max_iter = self._max_iter()
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rows, Y, s = kept_rows(X, y, sample_weight)
        solution = quantile_regression(
            as_design(rows), Y[:, 0], s, float(self.quantile), float(self.alpha),
            fit_intercept=self.fit_intercept, max_iter=max_iter,
        )  # fmt: skip
        self._store(solution.coef[:, None], np.array([solution.intercept]), y, X)
        self.n_iter_ = solution.n_iter
        self.dual_coef_ = np.zeros(len(y))
        kept = slice(None) if len(solution.theta) == len(y) else to_numpy(sample_weight) > 0
        self.dual_coef_[kept] = solution.theta
        return self._seal(X, y, sample_weight, solution.stop.value)

    def _max_iter(self) -> int:
        options = dict(self.solver_options or {})
        max_iter = options.pop("maxiter", None)
        if unknown := sorted(str(name) for name in options if name not in _IDLE):
            message = (
                f"Unknown solver options: {', '.join(unknown)}; 'maxiter' is the one that acts."
            )
            warnings.warn(message, OptimizeWarning, stacklevel=4)
        if max_iter is None:
            return _MAX_ITER
        if (
            isinstance(max_iter, bool)
            or not isinstance(max_iter, (int, np.integer))
            or max_iter < 1
        ):
            raise ValueError(
                f"solver_options['maxiter'] must be a positive integer, got {max_iter!r}."
            )
        return int(max_iter)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=reset, y_numeric=True)
        check_scale(X, y)
        return X, y, sample_weight

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE

    def _remedy(self) -> str:
        return (
            "You might want to raise solver_options['maxiter'], if it was set, or scale the features "
            "(for instance with StandardScaler)."
        )

    def _own_tolerance(self) -> float:
        return _TOL

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_counts(self, n_iter_=())

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        design, loss = as_design(X), Quantile(float(self.quantile))
        s = design.ones() if sample_weight is None else sample_weight
        s = s / float(s.sum())
        gap = duality_gap(
            design, y, to_numpy(self.coef_), float(self.intercept_), loss,
            L1(float(self.alpha)) if self.alpha > 0 else NoPenalty(),
            weights=s, fit_intercept=self.fit_intercept,
            witness=getattr(self, "dual_coef_", None),
        )  # fmt: skip
        null = null_value(loss, design.vector(y), s, fit_intercept=self.fit_intercept)
        return [gap_claim(gap, tol, null, "LOS-3")]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
