"""Rows that are not independent: repeats, near repeats, numbers of persons, and intervals over groups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_breast_cancer, load_iris

from surefit.stats import (
    find_identifiers,
    find_near_repeats,
    find_repeats,
    group_interval,
    group_means,
    hoeffding_kl,
    hoeffding_radius,
    join_labels,
    treat_rows,
)
from surefit.stats.repeats import common_multiple

# class, sex, age -> died, survived: the 2,201 persons aboard the Titanic (Dawson 1995)
TITANIC = {
    ("1", "man", "child"): (0, 5),
    ("2", "man", "child"): (0, 11),
    ("3", "man", "child"): (35, 13),
    ("1", "woman", "child"): (0, 1),
    ("2", "woman", "child"): (0, 13),
    ("3", "woman", "child"): (17, 14),
    ("1", "man", "adult"): (118, 57),
    ("2", "man", "adult"): (154, 14),
    ("3", "man", "adult"): (387, 75),
    ("crew", "man", "adult"): (670, 192),
    ("1", "woman", "adult"): (4, 140),
    ("2", "woman", "adult"): (13, 80),
    ("3", "woman", "adult"): (89, 76),
    ("crew", "woman", "adult"): (3, 20),
}


def titanic() -> tuple[Any, Any]:
    rows = [(key, y) for key, counts in TITANIC.items() for y in (0, 1) for _ in range(counts[y])]
    return np.array([key for key, _ in rows], dtype=object), np.array([y for _, y in rows])


def gaussian(rows: int = 300, columns: int = 5, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, columns))


def visits(noise: float, seed: int = 0, patients: int = 60, each: int = 5) -> Any:
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.normal(size=(patients, 4)), each, axis=0)
    return centres + noise * rng.normal(size=centres.shape)


# ------------------------------------------------------------------------ repeats


def test_chance_explains_the_repeats_of_the_titanic() -> None:
    X, y = titanic()
    found = find_repeats(X, y)
    assert (found.rows, found.distinct_inputs, found.distinct_rows) == (2201, 14, 24)
    assert found.explained
    assert found.groups == 2201
    assert "2,177 of 2,201 rows repeat another row, which their few values explain" in found.words


def test_the_titanic_twice_is_found_by_its_multiplicities() -> None:
    X, y = titanic()
    found = find_repeats(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert (found.by, found.copies, found.groups) == ("rows", 2, 2201)
    assert (np.bincount(found.labels) == 2).all()


@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("columns", [1, 2, 5, 40])
def test_copied_tables_are_grouped(times: int, columns: int) -> None:
    X, order = gaussian(columns=columns), np.random.default_rng(1).permutation(300 * times)
    source = np.repeat(np.arange(300), times)[order]
    y = np.random.default_rng(2).integers(2, size=300)
    found = find_repeats(X[source], y[source])
    assert not found.explained
    assert found.groups == 300
    assert all(len(set(source[found.labels == label])) == 1 for label in range(300))


def test_a_copy_with_another_target_is_a_copy() -> None:
    X = np.repeat(gaussian(), 2, axis=0)
    found = find_repeats(X, np.random.default_rng(3).integers(2, size=600))
    assert found.by == "inputs"
    assert found.groups == 300


def test_one_copied_row_is_grouped() -> None:
    X = gaussian()
    found = find_repeats(np.vstack([X, X[:1]]), np.arange(301.0))
    assert found.groups == 300
    assert found.labels[0] == found.labels[300]


def test_a_sample_with_replacement_is_grouped() -> None:
    rows = np.random.default_rng(4).integers(300, size=300)
    assert find_repeats(gaussian()[rows]).groups == len(set(rows))


@pytest.mark.parametrize("container", [sparse.csr_matrix, np.ndarray.tolist, np.float32])
def test_containers_agree(container: Any) -> None:
    X = gaussian() * (gaussian(seed=1) > 0)
    doubled = np.repeat(X, 2, axis=0).astype(np.float32).astype(np.float64)
    assert np.array_equal(find_repeats(container(doubled)).labels, find_repeats(doubled).labels)


def test_missing_values_and_signed_zeros_are_equal() -> None:
    X = np.vstack([gaussian(50, 3), [[math.nan, 0.0, 1.5], [math.nan, -0.0, 1.5]]])
    found = find_repeats(X)
    assert found.labels[50] == found.labels[51]
    assert found.groups == 51


@pytest.mark.parametrize("seed", range(5))
def test_few_correlated_values_repeat_by_chance(seed: int) -> None:
    """Independent rows whose columns are dependent: permuting them alone would cry wolf."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(400, 1))
    X = np.round(hidden + 0.3 * rng.normal(size=(400, 4)))
    found = find_repeats(X, (hidden[:, 0] > 0).astype(int))
    assert found.explained
    assert found.distinct_inputs < 300
    dummies = (X[:, :, None] == np.arange(-3, 4)).reshape(400, -1).astype(float)
    assert find_repeats(dummies).explained


