"""Bad input from end to end: each gets an exit code, one message that names the thing, and no traceback."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefit.cli import main

ROWS = 120
FAST = ("-m", "logistic", "--no-reference", "-q")


def _rows(n: int = ROWS) -> list[tuple[str, ...]]:
    generator = np.random.RandomState(0)
    x, z = generator.normal(size=(2, n))
    town = generator.choice(["Ulm", "Bonn", "Kiel"], size=n)
    y = np.where(x + generator.normal(size=n) > 0, "yes", "no")
    return [(f"{a:.3f}", f"{b:.3f}", str(c), str(d)) for a, b, c, d in zip(x, z, town, y)]


def _csv(rows: Any = None, header: str = "x,z,town,bought", n: int = ROWS) -> bytes:
    rows = _rows(n) if rows is None else rows
    return ("\n".join([header, *(",".join(row) for row in rows)]) + "\n").encode()


GOOD = _csv()


class Said:
    """Exit code and both outputs of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: Any) -> Said:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert "\x1b" not in out + err
        return Said(code, out, err)

    return command


def _zip(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "text")
    return buffer.getvalue()


def _with(place: int, values: Callable[[int], str]) -> bytes:
    """The good table with one column replaced."""
    rows = [list(row) for row in _rows()]
    for k, row in enumerate(rows):
        row[place] = values(k)
    return _csv(rows)


