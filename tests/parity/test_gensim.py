"""Files are exchanged with gensim both ways, and its answers and figures are ours."""

import gzip

import numpy as np
import pytest

from surefit.text import SkipGram
from surefit.text.evaluation import evaluate_analogies, evaluate_similarity, read_pairs
from surefit.text.formats import read_vectors
from surefit.text.ngrams import hash_ngrams, ngrams
from surefit.text.subwords import Subwords, SubwordVectors
from surefit.text.vectors import WordVectors
from tests.data import data_folder

gensim = pytest.importorskip("gensim")
keyed = pytest.importorskip("gensim.models.keyedvectors")
fasttext = pytest.importorskip("gensim.models.fasttext")
inner = pytest.importorskip("gensim.models.fasttext_inner")

FLOAT32 = float(np.finfo(np.float32).eps)
WORDS = [
    "the",
    "cat",
    "naïve",
    "日本語",
    "x😀y",
    "a",
    "don't",
    "1990",
    "</s>",
    "\u00a0",
    "ﬁn\u3000",
]


def theirs(words, vectors):
    made = keyed.KeyedVectors(vectors.shape[1])
    made.add_vectors(words, vectors)
    return made


def random_vectors(n, d, seed=0):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-6, 6, size=(n, 1))
    return (rng.normal(size=(n, d)) * scale).astype(np.float32)


# ------------------------------------------------------------------------------ word2vec


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("format", ["word2vec", "word2vec-binary"])
def test_word2vec_files_from_us(tmp_path, format, packed):
    path = str(tmp_path / f"vectors{packed}")
    words = [
        *WORDS[:9],
        "a\u00a0b",
        "\u2028",
        "\x85",
        "\ufeff",
    ]  # blanks, but not those of these formats
    vectors = random_vectors(len(words), 7)
    WordVectors(words, vectors).save(path, format)
    read = keyed.KeyedVectors.load_word2vec_format(path, binary=format.endswith("binary"))
    assert read.index_to_key == words
    np.testing.assert_array_equal(read.vectors, vectors)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("binary", [False, True])
def test_word2vec_files_from_gensim(tmp_path, binary, packed):
    path = str(tmp_path / f"vectors{packed}")
    vectors = random_vectors(len(WORDS), 7)
    theirs(WORDS, vectors).save_word2vec_format(path, binary=binary)
    read = WordVectors.load(path)  # the format is found
    assert read.words == WORDS
    np.testing.assert_array_equal(read.vectors, vectors)


def test_a_file_without_a_header_from_gensim(tmp_path):
    path = str(tmp_path / "glove.txt")
    vectors = random_vectors(len(WORDS), 3)
    theirs(WORDS, vectors).save_word2vec_format(path, write_header=False)
    np.testing.assert_array_equal(WordVectors.load(path).vectors, vectors)


# ------------------------------------------------------------------------------ fastText


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    names = ["cat", "dog", "naïve", "日本語", "running", "x😀y", "a"] + [f"w{i}" for i in range(20)]
    return [rng.choice(names, 12).tolist() for _ in range(60)]


@pytest.mark.parametrize(("minn", "maxn"), [(3, 6), (1, 2)])
@pytest.mark.parametrize("sg", [0, 1])
def test_fasttext_models_from_gensim(tmp_path, corpus, minn, maxn, sg):
    model = fasttext.FastText(
        corpus, vector_size=10, min_count=1, min_n=minn, max_n=maxn, bucket=101, sg=sg, epochs=2
    )
    path = str(tmp_path / "model.bin")
    fasttext.save_facebook_model(model, path)
    read = WordVectors.load(path)
    assert read.words == model.wv.index_to_key
    assert read.counts.tolist() == [model.wv.get_vecattr(word, "count") for word in read.words]
    scale = float(np.abs(model.wv.vectors_ngrams).max())
    tolerance = 40 * FLOAT32 * scale  # they add up to 30 rows in float32
    np.testing.assert_allclose(read.vectors, model.wv.vectors, atol=tolerance)
    for word in ("cats", "日本", "unseen word"):
        np.testing.assert_allclose(read[word], model.wv[word], atol=tolerance)
    np.testing.assert_array_equal(read_vectors(path).output, model.syn1neg)
    packed = tmp_path / "model.bin.gz"
    packed.write_bytes(gzip.compress((tmp_path / "model.bin").read_bytes()))
    np.testing.assert_array_equal(WordVectors.load(packed).vectors, read.vectors)


