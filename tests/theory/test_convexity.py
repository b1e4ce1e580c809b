"""Convex functions: definition, first- and second-order forms, calculus, subgradients, conjugates."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from surefit.duality import duality_gap
from surefit.losses import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    PerceptronLoss,
    Quantile,
    Squared,
    SquaredHinge,
    SquareMargin,
    Tukey,
    ZeroOne,
)
from surefit.penalties import L1, L2
from surefit.testing import check_gradient, is_convex_on_segments

CONVEX = [
    Squared(), Absolute(), Quantile(0.2), Huber(1.0), Hinge(), SquaredHinge(), Logistic(),
    SquareMargin(), PerceptronLoss(),
]  # fmt: skip


def data(n=15, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + 0.5 * rng.normal(size=n), rng.normal(scale=3, size=(40, p))


def risk(loss, X, y):
    """The mean loss of the linear model, as a function of w."""
    targets = np.where(y > 0, 1.0, -1.0) if hasattr(loss, "phi") else y
    return lambda w: loss.value(X @ w, targets)


# ---------------------------------------------------------------------------- CVX-1


@pytest.mark.spec("CVX-1")
@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_segment_tester_passes_the_convex_losses(loss):
    X, y, points = data()
    assert is_convex_on_segments(risk(loss, X, y), points)


@pytest.mark.spec("CVX-1")
@pytest.mark.parametrize("loss", [Tukey(1.0), Tukey(4.685), ZeroOne()], ids=repr)
def test_segment_tester_rejects_the_others(loss):
    X, y, points = data()
    assert not is_convex_on_segments(risk(loss, X, y), points)


@pytest.mark.spec("CVX-1")
def test_strict_convexity():
    X, y, points = data()
    assert is_convex_on_segments(risk(Squared(), X, y), points, strict=True)
    assert not is_convex_on_segments(risk(Absolute(), X, y), points, strict=True)
    assert is_convex_on_segments(np.exp, np.linspace(-5, 5, 30), strict=True)  # without a minimiser
    # Without full rank MSE is convex and not strictly so: flat along the null space.
    flat = np.column_stack([X, X[:, 0]])
    along = np.outer(np.linspace(-3, 3, 9), [1.0, 0.0, 0.0, -1.0])
    assert is_convex_on_segments(risk(Squared(), flat, y), along)
    assert not is_convex_on_segments(risk(Squared(), flat, y), along, strict=True)


# ---------------------------------------------------------------------------- CVX-2


@pytest.mark.spec("CVX-2")
def test_first_order_form():
    """f(v) >= f(u) + grad(u)'(v - u), for every convex loss of a linear model."""
    X, y, points = data()
    for loss in CONVEX:
        targets = np.where(y > 0, 1.0, -1.0) if hasattr(loss, "phi") else y
        f = risk(loss, X, y)
        for u, v in zip(points, points[::-1]):
            slope = X.T @ loss.grad(X @ u, targets) / len(y)
            assert f(v) >= f(u) + slope @ (v - u) - 1e-12 * (1 + abs(f(u)) + abs(f(v)))


@pytest.mark.spec("CVX-2")
def test_second_order_form():
    X, y, points = data()
    for w in points:
        H = X.T @ (Logistic().hess(X @ w, np.ones(len(y)))[:, None] * X) / len(y)
        assert np.linalg.eigvalsh(H)[0] >= -1e-12
    rng = np.random.default_rng(1)
    for smallest in (1.0, 0.0, -1e-3, -1.0):
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        A = (Q * [smallest, 1.0, 5.0]) @ Q.T
        # Segments along the eigenvectors too: the direction that shows it may be hard to hit.
        ends = np.vstack([points, 3 * Q.T, -3 * Q.T])
        convex = is_convex_on_segments(lambda w, A=A: 0.5 * w @ A @ w, ends, segments=2000)
        assert convex == (smallest >= 0)


# ---------------------------------------------------------------------------- CVX-3


@pytest.mark.spec("CVX-3")
@pytest.mark.parametrize("seed", range(6))
def test_sums_and_affine_compositions_stay_convex(seed):
    rng = np.random.default_rng(seed)
    terms = []
    for loss in rng.choice(np.array(CONVEX, dtype=object), size=4):
        X, y, _ = data(seed=int(rng.integers(1000)))
        A, shift = rng.normal(size=(3, 3)), rng.normal(size=3)
        terms.append((rng.uniform(0, 2), risk(loss, X, y), A, shift))
    points = rng.normal(scale=3, size=(30, 3))

    def total(w):
        return sum(c * f(A @ w + shift) for c, f, A, shift in terms)

    assert is_convex_on_segments(total, points)
    # A difference need not be convex: Huber minus a little of the square is not.
    X, y, _ = data()
    huber, square = risk(Huber(0.5), X, y), risk(Squared(), X, y)
    assert not is_convex_on_segments(lambda w: huber(w) - 0.1 * square(w), points)


