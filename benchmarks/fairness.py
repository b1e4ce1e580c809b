"""Fairness: intervals of an audit against fairlearn's bootstrap, group thresholds against its optimiser."""

from __future__ import annotations

import statistics
import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .harness import paired, seconds, summary
from .report import goal_cells, goal_line, paired_page, ratio_text, short

TITLE = "Fairness: audit and group thresholds"
TEXT = """
48 842 rows with two or five groups, of the sizes that sex and race have in the Adult table; labels drawn
from the scores. *Intervals*: `surefit.fair.audit` (nine rates a group, gaps, exact limits that hold at
once, claims) against fairlearn's `MetricFrame` with three rates and a bootstrap of {boot} replicates, which
is run once; groups given as text and as whole numbers. *Thresholds*: `GroupThresholds` with its certificate
against `ThresholdOptimizer(grid_size=1000)`, both on given scores; *accuracy* is the expected one of ours
less fairlearn's, which is at least 0.
The figures below were taken while other work was at times on the machine.
"""
WHY = """
an audit of text is bound by one comparison of the text with each group's name; the counts and limits take
less than a millisecond.
"""
BOOT = 100


def measure(options: Any) -> dict[str, Any]:
    try:
        from fairlearn import metrics, postprocessing
    except ImportError:
        return {"skipped": "fairlearn is not installed."}
    n, boot = (1_000, 3) if options.quick else (48_842, BOOT)
    y, score, groups = people(n)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for work, group in groups.items():
            print(f"    intervals, {work} ...", flush=True)
            rows.append(_intervals(f"intervals, {work}", metrics, y, score, group, boot, options))
        for constraint in ("demographic_parity", "equalized_odds"):
            for work in list(groups)[:2]:
                print(f"    thresholds, {constraint}, {work} ...", flush=True)
                name = f"thresholds, {constraint}, {work}"
                rows.append(
                    _thresholds(name, postprocessing, constraint, y, score, groups[work], options)
                )
    return {"rows": rows, "boot": boot, "goals": [goal_line(row, "fairlearn") for row in rows]}


def page(results: dict[str, Any]) -> str:
    heads = ["work", "ours s", "fairlearn s", "ratio", "worst", "accuracy", "goal", "reached"]
    lines = []
    for row in results["rows"]:
        better = f"+{row['accuracy']:.1e}" if "accuracy" in row else ""
        times = [short(row["ours"]), short(row["peer"]), ratio_text(row), f"{row['worst']:.0f}"]
        lines.append([row["work"], *times, better, *goal_cells(row)])
    return paired_page(TITLE, TEXT.format(boot=results["boot"]), WHY, results, heads, lines)


def people(n: int) -> tuple[NDArray[np.int64], NDArray[np.float64], dict[str, Any]]:
    """Labels, scores, and groups in several shapes."""
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n) < 0.33, "Female", "Male")
    races = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
    race = rng.choice(races, n, p=[0.855, 0.096, 0.031, 0.010, 0.008])
    score = rng.beta(1.0 + 0.3 * (sex == "Male"), 3.0, size=n)
    y = (rng.random(n) < score).astype(np.int64)
    groups = {"two groups, text": sex, "five groups, text": race}
    return y, score, {**groups, "two groups, numbers": (sex == "Male").astype(np.int64)}


def _intervals(
    work: str, metrics: Any, y: Any, score: Any, group: Any, boot: int, options: Any
) -> dict[str, Any]:
    from surefit.fair import audit

    decision = (score > 0.3).astype(np.int64)
    three = {
        "selection": metrics.selection_rate,
        "tpr": metrics.true_positive_rate,
        "fpr": metrics.false_positive_rate,
    }
    mine = partial(audit, y, decision, sensitive=group)
    theirs = partial(
        metrics.MetricFrame, metrics=three, y_true=y, y_pred=decision, sensitive_features=group,
        n_boot=boot, ci_quantiles=[0.025, 0.975], random_state=0,
    )  # fmt: skip
    first, _ = seconds(mine)
    taken, _ = seconds(theirs)
    again = statistics.median(seconds(mine)[0] for _ in range(4 * options.pairs + 1))
    goal = 10_000.0 * boot / BOOT
    return {"work": work, "goal": goal, "first call": first} | summary([again], [taken])


def _thresholds(
    work: str, postprocessing: Any, constraint: str, y: Any, score: Any, group: Any, options: Any
) -> dict[str, Any]:
    from surefit.fair import GroupThresholds

    X = score[:, None]
    peer = postprocessing.ThresholdOptimizer(
        estimator=scores().fit(X, y), constraints=constraint, prefit=True,
        predict_method="predict_proba",
    )  # fmt: skip
    model = GroupThresholds("passthrough", constraint=constraint, random_state=0)
    mine = partial(model.fit, X, y, sensitive=group)
    theirs = partial(peer.fit, X, y, sensitive_features=group)
    (first, _), _ = seconds(mine), theirs()
    accept = peer._pmf_predict(X, sensitive_features=group)[:, 1]
    right = float(np.where(y == 1, accept, 1.0 - accept).mean())
    row = {"work": work, "goal": 20.0, "first call": first}
    row["accuracy"] = model.score(X, y, sensitive=group) - right
    return row | paired(mine, theirs, 2 * options.pairs + 1)


def scores() -> Any:
    """A classifier whose score is the first column."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):
        def fit(self, X: Any, y: Any) -> Any:
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X: Any) -> Any:
            return np.column_stack([1.0 - np.asarray(X)[:, 0], np.asarray(X)[:, 0]])

        def predict(self, X: Any) -> Any:
            return (np.asarray(X)[:, 0] > 0.5).astype(int)

    return Scores()
