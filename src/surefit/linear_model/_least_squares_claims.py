r"""The claims of least squares, from the data and the coefficients alone.

* *normal equations* (EXACT): the gradient X'S(y - Xw - b) - alpha w is zero to rounding;
* *minimum norm* (EXACT): w = (X - mean)'u for the stated u;
* *optimality conditions* (EXACT): those of non-negative least squares.

They share no code with the solvers; what needs the spectrum of X is in
:mod:`surefit.linear_model._spectral_claims`. References as in :mod:`surefit.linear_model.least_squares`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import EPS, storage_eps
from .._namespace import array_namespace, like, to_numpy
from .._optimality import outcome_claim
from .._threads import over_rows
from .._worst import largest, largest_ratio
from ..certificate import ROUNDING_LIMIT, Claim, Kind
from ..design import Dense, Design, as_design
from ..duality import unit_of
from ..inputs import as_vector

__all__ = [
    "CONSTANT",
    "certified_data",
    "in_units",
    "kkt_claim",
    "minimum_norm_claim",
    "normal_equations_claim",
]

Array = NDArray[np.float64]
# A column whose entries vary by no more than this, relatively, is a rounded constant.
CONSTANT = 4e-16


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
    *,
    tol: float = ROUNDING_LIMIT,
) -> Claim:
    """The gradient X'S(y - Xw - b) - alpha w is zero, as far as float arithmetic can tell.

    X is centred where there is an intercept, so that large means hide nothing; what is left for the
    intercept is b = mean(y) - mean(x)'w. Observed is the largest entry of the gradient, that of column j
    relative to ||x_j|| (sum_k ||x_k|| |w_k| + ||y||), which does not depend on the scales of the columns
    (with a penalty, where the scales matter, ||X|| replaces ||x_j||). Rounding the coefficients alone
    moves it by eps; where they are stored in float32 and that exceeds ``tol``, nothing is decided. A column
    that is constant but for its last bits (0.3 and 0.1 + 0.2) is a rounded constant: its gradient is compared
    with the length of the column itself, not of what is left of it when it is centred, which is rounding.
    """
    n, p = design.shape
    Y, coef, intercept, _ = in_units(Y, coef, intercept)
    w, b = coef.astype(np.float64), intercept.astype(np.float64)
    y_mean = to_numpy(s @ Y) / float(s.sum()) if fit_intercept else np.zeros(Y.shape[1])
    target = Y - like(y_mean, Y)
    correlation, norms, mean = _centred_pass(design, target, s, w, fit_intercept)
    gradient = np.abs(correlation - alpha * w)
    length = np.abs(mean) * math.sqrt(float(s.sum()))
    norms = np.where(norms <= CONSTANT * length, length, norms)
    reach = norms @ np.abs(w) + np.sqrt(to_numpy(s @ target**2))
    size = np.where(np.asarray(alpha) > 0, np.linalg.norm(norms), norms[:, None])
    scale = size * reach + alpha * np.abs(w)
    observed = largest_ratio(gradient, scale)
    if fit_intercept:
        size = (
            np.abs(b)
            + np.abs(mean) @ np.abs(w)
            + np.abs(y_mean)
            + reach / math.sqrt(float(s.sum()))
        )
        observed = largest(observed, largest_ratio(np.abs(y_mean - mean @ w - b), size))
    terms = 4.0 * math.sqrt(max(n, p) + 8.0)
    bound = terms * EPS
    return outcome_claim(
        "normal equations", Kind.EXACT, observed, bound, "REG-2",
        holds=f"the gradient is zero to {observed:.1e} of its scale, so this is a minimiser",
        otherwise=f"relative gradient {observed:.1e}; a minimiser needs at most {bound:.1e}",
        floor=terms * storage_eps(coef.dtype), largest_floor=max(tol, bound),
    )  # fmt: skip


def in_units(Y: Any, coef: Any, intercept: Any) -> tuple[Any, Any, Any, int]:
    """Targets, coefficients and intercepts over a power of two, and its exponent: without effect but that
    squares of very large or small targets are numbers of float64. The exponent is 0 where they are anyhow.
    """
    k = unit_of(Y)
    if k == 0:
        return Y, coef, intercept, 0
    coef, intercept = (_times_power(values, -k) for values in (coef, intercept))
    return like(_times_power(to_numpy(Y), -k), Y), coef, intercept, k


def _times_power(values: Any, k: int) -> Any:
    """values * 2**k, in two steps, since 2**k may overflow where the product does not."""
    half = k // 2
    values = np.asarray(values)
    return np.ldexp(np.ldexp(values, half), k - half)


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
    design: Design,
    s: Array,
    coef: Array,
    witness: Array | None,
    fit_intercept: bool,
    *,
    tol: float = ROUNDING_LIMIT,
) -> Claim:
    """The coefficients are (X - mean)'u for the vector u that the fit left: the shortest minimiser."""
    if witness is None:
        why = "the fit left no vector u with coef = X'u: nothing is shown"
        return Claim.undecided("minimum norm", why, Kind.EXACT, "DAT-10")
    if witness.shape != (design.shape[0], coef.shape[1]):
        why = f"the vector u has {len(witness)} rows, these data have {design.shape[0]}"
        return Claim.undecided("minimum norm", why, Kind.EXACT, "DAT-10")
    coef, witness, _, _ = in_units(coef, np.asarray(to_numpy(witness), dtype=np.float64), 0.0)
    rebuilt = design.tdot(design.vector(witness))
    if fit_intercept:
        rebuilt = rebuilt - np.outer(design.mean(s), witness.sum(axis=0))
    gap = float(np.linalg.norm(rebuilt - coef))
    size = float(np.linalg.norm(coef))
    observed = gap / size if size > 0 else gap
    reach = math.sqrt(design.sum_squares(s)) * float(np.linalg.norm(witness))
    terms = math.sqrt(max(design.shape)) * (100.0 + 10.0 * (reach / size if size > 0 else 0.0))
    bound, floor = EPS * terms, storage_eps(coef.dtype) * terms
    if not floor <= ROUNDING_LIMIT:  # X'u cancels: the vector is too long to show anything
        why = f"X'u = coef could be checked to {floor:.1e} only: nothing is shown"
        return Claim.undecided("minimum norm", why, Kind.EXACT, "DAT-10")
    away = f"the coefficients leave the row space of X by {observed:.1e} of their length"
    return outcome_claim(
        "minimum norm", Kind.EXACT, observed, bound, "DAT-10",
        holds=f"the coefficients lie in the row space of X to {observed:.1e}: no minimiser is shorter",
        otherwise=f"{away}; the shortest minimiser needs at most {bound:.1e}",
        floor=floor, largest_floor=max(tol, bound),
    )  # fmt: skip


