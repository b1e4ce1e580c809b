"""Forged claims: each field of each claim, one at a time, with a certificate made to agree."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.forged import fitted, resealed

from surefit.table import verify_table

SECTIONS = ["optimality", "generalisation", "robustness", "fairness"]

FIELDS: dict[str, Callable[[dict[str, Any]], None]] = {
    "statement": lambda c: c.update(statement=_other_number(c["statement"])),
    "wording": lambda c: c.update(statement=c["statement"].replace(" is ", " was ", 1) + "."),
    "observed": lambda c: c.update(observed=-1.0),
    "bound": lambda c: c.update(bound=7.0),
    "status": lambda c: c.update(status="undecided" if c["status"] == "holds" else "holds"),
    "kind": lambda c: c.update(kind="optimal" if c["kind"] != "optimal" else "exact"),
    "source": lambda c: c.update(source="KER-1"),
    "name": lambda c: c.update(name="truth"),
}


def _other_number(text: str) -> str:
    """The sentence with its first number of two digits or more changed in its leading digit."""

    def other(found: re.Match[str]) -> str:
        digits = found.group()
        return str((int(digits[0]) + 1) % 10) + digits[1:]

    changed = (
        re.sub(r"\d[\d.]*\d(?![\d.]*e-)|$", other, text, count=1)
        if re.search(r"\d[\d.]*\d(?![\d.]*e-)", text)
        else text + " 7"
    )
    assert changed != text
    return changed


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_changed_claim_is_refused(section: str, field: str) -> None:
    """Every claim of the section, in turn; the certificate is made to agree with the forged section."""
    table, model = fitted("mortgages")
    for place in range(len(model.sections_[section])):
        changed = copy.deepcopy(model)
        resealed(lambda m, k=place: FIELDS[field](m.sections_[section][k]))(changed)
        outcome = verify_table(changed, table, quick=True)
        assert not outcome.ok, changed.sections_[section][place]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("how", ["removed", "twice", "emptied"])
def test_claims_cannot_come_and_go(section: str, how: str) -> None:
    table, model = fitted("mortgages")
    changed = copy.deepcopy(model)
    claims = changed.sections_[section]
    edits: dict[str, Callable[[], Any]] = {
        "removed": claims.pop,
        "twice": lambda: claims.append(dict(claims[0])),
        "emptied": claims.clear,
    }
    resealed(lambda _: edits[how]())(changed)
    assert not verify_table(changed, table, quick=True).ok