# ---------------------------------------------------------------------------- REG-3


@pytest.mark.spec("REG-3")
@pytest.mark.parametrize("seed", range(5))
def test_least_squares_falls_below_its_chord_by_an_exact_amount(seed):
    """f(tu + (1-t)v) - [t f(u) + (1-t) f(v)] = -(1/2N) t (1-t) ||X(u-v)||^2 <= 0."""
    rng = np.random.default_rng(seed)
    X, y, points = data(seed=seed)
    f, n = risk(Squared(), X, y), len(y)
    for u, v in zip(points, points[::-1]):
        t = rng.uniform()
        defect = f(t * u + (1 - t) * v) - (t * f(u) + (1 - t) * f(v))
        want = -t * (1 - t) * np.sum((X @ (u - v)) ** 2) / (2 * n)
        assert want <= 0
        assert abs(defect - want) <= 8 * np.finfo(float).eps * (f(u) + f(v)) * 4  # a few roundings
    H = X.T @ X / n
    assert np.linalg.eigvalsh(H)[0] >= 0
    check_gradient(f, lambda w: X.T @ (X @ w - y) / n, points[0])
    for i in range(3):  # the Hessian is the derivative of the gradient: a difference, exactly
        e = np.eye(3)[i]
        gradient = [X.T @ (X @ (points[0] + s * e) - y) / n for s in (0.5, -0.5)]
        np.testing.assert_allclose(gradient[0] - gradient[1], H[i], rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------------------- CVX-8


@pytest.mark.spec("CVX-8")
def test_subgradient_inequality_and_zero_at_the_minimiser():
    rng = np.random.default_rng(0)
    u = rng.normal(scale=3, size=(500, 4))
    # |.| at 0: the subdifferential is [-1, 1], and no more.
    for g in np.linspace(-1, 1, 11):
        assert (np.abs(u) >= g * u).all()
    assert not (np.abs(u) >= 1.01 * u).all()
    # The l1 norm at a point with zeros: any sign pattern with entries in [-1, 1] at the zeros.
    w = np.array([1.5, 0.0, -2.0, 0.0])
    for _ in range(20):
        g = np.where(w != 0, np.sign(w), rng.uniform(-1, 1, size=4))
        assert (np.abs(u).sum(1) >= np.abs(w).sum() + (u - w) @ g - 1e-14).all()
    # Hinge of a linear model: g = slope(y x'w) y x, the chain rule with an affine inside.
    X, y = rng.normal(size=(10, 4)), rng.choice([-1.0, 1.0], size=10)
    loss = Hinge()
    for w in [*u[:20], np.linalg.lstsq(X[:4], y[:4], rcond=None)[0]]:  # the last is at four kinks
        g = X.T @ loss.grad(X @ w, y) / 10
        here = loss.value(X @ w, y)
        there = np.array([loss.value(X @ v, y) for v in u])
        assert (there >= here + (u - w) @ g - 1e-12).all()
    # 0 is a subgradient at the minimiser: |x - 1| + |x| on [0, 1], the l1 norm at 0, the hinge far out.
    assert 0.0 in np.sign(np.array([0.3]) - 1) + np.sign(np.array([0.3]))
    np.testing.assert_array_equal(Absolute().grad(np.zeros(3), np.zeros(3)), 0.0)
    np.testing.assert_array_equal(loss.grad(5 * y, y), 0.0)
    assert L1(0.5).subdiff_distance(np.zeros(3), np.array([0.5, -0.2, 0.0])).max() == 0.0
    assert L1(0.5).subdiff_distance(np.zeros(3), np.array([0.6, 0.0, 0.0])).max() > 0.0


@pytest.mark.spec("CVX-8")
def test_subgradient_is_the_gradient_where_there_is_one():
    rng = np.random.default_rng(1)
    z, y = rng.normal(scale=2, size=200), rng.choice([-1.0, 1.0], size=200)
    for loss in (Absolute(), Hinge(), PerceptronLoss(), Quantile(0.3)):
        h = 1e-6
        measured = (loss.pointwise(z + h, y) - loss.pointwise(z - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.grad(z, y), measured, atol=1e-8)


@pytest.mark.spec("CVX-8")
def test_chain_rule_needs_a_nondecreasing_outside():
    """h(q(w)) with q = w^2 - 1: right for h = max(., 0), wrong for h = max(-., 0)."""
    u = np.linspace(-3, 3, 601)

    def inequality_holds(h, slope_at_zero):
        w = 1.0  # q(w) = 0, the kink of h
        g = slope_at_zero * 2 * w
        return bool((h(u**2 - 1) >= h(0.0) + g * (u - w) - 1e-12).all())

    assert all(inequality_holds(lambda t: np.maximum(t, 0), s) for s in (0.0, 0.5, 1.0))
    assert not all(inequality_holds(lambda t: np.maximum(-t, 0), s) for s in (0.0, -0.5, -1.0))


# ---------------------------------------------------------------------------- CVX-10


def conjugate_on_grid(f, t):
    """max over the grid of s t - f(t)."""
    return lambda s: np.max(np.multiply.outer(s, t) - f(t), axis=-1)


@pytest.mark.spec("CVX-10")
def test_conjugate_of_the_entropy_is_the_exponential():
    def f(t):
        return xlogy(t, t) - t + 1

    s = np.linspace(-3, 2, 51)
    t = np.linspace(0, 10, 200_001)
    # The grid is 5e-5 wide; at the maximum the loss is second order, (5e-5)^2 f'' / 8 < 1e-8.
    np.testing.assert_allclose(conjugate_on_grid(f, t)(s), np.expm1(s), atol=1e-8)
    points = np.array([0.0, 0.1, 1.0, 2.7, 9.0])
    gap = f(points)[:, None] + np.expm1(s) - np.multiply.outer(points, s)
    assert (gap >= 0).all()  # Fenchel-Young
    at = np.log(points[1:])  # equality at s = f'(t) = log t
    np.testing.assert_allclose(f(points[1:]) + np.expm1(at), points[1:] * at, atol=1e-14)


@pytest.mark.spec("CVX-10")
@pytest.mark.parametrize(
    ("f", "convex"),
    [
        (lambda t: 0.5 * t**2, True),
        (np.abs, True),
        (lambda t: Huber(1.0).pointwise(t, np.zeros_like(t)), True),
        (lambda t: Logistic().phi(t), True),
        (lambda t: (t**2 - 1) ** 2, False),
        (lambda t: Tukey(1.0).pointwise(t, np.zeros_like(t)), False),
    ],
)
def test_biconjugate(f, convex):
    """f* is convex whatever f is; f** = f for convex f, and lies strictly below somewhere otherwise."""
    t, s = np.linspace(-3, 3, 1201), np.linspace(-40, 40, 16_001)
    dual = conjugate_on_grid(f, t)(s)
    assert is_convex_on_segments(lambda x: float(np.interp(x, s, dual)), s[::400], rtol=1e-6)
    twice = conjugate_on_grid(lambda x: np.interp(x, s, dual), s)(t[::10])
    assert (twice <= f(t[::10]) + 1e-9).all()
    # Of slopes 5e-3 apart, the nearest misses a slope by 2.5e-3 over a distance of at most 3.
    assert (np.abs(twice - f(t[::10])).max() <= 1e-2) == convex


# ---------------------------------------------------------------------------- CVX-11


@pytest.mark.spec("CVX-11")
def test_sum_and_mean_objectives_have_the_same_minimiser():
    """sum + mu and mean + mu/N agree: in closed form, by scipy, and by the duality gap of one point."""
    X, y, _ = data(n=40)
    n, mu = 40, 3.0
    labels = np.where(y > 0, 1.0, -1.0)
    w_sum = np.linalg.solve(X.T @ X + mu * np.eye(3), X.T @ y)
    w_mean = np.linalg.solve(X.T @ X / n + mu / n * np.eye(3), X.T @ y / n)
    np.testing.assert_allclose(w_sum, w_mean, rtol=1e-12)

    def minimiser(scale):
        r = minimize(
            lambda w: scale * (np.logaddexp(0, -labels * (X @ w)).sum() + mu / 2 * w @ w),
            np.zeros(3),
            jac=lambda w: scale * (X.T @ (-labels * expit(-labels * (X @ w))) + mu * w),
            method="BFGS", options={"gtol": 1e-10 * scale},
        )  # fmt: skip
        return r.x

    for c in (1 / n, 7.0, 1e3):
        np.testing.assert_allclose(minimiser(c), minimiser(1.0), atol=1e-8)
    # One point, two certificates: the gap scales with the objective, and is small in both or neither.
    w = minimiser(1.0)
    as_sum = duality_gap(
        X, labels, w, 0.0, Logistic(), L2(mu), weights=np.ones(n), fit_intercept=False
    )
    as_mean = duality_gap(X, labels, w, 0.0, Logistic(), L2(mu / n), fit_intercept=False)
    assert abs(as_sum.gap) <= 1e-10 * as_sum.primal
    assert as_sum.primal == pytest.approx(n * as_mean.primal, rel=1e-13)
    # Without rescaling lambda it is another problem; a negative factor turns the minimum over (ERR-9).
    other = duality_gap(X, labels, w, 0.0, Logistic(), L2(mu), fit_intercept=False)
    assert other.gap > 1e-2 * other.primal
    t = np.linspace(-1, 3, 401)
    f = (t - 1) ** 2
    assert t[np.argmin(7 * f)] == t[np.argmin(f)] == pytest.approx(1)
    assert t[np.argmin(-f)] != t[np.argmin(f)]
    assert (7 * f + 1).min() != f.min()  # the minimisers agree, the minima do not
