"""Whether a file says what is found: its claims, its pictures, its schema, and the certificate beside it.

Numbers are compared to the rounding of another machine, text to the letter.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ..certificate import Certificate, Claim, Kind
from ..data import propose_schema
from ..data.table import blank_out
from .asked import notes_of, parts_of
from .model import SECTIONS, TableModel
from .units import Asked
from .verifying_log import dropped_fit

# of a sentence; a digit that belongs to a word, such as a fingerprint's, is none
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
_FLOOR = re.compile(r" \(to rounding: below the floor [^)]*\)$")
# two residuals that differ by less are both as good as nothing, and differ between machines: the one that is
# claimed, by a part of its bound, and others of a sentence, such as roots of it
_ROUNDING, _SHARE, _ROOT = 1e-9, 1e-6, 1e-4

__all__ = ["alike", "document_claim", "evidence_claim", "recorded_claim", "schema_claim"]


def recorded_claim(model: TableModel, sections: dict[str, list[Claim]], own: list[Claim]) -> Claim:
    """The claims in the file are those found: same names, statuses, sentences, numbers.

    ``sections`` are the claims as they are made at the end of a fit, ``own`` those of the estimator alone.
    """
    wrong = []
    for name in SECTIONS:
        recorded, found = model.claims(name), list(sections[name])
        if [c.name for c in recorded] != [c.name for c in found]:
            wrong.append(f"the list of claims on {name}")
            continue
        wrong += [f"{name}: {a.name}" for a, b in zip(recorded, found) if not _same(a, b)]
    flat = [claim for name in SECTIONS for claim in model.claims(name)]
    if Certificate(tuple(flat)).claims != model.certificate_.claims:
        wrong.append("the certificate, which is not that of the sections")
    inner = model.model_.certificate_.claims
    if [c.name for c in inner] != [c.name for c in own] or not all(map(_same, inner, own)):
        wrong.append("the certificate of the estimator")
    words = f"the {len(flat)} recorded claims are those found"
    if wrong:
        words = f"recorded claims differ from those found: {'; '.join(wrong[:5])}"
    return Claim.check("record", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def _same(a: Claim, b: Claim) -> bool:
    """Equal but for the rounding of another machine: kind, status, source, sentence and numbers."""
    if (a.kind, a.status, a.source) != (b.kind, b.status, b.source):
        return False
    ends, found = ([c.estimate, c.low, c.high, c.tolerance] for c in (a, b))
    if not alike(ends, found, 1e-9):
        return False
    if a.kind in (Kind.OPTIMAL, Kind.EXACT, Kind.STATIONARY):  # residuals at rounding level
        room = _ROUNDING + (_SHARE * abs(b.bound) if math.isfinite(b.bound) else 0.0)
        return (
            _same_sentence(a.statement, b, room)
            and _near(a.bound, b.bound, 1e-6 * abs(b.bound) + 1e-9)
            and _near(a.observed, b.observed, max(1e-3 * abs(b.observed), room))
        )
    pairs = ((a.observed, b.observed), (a.bound, b.bound))
    return a.statement == b.statement and all(
        _near(x, z, 1e-9 * max(1.0, abs(z))) for x, z in pairs
    )


def _near(x: float, z: float, limit: float) -> bool:
    return bool(x == z) or (x != x and z != z) or abs(x - z) <= limit


def _same_sentence(stated: str, claim: Claim, room: float) -> bool:
    """The same words, and the same numbers but for their last digits and those at rounding level.

    The number that is claimed may differ by ``room`` only.
    """
    a, b = (_FLOOR.sub("", text) for text in (stated, claim.statement))
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    for x, z in zip(map(float, _NUMBER.findall(a)), map(float, _NUMBER.findall(b))):
        claimed = abs(z - claim.observed) <= 0.1 * abs(z)  # as it is printed
        if not _near(x, z, max(1e-3 * abs(z), room if claimed else _ROOT)):
            return False
    return True


def document_claim(model: TableModel, document: Any) -> Claim:
    """``certificate.json`` says what the model says."""
    own = model.document()
    other = document if isinstance(document, dict) else {}
    wrong = sorted(key for key in own.keys() | other.keys() if own.get(key) != other.get(key))
    words = "certificate.json says what the model file says"
    if wrong:
        words = f"certificate.json differs from the model file in: {', '.join(map(str, wrong[:8]))[:300]}"
    return Claim.check("certificate.json", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def schema_claim(model: TableModel, table: Any, others: list[str]) -> Claim:
    """The parts that the columns play are those that the table and the stated roles give.

    ``others`` are the columns of the file that the model does not have.
    """
    try:
        parts = parts_of(model.sensitive, Asked.of(model), dict(model.roles_))
        stated = dict(model.schema_)
        auto = any(note["what"] == "task" for note in stated["notes"])
        schema = propose_schema(
            table,
            model.target,
            sensitive=tuple(model.sensitive),
            task="auto" if auto else model.task,
            roles=parts,
            seed=model.seed,
        )
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        words = f"the schema cannot be proposed again: {str(error)[:200]}"
        return Claim.check("schema", words, Kind.EXACT, 1.0, 0.0, "DAT-1")
    found = schema.to_dict()
    wrong = [key for key in found if not alike(stated.get(key), found[key])]
    facts = model.data_
    notes = [str(note) for note in facts.get("notes", [])]
    if notes and dropped_fit(notes[-1], others):  # of columns that the model does not have
        notes = notes[:-1]
    if notes != notes_of(schema):
        wrong.append("notes")
    if set(blank_out(table.frame, model.parsing.missing)[1]) - {""}:  # none is left after reading
        wrong.append("values that stand for missing")
    if facts.get("rows") != table.rows or facts.get("columns") != len(table.columns):
        wrong.append("size")
    words = "the parts that the columns play are those that the table gives"
    if wrong:
        words = f"the recorded schema is not that of the table, in: {', '.join(wrong)}"
    return Claim.check("schema", words, Kind.EXACT, float(len(wrong)), 0.0, "DAT-1")


def evidence_claim(model: TableModel, found: dict[str, Any], left_out: set[str]) -> Claim:
    """The numbers behind the pictures of the report are those found again."""
    recorded = model.evidence_
    wrong = [
        name
        for name in found
        if name not in recorded or not _drawn(name, recorded[name], found[name])
    ]
    wrong += [name for name in recorded if name not in found and name not in left_out]
    count = len(recorded) - len(left_out & set(recorded))
    words = f"the numbers behind {count} of {len(recorded)} pictures of the report are those found"
    if wrong:
        words = f"numbers behind the pictures of the report differ from those found: {', '.join(wrong[:6])}"
    return Claim.check("evidence", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


_STEPS = {
    "objective": ("iterations", "values"),
    "learning_curve": ("rows", "train", "validation"),
}


def _drawn(name: str, recorded: Any, found: Any) -> bool:
    """Whether a picture is the one found; of a curve, steps that there was no time for may be missing."""
    if name in _STEPS:
        steps, *lists = _STEPS[name]
        places = [k for k, step in enumerate(found[steps]) if step in recorded[steps]]
        found = {**found, **{key: [found[key][k] for k in places] for key in (steps, *lists)}}
    return alike(recorded, found)


def alike(a: Any, b: Any, tolerance: float = 1e-6) -> bool:
    """Equal, numbers to ``tolerance`` of their size."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key], tolerance) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(alike(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or not _is_number(a) or not _is_number(b):
        return bool(a == b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return bool(a == b) or abs(a - b) <= tolerance * max(abs(a), abs(b)) + 1e-12


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
