"""Lasso paths: 100 penalties from the largest useful one down to a hundredth of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from .data import correlated, public, text_like, wide
from .evaluate import LassoPath
from .harness import Contender, Point, Variant, decades, race
from .peers import peer
from .report import race_page

TITLE = "Lasso paths"
TEXT = """
`lasso_path` over 100 penalties, without an intercept, judged by the *worst* gap along the path. Every
contender gets columns in one piece (Fortran order, or compressed columns). scikit-learn is tried with and
without a precomputed Gram matrix where n > p.
"""
WHY = {
    "dense 50000 x 200; scikit-learn": """
        with 200 columns the whole path costs less than their Gram matrix, which both sides compute
        once: with `precompute=True` scikit-learn is at that floor too.
    """,
    "leukemia, dense 72 x 7129; scikit-learn": """
        40 ms for 100 penalties: most of it is the interpreter between the small steps of the active-set
        method, not arithmetic.
    """,
    "sparse 5000 x 47236; scikit-learn": """
        columns that hardly overlap are what coordinate descent likes best, and 2 500 coefficients are
        in use at the end: a factor of that size, and conjugate gradients beyond it, gain little on its
        sweeps.
    """,
    "sparse 5000 x 47236; celer": "the same.",
    "sparse 100000 x 1000; scikit-learn": """
        ten looks at all of X, each for up to sixteen penalties, are half of our time: products of a
        sparse matrix with a few dense columns, on one thread.
    """,
}


def measure(options: Any) -> dict[str, Any]:
    races = []
    for title, X, y in _problems(options.quick):
        largest = float(np.max(np.abs(X.T @ y))) / len(y)
        alphas = np.geomspace(largest, 0.01 * largest, 10 if options.quick else 100)
        mine = Contender("surefit", [Variant("default", _ours(X, y, alphas), decades(-3, -9))])
        problem = LassoPath(X, y, alphas)
        races.append(race(title, problem, mine, _peers(X, y, alphas), pairs=options.pairs))
    return {"races": races}


def page(results: dict[str, Any]) -> str:
    return race_page(TITLE, TEXT, results, WHY, "lasso_path")


def _problems(quick: bool) -> Any:
    rng = np.random.default_rng(4)
    shrink = 20 if quick else 1
    n, p = 400 // (4 if quick else 1), 20_000 // shrink
    yield f"dense {n} x {p}", *wide(n, p, 40, rng)
    n, p = 50_000 // shrink, 200 // (4 if quick else 1)
    X = np.asfortranarray(correlated(n, p, rng))
    signal = X[:, ::4] @ rng.standard_normal(len(X[0, ::4]))
    y = signal + signal.std() * rng.standard_normal(n)
    yield f"dense {n} x {p}", X, y - y.mean()
    if not quick and (real := public("leukemia")) is not None:
        yield f"leukemia, dense {real[0].shape[0]} x {real[0].shape[1]}", *real
    for n, p, terms in ((5_000, 47_236, 74), (100_000, 1_000, 20)):
        n, p = n // shrink, p // (4 if quick else 1)
        S, _ = text_like(n, p, terms, rng)
        w = rng.standard_normal(p) * (rng.random(p) < 0.02)
        signal = S @ w
        y = signal + 0.5 * signal.std() * rng.standard_normal(n)
        yield f"sparse {n} x {p}", csc_matrix(S), y - y.mean()


def _ours(X: Any, y: Any, alphas: Any) -> Any:
    from surefit.linear_model import lasso_path

    return lambda tol: (lasso_path(X, y, alphas=alphas, tol=tol, max_iter=10_000)[1],)


def _peers(X: Any, y: Any, alphas: Any) -> list[Contender]:
    import sklearn.linear_model

    path, grid = sklearn.linear_model.lasso_path, decades(-3, -9)

    def sklearn_path(precompute: Any) -> Any:
        def fit(tol: float) -> Point:
            options = {"tol": tol, "max_iter": 100_000, "precompute": precompute}
            return (path(X, y, alphas=alphas, copy_X=False, **options)[1],)

        return fit

    choices = {"": False} if X.shape[0] < X.shape[1] else {"": False, "precompute": True}
    variants = [Variant(label, sklearn_path(choice), grid) for label, choice in choices.items()]
    found = [Contender("scikit-learn", variants, goal=10, cap=20.0)]
    if celer := peer("celer"):

        def celer_fit(tol: float) -> Point:
            return (celer.celer_path(X, y, "lasso", alphas=alphas, tol=tol, max_iter=100)[1],)

        found.append(Contender("celer", [Variant("", celer_fit, grid)], goal=2, cap=20.0))
    if skglm := peer("skglm"):

        def skglm_fit(tol: float) -> Point:
            model = skglm.Lasso(tol=tol, fit_intercept=False, max_iter=200)
            return (model.path(X, y, alphas)[1],)

        found.append(Contender("skglm", [Variant("", skglm_fit, grid)], cap=20.0))
    return found
