"""Kernels as the notes teach them, with their numbers: KER-1 to KER-8."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge as Theirs
from sklearn.metrics import pairwise

from surefit import Status
from surefit.kernel_ridge import KernelRidge
from surefit.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    Product,
    Reweighted,
    Scaled,
    Sigmoid,
    Sum,
    psd_claim,
)
from surefit.linear_model import HuberRegressor, LogisticRegression, Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
Z = RNG.normal(size=(7, 3))
XOR, SIGNS = (
    np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
    np.array([-1.0, 1.0, 1.0, -1.0]),
)


@pytest.mark.spec("KER-1")
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_quadratic_classifier_is_linear_in_its_features(d):
    """<x, Qx> + sqrt(2) <x, p> + b = <phi(x), (vec Q, p, b)>, with d^2 + d + 1 features."""
    rng = np.random.default_rng(d)
    rows, Q, p, b = rng.normal(size=(9, d)), rng.normal(size=(d, d)), rng.normal(size=d), 0.7
    phi = Polynomial(2).features(rows)
    assert phi.shape == (9, d**2 + d + 1)
    left = np.einsum("ni,ij,nj->n", rows, Q, rows) + math.sqrt(2) * rows @ p + b
    np.testing.assert_allclose(phi @ np.concatenate([Q.ravel(), p, [b]]), left, rtol=1e-12)
    np.testing.assert_allclose(phi @ phi.T, (rows @ rows.T + 1) ** 2, rtol=1e-12, atol=1e-13)


@pytest.mark.spec("KER-2")
def test_two_feature_maps_of_one_kernel():
    """(x1^2, sqrt(2) x1 x2, x2^2) and (x1^2, x1 x2, x1 x2, x2^2) both give <x, z>^2."""
    k, rows = Polynomial(2, coef0=0.0), X[:, :2]
    whole, merged = k.features(rows), k.features(rows, distinct=True)
    x1, x2 = rows.T
    np.testing.assert_allclose(whole, np.column_stack([x1**2, x1 * x2, x1 * x2, x2**2]))
    np.testing.assert_allclose(merged, np.column_stack([x1**2, math.sqrt(2) * x1 * x2, x2**2]))
    for phi in (whole, merged):
        np.testing.assert_allclose(phi @ phi.T, (rows @ rows.T) ** 2, rtol=1e-12)
        np.testing.assert_allclose(phi @ phi.T, k(rows), rtol=1e-12)


@pytest.mark.spec("KER-3")
def test_a_matrix_with_the_eigenvalue_minus_one_is_rejected():
    claim = psd_claim(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert claim.status is Status.FAILS
    assert claim.observed == pytest.approx(1.0, abs=1e-14)
    assert "eigenvalue of the kernel matrix is -1" in claim.statement
    assert "(0.707, -0.707)" in claim.statement  # and the direction that shows it
    v = np.array([1.0, -1.0]) / math.sqrt(2)
    assert v @ [[1.0, 2.0], [2.0, 1.0]] @ v == pytest.approx(-1.0)
    assert psd_claim(np.array([[1.0, 0.5], [0.4, 1.0]])).status is Status.FAILS  # not symmetric
    assert (
        psd_claim(np.array([[1.0, 1.0], [1.0, 1.0]])).status is Status.HOLDS
    )  # singular is allowed


@pytest.mark.spec("KER-3")
@pytest.mark.parametrize("exact", [True, False])
def test_the_rounding_floor_of_the_eigenvalue_test(exact, monkeypatch):
    """Rank 3: n - 3 eigenvalues are 0, computed as +-1e-13; -1e-6 is not rounding, in either regime."""
    if not exact:  # as for large matrices: a factor shows that no eigenvalue is negative
        monkeypatch.setattr("surefit.kernels.mercer._EXACT", 100)
    rows = np.random.default_rng(0).normal(size=(200, 3))
    K = Linear()(rows)
    assert psd_claim(K).status is Status.HOLDS
    null = np.linalg.qr(np.column_stack([rows, rows[:, 0] ** 2]))[0][:, 3]
    bad = psd_claim(K - 1e-6 * np.outer(null, null))
    assert bad.status is Status.FAILS
    assert bad.observed == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.spec("KER-4")
def test_the_library_matches_scikit_learn():
    sigma = 2.5
    cases = [
        (Linear(), pairwise.linear_kernel(X, Z)),
        (Polynomial(2, coef0=0.0), (X @ Z.T) ** 2),
        (Polynomial(4), pairwise.polynomial_kernel(X, Z, degree=4, gamma=1, coef0=1)),
        (Gaussian(1 / sigma), pairwise.rbf_kernel(X, Z, gamma=1 / sigma)),
        (Laplace(0.3, norm="l1"), pairwise.laplacian_kernel(X, Z, gamma=0.3)),
        (Sigmoid(0.2, 0.1), pairwise.sigmoid_kernel(X, Z, gamma=0.2, coef0=0.1)),
        (Gaussian(), pairwise.rbf_kernel(X, Z)),
        (Gaussian("scale"), pairwise.rbf_kernel(X, Z, gamma=1 / (3 * Z.var()))),
    ]
    for kernel, theirs in cases:
        np.testing.assert_allclose(kernel(X, Z), theirs, rtol=1e-12, atol=1e-14)
    distances = np.sqrt(((X[:, None] - Z) ** 2).sum(-1))
    np.testing.assert_allclose(Laplace(1 / sigma)(X, Z), np.exp(-distances / sigma), rtol=1e-13)
    # the notes' Laplace kernel has the l2 norm, scikit-learn's the l1 norm
    assert np.abs(Laplace(0.3)(X, Z) - pairwise.laplacian_kernel(X, Z, gamma=0.3)).max() > 0.1


@pytest.mark.spec("KER-5")
def test_the_closure_rules():
    def f(rows):
        return np.sin(3.0 * rows[:, 0])  # of either sign

    one, two = Gaussian(0.5), Polynomial(3)
    K1, K2 = one(X), two(X)
    combined = {
        "sum": (2.0 * one + 0.5 * two, 2.0 * K1 + 0.5 * K2),
        "product": (one * two, K1 * K2),
        "third rule": (Reweighted(two, f), np.outer(f(X), f(X)) * K2),
        "all": ((one + two) ** 2 * 0.1, 0.1 * (K1 + K2) ** 2),
    }
    for name, (kernel, matrix) in combined.items():
        np.testing.assert_allclose(kernel(X), matrix, rtol=1e-12, err_msg=name)
        assert psd_claim(kernel(X)).status is Status.HOLDS, name
        assert kernel.positive is True
        np.testing.assert_allclose(kernel.diag(X), matrix.diagonal(), rtol=1e-12)
    difference = psd_claim(K1 - 0.5 * K2)  # a < 0 fails
    assert difference.status is Status.FAILS
    for scale in (-1.0, -1e-30, math.nan, math.inf):
        with pytest.raises(ValueError, match="KER-5"):
            scale * one
        with pytest.raises(ValueError, match="KER-5"):
            Scaled(scale, one)(X)
    with pytest.raises(TypeError):
        one + 1.0
    with pytest.raises(ValueError, match="power"):
        one**0.5


@pytest.mark.spec("KER-5")
def test_feature_maps_of_combinations():
    kernel = (Linear() + 0.25 * Polynomial(2, gamma=0.5, coef0=2.0)) * Linear()
    weighted = Reweighted(kernel, lambda rows: 1.0 + rows[:, 1] ** 2)
    for k in (kernel, weighted):
        np.testing.assert_allclose(k.features(X) @ k.features(Z).T, k(X, Z), rtol=1e-11, atol=1e-12)
    assert kernel.features(X).shape[1] == (3 + (9 + 3 + 1)) * 3
    with pytest.raises(ValueError, match="no finite feature map"):
        Gaussian(1.0).features(X)
    with pytest.raises(ValueError, match="no finite feature map"):
        (Linear() + Laplace(1.0)).features(X)
    with pytest.raises(ValueError, match="whole degree"):
        Polynomial(2.5).features(X)
    with pytest.raises(ValueError, match="too many"):
        Polynomial(12).features(np.ones((5, 40)))


def test_a_kernel_that_is_none():
    """tanh(<x, z> - 1): two rows suffice for a negative eigenvalue. Polynomials with coef0 < 0 too."""
    assert Sigmoid(1.0, -1.0).positive is None
    claim = psd_claim(Sigmoid(1.0, -1.0)(np.array([[0.1], [1.5]])))
    assert claim.status is Status.FAILS
    assert Polynomial(2, coef0=-1.0).positive is None
    assert psd_claim(Polynomial(3, coef0=-1.0)(np.array([[0.1], [0.2]]))).status is Status.FAILS
    assert Sum(Gaussian(1.0), Sigmoid(1.0)).positive is None
    assert Product(Gaussian(1.0), Laplace(1.0)).positive is True


@pytest.mark.spec("KER-6")
@pytest.mark.parametrize(
    "model",
    [
        Ridge(alpha=0.5, fit_intercept=False),
        LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12),
        HuberRegressor(alpha=0.5, fit_intercept=False, tol=1e-12, max_iter=1000),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_representer_theorem(model):
    """Any loss with an l2 penalty: a trained w has no component orthogonal to the rows."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(10, 25))
    y = rng.normal(size=10) if not isinstance(model, LogisticRegression) else np.arange(10) % 2
    w = np.ravel(model.fit(rows, y).coef_)
    span = np.linalg.qr(rows.T)[0]
    assert np.linalg.norm(w) > 0.01
    assert np.linalg.norm(w - span @ (span.T @ w)) <= 1e-13 * np.linalg.norm(w)


