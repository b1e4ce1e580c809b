"""Coordinate descent sweeps for the elastic net, dense and sparse.

The problem is, with z_j the column j times the roots of the weights,

    min_w  1/2 ||r||^2 + l1 ||w||_1 + l2/2 ||w||^2,     r = t - sum_j z_j w_j,

and the state is (w, r). One coordinate step is the textbook's soft-threshold; the residual follows. A closed
file: every jitted function it calls lives here.
"""

from __future__ import annotations

from numba import njit

__all__ = ["sweep_dense", "sweep_sparse"]

_FAST = {"reassoc", "contract", "nsz"}
_TAIL = "int64[::1], float64, float64, boolean"
_RO = "Array(float64, 1, 'C', readonly=True)"


@njit("float64(float64, float64, boolean)", cache=True, nogil=True)
def _soft(value, threshold, positive):
    if value > threshold:
        return value - threshold
    if value < -threshold and not positive:
        return value + threshold
    return 0.0


@njit(
    f"float64(Array(float64, 2, 'C', readonly=True), {_RO}, float64[::1], float64[::1], {_TAIL})",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def sweep_dense(ZT, norm2, w, r, order, l1, l2, positive):
    """Visit the coordinates once, in ``order``; return the largest move.

    ``ZT`` is Z transposed, so that a column lies in one piece. The move is |change of w_j| times norm2_j, the
    change of that coordinate's gradient.
    """
    n = ZT.shape[1]
    largest = 0.0
    for j in order:
        if norm2[j] == 0.0:
            continue
        old = w[j]
        dot = 0.0
        for i in range(n):
            dot += ZT[j, i] * r[i]
        new = _soft(dot + norm2[j] * old, l1, positive) / (norm2[j] + l2)
        if new != old:
            delta = new - old
            w[j] = new
            for i in range(n):
                r[i] -= delta * ZT[j, i]
            largest = max(largest, abs(delta) * norm2[j])
    return largest


@njit(
    [
        f"float64({_RO}, Array({index}, 1, 'C', readonly=True), Array({index}, 1, 'C', readonly=True), "
        f"{_RO}, float64, {_RO}, float64[::1], float64[::1], float64[::1], {_TAIL})"
        for index in ("int32", "int64")
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def sweep_sparse(data, rows, ptr, mean, mass, norm2, w, r, shift, order, l1, l2, positive):
    """The same on compressed columns, O(non-zeros) a coordinate.

    Centring would fill the columns. Instead the residual is r_i + shift[0] root_i, root_i the root of the
    weight s_i: a move of w_j adds m_j times the move to ``shift``, and the sum over the rows of a column
    needs only its mean and the ``mass``, the sum of the weights, because the residuals of a model with its
    best intercept sum to 0.
    """
    largest = 0.0
    for j in order:
        if norm2[j] == 0.0:
            continue
        old = w[j]
        dot = shift[0] * mean[j] * mass
        for k in range(ptr[j], ptr[j + 1]):
            dot += data[k] * r[rows[k]]
        new = _soft(dot + norm2[j] * old, l1, positive) / (norm2[j] + l2)
        if new != old:
            delta = new - old
            w[j] = new
            for k in range(ptr[j], ptr[j + 1]):
                r[rows[k]] -= delta * data[k]
            shift[0] += delta * mean[j]
            largest = max(largest, abs(delta) * norm2[j])
    return largest
