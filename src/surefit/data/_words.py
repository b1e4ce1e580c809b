"""Words for people: the error of a bad table, and names from a file made safe to print.

A column name or a value comes from whoever wrote the file. It is kept as data, but a message that quotes
it goes through :func:`shown`, so that nothing in a file can move a terminal's cursor, change its colours,
reverse the reading order of a line or fill the screen.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["TableError", "join_words", "listed", "near", "shown"]

WIDTH = 60  # characters of a name or value that a message quotes
MOST_NAMES = 2000  # spelling is compared with at most this many names


class TableError(ValueError):
    """A table that cannot be read or used; the message says what is wrong, where, and the remedy."""


def shown(text: Any, width: int = WIDTH) -> str:
    r"""``text`` on one line, with control characters and reading-order marks escaped, at most ``width`` long.

    Examples
    --------
    >>> from surefit.data import shown
    >>> shown("age\x1b[31m")
    'age\\x1b[31m'
    >>> shown("a" * 100, width=10)
    'aaaaaaaaa…'
    """
    whole = str(text)
    escaped = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in whole[: width + 1]
    )
    return escaped if len(escaped) <= width else escaped[: width - 1] + "…"


def listed(names: Iterable[Any], most: int = 5) -> str:
    """``'a', 'b' and 3 more``: a few names, each shown safely."""
    names = list(names)
    words = [f"'{shown(name)}'" for name in names[:most]]
    if len(names) > most:
        return ", ".join(words) + f" and {len(names) - most:,} more"
    return join_words(words)


def join_words(words: Sequence[str]) -> str:
    """``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def near(name: str, names: Sequence[str]) -> str:
    """A sentence that suggests the nearest spellings of ``name`` among ``names``, or lists a few."""
    lowered = {other[:200].lower(): other for other in reversed(names[:MOST_NAMES])}
    found = difflib.get_close_matches(name[:200].lower(), list(lowered), n=3, cutoff=0.6)
    if found:
        return f"Did you mean {listed(lowered[key] for key in found)}?"
    return f"The columns are {listed(names, 8)}." if names else "There are no columns."
