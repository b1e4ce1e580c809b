r"""Products of compressed rows with a dense matrix, in parts that a team of threads takes one by one.

Row r of the result is the sum of ``values[p] * table[indices[p]]`` over its entries p. :func:`_weighted`
holds ``LANES`` columns of that sum in the processor's vectors, in LLVM's types, so that an entry costs one
read of the table and nothing is written until the row is done; a part of the work is one panel of so many
columns, packed so that it stays in the cache. For the transposed product entries are sorted by columns first:
counted in one pass over the rows, put into their places in a second one.

The compiled functions take the address of a block of whole numbers, whose order is that of the names below,
and work on parts until ``next`` has reached their number: any number of threads may call them with one block
(:mod:`surefit._team`). A closed file: every jitted function called here lives here.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, float32, float64, int32, int64, njit, types, void
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "HEAD", "LANES", "PRODUCT", "TILE", "TRANSPOSED", "compress_rows", "count_rows", "take_rows",
]  # fmt: skip

HEAD = 22  # words of a block before those of its parts

LANES = 32
_SUMS = 4  # of a row at a time: a sum waits for the one before it, four of them keep the units busy
_AHEAD = 3  # rows before its turn that one is fetched
_LINE = 64  # bytes that are fetched at a time
TILE = 16  # rows that are turned round at a time
_I64 = types.Array(int64, 1, "C", readonly=True)
_I32 = types.Array(int32, 1, "C", readonly=True)
_REALS = (float32, float64)

# the words of a block, in the order in which they are given; those of the team come first
_WHO, _BARRIER, _THREADS, _PARTS = range(4)
_ROWS, _WIDTH, _STARTS, _ENDS, _INDICES, _VALUES, _PANELS = range(4, 11)
_COLUMNS, _TABLE, _TABLE_TURNED, _PACKED, _ROOM, _OUT, _OUT_TURNED = range(11, 18)
_COUNTS, _AT, _NUMBERS, _SORTED = range(18, 22)  # of a transposed product


def _vector(real):
    return types.Array(real, 1, "C", readonly=True)


def _matrix(real):
    return types.Array(real, 2, "C", readonly=True)


@intrinsic
def _pointer(typingctx, address):
    """A whole number as an address."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@intrinsic
def _claim(typingctx, claims, part):
    """``claims[part]`` before it becomes 1, whatever other threads do meanwhile."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        return builder.atomic_rmw("xchg", place, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(claims, part), codegen


@intrinsic
def _call(typingctx, address):
    """What the function without arguments at this address returns, a C int."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(32), []).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), [])

    return types.int32(types.int64), codegen


@njit(inline="always")
def _words(address):
    """(the block at an address, the words after it by which parts are claimed)."""
    parts = carray(address, (HEAD,), np.int64)[_PARTS]
    words = carray(address, (HEAD + parts,), np.int64)
    return words[:HEAD], words[HEAD:]


@njit(inline="always")
def _take(block, claims, done):
    """(a part that nobody has taken, how many were looked at): its own share first; -1 at the end.

    What a part reads is near the thread that wrote it, if the same thread takes the same parts each time.
    """
    parts, mine = len(claims), 0
    if block[_WHO]:
        mine = _call(block[_WHO]) * parts // block[_THREADS]
    while done < parts:
        part = (mine + done) % parts
        done += 1
        if claims[part] == 0 and _claim(claims, part) == 0:
            return part, done
    return -1, done


@njit(inline="always")
def _wait(block):
    """Until the other threads have come here too."""
    if block[_BARRIER]:
        _call(block[_BARRIER])


@njit(inline="always")
def _rows_of(block, real):
    """(rows, width, where rows start, where they end, columns of the entries, their values)."""
    rows = block[_ROWS]
    starts = carray(_pointer(block[_STARTS]), (rows,), np.int64)
    ends = carray(_pointer(block[_ENDS]), (rows,), np.int64)
    indices = carray(_pointer(block[_INDICES]), (1,), np.int32)
    return rows, block[_WIDTH], starts, ends, indices, carray(_pointer(block[_VALUES]), (1,), real)


