"""One HTML page from one document.

The page carries a content-security policy that allows its own style sheet, by hash, and nothing else: no
script, no image, no font, no request. Jinja escapes every value that a template prints; before that, each
value passes through :func:`~surefit.report.words.plain`, so that a template that forgets to shorten or clean
a text still prints a harmless one. Only SVG trees, which escape themselves, go in as they are.

References
----------
W3C, *Content Security Policy Level 3*; W3C, *Web Content Accessibility Guidelines 2.2*.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from .._files import write_atomically
from . import evidence, fairness, table
from .claims import GROUPS, OPEN, cards, confidence, read_claims, verdict
from .claims import MOST as CLAIMS
from .reading import cut, mapping, part, texts, words
from .words import SENTENCE, plain

__all__ = ["render", "write"]

MOST = 1_000_000  # bytes of a page


def _shown(value: Any) -> Any:
    """What a template prints: clean text with units kept to their numbers, or markup that escapes itself."""
    if hasattr(value, "__html__"):
        return value
    return plain(value, SENTENCE).replace(" %", "\u00a0%").replace(" × 10", "\u00a0×\u00a010")


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("surefit.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class _Style:
    """The style sheet, which the page holds as it is and allows by its hash."""

    def __init__(self) -> None:
        folder = resources.files("surefit.report") / "templates"
        names = ("style.css", "plots.css")
        self.text = "".join((folder / name).read_text(encoding="utf-8") for name in names)
        digest = hashlib.sha256(self.text.encode()).digest()
        self.policy = (
            f"default-src 'none'; style-src 'sha256-{base64.b64encode(digest).decode()}'; "
            "base-uri 'none'; form-action 'none'"
        )

    def __html__(self) -> str:
        return self.text


def render(document: Mapping[str, Any]) -> str:
    """The report as one HTML page.

    Parameters
    ----------
    document : mapping
        Plain JSON types, schema ``surefit.certificate/1`` (docs/report.md). Parts that are missing or
        malformed are said to be not measured.

    Returns
    -------
    str
        A page under 1 MB that needs no other file and makes no request.

    Examples
    --------
    >>> page = render({"data": {"name": "<b>trees</b>.csv", "rows": 150}})
    >>> "&lt;b&gt;trees" in page, "<script" in page
    (True, False)
    """
    if not isinstance(document, Mapping):
        raise TypeError(
            f"document must be a mapping, got {type(document).__name__}; "
            "read certificate.json with json.load first."
        )
    whole = mapping(dict(document))
    page = _page(whole)
    for limit in (100, 20):  # escapes can make long texts longer still: cut them first
        if len(page.encode()) > MOST:
            page = _page(cut(whole, limit))
    return page


def _page(document: dict[str, Any]) -> str:
    missing = [text.partition(": ")[::2] for text in texts(document.get("left_out"))[:40]]
    document = document | {"evidence": _with_reasons(part(document, "evidence"), missing)}
    found = part(document, "evidence")
    found_claims = {key: read_claims(document, key) for key in GROUPS}
    style = _Style()
    return str(
        _environment()
        .get_template("page.html.j2")
        .render(
            style=style,
            policy=style.policy,
            verdict=verdict(document),
            cards=cards(document),
            claims={key: claims[:CLAIMS] for key, claims in found_claims.items()},
            claims_more={
                key: evidence.more(len(claims), CLAIMS) for key, claims in found_claims.items()
            },
            fold=OPEN,
            left_out=_and(plain(name) for name, why in missing if why != "interrupted"),
            broken_off=_and(plain(name) for name, why in missing if why == "interrupted"),
            level=confidence(document),
            stopped=evidence.reason(document.get("stopped")),
            groups=GROUPS,
            optimality=evidence.optimality(found),
            general=evidence.generalisation(document),
            robust=evidence.robustness(found),
            audits=fairness.audits(document),
            violations=fairness.violations(found_claims["fairness"]),
            remedies=fairness.remedies(document),
            unfair_why=evidence.why(found, "fairness"),
            sensitive=bool(part(document, "data").get("sensitive")),
            coefficients=evidence.coefficients(found),
            data=table.data(document),
            model=table.model(document),
            created=plain(words(document.get("created"), "an unknown time"), 40),
            version=plain(words(document.get("surefit"), "unknown"), 40),
            schema=plain(words(document.get("schema"), "unknown"), 60),
        )
    )


def _with_reasons(found: dict[str, Any], missing: list[tuple[str, str]]) -> dict[str, Any]:
    """The evidence, with why each part that was left out is not there."""
    said = {"no time left": "there was no time left for it", "interrupted": "it was interrupted"}
    reasons = {name.replace(" ", "_"): said.get(why, why) for name, why in missing}
    return found | {"why": reasons | mapping(found.get("why"))}


def _and(names: Iterable[str]) -> str:
    """Names in a row, the last after "and"."""
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def write(document: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the report to a file, whole or not at all.

    Parameters
    ----------
    document : mapping
        As for :func:`render`.
    path : path-like
        The file to write; its folder must exist.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write({}, f"{folder}/report.html")
    ...     path.stat().st_size < 1_000_000
    True
    """
    target = Path(path)
    folder = target.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"path={str(target)!r}: its folder {str(folder)!r} does not exist; create it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"path={str(target)!r} is a folder; name a file in it.")
    write_atomically(str(target.absolute()), [render(document).encode("utf-8")])
    return target
