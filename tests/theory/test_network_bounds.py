"""Bounds of networks: exact where the answer is known, below every point that can be found elsewhere."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from surefit.nn.cnn import ConvNet, ConvNetSizes, LeNet, LeNetSizes  # noqa: E402
from surefit.nn.resnet import Residual, ResNet, ResNetSizes  # noqa: E402
from surefit.robust import Threat  # noqa: E402
from surefit.robust import _relaxations as relaxations  # noqa: E402
from surefit.robust._arithmetic import ARITHMETIC, as_it_runs  # noqa: E402
from surefit.robust._graph import build  # noqa: E402
from surefit.robust._input_set import ball  # noqa: E402
from surefit.robust.crown import lower_functional  # noqa: E402
from surefit.robust.interval import Rounding, interval_ranges  # noqa: E402
from surefit.robust.network_bounds import (  # noqa: E402
    certified_radius,
    network_bounds,
    network_lower,
)

METHODS = ("interval", "crown-ibp", "crown", "alpha-crown", "auto")
NORMS = (2, math.inf)


def random_norms(net):
    """Batch norms with statistics that are not 0 and 1."""
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(std=0.3)
            part.running_var.uniform_(0.5, 2.0)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    return net


class Scaled(nn.Module):
    """A module with constants, functions and views in its forward."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.3]))
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding=1, groups=1, bias=False)
        self.deep = nn.Conv2d(4, 4, 3, dilation=2, padding=2, groups=2)
        self.body = Residual(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.Tanh()))
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        x = F.leaky_relu(self.conv((x - self.mean) / 0.5), 0.1)
        x = F.max_pool2d(self.body(F.elu(self.deep(x))), 3, 2, 1)
        x = F.avg_pool2d(torch.sigmoid(x) * 2.0 + 1.0, 1)
        return self.out(x.view(x.size(0), -1))


def network(name):
    torch.manual_seed(3)
    if name == "mlp":
        parts = [nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4)]
        return nn.Sequential(*parts), torch.rand(6, 12), 0.1
    if name == "smooth":
        parts = [nn.Linear(12, 15), nn.Tanh(), nn.Linear(15, 12), nn.Sigmoid()]
        parts += [nn.Linear(12, 9), nn.ELU(), nn.Linear(9, 4)]
        net = nn.Sequential(*parts)
        for part in net[::2]:
            nn.init.normal_(part.weight, std=0.8)
        return net, torch.randn(6, 12), 0.2
    if name == "lenet":
        return LeNet(LeNetSizes(side=28)), torch.rand(2, 1, 28, 28), 0.02
    if name == "maxpool":
        sizes = ConvNetSizes(side=12, widths=(4, 4), hidden=12)
        return ConvNet(sizes), torch.rand(4, 1, 12, 12), 0.05
    if name == "resnet":
        net = ResNet(ResNetSizes((1, 1), (4, 8), channels=1))
        return random_norms(net), torch.rand(4, 1, 8, 8), 0.02
    if name == "projected":
        net = ResNet(ResNetSizes((1, 1), (4, 8), channels=1, projected=True, large=True))
        return random_norms(net), torch.rand(3, 1, 16, 16), 0.02
    return Scaled(), torch.rand(4, 1, 8, 8), 0.03


def margins(net, x, codes):
    z = net(x)
    mine = z.gather(1, codes[:, None])[:, 0]
    return mine - z.scatter(1, codes[:, None], -math.inf).max(dim=1).values


def points(threat, x, g):
    """Random allowed points: corners and the inside of the ball, cut to the box."""
    if threat.norm == 2:
        d = torch.randn(x.shape, generator=g, dtype=x.dtype)
        d = d / d.flatten(1).norm(dim=1).reshape(-1, *[1] * (x.dim() - 1)) * threat.eps
    else:
        d = (2 * torch.rand(x.shape, generator=g, dtype=x.dtype) - 1) * 3
        d = d.clamp(-1, 1) * threat.eps
    p = x + d
    return p if threat.lower is None else p.clamp(0, 1)


