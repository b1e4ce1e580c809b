"""Forged clusters, mixtures and factors, each consistent with itself, that must not pass."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import surefit
from surefit.certificate import Claim, Kind, Status
from surefit.cluster import KMeans, MiniBatchKMeans
from surefit.cluster._kmeans_claims import _before_claim, kmeans_claims
from surefit.cluster._kmeans_look import look
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
    model.lower_bounds_, model.ridge_slacks_, model.n_iter_ = [value, value], [0.0, 0.0], 2
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


# ---------------------------------------------------------------------------- one forgery a term


BLOBS = KMeans(3, random_state=0, n_init=2, init="random").fit(blobs())


def changed(model, **attributes):
    other = copy.deepcopy(model)
    for name, value in attributes.items():
        setattr(other, name, value)
    return other


def claims_of(model, X, **settings):
    """The claims of k-means at the price of a fit, and those of `verify` that are cheap."""
    report = kmeans_claims(model, X, None, full=False, tol=settings.get("tol", 1e-3))
    before = _before_claim(model, X, None, look(model, X, None, full=True))
    return {claim.name: claim for claim in [*report, before]}


def test_a_trace_that_ends_above_the_sum_or_rises_or_is_too_short():
    trace, name = BLOBS.inertia_trace_, "monotone"
    assert claims_of(BLOBS, blobs())[name].status is Status.HOLDS
    wcss = trace[-1]
    for forged in (
        [*trace[:-1], wcss * (1 + 1e-9)],  # ends above it, and never rises
        [*trace[:-1], wcss * (1 - 1e-9)],
        [wcss * (1 - 1e-9), *trace[1:]],
        [*trace[:-2], trace[-2] * 0.5, wcss],
    ):
        claim = claims_of(changed(BLOBS, inertia_trace_=forged), blobs())[name]
        assert claim.status is Status.FAILS
        assert "by the fit's record" in claim.statement
    for broken in ({"inertia_trace_": trace[1:]}, {"n_iter_": BLOBS.n_iter_ + 1}):
        assert claims_of(changed(BLOBS, **broken), blobs())[name].status is Status.FAILS


def test_the_centres_before_the_last_step_are_those_of_the_record():
    X = blobs()
    assert claims_of(BLOBS, X)["centres before"].status is Status.HOLDS
    for forged in (BLOBS.centers_before_ * (1 + 1e-5), BLOBS.centers_before_ + 1e-4):
        claim = claims_of(changed(BLOBS, centers_before_=forged), X)["centres before"]
        assert claim.status is Status.FAILS


def test_sentences_about_centres_that_move_do_not_say_stationary():
    moved = changed(BLOBS, cluster_centers_=BLOBS.cluster_centers_ + 0.2)
    claim = claims_of(moved, blobs())["centres"]
    assert claim.status is Status.FAILS
    assert "they still move" in claim.statement
    assert "stationary" not in claim.statement


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels_", lambda v: v + 0.0),
        ("labels_", lambda v: v - 1),
        ("labels_", lambda v: v + 1),
        ("labels_", lambda v: v[:-1]),
        ("cluster_centers_", lambda v: v[:-1]),
        ("cluster_centers_", lambda v: v[:, :-1]),
        ("cluster_centers_", lambda v: v.astype(np.float16)),
        ("centers_before_", lambda v: v[:-1]),
        ("restart_inertias_", lambda v: v[:1]),
        ("restart_inertias_", lambda v: [*v, v[0]]),
        ("inertia_", lambda v: -v),
        ("n_iter_", lambda v: 0),
        ("n_iter_", lambda v: 10**6),
        ("n_clusters", lambda v: v + 1),
        ("n_init", lambda v: v + 1),
    ],
)
def test_attributes_that_do_not_go_together(name, value):
    forged = changed(BLOBS, **{name: value(getattr(BLOBS, name))})
    found = surefit.verify(forged, blobs())["attributes"]
    assert found.status is Status.FAILS
    known = {"n_clusters": "cluster_centers_", "n_init": "restart_inertias_"}
    assert known.get(name, name) in found.statement


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_all_weight_on_one_row(kind, offset):
    """Its centre is the row to rounding, the sum of squares is that rounding: 1e-32 failed "monotone"."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, weights = (rng.normal(size=(12, 2)) + offset).astype(kind), np.zeros(12)
        weights[int(rng.integers(12))] = rng.uniform(0.1, 5.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one distinct cluster
            model = KMeans(1 + seed % 2, n_init=2, random_state=0).fit(X, sample_weight=weights)
        assert model.certificate_.ok, str(model.certificate_)


def test_rounding_of_positions_excuses_a_thousandth_of_the_sum():
    """Rows 1e-6 apart at 1e8: rounding moves their sum of squares by two percent."""
    X = 1e8 + 1e-6 * np.random.default_rng(0).normal(size=(30, 1))
    model = KMeans(1, random_state=0).fit(X)
    assert surefit.verify(model, X)["WCSS"].status is Status.HOLDS
    model.inertia_ = 1.01 * model.inertia_
    assert surefit.verify(model, X)["WCSS"].status is Status.UNDECIDED


def test_a_bound_of_nothing_is_uninformative():
    X = np.random.default_rng(0).normal(size=(300, 1))  # two centres span the line
    claim = KMeans(2, random_state=0).fit(X).certificate_["distance from the optimum"]
    assert claim.status is Status.UNINFORMATIVE


def test_mini_batches_keep_labels_of_all_rows():
    model = MiniBatchKMeans(3, random_state=0, batch_size=20).fit(blobs())
    for labels in (model.labels_[:-1], model.labels_ + 0.5, model.labels_ - 1):
        assert not surefit.verify(changed(model, labels_=labels), blobs()).ok
    assert not surefit.verify(changed(model, n_steps_=0), blobs()).ok
    again = model.partial_fit(blobs()[:20])  # nothing is claimed after it, and nothing raised
    assert surefit.verify(again, blobs()).ok


RATINGS = np.random.default_rng(0).normal(size=(12, 8)) + 2.0
SPARSE = np.where(np.random.default_rng(1).random((12, 8)) < 0.3, np.nan, RATINGS)
SETTINGS = {"random_state": 0, "max_iter": 500}


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_factors_", lambda v: v[:-1]),
        ("item_factors_", lambda v: v[:, :-1]),
        ("item_factors_", lambda v: v.astype(np.float16)),
        ("user_factors_", lambda v: v * 1.001),
        ("item_factors_", lambda v: v * 1.001),
        ("user_biases_", lambda v: np.zeros(12)),
        ("item_biases_", lambda v: np.zeros(8)),
        ("global_mean_", lambda v: v + 1e-3),
        ("loss_", lambda v: v * (1.0 + 1e-9)),
        ("loss_trace_", lambda v: np.append(v[:-1], v[-1] * (1.0 + 1e-9))),
        ("loss_trace_", lambda v: np.append(0.0, v[1:])),
        ("loss_trace_", lambda v: v[1:]),
        ("n_iter_", lambda v: v + 1),
        ("n_iter_", lambda v: 0),
        ("solver_", lambda v: "sgd"),
        ("seen_", lambda v: v.T.tocsr()),
        ("seen_", lambda v: 2 * v),
        ("seen_", lambda v: None),
        ("seen_", lambda v: np.ones(3)),
    ],
)
def test_each_attribute_of_a_factorisation(name, value, biases):
    model = MatrixFactorization(2, biases=biases, **SETTINGS).fit(SPARSE)
    assert surefit.verify(model, SPARSE).ok
    setattr(model, name, value(getattr(model, name)))
    assert not surefit.verify(model, SPARSE).ok


