"""Kernel ridge regression over alpha: the kernel matrix once, and of each fold one decomposition.

With K = U diag(d) U' the coefficients of every alpha are U diag(1 / (d + alpha)) U'y
(:mod:`surefit.solvers.kernel_ridge_path`). That costs as much as a dozen factors of K + alpha I or more, so
a few alphas are factorised one by one. The predictions of all alphas are one product with the kernel values
between test and training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._threads import one_thread
from ...solvers._kernel_algebra import add_diagonal, cho_solve, cholesky
from ...solvers.kernel_ridge_path import KernelRidgePath
from .family import Family
from .kernel_blocks import FoldKernel, FoldKernels
from .models import FoldModels
from .rows import take

__all__ = ["KernelRidgeFamily"]

Array = NDArray[np.float64]
_MANY = 16  # alphas from which one decomposition is cheaper than a factor each
_SMALL = 2000  # rows up to which the threads of two matrix libraries cost more than they give
_SINGULAR = (
    1e-13  # least over largest eigenvalue below which the system is left to the ordinary fit
)


class KernelRidgeFamily(Family):
    """KernelRidge over alpha."""

    name = "one kernel matrix for all folds and penalties"
    varies: ClassVar[frozenset[str]] = frozenset({"alpha"})

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return isinstance(own["alpha"], Real) and 0 < float(own["alpha"]) < np.inf

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return template.solver != "nystrom" and template.n_components is None

    def prepare(self) -> None:
        folds, model = self.folds, self.template
        self.X, self.y, self.weights = model._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        self.given = model._is_pairwise()
        self.kernels = FoldKernels(self.X, folds, self._resolved)

    def _resolved(self, X: Any) -> Any:
        """The kernel on some rows; None where X is the kernel matrix."""
        return None if self.given else self.template._spelled().resolve(X)

    def fit(self, k: int) -> FoldModels:
        train, _ = self.folds.splits[k]
        blocks = self.kernels.of(k)
        if blocks.train is None:
            raise MemoryError("the kernel matrix of a fold is too large to share")
        y = self.y[train]
        Y = np.asarray(y, dtype=np.float64).reshape(len(train), -1)
        s = None if self.weights is None else self.weights[train]
        alphas = np.array([float(v["alpha"]) for v in self.values])
        solve = _decomposed if len(alphas) >= _MANY else _factorised
        with one_thread if len(train) <= _SMALL else nullcontext():
            duals = solve(blocks.train, Y, s, alphas)
        if not np.isfinite(duals).all():
            raise FloatingPointError("the fits of a fold overflowed")
        return _KernelRidges(self, k, blocks, duals)


def _decomposed(K: Array, Y: Array, s: Array | None, alphas: Array) -> Array:
    path = KernelRidgePath(K, s)
    if not path.values[0] + alphas.min() > _SINGULAR * max(path.values[-1], -path.values[0]):
        raise np.linalg.LinAlgError("the kernel matrix plus alpha is singular")
    return np.asarray(path.dual_coefs(Y, alphas))


def _factorised(K: Array, Y: Array, s: Array | None, alphas: Array) -> Array:
    root = np.ones(len(K)) if s is None else np.sqrt(s)
    K = K if s is None else root[:, None] * K * root
    out = np.empty((len(alphas), *Y.shape))
    for j, alpha in enumerate(alphas):
        lower = cholesky(add_diagonal(K.copy(), alpha), overwrite=True)
        scale = np.zeros(1) if lower is None else np.abs(np.diagonal(lower))
        if lower is None or scale.min() ** 2 <= _SINGULAR * scale.max() ** 2:
            raise np.linalg.LinAlgError("the kernel matrix plus alpha is singular")
        out[j] = root[:, None] * cho_solve(lower, root[:, None] * Y)
    return out


class _KernelRidges(FoldModels):
    """The models of one fold; duals (m, n, T)."""

    def __init__(self, family: KernelRidgeFamily, k: int, blocks: FoldKernel, duals: Array) -> None:
        super().__init__(family.template, family.values)
        self.family, self.k, self.blocks, self.duals = family, k, blocks, duals
        self.flat = family.y.ndim == 1
        train, _ = family.folds.splits[k]
        rows = family.X[np.ix_(train, train)] if family.given else take(family.X, train)
        kernel = blocks.kernel
        if kernel is None:
            kernel = family.template._spelled().resolve(rows)
        self.common = {"X_fit_": rows, "kernel_": kernel, "solver_": "cholesky", "n_iter_": 1}

    def attributes(self, j: int) -> dict[str, Any]:
        dual = self.duals[j][:, 0] if self.flat else self.duals[j]
        kind = self.family.X.dtype
        return {"dual_coef_": np.ascontiguousarray(dual, dtype=kind), **self.common}

    def answers(self, X: Any, first: int, last: int) -> Sequence[Any]:
        tested = X is self.family.folds.rows(self.k, "test")[0]
        K = self.blocks.test if tested else self.blocks.train
        assert K is not None
        part = self.duals[first:last]
        m, n, T = part.shape
        across = np.ascontiguousarray(np.moveaxis(part, 1, 2).reshape(m * T, n))
        Z = (across @ K.T).reshape(m, T, -1)
        return list(Z[:, 0] if self.flat else np.moveaxis(Z, 1, 2))
