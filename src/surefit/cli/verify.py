"""``surefit verify``: every claim of a model again, from the table; exit code 1 where one fails."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Annotated

import typer

from ..certificate import DEFAULT_TOLERANCE
from ._say import BarWatch, console, print_json, safe

if TYPE_CHECKING:
    from ..table import Verification

__all__ = ["verify"]


def verify(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A model.surefit file.")],
    source: Annotated[str, typer.Argument(metavar="DATA", help="The table of the fit.")],
    certificate: Annotated[
        str | None,
        typer.Option(help="A certificate.json to compare; the one beside the model by default."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not repeat the search: its scores stay undecided.")
    ] = False,
    tol: Annotated[
        float,
        typer.Option(
            help="Your tolerance: how far from optimal a fit may be, as a share of the objective's range."
        ),
    ] = DEFAULT_TOLERANCE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Every claim in a whole sentence.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing; the exit code tells.")
    ] = False,
) -> int:
    """Recompute every claim about a model from its table alone."""
    from ..table import verify_table
    from ._models import load_document, load_table_model, read_for, unbroken

    if not 0.0 <= tol < math.inf:
        raise typer.BadParameter(f"--tol must be a finite number that is not negative, got {tol}")
    model = load_table_model(model_file)
    beside = os.path.join(os.path.dirname(model_file), "certificate.json")
    path = certificate or (beside if os.path.exists(beside) else None)
    document = load_document(path) if path is not None else None
    once = source == "-" or source.startswith("bundled:")
    table = read_for(model, source) if once else source
    watch = BarWatch(1e9, quiet=as_json or quiet)
    try:
        with unbroken(model_file):
            outcome = verify_table(
                model, table, document=document, quick=quick, watch=watch, tol=tol
            )
    finally:
        watch.close()
    if as_json:
        print_json(
            {
                "ok": outcome.ok,
                "proved": outcome.proved,
                "tolerance": tol,
                "notes": list(outcome.certificate.notes),
                "record": [claim.to_dict() for claim in outcome.record],
                "claims": {
                    name: [claim.to_dict() for claim in claims]
                    for name, claims in outcome.sections.items()
                },
            }
        )
    elif not quiet:
        _say(outcome, verbose)
    return 0 if outcome.ok else 1


def _say(outcome: Verification, verbose: bool) -> None:
    """A line a claim, a section at a time, and the verdict last; what fails in whole sentences."""
    from rich.text import Text

    from ..report.claims import read_claim
    from ..report.terminal import claim_table

    out = console()
    parts = {"the record itself": outcome.record, **outcome.sections}
    for title, claims in parts.items():
        if claims:
            out.print(Text(title.capitalize(), style="bold"))
            records = [read_claim(claim.to_dict()) for claim in claims]
            out.print(claim_table(records, verbose=verbose, width=out.width))
    certificate = outcome.certificate
    for note in certificate.notes:
        out.print(Text(safe(note)))
    failed = certificate.failed
    few = "1 claim fails" if len(failed) == 1 else f"{len(failed)} claims fail"
    words = few
    if not failed:
        words = "verified: no claim fails"
        words += (
            ", and the fit is proved optimal"
            if outcome.proved
            else "; the fit is not proved optimal"
        )
    violated = certificate.violated
    if violated and not failed:
        one = len(violated) == 1
        words += f"; {len(violated)} {'criterion' if one else 'criteria'} of fairness violated"
    out.print(Text(words, style="bold red" if failed or violated else "bold green"))
