r"""A lower bound on the within-cluster sum of squares by the semidefinite relaxation of Peng and Wei.

Rows :math:`x_i` with weights :math:`w_i = v_i^2`; :math:`G_{ij} = v_i v_j \langle x_i, x_j\rangle`. A
clustering into K is the matrix :math:`Z = \sum_k v_k v_k' / \|v_k\|^2`, with :math:`v_k` the part of v in
cluster k, and

.. math:: \mathrm{WCSS}(Z) = \operatorname{tr} G - \langle G, Z\rangle , \qquad
          Zv = v,\quad \operatorname{tr} Z = K,\quad 0 \preceq Z \preceq I,\quad Z \ge 0 \text{ entrywise}.

**The bound.** Let :math:`u = v/\|v\|` and :math:`P = I - uu'`. For *any* symmetric :math:`B \ge 0`

.. math:: \mathrm{WCSS}^* \;\ge\; L(B) = \operatorname{tr} G - u'(G + B)u
          - \bigl(\lambda_1 + \dots + \lambda_{K-1}\bigr)\bigl(P(G + B)P\bigr).

*Proof.* :math:`\langle B, Z\rangle \ge 0`, so :math:`\mathrm{WCSS}(Z) \ge \operatorname{tr} G - \langle G
+ B, Z\rangle`. Since Zu = u, :math:`Z = uu' + Z'` with :math:`Z' = PZ'P`, :math:`0 \preceq Z' \preceq I`
and trace K - 1; the inner product of :math:`P(G + B)P` with such a Z' is at most the sum of its K - 1
largest eigenvalues (Ky Fan). ∎

The multiplier :math:`\mu` of Zv = v that the dual of a semidefinite program has is maximised out in L: it
would change :math:`G + B` by :math:`\mu v' + v\mu'`, which P removes. With B = 0, L is the PCA tail. No B
is infeasible: a poor one gives a weaker bound, never a wrong one, so whatever has found it need not be
trusted. The value is rounded down: see :mod:`surefit.cluster._spectra`.

**Triangles.** The relaxation alone leaves a few percent open on rows whose clusters touch. Every
inequality that clusterings satisfy may join :math:`B \ge 0`: the triangles of
:mod:`surefit.cluster._triangles` do, and then a bound equal to the WCSS is common, which proves the
clustering to be the best of all.

**Finding B.** First from the clustering at hand: if it is optimal and the clusters are well separated, B
= 0 within clusters and rank-one blocks between them attain WCSS (Iguchi et al.). Else by the alternating
direction method of multipliers on :math:`\max \langle G, Z\rangle` over the two sets of Z (spectral,
non-negative), one eigendecomposition a step. Its state is one matrix S: the non-negative iterate is its
positive part, and B is :math:`\rho` times its negative part. Violated triangles are added from time to time,
and their multipliers climb by gradient steps. Everything is deterministic.

References
----------
Peng & Wei, "Approximating k-means-type clustering via semidefinite programming", SIAM J. Optim. 18 (2007).
Iguchi, Mixon, Peterson & Villar, "Probably certifiably correct k-means clustering", Math. Program. 165
(2017). Sun, Toh & Yang, "A convergent 3-block semiproximal ADMM for conic programming", SIAM J. Optim. 25
(2015).
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh, eigvalsh

from .._namespace import to_numpy
from .._threads import one_thread
from ._pca_tail import Bound, rows_in_memory
from ._spectra import UNIT, gram_of_rows, project_out, too_small, top_sum_bound
from ._triangles import Triangles

__all__ = ["LARGEST_SDP", "dual_value", "sdp_bound"]

Array = NDArray[np.float64]
METHOD = "semidefinite relaxation"
LARGEST_SDP = 2000  # rows; a few n x n matrices are held, and factorised hundreds of times
_WORK = 1.6e12  # n^3 x steps: two minutes
_MOST_STEPS = 1000
_EVERY = 10  # steps between two values of the bound
_PATIENCE = 5  # values without progress,
_PATIENCE_TRIANGLES = 50  # and with triangles, which may stand still for long and then go on
_SEARCH = 50  # steps between two searches for triangles
_TRIANGLE_ROWS = 1000  # beyond, a search for triangles takes too long
_DENSE_CELLS = 1 << 24  # entries up to which sparse rows are compared for duplicates
_RELAX = 1.6


def sdp_bound(
    X: Any,
    sample_weight: Any,
    n_clusters: int,
    labels: Any,
    *,
    tol: float = 1e-6,
    triangles: bool = True,
    max_iter: int | None = None,
    time_limit: float | None = None,
) -> Bound:
    """The best bound L(B) found, from a clustering that it is to be compared with.

    Parameters
    ----------
    X : array, sparse matrix, tensor or Design
    sample_weight : array-like or None
    n_clusters : int
    labels : array-like of int
        A clustering: a hint. A bad one costs time, and nothing else.
    tol : float, default=1e-6
        Stop when the bound is that near to the WCSS of ``labels``, relatively.
    triangles : bool, default=True
        Whether to add triangle inequalities, up to 1,000 distinct rows: tighter, and slower.
    max_iter : int, optional
        Steps; about two minutes' worth for 2,000 rows, and at most 1,000, unless told.
    time_limit : float, optional
        Seconds. The result then depends on the speed of the machine.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0]])
    >>> bound = sdp_bound(X, None, 3, [0, 0, 1, 1, 2])
    >>> round(bound.value, 6), bound.words
    (1.0, 'reached after 0 steps')
    """
    rows, weights = rows_in_memory(X, sample_weight)
    labels = to_numpy(labels)
    if sample_weight is not None:
        labels = labels[to_numpy(sample_weight) > 0]
    rows, weights, labels = _distinct(rows, weights, labels)
    n = rows.shape[0]
    if n <= n_clusters:
        return Bound(0.0, METHOD, f"{n} distinct rows in {n_clusters} clusters: the best WCSS is 0")
    if n > LARGEST_SDP:
        return Bound(0.0, METHOD, f"{n} distinct rows are too many (at most {LARGEST_SDP})")
    most = 10 * n if triangles and n <= _TRIANGLE_ROWS else 0
    if max_iter is None:
        max_iter = int(np.clip((0.5 if most else 1.0) * _WORK / n**3, 1, _MOST_STEPS))
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    with (
        one_thread
    ):  # on a busy machine, threads that wait for each other cost more than they bring
        problem = _Relaxation(rows, np.sqrt(weights), n_clusters)
        if problem.unit == 0.0:
            return Bound(0.0, METHOD, "the squares of the rows leave the range of float64")
        B, cuts, words = problem.solve(labels, tol, max_iter, deadline, most)
        value = problem.certain(B, cuts)
    return Bound(float(max(0.0, value)), METHOD, words)


def dual_value(
    rows: Any, weights: Array, n_clusters: int, B: Array | None, cuts: Triangles | None = None
) -> float:
    """L(B), rounded down: a lower bound whatever the symmetric B >= 0 and the triangles are.

    Examples
    --------
    >>> X, B = np.array([[0.0], [1.0], [10.0]]), np.ones((3, 3))
    >>> dual_value(X, np.ones(3), 2, B) <= 0.5      # the best clustering: {0, 1}, {10}
    True
    """
    return _Relaxation(rows, np.sqrt(weights), n_clusters).certain(B, cuts)


class _Relaxation:
    """The data of the relaxation, the bound, and the search for B."""

    def __init__(self, rows: Any, roots: Array, n_clusters: int) -> None:
        self.roots, self.K = roots, n_clusters
        self.u = roots / np.linalg.norm(roots)
        G, trace, error = gram_of_rows(rows, roots)
        inside = not too_small(trace, G.size * rows.shape[1]) and trace < 2.0**1020
        self.unit = 2.0 ** -math.frexp(trace)[1] if inside else 0.0  # or norms leave the range
        self.G, self.trace, self.error = G * self.unit, trace * self.unit, error * self.unit

    def certain(self, B: Array | None, cuts: Triangles | None = None) -> float:
        """L(B), with the triangles in B, less all that rounding can have done to it."""
        A = self.G if B is None else self.G + np.maximum(0.5 * (B + B.T), 0.0)
        extra = 0.0
        if cuts is not None and len(cuts):
            A, extra = A + cuts.matrix(), cuts.error()
        along, N, error = project_out(A, self.roots)
        # Z' does not see uu'; moved down, the direction u is not among the largest
        shift = float(np.linalg.norm(N))
        N -= shift * np.multiply.outer(self.u, self.u)
        k = self.K - 1
        error += self.error + extra + 16 * UNIT * shift
        value = self.trace - along - top_sum_bound(N, k) - (2.0 + np.sqrt(k)) * error
        value = float(value - 8 * UNIT * abs(value))
        return math.nextafter(value / self.unit, -math.inf) if self.unit > 0.0 else -math.inf

    def value(self, B: Array) -> float:
        """L(B) as computed, to compare candidates."""
        A = self._deflated(self.G + B)
        along = float(self.u @ (self.G + B) @ self.u)
        return self.trace - along - float(_largest(A, self.K - 1).sum())

    def _deflated(self, A: Array) -> Array:
        """PAP, with u moved below all other eigenvectors."""
        a = A @ self.u
        q = float(self.u @ a)
        low = 2.0 * float(np.linalg.norm(A)) + 1.0
        half = a - 0.5 * (q - low) * self.u
        N = A - np.multiply.outer(half, self.u)
        N -= np.multiply.outer(self.u, half)
        return N

    # ------------------------------------------------------------------ the search

    def solve(
        self, labels: NDArray[Any], tol: float, max_iter: int, deadline: float, most: int
    ) -> tuple[Array | None, Triangles, str]:
        """The best B and triangles found, and how the search ended; ``most`` triangles a search."""
        u, cuts = self.u, Triangles(self.roots)
        if self.K == 1:
            return None, cuts, "exact for one cluster"
        Z = _membership(labels, self.roots)
        target = self.trace - float((self.G * Z).sum())  # the WCSS of the labels
        enough = target - 0.5 * tol * abs(target)
        zero = np.zeros_like(self.G)
        starts = [zero, _between_clusters(self.G, self.roots, labels)]
        top, best = max(((self.value(B), B) for B in starts), key=lambda pair: pair[0])
        kept_cuts = (cuts.rows, cuts.t)
        rho, size = float(np.linalg.norm(self.G)) / np.sqrt(self.K), float(np.linalg.norm(self.G))
        S, T, history, wanted = Z - best / rho, zero, [top], self.K + 4
        words = "reached after 0 steps" if top >= enough else f"stopped after {max_iter} steps"
        for step in range(1, (max_iter if top < enough else 0) + 1):
            # the nearest matrix of the spectral set to positive part + (G + B)/rho = |S| + (G + T)/rho
            kept, Q = _onto_projections(
                self._deflated(np.abs(S) + (self.G + T) / rho), self.K - 1, wanted
            )
            wanted = len(kept) + 4
            spectral = (Q * kept) @ Q.T + np.multiply.outer(u, u)
            old = np.maximum(S, 0.0)
            S += (1.0 if len(cuts) else _RELAX) * (spectral - old)
            new = np.maximum(S, 0.0)
            if len(cuts):
                cuts.raise_multipliers(2.0 * new - old, rho)
                T = cuts.matrix()
            if step % _EVERY and step < max_iter:
                continue
            primal = float(np.linalg.norm(spectral - new)) / np.sqrt(self.K)
            dual = rho * float(np.linalg.norm(new - old)) / size
            B = rho * (new - S)
            B[np.diag_indices(len(u))] = 0.0  # Z_ii >= 0 is implied, and costs
            value = self.value(B + T)
            if value > top:
                top, best, kept_cuts = value, B, (cuts.rows, cuts.t)
            history.append(top)
            if top >= enough:
                words = f"reached after {step} steps"
                break
            if _stalled(history, target, _PATIENCE_TRIANGLES if most else _PATIENCE):
                words = f"no more progress after {step} steps"
                break
            if time.monotonic() > deadline:
                words = f"stopped at the time limit after {step} steps"
                break
            factor = 1.5 if primal > 3.0 * dual else 1.0 / 1.5 if dual > 3.0 * primal else 1.0
            rho *= factor
            S = new + (S - new) / factor
            if most and step % _SEARCH == 0:
                cuts.search(new, most)
        cuts.rows, cuts.t = kept_cuts
        return best, cuts, words + (f", {len(cuts)} triangles" if len(cuts) else "")


def _stalled(history: list[float], target: float, patience: int) -> bool:
    """Whether the last values have closed less than a 500th of the gap."""
    if len(history) <= patience:
        return False
    return history[-1] - history[-1 - patience] < 0.002 * (target - history[-1])


def _largest(A: Array, k: int) -> Array:
    n = len(A)
    return np.asarray(eigvalsh(A, subset_by_index=[n - k, n - 1], check_finite=False))


def _onto_projections(N: Array, k: int, wanted: int) -> tuple[Array, Array]:
    """The matrix nearest to N with eigenvalues in [0, 1] and trace k: the positive ones, and vectors."""
    n = len(N)
    while True:
        m = min(n, wanted)
        values, Q = eigh(N, subset_by_index=[n - m, n - 1], check_finite=False)
        kept = _clipped(values, k)
        if m == n or kept[0] == 0.0:
            return kept[kept > 0.0], Q[:, kept > 0.0]
        wanted = 2 * m


def _clipped(values: Array, k: int) -> Array:
    """clip(values - t, 0, 1) for the t at which they sum to k."""
    ends = np.sort(np.concatenate([values, values - 1.0]))
    sums = np.clip(values - ends[:, None], 0.0, 1.0).sum(axis=1)  # falling
    t = np.interp(-k, -sums, ends)
    return np.asarray(np.clip(values - t, 0.0, 1.0))


def _membership(labels: NDArray[Any], roots: Array) -> Array:
    """Z of a clustering."""
    _, codes = np.unique(labels, return_inverse=True)
    same = codes[:, None] == codes[None, :]
    mass = np.bincount(codes, roots * roots)
    return np.where(same, np.multiply.outer(roots, roots / mass[codes]), 0.0)


def _between_clusters(G: Array, roots: Array, labels: NDArray[Any]) -> Array:
    r"""B that proves a well separated clustering optimal: 0 within clusters, rank one between two.

    With :math:`C = \frac12 D \circ vv'` (D: squared distances), a multiplier :math:`\mu` of Zv = v and
    :math:`\zeta` of the trace, complementary slackness wants :math:`(C - \frac12(\mu v' + v\mu') - B +
    \zeta I) v_k = 0` for each cluster. The rows of a cluster give its :math:`\mu`; the others give
    :math:`B_{ab} v_b = r_{ab}`, which falls as :math:`\zeta` grows, and :math:`\zeta` is the largest at
    which no entry is negative. Then :math:`B_{ab} = r_{ab} r_{ba}' / (r_{ba}' v_b)`.
    """
    n = len(roots)
    _, codes = np.unique(labels, return_inverse=True)
    rows, K = np.arange(n), int(codes.max()) + 1
    V = np.zeros((n, K))
    V[rows, codes] = roots
    mass = (V * V).sum(axis=0)
    norms = np.diag(G) / roots**2
    CV = 0.5 * (np.multiply.outer(roots * norms, mass) + np.multiply.outer(roots, norms @ (V * V)))
    CV -= G @ V
    means = (V * CV).sum(axis=0) / mass
    mu = (2.0 * CV[rows, codes] - roots * means[codes]) / mass[codes]
    R = CV - 0.5 * (np.multiply.outer(mu, mass) + np.multiply.outer(roots, means))
    slope = 0.5 * (mass / mass[codes][:, None] + 1.0) * roots[:, None]
    foreign = np.arange(K) != codes[:, None]
    zeta = float((R / slope)[foreign].min(initial=np.inf))
    R = np.where(foreign, np.maximum(R - max(0.0, zeta) * slope, 0.0), 0.0) if K > 1 else 0.0 * R
    totals = V.T @ R  # r_ab' v_a, symmetric for a clustering whose r are not clipped
    totals = np.maximum(totals, totals.T)
    scale = np.where(totals > 0.0, totals, np.inf)
    return R[:, codes] * R[:, codes].T / scale[codes][:, codes]


def _distinct(rows: Any, weights: Array, labels: NDArray[Any]) -> tuple[Any, Array, NDArray[Any]]:
    """Equal rows as one, of their total weight: some best clustering keeps them together."""
    if sp.issparse(rows):
        if rows.shape[0] * rows.shape[1] > _DENSE_CELLS:
            return rows, weights, labels
        rows = rows.toarray()
    found, first, codes = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(codes.ravel(), weights, minlength=len(found))
    return found.astype(np.float64), total.astype(np.float64), labels[first]
