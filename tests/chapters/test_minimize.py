"""minimize: the strongest true claim, claims that fail when they should, and errors that help."""

import numpy as np
import pytest
from scipy.special import expit

from surefit import CertificateWarning, Kind, Status, minimize
from surefit.iterate import Stop
from surefit.solvers import (
    Backtracking,
    InverseSqrt,
    InverseTime,
    gap_claim,
    gradient_claim,
    hessian_claim,
    local_minimum_claim,
    numerical_gradient,
    prox_residual,
    smoothness_claim,
    stationary_claim,
    strong_convexity_claim,
    subgradient_claim,
)
from surefit.solvers._methods import METHODS

EPS = np.finfo(np.float64).eps
RNG = np.random.default_rng(0)
N, D = 60, 4
X = RNG.standard_normal((N, D))
Y = X @ np.array([1.0, -0.5, 1.0, -0.5]) + 0.3 * RNG.standard_normal(N)
H = X.T @ X / N
M, L = np.linalg.eigvalsh(H)[[0, -1]]
W_STAR = np.linalg.solve(H, X.T @ Y / N)


def f(w):
    return 0.5 * float(np.mean((X @ w - Y) ** 2))


def grad(w):
    return X.T @ (X @ w - Y) / N


def grad_at(w, rows):
    return X[rows].T @ (X[rows] @ w - Y[rows]) / len(rows)


def ball(w):
    return w / max(1.0, np.linalg.norm(w) / 0.5)


def soft(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - 0.1 * t, 0)


X0 = np.zeros(D)
STOCHASTIC = {"grad_at": grad_at, "n_samples": N, "random_state": 0}
# every method on a problem it is for, with a tolerance it can reach
CASES = {
    "gd": {"grad": grad},
    "sgd": {**STOCHASTIC, "step": InverseTime(0.2, 0.01), "tol": 0.02, "max_iter": 20_000},
    "momentum": {"grad": grad, "step": 1 / L},
    "adam": {"grad": grad, "step": 0.01},
    "sign": {"grad": grad, "step": InverseSqrt(0.1, 1.0), "tol": 1e-2, "max_iter": 5000},
    "newton": {"grad": grad, "hess": lambda w: H},
    "subgradient": {"grad": grad, "step": InverseSqrt(0.3), "radius": 2.0, "tol": 0.5},
    "projected": {"grad": grad, "project": ball},
    "penalty": {"grad": grad, "project": ball},
    "fista": {"grad": grad, "prox": soft, "penalty": lambda w: 0.1 * np.abs(w).sum()},
    "grid": {"bounds": ([-2.0] * D, [2.0] * D), "points": 5},
}


def test_every_method_has_a_case():
    assert set(CASES) == set(METHODS)


@pytest.mark.parametrize("method", CASES)
def test_every_method_ends_with_a_certificate_that_holds(method):
    result = minimize(f, X0, method=method, **CASES[method])
    assert result.certificate.ok
    assert result.converged or method == "grid"
    assert result.x.shape == (D,)
    assert len(result.trace.values) > 0
    assert result.certificate.about == f"minimize ({method})"
    assert str(result.certificate)
    assert type(result.certificate).from_dict(result.certificate.to_dict()) == result.certificate
    if method not in ("fista", "projected", "penalty", "grid", "subgradient", "sgd", "sign"):
        np.testing.assert_allclose(result.x, W_STAR, atol=1e-5)


@pytest.mark.parametrize("method", ["momentum", "adam", "sign", "subgradient", "projected"])
def test_methods_that_take_minibatches(method):
    extra = {"project": ball} if method == "projected" else {}
    runs = [
        minimize(f, X0, method=method, step=InverseSqrt(0.05), tol=0.5, batch_size=10,
                 max_iter=600, **STOCHASTIC, **extra)
        for _ in range(2)
    ]  # fmt: skip
    np.testing.assert_array_equal(runs[0].x, runs[1].x)  # same seed, same bits
    assert runs[0].value < f(X0)
    assert runs[0].certificate["subgradient check" if method == "subgradient" else "gradient check"]
    if method == "projected":
        assert runs[0].certificate["feasible"].status is Status.HOLDS


# ------------------------------------------------------------------ CVX-4: minima


@pytest.mark.spec("CVX-4")
def test_convex_descent_from_many_starts_reaches_one_value():
    rng = np.random.default_rng(1)
    values, xs = [], []
    for _ in range(10):
        result = minimize(f, 5 * rng.standard_normal(D), grad=grad, tol=1e-10, strong_convexity=M)
        assert result.certificate["suboptimality"].status is Status.HOLDS
        values.append(result.value)
        xs.append(result.x)
    assert np.ptp(values) <= 64 * EPS * max(values)
    np.testing.assert_allclose(
        xs, np.tile(W_STAR, (10, 1)), atol=1e-8
    )  # strictly convex: one minimiser


