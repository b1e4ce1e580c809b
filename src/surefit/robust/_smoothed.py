"""What votes under noise show (:mod:`.smoothing`): radii and labels that follow from the counts, and can be
counted again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._attributes import attributes_claim
from ..certificate import Certificate, Claim, Kind
from ._looks import looks, lower_limit, upper_limit
from ._risk_claims import weaken

__all__ = [
    "BLOCK",
    "CHOICE",
    "COUNT",
    "VOTE",
    "Smoothed",
    "count_of",
    "limits",
    "out_of_reach",
    "radius_of",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_ROUNDING = 1e-9  # of a radius or a limit that is worked out again, on another machine
BLOCK = 128  # draws that are made together for a row
CHOICE, COUNT, VOTE = 0, 1, 2  # streams: choice of the class, count, plain prediction


_LISTS = ("label", "radius", "chosen", "successes", "draws", "p_low")


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Certified l2 radii of rows, with all that is needed to count again.

    Attributes
    ----------
    label : array of int of shape (n,)
        The smoothed class; -1 where nothing was shown (abstained).
    radius : array of shape (n,)
        Within which the smoothed class is the same, with probability 1 - delta for each row; 0 if abstained.
    chosen, successes, draws : arrays of int of shape (n,)
        The class that was counted, its votes, and all votes.
    p_low : array of shape (n,)
        The lower limit of its probability.
    impossible : array of bool of shape (n, radii) or None
        Sequential only: which radii of ``grid`` the chosen class cannot have, each with probability
        1 - delta as well.
    grid : tuple of float
        The radii asked for; empty for a fixed number of draws.
    """

    label: Ints
    radius: Array
    chosen: Ints
    successes: Ints
    draws: Ints
    p_low: Array
    sigma: float
    delta: float
    seed: int
    n0: int
    n: int
    grid: tuple[float, ...] = ()
    impossible: NDArray[np.bool_] | None = None
    path: tuple[Ints, ...] = field(default=(), repr=False)  # successes at each look
    y: Ints | None = None

    @property
    def total_draws(self) -> int:
        """All votes, those that chose the class included."""
        return int(self.draws.sum()) + self.n0 * len(self.draws)

    def certified_accuracy(self, radius: Any) -> Any:
        """The share of rows with the right smoothed class, certified at each radius; needs ``y``."""
        if self.y is None:
            raise ValueError("certified_accuracy needs labels: pass y to certify.")
        right = self.label == self.y
        found = [float((right & (self.radius >= r)).mean()) for r in np.atleast_1d(radius)]
        return found[0] if np.ndim(radius) == 0 else np.asarray(found)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The radii follow from the counts, at this delta."""
        found = self._inconsistency()
        if found:
            return (attributes_claim(found),)
        again = limits(self)
        excess = float(np.max(self.radius - radius_of(self, again), initial=0.0))
        shown = int((self.radius > 0).sum())
        other = self.label != np.where(self.radius > 0, self.chosen, -1)
        other |= ~(self.p_low <= again + _ROUNDING)  # NaN is no limit
        other |= (self.successes < 0) | (self.successes > self.draws)
        if self.impossible is not None:
            reach = out_of_reach(self)
            fits = self.impossible.shape == reach.shape
            other |= (self.impossible & ~reach).any(axis=1) if fits else True
        other |= ~np.isin(self.draws, self._plan)  # when to stop was fixed beforehand
        statement = (
            f"for each row with probability {1 - self.delta:g}, the smoothed class (sigma {self.sigma:g}) "
            f"does not change within its l2 radius; {shown} of {len(self.draws)} rows have one, and on "
            f"average at most {self.delta * len(self.draws):.3g} of them are wrong; radii exceed what the "
            f"counts show by {excess:.3g} at most"
        )
        if not excess <= _ROUNDING:
            statement = f"stored radii exceed what the counts show by up to {excess:.3g}"
        words = (
            f"labels, limits and numbers of draws of {int(other.sum())} of {len(other)} rows are not those "
            "that follow from the counts and the plan of the looks"
        )
        radii = Claim.check(
            "smoothed radii", statement, Kind.STATISTICAL, excess, _ROUNDING, "ADV-1"
        )
        return (
            weaken(
                radii, not shown, "no row has a radius: more draws, or less noise, may give some"
            ),
            Claim.check("smoothed labels", words, Kind.EXACT, float(other.sum()), 0.0, "ADV-1"),
        )

    def _inconsistency(self) -> str:
        """What no certification leaves behind, in a sentence; the empty string for a sound result."""
        n = len(self.draws)
        lists = {name: getattr(self, name) for name in _LISTS}
        wrong = [name for name, values in lists.items() if np.shape(values) != (n,)]
        wrong += ["path"] if any(np.shape(seen) != (n,) for seen in self.path) else []
        if wrong:
            return f"{', '.join(wrong)}: not one entry for each of the {n} rows"
        if not (0.0 < self.delta < 1.0 and 0.0 < self.sigma < math.inf):
            return f"delta is {self.delta!r} and sigma is {self.sigma!r}"
        return ""

    @property
    def certificate(self) -> Certificate:
        """The claims, as a certificate."""
        return Certificate(self.claims, "", "", "RandomizedSmoothing")

    def _counts(self, row: int) -> list[tuple[int, list[int]]]:
        """Numbers of draws at which a row was looked at, and what is stored of the votes there."""
        votes: dict[int, list[int]] = {}
        for n, seen in zip(self._plan, self.path):
            if n <= self.draws[row]:
                votes[n] = [int(seen[row])]
        votes.setdefault(int(self.draws[row]), []).append(int(self.successes[row]))
        return sorted(votes.items())

    @property
    def _plan(self) -> list[int]:
        """Numbers of draws that a row may have: all of them, or a look at which it could leave."""
        if not self.grid:
            return [self.n]
        return [int(n) for n in looks(self.n, self.delta, block=BLOCK).draws]

    def recheck(
        self, model: Any, X: Any, *, rows: Any = None, batch_size: int = 1024
    ) -> Certificate:
        """Count again from the seed; the claim "counts" fails where a count is not what was stored.

        Parameters
        ----------
        model, X
            What was certified.
        rows : sequence of int, optional
            Check these rows only.
        batch_size : int
            Rows of a pass. Scores that rounding could exchange are allowed to differ.
        """
        from .smoothing import RandomizedSmoothing

        if self._inconsistency():
            return self.certificate
        which = np.arange(len(self.draws)) if rows is None else np.asarray(rows, dtype=np.int64)
        smooth = RandomizedSmoothing(
            model, self.sigma, batch_size=batch_size, random_state=self.seed
        )
        x = smooth._rows(X)
        if len(x) != len(self.draws):
            raise ValueError(f"X has {len(x)} rows, the result {len(self.draws)}.")
        worst = 0
        for row in which.tolist():
            counts, near = smooth._votes(x, [row], 0, self.n0, CHOICE)
            ranked = int(counts[0].max() - count_of(counts, self.chosen[row : row + 1])[0])
            worst = max(worst, ranked - 2 * int(near[0]))
            seen = before = unsure = 0
            for last, stored in self._counts(row):
                counts, close = smooth._votes(x, [row], before, last, COUNT)
                seen += int(count_of(counts, self.chosen[row : row + 1])[0])
                unsure, before = unsure + int(close[0]), last
                worst = max(worst, *(abs(seen - votes) - unsure for votes in stored))
        statement = (
            f"the votes of {len(which)} rows, drawn again from the seed, differ from the stored ones by "
            f"{worst} at most, ties to rounding aside"
        )
        counted = Claim.check("counts", statement, Kind.EXACT, float(worst), 0.0, "ADV-1")
        return Certificate((counted, *self.claims), "", "", "RandomizedSmoothing")


def limits(found: Smoothed) -> Array:
    """The lower limit of each row's probability, from its counts."""
    if not found.grid:
        return lower_limit(found.successes, found.draws, found.delta)
    plan = looks(found.n, found.delta, block=BLOCK)
    low = np.zeros(len(found.draws))
    for look, share, successes in zip(plan.draws, plan.shares, found.path):
        seen = found.draws >= look
        low[seen] = np.maximum(low[seen], lower_limit(successes[seen], look, share))
    return low


