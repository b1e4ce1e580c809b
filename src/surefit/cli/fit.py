"""``surefit fit``: a table in, a model, a certificate and a report out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ._interrupt import finishing, interruptible
from ._say import BarWatch, console, listed, print_json, safe

__all__ = ["fit"]

EXAMPLE = "mortgages"  # the bundled table of a first run


def _families() -> list[str]:
    from ..table.plan import FAMILIES

    return sorted({name for kinds in FAMILIES.values() for name in kinds})


def fit(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="A CSV or Parquet file, - for standard input, or bundled:NAME. Without it, a bundled table.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column to predict.")
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            "--sensitive", "-s", help="Columns to audit fairness by; the model does not read them."
        ),
    ] = None,
    immutable: Annotated[
        list[str] | None, typer.Option(help="Columns that nobody can change, for robustness.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="The column that tells which rows belong together, such as a patient's number: no split "
            "separates them."
        ),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(
            help="The column that tells when a row was made: train on the past, test on the future."
        ),
    ] = None,
    rows_are_independent: Annotated[
        bool,
        typer.Option(
            "--rows-are-independent",
            help="Say that no rows belong together, although some are alike.",
        ),
    ] = False,
    role: Annotated[
        list[str] | None,
        typer.Option(help="NAME=ROLE: read a column as numeric, categorical, date, ..."),
    ] = None,
    task: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    positive: Annotated[
        str | None, typer.Option(help="The class that counts as a positive decision.")
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            "-m",
            help="Families to try, by name; all by default.",
            autocompletion=_families,
        ),
    ] = None,
    time: Annotated[float, typer.Option(help="Seconds for everything.")] = 60.0,
    holdout: Annotated[float, typer.Option(help="Share of rows held out for the test.")] = 0.25,
    confidence: Annotated[float, typer.Option(help="Of the statistical claims.")] = 0.95,
    fairness_tolerance: Annotated[
        float,
        typer.Option(help="Largest acceptable gap between groups of a sensitive column, 0 to 1."),
    ] = 0.05,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit", help="Ship a model fitted on all rows, without a claim on its error."
        ),
    ] = False,
    reference: Annotated[
        bool, typer.Option(help="Measure gradient boosting as an uncertified reference.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the split and all else that is random.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the three files; NAME-surefit by default."),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between values, where the guess is wrong.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Of the text, where the guess is wrong.")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal mark: . or ,")] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line names the columns."),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(help="Values that stand for missing, besides the usual ones."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on the way.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> int:
    """Select, fit and certify a model of a table; write model.surefit, certificate.json and report.html."""
    from ..data import MISSING, TableError, about, load, read_table

    silent = as_json or quiet
    if source is None or source.startswith("bundled:"):
        name = EXAMPLE if source is None else source.partition(":")[2]
        facts = about(name)
        table = load(name)
        if target is None:
            target = facts["target"]
            sensitive = sensitive if sensitive is not None else list(facts["sensitive"])
        if not silent:
            print(f"The bundled table {name!r}: {facts['words']}", file=sys.stderr)
    else:
        options: dict[str, Any] = {
            "delimiter": delimiter,
            "encoding": encoding,
            "decimal": decimal,
            "header": header,
        }
        chosen = {key: value for key, value in options.items() if value is not None}
        if missing:
            chosen["missing"] = (*MISSING, *listed(missing))
        table = read_table(source, **chosen)
    if target is None:
        names = ", ".join(safe(name, 40) for name in table.columns[:12])
        raise TableError(
            f"--target is needed: which column is to be predicted? The columns are {names}."
        )
    if not 0.0 < confidence < 1.0:
        raise typer.BadParameter(
            f"--confidence must lie between 0 and 1, got {confidence}; 0.95 is 95 %"
        )
    if not 0.0 <= fairness_tolerance <= 1.0:
        raise typer.BadParameter(
            f"--fairness-tolerance must lie between 0 and 1, got {fairness_tolerance}; 0.05 is 5 points"
        )
    folder = out if out is not None else Path(f"{_stem(table.name)}-surefit")
    _check_folder(folder)
    options = {
        "sensitive": listed(sensitive),
        "immutable": listed(immutable),
        "drop": listed(drop),
        "roles": _roles(role),
        "task": task,
        "positive": positive,
        "models": listed(models) or None,
        "time": time,
        "holdout": holdout,
        "delta": round(1.0 - confidence, 12),
        "refit": refit,
        "group": group,
        "time_column": time_column,
        "rows_are_independent": rows_are_independent,
        "fairness_tolerance": fairness_tolerance,
        "reference": reference,
        "seed": seed,
    }
    watch = BarWatch(time, quiet=silent, verbose=verbose, started=_started())
    if not silent:
        _say_reading(table)
    with interruptible(watch):
        try:
            model = _fit(table, target, watch, **options)
        finally:
            watch.close()
        with finishing():
            document = write(model, folder)
    if as_json:
        print_json(document)
    elif not quiet:
        from ..report.terminal import summary

        files = ("model.surefit", "certificate.json", "report.html")
        console().print(summary(document, verbose=verbose))
        print()
        for name in files:
            print(safe(os.path.join(folder, name)))
    if model.interrupted_ or watch.interrupted:
        return 130
    return 0 if model.certificate_.ok else 1


def _started() -> float | None:
    """When the process began, where it is the program that runs; a call of ``main`` begins with itself."""
    from . import STARTED, as_program

    return STARTED if as_program() else None


def _fit(table: Any, target: str, watch: BarWatch, **options: Any) -> Any:
    """The fit; a failed claim is part of the summary and need not warn as well."""
    import warnings

    from ..certificate import CertificateWarning
    from ..table import fit_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return fit_table(table, target, watch=watch, **options)


def write(model: Any, folder: Path) -> dict[str, Any]:
    """The three files of a model in a folder, each written whole or not at all; returns the document."""
    import json

    from .. import io
    from .._files import write_atomically
    from ..report import render

    document: dict[str, Any] = model.document()
    text = json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)
    page = render(document)
    folder.mkdir(parents=True, exist_ok=True)
    io.save(model, folder / "model.surefit")
    write_atomically(str(folder / "certificate.json"), [text.encode("ascii") + b"\n"])
    write_atomically(str(folder / "report.html"), [page.encode("utf-8")])
    return document


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to before the work, not after it."""
    there = next(part for part in (folder, *folder.absolute().parents) if part.exists())
    if not there.is_dir():
        raise NotADirectoryError(20, "--out must name a folder, but this is a file", str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(13, "--out names a folder that may not be written to", str(there))


def _say_reading(table: Any) -> None:
    """What was inferred about the file, so that nothing is guessed silently."""
    parts = [f"{note['what']} {note['value']}" for note in table.parsing.notes]
    print(
        safe(f"Read {table.rows:,} rows of {len(table.columns)} columns: {'; '.join(parts)}"),
        file=sys.stderr,
    )


def _roles(values: list[str] | None) -> dict[str, str] | None:
    pairs = [value.rpartition("=") for value in values or []]
    wrong = [value for value, pair in zip(values or [], pairs) if not pair[1]]
    if wrong:
        raise typer.BadParameter(f"--role wants NAME=ROLE, got {wrong[0]!r}")
    return {name.strip(): kind.strip() for name, _, kind in pairs} or None


def _stem(name: str) -> str:
    """A folder name from the name of a table: letters, digits, dots, dashes."""
    stem = Path(name).name.split(".")[0]
    kept = "".join(letter for letter in stem if letter.isalnum() or letter in "-_")[:60]
    return kept or "table"
