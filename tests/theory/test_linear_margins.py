"""Margins of linear classifiers, on the worked example of the notes and on data (SVM-1 to SVM-10)."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import surefit
from surefit import Status
from surefit.duality import duality_gap
from surefit.iterate import run
from surefit.losses import Hinge
from surefit.penalties import L2
from surefit.solvers.subgradient import subgradient_descent
from surefit.svm import LinearSVC

OR = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([-1, 1, 1, 1])


def margin(X, y, w, b):
    return float((y * (X @ w + b)).min() / np.linalg.norm(w))


def hard(X, y, **options):
    options = {"loss": "hinge", "C": np.inf, "penalize_intercept": False, "tol": 1e-10, **options}
    return LinearSVC(**options).fit(X, y)


def overlapping(n=80, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.spec("SVM-1")
def test_the_margin_is_that_of_the_hyperplane_not_of_its_scale():
    X, y = OR
    model = hard(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    for c in (0.1, 1.0, 30.0):
        assert margin(X, y, c * w, c * b) == pytest.approx(margin(X, y, w, b), rel=1e-14)
    assert margin(X, y, w, b) > 0 > margin(X, -y, w, b)  # a misclassified point makes it negative
    flipped = y.copy()
    flipped[3] = -1
    assert margin(X, flipped, w, b) < 0


@pytest.mark.spec("SVM-2")
def test_the_hard_margin_of_or():
    model = hard(*OR)
    np.testing.assert_allclose(model.coef_, [[2.0, 2.0]], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, [-1.0], rtol=1e-8)
    assert margin(*OR, model.coef_[0], model.intercept_[0]) == pytest.approx(
        1 / np.sqrt(8), rel=1e-8
    )
    assert 1 / np.linalg.norm(model.coef_) == pytest.approx(0.35355, abs=5e-6)  # M = 1/||w||
    assert "0.353553" in model.certificate_["hard margin"].statement


@pytest.mark.spec("SVM-3")
def test_the_support_vectors_of_or_are_its_first_three_points():
    model = hard(*OR)
    X, y = OR
    touching = np.isclose(y * (X @ model.coef_[0] + model.intercept_[0]), 1.0, atol=1e-8)
    assert touching.tolist() == [True, True, True, False]
    fewer = hard(X[:3], y[:3])
    np.testing.assert_allclose(fewer.coef_, model.coef_, rtol=1e-8)
    np.testing.assert_allclose(fewer.intercept_, model.intercept_, rtol=1e-8)


@pytest.mark.spec("SVM-4")
def test_the_hard_dual_of_or():
    model, (X, y) = hard(*OR), OR
    alpha = y * model.dual_coef_[0]
    np.testing.assert_allclose(alpha, [4.0, 2.0, 2.0, 0.0], atol=1e-8)
    np.testing.assert_allclose((alpha * y) @ X, model.coef_[0], atol=1e-8)
    assert (alpha * y).sum() == pytest.approx(0.0, abs=1e-12)
    dual = alpha.sum() - 0.5 * np.sum(((alpha * y) @ X) ** 2)
    assert dual == pytest.approx(4.0, rel=1e-8)
    assert 0.5 * np.sum(model.coef_**2) == pytest.approx(4.0, rel=1e-8)


@pytest.mark.spec("SVM-5")
def test_the_soft_margin_is_that_of_libsvm_and_becomes_hard():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:, :8]), np.where(y, 1, -1)
    ours = LinearSVC(loss="hinge", C=0.7, penalize_intercept=False, tol=1e-12).fit(X, y)
    theirs = SVC(kernel="linear", C=0.7, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-6)
    large = LinearSVC(loss="hinge", C=100.0, penalize_intercept=False, tol=1e-12).fit(*OR)
    np.testing.assert_allclose(large.coef_, hard(*OR).coef_, rtol=1e-7)  # all alpha are below 100


@pytest.mark.spec("SVM-6")
def test_the_lambda_form_is_the_c_form():
    X, y = overlapping()
    lam = 0.03
    model = LinearSVC(loss="hinge", C=1 / (lam * len(y)), fit_intercept=False, tol=1e-12).fit(X, y)
    value = duality_gap(X, y.astype(float), model.coef_[0], 0.0, Hinge(), L2(lam), fit_intercept=False,
                        witness=-model.dual_coef_[0] * lam * len(y))  # fmt: skip
    assert value.gap <= 1e-11 * value.primal  # optimal for lambda/2 ||w||^2 + 1/N sum of hinges


@pytest.mark.spec("SVM-7")
def test_every_dual_point_is_a_lower_bound_and_the_best_one_is_tight():
    X, y = overlapping()
    n, lam = len(y), 0.05
    model = LinearSVC(loss="hinge", C=1 / (lam * n), fit_intercept=False, tol=1e-12).fit(X, y)
    best = 0.5 * lam * np.sum(model.coef_**2) + np.maximum(0, 1 - y * (X @ model.coef_[0])).mean()
    K = (y[:, None] * X) @ (y[:, None] * X).T

    def dual(a):  # (1/N) 1'a - a'YXX'Ya / (2 lambda N^2), a in [0, 1]^N
        return a.sum() / n - a @ K @ a / (2 * lam * n**2)

    rng = np.random.default_rng(1)
    for _ in range(50):
        assert dual(rng.uniform(size=n)) <= best
    a = y * model.dual_coef_[0] * lam * n
    assert (a >= 0).all()
    assert (a <= 1).all()
    assert dual(a) == pytest.approx(best, rel=1e-11)
    np.testing.assert_allclose((a * y) @ X / (lam * n), model.coef_[0], rtol=1e-7)


@pytest.mark.spec("SVM-8")
def test_the_solution_is_a_saddle_point():
    X, y = overlapping()
    C = 0.3
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-12).fit(X, y)
    w, alpha = model.coef_[0], y * model.dual_coef_[0]

    def lagrangian(w, alpha):
        return 0.5 * w @ w + alpha @ (1 - y * (X @ w))

    value, rng = lagrangian(w, alpha), np.random.default_rng(2)
    for _ in range(50):
        assert lagrangian(w, rng.uniform(0, C, len(y))) <= value + 1e-9
        assert lagrangian(w + 0.1 * rng.normal(size=5), alpha) >= value - 1e-9


@pytest.mark.spec("SVM-9")
def test_the_regimes_of_alpha_and_the_offset():
    X, y = overlapping()
    C = 0.5
    model = LinearSVC(loss="hinge", C=C, penalize_intercept=False, tol=1e-12).fit(X, y)
    alpha, m = y * model.dual_coef_[0], y * (X @ model.coef_[0] + model.intercept_[0])
    free = (alpha > 1e-6) & (alpha < C - 1e-6)
    assert free.any()
    assert (m[alpha <= 1e-6] >= 1 - 1e-6).all()
    assert (m[alpha >= C - 1e-6] <= 1 + 1e-6).all()
    np.testing.assert_allclose(m[free], 1.0, atol=1e-6)
    offsets = (y - X @ model.coef_[0])[free]  # each free vector gives the same b
    np.testing.assert_allclose(offsets, model.intercept_[0], atol=1e-6)
    assert model.certificate_["complementary slackness"].status is Status.HOLDS


@pytest.mark.spec("SVM-10")
def test_the_primal_subgradient_method_reaches_the_dual_value():
    X, y = overlapping(40, 3)
    C = 0.1
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-12).fit(X, y)
    alpha = y * model.dual_coef_[0]
    dual = alpha.sum() - 0.5 * np.sum(((alpha * y) @ X) ** 2)

    def objective(w):
        return 0.5 * w @ w + C * np.maximum(0, 1 - y * (X @ w)).sum()

    def slope(w):  # w + C sum l'(y z) y x (ERR-31)
        return w - C * ((y * (X @ w) < 1) * y) @ X

    best, w = np.inf, np.zeros(3)
    for t in range(20_000):
        best = min(best, objective(w))
        w = w - slope(w) / (t + 1)  # the step of a 1-strongly convex objective
    assert dual <= best <= dual * (1 + 1e-3)  # O(log t / t)
    steps = subgradient_descent(objective, slope, np.zeros(3), lambda t: 1 / (t + 1))
    fit = run(steps, max_iter=3000)
    assert dual <= fit.value
    assert fit.value <= dual * (1 + 1e-2)


@pytest.mark.spec("DAT-5")
def test_a_hard_margin_that_is_not_there_is_proved_impossible():
    X, _ = OR
    with pytest.warns(surefit.CertificateWarning, match="finite C"):
        model = hard(X, [-1, 1, 1, -1])  # XOR
    certificate = model.certificate_
    assert certificate["hard margin"].status is Status.FAILS
    assert certificate["not separable"].status is Status.HOLDS
    np.testing.assert_allclose(model.farkas_, [[0.25, 0.25, 0.25, 0.25]], atol=1e-12)
