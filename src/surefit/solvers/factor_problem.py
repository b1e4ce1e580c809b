r"""Ratings as two sides, users and items, each of which is least squares row by row given the other.

The objective of a factorisation x_ij ~ mu + b_i + c_j + <u_i, v_j> over the observed pairs is

    P = 1/2 sum_ij (x_ij - mu - b_i - c_j - <u_i, v_j>)^2
        + 1/2 sum_i s_i (lambda_u ||u_i||^2 + lambda_b b_i^2) + 1/2 sum_j t_j (lambda_v ||v_j||^2 + lambda_c
        c_j^2),

with s_i = t_j = 1, or the numbers of ratings of user i and item j. With biases a row of a side is (u_i,
b_i) and is fitted to the other side's features (v_j, 1): one more column, solved for together with the
rest. For implicit feedback the first sum runs over all pairs with weights c_ij (1 where nothing is stored)
and targets 1 (0 there).

:func:`balance` is the step between two solves. (U T, V T^{-T}) has the products of (U, V) for every
invertible T; the T of least penalty follows from the K x K Gram matrices alone. Without it the two sides
would drift towards balance at a rate of the order of lambda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import over_rows

__all__ = ["Penalties", "Side", "balance", "features", "over_entries", "share", "side", "sides"]

Array = NDArray[Any]
_PIECES = 64  # of about equal work, spread over the threads
_ROW = 64  # entries whose work equals what a row costs anyway


@dataclass(frozen=True)
class Penalties:
    """The penalty of each column of the two sides, and whether it grows with the number of ratings."""

    users: NDArray[np.float64]  # K, and one more with biases
    items: NDArray[np.float64]
    weighted: bool
    biases: bool


@dataclass(frozen=True)
class Side:
    """The entries of one side's rows, compressed."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: Array  # c - 1 of implicit feedback; empty for ratings
    targets: Array  # c; for ratings x - mu
    scale: NDArray[np.float64]  # the factor of each row's penalty
    lam: NDArray[np.float64]

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1


def side(csr: Any, lam: Array, scale: Array, *, implicit: bool, dtype: Any) -> Side:
    """The rows of a CSR matrix whose data are x - mu, or the confidences."""
    values = np.ascontiguousarray(csr.data, dtype=dtype)
    weights = (csr.data - 1.0).astype(dtype) if implicit else np.empty(0, dtype=dtype)
    return Side(
        np.ascontiguousarray(csr.indptr, dtype=np.int64),
        np.ascontiguousarray(csr.indices, dtype=np.int32),
        weights,
        values,
        scale,
        np.ascontiguousarray(lam, dtype=np.float64),
    )


def sides(
    csr: Any, penalties: Penalties, *, implicit: bool, dtype: Any, group: Any
) -> tuple[Side, Side]:
    """Users (the rows here) and items (all of them, with the entries of the users here)."""
    by_item = csr.T.tocsr()
    users, items = np.ones(csr.shape[0]), np.ones(csr.shape[1])
    if penalties.weighted:
        users = np.diff(csr.indptr).astype(np.float64)
        items = group.sum(np.diff(by_item.indptr).astype(np.float64))
    return (
        side(csr, penalties.users, users, implicit=implicit, dtype=dtype),
        side(by_item, penalties.items, items, implicit=implicit, dtype=dtype),
    )


def features(Z: Any, *, biases: bool) -> tuple[Any, Any]:
    """What the other side is fitted to: (z, 1) and the shift of its targets; (z, b) was given."""
    if not biases:
        return Z, np.zeros(len(Z), Z.dtype) if isinstance(Z, np.ndarray) else Z.new_zeros(len(Z))
    F = Z.copy() if isinstance(Z, np.ndarray) else Z.clone()
    F[:, -1] = 1.0
    return F, Z[:, -1] * 1


def share(squared_gradient: float, squared_size: float) -> float:
    """A gradient against its size at 0; infinite where that is 0 and the gradient is not."""
    if squared_size > 0.0:
        return float(np.sqrt(squared_gradient) / np.sqrt(squared_size))
    return 0.0 if squared_gradient == 0.0 else np.inf


def over_entries(indptr: NDArray[np.int64], work: Callable[[int, int], Any]) -> None:
    """``work(first, last)`` for stretches of rows of about equal work, side by side."""
    rows = len(indptr) - 1
    load = indptr + _ROW * np.arange(rows + 1)
    if load[-1] < 1 << 14:
        work(0, rows)
        return
    ends = np.searchsorted(load, np.linspace(0, load[-1], _PIECES + 1)[1:-1])
    bounds = np.concatenate([[0], ends, [rows]])
    over_rows(_PIECES, lambda a, b: work(int(bounds[a]), int(bounds[b])), least=1)


def balance(users: Any, items: Any, penalties: Penalties) -> tuple[Array, Array] | None:
    """The change of basis T of least penalty, and T^{-T}: (U T, V T^{-T}) has the products of (U, V).

    From the Gram matrices sum_i s_i u_i u_i' and sum_j t_j v_j v_j'. With S the users' times lambda_u, R
    the items' times lambda_v and S^{1/2} R S^{1/2} = Q D Q', it is T = S^{-1/2} Q D^{1/4}: both penalties
    become tr D^{1/2}, the least that any T gives. None where S or R is singular to working precision, or
    nothing is penalised.
    """
    k = len(penalties.users) - penalties.biases
    strength = float(penalties.users[0] * penalties.items[0])
    if strength <= 0.0:
        return None
    S, R = penalties.users[0] * users[:k, :k], penalties.items[0] * items[:k, :k]
    if not (np.isfinite(S).all() and np.isfinite(R).all()):
        return None
    values, vectors = np.linalg.eigh(S)
    if values[0] <= 1e-10 * values[-1]:
        return None
    root = (vectors * np.sqrt(values)) @ vectors.T
    inner, Q = np.linalg.eigh(root @ R @ root)
    if inner[0] <= 1e-12 * inner[-1]:
        return None
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    basis, turned = np.eye(len(penalties.users)), np.eye(len(penalties.users))
    basis[:k, :k] = inverse @ (Q * inner**0.25)
    turned[:k, :k] = root @ (Q * inner**-0.25)
    return basis, turned
