"""``surefit show``: what a model file holds, on the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from ._say import console, print_json

__all__ = ["show"]


def show(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A model.surefit file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the document as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Every claim in a whole sentence.")
    ] = False,
) -> int:
    """Show the model, its data and its claims. What the file says is not checked here: see verify."""
    from ._models import load_table_model, unbroken

    with unbroken(model_file):
        document = load_table_model(model_file).document()
    if as_json:
        print_json(document)
    else:
        from ..report.terminal import summary

        console().print(summary(document, verbose=verbose))
    return 0
