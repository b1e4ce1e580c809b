r"""The information that data hold about linear coefficients, in factored form.

For rows a_i = (1, x_i), weights v_i >= 0 and a quadratic penalty P, the matrix behind every standard error
is

    B = sum_i v_i a_i a_i' + P.

It is the Fisher information of a likelihood (v_i = 1 / sigma^2 for Gaussian noise, p_i (1 - p_i) for a
logistic model; REG-8), or the bread of a sandwich B^-1 M B^-1. What is kept is a root L with L L' = B^-1,
so that a covariance is L M L' with M = I for a likelihood and M = sum_i omega_i z_i z_i', z_i = L'a_i, for
a sandwich.

Columns are centred and scaled to unit length first. The Gram matrix is used where its condition leaves at
least ten digits; otherwise the rows themselves are orthogonalised block by block (QR), at twice the work
and half the lost digits. Where the rank is deficient, a coefficient is *identified* if it is the same in
every least-squares solution, that is, orthogonal to the null space; only those have a variance.

References
----------
White, "A heteroskedasticity-consistent covariance matrix estimator" (1980); Scheffe, The Analysis of
Variance (1959), section 1.4 (estimable functions); Demmel et al., "Communication-optimal parallel and
sequential QR" (2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Design

__all__ = [
    "MOST_PARAMETERS",
    "Root",
    "centred_rows",
    "factor",
    "intercept_moved",
    "intercept_moved_back",
    "leverages",
    "meat",
    "root_of",
]

Array = NDArray[np.float64]
MOST_PARAMETERS = 4000  # a dense matrix of this size is factored within a minute
_TRUST = 1e-4  # smallest eigenvalue of the scaled Gram matrix at which its inverse keeps ten digits
_BLOCK_BYTES = 1 << 22
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Root:
    """L with L L' = B^-1, and what the factorisation learnt.

    Attributes
    ----------
    center : array of shape (p,)
        What was subtracted from the features; 0 without an intercept.
    inner : array of shape (k, rank)
        The root for rows (1, x_i - center); k = p + 1, or p without an intercept.
    outer : array of shape (k, rank)
        L, for the parameters (intercept, coefficients).
    gram : array of shape (k, k)
        sum_i v_i (1, x_i - center)(1, x_i - center)', without the penalty.
    identified : array of bool of shape (k,)
    rank : int
    condition : float
        Of the centred columns scaled to unit length, penalty included; infinite when the rank is deficient.
    inflation : array of shape (k,)
        By which factor correlation with the other columns lengthens each standard error (the square root of
        the variance inflation factor).
    """

    center: Array
    inner: Array
    outer: Array
    gram: Array
    identified: NDArray[np.bool_]
    rank: int
    condition: float
    inflation: Array

    def information(self, fit_intercept: bool) -> Array:
        """sum_i v_i a_i a_i', for (intercept, coefficients)."""
        if not fit_intercept:
            return self.gram
        return intercept_moved_back(self.gram, self.center)


def factor(
    design: Design,
    v: Array,
    *,
    fit_intercept: bool,
    penalty: float = 0.0,
    intercept_penalty: float = 0.0,
) -> Root:
    """The root of sum_i v_i a_i a_i' + diag(intercept_penalty, penalty, ..., penalty).

    Parameters
    ----------
    design : Design of shape (n, p)
    v : array of shape (n,)
        Non-negative weights of the rows, not all zero.
    fit_intercept : bool
        Whether a_i begins with a 1.
    penalty, intercept_penalty : float
        What is added to the diagonal.
    """
    p = design.shape[1]
    weights, mass = design.vector(v), float(v.sum())
    center = design.mean(weights) if fit_intercept else np.zeros(p)
    gram = np.zeros((p + fit_intercept, p + fit_intercept))
    gram[-p:, -p:] = design.gram(weights, center if fit_intercept else None)
    if fit_intercept:
        gram[0, 0] = mass
    extra = np.zeros((len(gram), len(gram)))  # penalty rows, for the coefficients of centred rows
    extra[-p:, -p:] = np.sqrt(penalty) * np.eye(p)
    if fit_intercept:
        extra[0] = np.sqrt(intercept_penalty) * np.append(1.0, -center)

    def move(rows: Array) -> Array:
        return intercept_moved(rows, center) if fit_intercept else rows

    length = np.sqrt(np.diag(gram) + (extra * extra).sum(axis=0))
    varies = length[-p:] > 1e-10 * np.abs(center) * np.sqrt(mass)  # or hardly; then QR decides
    kept = np.ones(p) if design.centres_first else _kept_by_centring(gram, center, mass)
    if varies.all() and length.all() and kept.min() > _TRUST:
        scaled = (gram + extra.T @ extra) / np.outer(length, length)
        values, vectors = np.linalg.eigh(scaled)
        if values[0] > _TRUST * values[-1]:
            d, rank = np.sqrt(values), len(gram)
            return _assemble(center, gram, length, vectors, d, rank, move)
    R = _triangle(design, v, center, fit_intercept, extra)
    if fit_intercept:  # what rounding leaves of a constant column is no variation
        own = np.linalg.norm(R[1:, 1:], axis=0)
        R[:, 1:][:, own <= 64 * _EPS * np.abs(center) * np.sqrt(mass)] = 0.0
    length = np.linalg.norm(R, axis=0)
    length = np.where(length > 0, length, 1.0)
    _, d, Vt = np.linalg.svd(R / length)
    rank = int((d > d[0] * max(design.shape) * _EPS).sum())
    return _assemble(center, gram, length, Vt.T, d, rank, move)