@pytest.mark.spec("CVX-4")
def test_non_convex_descent_from_many_starts_does_not():
    """(x² - 1)² + x/4 has two local minima; each start finds its own, and neither claims to be global."""
    g = lambda x: 4 * x * (x**2 - 1) + 0.25  # noqa: E731
    results = [
        minimize(lambda x: float((x[0] ** 2 - 1) ** 2 + x[0] / 4), [start], grad=g, step=0.05,
                 hess=lambda x: 12 * x**2 - 4)
        for start in (-2.0, 2.0)
    ]  # fmt: skip
    assert abs(results[0].value - results[1].value) > 0.4
    for result in results:
        assert result.certificate["strict local minimum"].status is Status.HOLDS
        assert not any(claim.kind is Kind.OPTIMAL for claim in result.certificate.claims)


@pytest.mark.spec("CVX-4")
def test_exp_is_strictly_convex_and_has_no_minimiser():
    """Erratum 4: the walk goes on for ever; the gradient gets small, but there is no point to find."""
    ends = [
        minimize(lambda x: float(np.exp(x[0])), [0.0], grad=np.exp, tol=tol, convex=True)
        for tol in (1e-2, 1e-4, 1e-8)
    ]
    assert ends[0].x > ends[1].x > ends[2].x
    assert all(end.value > 0 for end in ends)
    for end in ends:
        assert not any(claim.kind is Kind.OPTIMAL for claim in end.certificate.claims)
        # what is claimed is true: f(y) >= f(x) - |g| |y - x| for every y
        residual = end.certificate["stationary"].observed
        y = np.linspace(-50, 5, 200)
        assert (np.exp(y) >= end.value - residual * np.abs(y - end.x[0])).all()
    with pytest.warns(CertificateWarning, match="strong convexity"):
        claimed = minimize(lambda x: float(np.exp(x[0])), [0.0], grad=np.exp, strong_convexity=0.5)
    assert claimed.certificate["strong convexity"].status is Status.FAILS


# ------------------------------------------------------------------ CVX-5: optimality conditions


CUBE = {"grad": lambda x: 3 * x**2, "hess": lambda x: 6 * x}


@pytest.mark.spec("CVX-5")
@pytest.mark.parametrize("method", ["gd", "newton"])
def test_x_cubed_at_0_is_stationary_and_not_certified_as_a_minimum(method):
    result = minimize(lambda x: float(x[0] ** 3), [0.0], method=method, **CUBE)
    assert result.certificate["stationary"].status is Status.HOLDS
    assert result.certificate["strict local minimum"].status is Status.UNDECIDED
    assert not any(claim.kind is Kind.OPTIMAL for claim in result.certificate.claims)


@pytest.mark.spec("CVX-5")
@pytest.mark.parametrize(
    ("method", "tol"),
    [("gd", 1e-4), ("gd", 1e-7), ("newton", 1e-4), ("newton", 1e-8), ("newton", 1e-12)],
)
def test_x_cubed_near_0_is_not_certified_either(method, tol):
    """Right of 0 the Hessian 6x is positive and the gradient as small as one likes."""
    result = minimize(
        lambda x: float(x[0] ** 3), [0.5], method=method, step=1.0 if method == "newton" else 0.3,
        tol=tol, max_iter=20_000, **CUBE,
    )  # fmt: skip
    assert result.x[0] > 0
    assert CUBE["hess"](result.x)[0] > 0
    assert result.certificate["stationary"].status is Status.HOLDS
    assert result.certificate["strict local minimum"].status is Status.UNDECIDED


@pytest.mark.spec("CVX-5")
def test_a_saddle_point_fails_and_a_positive_definite_hessian_holds():
    saddle = {
        "grad": lambda x: np.array([2 * x[0], -2 * x[1]]),
        "hess": lambda x: np.diag([2.0, -2.0]),
    }
    with pytest.warns(CertificateWarning, match="strict local minimum"):
        result = minimize(lambda x: float(x[0] ** 2 - x[1] ** 2), [1.0, 0.0], **saddle)
    assert result.certificate["stationary"].status is Status.HOLDS
    assert result.certificate["strict local minimum"].status is Status.FAILS
    assert result.stopped is not Stop.CERTIFIED
    assert not result.converged
    bowl = minimize(f, X0, grad=grad, hess=lambda w: H)
    assert bowl.certificate["strict local minimum"].status is Status.HOLDS


@pytest.mark.spec("CVX-5")
def test_a_nudged_point_fails():
    """The claims need no solver: recomputed at the solution they hold, next to it they fail."""
    result = minimize(f, X0, grad=grad, strong_convexity=M, tol=1e-10)
    bound = result.certificate["stationary"].bound
    gap_bound = result.certificate["suboptimality"].bound
    nudged = result.x + 1e-3 * np.linalg.norm(result.x) * np.array([0.5, 0.5, -0.5, 0.5])
    for x, status in ((result.x, Status.HOLDS), (nudged, Status.FAILS)):
        g = np.linalg.norm(grad(x))
        assert stationary_claim(g, bound).status is status
        assert gap_claim(g**2 / (2 * M), M, gap_bound).status is status
    projected = minimize(f, X0, grad=grad, project=ball, method="projected", tol=1e-10)
    prox = lambda v, t: ball(v)  # noqa: E731
    assert prox_residual(grad, prox, projected.x) <= projected.certificate["stationary"].bound
    slid = ball(projected.x + 1e-3 * np.array([1.0, 1.0, 0.0, 0.0]))
    assert prox_residual(grad, prox, slid) > projected.certificate["stationary"].bound


