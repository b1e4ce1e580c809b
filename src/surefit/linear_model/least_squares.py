r"""Ordinary least squares, with the three things a residual cannot show said separately.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2

Certificate:

* *normal equations* (EXACT): X'e = 0 for the residual e, to rounding, hence (w, b) is a minimiser (the
  objective is convex; REG-2, REG-3);
* *minimum norm* (EXACT, when the rank is deficient): w = (X - mean)'u for the stated u, so that w has no
  part in the null space, where the residual sees nothing (DAT-10);
* *coefficients* (BOUND, decided by ``verify`` or ``certify="full"``): their relative error is at most the
  condition number times the backward error; beyond 1e-3 the certificate says that the data do not
  determine the coefficients. Rank, condition, smallest singular value and collinear columns are
  reported (REG-4).

References
----------
Higham, Accuracy and Stability of Numerical Algorithms (2002), chapter 20; Grcar,
Saunders & Su, "Estimates of optimal backward perturbations for linear least squares" (2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from .._namespace import array_namespace, like, to_numpy
from ..base import ANYWHERE, SPARSE_FORMATS, Certified
from ..certificate import Claim, Kind
from ..design import Dense, Design, RowBlocks, as_design
from ..inputs import as_vector
from ..solvers.direct import least_squares
from .base import LinearRegressor, check_scale, check_solution

__all__ = ["LinearRegression", "conditioning_claim", "normal_equations_claim"]

Array = NDArray[np.float64]
_DENSE_ENTRIES = (
    1 << 27
)  # up to this many entries a sparse matrix is made dense to get its spectrum


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
        if self.positive:
            coef, intercept = _non_negative(rows, Y, s, self.fit_intercept)
            self._store(coef, intercept, y, X)
            return self._seal(X, y, sample_weight, "the active-set method finished")
        solution = least_squares(as_design(rows), Y, s, fit_intercept=self.fit_intercept)
        self._store(solution.coef, solution.intercept, y, X)
        self.rank_ = solution.rank
        self.__dict__.pop("singular_", None)
        if solution.singular is not None:
            self.singular_ = solution.singular
        self.row_witness_ = None
        if solution.witness is not None:
            self.row_witness_ = np.zeros((X.shape[0], Y.shape[1]))
            kept = slice(None) if rows is X else to_numpy(sample_weight) > 0
            self.row_witness_[kept] = solution.witness
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
        )
        check_scale(X, y)
        return X, y, sample_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.positive
        return tags

    def _remedy(self) -> str:
        return "Scale the features (for instance with StandardScaler) or use Ridge."

    def _accepts(self) -> frozenset[str]:
        return Certified._accepts(self) if self.positive else ANYWHERE

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        coef, intercept = self._solution()
        design, Y, s = certified_data(X, y, sample_weight)
        if self.positive:
            return [_kkt_claim(design, Y, s, coef, intercept, self.fit_intercept)]
        claims = [normal_equations_claim(design, Y, s, coef, intercept, self.fit_intercept)]
        witness = getattr(self, "row_witness_", None)
        if witness is not None or self.rank_ < design.shape[1]:
            claims.append(_minimum_norm_claim(design, s, coef, witness, self.fit_intercept))
        if full:
            claims.append(conditioning_claim(design, Y, s, coef, intercept, self.fit_intercept))
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
    return (X.tocsr() if hasattr(X, "tocsr") else X)[kept], Y[kept], sample_weight[kept]


def columns(Y: Any) -> list[Any]:
    """The targets one by one."""
    return [Y[:, k] for k in range(Y.shape[1])]


def certified_data(X: Any, y: Array, sample_weight: Array | None) -> tuple[Design, Array, Array]:
    """The data as the claims see them: all rows, weight 1 by default."""
    s = as_vector(np.ones(len(y)), X) if sample_weight is None else sample_weight
    return as_design(X), y.reshape(len(y), -1), s


def normal_equations_claim(
    design: Design,
    Y: Array,
    s: Array,
    coef: Array,
    intercept: Array,
    fit_intercept: bool,
    alpha: Array | float = 0.0,
) -> Claim:
    """The gradient X'S(y - Xw - b) - alpha w is zero, as far as float arithmetic can tell.

    X is centred where there is an intercept, so that large means hide nothing; what is left for the
    intercept is b = mean(y) - mean(x)'w. Observed is the largest entry of the gradient, that of column j
    relative to ||x_j|| (sum_k ||x_k|| |w_k| + ||y||), which does not depend on the scales of the columns
    (with a penalty, where the scales matter, ||X|| replaces ||x_j||). Rounding the coefficients alone
    moves it by eps.
    """
    n, p = design.shape
    w, b = coef.astype(np.float64), intercept.astype(np.float64)
    y_mean = to_numpy(s @ Y) / float(s.sum()) if fit_intercept else np.zeros(Y.shape[1])
    target = Y - like(y_mean, Y)
    correlation, norms, mean = _centred_pass(design, target, s, w, fit_intercept)
    gradient = np.abs(correlation - alpha * w)
    reach = norms @ np.abs(w) + np.sqrt(to_numpy(s @ target**2))
    size = np.where(np.asarray(alpha) > 0, np.linalg.norm(norms), norms[:, None])
    scale = size * reach + alpha * np.abs(w)
    observed = _largest_ratio(gradient, scale)
    if fit_intercept:
        size = (
            np.abs(b)
            + np.abs(mean) @ np.abs(w)
            + np.abs(y_mean)
            + reach / math.sqrt(float(s.sum()))
        )
        observed = max(observed, _largest_ratio(np.abs(y_mean - mean @ w - b), size))
    bound = 4.0 * float(np.finfo(coef.dtype).eps) * math.sqrt(max(n, p) + 8.0)
    statement = f"the gradient is zero to {observed:.1e} of its scale, so this is a minimiser"
    return Claim.check("normal equations", statement, Kind.EXACT, observed, bound, "REG-2")


def _largest_ratio(values: Array, scale: Array) -> float:
    """Where the scale is 0 only 0 is; anything else means that a square underflowed."""
    nothing = np.where(values > 0, np.inf, 0.0)
    return float(np.max(np.divide(values, scale, out=nothing, where=scale > 0)))


def _means(design: Design, Y: Array, s: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """Weighted means of the columns of X and Y; 0 without an intercept."""
    if not fit_intercept:
        return np.zeros(design.shape[1]), np.zeros(Y.shape[1])
    return design.mean(s), to_numpy(s @ Y) / float(s.sum())


def _centred_pass(
    design: Design, Y: Any, s: Any, w: Array, fit_intercept: bool
) -> tuple[Array, Array, Array]:
    """(X - mean)'S R, the norms of the columns and the mean, in one pass; R = Y - (X - mean) w.

    With an intercept R is centred too: what a rounded mean leaves over belongs to the intercept. Dense rows
    are centred before they are multiplied, so that large means cost no digits: at the mean of the first
    block, then moved to that of all rows.
    """
    p, center = design.shape[1], np.zeros(design.shape[1])
    if fit_intercept and design.centres_first:
        center = to_numpy(next(block for _, block in design.blocks()).mean(axis=0))
    unit = bool((s == 1.0).all())

    def part(blocks: Iterator[tuple[slice, Any]]) -> tuple[Array, Array, Array]:
        total: Any = 0.0
        norms2: Any = 0.0
        offset: Any = 0.0
        for rows, block in blocks:
            if design.centres_first:
                block = block - like(center, block) if fit_intercept else block
                norms2 = norms2 + _weighted_squares(block, None if unit else s[rows])
            else:
                norms2 = norms2 + block.multiply(block).T @ s[rows]
            weighted = s[rows, None] * (Y[rows] - block @ like(w, Y))
            total = total + block.T @ array_namespace(Y).concat([weighted, s[rows, None]], axis=1)
            offset = offset + weighted.sum(axis=0)
        return to_numpy(total), to_numpy(norms2), to_numpy(offset)

    both, norms2, offset = (np.sum(parts, axis=0) for parts in zip(*design.fold(part), strict=True))
    total, sums = both[:, :-1], both[:, -1]
    if not fit_intercept:
        return total, np.sqrt(norms2), np.zeros(p)
    mass = float(s.sum())
    shift = sums / mass
    correlation = total - np.outer(shift, offset)
    mean, spread = center + shift, norms2
    if design.centres_first:  # a constant column has the size of its rounding
        rounding = float(np.finfo(np.float64).eps) * np.abs(mean)
        spread = np.maximum(spread - mass * shift**2, mass * rounding**2)
    return correlation, np.sqrt(spread), mean


def _weighted_squares(block: Any, s: Any) -> Any:
    """sum_i s_i x_ij^2 for each column; s_i = 1 without s."""
    if s is None:
        numpy = isinstance(block, np.ndarray)
        return np.einsum("ij,ij->j", block, block) if numpy else (block * block).sum(axis=0)
    return s @ (block * block)


def _minimum_norm_claim(
    design: Design, s: Array, coef: Array, witness: Array | None, fit_intercept: bool
) -> Claim:
    if witness is None:
        why = "the fit left no vector u with coef = X'u: nothing is shown"
        return Claim.undecided("minimum norm", why, Kind.EXACT, "DAT-10")
    if witness.shape != (design.shape[0], coef.shape[1]):
        why = f"the vector u has {len(witness)} rows, these data have {design.shape[0]}"
        return Claim.undecided("minimum norm", why, Kind.EXACT, "DAT-10")
    rebuilt = design.tdot(design.vector(witness))
    if fit_intercept:
        rebuilt = rebuilt - np.outer(design.mean(s), witness.sum(axis=0))
    gap = float(np.linalg.norm(rebuilt - coef))
    size = float(np.linalg.norm(coef))
    observed = gap / size if size > 0 else gap
    reach = math.sqrt(design.sum_squares(s)) * float(np.linalg.norm(witness))
    eps = float(np.finfo(coef.dtype).eps)
    bound = (
        eps * math.sqrt(max(design.shape)) * (100.0 + 10.0 * (reach / size if size > 0 else 0.0))
    )
    if bound > 1e-3:  # X'u cancels: the vector is too long to show anything
        why = f"X'u = coef could be checked to {bound:.1e} only: nothing is shown"
        return Claim.undecided("minimum norm", why, Kind.EXACT, "DAT-10")
    statement = (
        f"the coefficients lie in the row space of X to {observed:.1e}: no minimiser is shorter"
    )
    return Claim.check("minimum norm", statement, Kind.EXACT, observed, bound, "DAT-10")


def conditioning_claim(
    design: Design, Y: Array, s: Array, coef: Array, intercept: Array, fit_intercept: bool
) -> Claim:
    """Condition number times backward error, from the singular values of the matrix itself."""
    n, p = design.shape
    name, source = "coefficients", "REG-4"
    if not isinstance(design, Dense) and n * p > _DENSE_ENTRIES:
        why = f"the matrix, {n} x {p}, is too large for its spectrum"
        return Claim.undecided(name, why, Kind.BOUND, source)
    mean, y_mean = _means(design, Y, s, fit_intercept)
    Y, s = to_numpy(Y), to_numpy(s)
    root = np.sqrt(s)[:, None]
    A = (design.home() - mean) * root
    if fit_intercept:  # a second pass leaves constant columns at zero
        A -= root * (root.T @ A / s.sum())
    norms = np.linalg.norm(A, axis=0)
    constant = norms <= 4e-16 * np.abs(mean) * math.sqrt(float(s.sum()))
    A[:, constant] = 0.0
    scale = np.where(constant, 1.0, norms)
    U, d, _ = scipy.linalg.svd(A / scale, full_matrices=False)
    eps = float(np.finfo(coef.dtype).eps)
    rank = int((d > d[0] * max(n, p) * np.finfo(float).eps).sum()) if d.size else 0
    facts = f"rank {rank} of {p}, smallest singular value {d[-1] if len(d) == p else 0.0:.1e}"
    if rank < p:
        pairs = _collinear_pairs(A / scale, constant)
        why = f"{facts}: the data do not determine the coefficients{pairs}"
        return Claim.undecided(name, why, Kind.BOUND, source)
    cond = float(d[0] / d[-1])
    w = scale[:, None] * coef.astype(np.float64)
    offset = y_mean - mean @ coef.astype(np.float64) - intercept  # 0 but for rounding
    R = root * (Y - y_mean + offset) - A @ coef.astype(np.float64)
    error = 0.0
    for k in range(Y.shape[1]):
        size, r = float(np.linalg.norm(w[:, k])), float(np.linalg.norm(R[:, k]))
        if size == 0.0:
            continue
        damp = np.sqrt((size * d) ** 2 + r**2)
        backward = float(np.linalg.norm(d / damp * (U.T @ R[:, k]))) / float(d[0])
        sensitivity = cond * (1.0 + cond * r / (float(d[0]) * size))
        error = max(error, sensitivity * max(backward, eps))
    statement = (
        f"cond(X) = {cond:.1e} with unit columns ({facts}); relative error at most {error:.1e}"
    )
    if error > 1e-3:
        why = f"{statement}: the data do not determine the coefficients in this precision"
        return Claim.undecided(name, why, Kind.BOUND, source)
    return Claim.check(name, statement, Kind.BOUND, error, 1e-3, source)


def _collinear_pairs(A: Array, constant: NDArray[np.bool_]) -> str:
    parts = []
    if constant.any():
        parts.append(f"constant columns {np.flatnonzero(constant)[:5].tolist()}")
    if A.shape[1] <= 2000:
        correlation = np.triu(np.abs(A.T @ A), k=1)
        pairs = np.argwhere(correlation > 1.0 - 1e-12)[:5]
        if len(pairs):
            parts.append("proportional columns " + ", ".join(f"{i} and {j}" for i, j in pairs))
    return " (" + "; ".join(parts) + ")" if parts else ""


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


def _kkt_claim(
    design: Design, Y: Array, s: Array, coef: Array, intercept: Array, fit_intercept: bool
) -> Claim:
    """Non-negative least squares: w >= 0, gradient >= 0, and zero where w > 0."""
    w = coef.astype(np.float64)
    weighted = s[:, None] * (Y - design.dot(w) - intercept)
    uphill = design.tdot(weighted)  # minus the gradient
    violation = np.where(w > 0, np.abs(uphill), np.maximum(uphill, 0.0))
    norms = design.column_norms(s)[:, None]
    root = np.sqrt(s @ Y**2) + norms.T @ np.abs(w)
    scale = norms * np.maximum(root, np.finfo(float).tiny)
    observed = _largest_ratio(violation, scale)
    observed = max(observed, float(np.maximum(-w, 0.0).max(initial=0.0)))
    if fit_intercept:
        balance = np.abs(weighted.sum(axis=0)) / (np.sqrt(s.sum()) * np.maximum(root, 1e-300))
        observed = max(observed, float(balance.max()))
    bound = 10.0 * float(np.finfo(coef.dtype).eps) * math.sqrt(max(design.shape) + 8.0)
    statement = f"non-negative, and the optimality conditions hold to {observed:.1e} of their scale"
    return Claim.check("optimality conditions", statement, Kind.EXACT, observed, bound, "REG-2")
