r"""A lower bound on the within-cluster sum of squares, from the eigenvalues of the scatter matrix.

Replacing each row by its centre leaves a matrix of at most K distinct rows; less the mean, its rank is at
most K - 1. No matrix of that rank is nearer to the centred rows than their projection on the K - 1
leading principal components (Eckart & Young), so every clustering into K has

.. math:: \mathrm{WCSS} \ge \sum_{j \ge K} \lambda_j, \qquad
          S = \sum_i w_i (x_i - \bar x)(x_i - \bar x)' = \sum_j \lambda_j q_j q_j' .

It costs one more reading of the rows and a p x p eigenproblem. It is good where clusters lie in many
dimensions with equal noise in each, and says nothing (0) where the rows span K - 1 dimensions or fewer.

Rounding: S is formed about a shift near the mean (0 for sparse rows, which would fill up) and moved to
the mean; all of its errors together are at most :math:`c\,(n + 16)\,u\,\sum_i w_i \|x_i -
\text{shift}\|^2` in the Frobenius norm. The eigenvalues are bounded from above by
:func:`surefit.cluster._spectra.top_sum_bound`.

References
----------
Ding & He, "K-means clustering via principal component analysis", ICML 2004.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import like, scale_rows, to_numpy
from ..design import Dense, Design, Sparse, as_design
from ._spectra import UNIT, gram_of_rows, project_out, too_small, top_sum_bound

__all__ = ["LARGEST", "Bound", "pca_tail_bound", "pca_tail_bounds", "rows_in_memory"]

Array = NDArray[np.float64]
METHOD = "PCA tail"
LARGEST = 2000  # of a matrix whose eigenvalues are computed


class Bound(NamedTuple):
    """A number that no clustering into K goes below.

    Attributes
    ----------
    value : float
        0 where nothing is known.
    method : str
        ``"PCA tail"`` or ``"semidefinite relaxation"``.
    words : str
        Why it says nothing, or how its computation ended.
    """

    value: float
    method: str
    words: str = ""


def pca_tail_bound(X: Any, sample_weight: Any, n_clusters: int) -> Bound:
    """The sum of the eigenvalues of the scatter matrix beyond the K - 1 largest, less its rounding.

    Parameters
    ----------
    X : array, sparse matrix, tensor or Design
    sample_weight : array-like over the rows held here, or None
    n_clusters : int

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [9.0, 1.0], [9.0, -1.0]])
    >>> round(pca_tail_bound(X, None, 1).value, 9), round(pca_tail_bound(X, None, 2).value, 9)
    (85.0, 4.0)
    >>> pca_tail_bound(X, None, 3).words
    'the 4 rows of 2 features span no more than the 2 dimensions that 3 centres can have'
    """
    return pca_tail_bounds(X, sample_weight, [n_clusters])[0]


def pca_tail_bounds(X: Any, sample_weight: Any, n_clusters: Sequence[int]) -> list[Bound]:
    """The same for several numbers of clusters, from one scatter matrix."""
    design = as_design(X)
    n, p = design.shape
    short = n < p and n <= LARGEST and design.group.size == 1
    if not short and p > LARGEST:
        why = (
            f"{p} features are too many for the eigenvalues of a scatter matrix (at most {LARGEST})"
        )
        return [Bound(0.0, METHOD, why)] * len(n_clusters)
    trace, S, error = _gram(design, sample_weight) if short else _scatter(design, sample_weight)
    return [_tail(trace, S, error, K, design.shape) for K in n_clusters]


def _tail(trace: float, S: Array, error: float, K: int, shape: tuple[int, int]) -> Bound:
    k, (n, p) = K - 1, shape
    if k > 0 and k >= min(n - 1, p):
        why = (
            f"the {n} rows of {p} features span no more than the {k} dimensions that {K} centres can "
            "have"
        )
        return Bound(0.0, METHOD, why)
    if too_small(trace, n * p):
        return Bound(
            0.0, METHOD, f"the rows differ by too little for squares in float64 ({trace:.1g})"
        )
    value = trace - top_sum_bound(S, k) - (1.0 + np.sqrt(k)) * error
    if not value > 0.0:
        return Bound(0.0, METHOD, f"the rows span {k} dimensions to rounding, as {K} centres do")
    return Bound(float(value * (1.0 - 8 * UNIT)), METHOD)


def _scatter(design: Design, sample_weight: Any) -> tuple[float, Array, float]:
    """The trace of the centred scatter matrix, the matrix, and a bound on its error."""
    n, p = design.shape
    s = design.vector(np.ones(design.rows_here) if sample_weight is None else sample_weight)
    first = _folded(design, lambda rows, block: [s[rows].sum(), block.T @ s[rows]])
    mass, sums = design.group.sum(*first)
    sparse = sp.issparse(next(block for _, block in design.blocks()))
    shift = np.zeros(p) if sparse else sums / mass

    def products(rows: slice, block: Any) -> list[Any]:
        if sparse:  # about 0: centred rows would be dense
            return [as_design(block).gram(s[rows]), block.T @ s[rows]]
        moved = block - like(shift, block)
        scaled = scale_rows(s[rows] ** 0.5, moved)
        return [scaled.T @ scaled, moved.T @ s[rows]]

    S, sums = design.group.sum(*_folded(design, products))
    raw = float(np.trace(S))
    S = S - np.outer(sums, sums) / mass
    S = 0.5 * (S + S.T)
    return float(np.trace(S)), S, 4.0 * (n + 16) * UNIT * raw


def _folded(design: Design, work: Any) -> list[Array]:
    """``work(rows, block)`` gives arrays; their sums over the blocks held here."""

    def part(blocks: Iterator[tuple[slice, Any]]) -> list[Any]:
        total: list[Any] = []
        for rows, block in blocks:
            found = work(rows, block)
            total = [a + b for a, b in zip(total, found)] if total else found
        return total

    parts = [[to_numpy(array) for array in found] for found in design.fold(part) if found]
    return [np.sum(arrays, axis=0) for arrays in zip(*parts)]


def _gram(X: Any, sample_weight: Any) -> tuple[float, Array, float]:
    """The same for V (X - mean)(X - mean)' V with V = diag(sqrt(w)), which has the same eigenvalues."""
    rows, weights = rows_in_memory(X, sample_weight)
    G, raw, error = gram_of_rows(rows, np.sqrt(weights))
    along, N, more = project_out(G, np.sqrt(weights))
    return raw - along, N, error + more


def rows_in_memory(X: Any, sample_weight: Any) -> tuple[Any, Array]:
    """The rows of positive weight, as a numpy array or a sparse matrix, and their weights."""
    design = as_design(X)
    rows = design.X if isinstance(design, (Dense, Sparse)) else design.home()
    if sample_weight is None:
        return rows, np.ones(rows.shape[0])
    weights = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    return rows[weights > 0], weights[weights > 0]
