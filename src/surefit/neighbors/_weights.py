"""How much each neighbour counts."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["neighbour_weights"]


def neighbour_weights(distances: Any, weights: Any) -> Any:
    """Weights of neighbours from their distances; None where all count the same.

    With "distance", a neighbour at distance 0 takes all the weight.

    Examples
    --------
    >>> neighbour_weights(np.array([[1.0, 2.0], [0.0, 2.0]]), "distance").tolist()
    [[1.0, 0.5], [1.0, 0.0]]
    """
    if weights is None or (isinstance(weights, str) and weights == "uniform"):
        return None
    if callable(weights):
        return weights(distances)
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1.0 / distances
    infinite = np.isinf(inverse)
    at_zero = infinite.any(axis=1)
    inverse[at_zero] = infinite[at_zero]
    return inverse
