"""The law of certificates for mixtures: they hold, notice a nudge and other data, and survive a file."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

import surefit
from surefit import Status
from surefit.mixture import BernoulliMixture, GaussianMixture

KINDS = ("full", "tied", "diag", "spherical")


def blobs(seed=0, n=240):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3))
        + 3 * rng.normal(size=(3, 3))[rng.integers(0, 3, n)]
    )


def binary(n=240):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, size=(3, 6))
    return (rng.uniform(size=(n, 6)) < p[rng.integers(0, 3, n)]).astype(float)


def the_law(estimator, X, attributes):
    """As ``check_certificate``, without targets: it holds at the solution; each attribute moved by 1e-3
    along itself is noticed, and so are a changed cell, another order and a missing row."""
    model = clone(estimator).set_params(tol=1e-10, max_iter=100_000).fit(X)
    assert model.certificate_.ok
    report = surefit.verify(model, X)
    assert report.ok, str(report)
    assert report["data"].status is Status.HOLDS
    assert all(np.isfinite(c.bound) for c in report.claims)
    for name in attributes:
        report = surefit.verify(
            nudged(model, **{name: getattr(model, name) * np.float32(1.001)}), X
        )
        assert not report.ok, f"{name}: {report}"
    cell = X.copy()
    cell[0, 0] = 1.001 * cell[0, 0] + 1e-3
    for other in (cell, X[::-1], X[1:]):
        assert surefit.verify(model, other)["data"].status is Status.FAILS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_law_for_gaussian_mixtures(kind, hard, dtype):
    model = GaussianMixture(3, covariance_type=kind, hard=hard, random_state=0)
    names = ("means_", "covariances_", "weights_", "precisions_", "precisions_cholesky_")
    the_law(model, blobs().astype(dtype), names)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_law_for_bernoulli_mixtures(alpha):
    the_law(
        BernoulliMixture(3, alpha=alpha, random_state=0), binary(), ("probabilities_", "weights_")
    )


def nudged(model, **changes):
    moved = copy.deepcopy(model)
    for name, values in changes.items():
        setattr(moved, name, values)
    return moved


@pytest.mark.parametrize("kind", KINDS)
def test_a_consistent_nudge_is_noticed_at_a_loose_tolerance(kind):
    """Weights that still add up to 1, covariances with their inverses: the objective tells."""
    X = blobs()
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    assert surefit.verify(model, X).ok
    weights = model.weights_ + 1e-3 * np.array([1.0, -1.0, 0.0])
    scaled = {
        "covariances_": model.covariances_ * 1.001,
        "precisions_": model.precisions_ / 1.001,
        "precisions_cholesky_": model.precisions_cholesky_ / np.sqrt(1.001),
    }
    means = model.means_ + 1e-3 * np.linalg.norm(model.means_) * np.array(
        [[1.0, 0, 0], [0, 0, 0], [0, 0, 0]]
    )
    for changes in ({"weights_": weights}, scaled, {"means_": means}):
        report = surefit.verify(nudged(model, **changes), X)
        assert report["log-likelihood"].status is Status.FAILS
    tight = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-10, max_iter=5000).fit(
        X
    )
    for changes in (
        {"weights_": tight.weights_ + 1e-3 * np.array([1.0, -1.0, 0.0])},
        {"means_": tight.means_ * 1.001},
    ):
        report = surefit.verify(nudged(tight, **changes), X, tol=1e-10)
        assert report["stationarity"].status is Status.FAILS


def test_a_forged_trace_is_noticed():
    X = blobs()
    model = GaussianMixture(3, init_params="random", random_state=0, max_iter=300).fit(X)
    bounds = model.lower_bounds_
    forged = [
        {"lower_bounds_": [bound + 1.0 for bound in bounds], "lower_bound_": bounds[-1] + 1.0},
        {"lower_bounds_": [bounds[1], bounds[0], *bounds[2:]]},
        {"lower_bound_": bounds[-1] + 1e-3},
        {"lower_bounds_": bounds[1:], "ridge_slacks_": model.ridge_slacks_[1:]},
        {"n_iter_": model.n_iter_ - 1},
        {"ridge_slacks_": model.ridge_slacks_[:-1]},
        {"ridge_slacks_": model.ridge_slacks_ + 10.0},
    ]
    for changes in forged:
        assert (
            surefit.verify(nudged(model, **changes), X)["monotone likelihood"].status
            is Status.FAILS
        )
    lied = nudged(model, final_lower_bound_=model.final_lower_bound_ + 1e-6)
    assert surefit.verify(lied, X)["log-likelihood"].status is Status.FAILS


def test_a_covariance_that_is_none_is_noticed():
    X = blobs()
    for kind in KINDS:
        model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        report = surefit.verify(nudged(model, covariances_=-model.covariances_), X)
        assert not report.ok
    odd = BernoulliMixture(2, random_state=0).fit(binary())
    assert not surefit.verify(nudged(odd, probabilities_=odd.probabilities_ + 1.0), binary()).ok


@pytest.mark.parametrize("hard", [False, True])
def test_other_data_are_noticed(hard):
    X = blobs()
    model = GaussianMixture(3, random_state=0, hard=hard, certify=False).fit(X)
    assert surefit.verify(model, X).ok
    other = X.copy()
    other[5, 1] += 1e-3
    assert not surefit.verify(model, other).ok


@pytest.mark.parametrize(
    "model",
    [
        GaussianMixture(3, random_state=0),
        GaussianMixture(2, covariance_type="tied", hard=True),
        BernoulliMixture(3, random_state=0),
    ],
    ids=str,
)
def test_a_file_keeps_the_certificate_and_a_forged_one_is_caught(model, tmp_path):
    X = binary() if isinstance(model, BernoulliMixture) else blobs()
    model.fit(X)
    model.save(tmp_path / "model.surefit")
    loaded = surefit.load(tmp_path / "model.surefit")
    assert loaded.certificate_ == model.certificate_
    assert surefit.verify(loaded, X).ok
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    name = "probabilities_" if isinstance(model, BernoulliMixture) else "means_"
    setattr(loaded, name, getattr(loaded, name) * (1.0 - 1e-3))
    loaded.save(tmp_path / "forged.surefit")
    assert not surefit.verify(surefit.load(tmp_path / "forged.surefit"), X).ok


def test_what_the_claims_say():
    X = blobs()
    model = GaussianMixture(3, random_state=0, certify="full").fit(X)
    statements = {claim.name: claim.statement for claim in model.certificate_.claims}
    assert "no optimality claim" in statements["stationarity"]
    assert "its objective by" in statements["stationarity"]
    assert "on all 240 rows" in statements["responsibilities"]
    assert "clear of the floor reg_covar=1e-06" in statements["variance floor"]
    bare = GaussianMixture(3, random_state=0, reg_covar=0.0).fit(X)
    assert "there is no floor" in bare.certificate_["variance floor"].statement
