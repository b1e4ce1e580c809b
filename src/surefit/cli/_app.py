"""The commands put together, and how their errors end."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..data import TableError
from ..io import ModelFileError
from . import data, fit, predict, report, show, verify
from ._say import complain

__all__ = ["app", "run"]

# what typer raises for a command it does not understand: of click, or of its own copy of it
USAGE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Interrupted(Exception):
    """Ctrl-C ended a command before it had anything to show."""


class Commands(TyperGroup):
    """The commands; Ctrl-C and a closed pipe are ours to answer, not typer's."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except BrokenPipeError:  # a reader that went away (``| head``) is not an error of ours
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


app = typer.Typer(
    name="surefit",
    cls=Commands,
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
        return int(error.exit_code)
    except (typer.Abort, Interrupted, KeyboardInterrupt):
        complain("interrupted; nothing was written")
        return 130
    except TableError as error:
        complain(str(error))
        return 3
    except ModelFileError as error:
        complain(str(error))
        return 4
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
