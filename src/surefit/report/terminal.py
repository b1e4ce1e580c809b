"""The report in a few lines, for a terminal.

The verdict, a line a claim with its number, the models that were compared, the gaps between groups, and what
the reader should know of the columns. ``verbose`` has the whole sentences instead. A claim that fails is
always said in full.

All text is put into rich ``Text`` objects, never into markup, and passes through
:func:`~surefit.report.words.plain` first: a column called ``[red]`` or one that holds an escape sequence is
printed as it is spelt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .brief import brief
from .claims import GROUPS, MARKS, confidence, read_claims, verdict
from .evidence import leaderboard
from .fairness import violations
from .reading import mapping, part, real, rows, texts, words
from .words import SENTENCE, plain, points, span

__all__ = ["claim_table", "summary"]

COLOURS = {
    "holds": "green",
    "fails": "red",
    "violated": "red",
    "undecided": "yellow",
    "uninformative": "bright_black",
}
MODELS = 8  # rows of the table of models
NOTES = 6  # notes about columns
FAIR = 4  # audits in the table of gaps
NARROW = 64  # columns below which tables become lists
GAPS = ("independence", "separation", "sufficiency")


def claim_table(claims: Sequence[dict[str, Any]], *, verbose: bool = False, width: int = 80) -> Any:
    """Claims, one a line: mark, name, number. What fails, and all with ``verbose``, in whole sentences.

    Parameters
    ----------
    claims : sequence of dict
        With ``name``, ``statement`` and ``status``, as :func:`~surefit.report.claims.read_claim` gives them.
    verbose : bool
    width : int
        Of the terminal, in columns; on a narrow one name and number share a column.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    wide = width >= NARROW
    if wide:
        table.add_column(overflow="fold", min_width=23, max_width=27)
    table.add_column(ratio=1, overflow="fold")
    for claim in claims:
        status = claim["status"]
        full = verbose or status == "fails"
        said = claim["statement"] if full else brief(claim["name"], claim["statement"])
        mark = Text(f"  {MARKS[status]}" if wide else MARKS[status], style=COLOURS[status])
        name, said = plain(claim["name"], 60), plain(said, SENTENCE)
        table.add_row(mark, *map(Text, (name, said) if wide else (f"{name}: {said}",)))
    return table


def _claims(document: Any, verbose: bool, width: int) -> list[Any]:
    from rich.text import Text

    parts: list[Any] = []
    for key, (title, _) in GROUPS.items():
        claims = read_claims(document, key)
        if not claims:
            parts.append(Text.assemble((title, "bold"), ("  no claim was made", "dim")))
            continue
        parts.append(Text(title, style="bold"))
        if key == "fairness":
            parts += _violations(claims)
        shown = claims
        if key == "fairness" and not verbose:
            gaps = _gaps(document, width)
            parts += gaps
            shown = [c for c in claims if c["status"] != "holds" or not gaps or _named(c)]
        if shown:
            parts.append(claim_table(shown, verbose=verbose, width=width))
        if len(shown) < len(claims):
            parts.append(
                Text(f"  {MARKS['holds']} and {len(claims) - len(shown)} more claims hold")
            )
    return parts


def _violations(claims: list[dict[str, Any]]) -> list[Any]:
    """The line that says how many criteria are violated; nothing where none is."""
    from rich.text import Text

    found = violations(claims)
    return [Text(f"  {found['headline']}", style="bold red")] if found else []


def _named(claim: dict[str, Any]) -> bool:
    """The claims of fairness that the table of gaps does not speak of, and that need no second reading."""
    return bool(claim["name"].startswith("proxies"))


def _gaps(document: Any, width: int) -> list[Any]:
    """The gaps of each audit, in percentage points: a table, or a list on a narrow terminal."""
    from rich.table import Table
    from rich.text import Text

    found = []
    for audit in rows(part(document, "evidence").get("fairness"))[:FAIR]:
        cells = []
        for key in GAPS:
            gap = part(audit, "gaps", key)
            known = math.isfinite(real(gap.get("gap")))
            ends = span(gap.get("low"), gap.get("high"))
            cells.append(f"{points(gap['gap'])} ({ends})" if known else "–")
        if any(cell != "–" for cell in cells):
            found.append((plain(words(audit.get("attribute")), 40), cells))
    if width < NARROW:
        return [
            Text(f"Gaps by {name} in points: " + "; ".join(map(" ".join, zip(GAPS, cells))))
            for name, cells in found
        ]
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("    gaps in points", overflow="fold")
    for key in GAPS:
        table.add_column(key, overflow="fold")
    for name, cells in found:
        table.add_row(Text(f"    by {name}"), *map(Text, cells))
    return [table] if found else []


