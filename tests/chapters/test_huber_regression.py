"""Huber's regression with its scale, certified by a dual of its own (LOS-4)."""

import copy
import warnings

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
from tests.data import load
from tests.robust import make, many

import surefit
from surefit import CertificateWarning, Status
from surefit.design import RowBlocks, as_design
from surefit.linear_model import HuberRegressor, Ridge
from surefit.linear_model._huber_dual import huber_gap, huber_null, huber_value, least_scale
from surefit.solvers import huber as huber_solver
from surefit.solvers import huber_newton
from surefit.solvers._centred import CentredRows
from surefit.solvers.huber_interior import huber_interior
from surefit.solvers.huber_problem import HuberProblem, best_scale


def huber_objective(model, X, y, s=None):
    """scikit-learn's formula, written out."""
    s = np.ones(len(y)) if s is None else s
    r = np.abs(y - X @ np.asarray(model.coef_, dtype=float) - float(model.intercept_))
    sigma, epsilon = model.scale_, model.epsilon
    far = r > epsilon * sigma
    value = s.sum() * sigma + s[~far] @ r[~far] ** 2 / sigma
    value += 2.0 * epsilon * (s[far] @ r[far]) - sigma * s[far].sum() * epsilon**2
    return value + model.alpha * float(model.coef_ @ model.coef_)