@pytest.mark.spec("CVX-5")
def test_local_minimum_claim_when_not_stationary_or_not_finite():
    claim = local_minimum_claim(grad, lambda w: H, X0, stationary=False)
    assert claim.status is Status.UNDECIDED
    # The Hessian is known at x only: around it the function does not exist.
    claim = local_minimum_claim(
        lambda x: np.array([0.1]),
        lambda x: np.array([[1.0]]) if x[0] == 0 else np.array([[np.nan]]),
        np.zeros(1),
    )
    assert claim.status is Status.UNDECIDED


# ------------------------------------------------------------------ CVX-6, CVX-7: the constants


def logistic_grad(w):
    return X.T @ (expit(X @ w) - (Y > 0)) / N


@pytest.mark.spec("CVX-6")
def test_smoothness_of_squared_and_logistic_loss():
    """L = λmax(X'X)/N for half the MSE and λmax/(4N) for logistic loss; both are attained."""
    rng = np.random.default_rng(2)
    points = [rng.standard_normal(D) for _ in range(8)]
    assert smoothness_claim(grad, L, points).status is Status.HOLDS
    assert smoothness_claim(logistic_grad, L / 4, points).status is Status.HOLDS
    top = np.linalg.eigh(H)[1][:, -1]
    along = [X0, top, -top]
    assert smoothness_claim(grad, L, along).observed == pytest.approx(L, rel=1e-12)
    assert smoothness_claim(grad, L, along).status is Status.HOLDS
    assert smoothness_claim(grad, 0.99 * L, along).status is Status.FAILS
    tiny = [X0, 1e-3 * top]  # sigma' is 1/4 at the origin only
    assert smoothness_claim(logistic_grad, 0.99 * L / 4, tiny).status is Status.FAILS
    # x² is smooth, not Lipschitz (erratum 6): the gradient is what is Lipschitz
    assert (
        smoothness_claim(lambda x: 2 * x, 2.0, [np.zeros(1), np.full(1, 1e6)]).status
        is Status.HOLDS
    )


@pytest.mark.spec("CVX-7")
def test_strong_convexity_of_ridge_and_of_the_parabola():
    rng = np.random.default_rng(3)
    points = [rng.standard_normal(D) for _ in range(8)]
    lam = 0.3
    wide = X[:2]  # two rows, four columns: the squared loss alone has m = 0

    def ridge_grad(w):
        return wide.T @ (wide @ w - Y[:2]) / 2 + lam * w

    # along the null space of the data the curvature is lambda, in the lambda/2 form
    null = np.linalg.svd(wide)[2][-1]
    assert strong_convexity_claim(ridge_grad, lam, [X0, null, *points]).status is Status.HOLDS
    assert strong_convexity_claim(ridge_grad, 1.01 * lam, [X0, null]).status is Status.FAILS
    for m in (0.5, 1.0, 7.0):  # f = (m/2)‖x‖²: accepted with m, not with 2m (erratum 7)
        assert strong_convexity_claim(lambda x, m=m: m * x, m, points).status is Status.HOLDS
        assert strong_convexity_claim(lambda x, m=m: m * x, 2 * m, points).status is Status.FAILS
    assert strong_convexity_claim(np.cos, 0.0, points).status is Status.FAILS  # sin is not convex


def test_points_that_are_too_close_decide_nothing():
    here = [np.ones(2), np.ones(2) + 1e-9]
    assert smoothness_claim(lambda x: 2 * x, 1.0, here).status is Status.UNDECIDED
    assert strong_convexity_claim(lambda x: 2 * x, 9.0, here).status is Status.UNDECIDED


@pytest.mark.spec("CVX-7")
def test_minimize_accepts_m_and_rejects_2m():
    for m, status in ((1.5, Status.HOLDS), (3.0, Status.FAILS)):
        arguments = {"grad": lambda x: 1.5 * x, "strong_convexity": m, "step": 0.3}
        if status is Status.FAILS:
            with pytest.warns(CertificateWarning, match="Correct what you gave.*strong convexity"):
                result = minimize(lambda x: 0.75 * float(x @ x), [1.0, 2.0], **arguments)
        else:
            result = minimize(lambda x: 0.75 * float(x @ x), [1.0, 2.0], **arguments)
        assert result.certificate["strong convexity"].status is status
        assert result.converged is (status is Status.HOLDS)


