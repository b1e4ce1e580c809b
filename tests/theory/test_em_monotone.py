"""EM never lowers the likelihood: the identity behind it, and the chain, from random starts (EM-1)."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import surefit
from surefit.mixture import BernoulliMixture, GaussianMixture, em, evidence

KINDS = ("full", "tied", "diag", "spherical")


def blobs(n=240, p=3, K=3, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) + spread * rng.normal(size=(K, p))[rng.integers(0, K, n)]


def normal_mixture(X):
    """EM's two steps for a mixture of Gaussians, as a textbook writes them."""

    def e_step(theta):
        return np.stack(
            [np.log(w) + multivariate_normal(m, S).logpdf(X) for w, m, S in zip(*theta)], axis=1
        )

    def m_step(q):
        mass = q.sum(axis=0)
        means = q.T @ X / mass[:, None]
        covariances = [(q[:, k] * (X - m).T) @ (X - m) / mass[k] for k, m in enumerate(means)]
        return mass / len(X), means, np.array(covariances)

    return e_step, m_step


def random_theta(X, K, rng):
    return (
        rng.dirichlet(np.ones(K)),
        X[rng.choice(len(X), K, replace=False)],
        np.array([np.cov(X.T)] * K),
    )


@pytest.mark.spec("EM-1")
@pytest.mark.parametrize("seed", range(5))
def test_the_identity_holds_for_any_q(seed):
    """log p(x|theta) = E_q log[p(x,z|theta)/q] + KL(q || p(z|x,theta)), to 1e-10, with E_q (ERR-59)."""
    rng = np.random.default_rng(seed)
    X = blobs(seed=seed)
    e_step, _ = normal_mixture(X)
    joint = e_step(random_theta(X, 3, rng))
    total = logsumexp(joint, axis=1)
    for q in (rng.dirichlet(np.ones(3), len(X)), np.eye(3)[rng.integers(0, 3, len(X))]):
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(q > 0, q * (joint - np.log(q)), 0).sum(axis=1)
            gap = np.where(q > 0, q * (np.log(q) - joint + total[:, None]), 0).sum(axis=1)
        assert np.abs(total - bound - gap).max() < 1e-10
        assert (gap >= -1e-12).all()
        found = evidence(joint, q)
        assert found.error < 1e-10
        assert found.likelihood == pytest.approx(total.mean(), abs=1e-12)
        assert found.bound == pytest.approx(bound.mean(), abs=1e-12)
        assert found.divergence == pytest.approx(gap.mean(), abs=1e-12)
    posterior = evidence(joint, np.exp(joint - total[:, None]))
    assert abs(posterior.divergence) < 1e-12  # where the E-step goes


