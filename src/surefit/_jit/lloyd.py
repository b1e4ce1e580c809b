r"""Kernels of exact k-means assignment; the method and its proof are in :mod:`surefit.solvers.assignment`.

``_tile`` is a matrix product in registers, written in LLVM's vector types: some rows against a panel of 32
centres, which leaves the scores of no pair in memory, only the best and the second best of each row and
panel. The width follows the processor (the compiled code is cached by processor).

A closed file. The error-free transformations must not be compiled with fast mathematics.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["PANEL", "assign", "decide", "squares"]

PANEL = 32  # centres of a panel
_WIDE = bool(binding.get_host_cpu_features().get("avx512f", False))
_LANES, _ROWS = (16, 12) if _WIDE else (8, 3)  # of a vector; rows of a tile: as registers allow
_BLOCK = 1024  # rows at a time: they stay in the second cache
_SPLIT = 134217729.0  # 2^27 + 1: halves a 53-bit number
_UNIT = 2.0**-53
_SMALL = 2.0**-900  # below this, squares of differences may have lost bits to underflow
_UP, _DOWN = 1.0 + 2.0**-22, 1.0 - 2.0**-22  # outward rounding to float32

_F32, _F64, _I32, _I64 = types.float32, types.float64, types.int32, types.int64
_KINDS = (_F32, _F64)


def _table(kind, dims=2):
    return types.Array(kind, dims, "C", readonly=True)


@intrinsic
def _tile(typingctx, rows, which, start, panels, halves, panel, best, second, index):
    """Scores half_j - <row, centre_j> of ``_ROWS`` rows in one panel: least, second least, and its place.

    ``which[start + r]`` is the number of the r-th row; results go to place ``start + r``.
    """
    signature = types.void(rows, which, start, panels, halves, panel, best, second, index)

    def codegen(context, builder, sig, args):
        real, whole = ir.FloatType(), ir.IntType(32)
        vector, lanes = ir.VectorType(real, _LANES), ir.VectorType(whole, _LANES)
        count = PANEL // _LANES
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(sig.args, args)
            if isinstance(kind, types.Array)
        ]
        x, w, pan, hal, low, next_, at = arrays
        first, g = args[2], args[5]
        p = cgutils.unpack_tuple(builder, x.shape)[1]
        wide = ir.Constant(p.type, PANEL)

        def splat(kind, value):
            return ir.Constant(ir.VectorType(kind, _LANES), [value] * _LANES)

        bases = []
        for r in range(_ROWS):
            place = builder.add(first, ir.Constant(first.type, r))
            row = builder.load(builder.gep(w.data, [place]))
            bases.append(builder.gep(x.data, [builder.mul(row, p)]))
        centres = builder.gep(pan.data, [builder.mul(builder.mul(g, p), wide)])
        entry = builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        d = builder.phi(p.type)
        d.add_incoming(ir.Constant(p.type, 0), entry)
        sums = [[builder.phi(vector) for _ in range(count)] for _ in range(_ROWS)]
        here = builder.gep(centres, [builder.mul(d, wide)])
        columns = [
            builder.load(
                builder.bitcast(
                    builder.gep(here, [ir.Constant(p.type, v * _LANES)]), vector.as_pointer()
                ),
                align=4,
            )
            for v in range(count)
        ]
        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{_LANES}f32"
        )
        zero = ir.Constant(whole, 0)
        for r in range(_ROWS):
            value = builder.load(builder.gep(bases[r], [d]))
            lone = builder.insert_element(ir.Constant(vector, ir.Undefined), value, zero)
            wide_value = builder.shuffle_vector(
                lone, ir.Constant(vector, ir.Undefined), splat(whole, 0)
            )
            for v in range(count):
                total = builder.call(fma, [wide_value, columns[v], sums[r][v]])
                sums[r][v].add_incoming(splat(real, 0.0), entry)
                sums[r][v].add_incoming(total, loop)
                sums[r][v] = total
        after = builder.add(d, ir.Constant(p.type, 1))
        d.add_incoming(after, loop)
        builder.cbranch(builder.icmp_signed("<", after, p), loop, done)
        builder.position_at_end(done)

        def smaller(a, b):
            return builder.select(builder.fcmp_ordered("<", a, b), a, b)

        def least(v):
            size = _LANES
            while size > 1:
                size //= 2
                mask = ir.VectorType(whole, size)
                none = ir.Constant(v.type, ir.Undefined)
                halves_ = [
                    builder.shuffle_vector(v, none, ir.Constant(mask, [k + s for k in range(size)]))
                    for s in (0, size)
                ]
                v = smaller(*halves_)
            return builder.extract_element(v, zero)

        offsets = builder.gep(hal.data, [builder.mul(g, wide)])
        shifts = [
            builder.load(
                builder.bitcast(
                    builder.gep(offsets, [ir.Constant(p.type, v * _LANES)]), vector.as_pointer()
                ),
                align=4,
            )
            for v in range(count)
        ]
        numbers = [
            ir.Constant(lanes, [v * _LANES + k for k in range(_LANES)]) for v in range(count)
        ]
        bits = ir.IntType(PANEL)
        cttz = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(bits, [bits, ir.IntType(1)]), f"llvm.cttz.i{PANEL}"
        )
        for r in range(_ROWS):
            place = builder.add(first, ir.Constant(first.type, r))
            scores = [builder.fsub(shifts[v], sums[r][v]) for v in range(count)]
            joint = scores[0]
            for v in range(1, count):
                joint = smaller(joint, scores[v])
            smallest = least(joint)
            lone = builder.insert_element(ir.Constant(vector, ir.Undefined), smallest, zero)
            everywhere = builder.shuffle_vector(
                lone, ir.Constant(vector, ir.Undefined), splat(whole, 0)
            )
            mask = ir.Constant(bits, 0)
            for v in range(count):
                hit = builder.fcmp_ordered("<=", scores[v], everywhere)
                part = builder.zext(builder.bitcast(hit, ir.IntType(_LANES)), bits)
                mask = builder.or_(mask, builder.shl(part, ir.Constant(bits, v * _LANES)))
            where = builder.call(cttz, [mask, ir.Constant(ir.IntType(1), 0)])
            alone = builder.insert_element(ir.Constant(lanes, ir.Undefined), where, zero)
            chosen = builder.shuffle_vector(
                alone, ir.Constant(lanes, ir.Undefined), splat(whole, 0)
            )
            rest = None
            for v in range(count):
                other = builder.select(
                    builder.icmp_signed("==", numbers[v], chosen),
                    splat(real, float("inf")),
                    scores[v],
                )
                rest = other if rest is None else smaller(rest, other)
            builder.store(smallest, builder.gep(low.data, [place]))
            builder.store(least(rest), builder.gep(next_.data, [place]))
            builder.store(where, builder.gep(at.data, [place]))
        return context.get_dummy_value()

    return signature, codegen


@njit(
    [_F64(_table(_F32, 1), _table(_F32, 1))],
    cache=True,
    nogil=True,
    fastmath={"reassoc", "contract", "nsz"},
)
def _dot(a, b):
    """<a, b> in float32, in any order of summation."""
    total = _F32(0.0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(
    [
        _F64(_table(kind, 1), _table(_F64, 1), _F64, types.Array(_F32, 1, "C"))
        for kind in _KINDS
    ],
    cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"},
)  # fmt: skip
def _rounded(x, mean, scale, out):
    """(x - mean) * scale in float32, and the length of that."""
    total = 0.0
    for j in range(len(x)):
        value = _F32((_F64(x[j]) - mean[j]) * scale)
        out[j] = value
        total += _F64(value) * _F64(value)
    return math.sqrt(total)


@njit([types.void(_table(_F32, 1), _table(_F32, 3), _table(_F32, 2), types.Array(_F32, 2, "C"))],
      cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})  # fmt: skip
def _all_scores(a, panels, halves, out):
    """half_j - <a, centre_j> for every centre."""
    for g in range(panels.shape[0]):
        for j in range(PANEL):
            out[g, j] = halves[g, j]
        for d in range(len(a)):
            value = a[d]
            for j in range(PANEL):
                out[g, j] -= value * panels[g, d, j]


# ---------------------------------------------------------------------------- deciding near-ties


@njit(types.UniTuple(_F64, 2)(_F64, _F64), cache=True, nogil=True)
def _sum(a, b):
    """a + b = s + e exactly (Knuth)."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


