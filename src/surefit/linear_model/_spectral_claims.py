r"""The claims of least squares that rest on the singular values of X, from the data and the coefficients.

* *coefficients* (BOUND): their relative error is at most the condition number times the backward error;
* *spectrum* (EXACT): the recorded rank and singular values are those of X.

They share no code with the solvers. References as in :mod:`surefit.linear_model.least_squares`; Wedin,
"Perturbation theory for pseudo-inverses" (1973); van der Sluis, "Condition numbers and equilibration of
matrices" (1969).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._attributes import EPS, storage_eps
from .._namespace import to_numpy
from .._optimality import outcome_claim
from .._worst import largest, largest_ratio
from ..certificate import Claim, Kind
from ..design import Dense, Design
from ._least_squares_claims import CONSTANT, in_units

__all__ = ["Recorded", "spectral_claims"]

Array = NDArray[np.float64]
# Up to this many entries a sparse matrix is made dense to get its spectrum.
_DENSE_ENTRIES = 1 << 27


class Recorded(NamedTuple):
    """What a fit recorded about the spectrum of X."""

    rank: Any
    singular: Any


def spectral_claims(
    design: Design,
    Y: Array,
    s: Array,
    coef: Array,
    intercept: Array,
    fit_intercept: bool,
    recorded: Recorded | None = None,
) -> list[Claim]:
    """How well the data determine the coefficients, and whether the recorded spectrum is right."""
    n, p = design.shape
    if not isinstance(design, Dense) and n * p > _DENSE_ENTRIES:
        why = f"the matrix, {n} x {p}, is too large for its spectrum"
        return [Claim.undecided("coefficients", why, Kind.BOUND, "REG-4")]
    spectrum = _Spectrum.of(design, s, fit_intercept)
    claims = [_conditioning_claim(spectrum, design, Y, s, coef, intercept, fit_intercept)]
    if recorded is not None:
        claims.append(_spectrum_claim(spectrum, recorded))
    return claims


class _Spectrum(NamedTuple):
    """The centred, weighted matrix A, its columns' lengths, and its singular values with and without them."""

    A: Array
    constant: NDArray[np.bool_]
    scale: Array  # lengths of the columns; 1 for a constant
    U: Array
    unit: Array  # singular values of the matrix with unit columns
    plain: Array  # those of A itself

    @classmethod
    def of(cls, design: Design, s: Array, fit_intercept: bool) -> _Spectrum:
        mean = design.mean(s) if fit_intercept else np.zeros(design.shape[1])
        s = to_numpy(s)
        root = np.sqrt(s)[:, None]
        A = (design.home() - mean) * root
        if fit_intercept:  # a second pass leaves constant columns at zero
            A -= root * (root.T @ A / s.sum())
        norms = np.linalg.norm(A, axis=0)
        constant = norms <= CONSTANT * np.abs(mean) * math.sqrt(float(s.sum()))
        A[:, constant] = 0.0
        scale = np.where(constant, 1.0, norms)
        U, unit, _ = scipy.linalg.svd(A / scale, full_matrices=False)
        tall = scipy.linalg.qr(A, mode="r")[0][: A.shape[1]] if A.shape[0] > A.shape[1] else A
        return cls(A, constant, scale, U, unit, scipy.linalg.svdvals(tall))

    def ranks(self) -> tuple[int, int]:
        """The least and the largest rank that rounding leaves open."""
        n, p = self.A.shape
        values = self.unit if p <= n else self.plain
        limit = values.max(initial=0.0) * max(n, p) * EPS
        return int((values > 100.0 * limit).sum()), int((values > 0.01 * limit).sum())

    def rank(self) -> int:
        """The number of singular values of the unit columns above rounding."""
        return int((self.unit > self.unit.max(initial=0.0) * max(self.A.shape) * EPS).sum())