def test_one_value_of_many_rows_is_a_category() -> None:
    X = np.where(np.random.default_rng(0).random((400, 1)) < 0.4, 0.0, gaussian(400))
    assert find_repeats(X).explained


def test_one_column_of_integers_repeats_by_chance() -> None:
    rng = np.random.default_rng(5)
    assert find_repeats(rng.integers(50, size=(400, 1)), rng.normal(size=400)).explained


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_known_tables_stay_as_they_are(load: Any) -> None:
    assert find_repeats(*load(return_X_y=True)).explained


def test_common_multiple_is_rarer_than_stated_by_chance() -> None:
    """Counts of a Poisson number of draws from a few values: gcd above 1 at most a millionth of the time."""
    rng = np.random.default_rng(6)
    counts = [rng.poisson(20.0, size=25) for _ in range(2000)]
    assert all(common_multiple(one[one > 0]) == 1 for one in counts)
    assert common_multiple(2 * rng.poisson(20.0, size=25)) == 2
    assert common_multiple([2, 2, 4, 2]) == 1  # four values are too few to tell


# ------------------------------------------------------------------------ near repeats


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.01, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_nearly_equal_rows_of_a_patient_are_found(noise: float, seed: int) -> None:
    assert find_near_repeats(visits(noise, seed)).found


def test_near_repeats_have_labels() -> None:
    found = find_near_repeats(visits(1e-3))
    assert found.labels is not None
    assert np.array_equal(found.labels[:10], found.labels[[0] * 5 + [5] * 5])
    assert len(np.unique(found.labels)) == 60


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("columns", [2, 5, 30])
def test_independent_rows_are_not_near_repeats(columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = (300, columns)
    normal = rng.normal(size=size)
    heavy = np.exp(3.0 * rng.normal(size=size))
    for X in (normal, rng.uniform(size=size), rng.standard_cauchy(size=size), heavy):
        assert not find_near_repeats(X).found
    mixed = np.where(rng.random((300, 1)) < 0.5, 10.0 + 0.01 * normal, normal)
    assert not find_near_repeats(mixed).found  # a mixture with a narrow part


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_known_tables_have_no_near_repeats(load: Any) -> None:
    assert not find_near_repeats(load(return_X_y=True)[0]).found


def test_integers_and_mixed_tables_have_no_near_repeats() -> None:
    rng = np.random.default_rng(7)
    assert not find_near_repeats(rng.integers(1000, size=(300, 3))).found
    assert not find_near_repeats(np.round(gaussian(), 1)).found
    mixed = np.column_stack([rng.integers(2, size=(300, 8)), gaussian(columns=2)])
    assert not find_near_repeats(mixed).found


# ------------------------------------------------------------------------ numbers of persons and places


def named(name: str, values: Any) -> bool:
    return bool(find_identifiers([name], [values]))


def test_numbers_of_persons_and_places_are_named() -> None:
    rng = np.random.default_rng(8)
    uneven = np.repeat(np.arange(60), rng.integers(1, 10, size=60))
    for name in (
        "patient",
        "patientId",
        "PATIENT_ID",
        "user id",
        "zip",
        "site",
        "SubjectNo",
        "sid",
    ):
        assert named(name, uneven)
    assert named("patient", np.array([f"P{i:03}" for i in uneven], dtype=object))
    for name in ("age", "visits", "households", "num_site", "education-num", "width", "income"):
        assert not named(name, uneven)
    assert not named("city", np.array(["Bern", "Biel", "Basel"], dtype=object)[uneven % 3])
    assert not named("patient", np.arange(300))  # one row each: nothing is tied together
    assert not named("site", uneven % 4)
    assert not named("patient", gaussian()[:, 0])


def test_values_alone_can_tell() -> None:
    rng = np.random.default_rng(9)
    even = rng.permutation(np.repeat(np.arange(60), 5))
    found = find_identifiers(None, [gaussian()[:, 0], even])
    assert [one.name for one in found] == ["column 1"]
    assert not find_identifiers(None, [rng.integers(60, size=300)])


# ------------------------------------------------------------------------ how rows are treated


def test_what_the_user_says_decides() -> None:
    X, patients = visits(0.01), np.repeat(np.arange(60), 5)
    asked = treat_rows(X)
    assert asked.kind == "undecided"
    assert "groups=" in asked.why
    assert "rows_are_independent=True" in asked.why
    grouped = treat_rows(X, groups=patients, grouped_by="patient")
    assert (grouped.kind, grouped.groups) == ("grouped", 60)
    assert grouped.assumed.startswith("60 groups by patient")
    told = treat_rows(X, independent=True)
    assert told.kind == "independent"
    assert "as was said" in told.assumed


def test_equal_rows_share_a_group_whatever_is_said() -> None:
    X = np.repeat(gaussian(), 2, axis=0)
    assert treat_rows(X, independent=True).groups == 300
    assert treat_rows(X, groups=np.arange(600)).groups == 300
    pairs = np.repeat(np.arange(150), 4)
    assert treat_rows(X, groups=pairs).groups == 150


def test_copies_do_not_make_a_column_look_like_a_number() -> None:
    X = np.column_stack([np.random.default_rng(0).integers(40, size=300), gaussian(columns=3)])
    assert treat_rows(np.repeat(X, 2, axis=0)).kind == "repeats"


def test_groups_need_one_entry_a_row() -> None:
    with pytest.raises(ValueError, match="groups must have one entry a row"):
        treat_rows(gaussian(), groups=np.arange(7))


def test_a_missing_group_is_a_group_of_its_own() -> None:
    groups = np.array(["a", None, None, "a"] * 75, dtype=object)
    assert treat_rows(gaussian(), groups=groups).groups == 151


def test_joined_labels_are_the_finest_common_grouping() -> None:
    assert list(join_labels(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))) == [0, 0, 0, 1]


