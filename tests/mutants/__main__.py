"""Plant small faults one at a time and count those that the tests notice.

    python -m tests.mutants                  # 330 faults over all areas
    python -m tests.mutants --area duality --count 40 --seed 1

Each worker has a copy of the package in a temporary folder, in which one file at a time has one fault.
The tests that guard the file run until the first failure. A fault is *noticed* when a test fails or the
time is up (an endless loop), and *survives* when all tests pass. Survivors that change nothing that could
be observed are argued one by one in `argued.toml` and counted on their own.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import Queue

from .areas import AREAS, SHARES, files_of, guards_of
from .faults import Fault, faults_of, plant

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "surefit"
ARGUED = Path(__file__).with_name("argued.toml")
Planted = tuple[str, str, Fault]  # area, file below the package, fault


def main() -> None:
    options = _options()
    planted = _chosen(options.area or list(AREAS), options.count, options.seed)
    print(f"{len(planted)} faults, seed {options.seed}, {options.jobs} at a time", flush=True)
    workers: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as folder:
        for k in range(options.jobs):
            copy = Path(folder) / f"worker{k}"
            shutil.copytree(PACKAGE, copy / "surefit", ignore=shutil.ignore_patterns("__pycache__"))
            workers.put(copy)
        quiet = _unguarded(planted, workers, options.timeout)
        if quiet:
            sys.exit("tests fail without any fault: " + ", ".join(quiet))
        with ThreadPoolExecutor(options.jobs) as pool:
            records = list(pool.map(lambda p: _try(p, workers, options.timeout), planted))
    _report(records)
    if options.out:
        Path(options.out).write_text(json.dumps(records, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--area", action="append", choices=list(AREAS), help="only this area")
    parser.add_argument("--count", type=int, default=330, help="number of faults in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at the same time")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one fault")
    parser.add_argument("--out", help="a JSON file with every fault and its outcome")
    return parser.parse_args()


def _chosen(areas: list[str], count: int, seed: int) -> list[Planted]:
    """A share of the faults for each area, drawn in turn from each of its files."""
    rng = random.Random(seed)
    chosen: list[Planted] = []
    shares = {area: SHARES.get(area, 1) for area in areas}
    for area in areas:
        pools = []
        for path in files_of(area, PACKAGE):
            name = path.relative_to(PACKAGE).as_posix()
            faults = faults_of(path.read_text())
            rng.shuffle(faults)
            if faults and guards_of(area, name, ROOT):
                pools.append([(area, name, fault) for fault in faults])
        rng.shuffle(pools)
        wanted = -(-count * shares[area] // sum(shares.values()))
        while wanted and any(pools):
            for pool in pools:
                if pool and wanted:
                    chosen.append(pool.pop())
                    wanted -= 1
    return chosen


def _unguarded(planted: list[Planted], workers: Queue[Path], timeout: float) -> list[str]:
    """Groups of tests that fail on the sound package: they could notice nothing."""
    groups = {tuple(guards_of(area, name, ROOT)): name for area, name, _ in planted}
    worker = workers.get()
    try:
        return [
            " ".join(tests)
            for tests in groups
            if _run(list(tests), worker, 10 * timeout) != "survives"
        ]
    finally:
        workers.put(worker)


def _try(planted: Planted, workers: Queue[Path], timeout: float) -> dict[str, object]:
    """Plant one fault, run its guards, take it out again."""
    area, name, fault = planted
    worker = workers.get()
    try:
        target = worker / "surefit" / name
        sound = (PACKAGE / name).read_text()
        faulty = plant(sound, fault)
        ast.parse(faulty)
        target.write_text(faulty)
        outcome = _run(guards_of(area, name, ROOT), worker, timeout)
        target.write_text(sound)
    finally:
        workers.put(worker)
    record = {"area": area, "file": name, "outcome": outcome, **asdict(fault)}
    if outcome == "survives" and _is_argued(record):
        record["outcome"] = "argued"
    print(f"{record['outcome']:<9} {name}:{fault.line} {fault.kind}: {_shown(fault)}", flush=True)
    return record


def _run(tests: list[str], worker: Path, timeout: float) -> str:
    """The outcome of the tests on a worker's copy of the package."""
    environment = dict(os.environ, PYTHONPATH=str(worker), PYTHONDONTWRITEBYTECODE="1")
    environment["NUMBA_CACHE_DIR"] = str(worker / "kernels")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", *tests]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=timeout, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "noticed"
    return "survives" if done.returncode == 0 else "noticed"


def _is_argued(record: dict[str, object]) -> bool:
    """Whether a survivor is known, with the reason why no test could notice it."""
    if not ARGUED.exists():
        return False
    known = tomllib.loads(ARGUED.read_text()).get("fault", [])
    same = ("file", "before", "after")
    return any(all(entry[key] == record[key] for key in same) for entry in known)


def _shown(fault: Fault) -> str:
    before, after = (" ".join(text.split()) for text in (fault.before, fault.after))
    return f"{before[:70]} -> {after[:70]}"


def _report(records: list[dict[str, object]]) -> None:
    """A line for each area: planted, noticed, argued, surviving."""
    print(f"\n{'area':<12} {'planted':>8} {'noticed':>8} {'argued':>7} {'survive':>8} {'share':>7}")
    counts = Counter((str(r["area"]), str(r["outcome"])) for r in records)
    areas = list(dict.fromkeys(str(r["area"]) for r in records))
    for area in [*areas, "all"]:
        of = [
            sum(n for (a, o), n in counts.items() if o == outcome and area in (a, "all"))
            for outcome in ("noticed", "argued", "survives")
        ]
        total = sum(of)
        share = 100.0 * of[0] / max(total - of[1], 1)
        print(f"{area:<12} {total:>8} {of[0]:>8} {of[1]:>7} {of[2]:>8} {share:>6.1f}%")


if __name__ == "__main__":
    main()
