"""Co-occurrence counts: hand-counted corpora, a dictionary's loop, and what the certificate sees."""

import math
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from tests.data import data_folder
from threadpoolctl import threadpool_limits

import surefit
from surefit.text import Corpus
from surefit.text._cooccurrence_claims import _asymmetry
from surefit.text._pair_counts import harmonic_weights
from surefit.text.cooccurrence import Cooccurrence

TOY = ["a b a c", "b a"]
KINDS = ("sentence", "paragraph", "document")


def texts(seed=0, count=40, size=30, longest=25):
    """Lists of words, the first words most often."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, size + 1)
    return [
        [f"w{i}" for i in rng.choice(size, rng.integers(0, longest), p=share / share.sum())]
        for _ in range(count)
    ]


def table(model):
    """The counts as a dictionary of pairs of words."""
    coo = model.counts_.tocoo()
    pairs = zip(coo.row, coo.col, coo.data, strict=True)
    return {(model.words_[i], model.words_[j]): value for i, j, value in pairs}


def by_window(corpus, window, symmetric, harmonic):
    """The definition: pairs of places, in fractions."""
    found = Counter()
    for words in corpus:
        for p, i in enumerate(words):
            for q, j in enumerate(words):
                near = 0 < abs(p - q) <= window and (symmetric or q > p)
                if near:
                    found[i, j] += Fraction(1, abs(p - q)) if harmonic else 1
    return {pair: float(value) for pair, value in found.items()}


def by_context(corpus):
    found = Counter()
    for words in corpus:
        times = Counter(words)
        for i in times:
            for j in times:
                if i != j or times[i] > 1:
                    found[i, j] += 1
    return dict(found)


def same(a, b):
    return (
        a.shape == b.shape
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )


def mapped(array):
    """Whether an array lies in a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


# ---------------------------------------------------------------------------- by hand


@pytest.mark.spec("TXT-2")
def test_windows_by_hand():
    """In "a b a c" with window 2: a-b twice, a-a once, a-c twice (from both a's), b-c once; "b a": a-b."""
    model = Cooccurrence(window=2).fit(TOY)
    assert model.words_ == ["a", "b", "c"]
    assert model.word_counts_.tolist() == [3, 2, 1]
    assert model.n_words_ == 6
    # a a counts from both places; c stands at 1 and 3 from the a's: one of them within 2
    expected = [[2, 3, 1], [3, 0, 1], [1, 1, 0]]
    assert model.counts_.toarray().tolist() == expected
    assert sp.issparse(model.counts_)
    assert model.counts_.dtype == np.float64
    assert (model.counts_ != model.counts_.T).nnz == 0


@pytest.mark.spec("TXT-2")
def test_one_side_and_one_over_distance_by_hand():
    after = Cooccurrence(window=2, symmetric=False).fit(TOY).counts_.toarray()
    assert after.tolist() == [[1, 1, 1], [2, 0, 1], [0, 0, 0]]
    both = Cooccurrence(window=2).fit(TOY).counts_.toarray()
    np.testing.assert_array_equal(after + after.T, both)
    harmonic = Cooccurrence(window=2, weighting="harmonic").fit(TOY).counts_.toarray()
    assert harmonic.tolist() == [[1, 3, 1], [3, 0, 0.5], [1, 0.5, 0]]


@pytest.mark.spec("TXT-2")
def test_other_contexts_by_hand():
    """One text of three sentences in two paragraphs; each context kind gives other counts."""
    text = "x y. x z x.\n\nz y."
    strip = {"tokenizer": lambda part: part.replace(".", " ").split()}
    found = {kind: table(Cooccurrence(kind, **strip).fit([text])) for kind in KINDS}
    assert found["sentence"] == {
        ("x", "y"): 1, ("y", "x"): 1, ("x", "z"): 1, ("z", "x"): 1, ("x", "x"): 1,
        ("z", "y"): 1, ("y", "z"): 1,
    }  # fmt: skip
    assert found["paragraph"] == {
        ("x", "y"): 1, ("y", "x"): 1, ("x", "z"): 1, ("z", "x"): 1, ("x", "x"): 1,
        ("z", "y"): 2, ("y", "z"): 2,
    }  # fmt: skip
    assert found["document"] == {
        ("x", "y"): 1, ("y", "x"): 1, ("x", "z"): 1, ("z", "x"): 1, ("z", "y"): 1, ("y", "z"): 1,
        ("x", "x"): 1, ("y", "y"): 1, ("z", "z"): 1,
    }  # fmt: skip


