"""How far a mean of bounded losses can be from its expectation: see :mod:`surefit.stats.bounds`."""

from __future__ import annotations

from ..stats.bounds import (
    bernstein_radius,
    clopper_pearson,
    empirical_bernstein,
    hoeffding_radius,
    selection_excess,
)

__all__ = [
    "bernstein_radius",
    "clopper_pearson",
    "empirical_bernstein",
    "hoeffding_radius",
    "selection_excess",
]
