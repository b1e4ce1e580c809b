"""Corpora: contexts, files, long lines, wrong bytes; vocabularies and encoded corpora."""

import gzip
import lzma
import tracemalloc
import zlib

import numpy as np
import pandas as pd
import pytest

from surefit.fingerprint import fingerprint
from surefit.text import Corpus, Vocabulary
from surefit.text.corpus import as_corpus

TEXT = "The cat sat. It purred!\nA dog barked.\n\nNew paragraph here."


def contexts(corpus, kind):
    """The words of each context, segments put together."""
    found, rest = [], []
    for words, last in corpus.segments(kind):
        rest += words
        if last:
            found, rest = [*found, rest], []
    assert not rest
    return found


@pytest.mark.parametrize("as_file", [False, True])
def test_contexts(tmp_path, as_file):
    if as_file:
        (tmp_path / "text.txt").write_text(TEXT)
    corpus = Corpus(tmp_path / "text.txt" if as_file else [TEXT])
    assert [len(c) for c in contexts(corpus, "sentence")] == [3, 2, 3, 3]
    assert [len(c) for c in contexts(corpus, "paragraph")] == [8, 3]
    assert [len(c) for c in contexts(corpus, "document")] == [11]
    assert [len(c) for c in contexts(corpus, "text")] == ([5, 3, 3] if as_file else [11])


@pytest.mark.parametrize("kind", ["text", "sentence", "paragraph", "document"])
@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_cut_segments_are_the_same_contexts(kind, most):
    texts = [TEXT, "", "one", ["a", "list"], "x. y.\n\n\n\nz"]
    whole = contexts(Corpus(texts), kind)
    assert contexts(Corpus(texts, max_words=most), kind) == whole
    assert all(len(words) <= most for words, _ in Corpus(texts, max_words=most).segments(kind))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_files_are_read_again_on_each_pass(tmp_path, suffix):
    path = tmp_path / f"text.txt{suffix}"
    opener = {"": open, ".gz": gzip.open, ".xz": lzma.open}[suffix]
    with opener(path, "wt", encoding="utf-8") as file:
        file.write("Größe und Länge\nzwei\n")
    corpus = Corpus(path, lowercase=True)
    assert list(corpus) == list(corpus) == [["größe", "und", "länge"], ["zwei"]]
    assert list(Corpus(tmp_path)) == [["Größe", "und", "Länge"], ["zwei"]]


def test_a_line_of_many_megabytes_is_read_in_parts(tmp_path):
    word, count = "wörter", 2_000_000
    with open(tmp_path / "long.txt", "w", encoding="utf-8") as file:
        for _ in range(count // 10_000):
            file.write(f"{word} " * 10_000)
    tracemalloc.start()
    found = sum(len(words) for words in Corpus(tmp_path / "long.txt"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == count
    assert most < 8e6  # of 16e6 bytes: 65,536 characters, their words, and one more block


def test_a_word_without_end_is_cut(tmp_path):
    (tmp_path / "long.txt").write_text("x" * 5_000_000 + " end")
    words = [word for segment in Corpus(tmp_path / "long.txt") for word in segment]
    assert sum(map(len, words)) == 5_000_003
    assert words[-1] == "end"


@pytest.mark.parametrize("where", [10, (1 << 16) - 1, (1 << 20) + 3])
def test_bytes_that_are_not_text(tmp_path, where):
    body = bytearray(b"ab " * 500_000)
    body[where] = 0xFF
    (tmp_path / "bad.txt").write_bytes(body)
    with pytest.raises(
        ValueError, match=rf"bad.txt is not utf-8: byte {where} .*0xff.*errors='replace'"
    ):
        list(Corpus(tmp_path / "bad.txt"))
    words = [word for segment in Corpus(tmp_path / "bad.txt", errors="replace") for word in segment]
    assert sum("�" in word for word in words) == 1
    (tmp_path / "latin.txt").write_bytes("Größe".encode("latin-1"))
    assert list(Corpus(tmp_path / "latin.txt", encoding="latin-1")) == [["Größe"]]


LONG = "ab " * 43_690 + "c "  # 2^17 characters: all of them are gone when the file ends


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("text", [43_691, 2]), ("sentence", [43_691, 2]), ("document", [43_691, 2])],
)
def test_a_long_line_ends_with_its_file(tmp_path, kind, expected):
    """Nothing is left of it to say so."""
    (tmp_path / "1.txt").write_text(LONG)
    (tmp_path / "2.txt").write_text("x y")
    assert [len(words) for words in contexts(Corpus(tmp_path), kind)] == expected


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_texts_are_whole(tmp_path, end):
    """Empty ones too; what ends a file's last line begins no other."""
    texts = ["a b c d e", "", "f", " "]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts) + end)
    expected = [text.split() for text in texts] + [[]] * (len(end) - 1)
    assert list(Corpus(path, max_words=2).texts()) == expected
    assert list(Corpus(texts, max_words=2).texts()) == [text.split() for text in texts]
    assert list(Corpus([["A", "b"], []], lowercase=True).texts()) == [["a", "b"], []]
    long = "word " * 30_000  # read in parts, of which the last may be empty
    path.write_text(long + "\n" + long + end)
    assert [len(words) for words in Corpus(path).texts()] == [30_000] * 2 + [0] * (len(end) - 1)


