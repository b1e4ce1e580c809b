"""Perceptrons, activations and the training objective, with the notes' numbers: NN-1 to NN-5."""

import itertools

import numpy as np
import pytest

from surefit.nn.activations import ELU, IDENTITY, RELU, SIGMOID, TANH
from surefit.nn.backprop import backward, forward

torch = pytest.importorskip("torch")
nn = torch.nn

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TORCH = {
    "relu": torch.relu,
    "elu": torch.nn.functional.elu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def drawn(sizes, seed=0):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(sizes)
    return [(rng.normal(size=(i, o)) / np.sqrt(i), rng.normal(size=o)) for i, o in pairs]


def as_torch(layers, activation):
    """The same perceptron out of torch's layers, in float64."""
    parts = []
    for W, b in layers:
        linear = nn.Linear(*W.shape, dtype=torch.float64)
        linear.load_state_dict({"weight": torch.from_numpy(W.T), "bias": torch.from_numpy(b)})
        parts += [linear, activation]
    return nn.Sequential(*parts[:-1])


@pytest.mark.spec("NN-1")
@pytest.mark.parametrize(
    ("activation", "theirs"), [(RELU, nn.ReLU()), (ELU, nn.ELU()), (TANH, nn.Tanh())]
)
def test_a_perceptron_is_torchs(activation, theirs):
    """x = phi(W'x + b) layer by layer with a linear last one: the same numbers as torch's modules."""
    layers = drawn([5, 8, 7, 3])
    X = np.random.default_rng(1).normal(size=(11, 5))
    output, zs = forward(layers, X, activation=activation)
    expected = as_torch(layers, theirs)(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(output, expected, rtol=1e-12, atol=1e-13)
    assert [z.shape for z in zs] == [(11, 8), (11, 7), (11, 3)]
    assert (output < 0).any()  # the last layer is linear: no activation cuts it


@pytest.mark.spec("NN-1")
def test_a_2_2_1_net_has_nine_parameters():
    assert sum(W.size + b.size for W, b in drawn([2, 2, 1])) == 9
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    assert sum(p.numel() for p in net.parameters()) == 9


@pytest.mark.spec("NN-2")
def test_the_net_for_exclusive_or():
    """U = [[1,1],[1,1]], c = (0,-1), w = (2,-4), b = -1: -1, +1, +1, -1, exactly."""
    layers = [
        (np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.0, -1.0])),
        (np.array([[2.0], [-4.0]]), np.array([-1.0])),
    ]
    np.testing.assert_array_equal(forward(layers, XOR)[0].ravel(), [-1, 1, 1, -1])
    out = as_torch(layers, nn.ReLU())(torch.from_numpy(XOR)).detach().numpy().ravel()
    np.testing.assert_array_equal(out, [-1, 1, 1, -1])


@pytest.mark.spec("NN-3")
def test_linear_layers_compose_to_one():
    """A deep linear net is x -> x W + b with W the product of the matrices; a ReLU breaks this."""
    layers = drawn([4, 9, 6, 5, 2])
    X = np.random.default_rng(2).normal(size=(20, 4))
    W, b = np.eye(4), np.zeros(4)
    for part, bias in layers:
        W, b = W @ part, b @ part + bias
    output, _ = forward(layers, X, activation=IDENTITY)
    np.testing.assert_allclose(output, X @ W + b, rtol=1e-12, atol=1e-13)
    curved, _ = forward(layers, X, activation=RELU)
    affine = np.column_stack([X, np.ones(20)])
    left = curved - affine @ np.linalg.lstsq(affine, curved, rcond=None)[0]
    assert np.abs(left).max() > 0.01  # no affine map reproduces it


