"""``surefit data``: the list of tables, fetching from a folder, and how a file would be read."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from surefit.cli import main
from surefit.data import about, fetchable, load, names
from tests.cli.conftest import Run
from tests.data import data_folder


def test_the_list(run: Run) -> None:
    rows = json.loads(run("data", "list", "--json").out)
    assert [row["name"] for row in rows] == [*names(), *fetchable()]
    for row in rows:
        assert row["target"] == about(row["name"])["target"]
    said = run("data", "list")
    assert said.code == 0
    assert all(name in said.out for name in ("mortgages", "adult", "german"))


def test_a_bundled_table_as_a_file(run: Run, tmp_path: Path) -> None:
    said = run("data", "fetch", "mortgages")
    assert (said.code, said.out) == (0, "mortgages.csv\n")
    assert (
        "next: surefit fit mortgages.csv --target denied --sensitive african_american" in said.err
    )
    assert pl.read_csv(tmp_path / "mortgages.csv").height == load("mortgages").rows


def test_a_classic_table_from_a_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    monkeypatch.setenv("SUREFIT_DATA_HOME", str(tmp_path / "kept"))
    said = run("data", "fetch", "german", "--from", folder, "-o", "credit.csv")
    assert said.code == 0
    assert pl.read_csv(tmp_path / "credit.csv").height == 1000
    assert said.err.startswith("next: surefit fit credit.csv --target credit")


def test_a_folder_without_the_table(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREFIT_DATA_HOME", str(tmp_path / "kept"))
    (tmp_path / "empty").mkdir()
    said = run("data", "fetch", "german", "--from", "empty")
    assert said.code == 3
    assert "has no german.data" in said.err
    (tmp_path / "empty" / "german.data").write_text("1 2 3\n")
    said = run("data", "fetch", "german", "--from", "empty")
    assert said.code == 3
    assert "not the published german.data" in said.err
    assert not (tmp_path / "german.csv").exists()


def test_how_a_file_is_read(run: Run, fitted: Path) -> None:
    found = json.loads(
        run("data", "schema", fitted / "mortgages.csv", "-t", "denied", "--json").out
    )
    assert found["parsing"]["delimiter"] == ","
    roles = {column["name"]: column["role"] for column in found["schema"]["columns"]}
    assert roles["payment_income"] == "numeric"
    assert "denied" not in roles
    said = run("data", "schema", fitted / "mortgages.csv", "-t", "denied")
    assert said.code == 0
    assert "delimiter: comma" in said.out
    assert "payment_income" in said.out


def test_fetch_as_json_names_the_file_and_the_table(tmp_path, capsys):
    path = tmp_path / "iris.csv"
    assert main(["data", "fetch", "iris", "--out", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["file"], said["rows"], said["target"]) == (str(path), 150, "species")
    assert len(path.read_text(encoding="utf8").splitlines()) == 151
