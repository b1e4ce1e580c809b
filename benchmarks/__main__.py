"""All benchmarks with one command, each in a process of its own; see ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import harness, machine, peers, report

RESULTS = report.ROOT / "benchmarks" / "results"
BENCHMARKS = """
ols lasso_path logistic multinomial l1_logistic huber quantile perceptron sgd out_of_core
linear_svm kernel_svm kernel_ridge neighbours grid_search kmeans gaussian_mixture factors
scaling table_fit fairness networks words certificate_cost first_call import_time accuracy
""".split()


@dataclass(frozen=True)
class Options:
    """What a benchmark is told."""

    quick: bool
    threads: int
    gigabytes: float
    folder: Path | None

    @property
    def pairs(self) -> int:
        return 2 if self.quick else 5


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default"
    )
    parser.add_argument(
        "--quick", action="store_true", help="toy sizes; writes to benchmarks/results/local only"
    )
    parser.add_argument(
        "--threads", type=int, default=machine.cores(), help="in every pool; all cores by default"
    )
    parser.add_argument(
        "--gigabytes", type=float, default=20.0, help="size of the file of out_of_core"
    )
    parser.add_argument(
        "--folder", type=Path, help="where out_of_core puts its file; a temporary folder by default"
    )
    parser.add_argument(
        "--limit", type=float, default=900.0, help="seconds after which a benchmark is stopped"
    )
    parser.add_argument("--report", action="store_true", help="only write docs/benchmarks.md again")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(argv)
    unknown = [name for name in parsed.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    return parsed


def measure(name: str, options: Options, path: Path) -> dict[str, Any]:
    """Run one benchmark in this process; ``path`` always holds what there is so far."""
    module = importlib.import_module(f"benchmarks.{name}")
    start = time.perf_counter()
    record: dict[str, Any] = {
        "name": name,
        "quick": options.quick,
        "machine": machine.describe(options.threads),
        "missing": peers.MISSING,
        "results": {"skipped": "it ended before it had a result."},
    }

    def save(results: dict[str, Any]) -> None:
        record.update(results=results, seconds=time.perf_counter() - start)
        text = json.dumps(machine.finite(record), indent=1, allow_nan=False)
        path.write_text(text + "\n", encoding="utf8")

    def after_race(race: dict[str, Any]) -> None:
        races.append(race)
        save({"races": races})

    races: list[Any] = []
    save(record["results"])
    harness.AFTER_RACE = after_race
    with machine.limit_threads(options.threads):
        save(module.measure(options))
    return record


def main() -> int:
    asked = arguments()
    names, folder = asked.names or BENCHMARKS, RESULTS / "local" if asked.quick else RESULTS
    docs = folder if asked.quick else report.ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    if asked.in_process:
        options = Options(asked.quick, asked.threads, asked.gigabytes, asked.folder)
        record = measure(names[0], options, folder / f"{names[0]}.json")
        print(report.section(names[0], record["results"]), flush=True)
        return 0
    failed = [] if asked.report else [name for name in names if not _child(name, asked, folder)]
    report.write(
        folder,
        docs,
        [*BENCHMARKS, "gpu", "gpu_clusters", "gpu_networks", "gpu_words", "image_accuracy"],
    )
    print(f"wrote {docs / 'benchmarks.md'}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _child(name: str, asked: argparse.Namespace, folder: Path) -> bool:
    """Run a benchmark in a new process; whether it came to its end."""
    print(f"{name} ...", flush=True)
    command = [sys.executable, "-m", "benchmarks", "--in-process", name, *_flags(asked)]
    path, environment = folder / f"{name}.json", machine.environment(asked.threads)
    path.unlink(missing_ok=True)
    child = subprocess.Popen(command, cwd=report.ROOT, env=environment, start_new_session=True)
    try:
        return child.wait(asked.limit) == 0
    except subprocess.TimeoutExpired:
        print(f"    {name} was stopped after {asked.limit:.0f} s", flush=True)
        if path.exists():
            record = json.loads(path.read_text(encoding="utf8"))
            record |= {"stopped": asked.limit, "seconds": asked.limit}
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")
        return False
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # it leads a group of its own: its children too
            child.wait()


def _flags(asked: argparse.Namespace) -> list[str]:
    flags = ["--threads", str(asked.threads), "--gigabytes", str(asked.gigabytes)]
    flags += ["--quick"] if asked.quick else []
    return flags + (["--folder", str(asked.folder)] if asked.folder else [])


if __name__ == "__main__":
    sys.exit(main())
