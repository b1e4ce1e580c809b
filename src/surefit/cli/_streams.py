"""Output that cannot fail: what a terminal has no letter for is written with letters it has.

A terminal in Latin-1, or a pipe in ASCII, has no tick and no arrow. Python would end in an error, and its own
"replace" would write ``?`` for a tick, which means *undecided* here.
"""

from __future__ import annotations

import codecs
import sys

__all__ = ["forgiving"]

_SPELT = {
    "✓": "+",
    "✗": "x",
    "→": ">",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "−": "-",
    "…": "...",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "∞": "inf",
    "·": "-",
    "²": "^2",
    "\u00a0": " ",
    "━": "-",
    "╸": "-",
    "╺": "-",
}
_SPELT |= dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))


def _spell(error: UnicodeError) -> tuple[str, int]:
    """The letters that could not be written, spelt out; others as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    letters = (
        _SPELT.get(letter, letter.encode("ascii", "backslashreplace").decode()) for letter in wrong
    )
    return "".join(letters), error.end


def forgiving() -> None:
    """Let the standard streams spell out what their encoding does not have."""
    codecs.register_error("surefit.spelt", _spell)
    for stream in (sys.stdout, sys.stderr):
        encoding = str(getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        change = getattr(stream, "reconfigure", None)
        if change is not None and not encoding.startswith("utf"):
            change(errors="surefit.spelt")
