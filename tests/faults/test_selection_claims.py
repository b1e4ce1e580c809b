"""Selections whose test rows do not allow the sentence: nothing is claimed, neither at fit nor by verify."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import neighbors
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeClassifier

import surefit
from surefit.certificate import Status
from surefit.model_selection import GridSearchCV, HoldOut, cross_validate, learning_curve
from surefit.model_selection._certified import scores_claim
from surefit.neighbors import KNeighborsClassifier

N = 600
RNG = np.random.default_rng(0)
X, COINS = RNG.normal(size=(N, 2)), RNG.integers(0, 2, N)
TREE = DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, 3]}
HALVES = [(np.arange(300), np.arange(300, 600))]


class Boaster(DecisionTreeClassifier):
    """Scores itself."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return 1.0


class Mute(DecisionTreeClassifier):
    """Cannot be scored."""

    def predict(self, X: Any, check_input: bool = True) -> Any:
        raise RuntimeError("no")


class OwnGroups:
    """A splitter that is not one of scikit-learn's, and takes groups."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        return GroupKFold(4).split(X, y, groups)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 4


def says_nothing(certificate: Any, why: str) -> None:
    claims = [c for c in certificate.claims if c.name.startswith("generalisation")]
    assert [c.status for c in claims] == [Status.UNDECIDED]
    assert why in claims[0].statement
    assert "selection excess" not in certificate


def counts_groups(certificate: Any) -> None:
    """The claim is about groups of coin flips, and true of them: 5 groups are too few to tell much."""
    [claim] = [c for c in certificate.claims if c.name.startswith("generalisation")]
    assert claim.status is Status.UNINFORMATIVE
    assert "20 groups, independent of each other" in claim.statement
    assert claim.low <= 0.5 <= claim.high


def test_the_sentence_is_there_where_nothing_is_wrong() -> None:
    model = GridSearchCV(TREE, GRID, cv=KFold(4)).fit(X, COINS)
    assert model.certificate_["generalisation"].status is Status.HOLDS


@pytest.mark.parametrize("model", [KNeighborsClassifier(), neighbors.KNeighborsClassifier()])
def test_the_score_of_neighbours_is_an_accuracy(model: Any) -> None:
    result = cross_validate(model, X, COINS, cv=KFold(4))
    assert result.certificate_["generalisation"].status is Status.HOLDS


def test_a_test_set_with_the_same_row_many_times() -> None:
    folds = [(np.arange(300), np.repeat(np.arange(300, 310), 300))]
    says_nothing(cross_validate(TREE, X, COINS, cv=folds).certificate_, "the same row twice")
    model = GridSearchCV(TREE, GRID, cv=folds).fit(X, COINS)
    says_nothing(model.certificate_, "the same row twice")
    says_nothing(surefit.verify(model, X, COINS), "the same row twice")


def test_a_part_that_was_fitted_on_all_rows() -> None:
    known = FrozenEstimator(DecisionTreeClassifier().fit(X, COINS))
    result = cross_validate(known, X, COINS, cv=KFold(4), scoring="accuracy")
    assert result["test_score"].tolist() == [1.0] * 4
    says_nothing(result.certificate_, "fitted beforehand")
    curve = learning_curve(known, X, COINS, cv=KFold(4), scoring="accuracy", train_sizes=[1.0])
    says_nothing(curve.certificate_, "fitted beforehand")
    model = HoldOut(make_pipeline(known), scoring="accuracy", random_state=0).fit(X, COINS)
    says_nothing(model.certificate_, "fitted beforehand")
    says_nothing(surefit.verify(model, X, COINS), "fitted beforehand")


def test_a_candidate_that_was_fitted_on_all_rows() -> None:
    known = FrozenEstimator(DecisionTreeClassifier().fit(X, COINS))
    steps, grid = Pipeline([("tree", TREE)]), {"tree": [TREE, known]}
    model = GridSearchCV(steps, grid, cv=KFold(4), scoring="accuracy").fit(X, COINS)
    says_nothing(model.certificate_, "tree=FrozenEstimator(...) was fitted beforehand")


def test_groups_whatever_the_splitter() -> None:
    groups = np.repeat(np.arange(20), N // 20)
    result = cross_validate(TREE, X, COINS, groups=groups, cv=OwnGroups())
    counts_groups(result.certificate_)
    curve = learning_curve(TREE, X, COINS, groups=groups, cv=OwnGroups(), train_sizes=[1.0])
    counts_groups(curve.certificate_)
    for cv in (OwnGroups(), GroupKFold(4)):
        model = GridSearchCV(TREE, GRID, cv=cv).fit(X, COINS, groups=groups)
        counts_groups(model.certificate_)
        model.cv = KFold(4)  # too late
        counts_groups(surefit.verify(model, X, COINS))
    torn = KFold(4, shuffle=True, random_state=0)
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        result = cross_validate(TREE, X, COINS, groups=groups, cv=torn)
    says_nothing(result.certificate_, "4 of the 4 folds test rows of groups")
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        curve = learning_curve(TREE, X, COINS, groups=groups, cv=torn, train_sizes=[1.0])
    says_nothing(curve.certificate_, "4 of the 4 folds test rows of groups")


def test_an_error_score_is_not_a_score() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cross_validate(Mute(), X, COINS, cv=KFold(4), scoring="accuracy", error_score=1.0)
    says_nothing(result.certificate_, "could not be fitted or scored")


def test_a_candidate_with_a_score_of_its_own() -> None:
    steps, grid = Pipeline([("tree", TREE)]), {"tree": [TREE, Boaster()]}
    model = GridSearchCV(steps, grid, cv=KFold(4)).fit(X, COINS)
    says_nothing(model.certificate_, "could not be fitted or scored")
    kept = HoldOut(steps, grid, random_state=0).fit(X, COINS)
    says_nothing(kept.certificate_, "could not be fitted or scored")


def test_a_range_that_no_error_keeps() -> None:
    rare = np.zeros(N, dtype=int)
    rare[0] = 1  # not among the test rows, where no error is made
    result = cross_validate(TREE, X, rare, cv=HALVES, loss_range=(0.0, 0.01))
    says_nothing(result.certificate_, "is 0 or 1")


def test_an_accuracy_with_weights_of_its_own() -> None:
    weighted = make_scorer(accuracy_score, sample_weight=np.linspace(0.0, 1.0, 300))
    result = cross_validate(TREE, X, COINS, cv=HALVES, scoring=weighted)
    says_nothing(result.certificate_, "not the mean of 0-1 losses")


@pytest.mark.parametrize("candidates", [1, 2])
def test_leave_one_out_after_a_choice_of_k(candidates: int) -> None:
    grid = {"n_neighbors": [1, 2][:candidates]}
    labels = (X[:, 0] > 0).astype(int)
    model = GridSearchCV(KNeighborsClassifier(), grid, cv=KFold(4)).fit(X, labels)
    claim = surefit.verify(model, X, labels)["best_estimator_: leave-one-out error"]
    # 300 rows bound the error to 0.25 by this theorem: true, and too wide to be a success
    assert claim.status is (Status.UNINFORMATIVE if candidates == 1 else Status.UNDECIDED)


# -------------------------------------------------------------------- attributes that no fit leaves


def refused(model: Any, **attributes: Any) -> str:
    """What verify says of a copy with other attributes; nothing but these is claimed of it."""
    forged = copy.copy(model)
    vars(forged).update(attributes)
    found = surefit.verify(forged, X, COINS)
    assert [claim.name for claim in found.failed][:1] == ["attributes"]
    return str(found["attributes"].statement)


@pytest.mark.parametrize("value", [np.nan, 1, np.full(N, np.nan), np.zeros(N), np.arange(3)])
def test_groups_and_times_are_whole_numbers_of_rows(value: Any) -> None:
    """They name the data, too: that is not what is said first, nor an error of numpy's."""
    model = HoldOut(TREE, random_state=0).fit(X, COINS)
    for name in ("groups_", "time_"):
        said = refused(model, **{name: value}).partition(": ")[2]
        assert said in (
            f"{name} must be one whole number for each of the {N} rows",
            f"{name} holds NaN",
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta", 0.0),
        ("delta", "0.05"),
        ("bound", ""),
        ("bound", "hoeffdingx"),
        ("loss_range", (1.0, 0.0)),
        ("loss_range", (0.0,)),
        ("rows_are_independent", "yes"),
    ],
)
def test_a_promise_is_made_of_what_the_parameters_take(name: str, value: Any) -> None:
    for model in (HoldOut(TREE, random_state=0), GridSearchCV(TREE, GRID, cv=3)):
        promise = model.fit(X, COINS).promise_
        assert f"promise_['{name}']" in refused(model, promise_=promise | {name: value})
        without = {key: kept for key, kept in promise.items() if key != name}
        assert f"promise_['{name}']" in refused(model, promise_=without)


