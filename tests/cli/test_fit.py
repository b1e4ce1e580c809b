"""``surefit fit``: sources, options and what is written."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import surefit
from surefit.data import about, load
from surefit.table import families, fit_table, plan, verify_table
from tests.cli.conftest import Run

FILES = ["certificate.json", "model.surefit", "report.html"]
FAST = ("-m", "logistic", "--no-reference")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _document(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "certificate.json").read_text())
    return document


def test_with_no_file_a_bundled_table_is_taken(run: Run, tmp_path: Path) -> None:
    said = run("fit", *FAST)
    assert said.code == 0
    assert _names(tmp_path / "mortgages-surefit") == FILES
    assert "bundled table 'mortgages'" in said.err
    assert "Read 2,380 rows of 14 columns" in said.err
    assert said.out.rstrip().endswith("mortgages-surefit/report.html")
    document = _document(tmp_path / "mortgages-surefit")
    assert document["data"]["sensitive"] == ["african_american"]
    assert document["data"]["target"] == "denied"


def test_every_source_gives_the_same_model(
    run: Run, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CSV, gzip, Parquet and standard input: the same rows, the same fingerprint, the same claims."""
    text = (fitted / "mortgages.csv").read_bytes()
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text))
    load("mortgages").frame.write_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    kept = _document(fitted / "out")
    for source in ("packed.csv.gz", "table.parquet", "-"):
        said = run("fit", source, "-t", "denied", "-s", "african_american", *FAST, "-q")
        assert (said.code, said.out, said.err) == (0, "", "")
    for name in ("packed", "table", "standardinput"):
        document = _document(tmp_path / f"{name}-surefit")
        assert document["claims"] == kept["claims"]
        assert document["data"]["fingerprint"] == kept["data"]["fingerprint"]


def test_json_is_the_certificate(run: Run, tmp_path: Path) -> None:
    said = run("fit", "bundled:iris", "-m", "knn", "--no-reference", "--json", "--out", "a/b")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out) == _document(tmp_path / "a" / "b")
    assert said.out.isascii()


def test_quiet_and_verbose(run: Run) -> None:
    said = run("fit", "bundled:iris", *FAST, "-q")
    assert (said.code, said.out, said.err) == (0, "", "")
    said = run("fit", "bundled:iris", *FAST, "-v")
    for words in ("trying LogisticRegression(C=1)", "fitting the chosen model", "certifying"):
        assert words in said.err


def test_the_files_are_those_of_the_library(run: Run, tmp_path: Path) -> None:
    """The command adds nothing: the same call in Python gives the same document, but for the hour."""
    assert run("fit", "bundled:iris", *FAST, "-q", "-o", "out").code == 0
    model = fit_table(load("iris"), "species", models=["logistic"], reference=False)
    own, written = model.document(), _document(tmp_path / "out")
    for part in (own, written):
        part.pop("created")
        for candidate in part["candidates"]:
            candidate.pop("seconds")
    assert own == written
    assert verify_table(surefit.load(tmp_path / "out" / "model.surefit"), load("iris")).ok


def test_models_are_those_asked_for(run: Run, tmp_path: Path) -> None:
    said = run("fit", "bundled:iris", "-m", "knn,svm", "-m", "linear", "-q", "-o", "out")
    assert said.code == 0
    candidates = _document(tmp_path / "out")["candidates"]
    assert {c["family"] for c in candidates} == {"knn", "svm", "linear", "boosting"}
    assert [c["name"] for c in candidates if not c["certified"]] == ["HistGradientBoosting"]
    assert sum(c["chosen"] for c in candidates) == 1


@pytest.mark.parametrize("seconds", ["1e-6", "1e-9"])
def test_without_time_a_model_is_shipped(run: Run, tmp_path: Path, seconds: str) -> None:
    """Nothing fits into no time: the first candidate is shipped all the same, and the log says the rest."""
    said = run("fit", "bundled:iris", "--time", seconds, "-q", "-o", "out")
    assert said.code == 0
    document = _document(tmp_path / "out")
    candidates = document["candidates"]
    assert len(candidates) == len(plan("classification", families("classification")))
    assert candidates[0]["chosen"]
    assert all(
        c["status"].startswith(("left out", "stopped", "not reached")) for c in candidates[1:]
    )
    assert all(c["holdout"] is None for c in candidates[1:])
    assert "measuring HistGradientBoosting: no time left" in document["left_out"]
    assert document["stopped"].startswith("the time was up")
    assert run("verify", "out/model.surefit", "bundled:iris", "-q").code == 0


