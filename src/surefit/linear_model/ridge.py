r"""Ridge regression by linear algebra, certified by its duality gap.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2 + alpha ||w||^2

In the notation of the notes, (1/2N) ||e||^2 + (lambda/2) ||w||^2 has alpha = N lambda. The matrix
to solve with, X'X + alpha I, has eigenvalues s_i^2 + alpha >= alpha, so it is invertible for every
alpha > 0 (REG-12), and the same solution comes from least squares on the data with the rows
sqrt(alpha) e_j, target 0, appended (REG-13).

Certificate: the duality gap (OPTIMAL), which by strong convexity also bounds the distance of the
coefficients to the optimal ones; in full also the gradient (EXACT). With ``alpha=0`` the claims are those of
least squares.

References
----------
Hoerl & Kennard, "Ridge regression" (1970); Hastie, Tibshirani & Friedman, The Elements of Statistical
Learning (2009), section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .._worst import badness
from ..base import ANYWHERE, SPREAD, Certified
from ..certificate import Claim
from ..design import as_design
from ..duality import Gap, duality_gap, gap_claim, null_value
from ..iterate import Fit, least_finished, run
from ..losses import Squared
from ..penalties import L2
from ..solvers.coordinate import ElasticNetData, elastic_net
from ..solvers.direct import ridge
from ._attribute_checks import wrong_counts
from .base import LinearRegressor, explained_errors
from .least_squares import (
    certified_data,
    columns,
    in_units,
    kept_rows,
    normal_equations_claim,
    spectral_claims,
)

__all__ = ["Ridge", "ridge_regression"]

Array = NDArray[np.float64]
_SOLVERS = {"auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"}


class Ridge(LinearRegressor):
    """Ridge regression, a drop-in for :class:`sklearn.linear_model.Ridge`.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Weight of the penalty.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    max_iter : int, default=None
        Kept for compatibility; bounds the sweeps when ``positive=True``.
    tol : float, default=1e-4
        The gap is claimed to be at most ``tol`` times the objective at w = 0; it is computed to rounding.
    solver : str, default="auto"
        scikit-learn's names are accepted; all of them are served by one direct method.
    positive : bool, default=False
        Constrain the coefficients to be non-negative (coordinate descent).
    random_state : default=None
        Kept for compatibility: nothing here is random.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    n_iter_ : array of shape (n_targets,)
        Sweeps used, with ``positive=True``; a factorisation counts as one.
    solver_ : str
        The solver asked for; for "auto", the name that scikit-learn would choose.
    method_ : str
        What served it: "direct" or "coordinate".
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import Ridge
    >>> model = Ridge(alpha=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> round(float(model.coef_[0]), 6)
    0.666667
    >>> model.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(_SOLVERS)],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        alpha: float | Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, moments: Any = None) -> Ridge:
        """The fit; ``moments`` are those of these data, where a search has them already."""
        _check_solver(self.solver, self.positive)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        alpha = self._alphas(y)
        rows, Y, s = kept_rows(X, y, sample_weight)
        self.n_iter_ = np.ones(Y.shape[1], dtype=np.int64)
        self.solver_ = _solver_name(self.solver, self.positive, rows)
        if self.positive:
            self.method_ = "coordinate"
            coef, intercept, fits = self._fit_positive(rows, Y, s, alpha)
            self.n_iter_ = np.array([fit.n_iter for fit in fits], dtype=np.int64)
            stopped = least_finished(fits).stop.value
        else:
            self.method_, stopped = "direct", "the factorisation finished"
            design = as_design(rows)
            with explained_errors(rows, alpha=self.alpha):
                coef, intercept, *_ = ridge(
                    design, Y, s, alpha, fit_intercept=self.fit_intercept, moments=moments
                )
        self._store(coef, intercept, y, X, flat=True)
        del (
            rows,
            Y,
            s,
        )  # the certificate makes its own, and of data on disk they are what takes memory
        return self._seal(X, y, sample_weight, stopped)

    def _alphas(self, y: Array) -> Array:
        targets = 1 if y.ndim == 1 else y.shape[1]
        alpha = np.asarray(self.alpha, dtype=np.float64).ravel()
        if alpha.size not in (1, targets):
            raise ValueError(
                "Number of targets and number of penalties do not correspond: "
                f"{alpha.size} != {targets}. Give one alpha, or one per target."
            )
        if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
            raise ValueError(f"alpha must be non-negative and finite, got {self.alpha!r}.")
        return np.broadcast_to(alpha, (targets,)).copy()

    def _fit_positive(
        self, X: Any, Y: Array, s: Array, alpha: Array
    ) -> tuple[Array, Array, list[Fit]]:
        """Cyclic coordinate descent to rounding, one target at a time."""
        budget = 15_000 if self.max_iter is None else self.max_iter
        coef = np.zeros((X.shape[1], Y.shape[1]), order="F")
        intercept, fits = np.zeros(Y.shape[1]), []
        for k, a in enumerate(alpha):
            data = ElasticNetData.prepare(X, Y[:, k], s, fit_intercept=self.fit_intercept)
            steps = elastic_net(data, 0.0, a, coef[:, k], positive=True, budget=budget)
            null = 0.5 * float(s @ (Y[:, k] - data.y_mean) ** 2)
            fits.append(run(steps, tol=1e-15 * null, max_iter=budget))
            intercept[k] = data.y_mean - float(data.mean @ coef[:, k])
        return coef, intercept, fits

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE if self.positive else SPREAD

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_counts(self, least=1, n_iter_=(1 if y.ndim == 1 else y.shape[1],))
        method = "coordinate" if self.positive else "direct"
        if self.method_ != method:
            yield f"method_ is {self.method_!r}; with positive={self.positive} it is {method!r}"
        names = {self.solver} if self.solver != "auto" else {"lbfgs", "cholesky", "sparse_cg"}
        if self.solver_ not in names:
            yield f"solver_ is {self.solver_!r}, with solver={self.solver!r}"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        coef, intercept = self._solution()
        design, Y, s = certified_data(X, y, sample_weight)
        alpha = self._alphas(y)
        free, claims = self.fit_intercept, []
        if not self.positive and (full or not alpha.all()):
            claims.append(
                normal_equations_claim(design, Y, s, coef, intercept, free, alpha, tol=tol)
            )
        if not alpha.all():
            if full:
                claims += spectral_claims(design, Y, s, coef, intercept, free)
            return claims
        Y, coef, intercept, unit = in_units(Y, coef, intercept)
        gaps = [
            duality_gap(
                design, Y[:, k], coef[:, k], intercept[k], Squared(), L2(a, positive=self.positive),
                weights=s, fit_intercept=free,
            )
            for k, a in enumerate(alpha)
        ]  # fmt: skip
        gaps = [replace(gap, exponent=2 * unit) for gap in gaps]
        nulls = [null_value(Squared(), t, s, fit_intercept=free) for t in columns(Y)]
        return [worst_gap_claim(gaps, nulls, tol, "REG-11", alpha), *claims]


