"""How often the interval of a claim holds the truth, on rows of every kind of dependence.

One fast candidate, a nearest neighbour, which remembers its rows: where copies cross a split, it looks better
than it is. Each case is drawn many times; the truth is the error of the shipped model (the mean over the fold
models) on fresh rows or groups of the same law. A claim that is undecided makes no statement and is counted
apart; one that is uninformative makes a wide one, and counts as a statement.

    python -m benchmarks.coverage_of_claims [repetitions]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neighbors import KNeighborsClassifier

from surefit import Status
from surefit.model_selection import HoldOut, cross_validate

from .report import table

REPETITIONS = 400
FRESH = 4000  # rows on which the truth is measured: its standard error is below 0.008
COLUMNS = 4
FLIPPED = 0.1  # share of labels that are wrong
PATIENTS, VISITS = 60, 5
CHANGE = 0.75  # of the time, after which the labels follow another rule
WORDS = {"hold-out": "HoldOut", "folds": "cross_validate"}


@dataclass(frozen=True)
class Draw:
    """Rows of one repetition, what is said about them, and fresh rows to measure the truth on."""

    X: Any
    y: Any
    fresh: tuple[Any, Any]
    said: dict[str, Any] = field(default_factory=dict)  # groups, time
    test_size: float = 0.5


def labels(X: Any, rng: np.random.Generator, weights: Any = (1.0, -1.0, 0.5, 0.0)) -> Any:
    """Labels by a linear rule, a tenth of them wrong."""
    right = X @ np.asarray(weights) > 0.0
    return np.where(rng.random(len(X)) < FLIPPED, ~right, right).astype(int)


def plain(rng: np.random.Generator, rows: int = 300) -> Draw:
    X, fresh = rng.normal(size=(rows, COLUMNS)), rng.normal(size=(FRESH, COLUMNS))
    return Draw(X, labels(X, rng), (fresh, labels(fresh, rng)))


def copied(rng: np.random.Generator, times: int) -> Draw:
    draw, order = plain(rng), rng.permutation(300 * times)
    source = np.repeat(np.arange(300), times)[order]
    return Draw(draw.X[source], draw.y[source], draw.fresh)


def patients(rng: np.random.Generator, noise: float, said: bool = False) -> Draw:
    """Five rows of each of 60 patients, who have one label; the truth is about new patients."""
    draw = plain(rng, PATIENTS)
    groups = np.repeat(np.arange(PATIENTS), VISITS)
    X = draw.X[groups] + noise * rng.normal(size=(len(groups), COLUMNS))
    fresh, target = draw.fresh
    fresh = fresh + noise * rng.normal(size=fresh.shape)
    return Draw(X, draw.y[groups], (fresh, target), {"groups": groups} if said else {})


def in_time(rng: np.random.Generator, said: bool) -> Draw:
    """The rule changes after three quarters of the time; the truth is about rows to come."""
    draw, when = plain(rng), np.arange(300)
    new = (-1.0, -1.0, 0.5, 0.0)
    y = np.where(when < CHANGE * 300, draw.y, labels(draw.X, rng, new))
    fresh = (draw.fresh[0], labels(draw.fresh[0], rng, new))
    return Draw(draw.X, y, fresh, {"time": when} if said else {}, 1.0 - CHANGE)


def rare(rng: np.random.Generator) -> Draw:
    """One positive in a hundred, and nothing in the columns tells which."""
    draw = plain(rng, 500)
    target = [(rng.random(size) < 0.01).astype(int) for size in (500, FRESH)]
    return Draw(draw.X, target[0], (draw.fresh[0], target[1]))


CASES: dict[str, Callable[[np.random.Generator], Draw]] = {
    "independent, 300 rows": plain,
    "every row twice": lambda rng: copied(rng, 2),
    "every row four times": lambda rng: copied(rng, 4),
    "60 patients, 5 equal rows each": lambda rng: patients(rng, 0.0),
    "60 patients, 5 nearly equal rows each": lambda rng: patients(rng, 0.01),
    "the same, with groups=": lambda rng: patients(rng, 0.01, said=True),
    "60 patients, 5 similar rows each, with groups=": lambda rng: patients(rng, 0.3, said=True),
    "60 patients, 5 similar rows each, not said": lambda rng: patients(rng, 0.3),
    "a rule that changes, without time=": lambda rng: in_time(rng, said=False),
    "a rule that changes, with time=": lambda rng: in_time(rng, said=True),
    "40 rows": lambda rng: plain(rng, 40),
    "1 % positives, 500 rows": rare,
}


def held_out(draw: Draw, seed: int) -> tuple[Any, float]:
    """The claim of a hold-out, and the true error of its model."""
    model = HoldOut(KNeighborsClassifier(1), test_size=draw.test_size, random_state=seed)
    model.fit(draw.X, draw.y, **draw.said)
    return model.certificate_["generalisation"], _error(model, draw)


def folds(draw: Draw, seed: int) -> tuple[Any, float]:
    """The claim of two folds, and the mean true error of their models."""
    groups = draw.said.get("groups")
    cv = KFold(2, shuffle=True, random_state=seed) if groups is None else GroupKFold(2)
    found = cross_validate(
        KNeighborsClassifier(1), draw.X, draw.y, cv=cv, groups=groups, return_estimator=True
    )
    errors = [_error(model, draw) for model in found["estimator"]]
    return found.certificate_["generalisation"], float(np.mean(errors))


def _error(model: Any, draw: Draw) -> float:
    X, y = draw.fresh
    return float(np.mean(model.predict(X) != y))


def coverage(
    case: str, repetitions: int, how: Callable[[Draw, int], tuple[Any, float]] = held_out
) -> dict[str, int]:
    """How many claims hold the truth, miss it below or above, say little, and say nothing."""
    counts = dict.fromkeys(("covered", "too low", "too high", "uninformative", "undecided"), 0)
    for seed in range(repetitions):
        claim, truth = how(CASES[case](np.random.default_rng([seed, 19])), seed)
        if claim.status is Status.UNDECIDED:
            counts["undecided"] += 1
            continue
        counts["uninformative"] += claim.status is Status.UNINFORMATIVE
        place = "too low" if claim.high < truth else "too high" if claim.low > truth else "covered"
        counts[place] += 1
    return counts


def lines(repetitions: int) -> str:
    """A table of all cases."""
    rows = []
    for case in CASES:
        row = [case]
        for how in (held_out, folds):
            if how is folds and "time" in CASES[case](np.random.default_rng(0)).said:
                row += ["–", "–", "–"]
                continue
            counts = coverage(case, repetitions, how)
            stated = repetitions - counts["undecided"]
            row.append(f"{counts['covered']} of {stated}" if stated else "–")
            row.append(f"{counts['uninformative']}")
            row.append(f"{counts['undecided']}")
        rows.append(row)
        print(" | ".join(row), file=sys.stderr, flush=True)
    heads = ["rows"]
    for name in WORDS.values():
        heads += [f"{name}: truth inside", "of these uninformative", "undecided"]
    return table(heads, rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(lines(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS))
