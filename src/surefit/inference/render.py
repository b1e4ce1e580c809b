"""A summary as text, as a rich table and as HTML: the same rows, the same words."""

from __future__ import annotations

import html
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .summary import Summary

__all__ = ["as_html", "as_rich", "as_text"]

_MOST_ROWS = 60  # of a printed table; a frame has them all
_WIDTH = 100


def as_text(summary: Summary) -> str:
    """For ``print``."""
    lines = [_title(summary)]
    for fact in _facts(summary):
        lines += textwrap.wrap(fact, _WIDTH, initial_indent="  ", subsequent_indent="      ")
    lines.append("")
    header, rows, left_out = _table(summary)
    cells = [header, *rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    words = _word_columns(summary)
    for row in cells:
        parts = [
            text.ljust(width) if j < words else text.rjust(width)
            for j, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(parts)).rstrip())
    if left_out:
        lines.append(f"  {left_out}")
    for note in summary.notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="  * ", subsequent_indent="    ")
    return "\n".join(lines)


def as_rich(summary: Summary) -> Any:
    """For a terminal."""
    from rich.console import Group
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(title=escape(_title(summary)), title_justify="left", box=_box())
    header, rows, left_out = _table(summary)
    words = _word_columns(summary)
    for j, name in enumerate(header):
        table.add_column(escape(name), justify="left" if j < words else "right", no_wrap=j >= words)
    sure = _surely_not_zero(summary)
    for row, bold in zip(rows, sure):
        table.add_row(*(escape(text) for text in row), style="bold" if bold else "")
    facts = Text("\n".join(_facts(summary)), style="dim")
    below = [Text(left_out)] if left_out else []
    notes = [Padding(Text(f"• {note}", style="yellow"), (0, 0, 0, 1)) for note in summary.notes]
    return Group(table, facts, *below, *notes)


def as_html(summary: Summary) -> str:
    """For a notebook."""
    header, rows, left_out = _table(summary)
    words = _word_columns(summary)
    style = [
        f"text-align:{'left' if j < words else 'right'};padding:1px 8px;white-space:nowrap"
        for j in range(len(header))
    ]
    head = "".join(f'<th style="{s}">{html.escape(t)}</th>' for s, t in zip(style, header))
    body = []
    for row, bold in zip(rows, _surely_not_zero(summary)):
        weight = ";font-weight:600" if bold else ""
        cells = (f'<td style="{s}{weight}">{html.escape(t)}</td>' for s, t in zip(style, row))
        body.append(f"<tr>{''.join(cells)}</tr>")
    facts = "<br>".join(html.escape(line) for line in _facts(summary))
    below = f"<p>{html.escape(left_out)}</p>" if left_out else ""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in summary.notes)
    return (
        f'<div><b>{html.escape(_title(summary))}</b><div style="font-size:smaller">{facts}</div>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{below}"
        + (f"<ul>{notes}</ul>" if notes else "")
        + "</div>"
    )


# ---------------------------------------------------------------------------- the parts


def _title(summary: Summary) -> str:
    return f"Summary of {summary.model}: {summary.response}"


def _facts(summary: Summary) -> list[str]:
    """The lines above (or below) the table."""
    counts = f"{summary.n_samples:.12g} samples, "
    if np.any(np.isnan(summary.df_model)):
        counts += f"{summary.coef.size} parameters"
    else:
        counts += f"{_number(summary.df_model)} parameters in use"
    if np.all(np.isfinite(summary.df_resid)):
        counts += f", {_number(summary.df_resid)} residual degrees of freedom"
    fit = [
        f"{name} {_number(value)}"
        for name, value in (
            (summary.r2_kind, summary.r2),
            ("log-likelihood", summary.log_likelihood),
            ("AIC", summary.aic),
            ("BIC", summary.bic),
        )
        if not np.all(np.isnan(value))
    ]
    lines = [counts, f"noise: {summary.noise}"]
    lines += [", ".join(fit)] if fit else []
    lines.append(f"standard errors: {summary.method}")
    return lines


def _word_columns(summary: Summary) -> int:
    return 2 if summary.outputs else 1


def _table(summary: Summary) -> tuple[list[str], list[list[str]], str]:
    """Header, rows of strings, and what to say about rows that are left out."""
    columns = summary.columns()
    percent = f"{100 * summary.level:.6g} %"
    known = not np.isnan(summary.std_error).all()
    tested = not np.isnan(summary.p_value).all()
    compared = known and tested
    bounded = not np.isnan(summary.low).all()
    letter = "t" if "Student" in summary.method else "z"
    header = ["output"] * bool(summary.outputs) + ["", "coef"]
    header += ["std error"] * known + [letter] * compared + ["p"] * tested
    header += [f"low {percent}", f"high {percent}"] * bounded
    total = len(columns["parameter"])
    rows = []
    for i in range(min(total, _MOST_ROWS)):
        row = [columns["output"][i]] if summary.outputs else []
        row += [columns["parameter"][i], _cell(columns["coef"][i])]
        if known:
            row.append(_cell(columns["std_error"][i]))
        if compared:
            row.append(_cell(columns["statistic"][i], 4))
        if tested:
            row.append(_probability(columns["p_value"][i]))
        if bounded:
            row += [_cell(columns["low"][i]), _cell(columns["high"][i])]
        rows.append(row)
    left_out = ""
    if total > _MOST_ROWS:
        left_out = f"... and {total - _MOST_ROWS} more rows: to_frame() has them all"
    return header, rows, left_out


def _surely_not_zero(summary: Summary) -> list[bool]:
    """Rows whose interval does not contain 0, where a test means something."""
    low, high = summary.low.ravel(), summary.high.ravel()
    tested = ~np.isnan(summary.p_value.ravel())
    with np.errstate(invalid="ignore"):
        return list(tested & ((low > 0) | (high < 0)))


def _cell(value: float, digits: int = 5) -> str:
    return "—" if math.isnan(value) else f"{value:.{digits}g}"


def _probability(value: float) -> str:
    if math.isnan(value):
        return "—"
    return "<1e-16" if value < 1e-16 else f"{value:.3g}"


def _number(value: Any) -> str:
    numbers = [f"{float(v):.6g}" for v in np.atleast_1d(value)]
    if len(set(numbers)) == 1:
        return numbers[0]
    return "(" + ", ".join(numbers[:6]) + (", ...)" if len(numbers) > 6 else ")")


def _box() -> Any:
    from rich import box

    return box.SIMPLE_HEAD
