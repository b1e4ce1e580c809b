"""SGDClassifier and SGDRegressor: the steps, where they lead, and what the certificate says of the end.

The steps are compared with a plain loop and with scikit-learn's, the end with exact minimisers, and the lower
bound of the certificate with everything that a search finds: nothing is below it.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model as theirs
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.data import load

import surefit
from surefit import CertificateWarning, Status
from surefit.design import RowBlocks
from surefit.linear_model import (
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from surefit.linear_model._sgd_claims import loss_of
from surefit.solvers.linear_sgd import Rules, _gathered, linear_sgd

MARGIN = ["hinge", "squared_hinge", "perceptron", "log_loss", "modified_huber"]
ERROR = ["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"]
RATES = ["constant", "invscaling", "optimal", "adaptive"]
PENALTIES = [None, "l2", "l1", "elasticnet"]
FIXED = {"tol": None, "max_iter": 4, "alpha": 0.01, "eta0": 0.02, "random_state": 3}
N, P = 60, 5


def rows(seed=0, n=N, p=P):
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.standard_normal((n, p))
    X[rng.random((n, p)) < 0.3] = 0.0
    y = X @ np.linspace(-4.0, 5.0, p) + 0.4 + 0.5 * rng.standard_normal(n)
    return X, y, rng.uniform(0.2, 2.0, n)


def signs(y):
    return np.where(y > 0, 1.0, -1.0)


def objective(model, X, y, w, b, s=None):
    """P(w, b) of a model's problem, from the losses and nothing else."""
    l1, l2 = model._penalty_strengths()
    s = np.ones(len(y)) if s is None else s
    losses = loss_of(model).pointwise(X @ w + b, y)
    return float(s @ losses) / len(y) + l1 * np.abs(w).sum() + 0.5 * l2 * float(w @ w)


def gap_of(model, X, y, **given):
    return surefit.verify(model, X, y, **given)["duality gap"]


def fit_quietly(model, *args, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **given)


# ---------------------------------------------------------------------------- the steps


@pytest.mark.spec("OPT-5", "OPT-18", "LOS-4")
@pytest.mark.parametrize("rate", ["constant", "invscaling", "optimal"])
@pytest.mark.parametrize("loss", MARGIN + ERROR)
def test_the_steps_are_those_of_the_rule(loss, rate):
    """w <- (1 - eta alpha) w - eta s l'(z, y) x, b <- b - eta s l'(z, y), one row after the other."""
    X, y, s = rows()
    s = 0.1 * s  # or the first steps of the optimal rate are too long for the squared losses
    kind, target = (SGDClassifier, signs(y)) if loss in MARGIN else (SGDRegressor, y)
    model = kind(loss, learning_rate=rate, shuffle=False, power_t=0.4, **FIXED)
    fit_quietly(model, X, target, sample_weight=s)
    w, b, t = np.zeros(P), 0.0, 1.0
    alpha, eta0, slope = FIXED["alpha"], FIXED["eta0"], loss_of(model).grad
    t0 = 1.0 / (alpha * alpha**-0.25)
    for _ in range(FIXED["max_iter"]):
        for x, goal, weight in zip(X, target, s, strict=True):
            eta = {
                "constant": eta0,
                "invscaling": eta0 / t**0.4,
                "optimal": 1 / (alpha * (t0 + t - 1)),
            }
            step = -eta[rate] * weight * float(slope(np.array([x @ w + b]), np.array([goal]))[0])
            w, b, t = (1.0 - eta[rate] * alpha) * w + step * x, b + step, t + 1.0
    assert_allclose(model.coef_.ravel(), w, rtol=1e-10, atol=1e-12)
    assert_allclose(model.intercept_, [b], rtol=1e-10, atol=1e-12)
    assert model.t_ == t


@pytest.mark.spec("OPT-5", "PER-5")
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", MARGIN + ERROR)
def test_the_fit_is_scikit_learns(loss, penalty):
    """The same visits, the same iterates; every rate that goes with the loss, weights, starts."""
    X, y, s = rows(1)
    name, target = ("SGDClassifier", signs(y)) if loss in MARGIN else ("SGDRegressor", y)
    passive = {"hinge": ["pa1", "pa2"], "epsilon_insensitive": ["pa1", "pa2"]}.get(loss, [])
    for rate in RATES + passive:
        for intercept, shuffle in ((True, True), (False, False)):
            fixed = FIXED | {"penalty": penalty, "fit_intercept": intercept, "shuffle": shuffle}
            mine, peer = (
                fit_quietly(
                    getattr(library, name)(loss, learning_rate=rate, **fixed),
                    X, target, coef_init=np.linspace(0, 1, P), intercept_init=[0.3], sample_weight=s,
                )
                for library in (surefit.linear_model, theirs)
            )  # fmt: skip
            assert_allclose(mine.coef_, peer.coef_, rtol=1e-8, atol=1e-10, err_msg=rate)
            assert_allclose(mine.intercept_, peer.intercept_, rtol=1e-8, atol=1e-10, err_msg=rate)
            assert mine.t_ == peer.t_
            if rate in passive and penalty in ("l1", "elasticnet"):
                break


