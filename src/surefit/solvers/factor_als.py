r"""Alternating least squares over observed entries (MF-6), explicit ratings and implicit feedback.

Given V, each user's factors are a ridge regression on the items that the user rated,

    u_i = (sum_j v_j v_j' + s_i lambda I)^{-1} sum_j x_ij v_j,

and the same with the sides exchanged. One iteration solves for the users, then for the items. It is yielded
in between, where the users are exactly stationary for the items given; the gradient of the items there
comes with their normal equations. No solve raises the loss.

For implicit feedback (Hu, Koren & Volinsky, 2008) sum_j v_j v_j' over all items is one matrix G, corrected
by the user's own entries. ``steps`` conjugate gradient steps from the last factors (Takács, Pilászy & Tikk,
2011) may replace the solve. They are taken in the coordinates in which G + lambda I is the identity: the
common part is then solved exactly, and a step costs the entries of the row alone.

Rows that no pivot can be had for (lambda = 0 and fewer ratings than components) get the solution of least
norm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from .._jit.factor_steps import cg_rows
from .._jit.factors import normal_rows, row_losses, solve_normal, solve_rows
from .._threads import over_rows
from ..iterate import Iterate
from .factor_problem import Penalties, Side, balance, features, over_entries, share

__all__ = ["als", "fold_in", "penalty", "row_loss", "shared_item_step", "solve_side"]

Array = NDArray[Any]
_CHUNK_BYTES = 1 << 26  # of normal equations that the ranks add up at a time


def als(
    users: Side,
    items: Side,
    V: Array,
    penalties: Penalties,
    *,
    group: Any,
    steps: int = 0,
    max_iter: int | None = None,
) -> Iterator[Iterate]:
    """Alternate from the items V; yields ``(U, V, next V)``, the loss and the relative gradient.

    Parameters
    ----------
    steps : int
        Conjugate gradient steps a row and iteration; 0 solves exactly.
    max_iter : int, optional
        The iteration after which nobody asks for the next items: they are not solved for.
    """
    U = np.zeros((users.rows, V.shape[1]), dtype=V.dtype)
    done = 0
    while True:
        done += 1
        kept = U if steps else np.zeros_like(U)
        U, loss, rest = _user_step(users, V, kept, penalties, steps)
        total = group.sum(np.array([loss, *rest]))
        value = float(total[0]) + penalty(items, V)
        user_size = share(float(total[1]), float(total[2]))
        if done == max_iter:
            yield Iterate((U, V, None), value)
            return
        new, grads, right = _item_step(items, U, V, penalties, steps, group)
        item_size = share(grads, right)
        bases = balance(group.sum(_weighted_gram(users, U)), _weighted_gram(items, new), penalties)
        turned = U
        if bases is not None:
            new = new @ bases[1].astype(V.dtype)
            turned = U @ bases[0].astype(V.dtype) if steps else U  # where the next steps begin
        yield Iterate((U, V, new), value, max(user_size, item_size))
        U, V = turned, new


def _user_step(
    users: Side, V: Array, U: Array, penalties: Penalties, steps: int
) -> tuple[Array, float, tuple[float, float]]:
    """The users' factors, their part of the loss, and the squared gradient left with its size at 0."""
    F, shift = features(V, biases=penalties.biases)
    if steps:
        Z, _, after, right = _cg(users, F, shift, U, steps)
        return Z, row_loss(users, F, shift, Z), (after, right)
    Z, numbers = solve_side(users, F, shift, U, losses=True)
    return Z, float(numbers[:, 0].sum()), (0.0, 1.0)


def _item_step(
    items: Side, U: Array, V: Array, penalties: Penalties, steps: int, group: Any
) -> tuple[Array, float, float]:
    """The items' factors, and the squared gradient at V with its size at 0."""
    F, shift = features(U, biases=penalties.biases)
    if group.size > 1:
        return shared_item_step(items, F, shift, V, group)
    if steps:
        Z, before, _, right = _cg(items, F, shift, V, steps)
        return Z, before, right
    Z, numbers = solve_side(items, F, shift, V)
    return Z, float(numbers[:, 1].sum()), float(numbers[:, 2].sum())


