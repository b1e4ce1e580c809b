"""Grid searches in which the fits share their work, against one fit after another in two processes."""

from __future__ import annotations

import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .data import correlated, labels
from .harness import seconds, summary
from .kernel_svm import rows as two_classes
from .peers import ours
from .report import ROOT, goal_line, ratio_text, short, size, table

TITLE = "Grid searches"
TEXT = """
`GridSearchCV(model, grid, cv=5).fit(X, y)`, refit and certificate included, against scikit-learn's with
`n_jobs=2`, its processes started before the clock. scikit-learn's runs take long, so there is one of each,
ended after {cap:.0f} s (the ratio is then a lower bound); ours is the median of {ours}. *difference* is the
largest difference between the mean scores of a candidate, both with their default tolerances; *same choice*
says whether both picked the same candidate.
"""
WHY = {
    "Gaussian SVM, 20 C, 3 000 x 10": """
        what is shared is the kernel matrix, a small part of a fit of 2 400 rows; the machines
        themselves differ from C to C in hundreds of multipliers, and each takes some eight linear
        systems in its free ones. A fit takes ours 29 ms and scikit-learn 119 ms of one core, and
        scikit-learn's two processes use both cores where ours uses one. 10× would take a path that
        follows the multipliers from one change of the active set to the next.
    """,
}
CAP, REPEATS = 240.0, 3


class Case(NamedTuple):
    """A model, its grid and the data, with the goal."""

    work: str
    module: str
    name: str
    fixed: dict[str, Any]
    grid: dict[str, Any]
    X: Any
    y: Any
    goal: float | None


def measure(options: Any) -> dict[str, Any]:
    search = ours("GridSearchCV", "model_selection")
    if search is None:
        return {"skipped": "surefit.model_selection has no GridSearchCV yet."}
    rows, missing = [], []
    for case in _cases(options.quick):
        model = ours(case.name, case.module)
        if model is None:
            missing.append(f"{case.module}.{case.name}")
            continue
        print(f"    {case.work} ...", flush=True)
        rows.append(_measured(case, search, model, options.quick))
    return {"rows": rows, "absent": missing, "goals": [goal_line(r) for r in rows if r["goal"]]}


def page(results: dict[str, Any]) -> str:
    heads = ["work", "ours s", "scikit-learn s", "ratio", "fits shared by", "difference", "same choice",
             "goal", "reached"]  # fmt: skip
    lines, ways = [], []
    for row in results["rows"]:
        made = goal_line(row)["reached"] if row["goal"] else "–"
        goal = f"{row['goal']:g}×" if row["goal"] else "–"
        same = {True: "yes", False: "no", None: "–"}[row["same"]]
        gap = "–" if row["difference"] is None else f"{row['difference']:.0e}"
        lines.append([row["work"], short(row["ours"]), short(row["peer"]), ratio_text(row),
                      row["reuse"] or "–", gap, same, goal, made])  # fmt: skip
        if made == "**no**":
            ways.append(
                f"* *{row['work']}*: {' '.join(WHY.get(row['work'], 'not yet understood.').split())}"
            )
    text = f"## {TITLE}\n\n{TEXT.strip().format(cap=CAP, ours=REPEATS)}\n\n{table(heads, lines)}\n"
    text += "\nWhat stands in the way:\n\n" + "\n".join(ways) + "\n" if ways else ""
    return text + (
        f"\nNot there yet: {', '.join(results['absent'])}.\n" if results["absent"] else ""
    )


