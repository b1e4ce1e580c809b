"""Ridge regression on a file larger than memory should be, at the speed at which the file can be read.

Three things run in turn, each in a new process with the file dropped from the page cache: a plain
sequential read, our `Ridge` on `RowBlocks`, and scikit-learn-intelex's `IncrementalRidge` fed block by
block. A fit makes several passes, so while it runs a thread keeps dropping the file from the cache: no pass
is served from memory.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from .harness import interval
from .machine import peak_memory
from .peers import peer
from .report import ROOT, table

TITLE = "Out of core"
TEXT = """
`Ridge` on one `.npy` file of {gigabytes:.3g} GB ({n} x {p}, float64) through `surefit.design.RowBlocks`,
the target in memory, against a plain sequential read of the file (32 MiB at a time, nothing done with it).
Each run is a new process with the file dropped from the page cache, and kept out of it while the fit makes
its passes, the certificate's among them. *speed* is passes × size / time; *memory* is the most the process
held (maximum resident set, interpreter and libraries included). Medians of {rounds} rounds in turn, the
peer once.
"""
WHY = "not yet understood."
COLUMNS, CHUNK, ROUNDS = 250, 1 << 25, 3
KINDS = ("read", "surefit", "IncrementalRidge")


def measure(options: Any) -> dict[str, Any]:
    try:
        from surefit.design import RowBlocks  # noqa: F401
    except ImportError:
        return {"skipped": "surefit.design has no RowBlocks yet."}
    size = 0.05 if options.quick else options.gigabytes
    n = int(size * 1e9 / (8 * COLUMNS))
    kinds = [kind for kind in KINDS if kind != "IncrementalRidge" or peer("sklearnex.linear_model")]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        written = make(Path(folder), n)
        runs: dict[str, list[Any]] = {kind: [] for kind in kinds}
        for i in range(1 if options.quick else ROUNDS):
            for kind in kinds:
                if i == 0 or kind != "IncrementalRidge":  # the peer once: it has no goal to decide
                    runs[kind].append(_child(kind, folder))
    rows = {kind: _median(kind, found, runs["read"]) for kind, found in runs.items()}
    shape = {"n": n, "p": COLUMNS, "gigabytes": size, "rounds": len(runs["read"])}
    return {"rows": rows, "runs": runs, "written s": written, "goals": _goals(rows, size)} | shape


def page(results: dict[str, Any]) -> str:
    lines = []
    for kind, row in results["rows"].items():
        speed, (low, high) = row["of the read"], row["interval"]
        lines.append([
            kind, f"{row['seconds']:.1f}", f"{row['passes']:.0f}", f"{row['MB/s']:.0f}",
            f"{speed:.2f} [{low:.2f}, {high:.2f}]", f"{row['peak MB']:.0f}", row["note"],
        ])  # fmt: skip
    heads = ["work", "seconds", "passes", "speed, MB/s", "of the plain read", "memory, MB", ""]
    lines_out = [f"## {TITLE}", "", TEXT.format(**results).strip(), "", table(heads, lines), ""]
    if any(goal["reached"] != "yes" for goal in results["goals"]):
        lines_out += [f"What stands in the way: {WHY}", ""]
    return "\n".join(lines_out)


def make(folder: Path, n: int) -> float:
    """X.npy and y.npy: windows of a pool of normal numbers, each scaled, so that writing is not the wait."""
    start = time.perf_counter()
    rng = np.random.default_rng(9)
    rows = min(n, CHUNK // (8 * COLUMNS))
    pool = rng.standard_normal(4 * rows * COLUMNS)
    w, y = rng.standard_normal(COLUMNS), np.empty(n)
    with (folder / "X.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (n, COLUMNS)}
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, n, rows):
            count = min(rows, n - first)
            offset = int(rng.integers(0, len(pool) - count * COLUMNS + 1))
            block = pool[offset : offset + count * COLUMNS].reshape(count, COLUMNS)
            block = block * rng.uniform(0.5, 1.5)
            y[first : first + count] = block @ w + rng.standard_normal(count)
            block.tofile(file)
        file.flush()
        os.fsync(file.fileno())
    np.save(folder / "y.npy", y)
    return time.perf_counter() - start


def _child(kind: str, folder: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.out_of_core", kind, folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _median(kind: str, found: list[Any], reads: list[Any]) -> dict[str, Any]:
    relative = [a["MB/s"] / b["MB/s"] for a, b in zip(found, reads, strict=False)]
    row = {
        key: statistics.median(run[key] for run in found) for key in ("seconds", "passes", "MB/s")
    }
    row |= {"peak MB": max(run["peak MB"] for run in found), "note": found[-1]["note"]}
    return row | {"of the read": statistics.median(relative), "interval": list(interval(relative))}


def _goals(rows: dict[str, Any], size: float) -> list[dict[str, str]]:
    row = rows["surefit"]
    work = f"ridge out of core, {size:g} GB"
    return [
        {
            "work": work,
            "goal": "under 1 GB of memory",
            "measured": f"{row['peak MB']:.0f} MB",
            "reached": "yes" if row["peak MB"] < 1000 else "**no**",
        },
        {
            "work": work,
            "goal": "at the reading speed of the disk (0.9 of it)",
            "measured": f"{row['of the read']:.2f} of it",
            "reached": "yes" if row["of the read"] >= 0.9 else "**no**",
        },
    ]


# --------------------------------------------------------------------- in the child process


def drop(path: Path) -> None:
    """Ask the system to forget the file's pages."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(kind: str, folder: Path) -> dict[str, Any]:
    """One run of one kind, timed, with the file out of the cache."""
    path, done = folder / "X.npy", threading.Event()
    action = {"read": _read, "surefit": _surefit, "IncrementalRidge": _incremental}[kind](folder)
    drop(path)

    def keep_dropping() -> None:
        while not done.wait(0.5):
            drop(path)

    dropper = threading.Thread(target=keep_dropping)
    dropper.start()
    start = time.perf_counter()
    try:
        passes, note = action()
    finally:
        taken = time.perf_counter() - start
        done.set()
        dropper.join()
    speed = passes * path.stat().st_size / taken / 1e6
    return {
        "seconds": taken,
        "passes": passes,
        "MB/s": speed,
        "peak MB": peak_memory(),
        "note": note,
    }