def test_the_sentence_states_the_promised_level() -> None:
    """Another level in the promise is another sentence, and a true one: its interval is that of the level."""
    model = HoldOut(TREE, random_state=0).fit(X, COINS)
    forged = copy.copy(model)
    forged.promise_ = model.promise_ | {"delta": 0.5}
    claim = surefit.verify(forged, X, COINS)["generalisation"]
    assert claim.statement.startswith("with probability 50 %")
    honest = HoldOut(TREE, random_state=0, delta=0.5).fit(X, COINS).certificate_["generalisation"]
    assert claim == honest


def test_whether_test_rows_were_stratified_is_what_cv_says() -> None:
    model = GridSearchCV(TREE, GRID, cv=3).fit(X, COINS)
    forged = model.promise_ | {"sampling": not model.promise_["sampling"]}
    assert "promise_['sampling']" in refused(model, promise_=forged)


@pytest.mark.parametrize("refit", [True, False])
def test_a_model_is_there_where_refit_says_so(refit: bool) -> None:
    model = GridSearchCV(TREE, GRID, cv=3, refit=refit).fit(X, COINS)
    assert surefit.verify(model, X, COINS).ok
    there = "there is a" if refit else "there is no"
    assert f"{there} best_estimator_ under refit={not refit}" in refused(model, refit=not refit)


