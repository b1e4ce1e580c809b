"""Bad tables: each ends in one clear sentence with a remedy, never in a traceback of something else."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefit.data import TableError, _bytes, propose_schema, read_table, shown
from surefit.preprocessing import TableEncoder

WIDE = ",".join(f"c{i}" for i in range(1_000_000)).encode()
LONG = b"x" * 5_000_000


def archive(*members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for member in members:
            file.writestr(member, "a,b\n1,2\n")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"a,b,c\n", "a header but no rows"),
        (
            b"a,b\n1,2\n3\n4,5,6\n",
            "ragged: the header has 2 fields, but line 3 has 1, line 4 has 3",
        ),
        (b"1,2\n1,2\n1,2,3\n", "most records have 2 fields, but line 3 has 3"),
        (b'a,b\n"1\n2",x\n3\n', "line 4 has 1"),  # lines of the file, not records
        (b"title\na,b\n1,2\n3\n4,5\n", "line 4 has 1"),
        (b"a,b\n1,2,3\n2,3,4\n", "the header has 2 names but every row has 3 fields"),
        (b"a,b\n1,2\n\x003,4\n", "NUL byte in line 3"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "a quote that opens in line 3 is never closed"),
        (
            b'a,b\n1,"2\n3,"4"\n5,6\n',
            "a quote that opens in line 2 closes in the middle of a value",
        ),
        (b'a,b\n1,"' + b"x\n" * 200_000, "line 2: field larger than field limit"),
        (b'a,b\n1,x"' + LONG, "line 2: field larger"),
        (WIDE + b"\n" + WIDE, "1,000,000 columns, more than the 20,000"),
        (WIDE, "1,000,000 columns"),
        ("a,b\n1,é\n".encode("utf-16")[:-1], "damaged at byte"),
        (gzip.compress(b"a,b\n1,2\n" * 100)[:-10], "damaged gzip file"),
        (gzip.compress(b"a,b\n1,2\n")[:12] + b"garbage", "damaged gzip file"),
        (b"\xfd7zXZ\x00rest", "damaged xz file"),
        (b"BZh91AY&SYrest", "damaged bzip2 file"),
        (b"PK\x03\x04rest", "damaged zip file"),
        (archive("a.csv", "b.csv"), "zip archive with 2 files ('a.csv' and 'b.csv')"),
        (archive("[Content_Types].xml", "xl/workbook.xml"), "Excel"),
        (b"PAR1" + bytes(50) + b"PAR1", "damaged Parquet file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel"),
        (b"%PDF-1.7", "a PDF"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b'[{"a": 1}]', "JSON"),
    ],
)
def test_bad_bytes(data: bytes, words: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(data)
    message = str(caught.value)
    assert words in message
    assert message.isprintable()
    assert len(message) < 400


def test_bad_paths(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(TableError, match=r"is a folder; .* It holds 'data.csv'"):
        read_table(tmp_path)
    with pytest.raises(TableError, match=r"there is no file .*dta.csv; did you mean 'data.csv'\?"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(TableError, match=r"its folder .* is not there either"):
        read_table(tmp_path / "no" / "data.csv")
    with pytest.raises(TableError, match="embedded null byte"):
        read_table("a\0b")
    with pytest.raises(TableError, match="is a device"):
        read_table("/dev/zero")
    with pytest.raises(TableError, match="is empty"):
        read_table(os.devnull)
    with pytest.raises(TableError, match="cannot be read"):
        read_table("x" * 5000)


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TableError, match="standard input is closed"):
        read_table("-")


def test_permission_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,2\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(TableError, match="may not be read by this user"):
        read_table(tmp_path / "data.csv")


def test_decompression_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 3_000_000)
    assert read_table(bomb).rows == 3_000_000
    monkeypatch.setattr(_bytes, "BOMB_BYTES", 2**22)
    with pytest.raises(TableError, match="looks like a decompression bomb"):
        read_table(bomb)
    monkeypatch.setattr(_bytes, "MOST_BYTES", 1000)
    with pytest.raises(TableError, match="is larger than"):
        read_table(io.BytesIO(b"a,b\n" + b"1,2\n" * 3000))


def test_a_huge_field_is_only_a_value() -> None:
    table = read_table(b'a,b\n1,"' + LONG + b'"\n2,y\n')
    assert table.frame["b"].str.len_bytes().to_list() == [len(LONG), 1]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({}, "no columns"),
        ({"a": [1, 2], "b": [1]}, "different lengths ('a' 2, 'b' 1)"),
        ({"a": [[1], [2]]}, "the columns 'a' hold lists"),
        ({"a": ["\ud800", "b"]}, "cannot be read"),
        (object(), "cannot be made from object"),
        (3, "cannot be made from int"),
        (None, "cannot be made from NoneType"),
    ],
)
def test_bad_frames(source: object, words: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(source)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"delimiter": "\n"}, "delimiter must be one character"),
        ({"decimal": ";"}, "decimal must be"),
        ({"encoding": "no-such"}, "cannot be read as no-such"),
        ({"encoding": "utf-16"}, "cannot be read as utf-16"),
        ({"missing": "NA"}, "missing must be a list"),
        ({"columns": ["z"]}, "no column 'z'. The columns are 'a' and 'b'"),
    ],
)
def test_bad_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(b"a,b\n1,2\n3,45\n", **options)  # type: ignore[arg-type]
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (b"age,b\n1,2\n3,4\n", {"target": "agee"}, "no column 'agee'. Did you mean 'age'?"),
        (
            b"a,b\n1,2\n3,4\n",
            {"target": "b", "sensitive": ["sex"]},
            "sensitive: there is no column 'sex'",
        ),
        (b"a,b\n1,2\n3,4\n", {"target": "b", "sensitive": ["b"]}, "both the target and sensitive"),
        (
            b"a,b\n1,2\n3,4\n",
            {"target": "b", "roles": {"a": "number"}},
            "'number' for column 'a' is not one of",
        ),
        (b"a,b\n1,2\n3,4\n", {"target": "b", "task": "guess"}, "task must be one of"),
        (b"a,b\n1,2\n3,2\n", {"target": "b"}, "the target 'b' is '2' in every row"),
        (b"a,b\n1,?\n3,?\n", {"target": "b"}, "has no value in 2 rows"),
        (b"a,b\n1,2\n", {"target": "b"}, "one row with a target"),
        (
            b"a,b\n5,x\n5,y\n",
            {"target": "b"},
            "no column is left to predict 'b' from: 'a' is constant",
        ),
        (b"b\nx\ny\n", {"target": "b", "task": "regression"}, "2 values are not, such as 'x'"),
        (b"b\nx\ny\nx\n", {"target": "b"}, "the table has only the target"),
        (
            b"a,b\n" + b"".join(b"%d,t%d\n" % (i % 7, i) for i in range(50)),
            {"target": "b"},
            "50 classes in 50 rows",
        ),
    ],
)
def test_bad_targets(data: bytes, options: dict[str, object], words: str) -> None:
    table = read_table(data, header=True)
    target = str(options.pop("target"))
    with pytest.raises(TableError) as caught:
        propose_schema(table, target, **options)  # type: ignore[arg-type]
    assert words in str(caught.value)


EVIL = "\x1b]0;owned\x07\x1b[31m<script>alert(1)</script>\u202e"


def test_names_from_a_file_cannot_reach_the_terminal() -> None:
    """Names stay as they are in the data; every message that quotes them is printable and short."""
    data = f"{EVIL},{'n' * 5000},y\n1,2,{EVIL}\n2,3,b\n3,5,{EVIL}\n".encode()
    table = read_table(data, header=True)
    assert table.columns[0] == EVIL
    messages = [note[part] for note in table.parsing.notes for part in note]
    schema = propose_schema(table, "y")
    messages += [note[part] for note in schema.notes for part in note]
    messages += [column.note for column in schema.columns]
    for target in ("z", EVIL[:-1]):
        with pytest.raises(TableError) as caught:
            propose_schema(table, target)
        messages.append(str(caught.value))
    encoder = TableEncoder([column.to_dict() for column in schema.features]).fit(table)
    with pytest.raises(TableError) as caught:
        encoder.transform(table.frame.rename({EVIL: "other"}))
    messages.append(str(caught.value))
    with pytest.raises(TableError) as caught:
        encoder.transform({EVIL: [EVIL], "n" * 5000: ["1"]})
    messages.append(str(caught.value))
    for message in messages:
        assert message.isprintable()
        assert len(message) < 1000
    assert any(shown(EVIL) in message for message in messages)


def test_evil_file_names(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m.csv"
    path.write_bytes(b"a,b\n1\n")
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert str(caught.value).isprintable()


def test_nothing_to_code() -> None:
    with pytest.raises(TableError, match="nothing to code"):
        TableEncoder().fit({"a": ["x", "x"]})
    with pytest.raises(TableError, match="no rows to learn from"):
        TableEncoder([{"name": "a", "role": "numeric"}]).fit({"a": np.empty(0)})
    with pytest.raises(TableError, match=r"no column 'b'"):
        TableEncoder([{"name": "b", "role": "numeric"}]).fit({"a": [1.0]})


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200), st.text(alphabet="ab1,;\n\"\t |#'.", max_size=120).map(str.encode)
    )
)
def test_any_bytes_are_a_table_or_a_table_error(data: bytes) -> None:
    message = ""
    try:
        table = read_table(data)
        assert table.rows >= 1
        assert len(set(table.columns)) == len(table.columns)
        assert len(table.fingerprint()) == 32
        for name in table.columns:
            with contextlib.suppress(TableError):
                propose_schema(table, name)
    except TableError as error:
        message = str(error)
    assert message.isprintable()
