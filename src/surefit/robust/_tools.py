"""Small tools of the attacks: arguments checked, arrays of one kind, norms of rows."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from .._namespace import is_torch

__all__ = ["as_kind", "check_eps", "check_norm", "row_norms", "ulp"]


def check_eps(eps: Any) -> float:
    """A radius: a finite number >= 0."""
    if isinstance(eps, bool) or not isinstance(eps, Real) or not math.isfinite(eps) or eps < 0:
        raise ValueError(
            f"eps must be a finite number >= 0, the radius of the attack, got {eps!r}."
        )
    return float(eps)


def check_norm(norm: Any) -> float:
    """2 or infinity, from its spellings."""
    spelled = {"2": 2.0, "l2": 2.0, "inf": math.inf, "linf": math.inf}
    value = spelled.get(norm, norm) if isinstance(norm, str) else norm
    if isinstance(value, bool) or not isinstance(value, Real) or value not in (2, math.inf):
        raise ValueError(f"norm must be 2 or inf (also 'l2', 'linf'), got {norm!r}.")
    return float(value)


def as_kind(values: Any, model: Any) -> Any:
    """Values as an array of the kind, device and precision of ``model``."""
    if is_torch(model):
        import torch

        return torch.as_tensor(values, dtype=model.dtype, device=model.device)
    return np.asarray(values, dtype=model.dtype)


def row_norms(x: Any) -> Any:
    """The l2 norm of each row."""
    return ((x * x).sum(axis=1)) ** 0.5


def ulp(x: Any) -> float:
    """The rounding unit of x's precision."""
    if is_torch(x):
        import torch

        return float(torch.finfo(x.dtype).eps)
    return float(np.finfo(x.dtype).eps)
