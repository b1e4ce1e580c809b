"""Logistic and softmax regression: optima, penalties, separability, calibration (LOG-4 to LOG-7, PER-5)."""

import copy
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
from scipy.special import expit, log_softmax, logsumexp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

import surefit
from surefit import CertificateWarning, Status
from surefit._exact_separation import can_balance
from surefit.design import as_design
from surefit.duality import duality_gap
from surefit.linear_model import LogisticRegression, Perceptron
from surefit.linear_model._logistic_claims import _differences, _flat_point, _pair_weights
from surefit.losses import Logistic, Softmax
from surefit.penalties import NoPenalty
from surefit.solvers.schedules import InverseTime

XOR = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def make(n=120, p=4, *, classes=2, seed=0, spread=1.0):
    """Overlapping classes: labels drawn from a linear model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    W = spread * rng.normal(size=(p, classes))
    scores = (X - X.mean(axis=0)) @ W
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return X, y


def separable(n=40, p=3, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y == 1, 0.5, -0.5)
    return X, y


def nll(X, y, w, b, weights=None):
    """The negative log-likelihood, written out again: log sum_k e^{z_k} - z_y, K = 2 with z_0 = 0."""
    z = X @ np.atleast_2d(w).T + b
    if z.shape[1] == 1:
        z = np.column_stack([np.zeros(len(z)), z])
    losses = logsumexp(z, axis=1) - z[np.arange(len(y)), y]
    return losses.sum() if weights is None else weights @ losses


def objective(model, X, y, C, ratio=0.0, weights=None):
    w = model.coef_
    penalty = ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * (w**2).sum()
    return C * nll(X, y, w, model.intercept_, weights) + penalty


# ---------------------------------------------------------------------------- LOG-4: one optimum


@pytest.mark.spec("LOG-4")
def test_gradient_descent_sgd_and_newton_reach_one_optimum():
    """Three methods on mean loss + (lambda/2) ||w||^2 and the estimator: the same w, small gradients."""
    X, labels = make(n=80, p=3)
    X, y, strength = X - X.mean(axis=0), 2.0 * labels - 1.0, 0.1
    n = len(y)

    def f(w):
        return np.mean(np.logaddexp(0.0, -y * (X @ w))) + 0.5 * strength * w @ w

    def grad_at(w, rows):
        return -X[rows].T @ (y[rows] * expit(-y[rows] * (X[rows] @ w))) / len(rows) + strength * w

    def grad(w):
        return grad_at(w, np.arange(n))

    def hess(w):
        p = expit(X @ w)
        return X.T @ ((p * (1 - p))[:, None] * X) / n + strength * np.eye(3)

    smoothness = np.linalg.norm(X, 2) ** 2 / (4 * n) + strength
    common = {"grad": grad, "smoothness": smoothness, "strong_convexity": strength}
    newton = surefit.minimize(f, np.zeros(3), method="newton", hess=hess, tol=1e-12, **common)
    descent = surefit.minimize(f, np.zeros(3), method="gd", tol=1e-9, **common)
    stochastic = surefit.minimize(
        f, np.zeros(3), method="sgd", grad_at=grad_at, n_samples=n, random_state=0, tol=3e-2,
        step=InverseTime(1.0 / smoothness, 0.01), max_iter=200 * n, **common,
    )  # fmt: skip
    model = LogisticRegression(C=1.0 / (strength * n), fit_intercept=False, tol=1e-12).fit(
        X, labels
    )
    w = model.coef_[0]
    assert newton.converged
    assert descent.converged
    assert stochastic.converged
    assert (
        newton.n_iter < 10 < descent.n_iter < stochastic.n_iter
    )  # cost a step falls in this order
    # m-strong convexity: ||w - w*|| <= ||gradient|| / m, the certificate of each run in one number
    for point, largest in ((w, 1e-9), (newton.x, 1e-9), (descent.x, 1e-8), (stochastic.x, 3e-2)):
        assert np.linalg.norm(grad(point)) <= largest
        assert np.linalg.norm(point - w) <= np.linalg.norm(grad(point)) / strength + 1e-9


@pytest.mark.spec("LOG-4")
@pytest.mark.parametrize(
    "solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga", "liblinear"]
)
def test_every_solver_name_reaches_the_optimum(solver):
    X, y = make()
    model = LogisticRegression(solver=solver, fit_intercept=False).fit(X, y)
    reference = LogisticRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert model.certificate_.ok


# ---------------------------------------------------------------------------- LOG-5: penalties


@pytest.mark.spec("LOG-5")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_equals_scikit_learn(classes, C, ratio, fit_intercept):
    X, y = make(classes=classes)
    X = StandardScaler().fit_transform(X)
    ours = LogisticRegression(C=C, l1_ratio=ratio, fit_intercept=fit_intercept, tol=1e-13).fit(X, y)
    theirs = sklearn.linear_model.LogisticRegression(
        C=C, l1_ratio=ratio, fit_intercept=fit_intercept, tol=1e-10, max_iter=100_000,
        solver="saga" if ratio else "newton-cg",
    ).fit(X, y)  # fmt: skip
    mine, yours = (objective(model, X, y, C, ratio) for model in (ours, theirs))
    assert mine <= yours * (1 + 1e-12)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-4)
    if np.any(ours.coef_):  # at w = 0 saga ends early, with an intercept off in the second digit
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert surefit.verify(ours, X, y).ok


@pytest.mark.spec("LOG-5")
def test_the_lambda_of_the_notes():
    """(1/N) sum loss + (lambda/2) ||w||^2 is C = 1/(lambda N)."""
    X, y = make()
    strength = 0.05
    model = LogisticRegression(C=1 / (strength * len(y)), tol=1e-12).fit(X, y)

    def f(v):
        return nll(X, y, v[:-1], v[-1]) / len(y) + 0.5 * strength * v[:-1] @ v[:-1]

    found = scipy.optimize.minimize(f, np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), found, rtol=0, atol=1e-5)


@pytest.mark.spec("LOG-5")
@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
def test_separable_data_need_the_penalty(ratio):
    """Without it the norm keeps growing; with it the duality gap goes to zero."""
    X, y = separable()
    norms = []
    for steps in (2, 4, 8, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            model = LogisticRegression(C=np.inf, max_iter=steps, tol=1e-12).fit(X, y)
        norms.append(np.linalg.norm(model.coef_))
    assert (np.diff(norms) > 0.5 * norms[0]).all()
    for tol in (1e-2, 1e-6, 1e-12):
        model = LogisticRegression(C=10.0, l1_ratio=ratio, tol=tol).fit(X, y)
        claim = model.certificate_["duality gap"]
        assert claim.status is Status.HOLDS
        assert claim.observed <= max(tol * 10.0 * len(y), claim.bound)
    assert claim.observed <= 1e-10


@pytest.mark.spec("LOG-5")
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_data_without_penalty_are_detected(classes):
    X, y = separable()
    if classes == 3:
        y = np.where(X[:, 0] < -1.2, 2, y)
        X[:, 0] -= np.where(y == 2, 1.0, 0.0)
    with pytest.warns(CertificateWarning, match=r"finite optimum.*separated[\s\S]*Use a penalty"):
        model = LogisticRegression(C=np.inf).fit(X, y)
    claim = model.certificate_["finite optimum"]
    assert claim.status is Status.FAILS
    assert "grow without bound" in claim.statement
    assert claim.observed > 0  # the margin: anyone can check that it separates
    assert model.score(X, y) == 1.0
    assert not surefit.verify(model, X, y).ok


@pytest.mark.spec("LOG-5")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_overlapping_data_without_penalty_are_certified_by_verify(classes, form):
    X, y = make(classes=classes)
    model = LogisticRegression(C=np.inf, tol=1e-8).fit(form(X), y)
    assert model.certificate_.ok
    assert model.certificate_["duality gap"].status is Status.UNDECIDED  # too expensive at fit time
    assert model.certificate_["finite optimum"].status is Status.UNDECIDED
    report = surefit.verify(model, X, y)
    for name in ("duality gap", "finite optimum", "gradient", "data"):
        assert report[name].status is Status.HOLDS, str(report)
    full = LogisticRegression(C=np.inf, tol=1e-8, certify="full").fit(form(X), y).certificate_
    assert full["finite optimum"].status is Status.HOLDS
    theirs = sklearn.linear_model.LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cg")
    theirs.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-5)


@pytest.mark.spec("LOG-5")
def test_the_gap_is_the_textbook_formula():
    """Dual: -C sum [a log a + (1-a) log(1-a)] - ||C X'(y a)||^2 / 2, a_i = sigma(-margin)."""
    X, labels = make()
    y, C = 2.0 * labels - 1.0, 0.7
    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-10).fit(X, labels)
    for factor in (1.0, 1.02, 0.8):
        moved = copy.deepcopy(model)
        moved.coef_ = factor * model.coef_
        w = moved.coef_[0]
        a = expit(-y * (X @ w))
        v = C * X.T @ (y * a)
        dual = -C * np.sum(a * np.log(a) + (1 - a) * np.log1p(-a)) - 0.5 * v @ v
        primal = objective(moved, X, labels, C)
        claim = surefit.verify(moved, X, labels, tol=1e-10)["duality gap"]
        assert claim.observed == pytest.approx(primal - max(dual, 0.0), rel=1e-6, abs=1e-11)
        assert claim.status is (Status.HOLDS if factor == 1.0 else Status.FAILS)


