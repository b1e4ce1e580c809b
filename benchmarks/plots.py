"""Relative gap against time: one panel a problem, one line a contender, from the restarts of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from .harness import TARGET

__all__ = ["draw"]

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers and dashes say it again.
STYLES = [
    ("#D55E00", "s", "-"), ("#009E73", "^", "--"), ("#CC79A7", "D", "-."), ("#56B4E9", "v", "--"),
    ("#E69F00", "P", "-"), ("#555555", "X", ":"), ("#8B6F00", "<", "-."),
]  # fmt: skip
OURS = ("#0072B2", "o", "-")
LOWEST = 1e-14  # what lies below is rounding


def draw(races: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the figure to ``path``, as SVG or PNG by its suffix."""
    names: dict[str, None] = {}
    for race in races:
        names |= dict.fromkeys(peer["name"] for peer in race["peers"])
    style = {name: STYLES[i % len(STYLES)] for i, name in enumerate(names)}
    columns = min(3, len(races))
    rows = -(-len(races) // columns)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "surefit", "font.size": 9}):
        figure = Figure(figsize=(max(5.0, 3.5 * columns), 3.1 * rows + 0.6), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, race in zip(panels, races, strict=False):
            _panel(panel, race, style)
        for panel in panels[len(races) :]:
            panel.set_axis_off()
        handles = {h.get_label(): h for panel in panels for h in panel.get_lines() if h.get_label()[0] != "_"}
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)),
            frameon=False, handlelength=3,
        )  # fmt: skip
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def _panel(panel: Any, race: Mapping[str, Any], style: Mapping[str, Any]) -> None:
    panel.axhline(TARGET, color="#999999", linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    for peer in race["peers"]:
        _line(panel, peer, style[peer["name"]], 1.2)
    _line(panel, race["ours"], OURS, 2.0)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title(race["problem"], fontsize=9)
    panel.set_xlabel("seconds")
    panel.set_ylabel("relative gap")
    panel.yaxis.set_major_locator(LogLocator(numticks=7))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.xaxis.set_minor_formatter(NullFormatter())
    low, high = panel.get_xlim()
    if high / low < 30:  # two ticks at least
        middle = (low * high) ** 0.5
        panel.set_xlim(middle / 5.5, middle * 5.5)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _line(panel: Any, side: Mapping[str, Any], style: tuple[str, str, Any], width: float) -> None:
    colour, marker, dashes = style
    points = [p for p in _best_variant(side) if p["gap"] is not None and p["gap"] < 1e6]
    points.sort(key=lambda p: p["seconds"])
    panel.plot(
        [p["seconds"] for p in points], [max(p["gap"], LOWEST) for p in points], color=colour, marker=marker,
        linestyle=dashes, linewidth=width, markersize=4.5 if width < 2 else 6, label=side["name"],
        markeredgecolor="white", markeredgewidth=0.4, zorder=3 if width < 2 else 4,
    )  # fmt: skip


def _best_variant(side: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The restarts of the variant that was timed; else of the one that got furthest."""
    curve = side["curve"]
    if not curve:
        return []
    chosen = [p for p in curve if p["setting"] == side["setting"]]
    lead = chosen[0] if chosen else min(curve, key=lambda p: p["gap"] if p["gap"] is not None else 1e9)
    return [p for p in curve if p["variant"] == lead["variant"]]
