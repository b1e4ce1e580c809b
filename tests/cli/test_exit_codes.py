"""The exit codes that ``surefit.cli`` documents, as another program sees them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surefit
import surefit.cli
from tests.cli.conftest import Run


def _program(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "surefit", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, **options
    )  # type: ignore[call-overload, no-any-return]


def test_the_codes_are_documented() -> None:
    codes = re.findall(r"^(\d+) ", str(surefit.cli.__doc__), flags=re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4", "5", "130"]


def test_as_a_program(tmp_path: Path) -> None:
    """One life: fit from standard input, verify, and the codes of what goes wrong."""
    text = surefit.data.load("iris").frame.write_csv()
    options = ("-m", "knn", "--no-reference", "-q", "-o", "out")
    done = _program("fit", "-", "-t", "species", *options, cwd=tmp_path, input=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "iris.csv").write_text(text)
    codes = {
        ("verify", "out/model.surefit", "iris.csv", "-q"): 0,
        ("verify", "out/model.surefit", "bundled:wine", "-q"): 1,
        ("fit", "--no-such-option"): 2,
        ("fit", "none.csv", "-t", "species"): 3,
        ("show", "iris.csv"): 4,
        ("report", "out/model.surefit", "-o", "none/report.html"): 5,
    }
    for arguments, code in codes.items():
        done = _program(*arguments, cwd=tmp_path)
        assert done.returncode == code, (arguments, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    script = f"{sys.executable} -m surefit data list --json | head -c 10; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-1].endswith("0")
    assert done.stderr == ""


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"surefit {surefit.__version__}\n"
    for arguments in ((), ("--help",), ("-h",), ("fit", "--help"), ("data", "--help")):
        said = run(*arguments)
        assert said.code == 0
        assert "Usage" in said.out
    text = run("--help").out
    for command in ("fit", "predict", "verify", "report", "show", "data"):
        assert command in text
    assert "--install-completion" in text
    assert "--show-completion" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("fit", "--target"),
        ("verify",),
        ("verify", "model.surefit"),
        ("predict", "model.surefit"),
        ("show",),
        ("show", "a", "b"),
        ("data", "fetch"),
        ("data", "burn"),
        ("fit", "--seed", "x"),
        ("--Version",),
    ],
)
def test_commands_that_are_not_understood(run: Run, arguments: tuple[str, ...]) -> None:
    said = run(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("surefit: ")
    assert "--help" in said.err


def test_a_claim_that_fails_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit with a failed claim writes its files and ends with 1: here the solver is not let finish."""
    from surefit.linear_model import LogisticRegression
    from surefit.table.plan import Candidate

    def hasty(self: Candidate, *, columns: int, certify: bool | str = False) -> LogisticRegression:
        return LogisticRegression(C=self.value, max_iter=1, certify=certify)

    monkeypatch.setattr(Candidate, "make", hasty)
    said = run("fit", "bundled:iris", "-m", "logistic", "--no-reference", "-o", "out")
    assert said.code == 1
    assert "duality gap" in said.out
    assert Path("out/report.html").exists()