def descended(net, threat, x, codes, steps=25):
    """Projected gradient descent on the margin; x lies in the box."""
    p, low = x.clone(), margins(net, x, codes).detach()
    for _ in range(steps):
        p.requires_grad_()
        value = margins(net, p, codes)
        (grad,) = torch.autograd.grad(value.sum(), p)
        low = torch.minimum(low, value.detach())
        step = threat.eps / 5
        if threat.norm == 2:
            long = grad.flatten(1).norm(dim=1).clamp(min=1e-30)
            d = p.detach() - step * grad / long.reshape(-1, *[1] * (x.dim() - 1)) - x
            size = d.flatten(1).norm(dim=1).clamp(min=threat.eps)
            d = d * (threat.eps / size).reshape(-1, *[1] * (x.dim() - 1))
        else:
            d = (p.detach() - step * grad.sign() - x).clamp(-threat.eps, threat.eps)
        p = x + d
        p = p if threat.lower is None else p.clamp(0, 1)
    return torch.minimum(low, margins(net, p, codes).detach())


@pytest.mark.parametrize("box", [False, True], ids=["free", "box"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "name", ["mlp", "smooth", "lenet", "maxpool", "resnet", "projected", "scaled"]
)
@pytest.mark.spec("ADV-1")
def test_no_point_that_was_found_is_below_the_bound(name, norm, box):
    """10,000 random points and descent; a wrong slope, pad or stride would be seen here."""
    net, x, eps = network(name)
    net, x = net.double().eval(), x.double()
    if box:
        x = x.clamp(0, 1)
        x[:, ..., ::3] = x[:, ..., ::3].round()
    eps = eps if norm == math.inf else 4 * eps
    threat = Threat(eps, norm, **({"lower": 0.0, "upper": 1.0} if box else {}))
    with torch.no_grad():
        codes = net(x).argmax(dim=1)
        g = torch.Generator().manual_seed(5)
        found = margins(net, x, codes)
        for _ in range(10_000 // (len(x) * 200) + 1):
            many = points(threat, x.repeat(200, *[1] * (x.dim() - 1)), g)
            each = margins(net, many, codes.repeat(200)).reshape(200, -1)
            found = torch.minimum(found, each.min(dim=0).values)
    found = torch.minimum(found, descended(net, threat, x, codes))
    methods = METHODS if name != "lenet" else ("interval", "crown-ibp")
    for method in methods:
        lower = network_lower(net, x, codes, threat, method=method, steps=3)
        assert (lower <= found).all(), method
    low, high = network_bounds(net, x, threat, method="crown-ibp")
    with torch.no_grad():
        for z in (net(x), net(points(threat, x, g))):
            assert ((low <= z) & (z <= high)).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.spec("ADV-1")
def test_linear_networks_exactly(norm):
    """margin - eps ||w_y - w_k||_dual, through two linear layers; to rounding: 1e-12 of sums near 1."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 5), nn.Identity(), nn.Linear(5, 3)).double()
    W = net[3].weight @ net[1].weight
    b = net[3].weight @ net[1].bias + net[3].bias
    x, codes = torch.randn(7, 2, 4).double(), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    z = x.flatten(1) @ W.T + b
    dual = 1 if norm == math.inf else 2
    expected = []
    for i, y in enumerate(codes.tolist()):
        left = [
            z[i, y] - z[i, k] - 0.3 * torch.linalg.vector_norm(W[y] - W[k], dual)
            for k in range(3)
            if k != y
        ]
        expected.append(torch.stack(left).min())
    for method in METHODS:
        found = network_lower(net, x, codes, Threat(0.3, norm), method=method)
        assert torch.allclose(found, torch.stack(expected), rtol=0, atol=1e-12)


def test_l2_in_a_box_is_the_water_filling_answer():
    torch.manual_seed(0)
    net = nn.Linear(30, 1, dtype=torch.float64)
    x = torch.rand(20, 30).double().round(decimals=1)
    threat = Threat(0.7, 2, lower=0.0, upper=1.0)
    worst = threat.worst_linear(x.numpy(), -net.weight.detach().numpy()[0])
    expected = net(x)[:, 0].detach().numpy() - worst.bound
    found = network_lower(net, x, torch.ones(20, dtype=torch.int64), threat).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (found <= expected + 1e-12).all()


def exact_minimum(net, x, codes, eps):
    """One hidden layer, linf: a linear programme for each pattern of active ReLUs."""
    W, b = (t.detach().numpy() for t in (net[0].weight, net[0].bias))
    U, c = (t.detach().numpy() for t in (net[2].weight, net[2].bias))
    best = np.inf
    for k in range(len(c)):
        if k == codes:
            continue
        u, shift = U[codes] - U[k], c[codes] - c[k]
        for pattern in itertools.product([0.0, 1.0], repeat=len(b)):
            on = np.array(pattern)
            sign = 1.0 - 2.0 * on  # on: -(Wx + b) <= 0; off: Wx + b <= 0
            answer = linprog(
                (u * on) @ W,
                A_ub=sign[:, None] * W,
                b_ub=-sign * b,
                bounds=list(zip(x - eps, x + eps)),
            )
            if answer.status == 0:
                best = min(best, answer.fun + (u * on) @ b + shift)
    return best


def test_tiny_networks_against_all_patterns_of_their_relus():
    slack = {method: [] for method in METHODS[:-1]}
    for seed in range(6):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3)).double()
        x = torch.randn(1, 3).double()
        code = int(net(x).argmax())
        true = exact_minimum(net, x[0].numpy(), code, 0.4)
        for method in slack:
            found = network_lower(net, x, [code], Threat(0.4), method=method).item()
            assert found <= true + 1e-7  # the programme's own tolerance
            slack[method].append(true - found)
    mean = {method: np.mean(gaps) for method, gaps in slack.items()}
    assert mean["crown"] <= mean["interval"]
    assert mean["alpha-crown"] <= mean["crown"]
    assert mean["crown"] < 0.5 * mean["interval"]  # 0.1 against 0.6


@pytest.mark.parametrize("name", ["mlp", "maxpool", "resnet"])
def test_monotone_in_eps_and_the_margin_at_zero(name):
    """IBP is monotone by construction; for the others the certified set is what must shrink here."""
    net, x, eps = network(name)
    net, x = net.double().eval(), x.double()
    with torch.no_grad():
        codes = net(x).argmax(dim=1)
        margin = margins(net, x, codes)
    for method in METHODS:
        zero = network_lower(net, x, codes, Threat(0.0), method=method)
        assert torch.allclose(zero, margin, rtol=0, atol=1e-11)
    last = margin
    for factor in (0.25, 0.5, 1.0, 2.0):
        now = network_lower(net, x, codes, Threat(factor * eps), method="interval")
        assert (now <= last + 1e-12).all()
        last = now
    radius = certified_radius(net, x, codes, most=1.0, halvings=6)
    rows = radius > 0
    assert rows.any()
    for r in radius[rows].unique().tolist():
        same = radius == r
        assert (network_lower(net, x[same], codes[same], Threat(r)) > 0).all()


def test_one_column_is_two_classes():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)).double()
    pair = nn.Sequential(net[0], nn.ReLU(), nn.Linear(6, 2)).double()
    with torch.no_grad():
        pair[2].weight.zero_()
        pair[2].bias.zero_()
        pair[2].weight[1], pair[2].bias[1] = net[2].weight[0], net[2].bias[0]
    x, codes = torch.randn(9, 4).double(), torch.arange(9) % 2
    for method in METHODS[:4]:
        a = network_lower(net, x, codes, Threat(0.1), method=method)
        b = network_lower(pair, x, codes, Threat(0.1), method=method)
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_float32_passes_are_covered():
    """Bounds for float32 weights hold for the float32 pass, also where nothing moves but rounding."""
    net, x, _ = network("maxpool")
    net.eval()
    with torch.no_grad():
        codes = net(x).argmax(dim=1)
        seen = margins(net, x, codes).double()
        real = margins(net.double(), x.double(), codes)
    net.float()
    lower = network_lower(net, x, codes, Threat(0.0))
    assert (lower <= torch.minimum(seen, real)).all()
    assert (lower >= real - 1e-3).all()  # the slack is small
    tight = network_lower(net, x, codes, Threat(0.0), arithmetic="float64")
    assert torch.allclose(tight, real, rtol=0, atol=1e-11)
    assert (tight > lower).all()
    coarse = network_lower(net, x, codes, Threat(0.0), arithmetic="bfloat16")
    assert (coarse < lower).all()


def products_that_vanish():
    """1e-30 * 1e-20 is 0 in float32, and the next layer multiplies by 1e30."""
    net = nn.Sequential(*(nn.Linear(1, 1, bias=False) for _ in range(2)), nn.Linear(1, 2))
    with torch.no_grad():
        net[0].weight.fill_(1e-30)
        net[1].weight.fill_(1e30)
        net[2].weight.copy_(torch.tensor([[1.0], [0.0]]))
        net[2].bias.copy_(torch.tensor([0.0, 5e-21]))
    return net, torch.full((1, 1), 1e-20)


def sigmoid_that_vanishes():
    """sigmoid(-105) = 2.5e-46 is 0 in float32."""
    net = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid(), nn.Linear(1, 2))
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.fill_(-105.0)
        net[2].weight.copy_(torch.tensor([[1e38], [0.0]]))
        net[2].bias.copy_(torch.tensor([0.0, 1e-8]))
    return net, torch.zeros(1, 1)


@pytest.mark.parametrize("case", [products_that_vanish, sigmoid_that_vanishes])
@pytest.mark.spec("ADV-1")
def test_underflow_of_the_pass_is_covered(case):
    """The network of real numbers says 0, its float32 pass says 1: neither label is certified."""
    net, x = case()
    with torch.no_grad():
        assert net(x).argmax() == 1
        assert copy.deepcopy(net).double()(x.double()).argmax() == 0
        seen = margins(net, x, torch.tensor([0])).double()
    for method in METHODS:
        for eps in (0.0, 1e-23):
            for code in (0, 1):
                assert network_lower(net, x, [code], Threat(eps), method=method) <= 0
        assert network_lower(net, x, [0], Threat(0.0), method=method) <= seen
    real = network_lower(net, x, [0], Threat(0.0), arithmetic="float64")
    assert real > 0  # which is about float64 alone


def test_a_module_without_parameters_has_the_precision_of_its_buffers():
    net = nn.Sequential(nn.BatchNorm1d(2, affine=False)).eval()
    net[0].running_mean.copy_(torch.tensor([0.3, 0.7]))
    net[0].running_var.copy_(torch.tensor([0.2, 1.7]))
    torch.manual_seed(0)
    x = torch.randn(2000, 2)
    codes = net(x).argmax(dim=1)
    lower = network_lower(net, x, codes, Threat(0.0))
    assert (lower <= margins(net, x, codes).double()).all()
    bare = nn.Sequential(nn.Flatten(), nn.Tanh())
    lower = network_lower(bare, x, bare(x).argmax(dim=1), Threat(0.0))
    assert (lower <= margins(bare, x, bare(x).argmax(dim=1)).double()).all()


def eleven_digits(t):
    """float32 numbers cut off after 11 binary digits, as TF32 may: the worst case of its rounding."""
    return (t.contiguous().view(torch.int32) & -(1 << 13)).view(torch.float32).double()


def eight_digits(t):
    return t.bfloat16().double()


@pytest.mark.parametrize(
    ("setting", "cut", "most"), [("high", eleven_digits, 0.04), ("medium", eight_digits, 0.2)]
)
def test_products_of_cut_factors_are_covered_where_torch_may_take_them(setting, cut, most):
    torch.manual_seed(0)
    first, second = torch.nn.Linear(30, 64), torch.nn.Linear(64, 3)
    net, x = torch.nn.Sequential(first, torch.nn.ReLU(), second), torch.randn(200, 30)
    with torch.no_grad():
        codes = net(x).argmax(dim=1)
        hidden = (cut(x) @ cut(first.weight).T + first.bias).relu().float()
        z = cut(hidden) @ cut(second.weight).T + second.bias
    own = z.gather(1, codes[:, None])[:, 0]
    seen = own - z.scatter(1, codes[:, None], -math.inf).amax(dim=1)
    fine = network_lower(net, x, codes, Threat(0.0), arithmetic="float32")
    assert (fine > seen).any()  # its unit alone does not cover them
    kept = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(setting)
        lower = network_lower(net, x, codes, Threat(0.0))
    finally:
        torch.set_float32_matmul_precision(kept)
    assert (lower <= seen).all()
    assert (lower >= seen - most).all()  # and the slack does not grow with the number of products


def test_the_arithmetic_is_that_of_the_device_and_of_torch_s_settings():
    dense = build(torch.nn.Linear(4, 2), (4,))
    picture = build(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.Flatten()), (1, 3, 3))
    assert as_it_runs(dense) == as_it_runs(picture) == ARITHMETIC["float32"]
    dense, picture = (dataclasses.replace(g, device=torch.device("cuda")) for g in (dense, picture))
    setting = torch.backends.cudnn.conv
    kept = setting.fp32_precision
    try:
        setting.fp32_precision = "tf32"  # torch's default
        assert as_it_runs(dense) == ARITHMETIC["float32"]
        assert as_it_runs(picture) == ARITHMETIC["tf32"]
        setting.fp32_precision = "ieee"
        assert as_it_runs(picture) == ARITHMETIC["float32"]
    finally:
        setting.fp32_precision = kept


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_units_are_half_the_distance_to_the_next_number(name):
    assert ARITHMETIC[name].unit == torch.finfo(getattr(torch, name)).eps / 2


def test_batches_of_any_size_agree():
    net, x, eps = network("maxpool")
    codes = net(x).argmax(dim=1)
    for method in ("interval", "crown-ibp"):
        whole = network_lower(net, x, codes, Threat(eps), method=method)
        parts = network_lower(net, x, codes, Threat(eps), method=method, batch_size=1)
        assert torch.allclose(whole, parts, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "f",
    [
        relaxations.LeakyReLU(0.0),
        relaxations.LeakyReLU(0.2),
        relaxations.ELU(),
        relaxations.Tanh(),
        relaxations.Sigmoid(),
    ],
    ids=["relu", "leaky", "elu", "tanh", "sigmoid"],
)
def test_lines_lie_on_their_sides(f):
    g = torch.Generator().manual_seed(0)
    ends = 6 * torch.randn(4000, 2, generator=g, dtype=torch.float64)
    ends[:500] *= 1e-6
    ends[500:600, 1] = ends[500:600, 0]
    low, high = ends.min(dim=1).values, ends.max(dim=1).values
    for slope in (None, torch.rand(4000, generator=g, dtype=torch.float64)):
        lines = f.lines(low, high, slope)
        for share in torch.linspace(0, 1, 101, dtype=torch.float64):
            t = torch.minimum(low + share * (high - low), high)
            value = f.value(t)
            room = 4e-16 * (1 + t.abs())  # the rounding of the line's value in this comparison
            assert (lines.below * t + lines.below_at_0 <= value + room).all()
            assert (lines.above * t + lines.above_at_0 >= value - room).all()


def test_a_wrong_slope_is_noticed(monkeypatch):
    """The test above has power: an upper line that is a little low breaks the bound of a tiny network."""
    right = relaxations.LeakyReLU.lines

    def wrong(self, low, high, slope=None):
        lines = right(self, low, high, slope)
        return lines._replace(above_at_0=0.5 * lines.above_at_0)

    monkeypatch.setattr(relaxations.LeakyReLU, "lines", wrong)
    broken = 0
    for seed in range(6):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3)).double()
        x = torch.randn(1, 3).double()
        code = int(net(x).argmax())
        found = network_lower(net, x, [code], Threat(0.8), method="crown").item()
        broken += found > exact_minimum(net, x[0].numpy(), code, 0.8) + 1e-7
    assert broken >= 1


def test_adjoints_are_adjoint():
    """<a, L x> = <L' a, x> for convolutions with strides, dilations, groups and odd sizes."""
    from surefit.robust._graph import build

    torch.manual_seed(0)
    layers = [
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.Conv2d(2, 4, (2, 3), stride=(3, 2), dilation=(2, 1), padding=(0, 2), groups=2),
        nn.Conv2d(2, 2, 5, padding="same", bias=False),
        nn.AvgPool2d(3, 2, 1),
        nn.AvgPool2d(2, count_include_pad=False),
        nn.AdaptiveAvgPool2d(1),
        nn.BatchNorm2d(2),
    ]
    for layer in layers:
        net = nn.Sequential(layer, nn.Flatten()).double().eval()
        node = build(net, (2, 9, 10)).nodes[1]
        x = torch.randn(3, 2, 9, 10).double()
        y = node.op.linear(x)
        assert torch.allclose(y + node.op.shift, layer(x), atol=1e-12)
        a = torch.randn_like(y)
        left = (a * y).flatten(1).sum(dim=1)
        right = (node.op.adjoint(a, (2, 9, 10)) * x).flatten(1).sum(dim=1)
        assert torch.allclose(left, right, rtol=0, atol=1e-11)


def test_conv1d_and_the_functional_itself():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(2, 3, 3, stride=2), nn.ReLU(), nn.AvgPool1d(2), nn.Flatten())
    net = nn.Sequential(net, nn.Linear(6, 2)).double()
    x = torch.randn(3, 2, 9).double()
    codes = net(x).argmax(dim=1)
    lower = network_lower(net, x, codes, Threat(0.1), method="crown")
    found = descended(net, Threat(0.1), x, codes)
    assert (lower <= found).all()
    assert callable(lower_functional)


class Said(nn.Module):
    """One affine map, said in a way of its own: z + (1, -2, 1/2), then the last layer."""

    def __init__(self, way):
        super().__init__()
        self.first, self.last, self.way = nn.Linear(4, 3), nn.Linear(3, 2), way
        self.register_buffer("c", torch.tensor([1.0, -2.0, 0.5]))

    def forward(self, x):
        return self.last(self.way(self.first(x), self.c))


def in_place(z, c):
    z += c
    return z


@pytest.mark.parametrize(
    "way",
    [
        lambda z, c: torch.add(z, other=c),
        lambda z, c: torch.add(input=z, other=c),
        lambda z, c: torch.add(c, other=z, out=None),
        lambda z, c: torch.sub(z, other=-c),
        lambda z, c: z.reshape(z.size(0), z.shape[1:].numel()) + c,
        lambda z, c: (z + c).view(z.shape[:1] + c.shape),
        lambda z, c: (z + c[None]).reshape(z.size()),
        in_place,
    ],
)
def test_every_way_to_say_an_affine_map_has_its_exact_range(way):
    torch.manual_seed(0)
    net = Said(way).double()
    x = torch.randn(5, 4, dtype=torch.float64)
    with torch.no_grad():
        z, W = net(x), net.last.weight @ net.first.weight
    assert torch.equal(z, net.last(net.first(x) + net.c))
    low, high = network_bounds(net, x, Threat(0.3, 2))
    wide = 0.3 * torch.linalg.vector_norm(W, dim=1)
    assert torch.allclose(low, z - wide, rtol=0, atol=1e-12)  # sums near 1
    assert torch.allclose(high, z + wide, rtol=0, atol=1e-12)


@pytest.mark.parametrize("box", [False, True], ids=["free", "box"])
@pytest.mark.parametrize("kind", ["dense", "convolution"])
@pytest.mark.spec("ADV-1")
def test_bounds_hold_where_squares_of_weights_underflow(kind, box):
    """Weights near 1e-170, whose squares are 0 in float64, and weights near 1e170 after them."""
    torch.manual_seed(0)
    first = nn.Linear(4, 3, bias=False)
    if kind == "convolution":
        body = nn.Conv2d(1, 3, 2, bias=False)
        first = nn.Sequential(nn.Unflatten(1, (1, 2, 2)), body, nn.Flatten())
    net = nn.Sequential(first, nn.ReLU(), nn.Linear(3, 2)).double()
    with torch.no_grad():
        next(first.parameters()).mul_(1e-170)
        net[2].weight.mul_(1e170)
    x = torch.zeros(1, 4, dtype=torch.float64)
    threat = Threat(1.0, 2, **({"lower": -1.0, "upper": 1.0} if box else {}))
    with torch.no_grad():
        g = torch.Generator().manual_seed(5)
        z = net(points(Threat(1.0, 2), x.repeat(500, 1), g) * (1.0 - 1e-9))
    assert z.std(dim=0).min() > 0.01  # the scores do move
    for method in METHODS[:-1]:
        low, high = network_bounds(net, x, threat, method=method)
        assert ((low <= z) & (z <= high)).all(), method
        assert low.isfinite().all()


@pytest.mark.parametrize("norm", NORMS)
def test_steps_of_the_slopes_stay_numbers_where_a_functional_is_zero(norm):
    """Scores 0 and 2 have the same weights: the norm of their difference has no gradient."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)
    ).double()
    for p in net.parameters():
        nn.init.normal_(p)
    with torch.no_grad():
        net[4].weight[2] = net[4].weight[0]
    x, codes = torch.randn(6, 3, dtype=torch.float64), torch.zeros(6, dtype=torch.int64)
    for box in ({}, {"lower": -0.5, "upper": 0.5}):
        threat = Threat(0.3, norm, **box)
        less = network_lower(net, x, codes, threat, method="crown")
        more = network_lower(net, x, codes, threat, method="alpha-crown")
        assert (more >= less).all()
        a = torch.eye(3, dtype=torch.float64)[:1].requires_grad_()
        block = ball(x, threat, 2.0**-53)
        (gradient,) = torch.autograd.grad(block.least((a - a)[None])[0].sum(), a)
        assert gradient.isfinite().all()


@pytest.mark.parametrize("norm", NORMS)
def test_a_bound_that_overflows_is_no_bound_and_no_nan(norm):
    """Products of two layers are 1e400; those of layers and values are near 1."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    net = net.double()
    with torch.no_grad():
        for part, size in zip(net[::2], (1e200, 1e200, 1e-200)):
            part.weight.mul_(size)
            part.bias.zero_()
    x = torch.tensor([[1.0, -2.0], [2.0, 1.0], [-1.0, 1.0]], dtype=torch.float64) * 1e-200
    threat = Threat(1e-201, norm)
    plain = network_bounds(net, x, threat, method="interval")
    for method in METHODS[1:-1]:
        low, high = network_bounds(net, x, threat, method=method)
        assert (low >= plain[0]).all(), method
        assert (high <= plain[1]).all(), method
    block = ball(torch.ones(1, 2, dtype=torch.float64), Threat(1e300), 2.0**-53)
    for end in ("low", "high"):  # inf - inf on the way
        for values in getattr(interval_ranges(build(net, (2,)), block, Rounding(2.0**-53)), end):
            assert not values.isnan().any()
    low, high = network_bounds(net, x, Threat(1e300))
    assert (low <= net(x)).all()
    assert (net(x) <= high).all()