def test_liblinear_penalises_the_intercept():
    """Its objective has intercept_ / intercept_scaling among the coefficients."""
    X, y = make()
    for scaling, ratio in ((1.0, 0.0), (10.0, 0.0), (2.0, 1.0)):
        ours = LogisticRegression(
            solver="liblinear", intercept_scaling=scaling, l1_ratio=ratio, C=0.3, tol=1e-10
        ).fit(X, y)
        theirs = sklearn.linear_model.LogisticRegression(
            solver="liblinear", intercept_scaling=scaling, l1_ratio=ratio, C=0.3, tol=1e-10,
            max_iter=100_000, random_state=0,
        ).fit(X, y)  # fmt: skip
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-4)
        assert surefit.verify(ours, X, y).ok
        free = LogisticRegression(C=0.3, l1_ratio=ratio).fit(X, y)
        assert not np.allclose(free.intercept_, ours.intercept_, rtol=1e-3)
        # the certificate is about this objective: under the other one the same numbers are not optimal
        other = copy.deepcopy(ours).set_params(solver="lbfgs")
        assert surefit.verify(other, X, y, tol=1e-10)["duality gap"].status is Status.FAILS


@pytest.mark.parametrize("ratio", [0.0, 0.5])
@pytest.mark.parametrize("classes", [2, 3])
def test_sample_and_class_weights(classes, ratio):
    X, y = make(classes=classes)
    counts = np.random.default_rng(1).integers(0, 4, size=len(y))
    options = {"l1_ratio": ratio, "tol": 1e-11}
    weighted = LogisticRegression(**options).fit(X, y, sample_weight=counts)
    repeated = LogisticRegression(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-6)
    by_class = {k: 1.0 + k for k in range(classes)}
    as_class = LogisticRegression(class_weight=by_class, **options).fit(X, y)
    as_sample = LogisticRegression(**options).fit(X, y, sample_weight=1.0 + y)
    np.testing.assert_allclose(as_class.coef_, as_sample.coef_, rtol=0, atol=1e-6)
    balanced = LogisticRegression(class_weight="balanced", **options).fit(X, y)
    share = len(y) / (classes * np.bincount(y))
    by_hand = LogisticRegression(**options).fit(X, y, sample_weight=share[y])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=0, atol=1e-6)
    for model, weights in ((weighted, counts), (balanced, None)):
        assert surefit.verify(model, X, y, sample_weight=weights).ok
    # the weights are part of what is certified
    assert not surefit.verify(weighted, X, y).ok


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_sparse_is_dense(ratio, classes):
    rng = np.random.default_rng(0)
    X, y = make(p=10, classes=classes)
    X = X * (rng.uniform(size=X.shape) < 0.4)
    dense = LogisticRegression(l1_ratio=ratio, tol=1e-11).fit(X, y)
    for form in (sp.csr_array, sp.csc_matrix):
        sparse = LogisticRegression(l1_ratio=ratio, tol=1e-11).fit(form(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-6)
        assert surefit.verify(sparse, X, y).ok
    thin = copy.deepcopy(dense).sparsify()
    assert sp.issparse(thin.coef_)
    assert surefit.verify(thin, X, y).ok


def test_float32_stays_float32():
    X, y = make()
    model = LogisticRegression().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, LogisticRegression().fit(X, y).coef_, rtol=1e-5)
    assert model.certificate_.ok