def _spectrum_claim(spectrum: _Spectrum, recorded: Recorded) -> Claim:
    """``rank_`` and ``singular_`` are those of X."""
    name, source, shape = "spectrum", "REG-4", spectrum.A.shape
    least, most = spectrum.ranks()
    if not (isinstance(recorded.rank, (int, np.integer)) and least <= recorded.rank <= most):
        statement = f"rank_ is {recorded.rank!r}, the rank of these data is {spectrum.rank()}"
        return Claim.check(name, statement, Kind.EXACT, 1.0, 0.0, source)
    words = f"the recorded rank {recorded.rank}"
    if recorded.singular is None:
        return Claim.check(name, f"{words} is that of X", Kind.EXACT, 0.0, 0.0, source)
    given = np.asarray(to_numpy(recorded.singular), dtype=np.float64)
    values = spectrum.plain[: len(given)] if given.ndim == 1 else given
    if given.ndim != 1 or not 1 <= len(given) <= min(shape) or given.shape != values.shape:
        statement = f"singular_ has the shape {given.shape}, these data have {min(shape)} values"
        return Claim.check(name, statement, Kind.EXACT, 1.0, 0.0, source)
    rest = spectrum.plain[len(given) :]  # of rows without weight: 0
    top = float(spectrum.plain.max(initial=0.0))
    observed = largest_ratio(largest(np.abs(given - values), rest), top)
    bound = 4.0 * math.sqrt(max(shape) * EPS)  # they may come from X'X, which squares them
    statement = f"{words} and singular values are those of X, to {observed:.1e} of the largest"
    otherwise = f"{words}, and singular values that are off by {observed:.1e} of the largest"
    return outcome_claim(
        name, Kind.EXACT, observed, bound, source, holds=statement, otherwise=otherwise
    )


def _conditioning_claim(
    spectrum: _Spectrum,
    design: Design,
    Y: Array,
    s: Array,
    coef: Array,
    intercept: Array,
    fit_intercept: bool,
) -> Claim:
    """Condition number times backward error, from the singular values of the matrix itself.

    Two condition numbers bound two errors. That of the matrix with unit columns (up to a factor sqrt(p), the
    least that scaling of columns can reach) bounds what errors relative to each column do, such as rounding,
    to the coefficients in units of their columns. That of X as it stands bounds what errors relative to X as
    a whole do to the coefficients as they stand: a measurement error of the same size in every entry.
    """
    name, source, p = "coefficients", "REG-4", design.shape[1]
    Y, coef, intercept, _ = in_units(Y, coef, intercept)
    mean, y_mean = _means(design, Y, s, fit_intercept)
    Y, s = to_numpy(Y), to_numpy(s)
    A, scale, d, rank = spectrum.A, spectrum.scale, spectrum.unit, spectrum.rank()
    eps = storage_eps(coef.dtype)
    facts = f"rank {rank} of {p}, smallest singular value {d[-1] if len(d) == p else 0.0:.1e}"
    if rank < p:
        pairs = _collinear_pairs(A / scale, spectrum.constant)
        why = f"{facts}: the data do not determine the coefficients{pairs}"
        return Claim.undecided(name, why, Kind.BOUND, source)
    w = coef.astype(np.float64)
    offset = y_mean - mean @ w - intercept  # 0 but for rounding
    R = np.sqrt(s)[:, None] * (Y - y_mean + offset) - A @ w
    error, amplified = 0.0, 0.0
    for k in range(Y.shape[1]):
        r = float(np.linalg.norm(R[:, k]))
        size = float(np.linalg.norm(scale * w[:, k]))
        if size == 0.0:
            continue
        damp = np.sqrt((size * d) ** 2 + r**2)
        backward = float(np.linalg.norm(d / damp * (spectrum.U.T @ R[:, k]))) / float(d[0])
        error = largest(error, _sensitivity(d, size, r) * largest(backward, eps))
        plain = _sensitivity(spectrum.plain, float(np.linalg.norm(w[:, k])), r)
        amplified = largest(amplified, plain)
    statement = (
        f"the condition number with unit columns is {d[0] / d[-1]:.1e} ({facts}), and relative to the "
        f"lengths of the columns the coefficients have an error of at most {error:.1e}; cond(X) = "
        f"{spectrum.plain[0] / spectrum.plain[-1]:.1e}, and an error of δ‖X‖ in the entries of X moves the "
        f"coefficients by up to {amplified:.1e} δ of their length"
    )
    if error > 1e-3:
        why = f"{statement}: the data do not determine the coefficients in this precision"
        return Claim.undecided(name, why, Kind.BOUND, source)
    return Claim.check(name, statement, Kind.BOUND, error, 1e-3, source)


def _sensitivity(d: Array, size: float, residual: float) -> float:
    """What a relative error of a matrix with these singular values does to a solution, relatively."""
    with np.errstate(divide="ignore"):
        cond = float(d[0] / d[-1])
    return cond * (1.0 + cond * residual / (float(d[0]) * size))


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


def _means(design: Design, Y: Array, s: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """Weighted means of the columns of X and Y; 0 without an intercept."""
    if not fit_intercept:
        return np.zeros(design.shape[1]), np.zeros(Y.shape[1])
    return design.mean(s), to_numpy(s @ Y) / float(s.sum())
