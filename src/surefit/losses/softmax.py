"""The softmax cross-entropy of several classes."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, where
from .._threads import by_rows, max_rows, sum_rows
from .base import EDGE, Loss, entropy

__all__ = ["Softmax", "own_class", "softmax"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Softmax(Loss):
    """-log softmax(z)_y for z in R^K and y in {0, ..., K-1} (LOS-8).

    ``grad`` is p - onehot(y). ``hess`` returns the probabilities p: the Hessian of a sample is
    diag(p) - p p'. The dual point theta = p - onehot(y) ranges over a shifted simplex, where the
    conjugate is the negative entropy of p.
    """

    smoothness = 0.5
    lipschitz = math.sqrt(2.0)

    def pointwise(self, z: Array, y: Array) -> Array:
        largest, _, total = _exponentials(z)
        return (largest + array_namespace(z).log(total))[:, 0] - z[own_class(y)]

    def grad(self, z: Array, y: Array) -> Array:
        p = softmax(z)
        p[own_class(y)] -= 1.0
        return p

    def pointwise_and_grad(self, z: Array, y: Array) -> tuple[Array, Array]:
        largest, p, total = _exponentials(z)
        own = own_class(y)
        value = (largest + array_namespace(z).log(total))[:, 0] - z[own]
        p /= total
        p[own] -= 1.0
        return value, p

    def hess(self, z: Array, y: Array) -> Array:
        return softmax(z)

    def conjugate(self, theta: Array, y: Array) -> Array:
        p = theta + 0.0
        p[own_class(y)] += 1.0
        inside = (p >= -EDGE).all(axis=1) & (abs(p.sum(axis=1) - 1.0) <= EDGE * p.shape[1])
        return where(inside, entropy(clip(p, 0.0, None)).sum(axis=1), math.inf)

    def prox(self, z: Array, y: Array, step: float) -> Array:
        """Newton, halved row by row until the strongly convex objective falls."""
        t = z.astype(np.float64)

        def objective(t: Array) -> Array:
            return self.pointwise(t, y) + ((t - z) ** 2).sum(axis=1) / (2.0 * step)

        value = objective(t)
        for _ in range(200):  # the Jacobian of t - z + step grad is I + step (diag p - p p')
            p = softmax(t)
            residual = t - z + step * self.grad(t, y)
            scaled = 1.0 / (1.0 + step * p)
            rank_one = (scaled * p * residual).sum(axis=1) / (
                1.0 - step * (scaled * p**2).sum(axis=1)
            )
            move = scaled * (residual + step * p * rank_one[:, None])
            length = np.ones((len(t), 1))
            noise = 1e-14 * (np.abs(value) + np.abs(t).max(axis=1))
            for _ in range(60):
                worse = objective(t - length * move) > value + noise
                if not worse.any():
                    break
                length[worse] /= 2.0
            t = t - length * move
            value = objective(t)
            if (np.abs(length * move) <= 2e-16 * (1.0 + np.abs(t))).all():
                break
        return t

    def balance(self, theta: Array, y: Array, weights: Array) -> Array:
        """Shift each class to balance, then mix with the class frequencies until all are feasible.

        The frequencies themselves are a balanced point in the interior, so a small mixture repairs
        the coordinates that a shift pushed below zero.
        """
        xp, total = array_namespace(theta), weights.sum()

        def sums(theta: Array, y: Array, s: Array) -> Array:
            return xp.stack([s @ theta, s @ _onehot(theta, y)])

        shift, frequencies = sum_rows(sums, theta, y, weights) / total

        def mixture(theta: Array, y: Array) -> float:
            p = theta + _onehot(theta, y) - shift
            if float(p.min()) >= 0.0:
                return 0.0
            return float(where(p < 0, -p / clip(frequencies - p, 1e-300, None), 0.0).max())

        mix = max_rows(mixture, theta, y)
        if mix == 0.0:
            return by_rows(lambda theta: theta - shift, theta)

        def mixed(theta: Array, y: Array) -> Array:
            onehot = _onehot(theta, y)
            return (1.0 - mix) * (theta + onehot - shift) + mix * frequencies - onehot

        return by_rows(mixed, theta, y)


def own_class(y: Array) -> tuple[Any, Any]:
    """The index (i, y_i) of each sample's own class."""
    xp = array_namespace(y)
    return xp.arange(len(y), device=y.device), xp.astype(y, xp.int64)


def _onehot(p: Array, y: Array) -> Array:
    """A 1 at the own class of each sample."""
    table = array_namespace(p).zeros_like(p)
    table[own_class(y)] = 1.0
    return table


def softmax(z: Array) -> Array:
    """e^{z_k} / sum_l e^{z_l} for each row (LOG-7)."""
    _, exponentials, total = _exponentials(z)
    exponentials /= total
    return exponentials


def _exponentials(z: Array) -> tuple[Array, Array, Array]:
    """The largest entry of each row, the exponentials of what the others lack, and their sum."""
    xp = array_namespace(z)
    if xp is np:  # column by column: numpy is slow along a short axis
        largest = functools.reduce(np.maximum, z.T)[:, None]
        exponentials = np.exp(z - largest)
        return largest, exponentials, exponentials @ np.ones((z.shape[1], 1))
    largest = xp.max(z, axis=1, keepdims=True)
    exponentials = xp.exp(z - largest)
    return largest, exponentials, exponentials.sum(axis=1, keepdims=True)
