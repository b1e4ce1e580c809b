"""The commands put together, and how their errors end."""

from __future__ import annotations

import sys
from typing import Any

import typer

from .. import __version__
from ..data import TableError
from ..io import ModelFileError
from . import data, fit, predict, report, show, verify
from ._say import complain

__all__ = ["app", "run"]

# what typer raises for a command it does not understand: of click, or of its own copy of it
USAGE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="surefit",
    help="From a table to a model that shows its work: fit, verify, predict, report.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("verify")(verify.verify)
app.command("report")(report.report)
app.command("show")(show.show)
app.add_typer(data.app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefit {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """From a table to a model that shows its work."""


def run(arguments: list[str] | None) -> int:
    """The exit code of a command; no error ends in a traceback that the user could not act on."""
    command = typer.main.get_command(app)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result = command.main(args=given or ["--help"], prog_name="surefit", standalone_mode=False)
        return int(result or 0)
    except USAGE as error:
        complain(error.format_message(), hint=_usage(error))
        return 2
    except typer.Exit as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # typer's way of saying it
            complain("interrupted; nothing was written")
        return int(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        complain("interrupted; nothing was written")
        return 130
    except TableError as error:
        complain(str(error))
        return 3
    except ModelFileError as error:
        complain(str(error))
        return 4
    except BrokenPipeError:
        from . import _quiet_pipe

        _quiet_pipe()
        return 0
    except SystemExit as error:  # how click ends when the reader of its output went away
        gone = type(sys.stdout).__name__ == "PacifyFlushWrapper"
        return 0 if gone else int(error.code or 0)
    except MemoryError:
        complain("there is not enough memory for this table; use fewer rows or columns (--drop)")
        return 3
    except OSError as error:
        complain(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        return 5
    except ValueError as error:  # a parameter out of range, named by the message
        complain(str(error))
        return 2


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"try: {context.command_path if context is not None else 'surefit'} --help"
