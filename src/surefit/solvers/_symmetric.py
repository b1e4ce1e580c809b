"""A kernel matrix in float32 by its lower triangle, in panels of rows: half the memory, half the reading."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._jit.symmetric import add_panel
from .._threads import over_rows
from ..kernels import Bound

__all__ = ["SymmetricPanels"]

_HEIGHT = 256


class SymmetricPanels:
    """K of a float32 bound on arrays; ``panels @ V`` is in float64."""

    def __init__(self, bound: Bound) -> None:
        self.n = bound.n
        starts = range(0, self.n, _HEIGHT)
        self.panels = [
            (first, bound.lower(first, min(first + _HEIGHT, self.n))) for first in starts
        ]

    def __matmul__(self, V: NDArray[np.float32]) -> NDArray[np.float64]:
        columns = [np.ascontiguousarray(V[:, t]) for t in range(V.shape[1])]
        count = len(self.panels)

        def work(begin: int, end: int) -> NDArray[np.float64]:
            out = np.zeros((len(columns), self.n))
            above = np.empty(self.n, dtype=np.float32)
            for k in range(begin, end):
                for place in {k, count - 1 - k}:  # a short panel and a long one
                    first, panel = self.panels[place]
                    for x, total in zip(columns, out):
                        add_panel(panel, first, x, above, total)
            return out

        parts = over_rows(-(-count // 2), work, least=4)
        total: NDArray[np.float64] = sum(parts[1:], start=parts[0])
        return total.T
