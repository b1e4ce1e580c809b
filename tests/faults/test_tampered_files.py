"""Files changed by hand: ``certificate.json``, the model file, the table; ``surefit verify`` must say no.

Exit code 1 says that a claim fails, 4 that the model file or certificate cannot be read.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.forged import fitted

import surefit
import surefit.io
from surefit.cli import main
from surefit.cli.fit import write
from surefit.linear_model import Ridge
from surefit.table import verify_table

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three files of a model, and its table."""
    table, model = fitted("mortgages")
    folder = tmp_path_factory.mktemp("written")
    write(model, folder)
    table.frame.write_csv(folder / "table.csv")
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy of them that the test may change."""
    for path in written.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture
def verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*options: str) -> tuple[int, str]:
        model, table = str(folder / "model.surefit"), str(folder / "table.csv")
        code = main(["verify", model, table, "--quick", *options])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out + err

    return run


def test_untouched_files_verify(verify: Run) -> None:
    code, text = verify()
    assert code == 0
    assert "no claim fails" in text


# -------------------------------------------------------------------- certificate.json


def _document() -> dict[str, Any]:
    document: dict[str, Any] = fitted("mortgages")[1].document()
    return document


@pytest.mark.parametrize("key", sorted(_document()))
def test_an_edited_certificate_is_refused(folder: Path, verify: Run, key: str) -> None:
    """Every key of the document, changed and then taken out."""
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, key: _other(document[key])}))
    code, text = verify()
    assert code == 1
    assert "certificate.json differs" in text
    assert key in text
    del document[key]
    path.write_text(json.dumps(document))
    assert verify()[0] == 1


def _other(value: Any) -> Any:
    """A value of the same kind that is not the same."""
    if isinstance(value, dict):
        key = next(iter(value))
        return {**value, key: _other(value[key])}
    if isinstance(value, list):
        return [*value[:-1], _other(value[-1])] if value else ["something"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value + 1
    return f"not {value}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a certificate"),
        ("{", "not a certificate"),
        ("null", "not an object"),
        ("[]", "not an object"),
        ("[" * 100_000, "not a certificate"),
        ("\x00\x01", "not a certificate"),
        ('"certificate"', "not an object"),
    ],
    ids=["empty", "cut", "null", "list", "deep", "binary", "text"],
)
def test_what_is_no_certificate_is_not_read(
    folder: Path, verify: Run, text: str, words: str
) -> None:
    (folder / "certificate.json").write_text(text)
    code, said = verify()
    assert code == 4
    assert words in said


@pytest.mark.parametrize("text", ["{}", '{"schema": 1e999}', '{"data": NaN}', '{"claims": []}'])
def test_a_certificate_of_nothing_fails(folder: Path, verify: Run, text: str) -> None:
    (folder / "certificate.json").write_text(text)
    assert verify()[0] == 1


def test_a_truncated_certificate_is_not_read(folder: Path, verify: Run) -> None:
    path = folder / "certificate.json"
    path.write_bytes(path.read_bytes()[:-200])
    assert verify()[0] == 4


def test_another_certificate_can_be_named(folder: Path, verify: Run) -> None:
    other = folder / "other.json"
    (folder / "certificate.json").rename(other)
    assert verify()[0] == 0
    assert verify("--certificate", str(other))[0] == 0
    other.write_text(json.dumps(fitted("diabetes")[1].document()))
    assert verify("--certificate", str(other))[0] == 1
    code, text = verify("--certificate", str(folder / "none.json"))
    assert code == 4
    assert "none.json" in text


# -------------------------------------------------------------------- the model file


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_truncated_model_is_not_read(folder: Path, verify: Run, share: float) -> None:
    path = folder / "model.surefit"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    code, text = verify()
    assert code == 4
    assert "model.surefit" in text


@pytest.mark.parametrize("place", [0.01, 0.2, 0.5, 0.8, 0.99])
def test_a_flipped_bit_is_noticed(folder: Path, verify: Run, place: float) -> None:
    path = folder / "model.surefit"
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 1
    path.write_bytes(data)
    assert verify()[0] == 4


def _header(path: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The safetensors header, surefit's document in it, and the tensors."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["surefit"]), data[8 + length :]


def _rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The file again with a changed document, sealed by a checksum that fits."""
    header, document, tensors = _header(path)
    change(document)
    document["checksum"] = surefit.io._BLANK
    header["__metadata__"]["surefit"] = json.dumps(document)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    checksum = surefit.io._digest(text, [tensors])
    text = text.replace(surefit.io._BLANK.encode(), checksum.encode(), 1)
    path.write_bytes(len(text).to_bytes(8, "little") + text + tensors)


def test_a_rewritten_file_is_read(folder: Path, verify: Run) -> None:
    """The forger's tool above works: without a change, the file it writes verifies."""
    _rewrite(folder / "model.surefit", lambda document: None)
    assert verify()[0] == 0


FILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a newer format": lambda d: d.update(format=99),
    "no format": lambda d: d.pop("format"),
    "a format that is no number": lambda d: d.update(format="1"),
    "a class outside the table": lambda d: d["tree"]["estimator"].update({"class": "os.system"}),
    "another class of the table": lambda d: d["tree"]["estimator"].update(
        {"class": "surefit.linear_model.Ridge"}
    ),
    "no tree": lambda d: d.update(tree={}),
}


