"""The command line: ``surefit fit``, ``predict``, ``verify``, ``report``, ``show`` and ``data``.

Exit codes, the same for every command:

====  ==========================================================================
0     done; every claim that could be decided holds
1     a claim fails (the files are written all the same)
2     the command was not understood: an option or argument is wrong
3     the table cannot be used: the message says why, and what to do
4     the model file or certificate cannot be read
5     a file cannot be written
130   interrupted; ``fit`` has written the best model so far, if there was one
====  ==========================================================================
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

__all__ = ["STARTED", "main"]

_program = False
STARTED = (
    time.monotonic()
)  # ``--time`` counts from here: loading libraries is part of the user's wait


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (and exits with it when called as a program).

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.
    """
    global _program
    _program = arguments is None
    from ._app import run
    from ._streams import forgiving

    forgiving()
    code = run(None if arguments is None else list(arguments))
    if arguments is None:
        sys.stdout.flush()
        raise SystemExit(code)
    return code


def as_program() -> bool:
    """Whether the command line was called as a program, not from Python."""
    return _program
