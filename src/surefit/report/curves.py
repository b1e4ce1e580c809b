"""Curves: objective, learning, validation, ROC, precision and recall, robustness.

Each function takes its part of the evidence and returns a figure, or None where there are too few numbers to
draw. The description under each figure is computed from the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

from .reading import aligned, mapping, real, reals, thin, words, yes
from .svg import Axis, Figure
from .words import number, percent, plain

__all__ = ["learning", "objective", "precision_recall", "robustness", "roc", "validation"]

MOST = 240  # points of a curve that are drawn


def objective(evidence: Any) -> Figure | None:
    """How far the objective lies above its proved lower bound, by iteration."""
    e = mapping(evidence)
    bound = real(e.get("lower_bound"))
    points = aligned(e.get("iterations"), e.get("values"))
    if len(points) < 2 or not math.isfinite(bound):
        return None
    above = [(i, v - bound) for i, v in points if v > bound]
    if len(above) < 2:
        return None
    left = points[-1][1] - bound
    ends = f"{number(left, 2)} above it" if left > 0 else "on it, to rounding"
    about = (
        f"The objective starts {number(above[0][1], 3)} above its proved lower bound and ends {ends}, "
        f"after {number(points[-1][0])} iterations."
    )
    x = Axis.over((p[0] for p in above), "iteration")
    y = Axis.over((p[1] for p in above), "objective minus proved lower bound (log scale)", log=True)
    figure = Figure("objective", "Objective above its proved lower bound", about, x, y)
    drawn = thin(above, MOST)
    figure.line(drawn)
    if len(drawn) <= 40:
        figure.dots(drawn, radius=2.5)
    return figure


def learning(evidence: Any) -> Figure | None:
    """Loss on training and validation rows against the number of rows."""
    e = mapping(evidence)
    train, valid = (
        aligned(e.get("rows"), e.get("train")),
        aligned(e.get("rows"), e.get("validation")),
    )
    band = aligned(e.get("rows"), e.get("low"), e.get("high"))
    if len(valid) < 2:
        return None
    name = plain(words(e.get("name"), "loss"), 40)
    about = (
        f"With {number(valid[0][0])} rows the validation {name} is {number(valid[0][1])}; with "
        f"{number(valid[-1][0])} rows it is {number(valid[-1][1])}"
        + (f", and {number(train[-1][1])} on the training rows." if train else ".")
    )
    y = Axis.over([p[1] for p in train + valid] + [v for p in band for v in p[1:]], name)
    figure = Figure(
        "learning", "Learning curve", about, Axis.over((p[0] for p in valid), "training rows"), y
    )
    if len(band) >= 2:
        figure.band(thin(band, MOST))
    return _pair(figure, train, valid)


def validation(evidence: Any) -> Figure | None:
    """Loss on training and validation rows against one parameter."""
    e = mapping(evidence)
    log = yes(e.get("log")) and all(v > 0 for v in reals(e.get("values")))
    train, valid = (
        aligned(e.get("values"), e.get("train")),
        aligned(e.get("values"), e.get("validation")),
    )
    if len(valid) < 2:
        return None
    name, parameter = (
        plain(words(e.get("name"), "loss"), 40),
        plain(words(e.get("parameter"), "parameter"), 40),
    )
    chosen = real(e.get("chosen"))
    ends = f"from {number(min(p[0] for p in valid), 3)} to {number(max(p[0] for p in valid), 3)}"
    about = f"Validation {name} for {parameter} {ends}."
    nearest = next((p for p in valid if math.isclose(p[0], chosen, rel_tol=1e-9)), None)
    if math.isfinite(chosen):
        about += f" Chosen: {parameter} = {number(chosen, 3)}"
        about += f", where it is {number(nearest[1])}." if nearest else "."
    x = Axis.over((p[0] for p in valid), parameter + (" (log scale)" if log else ""), log=log)
    y = Axis.over((p[1] for p in train + valid), name)
    figure = Figure("validation", f"Validation curve of {parameter}", about, x, y)
    if math.isfinite(chosen) and x.low <= chosen <= x.high:
        figure.line([(chosen, y.low), (chosen, y.high)], "ref")
    figure = _pair(figure, sorted(train), sorted(valid))
    if math.isfinite(chosen):
        figure.key("chosen", "ref")
    return figure


def _pair(figure: Figure, train: list[Any], valid: list[Any]) -> Figure:
    if train:
        figure.line(thin(train, MOST), "b")
        figure.key("training", "b")
    figure.line(thin(valid, MOST), "a")
    if len(valid) <= 40:
        figure.dots(valid, "a")
    figure.key("validation", "a")
    return figure


def roc(evidence: Any) -> Figure | None:
    """True against false positive rate over all thresholds."""
    e = mapping(evidence)
    points = aligned(e.get("fpr"), e.get("tpr"))
    if len(points) < 2:
        return None
    tenth = max((tpr for fpr, tpr in points if fpr <= 0.1), default=0.0)
    auc = real(e.get("auc"))
    area = f"Area under the curve: {number(auc)}. " if math.isfinite(auc) else ""
    about = f"{area}At a false positive rate of at most 10 %, {percent(tenth)} of the positives are found."
    x = Axis(0.0, 1.0, "false positive rate", share=True)
    figure = Figure("roc", "ROC curve", about, x, Axis(0.0, 1.0, "true positive rate", share=True))
    figure.line([(0.0, 0.0), (1.0, 1.0)], "ref")
    figure.line(thin(points, MOST))
    figure.key("model", "a")
    figure.key("chance", "ref")
    return figure


def precision_recall(evidence: Any) -> Figure | None:
    """Precision against recall over all thresholds."""
    e = mapping(evidence)
    points = aligned(e.get("recall"), e.get("precision"))
    if len(points) < 2:
        return None
    half = max((p for r, p in points if r >= 0.5), default=math.nan)
    base = real(e.get("base"))
    about = f"Where half of the positives or more are found, precision is at most {percent(half)}."
    if math.isfinite(base):
        about += f" The share of positives is {percent(base)}."
    x = Axis(0.0, 1.0, "recall", share=True)
    figure = Figure("pr", "Precision and recall", about, x, Axis(0.0, 1.0, "precision", share=True))
    if math.isfinite(base):
        figure.line([(0.0, base), (1.0, base)], "ref")
    figure.line(thin(points, MOST))
    figure.key("model", "a")
    if math.isfinite(base):
        figure.key("share of positives", "ref")
    return figure


def robustness(evidence: Any) -> Figure | None:
    """Accuracy that is certain, and accuracy that an attack leaves, against the size of a change."""
    e = mapping(evidence)
    certified = sorted(aligned(e.get("eps"), e.get("certified_accuracy")))
    attacked = sorted(aligned(e.get("eps"), e.get("attacked_accuracy")))
    band = sorted(aligned(e.get("eps"), e.get("low"), e.get("high")))
    longest = max(certified, attacked, key=len)
    if len(longest) < 2:
        return None
    norm = plain(words(e.get("norm")), 40)
    last = longest[-1][0]
    exact = yes(e.get("exact"))
    parts = []
    if certified:
        name = "exact" if exact else "certified"
        parts.append(
            f"{name} accuracy falls from {percent(certified[0][1])} to {percent(certified[-1][1])}"
        )
    if attacked and not exact:
        parts.append(
            f"accuracy under attack from {percent(attacked[0][1])} to {percent(attacked[-1][1])}"
        )
    about = f"As each row may change by up to {number(last, 3)}{f' in the {norm} norm' if norm else ''}, "
    about += " and ".join(parts) + "."
    x = Axis.over((p[0] for p in longest), f"size of the change{f' ({norm})' if norm else ''}")
    y = Axis(0.0, 1.0, "accuracy of the worst case", share=True)
    figure = Figure("robustness", "Accuracy against the size of a change", about, x, y)
    if len(band) >= 2:
        figure.band(thin(band, MOST))
    for points, name, kind in (
        (certified, "exact" if exact else "certified", "a"),
        ([] if exact else attacked, "under attack", "b"),
    ):
        if points:
            figure.line(thin(points, MOST), kind)
            figure.dots(thin(points, 40), kind)
            figure.key(name, kind)
    if len(band) >= 2:
        figure.key("interval", "wide")
    return figure