@pytest.mark.spec("NN-4")
@pytest.mark.parametrize("activation", [RELU, ELU, SIGMOID, TANH], ids=lambda a: a.name)
def test_activations_and_gradients_are_torchs(activation):
    t = np.concatenate([np.linspace(-30, 30, 1201), [-700.0, 700.0, 1e-300, 0.0]])
    tensor = torch.from_numpy(t).requires_grad_()
    value = TORCH[activation.name](tensor)
    (gradient,) = torch.autograd.grad(value.sum(), [tensor])
    np.testing.assert_allclose(activation.value(t), value.detach().numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(activation.derivative(t), gradient.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.spec("NN-4")
def test_the_numbers_of_the_notes_for_elu_and_tanh():
    """elu(-2) = -0.86466; tanh t = 1 - 2 sgm(-2t), and 1 - 2 sgm(-t) is tanh(t/2) instead (erratum 36)."""
    assert float(ELU.value(-2.0)) == pytest.approx(-0.86466, abs=5e-6)
    t = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(TANH.value(t), 1 - 2 * SIGMOID.value(-2 * t), rtol=0, atol=1e-15)
    np.testing.assert_allclose(TANH.value(t / 2), 1 - 2 * SIGMOID.value(-t), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(RELU.value([-1.0, 0.0, 2.0]), [0.0, 0.0, 2.0])


def _descend(layers, X, y, step, iterations):
    """Gradient descent on (1/2n) sum of squares; the values, and the squared norms of the gradients."""
    values, norms = [], []
    for _ in range(iterations):
        output, _ = forward(layers, X, activation=TANH)
        values.append(0.5 * float(((output - y) ** 2).sum()) / len(X))
        gradients = backward(layers, X, (output - y) / len(X), activation=TANH).layers
        norms.append(sum(float((dW**2).sum() + (db**2).sum()) for dW, db in gradients))
        layers = [(W - step * dW, b - step * db) for (W, b), (dW, db) in zip(layers, gradients)]
    return np.array(values), np.array(norms)


@pytest.mark.spec("NN-5")
def test_ten_samples_are_learnt_by_heart_and_the_nonconvex_rate_holds():
    """The mean loss goes to 0 on 10 samples; min ||g|| <= sqrt(2 (f0 - 0) / (t (k + 1))) at every k (OPT-16).

    The theorem asks for t <= 1/L. What its proof uses, f(next) <= f - t/2 ||g||^2, is checked at each step.
    """
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(10, 2)), rng.choice([-1.0, 1.0], size=(10, 1))
    step = 0.07
    values, norms = _descend(drawn([2, 30, 1], seed=4), X, y, step, 8000)
    assert values[-1] < 1e-3
    assert (values[1:] <= values[:-1] - 0.5 * step * norms[:-1] + 1e-15).all()
    k = np.arange(len(norms))
    bound = np.sqrt(2 * values[0] / (step * (k + 1)))
    assert (np.minimum.accumulate(np.sqrt(norms)) <= bound).all()


@pytest.mark.spec("NN-5")
def test_batches_of_equal_size_average_to_the_full_gradient():
    """(1/n) sum over samples: the mean of 4 mini-batch gradients of 5 is the full gradient of 20."""
    layers, rng = drawn([3, 6, 2]), np.random.default_rng(5)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))

    def gradient(rows):
        output, _ = forward(layers, X[rows])
        return backward(layers, X[rows], (output - y[rows]) / len(rows)).layers

    whole = gradient(np.arange(20))
    parts = [gradient(rows) for rows in np.split(rng.permutation(20), 4)]
    for depth in range(2):
        for which in range(2):
            mean = np.mean([part[depth][which] for part in parts], axis=0)
            np.testing.assert_allclose(mean, whole[depth][which], rtol=1e-12, atol=1e-14)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"layers\[1\] has W of shape \(4, 1\)"):
        forward([(np.ones((2, 3)), np.ones(3)), (np.ones((4, 1)), np.ones(1))], np.ones((5, 2)))
    with pytest.raises(ValueError, match="layers is empty"):
        forward([], np.ones((5, 2)))
    with pytest.raises(ValueError, match="output_gradient has shape"):
        backward([(np.ones((2, 1)), np.ones(1))], np.ones((5, 2)), np.ones((5, 2)))
