"""Epochs of the perceptron on sparse rows: the same visits, the same mistakes, less time."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .data import text_like
from .harness import paired, seconds
from .peers import ours
from .report import goal_line, ratio_text, table

TITLE = "Perceptron, epochs on sparse rows"
TEXT = """
`Perceptron(max_iter={epochs}, tol=None, fit_intercept=False, random_state=0)` on rows made like rcv1's.
Nothing is optimised: both make the same visits in the same order, and *difference* is the largest
difference of a coefficient relative to the largest coefficient. (With an intercept they would differ: on
sparse rows scikit-learn shortens its steps to a hundredth.) Ours includes the certificate, which costs a
pass over the data once a fit, not once an epoch.
"""
WHY = """an epoch in random order fetches every row from elsewhere in memory, which takes twice the time of
one in order, whatever is computed. Ours takes about half of scikit-learn's time an epoch; the certificate
(fingerprint, scores, norms of the rows) adds what two or three epochs cost."""
EPOCHS = 10
CLASS, GOAL = "Perceptron", 2.0
FIXED: dict[str, Any] = {"max_iter": EPOCHS, "tol": None, "fit_intercept": False, "random_state": 0}


def measure(options: Any) -> dict[str, Any]:
    n, p = (3_000, 300) if options.quick else (100_000, 47_236)
    X, y = text_like(n, p, 74, np.random.default_rng(7))
    title = f"{CLASS} {n:,} x {p:,} sparse".replace(",", " ")
    return epochs(CLASS, title, csr_matrix(X), y, [("", FIXED)], GOAL, options.pairs)


def page(results: dict[str, Any]) -> str:
    return epochs_page(TITLE, TEXT.format(epochs=EPOCHS), results, WHY)


def epochs(
    name: str, title: str, X: Any, y: Any, cases: list[tuple[str, dict[str, Any]]], goal: float, pairs: int
) -> dict[str, Any]:  # fmt: skip
    """Fits of a fixed number of epochs, ours and scikit-learn's in turn."""
    import sklearn.linear_model

    model, peer = ours(name), getattr(sklearn.linear_model, name)
    if model is None:
        return {"skipped": f"surefit.linear_model has no {name} yet."}
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label, fixed in cases:
            fit, again = partial(_fit, model, fixed, X, y), partial(_fit, peer, fixed, X, y)
            (first, mine), theirs = seconds(fit), again()
            scale = float(np.max(np.abs(theirs.coef_)))
            times = paired(fit, again, 2 * pairs + 1)
            rows.append(
                {
                    "work": f"{title}, {label}".removesuffix(", "),
                    "goal": goal,
                    "first call": first,
                    "epochs": [int(mine.n_iter_), int(theirs.n_iter_)],
                    "difference": float(np.max(np.abs(mine.coef_ - theirs.coef_))) / scale,
                    "accuracy": [float(np.mean(m.predict(X) == y)) for m in (mine, theirs)],
                }
                | times
            )
    return {"epochs": rows, "goals": [goal_line(row) for row in rows]}


def _fit(model: Any, options: dict[str, Any], X: Any, y: Any) -> Any:
    return model(**options).fit(X, y)


def epochs_page(title: str, text: str, results: dict[str, Any], why: str) -> str:
    rows = []
    for row in results["epochs"]:
        right = " / ".join(f"{value:.2%}" for value in row["accuracy"])
        rows.append([
            row["work"], f"{row['ours']:.3g}", f"{row['peer']:.3g}", ratio_text(row), f"{row['worst']:.2f}",
            "{} / {}".format(*row["epochs"]), f"{row['difference']:.0e}", right,
            f"{row['goal']:g}×", goal_line(row)["reached"],
        ])  # fmt: skip
    heads = ["work", "ours s", "scikit-learn s", "ratio", "worst", "epochs, ours / peer", "difference",
             "right on the rows, ours / peer", "goal", "reached"]  # fmt: skip
    lines = [f"## {title}", "", text.strip(), "", table(heads, rows), ""]
    if any(goal["reached"] != "yes" for goal in results["goals"]):
        lines += [f"What stands in the way: {why}", ""]
    first = ", ".join(f"{row['first call']:.2g}" for row in results["epochs"])
    return "\n".join([*lines, f"First call of ours, in seconds: {first}.", ""])