@njit(types.UniTuple(_F64, 2)(_F64), cache=True, nogil=True)
def _square(a):
    """a^2 = p + e exactly (Dekker), without overflow and underflow."""
    p = a * a
    c = _SPLIT * a
    high = c - (c - a)
    low = a - high
    return p, ((high * high - p) + 2.0 * (high * low)) + low * low


@njit(
    [types.Tuple((_F64, _F64, types.boolean))(_table(kind, 1), _table(_F64, 1)) for kind in _KINDS],
    cache=True, nogil=True,
)  # fmt: skip
def _twofold(x, c):
    """|x - c|^2 as high + low, and whether nothing was rounded away."""
    high, low, exact = 0.0, 0.0, True
    for j in range(len(x)):
        d, lost = _sum(_F64(x[j]), -c[j])
        if d == 0.0:
            continue
        q, e = _square(d)
        if lost != 0.0 or q < _SMALL:
            exact = False
        high, rest = _sum(high, q)
        low, gone = _sum(low, rest)
        low, more = _sum(low, e)
        if gone != 0.0 or more != 0.0:
            exact = False
        low += 2.0 * d * lost
    high, low = _sum(high, low)
    return high, low, exact


@njit(
    [types.boolean(_table(kind, 1), _table(_F64, 1), _table(_F64, 1)) for kind in _KINDS],
    cache=True, nogil=True,
)  # fmt: skip
def _same_differences(x, one, two):
    """Whether both differ from x by the same amounts up to sign, coordinate by coordinate."""
    for j in range(len(x)):
        a, b = _sum(_F64(x[j]), -one[j])
        v, w = _sum(_F64(x[j]), -two[j])
        if not ((a == v and b == w) or (a == -v and b == -w)):
            return False
    return True


