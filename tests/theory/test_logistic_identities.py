"""The logistic model: sigmoid and logit, its likelihood, gradient and Hessian (LOG-1, LOG-2, LOG-3)."""

import mpmath
import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import log_loss

from surefit.losses import Logistic, logistic_01
from surefit.testing import check_gradient, is_convex_on_segments


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    w = rng.normal(size=3)
    return X, (rng.random(n) < expit(X @ w)).astype(float), w


def sigmoid(t):
    """sigma(t) from the library: minus the slope of the loss at the margin -t."""
    return -Logistic().slope(-np.asarray(t, dtype=float))


# ---------------------------------------------------------------------------- LOG-1


@pytest.mark.spec("LOG-1")
def test_sigmoid_identities():
    mpmath.mp.dps = 50
    t = np.concatenate([np.linspace(-40, 40, 401), [-700.0, 700.0, 0.0]])
    for at, got in zip(t, sigmoid(t)):
        want = 1 / (1 + mpmath.exp(-mpmath.mpf(at)))
        assert abs(float((got - want) / want)) <= 1e-15
    np.testing.assert_allclose(1 - sigmoid(t), sigmoid(-t), atol=1.2e-16)
    h = 1e-5
    near = t[np.abs(t) < 30]
    slope = (sigmoid(near + h) - sigmoid(near - h)) / (2 * h)
    np.testing.assert_allclose(slope, sigmoid(near) * sigmoid(-near), atol=1e-10)
    # The loss's curvature is sigma' = sigma (1 - sigma), without cancellation far out.
    np.testing.assert_allclose(Logistic().curvature(t), sigmoid(t) * sigmoid(-t), rtol=1e-15)
    assert Logistic().curvature(np.array([40.0]))[0] == pytest.approx(np.exp(-40), rel=1e-12)


@pytest.mark.spec("LOG-1")
def test_logit_round_trip():
    """log p/(1-p) = <x, w> iff p = sigma(<x, w>)."""
    X, _, w = data()
    g = X @ w
    p = sigmoid(g)
    np.testing.assert_allclose(np.log(p / (1 - p)), g, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(logit(sigmoid(np.linspace(-30, 5, 71))), np.linspace(-30, 5, 71),
                               rtol=1e-12, atol=1e-13)  # fmt: skip
    probabilities = np.array([1e-300, 1e-10, 0.3, 0.5, 0.999])
    np.testing.assert_allclose(sigmoid(logit(probabilities)), probabilities, rtol=1e-12)


# ---------------------------------------------------------------------------- LOG-2


@pytest.mark.spec("LOG-2")
@pytest.mark.parametrize("seed", range(3))
def test_negative_log_likelihood_in_all_its_forms(seed):
    X, y, w = data(seed=seed)
    g = X @ w
    p = expit(g)
    bernoulli = -np.sum(y * np.log(p) + (1 - y) * np.log(1 - p))
    margin = Logistic().pointwise(g, 2 * y - 1).sum()
    assert margin == pytest.approx(bernoulli, rel=1e-13)
    assert logistic_01(g, y).sum() == pytest.approx(bernoulli, rel=1e-13)
    assert np.sum(np.log(1 + np.exp(g)) - y * g) == pytest.approx(bernoulli, rel=1e-13)
    assert log_loss(y, p, normalize=False) == pytest.approx(margin, rel=1e-12)
    assert Logistic().value(g, 2 * y - 1) == pytest.approx(log_loss(y, p), rel=1e-12)
    s = np.random.default_rng(seed).uniform(size=len(y))
    weighted = Logistic().value(g, 2 * y - 1, s)
    assert weighted == pytest.approx(log_loss(y, p, sample_weight=s), rel=1e-12)
    assert -np.log(np.prod(np.where(y == 1, p, 1 - p))) == pytest.approx(margin, rel=1e-12)


# ---------------------------------------------------------------------------- LOG-3


def gradient(X, y, w):
    return X.T @ (expit(X @ w) - y) / len(y)


def hessian(X, w):
    p = expit(X @ w)
    return X.T @ ((p * (1 - p))[:, None] * X) / len(X)


@pytest.mark.spec("LOG-3")
@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_hessian(seed):
    X, y, w = data(seed=seed)
    n, signs, loss = len(y), 2 * y - 1, Logistic()

    def f(v):
        return loss.value(X @ v, signs)

    # The library's derivatives in z, carried to w, are the formulas.
    np.testing.assert_allclose(X.T @ loss.grad(X @ w, signs) / n, gradient(X, y, w), atol=1e-15)
    H = X.T @ (loss.hess(X @ w, signs)[:, None] * X) / n
    np.testing.assert_allclose(H, hessian(X, w), rtol=1e-12)
    check_gradient(f, lambda v: gradient(X, y, v), w, rtol=1e-8)
    for i in range(3):  # the Hessian is the derivative of the gradient, row by row
        check_gradient(
            lambda v, i=i: gradient(X, y, v)[i], lambda v, i=i: hessian(X, v)[i], w, rtol=1e-8
        )


@pytest.mark.spec("LOG-3")
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0, 100.0])
def test_hessian_lies_between_zero_and_a_quarter_of_the_gram(scale):
    X, y, _ = data()
    rng = np.random.default_rng(1)
    gram = X.T @ X / (4 * len(y))
    for _ in range(20):
        H = hessian(X, scale * rng.normal(size=3))
        assert np.linalg.eigvalsh(H)[0] >= -1e-15
        assert np.linalg.eigvalsh(gram - H)[0] >= -1e-15
    np.testing.assert_allclose(hessian(X, np.zeros(3)), gram, rtol=1e-14)  # attained at w = 0
    assert Logistic().smoothness == 0.25


@pytest.mark.spec("LOG-3")
def test_the_likelihood_is_convex_in_the_weights():
    X, y, _ = data()
    points = np.random.default_rng(2).normal(scale=5, size=(40, 3))
    assert is_convex_on_segments(lambda w: Logistic().value(X @ w, 2 * y - 1), points)
