"""fastText: its optimum is logistic regression on the same bags, its steps are gradients (TXT-6)."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from tests.data import data_folder
from threadpoolctl import threadpool_limits

import surefit
from surefit._jit.fasttext import first_rows
from surefit.certificate import CertificateWarning, Status
from surefit.text._bags import Features, read_texts
from surefit.text._fasttext_claims import _hash
from surefit.text.corpus import Corpus
from surefit.text.fasttext import FastTextClassifier


def made(
    n: int, classes: int, seed: int, words: int = 60, length: int = 12
) -> tuple[list[str], Any]:
    """Texts of words whose frequencies depend on the class a little: no rule tells all apart."""
    rng = np.random.default_rng(seed)
    tilt = rng.normal(0, 0.7, (classes, words))
    p = np.exp(tilt) / np.exp(tilt).sum(axis=1, keepdims=True)
    y = rng.integers(classes, size=n)
    sizes = rng.integers(length // 2, 2 * length, size=n)
    return [" ".join(f"w{w}" for w in rng.choice(words, k, p=p[c])) for c, k in zip(y, sizes)], y


def averaged(X: list[str]) -> Any:
    """Bags divided by their number of words, by scikit-learn."""
    counts = CountVectorizer(token_pattern=r"\S+", lowercase=False).fit_transform(X)
    return (counts / counts.sum(axis=1)).tocsr()


# ---------------------------------------------------------------------------- TXT-6


@pytest.mark.spec("TXT-6")
@pytest.mark.parametrize(
    ("loss", "classes", "K"), [("logistic", 2, 1), ("softmax", 2, 1), ("softmax", 4, 3)]
)
def test_exact_optimum_is_logistic_regression(loss: str, classes: int, K: int) -> None:
    X, y = made(300, classes, seed=classes)
    reg, A = 1e-3, averaged(X)
    model = FastTextClassifier(K, loss=loss, solver="exact", reg=reg, tol=1e-9).fit(X, y)
    assert model.certificate_["duality gap"].status is Status.HOLDS
    assert model.output_vectors_.shape == (1 if loss == "logistic" else classes, K)
    product = model.output_vectors_ @ model.input_vectors_.T
    ours = model.loss_ + reg / 2 * float(np.square(product).sum())
    # softmax of two classes has (-w, w)/2 in place of w, of half the squared norm
    strength = reg / 2 if (loss, classes) == ("softmax", 2) else reg
    peer = LogisticRegression(
        C=1 / (strength * len(y)), fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(A, y)
    z = A @ peer.coef_.T
    scores = np.column_stack([0 * z, z]) if classes == 2 else z
    theirs = -log_softmax(scores, axis=1)[np.arange(len(y)), y].mean()
    theirs += strength / 2 * float(np.square(peer.coef_).sum())
    assert ours == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(A), atol=1e-3)


@pytest.mark.spec("TXT-6")
@pytest.mark.parametrize("K", [1, 5])
def test_steps_reach_the_loss_of_logistic_regression(K: int) -> None:
    """Without a penalty, on data that no rule tells apart: the same least loss for every K."""
    X, y = made(600, 2, seed=1, words=12)
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000)
    p = peer.fit(averaged(X), y).predict_proba(averaged(X))
    least = -np.log(p[np.arange(len(y)), y]).mean()
    model = FastTextClassifier(
        K,
        loss="logistic",
        learning_rate=1.0,
        max_iter=150,
        random_state=0,
        certify="full",
        deterministic=True,
    ).fit(X, y)
    assert least - 1e-9 <= model.loss_ <= least + 2e-3
    claim = model.certificate_["gap to logistic regression"]
    # 1.3 % of the way from the best constant scores: above the hundredth that counts as a success
    assert claim.status is Status.UNINFORMATIVE
    assert claim.observed < 0.01 * math.log(2)


def test_one_versus_all_is_a_logistic_regression_for_each_class() -> None:
    X, y = made(200, 3, seed=3)
    model = FastTextClassifier(3, loss="logistic", solver="exact", reg=1e-3, tol=1e-9).fit(X, y)
    assert model.certificate_.ok
    product, total = model.output_vectors_ @ model.input_vectors_.T, 0.0
    for c in range(3):
        one = FastTextClassifier(1, loss="logistic", solver="exact", reg=1e-3, tol=1e-9)
        one.fit(X, y == c)
        total += one.loss_ + 5e-4 * float(
            np.square(one.input_vectors_ @ one.output_vectors_.T).sum()
        )
    assert model.loss_ + 5e-4 * float(np.square(product).sum()) == pytest.approx(total, abs=1e-7)
    with pytest.raises(ValueError, match=r"rank 3\. Set n_components=3 or more"):
        model.set_params(n_components=2).fit(X, y)


def test_too_few_components_are_refused_with_the_number_needed() -> None:
    X, y = made(200, 4, seed=0)
    with pytest.raises(ValueError, match=r"rank 3\. Set n_components=3 or more"):
        FastTextClassifier(2, solver="exact", reg=1e-3).fit(X, y)


def test_weights_are_repetitions() -> None:
    X, y = made(120, 3, seed=5)
    w = np.arange(120) % 3
    options: dict[str, Any] = {"solver": "exact", "reg": 1e-2, "tol": 1e-10}
    weighted = FastTextClassifier(2, **options).fit(X, y, w)
    rows = np.repeat(np.arange(120), w)
    repeated = FastTextClassifier(2, **options).fit([X[i] for i in rows], y[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )


# ---------------------------------------------------------------------------- claims


def test_tampering_is_seen() -> None:
    X, y = made(300, 3, seed=7)
    model = FastTextClassifier(
        8, word_ngrams=2, n_buckets=500, learning_rate=1.0, max_iter=20, validation_fraction=0.2,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert surefit.verify(model, X, y).ok

    def failed() -> set[str]:
        return {claim.name for claim in surefit.verify(model, X, y).failed}

    W = model.output_vectors_.copy()
    model.output_vectors_ = 0.5 * W
    assert {"loss", "gradient"} <= failed()
    model.output_vectors_ = 0.0 * W
    assert "better than a constant" in failed()
    model.output_vectors_ = W[[1, 2, 0]]
    assert {"loss", "held-out error"} <= failed()
    model.output_vectors_ = W
    words = model.words_
    model.words_ = words[1:] + words[:1]
    assert "loss" in failed()
    model.words_, model.word_ngrams = words, 1
    assert "loss" in failed()
    model.word_ngrams, buckets = 2, model.buckets_
    model.buckets_ = buckets[:-1]
    assert "bags" in failed()
    model.buckets_ = buckets
    assert surefit.verify(model, X, y).ok
    model.word_counts_ = model.word_counts_ + np.eye(1, len(words), 3, dtype=np.int64)[0]
    assert failed() == {"bags"}
    model.word_counts_ = model.word_counts_ - np.eye(1, len(words), 3, dtype=np.int64)[0]
    slopes = model.probe_slopes_
    model.probe_slopes_ = 1.001 * slopes
    assert failed() == {"gradient"}
    model.probe_slopes_ = np.full_like(slopes, np.nan)
    assert failed() == {"attributes"}
    model.probe_slopes_ = slopes
    fewer = {claim.name for claim in surefit.verify(model, X[:10], y[:10]).failed}
    assert {"loss", "data"} <= fewer
    assert {claim.name for claim in surefit.verify(model, X, np.roll(y, 1)).failed} >= {
        "loss",
        "data",
    }
    other = [*X[:-1], X[-1] + " word"]
    assert "data" in {claim.name for claim in surefit.verify(model, other, y).failed}


@pytest.mark.parametrize("name", ["input_vectors_", "output_vectors_"])
def test_vectors_of_a_wrong_shape_are_not_read_beyond(tmp_path: Path, name: str) -> None:
    """Compiled code follows the numbers of features: a table that was cut in a file has no rows for them."""
    X, y = made(100, 3, seed=7)
    model = FastTextClassifier(4, word_ngrams=2, random_state=0, certify=False).fit(X, y)
    rows = getattr(model, name)
    setattr(model, name, np.ascontiguousarray(rows[:1] if name[0] == "i" else rows[:, :2]))
    surefit.save(model, tmp_path / "cut.surefit")
    cut = surefit.load(tmp_path / "cut.surefit")
    with pytest.raises(ValueError, match="the model was changed"):
        cut.predict(X)
    assert {claim.name for claim in surefit.verify(cut, X, y).failed} == {"bags"}


@pytest.mark.parametrize("change", ["beyond", "below", "turned", "halves", "fewer"])
def test_buckets_that_are_none_are_told(change: str) -> None:
    """They are looked up in a table of ``n_buckets`` places, or by halving."""
    X, y = made(100, 3, seed=7)
    model = FastTextClassifier(4, word_ngrams=2, n_buckets=5000, random_state=0, certify=False)
    buckets = model.fit(X, y).buckets_.copy()
    if change == "beyond":
        buckets[-1] = 5000
    if change == "below":
        buckets[0] = -1
    model.buckets_ = {"turned": buckets[::-1], "halves": buckets + 0.5}.get(change, buckets)
    if change == "fewer":
        model.set_params(n_buckets=100)
    with pytest.raises(ValueError, match=r"buckets_ must ascend.*the model was changed"):
        model.predict(X)
    assert {claim.name for claim in surefit.verify(model, X, y).failed} == {"bags"}


def test_a_corpus_gives_a_row_for_each_text(tmp_path: Path) -> None:
    """Empty texts, and those that are longer than a segment, have a row as in a list."""
    X = ["good film", "", "bad film " * 20, "bad"]
    y, options = [1, 1, 0, 0], {"random_state": 0, "deterministic": True, "certify": False}
    whole = FastTextClassifier(3, **options).fit(X, y)
    cut = FastTextClassifier(3, **options).fit(Corpus(X, max_words=7), y)
    assert np.array_equal(whole.input_vectors_, cut.input_vectors_)
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(X) + "\n")
    sources = (Corpus(X, max_words=7), Corpus(path, max_words=7), path, [path], lambda: iter(X))
    for source in sources:
        assert np.array_equal(whole.predict_proba(source), whole.predict_proba(X))
    upper = FastTextClassifier(3, tokenizer=str.splitlines, lowercase=True, **options)
    path.write_text("Good film\nbad film\n")
    assert set(upper.fit(path, [1, 0]).words_) == {"good film", "bad film"}


def test_its_words_are_asked_as_any() -> None:
    X = ["good film", "fine film", "bad film", "poor film"] * 25
    y = np.array([1, 1, 0, 0] * 25)
    model = FastTextClassifier(6, max_iter=40, learning_rate=1.0, random_state=0)
    assert model
    with pytest.raises(NotFittedError):
        model.most_similar("good")
    assert model.fit(X, y).most_similar("good", k=1)[0][0] == "fine"
    assert model.similarity("good", "bad") < 0 < model.similarity("bad", "poor")
    # though vectors_ is a view that is made each time
    assert model.word_vectors is model.word_vectors
    old = model.word_vectors
    assert model.fit(X, 1 - y).word_vectors is not old
    np.testing.assert_array_equal(model["film"], model.vectors_[model.words_.index("film")])
    with pytest.raises(KeyError, match="Did you mean 'good'"):
        model.vector("goood")


def test_an_untrained_model_is_said_to_be_one() -> None:
    X, y = made(100, 2, seed=0)
    with pytest.warns(CertificateWarning, match="raise learning_rate"):
        FastTextClassifier(5, learning_rate=1e-9, max_iter=1, random_state=0).fit(
            X, np.arange(100) < 20
        )
    model = FastTextClassifier(5, learning_rate=1.0, random_state=0, certify=False).fit(X, y)
    with pytest.raises(ValueError, match="made the steps diverge: lower it"):
        model.set_params(learning_rate=1e30).fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("classes", [2, 4, 6, 7])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_what_is_equal_to_rounding_is_not_better(loss: str, classes: int) -> None:
    """With classes of the same size the loss of no steps is the entropy, a bit more or less."""
    X, y = ["a b c", "d e f"] * 42, np.arange(84) % classes
    model = FastTextClassifier(3, loss=loss, learning_rate=1e-30, random_state=0, certify=False)
    found = surefit.verify(model.fit(X, y), X, y)
    assert found["better than a constant"].status is Status.FAILS


def test_held_out_error_has_exact_limits() -> None:
    X, y = made(500, 2, seed=2)
    model = FastTextClassifier(
        5, learning_rate=1.0, max_iter=20, validation_fraction=0.4, random_state=3
    ).fit(X, y)
    claim = model.certificate_["held-out error"]
    assert claim.status is Status.HOLDS
    assert "of 200 held-out texts" in claim.statement
    rows = model.validation_indices_
    wrong = model.predict([X[i] for i in rows]) != y[rows]
    assert model.validation_error_ == wrong.mean()


# ---------------------------------------------------------------------------- fitting


def test_deterministic_whatever_the_threads() -> None:
    X, y = made(3000, 3, seed=4)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = FastTextClassifier(7, word_ngrams=2, deterministic=True, random_state=5)
            found.append(model.fit(X, y))
    for name in ("input_vectors_", "output_vectors_", "buckets_"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_threads_learn_as_well(loss: str) -> None:
    """Which of them is late is up to the machine: five seeds gave 0.1 to 1.3 %, a busy one 2.3 %."""
    X, y = made(6000, 3, seed=6, length=20)
    losses = [
        FastTextClassifier(
            10, loss=loss, learning_rate=0.5, deterministic=alone, random_state=0
        ).fit(X, y).loss_
        for alone in (True, False)
    ]  # fmt: skip
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_save_and_load(tmp_path: Path) -> None:
    X, y = made(200, 3, seed=8)
    names = np.array(["x", "y", "z"])[y]
    model = FastTextClassifier(
        4, word_ngrams=2, char_ngrams=(2, 3), learning_rate=1.0, random_state=0
    )
    model.fit(X, names).save(tmp_path / "m.surefit")
    loaded = surefit.load(tmp_path / "m.surefit")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert surefit.verify(loaded, X, names).ok
    split = clone(model).set_params(tokenizer=str.split).fit(X, names)
    split.save(tmp_path / "t.surefit")
    again = surefit.load(tmp_path / "t.surefit", tokenizer=str.split)
    np.testing.assert_array_equal(again.predict(X), split.predict(X))


def test_scikit_learn_contract() -> None:
    X, y = made(300, 2, seed=9)
    model = FastTextClassifier(5, loss="logistic", learning_rate=1.0, max_iter=30, random_state=0)
    assert cross_val_score(clone(model), X, y).mean() > 0.6
    model.fit(np.array(X, dtype=object), y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    assert model.vectors_.shape == (len(model.words_), 5)
    np.testing.assert_array_equal(
        model.transform(["w1 w2"]), model.transform([["w2", "w1"]])
    )  # two numbers commute
    assert (model.decision_function(["", "never seen"]) == 0).all()


def test_rows_to_begin_with_are_independent() -> None:
    """No row is another one moved by a few columns: of 2^24 numbers a row shares but a few by chance."""
    Z = np.empty((40, 16), dtype=np.float32)
    first_rows(Z, 12, np.uint64(5), 0, 17)
    first_rows(Z, 12, np.uint64(5), 17, 40)
    assert len(np.unique(Z[:, :12])) > 40 * 12 - 3
    assert not Z[:, 12:].any()
    assert np.abs(Z).max() < 1 / 12
    again = np.empty((40, 16), dtype=np.float32)
    first_rows(again, 12, np.uint64(5), 0, 40)
    np.testing.assert_array_equal(Z, again)


def test_columns_have_names_and_tables_do_no_harm() -> None:
    X, y = made(100, 3, seed=9)
    model = FastTextClassifier(2, learning_rate=1.0, max_iter=20, random_state=0).fit(X, y)
    names = ["fasttextclassifier0", "fasttextclassifier1"]
    assert model.get_feature_names_out().tolist() == names
    p = model.predict_proba(X)
    model.set_output(transform="pandas")
    assert list(model.transform(X).columns) == names
    np.testing.assert_array_equal(model.predict_proba(X), p)


def test_probabilities_where_every_sigma_is_zero() -> None:
    X, y = made(60, 3, seed=9)
    model = FastTextClassifier(2, loss="logistic", random_state=0, certify=False).fit(X, y)
    model.input_vectors_ = np.abs(model.input_vectors_)
    model.output_vectors_ = np.full_like(model.output_vectors_, -1e6)
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3)


def test_progress_in_words(capsys: Any) -> None:
    X, y = made(60, 2, seed=9)
    FastTextClassifier(2, verbose=2, certify=False, random_state=0).fit(X, y)
    told = capsys.readouterr().err
    assert "words/s" in told
    assert "100%" in told


# ---------------------------------------------------------------------------- words


def test_words_are_those_of_split() -> None:
    every = "".join(f"a{chr(c)}b" for c in range(0x110000))
    texts = [every[i : i + 9001] for i in range(0, len(every), 9001)]
    read = read_texts(texts)
    assert [read.words[i] for i in read.ids] == [w for text in texts for w in text.split()]
    rng = np.random.default_rng(0)
    many = [" ".join(f"{k:x}ü" for k in rng.integers(30_000, size=20)) for _ in range(3000)]
    read = read_texts(many)
    assert [read.words[i] for i in read.ids] == [w for text in many for w in text.split()]
    assert len(set(read.words)) == len(read.words)
    assert np.diff(read.starts).tolist() == [20] * 3000


def test_hashes_are_fnv() -> None:
    """Published values of FNV-1a; bytes of 128 and more are extended by their sign, as fastText does."""
    assert _hash("a") == 0xE40C292C
    assert _hash("foobar") == 0xBF9CF968
    texts = read_texts(["a foobar ünï"])
    assert [h % 2**32 for h in texts.hashes.tolist()] == [_hash(w) for w in texts.words]


def test_bags_by_hand() -> None:
    texts = read_texts(["a b a", "b c"])
    features = Features({"a": 0, "b": 1}, None, 2, None, 1000)
    bags, buckets = features.encode(texts)

    def bucket(first: str, second: str) -> int:
        one, two = (h - 2**32 if h >= 2**31 else h for h in (_hash(first), _hash(second)))
        return (one % 2**64 * 116049371 + two) % 2**64 % 1000

    pairs = [bucket("a", "b"), bucket("b", "a"), bucket("b", "c")]
    assert buckets.tolist() == sorted(set(pairs))
    column = [2 + buckets.tolist().index(b) for b in pairs]
    assert bags.ids.tolist() == [0, 1, 0, column[0], column[1], 1, column[2]]
    known = Features({"a": 0, "b": 1}, buckets, 2, None, 1000)
    new, _ = known.encode(read_texts(["c b a c c"]))
    assert new.ids.tolist() == [1, 0, column[1]]  # pairs that were never seen are left out


def test_parts_of_words_help_with_new_ones() -> None:
    X = ["running jumping", "walking talking", "nation station", "motion lotion"] * 10
    y = [0, 0, 1, 1] * 10
    model = FastTextClassifier(
        5, char_ngrams=(3, 4), learning_rate=1.0, max_iter=30, random_state=0
    )
    assert model.fit(X, y).predict(["singing", "ration"]).tolist() == [0, 1]
    plain = model.set_params(char_ngrams=None).fit(X, y)
    assert (plain.decision_function(["singing", "ration"]) == 0).all()


@pytest.mark.parametrize(
    ("change", "X", "y", "match"),
    [
        ({}, "one text", [0], "pass a list of texts"),
        ({}, ["a", None], [0, 1], "text 1 of X must be a string or a list of words, got NoneType"),
        ({}, [["a", 3], ["b"]], [0, 1], "text 0 of X holds 3, which is not a string"),
        ({}, np.array([["a"], ["b"]]), [0, 1], "X has shape"),
        ({}, {"a", "b"}, [0, 1], "X is a set"),
        ({}, {"a": 1, "b": 2}, [0, 1], "X is a mapping"),
        ({"tokenizer": str.upper}, ["a", "b"], [0, 1], "tokenizer must return a list .* string 'A'"),
        ({"tokenizer": lambda _: None}, ["a", "b"], [0, 1], "what tokenizer returns .*NoneType"),
        ({}, ["", " "], [0, 1], "X holds no word"),
        ({"min_count": 5}, ["a", "b"], [0, 1], "min_count=5 leaves no word"),
        ({}, ["a", "b"], [0, 0], "y holds one class only"),
        ({}, ["a", "b"], [0], "X has 2 texts and y 1 labels"),
        ({}, [], [], "X has no text"),
        ({}, ["a", "b"], None, "y is missing"),
        ({"solver": "exact"}, ["a", "b"], [0, 1], "reg=0.0 leaves solver='exact' without a minimum"),
        ({"reg": 0.1}, ["a", "b"], [0, 1], "reg=0.1 is for solver='exact'"),
        ({"char_ngrams": (4, 3)}, ["a", "b"], [0, 1], "char_ngrams must be"),
        ({"validation_fraction": 0.1}, ["a", "b"], [0, 1], "hold out at least one"),
    ],
)  # fmt: skip
def test_bad_input(change: dict[str, Any], X: Any, y: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        FastTextClassifier(3, **change).fit(X, y)


def test_news() -> None:
    """Four kinds of news, 6,000 texts to learn from and 1,600 others.

    The original tool, with two threads and these settings, is right for 0.8485 of them (a mean of five
    seeds; ours had 0.8486). The bound is two standard errors of 1,600 texts below that.
    """
    folder = data_folder()
    if folder is None or not (folder / "text" / "ag_news").is_dir():
        pytest.skip("the texts are not at hand")
    with gzip.open(folder / "text" / "ag_news" / "test.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    X, y = [f"{title} {text}" for _, title, text in rows], np.array([int(row[0]) for row in rows])
    model = FastTextClassifier(10, lowercase=True, learning_rate=0.5, max_iter=20, random_state=0)
    model.fit(X[:6000], y[:6000])
    assert model.certificate_.ok
    theirs = 0.8485
    error = math.sqrt(theirs * (1 - theirs) / len(y[6000:]))
    assert model.score(X[6000:], y[6000:]) > theirs - 2 * error