@pytest.mark.spec("OPT-5")
@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("SGDClassifier", "breast_cancer", {}),
        ("SGDClassifier", "iris", {"loss": "log_loss", "alpha": 0.01}),
        (
            "SGDClassifier",
            "wine",
            {"loss": "modified_huber", "learning_rate": "adaptive", "eta0": 0.1},
        ),
        ("SGDClassifier", "a9a", {"loss": "log_loss", "alpha": 0.1}),
        ("SGDRegressor", "diabetes", {}),
        ("SGDRegressor", "diabetes", {"learning_rate": "adaptive"}),
        ("SGDRegressor", "concrete", {"loss": "huber", "epsilon": 1.0}),
    ],
)
def test_real_data_stop_at_scikit_learns_epoch(name, data, options):
    X, y = load(data)
    X = X.toarray() if sp.issparse(X) else X
    mine, peer = (
        fit_quietly(getattr(library, name)(random_state=0, **options), X, y)
        for library in (surefit.linear_model, theirs)
    )
    assert mine.n_iter_ == peer.n_iter_
    scale = np.abs(peer.coef_).max()
    assert_allclose(mine.coef_, peer.coef_, rtol=0, atol=1e-7 * scale)
    assert mine.score(X, y) == pytest.approx(peer.score(X, y), rel=1e-9)
    assert mine.certificate_.ok


@pytest.mark.spec("OPT-5")
@pytest.mark.parametrize("average", [True, 70])
def test_averages_are_scikit_learns(average):
    X, y, _ = rows(2)
    for name, target in (("SGDClassifier", signs(y)), ("SGDRegressor", y)):
        fixed = FIXED | {"average": average, "learning_rate": "invscaling"}
        mine, peer = (
            fit_quietly(getattr(library, name)(**fixed), X, target)
            for library in (surefit.linear_model, theirs)
        )
        assert_allclose(mine.coef_, peer.coef_, rtol=1e-9)
        assert_allclose(mine.intercept_, peer.intercept_, rtol=1e-9)
        last = clone(mine).set_params(average=False)
        assert_allclose(mine.standard_coef_, fit_quietly(last, X, target).coef_, rtol=1e-12)
        for model in (mine, peer):
            model.partial_fit(X[:20], target[:20])
        assert_allclose(mine.coef_, peer.coef_, rtol=1e-9)


def test_early_stopping_is_scikit_learns():
    """Without decay, where scikit-learn's validation score is that of the weights."""
    for name, data in (("SGDClassifier", "breast_cancer"), ("SGDRegressor", "diabetes")):
        X, y = load(data)
        fixed = {"early_stopping": True, "penalty": None, "learning_rate": "constant", "eta0": 1e-3}
        mine, peer = (
            fit_quietly(getattr(library, name)(random_state=0, **fixed), X, y)
            for library in (surefit.linear_model, theirs)
        )
        assert mine.n_iter_ == peer.n_iter_
        assert_allclose(mine.coef_, peer.coef_, rtol=1e-9, atol=1e-12)
        assert "validation" in mine.certificate_.stopped


@pytest.mark.spec("OPT-5", "OPT-6")
def test_the_mean_step_of_a_batch_is_the_step_of_its_gradient():
    """E[grad_i] = grad, over all rows and over any batch of them."""
    X, y, _ = rows(3)
    start, offset, eta = np.linspace(-0.5, 0.5, P), 0.2, 0.05
    options = {"alpha": 0.1, "learning_rate": "constant", "eta0": eta, "max_iter": 1, "tol": None}
    for batch in (np.arange(N), np.arange(7), np.array([3, 11, 40])):
        moves = []
        for i in batch:
            model = SGDRegressor("huber", epsilon=0.5, **options)
            model.fit(X[[i]], y[[i]], coef_init=start, intercept_init=[offset])
            moves.append(np.append(model.coef_ - start, model.intercept_ - offset))
        slopes = np.clip(X[batch] @ start + offset - y[batch], -0.5, 0.5)
        gradient = np.append(X[batch].T @ slopes / len(batch) + 0.1 * start, slopes.mean())
        assert_allclose(np.mean(moves, axis=0), -eta * gradient, rtol=1e-11, atol=1e-14)


@pytest.mark.spec("OPT-18")
def test_the_steps_of_every_schedule():
    """On a loss of slope -1 everywhere, and x = 1, the weight is the sum of the steps so far."""
    n = 50
    X, y = np.ones((n, 1)), np.full(n, 1e6)
    t = np.arange(1.0, n + 1)
    options = {"epsilon": 0.0, "penalty": None, "fit_intercept": False, "max_iter": 1, "tol": None}
    alpha, eta0 = 0.05, 0.3
    t0 = 1.0 / (alpha * np.sqrt(1.0 / np.sqrt(alpha)))
    for rate, power, steps in [
        ("constant", 0.5, np.full(n, eta0)),
        ("adaptive", 0.5, np.full(n, eta0)),
        ("invscaling", 0.5, eta0 / np.sqrt(t)),
        ("invscaling", 0.25, eta0 / t**0.25),
        ("invscaling", 1.0, eta0 / t),
        ("optimal", 0.5, 1.0 / (alpha * (t0 + t - 1.0))),
    ]:
        model = SGDRegressor(
            "epsilon_insensitive",
            learning_rate=rate,
            power_t=power,
            eta0=eta0,
            alpha=alpha,
            **options,
        )
        assert model.fit(X, y).coef_[0] == pytest.approx(steps.sum(), rel=1e-12)


