"""Fold and path reuse: one computation for many candidates and folds.

:func:`fold_plan` returns ``None`` where nothing can be shared; each candidate is then fitted on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

__all__ = ["FoldPlan", "fold_plan"]


class FoldPlan(Protocol):
    """How to fit many candidates on the folds of one data set together."""

    name: str

    def train(self, k: int) -> tuple[Any, Any]:
        """X and y of the training rows of fold k."""

    def test(self, k: int) -> tuple[Any, Any]:
        """X and y of the test rows of fold k."""

    def fold(self, k: int) -> Iterator[tuple[int, Any, float]]:
        """(candidate, the fitted model or the exception that its fit raised, seconds) in fold k.

        A candidate that does not occur is fitted on its own.
        """


def fold_plan(
    estimator: Any,
    candidates: list[dict[str, Any]],
    X: Any,
    y: Any,
    splits: list[tuple[Any, Any]],
    *,
    fit_params: dict[str, Any],
    scorers: Any,
) -> FoldPlan | None:
    """A plan, or ``None``: fit each candidate on its own."""
    return None
