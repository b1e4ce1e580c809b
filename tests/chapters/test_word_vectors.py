"""Questions to word vectors against brute force; n-grams; evaluations against their definitions."""

import json
import math
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from tests.data import data_folder

from surefit.model_selection import hoeffding_radius
from surefit.text._queries import Queries
from surefit.text.evaluation import (
    evaluate,
    evaluate_analogies,
    evaluate_similarity,
    read_analogies,
    read_pairs,
)
from surefit.text.ngrams import hash_ngrams, ngrams
from surefit.text.subwords import Subwords, SubwordVectors
from surefit.text.vectors import WordVectors

FLOAT32 = float(np.finfo(np.float32).eps)


def made(n=200, d=8, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return WordVectors([f"w{i}" for i in range(n)], rng.normal(size=(n, d)).astype(dtype))


def cosines(vectors, query):
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return vectors @ query / np.where(lengths > 0, lengths, 1.0)


# ------------------------------------------------------------------------------ neighbours


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    values=st.integers(1, 3),
    k=st.integers(1, 40),
    seed=st.integers(0, 10**6),
)
def test_nearest_is_the_exact_order(n, d, values, k, seed):
    """Small whole numbers make many ties: equal scores go by number."""
    rng = np.random.default_rng(seed)
    words = WordVectors([str(i) for i in range(n)], rng.integers(-values, values + 1, (n, d)))
    queries = rng.integers(-values, values + 1, (5, d)).astype(float)
    k = min(k, n)
    places, scores = words.nearest(queries, k)
    for row, found, score in zip(queries, places, scores, strict=True):
        size = np.linalg.norm(row)
        unit = (row / size if size else row).astype(np.float32).astype(float)
        exact = np.array([math.fsum(u * unit) for u in words.units.astype(float)])
        exact = np.clip(exact.astype(np.float32), -1, 1)
        assert found.tolist() == np.lexsort((np.arange(n), -exact))[:k].tolist()
        np.testing.assert_array_equal(score, exact[found])


def test_nearest_does_not_depend_on_blocks(monkeypatch):
    words = made(500, 20)
    queries = np.random.default_rng(1).normal(size=(40, 20))
    whole = words.nearest(queries, 7)
    monkeypatch.setattr("surefit.text.vectors._BLOCK", 1000)
    monkeypatch.setattr("surefit.text.vectors._GATHER", 64)
    parts = words.nearest(queries, 7)
    np.testing.assert_array_equal(whole[0], parts[0])
    np.testing.assert_array_equal(whole[1], parts[1])


def test_nearest_among_the_first_words():
    words = made()
    places, _ = words.nearest(words.vectors[100:110], 3, restrict=50)
    assert places.max() < 50
    with pytest.raises(ValueError, match="k=60 is more than the 50 words"):
        words.nearest(words.vectors[:1], 60, restrict=50)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_most_similar_is_brute_force(dtype):
    words = made(dtype=dtype)
    exact = words.vectors.astype(float)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    query = exact[3] + exact[4] - exact[9]
    scores = cosines(exact, query)
    order = [i for i in np.argsort(-scores) if i not in (3, 4, 9)][:10]
    found = words.most_similar(["w3", "w4"], ["w9"])
    assert [word for word, _ in found] == [f"w{i}" for i in order]
    tolerance = 4 * FLOAT32  # unit vectors rounded to float32, and the score
    np.testing.assert_allclose([score for _, score in found], scores[order], atol=tolerance)


def test_a_vector_asks_as_its_word_does():
    words = made()
    (first, score), *rest = words.most_similar(words["w7"] * 3, k=4)
    assert first == "w7"
    assert score == pytest.approx(1, abs=2 * FLOAT32)
    assert rest == words.most_similar("w7", k=3)


def test_all_words_but_the_asked_ones():
    words = made(5)
    assert len(words.most_similar("w0", k=100)) == 4
    assert len(words.most_similar(["w0", "w1", "w0"], k=100)) == 3