def theirs(model, X, y, s=None):
    """scikit-learn's fit with the same parameters, polished by L-BFGS to its own limits."""
    names = ("epsilon", "alpha", "fit_intercept")
    other = sklearn.linear_model.HuberRegressor(
        **{name: getattr(model, name) for name in names}, max_iter=10_000, tol=1e-10
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its line search gives up near the optimum
        return other.fit(X, y, sample_weight=s)


# ---------------------------------------------------------------------------- the dual


def dual_optimum(X, y, s, epsilon, alpha, free):
    """The largest dual value, by a generic solver of constrained problems."""
    n = len(y)

    def value(theta):
        v = X.T @ (s * theta)
        return float(s @ (theta * y)) - (float(v @ v) / (4.0 * alpha) if alpha else 0.0)

    def gradient(theta):
        v = X.T @ (s * theta)
        return s * (y - (X @ v / (2.0 * alpha) if alpha else 0.0))

    limits = [
        {
            "type": "ineq",
            "fun": lambda t: 4.0 * s.sum() - s @ t**2,
            "jac": lambda t: -2.0 * s * t,
        }
    ]
    if free:
        limits.append({"type": "eq", "fun": lambda t: s @ t, "jac": lambda t: s})
    if alpha == 0.0:
        limits.append({"type": "eq", "fun": lambda t: X.T @ (s * t), "jac": lambda t: X.T * s})
    found = scipy.optimize.minimize(
        lambda t: -value(t),
        np.zeros(n),
        jac=lambda t: -gradient(t),
        bounds=[(-2.0 * epsilon, 2.0 * epsilon)] * n,
        constraints=limits,
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    for limit in limits:  # near the optimum its line search may give up, at a feasible point
        violation = (
            np.abs(limit["fun"](found.x)) if limit["type"] == "eq" else -limit["fun"](found.x)
        )
        assert np.max(violation) <= 1e-7
    return value(found.x)


@pytest.mark.spec("LOS-4")
@pytest.mark.parametrize("free", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("alpha", [0.0, 1e-2, 3.0])
@pytest.mark.parametrize("epsilon", [1.0, 1.35, 4.0])
def test_strong_duality_with_a_generic_solver(epsilon, alpha, free):
    """The fit's objective is the optimum of the dual that SLSQP finds; 1e-6 is SLSQP's precision."""
    X, y, s = make(14, 2, seed=3)
    model = HuberRegressor(epsilon=epsilon, alpha=alpha, fit_intercept=free).fit(X, y, s)
    optimum = dual_optimum(X, y, s, epsilon, alpha, free)
    assert huber_objective(model, X, y, s) == pytest.approx(optimum, rel=1e-6)
    gap = model.certificate_["duality gap"]
    assert gap.observed <= 1e-12 * optimum


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_weak_duality_on_random_points(alpha, free):
    """Every feasible dual point is below every primal point, sigma = 0 included."""
    X, y, s = make(12, 3, seed=1)
    epsilon = 1.5
    rng = np.random.default_rng(0)
    A = np.column_stack([X] * (alpha == 0.0) + [np.ones(12)] * free + [np.zeros(12)])
    span = (
        np.linalg.qr(np.sqrt(s)[:, None] * A[:, np.abs(A).sum(axis=0) > 0])[0] if A.any() else None
    )
    lowest = np.inf
    for _ in range(300):
        sigma = rng.choice([0.0, rng.exponential()])
        w, b = rng.normal(size=3), free * rng.normal()
        loss = s @ huber_value(y - X @ w - b, epsilon, sigma)
        lowest = min(lowest, float(loss) + alpha * float(w @ w))
    for _ in range(300):
        theta = rng.normal(size=12) * rng.exponential()
        if span is not None:  # the equations, by projection
            root = np.sqrt(s) * theta
            theta = (root - span @ (span.T @ root)) / np.sqrt(s)
        shrink = max(
            np.abs(theta).max() / (2.0 * epsilon), np.sqrt(s @ theta**2 / (4.0 * s.sum())), 1.0
        )
        theta = theta / shrink
        v = X.T @ (s * theta)
        dual = s @ (theta * y) - (v @ v / (4.0 * alpha) if alpha else 0.0)
        assert dual <= lowest + 1e-9


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 2.0])
@pytest.mark.parametrize("epsilon", [1.0, 1.35])
def test_the_gap_in_fifty_digits(epsilon, alpha):
    """Feasibility and both values of a certificate's dual point, recomputed with mpmath."""
    X, y, s = make(15, 2, seed=5)
    model = HuberRegressor(epsilon=epsilon, alpha=alpha).fit(X, y, s)
    gap = huber_gap(
        X, y, model.coef_, model.intercept_, model.scale_, epsilon=epsilon, alpha=alpha,
        weights=s, fit_intercept=True, witness=model.dual_witness_,
    )  # fmt: skip
    with mpmath.workdps(50):
        n, p = X.shape
        w = [mpmath.mpf(float(c)) for c in model.coef_]
        b, sigma = mpmath.mpf(float(model.intercept_)), mpmath.mpf(model.scale_)
        primal = alpha * sum(c * c for c in w)
        for i in range(n):
            r = abs(mpmath.mpf(y[i]) - sum(mpmath.mpf(X[i, j]) * w[j] for j in range(p)) - b)
            near = r <= epsilon * sigma
            loss = r * r / sigma if near else 2 * epsilon * r - mpmath.mpf(epsilon) ** 2 * sigma
            primal += s[i] * (sigma + loss)
        theta = [mpmath.mpf(t) for t in gap.theta]
        total, balance, square = (
            mpmath.fsum(s[i] * f(theta[i]) for i in range(n))
            for f in (lambda t: 1, lambda t: t, lambda t: t * t)
        )
        v = [mpmath.fsum(s[i] * theta[i] * X[i, j] for i in range(n)) for j in range(p)]
        dual = mpmath.fsum(s[i] * theta[i] * y[i] for i in range(n))
        dual -= sum(c * c for c in v) / (4 * alpha) if alpha else 0
        rounding = 1e-13 * float(total)
        assert max(abs(t) for t in theta) <= 2 * epsilon * (1 + 1e-15)
        assert square <= 4 * total * (1 + 1e-15)
        assert abs(balance) <= rounding
        if alpha == 0.0:
            assert max(abs(c) for c in v) <= rounding
        assert float(primal) == pytest.approx(gap.primal, rel=1e-13)
        assert abs(float(primal - dual) - gap.gap) <= gap.floor
        assert abs(gap.gap) <= max(1e-13 * gap.primal, gap.floor)


@pytest.mark.parametrize("free", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 2.0])
@pytest.mark.parametrize("epsilon", [1.0, 1.35, 3.0])
def test_the_bound_is_that_of_a_feasible_point_anywhere(epsilon, alpha, free):
    """Away from the optimum, with few rows, any witness: theta is feasible and D(theta) is the bound."""
    rng = np.random.default_rng(0)
    for n, p in ((14, 6), (5, 4)):
        X, y, s = make(n, p, seed=n)
        model = HuberRegressor(epsilon=epsilon, alpha=alpha, fit_intercept=free).fit(X, y, s)
        optimum = huber_objective(model, X, y, s)
        extreme = 1e6 * rng.normal(size=n)
        for witness in (None, extreme, np.abs(extreme), model.dual_witness_):
            for size in (1e-6, 1e-2, 1.0):
                w = model.coef_ + size * rng.normal(size=p)
                b = model.intercept_ + free * size * rng.normal()
                gap = huber_gap(
                    X, y, w, b, model.scale_ * np.exp(size * rng.normal()), epsilon=epsilon,
                    alpha=alpha, weights=s, fit_intercept=free, witness=witness,
                )  # fmt: skip
                theta, total = gap.theta.astype(np.longdouble), s.sum()
                v = X.T @ (s * theta)
                dual = s @ (theta * y) - (v @ v / (4.0 * alpha) if alpha else 0.0)
                assert np.abs(theta).max() <= 2.0 * epsilon * (1 + 1e-15)
                assert s @ theta**2 <= 4.0 * total * (1 + 1e-14)
                assert not free or abs(s @ theta) <= 1e-13 * total
                assert alpha > 0.0 or np.abs(v).max() <= 1e-10 * total
                assert abs(dual - gap.dual) <= gap.floor + 1e-12 * gap.primal
                assert gap.dual <= optimum + gap.floor


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_witness_can_only_help(epsilon):
    """Nonsense in place of the dual point changes nothing; a random one never makes the gap too small."""
    X, y, s = make()
    model = HuberRegressor(epsilon=epsilon).fit(X, y, s)
    assert (model.dual_witness_ is not None) == (epsilon == 1.0)
    honest = model.certificate_["duality gap"]
    rng = np.random.default_rng(0)
    off = copy.deepcopy(model)
    off.coef_ = model.coef_ * 1.1
    off.outliers_ = np.abs(y - off.predict(X)) > epsilon * off.scale_
    true_gap = huber_objective(off, X, y, s) - huber_objective(model, X, y, s)
    for witness in (None, "text", np.zeros(3), rng.normal(size=60) * 1e9):
        forged = copy.deepcopy(model)
        forged.dual_witness_ = witness
        assert surefit.verify(forged, X, y, sample_weight=s)["duality gap"].observed >= 0.0
        off.dual_witness_ = witness
        report = surefit.verify(off, X, y, sample_weight=s)["duality gap"]
        assert report.status is Status.FAILS
        assert report.observed >= true_gap * (1 - 1e-12)
    assert honest.status is Status.HOLDS
    model.dual_witness_ = np.full(60, np.nan)  # no fit leaves that
    assert surefit.verify(model, X, y, sample_weight=s)["attributes"].status is Status.FAILS