def solve_side(
    rows: Side, F: Array, shift: Array, old: Array, *, losses: bool = False
) -> tuple[Array, NDArray[np.float64]]:
    """Each row's least squares; see :func:`surefit._jit.factors.solve_rows` for the numbers."""
    k = F.shape[1]
    F, shift = np.ascontiguousarray(F), np.ascontiguousarray(shift)
    gram = (F.T @ F) if len(rows.weights) else np.zeros((k, k), dtype=F.dtype)
    Z, numbers = np.zeros((rows.rows, k), dtype=F.dtype), np.zeros((rows.rows, 4))

    def work(first: int, last: int) -> None:
        solve_rows(
            rows.indptr, rows.indices, rows.weights, rows.targets, F, shift, gram, rows.lam, rows.scale,
            old, Z, numbers, first, last, losses,
        )  # fmt: skip

    over_entries(rows.indptr, work)
    for i in np.flatnonzero(numbers[:, 3]):
        Z[i], numbers[i, 0] = _least_norm(rows, int(i), F, shift, gram)
    return Z, numbers


def _least_norm(rows: Side, i: int, F: Array, shift: Array, gram: Array) -> tuple[Array, float]:
    """The solution of least norm of a singular row, and its part of the loss."""
    here = slice(rows.indptr[i], rows.indptr[i + 1])
    f = F[rows.indices[here]].astype(np.float64)
    y = (rows.targets[here] - shift[rows.indices[here]]).astype(np.float64)
    root = np.sqrt(rows.scale[i] * rows.lam)
    if len(rows.weights):
        w = rows.weights[here].astype(np.float64)
        A = gram.astype(np.float64) + (f.T * w) @ f + np.diag(root**2)
        z: Array = np.linalg.lstsq(A, f.T @ y, rcond=1e-10)[0]
        m = f @ z
        fit = float((y * (1.0 - m) ** 2 - m**2).sum() + z @ gram.astype(np.float64) @ z)
    else:
        eps = np.finfo(F.dtype).eps * max(f.shape)
        z = np.linalg.lstsq(
            np.vstack([f, np.diag(root)]), np.append(y, np.zeros(len(root))), rcond=eps
        )[0]
        fit = float(((y - f @ z) ** 2).sum())
    return z.astype(F.dtype), 0.5 * (fit + float((root * z) @ (root * z)))


def _cg(
    rows: Side, F: Array, shift: Array, old: Array, steps: int
) -> tuple[Array, float, float, float]:
    """A few steps a row; the squared gradients before and after, and at 0."""
    dtype, implicit = F.dtype, bool(len(rows.weights))
    if implicit:
        L = np.linalg.cholesky((F.T @ F).astype(np.float64) + np.diag(rows.lam))
        weights, targets, scale = rows.weights, rows.targets, np.ones((1, 1))
    else:  # the penalty alone is common to all rows, up to its factor
        L = np.diag(np.sqrt(rows.lam))
        counts = np.diff(rows.indptr)
        each = np.repeat(rows.scale, counts)
        weights = (1.0 / each).astype(dtype)
        targets = ((rows.targets - shift[rows.indices]) / each).astype(dtype)
        scale = np.where(counts > 0, rows.scale, 1.0)[:, None]
    inverse = solve_triangular(L, np.eye(len(L)), lower=True).astype(dtype)
    L = L.astype(dtype)
    white, Z = _times(F, inverse.T), _times(old, L)
    before, after, right = np.zeros_like(Z), np.zeros_like(Z), np.zeros_like(Z)

    def work(first: int, last: int) -> None:
        cg_rows(
            rows.indptr, rows.indices, weights, targets, white, steps, Z, before, after, right, first, last
        )  # fmt: skip

    over_entries(rows.indptr, work)

    def square(R: Array) -> float:  # of the gradient, back in the coordinates of the problem
        turned = _times(R if implicit else scale.astype(dtype) * R, L.T).ravel()
        return float(turned @ turned)

    return _times(Z, inverse), square(before), square(after), square(right)


