"""Tukey's bisquare regression, from a robust start (LOS-5)."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.datasets import load_diabetes
from tests.robust import make, many

import surefit
from surefit import CertificateWarning, Status
from surefit.design import RowBlocks, as_design
from surefit.linear_model import Ridge, TukeyRegressor
from surefit.solvers.robust_start import robust_start
from surefit.solvers.tukey import TukeyPoint, median_deviation, tukey

# Brownlee's stack loss data: air flow, water temperature, acid concentration, loss.
STACK_LOSS = np.array(
    "80 27 89 42 80 27 88 37 75 25 90 37 62 24 87 28 62 22 87 18 62 23 87 18 62 24 93 19 "
    "62 24 93 20 58 23 87 15 58 18 80 14 58 18 89 14 58 17 88 13 58 18 82 11 58 19 93 12 "
    "50 18 89 8 50 18 86 7 50 19 72 8 50 19 79 8 50 20 80 9 56 20 82 15 70 20 91 15".split(),
    dtype=float,
).reshape(21, 4)


def tukey_objective(model, X, y, s=None):
    s = np.ones(len(y)) if s is None else s
    c = model.delta * model.scale_
    u = np.minimum(((y - X @ model.coef_ - model.intercept_) / c) ** 2, 1.0)
    return c**2 / 3.0 * float(s @ (1.0 - (1.0 - u) ** 3)) + model.alpha * float(
        model.coef_ @ model.coef_
    )


def test_the_stack_loss_data():
    """R's rlm(psi = psi.bisquare) prints -42.2853, 0.9275, 0.6507, -0.1123 and the scale 2.28.

    The digits are statsmodels 0.14's: RLM(y, add_constant(X), M=norms.TukeyBiweight(4.685)).fit(tol=1e-15,
    maxiter=2000), .params and .scale.
    """
    X, y = STACK_LOSS[:, :3], STACK_LOSS[:, 3]
    model = TukeyRegressor().fit(X, y)
    expected = [0.9275573227555192, 0.6507176872143166, -0.1123331537909015]
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-8)
    assert model.intercept_ == pytest.approx(-42.28535077932974, abs=1e-7)
    assert model.scale_ == pytest.approx(2.2818813349510823, abs=1e-8)
    given = TukeyRegressor(scale=2.2818813349510823).fit(X, y)
    np.testing.assert_allclose(given.coef_, expected, rtol=0, atol=1e-12)


def test_the_diabetes_data_with_a_ninth_of_the_targets_spoilt():
    """Reference as above, with maxiter=5000, tol=1e-13."""
    X, y = load_diabetes(return_X_y=True)
    y = y.copy()
    y[::9] += 400.0
    model = TukeyRegressor().fit(X, y)
    expected = [
        6.9033775920209095e-02, -2.4071050296837180e02, 5.1012640205178911e02,
        3.5234741238544211e02, -1.0691680714658257e03, 6.7821569343029478e02,
        2.0142459332715384e02, 2.3717580099897478e02, 8.3140426749824474e02,
        3.9000002570036244e01,
    ]  # fmt: skip
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-6)
    assert model.intercept_ == pytest.approx(152.89602011534399, abs=1e-8)
    assert model.scale_ == pytest.approx(63.046941428690104, rel=1e-10)
    assert model.outliers_[::9].all()
    assert model.certificate_.ok


@pytest.mark.spec("LOS-5")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_the_fit_is_stationary_and_a_minimum(alpha, weighted):
    """By differences of the objective at the fitted scale, in random directions."""
    X, y, s = make(100, 4, seed=3)
    s = s if weighted else None
    model = TukeyRegressor(alpha=alpha).fit(X, y, s)
    value = tukey_objective(model, X, y, s)
    rng = np.random.default_rng(0)
    for _ in range(20):
        v, b = rng.normal(size=4), rng.normal()
        ends = []
        for h in (1e-3, -1e-3):
            moved = copy.copy(model)
            moved.coef_, moved.intercept_ = model.coef_ + h * v, model.intercept_ + h * b
            ends.append(tukey_objective(moved, X, y, s))
        assert min(ends) > value
        assert abs(ends[0] - ends[1]) <= 1e-2 * (sum(ends) - 2.0 * value) + 1e-12 * value
    claim = model.certificate_["gradient"]
    assert claim.observed < 1e-12
    assert "no optimality claim" in claim.statement


@pytest.mark.spec("LOS-5")
def test_a_row_beyond_delta_has_no_influence():
    """Moving an outlier to infinity, or removing it, changes nothing; least squares follows it."""
    X, y, _ = make(80, 3, tails=5.0)
    y[0] += 100.0
    model = TukeyRegressor(scale=1.0)
    base = copy.deepcopy(model).fit(X, y)
    assert base.outliers_[0]
    far = y.copy()
    for shift in (1e3, -1e6):
        far[0] = shift
        moved = copy.deepcopy(model).fit(X, far)
        np.testing.assert_allclose(moved.coef_, base.coef_, rtol=0, atol=1e-12)
    gone = copy.deepcopy(model).fit(X[1:], y[1:])
    np.testing.assert_allclose(gone.coef_, base.coef_, rtol=0, atol=1e-12)
    assert np.abs(Ridge(alpha=0.0).fit(X, far).coef_ - base.coef_).max() > 1.0


@pytest.mark.spec("LOS-5")
def test_a_large_delta_is_ridge_regression():
    """1 - (1 - u)^3 = 3u - 3u^2 + ..., so the difference is of the order of (e / c)^2."""
    X, y, s = make()
    model = TukeyRegressor(delta=1e5, alpha=1.5, scale=1.0).fit(X, y, s)
    ridge = Ridge(alpha=1.5).fit(X, y, s)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-6)
    assert model.intercept_ == pytest.approx(ridge.intercept_, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("n", "p", "share", "leverage"),
    [(150, 2, 0.4, 0.0), (150, 2, 0.4, 4.0), (300, 6, 0.35, 4.0), (600, 20, 0.3, 4.0)],
)
def test_four_in_ten_wrong_rows_do_not_spoil_it(n, p, share, leverage, seed):
    """Gross errors in y, or a whole cluster of leverage points on another plane; least squares is lost."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    w = rng.normal(size=p)
    wrong = int(share * n)
    X[:wrong] = 0.3 * X[:wrong] + leverage
    y = X @ w + 1.0 + 0.1 * rng.normal(size=n)
    y[:wrong] = y[:wrong].mean() - 30.0 + rng.normal(size=wrong)  # flat, and 30 below the plane
    assert np.abs(y - X @ w - 1.0)[:wrong].min() > 10.0
    model = TukeyRegressor().fit(X, y)
    clean = Ridge(alpha=0.0).fit(X[wrong:], y[wrong:])
    # the efficiency at delta = 4.685 times the scale that 40 % of outliers inflate is close to 1
    np.testing.assert_allclose(model.coef_, clean.coef_, rtol=0, atol=0.05)
    np.testing.assert_array_equal(np.flatnonzero(model.outliers_), np.arange(wrong))
    assert np.abs(Ridge(alpha=0.0).fit(X, y).coef_ - w).max() > 0.3
    assert model.certificate_.ok


