"""Sentence vectors: order does not matter, and vectors trained for it average better (TXT-7)."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.data import data_folder
from threadpoolctl import threadpool_limits

import surefit
from surefit.certificate import CertificateWarning, Kind, Status
from surefit.text import Corpus, SkipGram
from surefit.text._sent2vec_claims import drawn
from surefit.text.fasttext import FastTextClassifier
from surefit.text.sent2vec import Sent2Vec
from surefit.text.sentences import SentenceVectors


def topics(n: int, seed: int, words: int = 600, classes: int = 4) -> tuple[list[str], Any]:
    """Sentences of 15 words, a third of them from the topic's own words, the others from all."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    own = rng.integers(words // classes, size=(n, 5)) * classes + y[:, None]
    ids = np.concatenate([own, rng.integers(words, size=(n, 10))], axis=1)
    return [" ".join(f"w{i}" for i in rng.permuted(row)) for row in ids], y


def news() -> tuple[list[str], Any]:
    folder = data_folder()
    if folder is None or not (folder / "text" / "ag_news").is_dir():
        pytest.skip("the texts are not at hand")
    with gzip.open(folder / "text" / "ag_news" / "test.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return [f"{a} {b}".lower() for _, a, b in rows], np.array([int(row[0]) for row in rows])


def some_vectors(seed: int = 0, d: int = 7) -> Any:
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(50)]
    return SimpleNamespace(
        words=words, vectors=rng.normal(size=(50, d)), counts=rng.integers(1, 99, 50)
    )


# ---------------------------------------------------------------------------- TXT-7


@pytest.mark.spec("TXT-7")
@pytest.mark.parametrize("pooling", ["mean", "sum", "weighted"])
def test_order_does_not_matter_to_the_last_bit(pooling: str) -> None:
    rng = np.random.default_rng(1)
    texts = [[f"w{i}" for i in rng.integers(60, size=size)] for size in rng.integers(1, 200, 300)]
    mixed = [list(rng.permutation(text)) for text in texts]
    pool = SentenceVectors(some_vectors(), pooling=pooling)
    np.testing.assert_array_equal(pool.transform(texts), pool.transform(mixed))


@pytest.mark.spec("TXT-7")
@pytest.mark.parametrize("source", ["made", "news"])
@pytest.mark.parametrize("how", ["supervised", "sent2vec"])
def test_trained_averages_beat_fixed_ones(source: str, how: str) -> None:
    """Fixed: random vectors for the same words. The margin is above two standard errors of it."""
    X, y = topics(4000, seed=0) if source == "made" else news()
    cut = len(X) * 3 // 4
    if how == "supervised":
        trained: Any = FastTextClassifier(20, learning_rate=0.5, max_iter=10, random_state=0)
        trained.fit(X[:cut], y[:cut])
    else:
        trained = Sent2Vec(20, max_iter=10, subsample=1e-3, random_state=0).fit(X[:cut])
    vectors = np.random.default_rng(0).normal(size=trained.vectors_.shape)
    fixed = SentenceVectors(SimpleNamespace(words=trained.words_, vectors=vectors))

    def right(represent: Any) -> Any:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        return model.fit(represent(X[:cut]), y[:cut]).predict(represent(X[cut:])) == y[cut:]

    margin = right(trained.transform).astype(float) - right(fixed.transform)
    assert margin.mean() > 2 * margin.std() / math.sqrt(len(margin))


# ---------------------------------------------------------------------------- pooling


def test_pooling_by_hand() -> None:
    known = some_vectors()
    v, text = known.vectors, ["w3 w5 w3 unknown"]
    total = 2 * v[3] + v[5]
    np.testing.assert_allclose(SentenceVectors(known, pooling="sum").transform(text)[0], total)
    np.testing.assert_allclose(SentenceVectors(known).transform(text)[0], total / 3)
    a = 1e-3 / (1e-3 + known.counts / known.counts.sum())
    weighted = (2 * a[3] * v[3] + a[5] * v[5]) / 3
    found = SentenceVectors(known, pooling="weighted").transform(text)[0]
    np.testing.assert_allclose(found, weighted)
    unit = SentenceVectors(known, normalise=True).transform([*text, "unknown"])
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 0])


def test_the_common_direction_is_removed() -> None:
    known = some_vectors()
    known.vectors = known.vectors + 5.0
    X, _ = topics(200, seed=3, words=50)
    plain = SentenceVectors(known).transform(X)
    pool = SentenceVectors(known, remove_component=True).fit(X)
    first = np.linalg.svd(plain, full_matrices=False)[2][0]
    assert abs(float(first @ pool.component_)) == pytest.approx(1.0)
    np.testing.assert_allclose(pool.transform(X) @ first, 0.0, atol=1e-10)


