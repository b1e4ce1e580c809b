"""What makes new kernels of kernels (KER-5): sums, products, multiples by a >= 0, and f(x) k(x, z) f(z).

With feature maps phi and psi these have the maps (phi, psi), phi (x) psi, sqrt(a) phi and f phi. A negative
multiple has none: -k(x, x) < 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._namespace import is_torch
from .base import Bound, Kernel, _rows, cast, number, take_rows
from .products import _LARGEST, _beside

__all__ = ["Product", "Reweighted", "Scaled", "Sum"]


class _Pair(Kernel):
    """Two kernels side by side."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    @property
    def positive(self) -> bool | None:
        """True where both are."""
        return True if self.left.positive and self.right.positive else None

    def resolve(self, X: Any) -> Kernel:
        self._check()
        return type(self)(self.left.resolve(X), self.right.resolve(X))

    def _check(self) -> None:
        for side in (self.left, self.right):
            if not isinstance(side, Kernel):
                raise TypeError(f"{type(self).__name__} needs two kernels, got {side!r}.")

    def block(self, X: Any, Z: Any) -> Any:
        return self.on(Z)(X)

    def diag(self, X: Any) -> Any:
        return self._combine(self.left.diag(X), self.right.diag(X))

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        kernel = self.resolve(Z)
        return _PairBound(kernel, Z, dtype)

    def _combine(self, first: Any, second: Any) -> Any:
        raise NotImplementedError


class Sum(_Pair):
    """k1(x, z) + k2(x, z); write ``k1 + k2``.

    Examples
    --------
    >>> from surefit.kernels import Gaussian, Linear
    >>> (Gaussian(1.0) + Linear())([[1.0]], [[1.0]]).tolist()
    [[2.0]]
    """

    def features(self, X: Any) -> Any:
        """Both maps side by side."""
        return _beside([self.left.features(X), self.right.features(X)])

    def _combine(self, first: Any, second: Any) -> Any:
        first += second
        return first


class Product(_Pair):
    """k1(x, z) k2(x, z); write ``k1 * k2``.

    Examples
    --------
    >>> from surefit.kernels import Linear
    >>> (Linear() * Linear())([[2.0]], [[3.0]]).tolist()
    [[36.0]]
    """

    def features(self, X: Any) -> Any:
        """Every product of a feature of the one and a feature of the other."""
        one, two = self.left.features(X), self.right.features(X)
        if one.shape[0] * one.shape[1] * two.shape[1] > _LARGEST:
            raise ValueError(
                f"{self!r} has {one.shape[1] * two.shape[1]} features, too many to write down: use the "
                "kernel itself."
            )
        return (one[:, :, None] * two[:, None, :]).reshape(one.shape[0], -1)

    def _combine(self, first: Any, second: Any) -> Any:
        first *= second
        return first


class _PairBound(Bound):
    def __init__(self, kernel: Any, Z: Any, dtype: Any) -> None:
        super().__init__(kernel, Z, dtype)
        self.left, self.right = kernel.left.on(Z, dtype), kernel.right.on(Z, dtype)

    def __call__(self, X: Any, out: Any = None) -> Any:
        return self.kernel._combine(self.left(X, out), self.right(X))

    def take(self, indices: Any, out: Any = None) -> Any:
        return self.kernel._combine(self.left.take(indices, out), self.right.take(indices))

    def gram(self, out: Any = None) -> Any:
        return self.kernel._combine(self.left.gram(out), self.right.gram())


