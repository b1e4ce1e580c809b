"""Whole numbers among the arguments of functions, numpy's too; estimators use scikit-learn's intervals."""

from __future__ import annotations

from numbers import Integral
from typing import Any

__all__ = ["check_counts", "is_whole"]


def is_whole(value: Any, least: float = 1) -> bool:
    """Whether it is a whole number of at least so much; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def check_counts(**given: Any) -> None:
    """Whole numbers of at least 1; an error names the one that is not."""
    for name, value in given.items():
        if not is_whole(value):
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
