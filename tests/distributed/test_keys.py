"""What names the state of a fit in a checkpoint, and the numbers that ranks share."""

import numpy as np
import pytest

from surefit.cluster import KMeans
from surefit.distributed import Alone, key_of, shared_random_state


def test_a_key_sees_all_numbers_of_the_parameters():
    first = np.zeros((2000, 3))  # so long that its repr leaves out the middle
    other = first.copy()
    other[1000, 1] = 1e-9
    assert key_of(KMeans(2000, init=first), "1f") == key_of(KMeans(2000, init=first.copy()), "1f")
    assert key_of(KMeans(2000, init=first), "1f") != key_of(KMeans(2000, init=other), "1f")
    assert key_of(KMeans(3), "1f") != key_of(KMeans(3), "2f")
    assert key_of(KMeans(3), "1f") != key_of(KMeans(3, max_iter=7), "1f")
    assert key_of(KMeans(3, verbose=1, certify="full"), "1f") == key_of(KMeans(3), "1f")
    torch = pytest.importorskip("torch")
    assert key_of(KMeans(2000, init=torch.as_tensor(other)), "1f") == key_of(
        KMeans(2000, init=other), "1f"
    )


def test_a_generator_counts_by_its_state():
    seeds = [KMeans(3, random_state=np.random.RandomState(seed)) for seed in (0, 0, 1)]
    keys = [key_of(model, "1f") for model in seeds]
    assert keys[0] == keys[1] != keys[2]


class Two(Alone):
    """The second of two ranks; the first one's generator was seeded with 5."""

    rank, size = 1, 2

    def share(self, thing):
        return np.random.RandomState(5).get_state()


@pytest.mark.parametrize("given", [None, np.random.RandomState(9), np.random])
def test_ranks_draw_alike(given):
    np.testing.assert_array_equal(
        shared_random_state(Two(), given).uniform(size=4), np.random.RandomState(5).uniform(size=4)
    )


def test_a_seed_gives_the_numbers_of_one_process():
    np.testing.assert_array_equal(
        shared_random_state(Two(), 3).uniform(size=4), np.random.RandomState(3).uniform(size=4)
    )
