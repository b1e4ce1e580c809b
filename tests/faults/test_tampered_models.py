"""Tampered models, certificates and tables: each change is refused, and the untouched ones verify.

A forger is allowed everything but the table: the file is loaded, changed and checked again, without the
checksum in the way. A change counts as noticed when ``verify_table`` finds a claim that fails.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.forged import SEED, Change, fitted, resealed

import surefit
from surefit import Certificate, Claim
from surefit.data import load, read_table
from surefit.linear_model import LogisticRegression
from surefit.neighbors import KNeighborsClassifier
from surefit.table import verify_table
from surefit.table.prepare import rows_of


def _set(name: str, value: Any) -> Change:
    def change(model: Any) -> None:
        setattr(model, name, value(getattr(model, name)) if callable(value) else value)

    return change


def _at(*path: Any) -> Callable[[Any], Change]:
    """Replace what lies at a path of keys and attribute names by a function of it."""

    def with_value(value: Any) -> Change:
        def change(model: Any) -> None:
            place = getattr(model, path[0])
            for key in path[1:-1]:
                place = place[key]
            old = place[path[-1]]
            place[path[-1]] = value(old) if callable(value) else value
            assert place[path[-1]] != old

        return change

    return with_value


def _del(*path: Any) -> Change:
    def change(model: Any) -> None:
        place = getattr(model, path[0])
        for key in path[1:-1]:
            place = place[key]
        del place[path[-1]]

    return change


def _feature(kind: str, key: str, value: Any) -> Change:
    """Change an entry of the first feature of a kind in the encoder."""

    def change(model: Any) -> None:
        feature = next(f for f in model.encoder_.features_ if f["kind"] == kind)
        feature[key] = value(feature[key]) if callable(value) else value

    return change


def _refit_on(rows: str, **params: Any) -> Change:
    """Another estimator in the place of the shipped one: fitted on other rows, or with other parameters."""

    def change(model: Any) -> None:
        table = load("mortgages")
        found = rows_of(table, model.schema, list(model.classes_), model.holdout, model.seed)
        used = np.arange(len(found.y)) if rows == "all" else getattr(found, rows)
        X = model.encoder_.transform(found.table.frame[used])
        model.model_ = LogisticRegression(**{"C": model.model_.C, **params}).fit(X, found.y[used])

    return change


def _neighbours(model: Any) -> None:
    """The nearest neighbours of the same rows with another k, sealed by its own certificate."""
    table = load("iris")
    rows = rows_of(table, model.schema, list(model.classes_), model.holdout, model.seed)
    X = model.encoder_.transform(rows.table.frame)
    k = 1 if model.model_.n_neighbors != 1 else 3
    model.model_ = KNeighborsClassifier(n_neighbors=k).fit(X, rows.y)


def _swap_classes(model: Any) -> None:
    model.classes_ = model.classes_[::-1].copy()


def _seen_group(model: Any) -> None:
    groups = model.evidence_["fairness"][0]["groups"]
    rate = groups[0]["rates"]["selection_rate"]
    rate["value"] = rate["value"] + 0.01


def _cut_candidate(model: Any) -> None:
    place = next(k for k in range(len(model.candidates_)) if k != model.chosen_)
    del model.candidates_[place]
    model.chosen_ -= place < model.chosen_


def _other(model: Any) -> int:
    return next(k for k, r in enumerate(model.candidates_) if k != model.chosen_ and r["tried"])


def _candidate(key: str, value: Any, which: str = "other") -> Change:
    def change(model: Any) -> None:
        record = model.candidates_[_other(model) if which == "other" else model.chosen_]
        record[key] = value(record[key]) if callable(value) else value

    return change


def _choose_other(model: Any) -> None:
    model.chosen_ = _other(model)


def _doubled_scale(model: Any) -> None:
    """Coefficients of the picture doubled, and a scale that explains it."""
    model.scale_ = 2.0
    for row in model.evidence_["coefficients"]:
        for key in ("value", "low", "high"):
            row[key] = None if row[key] is None else 2.0 * row[key]


def _hidden_drawing(model: Any) -> None:
    """A picture taken away, without a word that it was left out."""
    del model.evidence_["remedies"]


def _inner_gap(model: Any) -> None:
    """The estimator's own certificate states another gap, and the picture's line follows it."""
    claims = []
    for claim in model.model_.certificate_.claims:
        record = claim.to_dict()
        if claim.name == "duality gap":
            record["observed"] = claim.observed + 0.1
            model.evidence_["objective"]["lower_bound"] -= 0.1
        claims.append(Claim.from_dict(record))
    old = model.model_.certificate_
    model.model_.certificate_ = Certificate(tuple(claims), old.data_id, old.stopped, old.about)


def _nudged_along(model: Any) -> None:
    model.model_.coef_ = model.model_.coef_ * (1 + 1e-3)


MODEL: dict[str, Change] = {
    # the estimator
    "coefficients times 1.001": _nudged_along,
    "coefficients with the other sign": lambda m: setattr(m.model_, "coef_", -m.model_.coef_),
    "one coefficient set to 0": lambda m: m.model_.coef_.__setitem__((0, 0), 0.0),
    "intercept moved": lambda m: setattr(m.model_, "intercept_", m.model_.intercept_ + 1e-2),
    "fitted on all rows": _refit_on("all"),
    "fitted on the hold-out": _refit_on("holdout"),
    "fitted with another C": _refit_on("train", C=0.5),
    "another C stated": lambda m: setattr(m.model_, "C", 2 * m.model_.C),
    "classes of the estimator swapped": lambda m: setattr(
        m.model_, "classes_", m.model_.classes_[::-1].copy()
    ),
    "the estimator's own certificate": _inner_gap,
    # the encoder
    "a mean": _feature("numeric", "mean", lambda x: x + 0.1),
    "a scale": _feature("numeric", "scale", lambda x: 2 * x),
    "a median": _feature("numeric", "median", lambda x: x + 1.0),
    "whole numbers or not": _feature("numeric", "integer", lambda x: not x),
    "the name of a feature": _feature("numeric", "name", "harmless"),
    "the column of a feature": _feature("numeric", "column", "harmless"),
    "a category": _feature("category", "category", "never"),
    "a kind of feature": _feature("category", "kind", "numeric"),
    "known categories": lambda m: next(iter(m.encoder_.known_.values())).append("new"),
    "order of categories": lambda m: next(iter(m.encoder_.categories_.values())).reverse(),
    "order of blocks": lambda m: setattr(
        m.encoder_, "blocks_", dict(reversed(list(m.encoder_.blocks_.items())))
    ),
    "places of a block": lambda m: m.encoder_.blocks_.update(
        {name: m.encoder_.blocks_[other] for name, other in [list(m.encoder_.blocks_)[:2]]}
    ),
    "a column less": lambda m: (m.encoder_.specs_.pop(), m.encoder_.blocks_.popitem()),
    # the schema
    "a role": _at("schema_", "columns", 0, "role")("ignored"),
    "a leak score": _at("schema_", "columns", 0, "leak")(0.999),
    "a count of missing values": _at("schema_", "columns", 0, "missing")(7),
    "a count of distinct values": _at("schema_", "columns", 0, "distinct")(7),
    "a note on a column": _at("schema_", "columns", 0, "note")("all is well"),
    "a column taken out of the schema": lambda m: m.schema_["columns"].pop(),
    "the target of the schema": _at("schema_", "target")("single"),
    "the classes of the schema": _at("schema_", "classes")(lambda c: c[::-1]),
    "the task of the schema": _at("schema_", "task")("regression"),
    "the sensitive columns of the schema": _at("schema_", "sensitive")([]),
    "notes of the schema": _at("schema_", "notes")([{"what": "a", "value": "b", "how": "c"}]),
    "a note to the reader": _at("data_", "notes")(lambda notes: [*notes, "checked by an expert"]),
    "number of rows": _at("data_", "rows")(23_800),
    "number of columns": _at("data_", "columns")(15),
    "rows of the split": _set("n_rows_", 23_800),
    "values read as missing": _at("parsing_", "missing")(lambda marks: [*marks, "no"]),
    "columns of the table": lambda m: m.columns_.pop(),
    # what was asked for
    "classes swapped": _swap_classes,
    "share of the hold-out": _set("holdout", 0.3),
    "seed": _set("seed", SEED + 1),
    "delta": _set("delta", 0.01),
    "no sensitive column": _set("sensitive", []),
    "a sensitive column that the model reads": _set("sensitive", ["african_american", "single"]),
    "an immutable column": _set("immutable", ["payment_income"]),
    "another positive class": _set("positive", "no"),
    "a positive class that is none": _set("positive", "approved"),
    "no positive class": _set("positive", None),
    "refit": _set("refit", True),
    "another target": _set("target", "single"),
    "another task": _set("task", "regression"),
    "families": _set("models", ["logistic"]),
    "more families": _set("models", ["logistic", "knn", "svm"]),
    "roles": _set("roles_", {"single": "ignored"}),
    "centre of the target": _set("centre_", 1.0),
    "scale of the target": _doubled_scale,
    "width of the loss": _set("loss_width_", 0.5),
    # the log of candidates
    "a candidate cut": _cut_candidate,
    "candidates in another order": _set("candidates_", lambda c: c[::-1]),
    "a candidate twice": _set("candidates_", lambda c: [*c, c[-1]]),
    "a candidate that was never planned": _set(
        "candidates_", lambda c: [*c, {**c[-1], "certified": False, "name": "Better"}]
    ),
    "a parameter of a candidate": _candidate("value", 3.0),
    "parameters of a candidate": _candidate("params", {"C": 3.0}),
    "a family of a candidate": _candidate("family", "svm"),
    "a worse score for a rival": _candidate("score", lambda s: s + 0.05),
    "a better score for the chosen": _candidate("score", lambda s: s - 0.05, "chosen"),
    "a rival that was not tried": _candidate("tried", False),
    "a rival that failed": _candidate("status", "failed: singular"),
    "a rival left out but scored": lambda m: m.candidates_[_other(m)].update(
        tried=False, status="left out: no time"
    ),
    "a rival's seconds": _candidate("seconds", -1.0),
    "the unit of a score": _candidate("score_name", "regret"),
    "loss on the hold-out": lambda m: m.candidates_[m.chosen_]["holdout"].update(loss=0.01),
    "upper limit on the hold-out": lambda m: m.candidates_[m.chosen_]["holdout"].update(high=0.1),
    "no hold-out for the chosen": _candidate("holdout", None, "chosen"),
    "the chosen one": _choose_other,
    # fingerprints and the end of the fit
    "fingerprint of the rows": _set("raw_id_", "0" * 32),
    "fingerprint of the matrix": _set("matrix_id_", "0" * 24),
    "why it stopped": _set(
        "certificate_",
        lambda c: Certificate(c.claims, c.data_id, "the user interrupted it", c.about),
    ),
    "data of the certificate": _set(
        "certificate_", lambda c: Certificate(c.claims, "0" * 32, c.stopped, c.about)
    ),
    "what the certificate is about": _set(
        "certificate_", lambda c: Certificate(c.claims, c.data_id, c.stopped, "a perfect model")
    ),
    "no claims in the certificate": _set(
        "certificate_", lambda c: Certificate((), c.data_id, c.stopped, c.about)
    ),
    "a claim of the certificate twice": _set(
        "certificate_",
        lambda c: Certificate((*c.claims, c.claims[0]), c.data_id, c.stopped, c.about),
    ),
    "left out, says the file": _set("skipped_", ["fairness: no time left"]),
    # the pictures
    "roc": _at("evidence_", "roc", "tpr", 3)(lambda x: x + 0.01),
    "area under roc": _at("evidence_", "roc", "auc")(0.99),
    "precision and recall": _at("evidence_", "pr", "precision", 3)(lambda x: x - 0.01),
    "base rate": _at("evidence_", "pr", "base")(0.5),
    "confusion": _at("evidence_", "confusion", "counts", 0, 0)(lambda x: x + 1),
    "labels of the confusion": _at("evidence_", "confusion", "labels")(lambda x: x[::-1]),
    "calibration": _at("evidence_", "calibration", 0, "rate")(lambda x: x + 0.01),
    "robustness": _at("evidence_", "robustness", "certified_accuracy", 2)(lambda x: x + 0.01),
    "words on robustness": _at("evidence_", "robustness", "words")("nothing can go wrong"),
    "rate of a group": _seen_group,
    "gap between groups": _at("evidence_", "fairness", 0, "gaps", "independence", "gap")(0.0),
    "group that was abstained on": _at("evidence_", "fairness", 0, "groups", 0, "abstained")(True),
    "proxies": _at("evidence_", "fairness", 0, "proxies", "columns", 0, "strength")(0.0),
    "coefficient": _at("evidence_", "coefficients", 0, "value")(lambda x: 1.01 * x),
    "interval of a coefficient": _at("evidence_", "coefficients", 0, "low")(lambda x: x - 0.1),
    "objective": _at("evidence_", "objective", "values", -1)(lambda x: 0.99 * x),
    "bound of the objective": _at("evidence_", "objective", "lower_bound")(lambda x: x + 1.0),
    "learning curve": _at("evidence_", "learning_curve", "validation", 0)(lambda x: x + 0.1),
    "validation curve": _at("evidence_", "validation_curve", "validation", 0)(lambda x: x + 0.1),
    "a remedy": _at("evidence_", "remedies", 0, "error")(lambda x: x + 0.1),
    "a picture taken away": _hidden_drawing,
    "no fairness picture": _del("evidence_", "fairness"),
    "no robustness picture": _del("evidence_", "robustness"),
    "a picture of something else": lambda m: m.evidence_.update(approval={"by": "everybody"}),
}


# only the search, made again, can tell these
SEARCHED = {
    "a worse score for a rival",
    "a better score for the chosen",
    "learning curve",
    "validation curve",
}


def test_untouched_models_verify() -> None:
    for name in ("mortgages", "diabetes", "neighbours", "visits", "years"):
        table, model = fitted(name)
        assert verify_table(model, table, document=model.document()).ok
        assert surefit.verify(model, table).ok


@pytest.mark.parametrize("what", MODEL)
def test_a_changed_model_is_refused(what: str) -> None:
    table, model = fitted("mortgages")
    changed = copy.deepcopy(model)
    MODEL[what](changed)
    assert not verify_table(changed, table, quick=what not in SEARCHED).ok


REGRESSION: dict[str, Change] = {
    "centre": _set("centre_", lambda x: x + 1.0),
    "scale": _set("scale_", lambda x: 1.01 * x),
    "width of the loss": _set("loss_width_", lambda x: 2 * x),
    "coefficients": lambda m: setattr(m.model_, "coef_", 1.01 * m.model_.coef_),
    "residuals": _at("evidence_", "residuals", "residual", 0)(lambda x: x + 5.0),
    "histogram": _at("evidence_", "residuals", "histogram", "counts", 3)(lambda x: x + 1),
    "score": _candidate("score", lambda x: x + 0.01),
    "loss on the hold-out": lambda m: m.candidates_[m.chosen_]["holdout"].update(loss=1.0),
    "prediction interval": resealed(
        lambda m: next(
            c for c in m.sections_["generalisation"] if c["name"] == "prediction interval"
        ).update(statement="with probability 95 %, all is well")
    ),
    "sensitivity": resealed(
        lambda m: next(c for c in m.sections_["robustness"]).update(observed=0.0)
    ),
}


@pytest.mark.parametrize("what", REGRESSION)
def test_a_changed_regression_is_refused(what: str) -> None:
    table, model = fitted("diabetes")
    changed = copy.deepcopy(model)
    REGRESSION[what](changed)
    assert not verify_table(changed, table).ok


GROUPED: dict[str, Change] = {
    "no group": _set("group", None),
    "another group": _set("group", "ward"),
    "independent rows instead": lambda m: (
        setattr(m, "group", None),
        setattr(m, "rows_are_independent", True),
    ),
    "by time as well": _set("time_column", "day"),
    "groups as features": lambda m: m.roles_.update(patient="categorical"),
    "fewer groups": _at("units_", "held_units")(lambda n: n - 1),
    "exact limits of single rows": _at("units_", "single")(True),
    "seed": _set("seed", SEED + 1),
    "fitted on all rows": lambda m: _whole(m, "visits"),
    "loss on the hold-out": lambda m: m.candidates_[m.chosen_]["holdout"].update(loss=0.01),
    "groups by a column that is not there": _set("group", "doctor"),
    "kind of the units": _at("units_", "kind")("copies"),
    "copies": _at("units_", "copies")(7),
    "copies in both parts": _at("units_", "shared")(7),
    "what is supposed of the groups": _at("units_", "assumed")("groups drawn by an auditor"),
    "a doubt": _at("units_", "why")("nothing is known"),
    "a word more on the units": lambda m: m.units_.update(approved="by everybody"),
    "loss of the constant": _at("constant_", "loss")(0.9),
    "what the constant is": _at("constant_", "value")("maybe"),
    "words on the constant": _at("constant_", "words")("'whatever'"),
    "better than the constant or not": _at("constant_", "better")(lambda found: not found),
    "no constant": _set("constant_", {}),
}
TIMED: dict[str, Change] = {
    "no time": _set("time_column", None),
    "another time": _set("time_column", "a"),
    "time as a feature": lambda m: m.roles_.update(day="numeric"),
    "share of the hold-out": _set("holdout", 0.3),
    "fitted on all rows": lambda m: _whole(m, "years"),
}


def _whole(model: Any, name: str) -> None:
    """The estimator fitted on the rows of both parts, the future and the tested groups among them."""
    table, _ = fitted(name)
    rows = rows_of(table, model.schema, list(model.classes_), model.holdout, model.seed)
    X = model.encoder_.transform(rows.table.frame)
    model.model_ = LogisticRegression(C=model.model_.C).fit(X, rows.y)


@pytest.mark.parametrize(
    ("name", "what"),
    [("visits", what) for what in GROUPED] + [("years", what) for what in TIMED],
)
def test_a_changed_split_is_refused(name: str, what: str) -> None:
    table, model = fitted(name)
    assert verify_table(model, table, quick=True).ok
    changed = copy.deepcopy(model)
    (GROUPED if name == "visits" else TIMED)[what](changed)
    assert not verify_table(changed, table, quick=True).ok


def test_groups_of_another_table_are_noticed() -> None:
    """Two patients merged into one: the same rows, other groups."""
    table, model = fitted("visits")
    frame = table.frame.with_columns(pl.col("patient").replace({"P001": "P000"}))
    assert not verify_table(model, read_table(frame), quick=True).ok


@pytest.mark.parametrize("value", [None, "certificate"])
def test_a_model_without_a_certificate_is_refused_in_words(value: Any) -> None:
    table, model = fitted("visits")
    changed = copy.deepcopy(model)
    del changed.certificate_
    if value is not None:
        changed.certificate_ = value
    [claim] = surefit.verify(changed, table).failed
    assert (
        claim.statement
        == "the model has no certificate_, so that no recorded claim can be compared"
    )


@pytest.mark.parametrize(
    "change",
    [
        _at("columns_", 0)("another"),
        _set("columns_", lambda names: [*names, names[-1]]),
        _at("schema_", "columns", 0)(lambda column: {**column, "name": "another"}),
        _set("parsing_", lambda record: {**record, "another": 0}),
        _set("chosen_", np.inf),
    ],
    ids=["another column", "a column twice", "a name in the schema", "parsing", "chosen"],
)
def test_what_cannot_be_read_is_a_claim_that_fails(change: Change) -> None:
    """Neither an error of polars nor one of another record gets through."""
    table, model = fitted("visits")
    changed = copy.deepcopy(model)
    change(changed)
    assert not surefit.verify(changed, table).ok


REFITTED: dict[str, Change] = {
    "another k": _neighbours,
    "no refit": _set("refit", False),
    "loss on the hold-out": lambda m: m.candidates_[m.chosen_]["holdout"].update(loss=0.0, low=0.0),
    "a claim on its error": resealed(
        lambda m: m.sections_["generalisation"].append(
            Claim.check(
                "generalisation", "the error is 0", surefit.Kind.STATISTICAL, 0.0, 1.0, "GEN-4"
            ).to_dict()
        )
    ),
}


@pytest.mark.parametrize("what", REFITTED)
def test_a_changed_refitted_model_is_refused(what: str) -> None:
    table, model = fitted("neighbours")
    changed = copy.deepcopy(model)
    REFITTED[what](changed)
    assert not verify_table(changed, table, quick=True).ok
