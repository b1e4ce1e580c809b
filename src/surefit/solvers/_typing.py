"""The kinds of callable that the solvers take, and two helpers they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BatchGradient",
    "Gradient",
    "Hessian",
    "Objective",
    "Projection",
    "Prox",
    "RandomState",
    "Vector",
    "as_generator",
    "norm",
    "vector",
]

Vector: TypeAlias = NDArray[np.float64]
Objective: TypeAlias = Callable[[Vector], float]
Gradient: TypeAlias = Callable[[Vector], Vector]
Hessian: TypeAlias = Callable[[Vector], NDArray[np.float64]]
BatchGradient: TypeAlias = Callable[[Vector, NDArray[np.intp]], Vector]
Projection: TypeAlias = Callable[[Vector], Vector]
Prox: TypeAlias = Callable[[Vector, float], Vector]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def vector(x0: ArrayLike) -> Vector:
    """A fresh float64 copy, so that a solver never writes into the caller's array."""
    return np.array(x0, dtype=np.float64)


def norm(v: NDArray[np.float64]) -> float:
    """Euclidean norm."""
    return float(np.linalg.norm(v))


def as_generator(random_state: RandomState) -> np.random.Generator:
    """One generator from whatever ``random_state`` is; a RandomState seeds it."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
