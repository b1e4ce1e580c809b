"""The sentences about an adversarial risk, from counts of rows.

A bound that is no better than what is true of any model is uninformative: no row certified at any radius
above 0, no row broken while some are open, an interval as long as the range.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind, Status
from ..model_selection._claims import percent
from ..model_selection.bounds import clopper_pearson

__all__ = [
    "bracket_claim",
    "certified_claim",
    "closed_form_claim",
    "population",
    "population_claim",
    "weaken",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def closed_form_claim(differ: int, n: int, words: str) -> Claim:
    """The formula that the bounds rest on gives the model's own labels."""
    statement = (
        f"the {words} formula read from the model's attributes contradicts the model's label on {differ} "
        f"of {n} rows, rounding aside"
    )
    return Claim.check("closed form", statement, Kind.EXACT, float(differ), 0.0, "ADV-1")


def certified_claim(
    eps: Array,
    certified: Mask,
    refuted: int,
    checked: int,
    method: str,
    *,
    exact: bool,
    constant: float,
) -> Claim:
    """Rows that no perturbation can make wrong: the claim fails when an attack did.

    ``constant`` is the share of the most frequent label: what the best constant answer has at every radius.
    """
    kind = Kind.EXACT if exact else Kind.BOUND
    if not method:
        why = (
            "no certified bound is known for this model: its certified accuracy is 0 at every radius "
            "above 0; attacks alone show how robust it is at most"
        )
        return Claim.undecided("certified accuracy", why, Kind.BOUND, "ADV-1")
    shares = ", ".join(
        f"{_down(float(share)):.4f} at eps {e:g}" for e, share in zip(eps, certified.mean(axis=1))
    )
    what = "no allowed perturbation changes the right label of" if not refuted else "bounds certify"
    statement = (
        f"{what} a share of {shares} ({method}); of {checked} attacks on such rows, {refuted} found a wrong "
        f"label; the best constant answer has {_down(constant):.4f} at every radius"
    )
    claim = Claim.check("certified accuracy", statement, kind, float(refuted), 0.0, "ADV-1")
    positive = eps > 0.0
    nothing = bool(positive.any()) and not certified[positive].any()
    return weaken(claim, nothing, "no row is certified at a radius above 0")


def bracket_claim(
    eps: Array, broken: Mask, certified: Mask, attacks: str, unproved: int, checked: int
) -> Claim:
    """Attacks found at least so many wrong rows, and no more than the bound allows."""
    share = broken.mean(axis=1)
    words = ", ".join(f"{_down(float(s)):.4f} at eps {e:g}" for e, s in zip(eps, share))
    both = int((broken & certified).any(axis=0).sum())
    statement = (
        f"the adversarial risk on these rows is at least {words} ({attacks}); {both} of these rows were "
        "certified"
    )
    if checked:
        statement += f", and of {checked} worst points that were tried {unproved} kept their label"
    claim = Claim.check(
        "attacked accuracy", statement, Kind.EMPIRICAL, float(both + unproved), 0.0, "ADV-2"
    )
    nothing = not broken.any() and not certified.all()
    return weaken(claim, nothing, "no row was broken, which shows nothing of the rows left open")


def weaken(claim: Claim, is_empty: bool, why: str) -> Claim:
    """A claim that holds, as uninformative where it says nothing, with the reason."""
    if not is_empty or claim.status is not Status.HOLDS:
        return claim
    return replace(claim, statement=f"{claim.statement}; {why}", status=Status.UNINFORMATIVE)


def population(broken: Mask, certified: Mask, delta: float) -> tuple[Array, Array]:
    """Limits of the true adversarial risk at each radius, all at once."""
    m, n = broken.shape
    low, _ = clopper_pearson(broken.sum(axis=1), n, delta, m)
    _, high = clopper_pearson((~certified).sum(axis=1), n, delta, m)
    return np.asarray(low), np.asarray(high)


def population_claim(
    eps: Array, low: Array, high: Array, n: int, delta: float, why_not: str
) -> Claim:
    """The true adversarial risk lies between the limits, for all radii at once."""
    name, source = "true adversarial risk", "ADV-1"
    if why_not:
        return Claim.undecided(name, why_not, Kind.STATISTICAL, source)
    known = high - low < 1.0
    if not known.any():
        why = (
            "nothing can be said: no attack succeeded and no row was certified, so the intervals are as long "
            "as the range"
        )
        return Claim.uninformative(name, why, Kind.STATISTICAL, 1.0, 1.0, source)
    words = ", ".join(
        f"between {_down(float(first)):.4f} and {_up(float(last)):.4f} at eps {e:g}"
        for e, first, last in zip(eps[known], low[known], high[known])
    )
    rest = ", ".join(f"{e:g}" for e in eps[~known])
    statement = (
        f"with probability {percent(delta)}, for all radii at once, the true adversarial risk is "
        f"{words} ({n} rows drawn independently from one distribution, used by no fit)"
        + (f"; nothing can be said at eps {rest}" if rest else "")
    )
    length = float((high - low)[known].max())
    claim = Claim.check(name, statement, Kind.STATISTICAL, length, 1.0, source)
    positive = eps > 0.0
    nothing = bool(positive.any()) and not known[positive].any()
    return weaken(claim, nothing, "nothing is known of any radius above 0")


def _down(value: float) -> float:
    return math.floor(value * 1e4 + 1e-9) / 1e4


def _up(value: float) -> float:
    return math.ceil(value * 1e4 - 1e-9) / 1e4