@pytest.mark.spec("CVX-7")
@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_suboptimality_claim_is_a_true_bound(k):
    with pytest.warns(CertificateWarning):
        result = minimize(f, X0, grad=grad, strong_convexity=M, max_iter=k)
    claim = result.certificate["suboptimality"]
    assert claim.kind is Kind.OPTIMAL
    assert 0 < result.value - f(W_STAR) <= claim.observed
    # the composite form as well: F(x) - F* <= what is claimed, for the constraint and for the penalty
    for extra in ({"method": "projected", "project": ball, "step": 0.01},
                  {"method": "fista", **CASES["fista"], "step": 0.01}):  # fmt: skip
        extra = {**extra, "grad": grad}
        with pytest.warns(CertificateWarning):
            early = minimize(f, X0, strong_convexity=M, smoothness=L, max_iter=k, **extra)
        best = minimize(f, X0, tol=1e-11, **{**extra, "step": None})
        assert early.value - best.value <= early.certificate["suboptimality"].observed


# ------------------------------------------------------------------ OPT-14..16: the rate of this run


@pytest.mark.spec("OPT-14")
@pytest.mark.spec("OPT-15")
@pytest.mark.spec("OPT-16")
def test_the_rates_are_claimed_when_the_constants_are_given():
    result = minimize(f, np.ones(D), grad=grad, smoothness=L, strong_convexity=M, optimum=W_STAR)
    for name, source in (("convex rate", "OPT-14"), ("strongly convex rate", "OPT-15"),
                         ("non-convex rate", "OPT-16")):  # fmt: skip
        claim = result.certificate[name]
        assert (claim.kind, claim.status, claim.source) == (Kind.BOUND, Status.HOLDS, source)
    assert result.certificate.claims[0].kind is Kind.OPTIMAL  # strongest first
    trace = result.trace
    assert len(trace.bounds) == len(trace.values) == result.n_iter
    assert "strongly convex" in trace.bound_name
    assert all(v - f(W_STAR) <= b for v, b in zip(trace.values, trace.bounds))


@pytest.mark.spec("OPT-14")
def test_a_step_beyond_the_theorem_leaves_its_rate_undecided():
    with pytest.warns(CertificateWarning, match="stationary"):
        result = minimize(f, X0, grad=grad, step=2.1 / L, smoothness=L, optimum=W_STAR, max_iter=30)
    claim = result.certificate["convex rate"]
    assert claim.status is Status.UNDECIDED
    assert "exceeds 1/L" in claim.statement
    far = minimize(f, X0, grad=grad, step=1.95 / L, smoothness=L, strong_convexity=M, optimum=W_STAR,
                   max_iter=2000)  # fmt: skip
    assert far.certificate["strongly convex rate"].status is Status.UNDECIDED
    assert far.converged  # the gradient says so, not the rate


@pytest.mark.spec("OPT-15")
@pytest.mark.parametrize("start", [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], ids=str)
def test_the_rate_of_the_step_2_over_m_plus_l_holds(start):
    """Theorem 8.7 on its own step: the convex and the non-convex rate ask for 1/L and say so."""
    A = np.diag([1.0, 3.0, 10.0])
    result = minimize(lambda x: float(x @ A @ x) / 2, start, grad=lambda x: A @ x, step=2 / 11,
                      smoothness=10.0, strong_convexity=1.0, optimum=np.zeros(3))  # fmt: skip
    assert result.converged
    assert result.certificate["strongly convex rate"].status is Status.HOLDS
    for name in ("convex rate", "non-convex rate"):
        assert result.certificate[name].status is Status.UNDECIDED
        assert "the step 0.181818 exceeds 1/L = 0.1" in result.certificate[name].statement


@pytest.mark.spec("OPT-16")
def test_a_lower_bound_is_enough_for_the_nonconvex_rate():
    result = minimize(
        lambda x: float(1 - np.cos(x[0])), [2.0], grad=np.sin, smoothness=1.0, lower_bound=0.0
    )
    assert result.certificate["non-convex rate"].status is Status.HOLDS
    assert "convex rate" not in result.certificate
    assert not result.trace.bounds  # that bound is about gradients, not values


def test_a_wrong_optimum_or_lower_bound_fails():
    with pytest.warns(CertificateWarning, match="optimum"):
        result = minimize(f, X0, grad=grad, smoothness=L, optimum=W_STAR + 0.1)
    assert result.certificate["optimum"].status is Status.FAILS
    with pytest.warns(CertificateWarning, match="optimum"):
        minimize(f, X0, grad=grad, smoothness=L, lower_bound=f(W_STAR) + 1e-6)


def test_an_understated_smoothness_fails():
    with pytest.warns(CertificateWarning, match="smoothness"):
        result = minimize(lambda x: 5 * float(x @ x), [1.0], grad=lambda x: 10 * x, smoothness=8.0)
    assert result.certificate["smoothness"].status is Status.FAILS


DIAGONAL = np.diag([1.0, 3.0, 10.0])
BOWL = {"grad": lambda x: DIAGONAL @ x, "optimum": np.zeros(3)}


def bowl(x):
    return float(x @ DIAGONAL @ x) / 2