@pytest.mark.spec("OPT-18")
def test_the_adaptive_step_is_divided_by_five_when_the_objective_stalls():
    """A tolerance that nothing meets: five epochs at each of eta0, eta0 / 5, ... down to 1e-6."""
    X, y = np.ones((3, 1)), np.full(3, 1e6)
    model = SGDRegressor(
        "epsilon_insensitive", epsilon=0.0, penalty=None, fit_intercept=False, learning_rate="adaptive",
        eta0=0.1, tol=1e9,
    )  # fmt: skip
    model.fit(X, y)
    steps = [0.1]
    while steps[-1] > 1e-6:
        steps.append(steps[-1] / 5.0)
    assert model.n_iter_ == 1 + 5 * len(steps)  # the first epoch is an improvement on nothing
    assert model.coef_[0] == pytest.approx(3 * 0.1 + 15 * sum(steps), rel=1e-12)


@pytest.mark.spec("PER-1", "PER-4", "PER-5")
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_perceptron_is_sgd_on_its_loss(penalty):
    X, y, _ = rows(4)
    options = {"penalty": penalty, "alpha": 0.01, "max_iter": 6, "tol": None, "random_state": 1}
    for container in (np.asarray, sp.csr_array):
        mine = SGDClassifier("perceptron", learning_rate="constant", eta0=1.0, **options)
        fit_quietly(mine, container(X), signs(y))
        rule = fit_quietly(Perceptron(eta0=1.0, **options), container(X), signs(y))
        assert_array_equal(mine.coef_, rule.coef_)
        assert_array_equal(mine.intercept_, rule.intercept_)
    assert (
        "duality gap" not in mine.certificate_
    )  # the minimum, 0, is at w = 0: nothing to be near to


@pytest.mark.spec("PER-8")
def test_several_classes_are_one_vs_rest():
    X, y = load("iris")
    model = SGDClassifier("log_loss", shuffle=False, alpha=0.01).fit(X, y)
    for k in range(3):
        alone = SGDClassifier("log_loss", shuffle=False, alpha=0.01).fit(X, y == k)
        assert_array_equal(model.coef_[k], alone.coef_[0])
        assert model.objective_[k] == pytest.approx(alone.objective_[0], rel=1e-12)
        one, other = (
            model.certificate_[f"class {k}: duality gap"],
            alone.certificate_["duality gap"],
        )
        assert (one.status, one.statement) == (other.status, other.statement)
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    threads = SGDClassifier("log_loss", shuffle=False, alpha=0.01, n_jobs=2).fit(X, y)
    assert_array_equal(threads.coef_, model.coef_)


@pytest.mark.parametrize("rate", ["pa1", "pa2"])
def test_passive_aggressive_steps_go_as_far_as_the_row_asks_for(rate):
    X, y, _ = rows(5)
    for loss, kind, target in (
        ("hinge", SGDClassifier, signs(y)),
        ("epsilon_insensitive", SGDRegressor, y),
    ):
        options = {"learning_rate": rate, "penalty": None, "fit_intercept": False}
        first = {"classes": [-1.0, 1.0]} if kind is SGDClassifier else {}
        model = kind(loss, eta0=1e9, **options).partial_fit(X[:1], target[:1], **first)
        left = loss_of(model).pointwise(X[:1] @ model.coef_.ravel(), target[:1])
        assert left[0] == pytest.approx(0.0, abs=1e-8)  # no bound on the step: the loss is gone
        short = kind(loss, eta0=1e-3, **options).partial_fit(X[:1], target[:1], **first)
        norm = np.linalg.norm(X[0])
        start = loss_of(model).pointwise(np.zeros(1), target[:1])[0]
        step = 1e-3 if rate == "pa1" else start / (norm**2 + 500.0)
        assert np.linalg.norm(short.coef_) == pytest.approx(step * norm, rel=1e-12)


# ---------------------------------------------------------------------------- weights, pieces, penalties


def test_what_a_weight_means():
    """A factor on the step: zero is a visit without one, c everywhere is eta0 times c."""
    X, y, s = rows(6)
    options = {
        "penalty": None,
        "learning_rate": "constant",
        "shuffle": False,
        "tol": None,
        "max_iter": 3,
    }
    for kind, target in ((SGDClassifier, signs(y)), (SGDRegressor, y)):
        kept = s > 0.8
        zero = kind(eta0=0.02, **options).fit(X, target, sample_weight=s * kept)
        drop = kind(eta0=0.02, **options).fit(X[kept], target[kept], sample_weight=s[kept])
        assert_allclose(zero.coef_, drop.coef_, rtol=1e-12)
        thrice = kind(eta0=0.02, **options).fit(X, target, sample_weight=np.full(N, 3.0))
        assert_allclose(thrice.coef_, kind(eta0=0.06, **options).fit(X, target).coef_, rtol=1e-12)
    by_class = SGDClassifier(class_weight={-1.0: 0.5, 1.0: 2.0}, random_state=0).fit(X, signs(y))
    by_row = SGDClassifier(random_state=0).fit(X, signs(y), sample_weight=np.where(y > 0, 2.0, 0.5))
    assert_array_equal(by_class.coef_, by_row.coef_)


def test_weights_count_repetitions_in_the_objective_and_in_the_gap():
    """Not in the run, whose steps they lengthen; but in what the certificate says of its end."""
    X, y, _ = rows(7)
    counts = np.arange(N) % 3 + 1
    again = np.repeat(np.arange(N), counts)
    share = N / len(again)  # the mean is over rows, not over weights
    for kind, target in ((SGDClassifier("log_loss"), signs(y)), (SGDRegressor("huber"), y)):
        weighted = kind.set_params(alpha=0.01 / share, random_state=0).fit(
            X, target, sample_weight=counts
        )
        other = clone(kind).set_params(alpha=0.01).fit(X[again], target[again])
        other.coef_, other.intercept_ = weighted.coef_, weighted.intercept_
        del weighted.dual_, other.dual_  # of two runs
        one, two = (
            gap_of(weighted, X, target, sample_weight=counts),
            gap_of(other, X[again], target[again]),
        )
        assert share * one.observed == pytest.approx(two.observed, rel=1e-6)


