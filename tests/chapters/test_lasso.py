"""Lasso and elastic net: optimality conditions, the gap from scratch, paths, claims (REG-10, REG-14)."""

import copy

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.datasets import load_diabetes

import surefit
from surefit import CertificateWarning, Status
from surefit.linear_model import ElasticNet, Lasso, LinearRegression, Ridge, enet_path, lasso_path


def make(n=60, p=12, *, seed=0, offset=1.0):
    """Correlated columns, three of them in use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1)) + offset * rng.normal(size=p)
    w = np.zeros(p)
    w[:3] = [2.0, -1.0, 0.5]
    return X, 3.0 + X @ w + rng.normal(size=n)


def centred(X, y, weights=None):
    return X - np.average(X, axis=0, weights=weights), y - np.average(y, weights=weights)


def objective(w, X, y, alpha, ratio=1.0, weights=None):
    """Of the centred problem, written out again."""
    s = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    e = y - X @ w
    return 0.5 * s @ e**2 + alpha * (ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * w @ w)


def gap_from_scratch(w, X, y, alpha, ratio=1.0, weights=None, positive=False):
    """Primal minus dual of the (centred) elastic net as a Lasso on data with sqrt(l2) I appended.

    The residual e is scaled until |X'e s - l2 w| <= l1; the dual value is t e'y s - t^2 (e'e s + l2 w'w) / 2.
    """
    s = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    l1, l2 = alpha * ratio, alpha * (1 - ratio)
    e = y - X @ w
    slack = X.T @ (s * e) - l2 * w
    largest = (slack if positive else np.abs(slack)).max()
    t = min(1.0, l1 / largest)
    dual = t * s @ (e * y) - 0.5 * t**2 * (s @ e**2 + l2 * w @ w)
    return objective(w, X, y, alpha, ratio, weights) - dual


# ---------------------------------------------------------------------------- REG-14


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3])
@pytest.mark.parametrize("shape", [(60, 12), (20, 50)])
def test_optimality_conditions(shape, alpha, fit_intercept):
    """|x_j'e| / N <= alpha, with equality and the sign of w_j on the support."""
    X, y = make(*shape)
    model = Lasso(alpha=alpha, fit_intercept=fit_intercept, tol=1e-14, max_iter=100_000).fit(X, y)
    Xc, yc = centred(X, y) if fit_intercept else (X, y)
    correlation = Xc.T @ (yc - Xc @ model.coef_) / len(y)
    # A relative gap of 1e-14 leaves the gradient right to about its square root.
    slack = 1e-6 * np.abs(Xc.T @ yc).max() / len(y)
    assert np.abs(correlation).max() <= alpha + slack
    used = model.coef_ != 0
    np.testing.assert_allclose(
        correlation[used], alpha * np.sign(model.coef_[used]), rtol=0, atol=slack
    )
    assert used.any()
    assert model.certificate_.ok


@pytest.mark.spec("REG-14")
def test_zero_exactly_from_the_largest_useful_penalty():
    """w = 0 iff alpha >= ||X'(y - ybar)||_inf / N."""
    X, y = make()
    Xc, yc = centred(X, y)
    largest = np.abs(Xc.T @ yc).max() / len(y)
    for factor in (1.0 + 1e-12, 1.5, 100.0):
        model = Lasso(alpha=factor * largest).fit(X, y)
        np.testing.assert_array_equal(model.coef_, 0.0)
        assert model.intercept_ == pytest.approx(y.mean())
        assert surefit.verify(model, X, y).ok
    for factor in (0.999, 0.5):
        model = Lasso(alpha=factor * largest, tol=1e-12).fit(X, y)
        assert np.count_nonzero(model.coef_) >= 1
    alphas, coefs, _ = lasso_path(Xc, yc, alphas=10)
    assert alphas[0] == pytest.approx(largest, rel=1e-13)
    np.testing.assert_allclose(coefs[:, 0], 0.0, atol=1e-12)
    assert coefs[:, 1].any()


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("ratio", [1.0, 0.7, 0.1])
@pytest.mark.parametrize("alpha", [0.3, 0.01])
def test_equals_scikit_learn(alpha, ratio):
    for X, y in (make(), load_diabetes(return_X_y=True), make(30, 60)):
        ours = ElasticNet(alpha=alpha, l1_ratio=ratio, tol=1e-13, max_iter=100_000).fit(X, y)
        theirs = sklearn.linear_model.ElasticNet(
            alpha=alpha, l1_ratio=ratio, tol=1e-13, max_iter=1_000_000
        ).fit(X, y)
        scale = np.abs(theirs.coef_).max()
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-6 * scale)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6 * scale)
        Xc, yc = centred(X, y)
        mine = objective(ours.coef_, Xc, yc, alpha, ratio)
        assert mine <= objective(theirs.coef_, Xc, yc, alpha, ratio) * (1 + 1e-13)


