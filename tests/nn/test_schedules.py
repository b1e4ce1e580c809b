"""Learning rates by name are those of OPT-18, over the run."""

import math

import pytest

pytest.importorskip("torch")

from surefit.nn.schedules import learning_rate
from surefit.solvers.schedules import InverseSqrt, WarmupCosine


@pytest.mark.spec("OPT-18")
def test_values():
    def rates(name, **settings):
        rate = learning_rate(name, 0.8, total=8, **settings)
        return [rate(t) for t in range(8)]

    assert rates("constant") == [0.8] * 8
    assert rates("step") == pytest.approx([0.8] * 4 + [0.08] * 2 + [0.008] * 2)
    assert rates("linear") == pytest.approx([0.8 - 0.1 * t for t in range(8)])
    assert rates("inverse_time", steps_per_epoch=2) == pytest.approx(
        [0.8 / (1 + t / 2) for t in range(8)]
    )
    assert rates("inverse_sqrt", steps_per_epoch=2) == pytest.approx(
        [0.8 / math.sqrt(1 + t / 2) for t in range(8)]
    )
    assert rates("cosine", warmup=2) == [WarmupCosine(0.8, 8, 2)(t) for t in range(8)]


def test_warm_up_climbs_to_the_rate_and_goes_on():
    for name in ("constant", "linear", "step", "inverse_time", "inverse_sqrt", "cosine"):
        rate = learning_rate(name, 1.0, total=100, warmup=10)
        climb = [rate(t) for t in range(10)]
        assert climb == pytest.approx([(t + 1) / 10 for t in range(10)]), name
        assert rate(10) == 1.0, name
        assert all(rate(t + 1) <= rate(t) for t in range(10, 99)), name
        share = learning_rate(name, 1.0, total=100, warmup=0.1)
        assert [share(t) for t in range(100)] == [rate(t) for t in range(100)], name


def test_a_function_gives_the_rate_itself():
    assert learning_rate(InverseSqrt(0.5), 1.0, total=9)(3) == 0.25
    assert learning_rate(lambda t: 0.5, 1.0, total=9, warmup=2)(0) == 0.25


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "cosin"}, "schedule must be one of 'cosine'"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"lr": math.nan}, "lr must be positive"),
        ({"warmup": 10}, "below the 10 steps"),
        ({"warmup": -1}, "at least 0"),
    ],
)
def test_wrong_settings(settings, words):
    given = {"schedule": "constant", "lr": 0.1, "total": 10} | settings
    schedule, lr = given.pop("schedule"), given.pop("lr")
    with pytest.raises(ValueError, match=words):
        learning_rate(schedule, lr, **given)


def test_short_runs():
    for total in (1, 2, 3):
        for name in ("constant", "linear", "step", "cosine"):
            assert learning_rate(name, 0.1, total=total)(0) > 0