def test_analogy_is_a_sum_of_unit_vectors():
    rng = np.random.default_rng(2)
    base, shift = rng.normal(size=(6, 30)), rng.normal(size=30)
    rows = np.vstack([base, base + shift, rng.normal(size=(50, 30))])
    words = WordVectors([f"{i}" for i in range(62)], rows)
    assert words.analogy("0", "6", "1")[0][0] == "7"
    assert words.analogy("0", "6", "1", k=3) == words.most_similar(["6", "1"], ["0"], 3)


def test_similarity():
    words = made(dtype=np.float64)
    expected = cosines(words.vectors, words["w1"])[2]
    assert words.similarity("w1", "w2") == pytest.approx(expected, abs=1e-14)
    assert words.similarity("w1", "w1") == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
def test_any_scale(scale):
    words = WordVectors(["a", "b"], np.array([[1.0, 0.0], [1.0, 1.0]]) * scale)
    assert words.similarity("a", "b") == pytest.approx(math.sqrt(0.5), rel=1e-3)
    assert words.most_similar("a")[0][1] == pytest.approx(math.sqrt(0.5), rel=1e-3)


def test_a_zero_vector_is_similar_to_nothing():
    words = WordVectors(["zero", "a", "b"], [[0, 0], [1, 0], [-1, 1]])
    assert words.similarity("zero", "a") == 0.0
    assert words.similarity("zero", "zero") == 0.0
    assert words.most_similar("a") == [("zero", 0.0), ("b", pytest.approx(-math.sqrt(0.5)))]
    with pytest.raises(ValueError, match="the mean over zero is zero: nothing is nearest"):
        words.most_similar("zero")
    with pytest.raises(ValueError, match="the mean over a, a is zero"):
        words.most_similar("a", "a")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad):
    rows = np.eye(3)
    rows[1, 2] = bad
    with pytest.raises(ValueError, match="the vector of 'b' holds nan or infinity"):
        WordVectors("abc", rows)
    with pytest.raises(ValueError, match="matrix holds nan"):
        WordVectors("abc", np.eye(3)).nearest(rows)
    with pytest.raises(ValueError, match="vectors of 3 finite numbers"):
        WordVectors("abc", np.eye(3)).most_similar(rows[1])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((["a", "a"], np.eye(2)), ValueError, "'a' more than once"),
        ((["a", 3], np.eye(2)), TypeError, r"words\[1\] is 3"),
        ((["a"], np.eye(2)), ValueError, r"one row for each of 1 words.*\(2, 2\)"),
        (([], np.empty((0, 3))), ValueError, "one row for each of 0 words"),
        ((["a", "b"], [["x", "y"], ["z", "w"]]), TypeError, "vectors must hold numbers"),
    ],
)
def test_wrong_arguments(arguments, error, words):
    with pytest.raises(error, match=words):
        WordVectors(*arguments)


def test_wrong_extras():
    with pytest.raises(ValueError, match="counts must be whole numbers of 0 or more"):
        WordVectors("ab", np.eye(2), counts=[1, -2])
    with pytest.raises(ValueError, match="counts must be whole numbers of 0 or more"):
        WordVectors("ab", np.eye(2), counts=[1, np.nan])
    with pytest.raises(ValueError, match=r"counts holds 1\.5, which is no whole number"):
        WordVectors("ab", np.eye(2), counts=[1, 1.5])
    for wrong in (None, 5):
        with pytest.raises(TypeError, match=f"list of these is needed, got {wrong}"):
            WordVectors("ab", np.eye(2)).most_similar("a", wrong)
    with pytest.raises(ValueError, match="counts must be one number for each of 2 words"):
        WordVectors("ab", np.eye(2), counts=[1, 2, 3])
    with pytest.raises(TypeError, match=r"subwords must have a method vector\(word\), got int"):
        WordVectors("ab", np.eye(2), subwords=3)
    words = WordVectors("ab", np.eye(2))
    with pytest.raises(ValueError, match="k must be an integer of 1 or more, got 0"):
        words.most_similar("a", k=0)
    with pytest.raises(ValueError, match="name a word"):
        words.most_similar([])
    with pytest.raises(ValueError, match="rows of 2 numbers"):
        words.nearest(np.eye(3))
    with pytest.raises(TypeError, match="word must be a string, got 3"):
        words[3]