def _read(folder: Path) -> Any:
    buffer = bytearray(CHUNK)

    def action() -> tuple[int, str]:
        with open(folder / "X.npy", "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        return 1, ""

    return action


def _surefit(folder: Path) -> Any:
    from surefit.design import RowBlocks
    from surefit.linear_model import Ridge

    X, y = RowBlocks(folder / "X.npy"), np.load(folder / "y.npy")
    small = folder / "small.npy"
    np.save(small, np.random.default_rng(0).standard_normal((2_000, COLUMNS)))
    Ridge().fit(RowBlocks(small), y[:2_000])  # what is loaded late is loaded now

    def action() -> tuple[int, str]:
        model = Ridge().fit(X, y)
        return X.passes, "certificate holds" if model.certificate_.ok else "certificate fails"

    return action


def _incremental(folder: Path) -> Any:
    from sklearnex.linear_model import IncrementalRidge

    y = np.load(folder / "y.npy")
    model = IncrementalRidge(alpha=1.0)

    def action() -> tuple[int, str]:
        rows = CHUNK // (8 * COLUMNS)
        with open(folder / "X.npy", "rb") as file:
            version = np.lib.format.read_magic(file)
            getattr(np.lib.format, f"read_array_header_{version[0]}_0")(file)
            for first in range(0, len(y), rows):
                count = min(rows, len(y) - first)
                block = np.fromfile(file, count=count * COLUMNS).reshape(count, COLUMNS)
                model.partial_fit(block, y[first : first + count])
        model.coef_  # noqa: B018 (the solution is computed when it is asked for)
        return 1, "no certificate"

    return action


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]))))
