"""Tables: reading them, proposing what each column is, and data sets to start with.

:func:`read_table` reads CSV and Parquet and says what it inferred; :func:`propose_schema` says what each
column is and why; :func:`load` gives the bundled sets and :func:`fetch` the classic ones, checked against
their published digests. See ``docs/data.md``.
"""

from __future__ import annotations

from ._words import TableError, shown
from .bundled import about, load, names
from .fetching import fetch, fetchable
from .parsing import MISSING, Parsing
from .reading import read_table
from .schema import Column, Schema, labelled, propose_schema, target_values
from .table import Table

__all__ = [
    "MISSING",
    "Column",
    "Parsing",
    "Schema",
    "Table",
    "TableError",
    "about",
    "fetch",
    "fetchable",
    "labelled",
    "load",
    "names",
    "propose_schema",
    "read_table",
    "shown",
    "target_values",
]
