"""Text and numbers as a person reads them.

Text in a document comes from headers and cells of somebody's table. :func:`plain` makes it harmless to look
at: control characters, bidirectional overrides and invisible characters become visible escapes, long runs
of combining marks are cut, and length is limited. It does not escape HTML; that is the template's work.

Numbers are shown with as many digits as help: ``0.1432``, ``48,842``, ``3.2 × 10⁻⁹``.

References
----------
Unicode Technical Report 36, *Unicode Security Considerations*; Unicode Standard Annex 9.
"""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

from .reading import real

__all__ = [
    "count",
    "interval",
    "number",
    "percent",
    "plain",
    "points",
    "power",
    "sentence",
    "settings",
]

NAME, SENTENCE = 72, 600  # characters of a name and of a sentence that are shown
MISSING = "–"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STACKED = 3  # combining marks on one letter that are shown as they are


def plain(text: Any, limit: int = NAME) -> str:
    """Text that shows all that is in it, on one line, in at most ``limit`` characters.

    Examples
    --------
    >>> plain("age")
    'age'
    >>> print(plain("\\x1b[31mred\\u202e"))
    \\x1b[31mred\\u202e
    >>> plain("a" * 100, 8)
    'aaaaaaa…'
    """
    text = text if isinstance(text, str) else str(text)
    shown: list[str] = []
    length = marks = 0
    for letter in text[: limit + 1]:
        marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        if letter in "\n\t\r" and limit >= SENTENCE:
            letter = " "
        elif not letter.isprintable() or marks > _STACKED:
            letter = letter.encode("unicode_escape").decode()
        if length + len(letter) > limit:
            return _cut("".join(shown), limit)
        shown.append(letter)
        length += len(letter)
    return "".join(shown) if len(text) <= limit else _cut("".join(shown), limit)


def _cut(text: str, limit: int) -> str:
    return text[: limit - 1].rstrip("\\") + "…"


def number(value: Any, digits: int = 4) -> str:
    """A number with ``digits`` significant digits, in words a person can read aloud.

    Examples
    --------
    >>> number(0.143219), number(48842), number(3.21e-9, 2), number("nan")
    ('0.1432', '48,842', '3.2 × 10⁻⁹', '–')
    """
    x = real(value)
    if math.isnan(x):
        return MISSING
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if x == 0:
        return "0"
    size = abs(x)
    if size < 1e-4 or size >= 1e7:
        mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa} × {power(int(exponent))}".replace("-", "−")
    if x == round(x) or size >= 10**digits:
        return f"{x:,.0f}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{x:,.{min(places, 12)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def power(exponent: int) -> str:
    """A power of ten.

    Examples
    --------
    >>> power(-9)
    '10⁻⁹'
    """
    return f"10{str(exponent).translate(_RAISED)}"


def count(value: Any) -> str:
    """A whole number with separators.

    Examples
    --------
    >>> count(48842), count(None)
    ('48,842', '–')
    """
    x = real(value)
    return f"{x:,.0f}".replace("-", "−") if math.isfinite(x) and abs(x) < 1e15 else number(x)


def percent(value: Any, places: int = 1) -> str:
    """A share as per cent; a small one keeps its first digit.

    Examples
    --------
    >>> percent(0.1432), percent(0), percent(0.00004)
    ('14.3 %', '0 %', '0.004 %')
    """
    x = real(value)
    if not math.isfinite(x):
        return number(x)
    if 0 < abs(x) < 0.5 * 10.0 ** -(places + 2):
        return f"{number(100 * x, 1)} %"
    text = f"{100 * x:.{places}f}".replace("-", "−")
    return ("0" if float(text.replace("−", "-")) == 0 else text) + " %"


def points(value: Any) -> str:
    """A difference of two shares in percentage points, without the word.

    Examples
    --------
    >>> points(0.1642), points(0), points("nan")
    ('16.4', '0', '–')
    """
    return percent(value).removesuffix(" %")


def interval(low: Any, high: Any, *, share: bool = False) -> str:
    """Two limits as text: ``14.1 % to 15.5 %``; a dash where there is none.

    Examples
    --------
    >>> interval(0.141, 0.155, share=True), interval(1, 2.5), interval(None, 1)
    ('14.1 % to 15.5 %', '1 to 2.5', '–')
    """
    a, b = real(low), real(high)
    if math.isnan(a) or math.isnan(b):
        return MISSING
    if not share:
        return f"{number(a)} to {number(b)}"
    a, b = outward(a, b)
    return f"{percent(a)} to {percent(b)}"


def outward(low: Any, high: Any) -> tuple[float, float]:
    """Limits of a share to a tenth of a per cent, the interval never made shorter by the rounding.

    Examples
    --------
    >>> outward(0.0627, 0.1294), outward(0.062, 0.13)
    ((0.062, 0.13), (0.062, 0.13))
    """
    a, b = real(low), real(high)
    slack = 1e-7  # what a decimal like 0.062 is off in binary
    if math.isfinite(a) and abs(a) < 1e9:
        a = math.floor(1000 * a + slack) / 1000
    if math.isfinite(b) and abs(b) < 1e9:
        b = math.ceil(1000 * b - slack) / 1000
    return a, b


def span(low: Any, high: Any) -> str:
    """Two limits of a difference of shares, in percentage points: ``13.0 to 19.8``.

    Examples
    --------
    >>> span(0.1301, 0.1974), span(None, 1)
    ('13.0 to 19.8', '–')
    """
    a, b = outward(low, high)
    return MISSING if math.isnan(a) or math.isnan(b) else f"{points(a)} to {points(b)}"


def sentence(text: Any, limit: int = SENTENCE) -> str:
    """A text as a sentence: a capital at the start, a full stop at the end; empty where there is none.

    Examples
    --------
    >>> sentence("from the other columns, nothing"), sentence("Is it?"), sentence(None)
    ('From the other columns, nothing.', 'Is it?', '')
    """
    said = plain(text, limit).strip() if isinstance(text, str) else ""
    if not said:
        return ""
    return said[0].upper() + said[1:] + ("" if said[-1] in ".?!…" else ".")


def settings(params: Any, limit: int = 160) -> str:
    """Parameters on one line: ``C=0.1, penalty=l2``.

    Examples
    --------
    >>> settings({"C": 0.1, "penalty": "l2"})
    'C=0.1, penalty=l2'
    """
    if not isinstance(params, dict):
        return ""
    parts = []
    for name, value in list(params.items())[:12]:
        if isinstance(value, float):
            shown = f"{value:.4g}"
        elif isinstance(value, str):
            shown = value
        else:
            shown = json.dumps(value, default=str, skipkeys=True)
        parts.append(f"{plain(name, 40)}={plain(shown, 60)}")
    more = f", and {len(params) - 12} more" if len(params) > 12 else ""
    return plain(", ".join(parts) + more, limit)
