"""Tables and figures behind the claims: candidates, curves, robustness, coefficients.

Lists are cut at a stated length, and how many entries are left out is said. Fairness has its own file.
"""

from __future__ import annotations

import math
from typing import Any

from . import curves, spreads
from .reading import mapping, part, real, reals, rows, texts, words, yes
from .words import SENTENCE, count, interval, number, percent, plain, sentence, settings

__all__ = ["coefficients", "generalisation", "leaderboard", "optimality", "robustness", "why"]

CANDIDATES, COEFFICIENTS, CLASSES = 40, 40, 16  # rows of each table that are shown


def more(total: int, shown: int) -> str:
    """The line under a table that was cut; empty where it was not."""
    return f"and {total - shown:,} more" if total > shown else ""


def why(evidence: Any, key: str) -> str:
    """Why a part was not measured, where the document says."""
    e = mapping(evidence)
    own = mapping(e.get(key)).get("why") or mapping(e.get("why")).get(key)
    return reason(own)


def reason(text: Any) -> str:
    """A reason as the end of a sentence; empty where there is none."""
    text = plain(words(text), SENTENCE).strip().rstrip(".")
    return f"{text}." if text else ""


def _place(row: dict[str, Any]) -> tuple[int, float]:
    """The chosen first, those measured on the hold-out, the others, each best first, then the reference."""
    loss = real(part(row, "holdout").get("loss"))
    if yes(row.get("chosen")):
        return 0, 0.0
    if row.get("certified") is False:
        return 3, 0.0
    score = real(row.get("score"))
    return (1, loss) if math.isfinite(loss) else (2, score if math.isfinite(score) else math.inf)


def _score(value: Any) -> str:
    """Numbers of a column, with the same number of places where they are of ordinary size."""
    x = real(value)
    return f"{x:.4f}".replace("-", "−") if 1e-3 <= abs(x) < 10 else number(x)


def _seconds(value: Any) -> str:
    x = real(value)
    return "< 0.01" if 0 <= x < 0.005 else f"{x:,.2f}" if 0 <= x < 1e6 else number(x)


def leaderboard(document: Any) -> dict[str, Any]:
    """What was tried: score, hold-out loss with its interval as a bar, seconds."""
    found = sorted(rows(mapping(document).get("candidates")), key=_place)
    share = mapping(document).get("task") == "classification"
    kept = [
        row for row in found[CANDIDATES:] if yes(row.get("chosen")) or row.get("certified") is False
    ]
    shown = found[:CANDIDATES]
    if kept:  # the chosen one and the reference are always shown
        shown = found[: CANDIDATES - len(kept[:5])] + kept[:5]
    ends = [real(part(row, "holdout").get(key)) for row in shown for key in ("loss", "low", "high")]
    ends = [v for v in ends if math.isfinite(v) and abs(v) < 1e300]
    start, end = (min(ends), max(ends)) if ends else (0.0, 0.0)
    lines = []
    for row in shown:
        held = part(row, "holdout")
        loss = held.get("loss")
        known = math.isfinite(real(loss))
        lines.append(
            {
                "name": plain(words(row.get("name"), "model")),
                "params": "" if "(" in words(row.get("name")) else settings(row.get("params")),
                "score": _score(row.get("score")),
                "validation": percent(row.get("score")) if share else _score(row.get("score")),
                "loss": (percent(loss) if share else number(loss)) if known else "–",
                "interval": interval(held.get("low"), held.get("high"), share=share),
                "bar": spreads.bar(loss, held.get("low"), held.get("high"), start=start, end=end),
                "seconds": _seconds(row.get("seconds")),
                "status": ""
                if row.get("certified") is False
                else plain(words(row.get("status"), "tried"), 60),
                "chosen": yes(row.get("chosen")),
                "reference": row.get("certified") is False,
            }
        )
    name = next((words(r.get("score_name")) for r in found if r.get("score_name")), "score")
    return {
        "rows": lines,
        "more": more(len(found), len(lines)),
        "total": len(found),
        "score": plain(name, 40),
        "loss": "error" if share else "loss",
    }


def optimality(evidence: Any) -> dict[str, Any]:
    """The objective at the start, at the end, and the bound that was proved below it."""
    e = part(evidence, "objective")
    values = [v for v in reals(e.get("values")) if math.isfinite(v)]
    bound, start = real(e.get("lower_bound")), real(e.get("start"))
    facts = []
    if math.isfinite(start):
        facts.append(("At the start", number(start, 6)))
    if values:
        facts.append(("At the end", number(values[-1], 6)))
    if math.isfinite(bound):
        facts.append(("Proved lower bound", number(bound, 6)))
        if values:
            facts.append(("Difference", number(values[-1] - bound, 2)))
    name = sentence(e.get("name"), 120)
    return {
        "figure": curves.objective(e),
        "facts": facts,
        "name": name,
        "why": why(evidence, "objective"),
    }


def _calibration(evidence: Any) -> dict[str, Any]:
    found = mapping(evidence).get("calibration")
    lines = [
        {
            "bin": interval(b.get("low"), b.get("high"), share=True),
            "n": count(b.get("n")),
            "mean": percent(b.get("mean")),
            "rate": percent(b.get("rate")),
            "interval": interval(b.get("rate_low"), b.get("rate_high"), share=True),
        }
        for b in rows(found)[:40]
    ]
    return {
        "figure": spreads.calibration(found),
        "rows": lines,
        "why": why(evidence, "calibration"),
    }


