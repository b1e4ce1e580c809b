"""Progress of many fits: a bar with the time left on a terminal, a line now and then elsewhere.

The bar hangs on joblib's own count of finished tasks, so that it works with every backend.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from sklearn.utils.parallel import Parallel

__all__ = ["Progress", "ProgressParallel"]


class Progress:
    """Counts finished fits; silent when ``verbose`` is 0.

    Parameters
    ----------
    name : str
        What is counted.
    total : int
        How many fits there are.
    verbose : int
        0 is silent.
    """

    def __init__(self, name: str, total: int, verbose: int) -> None:
        self.name, self.total, self.verbose = name, total, verbose
        self.bar: Any = None
        self.started = self.printed = 0.0

    def __enter__(self) -> Progress:
        if self.verbose:
            from rich.console import Console

            console = Console(stderr=True)
            if console.is_terminal:
                from rich.progress import Progress as Bar

                self.bar = Bar(console=console, transient=True)
                self.task = self.bar.add_task(self.name, total=self.total)
                self.bar.start()
            self.started = self.printed = time.perf_counter()
        return self

    def completed(self, done: int) -> None:
        """``done`` of the fits are finished."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done)
        elif self.verbose and time.perf_counter() - self.printed > 2.0:
            self.printed = time.perf_counter()
            left = (self.printed - self.started) * (self.total - done) / max(done, 1)
            print(f"{self.name}: {done} of {self.total}, {left:.0f} s left", file=sys.stderr)

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.stop()


class ProgressParallel(Parallel):
    """joblib's ``Parallel`` that tells a :class:`Progress` how many tasks are done.

    A task may stand for several fits: ``weight``.
    """

    def __init__(self, progress: Progress, *, weight: int = 1, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.progress, self.weight = progress, weight

    def print_progress(self) -> None:
        """Called by joblib whenever tasks have finished."""
        self.progress.completed(self.weight * self.n_completed_tasks)
