"""Huber regression with its scale, 200 000 x 100, a tenth of the targets spoilt."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import correlated
from .evaluate import Huber
from .harness import Contender, Variant, decades, race
from .peers import fitting, ours
from .report import race_page

TITLE = "Huber regression"
TEXT = """
`HuberRegressor` with its defaults (epsilon = 1.35, alpha = 1e-4), the scale estimated with the
coefficients. statsmodels' `RLM` minimises something else (its scale is the median deviation, outside the
objective), so it has no place in this race.
"""
WHY: dict[str, str] = {}


def measure(options: Any) -> dict[str, Any]:
    import sklearn.linear_model

    model = ours("HuberRegressor")
    if model is None:
        return {"skipped": "surefit.linear_model has no HuberRegressor yet."}
    n, p = (3_000, 10) if options.quick else (200_000, 100)
    rng = np.random.default_rng(5)
    X = correlated(n, p, rng)
    y = X @ rng.standard_normal(p) + 1.0 + rng.standard_normal(n)
    spoilt = rng.random(n) < 0.1
    y[spoilt] += 20.0 * rng.standard_normal(int(spoilt.sum()))
    grid = decades(-2, -9)
    mine = Contender("surefit", [Variant("default", fitting(model, X, y, max_iter=10_000), grid)])
    peer = fitting(sklearn.linear_model.HuberRegressor, X, y, max_iter=10_000)
    peers = [Contender("scikit-learn", [Variant("", peer, grid)], goal=10)]
    title = f"Huber {n:,} x {p}".replace(",", " ")
    return {"races": [race(title, Huber(X, y, 1.35, 1e-4), mine, peers, pairs=options.pairs)]}


def page(results: dict[str, Any]) -> str:
    return race_page(TITLE, TEXT, results, WHY, "huber")
