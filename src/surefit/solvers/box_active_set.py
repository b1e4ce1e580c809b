r"""The box problem of a kernel machine by guessing which multipliers are at their bounds.

    min_beta  1/2 beta'K beta - t'beta,     sum_i beta_i = 0,     lo_i <= beta_i <= hi_i

With the multipliers at a bound known, the free ones and the offset b solve one linear system,
K_FF beta_F + b 1 = t_F - K_FB beta_B. Free ones beyond a bound are then put there, bounded ones whose
v_i = t_i - (K beta)_i lies on the wrong side of b are set free, and the system is solved again, until nothing
changes: the solution. From a start for a nearby C that takes a few rounds, however ill-conditioned K is,
where SMO moves two multipliers at a time. The guesses may also go round in circles. Then what was found is
not used. The caller checks every point in either case.

References
----------
Hintermüller, Ito & Kunisch, "The primal-dual active set strategy as a semismooth Newton method", SIAM Journal
on Optimization 13 (2003); Hastie, Rosset, Tibshirani & Zhu, "The entire regularization path for the support
vector machine", JMLR 5 (2004).

Examples
--------
>>> import numpy as np
>>> from surefit.solvers.smo import BoxTask
>>> X, y = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), np.array([-1.0, 1, 1, 1])
>>> task = BoxTask(y, np.minimum(0, y) * 10, np.maximum(0, y) * 10, np.arange(4))
>>> start = np.array([-3.0, 2.0, 1.0, 0.0])
>>> beta, f = box_active_set(X @ X.T, task, start, X @ X.T @ start, tol=1e-9)
>>> beta.round(6).tolist()
[-4.0, 2.0, 2.0, 0.0]
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .smo import BoxTask

__all__ = ["box_active_set"]

Array = NDArray[np.float64]
_ROUNDS = 40
_PATIENCE = 6  # rounds without fewer wrong guesses before giving up
_FREE = 3000  # most free multipliers: a system of this size is solved in each round
_EPS = float(np.finfo(np.float64).eps)


def box_active_set(
    K: Array, task: BoxTask, start: Array, f: Array, *, tol: float, ratio: float = 1.0
) -> tuple[Array, Array] | None:
    """(beta, K beta) at the solution, or None where the guesses do not settle.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix, symmetric; variable i belongs to its row i.
    task : BoxTask
        With finite bounds.
    start, f : arrays of shape (n,)
        A point within the bounds divided by ``ratio``, and K times it; what is at one of those bounds is
        guessed to be at that of the task.
    tol : float
        By which v_i may be on the wrong side of the offset.
    ratio : float
        C over that of the start.
    """
    beta, f = start.copy(), f.copy()
    low, high = beta <= task.lo / ratio, beta >= task.hi / ratio
    fewest, waited = len(start) + 1, 0
    for _ in range(_ROUNDS):
        free = np.flatnonzero(~low & ~high)
        if not 1 <= len(free) <= _FREE:
            return None
        move = np.where(high, task.hi - beta, np.where(low, task.lo - beta, 0.0))
        moved = np.flatnonzero(move)
        f += move[moved] @ K[moved]
        beta += move
        rows = K[free]
        block = rows[:, free]
        right = task.t[free] - f[free] + block @ beta[free]
        found = _solved(block, right, float(beta[free].sum() - beta.sum()))
        if found is None:
            return None
        x, offset = found
        f += (x - beta[free]) @ rows
        beta[free] = x
        v = task.t - f
        above, below = ~low & ~high & (beta > task.hi), ~low & ~high & (beta < task.lo)
        loose = (high & (v < offset - tol)) | (low & (v > offset + tol))
        wrong = int(above.sum() + below.sum() + loose.sum())
        if wrong == 0:
            return beta, f
        waited = 0 if wrong < fewest else waited + 1
        if waited > _PATIENCE:
            return None
        fewest = min(fewest, wrong)
        high, low = (high & ~loose) | above, (low & ~loose) | below
    return None


def _solved(K: Array, t: Array, total: float) -> tuple[Array, float] | None:
    """(x, b) with K x + b 1 = t and sum x = total; the rounding of K is added to its diagonal."""
    raised = K.copy()
    scale = float(np.abs(np.diagonal(K)).max()) or 1.0
    raised.flat[:: len(K) + 1] += 64.0 * _EPS * scale
    factor, info = scipy.linalg.lapack.dpotrf(raised.T, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None
    both = np.stack([t, np.ones(len(t))], axis=1)
    solved, info = scipy.linalg.lapack.dpotrs(factor, both, lower=1)
    mass = float(solved[:, 1].sum())
    if info != 0 or not mass > 0.0 or not np.isfinite(solved).all():
        return None
    b = (float(solved[:, 0].sum()) - total) / mass
    return solved[:, 0] - b * solved[:, 1], b
