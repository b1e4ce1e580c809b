"""Squared distances to a few rows, from differences in float64; see :mod:`surefit.solvers.seeding`."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["closer"]


@triton.jit(do_not_specialize=["n_rows"])
def closer(
    X, centres, closest, weights, found, totals, n_rows, n_features,
    T: tl.constexpr, BR: tl.constexpr, BP: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """found[t] = min(closest, |x - centre t|^2) for T centres, and the weighted sums of a tile of rows."""
    tile = tl.program_id(0).to(tl.int64)
    row = tile * BR + tl.arange(0, BR)
    here = row < n_rows
    before = tl.load(closest + row, mask=here, other=0.0)
    mass = tl.full((BR,), 1.0, dtype=tl.float64)
    if WEIGHTED:
        mass = tl.load(weights + row, mask=here, other=0.0)
    place = row
    for t in range(T):
        square = tl.zeros((BR,), dtype=tl.float64)
        for start in range(0, n_features, BP):
            feature = start + tl.arange(0, BP)
            inside = feature < n_features
            at = X + row[:, None] * n_features + feature[None, :]
            x = tl.load(at, mask=here[:, None] & inside[None, :], other=0.0).to(tl.float64)
            c = tl.load(centres + t * n_features + feature, mask=inside, other=0.0)
            gap = tl.where(inside[None, :], x - c[None, :], 0.0)
            square += tl.sum(gap * gap, axis=1)
        square = tl.where(here, tl.minimum(square, before), 0.0)
        tl.store(found + place, square, mask=here)
        place += n_rows
        tl.store(totals + tile * T + t, tl.sum(square * mass, axis=0))
