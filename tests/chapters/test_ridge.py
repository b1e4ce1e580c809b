"""Ridge regression: the closed form, eigenvalue lifting, augmentation, and its claims (REG-5, 10-13)."""

import copy

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.datasets import load_diabetes

import surefit
from surefit import Status
from surefit.iterate import Stop
from surefit.linear_model import LinearRegression, Ridge, ridge_regression

SHAPES = [(60, 5), (12, 40), (30, 30)]


def make(n=60, p=5, *, seed=0, targets=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    W = rng.normal(size=(p, *([targets] if targets else [])))
    return X, 3.0 + X @ W + rng.normal(size=(n, *W.shape[1:]))


def gradient(model, X, y, alpha, s=None):
    """Of the halved objective, in w and in b."""
    e = y - X @ model.coef_ - model.intercept_
    e = e if s is None else s * e
    return X.T @ e - alpha * model.coef_, e.sum()


# ---------------------------------------------------------------------------- identities


@pytest.mark.spec("REG-11")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_closed_form_gradient_and_scikit_learn(n, p, alpha, fit_intercept):
    """w = (X'X + mu I)^-1 X'y on centred data; gradient 0; scikit-learn's Ridge(alpha=mu)."""
    X, y = make(n, p)
    model = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, y)
    theirs = sklearn.linear_model.Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd")
    theirs.fit(X, y)
    cond = (np.linalg.norm(X, 2) ** 2 + alpha) / alpha
    tolerance = 1e-14 * min(cond, 1e4) * np.abs(theirs.coef_).max()
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=0, atol=100 * tolerance)
    slope_w, slope_b = gradient(model, X, y, alpha)
    scale = np.linalg.norm(X) * np.linalg.norm(y)
    assert np.abs(slope_w).max() <= 1e-14 * scale
    if fit_intercept:
        assert abs(slope_b) <= 1e-13 * np.abs(y).sum()
        Xc, yc = X - X.mean(axis=0), y - y.mean()
    else:
        Xc, yc = X, y
    if cond < 1e8:
        closed = np.linalg.solve(Xc.T @ Xc + alpha * np.eye(p), Xc.T @ yc)
        np.testing.assert_allclose(model.coef_, closed, rtol=0, atol=100 * tolerance)


