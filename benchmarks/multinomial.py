"""Softmax regression with a ridge penalty, 100 000 x 50, ten classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import correlated
from .evaluate import Softmax
from .harness import Contender, decades, race
from .peers import ours, peer, precisions
from .report import race_page

TITLE = "Softmax regression"
TEXT = "`LogisticRegression(C=1)` on ten classes, free intercepts."
WHY = {
    "scikit-learn lbfgs": """
        a third of our time is the certificate: exponentials and logarithms for every row and class, for
        the loss, its conjugate and the intercepts.
    """,
}
C = 1.0
FIXED: dict[str, Any] = {"C": C, "max_iter": 10_000}


def measure(options: Any) -> dict[str, Any]:
    n, p, k = (2_000, 10, 4) if options.quick else (100_000, 50, 10)
    rng = np.random.default_rng(2)
    X = correlated(n, p, rng)
    scores = X @ (rng.standard_normal((p, k)) / np.sqrt(p)) + rng.gumbel(size=(n, k))
    y = np.argmax(scores, axis=1)
    variants = precisions(ours("LogisticRegression"), X, y, decades(-2, -10), **FIXED)
    title = f"softmax {n:,} x {p} x {k}".replace(",", " ")
    problem = Softmax(X, y, C)
    mine = Contender("surefit", variants)
    return {"races": [race(title, problem, mine, _peers(X, y), pairs=options.pairs)]}


def page(results: dict[str, Any]) -> str:
    return race_page(TITLE, TEXT, results, WHY, "multinomial")


def _peers(X: Any, y: Any) -> list[Contender]:
    import sklearn.linear_model

    model, grid = sklearn.linear_model.LogisticRegression, decades(-2, -9)
    found = []
    for solver, goal in {"lbfgs": 5.0, "newton-cholesky": 2.0}.items():
        variants = precisions(model, X, y, grid, solver=solver, **FIXED)
        found.append(Contender(f"scikit-learn {solver}", variants, goal))
    if intelex := peer("sklearnex.linear_model"):
        variants = precisions(intelex.LogisticRegression, X, y, grid, solver="lbfgs", **FIXED)
        found.append(Contender("scikit-learn-intelex lbfgs", variants))
    return found
