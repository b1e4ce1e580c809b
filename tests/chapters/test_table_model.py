"""A table model: reading, predicting, saving, and the document it writes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.linear_model import Ridge as SklearnRidge
from tests.forged import fitted

import surefit
from surefit.certificate import CertificateWarning
from surefit.data import TableError, load, read_table
from surefit.table import TableModel, fit_table, verify_table
from surefit.table.document import SCHEMA
from surefit.table.evidence import curves
from surefit.table.prepare import draw_split, rows_of


def test_predictions_from_every_kind_of_table(tmp_path: Path) -> None:
    table, model = fitted("mortgages")
    wanted = model.predict(table)
    table.frame.write_csv(tmp_path / "t.csv")
    table.frame.write_parquet(tmp_path / "t.parquet")
    columns = table.frame.to_dict(as_series=False)
    kinds = [table.frame, pd.DataFrame(columns), columns]
    for source in (*kinds, tmp_path / "t.csv", str(tmp_path / "t.parquet")):
        assert_array_equal(model.predict(source), wanted)
    chances = model.predict_proba(table)
    assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
    assert_array_equal(model.classes_[chances.argmax(axis=1)], wanted)


def test_it_is_the_model_of_a_pipeline_by_hand() -> None:
    """scikit-learn's logistic regression on the encoded training rows gives the same probabilities."""
    table, model = fitted("mortgages")
    rows = rows_of(table, model.schema, list(model.classes_), model.holdout, model.seed)
    X = model.encoder_.transform(rows.table.frame[rows.train])
    peer = SklearnLogistic(C=model.model_.C, tol=1e-10, max_iter=1000).fit(X, rows.y[rows.train])
    # both are within their tolerance of the one minimum
    assert_allclose(model.predict_proba(table), peer.predict_proba(model.encode(table)), atol=1e-5)
    wrong = (model.predict(table)[rows.holdout] != model.classes_[rows.y[rows.holdout]]).mean()
    assert model.candidates_[model.chosen_]["holdout"]["loss"] == pytest.approx(wrong, abs=1e-15)


def test_a_regression_predicts_in_the_unit_of_the_target() -> None:
    table = load("diabetes")
    model = fit_table(table, "progression", models=["linear"], reference=False)
    rows = rows_of(table, model.schema, None, model.holdout, model.seed)
    X = model.encoder_.transform(rows.table.frame[rows.train])
    known = rows.y[rows.train]
    peer = SklearnRidge(alpha=model.model_.alpha).fit(X, (known - known.mean()) / known.std())
    wanted = peer.predict(model.encode(table)) * known.std() + known.mean()
    assert_allclose(model.predict(table), wanted, rtol=1e-8)
    assert not model.has_probabilities
    assert model.loss_width_ == known.max() - known.min()


def test_saving_keeps_everything(tmp_path: Path) -> None:
    table, model = fitted("mortgages")
    model.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit")
    assert again.document() == model.document()
    assert again.get_params() == model.get_params()
    assert_array_equal(again.predict(table), model.predict(table))


def test_the_document_is_plain_and_says_it_all() -> None:
    for name in ("mortgages", "diabetes", "neighbours"):
        document = fitted(name)[1].document()
        assert json.loads(json.dumps(document, allow_nan=False)) == document
        assert document["schema"] == SCHEMA == "surefit.certificate/1"
        assert document["surefit"] == surefit.__version__
        assert set(document["claims"]) == {
            "optimality",
            "generalisation",
            "robustness",
            "fairness",
        }
        for claims in document["claims"].values():
            assert all(claim["means"] and claim["does_not"] for claim in claims)
        assert sum(candidate["chosen"] for candidate in document["candidates"]) == 1
        split = document["split"]
        assert split["train"] + split["holdout"] == document["data"]["rows"]


def test_the_verdict_quotes_the_numbers() -> None:
    _, model = fitted("mortgages")
    held = model.candidates_[model.chosen_]["holdout"]
    text = " ".join(model.document()["verdict"]["sentences"])
    for number in (held["loss"], held["low"], held["high"]):
        assert f"{100 * number:.1f} %" in text


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError, match="fit_table"):
        TableModel().predict({"x": [1.0]})