@pytest.mark.spec("REG-11")
@pytest.mark.parametrize(
    ("fit", "penalty", "shift"),
    [(0.5, 1.0, 2.0), (0.5, 0.5, 1.0), (1.0, 1.0, 1.0)],
    ids=["half mean, whole penalty", "half mean, half penalty", "mean, whole penalty"],
)
def test_the_scalings_of_the_notes(fit, penalty, shift):
    """fit/N ||e||^2 + penalty lambda ||w||^2 has mu = 2 N lambda, N lambda and N lambda (ERR-18)."""
    X, y = make()
    n, strength = len(y), 0.3
    model = Ridge(alpha=shift * n * strength, fit_intercept=False).fit(X, y)

    def objective(w):
        return fit / n * np.sum((y - X @ w) ** 2) + penalty * strength * np.sum(w**2)

    found = scipy.optimize.minimize(objective, np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(model.coef_, found, rtol=0, atol=1e-6)  # differences of a BFGS run
    wrong = Ridge(alpha=2 * strength / n, fit_intercept=False).fit(
        X, y
    )  # as one transcript prints it
    assert np.abs(wrong.coef_ - found).max() > 1e-2


@pytest.mark.spec("REG-11")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("share", [1e-7, 1e-3, 1.0])
def test_more_columns_than_rows_to_rounding(share, form):
    """Solved through the rows, w = X'c: the gradient is zero to rounding at every condition number."""
    X, y = make(40, 200)
    X *= np.logspace(0, -3, 40)[:, None]  # the rows differ in length, and so do the eigenvalues
    alpha = share * np.linalg.norm(X, 2) ** 2
    model = Ridge(alpha=alpha).fit(form(X), y)
    report = surefit.verify(model, X, y)
    assert report["normal equations"].status is Status.HOLDS
    assert report["duality gap"].observed <= 1e-12 * np.sum((y - y.mean()) ** 2)


@pytest.mark.spec("REG-12")
@pytest.mark.parametrize("mu", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("n", "p"), [*SHAPES, (5, 50)])
def test_eigenvalues_are_lifted(n, p, mu):
    """eig(X'X + mu I) = s^2 + mu >= mu, so cond <= (s_1^2 + mu) / mu, whatever the rank of X."""
    X, y = make(n, p)
    X[:, -1] = X[:, 0]  # X'X is singular
    values = np.linalg.eigvalsh(X.T @ X + mu * np.eye(p))
    s = np.zeros(p)
    s[: min(n, p)] = np.linalg.svd(X, compute_uv=False)
    slack = 1e-14 * p * s[0] ** 2
    np.testing.assert_allclose(values[::-1], s**2 + mu, rtol=0, atol=slack)
    assert values[0] >= mu - slack
    assert values[-1] / values[0] <= (s[0] ** 2 + mu) / (mu - slack)
    model = Ridge(alpha=mu, fit_intercept=False).fit(X, y)  # "any lambda > 0 suffices" (ERR-19)
    assert surefit.verify(model, X, y).ok
    assert model.coef_[0] == pytest.approx(model.coef_[-1], rel=1e-8)  # twins share the weight


@pytest.mark.spec("REG-13")
@pytest.mark.parametrize("mu", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_ridge_is_least_squares_on_augmented_data(n, p, mu):
    """Append the p points sqrt(mu) e_j with target 0: the same solution, to 1e-12."""
    X, y = make(n, p)
    augmented = np.vstack([X, np.sqrt(mu) * np.eye(p)])
    plain = LinearRegression(fit_intercept=False).fit(augmented, np.append(y, np.zeros(p)))
    ridge = Ridge(alpha=mu, fit_intercept=False).fit(X, y)
    scale = np.abs(plain.coef_).max()
    np.testing.assert_allclose(ridge.coef_, plain.coef_, rtol=0, atol=1e-12 * scale)


@pytest.mark.spec("REG-10")
def test_loss_rises_and_norm_falls_with_the_penalty():
    X, y = load_diabetes(return_X_y=True)
    fits = [Ridge(alpha=alpha).fit(X, y) for alpha in np.logspace(-4, 4, 17)]
    losses = np.array([np.mean((y - model.predict(X)) ** 2) for model in fits])
    norms = np.array([np.linalg.norm(model.coef_) for model in fits])
    assert (np.diff(losses) >= 0).all()
    assert (np.diff(norms) <= 0).all()
    assert losses[-1] > 1.5 * losses[0]


@pytest.mark.spec("REG-5")
def test_instability_example_with_a_penalty():
    X, y = [[0.0, 1.0], [0.1, 1.0]], [1.0, -1.0]
    model = Ridge(alpha=0.2, fit_intercept=False).fit(X, y)  # n lambda = 2 * 0.1
    np.testing.assert_allclose(model.coef_, [-0.48673, 0.02212], rtol=0, atol=5e-6)
    unpenalised = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(unpenalised.coef_, [-20.0, 1.0], rtol=1e-12)


# ---------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_one_penalty_per_target(n, p, fit_intercept):
    X, Y = make(n, p, targets=3)
    alphas = np.array([0.01, 1.0, 100.0])
    together = Ridge(alpha=alphas, fit_intercept=fit_intercept).fit(X, Y)
    for k, alpha in enumerate(alphas):
        alone = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, Y[:, k])
        np.testing.assert_allclose(together.coef_[k], alone.coef_, rtol=0, atol=1e-12)
    report = surefit.verify(together, X, Y)
    assert report.ok
    assert "worst of 3 targets" in report["duality gap"].statement
    swapped = copy.deepcopy(together)
    swapped.coef_ = together.coef_[::-1].copy()
    assert not surefit.verify(swapped, X, Y).ok


def test_a_penalty_of_zero_for_one_target():
    X, Y = make(targets=2)
    model = Ridge(alpha=[0.0, 5.0]).fit(X, Y)
    np.testing.assert_allclose(model.coef_[0], LinearRegression().fit(X, Y[:, 0]).coef_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_[1], Ridge(alpha=5.0).fit(X, Y[:, 1]).coef_, rtol=1e-12)
    with pytest.raises(ValueError, match=r"3 != 2.*one per target"):
        Ridge(alpha=[1.0, 2.0, 3.0]).fit(X, Y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_sparse_is_dense(n, p, form, fit_intercept):
    rng = np.random.default_rng(0)
    X, y = make(n, p)
    X = X * (rng.uniform(size=X.shape) < 0.3)
    dense = Ridge(fit_intercept=fit_intercept).fit(X, y)
    sparse = Ridge(fit_intercept=fit_intercept).fit(form(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-12)
    assert sparse.intercept_ == pytest.approx(dense.intercept_, abs=1e-12)
    assert surefit.verify(sparse, form(X), y).ok


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_weights_are_repetitions_and_zero_weights_drop_rows(n, p, positive):
    X, y = make(n, p)
    counts = np.random.default_rng(1).integers(0, 4, size=n)
    weighted = Ridge(positive=positive).fit(X, y, sample_weight=counts)
    repeated = Ridge(positive=positive).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    tolerance = 1e-6 if positive else 1e-11  # coordinate descent ends at a relative gap of 1e-15
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=tolerance)
    assert weighted.certificate_.ok
    if not positive:
        slope_w, slope_b = gradient(weighted, X, y, 1.0, counts)
        assert max(np.abs(slope_w).max(), abs(slope_b)) <= 1e-11


@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_non_negative(fit_intercept, targets):
    """The same as scipy's nnls on augmented data."""
    X, y = make(targets=targets)
    model = Ridge(alpha=2.0, positive=True, fit_intercept=fit_intercept).fit(X, y)
    Xc, Yc = (X - X.mean(axis=0), y - y.mean(axis=0)) if fit_intercept else (X, y)
    augmented = np.vstack([Xc, np.sqrt(2.0) * np.eye(5)])
    for k, target in enumerate(Yc.reshape(len(Yc), -1).T):
        expected, _ = scipy.optimize.nnls(augmented, np.append(target, np.zeros(5)))
        np.testing.assert_allclose(np.atleast_2d(model.coef_)[k], expected, rtol=0, atol=1e-6)
        assert (expected == 0).any()
    assert surefit.verify(model, X, y).ok


def test_float32_stays_float32():
    X, y = make()
    model = Ridge().fit(X.astype(np.float32), y.astype(np.float32))
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, y).coef_, rtol=1e-5)
    assert model.certificate_.ok


