"""What a command says and where: results to standard output, everything else to standard error.

Names and values from a table are printed as plain text, with control characters escaped, never as markup.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ..data import shown
from ..table.watch import Watch

__all__ = ["BarWatch", "complain", "console", "listed", "print_json", "safe"]


def console(*, stderr: bool = False) -> Any:
    """A rich console that reads no markup, emoji or links from what it prints."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)


def complain(message: str, *, hint: str = "") -> None:
    """An error in one paragraph on standard error."""
    text = "\n".join(safe(line) for line in str(message).splitlines()) or "unknown error"
    print(f"surefit: {text}", file=sys.stderr)
    if hint:
        print(safe(hint), file=sys.stderr)


def safe(text: Any, width: int = 2000) -> str:
    """Text without control characters."""
    return shown(text, width)


def print_json(document: Any) -> None:
    """A document on standard output, for scripts."""
    json.dump(document, sys.stdout, ensure_ascii=True, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def listed(values: list[str] | None) -> list[str]:
    """The values of an option that may be given several times, each a list with commas."""
    parts = [part.strip() for value in values or [] for part in value.split(",")]
    return [part for part in parts if part]


class BarWatch(Watch):
    """A bar on a terminal, with the time left; a line now and then elsewhere; nothing when ``quiet``."""

    def __init__(
        self,
        seconds: float,
        *,
        quiet: bool = False,
        verbose: bool = False,
        started: float | None = None,
    ) -> None:
        super().__init__(seconds, started=started)
        self.quiet, self.verbose = quiet, verbose
        self.bar: Any = None
        self.printed = time.monotonic()
        if quiet:
            return
        self.console = console(stderr=True)
        if self.console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self.bar = Progress(
                TextColumn("{task.fields[what]}", markup=False),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[left]}", markup=False),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task("", total=1.0, what="", left="")
            self.bar.start()

    def say(self, text: str, done: float | None = None) -> None:
        """The step under way, how much of the time is used, and how much is left."""
        if self.quiet:
            return
        if self.bar is not None:
            finite = self.seconds < 1e8
            used = (time.monotonic() - self.start) / self.seconds if finite else done or 0.0
            left = (
                f"at most {max(0.0, self.left()):.0f} s left"
                if finite and not self.interrupted
                else ""
            )
            share = min(1.0, max(used, done or 0.0))
            self.bar.update(self.task, completed=share, what=safe(text, 60), left=left)
        elif self.verbose or time.monotonic() - self.printed > 5.0:
            print(safe(text), file=sys.stderr, flush=True)
            self.printed = time.monotonic()

    def note(self, text: str) -> None:
        """A line that stays."""
        if not self.quiet:
            if self.bar is not None:
                self.bar.console.print(safe(text))
            else:
                print(safe(text), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
            self.quiet = True
