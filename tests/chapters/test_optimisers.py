"""OPT-1 to OPT-13: each optimiser against its definition, and against a second implementation."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from surefit import Kind, Status
from surefit.iterate import run
from surefit.solvers import (
    Backtracking,
    InverseSqrt,
    InverseTime,
    adam,
    cell_radius,
    fista,
    gradient_descent,
    grid_claim,
    grid_search,
    grid_size,
    lipschitz_claim,
    minibatch,
    momentum,
    newton,
    projected_gradient,
    projected_sgd,
    quadratic_penalty,
    sgd,
    sign_descent,
    squared_distance,
)

EPS = np.finfo(np.float64).eps


def points(steps, k):
    return [it.x for it in islice(steps, k)]


def last(steps, k):
    *_, final = islice(steps, k)
    return final


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    y = X @ np.array([1.0, -2.0, 0.0, 0.5]) + 0.2 * rng.standard_normal(50)
    return X, y


def half_mse(X, y):
    n = len(y)

    def grad_at(w, rows):
        return X[rows].T @ (X[rows] @ w - y[rows]) / len(rows)

    return (
        lambda w: 0.5 * float(np.mean((X @ w - y) ** 2)),
        lambda w: X.T @ (X @ w - y) / n,
        grad_at,
    )


# ------------------------------------------------------------------ OPT-1: grid


@pytest.mark.spec("OPT-1")
@pytest.mark.parametrize(("dim", "n"), [(1, 7), (2, 5), (3, 4)])
def test_grid_counts_its_evaluations(dim, n):
    seen = []

    def f(x):
        seen.append(tuple(x))
        return float(x @ x)

    fit = run(grid_search(f, np.full(dim, -1.0), np.full(dim, 2.0), n), max_iter=10**6)
    assert (
        len(seen) == len(set(seen)) == fit.n_iter == n**dim == grid_size([-1] * dim, [2] * dim, n)
    )
    assert fit.value == min(float(np.dot(x, x)) for x in seen)
    assert fit.stop.name == "FINISHED"


@pytest.mark.spec("OPT-1")
@pytest.mark.parametrize("n", [3, 6, 11])
@pytest.mark.parametrize("where", [(0.1234, 0.777), (0.5, 0.5), (0.0, 1.0)])
def test_grid_gap_is_at_most_lipschitz_times_cell_radius(n, where):
    f = lambda x: float(np.linalg.norm(x - np.array(where)))  # noqa: E731  (1-Lipschitz, f* = 0)
    value = last(grid_search(f, [0, 0], [1, 1], n), n * n).value
    radius = cell_radius([0, 0], [1, 1], n)
    assert radius == pytest.approx(np.sqrt(2) / (2 * (n - 1)), rel=8 * EPS)
    assert value <= radius * (1 + 8 * EPS)
    assert grid_claim(value, radius, 1.0, optimum=0.0).status is Status.HOLDS


@pytest.mark.spec("OPT-1")
def test_grid_claims_can_fail():
    f = lambda x: 100 * abs(float(x[0]) - 0.05)  # noqa: E731  (100-Lipschitz; worst case: between points)
    value, radius = last(grid_search(f, [0.0], [1.0], 11), 11).value, cell_radius([0.0], [1.0], 11)
    assert grid_claim(value, radius, 100.0, optimum=0.0).status is Status.HOLDS
    assert (
        grid_claim(value, radius, 10.0, optimum=0.0).status is Status.FAILS
    )  # understated constant
    gap = grid_claim(value, radius, 100.0, tol=1.0)
    assert (gap.kind, gap.status, gap.observed) == (Kind.OPTIMAL, Status.FAILS, pytest.approx(5.0))
    assert grid_claim(value, radius, 100.0, tol=5.0 + 1e-9).status is Status.HOLDS
    line = [np.array([v]) for v in (0.0, 0.3, 0.9)]
    assert lipschitz_claim(f, 100.0, line).status is Status.HOLDS
    assert lipschitz_claim(f, 50.0, line).status is Status.FAILS


def test_grid_with_different_axes_and_bad_boxes():
    assert grid_size([0, 0], [1, 1], [3, 5]) == 15
    with pytest.raises(ValueError, match="points must be an integer of at least 2"):
        grid_size([0, 0], [1, 1], [3])
    with pytest.raises(ValueError, match="points must be an integer of at least 2"):
        grid_size([0, 0], [1, 1], 1)
    for lower, upper in (([0, 2], [1, 1]), ([0], [1, 1]), ([0, np.nan], [1, 1])):
        with pytest.raises(ValueError, match="lower and upper must be finite corners"):
            next(grid_search(lambda x: 0.0, lower, upper, 3))


# ------------------------------------------------------------------ OPT-2, OPT-3, OPT-4: gradient descent


@pytest.mark.spec("OPT-2")
@pytest.mark.parametrize("t", [0.05, 0.4])
def test_one_step_minimises_the_proximal_model(regression, t):
    f, grad, _ = half_mse(*regression)
    x = np.array([0.3, -0.2, 1.0, 0.0])
    step = next(gradient_descent(f, grad, x, t)).x

    def model(y):
        return f(x) + grad(x) @ (y - x) + (y - x) @ (y - x) / (2 * t)

    found = scipy_minimize(model, x, method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(step, found, atol=1e-6)  # half the digits: BFGS sees values only
    nudges = np.random.default_rng(0).standard_normal((50, 4)) * 1e-3
    assert all(model(step) <= model(step + nudge) for nudge in nudges)


@pytest.mark.spec("OPT-3")
@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0, 1.5, 1.9])
def test_one_parameter_error_is_multiplied_by_1_minus_gamma(gamma):
    y = np.array([1.0, 2.0, 4.0, 5.0])
    f = lambda w: float(np.mean((y - w[0]) ** 2) / 2)  # noqa: E731
    grad = lambda w: np.array([w[0] - y.mean()])  # noqa: E731
    errors = np.array([10.0] + [x[0] for x in points(gradient_descent(f, grad, [10.0], gamma), 30)])
    errors -= y.mean()
    np.testing.assert_allclose(errors, 7.0 * (1 - gamma) ** np.arange(31), atol=30 * EPS * 10)
    update = (1 - gamma) * 10.0 + gamma * y.mean()
    assert errors[1] + y.mean() == pytest.approx(update, rel=4 * EPS)
    assert abs(errors[-1]) < abs(errors[0])  # 0 < gamma < 2 converges


@pytest.mark.spec("OPT-3")
def test_one_parameter_limits_gamma_1_is_exact_2_oscillates_more_diverges():
    f, grad = lambda w: float((w[0] - 3) ** 2 / 2), lambda w: w - 3.0
    assert next(gradient_descent(f, grad, [10.0], 1.0)).x[0] == 3.0
    assert [x[0] for x in points(gradient_descent(f, grad, [10.0], 2.0), 4)] == [
        -4.0,
        10.0,
        -4.0,
        10.0,
    ]
    assert abs(last(gradient_descent(f, grad, [10.0], 2.1), 50).x[0]) > 100


@pytest.mark.spec("OPT-4")
def test_least_squares_limit_is_the_normal_equations(regression):
    X, y = regression
    f, grad, _ = half_mse(X, y)
    e = y - X @ np.ones(4)
    np.testing.assert_allclose(grad(np.ones(4)), -X.T @ e / len(y), rtol=1e-14)
    normal = np.linalg.solve(X.T @ X, X.T @ y)
    L = np.linalg.eigvalsh(X.T @ X / len(y))[-1]
    for step in (1 / L, Backtracking()):
        w = run(gradient_descent(f, grad, np.zeros(4), step), max_iter=400).x
        np.testing.assert_allclose(w, normal, atol=64 * EPS * np.linalg.cond(X) ** 2)


class CountingMatrix:
    """Counts the multiplications of its products."""

    def __init__(self, array, counter):
        self.array, self.counter = array, counter

    @property
    def T(self):
        return CountingMatrix(self.array.T, self.counter)

    def __matmul__(self, vector):
        self.counter[0] += self.array.size
        return self.array @ vector


@pytest.mark.spec("OPT-4")
def test_a_step_costs_a_multiple_of_n_times_d():
    costs = {}
    for n, d in [(20, 3), (40, 3), (20, 6), (80, 12)]:
        rng, counter = np.random.default_rng(0), [0]
        X, y = CountingMatrix(rng.standard_normal((n, d)), counter), rng.standard_normal(n)
        grad = lambda w, X=X, y=y, n=n: X.T @ (X @ w - y) / n  # noqa: E731
        steps = gradient_descent(lambda w: np.nan, grad, np.zeros(d), 0.1)
        next(steps)
        before = counter[0]
        next(steps)
        costs[n, d] = counter[0] - before
    assert all(cost == 2 * n * d for (n, d), cost in costs.items())


def test_backtracking_needs_no_constant_and_ends_at_the_precision_of_the_gradient(regression):
    f, grad, _ = half_mse(*regression)
    for scale in (1e-8, 1.0, 1e8):
        steps = gradient_descent(
            lambda w, s=scale: s * f(w), lambda w, s=scale: s * grad(w), np.zeros(4), Backtracking()
        )
        fit = run(steps, max_iter=500)
        assert np.linalg.norm(grad(fit.x)) <= 1e-11 * np.linalg.norm(grad(np.zeros(4)))
        assert all(np.diff(fit.trace.values) <= 64 * EPS * np.abs(fit.trace.values[:-1]))


@pytest.mark.parametrize(
    "bad", [{"initial": 0}, {"shrink": 1.0}, {"grow": 0.5}, {"initial": np.inf}]
)
def test_bad_line_searches_are_named(bad):
    with pytest.raises(ValueError, match="Backtracking needs initial > 0"):
        Backtracking(**bad)


# ------------------------------------------------------------------ OPT-5, OPT-6: stochastic


@pytest.mark.spec("OPT-5")
def test_the_average_over_all_terms_is_the_full_gradient(regression):
    X, y = regression
    _, grad, grad_at = half_mse(X, y)
    w = np.array([0.5, 0.1, -1.0, 2.0])
    mean = np.mean([grad_at(w, np.array([i])) for i in range(len(y))], axis=0)
    np.testing.assert_allclose(mean, grad(w), rtol=1e-13)
    # and the draws are uniform: every term as often as the others, to 5 standard deviations
    count = np.zeros(len(y))

    def tally(x, rows):
        count[rows] += 1
        return x

    draw = minibatch(tally, len(y), 1, random_state=0)
    for _ in range(20_000):
        draw(w)
    expected = 20_000 / len(y)
    assert (np.abs(count - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.spec("OPT-5")
def test_the_perceptron_update_is_sgd_on_the_perceptron_loss():
    """[-η]_+ has subgradient -y x where y x'w <= 0, and 0 elsewhere; the step is 1."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 3)), np.sign(rng.standard_normal(20))
    order = []

    def grad_at(w, rows):
        (i,) = rows
        order.append(i)
        return np.where(y[i] * (X[i] @ w) <= 0, -y[i] * X[i], 0.0)

    iterates = points(sgd(grad_at, np.zeros(3), 1.0, n_samples=20, random_state=3), 100)
    w = np.zeros(3)
    for i, x in zip(order, iterates):
        if y[i] * (X[i] @ w) <= 0:
            w = w + y[i] * X[i]
        np.testing.assert_array_equal(x, w)


