"""The sentences of an audit, from its numbers alone.

A gap without a tolerance *holds* when its interval is shorter than [0, 1]: ``observed`` is the length of the
interval, ``bound`` is 1. With a tolerance the sentence is "the gap is at most tolerance": it holds when the
upper limit is, fails when the lower limit is above, and is undecided when the tolerance lies inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..certificate import Claim, Kind
from ..model_selection._claims import percent
from ._groups import shown
from .criteria import SOURCES

__all__ = ["ASSUMED", "audit_claims", "check_tolerance"]

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


def check_tolerance(tolerance: Mapping[str, float] | None) -> dict[str, float]:
    """The tolerances by criterion, checked."""
    given = dict(tolerance or {})
    for name, value in given.items():
        if name not in _TOLERABLE:
            raise ValueError(
                f"tolerance has the key {name!r}; it may have {', '.join(_TOLERABLE)}."
            )
        if not (isinstance(value, int | float) and 0.0 <= value <= 1.0):
            raise ValueError(f"tolerance[{name!r}] must lie in [0, 1], got {value!r}.")
    return {name: float(value) for name, value in given.items()}


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
            claim = Claim.check(name, words, claim.kind, claim.observed, claim.bound, claim.source)
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
    sentence = (
        f"with probability {percent(delta)} (all intervals of this audit at once), {what} is "
        f"{where} (observed {observed:.4f}: {who}); {rests}"
    )
    if tolerance is None:
        if high - low >= 1.0:
            why = f"{what} may be anything: too few rows; test on more"
            return Claim.undecided(name, why, kind, source)
        return Claim.check(name, sentence, kind, high - low, 1.0, source)
    if high <= tolerance:
        return Claim.check(
            name, f"at most {tolerance:g}: {sentence}", kind, high, tolerance, source
        )
    if low > tolerance:
        return Claim.check(name, f"above {tolerance:g}: {sentence}", kind, low, tolerance, source)
    why = f"{sentence}; whether it is at most {tolerance:g} needs more rows"
    return Claim.undecided(name, why, kind, source)
