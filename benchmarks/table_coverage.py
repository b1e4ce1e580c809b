"""How often the interval of ``fit_table`` holds the true error, of rows that are independent or not.

    python -m benchmarks.table_coverage                     # 400 tables of each kind, one quick family
    python -m benchmarks.table_coverage --whole --repeats 20  # every family

Each table is drawn from a world whose true error can be measured on 20,000 fresh rows. A claim that is
undecided states no interval; it cannot be wrong, and is counted apart. Promised are 95 %.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["WORLDS", "World", "measure"]

Array = NDArray[Any]
Rng = np.random.Generator
COLUMNS, FRESH = 6, 20_000


@dataclass(frozen=True)
class World:
    """Where tables come from.

    Attributes
    ----------
    draw : callable
        A table, from a generator.
    fresh : callable
        Rows to come: a table, and the group of each row where errors are averaged over groups.
    asked : dict
        Keyword arguments of ``fit_table``.
    """

    draw: Callable[[Rng], dict[str, Array]]
    fresh: Callable[[Rng], tuple[dict[str, Array], Array | None]]
    asked: dict[str, Any] = field(default_factory=dict)


def _table(X: Array, y: Array, **more: Array) -> dict[str, Array]:
    labels = np.where(y, "yes", "no")
    return {**{f"x{j}": X[:, j] for j in range(X.shape[1])}, **more, "y": labels}


def _rows(rng: Rng, n: int, rare: bool = False) -> tuple[Array, Array]:
    """Normal columns, two of which tell the label with noise."""
    X = rng.standard_normal((n, COLUMNS))
    shift = 6.0 if rare else 0.0
    chance = 1.0 / (1.0 + np.exp(shift - 2.0 * X[:, 0] - X[:, 1]))
    return X, rng.random(n) < chance


def _copied(n: int, times: int = 1, rare: bool = False) -> Callable[[Rng], dict[str, Array]]:
    def draw(rng: Rng) -> dict[str, Array]:
        X, y = _rows(rng, n, rare)
        order = rng.permutation(n * times)
        return _table(np.tile(X, (times, 1))[order], np.tile(y, times)[order])

    return draw


def _plain(rng: Rng) -> tuple[dict[str, Array], None]:
    return _table(*_rows(rng, FRESH)), None


def _rare(rng: Rng) -> tuple[dict[str, Array], None]:
    return _table(*_rows(rng, FRESH, rare=True)), None


def _patients(rng: Rng, patients: int, spread: float) -> tuple[dict[str, Array], Array]:
    """One to nine rows a patient around a centre; patients with many rows are harder to tell."""
    X, _ = _rows(rng, patients)
    sizes = rng.integers(1, 10, patients)
    chance = 1.0 / (1.0 + np.exp(-(2.0 * X[:, 0] + X[:, 1]) * (6.0 - sizes) / 3.0))
    y = rng.random(patients) < chance
    who = np.repeat(np.arange(patients), sizes)
    X = X[who] + spread * rng.standard_normal((len(who), COLUMNS))
    return _table(X, y[who], patient=who), who


def _nearly(rng: Rng, patients: int) -> dict[str, Array]:
    """Sixty patients with five nearly equal rows each, as in the issue."""
    X, y = _rows(rng, patients)
    who = np.repeat(np.arange(patients), 5)
    return _table(X[who] + 1e-3 * rng.standard_normal((len(who), COLUMNS)), y[who])


def _seasons(rng: Rng, n: int, late: bool = False) -> dict[str, Array]:
    """The columns tell the label less and less, until two thirds of the time; what follows stays so."""
    X = rng.standard_normal((n, COLUMNS))
    year = np.full(n, 1.0) if late else np.sort(rng.random(n))
    strength = 6.0 * np.maximum(1.0 - year / 0.66, 0.0) + 0.5
    chance = 1.0 / (1.0 + np.exp(-strength * (2.0 * X[:, 0] + X[:, 1])))
    return _table(X, rng.random(n) < chance, year=2000.0 + 20.0 * year)


def _future(rng: Rng) -> tuple[dict[str, Array], None]:
    return _seasons(rng, FRESH, late=True), None


WORLDS: dict[str, World] = {
    "independent": World(_copied(300), _plain),
    "doubled": World(_copied(150, 2), _plain),
    "quadrupled": World(_copied(75, 4), _plain),
    "grouped, --group": World(
        lambda rng: _patients(rng, 80, 0.3)[0],
        lambda rng: _patients(rng, FRESH // 5, 0.3),
        {"group": "patient"},
    ),
    "nearly equal rows": World(lambda rng: _nearly(rng, 60), _plain),
    "nearly equal rows, --group": World(
        lambda rng: _nearly(rng, 60) | {"patient": np.repeat(np.arange(60), 5)},
        _plain,
        {"group": "patient"},
    ),
    "time, at random": World(lambda rng: _seasons(rng, 400), _future, {"drop": ["year"]}),
    "time, --time-column": World(lambda rng: _seasons(rng, 400), _future, {"time_column": "year"}),
    "40 rows": World(_copied(40), _plain),
    "1 % positives": World(_copied(1000, rare=True), _rare),
}


def measure(world: World, seed: int, models: list[str] | None) -> tuple[float, float, float]:
    """Lower and upper limit of one table, NaN where none is stated, and the true error."""
    from surefit.data import TableError
    from surefit.table import fit_table

    rng = np.random.default_rng(seed)
    table = world.draw(rng)
    brief = {} if models is None else {"time": 1e-6}  # no pictures
    asked = {"models": models, "reference": False, "seed": seed, **brief, **world.asked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = fit_table(table, "y", **asked)
        except TableError:  # too few rows of a class: refused
            return np.nan, np.nan, np.nan
    fresh, groups = world.fresh(rng)
    wrong = (np.asarray(model.predict(fresh)) != fresh["y"]).astype(float)
    if groups is not None:
        wrong = np.bincount(groups, wrong) / np.bincount(groups)
    claim = next(c for c in model.claims("generalisation") if c.name == "generalisation")
    limits = model.candidates_[model.chosen_]["holdout"]
    if claim.status.name == "UNDECIDED" or limits["low"] is None:
        return np.nan, np.nan, float(wrong.mean())
    return limits["low"], limits["high"], float(wrong.mean())


def main() -> None:
    """Print a row a world."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--whole", action="store_true", help="every family instead of one")
    parser.add_argument("--models", default="logistic")
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    given = parser.parse_args()
    models = None if given.whole else given.models.split(",")
    print(f"{'world':<28} {'stated':>7} {'held':>6} {'share':>7} {'width':>6} {'s a fit':>8}")
    for name, world in WORLDS.items():
        if given.only not in name:
            continue
        start = time.perf_counter()
        found = np.array([measure(world, seed, models) for seed in range(given.repeats)])
        seconds = (time.perf_counter() - start) / given.repeats
        low, high, true = found[np.isfinite(found[:, 0])].T
        held = int(((low <= true) & (true <= high)).sum())
        share = f"{held / len(low):.3f}" if len(low) else "–"
        width = f"{np.mean(high - low):.2f}" if len(low) else "–"
        print(
            f"{name:<28} {len(low):>7} {held:>6} {share:>7} {width:>6} {seconds:>8.2f}", flush=True
        )


if __name__ == "__main__":
    main()
