"""The sentences of an audit, from its numbers alone.

Each gap is one claim with two answers. The claim itself says that the gap lies in its interval; an interval
longer than ``WIDEST`` says too little and is *uninformative*. Beside it stands the verdict on the criterion:
it is *met* when the whole interval is within the tolerance, *violated* when none of it is, and *not decided*
when the tolerance lies inside. A violated criterion is no failed claim: the measurement is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..certificate import Claim, Kind, Status
from ..model_selection._claims import percent
from ._groups import shown
from .criteria import SOURCES

__all__ = ["ASSUMED", "TOLERANCE", "WIDEST", "audit_claims", "check_tolerance"]

TOLERANCE = 0.05  # largest acceptable gap, unless the user says otherwise: five percentage points
WIDEST = 0.5  # an interval of a rate or gap that is longer than half of [0, 1] says too little
ASSUMED = "rows drawn independently from one distribution, and used by no fit"
_WHAT = {
    "independence": "the selection rate",
    "separation": "the true or false positive rate",
    "sufficiency": "the positive or negative predictive value",
    "error": "the error rate",
    "base_rate": "the base rate",
}
_RATE = {
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "positive predictive value",
    "npv": "negative predictive value",
}
_TOLERABLE = ("independence", "separation", "sufficiency", "error", "calibration")


def check_tolerance(
    tolerance: float | Mapping[str, float], argument: str = "tolerance"
) -> dict[str, float]:
    """The tolerance of each criterion: one number for all, or some of them by name."""
    if isinstance(tolerance, Mapping):
        given = dict(tolerance)
    else:
        given = dict.fromkeys(_TOLERABLE, tolerance)
    for name, value in given.items():
        if name not in _TOLERABLE:
            raise ValueError(
                f"{argument} has the key {name!r}; it may have {', '.join(_TOLERABLE)}."
            )
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and 0.0 <= value <= 1.0):
            where = f"{argument}[{name!r}]" if isinstance(tolerance, Mapping) else argument
            raise ValueError(f"{where} must be a number between 0 and 1, got {value!r}.")
    defaults = dict.fromkeys(_TOLERABLE, TOLERANCE)
    return defaults | {name: float(value) for name, value in given.items()}


def audit_claims(
    gaps: Mapping[str, Mapping[str, Any]],
    calibration: Mapping[str, Any] | None,
    incompatible: Mapping[str, Any],
    delta: float,
    tolerance: Mapping[str, float],
    positive: str = "",
) -> tuple[Claim, ...]:
    """One claim for each criterion and attribute, and for the incompatibility.

    ``positive`` is what counts as a positive label or decision, in words; without it no gap has a meaning.
    ``tolerance`` has the largest acceptable gap by criterion, as :func:`check_tolerance` gives it.
    """
    claims = []
    rests = f"positive is {positive}; {ASSUMED}" if positive else ASSUMED
    for attribute, found in gaps.items():
        for criterion in ("independence", "separation", "sufficiency", "error"):
            entry, name = found[criterion], f"{criterion} ({shown(attribute)})"
            what = _gap_words(criterion, attribute, entry)
            claims.append(
                _claim(name, what, entry, delta, tolerance.get(criterion), criterion, rests)
            )
        name, entry = f"incompatibility ({shown(attribute)})", found["base_rate"]
        what = _gap_words("base_rate", attribute, entry)
        claim = _claim(name, what, entry, delta, None, "base_rate", rests)
        if attribute in incompatible and entry["low"] > 0.0:
            words = f"{claim.statement}; {incompatible[attribute]['statement']}"
            claim = replace(claim, statement=words)
        elif claim.status is not Status.FAILS and entry["low"] == 0.0:
            words = f"{claim.statement}; equal base rates are possible: no conflict is shown"
            claim = replace(claim, statement=words, status=Status.UNDECIDED)
        claims.append(claim)
    for attribute, entry in (calibration or {}).get("attributes", {}).items():
        many = len(entry["cells"])
        what = (
            "the largest deviation of the true share of positives from the mean score, over the "
            f"{f'{many} ' if many > 1 else ''}pairs of a tenth of the scores and a group of "
            f"{shown(attribute)} that could be measured,"
        )
        name = f"calibration ({shown(attribute)})"
        allowed = tolerance.get("calibration")
        claims.append(_claim(name, what, entry, delta, allowed, "calibration", rests))
    return tuple(claims)


def _gap_words(criterion: str, attribute: str, entry: Mapping[str, Any]) -> str:
    """Which gap, between which groups."""
    many = f"{len(entry['over'])} " if len(entry["over"]) > 1 else ""
    each = entry.get("each")  # where the two rates could not be measured in the same groups
    counts = ", ".join(f"{n} for the {_RATE[rate]}" for rate, n in (each or {}).items())
    return (
        f"the largest gap of {_WHAT[criterion]} between the {'' if each else many}groups of "
        f"{shown(attribute)} that could be measured" + (f" ({counts})" if each else "")
    )


def _claim(
    name: str,
    what: str,
    entry: Mapping[str, Any],
    delta: float,
    tolerance: float | None,
    criterion: str,
    rests: str,
) -> Claim:
    kind, source = Kind.STATISTICAL, SOURCES[criterion]
    low, high, observed = float(entry["low"]), float(entry["high"]), entry["observed"]
    if observed is None:
        why = f"{what} is not known: fewer than two have enough rows; {entry['why']}"
        return Claim.undecided(name, why, kind, source)
    where = f"between {math.floor(low * 1e4) / 1e4:.4f} and {math.ceil(high * 1e4) / 1e4:.4f}"
    who = " and ".join(shown(group) for group in entry["groups"])
    judged = tolerance is not None and tolerance < 1.0  # every gap is at most 1: nothing to judge
    claim = Claim.interval(
        name, "", kind, observed, low, high, source,
        widest=WIDEST, tolerance=tolerance if judged else None,
    )  # fmt: skip
    sentence = (
        f"with probability {percent(delta)} (all intervals of this audit at once), {what} is "
        f"{where} (observed {observed:.4f}: {who}){_verdict_words(claim)}; {rests}"
    )
    if claim.status is Status.UNINFORMATIVE:
        more = math.ceil((claim.observed / WIDEST) ** 2)  # lengths fall with the root of the rows
        sentence += (
            f"; the interval is too wide to say much: about {more} times as many rows are needed"
        )
    return replace(claim, statement=sentence)


def _verdict_words(claim: Claim) -> str:
    """Where the interval lies, compared with the tolerance."""
    if not claim.verdict:
        return ""
    words = {
        "met": "which is within the tolerance",
        "violated": "which exceeds the tolerance",
        "not decided": "which may or may not exceed the tolerance",
    }
    return f", {words[claim.verdict]} {claim.tolerance:g}"