@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_a_nudged_scale_is_noticed(alpha, factor):
    X, y, s = make()
    model = HuberRegressor(alpha=alpha, tol=1e-7).fit(X, y, s)
    model.scale_ *= factor
    assert not surefit.verify(model, X, y, sample_weight=s, tol=1e-7).ok
    model.outliers_ = np.abs(y - model.predict(X)) > model.epsilon * model.scale_
    report = surefit.verify(model, X, y, sample_weight=s, tol=1e-7)
    assert report["duality gap"].status is Status.FAILS


def test_null_value_is_the_best_constant_model():
    X, y, s = make()
    for epsilon in (1.0, 1.35, 3.0):
        model = HuberRegressor(epsilon=epsilon, alpha=0.0).fit(np.zeros_like(X), y, s)
        null = huber_null(y, s, epsilon, fit_intercept=True)
        assert null == pytest.approx(huber_objective(model, np.zeros_like(X), y, s), rel=1e-8)


# ---------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
@pytest.mark.parametrize("epsilon", [1.1, 1.35, 3.0])
def test_agreement_with_scikit_learn(epsilon, alpha, fit_intercept, weighted):
    """Never above their objective; the same coefficients as far as L-BFGS determines them."""
    X, y, s = make(200, 6, seed=2)
    s = s if weighted else None
    model = HuberRegressor(epsilon=epsilon, alpha=alpha, fit_intercept=fit_intercept).fit(X, y, s)
    other = theirs(model, X, y, s)
    ours, value = huber_objective(model, X, y, s), huber_objective(other, X, y, s)
    assert ours <= value * (1.0 + 1e-14)
    # where theirs is within g of the optimum, the coefficients are within about sqrt(g / curvature)
    distance = 10.0 * np.sqrt((value - ours) / ours) + 1e-9
    assert distance < 1e-3
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=distance)
    assert model.scale_ == pytest.approx(other.scale_, abs=distance)
    assert model.certificate_.ok


