"""Which solver a kernel ridge fit uses, and its run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ._kernel_ridge_claims import rounding
from ._namespace import is_torch, to_numpy
from .iterate import Fit, Iterate, Stop, run
from .kernels import Kernel, Precomputed
from .solvers.kernel_ridge_cg import kernel_ridge_cg
from .solvers.kernel_ridge_direct import kernel_ridge_direct
from .solvers.nystrom import choose_centres, nystrom

__all__ = ["Solved", "solve_kernel_ridge"]

_DIRECT = 2500  # rows up to which a factor is as fast as iterating
_BYTES = 8e9  # what kernel matrices may take in memory, unless told


class Solved(NamedTuple):
    """The solver that was used, the rows of the centres (None: all rows), and the coefficients."""

    solver: str
    kept: Any
    fit: Fit


def solve_kernel_ridge(
    model: Any, kernel: Kernel, X: Any, Y: Any, alphas: Any, weights: Any
) -> Solved:
    """The coefficients of each target, by the solver that the model asks for or that suits the size."""
    solver = _choose(model, kernel, X, alphas)
    if solver == "nystrom":
        return Solved(solver, *_fit_centres(model, kernel, X, Y, alphas, weights))
    if solver == "cg":
        fit = _iterate(model, kernel, X, Y, alphas, weights)
    if solver == "cholesky" or _gives_up(model, fit, X):
        solver = "cholesky"
        K = kernel.on(X, np.float64).rows(0, X.shape[0])
        a = kernel_ridge_direct(K, Y, to_numpy(alphas).tolist(), weights)
        fit = run(iter([Iterate(a)]), max_iter=2)
    return Solved(solver, None, fit)


def _choose(model: Any, kernel: Kernel, X: Any, alphas: Any) -> str:
    """The solver; a matrix, a function and alpha = 0 are left to the factor, which asks nothing of K."""
    n = int(X.shape[0])
    asked = model.solver
    if asked == "auto" and model.n_components is not None:
        asked = "nystrom"
    if asked == "nystrom" and isinstance(kernel, Precomputed):
        raise ValueError(
            "solver='nystrom' (n_components) chooses rows of X as centres; with kernel='precomputed' "
            "there are none. Give the rows and the kernel, or use solver='cholesky' or 'cg'."
        )
    if asked in ("cg", "nystrom") and float(min(alphas)) == 0.0:
        raise ValueError(f"solver={asked!r} needs alpha > 0; use solver='cholesky' for alpha=0.")
    if asked != "auto":
        return asked
    if n <= _DIRECT or float(min(alphas)) == 0.0 or isinstance(kernel, Precomputed):
        return "cholesky"
    if kernel.positive is not True:
        return "cholesky"
    return "cg" if 4.0 * n * n <= _memory(model, X) else "nystrom"


def _iterate(model: Any, kernel: Kernel, X: Any, Y: Any, alphas: Any, weights: Any) -> Fit:
    n = int(X.shape[0])
    max_iter = model.max_iter
    if model.solver == "auto":  # as many steps as a factor takes time for, then that
        max_iter = min(max_iter, max(30, n // 60))
    diagonal = kernel.diag(X)
    diagonal = diagonal.double() if is_torch(diagonal) else np.asarray(diagonal, np.float64)
    steps = kernel_ridge_cg(
        kernel.on(X, np.float32), kernel.on(X, np.float64), diagonal, Y, alphas, weights,
        tol=_aim(model, X), rng=_rng(model), stored=4.0 * n * n <= _memory(model, X),
    )  # fmt: skip
    return run(
        steps, tol=_aim(model, X), max_iter=max_iter, name="kernel ridge", verbose=model.verbose
    )


def _gives_up(model: Any, fit: Fit, X: Any) -> bool:
    """Whether "auto" had better use the factor after all."""
    bytes_each = 20.0 if is_torch(X) else 8.0  # torch's factor is another matrix
    fits = bytes_each * float(X.shape[0]) ** 2 <= _memory(model, X)
    return model.solver == "auto" and fit.stop is Stop.MAX_ITER and fits


def _fit_centres(
    model: Any, kernel: Kernel, X: Any, Y: Any, alphas: Any, weights: Any
) -> tuple[Any, Fit]:
    n = int(X.shape[0])
    count = model.n_components or max(100, int(4.0 * n**0.5))
    kept = choose_centres(kernel, X, min(n, count), _rng(model), weights)
    bound = kernel.on(X[kept], np.float64)
    steps = nystrom(bound, X, Y, alphas, weights, tol=_aim(model, X))
    return kept, run(steps, tol=_aim(model, X), max_iter=5, name="Nystrom", verbose=model.verbose)


def _aim(model: Any, X: Any) -> float:
    """The residual to reach: below what storing the coefficients does to it there is no gain."""
    return max(0.5 * float(model.tol), 1e-13, 0.1 * rounding(X))


def _memory(model: Any, X: Any) -> float:
    if model.memory_limit is not None:
        return float(model.memory_limit)
    if is_torch(X) and X.device.type == "cuda":
        import torch

        return 0.6 * float(torch.cuda.mem_get_info(X.device)[1])
    return _BYTES


def _rng(model: Any) -> np.random.Generator:
    seed = check_random_state(model.random_state).randint(0, 2**31 - 1)
    return np.random.default_rng(int(seed))
