"""The race: how long each contender needs to a relative duality gap of 1e-6.

1. *Warm-up.* Each contender runs once, untimed: kernels are compiled or loaded, pages touched.
2. *Search.* Each contender is restarted over its settings, loose to tight, and over its variants (solver,
   layout, precision); the neutral evaluator judges every end point. The loosest setting of the fastest
   variant that reaches the gap is what is timed. A contender whose next setting would take longer than
   ``cap`` seconds is stopped there, and reported with the gap it got to.
3. *Timing.* Ours and the peer in turn, ABAB, at least five pairs (three where a run takes over a minute). The
   result is the median of the paired ratios with its bootstrap interval, and the worst pair.

Our runs include the certificate. Nothing here knows what is being fitted: a contender is a function from a
setting to a point, and a problem is one of :mod:`benchmarks.evaluate`.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .evaluate import Problem, relative_gap

__all__ = ["Contender", "Variant", "decades", "interval", "paired", "race", "seconds"]

TARGET = 1e-6
LONG, SHORT = 60.0, 1.0  # seconds of a run above which three pairs do, below which eleven are taken
REPEAT = (
    10.0  # a first call of a lone setting that takes longer is the run: compiling is little of it
)
QUICK = 5.0  # seconds of a loose run up to which the tightest setting is worth running for D*
EXTRA = 2.0  # seconds worth spending on a tighter setting, for the plot alone
Point = tuple[Any, ...]
AFTER_RACE: Callable[[dict[str, Any]], None] | None = None  # told of each race as it ends


@dataclass(frozen=True)
class Variant:
    """One way to run a contender: a solver, a layout, a precision."""

    label: str
    fit: Callable[[Any], Point]
    settings: Sequence[Any] = (None,)  # loose to tight
    knob: str = "tol"

    def describe(self, setting: Any) -> str:
        if setting is None:
            return self.label
        shown = f"{setting:.2g}" if isinstance(setting, float) else str(setting)
        return f"{self.label}, {self.knob} {shown}".removeprefix(", ")


@dataclass(frozen=True)
class Contender:
    """A peer, or ours, with everything it may be tried with."""

    name: str
    variants: Sequence[Variant]
    goal: float | None = None  # how many times faster than it we want to be
    cap: float = 60.0  # seconds of the longest run worth waiting for


@dataclass
class Run:
    """A restart: where it got, and what it took."""

    variant: Variant
    setting: Any
    seconds: float
    primal: Any
    order: float  # place of the setting in its grid, loose to tight
    gap: float = math.inf

    def record(self) -> dict[str, Any]:
        label = self.variant.describe(self.setting)
        gap = self.gap if math.isfinite(self.gap) else None
        return {
            "setting": label,
            "variant": self.variant.label,
            "seconds": self.seconds,
            "gap": gap,
        }


@dataclass
class Search:
    """The restarts of one contender."""

    contender: Contender
    runs: list[Run] = field(default_factory=list)
    capped: bool = False
    error: str = ""
    first_call: float = math.nan

    def chosen(self) -> Run | None:
        """The loosest setting that reached the gap, of the variant that was fastest with it."""
        loosest: dict[str, Run] = {}
        for run in sorted(self.runs, key=lambda run: run.order):
            if run.gap <= TARGET:
                loosest.setdefault(run.variant.label, run)
        return min(loosest.values(), key=lambda run: run.seconds, default=None)


def decades(loose: int, tight: int) -> tuple[float, ...]:
    """10**loose, ..., 10**tight, downwards."""
    return tuple(10.0**k for k in range(loose, tight - 1, -1))


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """How long the action took, and what it returned."""
    gc.collect()
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def interval(ratios: Sequence[float], draws: int = 10_000) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    rng = np.random.default_rng(0)
    picked = rng.choice(np.asarray(ratios), size=(draws, len(ratios)))
    low, high = np.quantile(np.median(picked, axis=1), [0.025, 0.975])
    return float(low), float(high)


def paired(ours: Callable[[], Any], peer: Callable[[], Any], pairs: int) -> dict[str, Any]:
    """Both in turn, and the ratios peer / ours."""
    mine, theirs = [], []
    for _ in range(pairs):
        mine.append(seconds(ours)[0])
        theirs.append(seconds(peer)[0])
    return summary(mine, theirs)


def summary(mine: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Medians, the median ratio with its interval, and the worst."""
    ratios = [b / a for a, b in zip(mine, theirs, strict=True)]
    low, high = interval(ratios)
    return {
        "ours": statistics.median(mine),
        "peer": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "interval": [low, high],
        "worst": min(ratios),
        "pairs": [list(pair) for pair in zip(mine, theirs, strict=True)],
    }


