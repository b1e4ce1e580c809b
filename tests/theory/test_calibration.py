"""Calibration: does minimising a surrogate give the Bayes sign? (CAL-1, CAL-2, CAL-3)"""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from surefit.losses import (
    Hinge,
    Logistic,
    PerceptronLoss,
    SquaredHinge,
    SquareMargin,
    ZeroOne,
    risk_minimizer,
    slopes_at_zero,
)

CONVEX = [Hinge(), Logistic(), SquareMargin(), SquaredHinge(), PerceptronLoss()]


@pytest.mark.spec("CAL-1")
@pytest.mark.parametrize(
    ("loss", "want"),
    [
        (Hinge(), 1.0),
        (Logistic(), 0.8473),
        (SquareMargin(), 0.4),
        (SquaredHinge(), 0.4),
        (PerceptronLoss(), 0.0),
    ],
    ids=repr,
)
def test_minimisers_at_seventy_percent(loss, want):
    """The numbers of the notes; golden section on a smooth risk is good to sqrt(eps)."""
    assert risk_minimizer(loss, 0.7) == pytest.approx(want, abs=5e-5 if want == 0.8473 else 1e-7)
    assert risk_minimizer(loss, 0.3) == pytest.approx(-want, abs=5e-5 if want == 0.8473 else 1e-7)


@pytest.mark.spec("CAL-1")
@pytest.mark.parametrize("p", [0.01, 0.2, 0.4, 0.49, 0.51, 0.6, 0.8, 0.99])
def test_minimisers_in_closed_form_and_their_signs(p):
    bayes = math.copysign(1.0, p - 0.5)
    assert risk_minimizer(Hinge(), p) == pytest.approx(bayes, abs=1e-7)
    assert risk_minimizer(Logistic(), p) == pytest.approx(math.log(p / (1 - p)), abs=1e-6)
    assert risk_minimizer(SquareMargin(), p) == pytest.approx(2 * p - 1, abs=1e-6)
    assert risk_minimizer(SquaredHinge(), p) == pytest.approx(2 * p - 1, abs=1e-6)
    assert risk_minimizer(PerceptronLoss(), p) == pytest.approx(0.0, abs=1e-7)  # no sign


def wrong_sign_costs(loss, p):
    """inf of the conditional risk over the wrong sign (0 included), minus its infimum."""
    z = np.concatenate([np.linspace(-30, 30, 6001), [-1e-12, 1e-12]])
    risk = p * loss.phi(z) + (1 - p) * loss.phi(-z)
    return risk[z * (2 * p - 1) <= 0].min() - risk.min()


@pytest.mark.spec("CAL-1", "CAL-2")
@pytest.mark.parametrize("loss", [*CONVEX, ZeroOne()], ids=repr)
def test_calibration_flag(loss):
    """Calibrated iff the wrong sign costs something at every p != 1/2."""
    costs = [wrong_sign_costs(loss, p) for p in (0.05, 0.3, 0.45, 0.55, 0.7, 0.95)]
    assert (min(costs) > 1e-4) == loss.calibrated
    assert loss.calibrated == (not isinstance(loss, PerceptronLoss))


@pytest.mark.spec("CAL-2")
@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_bartletts_slope_criterion(loss):
    """A convex loss is calibrated iff it is differentiable at 0 with a negative slope."""
    left, right = slopes_at_zero(loss)
    differentiable = abs(left - right) < 1e-5  # h phi'' = 2e-7 where it is
    assert (differentiable and right < 0) == loss.calibrated
    signs = [
        np.sign(round(risk_minimizer(loss, p), 6)) == np.sign(p - 0.5) for p in (0.2, 0.6, 0.9)
    ]
    assert all(signs) == loss.calibrated


@pytest.mark.spec("CAL-2")
def test_slopes_at_zero_have_their_values():
    for loss, slope in (
        (Hinge(), -1),
        (Logistic(), -0.5),
        (SquareMargin(), -2),
        (SquaredHinge(), -2),
    ):
        left, right = slopes_at_zero(loss)
        assert left == pytest.approx(slope, abs=1e-6)
        assert right == pytest.approx(slope, abs=1e-6)
    left, right = slopes_at_zero(PerceptronLoss())
    assert (left, right) == (pytest.approx(-1), pytest.approx(0))


@pytest.mark.spec("CAL-3")
@pytest.mark.parametrize("seed", range(5))
def test_hinge_minimiser_over_all_functions_is_bayes_optimal(seed):
    """A discrete law on ten points: the free hinge minimiser, an exact LP, has the Bayes risk."""
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.ones(10))
    p = rng.uniform(0.02, 0.98, size=10)
    # Variables f (free), a >= 1 - f, b >= 1 + f; the risk is sum mass (p a + (1 - p) b).
    eye, zero = np.eye(10), np.zeros((10, 10))
    r = linprog(
        np.concatenate([np.zeros(10), mass * p, mass * (1 - p)]),
        A_ub=np.block([[-eye, -eye, zero], [eye, zero, -eye]]), b_ub=-np.ones(20),
        bounds=[(None, None)] * 10 + [(0, None)] * 20,
    )  # fmt: skip
    f = r.x[:10]
    np.testing.assert_allclose(f, np.sign(p - 0.5), atol=1e-9)  # the minimiser is the Bayes rule
    bayes_risk = float(mass @ np.minimum(p, 1 - p))
    zero_one = float(mass @ np.where(f > 0, 1 - p, p))
    assert zero_one == pytest.approx(bayes_risk, abs=1e-15)
    assert r.fun == pytest.approx(2 * bayes_risk, abs=1e-12)
    # Each point on its own, by the library's scalar minimiser.
    alone = [risk_minimizer(Hinge(), q) for q in p]
    np.testing.assert_allclose(f, alone, atol=1e-6)
    # The perceptron loss has f = 0 among its minimisers, which predicts nothing.
    assert all(abs(risk_minimizer(PerceptronLoss(), q)) < 1e-7 for q in p)


@pytest.mark.spec("CAL-3")
def test_over_all_functions_is_needed():
    """Among f(x) = w x the hinge minimiser can have the worse of the two signs."""
    x, mass, y = np.array([1.0, 10.0]), np.array([0.6, 0.4]), np.array([1.0, -1.0])
    w = np.linspace(-1, 1, 200_001)
    hinge = mass @ np.maximum(0, 1 - y[:, None] * x[:, None] * w)
    best = w[np.argmin(hinge)]
    assert best == pytest.approx(-0.1, abs=1e-5)
    zero_one = [float(mass @ (y * x * v <= 0)) for v in (best, 1.0)]
    assert zero_one == [pytest.approx(0.6), pytest.approx(0.4)]