# ------------------------------------------------------------------------------ unknown words


def test_an_unknown_word_is_named_with_near_spellings():
    words = WordVectors(["colour", "colours", "cat"], np.eye(3))
    with pytest.raises(KeyError, match=r"'color' is not one of 3 words\. Did you mean 'colour'"):
        words["color"]
    with pytest.raises(KeyError, match="lower case: 'cat' is there"):
        words.similarity("Cat", "colour")
    with pytest.raises(KeyError, match=r"'zzz' is not one of 3 words\. Ask .*lower min_count"):
        words.most_similar("zzz")
    assert "cat" in words
    assert "zzz" not in words
    assert len(words) == 3
    assert list(words) == ["colour", "colours", "cat"]


def test_a_vector_cannot_be_changed_behind_its_unit():
    words = WordVectors(["a", "b"], np.eye(2) * 3)
    vector = words["a"]
    with pytest.raises(ValueError, match="read-only"):
        vector /= 3
    assert words.get("zzz") is None
    assert [type(word) for word in WordVectors(np.array(["a", "b"]), np.eye(2)).words] == [str, str]


def test_unknown_words_of_pairs_are_not_looked_for(monkeypatch):
    """Near spellings among many words take a tenth of a second: they are for people, not for counting."""
    monkeypatch.setattr(WordVectors, "_unknown", lambda *_: pytest.fail("asked for near spellings"))
    words, pairs = made(), [("w1", "w2", 1), ("w1", "w3", 2), ("w4", "w2", 3), ("x", "w1", 4)]
    assert evaluate_similarity(words, pairs).n == 3


def test_a_perfect_correlation_has_no_limits():
    words = WordVectors("abcde", [[1, 0], [9, 1], [4, 1], [2, 1], [1, 1]])
    found = evaluate_similarity(words, [("a", b, score) for b, score in zip("bcde", (4, 3, 2, 1))])
    assert found.rho == 1.0
    assert math.isnan(found.low)
    assert found.to_dict()["high"] is None


def test_subwords_answer_for_unknown_words():
    rng = np.random.default_rng(0)
    parts = SubwordVectors(Subwords(3, 4, 50), rng.normal(size=(50, 6)).astype(np.float32))
    words = WordVectors(["cat", "dog"], rng.normal(size=(2, 6)).astype(np.float32), subwords=parts)
    buckets = [int(h) % 50 for h in hash_ngrams(ngrams("cats", 3, 4))]
    expected = parts.matrix[buckets].astype(float).mean(axis=0)
    np.testing.assert_allclose(words["cats"], expected, rtol=FLOAT32)
    assert "cats" not in words
    assert len(words.most_similar("cats")) == 2
    with pytest.raises(KeyError, match="it has no n-grams either"):
        words[""]


# ------------------------------------------------------------------------------ n-grams


@settings(max_examples=80, deadline=None)
@given(
    words=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=6),
    minn=st.integers(1, 4),
    more=st.integers(0, 4),
    buckets=st.sampled_from([1, 7, 2_000_000, 2**31 - 1]),
)
def test_the_table_is_the_definition(words, minn, more, buckets):
    indptr, indices = Subwords(minn, minn + more, buckets).table(words)
    assert indptr.dtype == indices.dtype == np.int64
    for k, word in enumerate(words):
        own = hash_ngrams(ngrams(word, minn, minn + more)).astype(np.int64) % buckets
        expected = [] if word == "</s>" else own.tolist()
        assert indices[indptr[k] : indptr[k + 1]].tolist() == expected


