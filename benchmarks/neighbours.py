"""Nearest neighbours by brute force: 100 000 rows of 64 columns, 10 000 queries, k = 10."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .data import public
from .harness import paired, seconds
from .peers import ours, peer
from .report import goal_cells, goal_line, paired_page, ratio_text, short, size

TITLE = "Nearest neighbours"
TEXT = """
`NearestNeighbors(n_neighbors=10).fit(X).kneighbors(Q)` on float64 rows, the fit and its certificate
included. The peers get `algorithm="brute"` and, up to 16 columns, their default too (a tree): the faster is
timed. The neighbour sets are compared query by query; where two differ, the distances are summed again from
differences in extended precision, and *worse* counts the queries where a contender's ten are farther away
than the other's.
"""
WHY = "not yet understood."
K = 10


def measure(options: Any) -> dict[str, Any]:
    import sklearn.neighbors

    model = ours("NearestNeighbors", "neighbors")
    if model is None:
        return {"skipped": "surefit.neighbors has no NearestNeighbors yet."}
    peers = [("scikit-learn", sklearn.neighbors.NearestNeighbors)]
    if intelex := peer("sklearnex.neighbors"):
        peers.append(("scikit-learn-intelex", intelex.NearestNeighbors))
    rows = []
    for work, X, Q, goal in _cases(options.quick):
        first, mine = seconds(partial(_search, model, {}, X, Q))
        for name, theirs in peers:
            print(f"    {work}: {name} ...", flush=True)
            taken, label, found, fixed = _fastest(theirs, X, Q)
            count = (
                2 * options.pairs + 1 if taken < 1.0 else min(options.pairs, 3 if taken > 10 else 5)
            )
            times = paired(
                partial(_search, model, {}, X, Q), partial(_search, theirs, fixed, X, Q), count
            )
            row = {"work": work, "peer name": name, "algorithm": label, "first call": first}
            row |= _compare(X, Q, mine, found) | {"goal": goal if name == "scikit-learn" else None}
            rows.append(row | times)
    return {"rows": rows, "goals": [goal_line(row) for row in rows if row["goal"]]}


def page(results: dict[str, Any]) -> str:
    heads = ["work", "peer", "its algorithm", "ours s", "peer s", "ratio", "worst", "sets that differ",
             "worse, ours / peer", "goal", "reached"]  # fmt: skip
    lines = []
    for row in results["rows"]:
        lines.append([
            row["work"], row["peer name"], row["algorithm"], short(row["ours"]), short(row["peer"]),
            ratio_text(row), f"{row['worst']:.2f}", str(row["differ"]), "{} / {}".format(*row["worse"]),
            *goal_cells(row),
        ])  # fmt: skip
    return paired_page(TITLE, TEXT, WHY, results, heads, lines)


def _cases(quick: bool) -> list[tuple[str, Any, Any, float | None]]:
    rng = np.random.default_rng(14)
    sizes = (
        [(2_000, 16, 200, 1.5)]
        if quick
        else [(100_000, 64, 10_000, 1.5), (100_000, 8, 10_000, None)]
    )
    cases: list[tuple[str, Any, Any, float | None]] = []
    for n, p, queries, goal in sizes:
        X, Q = rng.standard_normal((n, p)), rng.standard_normal((queries, p))
        work = f"neighbours, {size(n, p)}, {size(queries)} queries"
        cases.append((work, X, Q, goal))
    if not quick and (digits := public("mnist")) is not None:
        X, Q = digits[0], digits[1][:2_000]
        cases.append((f"MNIST {size(*X.shape)}, {size(len(Q))} queries", X, Q, None))
    return cases


def _search(model: Any, fixed: dict[str, Any], X: Any, Q: Any) -> Any:
    return model(n_neighbors=K, **fixed).fit(X).kneighbors(Q, return_distance=False)


def _fastest(model: Any, X: Any, Q: Any) -> tuple[float, str, Any, dict[str, Any]]:
    """The faster of brute force and the default, after a warm-up."""
    tried = []
    for algorithm in ("brute", "auto") if X.shape[1] <= 16 else ("brute",):
        fixed = {"algorithm": algorithm, "n_jobs": -1}
        _search(model, fixed, X[:2_000], Q[:100])
        taken, found = seconds(partial(_search, model, fixed, X, Q))
        tried.append((taken, algorithm, found, fixed))
    return min(tried, key=lambda entry: entry[0])


def _compare(X: Any, Q: Any, mine: Any, theirs: Any) -> dict[str, Any]:
    """How many sets differ, and in how many of them each is farther away."""
    A, B = np.sort(np.asarray(mine), axis=1), np.sort(np.asarray(theirs), axis=1)
    differ = np.flatnonzero((A != B).any(axis=1))
    totals = [
        [np.sum((X[found[q]].astype(np.longdouble) - Q[q]) ** 2) for q in differ]
        for found in (A, B)
    ]
    worse = [sum(a > b for a, b in zip(*pair, strict=True)) for pair in (totals, totals[::-1])]
    return {"differ": len(differ), "worse": [int(count) for count in worse]}
