"""What a block of rows adds to a pass of EM for Gaussian mixtures: by the kernels, or by products.

Rows of up to 64 features in memory go through ``_jit/mixture.py``, a few at a time in the cache. Wider ones,
and tensors on any device, go through batched products: (K, rows, D) differences times (K, D, D) factors,
so many rows at a time that these fit into a bounded piece of memory. Both are float64, whatever the rows
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._jit import mixture as kernels
from .._namespace import array_namespace, is_torch
from ._mixture_device import add_counting_pairs, takes

__all__ = ["Given", "Ready", "add_rows", "joint_rows", "prepared", "total_of"]

_NARROW = 64  # features up to which the kernels are faster than products (measured)
_BYTES = 1 << 22  # of the differences of the rows worked on at a time
_DEVICE_BYTES = 1 << 29


Given = Callable[[slice], Any]


class Ready(NamedTuple):
    """The parameters as a pass needs them."""

    kind: str
    means: Any
    factors: Any  # spherical ones are spread over the features
    constants: Any  # log pi - D/2 log 2 pi + log det U
    centres: Any
    middle: Any  # of the means: tied rows are taken relative to it


def prepared(theta: Any, centres: Any) -> Ready:
    xp = array_namespace(theta.means)
    factors, p = theta.factors, theta.means.shape[1]
    kind = "diag" if theta.kind == "spherical" else theta.kind
    if theta.kind == "spherical":
        factors = factors[:, None] * xp.ones_like(theta.means)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = xp.log(factors if kind == "diag" else xp.linalg.diagonal(factors))
        constants = (
            xp.log(theta.weights) - 0.5 * p * math.log(2.0 * math.pi) + xp.sum(logs, axis=-1)
        )
    return Ready(kind, theta.means, factors, constants, centres, xp.mean(theta.means, axis=0))


def _uses_kernels(ready: Ready) -> bool:
    return not is_torch(ready.means) and ready.means.shape[1] <= _NARROW


def add_rows(
    blocks: Iterator[tuple[slice, Any]], ready: Ready, hard: bool, given: Given | None = None
) -> list[Any]:
    """[log-likelihood, N, sum q d, sum q d d'] of some rows.

    With ``given``, these are the responsibilities, not tied, and the log-likelihood is 0.
    """
    if _uses_kernels(ready):
        return _by_kernels(blocks, ready, hard, given)
    totals: list[Any] = []
    for where, block in blocks:
        start = 0
        all_q = None if given is None else given(where)
        if all_q is None and is_torch(block) and takes(block, ready.kind):
            block, sums = add_counting_pairs(
                block, ready, hard
            )  # what is left, and what was added up
            totals = _added(totals, sums)
        for rows in _pieces(block, ready):
            if all_q is None:
                value, q = _weigh(_joint_by_products(rows, ready), hard)
            else:
                value, q = 0.0 * rows[0, 0], all_q[start : start + len(rows)]
            start += len(rows)
            sums = [value, *_weighted_sums(rows, q, ready.centres, ready.kind)]
            totals = _added(totals, sums)
    return totals


def _added(totals: list[Any], sums: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(totals, sums)] if totals and sums else totals or sums


def joint_rows(block: Any, ready: Ready) -> Any:
    """log pi_k + log N of each row, as an array of its own."""
    if _uses_kernels(ready):
        out = np.empty((len(block), len(ready.means)))
        kernel, given = _for_kernel(ready)
        joint = {"full": kernels.full_joint, "diag": kernels.diag_joint, "tied": kernels.tied_joint}
        joint[kernel](np.ascontiguousarray(block), *given, out)
        return out
    parts = [_joint_by_products(rows, ready) for rows in _pieces(block, ready)]
    return array_namespace(block).concat(parts)


# ---------------------------------------------------------------------------- kernels


def _for_kernel(ready: Ready) -> tuple[str, tuple[Any, ...]]:
    if ready.kind == "diag":
        return "diag", (ready.means, np.ascontiguousarray(ready.factors), ready.constants)
    if ready.kind == "tied":
        white = (ready.means - ready.middle) @ ready.factors
        return "tied", (ready.middle, white, np.ascontiguousarray(ready.factors.T), ready.constants)
    K, p = ready.means.shape
    size = 4 * -(-p // 4)
    turned = np.zeros((K, size, size))
    turned[:, :p, :p] = ready.factors.transpose(0, 2, 1)
    return "full", (np.ascontiguousarray(ready.means), turned, ready.constants)


def _by_kernels(
    blocks: Iterator[tuple[slice, Any]], ready: Ready, hard: bool, given: Given | None
) -> list[Any]:
    K, p = ready.means.shape
    kernel, params = _for_kernel(ready)
    value, mass, none = 0.0, np.zeros(K), np.empty((0, K))
    if kernel == "full":
        size = params[1].shape[1]
        first, second = np.zeros((K, size)), np.zeros((K, size, size))
        centres = np.ascontiguousarray(ready.centres)
        for where, block in blocks:
            rows, q = np.ascontiguousarray(block), none if given is None else given(where)
            value += kernels.full_pass(rows, *params, centres, hard, q, mass, first, second)
        second = second[:, :p, :p]
        lower = np.tril(second)
        second = lower + np.tril(second, -1).transpose(0, 2, 1)
        return [np.float64(value), mass, np.ascontiguousarray(first[:, :p]), second]
    first = np.zeros((K, p))
    if kernel == "diag":
        second, centres = np.zeros((K, p)), np.ascontiguousarray(ready.centres)
        for where, block in blocks:
            rows, q = np.ascontiguousarray(block), none if given is None else given(where)
            value += kernels.diag_pass(rows, *params, centres, hard, q, mass, first, second)
        return [np.float64(value), mass, first, second]
    second, pairs = np.zeros((p, p)), np.zeros((K, K))
    centres = ready.centres - ready.middle
    for _, block in blocks:
        rows = np.ascontiguousarray(block)
        value += kernels.tied_pass(rows, *params, centres, hard, mass, first, second, pairs)
    second = second + np.tril(second, -1).T + _between(pairs + pairs.T, centres)
    return [np.float64(value), mass, first, second]


def _between(pairs: Any, centres: Any) -> Any:
    """sum_{k<l} w_kl (c_k - c_l)(c_k - c_l)' for symmetric weights without diagonal: of positive terms."""
    xp = array_namespace(centres)
    turned = xp.matrix_transpose(centres)
    return turned @ (xp.sum(pairs, axis=1)[:, None] * centres) - turned @ (pairs @ centres)


# ---------------------------------------------------------------------------- products


def _pieces(block: Any, ready: Ready) -> Iterator[Any]:
    """A block in pieces whose differences from all means fit into the memory set aside."""
    K, p = ready.means.shape
    on_device = is_torch(block) and block.device.type != "cpu"
    size = max(1, (_DEVICE_BYTES if on_device else _BYTES) // (8 * K * p))
    for start in range(0, len(block), size):
        yield block[start : start + size]


def _joint_by_products(rows: Any, ready: Ready) -> Any:
    xp = array_namespace(rows)
    if ready.kind == "tied":
        y = (rows - ready.middle) @ ready.factors
        away = y - ((ready.means - ready.middle) @ ready.factors)[:, None]
    else:
        away = rows - ready.means[:, None]
        if ready.kind == "full":
            away = xp.matmul(away, ready.factors)
        else:
            away *= ready.factors[:, None]
    away *= away
    return ready.constants - 0.5 * xp.matrix_transpose(xp.sum(away, axis=-1))


def _weigh(e: Any, hard: bool) -> tuple[Any, Any]:
    """The sum of the logs of the totals, and the responsibilities."""
    xp = array_namespace(e)
    top = xp.max(e, axis=1)
    if hard:
        places = xp.argmax(e, axis=1)[:, None]
        index = xp.arange(e.shape[1], device=e.device) if is_torch(e) else np.arange(e.shape[1])
        return xp.sum(top), xp.astype(places == index, e.dtype)
    q = xp.exp(e - top[:, None])
    total = xp.sum(q, axis=1)
    return xp.sum(top + xp.log(total)), q / total[:, None]


def total_of(e: Any, hard: bool) -> Any:
    """The sum over rows of log sum_k, or max_k, of exp(e_k)."""
    return _weigh(e, hard)[0]


def _weighted_sums(rows: Any, q: Any, centres: Any, kind: str) -> list[Any]:
    """[N, sum q d, sum q d d'] for given responsibilities, d = x - centre_k."""
    xp = array_namespace(rows)
    mass = xp.sum(q, axis=0)
    weights = xp.matrix_transpose(q)  # (K, rows)
    if kind == "tied":
        middle = xp.mean(centres, axis=0)
        rows, centres = rows - middle, centres - middle
        first = weights @ rows - mass[:, None] * centres
        r = rows - q @ centres
        pairs = weights @ q
        pairs = pairs * (1.0 - _identity(pairs))
        return [mass, first, xp.matrix_transpose(r) @ r + _between(pairs, centres)]
    away = rows - centres[:, None]  # (K, rows, D)
    heavy = weights[:, :, None] * away
    first = xp.sum(heavy, axis=1)
    if kind == "diag" or kind == "spherical":
        return [mass, first, xp.sum(heavy * away, axis=1)]
    return [mass, first, xp.matmul(xp.matrix_transpose(heavy), away)]


def _identity(square: Any) -> Any:
    xp = array_namespace(square)
    if is_torch(square):
        return xp.eye(len(square), dtype=square.dtype, device=square.device)
    return xp.eye(len(square))