def test_the_table_of_many_words():
    words = [f"wörd{i}" for i in range(20_000)]
    table = Subwords(2, 5, 1000)
    indptr, indices = table.table(words)
    for k in (0, 1, 9_999, 10_000, 19_999):
        own = table.table([words[k]])[1]
        assert indices[indptr[k] : indptr[k + 1]].tolist() == own.tolist()


def test_ngrams_are_of_code_points():
    assert ngrams("é", 1, 3) == ["<é", "<é>", "é", "é>"]
    assert ngrams("", 1, 2) == ["<>"]


def test_fnv_with_signed_characters():
    """Published values of FNV-1a for ASCII; beyond it, bytes are sign-extended."""
    assert hash_ngrams(["a", "foobar"]).tolist() == [0xE40C292C, 0xBF9CF968]
    assert hash_ngrams([""]).tolist() == [2166136261]
    value = 2166136261
    for byte in "é".encode():
        value = (value ^ (0xFFFFFF00 | byte)) * 16777619 % 2**32
    assert hash_ngrams(["é"]).tolist() == [value]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 3, 10), "minn must lie between 1 and maxn=3, got 0"),
        ((5, 3, 10), "minn must lie between 1 and maxn=3, got 5"),
        ((3, 6, 0), "n_buckets must lie between 1"),
        ((3, 6, -1), "n_buckets must be an integer of 0 or more, got -1"),
        ((3, 6.0, 10), "maxn must be an integer"),
    ],
)
def test_wrong_subwords(arguments, words):
    with pytest.raises(ValueError, match=words):
        Subwords(*arguments)


def test_words_that_cannot_be_hashed():
    with pytest.raises(ValueError, match=r"'\\ud800' has no UTF-8 form"):
        Subwords().table(["\ud800"])
    with pytest.raises(ValueError, match="one row of floats for each of 5 buckets"):
        SubwordVectors(Subwords(3, 3, 5), np.eye(4))


def test_compose_and_decompose():
    rng = np.random.default_rng(0)
    parts = SubwordVectors(Subwords(1, 3, 20), rng.normal(size=(20, 4)).astype(np.float32))
    names = ["cat", "</s>", "", "a", "longer"]
    own = rng.normal(size=(5, 4)).astype(np.float32)
    vectors = parts.compose(names, own)
    for name, row, vector in zip(names, own, vectors, strict=True):
        grams = [] if name == "</s>" else hash_ngrams(ngrams(name, 1, 3)) % 20
        rows = [row, *(parts.matrix[int(g)] for g in grams)]
        np.testing.assert_allclose(vector, np.mean(rows, axis=0, dtype=float), atol=4 * FLOAT32)
    np.testing.assert_allclose(parts.decompose(names, vectors), own, atol=60 * FLOAT32)


# ------------------------------------------------------------------------------ the mixin


class Fitted(Queries, BaseEstimator):
    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X=None, y=None):
        self.words_, self.word_counts_ = ["a", "b", "c"], np.array([9, 4, 2])
        self.vectors_ = np.random.default_rng(self.seed).normal(size=(3, 4))
        return self


def test_estimators_answer_as_their_vectors_do(tmp_path):
    model = Fitted()
    assert model
    with pytest.raises(NotFittedError):
        model.most_similar("a")
    plain = WordVectors(model.fit().words_, model.vectors_)
    assert model.word_vectors is model.word_vectors
    assert model.most_similar("a") == plain.most_similar("a")
    assert model.analogy("a", "b", "c", k=2) == plain.analogy("a", "b", "c", k=2)
    assert model.similarity("a", "b") == plain.similarity("a", "b")
    np.testing.assert_array_equal(model.nearest(np.eye(4), 2)[0], plain.nearest(np.eye(4), 2)[0])
    np.testing.assert_array_equal(model["b"], model.vector("b"))
    assert "a" in model
    assert len(model) == len(list(model)) == 3
    pairs = [("a", "b", 1), ("b", "c", 2), ("a", "c", 3), ("c", "a", 5)]
    assert model.evaluate(pairs) == plain.evaluate(pairs) == evaluate(model, pairs)
    model.save_vectors(tmp_path / "vectors.bin", "fasttext")
    assert WordVectors.load(tmp_path / "vectors.bin").counts.tolist() == [9, 4, 2]
    model.save_vectors(tmp_path / "vectors.txt")
    assert WordVectors.load(tmp_path / "vectors.txt").words == model.words_
    plt.close(model.plot().figure)


