"""Whether the notes on how a file was read are those of the file.

A model says how its table was read: encoding, delimiter, header, what counts as missing. The report shows it,
and the fingerprint of the rows depends on it. So the file is read as the record says, and every note has to
be one that this reading, or one that finds out everything by itself, writes down.
"""

from __future__ import annotations

import codecs
from typing import Any

from ..certificate import Claim, Kind
from ..data import Table, TableError, read_table
from .model import TableModel

__all__ = ["reading_claim"]

NAME, SOURCE = "reading", "DAT-1"
Note = dict[str, Any]


def reading_claim(model: TableModel, source: Any, table: Table) -> Claim:
    """The record of the reading, against the same file read again (``table``, as the record says)."""
    stated, found = dict(model.parsing_), table.parsing.to_dict()
    container = ("format", "compression")
    if any(stated.get(key) != found[key] for key in container):
        now = f"it was {_kind(stated)} then and is {_kind(found)} now"
        why = f"how the table was read cannot be checked: {now}"
        return Claim.undecided(NAME, why, Kind.EXACT, SOURCE)
    wrong = sorted(
        key for key in stated.keys() | found.keys()
        if key != "notes" and not _same(key, stated.get(key), found.get(key))
    )  # fmt: skip
    fit = _notes_fit(list(stated["notes"]), found["notes"], source, model)
    if fit is None and not wrong:
        why = "the notes on how the file was read cannot be checked without the file itself"
        return Claim.undecided(NAME, why, Kind.EXACT, SOURCE)
    if fit is False:
        wrong.append("notes")
    words = "the notes on how the file was read are those of the file"
    if wrong:
        words = (
            f"the record of how the file was read is not that of the file, in: {', '.join(wrong)}"
        )
    return Claim.check(NAME, words[:300], Kind.EXACT, float(len(wrong)), 0.0, SOURCE)


def _same(what: str, a: Any, b: Any) -> bool:
    """Equal values; of an encoding, another name for the same one."""
    if what == "encoding" and isinstance(a, str) and isinstance(b, str) and a != b:
        try:
            return codecs.lookup(a).name == codecs.lookup(b).name
        except LookupError:
            return False
    return bool(a == b)


def _kind(parsing: dict[str, Any]) -> str:
    packed = parsing.get("compression")
    return f"{parsing.get('format')}{f' ({packed})' if packed else ''}"[:60]


def _notes_fit(
    stated: list[Note], found: list[Note], source: Any, model: TableModel
) -> bool | None:
    """Whether every note is one that a reading writes, and none is missing; None if nobody can tell."""
    told = {note.get("what") for note in stated}
    if not {note["what"] for note in found} <= told:
        return False
    strange = [note for note in stated if note not in found]
    if not strange:
        return True
    if isinstance(source, Table) or hasattr(source, "read"):  # it cannot be read once more
        return None if all(_read_as_told(note, found) for note in strange) else False
    try:
        again = read_table(source, missing=list(model.parsing.missing)).parsing.to_dict()["notes"]
    except TableError:
        return False
    return all(note in again for note in strange)


def _read_as_told(note: Note, found: list[Note]) -> bool:
    """Whether a note may be true of a table that was read as the record says, and not by itself."""
    if not any(other["how"] == "as given" for other in found):
        return False
    same = [other for other in found if other["what"] == note.get("what")]
    return all(
        other["how"] == "as given" and _same(other["what"], note.get("value"), other["value"])
        for other in same
    )
