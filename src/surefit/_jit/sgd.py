"""Stochastic gradient epochs for linear models, compiled: dense and compressed rows, float32 and float64.

One visit to a row (x, y) of weight s, with step eta, l1 and l2 the strengths of the penalty:

    z = <x, w> + b;   w <- max(0, 1 - eta l2) w;   w <- w - eta s l'(z, y) x;   b <- b - eta s l'(z, y);
    w <- w moved towards 0 by what it owes of the l1 penalty (cumulative: Tsuruoka, Tsujii, Ananiadou, 2009)

``w`` is held as ``scale * v``, so that the decay costs one product, and the sum of the iterates as
``total + mass * v``, so that averaging costs nothing where v does not change (Bottou, 2012). On
compressed rows a weight pays what it owes when its feature is met: decay and l1 in closed form through
prefix sums over the steps, so that dense and sparse rows give the same iterates.

``dual[i]`` collects what row i has put into w, decayed with it: where the penalty has an l2 part, that is
a dual point (Shalev-Shwartz & Kakade, "Mind the duality gap", 2008), handed over as a witness. An entry
of an earlier era has decayed to nothing.

A closed file: every jitted function called here lives here.
"""

from __future__ import annotations

import math

import llvmlite.ir as ir
import numpy as np
from numba import boolean, float32, float64, int64, njit, types, uint32, uint64
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["epochs", "judge", "l1_penalty", "shuffle_positions"]

_FAST = {"reassoc", "contract", "nsz"}  # sums may be reordered; NaN and infinity keep their meaning
_AHEAD = 4  # rows to fetch before their visit: they lie anywhere in memory
_LINES = 16  # of a row, at most; the processor guesses the rest
_LARGEST_SLOPE = 1e12
_1, _2, _3, _4 = (np.uint64(k) for k in (1, 2, 3, 4))

# The entries of ``state``, and of ``rules``; the same names are read by the solver.
(
    B,
    B_TOTAL,
    T,
    ETA,
    OWED,
    DUAL_SCALE,
    ERA,
    BEST,
    STALE,
    VALUE,  # of this epoch: the sum over its visits of loss plus penalty,
    VISITS,  # how many these are,
    UPDATES,  # and how many of them moved w
    ALL_UPDATES,
    VERDICT,
) = range(14)
(
    LOSS,
    EDGE,
    RATE,
    ETA0,
    POWER,
    T0,
    ALPHA,
    L1,
    L2,
    AVERAGE,
    INTERCEPT,
    TOL,
    PATIENCE,
    ENDS_CLEAN,
) = range(14)
HINGE, SQUARED_HINGE, LOGISTIC, MODIFIED_HUBER, SQUARED, HUBER, TUBE, SQUARED_TUBE = range(8)
CONSTANT, OPTIMAL, INVSCALING, ADAPTIVE, PA1, PA2 = range(6)
GOES_ON, FLAT, CLEAN, DIVERGED = range(4)


