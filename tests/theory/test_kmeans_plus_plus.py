"""k-means++ (CLU-3): E[cost] <= 8 (ln K + 2) OPT, on sets small enough to try all partitions."""

import itertools
import math

import numpy as np
import pytest
import sklearn.cluster

from surefit.cluster import kmeans_plusplus


def least_cost(X, k):
    """The optimum over all assignments of the rows to k clusters."""
    n, best = len(X), math.inf
    for labels in itertools.product(range(k), repeat=n - 1):
        z = np.array((0, *labels))
        cost = sum(
            ((X[z == j] - X[z == j].mean(axis=0)) ** 2).sum() for j in range(k) if (z == j).any()
        )
        best = min(best, float(cost))
    return best


def cost_of(X, centres):
    return float(((X[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum())


SETS = {
    "noise": np.random.default_rng(0).standard_normal((9, 2)),
    "pairs": np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], 3, axis=0)
    + 0.1 * np.random.default_rng(1).standard_normal((9, 2)),
    "line": np.array([0.0, 0.1, 0.2, 5.0, 5.1, 100.0, 100.1, 100.3, 101.0])[:, None],
}


@pytest.mark.spec("CLU-3")
@pytest.mark.parametrize("trials", [1, None])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("k", [2, 3])
def test_the_mean_cost_is_below_the_bound(name, k, trials):
    X = SETS[name]
    costs = [
        cost_of(X, kmeans_plusplus(X, k, random_state=seed, n_local_trials=trials)[0])
        for seed in range(300)
    ]
    error = np.std(costs) / math.sqrt(len(costs))
    assert np.mean(costs) + 4.0 * error <= 8.0 * (math.log(k) + 2.0) * least_cost(X, k)


@pytest.mark.spec("CLU-3")
def test_uniform_seeding_may_exceed_it():
    """On far pairs of clusters, rows drawn at random often miss one: no constant bounds that."""
    X = SETS["pairs"]
    rng = np.random.default_rng(0)
    costs = [cost_of(X, X[rng.choice(9, 3, replace=False)]) for _ in range(300)]
    assert np.mean(costs) > 8.0 * (math.log(3) + 2.0) * least_cost(X, 3)


@pytest.mark.spec("CLU-3")
def test_draws_follow_the_squared_distances():
    """After a first centre at 0, the second is at x with probability proportional to w x^2."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    w = np.array([1e9, 1.0, 2.0, 1.0])  # the first draw is the heavy row
    second = [
        kmeans_plusplus(X, 2, sample_weight=w, random_state=s, n_local_trials=1)[1][1]
        for s in range(2000)
    ]
    shares = np.bincount(second, minlength=4) / 2000
    expected = w * X.ravel() ** 2
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=4 * math.sqrt(0.25 / 2000))


def test_a_seed_draws_scikit_learn_s_rows():
    X = np.random.default_rng(5).standard_normal((500, 7))
    w = np.random.default_rng(6).uniform(size=500)
    for seed in range(5):
        for weights in (None, w):
            ours = kmeans_plusplus(X, 12, sample_weight=weights, random_state=seed)
            theirs = sklearn.cluster.kmeans_plusplus(
                X, 12, sample_weight=weights, random_state=seed
            )
            assert (ours[1] == theirs[1]).all()
            np.testing.assert_array_equal(ours[0], X[ours[1]])


def test_no_row_is_drawn_twice():
    X = np.repeat(np.arange(20.0), 3)[:, None]
    centres, _ = kmeans_plusplus(X, 20, random_state=0)
    assert len(np.unique(centres)) == 20
