r"""The neutral evaluator of margins and kernels: the same rules as :mod:`benchmarks.evaluate`, numpy alone.

A hinge loss has a kink where its multipliers live, so that coefficients alone suggest a poor dual vector.
Here a point may bring its multipliers: they are clipped into their box, moved onto the equality constraint
and valued, so that whatever they are, the value is below the minimum, and anybody's serve to judge
everybody. Kernel matrices are made in blocks of rows, in float64, and never kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluate import Array, Problem, flat

__all__ = ["Hinge", "KernelHinge", "KernelRidge", "gaussian_blocks"]

ROWS = 1024  # of a block of the kernel matrix


class Hinge(Problem):
    r"""C \sum_i max(0, 1 - y_i z_i) + 1/2 ||w||^2 (+ 1/2 b^2), y in {-1, 1}, z = Xw + b; LinearSVC's problem.

    The intercept is penalised, as scikit-learn and LIBLINEAR have it, or there is none. A point is
    ``(coef, intercept)`` or ``(coef, intercept, multipliers)``. Dual: \sum_i a_i - 1/2 ||X'(a y)||^2 (-
    1/2 (a'y)^2) with 0 <= a <= C. A point without multipliers gives a = C where it errs, scaled as well
    as can be: a bound, but a loose one.
    """

    def __init__(self, X: Any, y: Any, C: float, *, intercept: bool) -> None:
        self.X, self.y, self.C, self.intercept = X, np.asarray(y, dtype=np.float64), C, intercept
        up, down = float(np.sum(self.y > 0)), float(np.sum(self.y < 0))
        b = float(np.clip(C * (up - down), -1.0, 1.0)) if intercept else 0.0
        self.scale = C * (up * (1.0 - b) + down * (1.0 + b)) + 0.5 * b**2

    def _margins(self, point: tuple[Any, ...]) -> tuple[Array, float, Array]:
        w, b = flat(point[:2] if self.intercept else point[:1])
        return w, b, self.y * (self.X @ w + b)

    def primal(self, *point: Any) -> Array:
        w, b, margins = self._margins(point)
        loss = float(np.sum(np.maximum(0.0, 1.0 - margins)))
        return np.array([self.C * loss + 0.5 * float(w @ w) + 0.5 * b**2])

    def dual(self, *point: Any) -> Array:
        given = len(point) > 2 and point[2] is not None
        if given:
            a = np.clip(np.asarray(point[2], dtype=np.float64).ravel(), 0.0, self.C)
        else:
            a = np.where(self._margins(point)[2] < 1.0, self.C, 0.0)
        v = self.X.T @ (a * self.y)
        bent = float(v @ v) + (float(a @ self.y) ** 2 if self.intercept else 0.0)
        step = 1.0 if given else min(1.0, float(a.sum()) / max(bent, 1e-300))
        return np.array([step * float(a.sum()) - 0.5 * step**2 * bent])


class KernelHinge(Problem):
    r"""C \sum_i max(0, 1 - y_i f_i) + 1/2 beta'K beta, f = K beta + b, K Gaussian; SVC's problem.

    A point is ``(beta, intercept)``, beta over all rows (zero where a row is no support vector). Dual:
    \sum_i a_i - 1/2 (a y)'K(a y) with 0 <= a <= C and a'y = 0: a = y beta, clipped, the heavier class
    shrunk.
    """

    def __init__(self, X: Array, y: Any, C: float, gamma: float) -> None:
        self.X, self.y, self.C, self.gamma = X, np.asarray(y, dtype=np.float64), C, gamma
        self.scale = 2.0 * C * float(min(np.sum(self.y > 0), np.sum(self.y < 0)))
        self._last: tuple[Any, float, tuple[float, float]] | None = None

    def primal(self, *point: Any) -> Array:
        return np.array([self._values(point)[0]])

    def dual(self, *point: Any) -> Array:
        return np.array([self._values(point)[1]])

    def product(self, rows: Any, B: Array) -> Array:
        """K(X, X[rows]) B."""
        blocks = gaussian_blocks(self.X, self.X[rows], self.gamma)
        return np.concatenate([K @ B for _, K in blocks])

    def _values(self, point: tuple[Any, ...]) -> tuple[float, float]:
        """P and D of a point, from one pass over its kernel rows; the last one is remembered."""
        beta, b = flat(point)
        if self._last is not None and self._last[0] is point[0] and self._last[1] == b:
            return self._last[2]
        if not np.isfinite(beta).all():
            return np.inf, -np.inf
        a = np.clip(self.y * beta, 0.0, self.C)
        up, down = float(a[self.y > 0].sum()), float(a[self.y < 0].sum())
        a = a * np.where(self.y > 0, min(1.0, _over(down, up)), min(1.0, _over(up, down)))
        support = np.flatnonzero(beta)
        both = np.column_stack([beta, a * self.y])[support]
        F = self.product(support, both)
        quadratic = np.einsum("ij,ij->j", both, F[support])
        loss = float(np.sum(np.maximum(0.0, 1.0 - self.y * (F[:, 0] + b))))
        found = self.C * loss + 0.5 * quadratic[0], float(a.sum()) - 0.5 * quadratic[1]
        self._last = point[0], b, found
        return found


class KernelRidge(Problem):
    r"""1/2 ||y - K a||^2 + alpha/2 a'K a, K Gaussian; scikit-learn's KernelRidge.

    Dual: y't - 1/2 t't - t'K t/(2 alpha), with t = alpha a. The gap is half the squared residual of
    (K + alpha I) a = y.
    """

    def __init__(self, X: Array, y: Array, alpha: float, gamma: float) -> None:
        self.X, self.y, self.alpha, self.gamma = X, y, alpha, gamma
        self.scale = 0.5 * float(y @ y)
        self._last: tuple[Any, Array] | None = None

    def product(self, rows: Any, B: Array) -> Array:
        """K(X, X[rows]) B."""
        blocks = gaussian_blocks(self.X, self.X[rows], self.gamma)
        return np.concatenate([K @ B for _, K in blocks])

    def _product(self, a: Array, key: Any) -> Array:
        if self._last is None or self._last[0] is not key:
            self._last = key, self.product(slice(None), a)
        return self._last[1]

    def primal(self, *point: Any) -> Array:
        a = flat(point)[0]
        Ka = self._product(a, point[0])
        r = self.y - Ka
        return np.array([0.5 * float(r @ r) + 0.5 * self.alpha * float(a @ Ka)])

    def dual(self, *point: Any) -> Array:
        a = flat(point)[0]
        Ka = self._product(a, point[0])
        value = float(self.y @ a) - 0.5 * self.alpha * float(a @ a) - 0.5 * float(a @ Ka)
        return np.array([self.alpha * value])


def gaussian_blocks(X: Array, Z: Array, gamma: float) -> Iterator[tuple[slice, NDArray[Any]]]:
    """exp(-gamma ||x - z||^2) for blocks of the rows of X against all of Z."""
    centre = Z.mean(axis=0) if len(Z) else 0.0  # distances keep more digits near the origin
    Z = Z - centre
    norms = np.einsum("ij,ij->i", Z, Z)
    for start in range(0, len(X), ROWS):
        rows = slice(start, min(start + ROWS, len(X)))
        x = X[rows] - centre
        K = x @ (-2.0 * Z.T)
        K += np.einsum("ij,ij->i", x, x)[:, None]
        K += norms
        np.maximum(K, 0.0, out=K)
        K *= -gamma
        yield rows, np.exp(K, out=K)


def _over(a: float, b: float) -> float:
    return a / b if b > 0 else 1.0