def race(
    title: str, problem: Problem, ours: Contender, peers: Sequence[Contender], *, pairs: int = 5
) -> dict[str, Any]:
    """Warm-up, search and timing of ours against each peer; a JSON-able record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: the evaluator decides
        best = _reference(ours, problem)
        searches = []
        for contender in (ours, *peers):  # D* is raised as the contenders come along
            print(f"    {title}: {contender.name} ...", flush=True)
            searches.append(search := Search(contender))
            for variant in contender.variants:
                try:
                    best = _search(search, variant, problem, best)
                except Exception as error:  # a peer that breaks is a result
                    search.error = f"{type(error).__name__}: {error}"[:200]
            _judge(searches, problem, best)
        record = _timed(title, problem, searches, best, pairs)
    if AFTER_RACE is not None:
        AFTER_RACE(record)
    return record


def _reference(ours: Contender, problem: Problem) -> Any:
    """A first D*, from a tight setting of ours (untimed): no search stops late because D* is loose."""
    variant = ours.variants[0]
    try:
        taken, _ = seconds(lambda: variant.fit(variant.settings[0]))
        tight = -1 if taken < QUICK else len(variant.settings) * 2 // 3
        return problem.dual(*variant.fit(variant.settings[tight]))
    except Exception:  # the search will say what is wrong
        return np.array(-np.inf)


def _search(search: Search, variant: Variant, problem: Problem, best: Any) -> Any:
    """Restart over the settings of a variant; returns the best dual value so far."""
    cap, last_order = search.contender.cap, len(variant.settings) - 1
    warm_up = min(2, last_order)  # the loosest setting may return before it compiles
    runs: list[Run] = []
    best = _restart(runs, variant, warm_up, problem, best)
    search.first_call = max(runs[0].seconds, np.nan_to_num(search.first_call))
    if warm_up or runs[0].seconds < REPEAT:
        runs.clear()
    for order in range(len(runs), last_order + 1):
        if runs and (runs[-1].gap <= TARGET or _predicted(runs) > cap):
            break
        best = _restart(runs, variant, order, problem, best)
    last = runs[-1]
    if last.gap > TARGET:
        search.capped = search.capped or last.order < last_order or last.seconds > 0.8 * cap
    elif last.order > 0:
        best = _restart(runs, variant, last.order - 0.5, problem, best)
    for order in range(int(last.order) + 1, last_order + 1):  # further down, for the plot
        if last.gap > TARGET or last.seconds > EXTRA or order > last.order + 2:
            break
        best = _restart(runs, variant, order, problem, best)
    search.runs += runs
    return best


def _restart(runs: list[Run], variant: Variant, order: float, problem: Problem, best: Any) -> Any:
    """Run the setting at this place of the grid (half way between two, at .5) and judge the end point."""
    settings = variant.settings
    setting = settings[int(order)]
    if order != int(order):
        setting = _between(setting, settings[int(order) + 1])
    if setting is not None or order == 0:
        taken, point = seconds(lambda: variant.fit(setting))
        primal = problem.primal(*point)
        best = np.fmax(best, problem.dual(*point))
        gap = relative_gap(problem, primal, best)
        runs.append(Run(variant, setting, taken, primal, order, gap))
    return best


def _predicted(runs: list[Run]) -> float:
    """What the next setting will take, if the growth goes on."""
    growth = runs[-1].seconds / runs[-2].seconds if len(runs) > 1 else 1.0
    return runs[-1].seconds * max(1.0, growth)


def _between(loose: Any, tight: Any) -> Any:
    """The setting half way (in logarithms) between two, or None where there is none."""
    if isinstance(tight, float):
        return math.sqrt(loose * tight)
    if isinstance(tight, int):
        middle = round(math.sqrt(loose * tight))
        return middle if loose < middle < tight else None
    return None


def _judge(searches: list[Search], problem: Problem, best: Any) -> None:
    for search in searches:
        for run in search.runs:
            run.gap = relative_gap(problem, run.primal, best)


def _timed(
    title: str, problem: Problem, searches: list[Search], best: Any, pairs: int
) -> dict[str, Any]:
    mine, *others = searches
    ours = mine.chosen()
    lowest = np.min([np.nan_to_num(r.primal, nan=np.inf) for s in searches for r in s.runs], axis=0)
    record: dict[str, Any] = {
        "problem": title,
        "reference gap": relative_gap(problem, lowest, best),  # how sharp P* is known
        "ours": _side(mine),
        "peers": [],
    }
    for search in others:
        row = _side(search) | {"goal": search.contender.goal}
        record["peers"].append(row)
        peer = search.chosen()
        if ours is None or (search.error and peer is None):
            continue
        if peer is None:
            row |= _never(search, ours, pairs)
            continue
        if peer.seconds > search.contender.cap:  # its one run will do, and the page says so
            mine_again = statistics.median(seconds(partial(_again, ours))[0] for _ in range(pairs))
            row |= summary([mine_again], [peer.seconds])
            continue
        count = min(3, pairs) if max(peer.seconds, ours.seconds) > LONG else pairs
        count = 2 * pairs + 1 if peer.seconds < SHORT else count
        print(f"    {title}: {count} pairs with {search.contender.name}", flush=True)
        row |= paired(partial(_again, ours), partial(_again, peer), count)
    return record


def _again(run: Run) -> Point:
    return run.variant.fit(run.setting)


def _never(search: Search, ours: Run, pairs: int) -> dict[str, Any]:
    """A peer that did not reach the gap: its floor; where it was stopped, a bound on the ratio."""
    row: dict[str, Any] = {"floor": min((run.gap for run in search.runs), default=math.inf)}
    mine = statistics.median(seconds(lambda: _again(ours))[0] for _ in range(pairs))
    longest = max((run.seconds for run in search.runs), default=math.nan)
    row |= {"ours": mine, "peer": longest}
    if search.capped:
        row["ratio at least"] = longest / mine
    return row


def _side(search: Search) -> dict[str, Any]:
    chosen = search.chosen()
    return {
        "name": search.contender.name,
        "setting": None if chosen is None else chosen.variant.describe(chosen.setting),
        "gap": None if chosen is None else chosen.gap,
        "first call": search.first_call,
        "capped": search.capped,
        "error": "" if chosen else search.error,
        "curve": [run.record() for run in search.runs],
    }
