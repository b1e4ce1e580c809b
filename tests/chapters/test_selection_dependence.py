"""Selections on rows that are not independent: what is split, what is claimed, and what verify finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedGroupKFold
from sklearn.neighbors import KNeighborsClassifier

import surefit
from surefit import Status
from surefit.linear_model import Ridge, RidgeClassifier
from surefit.model_selection import (
    GridSearchCV,
    HoldOut,
    RandomizedSearchCV,
    cross_validate,
    learning_curve,
    validation_curve,
)
from surefit.model_selection._claims import Statistics
from surefit.model_selection._losses import BoundedLoss
from surefit.model_selection._parts import check_times, latest_rows
from surefit.stats import find_repeats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + 0.3 * RNG.normal(size=400) > 0).astype(int)
TWICE, COPIED = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
PATIENTS = np.repeat(np.arange(80), 5)
VISITS = np.repeat(X[:80], 5, axis=0) + 0.01 * RNG.normal(size=(400, 4))
ILL = np.repeat(Y[:80], 5)
MODEL = RidgeClassifier()


def generalisation(model: Any) -> Any:
    return model.certificate_["generalisation"]


def holdout(**keywords: Any) -> Any:
    return HoldOut(MODEL, random_state=0, **keywords)


# ------------------------------------------------------------------------ copies


@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("stratify", [False, True])
@pytest.mark.parametrize("test_size", [0.25, 200])
def test_copies_stay_on_one_side_of_the_split(times: int, stratify: bool, test_size: Any) -> None:
    order = np.random.default_rng(1).permutation(400 * times)
    rows, target = np.repeat(X, times, axis=0)[order], np.repeat(Y, times)[order]
    model = holdout(stratify=stratify, test_size=test_size).fit(rows, target)
    held = np.zeros(len(rows), dtype=bool)
    held[model.holdout_] = True
    assert not {row.tobytes() for row in rows[held]} & {row.tobytes() for row in rows[~held]}
    share = test_size if test_size < 1 else test_size / len(rows)
    assert held.sum() == round(400 * share) * times
    claim = generalisation(model)
    assert "each group counting once" in claim.statement
    assert "400 groups of equal rows, independent of each other" in claim.statement
    assert surefit.verify(model, rows, target).ok


def test_copies_change_neither_estimate_nor_interval() -> None:
    """Every row four times says as much as every row twice."""
    claims = []
    for times in (2, 4):
        rows, target = np.repeat(X, times, axis=0), np.repeat(Y, times)
        claims.append(generalisation(holdout().fit(rows, target)))
    assert claims[0].estimate == claims[1].estimate
    assert (claims[0].low, claims[0].high) == (claims[1].low, claims[1].high)


def test_repeats_that_chance_explains_are_counted_and_said() -> None:
    few = np.random.default_rng(2).integers(2, size=(400, 3)).astype(float)
    model = holdout().fit(few, Y)
    assert len(model.holdout_) == 100
    assert "rows repeat another row, which their few values explain" in model.statement_


@pytest.mark.parametrize("cv", [None, KFold(4, shuffle=True, random_state=0), LeaveOneOut()])
def test_folds_that_part_copies_claim_nothing(cv: Any) -> None:
    order = np.random.default_rng(3).permutation(60)
    rows, target = TWICE[:60][order], COPIED[:60][order]
    for search in (
        GridSearchCV(MODEL, {"alpha": [1.0]}, cv=cv),
        RandomizedSearchCV(MODEL, {"alpha": [1.0]}, n_iter=1, cv=cv),
    ):
        claim = generalisation(search.fit(rows, target))
        assert claim.status is Status.UNDECIDED
        assert "test copies of rows that their models were fitted on" in claim.statement
        assert "find_repeats(X, y).labels" in claim.statement
        assert "selection excess" not in search.certificate_
    results = cross_validate(MODEL, rows, target, cv=cv)
    assert results.certificate_["generalisation"].status is Status.UNDECIDED
    curve = validation_curve(MODEL, rows, target, param_name="alpha", param_range=[0.1, 1.0], cv=cv)
    assert np.isnan(curve.intervals).all()


@pytest.mark.parametrize("cv", [GroupKFold(2), StratifiedGroupKFold(2)])
def test_the_remedy_for_copies_works(cv: Any) -> None:
    search = GridSearchCV(MODEL, {"alpha": [1.0]}, cv=cv)
    search.fit(TWICE, COPIED, groups=find_repeats(TWICE, COPIED).labels)
    claim = generalisation(search)
    assert claim.status is Status.HOLDS
    assert "400 groups" in claim.statement
    assert surefit.verify(search, TWICE, COPIED).ok


# ------------------------------------------------------------------------ near copies, groups


def test_near_copies_are_undecided_until_the_user_decides() -> None:
    asked = holdout().fit(VISITS, ILL)
    claim = generalisation(asked)
    assert claim.status is Status.UNDECIDED
    assert (
        "100 % of the rows lie far closer to a few others than chance explains" in claim.statement
    )
    assert "groups=" in claim.statement
    assert "rows_are_independent=True" in claim.statement
    grouped = holdout().fit(VISITS, ILL, groups=PATIENTS)
    assert generalisation(grouped).status is Status.HOLDS
    assert len(grouped.holdout_) == 100
    assert not set(PATIENTS[grouped.holdout_]) & set(np.delete(PATIENTS, grouped.holdout_).tolist())
    told = holdout(rows_are_independent=True).fit(VISITS, ILL)
    assert generalisation(told).status is Status.HOLDS
    assert "independent as was said when it was fitted" in told.statement_
    for model in (asked, grouped, told):
        assert surefit.verify(model, VISITS, ILL).ok


def test_a_column_that_numbers_patients_is_named() -> None:
    rows = np.column_stack([PATIENTS, X])
    claim = generalisation(holdout().fit(rows, Y))
    assert claim.status is Status.UNDECIDED
    assert "column 0 looks like the number of a person or a place" in claim.statement
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(patient=PATIENTS[::-1])
    assert "column 'patient'" in generalisation(holdout().fit(frame, Y)).statement


@pytest.mark.parametrize("kind", ["search", "cross_validate", "curve"])
def test_every_claim_of_folds_heeds_near_copies(kind: str) -> None:
    def claim(**keywords: Any) -> Any:
        groups = keywords.pop("groups", None)
        keywords["cv"] = GroupKFold(2) if groups is not None else KFold(2)
        if kind == "search":
            search = GridSearchCV(MODEL, {"alpha": [1.0]}, **keywords)
            return generalisation(search.fit(VISITS, ILL, groups=groups))
        if kind == "curve":
            curve = learning_curve(MODEL, VISITS, ILL, groups=groups, train_sizes=[1.0], **keywords)
            return curve.certificate_["generalisation: 200 rows"]
        results = cross_validate(MODEL, VISITS, ILL, groups=groups, **keywords)
        return results.certificate_["generalisation"]

    assert claim().status is Status.UNDECIDED
    assert "far closer" in claim().statement
    assert claim(rows_are_independent=True).status is Status.HOLDS
    assert "each group counting once" in claim(groups=PATIENTS).statement


def test_incremental_learning_with_groups_claims_nothing() -> None:
    curve = learning_curve(
        sklearn.linear_model.SGDClassifier(random_state=0),
        X,
        Y,
        groups=PATIENTS,
        cv=GroupKFold(2),
        exploit_incremental_learning=True,
        train_sizes=[1.0],
    )
    assert curve.certificate_["generalisation: 200 rows"].status is Status.UNDECIDED


def test_a_search_inside_is_given_the_groups_of_its_rows() -> None:
    inner = GridSearchCV(MODEL, {"alpha": [0.1, 1.0]}, cv=GroupKFold(3))
    model = HoldOut(inner, random_state=0).fit(VISITS, ILL, groups=PATIENTS)
    inside = np.delete(PATIENTS, model.holdout_)
    assert np.array_equal(inside[:1], inside[model.best_estimator_.groups_ == 0][:1])
    assert len(model.best_estimator_.groups_) == 300
    assert surefit.verify(model, VISITS, ILL).ok
    with sklearn.config_context(enable_metadata_routing=True):
        routed = HoldOut(inner, random_state=0).fit(VISITS, ILL, groups=PATIENTS)
        assert len(routed.best_estimator_.groups_) == 300
        assert holdout().fit(VISITS, ILL, groups=PATIENTS).groups_ is not None


def test_losses_of_regressions_are_averaged_by_group() -> None:
    target = VISITS[:, 0]
    keywords = {"scoring": "neg_mean_absolute_error", "loss_range": (0.0, 10.0), "random_state": 0}
    model = HoldOut(Ridge(), **keywords).fit(VISITS, target, groups=PATIENTS)
    held = model.holdout_
    errors = np.abs(target - model.predict(VISITS))[held].reshape(-1, 5).mean(axis=1)
    assert generalisation(model).estimate == pytest.approx(errors.mean(), rel=1e-12)
    assert model.evidence_[0, 0, 1] == pytest.approx(errors.var(ddof=1), rel=1e-9)


def test_a_top_k_error_of_groups_is_not_known() -> None:
    three = np.digitize(VISITS[:, 0], [-0.5, 0.5])
    logistic = surefit.linear_model.LogisticRegression()
    model = HoldOut(logistic, scoring="top_k_accuracy", random_state=0)
    model.fit(VISITS, three, groups=PATIENTS)
    assert "of single rows is not known" in model.statement_


# ------------------------------------------------------------------------ time


def test_the_latest_rows_are_held_out() -> None:
    when = np.datetime64("2024-01-01") + np.random.default_rng(4).permutation(400)
    model = holdout().fit(X, Y, time=when)
    assert set(model.holdout_) == set(np.argsort(when)[-100:])
    assert "if the future is like these" in model.statement_
    assert "the 100 of 400 held-out rows are the latest" in model.certificate_["split"].statement
    assert surefit.verify(model, X, Y).ok
    texts = holdout().fit(X, Y, time=[str(day) for day in when])
    assert np.array_equal(texts.holdout_, model.holdout_)


def test_rows_of_one_moment_and_of_one_group_stay_together() -> None:
    times, groups = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 2, 0, 3, 3])
    past, future = latest_rows(times, None, 1)
    assert list(past) == [0, 1, 2, 3]
    past, future = latest_rows(times, groups, 3)
    assert list(past) == [1]
    assert list(future) == [0, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (np.arange(7), "one entry a row"),
        (np.full(400, np.nan), "missing values"),
        (["monday"] * 400, "numbers or dates"),
        (np.zeros(400), "leaves no rows to train on"),
    ],
)
def test_times_that_are_none(time: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        holdout().fit(X, Y, time=time)


def test_time_and_strata_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        holdout(stratify=True).fit(X, Y, time=np.arange(400))


def test_times_become_places() -> None:
    assert list(check_times([3.5, 1.0, 3.5], 3)) == [1, 0, 1]


# ------------------------------------------------------------------------ verification


def forged(model: Any, rows: Any, target: Any, **changes: Any) -> Any:
    """The report of a model after some of its attributes were changed."""
    for name, value in changes.items():
        setattr(model, name, value)
    return surefit.verify(model, rows, target)


def test_a_forged_grouping_is_noticed() -> None:
    for groups in (np.arange(400), PATIENTS // 2, None, PATIENTS[:7], PATIENTS.astype(float)):
        model = holdout().fit(VISITS, ILL, groups=PATIENTS)
        report = forged(model, VISITS, ILL, groups_=groups)
        assert not report.ok
        claims = [c for c in report.claims if c.name == "generalisation"]
        assert all(claim.status is Status.UNDECIDED for claim in claims)


def test_equal_rows_share_a_group_even_in_a_forged_grouping() -> None:
    """Folds that part copies are found from the data, whatever groups a model says it was given."""
    search = GridSearchCV(MODEL, {"alpha": [1.0]}, cv=KFold(4, shuffle=True, random_state=0))
    search.fit(TWICE, COPIED)
    report = forged(search, TWICE, COPIED, groups_=np.arange(800))
    assert report["generalisation"].status is Status.UNDECIDED
    assert report["data"].status is Status.FAILS
    promised = search.promise_ | {"rows_are_independent": True}
    report = forged(search, TWICE, COPIED, promise_=promised, groups_=None)
    assert report["generalisation"].status is Status.UNDECIDED


def test_a_hold_out_that_parts_copies_is_noticed() -> None:
    model = holdout().fit(TWICE, COPIED)
    report = forged(model, TWICE, COPIED, holdout_=np.arange(0, 800, 4))
    assert report["split"].status is Status.FAILS
    assert report["generalisation"].status is Status.UNDECIDED


def test_forged_times_are_noticed() -> None:
    model = holdout().fit(X, Y, time=np.arange(400))
    report = forged(model, X, Y, time_=np.arange(400)[::-1].copy())
    assert report["split"].status is Status.FAILS
    assert report["data"].status is Status.FAILS


@pytest.mark.parametrize(
    "change",
    [
        {"best_score_": float("nan")},
        {"best_index_": 5},
        {"best_index_": 0.5},
        {"evidence_": np.zeros((1, 1, 3))},
    ],
)
@pytest.mark.parametrize("kind", ["search", "holdout"])
def test_attributes_that_no_fit_leaves(kind: str, change: dict[str, Any]) -> None:
    grid = {"alpha": [0.1, 1.0]}
    model: Any = HoldOut(MODEL, grid, random_state=0)
    if kind == "search":
        model = GridSearchCV(MODEL, grid)
    report = forged(model.fit(X, Y), X, Y, **change)
    assert report["attributes"].status is Status.FAILS


def test_models_with_groups_and_times_can_be_stored(tmp_path: Any) -> None:
    model = holdout().fit(VISITS, ILL, groups=PATIENTS, time=np.arange(400))
    model.save(tmp_path / "model.surefit")
    loaded = surefit.load(tmp_path / "model.surefit")
    assert surefit.verify(loaded, VISITS, ILL).ok
    assert loaded.statement_ == model.statement_


# ------------------------------------------------------------------------ what an interval says


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("bound", ["hoeffding", "clopper-pearson", "bernstein"])
@pytest.mark.parametrize("wrong", [0, 2, 4])
def test_the_stated_number_of_rows_would_do(grouped: bool, bound: str, wrong: int) -> None:
    """A claim that says too little names the fewest rows at which the same losses say enough."""
    from surefit.model_selection._claims import generalisation_claim

    loss = BoundedLoss("error", 0.0, 1.0, 1.0, True)
    share = wrong / 4
    evidence = np.array([[[share, share * (1 - share) * 4 / 3, 0.0, 1.0]]])

    def claim(size: int) -> Any:
        sizes = np.array([size])
        statistics = Statistics(evidence, sizes, loss, False, 0.05, bound, grouped=grouped)
        return generalisation_claim(statistics, 0, "", "")

    found = claim(2)
    assert found.status is Status.UNINFORMATIVE
    assert found.estimate == share
    needed = int(found.statement.split("where ")[1].split(" ")[0].replace(",", ""))
    assert claim(needed).status is Status.HOLDS
    assert claim(needed - 1).status is Status.UNINFORMATIVE


def test_an_interval_has_fields_of_its_own() -> None:
    model = HoldOut(MODEL, {"alpha": [0.1, 1.0]}, random_state=0).fit(X, Y)
    claim, excess = generalisation(model), model.certificate_["selection excess"]
    assert claim.estimate == pytest.approx(1.0 - model.best_score_)
    assert 0.0 <= claim.low <= claim.estimate <= claim.high <= 1.0
    assert (excess.low, excess.estimate) == (0.0, 0.0)
    assert excess.high <= 1.0


def test_the_excess_counts_every_planned_candidate() -> None:
    from surefit.model_selection._claims import excess_claim

    loss = BoundedLoss("error", 0.0, 1.0, 1.0, True)
    evidence = np.tile([0.2, 0.16, 0.0, 1.0], (16, 1, 1))
    full = Statistics(evidence, np.array([2000]), loss, False, 0.05, "hoeffding")
    found = excess_claim(full, 0, "")
    assert found is not None
    assert found.status is Status.HOLDS
    assert "best of 16 candidates" in found.statement
    evidence = np.where(np.arange(16)[:, None, None] < 3, evidence, np.nan)
    part = Statistics(evidence, np.array([2000]), loss, False, 0.05, "hoeffding")
    found = excess_claim(part, 0, "")
    assert found is not None
    assert found.status is Status.UNDECIDED
    assert "13 of the 16 candidates were not measured" in found.statement
    others = np.arange(16) >= 3
    found = excess_claim(part, 0, "", excluded=others)
    assert found is not None
    assert "best of 3 candidates" in found.statement


# ------------------------------------------------------------------------ the law


def dependent(case: str, rng: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
    """Rows of a given dependence with labels that nobody can predict: the true error is 1/2."""
    rows, coins = rng.normal(size=(120, 4)), rng.integers(2, size=120)
    if case in ("twice", "four times", "shuffled copies"):
        times = 4 if case == "four times" else 2
        order = np.arange(120 * times)
        if case == "shuffled copies":
            order = rng.permutation(order)
        return np.repeat(rows, times, axis=0)[order], np.repeat(coins, times)[order], {}
    noise = {"equal": 0.0, "nearly equal": 0.01, "grouped": 0.3}[case]
    rows = np.repeat(rows[:60], 5, axis=0) + noise * rng.normal(size=(300, 4))
    groups = {"groups": np.repeat(np.arange(60), 5)} if case == "grouped" else {}
    return rows, np.repeat(coins[:60], 5), groups


@pytest.mark.parametrize(
    "case", ["twice", "four times", "shuffled copies", "equal", "nearly equal", "grouped"]
)
def test_no_error_below_the_truth_is_claimed_of_random_labels(case: str) -> None:
    """A nearest neighbour remembers its rows: where copies cross a split it looks perfect.

    20 draws, each wrong with probability 2.5 % at most: 7 or more have probability below 1e-6.
    """
    wrong = 0
    for seed in range(20):
        rows, coins, groups = dependent(case, np.random.default_rng(seed))
        model = HoldOut(KNeighborsClassifier(1), random_state=seed, test_size=0.5)
        claim = generalisation(model.fit(rows, coins, **groups))
        if case == "nearly equal":
            assert claim.status is Status.UNDECIDED
        elif claim.status is Status.HOLDS:
            wrong += claim.high < 0.5
    assert wrong < 7
