"""OPT-19: every stopping rule is reachable, and the certificate names the one that fired."""

from pathlib import Path

import numpy as np
import pytest

from surefit import CertificateWarning, Status, minimize
from surefit.iterate import Iterate, Stop, run
from surefit.solvers import InverseSqrt, gradient_descent

A = np.array([1.0, 30.0])


def f(x):
    return float(A @ x**2 / 2)


def grad(x):
    return A * x


def quietly(**kwargs):
    """minimize, for runs that are stopped early on purpose: their stationarity claim fails."""
    with pytest.warns(CertificateWarning, match="stationary"):
        return minimize(f, [1.0, 1.0], grad=grad, smoothness=30.0, **kwargs)


@pytest.mark.spec("OPT-19")
def test_maximum_iterations():
    result = quietly(max_iter=7)
    assert (result.stopped, result.n_iter) == (Stop.MAX_ITER, 7)
    assert result.certificate.stopped == Stop.MAX_ITER.value
    assert not result.converged


@pytest.mark.spec("OPT-19")
def test_maximum_time():
    result = quietly(max_time=0.0, tol=1e-15)  # the first look at the clock is too late
    assert (result.stopped, result.n_iter) == (Stop.MAX_TIME, 1)
    assert result.certificate.stopped == Stop.MAX_TIME.value


@pytest.mark.spec("OPT-19")
def test_flat_training_error():
    result = quietly(flat=(1e-3, 5), tol=0.0, max_iter=10**4, step=1e-4)
    # x1 falls by 1e-4 a step: over five steps f falls by less than 0.1 % once x2 is gone
    assert result.stopped is Stop.FLAT
    values = result.trace.values
    assert values[-6] - values[-1] <= 1e-3 * values[-6]
    assert values[-7] - values[-2] > 1e-3 * values[-7]
    assert result.certificate.stopped == Stop.FLAT.value


@pytest.mark.spec("OPT-19")
def test_validation_error_no_longer_falling():
    target = np.array([0.5, 0.0])  # the validation optimum is passed on the way to the minimum

    def validation(x):
        return float(np.linalg.norm(x - target))

    result = quietly(validate=validation, patience=3)
    errors = result.trace.validation
    best = int(np.argmin(errors))
    assert result.stopped is Stop.VALIDATION
    assert len(errors) == best + 1 + 3  # three steps beyond the best, then stop
    assert validation(result.x) == min(errors)  # and the best point is returned
    assert result.certificate.stopped == Stop.VALIDATION.value


@pytest.mark.spec("OPT-19")
def test_the_callback_asks_to_stop():
    seen = []

    def callback(k, iterate):
        seen.append((k, iterate.value))
        return k == 4

    result = quietly(callback=callback)
    assert result.stopped is Stop.CALLBACK
    assert [k for k, _ in seen] == [1, 2, 3, 4]
    assert seen[-1][1] == result.value
    assert result.certificate.stopped == Stop.CALLBACK.value


@pytest.mark.spec("OPT-19")
def test_the_certificate_holds():
    result = minimize(f, [1.0, 1.0], grad=grad, smoothness=30.0, max_iter=2000)
    assert result.stopped is Stop.CERTIFIED
    assert result.converged
    assert result.certificate.stopped == Stop.CERTIFIED.value
    assert result.certificate["stationary"].status is Status.HOLDS
    # at the first step that satisfies it, not later
    assert np.linalg.norm(grad(result.x)) <= 1e-6 * np.linalg.norm(grad(np.ones(2)))
    assert result.n_iter < 2000


@pytest.mark.spec("OPT-19")
def test_a_start_at_the_solution_takes_no_step():
    result = minimize(f, [0.0, 0.0], grad=grad)
    assert (result.stopped, result.n_iter, result.value) == (Stop.CERTIFIED, 0, 0.0)


@pytest.mark.spec("OPT-19")
def test_divergence():
    with pytest.warns(CertificateWarning, match="Take a smaller step"):
        result = minimize(f, [1.0, 1.0], grad=grad, step=1.0)
    assert result.stopped is Stop.DIVERGED
    assert result.certificate.stopped == Stop.DIVERGED.value
    assert result.certificate["stationary"].status is Status.FAILS


@pytest.mark.spec("OPT-19")
def test_leaving_the_domain_counts_as_divergence():
    def log_barrier(x):
        return float(x[0] - np.log(x[0])) if x[0] > 0 else np.nan

    # from 0.01 the gradient is -99: the first step overshoots to 49.5, and all is well from there
    assert minimize(log_barrier, [0.01], grad=lambda x: 1 - 1 / x, step=0.5).converged
    with pytest.warns(CertificateWarning):
        result = minimize(log_barrier, [10.0], grad=lambda x: 1 - 1 / x, step=20.0)
    assert result.stopped is Stop.DIVERGED


