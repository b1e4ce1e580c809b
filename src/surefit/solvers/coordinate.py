r"""Coordinate descent for the elastic net: working sets, Anderson acceleration, a gap at every yield.

    min_{w, b}  1/2 sum_i s_i (y_i - x_i'w - b)^2 + l1 ||w||_1 + l2/2 ||w||^2      (w >= 0 on request)

Each outer iteration computes all correlations X'(s r) once, yields the iterate with its own duality gap,
then picks the coordinates in use and the worst violators of

    |X_j'(s r) - l2 w_j| <= l1,    with equality in sign on the support,

and sweeps over these alone. Every six sweeps the last seven points are extrapolated; the extrapolation
is kept when it lowers the objective. When the signs have settled and few coefficients are in use, one Newton
step over these alone gives their exact values. Cyclic coordinate descent converges for this problem (Tseng
2001); the accelerated variant keeps that, since the objective never rises.

References
----------
Friedman, Hastie & Tibshirani (2010), JSS 33; Massias, Gramfort & Salmon, "Celer" (2018); Bertrand & Massias,
"Anderson acceleration of coordinate descent" (2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..iterate import Iterate

__all__ = ["ElasticNetData", "elastic_net", "largest_penalty", "working_set"]

Array = NDArray[np.float64]
_DEPTH = 5  # points combined by the extrapolation
_DAMPING = 1e-10  # less would let the extrapolation blow rounding up beyond 1e-7
_SWEEPS = 50  # most sweeps over one working set
_BLOCK = 1 << 17  # entries handled at a time when the columns are measured
_SMALL = 64  # with so few columns, the working set is all of them
_FACE = 500  # most coefficients that are solved for at once
_FACE_WORK = 2e9  # and the most multiplications to spend on their Gram matrix
_CROSSINGS = 10  # coefficients that may reach zero on the way, each a new factorisation
_PATIENCE = 500  # sweeps without progress, after which rounding is taken to be reached
_ENTRIES = 1 << 24  # sparse columns with fewer entries than this (128 MiB) may be made dense


class ElasticNetData(NamedTuple):
    """The data as the sweeps want them: columns contiguous, weighted means and norms known."""

    X: Any  # Fortran-ordered array, or csc_array, float64
    y: Array
    s: Array
    mean: Array
    y_mean: float
    norm2: Array

    @classmethod
    def prepare(cls, X: Any, y: Array, s: Array, *, fit_intercept: bool) -> ElasticNetData:
        """Convert once; rows of weight zero must have been dropped."""
        if sp.issparse(X):
            X = sp.csc_array(X, dtype=np.float64)
            if not X.has_canonical_format:
                X = X.copy()  # it may share its arrays with the caller's
                X.sum_duplicates()
            mean = X.T @ s / s.sum() if fit_intercept else np.zeros(X.shape[1])
            norm2 = _sparse_norms(X, s, mean)
        else:
            X = np.asfortranarray(X, dtype=np.float64)
            mean = s @ X / s.sum() if fit_intercept else np.zeros(X.shape[1])
            norm2 = np.empty(X.shape[1])
            width = max(1, _BLOCK // max(1, X.shape[0]))
            for start in range(0, X.shape[1], width):
                columns = X[:, start : start + width] - mean[start : start + width]
                norm2[start : start + width] = s @ (columns * columns)
        # a constant column: its centred values, or those that implicit centring leaves, are rounding
        noise = 1e-7 if sp.issparse(X) else 4e-16
        norm2[np.sqrt(norm2) <= noise * np.abs(mean) * math.sqrt(s.sum())] = 0.0
        y_mean = float(s @ y / s.sum()) if fit_intercept else 0.0
        return cls(X, np.ascontiguousarray(y, dtype=np.float64), s, mean, y_mean, norm2)

    def correlations(self, u: Array) -> Array:
        """(X - mean)' u."""
        return self.X.T @ u - self.mean * u.sum()

    def weighted_residual(self, w: Array) -> Array:
        """u = s (y - ybar - (X - mean) w)."""
        return self.s * (self.y - self.y_mean - (self.X @ w - float(self.mean @ w)))


def _sparse_norms(X: Any, s: Array, mean: Array) -> Array:
    """sum_i s_i (x_ij - m_j)^2 from the stored entries and the mass of the zeros, without cancellation."""
    stored = np.diff(X.indptr)
    parts = X.copy()
    parts.data = (X.data - np.repeat(mean, stored)) ** 2
    norm2 = parts.T @ s
    if mean.any():
        parts.data = np.ones_like(X.data)
        zeros = np.where(stored < X.shape[0], np.maximum(s.sum() - parts.T @ s, 0.0), 0.0)
        norm2 += zeros * mean**2
    return norm2


def largest_penalty(data: ElasticNetData, *, positive: bool = False) -> float:
    """The smallest l1 at which w = 0 is optimal (REG-14): max_j |X_j'(s (y - ybar))|."""
    corr = data.correlations(data.weighted_residual(np.zeros(len(data.norm2))))
    return float((corr if positive else np.abs(corr)).max(initial=0.0))


