"""Block coordinate descent epochs for the multi-task elastic net, on a Gram matrix.

The problem is

    min_W  1/2 sum_t sum_i s_i (y_it - x_i'w_t)^2 + l1 sum_j ||W_j|| + l2/2 ||W||^2,

W_j the coefficients of feature j for all targets; the state is (W, Q) with Q = X'S(Y - XW), both stored
target by target. A closed file: every jitted function it calls lives here.
"""

from __future__ import annotations

import math

from numba import njit

__all__ = ["block_epoch"]

_FAST = {"reassoc", "contract", "nsz"}


@njit(
    "float64(float64[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], float64, float64)",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def block_epoch(G, Q, W, order, l1, l2):
    """Visit each feature once, in ``order``; return the largest ||move of W_j|| times G_jj."""
    targets, features = W.shape
    largest = 0.0
    for j in order:
        g = G[j, j]
        if g == 0.0:
            continue
        norm = 0.0
        for t in range(targets):
            norm += (Q[t, j] + g * W[t, j]) ** 2
        norm = math.sqrt(norm)
        shrink = (1.0 - l1 / norm) / (g + l2) if norm > l1 else 0.0
        moved = 0.0
        for t in range(targets):
            delta = shrink * (Q[t, j] + g * W[t, j]) - W[t, j]
            if delta != 0.0:
                W[t, j] += delta
                moved += delta * delta
                for i in range(features):
                    Q[t, i] -= delta * G[j, i]
        largest = max(largest, math.sqrt(moved) * g)
    return largest