@pytest.mark.spec("OPT-19")
def test_the_solver_finishes_when_no_step_changes_the_point():
    # tol=0 asks for a zero gradient, which sqrt(2) does not have in floating point
    def g(x):
        return x**2 - 2.0

    with pytest.warns(CertificateWarning, match="stationary"):
        result = minimize(
            lambda x: float(x[0] ** 3 / 3 - 2 * x[0]),
            [1.0],
            grad=g,
            hess=lambda x: 2 * x,
            method="newton",
            tol=0.0,
        )
    assert result.stopped is Stop.FINISHED
    assert result.certificate.stopped == Stop.FINISHED.value
    assert result.x[0] == pytest.approx(np.sqrt(2), rel=4e-16)


@pytest.mark.spec("OPT-19")
def test_an_estimate_is_not_a_certificate():
    """The bound of a stochastic subgradient run holds in expectation: it may stop it, not certify it."""
    y = np.array([-1.0, 1.0])
    result = minimize(
        lambda x: float(np.mean(np.abs(x[0] - y))),
        [3.0],
        method="subgradient",
        grad_at=lambda x, rows: np.sign(x - y[rows]).mean(keepdims=True),
        n_samples=2,
        step=InverseSqrt(1.0),
        radius=2.0,
        tol=0.3,
        max_iter=5000,
        random_state=0,
    )
    assert result.stopped is Stop.ESTIMATED
    assert result.certificate.stopped == Stop.ESTIMATED.value
    assert result.certificate["suboptimality"].status is Status.UNDECIDED
    assert not result.converged


@pytest.mark.spec("OPT-19")
def test_a_grid_ends_by_itself():
    result = minimize(f, [0.0, 0.0], method="grid", bounds=([-1, -1], [1, 1]), points=5)
    assert (result.stopped, result.n_iter) == (Stop.FINISHED, 25)


@pytest.mark.spec("OPT-19")
def test_a_rule_that_fires_at_a_certified_point_reports_the_certificate():
    """The end of a run is always looked at: max_iter reached at the solution is convergence."""
    steps = (Iterate(np.zeros(1), value=0.0, estimate=np.inf) for _ in range(3))
    fit = run(steps, certify=lambda x: 0.0, tol=0.0, max_iter=3)
    assert fit.stop is Stop.CERTIFIED


@pytest.mark.spec("OPT-19")
def test_every_rule_is_covered_here():
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f"Stop.{stop.name}" in source for stop in Stop)


def test_stochastic_runs_are_looked_at_once_a_pass():
    y = np.array([1.0, 2.0, 3.0, 6.0])
    looked = []

    def loss(w):
        looked.append(1)
        return float(np.mean((w[0] - y) ** 2) / 2)

    with pytest.warns(CertificateWarning, match="stationary"):
        result = minimize(
            loss,
            [0.0],
            method="sgd",
            grad_at=lambda w, rows: w - y[rows].mean(keepdims=True),
            n_samples=4,
            step=0.1,
            flat=(1e-6, 1),
            max_iter=40,
            random_state=0,
        )
    assert result.trace.iterations == list(range(4, result.n_iter + 1, 4))
    assert not np.isnan(result.trace.values).any()
    assert result.stopped in (Stop.FLAT, Stop.MAX_ITER)
    assert len(looked) < 40  # far fewer evaluations of f than steps x terms


def test_a_stochastic_run_asks_for_the_whole_gradient_once_a_pass():
    y = np.arange(20.0)
    sizes = []

    def grad_at(w, rows):
        sizes.append(len(rows))
        return w - y[rows].mean(keepdims=True)

    def loss(w):
        return float(np.mean((w[0] - y) ** 2) / 2)

    with pytest.warns(CertificateWarning, match="stationary"):
        minimize(loss, [0.0], method="sgd", grad_at=grad_at, n_samples=20, step=0.1, max_iter=100)
    assert sizes.count(1) == 100
    assert sizes.count(20) <= 5 + 3  # five passes, the start, the gradient check, the end


def test_driving_a_solver_by_hand_gives_the_same_walk():
    result = quietly(max_iter=5)
    fit = run(gradient_descent(f, grad, [1.0, 1.0], 1 / 30), max_iter=5)
    np.testing.assert_array_equal(result.x, fit.x)
    assert result.trace.values == fit.trace.values
