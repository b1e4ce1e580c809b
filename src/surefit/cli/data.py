"""``surefit data``: the bundled tables, the classic ones from the net, and how a file would be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ._say import console, print_json, safe

__all__ = ["app"]

app = typer.Typer(
    help="Bundled tables, classic tables, and how a file is read.", no_args_is_help=True
)


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """The bundled tables and those that can be fetched."""
    from ..data import about, fetchable, names

    rows = [{"name": name, "where": "bundled", **about(name)} for name in names()]
    rows += [{"name": name, "where": "fetch", **about(name)} for name in fetchable()]
    if as_json:
        print_json(rows)
        return 0
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    titles = {
        "bundled": "Bundled: surefit fit bundled:NAME",
        "fetch": "Classic: surefit data fetch NAME",
    }
    for where, title in titles.items():
        out.print(Text(title, style="bold"))
        for row in (row for row in rows if row["where"] == where):
            facts = f"{row['rows']:,} rows, target {row['target']}"
            if row["sensitive"]:
                facts += f", sensitive {', '.join(row['sensitive'])}"
            out.print(Padding(Text.assemble((row["name"], "bold"), f": {facts}"), (0, 0, 0, 2)))
            out.print(Padding(Text(row["words"]), (0, 0, 0, 6)))
    return 0


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="The name of a table; surefit data list has them.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The CSV file to write; NAME.csv by default.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="A folder that stands in for the network.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Fetch a classic table, check it against its known checksum, and write it as one tidy CSV file."""
    from .. import data

    table = data.fetch(name, source=source) if name in data.fetchable() else data.load(name)
    path = out if out is not None else Path(f"{name}.csv")
    from .._files import write_atomically

    write_atomically(str(path), [table.frame.write_csv().encode("utf-8")])
    facts = data.about(name)
    if as_json:
        print_json({"file": str(path), **facts, "rows": table.rows})
        return 0
    print(path)
    sensitive = "".join(f" --sensitive {column}" for column in facts["sensitive"])
    print(f"next: surefit fit {path} --target {facts['target']}{sensitive}", file=sys.stderr)
    return 0


@app.command()
def schema(
    source: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, or -.")],
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """How a file would be read, and the part each column would play."""
    from ..data import propose_schema, read_table

    table = read_table(source)
    found = propose_schema(table, target)
    if as_json:
        print_json({"parsing": table.parsing.to_dict(), "schema": found.to_dict()})
        return 0
    from rich.table import Table
    from rich.text import Text

    for note in table.parsing.notes:
        print(safe(f"{note['what']}: {note['value']} ({note['how']})"))
    grid = Table(box=None, pad_edge=False)
    for title in ("column", "role", "missing", "distinct", "note"):
        grid.add_column(title)
    for column in found.columns:
        role = "target" if column.name == found.target else column.role
        words = (
            safe(column.name, 40),
            role,
            str(column.missing),
            str(column.distinct),
            safe(column.note, 200),
        )
        grid.add_row(*(Text(word) for word in words))
    console().print(grid)
    return 0
