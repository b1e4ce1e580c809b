"""Risks, Hoeffding's inequality, radii for one and for many models, the cost of choosing (GEN-1 to GEN-6)."""

import math

import numpy as np
import pytest
from scipy import stats

from surefit import Status
from surefit.linear_model import Ridge, RidgeClassifier
from surefit.model_selection import (
    HoldOut,
    clopper_pearson,
    empirical_bernstein,
    hoeffding_radius,
    selection_excess,
)
from surefit.model_selection.bounds import bernstein_radius

DELTA = 0.05


def upper(draws, probability):
    """More events than this have probability below 1e-3."""
    return int(stats.binom.ppf(0.999, draws, probability))


@pytest.mark.spec("GEN-1")
def test_the_test_error_is_unbiased_and_the_training_error_optimistic():
    """A threshold on a Gaussian pair: L_D is known, the mean of L_S over draws is L_D."""
    rng, draws, n = np.random.default_rng(0), 4000, 40
    y = rng.integers(0, 2, size=(draws, n))
    X = rng.normal(2.0 * y - 1.0)
    truth = stats.norm.sf(1.0 - 0.3) / 2 + stats.norm.sf(1.0 + 0.3) / 2
    errors = ((X > 0.3) != y).mean(axis=1)  # a fixed classifier
    assert abs(errors.mean() - truth) < 4 * errors.std() / math.sqrt(draws)
    # the threshold with the least error on the sample: its training error is below its true error
    grid = np.linspace(-1.5, 1.5, 61)
    train = ((X[:, None, :] > grid[:, None]) != y[:, None, :]).mean(axis=2)
    best = train.argmin(axis=1)
    risks = (stats.norm.cdf(grid - 1.0) + stats.norm.sf(grid + 1.0)) / 2
    gap = risks[best] - train[np.arange(draws), best]
    assert gap.mean() > 10 * gap.std() / math.sqrt(draws)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-2.0, 3.0)])
@pytest.mark.spec("GEN-2")
def test_hoeffding_bounds_the_frequency_of_deviations(ends):
    """Both tails, any range (ERR-20): the worst case of the two ends with equal probability included."""
    low, high = ends
    rng, draws, n = np.random.default_rng(1), 20_000, 25
    for losses in (rng.integers(0, 2, size=(draws, n)), rng.beta(0.3, 0.7, size=(draws, n))):
        truth = low + (high - low) * (0.5 if losses.dtype.kind == "i" else 0.3)
        means = low + (high - low) * losses.mean(axis=1)
        for epsilon in (high - low) * np.array([0.1, 0.2, 0.3]):
            bound = 2 * math.exp(-2 * n * epsilon**2 / (high - low) ** 2)
            far = int((np.abs(means - truth) >= epsilon).sum())
            assert far <= upper(draws, min(bound, 1.0))


@pytest.mark.spec("GEN-3")
def test_radius_of_one_model():
    assert hoeffding_radius(1000, DELTA) == pytest.approx(0.04295, abs=5e-6)
    assert hoeffding_radius(1000, DELTA, (-1.0, 3.0)) == pytest.approx(4 * 0.04294694, rel=1e-6)
    radius = hoeffding_radius(1000, DELTA)
    assert 2 * math.exp(-2 * 1000 * radius**2) == pytest.approx(DELTA)
    errors = np.random.default_rng(2).binomial(1000, 0.5, size=5000) / 1000
    assert (np.abs(errors - 0.5) <= radius).mean() >= 0.95


@pytest.mark.spec("GEN-4")
def test_radius_of_many_models():
    assert hoeffding_radius(1000, DELTA, models=100) == pytest.approx(0.06440, abs=5e-6)
    several = [hoeffding_radius(1000, DELTA, models=k) for k in (1, 10, 100, 1000)]
    squares = np.diff(np.square(several))  # r² grows by the same step for each factor of ten
    np.testing.assert_allclose(squares, math.log(10) / 2000)
    deviations = np.abs(np.random.default_rng(3).binomial(1000, 0.5, size=(2000, 100)) / 1000 - 0.5)
    wrong = int((deviations.max(axis=1) > several[2]).sum())
    assert wrong <= upper(2000, DELTA)


@pytest.mark.spec("GEN-5")
def test_what_choosing_on_the_test_set_costs():
    assert selection_excess(1000, DELTA, models=100) == 2 * hoeffding_radius(
        1000, DELTA, models=100
    )
    rng = np.random.default_rng(4)
    truth = rng.uniform(0.3, 0.5, size=(2000, 50))
    observed = rng.binomial(100, truth) / 100
    chosen = truth[np.arange(2000), observed.argmin(axis=1)]
    excess = chosen - truth.min(axis=1)
    assert int((excess > selection_excess(100, DELTA, models=50)).sum()) <= upper(2000, DELTA)
    assert excess.mean() > 0  # it does cost something


