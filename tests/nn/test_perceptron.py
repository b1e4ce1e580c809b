"""Both passes of a perceptron as one operation, the products under it and the step after it."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from surefit.neural_network import MLPClassifier  # noqa: E402
from surefit.nn import _descent, _products  # noqa: E402
from surefit.nn.perceptron import ACTIVATIONS, MLP  # noqa: E402
from surefit.nn.sparse_rows import SparseRows  # noqa: E402

from .small import equal  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.spec("NN-7")
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [[12, 3], [12, 7, 3], [12, 8, 5, 1]])
@pytest.mark.parametrize("sparse", [False, True])
def test_passes_by_hand_are_those_of_autograd(activation, sizes, sparse):
    """In float64, up to a few roundings of sums of at most 40 terms."""
    torch.manual_seed(0)
    net = MLP(sizes, activation).double()
    X = torch.randn(40, 12, dtype=torch.float64) * (torch.rand(40, 12) < 0.2)
    found = []
    for by_hand in (False, True):
        net.by_hand = by_hand
        net.zero_grad()
        output = net(SparseRows.of(X.numpy()) if by_hand and sparse else X)
        assert ("Passes" in output.grad_fn.name()) == by_hand
        output.sin().sum().backward()
        found.append([output.detach(), *[p.grad for p in net.parameters()]])
    for graph, hand in zip(*found, strict=True):
        torch.testing.assert_close(hand, graph, rtol=1e-12, atol=1e-12)
    with torch.inference_mode():
        torch.testing.assert_close(net(X), found[0][0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_become_the_weights_numbers_in_both_passes(dtype):
    """Rows of float64 in a float32 perceptron, and the reverse: as rows that were converted beforehand."""
    torch.manual_seed(0)
    net = MLP([12, 7, 3]).to(dtype)
    net.by_hand = True
    X = torch.randn(40, 12) * (torch.rand(40, 12) < 0.2)
    other = torch.float64 if dtype == torch.float32 else torch.float32
    found = []
    for given in (other, dtype):
        net.zero_grad()
        output = net(SparseRows.of(X.to(given).numpy()))
        output.sin().sum().backward()
        found.append([output.detach(), *[p.grad for p in net.parameters()]])
    for mine, theirs in zip(*found, strict=True):
        assert torch.equal(mine, theirs)


def test_a_graph_of_layers_where_more_is_asked_for():
    """Slopes by the input, slopes of slopes, units left out, a fitted module."""
    net, X = MLP([4, 3, 1]), torch.randn(5, 4)
    net.by_hand = True
    x = X.clone().requires_grad_()
    net(x).sum().backward()
    assert x.grad is not None
    drops = MLP([4, 3, 1], dropout=0.5)
    drops.by_hand = True
    assert "Passes" not in drops(X).grad_fn.name()
    assert "Passes" in drops.eval()(X).grad_fn.name()
    fitted = MLPClassifier((3,), max_iter=1).fit(X.numpy(), [0, 1, 0, 1, 1]).module_
    assert not fitted.by_hand
    first = fitted[0].weight
    (slope,) = torch.autograd.grad(fitted(X).square().sum(), first, create_graph=True)
    assert torch.autograd.grad(slope.sum(), first)[0].shape == first.shape
    with torch.no_grad():
        each = torch.vmap(fitted)(X[:, None])  # torch's layers, in a transformation of torch's
    assert each.shape == (5, 1, 1)


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_are_torch_s(available, dtype, monkeypatch):
    """Either library sums 300 terms in an order of its own: 300 eps of the sum of their sizes at most."""
    if not available:
        monkeypatch.setattr(_products, "_FOUND", None)
    a, b, c = torch.randn(200, 300), torch.randn(50, 300), torch.randn(50)
    a, b, c = a.to(dtype), b.to(dtype), c.to(dtype)
    exact = a.double() @ b.double().t()
    bound = (
        300 * torch.finfo(dtype).eps * (a.double().abs() @ b.double().abs().t() + c.abs()) + 1e-300
    )
    assert ((_products.affine(a, b, c) - exact - c).abs() <= bound).all()
    assert ((_products.matmul(a, b.t()) - exact).abs() <= bound).all()
    turned = a.t().contiguous().t()
    assert ((_products.matmul(turned, b.t()) - exact).abs() <= bound).all()


def test_adam_is_torch_s_to_the_last_bit():
    """Three groups' worth of steps, and a state that torch's own takes over."""
    torch.manual_seed(0)
    net = MLP([6, 5, 2])
    other = copy.deepcopy(net)
    X = torch.randn(30, 6)

    def made(kind, module):
        groups = [
            {"params": [module[0].weight], "weight_decay": 0.1},
            {"params": list(module.parameters())[1:]},
        ]
        return kind(groups, lr=0.01, betas=(0.8, 0.99), eps=1e-6, fused=True)

    mine, theirs = made(_descent._Adam, net), made(torch.optim.Adam, other)
    mine.before = lambda *given: None
    for step in range(6):
        if step == 3:
            state = copy.deepcopy(mine.state_dict())
            mine = made(_descent._Adam, net)
            mine.load_state_dict(state)
            mine.before = lambda *given: None
        for module, optimizer in ((net, mine), (other, theirs)):
            module(X).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert all(p.grad is None for p in net.parameters())
        assert equal(net.state_dict(), other.state_dict())


@pytest.mark.parametrize(
    "more",
    [
        {}, {"early_stopping": True, "tol": 0.5, "n_iter_no_change": 4},
        {"solver": "sgd", "learning_rate": "adaptive", "tol": 1.0, "n_iter_no_change": 1},
        {"solver": "sgd", "learning_rate": "invscaling"},
    ],
)  # fmt: skip
def test_an_interrupted_fit_ends_as_a_calm_one(more, tmp_path, monkeypatch):
    """Weights to the last bit, the record and the rates too; a third call finds nothing to do."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(120, 30)) * (rng.random((120, 30)) < 0.1)).astype(np.float32)
    y = X[:, :15].sum(axis=1) > 0
    given = {"hidden_layer_sizes": (6,), "batch_size": 40, "max_iter": 8, "random_state": 0} | more
    calm = MLPClassifier(**given).fit(X, y)
    before, taken = _descent.Descent._before, []

    def counted(descent, *rest):
        taken.append(1)
        if len(taken) == stop:  # in the third epoch
            raise KeyboardInterrupt
        before(descent, *rest)

    monkeypatch.setattr(_descent.Descent, "_before", counted)
    stop = 8
    with pytest.raises(KeyboardInterrupt):
        MLPClassifier(checkpoint=tmp_path, **given).fit(X, y)
    for _ in range(2):
        taken.clear()
        stop = -1
        again = MLPClassifier(checkpoint=tmp_path, **given).fit(X, y)
        assert equal(again.module_.state_dict(), calm.module_.state_dict())
        assert again.loss_curve_ == calm.loss_curve_
        assert again.validation_scores_ == calm.validation_scores_
        assert (again.n_iter_, again.t_) == (calm.n_iter_, calm.t_)
    assert not taken
