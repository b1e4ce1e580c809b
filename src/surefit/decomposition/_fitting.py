"""How a factorisation is fitted: which solver, from where, and what is kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._namespace import is_torch, to_numpy
from ..design import as_design
from ..distributed import ALONE, key_of
from ..fingerprint import fingerprint
from ..iterate import Fit, run
from ..solvers.factor_als import als, penalty, row_loss
from ..solvers.factor_full import als_full
from ..solvers.factor_problem import Penalties, features, sides
from ..solvers.factor_sgd import sgd
from ..solvers.factor_torch import TorchSide, als_batched
from ._ratings import observed

__all__ = ["Fitting", "held"]

_CG_FROM = (
    24  # components from which a few conjugate gradient steps beat a solve (implicit; measured)
)


class Fitting(BaseEstimator):
    """The methods of :class:`MatrixFactorization` that run a solver and set the fitted attributes."""

    n_components: int
    method: str
    solver: str
    weighted_reg: bool
    biases: bool
    implicit: bool
    max_iter: int
    tol: float
    cg_steps: int
    learning_rate: float
    decay: float
    device: Any
    verbose: int
    global_mean_: float
    user_biases_: Any
    item_biases_: Any
    seen_: Any

    def _penalty_of(self, side: str) -> tuple[float, float]:
        raise NotImplementedError

    def _penalties(self) -> Penalties:
        raise NotImplementedError

    def _confidences(self, rows: Any, mean: float = 0.0) -> Any:
        raise NotImplementedError

    def _first(self, count: int, rng: np.random.Generator, dtype: Any, spread: float) -> Any:
        """Factors to start from; biases start at 0."""
        k = self.n_components
        Z = np.zeros((count, k + bool(self.biases)), dtype=dtype)
        Z[:, :k] = rng.standard_normal((count, k)) * spread
        return Z

    def _fit_observed(self, X: Any, rows: Any, group: Any, rng: np.random.Generator) -> Fit:
        """Sparse ratings, and anything that SGD is asked for."""
        if not sp.issparse(rows):
            if not isinstance(rows, np.ndarray):
                raise TypeError("method='sgd' takes arrays and sparse matrices: use method='als'.")
            rows = observed(rows, always=True)
        csr = self._confidences(rows, 0.0)
        self.global_mean_ = 0.0
        if self.biases:
            total, count = group.sum(np.array([csr.data.sum(dtype=np.float64), float(csr.nnz)]))
            self.global_mean_ = float(total / count)
            csr = self._confidences(rows, self.global_mean_)
        penalties, dtype = self._penalties(), rows.dtype
        users, items = sides(csr, penalties, implicit=bool(self.implicit), dtype=dtype, group=group)
        rated = group.sum(np.diff(items.indptr).astype(np.float64))
        self.seen_ = sp.csr_array(
            (np.ones(csr.nnz, dtype=np.int8), csr.indices, csr.indptr), shape=csr.shape
        )
        self.solver_ = "sgd" if self.method == "sgd" else self._inner_solver(X)
        if self.method == "sgd":
            if group.size > 1 or self.device is not None:
                raise ValueError("method='sgd' runs in one process, on the CPU: use method='als'.")
            size = float(np.sqrt(np.mean(np.square(csr.data, dtype=np.float64)))) or 1.0
            U, V = (self._first(count, rng, dtype, 0.1 * np.sqrt(size)) for count in csr.shape)
            U[np.diff(users.indptr) == 0] = V[rated == 0] = 0.0
            steps = sgd(
                users, items, U, V, penalties, step=self.learning_rate / size, decay=self.decay, rng=rng,
                losses=self.tol > 0,
            )  # fmt: skip
            flat = (self.tol, 5) if self.tol > 0 else None
            fit = run(
                steps, max_iter=self.max_iter, flat=flat, tol=-1.0, verbose=self.verbose, name="SGD"
            )
            return self._keep_sgd(fit, users, items, penalties)
        V = self._first(csr.shape[1], rng, dtype, 1.0 / np.sqrt(self.n_components))
        V[rated == 0] = 0.0  # nothing is known of these: they stay there
        if self.device is not None:
            return self._fit_device(users, items, V, penalties, group)
        count = self.cg_steps if self.solver_ == "cg" else 0
        return self._driven(
            X, V, lambda V, left: als(users, items, V, penalties, group=group, steps=count, max_iter=left)
        )  # fmt: skip

    def _inner_solver(self, X: Any) -> str:
        if self.solver != "auto":
            if self.solver == "cg" and (
                self.device is not None or _kept(X) is not None or held(X)[1].size > 1
            ):
                raise ValueError(
                    "solver='cg' goes on from the last factors of the users, which devices, ranks and "
                    "checkpoints do not keep: use solver='cholesky'."
                )
            return self.solver
        plain = self.device is None and _kept(X) is None and held(X)[1].size == 1
        least = min(self._penalty_of("users")[0], self._penalty_of("items")[0])
        few = self.implicit and self.n_components >= _CG_FROM and not self.weighted_reg
        return "cg" if plain and few and least > 0 else "cholesky"

    def _fit_device(self, users: Any, items: Any, V: Any, penalties: Penalties, group: Any) -> Fit:
        """Batches on a device; the factors come home."""
        import torch

        if group.size > 1:
            raise ValueError("device= is for one process: leave it out with rows over ranks.")
        kind = torch.float32 if V.dtype == np.float32 else torch.float64
        device, k = torch.device(self.device), V.shape[1]
        sides = [TorchSide(rows, k, device, kind) for rows in (users, items)]
        first = torch.as_tensor(V, dtype=kind, device=device)
        fit = run(
            als_batched(sides[0], sides[1], first, penalties), tol=self.tol, max_iter=self.max_iter,
            verbose=self.verbose, name="ALS",
        )  # fmt: skip
        self._keep(to_numpy(fit.x[0]), to_numpy(fit.x[1]), fit.trace.values, fit.n_iter)
        return fit

    def _fit_full(self, X: Any, rows: Any, group: Any, rng: np.random.Generator) -> Fit:
        """A full matrix, by closed forms."""
        design = as_design(X)
        self.global_mean_, self.seen_, self.solver_ = 0.0, None, "cholesky"
        if self.biases:
            sums = [sum(float(block.sum()) for _, block in design.blocks())]
            self.global_mean_ = float(group.sum(np.array(sums))[0]) / (X.shape[0] * X.shape[1])
        V = self._first(X.shape[1], rng, np.float64, 1.0 / np.sqrt(self.n_components))
        penalties, mean = self._penalties(), self.global_mean_
        return self._driven(X, V, lambda V, _: als_full(design, V, mean, penalties))

    def _driven(self, X: Any, V: Any, steps: Any) -> Fit:
        """Run ALS from V, or from where a checkpoint left it; keep the next V in it after each iteration."""
        kept, key, past = _kept(X), "", np.empty(0)
        if kept is not None:
            key = key_of(self, fingerprint(X))
            if (state := kept.load(key)) is not None:
                V, past = state["items"].astype(V.dtype), state["losses"]
        losses = list(past)

        def save(_: int, iterate: Any) -> None:
            losses.append(iterate.value)
            if kept is not None and iterate.x[2] is not None:
                kept.save(key, {"items": iterate.x[2], "losses": np.array(losses)})

        left = self.max_iter - len(past)
        fit = run(
            steps(V, left),
            tol=self.tol,
            max_iter=left,
            callback=save,
            verbose=self.verbose,
            name="ALS",
        )
        U, V, _ = fit.x
        self._keep(U, V, [*past, *fit.trace.values], len(past) + fit.n_iter, like=held(X)[0])
        return fit

    def _keep_sgd(self, fit: Fit, users: Any, items: Any, penalties: Penalties) -> Fit:
        U, V, _ = fit.x
        with np.errstate(over="ignore", invalid="ignore"):
            F, shift = features(V, biases=penalties.biases)
            loss = row_loss(users, F, shift, U) + penalty(items, V)
        if not np.isfinite(loss):
            raise ValueError(
                f"SGD diverged with learning_rate={self.learning_rate:g}: lower it, for instance to "
                f"{self.learning_rate / 10:g}, or centre the ratings with biases=True."
            )
        self._keep(U, V, fit.trace.values if self.tol > 0 else [loss], fit.n_iter)
        return fit

    def _keep(self, U: Any, V: Any, losses: Any, n_iter: int, like: Any = None) -> None:
        """Set the fitted attributes, where X lives and in its precision."""
        k = self.n_components
        if is_torch(like):
            import torch

            U, V = (torch.as_tensor(Z, device=like.device).to(like.dtype) for Z in (U, V))
            split = [Z.contiguous() for Z in (U[:, :k], V[:, :k])]
        else:
            U, V = (to_numpy(Z).astype(_precision(like, V), copy=False) for Z in (U, V))
            split = [np.ascontiguousarray(Z[:, :k]) for Z in (U, V)]
        self.user_factors_, self.item_factors_ = split
        self.user_biases_ = U[:, k] * 1 if self.biases else None
        self.item_biases_ = V[:, k] * 1 if self.biases else None
        self.loss_trace_ = np.asarray(losses, dtype=np.float64)
        self.loss_, self.n_iter_ = float(self.loss_trace_[-1]), int(n_iter)


def held(X: Any) -> tuple[Any, Any]:
    """The rows of this process, and its group."""
    if hasattr(X, "rows_by_rank"):
        return X.rows, X.group
    return X, getattr(X, "group", ALONE)


def _kept(X: Any) -> Any:
    """Where a fit keeps its state, or None."""
    return getattr(X, "checkpoint", None)


def _precision(rows: Any, Z: Any) -> Any:
    kind = getattr(rows, "dtype", None)
    known = isinstance(kind, np.dtype) and kind in (np.float32, np.float64)
    return kind if known else to_numpy(Z[:1]).dtype
