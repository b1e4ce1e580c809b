"""Logistic regression and least squares on many rows: the sampled solver, and where peers stop early."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as Theirs

from surefit import verify
from surefit.design import as_design
from surefit.iterate import run
from surefit.linear_model import LinearRegression, LogisticRegression
from surefit.losses import Logistic, Softmax
from surefit.solvers.direct import least_squares
from surefit.solvers.glm import loss_and_slopes
from surefit.solvers.glm_newton import glm_newton, kronecker_system, newton_system
from surefit.solvers.glm_sampled import glm_sampled, sampling_pays


def _problem(n, p, classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ np.diag(np.geomspace(0.1, 10.0, p)) + np.arange(p)
    W = rng.standard_normal((p, classes)) / np.geomspace(0.1, 10.0, p)[:, None]
    y = ((X - np.arange(p)) @ W + rng.gumbel(size=(n, classes))).argmax(axis=1)
    if classes == 2:
        return X, 2.0 * y - 1.0, Logistic(), np.zeros(p), np.zeros(())
    return X, y.astype(float), Softmax(), np.zeros((p, classes)), np.zeros(classes)


@pytest.mark.spec("LOG-4")
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_sampled_solver_finds_newtons_optimum(classes, fit_intercept, sparse):
    X, y, loss, w, b = _problem(30_000, 6, classes)
    assert sampling_pays(*X.shape)
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    design = as_design(sp.csr_array(X) if sparse else X)
    null = float(s.sum())
    exact = run(
        glm_newton(design, y, s, loss, 1.0, w, b, fit_intercept=fit_intercept),
        tol=1e-13 * null, max_iter=100,
    )  # fmt: skip
    sampled = run(
        glm_sampled(design, y, s, loss, 1.0, w, b, fit_intercept=fit_intercept),
        tol=1e-11 * null, max_iter=100,
    )  # fmt: skip
    assert sampled.n_iter <= 25
    assert sampled.value == pytest.approx(exact.value, rel=1e-12)
    np.testing.assert_allclose(sampled.x[0], exact.x[0], rtol=1e-5, atol=1e-6)


def test_a_feature_that_the_sample_does_not_see_is_fitted_too():
    """One row in 500 has the feature: an evenly spaced sample may hold none of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 4))
    X[:, 3] = 0.0
    X[7::500, 3] = 1.0
    y = (X[:, 0] + 3.0 * X[:, 3] + rng.logistic(size=len(X)) > 0).astype(int)
    model = LogisticRegression(tol=1e-10).fit(X, y)
    theirs = Theirs(tol=1e-10, max_iter=10_000, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-5)
    assert model.certificate_.ok


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loss_and_slopes_in_one_reading_are_those_of_the_loss(classes, dtype):
    X, y, loss, w, b = _problem(20_000, 5, classes)
    X = X.astype(dtype)
    rng = np.random.default_rng(2)
    w, b = w + 0.1 * rng.standard_normal(w.shape), b + rng.standard_normal(b.shape)
    s = rng.uniform(0.0, 1.0, len(y))
    z = X.astype(np.float64) @ w + b
    theta = (s * loss.grad(z, y).T).T
    for given in (X, np.asfortranarray(X), sp.csr_array(X.astype(np.float64))):
        value, slope, total = loss_and_slopes(as_design(given), y, s, loss, w, b)
        assert value == pytest.approx(float(s @ loss.pointwise(z, y)), rel=1e-12)
        np.testing.assert_allclose(slope, X.astype(np.float64).T @ theta, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(total, theta.sum(axis=0), rtol=1e-9, atol=1e-9)


def test_an_lbfgs_fit_that_stops_early_is_seen_and_ours_goes_on():
    """scikit-learn issue 18074: badly scaled columns, and lbfgs ends far from the optimum at any tol."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 8)) * np.geomspace(1e-3, 1e4, 8)
    y = (X / np.geomspace(1e-3, 1e4, 8) @ rng.standard_normal(8) + rng.logistic(size=500)) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Theirs(C=1e4, tol=1e-12, max_iter=100).fit(X, y)
    ours = LogisticRegression(C=1e4, tol=1e-9).fit(X, y)
    assert ours.certificate_.ok

    def objective(model):
        z = X @ model.coef_[0] + model.intercept_[0]
        return (
            1e4 * np.logaddexp(0.0, -(2 * y - 1) * z).sum() + 0.5 * model.coef_[0] @ model.coef_[0]
        )

    assert objective(theirs) > objective(ours) * (1 + 1e-4)
    copy = LogisticRegression(C=1e4, tol=1e-9).fit(X, y)
    copy.coef_, copy.intercept_ = theirs.coef_, theirs.intercept_
    assert verify(copy, X, y)["duality gap"].status.name != "HOLDS"


def test_a_long_ill_conditioned_problem_goes_through_the_triangle(monkeypatch):
    """Blocks of a QR factorisation, instead of a singular value decomposition of all rows."""
    import surefit.solvers.direct as direct

    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5))
    X[:, 4] = X[:, 0] + 1e-7 * rng.standard_normal(4000)
    y = X @ np.arange(1.0, 6.0)
    plain = LinearRegression().fit(X, y)
    monkeypatch.setattr(direct, "DENSE_ENTRIES", 1000)
    tall = least_squares(as_design(X), y[:, None], np.ones(4000), fit_intercept=True)
    np.testing.assert_allclose(tall.coef[:, 0], plain.coef_, rtol=1e-6)
    X[:, 4] = X[:, 0]
    low = LinearRegression().fit(X, X[:, :1] @ [2.0])
    assert low.rank_ == 4
    np.testing.assert_allclose(low.coef_, [1, 0, 0, 0, 1], atol=1e-12)
    assert low.certificate_["minimum norm"].status.name == "HOLDS"


# ---------------------------------------------------------------------------- rare classes, and the kernel


@pytest.mark.spec("LOG-7")
def test_rare_classes_take_a_few_steps_too():
    """The rarest of ten classes has one row in 2000: a small sample knows little of its curvature."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40_000, 40)) + 0.5 * rng.standard_normal((40_000, 1))
    scores = X @ rng.standard_normal((40, 10)) / 4.0 + np.linspace(0.0, 7.0, 10)
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert np.bincount(y).min() <= 20
    assert sampling_pays(len(y), 41 * 10)
    model = LogisticRegression().fit(X, y)
    assert model.certificate_.ok
    assert model.n_iter_[0] <= 30
    exact = LogisticRegression(tol=1e-10).fit(X, y)
    assert exact.certificate_.ok
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.05)