@intrinsic
def _fetch(typingctx, array, start, end):
    """Have ``array[start:end]`` brought near, without waiting for it."""

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        name, kind = "llvm.prefetch.p0i8", ir.FunctionType(ir.VoidType(), [byte, *[number] * 3])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        step = ir.Constant(args[1].type, _LINE // context.get_abi_sizeof(data.type.pointee))
        with cgutils.for_range_slice(builder, args[1], args[2], step, inc=True) as (p, _):
            place = builder.bitcast(builder.gep(data, [p]), byte)
            how = [ir.Constant(number, value) for value in (0, 3, 1)]  # to read, to keep, data
            builder.call(function, [place, *how])
        return context.get_dummy_value()

    return types.void(array, start, end), codegen


@intrinsic
def _weighted(typingctx, values, indices, start, end, table, stride, out):
    """``out[:LANES] = sum values[p] * table[stride * indices[p]:][:LANES]`` over p from start to end."""
    signature = types.void(values, indices, start, end, table, stride, out)

    def codegen(context, builder, sig, args):
        kinds = [kind for kind in sig.args if isinstance(kind, types.Array)]
        given = [value for kind, value in zip(sig.args, args) if isinstance(kind, types.Array)]
        weights, numbers, rows, target = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(kinds, given)
        )
        first, last, step = args[2], args[3], args[5]
        real = context.get_value_type(sig.args[0].dtype)
        size = context.get_abi_sizeof(real)
        whole, lanes = ir.IntType(64), ir.VectorType(real, LANES)
        nothing, none = ir.Constant(lanes, None), ir.Constant(lanes, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

        def plus(total, p):
            """total + values[p] * table[indices[p]]"""
            row = builder.sext(builder.load(builder.gep(numbers, [p])), whole)
            place = builder.gep(rows, [builder.mul(row, step)])
            read = builder.load(builder.bitcast(place, lanes.as_pointer()), align=size)
            weight = builder.load(builder.gep(weights, [p]))
            lone = builder.insert_element(none, weight, ir.Constant(ir.IntType(32), 0))
            spread = builder.shuffle_vector(lone, none, everywhere)
            fast = ("contract",)
            return builder.fadd(total, builder.fmul(spread, read, flags=fast), flags=fast)

        before = builder.block
        names = ("several", "body", "single", "one", "done")
        several, body, single, one, done = map(builder.append_basic_block, names)
        builder.branch(several)
        builder.position_at_end(several)  # while p + _SUMS <= end
        p = builder.phi(whole)
        p.add_incoming(first, before)
        sums = [builder.phi(lanes) for _ in range(_SUMS)]
        after = builder.add(p, ir.Constant(whole, _SUMS))
        builder.cbranch(builder.icmp_signed("<=", after, last), body, single)
        builder.position_at_end(body)
        for k, total in enumerate(sums):
            total.add_incoming(nothing, before)
            total.add_incoming(plus(total, builder.add(p, ir.Constant(whole, k))), body)
        p.add_incoming(after, body)
        builder.branch(several)
        builder.position_at_end(single)  # while p < end
        q, rest = builder.phi(whole), builder.phi(lanes)
        q.add_incoming(p, several)
        rest.add_incoming(sums[0], several)
        builder.cbranch(builder.icmp_signed("<", q, last), one, done)
        builder.position_at_end(one)
        rest.add_incoming(plus(rest, q), one)
        q.add_incoming(builder.add(q, ir.Constant(whole, 1)), one)
        builder.branch(single)
        builder.position_at_end(done)
        total = rest
        for other in sums[1:]:
            total = builder.fadd(total, other)
        builder.store(total, builder.bitcast(target, lanes.as_pointer()), align=size)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _turn(typingctx, source, stride, target, step):
    """``target[step * k + j] = source[stride * j + k]`` for j and k below ``TILE``."""
    signature = types.void(source, stride, target, step)

    def codegen(context, builder, sig, args):
        whole, number = ir.IntType(64), ir.IntType(32)
        kinds = (sig.args[0], sig.args[2])
        given, taken = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(kinds, (args[0], args[2]))
        )
        real = context.get_value_type(sig.args[0].dtype)
        size, line = context.get_abi_sizeof(real), ir.VectorType(real, TILE)
        # pairs of lines h apart exchange the halves that lie h apart, for h = TILE / 2, ..., 1
        lines = []
        for j in range(TILE):
            place = builder.gep(given, [builder.mul(args[1], ir.Constant(whole, j))])
            lines.append(builder.load(builder.bitcast(place, line.as_pointer()), align=size))
        h = TILE // 2
        while h:
            low = [k if not k & h else TILE + k - h for k in range(TILE)]
            high = [k + h if not k & h else TILE + k for k in range(TILE)]
            masks = [ir.Constant(ir.VectorType(number, TILE), mask) for mask in (low, high)]
            for j in range(TILE):
                if not j & h:
                    pair = lines[j], lines[j + h]
                    lines[j], lines[j + h] = (builder.shuffle_vector(*pair, mask) for mask in masks)
            h //= 2
        for k, value in enumerate(lines):
            place = builder.gep(taken, [builder.mul(args[3], ir.Constant(whole, k))])
            builder.store(value, builder.bitcast(place, line.as_pointer()), align=size)
        return context.get_dummy_value()

    return signature, codegen