# ------------------------------------------------------------------------ intervals over groups


def test_group_means_count_groups_alike() -> None:
    assert list(group_means([1, 1, 1, 0], ["a", "a", "a", "b"])) == [1.0, 0.0]


def test_kl_limits_solve_their_equation_and_are_inside_hoeffdings() -> None:
    for mean in (0.0, 0.02, 0.3, 0.5, 1.0):
        for groups in (1, 10, 300):
            low, high = (float(end) for end in hoeffding_kl(mean, groups, 0.05))
            radius = hoeffding_radius(groups, 0.05)
            assert mean - radius <= low <= mean <= high <= mean + radius
            level = math.log(40.0) / groups
            for end in (low, high):
                if 0.0 < end < 1.0:
                    kl = stats.entropy([mean, 1.0 - mean], [end, 1.0 - end])
                    assert kl == pytest.approx(level, rel=1e-6)


def test_group_limits_scale_with_the_range() -> None:
    losses, groups = np.tile([0.0, 1.0, 0.5], 20), np.repeat(np.arange(20), 3)
    mean, low, high = group_interval(losses, groups)
    wide = group_interval(10.0 * losses - 3.0, groups, range=(-3.0, 7.0))
    assert wide == pytest.approx((10 * mean - 3, 10 * low - 3, 10 * high - 3))


def test_losses_outside_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="losses must lie in range"):
        group_interval([0.0, 2.0], [0, 1])


def test_group_intervals_cover() -> None:
    """500 samples of 40 groups whose rows are all alike: at most 49 misses of 5 % (p < 1e-6)."""
    rng, missed = np.random.default_rng(10), 0
    for _ in range(500):
        chances = rng.beta(1.0, 4.0, size=40)
        losses = np.repeat(rng.random(40) < chances, 5).astype(float)
        _, low, high = group_interval(losses, np.repeat(np.arange(40), 5))
        missed += not low <= 0.2 <= high
    assert missed <= stats.binom.isf(1e-6, 500, 0.05)
