"""``surefit predict``: predictions of a model for the rows of a file, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ._say import safe

__all__ = ["predict"]


def predict(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A model.surefit file.")],
    source: Annotated[
        str, typer.Argument(metavar="DATA", help="The rows: a file, or - for standard input.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write; standard output by default.")
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also the probability of each class.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of CSV.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> int:
    """Predict the target for each row of a table."""
    from ._models import load_table_model, read_for, unbroken

    model = load_table_model(model_file)
    with unbroken(model_file):
        table = read_for(model, source)
        unseen = model.encoder_.report_unseen(table.frame)
    if unseen and not quiet:
        for name, values in list(unseen.items())[:10]:
            few = ", ".join(
                f"'{safe(value, 30)}' ({count})" for value, count in list(values.items())[:5]
            )
            print(
                safe(f"note: column '{name}' has categories the fit has not seen: {few}"),
                file=sys.stderr,
            )
    if proba and not model.has_probabilities:
        name = type(model.model_).__name__
        raise typer.BadParameter(f"--proba: {name} gives no probabilities; leave the option out")
    with unbroken(model_file):
        columns = _columns(model, model.encode(table), proba)
    text = _as_json(columns) if as_json else _as_csv(columns)
    if out is None:
        terminal = sys.stdout.isatty()  # a class may be named with a terminal's control characters
        sys.stdout.write("\n".join(map(safe, text.splitlines())) + "\n" if terminal else text)
    else:
        from .._files import write_atomically

        write_atomically(str(out), [text.encode("utf-8")])
        if not quiet:
            print(safe(f"{table.rows:,} predictions in {out}"), file=sys.stderr)
    return 0


def _columns(model: Any, X: Any, proba: bool) -> dict[str, Any]:
    """Predictions and, where asked for, probabilities, a column each."""
    columns: dict[str, Any] = {"prediction": model.predict_encoded(X)}
    if proba:
        chances = model.model_.predict_proba(X)
        columns |= {f"p({label})": chances[:, k] for k, label in enumerate(model.classes_)}
    return columns


def _as_json(columns: dict[str, Any]) -> str:
    """A list of records; the same text that :func:`print_json` prints."""
    names = list(columns)
    rows = zip(*(column.tolist() for column in columns.values()))
    return json.dumps([dict(zip(names, row)) for row in rows], indent=2, allow_nan=False) + "\n"


def _as_csv(columns: dict[str, Any]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values())))
    return buffer.getvalue()
