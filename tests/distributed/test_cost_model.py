"""The numbers that docs/scaling.md says an iteration hands to sums are those that are counted, exactly."""

import json

import numpy as np
import pytest

from .costs import ITERATIVE, K, P, T
from .launch import launch

pytest.importorskip("torch.distributed")


def packed(k):
    """A symmetric matrix and a right-hand side."""
    return k * (k + 1) // 2 + k


# name: float64 numbers an iteration, messages an iteration
MODEL = {
    "k-means": (K * P + K + 1, 1),
    "mixture, full": (1 + K + K * P + K * P**2, 1),
    "mixture, tied": (1 + K + K * P + P**2, 1),
    "mixture, diag": (1 + K + 2 * K * P, 1),
    "mixture, spherical": (1 + K + 2 * K * P, 1),
    "Bernoulli mixture": (1 + K + K * P, 1),
    "ALS": (3 + P * packed(K) + K**2, 3),
    "ALS, biases": (3 + P * packed(K + 1) + (K + 1) ** 2, 3),
    "ALS, implicit": (3 + P * packed(K) + 2 * K**2, 4),
    "ALS, full matrix": (1 + 2 * K**2 + K * P, 1),
}
# the same for whole fits that do not iterate, without a certificate
DIRECT = dict.fromkeys(("ridge", "least squares"), (P**2 + P * (T + 1) + T + 2, 4))


FOUR = pytest.param(4, marks=pytest.mark.slow)  # what a rank sends does not depend on their number


@pytest.fixture(scope="module", params=[2, FOUR], ids="{} ranks".format)
def counted(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("costs") / "costs.json"
    launch("costs", request.param, str(path))
    return json.loads(path.read_text(encoding="utf8")) | {"ranks": request.param}


@pytest.mark.parametrize("name", MODEL | DIRECT)
def test_what_is_handed_to_sums_is_what_the_model_says(name, counted):
    assert MODEL.keys() == ITERATIVE.keys()
    numbers, messages = (MODEL | DIRECT)[name]
    assert counted[name] == [8 * numbers, messages]


@pytest.mark.spec("LM-19")
def test_a_vote_takes_a_bit_an_entry(counted):
    """1001 signs in 126 bytes from each rank; every rank receives the majority, 0 where it is even."""
    sent, votes = counted["vote"]
    assert sent == 126
    each = [np.arange(1001) % (2 + rank) - 0.5 for rank in range(counted["ranks"])]
    np.testing.assert_array_equal(votes, np.sign(np.sign(each).sum(axis=0)))
