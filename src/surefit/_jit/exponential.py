r"""Tiles of radial kernels from tiles of inner products: exponent and exponential in one pass.

exp(x) for x <= 0 is computed as 2^k e^r with k = round(x / log 2) and |r| <= (log 2) / 2, e^r by its Taylor
polynomial: degree 7 leaves 5e-9 in float32, degree 13 leaves 5e-18 in float64, both below an ulp. log 2 is
taken off in two parts, so that r is right to the last bits. Adding 1.5 * 2^23 (2^52 in float64) rounds to an
integer, which then stands in the low bits; shifted into the exponent field it is the factor 2^k. Nothing
branches, so the compiler does 8 or 16 numbers at a time. Results below the smallest normal number are 0.

``reassoc`` must stay off: it would cancel the rounding. A closed file.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import float32, int32, int64, njit, types
from numba.extending import intrinsic, overload

__all__ = ["exponentials", "gaussian_tile", "laplace_l1_tile", "laplace_tile"]

_KINDS = ("float32", "float64")
_FAST = {"contract", "nsz"}


@intrinsic
def _bits(typingctx, x):
    """The bits of a float as an integer of the same width."""
    result = types.int32 if x == types.float32 else types.int64

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(signature.return_type.bitwidth))

    return result(x), codegen


@intrinsic
def _float(typingctx, x):
    """The float that has these bits."""
    result = types.float32 if x == types.int32 else types.float64

    def codegen(context, builder, signature, args):
        kind = ir.FloatType() if signature.return_type == types.float32 else ir.DoubleType()
        return builder.bitcast(args[0], kind)

    return result(x), codegen


def _exp32(x):
    y = float32(-87.0) if x < float32(-87.0) else x  # a NaN stays one
    shifted = y * float32(1.4426950408889634) + float32(12582912.0)
    k = shifted - float32(12582912.0)
    r = y - k * float32(0.693359375)
    r = r + k * float32(2.12194440e-4)
    p = float32(1.0 / 5040.0)
    p = p * r + float32(1.0 / 720.0)
    p = p * r + float32(1.0 / 120.0)
    p = p * r + float32(1.0 / 24.0)
    p = p * r + float32(1.0 / 6.0)
    p = p * r + float32(0.5)
    p = p * r + float32(1.0)
    p = p * r + float32(1.0)
    power = _float(int32((_bits(shifted) + int32(127)) << int32(23)))
    return float32(0.0) if x < float32(-87.0) else p * power


def _exp64(x):
    y = -708.0 if x < -708.0 else x
    shifted = y * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = y - k * 6.93145751953125e-1
    r = r - k * 1.42860682030941723212e-6
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = _float(int64((_bits(shifted) + int64(1023)) << int64(52)))
    return 0.0 if x < -708.0 else p * power


def _exp(x):
    """exp(x), x <= 0, in the precision of x."""


@overload(_exp, jit_options={"fastmath": _FAST})
def _choose(x):
    return _exp32 if x == types.float32 else _exp64


@njit(
    [f"void({k}[::1], {k}[::1])" for k in _KINDS],
    cache=True, nogil=True, fastmath=_FAST, error_model="numpy",
)  # fmt: skip
def exponentials(x, out):
    """out = exp(x), for x <= 0."""
    for i in range(len(x)):
        out[i] = _exp(x[i])


@njit(
    [f"void({k}[:, ::1], {k}[::1], {k}[::1], {k}[:, ::1], int64)" for k in _KINDS],
    cache=True, nogil=True, fastmath=_FAST, error_model="numpy",
)  # fmt: skip
def gaussian_tile(products, left, right, out, start):
    """out_ij = exp(2 products_ij - left_i - right_j), at most 1; the columns of out from ``start`` on.

    Of points times sqrt(gamma): left and right are their squared lengths.
    """
    n, m = products.shape
    zero = left.dtype.type(0.0)
    for i in range(n):
        a = left[i]
        row, into = products[i], out[i, start : start + m]
        for j in range(m):
            exponent = row[j] + row[j] - (a + right[j])
            into[j] = _exp(zero if exponent > zero else exponent)


@njit(
    [f"void({k}[:, ::1], {k}[::1], {k}[::1], {k}[:, ::1], {k}[:, ::1], {k}[:, ::1], int64)" for k in _KINDS],
    cache=True, nogil=True, fastmath=_FAST, error_model="numpy",
)  # fmt: skip
def laplace_tile(products, left, right, X, Z, out, start):
    """out_ij = exp(-||x_i - z_j||), of points times gamma.

    Where the squared distance is a small part of the squared lengths, the root would blow up what the
    subtraction lost; there the distance is computed from the points themselves.
    """
    n, m = products.shape
    zero, small = left.dtype.type(0.0), left.dtype.type(1e-3)
    for i in range(n):
        a = left[i]
        row, into = products[i], out[i, start : start + m]
        close = 0
        for j in range(m):
            both = a + right[j]
            squared = both - row[j] - row[j]
            close += squared < small * both
            into[j] = _exp(-math.sqrt(zero if squared < zero else squared))
        if close == 0:
            continue
        for j in range(m):
            both = a + right[j]
            if both - row[j] - row[j] < small * both:
                exact = zero
                for k in range(X.shape[1]):
                    exact += (X[i, k] - Z[j, k]) * (X[i, k] - Z[j, k])
                into[j] = _exp(-math.sqrt(exact))


@njit(
    [f"void({k}[:, ::1], {k}[:, ::1], {k}[:, ::1], int64)" for k in _KINDS],
    cache=True, nogil=True, fastmath=_FAST, error_model="numpy",
)  # fmt: skip
def laplace_l1_tile(X, Z, out, start):
    """out_ij = exp(-sum_k |x_ik - z_jk|), of points times gamma; Z is given transposed."""
    n, m = X.shape[0], Z.shape[1]
    for i in range(n):
        into = out[i, start : start + m]
        for j in range(m):
            into[j] = 0
        for k in range(X.shape[1]):
            x, row = X[i, k], Z[k]
            for j in range(m):
                into[j] += abs(x - row[j])
        for j in range(m):
            into[j] = _exp(-into[j])