def _times(A: Array, B: Array) -> Array:
    """A B, the rows of A side by side."""
    out, B = np.empty((len(A), B.shape[1]), dtype=A.dtype), np.ascontiguousarray(B)
    over_rows(len(A), lambda a, b: np.dot(A[a:b], B, out=out[a:b]), least=1024)
    return out


def row_loss(rows: Side, F: Array, shift: Array, Z: Array) -> float:
    """The rows' part of the loss at Z."""
    F, shift = np.ascontiguousarray(F), np.ascontiguousarray(shift)
    k, out = F.shape[1], np.empty(rows.rows)
    gram = (F.T @ F) if len(rows.weights) else np.zeros((k, k), dtype=F.dtype)

    def work(first: int, last: int) -> None:
        row_losses(
            rows.indptr, rows.indices, rows.weights, rows.targets, F, shift, gram, rows.lam, rows.scale,
            Z, out, first, last,
        )  # fmt: skip

    over_entries(rows.indptr, work)
    return float(out.sum())


def penalty(rows: Side, Z: Array) -> float:
    squares = rows.scale @ np.square(Z, dtype=np.float64)
    return 0.5 * float(squares @ rows.lam)


def _weighted_gram(rows: Side, Z: Array) -> NDArray[np.float64]:
    if (rows.scale == 1.0).all():
        return (Z.T @ Z).astype(np.float64)
    return ((Z.T * rows.scale.astype(Z.dtype)) @ Z).astype(np.float64)


# ---------------------------------------------------------------------------- users spread over ranks


def shared_item_step(
    items: Side, F: Array, shift: Array, V: Array, group: Any
) -> tuple[Array, float, float]:
    """The items' factors from users spread over ranks, whose normal equations are added up in chunks."""
    k, p, dtype = F.shape[1], items.rows, F.dtype
    F, shift = np.ascontiguousarray(F), np.ascontiguousarray(shift)
    gram = np.zeros((k, k), dtype=dtype)
    if len(items.weights):
        gram = group.sum((F.T @ F).astype(np.float64)).astype(dtype)
    Z, numbers = np.zeros((p, k), dtype=dtype), np.zeros((p, 4))
    low = np.tril_indices(k)
    chunk = max(1, _CHUNK_BYTES // (8 * k * k))
    for start in range(0, p, chunk):
        stop = min(start + chunk, p)
        sums, rights = (
            np.zeros((stop - start, k, k), dtype=dtype),
            np.zeros((stop - start, k), dtype=dtype),
        )

        def work(
            first: int, last: int, start: int = start, sums: Array = sums, rights: Array = rights
        ) -> None:
            normal_rows(
                items.indptr, items.indices, items.weights, items.targets, F, shift, start, start + first,
                start + last, sums, rights,
            )  # fmt: skip

        over_entries(items.indptr[start : stop + 1] - items.indptr[start], work)
        packed, rights = group.sum(sums[:, low[0], low[1]], rights)
        sums[:, low[0], low[1]] = packed
        here = slice(start, stop)
        solve_normal(
            sums, np.ascontiguousarray(rights), gram, items.lam, items.scale[here],
            np.ascontiguousarray(V[here]), Z[here], numbers[here], 0, stop - start,
        )  # fmt: skip
        for i in np.flatnonzero(numbers[here, 3]):
            A = sums[i].astype(np.float64)
            A = A + np.tril(A, -1).T + gram + np.diag(items.scale[start + i] * items.lam)
            Z[start + i] = np.linalg.lstsq(A, rights[i].astype(np.float64), rcond=1e-10)[0]
    return Z, float(numbers[:, 1].sum()), float(numbers[:, 2].sum())


def fold_in(rows: Side, V: Array, *, biases: bool) -> Array:
    """Factors of new users for items that stay: one ridge solve a user."""
    F, shift = features(V, biases=biases)
    old = np.zeros((rows.rows, V.shape[1]), dtype=V.dtype)
    return solve_side(rows, F, shift, old)[0]
