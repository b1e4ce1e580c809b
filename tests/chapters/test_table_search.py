"""The plan, the search within a budget, and what is said of candidates that were not tried."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier

from surefit.data import TableError, load
from surefit.table import Watch, families, fit_table, plan, verify_table
from surefit.table.losses import TableLoss
from surefit.table.plan import FAMILIES, Candidate
from surefit.table.prepare import draw_split, folds_of, new_encoder, rows_of
from surefit.table.search import Fold, Trial, best_of, fit_quietly, search


def _folds(n: int = 120, noise: float = 0.5) -> Any:
    """Five folds of made rows, and what was asked of them."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 3))
    y = (X[:, 0] + noise * generator.normal(size=n) > 0).astype(int)
    asked: list[int] = []

    def fold(k: int) -> Fold:
        asked.append(k)
        valid = np.arange(n) % 5 == k
        return Fold(X[~valid], y[~valid], X[valid], y[valid])

    return fold, asked


def _search(candidates: list[Candidate], watch: Watch, **options: Any) -> list[Trial]:
    return search(candidates, _folds()[0], 5, TableLoss("classification"), watch, **options)


def test_the_first_of_each_family_comes_first() -> None:
    for task, kinds in FAMILIES.items():
        candidates = plan(task)
        assert [c.family for c in candidates[: len(kinds)]] == list(families(task))
        assert len(candidates) == sum(len(kind.values) for kind in kinds.values())
        assert len({c.name for c in candidates}) == len(candidates)


def test_a_plan_does_not_depend_on_the_order_of_names() -> None:
    assert plan("classification", ["knn", "logistic"]) == plan(
        "classification", ("logistic", "knn")
    )


