"""Texts that are held out: no copies of others, and drawn again by whoever verifies a fit."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from benchmarks.held_out_coverage import coverage

import surefit
from surefit import Status
from surefit.text import Cooccurrence, FastTextClassifier, GloVe, Sent2Vec, SkipGram
from surefit.text._held_out import copies_of, hold_out

pytestmark = pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")


def made(n: int = 120, seed: int = 0) -> tuple[list[str], Any]:
    """Texts of a class's words and others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return [
        " ".join(f"{'ab'[c] if rng.random() < 0.5 else 'w'}{rng.integers(8)}" for _ in range(9))
        for c in y
    ], y


def fit(kind: str, X: Any, y: Any, **more: Any) -> Any:
    if kind == "fasttext":
        model: Any = FastTextClassifier(
            5, learning_rate=1.0, max_iter=30, deterministic=True, random_state=0, **more
        )
        return model.fit(X, y)
    if kind == "skipgram":
        model = SkipGram(
            6, min_count=1, subsample=0, max_iter=8, deterministic=True, random_state=0, **more
        )
    else:
        model = Sent2Vec(
            6, min_count=1, subsample=0, max_iter=8, deterministic=True, random_state=0, **more
        )
    return model.fit(X)


def verify(model: Any, X: Any, y: Any) -> Any:
    return surefit.verify(model, X, y if isinstance(model, FastTextClassifier) else None)


KINDS = {"fasttext": "held-out error", "skipgram": "held-out loss", "sent2vec": "held-out loss"}


@pytest.mark.parametrize("kind", KINDS)
def test_copies_fall_on_one_side(kind: str) -> None:
    """Each text three times: nearly all that was held out had been learnt from."""
    X, y = made(40)
    X, y = X * 3, np.tile(y, 3)
    model = fit(kind, X, y, validation_fraction=0.4)
    held = model.validation_indices_
    away = {X[i] for i in held}
    assert len(held) == 3 * len(away)
    assert not away & {X[i] for i in np.setdiff1d(np.arange(len(X)), held)}
    claim = verify(model, X, y)[KINDS[kind]]
    assert claim.low <= claim.estimate <= claim.high
    if kind == "fasttext":
        assert f"of {len(held)} held-out texts, {len(away)} of them different" in claim.statement


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_split_fails(kind: str) -> None:
    X, y = made()
    model = fit(kind, X, y, validation_fraction=0.4)
    assert verify(model, X, y)[KINDS[kind]].status in (Status.HOLDS, Status.UNINFORMATIVE)
    held = model.validation_indices_
    other = np.setdiff1d(np.arange(len(X)), held)
    forged = {
        "exchanged": ("validation_indices_", np.sort(np.append(held[1:], other[0]))),
        "dropped": ("validation_indices_", held[1:]),
        "seed": ("split_seed_", model.split_seed_ + 1),
        "no seed": ("split_seed_", None),
        "share": ("validation_fraction", 0.3),
    }
    for change, (name, value) in forged.items():
        changed = copy.deepcopy(model)
        setattr(changed, name, value)
        claim = verify(changed, X, y)[KINDS[kind]]
        assert claim.status is Status.FAILS, change
        assert "held-out texts" in claim.statement
    wrong = {"twice": np.repeat(held, 2), "floats": held * 1.0, "back": held[::-1], "none": None}
    for change, value in wrong.items():
        changed = copy.deepcopy(model)
        changed.validation_indices_ = value
        assert [c.name for c in verify(changed, X, y).failed][:1] == ["attributes"], change


@pytest.mark.parametrize("kind", ["skipgram", "sent2vec"])
def test_vectors_no_better_than_chance_on_other_texts_are_not_green(kind: str) -> None:
    """Words drawn at random, each text twice: what was learnt by heart says nothing about other texts."""
    rng = np.random.default_rng(0)
    X = [" ".join(f"w{i}" for i in rng.integers(60, size=8)) for _ in range(60)] * 2
    model = fit(kind, X, None, validation_fraction=0.5, learning_rate=0.3)
    assert verify(model, X, None)["held-out loss"].status is not Status.HOLDS


def test_an_untrained_classifier_is_near_the_least_of_nothing() -> None:
    """Its loss is within 7.6e-6 of the least of a ball of radius 0, and no better than a constant."""
    X, y = made(200)
    model = FastTextClassifier(
        5, learning_rate=1e-4, max_iter=1, deterministic=True, random_state=0, certify=False
    ).fit(X, y)
    found = surefit.verify(model, X, y)
    assert found["gap to logistic regression"].status is Status.UNINFORMATIVE
    assert "best constant scores" in found["gap to logistic regression"].statement
    assert found["better than a constant"].status is not Status.HOLDS
    assert not found.proved


def test_equal_texts_share_a_group_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from surefit.text import _held_out

    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 4, size=300)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ids = rng.integers(0, 3, size=starts[-1]).astype(np.int32)
    texts = [tuple(ids[a:b]) for a, b in itertools.pairwise(starts)]
    first: dict[Any, int] = {}
    expected = [first.setdefault(text, len(first)) for text in texts]
    assert copies_of(ids, starts).tolist() == expected
    monkeypatch.setattr(_held_out, "_BLOCK", 5)
    assert copies_of(ids, starts).tolist() == expected
    with pytest.raises(ValueError, match="all 4 are copies of one"):
        hold_out(0.5, np.zeros(4, dtype=np.int64), 0)


# ---------------------------------------------------------------------------- the words


@pytest.mark.parametrize("kind", ["skipgram", "sent2vec", "glove", "cooccurrence", "fasttext"])
def test_words_and_counts_of_no_fit_are_named(kind: str) -> None:
    X, y = made(60)
    if kind == "glove":
        model: Any = GloVe(3, min_count=1, random_state=0).fit(X)
    elif kind == "cooccurrence":
        model = Cooccurrence(min_count=1).fit(X)
    else:
        model = fit(kind, X, y)
    words, counts = model.words_, model.word_counts_
    changes: dict[str, Any] = {
        "words_": [[*words[:-1], words[0]], [*words[:-1], 5]],
        "word_counts_": [counts * 1.0, counts[1:], -counts],
    }
    if hasattr(model, "n_words_"):
        changes["n_words_"] = [int(counts.sum()) - 1, 0.5]
    for name, values in changes.items():
        kept = getattr(model, name)
        for value in values:
            setattr(model, name, value)
            assert "attributes" in {c.name for c in verify(model, X, y).failed}, (name, value)
        setattr(model, name, kept)
    model.word_counts_ = counts + np.eye(1, len(counts), 2, dtype=np.int64)[0]
    if hasattr(model, "n_words_"):
        model.n_words_ += 1
    name = "bags" if kind == "fasttext" else "words"
    assert name in {c.name for c in verify(model, X, y).failed}


# ---------------------------------------------------------------------------- simulations


@pytest.mark.parametrize("case", ["fastText, doubled texts", "fastText, shuffled labels"])
def test_stated_limits_hold_the_error_of_random_labels(case: str) -> None:
    """40 fits, of which at most 1 in 20 may miss: 8 have a probability of 4e-4."""
    found = coverage(case, 40)
    assert found["stated"] == 40
    assert found["missed"] <= 7
    assert found["informative"] <= 4
