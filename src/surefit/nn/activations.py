"""The four activations of the notes, with their derivatives (NN-4).

    relu(t) = t_+      elu(t) = t_+ + min(e^t - 1, 0)      sgm(t) = 1 / (1 + e^-t)      tanh(t) = 1 - 2
    sgm(-2t)

They are numpy functions, for the gradients by hand in :mod:`surefit.nn.backprop`; inside a module, torch's
own are used. Values and derivatives equal torch's to 1e-12, which the tests check. At 0, where relu has no
derivative, 0 is taken, as torch does; elu has derivative 1 there.

References
----------
Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by exponential linear units",
ICLR 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["ELU", "IDENTITY", "RELU", "SIGMOID", "TANH", "Activation"]

Floats = NDArray[Any]


class Activation(NamedTuple):
    """A function of one number, applied to each entry, and its derivative.

    Attributes
    ----------
    name : str
    value, derivative : callable
        From an array to an array of the same shape.

    Examples
    --------
    >>> from surefit.nn.activations import ELU
    >>> round(float(ELU.value(-2.0)), 5), round(float(ELU.derivative(-2.0)), 5)
    (-0.86466, 0.13534)
    """

    name: str
    value: Callable[[Any], Floats]
    derivative: Callable[[Any], Floats]


def _relu(t: Any) -> Floats:
    return np.maximum(t, 0.0)


def _relu_derivative(t: Any) -> Floats:
    t = np.asarray(t)
    return (t > 0).astype(t.dtype if t.dtype.kind == "f" else np.float64)


def _elu(t: Any) -> Floats:
    negative = np.minimum(t, 0.0)  # keeps e^t from overflowing where it is not wanted
    return np.maximum(t, 0.0) + np.expm1(negative)


def _elu_derivative(t: Any) -> Floats:
    return np.exp(np.minimum(t, 0.0))


def _sigmoid(t: Any) -> Floats:
    return np.asarray(expit(t))


def _sigmoid_derivative(t: Any) -> Floats:
    return np.asarray(expit(t) * expit(-np.asarray(t)))  # sgm (1 - sgm), without cancellation


def _tanh_derivative(t: Any) -> Floats:
    return np.asarray(4.0 * _sigmoid_derivative(2.0 * np.asarray(t)))  # 1 - tanh^2, likewise


def _identity(t: Any) -> Floats:
    return np.asarray(t)


def _identity_derivative(t: Any) -> Floats:
    return np.ones_like(np.asarray(t, dtype=np.float64))


RELU = Activation("relu", _relu, _relu_derivative)
ELU = Activation("elu", _elu, _elu_derivative)
SIGMOID = Activation("sigmoid", _sigmoid, _sigmoid_derivative)
TANH = Activation("tanh", lambda t: np.asarray(np.tanh(t)), _tanh_derivative)
IDENTITY = Activation("identity", _identity, _identity_derivative)
