"""Models of tables for the tests of forgery: fitted once, written to a file and read again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import surefit
from surefit import Certificate, Claim
from surefit.data import load, read_table
from surefit.table import fit_table

__all__ = ["SEED", "Change", "fitted", "resealed", "visits"]

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
    "visits": ("visits", "y", {"models": ["logistic"], "group": "patient"}),
    "years": ("visits", "y", {"models": ["logistic"], "time_column": "day", "drop": ["patient"]}),
}


def visits(patients: int = 60, seed: int = 0) -> Any:
    """Patients with one to nine rows each, whose label is that of the patient, and the days of the rows."""
    generator = np.random.default_rng(seed)
    centre = generator.normal(size=(patients, 2))
    who = np.repeat(np.arange(patients), generator.integers(1, 10, patients))
    X = centre[who] + generator.normal(size=(len(who), 2))
    chance = 1.0 / (1.0 + np.exp(-3.0 * centre.sum(axis=1)))
    sick = generator.random(patients) < chance
    return read_table(
        {
            "patient": [f"P{k:03d}" for k in who],
            "ward": [f"W{k % 7}" for k in who],
            "day": generator.integers(18_000, 18_400, len(who)).tolist(),
            "a": X[:, 0].tolist(),
            "b": X[:, 1].tolist(),
            "y": np.where(sick[who], "yes", "no").tolist(),
        }
    )


@cache
def fitted(name: str) -> tuple[Any, Any]:
    """A table and its model, as the file has it; the caller copies the model before changing it."""
    bundled, target, asked = ASKED[name]
    table = visits() if bundled == "visits" else load(bundled)
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
