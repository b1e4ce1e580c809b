"""The command line in the process of the test, and one small model that several tests read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefit.cli import main

__all__ = ["Outcome", "Run"]


class Outcome:
    """Exit code, standard output and standard error of one command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``surefit`` with these arguments in an empty folder; nothing may end in a traceback."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: Any) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert "\x1b" not in out + err
        return Outcome(code, out, err)

    return command


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three files of a model of the bundled mortgages, and the table as a CSV file."""
    from surefit.data import load

    folder = tmp_path_factory.mktemp("mortgages")
    load("mortgages").frame.write_csv(folder / "mortgages.csv")
    source, out = str(folder / "mortgages.csv"), str(folder / "out")
    options = ["-s", "african_american", "-m", "logistic", "--no-reference", "-q", "-o", out]
    assert main(["fit", source, "-t", "denied", *options]) == 0
    return folder
