"""``model.summary``: standard errors, intervals and likelihoods, and what is said where there are none."""

import json
import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special, stats
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes, load_iris, load_wine
from tests.theory.nist_data import SETS
from tests.theory.statsmodels_data import HUBER_SCALE, RECORDED, compute, data

from surefit import CertificateWarning
from surefit.densities import (
    fisher_information,
    gaussian_log_likelihood,
    gaussian_noise_scale,
    laplace_log_likelihood,
    laplace_noise_scale,
)
from surefit.design import as_design
from surefit.inference import Summary, information
from surefit.inference.summary import intervals
from surefit.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
)
from surefit.linear_model._summary.core import Sample
from surefit.linear_model._summary.robust import hall_sheather, m_estimate, quantile_estimate

UNPENALISED = {"C": np.inf, "tol": 1e-13, "max_iter": 200}
COVERAGE = 4.5  # standard deviations of a binomial count: a false alarm in 150 000 seeds


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


def made(n=60, p=4, seed=0, targets=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4) + np.arange(p)
    noise = rng.normal(size=n if targets is None else (n, targets))
    return X, ((X @ np.arange(1.0, p + 1) + 2.0) + noise.T).T


def close(found, want, rtol=1e-9):
    found, want = np.ravel(found), np.ravel(want)
    np.testing.assert_allclose(
        found, np.full_like(found, want) if want.size == 1 else want, rtol=rtol
    )


# ---------------------------------------------------------------------------- statsmodels


def against(case, s, *, rtol=1e-9):
    """Every recorded number of a case; they have 12 digits."""
    fields = {
        "params": "coef", "bse": "std_error", "pvalues": "p_value", "llf": "log_likelihood",
        "aic": "aic", "bic": "bic", "bic_llf": "bic", "rsquared": "r2", "prsquared": "r2",
        "df_resid": "df_resid",
    }  # fmt: skip
    for field, want in RECORDED[case].items():
        if field in fields:
            # a p-value of 1e-200 magnifies an error of its t by t^2
            loose = 1e-6 if field == "pvalues" else rtol
            close(getattr(s, fields[field]), want, loose)
        elif field == "scale":
            close(s.noise.variance, want, rtol)
        elif field == "conf_int":
            close(np.stack([s.low, s.high], axis=-1), want, 1e-8)


@pytest.mark.spec("REG-6", "REG-7", "REG-8")
def test_least_squares_is_statsmodels():
    X, y, s = data("diabetes")
    model = LinearRegression().fit(X, y)
    against("ols", model.summary(X, y, level=0.9))
    plain = LinearRegression(fit_intercept=False).fit(X, y)
    against("ols without intercept", plain.summary(X, y))
    for kind in ("HC0", "HC1", "HC2", "HC3"):
        against(f"ols {kind}", model.summary(X, y, covariance=kind))
    weighted = LinearRegression().fit(X, y, s)
    against("wls", weighted.summary(X, y, s, level=0.9))
    against("wls HC3", weighted.summary(X, y, s, covariance="HC3"))


@pytest.mark.spec("REG-8")
def test_logistic_is_statsmodels():
    X, y, s = data("cancer")
    model = LogisticRegression(**UNPENALISED).fit(X, y)
    against("logit", model.summary(X, y, level=0.9), rtol=1e-8)
    against("logit HC0", model.summary(X, y, covariance="HC0"), rtol=1e-8)
    weighted = LogisticRegression(**UNPENALISED).fit(X, y, s)
    against("glm", weighted.summary(X, y, s, weights="frequency"), rtol=1e-8)
    X, y, _ = data("iris")
    against(
        "logit iris",
        LogisticRegression(**UNPENALISED).fit(X, y).summary(X, y, level=0.9),
        rtol=1e-7,
    )


def test_softmax_against_the_first_class_is_statsmodels():
    X, y, _ = data("wine")
    model = LogisticRegression(**UNPENALISED).fit(X, y)
    s = model.summary(X, y, reference=0, level=0.9)
    against("mnlogit", s, rtol=1e-8)
    assert s.outputs == ("1", "2")
    assert s.response == "log-odds of a class against 0"


def test_the_recorded_numbers_are_those_of_statsmodels():
    pytest.importorskip("statsmodels")
    for case, table in compute().items():
        for field, values in table.items():
            np.testing.assert_allclose(RECORDED[case][field], values, rtol=1e-9, err_msg=case)


def test_random_problems_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    for seed in range(5):
        X, y = made(40, 3, seed)
        s = np.random.default_rng(seed).uniform(0.2, 3.0, len(y))
        ours = LinearRegression().fit(X, y, s).summary(X, y, s, covariance="HC2")
        theirs = sm.WLS(y, sm.add_constant(X), weights=s).fit(cov_type="HC2")
        close(ours.covariance, theirs.cov_params())
        labels = (y > np.median(y) + np.random.default_rng(seed).normal(0, 15, len(y))).astype(int)
        ours = LogisticRegression(**UNPENALISED).fit(X, labels).summary(X, labels)
        theirs = sm.Logit(labels, sm.add_constant(X)).fit(disp=0, tol=1e-12)
        close(ours.covariance, theirs.cov_params(), 1e-6)


# ---------------------------------------------------------------------------- identities


@pytest.mark.spec("REG-6", "REG-7", "REG-8")
def test_the_noise_model_and_the_fisher_information():
    X, y = made()
    model = LinearRegression().fit(X, y)
    s = model.summary(X, y)
    e, A = y - model.predict(X), with_ones(X)
    assert s.noise.family == "Gaussian"
    assert s.noise.variance_mle == pytest.approx(gaussian_noise_scale(e) ** 2, rel=1e-13)
    assert s.noise.variance == pytest.approx(e @ e / (60 - 5), rel=1e-13)
    assert s.noise.scale == pytest.approx(math.sqrt(s.noise.variance))
    assert s.log_likelihood == pytest.approx(
        gaussian_log_likelihood(e, gaussian_noise_scale(e)), rel=1e-13
    )
    close(s.fisher_information, fisher_information(A, s.noise.scale), 1e-11)
    np.testing.assert_allclose(s.covariance @ s.fisher_information, np.eye(5), atol=1e-10)
    close(s.std_error, np.sqrt(np.diag(s.covariance)), 1e-15)
    assert s.aic == pytest.approx(-2 * s.log_likelihood + 2 * 5)
    assert s.bic == pytest.approx(-2 * s.log_likelihood + math.log(60) * 5)
    assert s.r2 == pytest.approx(model.score(X, y))
    assert (s.df_model, s.df_resid, s.n_samples) == (5, 55, 60)
    assert s.names == ("intercept", "x0", "x1", "x2", "x3")
    close(s.feature_scale[1:], X.std(axis=0), 1e-12)
    assert s.condition == pytest.approx(
        np.linalg.cond((X - X.mean(axis=0)) / X.std(axis=0)), rel=1e-9
    )


@pytest.mark.spec("REG-8")
def test_the_fisher_information_of_a_logistic_model_is_its_negative_hessian():
    X, y = made(80)
    labels = (y > np.median(y) + np.random.default_rng(1).normal(0, 5, 80)).astype(int)
    model = LogisticRegression(**UNPENALISED).fit(X, labels)
    s = model.summary(X, labels)
    A, theta, h = with_ones(X), np.r_[model.intercept_, model.coef_[0]], 1e-3

    def log_p(t):
        return special.log_expit((2 * labels - 1) * (A @ t)).sum()

    assert s.log_likelihood == pytest.approx(log_p(theta), rel=1e-12)
    for i in range(5):
        for j in range(5):
            a, b = h * np.eye(5)[i], h * np.eye(5)[j]
            bend = (
                log_p(theta + a + b)
                - log_p(theta + a - b)
                - log_p(theta - a + b)
                + log_p(theta - a - b)
            )
            # differences of a smooth function: h^2 times its fourth derivatives, up to about |x|^4
            assert -bend / (4 * h * h) == pytest.approx(
                s.fisher_information[i, j], abs=2e-4 * np.abs(s.fisher_information).max()
            )
    np.testing.assert_allclose(s.covariance @ s.fisher_information, np.eye(5), atol=1e-9)