@pytest.mark.spec("OPT-5")
def test_sgd_with_robbins_monro_steps_converges(regression):
    X, y = regression
    _, _, grad_at = half_mse(X, y)
    normal = np.linalg.solve(X.T @ X, X.T @ y)
    schedule = InverseTime(0.2, 0.05)
    assert schedule.robbins_monro
    errors = [
        np.linalg.norm(
            last(sgd(grad_at, np.zeros(4), schedule, n_samples=50, random_state=seed), 5000).x
            - normal
        )
        for seed in range(5)
    ]
    # mean squared error about eta_k times the noise (0.2²·4): a factor of ten in hand
    assert np.mean(np.square(errors)) < 10 * schedule(5000) * 0.2**2 * 4


@pytest.mark.spec("OPT-6")
def test_batch_of_all_is_gradient_descent_to_the_bit_and_batch_of_one_is_sgd(regression):
    X, y = regression
    f, grad, grad_at = half_mse(X, y)
    full = points(sgd(grad_at, np.zeros(4), 0.3, n_samples=50, batch_size=50), 20)
    for a, b in zip(full, points(gradient_descent(f, grad, np.zeros(4), 0.3), 20)):
        np.testing.assert_array_equal(a, b)
    sizes = []

    def spy(w, rows):
        sizes.append(len(rows))
        return grad_at(w, rows)

    points(sgd(spy, np.zeros(4), 0.1, n_samples=50, batch_size=1, random_state=0), 30)
    assert set(sizes) == {1}


