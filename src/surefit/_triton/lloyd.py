"""Kernels of k-means on a GPU; the method and its proof are in :mod:`surefit.solvers.assignment_device`.

:func:`nearest` multiplies a tile of rows by all centres on the tensor cores and keeps, of each row, the
best and the second best score, without writing a product to memory. :func:`unsettled` finds the rows that
need be looked at again when the centres have moved. :func:`exchange` moves the rows that changed cluster from
one sum to the other, in whole numbers, so that the order of the additions does not matter.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["exchange", "nearest", "unsettled"]


@triton.jit
def _tile_scores(
    x, X, row, here, centres, halves, mean, scale, first, n_features,
    BM: tl.constexpr, BN: tl.constexpr, P: tl.constexpr, BK: tl.constexpr, WHOLE: tl.constexpr,
    EXACTER: tl.constexpr,
):  # fmt: skip
    """|c|^2 / 2 - <x, c>, and the shift in ``halves``, for a tile of rows and a tile of centres."""
    column = first + tl.arange(0, BN)
    if WHOLE:
        feature = tl.arange(0, P)
        c = tl.load(centres + column[:, None] * P + feature[None, :])
        if EXACTER:
            products = tl.dot(x, tl.trans(c), input_precision="tf32x3")
        else:
            products = tl.dot(x, tl.trans(c))
    else:
        products = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, P, BK):
            feature = start + tl.arange(0, BK)
            part = _rows(X, row, here, mean, scale, feature, n_features, P, EXACTER)
            c = tl.load(centres + column[:, None] * P + feature[None, :])
            if EXACTER:
                products = tl.dot(part, tl.trans(c), products, input_precision="tf32x3")
            else:
                products = tl.dot(part, tl.trans(c), products)
    return tl.load(halves + column)[None, :] - products


@triton.jit
def _rows(X, row, here, mean, scale, feature, n_features, P: tl.constexpr, EXACTER: tl.constexpr):
    """Rows in the frame of the products: made ready in float16, or from the data in float32."""
    if EXACTER:
        inside = feature < n_features
        m = tl.load(mean + feature, mask=inside, other=0.0)
        at = X + row[:, None] * n_features + feature[None, :]
        raw = tl.load(at, mask=here[:, None] & inside[None, :], other=0.0)
        moved = (raw.to(m.dtype) - m[None, :]) * scale
        found = tl.where(inside[None, :], moved, 0.0).to(tl.float32)
    else:
        found = tl.load(X + row[:, None] * P + feature[None, :], mask=here[:, None], other=0.0)
    return found


@triton.jit
def _append(found, count, row, flag):
    """Write the rows whose flag is set behind those that are there; in no particular order."""
    one = flag.to(tl.int32)
    base = tl.atomic_add(count, tl.sum(one, axis=0), sem="relaxed")
    tl.store(found + base + tl.cumsum(one, axis=0) - 1, row, mask=flag)


@triton.jit(do_not_specialize=["n_rows"])
def nearest(
    X, centres, halves, norms, rests, mean, scale, chosen, n_rows, n_centres, n_features, shift, slope,
    steep, floor, labels, upper, lower, doubtful, count, KEPT: tl.constexpr, LISTED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, P: tl.constexpr, BK: tl.constexpr, WHOLE: tl.constexpr,
    EXACTER: tl.constexpr,
):  # fmt: skip
    """Labels of the rows of a tile, bounds on their distances, and the rows whose two best are too close.

    ``halves`` have ``shift`` added, which makes every score positive: of positive numbers the bits are in
    order, and the last of them, outside ``KEPT``, make room for the number of the tile. ``floor`` holds what
    that costs. ``EXACTER``: from the data, in about float32; else from rows made ready in float16.
    """
    place = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    here = place < n_rows
    row = place
    if LISTED:
        row = tl.load(chosen + place, mask=here, other=0)
    norm = tl.load(norms + row, mask=here, other=0.0)
    if WHOLE:
        x = _rows(X, row, here, mean, scale, tl.arange(0, P), n_features, P, EXACTER)
    else:
        x = tl.zeros((BM, 1), dtype=tl.float32)
    best = tl.full((BM, BN), 0x7F7FFFFF, dtype=tl.int32)
    second = tl.full((BM, BN), 0x7F7FFFFF, dtype=tl.int32)
    for first in range(0, n_centres, BN):
        scores = _tile_scores(
            x, X, row, here, centres, halves, mean, scale, first, n_features, BM, BN, P, BK, WHOLE,
            EXACTER,
        )  # fmt: skip
        bits = (scores.to(tl.int32, bitcast=True) & KEPT) | (first // BN)
        second = tl.minimum(second, tl.maximum(best, bits))
        best = tl.minimum(best, bits)
    least = tl.min(best, axis=1)
    slot = tl.arange(0, BN)[None, :]
    at = tl.min(tl.where(best == least[:, None], slot, BN), axis=1)
    next_ = tl.min(tl.where(slot == at[:, None], second, best), axis=1)
    tl.store(labels + row, (least & ~KEPT) * BN + at, mask=here)
    low = (least & KEPT).to(tl.float32, bitcast=True) - shift
    high = (next_ & KEPT).to(tl.float32, bitcast=True) - shift
    error = slope * norm + steep * tl.load(rests + row, mask=here, other=0.0) + floor
    base = 0.5 * norm * norm  # a score and this are half a squared distance
    farther = tl.sqrt(tl.maximum(2.0 * (low + base + error), 0.0)) * 1.000001
    nearer = tl.sqrt(tl.maximum(2.0 * (high + base * 0.999997 - error), 0.0)) * 0.999999
    tl.store(upper + row, farther, mask=here)
    tl.store(lower + row, nearer, mask=here)
    _append(doubtful, count, row, here & ~(high - low > 2.0 * error))


@triton.jit(do_not_specialize=["n_rows"])
def unsettled(labels, upper, lower, drift, most, fastest, n_rows, found, count, BR: tl.constexpr):
    """The rows that may have a new nearest centre, now that the centres have moved by ``drift``.

    ``most`` points to the two largest drifts, and ``fastest`` to the numbers of these centres.
    """
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    here = row < n_rows
    label = tl.load(labels + row, mask=here, other=0)
    farther = (tl.load(upper + row, mask=here, other=0.0) + tl.load(drift + label)) * 1.000001
    nearer = tl.load(lower + row, mask=here, other=1.0)
    mine = label == tl.load(fastest)
    nearer = (nearer - tl.where(mine, tl.load(most + 1), tl.load(most))) * 0.999999
    tl.store(upper + row, farther, mask=here)
    tl.store(lower + row, nearer, mask=here)
    _append(found, count, row, here & ~(farther < nearer))


@triton.jit(do_not_specialize=["n_rows"])
def exchange(
    X, mean, scale, weights, old, new, sums, masses, moved, n_rows, n_features, unit,
    BR: tl.constexpr, PARTS: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """sums[new] += w (x - mean) scale unit, sums[old] -= the same, in whole numbers, where the two differ.

    ``moved`` counts these rows.
    """
    start = tl.program_id(0).to(tl.int64) * BR * PARTS
    every = start + tl.arange(0, BR * PARTS)
    inside = every < n_rows
    differ = tl.load(new + every, mask=inside, other=0) != tl.load(
        old + every, mask=inside, other=0
    )
    total = tl.sum(differ.to(tl.int32), axis=0)
    if total > 0:
        tl.atomic_add(moved, total, sem="relaxed")
        for part in range(PARTS):
            row = start + part * BR + tl.arange(0, BR)
            here = row < n_rows
            to = tl.load(new + row, mask=here, other=0)
            out = tl.load(old + row, mask=here, other=0)
            _move(
                X, mean, scale, weights, row, to, out, here & (to != out), sums, masses, n_features, unit,
                BR, P, WEIGHTED,
            )  # fmt: skip


@triton.jit
def _move(
    X, mean, scale, weights, row, to, out, moves, sums, masses, n_features, unit,
    BR: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    if tl.sum(moves.to(tl.int32), axis=0) > 0:
        leaves = moves & (out >= 0)
        feature = tl.arange(0, P)
        inside = feature < n_features
        m = tl.load(mean + feature, mask=inside, other=0.0).to(tl.float64)
        at = X + row[:, None] * n_features + feature[None, :]
        raw = tl.load(at, mask=moves[:, None] & inside[None, :], other=0.0).to(tl.float64)
        value = (raw - m[None, :]) * (scale * unit)
        mass = tl.full((BR,), 1.0, dtype=tl.float64)
        if WEIGHTED:
            mass = tl.load(weights + row, mask=moves, other=0.0).to(tl.float64)
            value = value * mass[:, None]
        whole = tl.where(value < 0, value - 0.5, value + 0.5).to(tl.int64)
        rise = sums + to.to(tl.int64)[:, None] * n_features + feature[None, :]
        fall = sums + out.to(tl.int64)[:, None] * n_features + feature[None, :]
        tl.atomic_add(rise, whole, mask=moves[:, None] & inside[None, :], sem="relaxed")
        tl.atomic_add(fall, -whole, mask=leaves[:, None] & inside[None, :], sem="relaxed")
        weight = (mass * unit + 0.5).to(tl.int64)
        tl.atomic_add(masses + to, weight, mask=moves, sem="relaxed")
        tl.atomic_add(masses + out, -weight, mask=leaves, sem="relaxed")