@njit(
    [
        types.Tuple((_I64, types.boolean))(
            _table(kind, 1), _table(_F64, 2), types.Array(_I64, 1, "C"), _I64
        )
        for kind in _KINDS
    ],
    cache=True, nogil=True,
)  # fmt: skip
def decide(x, centres, candidates, count):
    """The nearest of some centres in exact arithmetic, the lowest number among equals; and any doubt left.

    Candidates are in ascending order. Differences in float64 first, then with twice the digits.
    """
    p = len(x)
    error = (p + 8) * _UNIT
    squares = np.empty(count)
    least = np.inf
    for c in range(count):
        row = centres[candidates[c]]
        total = 0.0
        for j in range(p):
            d = _F64(x[j]) - row[j]
            total += d * d
        squares[c] = total
        least = min(least, total)
    reach = least * (1.0 + 4.0 * error) + 2.0 * _SMALL
    kept = 0
    for c in range(count):
        if squares[c] <= reach:
            candidates[kept] = candidates[c]
            kept += 1
    best = candidates[0]
    if kept == 1:
        return best, False
    bound = (3.0 * p * p + 12.0 * p + 16.0) * _UNIT * _UNIT
    high, low, exact = _twofold(x, centres[best])
    doubt = False
    for c in range(1, kept):
        other = candidates[c]
        h, e, sharp = _twofold(x, centres[other])
        gap = (high - h) + (low - e)  # positive where the other one is nearer
        sure = (exact and sharp) or abs(gap) > bound * (h + high)
        if not sure and not _same_differences(x, centres[best], centres[other]):
            doubt = True
        if sure and gap > 0.0:
            best, high, low, exact = other, h, e, sharp
    return best, doubt


# ---------------------------------------------------------------------------- a pass over rows


@njit(
    [
        types.void(
            _table(kind), _table(_F64, 1), _table(_F64, 1), types.Array(_I32, 1, "C"), _I64, _I64,
            types.Array(_I64, 1, "C"), types.Array(_F64, 2, "C"), types.Array(_F64, 1, "C"),
        )
        for kind in _KINDS
    ],
    cache=True, nogil=True,
)  # fmt: skip
def _add_rows(X, mean, weights, labels, start, stop, leave, sums, masses):
    """sums[label] += weight * (x - mean), row after row; the rows in ``leave`` (ascending) stay out."""
    p, skip = X.shape[1], 0
    for i in range(start, stop):
        if skip < len(leave) and leave[skip] == i:
            skip += 1
            continue
        into, x = sums[labels[i]], X[i]
        if len(weights) == 0:
            masses[labels[i]] += 1.0
            for j in range(p):
                into[j] += _F64(x[j]) - mean[j]
        else:
            w = weights[i]
            masses[labels[i]] += w
            for j in range(p):
                into[j] += w * (_F64(x[j]) - mean[j])


