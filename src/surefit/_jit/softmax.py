"""Coordinate descent epochs on the quadratic model of a penalised softmax regression.

With p_i the class probabilities of sample i, the model of the loss around the current point is

    sum_jk G_jk D_jk + 1/2 sum_i s_i sum_k p_ik (m_ik - q_i)^2,    m = X D + 1 c',  q_i = sum_k p_ik m_ik,

D and c being the moves of coefficients and intercepts. Carrying q makes a coordinate step on the
*full* Hessian cost O(rows) instead of O(rows x classes). A closed file.
"""

from __future__ import annotations

from numba import njit

__all__ = ["softmax_dense", "softmax_sparse"]

_FAST = {"reassoc", "contract", "nsz"}
_V = "Array(float64, 1, 'C', readonly=True)"
_M = "Array(float64, 2, 'C', readonly=True)"
_STATE = "float64[:, ::1], float64[::1], float64[:, ::1], float64[::1]"
_REST = f"{_V}, {_M}, {_M}, {_V}, {_M}, {_V}, {_STATE}, int64[::1], float64, float64, boolean"


@njit("float64(float64, float64)", cache=True, nogil=True)
def _soft(value, threshold):
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return 0.0


@njit(
    f"float64({_V}, {_M}, {_V}, {_V}, float64[::1], float64[:, ::1], float64[::1])",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def _intercepts(s, P, gb, curv_b, c, m, q):
    """One pass over the free intercepts."""
    n, K = P.shape
    largest = 0.0
    for k in range(K):
        if curv_b[k] <= 0.0:
            continue
        slope = gb[k]
        for i in range(n):
            slope += s[i] * P[i, k] * (m[i, k] - q[i])
        delta = -slope / curv_b[k]
        c[k] += delta
        for i in range(n):
            m[i, k] += delta
            q[i] += P[i, k] * delta
        largest = max(largest, abs(slope))
    return largest


@njit(
    f"float64(Array(float64, 2, 'C', readonly=True), {_REST})",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def softmax_dense(XT, s, P, G, gb, curv, curv_b, W, c, m, q, ws, l1, l2, free):
    """One pass over the features in ``ws`` and all classes; returns the largest gradient change.

    P: probabilities (n, K). G (p, K), gb (K,): gradient of the loss at the current point. curv (p,
    K), curv_b (K,): its curvature along each coordinate. W, c, m, q: state, changed in place; W
    holds the new coefficients.
    """
    n = XT.shape[1]
    largest = 0.0
    if free:
        largest = _intercepts(s, P, gb, curv_b, c, m, q)
    for j in ws:
        for k in range(P.shape[1]):
            if curv[j, k] <= 0.0:
                continue
            slope = G[j, k]
            for i in range(n):
                slope += s[i] * XT[j, i] * P[i, k] * (m[i, k] - q[i])
            old = W[j, k]
            new = _soft(curv[j, k] * old - slope, l1) / (curv[j, k] + l2)
            if new != old:
                delta = new - old
                W[j, k] = new
                for i in range(n):
                    move = delta * XT[j, i]
                    m[i, k] += move
                    q[i] += P[i, k] * move
                largest = max(largest, abs(delta) * curv[j, k])
    return largest


@njit(
    [
        f"float64({_V}, Array({index}, 1, 'C', readonly=True), "
        f"Array({index}, 1, 'C', readonly=True), {_REST})"
        for index in ("int32", "int64")
    ],
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def softmax_sparse(data, rows, ptr, s, P, G, gb, curv, curv_b, W, c, m, q, ws, l1, l2, free):
    """The same on compressed columns."""
    largest = 0.0
    if free:
        largest = _intercepts(s, P, gb, curv_b, c, m, q)
    for j in ws:
        for k in range(P.shape[1]):
            if curv[j, k] <= 0.0:
                continue
            slope = G[j, k]
            for e in range(ptr[j], ptr[j + 1]):
                i = rows[e]
                slope += s[i] * data[e] * P[i, k] * (m[i, k] - q[i])
            old = W[j, k]
            new = _soft(curv[j, k] * old - slope, l1) / (curv[j, k] + l2)
            if new != old:
                delta = new - old
                W[j, k] = new
                for e in range(ptr[j], ptr[j + 1]):
                    i = rows[e]
                    move = delta * data[e]
                    m[i, k] += move
                    q[i] += P[i, k] * move
                largest = max(largest, abs(delta) * curv[j, k])
    return largest
