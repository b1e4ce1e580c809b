"""Adversarial training: exact for a linear module, and its price on real pictures (ADV-9)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefit.robust import Threat

torch = pytest.importorskip("torch")

from tests.data import images  # noqa: E402

from surefit.robust import AdversarialTraining, apgd, evaluate  # noqa: E402

nn = torch.nn


def softplus_loss(z, y):
    return nn.functional.softplus(-(2 * y - 1) * z[:, 0])


@pytest.mark.spec("ADV-9")
@pytest.mark.parametrize("norm", [math.inf, 2])
def test_a_linear_module_trains_on_the_margin_less_eps_times_the_dual_norm(norm):
    torch.manual_seed(0)
    X, eps = torch.randn(60, 5, dtype=torch.float64), 0.3
    y = (X[:, 0] + 0.5 * torch.randn(60, dtype=torch.float64) > 0).long()
    start = (
        norm == math.inf
    )  # from any point one step reaches the corner; on the sphere only from x itself
    attack = AdversarialTraining(Threat(eps, norm), n_iter=3, step_size=2 * eps, random_start=start)
    net, twin = (nn.Linear(5, 1).double() for _ in range(2))
    twin.load_state_dict(net.state_dict())
    one, two = (torch.optim.SGD(module.parameters(), 0.5) for module in (net, twin))
    for _ in range(50):
        one.zero_grad()
        loss = softplus_loss(net(attack(X, target=y, module=net)), y).mean()
        loss.backward()
        one.step()
        two.zero_grad()
        size = twin.weight.abs().sum() if norm == math.inf else twin.weight.norm()
        margin = (2 * y - 1) * twin(X)[:, 0] - eps * size
        robust = nn.functional.softplus(-margin).mean()
        robust.backward()
        two.step()
        # the points are rounded towards the rows, by a few ulp of float64
        assert loss.item() == pytest.approx(robust.item(), rel=1e-9)
    torch.testing.assert_close(net.weight, twin.weight, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(net.bias, twin.bias, rtol=1e-9, atol=1e-10)


def test_the_module_is_left_as_it_was():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3)
    )
    net[1].eval()
    net[0].weight.requires_grad_(False)
    net[4].weight.grad = torch.ones_like(net[4].weight)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x, y = torch.randn(16, 4), torch.arange(16) % 3
    for mode in ("train", "eval"):
        found = AdversarialTraining(Threat(0.1), mode=mode)(x, target=y, module=net)
        assert not found.requires_grad
        assert (found - x).abs().max() <= 0.1 + 1e-9
        assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
        assert torch.equal(net[4].weight.grad, torch.ones_like(net[4].weight))
        assert [part.training for part in net] == [True, False, True, True, True]
        assert not net[0].weight.requires_grad
        assert net[4].weight.requires_grad
    assert net[4].bias.grad is None


def test_the_start_is_a_function_of_the_generator():
    net = nn.Linear(4, 3)
    x, y = torch.randn(16, 4), torch.arange(16) % 3
    attack = AdversarialTraining(Threat(0.5), n_iter=1, step_size=1e-3)
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(attack(x, target=y, module=net))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_eps_zero_moves_nothing():
    x = torch.randn(3, 2)
    assert (
        AdversarialTraining(Threat(0.0))(x, target=torch.tensor([0, 1, 0]), module=nn.Linear(2, 2))
        is x
    )


def train(X, y, threat, epochs, make, lr=3e-3):
    torch.manual_seed(0)
    net = make()
    optimizer = torch.optim.Adam(net.parameters(), lr)
    attack = None if threat is None else AdversarialTraining(threat)
    for epoch in range(epochs):
        order = torch.randperm(len(X), generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(100):
            x = X[rows] if attack is None else attack(X[rows], target=y[rows], module=net)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y[rows]).backward()
            optimizer.step()
    return net.eval()


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


@pytest.mark.spec("ADV-9")
def test_robust_accuracy_up_and_standard_down_at_large_eps():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16.0, dtype=torch.float32), torch.tensor(y)
    threat = Threat(0.2, lower=0.0, upper=1.0)
    X_test, y_test = X[1200:], y[1200:]
    plain, robust = (train(X[:1200], y[:1200], t, 15, small) for t in (None, threat))
    clean = [float((net(X_test).argmax(1) == y_test).double().mean()) for net in (plain, robust)]
    worst = [
        1 - apgd(net, X_test, y_test, threat, n_iter=30, random_state=0).rate
        for net in (plain, robust)
    ]
    assert worst[1] > worst[0] + 0.2
    assert clean[1] < clean[0]


def test_the_trainer_takes_it_and_the_same_seed_gives_the_same_bits():
    from surefit.nn.train import train as fit

    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)

    def run(max_epochs):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        fit(
            net, (X, y), lambda z, t: nn.functional.cross_entropy(z, t, reduction="none"),
            epochs=max_epochs, batch_size=16, augment=AdversarialTraining(Threat(0.1), n_iter=2), seed=1,
            device="cpu", verbose=0,
        )  # fmt: skip
        return net

    one, two = run(2), run(2)
    for a, b in zip(one.parameters(), two.parameters()):
        assert torch.equal(a, b)


@pytest.mark.slow
@pytest.mark.spec("ADV-9")
def test_an_adversarially_trained_network_on_mnist_has_a_bracket():
    X, y, X_test, y_test = (torch.as_tensor(part) for part in images("mnist"))
    threat = Threat(0.1, lower=0.0, upper=1.0)

    def make():
        return nn.Sequential(
            nn.Conv2d(1, 16, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.ReLU(), nn.Flatten(), nn.Linear(32 * 49, 100), nn.ReLU(), nn.Linear(100, 10),
        )  # fmt: skip

    net = train(X[:20_000], y[:20_000], threat, 3, make, lr=1e-3)
    found = evaluate(net, X_test[:200], y_test[:200], threat, attacks=["apgd-ce", "square"])
    assert found.clean_accuracy > 0.95
    assert found.attacked_accuracy > 0.8
    assert found.certified_accuracy <= found.attacked_accuracy
    assert found.certificate.ok


class Doubling(nn.Module):
    """A layer that doubles its input in place before it reads it."""

    def __init__(self, layer, quiet):
        super().__init__()
        self.layer, self.quiet = layer, quiet

    def forward(self, x):
        if self.quiet:
            x.data.mul_(2.0)  # autograd does not see it
            return self.layer(x)
        return self.layer(x.mul_(2.0))


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("random_start", [False, True])
def test_a_module_that_writes_into_its_input_moves_no_point(quiet, random_start):
    torch.manual_seed(0)
    layer, x, y = nn.Linear(4, 3), torch.randn(8, 4), torch.arange(8) % 3
    twin = nn.Linear(4, 3)
    twin.weight.data, twin.bias.data = 2.0 * layer.weight.data, layer.bias.data
    kept, found = x.clone(), []
    attack = AdversarialTraining(Threat(0.1), n_iter=3, random_start=random_start)
    for net in (Doubling(layer, quiet), twin):
        torch.manual_seed(1)
        found.append(attack(x, target=y, module=net))
        assert torch.equal(x, kept)
    assert not found[0].requires_grad
    assert (found[0] - x).abs().max() <= 0.1
    torch.testing.assert_close(
        *found, rtol=0, atol=1e-6
    )  # the same steps, rounded in another order
