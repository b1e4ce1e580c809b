r"""Alternating least squares on a full matrix (MF-5): both sides in closed form, one reading of X an
iteration.

    U = X V (V'V + lambda_u I)^{-1},        V = X'U (U'U + lambda_v I)^{-1}.

A block of rows gives its users' factors, its part of U'X, U'U and of the loss, and is not needed again: X
may be in memory, on a GPU, on disk or spread over ranks. An iteration costs O(npK + (n + p)K^2 + K^3).
Biases are one more column. Where V'V is singular (lambda = 0, more components than rank) its pseudo-inverse
gives the solution of least norm. For lambda = 0 this is subspace iteration, and ends at the leading K
singular vectors (Eckart & Young, 1936) at the rate (s_{K+1} / s_K)^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, like, to_numpy
from ..design import Design
from ..iterate import Iterate
from .factor_problem import Penalties, balance, share

__all__ = ["als_full", "fold_in_full", "pseudo_inverse"]

Array = NDArray[np.float64]


def als_full(design: Design, V: Array, mean: float, penalties: Penalties) -> Iterator[Iterate]:
    """Alternate from the items V; yields ``(U, V, next V)``, the loss and the items' relative gradient."""
    n, p = design.shape
    users, items = _strengths(penalties, n, p)
    group = design.group
    while True:
        U, loss, gram, cross, squares = one_pass(design, V, mean, users, penalties.biases)
        loss, gram, cross, squares = group.sum(np.array(loss), gram, cross, squares)
        value = float(loss) + 0.5 * float(np.square(V).sum(axis=0) @ items)
        matrix = gram + np.diag(items)
        gradient = np.linalg.norm(V @ matrix - cross)
        size = np.linalg.norm(cross)
        new = solved(cross, matrix, pseudo_inverse(matrix))
        bases = balance(
            _scaled(squares, penalties, p), _scaled(new.T @ new, penalties, n), penalties
        )
        new = new if bases is None else new @ bases[1]
        yield Iterate((U, V, new), value, share(float(gradient**2), float(size**2)))
        V = new


def one_pass(
    design: Design, V: Array, mean: float, lam: Array, biases: bool
) -> tuple[Any, float, Array, Array, Array]:
    """The users' factors, their part of the loss, F'F, (X - mu - b)'F and U'U; F is (U, 1) with biases."""
    F, shift = V.copy(), np.full(len(V), mean)
    if biases:
        F[:, -1], shift = 1.0, mean + V[:, -1]
    matrix = F.T @ F + np.diag(lam)
    inverse, offset = pseudo_inverse(matrix), shift @ F

    def part(blocks: Iterator[tuple[slice, Any]]) -> tuple[list[Any], float, Any, Any, Any]:
        found, loss, gram, cross, squares = [], 0.0, 0.0, 0.0, 0.0
        for _, block in blocks:
            block = _dense(block)
            right = block @ like(F, block) - like(offset, block)
            U = solved(right, like(matrix, block), like(inverse, block))
            rest = block - U @ like(F.T, block) - like(shift, block)
            loss += 0.5 * float((rest * rest).sum() + (U * U).sum(axis=0) @ like(lam, block))
            W, target = U, block - like(np.full(1, mean), block)
            if biases:
                W = array_namespace(U).concat([U[:, :-1], U[:, :1] * 0 + 1.0], axis=1)
                target = target - U[:, -1:]
            gram = gram + W.T @ W
            cross = cross + target.T @ W
            squares = squares + U.T @ U
            found.append(U)
        return found, loss, gram, cross, squares

    parts = design.fold(part)
    blocks = [U for found, *_ in parts for U in found]
    U = array_namespace(blocks[0]).concat(blocks)
    loss = sum(part[1] for part in parts)
    gram, cross, squares = (
        np.sum([to_numpy(part[i]) for part in parts], axis=0) for i in (2, 3, 4)
    )
    return U, loss, gram, cross, squares


def fold_in_full(design: Design, V: Array, mean: float, penalties: Penalties) -> Any:
    """Factors of new users who rated every item."""
    users, _ = _strengths(penalties, design.shape[0], design.shape[1])
    return one_pass(design, V, mean, users, penalties.biases)[0]


def pseudo_inverse(matrix: Array) -> Array:
    """Of a symmetric matrix without negative eigenvalues, without those below rounding."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    inverse: Array = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return inverse


def solved(right: Any, matrix: Any, inverse: Any) -> Any:
    """Rows u with u matrix = right, refined once: an inverse alone leaves a residual of its condition."""
    u = right @ inverse
    return u + (right - u @ matrix) @ inverse


def _strengths(penalties: Penalties, n: int, p: int) -> tuple[Array, Array]:
    """The penalties of the two sides' columns; every user has p ratings and every item n."""
    if penalties.weighted:
        return penalties.users * p, penalties.items * n
    return penalties.users, penalties.items


def _scaled(gram: Array, penalties: Penalties, count: int) -> Array:
    return gram * count if penalties.weighted else gram


def _dense(block: Any) -> Any:
    return block.toarray() if hasattr(block, "toarray") else block