@pytest.mark.spec("TXT-1")
def test_the_words_of_the_e_mails_are_those_of_scikit_learn():
    """The two mails of DAT-4: the sum of their bags of words."""
    mails = ["and viagra of nigeria", "and the nigeria"]
    bag = CountVectorizer()
    sums = bag.fit_transform(mails).toarray().sum(axis=0)
    model = Cooccurrence("document").fit(mails)
    assert sorted(model.words_) == bag.get_feature_names_out().tolist()
    assert model.word_counts_.tolist() == [sums[bag.vocabulary_[word]] for word in model.words_]
    assert table(model)["and", "nigeria"] == 2


@pytest.mark.spec("TXT-1")
def test_documents_are_products_of_bags_of_words():
    """Off the diagonal (B > 0)'(B > 0), B being scikit-learn's bag of words."""
    corpus = [" ".join(words) for words in texts(1, count=60) if words]
    bag = CountVectorizer(token_pattern=r"\S+")
    B = (bag.fit_transform(corpus) > 0).astype(float)
    model = Cooccurrence("document").fit(corpus)
    order = [bag.vocabulary_[word] for word in model.words_]
    product = (B.T @ B).toarray()[np.ix_(order, order)]
    np.fill_diagonal(product, 0.0)
    counts = model.counts_.toarray()
    twice = bag.transform(corpus).toarray()[:, order]
    np.testing.assert_array_equal(np.diag(counts), (twice > 1).sum(axis=0))
    np.fill_diagonal(counts, 0.0)
    np.testing.assert_array_equal(counts, product)
    np.testing.assert_array_equal(model.word_counts_, twice.sum(axis=0))


# ---------------------------------------------------------------------------- against a dictionary


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("window", [1, 4, 100])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("weighting", ["uniform", "harmonic"])
def test_equal_to_a_dictionary(seed, window, symmetric, weighting):
    corpus = texts(seed)
    model = Cooccurrence(window=window, symmetric=symmetric, weighting=weighting, certify="full")
    found, expected = (
        table(model.fit(corpus)),
        by_window(corpus, window, symmetric, weighting != "uniform"),
    )
    assert found.keys() == expected.keys()
    for pair, value in expected.items():
        assert found[pair] == value  # the integers are exact, and the division rounds once
    assert model.certificate_.ok


@pytest.mark.parametrize("seed", range(3))
def test_contexts_equal_a_dictionary(seed):
    corpus = texts(seed)
    for kind in KINDS:  # a list of words is each of these
        model = Cooccurrence(kind, certify="full").fit(corpus)
        assert table(model) == by_context(corpus)
        assert model.certificate_.ok


def test_a_window_whose_multiple_does_not_fit():
    """Beyond 64 bits the weights are multiples of a power of two: near 1/d, and still one sum."""
    corpus = [[f"w{i % 7}" for i in range(200)]]
    weights, scale = harmonic_weights(60, 200)
    assert scale & (scale - 1) == 0
    np.testing.assert_allclose(weights[1:] / scale, 1 / np.arange(1, 61), rtol=60 / scale)
    model = Cooccurrence(window=60, weighting="harmonic", certify="full").fit(corpus)
    for pair, value in by_window(corpus, 60, True, True).items():
        assert table(model)[pair] == pytest.approx(value, rel=1e-13)
    assert model.certificate_.ok


def test_contexts_longer_than_a_segment_are_one_context():
    text = " ".join(f"w{i}" for i in range(50))
    whole = Cooccurrence("document").fit(Corpus([text], max_words=7))
    assert whole.counts_.nnz == 50 * 49
    cut = Cooccurrence(window=1).fit(Corpus([text], max_words=7))
    assert cut.counts_.sum() == 2 * (49 - 7)  # windows end where segments do


# ---------------------------------------------------------------------------- threads, files, memory


@pytest.mark.parametrize(
    "setting",
    [{"window": 6}, {"window": 6, "weighting": "harmonic"}, {"context": "document"}],
)
def test_threads_and_files_change_nothing(setting):
    corpus = texts(5, count=300, size=200, longest=80)
    with threadpool_limits(1):
        one = Cooccurrence(**setting).fit(corpus)
    with threadpool_limits(2):
        two = Cooccurrence(**setting).fit(corpus)
    assert same(one.counts_, two.counts_)
    for limit in (1, 30_000):  # a word at a time, and some words at a time
        spilled = Cooccurrence(**setting, memory_limit=limit).fit(corpus)
        assert mapped(spilled.counts_.data)
        assert same(one.counts_, spilled.counts_)
        assert spilled.certificate_.ok