def test_softmax_of_two_classes_and_every_reference_agree():
    """Comparisons follow from one another: no class is special."""
    X, y, _ = data("wine")
    model = LogisticRegression(**UNPENALISED).fit(X, y)
    mean = model.summary(X, y)
    against_0, against_2 = (model.summary(X, y, reference=r) for r in (0, 2))
    assert mean.outputs == ("0", "1", "2")
    close(mean.coef, np.column_stack([model.intercept_, model.coef_]), 1e-15)
    np.testing.assert_allclose(mean.coef.sum(axis=0), 0.0, atol=1e-9)
    close(against_0.coef[1], -against_2.coef[0], 1e-12)  # 2 against 0, and 0 against 2
    close(against_0.covariance[1], against_2.covariance[0], 1e-9)
    # the class blocks of the information, in the coordinates of the model
    P, A = model.predict_proba(X), with_ones(X)
    for c in range(3):
        close(mean.fisher_information[c], (A.T * (P[:, c] * (1 - P[:, c]))) @ A, 1e-10)
    # two classes: one comparison, whichever way it is asked for
    X, y, _ = data("iris")
    model = LogisticRegression(**UNPENALISED).fit(X, y)
    there, back = model.summary(X, y, reference=1), model.summary(X, y, reference=2)
    assert there.response == "log-odds of 2 against 1"
    assert back.response == "log-odds of 1 against 2"
    close(there.coef, -back.coef, 1e-15)
    close(there.std_error, back.std_error, 1e-15)


def test_softmax_covariance_is_the_inverse_of_the_whole_information():
    """Against the (K-1)k matrix written out, for the Fisher information and the sandwich."""
    X, y, _ = data("wine")
    model = LogisticRegression(**UNPENALISED).fit(X, y)
    A, P = with_ones(X), model.predict_proba(X)
    k = A.shape[1]
    info = np.zeros((2 * k, 2 * k))
    scores = np.hstack([A * (P[:, [c]] - (y == c)[:, None]) for c in (1, 2)])
    for i, c in enumerate((1, 2)):
        for j, d in enumerate((1, 2)):
            v = P[:, c] * ((c == d) - P[:, d])
            info[i * k : (i + 1) * k, j * k : (j + 1) * k] = (A.T * v) @ A
    inverse = np.linalg.inv(info)
    for kind, want in (("fisher", inverse), ("HC0", inverse @ scores.T @ scores @ inverse)):
        s = model.summary(X, y, reference=0, covariance=kind)
        blocks = np.stack([want[:k, :k], want[k:, k:]])
        np.testing.assert_allclose(s.covariance, blocks, rtol=1e-7, atol=1e-9 * np.abs(want).max())


def test_several_targets_are_several_summaries():
    X, Y = made(targets=3)
    model = LinearRegression().fit(X, Y)
    s = model.summary(X, Y)
    assert s.outputs == ("y0", "y1", "y2")
    assert s.coef.shape == (3, 5)
    assert s.covariance.shape == (3, 5, 5)
    for t in range(3):
        one = LinearRegression().fit(X, Y[:, t]).summary(X, Y[:, t])
        for field in (
            "coef",
            "std_error",
            "p_value",
            "low",
            "high",
            "covariance",
            "log_likelihood",
            "aic",
            "r2",
        ):
            close(getattr(s, field)[t], getattr(one, field), 1e-9)
        assert s.noise.variance[t] == pytest.approx(one.noise.variance)


def test_student_and_normal_to_the_last_digits():
    """Against mpmath: also far in the tail, where 1 - cdf would be 0."""
    mpmath.mp.dps = 40
    t = np.array([0.3, 2.0, 15.0, 60.0])
    for df in (1.0, 7.5, 431.0):
        _, p, low, high = intervals(t, np.ones(4), np.full(4, df), 0.95)
        for i, value in enumerate(t):
            x = df / (df + mpmath.mpf(value) ** 2)
            want = mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, x, regularized=True)
            assert p[i] == pytest.approx(float(want), rel=1e-11)
        close((high - low) / 2, stats.t.ppf(0.975, df), 1e-12)
    _, p, low, high = intervals(t, np.ones(4), np.full(4, np.inf), 0.99)
    close(p, [float(mpmath.erfc(mpmath.mpf(v) / mpmath.sqrt(2))) for v in t], 1e-11)
    close((high - low) / 2, stats.norm.ppf(0.995), 1e-12)


# ---------------------------------------------------------------------------- weights


def test_precision_weights_are_weighted_least_squares():
    """Var e_i = sigma^2 / s_i: rows times sqrt(s_i) are an ordinary problem; the unit of s is arbitrary."""
    X, y = made()
    s = np.random.default_rng(3).uniform(0.1, 4.0, len(y))
    ours = LinearRegression().fit(X, y, s).summary(X, y, s)
    root = np.sqrt(s)
    rows = LinearRegression(fit_intercept=False).fit(root[:, None] * with_ones(X), root * y)
    scaled = rows.summary(root[:, None] * with_ones(X), root * y)
    for field in ("coef", "std_error", "p_value"):
        close(getattr(ours, field), getattr(scaled, field), 1e-8)
    assert ours.log_likelihood == pytest.approx(scaled.log_likelihood + np.log(root).sum())
    for kind in ("fisher", "HC0", "HC3"):
        one, seven = (
            LinearRegression().fit(X, y, c * s).summary(X, y, c * s, covariance=kind).std_error
            for c in (1.0, 7.0)
        )
        close(one, seven, 1e-10)


@pytest.mark.parametrize("kind", ["fisher", "HC0", "HC1", "HC2", "HC3"])
def test_frequency_weights_are_repetitions(kind):
    X, y = made(25, 3)
    s = np.arange(25.0) % 4  # zeros too
    long = np.repeat(np.arange(25), s.astype(int))
    want = LinearRegression().fit(X[long], y[long]).summary(X[long], y[long], covariance=kind)
    got = LinearRegression().fit(X, y, s).summary(X, y, s, weights="frequency", covariance=kind)
    for field in (
        "coef",
        "std_error",
        "p_value",
        "log_likelihood",
        "aic",
        "bic",
        "r2",
        "n_samples",
        "df_resid",
    ):
        close(getattr(got, field), getattr(want, field), 1e-9)
    if kind == "fisher":  # and precision weights are something else
        precise = LinearRegression().fit(X, y, s).summary(X, y, s)
        assert precise.df_resid == np.count_nonzero(s) - 4 < got.df_resid
        assert (precise.std_error / got.std_error).min() > 1.2


def test_logistic_weights():
    X, y, s = data("iris")
    s = s - 1.0
    long = np.repeat(np.arange(len(y)), s.astype(int))
    model = LogisticRegression(**UNPENALISED)
    for kind in ("fisher", "HC0", "HC1"):
        want = model.fit(X[long], y[long]).summary(X[long], y[long], covariance=kind)
        got = model.fit(X, y, s).summary(X, y, s, weights="frequency", covariance=kind)
        for field in ("coef", "std_error", "log_likelihood", "aic", "bic", "r2"):
            close(getattr(got, field), getattr(want, field), 1e-5)
    precise = model.summary(X, y, s)
    close(precise.std_error, model.summary(X, y, s, weights="frequency").std_error, 1e-12)
    assert precise.n_samples == np.count_nonzero(s)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(2.0), LogisticRegression(C=3.0)])
def test_rows_of_weight_zero_are_not_there(model):
    X, y = made(50, 3)
    y = (y > np.median(y)).astype(int) if isinstance(model, LogisticRegression) else y
    s = np.where(np.arange(50) % 3 == 0, 0.0, 1.5)
    kept = s > 0
    with_zeros = model.fit(X, y, s).summary(X, y, s, covariance="HC0")
    without = model.fit(X[kept], y[kept], s[kept]).summary(
        X[kept], y[kept], s[kept], covariance="HC0"
    )
    for field in ("coef", "std_error", "log_likelihood", "bic", "n_samples", "df_resid"):
        close(getattr(with_zeros, field), getattr(without, field), 1e-6)


