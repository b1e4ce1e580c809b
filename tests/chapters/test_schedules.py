"""OPT-18: schedules, their exact values, and the honest Robbins-Monro flag."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from surefit.solvers import Constant, InverseSqrt, InverseTime, StepDecay, WarmupCosine
from surefit.solvers.schedules import as_schedule

EPS = np.finfo(np.float64).eps
ALL = [
    Constant(0.1),
    StepDecay(0.1, (30, 60)),
    InverseTime(0.1, 0.5),
    InverseTime(0.1, 0.0),
    InverseSqrt(0.1, 0.5),
    WarmupCosine(0.1, total=100, warmup=10),
    WarmupCosine(0.1, total=100, final=0.01),
]


@pytest.mark.spec("OPT-18")
def test_exact_values_at_the_breakpoints():
    decay = StepDecay(0.5, milestones=(10, 20))
    assert [decay(t) for t in (0, 9)] == [0.5, 0.5]
    assert [decay(t) for t in (10, 19)] == [0.5 / 10, 0.5 / 10]
    assert [decay(t) for t in (20, 10**9)] == [0.5 / 100, 0.5 / 100]
    assert [InverseTime(0.5, 0.25)(t) for t in (0, 4, 12)] == [0.5, 0.25, 0.125]
    assert [InverseSqrt(0.5, 0.25)(t) for t in (0, 12, 60)] == [0.5, 0.25, 0.125]
    assert {Constant(0.3)(t) for t in range(100)} == {0.3}
    assert [InverseTime(1.0, 1.0)(k - 1) for k in (1, 2, 4)] == [1.0, 0.5, 0.25]  # 1/k


@pytest.mark.spec("OPT-18")
def test_warmup_cosine():
    schedule = WarmupCosine(2.0, total=110, warmup=10, final=0.5)
    ramp = [schedule(t) for t in range(10)]
    np.testing.assert_allclose(ramp, 2.0 * np.arange(1, 11) / 10, rtol=4 * EPS)
    assert schedule(10) == 2.0
    assert schedule(60) == pytest.approx(1.25, rel=4 * EPS)  # half way down
    assert schedule(110) == schedule(10**6) == 0.5
    falling = [schedule(t) for t in range(10, 111)]
    assert all(a > b for a, b in pairwise(falling))


@pytest.mark.spec("OPT-18")
@pytest.mark.parametrize("schedule", ALL, ids=repr)
def test_the_robbins_monro_flag_against_the_partial_sums(schedule):
    """The flag is true exactly where the sum keeps growing and the sum of squares stops.

    Between k = 2^10 and 2^20 a divergent sum of these families grows by ln(2^10) eta0/c or more; a
    convergent sum of squares of eta0/(1+ct) has a tail below (eta0/c)^2 / 2^10.
    """
    t = np.arange(2**20)
    if isinstance(schedule, InverseTime):
        eta = schedule.eta0 / (1 + schedule.c * t)
    elif isinstance(schedule, InverseSqrt):
        eta = schedule.eta0 / np.sqrt(1 + schedule.c * t)
    else:
        eta = np.full(len(t), schedule(10**6))
        eta[:200] = [schedule(k) for k in range(200)]
    np.testing.assert_allclose(eta[:50], [schedule(k) for k in range(50)], rtol=4 * EPS)
    late, late_squares = eta[2**10 :].sum(), (eta[2**10 :] ** 2).sum()
    sum_diverges = late > 0.5 * np.log(2**10) * 0.1 / max(getattr(schedule, "c", 1.0), 1e-9)
    if getattr(schedule, "c", 1.0) == 0.0:
        sum_diverges = True  # a constant
    squares_converge = late_squares <= (0.1 / 0.5) ** 2 / 2**10
    assert schedule.robbins_monro is bool(sum_diverges and squares_converge)


@pytest.mark.spec("OPT-18")
def test_only_inverse_time_satisfies_robbins_monro():
    assert [s.robbins_monro for s in ALL] == [False, False, True, False, False, False, False]


@pytest.mark.parametrize("schedule", ALL, ids=repr)
def test_schedules_are_frozen_values(schedule):
    assert schedule == dataclasses.replace(schedule)
    assert hash(schedule) == hash(dataclasses.replace(schedule))
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.eta0 = 1.0


@pytest.mark.parametrize("kind", [Constant, InverseTime, InverseSqrt])
@pytest.mark.parametrize("eta0", [0.0, -1.0, np.nan, np.inf])
def test_bad_first_steps_are_named(kind, eta0):
    with pytest.raises(ValueError, match="eta0 must be positive"):
        kind(eta0)


def test_other_bad_arguments_are_named():
    with pytest.raises(ValueError, match="c must be finite"):
        InverseTime(0.1, -1.0)
    with pytest.raises(ValueError, match="milestones must be increasing"):
        StepDecay(0.1, (60, 30))
    with pytest.raises(ValueError, match="milestones must be increasing"):
        StepDecay(0.1, (-1, 30))
    with pytest.raises(ValueError, match="warmup must be at least 0 and below total"):
        WarmupCosine(0.1, total=10, warmup=10)


def test_as_schedule():
    assert as_schedule(2)(5) == 2.0
    assert as_schedule(np.float32(0.5))(0) == 0.5
    assert as_schedule(lambda t: 1 / (1 + t))(3) == 0.25
    for bad in (0, -0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="step must be a positive finite number"):
            as_schedule(bad)
    with pytest.raises(TypeError, match="step must be a number or a function"):
        as_schedule("fast")
    with pytest.raises(
        ValueError, match=r"step\(2\) must be a non-negative finite number, got -1.0"
    ):
        as_schedule(lambda t: 1.0 - t)(2)