def test_a_new_fit_is_seen_and_the_cache_is_not_pickled():
    model = Fitted().fit()
    before = model.similarity("a", "b")
    assert "_queries" not in pickle.loads(pickle.dumps(model)).__dict__
    assert model.set_params(seed=1).fit().similarity("a", "b") != before
    assert set(model.get_params()) == {"seed"}


# ------------------------------------------------------------------------------ evaluations


def test_similarity_is_spearman_with_fisher_limits():
    words = made(60)
    rng = np.random.default_rng(3)
    pairs = [(f"W{i}", f"w{j}", float(s)) for i, j, s in rng.integers(0, 60, (200, 3))]
    pairs += [("w1", "unknown", 3.0)] * 50
    found = evaluate_similarity(words, pairs)
    cosine = [words.similarity(a.lower(), b) for a, b, _ in pairs[:200]]
    rho = spearmanr([score for *_, score in pairs[:200]], cosine).statistic
    assert found.rho == pytest.approx(rho, abs=1e-12)
    assert (found.n, found.total, found.covered) == (200, 250, 0.8)
    half = 1.959963984540054 * math.sqrt((1 + rho**2 / 2) / 197)
    assert found.low == pytest.approx(math.tanh(math.atanh(rho) - half), abs=1e-12)
    assert found.high == pytest.approx(math.tanh(math.atanh(rho) + half), abs=1e-12)
    assert json.loads(json.dumps(found.to_dict()))["covered"] == 0.8
    assert "200 of 250 pairs" in str(found)
    with pytest.raises(ValueError, match="0 of 250 pairs have both words"):
        evaluate_similarity(WordVectors("ab", np.eye(2)), pairs)


def test_case_counts_where_asked():
    words = WordVectors(["us", "US", "them", "we"], [[1, 0], [0, 1], [1, 1], [2, 1]])
    pairs = [("US", "them", 3), ("US", "we", 2), ("them", "we", 1), ("Them", "we", 1)]
    assert evaluate_similarity(words, pairs).n == 4
    assert evaluate_similarity(words, pairs, case_sensitive=True).n == 3
    questions = {"s": [("Us", "THEM", "we", "us")]}
    assert evaluate_analogies(words, questions).total.n == 1
    assert evaluate_analogies(words, questions, case_sensitive=True).total.n == 0


def test_limits_hold_as_often_as_they_say():
    """Normal pairs of correlation 0.6: Spearman's rho of the population is 6/pi asin(0.3)."""
    from surefit.text.evaluation import _limits

    rng, true, inside, draws = np.random.default_rng(4), 6 / math.pi * math.asin(0.3), 0, 600
    for _ in range(draws):
        x, e = rng.normal(size=(2, 100))
        low, high = _limits(spearmanr(x, 0.6 * x + 0.8 * e).statistic, 100, 0.05)
        inside += low <= true <= high
    assert abs(inside / draws - 0.95) < 4 * math.sqrt(0.95 * 0.05 / draws)


def brute_force(words, row, restrict):
    a, b, c, answer = (words.index[w] for w in row)
    unit = words.vectors[:restrict].astype(float)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    scores = unit @ (unit[b] - unit[a] + unit[c])
    scores[[a, b, c]] = -np.inf
    return int(np.argmax(scores)) == answer