@pytest.mark.parametrize("penalty", [None, "l2"], ids=str)
@pytest.mark.parametrize("average", [False, 25])
def test_pieces_in_a_row_are_one_epoch(penalty, average):
    X, y, s = rows(8)
    options = {"penalty": penalty, "average": average, "shuffle": False, "max_iter": 1, "tol": None}
    for kind, target in ((SGDClassifier, signs(y)), (SGDRegressor, y)):
        whole = kind(learning_rate="invscaling", eta0=0.1, **options).fit(
            X, target, sample_weight=s
        )
        pieces = kind(learning_rate="invscaling", eta0=0.1, **options)
        first = {"classes": [-1.0, 1.0]} if kind is SGDClassifier else {}
        for part in (slice(0, 10), slice(10, 11), slice(11, 45), slice(45, N)):
            pieces.partial_fit(X[part], target[part], sample_weight=s[part], **first)
        assert_allclose(pieces.coef_, whole.coef_, rtol=1e-11)
        assert_allclose(pieces.intercept_, whole.intercept_, rtol=1e-11)
        assert pieces.t_ == whole.t_ == N + 1
        assert not hasattr(pieces, "dual_")
        claim = pieces.certificate_["duality gap"]
        assert claim.status is Status.UNDECIDED
        assert "partial_fit" in claim.statement
        found = gap_of(pieces, X[45:], target[45:], sample_weight=s[45:])
        assert found.status is not Status.FAILS


def test_a_warm_start_goes_on():
    X, y, _ = rows(9)
    options = {"learning_rate": "constant", "eta0": 0.01, "shuffle": False, "tol": None}
    for kind, target in ((SGDClassifier, signs(y)), (SGDRegressor, y)):
        warm = kind(warm_start=True, max_iter=3, **options).fit(X, target).fit(X, target)
        assert_allclose(warm.coef_, kind(max_iter=6, **options).fit(X, target).coef_, rtol=1e-12)


def test_penalties_at_their_ends():
    X, y, _ = rows(10, n=80, p=12)
    options = FIXED | {"max_iter": 200, "alpha": 0.2}
    l1 = fit_quietly(SGDRegressor(penalty="l1", **options), X, y)
    assert 0 < np.count_nonzero(l1.coef_ == 0.0) < 12
    for ratio, penalty in ((0.0, "l2"), (1.0, "l1")):
        net = fit_quietly(SGDRegressor(penalty="elasticnet", l1_ratio=ratio, **options), X, y)
        assert_array_equal(
            net.coef_, fit_quietly(SGDRegressor(penalty=penalty, **options), X, y).coef_
        )
    smaller = fit_quietly(SGDRegressor(penalty="l2", **options), X, y)
    none = fit_quietly(SGDRegressor(penalty=None, **options), X, y)
    assert np.linalg.norm(smaller.coef_) < np.linalg.norm(none.coef_)


# ---------------------------------------------------------------------------- where they lead


@pytest.mark.spec("LOG-4", "OPT-5", "OPT-18")
@pytest.mark.parametrize("data", ["breast_cancer", "german"])
def test_averaged_logistic_sgd_comes_to_the_optimum(data):
    X, y = load(data)
    X = X.toarray() if sp.issparse(X) else X
    alpha = 0.01
    exact = LogisticRegression(C=1.0 / (alpha * len(y)), tol=1e-12).fit(X, y)
    model = fit_quietly(
        SGDClassifier(
            "log_loss", alpha=alpha, average=10 * len(y), tol=None, max_iter=300, random_state=0,
            max_gap=1e-3,
        ),
        X, y,
    )  # fmt: skip
    target = signs(y)
    best = objective(model, X, target, exact.coef_[0], exact.intercept_[0])
    here = objective(model, X, target, model.coef_[0], model.intercept_[0])
    claim = model.certificate_["duality gap"]
    assert claim.status is Status.HOLDS
    assert 0.0 <= here - best <= claim.observed
    assert claim.observed <= 1e-3 * np.log(2.0)
    distance = np.linalg.norm(model.coef_ - exact.coef_)
    assert distance <= np.sqrt(2.0 * claim.observed / alpha)
    assert distance <= 0.05 * np.linalg.norm(exact.coef_)
    sharp = gap_of(model, X, y)  # in full, a Newton step in the dual makes the bound almost exact
    assert here - best <= sharp.observed <= here - best + 0.2 * claim.observed


@pytest.mark.spec("OPT-5")
def test_averaged_least_squares_sgd_comes_to_the_ridge():
    X, y = load("diabetes")
    alpha = 0.1
    exact = Ridge(alpha=alpha * len(y)).fit(X, y)
    model = SGDRegressor(
        alpha=alpha, average=True, tol=None, max_iter=400, random_state=0, max_gap=1e-4
    )
    fit_quietly(model, X, y)
    claim = model.certificate_["duality gap"]
    best = objective(model, X, y, exact.coef_, exact.intercept_)
    here = objective(model, X, y, model.coef_, model.intercept_[0])
    assert claim.status is Status.HOLDS
    assert here - best <= claim.observed * (1 + 1e-9)
    assert np.linalg.norm(model.coef_ - exact.coef_) <= np.sqrt(2.0 * claim.observed / alpha)
    assert_allclose(model.coef_, exact.coef_, atol=0.02 * np.abs(exact.coef_).max())


