"""Time, progress and interruption of a long piece of work.

A :class:`Watch` knows when the time is up, says what is being done, and remembers that the user pressed
Ctrl-C: work that may be left out asks it first. The plain one is silent; the command line gives one that
draws a bar.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["Watch"]

T = TypeVar("T")


class Watch:
    """A budget of seconds, and what the user is told.

    Parameters
    ----------
    seconds : float
        How long the whole work may take.
    started : float, optional
        When it began, by ``time.monotonic()``; now by default.
    """

    def __init__(self, seconds: float = 60.0, *, started: float | None = None) -> None:
        self.seconds = float(seconds)
        self.start = time.monotonic() if started is None else started
        self.interrupted = False
        self.stoppable = False  # whether the work under way may be broken off where it is
        self.skipped: list[str] = []

    def left(self, share: float = 1.0) -> float:
        """Seconds until ``share`` of the budget is spent; 0 after an interruption."""
        if self.interrupted:
            return 0.0
        return self.seconds * share - (time.monotonic() - self.start)

    def say(self, text: str, done: float | None = None) -> None:
        """What is being done now, and which share of all work is done, where that is known."""

    def note(self, text: str) -> None:
        """Something the user should know, to be kept on the screen."""

    def close(self) -> None:
        """The work is over."""

    def optional(
        self, name: str, work: Callable[[], T], *, seconds: float = 0.0, share: float = 1.0
    ) -> T | None:
        """Do ``work`` if there is time for about ``seconds`` of it; ``None``, with a note, otherwise."""
        if self.left(share) < seconds or self.interrupted:
            self.skip(name)
            return None
        self.say(name)
        try:
            with self.breaking():
                return work()
        except KeyboardInterrupt:
            self.interrupt()
            self.skip(name)
            return None

    @contextlib.contextmanager
    def breaking(self) -> Iterator[None]:
        """Work that Ctrl-C may break off; the caller goes on without it."""
        self.stoppable = True
        try:
            yield
        finally:
            self.stoppable = False

    def skip(self, name: str) -> None:
        """Something is left out: remember it, and why."""
        text = f"{name}: {'interrupted' if self.interrupted else 'no time left'}"
        if text not in self.skipped:
            self.skipped.append(text)

    def interrupt(self) -> None:
        """Ctrl-C was pressed: what is not needed is left out from now on."""
        if self.interrupted:  # the second time it is meant
            raise KeyboardInterrupt
        self.interrupted = True
        self.note(
            "interrupted: finishing with the best model so far (press Ctrl-C again to give up)"
        )

    def timed(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """The result of ``work`` and the seconds that it took."""
        before = time.perf_counter()
        result = work()
        return result, time.perf_counter() - before