@pytest.mark.spec("OPT-6")
def test_variance_falls_as_1_over_batch_size(regression):
    """Without replacement: (σ²/|B|)(N - |B|)/(N - 1), so σ²/|B| for small batches, 0 for |B| = N."""
    X, y = regression
    n = len(y)
    _, grad, grad_at = half_mse(X, y)
    w = np.zeros(4)
    single = np.mean([np.sum((grad_at(w, np.array([i])) - grad(w)) ** 2) for i in range(n)])
    draws = 4000
    for size in (1, 2, 5, 25, 50):
        draw = minibatch(grad_at, n, size, random_state=size)
        seen = np.mean([np.sum((draw(w) - grad(w)) ** 2) for _ in range(draws)])
        expected = single / size * (n - size) / (n - 1)
        # the relative error of a variance from 4000 draws is about sqrt(2/4000) x tail weight: 15 %
        assert seen == pytest.approx(expected, rel=0.15, abs=1e-20)


def test_same_seed_same_walk(regression):
    _, _, grad_at = half_mse(*regression)
    walks = [
        last(sgd(grad_at, np.zeros(4), 0.1, n_samples=50, batch_size=7, random_state=seed), 50).x
        for seed in (
            5,
            5,
            6,
            np.random.default_rng(5),
            np.random.RandomState(5),
            np.random.RandomState(5),
        )
    ]
    np.testing.assert_array_equal(walks[0], walks[1])
    np.testing.assert_array_equal(walks[0], walks[3])
    np.testing.assert_array_equal(walks[4], walks[5])
    assert not np.array_equal(walks[0], walks[2])


