"""Bad input to bounds of networks and to smoothing: each error names the argument, the value, the remedy."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from surefit.robust import Threat  # noqa: E402
from surefit.robust._graph import build  # noqa: E402
from surefit.robust.network_bounds import (  # noqa: E402
    certified_radius,
    network_bounds,
    network_lower,
)
from surefit.robust.smoothing import RandomizedSmoothing  # noqa: E402

NET = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
X = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("threat", "error", "message"),
    [
        (Threat(0.1, mutable=[True, True, False]), ValueError, "threat has mutable"),
        (Threat(0.1, step=0.5), ValueError, "threat has step"),
        (Threat(0.1, groups=[[0, 1]], flips=1), ValueError, "groups, flips"),
        (Threat(0.1, lower=[0.0, 0.0]), ValueError, "lower has 2 entries, but the rows have 3"),
        (0.1, TypeError, "threat must be a surefit.robust.Threat"),
    ],
)
def test_threats_that_have_no_bound(threat, error, message):
    with pytest.raises(error, match=message):
        network_lower(NET, X, [0, 1], threat)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "lp"}, "method must be one of auto"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number of at least 1, got 1.5"),
        ({"batch_size": "3"}, "batch_size must be a whole number of at least 1, got '3'"),
        ({"steps": -1}, "steps must be a whole number of at least 1, got -1"),
        ({"steps": 2.5}, "steps must be a whole number of at least 1, got 2.5"),
        ({"arithmetic": "float16"}, "arithmetic must be 'auto' or one of"),
        ({"codes": [0, 3]}, "codes must lie between 0 and 2"),
        ({"codes": [-1, 0]}, "codes must lie between 0 and 2"),
        ({"codes": [0]}, "codes must be 2 whole numbers"),
        ({"codes": [0.0, 1.0]}, "codes must be 2 whole numbers"),
        ({"x": X.long()}, "x must hold rows of floating-point numbers"),
        ({"x": X + float("nan")}, "x must be finite"),
        ({"x": torch.zeros(2, 5)}, "cannot take rows of shape"),
    ],
)
def test_arguments_that_make_no_sense(given, message):
    call = {"x": X, "codes": [0, 1], **given}
    with pytest.raises(ValueError, match=message):
        network_lower(NET, call.pop("x"), call.pop("codes"), Threat(0.1), **call)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Squares(nn.Module):
    def forward(self, x):
        return x * x


class Two(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), "1: no bound is known for LayerNorm"),
        (nn.Sequential(nn.Linear(3, 3), nn.GELU()), "GELU"),
        (nn.Sequential(nn.Linear(3, 3), nn.Softmax(1)), "Softmax"),
        (Branching(), "cannot be written as a fixed list"),
        (Squares(), "mul of shapes"),
        (Two(), "must return one tensor"),
        (nn.LeakyReLU(-0.5), "slope between 0 and 1"),
        (nn.ELU(2.0), "convex"),
        (nn.Unflatten(1, (1, 3)), r"scores of shape\s+\(n, classes\)"),
    ],
)
def test_layers_without_a_bound_are_named(module, message):
    with pytest.raises(NotImplementedError, match=message):
        network_bounds(module.eval(), X, Threat(0.1))


def test_supported_layers_are_listed():
    with pytest.raises(NotImplementedError, match="Supported: Linear, Conv1d"):
        network_bounds(nn.Sequential(nn.LayerNorm(3)), X, Threat(0.1))


def test_training_mode_is_refused_where_it_matters():
    pictures = torch.zeros(1, 1, 4, 4)
    net = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 2))
    with pytest.raises(ValueError, match=r"BatchNorm2d.* call module.eval\(\) first"):
        network_lower(net, pictures, [0], Threat(0.1))
    net[0].eval()
    with pytest.raises(ValueError, match=r"Dropout.* call module.eval\(\) first"):
        network_lower(net, pictures, [0], Threat(0.1))
    assert network_lower(net.eval(), pictures, [0], Threat(0.1)).shape == (1,)


def test_no_rows_and_bad_radii():
    assert network_lower(NET, X[:0], torch.zeros(0, dtype=torch.int64), Threat(0.1)).shape == (0,)
    with pytest.raises(ValueError, match="most must be a positive number"):
        certified_radius(NET, X, [0, 1], most=0.0)
    for halvings in (-1, 0, 1.5, True):
        with pytest.raises(ValueError, match="halvings must be a whole number of at least 1"):
            certified_radius(NET, X, [0, 1], halvings=halvings)
    with pytest.raises(TypeError, match=r"module must be a torch\.nn\.Module"):
        network_lower(lambda x: x, X, [0, 1], Threat(0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomizedSmoothing(NET, 0.0), "sigma must be a positive number"),
        (lambda: RandomizedSmoothing(NET, 1.0, batch_size=0), "batch_size must be a whole number"),
        (lambda: RandomizedSmoothing(NET, 1.0, batch_size=1.5), "batch_size must be a whole"),
        (lambda: RandomizedSmoothing(NET, 1.0).certify(X, n=0), "n must be a whole number"),
        (lambda: RandomizedSmoothing(NET, 1.0).certify(X, delta=1.0), "delta must lie strictly"),
        (lambda: RandomizedSmoothing(NET, 1.0).certify_at(X, -1.0), "radii must be positive"),
        (lambda: RandomizedSmoothing(NET, 1.0).predict(X / 0), "X must be finite"),
        (lambda: RandomizedSmoothing(NET, 1.0).predict(X.long()), "X must hold rows"),
        (lambda: RandomizedSmoothing(lambda x: x, 1.0).predict(X), "model must give"),
        (
            lambda: RandomizedSmoothing(NET, 1.0).certify(X, n=10).certified_accuracy(0.1),
            "needs labels",
        ),
        (lambda: RandomizedSmoothing(NET, 1.0).certify(X, n=10).recheck(NET, X[:1]), "X has 1 row"),
    ],
)
def test_smoothing_says_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_smoothing_needs_something_to_call():
    with pytest.raises(TypeError, match=r"model must be an nn\.Module or a callable"):
        RandomizedSmoothing(3, 1.0)


def test_torch_is_not_loaded_with_the_package():
    code = "import sys, surefit, surefit.robust; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_module_that_changes_its_input_in_place_is_refused():
    class InPlace(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

        def forward(self, x):
            z = self.first(x)
            return self.last(z + torch.nn.functional.relu(z, inplace=True))

    torch.manual_seed(0)
    with pytest.raises(NotImplementedError, match="in place"):
        network_lower(InPlace(), torch.randn(3, 3), [0, 1, 0], Threat(0.1))


class Body(nn.Module):
    """A function between two layers; ``body`` sees the module, for its constants, and the hidden values."""

    def __init__(self, body):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.body = nn.Linear(3, 3), nn.Linear(3, 2), body
        self.register_buffer("constant", torch.tensor([1.0, -2.0, 0.5]))

    def forward(self, x):
        return self.last(self.body(self, self.first(x)))


def added(net, z):
    kept = z
    z += 1.0
    return kept


def subtracted(net, z):
    kept = z
    z -= net.constant
    return kept


def multiplied(net, z):
    kept = z
    z *= 0.5
    return kept + z


def divided(net, z):
    kept = z
    z /= 2.0
    return kept


def branch_added(net, z):
    kept = z
    z += torch.tanh(z)
    return kept


def a_view(net, z):
    flat = z.view(z.size(0), -1)
    flat += 1.0
    return z


def a_slice(net, z):
    torch.relu_(z[:, :2])
    return z


def a_method(net, z):
    return z.relu_() + z


def by_position(net, z):
    return F.leaky_relu(z, 0.1, True) + z


@pytest.mark.parametrize(
    "body",
    [added, subtracted, multiplied, divided, branch_added, a_view, a_slice, a_method, by_position],
)
def test_a_value_read_after_it_was_written_over_is_refused(body):
    with pytest.raises(NotImplementedError, match="another layer changed in place"):
        build(Body(body), (3,))


def test_a_write_that_the_first_rows_do_not_show_is_refused():
    """ReLU changes nothing at these rows, so that a comparison of scores there shows nothing."""
    net = Body(lambda net, z: z + net.plain(torch.tanh(z)) + 0.0 * z)
    net.plain = nn.ReLU(inplace=True)
    assert build(net, (3,)).outputs == 2  # tanh's own memory is written to, and nobody reads it
    net = Body(lambda net, z: F.relu(z, inplace=True) + z)
    with torch.no_grad():
        net.first.bias.fill_(5.0)
    with pytest.raises(NotImplementedError, match="changed in place"):
        network_lower(net, X, [0, 1], Threat(100.0))


def clamped(module, args, output):
    return output.clamp(max=9.0)


def test_hooks_and_replaced_forwards_are_refused():
    """They do nothing at the rows, and torch.fx does not see them at a layer."""
    for change in (
        lambda net: net[0].register_forward_hook(clamped),
        lambda net: net[2].register_forward_pre_hook(lambda module, args: None),
        lambda net: net.register_forward_hook(clamped),
        lambda net: setattr(net[1], "forward", torch.relu),
    ):
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        assert network_lower(net, X, [0, 1], Threat(0.1)).shape == (2,)
        change(net)
        with pytest.raises(NotImplementedError, match="hooks and replaced forward"):
            network_lower(net, X, [0, 1], Threat(0.1))


def test_a_call_that_is_not_forward_is_refused():
    """It changes nothing at the row, and torch.fx does not see it; at 2 the score falls by 30."""

    class Steep(nn.Sequential):
        def __call__(self, x):
            return super().__call__(x - 10.0 * torch.relu(x - 1.0))

    net = Steep(nn.Linear(1, 2))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [0.0]]))
        net[0].bias.copy_(torch.tensor([3.0, 0.0]))
    assert net(torch.tensor([[2.0]])).argmax() == 1
    with pytest.raises(NotImplementedError, match="__call__"):
        network_lower(net, torch.zeros(1, 1), [0], Threat(2.0))


def test_constants_that_the_precision_of_the_weights_loses_are_refused():
    """(1e8 + 1) - 1e8 is 0 in float32, and 1 in the bound's float64."""

    def cancelled(net, z):
        return z * ((net.big + net.one) - net.big)

    net = Body(cancelled)
    net.big, net.one = nn.Parameter(torch.tensor(1e8)), nn.Parameter(torch.tensor(1.0))
    assert torch.equal(net(X), net(X + 1.0))
    with pytest.raises(NotImplementedError, match=r"float32 rounds by more than a bit"):
        network_lower(net, X, [0, 1], Threat(0.1))
    assert network_lower(net.double(), X.double(), [0, 1], Threat(0.1)).isfinite().all()
    net.float().body = lambda net, z: z * (net.big + net.one).sqrt() * (net.constant > 0).float()
    assert network_lower(net, X, [0, 1], Threat(0.1)).isfinite().all()