@pytest.mark.parametrize("reader", ["load_facebook_vectors", "load_facebook_model"])
@pytest.mark.parametrize("counts", [None, [3, 9, 9, 1, 0, 5, 5, 2]])
def test_fasttext_models_from_us(tmp_path, reader, counts):
    """Counts out of order, tied or 0 keep their words and rows."""
    words, rng = WORDS[:8], np.random.default_rng(1)
    parts = SubwordVectors(Subwords(3, 5, 64), rng.normal(size=(64, 6)).astype(np.float32))
    vectors = parts.compose(words, rng.normal(size=(8, 6)).astype(np.float32))
    path = str(tmp_path / "model.bin")
    mine = WordVectors(words, vectors, counts=counts, subwords=parts)
    mine.save(path, "fasttext")
    read = getattr(fasttext, reader)(path)
    read = getattr(read, "wv", read)
    assert read.index_to_key == words
    scale = float(np.abs(parts.matrix).max())
    np.testing.assert_allclose(read.vectors, vectors, atol=40 * FLOAT32 * scale)
    np.testing.assert_array_equal(read.vectors_ngrams, parts.matrix)
    for word in ("catty", "日本人"):
        np.testing.assert_allclose(read[word], mine[word], atol=40 * FLOAT32 * scale)
    again = WordVectors.load(path)
    assert again.counts.tolist() == [max(1, count) for count in counts or [1] * 8]
    np.testing.assert_allclose(again.vectors, vectors, atol=40 * FLOAT32 * scale)


def test_fasttext_models_without_subwords(tmp_path):
    words, vectors = WORDS[:8], random_vectors(8, 5)
    path = str(tmp_path / "model.bin")
    WordVectors(words, vectors).save(path, "fasttext")
    np.testing.assert_array_equal(fasttext.load_facebook_vectors(path).vectors, vectors)
    read = WordVectors.load(path)
    assert read.subwords is None
    np.testing.assert_array_equal(read.vectors, vectors)


def test_skip_gram_with_subwords_as_a_fasttext_model(tmp_path, corpus):
    """A fit keeps the buckets that it saw; the file has rows of zeros for the others."""
    model = SkipGram(
        6, subwords=(3, 5), n_buckets=500, min_count=1, max_iter=1, random_state=0, certify=False
    ).fit(corpus)
    path = str(tmp_path / "model.bin")
    model.save_vectors(path, "fasttext")
    read = fasttext.load_facebook_vectors(path)
    assert read.index_to_key == model.words_
    counts = [read.get_vecattr(word, "count") for word in model.words_]
    assert counts == model.word_counts_.tolist()
    scale = float(np.abs(model.bucket_vectors_).max())
    np.testing.assert_allclose(read.vectors, model.vectors_, atol=40 * FLOAT32 * scale)


@pytest.mark.parametrize(("minn", "maxn"), [(1, 1), (1, 4), (3, 6), (2, 2), (6, 9)])
def test_hashes(minn, maxn):
    rng = np.random.default_rng(0)
    points = [
        *range(32, 127),
        *range(0xA1, 0x250),
        *range(0x4E00, 0x4E40),
        *range(0x1F600, 0x1F640),
    ]
    words = WORDS[:8] + ["".join(map(chr, rng.choice(points, 6))) for _ in range(200)]
    indptr, indices = Subwords(minn, maxn, 2_000_000).table(words)
    for k, word in enumerate(words):
        grams = inner.compute_ngrams_bytes(word, minn, maxn)
        hashes = [inner.ft_hash_bytes(gram) for gram in grams]
        assert [gram.encode() for gram in ngrams(word, minn, maxn)] == grams
        assert hash_ngrams(ngrams(word, minn, maxn)).tolist() == hashes
        own = indices[indptr[k] : indptr[k + 1]].tolist()
        assert own == fasttext.ft_ngram_hashes(word, minn, maxn, 2_000_000)


# ------------------------------------------------------------------------------ questions