def worst_gap_claim(
    gaps: list[Gap], nulls: list[float], tol: float, source: str, curvature: Array
) -> Claim:
    """One claim for all targets: that of the target with the worst outcome."""
    claims = [
        gap_claim(gap, tol, null, source, curvature=float(bend))
        for gap, null, bend in zip(gaps, nulls, curvature, strict=True)
    ]
    k = max(range(len(claims)), key=lambda k: badness(claims[k]))
    if len(claims) == 1:
        return claims[0]
    words = f"worst of {len(claims)} targets (number {k}): {claims[k].statement}"
    return replace(claims[k], statement=words)


def _check_solver(solver: str, positive: bool) -> None:
    if solver == "lbfgs" and not positive:
        raise ValueError("'lbfgs' solver can be used only when positive=True; use solver='auto'.")
    if positive and solver not in ("auto", "lbfgs"):
        raise ValueError(
            f"solver='{solver}' does not support positive fitting: only 'lbfgs' solver can be used "
            "with positive=True. Set solver to 'auto' or 'lbfgs', or set positive=False."
        )


def _solver_name(solver: str, positive: bool, X: Any) -> str:
    if solver != "auto":
        return solver
    if positive:
        return "lbfgs"
    return "sparse_cg" if sp.issparse(X) else "cholesky"


def ridge_regression(
    X: Any,
    y: Any,
    alpha: Any,
    *,
    sample_weight: Any = None,
    solver: str = "auto",
    max_iter: int | None = None,
    tol: float = 1e-4,
    verbose: int = 0,
    positive: bool = False,
    random_state: Any = None,
    return_n_iter: bool = False,
    return_intercept: bool = False,
    check_input: bool = True,
) -> Any:
    """The coefficients of :class:`Ridge` as a function, with scikit-learn's signature.

    Without ``return_intercept`` no intercept is fitted, as in scikit-learn; it asks for solver "auto" or
    "sag", while :class:`Ridge` fits an intercept with every solver.
    """
    if return_intercept and solver not in ("auto", "sag"):
        raise ValueError(
            "In Ridge, only 'sag' solver can directly fit the intercept. Change solver to 'sag' or "
            f"'auto' (got '{solver}'), set return_intercept=False, or fit surefit.linear_model.Ridge."
        )
    model = Ridge(
        alpha,
        fit_intercept=return_intercept,
        max_iter=max_iter,
        tol=tol,
        solver=solver,
        positive=positive,
        random_state=random_state,
    ).fit(X, y, sample_weight)
    results = [model.coef_]
    results += [model.n_iter_] if return_n_iter else []
    results += [model.intercept_] if return_intercept else []
    return results[0] if len(results) == 1 else tuple(results)