@pytest.mark.parametrize(
    "body",
    [
        lambda net, z: torch.dropout(z, 0.5, True),
        lambda net, z: torch.dropout(z, p=0.5, train=True),
        lambda net, z: torch.dropout(input=z, p=0.5, train=True),
        lambda net, z: F.dropout(z, 0.5, True),
    ],
)
def test_dropout_in_training_is_seen_wherever_it_is_said(body):
    with pytest.raises(ValueError, match=r"dropout.* call module.eval\(\) first"):
        build(Body(body), (3,))
    rest = Body(lambda net, z: F.dropout(torch.dropout(z, 0.5, False), 0.5, False))
    assert len(build(rest, (3,)).nodes) == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda net, z: torch.tanh(z, out=net.constant), "tanh with out="),
        (lambda net, z: z[:, :1] + net.constant, "more entries than a row"),
        (lambda net, z: net.constant * z[:, :1], "more entries than a row"),
        (lambda net, z: torch.sub(z, 1.0, alpha=2), "sub with"),
        (lambda net, z: net.last(input=z), "this use of last"),
    ],
)
def test_calls_that_cannot_be_read_are_named(body, message):
    with pytest.raises(NotImplementedError, match=message):
        build(Body(body), (3,))


def test_scores_that_overflow_have_no_bound():
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)).double()
    for part in net:
        nn.init.constant_(part.weight, 1e200)
    with pytest.raises(NotImplementedError, match="scores that are NaN or infinite"):
        network_lower(net, X.double() + 1.0, [0, 1], Threat(0.1))