def test_agreement_to_a_millionth_once_theirs_has_converged():
    X, y, _ = make(300, 2, tails=3.0)
    model = HuberRegressor().fit(X, y)
    other = theirs(model, X, y)

    def objective(x):
        trial = copy.copy(model)
        trial.coef_, trial.intercept_, trial.scale_ = x[:2], x[2], x[3]
        return huber_objective(trial, X, y)

    start = np.append(other.coef_, [other.intercept_, other.scale_])
    found = scipy.optimize.minimize(
        objective, start, method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-15, "maxiter": 20_000, "maxfev": 20_000},
    )  # fmt: skip
    fitted = np.append(model.coef_, [model.intercept_, model.scale_])
    np.testing.assert_allclose(fitted, found.x, rtol=0, atol=1e-6)


def test_real_data():
    X, y = load("california_housing")
    X, y = X[:5000], y[:5000]
    model = HuberRegressor(tol=1e-8).fit(X, y)
    assert model.certificate_.ok
    assert huber_objective(model, X, y) <= huber_objective(theirs(model, X, y), X, y)


# ---------------------------------------------------------------------------- exact fits, scale 0


@pytest.mark.parametrize(
    ("slope", "alpha"), [(1e-6, 0.0), (1e-6, 1e-4), (3.0, 1e-4), (1e5, 1e-4), (1e8, 0.0)]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_exact_line(slope, alpha, dtype):
    """The scale is 0 to rounding, and no residual of rounding size is taken for an outlier."""
    x = np.linspace(0.0, 1.0, 40, dtype=dtype)[:, None]
    y = slope * x[:, 0].astype(float) + 1.0
    model = HuberRegressor(alpha=alpha).fit(x, y)
    unit = np.finfo(dtype).eps * (1.0 + slope)
    assert abs(float(model.coef_[0]) - slope) <= 40 * unit
    assert abs(float(model.intercept_) - 1.0) <= 40 * unit
    assert 0.0 < model.scale_ <= 40 * unit
    assert not model.outliers_.any()
    # next to such a slope, float32 leaves an error as large as what the constant model is off
    lost = dtype is np.float32 and slope == 1e-6
    wanted = Status.UNINFORMATIVE if lost else Status.HOLDS
    assert model.certificate_["duality gap"].status is wanted


@pytest.mark.parametrize("slope", [1e5, 1.2e5, 1e6, 1e8])
def test_a_penalty_limits_the_slope_of_an_exact_line(slope):
    """The force of the rows is bounded, whatever their distance: w = min(slope, force / 2 alpha).

    Off the line r = (slope - w) (x - 1/2), so theta = 2 clip(r / sigma) is the same for every w < slope: the
    penalty's 2 alpha w can be held up to X'theta and no further.
    """
    x = np.linspace(0.0, 1.0, 40)
    sigma = scipy.optimize.brentq(
        lambda t: np.minimum(((x - 0.5) / t) ** 2, 1.35**2).mean() - 1.0, 0.1, 1.0
    )
    limit = x @ (2.0 * np.clip((x - 0.5) / sigma, -1.35, 1.35)) / 2e-4
    assert 1e5 < limit < 1.2e5
    model = HuberRegressor().fit(x[:, None], slope * x + 1.0)
    assert model.coef_[0] == pytest.approx(min(slope, limit), rel=1e-7)
    assert model.scale_ == pytest.approx(sigma * max(slope - limit, 0.0), rel=1e-6, abs=1e-8)
    assert model.certificate_["duality gap"].status is Status.HOLDS


@pytest.mark.parametrize("offset", [1e6, 1e9, 1.7e12])
def test_scikit_learn_misses_an_exact_line_far_from_zero(offset):
    """scikit-learn issue 27777: on a column such as a time stamp it stops at R^2 = 0, and says nothing."""
    x = np.linspace(offset, offset + 20_000.0, 24)[:, None]
    y = 0.002 * (x[:, 0] - x[0, 0]) + 5.0
    model = HuberRegressor().fit(x, y)
    rounding = np.finfo(float).eps * 0.002 * offset  # of w x and b, each that large
    assert np.abs(model.predict(x) - y).max() <= 4.0 * rounding + 1e-13
    assert model.certificate_["duality gap"].status is Status.HOLDS
    other = sklearn.linear_model.HuberRegressor().fit(x, y)
    assert other.score(x, y) < 0.1
    assert huber_objective(model, x, y) < 1e-3 * huber_objective(other, x, y)


def test_scikit_learn_gives_up_on_an_exact_line():
    """Issue 27777 again: as the scale goes to 0 its line search fails; no model, or a worse one."""
    x = np.arange(100.0)[:, None]
    y = 1e8 * x[:, 0]
    model = HuberRegressor(alpha=0.0).fit(x, y)
    assert model.coef_[0] == pytest.approx(1e8, rel=1e-15)
    assert model.certificate_["duality gap"].status is Status.HOLDS
    try:
        other = theirs(model, x, y)
    except ValueError as error:
        assert "convergence failed" in str(error)  # noqa: PT017
    else:
        assert huber_objective(model, x, y) < huber_objective(other, x, y)


@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_a_line_with_outliers_is_found_exactly(alpha):
    """45 % exact rows are enough: 1 - 1/epsilon^2. The scale is 0, the outliers are seen as such."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    w = np.array([1.0, -2.0, 0.5, 3.0])
    y = X @ w + 7.0
    wrong = rng.uniform(size=400) < 0.3
    y[wrong] += 50.0 * rng.normal(size=wrong.sum())
    model = HuberRegressor(alpha=alpha, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-12)
    assert model.intercept_ == pytest.approx(7.0, abs=1e-12)
    np.testing.assert_array_equal(model.outliers_, wrong)
    assert model.scale_ == least_scale(y, np.ones(400))
    assert model.certificate_["duality gap"].status is Status.HOLDS


@pytest.mark.spec("LOS-4")
@pytest.mark.parametrize("kind", ["continuous", "ties", "weights"])
def test_epsilon_one_is_least_absolute_deviations(kind):
    """sigma <= |r| costs nothing then, so the optimum is 2 sum |r|: that of a linear program."""
    X, y, s = make(50, 3, seed=4)
    if kind == "ties":
        X, y = np.round(X), np.round(y)
    s = s if kind == "weights" else np.ones(50)
    model = HuberRegressor(epsilon=1.0, alpha=0.0, tol=1e-12).fit(X, y, s)
    A = np.hstack([X, np.ones((50, 1)), np.eye(50), -np.eye(50)])
    program = scipy.optimize.linprog(
        np.concatenate([np.zeros(4), s, s]),
        A_eq=A,
        b_eq=y,
        bounds=[(None, None)] * 4 + [(0, None)] * 100,
    )
    assert huber_objective(model, X, y, s) == pytest.approx(2.0 * program.fun, rel=1e-9)
    assert model.certificate_.ok


@pytest.mark.spec("LOS-4")
def test_a_large_epsilon_is_ridge_regression():
    """No row is far: w minimises ||r||^2 / sigma + alpha ||w||^2 with sigma^2 = mean r^2."""
    X, y, s = make()
    model = HuberRegressor(epsilon=1e6, alpha=2.0, tol=1e-12).fit(X, y, s)
    r = y - X @ model.coef_ - model.intercept_
    assert model.scale_ == pytest.approx(np.sqrt(s @ r**2 / s.sum()), rel=1e-9)
    ridge = Ridge(alpha=2.0 * model.scale_).fit(X, y, s)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-7)
    assert not model.outliers_.any()


def test_the_equations_of_the_optimum():
    """Influence is clipped: X'(s psi) = alpha w, sum s psi = 0, sum s min(u^2, eps^2) = sum s."""
    X, y, s = make()
    model = HuberRegressor(alpha=0.5, tol=1e-12).fit(X, y, s)
    u = (y - X @ model.coef_ - model.intercept_) / model.scale_
    psi = s * np.clip(u, -1.35, 1.35)
    np.testing.assert_allclose(X.T @ psi, 0.5 * model.coef_, rtol=0, atol=1e-10)
    assert abs(psi.sum()) < 1e-10
    assert s @ np.minimum(u**2, 1.35**2) == pytest.approx(s.sum(), rel=1e-12)
    np.testing.assert_array_equal(model.outliers_, np.abs(u) > 1.35)


# ---------------------------------------------------------------------------- invariances, extremes


def test_residuals_all_of_one_size():
    """|r| = 1 everywhere: the scale is 1, and no row is an outlier."""
    X = np.repeat(np.arange(10.0), 2)[:, None]
    y = 2.0 * X[:, 0] + np.tile([1.0, -1.0], 10)
    model = HuberRegressor(alpha=0.0, tol=1e-12).fit(X, y)
    assert model.coef_[0] == pytest.approx(2.0, abs=1e-12)
    assert model.scale_ == pytest.approx(1.0, abs=1e-12)
    assert not model.outliers_.any()


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 10.0])
@pytest.mark.parametrize("free", [True, False])
def test_more_columns_than_rows_and_equal_columns(alpha, free):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(15, 40))
    twice = np.tile(rng.normal(size=(30, 4)), 2)
    for X in (wide, twice, sp.csr_array(wide), wide.astype(np.float32)):
        y = rng.normal(size=X.shape[0])
        model = HuberRegressor(alpha=alpha, fit_intercept=free, tol=1e-9).fit(X, y)
        assert model.certificate_.ok
        single = X.dtype == np.float32  # whose rounding is above this tol
        wanted = Status.UNDECIDED if single else Status.HOLDS
        assert model.certificate_["duality gap"].status is wanted
        assert model.coef_.dtype == X.dtype


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1e-2])
@pytest.mark.parametrize("epsilon", [1.0, 1.35, 10.0])
@pytest.mark.parametrize("difference", [1e-6, 1e-9, 0.0])
def test_nearly_equal_columns_are_told_apart(difference, epsilon, alpha):
    """X'X cannot: the squares of such differences are lost in it. The objective shows what was missed."""
    X, y, s = make(60, 2, tails=1.0)
    noise = np.random.default_rng(0).normal(size=60)
    both = np.column_stack([X, X[:, 0] * (1.0 + difference * noise)])
    options = {"epsilon": epsilon, "alpha": alpha, "tol": 1e-9}
    model = HuberRegressor(**options).fit(both, y, s)
    assert model.certificate_["duality gap"].status is Status.HOLDS
    value = huber_objective(model, both, y, s)
    rounding = 1e-14 * float(np.abs(both).max(axis=0) @ np.abs(model.coef_)) * s.sum()
    # a column more is never worse, and a multiple of the difference is a column of its own
    without = HuberRegressor(**options).fit(X, y, s)
    assert value <= huber_objective(without, X, y, s) + rounding
    if difference and alpha == 0.0:
        apart = np.column_stack([X, X[:, 0] * noise])
        exact = HuberRegressor(**options).fit(apart, y, s)
        assert value <= huber_objective(exact, apart, y, s) + rounding
    again = HuberRegressor(**options, warm_start=True)
    again.coef_, again.intercept_, again.scale_ = model.coef_, model.intercept_, model.scale_
    assert again.fit(both, y, s).certificate_["duality gap"].status is Status.HOLDS


