r"""A start for redescending estimators: a linear fit that gross outliers, leverage points included, do not spoil.

Among many candidate fits the one with the least trimmed squares is taken,

    sum of the h smallest squared residuals,     h = (n + k + 1) / 2,     k coefficients,

which tolerates close to half of the rows being wrong. The candidates come from three sources, none of which
is safe alone:

* least absolute deviations by reweighting, safe against outliers in y;
* fits without the rows that are extreme along a *principal sensitivity component*, the directions in which
  single rows move the fit most: this finds groups of leverage points, in any dimension and without chance;
* exact fits of k random rows: with many of these one is clean, if k is small.

Each is improved by concentration steps (fit the h rows of smallest residual, again and again), which never
increase the trimmed squares.

References
----------
Rousseeuw & Van Driessen, "Computing LTS regression for large data sets", Data Mining and Knowledge Discovery 12
(2006); Pena & Yohai, "A fast procedure for outlier diagnostics in large regression problems", JASA 94 (1999).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["robust_start"]

Array = NDArray[np.float64]
_SUBSETS = 500  # random exact fits,
_SUBSET_COLUMNS = 12  # tried up to this many coefficients: beyond, hardly one would be clean
_COMPONENTS = 15  # sensitivity components
_ROUNDS = 2  # of looking for components again, without the rows that fit worst
_KEPT = 10  # candidates that are concentrated to the end


def robust_start(A: Array, y: Array, rng: np.random.Generator) -> Array:
    """Coefficients of a fit to the better half of the rows.

    Parameters
    ----------
    A : array of shape (n, k)
        Rows, with a column of ones if there is an intercept.
    y : array of shape (n,)
    rng : numpy Generator
        For the random subsets.
    """
    n, k = A.shape
    if n <= k + 1:
        return _fit(A, y)
    scale = np.sqrt(np.einsum("ij,ij->j", A, A))
    scale[scale == 0.0] = 1.0
    A = A / scale
    h = (n + k + 1) // 2
    found = [_least_absolute(A, y), *_without_extremes(A, y)]
    for _ in range(_ROUNDS):  # what hides behind the worst rows shows once these are gone
        best = found[int(np.argmin(_trimmed_squares(A, y, np.array(found), h)))]
        rows = np.argsort(np.abs(y - A @ best), kind="stable")[: max(3 * n // 4, h)]
        found += _without_extremes(A[rows], y[rows])
    if k <= _SUBSET_COLUMNS:
        found += _exact_fits(A, y, rng)
    candidates = np.array(found)
    for steps, kept in ((0, 5 * _KEPT), (2, _KEPT), (30, 1)):
        candidates = np.array([_concentrated(A, y, c, h, steps) for c in candidates])
        order = np.argsort(_trimmed_squares(A, y, candidates, h), kind="stable")
        candidates = candidates[order[:kept]]
    return np.asarray(candidates[0] / scale)


def _fit(A: Array, y: Array) -> Array:
    """Least squares by the normal equations, which a candidate can afford, if these are regular."""
    gram = A.T @ A
    try:
        np.linalg.cholesky(gram - 1e-9 * np.trace(gram) / len(gram) * np.eye(len(gram)))
        return np.asarray(np.linalg.solve(gram, A.T @ y))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, y, rcond=1e-12)[0])


def _trimmed_squares(A: Array, y: Array, candidates: Array, h: int) -> Array:
    """The sum of the h smallest squared residuals of each candidate."""
    squares = (y[:, None] - A @ candidates.T) ** 2
    return np.partition(squares, h - 1, axis=0)[:h].sum(axis=0)


def _concentrated(A: Array, y: Array, c: Array, h: int, steps: int) -> Array:
    """Concentration steps until the h rows no longer change."""
    best: Array = np.zeros(0, dtype=np.intp)
    for _ in range(steps):
        rows = np.sort(np.argpartition(np.abs(y - A @ c), h - 1)[:h])
        if np.array_equal(rows, best):
            break
        best, c = rows, _fit(A[rows], y[rows])
    return c


def _least_absolute(A: Array, y: Array) -> Array:
    """About the fit of least absolute deviations: a few steps of reweighted least squares."""
    c = _fit(A, y)
    for _ in range(15):
        size = np.abs(y - A @ c)
        edge = max(1e-3 * float(np.median(size)), 1e-12 * float(size.max(initial=0.0)))
        if edge == 0.0:
            break
        root = 1.0 / np.sqrt(np.maximum(size, edge))
        c = _fit(A * root[:, None], y * root)
    return c


def _without_extremes(A: Array, y: Array) -> list[Array]:
    """Least squares without a quarter or a half of the rows, those extreme along a sensitivity component.

    Deleting row j moves the fitted values by h_j e_j / (1 - h_jj), h_j the column of the hat matrix. The directions
    in which these vectors vary most are the components.
    """
    n, k = A.shape
    Q, R = np.linalg.qr(A)
    if not (np.abs(np.diag(R)) > 1e-10 * np.abs(R).max()).all():
        U, d, _ = np.linalg.svd(A, full_matrices=False)
        Q = U[:, d > 1e-12 * d[0]]
    e = y - Q @ (Q.T @ y)
    leverage = np.minimum(np.einsum("ij,ij->i", Q, Q), 1.0 - 1e-9)
    moved = Q * (e / (1.0 - leverage))[:, None]
    _, vectors = np.linalg.eigh(moved.T @ moved)
    found = []
    for v in vectors[:, ::-1].T[:_COMPONENTS]:
        z = Q @ v
        for keys in (z, -z, np.abs(z)):
            order = np.argsort(keys, kind="stable")
            for share in (0.75, 0.5):
                rows = order[: max(int(share * n), k + 1)]
                found.append(_fit(A[rows], y[rows]))
    return found


def _exact_fits(A: Array, y: Array, rng: np.random.Generator) -> list[Array]:
    n, k = A.shape
    found = []
    for _ in range(_SUBSETS):
        rows = rng.choice(n, size=k, replace=False)
        c = _fit(A[rows], y[rows])
        if np.isfinite(c).all():
            found.append(c)
    return found
