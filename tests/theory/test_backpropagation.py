"""The gradient by hand, against differences and against autograd: NN-6 and NN-7."""

import itertools

import numpy as np
import pytest

from surefit.nn.activations import ELU, RELU, SIGMOID, TANH
from surefit.nn.backprop import (
    backward,
    central_differences,
    forward,
    multiplications,
    two_layer_gradients,
)

torch = pytest.importorskip("torch")


def _two_layers(samples):
    """W, b1, U, b2, X, y with every z at least 1e-3 from the kink of ReLU, so that differences are right."""
    rng = np.random.default_rng(0)
    W, b1 = rng.normal(size=(6, 4)), rng.normal(size=6)
    U, b2 = rng.normal(size=(3, 6)), rng.normal(size=3)
    X, y = rng.normal(size=(samples, 4)), rng.normal(size=(samples, 3))
    assert np.abs(X @ W.T + b1).min() > 1e-3
    return {"W": W, "b1": b1, "U": U, "b2": b2}, X, y


@pytest.mark.spec("NN-6")
@pytest.mark.parametrize("samples", [1, 7])
def test_two_layers_against_central_differences(samples):
    """All derivatives within 1e-6 of differences; that by X has the shape of X."""
    weights, X, y = _two_layers(samples)
    found = two_layer_gradients(X, y, **weights)
    for name, value in weights.items():

        def J(v, name=name):
            return two_layer_gradients(X, y, **{**weights, name: v}).value

        gradient = getattr(found, name)
        assert gradient.shape == value.shape
        np.testing.assert_allclose(gradient, central_differences(J, value), rtol=1e-6, atol=1e-6)
    by_X = central_differences(lambda Z: two_layer_gradients(Z, y, **weights).value, X)
    assert found.X.shape == X.shape
    np.testing.assert_allclose(found.X, by_X, rtol=1e-6, atol=1e-6)


@pytest.mark.spec("NN-6")
def test_two_layers_against_autograd_and_the_formulas_of_the_notes():
    weights, X, y = _two_layers(5)
    found = two_layer_gradients(X, y, **weights)
    t = {name: torch.from_numpy(v.copy()).requires_grad_() for name, v in weights.items()}
    x = torch.from_numpy(X.copy()).requires_grad_()
    theta = torch.relu(x @ t["W"].T + t["b1"]) @ t["U"].T + t["b2"]
    loss = 0.5 * (theta - torch.from_numpy(y)).pow(2).sum()
    loss.backward()
    assert found.value == pytest.approx(loss.item(), rel=1e-13)
    for name in weights:
        np.testing.assert_allclose(getattr(found, name), t[name].grad, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.X, x.grad, rtol=1e-11, atol=1e-12)

    one = two_layer_gradients(
        X[:1], y[:1], **weights
    )  # dU = (theta - y) h' and dW = dz x' for one sample
    h = np.maximum(weights["W"] @ X[0] + weights["b1"], 0)
    residual = weights["U"] @ h + weights["b2"] - y[0]
    np.testing.assert_allclose(one.U, np.outer(residual, h), rtol=1e-12)
    np.testing.assert_allclose(one.W, np.outer(one.b1, X[0]), rtol=1e-12, atol=1e-15)


def _deep(width=6, depth=5, seed=1):
    rng = np.random.default_rng(seed)
    sizes = [4, *[width] * (depth - 1), 3]
    layers = [
        (rng.normal(size=(i, o)) / np.sqrt(i), 0.3 * rng.normal(size=o))
        for i, o in itertools.pairwise(sizes)
    ]
    return layers, rng.normal(size=(6, 4)), rng.normal(size=(6, 3))


@pytest.mark.spec("NN-7")
@pytest.mark.parametrize("activation", [RELU, ELU, SIGMOID, TANH], ids=lambda a: a.name)
def test_five_layers_against_central_differences(activation):
    """delta^(l) = (W^(l+1) delta^(l+1)) * phi'(z^(l)): every weight of a net of depth 5."""
    layers, X, y = _deep()
    output, zs = forward(layers, X, activation=activation)
    if activation in (RELU, ELU):
        assert min(np.abs(z).min() for z in zs) > 1e-4  # ten steps of the differences from a kink
    found = backward(layers, X, output - y, activation=activation)

    def value(changed, Z=X):
        return 0.5 * float(((forward(changed, Z, activation=activation)[0] - y) ** 2).sum())

    for depth, (W, b) in enumerate(layers):

        def by_W(v, depth=depth, b=b):
            return value([*layers[:depth], (v, b), *layers[depth + 1 :]])

        def by_b(v, depth=depth, W=W):
            return value([*layers[:depth], (W, v), *layers[depth + 1 :]])

        dW, db = found.layers[depth]
        np.testing.assert_allclose(dW, central_differences(by_W, W), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(db, central_differences(by_b, b), rtol=1e-6, atol=1e-7)
    by_X = central_differences(lambda Z: value(layers, Z), X)
    np.testing.assert_allclose(found.X, by_X, rtol=1e-6, atol=1e-7)


@pytest.mark.spec("NN-7")
def test_the_transpose_of_the_erratum_gives_another_gradient():
    """Erratum 37: with z = W'x + b, delta uses W and not its transpose; for square W only the value tells."""
    layers, X, y = _deep()
    output, zs = forward(layers, X, activation=TANH)
    found = backward(layers, X, output - y, activation=TANH)
    delta = (output - y) @ layers[4][0].T * TANH.derivative(zs[3])
    right = delta @ layers[3][0].T * TANH.derivative(zs[2])
    wrong = delta @ layers[3][0] * TANH.derivative(zs[2])
    np.testing.assert_allclose(found.layers[2][1], right.sum(axis=0), rtol=1e-12)
    assert np.abs(found.layers[2][1] - wrong.sum(axis=0)).max() > 0.01


@pytest.mark.spec("NN-7")
def test_both_passes_cost_k_squared_l():
    """Counted by torch on the same perceptron: both passes take 3 K^2 L multiplications a sample."""
    from torch.utils.flop_counter import FlopCounterMode

    def counted(width, depth, samples=3):
        net = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(depth)])
        X = torch.randn(samples, width).requires_grad_()
        with FlopCounterMode(display=False) as counter:
            net(X).sum().backward()
        return counter.get_total_flops() // (2 * samples)

    for width, depth in [(8, 2), (16, 2), (8, 4), (32, 5)]:
        assert counted(width, depth) == multiplications([width] * (depth + 1))[1]
    assert multiplications([64] * 11)[1] == 4 * multiplications([32] * 11)[1]  # K twice: four times
    assert multiplications([32] * 21)[1] == 2 * multiplications([32] * 11)[1]  # L twice: twice


def test_differences_refuse_a_step_of_zero():
    with pytest.raises(ValueError, match="step must be above 0"):
        central_differences(lambda x: 0.0, [1.0], step=0.0)
