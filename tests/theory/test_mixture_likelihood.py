"""The likelihood of a mixture: unbounded, indifferent to names, guarded by a floor (GMM-1)."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import surefit
from surefit.mixture import GaussianMixture, initial_parameters


def mixture(X, weights, means, sigmas):
    parts = [np.log(w) + norm(m, s).logpdf(X[:, 0]) for w, m, s in zip(weights, means, sigmas)]
    return logsumexp(parts, axis=0).sum()


@pytest.mark.spec("GMM-1")
def test_a_component_on_one_row_drives_the_likelihood_up_for_ever():
    X = np.random.default_rng(0).normal(size=(30, 1))
    values = [mixture(X, [0.5, 0.5], [0.0, X[7, 0]], [1.0, 10.0**-k]) for k in range(1, 60, 4)]
    assert (np.diff(values[3:]) > 8.0).all()  # log 10^4 a step, for ever
    assert values[-1] > values[0] + 100.0


@pytest.mark.spec("GMM-1")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("floor", [1e-4, 1e-8])
def test_the_floor_guards_it_and_is_reported(kind, floor):
    """Started on one far row, a component collapses onto it and stays at the floor; the claim names it."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), [[50.0, 50.0]]])
    start = initial_parameters(X, 2, covariance_type=kind, random_state=0)
    start["means_init"] = np.array([[0.0, 0.0], [50.0, 50.0]])
    model = GaussianMixture(2, covariance_type=kind, reg_covar=floor, **start).fit(X)
    claim = model.certificate_["variance floor"]
    assert "smallest variance of component 1" in claim.statement
    assert f"floor reg_covar={floor:.3g}" in claim.statement
    assert "would be unbounded" in claim.statement
    assert claim.status is surefit.Status.UNDECIDED
    assert claim.kind is surefit.Kind.BOUND
    smallest = (
        np.linalg.eigvalsh(model.covariances_[1]).min()
        if kind == "full"
        else np.min(model.covariances_[1])
    )
    assert smallest == pytest.approx(floor, rel=1e-6)
    apart = ("variance floor", "evidence identity")  # the second is so for every model
    others = [c for c in model.certificate_.claims if c.name not in apart]
    assert all(c.status is surefit.Status.HOLDS for c in others)


@pytest.mark.spec("GMM-1")
def test_a_lower_floor_gives_a_higher_likelihood():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), [[50.0, 50.0]]])
    start = {
        "weights_init": [0.5, 0.5],
        "means_init": [[0.0, 0.0], [50.0, 50.0]],
        "precisions_init": np.stack([np.eye(2)] * 2),
    }
    values = [
        GaussianMixture(2, reg_covar=reg, certify=False, **start).fit(X).score(X) * len(X)
        for reg in (1e-2, 1e-4, 1e-6, 1e-8)
    ]
    np.testing.assert_allclose(
        np.diff(values), np.log(100.0), rtol=0.02
    )  # D/2 log 100 for the one row


@pytest.mark.spec("GMM-1")
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_all_renamings_are_equal(kind):
    """K! solutions: each has the same likelihood, and is as stationary."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2)) + 3 * rng.normal(size=(3, 2))[rng.integers(0, 3, 200)]
    model = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-8, max_iter=1000).fit(X)
    reference = model.score(X)
    for order in itertools.permutations(range(3)):
        renamed = GaussianMixture(
            3,
            covariance_type=kind,
            weights_init=model.weights_[list(order)],
            means_init=model.means_[list(order)],
            precisions_init=model.precisions_ if kind == "tied" else model.precisions_[list(order)],
            tol=1e-8,
        ).fit(X)
        assert renamed.lower_bounds_[0] == pytest.approx(reference, abs=1e-12)
        np.testing.assert_allclose(renamed.means_, model.means_[list(order)], atol=1e-3)
        assert renamed.certificate_.ok


@pytest.mark.spec("GMM-1")
def test_not_convex_two_starts_two_ends():
    X = np.repeat([-8.0, 0.0, 8.0], 40)[:, None] + np.random.default_rng(0).normal(size=(120, 1))
    ends = []
    for means in ([[-8.0], [0.0], [8.0]], [[-8.5], [-7.5], [4.0]]):
        model = GaussianMixture(
            3,
            covariance_type="tied",
            means_init=means,
            weights_init=np.ones(3) / 3,
            precisions_init=[[1.0]],
            tol=1e-8,
            max_iter=5000,
        ).fit(X)
        assert model.certificate_["stationarity"].status is surefit.Status.HOLDS
        assert "no optimality claim" in model.certificate_["stationarity"].statement
        ends.append(model.final_lower_bound_)
    assert ends[0] > ends[1] + 0.1