@pytest.mark.parametrize("what", FILE)
def test_a_file_of_something_else_is_not_read(folder: Path, verify: Run, what: str) -> None:
    _rewrite(folder / "model.surefit", FILE[what])
    assert verify()[0] == 4


@pytest.mark.parametrize(
    "name",
    ["sections_", "evidence_", "candidates_", "encoder_", "model_", "certificate_", "classes_"],
)
@pytest.mark.parametrize("how", ["missing", "of another kind"])
def test_a_part_that_is_missing_or_wrong(folder: Path, verify: Run, name: str, how: str) -> None:
    model = copy.deepcopy(fitted("mortgages")[1])
    if how == "missing":
        delattr(model, name)
    else:
        setattr(model, name, 7)
    surefit.save(model, folder / "model.surefit")
    code, text = verify()
    assert code == 4
    assert name in text or "whole table model" in text


HOLLOW: dict[str, Callable[[Any], Any]] = {
    "candidates that are numbers": lambda m: setattr(m, "candidates_", [1, 2, 3]),
    "no candidates": lambda m: setattr(m, "candidates_", []),
    "a place beyond the log": lambda m: setattr(m, "chosen_", 99),
    "claims that are text": lambda m: m.sections_.update(optimality=["all is well"]),
    "claims without a status": lambda m: m.sections_["optimality"][0].pop("status"),
    "a schema without columns": lambda m: m.schema_.pop("columns"),
    "parsing of another kind": lambda m: m.parsing_.clear(),
    "no facts of the data": lambda m: m.data_.clear(),
    "an encoder that has learnt nothing": lambda m: m.encoder_.features_.clear(),
    "a scale of 0": lambda m: m.encoder_.features_[0].update(scale=0.0),
    "coefficients too few": lambda m: setattr(m.model_, "coef_", m.model_.coef_[:, :3]),
    "coefficients that are no numbers": lambda m: m.model_.coef_.fill(float("nan")),
}


@pytest.mark.parametrize("what", HOLLOW)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_hollow_model_is_refused_by_every_command(
    folder: Path, verify: Run, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """Parts of the right kind with nonsense inside: ``verify`` refuses, and no command breaks down."""
    model = copy.deepcopy(fitted("mortgages")[1])
    HOLLOW[what](model)
    path, table = str(folder / "model.surefit"), str(folder / "table.csv")
    surefit.save(model, path)
    assert verify()[0] in (1, 4)
    for command in (["show", path], ["report", path], ["predict", path, table]):
        assert main(command) in (0, 4)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err


def test_a_plain_estimator_is_no_table_model(folder: Path, verify: Run) -> None:
    surefit.save(Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.1]), folder / "model.surefit")
    code, text = verify()
    assert code == 4
    assert "Ridge without a table" in text


def test_a_model_of_another_table(folder: Path, verify: Run) -> None:
    surefit.save(fitted("diabetes")[1], folder / "model.surefit")
    assert verify()[0] == 1


# -------------------------------------------------------------------- the table

TABLE: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "one cell": lambda f: f.with_columns(
        pl.when(pl.int_range(pl.len()) == 7)
        .then(pl.lit("0.5"))
        .otherwise(pl.col("payment_income"))
        .alias("payment_income")
    ),
    "one target": lambda f: f.with_columns(
        pl.when(pl.int_range(pl.len()) == 7)
        .then(pl.lit("yes"))
        .otherwise(pl.lit("no"))
        .alias("denied")
    ),
    "one row removed": lambda f: f.head(f.height - 1),
    "one row twice": lambda f: pl.concat([f, f.tail(1)]),
    "rows in another order": lambda f: f.reverse(),
    "two rows swapped": lambda f: pl.concat([f[1:2], f[0:1], f[2:]]),
    "a column renamed": lambda f: f.rename({"payment_income": "debts"}),
    "two columns exchanged": lambda f: f.rename({"denied": "single", "single": "denied"}),
    "a missing value": lambda f: f.with_columns(
        pl.when(pl.int_range(pl.len()) > 0).then(pl.col("payment_income")).alias("payment_income")
    ),
}


@pytest.mark.parametrize("what", TABLE)
def test_another_table_is_refused(what: str) -> None:
    table, model = fitted("mortgages")
    assert verify_table(model, table.frame, quick=True).ok
    outcome = verify_table(model, TABLE[what](table.frame), quick=True)
    assert not outcome.ok
    assert "not the table of the fit" in outcome.record[0].statement


def test_what_does_not_matter_about_a_table(folder: Path) -> None:
    """Columns in another order, one more column, Parquet instead of CSV: the same rows verify."""
    table, model = fitted("mortgages")
    frame = table.frame
    assert verify_table(model, frame.select(frame.columns[::-1]), quick=True).ok
    assert verify_table(model, frame.with_columns(extra=pl.lit(1)), quick=True).ok
    frame.write_parquet(folder / "table.parquet")
    assert verify_table(model, folder / "table.parquet", quick=True).ok
