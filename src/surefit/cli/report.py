"""``surefit report``: the HTML report of a model again, from the model file alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ._say import print_json, safe

__all__ = ["report"]


def report(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A model.surefit file.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Where to write; report.html beside the model by default."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the document instead.")] = False,
) -> int:
    """Write the report of a model again."""
    from .._files import write_atomically
    from ..report import render
    from ._models import load_table_model, unbroken

    with unbroken(model_file):
        document = load_table_model(model_file).document()
    if as_json:
        print_json(document)
        return 0
    path = str(out) if out is not None else os.path.join(os.path.dirname(model_file), "report.html")
    write_atomically(path, [render(document).encode("utf-8")])
    print(safe(path))
    return 0