@pytest.mark.spec("OPT-17")
def test_the_error_falls_at_least_as_fast_as_the_table_says():
    """Stochastic convex: 1/eps^2 steps to eps, so error <= c / sqrt(steps); strongly convex does better."""
    X, y, _ = rows(11, n=400)
    target, alpha = signs(y), 0.05
    exact = LogisticRegression(C=1.0 / (alpha * len(y)), tol=1e-12).fit(X, target)
    counts, errors = np.array([1, 2, 4, 8, 16, 32, 64]), []
    for count in counts:
        runs = []
        for seed in range(5):
            model = SGDClassifier(
                "log_loss", alpha=alpha, average=True, tol=None, max_iter=int(count)
            )
            fit_quietly(model.set_params(random_state=seed), X, target)
            runs.append(objective(model, X, target, model.coef_[0], model.intercept_[0]))
        best = objective(model, X, target, exact.coef_[0], exact.intercept_[0])
        errors.append(np.mean(runs) - best)
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope < -0.5
    assert min(errors) > 0


# ---------------------------------------------------------------------------- the certificate


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", [loss for loss in MARGIN + ERROR if loss != "perceptron"])
def test_nothing_is_below_the_bound(loss, penalty):
    """P - gap is a lower bound on P everywhere: at other fits, and where a descent from there ends."""
    X, y, s = rows(12)
    kind, target = (SGDClassifier, signs(y)) if loss in MARGIN else (SGDRegressor, y)
    options = {"penalty": penalty, "alpha": 0.05, "random_state": 0, "max_gap": 1e9}
    model = fit_quietly(kind(loss, max_iter=30, **options), X, target, sample_weight=s)
    for certificate in (model.certificate_, surefit.verify(model, X, target, sample_weight=s)):
        assert certificate.ok
        claim = certificate["duality gap"]  # within what was asked for, be it of any use or not
        assert claim.status in (Status.HOLDS, Status.UNINFORMATIVE)
        w, b = model.coef_.ravel(), model.intercept_[0]
        bound = objective(model, X, target, w, b, s) - claim.observed
        for seed in range(3):
            other = kind(
                loss, max_iter=300, tol=None, average=True, **options | {"random_state": seed}
            )
            fit_quietly(other, X, target, sample_weight=s)
            start = np.append(other.coef_.ravel(), other.intercept_)
            found = scipy.optimize.minimize(
                lambda v: objective(model, X, target, v[:-1], v[-1], s), start, method="Powell"
            )
            for v in (start, found.x):
                value = objective(model, X, target, v[:-1], v[-1], s)
                assert value >= bound - 1e-9 * (1.0 + abs(value))


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "squared_hinge", "squared_error"])
def test_the_dual_point_is_a_witness_and_not_trusted(loss):
    """The dual point of the run tightens the bound; a forged one cannot make it false."""
    X, y, _ = rows(13)
    kind, target = (SGDClassifier, signs(y)) if loss != "squared_error" else (SGDRegressor, y)
    options = {"alpha": 0.05, "random_state": 0}
    model = kind(loss, **options).fit(X, target)
    long = fit_quietly(kind(loss, average=True, max_iter=2000, tol=None, **options), X, target)
    best = objective(model, X, target, long.coef_.ravel(), long.intercept_[0])
    here = objective(model, X, target, model.coef_.ravel(), model.intercept_[0])
    own = model._certify(X, target, None, full=False, tol=1e-3)[0].observed
    rng = np.random.default_rng(0)
    without = copy.deepcopy(model)
    del without.dual_
    unaided = without._certify(X, target, None, full=False, tol=1e-3)[0].observed
    assert here - best <= own * (1 + 1e-9) <= unaided * (1 + 1e-9)
    for forged in (
        1e3 * rng.standard_normal((1, N)), np.full((1, N), np.nan), np.zeros((1, N)),
        np.full((1, N), np.inf), np.ones((2, 3)), -model.dual_,
    ):  # fmt: skip
        without.dual_ = forged
        found = without._certify(X, target, None, full=False, tol=1e-3)[0].observed
        assert here - best <= found * (1 + 1e-9) <= unaided * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "modified_huber"])
def test_the_dual_point_of_the_run_is_far_better_than_that_of_the_predictions(loss):
    """Where the slopes at the predictions say little about the weights of the rows."""
    X, y = load("breast_cancer")
    model = SGDClassifier(loss, alpha=0.01, random_state=0).fit(X, y)
    own = model.certificate_["duality gap"].observed
    del model.dual_
    assert own < 0.3 * gap_of(model, X, y).observed


def test_a_gap_that_is_asked_for_and_not_reached_fails_with_a_remedy():
    X, y, _ = rows(14)
    model = SGDClassifier(
        "log_loss", alpha=0.01, max_iter=5, tol=None, random_state=0, max_gap=1e-6
    )
    with pytest.warns(CertificateWarning, match=r"duality gap.*(?s:.*)average=True.*max_gap"):
        model.fit(X, signs(y))
    assert model.certificate_["duality gap"].status is Status.FAILS
    assert not model.certificate_.ok
    assert fit_quietly(clone(model).set_params(max_gap=0.5), X, signs(y)).certificate_.ok
    quiet = clone(model).set_params(max_gap=None).fit(X, signs(y))  # a warning would be an error
    claim = quiet.certificate_["duality gap"]
    assert claim.status is Status.HOLDS
    assert "% of the way down from the constant model" in claim.statement
    none = clone(model).set_params(certify=False).fit(X, signs(y))
    assert not hasattr(none, "certificate_")
    assert not hasattr(none, "dual_")


