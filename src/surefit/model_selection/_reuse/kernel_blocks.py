"""Kernel matrices of the folds: parts of one matrix over all rows, where all folds mean the same kernel.

A width such as ``gamma="scale"`` depends on the training rows; each fold then has a matrix of its own, which
its candidates still share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import Kernel
from .rows import Folds, take

__all__ = ["FoldKernel", "FoldKernels"]

Array = NDArray[np.float64]
_SHARED = 1 << 30  # bytes that the matrices over all rows of a search may take together
_OWN = 1 << 30  # bytes that the matrix of one fold may take


class FoldKernel(NamedTuple):
    """The kernel of a fold, its matrix over the training rows, and that of test against training rows.

    The matrices are None where they would take too much memory.
    """

    kernel: Kernel | None
    train: Array | None
    test: Array | None


class FoldKernels:
    """The kernels of all folds.

    Parameters
    ----------
    X : array or CSR matrix
        All rows, or the kernel matrix of all rows.
    folds : Folds
    resolve : callable
        The kernel that the parameters mean on some rows; None where X is the kernel matrix.
    """

    def __init__(self, X: Any, folds: Folds, resolve: Callable[[Any], Kernel | None]) -> None:
        self.X, self.folds, self.resolve = X, folds, resolve
        self.kernel, self.whole = resolve(X), None
        n = X.shape[0]
        if self.kernel is None:
            self.whole = np.asarray(X, dtype=np.float64)
        elif folds.taken + 8 * n * n <= _SHARED and self._same_everywhere():
            folds.taken += 8 * n * n
            self.whole = np.asarray(self.kernel.on(X.astype(np.float64, copy=False)).gram())

    def _same_everywhere(self) -> bool:
        mine = _words(self.kernel)
        return all(_words(self.resolve(take(self.X, a))) == mine for a, _ in self.folds.splits)

    def of(self, k: int) -> FoldKernel:
        """Those of one fold."""
        train, test = self.folds.splits[k]
        if self.whole is not None:
            return FoldKernel(
                self.kernel, self.whole[np.ix_(train, train)], self.whole[np.ix_(test, train)]
            )
        rows = take(self.X, train).astype(np.float64, copy=False)
        kernel = self.resolve(take(self.X, train))
        assert kernel is not None
        if 8 * len(train) * (len(train) + len(test)) > _OWN:
            return FoldKernel(kernel, None, None)
        bound = kernel.on(rows)
        held = take(self.X, test).astype(np.float64, copy=False)
        return FoldKernel(kernel, np.asarray(bound.gram()), np.asarray(bound(held)))


def _words(kernel: Kernel | None) -> str:
    return "" if kernel is None else f"{type(kernel).__name__} {kernel.get_params(deep=True)}"