@pytest.mark.parametrize("classes", [2, 3])
def test_constant_columns_and_large_means(classes):
    """Neither a constant column nor an offset of the others changes the other coefficients."""
    X, y = make(classes=classes)
    for C in (1.0, np.inf):
        plain = LogisticRegression(C=C, tol=1e-8).fit(X, y)
        wide = LogisticRegression(C=C, tol=1e-8).fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
        np.testing.assert_allclose(wide.coef_[:, :-1], plain.coef_, rtol=0, atol=1e-5)
        np.testing.assert_allclose(wide.coef_[:, -1], 0.0, atol=1e-8)
        far = LogisticRegression(C=C, tol=1e-8).fit(np.round(X, 6) + 1e4, y)
        np.testing.assert_allclose(far.coef_, plain.coef_, rtol=0, atol=1e-4)
        assert surefit.verify(far, np.round(X, 6) + 1e4, y).ok


def test_warm_start():
    X, y = make()
    cold = LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    warm = LogisticRegression(C=0.95, tol=1e-10, warm_start=True).fit(X, y)
    warm.set_params(C=1.0).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=0, atol=1e-7)


def test_too_few_steps_warn():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(CertificateWarning, match=r"duality gap[\s\S]*max_iter") as caught:
        model = LogisticRegression(max_iter=2).fit(X, y)
    assert len(caught) == 1
    claim = model.certificate_["duality gap"]
    assert claim.status is Status.FAILS
    best = LogisticRegression(max_iter=1000).fit(X, y)
    excess = objective(model, X, y, 1.0) - objective(best, X, y, 1.0)
    assert 0 < excess <= claim.observed


