r"""The claims of least squares, from the data and the coefficients alone.

* *normal equations* (EXACT): the gradient X'S(y - Xw - b) - alpha w is zero to rounding;
* *minimum norm* (EXACT): w = (X - mean)'u for the stated u;
* *coefficients* (BOUND): their relative error is at most the condition number times the backward error;
* *optimality conditions* (EXACT): those of non-negative least squares.

They share no code with the solvers. References as in :mod:`surefit.linear_model.least_squares`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import array_namespace, like, to_numpy
from .._threads import over_rows
from ..certificate import Claim, Kind
from ..design import Dense, Design, as_design
from ..inputs import as_vector

__all__ = [
    "certified_data",
    "conditioning_claim",
    "kkt_claim",
    "minimum_norm_claim",
    "normal_equations_claim",
]

Array = NDArray[np.float64]
_DENSE_ENTRIES = (
    1 << 27
)  # up to this many entries a sparse matrix is made dense to get its spectrum
_CONSTANT = (
    4e-16  # a column whose entries vary by no more than this, relatively, is a rounded constant
)


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
    moves it by eps. A column that is constant but for its last bits (0.3 and 0.1 + 0.2) is a rounded
    constant: its gradient is compared with the length of the column itself, not of what is left of it when
    it is centred, which is rounding.
    """
    n, p = design.shape
    w, b = coef.astype(np.float64), intercept.astype(np.float64)
    y_mean = to_numpy(s @ Y) / float(s.sum()) if fit_intercept else np.zeros(Y.shape[1])
    target = Y - like(y_mean, Y)
    correlation, norms, mean = _centred_pass(design, target, s, w, fit_intercept)
    gradient = np.abs(correlation - alpha * w)
    length = np.abs(mean) * math.sqrt(float(s.sum()))
    norms = np.where(norms <= _CONSTANT * length, length, norms)
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
    bound = 4.0 * storage_eps(coef.dtype) * math.sqrt(max(n, p) + 8.0)
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
    are centred before they are multiplied, so that large means cost no digits: at the mean of some, then
    moved to that of all rows.
    """
    center = np.zeros(design.shape[1])
    if fit_intercept and design.centres_first:
        center = design.near_mean()
    if isinstance(design, Dense) and design.X.flags.c_contiguous and Y.shape[1] == 1:
        total, norms2, sums, offset = _sums_by_rows(design.X, Y[:, 0], s, w[:, 0], center)
        return _moved(total[:, None], norms2, sums, offset, center, s, fit_intercept)
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

    found = [np.sum(parts, axis=0) for parts in zip(*design.fold(part), strict=True)]
    both, norms2, offset = design.group.sum(*found)
    total, column_sums = both[:, :-1], both[:, -1]
    if not design.centres_first and fit_intercept:
        mean = column_sums / float(s.sum())
        return total - np.outer(mean, offset), np.sqrt(norms2), mean
    return _moved(total, norms2, column_sums, offset, center, s, fit_intercept)


def _moved(
    total: Array,
    norms2: Array,
    sums: Array,
    offset: Array,
    center: Array,
    s: Any,
    fit_intercept: bool,
) -> tuple[Array, Array, Array]:
    """What :func:`_centred_pass` returns, from sums over rows that were centred near the mean."""
    if not fit_intercept:
        return total, np.sqrt(norms2), np.zeros_like(center)
    mass = float(s.sum())
    shift = sums / mass
    mean = center + shift
    rounding = float(np.finfo(np.float64).eps) * np.abs(mean)  # the size of a constant column
    spread = np.maximum(norms2 - mass * shift**2, mass * rounding**2)
    return total - np.outer(shift, offset), np.sqrt(spread), mean


def _sums_by_rows(
    X: Array, y: Array, s: Array, w: Array, center: Array
) -> tuple[Array, Array, Array, Array]:
    """The sums of :func:`_centred_pass` for one target and an array in row order."""
    from .._jit.normal_equations import residual_sums

    y, s, w = (np.ascontiguousarray(v, dtype=np.float64) for v in (y, s, w))

    def part(first: int, last: int) -> tuple[Array, float]:
        sums = np.zeros((3, X.shape[1]))
        offset = residual_sums(X, y, s, w, center, first, last, sums)
        return sums, offset

    sums, offsets = zip(*over_rows(len(X), part), strict=True)
    total, norms2, plain = np.sum(sums, axis=0)
    return total, norms2, plain, np.array([sum(offsets)])


def _weighted_squares(block: Any, s: Any) -> Any:
    """sum_i s_i x_ij^2 for each column; s_i = 1 without s."""
    if s is None:
        numpy = isinstance(block, np.ndarray)
        return np.einsum("ij,ij->j", block, block) if numpy else (block * block).sum(axis=0)
    return s @ (block * block)


def minimum_norm_claim(
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
    eps = storage_eps(coef.dtype)
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
    eps = storage_eps(coef.dtype)
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


def kkt_claim(
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
    bound = 10.0 * storage_eps(coef.dtype) * math.sqrt(max(design.shape) + 8.0)
    statement = f"non-negative, and the optimality conditions hold to {observed:.1e} of their scale"
    return Claim.check("optimality conditions", statement, Kind.EXACT, observed, bound, "REG-2")
