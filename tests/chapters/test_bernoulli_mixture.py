"""Bernoulli mixtures: EM on binary rows, on every kind of input."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import surefit
from surefit.design import RowBlocks
from surefit.mixture import BernoulliMixture, em


def rows(n=400, p=7, K=3, seed=0):
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.05, 0.95, size=(K, p))
    return (rng.uniform(size=(n, p)) < chances[rng.integers(0, K, n)]).astype(float)


def two_steps(X, alpha):
    """The same model, written for ``em``."""

    def e_step(theta):
        weights, p = theta
        return np.log(weights) + X @ np.log(p).T + (1 - X) @ np.log(1 - p).T

    def m_step(q):
        mass = q.sum(axis=0)
        return mass / len(X), (q.T @ X + alpha) / (mass + 2 * alpha)[:, None]

    def log_prior(theta):
        return alpha * (np.log(theta[1]) + np.log(1 - theta[1])).sum()

    return e_step, m_step, log_prior


@pytest.mark.spec("EM-1")
def test_the_general_loop_gives_the_same():
    X = rows()
    model = BernoulliMixture(3, random_state=0, tol=1e-9, max_iter=5000).fit(X)
    q = np.random.RandomState(0).uniform(size=(len(X), 3))
    q /= q.sum(axis=1)[:, None]
    e_step, m_step, log_prior = two_steps(X, 1.0)
    found = em(e_step, m_step, m_step(q), log_prior=log_prior, tol=1e-9, max_iter=5000)
    assert found.n_iter == model.n_iter_
    np.testing.assert_allclose(found.theta[1], model.probabilities_, rtol=1e-9)
    np.testing.assert_allclose(found.theta[0], model.weights_, rtol=1e-9)
    np.testing.assert_allclose(found.trace[:-1], model.lower_bounds_, rtol=1e-12)
    assert found.value == pytest.approx(model.final_lower_bound_, rel=1e-12)
    assert found.certificate.ok


def test_handwritten_digits():
    """Ten components of binarised digits: means that look like digits, and a partition near the classes."""
    X, y = load_digits(return_X_y=True)
    model = BernoulliMixture(10, binarize=7.5, n_init=3, random_state=0).fit(X)
    assert model.certificate_.ok, str(model.certificate_)
    assert model.converged_
    assert adjusted_rand_score(y, model.predict(X)) > 0.45
    one = BernoulliMixture(1, binarize=7.5).fit(X)
    assert model.bic(X) < one.bic(X)
    assert model.score(X) > one.score(X) + 3.0
    drawn, labels = model.sample(2000)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    np.testing.assert_allclose(np.bincount(labels, minlength=10) / 2000, model.weights_, atol=0.05)
    assert (
        abs(
            model.set_params(binarize=None).score(drawn)
            - one.set_params(binarize=None).score(drawn)
        )
        > 3.0
    )


def test_one_component_is_counting():
    X = rows()
    model = BernoulliMixture(1, alpha=2.0).fit(X)
    np.testing.assert_allclose(
        model.probabilities_[0], (X.sum(axis=0) + 2.0) / (len(X) + 4.0), rtol=1e-12
    )
    p = model.probabilities_[0]
    expected = (X * np.log(p) + (1 - X) * np.log(1 - p)).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-12)


def test_no_smoothing_may_rule_rows_out():
    X = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = BernoulliMixture(1, alpha=0.0).fit(X)
    assert model.probabilities_[0, 0] == pytest.approx(1.0, abs=1e-14)
    assert model.certificate_.ok, str(model.certificate_)
    assert model.score_samples([[0.0, 1.0]])[0] < -30.0


def test_responsibilities_are_bayes_rule():
    X = rows()
    model = BernoulliMixture(3, random_state=0).fit(X)
    p = model.probabilities_
    joint = np.log(model.weights_) + X @ np.log(p).T + (1 - X) @ np.log1p(-p).T
    np.testing.assert_allclose(
        model.predict_proba(X), np.exp(joint - logsumexp(joint, axis=1)[:, None]), atol=1e-12
    )
    assert (model.predict(X) == joint.argmax(axis=1)).all()
    assert model.aic(X) == pytest.approx(
        -2 * logsumexp(joint, axis=1).sum() + 2 * (3 * 7 + 2), rel=1e-12
    )


@pytest.mark.parametrize("kind", ["sparse", "matrix", "blocks", "torch", "float32"])
def test_every_input_gives_the_same(kind, tmp_path):
    X = rows(n=900)
    torch = pytest.importorskip("torch") if kind == "torch" else None
    other = {
        "sparse": lambda: sp.csr_array(X),
        "matrix": lambda: sp.coo_matrix(X),
        "blocks": lambda: RowBlocks(X, block_bytes=1 << 10),
        "torch": lambda: torch.from_numpy(X),
        "float32": lambda: X.astype(np.float32),
    }[kind]()
    settings = {"random_state": 1, "tol": 1e-5, "max_iter": 2000}
    model, plain = (
        BernoulliMixture(3, **settings).fit(other),
        BernoulliMixture(3, **settings).fit(X),
    )
    tolerance = 1e-6 if kind == "float32" else 1e-9
    np.testing.assert_allclose(
        np.asarray(model.probabilities_), plain.probabilities_, rtol=tolerance
    )
    np.testing.assert_allclose(
        np.asarray(model.predict_proba(other)), plain.predict_proba(X), atol=100 * tolerance
    )
    assert model.certificate_.ok, str(model.certificate_)
    assert surefit.verify(model, other).ok


def test_what_is_not_binary():
    X = rows()
    with pytest.raises(ValueError, match="X must hold 0 and 1 where binarize=None"):
        BernoulliMixture(2, binarize=None).fit(X + 0.5)
    with pytest.raises(ValueError, match="would make every zero of a sparse X a one"):
        BernoulliMixture(2, binarize=-1.0).fit(sp.csr_array(X))
    same = BernoulliMixture(2, binarize=0.7, random_state=0).fit(X + 0.5)
    np.testing.assert_array_equal(
        same.probabilities_, BernoulliMixture(2, random_state=0).fit(X).probabilities_
    )