def test_losses_above_the_best_of_the_rank_are_told_by_their_share_of_the_way():
    model = MatrixFactorization(2, **SETTINGS).fit(RATINGS)
    honest = surefit.verify(model, RATINGS)["best of rank K"]
    model.user_factors_ = 0.8 * model.user_factors_
    found = surefit.verify(model, RATINGS, tol=0.5)["best of rank K"]
    assert found.observed > honest.observed
    assert found.status is Status.UNINFORMATIVE
    assert "% of the way down" in found.statement


def test_gradients_of_sgd_below_their_size_at_zero_claim_nothing():
    model = MatrixFactorization(2, method="sgd", random_state=0, max_iter=5).fit(SPARSE)
    claims = model.certificate_
    assert {claims[name].status for name in ("user block", "item block")} == {Status.UNDECIDED}


@pytest.mark.parametrize("change", [lambda v: v[:-1], lambda v: np.append(v, 0), lambda v: v[:0]])
def test_labels_of_a_fit_are_those_of_all_rows(change):
    """A forger who cut the labels removed the claims about them, and the rest was ok."""
    X = blobs()
    model = MiniBatchKMeans(3, random_state=0, batch_size=20).fit(X)
    del model.certificate_
    assert surefit.verify(model, X).ok
    model.labels_ = change(model.labels_)
    assert "labels_" in surefit.verify(model, X)["attributes"].statement
    del model.labels_
    assert "labels_ is missing" in surefit.verify(model, X)["attributes"].statement


def test_labels_of_the_last_batch_are_no_forgery():
    X = blobs()
    model = MiniBatchKMeans(3, random_state=0, batch_size=20).fit(X).partial_fit(X[:30])
    assert not hasattr(model, "n_iter_")  # of the fit before
    found = surefit.verify(model, X)
    assert found.ok
    assert found["labels"].status is Status.UNDECIDED
    unlabelled = MiniBatchKMeans(3, random_state=0, compute_labels=False).fit(X)
    assert surefit.verify(unlabelled, X)["labels"].status is Status.UNDECIDED
