"""The uncertified reference: scikit-learn's histogram gradient boosting on the same encoded columns.

It is there so that the user sees what the certified model gives up, if anything. It is measured on the same
hold-out, counted among the models of the bound, and neither shipped nor certified.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

__all__ = ["NAME", "cost_of", "fit_reference"]

NAME = "HistGradientBoosting"
SMALL = 4_000_000  # entries of a matrix up to which one thread does it: see below


class _Folded:
    """A fitted booster on encoded rows: the columns of a category become one column of codes."""

    def __init__(self, booster: Any, blocks: list[list[int]]) -> None:
        self.booster, self.blocks = booster, blocks

    def predict(self, X: Any) -> Any:
        return self.booster.predict(_fold(X, self.blocks))


def _fold(X: Any, blocks: list[list[int]]) -> Any:
    """One column a block: the place of the 1 among one-hot columns, the value of a single column."""
    parts = [
        X[:, block[0]]
        if len(block) == 1
        else np.where(X[:, block].any(axis=1), X[:, block].argmax(axis=1), len(block))
        for block in blocks
    ]
    return np.column_stack(parts)


def cost_of(X: Any, model: Any) -> float:
    """About how many seconds the booster will take: a hundred trees, or as many for each of three classes."""
    classes = len(model.classes_) if model.task == "classification" else 1
    trees = 100 * (classes if classes > 2 else 1)
    return trees * (0.003 + 1e-8 * X.size)


def fit_reference(encoder: Any, X: Any, y: Any, model: Any) -> Any:
    """The booster, fitted on the training part, as something that predicts encoded rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kinds = [feature["kind"] for feature in encoder.features_]
    blocks: list[list[int]] = []
    for places in encoder.blocks_.values():
        hot = [place for place in places if kinds[place] == "category"]
        blocks += ([hot] if hot else []) + [
            [place] for place in places if kinds[place] != "category"
        ]
    categorical = [len(block) > 1 and len(block) < 255 for block in blocks]
    make = (
        HistGradientBoostingClassifier
        if model.task == "classification"
        else HistGradientBoostingRegressor
    )
    booster = make(categorical_features=categorical, random_state=model.seed)
    folded = _fold(X, blocks)
    # a tree is thousands of short parallel parts, whose threads spin while they wait for each other: on a
    # machine that is busy with other work two of them take a hundred times as long as one
    with threadpool_limits(1 if folded.size <= SMALL else None, user_api="openmp"):
        return _Folded(booster.fit(folded, y), blocks)
