"""An audit on a terminal, in a notebook and as a plot. Names of groups are text, never markup."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from ..certificate import HEX
from ..model_selection._claims import percent
from ._groups import shown

if TYPE_CHECKING:
    from ..certificate import Claim
    from .audit import Audit

__all__ = ["as_html", "as_rich", "as_text", "plot_rates"]

_COLUMNS = ("selection", "tpr", "fpr", "ppv", "error", "base_rate")


def _cell(rate: dict[str, Any]) -> str:
    """0.231 [0.219, 0.244]"""
    if rate["value"] is None:
        return "no rows"
    return f"{rate['value']:.3f} [{rate['low']:.3f}, {rate['high']:.3f}]"


def _rows(audit: Audit) -> list[list[str]]:
    """One line a group: attribute, group, rows, rates; a group that was left out says so."""
    lines = []
    for row in audit.table:
        cells = [shown(row["attribute"]), shown(row["group"]), str(row["n"])]
        if row["measured"]:
            cells += [_cell(row["rates"][name]) for name in _COLUMNS]
        else:
            cells += ["too few rows"] + [""] * (len(_COLUMNS) - 1)
        lines.append(cells)
    return lines


def _head(audit: Audit) -> str:
    return (
        f"Fairness audit of {audit.n} rows, positive label {shown(audit.positive)}; all intervals hold "
        f"at once with probability {percent(audit.delta)}"
    )


def _summary(audit: Audit) -> str:
    """How many criteria have which verdict."""
    verdicts = list(audit.criteria.values())
    if not verdicts:
        return "no criterion was judged"
    known = ("met", "violated", "not decided")
    counts = [f"{verdicts.count(word)} {word}" for word in known if word in verdicts]
    return f"criteria: {', '.join(counts)}"


def _line(claim: Claim) -> str:
    """One claim: its mark and word, its name, its sentence."""
    return f"{claim.mark} {claim.word}: {claim.name}: {claim.statement}"


def as_text(audit: Audit) -> str:
    """Plain lines."""
    rows = [["attribute", "group", "rows", *_COLUMNS], *_rows(audit)]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = [_head(audit)]
    lines += [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows
    ]
    lines.append(f"  {_summary(audit)}")
    lines += [f"  {_line(claim)}" for claim in audit.claims]
    return "\n".join(lines + [f"  - {words}" for words in _abstentions(audit)])


def _abstentions(audit: Audit) -> list[str]:
    return [
        f"nothing is said of {shown(a['group'])} ({shown(a['attribute'])})"
        + (f", {a['rate']}" if a["rate"] else "")
        + f": {a['why']}"
        for a in audit.abstained
    ]


def as_rich(audit: Audit) -> Any:
    """A table and the claims, for rich; all text is literal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(_head(audit)), title_justify="left")
    for name in ("attribute", "group", "rows", *_COLUMNS):
        table.add_column(name, justify="right" if name == "rows" else "left")
    for row in _rows(audit):
        table.add_row(*[Text(cell) for cell in row])
    lines = [Text(_summary(audit), style="bold")]
    for claim in audit.claims:
        line = Text(f"{claim.mark} {claim.word} ", style=claim.colour)
        lines.append(line.append(f"{claim.name}: {claim.statement}", style="default"))
    return Group(table, *lines, *[Text(f"- {words}") for words in _abstentions(audit)])


def as_html(audit: Audit) -> str:
    """A table and a list; every name is escaped."""
    heads = "".join(f"<th>{name}</th>" for name in ("attribute", "group", "rows", *_COLUMNS))
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(audit)
    )
    items = "".join(_item(claim) for claim in audit.claims)
    items += "".join(f"<li>{html.escape(text)}</li>" for text in _abstentions(audit))
    return (
        f"<table><caption>{html.escape(_head(audit))}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table><p><b>{html.escape(_summary(audit))}</b></p><ul>{items}</ul>"
    )


def _item(claim: Claim) -> str:
    """One claim of the list, its word in the colour that it is shown with."""
    word = f'<b style="color:{HEX[claim.colour]}">{claim.mark} {claim.word}</b>'
    return f"<li>{word} {html.escape(f'{claim.name}: {claim.statement}')}</li>"


def plot_rates(audit: Audit, ax: Any, rate: str, attribute: str | None) -> Any:
    """Intervals by group, the groups that were left out named on the axis."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(layout="constrained").subplots()
    attribute = audit.attributes[0] if attribute is None else attribute
    rows = [row for row in audit.table if row["attribute"] == attribute]
    if not rows or rate not in rows[0]["rates"]:
        raise ValueError(
            f"there is no rate {rate!r} of the attribute {attribute!r}; attributes are {audit.attributes}."
        )
    names = []
    for place, row in enumerate(rows):
        one, known = row["rates"][rate], row["measured"] and row["rates"][rate]["value"] is not None
        name = shown(row["group"], 24).replace("$", r"\$")  # no mathematics in a name
        names.append(name if known else f"{name} (too few rows)")
        if known:
            ax.plot([one["low"], one["high"]], [place, place], color="C0", linewidth=2)
            ax.plot([one["value"]], [place], "o", color="C0")
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(f"{rate}, with intervals that hold at once ({percent(audit.delta)})")
    return ax