# ---------------------------------------------------------------------------- penalties


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_has_the_covariance_of_a_linear_estimator(fit_intercept):
    X, y = made(30, 4)
    model = Ridge(5.0, fit_intercept=fit_intercept).fit(X, y)
    s = model.summary(X, y)
    A = with_ones(X) if fit_intercept else X
    P = 5.0 * np.diag(np.r_[[0.0] * fit_intercept, np.ones(4)])
    M = np.linalg.solve(A.T @ A + P, A.T)  # theta = M y
    H = A @ M
    rss = float(np.sum((y - H @ y) ** 2))
    left = 30 - np.trace(2 * H - H @ H.T)
    assert s.df_model == pytest.approx(np.trace(H))
    assert s.df_resid == pytest.approx(left)
    assert s.noise.variance == pytest.approx(rss / left)
    close(s.covariance, rss / left * M @ M.T, 1e-9)
    e = y - H @ y
    close(model.summary(X, y, covariance="HC0").covariance, (M * e**2) @ M.T, 1e-8)
    h = np.diag(H)
    close(model.summary(X, y, covariance="HC3").covariance, (M * (e / (1 - h)) ** 2) @ M.T, 1e-8)
    close((s.high - s.low) / 2, stats.t.ppf(0.975, left) * s.std_error, 1e-9)
    assert np.isnan(s.p_value).all()
    assert np.isnan(s.statistic).all()
    assert "not about the true coefficients" in s.notes[0]


def test_ridge_with_a_penalty_a_target_and_as_an_elastic_net():
    X, Y = made(40, 3, targets=2)
    s = Ridge([0.5, 20.0]).fit(X, Y).summary(X, Y)
    for t, alpha in enumerate((0.5, 20.0)):
        one = Ridge(alpha).fit(X, Y[:, t]).summary(X, Y[:, t])
        close(s.std_error[t], one.std_error, 1e-9)
        assert s.df_model[t] == pytest.approx(one.df_model)
    net = ElasticNet(0.5, l1_ratio=0.0, tol=1e-13, max_iter=100_000).fit(X, Y[:, 0])
    same = Ridge(0.5 * 40).fit(X, Y[:, 0]).summary(X, Y[:, 0])
    close(net.summary(X, Y[:, 0]).std_error, same.std_error, 1e-6)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    net.fit(X, Y[:, 0], weights)
    same = Ridge(0.5 * weights.sum()).fit(X, Y[:, 0], weights).summary(X, Y[:, 0], weights)
    close(net.summary(X, Y[:, 0], weights).std_error, same.std_error, 1e-6)


def test_a_negligible_penalty_is_called_that():
    X, y = made()
    plain, slight = (m.fit(X, y).summary(X, y) for m in (LinearRegression(), Ridge(1e-6)))
    assert "negligible" in slight.notes[0]
    close(slight.p_value, plain.p_value, 1e-5)
    close(slight.std_error, plain.std_error, 1e-6)
    none = Ridge(0.0).fit(X, y).summary(X, y)
    close(none.std_error, plain.std_error, 1e-12)
    assert none.notes == ()
    # a large penalty on nothing but noise has no bias to estimate, and is still no test
    y = np.random.default_rng(0).normal(size=60) * 1e-9
    assert np.isnan(Ridge(1e6).fit(X, y).summary(X, y).p_value).all()


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
def test_ridge_logistic_has_the_penalised_sandwich(solver):
    X, y = made(80, 3)
    labels = (y > np.median(y) + np.random.default_rng(1).normal(0, 4, 80)).astype(int)
    model = LogisticRegression(C=0.1, solver=solver, intercept_scaling=2.0, tol=1e-12).fit(
        X, labels
    )
    s = model.summary(X, labels)
    A, p = with_ones(X), model.predict_proba(X)[:, 1]
    F = (A.T * (p * (1 - p))) @ A
    penalised = (
        10.0 / 4.0 if solver == "liblinear" else 0.0
    )  # (b / scaling)^2 / 2 is penalised there
    B = np.linalg.inv(F + np.diag([penalised, 10.0, 10.0, 10.0]))
    close(s.covariance, B @ F @ B, 1e-7)
    assert s.df_model == pytest.approx(np.trace(B @ F))
    assert np.isnan(s.p_value).all()
    S = (A.T * (labels - p) ** 2) @ A
    close(model.summary(X, labels, covariance="HC0").covariance, B @ S @ B, 1e-7)


def test_ridge_softmax_has_the_penalised_sandwich():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(C=0.5, tol=1e-12).fit(X, y)
    s = model.summary(X, y)
    A, P = with_ones(X), model.predict_proba(X)
    k, D = 5, np.diag([0.0, 2.0, 2.0, 2.0, 2.0])
    F = np.zeros((3, k, 3, k))
    for c in range(3):
        for d in range(3):
            F[c, :, d, :] = (A.T * (P[:, c] * ((c == d) - P[:, d]))) @ A
    F = F.reshape(15, 15)
    free = np.kron(
        np.ones((3, 3)), np.eye(k) * [1, 0, 0, 0, 0]
    )  # the common shift of the intercepts
    B = np.linalg.inv(F + np.kron(np.eye(3), D) + free)
    want = (B @ F @ B).reshape(3, k, 3, k)
    for c in range(3):
        np.testing.assert_allclose(s.covariance[c], want[c, :, c, :], rtol=1e-7, atol=1e-12)
    assert s.df_model == pytest.approx(np.trace(B @ F))
    assert "shrunk" in s.notes[0]
    slight = LogisticRegression(C=1e7, tol=1e-12, max_iter=500).fit(X[y > 0], y[y > 0])
    assert "negligible" in slight.summary(X[y > 0], y[y > 0]).notes[0]


def test_after_an_l1_penalty_there_are_no_standard_errors():
    X, y = load_diabetes(return_X_y=True)
    model = Lasso(1.0).fit(X, y)
    s = model.summary(X, y)
    close(s.coef, np.r_[model.intercept_, model.coef_], 1e-15)
    assert np.isnan(s.std_error).all()
    assert np.isnan(s.low).all()
    assert s.covariance is None
    assert s.method == "none"
    assert "chose the non-zero coefficients by looking at y" in s.notes[0]
    assert s.df_model == np.count_nonzero(model.coef_) + 1
    e = y - model.predict(X)
    assert s.log_likelihood == pytest.approx(gaussian_log_likelihood(e, gaussian_noise_scale(e)))
    assert s.aic == pytest.approx(2 * s.df_model - 2 * s.log_likelihood)
    with pytest.raises(ValueError, match="cannot be computed here"):
        model.summary(X, y, covariance="HC0")
    labels = (y > 140).astype(int)
    sparse = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X * 10, labels)
    s = sparse.summary(X * 10, labels)
    assert np.isnan(s.std_error).all()
    assert s.df_model == np.count_nonzero(sparse.coef_) + 1
    with pytest.raises(ValueError, match="cannot be computed here"):
        sparse.summary(X * 10, labels, covariance="fisher")


def test_the_degrees_of_freedom_of_an_elastic_net():
    X, y = load_diabetes(return_X_y=True)
    model = ElasticNet(0.01, l1_ratio=0.7, tol=1e-12, max_iter=100_000).fit(X, y)
    chosen = X[:, model.coef_ != 0] - X[:, model.coef_ != 0].mean(axis=0)
    G = chosen.T @ chosen
    want = np.trace(np.linalg.solve(G + 0.01 * 0.3 * len(y) * np.eye(len(G)), G)) + 1
    assert model.summary(X, y).df_model == pytest.approx(want)
    # at fixed signs the fit is linear in y, and this is the trace of its matrix, by differences
    rng, slopes = np.random.default_rng(0), []
    for i in rng.choice(len(y), 8, replace=False):
        up = y.copy()
        up[i] += 1e-3
        fits = [
            ElasticNet(0.01, l1_ratio=0.7, tol=1e-14, max_iter=100_000).fit(X, t) for t in (y, up)
        ]
        slopes.append((fits[1].predict(X[i : i + 1])[0] - fits[0].predict(X[i : i + 1])[0]) / 1e-3)
        h = 1 / len(y) + (v := chosen[i]) @ np.linalg.solve(G + 0.003 * len(y) * np.eye(len(G)), v)
        assert slopes[-1] == pytest.approx(h, rel=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(positive=True),
        Ridge(positive=True),
        ElasticNet(0.1, l1_ratio=0.0, positive=True),
    ],
)
def test_after_a_bound_there_are_no_standard_errors(model):
    X, y = made()
    s = model.fit(X, y).summary(X, y)
    assert np.isnan(s.std_error).all()
    assert "non-negative" in s.notes[0]


# ---------------------------------------------------------------------------- what cannot be known


