"""How long ``import surefit`` takes, against ``import sklearn.linear_model``; a new process each time."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

STATEMENTS = {
    "import sklearn.linear_model": "import sklearn.linear_model",
    "import surefit": "import surefit",
    "import surefit.linear_model": "import surefit.linear_model",
}


def seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(rounds: int = 9) -> tuple[dict[str, Any], str]:
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(rounds):  # interleaved, so that a busy moment hits all of them
        for name, statement in STATEMENTS.items():
            times[name].append(seconds(statement))
    reference = times["import sklearn.linear_model"]
    lines = ["## Import", "", "| statement | median seconds | ratio |", "|---|---|---|"]
    result = {}
    for name, measured in times.items():
        ratio = statistics.median(a / b for a, b in zip(measured, reference, strict=True))
        result[name] = {"seconds": statistics.median(measured), "ratio": ratio}
        lines.append(f"| `{name}` | {statistics.median(measured):.2f} | {ratio:.2f} |")
    lines += ["", f"Median of {rounds} paired ratios; goal: `import surefit` at most 1.2."]
    return result, "\n".join(lines)
