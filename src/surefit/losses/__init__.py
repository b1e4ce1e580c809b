r"""Losses: what a prediction costs, with everything a solver or a certificate asks of it.

A loss sees raw predictions ``z`` and targets ``y``, never ``X``. Three families share one interface:

* regression losses of the error e = y - z: squared (halved), absolute, quantile, Huber, Tukey,
  epsilon-insensitive and its square;
* margin losses of eta = y z with y in {-1, +1}: logistic, hinge, squared hinge, modified Huber, square,
  perceptron, 0-1;
* the softmax cross-entropy of z in R^K with y in {0, ..., K-1}.

All methods work sample by sample. ``grad`` is the derivative in z (a subgradient where there is a kink),
``hess`` the second derivative, ``conjugate`` the Fenchel conjugate in z,

    l*(theta, y) = max_z  theta z - l(z, y)      (+inf outside its domain),

and ``prox`` the minimiser of l(t, y) + (t - z)^2 / (2 step). The flags (``convex``, ``smoothness``,
``lipschitz``, ``symmetric``, ``robust``, ``calibrated``) are checked numerically by
:func:`surefit.testing.check_loss` for every class below.

Examples
--------
>>> import numpy as np
>>> loss = Huber(delta=1.0)
>>> loss.pointwise(np.array([0.5, 3.0]), np.zeros(2))
array([0.125, 2.5  ])
>>> theta = loss.grad(np.array([0.5, 3.0]), np.zeros(2))
>>> loss.conjugate(theta, np.zeros(2))            # Fenchel-Young: l + l* = theta z
array([0.125, 0.5  ])
"""

from __future__ import annotations

from .base import Loss
from .insensitive import EpsilonInsensitive, ModifiedHuber, SquaredEpsilonInsensitive
from .margin import (
    Hinge,
    Logistic,
    MarginLoss,
    PerceptronLoss,
    SquaredHinge,
    SquareMargin,
    ZeroOne,
    logistic_01,
    risk_minimizer,
    slopes_at_zero,
)
from .regression import Absolute, Huber, Quantile, RegressionLoss, Squared, Tukey
from .softmax import Softmax

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MarginLoss",
    "ModifiedHuber",
    "PerceptronLoss",
    "Quantile",
    "RegressionLoss",
    "Softmax",
    "SquareMargin",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Tukey",
    "ZeroOne",
    "logistic_01",
    "risk_minimizer",
    "slopes_at_zero",
]
