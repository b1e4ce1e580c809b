r"""Ordinary least squares, with the three things a residual cannot show said separately.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2

Certificate:

* *normal equations* (EXACT): X'e = 0 for the residual e, to rounding, hence (w, b) is a minimiser (the
  objective is convex; REG-2, REG-3);
* *minimum norm* (EXACT, when the rank is deficient): w = (X - mean)'u for the stated u, so that w has no
  part in the null space, where the residual sees nothing (DAT-10);
* *coefficients* (BOUND, decided by ``verify`` or ``certify="full"``): their relative error is at most the
  condition number times the backward error; beyond 1e-3 the certificate says that the data do not
  determine the coefficients. Rank, smallest singular value and collinear columns are reported, and two
  condition numbers: that of unit columns bounds what rounding does, that of X as it stands what an error
  relative to X as a whole does (REG-4);
* *spectrum* (EXACT, the same): ``rank_`` and ``singular_`` are those of X.

References
----------
Higham, Accuracy and Stability of Numerical Algorithms (2002), chapter 20; Grcar,
Saunders & Su, "Estimates of optimal backward perturbations for linear least squares" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from .._namespace import to_numpy
from .._threads import rows_only
from ..base import SPARSE_FORMATS, SPREAD, Certified
from ..certificate import DEFAULT_TOLERANCE, Claim, Kind
from ..design import RankRows, RowBlocks, as_design
from ..inputs import as_vector
from ..solvers.direct import least_squares
from ._attribute_checks import wrong_counts
from ._least_squares_claims import (
    certified_data,
    in_units,
    kkt_claim,
    minimum_norm_claim,
    normal_equations_claim,
)
from ._spectral_claims import Recorded, spectral_claims
from .base import LinearRegressor, check_scale, check_solution, trusts_scale

__all__ = [
    "LinearRegression",
    "certified_data",
    "columns",
    "in_units",
    "kept_rows",
    "normal_equations_claim",
    "spectral_claims",
]

Array = NDArray[np.float64]


class LinearRegression(LinearRegressor):
    """Ordinary least squares, a drop-in for :class:`sklearn.linear_model.LinearRegression`.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    tol : float, default=1e-6
        Kept for compatibility: the solution is computed to rounding.
    n_jobs : int, default=None
        Kept for compatibility: the linear algebra uses the BLAS threads.
    positive : bool, default=False
        Constrain the coefficients to be non-negative (dense X only).
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    rank_ : int
        Numerical rank of the centred X, its columns scaled to unit length.
    singular_ : array of shape (min(n_samples, n_features),)
        Singular values of the centred, weighted X (not for large sparse X).
    row_witness_ : array or None
        When the rank is deficient, u with coef_ = (X - mean)'u: shows minimum norm.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0]], [6, 8, 9, 11])
    >>> model.coef_.round(6).tolist(), round(float(model.intercept_), 6)
    ([1.0, 2.0], 3.0)
    >>> model.certificate_["normal equations"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "positive": ["boolean"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rows, Y, s = kept_rows(X, y, sample_weight)
        for stale in ("rank_", "singular_", "row_witness_"):
            self.__dict__.pop(stale, None)
        if self.positive:
            coef, intercept = _non_negative(rows, Y, s, self.fit_intercept)
            self._store(coef, intercept, y, X)
            return self._seal(X, y, sample_weight, "the active-set method finished")
        with rows_only(rows):
            solution = least_squares(as_design(rows), Y, s, fit_intercept=self.fit_intercept)
        self._store(solution.coef, solution.intercept, y, X)
        self.rank_ = solution.rank
        if solution.singular is not None:
            self.singular_ = solution.singular
        self.row_witness_ = None
        if solution.witness is not None:
            self.row_witness_ = np.zeros((X.shape[0], Y.shape[1]))
            every = rows.shape[0] == X.shape[0]
            kept = slice(None) if every else to_numpy(sample_weight) > 0
            self.row_witness_[kept] = solution.witness
        del rows, Y, s, solution  # the certificate makes its own
        with rows_only(X):
            return self._seal(X, y, sample_weight, "the factorisation finished")

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        formats = False if self.positive else SPARSE_FORMATS
        X, y, sample_weight = self._validate(
            X,
            y,
            sample_weight,
            reset=reset,
            y_numeric=True,
            multi_output=True,
            accept_sparse=formats,
            ensure_all_finite=not trusts_scale(X),
        )
        check_scale(X, y, estimator=type(self).__name__)
        return X, y, sample_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.positive
        return tags

    def _remedy(self) -> str:
        return "Scale the features (for instance with StandardScaler) or use Ridge."

    def _own_tolerance(self) -> float:
        return DEFAULT_TOLERANCE  # ``tol`` is without effect

    def _accepts(self) -> frozenset[str]:
        return Certified._accepts(self) if self.positive else SPREAD

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        if not self.positive:
            yield from wrong_counts(self, rank_=())
            if not 0 <= self.rank_ <= min(X.shape):
                yield f"rank_ is {self.rank_}, X has the shape {X.shape}"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        coef, intercept = self._solution()
        design, Y, s = certified_data(X, y, sample_weight)
        free = self.fit_intercept
        if self.positive:
            return [kkt_claim(design, Y, s, coef, intercept, free, tol=tol)]
        claims = [normal_equations_claim(design, Y, s, coef, intercept, free, tol=tol)]
        witness = getattr(self, "row_witness_", None)
        if witness is not None or self.rank_ < design.shape[1]:
            claims.append(minimum_norm_claim(design, s, coef, witness, free, tol=tol))
        if full:
            recorded = Recorded(self.rank_, getattr(self, "singular_", None))
            claims += spectral_claims(design, Y, s, coef, intercept, free, recorded)
        else:
            why = "needs the spectrum of X: surefit.verify or certify='full' decides it"
            claims.append(Claim.undecided("coefficients", why, Kind.BOUND, "REG-4"))
        return claims


def kept_rows(X: Any, y: Array, sample_weight: Array | None) -> tuple[Any, Array, Array]:
    """Rows of positive weight, the targets as (n, T), and the weights; rows on disk are all kept."""
    Y = y.reshape(len(y), -1)
    if sample_weight is None:
        return X, Y, as_vector(np.ones(len(Y)), X)
    kept = sample_weight > 0
    if kept.all() or isinstance(X, RowBlocks):
        return X, Y, sample_weight
    if isinstance(X, RankRows):
        return X.keep(kept, Y, sample_weight)  # type: ignore[arg-type]
    return (X.tocsr() if hasattr(X, "tocsr") else X)[kept], Y[kept], sample_weight[kept]


def columns(Y: Any) -> list[Any]:
    """The targets one by one."""
    return [Y[:, k] for k in range(Y.shape[1])]


def _non_negative(X: Any, Y: Array, s: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """Lawson-Hanson on the centred, weighted data."""
    A = np.asarray(X, dtype=np.float64)
    mean = s @ A / s.sum() if fit_intercept else np.zeros(A.shape[1])
    y_mean = s @ Y / s.sum() if fit_intercept else np.zeros(Y.shape[1])
    root = np.sqrt(s)[:, None]
    A, B = (A - mean) * root, (Y - y_mean) * root
    check_solution(A, B)
    coef = np.column_stack([scipy.optimize.nnls(A, b)[0] for b in B.T])
    return coef, y_mean - mean @ coef