def test_the_end_of_a_long_line_is_no_empty_line(tmp_path):
    (tmp_path / "long.txt").write_text(LONG + "\nx y\n" + " " * 200_000 + "\nz")
    found = contexts(Corpus(tmp_path / "long.txt"), "paragraph")
    assert [len(words) for words in found] == [43_693, 1]


def test_long_lines_are_cut_at_any_blank(tmp_path):
    words = ["wort" + str(k % 7) for k in range(40_000)]
    (tmp_path / "long.txt").write_text("\u3000".join(words), encoding="utf-8")
    assert [word for segment in Corpus(tmp_path / "long.txt") for word in segment] == words


@pytest.mark.parametrize("kind", ["sentence", "paragraph"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_strings_have_the_lines_of_files(tmp_path, kind, end):
    text = end.join(["a b", "", "c\u2028d\x0ce \x85f. g", "h"])
    (tmp_path / "text.txt").write_bytes(text.encode())
    expected = {"sentence": [2, 4, 1, 1], "paragraph": [2, 6]}[kind]
    for source in ([text], tmp_path / "text.txt"):
        assert [len(words) for words in contexts(Corpus(source), kind)] == expected


def test_quotes_stay_with_their_sentence():
    text = 'He said "Go." Then (he left!) „Ja.” 3.5 is one.'
    found = contexts(Corpus([text]), "sentence")
    assert [" ".join(words) for words in found] == [
        'He said "Go."',
        "Then (he left!)",
        "„Ja.”",
        "3.5 is one.",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_a_word(tmp_path, encoding):
    (tmp_path / "text.txt").write_text("\ufeffthe cat", encoding=encoding.removesuffix("-sig"))
    assert list(Corpus(tmp_path / "text.txt", encoding=encoding)) == [["the", "cat"]]


def test_a_packed_file_that_is_damaged(tmp_path):
    """Bits that deflate cannot read are another error than a wrong sum."""
    packed = bytearray(gzip.compress(bytes(range(256)) * 2000))
    packed[10] |= 6  # the type of a block that does not exist
    with pytest.raises(zlib.error):
        gzip.decompress(packed)
    (tmp_path / "bad.txt.GZ").write_bytes(packed)
    with pytest.raises(ValueError, match=r"bad.txt.GZ cannot be read beyond byte 0"):
        list(Corpus(tmp_path / "bad.txt.GZ"))


def test_a_file_that_is_cut_short(tmp_path):
    packed = gzip.compress(b"word " * 100_000)
    (tmp_path / "cut.txt.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ValueError, match=r"cut.txt.gz cannot be read beyond"):
        list(Corpus(tmp_path / "cut.txt.gz"))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Corpus(iter(["a b"])), TypeError, "used up after one pass"),
        (lambda: Corpus(3), TypeError, "source must be"),
        (lambda: Corpus(["a"], max_words=0), ValueError, "max_words"),
        (lambda: Corpus(["a"], tokenizer="split"), TypeError, "tokenizer"),
        (lambda: Corpus(["a"], encoding="utf-99"), LookupError, "utf-99"),
        (lambda: list(Corpus([b"bytes"])), TypeError, "text 0 .*bytes"),
        (lambda: list(Corpus([None])), TypeError, "text 0 .*NoneType"),
        (lambda: list(Corpus([["a", 3]])), TypeError, "text 0 .*3"),
        (lambda: list(Corpus(["a"]).segments("page")), ValueError, "context"),
        (lambda: as_corpus("one string"), ValueError, "one string"),
        (
            lambda: Corpus("words " * 1000),
            FileNotFoundError,
            r"words w?.*\.\.\.', which is no file",
        ),
        (lambda: Corpus(["a"], encoding="hex"), LookupError, "not a text encoding"),
        (lambda: Corpus(pd.DataFrame({"text": ["a b"]})), TypeError, "a table .DataFrame"),
        (lambda: Corpus({"a b", "c d"}), TypeError, "a set .*order is not the same"),
        (lambda: Corpus({"first": "a b"}), TypeError, "a mapping .dict.* its values"),
        (lambda: Corpus(np.array([["a b"], ["c"]])), ValueError, r"shape \(2, 1\): .* one column"),
        (lambda: as_corpus(np.array("a b", object)), ValueError, r"shape \(\): pass a list"),
        (lambda: list(Corpus(lambda: None)), TypeError, "source must return .*NoneType"),
        (lambda: list(Corpus(lambda: "a b")), TypeError, "source must return .*str"),
        (lambda: list(Corpus([{"text": "a"}])), TypeError, "text 0 .*got dict"),
        (lambda: list(Corpus([{"a", "b"}])), TypeError, "text 0 .*got set"),
        (lambda: list(Corpus(["a", (w for w in "ab")])), TypeError, "text 1 .*used up after one"),
        (lambda: list(Corpus(["a b"], tokenizer=str.upper)), TypeError, "tokenizer .*string 'A B'"),
        (
            lambda: list(Corpus(["a"], tokenizer=lambda _: [1])),
            TypeError,
            "tokenizer returns holds 1",
        ),
        (lambda: list(Corpus(["a"], tokenizer=lambda _: None)), TypeError, "tokenizer .*NoneType"),
        (lambda: Vocabulary.of(["a b"], min_count=1), TypeError, "the string 'a b': use Corpus"),
        (lambda: Vocabulary(["a"], [1]).encode(["a b"]), TypeError, "the string 'a b': use Corpus"),
        (lambda: Vocabulary.of(Corpus(["a"]), min_count="3"), ValueError, "min_count must .*'3'"),
        (lambda: Vocabulary.of(Corpus(["a"]), max_size=0), ValueError, "max_size must .*0"),
        (
            lambda: Vocabulary.of(Corpus(["a b"]), min_count=2),
            ValueError,
            "min_count=2 leaves no word",
        ),
        (lambda: Vocabulary.of(Corpus([])), ValueError, "empty"),
    ],
)
def test_wrong_input(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_words_of_numpy_are_plain_strings():
    corpus = Corpus([np.array(["a", "b"]), ["c"]], max_words=np.int64(2))
    assert [[type(word) for word in words] for words in corpus] == [[str, str], [str]]
    assert type(corpus.max_words) is int


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing.txt"):
        Corpus(tmp_path / "nothing.txt")
    with pytest.raises(FileNotFoundError, match="without files"):
        Corpus(tmp_path)


def test_a_function_begins_the_corpus_anew():
    corpus = Corpus(lambda: (line for line in ["a b", "c"]), tokenizer=list)
    assert list(corpus) == list(corpus) == [["a", " ", "b"], ["c"]]


def test_nothing_is_no_word_of_a_tokenizer(tmp_path):
    """Splitting at commas finds one in an empty text."""
    (tmp_path / "text.txt").write_text("a,b\n\nc\n")
    corpus = Corpus(tmp_path / "text.txt", tokenizer=lambda text: text.split(","))
    assert [words for words in corpus if words] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("source", ["function", "iterable"])
def test_a_corpus_that_does_not_begin_anew(source):
    class Once:
        texts = iter(["a b", "c"])

        def __iter__(self):
            return self.texts

    texts = iter(["a b", "c"])
    corpus = Corpus((lambda: texts) if source == "function" else Once())
    assert list(corpus) == [["a", "b"], ["c"]]
    with pytest.raises(ValueError, match="2 texts on an earlier pass, and none on this one"):
        list(corpus)
    assert list(Corpus([])) == list(Corpus([])) == []


def test_vocabulary_counts_orders_and_cuts():
    corpus = Corpus(["b b a a c", "d b"])
    found = Vocabulary.of(corpus, min_count=1)
    assert found.words == ["b", "a", "c", "d"]
    assert found.counts.tolist() == [3, 2, 1, 1]
    assert Vocabulary.of(corpus, min_count=1, max_size=3).words == ["b", "a", "c"]
    assert Vocabulary.of(corpus, min_count=2).n_words == 7
    assert "z" not in found


@pytest.mark.parametrize("memory", [1 << 31, 16])
def test_encoded_corpora_are_the_same_on_disk(memory):
    corpus = Corpus([f"w{i % 7} w{i % 3} unknown{i}" for i in range(100)])
    words = Vocabulary.of(corpus, min_count=2)
    data = words.encode(corpus, memory=memory)
    assert isinstance(data.ids, np.memmap) == (memory == 16)
    back = [[words.words[i] for i in data.ids[a:b]] for a, b in zip(data.starts, data.starts[1:])]
    assert back == [[w for w in text if w in words] for text in corpus]
    assert fingerprint(data) == fingerprint(words.encode(corpus))
    other = Vocabulary(words.words[::-1], words.counts[::-1]).encode(corpus)
    assert fingerprint(data) != fingerprint(other)


def test_an_encoded_corpus_takes_four_bytes_a_word():
    """However short its segments are: 8 more a segment, and what growing arrays keep in reserve."""
    words, count = ["a", "b"], 100_000

    class Lines:
        def __iter__(self):
            return (words for _ in range(count))

    vocabulary = Vocabulary(words, [1, 1])
    tracemalloc.start()
    data = vocabulary.encode(Lines())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) == count
    assert most < 2 * (data.ids.nbytes + data.starts.nbytes)