@pytest.mark.spec("GEN-6")
def test_hold_out_selection_takes_the_least_error_and_states_the_radius():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 30))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    grid = {"alpha": [1e-3, 1.0, 1e3, 1e6]}
    model = HoldOut(RidgeClassifier(), grid, test_size=200, random_state=0).fit(X, y)
    rest = np.setdiff1d(np.arange(400), model.holdout_)
    errors = [
        np.mean(
            RidgeClassifier(alpha=alpha).fit(X[rest], y[rest]).predict(X[model.holdout_])
            != y[model.holdout_]
        )
        for alpha in grid["alpha"]
    ]
    np.testing.assert_allclose(1 - model.results_["test_score"], errors, atol=1e-12)
    assert model.best_params_["alpha"] == grid["alpha"][int(np.argmin(errors))]
    claim = model.certificate_["generalisation"]
    radius = hoeffding_radius(200, DELTA, models=4)
    assert claim.status is Status.HOLDS
    assert claim.observed == pytest.approx(2 * radius)  # the whole interval lies within [0, 1]
    assert f"within {math.ceil(1000 * radius) / 1000:.3f} of" in claim.statement
    assert model.certificate_["selection excess"].observed == pytest.approx(2 * radius)


def test_clopper_pearson_is_exact():
    for errors, n in [(0, 10), (3, 10), (10, 10), (17, 200)]:
        low, high = clopper_pearson(errors, n, DELTA, models=7)
        tail = DELTA / 14
        if errors > 0:
            assert stats.binom.sf(errors - 1, n, low) == pytest.approx(tail, rel=1e-6)
        if errors < n:
            assert stats.binom.cdf(errors, n, high) == pytest.approx(tail, rel=1e-6)
    assert clopper_pearson(0, 10, DELTA)[0] == 0.0
    assert clopper_pearson(10, 10, DELTA)[1] == 1.0
    low, high = clopper_pearson(np.array([0, 5]), 50, DELTA)
    assert low.shape == high.shape == (2,)


def test_rows_that_are_not_alike_widen_the_limits_by_next_to_nothing():
    """The case that needs it: one correct row short of all, the rows that err certain to do so."""
    tail, n = DELTA / 2, 20
    for identical, holds in ((True, False), (False, True)):
        high = clopper_pearson(n - 1, n, DELTA, identical=identical)[1]
        worst = n * (
            1 - high
        )  # P(S <= n - 1) of n - 1 certain errors and one of the rest, at mean = high
        assert (worst <= tail * (1 + 1e-12)) is holds
    assert high - clopper_pearson(n - 1, n, DELTA)[1] < 1e-3


def test_empirical_bernstein_has_maurer_and_pontil_s_constants():
    losses = np.random.default_rng(6).beta(1, 20, size=500)
    log = math.log(3 / DELTA)
    expected = math.sqrt(2 * losses.var(ddof=1) * log / 500) + 7 * log / (3 * 499)
    assert empirical_bernstein(losses, DELTA) == pytest.approx(expected)
    doubled = empirical_bernstein(2 * losses, DELTA, (0.0, 2.0))
    assert doubled == pytest.approx(2 * expected)
    assert bernstein_radius(0.0, 1) == math.inf
    assert empirical_bernstein(losses, DELTA, models=10) > expected
    assert expected < hoeffding_radius(500, DELTA)  # small variance is what it is for
    coin = np.repeat([0.0, 1.0], 250)
    assert empirical_bernstein(coin, DELTA) > hoeffding_radius(500, DELTA)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: hoeffding_radius(0), "n must be at least 1"),
        (lambda: hoeffding_radius(10, 0.0), "delta must lie strictly"),
        (lambda: hoeffding_radius(10, 1.5), "delta must lie strictly"),
        (lambda: hoeffding_radius(10, models=0), "models must be at least 1"),
        (lambda: hoeffding_radius(10, range=(1.0, 1.0)), "range must be two finite numbers"),
        (lambda: hoeffding_radius(10, range=(0.0, math.inf)), "range must be two finite numbers"),
        (lambda: clopper_pearson(11, 10), "errors must lie between 0 and n"),
        (lambda: empirical_bernstein([0.5, 1.5]), "losses must lie in range"),
    ],
)
def test_arguments_that_make_no_sense(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_regression_with_a_stated_range():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 3))
    y = np.clip(X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=300), -5, 5)
    keywords = {"scoring": "neg_mean_absolute_error", "random_state": 0}
    model = HoldOut(Ridge(), loss_range=(0.0, 20.0), bound="bernstein", **keywords).fit(X, y)
    claim = model.certificate_["generalisation"]
    assert claim.status is Status.HOLDS
    assert "the true mean absolute error is within" in claim.statement
