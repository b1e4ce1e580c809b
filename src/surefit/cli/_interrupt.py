"""Ctrl-C during a fit: the first asks it to finish with what it has, the second gives up.

Only a search and work that may be left out are broken off where they are. What has to be done is finished,
and the three files are written all or none.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

from ..table.watch import Watch

__all__ = ["finishing", "interruptible"]


@contextlib.contextmanager
def interruptible(watch: Watch) -> Iterator[None]:
    """Signals of Ctrl-C go to the watch until the end of the block."""

    def handle(number: int, frame: Any) -> None:
        if watch.stoppable:
            raise KeyboardInterrupt
        watch.interrupt()  # the second time this raises

    try:
        before = signal.signal(signal.SIGINT, handle)
    except ValueError:  # not in the main thread: nobody presses keys there
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def finishing() -> Iterator[None]:
    """The last second of the work: Ctrl-C is passed over, so that the files are written all or none."""
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: None)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
