"""``surefit verify``, ``show`` and ``report``: what they print, and their exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import surefit
from surefit.data import load
from tests.cli.conftest import Run

RECORD = [
    "table",
    "plan",
    "schema",
    "encoding",
    "target",
    "facts",
    "model",
    "hold-out",
    "scores",
    "evidence",
    "record",
    "certificate.json",
]


def test_a_stranger_verifies(run: Run, fitted: Path) -> None:
    said = run("verify", fitted / "out" / "model.surefit", fitted / "mortgages.csv")
    assert said.code == 0
    assert "verified: no claim fails" in said.out
    for words in ("The record itself", "Optimality", "Generalisation", "Robustness", "Fairness"):
        assert words in said.out


def test_the_outcome_as_json(run: Run, fitted: Path) -> None:
    said = run("verify", fitted / "out" / "model.surefit", fitted / "mortgages.csv", "--json")
    outcome = json.loads(said.out)
    assert outcome["ok"] is True
    assert [claim["name"] for claim in outcome["record"] if claim["name"] in RECORD] == RECORD
    assert all(claim["status"] == "holds" for claim in outcome["record"])
    document = json.loads((fitted / "out" / "certificate.json").read_text())
    for section in ("generalisation", "robustness", "fairness"):
        found = [claim["statement"] for claim in outcome["claims"][section]]
        assert found == [claim["statement"] for claim in document["claims"][section]]


def test_quick_leaves_the_scores_open(run: Run, fitted: Path) -> None:
    command = ("verify", fitted / "out" / "model.surefit", fitted / "mortgages.csv", "--json")
    outcome = json.loads(run(*command, "--quick").out)
    status = {claim["name"]: claim["status"] for claim in outcome["record"]}
    assert status["scores"] == "undecided"
    assert {status[name] for name in RECORD if name != "scores"} == {"holds"}


def test_the_table_from_standard_input(
    run: Run, fitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be read once only: what needs a second reading is left open, and nothing fails."""
    text = (fitted / "mortgages.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run("verify", fitted / "out" / "model.surefit", "-", "--quick", "-q").code == 0


def test_a_failed_claim_is_exit_code_1(run: Run, fitted: Path, tmp_path: Path) -> None:
    text = (fitted / "mortgages.csv").read_text().splitlines()
    (tmp_path / "less.csv").write_text("\n".join(text[:-1]))
    said = run("verify", fitted / "out" / "model.surefit", "less.csv")
    assert said.code == 1
    assert "not the table of the fit" in said.out
    assert "1 claim fails" in said.out
    said = run("verify", fitted / "out" / "model.surefit", "less.csv", "-q")
    assert (said.code, said.out, said.err) == (1, "", "")


def test_the_library_agrees(fitted: Path) -> None:
    model = surefit.load(fitted / "out" / "model.surefit")
    assert surefit.verify(model, load("mortgages")).ok
    assert surefit.verify(model, fitted / "mortgages.csv").ok
    with pytest.raises(TypeError, match="with its table alone"):
        surefit.verify(model, load("mortgages"), [1, 2])


def test_report_writes_the_same_bytes(run: Run, fitted: Path, tmp_path: Path) -> None:
    page = (fitted / "out" / "report.html").read_bytes()
    said = run("report", fitted / "out" / "model.surefit", "-o", "again.html")
    assert (said.code, said.out) == (0, "again.html\n")
    assert (tmp_path / "again.html").read_bytes() == page
    assert len(page) < 1_000_000
    copy = tmp_path / "model.surefit"
    copy.write_bytes((fitted / "out" / "model.surefit").read_bytes())
    assert run("report", copy).code == 0
    assert (tmp_path / "report.html").read_bytes() == page
    assert run("report", "model.surefit").code == 0  # beside the model, also without a folder


def test_the_document_again(run: Run, fitted: Path) -> None:
    document = json.loads((fitted / "out" / "certificate.json").read_text())
    for command in ("report", "show"):
        said = run(command, fitted / "out" / "model.surefit", "--json")
        assert json.loads(said.out) == document


def test_show(run: Run, fitted: Path) -> None:
    said = run("show", fitted / "out" / "model.surefit")
    assert said.code == 0
    for words in ("“denied”", "Optimality", "Generalisation", "LogisticRegression"):
        assert words in said.out


def test_the_report_cannot_be_written(run: Run, fitted: Path) -> None:
    said = run("report", fitted / "out" / "model.surefit", "-o", "none/report.html")
    assert said.code == 5
    assert "none" in said.err