@njit(inline="always")
def _combine(block, claims, given, real):
    """Each part: ``LANES`` columns of ``out[r] = sum_p values[p] * table[indices[p]]``, all rows r.

    A table or a result that is turned round lies column by column. ``TILE`` rows are worked on at a time, so
    that what is turned stays near.
    """
    rows, width, starts, ends, indices, values = given
    columns = block[_COLUMNS]
    table = carray(_pointer(block[_TABLE]), (width * columns,), real)
    out = carray(_pointer(block[_OUT]), (rows * columns,), real)
    packed, turned = block[_PACKED] != 0, block[_OUT_TURNED] != 0
    copied = width if packed else 0
    room = carray(_pointer(block[_ROOM]), (block[_PANELS], copied + TILE, LANES), real)
    cold = True
    part, done = _take(block, claims, 0)
    while part >= 0:
        first = LANES * part
        count = min(LANES, columns - first)
        panel, sums = room[part, :copied], room[part, copied:]
        if packed:
            _pack(table, block[_TABLE_TURNED] != 0, width, columns, first, count, panel)
        source = panel.reshape(copied * LANES) if packed else table[first:]
        stride = LANES if packed else columns
        for tile in range(0, rows, TILE):
            last = min(tile + TILE, rows)
            for r in range(tile, last):
                mine, ahead = sums[r - tile], min(r + _AHEAD, rows - 1)
                if cold:
                    _fetch(indices, starts[ahead], ends[ahead])
                    _fetch(values, starts[ahead], ends[ahead])
                if packed or count == LANES:
                    _weighted(values, indices, starts[r], ends[r], source, stride, mine)
                else:  # LANES columns would reach beyond the table
                    mine[:] = 0
                    for p in range(starts[r], ends[r]):
                        for k in range(count):
                            mine[k] += values[p] * source[indices[p] * stride + k]
            if turned and count == LANES and last == tile + TILE:
                for k in range(0, LANES, TILE):
                    place = (first + k) * rows + tile
                    _turn(sums.reshape(TILE * LANES)[k:], LANES, out[place:], rows)
            elif turned:
                for k in range(count):
                    for r in range(tile, last):
                        out[(first + k) * rows + r] = sums[r - tile, k]
            else:
                for r in range(tile, last):
                    for k in range(count):
                        out[r * columns + first + k] = sums[r - tile, k]
        cold = False
        part, done = _take(block, claims, done)


@njit(inline="always")
def _pack(table, turned, width, columns, first, count, panel):
    """Columns ``first:first + count`` of the table side by side, and zeros up to ``LANES``."""
    for tile in range(0, width, TILE):
        last = min(tile + TILE, width)
        if turned and count == LANES and last == tile + TILE:
            for k in range(0, LANES, TILE):
                place = (first + k) * width + tile
                _turn(table[place:], width, panel.reshape(panel.size)[tile * LANES + k :], LANES)
        elif turned:
            for k in range(count):
                for j in range(tile, last):
                    panel[j, k] = table[(first + k) * width + j]
        else:
            for j in range(tile, last):
                panel[j, :count] = table[j * columns + first : j * columns + first + count]
        if count < LANES:
            panel[tile:last, count:] = 0