@pytest.mark.spec("REG-14")
def test_the_gap_goes_to_zero_and_sparsity_comes_from_the_corners():
    """The observed gap falls below every tol asked for; ridge at the same loss has no zeros."""
    X, y = load_diabetes(return_X_y=True)
    null = 0.5 * np.var(y)
    for tol in (1e-2, 1e-6, 1e-10, 1e-14):
        model = Lasso(alpha=0.5, tol=tol).fit(X, y)
        claim = model.certificate_["duality gap"]
        assert claim.status is Status.HOLDS
        assert claim.observed <= max(tol, 1e-15) * null
    assert np.count_nonzero(model.coef_) == 4
    ridge = Ridge(alpha=5.0).fit(X, y)
    assert np.count_nonzero(ridge.coef_) == 10


@pytest.mark.spec("REG-14")
def test_soft_threshold_on_an_orthogonal_design():
    """X'X = N I: the solution is the soft threshold of X'y / N, in closed form."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(40, 6)))[0] * np.sqrt(40)
    y = rng.normal(size=40)
    z = Q.T @ y / 40
    alpha = float(np.median(np.abs(z)))
    model = Lasso(alpha=alpha, fit_intercept=False, tol=1e-15).fit(Q, y)
    expected = np.sign(z) * np.maximum(np.abs(z) - alpha, 0.0)
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-13)
    net = ElasticNet(alpha=alpha, l1_ratio=0.5, fit_intercept=False, tol=1e-15).fit(Q, y)
    expected = np.sign(z) * np.maximum(np.abs(z) - alpha / 2, 0.0) / (1 + alpha / 2)
    np.testing.assert_allclose(net.coef_, expected, rtol=0, atol=1e-8)


@pytest.mark.spec("REG-10")
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_loss_rises_and_penalty_falls_along_the_path(ratio):
    """Training loss is non-decreasing and Omega non-increasing in lambda."""
    X, y = load_diabetes(return_X_y=True)
    Xc, yc = centred(X, y)
    alphas, coefs, _ = enet_path(Xc, yc, l1_ratio=ratio, alphas=30, tol=1e-13)
    losses = np.array([0.5 * np.mean((yc - Xc @ w) ** 2) for w in coefs.T])
    norms = np.array([ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * w @ w for w in coefs.T])
    assert (np.diff(alphas) < 0).all()
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()  # alphas fall along the path
    assert (np.diff(norms) >= -1e-9 * norms[-1]).all()
    assert losses[-1] < 0.6 * losses[0]


# ---------------------------------------------------------------------------- paths, starts, orders


def test_path_equals_separate_fits():
    X, y = make()
    Xc, yc = centred(X, y)
    alphas, coefs, gaps, sweeps = enet_path(
        Xc, yc, l1_ratio=0.8, alphas=[0.5, 0.1, 0.02], tol=1e-13, return_n_iter=True
    )
    np.testing.assert_array_equal(alphas, [0.5, 0.1, 0.02])
    assert len(sweeps) == 3
    for k, alpha in enumerate(alphas):
        alone = ElasticNet(alpha=alpha, l1_ratio=0.8, tol=1e-13).fit(X, y)
        np.testing.assert_allclose(coefs[:, k], alone.coef_, rtol=0, atol=1e-6)
        assert gaps[k] <= 1e-13 * 0.5 * np.mean(yc**2)


def test_path_that_does_not_converge_warns():
    X, y = make(30, 60)
    with pytest.warns(CertificateWarning, match=r"did not converge.*max_iter.*alpha=0.001"):
        lasso_path(X, y, alphas=[1e-3], max_iter=1, tol=1e-12)


def test_warm_start_needs_fewer_sweeps_and_changes_nothing():
    X, y = make(100, 200)
    cold = Lasso(alpha=0.02, tol=1e-10).fit(X, y)
    warm = Lasso(alpha=0.021, tol=1e-10, warm_start=True).fit(X, y)
    warm.set_params(alpha=0.02).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=0, atol=1e-4)
    assert warm.certificate_.ok
    again = warm.fit(X, y)  # from the solution itself there is nothing to do
    assert again.n_iter_ <= 1


def test_random_selection():
    X, y = make()
    cyclic = Lasso(alpha=0.05, tol=1e-13).fit(X, y)
    fits = [
        Lasso(alpha=0.05, tol=1e-13, selection="random", random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)  # the same seed, the same bits
    for model in fits:
        np.testing.assert_allclose(model.coef_, cyclic.coef_, rtol=0, atol=1e-6)
        assert model.certificate_.ok


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_non_negative(ratio, fit_intercept):
    """Against scipy's bounded minimiser; every coefficient >= 0, some at the bound."""
    X, y = make()
    model = ElasticNet(
        alpha=0.05, l1_ratio=ratio, positive=True, fit_intercept=fit_intercept, tol=1e-13
    ).fit(X, y)
    Xc, yc = centred(X, y) if fit_intercept else (X, y)
    found = scipy.optimize.minimize(
        objective,
        np.full(12, 0.1),
        args=(Xc, yc, 0.05, ratio),
        bounds=[(0, None)] * 12,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 10**6},
    )
    assert (model.coef_ >= 0).all()
    assert (model.coef_ == 0).any()
    assert objective(model.coef_, Xc, yc, 0.05, ratio) <= found.fun * (1 + 1e-12)
    np.testing.assert_allclose(model.coef_, found.x, rtol=0, atol=1e-4)
    assert surefit.verify(model, X, y).ok
    broken = copy.deepcopy(model)
    broken.coef_[np.flatnonzero(model.coef_ == 0)[0]] = -1e-3
    assert not surefit.verify(broken, X, y).ok


