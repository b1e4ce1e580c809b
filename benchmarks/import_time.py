"""How long ``import surefit`` takes, against ``import sklearn.linear_model``; a new process each time."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

from .report import table

STATEMENTS = {
    "import sklearn.linear_model": "import sklearn.linear_model",
    "import surefit": "import surefit",
    "import surefit.linear_model": "import surefit.linear_model",
}


def seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(options: Any) -> dict[str, Any]:
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(
        3 if options.quick else 9
    ):  # interleaved, so that a busy moment hits all of them
        for name, statement in STATEMENTS.items():
            times[name].append(seconds(statement))
    reference = times["import sklearn.linear_model"]
    rows = {}
    for name, measured in times.items():
        ratio = statistics.median(a / b for a, b in zip(measured, reference, strict=True))
        rows[name] = {
            "seconds": statistics.median(measured),
            "ratio": ratio,
            "rounds": len(measured),
        }
    ratio = rows["import surefit"]["ratio"]
    goal = {
        "work": "import surefit",
        "goal": "at most 1.2 times import sklearn.linear_model",
        "measured": f"{ratio:.2f}",
        "reached": "yes" if ratio <= 1.2 else "**no**",
    }
    return {"rows": rows, "goals": [goal]}


def page(results: dict[str, Any]) -> str:
    rows = [
        [f"`{name}`", f"{row['seconds']:.2f}", f"{row['ratio']:.2f}"]
        for name, row in results["rows"].items()
    ]
    rounds = results["rows"]["import surefit"]["rounds"]
    text = f"Median of {rounds} paired ratios; goal: `import surefit` at most 1.2."
    return f"## Import\n\n{table(['statement', 'median seconds', 'ratio'], rows)}\n\n{text}\n"