def _cases(quick: bool) -> list[Case]:
    rng = np.random.default_rng(15)
    n, p = (1_000, 10) if quick else (50_000, 100)
    alphas, costs = (10, 4) if quick else (100, 20)
    X = correlated(n, p, rng)
    z = X @ rng.standard_normal(p) / np.sqrt(p)
    y, label = z + rng.standard_normal(n), labels(2.0 * z, rng)
    rows, kernel_label = two_classes(300 if quick else 3_000, 10, rng)
    points, target = rows, kernel_label + 0.1 * rng.standard_normal(len(rows))
    C, shape = {"C": np.logspace(-3, 2, costs)}, size(n, p)
    small = size(*rows.shape)
    alpha = {"alpha": np.logspace(-3, 3, alphas)}
    few = {"alpha": np.logspace(-3, 1, costs), "gamma": [0.05, 0.1, 0.2]}
    ks = {"n_neighbors": list(range(1, costs + 1))}
    return [
        Case(f"ridge, {alphas} alphas, {shape}", "linear_model", "Ridge", {}, alpha, X, y, 200),
        Case(f"logistic, {costs} C, {shape}", "linear_model", "LogisticRegression", {}, C, X, label, 10),
        Case(f"linear SVM, {costs} C, {shape}", "svm", "LinearSVC", {}, C, X, label, 10),
        Case(f"Gaussian SVM, {costs} C, {small}", "svm", "SVC", {}, C, rows, kernel_label, 10),
        Case(f"kernel ridge, {3 * costs} pairs, {small}", "kernel_ridge", "KernelRidge", {"kernel": "rbf"},
             few, points, target, None),
        Case(f"neighbours, {costs} k, {small}", "neighbors", "KNeighborsClassifier", {}, ks, rows,
             kernel_label, None),
    ]  # fmt: skip


def _measured(case: Case, search: Any, model: Any, quick: bool) -> dict[str, Any]:
    fit = partial(_ours, case, search, model)
    first, mine = seconds(fit)
    times = [seconds(fit)[0] for _ in range(REPEATS)]
    row = {"work": case.work, "goal": case.goal, "first call": first, "reuse": mine["reuse"]}
    found = _in_a_new_process(case.work, quick)
    if found is None:
        median = statistics.median(times)
        row |= {"ours": median, "peer": CAP, "ratio at least": CAP / median}
        return row | {"difference": None, "same": None}
    scores = np.abs(np.asarray(mine["scores"]) - np.asarray(found["scores"]))
    row |= {"difference": float(np.max(scores)), "same": mine["best"] == found["best"]}
    return row | summary([statistics.median(times)], [found["seconds"]])


def _ours(case: Case, search: Any, model: Any) -> dict[str, Any]:
    found = search(model(**case.fixed), case.grid, cv=5).fit(case.X, case.y)
    return _outcome(found) | {"reuse": getattr(found, "reuse_", None)}


def _in_a_new_process(work: str, quick: bool) -> Any:
    """scikit-learn's search, ended after the cap: None then."""
    command = [sys.executable, "-m", "benchmarks.grid_search", work, *(["--quick"] * quick)]
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        return json.loads(child.communicate(timeout=CAP + 15.0)[0])  # 15 s to import and to begin
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # its workers too
            child.wait()


def theirs(case: Case) -> dict[str, Any]:
    """scikit-learn's search in this process; its workers are started before the clock."""
    from sklearn.model_selection import GridSearchCV

    model = getattr(importlib.import_module(f"sklearn.{case.module}"), case.name)(**case.fixed)
    few = {name: values[:2] for name, values in case.grid.items()}
    part = np.random.default_rng(0).permutation(len(case.y))[:200]
    GridSearchCV(model, few, cv=5, n_jobs=2).fit(case.X[part], case.y[part])
    search = GridSearchCV(model, case.grid, cv=5, n_jobs=2)
    start = time.perf_counter()
    search.fit(case.X, case.y)
    return {"seconds": time.perf_counter() - start} | _outcome(search)


def _outcome(search: Any) -> dict[str, Any]:
    return {
        "scores": np.asarray(search.cv_results_["mean_test_score"]).tolist(),
        "best": int(search.best_index_),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of convergence, as everywhere here
    asked = [case for case in _cases("--quick" in sys.argv) if case.work == sys.argv[1]]
    print(json.dumps(theirs(asked[0])))
