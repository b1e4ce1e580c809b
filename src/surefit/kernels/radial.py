r"""Kernels of the distance: Gaussian exp(-gamma ||x - z||^2) and Laplace exp(-gamma ||x - z||).

Both are positive definite and depend on x - z alone, so the rows may be moved: they are centred at the mean
of Z first, which keeps the lengths, and so the cancellation in ||x||^2 + ||z||^2 - 2<x, z>, as small as they
can be. What is left of it is at most some eps (||x||^2 + ||z||^2) gamma, absolutely; distances are clipped at
0 and k(z, z) is 1 exactly. The Laplace kernel takes a root, which would blow that up for close pairs:
their distances are computed from the differences.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._jit.exponential import gaussian_tile, laplace_l1_tile, laplace_tile
from .._namespace import is_torch
from .._threads import over_rows
from .base import Bound, Kernel, cast, dense, number, precision, take_rows
from .tiles import Points, tiled

__all__ = ["Gaussian", "Laplace"]


class _Radial(Kernel):
    gamma: Any

    @property
    def positive(self) -> bool:
        """True."""
        return True

    def diag(self, X: Any) -> Any:
        if is_torch(X):
            return X.new_ones(X.shape[0]) if X.is_floating_point() else X.double()[:, 0] * 0 + 1
        kind = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        return np.ones(X.shape[0] if hasattr(X, "shape") else len(X), dtype=kind)

    def block(self, X: Any, Z: Any) -> Any:
        return self.on(Z)(X)

    def _check(self) -> None:
        if not isinstance(self.gamma, str) and self.gamma is not None:
            number(self, "gamma", least=0.0, words="A wider kernel has a gamma near 0.")


class Gaussian(_Radial):
    r"""exp(-gamma ||x - z||^2), scikit-learn's "rbf".

    Parameters
    ----------
    gamma : float, "scale", "auto" or None, default=None
        1 / sigma of KER-4. "scale" is 1 / (p var(X)); "auto" and None are 1 / p.

    Examples
    --------
    >>> from surefit.kernels import Gaussian
    >>> Gaussian(gamma=0.5)([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.1353], [0.1353, 1.0]]
    """

    def __init__(self, gamma: Any = None) -> None:
        self.gamma = gamma

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        kernel = self.resolve(Z)
        prepare = _centred(Z, math.sqrt(kernel.gamma), precision(Z, dtype))
        return tiled(kernel, Z, prepare, _gaussian, one=True, dtype=dtype)


class Laplace(_Radial):
    r"""exp(-gamma ||x - z||), with the l2 norm as in KER-4, or the l1 norm of scikit-learn's "laplacian".

    Parameters
    ----------
    gamma : float, "scale", "auto" or None, default=None
        1 / sigma of KER-4; None is 1 / p.
    norm : {"l2", "l1"}, default="l2"

    Examples
    --------
    >>> from surefit.kernels import Laplace
    >>> float(Laplace(gamma=1.0)([[0.0, 0.0]], [[3.0, 4.0]])[0, 0]) == math.exp(-5.0)
    True
    """

    def __init__(self, gamma: Any = None, norm: str = "l2") -> None:
        self.gamma = gamma
        self.norm = norm

    def _check(self) -> None:
        super()._check()
        if self.norm not in ("l1", "l2"):
            raise ValueError(f"Laplace: norm must be 'l1' or 'l2', got {self.norm!r}.")

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        kernel = self.resolve(Z)
        scale = float(kernel.gamma)
        if self.norm == "l1":
            return _CityBound(kernel, Z, scale, dtype)
        prepare = _centred(Z, scale, precision(Z, dtype))
        return tiled(kernel, Z, prepare, _laplace, one=True, dtype=dtype)


def _centred(Z: Any, scale: float, kind: Any) -> Any:
    """Turns rows into Points of dtype ``kind``: minus the mean of Z, times ``scale``."""
    centre: Any
    if sp.issparse(Z):
        centre = np.asarray(Z.mean(axis=0, dtype=np.float64)).ravel()
    elif is_torch(Z):
        centre = Z.double().mean(dim=0)
    else:
        centre = Z.mean(axis=0, dtype=np.float64)

    def prepare(X: Any) -> Points:
        if sp.issparse(X):  # of many columns: centring would fill them
            rows = (X.astype(np.float64) * scale).tocsr()
            squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
            return Points(rows.astype(kind), squares.astype(kind))
        if is_torch(X):
            wide = X.double() if kind != X.dtype else X
            rows = (wide - centre.to(wide.dtype)).to(kind) * scale
            return Points(rows, (rows * rows).sum(dim=1))
        wide = X.astype(np.float64, copy=False) if kind != X.dtype else X
        rows = np.ascontiguousarray(wide - centre.astype(wide.dtype, copy=False), dtype=kind)
        rows *= rows.dtype.type(scale)
        return Points(rows, np.einsum("ij,ij->i", rows, rows))

    return prepare


def _gaussian(products: Any, left: Points, right: Points, out: Any, start: int) -> None:
    if is_torch(products):
        out.mul_(2.0).sub_(left.squares[:, None]).sub_(right.squares).clamp_(max=0.0).exp_()
        return
    gaussian_tile(products, left.squares, right.squares, out, start)


def _laplace(products: Any, left: Points, right: Points, out: Any, start: int) -> None:
    if is_torch(products):
        import torch

        mode = "donot_use_mm_for_euclid_dist"  # the root needs exact small distances
        out.copy_(torch.cdist(left.X, right.X, compute_mode=mode)).neg_().exp_()
        return
    if sp.issparse(left.X):
        both = left.squares[:, None] + right.squares
        squared = both - 2.0 * products
        for i, j in zip(*np.nonzero(squared < 1e-3 * both)):
            apart = left.X[[i]] - right.X[[j]]
            squared[i, j] = float((apart.data.astype(np.float64) ** 2).sum())
        np.exp(-np.sqrt(np.maximum(squared, 0.0)), out=out)
        return
    laplace_tile(products, left.squares, right.squares, left.X, right.X, out, start)


class _CityBound(Bound):
    """The Laplace kernel with the l1 norm: no inner product helps, the differences are summed."""

    def __init__(self, kernel: Kernel, Z: Any, scale: float, dtype: Any) -> None:
        super().__init__(kernel, Z, dtype)
        self.scale = scale
        self.Z = cast(Z * scale, self.dtype)
        self.across = None
        if not sp.issparse(Z) and not is_torch(Z):
            self.across = np.ascontiguousarray(self.Z.T)

    def __call__(self, X: Any, out: Any = None) -> Any:
        return self._fill(cast(X * self.scale, self.dtype), out)

    def take(self, indices: Any, out: Any = None) -> Any:
        return self._fill(take_rows(self.Z, indices), out)

    def _fill(self, X: Any, out: Any) -> Any:
        if is_torch(X):
            import torch

            block = torch.cdist(X, self.Z, p=1.0).neg_().exp_()
        elif self.across is None:
            from sklearn.metrics.pairwise import manhattan_distances

            rows = X if sp.issparse(X) else sp.csr_array(X)
            block = np.exp(-manhattan_distances(rows, self.Z)).astype(self.dtype, copy=False)
        else:
            rows, across = np.ascontiguousarray(dense(X)), self.across
            block = np.empty((len(rows), self.n), dtype=self.dtype)

            def work(first: int, last: int) -> None:
                for j in range(0, self.n, 1024):
                    part = np.ascontiguousarray(across[:, j : j + 1024])
                    laplace_l1_tile(rows[first:last], part, block[first:last], j)

            over_rows(len(rows), work, least=max(1, (1 << 16) // max(1, self.n)))
        if out is None:
            return block
        out[...] = block
        return out