# ---------------------------------------------------------------------------- PER-5: XOR


@pytest.mark.spec("PER-5")
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_a_penalised_loss_has_a_finite_optimum_on_xor(ratio):
    """No hyperplane separates XOR; loss + penalty has an optimum, and it is certified.

    By symmetry it is w = 0 with value 4 log 2; an unbalanced XOR has another.
    """
    y = np.array([0, 1, 1, 0])
    model = LogisticRegression(l1_ratio=ratio, tol=1e-10).fit(XOR, y)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-8)
    assert objective(model, XOR, y, 1.0, ratio) == pytest.approx(4 * np.log(2))
    assert surefit.verify(model, XOR, y).ok
    weights = np.array([1.0, 5.0, 2.0, 1.0])
    lopsided = LogisticRegression(l1_ratio=ratio, C=10.0, tol=1e-10).fit(XOR, y, weights)
    assert np.isfinite(lopsided.coef_).all()
    assert np.abs(lopsided.coef_).max() > 0.1
    assert (
        surefit.verify(lopsided, XOR, y, sample_weight=weights)["duality gap"].status
        is Status.HOLDS
    )
    # XOR overlaps, so even without a penalty the optimum is finite, and verify shows it
    free = LogisticRegression(C=np.inf).fit(XOR, y)
    assert surefit.verify(free, XOR, y)["finite optimum"].status is Status.HOLDS


@pytest.mark.spec("PER-5")
def test_the_penalised_perceptron_stays_bounded_on_xor():
    """Its loss plus penalty has the optimum 0 at w = 0, which the certificate compares with."""
    y = np.array([-1, 1, 1, -1])
    model = Perceptron(penalty="l2", alpha=0.1, shuffle=False, max_iter=200, tol=None).fit(XOR, y)
    report = surefit.verify(model, XOR, y)
    assert report.ok
    assert report["weight norm"].status is Status.HOLDS
    assert np.linalg.norm(model.coef_) <= report["weight norm"].bound
    assert report["penalised objective"].status is Status.HOLDS
    assert 0 < model.objective_[0] < 1
    assert report["separability"].status is Status.HOLDS  # Farkas weights: nothing separates XOR