def test_only_constant_columns_leave_the_intercept():
    X, y, s = np.full((9, 2), [-0.446, 0.1]), np.arange(9.0) ** 2, np.ones(9)
    for alpha in (0.0, 1.0):
        model = HuberRegressor(alpha=alpha, tol=1e-10).fit(X, y, s)
        np.testing.assert_array_equal(model.coef_, 0.0)
        null = huber_null(y, s, 1.35, fit_intercept=True)
        assert huber_objective(model, X, y, s) == pytest.approx(null, rel=1e-10)
        assert model.certificate_.ok


@pytest.mark.parametrize("unit", [1e-100, 1e-11, 1e11, 1e100])
@pytest.mark.parametrize("epsilon", [1.0, 1.35])
def test_the_unit_of_y_does_not_matter(epsilon, unit):
    """The interior-point method, too, which least absolute deviations go through."""
    X, y, s = make(120, 8, seed=2)
    one = HuberRegressor(epsilon=epsilon, alpha=0.0, tol=1e-10).fit(X, y, s)
    other = HuberRegressor(epsilon=epsilon, alpha=0.0, tol=1e-10).fit(X, unit * y, s)
    np.testing.assert_allclose(other.coef_ / unit, one.coef_, rtol=0, atol=1e-9)
    assert other.certificate_["duality gap"].status is Status.HOLDS


