"""Which family serves an estimator: by its very class, since a subclass may fit otherwise."""

from __future__ import annotations

from typing import Any

from ...linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from .family import Family
from .logistic import LogisticFamily
from .ridge import RidgeClassifierFamily, RidgeFamily

__all__ = ["family_of"]

_FAMILIES: dict[type, type[Family]] = {
    LogisticRegression: LogisticFamily,
    Ridge: RidgeFamily,
    LinearRegression: RidgeFamily,
    RidgeClassifier: RidgeClassifierFamily,
}


def family_of(estimator: Any) -> type[Family] | None:
    """The family of an estimator, or None."""
    return _FAMILIES.get(type(estimator))
