"""docs/benchmarks.md from benchmarks/results/*.json: text can be mended without measuring again."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "ROOT",
    "gap_text",
    "goal_cells",
    "goal_line",
    "paired_page",
    "race_goals",
    "race_page",
    "ratio_text",
    "section",
    "short",
    "size",
    "table",
    "write",
]

ROOT = Path(__file__).resolve().parent.parent
INTRO = """\
# Benchmarks

`make bench` measures everything on this page again, with the peers installed beside surefit, and writes it
(about {minutes:.0f} minutes when it was last run); `python -m benchmarks NAME` measures one section,
`--quick` a toy size of it that leaves this page alone. The figures are in `benchmarks/results/NAME.json`.

## How to read it

* **Time to a relative duality gap of 1e-6.** The objective is written once. A neutral evaluator
  (`benchmarks/evaluate.py`: numpy, float64, nothing of surefit) sees a contender's coefficients alone and
  computes (P − D\\*) / P(0), where D\\* is the best dual value that the point of *any* contender gave and
  P(0) the objective at w = 0 with the best intercept.
* **Peers get their best.** Every peer is restarted over a grid of its own tolerances, and over the solvers,
  memory layouts and precisions that suit it; the fastest setting that reaches the gap is timed. Conversions
  to its layout are not timed. A peer that never reaches the gap is shown with the gap it got to (its
  *floor*).
* **Ours counts everything**: a plain `fit` on float64 arrays, checks, conversion and the certificate
  included.
* **ratio** is peer / ours, above 1 where we are faster: the median over pairs of runs that alternate (ABAB)
  in one process with equal threads, in brackets its 95 % bootstrap interval; **worst** is the worst single
  pair. At least five pairs, eleven where a run takes under a second, three where it takes over a minute, or
  as the section says. "> x" is a lower bound: the peer was stopped.
* Every contender runs once before anything is timed; what that first call took is given under the table.
* Seconds belong to the machine. Ratios travel better, and still depend on the cores: these are for few cores.

"""


def write(folder: Path, docs: Path, order: Sequence[str]) -> None:
    """The page and its plots."""
    records = {}
    for name in order:
        if (folder / f"{name}.json").exists():
            records[name] = json.loads((folder / f"{name}.json").read_text(encoding="utf8"))
    minutes = sum(record["seconds"] for record in records.values()) / 60
    machines = [record["machine"] for record in records.values()]
    parts = [INTRO.format(minutes=minutes), "## Measured on\n", machine_text(machines[0]), ""]
    parts += ["## Goals\n", summary(records), ""]
    for name, record in records.items():
        parts.append(section(name, record["results"]).rstrip())
        parts.append(
            f"\n`python -m benchmarks {name}`: {_span(record['seconds'])}.{_apart(record, machines)}\n"
        )
        races = record["results"].get("races", [])
        if races:
            from .plots import draw

            (docs / "plots").mkdir(parents=True, exist_ok=True)
            draw(races, docs / "plots" / f"{name}.svg")
    (docs / "benchmarks.md").write_text("\n".join(parts), encoding="utf8")


def section(name: str, results: Mapping[str, Any]) -> str:
    """The page of one benchmark."""
    if "skipped" in results:
        return f"## {name}\n\nNot run: {results['skipped']}\n"
    text: str = importlib.import_module(f"benchmarks.{name}").page(results)
    return text


def machine_text(machine: Mapping[str, Any]) -> str:
    device = f"{machine['device']}, " if "device" in machine else ""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{device}{machine['processor']}, {machine['cores']} cores, {machine['memory GB']:g} GB of memory, "
        f"{machine['system']}, {machine['threads']} threads in every pool. Python {machine['python']}, "
        f"{versions}."
    )


def _apart(record: Mapping[str, Any], machines: Sequence[Mapping[str, Any]]) -> str:
    """What is particular about this section's run."""
    notes = []
    ours = {k: v for k, v in record["machine"].items() if k != "load at start"}
    if ours != {k: v for k, v in machines[0].items() if k != "load at start"}:
        notes.append(f" Measured on another machine: {machine_text(record['machine'])}")
    if record["machine"]["load at start"] > 0.5 * record["machine"]["cores"]:
        notes.append(
            f" The machine was not idle (load {record['machine']['load at start']:g} at the start)."
        )
    if record.get("stopped"):
        notes.append(
            f" It was stopped after {_span(record['stopped'])}: what is missing was not measured."
        )
    if record.get("missing"):
        notes.append(f" Not installed, so not run: {', '.join(record['missing'])}.")
    return "".join(notes)


def summary(records: Mapping[str, Any]) -> str:
    rows = []
    for record in records.values():
        for goal in record["results"].get("goals", []) or race_goals(record["results"]):
            rows.append([goal["work"], goal["goal"], goal["measured"], goal["reached"]])
    return table(["work", "goal", "measured", "reached"], rows)