def test_a_duplicated_column_is_not_identified_and_the_others_are():
    X, y = made(50, 3)
    twice = np.column_stack([X, X[:, 1]])
    s = LinearRegression().fit(twice, y).summary(twice, y)
    one = LinearRegression().fit(X, y).summary(X, y)
    assert np.isnan(s.std_error[[2, 4]]).all()
    close(s.std_error[[0, 1, 3]], one.std_error[[0, 1, 3]], 1e-9)
    close(s.p_value[[0, 1, 3]], one.p_value[[0, 1, 3]], 1e-8)
    assert (s.df_model, s.df_resid) == (4, 46)
    assert s.noise.variance == pytest.approx(one.noise.variance)
    assert s.condition == np.inf
    assert "not identified: the rank is 4 of 5, and 2 parameter(s) (x1, x3)" in s.notes[0]
    # a ridge penalty makes the columns share, and everything is identified
    assert np.isfinite(Ridge(1.0).fit(twice, y).summary(twice, y).std_error).all()


def test_a_sum_of_columns_is_not_identified():
    X, y = made(50, 4)
    X[:, 3] = X[:, 0] - 2.0 * X[:, 2]
    s = LinearRegression().fit(X, y).summary(X, y)
    assert np.isnan(s.std_error).tolist() == [False, True, False, True, True]
    small = LinearRegression().fit(X[:, :3], y).summary(X[:, :3], y)
    close(s.std_error[[0, 2]], small.std_error[[0, 2]], 1e-9)


def test_a_constant_column_takes_the_intercept_with_it():
    X, y = made(50, 2)
    X = np.column_stack([X, np.full(50, 0.1)])  # whose mean is not 0.1 to the last bit
    s = LinearRegression().fit(X, y).summary(X, y)
    assert np.isnan(s.std_error).tolist() == [True, False, False, True]
    plain = LinearRegression().fit(X[:, :2], y).summary(X[:, :2], y)
    close(s.std_error[1:3], plain.std_error[1:], 1e-9)
    without = LinearRegression(fit_intercept=False).fit(X, y).summary(X, y)
    assert np.isfinite(without.std_error).all()


def test_fewer_rows_than_parameters():
    X, y = made(4, 6)
    s = LinearRegression().fit(X, y).summary(X, y)
    assert np.isnan(s.std_error).all()
    assert s.df_resid == 0
    words = " ".join(s.notes)
    assert "not identified" in words
    assert "no residual degrees of freedom" in words
    ridge = Ridge(1.0).fit(X, y).summary(X, y)
    assert np.isfinite(ridge.std_error).all()
    assert 0 < ridge.df_model < 4


def test_an_exact_fit_is_called_that():
    X, _ = made()
    y = X @ [1.0, 2.0, 3.0, 4.0] + 1.0
    s = LinearRegression().fit(X, y).summary(X, y)
    assert "an exact fit" in s.notes[0]
    one = LinearRegression().fit([[1.0], [2.0], [3.0]], [5.0, 5.0, 5.0])
    s = one.summary([[1.0], [2.0], [3.0]], [5.0, 5.0, 5.0])
    assert math.isnan(s.r2)
    assert s.noise.variance == 0.0
    assert s.log_likelihood == math.inf


def test_a_row_of_leverage_one():
    X, y = made(20, 2)
    X = np.column_stack([X, np.arange(20) == 7])
    model = LinearRegression().fit(X, y)
    assert np.isfinite(model.summary(X, y, covariance="HC1").std_error[:3]).all()
    with pytest.raises(ValueError, match=r"rows \[7\] have leverage 1"):
        model.summary(X, y, covariance="HC3")


def test_separated_classes_have_infinite_coefficients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    labels = (X[:, 0] > 0).astype(int)
    with pytest.warns(CertificateWarning):
        model = LogisticRegression(C=np.inf).fit(X, labels)
    s = model.summary(X, labels)
    assert np.isnan(s.std_error).all()
    words = " ".join(s.notes)
    assert "infinite: the classes are separated" in words
    assert "the certificate of the fit fails" in words
    assert np.isfinite(LogisticRegression(C=1.0).fit(X, labels).summary(X, labels).std_error).all()
    X, y = load_wine(return_X_y=True)
    with pytest.warns(CertificateWarning):
        model = LogisticRegression(C=np.inf).fit(X, y)
    s = model.summary(X, y)
    assert np.isnan(s.std_error).all()
    assert any("infinite: the classes are separated" in note for note in s.notes)


@pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")  # the gradient may not reach tol
@pytest.mark.parametrize("tol", [1e-4, 1e-10])
@pytest.mark.parametrize("seed", range(4))
def test_a_feature_that_is_never_seen_with_one_class(seed, tol):
    """Quasi-separation: the likelihood stays finite, one coefficient does not."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 100)
    X = np.column_stack([rng.normal(size=100), (labels == 1) & (rng.random(100) < 0.4)])
    s = LogisticRegression(C=np.inf, max_iter=300, tol=tol).fit(X, labels).summary(X, labels)
    assert np.isnan(s.std_error).all()
    assert s.fisher_information is None
    assert "infinite: some rows are separated" in " ".join(s.notes)
    assert "(here: x1)" in " ".join(s.notes)
    # one row of the other class brings it back to earth
    X[np.flatnonzero(labels == 0)[0], 1] = 1.0
    s = LogisticRegression(C=np.inf, max_iter=300, tol=tol).fit(X, labels).summary(X, labels)
    assert np.isfinite(s.std_error).all()
    three = np.where(labels == 1, 1, rng.choice([0, 2], 100))
    X[:, 1] = (labels == 1) & (rng.random(100) < 0.4)
    s = LogisticRegression(C=np.inf, max_iter=300, tol=tol).fit(X, three).summary(X, three)
    assert np.isnan(s.std_error).all()
    assert "(here: x1)" in " ".join(s.notes)


def test_collinear_features_are_named_with_their_inflation():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    s = LinearRegression().fit(X, y).summary(X, y)
    assert s.notes[0].startswith("collinear: other features nearly determine 's1'")
    factor = np.sqrt(np.linalg.inv(np.corrcoef(X.T)).diagonal().max())
    assert f"{factor:.3g} times" in s.notes[0]
    alone = LinearRegression().fit(X[["bmi", "bp"]], y)
    assert alone.summary(X[["bmi", "bp"]], y).notes == ()


def test_class_weights_need_the_sandwich():
    X, y, _ = data("iris")
    y = np.where(np.arange(len(y)) < 20, 1, y)
    model = LogisticRegression(class_weight={1: 3.0, 2: 0.5}, **UNPENALISED).fit(X, y)
    s = model.summary(X, y)
    A, p = with_ones(X), model.predict_proba(X)[:, 1]
    c = np.where(y == 1, 3.0, 0.5)
    B = np.linalg.inv((A.T * (c * p * (1 - p))) @ A)
    M = (A.T * (c * (y == 2) - c * p) ** 2) @ A
    close(s.covariance, B @ M @ B, 1e-6)
    assert math.isnan(s.aic)
    assert "class weights" in s.notes[0]
    with pytest.raises(ValueError, match="use one of 'auto', 'HC0', 'HC1'"):
        model.summary(X, y, covariance="fisher")


# ---------------------------------------------------------------------------- coverage


def coverage(s, truth, count):
    """How many intervals hold the truth, as standard deviations away from what the level promises."""
    inside = ((s.low <= truth) & (truth <= s.high)).sum(axis=0)
    return (inside - s.level * count) / math.sqrt(count * s.level * (1 - s.level))


@pytest.mark.spec("REG-8")
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_least_squares_cover_exactly(level):
    """12 rows, 4 parameters: exact at any size, where the normal law would be far off."""
    rng = np.random.default_rng(0)
    X, truth, draws = rng.normal(size=(12, 3)), np.array([1.0, -2.0, 0.0, 0.5]), 4000
    Y = (with_ones(X) @ truth)[:, None] + 0.7 * rng.normal(size=(12, draws))
    s = LinearRegression().fit(X, Y).summary(X, Y, level=level)
    assert np.abs(coverage(s, truth, draws)).max() < COVERAGE
    # under the null hypothesis (the third parameter is 0) p-values are uniform
    assert stats.kstest(s.p_value[:, 2], "uniform").pvalue > 1e-3
    if level == 0.95:
        narrow = 1.96 * s.std_error
        inside = (np.abs(s.coef - truth) <= narrow).mean()
        assert inside < 0.93  # what the normal law would have claimed to be 0.95


@pytest.mark.spec("REG-7", "REG-8")
def test_standard_errors_reach_the_cramer_rao_bound_and_fall_as_one_over_root_n():
    rng = np.random.default_rng(1)
    truth, sigma, draws, sizes = np.array([1.0, -2.0, 0.5]), 0.7, 3000, (30, 120, 480)
    errors = []
    for n in sizes:
        X = rng.normal(size=(n, 2))
        Y = (with_ones(X) @ truth)[:, None] + sigma * rng.normal(size=(n, draws))
        s = LinearRegression().fit(X, Y).summary(X, Y)
        bound = np.linalg.inv(fisher_information(with_ones(X), sigma))
        scale = np.sqrt(np.outer(np.diag(bound), np.diag(bound)))
        # efficient: the covariance over the draws is the bound, and so is what each summary says on average
        assert (np.abs(np.cov(s.coef.T) - bound) <= 5 * math.sqrt(2 / draws) * scale).all()
        assert (
            np.abs(s.covariance.mean(axis=0) - bound) <= 5 * math.sqrt(2 / draws / (n - 3)) * scale
        ).all()
        # unbiased noise variance; the maximum-likelihood one is too small by (n - 3) / n
        assert s.noise.variance.mean() == pytest.approx(
            sigma**2, abs=5 * sigma**2 * math.sqrt(2 / draws / (n - 3))
        )
        assert s.noise.variance_mle.mean() / s.noise.variance.mean() == pytest.approx((n - 3) / n)
        errors.append(s.std_error.mean())
    assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(-0.5, abs=0.05)


def test_the_sandwich_covers_where_the_fisher_information_does_not():
    """Noise that grows with x: equal variance is a wrong assumption."""
    rng = np.random.default_rng(2)
    X, truth, draws = rng.normal(size=(150, 1)), np.array([1.0, 2.0]), 600
    noise = (0.2 + np.abs(X)) * rng.normal(size=(150, draws))
    Y = (with_ones(X) @ truth)[:, None] + noise
    model = LinearRegression().fit(X, Y)
    assert coverage(model.summary(X, Y), truth, draws)[1] < -10
    assert np.abs(coverage(model.summary(X, Y, covariance="HC3"), truth, draws)).max() < COVERAGE


def test_ridge_intervals_cover_the_expectation_of_the_estimator_not_the_truth():
    rng = np.random.default_rng(3)
    X, truth, draws = rng.normal(size=(40, 3)), np.array([1.0, 3.0, -2.0, 0.0]), 3000
    A = with_ones(X)
    Y = (A @ truth)[:, None] + rng.normal(size=(40, draws))
    s = Ridge(8.0).fit(X, Y).summary(X, Y)
    B = np.linalg.inv(A.T @ A + 8.0 * np.diag([0.0, 1.0, 1.0, 1.0]))
    expected = B @ A.T @ A @ truth
    # the noise is over-estimated by the squared bias, so the intervals are on the safe side
    assert coverage(s, expected, draws).min() > -COVERAGE
    assert coverage(s, truth, draws)[1] < -10
    exact = B @ A.T @ A @ B
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert (np.abs(np.cov(s.coef.T) - exact) <= 5 * math.sqrt(2 / draws) * scale).all()
    assert s.noise.variance.mean() > 1.0


@pytest.mark.spec("REG-8")
def test_logistic_intervals_cover_and_estimates_are_normal():
    rng = np.random.default_rng(4)
    truth, draws, n = np.array([0.3, 1.0, -0.5]), 400, 400
    X = rng.normal(size=(n, 2))
    p = special.expit(with_ones(X) @ truth)
    bound = np.linalg.inv((with_ones(X).T * (p * (1 - p))) @ with_ones(X))
    coefs, hits, errors = [], 0, []
    for _ in range(draws):
        labels = (rng.random(n) < p).astype(int)
        s = LogisticRegression(**UNPENALISED, certify=False).fit(X, labels).summary(X, labels)
        coefs.append(s.coef)
        errors.append(s.std_error)
        hits = hits + ((s.low <= truth) & (truth <= s.high))
    away = (hits - 0.95 * draws) / math.sqrt(draws * 0.95 * 0.05)
    assert np.abs(away).max() < COVERAGE
    z = (np.array(coefs) - truth) / np.sqrt(np.diag(bound))
    for (
        column
    ) in z.T:  # sqrt(N)(w - w*) -> N(0, F^-1); a small-sample bias of order 1/sqrt(N) is left
        assert stats.kstest(column, "norm").pvalue > 1e-3
    assert np.mean(errors, axis=0) == pytest.approx(np.sqrt(np.diag(bound)), rel=0.05)


# ---------------------------------------------------------------------------- robust regressions


def sample_of(X, y, s=None, *, covariance="auto", weights="precision"):
    """The sample that ``summary`` hands to the description of a model."""
    s = np.ones(len(y)) if s is None else s
    copies = s if weights == "frequency" else (s > 0).astype(float)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    return Sample(X, y, s, as_design(X), s, copies, covariance, names)


def stand_in(theta, *, fit_intercept=True):
    """Only the coefficients matter here: the estimators have their own tests."""
    coef, intercept = (theta[1:], theta[0]) if fit_intercept else (theta, 0.0)
    return SimpleNamespace(coef_=coef, intercept_=intercept, fit_intercept=fit_intercept)


def huber(model, sample, scale, penalty=0.0):
    clip = lambda u: np.clip(u, -1.35, 1.35)  # noqa: E731
    return m_estimate(model, sample, clip, lambda u: 1.0 * (np.abs(u) <= 1.35), scale, penalty)


def errors_of(estimates):
    return np.sqrt(np.diagonal(estimates.covariance[0]))


def huber_fit(A, Y, scale, penalty=0.0):
    """Newton's method on the columns of Y, at a given scale."""
    W = np.linalg.lstsq(A, Y, rcond=None)[0]
    P = penalty * scale * np.diag(np.arange(A.shape[1]) > 0)
    for _ in range(100):
        u = (Y - A @ W) / scale
        weight = np.minimum(1.0, 1.35 / np.maximum(np.abs(u), 1e-300))
        G = np.einsum("ni,nt,nj->tij", A, weight, A) + P
        W = np.linalg.solve(G, np.einsum("ni,nt->ti", A, weight * Y)[..., None])[..., 0].T
    return W


def test_huber_is_statsmodels():
    X, y, _ = data("diabetes")
    want = RECORDED["huber"]
    found = huber(stand_in(want["params"]), sample_of(X, y), HUBER_SCALE)
    close(errors_of(found), want["bse"], 1e-9)
    assert found.noise.scale == HUBER_SCALE
    assert math.isnan(found.log_likelihood)
    assert "Huber's H1" in found.method


