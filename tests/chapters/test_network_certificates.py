"""Certificates of networks on real pictures: brackets, training by intervals, smoothing with few draws."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.data import images, load  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from surefit.nn.train import train  # noqa: E402
from surefit.robust import Threat  # noqa: E402
from surefit.robust.certified_training import IntervalTraining, interval_margins  # noqa: E402
from surefit.robust.network_bounds import network_lower  # noqa: E402
from surefit.robust.smoothing import RandomizedSmoothing  # noqa: E402


def cross_entropy(output, target):
    return F.cross_entropy(output, target, reduction="none")


def digits():
    """scikit-learn's digits as pictures in [0, 1]: 1,400 to train, the rest to look at."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    return X[:1400], torch.tensor(y[:1400]), X[1400:], torch.tensor(y[1400:])


def convolutional(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def attacked(net, x, y, eps):
    """Which rows projected gradient descent leaves right, linf in [0, 1]."""
    p = x.clone()
    for _ in range(20):
        p.requires_grad_()
        (grad,) = torch.autograd.grad(F.cross_entropy(net(p), y, reduction="sum"), p)
        p = (p.detach() + eps / 4 * grad.sign()).clamp(x - eps, x + eps).clamp(0, 1)
    with torch.no_grad():
        return (net(x).argmax(1) == y) & (net(p).argmax(1) == y)


@pytest.mark.spec("ADV-1")
def test_the_bracket_of_networks_with_and_without_certified_training():
    X, y, Xt, yt = digits()
    threat, shares = Threat(0.1, lower=0.0, upper=1.0), {}
    for name in ("plain", "interval"):
        net = convolutional()
        if name == "plain":
            train(net, (X, y), cross_entropy, epochs=12, batch_size=50, lr=2e-3, device="cpu")
        else:
            wrapped = IntervalTraining(net, 0.1, ramp=200, warmup=50, lower=0.0, upper=1.0)
            train(wrapped, (X, y), wrapped.loss, epochs=25, batch_size=50, lr=2e-3, device="cpu")
        net.eval()
        certified = network_lower(net, Xt, yt, threat, method="crown-ibp") > 0
        held = attacked(net, Xt, yt, 0.1)
        assert (certified <= held).all()  # certified rows are never broken
        shares[name] = certified.double().mean().item(), held.double().mean().item()
    assert shares["interval"][0] > shares["plain"][0] + 0.3
    assert shares["interval"][0] > 0.5


def test_margins_of_the_loss_are_those_of_the_bound():
    """Two codes for the same intervals: float32 with gradients, and float64 with rounding."""
    from surefit.robust._graph import build

    net, (X, y, _, _) = convolutional(), digits()
    x, codes = X[:20], y[:20]
    low, high = (x - 0.02).clamp(min=0), (x + 0.02).clamp(max=1)
    margins = interval_margins(build(net, (1, 8, 8), dtype=None), low, high)
    mine = margins[torch.arange(20), codes]
    mine[torch.arange(20), codes] = torch.inf
    threat = Threat(0.02, lower=0.0, upper=1.0)
    bound = network_lower(net, x, codes, threat, method="interval", arithmetic="float64")
    assert torch.allclose(mine.min(dim=1).values.double(), bound, atol=1e-4)


def test_the_radius_rises_and_the_wrapped_module_is_plain_at_rest():
    net = convolutional()
    wrapped = IntervalTraining(net, 0.1, ramp=4, warmup=2)
    shares = []
    for _ in range(8):
        out = wrapped(torch.rand(3, 1, 8, 8))
        shares.append(wrapped.share)
        assert out.shape == (3, 110)
        assert wrapped.loss(out, torch.tensor([0, 1, 2])).shape == (3,)
    assert shares == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    wrapped.eval()
    x = torch.rand(3, 1, 8, 8)
    assert torch.equal(wrapped(x), net(x))
    for name, value in (("kappa", 2.0), ("ramp", 0), ("eps", -1.0)):
        with pytest.raises(ValueError, match=name):
            IntervalTraining(net, **{"eps": 0.1, "ramp": 1, name: value})


def test_training_by_intervals_needs_two_columns():
    wrapped = IntervalTraining(nn.Sequential(nn.Linear(3, 1)), 0.1, ramp=1)
    with pytest.raises(ValueError, match=r"one output column.*Linear\(\.\.\., 2\)"):
        wrapped(torch.zeros(2, 3))
    assert int(wrapped.passes) == 0
    assert wrapped.eval()(torch.zeros(2, 3)).shape == (2, 1)


def test_intervals_of_training_hold_the_row_itself_outside_of_the_box():
    """Three rows: inside, below and above. Margins hold at the row, and those of the inside row are cut."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    x = torch.stack([torch.full((4,), v, dtype=torch.float64) for v in (0.95, -0.4, 1.7)])
    wrapped = IntervalTraining(net, 0.2, ramp=1, lower=0.0, upper=1.0)
    for _ in range(2):
        out = wrapped(x)
    assert wrapped.share == 1.0
    z, margins = out[:, :3], out[:, 3:].reshape(3, 3, 3)
    assert (margins <= z[:, :, None] - z[:, None, :] + 1e-12).all()
    for y in range(3):  # the bound that certifies has the same sets
        codes, threat = torch.full((3,), y), Threat(0.2, lower=0.0, upper=1.0)
        bound = network_lower(net, x, codes, threat, method="interval", arithmetic="float64")
        others = [k for k in range(3) if k != y]
        worst = margins[:, y, others].min(dim=1).values
        assert torch.allclose(worst, bound, rtol=0, atol=1e-9)  # its rounding is subtracted


def test_a_module_that_writes_into_its_input_trains_on_the_rows_as_they_are():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.ReLU(), nn.Linear(4, 3))
    writing = nn.Sequential(nn.ReLU(inplace=True), plain[1])
    x = torch.randn(5, 4)
    kept, found = x.clone(), []
    for net in (plain, writing):
        wrapped = IntervalTraining(net, 0.2, ramp=1)
        found += [[wrapped(x), wrapped(x)]]
        assert torch.equal(x, kept)
    for a, b in zip(*found):
        assert torch.equal(a, b)


def test_a_module_that_writes_over_what_it_reads_again_is_not_trained_by_intervals():
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            z = self.first(x)
            return self.last(F.relu(z, inplace=True) + z)

    wrapped = IntervalTraining(Writing(), 0.1, ramp=1)
    with pytest.raises(NotImplementedError, match="changed in place"):
        wrapped(torch.zeros(2, 3))


def test_sequential_smoothing_on_digits():
    """The same rows certified at the same radii, but for those within the indifference of so many draws."""
    X, y, Xt, yt = digits()
    net = convolutional()

    def noisy(x):
        return x + 0.25 * torch.randn_like(x)

    train(
        net, (X, y), cross_entropy, epochs=12, batch_size=50, lr=2e-3, device="cpu", augment=noisy
    )
    smooth, grid = RandomizedSmoothing(net, 0.25), np.array([0.25, 0.5])
    x, codes, n = Xt[:24], yt[:24].numpy(), 20_000
    fixed = smooth.certify(x, codes, n=n)
    quick = smooth.certify(x, codes, n=n, sequential=True, radii=grid)
    # half of delta is left at the last look: a limit is lower by under 0.1 standard deviations
    near = np.abs(fixed.radius[:, None] - grid).min(axis=1) < 0.02
    lost = (fixed.radius[:, None] >= grid) & (quick.radius[:, None] < grid)
    assert not lost[~near].any()
    assert quick.certificate.ok
    assert quick.total_draws * 5 < fixed.total_draws
    assert quick.certified_accuracy(0.25) > 0.5
    assert quick.recheck(net, x, rows=[0, 7]).ok


@pytest.mark.slow
@pytest.mark.spec("ADV-1")
def test_mnist_certified_at_a_tenth():
    """Four epochs of training by intervals: most pictures certified at linf 0.1."""
    X, y, Xt, yt = images("mnist")
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(1568, 100), nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip
    wrapped = IntervalTraining(net, 0.1, ramp=900, warmup=100, lower=0.0, upper=1.0)
    train(wrapped, (X, y), wrapped.loss, epochs=4, lr=1e-3, schedule="cosine", device="cpu")
    net.eval()
    rows = torch.tensor(Xt[:1000])
    lower = network_lower(
        net, rows, yt[:1000], Threat(0.1, lower=0.0, upper=1.0), method="crown-ibp"
    )
    assert (lower > 0).double().mean() > 0.85


def test_breast_cancer_one_column():
    X, y = load("breast_cancer")
    x, codes = torch.tensor(X), torch.tensor(y)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1)).double()

    def logistic(output, target):
        return F.binary_cross_entropy_with_logits(
            output[:, 0], target.to(output.dtype), reduction="none"
        )

    train(net, (x[:400], codes[:400]), logistic, epochs=20, lr=0.01, device="cpu")
    shares = [
        (network_lower(net, x[400:], codes[400:], Threat(eps)) > 0).double().mean().item()
        for eps in (0.0, 0.05, 0.1, 0.5)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[1] > 0.7
