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
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._draw()

    def _draw(self) -> None:
        """A bar that moves by itself: a step may take longer than a moment."""
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        watch = self

        class Used(BarColumn):
            """The share of the time that is used."""

            def render(self, task: Any) -> Any:
                task.completed = watch.used(task.completed)
                return super().render(task)

        class Left(ProgressColumn):
            """The seconds that are left."""

            def render(self, task: Any) -> Text:
                return Text(watch.left_words())

        self.bar = Progress(
            TextColumn("{task.fields[what]}", markup=False),
            Used(bar_width=self._bar_width()),
            Left(),
            console=self.console,
            transient=True,
            refresh_per_second=4,
        )
        self.task = self.bar.add_task("", total=1.0, what="")
        self.bar.start()

    def _bar_width(self) -> int:
        return min(30, max(5, int(self.console.width) - 50))

    def used(self, done: float = 0.0) -> float:
        """The share of the time that is used, or of the work that is done, whichever is more."""
        share = (time.monotonic() - self.start) / self.seconds if self.seconds < 1e8 else 0.0
        return min(1.0, max(share, done))

    def left_words(self) -> str:
        """How long it can still take; empty where nobody set a limit."""
        if self.seconds >= 1e8:
            return ""
        if self.interrupted or self.left() <= 0:
            return "finishing"
        return f"at most {self.left():.0f} s left"

    def say(self, text: str, done: float | None = None) -> None:
        """The step under way, how much of the time is used, and how much is left."""
        if self.quiet:
            return
        if self.bar is not None:
            width = self.console.width - self._bar_width() - 20
            self.bar.update(self.task, completed=self.used(done or 0.0), what=safe(text, width))
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