@pytest.mark.spec("CVX-7")
def test_a_strong_convexity_that_is_too_large_bounds_nothing():
    """m = 3 where it is 1: the bound 1.8e-11 was said to hold, and the truth was 5.3e-11."""
    with pytest.warns(CertificateWarning, match="strong convexity"):
        result = minimize(bowl, np.ones(3), smoothness=10.0, strong_convexity=3.0, **BOWL)
    certificate = result.certificate
    assert certificate["suboptimality"].observed < result.value
    assert certificate["suboptimality"].status is Status.UNDECIDED
    assert "contradicts what this rests on: strong convexity" in (
        certificate["suboptimality"].statement
    )
    assert certificate["strong convexity"].status is Status.FAILS
    assert certificate["convex rate"].status is Status.UNDECIDED
    assert "f being convex" not in certificate["stationary"].statement


@pytest.mark.spec("CVX-6")
def test_a_smoothness_that_the_bouncing_iterates_contradict_fails():
    """L = 5 where it is 10: the iterate jumps across the valley, start and end are the same point."""
    for k in (50, 51):
        with pytest.warns(CertificateWarning, match="smoothness"):
            result = minimize(bowl, [0.0, 0.0, 1.0], smoothness=5.0, max_iter=k, **BOWL)
        assert result.certificate["smoothness"].status is Status.FAILS
        assert result.certificate["smoothness"].observed == pytest.approx(10.0)
        assert result.certificate["convex rate"].status is not Status.HOLDS


@pytest.mark.spec("CVX-7")
def test_a_run_that_never_leaves_a_line_does_not_confirm_the_constants():
    """The start is an eigenvector: only the directions probed at the end show the other curvatures."""
    for start, wrong, claim in (
        ([0.0, 0.0, 1.0], {"strong_convexity": 2.0, "smoothness": 10.0}, "strong convexity"),
        ([1.0, 0.0, 0.0], {"strong_convexity": 1.0, "smoothness": 2.0}, "smoothness"),
    ):
        with pytest.warns(CertificateWarning, match=claim):
            result = minimize(bowl, start, **wrong, **BOWL)
        assert result.certificate[claim].status is Status.FAILS


def test_convexity_that_nobody_stated_is_not_accused():
    """A minimiser is given, and f is not convex: the convex theorems are left undecided, nothing fails."""
    arguments = {"grad": lambda x: 1.0 * np.sin(x), "smoothness": 1.0, "optimum": [0.0]}
    valley = lambda x: float(1 - np.cos(x[0]))  # noqa: E731
    result = minimize(valley, [3.0], **arguments)
    assert result.certificate.ok
    assert "convexity" not in result.certificate
    assert result.certificate["convex rate"].status is not Status.HOLDS
    assert "f being convex" not in result.certificate["stationary"].statement
    with pytest.warns(CertificateWarning, match="convexity"):
        stated = minimize(valley, [3.0], convex=True, **arguments)
    assert stated.certificate["convexity"].status is Status.FAILS


def test_an_optimum_that_is_not_stationary_fails_before_the_run_gets_below_it():
    with pytest.warns(CertificateWarning, match="optimum"):
        result = minimize(bowl, 5 * np.ones(3), smoothness=10.0, strong_convexity=1.0, max_iter=1,
                          grad=BOWL["grad"], optimum=[0.1, 0.0, 0.0])  # fmt: skip
    assert result.value > bowl(np.array([0.1, 0.0, 0.0]))
    assert result.certificate["optimum"].status is Status.FAILS
    assert result.certificate["strongly convex rate"].status is Status.UNDECIDED


def test_a_wrong_gradient_makes_no_bound():
    """Half the gradient: a quarter of the true gap was claimed."""
    with pytest.warns(CertificateWarning, match="gradient check"):
        result = minimize(bowl, np.ones(3), grad=lambda x: 0.5 * DIAGONAL @ x, strong_convexity=0.5)
    assert result.certificate["suboptimality"].observed < result.value
    for name in ("suboptimality", "stationary"):
        assert result.certificate[name].status is Status.UNDECIDED


def test_a_gradient_that_is_wrong_at_the_end_only_is_caught():
    wrong = lambda x: DIAGONAL @ x if np.abs(x).max() > 1e-2 else 0.0 * x  # noqa: E731
    with pytest.warns(CertificateWarning, match="gradient check"):
        result = minimize(bowl, np.ones(3), grad=wrong, step=0.05)
    assert result.certificate["gradient check"].status is Status.FAILS


@pytest.mark.parametrize("step", [None, Backtracking()])
def test_the_rates_of_projected_fista_and_line_search(step):
    best = minimize(f, X0, grad=grad, project=ball, method="projected", tol=1e-12).x
    arguments = {"grad": grad, "project": ball, "smoothness": L, "optimum": best, "step": step}
    projected = minimize(f, X0, method="projected", **arguments)
    assert projected.certificate["convex rate"].status is Status.HOLDS
    fast = minimize(f, X0, method="fista", restart=False, **arguments)
    assert fast.certificate["accelerated rate"].status is Status.HOLDS
    assert "accelerated rate" not in minimize(f, X0, method="fista", **arguments).certificate
    searched = minimize(f, X0, grad=grad, step="backtracking", optimum=W_STAR, strong_convexity=M)
    assert searched.certificate["convex rate"].status is Status.HOLDS


