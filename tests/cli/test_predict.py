"""``surefit predict``: the model's own predictions, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import surefit
from tests.cli.conftest import Run


def _column(text: str, name: str = "prediction") -> list[str]:
    return [row[name] for row in csv.DictReader(io.StringIO(text))]


def test_predictions_are_those_of_the_model(run: Run, fitted: Path) -> None:
    model_file, table = fitted / "out" / "model.surefit", fitted / "mortgages.csv"
    said = run("predict", model_file, table)
    assert (said.code, said.err) == (0, "")
    model = surefit.load(model_file)
    assert_array_equal(_column(said.out), model.predict(table))


def test_probabilities(run: Run, fitted: Path) -> None:
    model_file, table = fitted / "out" / "model.surefit", fitted / "mortgages.csv"
    said = run("predict", model_file, table, "--proba")
    found = np.array([_column(said.out, f"p({label})") for label in ("no", "yes")], dtype=float).T
    assert_array_equal(found, surefit.load(model_file).predict_proba(table))
    decided = np.where(found[:, 1] > found[:, 0], "yes", "no")
    assert_array_equal(_column(said.out), decided)


def test_json_and_files(run: Run, fitted: Path, tmp_path: Path) -> None:
    model_file, table = fitted / "out" / "model.surefit", fitted / "mortgages.csv"
    text = run("predict", model_file, table, "--proba").out
    records = json.loads(run("predict", model_file, table, "--proba", "--json").out)
    assert [record["prediction"] for record in records] == _column(text)
    assert set(records[0]) == {"prediction", "p(no)", "p(yes)"}
    said = run("predict", model_file, table, "--proba", "-o", "new.csv")
    assert (said.code, said.out) == (0, "")
    assert "2,380 predictions in new.csv" in said.err
    assert (tmp_path / "new.csv").read_text() == text
    said = run("predict", model_file, table, "--proba", "--json", "-q", "-o", "new.json")
    assert (said.out, said.err) == ("", "")
    assert json.loads((tmp_path / "new.json").read_text()) == records


def test_rows_come_from_anywhere(
    run: Run, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input, Parquet, a bundled table; without the target, the columns in another order."""
    model_file, text = fitted / "out" / "model.surefit", (fitted / "mortgages.csv").read_bytes()
    wanted = run("predict", model_file, fitted / "mortgages.csv").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run("predict", model_file, "-").out == wanted
    assert run("predict", model_file, "bundled:mortgages").out == wanted
    frame = pl.read_csv(fitted / "mortgages.csv", infer_schema=False)
    frame.select(frame.columns[:0:-1]).write_parquet(tmp_path / "new.parquet")
    assert run("predict", model_file, "new.parquet").out == wanted


def test_new_categories_are_said(run: Run, fitted: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(fitted / "mortgages.csv", infer_schema=False).head(5)
    frame.with_columns(self_employed=pl.lit("sometimes")).write_csv(tmp_path / "new.csv")
    model_file = fitted / "out" / "model.surefit"
    said = run("predict", model_file, "new.csv")
    assert said.code == 0
    assert "'self_employed'" in said.err
    assert "'sometimes' (5)" in said.err
    assert len(_column(said.out)) == 5
    assert run("predict", model_file, "new.csv", "-q").err == ""


def test_missing_columns_are_named(run: Run, fitted: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(fitted / "mortgages.csv", infer_schema=False).drop("loan_value")
    frame.write_csv(tmp_path / "new.csv")
    said = run("predict", fitted / "out" / "model.surefit", "new.csv")
    assert (said.code, said.out) == (3, "")
    assert "'loan_value'" in said.err
    frame = frame.with_columns(loan_value=pl.lit(None, dtype=pl.String))
    frame.write_csv(tmp_path / "new.csv")  # as the message says: a missing value in each row
    assert run("predict", fitted / "out" / "model.surefit", "new.csv").code == 0


def test_no_probabilities(run: Run) -> None:
    assert run("fit", "bundled:iris", "-m", "svm", "--no-reference", "-q", "-o", "out").code == 0
    said = run("predict", "out/model.surefit", "bundled:iris", "--proba")
    assert said.code == 2
    assert "LinearSVC gives no probabilities" in said.err


def test_numbers_of_a_regression(run: Run) -> None:
    options = ("-m", "linear", "--no-reference", "-q", "-o", "out")
    assert run("fit", "bundled:diabetes", *options).code == 0
    said = run("predict", "out/model.surefit", "bundled:diabetes", "--json")
    found = [record["prediction"] for record in json.loads(said.out)]
    table = surefit.data.load("diabetes")
    assert_array_equal(found, surefit.load("out/model.surefit").predict(table))
    truth = table.frame["progression"].to_numpy().astype(float)
    assert np.abs(found - truth).mean() < np.abs(truth.mean() - truth).mean()
