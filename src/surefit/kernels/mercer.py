r"""Mercer's test: a matrix is a Gram matrix exactly when it is symmetric positive semi-definite (KER-3).

A kernel is a function all of whose Gram matrices are. One matrix with a negative eigenvalue lambda shows that
a function is none: along the eigenvector v, v'Kv = lambda < 0, though it should be a squared length.

Rounding: entries right to a few eps change K by at most some eps ||K||_F in norm, and the eigenvalues
computed are those of a matrix that close; an eigenvalue above -(8 + sqrt(n)) eps ||K||_F is 0 to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import to_numpy
from ..certificate import ROUNDING_LIMIT, Certificate, Claim, Kind

__all__ = ["indefinite_remedy", "psd_claim", "psd_floor"]

Array = NDArray[np.float64]
_EXACT = 1500  # rows up to which the least eigenvalue itself is computed
_LARGEST = 20_000


def psd_claim(K: Any, *, source: str = "KER-3") -> Claim:
    """The claim that K is symmetric positive semi-definite.

    Up to 1,500 rows its least eigenvalue is computed. Beyond, a Cholesky factor of K plus the rounding floor
    shows that none is below it, and the eigenvalue is looked for where there is no such factor.

    Examples
    --------
    >>> from surefit.kernels import psd_claim
    >>> claim = psd_claim([[1.0, 2.0], [2.0, 1.0]])
    >>> claim.status.name, round(claim.observed, 12)
    ('FAILS', 1.0)
    >>> print(claim.statement)
    the least eigenvalue of the kernel matrix is -1, so it is not a Gram matrix: along v = (0.707, -0.707),
    v'Kv = -1
    """
    name = "positive semi-definite"
    K = K.toarray() if sp.issparse(K) else to_numpy(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix, got shape {tuple(K.shape)}.")
    n, eps = len(K), storage_eps(K.dtype)
    K = np.asarray(K, dtype=np.float64)
    if not np.isfinite(K).all():
        raise ValueError("K contains NaN or infinity: no kernel has such values.")
    if n > _LARGEST:
        why = f"the kernel matrix has {n} rows; beyond {_LARGEST} its eigenvalues are not computed"
        return Claim.undecided(name, why, Kind.EXACT, source)
    size = float(np.linalg.norm(K))
    skew, at = _asymmetry(K)
    if skew > 8.0 * eps * max(size / math.sqrt(max(1, n)), float(np.abs(K).max(initial=0.0))):
        i, j = at
        statement = (
            f"the kernel matrix is not symmetric: entries ({i}, {j}) and ({j}, {i}) are {K[i, j]:.6g} and "
            f"{K[j, i]:.6g}"
        )
        return Claim.check(name, statement, Kind.EXACT, skew, 0.0, source)
    floor = psd_floor(size, n, eps)
    S = 0.5 * (K + K.T)
    if n > _EXACT and _has_factor(S, floor):
        statement = f"no eigenvalue of the kernel matrix is below {-2.0 * floor:.1e}"
        return Claim.check(name, statement, Kind.EXACT, 0.0, 0.0, source)
    least, v = _least(S)
    statement = f"the least eigenvalue of the kernel matrix is {least:.6g}"
    if least < -floor:
        statement += f", so it is not a Gram matrix: along v = {_short(v)}, v'Kv = {v @ S @ v:.6g}"
    return Claim.check(
        name, statement, Kind.EXACT, 0.0 if least >= 0.0 else -least, 0.0, source,
        floor=floor, largest_floor=ROUNDING_LIMIT * size,
    )  # fmt: skip


def indefinite_remedy(certificate: Certificate) -> str:
    """What to do about a kernel that was shown not to be one; nothing where none was."""
    for claim in certificate.failed:
        if claim.name.endswith("positive semi-definite"):
            return (
                f"No fit helps here: the kernel matrix has an eigenvalue of {-claim.observed:.3g} (or is not "
                "symmetric), so it is not a kernel. Use another kernel, or shift the spectrum: add "
                f"{claim.observed:.3g} to the diagonal of a precomputed matrix."
            )
    return ""


def psd_floor(size: float, n: int, eps: float) -> float:
    """How far below 0 rounding can put an eigenvalue of a matrix of Frobenius norm ``size``."""
    return (8.0 + math.sqrt(n)) * eps * size


def _asymmetry(K: Array) -> tuple[float, tuple[int, int]]:
    """The largest |K_ij - K_ji| and where, a stretch of rows at a time."""
    worst, at = 0.0, (0, 0)
    for first in range(0, len(K), 256):
        apart = np.abs(K[first : first + 256] - K[:, first : first + 256].T)
        if apart.size and apart.max() > worst:
            i, j = np.unravel_index(int(apart.argmax()), apart.shape)
            worst, at = float(apart.max()), (first + int(i), int(j))
    return worst, at


def _has_factor(S: Array, floor: float) -> bool:
    raised = S.copy()
    raised.flat[:: len(S) + 1] += floor
    try:
        scipy.linalg.cholesky(raised, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


def _least(S: Array) -> tuple[float, Array]:
    """The least eigenvalue and its vector, the largest entry of which is positive."""
    if not len(S):
        return 0.0, np.zeros(0)
    values, vectors = scipy.linalg.eigh(S, subset_by_index=[0, 0])
    v = vectors[:, 0]
    return float(values[0]), v * (
        1.0 if v[np.argmax(np.abs(v) - 1e-9 * np.arange(len(v)))] > 0 else -1.0
    )


def _short(v: Array) -> str:
    """A vector in words: whole when short, else its largest entries."""
    if len(v) <= 6:
        return "(" + ", ".join(f"{x:.3g}" for x in v) + ")"
    largest = np.argsort(-np.abs(v))[:4]
    return "(" + ", ".join(f"{v[i]:.3g} at row {i}" for i in sorted(largest)) + ", ...)"
