"""Noise, bias and variance add up to the error (GEN-8); too poor and too rich models (GEN-9)."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from surefit.linear_model import LinearRegression, Ridge
from surefit.model_selection import ShuffleSplit, bias_variance, learning_curve, validation_curve

X = np.linspace(-1, 1, 31)[:, None]


def parabola(rows):
    return 1.0 + 2.0 * rows[:, 0] ** 2


def uniform(n, rng):
    return rng.uniform(-1, 1, size=(n, 1))


def polynomial(degree):
    return make_pipeline(PolynomialFeatures(degree), LinearRegression(certify=False))


@pytest.mark.parametrize("degree", [1, 2, 6])
@pytest.mark.spec("GEN-8")
def test_the_three_terms_sum_to_the_total(degree):
    parts = bias_variance(
        polynomial(degree), parabola, uniform, X, noise=0.5, n_train=40, n_draws=400, random_state=0
    )
    assert abs(parts.gap) < 4 * parts.errors["gap"]
    assert abs(parts.noise - 0.25) < 4 * parts.errors["noise"]
    assert parts.total > parts.noise - 4 * parts.errors["total"]  # the noise is a floor
    if degree == 1:
        # a line against 2 x²: E f_S is near 1 + 2/3, so bias² is near the mean of (2x² - 2/3)²
        assert parts.bias2 == pytest.approx(np.mean((2 * X**2 - 2 / 3) ** 2), rel=0.1)
    else:
        assert abs(parts.bias2) < 4 * max(parts.errors["bias2"], parts.variance / 400)


@pytest.mark.spec("GEN-8")
def test_the_variance_of_least_squares_is_the_known_one():
    """On fixed rows, Var f_S(x) = σ² xᵀ(XᵀX)⁻¹x, and there is no bias."""
    rows = np.random.default_rng(1).normal(size=(20, 3))
    w = np.array([1.0, -2.0, 0.5])
    parts = bias_variance(
        LinearRegression(fit_intercept=False, certify=False),
        lambda X: X @ w,
        lambda n, rng: rows,
        rows,
        noise=0.7,
        n_train=20,
        n_draws=1000,
        random_state=2,
    )
    known = 0.49 * np.einsum("ij,ij->i", rows @ np.linalg.inv(rows.T @ rows), rows)
    assert abs(parts.variance - known.mean()) < 4 * parts.errors["variance"]
    np.testing.assert_allclose(parts.points["variance"], known, rtol=0.3)
    assert abs(parts.bias2) < 4 * parts.errors["bias2"] + 4 * parts.variance / 1000


@pytest.mark.spec("GEN-8")
def test_regularising_trades_variance_for_bias():
    def known(alpha):
        model = make_pipeline(PolynomialFeatures(8), Ridge(alpha=alpha, certify=False))
        return bias_variance(
            model, parabola, uniform, X, noise=0.5, n_train=20, n_draws=150, random_state=3
        )

    loose, tight = known(1e-4), known(10.0)
    assert tight.variance < loose.variance
    assert tight.bias2 > loose.bias2


def test_noise_as_a_function_seeds_and_words():
    def shaken(rows, rng):
        return rng.uniform(-1, 1, size=len(rows))

    keywords = {"noise": shaken, "n_train": 15, "n_draws": 50}
    first = bias_variance(polynomial(1), parabola, uniform, X, random_state=4, **keywords)
    again = bias_variance(polynomial(1), parabola, uniform, X, random_state=4, **keywords)
    other = bias_variance(polynomial(1), parabola, uniform, X, random_state=5, **keywords)
    assert first.total == again.total != other.total
    assert first.noise == pytest.approx(1 / 3, abs=4 * first.errors["noise"])
    assert str(first).splitlines()[0].startswith("noise")
    ax = first.plot(x=X)
    assert len(ax.collections) == 3
    with pytest.raises(ValueError, match="n_draws must be at least 2"):
        bias_variance(polynomial(1), parabola, uniform, X, n_draws=1)


@pytest.fixture(scope="module")
def sine():
    rng = np.random.default_rng(6)
    rows = rng.uniform(-1, 1, size=(600, 1))
    return rows, np.sin(4 * rows[:, 0]) + 0.3 * rng.normal(size=600)


@pytest.mark.spec("GEN-9")
def test_training_error_falls_with_the_degree_and_test_error_is_u_shaped(sine):
    rows, y = sine
    degrees = [0, 1, 3, 5, 9, 14, 18]
    curve = validation_curve(
        polynomial(1),
        rows,
        y,
        param_name="polynomialfeatures__degree",
        param_range=degrees,
        cv=ShuffleSplit(20, train_size=30, test_size=300, random_state=0),
        scoring="neg_mean_squared_error",
    )
    train, test = (-scores.mean(axis=1) for scores in curve)
    assert (np.diff(train) < 0).all()
    best = int(test.argmin())
    assert 0 < best < len(degrees) - 1
    assert (np.diff(test[: best + 1]) < 0).all()
    assert test[-1] > 2 * test[best]


@pytest.mark.spec("GEN-9")
def test_more_rows_close_the_gap(sine):
    rows, y = sine
    curve = learning_curve(
        polynomial(9),
        rows,
        y,
        train_sizes=[25, 50, 100, 400],
        cv=ShuffleSplit(10, train_size=400, test_size=200, random_state=0),
        scoring="neg_mean_squared_error",
    )
    gap = (curve.train_scores - curve.test_scores).mean(axis=1)
    assert (np.diff(gap) < 0).all()
    assert gap[-1] < gap[0] / 5
    assert math.isnan(curve.intervals[0, 0])  # a squared error has no bound of its own
    ax = curve.plot()
    assert len(ax.containers) == 2
