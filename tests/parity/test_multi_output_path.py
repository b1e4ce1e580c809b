"""The path for several targets is scikit-learn's multi-task elastic net."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_regression
from sklearn.linear_model import MultiTaskElasticNet
from sklearn.linear_model import enet_path as reference_path

from surefit.linear_model import enet_path


@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(60, 20), (30, 100)])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_the_path_is_that_of_scikit_learn(l1_ratio, shape, convert):
    X, Y = make_regression(*shape, n_targets=3, n_informative=8, noise=3.0, random_state=0)
    alphas, coefs, gaps = enet_path(convert(X), Y, l1_ratio=l1_ratio, alphas=10, tol=1e-10)
    expected, reference, _ = reference_path(
        X, Y, l1_ratio=l1_ratio, alphas=10, tol=1e-12, max_iter=10**5
    )
    null = 0.5 * np.sum(Y**2) / len(Y)
    assert np.allclose(alphas, expected, rtol=1e-12)
    assert coefs.shape == (3, shape[1], 10)
    assert np.all(gaps <= 1e-10 * null)
    assert np.allclose(
        coefs, reference, atol=1e-3
    )  # the square root of the gaps, over the curvature
    assert np.array_equal(
        (coefs != 0).any(axis=0), (coefs != 0).all(axis=0)
    )  # for all targets or none


def test_one_point_of_the_path_with_sample_weights_is_the_multi_task_fit():
    rng = np.random.default_rng(0)
    X, Y = make_regression(50, 10, n_targets=2, noise=1.0, random_state=0)
    s = rng.integers(1, 4, size=50)
    model = MultiTaskElasticNet(alpha=0.3, fit_intercept=False, tol=1e-12, max_iter=10**5)
    model.fit(np.repeat(X, s, axis=0), np.repeat(Y, s, axis=0))
    _, coefs, _ = enet_path(X, Y, alphas=[0.3], tol=1e-12, sample_weight=s)
    assert np.allclose(coefs[..., 0], model.coef_, atol=1e-6)


def test_random_order_and_a_start_lead_to_the_same_place():
    X, Y = make_regression(50, 10, n_targets=2, noise=1.0, random_state=1)
    _, cyclic, _ = enet_path(X, Y, alphas=[0.5], tol=1e-13)
    options = {"selection": "random", "random_state": 0, "coef_init": np.ones((2, 10))}
    _, shuffled, _ = enet_path(X, Y, alphas=[0.5], tol=1e-13, **options)
    assert np.allclose(cyclic, shuffled, atol=1e-6)


def test_positive_is_refused_for_several_targets():
    X, Y = make_regression(20, 5, n_targets=2, random_state=0)
    with pytest.raises(ValueError, match="positive=True is not allowed for multi-output"):
        enet_path(X, Y, positive=True)