def _models(document: Any, width: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    board = leaderboard(document)
    if not board["rows"]:
        return None
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("  model", overflow="fold")  # this one gives way on a narrow terminal
    wide = width >= NARROW
    if wide:
        table.add_column("validation", justify="right", no_wrap=True)
    table.add_column("hold-out", justify="right", no_wrap=True)
    table.add_column(f"{confidence(document)} interval", no_wrap=True)
    measured = [row for row in board["rows"] if row["loss"] != "–" or row["chosen"]]
    measured = measured or board["rows"]
    last = [row for row in measured[MODELS:] if row["chosen"] or row["reference"]]
    for row in measured[:MODELS] + last:
        name = ("→ " if row["chosen"] else "  ") + plain(row["name"], 36)
        name += " (uncertified)" if row["reference"] else ""
        cells = (name, *([row["validation"]] if wide else []), row["loss"], row["interval"])
        style = "bold" if row["chosen"] else "dim" if row["reference"] else ""
        table.add_row(*(Text(cell, style=style) for cell in cells))
    hidden = board["total"] - min(len(measured), MODELS) - len(last)
    if hidden > 0:
        table.add_row(Text(f"  and {hidden:,} more", style="dim"))
    return table


def _notes(document: Any) -> list[Any]:
    """What was noticed about the columns, and what there was no time for."""
    from rich.table import Table
    from rich.text import Text

    found = [note for note in texts(part(document, "data").get("notes")) if note[:5] != "task:"]
    strong = [note for note in found if note.startswith("strong column: ")]
    if len(strong) > 1:  # one line for all of them
        found = [note for note in found if note not in strong]
        names = ", ".join(note.partition(": ")[2].partition(" (")[0] for note in strong)
        found.insert(0, f"close to leaks: {names} (are they known at the time of prediction?)")
    lines = [plain(note, SENTENCE) for note in found[:NOTES]]
    if len(found) > NOTES:
        lines.append(f"and {len(found) - NOTES} more notes in the report")
    missing = [
        plain(text, 80).partition(": ")[0] for text in texts(mapping(document).get("left_out"))
    ]
    if missing:
        lines.append(f"left out: {', '.join(missing[:8])}")
    table = Table.grid(padding=(0, 1, 0, 0))
    for line in lines:
        table.add_row(Text("  -"), Text(line, overflow="fold"))
    return [Text(""), Text("Notes", style="bold"), table] if lines else []


def summary(document: Any, *, files: Iterable[str] = (), verbose: bool = False) -> Any:
    """The verdict, the claims, the models and the gaps, as something rich can print.

    Parameters
    ----------
    document : mapping
        As for :func:`surefit.report.render`.
    files : iterable of str
        Files that were written, to be listed at the end.
    verbose : bool
        Whole sentences instead of a line a claim.

    Returns
    -------
    renderable
        It lays itself out when it is printed.

    Examples
    --------
    >>> from rich.console import Console
    >>> document = {"verdict": {"status": "holds", "headline": "Every claim holds."}}
    >>> Console(width=60).print(summary(document, files=["report.html"]))
    ✓ Every claim holds.
    ...
    Written: report.html
    """
    return _Summary(mapping(document), [plain(name, 400) for name in files], verbose)


@dataclass(frozen=True)
class _Summary:
    """Laid out when it is printed, for the width there is."""

    document: dict[str, Any]
    files: list[str]
    verbose: bool

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        width = options.max_width
        v = verdict(self.document)
        yield Text.assemble((f"{v['mark']} ", COLOURS[v["status"]]), (v["headline"], "bold"))
        if v["status"] == "violated":
            yield Text(f"{v['said'][0].upper()}{v['said'][1:]}.", style=COLOURS["violated"])
        if self.verbose:
            yield from (Text(plain(sentence, SENTENCE)) for sentence in v["sentences"])
        yield Text("")
        yield from _claims(self.document, self.verbose, width)
        models = _models(self.document, width)
        if models is not None:
            yield from (Text(""), models)
        yield from _notes(self.document)
        if self.files:
            yield from (Text(""), Text("Written: " + ", ".join(self.files)))
