"""One forgery for each term of the claims about mixtures, and for each of their limits to rounding."""

import copy

import numpy as np
import pytest

import surefit
from surefit.certificate import Status
from surefit.mixture import BernoulliMixture, GaussianMixture, em

KINDS = ["full", "tied", "diag", "spherical"]


def blobs():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(40, 2)) + c for c in (0, 5)])


def coins(kind=np.float64):
    rng = np.random.default_rng(0)
    return (rng.random((80, 5)) < np.repeat([[0.2], [0.8]], 40, axis=0)).astype(kind)


GAUSSIAN = GaussianMixture(2, random_state=0, tol=1e-8, max_iter=500).fit(blobs())
BERNOULLI = BernoulliMixture(2, random_state=0).fit(coins())


BOTH = [(GAUSSIAN, blobs()), (BERNOULLI, coins())]


def changed(model, **attributes):
    other = copy.deepcopy(model)
    for name, value in attributes.items():
        setattr(other, name, value)
    return other


def status_of(model, X, name, **settings):
    report = surefit.verify(model, X, **settings)
    return report[name].status if name in report else report["attributes"].status


# ------------------------------------------------------------------------ parameters


def rescaled(k):
    """Weights whose sum is off by k, everything else as it was: the density is no density."""
    return GAUSSIAN.weights_ * (1.0 + k)


@pytest.mark.parametrize("by", [1e-3, -1e-9, 1e-13])
def test_weights_add_up_to_one_whatever_the_covariances_are(by):
    assert status_of(changed(GAUSSIAN, weights_=rescaled(by)), blobs(), "weights") is Status.FAILS
    thin = blobs() * [1.0, 1e-6]  # a condition number of 1e12 gave the sum a tolerance of 1e-2
    model = GaussianMixture(2, reg_covar=0.0, random_state=0).fit(thin)
    model.weights_ = model.weights_ * (1.0 + by)
    assert status_of(model, thin, "weights") is Status.FAILS


def test_weights_are_not_negative_and_starting_weights_add_up_too():
    negative = changed(GAUSSIAN, weights_=np.array([1.5, -0.5]))
    assert status_of(negative, blobs(), "weights") is Status.FAILS
    start = GaussianMixture(2, max_iter=0, random_state=0, weights_init=[0.4, 0.6]).fit(blobs())
    assert surefit.verify(start, blobs())["weights"].status is Status.HOLDS
    start.weights_ = start.weights_ * 1.001
    assert status_of(start, blobs(), "weights") is Status.FAILS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["precisions_", "precisions_cholesky_", "covariances_"])
def test_covariances_precisions_and_factors_are_those_of_each_other(kind, name):
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(blobs())
    forged = changed(model, **{name: getattr(model, name) * (1.0 + 1e-11)})
    assert status_of(forged, blobs(), "parameters") is Status.FAILS


def test_rounding_excuses_a_thousandth_of_an_inverse_and_no_more():
    thin = blobs() * [1.0, 1e-7]
    model = GaussianMixture(1, reg_covar=0.0, random_state=0).fit(thin)
    model.precisions_ = model.precisions_ * 1.02  # the floor of a condition of 1e14 is 0.4
    model.precisions_cholesky_ = model.precisions_cholesky_ * np.sqrt(1.02)
    report = surefit.verify(model, thin)
    assert report["parameters"].status is not Status.HOLDS


# ------------------------------------------------------------------------ the other claims


@pytest.mark.parametrize("wrong", ["shares", "sum"])
@pytest.mark.parametrize(("model", "X"), BOTH, ids=["gaussian", "bernoulli"])
def test_the_responsibilities_of_predict_proba_are_checked(model, X, wrong, monkeypatch):
    """Both terms: other shares that add up to 1, and the right ones times a factor."""
    honest = type(model)._proba

    def forged(self, rows):
        q = honest(self, rows)
        return q[:, ::-1] if wrong == "shares" else q * 1.001

    monkeypatch.setattr(type(model), "_proba", forged)
    assert status_of(model, X, "responsibilities") is Status.FAILS


@pytest.mark.parametrize(("model", "X"), BOTH, ids=["gaussian", "bernoulli"])
def test_the_objective_is_recomputed(model, X):
    for off in (1e-10, -1e-10, 1.0):
        forged = changed(model, final_lower_bound_=model.final_lower_bound_ + off)
        assert status_of(forged, X, "log-likelihood") is Status.FAILS