def test_a_median_between_two_rows_is_certified():
    """Least absolute deviations with no row on the fit: every force is at its bound, and they balance."""
    X, y = np.array([[1.0], [1.0], [-1.0], [-1.0], [0.0]]), np.array([1.0, 2.0, -5.0, -8.0, 3.0])
    model = HuberRegressor(epsilon=1.0, alpha=0.0, fit_intercept=False).fit(X, y)
    assert 2.0 <= model.coef_[0] <= 5.0
    assert huber_objective(model, X, y) == pytest.approx(2.0 * (1.0 + 3.0 + 6.0 + 3.0))
    assert model.certificate_["duality gap"].status is Status.HOLDS


def test_columns_of_very_different_means_and_sizes():
    X, y, _ = make(300, 4)
    messy = X * [1e-6, 1.0, 1e6, 1.0] + [0.0, 1e5, 0.0, 1.0]
    model = HuberRegressor(alpha=0.0, tol=1e-9).fit(messy, y)
    plain = HuberRegressor(alpha=0.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_ * [1e-6, 1.0, 1e6, 1.0], plain.coef_, rtol=1e-6)
    assert model.certificate_.ok


# ---------------------------------------------------------------------------- the iteration


@pytest.mark.parametrize("epsilon", [1.0, 1.35, 5.0])
def test_the_best_scale_for_given_residuals(epsilon):
    """From any start: the largest root of sum s min(r^2, eps^2 sigma^2) = sigma^2 sum s, by bisection."""
    X, y, s = make(60, 2, tails=1.0)
    rows = CentredRows(as_design(X), np.zeros(2), True)
    problem = HuberProblem(rows, y, s, float(s.sum()), epsilon, 0.0, 1e-12)

    def excess(sigma):
        return s @ np.minimum(y**2, (epsilon * sigma) ** 2) - sigma**2 * s.sum()

    for start in (1e-9, 1e-3, 1.0, 1e6, np.inf):
        found = best_scale(problem, y, start)
        if epsilon == 1.0:  # flat: every sigma up to the least |r| is best
            assert found <= np.abs(y).min() * (1 + 1e-12)
        else:
            assert excess(found * (1 - 1e-9)) > 0.0 > excess(found * (1 + 1e-9))


