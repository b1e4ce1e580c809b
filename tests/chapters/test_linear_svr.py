"""LinearSVR: scikit-learn's answers, certified."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_diabetes

import surefit
from surefit import Status
from surefit.linear_model import QuantileRegressor
from surefit.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from surefit.solvers.box_dual import Intercept, regression
from surefit.svm import LinearSVR

X, Y = load_diabetes(return_X_y=True)
X = X * 20.0  # columns of unit variance, nearly


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 10.0, "C": 0.1},
        {"epsilon": 10.0, "intercept_scaling": 20.0},
        {"fit_intercept": False},
        {"loss": "squared_epsilon_insensitive", "epsilon": 5.0},
        {"loss": "squared_epsilon_insensitive", "dual": False, "C": 0.01},
    ],
    ids=str,
)
def test_agrees_with_scikit_learn(options):
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(Y))
    ours = LinearSVR(tol=1e-10, **options).fit(X, Y, weights)
    theirs = sklearn.svm.LinearSVR(tol=1e-8, max_iter=1_000_000, random_state=0, **options)
    theirs.fit(X, Y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-4)  # liblinear stops there
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-4)
    assert ours.certificate_.ok
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


def test_a_wide_price_and_no_tube_is_the_median():
    """As C grows the penalty fades: least absolute errors, whose fit is another solver's."""
    median = QuantileRegressor(alpha=0.0).fit(X, Y)
    ours = LinearSVR(C=1e5, penalize_intercept=False, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, median.coef_, atol=1e-2)
    error, least = (np.abs(Y - m.predict(X)).sum() for m in (ours, median))
    assert least <= error * (1 + 1e-12)
    assert error <= least * (1 + 1e-7)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("penalize", [True, False])
def test_sparse_float32_weights_and_files(loss, penalize, tmp_path):
    options = {"loss": loss, "epsilon": 3.0, "penalize_intercept": penalize, "tol": 1e-10}
    dense = LinearSVR(**options).fit(X, Y)
    sparse = LinearSVR(**options).fit(sp.csc_array(X), Y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    single = LinearSVR(**{**options, "tol": 1e-4}).fit(X.astype(np.float32), Y)
    assert single.coef_.dtype == np.float32
    assert single.certificate_.ok
    counts = np.random.default_rng(1).integers(0, 3, len(Y))
    weighted = LinearSVR(**options).fit(X, Y, counts)
    repeated = LinearSVR(**options).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    dense.save(tmp_path / "model.surefit")
    assert surefit.verify(surefit.load(tmp_path / "model.surefit"), X, Y).ok


def test_rows_in_the_tube_have_no_part_in_it():
    model = LinearSVR(epsilon=60.0, C=0.1, tol=1e-10).fit(X, Y)
    inside = np.abs(Y - model.predict(X)) < 59.999
    assert inside.sum() > 50
    assert np.abs(model.dual_coef_[inside]).max() <= 1e-7
    np.testing.assert_allclose(model.dual_coef_ @ X, model.coef_, rtol=1e-6)
    without = LinearSVR(epsilon=60.0, C=0.1, tol=1e-10).fit(X[~inside], Y[~inside])
    np.testing.assert_allclose(without.coef_, model.coef_, atol=1e-4)


def test_targets_that_are_constant_or_in_the_tube():
    for y in (np.zeros(len(Y)), np.ones(len(Y))):
        for options in (
            {},
            {"epsilon": 2.0},
            {"loss": "squared_epsilon_insensitive"},
            {"penalize_intercept": False},
        ):
            model = LinearSVR(**options).fit(X, y)
            assert model.certificate_.ok
            assert np.abs(model.coef_).max() < 1e-3


def test_refusals_and_a_fit_cut_short():
    with pytest.raises(ValueError, match="not supported when dual=False"):
        LinearSVR(dual=False).fit(X, Y)
    with pytest.raises(ValueError, match="epsilon"):
        LinearSVR(epsilon=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="Rescale y first"):
        LinearSVR().fit(X, Y * 1e200)
    with pytest.warns(surefit.CertificateWarning, match="Liblinear failed to converge"):
        model = LinearSVR(max_iter=2).fit(X, Y)
    assert model.n_iter_ == 2
    assert model.certificate_["duality gap"].status is Status.FAILS


def test_losses_of_the_problem_are_those_of_the_library():
    rng = np.random.default_rng(0)
    z, y, c = rng.normal(size=20) * 2, rng.normal(size=20), rng.uniform(1, 2, 20)
    for loss, squared in ((EpsilonInsensitive(0.3), False), (SquaredEpsilonInsensitive(0.3), True)):
        problem = regression(y, c, 0.3, squared=squared, intercept=Intercept())
        np.testing.assert_allclose(
            problem.losses(z), c * loss.pointwise(z, y), rtol=1e-13, atol=1e-15
        )
