"""Randomised smoothing: limits, error rates at the boundary, draws saved, counts that can be recounted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from surefit import Kind  # noqa: E402
from surefit.robust._looks import looks, lower_limit, upper_limit  # noqa: E402
from surefit.robust.smoothing import RandomizedSmoothing  # noqa: E402


def half_space(x):
    """Class 1 right of 0: its smoothed radius is |x_0| exactly."""
    return (x[:, 0] > 0).long()


def test_limits_are_those_of_clopper_and_pearson():
    k, n = np.array([0, 3, 50, 99, 100]), 100
    low, high = lower_limit(k, n, 0.01), upper_limit(k, n, 0.01)
    tails = stats.binom.sf(k[1:] - 1, n, low[1:]), stats.binom.cdf(k[:-1], n, high[:-1])
    np.testing.assert_allclose(np.concatenate(tails), 0.01, rtol=1e-9)
    assert low[0] == 0.0
    assert high[-1] == 1.0


@pytest.mark.parametrize(("n", "delta"), [(100, 0.1), (5000, 0.001), (100_000, 0.001)])
def test_shares_add_up_to_delta(n, delta):
    plan = looks(n, delta, block=128)
    assert plan.shares.sum() == pytest.approx(delta, rel=1e-12)
    assert (plan.shares > 0).all()
    assert plan.draws[-1] == n
    assert (np.diff(plan.draws) > 0).all()


@pytest.mark.parametrize("p0", [0.6915, 0.84, 0.9772])
def test_streams_on_the_boundary_are_not_certified_more_often_than_delta(p0):
    """4000 Bernoulli streams at p = p0: a false certificate at any look, at most delta of them.

    The bound is exact (a union over looks), so that the count is at most binomial(4000, delta); its upper
    limit at 1e-6 is allowed.
    """
    delta, streams = 0.05, 4000
    plan = looks(20_000, delta, block=128)
    random = np.random.default_rng(0)
    wrong, gone, successes, before = (
        np.zeros(streams, bool), np.zeros(streams, bool), np.zeros(streams), 0,
    )  # fmt: skip
    for n, share in zip(plan.draws, plan.shares):
        successes += random.binomial(n - before, p0, size=streams)
        before = n
        wrong |= lower_limit(successes, n, share) > p0
        gone |= upper_limit(successes, n, share) < p0
    most = stats.binom.isf(1e-6, streams, delta)
    assert wrong.sum() <= most
    assert gone.sum() <= most
    assert wrong.sum() >= 1  # the test is not vacuous: some error is spent


def test_error_rate_of_certify_at_itself_on_the_boundary():
    """2000 rows at distance 1/2 from the boundary asked for radius 1/2: p is exactly p0."""
    x = torch.zeros(2000, 1, dtype=torch.float64) + 0.5
    smooth = RandomizedSmoothing(half_space, 0.5, random_state=3, batch_size=1 << 15)
    found = smooth.certify_at(x, 0.5 + 1e-12, n_max=1500, delta=0.05)
    assert (found.radius > 0).sum() <= stats.binom.isf(1e-6, 2000, 0.05)
    assert found.impossible[:, 0].sum() <= stats.binom.isf(1e-6, 2000, 0.05)


@pytest.mark.spec("ADV-1")
def test_radii_of_a_half_space():
    """The true radius is |x_0|; a radius above it is a false one, of probability delta each."""
    distance = torch.linspace(0.05, 1.2, 24, dtype=torch.float64)
    x = torch.stack([distance, torch.zeros(24, dtype=torch.float64)], dim=1)
    x[::2, 0] *= -1
    smooth = RandomizedSmoothing(half_space, 0.5, batch_size=1 << 14)
    found = smooth.certify(x, n=20_000, delta=1e-4)
    assert (found.radius <= distance.numpy()).all()
    near = distance.numpy() < 0.8
    assert (found.radius[near] >= distance.numpy()[near] - 0.05).all()
    shown = found.radius > 0
    assert (found.label[shown] == (x[:, 0] > 0).numpy()[shown]).all()
    expected = 0.5 * stats.norm.ppf(
        stats.beta.ppf(1e-4, found.successes, 20_000 - found.successes + 1)
    )
    np.testing.assert_allclose(found.radius[shown], expected[shown])
    assert found.claims[0].kind is Kind.STATISTICAL
    assert found.certificate.ok


def test_sequential_draws_are_far_fewer_and_reach_the_same_grid():
    distance = torch.linspace(0.02, 1.5, 60, dtype=torch.float64)
    x, grid = distance[:, None].clone(), np.array([0.25, 0.5, 0.75, 1.0])
    smooth = RandomizedSmoothing(half_space, 0.5, batch_size=1 << 15)
    fixed = smooth.certify(x, n=20_000, delta=0.001)
    quick = smooth.certify(x, n=20_000, delta=0.001, sequential=True)
    on_grid = np.concatenate([[0.0], grid])[(fixed.radius[:, None] >= grid).sum(axis=1)]
    away = (
        np.abs(distance.numpy()[:, None] - grid).min(axis=1) > 0.04
    )  # outside of what 20,000 draws tell
    np.testing.assert_array_equal(quick.radius[away], on_grid[away])
    assert (quick.radius <= distance.numpy()).all()
    assert 3 * quick.total_draws < fixed.total_draws  # radii spread evenly: the hardest set
    assert quick.certificate.ok


def test_predict_abstains_between_classes():
    x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    assert RandomizedSmoothing(half_space, 0.5).predict(x).tolist() == [-1, 1, 0]


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(12, 5)


@pytest.mark.parametrize("sequential", [False, True])
def test_counts_can_be_recounted_and_forged_ones_are_found(sequential):
    net, x = small()
    smooth = RandomizedSmoothing(net, 0.25, random_state=7)
    found = smooth.certify(x, n=1000, delta=0.01, sequential=sequential, radii=(0.1, 0.3))
    assert found.recheck(net, x).ok
    assert found.recheck(net, x, rows=[3, 5], batch_size=50).ok
    forged = replace(found, successes=np.minimum(found.successes + 40, found.draws))
    assert not forged.recheck(net, x).ok
    assert not replace(found, radius=found.radius + 0.05).certificate.ok
    if sequential:  # votes at earlier looks are counted again as well
        path = tuple(np.minimum(votes + 40, 128) for votes in found.path[:1]) + found.path[1:]
        assert not replace(found, path=path).recheck(net, x).ok
    assert not replace(found, seed=8).recheck(net, x).ok
    other = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    assert not found.recheck(other, x).ok


def test_draws_do_not_depend_on_how_rows_are_batched():
    net, x = small()
    a = RandomizedSmoothing(net.double(), 0.3, batch_size=64).certify(x, n=700, delta=0.01)
    b = RandomizedSmoothing(net, 0.3, batch_size=5000).certify(x, n=700, delta=0.01)
    assert (a.successes == b.successes).all()
    again = RandomizedSmoothing(net, 0.3).certify(x, y=a.chosen, n=700, delta=0.01)
    assert again.certified_accuracy(0.0) == 1.0 or (again.label == -1).any()
    assert math.isclose(again.certified_accuracy(9.0), 0.0)
    net.train()
    RandomizedSmoothing(net, 0.3).predict(x)
    assert net.training


def test_module_with_one_column():
    net = nn.Linear(2, 1)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 0.0]]))
        net.bias.zero_()
    found = RandomizedSmoothing(net, 0.5).certify(torch.tensor([[1.0, 0.0], [-1.0, 3.0]]), n=2000)
    assert found.label.tolist() == [1, 0]


@pytest.mark.parametrize("sequential", [False, True])
def test_what_follows_from_the_counts_cannot_be_changed(sequential):
    x = torch.tensor([[0.5], [-0.4], [2.0], [0.01]], dtype=torch.float64)
    found = RandomizedSmoothing(half_space, 0.5).certify(x, n=1000, sequential=sequential)
    assert [claim.name for claim in found.claims] == ["smoothed radii", "smoothed labels"]
    assert found.certificate.ok
    assert (found.label == -1).any()
    forged = [
        {"label": 1 - found.label},
        {"label": found.chosen},  # also of the row that abstains
        {"chosen": 1 - found.chosen},
        {"p_low": found.p_low + 1e-6},
        {"p_low": np.where(np.arange(4) == 2, np.nan, found.p_low)},
        {"draws": found.draws + 1},
        {"draws": np.where(np.arange(4) == 1, 900, found.draws)},
    ]
    if sequential:
        assert found.impossible.any()
        assert not found.impossible.all()
        forged += [{"impossible": ~found.impossible}, {"impossible": found.impossible[:, :2]}]
        forged += [{"grid": found.grid[:1]}, {"n": 1001}]
    for change in forged:
        claim = replace(found, **change).certificate["smoothed labels"]
        assert claim.status.name == "FAILS", list(change)
    less = replace(found, p_low=0.5 * found.p_low)  # a limit that claims less is one too
    assert less.certificate.ok


def test_impossible_radii_are_those_that_the_upper_limits_exclude():
    x = torch.tensor([[0.5], [-0.1], [2.0]], dtype=torch.float64)
    found = RandomizedSmoothing(half_space, 0.5).certify(x, n=1000, sequential=True)
    plan = looks(1000, found.delta, block=128)
    for row in range(3):
        high = 1.0
        for look, share, votes in zip(plan.draws, plan.shares, found.path):
            if look <= found.draws[row]:
                high = min(high, float(upper_limit(votes[row], look, share)))
        expected = [high < stats.norm.cdf(r / 0.5) for r in found.grid]
        assert found.impossible[row].tolist() == expected


def test_rows_that_used_all_their_draws_can_be_recounted():
    """1000 draws are not whole blocks of 128; the boundary keeps a row to the end."""
    x = torch.tensor([[0.5], [2.0]], dtype=torch.float64)
    found = RandomizedSmoothing(half_space, 0.5).certify_at(x, 0.5, n_max=1000)
    assert found.draws.tolist()[0] == 1000
    assert found.recheck(half_space, x).ok
    last = (*found.path[:-1], found.path[-1] + 1)
    more = found.successes + 1
    for change in ({"path": last}, {"successes": more}):
        claim = replace(found, **change).recheck(half_space, x)["counts"]
        assert (claim.status.name, claim.observed) == ("FAILS", 1.0)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_one_class_of_votes_is_tested_like_two(code):
    """2 / 2**n is at most delta from n = 11 on; fewer votes decide nothing."""

    def constant(x):
        return torch.full((len(x),), code)

    smooth, x = RandomizedSmoothing(constant, 0.5), torch.zeros(3, 2)
    assert smooth.predict(x, n=10, delta=0.001).tolist() == [-1] * 3
    assert smooth.predict(x, n=11, delta=0.001).tolist() == [code] * 3


def test_each_part_of_the_module_has_its_own_mode_back():
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    net.train()
    net[1].eval()
    RandomizedSmoothing(net, 0.3).predict(torch.randn(3, 5), n=10)
    assert [part.training for part in net.modules()] == [True, True, False, True, True]


def test_labels_are_kept_as_they_were_given():
    x = torch.tensor([[0.5], [-0.5], [1.0]], dtype=torch.float64)
    for y in ([1, 1, 1], torch.tensor([1, 1, 1]), np.array([1, 1, 1], dtype=np.uint8)):
        found = RandomizedSmoothing(half_space, 0.5).certify(x, y, n=1000)
        assert found.certified_accuracy(0.0) == pytest.approx(2 / 3)