@pytest.mark.parametrize("kind", [SGDClassifier, SGDRegressor])
def test_a_model_that_is_worse_than_a_constant_is_told_so(kind):
    X, y, _ = rows(15)
    target = signs(y) if kind is SGDClassifier else y
    options = {
        "learning_rate": "constant",
        "eta0": 3.0,
        "max_iter": 1,
        "tol": None,
        "random_state": 0,
    }
    model = kind(**options) if kind is SGDClassifier else kind("epsilon_insensitive", **options)
    claim = model.fit(1e3 * X, target).certificate_["duality gap"]
    assert claim.status is Status.UNDECIDED
    assert "worse than a constant" in claim.statement
    assert "StandardScaler" in claim.statement
    asked = clone(model).set_params(max_gap=1.0)
    with pytest.warns(CertificateWarning, match="duality gap"):
        asked.fit(1e3 * X, target)


def test_the_claim_without_a_goal_is_that_the_model_beats_a_constant():
    """Its bound is the distance of w = 0, with the best intercept, from the same lower bound."""
    X, y, _ = rows(16)
    target = signs(y)
    model = SGDClassifier("squared_hinge", alpha=0.1, random_state=0).fit(X, target)
    claim = model.certificate_["duality gap"]
    here = objective(model, X, target, model.coef_[0], model.intercept_[0])
    constant = scipy.optimize.minimize_scalar(lambda b: objective(model, X, target, np.zeros(P), b))
    assert claim.bound - claim.observed == pytest.approx(constant.fun - here, rel=1e-6)


@pytest.mark.parametrize("data", ["a9a", "diabetes", "breast_cancer"])
def test_nudged_models_and_other_data_are_noticed(data):
    X, y = load(data)
    kind = SGDRegressor if data == "diabetes" else SGDClassifier
    model = kind(random_state=0).fit(X, y)
    assert surefit.verify(model, X, y).ok
    for name, move in (("coef_", 1e-3), ("intercept_", 1e-3)):
        nudged = copy.deepcopy(model)
        value = getattr(nudged, name)
        setattr(nudged, name, value + move * np.linalg.norm(value))
        assert not surefit.verify(nudged, X, y).ok
    assert not surefit.verify(model, X[1:], y[1:]).ok
    for name, claim in (("objective_", "objective"), ("worst_", "worst row")):
        forged = copy.deepcopy(model)
        setattr(forged, name, getattr(model, name) * (1.0 + 1e-6))
        assert [c.name for c in surefit.verify(forged, X, y).failed] == [claim]


# ---------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("average", [False, True, 100])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_sparse_is_dense_however_it_is_stored(penalty, average):
    """Also where weights pay their decay and l1 penalty lazily, and iterates are averaged in closed form."""
    X, y, s = rows(17, n=90, p=8)
    X[np.abs(X) < 0.6] = 0.0
    plain = sp.csr_array(X)
    coo = sp.coo_array(X)
    twice = np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))
    doubled = sp.csr_array(sp.coo_array(twice, shape=X.shape))
    raw = sp.csr_array(  # unsorted, and each entry in two halves
        (
            np.concatenate([np.tile(row[row != 0][::-1] / 2, 2) for row in X]),
            np.concatenate([np.tile(np.flatnonzero(row)[::-1], 2) for row in X]),
            np.concatenate([[0], np.cumsum(2 * np.count_nonzero(X, axis=1))]),
        ),
        shape=X.shape,
    )
    backwards = sp.csr_array(
        (
            np.concatenate([row[row != 0][::-1] for row in X]),
            np.concatenate([np.flatnonzero(row)[::-1] for row in X]).astype(np.int64),
            np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1))]).astype(np.int64),
        ),
        shape=X.shape,
    )
    zeros = plain.copy()
    zeros.data[::9] = 0.0
    options = {
        "penalty": penalty,
        "alpha": 0.05,
        "average": average,
        "random_state": 0,
        "tol": 1e-4,
    }
    for kind, target in ((SGDClassifier("log_loss"), signs(y)), (SGDRegressor(), y)):
        reference = clone(kind).set_params(**options).fit(X, target, sample_weight=s)
        for given in (plain, sp.csc_matrix(X), doubled, raw, backwards):
            model = clone(kind).set_params(**options).fit(given, target, sample_weight=s)
            assert model.n_iter_ == reference.n_iter_
            assert_allclose(model.coef_, reference.coef_, rtol=1e-8, atol=1e-11)
            assert_allclose(model.intercept_, reference.intercept_, rtol=1e-8)
            assert model.certificate_.data_id == reference.certificate_.data_id
        if penalty is None and not average:  # whose steps are made of the norms of the rows
            loss = "hinge" if kind.loss == "log_loss" else "epsilon_insensitive"
            passive = clone(kind).set_params(loss=loss, learning_rate="pa2", random_state=0)
            one, two = (clone(passive).fit(given, target) for given in (X, raw))
            assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)
        model = clone(kind).set_params(**options).fit(zeros, target)
        dense = clone(kind).set_params(**options).fit(zeros.toarray(), target)
        assert_allclose(model.coef_, dense.coef_, rtol=1e-8, atol=1e-11)


