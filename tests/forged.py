"""Models of tables for the tests of forgery: fitted once, written to a file and read again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import surefit
from surefit import Certificate, Claim
from surefit.data import load
from surefit.table import fit_table

__all__ = ["SEED", "Change", "fitted", "resealed"]

Change = Callable[[Any], Any]
SEED = 3
ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mortgages": (
        "mortgages",
        "denied",
        {"sensitive": ["african_american"], "models": ["logistic", "knn"]},
    ),
    "diabetes": ("diabetes", "progression", {"models": ["linear", "lasso"]}),
    "neighbours": ("iris", "species", {"models": ["knn"], "refit": True}),
}


@cache
def fitted(name: str) -> tuple[Any, Any]:
    """A table and its model, as the file has it; the caller copies the model before changing it."""
    bundled, target, asked = ASKED[name]
    table = load(bundled)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.surefit"
        surefit.save(fit_table(table, target, reference=False, seed=SEED, **asked), path)
        return table, surefit.load(path)


def resealed(change: Change) -> Change:
    """The change of the sections, with a certificate made to fit them."""

    def both(model: Any) -> None:
        change(model)
        claims = [
            Claim.from_dict(record)
            for name in ("optimality", "generalisation", "robustness", "fairness")
            for record in model.sections_[name]
        ]
        old = model.certificate_
        model.certificate_ = Certificate(tuple(claims), old.data_id, old.stopped, old.about)

    return both
