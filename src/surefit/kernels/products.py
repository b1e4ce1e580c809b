r"""Kernels of the inner product: linear <x, z>, polynomial (gamma <x, z> + coef0)^degree, sigmoid.

The polynomial kernel expands by the binomial theorem into inner products of tensor powers of x,

    (gamma <x, z> + c)^d = sum_k binom(d, k) c^(d-k) gamma^k <x (x) ... (x) x, z (x) ... (x) z>,

so its feature map stacks sqrt(binom(d, k) c^(d-k) gamma^k) times the k-th tensor power. For d = 2 and
gamma = c = 1 that is phi(x) = (vec xx', sqrt(2) x, 1), with p^2 + p + 1 entries (KER-1). Equal monomials may
be merged, which gives another map for the same kernel (KER-2).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._namespace import is_torch
from .base import Bound, Kernel, _rows, dense, number, precision
from .tiles import Points, tiled

__all__ = ["Linear", "Polynomial", "Sigmoid"]

_LARGEST = 1 << 28  # numbers of a feature matrix


class _Product(Kernel):
    """A function of <x, z>."""

    def block(self, X: Any, Z: Any) -> Any:
        return self.on(Z)(X)

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        kernel = self.resolve(Z)
        finish = functools.partial(_apply, kernel._function)
        prepare = functools.partial(_plain, precision(Z, dtype))
        return tiled(kernel, Z, prepare, finish, one=False, dtype=dtype)

    def diag(self, X: Any) -> Any:
        X = _rows(X)
        if sp.issparse(X):
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype, copy=False)
        else:
            squares = (X * X).sum(1)
        return self.resolve(X)._function(squares)

    def _function(self, products: Any) -> Any:
        """Kernel values from inner products, which it may overwrite."""
        raise NotImplementedError


class Linear(_Product):
    """<x, z>.

    Examples
    --------
    >>> from surefit.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    @property
    def positive(self) -> bool:
        """True."""
        return True

    def features(self, X: Any) -> Any:
        """X itself."""
        return dense(_rows(X))

    def _function(self, products: Any) -> Any:
        return products


class Polynomial(_Product):
    """(gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : float, default=3
        A whole number gives a kernel; scikit-learn allows others.
    gamma : float, "scale", "auto" or None, default=1.0
    coef0 : float, default=1.0
        Negative values do not give a kernel in general.

    Examples
    --------
    >>> from surefit.kernels import Polynomial
    >>> Polynomial(2)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    >>> Polynomial(2).features([[1.0, 2.0]]).round(3).tolist()
    [[1.0, 2.0, 2.0, 4.0, 1.414, 2.828, 1.0]]
    """

    def __init__(self, degree: Any = 3, gamma: Any = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def positive(self) -> bool | None:
        """True for a whole degree and ``coef0 >= 0``; a negative coef0 fails for some rows."""
        return True if float(self.degree).is_integer() and self.coef0 >= 0.0 else None

    def features(self, X: Any, *, distinct: bool = False) -> Any:
        """Scaled tensor powers of x, the highest first; ``distinct=True`` merges equal monomials."""
        X = dense(_rows(X))
        kernel = self.resolve(X)
        degree, gamma, coef0 = (float(v) for v in (kernel.degree, kernel.gamma, kernel.coef0))
        if not degree.is_integer() or coef0 < 0.0:
            raise ValueError(
                f"{self!r} has no feature map: that needs a whole degree and coef0 >= 0."
            )
        p, d = X.shape[1], int(degree)
        powers = [k for k in range(d, -1, -1) if k == d or coef0 > 0.0]
        count = sum(math.comb(p + k - 1, k) if distinct else p**k for k in powers)
        if count * max(1, X.shape[0]) > _LARGEST:
            raise ValueError(
                f"{self!r} has {count} features for {p} columns, too many to write down for {X.shape[0]} "
                "rows: use the kernel itself, or distinct=True, which merges equal monomials."
            )
        parts = []
        for k in powers:
            scale = math.sqrt(math.comb(d, k) * coef0 ** (d - k) * gamma**k)
            part = _monomials(X, k) if distinct else _tensor_power(X, k)
            parts.append(part * scale if is_torch(X) else part * X.dtype.type(scale))
        return _beside(parts)

    def _check(self) -> None:
        number(self, "degree", least=0.0)
        number(self, "coef0")
        if not isinstance(self.gamma, str) and self.gamma is not None:
            number(self, "gamma", least=0.0)

    def _function(self, products: Any) -> Any:
        products *= self.gamma
        products += self.coef0
        degree = float(self.degree)
        if not degree.is_integer() or degree > 16:
            return products**degree
        return _whole_power(products, int(degree))


class Sigmoid(_Product):
    """tanh(gamma <x, z> + coef0), scikit-learn's "sigmoid".

    Not a kernel: for most gamma and coef0 there are rows whose Gram matrix has a negative eigenvalue, so
    that no feature map exists. It is here because it is used; claims that need a kernel stay undecided.

    Parameters
    ----------
    gamma : float, "scale", "auto" or None, default=None
    coef0 : float, default=1.0

    Examples
    --------
    >>> from surefit.kernels import Sigmoid
    >>> Sigmoid(gamma=1.0, coef0=0.0)([[1.0]], [[0.5]]).round(4).tolist()
    [[0.4621]]
    """

    def __init__(self, gamma: Any = None, coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def _check(self) -> None:
        number(self, "coef0")
        if not isinstance(self.gamma, str) and self.gamma is not None:
            number(self, "gamma")

    def _function(self, products: Any) -> Any:
        products *= self.gamma
        products += self.coef0
        return products.tanh_() if is_torch(products) else np.tanh(products, out=products)


def _plain(dtype: Any, X: Any) -> Points:
    if is_torch(X):
        return Points(X.to(dtype), None)
    return Points(
        X.astype(dtype, copy=False) if sp.issparse(X) else np.ascontiguousarray(X, dtype), None
    )


def _apply(function: Any, products: Any, left: Points, right: Points, out: Any, start: int) -> None:
    values = function(products)
    if values is not out:
        out[:, start : start + values.shape[1]] = values


def _whole_power(x: Any, power: int) -> Any:
    """x^power by repeated squaring: exact symmetry, and faster than a general power."""
    result = None
    while power:
        if power & 1:
            result = x if result is None else result * x
        power >>= 1
        x = x * x if power else x
    return x * 0 + 1 if result is None else result


def _tensor_power(X: Any, k: int) -> Any:
    """x (x) ... (x) x, k times, flattened; 1 for k = 0."""
    power = X[:, :1] * 0 + 1
    for _ in range(k):
        power = (power[:, :, None] * X[:, None, :]).reshape(X.shape[0], -1)
    return power


def _monomials(X: Any, k: int) -> Any:
    """Distinct monomials of degree k, each times the root of how often the tensor power has it."""
    columns = []
    for chosen in itertools.combinations_with_replacement(range(X.shape[1]), k):
        times = math.factorial(k)
        for j in set(chosen):
            times //= math.factorial(chosen.count(j))
        column = X[:, 0] * 0 + 1
        for j in chosen:
            column = column * X[:, j]
        columns.append((column * float(times) ** 0.5)[:, None])
    return _beside(columns)


def _beside(parts: list[Any]) -> Any:
    if is_torch(parts[0]):
        import torch

        return torch.cat(parts, dim=1)
    return np.concatenate(parts, axis=1).astype(parts[0].dtype, copy=False)