def root_of(B: Array, center: Array, publish: Callable[[Array], Array]) -> Root:
    """The root of a given positive semi-definite matrix; ``publish`` makes parameters of its coordinates."""
    length = np.sqrt(np.diag(B))
    length = np.where(length > 0, length, 1.0)
    values, vectors = np.linalg.eigh(B / np.outer(length, length))
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > 10.0 * len(B) * _EPS * values[0]).sum())
    root = np.sqrt(np.maximum(values, 0.0))
    return _assemble(center, B, length, vectors, root, rank, publish)


def meat(design: Design, root: Root, omega: Array, *, fit_intercept: bool) -> Array:
    """sum_i omega_i z_i z_i' with z_i = L'a_i: the middle of a sandwich, in the coordinates of the root."""
    if root.condition < _TRUST**-0.5 and design.centres_first:
        weights, p = design.vector(omega), design.shape[1]
        total = np.zeros((p + fit_intercept, p + fit_intercept))
        total[-p:, -p:] = design.gram(weights, root.center if fit_intercept else None)
        if fit_intercept:
            total[0, 0] = omega.sum()
            total[0, 1:] = total[1:, 0] = design.tdot(weights) - omega.sum() * root.center
        return root.inner.T @ total @ root.inner
    total = np.zeros((root.rank, root.rank))
    for rows, A in centred_rows(design, root.center, fit_intercept):
        Z = A @ root.inner
        total += (Z * omega[rows, None]).T @ Z
    return total


def leverages(design: Design, root: Root, v: Array, *, fit_intercept: bool) -> Array:
    """v_i a_i' B^-1 a_i for each row: how much of its own fitted value it decides."""
    out = np.empty(design.shape[0])
    for rows, A in centred_rows(design, root.center, fit_intercept):
        Z = A @ root.inner
        out[rows] = np.einsum("ij,ij->i", Z, Z)
    return v * out


def centred_rows(
    design: Design, center: Array, fit_intercept: bool
) -> Iterator[tuple[slice, Array]]:
    """(rows, block) pairs of (1, x_i - center), or x_i - center, as dense numpy arrays."""
    size = max(1, _BLOCK_BYTES // (8 * max(1, design.shape[1])))
    for rows, block in design.blocks():
        for first in range(0, block.shape[0], size):
            part: Any = block[first : first + size]
            part = part.toarray() if sp.issparse(part) else to_numpy(part)
            A = np.ones((len(part), len(center) + fit_intercept))
            np.subtract(part, center, out=A[:, int(fit_intercept) :])
            yield slice(rows.start + first, rows.start + first + len(part)), A


def _triangle(design: Design, v: Array, center: Array, fit_intercept: bool, extra: Array) -> Array:
    """The triangular factor of the weighted rows with the penalty rows below, block by block."""
    stack, height = [extra], len(extra)
    for rows, A in centred_rows(design, center, fit_intercept):
        stack.append(np.sqrt(v[rows])[:, None] * A)
        height += len(A)
        if height >= 4 * len(extra):
            stack = [_upper(stack)]
            height = len(stack[0])
    return _upper(stack)


def _upper(blocks: list[Array]) -> Array:
    R: Any = np.linalg.qr(np.vstack(blocks), mode="r")
    return R


def _kept_by_centring(gram: Array, center: Array, mass: float) -> Array:
    """The share of a column's square that is left when its mean is subtracted after multiplying."""
    own = np.diag(gram)[-len(center) :]
    total = own + mass * center**2
    return np.divide(own, total, out=np.zeros_like(own), where=total > 0)


def _assemble(
    center: Array,
    gram: Array,
    length: Array,
    V: Array,
    d: Array,
    rank: int,
    publish: Callable[[Array], Array],
) -> Root:
    """From the singular vectors V and values d of the scaled matrix; the first ``rank`` count."""
    inner = V[:, :rank] / d[:rank] / length[:, None]
    outer = publish(inner)
    worst = float(d.max() / d[:rank].min()) if rank else np.inf
    identified = np.full(len(outer), True)
    if rank < len(V):  # a parameter is identified if no null vector moves it
        leak = np.linalg.norm(publish(V[:, rank:] / length[:, None]), axis=1)
        reach = np.linalg.norm(publish(np.diag(1.0 / length)), axis=1)
        identified = leak <= 1e3 * _EPS * worst * reach
    return Root(
        center=center,
        inner=inner,
        outer=outer,
        gram=gram,
        identified=identified,
        rank=rank,
        condition=worst if rank == len(V) else np.inf,
        inflation=np.linalg.norm(inner * length[:, None], axis=1),
    )


def intercept_moved(rows: Array, center: Array) -> Array:
    """Rows (intercept at the centre, w) turned into (intercept at 0, w), for each column."""
    moved = rows.copy()
    moved[0] -= center @ rows[1:]
    return moved


def intercept_moved_back(gram: Array, center: Array) -> Array:
    """The matrix of a quadratic form in (intercept at the centre, w), for (intercept at 0, w)."""
    half = gram.copy()
    half[:, 1:] += np.outer(gram[:, 0], center)
    full = half.copy()
    full[1:] += np.outer(center, half[0])
    return full
