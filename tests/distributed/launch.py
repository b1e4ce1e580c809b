"""Starts ranks for tests: processes on this machine that form a group, as torchrun would."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ROOT", "arrays", "launch", "outcome", "start"]

ROOT = Path(__file__).resolve().parents[2]


def start(job: str, size: int, *arguments: str) -> list[subprocess.Popen[str]]:
    """``python -m tests.distributed.<job> arguments`` on ranks 0, ..., size - 1."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {**os.environ, "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
    shared |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    shared |= {"PYTHONPATH": str(ROOT / "src")}
    return [
        subprocess.Popen(
            [sys.executable, "-m", f"tests.distributed.{job}", *arguments],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in range(size)
    ]


def outcome(ranks: list[subprocess.Popen[str]], limit: float = 120.0) -> list[tuple[int, str]]:
    """(exit status, what was printed) of each rank; all are ended at the limit."""
    end = time.monotonic() + limit
    try:
        for process in ranks:
            process.wait(max(1.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        pass  # whoever hangs is shown as killed
    finally:
        for process in ranks:
            process.kill()
    return [(process.returncode, process.communicate()[0]) for process in ranks]


def launch(job: str, size: int, *arguments: str, limit: float = 120.0) -> None:
    """Run a job on ranks to its end, and show what it printed if one fails."""
    found = outcome(start(job, size, *arguments), limit)
    for rank, (status, text) in enumerate(found):
        assert status == 0, f"rank {rank} of {size} ended with {status}:\n{text}"


def arrays(path: Path) -> dict[str, Any]:
    """What a job wrote."""
    with np.load(path) as file:
        return dict(file)