# ---------------------------------------------------------------------------- LOG-6: confidence


def reliability(p, outcome, bins=10):
    """Rows (mean stated probability, share of positives, count) of each tenth of the range."""
    index = np.minimum((p * bins).astype(int), bins - 1)
    return [
        (p[index == k].mean(), outcome[index == k].mean(), int((index == k).sum()))
        for k in range(bins)
        if (index == k).any()
    ]


def miscalibration(table):
    """Largest distance between stated and observed, in standard errors of the bin."""
    return max(
        abs(stated - seen) / np.sqrt(max(stated * (1 - stated), 1e-4) / count)
        for stated, seen, count in table
    )


@pytest.mark.spec("LOG-6")
def test_decision_and_confidence():
    """Predict 1 iff p > 1/2; the stated probabilities are right only if the log-odds are linear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    linear = (rng.uniform(size=len(X)) < expit(1.5 * X[:, 0] - X[:, 1] + 0.5)).astype(int)
    bent = (rng.uniform(size=len(X)) < np.where(X[:, 0] > 0, 0.9, 0.1)).astype(int)  # a step
    train, test = slice(0, 10_000), slice(10_000, None)
    worst = {}
    for name, y in (("linear", linear), ("bent", bent)):
        model = LogisticRegression(C=np.inf).fit(X[train], y[train])
        p = model.predict_proba(X[test])
        np.testing.assert_array_equal(model.predict(X[test]), (p[:, 1] > 0.5).astype(int))
        np.testing.assert_array_equal(model.predict(X[test]), model.decision_function(X[test]) > 0)
        table = reliability(p[:, 1], y[test])
        assert sum(count for *_, count in table) == 10_000
        worst[name] = miscalibration(table)
    # Ten bins of a right model: beyond 4 standard errors with probability under 10 * 6e-5.
    assert worst["linear"] < 4.0
    assert worst["bent"] > 10.0


# ---------------------------------------------------------------------------- LOG-7: softmax


@pytest.mark.spec("LOG-7")
def test_softmax_probabilities():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression().fit(X, y)
    p, scores = model.predict_proba(X), X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(
        p, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), rtol=1e-12
    )
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    np.testing.assert_allclose(
        model.coef_.sum(axis=0), 0.0, atol=1e-8
    )  # penalised: the shares balance
    huge = copy.deepcopy(model)
    huge.coef_ = 1e4 * model.coef_  # no overflow, no NaN
    assert np.isfinite(huge.predict_proba(X)).all()
    np.testing.assert_allclose(huge.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.spec("LOG-7")
def test_two_softmax_classes_are_logistic_regression():
    """P(1|x) = sigma(<x, w_1 - w_0>); two halves of ||w||^2 / 2 make it logistic regression at 2C."""
    X, y = make()
    C, p = 0.4, X.shape[1]

    def softmax_objective(v):
        W, b = v[: 2 * p].reshape(2, p), v[2 * p :]
        z = X @ W.T + b
        return C * (logsumexp(z, axis=1) - z[np.arange(len(y)), y]).sum() + 0.5 * (W**2).sum()

    v = scipy.optimize.minimize(softmax_objective, np.zeros(2 * p + 2), tol=1e-10).x
    W, b = v[: 2 * p].reshape(2, p), v[2 * p :]
    model = LogisticRegression(C=2 * C, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], W[1] - W[0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(model.intercept_[0], b[1] - b[0], rtol=0, atol=1e-4)
    z = X @ W.T + b
    np.testing.assert_allclose(
        expit(z[:, 1] - z[:, 0]), np.exp(log_softmax(z, axis=1))[:, 1], rtol=1e-12
    )


@pytest.mark.spec("LOG-7")
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_multinomial_equals_scikit_learn_on_iris(ratio):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = LogisticRegression(l1_ratio=ratio, tol=1e-10).fit(X, y)
    theirs = sklearn.linear_model.LogisticRegression(
        l1_ratio=ratio, tol=1e-8, max_iter=100_000, solver="saga" if ratio else "lbfgs"
    ).fit(X, y)
    assert objective(ours, X, y, 1.0, ratio) <= objective(theirs, X, y, 1.0, ratio) * (1 + 1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-4)
    assert surefit.verify(ours, X, y).ok


def test_labels_of_any_kind():
    X, y = make(classes=3)
    names = np.array(["ash", "birch", "cedar"])[y]
    model, coded = LogisticRegression().fit(X, names), LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.coef_, coded.coef_)
    np.testing.assert_array_equal(
        model.predict(X), np.array(["ash", "birch", "cedar"])[coded.predict(X)]
    )
    assert surefit.verify(model, X, names).ok
    other = surefit.verify(model, X, np.where(names == "ash", "oak", names))
    assert "classes_ lack the label 'oak' of the rows" in other["attributes"].statement


@pytest.mark.parametrize("free", [True, False])
def test_weights_that_leave_out_a_class(free):
    """With a free intercept its probability would go to 0 and b to infinity: said before the fit."""
    X, y = make()
    weights = (y == 0).astype(float)
    if free:
        with pytest.raises(
            ValueError, match=r"sample_weight is zero.*class\(es\) \[0\], of \[0, 1\]"
        ):
            LogisticRegression().fit(X, y, sample_weight=weights)
    else:
        model = LogisticRegression(fit_intercept=False).fit(X, y, sample_weight=weights)
        assert model.certificate_.ok
        with pytest.raises(ValueError, match="give every class some weight"):
            LogisticRegression(fit_intercept=False, class_weight="balanced").fit(X, y, weights)


def _rows_and_weights(classes):
    X, y = make(classes=classes)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    codes = np.where(y == 1, 1.0, -1.0) if classes == 2 else y.astype(float)
    w = model.coef_[0] if classes == 2 else model.coef_.T
    b = model.intercept_[0] if classes == 2 else model.intercept_
    loss = Logistic() if classes == 2 else Softmax()
    s = np.ones(len(y))
    gap = duality_gap(X, codes, w, b, loss, NoPenalty(), weights=s)
    return X, codes, s, gap, (w, b)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_rows_of_the_finite_optimum_are_those_that_a_separator_must_win(classes):
    """<z, v> for each of them is a score's lead over another class, and the weights balance them."""
    X, codes, s, gap, point = _rows_and_weights(classes)
    rows = _differences(as_design(X), codes, s > 0, True, codes.ndim if classes == 2 else 2)
    v = _flat_point(*point, True)
    z = X @ point[0] + point[1]
    if classes == 2:
        leads = codes * z
    else:
        own = codes.astype(int)
        leads = (z[np.arange(len(z)), own][:, None] - z)[np.arange(3) != own[:, None]]
    np.testing.assert_allclose(rows @ v, leads, rtol=0, atol=1e-12)
    weights = _pair_weights(codes, s, gap.theta)
    assert (weights > 0).all()
    assert np.abs(weights @ rows).max() < 1e-9
    assert can_balance(rows, weights)
    weights[0] = 0.0  # a sample that is not in use
    assert not can_balance(rows, weights)


def test_one_unit_in_the_last_place_is_no_finite_optimum():
    """x = 1 and 1 + 2^-52 are separable: the likelihood has no maximiser, whatever rounding says."""
    X, y = np.array([[1.0], [1.0 + 2.0**-52]]), np.array([0, 1])
    model = LogisticRegression(C=np.inf, max_iter=5).fit(X, y)
    assert surefit.verify(model, X, y)["finite optimum"].status is Status.FAILS
    same = np.ones((2, 1))
    model = LogisticRegression(C=np.inf).fit(same, y)
    assert surefit.verify(model, same, y)["finite optimum"].status is Status.HOLDS


@pytest.mark.parametrize("seed", range(6))
def test_quasi_separation_is_never_called_a_finite_optimum(seed):
    """A column that is 1 on some rows of one class only: its coefficient grows for ever.

    The dual point is then 0 on those rows in exact arithmetic, and positive by rounding at times.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 100)
    X = np.column_stack([rng.normal(size=100), (labels == 1) & (rng.random(100) < 0.4)])
    model = LogisticRegression(C=np.inf, max_iter=300).fit(X.astype(float), labels)
    claim = surefit.verify(model, X.astype(float), labels)["finite optimum"]
    assert claim.status is not Status.HOLDS
