"""Fetching classic sets: digests decide, a folder stands in for the network, nothing half-written stays."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import urllib.error
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.data import data_folder

from surefit.data import TableError, about, fetch, fetchable, fetching
from surefit.data._classics import CLASSICS, File

GERMAN = (
    b"A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1\n"
    b"A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2\n"
)


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The German set with a made file of two rows as the published one, and no way out to the network."""

    def offline(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(fetching.urllib.request, "urlopen", offline)  # type: ignore[attr-defined]
    monkeypatch.delenv("SUREFIT_DATA_SOURCE", raising=False)
    digest = hashlib.sha256(GERMAN).hexdigest()
    files = tuple(replace(file, digests=(digest,)) for file in CLASSICS["german"].files)
    monkeypatch.setitem(CLASSICS, "german", replace(CLASSICS["german"], files=files))
    return GERMAN


@pytest.mark.parametrize(
    "place",
    ["german.data", "german.data.gz", "german/german.data", "tabular/german/german.data.gz"],
)
def test_a_folder_stands_in_for_the_network(german: bytes, tmp_path: Path, place: str) -> None:
    path = tmp_path / "source" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(german) if place.endswith(".gz") else german)
    table = fetch("german", folder=tmp_path / "kept", source=tmp_path / "source")
    assert table.name == "german"
    assert table.frame["sex"].to_list() == ["male", "female"]
    assert table.frame["credit"].to_list() == ["good", "bad"]
    assert table.frame["purpose"].to_list() == ["radio or television"] * 2
    assert (tmp_path / "kept" / "german" / "german.data").read_bytes() == german
    # from now on the kept file is used: no source, no network
    assert fetch("german", folder=tmp_path / "kept").fingerprint() == table.fingerprint()


def test_environment_and_addresses(
    german: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "german.data").write_bytes(german)
    monkeypatch.setenv("SUREFIT_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SUREFIT_DATA_SOURCE", tmp_path.as_uri())
    assert fetch("german").rows == 2
    assert (tmp_path / "home" / "german" / "german.data").is_file()


def test_a_wrong_file_is_refused_and_not_kept(german: bytes, tmp_path: Path) -> None:
    (tmp_path / "german.data").write_bytes(german.replace(b"1169", b"1170"))
    with pytest.raises(TableError, match=r"is not the published german.data: its SHA-256 is"):
        fetch("german", folder=tmp_path / "kept", source=tmp_path)
    assert not list(tmp_path.rglob("kept/**/german.data"))


def test_a_damaged_kept_file_is_fetched_again(german: bytes, tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "german" / "german.data"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(german[:-5])
    with pytest.raises(TableError, match="no network in tests"):
        fetch("german", folder=tmp_path / "kept")
    (tmp_path / "german.data").write_bytes(german)
    fetch("german", folder=tmp_path / "kept", source=tmp_path)
    assert kept.read_bytes() == german
    assert [path.name for path in kept.parent.iterdir()] == ["german.data"]  # no temporary file


def test_offline_says_what_to_do(german: bytes, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"could not be fetched.*give it as source"):
        fetch("german", folder=tmp_path)
    with pytest.raises(TableError, match="there is no folder"):
        fetch("german", folder=tmp_path, source=tmp_path / "nowhere")
    with pytest.raises(TableError, match=r"has no german.data, nor german/german.data"):
        fetch("german", folder=tmp_path / "kept", source=tmp_path)
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    (tmp_path / "german.data").write_bytes(german)
    with pytest.raises(TableError, match="cannot be written"):
        fetch("german", folder=blocked, source=tmp_path)


@pytest.mark.parametrize("kind", ["plain", "zip", "tar"])
def test_archives_of_the_publisher(
    german: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    buffer = io.BytesIO()
    if kind == "plain":
        buffer.write(german)
    elif kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("german.data", german)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as bundle:
            info = tarfile.TarInfo("german.data")
            info.size = len(german)
            bundle.addfile(info, io.BytesIO(german))
    asked: list[str] = []

    def answer(request: object, timeout: float) -> io.BytesIO:
        asked.append(request.full_url)  # type: ignore[attr-defined]
        assert timeout > 0
        return io.BytesIO(buffer.getvalue())

    monkeypatch.setattr(fetching.urllib.request, "urlopen", answer)  # type: ignore[attr-defined]
    url = "https://example.org/german" + ("" if kind == "plain" else "#german.data")
    [file] = CLASSICS["german"].files
    one = replace(CLASSICS["german"], files=(File(file.name, (url,), file.digests),))
    monkeypatch.setitem(CLASSICS, "german", one)
    assert fetch("german", folder=tmp_path).rows == 2
    assert asked == ["https://example.org/german"]


def test_what_can_be_fetched() -> None:
    assert fetchable() == ["adult", "german", "compas", "california-housing"]
    with pytest.raises(TableError, match=r"no data set 'adlt' to fetch. Did you mean 'adult'\?"):
        fetch("adlt")
    for name in fetchable():
        for file in CLASSICS[name].files:
            assert all(url.startswith("https://") for url in file.urls)
            assert all(len(digest) == 64 for digest in file.digests)


@pytest.mark.parametrize("name", fetchable())
def test_published_sets(name: str, tmp_path: Path) -> None:
    """The real files have the published digests and become tables of the usual size."""
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    table = fetch(name, folder=tmp_path, source=folder)
    facts = about(name)
    assert table.frame.shape == (facts["rows"], facts["columns"])
    assert {facts["target"], *facts["sensitive"]} <= set(table.columns)
    if name == "adult":
        assert sorted(table.frame["income"].unique()) == ["<=50K", ">50K"]
        assert table.frame["income"].value_counts().sort("count")["count"].to_list() == [
            11687,
            37155,
        ]
    if name == "german":
        assert table.frame["credit"].value_counts().sort("count")["count"].to_list() == [300, 700]
        assert table.frame["sex"].value_counts().sort("count")["count"].to_list() == [310, 690]
    if name == "compas":
        assert table.frame.filter(two_year_recid="1").height == 2809
