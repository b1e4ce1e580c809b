"""Tensors on a GPU: the same clusters, mixtures and factors as on the processor. Skipped where there is none.

``python -m tests.parity.test_cuda`` runs them without pytest, on a machine that has a GPU and little else.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import surefit
from surefit.cluster import KMeans, kmeans_plusplus
from surefit.decomposition import MatrixFactorization
from surefit.design import RankRows
from surefit.linear_model import LogisticRegression, Ridge
from surefit.mixture import GaussianMixture

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def blobs(n=20_000, p=16, k=30, seed=0):
    rng = np.random.default_rng(seed)
    return 3.0 * rng.normal(size=(k, p))[rng.integers(0, k, n)] + rng.normal(size=(n, p)) + 5.0


def home(values):
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_k_means(kind, weighted):
    X = blobs().astype(kind)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(X)) if weighted else None
    near = torch.as_tensor(X, device="cuda")
    on_device = None if weights is None else torch.as_tensor(weights, device="cuda")
    one = KMeans(25, random_state=0).fit(X, sample_weight=weights)
    two = KMeans(25, random_state=0).fit(near, sample_weight=on_device)
    assert two.cluster_centers_.is_cuda
    assert two.n_iter_ == one.n_iter_
    np.testing.assert_array_equal(home(two.labels_), one.labels_)
    np.testing.assert_allclose(
        home(two.cluster_centers_), one.cluster_centers_, rtol=1e-6 if kind == "float32" else 1e-11
    )
    assert two.certificate_.ok
    assert two.certificate_.data_id == one.certificate_.data_id
    assert surefit.verify(two, X, sample_weight=weights).ok


@pytest.mark.parametrize("p", [1, 3, 64, 200])
def test_labels_are_exact_on_a_lattice(p):
    """Rows halfway between two centres: the lowest number wins, as in exact arithmetic."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(3000, p)).astype(np.float64) / 2 + 1e3
    centres = np.unique(X[:40] + 0.0, axis=0)
    near = torch.as_tensor(X, device="cuda")
    one = KMeans(len(centres), init=centres, max_iter=2, tol=0, certify=False).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two = KMeans(
            len(centres), init=torch.as_tensor(centres, device="cuda"), max_iter=2, tol=0
        ).fit(near)
    np.testing.assert_array_equal(home(two.labels_), one.labels_)
    assert two.certificate_["labels"].status.value == "holds"


def test_seeding():
    X = blobs(5000)
    _, one = kmeans_plusplus(X, 12, random_state=3)
    _, two = kmeans_plusplus(torch.as_tensor(X, device="cuda"), 12, random_state=3)
    np.testing.assert_array_equal(home(two), one)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixtures(kind):
    X = blobs(6000, 8, 6)
    start = {"random_state": 0, "init_params": "k-means++", "tol": 1e-6}
    one = GaussianMixture(6, covariance_type=kind, **start).fit(X)
    two = GaussianMixture(6, covariance_type=kind, **start).fit(torch.as_tensor(X, device="cuda"))
    assert two.n_iter_ == one.n_iter_
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(
            home(getattr(two, name)), getattr(one, name), rtol=1e-7, atol=1e-9
        )
    assert two.certificate_.ok == one.certificate_.ok


def test_mixture_that_leaves_nothing_out():
    """One wide cloud: every component counts for every row."""
    X = np.random.default_rng(0).normal(size=(4000, 5))
    one = GaussianMixture(
        4, random_state=0, max_iter=20, tol=0, certify=False, init_params="k-means++"
    )
    two = GaussianMixture(**one.get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.fit(X)
        two.fit(torch.as_tensor(X, device="cuda"))
    np.testing.assert_allclose(home(two.means_), one.means_, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("implicit", [False, True])
def test_factors(implicit):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 80), density=0.2, rng=rng, format="csr")
    settings = {
        "implicit": implicit,
        "solver": "cholesky",
        "random_state": 0,
        "tol": 0,
        "max_iter": 8,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped on purpose
        one = MatrixFactorization(5, **settings).fit(X)
        two = MatrixFactorization(5, device="cuda", **settings).fit(X)
    np.testing.assert_allclose(home(two.loss_trace_), one.loss_trace_, rtol=1e-9)
    np.testing.assert_allclose(home(two.user_factors_), one.user_factors_, rtol=1e-6, atol=1e-8)


def test_rows_over_ranks_with_tensors_on_the_gpu():
    X = blobs(4000)
    y = X @ np.arange(16.0)
    rows = RankRows(torch.as_tensor(X, device="cuda"))
    np.testing.assert_allclose(Ridge().fit(rows, y).coef_, Ridge().fit(X, y).coef_, rtol=1e-9)
    labels = (y > np.median(y)).astype(int)
    model = LogisticRegression(tol=1e-10)
    one = model.fit(X, labels).coef_
    np.testing.assert_allclose(
        LogisticRegression(tol=1e-10).fit(rows, labels).coef_, one, rtol=1e-6
    )
    two = KMeans(10, random_state=0).fit(rows)
    np.testing.assert_array_equal(home(two.labels_), KMeans(10, random_state=0).fit(X).labels_)


if __name__ == "__main__":
    for name, test in [(n, t) for n, t in list(globals().items()) if n.startswith("test_")]:
        cases = [{}]
        for mark in getattr(test, "pytestmark", []):
            if mark.name == "parametrize":
                cases = [case | {mark.args[0]: value} for case in cases for value in mark.args[1]]
        for case in cases:
            try:
                test(**case)
                print(f"passed {name} {case}", flush=True)
            except (AssertionError, ValueError, TypeError, RuntimeError) as error:
                print(
                    f"FAILED {name} {case}: {type(error).__name__}: {str(error)[:600]}", flush=True
                )