def test_newton_alone_shortens_its_steps(monkeypatch):
    """Very heavy tails: full steps would go wrong, and no interior point helps out."""
    monkeypatch.setattr(huber_solver, "huber_interior", lambda *_: iter(()))
    for seed in range(6):
        X, y, s = make(100, 4, seed=seed, tails=0.6)
        model = HuberRegressor(tol=1e-9).fit(X, y, s)
        assert model.certificate_["duality gap"].status is Status.HOLDS
        assert model.n_iter_ <= 20


def test_steps_are_few_and_the_objective_falls():
    X, y, s = make(2000, 10, seed=6)
    steps = list(
        huber_solver.huber(
            as_design(X), y, s, 1.35, 1e-4, fit_intercept=True, floor=least_scale(y, s)
        )
    )
    values = [it.value for it in steps]
    assert len(steps) <= 10
    assert (np.diff(values) < 0.0).all()
    model = HuberRegressor().fit(X, y, s)
    assert model.n_iter_ == len(steps)


def test_max_iter_and_warm_start():
    X, y, _ = make(tails=1.0)
    with pytest.warns(CertificateWarning, match="max_iter"):
        short = HuberRegressor(max_iter=1, tol=1e-9).fit(X, y)
    assert short.n_iter_ == 1
    with pytest.warns(CertificateWarning):
        none = HuberRegressor(max_iter=0).fit(X, y)
    assert none.n_iter_ == 0
    np.testing.assert_array_equal(none.coef_, 0.0)
    model = HuberRegressor(warm_start=True, tol=1e-8).fit(X, y)
    coef = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-12)
    model.set_params(alpha=1.0).fit(X, y)
    cold = HuberRegressor(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, rtol=0, atol=1e-4)
    assert model.certificate_.ok


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 3.0])
@pytest.mark.parametrize("epsilon", [1.0, 1.35])
@pytest.mark.parametrize("n", [40, 900])
def test_the_interior_point_method_finds_the_same(n, epsilon, alpha):
    """Both solvers, on small problems and on ones where heavy rows are kept apart."""
    X, y, s = make(n, 4, seed=8)
    model = HuberRegressor(epsilon=epsilon, alpha=alpha, tol=1e-12).fit(X, y, s)
    rows = CentredRows(as_design(X), X.mean(axis=0), True)
    steps = list(huber_interior(rows, y, s, epsilon, alpha, np.zeros(5)))
    d, sigma, theta = steps[-1].x
    other = copy.copy(model)
    other.coef_, other.intercept_, other.scale_ = d[:4], rows.intercept(d), max(sigma, 1e-14)
    assert len(steps) < 30
    assert huber_objective(other, X, y, s) == pytest.approx(
        huber_objective(model, X, y, s), rel=1e-11
    )
    assert np.abs(theta).max() <= 2.0 * epsilon * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_many_columns_go_without_a_matrix(alpha, monkeypatch):
    """Conjugate gradients in place of the matrix, which only problems beyond 2500 columns need."""
    X, y, s = make(400, 8, seed=9)
    exact = HuberRegressor(alpha=alpha).fit(X, y, s)
    monkeypatch.setattr(huber_newton, "DIRECT", 3)
    monkeypatch.setattr(huber_solver, "DIRECT", 3)
    model = HuberRegressor(alpha=alpha).fit(X, y, s)
    assert huber_objective(model, X, y, s) == pytest.approx(
        huber_objective(exact, X, y, s), rel=1e-9
    )
    assert model.certificate_.ok


