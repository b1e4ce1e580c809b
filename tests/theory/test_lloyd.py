"""Lloyd's algorithm (CLU-1) and its limits (CLU-2): what the method guarantees, and what it does not."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.cluster
from tests.data import load

from surefit import CertificateWarning, Status
from surefit.cluster import KMeans
from surefit.design import as_design
from surefit.solvers.assignment import Labeller
from surefit.solvers.lloyd import describe, lloyd


def blobs(n=600, p=3, centres=6, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    middle = 4.0 * rng.standard_normal((centres, p))
    return middle[rng.integers(0, centres, n)] + spread * rng.standard_normal((n, p))


@pytest.mark.spec("CLU-1")
@pytest.mark.parametrize("seed", range(5))
def test_the_sum_of_squares_never_rises_and_the_run_ends(seed):
    """Recomputed from differences at each iterate, both after the labels and after the means."""
    X = blobs(seed=seed)
    setting = describe(as_design(X), None)
    labeller = Labeller(as_design(X), setting.frame)
    centres, values, steps = X[:12].copy(), [], 0
    for iterate in lloyd(labeller, centres, setting.spread):
        before = float(np.sum((X - centres[labeller.labels]) ** 2))
        after = float(np.sum((X - iterate.x.centres[labeller.labels]) ** 2))
        assert iterate.value == pytest.approx(before, rel=1e-12)  # the value from the sums
        values += [before, after]
        centres, steps = iterate.x.centres, steps + 1
        assert steps < 200
    assert iterate.x.settled  # finitely many assignments: the labels repeat
    assert all(b <= a * (1 + 1e-14) for a, b in itertools.pairwise(values))


@pytest.mark.spec("CLU-1")
def test_both_steps_are_stationary_at_the_end():
    X = blobs()
    model = KMeans(6, random_state=0, tol=0).fit(X)
    means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(6)])
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=0, atol=1e-13)
    distances = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == model.labels_).all()
    assert "no optimality claim" in model.certificate_["centres"].statement
    assert "to rounding" in model.certificate_["centres"].statement


@pytest.mark.spec("CLU-1")
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"tol": 0}, {"max_iter": 3}, {"algorithm": "elkan"}], ids=str
)
def test_equals_scikit_learn_from_the_same_start(kind, weighted, settings):
    rng = np.random.default_rng(3)
    X = blobs(2000, 5, 30, seed=2)
    X = sp.csr_matrix(np.where(np.abs(X) > 3, X, 0)) if kind == "sparse" else X.astype(kind)
    w = rng.uniform(0.1, 3.0, 2000) if weighted else None
    init = X[rng.choice(2000, 25, replace=False)]
    init = init.toarray() if kind == "sparse" else init
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # max_iter=3 is too few on purpose
        ours = KMeans(25, init=init, n_init=1, **settings).fit(X, sample_weight=w)
    theirs = sklearn.cluster.KMeans(25, init=init, n_init=1, **settings).fit(X, sample_weight=w)
    rounding = 1e-5 if kind == "float32" else 1e-12
    assert ours.n_iter_ == theirs.n_iter_
    assert (ours.labels_ == theirs.labels_).all()
    assert ours.labels_.dtype == theirs.labels_.dtype
    assert ours.cluster_centers_.dtype == theirs.cluster_centers_.dtype
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=rounding)
    np.testing.assert_allclose(
        ours.cluster_centers_, theirs.cluster_centers_, rtol=0, atol=10 * rounding
    )


@pytest.mark.spec("CLU-1")
def test_equals_scikit_learn_where_clusters_run_empty():
    """Centres far away from all rows take the rows that are farthest from theirs."""
    X = blobs(300, 2, 4)
    init = np.vstack([X[:3], [[1e3, 1e3], [-1e3, 2e3]]])
    ours = KMeans(5, init=init, n_init=1).fit(X)
    theirs = sklearn.cluster.KMeans(5, init=init, n_init=1).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.certificate_.ok
    assert len(set(ours.labels_.tolist())) == 5


@pytest.mark.spec("CLU-1")
@pytest.mark.parametrize("name", ["iris", "digits"])
def test_the_same_seed_gives_scikit_learn_s_clusters_on_real_rows(name):
    X, _ = load(name)
    ours = KMeans(8, random_state=5, n_init=2).fit(X)
    theirs = sklearn.cluster.KMeans(8, random_state=5, n_init=2).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)


# ---------------------------------------------------------------------------- limits


@pytest.mark.spec("CLU-2")
def test_a_bad_start_ends_in_a_local_optimum_and_says_no_more():
    """Three blobs in a row; two centres in the first, one between the others: it stays there."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.1, 100) for m in (0.0, 10.0, 11.5)])[:, None]
    bad = KMeans(3, init=[[-0.1], [0.1], [10.7]], n_init=1).fit(X)
    good = KMeans(3, init=[[0.0], [10.0], [11.5]], n_init=1).fit(X)
    assert bad.inertia_ > 10.0 * good.inertia_
    assert bad.certificate_.ok  # stationary, and only that
    assert bad.certificate_["centres"].kind.name == "STATIONARY"
    assert "no optimality claim" in bad.certificate_["centres"].statement


@pytest.mark.spec("CLU-2")
def test_the_spread_over_restarts_is_reported():
    X = blobs(500, 2, 12, seed=4, spread=0.3)
    model = KMeans(12, init="random", n_init=10, random_state=0).fit(X)
    claim = model.certificate_["restarts"]
    assert len(model.restart_inertias_) == 10
    assert min(model.restart_inertias_) == model.inertia_
    spread = max(model.restart_inertias_) / model.inertia_ - 1.0
    assert spread > 0.05
    assert f"{spread:.2%} apart" in claim.statement
    assert claim.status is Status.HOLDS
    assert "restarts" not in KMeans(3, random_state=0).fit(X).certificate_


@pytest.mark.spec("CLU-2")
def test_long_clusters_are_cut():
    """Two parallel stripes: the best two spheres cut them across, at a lower cost than the truth."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(-10, 10, 400), np.repeat([-1.0, 1.0], 200)])
    model = KMeans(2, n_init=10, random_state=0).fit(X)
    truth = np.repeat([0, 1], 200)
    agreement = max(np.mean(model.labels_ == truth), np.mean(model.labels_ != truth))
    centres = np.array([X[truth == j].mean(axis=0) for j in (0, 1)])
    assert agreement < 0.6
    assert model.inertia_ < 0.5 * np.sum((X - centres[truth]) ** 2)


@pytest.mark.spec("CLU-2")
def test_an_outlier_takes_a_centre():
    X = np.vstack([blobs(200, 2, 2, seed=8, spread=0.5), [[500.0, 0.0]]])
    model = KMeans(2, n_init=10, random_state=0).fit(X)
    assert np.bincount(model.labels_).min() == 1
    assert model.labels_[-1] not in model.labels_[:-1]


@pytest.mark.spec("CLU-2")
def test_assignment_is_hard_where_clusters_overlap():
    """Rows halfway between two overlapping blobs get one label: the means are pushed apart by it."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-1, 1.0, 20000), rng.normal(1, 1.0, 20000)])[:, None]
    model = KMeans(2, random_state=0).fit(X)
    low, high = np.sort(model.cluster_centers_.ravel())
    # each mean is E|x| = sqrt(2 / pi) exp(-1 / 2) + erf(1 / sqrt(2)) = 1.1666
    assert high - low == pytest.approx(2 * 1.1666, abs=0.05)
    assert high - low > 2.2  # the truth is 2
