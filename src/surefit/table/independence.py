"""What the units of a table mean for the claims: what they suppose, and what is withheld in doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..certificate import Claim, Kind
from ..data import shown
from ..stats import INDEPENDENT
from .constant import BETTER
from .prepare import Rows

__all__ = ["averaged", "record_of", "respected", "rule_of", "units_claim", "where_of"]


AVERAGED = (
    "generalisation",
    "selection excess",
    BETTER,
)  # of which all rows of a unit are measured
ELSEWHERE = "nothing is claimed about new rows: these may not be independent (see generalisation)"
_COUNTED = re.compile(rf"(\d+) {INDEPENDENT}")


def record_of(rows: Rows) -> dict[str, Any]:
    """The units of a table as plain data: what a model keeps and a report says."""
    units = rows.units
    both = np.isin(units.alike[rows.holdout], units.alike[rows.train])
    return {
        "kind": units.kind,
        "single": units.single,
        "train": len(rows.train),
        "holdout": len(rows.holdout),
        "held_units": rows.n_held,
        "neither": len(rows.y) - len(rows.train) - len(rows.holdout),
        "copies": units.copies,
        "shared": int(both.sum()),
        "assumed": units.assumed,
        "why": units.why,
    }


def units_claim(recorded: dict[str, Any], found: dict[str, Any]) -> Claim:
    """What the file says of the units and the split is what the table gives."""
    wrong = sorted(
        key for key in recorded.keys() | found.keys() if recorded.get(key) != found.get(key)
    )
    what = {"rows": "rows", "copies": "different rows", "groups": "groups"}[found["kind"]]
    words = f"the split keeps {found['held_units']:,} {what} for the test, as recorded"
    if wrong:
        words = (
            f"the record of the split is not that of the table, in: {', '.join(map(str, wrong))}"
        )
    return Claim.check("units", words[:300], Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def rule_of(model: Any) -> str:
    """How the rows were split, in words."""
    kind, share = model.units_["kind"], f"{model.holdout:.0%}"
    what = {"rows": "rows", "copies": "different rows", "groups": "groups"}[kind]
    if kind == "groups":
        what += f" of rows with equal '{shown(model.group)}'"
    if model.time_column is not None:
        text = f"by '{shown(model.time_column)}': about the latest {share} of the rows are held out"
        if kind == "rows":
            return text
        return f"{text}, without later rows of {what} that the earlier rows have seen"
    return (
        f"a random permutation of the {what} that have a target, drawn by numpy.random.RandomState(seed); "
        f"the first {share} are held out"
    )


def averaged(model: Any) -> str:
    """What an error is averaged over, where units are not rows; "" where they are."""
    record = model.units_
    if record["kind"] == "rows":
        return ""
    if record["kind"] == "copies":
        return (
            f" over {record['held_units']} different rows, copies of which were kept together and counted "
            "once"
        )
    return f" over {record['held_units']} held-out groups of '{shown(model.group)}'"


def where_of(model: Any) -> str:
    """On which rows an error was measured, for a headline; cases it has not seen only where that is so."""
    record = model.units_
    kind, regression = record["kind"], model.task == "regression"
    if model.time_column is not None:
        of = "on" if regression else "of"
        what = {"rows": "rows", "copies": "different rows", "groups": "rows of new groups"}[kind]
        return f"{of} the latest {what}, after those it was fitted on"
    if record["why"] or (kind == "rows" and (record["shared"] or model.rows_are_independent)):
        return f"{'on' if regression else 'of the'} held-out rows"
    if kind == "copies":
        return f"{'on' if regression else 'of'} different rows it has not seen"
    if kind == "groups":
        name = shown(model.group)
        each = f"groups of “{name}” it has not seen, each group counted alike"
        return f"{'on' if regression else 'of'} rows of {each}"
    return "on rows it has not seen" if regression else "of cases it has not seen"


def respected(model: Any, claims: Sequence[Claim]) -> list[Claim]:
    """The claims with the condition that holds for these units; undecided ones where there is doubt."""
    record = model.units_
    found = []
    for claim in claims:
        if claim.kind is not Kind.STATISTICAL:
            found.append(claim)
        elif record["why"]:
            why = record["why"] if claim.name == "generalisation" else ELSEWHERE
            found.append(Claim.undecided(claim.name, why, claim.kind, claim.source))
        else:
            found.append(replace(claim, statement=_restated(claim, record)))
    return found


def _restated(claim: Claim, record: dict[str, Any]) -> str:
    """The sentence of a claim with the condition that holds for these units."""
    if INDEPENDENT not in claim.statement:
        return claim.statement
    assumed, _, found = record["assumed"].partition("; ")
    text = claim.statement
    if record["kind"] != "rows":
        counted = _COUNTED.search(text)
        if counted is not None:
            text = text.replace(counted[0], f"one row of each of {counted[1]} of {INDEPENDENT}")
        elif claim.name not in AVERAGED:
            text = text.replace(INDEPENDENT, f"{INDEPENDENT}, one row of each")
    text = text.replace(INDEPENDENT, assumed)
    return f"{text}; {found}" if found else text
