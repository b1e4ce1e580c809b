"""Corpora: contexts, files, long lines, wrong bytes; vocabularies and encoded corpora."""

import gzip
import lzma
import tracemalloc

import numpy as np
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


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing.txt"):
        Corpus(tmp_path / "nothing.txt")
    with pytest.raises(FileNotFoundError, match="without files"):
        Corpus(tmp_path)


def test_a_function_begins_the_corpus_anew():
    corpus = Corpus(lambda: (line for line in ["a b", "c"]), tokenizer=list)
    assert list(corpus) == list(corpus) == [["a", " ", "b"], ["c"]]


def test_vocabulary_counts_orders_and_cuts():
    corpus = Corpus(["b b a a c", "d b"])
    found = Vocabulary.of(corpus, min_count=1)
    assert found.words == ["b", "a", "c", "d"]
    assert found.counts.tolist() == [3, 2, 1, 1]
    assert Vocabulary.of(corpus, min_count=1, max_size=3).words == ["b", "a", "c"]
    assert Vocabulary.of(corpus, min_count=2).n_words == 7
    assert "z" not in found
    assert found.near("bb") == []


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
