r"""Kernel ridge regression for many penalties: one eigendecomposition K = U diag(d) U' serves every alpha.

    a(alpha) = U diag(1 / (d + alpha)) U'y

With sample weights, K is R K R and y is R y, R = diag(sqrt(s_i)), and a is R times that. An alpha costs n^2 T
operations instead of n^3 / 3; predictions on m other rows, k(X, Z) U, are shared by the alphas too.

Examples
--------
>>> import numpy as np
>>> K, y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0], [0.0]])
>>> path = KernelRidgePath(K)
>>> path.dual_coef(y, 1.0).round(4).ravel().tolist()
[0.375, -0.125]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import is_torch
from ._kernel_algebra import eigh

__all__ = ["KernelRidgePath"]

_EPS = float(np.finfo(np.float64).eps)


class KernelRidgePath:
    """The fits of all alphas on one kernel matrix.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric; float64. Overwritten unless ``copy``.
    weights : array of shape (n,), optional
    copy : bool, default=True
    """

    def __init__(self, K: Any, weights: Any = None, *, copy: bool = True) -> None:
        K = (K.clone() if is_torch(K) else K.copy()) if copy else K
        self.root = None if weights is None else weights**0.5
        if self.root is not None:
            K *= self.root
            K *= self.root[:, None]
        self.values, self.vectors = eigh(K)

    def dual_coef(self, Y: Any, alpha: float | NDArray[np.float64]) -> Any:
        """Dual coefficients (n, T) for one alpha, or one for each of the T targets."""
        turned = self.turned(Y) * self._filter(alpha)
        return self._back(self.vectors @ turned)

    def dual_coefs(self, Y: Any, alphas: Any) -> Any:
        """Dual coefficients for every alpha: (len(alphas), n, T)."""
        turned = self.turned(Y)
        wide = [turned * self._filter(float(alpha)) for alpha in alphas]
        if is_torch(turned):
            import torch

            return torch.stack([self._back(self.vectors @ w) for w in wide])
        n, count = turned.shape
        stacked = self._back(self.vectors @ np.concatenate(wide, axis=1))
        return stacked.reshape(n, len(wide), count).transpose(1, 0, 2)

    def predictions(self, rows: Any, Y: Any, alphas: Any) -> Any:
        """Predictions (len(alphas), m, T) from kernel rows k(x, x_i) of shape (m, n)."""
        rows = rows if self.root is None else rows * self.root
        turned, across = self.turned(Y), rows @ self.vectors
        wide = [turned * self._filter(float(alpha)) for alpha in alphas]
        if is_torch(turned):
            import torch

            return torch.stack([across @ w for w in wide])
        stacked = across @ np.concatenate(wide, axis=1)
        return stacked.reshape(len(rows), len(wide), -1).transpose(1, 0, 2)

    def turned(self, Y: Any) -> Any:
        """U'Ry, what all alphas share."""
        Y = Y[:, None] if Y.ndim == 1 else Y
        return self.vectors.T @ (Y if self.root is None else self.root[:, None] * Y)

    def _filter(self, alpha: Any) -> Any:
        """1 / (d + alpha); a direction that alpha = 0 does not determine gets 0, as least norm asks."""
        raised = self.values[:, None] + alpha
        tiny = abs(raised) <= len(raised) * _EPS * float(abs(self.values).max())
        return (1.0 - 1.0 * tiny) / (raised + tiny)

    def _back(self, C: Any) -> Any:
        return C if self.root is None else self.root[:, None] * C
