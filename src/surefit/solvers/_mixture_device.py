r"""A pass of EM on a GPU that leaves out what adds nothing.

In more than a few dimensions most responsibilities are nothing: log pi_k N(x | k) lies far below the largest
of its row. A first look in float16, whose error is known, finds the pairs (row, component) that can come
within 42 of it, e^-42 being below the rounding of 1 over a hundred components; only these are worked out, in
float64, for both steps. The sums are those of all pairs to rounding. Pairs are laid out component by
component in tiles of equal length, so that both steps are batched products.

Where more than a quarter of the pairs count, the rows are handed back, to be worked out in full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["add_counting_pairs", "takes"]

_FAR = 42.0  # nats below the largest of its row from which a component adds nothing
_TILE = 1024  # pairs
_DENSE = 0.25  # share of the pairs from which it is no use to leave some out
_COARSE = 2.0**-10  # of the product of the lengths: what rounding both factors to float16 may cost
TILE = (128, 4, 3)  # rows, warps and stages
_WIDE = 128  # most features


def takes(rows: Any, kind: str) -> bool:
    """Whether these rows are on a GPU that Triton compiles for, and few enough columns wide."""
    from .assignment_device import has_kernels

    return kind == "full" and rows.shape[1] <= _WIDE and has_kernels(rows)


def add_counting_pairs(rows: Any, ready: Any, hard: bool) -> tuple[Any, list[Any]]:
    """The rows of which too many pairs count, and [log-likelihood, N, sum q d, sum q d d'] of the others."""
    import torch

    K, p = ready.means.shape
    free = torch.cuda.mem_get_info(rows.device)[0] if rows.device.type == "cuda" else 1 << 30
    most = max(_TILE, int(free / 8 / (_DENSE * 24 * K * p)))  # three copies of the differences
    pieces = -(-len(rows) // most)
    left: list[Any] = []
    totals: list[Any] = []
    for part in torch.tensor_split(rows, pieces):
        sums = _sums(part, ready, hard)
        if sums is None:
            left.append(part)
        else:
            totals = [a + b for a, b in zip(totals, sums)] if totals else sums
    return torch.cat(left) if left else rows[:0], totals


def _sums(rows: Any, ready: Any, hard: bool) -> list[Any] | None:
    import torch

    member, index, counts = _pairs(rows, ready)
    K, p = ready.means.shape
    if counts.sum() > _DENSE * K * len(rows):
        return None
    of_tile, place = _tiles(counts, member)
    tiles = len(of_tile)
    listed = torch.zeros(tiles * _TILE, dtype=torch.int64, device=rows.device)
    listed[place] = index
    components = torch.as_tensor(of_tile, device=rows.device)
    d = rows[listed].reshape(tiles, _TILE, p) - ready.means[components][:, None]
    squares = torch.bmm(d, ready.factors[components]).square_().sum(dim=2)
    e = ready.constants[member] - 0.5 * squares.reshape(-1)[place]
    joint = torch.full((len(rows), K), -torch.inf, dtype=e.dtype, device=rows.device)
    joint[index, member] = e
    if hard:
        value, owner = joint.max(dim=1)
        q = (owner[index] == member).to(e.dtype)
    else:
        value = torch.logsumexp(joint, dim=1)
        q = torch.exp(e - value[index])
    del joint
    weights = torch.zeros(tiles * _TILE, dtype=e.dtype, device=rows.device)
    weights[place] = q
    weights = weights.reshape(tiles, 1, _TILE)
    if ready.centres is not ready.means:
        d += (ready.means - ready.centres)[components][:, None]
    first = torch.bmm(weights, d)[:, 0]
    second = torch.bmm(d.mT * weights, d)
    gather = torch.zeros(K, tiles, dtype=e.dtype, device=rows.device)
    gather[components, torch.arange(tiles, device=rows.device)] = 1.0
    sums = gather @ torch.cat([weights.sum(dim=2), first, second.reshape(tiles, -1)], dim=1)
    mass, first, second = sums.split([1, p, p * p], dim=1)
    return [value.sum(), mass[:, 0], first, second.reshape(K, p, p)]


def _pairs(rows: Any, ready: Any) -> tuple[Any, Any, Any]:
    """The pairs that may count, sorted by component: component and row of each, and counts on the host."""
    import torch

    from .._triton.mixture import screen

    K, p = ready.means.shape
    size = max(16, 1 << (p - 1).bit_length())
    away = rows - ready.middle
    scale = _power(away.abs().max())
    x = away.new_zeros((len(rows), size), dtype=torch.float16)
    x[:, :p] = away * scale
    shift = ready.means - ready.middle
    scales = _power(ready.factors.abs().amax(dim=(1, 2)))
    factors = x.new_zeros((K, size, size))
    factors[:, :p, :p] = ready.factors * scales[:, None, None]
    offsets = shift.new_zeros((K, size), dtype=torch.float32)
    offsets[:, :p] = torch.bmm(shift[:, None], ready.factors)[:, 0] * (scale * scales)[:, None]
    upper = offsets.new_empty((K, len(rows)))
    top = offsets.new_empty(len(rows))
    sizes = ready.factors.square().sum(dim=(1, 2)).sqrt()
    screen[(-(-len(rows) // TILE[0]),)](
        x, factors, offsets, (scale * scales).pow(-2).float(), ready.constants.float(),
        *(_upwards(v) for v in (sizes, shift.norm(dim=1), away.norm(dim=1))), upper, top, len(rows), K,
        _COARSE + p * 2.0**-22, 2.0**-21, BM=TILE[0], P=size, num_warps=TILE[1], num_stages=TILE[2],
    )  # fmt: skip
    near = upper >= (top - _FAR)
    counts = near.sum(dim=1)
    member, index = torch.nonzero(near, as_tuple=True)
    return member, index, counts.cpu().numpy()


def _tiles(counts: Any, member: Any) -> tuple[Any, Any]:
    """The component of each tile, and the place of each pair among the tiles' entries."""
    import torch

    needed = -(-counts // _TILE)
    of_tile = np.repeat(np.arange(len(counts)), needed)
    begins = np.cumsum(counts) - counts
    first = (np.cumsum(needed) - needed) * _TILE
    shift = torch.as_tensor(first - begins, device=member.device)
    return of_tile, torch.arange(len(member), device=member.device) + shift[member]


def _power(largest: Any) -> Any:
    """Powers of two that bring these numbers to about 100: far from the ends of float16."""
    import torch

    return torch.exp2(7.0 - torch.ceil(torch.log2(largest.clamp(min=1e-300))))


def _upwards(values: Any) -> Any:
    return values.float() * (1.0 + 1e-6)