def test_float32_rows_give_a_float32_model_of_a_float64_run():
    X, y, _ = rows(18)
    X = X.astype(np.float32)
    for kind, target in ((SGDClassifier("log_loss"), signs(y)), (SGDRegressor(average=True), y)):
        kind.set_params(random_state=0, alpha=0.01)
        for container in (np.asarray, sp.csr_array):
            model = clone(kind).fit(container(X), target)
            double = clone(kind).fit(container(X.astype(np.float64)), target)
            assert model.coef_.dtype == model.intercept_.dtype == np.float32
            assert_array_equal(model.coef_, double.coef_.astype(np.float32))
            assert model.predict(X).dtype in (np.float32, target.dtype)
            assert model.certificate_.ok
            assert surefit.verify(model, X, target).ok


def test_row_blocks_are_read_once_an_epoch_and_shuffled_as_they_are_held(tmp_path):
    X, y, s = rows(19, n=150)
    np.save(tmp_path / "a.npy", X[:70])
    np.save(tmp_path / "b.npy", X[70:])
    held = {"two files": 1 << 25, "many blocks": 17 * P * 8, "a row": 1}
    options = {"max_iter": 7, "tol": None, "random_state": 5}
    for kind, target in ((SGDClassifier("log_loss"), signs(y)), (SGDRegressor(), y)):
        models = {}
        for name, size in held.items():
            blocks = RowBlocks(tmp_path, block_bytes=size)
            model = fit_quietly(clone(kind).set_params(**options), blocks, target, sample_weight=s)
            assert model.n_iter_ == 7
            assert blocks.passes <= 7 + 6  # epochs; recorded values, certificate and fingerprint
            again = fit_quietly(
                clone(model), RowBlocks(tmp_path, block_bytes=size), target, sample_weight=s
            )
            assert_array_equal(again.coef_, model.coef_)
            assert model.certificate_.ok
            assert surefit.verify(model, X, target, sample_weight=s).ok
            models[name] = model
        in_order = clone(kind).set_params(**options, shuffle=False)
        fit_quietly(in_order, X, target, sample_weight=s)
        assert_allclose(
            models["a row"].coef_, in_order.coef_, rtol=1e-10
        )  # one row: nothing to shuffle
        assert np.abs(models["two files"].coef_ - in_order.coef_).max() > 1e-6
        assert np.abs(models["two files"].coef_ - models["many blocks"].coef_).max() > 1e-6


def test_what_is_shuffled_together_is_what_block_bytes_holds(tmp_path):
    """Whatever the sizes of the files and of the pieces in which they are handed out."""
    X = np.random.default_rng(0).standard_normal((60_000, 4)).astype(np.float32)
    for k, part in enumerate(np.split(X, [7, 25_000, 25_001])):
        np.save(tmp_path / f"{k}.npy", part)
    for size, most in ((1 << 25, len(X)), (1000 * 4 * 4, 1000), (1, 1)):
        if most == 1:
            blocks = RowBlocks(X[:50].copy(), block_bytes=size)
        else:
            blocks = RowBlocks(tmp_path, block_bytes=size)
        at = 0
        for part, held in _gathered(blocks):
            assert part == slice(at, at + len(held))
            assert len(held) == min(most, blocks.shape[0] - at)
            assert held.dtype == np.float32
            assert_array_equal(held, X[part])
            at = part.stop
        assert at == blocks.shape[0]
    y = X[:, 0].astype(np.float64)
    order = np.arange(len(X), dtype=np.uint32)
    np.random.default_rng(7).shuffle(order)
    rules = Rules("squared_error", eta0=1e-3)
    *_, mixed = linear_sgd(RowBlocks(tmp_path), y, rules, seed=7, max_iter=1)
    *_, same = linear_sgd(X, y, rules, orders=iter([order]), max_iter=1)
    assert_allclose(mixed.x.w, same.x.w, rtol=1e-12)


def test_early_stopping_on_row_blocks_holds_out_the_same_rows(tmp_path):
    X, y = load("breast_cancer")
    np.save(tmp_path / "x.npy", X)
    blocks = RowBlocks(tmp_path, block_bytes=20_000)
    options = {"early_stopping": True, "shuffle": False, "random_state": 2, "alpha": 0.01}
    for kind, target in ((SGDClassifier("log_loss"), y), (SGDRegressor(), y.astype(float))):
        model = clone(kind).set_params(**options).fit(X, target)
        blocks.passes = 0
        on_disk = clone(kind).set_params(**options).fit(blocks, target)
        assert on_disk.n_iter_ == model.n_iter_
        assert blocks.passes <= 2 * model.n_iter_ + 6  # the held-out rows are read again
        assert_allclose(on_disk.coef_, model.coef_, rtol=1e-9)
        assert "validation" in on_disk.certificate_.stopped


def test_a_call_that_breaks_off_leaves_the_model_as_it_was():
    X, y, _ = rows(20)
    state = {"broken": False}

    def parts():
        yield X[:30]
        if state["broken"]:
            raise OSError("gone")
        yield X[30:]

    blocks = RowBlocks(parts)
    for kind, target in ((SGDClassifier, signs(y)), (SGDRegressor, y)):
        first = {"classes": [-1.0, 1.0]} if kind is SGDClassifier else {}
        state["broken"] = False
        model = kind().partial_fit(blocks, target, **first)
        before, visits = model.coef_.copy(), model.t_
        state["broken"] = True
        with pytest.raises(ValueError, match="block 1 of the iterator could not be read: gone"):
            model.partial_fit(blocks, target)
        assert_array_equal(model.coef_, before)
        assert model.t_ == visits
        assert not hasattr(model, "certificate_")
        fresh = kind()
        with pytest.raises(ValueError, match="block 1"):
            fresh.partial_fit(blocks, target, **first)
        assert not hasattr(fresh, "coef_")
        state["broken"] = False
        again, new = (
            m.set_params(random_state=0).partial_fit(blocks, target, **first)
            for m in (fresh, kind())
        )
        assert_array_equal(again.coef_, new.coef_)
        state["broken"] = True
        with pytest.raises(ValueError, match="block 1"):
            new.fit(blocks, target)
        assert not hasattr(new, "coef_")  # neither the old model nor half of a new one
        with pytest.raises(NotFittedError):
            new.predict(X)


