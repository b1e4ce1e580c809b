"""Which rows of a table are independent: splits that respect it, and claims that say it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.forged import fitted, visits

import surefit
from surefit import Status
from surefit.data import TableError, load, read_table
from surefit.table import fit_table, verify_table
from surefit.table.prepare import folds_of, rows_of
from surefit.table.splitting import (
    draw_groups,
    draw_split,
    fold_groups,
    fold_times,
    one_a_group,
    split_times,
)
from surefit.table.units import Asked

QUICK: dict[str, Any] = {"models": ["logistic"], "reference": False, "time": 1e-6}


def claim(model: Any, name: str, section: str = "generalisation") -> Any:
    return next(c for c in model.claims(section) if c.name == name)


def numbers(n: int = 200, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3))
    y = np.where(X[:, 0] + generator.normal(size=n) > 0, "yes", "no")
    return {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}


# ------------------------------------------------------------------------ splits


@pytest.mark.parametrize("seed", range(20))
def test_no_group_is_in_two_parts(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(20, 200))
    codes = generator.integers(0, generator.integers(5, 40), n)
    train, held = draw_groups(codes, 0.25, seed)
    assert sorted([*train, *held]) == list(range(n))
    assert not set(codes[train]) & set(codes[held])
    groups = len(np.unique(codes))
    assert len(np.unique(codes[held])) == len(draw_split(groups, 0.25, seed)[1])
    y = generator.integers(0, 2, n)
    parts = fold_groups(y, codes, 5, seed, stratify=True)
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(n))
    for fit, test in parts:
        assert sorted([*fit, *test]) == list(range(n))
        assert not set(codes[fit]) & set(codes[test])
    single = one_a_group(codes, seed)
    assert len(single) == groups == len(np.unique(codes[single]))


@pytest.mark.parametrize("seed", range(20))
def test_the_future_is_after_the_past(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(30, 200))
    times = generator.integers(0, 25, n).astype(float)
    codes = np.arange(n) if seed % 2 else generator.integers(0, 60, n)
    past, future = split_times(times, codes, 0.25)
    assert times[past].max() < times[future].min()
    assert not set(codes[past]) & set(codes[future])
    if seed % 2:
        assert len(past) + len(future) == n
        assert 0.1 < len(future) / n < 0.4
    parts = fold_times(times, codes, 5)
    assert len(parts) >= 3
    for fit, test in parts:
        assert times[fit].max() < times[test].min()
        assert not set(codes[fit]) & set(codes[test])
    sizes = [len(fit) for fit, _ in parts]
    assert sizes == sorted(sizes)


def test_the_folds_of_a_search_keep_groups_and_time() -> None:
    for name in ("visits", "years"):
        table, model = fitted(name)
        rows = rows_of(
            table, model.schema, list(model.classes_), model.holdout, model.seed, Asked.of(model)
        )
        folds = folds_of(rows, model.schema, rows.y, 5, model.seed)
        assert folds.count == 5
        for fit, test in (tuple(rows.train[part] for part in pair) for pair in folds.parts):
            assert not set(fit) & set(rows.holdout)
            if name == "visits":
                assert not set(rows.units.codes[fit]) & set(rows.units.codes[test])
            else:
                assert rows.units.times is not None
                assert rows.units.times[fit].max() < rows.units.times[test].min()
        assert len(folds.largest.X) == max(len(fit) for fit, _ in folds.parts) or name == "visits"


# ------------------------------------------------------------------------ what is found


def test_a_table_of_few_values_stays_as_it_is() -> None:
    """Copies in the admissions of Berkeley are people: there are 24 different rows of 4,526."""
    model = fit_table(load("admissions"), "admitted", **QUICK)
    assert (model.units_["kind"], model.units_["copies"]) == ("rows", 4502)
    found = claim(model, "generalisation")
    assert found.status is Status.HOLDS
    assert (
        "4,502 of 4,526 rows repeat another row, which their few values explain" in found.statement
    )
    assert "of the held-out rows" in model.document()["verdict"]["headline"]


@pytest.mark.parametrize("times", [2, 4])
def test_copies_of_a_table_are_kept_together(times: int) -> None:
    frame = pl.concat([pl.DataFrame(numbers())] * times)
    model = fit_table(frame, "y", **QUICK)
    assert model.units_["kind"] == "copies"
    assert model.units_["held_units"] == 50
    assert model.units_["holdout"] == 50 * times
    assert model.units_["shared"] == 0
    once = fit_table(numbers(), "y", **QUICK)
    ours, theirs = (m.candidates_[m.chosen_]["holdout"] for m in (model, once))
    assert ours["high"] - ours["low"] == pytest.approx(theirs["high"] - theirs["low"], abs=0.05)
    assert "different rows it has not seen" in model.document()["verdict"]["headline"]
    assert verify_table(model, read_table(frame), quick=True).ok


@cache
def nearly(**asked: Any) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    rows = {name: np.repeat(values, 5) for name, values in numbers(60).items()}
    for name in "abc":
        rows[name] = rows[name] + 1e-3 * generator.normal(size=300)
    who = {"who": np.repeat(np.arange(60), 5)} if "group" in asked else {}
    table = read_table({**rows, **who})
    return table, fit_table(table, "y", sensitive=[], **QUICK, **asked)


def test_nearly_equal_rows_leave_the_claims_undecided_until_somebody_speaks() -> None:
    table, model = nearly()
    for section in ("generalisation", "robustness"):
        for found in model.claims(section):
            if found.kind is surefit.Kind.STATISTICAL:
                assert found.status is Status.UNDECIDED
    words = claim(model, "generalisation").statement
    assert "lie far closer to a few others than chance explains" in words
    assert "--group" in words
    assert "--rows-are-independent" in words
    document = model.document()
    assert "has not seen" not in document["verdict"]["headline"]
    assert "confidence" not in document["verdict"]["sentences"][0]
    assert all(r["holdout"]["low"] is None for r in document["candidates"] if r["holdout"])
    assert {b["rate_high"] for b in document["evidence"]["calibration"]} == {1.0}
    assert verify_table(model, table, document=document).ok


def test_the_word_of_the_owner_is_taken_and_said() -> None:
    table, model = nearly(rows_are_independent=True)
    found = claim(model, "generalisation")
    assert found.status is Status.HOLDS
    assert "independent as was said when it was fitted" in found.statement
    assert verify_table(model, table, quick=True).ok
    table, model = nearly(group="who")
    found = claim(model, "generalisation")
    assert found.status is not Status.UNDECIDED
    assert "each group counting once, is between" in found.statement
    assert "60 groups by 'who', independent of each other" in found.statement
    assert "each group counted alike" in model.document()["verdict"]["headline"]
    assert verify_table(model, table, quick=True).ok


def test_a_column_that_numbers_patients_is_named() -> None:
    table = visits()
    model = fit_table(table, "y", **QUICK)
    words = claim(model, "generalisation").statement
    assert "column 'patient' looks like the number of a person or a place: 60 values" in words
    assert claim(model, "generalisation").status is Status.UNDECIDED


def test_an_error_of_groups_is_the_mean_of_their_means() -> None:
    table, model = fitted("visits")
    rows = rows_of(
        table, model.schema, list(model.classes_), model.holdout, model.seed, Asked.of(model)
    )
    frame = table.frame[rows.holdout]
    wrong = (model.predict(frame) != frame["y"].to_numpy()).astype(float)
    means = pl.DataFrame({"who": frame["patient"], "wrong": wrong}).group_by("who").mean()
    held = model.candidates_[model.chosen_]["holdout"]
    assert held["loss"] == pytest.approx(float(means["wrong"].mean()), abs=1e-12)
    low, high = surefit.stats.group_limits(
        held["loss"], float(means["wrong"].var()), len(means), 0.5 * 0.05, models=4
    )
    assert (held["low"], held["high"]) == pytest.approx((max(0.0, low), min(1.0, high)), abs=1e-12)
    assert "patient" not in model.encoder_.blocks_


def test_what_was_said_of_time_is_part_of_the_sentence() -> None:
    _, model = fitted("years")
    assert "day" not in model.encoder_.blocks_
    found = claim(model, "generalisation")
    assert "if the future resembles the past" in found.statement
    assert (
        "of the latest rows, after those it was fitted on"
        in model.document()["verdict"]["headline"]
    )
    table = visits()
    kept = fit_table(
        table, "y", time_column="day", roles={"day": "numeric"}, drop=["patient"], **QUICK
    )
    assert "day" in kept.encoder_.blocks_


@pytest.mark.parametrize(
    ("values", "later"),
    [
        ([f"{k % 28 + 1:02d}.{k // 28 + 1:02d}.2020" for k in range(40)], slice(30, 40)),
        ([f"2020-01-01 00:{59 - k:02d}:00" for k in range(40)], slice(0, 10)),
        ([2000.0 + k / 4 for k in range(40)], slice(30, 40)),
    ],
)
def test_times_are_read_as_dates_or_numbers(values: list[Any], later: slice) -> None:
    table = {**numbers(40), "when": values}
    model = fit_table(table, "y", time_column="when", **QUICK)
    rows = rows_of(
        read_table(table), model.schema, list(model.classes_), 0.25, 0, Asked(None, "when")
    )
    assert rows.holdout.tolist() == list(range(40))[later]


def test_groups_that_the_past_has_seen_are_not_tested() -> None:
    table = visits(200)
    first = table.frame.group_by("patient").agg(pl.col("day").min())
    frame = table.frame.join(first, on="patient", suffix="_first").with_columns(
        day=pl.when(pl.col("day") < pl.col("day_first") + 60)
        .then("day")
        .otherwise(pl.col("day_first") + 60)
    )
    model = fit_table(frame.drop("day_first"), "y", group="patient", time_column="day", **QUICK)
    record = model.units_
    assert record["neither"] > 0
    assert record["train"] + record["holdout"] + record["neither"] == len(frame)
    assert verify_table(model, read_table(frame.drop("day_first")), quick=True).ok


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"group": "nobody"}, "there is no column 'nobody'"),
        ({"time_column": "never"}, "there is no column 'never'"),
        ({"group": "y"}, "'y' is the target; name another column"),
        ({"group": "ward", "drop": ["ward"]}, "there is no column|left out on request"),
        ({"group": "ward", "rows_are_independent": True}, "Give one of the two"),
        ({"group": "ward", "roles": {"ward": "categorical"}}, "Give it no role"),
        ({"time_column": "ward"}, "neither dates nor numbers"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(TableError, match=words):
        fit_table(visits(), "y", **QUICK, **asked)


def test_a_time_that_is_missing_or_stands_still_is_refused() -> None:
    for days, words in (
        ([None] * 3 + list(range(37)), "missing in 3 of 40 rows"),
        ([1.0] * 40, "one value only"),
    ):
        with pytest.raises(TableError, match=words):
            fit_table({**numbers(40), "day": days}, "y", time_column="day", **QUICK)


def test_too_few_groups_are_refused() -> None:
    table = {**numbers(40), "half": np.repeat(["left", "right"], 20)}
    with pytest.raises(TableError, match="at least 2 of each are needed"):
        fit_table(table, "y", group="half", **QUICK)


# ------------------------------------------------------------------------ what says nothing is not praised


def test_intervals_that_say_little_are_uninformative() -> None:
    """Six held-out rows leave nearly every error possible."""
    model = fit_table(numbers(24), "y", **QUICK)
    found = claim(model, "generalisation")
    assert found.status is Status.UNINFORMATIVE
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.8
    assert "too wide to tell much: 6 test rows, where" in found.statement


def test_a_choice_among_models_that_were_not_measured_is_undecided() -> None:
    """Three were measured of twelve planned; "best of 3" is not the best of the plan."""
    model = fit_table(numbers(), "y", reference=False, models=["logistic", "linear", "svm"])
    found = claim(model, "selection excess")
    assert found.status is Status.UNDECIDED
    assert re.match(r"\d+ of the 10 candidates were not measured", found.statement)


def test_a_model_is_compared_with_a_constant() -> None:
    good = fit_table(numbers(400), "y", **QUICK)
    assert good.constant_["better"]
    assert claim(good, "better than a constant").status is Status.HOLDS
    assert "(always “" in good.document()["verdict"]["headline"]
    table = numbers(400)
    table["y"] = np.random.default_rng(1).permutation(table["y"])
    useless = fit_table(table, "y", **QUICK)
    assert not useless.constant_["better"]
    assert claim(useless, "better than a constant").status is Status.UNDECIDED
    headline = useless.document()["verdict"]["headline"]
    assert "which is not shown to be better than always" in headline
