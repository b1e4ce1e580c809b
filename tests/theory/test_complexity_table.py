"""OPT-17: how many steps to reach ε, as formulas, as exact counts, and as measured."""

from functools import partial
from itertools import islice

import numpy as np
import pytest

from surefit.solvers import (
    InverseSqrt,
    InverseTime,
    accelerated_rate,
    complexity,
    complexity_table,
    convex_rate,
    gradient_descent,
    minibatch,
    nonconvex_rate,
    stochastic_subgradient,
    strongly_convex_rate,
    subgradient_rate,
)

EPS_GRID = np.geomspace(1e-1, 1e-3, 9)


def slope(x, y):
    """Of the line through (log x, log y)."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def steps_to(eps_grid, measured):
    """The first k (from 1) at which the measured sequence is at most each eps."""
    return np.array([1 + int(np.argmax(measured <= eps)) for eps in eps_grid])


@pytest.mark.spec("OPT-17")
def test_the_table():
    rows = {row.setting: row for row in complexity_table(eps=1e-2, n=500)}
    assert [(r.iterations, r.work) for r in rows.values()] == [
        ("1/ε²", "n/ε²"),
        ("1/ε", "n/ε"),
        ("log(1/ε)", "n log(1/ε)"),
        ("1/ε²", "1/ε²"),
    ]
    assert rows["convex"].iterations_at == pytest.approx(100)
    assert rows["convex"].work_at == pytest.approx(500 * 100)
    assert rows["stochastic convex"].work_at == pytest.approx(100**2)
    assert rows["stochastic convex"].step == "c/√k"  # erratum 12: not 1/k
    assert rows["strongly convex"].iterations_at == pytest.approx(np.log(100))


@pytest.mark.spec("OPT-17")
@pytest.mark.parametrize(
    ("n", "sgd_wins"), [(10, False), (1000, False), (10**5, True), (10**7, True)]
)
def test_sgd_does_less_work_when_n_is_much_larger_than_1_over_eps(n, sgd_wins):
    rows = {row.setting: row for row in complexity_table(eps=1e-4, n=n)}
    assert (rows["stochastic convex"].work_at < rows["convex"].work_at) is sgd_wins


@pytest.mark.spec("OPT-17")
@pytest.mark.parametrize(
    ("theorem", "expected"),
    [("non-convex", -2), ("convex", -1), ("subgradient", -2), ("accelerated", -0.5)],
)
def test_log_log_slopes_of_the_counts(theorem, expected):
    eps = np.geomspace(1e-3, 1e-5, 9)
    counts = [complexity(theorem, e) for e in eps]
    # 1 % for the rounding up to whole steps and the lower order terms
    assert slope(eps, counts) == pytest.approx(expected, rel=0.01)


@pytest.mark.spec("OPT-17")
def test_strongly_convex_counts_grow_with_the_logarithm():
    eps = np.geomspace(1e-1, 1e-9, 9)
    counts = [complexity("strongly convex", e, strong_convexity=0.01) for e in eps]
    per_decade = np.diff(counts)
    assert per_decade.max() - per_decade.min() <= 1  # equal, up to rounding to whole steps


@pytest.mark.spec("OPT-17")
@pytest.mark.parametrize("eps", [0.3, 0.02, 1e-3])
def test_the_count_is_the_first_k_whose_bound_is_eps(eps):
    R, L, m, t, gap, G = 1.7, 3.0, 0.2, 0.25, 0.9, 1.3
    smooth = {"step": t, "distance": R, "smoothness": L, "strong_convexity": m}
    for k, bound in (
        (complexity("convex", eps, step=t, distance=R), partial(convex_rate, step=t, distance=R)),
        (
            complexity("non-convex", eps, step=t, start_gap=gap),
            partial(nonconvex_rate, step=t, gap=gap),
        ),
        (complexity("strongly convex", eps, **smooth), partial(strongly_convex_rate, **smooth)),
        (
            complexity("accelerated", eps, step=t, distance=R),
            partial(accelerated_rate, step=t, distance=R),
        ),
    ):
        assert bound(k) <= eps * (1 + 1e-12)
        assert k == 1 or bound(k - 1) > eps * (1 - 1e-12)
    k = complexity("subgradient", eps, distance=R, lipschitz=G)
    reached = subgradient_rate(np.full(k, eps / G**2), distance=R, lipschitz=G)[-1]
    assert reached <= eps * (1 + k * np.finfo(float).eps)  # k additions


# ------------------------------------------------------------------ measured


@pytest.mark.spec("OPT-17")
def test_measured_convex_slope():
    """x^p/p with a large p is as flat as a convex function gets: k ~ ε^-(p-2)/p, nearly 1/ε."""
    p = 20
    f, grad = lambda x: float(x[0] ** p / p), lambda x: x ** (p - 1)
    t = 1 / (p - 1)
    # gaps of the form f(x_k) p, so that ε = 1e-1 ... 1e-3 is in the power law's range
    gaps = p * np.array([it.value for it in islice(gradient_descent(f, grad, [1.0], t), 20_000)])
    counts = steps_to(EPS_GRID, gaps)
    assert slope(EPS_GRID, counts) == pytest.approx(-(p - 2) / p, abs=0.1)
    assert all(c <= complexity("convex", e / p, step=t) for c, e in zip(counts, EPS_GRID))


@pytest.mark.spec("OPT-17")
def test_measured_nonconvex_slope():
    """(1 + x²)^(-δ/2) falls for ever, ever slower: ‖∇f‖ ~ k^-(1+δ)/(2+δ), nearly k^-1/2."""
    delta = 0.1

    def f(x):
        return float((1 + x[0] ** 2) ** (-delta / 2))

    def grad(x):
        return -delta * x * (1 + x**2) ** (-delta / 2 - 1)

    t = 1 / delta  # |f''| <= delta
    norms = np.array([it.estimate for it in islice(gradient_descent(f, grad, [1.0], t), 60_000)])
    eps = np.geomspace(3e-3, 4e-4, 7)
    counts = steps_to(eps, np.minimum.accumulate(norms))
    assert slope(eps, counts) == pytest.approx(-(2 + delta) / (1 + delta), abs=0.15)
    assert all(
        c <= complexity("non-convex", e, step=t, start_gap=f([1.0])) for c, e in zip(counts, eps)
    )


@pytest.mark.spec("OPT-17")
def test_measured_strongly_convex_count_is_linear_in_the_digits():
    A = np.array([0.05, 1.0])
    steps = gradient_descent(lambda x: float(A @ x**2 / 2), lambda x: A * x, [1.0, 1.0], 1.0)
    gaps = np.array([it.value for it in islice(steps, 600)])
    eps = 10.0 ** -np.arange(3, 20, 2)
    counts = steps_to(eps, gaps)
    assert np.ptp(np.diff(counts)) <= 1
    constants = {"step": 1.0, "smoothness": 1.0, "strong_convexity": 0.05, "distance": np.sqrt(2)}
    assert all(c <= complexity("strongly convex", e, **constants) for c, e in zip(counts, eps))


@pytest.mark.spec("OPT-17")
def test_measured_stochastic_slope_with_step_c_over_sqrt_k():
    """Averaged SGD on a mean of |x - y_i|: the gap falls as k^-1/2 or faster, within its bound."""
    y = np.array([-1.0, 1.0])  # flat between: the noise never helps

    def grad_at(x, rows):
        return np.sign(x - y[rows])

    ks = np.array([100, 400, 1600, 6400])
    gaps = np.zeros(len(ks))
    for seed in range(4):
        steps = stochastic_subgradient(minibatch(grad_at, 2, 1, seed), [10.0], InverseSqrt(1.0))
        points = [it.x[0] for it in islice(steps, int(ks[-1]))]
        gaps += [np.mean(np.abs(points[k - 1] - y)) - 1 for k in ks]
    gaps /= 4
    gamma = 1 / np.sqrt(np.arange(1, ks[-1] + 1))
    bounds = subgradient_rate(gamma, distance=9.0, lipschitz=1.0)[ks - 1]
    assert (gaps <= bounds).all()
    assert slope(ks, np.maximum(gaps, 1e-12)) <= -0.4


@pytest.mark.spec("OPT-17")
def test_step_1_over_k_leaves_8_86_of_10_after_100_000_steps():
    """Erratum 12: on f = 0.005 x² the step 1/k is far too timid; the step c/√k arrives."""
    schedule = InverseTime(1.0, 1.0)  # 1/k for k = t + 1
    f, grad = lambda x: 0.005 * float(x[0] * x[0]), lambda x: 0.01 * x
    x = next(islice(gradient_descent(f, grad, [10.0], schedule), 100_000 - 1, None)).x[0]
    assert round(x, 2) == 8.86
    # the product it ought to be; each factor rounds once
    k = np.arange(1, 100_001)
    assert x == pytest.approx(10 * np.exp(np.log1p(-0.01 / k).sum()), rel=100_000 * 2.3e-16)
    *_, root = islice(gradient_descent(f, grad, [10.0], InverseSqrt(50.0)), 5000)
    assert abs(root.x[0]) < 1e-10


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="eps must be positive"):
        complexity("convex", 0.0)
    with pytest.raises(ValueError, match="theorem must be one of"):
        complexity("cubic", 0.1)
