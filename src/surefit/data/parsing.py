"""How a file was read: the record that a fitted model keeps, so that new rows are read the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ._words import TableError, shown

__all__ = ["MISSING", "Parsing"]

# What is read as a missing value; which of them occurred is said in the notes.
MISSING = (
    "",
    "?",
    "-",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "na",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "none",
)


@dataclass(frozen=True)
class Parsing:
    """How a table was read, and from what each choice was inferred.

    Attributes
    ----------
    format : {"csv", "parquet", "frame"}
    compression : str or None
        ``"gzip"``, ``"xz"``, ``"bzip2"``, ``"zip"``, ``"zstd"``, or None.
    encoding, delimiter, quote, decimal : str
        Of the text; ``quote`` is empty where quotes are ordinary letters.
    header : bool
        Whether the first record names the columns.
    missing : tuple of str
        Values that are read as missing, after blanks at both ends are taken off.
    skipped_lines : int
        Lines before the table.
    notes : tuple of dict
        ``{"what", "value", "how"}``: what was inferred, and from what.

    Examples
    --------
    >>> from surefit.data import Parsing
    >>> Parsing.from_dict(Parsing(delimiter=";").to_dict()).delimiter
    ';'
    """

    format: str = "csv"
    compression: str | None = None
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    decimal: str = "."
    missing: tuple[str, ...] = MISSING
    skipped_lines: int = 0
    notes: tuple[dict[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON and model files."""
        return {
            **asdict(self),
            "missing": list(self.missing),
            "notes": [dict(note) for note in self.notes],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Parsing:
        """The inverse of :meth:`to_dict`."""
        known = {field.name for field in fields(cls)}
        unknown = set(values) - known
        if unknown:
            raise TableError(
                f"a parsing record has no field '{shown(min(unknown))}'; write it again."
            )
        parts = dict(values)
        for name in ("missing", "notes"):
            parts[name] = tuple(parts.get(name, getattr(cls, name)))
        return cls(**parts)
