r"""Lasso and elastic net on a working set, certified by their duality gap.

    min_{w, b}  1/(2 sum_i s_i) sum_i s_i (y_i - x_i'w - b)^2 + alpha (rho ||w||_1 + (1 - rho)/2 ||w||^2)

rho is ``l1_ratio``; the Lasso has rho = 1. The corners of the l1-ball give sparsity: w = 0 exactly
when alpha rho >= max_j |x_j'(y - ybar)| / n, and at the optimum |x_j'e| / n <= alpha, with equality
on the support (REG-14). The method is in :mod:`surefit.solvers.coordinate`: exact where few coefficients are
in use, coordinate descent where many are.

Certificate: the duality gap (OPTIMAL), recomputed from the data and the coefficients alone, at most
``tol`` times the objective at w = 0. With ``certify="full"`` (or :func:`surefit.verify`) it also
says how many of the zero coefficients are zero in *every* optimal solution (the Gap Safe sphere
test).

References
----------
Tibshirani (1996); Zou & Hastie (2005); Ndiaye et al., "Gap Safe screening rules" (2017).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .._namespace import to_numpy
from ..base import ANYWHERE, Certified, check_weights
from ..certificate import Claim, Kind
from ..design import Design, as_design
from ..duality import Gap, duality_gap, null_value
from ..iterate import Fit, least_finished
from ..losses import Squared
from ..penalties import ElasticNet as ElasticNetPenalty
from ..penalties import NoPenalty, Penalty
from ..solvers.coordinate import ElasticNetData
from ..solvers.direct import least_squares
from ._attribute_checks import wrong_counts, wrong_shapes
from .base import LinearRegressor, explained_errors
from .least_squares import (
    certified_data,
    columns,
    in_units,
    kept_rows,
    normal_equations_claim,
    spectral_claims,
)
from .paths import check_gram, enet_path, lasso_path, random_order, solve
from .ridge import worst_gap_claim

__all__ = ["ElasticNet", "Lasso", "enet_path", "lasso_path"]

Array = NDArray[np.float64]


class ElasticNet(LinearRegressor):
    """Linear regression with an l1 and an l2 penalty, a drop-in for scikit-learn's.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty. 0 is allowed, and solved as LinearRegression does (unless ``positive``),
        but LinearRegression is the better tool.
    l1_ratio : float, default=0.5
        Share of the l1 penalty.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    precompute : bool or array of shape (n_features, n_features), default=False
        Kept for compatibility; a given Gram matrix is checked against X, not used.
    max_iter : int, default=1000
        Most steps: Newton steps on the coefficients in use, and sweeps where there are many.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    tol : float, default=1e-4
        The fit ends when its duality gap is at most ``tol`` times the objective at w = 0.
    warm_start : bool, default=False
        Start from the previous solution.
    positive : bool, default=False
        Constrain the coefficients to be non-negative.
    random_state : int, RandomState or None, default=None
        For ``selection="random"``.
    selection : {"cyclic", "random"}, default="cyclic"
        Order in which the coordinates are visited, where there are sweeps.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    dual_gap_ : float or array of shape (n_targets,)
        The solver's own gap at the end (0 for ``alpha=0``, where there is nothing to iterate); the
        certificate computes its own.
    n_iter_ : int or list of int
        Steps used; a factorisation counts as one.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import ElasticNet
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(n_features=2, random_state=0)
    >>> model = ElasticNet(random_state=0).fit(X, y)
    >>> model.coef_.round(3).tolist(), model.certificate_.ok
    ([18.838, 64.56], True)
    """

    _overflow: ClassVar[str] = (
        "Coordinate descent iterations resulted in non-finite parameter values: "
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "precompute": ["boolean", "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "copy_X": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "selection": [StrOptions({"cyclic", "random"})],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int | None = 1000,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True
    ) -> ElasticNet:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
            Only the proportions matter.
        check_input : bool, default=True
            ``False`` skips the checks of X and y, which must then be arrays of floats, X (unless there are
            sample weights) in Fortran order.
        """
        if self.alpha == 0:
            warnings.warn(
                "With alpha=0, this algorithm does not converge well. You are advised to use the "
                "LinearRegression estimator",
                stacklevel=2,
            )
        if check_input:
            X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        else:
            X, y, sample_weight = self._unchecked(X, y, sample_weight)
        rows, Y, s = kept_rows(X, y, sample_weight)
        check_gram(self.precompute, rows, s, self.fit_intercept)
        if self._is_least_squares():
            solution = least_squares(as_design(rows), Y, s, fit_intercept=self.fit_intercept)
            coef, intercept = solution.coef, solution.intercept
            sweeps, gaps, stopped = (
                [1] * Y.shape[1],
                [0.0] * Y.shape[1],
                "the factorisation finished",
            )
        else:
            with explained_errors(rows, alpha=self.alpha):
                coef, intercept, fits = self._sweep(rows, Y, s)
            sweeps, gaps = [fit.n_iter for fit in fits], [fit.observed for fit in fits]
            stopped = least_finished(fits).stop.value
        self._store(coef, intercept, y, X, flat=True)
        single = Y.shape[1] == 1
        self.n_iter_ = sweeps[0] if single else sweeps
        self.dual_gap_ = np.array(gaps[0] if single else gaps, dtype=as_design(X).dtype)[()]
        return self._seal(X, y, sample_weight, stopped)

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE

    def _is_least_squares(self) -> bool:
        return self.alpha == 0 and not self.positive

    def _sweep(self, X: Any, Y: Array, s: Array) -> tuple[Array, Array, list[Fit]]:
        """Coordinate descent, one target at a time."""
        rng = random_order(self.selection, self.random_state)
        coef, intercept = self._start(X.shape[1], Y.shape[1]), np.zeros(Y.shape[1])
        fits = []
        for k in range(Y.shape[1]):
            data = ElasticNetData.prepare(X, Y[:, k], s / s.sum(), fit_intercept=self.fit_intercept)
            fits.append(
                solve(data, self.alpha, self.l1_ratio, coef[:, k], positive=self.positive, rng=rng,
                      tol=self.tol, max_iter=self.max_iter)
            )  # fmt: skip
            intercept[k] = data.y_mean - float(data.mean @ coef[:, k])
        return coef, intercept, fits

    def _unchecked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array | None]:
        """``check_input=False``: the caller vouches for the values, and X is not to be copied."""
        if not sp.issparse(X) and sample_weight is None and not X.flags.f_contiguous:
            raise ValueError(
                "check_input=False takes X as it is and needs it in Fortran order: pass "
                "np.asfortranarray(X), or leave check_input=True."
            )
        self.n_features_in_ = X.shape[1]
        return X, np.asarray(y, dtype=np.float64), check_weights(sample_weight, X)

    def _start(self, n_features: int, n_targets: int) -> Array:
        if self.warm_start and hasattr(self, "coef_"):
            start = np.atleast_2d(to_numpy(self.coef_)).T.astype(np.float64)
            if start.shape == (n_features, n_targets):
                return np.asfortranarray(start)
        return np.zeros((n_features, n_targets), order="F")

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse matrix."""
        return sp.csr_matrix(np.atleast_2d(to_numpy(self.coef_)))

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """The whole regularisation path: :func:`enet_path`."""
        return enet_path(X, y, **options)

    def _penalty(self, unit: int = 0) -> Penalty:
        """The penalty of coefficients that are measured in units of ``2**unit``."""
        if self.alpha == 0:
            return NoPenalty(positive=self.positive)
        alpha, ratio = float(self.alpha), float(self.l1_ratio)
        if unit:  # the l1 part is linear in the unit, everything else is quadratic
            l1, l2 = alpha * ratio, alpha * (1.0 - ratio)
            l1 = min(float(np.ldexp(l1, -unit)), 1e300)
            alpha, ratio = l1 + l2, l1 / (l1 + l2)
        return ElasticNetPenalty(alpha, ratio, self.positive)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        targets = 1 if y.ndim == 1 else int(y.shape[1])
        shape = () if targets == 1 else (targets,)
        yield from wrong_counts(self, n_iter_=shape)
        yield from wrong_shapes(self, dual_gap_=shape)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        coef, intercept = self._solution()
        design, Y, weights = certified_data(X, y, sample_weight)
        s = weights / weights.sum()
        if self._is_least_squares():
            return self._least_squares_claims(X, y, sample_weight, full=full, tol=tol)
        Y, coef, intercept, unit = in_units(Y, coef, intercept)
        penalty = self._penalty(unit)
        if isinstance(penalty, NoPenalty):
            why = "without a penalty the dual needs the spectrum of X: use LinearRegression"
            return [Claim.undecided("duality gap", why, Kind.OPTIMAL, "REG-14")]
        gaps = [
            duality_gap(
                design, Y[:, k], coef[:, k], intercept[k], Squared(), penalty,
                weights=s, fit_intercept=self.fit_intercept,
            )
            for k in range(Y.shape[1])
        ]  # fmt: skip
        gaps = [replace(gap, exponent=2 * unit) for gap in gaps]
        nulls = [null_value(Squared(), t, s, fit_intercept=self.fit_intercept) for t in columns(Y)]
        curvature = np.full(len(gaps), penalty.strong_convexity)
        claims = [worst_gap_claim(gaps, nulls, tol, "REG-14", curvature)]
        if full and len(gaps) == 1 and isinstance(penalty, ElasticNetPenalty) and penalty.l1 > 0:
            claims.append(_zeros_claim(design, s, coef[:, 0], gaps[0], penalty, self.fit_intercept))
        return claims

    def _least_squares_claims(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        """Without a penalty: those of :class:`LinearRegression`."""
        coef, intercept = self._solution()
        design, Y, s = certified_data(X, y, sample_weight)
        free = self.fit_intercept
        claims = [normal_equations_claim(design, Y, s, coef, intercept, free, tol=tol)]
        if full:
            claims += spectral_claims(design, Y, s, coef, intercept, free)
        return claims


class Lasso(ElasticNet):
    """Linear regression with an l1 penalty, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`ElasticNet`, without ``l1_ratio``.

    Examples
    --------
    >>> from surefit.linear_model import Lasso
    >>> model = Lasso(alpha=0.1).fit([[0, 0], [1, 1], [2, 2]], [0, 1, 2])
    >>> model.coef_.round(4).tolist(), round(float(model.intercept_), 4)
    ([0.85, 0.0], 0.15)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        key: value for key, value in ElasticNet._parameter_constraints.items() if key != "l1_ratio"
    }
    l1_ratio = 1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """The whole regularisation path: :func:`lasso_path`."""
        return lasso_path(X, y, **options)


def _zeros_claim(
    design: Design, s: Array, coef: Array, gap: Gap, penalty: ElasticNetPenalty, fit_intercept: bool
) -> Claim:
    """Gap Safe: x_j'theta inside the box by more than ||x_j|| sqrt(2 gap) means w_j = 0 at every optimum."""
    center = design.mean(s) if fit_intercept else None
    norms = design.column_norms(s, center)
    corr = -design.tdot(s * gap.theta)
    if center is not None:
        corr = corr + center * float(s @ gap.theta)
    reach = corr if penalty.positive else np.abs(corr)
    radius = math.sqrt(2.0 * max(gap.gap, gap.floor))
    certain = reach + norms * radius < penalty.l1
    wrong = int(np.count_nonzero(coef[certain]))
    zeros = int(np.count_nonzero(coef == 0))
    statement = (
        f"{int(certain.sum()) - wrong} of the {zeros} zero coefficients are zero in every optimal "
        f"solution, and {wrong} non-zero ones should be"
    )
    return Claim.check("zeros", statement, Kind.BOUND, float(wrong), 0.0, "REG-14")
