"""What a vector over ranks gives is what the whole vector gives, or it refuses."""

import threading

import numpy as np
import pytest

from surefit._ranks import RankVector, Spread
from surefit.distributed import Alone

WHOLE = np.array([3.25, -1.0, 7.5, 50.0, 2.0, 0.125])
CUTS = [slice(0, 1), slice(1, 6)]  # one rank has a single sample

EQUAL = {
    "mean": lambda v: v.mean(),
    "mean of some": lambda v: v[v > 2.5].mean(),
    "largest of some, none of them on a rank": lambda v: v[v > 40.0].max(),
    "least of some, none of them on a rank": lambda v: v[v > 40.0].min(),
    "round": lambda v: v.round(1).sum(),
    "across": lambda v: v[None, :].sum(axis=1)[0],
    "transpose": lambda v: np.stack([v, v], axis=1).transpose().sum(axis=1)[1],
    "loop over columns": lambda v: max(row.max() for row in np.stack([v, -v], axis=1).T),
}
REFUSED = {
    "loop": lambda v: sum(v),
    "largest by a loop": lambda v: max(v),
    "list": lambda v: v.tolist(),
    "product": lambda v: v.prod(),
    "axes": lambda v: np.stack([v, v], axis=1).swapaxes(0, 1),
}


class Threads(Alone):
    """A rank of a group of threads."""

    def __init__(self, rank, size, barrier, board):
        self.rank, self.size, self.barrier, self.board = rank, size, barrier, board

    def gather(self, thing):
        self.board[self.rank] = thing
        self.barrier.wait(5)
        found = [self.board[k] for k in range(self.size)]
        self.barrier.wait(5)
        return found

    def sum(self, array):
        return np.sum(self.gather(np.asarray(array)), axis=0)

    def max(self, array):
        return np.max(self.gather(np.asarray(array)), axis=0)


def on_ranks(work):
    barrier, board, found = threading.Barrier(len(CUTS)), {}, {}

    def rank(k):
        spread = Spread(Threads(k, len(CUTS), barrier, board), CUTS[k].start, len(WHOLE))
        try:
            found[k] = work(RankVector(WHOLE[CUTS[k]], spread))
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=rank, args=(k,)) for k in range(len(CUTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [found[k] for k in range(len(CUTS))]


@pytest.mark.parametrize("name", EQUAL)
def test_as_of_the_whole(name):
    np.testing.assert_allclose(on_ranks(EQUAL[name]), EQUAL[name](WHOLE), rtol=1e-14)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    assert all(isinstance(error, TypeError) for error in on_ranks(REFUSED[name]))
