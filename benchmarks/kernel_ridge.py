"""Kernel ridge regression: 10 000 rows against scikit-learn, 200 000 rows by Nystrom in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np

from .data import bumps
from .evaluate_margins import KernelRidge
from .harness import Contender, Point, Variant, decades, race
from .machine import peak_memory
from .peers import ours
from .report import ROOT, race_goals, race_page, size, table

TITLE = "Kernel ridge regression"
TEXT = """
`KernelRidge` with a Gaussian kernel on a smooth function with noise. The gap of a point is half the squared
residual of (K + alpha I) a = y, over P(0). scikit-learn factors the matrix in float64. 200 000 rows would
need 320 GB for the matrix: `solver="nystrom"` fits as many centres as `n_components` says, in a new process
that reports its memory. The race has three pairs.
"""
WHY: dict[str, str] = {}
ALPHA = 0.1
LARGE = {"kernel": "rbf", "solver": "nystrom", "alpha": 1.0, "random_state": 0}


def measure(options: Any) -> dict[str, Any]:
    import sklearn.kernel_ridge

    model = ours("KernelRidge", "kernel_ridge")
    if model is None:
        return {"skipped": "surefit.kernel_ridge has no KernelRidge yet."}
    n, p = (800, 5) if options.quick else (10_000, 20)
    X, y = rows(n, p)
    fixed = {"kernel": "rbf", "gamma": 1.0 / p, "alpha": ALPHA}
    has_tol = "tol" in model().get_params()
    mine = Variant(
        "default", partial(_fit, model, X, y, fixed), decades(-3, -10) if has_tol else (None,)
    )
    peer = Variant("", partial(_fit, sklearn.kernel_ridge.KernelRidge, X, y, fixed))
    title = f"kernel ridge {size(n, p)}"
    found = race(
        title,
        KernelRidge(X, y, ALPHA, 1.0 / p),
        Contender("surefit", [mine]),
        [Contender("scikit-learn", [peer], goal=3)],
        pairs=options.pairs if options.quick else 3,
    )
    shape = (3_000, 5, 200) if options.quick else (200_000, 20, 2_000)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kernel_ridge", *map(str, shape)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    large = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-300:]}
    results = {"races": [found], "large": large}
    return results | {"goals": [*race_goals(results), _goal(large, shape)]}


def page(results: dict[str, Any]) -> str:
    text = race_page(TITLE, TEXT, results, WHY, "kernel_ridge")
    large = results["large"]
    if "error" in large:
        return text + f"\nThe large fit failed: {large['error']}\n"
    row = [f"{size(large['n'], large['p'])}, {size(large['centres'])} centres"]
    row += [f"{large['seconds']:.1f}", f"{large['peak MB']:.0f}", f"{large['r2']:.4f}"]
    claims = "".join(f"* *{name}* ({status}): {text}\n" for name, status, text in large["claims"])
    heads = ["ours alone, in a new process", "seconds", "most memory (RSS), MB", "R² on new rows"]
    return f"{text}\n{table(heads, [row])}\n\nIts certificate:\n\n{claims}"


def rows(n: int, p: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(13)
    X, z = bumps(n, p, rng)
    return X, z + 0.3 * rng.standard_normal(n)


def _fit(model: Any, X: Any, y: Any, fixed: dict[str, Any], tol: Any) -> Point:
    options = fixed if tol is None else fixed | {"tol": tol}
    return (model(**options).fit(X, y).dual_coef_,)


def _goal(large: dict[str, Any], shape: tuple[int, ...]) -> dict[str, str]:
    work = f"kernel ridge {size(*shape[:2])}, Nystrom"
    fine = "error" not in large and all(status != "fails" for _, status, _ in large["claims"])
    measured = (
        "failed" if "error" in large else f"{large['seconds']:.0f} s, {large['peak MB']:.0f} MB"
    )
    goal = "finishes within memory, certified residual"
    return {
        "work": work,
        "goal": goal,
        "measured": measured,
        "reached": "yes" if fine else "**no**",
    }


def large(n: int, p: int, centres: int) -> dict[str, Any]:
    """One fit in this process: seconds, the most memory it held, its claims, R^2 on 5 000 new rows."""
    X, y = rows(n + 5_000, p)
    model = ours("KernelRidge", "kernel_ridge")(n_components=centres, gamma=1.0 / p, **LARGE)
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    taken, peak = time.perf_counter() - start, peak_memory()
    claims = [[c.name, c.status.name.lower(), c.statement] for c in model.certificate_.claims]
    found = {"n": n, "p": p, "centres": centres, "seconds": taken, "peak MB": peak}
    return found | {"r2": float(model.score(X[n:], y[n:])), "claims": claims}


if __name__ == "__main__":
    print(json.dumps(large(*map(int, sys.argv[1:]))))
