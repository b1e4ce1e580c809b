"""Training over shards (LM-19): the shards' gradients make up the gradient of all, signs take a bit each."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import binom

from surefit.distributed import ALONE, Alone, pack_signs, unpack_signs
from surefit.losses import Logistic
from surefit.solvers import sign_descent

EPS = np.finfo(float).eps


def problem(n=4003, p=37):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p)) + 0.3
    return X, np.where(X[:, 0] + rng.logistic(size=n) > 0.3, 1.0, -1.0), rng.normal(size=p)


def mean_gradient(X, y, w):
    """Of the mean logistic loss of these rows."""
    return X.T @ Logistic().grad(X @ w, y) / len(y)


class Worker(Alone):
    """One of several ranks, in one process: its share of the rows is that of real ones."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize("workers", [2, 3, 8])
@pytest.mark.spec("LM-19")
def test_averaged_shard_gradients_are_the_gradient_of_the_whole_batch(workers):
    """The mean over shards, each weighted by its rows; a sum of n products rounds by at most n eps of it."""
    X, y, w = problem()
    shards = [Worker(rank, workers).share_of(len(X)) for rank in range(workers)]
    assert sum(part.stop - part.start for part in shards) == len(X)
    rows = np.array([part.stop - part.start for part in shards])
    each = np.array([mean_gradient(X[part], y[part], w) for part in shards])
    whole = mean_gradient(X, y, w)
    rounding = 2 * len(X) * EPS * np.abs(X).max()
    np.testing.assert_allclose(rows @ each / len(X), whole, rtol=0, atol=rounding)
    # without the weights it is the gradient only where the shards are equal
    even = X[: workers * 400], y[: workers * 400]
    parts = [mean_gradient(X[i::workers], y[i::workers], w) for i in range(workers)]
    if len(X) % workers:
        assert np.abs(np.mean(parts, axis=0) - whole).max() > rounding
    parts = [mean_gradient(even[0][i::workers], even[1][i::workers], w) for i in range(workers)]
    np.testing.assert_allclose(np.mean(parts, axis=0), mean_gradient(*even, w), atol=rounding)


@pytest.mark.parametrize("count", [32, 6400, 6401, 0])
@pytest.mark.spec("LM-19")
def test_signs_take_a_32nd_of_the_bytes_and_come_back(count):
    gradient = np.random.default_rng(0).normal(size=count).astype(np.float32)
    sent = pack_signs(gradient)
    assert sent.nbytes == -(-count // 8)
    if count % 8 == 0:
        assert 32 * sent.nbytes == gradient.nbytes
    np.testing.assert_array_equal(unpack_signs(sent, count), np.sign(gradient))


def test_what_has_no_sign_is_refused():
    with pytest.raises(ValueError, match="NaN, which has no sign"):
        pack_signs([1.0, np.nan])
    with pytest.raises(ValueError, match="9 signs take 2 bytes, got 1"):
        unpack_signs(np.zeros(1, dtype=np.uint8), 9)
    assert unpack_signs(pack_signs([0.0, -0.0, -1.0]), 3).tolist() == [1, 1, -1]


def vote(each):
    """What :meth:`surefit.distributed.Ranks.majority` computes; tests/distributed compares the two."""
    return np.sign(sum(unpack_signs(pack_signs(g), len(g)).astype(int) for g in each))


@pytest.mark.spec("LM-19")
def test_the_vote_is_the_sign_of_the_sum_where_the_workers_agree():
    """Numbers of one sign add up to that sign. Where they differ the majority may be against the sum."""
    X, y, w = problem()
    each = np.array([mean_gradient(X[i::5], y[i::5], w) for i in range(5)])
    agreed = np.abs(np.sign(each).sum(axis=0)) == 5
    assert 0 < agreed.sum() < len(w)
    np.testing.assert_array_equal(vote(each)[agreed], np.sign(each.sum(axis=0))[agreed])
    assert vote([[1.0], [1.0], [-3.0]]).tolist() == [1]  # the sum is -1
    assert vote([[1.0], [-3.0]]).tolist() == [0]
    np.testing.assert_array_equal(ALONE.majority(each), np.sign(each))


@pytest.mark.parametrize("workers", [1, 3, 9, 27])
def test_a_vote_errs_more_rarely_than_its_voters(workers):
    """Workers that err independently with probability q < 1/2: by Hoeffding's inequality an odd number of
    them is outvoted with probability at most exp(-2 R (1/2 - q)^2)."""
    q = np.linspace(0.0, 0.49, 50)
    wrong = binom.sf(workers // 2, workers, q)
    assert (wrong <= np.exp(-2 * workers * (0.5 - q) ** 2)).all()
    assert (wrong <= q + 1e-15).all()


@pytest.mark.spec("LM-19")
def test_descent_by_votes_lowers_the_loss():
    """sign_descent on the vote: steps that shrink, the loss close to that of sign descent on all rows."""
    X, y, _ = problem()
    shards = [np.s_[i::5] for i in range(5)]

    def voted(w):
        return vote([mean_gradient(X[part], y[part], w) for part in shards]).astype(float)

    def loss(w):
        return float(Logistic().pointwise(X @ w, y).mean())

    def last(gradient):
        steps = sign_descent(gradient, np.zeros(X.shape[1]), lambda t: 0.1 / (1 + t) ** 0.75)
        return next(islice(steps, 200, None)).x

    start, ours, whole = (
        loss(np.zeros(X.shape[1])),
        loss(last(voted)),
        loss(last(lambda w: mean_gradient(X, y, w))),
    )
    assert ours < 0.9 * start
    assert abs(ours - whole) < 0.02 * start