def test_a_hold_out_of_another_seed_is_noticed() -> None:
    model = HoldOut(TREE, random_state=1).fit(X, COINS)
    assert surefit.verify(model, X, COINS).ok
    model.random_state = 0
    found = surefit.verify(model, X, COINS)
    assert [claim.name for claim in found.failed] == ["split"]
    assert found["split"].statement == "the hold-out is that of seed 1, and random_state is 0"
    says_nothing(found, "not those that were drawn")


def test_parameters_of_the_model_are_those_that_were_asked_for() -> None:
    for model in (HoldOut(TREE, random_state=0), GridSearchCV(TREE, GRID, cv=3)):
        model.fit(X, COINS)
        other = clone(TREE).set_params(criterion="entropy")
        said = "best_estimator_ has criterion='gini', and was asked for criterion='entropy'"
        assert said in refused(model, estimator=other)


def test_folds_are_those_of_a_number_of_folds() -> None:
    """One row tested in another fold, one row not at all, and the folds of another number."""
    model = GridSearchCV(TREE, GRID, cv=3).fit(X, COINS)
    moved = model.folds_.copy()
    moved[-1] -= 1
    for folds in (moved, model.folds_[:-1], np.roll(model.folds_, 1)):
        forged = copy.copy(model)
        forged.folds_ = folds
        claim = surefit.verify(forged, X, COINS)["folds"]
        assert claim.status is Status.FAILS
        assert claim.statement == "the recorded folds are not those that cv=3 gives"
    model.cv = 4
    assert surefit.verify(model, X, COINS)["folds"].status is Status.FAILS


def test_results_have_an_entry_for_each_candidate() -> None:
    kept = HoldOut(TREE, random_state=0).fit(X, COINS)
    scores = np.repeat(kept.results_["test_score"], 2)
    assert "results_" in refused(kept, results_=kept.results_ | {"test_score": scores})
    search = GridSearchCV(TREE, GRID, cv=3).fit(X, COINS)
    longer = search.cv_results_ | {"split0_test_score": np.zeros(3)}
    assert "cv_results_" in refused(search, cv_results_=longer)


def test_scores_are_said_to_agree_to_the_largest_difference() -> None:
    """Test sets of 2 rows and of 1: 0.4 is nearer to one row of two than 0.5 is to one row of one."""
    found = scores_claim(
        np.array([[1.0, 0.4]]),
        np.array([[0.6, 0.9]]),
        [2, 1],
        "scores",
        classifier=True,
        once_more=None,
    )
    assert found.status is Status.HOLDS
    assert found.statement.endswith("agree to 5.0e-01")
