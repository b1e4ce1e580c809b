"""A user's functions, as the solvers see them: checked, in float64, and remembered at the last point."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._typing import BatchGradient, Gradient, Hessian, Objective, Vector, norm
from .assumptions import numerical_gradient

__all__ = ["Problem", "start_point"]


def start_point(x0: ArrayLike, name: str = "x0") -> Vector:
    """A finite float64 vector, or an error that says what to pass instead."""
    try:
        x = np.atleast_1d(np.array(x0, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be an array of numbers, got {x0!r}; for example {name}=[0.0, 0.0]."
        ) from error
    if x.ndim != 1 or x.size == 0:
        raise ValueError(
            f"{name} must be a non-empty vector, got shape {x.shape}; flatten it with {name}.ravel()."
        )
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite, got {x0!r}; replace NaN and infinities.")
    return x


class Problem:
    """f, its gradient and Hessian.

    The last value and the last gradient are remembered by the identity of the point, so that a solver,
    its line search and the certificate can each ask for them at the price of one. A value that is NaN
    counts as infinite: the run has left the domain of f.
    """

    def __init__(
        self,
        f: Objective,
        x0: Vector,
        grad: Gradient | None = None,
        hess: Hessian | None = None,
        grad_at: BatchGradient | None = None,
        n_samples: int | None = None,
    ) -> None:
        self._f, self._grad, self._hess, self._grad_at = f, grad, hess, grad_at
        self._everything = np.arange(n_samples or 0)
        self._shape = x0.shape
        self._value_at: tuple[Vector | None, float] = (None, math.nan)
        self._gradient_at: tuple[Vector | None, Vector] = (None, x0)
        self.largest_gradient = 0.0
        # Told of every gradient that is evaluated, with the point: see `_curvature.Path`.
        self.observer: Callable[[Vector, Vector], None] | None = None
        start = self.value(x0)
        if not math.isfinite(start):
            raise ValueError(
                f"f(x0) must be finite, got {float(self._scalar(f(x0)))!r} at x0={x0!r}; "
                "start inside the domain of f."
            )

    @property
    def has_gradient(self) -> bool:
        """Whether the caller supplied one; otherwise it is a central difference."""
        return self._grad is not None or self._grad_at is not None

    def value(self, x: Vector) -> float:
        """f(x) as a float; infinite outside the domain."""
        if x is self._value_at[0]:
            return self._value_at[1]
        value = self._scalar(self._f(x)) if np.isfinite(x).all() else math.inf
        value = math.inf if math.isnan(value) else value
        self._value_at = (x, value)
        return value

    def known_value(self, x: Vector) -> float:
        """f(x) where it was the last value evaluated, else NaN."""
        return self._value_at[1] if x is self._value_at[0] else math.nan

    def gradient(self, x: Vector) -> Vector:
        """The whole gradient at x."""
        if x is self._gradient_at[0]:
            return self._gradient_at[1]
        if not np.isfinite(x).all():
            return np.full(self._shape, np.nan)
        if self._grad is not None:
            g = self._checked("grad(x)", self._grad(x), self._shape)
        elif self._grad_at is not None:
            g = self.batch_gradient(x, self._everything)
        else:
            g = numerical_gradient(self.value, x)
        self._gradient_at = (x, g)
        self.largest_gradient = max(self.largest_gradient, norm(g))
        if self.observer is not None:
            self.observer(x, g)
        return g

    def batch_gradient(self, x: Vector, indices: NDArray[np.intp]) -> Vector:
        """The mean gradient of some terms at x."""
        assert self._grad_at is not None
        return self._checked("grad_at(x, indices)", self._grad_at(x, indices), self._shape)

    def hessian(self, x: Vector) -> NDArray[np.float64]:
        """The Hessian at x."""
        assert self._hess is not None
        return self._checked("hess(x)", self._hess(x), self._shape * 2)

    @staticmethod
    def _scalar(value: Any) -> float:
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "fiub":
            raise ValueError(
                f"f(x) must be one real number, got {type(value).__name__} of shape {array.shape}; "
                "reduce it with .sum() or .mean()."
            )
        return float(array.item())

    @staticmethod
    def _checked(name: str, array: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        result = np.asarray(array, dtype=np.float64)
        if result.size == 1 and math.prod(shape) == 1:
            return result.reshape(shape)
        if result.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape}, got {result.shape}; "
                "return one entry a coordinate of x0."
            )
        return result
