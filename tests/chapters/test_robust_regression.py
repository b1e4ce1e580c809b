"""What Huber's and Tukey's regression have in common: weights, equivariance, extremes, bad input."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from tests.robust import make

from surefit.linear_model import HuberRegressor, TukeyRegressor


@pytest.mark.parametrize("epsilon", [1.0, 1.35])
@pytest.mark.parametrize("kind", [HuberRegressor, TukeyRegressor])
def test_weights_are_repetitions_and_weight_zero_is_absence(kind, epsilon):
    X, y, _ = make()
    counts = np.random.default_rng(0).integers(0, 4, size=60)
    model = kind(epsilon=epsilon) if kind is HuberRegressor else kind()
    weighted = copy.deepcopy(model).fit(X, y, sample_weight=counts)
    repeated = copy.deepcopy(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    kept = counts > 0
    dropped = copy.deepcopy(model).fit(X[kept], y[kept], sample_weight=counts[kept])
    for other in (repeated, dropped):
        np.testing.assert_allclose(weighted.coef_, other.coef_, rtol=0, atol=1e-8)
        assert weighted.scale_ == pytest.approx(other.scale_, rel=1e-8)
    assert len(weighted.outliers_) == 60
    assert weighted.certificate_.ok


@pytest.mark.parametrize("model", [HuberRegressor(alpha=0.0), TukeyRegressor()], ids=str)
def test_equivariance(model):
    """y -> c y + X d + e moves the fit along; rescaling X by powers of two rescales exactly."""
    X, y, _ = make()
    base = copy.deepcopy(model).fit(X, y)
    other = copy.deepcopy(model).fit(X, 10.0 * y + X @ np.arange(5.0) - 4.0)
    np.testing.assert_allclose(other.coef_, 10.0 * base.coef_ + np.arange(5.0), atol=1e-7)
    assert other.intercept_ == pytest.approx(10.0 * base.intercept_ - 4.0, abs=1e-7)
    assert other.scale_ == pytest.approx(10.0 * base.scale_, rel=1e-7)
    np.testing.assert_array_equal(other.outliers_, base.outliers_)
    units = 2.0 ** np.arange(-20, 30, 10)
    scaled = copy.deepcopy(model).fit(X * units, y)
    np.testing.assert_allclose(scaled.coef_ * units, base.coef_, rtol=1e-8)


@pytest.mark.parametrize("model", [HuberRegressor(), TukeyRegressor()], ids=str)
@pytest.mark.parametrize(
    ("X", "y", "coef", "intercept"),
    [
        ([[2.0]], [3.0], [0.0], 3.0),
        ([[1.0], [2.0], [3.0]], [5.0, 5.0, 5.0], [0.0], 5.0),
        ([[1.0], [2.0], [3.0]], [0.0, 0.0, 0.0], [0.0], 0.0),
        ([[4.0], [4.0], [4.0]], [1.0, 1.0, 1.0], [0.0], 1.0),
        ([[0.0, 0.0]] * 4, [2.0, 2.0, 2.0, 9.0], [0.0, 0.0], 2.0),
        ([[0.0], [1.0]], [1.0, 3.0], [2.0], 1.0),
    ],
    ids=["one row", "constant y", "y = 0", "all constant", "X = 0", "two points"],
)
def test_extremes(model, X, y, coef, intercept):
    model = copy.deepcopy(model).fit(X, y)
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
    assert model.intercept_ == pytest.approx(intercept, abs=1e-12)
    assert model.certificate_.ok
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_is_dense(kind):
    X, y, s = make(120, 5)
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.5] = 0.0
    for model in (HuberRegressor(), HuberRegressor(alpha=0.0, epsilon=1.0), TukeyRegressor()):
        dense = copy.deepcopy(model).fit(X, y, s)
        sparse = copy.deepcopy(model).fit(kind(X), y, s)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(sparse.outliers_, dense.outliers_)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (HuberRegressor(epsilon=0.9), "epsilon"),
        (HuberRegressor(alpha=-1.0), "alpha"),
        (TukeyRegressor(delta=0.0), "delta"),
        (TukeyRegressor(scale=-1.0), "scale"),
        (TukeyRegressor(scale="std"), "scale"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=f"The '{message}' parameter"):
        model.fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("model", [HuberRegressor(), TukeyRegressor()], ids=str)
def test_bad_data(model):
    X, y, _ = make(10, 2)
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(broken, y)
    with pytest.raises(ValueError, match="y has values as large as 1e\\+200"):
        model.fit(X, np.full(10, 1e200))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, y, sample_weight=-np.ones(10))
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.fit(X, np.column_stack([y, y]))
