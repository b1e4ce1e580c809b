"""Plots of intervals and of points: coefficients, rates by group, calibration, residuals.

An interval is a line with a dot at the estimate, one row each. A row about which nothing is stated says why
in words, in the place of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .reading import aligned, mapping, real, reals, rows, thin
from .svg import RIGHT, WIDTH, Axis, Drawing, Figure
from .words import count, number, percent, plain

__all__ = ["bar", "calibration", "forest", "histogram", "residuals"]

Row = tuple[
    str, float, float, float, str
]  # name, estimate, low, high, words in place of an interval
ROW, HEAD, FOOT = 21.0, 10.0, 40.0


def forest(
    name: str, title: str, about: str, lines: Sequence[Row], label: str, *, share: bool = False
) -> Drawing | None:
    """One interval a row, over a common axis; a vertical line at zero where zero is inside."""
    known = [v for line in lines for v in line[1:4] if math.isfinite(v)]
    if not known:
        return None
    axis = Axis.over(known if share else [*known, 0.0], label, share=share)
    names = [plain(line[0], 22) for line in lines]
    left = 14 + 7.3 * max(len(text) for text in names)
    bottom = HEAD + ROW * len(lines)
    drawing = Drawing(name, title, about, WIDTH, bottom + FOOT)

    def across(value: float) -> float:
        return left + axis.at(value) * (WIDTH - RIGHT - left)

    for value, text in axis.ticks(4 if share else 5):
        at = across(value)
        drawing.add("line", x1=at, x2=at, y1=HEAD, y2=bottom, class_="grid")
        drawing.text(at, bottom + 16, text, "middle muted")
    if not share:
        drawing.add("line", x1=across(0), x2=across(0), y1=HEAD, y2=bottom, class_="axis")
    drawing.text(left + (WIDTH - RIGHT - left) / 2, bottom + 34, label, "middle")
    for i, (text, (_, value, low, high, why)) in enumerate(zip(names, lines)):
        y = HEAD + ROW * (i + 0.5)
        drawing.text(left - 8, y + 4, text, "end", limit=22)
        if not math.isfinite(value):
            drawing.text(left + 4, y + 4, why or "not measured", "start muted", limit=40)
            continue
        if math.isfinite(low) and math.isfinite(high):
            drawing.add("line", x1=across(low), x2=across(high), y1=y, y2=y, class_="whisker a")
        drawing.add("circle", cx=across(value), cy=y, r=3.5, class_="dot a")
    return drawing


def bar(value: Any, low: Any, high: Any, *, start: float, end: float) -> Drawing | None:
    """An interval inside a table cell. The numbers stand beside it, so it is hidden from screen readers."""
    v, a, b = real(value), real(low), real(high)
    if not math.isfinite(v) or not end > start:
        return None
    axis = Axis(start, end, "")
    drawing = Drawing("bar", "", "", 96.0, 14.0)
    drawing.root.clear()
    drawing.root.attrib.update({"viewBox": "0 0 96 14", "class": "mini", "aria-hidden": "true"})
    drawing.add("line", x1=0.0, x2=96.0, y1=7.0, y2=7.0, class_="grid")
    if math.isfinite(a) and math.isfinite(b):
        drawing.add(
            "line",
            x1=3 + 90 * axis.at(a),
            x2=3 + 90 * axis.at(b),
            y1=7.0,
            y2=7.0,
            class_="whisker a",
        )
    drawing.add("circle", cx=3 + 90 * axis.at(v), cy=7.0, r=3.0, class_="dot a")
    return drawing


def calibration(evidence: Any) -> Figure | None:
    """Observed rate against predicted probability, by bin, with intervals."""
    bins = [
        (
            real(b.get("mean")),
            real(b.get("rate")),
            real(b.get("rate_low")),
            real(b.get("rate_high")),
        )
        for b in rows(evidence)[:40]
    ]
    bins = [b for b in bins if math.isfinite(b[0]) and math.isfinite(b[1])]
    if not bins:
        return None
    worst = max(bins, key=lambda b: abs(b[0] - b[1]))
    inside = sum(b[2] <= b[0] <= b[3] for b in bins)
    about = (
        f"In {inside} of {len(bins)} bins the mean prediction lies inside the interval of the observed rate. "
        f"The largest difference: predicted {percent(worst[0])}, observed {percent(worst[1])}."
    )
    x = Axis(0.0, 1.0, "predicted probability", share=True)
    figure = Figure(
        "calibration", "Calibration", about, x, Axis(0.0, 1.0, "observed rate", share=True)
    )
    figure.line([(0.0, 0.0), (1.0, 1.0)], "ref")
    figure.whiskers(
        [(b[0], b[2], b[3]) for b in bins if math.isfinite(b[2]) and math.isfinite(b[3])]
    )
    figure.dots([(b[0], b[1]) for b in bins], radius=3.5)
    figure.key("observed, with interval", "a")
    figure.key("perfect", "ref")
    return figure


def residuals(evidence: Any) -> Figure | None:
    """Residual against prediction."""
    e = mapping(evidence)
    points = thin(aligned(e.get("predicted"), e.get("residual")), 500)
    if len(points) < 2:
        return None
    sizes = sorted(abs(p[1]) for p in points)
    about = (
        f"{count(len(points))} points. Half of the residuals shown are at most "
        f"{number(sizes[len(sizes) // 2], 3)} in size; the largest is {number(sizes[-1], 3)}."
    )
    x, y = (
        Axis.over((p[0] for p in points), "prediction"),
        Axis.over((p[1] for p in points), "residual"),
    )
    figure = Figure("residuals", "Residuals against predictions", about, x, y)
    figure.line([(x.low, 0.0), (x.high, 0.0)], "ref")
    figure.dots(points, "a faint", 2.2)
    return figure


def histogram(evidence: Any) -> Figure | None:
    """How often residuals of each size occur."""
    e = mapping(mapping(evidence).get("histogram"))
    edges, heights = reals(e.get("edges"))[:101], reals(e.get("counts"))[:100]
    if (
        len(edges) < 2
        or len(edges) != len(heights) + 1
        or not all(map(math.isfinite, edges + heights))
    ):
        return None
    total = sum(heights)
    most = max(range(len(heights)), key=heights.__getitem__)
    about = (
        f"{count(total)} residuals from {number(edges[0], 3)} to {number(edges[-1], 3)}; the fullest bar, "
        f"{number(edges[most], 3)} to {number(edges[most + 1], 3)}, holds {count(heights[most])}."
    )
    x = Axis.over(edges, "residual")
    y = Axis(0.0, max(*heights, 1.0) * 1.04, "rows")
    figure = Figure("histogram", "Distribution of the residuals", about, x, y)
    figure.bars(edges, heights)
    return figure