def test_vectors_stay_fitted_in_clones_searches_and_files(tmp_path: Path) -> None:
    X, y = topics(200, seed=1, words=40)
    words = SkipGram(6, min_count=1, max_iter=5, random_state=0).fit(X)
    pool = SentenceVectors(words, remove_component=True).set_output(transform="pandas")
    twin = clone(pool)
    assert twin.vectors is words
    assert not hasattr(twin, "component_")
    assert twin.get_params() == pool.get_params()
    assert list(twin.fit_transform(X).columns) == [f"sentencevectors{i}" for i in range(6)]
    search = GridSearchCV(
        make_pipeline(SentenceVectors(words), LogisticRegression()),
        {"sentencevectors__pooling": ["mean", "weighted"]}, cv=2,
    )  # fmt: skip
    assert search.fit(X, y).best_score_ > 0.25
    more = SkipGram(6, min_count=1, max_iter=1, random_state=0, certify=False).fit(X)
    given = [words.word_vectors, more.word_vectors]  # they have a length, as an array has
    search = GridSearchCV(
        make_pipeline(SentenceVectors(words), LogisticRegression()),
        {"sentencevectors__vectors": given}, cv=2,
    )  # fmt: skip
    assert search.fit(X, y).best_params_["sentencevectors__vectors"] in given
    surefit.save(pool.fit(X), tmp_path / "pool.surefit")
    loaded = surefit.load(tmp_path / "pool.surefit")
    np.testing.assert_array_equal(loaded.transform(X), pool.transform(X))


def test_bad_input_of_pooling() -> None:
    known = some_vectors()
    with pytest.raises(ValueError, match="text 1 has no known word"):
        SentenceVectors(known, unknown="error").transform(["w1", "x"])
    with pytest.raises(TypeError, match="vectors must have words_ and vectors_"):
        SentenceVectors(3).transform(["w1"])
    with pytest.raises(TypeError, match=r"got SkipGram: fit it first.*give it their word_vectors"):
        SentenceVectors(SkipGram()).transform(["w1"])
    bare = SimpleNamespace(words=["a"], vectors=[[1.0]])
    with pytest.raises(ValueError, match="needs the counts of the words"):
        SentenceVectors(bare, pooling="weighted").transform(["a"])
    with pytest.raises(ValueError, match="one row for each word"):
        SentenceVectors(SimpleNamespace(words=["a", "b"], vectors=[[1.0]])).transform(["a"])
    with pytest.raises(ValueError, match="X is one str"):
        SentenceVectors(known).transform("w1 w2")


# ---------------------------------------------------------------------------- sent2vec


def test_tampering_is_seen() -> None:
    X, _ = topics(600, seed=4, words=80)
    model = Sent2Vec(6, max_iter=10, subsample=0, validation_fraction=0.2, random_state=0).fit(X)
    assert surefit.verify(model, X).ok

    def failed() -> set[str]:
        return {claim.name for claim in surefit.verify(model, X).failed}

    Z, U = model.vectors_, model.output_vectors_
    model.output_vectors_ = 0.9 * U
    assert failed() == {"loss", "gradient", "held-out loss", "every word"}
    model.output_vectors_ = -5 * U
    assert "better than untrained" in failed()
    model.output_vectors_, model.vectors_ = U, Z[::-1].copy()
    assert {"loss", "gradient"} <= failed()
    model.vectors_ = Z * (1.0 + 1e-3 * (np.arange(len(Z)) == len(Z) - 1))[:, None]
    assert "every word" in failed()  # the rarest may be in none of the sentences that are looked at
    model.vectors_ = Z[:-1]
    assert failed() == {"loss"}
    model.vectors_ = Z
    assert surefit.verify(model, X).ok
    assert {c.name for c in surefit.verify(model, X[::-1]).failed} >= {"data"}


def test_the_claims_about_long_texts() -> None:
    """An output has moved hundreds of times by the end of such a text; its words are gone through once."""
    X = [" ".join(f"w{i}" for i in range(20)) + " "] * 3
    options: dict[str, Any] = {
        "min_count": 1,
        "subsample": 0,
        "learning_rate": 1e-3,
        "random_state": 0,
    }
    model = Sent2Vec(3, max_iter=1, **options).fit([text * 500 for text in X])
    assert model.certificate_["gradient"].observed < 1e-5
    assert model.certificate_["loss"].status is Status.HOLDS


@pytest.mark.parametrize("negative", [1, 10])
def test_the_loss_of_a_sentence_by_hand(negative: int) -> None:
    X, _ = topics(20, seed=1, words=12)
    model = Sent2Vec(4, min_count=1, negative=negative, random_state=0, certify=False).fit(X)
    number, total, count = model.words_.index, 0.0, 0
    noise = iter(drawn(model.word_counts_, negative * sum(len(text.split()) for text in X)))
    for text in X:
        ids = [number(word) for word in text.split()]
        for t, word in enumerate(ids):
            h = model.vectors_[ids[:t] + ids[t + 1 :]].astype(np.float64).mean(axis=0)
            total += math.log1p(math.exp(-model.output_vectors_[word] @ h))
            others = [next(noise) for _ in range(negative)]
            total += sum(
                math.log1p(math.exp(model.output_vectors_[v] @ h)) for v in others if v != word
            )
            count += 1
    assert model.loss_ == pytest.approx(total / count, rel=1e-9)
    assert surefit.verify(model, X)["loss"].status is Status.HOLDS