class Scaled(Kernel):
    """a k(x, z) with a >= 0; write ``0.5 * k``.

    Examples
    --------
    >>> from surefit.kernels import Linear
    >>> (0.5 * Linear())([[2.0]], [[3.0]]).tolist()
    [[3.0]]
    """

    def __init__(self, scale: float, kernel: Kernel) -> None:
        self.scale = scale
        self.kernel = kernel

    @property
    def positive(self) -> bool | None:
        """As the kernel inside."""
        return self.kernel.positive

    def resolve(self, X: Any) -> Kernel:
        self._check()
        return Scaled(self.scale, self.kernel.resolve(X))

    def _check(self) -> None:
        words = (
            "A negative multiple of a kernel is not a kernel (KER-5): k(x, x) would be negative."
        )
        number(self, "scale", least=0.0, words=words)

    def block(self, X: Any, Z: Any) -> Any:
        return self.on(Z)(X)

    def diag(self, X: Any) -> Any:
        self._check()
        return _times(self.kernel.diag(X), self.scale)

    def features(self, X: Any) -> Any:
        """The map inside, times the root of the scale."""
        self._check()
        return self.kernel.features(X) * float(self.scale) ** 0.5

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        kernel: Any = self.resolve(Z)
        return _ScaledBound(kernel, Z, dtype)


class _ScaledBound(Bound):
    def __init__(self, kernel: Any, Z: Any, dtype: Any) -> None:
        super().__init__(kernel, Z, dtype)
        self.inner, self.scale = kernel.kernel.on(Z, dtype), kernel.scale

    def __call__(self, X: Any, out: Any = None) -> Any:
        return _times(self.inner(X, out), self.scale)

    def take(self, indices: Any, out: Any = None) -> Any:
        return _times(self.inner.take(indices, out), self.scale)

    def gram(self, out: Any = None) -> Any:
        return _times(self.inner.gram(out), self.scale)


class Reweighted(Kernel):
    """f(x) k(x, z) f(z), the third closure rule of KER-5.

    Parameters
    ----------
    kernel : Kernel
    weight : callable
        Maps rows of shape (n, p) to f of each, an array of shape (n,). Any sign will do.

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.kernels import Linear, Reweighted
    >>> cosine = Reweighted(Linear(), lambda X: 1.0 / np.linalg.norm(X, axis=1))
    >>> cosine(np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]])).round(2).tolist()
    [[0.96]]
    """

    def __init__(self, kernel: Kernel, weight: Callable[[Any], Any]) -> None:
        self.kernel = kernel
        self.weight = weight

    @property
    def positive(self) -> bool | None:
        """As the kernel inside."""
        return self.kernel.positive

    def resolve(self, X: Any) -> Kernel:
        return Reweighted(self.kernel.resolve(X), self.weight)

    def block(self, X: Any, Z: Any) -> Any:
        return self.on(Z)(X)

    def diag(self, X: Any) -> Any:
        X = _rows(X)
        return self.kernel.diag(X) * self._weights(X) ** 2

    def features(self, X: Any) -> Any:
        """The map inside, each row times f of it."""
        X = _rows(X)
        return self.kernel.features(X) * self._weights(X)[:, None]

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        return _ReweightedBound(self.resolve(Z), Z, dtype)

    def _weights(self, X: Any) -> Any:
        values = self.weight(X)
        values = values.to(X.dtype) if is_torch(values) else np.asarray(values, dtype=X.dtype)
        if tuple(values.shape) != (X.shape[0],):
            raise ValueError(
                f"Reweighted: weight gave shape {tuple(values.shape)} for {X.shape[0]} rows; it must give "
                "one number a row."
            )
        return values


class _ReweightedBound(Bound):
    def __init__(self, kernel: Any, Z: Any, dtype: Any) -> None:
        super().__init__(kernel, Z, dtype)
        self.inner, self.weights = kernel.kernel.on(Z, dtype), cast(kernel._weights(Z), self.dtype)

    def __call__(self, X: Any, out: Any = None) -> Any:
        kernel: Any = self.kernel
        return self._weigh(self.inner(X, out), cast(kernel._weights(X), self.dtype))

    def take(self, indices: Any, out: Any = None) -> Any:
        return self._weigh(self.inner.take(indices, out), take_rows(self.weights, indices))

    def _weigh(self, block: Any, left: Any) -> Any:
        block *= left[:, None]
        block *= self.weights
        return block


def _times(values: Any, scale: float) -> Any:
    values *= scale
    return values