@pytest.mark.spec("OPT-11")
def test_subgradient_claims():
    def mae(w):
        return float(np.mean(np.abs(w - np.array([1.0, -1.0]))))

    def slope(w):
        return np.sign(w - np.array([1.0, -1.0])) / 2

    arguments = {"grad": slope, "method": "subgradient", "step": InverseSqrt(1.0), "max_iter": 500}
    result = minimize(mae, [0.0, 0.0], optimum=[1.0, -1.0], tol=0.1, **arguments)
    assert result.certificate["subgradient rate"].status is Status.HOLDS
    assert result.certificate["suboptimality"].kind is Kind.OPTIMAL
    assert result.converged
    assert result.value <= result.certificate["suboptimality"].observed  # f* = 0
    assert all(v <= b for v, b in zip(result.trace.values, result.trace.bounds))
    with pytest.warns(CertificateWarning, match="suboptimality"):
        tight = minimize(mae, [0.0, 0.0], optimum=[1.0, -1.0], **arguments)
    assert tight.stopped is Stop.MAX_ITER
    blind = minimize(mae, [0.0, 0.0], **arguments)
    assert blind.certificate["suboptimality"].status is Status.UNDECIDED
    with pytest.warns(CertificateWarning, match="subgradient check"):
        wrong = minimize(mae, [0.0, 0.0], **{**arguments, "grad": lambda w: -slope(w)})
    assert wrong.certificate["subgradient check"].status is Status.FAILS


@pytest.mark.spec("OPT-1")
def test_grid_claims():
    arguments = {"method": "grid", "bounds": ([0.0, 0.0], [1.0, 1.0]), "points": 6}
    peak = lambda x: float(np.linalg.norm(x - 0.33))  # noqa: E731  (1-Lipschitz)
    plain = minimize(peak, [0.5, 0.5], **arguments)
    assert plain.n_iter == 36
    assert plain.certificate["grid gap"].status is Status.UNDECIDED
    held = minimize(peak, [0.5, 0.5], lipschitz=1.0, optimum=[0.33, 0.33], tol=0.2, **arguments)
    assert held.certificate["grid gap"].status is Status.HOLDS
    assert held.certificate["grid bound"].status is Status.HOLDS
    assert held.converged
    with pytest.warns(CertificateWarning, match="grid gap"):
        coarse = minimize(peak, [0.5, 0.5], lipschitz=1.0, tol=0.01, **arguments)
    assert coarse.certificate["grid gap"].status is Status.FAILS
    with pytest.warns(CertificateWarning, match="Lipschitz"):
        minimize(peak, [0.5, 0.5], lipschitz=0.3, tol=0.2, **arguments)
    part = minimize(peak, [0.5, 0.5], lipschitz=1.0, max_iter=10, **arguments)
    assert "only 10 of 36" in part.certificate["grid gap"].statement


@pytest.mark.spec("OPT-9")
@pytest.mark.parametrize("gamma", [0.1, 0.01])
def test_sign_descent_with_a_constant_step_is_reported_as_not_converged(gamma):
    with pytest.warns(CertificateWarning, match="use a step that goes to zero"):
        result = minimize(f, X0, grad=grad, method="sign", step=gamma, max_iter=1000)
    assert not result.converged
    assert result.stopped is Stop.MAX_ITER
    assert result.certificate["stationary"].status is Status.FAILS
    assert np.abs(result.x - W_STAR).max() < 10 * gamma


@pytest.mark.spec("OPT-12")
@pytest.mark.spec("OPT-13")
def test_the_penalty_method_certifies_the_projected_solution():
    projected = minimize(f, X0, grad=grad, project=ball, method="projected", tol=1e-10)
    penalised = minimize(f, X0, grad=grad, project=ball, method="penalty", tol=1e-8)
    assert projected.certificate["feasible"].kind is Kind.EXACT
    assert penalised.certificate["feasible"].observed <= 2e-8
    np.testing.assert_allclose(penalised.x, projected.x, atol=1e-7)


# ------------------------------------------------------------------ the gradient is checked


@pytest.mark.parametrize(
    "wrong",
    [
        lambda w: -grad(w),
        lambda w: 1.01 * grad(w),
        lambda w: grad(w) + 1e-4,
        lambda w: X.T @ (X @ w - Y),
    ],
    ids=["sign", "one percent", "offset", "sum for mean"],
)
def test_a_wrong_gradient_is_caught(wrong):
    with pytest.warns(CertificateWarning, match="gradient check"):
        result = minimize(f, X0, grad=wrong, max_iter=50, random_state=0)
    assert result.certificate["gradient check"].status is Status.FAILS
    assert result.certificate["gradient check"].kind is Kind.EMPIRICAL
    assert not result.converged
    assert result.stopped is not Stop.CERTIFIED  # "the certificate holds" would be false


