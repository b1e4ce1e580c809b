"""Confidence intervals cover what they say, as often as they say, and are as short as they can be."""

import math

import numpy as np
import pytest
from scipy import special, stats
from tests.summary_tools import COVERAGE, UNPENALISED, with_ones

from surefit.densities import fisher_information
from surefit.linear_model import LinearRegression, LogisticRegression, Ridge


def coverage(s, truth, count):
    """How many intervals hold the truth, as standard deviations away from what the level promises."""
    inside = ((s.low <= truth) & (truth <= s.high)).sum(axis=0)
    return (inside - s.level * count) / math.sqrt(count * s.level * (1 - s.level))


@pytest.mark.spec("REG-8")
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_least_squares_cover_exactly(level):
    """12 rows, 4 parameters: exact at any size, where the normal law would be far off."""
    rng = np.random.default_rng(0)
    X, truth, draws = rng.normal(size=(12, 3)), np.array([1.0, -2.0, 0.0, 0.5]), 4000
    Y = (with_ones(X) @ truth)[:, None] + 0.7 * rng.normal(size=(12, draws))
    s = LinearRegression().fit(X, Y).summary(X, Y, level=level)
    assert np.abs(coverage(s, truth, draws)).max() < COVERAGE
    # under the null hypothesis (the third parameter is 0) p-values are uniform
    assert stats.kstest(s.p_value[:, 2], "uniform").pvalue > 1e-3
    if level == 0.95:
        narrow = 1.96 * s.std_error
        inside = (np.abs(s.coef - truth) <= narrow).mean()
        assert inside < 0.93  # what the normal law would have claimed to be 0.95


@pytest.mark.spec("REG-7", "REG-8")
def test_standard_errors_reach_the_cramer_rao_bound_and_fall_as_one_over_root_n():
    rng = np.random.default_rng(1)
    truth, sigma, draws, sizes = np.array([1.0, -2.0, 0.5]), 0.7, 2000, (30, 120, 480)
    errors = []
    for n in sizes:
        X = rng.normal(size=(n, 2))
        Y = (with_ones(X) @ truth)[:, None] + sigma * rng.normal(size=(n, draws))
        s = LinearRegression().fit(X, Y).summary(X, Y)
        bound = np.linalg.inv(fisher_information(with_ones(X), sigma))
        scale = np.sqrt(np.outer(np.diag(bound), np.diag(bound)))
        # efficient: the covariance over the draws is the bound, and so is what each summary says on average
        assert (np.abs(np.cov(s.coef.T) - bound) <= 5 * math.sqrt(2 / draws) * scale).all()
        assert (
            np.abs(s.covariance.mean(axis=0) - bound) <= 5 * math.sqrt(2 / draws / (n - 3)) * scale
        ).all()
        # unbiased noise variance; the maximum-likelihood one is too small by (n - 3) / n
        assert s.noise.variance.mean() == pytest.approx(
            sigma**2, abs=5 * sigma**2 * math.sqrt(2 / draws / (n - 3))
        )
        assert s.noise.variance_mle.mean() / s.noise.variance.mean() == pytest.approx((n - 3) / n)
        errors.append(s.std_error.mean())
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(-0.5, abs=0.05)


def test_the_sandwich_covers_where_the_fisher_information_does_not():
    """Noise that grows with x: equal variance is a wrong assumption."""
    rng = np.random.default_rng(2)
    X, truth, draws = rng.normal(size=(150, 1)), np.array([1.0, 2.0]), 600
    noise = (0.2 + np.abs(X)) * rng.normal(size=(150, draws))
    Y = (with_ones(X) @ truth)[:, None] + noise
    model = LinearRegression().fit(X, Y)
    assert coverage(model.summary(X, Y), truth, draws)[1] < -10
    assert np.abs(coverage(model.summary(X, Y, covariance="HC3"), truth, draws)).max() < COVERAGE


def test_ridge_intervals_cover_the_expectation_of_the_estimator_not_the_truth():
    rng = np.random.default_rng(3)
    X, truth, draws = rng.normal(size=(40, 3)), np.array([1.0, 3.0, -2.0, 0.0]), 3000
    A = with_ones(X)
    Y = (A @ truth)[:, None] + rng.normal(size=(40, draws))
    s = Ridge(8.0).fit(X, Y).summary(X, Y)
    B = np.linalg.inv(A.T @ A + 8.0 * np.diag([0.0, 1.0, 1.0, 1.0]))
    expected = B @ A.T @ A @ truth
    # the noise is over-estimated by the squared bias, so the intervals are on the safe side
    assert coverage(s, expected, draws).min() > -COVERAGE
    assert coverage(s, truth, draws)[1] < -10
    exact = B @ A.T @ A @ B
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert (np.abs(np.cov(s.coef.T) - exact) <= 5 * math.sqrt(2 / draws) * scale).all()
    assert s.noise.variance.mean() > 1.0


@pytest.mark.spec("REG-8")
def test_logistic_intervals_cover_and_estimates_are_normal():
    rng = np.random.default_rng(4)
    truth, draws, n = np.array([0.3, 1.0, -0.5]), 300, 400
    X = rng.normal(size=(n, 2))
    p = special.expit(with_ones(X) @ truth)
    bound = np.linalg.inv((with_ones(X).T * (p * (1 - p))) @ with_ones(X))
    coefs, hits, errors = [], 0, []
    for _ in range(draws):
        labels = (rng.random(n) < p).astype(int)
        s = LogisticRegression(**UNPENALISED, certify=False).fit(X, labels).summary(X, labels)
        coefs.append(s.coef)
        errors.append(s.std_error)
        hits = hits + ((s.low <= truth) & (truth <= s.high))
    away = (hits - 0.95 * draws) / math.sqrt(draws * 0.95 * 0.05)
    assert np.abs(away).max() < COVERAGE
    z = (np.array(coefs) - truth) / np.sqrt(np.diag(bound))
    for (
        column
    ) in z.T:  # sqrt(N)(w - w*) -> N(0, F^-1); a small-sample bias of order 1/sqrt(N) is left
        assert stats.kstest(column, "norm").pvalue > 1e-3
    assert np.mean(errors, axis=0) == pytest.approx(np.sqrt(np.diag(bound)), rel=0.05)
