"""Skip-gram with negative sampling; see :mod:`surefit.solvers.skipgram_device`."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["windows"]


@triton.jit(do_not_specialize=["n", "stretch", "rate", "fall", "seed"])
def windows(
    kept, segment, n, stretch, V, Z, shares, others, n_words, size, width, window, negative, rate, fall, seed,
    W: tl.constexpr, K: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """One stretch of the text, window by window: the steps of all pairs of a window, added atomically.

    They are those of the vectors as they are when the window begins. The rate falls by ``fall`` a window.
    """
    begin = tl.program_id(0) * stretch
    step = tl.arange(0, W) - window
    slot = tl.arange(0, K)
    label = tl.where(slot == 0, 1.0, 0.0)
    column = tl.arange(0, D)
    inside = column < size
    for t in range(begin, tl.minimum(begin + stretch, n)):
        centre, own = tl.load(kept + t), tl.load(segment + t)
        reach = 1 + (tl.randint(seed, t * 64) & 0x7FFFFFFF).to(tl.int32) % window
        place = t + step
        here = (step != 0) & (tl.abs(step) <= reach) & (place >= 0) & (place < n)
        here = here & (tl.load(segment + place, mask=here, other=-1) == own)
        inputs = tl.load(kept + place, mask=here, other=0).to(tl.int64)
        cell = (tl.randint(seed, t * 64 + 1 + slot) & 0x7FFFFFFF).to(tl.int32) % n_words
        side = tl.rand(seed + 1, t * 64 + 1 + slot)
        drawn = tl.where(side < tl.load(shares + cell), cell, tl.load(others + cell))
        outs = tl.where(slot == 0, centre, drawn).to(tl.int64)
        live = (slot == 0) | ((slot <= negative) & (drawn != centre))
        in_at = inputs[:, None] * width + column[None, :]
        out_at = outs[:, None] * width + column[None, :]
        in_mask, out_mask = here[:, None] & inside[None, :], live[:, None] & inside[None, :]
        I = tl.load(V + in_at, mask=in_mask, other=0.0)  # noqa: E741
        O = tl.load(Z + out_at, mask=out_mask, other=0.0)  # noqa: E741
        scores = tl.dot(I, tl.trans(O))
        g = (rate - fall * (t - begin)) * (label[None, :] - tl.sigmoid(scores))
        g = tl.where(here[:, None] & live[None, :], g, 0.0)
        tl.atomic_add(V + in_at, tl.dot(g, O), mask=in_mask, sem="relaxed")
        tl.atomic_add(Z + out_at, tl.dot(tl.trans(g), I), mask=out_mask, sem="relaxed")
