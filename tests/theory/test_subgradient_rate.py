"""OPT-11: with step c/√k the best iterate obeys (R² + G² Σγ²) / (2 Σγ) on MAE, lasso and hinge."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import Lasso

from surefit import Status
from surefit.iterate import run
from surefit.solvers import (
    InverseSqrt,
    minibatch,
    rate_claim,
    stochastic_subgradient,
    subgradient_descent,
    subgradient_rate,
)

EPS = np.finfo(np.float64).eps
RNG = np.random.default_rng(0)
N, D = 30, 3
X = RNG.standard_normal((N, D))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.3 * RNG.standard_normal(N)
LABELS = np.sign(X @ np.array([1.0, -1.0, 0.2]) + 1.5 * RNG.standard_normal(N))  # not separable
ROW_NORM = np.linalg.norm(X, axis=1).mean()  # bounds the norm of a mean of sign-weighted rows


def mae():
    # min (1/N) sum s_i with -s <= Xw - y <= s, as a linear program
    eye = np.eye(N)
    out = linprog(
        np.r_[np.zeros(D), np.full(N, 1 / N)],
        A_ub=np.block([[X, -eye], [-X, -eye]]),
        b_ub=np.r_[Y, -Y],
        bounds=[(None, None)] * (D + N),
    )
    return (
        lambda w: float(np.mean(np.abs(X @ w - Y))),
        lambda w: X.T @ np.sign(X @ w - Y) / N,
        out.x[:D],
        ROW_NORM,
    )


def hinge():
    # min (1/N) sum s_i with s >= 1 - y x'w, s >= 0
    out = linprog(
        np.r_[np.zeros(D), np.full(N, 1 / N)],
        A_ub=np.c_[-LABELS[:, None] * X, -np.eye(N)],
        b_ub=np.full(N, -1.0),
        bounds=[(None, None)] * D + [(0, None)] * N,
    )
    return (
        lambda w: float(np.mean(np.maximum(0, 1 - LABELS * (X @ w)))),
        lambda w: -X.T @ (LABELS * (LABELS * (X @ w) < 1)) / N,
        out.x[:D],
        ROW_NORM,
    )


def lasso(alpha=0.1):
    def smooth(w):
        return 0.5 * float(np.mean((X @ w - Y) ** 2))

    def slope(w):
        return X.T @ (X @ w - Y) / N

    # Half squared error is not Lipschitz everywhere: no G, the measured norms take its place.
    return (
        lambda w: smooth(w) + alpha * np.abs(w).sum(),
        lambda w: slope(w) + alpha * np.sign(w),
        Lasso(alpha=alpha, fit_intercept=False, tol=1e-14, max_iter=10**5).fit(X, Y).coef_,
        None,
    )


PROBLEMS = pytest.mark.parametrize("problem", [mae, hinge, lasso])
X0 = np.zeros(D)


@pytest.mark.spec("OPT-11")
@PROBLEMS
@pytest.mark.parametrize("c", [0.1, 1.0])
def test_best_iterate_obeys_the_bound_at_every_step(problem, c):
    f, subgrad, w_star, G = problem()
    R, f_star, schedule = np.linalg.norm(X0 - w_star), f(w_star), InverseSqrt(c)
    steps = subgradient_descent(f, subgrad, X0, schedule, radius=R, lipschitz=G)
    trace = run(steps, max_iter=1500).trace
    gamma = c / np.sqrt(np.arange(1, 1501))
    np.testing.assert_allclose(trace.steps, gamma, rtol=4 * EPS)

    if G is None:  # from the definition: the subgradients of the same walk
        x, norms = X0.copy(), []
        for step in gamma:
            norms.append(np.linalg.norm(subgrad(x)))
            x = x - step * subgrad(x)
        G = max(norms)
    bound = (R**2 + G**2 * np.cumsum(gamma**2)) / (2 * np.cumsum(gamma))
    gaps = np.array(trace.values) - f_star
    assert (gaps <= bound).all()
    assert f_star > 0.01
    assert (gaps >= -16 * EPS * f_star).all()
    np.testing.assert_allclose(subgradient_rate(gamma, distance=R, lipschitz=G), bound, rtol=1e-12)
    claim = rate_claim("subgradient", trace, optimum=f_star, distance=R, lipschitz=G)
    assert claim.status is Status.HOLDS
    assert claim.source == "OPT-11"


@pytest.mark.spec("OPT-11")
@PROBLEMS
def test_the_estimate_is_a_true_bound_and_the_best_value_never_rises(problem):
    f, subgrad, w_star, _ = problem()
    R, f_star = np.linalg.norm(X0 - w_star), f(w_star)
    last = np.inf
    for it, _ in zip(subgradient_descent(f, subgrad, X0, InverseSqrt(0.5), radius=R), range(500)):
        assert it.value == pytest.approx(f(it.x), rel=8 * EPS)
        assert it.value - f_star <= it.estimate
        assert it.value <= last
        last = it.value


@pytest.mark.spec("OPT-11")
def test_the_claim_fails_for_an_understated_radius_and_for_a_step_that_never_moves():
    f, subgrad, w_star, G = mae()
    f_star = f(w_star)
    trace = run(subgradient_descent(f, subgrad, X0, InverseSqrt(1e-3)), max_iter=200).trace
    R = np.linalg.norm(X0 - w_star)
    args = {"optimum": f_star, "lipschitz": G}
    assert rate_claim("subgradient", trace, distance=R, **args).status is Status.HOLDS
    assert rate_claim("subgradient", trace, distance=R / 100, **args).status is Status.FAILS
    # A wrong subgradient (the ascent direction): the best iterate is the start, for ever.
    wrong = run(subgradient_descent(f, lambda w: -subgrad(w), X0, InverseSqrt(0.5)), max_iter=2000)
    assert rate_claim("subgradient", wrong.trace, distance=R, **args).status is Status.FAILS


@pytest.mark.spec("OPT-11")
@pytest.mark.parametrize("batch_size", [1, 8])
def test_the_averaged_stochastic_iterate_obeys_the_bound_in_expectation(batch_size):
    f, _, w_star, _ = mae()
    R, k = np.linalg.norm(X0 - w_star), 1000
    G = np.linalg.norm(X, axis=1).max()  # of a single term

    def grad_at(w, rows):
        return X[rows].T @ np.sign(X[rows] @ w - Y[rows]) / len(rows)

    gaps = []
    for seed in range(10):
        subgrad = minibatch(grad_at, N, batch_size, seed)
        steps = stochastic_subgradient(subgrad, X0, InverseSqrt(0.3), radius=R, lipschitz=G)
        *_, last = (it for it, _ in zip(steps, range(k)))
        gaps.append(f(last.x) - f(w_star))
    bound = subgradient_rate(0.3 / np.sqrt(np.arange(1, k + 1)), distance=R, lipschitz=G)[-1]
    assert last.estimate == pytest.approx(bound, rel=1e-12)
    # The mean of ten runs plus three standard errors of it.
    assert np.mean(gaps) + 3 * np.std(gaps) / np.sqrt(len(gaps)) <= bound


@pytest.mark.spec("OPT-11")
def test_the_average_is_weighted_by_the_steps():
    points, weights = [0.0], []
    x = 0.0
    schedule = InverseSqrt(1.0)
    steps = stochastic_subgradient(lambda w: np.ones(1), [0.0], schedule)
    for t, (it, _) in enumerate(zip(steps, range(20))):
        weights.append(schedule(t))
        assert it.x[0] == pytest.approx(np.average(points, weights=weights), rel=64 * EPS)
        assert np.isnan(it.estimate)  # no radius, no bound
        x -= schedule(t)
        points.append(x)


@pytest.mark.parametrize("name", ["radius", "lipschitz"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_constants_are_named(name, value):
    for steps in (
        subgradient_descent(lambda w: 0.0, lambda w: w, [1.0], 0.1, **{name: value}),
        stochastic_subgradient(lambda w: w, [1.0], 0.1, **{name: value}),
    ):
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            next(steps)
