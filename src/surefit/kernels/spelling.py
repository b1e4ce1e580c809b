"""Kernels by scikit-learn's names, and kernels that are somebody else's: a function, a matrix.

scikit-learn has two conventions for a callable: ``SVC`` calls it with two tables and gets a matrix,
``KernelRidge`` calls it with two rows and gets a number. ``as_kernel(..., pairwise=True)`` is the second.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from .._namespace import is_torch, to_numpy
from .base import Bound, Kernel, cast, number, take_rows
from .products import Linear, Polynomial, Sigmoid
from .radial import Gaussian, Laplace

__all__ = ["NAMES", "Custom", "Pairwise", "Precomputed", "as_kernel", "same_kernel"]

NAMES = (
    "additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "precomputed", "rbf",
    "sigmoid",
)  # fmt: skip


class Pairwise(Kernel):
    """A kernel of :mod:`sklearn.metrics.pairwise` that has no class here.

    Parameters
    ----------
    metric : {"cosine", "chi2", "additive_chi2"}
    gamma : float, default=1.0
        Of "chi2".

    Examples
    --------
    >>> from surefit.kernels import Pairwise
    >>> Pairwise("cosine")([[3.0, 4.0]], [[4.0, 3.0]]).round(2).tolist()
    [[0.96]]
    """

    def __init__(self, metric: str = "cosine", gamma: float = 1.0) -> None:
        self.metric = metric
        self.gamma = gamma

    @property
    def positive(self) -> bool | None:
        """True for "cosine" and "chi2"; "additive_chi2" is only so along weights that sum to 0."""
        return True if self.metric in ("cosine", "chi2") else None

    def _check(self) -> None:
        if self.metric not in ("cosine", "chi2", "additive_chi2"):
            raise ValueError(
                f"Pairwise: metric must be 'cosine', 'chi2' or 'additive_chi2', got {self.metric!r}."
            )
        number(self, "gamma", least=0.0)

    def block(self, X: Any, Z: Any) -> Any:
        from sklearn.metrics.pairwise import pairwise_kernels

        _no_tensor(X, f"the kernel {self.metric!r}")
        given = {"gamma": self.gamma} if self.metric == "chi2" else {}
        return pairwise_kernels(X, Z, metric=self.metric, **given).astype(Z.dtype, copy=False)


class Custom(Kernel):
    """A function as a kernel. Nobody checks that it is one; :func:`psd_claim` does for given rows.

    Parameters
    ----------
    function : callable
        ``function(X, Z, **params)`` gives the matrix k(x_i, z_j); with ``pairwise=True``,
        ``function(x, z, **params)`` gives one number for two rows.
    pairwise : bool, default=False
    params : dict, default=None

    Examples
    --------
    >>> from surefit.kernels import Custom
    >>> Custom(lambda X, Z: X @ Z.T + 1.0)([[1.0]], [[2.0]]).tolist()
    [[3.0]]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        pairwise: bool = False,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.pairwise = pairwise
        self.params = params

    def _check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"Custom: function must be callable, got {self.function!r}.")

    def block(self, X: Any, Z: Any) -> Any:
        params = self.params or {}
        if self.pairwise:
            from sklearn.metrics.pairwise import pairwise_kernels

            _no_tensor(X, "a kernel of two rows")
            block = pairwise_kernels(X, Z, metric=self.function, **params)
            return np.array(block, dtype=Z.dtype)
        block = self.function(X, Z, **params)
        if is_torch(Z):
            return block.to(Z.dtype).clone()
        return np.array(
            to_numpy(block), dtype=Z.dtype
        )  # a copy: what is returned may be overwritten


class Precomputed(Kernel):
    """The rows are rows of a Gram matrix already."""

    def block(self, X: Any, Z: Any) -> Any:
        return X.clone() if is_torch(X) else X.toarray() if hasattr(X, "toarray") else X.copy()

    def diag(self, X: Any) -> Any:
        return X.diagonal()

    def on(self, Z: Any, dtype: Any = None) -> Bound:
        return _PrecomputedBound(self, Z, dtype)


class _PrecomputedBound(Bound):
    def __init__(self, kernel: Kernel, Z: Any, dtype: Any) -> None:
        super().__init__(kernel, Z, dtype)
        if Z.shape[0] != Z.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, one row and one column for each sample; "
                f"got shape {tuple(Z.shape)}."
            )
        self.Z = Z

    def __call__(self, X: Any, out: Any = None) -> Any:
        if X.shape[1] != self.n:
            raise ValueError(
                f"precomputed kernel rows have {X.shape[1]} entries, but the fit had {self.n} samples: give "
                "k(x, x_j) for each of them."
            )
        return self._copy(X, out)

    def take(self, indices: Any, out: Any = None) -> Any:
        return self._copy(take_rows(self.Z, indices), out)

    def gram(self, out: Any = None) -> Any:
        return self._copy(self.Z, out)  # as it was given, symmetric or not

    def _copy(self, rows: Any, out: Any) -> Any:
        if out is None and rows.dtype != self.dtype and not hasattr(rows, "toarray"):
            return cast(rows, self.dtype)
        block = cast(self.kernel.block(rows, self.Z), self.dtype)
        if out is None:
            return block
        out[...] = block
        return out


def as_kernel(
    kernel: Any,
    *,
    gamma: Any = None,
    degree: Any = 3,
    coef0: float = 1.0,
    kernel_params: dict[str, Any] | None = None,
    pairwise: bool = False,
) -> Kernel:
    """The kernel that an estimator's parameters mean.

    Parameters
    ----------
    kernel : str, Kernel or callable
        One of ``surefit.kernels.NAMES``; a Kernel is taken as it is, with its own parameters.
    gamma, degree, coef0 : float
        For the names that have them.
    kernel_params : dict, optional
        Keywords for a callable.
    pairwise : bool, default=False
        Whether a callable takes two rows, as in scikit-learn's ``KernelRidge``, and not two tables.

    Examples
    --------
    >>> from surefit.kernels import as_kernel
    >>> as_kernel("rbf", gamma=0.5)
    Gaussian(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Custom(kernel, pairwise=pairwise, params=kernel_params)
    match kernel:
        case "linear":
            return Linear()
        case "poly" | "polynomial":
            return Polynomial(degree, gamma, coef0)
        case "rbf":
            return Gaussian(gamma)
        case "laplacian":
            return Laplace(gamma, norm="l1")
        case "sigmoid":
            return Sigmoid(gamma, coef0)
        case "precomputed":
            return Precomputed()
        case "cosine" | "additive_chi2":
            return Pairwise(kernel)
        case "chi2":
            return Pairwise(kernel, 1.0 if gamma is None else gamma)
    raise ValueError(
        f"kernel must be one of {', '.join(NAMES)}, a surefit.kernels.Kernel or a function; got {kernel!r}."
    )


def same_kernel(one: Kernel | None, other: Kernel | None) -> bool:
    """Equal classes and parameters; numbers to rounding, as a variance in another order of rows has it."""
    if one is None or other is None:
        return one is other
    if type(one) is not type(other):
        return False
    mine, theirs = one.get_params(), other.get_params()
    for name, value in mine.items():
        got = theirs.get(name)
        if isinstance(value, Kernel):
            if not same_kernel(value, got):
                return False
        elif isinstance(value, Real) and isinstance(got, Real):
            if not np.isclose(float(value), float(got), rtol=1e-9, atol=0.0):
                return False
        elif value is not got and value != got:
            return False
    return True


def _no_tensor(X: Any, words: str) -> None:
    if is_torch(X):
        raise TypeError(f"{words} does not take torch tensors: pass X.cpu().numpy().")