def test_a_wrong_minibatch_gradient_or_hessian_is_caught():
    with pytest.warns(CertificateWarning, match="gradient check"):
        minimize(f, X0, method="sgd", step=0.01, tol=10.0, max_iter=60,
                 **{**STOCHASTIC, "grad_at": lambda w, rows: len(rows) * grad_at(w, rows)})  # fmt: skip
    with pytest.warns(CertificateWarning, match="Hessian check"):
        result = minimize(f, X0, grad=grad, hess=lambda w: 2 * H, method="newton", random_state=0)
    assert result.certificate["Hessian check"].status is Status.FAILS


@pytest.mark.parametrize("seed", range(20))
def test_a_right_gradient_is_never_accused(seed):
    """Functions of very different scales and shapes, random points and directions."""
    rng = np.random.default_rng(seed)
    x = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(5)
    cases = [
        (lambda x: float(np.sum(np.cosh(x / 100))), lambda x: np.sinh(x / 100) / 100, None),
        (lambda x: float(np.sum(x**4)), lambda x: 4 * x**3, lambda x: np.diag(12 * x**2)),
        (lambda x: 1e9 + float(x @ x), lambda x: 2 * x, lambda x: 2 * np.eye(5)),
        (lambda x: 1e-12 * float(np.sin(x).sum()), lambda x: 1e-12 * np.cos(x),
         lambda x: -1e-12 * np.diag(np.sin(x))),
        (lambda x: float(np.logaddexp(0, x).sum()), expit, lambda x: np.diag(expit(x) * expit(-x))),
    ]  # fmt: skip
    for value, slope, curvature in cases:
        assert gradient_claim(value, slope, x, seed).status is Status.HOLDS
        if (
            value(x) < 1e8
        ):  # on top of 1e9 the differences have no digits left, and the bound says so
            wrong = gradient_claim(value, lambda x, s=slope: 2 * s(x) + 1, x, seed)
            assert wrong.status is Status.FAILS
        if curvature is not None:
            assert hessian_claim(slope, curvature, x, seed).status is Status.HOLDS


def test_a_gradient_that_cannot_be_checked_is_undecided():
    claim = gradient_claim(lambda x: np.inf if x[0] > 0 else 0.0, lambda x: x, np.zeros(1))
    assert claim.status is Status.UNDECIDED


@pytest.mark.parametrize("x", [0.0, 0.5, -2.0])
def test_subgradient_claim_at_and_off_the_kink(x):
    point = np.array([x])
    assert subgradient_claim(lambda v: abs(float(v[0])), np.sign, point).status is Status.HOLDS
    steep = subgradient_claim(lambda v: abs(float(v[0])), lambda v: np.sign(v) + 1.5, point)
    assert steep.status is Status.FAILS
    any_slope = subgradient_claim(
        lambda v: abs(float(v[0])), lambda v: np.full(1, 0.7), np.zeros(1)
    )
    assert any_slope.status is Status.HOLDS  # at the kink all of [-1, 1] will do


def test_without_a_gradient_central_differences_are_used():
    result = minimize(f, X0, strong_convexity=M, smoothness=L)
    assert result.converged
    assert "central differences" in result.certificate["stationary"].statement
    assert "gradient check" not in result.certificate
    np.testing.assert_allclose(result.x, W_STAR, atol=1e-5)
    np.testing.assert_allclose(numerical_gradient(f, np.ones(D)), grad(np.ones(D)), rtol=1e-8)


# ------------------------------------------------------------------ what comes back


def test_the_result_is_frozen_and_prints_short():
    result = minimize(f, X0, grad=grad)
    with pytest.raises(AttributeError):
        result.x = X0
    assert "Trace" not in repr(result)
    assert result.value == f(result.x)


def test_the_trace_plots_against_its_bound():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    result = minimize(f, np.ones(D), grad=grad, smoothness=L, optimum=W_STAR)
    ax = result.trace.plot(optimum=f(W_STAR))
    measured, bound = ax.get_lines()
    assert bound.get_label() == "convex bound (OPT-14)"
    assert len(bound.get_ydata()) == len(measured.get_ydata()) == result.n_iter
    plt.close(ax.figure)


def test_the_callers_arrays_are_left_alone():
    start, optimum = np.ones(D), W_STAR.copy()
    minimize(f, start, grad=grad, optimum=optimum, smoothness=L)
    np.testing.assert_array_equal(start, np.ones(D))
    np.testing.assert_array_equal(optimum, W_STAR)


def test_scalars_integers_and_lists_are_taken_as_vectors():
    result = minimize(lambda x: (x[0] - 3) ** 2, 0, grad=lambda x: 2 * (x[0] - 3))
    assert result.x.shape == (1,)
    assert result.x[0] == pytest.approx(3)
    assert minimize(
        lambda x: np.array([x @ x]), [1, 2], grad=lambda x: [2 * x[0], 2 * x[1]]
    ).converged


def test_options_reach_the_solver():
    plain = minimize(f, X0, grad=grad, method="adam", step=0.01, tol=10.0)  # holds at the start
    assert plain.n_iter == 0
    with pytest.warns(CertificateWarning):
        one = minimize(
            f, X0, grad=grad, method="adam", step=0.01, max_iter=1, bias_correction=False
        )
    np.testing.assert_allclose(one.x, -0.01 * 0.1 / np.sqrt(0.001) * np.sign(grad(X0)), rtol=1e-12)