def test_bad_batches_are_named():
    with pytest.raises(ValueError, match="batch_size must be between 1 and n_samples=5, got 6"):
        minibatch(lambda w, rows: w, 5, 6)
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        minibatch(lambda w, rows: w, 0, 1)


# ------------------------------------------------------------------ OPT-7, OPT-8, OPT-9


@pytest.mark.spec("OPT-7")
@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_momentum_under_a_constant_gradient(beta):
    g = np.array([2.0, -3.0])
    walk = np.array([np.zeros(2), *points(momentum(lambda x: g, np.zeros(2), 0.1, beta=beta), 40)])
    m = -np.diff(walk, axis=0) / 0.1
    t = np.arange(1, 41)[:, None]
    np.testing.assert_allclose(m, (1 - beta**t) * g, rtol=1e-12)


@pytest.mark.spec("OPT-7")
def test_momentum_converges_on_a_quadratic_and_without_memory_is_gradient_descent():
    A = np.diag([1.0, 10.0])
    f, grad = lambda x: x @ A @ x / 2, lambda x: A @ x
    for a, b in zip(
        points(momentum(grad, [1.0, 1.0], 0.1, beta=0.0), 20),
        points(gradient_descent(f, grad, [1.0, 1.0], 0.1), 20),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-300)
    assert np.linalg.norm(last(momentum(grad, [1.0, 1.0], 0.1), 600).x) < 1e-9
    with pytest.raises(ValueError, match=r"beta must be in \[0, 1\)"):
        next(momentum(grad, [1.0, 1.0], 0.1, beta=1.0))


