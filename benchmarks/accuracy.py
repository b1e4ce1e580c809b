"""Right digits on NIST's certified least-squares problems, against scikit-learn's LinearRegression."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.linear_model
from tests.theory.nist_data import SETS

from surefit.linear_model import LinearRegression

from .report import table

TEXT = """\
## Right digits on ill-conditioned problems

NIST's Statistical Reference Datasets, linear regression: digits of the worst coefficient that
agree with the certified value. Rounding Filip's data to float64 alone leaves about 8 of its
digits. scikit-learn's default `tol=1e-6` drops small singular values; `tol=0` keeps them.
"""


def digits(model: Any, data: Any) -> float:
    """-log10 of the largest relative error of a coefficient, at most 15."""
    found = np.array([float(model.intercept_)] * data.intercept + model.coef_.tolist())
    true = np.array([float(text) for text in data.certified])
    error = float(np.max(np.abs(found - true) / np.abs(true)))
    return min(15.0, -np.log10(max(error, 1e-15)))


def measure(_: Any) -> dict[str, Any]:
    results = {}
    for data in SETS:
        X, y = data.arrays()
        options = {"fit_intercept": data.intercept}
        ours = digits(LinearRegression(**options).fit(X, y), data)
        peer = sklearn.linear_model.LinearRegression
        best = digits(peer(tol=0.0, **options).fit(X, y), data)
        default = digits(peer(**options).fit(X, y), data)
        results[data.name] = {"surefit": ours, "scikit-learn tol=0": best, "scikit-learn": default}
    return results


def page(results: dict[str, Any]) -> str:
    rows = []
    for name, found in results.items():
        shown = [max(found[key], 0.0) for key in ("surefit", "scikit-learn tol=0", "scikit-learn")]
        rows.append([name, *(f"{value:.1f}" for value in shown)])
    heads = ["set", "surefit", "scikit-learn, tol=0", "scikit-learn, default"]
    return f"{TEXT}\n{table(heads, rows)}\n"
