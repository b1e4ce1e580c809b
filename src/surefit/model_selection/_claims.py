"""The sentences about models that were evaluated on rows their fit had not used.

Everything here is arithmetic on the observed losses (``evidence``: mean, variance, least and largest loss
of each model on its test rows), the number of rows, delta, and the number of models. A statistical claim
*holds* when the interval it states is shorter than the range of the loss: ``observed`` is the length of the
interval inside the range, ``bound`` the length of the range. It *fails* when a loss was observed outside
the range that was stated. It is *undecided* when it would say nothing (an interval as long as the range),
or when the theorem's conditions do not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from ..certificate import Claim, Kind, Status
from ._losses import BoundedLoss
from .bounds import bernstein_radius, clopper_pearson, hoeffding_radius

__all__ = [
    "Statistics",
    "excess_claim",
    "folds_claim",
    "generalisation_claim",
    "nested",
    "no_bound",
    "percent",
    "plain_folds",
    "prefitted",
    "sampling",
]

Array = NDArray[np.float64]
_GROUPED = (
    sk.GroupKFold,
    sk.GroupShuffleSplit,
    sk.LeaveOneGroupOut,
    sk.LeavePGroupsOut,
    sk.StratifiedGroupKFold,
)
_STRATIFIED = (sk.StratifiedKFold, sk.StratifiedShuffleSplit, sk.RepeatedStratifiedKFold)
ASSUMED = "rows drawn independently from one distribution"


@dataclass(frozen=True)
class Statistics:
    """What was observed of K candidates on F test sets, and how it is to be bounded.

    Attributes
    ----------
    evidence : array of shape (K, F, 4)
        Mean, variance, least and largest loss of each model; NaN where a fit failed.
    sizes : array of shape (F,)
        Rows of each test set.
    loss : BoundedLoss
        The loss.
    stratified : bool
        Whether the test sets were chosen to have the class frequencies of all rows.
    delta, bound : float, str
        As they were fixed before the data were seen.
    """

    evidence: Array
    sizes: NDArray[np.intp]
    loss: BoundedLoss
    stratified: bool
    delta: float
    bound: str

    @property
    def models(self) -> int:
        """How many models the union bound counts: every candidate on every test set, failed ones too."""
        return int(self.evidence.shape[0] * self.evidence.shape[1])

    def limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of each candidate's true loss, averaged over its models."""
        mean, variance = self.evidence[..., 0], self.evidence[..., 1]
        if self.bound == "clopper-pearson":
            wrong = np.rint(np.nan_to_num(mean) * self.sizes)
            ends = clopper_pearson(
                wrong, self.sizes, self.delta, self.models, identical=not self.stratified
            )
            low, high = (np.where(np.isnan(mean), np.nan, end) for end in ends)
        else:
            if self.bound == "bernstein":
                radius = bernstein_radius(
                    variance, self.sizes, self.delta, self.loss.range, self.models
                )
            else:
                radius = hoeffding_radius(self.sizes, self.delta, self.loss.range, self.models)
            low, high = mean - radius, mean + radius
        return low.mean(axis=1), high.mean(axis=1)

    def outside(self) -> float:
        """The loss furthest outside the stated range; NaN where all lie inside."""
        least, largest = np.nanmin(self.evidence[..., 2]), np.nanmax(self.evidence[..., 3])
        if largest > self.loss.high:
            return float(largest)
        return float(least) if least < self.loss.low else math.nan


def sampling(cv: Any, groups: bool = False) -> bool | str:
    """Whether a splitter stratifies, or why its test rows allow no bound; ``groups`` if it was given some."""
    if groups or isinstance(cv, _GROUPED):
        return GROUPS
    if isinstance(cv, sk.TimeSeriesSplit):
        return "rows of a time series are not drawn independently from one distribution: no bound is stated"
    return isinstance(cv, _STRATIFIED)


GROUPS = (
    "groups say that rows are not independent, and a bound would have to count groups, not rows: "
    "no bound is stated"
)


