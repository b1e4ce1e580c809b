"""Reading tables: every choice is inferred and said, and two ways to write a table read the same."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import os
import struct
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data import data_folder

from surefit.data import Parsing, Table, TableError, read_table, shown

PLAIN = b"age,town\n31,Ulm\n44,Bonn\n27,Kiel\n"


def notes(table: Table) -> dict[str, str]:
    return {note["what"]: note["value"] for note in table.parsing.notes}


def test_plain_table() -> None:
    table = read_table(PLAIN)
    assert (table.rows, table.columns) == (3, ["age", "town"])
    assert table.frame.rows() == [("31", "Ulm"), ("44", "Bonn"), ("27", "Kiel")]
    assert notes(table) == {"encoding": "utf-8", "delimiter": "comma", "header": "yes"}


@pytest.mark.parametrize(
    ("data", "delimiter"),
    [
        (b"a;b;c\n1;x;2\n3;y;4\n", ";"),
        (b"a\tb\n1\tx\n3\ty\n", "\t"),
        (b"a|b\n1|x\n3|y\n", "|"),
        (b"a b c\n1 x 2\n3 y 4\n", " "),
        (b"a  b   c\n1  x   2\n 3 y   4 \n", " "),
        (b"a, b\n1, x y\n3, z w\n", ","),  # a blank after a comma is no delimiter
        (b'a;b\n"1;2,5";x\n"3;4,5";y\n', ";"),  # semicolons and commas inside quotes
        (b"1,5;2,25\n1,7;3,45\n", ";"),  # decimal commas
        (b"id,tags\n1,a;b\n2,c;d\n3,e;f\n", ","),
    ],
)
def test_delimiter(data: bytes, delimiter: str) -> None:
    table = read_table(data)
    assert table.parsing.delimiter == delimiter
    assert len(table.columns) >= 2
    assert table.frame.null_count().sum_horizontal().item() == 0


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (b"a,b\n1,2\n3,4\n", True),
        (b"1,2\n3,4\n5,6\n", False),
        (b"A11 6 x\nA12 7 y\nA11 8 x\n", False),  # a number above numbers
        (b"colour,size\nred,big\nblue,small\nred,big\n", True),
        (b"red,big\nblue,small\nred,big\nblue,big\n", False),  # its values occur again below
        (b",x\n0,1.5\n1,2.5\n", True),  # an index column without a name
    ],
)
def test_header(data: bytes, header: bool) -> None:
    table = read_table(data)
    assert table.parsing.header is header
    assert table.rows == data.count(b"\n") - header
    if not header:
        assert table.columns[0] == "column_1"
    assert read_table(data, header=not header).parsing.header is not header


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16-le"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32-le"),
        ("latin-1", "latin-1"),
        ("cp1252", "latin-1"),
    ],
)
def test_encoding(encoding: str, found: str) -> None:
    text = "name,size\nMünchen,3\nKöln,4\n" + "Ulm,5\n" * 40
    table = read_table(text.encode(encoding))
    assert notes(table)["encoding"] == found
    assert table.frame["name"].to_list()[:2] == ["München", "Köln"]
    assert table.columns == ["name", "size"]
    again = read_table(text.encode(encoding), encoding=encoding)
    assert again.fingerprint() == table.fingerprint()


def test_windows_letters_are_said() -> None:
    table = read_table("price\n5€\n6€\n".encode("cp1252"))
    assert table.parsing.encoding == "cp1252"
    assert table.frame["price"][0] == "5€"


def test_missing_values_are_counted_and_said() -> None:
    table = read_table(b"a,b\n1,x\n?,NA\n ,y\n3,none\n")
    assert table.frame["a"].to_list() == ["1", None, None, "3"]
    assert table.frame["b"].to_list() == ["x", None, "y", None]
    [said] = [note for note in table.parsing.notes if note["what"] == "missing values"]
    assert said == {
        "what": "missing values",
        "value": "4",
        "how": "empty 1, '?' 1, 'NA' 1 and 'none' 1",
    }
    kept = read_table(b"a,b\n1,x\n?,NA\n ,y\n3,none\n", missing=["?"])
    assert kept.frame["b"].to_list() == ["x", "NA", "y", "none"]


def test_decimal_comma_is_read_value_by_value() -> None:
    table = read_table(b"a;b\n1,5;x\n-2,25e3;y,z\n7;u\n")
    assert table.parsing.decimal == ","
    assert table.frame["a"].to_list() == ["1.5", "-2.25e3", "7"]
    assert table.frame["b"].to_list() == ["x", "y,z", "u"]


def test_thousands_are_not_guessed() -> None:
    data = b"a;b\n1,000;x\n2,500;y\n"
    table = read_table(data)
    assert notes(table)["decimal"] == "not decided"
    assert table.frame["a"].to_list() == ["1,000", "2,500"]
    assert read_table(data, decimal=",").frame["a"].to_list() == ["1.000", "2.500"]


def test_lines_before_the_table() -> None:
    for start in (b"A report\n", b"# one\n# two\n", b"sep=,\n", b"A report\n\n"):
        table = read_table(start + PLAIN)
        assert table.fingerprint() == read_table(PLAIN).fingerprint()
        assert table.parsing.skipped_lines == len(start.strip().split(b"\n"))
    assert read_table(b"#a,b\n1,2\n3,4\n").columns == ["#a", "b"]  # a header that begins with #


def test_names_are_made_distinct_and_said() -> None:
    table = read_table(b"x,x,,x_2\n1,2,3,4\n5,6,7,8\n")
    assert table.columns == ["x", "x_3", "column_3", "x_2"]
    assert notes(table)["repeated names"] == "'x_3'"
    assert notes(table)["unnamed columns"] == "'column_3'"


def test_blank_lines() -> None:
    assert read_table(b"a,b\n\n1,2\n  \n3,4\n\n\n").rows == 2
    one = read_table(b"a\n1\n\n3\n\n")  # with one column an empty line is a missing value
    assert one.frame["a"].to_list() == ["1", None, "3"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_files(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"  # the name does not matter
    path.write_bytes(pack(PLAIN))  # type: ignore[operator]
    table = read_table(path)
    assert table.fingerprint() == read_table(PLAIN).fingerprint()
    assert table.parsing.compression in notes(table)["compression"]


def test_zip_with_one_file() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner.csv", PLAIN)
    assert read_table(buffer.getvalue()).parsing.compression == "zip"


def test_parquet_and_frames_agree(tmp_path: Path) -> None:
    frame = pl.DataFrame({"n": [1, 2, None], "x": [0.5, float("nan"), 2.0], "t": ["a", "?", " b "]})
    frame = frame.with_columns(pl.Series("b", [True, False, None]))
    frame.write_parquet(tmp_path / "t.parquet")
    tables = [
        read_table(source)
        for source in (tmp_path / "t.parquet", frame, frame.to_dict(as_series=False))
    ]
    assert tables[0].parsing.format == "parquet"
    assert len({table.fingerprint() for table in tables}) == 1
    assert tables[0].frame["x"].to_list() == [0.5, None, 2.0]
    assert tables[0].frame["t"].to_list() == ["a", None, "b"]
    assert tables[0].frame["b"].to_list() == ["true", "false", None]


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, np.nan, 2.0],
            "t": ["a", None, "b"],
            "c": pd.Categorical(["u", "v", "u"]),
            "d": pd.to_datetime(["2020-01-01", "2020-01-02", None]),
            "i": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    table = read_table(frame)
    assert table.frame["x"].to_list() == [0.5, None, 2.0]
    assert table.frame["t"].to_list() == ["a", None, "b"]
    assert table.frame["c"].to_list() == ["u", "v", "u"]
    assert table.frame["i"].to_list() == [1, None, 3]
    assert table.frame["d"].null_count() == 1
    assert table.frame["d"][1].day == 2


def test_streams_and_pipes(tmp_path: Path) -> None:
    wanted = read_table(PLAIN).fingerprint()
    assert read_table(io.BytesIO(PLAIN)).fingerprint() == wanted
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(PLAIN,))
    writer.start()
    assert read_table(str(pipe)).fingerprint() == wanted
    writer.join()
    code = "from surefit.data import read_table; print(read_table('-').fingerprint())"
    done = subprocess.run(
        [sys.executable, "-c", code], input=PLAIN, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == wanted


def test_new_rows_are_read_as_the_old_ones() -> None:
    fitted = read_table(b"a;b\n1,5;x\n2,25;y\n")
    parsing = Parsing.from_dict(fitted.parsing.to_dict())
    assert parsing == fitted.parsing
    new = read_table(b"a;b\n7,125;x\n", parsing=parsing)  # alone it could be thousands
    assert new.frame["a"].to_list() == ["7.125"]
    with pytest.raises(TableError, match=r"cut by tabs.*by semicolons"):
        read_table(b"a\tb\n7,1\tx\n", parsing=parsing)
    assert read_table(b"a\tb\n7,1\tx\n", parsing=parsing, delimiter="\t").columns == ["a", "b"]
    headless = read_table(b"1,2\n3,4\n")
    assert read_table(b"x,y\n", parsing=headless.parsing).columns == ["column_1", "column_2"]


def test_columns_are_selected() -> None:
    assert read_table(PLAIN, columns=["town"]).columns == ["town"]
    with pytest.raises(TableError, match=r"no column 'tow'. Did you mean 'town'\?"):
        read_table(PLAIN, columns=["tow"])


CELLS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters='\n",;|\t'),
    max_size=8,
).map(str.strip)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(CELLS, min_size=width + 1, max_size=width + 1), min_size=1, max_size=6
        )
    ),
    delimiter=st.sampled_from(",;|\t"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_csv_writes_is_read_back(
    rows: list[list[str]], delimiter: str, quoting: int, end: str
) -> None:
    """Any cells, any delimiter: the reader inverts Python's csv writer (blanks at the ends aside)."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
    writer.writerows([[f"c{j}" for j in range(len(rows[0]))], *rows])
    table = read_table(
        buffer.getvalue().encode(), delimiter=delimiter, header=True, decimal=".", missing=[""]
    )
    read = [[cell or "" for cell in row] for row in table.frame.rows()]
    assert read == [[cell.replace("\r\n", "\n") for cell in row] for row in rows]