def test_every_solver_name_gives_the_same_answer():
    X, y = make()
    expected = Ridge().fit(X, y).coef_
    for solver in ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"):
        np.testing.assert_array_equal(Ridge(solver=solver).fit(X, y).coef_, expected)
    with pytest.raises(ValueError, match="solver='auto'"):
        Ridge(solver="lbfgs").fit(X, y)
    with pytest.raises(ValueError, match="positive=False"):
        Ridge(solver="svd", positive=True).fit(X, y)


def test_ridge_regression_function():
    X, y = make()
    expected = Ridge(alpha=2.0, fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(ridge_regression(X, y, 2.0), expected.coef_)
    coef, intercept = ridge_regression(X, y, 2.0, return_intercept=True)
    model = Ridge(alpha=2.0).fit(X, y)
    np.testing.assert_array_equal(coef, model.coef_)
    assert intercept == model.intercept_


def test_large_means_and_constant_columns():
    X, y = make()
    near = Ridge(alpha=1e-2).fit(X, y)
    wide = np.column_stack([X, np.full(len(X), 0.1)])
    model = Ridge(alpha=1e-2).fit(wide, y)
    np.testing.assert_allclose(model.coef_[:5], near.coef_, rtol=1e-12)
    assert model.coef_[5] == pytest.approx(0.0, abs=1e-12)
    X = np.round(X, 6)
    far, near = Ridge(alpha=1e-2).fit(X + 1e6, y), Ridge(alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-8)  # X + 1e6 rounds X by 1e-10


# ---------------------------------------------------------------------------- the claims


@pytest.mark.spec("REG-11")
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_the_gap_is_the_textbook_formula(n, p):
    """P(w) - D(theta) with the dual -||theta||^2/2 - theta'y - ||X'theta||^2/(2 alpha), from scratch."""
    X, y = make(n, p)
    X, y = X - X.mean(axis=0), y - y.mean()
    model = Ridge(alpha=3.0, fit_intercept=False).fit(X, y)
    for factor in (1.0, 1.01, 0.5):  # optimal, near, far
        moved = copy.deepcopy(model)
        moved.coef_ = factor * model.coef_
        e = y - X @ moved.coef_
        primal = 0.5 * e @ e + 1.5 * moved.coef_ @ moved.coef_
        theta = -e
        v = X.T @ theta
        dual = -0.5 * theta @ theta - theta @ y - v @ v / 6.0
        claim = surefit.verify(moved, X, y)["duality gap"]
        expected = primal - max(
            dual, 0.0
        )  # theta = 0 is a dual point too: no objective is negative
        assert claim.observed == pytest.approx(expected, rel=1e-9, abs=1e-11)
        assert claim.status is (Status.HOLDS if factor == 1.0 else Status.FAILS)


@pytest.mark.spec("REG-11")
def test_the_claims_and_how_each_fails():
    X, y = make()
    model = Ridge(alpha=3.0).fit(X, y)
    report = surefit.verify(model, X, y)
    assert [claim.name for claim in report.claims] == ["duality gap", "normal equations", "data"]
    assert report.ok
    assert "within" in report["duality gap"].statement
    nudged = copy.deepcopy(model)
    nudged.coef_ = model.coef_ * (1 + 1e-9)
    nudged.intercept_ = y.mean() - X.mean(axis=0) @ nudged.coef_
    report = surefit.verify(nudged, X, y)
    assert report["duality gap"].status is Status.HOLDS  # 1e-18 of the objective: optimal to tol,
    assert report["normal equations"].status is Status.FAILS  # but not to rounding
    nudged.coef_ = model.coef_ * 1.05
    report = surefit.verify(nudged, X, y)
    assert {claim.name for claim in report.failed} == {"duality gap", "normal equations"}
    other = copy.deepcopy(model).set_params(alpha=4.0)  # another problem
    assert not surefit.verify(other, X, y).ok


@pytest.mark.spec("REG-11")
def test_the_stated_distance_to_the_optimum_is_true():
    """Strong convexity: ||w - w*|| <= sqrt(2 gap / alpha), the number in the statement."""
    X, y = make()
    model = Ridge(alpha=3.0).fit(X, y)
    best = model.coef_.copy()
    for size in (1e-4, 1e-2, 1.0):
        moved = copy.deepcopy(model)
        moved.coef_ = best + size * np.random.default_rng(0).normal(size=5)
        claim = surefit.verify(moved, X, y)["duality gap"]
        stated = float(claim.statement.split("coefficients are within ")[1].split()[0])
        assert np.linalg.norm(moved.coef_ - best) <= 1.05 * stated  # two digits are quoted


def test_without_a_penalty_the_claims_are_those_of_least_squares():
    X, y = make()
    report = surefit.verify(Ridge(alpha=0.0).fit(X, y), X, y)
    assert {claim.name for claim in report.claims} == {"normal equations", "coefficients", "data"}
    assert report.ok


def test_a_positive_fit_says_how_it_ended():
    """One sweep over correlated columns is not convergence, on any of the targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 0.05 * rng.normal(size=(40, 6))
    Y = np.column_stack([X @ np.arange(6.0) + rng.normal(size=40), np.zeros(40)])
    with pytest.warns(surefit.CertificateWarning, match="maximum number of iterations"):
        model = Ridge(alpha=1e-3, positive=True, max_iter=1, tol=1e-10).fit(X, Y)
    assert model.certificate_.stopped == Stop.MAX_ITER.value
    assert Ridge(alpha=1e-3, positive=True).fit(X, Y).certificate_.ok
