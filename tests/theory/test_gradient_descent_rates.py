"""OPT-14, OPT-15, OPT-16: the three rates of gradient descent, at every step, and how they break.

The problems are small and their minima known from elsewhere: least squares from the normal equations,
logistic regression from scipy, quadratics from their eigenvalues.
"""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.special import expit

from surefit import Kind, Status
from surefit.iterate import run
from surefit.solvers import (
    Backtracking,
    accelerated_rate,
    contraction,
    convex_rate,
    fista,
    gradient_descent,
    nonconvex_rate,
    projected_gradient,
    rate_bounds,
    rate_claim,
    strongly_convex_rate,
)

EPS = np.finfo(np.float64).eps


def least_squares(n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1, 0.2, d)
    y = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    L = np.linalg.eigvalsh(X.T @ X / n)[-1]
    x_star = np.linalg.lstsq(X, y)[0]
    return lambda w: 0.5 * np.mean((X @ w - y) ** 2), lambda w: X.T @ (X @ w - y) / n, L, x_star


def logistic(n=50, d=4, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (rng.random(n) < expit(X @ rng.standard_normal(d))).astype(float)
    L = np.linalg.eigvalsh(X.T @ X)[-1] / (4 * n)

    def f(w):
        z = X @ w
        return float(np.mean(np.logaddexp(0, z) - y * z))

    def grad(w):
        return X.T @ (expit(X @ w) - y) / n

    x_star = scipy_minimize(f, np.zeros(d), jac=grad, method="BFGS", options={"gtol": 1e-12}).x
    for _ in range(5):  # Newton to the last bit: BFGS stops at the precision of f
        s = expit(X @ x_star)
        x_star = x_star - np.linalg.solve((X.T * (s * (1 - s))) @ X / n, grad(x_star))
    return f, grad, L, x_star


CONVEX = pytest.mark.parametrize("problem", [least_squares, logistic])


@pytest.mark.spec("OPT-14")
@pytest.mark.spec("OPT-2")
@CONVEX
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_convex_rate_holds_at_every_step(problem, share):
    f, grad, L, x_star = problem()
    x0 = np.full_like(x_star, 2.0)
    t, R, f_star = share / L, np.linalg.norm(x0 - x_star), f(x_star)
    trace = run(gradient_descent(f, grad, x0, t), max_iter=300).trace
    bounds = R**2 / (2 * t * np.arange(1, 301))  # the theorem, written out again
    gaps = np.array(trace.values) - f_star
    assert (gaps <= bounds + 16 * EPS * max(map(abs, trace.values))).all()
    np.testing.assert_allclose(
        convex_rate(trace.iterations, step=t, distance=R), bounds, rtol=8 * EPS
    )

    claim = rate_claim("convex", trace, optimum=f_star, distance=R, smoothness=L)
    assert claim.status is Status.HOLDS
    assert claim.kind is Kind.BOUND
    assert claim.source == "OPT-14"
    assert claim.observed == pytest.approx(np.max(gaps / bounds), rel=1e-9)  # rounding subtracted


@pytest.mark.spec("OPT-14")
@CONVEX
def test_convex_rate_is_undecided_with_too_large_a_step(problem):
    """The inequality is broken, and the theorem never promised it: the statement says both."""
    f, grad, L, x_star = problem()
    x0 = np.full_like(x_star, 2.0)
    # Least squares diverges beyond 2/L. Logistic loss is flatter than its L almost everywhere.
    t = (2.1 if problem is least_squares else 40.0) / L
    trace = run(gradient_descent(f, grad, x0, t), max_iter=200).trace
    R = np.linalg.norm(x0 - x_star)
    claim = rate_claim("convex", trace, optimum=f(x_star), distance=R, smoothness=L)
    assert claim.status is Status.UNDECIDED
    ratio = np.max((np.array(trace.values) - f(x_star)) / rate_bounds("convex", trace, distance=R))
    assert ratio > 1
    assert f"at most {ratio:.4g} times" in claim.statement
    assert "exceeds 1/L" in claim.statement


@pytest.mark.spec("OPT-14")
def test_convex_rate_fails_with_an_understated_distance():
    f, grad, L, x_star = least_squares()
    trace = run(gradient_descent(f, grad, np.full(6, 2.0), 1 / L), max_iter=100).trace
    args = {"optimum": f(x_star), "smoothness": L}
    R = np.linalg.norm(np.full(6, 2.0) - x_star)
    assert rate_claim("convex", trace, distance=R, **args).status is Status.HOLDS
    assert rate_claim("convex", trace, distance=R / 100, **args).status is Status.FAILS


@pytest.mark.spec("OPT-14")
@CONVEX
def test_convex_rate_of_a_line_search_uses_the_steps_it_took(problem):
    f, grad, _, x_star = problem()
    x0 = np.full_like(x_star, 2.0)
    trace = run(gradient_descent(f, grad, x0, Backtracking()), max_iter=60).trace
    R, f_star = np.linalg.norm(x0 - x_star), f(x_star)
    assert len(set(trace.steps)) > 1
    assert rate_claim("convex", trace, optimum=f_star, distance=R).status is Status.HOLDS
    bounds = rate_bounds("convex", trace, distance=R)
    np.testing.assert_allclose(bounds, R**2 / (2 * np.cumsum(trace.steps)), rtol=32 * EPS)


def test_projected_gradient_has_the_convex_rate_too():
    f, grad, L, x_star = least_squares()

    def ball(w):
        return w / max(1.0, np.linalg.norm(w) / 0.5)

    x0 = ball(np.full(6, 2.0))
    *_, last = (it for it, _ in zip(projected_gradient(f, grad, x0, ball, 1 / L), range(5000)))
    trace = run(projected_gradient(f, grad, x0, ball, 1 / L), max_iter=200).trace
    R = np.linalg.norm(x0 - last.x)
    assert np.linalg.norm(x_star) > 0.5  # the constraint is active
    assert rate_claim("convex", trace, optimum=last.value, distance=R).status is Status.HOLDS


# ------------------------------------------------------------------ strongly convex


@pytest.mark.spec("OPT-15")
def test_contraction_for_eigenvalues_1_3_10_is_0_66942():
    assert round(contraction(2 / 11, smoothness=10, strong_convexity=1), 5) == 0.66942
    assert contraction(2 / 11, smoothness=10, strong_convexity=1) == pytest.approx(
        (9 / 11) ** 2, rel=8 * EPS
    )
    # and 2/(m+L) is the best step: any smaller one contracts less
    smaller = [contraction(s * 2 / 11, smoothness=10, strong_convexity=1) for s in (0.9, 0.5, 0.1)]
    assert min(smaller) > 0.66942


@pytest.mark.spec("OPT-15")
@pytest.mark.parametrize("share", [1.0, 0.55, 0.1])
def test_strongly_convex_rate_holds_for_all_k(share):
    A = np.diag([1.0, 3.0, 10.0])
    f, grad = lambda x: x @ A @ x / 2, lambda x: A @ x
    x0, t = np.array([1.0, -2.0, 1.5]), share * 2 / 11
    R = np.linalg.norm(x0)
    trace = run(gradient_descent(f, grad, x0, t), max_iter=500).trace
    gamma = 1 - 2 * t * 10 / 11
    k = np.arange(1, 501)
    bounds = gamma**k * (10 / 2) * R**2
    assert (np.array(trace.values) <= bounds * (1 + 64 * EPS)).all()  # f* = 0: no cancellation
    constants = {"smoothness": 10.0, "strong_convexity": 1.0, "distance": R}
    np.testing.assert_allclose(strongly_convex_rate(k, step=t, **constants), bounds, rtol=1e-12)
    claim = rate_claim("strongly convex", trace, **constants)
    assert claim.status is Status.HOLDS
    assert claim.source == "OPT-15"


@pytest.mark.spec("OPT-15")
@pytest.mark.parametrize(
    ("wrong", "status"),
    [({"step": 2.02 / 10}, Status.UNDECIDED), ({"m": 3.0}, Status.FAILS)],
    ids=["step", "m"],
)
def test_strongly_convex_rate_does_not_hold_when_a_premise_is_wrong(wrong, status):
    A = np.diag([1.0, 3.0, 10.0])
    f, grad = lambda x: x @ A @ x / 2, lambda x: A @ x
    x0 = np.array([1.0, -2.0, 1.5])
    trace = run(gradient_descent(f, grad, x0, wrong.get("step", 1 / 10)), max_iter=200).trace
    claim = rate_claim(
        "strongly convex",
        trace,
        smoothness=10.0,
        strong_convexity=wrong.get("m", 1.0),
        distance=np.linalg.norm(x0),
    )
    assert claim.status is status


@pytest.mark.spec("OPT-15")
@pytest.mark.parametrize("k", [69, 2000])
def test_the_strongly_convex_rate_is_attained_and_holds(k):
    """Along the stiffest eigenvector each step contracts by gamma exactly: only rounding is left."""
    A = np.diag([1.0, 3.0, 10.0])
    steps = gradient_descent(lambda x: x @ A @ x / 2, lambda x: A @ x, [0.0, 0.0, 1.0], 2 / 11)
    trace = run(steps, max_iter=k).trace
    constants = {"smoothness": 10.0, "strong_convexity": 1.0}
    claim = rate_claim("strongly convex", trace, distance=1.0, **constants)
    assert claim.status is Status.HOLDS
    assert claim.observed == pytest.approx(1.0, rel=1e-9)
    closer = rate_claim("strongly convex", trace, distance=1.0 - 1e-9, **constants)
    assert closer.status is Status.FAILS  # the floor forgives 4 units a step, not 1e-9


@pytest.mark.spec("OPT-15")
def test_the_strongly_convex_rate_is_about_a_constant_step():
    A = np.diag([1.0, 10.0])
    steps = gradient_descent(
        lambda x: x @ A @ x / 2, lambda x: A @ x, [1.0, 1.0], lambda t: 0.1 / (1 + t)
    )
    trace = run(steps, max_iter=5).trace
    with pytest.raises(ValueError, match="constant step"):
        rate_claim("strongly convex", trace, smoothness=10, strong_convexity=1, distance=2)


# ------------------------------------------------------------------ non-convex


def tukey_regression():
    """Bisquare loss, c = 4.685: smooth, bounded, not convex. rho'' <= 1, so L = lambda_max(X'X)/N."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    y = X @ np.array([2.0, -1.0, 0.5]) + 0.2 * rng.standard_normal(40)
    y[:6] += 30.0
    c = 4.685

    def f(w):
        r = np.clip(np.abs(X @ w - y) / c, 0, 1)
        return float(np.mean(c**2 / 6 * (1 - (1 - r**2) ** 3)))

    def grad(w):
        r = X @ w - y
        return X.T @ np.where(np.abs(r) < c, r * (1 - (r / c) ** 2) ** 2, 0.0) / len(y)

    return f, grad, np.linalg.eigvalsh(X.T @ X / len(y))[-1], 3


def mlp():
    """One tanh unit and a linear output, five samples; L bounds the Hessian where the run goes."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(5), rng.standard_normal(5)

    def forward(w):
        return w[2] * np.tanh(w[0] * x + w[1]) + w[3]

    def f(w):
        return 0.5 * float(np.mean((forward(w) - y) ** 2))

    def grad(w):
        h = np.tanh(w[0] * x + w[1])
        e = (w[2] * h + w[3] - y) / len(x)
        back = e * w[2] * (1 - h**2)
        return np.array([back @ x, back.sum(), e @ h, e.sum()])

    return f, grad, 20.0, 4


@pytest.mark.spec("OPT-16")
@pytest.mark.parametrize("problem", [tukey_regression, mlp])
def test_nonconvex_rate_holds_with_f_star_set_to_zero(problem):
    f, grad, L, d = problem()
    x0, t = np.full(d, 0.3), 1 / L
    fit = run(gradient_descent(f, grad, x0, t), max_iter=400)
    norms = [np.linalg.norm(grad(x0))]
    norms += [it.estimate for it, _ in zip(gradient_descent(f, grad, x0, t), range(400))]
    best = np.minimum.accumulate(norms)[1:]
    k = np.arange(1, 401)
    bounds = np.sqrt(2 * f(x0) / (t * (k + 1)))
    assert (best <= bounds).all()
    np.testing.assert_allclose(nonconvex_rate(k, step=t, gap=f(x0)), bounds, rtol=8 * EPS)
    claim = rate_claim("non-convex", fit.trace, gradient_norms=norms, start_gap=f(x0), smoothness=L)
    assert claim.status is Status.HOLDS
    assert claim.source == "OPT-16"
    # A bound that starts from less than f(x0) - f* is broken on the way.
    low = rate_claim("non-convex", fit.trace, gradient_norms=norms, start_gap=f(x0) * 1e-4)
    assert low.status is Status.FAILS


@pytest.mark.spec("OPT-16")
def test_nonconvex_rate_is_undecided_with_too_large_a_step():
    # sin-like valleys: with t = 3/L the iterates hop between two slopes for ever
    f, grad = lambda x: float(1 - np.cos(x[0])), lambda x: np.sin(x)
    x0 = np.array([np.pi / 2])
    t = np.pi  # L = 1; x jumps from pi/2 to -pi/2 and back
    norms = [1.0] + [it.estimate for it, _ in zip(gradient_descent(f, grad, x0, t), range(50))]
    trace = run(gradient_descent(f, grad, x0, t), max_iter=50).trace
    claim = rate_claim("non-convex", trace, gradient_norms=norms, start_gap=1.0, smoothness=1.0)
    assert claim.status is Status.UNDECIDED
    assert "at most 8.95 times" in claim.statement
    assert "exceeds 1/L" in claim.statement


@pytest.mark.spec("OPT-16")
def test_the_nonconvex_rate_is_about_the_smallest_gradient_so_far():
    trace = run(gradient_descent(lambda x: x @ x, lambda x: 2 * x, [1.0], 0.1), max_iter=3).trace
    args = {"start_gap": 0.05, "step": 0.1}  # bounds 0.71, 0.58, 0.5
    rising = rate_claim("non-convex", trace, gradient_norms=[1.0, 0.4, 0.9, 0.9], **args)
    assert rising.status is Status.HOLDS
    assert rising.observed == pytest.approx(0.4 / 0.5)
    late = rate_claim("non-convex", trace, gradient_norms=[1.0, 0.8, 0.4, 0.4], **args)
    assert late.status is Status.FAILS


@pytest.mark.spec("OPT-16")
def test_nonconvex_claim_wants_the_gradient_norms_from_x0_on():
    trace = run(gradient_descent(lambda x: x @ x, lambda x: 2 * x, [1.0], 0.1), max_iter=3).trace
    with pytest.raises(ValueError, match="needs gradient_norms"):
        rate_claim("non-convex", trace, start_gap=1.0)
    with pytest.raises(ValueError, match="starts at x0"):
        rate_claim("non-convex", trace, start_gap=1.0, gradient_norms=[1.0, 1.0])
    with pytest.raises(ValueError, match="needs start_gap"):
        rate_claim("non-convex", trace, gradient_norms=[2.0, 1.0, 1.0, 1.0])


# ------------------------------------------------------------------ the claim itself


def test_accelerated_rate_of_fista_without_restart():
    f, grad, L, x_star = least_squares(d=6)
    x0 = np.full(6, 2.0)
    R, f_star = np.linalg.norm(x0 - x_star), f(x_star)
    for step in (1 / L, Backtracking()):
        trace = run(fista(f, grad, x0, step=step, restart=False), max_iter=300).trace
        assert all(a >= b for a, b in zip(trace.steps, trace.steps[1:]))  # never growing
        claim = rate_claim("accelerated", trace, optimum=f_star, distance=R)
        assert claim.status is Status.HOLDS
    k = np.array([1.0, 3.0])
    np.testing.assert_allclose(
        accelerated_rate(k, step=0.5, distance=2.0), [4.0, 1.0], rtol=4 * EPS
    )
    too_small = rate_claim("accelerated", trace, optimum=f_star, distance=R / 100)
    assert too_small.status is Status.FAILS


def test_a_nan_in_the_trace_fails_and_an_empty_trace_is_undecided():
    trace = run(gradient_descent(lambda x: x @ x, lambda x: 2 * x, [1.0], 0.1), max_iter=3).trace
    trace.values[1] = np.nan
    assert rate_claim("convex", trace, distance=1.0).status is Status.FAILS
    empty = type(trace)()
    assert rate_claim("convex", empty, distance=1.0, step=0.1).status is Status.UNDECIDED


def test_unknown_theorems_and_missing_constants_are_named():
    trace = run(gradient_descent(lambda x: x @ x, lambda x: 2 * x, [1.0], 0.1), max_iter=3).trace
    with pytest.raises(ValueError, match="theorem must be one of 'convex'"):
        rate_claim("conjugate", trace)
    with pytest.raises(ValueError, match="needs distance"):
        rate_claim("convex", trace)
    with pytest.raises(ValueError, match="needs lipschitz"):
        rate_claim("subgradient", trace, distance=1.0)


# ------------------------------------------------------------------ the descent inequality (CVX-6)


@pytest.mark.spec("CVX-6")
@CONVEX
def test_descent_inequality_holds_at_every_step(problem):
    """L = lambda_max(X'X)/N for half the mean squared error, a quarter of it for logistic loss."""
    f, grad, L, x_star = problem()
    x, t = np.full_like(x_star, 3.0), 1 / L
    for iterate, _ in zip(gradient_descent(f, grad, x, t), range(200)):
        slack = 16 * EPS * abs(f(x))
        assert iterate.value <= f(x) - t / 2 * np.linalg.norm(grad(x)) ** 2 + slack
        x = iterate.x


@pytest.mark.spec("CVX-6")
@CONVEX
def test_a_line_search_tests_what_it_does_not_assume(problem):
    f, grad, L, x_star = problem()
    x = np.full_like(x_star, 3.0)
    steps = gradient_descent(f, grad, x, Backtracking(initial=16.0, shrink=0.8))
    for iterate, _ in zip(steps, range(100)):
        t, slack = iterate.step, 80 * EPS * abs(f(x))  # 64 eps is where it turns to gradients
        assert iterate.value <= f(x) - t / 2 * np.linalg.norm(grad(x)) ** 2 + slack
        if np.linalg.norm(grad(x)) > 1e-12:  # below, the gradient itself is rounding
            assert t >= 0.8 / L  # any step up to 1/L passes
        x = iterate.x


@pytest.mark.spec("CVX-6")
def test_descent_inequality_fails_beyond_1_over_l_in_the_steepest_direction():
    f, grad = lambda x: 5 * x @ x, lambda x: 10 * x  # L = 10
    x = np.array([1.0])
    for t, descends in ((0.1, True), (0.11, False)):
        assert (f(x - t * grad(x)) <= f(x) - t / 2 * grad(x) @ grad(x) + 16 * EPS) is np.bool_(
            descends
        )
