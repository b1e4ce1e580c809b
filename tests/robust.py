"""Made data for the tests of robust regression."""

from __future__ import annotations

import numpy as np

__all__ = ["make", "many"]


def make(n=60, p=5, *, seed=0, tails=1.5):
    """X, y and weights: a linear model with t-distributed errors, of this many degrees of freedom."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    y = 3.0 + X @ rng.normal(size=p) + rng.standard_t(tails, size=n)
    return X, y, rng.uniform(0.2, 3.0, size=n)


def many(n=40_000):
    """X and y with coefficients (1, 2, -1) and intercept 1, enough rows for the paths that sample them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) + np.array([5.0, 0.0, -2.0])
    y = X @ [1.0, 2.0, -1.0] + 1.0 + rng.standard_t(2, size=n)
    return X, y
