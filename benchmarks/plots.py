"""Relative gap against time: one panel a problem, one line a contender, from the restarts of the search.

A line joins the restarts that no faster one of the same contender surpassed: the least gap for the time.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .harness import TARGET

__all__ = ["draw"]

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers and dashes say it again.
STYLES = [
    ("#D55E00", "s", "-"), ("#009E73", "^", "--"), ("#CC79A7", "D", "-."), ("#56B4E9", "v", "--"),
    ("#E69F00", "P", "-"), ("#555555", "X", ":"), ("#8B6F00", "<", "-."),
]  # fmt: skip
LOOK = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "surefit",
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans", "Arial"],
}
OURS = ("#0072B2", "o", "-")
LOWEST, HIGHEST = 1e-14, 10.0  # below is rounding, above is no answer


def draw(races: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the figure to ``path``, as SVG or PNG by its suffix."""
    names: dict[str, None] = {}
    for race in races:
        names |= dict.fromkeys(peer["name"] for peer in race["peers"])
    style = {name: STYLES[i % len(STYLES)] for i, name in enumerate(names)}
    columns = min(3, len(races)) if len(races) != 4 else 2
    rows = -(-len(races) // columns)
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(max(6.4, 3.6 * columns), 3.0 * rows + 0.6), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, race in zip(panels, races, strict=False):
            _panel(panel, race, style)
        for panel in panels[len(races) :]:
            panel.set_axis_off()
        handles: dict[str, Any] = {}
        for panel in panels:
            for line in panel.get_lines():
                if not line.get_label().startswith("_"):
                    handles.setdefault(line.get_label(), line)
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)),
            frameon=False, handlelength=3.2, fontsize=8,
        )  # fmt: skip
        if path.suffix != ".svg":
            figure.savefig(path, dpi=110)
            return
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        shorter = re.sub(
            r"(\d\.\d\d)\d+(?!\d*</text>)", r"\1", text.getvalue()
        )  # but not in labels
        path.write_text(re.sub(r"\s*\n\s*", "\n", shorter), encoding="utf8")


def _panel(panel: Any, race: Mapping[str, Any], style: Mapping[str, Any]) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    _line(panel, race["ours"], OURS, 2.0)
    for peer in race["peers"]:
        _line(panel, peer, style[peer["name"]], 1.2)
    low, high = panel.get_xlim()
    if high / low < 12:
        middle = math.sqrt(low * high)
        low, high = middle / 3.5, middle * 3.5
    bottom, top = panel.get_ylim()
    bottom, top = min(bottom, 1e-8), max(top, 1e-4)
    panel.set_xlim(low, high)
    panel.set_ylim(bottom, top)
    panel.axhline(TARGET, color="#888888", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    panel.text(high, TARGET * 1.2, "1e-6", ha="right", va="bottom", fontsize=7, color="#666666")
    panel.xaxis.set_major_locator(FixedLocator(_ticks(low, high)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    decades = range(math.ceil(math.log10(bottom)), math.floor(math.log10(top)) + 1)
    panel.yaxis.set_major_locator(FixedLocator([10.0**k for k in decades if k % 2 == 0]))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"1e{round(math.log10(y))}"))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_locator(NullLocator())
    panel.grid(axis="y", color="#eeeeee", linewidth=0.7, zorder=0)
    panel.set_axisbelow(True)
    panel.set_title(race["problem"], fontsize=9)
    panel.set_xlabel("seconds")
    panel.set_ylabel("relative gap")
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 in each decade; 1 alone where there are many decades."""
    steps = (1.0, 2.0, 5.0) if high / low < 100 else (1.0,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**k for k in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _line(panel: Any, side: Mapping[str, Any], style: tuple[str, str, Any], width: float) -> None:
    colour, marker, dashes = style
    points = frontier(_best_variant(side))
    panel.plot(
        [seconds for seconds, _ in points], [min(max(gap, LOWEST), HIGHEST) for _, gap in points],
        color=colour, marker=marker, linestyle=dashes, linewidth=width, markersize=5.5 if width < 2 else 6.5,
        label=side["name"], markeredgecolor="white", markeredgewidth=0.4, zorder=3 if width < 2 else 4,
    )  # fmt: skip


def frontier(curve: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """(seconds, gap) of the restarts that no faster one surpassed, by time."""
    points: list[tuple[float, float]] = []
    for point in sorted(curve, key=lambda p: p["seconds"]):
        if point["gap"] is not None and (not points or point["gap"] < points[-1][1]):
            points.append((point["seconds"], point["gap"]))
    return points


def _best_variant(side: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The restarts of the variant that was timed; else of the one that got furthest."""
    curve = [point for point in side["curve"] if point["gap"] is not None]
    if not curve:
        return []
    chosen = [point for point in curve if point["setting"] == side["setting"]]
    lead = chosen[0] if chosen else min(curve, key=lambda point: point["gap"])
    return [point for point in curve if point["variant"] == lead["variant"]]
