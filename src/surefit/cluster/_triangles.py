r"""Inequalities that every clustering satisfies, and its semidefinite relaxation need not.

Let Z be the matrix of a clustering of rows with weights :math:`w_i = v_i^2`, and :math:`Y_{ij} = Z_{ij} /
(v_i v_j)`: one over the weight of the cluster that holds i and j, or 0. For any three rows

.. math:: \langle T_{ijk}, Z\rangle = Y_{ii} + Y_{jk} - Y_{ij} - Y_{ik} \ge 0 .

*Proof.* If j and k are both with i, all four are equal; if one of them is, :math:`Y_{ii}` is equal to its
entry and the other two are at least 0; if none is, nothing is subtracted. ∎ So :math:`\sum_c t_c T_c` may
be added to the matrix B of :mod:`surefit.cluster._sdp_bound` for any :math:`t \ge 0`. A few thousand of
the n³/2 triangles usually close what the relaxation leaves open.

References
----------
Peng & Wei (2007). Aloise, Hansen & Liberti, "An improved column generation algorithm for minimum
sum-of-squares clustering", Math. Program. 131 (2012). Piccialli, Sudoso & Wiegele, "SOS-SDP: an exact
solver for minimum sum-of-squares clustering", INFORMS J. Comput. 34 (2022).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._spectra import UNIT

__all__ = ["Triangles"]

Array = NDArray[np.float64]
_LEAST = 1e-4  # of a mean diagonal entry: violations below are left
_NEAR = 0.01  # share of Y_ii below which Y_ij cannot take part in a violation worth having


class Triangles:
    """Some triangles, each with its multiplier.

    Examples
    --------
    >>> cuts = Triangles(np.ones(3))
    >>> Y = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, 0.0], [0.9, 0.0, 1.0]])   # 1 ~ 0 ~ 2, but not 1 ~ 2
    >>> cuts.search(Y, most=10)
    1
    >>> cuts.rows.tolist(), cuts.slack(Y).round(9).tolist()
    ([[0, 1, 2]], [-0.8])
    """

    def __init__(self, roots: Array) -> None:
        self.roots = roots
        self.rows: NDArray[np.int64] = np.zeros((0, 3), dtype=np.int64)
        self.t: Array = np.zeros(0)
        self._step: Array = np.zeros(0)

    def __len__(self) -> int:
        return len(self.t)

    def _pairs(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Places in the flat matrix (4, m), signs and coefficients of the four terms."""
        i, j, k = self.rows.T
        first, second = np.stack([i, j, i, i]), np.stack([i, k, j, k])
        n = len(self.roots)
        places = np.minimum(first, second) * n + np.maximum(first, second)
        signs = np.array([1.0, 1.0, -1.0, -1.0])[:, None]
        return places, signs, 1.0 / (self.roots[first] * self.roots[second])

    def slack(self, Z: Array) -> Array:
        """<T_c, Z>: negative where violated."""
        places, signs, sizes = self._pairs()
        return np.asarray((signs * sizes * Z.ravel()[places]).sum(axis=0))

    def matrix(self) -> Array:
        """sum_c t_c T_c."""
        places, signs, sizes = self._pairs()
        return self._spread(places, signs * sizes * self.t)

    def error(self) -> float:
        """A bound on what rounding did to :meth:`matrix`, in the Frobenius norm."""
        if not len(self):
            return 0.0
        places, _, sizes = self._pairs()
        most = int(np.bincount(places.ravel()).max())
        return 4.0 * (most + 8) * UNIT * float(np.linalg.norm(self._spread(places, sizes * self.t)))

    def _spread(self, places: NDArray[np.int64], values: Array) -> Array:
        n = len(self.roots)
        flat = np.bincount(places.ravel(), values.ravel(), minlength=n * n)
        half = 0.5 * flat.reshape(n, n)
        return np.asarray(half + half.T)

    def raise_multipliers(self, Z: Array, rho: float) -> None:
        """One step up the augmented dual, as long as the overlap of the triangles allows."""
        self.t = np.maximum(0.0, self.t - rho * self._step * self.slack(Z))

    def search(self, Z: Array, most: int) -> int:
        """Drop the triangles that are not needed, add the most violated ones; how many were added."""
        needed = self.t > 0.0
        self.rows, self.t = self.rows[needed], self.t[needed]
        Y = Z / np.multiply.outer(self.roots, self.roots)
        found, size = _violated(Y, most), len(self.roots)
        known = np.isin(_key(found, size), _key(self.rows, size))
        found = found[~known]
        self.rows = np.concatenate([self.rows, found])
        self.t = np.concatenate([self.t, np.zeros(len(found))])
        if len(self):
            places, _, sizes = self._pairs()
            share = np.array([1.0, 0.5, 0.5, 0.5])[
                :, None
            ]  # an entry off the diagonal stands twice
            overlap = np.bincount(places.ravel(), sizes.ravel())
            self._step = 1.0 / (share * sizes * overlap[places]).sum(axis=0)
        return len(found)


def _key(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    return (rows[:, 0] * n + rows[:, 1]) * n + rows[:, 2]


def _violated(Y: Array, most: int) -> NDArray[np.int64]:
    """The most violated triangles (i, j, k) with j < k, at most ``most`` of them."""
    n, least = len(Y), _LEAST * float(np.diag(Y).mean())
    rows, sizes = [np.zeros((0, 3), dtype=np.int64)], [np.zeros(0)]
    each = max(1, most // 5)  # of one i
    for i in range(n):
        near = np.flatnonzero(Y[i] > _NEAR * Y[i, i])
        near = near[near != i]
        y = Y[i, near]
        excess = np.add.outer(y, y - Y[i, i]) - Y[near[:, None], near]
        a, b = np.nonzero(np.triu(excess > least, 1))
        size = excess[a, b]
        if len(size) > each:
            top = np.argpartition(-size, each)[:each]
            a, b, size = a[top], b[top], size[top]
        rows.append(np.stack([np.full(len(a), i), near[a], near[b]], axis=1))
        sizes.append(size)
    order = np.argsort(-np.concatenate(sizes), kind="stable")[:most]
    return np.asarray(np.concatenate(rows)[order])