def out_of_reach(found: Smoothed) -> NDArray[np.bool_]:
    """Which radii of the grid each row's class cannot have, by the upper limits at its looks."""
    plan = looks(found.n, found.delta, block=BLOCK)
    high = np.ones(len(found.draws))
    for look, share, successes in zip(plan.draws, plan.shares, found.path):
        seen = found.draws >= look
        high[seen] = np.minimum(high[seen], upper_limit(successes[seen], look, share))
    return high[:, None] < stats.norm.cdf(np.asarray(found.grid) / found.sigma)


def radius_of(found: Smoothed, p_low: Array) -> Array:
    """The radii that follow from lower limits, cut to the grid where there is one."""
    with np.errstate(divide="ignore"):
        radius = np.where(p_low > 0.5, found.sigma * stats.norm.ppf(p_low), 0.0)
    if not found.grid:
        return radius
    grid = np.concatenate([[0.0], found.grid])
    goals = stats.norm.cdf(grid[1:] / found.sigma)
    return grid[(p_low[:, None] > goals).sum(axis=1)]


def count_of(counts: Ints, chosen: Ints) -> Ints:
    """The count of each row's chosen class; 0 for a class that no draw had."""
    inside = chosen < counts.shape[1]
    picked = counts[np.arange(len(chosen)), np.where(inside, chosen, 0)]
    return np.where(inside, picked, 0).astype(np.int64)
