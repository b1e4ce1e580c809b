"""Summaries of Huber's and of quantile regression: M-estimates, kernel sandwich, Laplace noise."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from tests.summary_tools import COVERAGE, close, made, with_ones
from tests.theory.statsmodels_data import HUBER_SCALE, RECORDED, data

from surefit.densities import laplace_log_likelihood, laplace_noise_scale
from surefit.design import as_design
from surefit.linear_model import (
    HuberRegressor,
    LinearRegression,
    QuantileRegressor,
    TukeyRegressor,
)
from surefit.linear_model._summary.core import Sample
from surefit.linear_model._summary.robust import hall_sheather, m_estimate, quantile_estimate
from surefit.linear_model._summary.signs import Scores, critical_value, sign_intervals


def sample_of(X, y, s=None, *, covariance="auto", weights="precision"):
    """The sample that ``summary`` hands to the description of a model."""
    s = np.ones(len(y)) if s is None else s
    copies = s if weights == "frequency" else (s > 0).astype(float)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    return Sample(X, y, s, as_design(X), s, copies, covariance, names)


def stand_in(theta, *, fit_intercept=True):
    """Only the coefficients matter here: the estimators have their own tests."""
    coef, intercept = (theta[1:], theta[0]) if fit_intercept else (theta, 0.0)
    return SimpleNamespace(coef_=coef, intercept_=intercept, fit_intercept=fit_intercept)


def huber(model, sample, scale, penalty=0.0):
    clip = lambda u: np.clip(u, -1.35, 1.35)  # noqa: E731
    return m_estimate(model, sample, clip, lambda u: 1.0 * (np.abs(u) <= 1.35), scale, penalty)


def errors_of(estimates):
    return np.sqrt(np.diagonal(estimates.covariance[0]))


def huber_fit(A, Y, scale, penalty=0.0):
    """Newton's method on the columns of Y, at a given scale."""
    W = np.linalg.lstsq(A, Y, rcond=None)[0]
    P = penalty * scale * np.diag(np.arange(A.shape[1]) > 0)
    for _ in range(60):
        u = (Y - A @ W) / scale
        weight = np.minimum(1.0, 1.35 / np.maximum(np.abs(u), 1e-300))
        G = np.einsum("ni,nt,nj->tij", A, weight, A) + P
        W = np.linalg.solve(G, np.einsum("ni,nt->ti", A, weight * Y)[..., None])[..., 0].T
    return W


def test_huber_is_statsmodels():
    X, y, _ = data("diabetes")
    want = RECORDED["huber"]
    found = huber(stand_in(want["params"]), sample_of(X, y), HUBER_SCALE)
    close(errors_of(found), want["bse"], 1e-9)
    assert found.noise.scale == HUBER_SCALE
    assert math.isnan(found.log_likelihood)
    assert "Huber's H1" in found.method


def test_the_summary_of_huber_regression():
    X, y, _ = data("diabetes")
    model = HuberRegressor(alpha=0.0, tol=1e-12, max_iter=1000).fit(X, y)
    s = model.summary(X, y)
    assert model.scale_ == pytest.approx(HUBER_SCALE, rel=1e-9)
    close(s.coef, RECORDED["huber"]["params"], 1e-6)
    close(s.std_error, RECORDED["huber"]["bse"], 1e-7)
    central = np.sum(np.abs(y - model.predict(X)) <= 1.35 * model.scale_)  # rows of quadratic loss
    close(s.p_value, 2 * stats.t.sf(np.abs(s.coef / s.std_error), central - 11), 1e-9)
    assert "noise: unspecified, scale 37.3292" in str(s)
    assert math.isnan(s.aic)
    # the default penalty matters where features are small: it is said, with its size
    assert "shrunk" in HuberRegressor(max_iter=1000).fit(X, y).summary(X, y).notes[0]
    usual = HuberRegressor(max_iter=1000).fit(50 * X, y).summary(50 * X, y)
    assert "negligible" in usual.notes[0]
    close(usual.std_error[1:] * 50, s.std_error[1:], 1e-3)
    weights = 1.0 + np.arange(len(y)) % 3
    long = np.repeat(np.arange(len(y)), weights.astype(int))
    counted = HuberRegressor(alpha=0.0, tol=1e-12, max_iter=1000).fit(X, y, weights)
    twice = counted.summary(X, y, weights, weights="frequency")
    once = model.fit(X[long], y[long]).summary(X[long], y[long])
    close(twice.std_error, once.std_error, 1e-6)
    line = np.arange(30.0)[:, None]
    exact = HuberRegressor().fit(line, 2 * line[:, 0] + 1).summary(line, 2 * line[:, 0] + 1)
    assert np.isnan(exact.std_error).all()
    assert "an exact fit" in exact.notes[0]