def test_an_exact_fit_of_the_majority():
    """More than half of the rows on a plane: the scale is 0 and the plane is found exactly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, -2.0, 0.5] + 4.0
    y[:40] = 10.0 * rng.normal(size=40)
    model = TukeyRegressor().fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0, 0.5], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(model.outliers_), np.arange(40))
    assert model.certificate_.ok
    off = copy.deepcopy(model)
    off.coef_ = (
        model.coef_ * 1.001
    )  # no row is within reach then, so the gradient is 0 all the same
    assert "outliers_" in surefit.verify(off, X, y)["attributes"].statement
    off.outliers_ = np.ones(100, dtype=bool)
    report = surefit.verify(off, X, y)
    assert report["gradient"].status is Status.HOLDS
    assert report["scale"].status is Status.FAILS


def test_monotone_at_a_fixed_scale():
    X, y, s = make(80, 3, seed=7, tails=1.0)
    start = TukeyPoint(np.zeros(3), 0.0, 1.0)
    steps = list(
        tukey(as_design(X), y, s, 4.685, 0.1, start, fit_intercept=True, floor=1e-12, settle=None)
    )
    values = np.array([it.value for it in steps])
    assert (np.diff(values) <= 1e-13 * values[0]).all()
    assert len(steps) < 60


def test_a_worse_start_is_not_passed_off():
    """The recorded start is evaluated anew: a model above it fails, whatever its gradient."""
    X, y, _ = make(100, 3)
    model = TukeyRegressor(scale=0.5).fit(X, y)
    assert model.certificate_["start"].status is Status.HOLDS
    lost = copy.deepcopy(model)
    lost.intercept_ = 1e6  # no row within reach: stationary, and useless
    lost.outliers_ = np.ones(100, dtype=bool)
    report = surefit.verify(lost, X, y)
    assert report["gradient"].status is Status.HOLDS
    assert report["start"].status is Status.FAILS


def test_the_same_seed_the_same_fit_and_rows_in_any_order():
    X, y, _ = make(200, 4, tails=1.0)
    one, two = (TukeyRegressor(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    order = np.random.default_rng(0).permutation(200)
    shuffled = TukeyRegressor(random_state=3).fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.coef_, one.coef_, rtol=0, atol=1e-9)


def test_tukey_warm_start_and_max_iter():
    X, y, _ = make(100, 3)
    model = TukeyRegressor(warm_start=True).fit(X, y)
    coef = model.coef_.copy()
    model.fit(X, y)
    np.testing.assert_allclose(model.start_[:3], coef)
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-8)
    with pytest.warns(CertificateWarning):
        short = TukeyRegressor(max_iter=0, scale=1.0).fit(X, y)
    assert short.n_iter_ == 0
    np.testing.assert_array_equal(short.coef_, short.start_[:3])


def test_too_many_columns_are_refused_with_a_remedy():
    X = sp.csr_array((10, 6000))
    with pytest.raises(ValueError, match=r"6000 columns.*HuberRegressor"):
        TukeyRegressor().fit(X, np.arange(10.0))


def test_tukey_on_many_rows(tmp_path):
    """The start comes from a sample in proportion to the weights, in memory and on disk."""
    X, y = many(20_000)
    s = np.ones(20_000)
    y[:6000] = 50.0
    np.save(tmp_path / "rows.npy", X)
    dense = TukeyRegressor().fit(X, y, s)
    on_disk = TukeyRegressor().fit(RowBlocks(tmp_path / "rows.npy"), y, s)
    s[:6000] = 0.0
    without = TukeyRegressor(scale=dense.scale_).fit(X, y, s)
    np.testing.assert_allclose(on_disk.coef_, dense.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(without.coef_, dense.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(dense.coef_, [1.0, 2.0, -1.0], rtol=0, atol=0.1)


@pytest.mark.parametrize(
    ("r", "s", "median"),
    [
        ([1.0, -3.0, 2.0], [1.0, 1.0, 1.0], 2.0),
        ([1.0, -3.0, 2.0, 4.0], [1.0, 1.0, 1.0, 1.0], 2.5),
        ([1.0, -3.0, 2.0], [1.0, 2.0, 1.0], 2.5),
        ([1.0, -3.0, 2.0], [5.0, 1.0, 1.0], 1.0),
        ([1.0, -3.0, 2.0], [1.0, 0.0, 1.0], 1.5),
        ([-7.0], [2.0], 7.0),
    ],
)
def test_weighted_median(r, s, median):
    """The median of the rows repeated by their weights, over that of a normal distribution."""
    quantile = scipy.stats.norm.ppf(0.75)
    assert median_deviation(np.array(r), np.array(s)) == pytest.approx(median / quantile, rel=1e-14)


def test_the_start_alone_stands_half_of_the_rows():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(101, 2))
    y = A @ [1.0, -1.0] + 2.0
    y[:48] = 1e3 * rng.normal(size=48)
    chance = np.random.default_rng(1)
    found = robust_start(A, y, np.ones(101), chance, fit_intercept=True)
    np.testing.assert_allclose(found, [1.0, -1.0, 2.0], rtol=0, atol=1e-10)
