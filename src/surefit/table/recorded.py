"""Whether a file says what is found: its claims, its pictures, its schema, and the certificate beside it.

Numbers are compared to the rounding of another machine, text to the letter.
"""

from __future__ import annotations

import math
from typing import Any

from ..certificate import Claim, Kind, Status
from ..data import propose_schema
from .model import SECTIONS, TableModel

__all__ = ["alike", "document_claim", "evidence_claim", "recorded_claim", "schema_claim"]


def recorded_claim(model: TableModel, sections: dict[str, tuple[Claim, ...]]) -> Claim:
    """The claims in the file are those found: same names, statuses, numbers."""
    wrong = []
    for name in SECTIONS:
        recorded = model.claims(name) if name in model.sections_ else []
        found = list(sections[name])
        if name == "optimality":  # verify decides what the fit left undecided, and adds the data
            recorded, found = _decided(recorded, found)
        if [c.name for c in recorded] != [c.name for c in found]:
            wrong.append(f"the list of claims on {name}")
            continue
        wrong += [f"{name}: {a.name}" for a, b in zip(recorded, found) if not _same(a, b)]
    flat = [claim for name in SECTIONS for claim in model.claims(name)]
    if {c.name: c for c in flat} != {c.name: c for c in model.certificate_.claims}:
        wrong.append("the certificate, which is not that of the sections")
    words = f"the {len(flat)} recorded claims are those found"
    if wrong:
        words = f"recorded claims differ from those found: {'; '.join(wrong[:5])}"
    return Claim.check("record", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def _decided(recorded: list[Claim], found: list[Claim]) -> tuple[list[Claim], list[Claim]]:
    """The claims on the fit that were decided then, and the same ones now."""
    then = [claim for claim in recorded if claim.status is not Status.UNDECIDED]
    now = {claim.name: claim for claim in found}
    return then, [now[claim.name] for claim in then if claim.name in now]


def _same(a: Claim, b: Claim) -> bool:
    """Equal but for the rounding of another machine: kind, status, source and numbers."""
    if (a.kind, a.status, a.source) != (b.kind, b.status, b.source):
        return False
    if a.kind in (Kind.STATISTICAL, Kind.BOUND, Kind.EMPIRICAL) and a.statement != b.statement:
        return False
    pairs = ((a.observed, b.observed), (a.bound, b.bound))
    if a.kind in (Kind.OPTIMAL, Kind.EXACT, Kind.STATIONARY):  # residuals at rounding level
        return (
            abs(a.bound - b.bound) <= 1e-6 * abs(b.bound)
            or a.bound == b.bound
            or a.bound != a.bound
        )
    return all((x != x and z != z) or abs(x - z) <= 1e-9 * max(1.0, abs(z)) for x, z in pairs)


def document_claim(model: TableModel, document: Any) -> Claim:
    """``certificate.json`` says what the model says."""
    own = model.document()
    other = document if isinstance(document, dict) else {}
    wrong = sorted(key for key in own.keys() | other.keys() if own.get(key) != other.get(key))
    words = "certificate.json says what the model file says"
    if wrong:
        words = f"certificate.json differs from the model file in: {', '.join(map(str, wrong[:8]))[:300]}"
    return Claim.check("certificate.json", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def schema_claim(model: TableModel, table: Any) -> Claim:
    """The parts that the columns play are those that the table and the stated roles give."""
    try:
        parts = dict.fromkeys(model.sensitive, "ignored") | dict(model.roles_)
        found = propose_schema(
            table,
            model.target,
            sensitive=tuple(model.sensitive),
            task=model.task,
            roles=parts,
            seed=model.seed,
        ).to_dict()
    except (ValueError, TypeError, AttributeError) as error:
        words = f"the schema cannot be proposed again: {str(error)[:200]}"
        return Claim.check("schema", words, Kind.EXACT, 1.0, 0.0, "DAT-1")
    stated = dict(model.schema_)
    wrong = [
        key
        for key in ("columns", "target", "task", "classes", "sensitive")
        if not alike(stated.get(key), found[key])
    ]
    facts = model.data_
    if facts.get("rows") != table.rows or facts.get("columns") != len(table.columns):
        wrong.append("size")
    words = "the parts that the columns play are those that the table gives"
    if wrong:
        words = f"the recorded schema is not that of the table, in: {', '.join(wrong)}"
    return Claim.check("schema", words, Kind.EXACT, float(len(wrong)), 0.0, "DAT-1")


def evidence_claim(model: TableModel, found: dict[str, Any], left_out: set[str]) -> Claim:
    """The numbers behind the pictures of the report are those found again."""
    recorded = model.evidence_
    wrong = [name for name in found if name in recorded and not alike(recorded[name], found[name])]
    wrong += [name for name in recorded if name not in found and name not in left_out]
    count = len(recorded) - len(left_out & set(recorded))
    words = f"the numbers behind {count} of {len(recorded)} pictures of the report are those found"
    if wrong:
        words = f"numbers behind the pictures of the report differ from those found: {', '.join(wrong[:6])}"
    return Claim.check("evidence", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def alike(a: Any, b: Any) -> bool:
    """Equal, numbers to 1e-6 of their size."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or not _is_number(a) or not _is_number(b):
        return bool(a == b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return bool(a == b) or abs(a - b) <= 1e-6 * max(abs(a), abs(b)) + 1e-12


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