@pytest.mark.parametrize(
    ("task", "names", "words"),
    [
        ("classification", ["forest"], "'forest'"),
        ("classification", ["lasso"], "only for regression"),
        ("regression", ["logistic"], "only for classification"),
        ("regression", [], "none"),
    ],
)
def test_families_that_there_are_not(task: str, names: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan(task, names)


def test_candidates_are_made_as_they_say() -> None:
    for task in FAMILIES:
        for candidate in plan(task):
            model = candidate.make(columns=4)
            kept = model.get_params()
            assert all(kept[key] == value for key, value in candidate.params.items())
            assert type(model).__name__ == candidate.name.partition("(")[0]
            if candidate.family == "kernel":
                assert kept["gamma"] == 0.25


def test_scores_are_means_over_the_folds() -> None:
    fold, _ = _folds()
    candidates = plan("classification", ["logistic", "knn"])
    for trial in _search(candidates, Watch(1e9)):
        losses = []
        for k in range(5):
            part = fold(k)
            fitted = fit_quietly(trial.candidate, part.X, part.y)
            losses.append((fitted.predict(part.X_valid) != part.y_valid).mean())
        assert trial.tried
        assert trial.loss == pytest.approx(np.mean(losses), abs=1e-15)


def test_preprocessing_is_learnt_inside_the_folds() -> None:
    """The encoder of a fold has the means of its fitting rows, not of the rows it is judged on."""
    table = load("diabetes")
    model = fit_table(table, "progression", models=["linear"], reference=False)
    rows = rows_of(table, model.schema, None, 0.25, 0)
    fold = folds_of(rows, model.schema, rows.y, 5, 0)(2)
    numbers = [k for k, f in enumerate(model.encoder_.features_) if f["kind"] == "numeric"]
    assert np.abs(fold.X[:, numbers].mean(axis=0)).max() < 1e-12
    assert np.abs(fold.X_valid[:, numbers].mean(axis=0)).max() > 1e-3
    assert len(fold.X) + len(fold.X_valid) == len(rows.train)
    assert not np.isin(rows.holdout, rows.train).any()


def test_ties_go_to_the_earlier() -> None:
    trials = [Trial(c, losses=[0.2], status="tried") for c in plan("classification", ["logistic"])]
    trials[0].losses = [0.3]
    trials[3].losses, trials[3].status = [0.0], "stopped: no time left after 1 of 5 folds"
    assert best_of(trials) is trials[1]
    assert best_of(trials[:0]) is None
    assert trials[3].loss == math.inf


class Budget(Watch):
    """A clock that has run out for all but the first ``calls`` questions."""

    def __init__(self, calls: int) -> None:
        super().__init__(1e9)
        self.calls = calls

    def left(self, share: float = 1.0) -> float:
        self.calls -= 1
        return 1e9 if self.calls >= 0 else -1.0


@pytest.mark.parametrize("calls", [0, 3, 7, 20])
def test_a_budget_that_runs_out(calls: int) -> None:
    """Every candidate is tried or says why not; none that was not tried can be chosen."""
    trials = _search(plan("classification", ["logistic", "svm"]), Budget(calls))
    for trial in trials:
        if not trial.tried:
            assert trial.status.startswith(("left out: ", "stopped: ", "not reached: "))
    best = best_of(trials)
    assert best is None or best.tried
    assert not trials[-1].tried


def test_a_candidate_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Candidate.make

    def broken(self: Candidate, **options: Any) -> Any:
        if self.family == "svm":
            raise ValueError("no solver today\nand more")
        return make(self, **options)

    monkeypatch.setattr(Candidate, "make", broken)
    table = load("iris")
    model = fit_table(table, "species", models=["svm", "logistic"], reference=False)
    status = {record["family"]: record["status"] for record in model.candidates_}
    assert status == {"logistic": "tried", "svm": "failed: no solver today"}
    assert model.certificate_.stopped.startswith("the time was up, or a candidate could not")
    assert verify_table(model, table).ok
    with pytest.raises(TableError, match="no solver today"):
        fit_table(table, "species", models=["svm"], reference=False)


def test_interrupted_before_anything_was_tried() -> None:
    watch = Watch(1e9)
    watch.interrupt()
    trials = _search(plan("classification", ["logistic"]), watch)
    assert {trial.status for trial in trials} == {"not reached: interrupted"}
    model = fit_table(load("iris"), "species", models=["logistic"], reference=False, watch=watch)
    assert model.interrupted_
    assert model.candidates_[0]["status"] == "fitted without a search"
    assert model.certificate_.stopped == "the user interrupted it"
    assert verify_table(model, load("iris"), document=model.document()).ok


def test_work_that_may_be_left_out() -> None:
    watch = Watch(1e9)
    assert watch.optional("sum", lambda: 1 + 1) == 2
    assert watch.optional("long", lambda: 3, seconds=1e12) is None

    def broken_off() -> None:
        assert watch.stoppable
        raise KeyboardInterrupt

    assert watch.optional("curve", broken_off) is None
    assert not watch.stoppable
    assert watch.optional("later", lambda: 4) is None
    assert watch.skipped == [
        "long: no time left",
        "curve: interrupted",
        "later: interrupted",
    ]
    with pytest.raises(KeyboardInterrupt):
        watch.interrupt()


@pytest.mark.parametrize("seconds", [1e-9, 0.05, 0.2, 0.5])
def test_whatever_the_time_a_model_comes_out_and_verifies(seconds: float) -> None:
    """Curves cut short and pictures left out are no forgeries."""
    table = load("breast-cancer")
    model = fit_table(table, "diagnosis", time=seconds)
    assert model.certificate_.ok
    outcome = verify_table(model, table, document=model.document(), quick=True)
    assert outcome.ok, outcome.certificate.failed


def test_the_reference_is_gradient_boosting_on_the_same_rows() -> None:
    """On a table of numbers it is scikit-learn's own, measured on the hold-out, counted and not shipped."""
    table = load("breast-cancer")
    model = fit_table(table, "diagnosis", models=["logistic"])
    row = model.candidates_[-1]
    assert (row["name"], row["certified"], row["tried"]) == ("HistGradientBoosting", False, False)
    rows = rows_of(table, model.schema, list(model.classes_), 0.25, 0)
    encoder = new_encoder(model.schema).fit(rows.table.frame[rows.train])
    X = encoder.transform(rows.table.frame)
    train, held = draw_split(len(X), 0.25, 0)
    peer = HistGradientBoostingClassifier(random_state=0).fit(X[train], rows.y[train])
    wrong = (peer.predict(X[held]) != rows.y[held]).mean()
    assert row["holdout"]["loss"] == pytest.approx(wrong, abs=1e-15)
    assert model.chosen_ < len(model.candidates_) - 1
    assert verify_table(model, table, quick=True).ok


def test_learning_and_validation_curves() -> None:
    model = fit_table(load("breast-cancer"), "diagnosis", models=["logistic"], reference=False)
    learning, validation = (model.evidence_[f"{name}_curve"] for name in ("learning", "validation"))
    assert learning["rows"] == sorted(set(learning["rows"]))
    assert len(learning["rows"]) == len(learning["train"]) == len(learning["validation"]) >= 2
    assert validation["values"] == sorted(validation["values"])
    scores = {record["value"]: record["score"] for record in model.candidates_}
    assert_array_equal(validation["validation"], [scores[v] for v in validation["values"]])
    assert validation["chosen"] == model.candidates_[model.chosen_]["value"]
    assert min(validation["validation"]) == model.candidates_[model.chosen_]["score"]
