"""Files of vectors that lie, are cut short or hold rubbish: an error with the place, and little memory."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from surefit.text.evaluation import evaluate_analogies, read_analogies, read_pairs
from surefit.text.formats import VectorFileError, read_vectors, write_vectors
from surefit.text.subwords import Subwords, SubwordVectors
from surefit.text.vectors import WordVectors


def written(tmp_path, data, name="file"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def binary(n, d, rows, end=b"\n"):
    """A word2vec binary file of (word, numbers)."""
    parts = [b"%d %d\n" % (n, d)]
    parts += [word + b" " + np.array(row, "<f4").tobytes() + end for word, row in rows]
    return b"".join(parts)


# ------------------------------------------------------------------------------ text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("\n", "line 1 holds a word without numbers"),
        ("0 5\n", "its header says 0 words of 5 numbers"),
        ("5 0\n", "its header says 5 words of 0 numbers"),
        ("2 2\n", "2 words of 2 numbers, which the header speaks of, need at least 11 bytes"),
        ("3 2\na 1 2\nb 3 4000000\n", "the header says 3 words, but the file ends after 2"),
        ("1 2\na 1 2\nb 3 4\n", "line 3: the header says 1 words, but there are more"),
        ("2 2\na 1 2\nb 3 4 5\n", r"line 3 holds 3 number\(s\), not 2, after b'b'"),
        ("2 2\na 1 2\nb     3\n", r"line 3 holds 1 number\(s\), not 2, after b'b'"),
        ("2 2\na 1 2\n 3 4\n", "line 3 begins with a blank, where a word should be"),
        ("2 2\na 1 2\n\x0c\nb 3 4\n", "line 3 begins with a blank"),
        ("a 1 2\nb 3 4\nc 3 4 5\n", r"line 3 holds 3 number\(s\), not 2, after b'c'"),
        ("a 1 2\n\nb 3\n", r"line 3 holds 1 number\(s\), not 2"),
        ("2 2\na 1 2\nb 3 x\n", "line 3: number 2 is b'x'"),
        ("2 2\na 1 2\nb 1_0 3\n", "line 3: number 1 is b'1_0'"),
        ("2 2\na 1 2\nb 3 nan\n", "line 3: number 2 of the word b'b' is nan"),
        ("2 2\na 1 2\nb -inf 1\n", "line 3: number 1 of the word b'b' is -inf"),
        ("2 2\na 1 2\nb 1 1e39\n", "number 2 of the word b'b' is 1e39, which is not finite"),
        ("3 2\na 1 2\nb 1 1\na 2 2\n", "line 4: the word 'a' is there already, as word 1"),
    ],
)
def test_wrong_text(tmp_path, text, words):
    path = written(tmp_path, text)
    for source in (path, written(tmp_path, gzip.compress(text.encode()), "packed")):
        if "need at least" in words and source != path:
            continue  # how much it unpacks to is not known
        with pytest.raises(VectorFileError, match=words) as caught:
            WordVectors.load(source, "word2vec")
        assert str(source) in str(caught.value)


@pytest.mark.parametrize("d", [2, 10**6, 10**15])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", ["word2vec", "word2vec-binary", None])
def test_a_header_that_promises_too_much_allocates_nothing(tmp_path, format, packed, d):
    data = b"%d %d\na 1.0 2.0\n" % (10**13, d)
    path = written(tmp_path, gzip.compress(data) if packed else data)
    tracemalloc.start()
    try:
        with pytest.raises(VectorFileError, match="its header is wrong"):
            read_vectors(path, format)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head", [b"2 2\na 1 2\n", b"a 1 2\n", b""])
def test_a_line_of_a_hundred_megabytes(tmp_path, head):
    """Packed, so that the file is small; memory stays that of a few blocks."""
    packed = gzip.compress(head + b"x" * 100_000_000, 1)
    path = written(tmp_path, packed)
    line = head.count(b"\n") + 1
    tracemalloc.start()
    try:
        with pytest.raises(VectorFileError, match=f"line {line} is longer than"):
            read_vectors(path, "word2vec")
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_a_long_word_in_binary(tmp_path):
    path = written(tmp_path, b"2 2\n" + b"x" * 10_000_000)
    with pytest.raises(VectorFileError, match="word 1 of 2 has no end within 65536 bytes"):
        read_vectors(path, "word2vec-binary")


def test_words_that_are_not_text(tmp_path):
    path = written(tmp_path, b"3 1\nab\xe9 1\nok 2\nab\xe8 3\n")
    with pytest.raises(
        VectorFileError, match=r"line 2: the word b'ab\\xe9' is not UTF-8.*byte 2 is 0xe9"
    ):
        read_vectors(path)
    with pytest.raises(
        VectorFileError, match="line 4: the word 'ab\ufffd' is there already, as word 1"
    ):
        read_vectors(path, errors="replace")
    found = read_vectors(path, errors="replace", duplicates="first")
    assert found.words == ["ab\ufffd", "ok"]
    assert found.vectors.ravel().tolist() == [1, 2]


@pytest.mark.parametrize("format", ["word2vec", "word2vec-binary"])
def test_the_first_of_two_is_kept(tmp_path, format):
    rows = [(b"a", [1, 2]), (b"b", [3, 4]), (b"a", [5, 6]), (b"c", [7, 8])]
    text = "4 2\n" + "".join(f"{w.decode()} {r[0]} {r[1]}\n" for w, r in rows)
    path = written(tmp_path, text if format == "word2vec" else binary(4, 2, rows))
    found = read_vectors(path, duplicates="first")
    assert found.words == ["a", "b", "c"]
    assert found.vectors.tolist() == [[1, 2], [3, 4], [7, 8]]
    with pytest.raises(VectorFileError, match="the word 'a' is there already"):
        read_vectors(path)


@pytest.mark.parametrize(
    "text",
    [
        "2 2\na 1 2\nb 3 -4e-1\n",
        "2 2\r\na 1 2\r\nb 3 -0.4\r\n",
        "2 2\na 1 2 \nb 3 -.4 \n\n",
        "a 1 2\nb 3 -0.40000000000000000000000",
        "\ta".strip() + "\t1\t2\nb\t+3.\t-4E-01",
    ],
)
def test_text_that_is_read(tmp_path, text):
    for data in (text.encode(), gzip.compress(text.encode())):
        found = read_vectors(written(tmp_path, data))
        assert found.words == ["a", "b"]
        np.testing.assert_array_equal(found.vectors, np.float32([[1, 2], [3, -0.4]]))


@pytest.mark.parametrize("d", [1, 2])
def test_a_header_behind_a_byte_order_mark(tmp_path, d):
    """An editor leaves one. With one number a word the header looked like the first of the words."""
    rows = "".join(f"{word} {' '.join('7' * d)}\n" for word in "ab")
    found = read_vectors(written(tmp_path, f"\ufeff2 {d}\n{rows}"))
    assert (found.words, found.vectors.shape) == (["a", "b"], (2, d))


def test_what_a_file_looks_like(tmp_path):
    """A damaged text file is told as one; small numbers of one column are no text."""
    with pytest.raises(VectorFileError, match="line 2: number 1 is b'x'"):
        read_vectors(written(tmp_path, "2 2\na x 2\nb 3 4\n"))
    for value in (1e-3, 0.5, -2.0, 0.0, 1e-30):
        found = read_vectors(written(tmp_path, binary(1, 1, [(b"a", [value])])))
        assert found.vectors.tolist() == [[np.float32(value)]]


def test_text_of_short_numbers_is_told_from_binary(tmp_path):
    """A line of text is shorter than the same numbers in binary, and the next word may be of any bytes."""
    found = read_vectors(written(tmp_path, "2 3\nthe 1 2 3\nnaïve 4 5 6\n"))
    assert found.words == ["the", "naïve"]
    assert found.vectors.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("rest", ["\n" * 2_100_000, "a\n" * 1_050_000])
def test_short_lines_are_not_given_the_rows_of_long_ones(tmp_path, rest):
    """A header of one long row fits into the file; a row for each line would be 4 to 8 terabytes."""
    path = written(tmp_path, "1 1000000\n" + rest)
    tracemalloc.start()
    try:
        with pytest.raises(VectorFileError, match=r"ends after 0|line 2 holds 0 number"):
            read_vectors(path, "word2vec")
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("blank", [0, 1, 3000])
def test_lines_keep_their_numbers_behind_blank_ones(tmp_path, monkeypatch, blank):
    monkeypatch.setattr("surefit.text._source.BLOCK", 64)
    text = "a 1 2\n" + "\n" * blank + "b 3 4\n \n" * 50
    with pytest.raises(VectorFileError, match=f"line {blank + 4}: the word 'b' is there already"):
        read_vectors(written(tmp_path, text))
    found = read_vectors(written(tmp_path, text + "c 5 6\n"), duplicates="first")
    assert found.words == ["a", "b", "c"]
    assert found.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("format", ["word2vec", "word2vec-binary", "fasttext"])
def test_extreme_numbers_are_read_back(tmp_path, format):
    """The largest float32 in shortest text is more than it in float64."""
    top = np.finfo(np.float32).max
    rows = np.float32([[top, -top, 1.1754944e-38, 1e-45, -0.0, 1e16, 123456.79]])
    write_vectors(tmp_path / "v", ["x"], rows, format=format)
    found = read_vectors(tmp_path / "v").vectors
    np.testing.assert_array_equal(found.view(np.int32), rows.view(np.int32))
    with pytest.raises(VectorFileError, match="not finite in float32"):
        read_vectors(written(tmp_path, "1 1\nx 3.4028236e38\n"))


def test_words_with_blanks_of_glove(tmp_path):
    found = read_vectors(written(tmp_path, "a 1 2\n. . . 3 4\nat x@y.z 5 6\n"))
    assert found.words == ["a", ". . .", "at x@y.z"]
    assert found.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_numbers_are_rounded_as_python_does(tmp_path):
    rng = np.random.default_rng(0)
    numbers = [repr(float(x)) for x in rng.normal(size=500) * 10.0 ** rng.integers(-30, 30, 500)]
    numbers += [f"{x:.6g}" for x in rng.normal(size=500)] + ["9007199254740993", "1e-45", "1e22"]
    numbers += ["1e23", "0.0", "-0", "00012", "1e+05", "123456789012345678901234567890"]
    text = "".join(f"w{k} {number}\n" for k, number in enumerate(numbers))
    found = read_vectors(written(tmp_path, f"{len(numbers)} 1\n" + text))
    np.testing.assert_array_equal(found.vectors.ravel(), np.float32([float(x) for x in numbers]))


def test_lines_across_blocks(tmp_path, monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    words = [f"wörd{k}" for k in range(300)]
    for format in ("word2vec", "word2vec-binary", "fasttext"):
        path = tmp_path / format
        write_vectors(path, words, vectors, format=format)
        for block in (7, 64, 1000):
            monkeypatch.setattr("surefit.text._source.BLOCK", block)
            found = read_vectors(path, format)
            assert found.words == words
            np.testing.assert_array_equal(found.vectors, vectors)


@pytest.mark.parametrize("format", ["word2vec", "word2vec-binary"])
def test_limit(tmp_path, format):
    write_vectors(tmp_path / "v", ["a", "b", "c"], np.eye(3), format=format)
    assert read_vectors(tmp_path / "v", limit=2).words == ["a", "b"]
    assert read_vectors(tmp_path / "v", limit=np.int64(9)).words == ["a", "b", "c"]


# ------------------------------------------------------------------------------ binary


def test_binary_without_newlines(tmp_path):
    rows = [(b"a", [1, 2]), ("日本".encode(), [3, 4])]
    for end in (b"", b"\n"):
        found = read_vectors(written(tmp_path, binary(2, 2, rows, end)))
        assert found.words == ["a", "日本"]
        assert found.vectors.tolist() == [[1, 2], [3, 4]]


def test_wrong_binary(tmp_path):
    rows = [(b"a", [1, 2]), (b"b", [3, 4])]
    whole, longer = binary(2, 2, rows), binary(2, 2, [(b"longer", [1, 2]), rows[1]])
    cases = {
        whole[:-5]: "need at least 19 bytes, but at most 17 follow byte 4. The file is cut short",
        longer[:-5]: "ends at byte 26, within the numbers of word 2 of 2",
        binary(3, 2, rows) + b"x" * 20: "ends at byte 46, within word 3 of 3",
        binary(1, 2, rows): "the header says 1 words, but bytes follow them from 14 on",
        binary(2, 2, [rows[0], (b"b", [np.nan, 1])]): "the vector of 'b', word 2, is not finite",
        binary(2, 2, [rows[0], (b"", [1, 1])]): "word 2 of 2 is empty",
        b"hello": "it begins with b'hello', not with a line of two whole numbers",
        binary(2, 2, [(b"\xff", [1, 2]), rows[1]]): r"word 1 of 2: the word b'\\xff' is not UTF-8",
    }
    for data, words in cases.items():
        with pytest.raises(VectorFileError, match=words):
            read_vectors(written(tmp_path, data), "word2vec-binary")


def test_every_cut_of_a_binary_file_is_seen(tmp_path):
    whole = binary(2, 2, [(b"a", [1, 2]), (b"b", [3, 4])], end=b"")
    for size in range(len(whole)):
        with pytest.raises(VectorFileError):
            read_vectors(written(tmp_path, whole[:size]), "word2vec-binary")


def test_a_packed_file_that_is_cut(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(500, 20))
    write_vectors(tmp_path / "v.gz", [f"w{k}" for k in range(500)], vectors)
    data = (tmp_path / "v.gz").read_bytes()
    for bad in (data[: len(data) // 2], data[:-8] + bytes(8), data[:100] + b"?" * 50 + data[150:]):
        with pytest.raises(VectorFileError, match="it cannot be unpacked beyond byte"):
            read_vectors(written(tmp_path, bad), "word2vec")


# ------------------------------------------------------------------------------ fastText


def model(**changes):
    """The parts of a small fastText model, as one writes them by hand."""
    parts = {
        "magic": struct.pack("<i", 793712314),
        "version": struct.pack("<i", 12),
        "settings": struct.pack("<12id", 2, 5, 5, 1, 5, 1, 2, 2, 3, 3, 4, 100, 1e-4),
        "sizes": struct.pack("<3i2q", 2, 2, 0, 7, -1),
        "first": b"cat\0" + struct.pack("<qb", 5, 0),
        "second": b"</s>\0" + struct.pack("<qb", 2, 0),
        "input": struct.pack("<B2q", 0, 5, 2) + np.arange(10, dtype="<f4").tobytes(),
        "output": struct.pack("<B2q", 0, 2, 2) + np.arange(4, dtype="<f4").tobytes(),
        "end": b"",
    }
    return b"".join({**parts, **changes}.values())


def test_a_model_by_hand(tmp_path):
    found = read_vectors(written(tmp_path, model()))
    assert found.words == ["cat", "</s>"]
    assert found.counts.tolist() == [5, 2]
    rows = np.arange(10.0).reshape(5, 2)
    buckets = Subwords(3, 4, 3).table(["cat"])[1]
    expected = np.vstack([rows[:1], rows[2:][buckets]]).mean(axis=0)
    np.testing.assert_allclose(found.vectors[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(found.vectors[1], rows[1])  # the mark has no n-grams
    assert found.output.tolist() == [[0, 1], [2, 3]]


def test_a_supervised_model(tmp_path):
    data = model(
        settings=struct.pack("<12id", 2, 5, 5, 1, 5, 1, 3, 3, 0, 0, 0, 100, 1e-4),
        sizes=struct.pack("<3i2q", 2, 1, 1, 7, -1),
        second=b"__label__x\0" + struct.pack("<qb", 4, 1),
        input=struct.pack("<B2q", 0, 1, 2) + np.float32([1, 2]).tobytes(),
        output=struct.pack("<B2q", 0, 1, 2) + np.float32([3, 4]).tobytes(),
    )
    found = read_vectors(written(tmp_path, data))
    assert (found.words, found.labels) == (["cat"], ("__label__x",))
    assert found.label_counts.tolist() == [4]
    assert found.vectors.tolist() == [[1, 2]]
    assert found.output.tolist() == [[3, 4]]


def test_n_grams_from_no_character_on_begin_with_one(tmp_path):
    """``-minn 0 -maxn 3``: the programme counts from 1."""
    data = model(settings=struct.pack("<12id", 2, 5, 5, 1, 5, 1, 2, 2, 3, 0, 3, 100, 1e-4))
    found = read_vectors(written(tmp_path, data))
    rows = np.arange(10.0).reshape(5, 2)
    buckets = Subwords(1, 3, 3).table(["cat"])[1]
    np.testing.assert_allclose(
        found.vectors[0], np.vstack([rows[:1], rows[2:][buckets]]).mean(axis=0), rtol=1e-6
    )


def test_buckets_of_word_n_grams_are_not_kept(tmp_path):
    data = model(settings=struct.pack("<12id", 2, 5, 5, 1, 5, 2, 3, 3, 3, 0, 0, 100, 1e-4))
    found = read_vectors(written(tmp_path, data))
    assert found.vectors.tolist() == [[0, 1], [2, 3]]
    assert found.vectors.base is None
    assert found.subwords is None


LARGE = struct.pack("<B2q", 0, 5, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"magic": b"abcd"}, "which is not a fastText model"),
        ({"version": struct.pack("<i", 10)}, "it is of version 10; versions 11 and 12 are read"),
        ({"settings": struct.pack("<12id", -2, *[1] * 11, 0.0)}, "its settings say dim=-2"),
        (
            {"settings": struct.pack("<12id", 3, 5, 5, 1, 5, 1, 2, 2, 3, 3, 4, 1, 0.0)},
            r"\(5, 2\), not",
        ),
        ({"sizes": struct.pack("<3i2q", 3, 2, 0, 7, -1)}, "3 entries: 2 words, 0 labels"),
        ({"sizes": struct.pack("<3i2q", 2**31 - 1, 2**31 - 1, 0, 7, -1)}, "2147483647 entries"),
        ({"sizes": struct.pack("<3i2q", 2, 2, 0, 7, 4)}, "it is pruned"),
        ({"second": b"x\0" + struct.pack("<qb", 2, 1)}, "entry 2, b'x', is of kind 1"),
        (
            {"second": b"cat\0" + struct.pack("<qb", 2, 0)},
            "word 2: the word 'cat' is there already",
        ),
        (
            {"second": b"\xff\0" + struct.pack("<qb", 2, 0)},
            r"word 2: the word b'\\xff' is not UTF-8",
        ),
        ({"input": b"\1"}, r"its input matrix is quantised \(a .ftz file\)"),
        (
            {"input": struct.pack("<B2q", 0, 6, 2)},
            r"input matrix is of shape \(6, 2\), not \(5, 2\)",
        ),
        (
            {"output": struct.pack("<B2q", 0, 2**60, 2)},
            "numbers of the output matrix need at least",
        ),
        ({"output": struct.pack("<B2q", 0, -1, 2)}, r"output matrix is of shape \(-1, 2\)"),
        ({"input": LARGE + np.full(10, np.nan, "<f4").tobytes()}, "row 1 of the input matrix"),
        ({"end": b"more"}, "bytes follow the model"),
    ],
)
def test_wrong_models(tmp_path, changes, words):
    with pytest.raises(VectorFileError, match=words):
        read_vectors(written(tmp_path, model(**changes)), "fasttext")


def test_every_cut_of_a_model_is_seen(tmp_path):
    whole = model()
    for size in range(len(whole)):
        for data in (whole[:size], gzip.compress(whole[:size])):
            with pytest.raises(VectorFileError):
                read_vectors(written(tmp_path, data), "fasttext")


def test_random_damage_is_an_error_or_is_read(tmp_path):
    rng = np.random.default_rng(0)
    write_vectors(tmp_path / "text", ["a", "b", "c"], np.eye(3) + 0.5)
    files = [
        model(),
        binary(2, 2, [(b"a", [1, 2]), (b"b", [3, 4])]),
        (tmp_path / "text").read_bytes(),
    ]
    for data in files:
        for _ in range(150):
            bad = bytearray(data)
            for place in rng.integers(0, len(bad), rng.integers(1, 4)):
                bad[place] = rng.integers(0, 256)
            try:
                found = read_vectors(written(tmp_path, bytes(bad)))
            except VectorFileError:
                continue
            assert len(found.words) == len(found.vectors)
            assert np.isfinite(found.vectors).all()


# ------------------------------------------------------------------------------ arguments, writing


def test_wrong_options(tmp_path):
    path = written(tmp_path, model())
    with pytest.raises(
        ValueError, match="format must be one of word2vec, word2vec-binary, fasttext"
    ):
        read_vectors(path, "bin")
    with pytest.raises(ValueError, match="duplicates must be 'error' or 'first'"):
        read_vectors(path, duplicates="last")
    with pytest.raises(ValueError, match="limit must be an integer of 1 or more"):
        read_vectors(path, limit=0)
    with pytest.raises(ValueError, match="limit is for the formats of word2vec"):
        read_vectors(path, limit=1)
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / "nothing")


@pytest.mark.parametrize("format", ["word2vec", "word2vec-binary", "fasttext"])
@pytest.mark.parametrize("word", ["New York", "", "a\nb", "a\tb", " a", "a\r", "a\0b"])
def test_words_with_blanks_are_not_written(tmp_path, format, word):
    path = tmp_path / "vectors"
    path.write_text("the old file")
    with pytest.raises(ValueError, match="is empty or holds a blank") as caught:
        write_vectors(path, ["fine", word], np.eye(2), format=format)
    assert repr(word) in str(caught.value)
    assert path.read_text() == "the old file"
    assert [inner.name for inner in tmp_path.iterdir()] == ["vectors"]


def test_what_is_not_written(tmp_path):
    path = tmp_path / "vectors"
    with pytest.raises(ValueError, match="the vector of 'b' is not finite in float32"):
        write_vectors(path, ["a", "b"], [[1, 2], [3, 1e300]])
    with pytest.raises(ValueError, match="format must be one of"):
        write_vectors(path, ["a"], [[1]], format="txt")
    with pytest.raises(ValueError, match="one row for each of 2 words"):
        write_vectors(path, ["a", "b"], np.eye(3))
    with pytest.raises(ValueError, match="has no UTF-8 form"):
        write_vectors(path, ["\ud800"], [[1]])
    with pytest.raises(ValueError, match="has more than 65536 bytes"):
        write_vectors(path, ["x" * 70_000], [[1]])
    with pytest.raises(ValueError, match="words holds 'a' more than once"):
        write_vectors(path, ["a", "a"], np.eye(2))
    with pytest.raises(TypeError, match="vectors must hold numbers, got dtype complex128"):
        write_vectors(path, ["a"], [[1j]])
    with pytest.raises(TypeError, match="words must be strings, got 3"):
        write_vectors(path, [3], [[1]])
    with pytest.raises(TypeError, match="subwords must be a SubwordVectors"):
        write_vectors(path, ["a"], [[1]], format="fasttext", subwords=object())
    parts = SubwordVectors(Subwords(3, 3, 4), np.eye(4))
    with pytest.raises(ValueError, match="subwords has vectors of 4 numbers, not 1"):
        write_vectors(path, ["a"], [[1]], format="fasttext", subwords=parts)
    with pytest.raises(ValueError, match="output must have 1 columns"):
        write_vectors(path, ["a"], [[1]], format="fasttext", output=np.eye(2))
    with pytest.raises(ValueError, match="counts must be one number for each of 1 words"):
        write_vectors(path, ["a"], [[1]], format="fasttext", counts=[1, 2])
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------ judgements


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "it holds no pairs"),
        (b"a b 1\na b\n", "line 2 must be two words and a score, got 'a b'"),
        (b"a b 1\n\na b x\n", "line 3 must be two words and a score"),
        (b"a b nan\n", "line 1 must be two words and a score"),
        (b"a b c 1\n", "line 1 must be two words and a score"),
        (b"a\tb\tx\nc\td\t1\n", "line 1 must be two words and a score"),
        (b"a\tb\tN\t1\nc\td\t1\n", "line 2 must be two words and a score"),
        (b"a b 1\nc\xff d 2\n", "line 2 is not UTF-8 at its byte 1"),
        (b"a b 1\n" + b"x" * 100_000, "line 2 is longer than 65536 bytes"),
    ],
)
def test_wrong_pairs(tmp_path, text, words):
    for data in (text, gzip.compress(text)):
        with pytest.raises(ValueError, match=words):
            read_pairs(written(tmp_path, data))


@pytest.mark.parametrize(
    "text",
    [
        b"word1\tword2\tPOS\tSimLex999\tconc\nold\tnew\tA\t1.58\t2.72\nbig\tlarge\tA\t9.55\t3\n",
        b"Word 1,Word 2,Human (mean)\r\nold,new,1.58\r\nbig,large,9.55\r\n",
        b"Word 1\tWord 2\tHuman (mean)\nold\tnew\t1.58\nbig\tlarge\t9.55\n",
        b"# comment\nold new 1.58\n\nbig large 9.55",
    ],
)
def test_pairs_as_they_are_published(tmp_path, text):
    assert read_pairs(written(tmp_path, text)) == [("old", "new", 1.58), ("big", "large", 9.55)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "it holds no questions"),
        (b": s\n", "it holds no questions"),
        (b"a b c d\n", "line 1 comes before a ': section' line"),
        (b": s\na b c d\na b c\n", "line 3 must be four words, got 'a b c'"),
    ],
)
def test_wrong_analogies(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_analogies(written(tmp_path, text))


def test_a_packed_file_of_judgements_that_is_cut(tmp_path):
    data = gzip.compress(b"".join(b"w%d w%d 1\n" % (k, 7 * k) for k in range(500)))
    with pytest.raises(ValueError, match="it cannot be unpacked after line"):
        read_pairs(written(tmp_path, data[:-20]))


def test_wrong_sections():
    words = WordVectors("abcd", np.eye(4))
    with pytest.raises(TypeError, match="questions must be a path or a mapping"):
        evaluate_analogies(words, [("a", "b", "c", "d")])
    with pytest.raises(ValueError, match="section 's' must hold questions of four words"):
        evaluate_analogies(words, {"s": [("a", "b", "c")]})
    with pytest.raises(ValueError, match="questions is empty"):
        evaluate_analogies(words, {})
    with pytest.raises(ValueError, match="restrict must be an integer of 1 or more"):
        evaluate_analogies(words, {"s": [tuple("abcd")]}, 0)
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        evaluate_analogies(words, {"s": [tuple("abcd")]}, delta=0.0)