@pytest.mark.spec("EM-1")
@pytest.mark.parametrize("seed", range(4))
def test_the_chain_of_inequalities(seed):
    """L(theta') >= F(q', theta') >= F(q', theta) = L(theta), each link on its own, at every step."""
    X = blobs(seed=seed)
    e_step, m_step = normal_mixture(X)
    theta = random_theta(X, 3, np.random.default_rng(seed))
    for _ in range(25):
        joint = e_step(theta)
        total = logsumexp(joint, axis=1)
        q = np.exp(joint - total[:, None])
        new = m_step(q)
        before, after = evidence(joint, q), evidence(e_step(new), q)
        assert before.bound == pytest.approx(before.likelihood, abs=1e-10)
        assert after.bound >= before.bound - 1e-12
        assert after.likelihood >= after.bound - 1e-12
        theta = new
    found = em(e_step, m_step, random_theta(X, 3, np.random.default_rng(seed)), tol=1e-9)
    assert found.certificate.ok
    assert (np.diff(found.trace) >= -1e-12).all()
    assert found.value == pytest.approx(logsumexp(e_step(found.theta), axis=1).mean(), abs=1e-12)
    np.testing.assert_allclose(found.q.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.spec("EM-1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hard", [False, True])
def test_the_likelihood_never_falls_without_a_ridge(kind, hard):
    for seed in range(6):
        X = blobs(seed=seed)
        model = GaussianMixture(
            3,
            covariance_type=kind,
            init_params="k-means++" if hard else "random",
            random_state=seed,
            reg_covar=1e-12,
            tol=1e-9,
            max_iter=2000,
            hard=hard,
        ).fit(X)
        trace = [*model.lower_bounds_, model.final_lower_bound_]
        assert (np.diff(trace) >= -1e-11).all()
        assert model.certificate_["monotone likelihood"].status is surefit.Status.HOLDS


@pytest.mark.spec("EM-1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg", [1e-6, 1e-2, 1.0])
@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_with_a_ridge_it_falls_by_no_more_than_the_slack(kind, reg):
    """L(new) - L(old) >= -(reg/2) sum_k pi_k' [tr P_k - tr P_k'], with P from fits of one step each."""
    X = blobs(p=2)
    rng = np.random.default_rng(1)
    shape = {"full": (3, 2, 2), "tied": (2, 2), "diag": (3, 2), "spherical": (3,)}[kind]
    start = (
        np.broadcast_to(np.eye(2) * 0.5, shape) if kind in ("full", "tied") else np.full(shape, 0.5)
    )
    kept = {
        "weights_init": np.ones(3) / 3,
        "means_init": X[rng.choice(len(X), 3)],
        "precisions_init": start,
    }
    fell = 0.0

    def trace_of(precisions):
        if kind in ("full", "tied"):
            return np.trace(precisions, axis1=-2, axis2=-1)
        return precisions.sum(axis=1) if kind == "diag" else 2 * precisions

    for _ in range(30):
        model = GaussianMixture(
            3, covariance_type=kind, reg_covar=reg, max_iter=1, certify=False, **kept
        ).fit(X)
        slack = (
            0.5
            * reg
            * (
                model.weights_ * (trace_of(kept["precisions_init"]) - trace_of(model.precisions_))
            ).sum()
        )
        assert model.ridge_slacks_[0] == pytest.approx(slack, rel=1e-9, abs=1e-15)
        gain = model.final_lower_bound_ - model.lower_bound_
        assert gain >= -slack - 1e-12
        fell = min(fell, gain)
        kept = {
            "weights_init": model.weights_ / model.weights_.sum(),
            "means_init": model.means_,
            "precisions_init": model.precisions_,
        }
    if reg == 1.0 and kind == "full":
        assert fell < -1e-6  # the plain likelihood does fall here: the slack is no formality


@pytest.mark.spec("EM-1")
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_bernoulli_mixture_climbs_with_its_prior(alpha):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, size=(3, 8))
        X = (rng.uniform(size=(300, 8)) < p[rng.integers(0, 3, 300)]).astype(float)
        model = BernoulliMixture(3, alpha=alpha, tol=1e-10, max_iter=5000, random_state=seed).fit(X)
        trace = [*model.lower_bounds_, model.final_lower_bound_]
        assert (np.diff(trace) >= -1e-12).all()
        assert model.certificate_.ok, str(model.certificate_)


def test_a_wrong_m_step_is_named():
    """The maximum is missed: the middle link breaks, and the certificate says after which step."""
    X = blobs()
    e_step, m_step = normal_mixture(X)
    theta = random_theta(X, 3, np.random.default_rng(0))

    def wrong(q):
        weights, means, covariances = m_step(q)
        return weights, means, 5.0 * covariances

    with pytest.warns(surefit.CertificateWarning, match=r"F\(q', theta'\) >= F\(q', theta\)"):
        found = em(e_step, wrong, theta, tol=1e-6, max_iter=40)
    assert found.certificate["monotone chain"].status is surefit.Status.FAILS
    assert found.certificate["evidence identity"].status is surefit.Status.UNINFORMATIVE


def test_the_spherical_variance_is_a_mean_over_features():
    """ERR-58: without 1/D the variance at D = 5 is 20.0 where it is 4.0."""
    rng = np.random.default_rng(0)
    X = 2.0 * rng.normal(size=(200_000, 5))
    model = GaussianMixture(1, covariance_type="spherical").fit(X)
    assert model.covariances_[0] == pytest.approx(4.0, rel=0.01)
    without = ((X - model.means_[0]) ** 2).sum() / len(X)
    assert without == pytest.approx(20.0, rel=0.01)
    assert model.covariances_[0] == pytest.approx(without / 5 + 1e-6, rel=1e-12)