@njit(
    [
        types.void(_table(kind), _table(_F64), _table(_I32, 1), types.Array(_F64, 1, "C"))
        for kind in _KINDS
    ],
    cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"},
)  # fmt: skip
def squares(X, centres, labels, out):
    """out_i = |x_i - centre of i|^2 in float64."""
    for i in range(X.shape[0]):
        x, c = X[i], centres[labels[i]]
        total = 0.0
        for j in range(X.shape[1]):
            d = _F64(x[j]) - c[j]
            total += d * d
        out[i] = total


@njit(_F64(_F64, _F64, _F64), cache=True, nogil=True)
def _below(square, score, error):
    """Below the distance with this score, by more than the roundings here."""
    least = square * (1.0 - 2.0**-22) + 2.0 * (score - error)
    return _F64(np.sqrt(_F32(max(0.0, least)))) * _DOWN * _DOWN


@njit(_F64(_F64, _F64, _F64), cache=True, nogil=True)
def _above(square, score, error):
    """Above it."""
    most = square * (1.0 + 2.0**-22) + 2.0 * (score + error)
    return _F64(np.sqrt(_F32(max(0.0, most)))) * _UP * _UP


@njit(
    [
        types.UniTuple(_I64, 2)(
            _table(kind), _table(_F64, 1), _F64,  # rows, mean, scale
            _table(_F32, 3), _table(_F32, 2), _table(_I64, 1), _table(_I64, 1),  # panels
            _table(_F64), _table(_F32), _F64, _F64,  # centres, their rounded rows, errors
            _table(_F64, 1), _table(_F64, 1), types.boolean,  # drifts
            types.Array(_I32, 1, "C"), types.Array(_F32, 1, "C"), types.Array(_F32, 2, "C"), _I64,
            types.Array(_I64, 1, "C"),
            types.boolean, _table(_F64, 1), types.Array(_F64, 2, "C"), types.Array(_F64, 1, "C"),
        )
        for kind in _KINDS
    ],
    cache=True, nogil=True,
)  # fmt: skip
def assign(
    X, mean, scale, panels, halves, order, place, centres, rounded, slope, floor, drift, group_drift,
    fresh, labels, upper, lower, per, undecided, collect, weights, sums, masses,
):  # fmt: skip
    """Exact labels of rows; bounds are used and renewed. Returns how many changed, and how many are in doubt.

    ``order`` gives the centre at each place of the panels (-1: none), ``place`` the inverse. A column of
    ``lower`` is about ``per`` panels: below the distances of all their centres but the row's own. A score
    errs by at most slope * |row| + floor. ``undecided`` takes the numbers of the rows in doubt, whose
    labels are the best guess. With ``collect``, all other rows less the mean, times their weights, are
    added to the sums of their clusters, in their order.
    """
    n, p = X.shape
    groups, columns = panels.shape[0], lower.shape[1]
    size = min(max(_BLOCK // max(1, groups // 16), 8 * _ROWS), _BLOCK)
    rows = np.empty((size, p), dtype=np.float32)
    number, length, error = np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
    best, second = np.empty(size), np.empty(size)
    runner, left = np.empty(size), np.empty(size)
    known = np.empty(size, dtype=np.bool_)
    at = np.empty(size, dtype=np.int64)
    lists = np.empty((groups, size + _ROWS), dtype=np.int64)
    counts = np.empty(groups, dtype=np.int64)
    low, next_ = (
        np.empty(size + _ROWS, dtype=np.float32),
        np.empty(size + _ROWS, dtype=np.float32),
    )
    where = np.empty(size + _ROWS, dtype=np.int32)
    scores = np.empty((groups, PANEL), dtype=np.float32)
    candidates = np.empty(groups * PANEL, dtype=np.int64)
    changed, doubts = 0, 0
    start = 0
    while start < n:
        stop = min(start + size, n)
        counts[:] = 0
        open_, before = 0, doubts
        for i in range(start, stop):  # which rows and panels are in question
            label = labels[i]
            if fresh:
                length[open_] = _rounded(X[i], mean, scale, rows[open_])
                error[open_] = slope * length[open_] + floor
                number[open_], best[open_], second[open_], at[open_] = i, np.inf, np.inf, -1
                known[open_], left[open_] = True, np.inf
                for g in range(groups):
                    lists[g, counts[g]] = open_
                    counts[g] += 1
                open_ += 1
                continue
            reach = (_F64(upper[i]) + drift[label]) * _UP
            nearest = np.inf
            for t in range(columns):
                bound = (_F64(lower[i, t]) - group_drift[t]) * _DOWN
                lower[i, t] = bound
                nearest = min(nearest, bound)
            if reach < nearest:
                upper[i] = reach
                continue
            length[open_] = _rounded(X[i], mean, scale, rows[open_])
            error[open_] = slope * length[open_] + floor
            own = place[label]
            score = halves[own // PANEL, own % PANEL] - _dot(rows[open_], rounded[label])
            reach = min(reach, _above(length[open_] ** 2, score, error[open_]))
            upper[i] = reach
            if reach < nearest:
                continue
            number[open_], best[open_], second[open_], at[open_] = i, np.inf, np.inf, -1
            known[open_], left[open_] = True, np.inf
            if not lower[i, own // (PANEL * per)] <= reach:
                best[open_], at[open_], known[open_] = score, own, False
                left[open_] = _below(length[open_] ** 2, score, error[open_])
            for g in range(groups):
                if lower[i, g // per] <= reach:
                    lists[g, counts[g]] = open_
                    counts[g] += 1
            open_ += 1
        for g in range(groups):
            count = counts[g]
            if count == 0:
                continue
            for extra in range(_ROWS):
                lists[g, count + extra] = lists[g, count - 1]
            for first in range(0, count, _ROWS):
                _tile(rows, lists[g], first, panels, halves, g, low, next_, where)
            for c in range(count):
                r = lists[g, c]
                one, two = _F64(low[c]), _F64(next_[c])
                below = _below(length[r] ** 2, one, error[r])
                if g % per:
                    below = min(below, _F64(lower[number[r], g // per]))
                lower[number[r], g // per] = below
                if one < best[r]:
                    second[r] = min(best[r], two)
                    best[r], at[r], runner[r], known[r] = one, g * PANEL + where[c], two, True
                else:
                    second[r] = min(second[r], one)
        for r in range(open_):
            i = number[r]
            label = labels[i]
            square = length[r] ** 2
            chosen = -1
            if second[r] - best[r] > 2.0 * error[r]:
                chosen = order[at[r]]
                upper[i] = _above(square, best[r], error[r])
                if known[r]:  # its panel was looked at: what comes second there, or in all panels
                    rest = runner[r] if per == 1 else second[r]
                    lower[i, at[r] // (PANEL * per)] = _below(square, rest, error[r])
                if chosen != label and not fresh:  # the centre that is left counts in its panel
                    own = place[label] // (PANEL * per)
                    lower[i, own] = min(_F64(lower[i, own]), left[r])
            if chosen < 0:
                _all_scores(rows[r], panels, halves, scores)
                smallest = np.inf
                for g in range(groups):
                    for j in range(PANEL):
                        smallest = min(smallest, _F64(scores[g, j]))
                count = 0
                for k in range(len(place)):
                    j = place[k]
                    if not scores[j // PANEL, j % PANEL] > smallest + 2.0 * error[r]:
                        candidates[count] = k
                        count += 1
                chosen, doubt = decide(X[i], centres, candidates, count)
                if doubt:
                    undecided[doubts] = i
                    doubts += 1
                own = place[chosen]
                upper[i] = _above(square, _F64(scores[own // PANEL, own % PANEL]), error[r])
                scores[own // PANEL, own % PANEL] = np.inf
                for t in range(columns):
                    smallest = np.inf
                    for g in range(t * per, min((t + 1) * per, groups)):
                        for j in range(PANEL):
                            smallest = min(smallest, _F64(scores[g, j]))
                    lower[i, t] = _below(square, smallest, error[r])
            if chosen != label:
                changed += 1
                labels[i] = chosen
        if collect:
            _add_rows(X, mean, weights, labels, start, stop, undecided[before:doubts], sums, masses)
        start = stop
    return changed, doubts
