"""The array library that holds a vector: numpy or torch, under the array API's names.

Losses, duality and solvers are written once: they ask for the namespace of the vectors they are given and use
its functions. Vectors over samples live where X lives (on a GPU, if X does); vectors over features are small
and are numpy arrays in float64.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._alone import is_torch
from ._ranks import RankVector

__all__ = [
    "array_namespace",
    "clip",
    "is_torch",
    "like",
    "samples_like",
    "scale_rows",
    "to_numpy",
    "where",
]


def array_namespace(x: Any) -> Any:
    """numpy, or torch under the array API's names, whichever holds ``x``."""
    return _torch_namespace() if is_torch(x) else np


@functools.cache
def _torch_namespace() -> Any:
    import torch

    try:
        compat = importlib.import_module("array_api_compat.torch")
    except ImportError:  # scikit-learn carries a copy
        compat = importlib.import_module("sklearn.externals.array_api_compat.torch")

    class Namespace:
        """array-api-compat's torch; a choice between two numbers is made in float64, not in float32."""

        def __getattr__(self, name: str) -> Any:
            return getattr(compat, name)

        @staticmethod
        def where(condition: Any, yes: Any, no: Any) -> Any:
            kinds = [v.dtype for v in (yes, no) if isinstance(v, torch.Tensor)]
            kind = kinds[0] if kinds else torch.float64
            yes, no = (torch.as_tensor(v, dtype=kind, device=condition.device) for v in (yes, no))
            return torch.where(condition, yes, no)

        @staticmethod
        def clip(x: Any, low: float | None, high: float | None) -> Any:
            return torch.clip(x, low, high)

    return Namespace()


def where(condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, else ``no``; either may be a number."""
    return array_namespace(condition).where(condition, yes, no)


def clip(x: Any, low: float | None, high: float | None) -> Any:
    """x kept between ``low`` and ``high``."""
    return array_namespace(x).clip(x, low, high)


def scale_rows(s: Any, x: Any) -> Any:
    """s_i x_i: each row of a vector or matrix times its weight."""
    return s * x if x.ndim == 1 else s[:, None] * x


def to_numpy(x: Any) -> NDArray[Any]:
    """x as a numpy array, from whatever device, and from all ranks that it is spread over."""
    if is_torch(x):
        x = x.detach().cpu()
        return (
            x.float() if str(x.dtype) == "torch.bfloat16" else x
        ).numpy()  # numpy has no bfloat16
    return x.everywhere() if isinstance(x, RankVector) else np.asarray(x)


def like(values: Any, model: Any) -> Any:
    """``values`` as an array of the kind, and on the device, of ``model``; the dtype is kept."""
    if not is_torch(model):
        return to_numpy(values)
    import torch

    return torch.as_tensor(values, device=model.device)


def samples_like(values: Any, model: Any) -> Any:
    """``values``, one for each sample that ``model`` has here, as a vector of its kind."""
    return model.like(values) if isinstance(model, RankVector) else like(values, model)
