"""Word vectors by negative sampling: the PMI identity, the kernels' steps, threads, claims."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.data import data_folder
from threadpoolctl import threadpool_limits

import surefit
from surefit._jit.skipgram import SIGMOID, bag_steps, pair_steps
from surefit.certificate import Status
from surefit.solvers.skipgram import Draws
from surefit.text import Corpus, SkipGram
from surefit.text._embedding import SeenSubwords


def made_text(n_words=30, n_texts=400, seed=0):
    """Two topics of words that keep to themselves, with a few common words."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n_texts):
        topic = rng.integers(2)
        own = [f"t{topic}w{i}" for i in rng.integers(0, n_words // 2, 12)]
        texts.append([w for pair in zip(own, rng.choice(["the", "of", "and"], 12)) for w in pair])
    return texts


FAST = {
    "n_components": 16,
    "min_count": 1,
    "subsample": 0.0,
    "deterministic": True,
    "random_state": 0,
}


@pytest.mark.spec("TXT-5")
@pytest.mark.parametrize(("power", "k"), [(1.0, 1), (1.0, 5), (0.75, 2)])
def test_products_are_the_shifted_pmi_at_the_optimum(power, k):
    rng = np.random.default_rng(1)
    words = list("abcde")
    texts = [list(rng.choice(words, 12, p=[0.4, 0.2, 0.2, 0.1, 0.1])) for _ in range(40)]
    model = SkipGram(
        6,
        solver="full",
        window=2,
        negative=k,
        noise_power=power,
        min_count=1,
        max_iter=5000,
        random_state=0,
    ).fit(texts)
    n = {}  # by hand: distance 1 counts 1, distance 2 counts 1/2, both ways
    for text in texts:
        for i, a in enumerate(text):
            for t, share in ((1, 1.0), (2, 0.5)):
                if i + t < len(text):
                    b = text[i + t]
                    n[a, b] = n.get((a, b), 0.0) + share
                    n[b, a] = n.get((b, a), 0.0) + share
    total = sum(n.values())
    row = {w: sum(v for (a, _), v in n.items() if a == w) for w in words}
    count = dict(zip(model.words_, model.word_counts_))
    noise = {w: count[w] ** power / sum(c**power for c in count.values()) for w in words}
    for i, a in enumerate(model.words_):
        for j, b in enumerate(model.words_):
            pmi = np.log((n[a, b] / total) / (row[a] / total * noise[b]))
            product = model.vectors_[i] @ model.context_vectors_[j]
            assert abs(product - (pmi - np.log(k))) < 1e-2
    assert model.certificate_["PMI"].status is Status.HOLDS
    assert model.certificate_["stationary"].status is Status.HOLDS
    model.vectors_ = model.vectors_ * 1.1
    assert not surefit.verify(model, texts).ok


def test_a_small_dimension_leaves_the_identity_undecided():
    model = SkipGram(1, solver="full", window=1, min_count=1, max_iter=2000, random_state=0)
    model.fit([list("abcab"), list("cabca")])
    assert model.certificate_["PMI"].status is Status.UNDECIDED


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def reference(centre, contexts, noise, V, Z, rate):
    """One window by the textbook: inputs one after the other, outputs of an input together."""
    for context in contexts:
        v, step = V[context].copy(), np.zeros_like(V[context])
        for word, label in ((centre, 1.0), (noise, 0.0)):
            g = rate * (label - sigmoid(v @ Z[word]))
            step += g * Z[word]
            Z[word] += g * v
        V[context] += step


def test_a_step_is_the_gradient_of_the_pair():
    rng = np.random.default_rng(0)
    V, Z = rng.normal(size=(4, 16)).astype(np.float32), rng.normal(size=(5, 16)).astype(np.float32)
    Z[4] = 0.0  # the row that fills up
    ids, starts = np.array([0, 1, 2], np.int32), np.array([0, 3])
    keep = np.ones(4, np.float32)
    shares, others = np.zeros(4, np.float32), np.full(4, 3, np.int32)  # the noise is always word 3
    A, B = V.astype(np.float64), Z.astype(np.float64)
    pair_steps(ids, starts, 0, 1, keep, shares, others, V, Z, SIGMOID, 1, 1, 0.1, 0.1, np.uint64(5))
    for t, contexts in ((0, [1]), (1, [0, 2]), (2, [1])):
        reference(t, contexts, 3, A, B, 0.1)
    # of 8 steps each has a table's error of at most 1/512 * 1/4, times the rate and a vector
    close = 8 * 0.1 * np.abs(B).max() / 2048 + 1e-5
    assert np.abs(V - A).max() < close
    assert np.abs(Z - B).max() < close
    assert np.abs(V - A).max() > 0.0


@pytest.mark.parametrize("cbow", [False, True])
def test_a_bag_moves_each_of_its_rows_by_the_sum(cbow):
    rng = np.random.default_rng(0)
    V, Z = rng.normal(size=(6, 16)).astype(np.float32), rng.normal(size=(4, 16)).astype(np.float32)
    Z[3] = 0.0
    indptr, parts = np.array([0, 2, 4, 6]), np.array([0, 3, 1, 4, 2, 5])  # two rows a word
    ids, starts = np.array([0, 1], np.int32), np.array([0, 2])
    shares, others = np.zeros(3, np.float32), np.full(3, 2, np.int32)
    A, B = V.astype(np.float64), Z.astype(np.float64)
    bag_steps(ids, starts, 0, 1, np.ones(3, np.float32), shares, others, indptr, parts, V, Z, SIGMOID, 1, 1,
              0.1, 0.1, np.uint64(5), cbow)  # fmt: skip
    for t in (0, 1):
        given, asked = (1 - t, t) if cbow else (t, 1 - t)
        rows = parts[indptr[given] : indptr[given + 1]]
        h, step = A[rows].mean(axis=0), np.zeros(16)
        for word, label in ((asked, 1.0), (2, 0.0)):
            g = 0.1 * (label - sigmoid(h @ B[word]))
            step += g * B[word]
            B[word] += g * h
        A[rows] += step
    close = 4 * 0.1 * np.abs(B).max() / 2048 + 1e-5
    assert np.abs(V - A).max() < close
    assert np.abs(Z - B).max() < close


def test_draws_keep_and_noise():
    counts = np.array([900, 90, 9, 1])
    draws = Draws.of(counts, 1e-2, 0.75)
    share = counts / 1000
    assert np.allclose(draws.keep, np.minimum(1, np.sqrt(1e-2 / share) + 1e-2 / share), rtol=1e-6)
    found = draws.shares / 4
    np.add.at(found, draws.others, (1 - draws.shares) / 4)
    wanted = counts**0.75 / (counts**0.75).sum()
    assert np.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(
    "given", [{}, {"architecture": "cbow"}, {"subwords": (2, 3), "n_buckets": 500}]
)
def test_deterministic_for_any_number_of_threads(given):
    texts, found = made_text(n_texts=800), []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(SkipGram(**FAST, **given, max_iter=2).fit(texts))
    assert np.array_equal(found[0].vectors_, found[1].vectors_)
    assert np.array_equal(found[0].context_vectors_, found[1].context_vectors_)


@pytest.mark.parametrize(
    "given", [{}, {"architecture": "cbow"}, {"subwords": (2, 3), "n_buckets": 500}]
)
def test_words_of_a_topic_are_neighbours(given):
    texts = made_text()
    model = SkipGram(**FAST, **given, max_iter=8, window=3).fit(texts)
    near = [word for word, _ in model.most_similar("t0w1", k=8)]
    assert sum(word.startswith("t0") for word in near) >= 7
    assert model.certificate_.ok, model.certificate_
    assert model.certificate_["better than chance"].status is Status.HOLDS
    means = model.transform([["t0w1", "t0w2"], ["t0w2", "t0w1"], [], ["unheard"]])
    assert np.array_equal(means[0], means[1])
    assert not means[2:].any()
    assert np.allclose(means[0], (model["t0w1"] + model["t0w2"]) / 2, atol=1e-6)


def test_unknown_words():
    texts = made_text()
    with pytest.raises(KeyError, match="t0w1"):
        SkipGram(**FAST, max_iter=1).fit(texts).vector("t0w1x")
    model = SkipGram(**FAST, max_iter=3, subwords=(3, 4), n_buckets=1000).fit(texts)
    assert isinstance(model.subwords_, SeenSubwords)
    assert model.similarity("t0w1x", "t0w1") > model.similarity("t0w1x", "t1w1")
    own = model.subwords_.matrix
    assert own.shape == (1000, 16)
    assert np.array_equal(own[model.buckets_], model.bucket_vectors_)


def test_the_certificate_fails_on_other_vectors():
    texts = made_text()
    model = SkipGram(**FAST, max_iter=8, validation_fraction=0.2).fit(texts)
    assert model.certificate_["held-out loss"].status is Status.HOLDS
    assert surefit.verify(model, texts).ok
    again = surefit.verify(model, texts[::-1])
    assert again["data"].status is Status.FAILS
    true = model.vectors_
    model.vectors_ = true[::-1].copy()
    forged = surefit.verify(model, texts)
    assert forged["loss"].status is Status.FAILS
    model.vectors_ = true + 1e-3
    assert surefit.verify(model, texts)["loss"].status is Status.FAILS
    model.vectors_ = np.full_like(true, np.nan)
    assert not surefit.verify(model, texts).ok


def test_untrained_vectors_are_not_better_than_chance():
    rng = np.random.default_rng(0)
    noise = [[f"w{i}" for i in rng.integers(0, 40, 30)] for _ in range(50)]
    model = SkipGram(**FAST, max_iter=1, learning_rate=1e-6).fit(noise)
    assert model.certificate_["better than chance"].status is Status.UNDECIDED
    model.context_vectors_ = 3 * rng.standard_normal(model.vectors_.shape)
    model.vectors_ = 3 * rng.standard_normal(model.vectors_.shape)
    assert surefit.verify(model, noise)["better than chance"].status is Status.FAILS


def test_files_clones_and_held_out(tmp_path):
    texts = made_text()
    model = SkipGram(**FAST, max_iter=2, subwords=(3, 4), n_buckets=1000).fit(texts)
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "words.surefit")
    back = surefit.load(tmp_path / "words.surefit")
    assert back.words_ == model.words_
    assert np.array_equal(back.vectors_, model.vectors_)
    assert surefit.verify(back, texts)["data"].status is Status.HOLDS
    assert np.array_equal(back.vector("t0w1x"), model.vector("t0w1x"))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"device": "cuda", "architecture": "cbow"}, "device='cuda'"),
        ({"device": "cuda", "deterministic": True}, "deterministic"),
        ({"solver": "full", "architecture": "cbow"}, "solver='full'"),
        ({"subwords": (4, 3)}, r"subwords.*\(4, 3\)"),
        ({"validation_fraction": 0.999}, "validation_fraction=0.999"),
        ({"min_count": 10**6}, "min_count=1000000 leaves no word"),
        ({"window": 0}, "window"),
    ],
)
def test_wrong_parameters(given, match):
    with pytest.raises(ValueError, match=match):
        SkipGram(**{"min_count": 1} | given).fit(made_text(n_texts=5))


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([], "empty"),
        (["", " "], "empty"),
        (["a", "b"], "two of the 2 words"),
        ("a b c", "one string"),
    ],
)
def test_wrong_corpora(X, match):
    with pytest.raises(ValueError, match=match):
        SkipGram(min_count=1).fit(X)


def test_a_gpu_that_is_not_there():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises((ValueError, ImportError), match="device='cuda'"):
        SkipGram(min_count=1, device="cuda").fit(made_text(n_texts=5))


def test_on_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    texts = made_text(n_texts=4000)
    given = FAST | {"deterministic": False, "max_iter": 5, "window": 3}
    here, there = SkipGram(**given).fit(texts), SkipGram(**given, device="cuda").fit(texts)
    assert there.certificate_.ok, there.certificate_
    assert abs(here.loss_ - there.loss_) < 0.05 * here.loss_
    near = [word for word, _ in there.most_similar("t0w1", k=8)]
    assert sum(word.startswith("t0") for word in near) >= 7


def test_words_of_an_encyclopedia():
    folder = data_folder()
    if folder is None or not (folder / "text").is_dir():
        pytest.skip("the folder of public data sets is not here")
    corpus = Corpus(folder / "text" / "text8_first_3010294_chars.xz")
    model = SkipGram(100, max_iter=5, random_state=0, deterministic=True).fit(corpus)
    assert model.certificate_.ok
    assert {"spain", "portugal"} & {word for word, _ in model.most_similar("france", k=10)}
    assert {"four", "five", "two"} & {word for word, _ in model.most_similar("three", k=5)}
