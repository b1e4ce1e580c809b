"""Forged clusters, mixtures and factors, each consistent with itself, that must not pass."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_iris

import surefit
from surefit.certificate import Claim, Kind, Status
from surefit.cluster import KMeans
from surefit.cluster._lower_bounds import pca_tail_bound, sdp_bound
from surefit.decomposition import MatrixFactorization
from surefit.mixture import BernoulliMixture, GaussianMixture


def blobs():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(20, 4)) + c for c in (0, 6, 12)])


def fails(certificate, name):
    return certificate[name].status is Status.FAILS


# ---------------------------------------------------------------------------- k-means


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_a_centre_without_rows_excuses_no_other(kind):
    """It made the rounding of all centres as large as its own, and lost the variance."""
    X = blobs()
    model = KMeans(3, random_state=0).fit(X)
    wrong, far = X.mean(axis=0) + 0.5, X.mean(axis=0) + 1e20
    model.cluster_centers_, model.labels_ = np.array([wrong, far, far]), np.zeros(60, np.int32)
    model.inertia_ = float(((X - wrong) ** 2).sum())
    model.n_iter_, model.inertia_trace_ = 1, [2.0 * model.inertia_, model.inertia_]
    model.restart_inertias_ = [model.inertia_]
    found = surefit.verify(model, kind(X))
    assert fails(found, "centres")
    assert found["monotone"].bound < 1e-6


def test_restarts_that_ended_elsewhere():
    model = KMeans(3, random_state=0, n_init=2).fit(blobs())
    model.restart_inertias_ = [1e9, 2e9]
    assert fails(surefit.verify(model, blobs()), "restarts")


def test_centres_that_are_no_numbers_or_too_few():
    model = KMeans(3, random_state=0).fit(blobs())
    for centres in (np.full((3, 4), np.nan), model.cluster_centers_[:2]):
        forged = KMeans(3, random_state=0).fit(blobs())
        forged.cluster_centers_ = centres
        found = surefit.verify(forged, blobs())["attributes"]
        assert found.status is Status.FAILS
        assert "cluster_centers_" in found.statement


def test_an_infinite_number_shows_nothing():
    assert Claim.check("", "", Kind.EXACT, np.inf, np.inf).status is Status.FAILS


@pytest.mark.parametrize("scale", [1e-160, 1e-150, 1e-90, 1e-78, 1e78, 1e90, 1e145])
def test_bounds_at_the_ends_of_the_range(scale):
    """Norms of the scatter matrix vanished or overflowed: the bound was the whole sum of squares."""
    X = blobs()
    usual = KMeans(3, random_state=0, n_init=2).fit(X)
    model = KMeans(3, random_state=0, n_init=2).fit(X * scale)
    assert model.certificate_.ok
    np.testing.assert_array_equal(model.labels_, usual.labels_)
    for Z in (X, X.repeat(20, axis=1)):  # features, and rows, are fewer
        least = ((Z - Z[::20].repeat(20, axis=0)) ** 2).sum()  # of some clustering
        wide = Z * scale
        for bound in (
            pca_tail_bound(wide, None, 3).value,
            sdp_bound(wide, None, 3, usual.labels_, max_iter=5).value,
        ):
            assert 0.0 <= bound / scale / scale <= least


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sparse_rows_far_from_zero_and_in_single_precision(kind, offset):
    """Squares of float32 rows were added up in float32, and the rounding was that of centred rows."""
    X = sp.csr_array((load_iris().data + offset).astype(kind))
    assert KMeans(4, random_state=0, tol=0).fit(X).certificate_.ok


# ---------------------------------------------------------------------------- mixtures


def spheres():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(60, 3)) + c for c in (0, 5)])


@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e-5])
@pytest.mark.parametrize("far", [1e3, 1e40])
def test_a_component_without_rows_excuses_no_other(weight, far):
    """One of tiny variance, or far away, made every tolerance of the certificate as large as one liked."""
    X = spheres()
    model = GaussianMixture(3, covariance_type="diag", reg_covar=0.0, random_state=0).fit(X)
    model.weights_ = np.array([0.5, 0.5 - weight, weight])
    model.means_ = np.array([[0.5], [5.5], [far]]) * np.ones(3)
    model.covariances_ = np.array([[1.0], [2.0], [1e-60]]) * np.ones(3)
    model.precisions_ = 1.0 / model.covariances_
    model.precisions_cholesky_ = np.sqrt(model.precisions_)
    value = model.score(X)
    model.final_lower_bound_, model.lower_bound_ = value + 0.3, value
    model.lower_bounds_, model.ridge_slacks_ = [value - 1.0, value], [0.0, 0.0]
    found = surefit.verify(model, X)
    assert fails(found, "stationarity")
    assert fails(found, "log-likelihood")


def test_a_record_of_the_run_is_owed_and_needs_a_ridge_for_its_falls():
    X = spheres()
    model = GaussianMixture(2, random_state=0).fit(X)
    model.lower_bounds_, model.ridge_slacks_ = [], []
    assert fails(surefit.verify(model, X), "monotone likelihood")
    model = GaussianMixture(2, reg_covar=0.0, random_state=0).fit(X)
    value = model.lower_bound_
    model.lower_bounds_, model.ridge_slacks_, model.n_iter_ = [value + 1.0, value], [1.4, 1.4], 2
    assert fails(surefit.verify(model, X), "monotone likelihood")


def test_precisions_of_one_component_are_not_judged_by_the_condition_of_another():
    X = spheres()
    model = GaussianMixture(2, random_state=0).fit(X)
    model.covariances_[1] = np.diag([1.0, 1.0, 1e-18])
    model.precisions_[1] = np.diag([1.0, 1.0, 1e18])
    model.precisions_cholesky_[1] = np.diag([1.0, 1.0, 1e9])
    model.precisions_[0] *= 1.01
    assert fails(surefit.verify(model, X), "parameters")


def coins():
    rng = np.random.default_rng(0)
    return (rng.random((80, 6)) < np.repeat([[0.2], [0.8]], 40, axis=0)).astype(np.float32)


def test_a_bernoulli_component_without_rows_excuses_no_other():
    X = coins()
    model = BernoulliMixture(3, random_state=0).fit(X)
    model.probabilities_ = np.float32([[0.3], [0.7], [1e-35]]) * np.ones(6, np.float32)
    model.weights_ = np.float32([0.5, 0.5, 0.0])
    found = surefit.verify(model, X)
    assert fails(found, "stationarity")
    assert fails(found, "log-likelihood")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, torch.as_tensor])
def test_probabilities_of_zero_and_one_leave_the_others_their_digits(kind, form):
    """What stands for log 0 was added to the other logarithms and taken off again, and they were gone."""
    X = np.column_stack([coins(), np.ones(80), np.zeros(80), np.arange(80) % 2]).astype(kind)
    X[:40, -1] = 1.0
    model = BernoulliMixture(3, alpha=0.0, random_state=0, max_iter=2000).fit(form(X))
    assert model.certificate_.ok
    p = np.asarray(model.probabilities_)
    assert p.min() == 0.0
    assert p.max() == 1.0


# ---------------------------------------------------------------------------- factors


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("size", [1e8, 1e13, 1e16, 1e30])
def test_factors_that_cancel(size, missing):
    """Their product is 0, and the rounding of their sizes excused every gradient."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 8))
    X[0, 0] = np.nan if missing else X[0, 0]
    model = MatrixFactorization(2, reg=0.0, random_state=0, max_iter=500).fit(X)
    u, v = rng.normal(size=(12, 1)), rng.normal(size=(8, 1))
    model.user_factors_, model.item_factors_ = np.hstack([u * size, -u * size]), np.hstack([v, v])
    model.loss_ = 0.5 * float(np.nansum(X**2))
    model.loss_trace_, model.n_iter_ = np.array([model.loss_]), 1
    assert not surefit.verify(model, X).ok


def test_a_mean_without_biases():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 8)) + 3.0
    model = MatrixFactorization(2, random_state=0, max_iter=500).fit(X - 2.0)
    model.global_mean_ = 2.0
    assert fails(surefit.verify(model, X), "loss")


def test_factors_verify_on_tensors_and_on_arrays():
    X = np.random.default_rng(0).normal(size=(12, 8))
    model = MatrixFactorization(2, random_state=0, max_iter=500)
    assert surefit.verify(model.fit(X), torch.as_tensor(X)).ok
    assert surefit.verify(model.fit(torch.as_tensor(X)), X).ok


@pytest.mark.parametrize("biases", [False, True])
def test_users_of_an_ill_conditioned_matrix_are_solved_for(biases):
    """An inverse alone left a gradient of the condition of the items, above the rounding."""
    X = np.vstack([blobs(), np.full(4, 1e9)])
    model = MatrixFactorization(2, biases=biases, random_state=0, max_iter=500).fit(X)
    assert model.certificate_["user block"].status is Status.HOLDS