def _confusion(evidence: Any) -> dict[str, Any]:
    e = part(evidence, "confusion")
    labels, counts = texts(e.get("labels")), e.get("counts")
    table = [reals(line) for line in counts] if isinstance(counts, (list, tuple)) else []
    if not labels or len(table) != len(labels) or any(len(line) != len(labels) for line in table):
        return {"labels": [], "rows": [], "more": "", "why": why(evidence, "confusion")}
    shown = labels[:CLASSES]
    lines = []
    for i, (label, line) in enumerate(zip(shown, table)):
        total = sum(v for v in line if math.isfinite(v))
        cells = []
        for j, value in enumerate(line[:CLASSES]):
            part_of = value / total if total > 0 and math.isfinite(value) else 0.0
            heat = min(4, max(0, math.ceil(4 * part_of - 0.02)))
            cells.append(
                {"n": count(value), "heat": heat, "right": i == j, "share": percent(part_of, 0)}
            )
        lines.append({"label": plain(label, 30), "cells": cells})
    names = [plain(text, 30) for text in shown]
    return {"labels": names, "rows": lines, "more": more(len(labels), len(shown)), "why": ""}


def generalisation(document: Any) -> dict[str, Any]:
    """The candidates, and what the chosen model does on the rows kept aside."""
    e = part(document, "evidence")
    figures = {
        "roc": curves.roc(e.get("roc")),
        "pr": curves.precision_recall(e.get("pr")),
        "residuals": spreads.residuals(e.get("residuals")),
        "histogram": spreads.histogram(e.get("residuals")),
        "learning_curve": curves.learning(e.get("learning_curve")),
        "validation_curve": curves.validation(e.get("validation_curve")),
    }
    regression = mapping(document).get("task") == "regression"
    wanted = ["residuals", "histogram"] if regression else ["roc", "pr"]
    names = {
        "roc": "ROC curve",
        "pr": "precision and recall",
        "residuals": "residuals",
        "learning_curve": "learning curve",
        "validation_curve": "validation curve",
    }
    absent = [
        (names[key], why(e, key))
        for key in [*wanted[: 1 if regression else 2], "learning_curve", "validation_curve"]
        if figures[key] is None
    ]
    return {
        "board": leaderboard(document),
        "calibration": _calibration(e),
        "confusion": _confusion(e),
        "ranking": [figures[k] for k in ("roc", "pr", "residuals", "histogram") if figures[k]],
        "curves": [figures[k] for k in ("learning_curve", "validation_curve") if figures[k]],
        "absent": absent,
        "regression": regression,
    }


def robustness(evidence: Any) -> dict[str, Any]:
    """Worst-case accuracy against the size of a change, as a curve and as a table."""
    e = part(evidence, "robustness")
    eps, held, hit = (reals(e.get(k)) for k in ("eps", "certified_accuracy", "attacked_accuracy"))
    low, high = reals(e.get("low")), reals(e.get("high"))

    def entry(column: list[float], i: int) -> str:
        return percent(column[i]) if i < len(column) else "–"

    lines = [
        {
            "eps": number(size, 3),
            "certified": entry(held, i),
            "attacked": entry(hit, i),
            "interval": interval(low[i], high[i], share=True)
            if i < min(len(low), len(high))
            else "–",
        }
        for i, size in enumerate(eps[:30])
    ]
    return {
        "figure": curves.robustness(e),
        "rows": lines,
        "exact": yes(e.get("exact")),
        "words": sentence(e.get("words")),
        "n": count(e.get("n")),
        "why": why(evidence, "robustness"),
    }


def coefficients(evidence: Any) -> dict[str, Any]:
    """The coefficients, largest first, with intervals where there are any."""
    e = mapping(evidence)
    found = [c for c in rows(e.get("coefficients")) if math.isfinite(real(c.get("value")))]
    found.sort(key=lambda c: -abs(real(c["value"])))
    shown = found[:COEFFICIENTS]
    lines: list[spreads.Row] = [
        (words(c.get("name"), "?"), real(c["value"]), real(c.get("low")), real(c.get("high")), "")
        for c in shown
    ]
    figure = None
    if lines:
        top, value, low, high, _ = lines[0]
        sure = sum(a > 0 or b < 0 for _, _, a, b, _ in lines)
        span = f", {interval(low, high)}" if math.isfinite(low) and math.isfinite(high) else ""
        about = f"{len(lines)} coefficients. The largest is {plain(top, 40)}: {number(value, 3)}{span}. "
        stated = any(math.isfinite(line[2]) for line in lines)
        about += (
            f"{sure} of the intervals do not contain zero."
            if stated
            else "No intervals are stated."
        )
        figure = spreads.forest("coefficients", "Coefficients", about, lines, "coefficient")
    return {
        "figure": figure,
        "rows": [
            {
                "name": plain(name),
                "value": number(value),
                "interval": interval(low, high),
            }
            for name, value, low, high, _ in lines
        ],
        "more": more(len(found), len(shown)),
        "note": sentence(e.get("coefficients_note")),
        "why": why(evidence, "coefficients"),
    }
