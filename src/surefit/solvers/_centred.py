"""The rows of X less a centre, with a 1 for the intercept if there is one.

Robust regressions work with (x_i - center, 1)'d = x_i'w + b: the centre keeps large column means from
spoiling the condition of their matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ..design import Design, as_design

__all__ = ["CentredRows"]

Array = NDArray[np.float64]


class CentredRows:
    """Products with the centred rows; ``free`` says whether there is an intercept."""

    def __init__(self, X: Design, center: Array, free: bool) -> None:
        self.X, self.center, self.free = X, center, free

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns without the intercept's."""
        return self.X.shape

    def vector(self, w: Array, b: float) -> Array:
        """d of a model with coefficients w and intercept b."""
        return np.append(w, b + self.center @ w) if self.free else w

    def intercept(self, d: Array) -> float:
        """b of a vector d."""
        p = len(self.center)
        return float(d[p] - self.center @ d[:p]) if self.free else 0.0

    def predict(self, d: Array) -> Any:
        """The linear function d of each row."""
        return self.X.dot(d[: len(self.center)]) + self.intercept(d)

    def adjoint(self, v: Any) -> Array:
        """The sum of the rows, weighted by v, or by each column of v."""
        product = self.X.tdot(v)
        if not self.free:
            return product
        mass = to_numpy(v.sum(axis=0))
        return np.concatenate([product - np.multiply.outer(self.center, mass), mass[None]])

    def gram(self, weights: Any) -> Array:
        """The weighted sum of the outer squares of the rows."""
        gram = self.X.gram(weights, self.center if self.free else None)
        if not self.free:
            return gram
        mass = float(weights.sum())
        sums = self.X.tdot(weights) - mass * self.center
        return np.block([[gram, sums[:, None]], [sums[None, :], np.full((1, 1), mass)]])

    @property
    def can_pick(self) -> bool:
        """Whether single rows can be picked: not of those on disk or over ranks."""
        return hasattr(self.X, "X")

    def part(self, index: NDArray[np.intp]) -> CentredRows:
        """Some of the rows, where rows can be picked."""
        table = self.X.X  # type: ignore[attr-defined]
        return CentredRows(as_design(table[like(index, table)]), self.center, self.free)

    def table(self, index: NDArray[np.intp]) -> Array:
        """Some of the rows as a matrix, reading X once."""
        p = len(self.center)
        out = np.ones((len(index), p + int(self.free)))
        for rows, block in self.X.blocks():
            inside = (index >= rows.start) & (index < rows.stop)
            if inside.any():
                some = block[like(index[inside] - rows.start, block)]
                out[inside, :p] = some.toarray() if hasattr(some, "toarray") else to_numpy(some)
        out[:, :p] -= self.center
        return out