def test_huber_sandwich_penalty_and_weights():
    X, y = made(80, 3)
    y[::9] += 20.0
    A, scale = with_ones(X), 1.3
    theta = huber_fit(A, y[:, None], scale, 2.0)[:, 0]
    u = (y - A @ theta) / scale
    push, inside = np.clip(u, -1.35, 1.35), np.abs(u) <= 1.35
    P = 2.0 * scale * np.diag([0.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(A.T @ push * scale, P @ theta, atol=1e-8)  # it solves its equation
    B = np.linalg.inv((A.T * inside) @ A + P)
    found = huber(stand_in(theta), sample_of(X, y, covariance="HC0"), scale, 2.0)
    close(found.covariance, scale**2 * B @ ((A.T * push**2) @ A) @ B, 1e-8)
    assert found.df_model == pytest.approx(np.trace(B @ (A.T * inside) @ A))
    assert not found.tested
    # H1: psi' is taken to be the same everywhere
    share = inside.mean()
    B = np.linalg.inv(A.T @ A + P / share)
    M = B @ A.T @ A @ B
    used = np.trace(B @ A.T @ A)
    size = (
        (push @ push) / (80 - used) * (scale / share * (1 + used / 80 * (1 - share) / share)) ** 2
    )
    found = huber(stand_in(theta), sample_of(X, y), scale, 2.0)
    close(found.covariance, size * M, 1e-8)
    # the bias that is reported: B^-1 P theta
    bias = np.abs(np.linalg.solve(A.T @ A + P / share, P @ theta / share)) / np.sqrt(
        np.diag(size * M)
    )
    assert f"by up to {bias.max():.2g} of" in found.notes[-1]
    # a penalty as small as the default of HuberRegressor does not spoil the tests
    assert huber(stand_in(theta), sample_of(X, y), scale, 1e-8).tested
    # frequency weights repeat; precision weights use the sandwich
    s = np.arange(80.0) % 3
    long = np.repeat(np.arange(80), s.astype(int))
    for kind in ("H1", "HC0"):
        twice = huber(
            stand_in(theta), sample_of(X, y, s, covariance=kind, weights="frequency"), scale
        )
        once = huber(stand_in(theta), sample_of(X[long], y[long], covariance=kind), scale)
        close(twice.covariance, once.covariance, 1e-9)
    assert "HC0" in huber(stand_in(theta), sample_of(X, y, s + 0.5), scale).method


def test_huber_intervals_cover_under_heavy_tails():
    rng = np.random.default_rng(5)
    X, truth, draws = rng.normal(size=(120, 2)), np.array([1.0, -2.0, 0.5]), 600
    A = with_ones(X)
    Y = (A @ truth)[:, None] + rng.standard_t(3, size=(120, draws))
    W = huber_fit(A, Y, 1.2)
    inside, lengths = 0, []
    for t in range(draws):
        found = huber(stand_in(W[:, t]), sample_of(X, Y[:, t]), 1.2)
        inside = inside + (np.abs(W[:, t] - truth) <= 1.96 * errors_of(found))
        lengths.append(errors_of(found))
    assert np.abs((inside - 0.95 * draws) / math.sqrt(draws * 0.95 * 0.05)).max() < COVERAGE
    least_squares = LinearRegression().fit(X, Y).summary(X, Y).std_error.mean()
    assert np.mean(lengths) < 0.85 * least_squares  # what the robust loss is for


@pytest.mark.spec("REG-9")
@pytest.mark.parametrize("tau", [0.25, 0.5])
def test_quantile_is_statsmodels(tau):
    X, y, _ = data("diabetes")
    want = RECORDED[f"quantile {tau}"]
    model = stand_in(want["params"])
    found = quantile_estimate(model, sample_of(X, y, covariance="iid"), tau, 0.0)
    e = y - X @ model.coef_ - model.intercept_
    # statsmodels caps the bandwidth by the spread of y, we (with Koenker) by that of the residuals
    h = hall_sheather(len(y), tau)
    reach = stats.norm.ppf(tau + h) - stats.norm.ppf(tau - h)
    width = min(e.std(), np.subtract(*np.quantile(e, [0.75, 0.25])) / 1.34) * reach
    sparsity = len(y) * width / np.sum(0.75 * np.maximum(1 - (e / width) ** 2, 0))
    if tau == 0.5:
        assert width == pytest.approx(want["bandwidth"][0], rel=1e-9)
        assert sparsity == pytest.approx(want["sparsity"][0], rel=1e-9)
    close(errors_of(found) / sparsity, want["bse"] / want["sparsity"], 1e-8)
    # the Laplace model: b = mean |e| for the median, its likelihood, its Fisher information
    found = quantile_estimate(model, sample_of(X, y, covariance="fisher"), tau, 0.0)
    loss = np.mean(np.where(e > 0, tau * e, (tau - 1) * e))
    A = with_ones(X)
    inverse_gram = np.linalg.inv(A.T @ A)
    close(errors_of(found), loss * np.sqrt(np.diag(inverse_gram) / (tau * (1 - tau))), 1e-9)
    np.testing.assert_allclose(found.fisher[0] @ found.covariance[0], np.eye(11), atol=1e-7)
    if tau == 0.5:
        assert found.noise.family == "Laplace"
        assert found.noise.scale == pytest.approx(laplace_noise_scale(e), rel=1e-12)
        assert found.noise.variance_mle == pytest.approx(2 * laplace_noise_scale(e) ** 2)
        assert found.log_likelihood == pytest.approx(
            laplace_log_likelihood(e, laplace_noise_scale(e))
        )
    else:
        draws = stats.laplace_asymmetric(
            kappa=math.sqrt(tau / (1 - tau)), scale=loss / math.sqrt(tau * (1 - tau))
        )
        assert found.log_likelihood == pytest.approx(draws.logpdf(e).sum(), rel=1e-9)
        assert found.noise.variance == pytest.approx(draws.var(), rel=1e-9)
    null = np.quantile(y, tau, method="inverted_cdf")
    spent = np.mean(np.where(y > null, tau * (y - null), (tau - 1) * (y - null)))
    assert found.r2 == pytest.approx(1 - loss / spent)


def test_quantile_kernel_sandwich_weights_and_penalty():
    X, y = made(300, 2)
    theta = np.array([2.0, 1.0, 2.0])
    A, tau = with_ones(X), 0.3
    theta[0] += np.quantile(y - A @ theta, tau)
    e = y - A @ theta
    h = hall_sheather(300, tau)
    low, high = np.quantile(e, [0.25, 0.75])
    width = min(e.std(), (high - low) / 1.34) * (stats.norm.ppf(tau + h) - stats.norm.ppf(tau - h))
    near = 0.75 * np.maximum(1 - (e / width) ** 2, 0) / width
    B = np.linalg.inv((A.T * near) @ A)
    found = quantile_estimate(stand_in(theta), sample_of(X, y), tau, 0.0)
    close(found.covariance, tau * (1 - tau) * B @ A.T @ A @ B, 1e-9)
    assert "Powell" in found.method
    s = np.arange(300.0) % 3
    long = np.repeat(np.arange(300), s.astype(int))
    for kind in ("kernel", "iid", "fisher"):
        twice = quantile_estimate(
            stand_in(theta), sample_of(X, y, s, covariance=kind, weights="frequency"), tau, 0.0
        )
        once = quantile_estimate(
            stand_in(theta), sample_of(X[long], y[long], covariance=kind), tau, 0.0
        )
        close(twice.covariance, once.covariance, 1e-9)
        close(twice.log_likelihood, once.log_likelihood, 1e-12)
        close(twice.r2, once.r2, 1e-12)
        one, seven = (
            quantile_estimate(stand_in(theta), sample_of(X, y, c * s, covariance=kind), tau, 0.0)
            for c in (1.0, 7.0)
        )
        close(one.covariance, seven.covariance, 1e-9)
    found = quantile_estimate(stand_in(theta), sample_of(X, y), tau, 0.5)
    assert found.covariance is None
    assert "l1 penalty" in found.notes[0]
    exact = quantile_estimate(stand_in(theta), sample_of(X, A @ theta), tau, 0.0)
    assert exact.covariance is None
    # the published value: n = 100 at the median is h = 0.2092 (Koenker's bandwidth.rq)
    assert hall_sheather(100, 0.5) == pytest.approx(
        100 ** (-1 / 3) * stats.norm.ppf(0.975) ** (2 / 3) * (1.5 / (2 * math.pi)) ** (1 / 3)
    )


def test_quantile_intervals_cover_where_the_noise_grows_with_x():
    """The kernel sandwich does; one density for all rows does not. A linear program finds the median."""
    rng = np.random.default_rng(6)
    n, draws, truth = 300, 150, np.array([1.0, 2.0])
    X = rng.uniform(0, 2, size=(n, 1))
    A = with_ones(X)
    cost = np.r_[np.zeros(2), np.full(2 * n, 0.5)]
    bounds = [(None, None)] * 2 + [(0, None)] * (2 * n)
    equalities = sp.hstack([sp.csr_array(A), sp.eye_array(n), -sp.eye_array(n)])
    hits = {"kernel": 0, "iid": 0}
    for _ in range(draws):
        y = A @ truth + (0.2 + X[:, 0] ** 2) * rng.standard_normal(n)
        theta = linprog(cost, A_eq=equalities, b_eq=y, bounds=bounds, method="highs-ds").x[:2]
        for kind in hits:
            found = quantile_estimate(stand_in(theta), sample_of(X, y, covariance=kind), 0.5, 0.0)
            hits[kind] = hits[kind] + (np.abs(theta - truth) <= 1.96 * errors_of(found))
    deviation = math.sqrt(draws * 0.95 * 0.05)
    assert ((hits["kernel"] - 0.95 * draws) / deviation).min() > -COVERAGE
    assert ((hits["iid"] - 0.95 * draws) / deviation).min() < -COVERAGE


# ---------------------------------------------------------------------------- NIST

# Certified standard deviations of the estimates, as published with the data (15 digits).
CERTIFIED = {
    "Norris": "0.232818234301152 0.429796848199937E-03",
    "Pontius": "0.107938612033077E-03 0.157817399981659E-09 0.486652849992036E-16",
    "NoInt1": "0.165289256198347E-01",
    "NoInt2": "0.420827318078432E-01",
    "Filip": """298.084530995537 559.779865474950 466.477572127796 227.204274477751 71.6478660875927
    15.2897178747400 2.23691159816033 0.221624321934227 0.142363763154724E-01 0.535617408889821E-03
    0.896632837373868E-05""",
    "Longley": """890420.383607373 84.9149257747669 0.334910077722432E-01 0.488399681651699
    0.214274163161675 0.226073200069370 455.478499142212""",
    "Wampler3": """2152.32624678170 2363.55173469681 779.343524331583 101.475507550350 5.64566512170752
    0.112324854679312""",
    "Wampler4": """215232.624678170 236355.173469681 77934.3524331583 10147.5507550350 564.566512170752
    11.2324854679312""",
    "Wampler5": """21523262.4678170 23635517.3469681 7793435.24331583 1014755.07550350 56456.6512170752
    1123.24854679312""",
}  # fmt: skip
RESIDUAL = {
    "Norris": 0.884796396144373, "Pontius": 0.205177424076185e-03, "NoInt1": 3.56753034006338,
    "NoInt2": 0.369274472937998, "Filip": 0.334801051324544e-02, "Longley": 304.854073561965,
    "Wampler3": 2360.14502379268, "Wampler4": 236014.502379268, "Wampler5": 23601450.2379268,
}  # fmt: skip
certified_sets = pytest.mark.parametrize(
    "strd", [d for d in SETS if d.name in CERTIFIED], ids=lambda d: d.name
)


def inverse(matrix):
    """By Gauss and Jordan, in fractions."""
    k = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(k))] for i, row in enumerate(matrix)]
    for c in range(k):
        rows[c] = [value / rows[c][c] for value in rows[c]]
        for r in range(k):
            if r != c:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c])]
    return [row[k:] for row in rows]


