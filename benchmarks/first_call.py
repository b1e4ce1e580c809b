"""The first call in a new process: how many kernels are compiled, with cold caches and with warm ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from .report import ROOT, table

TITLE = "First call in a new process"
TEXT = """
Each estimator is fitted in a new Python process, first with an empty cache of numba, then twice with the
cache that this left. *compiled* counts numba's own compilation events; the goal with a warm cache is none.
*first* and *second* are the seconds of the first and second `fit` in that process, on small data, imports
included in the first.
"""
FITS = {
    "LinearRegression": "LinearRegression().fit(X, y)",
    "Ridge": "Ridge().fit(X, y)",
    "Lasso": "Lasso(alpha=0.1).fit(X, y)",
    "Lasso, sparse": "Lasso(alpha=0.1).fit(S, y)",
    "lasso_path, several targets": "lasso_path(X, Y, alphas=[0.3, 0.1])",
    "LogisticRegression": "LogisticRegression().fit(X, c)",
    "LogisticRegression, l1, sparse": "LogisticRegression(l1_ratio=1.0).fit(S, c)",
    "LogisticRegression, three classes": "LogisticRegression().fit(X, k)",
    "Perceptron, sparse": "Perceptron().fit(S, c)",
    "HuberRegressor": "HuberRegressor().fit(X, y)",
    "QuantileRegressor": "QuantileRegressor(alpha=0.0).fit(X, y)",
    "SGDClassifier": "SGDClassifier().fit(X, c)",
    "SGDRegressor, sparse": "SGDRegressor().fit(S, y)",
}
CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.sparse as sp
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5)); S = sp.csr_array(X * (X > 0)); w = np.arange(1.0, 6.0)
y = X @ w + rng.standard_normal(200); c = (y > 0).astype(int); k = np.digitize(y, [-3.0, 3.0])
Y = np.stack([y, -y], axis=1)
import numba.core.event as event
with event.install_recorder("numba:compile") as compiled:
    start = time.perf_counter()
    import surefit.linear_model
    if not hasattr(surefit.linear_model, sys.argv[1]):
        print(json.dumps(None)); raise SystemExit
    exec(f"from surefit.linear_model import {sys.argv[1]}")
    exec(sys.argv[2]); first = time.perf_counter() - start
    start = time.perf_counter(); exec(sys.argv[2]); second = time.perf_counter() - start
count = sum(1 for _, item in compiled.buffer if item.is_start)
print(json.dumps({"compiled": count, "first": first, "second": second}))
"""


def measure(options: Any) -> dict[str, Any]:
    chosen = ["Ridge", "Lasso"] if options.quick else list(FITS)
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        for state in ("cold", "warm"):
            for name in chosen:
                found = fit(name, cache)
                if found is not None:
                    rows.setdefault(name, {})[state] = found
    rows = {name: row for name, row in rows.items() if len(row) == 2}
    most = max(row["warm"]["compiled"] for row in rows.values())
    goal = {
        "work": "first call in a new process, caches warm",
        "goal": "no kernel compiles",
        "measured": f"{most} compiled",
        "reached": "yes" if most == 0 else "**no**",
    }
    return {"rows": rows, "goals": [goal]}


def fit(name: str, cache: str) -> Any:
    """Two fits in a new process: kernels compiled, seconds; None while the class is not there."""
    command = [sys.executable, "-c", CHILD, name.split(",")[0], FITS[name]]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def page(results: dict[str, Any]) -> str:
    lines = []
    for name, row in results["rows"].items():
        cold, warm = row["cold"], row["warm"]
        lines.append([
            name, str(cold["compiled"]), str(warm["compiled"]), f"{cold['first']:.1f}",
            f"{warm['first']:.2f}", f"{warm['second']:.4f}",
        ])  # fmt: skip
    heads = [
        "fit",
        "compiled, cold",
        "compiled, warm",
        "first s, cold",
        "first s, warm",
        "second s, warm",
    ]
    return "\n".join([f"## {TITLE}", "", TEXT.strip(), "", table(heads, lines), ""])
