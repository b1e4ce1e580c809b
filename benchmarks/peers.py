"""The peers, where they are installed; benchmarks run with those that are there and name the others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .harness import Variant

__all__ = ["MISSING", "fitting", "ours", "peer", "precisions"]

PACKAGE = {
    "sklearnex": "scikit-learn-intelex",
    "celer": "celer",
    "skglm": "skglm",
    "liblinear": "liblinear-official",
    "statsmodels": "statsmodels",
}
MISSING: list[str] = []


def peer(module: str) -> Any:
    """The module, or None."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = PACKAGE[module.split(".")[0]]
        if package not in MISSING:
            MISSING.append(package)
        return None


def ours(name: str) -> Any:
    """A class of surefit.linear_model, or None while it is not written."""
    import surefit.linear_model

    return getattr(surefit.linear_model, name, None)


def fitting(
    model: Any, X: Any, y: Any, *, knob: str = "tol", **fixed: Any
) -> Callable[[Any], tuple[Any, Any]]:
    """A contender's function: fit ``model`` with ``knob`` at the setting, return its point."""

    def fit(setting: Any) -> tuple[Any, Any]:
        options = fixed if setting is None else fixed | {knob: setting}
        fitted = model(**options).fit(X, y)
        return fitted.coef_, fitted.intercept_

    return fit


def precisions(
    model: Any, X: Any, y: Any, settings: Sequence[Any] = (None,), **fixed: Any
) -> list[Variant]:
    """Variants of a fit on the data in float64 and in float32; labels stay as they are."""
    single = y.astype(np.float32) if y.dtype.kind == "f" else y
    return [
        Variant("float64", fitting(model, X, y, **fixed), settings),
        Variant("float32", fitting(model, X.astype(np.float32), single, **fixed), settings),
    ]
