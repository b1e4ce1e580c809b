"""Networks built to a requested error: NN-8 to NN-11."""

import dataclasses
import itertools

import numpy as np
import pytest

from surefit import Status
from surefit.nn.approximation import certify, piecewise_linear, relu_interpolant
from surefit.nn.sigmoids import barron_constant, barron_network, rectangle, rectangles

FUNCTIONS = {
    "sine": (np.sin, -3.0, 3.0, 1.0),
    "root": (np.sqrt, 0.0, 2.0, np.sqrt),
    "abs": (lambda x: np.abs(x - 0.1234), -1.0, 1.0, 1.0),
    "wiggle": (lambda x: x * np.sin(5 * x), 0.0, 2.0, 11.0),  # |f'| <= 1 + 5 x
    "constant": (np.ones_like, 0.0, 1.0, 0.0),
}


@pytest.mark.spec("NN-8")
@pytest.mark.parametrize("eps", [0.3, 0.03])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_network_meets_the_requested_eps(name, eps):
    """The error is at most eps on points the builder never saw; the pieces are the least by the modulus."""
    f, a, b, modulus = FUNCTIONS[name]
    built = relu_interpolant(f, a, b, eps=eps, modulus=modulus)
    assert built.certificate["sup error"].status is Status.HOLDS
    assert built.certificate["modulus"].status is Status.HOLDS
    x = np.random.default_rng(0).uniform(a, b, size=3000)
    assert np.abs(f(x) - built(x)).max() <= built.certificate["sup error"].observed <= eps

    def omega(d):
        return modulus(d) if callable(modulus) else modulus * d

    assert omega((b - a) / built.pieces) <= eps * (1 + 1e-9)
    assert built.pieces == 1 or omega((b - a) / (built.pieces - 1)) > eps
    assert built.network.knots.size == built.pieces - 1


@pytest.mark.spec("NN-8")
def test_the_certificate_finds_a_network_that_is_off():
    """One knot moved by 1.1 eps is enough; so is a modulus that the function does not have."""
    built = relu_interpolant(np.sin, 0.0, 6.0, eps=0.05, modulus=1.0)
    knots = np.linspace(0.0, 6.0, built.pieces + 1)
    values = np.sin(knots)
    values[40] += 0.055
    nudged = certify(piecewise_linear(knots, values), np.sin, 0.0, 6.0, eps=0.05, modulus=1.0)
    assert nudged["sup error"].status is Status.FAILS
    shifted = dataclasses.replace(built.network, offset=built.network.offset + 0.051)
    assert not certify(shifted, np.sin, 0.0, 6.0, eps=0.05, modulus=1.0).ok
    lied = relu_interpolant(lambda x: np.sin(20 * x), 0.0, 6.0, eps=0.5, modulus=1.0)
    assert lied.certificate["modulus"].status is Status.FAILS
    assert lied.certificate["modulus"].observed == pytest.approx(20, rel=0.01)


@pytest.mark.spec("NN-8")
def test_an_error_hidden_between_grid_points_is_not_claimed_away():
    """A modulus so slow that no affordable grid decides it leaves the claim undecided, not holding."""
    slow = relu_interpolant(
        lambda x: 0.02 * np.sin(40 * x), 0.0, 1.0, eps=0.1, modulus=lambda d: 0.09
    )
    assert slow.pieces == 1
    assert slow.certificate["sup error"].status is Status.UNDECIDED


@pytest.mark.spec("NN-8")
def test_the_network_is_a_torch_module():
    torch = pytest.importorskip("torch")
    built = relu_interpolant(np.cos, -2.0, 2.0, eps=0.05, modulus=1.0)
    x = np.linspace(-2, 2, 333)
    out = built.network.to_module()(torch.from_numpy(x)[:, None]).detach().numpy().ravel()
    np.testing.assert_allclose(out, built(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"eps": 0.0}, "eps must be a number above 0"),
        ({"b": 0.0}, "a < b"),
        ({"modulus": -1.0}, "Lipschitz constant >= 0"),
        ({"eps": 1e-9}, "needs more than 20000 pieces"),
        ({"f": lambda x: np.full_like(x, np.nan)}, "one finite number"),
        ({"f": lambda x: 1.0}, "one finite number"),
    ],
)
def test_bad_requests_are_named(change, words):
    request = {"f": np.sin, "a": 0.0, "b": 1.0, "eps": 0.1, "modulus": 1.0, **change}
    f, a, b = request.pop("f"), request.pop("a"), request.pop("b")
    with pytest.raises(ValueError, match=words):
        relu_interpolant(f, a, b, **request)


@pytest.mark.spec("NN-11")
@pytest.mark.parametrize("seed", range(5))
def test_any_piecewise_linear_function_exactly(seed):
    """The network equals numpy's interpolation; slopes are partial sums of the a_j, at uneven knots."""
    rng = np.random.default_rng(seed)
    knots = np.cumsum(rng.uniform(0.1, 2.0, size=12)) - 5
    values = rng.normal(size=12)
    r = piecewise_linear(knots, values)
    x = np.concatenate([knots, rng.uniform(knots[0], knots[-1], 500)])
    np.testing.assert_allclose(r(x), np.interp(x, knots, values), rtol=0, atol=1e-12)
    np.testing.assert_allclose(r.slopes, np.diff(values) / np.diff(knots), rtol=1e-9, atol=1e-12)
    formula = r.slope * x + r.offset
    for a, k in zip(r.jumps, r.knots, strict=True):
        formula = formula + a * np.maximum(x - k, 0)
    np.testing.assert_allclose(r(x), formula, rtol=0, atol=1e-12)


