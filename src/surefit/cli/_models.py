"""Reading a table model from a file, and the certificate beside it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from ..io import ModelFileError, load

__all__ = ["load_document", "load_table_model", "read_for", "unbroken"]

MAX_DOCUMENT = 50_000_000  # bytes of a certificate.json


def load_table_model(path: str) -> Any:
    """A :class:`surefit.table.TableModel` from a file; any other model is refused with a hint."""
    from ..data import shown
    from ..table import TableModel

    if not os.path.exists(path):
        raise ModelFileError(
            f"there is no file '{shown(path, 200)}'; surefit fit writes model.surefit."
        )
    try:
        model = load(path)
    except OSError as error:
        raise ModelFileError(f"'{shown(path, 200)}' cannot be read: {error.strerror}.") from error
    if not isinstance(model, TableModel):
        raise ModelFileError(
            f"'{shown(path, 200)}' holds a {type(model).__name__} without a table; load it in Python with "
            "surefit.load."
        )
    model.check_whole()
    return model


def read_for(model: Any, source: str) -> Any:
    """The table of a file, of standard input or a bundled one, read as the training file was."""
    if source.startswith("bundled:"):
        from ..data import load as load_bundled

        return load_bundled(source.partition(":")[2])
    return model.read(source)


def load_document(path: str) -> Any:
    """The content of a ``certificate.json``, a dictionary."""
    from ..data import shown

    label = shown(path, 200)
    if not os.path.isfile(path):
        raise ModelFileError(f"there is no certificate '{label}'; surefit fit writes one.")
    if os.path.getsize(path) > MAX_DOCUMENT:
        raise ModelFileError(f"'{label}' is too large for a certificate.")
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"'{label}' is not a certificate: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise ModelFileError(f"'{label}' is not a certificate: it holds a {kind}, not an object.")
    return document


@contextlib.contextmanager
def unbroken(path: str) -> Iterator[None]:
    """Parts of a model file that do not fit together are the file's fault, and said to be."""
    from ..data import TableError, shown

    try:
        yield
    except (TableError, ModelFileError):
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(
            f"the parts of '{shown(path, 200)}' do not fit together: {shown(error, 200)}. "
            "Fit it again, or fetch the file again."
        ) from error