def no_bound(folds: Claim, splits: list[Any], things: Any) -> str:
    """Why no model that was tested on these folds has a bound, or ""; ``things`` were fitted."""
    if folds.status is not Status.HOLDS:
        return "rows were tested by models that were fitted on them: no bound is stated"
    if any(len(np.unique(test)) < len(test) for _, test in splits):
        return "a test set has the same row twice, and a bound would count it as two: no bound is stated"
    return prefitted(things)


def prefitted(things: Any) -> str:
    """Why fits may have seen their test rows: a part came fitted, and ``fit`` leaves it as it is; or ""."""
    for name, value in nested(things):
        if isinstance(value, FrozenEstimator):
            found = f"{name}=FrozenEstimator(...)" if name else "FrozenEstimator(...)"
            return (
                f"{found} was fitted beforehand, nobody knows on which rows: no bound is stated. Give the "
                "estimator itself, to be fitted on the training rows"
            )
    return ""


def nested(things: Any) -> Iterator[tuple[str, Any]]:
    """The things themselves, without a name, and the parameters of the estimators among them."""
    for thing in things:
        yield "", thing
        if isinstance(thing, BaseEstimator) and not isinstance(thing, FrozenEstimator):
            yield from thing.get_params().items()
        elif isinstance(thing, dict):
            yield from thing.items()
            yield from ((name, value) for name, value in nested(thing.values()) if name)


def generalisation_claim(
    statistics: Statistics | str,
    chosen: int | None,
    who: str,
    tried: str,
    *,
    source: str = "GEN-4",
    caveat: str = "",
) -> Claim:
    """The true loss of a candidate's models lies where the bound says.

    Parameters
    ----------
    statistics : Statistics or str
        What was observed, or the reason why nothing is claimed.
    chosen : int or None
        The candidate.
    who : str
        Whose loss: "of the 5 fold models of C=1" or "".
    tried : str
        "after trying 40 models".
    caveat : str
        What the sentence is not about.
    """
    name = "generalisation"
    if isinstance(statistics, str) or chosen is None:
        why = statistics if isinstance(statistics, str) else "no candidate was chosen"
        return Claim.undecided(name, why, Kind.STATISTICAL, source)
    loss, evidence = statistics.loss, statistics.evidence
    width = loss.high - loss.low
    if not np.isfinite(evidence[chosen]).all():
        why = "a model could not be fitted or scored as a mean of losses: nothing is claimed"
        return Claim.undecided(name, why, Kind.STATISTICAL, source)
    stray = statistics.outside()
    if not math.isnan(stray):
        why = (
            f"a loss of {stray:g} was observed outside the stated range [{loss.low:g}, {loss.high:g}]: no "
            "bound follows"
        )
        return Claim.check(name, why, Kind.STATISTICAL, math.inf, width, source)
    low, high = (float(end[chosen]) for end in statistics.limits())
    length = min(high, loss.high) - max(low, loss.low)
    if not length < width:
        rows = int(statistics.sizes.min())
        why = (
            f"nothing can be said: {rows} test row{'s' if rows > 1 else ''} and {statistics.models} models "
            f"leave an interval as long as the range of the loss; test on more rows"
        )
        return Claim.undecided(name, why, Kind.STATISTICAL, source)
    observed = float(evidence[chosen, :, 0].mean())
    where = _where(low, high, observed, loss, statistics.bound)
    mean = "mean " if evidence.shape[1] > 1 and not loss.words.startswith("mean") else ""
    at = " at the class frequencies of the test rows" if statistics.stratified else ""
    statement = (
        f"with probability {percent(statistics.delta)}, the {mean}true {loss.words}{who}{at} {where}"
        f"{tried}; {ASSUMED}{caveat}"
    )
    return Claim.check(name, statement, Kind.STATISTICAL, length, width, source)


