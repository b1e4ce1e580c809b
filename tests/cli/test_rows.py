"""Groups, times and tolerances given on the command line reach the split and the verification."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.forged import visits

FAST = ("-m", "logistic", "--no-reference")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Visits of sixty patients, as a file."""
    path = tmp_path / "visits.csv"
    visits().frame.write_csv(path)
    return path


def test_groups_are_asked_for_and_kept(run: Run, table: Path) -> None:
    said = run("fit", table, "-t", "y", *FAST, "-o", "out")
    assert said.code == 0
    assert "looks like the number of a person" in " ".join(said.out.split())
    assert "--group" in said.out
    said = run("fit", table, "-t", "y", *FAST, "--group", "patient", "-o", "out")
    assert said.code == 0
    assert "each group counted alike" in " ".join(said.out.split())
    document = json.loads(Path("out/certificate.json").read_text())
    assert (document["split"]["kind"], document["split"]["group"]) == ("groups", "patient")
    assert document["constant"]["value"] in document["classes"]
    assert run("verify", "out/model.surefit", table, "--quick", "-q").code == 0


def test_time_and_the_word_of_the_owner(run: Run, table: Path) -> None:
    command = ("fit", table, "-t", "y", *FAST, "--drop", "patient", "-o", "out")
    said = run(*command, "--time-column", "day")
    assert said.code == 0
    assert "of the latest rows, after those it was fitted on" in " ".join(said.out.split())
    assert run("verify", "out/model.surefit", table, "--quick", "-q").code == 0
    said = run("fit", table, "-t", "y", *FAST, "--rows-are-independent", "-o", "out", "--json")
    assert said.code == 0
    document = json.loads(said.out)
    assert document["split"]["rows_are_independent"] is True
    assert "as was said" in document["claims"]["generalisation"][0]["statement"]


def test_what_cannot_be_grouped_by_is_exit_code_3(run: Run, table: Path) -> None:
    said = run("fit", table, "-t", "y", *FAST, "--group", "doctor")
    assert said.code == 3
    assert "there is no column 'doctor'" in said.err
    said = run("fit", table, "-t", "y", *FAST, "--group", "ward", "--rows-are-independent")
    assert said.code == 3


def test_the_tolerance_is_the_verifier_s(run: Run, fitted: Path) -> None:
    """Nothing changes but what is proved: a gap above the tolerance fails."""
    command = ("verify", fitted / "out" / "model.surefit", fitted / "mortgages.csv", "--quick")
    said = run(*command)
    assert said.code == 0
    assert "judged at the verifier's tolerance 0.001" in said.out
    assert "verified: no claim fails, and the fit is proved optimal" in said.out
    outcome = json.loads(run(*command, "--tol", "1e-6", "--json").out)
    assert (outcome["ok"], outcome["proved"], outcome["tolerance"]) == (True, True, 1e-6)
    assert outcome["notes"] == [
        "judged at the verifier's tolerance 1e-06; the model's own is looser, 0.0001"
    ]
    for tol in ("-1", "nan", "inf"):
        said = run(*command, "--tol", tol)
        assert said.code == 2
        assert "finite number" in said.err


def test_a_fit_that_stopped_early_fails_at_a_strict_tolerance(
    run: Run, fitted: Path, tmp_path: Path
) -> None:
    import surefit

    model = surefit.load(fitted / "out" / "model.surefit")
    model.model_.coef_ = model.model_.coef_ * (1 + 1e-7)
    surefit.save(model, tmp_path / "moved.surefit")
    command = ("verify", tmp_path / "moved.surefit", fitted / "mortgages.csv", "--quick", "--json")
    gap = {}
    for tol in ("1e-3", "1e-18"):
        outcome = json.loads(run(*command, "--tol", tol).out)
        gap[tol] = next(c for c in outcome["claims"]["optimality"] if c["name"] == "duality gap")
    assert gap["1e-3"]["status"] == "holds"
    assert gap["1e-18"]["bound"] < 1e-12 * gap["1e-3"]["bound"] or gap["1e-18"]["status"] != "holds"