@pytest.mark.parametrize("restrict", [30_000, 40])
def test_analogies_are_brute_force(restrict, monkeypatch):
    monkeypatch.setattr("surefit.text.evaluation._QUESTIONS", 17)
    words = made(80, 3)
    rng = np.random.default_rng(5)
    rows = [tuple(f"w{i}" for i in rng.choice(80, 4, replace=False)) for _ in range(400)]
    for k, (a, b, c, _) in enumerate(rows[:100]):
        rows[k] = (a, b, c, words.analogy(a, b, c)[0][0])
    found = evaluate_analogies(words, {"one": rows[:150], "two": rows[150:], "none": []}, restrict)
    size = min(restrict, 80)
    for section, part in zip(found.sections, (rows[:150], rows[150:], []), strict=True):
        known = [row for row in part if all(words.index[w] < size for w in row)]
        assert section.n == len(known)
        assert section.total == len(part)
        assert section.correct == sum(brute_force(words, row, size) for row in known)
    assert found.total.correct == sum(s.correct for s in found.sections)
    assert found.total.radius == hoeffding_radius(found.total.n, 0.05)
    assert math.isnan(found.sections[2].accuracy)
    assert json.loads(json.dumps(found.to_dict()))["sections"][2]["accuracy"] is None
    assert "none of 0 questions" in str(found)


def test_files_of_judgements():
    folder = data_folder()
    if folder is None or not (folder / "wordsim").is_dir():
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    sizes = {"EN-WS-353-ALL": 353, "EN-SIMLEX-999": 999, "EN-MEN-TR-3k": 3000, "EN-VERB-143": 144}
    for name, size in sizes.items():
        assert len(read_pairs(folder / "wordsim" / f"{name}.txt.gz")) == size, name
    sections = read_analogies(folder / "wordsim" / "questions-words.txt.gz")
    assert len(sections) == 14
    assert sum(map(len, sections.values())) == 19544


def test_both_evaluations(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("# judged\nw1 w2 3\r\nw2\tw3\t1.5\n\nw1 w3 2\n", encoding="utf-8-sig")
    found = evaluate(made(), similarity=[path, path], analogies={"s": [("w1", "w2", "w3", "w4")]})
    assert len(found.similarity) == 2
    assert found.similarity[0].name == "pairs"
    assert found.analogies[0].total.n == 1
    assert len(str(found).splitlines()) == 4
    assert set(found.to_dict()) == {"similarity", "analogies"}
    with pytest.raises(ValueError, match="name what to evaluate on"):
        evaluate(made())
    with pytest.raises(TypeError, match="evaluate takes no 'k'"):
        evaluate(made(), path, k=3)
    some = {"s": [("w1", "w2", "w3", "w4")]}
    assert evaluate(made(), analogies=some, restrict=np.int64(9)).analogies[0].restrict == 9
    with pytest.raises(ValueError, match="questions of four words, got 'abcd'"):
        evaluate(made(), analogies={"s": ["abcd"]})
    with pytest.raises(ValueError, match="delta must lie between 0 and 1, got '5%'"):
        evaluate(made(), path, delta="5%")


@pytest.mark.parametrize("words", [None, ["w1", "w2", "w$3"], ["w1", "w2"]])
def test_plot(words):
    vectors = WordVectors(["w1", "w2", "w$3"], np.eye(3)[:, :2])
    ax = vectors.plot(words)
    assert len(ax.texts) == len(words or vectors.words)
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="two or more"):
        vectors.plot(["w1"])


def test_words_of_a_plot_stand_apart():
    """Points in pairs, so near that words on the same side of both would cover each other."""
    angles = np.repeat(np.arange(12) * np.pi / 6, 2) + np.tile([0.0, 1e-3], 12)
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    ax = WordVectors([f"word{k}" for k in range(24)], places).plot()
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(boxes[a].overlaps(boxes[b]) for a in range(24) for b in range(a))
    plt.close(ax.figure)