# ---------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
def test_sparse_is_dense_and_is_centred_without_filling(form, fit_intercept):
    rng = np.random.default_rng(0)
    X, y = make(80, 30)
    X = X * (rng.uniform(size=X.shape) < 0.3)
    dense = Lasso(alpha=0.05, fit_intercept=fit_intercept, tol=1e-13).fit(X, y)
    sparse = Lasso(alpha=0.05, fit_intercept=fit_intercept, tol=1e-13).fit(form(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-7)
    assert sparse.intercept_ == pytest.approx(dense.intercept_, abs=1e-6)
    assert surefit.verify(sparse, X, y).ok
    assert sp.issparse(sparse.sparse_coef_)
    if fit_intercept:  # centring matters here
        assert (
            np.abs(Lasso(alpha=0.05, fit_intercept=False).fit(X, y).coef_ - dense.coef_).max()
            > 0.01
        )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_weights_are_repetitions_and_only_proportions_matter(ratio, form):
    X, y = make()
    counts = np.random.default_rng(1).integers(0, 4, size=len(y))
    options = {"alpha": 0.05, "l1_ratio": ratio, "tol": 1e-13}
    weighted = ElasticNet(**options).fit(form(X), y, sample_weight=counts)
    tripled = ElasticNet(**options).fit(form(X), y, sample_weight=3.0 * counts)
    repeated = ElasticNet(**options).fit(form(np.repeat(X, counts, axis=0)), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(weighted.coef_, tripled.coef_, rtol=0, atol=1e-6)
    assert np.abs(weighted.coef_ - ElasticNet(**options).fit(X, y).coef_).max() > 1e-2
    assert surefit.verify(weighted, X, y, sample_weight=counts).ok


def test_several_targets_are_separate_problems():
    X, y = make()
    Y = np.column_stack([y, X[:, 4] - y])
    together = Lasso(alpha=0.05, tol=1e-12).fit(X, Y)
    for k in range(2):
        alone = Lasso(alpha=0.05, tol=1e-12).fit(X, Y[:, k])
        np.testing.assert_allclose(together.coef_[k], alone.coef_, rtol=0, atol=1e-6)
    assert len(together.n_iter_) == 2
    assert "worst of 2 targets" in together.certificate_["duality gap"].statement
    broken = copy.deepcopy(together)
    broken.coef_[1] *= 1.05
    report = surefit.verify(broken, X, Y)
    assert not report.ok
    assert "(number 1)" in report["duality gap"].statement


def test_float32_stays_float32():
    X, y = make()
    model = Lasso(alpha=0.05).fit(X.astype(np.float32), y.astype(np.float32))
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(
        model.coef_, Lasso(alpha=0.05, tol=1e-12).fit(X, y).coef_, rtol=0, atol=0.05
    )
    assert model.certificate_.ok


def test_a_constant_column_stays_out():
    X, y = make()
    wide = np.column_stack([X, np.full(len(X), 0.1)])
    for form in (np.asarray, sp.csr_array):
        model = Lasso(alpha=1e-4, tol=1e-10).fit(form(wide), y)
        assert model.coef_[-1] == 0.0
        assert model.certificate_.ok


@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_large_means(offset):
    """X + offset with an intercept is the same problem; X itself is rounded by eps * offset."""
    X, y = make(offset=0.0)
    X = np.round(X, 6)
    near = Lasso(alpha=0.05, tol=1e-8).fit(X, y)
    far = Lasso(alpha=0.05, tol=1e-8).fit(X + offset, y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=0, atol=1e-4)  # sqrt(tol)
    assert surefit.verify(far, X + offset, y).ok


def test_between_ridge_and_lasso():
    """l1_ratio=0 is ridge with alpha n; alpha=0 is least squares, and says to use that."""
    X, y = make()
    net = ElasticNet(alpha=0.3, l1_ratio=0.0, tol=1e-14, max_iter=10_000).fit(X, y)
    ridge = Ridge(alpha=0.3 * len(y)).fit(X, y)
    np.testing.assert_allclose(net.coef_, ridge.coef_, rtol=0, atol=1e-6)
    with pytest.warns(UserWarning, match="LinearRegression"):
        free = ElasticNet(alpha=0.0, tol=1e-14, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(free.coef_, LinearRegression().fit(X, y).coef_, rtol=0, atol=1e-5)


def test_a_given_gram_matrix_is_checked():
    X, y = make()
    Xc, yc = centred(X, y)
    plain = Lasso(alpha=0.05, fit_intercept=False).fit(Xc, yc)
    given = Lasso(alpha=0.05, fit_intercept=False, precompute=Xc.T @ Xc).fit(Xc, yc)
    np.testing.assert_array_equal(given.coef_, plain.coef_)
    with pytest.raises(ValueError, match="did not pass validation"):
        Lasso(alpha=0.05, fit_intercept=False, precompute=2.0 * Xc.T @ Xc).fit(Xc, yc)
    with pytest.raises(ValueError, match=r"precompute has shape \(3, 3\)"):
        Lasso(alpha=0.05, fit_intercept=False, precompute=np.eye(3)).fit(Xc, yc)


# ---------------------------------------------------------------------------- the claims


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.1])
def test_the_gap_is_the_textbook_formula(ratio, weighted, positive):
    """The observed number, rebuilt here from the definition, at the optimum and away from it."""
    X, y = make()
    weights = np.random.default_rng(3).uniform(0.2, 3.0, size=len(y)) if weighted else None
    model = ElasticNet(alpha=0.05, l1_ratio=ratio, positive=positive, tol=1e-8)
    model.fit(X, y, sample_weight=weights)
    Xc, yc = centred(X, y, weights)
    for factor in (1.0, 1.01, 0.9):
        moved = copy.deepcopy(model)
        moved.coef_ = factor * model.coef_
        moved.intercept_ = np.average(y - X @ moved.coef_, weights=weights)
        claim = surefit.verify(moved, X, y, sample_weight=weights)["duality gap"]
        mine = gap_from_scratch(moved.coef_, Xc, yc, 0.05, ratio, weights, positive)
        # other dual points may be better than this one, none may be worse
        assert claim.observed <= mine * (1 + 1e-6) + 1e-13
        if ratio == 1.0:
            assert claim.observed == pytest.approx(mine, rel=1e-6, abs=1e-13)
        best = objective(model.coef_, Xc, yc, 0.05, ratio, weights)
        here = objective(moved.coef_, Xc, yc, 0.05, ratio, weights)
        assert claim.observed >= here - best - 1e-12  # and it bounds what could be gained
        assert claim.status is (Status.HOLDS if factor == 1.0 else Status.FAILS)


@pytest.mark.spec("REG-14")
def test_a_failed_fit_warns_and_says_what_to_do():
    X, y = make(30, 60)
    with pytest.warns(CertificateWarning, match=r"duality gap.*needed <=[\s\S]*max_iter") as caught:
        model = Lasso(alpha=1e-3, max_iter=1, tol=1e-10).fit(X, y)
    assert len(caught) == 1
    assert not model.certificate_.ok
    assert model.n_iter_ == 1
    claim = model.certificate_["duality gap"]
    assert claim.observed > claim.bound
    assert not surefit.verify(model, X, y).ok
    # the number is true: the optimum is within it
    best = Lasso(alpha=1e-3, max_iter=100_000, tol=1e-10).fit(X, y)
    Xc, yc = centred(X, y)
    excess = objective(model.coef_, Xc, yc, 1e-3) - objective(best.coef_, Xc, yc, 1e-3)
    assert 0 < excess <= claim.observed
    with pytest.raises(surefit.CertificateError, match="duality gap"):
        model.certificate_.raise_if_failed()


@pytest.mark.spec("REG-14")
def test_the_zeros_claim():
    """Coefficients that are zero in every optimal solution, and one that is not and should be."""
    X, y = make()
    model = Lasso(alpha=0.1, tol=1e-12, certify="full").fit(X, y)
    claim = model.certificate_["zeros"]
    zeros = np.flatnonzero(model.coef_ == 0)
    assert claim.status is Status.HOLDS
    assert (
        f"{len(zeros)} of the {len(zeros)} zero coefficients are zero in every" in claim.statement
    )
    assert "zeros" not in Lasso(alpha=0.1).fit(X, y).certificate_
    nudged = copy.deepcopy(model).set_params(tol=1.0)  # so that the gap alone would pass
    nudged.coef_[zeros[0]] = 1e-9
    report = surefit.verify(nudged, X, y)
    assert report["duality gap"].status is Status.HOLDS
    assert report["zeros"].status is Status.FAILS
    assert "1 non-zero ones should be" in report["zeros"].statement


@pytest.mark.spec("REG-14")
def test_twins_may_share_their_weight_and_the_certificate_does_not_mind():
    """A duplicated column: the optimum is not unique, the objective is, and both solutions certify."""
    X, y = make()
    twins = np.column_stack([X, X[:, 0]])
    model = Lasso(alpha=0.05, tol=1e-12).fit(twins, y)
    assert surefit.verify(model, twins, y).ok
    other = copy.deepcopy(model)
    total = model.coef_[0] + model.coef_[-1]
    other.coef_[0], other.coef_[-1] = 0.3 * total, 0.7 * total
    assert surefit.verify(other, twins, y)["duality gap"].status is Status.HOLDS
    other.coef_[0] += 1e-3  # but the sum is determined
    assert surefit.verify(other, twins, y)["duality gap"].status is Status.FAILS
