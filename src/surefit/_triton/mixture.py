"""Which components of a Gaussian mixture count for which rows, by tensor cores; see
:mod:`surefit.solvers._mixture_device`."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["screen"]


@triton.jit(do_not_specialize=["n_rows"])
def screen(
    X, factors, offsets, scales, constants, sizes, lengths, norms, upper, top, n_rows, n_components,
    coarse, fine, BM: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Upper bounds on log pi_k N(x | k), component by component, and the largest lower bound of each row.

    y = x'U - mu'U is formed from x and U in float16, scaled. Its error is at most ``coarse`` |x| |U| for the
    products and ``fine`` (|x| + |mu|) |U| for the rest, |U| in the norm of Frobenius (``sizes``).
    """
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    here = row < n_rows
    feature = tl.arange(0, P)
    x = tl.load(X + row[:, None] * P + feature[None, :], mask=here[:, None], other=0.0)
    length = tl.load(norms + row, mask=here, other=0.0)
    best = tl.full((BM,), -3e38, dtype=tl.float32)
    at = row
    for k in range(n_components):
        U = tl.load(factors + k * P * P + feature[:, None] * P + feature[None, :])
        y = tl.dot(x, U) - tl.load(offsets + k * P + feature)[None, :]
        square = tl.sum(y * y, axis=1) * tl.load(scales + k)
        off = (coarse * length + fine * (length + tl.load(lengths + k))) * tl.load(sizes + k)
        error = off * (tl.sqrt(square) + 0.5 * off) + 1e-6 * square
        value = tl.load(constants + k) - 0.5 * square
        tl.store(upper + at, value + error, mask=here)
        at += n_rows
        best = tl.maximum(best, value - error)
    tl.store(top + row, best, mask=here)