@pytest.mark.spec("KER-7")
def test_primal_and_dual_ridge():
    """(X'X + N lam I)^-1 X'y = X'(XX' + N lam I)^-1 y; equals scikit-learn with alpha = N lam."""
    rng = np.random.default_rng(2)
    rows, lam = rng.normal(size=(20, 4)), 0.3
    y = rows @ rng.normal(size=4) + rng.normal(size=20)
    n = len(y)
    w = np.linalg.solve(rows.T @ rows + n * lam * np.eye(4), rows.T @ y)
    model = KernelRidge(alpha=n * lam, certify="full").fit(rows, y)
    np.testing.assert_allclose(rows.T @ model.dual_coef_, w, atol=1e-10)
    theirs = Theirs(alpha=n * lam).fit(rows, y)
    np.testing.assert_allclose(model.dual_coef_, theirs.dual_coef_, atol=1e-10)
    claim = model.certificate_["duality gap"]
    assert claim.status is Status.HOLDS
    assert claim.observed <= 1e-10 * (y @ y)
    # the two objectives of the certificate, from their definitions
    primal = np.sum((y - rows @ w) ** 2) + n * lam * w @ w
    u, K = n * lam * model.dual_coef_, rows @ rows.T
    dual = 2 * u @ y - u @ u - u @ K @ u / (n * lam)
    assert primal == pytest.approx(dual, rel=1e-10)
    assert f"{primal:.6g}" in claim.statement
    # alpha of the notes minimises 1/2 a'(K/N + lam I)a - y'a/N
    a = model.dual_coef_
    np.testing.assert_allclose((K / n + lam * np.eye(n)) @ a, y / n, atol=1e-12)
    # every u gives a lower bound
    for _ in range(50):
        other = u + rng.normal(size=n) * 10.0 ** rng.uniform(-3, 1)
        assert 2 * other @ y - other @ other - other @ K @ other / (n * lam) <= dual + 1e-12