# ---------------------------------------------------------------------------- probabilities, errors


def test_probabilities():
    X, y = load("iris")
    for loss in ("log_loss", "modified_huber"):
        for labels in (y, y > 0):
            model = SGDClassifier(loss, random_state=0, alpha=0.01).fit(X, labels)
            peer = theirs.SGDClassifier(loss, random_state=0, alpha=0.01).fit(X, labels)
            shares = model.predict_proba(X)
            assert_allclose(shares, peer.predict_proba(X), rtol=1e-6, atol=1e-9)
            assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
            with np.errstate(divide="ignore"):
                assert_allclose(model.predict_log_proba(X), np.log(shares), rtol=1e-12)
    nowhere = SGDClassifier("modified_huber", random_state=0).fit(X, y)
    nowhere.coef_, nowhere.intercept_ = 0.0 * nowhere.coef_, np.full(3, -5.0)
    assert_allclose(nowhere.predict_proba(X[:2]), 1.0 / 3.0)  # every class ruled out: all alike
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as error:
        _ = SGDClassifier().fit(X, y).predict_proba
    assert "not available for loss='hinge'" in str(error.value.__cause__)


def test_tensors():
    torch = pytest.importorskip("torch")
    X, y = load("iris")
    tensor, labels = torch.tensor(X), torch.tensor(y)
    for target in (labels, labels.clamp(max=1)):
        model = SGDClassifier("log_loss", average=True, random_state=0, alpha=0.01).fit(
            tensor, target
        )
        plain = SGDClassifier("log_loss", average=True, random_state=0, alpha=0.01).fit(
            X, target.numpy()
        )
        for name in ("coef_", "intercept_", "standard_coef_"):
            assert isinstance(getattr(model, name), torch.Tensor)
            assert_array_equal(getattr(model, name).numpy(), getattr(plain, name))
        for method in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
            ours = getattr(model, method)(tensor)
            assert isinstance(ours, torch.Tensor)
            assert_allclose(ours.numpy(), getattr(plain, method)(X), rtol=1e-9, atol=1e-12)
            assert_allclose(
                getattr(model, method)(X), getattr(plain, method)(X), rtol=1e-9, atol=1e-12
            )
        model.partial_fit(tensor, target)
        plain.partial_fit(X, target.numpy())
        assert_array_equal(model.coef_.numpy(), plain.coef_)
    assert_array_equal(tensor.numpy(), X)  # which was not copied, and not touched
    tensor32 = torch.tensor(X, dtype=torch.float32)
    model = SGDRegressor(random_state=0).fit(tensor32, tensor32[:, 0])
    assert model.coef_.dtype == model.predict(tensor32).dtype == torch.float32
    assert model.certificate_.ok


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            SGDClassifier(alpha=0.0),
            "alpha must be > 0 since learning_rate is 'optimal'.*invscaling",
        ),
        (SGDClassifier("log_loss", learning_rate="pa1"), "'pa1' only works with loss 'hinge'"),
        (SGDRegressor(learning_rate="pa2"), "'pa2' only works with loss 'epsilon_insensitive'"),
        (SGDRegressor(penalty="elasticnet", l1_ratio=None), "l1_ratio must be set .* from 0 to 1"),
        (SGDRegressor(learning_rate="constant", eta0=1e200), "eta0=1e\\+200.*StandardScaler"),
        (SGDClassifier(max_gap=0.0), "'max_gap' parameter of SGDClassifier must be"),
        (SGDRegressor(loss="hinge"), "'loss' parameter of SGDRegressor must be"),
    ],
)
def test_errors_name_the_argument_and_a_remedy(model, words):
    X, y, _ = rows(21)
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model.fit(X, signs(y) if isinstance(model, SGDClassifier) else y)
    assert not hasattr(model, "coef_")


def test_errors_of_starts_classes_and_streams():
    X, y, _ = rows(22)
    with pytest.raises(ValueError, match=r"coef_init does not match .* need \(1, 5\)"):
        SGDClassifier().fit(X, signs(y), coef_init=np.zeros(3))
    with pytest.raises(ValueError, match="intercept_init does not match"):
        SGDRegressor().fit(X, y, intercept_init=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"single label .* Add rows of another class"):
        SGDClassifier().fit(X, np.ones(N))
    for model in (SGDClassifier(early_stopping=True), SGDRegressor(early_stopping=True)):
        with pytest.raises(ValueError, match="early_stopping should be False with partial_fit"):
            model.partial_fit(X, signs(y))
    with pytest.raises(ValueError, match="'balanced' is not supported for partial_fit"):
        SGDClassifier(class_weight="balanced").partial_fit(X, signs(y), classes=[-1, 1])
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs while the objective was still"):
        SGDRegressor(max_iter=2).fit(X, y)
    with pytest.warns(FutureWarning, match="power_t=-0.5"):
        fit_quietly(SGDRegressor(power_t=-0.5, max_iter=2, tol=None), X, y)