def test_untrained_vectors_are_said_to_be() -> None:
    X, _ = topics(100, seed=0, words=20)
    with pytest.warns(CertificateWarning, match="raise learning_rate"):
        model = Sent2Vec(4, learning_rate=1e-30, max_iter=1, random_state=0).fit(X)
    assert model.loss_ == pytest.approx(11 * math.log(2), rel=0.1)  # less what was drawn twice


def test_steps_that_are_too_long_are_told() -> None:
    """A word that comes thousands of times in a text moves by as many steps at once."""
    with pytest.warns(CertificateWarning, match="lower learning_rate"):
        Sent2Vec(3, min_count=1, subsample=0, random_state=0).fit(["a b c " * 3000])


def test_held_out_sentences_have_a_radius() -> None:
    X, _ = topics(600, seed=4, words=80)
    options: dict[str, Any] = {"subsample": 0, "random_state": 0, "validation_fraction": 0.3}
    model = Sent2Vec(6, max_iter=10, **options).fit(X)
    claim = model.certificate_["held-out loss"]
    assert (claim.kind, claim.status) == (Kind.STATISTICAL, Status.HOLDS)
    rng = np.random.default_rng(0)
    noise = [" ".join(f"w{i}" for i in rng.integers(40, size=9)) for _ in range(300)]
    idle = Sent2Vec(4, max_iter=1, learning_rate=1e-6, certify=False, **options).fit(noise)
    assert surefit.verify(idle, noise)["held-out loss"].status is Status.UNDECIDED
    model.output_vectors_ = -model.output_vectors_
    assert surefit.verify(model, X)["held-out loss"].status is Status.FAILS
    assert "loss" in {c.name for c in surefit.verify(model, X[:20]).failed}
    alone = Sent2Vec(3, min_count=1, **options | {"validation_fraction": 0.01})
    alone.fit([f"alone{i}" for i in range(500)] + X[:3])
    assert alone.certificate_["held-out loss"].status is Status.UNDECIDED


@pytest.mark.parametrize(
    ("context", "sizes"), [("text", [2, 2, 1]), ("paragraph", [4, 1]), ("document", [5])]
)
def test_a_sentence_is_the_whole_context(tmp_path: Path, context: str, sizes: list[int]) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b\nc d\n\na\n")
    model = Sent2Vec(2, min_count=1, context=context)
    encoded, _, _ = model._validate_training_data(path, None, None, reset=True)
    assert np.diff(encoded.starts).tolist() == sizes
    short = Corpus(path, max_words=3)
    encoded, _, _ = model._validate_training_data(short, None, None, reset=True)
    assert np.diff(encoded.starts).max() <= 3


def test_sent2vec_answers_as_other_word_vectors_do() -> None:
    X, _ = topics(300, seed=6, words=40)
    model = Sent2Vec(3, max_iter=2, random_state=0).fit(X)
    assert model.get_feature_names_out().tolist() == ["sent2vec0", "sent2vec1", "sent2vec2"]
    assert len(model.most_similar("w1", k=2)) == 2
    with pytest.raises(ValueError, match=r"learning_rate=1e\+30 made the steps diverge"):
        model.set_params(learning_rate=1e30).fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_progress_in_words(capsys: Any) -> None:
    X, _ = topics(100, seed=6, words=40)
    Sent2Vec(3, max_iter=2, verbose=2, certify=False, random_state=0).fit(X)
    told = capsys.readouterr().err
    assert "words/s" in told
    assert "100%" in told


def test_deterministic_whatever_the_threads() -> None:
    X, _ = topics(2000, seed=5)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = Sent2Vec(8, max_iter=2, dropout=0.2, deterministic=True, random_state=7)
            found.append(model.fit(X).vectors_)
    np.testing.assert_array_equal(*found)


def test_save_and_load_and_clone(tmp_path: Path) -> None:
    X, _ = topics(300, seed=6, words=40)
    model = clone(Sent2Vec(5, max_iter=5, random_state=0)).fit(Corpus(X))
    model.save(tmp_path / "s.surefit")
    loaded = surefit.load(tmp_path / "s.surefit")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert surefit.verify(loaded, X).ok


def test_bad_input_of_training() -> None:
    with pytest.raises(ValueError, match="no sentence has two known words"):
        Sent2Vec(3, min_count=1).fit(["a", "b"])
    with pytest.raises(ValueError, match="leaves no word"):
        Sent2Vec(3, min_count=9).fit(["a b", "b a"])
    with pytest.raises(ValueError, match=r"validation_fraction=0\.1 of 2 texts is 0"):
        Sent2Vec(3, min_count=1, validation_fraction=0.1).fit(["a b", "b a"])
    with pytest.raises(ValueError, match="the corpus is empty"):
        Sent2Vec(3).fit([""])