def test_the_summary_of_tukeys_regression_is_statsmodels():
    X, y, _ = data("diabetes")
    options = {"tol": 1e-12, "max_iter": 1000, "scale": HUBER_SCALE}
    s = TukeyRegressor(alpha=0.0, **options).fit(X, y).summary(X, y)
    close(s.coef, RECORDED["tukey"]["params"], 1e-6)
    close(s.std_error, RECORDED["tukey"]["bse"], 1e-7)
    # a penalty: its loss is not divided by the scale, so that P of the equation is alpha / scale
    model = TukeyRegressor(alpha=0.5, **options).fit(X, y)
    s = model.summary(X, y)
    A, scale = with_ones(X), HUBER_SCALE
    u = (y - model.predict(X)) / scale
    part = np.maximum(1 - (u / 4.685) ** 2, 0)
    push, slope = u * part**2, part * (part - 4 * (u / 4.685) ** 2)
    P = 0.5 * np.diag(np.arange(11) > 0)
    theta = np.append(model.intercept_, model.coef_)
    np.testing.assert_allclose(scale * A.T @ push, P @ theta, atol=1e-6 * np.abs(theta).max())
    B = np.linalg.inv(A.T @ A + P / slope.mean())
    used = np.trace(B @ A.T @ A)
    size = (push @ push) / (len(y) - used) * (scale / slope.mean()) ** 2
    size *= (1 + used / len(y) * slope.var() / slope.mean() ** 2) ** 2
    close(s.std_error, np.sqrt(size * np.diag(B @ A.T @ A @ B)), 1e-7)
    weights = np.linspace(1, 2, len(y))
    s = TukeyRegressor().fit(X, y, weights).summary(X, y, weights)
    assert np.isnan(s.std_error).all()
    assert "no sandwich for" in s.notes[0]


