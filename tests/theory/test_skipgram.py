"""Word vectors by negative sampling: the PMI identity, the kernels' steps, threads, claims."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.data import data_folder
from threadpoolctl import threadpool_limits

import surefit
from surefit._jit.skipgram import SIGMOID, bag_steps, pair_steps
from surefit.certificate import Status
from surefit.solvers import skipgram as solver
from surefit.solvers.skipgram import Draws, Parts
from surefit.text import Corpus, SkipGram, _skipgram_claims
from surefit.text._embedding import SeenSubwords
from surefit.text._skipgram_claims import _pairs, pair_counts
from surefit.text.vocabulary import Encoded


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
    """Some inputs of a window, each another word, and all outputs: they move from where they were."""
    outputs = [centre, *noise]
    G = V[contexts] @ Z[outputs].T
    G = rate * ((np.arange(len(outputs)) == 0) - sigmoid(G))
    steps, moves = G @ Z[outputs], G.T @ V[contexts]
    V[contexts] += steps
    np.add.at(Z, outputs, moves)


def test_a_word_that_comes_twice_is_added_twice():
    """As noise, twice in a set of outputs; as input, one after the other."""
    rng = np.random.default_rng(0)
    V, Z = rng.normal(size=(4, 16)).astype(np.float32), rng.normal(size=(5, 16)).astype(np.float32)
    Z[4] = 0.0
    ids, starts = np.array([1, 0, 1], np.int32), np.array([0, 3])
    keep, shares, others = np.ones(4, np.float32), np.zeros(4, np.float32), np.full(4, 3, np.int32)
    A, B = V.astype(np.float64), Z.astype(np.float64)
    pair_steps(ids, starts, 0, 1, keep, shares, others, V, Z, SIGMOID, 1, 2, 0.1, 0.1, np.uint64(5))
    for centre, contexts in ((1, [0]), (0, [1]), (0, [1]), (1, [0])):
        reference(centre, contexts, [3, 3], A, B, 0.1)
    close = 12 * 0.1 * np.abs(B).max() / 2048 + 1e-5
    assert np.abs(V - A).max() < close
    assert np.abs(Z - B).max() < close


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
        reference(t, contexts, [3], A, B, 0.1)
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


def test_no_stream_of_random_numbers_comes_twice(monkeypatch):
    """The stream of segment s is a function of seed + c (s + 1): of no two epochs are these the same."""
    seeds = []
    monkeypatch.setattr(solver, "pair_steps", lambda *given: seeds.append(int(given[-1])))
    SkipGram(**FAST, max_iter=6, certify=False).fit(made_text(n_texts=50))
    of_epochs = seeds[:6]  # the others are those of steps that are looked at
    starts = {
        (seed + 0x9E3779B97F4A7C15 * (s + 1)) % 2**64 for seed in of_epochs for s in range(50)
    }
    assert len(starts) == 6 * 50


def test_vectors_of_words_are_made_block_by_block(monkeypatch):
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 50))])
    parts, V = Parts(indptr, rng.integers(0, 30, indptr[-1])), rng.normal(size=(30, 16))
    V, whole = V.astype(np.float32), Parts.means
    expected = [V[parts.rows[a:b]].mean(axis=0) for a, b in pairwise(indptr)]
    for size in (1, 100, 1 << 22):
        monkeypatch.setattr(solver, "_PART", size)
        assert np.allclose(whole(parts, V), expected, atol=1e-6)


@pytest.mark.parametrize(
    "given", [{}, {"architecture": "cbow"}, {"subwords": (2, 3), "n_buckets": 500}]
)
def test_steps_that_diverge_are_told(given):
    with pytest.raises(ValueError, match="learning_rate=1e\\+30 made the steps diverge"):
        SkipGram(**FAST, **given, learning_rate=1e30).fit(made_text())


def test_a_sigmoid_of_nan_is_not_looked_up():
    """A table has no place for inf - inf: it was read beyond its end. Now it counts as 0."""
    V, Z = np.ones((3, 16), np.float32), np.zeros((4, 16), np.float32)
    Z[:3, 0], Z[:3, 1] = np.inf, -np.inf
    ids, ones, others = np.array([0, 1], np.int32), np.ones(3, np.float32), np.full(3, 2, np.int32)
    given = (ids, np.array([0, 2]), 0, 1, ones, 0 * ones, others)
    table = np.append(SIGMOID, np.full(9, 0.3, np.float32))[: len(SIGMOID)]  # 0.3 beyond its end
    pair_steps(*given, V, Z, table, 1, 1, 1.0, 1.0, np.uint64(5))
    assert Z[0, 2] == 1.0  # the word that was there moves by 1 - 0
    assert Z[2, 2] == 0.0  # and the noise by 0


def test_pairs_are_drawn_as_the_objective_counts_them():
    rng = np.random.default_rng(0)
    sizes = [2] * 40 + [1, 0, 3, 30, 7] * 4
    data = Encoded(rng.integers(0, 4, sum(sizes)).astype(np.int32), np.cumsum([0, *sizes]))
    for window in (1, 3, 40):
        own, other = _pairs(np.random.default_rng(1), data.starts, window)
        assert (own != other).all()
        found = np.zeros((4, 4))
        np.add.at(found, (data.ids[own], data.ids[other]), 1 / len(own))
        wanted = pair_counts(data, 4, window)
        wanted /= wanted.sum()
        assert (np.abs(found - wanted) < 5 * np.sqrt(wanted / len(own))).all()
        # short texts have their share of the pairs, not of the places
        short = (own < 80).mean()
        pairs = [
            sum((window - t + 1) * (n - t) for t in range(1, min(window, n - 1) + 1)) for n in sizes
        ]
        wanted_share = sum(pairs[:40]) / sum(pairs)
        assert abs(short - wanted_share) < 5 * np.sqrt(wanted_share / len(own))


def test_the_drawn_loss_does_not_depend_on_blocks(monkeypatch):
    texts = made_text(n_texts=50)
    model = SkipGram(**FAST, max_iter=1).fit(texts)
    monkeypatch.setattr(_skipgram_claims, "_BLOCK", 1000)
    assert surefit.verify(model, texts)["loss"].observed < 1e-13


@pytest.mark.parametrize(
    "given", [{}, {"architecture": "cbow"}, {"subwords": (2, 3), "n_buckets": 500}]
)
def test_steps_are_compared_with_gradients(given):
    texts = made_text(n_texts=100)
    model = SkipGram(**FAST, **given, max_iter=3).fit(texts)
    assert model.certificate_["gradient"].status is Status.HOLDS
    recorded = model.probe_slopes_
    for wrong in (1.05 * recorded, recorded[1:], np.full_like(recorded, np.nan)):
        model.probe_slopes_ = wrong
        assert surefit.verify(model, texts)["gradient"].status is Status.FAILS
    model.probe_slopes_ = recorded
    model.context_vectors_ = 1.1 * model.context_vectors_
    assert surefit.verify(model, texts)["gradient"].status is Status.FAILS


@pytest.mark.parametrize("solver", ["sgd", "full"])
def test_other_data_are_seen_whatever_they_are(solver):
    texts = made_text(n_texts=50)
    model = SkipGram(
        **FAST | {"n_components": 4}, solver=solver, validation_fraction=0.3, certify=False
    )
    model.fit(texts)
    for other in (texts[:10], ["of"], [*texts, ["of", "the"]]):
        assert "loss" in {claim.name for claim in surefit.verify(model, other).failed}


def test_held_out_texts_without_pairs_decide_nothing():
    texts = [[f"alone{i}"] for i in range(500)] + made_text(n_texts=2)
    model = SkipGram(**FAST, validation_fraction=0.002).fit(texts)
    assert model.certificate_["held-out loss"].status is Status.UNDECIDED


def test_the_full_objective_for_any_number_of_threads():
    texts, found = made_text(n_words=400, n_texts=300), []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = SkipGram(**FAST | {"n_components": 40}, solver="full", certify=False)
            found.append(model.set_params(max_iter=20).fit(texts).vectors_)
    assert np.array_equal(*found)


def test_a_great_power_of_the_noise():
    model = SkipGram(**FAST, noise_power=1000.0, max_iter=1).fit(made_text())
    assert np.isfinite(model.loss_)


def test_a_fit_that_breaks_off_leaves_no_vectors_of_another():
    model = SkipGram(**FAST, max_iter=1).fit(made_text(n_texts=50))
    with pytest.raises(ValueError, match="no pairs to learn from"):
        model.fit(["a", "b"])
    with pytest.raises(NotFittedError):
        model.transform(["a"])


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


def test_words_without_any_n_gram():
    """No word of the text has one, so that a new word has no vector, however long."""
    model = SkipGram(**FAST, max_iter=20, subwords=(12, 14)).fit(made_text())
    assert model.certificate_.ok
    assert not len(model.buckets_)
    with pytest.raises(KeyError, match="it has no n-grams either"):
        model.vector("a-word-of-many-letters")
    assert "a-word-of-many-letters" not in model


def test_a_corpus_gives_a_row_for_each_text(tmp_path):
    texts = ["t0w1 t0w2", "", "t0w1 " * 30 + "t1w1", "unheard"]
    model = SkipGram(**FAST, max_iter=1, certify=False).fit(made_text())
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts))
    for source in (
        Corpus(texts, max_words=7),
        Corpus(path, max_words=7),
        path,
        lambda: iter(texts),
    ):
        assert np.array_equal(model.transform(source), model.transform(texts))
    assert SkipGram(2, min_count=1, certify=False).fit_transform(path).shape == (4, 2)


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


@pytest.mark.parametrize("name", ["vectors_", "context_vectors_"])
def test_the_rarest_word_is_looked_at(name, monkeypatch):
    """Drawn pairs leave out most of the rare words."""
    monkeypatch.setattr(_skipgram_claims, "_PAIRS", 20)
    texts = made_text()
    model = SkipGram(**FAST, max_iter=2, certify=False).fit(texts)
    drawn = set()
    assert surefit.verify(model, texts)["every word"].status is Status.HOLDS
    for word in range(len(model.words_)):
        rows = getattr(model, name).copy()
        setattr(model, name, rows + 1e-3 * rows * (np.arange(len(rows)) == word)[:, None])
        drawn |= {word} if surefit.verify(model, texts)["loss"].status is Status.FAILS else set()
        assert surefit.verify(model, texts)["every word"].status is Status.FAILS, word
        setattr(model, name, rows)
    assert len(drawn) < len(model.words_)
    setattr(model, name, getattr(model, name)[:-1])
    assert {claim.name for claim in surefit.verify(model, texts).failed} == {"loss"}


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_rows_of_n_grams_are_looked_at(architecture):
    """Words never seen get their vectors from these alone."""
    texts = made_text()
    given = FAST | {"architecture": architecture, "subwords": (3, 4), "n_buckets": 1000}
    model = SkipGram(**given, max_iter=2).fit(texts)
    table, d = model.subwords_, model.n_components
    own = np.array(
        [table.vector(w) if table.vector(w) is not None else [0.0] * d for w in model.words_]
    )
    found = _skipgram_claims.from_ngrams(model)
    np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-7)
    rows, buckets = model.bucket_vectors_, model.buckets_

    def failed():
        return {claim.name for claim in surefit.verify(model, texts).failed}

    assert failed() == set()
    for place in (0, len(rows) // 2, -1):
        model.bucket_vectors_ = rows.copy()
        model.bucket_vectors_[place] *= 1.001
        assert failed() == {"subwords"}
    model.bucket_vectors_ = rows[:-1]
    assert failed() == {"subwords"}
    model.bucket_vectors_, model.buckets_ = rows, buckets + (np.arange(len(buckets)) == 3)
    assert failed() == {"subwords"}
    model.buckets_, model.subword_loss_ = buckets, model.subword_loss_ + 1e-9
    assert failed() == {"subwords"}


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
    split = model.set_params(tokenizer=str.split).fit([" ".join(text) for text in texts])
    split.save(tmp_path / "words.surefit")
    again = surefit.load(tmp_path / "words.surefit", tokenizer=str.split)
    assert np.array_equal(again.transform(["the t0w1"]), split.transform(["the t0w1"]))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"device": "cuda", "architecture": "cbow"}, "device='cuda'"),
        ({"device": "cuda", "deterministic": True}, "deterministic"),
        ({"solver": "full", "architecture": "cbow"}, "solver='full'"),
        ({"subwords": (4, 3)}, r"subwords.*\(4, 3\)"),
        ({"subwords": ("a", "b")}, "subwords must be"),
        ({"subwords": (2.0, 3.0)}, "subwords must be"),
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
