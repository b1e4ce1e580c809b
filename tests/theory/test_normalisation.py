"""Batch and layer norm, dropout and weight decay as the notes have them: NN-14 to NN-19."""

import numpy as np
import pytest

from surefit import Status

torch = pytest.importorskip("torch")
nn = torch.nn

from surefit.nn.normalisation import fold, fold_pair, scale_invariance  # noqa: E402
from surefit.nn.optimizers import decay_groups  # noqa: E402


def _batch(rows=64, features=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scale = torch.tensor([0.1, 1.0, 3.0, 0.5, 2.0], dtype=torch.float64)[:features]
    return torch.randn(rows, features, generator=generator, dtype=torch.float64) * scale + 1.5


def _norm(features=5, **options):
    norm = nn.BatchNorm1d(features, dtype=torch.float64, **options)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 2.0, features))
        norm.bias.copy_(torch.linspace(-1.0, 1.0, features))
    return norm


@pytest.mark.spec("NN-14")
def test_batch_norm_in_training_and_evaluation():
    """(z - mean)/sqrt(var + eps), gamma and beta behind it; in evaluation the running averages."""
    z, norm, eps = _batch().numpy(), _norm(), 1e-5
    mean, var = z.mean(axis=0), z.var(axis=0)
    gamma, beta = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    hat = (z - mean) / np.sqrt(var + eps)
    np.testing.assert_allclose(hat.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(hat.var(axis=0), var / (var + eps), rtol=1e-12)
    assert (hat.var(axis=0) < 1).all()
    out = norm(torch.from_numpy(z)).detach().numpy()
    np.testing.assert_allclose(out, gamma * hat + beta, rtol=1e-12, atol=1e-12)
    # one step of the running averages, momentum 0.1, from (0, 1); torch averages the unbiased variance
    running = 0.1 * mean, 0.9 + 0.1 * z.var(axis=0, ddof=1)
    np.testing.assert_allclose(norm.running_mean, running[0], rtol=1e-12)
    np.testing.assert_allclose(norm.running_var, running[1], rtol=1e-12)
    evaluated = norm.eval()(torch.from_numpy(z[:1])).detach().numpy()  # a batch of one will do
    expected = gamma * (z[:1] - running[0]) / np.sqrt(running[1] + eps) + beta
    np.testing.assert_allclose(evaluated, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.spec("NN-15")
def test_batch_norm_ignores_scale_and_shift_but_not_sign():
    """BN(a z + b) = BN(z) for a = 2; for a = -2 the sign flips (erratum 41)."""
    z, norm = _batch(), nn.BatchNorm1d(5, eps=1e-12, affine=False, dtype=torch.float64)
    base = norm(z)
    torch.testing.assert_close(norm(2 * z + 3), base, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(norm(-2 * z + 3), -base, rtol=1e-9, atol=1e-9)
    assert float((norm(-2 * z + 3) - base).abs().max()) > 1


@pytest.mark.spec("NN-16")
def test_layer_norm_is_of_one_sample():
    """The same over the K features of a row: alone or among 64 rows the same, and the formula's."""
    z, norm = _batch(), nn.LayerNorm(5, dtype=torch.float64)
    out = norm(z).detach().numpy()
    rows = z.numpy()
    hat = (rows - rows.mean(axis=1, keepdims=True)) / np.sqrt(
        rows.var(axis=1, keepdims=True) + 1e-5
    )
    np.testing.assert_allclose(out, hat, rtol=1e-12, atol=1e-12)
    alone = np.concatenate([norm(z[i : i + 1]).detach().numpy() for i in range(64)])
    np.testing.assert_allclose(alone, out, rtol=1e-14, atol=1e-14)
    train, single = nn.BatchNorm1d(5, dtype=torch.float64), z[:2]
    assert not torch.allclose(train(single), train(z)[:2])  # a batch norm does hang on the batch


@pytest.mark.spec("NN-17")
def test_the_mean_over_masks_is_the_full_net():
    """Kept with probability q and divided by q in training, forward and backward; all units at test."""
    q, x = 0.7, torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    layer = nn.Linear(3, 2, dtype=torch.float64)
    # exactly: over all 8 masks with their probabilities
    total = torch.zeros(2, dtype=torch.float64)
    for mask in range(8):
        kept = torch.tensor([(mask >> i) & 1 for i in range(3)], dtype=torch.float64)
        chance = np.prod(np.where(kept.numpy() > 0, q, 1 - q))
        total += chance * layer(x * kept / q).detach()
    torch.testing.assert_close(total, layer(x).detach(), rtol=1e-13, atol=1e-13)
    # torch's Dropout(p) drops with p = 1 - q, and scales by 1/q both ways
    torch.manual_seed(0)
    drop, many = nn.Dropout(1 - q), x.repeat(20_000, 1).requires_grad_()
    out = drop(many)
    dropped = out.detach() == 0
    torch.testing.assert_close(out.detach()[~dropped], (many.detach() / q)[~dropped])
    out.sum().backward()
    torch.testing.assert_close(many.grad, torch.where(dropped, 0.0, 1 / q).to(many))
    error = 4 * np.sqrt(
        (1 - q) / q / 20_000
    )  # four standard errors of a kept unit's mean, for |x| = 1
    assert float(((out.detach().mean(0) - x) / x).abs().max()) < error
    assert torch.equal(drop.eval()(x), x)


@pytest.mark.spec("NN-18")
def test_weight_decay_is_the_penalty_gradient_for_sgd_and_spares_biases():
    """w <- (1 - eta lambda) w - eta grad: the same step as the gradient of L + lambda/2 sum ||W||^2."""
    lam, eta = 0.3, 0.1
    X = _batch(20)

    def made():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 1)).double()

    decayed, penalised = made(), made()
    before = {name: p.detach().clone() for name, p in decayed.named_parameters()}
    decayed(X).pow(2).mean().backward()
    gradients = {name: p.grad.clone() for name, p in decayed.named_parameters()}
    torch.optim.SGD(decay_groups(decayed, lam), lr=eta).step()
    weights = [p for name, p in penalised.named_parameters() if name in ("0.weight", "3.weight")]
    loss = penalised(X).pow(2).mean() + lam / 2 * sum(W.pow(2).sum() for W in weights)
    loss.backward()
    torch.optim.SGD(penalised.parameters(), lr=eta).step()
    for (name, p), (_, other) in zip(decayed.named_parameters(), penalised.named_parameters()):
        torch.testing.assert_close(p, other, rtol=1e-12, atol=1e-14)
        factor = 1 - eta * lam if name in ("0.weight", "3.weight") else 1.0
        expected = factor * before[name] - eta * gradients[name]
        torch.testing.assert_close(p.detach(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.spec("NN-18")
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_without_a_gradient_the_norm_shrinks_by_one_minus_eta_lambda(optimizer):
    lam, eta = 0.3, 0.1
    net = nn.Linear(5, 4).double()
    weight, bias = net.weight.detach().clone(), net.bias.detach().clone()
    opt = optimizer(decay_groups(net, lam), lr=eta)
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    opt.step()
    torch.testing.assert_close(net.weight.detach(), (1 - eta * lam) * weight, rtol=1e-14, atol=0)
    assert torch.equal(net.bias.detach(), bias)


def _with_norm(seed=0):
    torch.manual_seed(seed)
    layer, norm = nn.Linear(5, 4, dtype=torch.float64), _norm(4, eps=1e-12)
    z = _batch(64)
    target = torch.randn(64, 4, dtype=torch.float64)
    return layer, norm, lambda: (norm(layer(z)) - target).pow(2).mean(), lambda: norm(layer(z))


@pytest.mark.spec("NN-19")
def test_a_layer_before_a_norm_may_be_scaled():
    """Output unchanged for W -> 3 W; <grad, W> = 0; the gradient is a third."""
    layer, _, loss, output = _with_norm()
    claim = scale_invariance(layer.weight, loss)
    assert claim.status is Status.HOLDS
    assert claim.observed < 1e-9
    base = output().detach()
    (gradient,) = torch.autograd.grad(loss(), [layer.weight])
    with torch.no_grad():
        layer.weight.mul_(3.0)
        layer.bias.mul_(3.0)
    torch.testing.assert_close(output().detach(), base, rtol=1e-8, atol=1e-8)
    (scaled,) = torch.autograd.grad(loss(), [layer.weight])
    torch.testing.assert_close(scaled, gradient / 3, rtol=1e-7, atol=1e-10)


@pytest.mark.spec("NN-19")
def test_decay_before_a_norm_changes_only_the_step():
    """A step of eta on a W is, as a function, a step of eta / a^2 on W."""
    layer, _, loss, output = _with_norm()
    small, large = layer.weight.detach().clone(), 2.0 * layer.weight.detach()
    with torch.no_grad():
        layer.bias.zero_()
    results = []
    for weight, eta in [(small, 0.1), (large, 0.4)]:
        with torch.no_grad():
            layer.weight.copy_(weight)
        (gradient,) = torch.autograd.grad(loss(), [layer.weight])
        with torch.no_grad():
            layer.weight.sub_(eta * gradient)
        results.append(output().detach())
    torch.testing.assert_close(results[0], results[1], rtol=1e-8, atol=1e-8)


@pytest.mark.spec("NN-19")
def test_a_layer_without_a_norm_is_found_out():
    torch.manual_seed(0)
    layer, z = nn.Linear(5, 4, dtype=torch.float64), _batch()
    assert scale_invariance(layer.weight, lambda: layer(z).pow(2).mean()).status is Status.FAILS
    broken = scale_invariance(layer.weight, lambda: layer(z).sum() * float("nan"))
    assert broken.status is Status.FAILS


@pytest.mark.parametrize("bias", [False, True])
def test_a_folded_network_computes_the_same(bias):
    """Convolution and linear layers, with affine and plain norms, nested; what was given is left alone."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 6, 3, bias=bias, groups=3), nn.BatchNorm2d(6), nn.ReLU())
    tail = [nn.Flatten(), nn.Linear(6 * 36, 7, bias=bias), nn.BatchNorm1d(7, affine=False)]
    net = nn.Sequential(body, *tail).double()
    X = torch.randn(40, 3, 8, 8, dtype=torch.float64) * 2 + 1
    with torch.no_grad():
        body[1].weight.uniform_(0.5, 2.0)
        body[1].bias.uniform_(-1.0, 1.0)
    for _ in range(20):
        net(X)
    folded = fold(net)
    assert net.training
    assert not any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in folded.modules())
    torch.testing.assert_close(folded(X), net.eval()(X), rtol=1e-11, atol=1e-11)


def test_what_cannot_be_folded_is_refused():
    with pytest.raises(TypeError, match="layer is ReLU"):
        fold_pair(nn.ReLU(), nn.BatchNorm1d(3))
    with pytest.raises(ValueError, match="no running averages"):
        fold_pair(nn.Linear(2, 3), nn.BatchNorm1d(3, track_running_stats=False))
    with pytest.raises(ValueError, match="norm has 4 features, layer puts out 3"):
        fold_pair(nn.Linear(2, 3), nn.BatchNorm1d(4))