def test_huber_sandwich_penalty_and_weights():
    X, y = made(80, 3)
    y[::9] += 20.0
    A, scale = with_ones(X), 1.3
    theta = huber_fit(A, y[:, None], scale, 2.0)[:, 0]
    u = (y - A @ theta) / scale
    push, inside = np.clip(u, -1.35, 1.35), np.abs(u) <= 1.35
    P = 2.0 * scale * np.diag([0.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(A.T @ push * scale, P @ theta, atol=1e-8)  # it solves its equation
    B = np.linalg.inv((A.T * inside) @ A + P)
    found = huber(stand_in(theta), sample_of(X, y, covariance="HC0"), scale, 2.0)
    close(found.covariance, scale**2 * B @ ((A.T * push**2) @ A) @ B, 1e-8)
    assert found.df_model == pytest.approx(np.trace(B @ (A.T * inside) @ A))
    assert not found.tested
    # H1: psi' is taken to be the same everywhere
    share = inside.mean()
    B = np.linalg.inv(A.T @ A + P / share)
    M = B @ A.T @ A @ B
    used = np.trace(B @ A.T @ A)
    size = (
        (push @ push) / (80 - used) * (scale / share * (1 + used / 80 * (1 - share) / share)) ** 2
    )
    found = huber(stand_in(theta), sample_of(X, y), scale, 2.0)
    close(found.covariance, size * M, 1e-8)
    # the bias that is reported: B^-1 P theta
    bias = np.abs(np.linalg.solve(A.T @ A + P / share, P @ theta / share)) / np.sqrt(
        np.diag(size * M)
    )
    assert f"by up to {bias.max():.2g} of" in found.notes[-1]
    # a penalty as small as the default of HuberRegressor does not spoil the tests
    assert huber(stand_in(theta), sample_of(X, y), scale, 1e-8).tested
    # frequency weights repeat; precision weights use the sandwich
    s = np.arange(80.0) % 3
    long = np.repeat(np.arange(80), s.astype(int))
    for kind in ("H1", "HC0"):
        twice = huber(
            stand_in(theta), sample_of(X, y, s, covariance=kind, weights="frequency"), scale
        )
        once = huber(stand_in(theta), sample_of(X[long], y[long], covariance=kind), scale)
        close(twice.covariance, once.covariance, 1e-9)
    assert "HC0" in huber(stand_in(theta), sample_of(X, y, s + 0.5), scale).method


def test_huber_intervals_cover_under_heavy_tails():
    rng = np.random.default_rng(5)
    X, truth, draws = rng.normal(size=(120, 2)), np.array([1.0, -2.0, 0.5]), 300
    A = with_ones(X)
    Y = (A @ truth)[:, None] + rng.standard_t(3, size=(120, draws))
    W = huber_fit(A, Y, 1.2)
    inside, lengths = 0, []
    for t in range(draws):
        found = huber(stand_in(W[:, t]), sample_of(X, Y[:, t]), 1.2)
        inside = inside + (np.abs(W[:, t] - truth) <= 1.96 * errors_of(found))
        lengths.append(errors_of(found))
    assert np.abs((inside - 0.95 * draws) / math.sqrt(draws * 0.95 * 0.05)).max() < COVERAGE
    least_squares = LinearRegression().fit(X, Y).summary(X, Y).std_error.mean()
    assert np.mean(lengths) < 0.85 * least_squares  # what the robust loss is for


@pytest.mark.spec("REG-9")
@pytest.mark.parametrize("tau", [0.25, 0.5])
def test_quantile_is_statsmodels(tau):
    X, y, _ = data("diabetes")
    want = RECORDED[f"quantile {tau}"]
    model = stand_in(want["params"])
    found = quantile_estimate(model, sample_of(X, y, covariance="iid"), tau, 0.0)
    e = y - X @ model.coef_ - model.intercept_
    # statsmodels caps the bandwidth by the spread of y, we (with Koenker) by that of the residuals
    h = hall_sheather(len(y), tau)
    reach = stats.norm.ppf(tau + h) - stats.norm.ppf(tau - h)
    width = min(e.std(), np.subtract(*np.quantile(e, [0.75, 0.25])) / 1.34) * reach
    sparsity = len(y) * width / np.sum(0.75 * np.maximum(1 - (e / width) ** 2, 0))
    if tau == 0.5:
        assert width == pytest.approx(want["bandwidth"][0], rel=1e-9)
        assert sparsity == pytest.approx(want["sparsity"][0], rel=1e-9)
    close(errors_of(found) / sparsity, want["bse"] / want["sparsity"], 1e-8)
    # the Laplace model: b = mean |e| for the median, its likelihood, its Fisher information
    found = quantile_estimate(model, sample_of(X, y, covariance="fisher"), tau, 0.0)
    loss = np.mean(np.where(e > 0, tau * e, (tau - 1) * e))
    A = with_ones(X)
    inverse_gram = np.linalg.inv(A.T @ A)
    close(errors_of(found), loss * np.sqrt(np.diag(inverse_gram) / (tau * (1 - tau))), 1e-9)
    np.testing.assert_allclose(found.fisher[0] @ found.covariance[0], np.eye(11), atol=1e-7)
    if tau == 0.5:
        assert found.noise.family == "Laplace"
        assert found.noise.scale == pytest.approx(laplace_noise_scale(e), rel=1e-12)
        assert found.noise.variance_mle == pytest.approx(2 * laplace_noise_scale(e) ** 2)
        assert found.log_likelihood == pytest.approx(
            laplace_log_likelihood(e, laplace_noise_scale(e))
        )
    else:
        draws = stats.laplace_asymmetric(
            kappa=math.sqrt(tau / (1 - tau)), scale=loss / math.sqrt(tau * (1 - tau))
        )
        assert found.log_likelihood == pytest.approx(draws.logpdf(e).sum(), rel=1e-9)
        assert found.noise.variance == pytest.approx(draws.var(), rel=1e-9)
    null = np.quantile(y, tau, method="inverted_cdf")
    spent = np.mean(np.where(y > null, tau * (y - null), (tau - 1) * (y - null)))
    assert found.r2 == pytest.approx(1 - loss / spent)


def test_quantile_kernel_sandwich_weights_and_penalty():
    X, y = made(300, 2)
    theta = np.array([2.0, 1.0, 2.0])
    A, tau = with_ones(X), 0.3
    theta[0] += np.quantile(y - A @ theta, tau)
    e = y - A @ theta
    h = hall_sheather(300, tau)
    low, high = np.quantile(e, [0.25, 0.75])
    width = min(e.std(), (high - low) / 1.34) * (stats.norm.ppf(tau + h) - stats.norm.ppf(tau - h))
    near = 0.75 * np.maximum(1 - (e / width) ** 2, 0) / width
    B = np.linalg.inv((A.T * near) @ A)
    found = quantile_estimate(stand_in(theta), sample_of(X, y, covariance="kernel"), tau, 0.0)
    close(found.covariance, tau * (1 - tau) * B @ A.T @ A @ B, 1e-9)
    assert "Powell" in found.method
    s = np.arange(300.0) % 3
    long = np.repeat(np.arange(300), s.astype(int))
    for kind in ("kernel", "iid", "fisher"):
        twice = quantile_estimate(
            stand_in(theta), sample_of(X, y, s, covariance=kind, weights="frequency"), tau, 0.0
        )
        once = quantile_estimate(
            stand_in(theta), sample_of(X[long], y[long], covariance=kind), tau, 0.0
        )
        close(twice.covariance, once.covariance, 1e-9)
        close(twice.log_likelihood, once.log_likelihood, 1e-12)
        close(twice.r2, once.r2, 1e-12)
        one, seven = (
            quantile_estimate(stand_in(theta), sample_of(X, y, c * s, covariance=kind), tau, 0.0)
            for c in (1.0, 7.0)
        )
        close(one.covariance, seven.covariance, 1e-9)
    found = quantile_estimate(stand_in(theta), sample_of(X, y), tau, 0.5)
    assert found.covariance is None
    assert "l1 penalty" in found.notes[0]
    exact = quantile_estimate(stand_in(theta), sample_of(X, A @ theta), tau, 0.0)
    assert exact.covariance is None
    # the published value: n = 100 at the median is h = 0.2092 (Koenker's bandwidth.rq)
    assert hall_sheather(100, 0.5) == pytest.approx(
        100 ** (-1 / 3) * stats.norm.ppf(0.975) ** (2 / 3) * (1.5 / (2 * math.pi)) ** (1 / 3)
    )


@pytest.mark.spec("REG-9")
def test_the_summary_of_quantile_regression():
    X, y, _ = data("diabetes")
    model = QuantileRegressor(alpha=0.0).fit(X, y)
    s = model.summary(X, y, covariance="iid")
    close(s.coef, RECORDED["quantile 0.5"]["params"], 1e-5)  # statsmodels stops at 1e-6
    close(s.std_error, RECORDED["quantile 0.5"]["bse"], 1e-6)
    e = y - model.predict(X)
    assert s.noise.family == "Laplace"
    assert s.noise.scale == pytest.approx(laplace_noise_scale(e), rel=1e-12)
    assert s.log_likelihood == pytest.approx(laplace_log_likelihood(e, laplace_noise_scale(e)))
    assert "median of the target" in str(s)
    kernel = model.summary(X, y, covariance="kernel")
    assert "Powell" in kernel.method
    assert "20.1 rows for each parameter lie beyond the quantile" in kernel.notes[-1]
    assert np.isnan(kernel.low).all()
    assert np.isnan(kernel.p_value).all()
    assert "low 95 %" not in str(kernel)
    # the Laplace model against the Gaussian one, on the same data: neither likelihood is a constant off
    gauss = LinearRegression().fit(X, y).summary(X, y)
    assert -60 < s.log_likelihood - gauss.log_likelihood < 60
    upper = QuantileRegressor(quantile=0.9, alpha=0.0).fit(X, y).summary(X, y)
    assert upper.response == "0.9-quantile of the target"
    sparse = QuantileRegressor(alpha=0.1).fit(X, y).summary(X, y)
    assert np.isnan(sparse.std_error).all()
    with pytest.raises(ValueError, match="covariance='HC0' is not a covariance"):
        model.summary(X, y, covariance="HC0")


def test_quantile_intervals_cover_where_the_noise_grows_with_x():
    """The kernel sandwich does; one density for all rows does not."""
    rng = np.random.default_rng(6)
    n, draws, truth = 800, 200, np.array([1.0, 2.0])
    X = rng.uniform(0, 2, size=(n, 1))
    hits = {"kernel": 0, "iid": 0}
    for _ in range(draws):
        y = with_ones(X) @ truth + (0.2 + X[:, 0] ** 2) * rng.standard_normal(n)
        model = QuantileRegressor(alpha=0.0, certify=False).fit(X, y)
        for kind in hits:
            s = model.summary(X, y, covariance=kind)
            hits[kind] = hits[kind] + ((s.low <= truth) & (truth <= s.high))
    deviation = math.sqrt(draws * 0.95 * 0.05)
    assert ((hits["kernel"] - 0.95 * draws) / deviation).min() > -COVERAGE
    assert ((hits["iid"] - 0.95 * draws) / deviation).min() < -COVERAGE


@pytest.mark.spec("REG-8", "REG-9")
def test_the_median_reaches_the_bound_of_laplace_noise():
    """sqrt(N)(w - w*) -> N(0, F^-1) with F = A'A / b^2: half of the variance of least squares."""
    rng = np.random.default_rng(7)
    n, draws, truth = 800, 200, np.array([1.0, 2.0])
    X = rng.normal(size=(n, 1))
    found, errors, hits = [], [], 0
    for _ in range(draws):
        y = with_ones(X) @ truth + rng.laplace(size=n)
        s = QuantileRegressor(alpha=0.0, certify=False).fit(X, y).summary(X, y, covariance="fisher")
        found.append(s.coef)
        errors.append(s.std_error)
        hits = hits + ((s.low <= truth) & (truth <= s.high))
    bound = np.sqrt(np.diag(np.linalg.inv(with_ones(X).T @ with_ones(X))))  # b = 1
    # a standard deviation over the draws is known to 5 %, and the limit is approached slowly
    assert np.std(found, axis=0) == pytest.approx(bound, rel=0.25)
    assert np.mean(errors, axis=0) == pytest.approx(bound, rel=0.02)
    assert np.std(found, axis=0).max() < 0.9 * (math.sqrt(2) * bound).max()  # least squares
    deviation = math.sqrt(draws * 0.95 * 0.05)
    assert ((hits - 0.95 * draws) / deviation).min() > -COVERAGE


# ---------------------------------------------------------------------------- small samples and far quantiles


def at_least(level, draws, share=1e-3):
    """The smallest share covered that a true coverage of ``level`` leaves, but for ``share`` of the cases."""
    return stats.binom.ppf(share, draws, level) / draws


@pytest.mark.parametrize(
    ("n", "tau", "grows"), [(25, 0.5, True), (60, 0.9, False), (200, 0.97, True)]
)
def test_the_law_of_the_signs_covers_at_small_samples_and_far_quantiles(n, tau, grows):
    """The kernel sandwich covers .93, .80 and .82 here. Whole intervals for a few, the statistic for all."""
    rng = np.random.default_rng(8)
    draws, X = 200, rng.uniform(0.0, 2.0, size=(n, 1))
    size = 0.5 + X[:, 0] if grows else np.ones(n)
    scores = Scores(with_ones(X), np.zeros(n), np.ones(n), tau)
    critical = critical_value(scores.simulate(), 0.95)
    covered = np.zeros(2)
    for k in range(draws):
        scores.y = size * (rng.exponential(size=n) - stats.expon.ppf(tau))  # the truth is 0
        inside = np.array([scores.smallest(j, 0.0, critical) <= critical for j in range(2)])
        covered += inside
        if k < 3:
            fit = QuantileRegressor(quantile=tau, alpha=0.0, certify=False).fit(X, scores.y)
            s = fit.summary(X, scores.y)
            for j in np.flatnonzero(~np.isnan(s.low)):
                assert (s.low[j] <= 0.0 <= s.high[j]) or not inside[j]
                assert s.low[j] < s.coef[j] < s.high[j]
                assert (s.p_value[j] <= 0.04) <= (not inside[j])  # the interval is cautious
    assert (covered / draws >= at_least(0.95, draws)).all()


def test_too_few_rows_beyond_the_quantile_have_no_interval_and_say_so():
    """q = .97 and n = 60: an interval that covered .77 and p = 4e-14 before."""
    rng = np.random.default_rng(9)
    X = rng.uniform(0.0, 2.0, size=(60, 1))
    y = 1.0 + 2.0 * X[:, 0] + rng.standard_normal(60)
    s = QuantileRegressor(quantile=0.97, alpha=0.0).fit(X, y).summary(X, y)
    assert np.isnan(s.low).all()
    assert np.isnan(s.high).all()
    assert s.p_value.min() > 0.05
    assert "0.9 rows for each parameter lie beyond the 0.97-quantile" in s.notes[-1]
    assert "low 95 %" not in str(s)


def test_without_features_the_signs_give_the_interval_of_the_order_statistics():
    """The median of 60 numbers: from the 22nd to the 39th, which covers with 1 - 2 P(Bin <= 21)."""
    y = np.random.default_rng(10).standard_normal(60)
    one = np.ones((60, 1))
    found = sign_intervals(
        one, y, np.ones(60), 0.5, np.array([np.median(y)]), np.array([0.1]), 0.95
    )
    below = int(stats.binom.ppf(0.025, 60, 0.5))  # 22: P(Bin < 22) = 0.014, P(Bin < 23) = 0.026
    ordered = np.sort(y)
    reach = 0.01 * (ordered[60 - below] - ordered[below - 1])
    assert found.low[0] == pytest.approx(ordered[below - 1], abs=reach)
    assert found.high[0] == pytest.approx(ordered[60 - below], abs=reach)


def test_repeats_weights_and_units_of_the_signs():
    """Frequency weights repeat rows; precision weights have no unit; the target's unit scales the ends."""
    rng = np.random.default_rng(11)
    X, times = rng.normal(size=(40, 1)), rng.integers(1, 3, 40).astype(float)
    y, long = X[:, 0] + rng.standard_normal(40), np.repeat(np.arange(40), times.astype(int))

    def ends(X, y, s=None, **options):
        model = QuantileRegressor(alpha=0.0, certify=False).fit(X, y, s)
        table = model.summary(X, y, s, **options)
        return np.array([table.low, table.high, table.p_value])

    counted = ends(X, y, times, weights="frequency")
    np.testing.assert_allclose(counted, ends(X[long], y[long]), rtol=0.05)
    precise = ends(X, y, times)
    np.testing.assert_allclose(precise, ends(X, y, 8.0 * times), rtol=1e-6)
    assert (precise[1] - precise[0] > counted[1] - counted[0]).all()
    bigger = ends(X, 1e6 * y)
    np.testing.assert_allclose(bigger[:2], 1e6 * ends(X, y)[:2], rtol=0.05, atol=1e4)


def test_quantile_intervals_need_identified_features():
    X, y = made(50, 1)
    model = QuantileRegressor(alpha=0.0).fit(np.hstack([X, 2 * X]), y)
    s = model.summary(np.hstack([X, 2 * X]), y)
    assert np.isnan(s.low).all()
    assert "drop the features that are not identified" in s.notes[-1]


def test_huber_intervals_cover_at_25_rows():
    """The normal law covered .91."""
    rng = np.random.default_rng(12)
    draws, X, truth = 1000, rng.normal(size=(25, 1)), np.array([1.0, 2.0])
    model, covered = HuberRegressor(alpha=0.0, max_iter=1000, certify=False), np.zeros(2)
    for _ in range(draws):
        y = with_ones(X) @ truth + rng.standard_normal(25)
        s = model.fit(X, y).summary(X, y)
        absent = np.isnan(s.low)  # more than a third of the rows look like outliers
        covered += absent | ((s.low <= truth) & (truth <= s.high))
    assert (covered / draws >= at_least(0.95, draws)).all()


def test_huber_has_no_intervals_when_too_few_rows_are_central():
    X, y = made(15, 1)
    s = HuberRegressor(alpha=0.0).fit(X, y).summary(X, y)
    assert np.isnan(s.low).all()
    assert np.isnan(s.p_value).all()
    assert not np.isnan(s.std_error).any()
    assert "no intervals and no p-values" in s.notes[-1]
