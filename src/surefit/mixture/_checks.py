"""Checks of initial parameters, in scikit-learn's words, and of what fits of mixtures leave."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from .._consistency import wrong_counts
from .._namespace import to_numpy
from ..certificate import Claim, Kind, Status

__all__ = [
    "checked_means",
    "checked_precisions",
    "checked_weights",
    "identity_claim",
    "run_inconsistencies",
]

Array = NDArray[np.float64]


def _checked(values: Any, shape: tuple[int, ...], name: str) -> Array:
    array: Array = check_array(
        to_numpy(values), dtype=np.float64, ensure_2d=False, allow_nd=len(shape) > 2
    )
    if array.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {array.shape}"
        )
    return array


def checked_weights(weights: Any, n_components: int) -> Array:
    """Initial weights: in [0, 1], of sum 1."""
    single = getattr(weights, "dtype", None) == np.float32
    array = _checked(weights, (n_components,), "weights")
    if (array < 0.0).any() or (array > 1.0).any():
        raise ValueError(
            "The parameter 'weights' should be in the range [0, 1], but got max value "
            f"{array.min():.5f}, min value {array.max():.5f}"
        )
    if abs(1.0 - array.sum()) > (1e-6 if single else 1e-8):
        raise ValueError(
            "The parameter 'weights' should be normalized, but got sum(weights) = "
            f"{array.sum():.5f}"
        )
    return array


def checked_means(means: Any, n_components: int, n_features: int) -> Array:
    """Initial means."""
    return _checked(means, (n_components, n_features), "means")


def checked_precisions(precisions: Any, kind: str, n_components: int, n_features: int) -> Array:
    """Initial precisions: positive, or symmetric and positive definite."""
    shape: tuple[int, ...] = {
        "full": (n_components, n_features, n_features),
        "tied": (n_features, n_features),
        "diag": (n_components, n_features),
        "spherical": (n_components,),
    }[kind]
    array = _checked(precisions, shape, f"{kind} precision")
    if kind in ("diag", "spherical"):
        if (array <= 0.0).any():
            raise ValueError(f"'{kind} precision' should be positive")
        return array
    for matrix in array.reshape(-1, n_features, n_features):
        if not np.allclose(matrix, matrix.T) or not (np.linalg.eigvalsh(matrix) > 0.0).all():
            raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")
    return array


def run_inconsistencies(model: Any) -> Iterator[str]:
    """What a run of EM leaves besides its bounds, which are the monotone claim's."""
    yield from wrong_counts(model, n_iter_=0)
    if model.n_iter_ > model.max_iter:
        yield f"n_iter_ is {model.n_iter_}, and max_iter={model.max_iter}"
    if model.n_iter_ == 0 and model.lower_bound_ != -math.inf:
        yield f"lower_bound_ is {model.lower_bound_}, and no step was made"
    if not isinstance(model.converged_, (bool, np.bool_)):
        yield f"converged_ must be True or False, and is {model.converged_!r}"
    elif not model.converged_ and model.n_iter_ != model.max_iter:
        yield f"converged_ is False, after {model.n_iter_} of {model.max_iter} steps"
    elif model.converged_ and len(model.lower_bounds_) > 1:
        rise = float(model.lower_bounds_[-1]) - float(model.lower_bounds_[-2])
        if rise > model.tol:  # a fall is the monotone claim's
            yield f"converged_ is True, where tol={model.tol} and the last step gained {rise:.1e}"


def identity_claim(worst: float, which: str) -> Claim:
    """log p = F(q) + KL is so for every model: it shows that the numbers are right, and no more."""
    statement = (
        f"log p(x) = E_q log p(x, z)/q + KL(q || p(z|x)) to {worst:.1e} of the terms, {which}; that is so "
        "for every model"
    )
    claim = Claim.check("evidence identity", statement, Kind.EXACT, worst, 1e-10, "EM-1")
    return replace(claim, status=Status.UNINFORMATIVE) if claim.status is Status.HOLDS else claim
