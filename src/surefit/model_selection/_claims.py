"""The sentences about models that were evaluated on rows their fit had not used.

Everything here is arithmetic on the observed losses (``evidence``: mean, variance, least and largest loss
of each model on its test rows, or on its groups), the number of rows or groups, delta, and the number of
models. A statistical claim states an interval (``estimate``, ``low``, ``high``). It *holds* when that is at
most four fifths as long as the range of the loss; a longer one is *uninformative*, and says how many rows
would make it informative. It *fails* when a loss was observed outside the range that was stated. It is
*undecided* when the theorem's conditions do not hold: rows that are not independent, or that the fit has
seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from ..certificate import Claim, Kind, Status
from ..stats import (
    INDEPENDENT,
    Rows,
    bernstein_radius,
    clopper_pearson,
    group_limits,
    hoeffding_radius,
)
from ._losses import BoundedLoss

__all__ = [
    "ASSUMED",
    "WIDEST",
    "Statistics",
    "crossing",
    "excess_claim",
    "folds_claim",
    "generalisation_claim",
    "nested",
    "no_bound",
    "observed",
    "percent",
    "plain_folds",
    "prefitted",
    "sampling",
]

Array = NDArray[np.float64]
_STRATIFIED = (
    sk.StratifiedKFold,
    sk.StratifiedShuffleSplit,
    sk.RepeatedStratifiedKFold,
    sk.StratifiedGroupKFold,
)
ASSUMED = INDEPENDENT
WIDEST = 0.8  # of the range of the loss: a longer interval is nearly as wide as what is true of any model
MOST_NEEDED = 10**12  # rows beyond which no number is named


@dataclass(frozen=True)
class Statistics:
    """What was observed of K candidates on F test sets, and how it is to be bounded.

    Attributes
    ----------
    evidence : array of shape (K, F, 4)
        Mean, variance, least and largest loss of each model; NaN where a fit failed.
    sizes : array of shape (F,)
        Rows of each test set; groups, where rows are grouped.
    loss : BoundedLoss
        The loss.
    stratified : bool
        Whether the test sets were chosen to have the class frequencies of all rows.
    delta, bound : float, str
        As they were fixed before the data were seen.
    grouped : bool
        Whether the evidence is that of group means, and the claim about the mean over groups.
    assumed : str
        Under which condition the limits hold.
    """

    evidence: Array
    sizes: NDArray[np.intp]
    loss: BoundedLoss
    stratified: bool
    delta: float
    bound: str
    grouped: bool = field(default=False, kw_only=True)
    assumed: str = field(default=INDEPENDENT, kw_only=True)

    @property
    def models(self) -> int:
        """How many models the union bound counts: every candidate on every test set, failed ones too."""
        return int(self.evidence.shape[0] * self.evidence.shape[1])

    def limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of each candidate's true loss, averaged over its models."""
        mean, variance = self.evidence[..., 0], self.evidence[..., 1]
        if self.grouped:
            low, high = group_limits(
                mean, variance, self.sizes, self.delta, self.loss.range, self.models
            )
        elif self.bound == "clopper-pearson":
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


def sampling(cv: Any) -> bool | str:
    """Whether a splitter stratifies, or why its test rows allow no bound."""
    if isinstance(cv, sk.TimeSeriesSplit):
        return "rows of a time series are not drawn independently from one distribution: no bound is stated"
    return isinstance(cv, _STRATIFIED)


def crossing(splits: list[Any], rows: Rows) -> str:
    """Why folds that part rows which belong together allow no bound, or ""."""
    labels = rows.labels
    if labels is None:
        return ""
    torn = sum(bool(np.isin(labels[test], labels[train]).any()) for train, test in splits)
    if not torn:
        return ""
    folds = "the split tests" if len(splits) == 1 else f"{torn} of the {len(splits)} folds test"
    if rows.kind == "grouped":
        what = "rows of groups that their models were fitted on"
        remedy = "cv=GroupKFold() keeps groups together"
    else:
        what = (
            f"copies of rows that their models were fitted on ({rows.assumed.rpartition('; ')[2]})"
        )
        remedy = (
            "drop the copies, or give groups=surefit.stats.find_repeats(X, y).labels and "
            "cv=GroupKFold()"
        )
    return f"{folds} {what}: no bound is stated; {remedy}"


def observed(
    evidence: Array,
    splits: list[Any],
    loss: BoundedLoss | str,
    kind: bool | str,
    rows: Rows,
    *,
    delta: float,
    bound: str,
    later: str = "",
) -> Statistics | str:
    """What was observed on the test sets, or why no bound follows; ``later`` is one more condition."""
    if isinstance(loss, str) or isinstance(kind, str):
        return loss if isinstance(loss, str) else str(kind)
    if rows.labels is None:
        sizes = [len(test) for _, test in splits]
    elif loss.rows is None:
        return f"the {loss.words} of single rows is not known, and rows are grouped: no bound is stated"
    else:
        sizes = [len(np.unique(rows.labels[test])) for _, test in splits]
    return Statistics(
        evidence,
        np.array(sizes, dtype=np.intp),
        loss,
        kind,
        delta,
        bound,
        grouped=rows.grouped,
        assumed=f"{rows.assumed}{later}",
    )


