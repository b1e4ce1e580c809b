"""Kernel support vector regression."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning

import surefit
from surefit import Status
from surefit.kernels import Gaussian
from surefit.svm import SVR


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X * 20.0, (y - y.mean()) / y.std()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"C": 50.0, "epsilon": 0.3, "gamma": 0.05},
        {"kernel": "linear", "C": 0.1, "epsilon": 0.0},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 0.1},
    ],
    ids=str,
)
def test_scikit_learn_agrees(params):
    X, y = diabetes()
    ours = SVR(tol=1e-8, **params).fit(X, y)
    theirs = sklearn.svm.SVR(tol=1e-6, **params).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    assert ours.certificate_.ok
    assert abs(ours.n_support_[0] - theirs.n_support_[0]) <= 5


def test_the_tube_and_its_multipliers():
    X, y = diabetes()
    model = SVR(C=2.0, epsilon=0.4, tol=1e-9).fit(X, y)
    error = y - model.predict(X)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    assert (np.abs(error[beta == 0]) <= 0.4 + 1e-8).all()
    free = (beta != 0) & (np.abs(beta) < 2.0)
    np.testing.assert_allclose(error[free], 0.4 * np.sign(beta[free]), atol=1e-8)
    assert (error[beta == 2.0] >= 0.4 - 1e-8).all()
    assert (error[beta == -2.0] <= -0.4 + 1e-8).all()


def test_working_sets_reach_the_solution_of_one_block(monkeypatch):
    from surefit.solvers import smo

    X, y = make_friedman1(900, noise=1.0, random_state=0)
    whole = SVR(C=1.0, gamma=0.5, tol=1e-6, certify="full").fit(X, y)
    monkeypatch.setattr(smo, "_SINGLE", 100)
    monkeypatch.setattr("surefit.svm._sources._SMALL", 100)
    rounds = SVR(C=1.0, gamma=0.5, tol=1e-6, certify="full").fit(X, y)
    np.testing.assert_allclose(rounds.predict(X), whole.predict(X), atol=1e-4)
    assert rounds.certificate_.ok


def test_weights_are_repetitions():
    X, y = diabetes()
    X, y = X[:120], y[:120]
    counts = np.random.default_rng(0).integers(0, 4, size=120)
    weighted = SVR(gamma=0.05, tol=1e-10).fit(X, y, sample_weight=counts)
    repeated = SVR(gamma=0.05, tol=1e-10).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)


def test_containers_agree():
    X, y = diabetes()
    kernel = Gaussian(0.02)
    plain = SVR(kernel=kernel, tol=1e-8).fit(X, y).predict(X)
    sparse = SVR(kernel=kernel, tol=1e-8).fit(sp.csr_array(X), y).predict(sp.csr_array(X))
    matrix = SVR(kernel="precomputed", tol=1e-8).fit(kernel(X), y).predict(kernel(X))
    single = SVR(kernel=kernel, tol=1e-8).fit(X.astype(np.float32), y).predict(X)
    np.testing.assert_allclose(sparse, plain, atol=1e-7)
    np.testing.assert_allclose(matrix, plain, atol=1e-7)
    np.testing.assert_allclose(single, plain, atol=1e-4)


def test_a_tensor_gives_the_same_machine():
    torch = pytest.importorskip("torch")
    X, y = diabetes()
    tensor = torch.as_tensor(X)
    model = SVR(gamma=0.05, tol=1e-8).fit(tensor, torch.as_tensor(y))
    np.testing.assert_allclose(
        model.predict(tensor).numpy(), SVR(gamma=0.05, tol=1e-8).fit(X, y).predict(X), atol=1e-7
    )


def test_constant_targets_need_no_support():
    X, _ = diabetes()
    model = SVR().fit(X, np.full(len(X), 3.0))
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), 3.0, atol=0.1)
    assert model.certificate_.ok
    assert surefit.verify(model, X, np.full(len(X), 3.0)).ok


def test_infinite_c_never_hangs():
    X, y = diabetes()
    model = SVR(C=np.inf, gamma=1.0).fit(X, y)
    assert np.abs(model.predict(X) - y).max() <= 0.1 + 1e-3
    twice = np.vstack([X[:20], X[:20]])
    target = np.concatenate([y[:20], y[:20] + 1.0])  # no function is within 0.1 of both
    with pytest.warns(ConvergenceWarning):
        model = SVR(C=np.inf, gamma=1.0).fit(twice, target)
    assert not model.certificate_.ok


def test_bad_input_is_named():
    X, y = diabetes()
    with pytest.raises(ValueError, match="zero or negative weights"):
        SVR().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="Rescale y"):
        SVR().fit(X, y * 1e200)
    with pytest.raises(ValueError, match="epsilon"):
        SVR(epsilon=-1.0).fit(X, y)
    model = SVR(max_iter=2, C=10.0)
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        model.fit(X, y)
    assert (model.fit_status_, model.n_iter_) == (1, 2)
    assert model.certificate_["duality gap"].status is Status.FAILS
