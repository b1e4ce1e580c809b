"""Full matrices with a penalty: singular values (s_i - lambda)_+, and a dual point that shows it (MF-3)."""

import copy

import numpy as np
import pytest

import surefit
from surefit import Status
from surefit.decomposition import MatrixFactorization


def data(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(30, 4)) @ rng.normal(size=(4, 20)) + 0.3 * rng.normal(size=(30, 20))


def fitted(X, **settings):
    settings = {"n_components": 20, "reg": 3.0, "tol": 1e-9, "max_iter": 5000} | settings
    return MatrixFactorization(random_state=0, **settings).fit(X)


@pytest.mark.spec("MF-3")
@pytest.mark.parametrize("lam", [0.5, 3.0, 10.0])
def test_singular_values_are_shrunk_by_lambda(lam):
    X = data()
    model = fitted(X, reg=lam)
    s = np.linalg.svd(X, compute_uv=False)
    M = model.inverse_transform(model.user_factors_)
    found = np.linalg.svd(M, compute_uv=False)
    np.testing.assert_allclose(found, np.maximum(s - lam, 0.0), atol=1e-5 * s[0])
    assert np.linalg.norm(X - M, 2) <= lam * (1 + 1e-6)
    claim = model.certificate_["nuclear norm"]
    assert claim.status is Status.HOLDS
    assert claim.observed <= 1e-9 * 0.5 * (X**2).sum()
    assert model.certificate_["best of rank K"].status is Status.HOLDS
    shrunk = np.maximum(s - lam, 0.0)
    best = 0.5 * ((s - shrunk) ** 2).sum() + lam * shrunk.sum()
    assert model.loss_ == pytest.approx(best, rel=1e-9)


@pytest.mark.spec("MF-3")
@pytest.mark.parametrize("settings", [{"reg_items": 12.0}, {"weighted_reg": True, "reg": 0.1}])
def test_two_penalties_act_as_the_root_of_their_product(settings):
    X = data()
    model = fitted(X, **settings)
    lam = 6.0 if "reg_items" in settings else 0.1 * np.sqrt(30 * 20)
    s = np.linalg.svd(X, compute_uv=False)
    M = model.inverse_transform(model.user_factors_)
    found = np.linalg.svd(M, compute_uv=False)
    np.testing.assert_allclose(found, np.maximum(s - lam, 0.0), atol=1e-5 * s[0])
    assert model.certificate_.ok


@pytest.mark.spec("MF-3")
def test_the_balanced_factors_have_the_least_penalty():
    """1/2 (||U||^2 + ||V||^2) is the nuclear norm of the product at the end, and more before balancing."""
    X = data()
    model = fitted(X)
    U, V = model.user_factors_, model.item_factors_
    nuclear = np.linalg.svd(U @ V.T, compute_uv=False).sum()
    assert 0.5 * ((U**2).sum() + (V**2).sum()) == pytest.approx(nuclear, rel=1e-8)
    assert 0.5 * (4 * (U**2).sum() + (V**2).sum() / 4) > 1.5 * nuclear


def test_too_few_components_leave_the_convex_problem_undecided():
    X = data()
    model = fitted(X, n_components=2)
    assert model.certificate_["nuclear norm"].status is Status.UNDECIDED
    assert "components are needed" in model.certificate_["nuclear norm"].statement
    assert model.certificate_["best of rank K"].status is Status.HOLDS
    assert model.certificate_.ok


@pytest.mark.parametrize("name", ["user_factors_", "item_factors_"])
def test_a_nudge_is_noticed_by_the_gap(name):
    X = data()
    model = fitted(X)
    moved = copy.deepcopy(model)
    setattr(moved, name, getattr(model, name) * 1.001)
    report = surefit.verify(moved, X)
    assert report["nuclear norm"].status is Status.FAILS
    assert report["loss"].status is Status.FAILS