@pytest.mark.parametrize(
    ("positive", "negative"),
    [(["w1"], []), (["w1", "w2"], ["w3"]), (["w5"], ["w6", "w7"]), ([], ["w8"])],
)
def test_most_similar(positive, negative):
    words, vectors = [f"w{i}" for i in range(300)], random_vectors(300, 20)
    ours = WordVectors(words, vectors).most_similar(positive, negative, k=15)
    found = theirs(words, vectors).most_similar(positive, negative, topn=15)
    assert [word for word, _ in ours] == [word for word, _ in found]
    scores = np.array([[a, b] for (_, a), (_, b) in zip(ours, found, strict=True)])
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], atol=24 * FLOAT32)


def test_similarity():
    words, vectors = [f"w{i}" for i in range(30)], random_vectors(30, 20)
    ours, found = WordVectors(words, vectors), theirs(words, vectors)
    for word in words:
        assert ours.similarity("w0", word) == pytest.approx(
            found.similarity("w0", word), abs=24 * FLOAT32
        )


def judged():
    """Vectors with some truth for the words of the public files, in mixed case."""
    folder = data_folder()
    if folder is None or not (folder / "wordsim").is_dir():
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    folder = folder / "wordsim"
    with gzip.open(folder / "questions-words.txt.gz", "rt") as file:
        lines = [line.split() for line in file]
    rng = np.random.default_rng(0)
    place: dict[str, np.ndarray] = {}
    shift = rng.normal(size=(20, 25))
    section = 0
    for line in lines:
        if line[0] == ":":
            section += 1
            continue
        for first, second in (line[:2], line[2:]):
            base = place.setdefault(first, rng.normal(size=25))
            place.setdefault(second, base + shift[section] + rng.normal(size=25))
    for a, b, _ in read_pairs(folder / "EN-WS-353-ALL.txt.gz")[:300]:
        base = place.setdefault(a, rng.normal(size=25))
        place.setdefault(b, base + rng.normal(size=25))
    words = list(place)
    rng.shuffle(words)
    vectors = np.array([place[word] for word in words], dtype=np.float32)
    extra = [word.capitalize() for word in words[:200] if word.capitalize() not in place]
    extra = list(dict.fromkeys(extra))
    vectors = np.vstack([vectors, rng.normal(size=(len(extra), 25)).astype(np.float32)])
    return folder, words + extra, vectors


def unpacked(path, tmp_path):
    target = tmp_path / path.name.removesuffix(".gz")
    target.write_bytes(gzip.decompress(path.read_bytes()).replace(b"\r\n", b"\n"))
    return str(target)


@pytest.mark.parametrize("case_sensitive", [False, True])
def test_evaluate_word_pairs(tmp_path, case_sensitive):
    folder, words, vectors = judged()
    for name in ("EN-WS-353-ALL", "EN-RG-65"):
        path = folder / f"{name}.txt.gz"
        ours = evaluate_similarity(WordVectors(words, vectors), path, case_sensitive=case_sensitive)
        _, spearman, unknown = theirs(words, vectors).evaluate_word_pairs(
            unpacked(path, tmp_path), case_insensitive=not case_sensitive
        )
        # cosines in float32 there, in float64 here: near ties may change places
        assert ours.rho == pytest.approx(spearman.statistic, abs=1e-4)
        assert 100 * (1 - ours.covered) == pytest.approx(unknown, abs=1e-9)


@pytest.mark.parametrize("case_sensitive", [False, True])
@pytest.mark.parametrize("restrict", [400, 30_000])
def test_evaluate_word_analogies(tmp_path, case_sensitive, restrict):
    folder, words, vectors = judged()
    text = gzip.decompress((folder / "questions-words.txt.gz").read_bytes()).decode().splitlines()
    kept = [line for k, line in enumerate(text) if line.startswith(":") or k % 7 == 0]
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    ours = evaluate_analogies(
        WordVectors(words, vectors), path, restrict, case_sensitive=case_sensitive
    )
    score, sections = theirs(words, vectors).evaluate_word_analogies(
        str(path), restrict_vocab=restrict, case_insensitive=not case_sensitive
    )
    assert len(sections) == len(ours.sections) + 1
    for mine, other in zip((*ours.sections, ours.total), sections, strict=True):
        assert mine.correct == len(other["correct"])
        assert mine.n == len(other["correct"]) + len(other["incorrect"])
    assert ours.accuracy == pytest.approx(score, abs=1e-12)
    assert 0 < ours.accuracy < 1