def test_refit_withdraws_the_statistical_claims(run: Run, tmp_path: Path) -> None:
    said = run("fit", "--refit", *FAST, "-o", "out")
    assert said.code == 0
    document = _document(tmp_path / "out")
    assert document["model"]["refitted"] is True
    for section, claims in document["claims"].items():
        statistical = [c for c in claims if c["kind"] == "statistical"]
        assert all(c["status"] == "undecided" for c in statistical), section
        assert all("refitted on all rows" in c["statement"] for c in statistical), section
    assert {"generalisation", "robustness", "fairness"} <= {
        name for name, claims in document["claims"].items() if claims
    }
    assert any("refitted on all rows" in text for text in document["verdict"]["sentences"])
    assert re.search(r"refitted on\s+all rows", said.out)
    assert run("verify", "out/model.surefit", "bundled:mortgages", "-q").code == 0


def test_roles_drops_and_what_cannot_change(run: Run, tmp_path: Path) -> None:
    options = ("--drop", "single,condominium", "--immutable", "payment_income", *FAST)
    said = run("fit", *options, "--role", "credit_history=categorical", "-q", "-o", "out")
    assert said.code == 0
    document = _document(tmp_path / "out")
    roles = {column["name"]: column["role"] for column in document["columns"]}
    assert roles["credit_history"] == "categorical"
    assert not {"single", "condominium"} & set(roles)
    assert any("left out on request: single, condominium" in n for n in document["data"]["notes"])
    assert document["data"]["immutable"] == ["payment_income"]
    assert "payment_income stay" in document["evidence"]["robustness"]["words"]
    assert run("verify", "out/model.surefit", "bundled:mortgages", "-q").code == 0


def test_the_positive_class(run: Run, tmp_path: Path) -> None:
    """Rates of the other class are the complements; the error is the same."""
    for positive in ("yes", "no"):
        assert run("fit", *FAST, "-q", "--positive", positive, "-o", positive).code == 0
    yes, no = _document(tmp_path / "yes"), _document(tmp_path / "no")
    assert (yes["positive"], no["positive"]) == ("yes", "no")
    for a, b in zip(
        yes["evidence"]["fairness"][0]["groups"], no["evidence"]["fairness"][0]["groups"]
    ):
        rates = a["rates"]["selection_rate"], b["rates"]["selection_rate"]
        assert rates[0]["value"] == pytest.approx(1 - rates[1]["value"], abs=1e-12)
    auc = [part["evidence"]["roc"]["auc"] for part in (yes, no)]
    assert auc[0] == pytest.approx(auc[1], abs=1e-9)


def test_a_regression(run: Run, tmp_path: Path) -> None:
    target = about("diabetes")["target"]
    command = ("fit", "bundled:diabetes", "-t", target, "-s", "sex", "-m", "linear,lasso")
    assert run(*command, "--task", "regression", "-q", "-o", "out").code == 0
    document = _document(tmp_path / "out")
    assert (document["task"], document["classes"], document["positive"]) == (
        "regression",
        None,
        None,
    )
    names = [claim["name"] for claim in document["claims"]["generalisation"]]
    assert names[0] == "generalisation"
    assert "prediction interval" in names
    assert "residuals" in document["evidence"]
    assert [c["name"] for c in document["claims"]["robustness"]] == ["sensitivity"]
    assert run("verify", "out/model.surefit", "bundled:diabetes", "-q").code == 0


def test_three_classes(run: Run, tmp_path: Path) -> None:
    assert run("fit", "bundled:iris", "-m", "logistic,linear", "-q", "-o", "out").code == 0
    document = _document(tmp_path / "out")
    assert document["classes"] == ["setosa", "versicolor", "virginica"]
    counts = document["evidence"]["confusion"]["counts"]
    assert sum(map(sum, counts)) == document["split"]["holdout"]
    assert run("verify", "out/model.surefit", "bundled:iris", "-q").code == 0


def test_confidence_is_quoted(run: Run, tmp_path: Path) -> None:
    assert run("fit", "bundled:iris", *FAST, "--confidence", "0.9", "-q", "-o", "out").code == 0
    document = _document(tmp_path / "out")
    assert document["delta"] == pytest.approx(0.1, abs=1e-12)
    assert "probability 90 %" in document["claims"]["generalisation"][0]["statement"]


def test_reading_options_are_kept(run: Run, tmp_path: Path) -> None:
    """A file that needs to be told how it is read: the model knows it at predict and verify time."""
    rows = ["length|kind"] + [f"{k / 7:.2f}|{'a' if k % 3 else 'b'}" for k in range(80)]
    rows[5] = "gone|a"
    (tmp_path / "t.txt").write_text("\n".join(rows))
    options = ("--delimiter", "|", "--missing", "gone", *FAST, "-q", "-o", "out")
    assert run("fit", "t.txt", "-t", "kind", *options).code == 0
    assert _document(tmp_path / "out")["columns"][0]["missing"] == 1
    assert run("verify", "out/model.surefit", "t.txt", "-q").code == 0
    assert run("predict", "out/model.surefit", "t.txt", "-q").code == 0
