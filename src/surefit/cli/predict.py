"""``surefit predict``: predictions of a model for the rows of a file, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ._say import print_json, safe

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
    from ._models import load_table_model, read_for

    model = load_table_model(model_file)
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
    X = model.encode(table)
    columns: dict[str, Any] = {"prediction": model.predict_encoded(X)}
    if proba:
        if not model.has_probabilities:
            name = type(model.model_).__name__
            raise typer.BadParameter(
                f"--proba: {name} gives no probabilities; leave the option out"
            )
        chances = model.model_.predict_proba(X)
        columns |= {f"p({label})": chances[:, k] for k, label in enumerate(model.classes_)}
    if as_json:
        names = list(columns)
        rows = zip(*(column.tolist() for column in columns.values()))
        print_json([dict(zip(names, row)) for row in rows])
        return 0
    text = _as_csv(columns)
    if out is None:
        sys.stdout.write(text)
    else:
        from .._files import write_atomically

        write_atomically(str(out), [text.encode("utf-8")])
        if not quiet:
            print(f"{len(X):,} predictions in {out}", file=sys.stderr)
    return 0


def _as_csv(columns: dict[str, Any]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values())))
    return buffer.getvalue()
