"""Small tools of the attacks: arguments checked, arrays of one kind, norms of rows."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._namespace import is_torch

__all__ = ["as_kind", "check_eps", "check_norm", "checked_parts", "row_norms", "ulp"]


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


def checked_parts(threat: Any) -> dict[str, Any]:
    """The parts of a threat as floats and arrays; an error names the one that has no sense."""
    parts: dict[str, Any] = {"eps": check_eps(threat.eps), "norm": check_norm(threat.norm)}
    flips = threat.flips
    if isinstance(flips, bool) or not isinstance(flips, Integral) or flips < 0:
        raise ValueError(f"flips must be a whole number >= 0, got {flips!r}.")
    if threat.mutable is not None:
        mutable = np.asarray(threat.mutable)
        if mutable.dtype != np.bool_ or mutable.ndim != 1:
            raise ValueError(
                "mutable must be a vector of True and False, one a column, got "
                f"{mutable.dtype} of shape {mutable.shape}."
            )
        parts["mutable"] = mutable
    for name in ("lower", "upper", "step", "off", "on"):
        if getattr(threat, name) is not None:
            value = np.asarray(getattr(threat, name), dtype=np.float64)
            if value.ndim > 1 or np.isnan(value).any():
                raise ValueError(f"{name} must be a number or a vector without NaN, got {value!r}.")
            parts[name] = value
    step, lower, upper = (parts.get(name) for name in ("step", "lower", "upper"))
    if step is not None and not ((step >= 0) & np.isfinite(step)).all():
        raise ValueError(f"step must be >= 0 and finite, 0 for a continuous column, got {step!r}.")
    if lower is not None and upper is not None and (lower > upper).any():
        raise ValueError("lower must not exceed upper; in some column it does.")
    groups = [np.asarray(group, dtype=np.intp) for group in threat.groups or ()]
    columns = np.concatenate(groups) if groups else np.empty(0, dtype=np.intp)
    if any(group.ndim != 1 or not group.size for group in groups):
        raise ValueError("groups must be lists of columns, none of them empty.")
    if (columns < 0).any() or len(np.unique(columns)) != len(columns):
        raise ValueError("groups must be disjoint lists of columns >= 0; a column is named twice.")
    parts["groups"] = groups
    return parts


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
