r"""A start for redescending estimators: a linear fit that gross outliers do not spoil.

Among many candidate fits the one with the least trimmed squares is taken,

    sum of the smallest squared residuals, up to (n + k + 1) / 2 rows of n,     k coefficients,

which tolerates close to half of the rows being wrong. The candidates come from three sources, none of which
is safe alone:

* least absolute deviations by reweighting, safe against outliers in y;
* fits without the rows that are extreme along a *principal sensitivity component*, the directions in which
  single rows move the fit most: this finds groups of leverage points, in any dimension and without chance;
* exact fits of k random rows: with many of these one is clean, if k is small.

Each is improved by concentration steps (fit the rows of smallest residual, again and again), which never
increase the trimmed squares. Equal rows are first gathered into one with their weight, in a fixed order,
so that a weight of 2 is the same as the row twice, and the order of the rows does not matter.

References
----------
Rousseeuw & Van Driessen, "Computing LTS regression for large data sets", Data Mining and Knowledge
Discovery 12 (2006); Pena & Yohai, "A fast procedure for outlier diagnostics in large regression
problems", JASA 94 (1999).
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


def robust_start(
    A: Array, y: Array, s: Array, rng: np.random.Generator, *, fit_intercept: bool
) -> Array:
    """Coefficients and intercept of a fit to the better half of the rows.

    Parameters
    ----------
    A : array of shape (n, p)
    y, s : arrays of shape (n,)
        Targets and positive weights.
    rng : numpy Generator
        For the random subsets.
    fit_intercept : bool
        Without it, the last entry of the result is 0.
    """
    table, place = np.unique(np.column_stack([A, y]), axis=0, return_inverse=True)
    s = np.bincount(place.ravel(), weights=s).astype(np.float64)
    A, y = table[:, :-1], table[:, -1]
    mean = s @ A / s.sum() if fit_intercept else np.zeros(A.shape[1])
    A = A - mean
    A[:, np.abs(A).max(axis=0) <= 1e-14 * np.abs(mean)] = 0.0  # a constant column, centred
    if fit_intercept:
        A = np.column_stack([A, np.ones(len(A))])
    found = _better_half(A, y, s, rng)
    if not fit_intercept:
        return np.append(found, 0.0)
    return np.append(found[:-1], found[-1] - mean @ found[:-1])


def _better_half(A: Array, y: Array, s: Array, rng: np.random.Generator) -> Array:
    norms = np.sqrt(s @ A**2)
    norms[norms == 0.0] = 1.0
    raw, A = A, A / norms
    n, k = A.shape
    if n <= k + 1:
        return np.asarray(np.linalg.lstsq(raw, y, rcond=1e-12)[0])
    share = (n + k + 1) / (2.0 * n)
    found = [_least_absolute(A, y, s), *_without_extremes(A, y, s)]
    for _ in range(_ROUNDS):  # what hides behind the worst rows shows once these are gone
        best = found[int(np.argmin(_trimmed_squares(A, y, s, found, share)))]
        rest = _lowest(np.abs(y - A @ best), s, max(0.75, share))
        found += _without_extremes(A[rest > 0], y[rest > 0], rest[rest > 0])
    if k <= _SUBSET_COLUMNS:
        found += _exact_fits(A, y, s, rng)
    for steps, kept in ((0, 5 * _KEPT), (2, _KEPT), (30, 1)):
        found = [_concentrated(A, y, s, c, share, steps) for c in found]
        order = np.argsort(_trimmed_squares(A, y, s, found, share), kind="stable")
        found = [found[i] for i in order[:kept]]
    return found[0] / norms


def _fit(A: Array, y: Array, s: Array) -> Array:
    """Least squares by the normal equations, which a candidate can afford, if these are regular."""
    weighted = A * s[:, None]
    gram = A.T @ weighted
    try:
        np.linalg.cholesky(gram - 1e-9 * np.trace(gram) / len(gram) * np.eye(len(gram)))
        return np.asarray(np.linalg.solve(gram, weighted.T @ y))
    except np.linalg.LinAlgError:
        root = np.sqrt(s)
        return np.asarray(np.linalg.lstsq(A * root[:, None], y * root, rcond=1e-12)[0])


def _lowest(keys: Array, s: Array, share: float) -> Array:
    """The weights of the rows with the lowest keys, up to this share of the weight; 0 for the others."""
    order = np.argsort(keys, kind="stable")
    below = np.cumsum(s[order])
    out = np.empty_like(s)
    out[order] = np.clip(share * below[-1] - (below - s[order]), 0.0, s[order])
    return out


def _trimmed_squares(A: Array, y: Array, s: Array, found: list[Array], share: float) -> Array:
    squares = (y[:, None] - A @ np.array(found).T) ** 2
    return np.array([_lowest(column, s, share) @ column for column in squares.T])


def _concentrated(A: Array, y: Array, s: Array, c: Array, share: float, steps: int) -> Array:
    """Concentration steps until the rows no longer change."""
    before = np.zeros_like(s)
    for _ in range(steps):
        weights = _lowest(np.abs(y - A @ c), s, share)
        if np.array_equal(weights, before):
            break
        before, c = weights, _fit(A, y, weights)
    return c


def _least_absolute(A: Array, y: Array, s: Array) -> Array:
    """About the fit of least absolute deviations: a few steps of reweighted least squares."""
    c = _fit(A, y, s)
    for _ in range(15):
        size = np.abs(y - A @ c)
        edge = max(1e-3 * float(np.median(size)), 1e-12 * float(size.max(initial=0.0)))
        if edge == 0.0:
            break
        c = _fit(A, y, s / np.maximum(size, edge) * edge)
    return c


def _without_extremes(A: Array, y: Array, s: Array) -> list[Array]:
    """Least squares without a quarter or a half of the rows, those extreme along a sensitivity component.

    Deleting row j moves the fitted values by h_j e_j / (1 - h_jj), h_j the column of the hat matrix. The
    directions in which these vectors vary most are the components.
    """
    root = np.sqrt(s)[:, None]
    U, d, Vt = np.linalg.svd(A * root, full_matrices=False)
    kept = d > 1e-10 * d[0]
    Q = A @ (Vt[kept].T / d[kept])  # the columns of root Q are orthonormal
    e = y - Q @ (U[:, kept].T @ (root[:, 0] * y))
    leverage = np.minimum(np.einsum("ij,ij->i", Q, Q), 1.0 - 1e-9)
    moved = Q * (root[:, 0] * e / (1.0 - leverage))[:, None]
    _, vectors = np.linalg.eigh(moved.T @ moved)
    found = []
    for v in vectors[:, ::-1].T[:_COMPONENTS]:
        z = Q @ v
        for keys in (z, -z, np.abs(z)):
            found += [_fit(A, y, _lowest(keys, s, share)) for share in (0.75, 0.5)]
    return found


def _exact_fits(A: Array, y: Array, s: Array, rng: np.random.Generator) -> list[Array]:
    n, k = A.shape
    odds = None if s.min() == s.max() else s / s.sum()
    rows = [rng.choice(n, size=k, replace=False, p=odds) for _ in range(_SUBSETS)]
    found = [_fit(A[i], y[i], np.ones(k)) for i in rows]
    return [c for c in found if np.isfinite(c).all()]
