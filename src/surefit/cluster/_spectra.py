r"""The sum of the largest eigenvalues of a symmetric matrix, from above, for certain.

For every :math:`\theta` and every :math:`W \succeq 0` with :math:`H = \theta I + W - A \succeq 0`,

.. math:: \lambda_1 + \dots + \lambda_k = \max_P \langle A, P\rangle \le k\theta + \operatorname{tr} W,

the maximum being over :math:`0 \preceq P \preceq I` with trace k (Ky Fan): :math:`\langle H, P\rangle \ge
0` and :math:`\langle W, P\rangle \le \operatorname{tr} W`. Computed eigenpairs say which :math:`\theta`
and W to take, and need not be right: that H is positive semi-definite is shown by a Cholesky
factorisation that runs to its end. In floating point it then holds up to :math:`\gamma_{n+1}
\operatorname{tr} H`, which is added, as is the rounding of H.

References
----------
Fan, "On a theorem of Weyl concerning eigenvalues", PNAS 35 (1949). Rump, "Verification of positive
definiteness", BIT 46 (2006).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh

__all__ = ["UNIT", "gram_of_rows", "project_out", "too_small", "top_sum_bound"]

Array = NDArray[np.float64]
UNIT = 2.0**-53
_TRIES = 12  # each with a margin sixteen times as wide


def top_sum_bound(A: Array, k: int) -> float:
    """A number that the sum of the k largest eigenvalues of A does not exceed.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric; its entries are taken as exact.
    k : int

    Examples
    --------
    >>> A = np.diag([5.0, 3.0, 1.0])
    >>> bound = top_sum_bound(A, 2)
    >>> 8.0 <= bound <= 8.0 + 1e-12
    True
    """
    reach = float(np.abs(A).max(initial=0.0))
    if k <= 0 or reach == 0.0:
        return 0.0
    if not reach < 2.0**1000:
        return math.inf
    unit = 2.0 ** -max(math.frexp(reach)[1], -1020)  # or squares, in the norms, leave the range
    return math.nextafter(_top_sum(A * unit, k) / unit, math.inf)


def _top_sum(A: Array, k: int) -> float:
    n = len(A)
    size = float(np.linalg.norm(A))
    if k >= n:
        return float(np.trace(A)) + 4 * n * UNIT * float(np.abs(np.diag(A)).sum())
    values, Q = eigh(A, subset_by_index=[n - k - 1, n - 1])
    below, values, Q = float(values[0]), values[1:], Q[:, 1:]
    share = 2.0 * (n + 2) * UNIT  # twice what a Cholesky factorisation may err, of the trace
    trace = n * abs(below) + float(np.abs(np.diag(A)).sum()) + float(np.abs(values).sum())
    margin = 4.0 * share * trace + 4.0 * n * UNIT * size
    theta = below + max(margin, 0.5 * (float(values[0]) - below))
    for _ in range(_TRIES):
        excess = np.maximum(values - theta, 0.0) + margin  # or H would be singular along Q
        H = (Q * excess) @ Q.T  # W
        above = float(np.sum(excess * (Q * Q).sum(axis=0)))  # tr W
        rounding = 2.0 * UNIT * ((k + 4) * above + abs(theta) * np.sqrt(n) + size)
        H -= A
        H[np.diag_indices(n)] += theta
        try:
            np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            margin *= 16.0
            theta = max(theta, below + margin)
            continue
        slack = k * share * float(np.trace(H)) + np.sqrt(k) * rounding
        return float(k * theta + above + slack + 8 * (n + k) * UNIT * (k * abs(theta) + above))
    return float(np.sqrt(k) * size * (1.0 + 4 * n * UNIT))  # Cauchy-Schwarz


def too_small(trace: float, cells: int) -> bool:
    """Whether products that fell below the range of float64 may count beside this trace."""
    return not trace > cells * 2.0**-1000  # each of them is off by 2^-1075 at most


def gram_of_rows(rows: Any, roots: Array) -> tuple[Array, float, float]:
    """V X X' V, its trace and a bound on its error; dense rows are moved near their mean first."""
    n, p = rows.shape
    if sp.issparse(rows):
        V = sp.csr_array(rows).astype(np.float64).multiply(roots[:, None]).tocsr()
        G = np.asarray((V @ V.T).toarray())
    else:
        squares = roots * roots
        V = (rows - squares @ rows / squares.sum()) * roots[:, None]
        G = V @ V.T
    G = 0.5 * (G + G.T)
    trace = float(np.trace(G))
    return G, trace, 4.0 * (n + p + 16) * UNIT * trace


def _length(A: Array) -> float:
    """The Frobenius norm, also where the squares of entries leave the range of float64."""
    reach = float(np.abs(A).max(initial=0.0))
    return reach * float(np.linalg.norm(A / reach)) if reach > 0.0 else 0.0


def project_out(A: Array, roots: Array) -> tuple[float, Array, float]:
    """u'Au, PAP and a bound on their error, with u = v/|v| and P = I - uu'.

    A matrix Z' with Z'u = 0 does not see what is subtracted, whichever vector a is used:
    <A, Z'> = <A - au' - ua' + q uu', Z'>.
    """
    u = roots / np.linalg.norm(roots)
    a = A @ u
    q = float(u @ a)
    N = A - np.multiply.outer(a - q * u, u)
    N -= np.multiply.outer(u, a)
    N = 0.5 * (N + N.T)
    size = _length(A) + 2.0 * _length(a) + abs(q)
    return q, N, 4.0 * (len(u) + 16) * UNIT * size
