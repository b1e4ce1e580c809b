"""Forged claims: each field of each claim, one at a time, with a certificate made to agree."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.forged import Change, fitted, resealed

import surefit
from surefit import save
from surefit.data import load
from surefit.table import fit_table, verify_table

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


# -------------------------------------------------------------------- back doors


def _hidden_neighbours(model: Any) -> None:
    """Rows far from all others, which decide what is predicted there and nowhere else."""
    inner = model.model_
    inner.X_fit_ = np.vstack([inner.X_fit_, np.full((50, inner.X_fit_.shape[1]), 50.0)])
    inner.y_fit_ = np.r_[inner.y_fit_, np.repeat(inner.y_fit_[:1], 50)]
    inner.n_samples_fit_ = len(inner.X_fit_)


def _hidden_centre(model: Any) -> None:
    """A row with a large weight that no kernel value of the table reaches."""
    inner = model.model_
    inner.X_fit_ = np.vstack([inner.X_fit_, np.full((1, inner.X_fit_.shape[1]), 50.0)])
    inner.dual_coef_ = np.r_[inner.dual_coef_, [1000.0]]


def _hidden_support(model: Any) -> None:
    inner = model.model_
    inner.support_vectors_ = inner.support_vectors_.copy()
    inner.support_vectors_[0] += 1e-9


@pytest.mark.parametrize(
    ("name", "target", "family", "change"),
    [
        ("breast-cancer", "diagnosis", "knn", _hidden_neighbours),
        ("diabetes", "progression", "knn", _hidden_neighbours),
        ("diabetes", "progression", "kernel", _hidden_centre),
        ("breast-cancer", "diagnosis", "kernel", _hidden_support),
    ],
)
def test_a_back_door_far_from_every_row(
    tmp_path: Path, name: str, target: str, family: str, change: Change
) -> None:
    """The model predicts every row of the table as before; only what it keeps gives it away."""
    table = load(name)
    model = fit_table(table, target, models=[family], reference=False)
    before = model.predict(table)
    change(model)
    save(model, tmp_path / "model.surefit")
    changed = surefit.load(tmp_path / "model.surefit")
    after = changed.predict(table)
    assert_array_equal(after, before) if before.dtype.kind == "U" else assert_allclose(
        after, before
    )
    assert not verify_table(changed, table, quick=True).ok
