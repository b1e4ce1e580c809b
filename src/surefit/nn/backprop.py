"""Backpropagation by hand: the chain rule from the last layer to the first (NN-1, NN-6, NN-7).

A multilayer perceptron is x^(l) = phi(z^(l)) with z^(l) = W^(l)' x^(l-1) + b^(l), and a linear last layer.
With delta^(l) the derivative of the loss by z^(l),

    delta^(l) = (W^(l+1) delta^(l+1)) * phi'(z^(l)),    dW^(l)_ij = delta^(l)_j x^(l-1)_i,    db^(l) =
    delta^(l).

One pass forward and one pass back multiply each weight three times in all, so that a gradient costs O(K^2
L) for L layers of width K: as much as three values, whatever the number of weights.

Samples are rows and weights have shape (inputs, outputs), so a layer reads ``X @ W + b``. Gradients are
summed over the samples; for one sample they are the formulas above. In training, torch's autograd does
this; here it is written out, so that the one can be checked against the other and both against differences.

References
----------
Rumelhart, Hinton and Williams, "Learning representations by back-propagating errors", Nature 323, 1986.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .activations import RELU, Activation

__all__ = [
    "Gradients",
    "TwoLayerGradients",
    "backward",
    "central_differences",
    "forward",
    "multiplications",
    "two_layer_gradients",
]

Floats = NDArray[Any]
Layer = tuple[Floats, Floats]  # W of shape (inputs, outputs), b of shape (outputs,)


class Gradients(NamedTuple):
    """The derivatives of a loss by every weight and by the input."""

    layers: list[Layer]  # (dW, db) for each layer, in the order of the layers
    X: Floats


class TwoLayerGradients(NamedTuple):
    """The value of J and its derivatives by U, b2, W, b1 and X, each shaped as what it is by."""

    value: float
    U: Floats
    b2: Floats
    W: Floats
    b1: Floats
    X: Floats


def forward(
    layers: Sequence[Layer], X: Any, *, activation: Activation = RELU
) -> tuple[Floats, list[Floats]]:
    """The output of a perceptron and the z of every layer.

    Parameters
    ----------
    layers : list of (W, b)
        ``W`` of shape (inputs, outputs). The last layer is linear.
    X : array of shape (samples, inputs)
    activation : Activation
        Applied to every layer but the last.

    Returns
    -------
    output : array of shape (samples, outputs)
    z : list of arrays
        What ``activation`` is applied to, layer by layer; the last entry is the output.

    Examples
    --------
    The net of the notes for exclusive or (NN-2):

    >>> import numpy as np
    >>> hidden = (np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.0, -1.0]))
    >>> last = (np.array([[2.0], [-4.0]]), np.array([-1.0]))
    >>> forward([hidden, last], [[0, 0], [0, 1], [1, 0], [1, 1]])[0].ravel().tolist()
    [-1.0, 1.0, 1.0, -1.0]
    """
    x, zs = np.asarray(X, dtype=np.float64), []
    _check_shapes(layers, x)
    for depth, (W, b) in enumerate(layers):
        z = x @ W + b
        zs.append(z)
        x = z if depth == len(layers) - 1 else activation.value(z)
    return x, zs


def backward(
    layers: Sequence[Layer], X: Any, output_gradient: Any, *, activation: Activation = RELU
) -> Gradients:
    """The derivatives of a loss by all weights, from its derivative by the output (NN-7).

    Parameters
    ----------
    layers, X, activation
        As in :func:`forward`.
    output_gradient : array of shape (samples, outputs)
        The derivative of the loss by the output, such as ``output - y`` for half the squared error.

    Returns
    -------
    Gradients

    Examples
    --------
    >>> import numpy as np
    >>> layers = [(np.array([[2.0]]), np.array([0.0])), (np.array([[3.0]]), np.array([1.0]))]
    >>> gradients = backward(layers, [[1.0]], [[1.0]])     # of 3 relu(2x) + 1 at x = 1
    >>> gradients.X.tolist(), [dW.tolist() for dW, _ in gradients.layers]
    ([[6.0]], [[[3.0]], [[2.0]]])
    """
    output, zs = forward(layers, X, activation=activation)
    delta = np.asarray(output_gradient, dtype=np.float64)
    if delta.shape != output.shape:
        raise ValueError(
            f"output_gradient has shape {delta.shape}, the output has {output.shape}; "
            "give one derivative for each number of the output."
        )
    inputs = [np.asarray(X, dtype=np.float64), *(activation.value(z) for z in zs[:-1])]
    found: list[Layer] = []
    for depth in range(len(layers) - 1, -1, -1):
        found.append((inputs[depth].T @ delta, delta.sum(axis=0)))
        delta = delta @ layers[depth][0].T
        if depth > 0:
            delta = delta * activation.derivative(zs[depth - 1])
    return Gradients(found[::-1], delta)


def two_layer_gradients(
    X: Any, y: Any, *, W: Floats, b1: Floats, U: Floats, b2: Floats
) -> TwoLayerGradients:
    """J = 1/2 ||theta - y||^2 for theta = U relu(W x + b1) + b2, and its derivatives (NN-6).

    Written as in the notes, with ``W`` of shape (hidden, inputs) and ``U`` of shape (outputs, hidden):
    dU = (theta - y) h', db2 = theta - y, db1 = dz = U'(theta - y) * relu'(z), dW = dz x', dx = W' dz.
    Samples are rows, and J is summed over them.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> found = two_layer_gradients([[2.0]], [[1.0]], W=one, b1=np.zeros(1), U=one, b2=np.zeros(1))
    >>> found.value, found.U.item(), found.W.item()
    (0.5, 2.0, 2.0)
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    z = X @ W.T + b1
    h = RELU.value(z)
    residual = h @ U.T + b2 - y  # (samples, outputs)
    dz = (residual @ U) * RELU.derivative(z)
    return TwoLayerGradients(
        value=0.5 * float((residual**2).sum()),
        U=residual.T @ h,
        b2=residual.sum(axis=0),
        W=dz.T @ X,
        b1=dz.sum(axis=0),
        X=dz @ W,
    )