def record(model, bounds, slacks):
    """A record that belongs together, of a fit that says it converged."""
    return changed(
        model, lower_bounds_=list(bounds), lower_bound_=bounds[-1], n_iter_=len(bounds),
        ridge_slacks_=np.array(slacks),
    )  # fmt: skip


def test_a_record_that_falls_or_ends_above_the_objective():
    X, value = blobs(), GAUSSIAN.final_lower_bound_
    name = "monotone likelihood"
    low = value - 1e-9  # a run that converged gains no more than tol in its last step
    assert status_of(record(GAUSSIAN, [low, value], [0, 0]), X, name) is Status.HOLDS
    assert status_of(record(GAUSSIAN, [value + 1e-6], [0]), X, name) is Status.FAILS
    assert status_of(record(GAUSSIAN, [value, value - 1e-6], [0, 0]), X, name) is Status.FAILS
    # the ridge may cost a step something, but not more than p / 2 nats
    assert status_of(record(GAUSSIAN, [value + 1e-6], [1e-5]), X, name) is Status.HOLDS
    dear = record(GAUSSIAN, [value + 1.5, value + 1.5], [1.4, 1.6])
    assert status_of(dear, X, name) is Status.FAILS
    for broken in ({"n_iter_": 1}, {"lower_bound_": value - 2.0}, {"ridge_slacks_": np.zeros(1)}):
        forged = changed(record(GAUSSIAN, [low, value], [0, 0]), **broken)
        assert status_of(forged, X, name) is Status.FAILS


@pytest.mark.parametrize(("model", "X"), BOTH, ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize(
    "attributes", [{"converged_": False}, {"converged_": 1}, {"n_iter_": 10**6}, {"n_iter_": 2.5}]
)
def test_how_the_run_ended_goes_with_its_record(model, X, attributes):
    assert not surefit.verify(changed(model, **attributes), X).ok


def test_a_step_that_would_still_move_the_model():
    """Each parameter by itself, with an objective to match."""
    X = blobs()
    for name, value in (
        ("weights_", np.array([0.8, 0.2])),
        ("means_", GAUSSIAN.means_ + 0.3),
    ):
        forged = changed(GAUSSIAN, **{name: value})
        forged.final_lower_bound_ = forged.score(X)
        report = surefit.verify(forged, X)
        assert report["log-likelihood"].status is Status.HOLDS
        assert report["stationarity"].status is Status.FAILS
        assert "so this" not in report["stationarity"].statement


@pytest.mark.parametrize(
    ("name", "value"),
    [("weights_", [0.5, 0.5 + 1e-12]), ("probabilities_", -0.1), ("probabilities_", 1.1)],
)
def test_probabilities_are_between_zero_and_one(name, value):
    forged = copy.deepcopy(BERNOULLI)
    getattr(forged, name).flat[:2] = value
    assert status_of(forged, coins(), "parameters") is Status.FAILS


def test_single_precision_excuses_no_more_than_the_tolerance():
    """The rounding of float32 probabilities is above 1e-8: what lies between is undecided, not held."""
    X = coins(np.float32)
    model = BernoulliMixture(2, random_state=0).fit(X)
    model.final_lower_bound_ += 3e-7
    assert status_of(model, X, "log-likelihood") is Status.HOLDS
    assert status_of(model, X, "log-likelihood", tol=1e-8) is Status.UNDECIDED
    model.final_lower_bound_ += 1e-2
    assert status_of(model, X, "log-likelihood") is Status.FAILS


# ------------------------------------------------------------------------ claims without content


def test_what_is_so_for_every_model_is_uninformative():
    found = surefit.verify(GAUSSIAN, blobs())
    assert found["evidence identity"].status is Status.UNINFORMATIVE
    free = GaussianMixture(2, reg_covar=0.0, random_state=0).fit(blobs())
    assert free.certificate_["variance floor"].status is Status.UNINFORMATIVE
    assert found["variance floor"].status is Status.HOLDS


@pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")
def test_a_prior_that_is_not_a_number_breaks_the_chain():
    """A NaN was never larger than the worst shortfall so far, and the chain held."""
    heads = np.array([5, 9, 8, 4, 7])

    def e_step(p):
        return np.log(0.5) + heads[:, None] * np.log(p) + (10 - heads[:, None]) * np.log(1 - p)

    def m_step(q):
        return (q * heads[:, None]).sum(axis=0) / (10 * q.sum(axis=0))

    start = np.array([0.6, 0.5])
    assert em(e_step, m_step, start).certificate.ok
    found = em(e_step, m_step, start, max_iter=5, log_prior=lambda p: np.nan)
    assert found.certificate["monotone chain"].status is Status.FAILS
