"""``model.summary``: standard errors, intervals and likelihoods, and what is said where there are none."""

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special, stats
from sklearn.datasets import load_diabetes, load_iris, load_wine
from tests.summary_tools import UNPENALISED, close, made, with_ones
from tests.theory.statsmodels_data import RECORDED, compute, data

from surefit import CertificateWarning
from surefit.densities import fisher_information, gaussian_log_likelihood, gaussian_noise_scale
from surefit.design import RowBlocks
from surefit.inference import information
from surefit.inference.summary import intervals
from surefit.linear_model import (
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLassoCV,
    Perceptron,
    Ridge,
    RidgeCV,
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
    X3, y3, s3 = data("wine")
    long = np.repeat(np.arange(len(y3)), s3.astype(int))
    for kind in ("fisher", "HC0", "HC1"):
        want = model.fit(X3[long], y3[long]).summary(X3[long], y3[long], covariance=kind)
        got = model.fit(X3, y3, s3).summary(X3, y3, s3, weights="frequency", covariance=kind)
        close(got.std_error, want.std_error, 1e-5)
        close(got.bic, want.bic, 1e-9)
    HC0, HC1 = (
        model.summary(X3, y3, s3, weights="frequency", covariance=k) for k in ("HC0", "HC1")
    )
    close(HC1.std_error / HC0.std_error, math.sqrt(len(long) / (len(long) - 6)), 1e-9)
    model.fit(X, y, s)
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
    # noise that is orthogonal to all features leaves no bias to estimate; the penalty is heavy all the same
    noise = np.random.default_rng(0).normal(size=60)
    noise -= LinearRegression().fit(X, noise).predict(X)
    heavy = Ridge(1e6).fit(X, noise).summary(X, noise)
    assert "e-1" in heavy.notes[-1]  # of a standard error: rounding
    assert np.isnan(heavy.p_value).all()


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


def test_each_target_is_identified_for_itself():
    """One penalised, one not: the ridge target does not lend its standard errors to the other."""
    X, Y = made(50, 3, targets=2)
    X = np.column_stack([X, X[:, 1]])
    for alpha, free in (([0.0, 1.0], 0), ([1.0, 0.0], 1)):
        s = Ridge(alpha).fit(X, Y).summary(X, Y)
        assert np.isnan(s.std_error[free]).tolist() == [False, False, True, False, True]
        assert np.isfinite(s.std_error[1 - free]).all()
        assert any("not identified" in note for note in s.notes)
        assert s.condition == np.inf
    tiny = Ridge(1e-30, certify=False).fit(X, Y[:, 0]).summary(X, Y[:, 0])  # a penalty in name only
    assert np.isnan(tiny.std_error).tolist() == [False, False, True, False, True]
    assert any("not identified" in note for note in tiny.notes)


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
    weights = np.random.default_rng(0).uniform(0.1, 1.0, 50)
    third = np.where(np.arange(50) % 2, 0.3, 0.1 + 0.2)  # which differ in the last bit
    for value in (0.1, 1e5 / 3, -1e-9 / 7, third):  # what weighted means leave of it is rounding
        X[:, 2] = value
        s = LinearRegression(certify=False).fit(X, y, weights).summary(X, y, weights)
        assert np.isnan(s.std_error).tolist() == [True, False, False, True]


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


def test_a_fit_that_stopped_early_is_no_maximum():
    """The Newton step that shows it, against the dense formula."""
    X, y, s = data("wine")
    y2 = (y > 0).astype(int)
    for labels, names in ((y2, ("fit",)), (y, ("fit", "fit"))):
        with pytest.warns(CertificateWarning):
            model = LogisticRegression(C=np.inf, max_iter=1).fit(X, labels, s)
        found = model.summary(X, labels, s)
        A, P = with_ones(X), model.predict_proba(X)
        k, classes = A.shape[1], len(names) + 1
        full, slope = np.zeros((classes, k, classes, k)), np.zeros((classes, k))
        for c in range(classes):
            slope[c] = A.T @ (s * ((labels == c) - P[:, c]))
            for d in range(classes):
                full[c, :, d, :] = (A.T * (s * P[:, c] * ((c == d) - P[:, d]))) @ A
        full = full.reshape(classes * k, -1)
        step = (np.linalg.pinv(full, rcond=1e-12) @ slope.ravel()).reshape(classes, k)
        shift = A @ step.T
        shift -= (P * shift).sum(axis=1, keepdims=True)
        if classes == 2:  # the log-odds themselves
            shift = A @ (step[1:] - step[:1]).T
        else:
            shift[np.arange(len(labels)), labels] = 0.0
        assert np.isnan(found.std_error).all()
        note = next(note for note in found.notes if "not a maximum" in note)
        assert f"by {np.abs(shift).max():.2g}, so" in note


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


@pytest.mark.parametrize(
    "model",
    [LinearRegression(), Ridge(2.0), LogisticRegression(), LogisticRegression(**UNPENALISED)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["torch", "blocks"])
def test_tensors_and_row_blocks_give_the_same_summary(model, kind, tmp_path):
    torch = pytest.importorskip("torch")
    X, y = made(90, 3)
    if isinstance(model, LogisticRegression):
        y = np.digitize(y + np.random.default_rng(0).normal(0, 9, 90), [10, 20])
    np.save(tmp_path / "X.npy", X)
    there = (
        (torch.tensor(X), torch.tensor(y))
        if kind == "torch"
        else (RowBlocks(tmp_path / "X.npy"), y)
    )
    want = model.fit(X, y).summary(X, y, covariance="HC0")
    got = model.fit(*there).summary(*there, covariance="HC0")
    assert got.same_data
    for field in ("coef", "std_error", "log_likelihood", "feature_scale", "df_model"):
        close(getattr(got, field), getattr(want, field), 1e-8)


def test_a_penalty_chosen_by_cross_validation_is_taken_as_given():
    X, Y = made(80, 4, targets=2)
    y = Y[:, 0]
    found = RidgeCV(alphas=(1.0, 10.0)).fit(X, y)
    s = found.summary(X, y)
    fixed = Ridge(found.alpha_).fit(X, y).summary(X, y)
    close(s.std_error, fixed.std_error, 1e-10)
    assert s.model == "RidgeCV"
    assert "was chosen by cross-validation" in s.notes[-1]
    each = RidgeCV(alphas=(1.0, 1000.0), alpha_per_target=True).fit(X, Y)
    assert each.summary(X, Y).std_error.shape == (2, 5)
    for model, target in (
        (LassoCV(), y),
        (ElasticNetCV(l1_ratio=0.9), y),
        (MultiTaskLassoCV(), Y),
    ):
        s = model.fit(X, target).summary(X, target)
        close(
            s.coef,
            np.column_stack([np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_)]),
            1e-15,
        )
        assert np.isnan(s.std_error).all()
        assert "was chosen by cross-validation" in s.notes[-1]
    labels = (y > np.median(y)).astype(int)
    options = {
        "use_legacy_attributes": False,
        "l1_ratios": (0.0,),
        "scoring": "neg_log_loss",
        "Cs": 3,
    }
    chosen = LogisticRegressionCV(**options, tol=1e-12).fit(X, labels)
    s = chosen.summary(X, labels)
    fixed = LogisticRegression(C=chosen.C_, tol=1e-12).fit(X, labels).summary(X, labels)
    close(s.std_error, fixed.std_error, 1e-6)
    assert "C = " in s.notes[-1]
    averaged = LogisticRegressionCV(**options, refit=False).fit(X, labels)
    with pytest.raises(ValueError, match="averages over the folds"):
        averaged.summary(X, labels)


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

        def _certify(self, X, y, sample_weight, *, full, tol):
            return []

    X, y = made()
    other = Other()
    other.coef_, other.intercept_, other.n_features_in_ = np.zeros(4), 0.0, 4
    with pytest.raises(TypeError, match="Other has no summary"):
        other.summary(X, y)
