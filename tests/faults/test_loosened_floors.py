"""Changes just above what rounding does: a floor that is ten thousand times as wide would let them pass."""

import copy
from typing import Any

import numpy as np
import pytest

import surefit
from surefit.certificate import Status
from surefit.cluster import KMeans
from surefit.decomposition import MatrixFactorization
from surefit.kernel_ridge import KernelRidge
from surefit.kernels import psd_claim
from surefit.mixture import BernoulliMixture, GaussianMixture
from surefit.neighbors._claims import neighbours_claim
from surefit.svm import SVC, SVR, LinearSVC

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) + np.repeat([0.0, 3.0], 20)[:, None]
Y = np.repeat([0, 1], 20)
Z = X[:, 0] + RNG.normal(size=40)
COINS = (RNG.random((40, 4)) < np.repeat([[0.2], [0.8]], 20, axis=0)).astype(float)
TWO, ENDS = np.array([[0.0], [1.0]]), np.array([0, 1])


def times(name: str, factor: float) -> Any:
    return lambda m: setattr(m, name, np.asarray(getattr(m, name)) * factor)


def plus(name: str, by: float) -> Any:
    return lambda m: setattr(m, name, getattr(m, name) + by)


def last_but_one(name: str, factor: float) -> Any:
    """The record falls by a little before its end, or (of an objective) rises."""

    def change(m: Any) -> None:
        record = np.array(getattr(m, name), dtype=np.float64)
        record[-2] = record[-1] * factor
        setattr(m, name, list(record))

    return change


def record_above(by: float) -> Any:
    def change(m: Any) -> None:
        m.lower_bound_ = m.final_lower_bound_ + by
        m.lower_bounds_ = [*m.lower_bounds_[:-1], m.lower_bound_]

    return change


CASES = {  # model, rows, targets, change, claim
    "SVC offset": (
        SVC(kernel="linear", C=9.0), TWO, ENDS, plus("intercept_", 1e-10), "complementary slackness",
    ),
    "SVC gap": (SVC(kernel="linear", C=9.0), TWO, ENDS, plus("intercept_", 1e-10), "duality gap"),
    "SVC box": (SVC(kernel="linear", C=0.1), TWO, ENDS, times("dual_coef_", 1.0 + 1e-11), "dual feasibility"),
    "SVR balance": (SVR(), X, Z, times("dual_coef_", 1.0 + 1e-11), "dual feasibility"),
    "hard margin": (SVC(C=np.inf, kernel="linear"), TWO, ENDS, plus("intercept_", 1e-10), "duality gap"),
    "duals": (LinearSVC(loss="hinge"), X, Y, times("dual_coef_", 1.0 + 1e-9), "complementary slackness"),
    "ridge": (KernelRidge(kernel="rbf"), X, Z, times("dual_coef_", 1.0 + 3e-11), "residual"),
    "WCSS": (KMeans(2, random_state=0), X, None, times("inertia_", 1.0 + 1e-12), "WCSS"),
    "trace": (
        KMeans(2, init=X[:2], n_init=1), X, None,
        last_but_one("inertia_trace_", 1.0 - 1e-10), "monotone",
    ),
    "centres": (KMeans(2, random_state=0), X, None, plus("cluster_centers_", 1e-12), "centres"),
    "restarts": (
        KMeans(2, random_state=0, n_init=2), X, None, times("restart_inertias_", 1.0 + 1e-8), "restarts",
    ),
    "weights": (GaussianMixture(1), X, None, times("weights_", 1.0 + 1e-13), "weights"),
    "precisions": (GaussianMixture(1), X, None, times("precisions_", 1.0 + 1e-11), "parameters"),
    "likelihood": (GaussianMixture(1), X, None, plus("final_lower_bound_", 1e-11), "log-likelihood"),
    "record": (GaussianMixture(1), X, None, record_above(1e-11), "monotone likelihood"),
    "step": (GaussianMixture(1, reg_covar=0.0), X, None, plus("means_", 1e-5), "stationarity"),
    "objective": (BernoulliMixture(1), COINS, None, plus("final_lower_bound_", 1e-11), "log-likelihood"),
    "its record": (BernoulliMixture(1), COINS, None, record_above(1e-11), "monotone objective"),
    "loss": (MatrixFactorization(1, random_state=0), X, None, times("loss_", 1.0 + 5e-12), "loss"),
    "users": (
        MatrixFactorization(1, random_state=0), X, None, times("user_factors_", 1.0 + 1e-11), "user block",
    ),
    "losses": (
        MatrixFactorization(1, random_state=0, tol=1e-9), X, None,
        last_but_one("loss_trace_", 1.0 - 1e-11), "monotone loss",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_change_above_rounding_is_not_excused_by_it(case: str) -> None:
    estimator, rows, targets, change, name = CASES[case]
    model = copy.deepcopy(estimator).fit(rows, targets)
    before = surefit.verify(model, rows, targets)
    assert before[name].status is not Status.FAILS
    change(model)
    found = surefit.verify(model, rows, targets, tol=0.0)
    assert found[name].status is Status.FAILS, str(found)


@pytest.mark.parametrize(("least", "status"), [(-1e-16, Status.HOLDS), (-1e-12, Status.FAILS)])
def test_an_eigenvalue_below_rounding(least: float, status: Status) -> None:
    Q, _ = np.linalg.qr(RNG.normal(size=(20, 20)))
    K = (Q * np.append(np.ones(19), least)) @ Q.T
    assert psd_claim(0.5 * (K + K.T)).status is status
    half = np.array(
        [[1.0, 1.001], [1.001, 1.0]], dtype=np.float16
    )  # float64's rounding, not its own
    assert psd_claim(half).status is Status.FAILS


def test_distances_of_another_metric_that_nearly_tie() -> None:
    line = np.array([[0.0], [1.0], [1.0 + 1e-7]])
    claim = neighbours_claim(line, line[:1], np.array([[0, 2]]), "manhattan", {}, "1 query")
    assert claim.status is Status.FAILS
