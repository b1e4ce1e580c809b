"""Reading a table model from a file, and the certificate beside it."""

from __future__ import annotations

import json
import os
from typing import Any

from ..io import ModelFileError, load

__all__ = ["load_document", "load_table_model", "read_for"]

MAX_DOCUMENT = 50_000_000  # bytes of a certificate.json


def load_table_model(path: str) -> Any:
    """A :class:`surefit.table.TableModel` from a file; any other model is refused with a hint."""
    from ..data import shown
    from ..table import TableModel

    if not os.path.exists(path):
        raise ModelFileError(
            f"there is no file '{shown(path, 200)}'; surefit fit writes model.surefit."
        )
    model = load(path)
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
    """The content of a ``certificate.json``."""
    from ..data import shown

    if os.path.getsize(path) > MAX_DOCUMENT:
        raise ModelFileError(f"'{shown(path, 200)}' is too large for a certificate.")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"'{shown(path, 200)}' is not a certificate: {str(error)[:200]}"
        ) from None
