"""Coordinate descent epochs for the weighted elastic net, dense and sparse.

The problem is, with m_j the weighted mean of column j (0 without an intercept),

    min_w  1/2 sum_i s_i (y_i - ybar - sum_j (x_ij - m_j) w_j)^2 + l1 ||w||_1 + l2/2 ||w||^2,

and the state is (w, u) with u_i = s_i times the residual. One coordinate step is the textbook's
soft-threshold; the residual follows. A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

from numba import njit

__all__ = ["epochs_dense", "epochs_sparse"]

_FAST = {"reassoc", "contract", "nsz"}
_TAIL = "float64, float64, boolean, int64"
_RO = "Array(float64, 1, 'C', readonly=True)"


@njit("float64(float64, float64, boolean)", cache=True, nogil=True)
def _soft(value, threshold, positive):
    if value > threshold:
        return value - threshold
    if value < -threshold and not positive:
        return value + threshold
    return 0.0


@njit(
    f"float64(Array(float64, 2, 'C', readonly=True), {_RO}, {_RO}, {_RO}, float64[::1], float64[::1], "
    f"int64[::1], {_TAIL})",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def epochs_dense(XT, s, m, norm2, w, u, ws, l1, l2, positive, epochs):
    """Advance (w, u) by ``epochs`` passes over the working set; return the last pass's largest move.

    ``XT`` is X transposed, so that a column lies in one piece. The move is |change of w_j| times
    norm2_j, the change of that coordinate's gradient.
    """
    n = XT.shape[1]
    largest = 0.0
    for _ in range(epochs):
        largest = 0.0
        for j in ws:
            if norm2[j] == 0.0:
                continue
            old, mean = w[j], m[j]
            dot = 0.0
            for i in range(n):
                dot += (XT[j, i] - mean) * u[i]
            new = _soft(dot + norm2[j] * old, l1, positive) / (norm2[j] + l2)
            if new != old:
                delta = new - old
                w[j] = new
                for i in range(n):
                    u[i] -= delta * s[i] * (XT[j, i] - mean)
                largest = max(largest, abs(delta) * norm2[j])
    return largest


@njit(
    [
        f"float64({_RO}, Array({index}, 1, 'C', readonly=True), Array({index}, 1, 'C', readonly=True), "
        f"{_RO}, {_RO}, {_RO}, float64[::1], float64[::1], float64[::1], int64[::1], {_TAIL})"
        for index in ("int32", "int64")
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def epochs_sparse(data, rows, ptr, s, m, norm2, w, u, shift, ws, l1, l2, positive, epochs):
    """The same on compressed columns, O(non-zeros) a coordinate.

    Centring would fill the columns. Instead the residual is u_i + shift[0] s_i: a move of w_j adds
    m_j times the move to ``shift``, and the sum over the rows of a column needs only its mean, because
    the residuals of a model with its best intercept sum to zero.
    """
    mass = 0.0
    for i in range(len(s)):
        mass += s[i]
    largest = 0.0
    for _ in range(epochs):
        largest = 0.0
        for j in ws:
            if norm2[j] == 0.0:
                continue
            old = w[j]
            dot = shift[0] * m[j] * mass
            for k in range(ptr[j], ptr[j + 1]):
                dot += data[k] * u[rows[k]]
            new = _soft(dot + norm2[j] * old, l1, positive) / (norm2[j] + l2)
            if new != old:
                delta = new - old
                w[j] = new
                for k in range(ptr[j], ptr[j + 1]):
                    u[rows[k]] -= delta * s[rows[k]] * data[k]
                shift[0] += delta * m[j]
                largest = max(largest, abs(delta) * norm2[j])
    return largest
