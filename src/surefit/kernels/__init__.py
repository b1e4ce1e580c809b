r"""Kernels: inner products of features that are never written down, and the rules that combine them.

    Gaussian(gamma) + 0.5 * Polynomial(3)

A kernel is a function k(x, z) = <phi(x), phi(z)> of two rows (KER-2). Exactly those functions all of whose
Gram matrices (k(x_i, x_j)) are symmetric positive semi-definite are kernels (KER-3); :func:`psd_claim` tests
a matrix. Sums, products, multiples by a >= 0 and f(x) k(x, z) f(z) of kernels are kernels (KER-5).

References
----------
Aronszajn, "Theory of reproducing kernels", Transactions of the AMS 68 (1950); Schölkopf & Smola, Learning
with Kernels (2002).

Examples
--------
>>> import numpy as np
>>> from surefit.kernels import Gaussian, Polynomial, psd_claim
>>> k = Gaussian(gamma=0.5) + 0.5 * Polynomial(2)
>>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
>>> k(X).round(3).tolist()
[[3.0, 2.607, 0.582], [2.607, 5.5, 4.868], [0.582, 4.868, 13.5]]
>>> psd_claim(k(X)).status.name
'HOLDS'
"""

from __future__ import annotations

from .base import Bound, Kernel
from .closure import Product, Reweighted, Scaled, Sum
from .mercer import psd_claim, psd_floor
from .products import Linear, Polynomial, Sigmoid
from .radial import Gaussian, Laplace
from .spelling import NAMES, Custom, Pairwise, Precomputed, as_kernel

__all__ = [
    "NAMES",
    "Bound",
    "Custom",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Product",
    "Reweighted",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
    "psd_claim",
    "psd_floor",
]
