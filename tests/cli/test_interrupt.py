"""Ctrl-C: once ends with the best model so far, twice gives up and leaves nothing behind.

The program runs in a process of its own and is watched through what it says; no test depends on how long
anything takes. Where in a fit the key is pressed is also tried in this process, at every place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pytest

import surefit
from surefit.data import load
from surefit.table import Watch, fit_table, verify_table
from tests.cli.conftest import Run

posix = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C is heard even where the suite itself runs in the background, which makes shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 rows of 20 numbers; a kernel on them takes minutes."""
    path = tmp_path_factory.mktemp("large") / "large.csv"
    generator = np.random.default_rng(5)
    X = generator.normal(size=(20_000, 20)).round(3)
    y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] + generator.normal(size=len(X)) > 0, "b", "a")
    names = ",".join(f"x{j}" for j in range(20))
    lines = [",".join(map(str, row)) + f",{label}" for row, label in zip(X.tolist(), y)]
    path.write_text("\n".join([f"{names},y", *lines]))
    return path


def _start(large: Path, folder: Path, models: str) -> subprocess.Popen[str]:
    """The program with more to do than it will be given time for."""
    command = [
        sys.executable,
        "-m",
        "surefit",
        "fit",
        str(large),
        "-t",
        "y",
        "-v",
        "--time",
        "3600",
    ]
    options = ["-m", models, "--no-reference", "-o", "out"]
    return subprocess.Popen(
        [*command, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    )


def _read_until(stream: IO[str] | None, words: str) -> list[str]:
    """The lines that a program says, up to one with these words."""
    assert stream is not None
    lines = []
    for line in stream:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(f"the program ended without saying {words!r}: {''.join(lines)}")


@posix
def test_once_ships_the_best_so_far(large: Path, tmp_path: Path) -> None:
    program = _start(large, tmp_path, "logistic,knn,kernel")
    try:
        _read_until(program.stderr, "trying SVC")  # one candidate of logistic and knn is done
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=600)
    finally:
        program.kill()
    assert "interrupted: finishing with the best model so far" in err
    assert "Traceback" not in err
    assert program.returncode == 130
    names = ["certificate.json", "model.surefit", "report.html"]
    assert sorted(os.listdir(tmp_path / "out")) == names
    assert "out/report.html" in out
    document = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert document["stopped"].startswith("the user interrupted it")
    status = {c["name"]: c["status"] for c in document["candidates"]}
    assert status["LogisticRegression(C=1)"] == "tried"
    assert status["SVC(C=1)"] == "not reached: interrupted"
    assert document["model"]["name"] in ("LogisticRegression", "KNeighborsClassifier")
    model = surefit.load(tmp_path / "out" / "model.surefit")
    assert verify_table(model, large, document=document, quick=True).ok


@posix
def test_twice_leaves_nothing(large: Path, tmp_path: Path) -> None:
    program = _start(large, tmp_path, "kernel")  # what has to be finished takes long
    try:
        _read_until(program.stderr, "trying SVC")
        program.send_signal(signal.SIGINT)
        _read_until(program.stderr, "interrupted: finishing")
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=600)
    finally:
        program.kill()
    assert program.returncode == 130
    assert "nothing was written" in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []


# -------------------------------------------------------------------- at every place


class Pressed(Watch):
    """A watch on which Ctrl-C is pressed when something is said."""

    def __init__(self, words: str, press: Callable[[], None]) -> None:
        super().__init__(1e9)
        self.words, self.press, self.done = words, press, False

    def say(self, text: str, done: float | None = None) -> None:
        if text.startswith(self.words) and not self.done:
            self.done = True
            self.press()


def _raise() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "words",
    [
        "trying LogisticRegression(C=1)",
        "trying KNeighborsClassifier",
        "trying LogisticRegression(C=0.1)",
        "measuring",
        "objective",
        "learning curve",
        "remedies",
    ],
)
def test_a_model_comes_out_wherever_the_work_is_broken_off(words: str) -> None:
    """Work that may be left out is, the log says so, and what is shipped verifies."""
    table = load("mortgages")
    watch = Pressed(words, _raise)
    if not words.startswith("trying"):  # said before the work, outside of what may be broken off
        watch = _in_the_work(watch)
    model = fit_table(
        table,
        "denied",
        sensitive=["african_american"],
        models=["logistic", "knn"],
        reference=False,
        watch=watch,
    )
    assert watch.done
    assert model.interrupted_
    if words.startswith("trying"):
        assert model.certificate_.stopped == "the user interrupted it"
    else:
        assert any(text.endswith(": interrupted") for text in model.skipped_)
    assert verify_table(model, table, document=model.document(), quick=True).ok


def _in_the_work(watch: Pressed) -> Pressed:
    """The same watch, with the key pressed inside the work that is announced."""
    plain, words = watch.optional, watch.words

    def optional(name, work, **options):  # type: ignore[no-untyped-def]
        if name.startswith(words) and not watch.done:
            watch.done = True
            return plain(name, _raise, **options)
        return plain(name, work, **options)

    watch.optional = optional  # type: ignore[method-assign]
    watch.words = "\0"  # nothing that is said presses the key
    return watch


@posix
@pytest.mark.parametrize(
    "words", ["reading the table", "fitting the chosen model", "certifying", "fitting on all rows"]
)
def test_what_has_to_be_done_is_finished(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """A real signal while something is done that a model needs: it is finished, and the exit code is 130."""
    from surefit.cli import fit

    class Struck(fit.BarWatch):
        struck = False

        def say(self, text: str, done: float | None = None) -> None:
            if text == words and not self.struck:
                self.struck = True
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(fit, "BarWatch", Struck)
    said = run("fit", "bundled:iris", "-m", "logistic", "--no-reference", "--refit", "-o", "out")
    assert said.code == 130
    assert sorted(os.listdir("out")) == ["certificate.json", "model.surefit", "report.html"]
    assert run("verify", "out/model.surefit", "bundled:iris", "-q").code == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@posix
def test_a_broken_off_verification_decides_nothing(
    run: Run, fitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surefit.cli import verify

    class Struck(verify.BarWatch):
        def say(self, text: str, done: float | None = None) -> None:
            if text.startswith("trying"):
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(verify, "BarWatch", Struck)
    said = run("verify", fitted / "out" / "model.surefit", fitted / "mortgages.csv")
    assert (said.code, said.out) == (130, "")
    assert "verified" not in said.err