def adam_by_hand(grad, x, step, k, *, b1=0.9, b2=0.999, eps=1e-8, corrected=True):
    """The recursion of the paper's Algorithm 1, coordinate by coordinate in plain floats."""
    x = [float(v) for v in x]
    m, v, walk = [0.0] * len(x), [0.0] * len(x), []
    for t in range(1, k + 1):
        g = grad(np.array(x))
        for i in range(len(x)):
            m[i] = b1 * m[i] + (1 - b1) * float(g[i])
            v[i] = b2 * v[i] + (1 - b2) * float(g[i]) ** 2
            c1, c2 = (1 - b1**t, 1 - b2**t) if corrected else (1.0, 1.0)
            x[i] -= step * (m[i] / c1) / ((v[i] / c2) ** 0.5 + eps)
        walk.append(list(x))
    return np.array(walk)


@pytest.mark.spec("OPT-8")
@pytest.mark.parametrize("gamma", [1.0, 1e-3])
def test_first_adam_step(gamma):
    g = np.array([4.0, -1e-3, 250.0])
    seed_form = next(adam(lambda x: g, np.zeros(3), gamma, bias_correction=False)).x
    factor = 0.1 / np.sqrt(0.001)
    assert round(factor, 4) == 3.1623
    np.testing.assert_allclose(seed_form, -factor * gamma * np.sign(g), rtol=1e-12)
    np.testing.assert_allclose(-seed_form / gamma, [3.1623, -3.1623, 3.1623], atol=5e-5)
    corrected = next(adam(lambda x: g, np.zeros(3), gamma, eps=0.0)).x
    np.testing.assert_allclose(corrected, -gamma * np.sign(g), rtol=1e-12)


@pytest.mark.spec("OPT-8")
@pytest.mark.parametrize("corrected", [True, False])
def test_adam_is_the_papers_recursion(regression, corrected):
    _, grad, _ = half_mse(*regression)
    ours = np.array(points(adam(grad, np.zeros(4), 0.05, bias_correction=corrected), 200))
    eps = 1e-8 if corrected else 0.0
    hand = adam_by_hand(grad, np.zeros(4), 0.05, 200, eps=eps, corrected=corrected)
    np.testing.assert_allclose(ours, hand, rtol=1e-11, atol=1e-13)


@pytest.mark.spec("OPT-8")
def test_adam_equals_torch(regression):
    torch = pytest.importorskip("torch")
    X, y = regression
    _, grad, _ = half_mse(X, y)
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([w], lr=0.05)
    A, b = torch.tensor(X), torch.tensor(y)
    for x in points(adam(grad, np.zeros(4), 0.05), 100):
        optimiser.zero_grad()
        (0.5 * torch.mean((A @ w - b) ** 2)).backward()
        optimiser.step()
        np.testing.assert_allclose(x, w.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.spec("OPT-8")
def test_a_coordinate_without_gradient_does_not_move():
    steps = adam(lambda x: np.array([1.0, 0.0]), [0.0, 5.0], 0.1, bias_correction=False)
    assert [x[1] for x in points(steps, 5)] == [5.0] * 5


@pytest.mark.parametrize("bad", [{"beta1": 1.0}, {"beta2": -0.1}, {"eps": -1.0}])
def test_bad_adam_constants_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        next(adam(lambda x: x, [1.0], 0.1, **bad))


@pytest.mark.spec("OPT-9")
@pytest.mark.parametrize("gamma", [0.1, 0.01])
def test_sign_steps_have_max_norm_gamma_and_hover(regression, gamma):
    X, y = regression
    _, grad, _ = half_mse(X, y)
    walk = np.array([np.zeros(4), *points(sign_descent(grad, np.zeros(4), gamma), 1000)])
    lengths = np.abs(np.diff(walk, axis=0)).max(axis=1)
    np.testing.assert_allclose(lengths, gamma, rtol=1e-11)
    # one bit a coordinate: every move is -gamma, 0 or +gamma
    np.testing.assert_allclose(np.abs(np.diff(walk, axis=0)), gamma, rtol=1e-11)
    normal = np.linalg.solve(X.T @ X, X.T @ y)
    distance = np.abs(walk[500:] - normal).max(axis=1)
    assert distance.max() < 10 * gamma  # stays within O(gamma)
    assert distance[-200:].min() > 0  # and never settles: it has no shorter step


# ------------------------------------------------------------------ OPT-10: Newton


@pytest.fixture
def logistic():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 3))
    y = (rng.random(80) < expit(X @ np.array([1.5, -1.0, 0.5]))).astype(float)
    lam = 0.01

    def f(w):
        z = X @ w
        return float(np.mean(np.logaddexp(0, z) - y * z) + lam / 2 * w @ w)

    def grad(w):
        return X.T @ (expit(X @ w) - y) / 80 + lam * w

    def hess(w):
        s = expit(X @ w)
        return (X.T * (s * (1 - s))) @ X / 80 + lam * np.eye(3)

    return X, y, lam, f, grad, hess