def excess_claim(statistics: Statistics | str, chosen: int | None, who: str) -> Claim | None:
    """The chosen candidate is not much worse than the best one (GEN-5); ``None`` without a choice.

    From the limits that hold for all candidates at once: at most the upper limit of the chosen one less the
    least lower limit. For the best of Hoeffding's that is twice the radius.
    """
    if isinstance(statistics, str) or chosen is None or statistics.evidence.shape[0] < 2:
        return None
    loss = statistics.loss
    width = loss.high - loss.low
    low, high = statistics.limits()
    known = np.isfinite(low)
    if not known[chosen] or not math.isnan(statistics.outside()):
        return None
    excess = float(high[chosen] - low[known].min())
    if not excess < width:
        why = "the bound on what the choice can cost is as wide as the range of the loss: test on more rows"
        return Claim.undecided("selection excess", why, Kind.STATISTICAL, "GEN-5")
    places = _places(loss)
    mean = "mean " if statistics.evidence.shape[1] > 1 else ""
    at = " at the class frequencies of the test rows" if statistics.stratified else ""
    statement = (
        f"with probability {percent(statistics.delta)}, the {mean}true {loss.words}{who}{at} is at most "
        f"{_up(excess, places):.{places}f} above that of the best of {int(known.sum())} candidates"
    )
    return Claim.check("selection excess", statement, Kind.STATISTICAL, excess, width, "GEN-5")


def plain_folds(splits: Any) -> list[Any]:
    """Folds as arrays of row numbers, whatever a splitter yields: lists, masks, arrays on a device."""
    numbers = [[np.asarray(part) for part in split] for split in splits]
    return [
        tuple(
            np.flatnonzero(part) if part.dtype == np.bool_ else part.astype(np.intp)
            for part in split
        )
        for split in numbers
    ]


def folds_claim(splits: list[Any], n: int) -> Claim:
    """No row is tested by a model that was fitted on it; whether each is tested exactly once (GEN-7)."""
    tested, shared, strange = np.zeros(n, dtype=np.intp), 0, 0
    for train, test in splits:
        inside = np.zeros(n, dtype=np.bool_)
        for part in (train, test):
            strange += int(((part >= n) | (part < 0)).sum())
        train, test = (part[(part >= 0) & (part < n)] for part in (train, test))
        inside[train] = True
        shared += int(inside[test].sum())
        np.add.at(tested, test, 1)
    many = "the split" if len(splits) == 1 else f"any of the {len(splits)} folds"
    if strange:
        words = f"{strange} places in the recorded folds are not rows of these data, which have {n}"
    elif shared:
        words = f"{shared} rows are tested by a model that was fitted on them: a training score, not a test"
    else:
        once = bool((tested == 1).all())
        times = f"tested {tested.min()} to {tested.max()} times" if n else "absent"
        words = f"no row is in both parts of {many}, and each of the {n} rows is " + (
            "tested exactly once" if once else times
        )
    return Claim.check("folds", words, Kind.EXACT, float(shared + strange), 0.0, "GEN-7")


# ------------------------------------------------------------------------ words


def percent(delta: float) -> str:
    """The probability 1 - delta, rounded down: never 100 %."""
    return f"{min(math.floor(1e6 * (1.0 - delta) + 1e-4) / 1e4, 99.9999):.6g} %"


def _places(loss: BoundedLoss) -> int:
    """Decimals such that a thousandth of the range is seen."""
    return max(0, 3 - math.floor(math.log10(loss.high - loss.low)))


def _up(value: float, places: int) -> float:
    """Rounded away from the truth of the sentence: up."""
    return math.ceil(value * 10.0**places - 1e-9) / 10.0**places


def _where(low: float, high: float, observed: float, loss: BoundedLoss, bound: str) -> str:
    """Where the true loss lies, rounded outwards so that the printed sentence is true as well."""
    places = _places(loss)
    if bound == "clopper-pearson":
        first, last = -_up(-low, places), _up(high, places)
        return f"is between {first + 0.0:.{places}f} and {last:.{places}f} (observed {observed:.{places}f})"
    centre = round(observed, places)
    radius = _up((high - low) / 2.0 + abs(observed - centre), places)
    return f"is within {radius:.{places}f} of {centre:.{places}f}"