def test_points_that_make_no_function_are_refused():
    for knots, values in [([0.0, 0.0], [1.0, 2.0]), ([0.0, np.nan], [1.0, 2.0])]:
        with pytest.raises(ValueError, match="knots must increase"):
            piecewise_linear(knots, values)
    with pytest.raises(ValueError, match="two or more points"):
        piecewise_linear([0.0], [1.0])


def _ball(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(size=(n, 1)) ** (1 / d)


@pytest.mark.spec("NN-9")
@pytest.mark.parametrize("dimension", [1, 3, 6])
def test_barrons_constant_is_the_mean_norm(dimension):
    draws = np.linalg.norm(np.random.default_rng(0).normal(size=(200_000, dimension)), axis=1)
    error = 4 * draws.std() / np.sqrt(draws.size)  # four standard errors
    assert barron_constant(dimension) == pytest.approx(draws.mean(), abs=error)


@pytest.mark.spec("NN-9")
def test_the_squared_error_falls_as_one_over_n():
    """Mean squared error <= (2rC)^2 / n on the ball for n sigmoids drawn by Barron's measure: slope -1.

    With the heights refitted, and sigmoids as smooth as the function, the log-log slope is below -1.
    Errors are measured on points that the fit did not see.
    """
    dimension, counts, repeats = 3, [4, 8, 16, 32, 64, 128], 20
    X, fresh = _ball(1500, dimension, 1), _ball(1500, dimension, 2)
    f, at_fresh = (np.exp(-0.5 * (part**2).sum(axis=1)) for part in (X, fresh))

    def error(net):
        return ((net(fresh) - at_fresh) ** 2).mean()

    drawn, refitted = [], []
    for n in counts:
        steep = [barron_network(n, dimension=dimension, random_state=s) for s in range(repeats)]
        smooth = [
            barron_network(n, dimension=dimension, steepness=4.0, random_state=s).refitted(X, f)
            for s in range(repeats)
        ]
        drawn.append(np.mean([error(net) for net in steep]))
        refitted.append(np.mean([error(net) for net in smooth]))
    bound = (2 * barron_constant(dimension)) ** 2 / np.array(counts)
    assert (np.array(drawn) <= bound).all()
    assert (np.array(refitted) <= bound).all()
    # the mean error is exactly v / n; means of 20 draws leave about 0.05 of noise in the slope
    assert np.polyfit(np.log(counts), np.log(drawn), 1)[0] == pytest.approx(-1, abs=0.15)
    assert np.polyfit(np.log(counts), np.log(refitted), 1)[0] <= -1


@pytest.mark.spec("NN-9")
def test_the_drawn_network_has_the_function_as_its_mean():
    """Averaged over many draws, the network is f: the heights and thresholds are Barron's."""
    X = np.array([[0.0, 0.0], [0.5, 0.0], [-0.3, 0.8], [0.0, -1.0]])
    net = barron_network(100_000, dimension=2, random_state=0)
    f = np.exp(-0.5 * (X**2).sum(axis=1))
    spread = 2 * barron_constant(2) / np.sqrt(100_000)  # the largest standard error there can be
    np.testing.assert_allclose(net(X), f, rtol=0, atol=4 * spread)


@pytest.mark.spec("NN-10")
def test_a_rectangle_of_four_sigmoids():
    """2 inside, 1 in the strips beside, 0 in the corners, as w grows; 2 is approached from below."""
    low, high = np.array([-1.0, 0.5]), np.array([2.0, 1.5])
    points = np.array(list(itertools.product([-2.0, 0.0, 3.0], [0.0, 1.0, 2.0])))
    expected = ((points > low) & (points < high)).sum(axis=1)
    assert set(expected) == {0, 1, 2}
    for steepness in (20.0, 100.0, 1e4):
        value = rectangle(points, low, high, steepness=steepness)
        off = 4 * np.exp(
            -0.5 * steepness
        )  # each sigmoid is this near 0 or 1, half a unit off its edge
        np.testing.assert_allclose(value, expected, rtol=0, atol=max(off, 1e-12))
    grid = np.random.default_rng(0).uniform(-4, 4, size=(5000, 2))
    inside = ((grid > low) & (grid < high)).all(axis=1)
    value = rectangle(grid, low, high, steepness=1e9)
    assert (value[inside] > 1.5).all()
    assert (value[~inside] < 1.5).all()


@pytest.mark.spec("NN-10")
def test_thresholded_rectangles_approximate_a_function_of_two_numbers():
    """The error is at most the change of f over half a cell: it halves as the cells double."""

    def f(X):
        return np.sin(2 * X[:, 0]) + X[:, 1] ** 2

    X = np.random.default_rng(1).uniform(size=(2000, 2))
    for cells in (8, 16, 32):
        net = rectangles(f, [0, 0], [1, 1], cells=cells, steepness=1e8)
        # gradient at most (2, 2), a point is at most half a cell off in each coordinate
        assert np.abs(net(X) - f(X)).max() <= 2 / cells


def test_bad_rectangles_and_counts_are_named():
    with pytest.raises(ValueError, match="low must be below high"):
        rectangle([[0.0, 0.0]], [1, 1], [0, 2], steepness=1.0)
    with pytest.raises(ValueError, match="steepness must be above 0"):
        rectangle([[0.0, 0.0]], [0, 0], [1, 1], steepness=0.0)
    with pytest.raises(ValueError, match="units must be 1 or more"):
        barron_network(0, dimension=2)
    with pytest.raises(ValueError, match="radius must be a number above 0"):
        barron_network(2, dimension=2, radius=-1.0)
    with pytest.raises(ValueError, match="cells must be 1 or more"):
        rectangles(lambda X: X[:, 0], [0, 0], [1, 1], cells=0)