@pytest.mark.spec("OPT-10")
@pytest.mark.parametrize("seed", range(5))
def test_newton_solves_a_quadratic_in_one_step(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((6, 4))
    A, b, x0 = B.T @ B + 0.1 * np.eye(4), rng.standard_normal(4), 10 * rng.standard_normal(4)
    steps = newton(
        lambda x: x @ A @ x / 2 - b @ x,
        lambda x: A @ x - b,
        lambda x: A,
        x0,
    )
    first = next(steps)
    solution = np.linalg.solve(A, b)
    # the step from x0 is solved to eps x cond of its own length, which is that of x0
    error = np.linalg.norm(first.x - solution)
    assert error <= 16 * EPS * np.linalg.cond(A) * np.linalg.norm(x0)
    assert first.step == 1.0


@pytest.mark.spec("OPT-10")
def test_newton_on_logistic_squares_its_error(logistic):
    *_, f, grad, hess = logistic
    walk = [np.zeros(3), *points(newton(f, grad, hess, np.zeros(3)), 12)]
    solution = walk[-1]
    errors = np.array([np.linalg.norm(x - solution) for x in walk[:7]])
    errors = errors[errors > 1e-8]  # beyond, the square is below rounding
    assert len(errors) >= 4
    ratios = errors[1:] / errors[:-1] ** 2
    assert (
        ratios.max() < 5
    )  # error <= C error², C of the order of the Hessian's Lipschitz constant / m
    assert errors[-1] < 1e-3 * errors[0]


@pytest.mark.spec("OPT-10")
def test_newton_finds_what_irls_and_scikit_learn_find(logistic):
    X, y, lam, f, grad, hess = logistic
    w = run(newton(f, grad, hess, np.zeros(3)), max_iter=50).x
    irls = np.zeros(3)
    for _ in range(30):  # weighted least squares on the working response
        s = expit(X @ irls)
        weight = s * (1 - s)
        response = X @ irls + (y - s) / weight
        irls = np.linalg.solve((X.T * weight) @ X + 80 * lam * np.eye(3), (X.T * weight) @ response)
    np.testing.assert_allclose(w, irls, rtol=1e-10)
    model = LogisticRegression(
        C=1 / (80 * lam), fit_intercept=False, tol=1e-10, solver="newton-cholesky"
    )
    np.testing.assert_allclose(w, model.fit(X, y).coef_[0], rtol=1e-6)


def rosenbrock():
    f = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    grad = lambda x: np.array(  # noqa: E731
        [-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]
    )
    hess = lambda x: np.array(  # noqa: E731
        [[2 - 400 * (x[1] - 3 * x[0] ** 2), -400 * x[0]], [-400 * x[0], 200.0]]
    )
    return f, grad, hess


@pytest.mark.spec("OPT-10")
@pytest.mark.parametrize("x0", [(-1.2, 1.0), (0.0, 5.0), (3.0, -3.0)])
def test_newton_descends_where_the_hessian_is_indefinite(x0):
    f, grad, hess = rosenbrock()
    if x0 == (0.0, 5.0):
        assert np.linalg.eigvalsh(hess(np.array(x0)))[0] < 0
    fit = run(newton(f, grad, hess, x0), max_iter=200)
    assert all(np.diff([f(np.array(x0)), *fit.trace.values]) <= 0)
    np.testing.assert_allclose(fit.x, [1.0, 1.0], atol=1e-10)


def test_newton_copes_with_a_singular_hessian_and_rejects_bad_input():
    # a line of minima: the shift makes the direction the gradient's
    f, grad = lambda x: float((x[0] + x[1]) ** 2), lambda x: np.full(2, 2 * (x[0] + x[1]))
    fit = run(newton(f, grad, lambda x: np.full((2, 2), 2.0), [3.0, 0.0]), max_iter=50)
    assert fit.value < 1e-12
    with pytest.raises(ValueError, match="armijo_c"):
        next(newton(f, grad, lambda x: np.eye(2), [1.0, 1.0], armijo_c=0.9))
    with pytest.raises(ValueError, match=r"step must be in \(0, 1\]"):
        next(newton(f, grad, lambda x: np.eye(2), [1.0, 1.0], 2.0))
    with pytest.raises(ValueError, match="must be finite"):
        next(newton(f, grad, lambda x: np.full((2, 2), np.nan), [1.0, 1.0]))


# ------------------------------------------------------------------ OPT-12, OPT-13: constraints


def ball(radius):
    return lambda w: w / max(1.0, np.linalg.norm(w) / radius)


def ball_solution(X, y, radius):
    """min half MSE over a ball, in closed form: (X'X/N + μ I) w = X'y/N with ‖w‖ = radius."""
    from scipy.optimize import brentq

    values, V = np.linalg.eigh(X.T @ X / len(y))
    c = V.T @ (X.T @ y / len(y))
    mu = brentq(lambda mu: np.linalg.norm(c / (values + mu)) - radius, 0, 1e3, xtol=1e-14)
    return V @ (c / (values + mu))


@pytest.mark.spec("OPT-12")
@pytest.mark.parametrize("step", [0.3, Backtracking(), InverseSqrt(0.5, 0.01)])
def test_projected_gradient_is_feasible_and_finds_the_closed_form_on_a_ball(regression, step):
    X, y = regression
    f, grad, _ = half_mse(X, y)
    project = ball(1.0)
    residuals = []
    fit = run(
        projected_gradient(f, grad, np.full(4, 3.0), project, step),
        max_iter=300,
        callback=lambda k, it: residuals.append(it.estimate) or np.linalg.norm(it.x) > 1 + 4 * EPS,
    )
    assert fit.stop.name != "CALLBACK"  # every iterate was feasible
    assert residuals[-1] < 1e-9 < residuals[0]
    np.testing.assert_allclose(fit.x, ball_solution(X, y, 1.0), atol=1e-9)


@pytest.mark.spec("OPT-12")
def test_projection_of_a_quadratic_around_a_point_is_its_projection():
    """min ‖w - a‖²/2 over a box, a ball: the answer is the projection of a."""
    a = np.array([2.0, -0.3, 0.7])
    f, grad = lambda w: (w - a) @ (w - a) / 2, lambda w: w - a
    for project in (ball(1.0), lambda w: np.clip(w, -0.5, 0.5)):
        x = last(projected_gradient(f, grad, np.zeros(3), project, 1.0), 5).x
        np.testing.assert_allclose(x, project(a), rtol=8 * EPS)


@pytest.mark.spec("OPT-12")
def test_projected_sgd_is_feasible_and_converges(regression):
    X, y = regression
    _, _, grad_at = half_mse(X, y)
    grad = minibatch(grad_at, 50, 5, random_state=0)
    walk = points(projected_sgd(grad, np.full(4, 3.0), ball(1.0), InverseTime(0.3, 0.02)), 4000)
    assert max(np.linalg.norm(x) for x in walk) <= 1 + 4 * EPS
    w = ball_solution(X, y, 1.0)
    # mean squared error about eta times the variance of the gradient over twice the curvature
    full = grad_at(w, np.arange(50))
    variance = np.mean([np.sum((grad_at(w, np.array([i])) - full) ** 2) for i in range(50)]) / 5
    curvature = np.linalg.eigvalsh(X.T @ X / 50)[0]
    assert np.linalg.norm(walk[-1] - w) ** 2 < InverseTime(0.3, 0.02)(4000) * variance / curvature


@pytest.mark.spec("OPT-13")
def test_penalty_weight_to_infinity_gives_the_projected_solution(regression):
    X, y = regression
    f, grad, _ = half_mse(X, y)
    project = ball(1.0)
    iterates = list(islice(quadratic_penalty(f, grad, np.zeros(4), project), 8))
    projected = last(projected_gradient(f, grad, np.zeros(4), project, 0.3), 500).x
    errors = np.array([np.linalg.norm(it.x - projected) for it in iterates])
    assert (errors[1:] < errors[:-1]).all()
    # O(1/weight): each factor of ten in the weight is a factor of ten in the error
    np.testing.assert_allclose(errors[3:6] / errors[2:5], 0.1, rtol=0.05)
    assert errors[-1] < 1e-6
    # f rises to the constrained minimum from below
    values = [it.value for it in iterates]
    assert values == sorted(values)
    assert values[-1] <= f(projected)
    with pytest.raises(ValueError, match="growth > 1"):
        next(quadratic_penalty(f, grad, np.zeros(4), project, growth=1.0))


@pytest.mark.spec("OPT-13")
def test_squared_distance_is_a_violation_with_its_gradient():
    violation, slope = squared_distance(ball(1.0))
    inside, outside = np.array([0.3, 0.4]), np.array([3.0, 4.0])
    assert violation(inside) == 0.0
    assert violation(outside) == pytest.approx(8.0)  # (5 - 1)²/2
    h = 1e-6
    for i in range(2):
        e = h * np.eye(2)[i]
        difference = (violation(outside + e) - violation(outside - e)) / (2 * h)
        assert slope(outside)[i] == pytest.approx(difference, rel=1e-8)


# ------------------------------------------------------------------ FISTA


def test_fista_solves_the_lasso_and_is_faster_than_plain_descent(regression):
    from sklearn.linear_model import Lasso

    X, y = regression
    f, grad, _ = half_mse(X, y)
    prox = lambda v, t: np.sign(v) * np.maximum(np.abs(v) - 0.1 * t, 0)  # noqa: E731
    penalty = lambda w: 0.1 * float(np.abs(w).sum())  # noqa: E731
    reference = Lasso(alpha=0.1, fit_intercept=False, tol=1e-14, max_iter=10**5).fit(X, y).coef_
    for step in (None, 0.4):
        fit = run(fista(f, grad, np.zeros(4), prox, penalty, step), max_iter=400)
        np.testing.assert_allclose(fit.x, reference, atol=1e-9)
        assert fit.value == pytest.approx(f(fit.x) + penalty(fit.x), rel=8 * EPS)
        assert fit.x[2] == 0.0  # exactly


def test_fista_with_restart_is_the_papers_recursion():
    A = np.array([0.02, 0.3, 1.0])
    x = previous = y = np.array([1.0, -1.0, 1.0])
    theta, restarts = 1.0, 0
    for it in islice(fista(lambda v: float(A @ v**2 / 2), lambda v: A * v, x, step=1.0), 120):
        x = y - A * y
        if (y - x) @ (x - previous) > 0:  # O'Donoghue and Candès, the gradient scheme
            theta, y, restarts = 1.0, x, restarts + 1
        else:
            following = (1 + np.sqrt(1 + 4 * theta**2)) / 2
            y = x + (theta - 1) / following * (x - previous)
            theta = following
        previous = x
        np.testing.assert_allclose(it.x, x, rtol=1e-9, atol=1e-15)
    assert restarts > 2


def test_fista_restart_needs_fewer_steps_on_an_ill_conditioned_quadratic():
    A = np.geomspace(1e-3, 1, 20)
    f, grad = lambda x: float(A @ x**2 / 2), lambda x: A * x
    taken = {}
    for name, steps in {
        "restart": fista(f, grad, np.ones(20), step=1.0),
        "plain": fista(f, grad, np.ones(20), step=1.0, restart=False),
        "descent": gradient_descent(f, grad, np.ones(20), 1.0),
    }.items():
        fit = run(
            steps, certify=lambda x: np.linalg.norm(A * x), tol=1e-8, max_iter=20_000, every=1
        )
        taken[name] = fit.n_iter
    assert taken["restart"] < taken["plain"] < taken["descent"]
    with pytest.raises(TypeError, match="step must be a number or Backtracking"):
        next(fista(f, grad, np.ones(20), step=InverseSqrt(0.1)))
