r"""Quantile regression as rows of a piecewise linear regression on standardised columns.

A row of the data is ((x_i - center) / scale, 1) with target y_i and a dual variable in s_i [q - 1, q]. A
penalty alpha |w_j| is one more row, e_j with target 0 and a dual variable in [-alpha, alpha]. And rows that
surely lie on one side of the fit may be replaced by their weighted mean: as long as all of them do lie there,
it costs what they cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import array_namespace, like, to_numpy
from ..design import Design
from .interior_point import Rows

__all__ = ["ABOVE", "BELOW", "PENALTY", "PinballData", "PinballRows"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
ABOVE, BELOW, PENALTY = (
    -1,
    -2,
    -3,
)  # names of rows that are no samples; the penalty of column j is -3 - j


class PinballRows(NamedTuple):
    """Rows, targets, bounds of the dual variables, and the name of each row: its sample's number."""

    A: Rows
    y: Any
    low: Any
    high: Any
    names: Index


@dataclass
class PinballData:
    """The data of a quantile regression and the units in which it is solved."""

    X: Design
    y: Array  # less ``offset``, in units of ``unit``
    s: Array  # weights of mean 1
    q: float
    alpha: float
    fit_intercept: bool
    center: Array
    scale: Array
    columns: Index  # those that are not constant
    offset: float
    unit: float
    used: Index  # the samples of positive weight

    @classmethod
    def prepare(
        cls, X: Design, y: Array, s: Array, q: float, alpha: float, fit_intercept: bool
    ) -> PinballData:
        weights = X.vector(s / s.sum())
        center = X.mean(weights) if fit_intercept else np.zeros(X.shape[1])
        scale = X.column_norms(weights, center if fit_intercept else None)
        rounding = 4.0 * np.finfo(np.float64).eps * (8.0 + math.sqrt(len(y)))
        columns = np.flatnonzero(scale > rounding * np.abs(center))
        if not X.centres_first:
            center = np.zeros(X.shape[1])
        middle = len(y) // 2
        offset = float(np.partition(y, middle)[middle]) if fit_intercept else 0.0
        away = np.abs(y - offset)
        size = float(np.partition(away, middle)[middle]) or float(s @ away / s.sum())
        unit = 2.0 ** round(math.log2(size)) if size > 0.0 else 1.0  # exact to divide by
        return cls(
            X, (y - offset) / unit, s / s.mean(), q, alpha, fit_intercept, center, scale,
            columns, offset, unit, np.flatnonzero(s > 0),
        )  # fmt: skip

    def rows(
        self, columns: Index, index: Index, y: Array, side: Any = None, times: Any = 1.0
    ) -> PinballRows:
        """The samples ``index`` with targets ``y``, the means of those with a ``side``, the penalty.

        ``times`` multiplies the weights of the samples: how many rows each stands for.
        """
        names, targets, s = [index], [y[index]], [self.s[index] * times]
        parts = [self.matrix(columns, index)]
        if side is not None:
            for name, mass, mean, target in self._means(side, y):
                parts.append(like(self.standardised(mean[None, columns], columns), parts[0]))
                names.append(np.array([name]))
                targets.append(np.array([target]))
                s.append(np.array([mass]))
        weight = np.concatenate(s)
        low, high = (self.q - 1.0) * weight, self.q * weight
        if self.alpha > 0.0:
            bound = float(weight.sum()) * self.alpha / self.scale[columns]
            names.append(PENALTY - columns)
            targets.append(np.zeros(len(columns)))
            low, high = np.concatenate([low, -bound]), np.concatenate([high, bound])
        A = Rows(_stack(parts), len(columns) if self.alpha > 0.0 else 0)
        target = A.vector(np.concatenate(targets))
        return PinballRows(A, target, A.vector(low), A.vector(high), np.concatenate(names))

    def _means(self, side: Any, y: Array) -> list[tuple[int, float, Array, float]]:
        """(name, weight, mean row, mean target) of the rows above and of those below."""
        picked = np.stack([self.s * (side > 0), self.s * (side < 0)], axis=1)
        sums, mass = self.X.tdot(self.X.vector(picked)), picked.sum(axis=0)
        return [
            (name, float(mass[j]), sums[:, j] / mass[j], float(picked[:, j] @ y / mass[j]))
            for j, name in enumerate((ABOVE, BELOW))
            if mass[j] > 0.0
        ]

    def matrix(self, columns: Index, index: Index, *, standardise: bool = True) -> Any:
        """The rows ``index`` (sorted), standardised, as one matrix of the library that holds X."""
        parts = []
        for rows, block in self.X.blocks():
            first, last = np.searchsorted(index, (rows.start, rows.stop))
            if first == last:
                continue
            if (
                last - first < rows.stop - rows.start or not standardise
            ):  # a copy, or a view to copy
                block = block[like(index[first:last] - rows.start, block)]
            if len(columns) < self.X.shape[1]:
                block = block[:, like(columns, block)]
            parts.append(self.standardised(block, columns) if standardise else block)
        return _stack(parts)

    def standardised(self, block: Any, columns: Index) -> Any:
        """((x - center) / scale, 1); a sparse row is not centred."""
        ones = np.ones((block.shape[0], int(self.fit_intercept)))
        if sp.issparse(block):
            scaled = block @ sp.diags_array(1.0 / self.scale[columns])
            return sp.hstack([scaled, ones], format="csr")
        center, scale, ones = (
            like(v, block) for v in (self.center[columns], self.scale[columns], ones)
        )
        return array_namespace(block).concat([(block - center) / scale, ones], axis=1)

    def model(self, beta: Array, columns: Index) -> tuple[Array, float]:
        """Coefficients and intercept in the units of the data."""
        coef = np.zeros(self.X.shape[1])
        coef[columns] = self.unit * beta[: len(columns)] / self.scale[columns]
        if not self.fit_intercept:
            return coef, 0.0
        return coef, self.offset + self.unit * float(beta[-1]) - float(self.center @ coef)

    def residual(self, beta: Array, columns: Index) -> Array:
        """y - A beta for all samples."""
        coef, intercept = self.model(beta, columns)
        predicted = to_numpy(self.X.dot(coef)) + (intercept - self.offset)
        return self.y - predicted / self.unit

    def spread(self, columns: Index) -> Array:
        """The length of each standardised row: how much it may move with the coefficients."""
        parts = []
        for _, block in self.X.blocks():
            if len(columns) < self.X.shape[1]:
                block = block[:, like(columns, block)]
            z = self.standardised(block, columns)
            parts.append(to_numpy((z * z).sum(axis=1)))
        return np.sqrt(np.concatenate(parts))

    def pull(self, theta: Array) -> Array:
        """|X'(s theta)| / sum(s), columns centred: at most alpha at an optimum."""
        st = self.s * theta / len(theta)
        return np.abs(self.X.tdot(self.X.vector(st)) - self.center * float(st.sum()))


def _stack(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return array_namespace(parts[0]).concat(parts)