@pytest.mark.spec("KER-8")
def test_kernel_predictions_are_explicit_feature_predictions():
    rng = np.random.default_rng(3)
    rows, fresh = rng.normal(size=(30, 3)), rng.normal(size=(8, 3))
    y = rows[:, 0] * rows[:, 1] + rng.normal(size=30)
    kernel = Polynomial(3, gamma=0.5, coef0=1.0)
    by_kernel = KernelRidge(alpha=0.7, kernel=kernel).fit(rows, y)
    by_features = Ridge(alpha=0.7, fit_intercept=False).fit(kernel.features(rows), y)
    np.testing.assert_allclose(
        by_kernel.predict(fresh), by_features.predict(kernel.features(fresh)), rtol=1e-9
    )
    named = KernelRidge(alpha=0.7, kernel="poly", degree=3, gamma=0.5, coef0=1.0).fit(rows, y)
    np.testing.assert_array_equal(named.predict(fresh), by_kernel.predict(fresh))
    by_hand = sum(a * kernel(fresh, row[None])[:, 0] for a, row in zip(by_kernel.dual_coef_, rows))
    np.testing.assert_allclose(by_kernel.predict(fresh), by_hand, rtol=1e-10)


@pytest.mark.spec("KER-8")
def test_xor_is_solved_by_the_quadratic_kernel():
    """No line separates XOR; f(x) = sum_n a_n (<x, x_n> + 1)^2 does."""
    model = KernelRidge(alpha=1e-6, kernel=Polynomial(2)).fit(XOR, SIGNS)
    np.testing.assert_array_equal(np.sign(model.predict(XOR)), SIGNS)
    np.testing.assert_allclose(model.predict(XOR), SIGNS, atol=1e-5)
    for w1, w2, b in itertools.product(np.linspace(-2, 2, 21), repeat=3):
        assert (np.sign(XOR @ [w1, w2] + b) != SIGNS).any()
    linear = KernelRidge(alpha=1e-6, kernel=Linear() + 1.0 * Polynomial(0)).fit(XOR, SIGNS)
    assert np.abs(linear.predict(XOR)).max() < 1e-5  # the best line says 0 everywhere


def test_the_third_closure_rule_of_the_errata():
    """ERR-33: "e^{2 gamma} K" cannot be read; f(x) k(x, z) f(z) turns exp(2 gamma <x, z>) into a Gaussian."""
    gamma = 0.4

    def f(rows):
        return np.exp(-gamma * (rows**2).sum(axis=1))

    np.testing.assert_allclose(
        np.outer(f(X), f(X)) * np.exp(2 * gamma * X @ X.T), Gaussian(gamma)(X), rtol=1e-12
    )
    series = 1.0 * Polynomial(0)  # exp as a sum of products of kernels, hence a kernel
    for k in range(1, 12):
        series = series + (2 * gamma) ** k / math.factorial(k) * Polynomial(k, coef0=0.0)
    near = 0.3 * X
    np.testing.assert_allclose(Reweighted(series, f)(near), Gaussian(gamma)(near), rtol=1e-9)


def test_sparse_rows_give_the_same_values():
    rows = X * (np.abs(X) > 0.7)
    for kernel in (Linear(), Polynomial(2), Gaussian(0.3), Laplace(0.3), Laplace(0.3, "l1")):
        np.testing.assert_allclose(kernel(sp.csr_array(rows), Z), kernel(rows, Z), rtol=1e-12)
        np.testing.assert_allclose(kernel(sp.csc_matrix(rows)), kernel(rows), rtol=1e-12)
