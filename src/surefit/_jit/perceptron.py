"""Perceptron epochs, compiled: rows are visited one by one, so the loop cannot be array code.

Every jitted function called here lives here, because numba's disk cache looks at this file alone.

The step on a row (x, y) with step length c is

    w <- d w                            the L2 part of the penalty, d = 1 - c * l2
    if y (<x, w> + b) <= 0:             a mistake; a score of 0 is one (DAT-8)
        w <- w + c y x,   b <- b + c y
    w <- w truncated towards 0          the L1 part, cumulative (Tsuruoka, Tsujii, Ananiadou, 2009)

``w`` is held as ``scale * v`` within an epoch, so that the decay costs one product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types, uint32

__all__ = ["epochs_csr", "epochs_dense", "shuffle_positions"]

_FAST = {"reassoc", "contract", "nsz"}  # sums may be reordered; NaN and infinity keep their meaning
_TINY = 1e-9  # a smaller scale is folded into the vector


def _reads(dtype: Any, ndim: int) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


_ROWS = (_reads(float64, 1), _reads(float64, 1), _reads(int64, 2))  # y, step, orders
_STATE = (float64[::1], float64[::1], float64[::1])  # w, received, (b, owed, rate)
_RULES = (boolean, float64, float64, float64)  # fit_intercept, decay, l2, l1
_CSR = (_reads(float64, 1), _reads(uint32, 1), _reads(int64, 1))  # data, indices, indptr


@njit(fastmath=_FAST, nogil=True)
def _norms(v, scale):
    """Squared L2 norm and L1 norm of ``scale * v``."""
    square, absolute = 0.0, 0.0
    for j in range(v.shape[0]):
        square += v[j] * v[j]
        absolute += abs(v[j])
    return scale * scale * square, scale * absolute


@njit(nogil=True)
def _truncate(v, received, j, owed, scale):
    """Pay weight ``j``'s share of the L1 penalty: move it towards 0, not past it.

    ``owed`` is what each weight should have paid so far; ``received[j]`` is minus what a positive
    weight (plus what a negative one) has paid.
    """
    before = v[j]
    if before > 0.0:
        v[j] = max(0.0, before - (owed + received[j]) / scale)
    elif before < 0.0:
        v[j] = min(0.0, before + (owed - received[j]) / scale)
    received[j] += scale * (v[j] - before)


@njit(nogil=True)
def _pay(v, received, where, owed, scale):
    """:func:`_truncate` at the given places; how much the two norms of ``scale * v`` fall."""
    less, fewer = 0.0, 0.0
    for j in where:
        before = v[j]
        _truncate(v, received, j, owed, scale)
        less += before * before - v[j] * v[j]
        fewer += abs(before) - abs(v[j])
    return scale * scale * less, scale * fewer


@njit(nogil=True, fastmath=_FAST)
def _add(v, x, where, factor, with_norms):
    """``v[where] += factor * x``; how much the two norms of ``v`` fall, if they are wanted."""
    less, fewer = 0.0, 0.0
    if not with_norms:
        for k in range(x.shape[0]):
            v[where[k]] += factor * x[k]
        return less, fewer
    for k in range(x.shape[0]):
        before = v[where[k]]
        v[where[k]] += factor * x[k]
        after = v[where[k]]
        less += before * before - after * after
        fewer += abs(before) - abs(after)
    return less, fewer


@njit(
    (_reads(float64, 2), *_ROWS, *_STATE, *_RULES),
    cache=True,
    nogil=True,
    fastmath=_FAST,
    error_model="numpy",
)
def epochs_dense(X, y, step, orders, w, received, scalars, fit_intercept, decay, l2, l1):
    """Advance ``w``, ``received`` and ``scalars`` in place, one epoch per row of ``orders``.

    ``scalars`` is (b, L1 penalty owed so far, learning rate); ``step[i]`` is the learning rate times
    the weight of row ``i``. Returns, for each epoch, the sum over visits of loss plus penalty, and
    the number of mistakes.
    """
    b, owed, rate = scalars[0], scalars[1], scalars[2]
    values = np.zeros(orders.shape[0])
    mistakes = np.zeros(orders.shape[0], dtype=np.int64)
    for epoch in range(orders.shape[0]):
        value, wrong, scale = 0.0, 0, 1.0
        square, absolute = _norms(w, scale)
        for i in orders[epoch]:
            x = X[i]
            dot = 0.0
            for j in range(x.shape[0]):
                dot += x[j] * w[j]
            margin = y[i] * (scale * dot + b)
            value += max(0.0, -margin) + 0.5 * l2 * square + l1 * absolute
            if l2 > 0.0:
                scale *= decay
                square *= decay * decay
                absolute *= decay
                if scale < _TINY:
                    w *= scale
                    scale = 1.0
            mistake = margin <= 0.0 and step[i] > 0.0
            if mistake:
                wrong += 1
                change = y[i] * step[i]
                for j in range(x.shape[0]):
                    w[j] += (change / scale) * x[j]
                if fit_intercept:
                    b += change
            if l1 > 0.0:
                owed += rate * l1
                for j in range(x.shape[0]):
                    _truncate(w, received, j, owed, scale)
            if l1 > 0.0 or (mistake and l2 > 0.0):
                square, absolute = _norms(w, scale)
        w *= scale
        values[epoch], mistakes[epoch] = value, wrong
    scalars[0], scalars[1] = b, owed
    return values, mistakes


@njit(
    (*_CSR, *_ROWS, *_STATE, *_RULES),
    cache=True,
    nogil=True,
    fastmath=_FAST,
    error_model="numpy",
)
def epochs_csr(
    data, indices, indptr, y, step, orders, w, received, scalars, fit_intercept, decay, l2, l1
):
    """:func:`epochs_dense` on compressed rows: a visit costs its non-zeros, not the dimension.

    A weight pays the L1 penalty it owes when its feature is met, before it is used, and at the end
    of the epoch. The two norms are kept up to date through the weights that change.
    """
    b, owed, rate = scalars[0], scalars[1], scalars[2]
    values = np.zeros(orders.shape[0])
    mistakes = np.zeros(orders.shape[0], dtype=np.int64)
    for epoch in range(orders.shape[0]):
        value, wrong, scale = 0.0, 0, 1.0
        square, absolute = _norms(w, scale)
        for i in orders[epoch]:
            x, where = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
            if l1 > 0.0:
                less, fewer = _pay(w, received, where, owed, scale)
                square -= less
                absolute -= fewer
            dot = 0.0
            for k in range(x.shape[0]):
                dot += x[k] * w[where[k]]
            margin = y[i] * (scale * dot + b)
            value += max(0.0, -margin) + 0.5 * l2 * square + l1 * absolute
            if l2 > 0.0:
                scale *= decay
                square *= decay * decay
                absolute *= decay
                if scale < _TINY:
                    w *= scale
                    scale = 1.0
            if margin <= 0.0 and step[i] > 0.0:
                wrong += 1
                change = y[i] * step[i]
                less, fewer = _add(w, x, where, change / scale, l1 > 0.0 or l2 > 0.0)
                square -= scale * scale * less
                absolute -= scale * fewer
                if fit_intercept:
                    b += change
            if l1 > 0.0:
                owed += rate * l1
                less, fewer = _pay(w, received, where, owed, scale)
                square -= less
                absolute -= fewer
        w *= scale
        if l1 > 0.0:
            for j in range(w.shape[0]):
                _truncate(w, received, j, owed, 1.0)
        values[epoch], mistakes[epoch] = value, wrong
    scalars[0], scalars[1] = b, owed
    return values, mistakes


@njit((int64, uint32), cache=True, nogil=True)
def shuffle_positions(n, seed):
    """A Fisher-Yates permutation of ``range(n)``, driven by Marsaglia's 32-bit xorshift.

    The generator, the draw and the seed are those of scikit-learn's stochastic solvers, so that the
    same ``random_state`` visits the rows in the same order there and here.
    """
    state = np.uint32(seed)
    if state == np.uint32(0):
        state = np.uint32(1)
    positions = np.arange(n)
    for i in range(n - 1):
        state ^= np.uint32(state << np.uint32(13))
        state ^= np.uint32(state >> np.uint32(17))
        state ^= np.uint32(state << np.uint32(5))
        draw = np.int64(state & np.uint32(0x7FFFFFFF))
        j = i + draw % (n - i)
        positions[i], positions[j] = positions[j], positions[i]
    return positions