@njit(inline="always")
def _count(block, claims, given, counts):
    """Each part: how many entries its share of the rows has in each column."""
    rows, _, starts, ends, indices, _ = given
    parts = len(claims)
    part, done = _take(block, claims, 0)
    while part >= 0:
        counts[part] = 0
        for r in range(rows * part // parts, rows * (part + 1) // parts):
            for p in range(starts[r], ends[r]):
                counts[part, indices[p]] += 1
        part, done = _take(block, claims, done)


@njit(inline="always")
def _place(block, claims, given, counts, at, numbers, ordered):
    """Each part puts the entries of its share of the columns where those of their columns are.

    Those of column j come to ``at[0, j]:at[0, j + 1]``, rows in order. Row ``1 + part`` of ``at`` is the
    part's own: where its next entry of each column goes. Shares have about as many entries each.
    """
    rows, width, starts, ends, indices, values = given
    parts = len(claims)
    part, done = _take(block, claims, 0)
    while part >= 0:
        total, mine = 0, at[1 + part]
        for j in range(width):
            mine[j] = total
            for other in range(parts):
                total += counts[other, j]
        mine[width] = total
        if part == 0:
            at[0] = mine
        first = _at_least(mine, 0, width, total * part // parts)
        limit = _at_least(mine, 0, width, total * (part + 1) // parts)
        limit = limit if part + 1 < parts else width
        for r in range(rows):  # the entries of a row are in the order of their columns
            for p in range(_at_least(indices, starts[r], ends[r], first), ends[r]):
                j = indices[p]
                if j >= limit:
                    break
                q = mine[j]
                numbers[q], ordered[q] = r, values[p]
                mine[j] = q + 1
        part, done = _take(block, claims, done)


@njit(inline="always")
def _at_least(ordered, low, high, least):
    """The first place from low to high whose number is at least this, or high."""
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


def _product(real):
    @cfunc(void(types.voidptr), cache=True)
    def product(address):
        """``out = X @ table``"""
        block, claims = _words(address)
        _combine(block, claims, _rows_of(block, real), real)

    return product


def _transposed(real):
    @cfunc(void(types.voidptr), cache=True)
    def transposed(address):
        """``out = X' @ table``: entries in the order of their columns first."""
        block, claims = _words(address)
        panels, shares = block[_PANELS], block[_THREADS]
        given = _rows_of(block, real)
        rows, width = given[0], given[1]
        counts = carray(_pointer(block[_COUNTS]), (shares, width), np.int64)
        at = carray(_pointer(block[_AT]), (1 + shares, width + 1), np.int64)
        numbers = carray(_pointer(block[_NUMBERS]), (1,), np.int32)
        ordered = carray(_pointer(block[_SORTED]), (1,), real)
        _count(block, claims[panels : panels + shares], given, counts)
        _wait(block)
        _place(block, claims[panels + shares :], given, counts, at, numbers, ordered)
        _wait(block)
        turned = width, rows, at[0, :width], at[0, 1:], numbers, ordered
        _combine(block, claims[:panels], turned, real)

    return transposed


PRODUCT = {np.dtype(np.float32): _product(np.float32), np.dtype(np.float64): _product(np.float64)}
TRANSPOSED = {
    np.dtype(np.float32): _transposed(np.float32),
    np.dtype(np.float64): _transposed(np.float64),
}


@njit(
    [void(_I64, _I32, _vector(r), _I64, _I64, int32[::1], r[::1]) for r in _REALS],
    cache=True,
    nogil=True,
)
def take_rows(row_starts, indices, values, rows, starts, taken, taken_values):
    """Copy these rows; those of row k to ``starts[k]:starts[k + 1]``."""
    for k in range(len(rows)):
        p = row_starts[rows[k]]
        for q in range(starts[k], starts[k + 1]):
            taken[q], taken_values[q] = indices[p], values[p]
            p += 1


@njit([void(_matrix(r), int64[::1]) for r in _REALS], cache=True, nogil=True)
def count_rows(X, counts):
    """How many entries of each row are not zero; NaN is not zero."""
    for k in range(len(X)):
        count = 0
        for j in range(X.shape[1]):
            count += X[k, j] != 0
        counts[k] = count


@njit([void(_matrix(r), int64, int64, int32[::1], r[::1]) for r in _REALS], cache=True, nogil=True)
def compress_rows(X, q, end, taken, taken_values):
    """Copy what is not zero, row by row, to places from q to end."""
    for k in range(len(X)):
        for j in range(X.shape[1]):
            if q == end:
                return
            taken[q], taken_values[q] = j, X[k, j]  # overwritten by the next one where it is zero
            q += X[k, j] != 0
