"""The report in a few lines, for a terminal.

All text is put into rich ``Text`` objects, never into markup, and passes through
:func:`~surefit.report.words.plain` first: a column called ``[red]`` or one that holds an escape sequence is
printed as it is spelt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .claims import GROUPS, MARKS, confidence, read_claims, verdict
from .evidence import leaderboard
from .reading import mapping, part, real, rows, words
from .words import SENTENCE, interval, percent, plain

__all__ = ["summary"]

COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}
MODELS = 8  # rows of the table of models


def _first(statement: str) -> str:
    """A statement up to its first semicolon: the number, without what it rests on."""
    return plain(statement.split(";")[0], 240)


def _claims(document: Any) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for key, (title, _) in GROUPS.items():
        claims = read_claims(document, key)
        for i, claim in enumerate(claims):
            mark = Text(MARKS[claim["status"]], style=COLOURS[claim["status"]])
            table.add_row(
                mark, Text("" if i else title, style="bold"), Text(_first(claim["statement"]))
            )
        if not claims:
            table.add_row(
                Text("?", style="dim"),
                Text(title, style="bold"),
                Text("no claim was made", style="dim"),
            )
    return table


def _models(document: Any) -> Any:
    from rich.table import Table
    from rich.text import Text

    board = leaderboard(document)
    if not board["rows"]:
        return None
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(
        "  model", overflow="fold"
    )  # this one and the last give way on a narrow terminal
    table.add_column(board["loss"], justify="right", no_wrap=True)
    table.add_column(f"{confidence(document)} interval", no_wrap=True)
    table.add_column("")
    last = [row for row in board["rows"][MODELS:] if row["chosen"] or row["reference"]]
    for row in board["rows"][:MODELS] + last:
        note = plain(row["params"], 40) if row["status"] == "tried" else row["status"]
        note = "uncertified reference" if row["reference"] else note
        style = "bold" if row["chosen"] else ""
        name = ("→\u00a0" if row["chosen"] else "  ") + plain(row["name"], 36)
        cells = (name, row["loss"], row["interval"], note)
        table.add_row(*(Text(cell, style=style) for cell in cells))
    hidden = board["total"] - min(len(board["rows"]), MODELS) - len(last)
    if hidden > 0:
        table.add_row(Text(f"  and {hidden:,} more", style="dim"))
    return table


def _gaps(document: Any) -> list[Any]:
    from rich.text import Text

    lines = []
    for audit in rows(part(document, "evidence").get("fairness"))[:4]:
        found = []
        for key in ("independence", "separation", "sufficiency"):
            gap = part(audit, "gaps", key)
            if math.isfinite(real(gap.get("gap"))):
                span = interval(gap.get("low"), gap.get("high"), share=True)
                found.append(f"{key} {percent(gap['gap'])} ({span})")
        if found:
            lines.append(
                Text(f"Gaps by {plain(words(audit.get('attribute')), 40)}: " + "; ".join(found))
            )
    return lines


def summary(document: Any, *, files: Iterable[str] = ()) -> Any:
    """The verdict, the claims, the models and the gaps, as something rich can print.

    Parameters
    ----------
    document : mapping
        As for :func:`surefit.report.render`.
    files : iterable of str
        Files that were written, to be listed at the end.

    Returns
    -------
    rich.console.Group

    Examples
    --------
    >>> from rich.console import Console
    >>> document = {"verdict": {"status": "holds", "headline": "Every claim holds."}}
    >>> Console(width=60).print(summary(document, files=["report.html"]))
    ✓ Every claim holds.
    ...
    Written: report.html
    """
    from rich.console import Group
    from rich.text import Text

    document = mapping(document)
    v = verdict(document)
    head = Text.assemble((f"{v['mark']} ", COLOURS[v["status"]]), (v["headline"], "bold"))
    parts: list[Any] = [head]
    parts += [Text(plain(sentence, SENTENCE)) for sentence in v["sentences"][:5]]
    parts += [Text(""), _claims(document)]
    models = _models(document)
    if models is not None:
        parts += [Text(""), models]
    gaps = _gaps(document)
    if gaps:
        parts += [Text(""), *gaps]
    written = [plain(name, 400) for name in files]
    if written:
        parts += [Text(""), Text("Written: " + ", ".join(written))]
    return Group(*parts)