@intrinsic
def _fetch(typingctx, array, index):
    """Ask for the cache line of ``array``'s element ``index``; beyond the end it does nothing.

    Into the second cache: the first has few places for lines that are on their way, and waits when all
    are taken, which makes an epoch of sparse rows a third slower.
    """

    def codegen(context, builder, signature, args):
        source = context.make_array(signature.args[0])(context, builder, args[0])
        line = builder.bitcast(builder.gep(source.data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(fetch, [line, word(0), word(2), word(1)])  # to read, second cache, data
        return context.get_dummy_value()

    return types.void(array, index), codegen


@njit(nogil=True, _nrt=False, forceinline=True)
def _fetch_row(X, data, indices, indptr, i):
    per_line = 64 // X.itemsize
    if indptr.shape[0] == 0:
        start = int64(i) * X.shape[1]
        for k in range(min(_LINES, (X.shape[1] + per_line - 1) // per_line)):
            _fetch(X, start + k * per_line)
    else:
        start, stop = int64(indptr[i]), int64(indptr[i + 1])
        while start < stop:
            _fetch(data, start)
            _fetch(data, start + 8)
            _fetch(indices, start)
            start += 16


# ---------------------------------------------------------------------------- rows
# Places in compressed rows are unsigned: a signed index would be checked for counting from the end.


@njit(nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _dot_dense(X, i, v):
    dot = 0.0
    for j in range(v.shape[0]):
        dot += X[i, j] * v[j]
    return dot


@njit(nogil=True, _nrt=False, forceinline=True)
def _dot_csr(data, indices, start, stop, v):
    """Four sums: gathers are slower than loads, and one sum would wait for each addition."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    k, fours = start, start + ((stop - start) >> _2 << _2)
    while k < fours:
        s0 += data[k] * v[indices[k]]
        s1 += data[k + _1] * v[indices[k + _1]]
        s2 += data[k + _2] * v[indices[k + _2]]
        s3 += data[k + _3] * v[indices[k + _3]]
        k += _4
    while k < stop:
        s0 += data[k] * v[indices[k]]
        k += _1
    return (s0 + s1) + (s2 + s3)


@njit(nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _add_dense(X, i, v, total, mass, change):
    """v += change x_i. The sum of the iterates so far, total + mass v, must not move with v."""
    for j in range(v.shape[0]):
        v[j] += change * X[i, j]
    if total.shape[0] > 0 and mass != 0.0:
        for j in range(v.shape[0]):
            total[j] -= mass * change * X[i, j]


@njit(nogil=True, _nrt=False, forceinline=True)
def _add_csr(data, indices, start, stop, v, total, mass, change):
    for k in range(start, stop):
        v[indices[k]] += change * data[k]
    if total.shape[0] > 0 and mass != 0.0:
        for k in range(start, stop):
            total[indices[k]] -= mass * change * data[k]


@njit(nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _square_norm(X, data, indptr, i):
    square = 0.0
    if indptr.shape[0] == 0:
        for j in range(X.shape[1]):
            square += float64(X[i, j]) * X[i, j]
    else:
        for k in range(indptr[i], indptr[i + 1]):
            square += float64(data[k]) * data[k]
    return square


# ---------------------------------------------------------------------------- losses and steps


@njit(nogil=True, _nrt=False, forceinline=True)
def _loss(kind, edge, y, z):
    """Loss and derivative in z; ``edge`` is the margin, delta or epsilon of the losses that have one."""
    if kind <= MODIFIED_HUBER:
        margin = y * z
        if kind == HINGE:
            return (edge - margin, -y) if margin <= edge else (0.0, 0.0)
        if kind == LOGISTIC:
            e = math.exp(-abs(margin))
            share = 1.0 / (1.0 + e) if margin < 0 else e / (1.0 + e)
            return math.log1p(e) + max(-margin, 0.0), -y * share
        if margin >= edge:
            return 0.0, 0.0
        if kind == MODIFIED_HUBER and margin < -1.0:
            return -4.0 * margin, -4.0 * y
        return (edge - margin) ** 2, -2.0 * y * (edge - margin)
    error = z - y
    if kind == SQUARED or (kind == HUBER and abs(error) <= edge):
        return 0.5 * error * error, error
    side = 1.0 if error > 0.0 else -1.0
    if kind == HUBER:
        return edge * (abs(error) - 0.5 * edge), side * edge
    beyond = abs(error) - edge
    if beyond <= 0.0:
        return 0.0, 0.0
    return (beyond, side) if kind == TUBE else (beyond * beyond, 2.0 * side * beyond)


@njit(nogil=True, _nrt=False, forceinline=True)
def _power(t, exponent):
    """t ** exponent, without the general power where a root will do."""
    if exponent == 0.5:
        return math.sqrt(t)
    if exponent == 0.25:
        return math.sqrt(math.sqrt(t))
    return t**exponent


# ---------------------------------------------------------------------------- the l1 penalty
# Each weight should have paid ``owed`` so far; ``paid`` is minus what it has paid while positive, plus what
# it has paid while negative. A weight that is 0 cannot pay: its debt waits.


@njit(nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _truncated(before, paid, owed, inverse_scale):
    """A weight after it paid what it owes: nearer to 0, not past it."""
    debt = inverse_scale * (owed + math.copysign(paid, paid * before))
    return math.copysign(max(abs(before) - debt, 0.0), before)


@njit(nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _truncate_all(v, paid, total, mass, owed, scale):
    for j in range(v.shape[0]):
        before = v[j]
        v[j] = _truncated(before, paid[j], owed, 1.0 / scale)
        paid[j] += scale * (v[j] - before)
        if total.shape[0] > 0:
            total[j] -= mass * (v[j] - before)


# Compressed rows: a weight is brought up to date when its feature is met. What happened since, decay and
# truncation only, has a closed form. Row r of ``past`` holds, after step r, the scale D, the penalty owed,
# the mass A = sum of D over averaged steps, and B = sum of D U over them; ``shrunk[r]`` is U = sum of
# eta l1 / D, by which v has shrunk, until it was 0. ``lazy[j]`` is (v, paid, U when last met, total).


@njit(nogil=True, _nrt=False)
def _step_before(shrunk, now, limit):
    """The last step r <= now with U_r < limit: secants, as U is nearly straight, then bisection."""
    low, high = 0, now + 1
    guess = now
    for tries in range(64):
        if high - low <= 1:
            break
        guess = min(max(guess, low + 1), high - 1)
        if shrunk[guess] < limit:
            low = guess
        else:
            high = guess
        if tries < 8 and high <= now and shrunk[high] > shrunk[low]:
            share = (limit - shrunk[low]) / (shrunk[high] - shrunk[low])
            guess = low + int(share * (high - low))
        else:
            guess = (low + high) >> 1
    return low


@njit(nogil=True, _nrt=False, forceinline=True)
def _catch_up(lazy, j, now, past, shrunk, plain, averages):
    """Bring weight j to step ``now``; returns it. ``plain``: there is no decay."""
    before = lazy[j, 0]
    if before == 0.0:
        return 0.0
    then, limit = lazy[j, 2], abs(before) + lazy[j, 2]
    after = max(limit - shrunk[now], 0.0)
    if averages:
        _sum_up(lazy, j, now, past, shrunk, after)
    if after > 0.0:
        lazy[j, 1] = math.copysign(past[now, 1], -before)
    elif plain:
        lazy[j, 1] -= before
    elif shrunk[now] > then:
        last = _step_before(shrunk, now, limit)
        rest = past[last + 1, 0] * (limit - shrunk[last])
        lazy[j, 1] = math.copysign(past[last, 1] + rest, -before)
    after = math.copysign(after, before)
    lazy[j, 0], lazy[j, 2] = after, shrunk[now]
    return after


@njit(nogil=True, _nrt=False)
def _sum_up(lazy, j, now, past, shrunk, after):
    """Add the iterates of weight j since it was last met to their sum, which is total + A v."""
    before, then = abs(lazy[j, 0]), lazy[j, 2]
    limit = before + then
    first, last = _step_before(shrunk, now, then), _step_before(shrunk, now, limit)
    if first < now and shrunk[first + 1] == then:
        first += 1
    steps = limit * (past[last, 2] - past[first, 2]) - (past[last, 3] - past[first, 3])
    kept = past[first, 2] * before - past[now, 2] * after
    lazy[j, 3] += math.copysign(steps + kept, lazy[j, 0] * (steps + kept))


@njit(nogil=True, _nrt=False, forceinline=True)
def _add_lazily(data, indices, start, stop, lazy, change, owed, scale, mass, shrunk):
    """v += change x, truncated; the weights have then seen this step, at which U is ``shrunk``."""
    inverse = 1.0 / scale
    for k in range(start, stop):
        j = indices[k]
        before, paid = lazy[j, 0], lazy[j, 1]
        moved = before + change * data[k]
        after = _truncated(moved, paid, owed, inverse)
        lazy[j, 0] = after
        lazy[j, 1] = paid + scale * (after - moved)
        lazy[j, 2] = shrunk
        lazy[j, 3] -= mass * (after - before)


# ---------------------------------------------------------------------------- one pass


@njit(nogil=True, _nrt=False)
def _fold(v, total, scale, mass):
    """Put the scale into v and the mass into the sum of iterates."""
    if total.shape[0] > 0:
        for j in range(v.shape[0]):
            total[j] += mass * v[j]
    if scale != 1.0:
        for j in range(v.shape[0]):
            v[j] *= scale


@njit(nogil=True, _nrt=False)
def _fold_lazy(lazy, now, past, shrunk, scale, mass, owed, plain, averages):
    """The same for the lazy weights, brought up to date; time begins anew."""
    for j in range(lazy.shape[0]):
        _catch_up(lazy, j, now, past, shrunk, plain, averages)
        lazy[j, 3] += mass * lazy[j, 0]
        lazy[j, 0] *= scale
        lazy[j, 2] = 0.0
    past[0, 0], past[0, 1], past[0, 2], past[0, 3] = 1.0, owed, 0.0, 0.0
    shrunk[0] = 0.0


def _pass(sparse, is_lazy):
    """One pass, compiled for one layout: what the others need is not in its way."""

    @njit(nogil=True, _nrt=False, error_model="numpy")
    def advance(
        X,
        data,
        indices,
        indptr,
        y,
        weight,
        held_out,
        order,
        v,
        paid,
        total,
        dual,
        era,
        lazy,
        past,
        shrunk,
        state,
        rules,
    ):
        """Visit the rows of ``order`` once. Updates the vectors and ``state`` in place."""
        kind, edge, rate = int(rules[LOSS]), rules[EDGE], int(rules[RATE])
        alpha, l1, l2, eta0 = rules[ALPHA], rules[L1], rules[L2], rules[ETA0]
        average, fit_intercept = rules[AVERAGE], rules[INTERCEPT] != 0.0
        b, b_total, t, eta, owed = state[B], state[B_TOTAL], state[T], state[ETA], state[OWED]
        dual_scale, now_era = state[DUAL_SCALE], uint32(state[ERA])
        p = v.shape[0]
        tracks, averages = dual.shape[0] > 0, total.shape[0] > 0
        passive = rate >= PA1
        tiny = 1e-4 if averages else 1e-9  # total + mass v cancels as v grows
        plain, horizon = l2 == 0.0, past.shape[0] - 1
        if is_lazy:
            past[0, 0], past[0, 1], past[0, 2], past[0, 3], shrunk[0] = 1.0, owed, 0.0, 0.0, 0.0
            for j in range(p):
                lazy[j, 0], lazy[j, 1], lazy[j, 2] = v[j], paid[j], 0.0
                lazy[j, 3] = total[j] if averages else 0.0
        now, scale, mass, decay = 0, 1.0, 0.0, 1.0
        value, updates, visits, square = 0.0, 0, 0, 0.0
        counts_square = l2 > 0.0 and l1 == 0.0 and not passive
        if counts_square:
            for j in range(p):
                square += v[j] * v[j]
        start, stop = uint64(0), uint64(0)
        n = order.shape[0]
        for k in range(n):
            if k + 2 * _AHEAD < n:
                later = int64(order[k + 2 * _AHEAD])
                _fetch(y, later)
                _fetch(weight, later)
                if sparse:
                    _fetch(indptr, later)
                if tracks:
                    _fetch(dual, later)
                    _fetch(era, later)
                _fetch_row(X, data, indices, indptr, order[k + _AHEAD])
                if is_lazy:
                    later = int64(order[k + 1])
                    for q in range(indptr[later], indptr[later + 1]):
                        _fetch(lazy, 4 * int64(indices[q]))
            i = order[k]
            if held_out.shape[0] > 0 and held_out[i]:
                continue
            visits += 1
            product = 0.0
            if not sparse:
                product = scale * _dot_dense(X, i, v)
            else:
                start, stop = indptr[i], indptr[i + 1]
                if is_lazy:
                    for q in range(start, stop):
                        j = indices[q]
                        product += data[q] * _catch_up(lazy, j, now, past, shrunk, plain, averages)
                    product *= scale
                else:
                    product = scale * _dot_csr(data, indices, start, stop, v)
            loss, slope = _loss(kind, edge, y[i], product + b)
            value += loss
            if counts_square:
                value += 0.5 * l2 * square
            if rate == OPTIMAL:
                eta = 1.0 / (alpha * (rules[T0] + t - 1.0))
            elif rate == INVSCALING:
                eta = eta0 / _power(t, rules[POWER])
            if passive:  # as far as the row asks for, and no further (Crammer et al., 2006)
                norm = _square_norm(X, data, indptr, i)
                if rate == PA1 and norm == 0.0:
                    continue
                step = min(eta0, loss / norm) if rate == PA1 else loss / (norm + 0.5 / eta0)
                update = -step * math.copysign(1.0, slope) * weight[i]
            else:
                update = -eta * max(-_LARGEST_SLOPE, min(_LARGEST_SLOPE, slope)) * weight[i]
            if l2 > 0.0:
                decay = max(0.0, 1.0 - eta * l2)
                scale *= decay
                square *= decay * decay
                if scale < tiny:
                    if is_lazy:
                        _fold_lazy(lazy, now, past, shrunk, scale, mass, owed, plain, averages)
                    else:
                        _fold(v, total, scale, mass)
                    now, scale, mass = 0, 1.0, 0.0
                if tracks:
                    dual_scale *= decay
                    if dual_scale < 1e-9:
                        dual_scale = 1.0
                        now_era += uint32(1)
            owed += eta * l1
            if is_lazy:
                shrunk[now + 1] = shrunk[now] + eta * l1 / scale
            if update != 0.0:
                updates += 1
                change = update / scale
                if is_lazy:
                    _add_lazily(
                        data, indices, start, stop, lazy, change, owed, scale, mass, shrunk[now + 1]
                    )
                elif sparse:
                    _add_csr(data, indices, start, stop, v, total, mass, change)
                else:
                    _add_dense(X, i, v, total, mass, change)
                if counts_square:
                    norm = _square_norm(X, data, indptr, i)
                    square += update * (2.0 * decay * product + update * norm)
                if fit_intercept:
                    b += update
                if tracks:
                    if era[i] != now_era:
                        era[i], dual[i] = now_era, 0.0
                    dual[i] += update / dual_scale
            if l1 > 0.0 and not sparse:
                _truncate_all(v, paid, total, mass, owed, scale)
            if average > 0.0 and average <= t:
                mass += scale
                b_total += b
            if is_lazy:
                past[now + 1, 0], past[now + 1, 1], past[now + 1, 2] = scale, owed, mass
                past[now + 1, 3] = past[now, 3] + (mass - past[now, 2]) * shrunk[now + 1]
                now += 1
                if now == horizon:
                    _fold_lazy(lazy, now, past, shrunk, scale, mass, owed, plain, averages)
                    now, scale, mass = 0, 1.0, 0.0
            t += 1.0
        if is_lazy:
            _fold_lazy(lazy, now, past, shrunk, scale, mass, owed, plain, averages)
            for j in range(p):
                v[j], paid[j] = lazy[j, 0], lazy[j, 1]
                if averages:
                    total[j] = lazy[j, 3]
        else:
            _fold(v, total, scale, mass)
        state[B], state[B_TOTAL], state[T], state[ETA], state[OWED] = b, b_total, t, eta, owed
        state[DUAL_SCALE], state[ERA] = dual_scale, float64(now_era)
        state[VALUE] += value
        state[VISITS] += visits
        state[UPDATES] += updates
        state[ALL_UPDATES] += updates

    return advance


_advance_dense, _advance_csr, _advance_lazy = (
    _pass(False, False),
    _pass(True, False),
    _pass(True, True),
)


# ---------------------------------------------------------------------------- several passes


def _reads(dtype, ndim):
    return types.Array(dtype, ndim, "C", readonly=True)


@njit((_reads(float64, 1), _reads(float64, 1)), cache=True, nogil=True, error_model="numpy")
def l1_penalty(w, rules):
    """The penalty at the end of an epoch, where it has an l1 part: what each weight owes is known then,
    not before. Without one it is part of the value of each visit, and passive steps have none."""
    if rules[L1] == 0.0 or rules[RATE] >= PA1:
        return 0.0
    square, absolute = 0.0, 0.0
    for j in range(w.shape[0]):
        square += w[j] * w[j]
        absolute += abs(w[j])
    return rules[L1] * absolute + 0.5 * rules[L2] * square


@njit((float64[::1], float64, _reads(float64, 1)), cache=True, nogil=True, error_model="numpy")
def judge(state, error, rules):
    """scikit-learn's stopping rule: no improvement by ``tol`` for so many epochs in a row.

    With the adaptive rate the step is divided by 5 instead, until it is below 1e-6. Returns the verdict.
    """
    if error > state[BEST] - rules[TOL]:  # a NaN tolerance never counts
        state[STALE] += 1.0
    else:
        state[STALE] = 0.0
    state[BEST] = min(state[BEST], error)
    if state[STALE] < rules[PATIENCE]:
        return GOES_ON
    if rules[RATE] == ADAPTIVE and state[ETA] > 1e-6:
        state[ETA] /= 5.0
        state[STALE] = 0.0
        return GOES_ON
    return FLAT


_SIGNATURES = [
    int64(
        _reads(kind, 2),  # X, dense; (0, p) where the rows are compressed
        _reads(kind, 1),  # data
        _reads(uint32, 1),  # indices
        _reads(uint64, 1),  # indptr; empty where the rows are dense
        _reads(float64, 1),  # y
        _reads(float64, 1),  # weight of each row's loss
        _reads(boolean, 1),  # held out from training; empty for none
        uint32[::1],  # order of the visits
        _reads(uint32, 1),  # by which the order is permuted before each epoch; empty: never
        int64,  # epochs to make
        float64[::1],  # w
        float64[::1],  # l1 penalty paid; empty without one
        float64[::1],  # sum of iterates; empty without averaging
        float64[::1],  # dual point; empty where none is wanted
        uint32[::1],  # its eras
        float64[::1],  # state
        _reads(float64, 1),  # rules
    )
    for kind in (float64, float32)
]


@njit(_SIGNATURES, cache=True, nogil=True, error_model="numpy")
def epochs(
    X,
    data,
    indices,
    indptr,
    y,
    weight,
    held_out,
    order,
    positions,
    most,
    w,
    paid,
    total,
    dual,
    era,
    state,
    rules,
):
    """Make ``most`` epochs, fewer where a rule ends them; ``state[VERDICT]`` says which. Returns how many.

    With a patience of 0 the caller begins each epoch and judges it: there is no verdict but DIVERGED.
    """
    scratch = np.empty_like(order) if positions.shape[0] > 0 else order[:0]
    is_lazy = indptr.shape[0] > 0 and rules[L1] > 0.0
    horizon = max(4096, w.shape[0] // 8) + 1 if is_lazy else 0
    lazy, past = np.empty((w.shape[0] if is_lazy else 0, 4)), np.empty((horizon, 4))
    shrunk = np.empty(horizon)
    made = 0
    state[VERDICT] = GOES_ON
    while made < most:
        if positions.shape[0] > 0:
            for k in range(order.shape[0]):
                scratch[k] = order[positions[k]]
            order[:] = scratch
        if rules[PATIENCE] > 0.0:
            state[VALUE] = state[VISITS] = state[UPDATES] = 0.0
        if is_lazy:
            _advance_lazy(
                X,
                data,
                indices,
                indptr,
                y,
                weight,
                held_out,
                order,
                w,
                paid,
                total,
                dual,
                era,
                lazy,
                past,
                shrunk,
                state,
                rules,
            )
        elif indptr.shape[0] > 0:
            _advance_csr(
                X,
                data,
                indices,
                indptr,
                y,
                weight,
                held_out,
                order,
                w,
                paid,
                total,
                dual,
                era,
                lazy,
                past,
                shrunk,
                state,
                rules,
            )
        else:
            _advance_dense(
                X,
                data,
                indices,
                indptr,
                y,
                weight,
                held_out,
                order,
                w,
                paid,
                total,
                dual,
                era,
                lazy,
                past,
                shrunk,
                state,
                rules,
            )
        made += 1
        finite = math.isfinite(state[B]) and math.isfinite(state[VALUE])
        for j in range(w.shape[0]):
            finite &= math.isfinite(w[j])
        if not finite:
            state[VERDICT] = DIVERGED
            break
        if rules[PATIENCE] > 0.0:
            if rules[ENDS_CLEAN] != 0.0 and state[UPDATES] == 0.0:
                state[VERDICT] = CLEAN
                break
            value = state[VALUE] / max(state[VISITS], 1.0) + l1_penalty(w, rules)
            state[VERDICT] = judge(state, value, rules)
            if state[VERDICT] != GOES_ON:
                break
    return made


@njit((int64, uint32), cache=True, nogil=True)
def shuffle_positions(n, seed):
    """A Fisher-Yates permutation of ``range(n)``, driven by Marsaglia's 32-bit xorshift.

    The generator, the draw and the seed are those of scikit-learn's stochastic solvers, so that the
    same ``random_state`` visits the rows in the same order there and here.
    """
    state = np.uint32(seed)
    if state == np.uint32(0):
        state = np.uint32(1)
    positions = np.arange(n, dtype=np.uint32)
    for i in range(n - 1):
        state ^= np.uint32(state << np.uint32(13))
        state ^= np.uint32(state >> np.uint32(17))
        state ^= np.uint32(state << np.uint32(5))
        draw = np.int64(state & np.uint32(0x7FFFFFFF))
        j = i + draw % (n - i)
        positions[i], positions[j] = positions[j], positions[i]
    return positions
