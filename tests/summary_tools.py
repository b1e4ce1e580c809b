"""What the tests of summaries share: a made problem, and comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["COVERAGE", "UNPENALISED", "close", "made", "with_ones"]

UNPENALISED: dict[str, Any] = {"C": np.inf, "tol": 1e-13, "max_iter": 200}
COVERAGE = 4.5  # standard deviations of a binomial count: a false alarm in 150 000 seeds


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def made(
    n: int = 60, p: int = 4, seed: int = 0, targets: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features with unequal means, and targets with noise of variance 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4) + np.arange(p)
    noise = rng.normal(size=n if targets is None else (n, targets))
    return X, ((X @ np.arange(1.0, p + 1) + 2.0) + noise.T).T


def close(found: Any, want: Any, rtol: float = 1e-9) -> None:
    """Equal numbers in equal order, whatever the shape; one number stands for all."""
    found, want = np.ravel(found), np.ravel(want)
    want = np.full_like(found, want[0]) if want.size == 1 else want
    np.testing.assert_allclose(found, want, rtol=rtol)
