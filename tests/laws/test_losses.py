"""The laws of losses: every loss obeys them, every broken loss is caught (LOS-1 to LOS-8)."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from surefit.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    ModifiedHuber,
    PerceptronLoss,
    Quantile,
    Softmax,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquareMargin,
    Tukey,
    ZeroOne,
    logistic_01,
)
from surefit.testing import check_loss

LOSSES: list[Loss] = [
    Squared(), Absolute(), Quantile(0.2), Quantile(0.5), Quantile(0.9), Huber(), Huber(0.1),
    Huber(30.0), Tukey(), Tukey(0.5), Logistic(), Hinge(), SquaredHinge(), SquareMargin(),
    PerceptronLoss(), ModifiedHuber(), EpsilonInsensitive(), EpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.3), ZeroOne(), Softmax(),
]  # fmt: skip


@pytest.mark.spec("LOS-1")
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_obeys_the_laws(loss):
    check_loss(loss)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_laws_do_not_depend_on_the_seed(loss, seed):
    check_loss(loss, np.random.default_rng(seed))


# ---------------------------------------------------------------------------- the laws can fail


def broken(base, **changes):
    """A subclass of a loss in which some members are replaced."""
    return type(f"Broken{base.__name__}", (base,), changes)()


BROKEN = [
    (Squared, "gradient equals", {"grad": lambda self, z, y: 1.001 * (z - y)}),
    (Logistic, "gradient equals", {"slope": lambda self, eta: -expit(-1.01 * eta)}),
    (Squared, "curvature equals", {"hess": lambda self, z, y: 1.01 * np.ones_like(z)}),
    (Softmax, "gradient equals", {"grad": lambda self, z, y: softmax(z, axis=1)}),
    (Huber, "Fenchel-Young equality", {"conjugate": lambda self, t, y: 0.6 * t**2 + t * y}),
    # Finite beyond the slope bound: the domain is too large.
    (Huber, "Fenchel-Young inequality", {"conjugate": lambda self, t, y: 0.5 * t**2 + t * y}),
    (Hinge, "Fenchel-Young inequality", {"phi_conjugate": lambda self, a: -a}),
    # Infinite inside the domain: valid as a bound, and useless.
    (
        SquareMargin,
        "conjugate is infinite only",
        {"phi_conjugate": lambda self, a: np.where(a > -1e-12, -a + a * a / 4, np.inf)},
    ),
    (Squared, "prox is a minimiser", {"prox": lambda self, z, y, step: z - step * (z - y) / 3}),
    (Hinge, "prox", {"phi_prox": lambda self, eta, step: np.where(eta < 1, eta + step, eta)}),
    (Tukey, "convex", {"convex": True}),
    (Hinge, "not convex", {"convex": False}),
    (Huber, "smoothness is not exceeded", {"smoothness": 0.9}),
    (Huber, "smoothness is attained", {"smoothness": 2.0}),
    (Huber, "smoothness is infinite", {"smoothness": math.inf}),
    (Hinge, "smoothness", {"smoothness": 1.0}),
    (Softmax, "smoothness is not exceeded", {"smoothness": 0.4}),
    (Softmax, "smoothness is attained", {"smoothness": 1.0}),
    (Logistic, "lipschitz is not exceeded", {"lipschitz": 0.9}),
    (Logistic, "lipschitz is attained", {"lipschitz": 1.5}),
    (Logistic, "lipschitz is infinite", {"lipschitz": math.inf}),
    (ZeroOne, "lipschitz", {"lipschitz": 1.0}),
    (Squared, "lipschitz", {"lipschitz": 1e3}),
    (Squared, "robust", {"robust": True}),
    (Huber, "robust", {"robust": False}),
    (Huber, "symmetric", {"symmetric": False}),
    (PerceptronLoss, "calibrated", {"calibrated": True}),
    (Logistic, "calibrated", {"calibrated": False}),
    (ZeroOne, "calibrated", {"calibrated": False}),
    (Squared, "balance: sum", {"balance": lambda self, t, y, weights: t - t.mean()}),
    (Hinge, "balance stays", {"balance": lambda self, t, y, w: t - (w @ t) / w.sum()}),
    (Logistic, "balance moves little", {"balance": lambda self, t, y, weights: 0.0 * t}),
]  # fmt: skip


@pytest.mark.parametrize(("base", "law", "changes"), BROKEN)
def test_a_broken_loss_is_caught(base, law, changes):
    with pytest.raises(AssertionError, match=law):
        check_loss(broken(base, **changes))


def test_a_subgradient_that_cuts_the_graph_is_caught():
    # At the kink the slope of |e| may be anything in [-1, 1]; 2 is not a subgradient, and no
    # difference quotient at a random point would notice it.
    def grad(self, z, y):
        return np.where(z == y, 2.0, np.sign(z - y))

    with pytest.raises(AssertionError, match="subgradient inequality"):
        check_loss(broken(Absolute, grad=grad))


def test_a_loss_of_unknown_kind_needs_draw():
    class Exponential(Loss):
        """exp(z - y): convex, neither a margin loss nor a loss of the error."""

        def pointwise(self, z, y):
            return np.exp(z - y)

        grad = hess = pointwise

        def conjugate(self, theta, y):
            safe = np.where(theta > 0, theta, 1.0)
            return np.where(
                theta > 0, theta * (np.log(safe) + y - 1), np.where(theta < 0, np.inf, 0)
            )

        def prox(self, z, y, step):
            t = np.array(z)
            for _ in range(200):
                move = (t - z + step * np.exp(t - y)) / (1 + step * np.exp(t - y))
                t = t - np.clip(move, -1, 1)
            return t

    def draw(rng, n):
        return rng.uniform(-5, 8, size=n), rng.normal(size=n)

    with pytest.raises(TypeError, match="draw"):
        check_loss(Exponential())
    with np.errstate(over="ignore"):  # the conjugate's law looks at z = 1e12
        check_loss(Exponential(), draw=draw)


# ---------------------------------------------------------------------------- values, to 50 digits


def exact(loss, z, y):
    """The loss by its textbook formula in mpmath."""
    z, y, zero = mpmath.mpf(z), mpmath.mpf(y), mpmath.mpf(0)
    e, eta = y - z, y * z
    match loss:
        case Squared():
            return e**2 / 2
        case Absolute():
            return abs(e)
        case Quantile():
            return max(mpmath.mpf(loss.up) * e, -mpmath.mpf(loss.down) * e)
        case Huber():
            d = mpmath.mpf(loss.delta)
            return e**2 / 2 if abs(e) <= d else d * abs(e) - d**2 / 2
        case Tukey():
            d = mpmath.mpf(loss.delta)
            return d**2 / 6 * (1 - (1 - min(e**2 / d**2, mpmath.mpf(1))) ** 3)
        case Logistic():
            return mpmath.log1p(mpmath.exp(-eta))
        case Hinge():
            return max(1 - eta, zero)
        case SquaredHinge():
            return max(1 - eta, zero) ** 2
        case SquareMargin():
            return (1 - eta) ** 2
        case PerceptronLoss():
            return max(-eta, zero)
        case ModifiedHuber():
            return -4 * eta if eta < -1 else max(1 - eta, zero) ** 2
        case EpsilonInsensitive():
            return max(abs(e) - mpmath.mpf(loss.epsilon), zero)
        case SquaredEpsilonInsensitive():
            return max(abs(e) - mpmath.mpf(loss.epsilon), zero) ** 2
        case _:
            return mpmath.mpf(1 if eta <= 0 else 0)


@pytest.mark.spec("LOS-1")
@pytest.mark.parametrize("loss", LOSSES[:-1], ids=repr)
def test_values_equal_the_formula_in_50_digits(loss):
    mpmath.mp.dps = 50
    rng = np.random.default_rng(3)
    z = np.concatenate([rng.normal(size=30), 10.0 ** rng.uniform(-6, 3, size=30)])
    y = rng.choice([-1.0, 1.0], size=60)
    got = loss.pointwise(z, y)
    # e = y - z is exact to one rounding of the larger of the two: that much times the slope is lost.
    slope = np.abs(loss.grad(z, y))
    for i in range(60):
        want = exact(loss, z[i], y[i])
        bound = 8 * np.finfo(float).eps * (abs(float(want)) + slope[i] * max(1, abs(z[i])))
        assert abs(float(got[i] - want)) <= bound


def test_value_is_the_weighted_mean():
    z, y, s = np.array([0.0, 2.0]), np.zeros(2), np.array([3.0, 1.0])
    assert Squared().value(z, y) == 1.0
    assert Squared().value(z, y, s) == 0.5


# ---------------------------------------------------------------------------- LOS-2, LOS-3


@pytest.mark.spec("LOS-2")
def test_mse_gradient_and_its_unbounded_outlier():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(20, 3)), rng.normal(size=20), rng.normal(size=3)
    loss, h = Squared(), 1e-6
    stated = X.T @ loss.grad(X @ w, y) / 20
    np.testing.assert_allclose(stated, -X.T @ (y - X @ w) / 20, rtol=1e-14)
    for j in range(3):
        step = h * np.eye(3)[j]
        measured = (loss.value(X @ (w + step), y) - loss.value(X @ (w - step), y)) / (2 * h)
        assert measured == pytest.approx(stated[j], abs=1e-9)  # eps |f| / h
    shifts = []
    for outlier in (1e3, 1e6, 1e9):
        moved = y.copy()
        moved[0] = outlier
        shifts.append(np.linalg.norm(np.linalg.lstsq(X, moved, rcond=None)[0]))
    ratios = np.array(shifts[1:]) / shifts[:-1]
    np.testing.assert_allclose(ratios, 1e3, rtol=1e-1)  # proportional to the outlier


@pytest.mark.spec("LOS-3")
def test_mae_minimiser_is_the_median_and_the_triangle_inequality():
    rng = np.random.default_rng(1)
    y = rng.normal(size=41)
    loss = Absolute()
    best = minimize_scalar(
        lambda c: loss.value(np.full(41, c), y), bounds=(-3, 3), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    assert best.x == pytest.approx(np.median(y), abs=1e-8)
    u, v, t = rng.normal(size=(3, 1000))
    t = expit(t)
    zero = np.zeros(1000)
    middle = loss.pointwise(t * u + (1 - t) * v, zero)
    assert (middle <= t * loss.pointwise(u, zero) + (1 - t) * loss.pointwise(v, zero) + 1e-15).all()
    # The subgradient of the mean is -(1/N) sum sign(e_n) x_n (ERR-3).
    X, w = rng.normal(size=(41, 2)), rng.normal(size=2)
    np.testing.assert_allclose(X.T @ loss.grad(X @ w, y), -X.T @ np.sign(y - X @ w), rtol=1e-14)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.75])
def test_quantile_minimiser_is_the_quantile(q):
    y = np.random.default_rng(2).normal(size=101)
    loss = Quantile(q)
    at_order = [loss.value(np.full(101, c), y) for c in np.sort(y)]
    # n q is not an integer: the minimiser is the single order statistic ceil(n q).
    assert int(np.argmin(at_order)) + 1 == math.ceil(101 * q)


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, math.nan])
def test_quantile_level_is_checked(q):
    with pytest.raises(ValueError, match="q must lie"):
        Quantile(q)


# ---------------------------------------------------------------------------- LOS-4, LOS-5


@pytest.mark.spec("LOS-4")
@pytest.mark.parametrize("delta", [0.1, 1.0, 1.35, 7.0])
def test_huber_is_smooth_at_delta_and_joins_its_limits(delta):
    loss, zero = Huber(delta), np.zeros(1)
    below, above = np.array([np.nextafter(delta, 0)]), np.array([np.nextafter(delta, 99)])
    for side in (below, np.array([delta]), above):
        assert loss.pointwise(side, zero)[0] == pytest.approx(delta**2 / 2, rel=1e-14)
        assert loss.grad(side, zero)[0] == pytest.approx(delta, rel=1e-14)
        assert loss.grad(-side, zero)[0] == pytest.approx(-delta, rel=1e-14)
    e, zero = np.linspace(-50, 50, 101), np.zeros(101)
    np.testing.assert_array_equal(Huber(1e6).pointwise(e, zero), 0.5 * e**2)
    # Huber/delta = |e| - delta/2 for |e| > delta, and within [0, delta/2] below.
    small = Huber(1e-6).pointwise(e, zero) / 1e-6
    np.testing.assert_allclose(small, np.abs(e), atol=0.5e-6 * (1 + 1e-8))


@pytest.mark.spec("LOS-5")
@pytest.mark.parametrize("delta", [0.5, 4.685])
def test_tukey_derivative_concavity_cap_and_zero_influence(delta):
    loss = Tukey(delta)
    e = np.linspace(-0.999, 0.999, 201) * delta
    zero, h = np.zeros(201), 1e-6 * delta
    measured = (loss.pointwise(e + h, zero) - loss.pointwise(e - h, zero)) / (2 * h)
    np.testing.assert_allclose(measured, e * (1 - e**2 / delta**2) ** 2, atol=1e-8 * delta)
    np.testing.assert_allclose(loss.grad(e, zero), e * (1 - e**2 / delta**2) ** 2, rtol=1e-12)
    assert loss.hess(e, zero).min() == pytest.approx(-0.8, rel=1e-3)  # at e^2 = 3 delta^2 / 5
    far = delta * np.array([1.0, 1.01, 2.0, 1e6])
    np.testing.assert_allclose(loss.pointwise(far, np.zeros(4)), delta**2 / 6, rtol=1e-15)
    np.testing.assert_array_equal(loss.grad(far, np.zeros(4)), 0.0)
    # Influence: the location estimate does not move when a point beyond delta moves on.
    y = np.array([-0.1, 0.0, 0.05, 0.2]) * delta
    starts = []
    for outlier in (5 * delta, 500 * delta):
        data = np.append(y, outlier)
        r = minimize_scalar(
            lambda c, data=data: loss.value(np.full(5, c), data),
            bounds=(-delta / 2, delta / 2), method="bounded", options={"xatol": 1e-12},
        )  # fmt: skip
        starts.append(r.x)
    assert starts[0] == starts[1]


@pytest.mark.parametrize("cls", [Huber, Tukey])
@pytest.mark.parametrize("delta", [0.0, -1.0, math.inf, math.nan])
def test_delta_is_checked(cls, delta):
    with pytest.raises(ValueError, match="delta"):
        cls(delta)


# ---------------------------------------------------------------------------- LOS-6


@pytest.mark.spec("LOS-6")
def test_surrogates_dominate_the_mistake_and_the_kink_choices():
    eta = np.concatenate([np.linspace(-5, 5, 10_001), [0.0, 1.0]])
    mistakes = ZeroOne().phi(eta)
    assert (Hinge().phi(eta) >= mistakes).all()
    assert (Logistic().phi(eta) / math.log(2) >= mistakes * (1 - 1e-15)).all()
    assert (SquareMargin().phi(eta) >= mistakes).all()
    assert (SquaredHinge().phi(eta) >= mistakes).all()
    assert not (PerceptronLoss().phi(eta) >= mistakes).all()
    np.testing.assert_array_equal(Hinge().slope(np.array([0.0, 1.0, 1.0 + 1e-15])), [-1, -1, 0])
    np.testing.assert_array_equal(
        PerceptronLoss().slope(np.array([-1.0, 0.0, 1e-300])), [-1, -1, 0]
    )
    np.testing.assert_array_equal(ZeroOne().phi(np.array([-1.0, 0.0, 1e-300])), [1, 1, 0])
    np.testing.assert_array_equal(Hinge().phi(np.array([-1.0, 0.5, 2.0])), [2, 0.5, 0])
    np.testing.assert_array_equal(SquareMargin().phi(np.array([-1.0, 3.0])), [4, 4])


def test_zero_one_has_no_prox():
    with pytest.raises(TypeError, match="not attained"):
        ZeroOne().prox(np.zeros(1), np.ones(1), 1.0)


# ---------------------------------------------------------------------------- LOS-7, LOS-8


@pytest.mark.spec("LOS-7")
def test_logistic_codings_agree_and_are_stable():
    mpmath.mp.dps = 50
    rng = np.random.default_rng(4)
    g = np.concatenate([rng.normal(scale=5, size=500), [0.0, 1000.0, -1000.0, 709.8, -709.8, 40.0]])
    for label in (0.0, 1.0):
        y = np.full(len(g), label)
        coded, margin = logistic_01(g, y), Logistic().pointwise(g, 2 * y - 1)
        np.testing.assert_allclose(coded, margin, rtol=1e-15, atol=1e-15)
        for got, at in zip(margin, g):
            want = mpmath.log(1 + mpmath.exp(mpmath.mpf(at))) - label * mpmath.mpf(at)
            assert float(abs(got - want)) <= 4e-16 * max(1.0, float(want))
    assert logistic_01(np.array([1000.0, -1000.0]), np.array([0.0, 1.0])).tolist() == [1000, 1000]
    assert logistic_01(np.array([1000.0, -1000.0]), np.array([1.0, 0.0])).tolist() == [0, 0]
    # Small losses keep their relative accuracy: log(1 + e^-40) is e^-40 to 1e-17.
    assert Logistic().phi(np.array([40.0]))[0] == pytest.approx(math.exp(-40), rel=1e-15)


@pytest.mark.spec("LOS-8")
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_softmax_cross_entropy(classes):
    rng = np.random.default_rng(5)
    loss = Softmax()
    y = rng.integers(classes, size=30).astype(float)
    uniform = loss.pointwise(np.full((30, classes), 3.7), y)
    np.testing.assert_allclose(uniform, math.log(classes), rtol=1e-14)
    z = rng.normal(scale=3, size=(30, classes))
    shifted = loss.pointwise(z + rng.normal(scale=100, size=(30, 1)), y)
    np.testing.assert_allclose(shifted, loss.pointwise(z, y), atol=1e-12)  # eps * 300 * few
    onehot = np.eye(classes)[y.astype(int)]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss.grad(z, y), p - onehot, atol=1e-15 * 4)
    np.testing.assert_allclose(loss.pointwise(z, y), -(onehot * np.log(p)).sum(axis=1), rtol=1e-12)
    assert loss.pointwise(np.array([[1e4, 0.0]]), np.array([1.0]))[0] == 1e4


@pytest.mark.spec("LOS-8")
def test_two_class_softmax_is_logistic():
    rng = np.random.default_rng(6)
    z, y = rng.normal(scale=3, size=(40, 2)), rng.integers(2, size=40).astype(float)
    margin = Logistic().pointwise(z[:, 1] - z[:, 0], 2 * y - 1)
    np.testing.assert_allclose(Softmax().pointwise(z, y), margin, atol=2e-15, rtol=1e-13)


@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=repr)
def test_iterative_proxes_converge_for_extreme_arguments(loss, step):
    """The stationarity t - z + step * l'(t) = 0, relative to the size of its terms."""
    far = np.array([-1e3, -30.0, -1.0, 0.0, 1.0, 30.0, 1e3])
    if isinstance(loss, Softmax):
        z = np.column_stack([far, np.zeros(7), -far / 2])
        y = np.array([0.0, 0, 0, 1, 2, 1, 2])
    else:
        z, y = far, np.array([1.0, 1, 1, -1, 1, -1, 1])
    t = loss.prox(z, y, step)
    residual = t - z + step * loss.grad(t, y)
    # Newton leaves the rounding of t times the slope of the residual, 1 + step * curvature.
    bound = 1e-13 * (np.abs(z).max() + np.abs(t).max()) * (1 + step * loss.smoothness)
    assert np.abs(residual).max() <= bound
