"""All C of a smooth margin loss on all folds: solved on all rows first, and each fold from there.

The problems of the folds differ from that of all rows in a fifth of the rows or less, so that their solutions
are a few quasi-Newton steps away; see :mod:`surefit.solvers.margin_grid`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...solvers.margin_grid import GridPoints, Rows, curvatures, solve_grid, start_path
from .rows import Folds

__all__ = ["MarginGrid", "grid_pays"]

Array = NDArray[np.float64]
_TIGHT = 1e-8  # how far the models go where tol is looser, as a fit by Newton's method does
_NEAR = 1e-5  # how near to their solution the starts are: nearer than the folds are to each other
_COLUMNS = 300  # most columns for a Hessian of each C,
_ROWS_A_COLUMN = 5  # and fewest rows to each,
_ENTRIES = 1 << 27  # and most entries, which are copied once a fold: 1 GiB


def grid_pays(X: Any, folds: Folds) -> bool:
    """Whether X is an array with few columns, many rows, and no more entries than may be copied."""
    fewest = min(len(train) for train, _ in folds.splits)
    n, p = X.shape
    small = p <= min(_COLUMNS, fewest // _ROWS_A_COLUMN) and n * p <= _ENTRIES
    return isinstance(X, np.ndarray) and small


class MarginGrid:
    """Starts and curvatures for every C, from the solutions on all rows.

    Parameters
    ----------
    rows : Rows
        All of them.
    Cs : array of shape (m,)
        Increasing.
    """

    def __init__(self, rows: Rows, Cs: Array) -> None:
        self.Cs, D = Cs, rows.A.shape[1]
        some = rows.sample(max(20 * D, 2000))
        points = start_path(some, Cs)
        target = _NEAR * Cs * rows.null
        found = solve_grid(rows, Cs, points, curvatures(some, points, Cs), target, np.inf * target)
        self.starts = found.points
        self.inverse = curvatures(rows.sample(max(40 * D, 8000)), self.starts, Cs)

    def on(self, rows: Rows, tol: float) -> GridPoints:
        """The solutions on the rows of a fold, in the coordinates of ``rows``."""
        null = rows.null * self.Cs
        most = max(tol, 1e-14) * null
        target = np.minimum(most, _TIGHT * null)
        return solve_grid(rows, self.Cs, self.starts, self.inverse, target, most)