def elastic_net(
    data: ElasticNetData,
    l1: float,
    l2: float,
    w: Array,
    *,
    positive: bool = False,
    rng: np.random.Generator | None = None,
    budget: int = 1000,
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=w, value=objective, estimate=duality gap, cost=sweeps)``.

    Parameters
    ----------
    data : ElasticNetData
    l1, l2 : float
        Weights of the two penalties.
    w : array of shape (p,)
        Start; changed in place.
    positive : bool
        Constrain w >= 0.
    rng : Generator, optional
        Visit the coordinates in random order instead of cyclically.
    budget : int
        Most sweeps in all.
    """
    if positive:
        np.maximum(w, 0.0, out=w)
    w[data.norm2 == 0.0] = 0.0
    p = len(w)
    used, last, size = 0, 0, min(p, max(10, 2 * int(np.count_nonzero(w))))
    best, smallest, lowest, progress = math.inf, math.inf, math.inf, 0
    face, settled, tries = (
        np.full(p, np.nan),
        0,
        0,
    )  # signs, since which sweep, Newton steps on them
    while True:
        u = data.weighted_residual(w)
        corr = data.correlations(u)
        value, gap = _objective_and_gap(data, w, u, corr, l1, l2, positive)
        yield Iterate(w, value, gap, cost=used - last)
        last = used
        violation = _violation(w, corr, l1, l2, positive)
        worst = float(violation.max(initial=0.0))
        # near the end the objective rests at rounding while the gap still falls, or the reverse
        if gap < 0.9 * best or worst < 0.9 * smallest or value < lowest * (1.0 - 1e-15):
            best, smallest, lowest = min(best, gap), min(smallest, worst), min(lowest, value)
            progress = used
        if worst == 0.0 or used - progress > _PATIENCE or used >= budget:
            return
        before, face = face, np.sign(w)
        if not np.array_equal(before, face):
            settled, tries = used, 0
        # a Newton step on k coefficients costs about k / 8 sweeps over them
        due = used > settled and 8 * (used - settled) >= np.count_nonzero(face)
        if due and tries < 3 and _face_step(data, w, corr - l2 * w - l1 * face, l1, l2):
            tries, used = tries + 1, used + 1
            continue
        ws, size = working_set(w, violation, size)
        target = 0.3 * worst if len(ws) < p else 0.01 * worst
        for sweeps in _sweep(data, w, u, ws, l1, l2, positive, rng, target, budget - used):
            used += sweeps


def _face_step(data: ElasticNetData, w: Array, slack: Array, l1: float, l2: float) -> bool:
    """Minimise over the coefficients in use with their signs kept; False, and no move, if too many.

    On that face the objective is quadratic, and ``slack`` is minus its gradient: a Newton step goes to its
    minimum. Where the way leads through zero, it stops there, that coefficient leaves, and the rest goes on
    (the active-set method; each piece lowers the objective).
    """
    support = np.flatnonzero(w)
    count = len(support)
    if not 0 < count <= min(_FACE, len(data.y)) or len(data.y) * count**2 > _FACE_WORK:
        return False
    gram = _gram(data, support)
    gram[np.diag_indices_from(gram)] += l2
    rest, slack = np.arange(count), slack[support]
    for _ in range(_CROSSINGS):
        if len(rest) == 0:
            break
        hessian = gram[np.ix_(rest, rest)]
        try:
            np.linalg.cholesky(hessian)  # numpy's, as in the sweeps: two BLAS pools would compete
            step = np.linalg.solve(hessian, slack[rest])
        except np.linalg.LinAlgError:
            return len(rest) < count  # columns that depend on each other are left to the sweeps
        here = w[support[rest]]
        crossing = np.sign(here + step) != np.sign(here)
        if not crossing.any():
            w[support[rest]] = here + step
            _refine(data, w, support[rest], hessian, l1, l2)
            return True
        t = float(np.min(-here[crossing] / step[crossing]))
        stops = crossing & (np.abs(here + t * step) <= 1e-12 * np.abs(here))
        w[support[rest]] = np.where(stops, 0.0, here + t * step)
        slack = (1.0 - t) * slack
        rest = rest[~stops]
    return True


def _refine(
    data: ElasticNetData, w: Array, columns: NDArray[np.int64], hessian: Array, l1: float, l2: float
) -> None:
    """One more step, with the gradient from the data: it takes out the rounding of the Gram matrix."""
    u, here = data.weighted_residual(w), w[columns]
    slack = data.X[:, columns].T @ u - data.mean[columns] * u.sum() - l2 * here - l1 * np.sign(here)
    new = here + np.linalg.solve(hessian, slack)
    if np.array_equal(np.sign(new), np.sign(here)):
        w[columns] = new


def _gram(data: ElasticNetData, columns: NDArray[np.int64]) -> Array:
    """The weighted, centred Gram matrix of some columns; dense, where they fit, so that nothing cancels."""
    X, mean = data.X[:, columns], data.mean[columns]
    if sp.issparse(X) and X.shape[0] * X.shape[1] > _ENTRIES:
        return (X.T @ X.multiply(data.s[:, None])).toarray() - data.s.sum() * np.outer(mean, mean)
    dense = X.toarray() if sp.issparse(X) else X
    centred = np.sqrt(data.s)[:, None] * (dense - mean)
    return centred.T @ centred


def _sweep(
    data: ElasticNetData,
    w: Array,
    u: Array,
    ws: NDArray[np.int64],
    l1: float,
    l2: float,
    positive: bool,
    rng: np.random.Generator | None,
    target: float,
    budget: int,
) -> Iterator[int]:
    """Sweep over the working set, extrapolating; yields the number of sweeps as they are done."""
    advance = _kernel(data)
    shift = np.zeros(1)
    history: list[tuple[Array, Array, float]] = []
    fewest = min(_DEPTH + 1, len(data.norm2) // max(1, len(ws)))  # a look at all columns costs that
    for sweep in range(min(_SWEEPS, budget)):
        if rng is not None:
            ws = rng.permutation(ws)
        history.append((w[ws] if rng is None else w.copy(), u.copy(), float(shift[0])))
        move = advance(w, u, shift, ws, l1, l2, positive)
        yield 1
        if move <= target and (sweep >= fewest or move == 0.0):
            break
        if rng is None and len(history) > _DEPTH:
            _extrapolate(data, w, u, shift, ws, history, l1, l2, positive)
            history.clear()


def _kernel(data: ElasticNetData) -> Any:
    from .._jit.coordinate import epochs_dense, epochs_sparse

    X, s, mean, norm2 = data.X, data.s, data.mean, data.norm2
    if sp.issparse(X):
        return lambda w, u, shift, ws, l1, l2, positive: epochs_sparse(
            X.data, X.indices, X.indptr, s, mean, norm2, w, u, shift, ws, l1, l2, positive, 1
        )
    return lambda w, u, shift, ws, l1, l2, positive: epochs_dense(
        X.T, s, mean, norm2, w, u, ws, l1, l2, positive, 1
    )


def _extrapolate(
    data: ElasticNetData,
    w: Array,
    u: Array,
    shift: Array,
    ws: NDArray[np.int64],
    history: list[tuple[Array, Array, float]],
    l1: float,
    l2: float,
    positive: bool,
) -> None:
    """Anderson: the affine combination of past points whose combined step is smallest."""
    points = np.array([point for point, _, _ in history] + [w[ws]])
    steps = np.diff(points, axis=0)
    normal = steps @ steps.T
    normal[np.diag_indices_from(normal)] += _DAMPING * np.trace(normal)
    try:
        c = np.linalg.solve(normal, np.ones(len(steps)))
    except np.linalg.LinAlgError:
        return
    if not np.isfinite(c).all() or c.sum() == 0.0:
        return
    c /= c.sum()
    trial = c @ points[1:]
    if positive and (trial < 0).any():
        return
    states = [state for _, state, _ in history[1:]] + [u]
    shifts = np.array([moved for _, _, moved in history[1:]] + [shift[0]])
    u_trial = sum(weight * state for weight, state in zip(c, states, strict=True))
    before = _objective(data, w[ws], u + shift[0] * data.s, l1, l2)
    if _objective(data, trial, u_trial + float(c @ shifts) * data.s, l1, l2) < before:
        w[ws], u[:], shift[0] = trial, u_trial, c @ shifts


def _objective(data: ElasticNetData, w: Array, u: Array, l1: float, l2: float) -> float:
    return float(0.5 * (u @ (u / data.s)) + l1 * np.abs(w).sum() + 0.5 * l2 * (w @ w))


def _objective_and_gap(
    data: ElasticNetData, w: Array, u: Array, corr: Array, l1: float, l2: float, positive: bool
) -> tuple[float, float]:
    """The solver's own estimate: scale the residual until the augmented dual constraint holds."""
    fit = float(u @ (u / data.s))
    value = 0.5 * fit + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)
    slack = corr - l2 * w
    largest = float((slack if positive else np.abs(slack)).max(initial=0.0))
    t = 1.0 if largest <= l1 else l1 / largest
    dual = t * float(u @ (data.y - data.y_mean)) - 0.5 * t * t * (fit + l2 * float(w @ w))
    return value, value - dual


def _violation(w: Array, corr: Array, l1: float, l2: float, positive: bool) -> Array:
    """Distance of the gradient to the subdifferential, coordinate by coordinate."""
    slack = corr - l2 * w
    at_zero = np.maximum((slack if positive else np.abs(slack)) - l1, 0.0)
    return np.where(w != 0.0, np.abs(slack - l1 * np.sign(w)), at_zero)


def working_set(w: Array, violation: Array, size: int) -> tuple[NDArray[np.int64], int]:
    """The support and the worst violators; doubles as long as the support fills it."""
    p = len(w)
    if p <= _SMALL:
        return np.arange(p), p
    support = int(np.count_nonzero(w))
    size = min(p, max(size, 2 * support))
    score = np.where(w != 0.0, np.inf, violation)
    chosen = np.argpartition(-score, size - 1)[:size] if size < p else np.arange(p)
    return np.sort(chosen[score[chosen] > 0.0]).astype(np.int64), size
