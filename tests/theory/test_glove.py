"""GloVe: log-counts factorised, by weighted least squares and by steps (TXT-3, TXT-4)."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.data import data_folder
from threadpoolctl import threadpool_limits

import surefit
from surefit import Status
from surefit.certificate import CertificateWarning
from surefit.decomposition import MatrixFactorization
from surefit.text.cooccurrence import Cooccurrence
from surefit.text.glove import GloVe, count_weight

TEXTS = ["the king rules the land", "the queen rules the land", "a cat drinks milk"] * 20


def counts(n=40, share=0.5, seed=0, rank=3):
    """Counts of about exp(a product of rank 3), whole numbers, some of them 1, some not seen."""
    rng = np.random.default_rng(seed)
    product = 2.0 + rng.normal(size=(n, rank)) @ rng.normal(size=(n, rank)).T / np.sqrt(rank)
    N = np.maximum(1.0, np.rint(np.exp(product)))
    return sp.csr_array(np.where(rng.random((n, n)) < share, N, 0.0))


def loss_of(model, N, f):
    """The definition, by dense algebra."""
    N = N.toarray()
    seen = N > 0
    E = model.word_factors_ @ model.context_factors_.T.astype(np.float64)
    if model.biases:
        E = E + model.word_biases_[:, None] + model.context_biases_
    E = np.where(seen, E - np.log(np.where(seen, N, 1.0)), 0.0)
    return 0.5 * (f(N) * E**2).sum()


def solved(N, **options):
    options = {"solver": "als", "tol": 1e-6, "max_iter": 3000, "random_state": 0} | options
    return GloVe(3, **options).fit(N)


# ---------------------------------------------------------------------------- TXT-4: the weights


@pytest.mark.spec("TXT-4")
def test_weights_in_numbers():
    """n_max = 100: f(1) = 0.03162 and f(100) = 1."""
    f = count_weight([1.0, 10.0, 100.0, 1e6])
    assert round(float(f[0]), 5) == 0.03162
    assert f[1] == pytest.approx(10.0**-0.75, rel=1e-15)
    assert f[2:].tolist() == [1.0, 1.0]


@pytest.mark.spec("TXT-4")
@pytest.mark.parametrize("biases", [True, False])
def test_blocks_of_weighted_least_squares_are_stationary(biases):
    N = counts()
    model = solved(N, biases=biases, reg=0.1, x_max=20.0)
    assert model.certificate_.ok
    assert {"word block", "context block", "monotone loss"} <= {
        c.name for c in model.certificate_.claims
    }
    assert (np.diff(model.loss_trace_) <= 1e-9).all()
    penalty = sum((a**2).sum() for a in (model.word_factors_, model.context_factors_))
    if biases:
        penalty += (model.word_biases_**2).sum() + (model.context_biases_**2).sum()
    expected = loss_of(model, N, lambda n: count_weight(n, 20.0)) + 0.05 * penalty
    assert model.loss_ == pytest.approx(expected, rel=1e-12)
    # a word's row is the weighted ridge regression that the formula says
    i, j = 5, N[[5]].indices
    F, c = model.context_factors_[j], model.context_biases_[j] if biases else 0.0
    F = np.column_stack([F, np.ones(len(j))]) if biases else F
    f, t = count_weight(N[[i]].data, 20.0), np.log(N[[i]].data) - c
    row = np.linalg.solve((F.T * f) @ F + 0.1 * np.eye(F.shape[1]), F.T @ (f * t))
    own = (
        np.append(model.word_factors_[i], model.word_biases_[i])
        if biases
        else model.word_factors_[i]
    )
    np.testing.assert_allclose(own, row, rtol=1e-9, atol=1e-11)


def test_rows_that_no_pivot_can_be_had_for():
    """Without a penalty, rows with fewer entries than numbers get the solution of least norm."""
    N = sp.csr_array(np.triu(counts(6, 1.0).toarray()))
    model = solved(N, reg=0.0, tol=1e-3, max_iter=2000, weighting="none")
    assert np.isfinite(model.vectors_).all()
    assert model.certificate_["word block"].status is Status.HOLDS


# ---------------------------------------------------------------------------- TXT-3: log-counts


@pytest.mark.spec("TXT-3")
def test_with_equal_weights_it_is_matrix_factorisation():
    """f = 1, from "none" or from a tiny x_max: the same loss, and the same minimum up to a rotation."""
    N = counts(30, 0.8)
    X = N.copy()
    X.data = np.log(X.data)  # zeros stay stored: pairs that were seen once
    options = {"reg": 0.5, "tol": 1e-9, "max_iter": 5000}
    plain = MatrixFactorization(3, random_state=0, **options).fit(X)
    same = solved(N, biases=False, weighting="none", **options)
    tiny = solved(N, biases=False, x_max=1e-3, **options)
    assert same.loss_ == tiny.loss_
    assert same.loss_ == pytest.approx(plain.loss_, rel=1e-9)
    np.testing.assert_allclose(
        same.word_factors_ @ same.context_factors_.T, plain.user_factors_ @ plain.item_factors_.T,
        atol=1e-5,
    )  # fmt: skip
    # the loss of the other's factors
    same.word_factors_, same.context_factors_ = plain.user_factors_, plain.item_factors_
    same.vectors_, same.loss_ = plain.user_factors_ + plain.item_factors_, plain.loss_
    assert surefit.verify(same, N)["loss"].status is Status.HOLDS


@pytest.mark.spec("TXT-3")
def test_pairs_seen_once_stay_in_the_sum():
    """log 1 = 0 is data, not absence: with such pairs alone the products are drawn to 0 there."""
    N = counts()
    assert (N.data == 1.0).any()
    model = solved(N, biases=False, reg=1e-3, weighting="none")
    ones = N.toarray() == 1.0
    products = model.word_factors_ @ model.context_factors_.T
    residual = loss_of(model, N, lambda n: (n > 0).astype(float))
    without = N.copy()
    without.data[without.data == 1.0] = 0.0
    without.eliminate_zeros()
    blind = solved(without, biases=False, reg=1e-3, weighting="none")
    elsewhere = blind.word_factors_ @ blind.context_factors_.T
    assert np.square(products[ones]).mean() < 0.5 * np.square(elsewhere[ones]).mean()
    assert residual > 0.5 * np.square(products[ones]).sum()


# ---------------------------------------------------------------------------- steps


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
@pytest.mark.parametrize("biases", [True, False])
def test_steps_reach_the_loss_of_least_squares(solver, biases):
    N = counts()
    best = solved(N, biases=biases, reg=0.02, weighting="none", max_iter=5000, tol=1e-5)
    model = GloVe(
        3, solver=solver, biases=biases, reg=0.02, weighting="none", tol=0, max_iter=1500, random_state=0
    ).fit(N)  # fmt: skip
    assert model.certificate_.ok
    assert model.loss_ < 1.15 * best.loss_
    assert model.loss_trace_[-1] < 0.2 * model.loss_trace_[0]
    assert model.n_iter_ == 1500
    expected = loss_of(model, N, lambda n: (n > 0).astype(float))
    penalty = sum((a**2).sum(dtype=float) for a in (model.word_factors_, model.context_factors_))
    if biases:
        penalty += (model.word_biases_**2).sum(dtype=float)
        penalty += (model.context_biases_**2).sum(dtype=float)
    assert model.loss_ == pytest.approx(expected + 0.01 * penalty, rel=1e-5)
    assert model.vectors_.dtype == np.float32


@pytest.mark.parametrize("solver", ["adagrad", "sgd", "als"])
def test_the_same_vectors_for_any_number_of_threads(solver):
    N = counts(300, 0.3)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = GloVe(
                8, solver=solver, deterministic=True, max_iter=3, random_state=1, tol=1.0, certify=False
            )  # fmt: skip
            fits.append(model.fit(N))
    np.testing.assert_array_equal(fits[0].vectors_, fits[1].vectors_)
    np.testing.assert_array_equal(fits[0].loss_trace_, fits[1].loss_trace_)


def test_threads_that_do_not_wait_learn_as_well():
    """The loss still halves every other epoch here: they may be two epochs behind, not more."""
    N = counts(300, 0.3)
    free = GloVe(8, max_iter=20, random_state=0).fit(N)
    waiting = GloVe(8, max_iter=20, random_state=0, deterministic=True).fit(N)
    assert free.loss_ < waiting.loss_trace_[-3]
    assert waiting.loss_ < 0.01 * waiting.loss_trace_[0]
    assert free.certificate_.ok


def test_steps_that_diverge_are_told():
    with pytest.raises(ValueError, match="sgd diverged with learning_rate=100"):
        GloVe(3, solver="sgd", learning_rate=100.0, random_state=0).fit(counts())


def test_progress(capsys):
    GloVe(3, max_iter=2, verbose=2, random_state=0, certify=False).fit(counts())
    told = capsys.readouterr().err
    assert "pairs/s" in told
    assert "100%" in told


# ---------------------------------------------------------------------------- the estimator


def test_texts_and_their_counts_give_the_same_vectors():
    options = {"window": 3, "min_count": 5, "solver": "als", "max_iter": 300, "random_state": 0}
    model = GloVe(4, **options).fit(TEXTS)
    found = Cooccurrence(window=3, weighting="harmonic", min_count=5).fit(TEXTS)
    by_counts = GloVe(4, **options).fit(found.counts_, words=found.words_)
    np.testing.assert_array_equal(model.vectors_, by_counts.vectors_)
    assert model.words_ == by_counts.words_ == found.words_
    np.testing.assert_array_equal(model.vectors_, model.word_factors_ + model.context_factors_)
    assert surefit.verify(model, TEXTS).ok
    assert not surefit.verify(model, TEXTS[1:]).ok
    assert model.most_similar("king", k=1)[0][0] == "queen"
    assert model.transform(["the king", "milk"]).shape == (2, 4)
    assert GloVe(2, max_iter=1, certify=False).fit(found.counts_).words_[:2] == ["0", "1"]


def test_words_that_occur_with_no_other_stay_at_zero():
    N = sp.csr_array(np.pad(counts(20).toarray(), (0, 1)))
    for solver in ("adagrad", "als"):
        model = GloVe(3, solver=solver, max_iter=500, random_state=0).fit(N)
        assert not model.vectors_[-1].any()


def test_clone_save_and_load(tmp_path):
    model = GloVe(4, max_iter=500, tol=0, random_state=0).fit(TEXTS)
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "glove.surefit")
    back = surefit.load(tmp_path / "glove.surefit")
    np.testing.assert_array_equal(back.vectors_, model.vectors_)
    assert back.certificate_ == model.certificate_
    assert surefit.verify(back, TEXTS).ok


def test_bad_input():
    with pytest.raises(ValueError, match="must be a square matrix"):
        GloVe().fit(sp.csr_array(np.ones((2, 3))))
    with pytest.raises(ValueError, match="negative, nan or infinite"):
        GloVe().fit(sp.csr_array(np.array([[0.0, -1.0], [1.0, 0.0]])))
    with pytest.raises(ValueError, match="holds no count above 0"):
        GloVe().fit(sp.csr_array((2, 2)))
    with pytest.raises(ValueError, match="corpus is empty"):
        GloVe().fit([])
    with pytest.raises(ValueError, match="leaves no word"):
        GloVe(min_count=9).fit(["a b"])
    with pytest.raises(ValueError, match="occur together"):
        GloVe(min_count=1).fit(["a", "b"])
    with pytest.raises(ValueError, match="words must name 40 rows"):
        GloVe().fit(counts(), words=["a"])
    with pytest.raises(ValueError, match="a corpus has its own"):
        GloVe(min_count=1).fit(["a b"], words=["a", "b"])


# ---------------------------------------------------------------------------- the certificate


def test_tampered_models_are_seen():
    N = counts()
    model = solved(N, reg=0.1)
    assert surefit.verify(model, N).ok

    def failed():
        return {claim.name for claim in surefit.verify(model, N).failed}

    kept = model.word_factors_.copy()
    model.word_factors_ = kept + 1e-4
    assert {"loss", "vectors", "word block"} <= failed()
    model.vectors_ = model.word_factors_ + model.context_factors_
    assert {"loss", "word block"} <= failed()
    model.word_factors_ = kept
    model.vectors_ = kept + model.context_factors_
    assert failed() == set()
    model.loss_ *= 1.0 + 1e-9
    assert "loss" in failed()
    model.loss_ = float(model.loss_trace_[-1])
    model.loss_trace_ = model.loss_trace_[::-1]
    assert "monotone loss" in failed()
    model.loss_trace_ = model.loss_trace_[::-1]
    model.word_biases_ = np.full_like(model.word_biases_, np.nan)
    assert failed() == {"attributes"}
    model.word_biases_ = np.zeros(len(model.word_biases_) - 1)
    assert failed() == {"loss"}
    model.word_factors_ = kept[1:]
    assert "loss" in failed()


def test_counts_of_words_are_claimed():
    """Weighted sentence vectors are made with them; no claim looked at them."""
    texts = ["a b c a", "b c d", "a d"] * 4
    for data in (texts, counts()):
        model = GloVe(2, min_count=1, solver="als", random_state=0, certify=False).fit(data)
        assert surefit.verify(model, data)["words"].status is Status.HOLDS
        kept = model.word_counts_, model.n_words_
        model.word_counts_ = kept[0] + np.eye(1, len(kept[0]), 1, dtype=np.int64)[0]
        model.n_words_ = kept[1] + 1
        assert surefit.verify(model, data)["words"].observed == 2
        model.word_counts_ = kept[0]
        assert surefit.verify(model, data)["words"].status is Status.FAILS
        model.n_words_ = kept[1]
        for wrong in (kept[0] * 1.0, kept[0][1:], -kept[0]):
            model.word_counts_ = wrong
            assert [c.name for c in surefit.verify(model, data).failed] == ["attributes"]
        model.word_counts_, words = kept[0], model.words_
        for other in ([*words[:-1], words[0]], [*words[:-1], 3]):
            model.words_ = other
            assert "attributes" in {c.name for c in surefit.verify(model, data).failed}
        model.words_ = words


def test_a_fit_that_did_not_learn_fails_its_claim():
    N = counts()
    with pytest.warns(CertificateWarning, match="below biases alone"):
        GloVe(3, max_iter=1, learning_rate=1e-4, random_state=0).fit(N)
    with pytest.warns(CertificateWarning, match="context block"):
        GloVe(3, solver="als", max_iter=1, tol=1e-6, random_state=0).fit(N)


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
@pytest.mark.parametrize("biases", [True, False])
def test_steps_are_compared_with_gradients(solver, biases):
    N = counts()
    model = GloVe(3, solver=solver, biases=biases, reg=0.1, max_iter=100, random_state=0).fit(N)
    assert model.certificate_["gradient"].status is Status.HOLDS
    recorded = model.probe_slopes_
    for wrong in (1.05 * recorded, recorded[1:]):
        model.probe_slopes_ = wrong
        assert surefit.verify(model, N)["gradient"].status is Status.FAILS
    model.probe_slopes_ = np.full_like(recorded, np.nan)
    assert "probe_slopes_ holds NaN" in surefit.verify(model, N)["attributes"].statement
    model.probe_slopes_ = recorded
    model.context_factors_ = 1.1 * model.context_factors_
    assert surefit.verify(model, N)["gradient"].status is Status.FAILS


def test_steps_of_weights_that_vanish_are_none():
    """f = (1/100)^100 is above 0, and its square is not: no step along such a slope overflows."""
    counts = sp.csr_array(np.array([[0.0, 1.0, 99.0], [1.0, 0.0, 1.0], [99.0, 1.0, 0.0]]))
    model = GloVe(2, alpha=100.0, biases=False, random_state=0, certify=False).fit(counts)
    assert surefit.verify(model, counts)["gradient"].status is Status.HOLDS


def test_a_fit_that_breaks_off_leaves_no_vectors_of_another():
    model = GloVe(3, solver="als", min_count=1, max_iter=100, random_state=0).fit(TEXTS)
    with pytest.raises(ValueError, match="occur together"):
        model.fit(["a", "b"])
    with pytest.raises(NotFittedError):
        model.transform(["the king"])


def test_vectors_of_real_text():
    """Three million characters of an encyclopedia: numbers are near numbers, and the claims hold."""
    folder = data_folder()
    path = folder and folder / "text" / "text8_first_3010294_chars.xz"
    if path is None or not path.exists():
        pytest.skip("text8 is not at hand")
    model = GloVe(32, max_size=3000, max_iter=15, random_state=0, deterministic=True).fit(path)
    assert model.certificate_.ok
    near = {word for word, _ in model.most_similar("three", k=8)}
    assert len(near & {"one", "two", "four", "five", "six", "seven", "eight", "nine"}) >= 4
