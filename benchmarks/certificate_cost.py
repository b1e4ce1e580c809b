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

ROUNDS = 7


def problems() -> dict[str, tuple[Any, Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 50))
    w = rng.standard_normal(50)
    y = X @ w + rng.standard_normal(100_000)
    labels = (y > 0).astype(int)
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    wide = rng.standard_normal((300, 20_000))
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


def measure(model: Any, X: Any, y: Any) -> dict[str, float]:
    model.set_params(certify=False).fit(X, y)  # warm: kernels compiled, pages touched
    sums: dict[str, list[float]] = {"fit": [], "certify": [], "operations": []}
    columns = 1 if np.ndim(model.coef_) == 1 else len(model.coef_)
    W, R = np.ones((X.shape[1], columns)), np.ones((X.shape[0], columns))
    Xv, yv, _ = model._validate_training_data(X, y, None, reset=False)
    design = as_design(Xv)
    for _ in range(ROUNDS):
        sums["fit"].append(clock(lambda: model.fit(X, y)))
        sums["certify"].append(
            clock(lambda: (model._certify(Xv, yv, None, full=False), fingerprint(Xv, yv, None)))
        )
        sums["operations"].append(
            clock(lambda: (design.dot(W), design.tdot(R), fingerprint(Xv, yv, None)))
        )
    return {name: statistics.median(values) for name, values in sums.items()}


def main() -> tuple[dict[str, Any], str]:
    lines = [
        "## What a certificate costs",
        "",
        "Seconds, medians of 7 interleaved rounds. *operations*: one prediction, one adjoint product and one",
        "fingerprint on the same data. *share*: certifying over fit plus certifying.",
        "",
        "| work | fit | certify | operations | certify / operations | share |",
        "|---|---|---|---|---|---|",
    ]
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, X, y) in problems().items():
            t = results[name] = measure(model, X, y)
            ratio, share = t["certify"] / t["operations"], t["certify"] / (t["fit"] + t["certify"])
            lines.append(
                f"| {name} | {t['fit']:.4f} | {t['certify']:.4f} | {t['operations']:.4f} "
                f"| {ratio:.2f} | {share:.0%} |"
            )
    return results, "\n".join(lines)
