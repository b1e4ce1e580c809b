r"""Platt's probabilities for a margin classifier, and the coupling of pairs into class probabilities.

    P(y = 1 | f) = 1 / (1 + exp(A f + B)),

(A, B) of least log loss on decision values that come from 5-fold cross-validation, with targets drawn in from
0 and 1 (Platt 1999; Newton's method of Lin, Lin & Weng 2007). For several classes the pairwise probabilities
r_ij are coupled by min_p sum_ij (r_ji p_i - r_ij p_j)^2 over the simplex (Wu, Lin & Weng 2004).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["couple", "platt", "sigmoid"]

Array = NDArray[np.float64]


def platt(f: Array, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """(A, B) for decision values ``f`` of rows, some of which are positive."""
    many, few = float(positive.sum()), float((~positive).sum())
    target = np.where(positive, (many + 1.0) / (many + 2.0), 1.0 / (few + 2.0))
    A, B = 0.0, float(np.log((few + 1.0) / (many + 1.0)))
    value = _loss(f, target, A, B)
    for _ in range(100):
        p = sigmoid(f, A, B)
        d1, d2 = target - p, p * (1.0 - p)
        g = np.array([f @ d1, d1.sum()])
        if np.abs(g).max() < 1e-5:
            break
        H = np.array([[f @ (d2 * f) + 1e-12, f @ d2], [f @ d2, d2.sum() + 1e-12]])
        step = -np.linalg.solve(H, g)
        slope, size = float(g @ step), 1.0
        while size >= 1e-10:
            new = _loss(f, target, A + size * step[0], B + size * step[1])
            if new < value + 1e-4 * size * slope:
                A, B, value = A + size * step[0], B + size * step[1], new
                break
            size /= 2.0
        else:
            break
    return float(A), float(B)


def _loss(f: Array, target: Array, A: float, B: float) -> float:
    z = A * f + B
    return float((np.logaddexp(0.0, z) - (1.0 - target) * z).sum())


def sigmoid(f: Array, A: float, B: float) -> Array:
    """1 / (1 + exp(A f + B)), without overflow."""
    z = A * f + B
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def couple(r: Array) -> Array:
    """Class probabilities of shape (n, k) from pairwise ones r[:, i, j] = P(i | i or j)."""
    n, k, _ = r.shape
    swap = np.swapaxes(r, 1, 2)
    Q = -swap * r
    Q[:, range(k), range(k)] = (swap**2).sum(axis=2) - swap[:, range(k), range(k)] ** 2
    # stationarity on the simplex: Q p = c 1, sum p = 1
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = Q + 1e-12 * np.eye(k)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    p = np.linalg.solve(system, right)[:, :k, 0]
    p = np.maximum(p, 0.0)
    return p / p.sum(axis=1, keepdims=True)
