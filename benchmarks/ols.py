"""Least squares, 500 000 x 100, with an intercept."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import correlated
from .evaluate import LeastSquares
from .harness import Contender, Point, Variant, race
from .peers import fitting, ours, peer, precisions
from .report import race_page

TITLE = "Least squares"
TEXT = """
`LinearRegression` with its defaults. No tolerance to choose: each method ends where it ends. Everybody may
use the data in float32 as long as the gap on the float64 data is reached, the peers also in Fortran order.
"""
WHY = {
    "scikit-learn": """
        10× is 0.13 s. The matrix library needs 0.10 s for the product X'X of the float32 data alone on
        two such cores; ours takes 0.12 s without the certificate, and 0.04 s more for certificate and
        fingerprint.
    """,
    "scikit-learn-intelex": """
        its product is faster than the matrix library's that numpy brings (its whole fit takes less than
        X'X does there), and it neither refines, nor certifies, nor fingerprints. Ours without the
        certificate takes 0.12 s.
    """,
}


def measure(options: Any) -> dict[str, Any]:
    n, p = (4_000, 20) if options.quick else (500_000, 100)
    rng = np.random.default_rng(0)
    X = correlated(n, p, rng)
    y = X @ rng.standard_normal(p) + 2.0 + rng.standard_normal(n)
    mine = Contender("surefit", precisions(ours("LinearRegression"), X, y))
    title = f"OLS {n:,} x {p}".replace(",", " ")
    return {"races": [race(title, LeastSquares(X, y), mine, _peers(X, y), pairs=options.pairs)]}


def page(results: dict[str, Any]) -> str:
    return race_page(TITLE, TEXT, results, WHY, "ols")


def _peers(X: Any, y: Any) -> list[Contender]:
    import sklearn.linear_model

    by_column = np.asfortranarray(X)

    def variants(model: Any) -> list[Variant]:
        fortran = Variant("float64, Fortran order", fitting(model, by_column, y))
        return [*precisions(model, X, y), fortran]

    found = [Contender("scikit-learn", variants(sklearn.linear_model.LinearRegression), goal=10)]
    if intelex := peer("sklearnex.linear_model"):
        found.append(Contender("scikit-learn-intelex", variants(intelex.LinearRegression), goal=1))
    if statsmodels := peer("statsmodels.api"):
        found.append(Contender("statsmodels", _statsmodels(statsmodels, X, y)))
    return found


def _statsmodels(sm: Any, X: Any, y: Any) -> list[Variant]:
    A = np.column_stack([np.ones(len(X)), X])

    def fit(_: None) -> Point:
        params = sm.OLS(y, A).fit(method="qr").params
        return params[1:], params[0]

    return [Variant("qr", fit)]