def test_weights_in_float16_have_no_bound_unless_the_arithmetic_is_chosen():
    net = nn.Sequential(nn.Linear(3, 2)).half()
    with pytest.raises(NotImplementedError, match=r"passes in float16.*module\.float\(\)"):
        network_lower(net, X, [0, 1], Threat(0.1))
    assert network_lower(net, X, [0, 1], Threat(0.1), arithmetic="float64").isfinite().all()


@pytest.mark.parametrize("y", [[0], [[0, 1]], [0.7, 1.0], [0, -1], [True, False], ["a", "b"]])
def test_labels_of_smoothing_are_whole_numbers_one_a_row(y):
    with pytest.raises(ValueError, match=r"y must have one class 0, 1, \.\.\. a row: 2 whole"):
        RandomizedSmoothing(NET, 1.0).certify(X, y, n=10)


@pytest.mark.parametrize("value", [0, 1.5, True, 10.0, None])
def test_numbers_of_draws_are_whole(value):
    smooth = RandomizedSmoothing(NET, 1.0)
    for call in (
        lambda: smooth.predict(X, n=value),
        lambda: smooth.certify(X, n=value),
        lambda: smooth.certify_at(X, 0.5, n_max=value),
    ):
        with pytest.raises(
            ValueError, match=f"n must be a whole number of at least 1, got {value}"
        ):
            call()
    with pytest.raises(ValueError, match="n0 must be a whole number of at least 1"):
        smooth.certify(X, n=10, n0=value)


@pytest.mark.parametrize(
    ("module", "got"), [(Two(), "got tuple"), (nn.Unflatten(1, (1, 3)), r"got \(1024, 1, 3\)")]
)
def test_smoothing_needs_scores(module, got):
    with pytest.raises(ValueError, match=rf"the module must give scores of shape .*, {got}"):
        RandomizedSmoothing(module, 1.0).predict(X)


class Lost(nn.Module):
    """NaN where the first entry is above 1: inf - inf."""

    def forward(self, x):
        return x + torch.where(x[:, :1] > 1.0, float("nan"), 0.0)


def test_votes_of_scores_that_are_nan_are_no_votes():
    """argmax takes NaN for the largest: column 0 would have all votes, and a radius."""
    smooth = RandomizedSmoothing(Lost(), 0.1)
    assert smooth.certify(X, n=100).label.shape == (2,)
    with pytest.raises(FloatingPointError, match="scores are NaN under noise"):
        smooth.certify(X + 5.0, n=100)


def test_smoothing_names_rows_that_the_module_does_not_take():
    with pytest.raises(ValueError, match=r"does not take rows of shape \(5,\)"):
        RandomizedSmoothing(NET, 1.0).certify(torch.zeros(2, 5), n=10)