# the bytes of a table that cannot be used, and words that the message has
REFUSED: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "is empty"),
    "blank lines only": (b"\n \n\n", "is empty"),
    "header only": (b"x,z,town,bought\n", "no rows"),
    "one row": (_csv(n=1), "one row"),
    "few rows": (_csv(n=12), "at least 20"),
    "constant target": (_with(3, lambda k: "yes"), "nothing to predict"),
    "no target at all": (_with(3, lambda k: ""), "no value"),
    "a class with one row": (
        _with(3, lambda k: ["no", "yes", "odd"][2 * (k == 5) or k % 2]),
        "'odd'",
    ),
    "a class for each row": (_with(3, lambda k: f"id{k}"), "classes"),
    "constant features": (
        _csv([("1", "2", "a", row[3]) for row in _rows()]),
        "no column is left",
    ),
    "ragged rows": (_csv([*_rows(), ("1", "2")]), "line"),
    "too many fields": (_csv([*_rows(), ("1", "2", "a", "no", "5", "6")]), "line"),
    "an unclosed quote": (_csv([*_rows(), ('"1', "2", "a", "no")]), "quote"),
    "NUL bytes": (GOOD.replace(b"Ulm", b"U\0m"), "NUL"),
    "binary junk": (np.random.RandomState(1).bytes(4096), ""),
    "a PDF": (b"%PDF-1.7\n" + b"x" * 100, "PDF"),
    "an Excel file": (_zip(["[Content_Types].xml", "xl/workbook.xml"]), "Excel"),
    "an old Excel file": (b"\xd0\xcf\x11\xe0" + b"x" * 100, "Excel"),
    "a zip of two files": (_zip(["a.csv", "b.csv"]), "2 files"),
    "a damaged gzip": (gzip.compress(GOOD)[:200], "gzip"),
    "a gzip of junk": (b"\x1f\x8b" + b"junk" * 20, "gzip"),
    "a damaged Parquet file": (b"PAR1" + b"x" * 100, "Parquet"),
    "a web page": (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
    "JSON": (b'{"x": [1, 2, 3]}', "JSON"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_table_that_cannot_be_used(run: Callable[..., Said], tmp_path: Path, what: str) -> None:
    data, words = REFUSED[what]
    (tmp_path / "table.csv").write_bytes(data)
    said = run("fit", "table.csv", "--target", "bought", *FAST)
    assert said.code == 3
    assert said.err.startswith("surefit: ")
    assert words in said.err
    assert len(said.err) < 1000
    assert os.listdir(tmp_path) == ["table.csv"]


# tables that are odd, and are read all the same
READ: dict[str, bytes] = {
    "a byte-order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-16 without a mark": GOOD.decode().encode("utf-16-le"),
    "gzip": gzip.compress(GOOD),
    "Windows line ends": GOOD.replace(b"\n", b"\r\n"),
    "semicolons": GOOD.replace(b",", b";"),
    "Latin-1": GOOD.replace(b"Ulm", b"K\xf6ln"),
    "mixed types": _with(1, lambda k: "n/a" if k == 9 else f"{k / 7:.2f}"),
    "mixed kinds in a column": _with(1, lambda k: "unknown" if k % 7 == 0 else f"{k / 7:.2f}"),
    "duplicate headers": _csv(header="x,x,town,bought"),
    "a header without names": _csv(header=",,town,bought"),
    "quoted line ends": GOOD.replace(b"Ulm", b'"U\nlm"'),
}


@pytest.mark.parametrize("what", READ)
def test_an_odd_table_is_read(run: Callable[..., Said], tmp_path: Path, what: str) -> None:
    (tmp_path / "table.csv").write_bytes(READ[what])
    assert run("fit", "table.csv", "-t", "bought", *FAST, "-o", "out").code == 0
    assert run("verify", "out/model.surefit", "table.csv", "--quick", "-q").code == 0


def test_a_million_columns(run: Callable[..., Said], tmp_path: Path) -> None:
    names = ",".join(f"c{k}" for k in range(1_000_000))
    values = ",".join(["1"] * 1_000_000)
    (tmp_path / "wide.csv").write_text(f"{names}\n{values}\n{values}\n")
    said = run("fit", "wide.csv", "--target", "c7", *FAST)
    assert said.code == 3
    assert len(said.err) < 2000


# options that are wrong: arguments after the good table, exit code, words of the message
WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no target": ((), 3, "--target"),
    "an unknown target": (("-t", "bougth"), 3, "'bought'"),
    "a sensitive column that is not there": (("-t", "bought", "-s", "sex"), 3, "sex"),
    "sensitive is the target": (("-t", "bought", "-s", "bought"), 3, "bought"),
    "an immutable column that is not there": (("-t", "bought", "--immutable", "age"), 3, "age"),
    "the target left out": (("-t", "bought", "--drop", "bought"), 3, "drop"),
    "a dropped column that is not there": (("-t", "bought", "--drop", "age"), 3, "age"),
    "everything left out": (("-t", "bought", "--drop", "x,z,town"), 3, "no column is left"),
    "no time": (("-t", "bought", "--time", "0"), 2, "time"),
    "time that is no number": (("-t", "bought", "--time", "soon"), 2, "--time"),
    "not a number of seconds": (("-t", "bought", "--time", "nan"), 2, "time"),
    "a hold-out of everything": (("-t", "bought", "--holdout", "1.5"), 2, "holdout"),
    "a hold-out of nothing": (("-t", "bought", "--holdout", "0"), 2, "holdout"),
    "a confidence of 2": (("-t", "bought", "--confidence", "2"), 2, "--confidence"),
    "a confidence of 1": (("-t", "bought", "--confidence", "1"), 2, "--confidence"),
    "an unknown family": (("-t", "bought", "--models", "forest"), 2, "forest"),
    "a family of regression": (("-t", "bought", "--models", "lasso"), 2, "lasso"),
    "an unknown task": (("-t", "bought", "--task", "clustering"), 3, "clustering"),
    "a class that is none": (("-t", "bought", "--positive", "maybe"), 3, "maybe"),
    "a number that words are": (("-t", "bought", "--task", "regression"), 3, "bought"),
    "a role that is none": (("-t", "bought", "--role", "x=colour"), 3, "colour"),
    "a role without a name": (("-t", "bought", "--role", "numeric"), 2, "NAME=ROLE"),
    "a role of no column": (("-t", "bought", "--role", "w=numeric"), 3, "w"),
    "a delimiter of two letters": (("-t", "bought", "--delimiter", ";;"), 3, "delimiter"),
    "an encoding that is none": (("-t", "bought", "--encoding", "klingon"), 3, "klingon"),
    "a negative seed": (("-t", "bought", "--seed", "-1"), 2, "seed"),
    "an unknown option": (("-t", "bought", "--fast"), 2, "--fast"),
    "one argument too many": (("another.csv", "-t", "bought"), 2, "another.csv"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_options(run: Callable[..., Said], tmp_path: Path, what: str) -> None:
    arguments, code, words = WRONG[what]
    (tmp_path / "table.csv").write_bytes(GOOD)
    models = () if "--models" in arguments else ("-m", "logistic")
    said = run("fit", "table.csv", *arguments, *models, "--no-reference", "-q")
    assert said.code == code, said.err
    assert words in said.err
    assert os.listdir(tmp_path) == ["table.csv"]


def test_places_that_hold_no_table(run: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(GOOD)
    said = run("fit", ".", "-t", "bought")
    assert (said.code, "data.csv" in said.err) == (3, True)
    said = run("fit", "dta.csv", "-t", "bought")
    assert (said.code, "'data.csv'" in said.err) == (3, True)
    assert run("fit", "bundled:titanic", "-t", "bought").code == 3
    assert run("fit", os.devnull, "-t", "bought").code == 3
    assert run("data", "fetch", "mnist").code == 3
    assert run("data", "schema", "data.csv", "-t", "sold").code == 3


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser reads everything"
)
def test_a_file_that_may_not_be_read(run: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(GOOD)
    path.chmod(0)
    assert run("fit", path, "-t", "bought").code == 3
    assert run("show", path).code == 4
    path.chmod(0o600)
    (tmp_path / "locked").mkdir(mode=0o500)
    said = run("fit", path, "-t", "bought", *FAST, "-o", "locked/out")
    assert (said.code, "locked" in said.err) == (5, True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_with_a_name(run: Callable[..., Said], tmp_path: Path) -> None:
    """A pipe is read like a file as a table, and refused as a model."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(GOOD,))
    writer.start()
    assert run("fit", "pipe", "-t", "bought", *FAST, "-o", "out").code == 0
    writer.join()
    said = run("show", "pipe")
    assert (said.code, "not a regular file" in said.err) == (4, True)


def test_an_out_that_is_a_file(run: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(GOOD)
    (tmp_path / "out").write_text("mine")
    for place in ("out", "out/deeper"):
        said = run("fit", "table.csv", "-t", "bought", *FAST, "-o", place)
        assert (said.code, "--out" in said.err) == (5, True)
    assert (tmp_path / "out").read_text() == "mine"


def test_models_that_are_none(run: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(GOOD)
    for command in (["show"], ["report"], ["verify", "x"], ["predict", "x"]):
        name, *rest = command
        rest = ["table.csv" for _ in rest]
        for path in ("none.surefit", "table.csv", "."):
            said = run(name, path, *rest)
            assert said.code == 4
            assert path in said.err
            assert said.out == ""


def test_bad_rows_at_predict_time(run: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(GOOD)
    assert run("fit", "table.csv", "-t", "bought", *FAST, "-o", "out").code == 0
    cases = {
        "lacks a column": (_csv([row[1:] for row in _rows(5)], "z,town,bought"), 3, "'x'"),
        "another spelling": (_csv(header="X,z,town,bought", n=5), 3, "Did you mean 'X'"),
        "no rows": (b"x,z,town\n", 3, "no rows"),
        "empty": (b"", 3, "empty"),
        "new categories": (GOOD.replace(b"Ulm", b"Rom"), 0, "'Rom'"),
        "words for numbers": (_csv([("many", "1", "Ulm", "no")] * 3), 3, "'many'"),
        "other delimiters": (GOOD.replace(b",", b";"), 3, "semicolon"),
    }
    for what, (data, code, words) in cases.items():
        (tmp_path / "new.csv").write_bytes(data)
        said = run("predict", "out/model.surefit", "new.csv")
        assert said.code == code, (what, said.err)
        assert words in said.err, what


HOSTILE = {
    "markup": "<script>alert(1)</script>",
    "an image": "<img src=x onerror=alert(1)>",
    "a quote": "\"'><blink>",
    "a template": "{{ 7 * 7 }}{% raw %}",
    "an escape": "\x1b[31mred\x1b[0m",
    "a title": "\x1b]0;owned\x07",
    "rich markup": "[red]all claims hold[/red]",
    "another reading order": "\u202eevil",
    "a carriage return": "safe\rfake",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_names_and_values(run: Callable[..., Said], tmp_path: Path, what: str) -> None:
    """Names, categories and classes from a stranger are shown as text, wherever they are shown."""
    text = HOSTILE[what]
    quoted = '"' + text.replace('"', '""') + '"'
    rows = [
        (a, b, quoted if town == "Ulm" else town, quoted if y == "yes" else y)
        for a, b, town, y in _rows()
    ]
    header = f"x,z,{quoted},bought"
    (tmp_path / "table.csv").write_bytes(_csv(rows, header))
    said = run(
        "fit", "table.csv", "-t", "bought", "-m", "logistic", "--no-reference", "-v", "-o", "out"
    )
    assert said.code == 0, said.err
    for out in (said.out, said.err):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", out)
    page = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e]", page)
    assert not re.search(r"<(script|img|blink)", page)
    assert "onerror=alert" not in re.sub(r"&lt;.*?&gt;", "", page)
    assert ">49<" not in page
    for command in (
        ["show", "out/model.surefit"],
        ["verify", "out/model.surefit", "table.csv", "--quick"],
        ["data", "schema", "table.csv", "-t", "bought"],
    ):
        again = run(*command)
        assert again.code == 0
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", again.out + again.err)


def test_a_terminal_gets_no_escapes_from_predictions(
    run: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal a class is printed with its control characters escaped; in a file it is as it was."""
    rows = [(*row[:3], "\x1b[31myes" if row[3] == "yes" else "no") for row in _rows()]
    (tmp_path / "table.csv").write_bytes(_csv(rows))
    assert run("fit", "table.csv", "-t", "bought", *FAST, "-o", "out").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True)
        said = run("predict", "out/model.surefit", "table.csv", "-q")
    assert "\\x1b[31myes" in said.out
    assert run("predict", "out/model.surefit", "table.csv", "-q", "-o", "new.csv").code == 0
    assert "\x1b[31myes" in (tmp_path / "new.csv").read_text()


def test_hostile_arguments(run: Callable[..., Said]) -> None:
    for arguments in (
        ("fit", "\x1b[31m.csv", "-t", "y"),
        ("show", "\x1b[31m.surefit"),
        ("\x1b[31m",),
        ("fit", "--\x1b[31m"),
        ("data", "fetch", "\x1b[31m"),
    ):
        assert run(*arguments).code in (2, 3, 4)
