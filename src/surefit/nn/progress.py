"""How far a run has come: a bar with the time left on a terminal, a line an epoch elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["Progress", "clock"]


def clock(seconds: float) -> str:
    """A time span for people.

    Examples
    --------
    >>> clock(7), clock(75), clock(3700)
    ('7 s', '1 min 15 s', '1 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    """Shown on standard error; ``verbose=0`` shows nothing, 2 prints lines even on a terminal."""

    def __init__(self, verbose: int, total: int, done: int = 0) -> None:
        self.verbose, self.total, self.first = int(verbose), total, done
        self.started = time.perf_counter()
        self._bar: Any = None
        if verbose == 1 and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import TimeRemainingColumn

            self._bar = Bar(
                *Bar.get_default_columns()[:-1], TimeRemainingColumn(), console=Console(stderr=True)
            )
            self._task = self._bar.add_task("training", total=total, completed=done)
            self._bar.start()

    def step(self, step: int, loss: float) -> None:
        """Steps done so far, and the last loss known."""
        if self._bar is not None:
            self._bar.update(self._task, completed=step, description=f"loss {loss:.4g}")

    def epoch(self, step: int, entry: dict[str, float]) -> None:
        """An epoch has ended."""
        if not self.verbose or self._bar is not None:
            return
        spent = time.perf_counter() - self.started
        left = spent / max(step - self.first, 1) * (self.total - step)
        numbers = ", ".join(
            f"{k} {v:.4g}" for k, v in entry.items() if k not in ("step", "seconds")
        )
        print(f"{numbers}, {clock(left)} left", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
