"""Sparse logistic regression: an l1 penalty on text, 47 236 columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from .data import public, text_like
from .evaluate import Logistic
from .harness import Contender, Point, Variant, decades, race
from .peers import fitting, ours, peer
from .report import race_page

TITLE = "Logistic regression with an l1 penalty, sparse"
TEXT = """
`LogisticRegression(l1_ratio=1)` without an intercept (celer has none), C = 10 times the smallest that gives
a nonzero model, and 100 times. The data are vectors made like rcv1's (20 242 x 47 236, 0.15 % filled, rows
of unit length); the 1 500 rows of the real rcv1 where the folder of public data is there. saga is stopped
by `max_iter`, since its `tol` is not a gap.
"""
WHY = {
    "scikit-learn liblinear": """
        its sweeps update the Newton model in place and need few passes over the stored entries; ours
        takes Newton steps with products of their own, certifies and fingerprints, and ends one step
        beyond the gap asked for.
    """,
    "celer": """
        1 500 rows: the arithmetic takes a few milliseconds, the rest is the interpreter between small
        steps, checks, certificate and fingerprint.
    """,
}
FIXED: dict[str, Any] = {"fit_intercept": False, "max_iter": 10_000}


def measure(options: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n, p = (400, 1_000) if options.quick else (20_242, 47_236)
    sets = {"rcv1-like": text_like(n, p, 74, rng)}
    if not options.quick and (real := public("rcv1")) is not None:
        sets["rcv1"] = (real[0], (real[1] > 0).astype(np.int64))
    races = []
    for name, (X, y) in sets.items():
        X, sign = csr_matrix(X), 2.0 * y - 1.0
        smallest = 2.0 / float(np.max(np.abs(X.T @ sign)))
        for times in (10,) if options.quick else (10, 100):
            C = times * smallest
            fit = fitting(ours("LogisticRegression"), X, y, C=C, l1_ratio=1.0, **FIXED)
            mine = Contender("surefit", [Variant("default", fit, decades(-2, -9))])
            title = f"{name} {X.shape[0]:,} x {X.shape[1]:,}, C {times} x least".replace(
                ",", " ", 2
            )
            problem = Logistic(X, sign, C, l1=True, intercept=False)
            races.append(race(title, problem, mine, _peers(X, y, C), pairs=options.pairs))
    return {"races": races}


def page(results: dict[str, Any]) -> str:
    return race_page(TITLE, TEXT, results, WHY, "l1_logistic")


def _peers(X: Any, y: Any, C: float) -> list[Contender]:
    import sklearn.linear_model

    model = sklearn.linear_model.LogisticRegression
    by_column = csc_matrix(X)
    fixed: dict[str, Any] = {"C": C, "l1_ratio": 1.0, "random_state": 0, "fit_intercept": False}
    saga = fitting(model, X, y, knob="max_iter", solver="saga", tol=0.0, **fixed)
    liblinear = fitting(model, X, y, solver="liblinear", max_iter=10_000, **fixed)
    epochs = (3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
    found = [
        Contender("scikit-learn saga", [Variant("", saga, epochs, "epochs")], goal=5, cap=15.0),
        Contender(
            "scikit-learn liblinear", [Variant("", liblinear, decades(-1, -7))], goal=5, cap=30.0
        ),
    ]
    if celer := peer("celer"):
        fit = fitting(
            celer.LogisticRegression, by_column, y, C=C, fit_intercept=False, max_iter=100
        )
        found.append(Contender("celer", [Variant("", fit, decades(-2, -9))], goal=1.5))
    if skglm := peer("skglm"):
        found.append(Contender("skglm", [_skglm(skglm, by_column, y, C)]))
    if peer("liblinear.liblinearutil"):
        found.append(_liblinear(X, y, C))
    return found


def _skglm(skglm: Any, X: Any, y: Any, C: float) -> Variant:
    alpha = 1.0 / (C * X.shape[0])

    def fit(tol: float) -> Point:
        fitted = skglm.SparseLogisticRegression(
            alpha=alpha, tol=tol, fit_intercept=False, max_iter=200, max_epochs=10_000
        ).fit(X, 2 * y - 1)
        return (fitted.coef_,)

    return Variant("", fit, decades(-2, -9))


def _liblinear(X: Any, y: Any, C: float) -> Contender:
    from liblinear.liblinearutil import parameter, problem, train

    data = problem(2.0 * y - 1.0, X)

    def fit(tol: float) -> Point:
        w, _ = train(data, parameter(f"-s 6 -c {C} -e {tol} -q")).get_decfun()
        return (np.array(w),)

    return Contender("LIBLINEAR", [Variant("-s 6", fit, decades(-1, -7))], cap=30.0)
