"""Margins, duals and kernels of support vector machines, with the numbers of the worked examples."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import surefit
from surefit import Status
from surefit.kernels import Polynomial
from surefit.svm import SVC

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
OR = np.array([-1, 1, 1, 1])
XOR = np.array([-1, 1, 1, -1])


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(y == 1, 1, -1)


def hard(X, y, **params):
    return SVC(kernel="linear", C=np.inf, tol=1e-12, **params).fit(X, y)


def margin(X, y, w, b):
    return float((y * (X @ w + b)).min() / np.linalg.norm(w))


@pytest.mark.spec("SVM-1")
def test_the_margin_is_invariant_and_signed():
    w, b = np.array([2.0, 2.0]), -1.0
    assert margin(CORNERS, OR, w, b) == pytest.approx(margin(CORNERS, OR, 7 * w, 7 * b))
    assert margin(CORNERS, OR, w, b) > 0 > margin(CORNERS, XOR, w, b)


@pytest.mark.spec("SVM-2")
def test_or_has_the_hard_margin_of_the_notes():
    model = hard(CORNERS, OR)
    np.testing.assert_allclose(model.coef_, [[2.0, 2.0]], atol=1e-12)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-12)
    w, b = model.coef_[0], model.intercept_[0]
    assert margin(CORNERS, OR, w, b) == pytest.approx(1 / np.sqrt(8))
    assert 1 / np.linalg.norm(w) == pytest.approx(1 / np.sqrt(8))
    claim = model.certificate_["margin"]
    assert claim.status is Status.HOLDS
    assert "0.353553" in claim.statement


@pytest.mark.spec("SVM-3")
def test_or_is_supported_by_three_points():
    model = hard(CORNERS, OR)
    assert model.support_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.abs(model.decision_function(CORNERS[:3])), 1.0, atol=1e-12)
    without = hard(CORNERS[:3], OR[:3])
    np.testing.assert_allclose(without.coef_, model.coef_, atol=1e-12)
    np.testing.assert_allclose(without.intercept_, model.intercept_, atol=1e-12)


@pytest.mark.spec("SVM-4")
def test_or_dual_equals_primal():
    model = hard(CORNERS, OR)
    alpha = np.zeros(4)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, [4.0, 2.0, 2.0, 0.0], atol=1e-11)
    w = (alpha * OR) @ CORNERS
    np.testing.assert_allclose(w, model.coef_[0], atol=1e-12)
    primal, dual = 0.5 * w @ w, alpha.sum() - 0.5 * w @ w
    assert primal == pytest.approx(4.0, abs=1e-10)
    assert dual == pytest.approx(4.0, abs=1e-10)


@pytest.mark.spec("SVM-5")
def test_slack_is_the_hinge_loss_and_scikit_learn_agrees(cancer):
    X, y = cancer
    for C in (0.01, 1.0):
        model = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
        theirs = sklearn.svm.SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
        yf = y * model.decision_function(X)
        slack = np.maximum(0.0, 1.0 - yf)
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        # slack costs: where it is positive the multiplier is at its bound
        np.testing.assert_allclose(alpha[slack > 1e-6], C, rtol=1e-9)
        primal = 0.5 * np.sum(model.coef_**2) + C * slack.sum()
        dual = alpha.sum() - 0.5 * np.sum(model.coef_**2)
        assert primal == pytest.approx(dual, rel=1e-8)


@pytest.mark.spec("SVM-5")
def test_a_large_c_is_the_hard_margin():
    wide = SVC(kernel="linear", C=1e6, tol=1e-10).fit(CORNERS, OR)
    np.testing.assert_allclose(wide.coef_, hard(CORNERS, OR).coef_, atol=1e-8)


def dual_value(K, y, alpha):
    return alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y)


def primal_value(K, y, beta, b, C):
    f = K @ beta
    return 0.5 * beta @ f + C * np.maximum(0.0, 1.0 - y * (f + b)).sum()


def feasible(rng, y, C):
    """A random alpha with 0 <= alpha <= C and sum(alpha y) = 0."""
    alpha = rng.uniform(0, C, size=len(y)) * (rng.uniform(size=len(y)) < 0.7)
    up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
    alpha[y > 0] *= min(1.0, down / up)
    alpha[y < 0] *= min(1.0, up / down)
    return alpha


@pytest.mark.spec("SVM-7")
def test_every_feasible_alpha_is_below_every_primal_point(cancer):
    X, y = cancer[0][:80], cancer[1][:80]
    K, rng, C = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(-1)), np.random.default_rng(0), 2.0
    model = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    best = primal_value(K, y, beta, model.intercept_[0], C)
    assert dual_value(K, y, np.abs(beta)) == pytest.approx(best, rel=1e-9)
    for _ in range(100):
        alpha = feasible(rng, y, C)
        assert dual_value(K, y, alpha) <= best * (1 + 1e-12)
        point, b = rng.normal(size=len(y)), rng.normal()
        assert dual_value(K, y, alpha) <= primal_value(K, y, point, b, C)


@pytest.mark.spec("SVM-8")
def test_the_solution_is_a_saddle_point(cancer):
    """L(w, b, alpha) = 1/2 ||w||^2 + sum alpha (1 - y f): the hinge is its maximum over alpha in [0, C]."""
    X, y = cancer[0][:60], cancer[1][:60]
    C, rng = 0.5, np.random.default_rng(1)
    for t in (-2.0, 0.0, 3.0):
        assert max(a * t for a in np.linspace(0, C, 11)) == pytest.approx(C * max(t, 0.0))
    model = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    w, b, alpha = model.coef_[0], model.intercept_[0], np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])

    def lagrangian(w, b, alpha):
        return 0.5 * w @ w + alpha @ (1.0 - y * (X @ w + b))

    middle = lagrangian(w, b, alpha)
    for _ in range(100):
        other = rng.uniform(0, C, size=len(y))  # the dual side: sum(alpha y) = 0 comes from b
        assert lagrangian(w, b, other) <= middle + 1e-9
        v, c = w + rng.normal(size=len(w)), b + rng.normal()
        assert lagrangian(v, c, alpha) >= middle - 1e-9


@pytest.mark.spec("SVM-9")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_alpha_regimes_and_one_offset(cancer, kernel):
    X, y = cancer
    model = SVC(kernel=kernel, C=0.1, tol=1e-9).fit(X, y)
    outside, on, inside = model.alpha_regimes(y)
    assert sorted([*outside, *on, *inside]) == list(range(len(y)))
    assert len(on) > 0
    assert len(inside) > 0
    yf = y * model.decision_function(X)
    assert (yf[outside] >= 1 - 1e-8).all()
    assert (np.abs(yf[on] - 1) <= 1e-8).all()
    assert (yf[inside] <= 1 + 1e-8).all()
    offsets = y[on] - (model.decision_function(X[on]) - model.intercept_[0])
    np.testing.assert_allclose(offsets, model.intercept_[0], atol=1e-8)
    assert model.certificate_["complementary slackness"].observed <= 1e-9


def test_alpha_regimes_of_several_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], 20)
    found = SVC(tol=1e-8).fit(X, y).alpha_regimes(y)
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair, regimes in found.items():
        assert sorted(np.concatenate(regimes)) == np.flatnonzero(np.isin(y, pair)).tolist()


@pytest.mark.spec("KER-8")
def test_xor_by_the_quadratic_kernel():
    """(<x, z> + 1)^2 separates XOR, a hyperplane in the plane does not; features and kernel agree."""
    kernel = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    model = SVC(kernel=kernel, C=np.inf, tol=1e-10).fit(CORNERS, XOR)
    np.testing.assert_array_equal(model.predict(CORNERS), XOR)
    np.testing.assert_allclose(XOR * model.decision_function(CORNERS), 1.0, atol=1e-8)
    features = kernel.features(CORNERS)
    explicit = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(features, XOR)
    points = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(
        model.decision_function(points),
        explicit.decision_function(kernel.features(points)),
        atol=1e-7,
    )
    sums = (np.asarray(model.dual_coef_) @ kernel(CORNERS[model.support_], points))[0]
    np.testing.assert_allclose(sums + model.intercept_, model.decision_function(points), atol=1e-12)


@pytest.mark.spec("SVM-2")
def test_xor_has_no_hard_margin_and_the_weights_prove_it():
    with pytest.warns(surefit.CertificateWarning, match="finite C"):
        model = hard(CORNERS, XOR)
    weights = model.farkas_
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights * 4, 1.0, atol=1e-9)
    np.testing.assert_allclose((weights * XOR) @ CORNERS, 0.0, atol=1e-12)
    assert (weights * XOR).sum() == pytest.approx(0.0, abs=1e-12)
    assert model.certificate_["not separable"].status is Status.HOLDS
    assert model.certificate_["hard margin"].status is Status.FAILS


def test_the_offset_and_the_balance_go_together():
    """ERR-35: with an offset the dual has sum(alpha y) = 0; both are kept here."""
    X, y = CORNERS + 5.0, OR  # far from the origin: without an offset this is another problem
    model = hard(X, y)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(model.coef_, [[2.0, 2.0]], atol=1e-9)
    np.testing.assert_allclose(model.intercept_, [-21.0], atol=1e-8)