def no_bound(folds: Claim, splits: list[Any], things: Any, rows: Rows) -> str:
    """Why no model that was tested on these folds has a bound, or ""; ``things`` were fitted."""
    if folds.status is not Status.HOLDS:
        return "rows were tested by models that were fitted on them: no bound is stated"
    if any(len(np.unique(test)) < len(test) for _, test in splits):
        return "a test set has the same row twice, and a bound would count it as two: no bound is stated"
    return prefitted(things) or crossing(splits, rows) or rows.why


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
    centre = float(evidence[chosen, :, 0].mean())
    mean = "mean " if evidence.shape[1] > 1 and not loss.words.startswith("mean") else ""
    what = f"the {mean}true {loss.words}{who}{_at(statistics)}"
    ends = (centre, max(low, loss.low), min(high, loss.high))
    short = ends[2] - ends[1] < WIDEST * width
    where = _where(low, high, centre, loss, statistics) if short else _anywhere(ends, loss)
    statement = (
        f"with probability {percent(statistics.delta)}, {what} {where}{tried}; "
        f"{statistics.assumed}{caveat}"
    )
    if not short:
        statement += _needed(statistics, lambda more: _length(more, chosen) < WIDEST * width)
    kind = Kind.STATISTICAL
    return Claim.interval(name, statement, kind, *ends, source, limits=loss.range, widest=WIDEST)


def excess_claim(
    statistics: Statistics | str,
    chosen: int | None,
    who: str,
    *,
    excluded: NDArray[np.bool_] | None = None,
) -> Claim | None:
    """The chosen candidate is not much worse than the best one (GEN-5); ``None`` without a choice.

    From the limits that hold for all candidates at once: at most the upper limit of the chosen one less the
    least lower limit. For the best of Hoeffding's that is twice the radius. Every planned candidate counts:
    of one that was not measured nobody knows how good it is. ``excluded`` are models that are no candidates.
    """
    if isinstance(statistics, str) or chosen is None:
        return None
    name, kind, source = "selection excess", Kind.STATISTICAL, "GEN-5"
    candidates = ~(
        np.zeros(len(statistics.evidence), dtype=np.bool_) if excluded is None else excluded
    )
    many = int(candidates.sum())
    loss = statistics.loss
    low = statistics.limits()[0]
    if many < 2 or not np.isfinite(low[chosen]) or not math.isnan(statistics.outside()):
        return None
    unknown = int((candidates & ~np.isfinite(low)).sum())
    if unknown:
        why = (
            f"{unknown} of the {many} candidates {'was' if unknown == 1 else 'were'} not measured, so "
            "nothing is claimed of how much better the best of them is"
        )
        return Claim.undecided(name, why, kind, source)
    excess = _excess(statistics, chosen, candidates)
    least = float(statistics.evidence[candidates, :, 0].mean(axis=1).min())
    seen = float(statistics.evidence[chosen, :, 0].mean()) - least
    width = loss.high - loss.low
    places = _places(loss)
    mean = "mean " if statistics.evidence.shape[1] > 1 else ""
    at_most = _up(min(excess, width), places)
    statement = (
        f"with probability {percent(statistics.delta)}, the {mean}true {loss.words}{who}{_at(statistics)} "
        f"is at most {at_most:.{places}f} above that of the best of {many} candidates"
    )
    if not excess < WIDEST * width:
        statement += _needed(
            statistics, lambda more: _excess(more, chosen, candidates) < WIDEST * width
        )
    ends = (max(seen, 0.0), 0.0, min(max(excess, seen), width))
    return Claim.interval(name, statement, kind, *ends, source, limits=(0.0, width), widest=WIDEST)


def _excess(statistics: Statistics, chosen: int, candidates: NDArray[np.bool_]) -> float:
    """The upper limit of the chosen one less the least lower limit."""
    low, high = statistics.limits()
    return float(high[chosen] - low[candidates].min())


def _length(statistics: Statistics, chosen: int) -> float:
    """Length of the interval of one candidate, inside the range of the loss."""
    low, high = (float(end[chosen]) for end in statistics.limits())
    return min(high, statistics.loss.high) - max(low, statistics.loss.low)


def _needed(statistics: Statistics, informative: Callable[[Statistics], bool]) -> str:
    """How many rows or groups in each test set would make the same losses informative, in words."""
    now = int(statistics.sizes.min())
    unit = "group" if statistics.grouped else "row"
    held = f"too wide to tell much: {now:,} test {unit}{'' if now == 1 else 's'}"

    def enough(rows: int) -> bool:
        return informative(replace(statistics, sizes=np.full_like(statistics.sizes, rows)))

    rows = now
    while rows < MOST_NEEDED and not enough(rows):
        rows *= 2
    if rows >= MOST_NEEDED:
        return f"; {held}, and more like them would not narrow it enough"
    fewest, rows = rows // 2, rows
    while rows - fewest > 1:
        middle = (rows + fewest) // 2
        fewest, rows = (fewest, middle) if enough(middle) else (middle, rows)
    return f"; {held}, where {rows:,} like them would do"


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


def _at(statistics: Statistics) -> str:
    """What the mean is taken over, where that is not all rows to come."""
    at = " at the class frequencies of the test rows" if statistics.stratified else ""
    return f"{at}, each group counting once," if statistics.grouped else at


def _anywhere(ends: tuple[float, float, float], loss: BoundedLoss) -> str:
    """The interval in words, where it is a long one."""
    places = _places(loss)
    first, last = -_up(-ends[1], places) + 0.0, _up(ends[2], places)
    return f"is between {first:.{places}f} and {last:.{places}f} (observed {ends[0]:.{places}f})"


def _where(
    low: float, high: float, observed: float, loss: BoundedLoss, statistics: Statistics
) -> str:
    """Where the true loss lies, rounded outwards so that the printed sentence is true as well."""
    if statistics.grouped or statistics.bound == "clopper-pearson":
        return _anywhere((observed, max(low, loss.low), min(high, loss.high)), loss)
    places = _places(loss)
    centre = round(observed, places)
    radius = _up((high - low) / 2.0 + abs(observed - centre), places)
    return f"is within {radius:.{places}f} of {centre:.{places}f}"