@certified_sets
def test_the_certified_deviations_follow_from_the_decimals(strd):
    """sigma^2 (A'A)^-1 in exact fractions gives all published digits: no number above is a slip."""
    rows = strd.columns(Fraction)
    rows = [[Fraction(1), *row] for row in rows] if strd.intercept else rows
    y, k = [Fraction(v) for v in strd.y], len(rows[0])
    G = inverse([[sum(r[i] * r[j] for r in rows) for j in range(k)] for i in range(k)])
    b = [sum(r[i] * t for r, t in zip(rows, y)) for i in range(k)]
    w = [sum(g * v for g, v in zip(row, b)) for row in G]
    rss = sum((t - sum(a * c for a, c in zip(r, w))) ** 2 for r, t in zip(rows, y))
    variance = rss / (len(y) - k)
    with mpmath.workdps(40):
        for j, text in enumerate(CERTIFIED[strd.name].split()):
            exact = mpmath.sqrt(mpmath.mpf((v := variance * G[j][j]).numerator) / v.denominator)
            assert abs(exact / mpmath.mpf(text) - 1) <= 5e-15
        exact = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
        assert abs(exact / mpmath.mpf(repr(RESIDUAL[strd.name])) - 1) <= 5e-15


@pytest.mark.spec("REG-4", "REG-8")
@certified_sets
def test_certified_deviations(strd):
    """Right digits; rounding Filip's powers to float64 alone leaves 8 (see test_nist_strd)."""
    X, y = strd.arrays()
    s = LinearRegression(fit_intercept=strd.intercept).fit(X, y).summary(X, y)
    want = np.array(CERTIFIED[strd.name].split(), dtype=float)
    digits = {"Filip": 7.0, "Longley": 11.5}.get(strd.name, 12.5)
    assert -np.log10(np.abs(s.std_error / want - 1).max() + 1e-16) >= digits
    assert s.noise.scale == pytest.approx(RESIDUAL[strd.name], rel=10.0**-digits)
    if strd.name == "NoInt1":
        assert s.r2 == pytest.approx(0.999365492298663, rel=1e-12)  # about 0, as NIST has it
    if strd.name == "Longley":
        assert s.r2 == pytest.approx(0.995479004577296, rel=1e-12)


# ---------------------------------------------------------------------------- numerics and inputs


def test_gram_and_orthogonal_ways_agree(monkeypatch):
    X, y = made(3000, 5)
    s = np.random.default_rng(0).uniform(0.0, 2.0, 3000)
    models = [LinearRegression(), Ridge(3.0), LinearRegression(fit_intercept=False)]
    fast = [m.fit(X, y, s).summary(X, y, s, covariance="HC3") for m in models]
    monkeypatch.setattr(information, "_TRUST", 2.0)
    monkeypatch.setattr(information, "_BLOCK_BYTES", 8 * 5 * 7)  # seven rows at a time
    slow = [m.fit(X, y, s).summary(X, y, s, covariance="HC3") for m in models]
    for a, b in zip(fast, slow):
        close(a.covariance, b.covariance, 1e-9)
        assert a.condition == pytest.approx(b.condition)
        assert a.df_model == pytest.approx(b.df_model)


def test_large_means_cost_no_digits():
    """Centred first: 1e7 is the whole of x, its standard deviation is 1."""
    X, y = made(200, 3)
    plain = LinearRegression().fit(X, y).summary(X, y)
    far = LinearRegression().fit(X + 1e7, y).summary(X + 1e7, y)
    close(far.std_error[1:], plain.std_error[1:], 1e-7)  # X + 1e7 has lost 9 of its 16 digits
    sparse = sp.csr_array(X + 1e7)
    there = LinearRegression().fit(sparse, y).summary(sparse, y)
    close(there.std_error[1:], far.std_error[1:], 1e-6)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        Ridge(2.0),
        Lasso(0.1, tol=1e-10),
        LogisticRegression(C=2.0, tol=1e-10),
        LogisticRegression(**UNPENALISED),
    ],
    ids=str,
)
def test_every_container_gives_the_same_summary(model):
    import pandas as pd
    import polars as pl

    X, y = made(90, 3)
    X[np.abs(X) < 0.7] = 0.0
    if isinstance(model, LogisticRegression):
        y = (y > np.median(y) + np.random.default_rng(0).normal(0, 5, 90)).astype(int)
    want = model.fit(X, y).summary(X, y)
    for other in (sp.csr_array(X), sp.csc_matrix(X), np.asfortranarray(X)):
        got = model.fit(other, y).summary(other, y)
        close(got.coef, want.coef, 1e-6)
        np.testing.assert_allclose(got.std_error, want.std_error, rtol=1e-6)
        assert got.log_likelihood == pytest.approx(want.log_likelihood)
    single = model.fit(X.astype(np.float32), y).summary(X.astype(np.float32), y)
    np.testing.assert_allclose(single.std_error, want.std_error, rtol=1e-4)
    assert single.std_error.dtype == np.float64
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        got = model.fit(frame, y).summary(frame, y)
        assert got.names == ("intercept", "a", "b", "c")
        close(got.coef, want.coef, 1e-6)


def test_too_many_parameters_are_listed_without_standard_errors(monkeypatch):
    from surefit.linear_model._summary import core

    monkeypatch.setattr(core, "MOST_PARAMETERS", 3)
    X, y = made()
    for model, target in ((LinearRegression(), y), (LogisticRegression(), (y > 20).astype(int))):
        s = model.fit(X, target).summary(X, target)
        assert np.isnan(s.std_error).all()
        assert "5 x 5" in s.notes[0]
        assert np.isfinite(s.log_likelihood)


# ---------------------------------------------------------------------------- which data


def test_other_data_are_noticed():
    X, y = made()
    model = LinearRegression().fit(X, y)
    assert model.summary(X, y).same_data is True
    with pytest.warns(UserWarning, match="not the data of the fit"):
        s = model.summary(X, y + 1.0)
    assert s.same_data is False
    assert "NOT the data of the fit" in s.notes[0]
    with pytest.warns(UserWarning, match="not the data of the fit"):
        model.summary(X, y, np.ones(60) * 2)
    silent = LinearRegression(certify=False).fit(X, y).summary(X, y)
    assert silent.same_data is None
    assert "not certified" in silent.notes[0]