@pytest.mark.parametrize(
    "setting",
    [{"window": 60}, {"window": 60, "weighting": "harmonic"}, {"context": "document"}],
)
def test_a_corpus_in_a_file_changes_nothing(setting, monkeypatch):
    """The numbers in a file, and the certificate's blocks of a few places, distances and rows."""
    corpus = texts(6, count=100, size=100, longest=80)
    whole = Cooccurrence(**setting, certify="full").fit(corpus)
    monkeypatch.setattr("surefit.text.cooccurrence._CORPUS", 1)
    monkeypatch.setattr("surefit.text._cooccurrence_claims._BLOCK", 50)
    monkeypatch.setattr("surefit.text._cooccurrence_claims._SUMS", 300)
    parts = Cooccurrence(**setting, certify="full", memory_limit=3000).fit(corpus)
    assert same(whole.counts_, parts.counts_)
    assert whole.certificate_.ok
    assert parts.certificate_.ok


def test_memory_is_that_of_the_limit(monkeypatch):
    """Neither the corpus, nor each context's words, nor the counts and their transpose are held at once."""
    monkeypatch.setattr("surefit.text.cooccurrence._CORPUS", 1 << 16)
    monkeypatch.setattr("surefit.text._pair_counts._BUFFER", 1 << 12)
    for module in ("vocabulary", "_cooccurrence_claims"):
        monkeypatch.setattr(f"surefit.text.{module}._BLOCK", 1 << 12)
    words = [f"w{i}" for i in np.random.default_rng(0).integers(0, 1000, 20_000)]
    lines = [words[k : k + 20] for k in range(0, 20_000, 20)]
    corpus = Corpus(lambda: (line for _ in range(25) for line in lines))  # 500,000 words: 2 MB
    for setting in ({"window": 2}, {"context": "sentence"}):
        tracemalloc.start()
        model = Cooccurrence(**setting, memory_limit=1 << 16).fit(corpus)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert model.certificate_.ok
        assert most < 2e6  # not even the numbers of the words, at four bytes each


def test_columns_are_in_order():
    model = Cooccurrence(window=3).fit(texts(2, size=300, longest=200))
    assert model.counts_.has_canonical_format
    assert (model.counts_.data > 0).all()


# ---------------------------------------------------------------------------- the estimator


def test_transform_counts_over_the_words_of_the_fit():
    model = Cooccurrence(window=1).fit(TOY)
    again = model.transform(["a x b", "c a"])  # x is unknown and leaves no gap
    assert again.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert model.transform([]).nnz == 0
    assert same(model.transform(TOY), model.counts_)
    assert same(Cooccurrence(window=1).fit_transform(TOY), model.counts_)
    assert model.get_feature_names_out().tolist() == ["a", "b", "c"]


def test_rare_words_are_left_out_before_windows_are_laid():
    model = Cooccurrence(window=1, min_count=2).fit(["a x b", "a b"])
    assert table(model) == {("a", "b"): 2, ("b", "a"): 2}
    assert model.n_words_ == 5
    assert Cooccurrence(max_size=1).fit(TOY).words_ == ["a"]


def test_clone_save_and_load(tmp_path):
    model = Cooccurrence("sentence", lowercase=True).fit(["A b. B a c.", "a C"])
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "counts.surefit")
    back = surefit.load(tmp_path / "counts.surefit")
    assert back.words_ == model.words_
    assert same(back.counts_, model.counts_)
    assert back.certificate_ == model.certificate_
    assert surefit.verify(back, ["A b. B a c.", "a C"]).ok


def test_bad_input():
    with pytest.raises(ValueError, match="corpus is empty"):
        Cooccurrence().fit([])
    with pytest.raises(ValueError, match="min_count=9 leaves no word"):
        Cooccurrence(min_count=9).fit(TOY)
    with pytest.raises(ValueError, match="X is one string"):
        Cooccurrence().fit("a b")
    with pytest.raises(ValueError, match="weighting='harmonic' is for windows"):
        Cooccurrence("document", weighting="harmonic").fit(TOY)
    with pytest.raises(ValueError, match="symmetric=False is for windows"):
        Cooccurrence("sentence", symmetric=False).fit(TOY)
    with pytest.raises(ValueError, match="'window' parameter"):
        Cooccurrence(window=0).fit(TOY)
    with pytest.raises(NotFittedError):
        Cooccurrence().transform(TOY)


