"""A claim in one line: its essential number, without what it rests on.

A claim's statement is a whole sentence, with its probability, its conditions and every number. On a
terminal that is too much for a first look. :func:`brief` finds the number that a reader looks for in the
sentence itself, so that a line can say nothing that the claim does not; a sentence that it does not know is
shortened to its first part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .words import interval, percent, plain, points, span

__all__ = ["brief"]

_NUMBER = r"(\d[\d.]*(?:e[-+]?\d+)?)"
_OPENING = re.compile(r"^with probability [\d.]+ %(?: \([^)]*\))?, (?:for all radii at once, )?")
_ASIDE = re.compile(r" \(errors above [^)]*\)")


def _limits(found: re.Match[str]) -> str:
    low, high, seen = found.groups()[:3]
    return f"true error {interval(low, high, share=True)} (found {percent(seen)})"


def _gap(found: re.Match[str]) -> str:
    low, high, seen, where, verdict, tolerance = found.groups()
    text = f"{points(seen)} points ({span(low, high)})"
    text = f"{text}: {where}" if where else text
    return f"{text}; {verdict} the tolerance of {points(tolerance)}" if verdict else text


def _at(found: re.Match[str], words: str) -> str:
    text = found.string
    shares = [(m[1], m[2]) for m in re.finditer(rf"{_NUMBER} at eps {_NUMBER}(?![\d.])", text)]
    kept = [(share, eps) for share, eps in shares if eps in ("0.1", "0.5")] or shares[:2]
    return words + ", ".join(
        f"{percent(share)} at {'' if k else 'eps '}{eps}" for k, (share, eps) in enumerate(kept)
    )


def _risk(found: re.Match[str]) -> str:
    low, high, eps = found.groups()
    return f"{interval(low, high, share=True)} of rows to come at eps {eps}"


_FORMS: dict[str, tuple[str, Callable[[re.Match[str]], str]]] = {
    "duality gap": (
        r"within (\S+) of the global minimum",
        lambda m: f"objective within {m[1]} of the least possible",
    ),
    "training rows kept": (
        r"^(\d+) entries of the stored rows",
        lambda m: f"{m[1]} stored entries differ from the training data",
    ),
    "exact neighbours": (
        r"^of (\d+) of (\d+) training rows, (\d+) have a list",
        lambda m: f"{m[3]} of {m[1]} rows tested have wrong neighbours",
    ),
    "closed form": (
        r"contradicts the model's label on (\d+) of (\d+) rows",
        lambda m: f"the formula contradicts the model on {m[1]} of {m[2]} rows",
    ),
    "complementary slackness": (r"is decided by surefit\.verify", lambda m: "decided by verify"),
    "leave-one-out error": (r"^needs the neighbours", lambda m: "decided by verify"),
    "generalisation": (
        rf"true error is between {_NUMBER} and {_NUMBER} \(observed {_NUMBER}\)",
        _limits,
    ),
    "selection excess": (
        rf"true error is at most {_NUMBER} above that of the best of (\d+)",
        lambda m: f"at most {points(m[1])} points above the best of {m[2]} candidates",
    ),
    "calibration": (
        rf"is within {_NUMBER} of the mean predicted",
        lambda m: f"true rates within {points(m[1])} points of the predicted ones",
    ),
    "prediction interval": (
        r"at least (\S+) of rows to come have .* within (\S+) of the prediction",
        lambda m: f"{m[1]} of rows to come are within {m[2]}",
    ),
    "sensitivity": (
        r"moves no prediction by more than (\S+),",
        lambda m: f"0.1 standard deviations move no prediction by more than {m[1]}",
    ),
    "certified accuracy": (r"at eps", lambda m: _at(m, "right for sure: ")),
    "attacked accuracy": (r"at eps", lambda m: _at(m, "wrong if attacked: ")),
    "true adversarial risk": (rf"between {_NUMBER} and {_NUMBER} at eps (0\.1)(?![\d.])", _risk),
    "proxies": (
        rf"^from the other columns, (.*) is told .* balanced accuracy {_NUMBER}",
        lambda m: f"balanced accuracy {m[2]} in telling {m[1]}",
    ),
}
_SPREAD = re.compile(
    rf"is between {_NUMBER} and {_NUMBER} \(observed {_NUMBER}(?:: ([^)]*))?\)"
    rf"(?:, which (exceeds|is within|may or may not exceed) the tolerance {_NUMBER})?"
)


def brief(name: str, statement: str) -> str:
    """The essential part of a claim's statement, on one line.

    Parameters
    ----------
    name : str
        The name of the claim, with or without its attribute in parentheses.
    statement : str
        Its sentence.

    Returns
    -------
    str

    Examples
    --------
    >>> brief("generalisation", "with probability 95 %, the true error is between 0.136 and 0.156 (observed "
    ...       "0.146), counting all 17 models of the plan; rows drawn independently from one distribution")
    'true error 13.6 % to 15.6 % (found 14.6 %)'
    >>> brief("exact neighbours", "of 32 of 15480 training rows, 0 have another list; ties by row number")
    'of 32 of 15480 training rows, 0 have another list'
    """
    attribute = name.partition(" (")[2]
    pattern, write = _FORMS.get(name.partition(" (")[0], (None, None))
    if pattern is not None and write is not None:
        found = _only(pattern, statement, "at eps" in pattern)
        if found is not None:
            return plain(write(found), 240)
    spread = _only(_SPREAD, statement)
    if attribute and spread is not None:
        return plain(_gap(spread), 240)
    unknown = _only(r" is not known: ([^;]+)", statement)
    if attribute and unknown is not None:
        return plain(f"not known: {unknown[1]}", 240)
    text = _ASIDE.sub("", _OPENING.sub("", statement)).partition(";")[0]
    text = text.partition(", counting all")[0].partition(" (closed form")[0]
    text = text.replace(" is within ", " within ").removeprefix("the ")
    return plain(text, 240)


def _only(pattern: Any, statement: str, several: bool = False) -> re.Match[str] | None:
    """The one match of a pattern: where there are two, the name of a column may have made the first."""
    found = list(re.finditer(pattern, statement))
    return found[0] if len(found) == 1 or (several and found) else None
