"""Kernel ridge regression: scikit-learn's problem by a factor, by iterations and on centres."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge as Theirs
from sklearn.model_selection import GridSearchCV
from tests.data import load

import surefit
from surefit import CertificateWarning, Status
from surefit.kernel_ridge import KernelRidge
from surefit.kernels import Gaussian, Linear, Polynomial, Precomputed
from surefit.linear_model import Ridge
from surefit.solvers._symmetric import SymmetricPanels
from surefit.solvers.kernel_ridge_path import KernelRidgePath
from surefit.solvers.nystrom import choose_centres
from surefit.solvers.pivoted_cholesky import pivoted_cholesky

SOLVERS = ["cholesky", "cg", "nystrom"]


def table(n=150, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2 % p] + 0.1 * rng.normal(size=n)


def fitted(solver, **given):
    n_components = 10_000 if solver == "nystrom" else None  # all rows as centres
    return KernelRidge(solver=solver, n_components=n_components, random_state=0, **given)


def tolerance(solver):
    """A factor is right to rounding; tol = 1e-10 of y times 1 / sqrt(alpha) otherwise."""
    return 1e-11 if solver == "cholesky" else 1e-8


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "linear"},
        {"kernel": "rbf", "alpha": 0.1},
        {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 2.0},
        {"kernel": "laplacian", "gamma": 0.2},
        {"kernel": "cosine"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_solver_agrees_with_scikit_learn(solver, given, weighted):
    X, y = table()
    weights = (
        np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float) if weighted else None
    )
    model = fitted(solver, tol=1e-10, **given).fit(X, y, sample_weight=weights)
    assert model.certificate_.ok
    theirs = Theirs(**given).fit(X, y, sample_weight=weights)
    fresh = np.random.default_rng(2).normal(size=(20, X.shape[1]))
    np.testing.assert_allclose(model.predict(fresh), theirs.predict(fresh), atol=tolerance(solver))
    if solver != "nystrom" and given["kernel"] != "linear":  # a linear kernel has many such a
        np.testing.assert_allclose(model.dual_coef_, theirs.dual_coef_, atol=10 * tolerance(solver))


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_targets_and_penalties(solver):
    X, y = table()
    Y = np.column_stack([y, y**2, np.zeros_like(y)])
    alphas = [0.1, 2.0, 1.0]
    model = fitted(solver, alpha=alphas, kernel="rbf", tol=1e-10).fit(X, Y)
    together = Theirs(alpha=alphas, kernel="rbf").fit(X, Y)
    assert model.dual_coef_.shape[1] == 3
    np.testing.assert_allclose(model.predict(X), together.predict(X), atol=tolerance(solver))
    for t, alpha in enumerate(alphas):
        alone = fitted(solver, alpha=alpha, kernel="rbf", tol=1e-10).fit(X, Y[:, t])
        assert alone.dual_coef_.ndim == 1
        np.testing.assert_allclose(alone.predict(X), model.predict(X)[:, t], atol=tolerance(solver))


@pytest.mark.spec("KER-7")
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_a_linear_kernel_is_ridge_regression(container):
    X, y = table()
    weights = np.random.default_rng(1).uniform(size=len(y))
    ridge = Ridge(alpha=0.8, fit_intercept=False, tol=1e-12).fit(X, y, sample_weight=weights)
    model = KernelRidge(alpha=0.8).fit(container(X), y, sample_weight=weights)
    np.testing.assert_allclose(X.T @ model.dual_coef_, ridge.coef_, atol=1e-10)
    np.testing.assert_allclose(model.predict(container(X)), ridge.predict(X), atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_are_repetitions(solver):
    X, y = table(60)
    counts = np.random.default_rng(1).integers(0, 4, size=60)
    weighted = fitted(solver, kernel="rbf", tol=1e-11).fit(X, y, sample_weight=counts)
    repeated = fitted(solver, kernel="rbf", tol=1e-11).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_tensors(solver):
    torch = pytest.importorskip("torch")
    X, y = table()
    weights = np.random.default_rng(1).uniform(size=len(y))
    model = fitted(solver, kernel="rbf", alpha=0.1, tol=1e-10).fit(X, y, sample_weight=weights)
    tensor = fitted(solver, kernel="rbf", alpha=0.1, tol=1e-10, certify="full")
    tensor.fit(torch.as_tensor(X), torch.as_tensor(y), sample_weight=torch.as_tensor(weights))
    assert isinstance(tensor.dual_coef_, torch.Tensor)
    assert tensor.certificate_.ok
    assert tensor.certificate_.data_id == model.certificate_.data_id
    np.testing.assert_allclose(tensor.predict(torch.as_tensor(X)), model.predict(X), atol=1e-8)
    np.testing.assert_allclose(tensor.predict(X), model.predict(X), atol=1e-8)
    np.testing.assert_allclose(model.predict(torch.as_tensor(X)), model.predict(X), atol=1e-12)
    half = fitted(solver, kernel="rbf", alpha=0.1).fit(torch.as_tensor(X).float(), y)
    assert half.dual_coef_.dtype == torch.float32
    assert half.predict(torch.as_tensor(X).float()).dtype == torch.float32


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_is_kept(solver):
    X, y = table()
    model = fitted(solver, kernel="rbf", alpha=0.1).fit(X.astype(np.float32), y)
    assert model.dual_coef_.dtype == model.X_fit_.dtype == np.float32
    assert model.predict(X.astype(np.float32)).dtype == np.float32
    assert model.certificate_.ok
    theirs = Theirs(kernel="rbf", alpha=0.1).fit(X, y)
    # 150 coefficients of size 1, each rounded
    np.testing.assert_allclose(model.predict(X.astype(np.float32)), theirs.predict(X), atol=2e-4)


def test_a_precomputed_matrix():
    X, y = table()
    kernel = Gaussian(0.3)
    K = kernel(X)
    model = KernelRidge(kernel="precomputed", alpha=0.1).fit(K, y)
    assert model.certificate_["positive semi-definite"].status is Status.UNDECIDED
    report = surefit.verify(model, K, y)
    assert report.ok
    assert report["positive semi-definite"].status is Status.HOLDS
    assert report["duality gap"].status is Status.HOLDS
    rows = KernelRidge(kernel=kernel, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, rows.dual_coef_, rtol=1e-9, atol=1e-12)
    by_object = KernelRidge(kernel=Precomputed(), alpha=0.1, solver="cg").fit(K, y)
    np.testing.assert_allclose(by_object.predict(K), model.predict(K), atol=1e-7)


def test_a_matrix_that_is_no_kernel_is_shown():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    model = KernelRidge(kernel="precomputed", alpha=2.0).fit(K, [1.0, 0.0])
    report = surefit.verify(model, K, [1.0, 0.0])
    assert report["positive semi-definite"].status is Status.FAILS
    assert "-1" in report["positive semi-definite"].statement
    assert report["duality gap"].status is Status.UNDECIDED
    np.testing.assert_allclose((K + 2.0 * np.eye(2)) @ model.dual_coef_, [1.0, 0.0], atol=1e-14)
    with pytest.warns(UserWarning, match="Singular matrix"), warnings.catch_warnings():
        KernelRidge(kernel="precomputed", alpha=0.5).fit(K, [1.0, 0.0])  # -1 + 0.5 < 0
    with pytest.warns(CertificateWarning, match="not a Gram matrix"):
        KernelRidge(kernel="precomputed", alpha=2.0, certify="full").fit(K, [1.0, 0.0])


def test_no_penalty():
    """alpha = 0 interpolates where K is regular, and is least squares where it is not."""
    X, y = table(40)
    model = KernelRidge(kernel="laplacian", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-10)
    assert model.certificate_["normal equations"].status is Status.HOLDS
    with pytest.warns(UserWarning, match="Singular matrix in solving dual problem"):
        singular = KernelRidge(alpha=0.0).fit(X, y)
    best = np.linalg.lstsq(X, y)[0]
    np.testing.assert_allclose(singular.predict(X), X @ best, atol=1e-10)
    assert singular.certificate_.ok
    singular.dual_coef_ = singular.dual_coef_ * 1.001
    assert not surefit.verify(singular, X, y, tol=1e-10).ok


def test_the_residual_bounds_the_distances():
    """Stop early: the true distances are below what the certificate says, and not far below."""
    X, y = table(300)
    alpha = 0.05
    exact = KernelRidge(kernel="rbf", alpha=alpha).fit(X, y)
    with pytest.warns(CertificateWarning, match="residual"):
        rough = KernelRidge(kernel="rbf", alpha=alpha, solver="cg", max_iter=4, random_state=0).fit(
            X, y
        )
    claim = rough.certificate_["residual"]
    assert claim.status is Status.FAILS
    length = claim.observed * np.linalg.norm(y)
    apart = np.linalg.norm(rough.dual_coef_ - exact.dual_coef_)
    assert apart <= length / alpha
    fresh = np.random.default_rng(3).normal(size=(200, 4))
    differences = np.abs(rough.predict(fresh) - exact.predict(fresh))
    assert differences.max() <= length / np.sqrt(alpha)
    gap = rough.certificate_["duality gap"]
    assert gap.observed == pytest.approx(length**2, rel=1e-6)


def test_centres_say_how_far_they_are_from_all_rows():
    X, y = table(400)
    whole = KernelRidge(kernel="rbf", alpha=0.1).fit(X, y)

    def objective(model):
        K = model.kernel_(model.X_fit_)
        return np.sum((y - model.predict(X)) ** 2) + 0.1 * model.dual_coef_ @ K @ model.dual_coef_

    gaps = []
    for count in (20, 80, 200):
        model = KernelRidge(kernel="rbf", alpha=0.1, n_components=count, random_state=0).fit(X, y)
        assert model.solver_ == "nystrom"
        assert model.X_fit_.shape == (count, 4)
        assert model.certificate_["duality gap"].status is Status.UNDECIDED
        claim = surefit.verify(model, X, y)["duality gap"]
        excess = objective(model) - objective(whole)
        assert 0.0 <= excess <= claim.observed  # a bound, of the right size:
        assert claim.observed <= 20.0 * excess
        apart = np.sqrt(np.mean((model.predict(X) - whole.predict(X)) ** 2))
        assert apart <= np.sqrt(claim.observed / len(y))
        gaps.append(claim.observed)
    assert gaps[0] > gaps[1] > gaps[2]
    strict = KernelRidge(kernel="rbf", alpha=0.1, n_components=20, max_gap=1e-3, random_state=0)
    report = surefit.verify(strict.fit(X, y), X, y)
    assert report["duality gap"].status is Status.FAILS


def test_auto_chooses_by_size_and_falls_back():
    X, y = table(2600, p=2, seed=1)
    model = KernelRidge(kernel="rbf", alpha=1.0, random_state=0, certify=False).fit(X, y)
    assert model.solver_ == "cg"
    few = KernelRidge(kernel="rbf", alpha=1.0, random_state=0, memory_limit=1e6, certify=False).fit(
        X, y
    )
    assert few.solver_ == "nystrom"
    assert len(few.X_fit_) == int(4 * np.sqrt(2600))
    assert KernelRidge(kernel="rbf").fit(X[:100], y[:100]).solver_ == "cholesky"
    assert KernelRidge(kernel="sigmoid", gamma=0.1, alpha=3000.0).fit(X, y).solver_ == "cholesky"
    streamed = KernelRidge(
        kernel="rbf", solver="cg", random_state=0, memory_limit=1e6, certify=False
    ).fit(X, y)
    np.testing.assert_allclose(streamed.predict(X[:9]), model.predict(X[:9]), atol=1e-7)


def test_a_hard_problem_falls_back_to_the_factor(monkeypatch):
    """Tiny alpha on a slowly decaying kernel: "auto" gives up iterating and is exact all the same."""
    monkeypatch.setattr("surefit._kernel_ridge_fit._DIRECT", 100)
    X, y = table(400, p=8)
    model = KernelRidge(kernel="laplacian", alpha=1e-7, random_state=0).fit(X, y)
    assert model.solver_ == "cholesky"
    assert model.certificate_.ok


def test_randomly_pivoted_cholesky_reduces_the_trace():
    X, _ = table(500, p=2)
    bound = Gaussian(0.5).on(X)
    rng = np.random.default_rng(0)
    F, left, pivots = pivoted_cholesky(bound, np.ones(500), None, 100, rng, 1e-9)
    K = bound.gram()
    np.testing.assert_allclose(left, (K - F @ F.T).diagonal(), atol=1e-5)  # up to the jitter
    assert np.linalg.eigvalsh(K - F @ F.T).min() > -1e-6
    assert left.sum() < 1e-3 * 500
    assert len(set(pivots)) == F.shape[1]
    uniform = np.sort(rng.choice(500, len(pivots), replace=False))
    nystrom = (
        K[:, uniform] @ np.linalg.pinv(K[np.ix_(uniform, uniform)], hermitian=True) @ K[uniform]
    )
    assert left.sum() < (K - nystrom).trace()


@pytest.mark.parametrize("n", [1, 7, 256, 777])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Gaussian(0.3) + Linear()])
def test_a_triangle_serves_for_the_whole_matrix(n, kernel):
    X, _ = table(n)
    V = np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32)
    expected = kernel(X) @ V.astype(np.float64)
    found = SymmetricPanels(kernel.on(X, np.float32)) @ V
    assert found.dtype == np.float64
    # sums of n products, each right to float32
    np.testing.assert_allclose(
        found, expected, atol=1e-6 * np.sqrt(n) * np.abs(kernel(X)).max() * 4
    )


def test_centres_are_distinct_rows_of_positive_weight():
    X, _ = table(300)
    weights = np.ones(300)
    weights[:100] = 0.0
    for kernel in (Gaussian(0.5), Linear()):  # the second has rank 4: the rest is drawn uniformly
        chosen = choose_centres(kernel, X, 50, np.random.default_rng(0), weights)
        assert len(np.unique(chosen)) == 50
        assert chosen.min() >= 100


def test_one_eigendecomposition_serves_every_alpha():
    X, y = table(80)
    Y, K = np.column_stack([y, y**2]), Gaussian(0.3)(X)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, size=80)
    alphas = [1e-3, 0.1, 10.0]
    rows = Gaussian(0.3)(X[:7] + 0.1, X)
    for given in (None, weights):
        path = KernelRidgePath(K, given)
        coefs, predicted = path.dual_coefs(Y, alphas), path.predictions(rows, Y, alphas)
        for k, alpha in enumerate(alphas):
            model = KernelRidge(kernel="precomputed", alpha=alpha).fit(K, Y, sample_weight=given)
            np.testing.assert_allclose(coefs[k], model.dual_coef_, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(path.dual_coef(Y, alpha), coefs[k], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(predicted[k], model.predict(rows), rtol=1e-8, atol=1e-9)
    torch = pytest.importorskip("torch")
    tensors = KernelRidgePath(torch.as_tensor(K)).dual_coefs(torch.as_tensor(Y), alphas)
    np.testing.assert_allclose(
        tensors, KernelRidgePath(K).dual_coefs(Y, alphas), rtol=1e-8, atol=1e-9
    )
    singular = KernelRidgePath(Linear()(X)).dual_coef(y, 0.0)
    np.testing.assert_allclose(
        Linear()(X) @ singular[:, 0], X @ np.linalg.lstsq(X, y)[0], atol=1e-10
    )


def test_a_search_over_kernel_parameters():
    X, y = table(90)
    grid = {"kernel__left__gamma": [0.01, 0.5], "alpha": [0.1, 1.0]}
    search = GridSearchCV(KernelRidge(kernel=Gaussian(0.5) + 0.5 * Polynomial(2)), grid, cv=3).fit(
        X, y
    )
    assert search.best_params_["kernel__left__gamma"] in (0.01, 0.5)
    assert search.best_estimator_.certificate_.ok


def test_a_function_of_two_rows_as_in_scikit_learn():
    X, y = table(30)

    def kernel(x, z, width=1.0):
        return float(np.exp(-width * np.abs(x - z).sum()))

    ours = KernelRidge(kernel=kernel, kernel_params={"width": 0.3}).fit(X, y)
    theirs = Theirs(kernel=kernel, kernel_params={"width": 0.3}).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10)
    np.testing.assert_allclose(
        ours.predict(X), KernelRidge(kernel="laplacian", gamma=0.3).fit(X, y).predict(X), rtol=1e-10
    )


def test_real_data():
    X, y = load("diabetes")
    for kernel in ("rbf", "laplacian", "poly"):
        model = KernelRidge(kernel=kernel, alpha=0.5, certify="full").fit(X, y)
        theirs = Theirs(kernel=kernel, alpha=0.5).fit(X, y)
        assert model.certificate_.ok
        np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-8)