def race_goals(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for each peer with a goal."""
    lines = []
    for race in results.get("races", []):
        for row in race["peers"]:
            if row["goal"] is None:
                continue
            work = f"{race['problem']} against {row['name']}"
            line = {"work": work, "goal": f"{row['goal']:g}×", "measured": ratio_text(row)}
            lines.append(line | {"reached": reached(row)})
    return lines


def goal_line(row: Mapping[str, Any], peer: str = "scikit-learn") -> dict[str, str]:
    """The line of the table of goals for work that is timed in pairs, without a race."""
    ratio = row.get("ratio", row.get("ratio at least", 0.0))
    return {
        "work": row["work"],
        "goal": f"{row['goal']:g}× {peer}",
        "measured": ratio_text(row),
        "reached": "yes" if ratio >= row["goal"] else "**no**",
    }


def goal_cells(row: Mapping[str, Any]) -> list[str]:
    """The last two cells of such work: its goal, and whether that is reached."""
    return [f"{row['goal']:g}×", goal_line(row)["reached"]] if row["goal"] else ["–", "–"]


def paired_page(
    title: str, text: str, why: str, results: Mapping[str, Any], heads: Sequence[str],
    lines: Sequence[Sequence[str]],
) -> str:  # fmt: skip
    """The section of work that is timed in pairs: a table, what stands in the way, and first calls."""
    found = f"## {title}\n\n{text.strip()}\n\n{table(heads, lines)}\n"
    if any(goal["reached"] != "yes" for goal in results["goals"]):
        found += f"\nWhat stands in the way: {' '.join(why.split())}\n"
    rows = [row for row in results["rows"] if "first call" in row]
    first = dict.fromkeys(f"{row['work']}: {short(row['first call'])}" for row in rows)
    return found + (f"\nFirst call of ours, in seconds: {'; '.join(first)}.\n" if first else "")


def reached(row: Mapping[str, Any]) -> str:
    """yes, no, or why neither."""
    if row["goal"] is None:
        return "–"
    if row["error"]:
        return "peer failed"
    if "ratio" in row:
        return "yes" if row["ratio"] >= row["goal"] else "**no**"
    if "ratio at least" in row:
        return "yes" if row["ratio at least"] >= row["goal"] else "open"
    if "floor" in row:
        return "peer never gets there"
    return "**no**"  # ours did not reach the gap


def race_page(
    title: str, text: str, results: Mapping[str, Any], why: Mapping[str, str], plot: str
) -> str:
    """Heading, text, table, what stands in the way, first calls, plot."""
    rows, ways, firsts = [], [], []
    for race in results["races"]:
        for row in race["peers"]:
            rows.append(_row(race, row))
            if race["ours"]["setting"] and reached(row) in ("**no**", "open"):
                key = f"{race['problem']}; {row['name']}"
                words = why.get(key, why.get(row["name"], "not yet understood."))
                ways.append(f"* *{key}*: {' '.join(words.split())}")
        first = [
            f"{side['name']} {short(side['first call'])}" for side in (race["ours"], *race["peers"])
        ]
        firsts.append(f"{race['problem']}: {', '.join(first)}")
        if race["ours"]["setting"] is None:
            failed = race["ours"]["error"] or f"its floor is {_floor(race['ours'])}"
            ways.append(f"* *{race['problem']}*: ours did not reach the gap: {failed}.")
    heads = ["problem", "peer", "ours with", "peer with", "ours s", "peer s", "ratio", "worst",
             "gap, ours / peer", "goal", "reached"]  # fmt: skip
    lines = [f"## {title}", "", text.strip(), "", table(heads, rows), ""]
    loose = [race for race in results["races"] if (race["reference gap"] or 0.0) > 1e-7]
    for race in loose:
        lines += [
            f"D\\* is known to {gap_text(race['reference gap'])} only on *{race['problem']}*.",
            "",
        ]
    if ways:
        lines += ["What stands in the way:", "", *ways, ""]
    lines += ["First call, in seconds: " + "; ".join(firsts) + ".", ""]
    lines += [f"![Relative gap against time](plots/{plot}.svg)", ""]
    return "\n".join(lines)


def _row(race: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    ours = race["ours"]
    goal = "–" if row["goal"] is None else f"{row['goal']:g}×"
    start = [race["problem"], row["name"], ours["setting"] or "–"]
    if row["error"]:
        return [*start, f"failed: {row['error']}", "–", "–", "–", "–", "–", goal, reached(row)]
    setting, gap = row["setting"], gap_text(row["gap"])
    if setting is None:
        setting, gap = "stopped" if row["capped"] else "tightest setting", f"{_floor(row)} (floor)"
    return [*start, setting, short(row.get("ours")), short(row.get("peer")), ratio_text(row),
            _x(row.get("worst")), f"{gap_text(ours['gap'])} / {gap}", goal, reached(row)]  # fmt: skip


def ratio_text(row: Mapping[str, Any]) -> str:
    """The ratio with its interval, or what stands for it."""
    if "ratio" in row:
        low, high = row["interval"]
        if len(row["pairs"]) == 1:
            return f"{_x(row['ratio'])} (one pair)"
        return f"{_x(row['ratio'])} [{_x(low)}, {_x(high)}]"
    if "ratio at least" in row:
        return f"> {_x(row['ratio at least'])}"
    return f"floor {_floor(row)}" if "floor" in row else "–"


def _floor(side: Mapping[str, Any]) -> str:
    gaps = [point["gap"] for point in side["curve"] if point["gap"] is not None]
    return gap_text(min(gaps, default=math.inf))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def short(value: Any) -> str:
    """Seconds in three digits, or a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def size(*counts: int) -> str:
    """Counts as they stand in titles: 20 242 x 47 236."""
    return " x ".join(f"{count:,}".replace(",", " ") for count in counts)


def _x(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def gap_text(value: Any) -> str:
    """A gap: rounding below zero reads 0."""
    if value is None or not math.isfinite(value):
        return "none"
    return "0" if value <= 0 else f"{value:.0e}"


def _span(value: float) -> str:
    return f"{value:.0f} s" if value < 90 else f"{value / 60:.1f} min"