def test_fingerprint_is_of_the_rows() -> None:
    table = read_table(PLAIN)
    same = [
        gzip.compress(PLAIN),
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b",", b" ; "),
        b'age,town\n31,"Ulm"\n44,"Bonn"\n27,Kiel',
        PLAIN.decode().encode("utf-16"),
    ]
    assert {read_table(data).fingerprint() for data in same} == {table.fingerprint()}
    typed = read_table({"age": [31, 44, 27], "town": ["Ulm", "Bonn", "Kiel"]})
    assert typed.fingerprint() == table.fingerprint()
    others = [
        PLAIN.replace(b"31", b"32"),
        PLAIN.replace(b"age", b"years"),
        PLAIN.replace(b"Ulm\n44,Bonn", b"Bonn\n44,Ulm"),
        PLAIN.replace(b"31,Ulm", b",Ulm"),
        PLAIN + b"1,x\n",
    ]
    prints = {read_table(data).fingerprint() for data in others}
    assert len(prints) == len(others)
    assert table.fingerprint() not in prints
    # where one value ends and the next begins is part of it
    assert (
        read_table({"a": ["xy", "z"]}).fingerprint() != read_table({"a": ["x", "yz"]}).fingerprint()
    )


def test_fingerprint_is_the_documented_hash() -> None:
    """A second implementation, value by value, without polars: the hash depends on no version of it."""
    rows = [("31", "Ulm"), (None, "Köln"), ("27", None)]
    table = read_table({"age": [row[0] for row in rows], "town": [row[1] for row in rows]})
    digest = hashlib.blake2b(digest_size=16, person=b"surefit table 1")
    digest.update(struct.pack("<QQ", 3, 2))
    for j, name in enumerate(("age", "town")):
        digest.update(struct.pack("<Q", len(name)) + name.encode() + b"t")
        cells = [None if row[j] is None else row[j].encode() for row in rows]
        digest.update(b"".join(struct.pack("<q", -1 if c is None else len(c)) for c in cells))
        digest.update(b"".join(c for c in cells if c is not None))
    assert table.fingerprint() == digest.hexdigest()