# ---------------------------------------------------------------------------- the certificate


@pytest.mark.parametrize("setting", [{"window": 3}, {"window": 3, "weighting": "harmonic"},
                                     {"window": 3, "symmetric": False}, {"context": "document"}])  # fmt: skip
def test_tampered_counts_are_seen(setting):
    corpus = texts(7)
    model = Cooccurrence(**setting).fit(corpus)
    assert surefit.verify(model, corpus).ok
    counts = model.counts_.copy()

    def failed(change):
        model.counts_ = counts.copy()
        change(model.counts_.data)
        return {claim.name for claim in surefit.verify(model, corpus).failed}

    def one(data):
        data[len(data) // 2] += 1.0

    def moved(data):  # between two entries of a row: the mass stays
        data[0] += 1.0
        data[1] -= 1.0

    def missing(data):
        data[-1] = np.nan

    assert {"product", "mass"} <= failed(one)
    assert "product" in failed(moved)
    assert "mass" not in failed(moved)
    assert failed(missing) == {"attributes"}
    model.counts_ = counts
    model.words_ = [model.words_[1], model.words_[0], *model.words_[2:]]
    assert {"words", "product"} <= {c.name for c in surefit.verify(model, corpus).failed}
    model.words_ = model.words_[:-1]
    assert not surefit.verify(model, corpus).ok
    model.words_ = Cooccurrence(**setting, certify=False).fit(corpus).words_
    assert not surefit.verify(model, corpus[1:]).ok


@pytest.mark.parametrize("block", [1, 3, 1 << 18])
def test_asymmetry_is_the_largest_difference(monkeypatch, block):
    monkeypatch.setattr("surefit.text._cooccurrence_claims._BLOCK", block)
    rng = np.random.default_rng(0)
    for k in range(100):
        n = rng.integers(1, 12)
        A = rng.integers(0, 3, (n, n)) * (rng.random((n, n)) < 0.5)
        A = A + A.T + 0.0
        i, j = rng.integers(0, n, 2)
        A[i, j] += A[i, j] > 0 if k % 2 else k % 3
        expected = np.abs(A - A.T).max()
        if ((A > 0) != (A.T > 0)).any():
            expected = math.inf
        assert _asymmetry(sp.csr_array(A)) == expected
    assert math.isnan(_asymmetry(sp.csr_array([[1.0, math.nan], [1.0, 0.0]])))


@pytest.mark.parametrize("context", ["window", "sentence"])
def test_one_sided_damage_is_seen(context):
    model = Cooccurrence(context).fit(TOY)
    model.counts_.data[1] += 1.0
    assert "symmetry" in {claim.name for claim in surefit.verify(model, TOY).failed}


def test_words_outside_all_contexts_are_seen():
    """Contexts that end before the corpus does would count too little everywhere."""
    model = Cooccurrence("sentence").fit(TOY)
    contexts = model._validate_training_data(TOY, None, None, reset=False)[0]
    cut = type(contexts)(contexts.ids, contexts.starts[:-1], contexts.n_words)
    (claim,) = model._certify(cut, None, None, full=False, tol=1e-3)
    assert claim.status.value == "fails"
    assert "contexts of 4 words of 6" in claim.statement


def test_a_source_that_does_not_begin_anew():
    class Once:
        texts = iter(TOY)

        def __iter__(self):
            return self.texts

    with pytest.raises(ValueError, match="2 texts on an earlier pass, and none on this one"):
        Cooccurrence().fit(Once())


def test_counts_of_real_text():
    """Three million characters; twice the sum over distances of words less distance, segment by segment."""
    folder = data_folder()
    path = folder and folder / "text" / "text8_first_3010294_chars.xz"
    if path is None or not path.exists():
        pytest.skip("text8 is not at hand")
    model = Cooccurrence(window=5, min_count=5).fit(path)
    assert model.certificate_.ok
    assert model.words_[:3] == ["the", "of", "and"]
    assert model.n_words_ == 507_956
