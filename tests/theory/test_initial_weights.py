"""Variance and gradients through depth: NN-12 and NN-13."""

import numpy as np
import pytest

from surefit import Status

torch = pytest.importorskip("torch")
nn = torch.nn

from surefit.nn.initialisation import DepthReport, glorot, gradient_norms, he, variance_by_depth  # noqa: E402

WIDTH = 512


def _deep(depth, *, norm=False):
    parts = []
    for _ in range(depth):
        parts += [nn.Linear(WIDTH, WIDTH), *([nn.BatchNorm1d(WIDTH)] if norm else []), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(WIDTH, 1))


def _inputs(rows=64):
    return torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.mark.spec("NN-12")
def test_he_keeps_the_variance_over_fifty_layers():
    """Var z = 1 at each of 50 layers with v = 2/K, in the mean over draws, for inputs with E x^2 = 1/2.

    A draw's variance at layer l is a product of l factors, each with relative deviation about sqrt(5 / K):
    0.8 after 50 layers for K = 512. The mean of 40 draws deviates by 0.13; four times that is allowed.
    """
    X = _inputs(16) / 2**0.5
    reports = [variance_by_depth(he(_deep(50), seed=seed), X) for seed in range(40)]
    means = np.mean([report.values[:50] for report in reports], axis=0)
    np.testing.assert_allclose(means, 1.0, rtol=0.5)
    assert reports[0].claim().status is Status.HOLDS


@pytest.mark.spec("NN-12")
def test_one_over_k_halves_the_variance_at_each_layer():
    """v = 1/K: after 49 more layers 2^-49 is left, and the claim fails; a gain of 4 explodes as fast."""
    thin = variance_by_depth(he(_deep(50), gain=1.0), _inputs())
    assert np.log2(thin.values[49] / thin.values[0]) == pytest.approx(-49, abs=2)
    assert thin.claim().status is Status.FAILS
    wild = variance_by_depth(he(_deep(50), gain=4.0), _inputs())
    assert np.log2(wild.values[49] / wild.values[0]) == pytest.approx(49, abs=2)
    assert wild.claim().status is Status.FAILS


@pytest.mark.spec("NN-12")
def test_convolutions_count_the_pixels_of_their_kernel():
    """inputs = channels times kernel pixels: a stack of convolutions keeps its variance too."""
    parts = []
    for _ in range(10):
        parts += [nn.Conv2d(32, 32, 3, padding=1, padding_mode="circular"), nn.ReLU()]
    net = he(nn.Sequential(*parts))
    weight = net[0].weight.detach()
    assert float(weight.var()) == pytest.approx(2 / (32 * 9), rel=4 * (2 / weight.numel()) ** 0.5)
    X = torch.randn(8, 32, 8, 8, generator=torch.Generator().manual_seed(2))
    assert variance_by_depth(net, X).claim().status is Status.HOLDS


@pytest.mark.parametrize(("draw", "variance"), [(he, 2 / 300), (glorot, 2 / 500)])
def test_the_variance_of_a_layer_is_torchs(draw, variance):
    """The same as kaiming_normal_ and xavier_normal_; biases are 0; a seed gives the same weights again."""
    layer = draw(nn.Linear(300, 200), seed=3)
    weight = layer.weight.detach()
    rel = 4 * (2 / weight.numel()) ** 0.5  # four standard errors of a variance
    assert float(weight.var()) == pytest.approx(variance, rel=rel)
    assert not layer.bias.detach().any()
    theirs = {he: nn.init.kaiming_normal_, glorot: nn.init.xavier_normal_}[draw]
    options = {"nonlinearity": "relu"} if draw is he else {}
    generator = torch.Generator().manual_seed(3)
    other = theirs(torch.empty(200, 300), generator=generator, **options)
    assert torch.allclose(weight, other, rtol=1e-6)
    assert torch.equal(weight, draw(nn.Linear(300, 200), seed=3).weight.detach())
    assert not torch.equal(weight, draw(nn.Linear(300, 200), seed=4).weight.detach())


@pytest.mark.spec("NN-13")
def test_gradients_vanish_without_the_remedies_and_not_with_them():
    """The derivative by the first layer's output against the last's, over 30 layers."""
    X = _inputs()

    def report(net):
        return gradient_norms(net, lambda: net(X).mean())

    bad, good = report(he(_deep(30), gain=1.0)), report(he(_deep(30)))
    assert len(bad.names) == 31
    # 30 steps back, each times sqrt(1/2); the last step has a layer of width 1 behind it and shrinks alike
    assert np.log2(bad.values[0] / bad.values[29]) == pytest.approx(-29 / 2, abs=1.5)
    assert 0.3 < good.values[0] / good.values[29] < 3
    assert bad.claim().status is Status.FAILS
    # with batch norms, neither signals nor gradients hang on the scale of the weights
    normed = _deep(30, norm=True)
    assert variance_by_depth(he(normed, gain=1.0), X).claim().status is Status.HOLDS
    first = report(he(normed, gain=1.0)).values
    again = report(he(normed, gain=4.0)).values
    np.testing.assert_allclose(first[:-1], again[:-1], rtol=0.02)  # but for the norms' eps
    plain = [report(he(_deep(30), gain=gain)).values[0] for gain in (1.0, 4.0)]
    assert plain[1] / plain[0] == pytest.approx(2.0**30, rel=1e-3)  # 2 a layer, without


@pytest.mark.spec("NN-13")
def test_the_report_is_the_delta_of_backpropagation():
    """Against the derivatives by hand, on a small net in float64, in-place activations included."""
    from surefit.nn.backprop import backward, forward

    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(3, 4)), rng.normal(size=4)),
        (rng.normal(size=(4, 2)), rng.normal(size=2)),
    ]
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)).double()
    for place, (W, b) in zip((0, 2), layers):
        net[place].load_state_dict({"weight": torch.from_numpy(W.T), "bias": torch.from_numpy(b)})
    X = rng.normal(size=(5, 3))
    report = gradient_norms(net, lambda: 0.5 * net(torch.from_numpy(X)).pow(2).sum())
    output, zs = forward(layers, X)
    hidden = (output @ layers[1][0].T) * (zs[0] > 0)
    expected = [np.sqrt((hidden**2).mean()), np.sqrt((output**2).mean())]
    np.testing.assert_allclose(report.values, expected, rtol=1e-12)
    by_sample = [backward(layers, X[i : i + 1], output[i : i + 1]).layers[0][1] for i in range(5)]
    np.testing.assert_allclose(by_sample, hidden, rtol=1e-12, atol=1e-14)
    assert all(p.grad is None for p in net.parameters())


def test_measuring_leaves_the_running_averages_and_the_hooks_alone():
    net = _deep(2, norm=True)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    variance_by_depth(net, _inputs())
    gradient_norms(net, lambda: net(_inputs()).mean())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


def test_reports_print_and_refuse_what_they_cannot_measure():
    report = DepthReport("variance", ("0", "2"), (1.0, 0.0))
    assert report.spread == np.inf
    assert report.claim().status is Status.FAILS
    assert str(report).splitlines() == ["variance by layer", "0  1.000e+00", "2  0.000e+00"]
    with pytest.raises(ValueError, match="has no linear or convolution layer"):
        he(nn.ReLU())
    with pytest.raises(ValueError, match="gain must be a number above 0"):
        he(nn.Linear(2, 2), gain=0.0)
    net = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="must return one number"):
        gradient_norms(net, lambda: net(torch.ones(3, 2)))
