"""Maximum likelihood: the Gaussian, least squares, its asymptotics, and the Laplace density."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import linprog, minimize, minimize_scalar

from surefit.densities import (
    Gaussian,
    Laplace,
    fisher_information,
    gaussian_log_likelihood,
    gaussian_noise_scale,
    laplace_log_likelihood,
    laplace_noise_scale,
)

COV = np.array([[2.0, 0.7], [0.7, 0.5]])
MEAN = np.array([1.0, -2.0])


def regression(n=60, seed=0, noise="normal"):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    return X, X @ np.array([1.0, -2.0, 0.5]) + 0.7 * getattr(rng, noise)(size=n)


# ---------------------------------------------------------------------------- REG-6


@pytest.mark.spec("REG-6")
def test_gaussian_integrates_to_one_and_equals_scipy():
    g = Gaussian(MEAN, COV)
    axes = [m + np.linspace(-9, 9, 361) * math.sqrt(v) for m, v in zip(MEAN, np.diag(COV))]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    density = np.exp(g.log_prob(grid.reshape(-1, 2))).reshape(361, 361)
    mass = integrate.trapezoid(integrate.trapezoid(density, axes[1]), axes[0])
    assert mass == pytest.approx(
        1.0, abs=1e-12
    )  # spectral accuracy; the tails beyond 9 sigma are 1e-19
    rng = np.random.default_rng(0)
    for d in (1, 2, 7):
        A = rng.normal(size=(d, d))
        cov, mean = A @ A.T + 0.1 * np.eye(d), rng.normal(size=d)
        x = rng.normal(scale=3, size=(50, d))
        want = stats.multivariate_normal(mean, cov).logpdf(x)
        np.testing.assert_allclose(Gaussian(mean, cov).log_prob(x), want, rtol=1e-10)
    # The constant of the notes has the wrong sign in its exponent (ERR-14): in one dimension 1/sqrt(2 pi).
    assert Gaussian([0.0], [[1.0]]).log_prob([[0.0]])[0] == pytest.approx(
        -0.5 * math.log(2 * math.pi)
    )


@pytest.mark.spec("REG-6")
@pytest.mark.parametrize(
    ("cov", "smallest"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "-1"),
        ([[1.0, 1.0], [1.0, 1.0]], ""),
        ([[-3.0]], "-3"),
        ([[0.0]], "0"),
    ],
)
def test_covariance_must_be_positive_definite(cov, smallest):
    with pytest.raises(ValueError, match=f"smallest eigenvalue is {smallest}"):
        Gaussian(np.zeros(len(cov)), cov)


@pytest.mark.spec("REG-6")
def test_covariance_is_checked_for_shape_and_symmetry():
    with pytest.raises(ValueError, match="symmetric"):
        Gaussian([0.0, 0.0], [[1.0, 0.5], [0.2, 1.0]])
    with pytest.raises(ValueError, match="square"):
        Gaussian([0.0, 0.0], [[1.0]])
    with pytest.raises(ValueError, match="columns"):
        Gaussian(MEAN, COV).log_prob([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="more samples than features"):
        Gaussian.fit(np.eye(3))  # three points in a plane of R^3
    with pytest.raises(ValueError, match="shape"):
        Gaussian.fit(np.zeros((0, 2)))


@pytest.mark.spec("REG-6")
def test_gaussian_fit_maximises_the_likelihood():
    x = Gaussian(MEAN, COV).sample(300, random_state=0)
    best = Gaussian.fit(x)
    np.testing.assert_allclose(best.cov, np.cov(x.T, bias=True), rtol=1e-12)
    top = best.log_prob(x).sum()
    rng = np.random.default_rng(1)
    for _ in range(50):
        B = 0.05 * rng.normal(size=(2, 2))
        other = Gaussian(best.mean + 0.05 * rng.normal(size=2), best.cov + B @ B.T)
        assert other.log_prob(x).sum() < top
    # Stretching the covariance either way loses, to second order: 300 * (2/4) * 0.01^2.
    for factor in (0.99, 1.01):
        lost = top - Gaussian(best.mean, factor * best.cov).log_prob(x).sum()
        assert lost == pytest.approx(300 * 2 / 4 * 1e-4, rel=0.02)


@pytest.mark.spec("REG-6")
def test_gaussian_samples_have_its_moments_and_are_reproducible():
    g = Gaussian(MEAN, COV)
    x = g.sample(200_000, random_state=3)
    # Standard errors sqrt(cov_ii / n) and about 2 cov / sqrt(n); five of them.
    np.testing.assert_allclose(x.mean(axis=0), MEAN, atol=5 * math.sqrt(2 / 200_000))
    np.testing.assert_allclose(np.cov(x.T), COV, atol=5 * 2 * 2 / math.sqrt(200_000))
    np.testing.assert_array_equal(g.sample(5, 7), g.sample(5, np.random.default_rng(7)))
    old = np.random.RandomState(0)
    assert not np.array_equal(g.sample(5, old), g.sample(5, old))


# ---------------------------------------------------------------------------- REG-7


@pytest.mark.spec("REG-7")
def test_gaussian_maximum_likelihood_is_least_squares():
    X, y = regression()
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    e = y - X @ w
    sigma = gaussian_noise_scale(e)
    assert sigma**2 == pytest.approx(np.mean(e**2), rel=1e-14)
    r = minimize(
        lambda t: -gaussian_log_likelihood(y - X @ t[:3], math.exp(t[3])), np.zeros(4),
        method="BFGS", options={"gtol": 1e-6},
    )  # fmt: skip
    np.testing.assert_allclose(r.x[:3], w, atol=1e-6)
    assert math.exp(r.x[3]) == pytest.approx(sigma, rel=1e-6)
    assert -r.fun == pytest.approx(gaussian_log_likelihood(e, sigma), abs=1e-8)
    # log p = -(1/2 sigma^2) sum e^2 + const (ERR-15), and scipy's density.
    for s in (0.5, 2.0):
        got = gaussian_log_likelihood(e, s) - gaussian_log_likelihood(0 * e, s)
        assert got == pytest.approx(-np.sum(e**2) / (2 * s**2), rel=1e-12)
        assert gaussian_log_likelihood(e, s) == pytest.approx(
            stats.norm(scale=s).logpdf(e).sum(), rel=1e-12
        )


# ---------------------------------------------------------------------------- REG-8


@pytest.mark.spec("REG-8")
def test_fisher_information_is_the_negative_hessian():
    X, y = regression()
    w, sigma, h = np.array([0.3, -1.0, 0.2]), 0.7, 1e-3

    def log_p(v):
        return gaussian_log_likelihood(y - X @ v, sigma)

    F = fisher_information(X, sigma)
    for i in range(3):
        for j in range(3):
            a, b = h * np.eye(3)[i], h * np.eye(3)[j]
            bend = log_p(w + a + b) - log_p(w + a - b) - log_p(w - a + b) + log_p(w - a - b)
            # The log-likelihood is quadratic: only rounding, eps |log p| / h^2, is left.
            assert F[i, j] == pytest.approx(-bend / (4 * h * h), abs=1e-6 * abs(F).max())


@pytest.mark.spec("REG-8")
def test_covariance_of_the_estimate_and_the_square_root_law():
    rng = np.random.default_rng(0)
    truth, sigma, draws = np.array([1.0, -2.0, 0.5]), 0.7, 20_000
    X, _ = regression(n=50)
    noise = sigma * rng.normal(size=(draws, 50))
    estimates = truth + noise @ np.linalg.pinv(X).T
    want = np.linalg.inv(fisher_information(X, sigma))
    np.testing.assert_allclose(want, sigma**2 * np.linalg.inv(X.T @ X), rtol=1e-10)
    scale = np.sqrt(np.outer(np.diag(want), np.diag(want)))
    # An entry of a sample covariance has standard error <= sqrt(2) scale / sqrt(draws); five of them.
    assert (np.abs(np.cov(estimates.T) - want) <= 5 * math.sqrt(2 / draws) * scale).all()
    assert np.abs(estimates.mean(axis=0) - truth).max() <= 5 * math.sqrt(want.max() / draws)
    # Efficiency: the estimate from half of the rows is unbiased too, and varies more in every direction.
    half = np.linalg.inv(fisher_information(X[::2], sigma))
    assert np.linalg.eigvalsh(half - want)[0] > 0
    # Consistency: the root mean squared error falls as N^(-1/2).
    sizes, errors = np.array([25, 100, 400, 1600]), []
    for n in sizes:
        design = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
        w = truth + sigma * rng.normal(size=(2000, n)) @ np.linalg.pinv(design).T
        errors.append(math.sqrt(np.mean((w - truth) ** 2)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)


@pytest.mark.spec("REG-8")
def test_asymptotic_law_of_the_laplace_median():
    """sqrt(N)(median - loc) -> N(0, F^-1) with F = 1/b^2: half the variance of the mean."""
    rng = np.random.default_rng(1)
    x = rng.laplace(scale=2.0, size=(4000, 801))
    scaled = math.sqrt(801) * np.median(x, axis=1)
    assert scaled.var() == pytest.approx(4.0, rel=0.12)  # 5 * sqrt(2/4000), and a term in 1/sqrt(N)
    assert 801 * x.mean(axis=1).var() == pytest.approx(8.0, rel=0.12)
    assert stats.kstest(scaled / scaled.std(), "norm").pvalue > 1e-3


# ---------------------------------------------------------------------------- REG-9


@pytest.mark.spec("REG-9")
def test_laplace_density_and_its_maximum_likelihood():
    law = Laplace(1.5, 0.6)
    mass = integrate.quad(lambda t: math.exp(law.log_prob(t)), -40, 1.5)[0]
    mass += integrate.quad(lambda t: math.exp(law.log_prob(t)), 1.5, 40)[0]
    assert mass == pytest.approx(1.0, abs=1e-9)
    x = law.sample(101, random_state=0)
    np.testing.assert_allclose(law.log_prob(x), stats.laplace(1.5, 0.6).logpdf(x), rtol=1e-12)
    best = Laplace.fit(x)
    assert best.loc == np.median(x)  # the constant model gives the median
    assert best.scale == pytest.approx(laplace_noise_scale(x - best.loc), rel=1e-14)
    assert best.scale == pytest.approx(np.mean(np.abs(x - np.median(x))), rel=1e-14)
    r = minimize_scalar(
        lambda t: -laplace_log_likelihood(x - best.loc, math.exp(t)), bounds=(-4, 4),
        method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    assert math.exp(r.x) == pytest.approx(best.scale, rel=1e-6)
    shifted = [laplace_log_likelihood(x - c, best.scale) for c in np.linspace(-3, 6, 2001)]
    assert max(shifted) <= laplace_log_likelihood(x - best.loc, best.scale)
    assert laplace_log_likelihood(x - 1.5, 0.6) == pytest.approx(law.log_prob(x).sum(), rel=1e-12)
    many = law.sample(100_000, random_state=1)
    assert np.median(many) == pytest.approx(1.5, abs=5 * 0.6 / math.sqrt(100_000))
    assert laplace_noise_scale(many - 1.5) == pytest.approx(0.6, abs=5 * 0.6 / math.sqrt(100_000))


@pytest.mark.spec("REG-9")
def test_laplace_maximum_likelihood_is_least_absolute_deviations():
    """The LP optimum equals the limit of the subgradient method, within that method's own bound."""
    X, y = regression(noise="laplace")
    n = len(y)
    # min sum(u + v) with Xw + u - v = y.
    lp = linprog(
        np.concatenate([np.zeros(3), np.ones(2 * n)]), A_eq=np.hstack([X, np.eye(n), -np.eye(n)]),
        b_eq=y, bounds=[(None, None)] * 3 + [(0, None)] * (2 * n),
    )  # fmt: skip
    optimum, w_lp = lp.fun / n, lp.x[:3]
    w, best, steps, G = np.zeros(3), math.inf, 20_000, np.linalg.norm(X, axis=1).mean()
    squares = total = 0.0
    for k in range(steps):
        e = y - X @ w
        best = min(best, float(np.abs(e).mean()))
        step = 1.0 / math.sqrt(k + 1.0)
        w = w + step * X.T @ np.sign(e) / n
        squares, total = squares + step**2, total + step
    bound = (w_lp @ w_lp + G**2 * squares) / (2 * total)  # OPT-11
    assert optimum - 1e-12 <= best <= optimum + bound
    assert best == pytest.approx(optimum, rel=1e-3)

    # The likelihood with b = mean|e| at the LP solution beats least squares and random neighbours.
    def profile(v):
        e = y - X @ v
        return laplace_log_likelihood(e, laplace_noise_scale(e))

    rng = np.random.default_rng(0)
    others = [np.linalg.lstsq(X, y, rcond=None)[0], *(w_lp + 0.02 * rng.normal(size=(200, 3)))]
    assert all(profile(v) < profile(w_lp) for v in others)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_scales_are_checked(scale):
    for make in (
        lambda: Laplace(0.0, scale),
        lambda: gaussian_log_likelihood([1.0], scale),
        lambda: laplace_log_likelihood([1.0], scale),
        lambda: fisher_information([[1.0]], scale),
    ):
        with pytest.raises(ValueError, match="positive finite"):
            make()
