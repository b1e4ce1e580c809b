"""No clustering goes below the PCA tail or the semidefinite relaxation; here against all clusterings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigvalsh
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from tests.data import load

from surefit import Kind, Status
from surefit.cluster._lower_bounds import Bound, lower_bounds, optimality_claim
from surefit.cluster._pca_tail import pca_tail_bound, pca_tail_bounds
from surefit.cluster._sdp_bound import dual_value, sdp_bound
from surefit.cluster._spectra import top_sum_bound
from surefit.cluster._triangles import Triangles
from surefit.design import RowBlocks

UNIT = 2.0**-53


def partitions(n: int, most: int) -> Iterator[list[int]]:
    """All labellings of n rows by at most ``most`` clusters, each once."""

    def extend(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            yield labels
            return
        for label in range(min(used + 1, most)):
            yield from extend([*labels, label], max(used, label + 1))

    yield from extend([], 0)


def wcss(X: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """By two passes about each mean, in the order of the rows."""
    total = 0.0
    for k in np.unique(labels):
        rows, w = X[labels == k].astype(np.longdouble), weights[labels == k].astype(np.longdouble)
        if w.sum() > 0:
            total += float((w[:, None] * (rows - w @ rows / w.sum()) ** 2).sum())
    return total


def best_of_all(X: np.ndarray, weights: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    found = ((wcss(X, weights, np.array(labels)), labels) for labels in partitions(len(X), k))
    value, labels = min(found, key=lambda pair: pair[0])
    return value, np.array(labels)


def small_set(seed: int, weighted: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, 1 + seed % 4)) * rng.uniform(0.1, 10.0, size=1 + seed % 4)
    X[5] = X[1]  # a duplicate
    weights = rng.uniform(0.0, 3.0, 7) if weighted else np.ones(7)
    return X, weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_bound_exceeds_the_best_of_all_clusterings(seed: int, weighted: bool) -> None:
    X, weights = small_set(seed, weighted)
    rounding = 1e-14 * wcss(X, weights, np.zeros(7))  # of the sums that the test makes itself
    for k in range(1, 8):
        value, labels = best_of_all(X, weights, k)
        tail, relaxed = (
            pca_tail_bound(X, weights, k).value,
            sdp_bound(X, weights, k, labels).value,
        )
        assert tail <= value + rounding
        assert relaxed <= value + rounding
        assert relaxed >= tail - 1e-9 * value  # B = 0 is the PCA tail
        assert relaxed >= 0.85 * value - rounding


@pytest.mark.parametrize("seed", range(3))
def test_a_bad_clustering_as_a_hint_gives_a_bound_all_the_same(seed: int) -> None:
    X, weights = small_set(seed, True)
    value, _ = best_of_all(X, weights, 3)
    labels = np.random.default_rng(seed).integers(0, 3, 7)
    assert sdp_bound(X, weights, 3, labels).value <= value * (1 + 1e-14)
    assert sdp_bound(X, weights, 3, labels).value >= 0.85 * value


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_any_multipliers_give_a_bound(k: int) -> None:
    X, weights = small_set(1, True)
    keep = [0, 1, 2, 3, 4, 6]  # distinct rows
    X, weights = X[keep], weights[keep]
    value, _ = best_of_all(X, weights, k)
    rng = np.random.default_rng(k)
    for scale in (0.0, 1e-3, 1.0, 1e3):
        for _ in range(10):
            B = scale * rng.exponential(size=(6, 6)) * (rng.random((6, 6)) < 0.5)
            assert dual_value(X, weights, k, B + B.T) <= value * (1 + 1e-14)


def test_one_cluster_is_exact() -> None:
    X, _ = load("iris")
    total = ((X - X.mean(axis=0)) ** 2).sum()
    for value in (pca_tail_bound(X, None, 1).value, sdp_bound(X, None, 1, np.zeros(150)).value):
        assert value <= total
        assert value == pytest.approx(total, rel=1e-11)


def test_the_pca_tail_is_the_sum_of_the_small_eigenvalues() -> None:
    X = np.array([[3.0, 0, 0], [-3, 0, 0], [0, 2, 0], [0, -2, 0], [0, 0, 1], [0, 0, -1]])
    found = [bound.value for bound in pca_tail_bounds(X, None, [1, 2, 3, 4])]
    assert found == pytest.approx([28.0, 10.0, 2.0, 0.0], abs=1e-11)
    iris, _ = load("iris")
    values = np.sort(eigvalsh(np.cov(iris.T) * 149))
    for k in (2, 3, 4):
        assert pca_tail_bound(iris, None, k).value == pytest.approx(
            values[: 4 - k + 1].sum(), rel=1e-9
        )


def test_the_pca_tail_says_when_it_is_empty() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    bound = pca_tail_bound(X, None, 3)
    assert bound.value == 0.0
    assert "span no more than the 2 dimensions" in bound.words
    flat = np.outer(np.arange(10.0), [1.0, 2.0, 3.0])  # a line in three dimensions
    assert pca_tail_bound(flat, None, 2).value == 0.0
    wide = sp.csr_array((3000, 2001))
    assert "too many" in pca_tail_bound(wide, None, 2).words


def test_the_pca_tail_of_all_kinds_of_rows_is_the_same(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    X, _ = load("wine")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    np.save(tmp_path / "rows.npy", X)
    want = pca_tail_bound(X, weights, 3).value
    kinds = [
        sp.csr_array(X),
        torch.as_tensor(X),
        RowBlocks(tmp_path / "rows.npy", block_bytes=4096),
    ]
    for kind in kinds:
        assert pca_tail_bound(kind, weights, 3).value == pytest.approx(want, rel=1e-9)
    short = X[:9]  # fewer rows than features: the Gram matrix
    for kind in (short, sp.csr_array(short), torch.as_tensor(short)):
        value = pca_tail_bound(kind, None, 3).value
        assert value == pytest.approx(eigvalsh(np.cov(short.T) * 8)[:-2].sum(), rel=1e-9)
        assert sdp_bound(kind, None, 3, np.arange(9) % 3).value >= value * (1 - 1e-9)


def test_weights_are_repetitions() -> None:
    X, _ = load("iris")
    counts = np.random.default_rng(0).integers(0, 4, 150)
    repeated = np.repeat(X, counts, axis=0)
    labels = KMeans(3, n_init=5, random_state=0).fit_predict(repeated)
    ours = sdp_bound(repeated, None, 3, labels)
    first = np.repeat(np.arange(150), counts)
    full = np.zeros(150, dtype=int)
    full[first] = labels
    assert sdp_bound(X, counts, 3, full).value == pytest.approx(ours.value, rel=1e-6)


@pytest.mark.parametrize("n", [30, 100, 300])
def test_the_relaxation_is_tight_on_separated_blobs(n: int) -> None:
    X, _ = make_blobs(n, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    model = KMeans(3, n_init=5, random_state=0).fit(X)
    bound = sdp_bound(X, None, 3, model.labels_)
    assert bound.words == "reached after 0 steps"  # by the closed form
    claim = optimality_claim(model.inertia_, 3, [bound])
    assert (claim.kind, claim.status) == (Kind.OPTIMAL, Status.HOLDS)
    # any other clustering, here with one row moved, is above it
    labels = model.labels_.copy()
    labels[0] = (labels[0] + 1) % 3
    worse = wcss(X, np.ones(n), labels)
    assert optimality_claim(worse, 3, [bound]).status is Status.UNDECIDED


@pytest.mark.parametrize(("k", "share"), [(2, 0.0110), (3, 0.0425), (4, 0.0422)])
def test_iris_is_proved_optimal_by_triangles(k: int, share: float) -> None:
    X = load_iris().data
    model = KMeans(k, n_init=10, random_state=0).fit(X)
    relaxed = sdp_bound(X, None, k, model.labels_, triangles=False)
    assert 1e-3 < (model.inertia_ - relaxed.value) / model.inertia_ <= share
    bound = sdp_bound(X, None, k, model.labels_)
    assert "triangles" in bound.words
    claim = optimality_claim(model.inertia_, k, [bound])
    assert (claim.kind, claim.status) == (Kind.OPTIMAL, Status.HOLDS)
    again = sdp_bound(X, None, k, model.labels_, max_iter=100)
    assert again == sdp_bound(X, None, k, model.labels_, max_iter=100)  # deterministic


def test_every_clustering_satisfies_every_triangle() -> None:
    _, weights = small_set(2, True)
    roots = np.sqrt(weights)
    cuts = Triangles(roots)
    cuts.rows = np.array(
        [(i, j, k) for i in range(7) for j, k in combinations(range(7), 2) if i not in (j, k)]
    )
    cuts.t = np.ones(len(cuts.rows))
    for labels in partitions(7, 4):
        codes = np.array(labels)
        mass = np.bincount(codes, weights)[codes]
        Z = np.where(codes[:, None] == codes, np.outer(roots, roots / mass), 0.0)
        assert cuts.slack(Z).min() >= -1e-12
        assert (cuts.matrix() * Z).sum() == pytest.approx(cuts.slack(Z).sum(), abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_any_triangles_give_a_bound(k: int) -> None:
    X, weights = small_set(3, True)
    X, weights = np.delete(X, 5, axis=0), np.delete(weights, 5)
    value, _ = best_of_all(X, weights, k)
    rng = np.random.default_rng(k)
    cuts = Triangles(np.sqrt(weights))
    for scale in (1e-3, 1.0, 1e3):
        for _ in range(10):
            cuts.rows = np.stack([rng.permutation(6)[:3] for _ in range(20)])
            cuts.t = scale * rng.exponential(size=20)
            B = scale * rng.exponential(size=(6, 6))
            assert dual_value(X, weights, k, B + B.T, cuts) <= value * (1 + 1e-14)
            assert dual_value(X, weights, k, None, cuts) <= value * (1 + 1e-14)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_large_offset_costs_nothing_that_the_numbers_hold(kind: type) -> None:
    rng = np.random.default_rng(0)
    offset = 1e8 if kind is np.float64 else 1e4
    X = (
        np.rint(rng.normal(size=(60, 3)) * 4) + np.repeat([0, 64, 128], 20)[:, None] + offset
    ).astype(kind)
    near = X.astype(np.float64) - offset  # exact
    labels = np.repeat([0, 1, 2], 20)
    value = wcss(near, np.ones(60), labels)
    for k in (1, 2, 3):
        assert pca_tail_bound(X, None, k).value == pytest.approx(
            pca_tail_bound(near, None, k).value, rel=1e-7
        )
    bound = sdp_bound(X, None, 3, labels).value
    assert bound <= value
    assert bound >= value * (1 - 1e-6)


def test_more_clusters_than_rows() -> None:
    X = np.array([[0.0], [0.0], [1.0]])
    assert sdp_bound(X, None, 2, [0, 0, 1]) == Bound(
        0.0, "semidefinite relaxation", "2 distinct rows in 2 clusters: the best WCSS is 0"
    )


def test_the_top_sum_is_from_above_and_tight() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        for _ in range(5):
            A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-8, 8)
            A = A + A.T
            values = np.sort(eigvalsh(A))[::-1]
            for k in range(n + 1):
                found = top_sum_bound(A, k)
                size = np.linalg.norm(A)
                # the reference itself errs by a few n u |A|
                assert found >= values[:k].sum() - 8 * n * k * UNIT * size
                assert found <= values[:k].sum() + 64 * (n + 2) ** 2 * (k + 1) * UNIT * size
    assert top_sum_bound(np.zeros((3, 3)), 2) == 0.0
    projector = np.eye(6)  # every eigenvalue the same
    assert 3.0 <= top_sum_bound(projector, 3) <= 3.0 + 1e-12


def test_the_claim_says_what_is_known() -> None:
    tail, none = Bound(75.0, "PCA tail"), Bound(0.0, "semidefinite relaxation", "not tried")
    loose = optimality_claim(90.0, 3, [tail, none])
    assert (loose.kind, loose.status) == (Kind.BOUND, Status.UNDECIDED)
    assert math.isclose(loose.observed, 15 / 90)
    assert "at most 20 % above that of the best clustering into 3 (PCA tail" in loose.statement
    assert "not tried" in loose.statement
    wide = optimality_claim(225.0, 3, [tail])
    assert wide.status is Status.UNINFORMATIVE
    assert "at most 3 times" in wide.statement
    forged = optimality_claim(70.0, 3, [tail, none])
    assert (forged.kind, forged.status) == (Kind.OPTIMAL, Status.FAILS)
    assert "no clustering into 3 goes below 75" in forged.statement
    exact = optimality_claim(75.0 * (1 + 1e-8), 3, [tail])
    assert (exact.kind, exact.status) == (Kind.OPTIMAL, Status.HOLDS)
    empty = optimality_claim(75.0, 3, [none])
    assert empty.status is Status.UNINFORMATIVE
    assert "semidefinite relaxation: not tried" in empty.statement
    assert optimality_claim(0.0, 3, []).status is Status.HOLDS
    assert optimality_claim(1e-20, 3, [none], floor=1e-18).status is Status.HOLDS
    assert optimality_claim(math.nan, 3, [tail]).status is Status.FAILS


def test_what_is_tried_at_fit_and_in_full() -> None:
    X, _ = make_blobs(250, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    labels = KMeans(3, n_init=5, random_state=0).fit_predict(X)
    at_fit = lower_bounds(X, None, 3, labels, full=False)
    assert "certify='full'" in at_fit[1].words
    full = lower_bounds(X, None, 3, labels, full=True)
    assert full[1].value == pytest.approx(wcss(X, np.ones(250), labels), rel=1e-6)
    many = lower_bounds(np.zeros((2001, 1)), None, 3, np.zeros(2001), full=True)
    assert "not tried on 2001 rows" in many[1].words