def central_differences(
    function: Callable[[Floats], float], x: Any, *, step: float = 1e-5
) -> Floats:
    """(f(x + step e_i) - f(x - step e_i)) / (2 step) for every entry of x: wrong by O(step^2).

    Examples
    --------
    >>> central_differences(lambda x: float((x**2).sum()), [1.0, -2.0]).round(8).tolist()
    [2.0, -4.0]
    """
    if not step > 0:
        raise ValueError(f"step must be above 0, got {step!r}; 1e-5 suits float64.")
    x = np.array(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        kept = x[place]
        x[place] = kept + step
        above = function(x)
        x[place] = kept - step
        gradient[place] = (above - function(x)) / (2 * step)
        x[place] = kept
    return gradient


def multiplications(sizes: Sequence[int]) -> tuple[int, int]:
    """Multiplications by a weight, a sample: of the forward pass, and of both passes together (NN-7).

    Examples
    --------
    >>> multiplications([10, 10, 10])
    (200, 600)
    """
    weights = sum(left * right for left, right in pairwise(sizes))
    return weights, 3 * weights  # back: dW = x' delta, and W delta


def _check_shapes(layers: Sequence[Layer], x: Floats) -> None:
    if not layers:
        raise ValueError("layers is empty; give at least one (W, b).")
    width = x.shape[-1]
    for depth, (W, b) in enumerate(layers):
        if W.shape[0] != width or b.shape != (W.shape[1],):
            raise ValueError(
                f"layers[{depth}] has W of shape {W.shape} and b of shape {b.shape}, and gets {width} "
                "numbers a sample; W must be (inputs, outputs) and b (outputs,)."
            )
        width = W.shape[1]