def test_bad_arguments_are_named():
    X, y = made()
    model = LinearRegression().fit(X, y)
    for level in (0.0, 1.0, 95, -1, math.nan):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            model.summary(X, y, level=level)
    with pytest.raises(ValueError, match=r"covariance='HC9' is not a covariance.*'fisher', 'HC0'"):
        model.summary(X, y, covariance="HC9")
    with pytest.raises(
        ValueError, match="weights must be 'precision' or 'frequency', got 'importance'"
    ):
        model.summary(X, y, weights="importance")
    with pytest.raises(ValueError, match="feature_names has 2 names, the model has 4 features"):
        model.summary(X, y, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.summary(X[:, :3], y)
    with pytest.raises(ValueError, match="NaN"):
        model.summary(X, np.where(np.arange(60) == 3, np.nan, y))
    weights = np.full(60, 1.5)
    model.fit(X, y, weights)
    with pytest.raises(ValueError, match=r"values such as 1\.5"):
        model.summary(X, y, weights, weights="frequency")
    with pytest.raises(ValueError, match="not fitted yet"):
        LinearRegression().summary(X, y)
    labels = (y > np.median(y)).astype(int)
    logistic = LogisticRegression().fit(X, labels)
    with pytest.raises(
        ValueError, match=r"reference=7 is not a class of the model: use one of \[0, 1\]"
    ):
        logistic.summary(X, labels, reference=7)
    with pytest.raises(ValueError, match="covariance='HC3' is not a covariance"):
        logistic.summary(X, labels, covariance="HC3")
    assert not hasattr(Perceptron(), "summary")


def test_a_class_without_a_description_says_so():
    class Other(LinearRegression.__mro__[1]):
        def __init__(self):
            self.certify = True

        def fit(self, X, y):
            return self

        def _certify(self, X, y, sample_weight, *, full):
            return []

    X, y = made()
    other = Other()
    other.coef_, other.intercept_, other.n_features_in_ = np.zeros(4), 0.0, 4
    with pytest.raises(TypeError, match="Other has no summary"):
        other.summary(X, y)


# ---------------------------------------------------------------------------- rendering


def hostile():
    """Names that are code in one renderer or another."""
    X, y = made(40, 4)
    names = ["<script>alert(1)</script>", "[red]price[/red]", "cost in $ per $", "a" * 60]
    return LinearRegression().fit(X, y).summary(X, y, feature_names=names), names


def test_text():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    text = str(LinearRegression().fit(X, y).summary(X, y))
    for part in (
        "Summary of LinearRegression: mean of the target",
        "442 samples, 11 parameters in use, 431 residual degrees of freedom",
        "variance 2932.68",
        "2859.7 (maximum likelihood)",
        "R² 0.517748, log-likelihood -2385.99, AIC 4793.99, BIC 4838.99",
        "Student's t with 431 degrees of freedom",
        "low 95 %",
        "* collinear",
    ):
        assert part in text
    row = next(line for line in text.splitlines() if line.split()[:1] == ["bmi"])
    assert row.split() == ["bmi", "519.85", "66.533", "7.813", "4.3e-14", "389.08", "650.62"]
    assert max(len(line) for line in text.splitlines()) <= 110
    many = np.random.default_rng(0).normal(size=(200, 100))
    assert "... and 41 more rows" in str(
        LinearRegression().fit(many, many[:, 0]).summary(many, many[:, 0])
    )
    assert (
        repr(LinearRegression().fit(X, y).summary(X, y))
        == "<Summary of LinearRegression: 11 parameters>"
    )


def test_html_is_escaped():
    s, names = hostile()
    page = s._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<tr>") == 6
    import xml.etree.ElementTree as ElementTree

    ElementTree.fromstring(page.replace("<br>", "<br/>"))  # every tag is closed
    assert all(name in str(s) for name in names)


def test_terminal():
    from rich.console import Console

    s, names = hostile()
    console = Console(width=200, record=True, file=__import__("io").StringIO())
    console.print(s)
    text = console.export_text()
    for name in names:
        assert name in text
    assert "variance" in text
    ridge = Ridge(50.0).fit(*made()).summary(*made())
    console.print(ridge)
    assert "shrunk" in console.export_text()


def test_dictionary_and_frames():
    X, Y = made(targets=2)
    for s in (
        LinearRegression().fit(X, Y).summary(X, Y),
        Lasso(0.1).fit(X, Y[:, 0]).summary(X, Y[:, 0]),
        LogisticRegression().fit(*data("wine")[:2]).summary(*data("wine")[:2]),
    ):
        record = json.loads(json.dumps(s.to_dict(), allow_nan=False))
        assert record["names"] == list(s.names)
        np.testing.assert_array_equal(np.array(record["coef"], dtype=float), s.coef)
        np.testing.assert_array_equal(np.array(record["std_error"], dtype=float), s.std_error)
        assert record["noise"]["family"] == s.noise.family
        frame, other = s.to_frame(), s.to_frame("polars")
        assert type(frame).__module__.startswith("pandas")
        assert type(other).__module__.startswith("polars")
        np.testing.assert_array_equal(frame["low"].to_numpy(), s.low.ravel())
        np.testing.assert_array_equal(other["high"].to_numpy(), s.high.ravel())
        assert frame["parameter"].tolist() == list(s.names) * max(1, len(s.outputs))
        assert ("output" in frame.columns) == bool(s.outputs)
    with pytest.raises(ValueError, match="library must be 'pandas' or 'polars', got 'arrow'"):
        s.to_frame("arrow")


def test_names_of_targets_and_classes():
    import pandas as pd

    X, Y = made(targets=2)
    Y = pd.DataFrame(Y, columns=["height", "weight"])
    assert LinearRegression().fit(X, Y).summary(X, Y).outputs == ("height", "weight")
    X, y, _ = data("iris")
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    s = LogisticRegression().fit(X, labels).summary(X, labels)
    assert s.response == "log-odds of virginica against versicolor"


# ---------------------------------------------------------------------------- the plot


def drawn(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


def test_forest_plot():
    from matplotlib import pyplot as plt

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    s = LinearRegression().fit(X, y).summary(X, y)
    ax = s.plot()
    order = np.argsort(-np.abs(s.coef[1:]))
    assert drawn(ax) == [s.names[1:][j] for j in order]
    ends = [line for c in ax.collections if hasattr(c, "get_segments") for line in c.get_segments()]
    by_row = sorted((round(float(seg[0, 1])), seg[:, 0].tolist()) for seg in ends)
    np.testing.assert_allclose([e for _, e in by_row], np.stack([s.low, s.high], axis=1)[1:][order])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first at the top
    assert 0.0 in [line.get_xdata()[0] for line in ax.lines]
    assert "95 % intervals" in ax.get_xlabel()
    plt.close(ax.figure)
    _, own = plt.subplots()
    assert s.plot(own, sort=False, intercept=True) is own
    assert drawn(own) == list(s.names)
    plt.close(own.figure)
    sd = s.plot(per="sd")
    points = [c.get_offsets()[:, 0] for c in sd.collections if len(c.get_offsets()) > 1]
    np.testing.assert_allclose(np.sort(points[0]), np.sort(s.coef[1:] * s.feature_scale[1:]))
    plt.close(sd.figure)
    for wrong in ({"per": "x"}, {"most": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            s.plot(**wrong)


def test_forest_plot_of_many_features_and_outputs():
    from matplotlib import pyplot as plt

    X = np.random.default_rng(0).normal(size=(300, 100))
    y = X @ np.arange(100.0) + 0.1 * np.random.default_rng(1).normal(size=300)
    s = LinearRegression().fit(X, y).summary(X, y)
    ax = s.plot()
    assert drawn(ax) == [f"x{99 - j}" for j in range(30)]
    assert "the 30 largest of 100 features" in ax.get_title(loc="left")
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    hostile_names, _ = hostile()
    ax = hostile_names.plot()
    ax.figure.canvas.draw()  # a dollar sign must not be read as mathematics
    assert max(len(name) for name in drawn(ax)) <= 32
    plt.close(ax.figure)
    three = LogisticRegression().fit(*data("wine")[:2]).summary(*data("wine")[:2])
    ax = three.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    lasso = Lasso(0.1).fit(X, y).summary(X, y)
    ax = lasso.plot(most=5)
    assert "no intervals" in ax.get_xlabel()
    plt.close(ax.figure)
    Y = np.tile(y[:, None], (1, 9))
    with pytest.raises(ValueError, match="at most 8 outputs"):
        LinearRegression().fit(X, Y).summary(X, Y).plot()


def test_a_summary_is_plain_data():
    import pickle

    X, y = made()
    s = LinearRegression().fit(X, y).summary(X, y)
    again = pickle.loads(pickle.dumps(s))
    assert isinstance(again, Summary)
    assert again.to_dict() == s.to_dict()
    with pytest.raises(AttributeError):
        s.coef = None