def test_take() -> None:
    table = read_table(PLAIN)
    assert table.take([2, 0]).frame["town"].to_list() == ["Kiel", "Ulm"]
    assert table.take(np.array([True, False, True])).rows == 2
    assert table.take(np.arange(3)).fingerprint() == table.fingerprint()
    assert table.take([]).rows == 0


def test_shown_escapes_what_a_terminal_would_obey() -> None:
    assert shown("\x1b[2J") == "\\x1b[2J"
    assert shown("a\u202eb") == "a\\u202eb"
    assert shown("a\nb\rc\td") == "a\\nb\\rc\\td"
    assert shown("\u2066x\u200b\ufeff\x9b") == "\\u2066x\\u200b\\ufeff\\x9b"
    assert shown("Größe") == "Größe"
    assert len(shown("\x00" * 1000)) == 60
    assert shown(3.5) == "3.5"


def test_import_of_the_package_is_light() -> None:
    code = "import sys, surefit.data, surefit.preprocessing; print('polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "False"


@pytest.mark.parametrize(
    ("file", "shape", "missing"),
    [
        ("adult/adult.data.gz", (32561, 15), 4262),
        ("adult/adult.test.gz", (16281, 15), 2203),
        ("german/german.data.gz", (1000, 21), 0),
        ("compas/compas-scores-two-years.csv.gz", (7214, 46), None),
        ("california_housing/cal_housing.data.gz", (20640, 9), 0),
    ],
)
def test_published_files(file: str, shape: tuple[int, int], missing: int | None) -> None:
    """Shapes and missing values as their publishers give them."""
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    table = read_table(folder / "tabular" / file)
    assert table.frame.shape == shape
    if missing is not None:
        assert table.frame.null_count().sum_horizontal().item() == missing