def test_verbose_prints_and_silence_is_silent(capsys):
    with pytest.warns(CertificateWarning):
        minimize(f, X0, grad=grad, max_iter=3, verbose=2)
    assert "minimize (gd): iteration 3 of at most 3" in capsys.readouterr().out
    with pytest.warns(CertificateWarning):
        minimize(f, X0, grad=grad, max_iter=3)
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "bfgs"}, "method must be one of 'gd', 'sgd', .*'grid', got 'bfgs'"),
        ({"step": 0.0}, "step must be a positive finite number, got 0.0"),
        ({"step": -1.0}, "step must be a positive finite number, got -1.0"),
        ({"step": "fast"}, "step must be a number, a schedule or 'backtracking', got 'fast'"),
        ({"tol": -1e-3}, "tol must be finite and at least 0"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"smoothness": 0.0}, "smoothness must be positive"),
        ({"lipschitz": -1.0}, "lipschitz must be positive"),
        ({"strong_convexity": -1.0}, "strong_convexity must be at least 0"),
        ({"strong_convexity": 2.0, "smoothness": 1.0}, "at most smoothness=1.0, got 2.0"),
        ({"optimum": [0.0]}, r"optimum must have the shape of x0, \(4,\), got \(1,\)"),
        ({"optimum": [np.nan] * D}, "optimum must be finite"),
        ({"method": "sgd", "step": 0.1}, "method='sgd' needs grad_at"),
        ({"method": "newton"}, "method='newton' needs hess"),
        ({"method": "projected"}, "method='projected' needs project"),
        ({"method": "grid"}, "method='grid' needs bounds"),
        ({"project": ball}, "method='gd' does not use project; .* 'projected', 'penalty', 'fista'"),
        ({"prox": soft}, "method='gd' does not use prox"),
        ({"grad_at": grad_at, "n_samples": N}, "method='gd' uses the whole gradient, not grad_at"),
        ({"method": "sgd", "step": 0.1, "grad_at": grad_at}, "grad_at needs n_samples"),
        (
            {"method": "sgd", "step": 0.1, **STOCHASTIC, "batch_size": 0},
            "batch_size must be between",
        ),
        ({"method": "momentum"}, "step is required for method='momentum'.*or smoothness=L"),
        ({"method": "sign"}, "step is required for method='sign'"),
        ({"method": "adam", "step": "backtracking"}, "is a line search, which method='adam'"),
        ({"method": "fista", "prox": soft, "project": ball}, "give project or prox, not both"),
        ({"method": "grid", "bounds": ([0], [1])}, "bounds must have one entry a coordinate"),
        ({"grad": lambda w: w[:2]}, r"grad\(x\) must have shape \(4,\), got \(2,\)"),
        ({"hess": lambda w: w}, r"hess\(x\) must have shape \(4, 4\), got \(4,\)"),
    ],
)
def test_bad_arguments_are_named_with_their_value_and_a_remedy(arguments, message):
    with pytest.raises(ValueError, match=message):
        minimize(f, X0, **{"grad": grad, **arguments})


def test_unknown_options_list_the_known_ones():
    with pytest.raises(
        TypeError, match=r"unknown argument 'beta'.*beta1, beta2, eps, bias_correction"
    ):
        minimize(f, X0, grad=grad, method="adam", beta=0.5)
    with pytest.raises(TypeError, match=r"unknown argument 'lr'.*none"):
        minimize(f, X0, grad=grad, lr=0.5)
    with pytest.raises(TypeError, match="step must be a number or a function"):
        minimize(f, X0, grad=grad, step=[0.1])


@pytest.mark.parametrize(
    ("x0", "error", "message"),
    [
        ([np.nan, 0.0], ValueError, "x0 must be finite"),
        ([np.inf, 0.0], ValueError, "x0 must be finite"),
        ([], ValueError, "x0 must be a non-empty vector"),
        (np.zeros((2, 2)), ValueError, r"x0 must be a non-empty vector, got shape \(2, 2\)"),
        ("here", TypeError, "x0 must be an array of numbers, got 'here'"),
        (None, (TypeError, ValueError), "x0 must be"),
    ],
)
def test_bad_starts_are_named(x0, error, message):
    with pytest.raises(error, match=message):
        minimize(lambda x: float(x @ x), x0)


def test_bad_functions_are_named():
    with pytest.raises(
        ValueError, match=r"f\(x\) must be one real number, got ndarray of shape \(3,\)"
    ):
        minimize(lambda x: x, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"f\(x\) must be one real number"):
        minimize(lambda x: "low", [1.0])
    with pytest.raises(ValueError, match=r"f\(x0\) must be finite, got nan"):
        minimize(lambda x: np.nan, [1.0])
    with pytest.raises(ValueError, match=r"f\(x0\) must be finite, got inf.*inside the domain"):
        minimize(lambda x: np.inf, [1.0])
