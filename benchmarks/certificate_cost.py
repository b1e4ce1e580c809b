"""What a certificate costs, against the fit and against the three operations it is made of.

For each estimator: the time of a fit without a certificate, the time that certifying adds, and the
time of one prediction, one adjoint product and one fingerprint on the same data, all in one
process, interleaved.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from surefit.design import as_design
from surefit.fingerprint import fingerprint
from surefit.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
)

from .report import table

ROUNDS = 7
TEXT = """\
## What a certificate costs

Seconds, medians of 7 interleaved rounds. *operations*: one prediction, one adjoint product and one
fingerprint on the same data. *fit / pass*: how many passes (a prediction or an adjoint product) the fit is
worth. *share*: certifying over fit plus certifying.
"""


def problems(shrink: int) -> dict[str, tuple[Any, Any, Any]]:
    rng, n = np.random.default_rng(0), 100_000 // shrink
    X = rng.standard_normal((n, 50))
    w = rng.standard_normal(50)
    y = X @ w + rng.standard_normal(n)
    labels = (y > 0).astype(int)
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    wide = rng.standard_normal((300, 20_000 // shrink))
    target = wide[:, :20] @ np.ones(20) + rng.standard_normal(300)
    return {
        "LinearRegression 100k x 50": (LinearRegression(), X, y),
        "Ridge 100k x 50": (Ridge(), X, y),
        "Lasso 100k x 50": (Lasso(alpha=0.05), X, y),
        "Lasso 300 x 20k": (Lasso(alpha=0.3), wide, target),
        "ElasticNet 300 x 20k": (ElasticNet(alpha=0.3), wide, target),
        "LogisticRegression 100k x 50": (LogisticRegression(), X, labels),
        "LogisticRegression l1 100k x 50": (LogisticRegression(C=0.01, l1_ratio=1.0), X, labels),
        "LogisticRegression 3 classes 100k x 50": (LogisticRegression(), X, classes),
        "Perceptron 100k x 50": (Perceptron(), X, labels),
    }


def clock(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def costs(model: Any, X: Any, y: Any, rounds: int) -> dict[str, float]:
    model.set_params(certify=False).fit(X, y)  # warm: kernels compiled, pages touched
    sums: dict[str, list[float]] = {"fit": [], "certify": [], "operations": [], "pass": []}
    columns = 1 if np.ndim(model.coef_) == 1 else len(model.coef_)
    W, R = np.ones((X.shape[1], columns)), np.ones((X.shape[0], columns))
    Xv, yv, _ = model._validate_training_data(X, y, None, reset=False)
    design = as_design(Xv)
    for _ in range(rounds):
        sums["fit"].append(clock(lambda: model.fit(X, y)))
        sums["certify"].append(
            clock(
                lambda: (
                    model._certify(Xv, yv, None, full=False, tol=1e-4),
                    fingerprint(Xv, yv, None),
                )
            )
        )
        sums["operations"].append(
            clock(lambda: (design.dot(W), design.tdot(R), fingerprint(Xv, yv, None)))
        )
        sums["pass"].append(clock(lambda: (design.dot(W), design.tdot(R))) / 2)
    return {name: statistics.median(values) for name, values in sums.items()}


def measure(options: Any) -> dict[str, Any]:
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, X, y) in problems(100 if options.quick else 1).items():
            rows[name] = costs(model, X, y, 2 if options.quick else ROUNDS)
    return {"rows": rows, "goals": [goal(rows)]}


def share(row: dict[str, float]) -> float:
    return row["certify"] / (row["fit"] + row["certify"])


def goal(rows: dict[str, dict[str, float]]) -> dict[str, str]:
    """A fit that takes as long as 40 passes (of a prediction or an adjoint product) may spend 5 % on it."""
    long = {name: row for name, row in rows.items() if row["fit"] >= 40 * row["pass"]}
    worst = max(long, key=lambda name: share(long[name]), default=None)
    return {
        "work": "certificate, where the fit takes as long as 40 passes or more",
        "goal": "at most 5 % of the time",
        "measured": f"{share(long[worst]):.0%} ({worst})" if worst else "no such fit",
        "reached": "–" if worst is None else "yes" if share(long[worst]) <= 0.05 else "**no**",
    }


def page(results: dict[str, Any]) -> str:
    lines = []
    for name, t in results["rows"].items():
        shown = [f"{t[key]:.4f}" for key in ("fit", "certify", "operations")]
        passes, ratio = t["fit"] / t["pass"], t["certify"] / t["operations"]
        lines.append([name, *shown, f"{passes:.0f}", f"{ratio:.2f}", f"{share(t):.0%}"])
    heads = ["work", "fit", "certify", "operations", "fit / pass", "certify / operations", "share"]
    return f"{TEXT}\n{table(heads, lines)}\n"