@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_many_rows_start_from_a_sample(alpha, tmp_path, monkeypatch):
    """The sampled start, in memory and on disk, even sorted, ends where the full matrix does."""
    X, y = many()
    order = np.argsort(y)
    np.save(tmp_path / "rows.npy", X[order])
    blocks = RowBlocks(tmp_path / "rows.npy")
    model = HuberRegressor(alpha=alpha, tol=1e-10)
    sampled = copy.deepcopy(model).fit(X, y)
    on_disk = copy.deepcopy(model).fit(blocks, y[order])
    assert blocks.passes < 40
    monkeypatch.setattr(huber_solver, "_with_a_sample", lambda problem: (yield from ()))
    exact = copy.deepcopy(model).fit(X, y)
    for other in (sampled, on_disk):
        assert other.certificate_["duality gap"].status is Status.HOLDS
        np.testing.assert_allclose(other.coef_, exact.coef_, rtol=0, atol=1e-6)
        assert other.scale_ == pytest.approx(exact.scale_, rel=1e-6)


def test_a_certificate_over_many_rows_needs_two_passes(tmp_path):
    """One prediction, one adjoint product; a few thousand rows more are enough to repair the dual point."""
    X, y = many()
    np.save(tmp_path / "rows.npy", X)
    blocks = RowBlocks(tmp_path / "rows.npy")
    model = HuberRegressor(tol=1e-8).fit(blocks, y)
    null = huber_null(y, np.ones(len(y)), 1.35, fit_intercept=True)
    before = blocks.passes
    gap = huber_gap(
        blocks, y, model.coef_, model.intercept_, model.scale_, epsilon=1.35, alpha=1e-4,
        weights=np.ones(len(y)), fit_intercept=True, bound=1e-8 * null,
    )  # fmt: skip
    assert gap.gap <= 1e-8 * null
    assert blocks.passes - before <= 3  # the third reads the beginning only


def test_a_sample_of_an_exact_plane():
    """The best scale is 0 on the sample already."""
    X, _ = many()
    y = X @ [1.0, 2.0, -1.0] + 1.0
    y[::5] += 100.0
    model = HuberRegressor().fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, -1.0], rtol=0, atol=1e-11)
    assert model.outliers_.sum() == len(y) // 5
    assert model.certificate_["duality gap"].status is Status.HOLDS
