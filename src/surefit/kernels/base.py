"""What a kernel is: a function of two rows that is an inner product of features, with an algebra.

A :class:`Kernel` has plain parameters, as an estimator has, so that it can be cloned, searched over
(``kernel__gamma``) and saved. ``kernel(X, Z)`` is the block of values k(x_i, z_j). ``kernel.on(Z)`` is a
:class:`Bound`: what concerns Z alone (its centre, lengths, scaling) is computed once, and any number of
blocks against all of Z follow, into a buffer of the caller's where one is given.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from .._namespace import is_torch

__all__ = [
    "BlockBound",
    "Bound",
    "Kernel",
    "cast",
    "dense",
    "mirror",
    "number",
    "precision",
    "resolve_gamma",
    "take_rows",
]


class Kernel(BaseEstimator, ABC):
    """A kernel k(x, z); see :mod:`surefit.kernels` for those there are."""

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """The matrix k(x_i, z_j), in the precision of X; with ``Z=None`` that of X with itself."""
        X = _rows(X)
        if Z is None:
            return self.on(X).gram()
        return self.on(_rows(Z), X.dtype)(X)

    @abstractmethod
    def block(self, X: Any, Z: Any) -> Any:
        """The matrix k(x_i, z_j) of checked rows, for parameters that are numbers."""

    def diag(self, X: Any) -> Any:
        """The values k(x_i, x_i), without the rest of the matrix."""
        X = _rows(X)
        kernel = self.resolve(X)
        values = [kernel.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])]
        if is_torch(X):
            import torch

            return torch.stack(values)
        return np.array(values, dtype=X.dtype)

    def resolve(self, X: Any) -> Kernel:
        """A copy in which parameters that depend on the data are numbers; checks all of them."""
        kernel: Kernel = clone(self)
        kernel._check()
        gamma = getattr(kernel, "gamma", 0.0)
        if gamma is None or isinstance(gamma, str):
            kernel.set_params(gamma=resolve_gamma(kernel, gamma, X))
        return kernel

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        """This kernel against the rows of Z, ready for many blocks.

        The blocks have the precision of Z, or ``dtype``: distances are then taken between centred rows
        before these are rounded, which rounding Z itself to float32 would spoil.
        """
        return BlockBound(self.resolve(Z), Z, dtype)

    def features(self, X: Any) -> Any:
        """The explicit map phi(X), one row a sample, with k(x, z) = <phi(x), phi(z)>.

        There is one for linear and polynomial kernels, and for their sums, products and multiples.
        """
        raise ValueError(
            f"{self!r} has no finite feature map. Linear, Polynomial with an integer degree, and their sums, "
            "products and multiples have one; for the others use the kernel itself."
        )

    @property
    def positive(self) -> bool | None:
        """Whether every Gram matrix is positive semi-definite (KER-3); None where nobody knows."""
        return None

    def _check(self) -> None:
        """Raise an error that names the parameter which has no sense."""

    # ------------------------------------------------------------------ closure rules (KER-5)

    def __add__(self, other: Any) -> Kernel:
        from .closure import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from .closure import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            scaled = Scaled(float(other), self)
            scaled._check()
            return scaled
        return NotImplemented

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Kernel:
        from .closure import Product

        if isinstance(power, bool) or not isinstance(power, (int, np.integer)) or power < 1:
            raise ValueError(
                f"a kernel to the power {power!r} need not be a kernel; the power must be 1, 2, 3, ... "
                "(a product of kernels, KER-5)."
            )
        kernel: Kernel = self
        for _ in range(int(power) - 1):
            kernel = Product(kernel, self)
        return kernel


class Bound(ABC):
    """A kernel against fixed rows z_1, ..., z_m.

    Attributes
    ----------
    kernel : Kernel
        With numbers for all of its parameters.
    n : int
        How many rows Z has.
    dtype : dtype
        Of the blocks.
    """

    def __init__(self, kernel: Kernel, Z: Any, dtype: Any = None) -> None:
        self.kernel, self.n, self.dtype = kernel, int(Z.shape[0]), precision(Z, dtype)
        self._large = is_torch(Z) and Z.device.type != "cpu"

    @abstractmethod
    def __call__(self, X: Any, out: Any = None) -> Any:
        """The block k(x_i, z_j) for new rows X, into ``out`` where it is given."""

    @abstractmethod
    def take(self, indices: Any, out: Any = None) -> Any:
        """Rows of the Gram matrix of Z, by their indices (an integer array or a slice)."""

    def rows(self, first: int, last: int, out: Any = None) -> Any:
        """The rows first..last of the Gram matrix of Z."""
        return self.take(slice(first, last), out)

    def lower(self, first: int, last: int) -> Any:
        """Rows first..last of the Gram matrix of Z, up to column ``last``."""
        return np.ascontiguousarray(self.rows(first, last)[:, :last])

    def gram(self, out: Any = None) -> Any:
        """The whole Gram matrix of Z, exactly symmetric."""
        return mirror(self.rows(0, self.n, out))

    def blocks(self, X: Any = None, *, entries: int = 0) -> Iterator[tuple[slice, Any]]:
        """``(rows, k(X[rows], Z))`` over the rows of X, or of Z itself; each block overwrites the last."""
        n = self.n if X is None else int(X.shape[0])
        height = max(
            1, min(n, (entries or (1 << 28 if self._large else 1 << 21)) // max(1, self.n))
        )
        out = None
        for first in range(0, n, height):
            rows = slice(first, min(first + height, n))
            into = None if out is None else out[: rows.stop - rows.start]
            block = self.take(rows, into) if X is None else self(X[rows], into)
            out = block if out is None else out
            yield rows, block

    def dot(self, V: Any, X: Any = None) -> Any:
        """k(X, Z) @ V, or the Gram matrix of Z times V, without storing the matrix."""
        flat = V[:, 0] if V.ndim == 2 and V.shape[1] == 1 else V  # as a vector it is faster
        parts = [block @ flat for _, block in self.blocks(X)]
        if V.ndim == 2 and flat.ndim == 1:
            parts = [part[:, None] for part in parts]
        if parts and is_torch(parts[0]):
            import torch

            return torch.cat(parts)
        return np.concatenate(parts) if parts else np.zeros((0, *V.shape[1:]), dtype=self.dtype)


class BlockBound(Bound):
    """A kernel that has nothing to prepare: each block is computed from the rows."""

    def __init__(self, kernel: Kernel, Z: Any, dtype: Any = None) -> None:
        super().__init__(kernel, Z, dtype)
        self.Z = Z

    def __call__(self, X: Any, out: Any = None) -> Any:
        block = cast(self.kernel.block(X, self.Z), self.dtype)
        if tuple(block.shape) != (X.shape[0], self.n):
            raise ValueError(
                f"the kernel {self.kernel!r} gave a matrix of shape {tuple(block.shape)} for "
                f"{X.shape[0]} and {self.n} rows; it must be ({X.shape[0]}, {self.n})."
            )
        if not math.isfinite(float(block.sum())):
            raise ValueError(
                f"the kernel {self.kernel!r} gave NaN or infinity; it must give finite numbers."
            )
        if out is None:
            return block
        out[...] = block
        return out

    def take(self, indices: Any, out: Any = None) -> Any:
        return self(take_rows(self.Z, indices), out)


# ------------------------------------------------------------------------ rows


def _rows(X: Any) -> Any:
    """X as rows of floats: an array, a CSR matrix or a tensor."""
    if is_torch(X):
        X = X if X.is_floating_point() else X.double()
    elif sp.issparse(X):
        X = X.tocsr()
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    else:
        X = np.asarray(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(
            f"a kernel needs rows: a table of shape (n, p), got shape {tuple(X.shape)}. One row x is "
            "x.reshape(1, -1), one column x.reshape(-1, 1)."
        )
    return X


def take_rows(X: Any, indices: Any) -> Any:
    """Some rows of an array, CSR matrix or tensor."""
    if is_torch(X) and isinstance(indices, np.ndarray):
        import torch

        indices = torch.as_tensor(indices, device=X.device)
    return X[indices]


def precision(Z: Any, dtype: Any) -> Any:
    """``dtype`` as the library that holds Z spells it; that of Z where it is None."""
    if dtype is None:
        return Z.dtype
    if is_torch(Z):
        import torch

        return dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name)
    return np.dtype(dtype)


def cast(X: Any, dtype: Any) -> Any:
    """X in another precision; no copy where it has it."""
    return X.to(dtype) if is_torch(X) else X.astype(dtype, copy=False)


def dense(X: Any) -> Any:
    """X without sparse storage."""
    return X.toarray() if sp.issparse(X) else X


def mirror(K: Any, block: int = 512) -> Any:
    """K with its upper triangle copied from the lower one, in place."""
    n = K.shape[0]
    for i in range(0, n, block):
        j = min(i + block, n)
        K[:i, i:j] = K[i:j, :i].T
        square = K[i:j, i:j]
        if is_torch(K):
            K[i:j, i:j] = square.tril() + square.tril(-1).T
        else:
            K[i:j, i:j] = np.tril(square) + np.tril(square, -1).T
    return K


# ------------------------------------------------------------------------ parameters


def number(kernel: Kernel, name: str, *, least: float | None = None, words: str = "") -> float:
    """A parameter as a float; an error names it, its value and what to do."""
    value: Any = getattr(kernel, name)
    sound = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)  # type: ignore[unreachable]
    if not sound or (least is not None and float(value) < least):
        wanted = "a finite number" if least is None else f"a number >= {least:g}"
        raise ValueError(
            f"{type(kernel).__name__}: {name} must be {wanted}, got {value!r}. {words}".rstrip()
        )
    return float(value)


def resolve_gamma(kernel: Any, gamma: Any, X: Any) -> float:
    """scikit-learn's gammas: "scale" is 1 / (p var(X)), "auto" and None are 1 / p."""
    if gamma is None or gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        raise ValueError(
            f"{type(kernel).__name__}: gamma must be a number, 'scale', 'auto' or None, got {gamma!r}."
        )
    if is_torch(X):
        variance = float(X.double().var(correction=0))
    elif sp.issparse(X):
        mean = float(X.mean(dtype=np.float64))
        size = X.shape[0] * X.shape[1]
        variance = float((X.data.astype(np.float64) ** 2).sum()) / size - mean**2
    else:
        variance = float(X.var(dtype=np.float64))
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