def kkt_claim(
    design: Design,
    Y: Array,
    s: Array,
    coef: Array,
    intercept: Array,
    fit_intercept: bool,
    *,
    tol: float = ROUNDING_LIMIT,
) -> Claim:
    """Non-negative least squares: w >= 0, gradient >= 0, and zero where w > 0."""
    name, source = "optimality conditions", "REG-2"
    Y, coef, intercept, _ = in_units(Y, coef, intercept)
    w = coef.astype(np.float64)
    if (w < 0.0).any():
        least = float(w.min())
        statement = f"a coefficient is {least:.3g}; none may be negative"
        return Claim.check(name, statement, Kind.EXACT, -least, 0.0, source)
    weighted = s[:, None] * (Y - design.dot(w) - intercept)
    uphill = design.tdot(weighted)  # minus the gradient
    violation = np.where(w > 0, np.abs(uphill), np.maximum(uphill, 0.0))
    norms = design.column_norms(s)[:, None]
    root = np.sqrt(s @ Y**2) + norms.T @ np.abs(w)
    observed = largest_ratio(violation, norms * root)
    if fit_intercept:
        balance = np.abs(weighted.sum(axis=0))
        observed = largest(observed, largest_ratio(balance, math.sqrt(float(s.sum())) * root))
    terms = 10.0 * math.sqrt(max(design.shape) + 8.0)
    bound = terms * EPS
    asked = f"relative to their scale the optimality conditions are missed by {observed:.1e}"
    return outcome_claim(
        name, Kind.EXACT, observed, bound, source,
        holds=f"non-negative, and the optimality conditions hold to {observed:.1e} of their scale",
        otherwise=f"{asked}; a minimiser needs at most {bound:.1e}",
        floor=terms * storage_eps(coef.dtype), largest_floor=max(tol, bound),
    )  # fmt: skip