@pytest.mark.spec("LOG-3")
def test_the_kronecker_product_is_the_hessian_where_all_rows_bend_alike():
    """At w = 0 the probabilities of all rows agree; with one column nothing is approximated at all."""
    X, y, loss, _, _ = _problem(500, 4, 3)
    design, s = as_design(X), np.random.default_rng(0).uniform(0.5, 2.0, 500)
    mean = design.mean(s)
    h = loss.hess(np.zeros((500, 3)) + np.array([0.3, -0.2, 0.0]), y)
    exact = newton_system(design, s, h, loss, 1.0, mean, True)
    for one, other in zip(
        exact, kronecker_system(design, s, h, loss, 1.0, mean, True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(exact[0]).max())
    binary = Logistic()
    h = binary.hess(X @ np.full(4, 0.1), np.ones(500))
    exact = newton_system(design, s, h, binary, 1.0, mean, True)
    other = kronecker_system(design, s, h, binary, 1.0, mean, True)
    np.testing.assert_allclose(exact[0], other[0], rtol=1e-10, atol=1e-10 * np.abs(exact[0]).max())


@pytest.mark.spec("LOS-7")
@pytest.mark.parametrize("weights", ["equal", "runs", "random", "zeros"])
@pytest.mark.parametrize("size", [0.0, 1.0, 100.0])
def test_a_product_of_many_factors_is_the_sum_of_the_losses(weights, size):
    """The kernel takes one logarithm for hundreds of rows; large margins leave losses down to 1e-300."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9_000, 7))
    s = {
        "equal": np.full(9_000, 0.3), "runs": np.repeat([1.0, 2.0, 0.5], 3_000),
        "random": rng.uniform(0.0, 2.0, 9_000), "zeros": (np.arange(9_000) % 2).astype(float),
    }[weights]  # fmt: skip
    w = size * rng.standard_normal(7)
    for y in (rng.choice([-1.0, 1.0], 9_000), np.where(X @ w >= 0.0, 1.0, -1.0)):  # also separated
        value, slope, total = loss_and_slopes(as_design(X), y, s, Logistic(), w, np.zeros(()))
        losses, theta = Logistic().pointwise_and_grad(X @ w, y)
        assert value == pytest.approx(float(s @ losses), rel=1e-12)
        scale = float(s @ np.abs(theta))
        np.testing.assert_allclose(slope, X.T @ (s * theta), rtol=0, atol=1e-12 * scale + 1e-300)
        assert float(total) == pytest.approx(float(s @ theta), abs=1e-12 * scale + 1e-300)