def _made(n: int = 200, seed: int = 0) -> dict[str, Any]:
    """Numbers, dates, words, an identifier, a constant, and holes."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 80, n)
    days = np.datetime64("2020-01-01") + generator.integers(0, 900, n)
    town = generator.choice(["Ulm", "Bonn", "Kiel"], n)
    late = (age / 40 + generator.normal(size=n) > 1.2) ^ (town == "Ulm")
    return {
        "id": [f"A{k:05d}" for k in range(n)],
        "age": [None if k % 17 == 0 else int(a) for k, a in enumerate(age)],
        "since": [str(day) for day in days],
        "town": [None if k % 23 == 0 else str(t) for k, t in enumerate(town)],
        "country": ["DE"] * n,
        "late": ["yes" if value else "no" for value in late],
    }


def test_columns_of_every_kind() -> None:
    columns = _made()
    model = fit_table(columns, "late", models=["logistic"], reference=False)
    roles = {column["name"]: column["role"] for column in model.document()["columns"]}
    assert roles == {
        "id": "identifier",
        "age": "numeric",
        "since": "date",
        "town": "categorical",
        "country": "constant",
    }
    used = {column["name"] for column in model.document()["columns"] if column["used"]}
    assert used == {"age", "since", "town"}
    assert verify_table(model, columns).ok
    new = {key: values[:3] for key, values in columns.items() if key != "late"}
    new["age"] = [None, None, None]
    new["town"] = ["Rom", None, "Ulm"]
    assert set(model.predict(new)) <= {"yes", "no"}


@pytest.mark.parametrize("n", [20, 23, 30, 45])
@pytest.mark.parametrize("target", ["late", "amount"])
def test_the_smallest_tables(n: int, target: str) -> None:
    """Few rows: candidates that need more are passed over, and little is claimed."""
    columns = {**_made(n), "amount": np.random.default_rng(3).normal(size=n).round(4)}
    model = fit_table(columns, target, sensitive=["town"], models=None, reference=True)
    assert model.certificate_.ok
    assert verify_table(model, columns, document=model.document()).ok


def test_rows_without_a_target_are_left_out_and_said() -> None:
    columns = _made()
    columns["late"] = [None if k < 30 else v for k, v in enumerate(columns["late"])]
    model = fit_table(columns, "late", models=["logistic"], reference=False)
    assert model.n_rows_ == 170
    assert model.data_["rows"] == 200
    assert any("rows left out: 30" in note for note in model.data_["notes"])
    assert verify_table(model, columns).ok
    assert len(model.predict(columns)) == 200


def test_several_sensitive_columns() -> None:
    columns = _made(600)
    columns["sex"] = ["f" if k % 2 else "m" for k in range(600)]
    model = fit_table(
        columns, "late", sensitive=["sex", "town"], models=["logistic"], reference=False
    )
    attributes = [record["attribute"] for record in model.evidence_["fairness"]]
    assert attributes[:2] == ["sex", "town"]
    groups = {group["group"] for group in model.evidence_["fairness"][1]["groups"]}
    assert groups == {"Bonn", "Kiel", "Ulm", "missing"}
    assert "town" not in model.encoder_.blocks_
    assert verify_table(model, columns).ok


def test_columns_named_twice_count_once() -> None:
    model = fit_table(
        _made(),
        "late",
        sensitive=["town", "town"],
        immutable=["age", "age"],
        models=["logistic"],
        reference=False,
    )
    assert (model.sensitive, model.immutable) == (["town"], ["age"])
    assert len(model.evidence_["fairness"]) == 1


def test_a_category_that_only_the_hold_out_has() -> None:
    """A column that is constant on the training rows encodes to nothing; nothing breaks down."""
    columns = {**_made(), "rare": np.full(200, "usual", dtype=object)}
    _, held = draw_split(200, 0.25, 0)
    columns["rare"][held[:4]] = "unusual"
    model = fit_table(
        columns,
        "late",
        sensitive=["town"],
        models=["logistic", "knn"],
        roles={"rare": "categorical"},
    )
    assert model.encoder_.blocks_["rare"] == []
    assert verify_table(model, columns, document=model.document()).ok


def test_no_numeric_column_no_adversary() -> None:
    table = load("admissions")
    model = fit_table(table, "admitted", sensitive=["gender"], models=["logistic"], reference=False)
    (claim,) = model.claims("robustness")
    assert claim.status.name == "UNDECIDED"
    assert "no numeric column may change" in claim.statement
    assert verify_table(model, table).ok


@pytest.mark.parametrize("family", ["logistic", "linear", "svm", "knn", "kernel"])
@pytest.mark.parametrize("name", ["breast-cancer", "wine"])
def test_every_family_of_classifiers(name: str, family: str) -> None:
    table = load(name)
    target = surefit.data.about(name)["target"]
    model = fit_table(table, target, models=[family], reference=False)
    assert model.certificate_.ok
    assert model.candidates_[model.chosen_]["family"] == family
    assert verify_table(model, table, document=model.document()).ok


@pytest.mark.parametrize("family", ["linear", "lasso", "svm", "knn", "kernel"])
def test_every_family_of_regressions(family: str) -> None:
    table = load("diabetes")
    model = fit_table(table, "progression", sensitive=["sex"], models=[family], reference=False)
    assert model.certificate_.ok
    assert verify_table(model, table, document=model.document()).ok


def test_a_failed_claim_warns() -> None:
    """A model whose own certificate fails says so, once, as every estimator does."""
    from surefit.linear_model import LogisticRegression
    from surefit.table.plan import Candidate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Candidate,
            "make",
            lambda self, *, columns, certify=False: LogisticRegression(max_iter=1, certify=certify),
        )
        with pytest.warns(CertificateWarning, match="duality gap"):
            model = fit_table(load("wine"), "cultivar", models=["logistic"], reference=False)
    assert not model.certificate_.ok
    assert model.document()["verdict"]["status"] == "fails"


def test_scale_and_width_do_not_depend_on_the_hold_out() -> None:
    """Changing the targets of the hold-out leaves model, scale and width alone."""
    table = load("diabetes")
    model = fit_table(table, "progression", models=["linear"], reference=False)
    rows = rows_of(table, model.schema, None, model.holdout, model.seed)
    y = table.frame["progression"].to_numpy().astype(float).copy()
    y[rows.holdout] = y[rows.holdout][::-1] * 3 + 1
    other = fit_table(
        table.frame.with_columns(progression=pl.Series(y)),
        "progression",
        models=["linear"],
        reference=False,
    )
    assert (other.centre_, other.scale_, other.loss_width_) == (
        model.centre_,
        model.scale_,
        model.loss_width_,
    )
    assert_array_equal(other.model_.coef_, model.model_.coef_)
    losses = [m.candidates_[m.chosen_]["holdout"]["loss"] for m in (model, other)]
    assert losses[0] != losses[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"holdout": 0.0}, "holdout"),
        ({"delta": 1.0}, "delta"),
        ({"time": math.nan}, "time"),
        ({"seed": -1}, "seed"),
        ({"models": []}, "none"),
        ({"models": ["trees"]}, "'trees'"),
        ({"positive": "maybe"}, "maybe"),
        ({"task": "ranking"}, "ranking"),
        ({"sensitive": ["sex"]}, "sex"),
        ({"immutable": ["sex"]}, "sex"),
        ({"drop": ["late"]}, "drop"),
        ({"sensitive": ["town"], "roles": {"town": "categorical"}}, "does not read sensitive"),
    ],
)
def test_arguments_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fit_table(_made(), "late", reference=False, **{"models": ["logistic"], **options})


def test_targets_that_cannot_be_learnt() -> None:
    x = np.arange(40.0) % 7
    for y, words in (([1.0] * 40, "every row"), ([None] * 40, "no value")):
        with pytest.raises(TableError, match=words):
            fit_table({"x": x, "y": y}, "y", reference=False)
    constant = [5.0] * 39 + [6.0]  # one value in the training part, whatever the class of the rest
    with pytest.raises(TableError):
        fit_table(read_table({"x": x, "y": constant}), "y", reference=False)


def test_the_last_bits_of_a_score_do_not_draw() -> None:
    """Rows that are equal tie in the curves, whatever the rounding of their scores on this machine."""
    generator = np.random.default_rng(0)
    score = generator.integers(0, 6, 300) / 7 - 0.4
    truth = (generator.random(300) < 0.5).astype(float)
    noisy = score * (1 + 1e-15 * generator.integers(-3, 4, 300))
    assert curves(noisy, truth) == curves(score, truth)
    assert len(curves(score, truth)["roc"]["fpr"]) <= 7
